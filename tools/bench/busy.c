// SPDX-License-Identifier: GPL-2.0
/*
 * CPU time spent by anyone: tasks, system calls, interrupts, softirqs, wake-ups. It is
 * the time that passed less the time that the CPUs were idle, which the kernel counts
 * in ns and shows in /proc/timer_list (/proc/stat counts in 10 ms).
 *
 * That file also lists all armed hrtimers, again and again from the start: never read
 * it with many of those pending. So the measured span begins before a peer's timers are
 * armed, and ends when they have fired; the time it took to arm them, when nothing is
 * idle, is taken off.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

__u64 busy_ns(void)
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
	}
	fclose(file);
	if (!cpus)
		die("/proc/timer_list says nothing about idle time");
	return now_ns() * cpus - idle;
}
