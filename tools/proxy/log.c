// SPDX-License-Identifier: GPL-2.0
/* See log.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "log.h"

static bool with_priority = true;
static bool with_debug;

void log_open(bool verbose)
{
	with_priority = !isatty(STDERR_FILENO);
	with_debug = verbose;
}

/* One write for each line: those of several threads must not mix. */
static void say_args(int priority, const char *fmt, va_list args)
{
	char line[512];
	int n = 0;

	if (with_priority)
		n = snprintf(line, sizeof(line), "<%d>", priority);
	n += vsnprintf(line + n, sizeof(line) - n, fmt, args);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	/* Nobody can be told if this fails. */
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

void log_say(int priority, const char *fmt, ...)
{
	va_list args;

	if (priority == LOG_DEBUG && !with_debug)
		return;
	va_start(args, fmt);
	say_args(priority, fmt, args);
	va_end(args);
}

void log_die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say_args(LOG_ERR, fmt, args);
	va_end(args);
	exit(EXIT_FAILURE);
}

void log_usage(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say_args(LOG_ERR, fmt, args);
	va_end(args);
	exit(EXIT_USAGE);
}

bool log_limit(struct log_limit *limit)
{
	uint64_t now = now_ns();
	uint64_t said = atomic_load_explicit(&limit->said, memory_order_relaxed);

	if (said && now - said < NSEC_PER_SEC)
		return false;
	/* Of several threads one says it. */
	return atomic_compare_exchange_strong(&limit->said, &said, now);
}
