// SPDX-License-Identifier: GPL-2.0
/*
 * libevent: its min-heap, and its common timeouts, a queue of all timers with the same timeout.
 *
 * event_add() reads the clock, except in a callback, where it uses the time of the iteration. So
 * operations are measured in a callback, where programs do them.
 */
#include "absent.h"

#ifdef HAVE_LIBEVENT
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <string.h>

#include "../bench.h"

static struct event_base *base;
static struct event *timers;
static const struct timeval *common;	/* the common timeout; NULL: timeouts are different */
static __u64 now;			/* about libevent's time of this iteration */

static void timer_due(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	deliver((struct event *)arg - timers);
}

static struct timeval timeval_of(__u64 ns)
{
	struct timeval tv = {
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_usec = ns % NSEC_PER_SEC / NSEC_PER_USEC,
	};

	return tv;
}

static void heap_open(__u32 room, __u64 timeout)
{
	__u32 i;

	(void)timeout;
	/* libev has functions with the same names: check that these are libevent's */
	if (strcmp(event_get_version(), LIBEVENT_VERSION))
		die("libevent is %s, not %s: was the bench linked with it?",
		    event_get_version(), LIBEVENT_VERSION);
	base = event_base_new();
	if (!base)
		die("no event base of libevent");
	common = NULL;
	now = now_ns();
	timers = xcalloc(room, sizeof(*timers));
	for (i = 0; i < room; i++)
		evtimer_assign(&timers[i], base, timer_due, &timers[i]);
}

static void common_open(__u32 room, __u64 timeout)
{
	struct timeval tv = timeval_of(timeout);

	heap_open(room, timeout);
	common = event_base_init_common_timeout(base, &tv);
	if (!common)
		die("libevent has no common timeout of %s", duration(timeout));
}

static void libevent_close(void)
{
	event_base_free(base);
	free(timers);
}

static void libevent_add(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		struct timeval tv = timeval_of(c[i].deadline > now ? c[i].deadline - now : 0);

		if (event_add(&timers[c[i].id], &tv))
			die("event_add of libevent failed");
	}
}

static void common_add(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		if (event_add(&timers[c[i].id], common))
			die("event_add of libevent failed");
	}
}

static void libevent_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		event_del(&timers[c[i].id]);
}

static void time_is_up(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
}

static void libevent_run(__u64 until)
{
	struct event alarm_event;
	bool up = false;

	evtimer_assign(&alarm_event, base, time_is_up, &up);
	if (until != NEVER) {
		__u64 start = now_ns();
		struct timeval tv = timeval_of(until > start ? until - start : 0);

		event_add(&alarm_event, &tv);
	}
	while (!nothing_left() && !up)
		event_base_loop(base, EVLOOP_ONCE);
	event_del(&alarm_event);
}

struct call {
	void (*function)(void *arg);
	void *arg;
};

static void do_call(evutil_socket_t fd, short what, void *arg)
{
	struct call *call = arg;

	(void)fd;
	(void)what;
	now = now_ns();
	call->function(call->arg);
}

static void libevent_inside(void (*function)(void *arg), void *arg)
{
	struct call call = { function, arg };
	struct event doorbell;

	event_assign(&doorbell, base, -1, 0, do_call, &call);
	event_active(&doorbell, EV_READ, 1);
	event_base_loop(base, EVLOOP_NONBLOCK);
}

const struct facility facility_libevent = {
	.name = "libevent",
	.open = heap_open,
	.close = libevent_close,
	.arm = libevent_add,
	.move = libevent_add,
	.refresh = libevent_add,
	.cancel = libevent_cancel,
	.run = libevent_run,
	.inside = libevent_inside,
};

const struct facility facility_libevent_common = {
	.name = "libevent-common",
	.one_timeout = true,
	.open = common_open,
	.close = libevent_close,
	.arm = common_add,
	.move = common_add,
	.refresh = common_add,
	.cancel = libevent_cancel,
	.run = libevent_run,
	.inside = libevent_inside,
};
#else
FACILITY_ABSENT(facility_libevent, "libevent", "libevent-dev");
FACILITY_ABSENT(facility_libevent_common, "libevent-common", "libevent-dev");
#endif
