// SPDX-License-Identifier: GPL-2.0
/*
 * Idle timeouts: connections with a timeout of 60 s. Each is refreshed 100 times, every 3 s. Then
 * one in a hundred becomes silent and expires; the others are closed.
 */
#include "bench.h"
#include "steps.h"

#define TIMEOUT		(60 * NSEC_PER_SEC)
#define STEP		(50 * NSEC_PER_MSEC)
#define STEPS		60		/* in a round, in which each connection has its turn */
#define REFRESHES	100
#define SILENT		100		/* one in this many connections */

static struct {
	__u32 n;
	__u64 stride, place;
} turn;

static void do_changes(enum op op, __u32 count)
{
	if (count)
		apply(op, changes, count, usual_batch());
}

/* Do @op on the next @count connections, without silent ones if @but_silent. */
static void serve(enum op op, __u32 count, bool but_silent)
{
	__u64 start = now_ns(), place = turn.place, deadline = start + TIMEOUT;
	__u32 i, filled = 0;

	for (i = 0; i < count; i++) {
		place += turn.stride;
		if (place >= turn.n)
			place -= turn.n;
		if (but_silent && place % SILENT == 0)
			continue;
		changes[filled].id = place;
		changes[filled++].deadline = deadline;
	}
	turn.place = place;
	own_ns += now_ns() - start;
	do_changes(op, filled);
}

static void round_of(enum op op, struct steps *steps)
{
	__u64 step;

	for (step = 0; step < STEPS; step++) {
		steps_next(steps);
		serve(op, turn.n * (step + 1) / STEPS - turn.n * step / STEPS, op == CANCEL);
	}
}

static __u64 all_refreshes(__u64 n)
{
	return n * REFRESHES * refresh_cost();
}

/* The number of connections: as many as the budget allows, a power of ten */
static __u32 size(void)
{
	__u32 most, n;

	if (facility->step_most && options.most > facility->step_most) {
		skipped("idle", options.most, "%s", facility->why);
		most = facility->step_most;
	} else {
		most = bearable("idle", options.most);
	}
	for (n = 1000; n < most; n *= 10) {
		if (all_refreshes(n * 10) <= options.idle_budget)
			continue;
		skipped("idle", most, "all refreshes would take %s, the budget is %s",
			duration(all_refreshes(most)), duration(options.idle_budget));
		return n;
	}
	return most;
}

void bench_idle(void)
{
	struct steps steps;
	struct meter meter;
	double busy;
	int i;

	turn.n = size();
	turn.stride = stride_of(turn.n);
	turn.place = 0;
	progress("%s connections with idle timeouts", commas(turn.n));
	facility_open(turn.n, TIMEOUT);
	steps_begin(&steps, STEP);
	meter_start(&meter);
	round_of(ARM, &steps);
	for (i = 0; i < REFRESHES; i++)
		round_of(REFRESH, &steps);
	round_of(CANCEL, &steps);
	expected_come((turn.n + SILENT - 1) / SILENT, now_ns() + TIMEOUT);
	busy = meter_stop(&meter);
	busy -= steps.base * STEPS * (REFRESHES + 2);
	result("idle", turn.n, usual_batch(), busy / turn.n, "ns");
	facility_close();
}
