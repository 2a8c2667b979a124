// SPDX-License-Identifier: GPL-2.0
/*
 * All timers fall due in the same tick. Measures how long the kernel holds the CPU, how late
 * another task wakes, and when the last timer is delivered.
 */
#include "bench.h"

#define TO_ARM_ONE	25000ULL	/* see expire.c */

void bench_burst(void)
{
	__u32 n = bearable("burst", options.most);
	struct sleeper *ordinary, *realtime;
	__u64 from, last;

	progress("%s timers fall due in one tick", commas(n));
	ordinary = sleeper_start(false);
	realtime = sleeper_start(true);
	facility_open(n, 0);
	/* at the start of a millisecond, so that all are in the same tick of any facility */
	from = (now_ns() + NSEC_PER_SEC + n * TO_ARM_ONE) / NSEC_PER_MSEC * NSEC_PER_MSEC;
	arm_all(n, from, 1);
	if (now_ns() + NSEC_PER_SEC / 2 > from)
		die("the burst began before all timers were armed: this is not a measurement");
	expected.want = ~0U;
	run_until(from - 20 * NSEC_PER_MSEC);
	sleeper_watch(ordinary);
	sleeper_watch(realtime);
	expected_come(n, from);
	last = now_ns() - from;
	/* a sleeper that was delayed until now runs and records it */
	sleep_until(now_ns() + 100 * NSEC_PER_MSEC);
	result("burst_hold", n, 0, sleeper_worst(realtime), "ns");
	result("burst_task", n, 0, sleeper_worst(ordinary), "ns");
	result("burst_last", n, 0, last, "ns");
	sleeper_stop(ordinary);
	sleeper_stop(realtime);
	facility_close();
}
