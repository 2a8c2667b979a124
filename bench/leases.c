// SPDX-License-Identifier: GPL-2.0
/*
 * Leases: one process has a million leases of 30 s, and renews each once a second. After one
 * heartbeat in 1,000, or in 100, the holder hangs. Another process, the supervisor, gets the event
 * when the lease ends. Then the holder takes a new lease.
 *
 * Measures all CPU time of both processes for a heartbeat, as in requests.c.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define LEASE		(30 * NSEC_PER_SEC)
#define STEP		NSEC_PER_MSEC
#define PERIOD		1000		/* from one heartbeat to the next, in steps */
#define WARM_UP		2000		/* in steps */
#define MEASURED	(LEASE / STEP)
#define LATE		(10 * NSEC_PER_SEC)

static const struct pattern {
	const char *name;
	__u32 hangs;		/* number of heartbeats for each hang */
} patterns[] = {
	{ "leases_0.1", 1000 },
	{ "leases_1", 100 },
};

static __u32 batch, leases, place, stride;
static bool *hangs;
static __u64 heartbeats, next;
static struct change news[CHANGES];

static pid_t supervisor_start(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* until it is killed */
	expected.want = ~0U;
	facility->run(NEVER);
	exit(EXIT_FAILURE);
}

static void supervisor_stop(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (!WIFSIGNALED(status))
		die("the supervisor ended: this is not a measurement");
}

/* The turn of some leases */
static void renew(__u32 step, __u32 one_in)
{
	__u32 turns = (__u64)leases * (step + 1) / PERIOD - (__u64)leases * step / PERIOD;
	__u64 start = now_ns(), deadline = start + LEASE;
	__u32 renewed = 0, taken = 0, i;

	for (i = 0; i < turns; i++) {
		struct change *c;

		place += stride;
		if (place >= leases)
			place -= leases;
		/* the lease has not ended yet */
		if (hangs[place] && expected.deadline[place])
			continue;
		c = hangs[place] ? &news[taken++] : &changes[renewed++];
		c->id = place;
		c->deadline = deadline;
		hangs[place] = !random_below(&seed, one_in);
	}
	heartbeats += renewed + taken;
	own_ns += now_ns() - start;
	apply(REFRESH, changes, renewed, batch);
	apply(ARM, news, taken, batch);
}

static void steps_start(void)
{
	next = (now_ns() / STEP + 1) * STEP;
}

static void do_step(__u32 step, __u32 one_in)
{
	next += STEP;
	sleep_until(next);
	renew(step, one_in);
}

/* CPU time of a step without heartbeats */
static double base_of_step(void)
{
	const __u32 tries = 1000;
	struct meter meter;
	__u32 all = leases, i;

	leases = 0;
	steps_start();
	meter_start(&meter);
	for (i = 0; i < tries; i++)
		do_step(i, 1);
	leases = all;
	return (double)meter_stop(&meter) / tries;
}

/* All have leases, and some holders hang already. */
static void begin(__u32 one_in)
{
	double period = PERIOD * STEP, hanging = LEASE / (LEASE + period * one_in);
	__u32 i;

	arm_all(leases, now_ns() + WARM_UP * STEP, LEASE - WARM_UP * STEP);
	for (i = 0; i < leases; i++)
		hangs[i] = random_below(&seed, 1000000) < hanging * 1000000;
}

static void at_size(const struct pattern *p, __u32 n)
{
	double base, quiet, busy;
	struct meter meter;
	pid_t supervisor;
	__u32 step;

	progress("%s leases, one heartbeat in %u is the last", commas(n), p->hangs);
	leases = n;
	stride = stride_of(n);
	place = 0;
	hangs = xcalloc(n, sizeof(*hangs));
	facility_open(n, LEASE);
	supervisor = supervisor_start();
	quiet = background(LEASE);
	base = base_of_step();
	begin(p->hangs);
	steps_start();
	for (step = 0; step < WARM_UP + MEASURED; step++) {
		if (step == WARM_UP) {
			coarse_start(&meter);
			heartbeats = 0;
		}
		do_step(step, p->hangs);
	}
	busy = coarse_stop(&meter, quiet) - base * MEASURED;
	if (now_ns() > next + LATE) {
		skipped(p->name, n, "heartbeats come faster than it can renew leases");
	} else {
		expected_none_overdue(now_ns() - LATE);
		result(p->name, n, batch, busy / heartbeats, "ns");
	}
	supervisor_stop(supervisor);
	facility_close();
	free(hangs);
}

void bench_leases(void)
{
	__u32 n = bearable("leases", options.most);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(patterns); i++) {
		batch = usual_batch();
		at_size(&patterns[i], n);
		if (batch == 1)
			continue;
		batch = 1;
		at_size(&patterns[i], n / 100);
	}
}
