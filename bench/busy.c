// SPDX-License-Identifier: GPL-2.0
/*
 * CPU time spent by anyone: tasks, system calls, interrupts, softirqs, wake-ups. It is
 * the time that passed less the time that the CPUs were idle, which the kernel counts
 * in ns and shows in /proc/timer_list (/proc/stat counts in 10 ms).
 *
 * That file also lists all armed hrtimers, again and again from the start: never read
 * it with many of those pending. So a measured span begins before timers are armed, and
 * ends when they have expired or were cancelled; the time it took to arm them, when nothing is
 * idle, is taken off where it does not belong to what is measured.
 *
 * What the kernel does anyway in as long a time is measured after that, and taken off.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

__u64 own_ns;

static __u64 busy_ns(void)
{
	FILE *file = fopen("/proc/timer_list", "r");
	unsigned long long idle = 0, one;
	unsigned int cpus = 0;
	char line[256];

	if (!file)
		die("/proc/timer_list: %s (this needs root)", strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, " .idle_sleeptime : %llu nsecs", &one) == 1) {
			idle += one;
			cpus++;
		}
		/* Idle as well, while a task waits for io_uring. */
		if (sscanf(line, " .iowait_sleeptime : %llu nsecs", &one) == 1)
			idle += one;
	}
	fclose(file);
	if (!cpus)
		die("/proc/timer_list says nothing about idle time");
	return now_ns() * cpus - idle;
}

/*
 * In a day the work that the kernel does now and then, with nothing to do, adds up to seconds, more
 * than is measured: stop what can be stopped. In a guest that is there for this alone.
 */
void quieten_kernel(void)
{
	static const struct {
		const char *path;
		const char *value;
	} settings[] = {
		{ "/proc/sys/vm/stat_interval", "1000000" },
		{ "/proc/sys/vm/compaction_proactiveness", "0" },
		{ "/proc/sys/vm/dirty_writeback_centisecs", "0" },
		{ "/proc/sys/kernel/watchdog", "0" },
		/* Else huge pages are made of a program's memory, at any time: 3 ms for each. */
		{ "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs",
		  "4000000000" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(settings); i++) {
		FILE *file = fopen(settings[i].path, "w");

		if (!file)
			continue;
		fputs(settings[i].value, file);
		fclose(file);
	}
}

void meter_start(struct meter *meter)
{
	meter->own = own_ns;
	meter->start = now_ns();
	meter->busy = busy_ns();
}

__u64 meter_stop(struct meter *meter)
{
	__u64 busy = busy_ns() - meter->busy, span = now_ns() - meter->start;
	__u64 own = own_ns - meter->own, base;

	base = busy_ns();
	sleep_until(now_ns() + span);
	base = busy_ns() - base;
	if (busy < base + own)
		die("other programs disturb this: it is not a measurement; use bench/run");
	return busy - base - own;
}
