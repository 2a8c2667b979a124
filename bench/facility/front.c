// SPDX-License-Identifier: GPL-2.0
/* See front.h. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../bench.h"
#include "front.h"
#include "poller.h"

static const struct queue *queue;
static bool shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int timerfd, poller;
static void (*also)(void);	/* for the other descriptor that is waited for, number 1 */
static __u64 programmed;	/* the time for which the timerfd is armed; NEVER: not armed */

static void lock(void)
{
	if (shared)
		pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
	if (shared)
		pthread_mutex_unlock(&mutex);
}

static void set_timerfd(__u64 ns)
{
	struct itimerspec when = {
		.it_value.tv_sec = ns / NSEC_PER_SEC,
		.it_value.tv_nsec = ns % NSEC_PER_SEC,
	};

	if (timerfd_settime(timerfd, TFD_TIMER_ABSTIME, &when, NULL))
		die("timerfd_settime: %s", strerror(errno));
}

/* Arm the timerfd only for an earlier time. A later time is found when the timerfd has fired. */
static void program(void)
{
	__u64 next = queue->next();

	if (next >= programmed)
		return;
	programmed = next;
	set_timerfd((next + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC * NSEC_PER_MSEC);
}

/*
 * Arm the timerfd after changes if the first deadline among them is earlier than the time it is
 * armed for. Otherwise the next deadline need not be known: it is looked up when the timerfd has
 * fired.
 */
static void program_for(__u64 first)
{
	if (first < programmed)
		program();
}

void front_open(const struct queue *q, __u32 capacity, bool is_shared)
{
	queue = q;
	shared = is_shared;
	programmed = NEVER;
	timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (timerfd < 0)
		die("timerfd: %s", strerror(errno));
	poller = poller_open();
	poller_add(poller, timerfd, 0);
	queue->open(capacity);
}

void front_also(int fd, void (*readable)(void))
{
	also = readable;
	poller_add(poller, fd, 1);
}

void front_close(void)
{
	queue->close();
	close(poller);
	close(timerfd);
}

void front_arm(const struct change *c, __u32 n)
{
	lock();
	program_for(queue->arm(c, n));
	unlock();
}

void front_move(const struct change *c, __u32 n)
{
	lock();
	program_for(queue->move(c, n));
	unlock();
}

void front_refresh(const struct change *c, __u32 n)
{
	lock();
	queue->refresh(c, n);
	unlock();
}

void front_cancel(const struct change *c, __u32 n)
{
	lock();
	queue->cancel(c, n);
	unlock();
}

static void expire(void)
{
	__u32 ids[BATCH], i, n;
	__u64 now = now_ns();

	do {
		lock();
		n = queue->expire(now, ids, BATCH);
		if (n < BATCH) {
			programmed = NEVER;
			program();
		}
		unlock();
		for (i = 0; i < n; i++)
			deliver(ids[i]);
	} while (n == BATCH);
}

void front_run(__u64 until)
{
	struct epoll_event ready;
	__u64 times;

	while (!nothing_left()) {
		if (!poller_wait(poller, &ready, 1, until))
			return;
		if (ready.data.u32)
			also();
		/* only one thread can read it */
		else if (read(timerfd, &times, sizeof(times)) == sizeof(times))
			expire();
	}
	/* wake the other thread; the timerfd is armed again after that */
	if (shared) {
		lock();
		set_timerfd(1);
		programmed = NEVER;
		unlock();
	}
}
