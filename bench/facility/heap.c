// SPDX-License-Identifier: GPL-2.0
/* A binary heap in the process, with the keys in the heap itself */
#include <stdlib.h>

#include "../bench.h"
#include "front.h"

struct node {
	__u64 key;
	__u32 id;
};

static struct node *heap;
static __u32 count;
static __u32 *places;		/* place of timer i in the heap */
static __u64 *deadlines;	/* deadline of timer i: its key, or later */

static void heap_open(__u32 capacity)
{
	heap = xcalloc(capacity, sizeof(*heap));
	places = xcalloc(capacity, sizeof(*places));
	deadlines = xcalloc(capacity, sizeof(*deadlines));
	count = 0;
}

static void heap_close(void)
{
	free(heap);
	free(places);
	free(deadlines);
}

static void put(__u32 place, struct node node)
{
	heap[place] = node;
	places[node.id] = place;
}

static void up(__u32 place, struct node node)
{
	while (place) {
		__u32 parent = (place - 1) / 2;

		if (heap[parent].key <= node.key)
			break;
		put(place, heap[parent]);
		place = parent;
	}
	put(place, node);
}

static void down(__u32 place, struct node node)
{
	__u32 child;

	while ((child = 2 * place + 1) < count) {
		if (child + 1 < count && heap[child + 1].key < heap[child].key)
			child++;
		if (node.key <= heap[child].key)
			break;
		put(place, heap[child]);
		place = child;
	}
	put(place, node);
}

static void replace(__u32 place, struct node node)
{
	if (node.key < heap[place].key)
		up(place, node);
	else
		down(place, node);
}

static void take_out(__u32 place)
{
	count--;
	if (place != count)
		replace(place, heap[count]);
}

static __u64 heap_arm(const struct change *c, __u32 n)
{
	__u64 first = NEVER;
	__u32 i;

	for (i = 0; i < n; i++) {
		if (c[i].deadline < first)
			first = c[i].deadline;
		deadlines[c[i].id] = c[i].deadline;
		up(count++, (struct node) { c[i].deadline, c[i].id });
	}
	return first;
}

static __u64 heap_move(const struct change *c, __u32 n)
{
	__u64 first = NEVER;
	__u32 i;

	for (i = 0; i < n; i++) {
		if (c[i].deadline < first)
			first = c[i].deadline;
		deadlines[c[i].id] = c[i].deadline;
		replace(places[c[i].id], (struct node) { c[i].deadline, c[i].id });
	}
	return first;
}

static void heap_refresh(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		deadlines[c[i].id] = c[i].deadline;
}

static void heap_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		take_out(places[c[i].id]);
}

static __u64 heap_next(void)
{
	return count ? heap[0].key : NEVER;
}

static __u32 heap_expire(__u64 now, __u32 *ids, __u32 most)
{
	__u32 n = 0;

	while (n < most && count && heap[0].key <= now) {
		struct node first = heap[0];

		if (deadlines[first.id] > first.key) {
			first.key = deadlines[first.id];
			down(0, first);
			continue;
		}
		take_out(0);
		ids[n++] = first.id;
	}
	return n;
}

const struct queue heap_queue = {
	.open = heap_open,
	.close = heap_close,
	.arm = heap_arm,
	.move = heap_move,
	.refresh = heap_refresh,
	.cancel = heap_cancel,
	.next = heap_next,
	.expire = heap_expire,
};

static void alone_open(__u32 capacity, __u64 timeout)
{
	(void)timeout;
	front_open(&heap_queue, capacity, false);
}

static void shared_open(__u32 capacity, __u64 timeout)
{
	(void)timeout;
	front_open(&heap_queue, capacity, true);
}

static void lazy_open(__u32 capacity, __u64 timeout)
{
	(void)timeout;
	front_open(lazily(&heap_queue), capacity, false);
}

static void lazy_shared_open(__u32 capacity, __u64 timeout)
{
	(void)timeout;
	front_open(lazily(&heap_queue), capacity, true);
}

const struct facility facility_heap = {
	.name = "heap",
	.open = alone_open,
	FRONT_FUNCTIONS,
};

const struct facility facility_heap_shared = {
	.name = "heap-shared",
	.threads = 2,
	.batches = true,
	.open = shared_open,
	FRONT_FUNCTIONS,
};

const struct facility facility_heap_lazy = {
	.name = "heap-lazy",
	.only = "requests",
	.open = lazy_open,
	FRONT_FUNCTIONS,
};

const struct facility facility_heap_lazy_shared = {
	.name = "heap-lazy-shared",
	.only = "requests",
	.threads = 2,
	.batches = true,
	.open = lazy_shared_open,
	FRONT_FUNCTIONS,
};
