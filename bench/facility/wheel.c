// SPDX-License-Identifier: GPL-2.0
/*
 * A hierarchical timing wheel in the process: four levels of 256 slots with a tick of 1 ms. A slot
 * is a circular list of timer numbers with a head. A bitmap of slots that are not empty shows
 * the next slot, so that the wheel needs no CPU time while no timer is due.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../bench.h"
#include "front.h"

#define TICK	NSEC_PER_MSEC
#define BITS	8
#define SLOTS	256U
#define LEVELS	4
#define HEADS	(LEVELS * SLOTS + 1)	/* the last head is for due timers */
#define WORDS	(SLOTS / 64)

static_assert(SLOTS >> BITS == 1, "SLOTS must be 2^BITS");

struct node {
	__u64 deadline;
	__u32 next, prev;
};

static struct node *nodes;	/* the heads, then the timers */
static __u64 used[LEVELS][WORDS];
static __u64 current;		/* the last tick that was processed */
static __u32 count;

static const __u32 due = HEADS - 1;

static void make_empty(__u32 head)
{
	nodes[head].next = head;
	nodes[head].prev = head;
}

static void wheel_init(__u32 capacity)
{
	__u32 i;

	nodes = xcalloc(HEADS + capacity, sizeof(*nodes));
	for (i = 0; i < HEADS; i++)
		make_empty(i);
	memset(used, 0, sizeof(used));
	count = 0;
}

static void wheel_close(void)
{
	free(nodes);
}

static __u64 tick_of(__u64 deadline)
{
	return (deadline + TICK - 1) / TICK;
}

static void mark(__u32 head, bool is_used)
{
	__u64 bit = 1ULL << (head % 64);

	if (is_used)
		used[head / SLOTS][head % SLOTS / 64] |= bit;
	else
		used[head / SLOTS][head % SLOTS / 64] &= ~bit;
}

static void link_to(__u32 head, __u32 node)
{
	__u32 last = nodes[head].prev;

	nodes[node].next = head;
	nodes[node].prev = last;
	nodes[last].next = node;
	nodes[head].prev = node;
}

static void unlink_node(__u32 node)
{
	__u32 next = nodes[node].next, prev = nodes[node].prev;

	nodes[next].prev = prev;
	nodes[prev].next = next;
	if (next == prev && next < due)
		mark(next, false);
}

/* Insert into the slot of the deadline, or of tick @first if that is later. */
static void insert(__u32 node, __u64 first)
{
	__u64 tick = tick_of(nodes[node].deadline), ahead;
	unsigned int level = 0;
	__u32 head;

	if (tick < first)
		tick = first;
	ahead = tick - current;
	while (level < LEVELS - 1 && ahead >> (BITS * (level + 1)))
		level++;
	/* beyond the last level: into its last slot, to be inserted again from there */
	if (ahead >> (BITS * LEVELS))
		tick = current + (1ULL << (BITS * LEVELS)) - 1;
	head = level * SLOTS + ((tick >> (BITS * level)) & (SLOTS - 1));
	link_to(head, node);
	mark(head, true);
}

static __u64 wheel_arm(const struct change *c, __u32 n)
{
	__u64 first = NEVER;
	__u32 i;

	if (!count)
		current = now_ns() / TICK;
	for (i = 0; i < n; i++) {
		if (c[i].deadline < first)
			first = c[i].deadline;
		nodes[HEADS + c[i].id].deadline = c[i].deadline;
		insert(HEADS + c[i].id, current + 1);
	}
	count += n;
	return first;
}

static __u64 wheel_move(const struct change *c, __u32 n)
{
	__u64 first = NEVER;
	__u32 i;

	for (i = 0; i < n; i++) {
		if (c[i].deadline < first)
			first = c[i].deadline;
		__u32 node = HEADS + c[i].id;

		unlink_node(node);
		nodes[node].deadline = c[i].deadline;
		insert(node, current + 1);
	}
	return first;
}

static void wheel_refresh(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		nodes[HEADS + c[i].id].deadline = c[i].deadline;
}

static void wheel_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		unlink_node(HEADS + c[i].id);
	count -= n;
}

