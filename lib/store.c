// SPDX-License-Identifier: MIT OR GPL-2.0
/* See store.h. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "backend.h"
#include "keyhash.h"
#include "store.h"

/* Children of an entry of the heap: four of them are in one line of memory. */
#define TW_WAYS		4U

/* Timers that there is room for at first. */
#define TW_ROOM		64U

static size_t tw_words_size(const struct tw_store *store)
{
	return (store->capacity + (size_t)1) * sizeof(*store->words);
}

int tw_store_init(struct tw_store *store, bool table)
{
	void *words;

	store->seed = tw_keyhash_seed(store);
	if (!table)
		return 0;
	/* It must never move: all of it now, but memory only where it is used. */
	words = mmap(NULL, tw_words_size(store), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (words == MAP_FAILED)
		return -ENOMEM;
	store->words = words;
	return 0;
}

void tw_store_free(struct tw_store *store)
{
	if (store->words)
		munmap(store->words, tw_words_size(store));
	free(store->timer);
	free(store->heap);
	free(store->chain);
}

size_t tw_store_memory(const struct tw_store *store)
{
	return store->room * (sizeof(*store->timer) + sizeof(*store->heap)) +
	       store->chains * sizeof(*store->chain) +
	       (store->words ? store->made * sizeof(*store->words) : 0);
}

/* The place that leads to the first timer of a key's chain */
static uint32_t *tw_chain(const struct tw_store *store, uint64_t key)
{
	return &store->chain[tw_keyhash(key, store->seed) & (store->chains - 1)];
}

/* Twice the chains. Returns 0 or -ENOMEM. */
static int tw_more_chains(struct tw_store *store, uint32_t chains)
{
	uint32_t *chain, *first, i;

	chain = calloc(chains, sizeof(*chain));
	if (!chain)
		return -ENOMEM;
	free(store->chain);
	store->chain = chain;
	store->chains = chains;
	/* When there must be more of them, no index is free. */
	for (i = 1; i <= store->made; i++) {
		first = tw_chain(store, store->timer[i].key);
		store->timer[i].chain = *first;
		*first = i;
	}
	return 0;
}

/* Twice the room. What could be had of it stays if the rest cannot. Returns 0 or -ENOMEM. */
static int tw_grow(struct tw_store *store)
{
	uint32_t room = store->room ? store->room * 2 : TW_ROOM;
	void *more;

	more = realloc(store->timer, room * sizeof(*store->timer));
	if (!more)
		return -ENOMEM;
	store->timer = more;
	more = realloc(store->heap, room * sizeof(*store->heap));
	if (!more)
		return -ENOMEM;
	store->heap = more;
	if (tw_more_chains(store, room))
		return -ENOMEM;
	store->room = room;
	return 0;
}

uint32_t tw_store_find(const struct tw_store *store, uint64_t key)
{
	uint32_t index;

	if (!store->chains)
		return 0;
	for (index = *tw_chain(store, key); index; index = store->timer[index].chain)
		if (store->timer[index].key == key)
			break;
	return index;
}

/* An index that is nobody's: 0 or an error of tw_store_new() */
static int tw_obtain(struct tw_store *store, uint32_t *index)
{
	int err;

	if (store->free) {
		*index = store->free;
		store->free = store->timer[*index].next;
		return 0;
	}
	if (store->made == store->capacity)
		return -ENOSPC;
	if (store->made + 1 >= store->room) {
		err = tw_grow(store);
		if (err)
			return err;
	}
	*index = ++store->made;
	store->timer[*index] = (struct tw_timer){ 0 };
	return 0;
}

int tw_store_new(struct tw_store *store, uint64_t key, uint32_t *index)
{
	struct tw_timer *timer;
	uint32_t *first;
	int err;

	err = tw_obtain(store, index);
	if (err)
		return err;
	timer = &store->timer[*index];
	timer->key = key;
	timer->state = TW_NOWHERE;
	timer->generation = (timer->generation + 1) & ((1U << store->generation_bits) - 1);
	/* What was never stored in a table must be nobody's. */
	if (!timer->generation)
		timer->generation = 1;
	tw_store_forget(store, *index);
	first = tw_chain(store, key);
	timer->chain = *first;
	*first = *index;
	return 0;
}

void tw_store_delete(struct tw_store *store, uint32_t index)
{
	struct tw_timer *timer = &store->timer[index];
	uint32_t *link = tw_chain(store, timer->key);

	while (*link != index)
		link = &store->timer[*link].chain;
	*link = timer->chain;
	timer->state = TW_FREE;
	timer->next = store->free;
	store->free = index;
}

static void tw_heap_set(struct tw_store *store, uint32_t place, struct tw_heap_entry entry)
{
	store->heap[place] = entry;
	store->timer[entry.index].place = place;
}

/* Put an entry where it belongs: at @place, which is free, or between there and the root. */
static void tw_heap_up(struct tw_store *store, uint32_t place, struct tw_heap_entry entry)
{
	uint32_t parent;

	while (place) {
		parent = (place - 1) / TW_WAYS;
		if (store->heap[parent].deadline <= entry.deadline)
			break;
		tw_heap_set(store, place, store->heap[parent]);
		place = parent;
	}
	tw_heap_set(store, place, entry);
}

/* The same for @place and what is below it. */
static void tw_heap_down(struct tw_store *store, uint32_t place, struct tw_heap_entry entry)
{
	const struct tw_heap_entry *heap = store->heap;
	uint32_t child, least, end;

	for (;;) {
		least = place * TW_WAYS + 1;
		if (least >= store->pending)
			break;
		end = least + TW_WAYS;
		if (end > store->pending)
			end = store->pending;
		for (child = least + 1; child < end; child++)
			if (heap[child].deadline < heap[least].deadline)
				least = child;
		if (heap[least].deadline >= entry.deadline)
			break;
		tw_heap_set(store, place, heap[least]);
		place = least;
	}
	tw_heap_set(store, place, entry);
}

static void tw_heap_remove(struct tw_store *store, uint32_t place)
{
	struct tw_heap_entry last = store->heap[--store->pending];
	uint64_t deadline = store->heap[place].deadline;

	if (place == store->pending)
		return;
	if (last.deadline < deadline)
		tw_heap_up(store, place, last);
	else
		tw_heap_down(store, place, last);
}

void tw_store_pend(struct tw_store *store, uint32_t index)
{
	struct tw_heap_entry entry = { store->timer[index].deadline, index };

	store->timer[index].state = TW_PENDING;
	tw_heap_up(store, store->pending++, entry);
}

void tw_store_due(struct tw_store *store, uint32_t index)
{
	struct tw_timer *timer = &store->timer[index];

	timer->state = TW_DUE;
	timer->next = 0;
	timer->prev = store->due_last;
	if (store->due_last)
		store->timer[store->due_last].next = index;
	else
		store->due_first = index;
	store->due_last = index;
	store->due++;
}

static void tw_due_remove(struct tw_store *store, const struct tw_timer *timer)
{
	if (timer->prev)
		store->timer[timer->prev].next = timer->next;
	else
		store->due_first = timer->next;
	if (timer->next)
		store->timer[timer->next].prev = timer->prev;
	else
		store->due_last = timer->prev;
	store->due--;
}

void tw_store_take(struct tw_store *store, uint32_t index)
{
	struct tw_timer *timer = &store->timer[index];

	if (timer->state == TW_PENDING)
		tw_heap_remove(store, timer->place);
	else
		tw_due_remove(store, timer);
	timer->state = TW_NOWHERE;
}

void tw_store_touched(struct tw_store *store, uint32_t index)
{
	struct tw_timer *timer = &store->timer[index];
	uint64_t mask = (1ULL << store->generation_bits) - 1;
	struct tw_heap_entry entry = { .index = index };
	uint64_t word;

	if (!store->words)
		return;
	/* It may change at any time: read it once. Nothing else is to be seen because of it. */
	word = __atomic_load_n(&store->words[index], __ATOMIC_RELAXED);
	entry.deadline = word & ~mask;
	if (entry.deadline > TIMERWHEEL_TIME_MAX)
		entry.deadline = TIMERWHEEL_TIME_MAX;
	if ((word & mask) != timer->generation || entry.deadline <= timer->deadline)
		return;
	timer->deadline = entry.deadline;
	tw_heap_down(store, timer->place, entry);
}

void tw_store_forget(struct tw_store *store, uint32_t index)
{
	if (store->words)
		__atomic_store_n(&store->words[index], store->timer[index].generation,
				 __ATOMIC_RELAXED);
}
