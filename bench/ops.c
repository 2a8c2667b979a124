// SPDX-License-Identifier: GPL-2.0
/*
 * Each operation alone, while so many timers are pending and none falls due.
 *
 * Cold: each timer in turn, in an order without pattern; for arming, the first use of
 * the memory. Warm: the same few again and again. Where time is counted in
 * instructions, which show no cache misses, only arming differs.
 */
#include "bench.h"

#define WARM	1024

/* Where a facility has one timeout for all its timers, it is this. */
#define TIMEOUT	HOUR

static __u64 cost_of_refresh;

/* A walk that visits each of some timers once before it comes back to the first. */
struct walk {
	__u64 stride, place, n;
};

static struct walk walk_among(__u32 n)
{
	return (struct walk) { .stride = stride_of(n), .n = n };
}

/*
 * When: anywhere within hours; refreshed ones after all of these, each later than
 * the one before.
 */
static void prepare(enum op op, struct walk *walk, __u32 n)
{
	__u64 now = now_ns();
	__u32 i;

	for (i = 0; i < n; i++) {
		walk->place = (walk->place + walk->stride) % walk->n;
		changes[i].id = walk->place;
		if (op == REFRESH)
			changes[i].deadline = now + 5 * HOUR + i;
		else
			changes[i].deadline = now + HOUR / 2 + random_below(&seed, 4 * HOUR);
	}
}

/* What was done how often, and what it took. */
struct cost {
	__u64 n, ns;
};

static double each(struct cost cost)
{
	return (double)cost.ns / cost.n;
}

/*
 * An operation again and again, until the mean is good or the budget is spent. Cancelled
 * timers are armed again, which is measured as well.
 */
static struct cost measure(enum op op, __u32 among, __u32 batch, struct cost *arming)
{
	struct walk walk = walk_among(among);
	__u32 chunk = batch * (facility->threads ?: 1);
	__u32 most = among < CHANGES ? among : CHANGES;
	struct cost cost = { };

	if (chunk > most)
		chunk = most;
	while (cost.n < CHANGES && cost.ns < options.budget) {
		prepare(op, &walk, chunk);
		cost.ns += apply(op, changes, chunk, batch);
		if (op == CANCEL) {
			arming->ns += apply(ARM, changes, chunk, batch);
			arming->n += chunk;
		}
		cost.n += chunk;
		/* More at a time: reading the clock should not count. */
		chunk = 2 * chunk < most ? 2 * chunk : most;
	}
	return cost;
}

static void all_but_arming(__u32 n, __u32 batch)
{
	__u32 warm = n < WARM ? n : WARM;
	struct cost arming = { }, refresh;

	result("move_cold", n, batch, each(measure(MOVE, n, batch, NULL)), "ns");
	result("move_warm", n, batch, each(measure(MOVE, warm, batch, NULL)), "ns");
	refresh = measure(REFRESH, n, batch, NULL);
	if (batch == usual_batch())
		cost_of_refresh = each(refresh) + 1;
	result("refresh_cold", n, batch, each(refresh), "ns");
	result("refresh_warm", n, batch, each(measure(REFRESH, warm, batch, NULL)), "ns");
	result("cancel_cold", n, batch, each(measure(CANCEL, n, batch, &arming)), "ns");
	result("arm_warm", n, batch, each(arming), "ns");
	arming = (struct cost) { };
	result("cancel_warm", n, batch, each(measure(CANCEL, warm, batch, &arming)), "ns");
}

/* The other sizes of batches, but those that would take far too long. */
static void batches(__u32 n)
{
	static const __u32 sizes[] = { 1, 16, 4096 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (sizes[i] > n)
			continue;
		if (sizes[i] * cost_of_refresh < 10 * options.budget)
			all_but_arming(n, sizes[i]);
		else
			skipped("ops", n, "a batch of %s takes more than %s", commas(sizes[i]),
				duration(10 * options.budget));
	}
}

static void at_size(__u32 n, bool largest)
{
	__u64 ns;

	progress("operations with %s timers pending", commas(n));
	facility_open(n, TIMEOUT);
	ns = arm_all(n, now_ns() + HOUR, HOUR);
	result("arm_cold", n, usual_batch(), (double)ns / n, "ns");
	if (largest)
		result("memory", n, 0, (double)facility_memory() / n, "bytes");
	all_but_arming(n, usual_batch());
	if (largest && facility->batches)
		batches(n);
	facility_close();
}

void bench_ops(void)
{
	__u32 most = bearable("ops", options.most), n;

	for (n = 1000; n < most; n *= 10)
		at_size(n, false);
	at_size(most, true);
}

__u64 refresh_cost(void)
{
	struct walk walk;
	const __u32 n = 1000;

	if (cost_of_refresh)
		return cost_of_refresh;
	/* ops were not asked for: find out with a few. */
	walk = walk_among(n);
	facility_open(n, TIMEOUT);
	arm_all(n, now_ns() + HOUR, HOUR);
	prepare(REFRESH, &walk, n);
	cost_of_refresh = apply(REFRESH, changes, n, usual_batch()) / n + 1;
	facility_close();
	return cost_of_refresh;
}
