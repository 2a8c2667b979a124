// SPDX-License-Identifier: MIT OR GPL-2.0
/* See store.h. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "backend.h"
#include "keyhash.h"
#include "store.h"

/* Children of a heap entry: four of them have the size of a cache line. */
#define LTW_WAYS	4U

/* Initial length of the arrays. */
#define LTW_ROOM	64U

static size_t ltw_deadlines_size(const struct ltw_store *store)
{
	return (store->capacity + (size_t)1) * sizeof(*store->deadlines);
}

/* Make the entries of @room timers accessible, up to the capacity. Returns 0 or -ENOMEM. */
static int ltw_more_deadlines(struct ltw_store *store, uint32_t room)
{
	size_t size = room * sizeof(*store->deadlines), all = ltw_deadlines_size(store);

	if (!store->deadlines)
		return 0;
	return mprotect(store->deadlines, size < all ? size : all, PROT_READ | PROT_WRITE) ?
		-ENOMEM : 0;
}

int ltw_store_init(struct ltw_store *store, bool table)
{
	void *deadlines;

	store->seed = ltw_keyhash_seed(store);
	if (!table)
		return 0;
	/*
	 * The table must never move, so map it for the whole capacity. Pages without an entry of a
	 * timer are not accessible, because otherwise mlockall() would allocate them.
	 */
	deadlines = mmap(NULL, ltw_deadlines_size(store), PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (deadlines == MAP_FAILED)
		return -ENOMEM;
	store->deadlines = deadlines;
	/* On failure the caller calls ltw_store_free(). */
	return ltw_more_deadlines(store, 1);
}

void ltw_store_free(struct ltw_store *store)
{
	if (store->deadlines)
		munmap(store->deadlines, ltw_deadlines_size(store));
	free(store->timer);
	free(store->heap);
	free(store->chain);
}

size_t ltw_store_memory(const struct ltw_store *store)
{
	return store->room * (sizeof(*store->timer) + sizeof(*store->heap)) +
	       store->chains * sizeof(*store->chain) +
	       (store->deadlines ? store->made * sizeof(*store->deadlines) : 0);
}

/* The head of a key's hash chain. */
static uint32_t *ltw_chain(const struct ltw_store *store, uint64_t key)
{
	return &store->chain[ltw_keyhash(key, store->seed) & (store->chains - 1)];
}

/* Change the number of hash chains. Returns 0 or -ENOMEM. */
static int ltw_more_chains(struct ltw_store *store, uint32_t chains)
{
	uint32_t *chain, *first, i;

	chain = calloc(chains, sizeof(*chain));
	if (!chain)
		return -ENOMEM;
	free(store->chain);
	store->chain = chain;
	store->chains = chains;
	/* The table grows only if no index is free, so each index has a timer. */
	for (i = 1; i <= store->made; i++) {
		first = ltw_chain(store, store->timer[i].key);
		store->timer[i].chain = *first;
		*first = i;
	}
	return 0;
}

/* Double all arrays. On failure, enlarged arrays stay enlarged. Returns 0 or -ENOMEM. */
static int ltw_grow(struct ltw_store *store)
{
	uint32_t room = store->room ? store->room * 2 : LTW_ROOM;
	void *more;

	more = realloc(store->timer, room * sizeof(*store->timer));
	if (!more)
		return -ENOMEM;
	store->timer = more;
	more = realloc(store->heap, room * sizeof(*store->heap));
	if (!more)
		return -ENOMEM;
	store->heap = more;
	if (ltw_more_deadlines(store, room) || ltw_more_chains(store, room))
		return -ENOMEM;
	store->room = room;
	return 0;
}

uint32_t ltw_store_find(const struct ltw_store *store, uint64_t key)
{
	uint32_t index;

	if (!store->chains)
		return 0;
	for (index = *ltw_chain(store, key); index; index = store->timer[index].chain)
		if (store->timer[index].key == key)
			break;
	return index;
}

bool ltw_store_owned(const struct ltw_store *store, uint32_t index, uint32_t generation)
{
	return index && index <= store->made && store->timer[index].state != LTW_FREE &&
	       store->timer[index].generation == generation;
}

/* Get an unused index. Returns 0 or an error of ltw_store_new(). */
static int ltw_obtain(struct ltw_store *store, uint32_t *index)
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
		err = ltw_grow(store);
		if (err)
			return err;
	}
	*index = ++store->made;
	store->timer[*index] = (struct ltw_timer){ 0 };
	return 0;
}

int ltw_store_new(struct ltw_store *store, uint64_t key, uint32_t *index)
{
	/* the two lowest bits of an entry are its state */
	const uint32_t step = TIMERWHEEL_TABLE_FIRED + 1;
	struct ltw_timer *timer;
	uint32_t *first;
	int err;

	err = ltw_obtain(store, index);
	if (err)
		return err;
	timer = &store->timer[*index];
	timer->key = key;
	timer->state = LTW_NOWHERE;
	timer->generation = (timer->generation + step) & ((1U << store->generation_bits) - 1);
	/* An unused entry of the deadline table contains 0, so 0 is not a valid generation. */
	if (!timer->generation)
		timer->generation = step;
	first = ltw_chain(store, key);
	timer->chain = *first;
	*first = *index;
	return 0;
}

