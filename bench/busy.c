// SPDX-License-Identifier: GPL-2.0
/*
 * CPU time of the whole system: tasks, system calls, interrupts, softirqs, wake-ups. It is the time
 * that has passed minus the idle time of the CPUs, which the kernel counts in ns and shows in
 * /proc/timer_list (/proc/stat has a resolution of 10 ms).
 *
 * That file also lists all armed hrtimers, in quadratic time: it must not be read while many are
 * pending. So a measured span starts before timers are armed and ends when they have expired or
 * were cancelled. To exclude arming, its time, in which no CPU is idle, is
 * subtracted.
 *
 * The kernel's background work is measured afterwards, over an equally long time, and subtracted.
 *
 * A span inside a workload begins and ends while timers are armed. Its idle time comes from
 * /proc/stat, so the span must be long enough for the resolution of that file.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
		/* idle time while a task waits for io_uring */
		if (sscanf(line, " .iowait_sleeptime : %llu nsecs", &one) == 1)
			idle += one;
	}
	fclose(file);
	if (!cpus)
		die("/proc/timer_list has no idle times");
	return now_ns() * cpus - idle;
}

/* The idle time of all CPUs by /proc/stat, in ns */
static __u64 coarse_idle_ns(void)
{
	FILE *file = fopen("/proc/stat", "r");
	unsigned long long idle, iowait;

	if (!file || fscanf(file, "cpu %*u %*u %*u %llu %llu", &idle, &iowait) != 2)
		die("/proc/stat has no idle times");
	fclose(file);
	return (idle + iowait) * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
}

/*
 * In a day the kernel's periodic work adds up to seconds, more than the measured work: stop
 * as much of it as possible. This is only done in a guest that runs nothing but the bench.
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
		/* khugepaged would collapse the bench's memory at any time, for 3 ms each */
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
		die("other programs disturb the measurement; use bench/run");
	return busy - base - own;
}

double background(__u64 span)
{
	__u64 start = now_ns(), busy = busy_ns();

	sleep_until(start + span);
	return (double)(busy_ns() - busy) / (now_ns() - start);
}

void coarse_start(struct meter *meter)
{
	meter->own = own_ns;
	meter->start = now_ns();
	meter->idle = coarse_idle_ns();
}

double coarse_stop(struct meter *meter, double background)
{
	__u64 span = now_ns() - meter->start, idle = coarse_idle_ns() - meter->idle;
	__u64 own = own_ns - meter->own;

	return span * (1 - background) - idle - own;
}
