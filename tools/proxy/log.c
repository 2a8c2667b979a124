// SPDX-License-Identifier: GPL-2.0
/* See log.h. */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "log.h"

bool log_priorities;

bool log_write(int fd, const char *text, size_t len)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

	/* A pipe or a socket that can be written takes 4096 bytes; a file takes all. */
	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLOUT &&
	       write(fd, text, len) == (ssize_t)len;
}

void log_say(int priority, const char *fmt, ...)
{
	char line[512];
	int n = log_priorities ? sprintf(line, "<%d>", priority) : 0;
	va_list args;

	va_start(args, fmt);
	n += vsnprintf(line + n, sizeof(line) - n, fmt, args);
	va_end(args);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	/* One write: lines of several threads must not mix. Where nobody reads, nobody waits. */
	log_write(STDERR_FILENO, line, n);
}

bool log_again(_Atomic uint64_t *said)
{
	uint64_t now = now_ns(), last = atomic_load_explicit(said, memory_order_relaxed);

	/* Of several threads one says it. */
	return (!last || now - last >= NSEC_PER_SEC) &&
	       atomic_compare_exchange_strong(said, &last, now);
}
