// SPDX-License-Identifier: GPL-2.0
/* Many timers fall due within a second: CPU time for each, and how late they come. */
#include <stdlib.h>

#include "bench.h"

/*
 * Deadlines begin so long after the arming does, in ns for each timer: more than the
 * most expensive facility needs for it.
 */
#define TO_ARM_ONE	25000ULL

/* Its CPU time, or with no meter how late each one is. */
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
		die("arming %s timers took %s, some were due before: this is not a measurement",
		    commas(n), duration(*arming));
	expected_come(n, from + NSEC_PER_SEC);
}

/* What the bench itself does with each timer that comes: a part of every facility's figure. */
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
	/* The bench's own time was a part of the arming. */
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
	/* Of 100,000 timers so many are not later. */
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

	progress("how late %s timers come", commas(n));
	expire_within_a_second(n, NULL, &arming);
	qsort(expected.late, n, sizeof(*expected.late), compare);
	for (i = 0; i < ARRAY_SIZE(shares); i++) {
		__u64 place = (__u64)(n - 1) * shares[i].of_100000 / 100000;

		result(shares[i].name, n, 0, expected.late[place], "ns");
	}
	facility_close();
}
