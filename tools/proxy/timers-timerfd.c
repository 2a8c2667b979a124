// SPDX-License-Identifier: GPL-2.0
/* For comparison: a timerfd for each timer, in the epoll of its thread. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "conn.h"
#include "log.h"
#include "options.h"
#include "timers.h"

const char *const timers_name = "timerfd";

struct timers {
	STAILQ_HEAD(, timer) due;
	struct loop *loop;
};

struct timers *timers_open(struct loop *loop, int kept)
{
	struct timers *timers = xcalloc(1, sizeof(*timers));

	(void)kept;
	timers->loop = loop;
	STAILQ_INIT(&timers->due);
	return timers;
}

const char *timers_backend(struct timers *timers)
{
	(void)timers;
	return "process";
}

int timers_share(struct timers *timers)
{
	(void)timers;
	return -1;
}

static void timerfd_ready(struct source *source, uint32_t events)
{
	struct timer *timer = (struct timer *)((char *)source -
					       offsetof(struct timer, timerfd.source));
	uint64_t times;

	(void)events;
	/* Cancelled, or set anew, earlier in this turn. */
	if (!timer->armed || read(timer->timerfd.fd, &times, sizeof(times)) < 0)
		return;
	timer->armed = false;
	timer->due = true;
	STAILQ_INSERT_TAIL(&timer->conn->loop->timers->due, timer, queue);
}

static bool make(struct timers *timers, struct timer *timer)
{
	struct epoll_event event = {
		.events = EPOLLIN, .data.ptr = &timer->timerfd.source,
	};

	timer->timerfd.source.ready = timerfd_ready;
	timer->timerfd.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (timer->timerfd.fd < 0)
		return false;
	return !epoll_ctl(timers->loop->epoll, EPOLL_CTL_ADD, timer->timerfd.fd, &event);
}

static void set(struct timer *timer)
{
	struct itimerspec when = {
		.it_value.tv_sec = timer->deadline / NSEC_PER_SEC,
		.it_value.tv_nsec = timer->deadline % NSEC_PER_SEC,
	};

	if (timerfd_settime(timer->timerfd.fd, TFD_TIMER_ABSTIME, &when, NULL))
		log_die("timerfd_settime: %s", strerror(errno));
}

void timers_arm(struct timers *timers, struct timer *timer)
{
	if (!timer->timerfd.fd && !make(timers, timer))
		log_die("no timerfd for a connection: %s; raise LimitNOFILE=", strerror(errno));
	set(timer);
	timer->armed = true;
}

void timers_refresh(struct timers *timers, struct timer *timer)
{
	(void)timers;
	set(timer);
}

static void cancel(struct timers *timers, struct timer *timer)
{
	if (timer->due)
		STAILQ_REMOVE(&timers->due, timer, timer, queue);
	timer->due = false;
	timer->armed = false;
	if (timer->timerfd.fd > 0)
		close(timer->timerfd.fd);
}

void timers_cancel(struct timers *timers, struct conn *conn)
{
	cancel(timers, &conn->timer);
	cancel(timers, &conn->life);
}

void timers_flush(struct timers *timers)
{
	(void)timers;
}

int timers_wait(struct timers *timers, struct epoll_event *events, int max, int timeout)
{
	int n = epoll_wait(timers->loop->epoll, events, max, timeout);

	return n < 0 ? 0 : n;
}

void timers_expire(struct timers *timers)
{
	struct timer *timer;

	while ((timer = STAILQ_FIRST(&timers->due))) {
		STAILQ_REMOVE_HEAD(&timers->due, queue);
		timer->due = false;
		conn_expired(timer->conn, timer);
	}
}

bool timers_stats(struct timers *timers, struct timerwheel_stats *stats)
{
	(void)timers;
	(void)stats;
	return false;
}

/* Nothing is ever kept: see timers_share(). */
void timers_each(struct timers *timers, struct timer *(*see)(void *arg, const struct sight *sight),
		 void *arg)
{
	(void)timers;
	(void)see;
	(void)arg;
}
