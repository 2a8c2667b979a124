// SPDX-License-Identifier: GPL-2.0
/*
 * The fastest kind of queue: a wheel of connection objects, each of which holds its
 * deadline. Arming, refreshing and cancelling are stores into an object that the program has in its
 * cache anyway. The object moves in the wheel only when its slot comes up, or if its deadline
 * becomes earlier.
 *
 * A timer that is not armed has the deadline 0. There are four levels of 256 slots, as in
 * ../facility/wheel.c.
 */
#include "../bench.h"
#include "peers.h"

#define TICK	NSEC_PER_MSEC
#define BITS	8
#define SLOTS	256U
#define LEVELS	4
#define AHEAD	8	/* elements that are prefetched */

struct connection {
	__u64 deadline;		/* 0: not armed */
	__u64 visit;		/* the tick in which its slot comes up; 0: not in the wheel */
	struct connection *next, **link;
	char rest[32];		/* a cache line, like a timer of the others */
};

static struct connection *connections;
static struct connection *slot[LEVELS][SLOTS];
static __u64 current;	/* the last tick that was processed */

static void connections_open(__u32 capacity, __u64 timeout)
{
	(void)timeout;
	connections = xcalloc(capacity, sizeof(*connections));
	current = now_ns() / TICK;
}

static void unlink_one(struct connection *c)
{
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
}

static void insert(struct connection *c, __u64 first)
{
	__u64 tick = (c->deadline + TICK - 1) / TICK, ahead;
	struct connection **head;
	unsigned int level = 0;

	if (tick < first)
		tick = first;
	c->visit = tick;
	ahead = tick - current;
	while (level < LEVELS - 1 && ahead >> (BITS * (level + 1)))
		level++;
	head = &slot[level][(tick >> (BITS * level)) % SLOTS];
	c->next = *head;
	c->link = head;
	if (c->next)
		c->next->link = &c->next;
	*head = c;
}

static inline void set(struct connection *c, __u64 deadline)
{
	c->deadline = deadline;
	if (__builtin_expect(c->visit && deadline > (c->visit - 1) * TICK, 1))
		return;
	if (c->visit)
		unlink_one(c);
	insert(c, current + 1);
}

static void connections_arm(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		set(&connections[c[i].id], c[i].deadline);
}

static void connections_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		connections[c[i].id].deadline = 0;
}

/* A receive loop knows its next connections. */
static void ahead(const struct change *c, __u32 i, __u32 n)
{
	if (i + AHEAD < n)
		__builtin_prefetch(&connections[c[i + AHEAD].id], 1);
}

static void ahead_arm(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		ahead(c, i, n);
		set(&connections[c[i].id], c[i].deadline);
	}
}

static void ahead_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		ahead(c, i, n);
		connections[c[i].id].deadline = 0;
	}
}

static void visit(struct connection *c, __u64 now)
{
	if (c->deadline > now) {
		insert(c, current + 1);
		return;
	}
	c->visit = 0;
	if (!c->deadline)
		return;
	c->deadline = 0;
	deliver(c - connections);
}

/* Take the list of a slot, and visit its connections, or move them to a lower level. */
static void take(struct connection **head, __u64 now, bool cascade)
{
	struct connection *c = *head, *next;

	*head = NULL;
	for (; c; c = next) {
		next = c->next;
		if (cascade && c->deadline)
			insert(c, current);
		else
			visit(c, now);
	}
}

static void connections_run(__u64 until)
{
	unsigned int level;

	while (current < until / TICK) {
		current++;
		for (level = LEVELS - 1; level; level--)
			if (!(current & ((1ULL << (BITS * level)) - 1)))
				take(&slot[level][(current >> (BITS * level)) % SLOTS],
				     current * TICK, true);
		take(&slot[0][current % SLOTS], current * TICK, false);
	}
}

const struct facility native_connections = {
	.name = "connections",
	.open = connections_open,
	.arm = connections_arm,
	.move = connections_arm,
	.refresh = connections_arm,
	.cancel = connections_cancel,
	.run = connections_run,
};

const struct facility native_connections_prefetch = {
	.name = "connections-prefetch",
	.open = connections_open,
	.arm = ahead_arm,
	.move = ahead_arm,
	.refresh = ahead_arm,
	.cancel = ahead_cancel,
	.run = connections_run,
};
