// SPDX-License-Identifier: GPL-2.0
/*
 * The expected result of each timer. The program records its requests here, and compares the
 * kernel's events with them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bulk.h"
#include "util.h"

void ledger_init(struct ledger *l, __u32 timers)
{
	memset(l, 0, sizeof(*l));
	l->timers = timers;
	l->deadlines = xcalloc(timers, sizeof(*l->deadlines));
	l->states = xcalloc(timers, sizeof(*l->states));
	/* Touch the memory now, so that later only the kernel's memory is measured. */
	memset(l->deadlines, 0xff, timers * sizeof(*l->deadlines));
	memset(l->states, TIMER_REMOVED, timers);
	memset(l->states, TIMER_NONE, timers);
}

void ledger_free(struct ledger *l)
{
	free(l->deadlines);
	free(l->states);
	l->deadlines = NULL;
	l->states = NULL;
}

void ledger_arm(struct ledger *l, __u32 i, __u64 deadline)
{
	l->deadlines[i] = deadline;
	l->states[i] = TIMER_ARMED;
	l->armed++;
}

void ledger_move(struct ledger *l, __u32 i, __u64 deadline)
{
	l->deadlines[i] = deadline;
	l->moved++;
}

void ledger_remove(struct ledger *l, __u32 i)
{
	l->states[i] = TIMER_REMOVED;
	l->removed++;
}

void ledger_deliver(struct ledger *l, __u32 i, __u64 deadline, __u64 fired)
{
	if (i >= l->timers || l->states[i] == TIMER_NONE) {
		l->unknown++;
		return;
	}
	if (l->states[i] == TIMER_DELIVERED) {
		l->twice++;
		return;
	}
	if (l->states[i] == TIMER_REMOVED) {
		l->after_remove++;
		return;
	}
	if (deadline != l->deadlines[i])
		l->old_deadline++;
	if (fired < l->deadlines[i])
		l->early++;
	l->states[i] = TIMER_DELIVERED;
	l->delivered++;
}

__u64 ledger_expected(const struct ledger *l)
{
	return l->armed - l->removed - l->delivered;
}

__u64 ledger_passed(const struct ledger *l, __u64 now)
{
	__u64 passed = 0;
	__u32 i;

	for (i = 0; i < l->timers; i++)
		passed += l->states[i] == TIMER_ARMED && l->deadlines[i] < now;
	return passed;
}

static bool none(__u64 n, const char *who, const char *what)
{
	if (n)
		say("%s: WRONG: %s timers %s", who, commas(n), what);
	return !n;
}

bool ledger_close(struct ledger *l, const char *who)
{
	bool right = true;
	__u32 i;

	for (i = 0; i < l->timers; i++)
		l->lost += l->states[i] == TIMER_ARMED;
	right &= none(l->early, who, "fired before their deadline");
	right &= none(l->lost, who, "never came out");
	right &= none(l->twice, who, "came out twice");
	right &= none(l->after_remove, who, "came out after they had been removed");
	right &= none(l->old_deadline, who, "came out with a deadline that is not their last");
	right &= none(l->unknown, who, "came out that nobody had armed");
	right &= none(l->refused, who, "gave an answer that does not fit their state");
	return right;
}
