// SPDX-License-Identifier: GPL-2.0
/* See poller.h. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "../bench.h"
#include "poller.h"

int poller_open(void)
{
	int poller = epoll_create1(EPOLL_CLOEXEC);

	if (poller < 0)
		die("epoll: %s", strerror(errno));
	return poller;
}

void poller_add(int poller, int fd, __u32 number)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = number };

	if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl of descriptor %d: %s", fd, strerror(errno));
}

int poller_wait(int poller, struct epoll_event *events, int most, __u64 until)
{
	struct timespec left = { };
	__u64 now;
	int n;

	if (until != NEVER) {
		now = now_ns();
		if (now < until) {
			left.tv_sec = (until - now) / NSEC_PER_SEC;
			left.tv_nsec = (until - now) % NSEC_PER_SEC;
		}
	}
	do {
		n = epoll_pwait2(poller, events, most, until == NEVER ? NULL : &left, NULL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		die("epoll_pwait2: %s", strerror(errno));
	return n;
}
