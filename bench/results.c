// SPDX-License-Identifier: GPL-2.0
/* Rows of the table, separated by tabs, to stdout; progress to stderr */
#include <stdarg.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#include "bench.h"

/*
 * Output to a serial line is slow and causes an interrupt for every few characters. Wait for it to
 * end, so that it does not disturb the next measurement.
 */
static void settle(void)
{
	fflush(stdout);
	tcdrain(STDOUT_FILENO);
	tcdrain(STDERR_FILENO);
	sleep_until(now_ns() + 50 * NSEC_PER_MSEC);
}

static const char *clock_used(void)
{
	return options.skips_idle ? "instructions" : "monotonic";
}

void result(const char *operation, __u64 pending, __u32 batch, double value, const char *unit)
{
	printf("%s\t%s\t%llu\t%u\t%.1f\t%s\t%s\n", facility->name, operation, pending, batch,
	       value, unit, clock_used());
	settle();
}

void skipped(const char *workload, __u64 pending, const char *fmt, ...)
{
	va_list args;

	printf("%s\t%s\t%llu\t0\t-\t", facility->name, workload, pending);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\t%s\n", clock_used());
	settle();
}

void progress(const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", facility->name);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	settle();
}
