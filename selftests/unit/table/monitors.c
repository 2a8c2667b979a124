// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "monitors.h"

#include "fail.h"
#include "log.h"
#include "rig.h"

/* The greatest length; all are powers of two */
#define LONGEST	256U

/**
 * struct monitor - a monitor and its expected state
 * @log: its log; NULL: it is not attached
 * @cursor: the module's state
 * @next: the first event in @history that it has neither read nor missed
 * @missed: number of events before that which it missed, not reported yet
 */
struct monitor {
	struct tw_log *log;
	struct tw_cursor cursor;
	u64 next;
	u64 missed;
};

static struct tw_file *file;
static struct source *source;
static unsigned int most;
static bool refused;
static struct monitor monitors[TIMERWHEEL_MONITORS_MAX + 1];
static unsigned int attached;
static bool closed;

/* All events that were delivered while a monitor was attached */
static struct timerwheel_event *history;
static u64 events, room;

/* The expected length of the log */
static u32 charged;

void monitors_init(struct tw_file *f, struct source *s, unsigned int m, bool r)
{
	file = f;
	source = s;
	most = m;
	refused = r;
	attached = 0;
	closed = false;
	events = 0;
	charged = 0;
	memset(monitors, 0, sizeof(monitors));
}

void monitors_event(const struct timerwheel_event *event)
{
	if (!attached)
		return;
	if (events == room) {
		room = room ? 2 * room : 1024;
		history = realloc(history, room * sizeof(*history));
		CHECK(history, "no memory");
	}
	history[events++] = *event;
}

u32 monitors_charged(void)
{
	return charged;
}

static void check_event(const struct timerwheel_event *is, const struct timerwheel_event *should)
{
	CHECK(!memcmp(is, should, sizeof(*is)),
	      "a monitor got key %llx, flags %x, overruns %llu, not key %llx, flags %x, overruns %llu",
	      is->key, is->flags, is->overruns, should->key, should->flags, should->overruns);
}

/* Read once, and consume all or some of it. Returns the number of events consumed. */
static u64 read_one(struct monitor *w)
{
	struct timerwheel_event event[40], missed = { .flags = TIMERWHEEL_EVENT_MISSED };
	unsigned int max = 1 + source_pick(source, 40), i, taken;
	bool ready = tw_log_ready(w->log, &w->cursor);
	u64 behind = events - w->next, left;
	int n;

	n = tw_log_peek(w->log, &w->cursor, event, max);
	if (behind > w->cursor.events) {
		w->missed += behind - w->cursor.events;
		w->next += behind - w->cursor.events;
	}
	left = events - w->next + !!w->missed;
	CHECK(ready == (left || closed), "ready: %d, with %llu left", ready, left);
	if (!left) {
		CHECK(n == (closed ? 0 : -EAGAIN), "a read of nothing returned %d", n);
		return 0;
	}
	CHECK(n > 0 && n == min_t(u64, min(max, 16U), left), "%d events of %llu, with room for %u",
	      n, left, max);
	missed.overruns = w->missed;
	for (i = 0; i < (unsigned int)n; i++)
		check_event(&event[i], w->missed && !i ? &missed :
						  &history[w->next + i - !!w->missed]);
	/* not all if user memory faults */
	taken = source_once_in(source, 4) ? source_pick(source, n + 1) : n;
	tw_log_take(&w->cursor, taken);
	if (taken && w->missed) {
		w->missed = 0;
		w->next += taken - 1;
	} else {
		w->next += taken;
	}
	return taken;
}

u64 monitors_read(void)
{
	unsigned int start = source_pick(source, ARRAY_SIZE(monitors)), i;
	struct monitor *w;

	for (i = 0; i < ARRAY_SIZE(monitors); i++) {
		w = &monitors[(start + i) % ARRAY_SIZE(monitors)];
		if (w->log)
			return read_one(w);
	}
	return 0;
}

/* As in monitor.c. */
static void attach(struct monitor *w, void (*meanwhile)(void))
{
	u32 length = 1U << source_pick(source, __fls(LONGEST) + 1);
	struct tw_log *log = file->events.log;
	int err;

	if (!log)
		log = tw_log_make(NULL);
	if (IS_ERR(log)) {
		CHECK(refused, "creating a log returned %d", PTR_ERR(log));
		return;
	}
	file->events.log = log;
	*w = (struct monitor){ .next = events };
	/* it reads all that is delivered from now on, also while the log grows */
	if (attached < TIMERWHEEL_MONITORS_MAX) {
		w->log = log;
		attached++;
	}
	rig_resched = meanwhile;
	err = tw_log_attach(file, &w->cursor, length);
	rig_resched = NULL;
	if (err) {
		if (w->log) {
			CHECK(refused && length > charged && (err == -ENOMEM || err == -EDQUOT),
			      "a monitor of %u events: %d", length, err);
			attached--;
		} else {
			CHECK(err == -ENOSPC, "one monitor too many: %d", err);
		}
		CHECK(!w->cursor.events, "attaching failed, but the cursor was set");
		w->log = NULL;
		return;
	}
	CHECK(w->log && w->cursor.events == length, "one monitor too many was attached");
	refcount_inc(&log->refs);
	charged = max(charged, length);
}

static void detach(struct monitor *w)
{
	tw_log_detach(w->log);
	tw_log_put(w->log);
	w->log = NULL;
	if (!--attached)
		charged = 0;
}

u64 monitors_one(void (*meanwhile)(void))
{
	struct monitor *w = &monitors[source_pick(source, min(most, 16U) + (most > 16))];

	if (!most)
		return 0;
	if (!w->log)
		attach(w, meanwhile);
	else if (source_once_in(source, 20))
		detach(w);
	else
		return read_one(w);
	return 0;
}

void monitors_end(void)
{
	unsigned int i;

	closed = true;
	tw_log_close(file->events.log);
	tw_log_put(file->events.log);
	file->events.log = NULL;
	for (i = 0; i < ARRAY_SIZE(monitors); i++) {
		if (!monitors[i].log)
			continue;
		while (monitors[i].next != events || monitors[i].missed)
			read_one(&monitors[i]);
		read_one(&monitors[i]);
		detach(&monitors[i]);
	}
}
