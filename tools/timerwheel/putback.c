// SPDX-License-Identifier: GPL-2.0
/*
 * What was taken from a wheel and could not be written out goes back: a timer as it was, an event
 * as a timer that is due at once. What the wheel refuses is printed on the standard error, in lines
 * that "add --from" takes.
 */
#include <errno.h>
#include <stdio.h>

#include "cli.h"

static size_t nr_refused, nr_sockets;

static int arm(struct timerwheel *wheel, const struct timerwheel_entry *entry, __u32 flags)
{
	struct timerwheel_add add = {
		.key = entry->key,
		.value = entry->value,
		.deadline = entry->deadline,
		.period = entry->period,
		.slack = entry->slack,
		.match = flags & TIMERWHEEL_MATCH ? entry->value : 0,
		.flags = TIMERWHEEL_ABS | TIMERWHEEL_SLACK | flags,
	};
	long n;

	do {
		n = timerwheel_add(wheel, &add, 1);
	} while (n == -EINTR);
	return n < 0 ? n : add.result;
}

static void refused(const struct timerwheel_entry *entry, int error)
{
	if (entry->flags & TIMERWHEEL_ENTRY_SOCKET) {
		if (!nr_sockets++)
			say("timers that watched connections cannot be put back; their keys:");
		fprintf(stderr, "%llu\n", entry->key);
		return;
	}
	if (!nr_refused++)
		say("what follows is in no wheel now, because it could not be put back (%s); timerwheel add --from takes these lines:",
		    error_text(error));
	fprintf(stderr, "%llu @%lluns value=%llu period=%lluns slack=%lluns\n", entry->key,
		entry->deadline, entry->value, entry->period, entry->slack);
}

size_t put_back(struct timerwheel *wheel, const struct timerwheel_entry *entries, size_t count)
{
	size_t i, back = 0;

	for (i = 0; i < count; i++) {
		int result = entries[i].flags & TIMERWHEEL_ENTRY_SOCKET ? -EOPNOTSUPP :
			     arm(wheel, &entries[i], TIMERWHEEL_EXCL);

		/* With EEXIST somebody has armed this key again, which replaces a timer. */
		if (result >= 0 || result == -EEXIST)
			back++;
		else
			refused(&entries[i], result);
	}
	return back;
}

/*
 * A periodic timer is in the wheel already, armed for its next deadline. Armed with the deadline of
 * the event it is due at once and keeps its rhythm; overruns are counted again.
 */
static int arm_event(struct timerwheel *wheel, struct timerwheel_entry *entry)
{
	struct timerwheel_entry now = { .key = entry->key };

	if (timerwheel_get(wheel, &now, 1) == 1 && now.result >= 0 &&
	    now.value == entry->value && now.period) {
		entry->period = now.period;
		entry->slack = now.slack;
		return arm(wheel, entry, TIMERWHEEL_MATCH);
	}
	return arm(wheel, entry, TIMERWHEEL_EXCL);
}

size_t put_back_events(struct timerwheel *wheel, const struct timerwheel_event *events,
		       size_t count)
{
	size_t i, back = 0;

	for (i = 0; i < count; i++) {
		const struct timerwheel_event *e = &events[i];
		struct timerwheel_entry entry = {
			.key = e->key,
			.value = e->value,
			.deadline = e->deadline,
		};
		int result;

		if (e->flags & TIMERWHEEL_EVENT_CLOCK_SET) {
			say("the clock was set");
			continue;
		}
		/* After a warning the timer is there; otherwise the connection is not. */
		if (e->flags & (TIMERWHEEL_EVENT_WARNING | TIMERWHEEL_EVENT_ABORTED |
				TIMERWHEEL_EVENT_GONE)) {
			say("the connection of timer %llu: %s", e->key, event_text(e));
			continue;
		}
		result = e->flags & TIMERWHEEL_EVENT_PERIODIC ? arm_event(wheel, &entry) :
								arm(wheel, &entry, TIMERWHEEL_EXCL);
		if (result < 0)
			refused(&entry, result);
		else
			back++;
	}
	return back;
}
