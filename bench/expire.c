// SPDX-License-Identifier: GPL-2.0
/* Many timers fall due within a second: CPU time for each, and their lateness */
#include <stdlib.h>

#include "bench.h"

/*
 * Time between the start of arming and the first deadline, in ns for each timer: more than arming
 * takes with the slowest facility
 */
#define TO_ARM_ONE	25000ULL

/* Measure CPU time; without @meter record the lateness of each timer. */
static void expire_within_a_second(__u32 n, struct meter *meter, __u64 *arming)
{
	__u64 ahead = NSEC_PER_SEC / 10 + n * TO_ARM_ONE, start, from;

	facility_open(n, ahead);
	if (meter)
		meter_start(meter);
	else
		expected.keep_lateness = true;
	start = now_ns();
	from = start + ahead;
	arm_all(n, from, NSEC_PER_SEC);
	*arming = now_ns() - start;
	if (start + *arming > from)
		die("arming %s timers took %s, too long: this is not a measurement", commas(n),
		    duration(*arming));
	expected_come(n, from + NSEC_PER_SEC);
}

/* The bench's own time for each delivered timer, which is part of the figures of all facilities */
static double own_part(__u32 n)
{
	__u64 start;
	__u32 id;

	for (id = 0; id < n; id++)
		expected.deadline[id] = 1;
	start = now_ns();
	for (id = 0; id < n; id++)
		deliver(id);
	return (double)(now_ns() - start) / n;
}

static void at_rate(__u32 n)
{
	struct meter meter;
	__u64 arming, own, busy;

	progress("%s timers fall due within a second", commas(n));
	own = own_ns;
	expire_within_a_second(n, &meter, &arming);
	/* the bench's own time is already in @arming */
	own = own_ns - own;
	busy = meter_stop(&meter) + own;
	result("expire", n, 0, busy > arming ? (double)(busy - arming) / n : 0, "ns");
	result("expire_own", n, 0, own_part(n), "ns");
	facility_close();
}

void bench_expire(void)
{
	__u32 most = bearable("expire", options.most), n;

	for (n = 1000; n < most; n *= 10)
		at_rate(n);
	at_rate(most);
}

static int compare(const void *a, const void *b)
{
	__s64 x = *(const __s64 *)a, y = *(const __s64 *)b;

	return (x > y) - (x < y);
}

void bench_lateness(void)
{
	/* the share of timers that are not later, per 100,000 */
	static const struct {
		const char *name;
		unsigned int of_100000;
	} shares[] = {
		{ "late_0", 0 }, { "late_1", 1000 }, { "late_5", 5000 }, { "late_10", 10000 },
		{ "late_20", 20000 }, { "late_30", 30000 }, { "late_40", 40000 },
		{ "late_50", 50000 }, { "late_60", 60000 }, { "late_70", 70000 },
		{ "late_80", 80000 }, { "late_90", 90000 }, { "late_95", 95000 },
		{ "late_99", 99000 }, { "late_99.9", 99900 }, { "late_99.99", 99990 },
		{ "late_100", 100000 },
	};
	__u32 n = bearable("lateness", options.most / 10);
	unsigned int i;
	__u64 arming;

	progress("the lateness of %s timers", commas(n));
	expire_within_a_second(n, NULL, &arming);
	qsort(expected.late, n, sizeof(*expected.late), compare);
	for (i = 0; i < ARRAY_SIZE(shares); i++) {
		__u64 place = (__u64)(n - 1) * shares[i].of_100000 / 100000;

		result(shares[i].name, n, 0, expected.late[place], "ns");
	}
	facility_close();
}