void ltw_store_delete(struct ltw_store *store, uint32_t index)
{
	struct ltw_timer *timer = &store->timer[index];
	uint32_t *link = ltw_chain(store, timer->key);

	while (*link != index)
		link = &store->timer[*link].chain;
	*link = timer->chain;
	timer->state = LTW_FREE;
	timer->next = store->free;
	store->free = index;
}

static void ltw_heap_set(struct ltw_store *store, uint32_t place, struct ltw_heap_entry entry)
{
	store->heap[place] = entry;
	store->timer[entry.index].place = place;
}

/* Sift an entry up from @place, which is free. */
static void ltw_heap_up(struct ltw_store *store, uint32_t place, struct ltw_heap_entry entry)
{
	uint32_t parent;

	while (place) {
		parent = (place - 1) / LTW_WAYS;
		if (store->heap[parent].deadline <= entry.deadline)
			break;
		ltw_heap_set(store, place, store->heap[parent]);
		place = parent;
	}
	ltw_heap_set(store, place, entry);
}

/* Sift an entry down from @place, which is free. */
static void ltw_heap_down(struct ltw_store *store, uint32_t place, struct ltw_heap_entry entry)
{
	const struct ltw_heap_entry *heap = store->heap;
	uint32_t child, least, end;

	for (;;) {
		least = place * LTW_WAYS + 1;
		if (least >= store->pending)
			break;
		end = least + LTW_WAYS;
		if (end > store->pending)
			end = store->pending;
		for (child = least + 1; child < end; child++)
			if (heap[child].deadline < heap[least].deadline)
				least = child;
		if (heap[least].deadline >= entry.deadline)
			break;
		ltw_heap_set(store, place, heap[least]);
		place = least;
	}
	ltw_heap_set(store, place, entry);
}

static void ltw_heap_remove(struct ltw_store *store, uint32_t place)
{
	struct ltw_heap_entry last = store->heap[--store->pending];
	uint64_t deadline = store->heap[place].deadline;

	if (place == store->pending)
		return;
	if (last.deadline < deadline)
		ltw_heap_up(store, place, last);
	else
		ltw_heap_down(store, place, last);
}

void ltw_store_pend(struct ltw_store *store, uint32_t index)
{
	struct ltw_heap_entry entry = { store->timer[index].deadline, index };

	store->timer[index].state = LTW_PENDING;
	ltw_heap_up(store, store->pending++, entry);
}

void ltw_store_due(struct ltw_store *store, uint32_t index)
{
	struct ltw_timer *timer = &store->timer[index];

	timer->state = LTW_DUE;
	timer->next = 0;
	timer->prev = store->due_last;
	if (store->due_last)
		store->timer[store->due_last].next = index;
	else
		store->due_first = index;
	store->due_last = index;
	store->due++;
}

static void ltw_due_remove(struct ltw_store *store, const struct ltw_timer *timer)
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

void ltw_store_park(struct ltw_store *store, uint32_t index)
{
	store->timer[index].state = LTW_PARKED;
	store->parked++;
}

void ltw_store_take(struct ltw_store *store, uint32_t index)
{
	struct ltw_timer *timer = &store->timer[index];

	if (timer->state == LTW_PENDING)
		ltw_heap_remove(store, timer->place);
	else if (timer->state == LTW_DUE)
		ltw_due_remove(store, timer);
	else
		store->parked--;
	timer->state = LTW_NOWHERE;
}

/* The bits of an entry that do not belong to the deadline. */
static uint64_t ltw_low_bits(const struct ltw_store *store)
{
	return (1ULL << store->generation_bits) - 1;
}

static uint64_t ltw_stored_deadline(const struct ltw_store *store, uint64_t stored)
{
	uint64_t deadline = stored & ~ltw_low_bits(store);

	return deadline < TIMERWHEEL_TIME_MAX ? deadline : TIMERWHEEL_TIME_MAX;
}

/* Can a program have written @stored for a pending timer? */
static bool ltw_stored_valid(const struct ltw_store *store, const struct ltw_timer *timer,
			     uint64_t stored)
{
	uint64_t owner = ltw_low_bits(store) & ~(uint64_t)TIMERWHEEL_TABLE_ARMED;

	return !((stored ^ timer->generation) & owner);
}

/* Does @stored show that the arming of a pending timer was cancelled? */
static bool ltw_stored_cancelled(const struct ltw_store *store, const struct ltw_timer *timer,
				 uint64_t stored)
{
	return ltw_stored_valid(store, timer, stored) && !(stored & TIMERWHEEL_TABLE_ARMED);
}

