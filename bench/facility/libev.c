// SPDX-License-Identifier: GPL-2.0
/*
 * libev: a heap with four children per node. Pending timers are moved with ev_timer_again(), as its
 * manual recommends. So they are periodic, and are stopped when they are due.
 */
#include "absent.h"

#ifdef HAVE_LIBEV
#include <ev.h>
#include <stdlib.h>

#include "../bench.h"

static struct ev_loop *loop;
static ev_timer *timers, alarm_timer;
static __u64 now;	/* about libev's monotonic time of this iteration, which is not exported */

/* Read the clock before libev does, so that no timer is early. */
static void update_now(void)
{
	now = now_ns();
	ev_now_update(loop);
}

static void timer_due(struct ev_loop *l, ev_timer *timer, int events)
{
	(void)events;
	ev_timer_stop(l, timer);
	deliver(timer - timers);
}

static void time_is_up(struct ev_loop *l, ev_timer *timer, int events)
{
	(void)l;
	(void)events;
	*(bool *)timer->data = true;
}

static void libev_open(__u32 room, __u64 timeout)
{
	__u32 i;

	(void)timeout;
	loop = ev_loop_new(EVFLAG_AUTO);
	if (!loop)
		die("no loop of libev");
	timers = xcalloc(room, sizeof(*timers));
	for (i = 0; i < room; i++)
		ev_init(&timers[i], timer_due);
	update_now();
}

static void libev_close(void)
{
	ev_loop_destroy(loop);
	free(timers);
}

static double left_until(__u64 deadline)
{
	/* 0 would stop the timer */
	return deadline > now ? (deadline - now) / 1e9 : 1 / 1e9;
}

static void libev_again(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		ev_timer *timer = &timers[c[i].id];

		timer->repeat = left_until(c[i].deadline);
		ev_timer_again(loop, timer);
	}
}

static void libev_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		ev_timer_stop(loop, &timers[c[i].id]);
}

static void libev_run(__u64 until)
{
	bool up = false;

	if (until != NEVER) {
		update_now();
		ev_timer_init(&alarm_timer, time_is_up, left_until(until), 0.);
		alarm_timer.data = &up;
		ev_timer_start(loop, &alarm_timer);
	}
	while (!nothing_left() && !up)
		ev_run(loop, EVRUN_ONCE);
	if (until != NEVER)
		ev_timer_stop(loop, &alarm_timer);
	update_now();
}

const struct facility facility_libev = {
	.name = "libev",
	.open = libev_open,
	.close = libev_close,
	.arm = libev_again,
	.move = libev_again,
	.refresh = libev_again,
	.cancel = libev_cancel,
	.run = libev_run,
};
#else
FACILITY_ABSENT(facility_libev, "libev", "libev-dev");
#endif
