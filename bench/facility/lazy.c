// SPDX-License-Identifier: GPL-2.0
/*
 * A queue in the process whose timers are moved and taken out only when they fire. Arming stores
 * the deadline; cancelling clears a bit. When a timer fires it is inserted again if its
 * deadline has not passed, and otherwise delivered if it is armed.
 *
 * A cancelled timer keeps its deadline and stays in the queue until this has passed: it will be
 * armed again soon, for a later deadline.
 */
#include <stdlib.h>

#include "../bench.h"
#include "front.h"

#define ARMED	1ULL

/* By timer: its deadline, with ARMED in the lowest bit; 0: it is not in the queue */
static __u64 *states;
static const struct queue *inner;

static void lazy_open(__u32 capacity)
{
	states = xcalloc(capacity, sizeof(*states));
	inner->open(capacity);
}

static void lazy_close(void)
{
	inner->close();
	free(states);
}

/* The queue has the timer later, or not at all. */
static __u64 insert(const struct change *c)
{
	return states[c->id] ? inner->move(c, 1) : inner->arm(c, 1);
}

static __u64 lazy_arm(const struct change *c, __u32 n)
{
	__u64 first = NEVER, inserted;
	__u32 i;

	for (i = 0; i < n; i++) {
		__u64 *state = &states[c[i].id], want = c[i].deadline | ARMED;

		/* 0 - 1 is more than any deadline */
		if (__builtin_expect(*state - 1 >= want, 0)) {
			inserted = insert(&c[i]);
			if (inserted < first)
				first = inserted;
		}
		*state = want;
	}
	return first;
}

static void lazy_refresh(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		states[c[i].id] = c[i].deadline | ARMED;
}

static void lazy_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		states[c[i].id] &= ~ARMED;
}

static __u64 lazy_next(void)
{
	return inner->next();
}

/* Keep only the timers to deliver, of the timers that the queue has taken out. */
static __u32 fire(__u64 now, __u32 *ids, __u32 n)
{
	__u32 kept = 0, i;

	for (i = 0; i < n; i++) {
		__u64 *state = &states[ids[i]];
		struct change again = { .id = ids[i], .deadline = *state | ARMED };

		if (again.deadline > now) {
			inner->arm(&again, 1);
			continue;
		}
		if (*state & ARMED)
			ids[kept++] = ids[i];
		*state = 0;
	}
	return kept;
}

static __u32 lazy_expire(__u64 now, __u32 *ids, __u32 most)
{
	__u32 n = 0, wanted, taken;

	do {
		wanted = most - n;
		taken = inner->expire(now, ids + n, wanted);
		n += fire(now, ids + n, taken);
	} while (taken == wanted && n < most);
	return n;
}

static const struct queue lazy = {
	.open = lazy_open,
	.close = lazy_close,
	.arm = lazy_arm,
	.move = lazy_arm,
	.refresh = lazy_refresh,
	.cancel = lazy_cancel,
	.next = lazy_next,
	.expire = lazy_expire,
};

const struct queue *lazily(const struct queue *queue)
{
	inner = queue;
	return &lazy;
}
