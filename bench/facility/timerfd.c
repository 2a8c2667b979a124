// SPDX-License-Identifier: GPL-2.0
/*
 * A timerfd for each timer, all in one epoll set. They are created when first armed and kept when
 * cancelled. Deadlines are exact, or rounded up to 1 ms, so that timers of the same millisecond
 * share an interrupt.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../bench.h"
#include "poller.h"

#define EVENTS	1024		/* of one epoll_wait() */

static int *fds;
static __u32 capacity;
static int poller;
static __u64 granularity;

static void open_with(__u32 room, __u64 rounded_to)
{
	if (raise_nofile(room + 64) < room + 64)
		die("%u timerfds are more than this process may have: be root, or --most N", room);
	raise_watches(room + 64);
	granularity = rounded_to;
	capacity = room;
	fds = xcalloc(capacity, sizeof(*fds));
	poller = poller_open();
}

static void exact_open(__u32 room, __u64 timeout)
{
	(void)timeout;
	open_with(room, 1);
}

static void rounded_open(__u32 room, __u64 timeout)
{
	(void)timeout;
	open_with(room, NSEC_PER_MSEC);
}

static void timerfd_close(void)
{
	__u32 i;

	/* the epoll set first: otherwise each close would remove the timerfd from it */
	close(poller);
	for (i = 0; i < capacity; i++) {
		if (fds[i])
			close(fds[i]);
	}
	free(fds);
}

static void set(__u32 id, __u64 deadline)
{
	struct itimerspec when = {
		.it_value.tv_sec = deadline / NSEC_PER_SEC,
		.it_value.tv_nsec = deadline % NSEC_PER_SEC,
	};

	if (timerfd_settime(fds[id], TFD_TIMER_ABSTIME, &when, NULL))
		die("timerfd_settime: %s", strerror(errno));
}

static __u64 rounded(__u64 deadline)
{
	return (deadline + granularity - 1) / granularity * granularity;
}

static void timerfd_move(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		set(c[i].id, rounded(c[i].deadline));
}

static void create(__u32 id)
{
	fds[id] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (fds[id] < 0)
		die("timerfd number %u: %s: try fewer (--most)", id, strerror(errno));
	poller_add(poller, fds[id], id);
}

static void timerfd_arm(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		__u32 id = c[i].id;

		if (!fds[id])
			create(id);
		set(id, rounded(c[i].deadline));
	}
}

/* All are created at once, to be inherited by the other process. */
static void leases_open(__u32 room, __u64 timeout)
{
	__u32 id;

	(void)timeout;
	open_with(room, NSEC_PER_MSEC);
	for (id = 0; id < room; id++)
		create(id);
}

static void timerfd_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		set(c[i].id, 0);
}

static void timerfd_run(__u64 until)
{
	struct epoll_event ready[EVENTS];
	__u64 times;
	int i, n;

	while (!nothing_left()) {
		n = poller_wait(poller, ready, ARRAY_SIZE(ready), until);
		if (!n)
			return;
		for (i = 0; i < n; i++) {
			if (read(fds[ready[i].data.u32], &times, sizeof(times)) == sizeof(times))
				deliver(ready[i].data.u32);
		}
	}
}

const struct facility facility_timerfd = {
	.name = "timerfd",
	.open = exact_open,
	.close = timerfd_close,
	.arm = timerfd_arm,
	.move = timerfd_move,
	.refresh = timerfd_move,
	.cancel = timerfd_cancel,
	.run = timerfd_run,
};

const struct facility facility_timerfd_1ms = {
	.name = "timerfd-1ms",
	.expiry_only = true,
	.open = rounded_open,
	.close = timerfd_close,
	.arm = timerfd_arm,
	.move = timerfd_move,
	.refresh = timerfd_move,
	.cancel = timerfd_cancel,
	.run = timerfd_run,
};

const struct facility facility_timerfd_leases = {
	.name = "timerfd-leases",
	.most = 100000,
	.why = "1,000 heartbeats take more than a millisecond",
	.only = "leases",
	.processes = true,
	.open = leases_open,
	.close = timerfd_close,
	.arm = timerfd_arm,
	.move = timerfd_move,
	.refresh = timerfd_move,
	.cancel = timerfd_cancel,
	.run = timerfd_run,
};
