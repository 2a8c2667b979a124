// SPDX-License-Identifier: GPL-2.0
/* See log.h. */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "log.h"

static bool with_priority = true;

void log_open(void)
{
	with_priority = !isatty(STDERR_FILENO);
}

const char *log_prefix(int priority)
{
	static const char *const prefixes[] = {
		"<0>", "<1>", "<2>", "<3>", "<4>", "<5>", "<6>", "<7>",
	};

	return with_priority ? prefixes[priority] : "";
}

bool log_write(int fd, const char *text, size_t len)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

	/* A pipe or a socket that can be written takes 4096 bytes; a file takes all. */
	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLOUT &&
	       write(fd, text, len) == (ssize_t)len;
}

/* One write for each line: those of several threads must not mix. */
static void say_args(int priority, const char *fmt, va_list args)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "%s", log_prefix(priority));

	n += vsnprintf(line + n, sizeof(line) - n, fmt, args);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	/* Where nobody reads, nobody waits for that. */
	log_write(STDERR_FILENO, line, n);
}

void log_say(int priority, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say_args(priority, fmt, args);
	va_end(args);
}

void log_exit(int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say_args(LOG_ERR, fmt, args);
	va_end(args);
	exit(status);
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
