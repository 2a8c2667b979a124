// SPDX-License-Identifier: GPL-2.0
/*
 * Request timeouts: each connection sends a request every 100 ms, or every second, and arms its
 * timer for 30 s. The answer comes after 5 ms and cancels it, except for one request in 1,000, or
 * in 100: that timer is delivered, and armed again with the connection's next request. A connection
 * that waits for an answer sends nothing.
 *
 * Measures all CPU time for a request in steady state: over one timeout, so that work that
 * occurs once in a timeout for each connection is included once. At the start as many connections
 * wait as on average, and the rest of their timeouts is random, from 0 to 30 s.
 *
 * Steps begin at multiples of 1 ms, to which most facilities round wake-ups. Otherwise the cost
 * of a timeout would depend on the distance: up to an interrupt and a wake-up more.
 */
#include <stdlib.h>

#include "bench.h"
#include "steps.h"

#define TIMEOUT		(30 * NSEC_PER_SEC)
#define STEP		NSEC_PER_MSEC
#define ROUND_TRIP	5		/* in steps */
#define WARM_UP		2000		/* in steps */
#define MEASURED	(TIMEOUT / STEP)
#define MOST_BUSY	80		/* CPU time for arming and cancelling, in % */
#define LATE		(10 * NSEC_PER_SEC)	/* limit at the end */

static const struct pattern {
	const char *name;
	__u32 part;		/* number of timers of options.most for each connection */
	__u32 period;		/* from one request of a connection to the next, in steps */
	__u32 lost;		/* number of requests for each request without an answer */
} patterns[] = {
	{ "requests_100ms_0.1", 10, 100, 1000 },
	{ "requests_100ms_1", 10, 100, 100 },
	{ "requests_1s_0.1", 1, 1000, 1000 },
	{ "requests_1s_1", 1, 1000, 100 },
};

/* The number of timers in a call */
static __u32 batch;
/* The connections; the next connection; the requests of the last steps that will be answered */
static __u32 conns, place, stride;
static struct change *answers[ROUND_TRIP];
static __u32 answered[ROUND_TRIP];
static __u64 requests;

static void answer(__u32 step)
{
	__u32 n = answered[step % ROUND_TRIP];

	answered[step % ROUND_TRIP] = 0;
	apply(CANCEL, answers[step % ROUND_TRIP], n, batch);
}

/* The turn of @turns connections */
static void send(__u32 step, __u32 turns, __u32 lost)
{
	__u64 start = now_ns(), deadline = start + TIMEOUT;
	struct change *will_answer = answers[step % ROUND_TRIP];
	__u32 n = 0, kept = 0, i;

	for (i = 0; i < turns; i++) {
		place += stride;
		if (place >= conns)
			place -= conns;
		/* it waits */
		if (expected.deadline[place])
			continue;
		changes[n].id = place;
		changes[n].deadline = deadline;
		if (random_below(&seed, lost))
			will_answer[kept++].id = place;
		n++;
	}
	answered[step % ROUND_TRIP] = kept;
	requests += n;
	own_ns += now_ns() - start;
	apply(ARM, changes, n, batch);
}

static void do_step(struct steps *steps, __u32 step, const struct pattern *p)
{
	__u32 turns = (__u64)conns * (step + 1) / p->period - (__u64)conns * step / p->period;

	steps_next(steps);
	answer(step);
	send(step, turns, p->lost);
}

/* CPU time of a step without requests */
static double base_of_step(struct steps *steps)
{
	const __u32 tries = 1000;
	const struct pattern idle = { .period = tries, .lost = 1 };
	struct meter meter;
	__u32 all = conns, i;
	double base;

	conns = 0;
	steps->next = (now_ns() / STEP + 1) * STEP;
	meter_start(&meter);
	for (i = 0; i < tries; i++)
		do_step(steps, i, &idle);
	base = (double)meter_stop(&meter) / tries;
	conns = all;
	return base;
}

