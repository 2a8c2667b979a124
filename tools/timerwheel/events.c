// SPDX-License-Identifier: GPL-2.0
/* Code that wait and monitor share: rows of events, and the limits. */
#include <limits.h>

#include "cli.h"

static const struct column event_columns[] = {
	{ "KEY", "key", SHOW_NUMBER, 10 },
	{ "VALUE", "value", SHOW_NUMBER, 10 },
	{ "LATE", "late_ns", SHOW_SPAN, 6 },
	{ "OVERRUNS", "overruns", SHOW_NUMBER, 0 },
	{ "EVENT", "event", SHOW_TEXT, 0 },
	{ NULL, "deadline_ns", SHOW_NUMBER, 0 },
	{ NULL, "fired_ns", SHOW_NUMBER, 0 },
	{ NULL, "periodic", SHOW_BOOL, 0 },
};

#define FOR_PEOPLE	5

void events_begin(void)
{
	table_begin(event_columns,
		    opt.given[OPT_JSON] ? ARRAY_SIZE(event_columns) : FOR_PEOPLE);
}

/* A monitor has lost events. */
static void missed(__u64 events)
{
	table_flush();
	json_open(NULL, '{');
	out_number(NULL, "missed", SHOW_NUMBER, events);
	json_close();
	out_line("(%s events missed: use a larger --buffer)", commas(events));
	page_item();
}

/* The clock was set, in a wheel with TIMERWHEEL_SETUP_CLOCK_SET. */
static void clock_set(const struct timerwheel_event *event)
{
	__u64 sets = event->overruns + 1;

	table_flush();
	json_open(NULL, '{');
	out_number(NULL, "clock_set_ns", SHOW_NUMBER, event->fired);
	out_number(NULL, "sets", SHOW_NUMBER, sets);
	json_close();
	if (sets == 1)
		out_line("(the clock was set)");
	else
		out_line("(the clock was set %s times)", commas(sets));
	page_item();
}

const char *event_text(const struct timerwheel_event *event)
{
	if (event->flags & TIMERWHEEL_EVENT_WARNING)
		return "warning";
	if (event->flags & TIMERWHEEL_EVENT_ABORTED)
		return "aborted";
	return event->flags & TIMERWHEEL_EVENT_GONE ? "gone" : "expired";
}

size_t events_rows(const struct timerwheel_event *events, size_t count)
{
	size_t i, timers = 0;

	for (i = 0; i < count; i++) {
		const struct timerwheel_event *e = &events[i];
		const union value values[] = {
			{ .number = e->key },
			{ .number = e->value },
			{ .span = e->fired - e->deadline },
			{ .number = e->overruns },
			{ .text = event_text(e) },
			{ .number = e->deadline },
			{ .number = e->fired },
			{ .yes = e->flags & TIMERWHEEL_EVENT_PERIODIC },
		};

		if (e->flags & TIMERWHEEL_EVENT_MISSED) {
			missed(e->overruns);
		} else if (e->flags & TIMERWHEEL_EVENT_CLOCK_SET) {
			clock_set(e);
		} else {
			table_row(values);
			timers++;
		}
	}
	table_flush();
	return timers;
}

void events_limit(struct events_limit *limit, __u64 count)
{
	if (opt.given[OPT_COUNT])
		count = opt.number[OPT_COUNT];
	limit->left = count ? count : ~0ULL;
	limit->forever = !opt.given[OPT_TIMEOUT];
	limit->end = now_ns() + opt.number[OPT_TIMEOUT];
}

int events_timeout(const struct events_limit *limit)
{
	__u64 now, ms;

	if (limit->forever)
		return -1;
	now = now_ns();
	if (now >= limit->end)
		return 0;
	ms = (limit->end - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
	return ms < INT_MAX ? ms : INT_MAX;
}
