// SPDX-License-Identifier: GPL-2.0
/* Cost of a phase of a run: time in its system calls, CPU time, calls. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bulk.h"
#include "util.h"

void phase_begin(struct phase *p)
{
	memset(p, 0, sizeof(*p));
	p->start = now_ns();
	p->cpu_start = cpu_ns();
}

void phase_end(struct phase *p, const char *what)
{
	p->cpu = cpu_ns() - p->cpu_start;
	printf("  %-8s %9s in %6s: %6s ns each in the calls, %6s ns CPU in all, %s calls\n",
	       what, commas(p->ops), duration(now_ns() - p->start),
	       commas(phase_each(p, p->wall)), commas(phase_each(p, p->cpu)), commas(p->calls));
	fflush(stdout);
}

/*
 * The time that all CPUs were not idle, from /proc/stat. It includes interrupts, which no process
 * is charged for. It is suitable for seconds, because its unit is 1/100 s.
 */
__u64 machine_busy_ns(void)
{
	static __u64 first_time;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned long long idle = 0, wait = 0;
	FILE *file = fopen("/proc/stat", "r");
	__u64 now = now_ns();

	if (!first_time)
		first_time = now;
	if (!file)
		return 0;
	if (fscanf(file, "cpu %*u %*u %*u %llu %llu", &idle, &wait) != 2)
		idle = 0;
	fclose(file);
	/* Only differences are meaningful; an origin in the past keeps the values positive. */
	return (now - first_time) * cpus + (1ULL << 62) -
	       (idle + wait) * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
}
