/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that sleep in a call on a descriptor, and checks whether they sleep. */
#ifndef TW_SLEEPER_H
#define TW_SLEEPER_H

#include "tw_test.h"
#include <pthread.h>
#include <stdatomic.h>

#define QUIET_MS	200	/* long enough for a wrong wake-up to be seen */

/* A thread that makes one blocking call */
struct sleeper {
	pthread_t thread;
	int fd;
	int max;		/* events to ask for; 0: poll() instead of read() */
	atomic_int tid;
	atomic_bool done;
	int ret;		/* what the call returned, or -errno */
	struct timerwheel_event ev[16];
};

static inline void *sleeper_main(void *arg)
{
	struct sleeper *s = arg;

	atomic_store(&s->tid, gettid());
	s->ret = s->max ? dev_read(s->fd, s->ev, s->max) : dev_poll(s->fd, -1);
	atomic_store(&s->done, true);
	return NULL;
}

/* The text of a file of this thread in /proc; false: it cannot be read */
static inline bool thread_file(pid_t pid, pid_t tid, const char *name, char *buf, size_t size)
{
	char path[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	len = read(fd, buf, size - 1);
	close(fd);
	buf[len > 0 ? len : 0] = 0;
	return len > 0;
}

/*
 * Is this thread asleep? Its state also says so while the thread checks for the last time whether
 * it has to sleep. It still runs then, which the file "syscall" shows.
 */
static inline bool asleep(pid_t pid, pid_t tid)
{
	char buf[256], *state;

	if (!thread_file(pid, tid, "stat", buf, sizeof(buf)))
		return false;
	state = strrchr(buf, ')');
	if (!state || strncmp(state, ") S", 3))
		return false;
	return !thread_file(pid, tid, "syscall", buf, sizeof(buf)) || strncmp(buf, "running", 7);
}

/* Wait until it sleeps (or is done) */
static inline int sleeper_sleeps(struct sleeper *s)
{
	int i;

	for (i = 0; i < LONG_MS; i++) {
		pid_t tid = atomic_load(&s->tid);

		if (atomic_load(&s->done) || (tid && asleep(getpid(), tid)))
			return 0;
		tw_sleep(MSEC);
	}
	return -ETIMEDOUT;
}

/* Start it and wait until it sleeps (or is done); @call gets the sleeper */
static inline int sleeper_call(struct sleeper *s, int fd, int max, void *(*call)(void *))
{
	memset(s, 0, sizeof(*s));
	s->fd = fd;
	s->max = max;
	if (pthread_create(&s->thread, NULL, call, s))
		return -EAGAIN;
	return sleeper_sleeps(s);
}

/* The same for a read, or poll() */
static inline int sleeper_start(struct sleeper *s, int fd, int max)
{
	return sleeper_call(s, fd, max, sleeper_main);
}

/* Did the call return within @ms? */
static inline bool sleeper_done(struct sleeper *s, int ms)
{
	__u64 end = tw_now(CLOCK_MONOTONIC) + ms * MSEC;

	while (!atomic_load(&s->done)) {
		if (tw_now(CLOCK_MONOTONIC) > end)
			return false;
		tw_sleep(MSEC);
	}
	return true;
}

#endif /* TW_SLEEPER_H */
