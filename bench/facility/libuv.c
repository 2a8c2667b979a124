// SPDX-License-Identifier: GPL-2.0
/* libuv: a heap of pointers; times are in milliseconds */
#include "absent.h"

#ifdef HAVE_LIBUV
#include <stdlib.h>
#include <uv.h>

#include "../bench.h"

static uv_loop_t loop;
static uv_timer_t *timers, alarm_timer;

static void timer_due(uv_timer_t *timer)
{
	deliver(timer - timers);
	if (nothing_left())
		uv_stop(&loop);
}

static void libuv_open(__u32 room, __u64 timeout)
{
	__u32 i;

	(void)timeout;
	if (uv_loop_init(&loop))
		die("no loop of libuv");
	timers = xcalloc(room, sizeof(*timers));
	for (i = 0; i < room; i++)
		uv_timer_init(&loop, &timers[i]);
	uv_timer_init(&loop, &alarm_timer);
}

static void close_one(uv_handle_t *handle, void *arg)
{
	(void)arg;
	uv_close(handle, NULL);
}

static void libuv_close(void)
{
	uv_walk(&loop, close_one, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	if (uv_loop_close(&loop))
		die("the loop of libuv is still busy: this is not a measurement");
	free(timers);
}

/* libuv's timeouts are relative to the time of the iteration. */
static __u64 left_until(__u64 deadline)
{
	__u64 ms = (deadline + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC, now = uv_now(&loop);

	return ms > now ? ms - now : 0;
}

static void libuv_start(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		uv_timer_start(&timers[c[i].id], timer_due, left_until(c[i].deadline), 0);
}

static void libuv_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		uv_timer_stop(&timers[c[i].id]);
}

static void time_is_up(uv_timer_t *timer)
{
	*(bool *)timer->data = true;
	uv_stop(&loop);
}

static void libuv_run(__u64 until)
{
	bool up = false;

	if (until != NEVER) {
		alarm_timer.data = &up;
		uv_timer_start(&alarm_timer, time_is_up, left_until(until), 0);
	}
	while (!nothing_left() && !up)
		uv_run(&loop, UV_RUN_DEFAULT);
	uv_timer_stop(&alarm_timer);
}

const struct facility facility_libuv = {
	.name = "libuv",
	.open = libuv_open,
	.close = libuv_close,
	.arm = libuv_start,
	.move = libuv_start,
	.refresh = libuv_start,
	.cancel = libuv_cancel,
	.run = libuv_run,
};
#else
FACILITY_ABSENT(facility_libuv, "libuv", "libuv1-dev");
#endif