/* The distance from @slot to the next slot that is not empty, 1 to SLOTS; 0: there is none */
static unsigned int distance(const __u64 *bits, unsigned int slot)
{
	unsigned int from = (slot + 1) % SLOTS, i;

	for (i = 0; i <= WORDS; i++) {
		unsigned int word = (from / 64 + i) % WORDS;
		__u64 there = bits[word];

		if (!i)
			there &= ~0ULL << (from % 64);
		if (there)
			return (word * 64 + __builtin_ctzll(there) - slot - 1) % SLOTS + 1;
	}
	return 0;
}

/* The next tick in which timers fall due or cascade */
static __u64 next_tick(void)
{
	unsigned int level, slots;
	__u64 next = NEVER, tick;

	for (level = 0; level < LEVELS; level++) {
		tick = current >> (BITS * level);
		slots = distance(used[level], tick & (SLOTS - 1));
		if (!slots)
			continue;
		tick = (tick + slots) << (BITS * level);
		if (tick < next)
			next = tick;
	}
	return next;
}

static __u64 wheel_next(void)
{
	__u64 tick;

	if (nodes[due].next != due)
		return current * TICK;
	tick = next_tick();
	return tick == NEVER ? NEVER : tick * TICK;
}

/* Append all timers of a slot to the list of due timers. */
static void splice_due(__u32 head)
{
	__u32 first = nodes[head].next, last = nodes[head].prev, before = nodes[due].prev;

	if (first == head)
		return;
	nodes[before].next = first;
	nodes[first].prev = before;
	nodes[last].next = due;
	nodes[due].prev = last;
	make_empty(head);
	mark(head, false);
}

static void cascade(__u32 head)
{
	__u32 node = nodes[head].next, next;

	make_empty(head);
	mark(head, false);
	for (; node != head; node = next) {
		next = nodes[node].next;
		insert(node, current);
	}
}

static void work_on(__u64 tick)
{
	unsigned int level;

	current = tick;
	for (level = LEVELS - 1; level; level--) {
		if (!(tick & ((1ULL << (BITS * level)) - 1)))
			cascade(level * SLOTS + ((tick >> (BITS * level)) & (SLOTS - 1)));
	}
	splice_due(tick & (SLOTS - 1));
}

static __u32 wheel_expire(__u64 now, __u32 *ids, __u32 most)
{
	__u64 tick, last = now / TICK;
	__u32 n = 0;

	for (;;) {
		__u32 node = nodes[due].next;

		if (node == due) {
			tick = next_tick();
			if (tick > last)
				break;
			work_on(tick);
			continue;
		}
		if (n == most)
			return n;
		unlink_node(node);
		if (tick_of(nodes[node].deadline) > current) {
			insert(node, current + 1);
			continue;
		}
		count--;
		ids[n++] = node - HEADS;
	}
	if (current < last)
		current = last;
	return n;
}

const struct queue wheel_queue = {
	.open = wheel_init,
	.close = wheel_close,
	.arm = wheel_arm,
	.move = wheel_move,
	.refresh = wheel_refresh,
	.cancel = wheel_cancel,
	.next = wheel_next,
	.expire = wheel_expire,
};

static void alone_open(__u32 capacity, __u64 timeout)
{
	(void)timeout;
	front_open(&wheel_queue, capacity, false);
}

static void shared_open(__u32 capacity, __u64 timeout)
{
	(void)timeout;
	front_open(&wheel_queue, capacity, true);
}

static void lazy_open(__u32 capacity, __u64 timeout)
{
	(void)timeout;
	front_open(lazily(&wheel_queue), capacity, false);
}

static void lazy_shared_open(__u32 capacity, __u64 timeout)
{
	(void)timeout;
	front_open(lazily(&wheel_queue), capacity, true);
}

const struct facility facility_wheel = {
	.name = "wheel",
	.open = alone_open,
	FRONT_FUNCTIONS,
};

const struct facility facility_wheel_shared = {
	.name = "wheel-shared",
	.threads = 2,
	.batches = true,
	.open = shared_open,
	FRONT_FUNCTIONS,
};

const struct facility facility_wheel_lazy = {
	.name = "wheel-lazy",
	.only = "requests",
	.open = lazy_open,
	FRONT_FUNCTIONS,
};

const struct facility facility_wheel_lazy_shared = {
	.name = "wheel-lazy-shared",
	.only = "requests",
	.threads = 2,
	.batches = true,
	.open = lazy_shared_open,
	FRONT_FUNCTIONS,
};