/*
 * Each connection has sent a request within the last 30 s, or appears to: all timers were armed.
 * Timers of connections that wait stay armed.
 */
static void begin(const struct pattern *p)
{
	double period = p->period * STEP, waiting = TIMEOUT / (TIMEOUT + period * p->lost);
	__u32 n = 0, i;

	arm_all(conns, now_ns() + WARM_UP * STEP, TIMEOUT);
	for (i = 0; i < conns; i++) {
		if (random_below(&seed, 1000000) >= waiting * 1000000)
			changes[n++].id = i;
		if (n == CHANGES || i == conns - 1) {
			apply(CANCEL, changes, n, batch);
			n = 0;
		}
	}
}

static void at_size(const struct pattern *p, __u32 n)
{
	double base, quiet, busy;
	struct steps steps;
	struct meter meter;
	__u32 step;

	progress("%s connections, a request each %u ms, one in %u is lost", commas(n), p->period,
		 p->lost);
	conns = n;
	stride = stride_of(n);
	place = 0;
	facility_open(n, TIMEOUT);
	quiet = background(TIMEOUT);
	steps_begin(&steps, STEP);
	base = base_of_step(&steps);
	begin(p);
	steps.next = (now_ns() / STEP + 1) * STEP;
	for (step = 0; step < WARM_UP + MEASURED; step++) {
		if (step == WARM_UP) {
			coarse_start(&meter);
			requests = 0;
		}
		do_step(&steps, step, p);
	}
	busy = coarse_stop(&meter, quiet) - base * MEASURED;
	if (now_ns() > steps.next + LATE) {
		skipped(p->name, n, "requests are sent faster than it can arm and cancel");
	} else {
		expected_none_overdue(now_ns() - LATE);
		result(p->name, n, batch, busy / requests, "ns");
	}
	facility_close();
}

/* CPU time to arm and cancel one of @n timers */
static __u64 cost_among(__u32 n)
{
	__u32 done, count, i;
	__u64 ns = 0;
	int round;

	facility_open(n, TIMEOUT);
	/* some facilities create them the first time */
	for (round = 0; round < 2; round++) {
		ns = 0;
		for (done = 0; done < 2 * n; done += count) {
			__u32 first = done % n;

			count = n - first < CHANGES ? n - first : CHANGES;
			for (i = 0; i < count; i++) {
				changes[i].id = first + i;
				changes[i].deadline = now_ns() + TIMEOUT;
			}
			ns += apply(done < n ? ARM : CANCEL, changes, count, batch);
		}
	}
	facility_close();
	return ns / n;
}

/* The number of connections: as many as a CPU can serve, a power of ten */
static __u32 size(const struct pattern *p)
{
	__u32 most = options.most / p->part, n;
	__u64 busy;

	if (facility->step_most && most > facility->step_most) {
		skipped(p->name, most, "%s", facility->why);
		most = facility->step_most;
	}
	most = bearable(p->name, most);
	for (n = 1000; n < most; n *= 10) {
		/* in % of the time */
		busy = cost_among(n * 10) * n * 10 * 100 / (p->period * STEP);
		if (busy <= MOST_BUSY)
			continue;
		skipped(p->name, n * 10, "%s arming and cancelling would take %llu %% of the CPU",
			batch > 1 ? "in batches" : "one at a time", busy);
		return n;
	}
	return most;
}

static void measure(const struct pattern *p)
{
	__u32 n = size(p), k;

	for (k = 0; k < ROUND_TRIP; k++) {
		answers[k] = xcalloc(n / p->period + 1, sizeof(**answers));
		answered[k] = 0;
	}
	at_size(p, n);
	for (k = 0; k < ROUND_TRIP; k++)
		free(answers[k]);
}

void bench_requests(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(patterns); i++) {
		batch = usual_batch();
		measure(&patterns[i]);
		if (batch == 1)
			continue;
		batch = 1;
		measure(&patterns[i]);
	}
}
