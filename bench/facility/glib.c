// SPDX-License-Identifier: GPL-2.0
/*
 * GLib: a source for each timer. In each iteration its main context visits all sources, so the cost
 * of an iteration is proportional to the number of timers.
 */
#include "absent.h"

#ifdef HAVE_GLIB
#include <glib.h>
#include <stdlib.h>

#include "../bench.h"

struct timer {
	GSource source;
	__u32 id;
};

static GMainContext *context;
static GSource **timers;
static GSource *alarm_source;
static __u32 capacity;

static gboolean timer_due(GSource *source, GSourceFunc function, gpointer data)
{
	__u32 id = ((struct timer *)source)->id;

	(void)function;
	(void)data;
	g_source_unref(timers[id]);
	timers[id] = NULL;
	deliver(id);
	return G_SOURCE_REMOVE;
}

static GSourceFuncs timer_functions = { .dispatch = timer_due };

static gboolean time_is_up(GSource *source, GSourceFunc function, gpointer data)
{
	(void)function;
	(void)data;
	g_source_set_ready_time(source, -1);
	return G_SOURCE_CONTINUE;
}

static GSourceFuncs alarm_functions = { .dispatch = time_is_up };

static void glib_open(__u32 room, __u64 timeout)
{
	(void)timeout;
	capacity = room;
	context = g_main_context_new();
	timers = xcalloc(capacity, sizeof(*timers));
	alarm_source = g_source_new(&alarm_functions, sizeof(GSource));
	g_source_attach(alarm_source, context);
}

static void end(GSource *source)
{
	g_source_destroy(source);
	g_source_unref(source);
}

static void glib_close(void)
{
	__u32 i;

	for (i = 0; i < capacity; i++) {
		if (timers[i])
			end(timers[i]);
	}
	end(alarm_source);
	g_main_context_unref(context);
	free(timers);
}

/* GLib's times are in us. */
static gint64 time_of(__u64 deadline)
{
	return (deadline + NSEC_PER_USEC - 1) / NSEC_PER_USEC;
}

static void glib_arm(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		GSource *source = g_source_new(&timer_functions, sizeof(struct timer));

		((struct timer *)source)->id = c[i].id;
		g_source_set_ready_time(source, time_of(c[i].deadline));
		g_source_attach(source, context);
		timers[c[i].id] = source;
	}
}

static void glib_move(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		g_source_set_ready_time(timers[c[i].id], time_of(c[i].deadline));
}

static void glib_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		end(timers[c[i].id]);
		timers[c[i].id] = NULL;
	}
}

static void glib_run(__u64 until)
{
	if (until != NEVER)
		g_source_set_ready_time(alarm_source, time_of(until));
	while (!nothing_left() && (until == NEVER || now_ns() < until))
		g_main_context_iteration(context, TRUE);
	if (until != NEVER)
		g_source_set_ready_time(alarm_source, -1);
}

const struct facility facility_glib = {
	.name = "glib",
	.most = 10000,
	.step_most = 1000,
	.why = "each turn of its loop looks at all timers",
	.open = glib_open,
	.close = glib_close,
	.arm = glib_arm,
	.move = glib_move,
	.refresh = glib_move,
	.cancel = glib_cancel,
	.run = glib_run,
};
#else
FACILITY_ABSENT(facility_glib, "glib", "libglib2.0-dev");
#endif
