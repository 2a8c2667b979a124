// SPDX-License-Identifier: GPL-2.0
/*
 * For comparison: libevent's heap. The thread's epoll is one event of libevent's loop, which
 * is how a foreign loop is driven by it, and costs a system call in each turn.
 */
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "log.h"
#include "options.h"
#include "timers.h"

const char *const timers_name = "libevent";

struct timers {
	STAILQ_HEAD(, timer) due;
	struct loop *loop;
	struct event_base *base;
};

/* That there is something is seen by epoll_wait(). */
static void epoll_ready(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

struct timers *timers_open(struct loop *loop, int kept)
{
	struct event_config *config = event_config_new();
	struct timers *timers = xcalloc(1, sizeof(*timers));
	struct event *event;

	(void)kept;
	timers->loop = loop;
	STAILQ_INIT(&timers->due);
	/* One thread: no locks. Milliseconds would be late by up to one. */
	if (config && !event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK |
					     EVENT_BASE_FLAG_PRECISE_TIMER))
		timers->base = event_base_new_with_config(config);
	if (!timers->base)
		log_die("libevent cannot be initialized");
	event_config_free(config);
	event = event_new(timers->base, loop->epoll, EV_READ | EV_PERSIST, epoll_ready, NULL);
	if (!event || event_add(event, NULL))
		log_die("libevent cannot watch an epoll");
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

static void fired(evutil_socket_t fd, short what, void *arg)
{
	struct timer *timer = arg;

	(void)fd;
	(void)what;
	timer->armed = false;
	timer->due = true;
	STAILQ_INSERT_TAIL(&timer->conn->loop->timers->due, timer, queue);
}

static void set(struct timer *timer)
{
	uint64_t now = now_ns(), left = timer->deadline > now ? timer->deadline - now : 0;
	/* Never early: rounded up. */
	uint64_t us = (left + NSEC_PER_USEC - 1) / NSEC_PER_USEC;
	struct timeval tv = { .tv_sec = us / 1000000, .tv_usec = us % 1000000 };

	if (event_add(timer->event, &tv))
		log_die("libevent cannot add a timer");
}

void timers_arm(struct timers *timers, struct timer *timer)
{
	if (!timer->event)
		timer->event = evtimer_new(timers->base, fired, timer);
	if (!timer->event)
		log_die("no memory for a timer");
	set(timer);
	timer->armed = true;
}

void timers_refresh(struct timers *timers, struct timer *timer)
{
	(void)timers;
	/* Due in this turn: conn_expired() will see the new deadline. */
	if (timer->armed)
		set(timer);
}

static void cancel(struct timers *timers, struct timer *timer)
{
	if (timer->due)
		STAILQ_REMOVE(&timers->due, timer, timer, queue);
	timer->due = false;
	timer->armed = false;
	if (timer->event)
		event_free(timer->event);
	timer->event = NULL;
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
	struct timeval tv = { .tv_sec = timeout / 1000, .tv_usec = timeout % 1000 * 1000 };
	int n;

	if (timeout > 0)
		event_base_loopexit(timers->base, &tv);
	/* Without ONCE it goes on while the epoll has something, which nobody takes in there. */
	event_base_loop(timers->base, EVLOOP_ONCE | (timeout ? 0 : EVLOOP_NONBLOCK));
	n = epoll_wait(timers->loop->epoll, events, max, 0);
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