/* Postpone a pending timer if @stored, from its entry, is later. Returns true if it is armed. */
static bool ltw_postpone(struct ltw_store *store, uint32_t index, uint64_t stored)
{
	struct ltw_timer *timer = &store->timer[index];
	struct ltw_heap_entry entry = { ltw_stored_deadline(store, stored), index };

	if (ltw_stored_valid(store, timer, stored) && entry.deadline > timer->deadline) {
		timer->deadline = entry.deadline;
		ltw_heap_down(store, timer->place, entry);
	}
	return !ltw_stored_cancelled(store, timer, stored);
}

bool ltw_store_touched(struct ltw_store *store, uint32_t index)
{
	if (!store->deadlines)
		return true;
	/* The entry may change at any time: read it once. It does not order other memory. */
	return ltw_postpone(store, index,
			    __atomic_load_n(&store->deadlines[index], __ATOMIC_RELAXED));
}

/* The entry of a timer, with the deadline rounded up */
static uint64_t ltw_encode(const struct ltw_store *store, const struct ltw_timer *timer,
			   uint64_t deadline, uint32_t state)
{
	uint64_t low = ltw_low_bits(store), end = TIMERWHEEL_TIME_MAX & ~low;

	return (((deadline < end ? deadline : end) + low) & ~low) | timer->generation | state;
}

/* Replace an entry if it is @old. Fully ordered, as in the kernel; litmus c11/resident-end. */
static bool ltw_swap(__u64 *entry, uint64_t old, uint64_t want)
{
	return __atomic_compare_exchange_n(entry, &old, want, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

enum ltw_visit ltw_store_visit(struct ltw_store *store, uint32_t index)
{
	const uint64_t kernels = TIMERWHEEL_TABLE_ARMED ^ TIMERWHEEL_TABLE_FIRED;
	struct ltw_timer *timer = &store->timer[index];
	uint64_t before = timer->deadline, stored;
	__u64 *entry;
	bool armed;

	if (!store->deadlines)
		return LTW_FIRED;
	/* The entry may change at any time: read it once. */
	entry = &store->deadlines[index];
	stored = __atomic_load_n(entry, __ATOMIC_RELAXED);
	armed = ltw_postpone(store, index, stored);
	if (timer->deadline > before)
		return LTW_POSTPONED;
	if (!ltw_stored_valid(store, timer, stored)) {
		stored = ltw_encode(store, timer, timer->deadline, TIMERWHEEL_TABLE_FIRED);
		__atomic_store_n(entry, stored, __ATOMIC_RELAXED);
		return LTW_FIRED;
	}
	if (!ltw_swap(entry, stored, stored | kernels))
		return LTW_POSTPONED;
	return armed ? LTW_FIRED : LTW_CANCELLED;
}

int ltw_store_set(struct ltw_store *store, uint32_t index, uint64_t deadline, uint64_t now,
		  bool unless_armed)
{
	static const int was[] = {
		[LTW_NOWHERE] = TIMERWHEEL_WAS_NONE,
		[LTW_PENDING] = TIMERWHEEL_WAS_PENDING,
		[LTW_DUE] = TIMERWHEEL_WAS_DUE,
		[LTW_PARKED] = TIMERWHEEL_WAS_PARKED,
	};
	struct ltw_timer *timer = &store->timer[index];
	__u64 *entry = &store->deadlines[index];
	uint64_t old, want = ltw_encode(store, timer, deadline, 0);
	bool pending = timer->state == LTW_PENDING;

	/* Near the maximum an entry has an earlier deadline, which may have passed. */
	if (deadline > now)
		deadline = ltw_stored_deadline(store, want);
	want |= deadline > now ? TIMERWHEEL_TABLE_ARMED : TIMERWHEEL_TABLE_FIRED;
	if (unless_armed && timer->state == LTW_DUE)
		return -EEXIST;
	if (unless_armed && pending) {
		old = __atomic_load_n(entry, __ATOMIC_RELAXED);
		/* If the swap fails, the program has armed the timer in the meantime. */
		if (!ltw_stored_cancelled(store, timer, old) || !ltw_swap(entry, old, want))
			return -EEXIST;
	} else {
		/* The old value shows which arming this ends; litmus c11/resident-end. */
		old = __atomic_exchange_n(entry, want, __ATOMIC_SEQ_CST);
	}
	timer->deadline = deadline;
	return pending && ltw_stored_cancelled(store, timer, old) ? TIMERWHEEL_WAS_PARKED :
								    was[timer->state];
}

void ltw_store_linger(struct ltw_store *store, uint32_t index, uint64_t now)
{
	struct ltw_timer *timer = &store->timer[index];
	uint64_t entry = ltw_encode(store, timer, now + timer->period,
				    TIMERWHEEL_TABLE_CANCELLED);

	timer->deadline = ltw_stored_deadline(store, entry);
	__atomic_store_n(&store->deadlines[index], entry, __ATOMIC_RELAXED);
}

bool ltw_store_disown(struct ltw_store *store, uint32_t index)
{
	/* The old value shows how the last arming ended; litmus c11/resident-end. */
	uint64_t old = __atomic_exchange_n(&store->deadlines[index], 0, __ATOMIC_SEQ_CST);

	return store->timer[index].state != LTW_PENDING || ltw_postpone(store, index, old);
}
