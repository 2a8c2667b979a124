// SPDX-License-Identifier: GPL-2.0
/*
 * Expiry batches of the device, which STATS calls passes: the kernel's work for a timer, the
 * longest batch in large bursts, and how late other timers are meanwhile.
 */
#include <unistd.h>

#include "bench.h"
#include "wheel.h"

#define EVENTS	1024
#define MINUTE	(60 * NSEC_PER_SEC)
#define DAY	(24 * HOUR)

static struct timerwheel_event events[EVENTS];
static int wheel;
static __u32 timers;
static __u64 time_to_arm;	/* twice the time that arming all timers takes */

static void must(bool right, const char *what)
{
	if (!right)
		die("%s had a wrong result: this is not a measurement", what);
}

/* Arm @n timers with random absolute deadlines in [from, from + range). */
static void arm(__u64 n, __u64 from, __u64 range)
{
	struct timerwheel_add elems[BATCH] = { };
	__u64 done, i, count;

	for (done = 0; done < n; done += count) {
		count = n - done < BATCH ? n - done : BATCH;
		for (i = 0; i < count; i++) {
			elems[i].key = mix64(done + i);
			elems[i].deadline = from + random_below(&seed, range);
			elems[i].flags = TIMERWHEEL_ABS;
		}
		wheel_add(wheel, elems, count);
		for (i = 0; i < count; i++)
			must(!elems[i].result, "ADD");
	}
}

static void measure_time_to_arm(void)
{
	__u64 start = now_ns();

	wheel = wheel_open();
	arm(timers, start + HOUR, NSEC_PER_SEC);
	time_to_arm = 2 * (now_ns() - start);
	close(wheel);
}

/* All work of the kernel for a timer from its arming until it is due, without the ADD */
static void life(const char *row, __u64 length)
{
	__u64 start, arming, until;
	struct timerwheel_stats stats;
	struct meter meter;

	progress("%s timers fall due in %s", commas(timers), duration(length));
	wheel = wheel_open();
	meter_start(&meter);
	start = now_ns();
	until = start + length + NSEC_PER_SEC;
	arm(timers, start + length, NSEC_PER_SEC);
	arming = now_ns() - start;
	sleep_until(until + 5 * NSEC_PER_SEC);
	wheel_stats(wheel, &stats);
	must(stats.due == timers, "expiry");
	result(row, timers, 0, (double)(meter_stop(&meter) - arming) / timers, "ns");
	close(wheel);
}

static void firings(void)
{
	struct timerwheel_stats stats;

	wheel = wheel_open();
	arm(1, now_ns() + MINUTE, 1);
	sleep_until(now_ns() + MINUTE + NSEC_PER_SEC);
	wheel_stats(wheel, &stats);
	must(stats.due == 1, "expiry");
	result("firings_60s", 1, 0, stats.firings, "interrupts");
	close(wheel);
}

/*
 * Bystanders: timers that are due while a burst is handled, one in each millisecond of [from, to),
 * in the same wheel and in another one. Their value distinguishes them from other timers.
 */
#define BYSTANDER	0x8000000000000000ULL

static void arm_bystanders(int fd, __u64 from, __u64 to)
{
	for (; from < to; from += NSEC_PER_MSEC) {
		struct timerwheel_add elem = {
			.key = BYSTANDER | from,
			.value = BYSTANDER,
			.deadline = from,
			.flags = TIMERWHEEL_ABS,
		};

		wheel_add(fd, &elem, 1);
		must(!elem.result, "ADD of a bystander");
	}
}

/* Read all events. Returns the greatest lateness of bystanders. */
static __u64 read_bystanders(int fd)
{
	__u64 worst = 0, late;
	__u32 i, n;

	while ((n = wheel_read(fd, events, EVENTS))) {
		for (i = 0; i < n; i++) {
			late = events[i].fired - events[i].deadline;
			if (events[i].value == BYSTANDER && late > worst)
				worst = late;
		}
	}
	return worst;
}

static void report_batches(const char *longest, const char *largest)
{
	struct timerwheel_stats stats;

	wheel_stats(wheel, &stats);
	result(longest, timers, 0, stats.pass_max_ns, "ns");
	result(largest, timers, 0, stats.pass_max_timers, "timers");
}

/* All timers are due in the same tick, and no reader takes events in the meantime. */
static void one_tick(void)
{
	__u64 from = now_ns() + 2 * time_to_arm + NSEC_PER_SEC;
	int i, wheels[2];

	/* at the start of a tick, so that no lateness comes from rounding up to ticks */
	from = from / NSEC_PER_MSEC * NSEC_PER_MSEC;
	progress("%s timers fall due in one tick, with bystanders", commas(timers));
	wheel = wheel_open();
	wheels[0] = wheel;
	wheels[1] = wheel_open();
	arm(timers, from, 1);
	for (i = 0; i < 2; i++) {
		/* none in the tick of the burst, where they would be a part of it */
		arm_bystanders(wheels[i], from - 50 * NSEC_PER_MSEC, from - NSEC_PER_MSEC);
		arm_bystanders(wheels[i], from + NSEC_PER_MSEC, from + NSEC_PER_SEC);
	}
	sleep_until(from + 5 * NSEC_PER_SEC);
	report_batches("tick_pass", "tick_pass_timers");
	result("tick_same_wheel", timers, 0, read_bystanders(wheels[0]), "ns");
	result("tick_other_wheel", timers, 0, read_bystanders(wheels[1]), "ns");
	close(wheels[0]);
	close(wheels[1]);
}

/*
 * All timers are in one upper slot, with deadlines spread over its length, so that all of them
 * cascade shortly before. With 256 slots of 1 ms the slots of the third level are 65.536 s long.
 */
static void one_slot(void)
{
	const __u64 slot = 65536 * NSEC_PER_MSEC;
	__u64 from = (now_ns() / slot + 3) * slot;
	struct timerwheel_stats stats;
	int i, wheels[2];

	progress("%s timers cascade from one slot, with bystanders", commas(timers));
	wheel = wheel_open();
	wheels[0] = wheel;
	wheels[1] = wheel_open();
	arm(timers, from, slot);
	for (i = 0; i < 2; i++)
		arm_bystanders(wheels[i], from - 5 * NSEC_PER_SEC, from + NSEC_PER_SEC);
	sleep_until(from + 2 * NSEC_PER_SEC);
	wheel_stats(wheel, &stats);
	must(stats.cascades >= timers / 2, "cascading");
	report_batches("cascade_pass", "cascade_pass_timers");
	result("cascade_same_wheel", timers, 0, read_bystanders(wheels[0]), "ns");
	result("cascade_other_wheel", timers, 0, read_bystanders(wheels[1]), "ns");
	close(wheels[0]);
	close(wheels[1]);
}

void bench_passes(void)
{
	timers = options.most / BATCH * BATCH;
	measure_time_to_arm();
	firings();
	one_tick();
	one_slot();
	if (!options.skips_idle)
		return;
	life("life_60s", MINUTE);
	life("life_1h", HOUR);
	if (options.longest_life >= DAY)
		life("life_24h", DAY);
}
