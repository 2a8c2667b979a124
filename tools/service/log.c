// SPDX-License-Identifier: GPL-2.0
/* See log.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

bool log_priorities;
_Atomic uint64_t *log_common;

/*
 * O_NONBLOCK would also apply to other processes that have the same description open. Therefore a
 * pipe or a terminal is opened again. A regular file is not, because it would be written from its
 * beginning.
 */
void log_unblock(int std)
{
	char path[32];
	struct stat stat;
	int fd = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", std);
	if (!fstat(std, &stat) && !S_ISREG(stat.st_mode))
		fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0) {
		dup2(fd, std);
		close(fd);
	}
}

void log_open(void)
{
	int fd;

	/* Fill closed standard descriptors, so that files opened later do not become one. */
	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	close(fd);
	log_priorities = !isatty(STDERR_FILENO);
	log_unblock(STDERR_FILENO);
}

size_t log_write(int fd, const char *text, size_t len)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
	ssize_t n = send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno == ENOTSOCK) {
		/* It may not have been reopened. A pipe with room takes one write of 4096 bytes. */
		pthread_mutex_lock(&lock);
		if (poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLOUT)
			n = write(fd, text, len);
		pthread_mutex_unlock(&lock);
	}
	return n < 0 ? 0 : n;
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
	/* Use one write, so that lines of several threads do not mix. It does not block. */
	log_write(STDERR_FILENO, line, n);
}

void log_options_file(void)
{
	const char *file = getenv("OPTIONS_FILE");

	if (file)
		log_say(LOG_ERR, "set OPTIONS in %s, then run: systemctl restart %s", file,
			progname);
}

bool log_again(_Atomic uint64_t *said)
{
	uint64_t now = now_ns(), last;

	if (log_common)
		said = log_common;
	last = atomic_load_explicit(said, memory_order_relaxed);
	/* Only one of several threads logs it. */
	return (!last || now - last >= NSEC_PER_SEC) &&
	       atomic_compare_exchange_strong(said, &last, now);
}
