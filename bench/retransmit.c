// SPDX-License-Identifier: GPL-2.0
/*
 * Retransmission: 100 packets in each millisecond, each with a timeout of 200 ms. It is cancelled
 * by an acknowledgment after 10 ms, except for one packet in a hundred.
 */
#include "bench.h"
#include "steps.h"

#define TIMEOUT		(200 * NSEC_PER_MSEC)
#define STEP		NSEC_PER_MSEC
#define PACKETS		100		/* in a step; one of them is lost */
#define ROUND_TRIP	10		/* in steps */
#define TIMERS		32768U		/* used in turn; more than are sent within a timeout */

static void send(__u32 step)
{
	__u64 start = now_ns();
	__u32 i;

	for (i = 0; i < PACKETS; i++) {
		changes[i].id = (step * PACKETS + i) % TIMERS;
		changes[i].deadline = start + TIMEOUT;
	}
	own_ns += now_ns() - start;
	apply(ARM, changes, PACKETS, usual_batch());
}

static void acknowledge(__u32 step)
{
	__u64 start = now_ns();
	__u32 i;

	/* the first one is lost */
	for (i = 1; i < PACKETS; i++)
		changes[i].id = (step * PACKETS + i) % TIMERS;
	own_ns += now_ns() - start;
	apply(CANCEL, changes + 1, PACKETS - 1, usual_batch());
}

/* Arm each timer once, so that timers that are created when first armed exist. */
static void arm_once(void)
{
	arm_all(TIMERS, now_ns() + HOUR, HOUR);
	apply(CANCEL, changes, TIMERS, usual_batch());
}

void bench_retransmit(void)
{
	__u32 rounds = options.most / PACKETS, step;
	struct steps steps;
	struct meter meter;
	double busy;

	progress("%s packets, some of them lost", commas(rounds * PACKETS));
	facility_open(TIMERS, TIMEOUT);
	arm_once();
	steps_begin(&steps, STEP);
	meter_start(&meter);
	for (step = 0; step < rounds + ROUND_TRIP; step++) {
		steps_next(&steps);
		if (step >= ROUND_TRIP)
			acknowledge(step - ROUND_TRIP);
		if (step < rounds)
			send(step);
	}
	expected_come(rounds, now_ns() + TIMEOUT);
	busy = meter_stop(&meter);
	busy -= steps.base * (rounds + ROUND_TRIP);
	/* pending at any time: packets in flight, and lost packets */
	result("retransmit", ROUND_TRIP * PACKETS + TIMEOUT / STEP, usual_batch(),
	       busy / (rounds * PACKETS), "ns");
	facility_close();
}
