// SPDX-License-Identifier: GPL-2.0
/*
 * Put back timers and events that were taken from a wheel and could not be written: a timer as
 * before, an event as a timer that is due immediately. Timers that the wheel refuses are printed on
 * standard error, in lines that "add --from" accepts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli.h"

static size_t nr_refused, nr_sockets;

static struct timerwheel_add add_of(const struct timerwheel_entry *entry, __u32 flags)
{
	return (struct timerwheel_add) {
		.key = entry->key,
		.value = entry->value,
		.deadline = entry->deadline,
		.period = entry->period,
		.slack = entry->slack,
		.match = flags & TIMERWHEEL_MATCH ? entry->value : 0,
		.flags = TIMERWHEEL_ABS | TIMERWHEEL_SLACK | flags |
			 (entry->flags & TIMERWHEEL_LINGER),
	};
}

static int add_one(struct timerwheel *wheel, struct timerwheel_add *add)
{
	long n;

	do {
		n = timerwheel_add(wheel, add, 1);
	} while (n == -EINTR);
	return n < 0 ? n : add->result;
}

static int arm(struct timerwheel *wheel, const struct timerwheel_entry *entry, __u32 flags)
{
	struct timerwheel_add add = add_of(entry, flags);

	return add_one(wheel, &add);
}

/* Cancel an armed timer, unless another program has armed it for a time since. */
static void cancel(const struct timerwheel_table *table, const struct timerwheel_add *add)
{
	__u64 armed = (TIMERWHEEL_TIME_MAX >> table->bits << table->bits) | add->generation |
		      TIMERWHEEL_TABLE_ARMED;

	__atomic_compare_exchange_n(&table->entries[add->index], &armed,
				    armed - TIMERWHEEL_TABLE_ARMED, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_RELAXED);
}

/* ADD always arms. Arm for never, so that no event is delivered before the cancel. */
static int park(struct timerwheel *wheel, const struct timerwheel_entry *entry)
{
	struct timerwheel_add add = add_of(entry, TIMERWHEEL_EXCL);
	int fd = fcntl(timerwheel_fd(wheel), F_DUPFD_CLOEXEC, 3), result;
	struct timerwheel_table table;
	struct timerwheel *mapped;

	if (fd < 0)
		return -errno;
	result = timerwheel_adopt(&mapped, fd, true);
	if (result) {
		close(fd);
		return result;
	}
	result = add_one(mapped, &add);
	if (result >= 0 && !timerwheel_table(mapped, &table))
		cancel(&table, &add);
	timerwheel_close(mapped);
	return result;
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
		say("these timers are in no wheel now, because they could not be put back (%s); timerwheel add --from accepts these lines:",
		    error_text(error));
	fprintf(stderr, "%llu @%lluns value=%llu %s=%lluns slack=%lluns\n", entry->key,
		entry->deadline, entry->value,
		entry->flags & TIMERWHEEL_LINGER ? "linger" : "period", entry->period,
		entry->slack);
}

static int restore(struct timerwheel *wheel, struct timerwheel_entry *entry)
{
	if (entry->flags & TIMERWHEEL_ENTRY_SOCKET)
		return -EOPNOTSUPP;
	if (entry->result != TIMERWHEEL_WAS_PARKED)
		return arm(wheel, entry, TIMERWHEEL_EXCL);
	entry->deadline = TIMERWHEEL_TIME_MAX;
	return park(wheel, entry);
}

size_t put_back(struct timerwheel *wheel, const struct timerwheel_entry *entries, size_t count)
{
	size_t i, back = 0;

	for (i = 0; i < count; i++) {
		struct timerwheel_entry entry = entries[i];
		int result = restore(wheel, &entry);

		/* EEXIST: another program has armed this key again, which replaces a timer. */
		if (result >= 0 || result == -EEXIST)
			back++;
		else
			refused(&entry, result);
	}
	return back;
}

/* A resident timer is still in the wheel, with its slack and linger. */
static int move_event(struct timerwheel *wheel, const struct timerwheel_entry *entry)
{
	struct timerwheel_move move = {
		.key = entry->key,
		.deadline = entry->deadline,
		.match = entry->value,
		.flags = TIMERWHEEL_ABS | TIMERWHEEL_EXCL | TIMERWHEEL_MATCH,
	};
	long n;

	do {
		n = timerwheel_move(wheel, &move, 1);
	} while (n == -EINTR);
	return n < 0 ? n : move.result;
}

/*
 * A periodic timer is still in the wheel, armed for its next deadline. If it is armed for the
 * deadline of the event, it is due immediately and keeps its phase; overruns are counted again.
 */
static int arm_periodic(struct timerwheel *wheel, struct timerwheel_entry *entry)
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

static int restore_event(struct timerwheel *wheel, struct timerwheel_entry *entry, __u32 flags)
{
	struct timerwheel_info info;
	int result;

	if (flags & TIMERWHEEL_EVENT_PERIODIC)
		return arm_periodic(wheel, entry);
	if (!timerwheel_info(wheel, &info) && info.flags & TIMERWHEEL_INFO_RESIDENT) {
		result = move_event(wheel, entry);
		if (result != -ENOENT)
			return result;
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
		/* After a warning the timer exists; otherwise the connection does not. */
		if (e->flags & (TIMERWHEEL_EVENT_WARNING | TIMERWHEEL_EVENT_ABORTED |
				TIMERWHEEL_EVENT_GONE)) {
			say("the connection of timer %llu: %s", e->key, event_text(e));
			continue;
		}
		result = restore_event(wheel, &entry, e->flags);
		if (result < 0)
			refused(&entry, result);
		else
			back++;
	}
	return back;
}
