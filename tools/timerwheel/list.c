// SPDX-License-Identifier: GPL-2.0
/* list, and code for all commands that print timers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const struct column timer_columns[] = {
	{ "KEY", "key", SHOW_NUMBER, 0 },
	{ "VALUE", "value", SHOW_NUMBER, 0 },
	{ "STATE", "state", SHOW_TEXT, 7 },
	{ "LEFT", "left_ns", SHOW_SPAN, 6 },
	{ "PERIOD", "period_ns", SHOW_PERIOD, 0 },
	{ "SLACK", "slack_ns", SHOW_PERIOD, 0 },
	{ NULL, "deadline_ns", SHOW_NUMBER, 0 },
	{ NULL, "socket", SHOW_BOOL, 0 },
};

/*
 * Only JSON has the deadline, which is a time of the wheel's clock, and whether a timer watches a
 * connection, because the state shows it in text.
 */
#define FOR_PEOPLE	(ARRAY_SIZE(timer_columns) - 2)

void timers_begin(const char *array)
{
	json_open(array, '[');
	table_begin(timer_columns,
		    opt.given[OPT_JSON] ? ARRAY_SIZE(timer_columns) : FOR_PEOPLE);
}

static const char *state(const struct timerwheel_entry *entry)
{
	bool socket = entry->flags & TIMERWHEEL_ENTRY_SOCKET;

	switch (entry->result) {
	case TIMERWHEEL_WAS_DUE:
		return "due";
	case TIMERWHEEL_WAS_PARKED:
		return socket ? "aborting" : "parked";
	default:
		if (entry->flags & TIMERWHEEL_ENTRY_GRACE)
			return "grace";
		return socket ? "watching" : "pending";
	}
}

void timers_row(const struct timerwheel_entry *entry)
{
	const union value values[] = {
		{ .number = entry->key },
		{ .number = entry->value },
		{ .text = state(entry) },
		{ .span = entry->left },
		{ .number = entry->period },
		{ .number = entry->slack },
		{ .number = entry->deadline },
		{ .yes = entry->flags & TIMERWHEEL_ENTRY_SOCKET },
	};

	table_row(values);
}

void timers_end(void)
{
	table_flush();
	json_close();
}

struct timerwheel_entry *timers_all(struct timerwheel *wheel, size_t *count)
{
	struct timerwheel_entry *entries = NULL;
	size_t room = 0, used = 0;
	uint64_t cursor = 0;
	long n;

	do {
		if (room - used < 4096) {
			room = room ? 2 * room : 8192;
			entries = realloc(entries, room * sizeof(*entries));
			if (!entries)
				die("no memory for a list of %zu timers", room);
		}
		n = timerwheel_list(wheel, entries + used, 4096, &cursor);
		if (n < 0 && n != -EINTR)
			die("LIST: %s", error_text(n));
		if (n > 0)
			used += n;
	} while (n);
	*count = used;
	return entries;
}

static int by_left(const void *a, const void *b)
{
	const struct timerwheel_entry *x = a, *y = b;

	return (x->deadline > y->deadline) - (x->deadline < y->deadline);
}

static int by_key(const void *a, const void *b)
{
	const struct timerwheel_entry *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static int by_value(const void *a, const void *b)
{
	const struct timerwheel_entry *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

static int (*order)(const void *a, const void *b) = by_left;
/* The keys on the command line; none: all timers. */
static __u64 *keys;
static size_t nr_keys;
static int status;

static void choose_order(void)
{
	const char *name = opt.text[OPT_SORT];

	if (!name || !strcmp(name, "left"))
		return;
	if (!strcmp(name, "key"))
		order = by_key;
	else if (!strcmp(name, "value"))
		order = by_value;
	else if (!strcmp(name, "none"))
		order = NULL;
	else
		usage("--sort needs left, key, value or none, not '%s'", name);
}

static struct timerwheel_entry *timers_by_key(struct timerwheel *wheel, size_t *count)
{
	struct timerwheel_entry *entries = xcalloc(nr_keys, sizeof(*entries));
	size_t i, found = 0;
	long n;

	for (i = 0; i < nr_keys; i++)
		entries[i].key = keys[i];
	n = timerwheel_get(wheel, entries, nr_keys);
	if (n < (long)nr_keys)
		die("GET: %s", error_text(n < 0 ? n : -EINTR));
	status = STATUS_DONE;
	for (i = 0; i < nr_keys; i++) {
		if (entries[i].result < 0) {
			say("list %llu: no timer has this key", entries[i].key);
			status = STATUS_FAILED;
		} else {
			entries[found++] = entries[i];
		}
	}
	*count = found;
	return entries;
}

static void show_list(struct timerwheel *wheel)
{
	struct timerwheel_entry *entries;
	size_t count, all, i;

	entries = nr_keys ? timers_by_key(wheel, &all) : timers_all(wheel, &all);
	if (order)
		qsort(entries, all, sizeof(*entries), order);
	count = all;
	if (opt.given[OPT_LIMIT] && opt.number[OPT_LIMIT] < count)
		count = opt.number[OPT_LIMIT];
	json_open(NULL, '{');
	timers_begin("timers");
	for (i = 0; i < count; i++)
		timers_row(&entries[i]);
	timers_end();
	json_close();
	if (count < all && !opt.given[OPT_NO_HEADER])
		out_line("... and %s more", commas(all - count));
	free(entries);
}

int command_list(int argc, char **argv)
{
	struct timerwheel *wheel;
	int i;

	choose_order();
	nr_keys = argc;
	keys = xcalloc(argc + 1, sizeof(*keys));
	for (i = 0; i < argc; i++) {
		if (!parse_number(argv[i], &keys[i]))
			usage("'%s' is not a key: 0 to 2^64 - 1, decimal or 0x and hexadecimal",
			      argv[i]);
	}
	wheel = target_open();
	watch(wheel, show_list);
	timerwheel_close(wheel);
	free(keys);
	return status;
}
