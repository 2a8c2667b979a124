/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The timers of the process back end, in memory: found by key (a hash table) and by index (an
 * array), pending (a heap by deadline) or due (a list in the order in which they fell due). No
 * clock, no lock, no system call.
 */
#ifndef LTW_STORE_H
#define LTW_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

/**
 * enum ltw_state - where a timer is
 * @LTW_FREE: on the free list
 * @LTW_NOWHERE: it exists, and is in neither of the following
 * @LTW_PENDING: in the heap
 * @LTW_DUE: on the list
 */
enum ltw_state {
	LTW_FREE,
	LTW_NOWHERE,
	LTW_PENDING,
	LTW_DUE
};

/**
 * struct ltw_timer - a timer, named by its index, which is not 0
 * @key: the program's name for it
 * @value: the program's word about it
 * @deadline: when it falls due, in ns
 * @period: ns between deadlines, 0: one shot
 * @fired: LTW_DUE: when that was seen, in ns
 * @slack: ticks
 * @generation: which of the owners of its index it is; never 0 while there is one
 * @chain: the next one in its chain of the hash table
 * @next: LTW_DUE: the next one on the list; LTW_FREE: on the free list
 * @prev: LTW_DUE: the one before it
 * @place: LTW_PENDING: where it is in the heap
 * @state: enum ltw_state
 */
struct ltw_timer {
	uint64_t key;
	uint64_t value;
	uint64_t deadline;
	uint64_t period;
	uint64_t fired;
	uint32_t slack;
	uint32_t generation;
	uint32_t chain;
	union {
		uint32_t next;
		uint32_t place;
	};
	uint32_t prev;
	uint32_t state;
};

/* What the heap is ordered by, beside each other, so that a step reads one line of memory. */
struct ltw_heap_entry {
	uint64_t deadline;
	uint32_t index;
};

/**
 * struct ltw_store - all of them
 * @timer: by index; 0 is nobody's
 * @heap: the pending ones; no deadline is before that of number (i - 1) / 4
 * @chain: the first timer of each chain, 0: none
 * @words: the deadline table, NULL: there is none
 * @seed: of the hash
 * @capacity: most timers
 * @room: entries of @timer and of @heap
 * @chains: length of @chain, a power of two
 * @made: indices that were ever used: 1 to that
 * @free: first one that is free again, 0: none
 * @pending: how many are in the heap
 * @due: how many are due
 * @due_first: the first of them
 * @due_last: the last of them
 * @generation_bits: bits of a word of @words that are a generation
 */
struct ltw_store {
	struct ltw_timer *timer;
	struct ltw_heap_entry *heap;
	uint32_t *chain;
	__u64 *words;
	uint64_t seed;
	uint32_t capacity;
	uint32_t room;
	uint32_t chains;
	uint32_t made;
	uint32_t free;
	uint32_t pending;
	uint32_t due;
	uint32_t due_first;
	uint32_t due_last;
	uint32_t generation_bits;
};

/**
 * ltw_store_init - make an empty store
 * @store: all zero, but @capacity and @generation_bits; on failure call ltw_store_free()
 * @table: with a deadline table
 *
 * Return: 0 or -ENOMEM.
 */
int ltw_store_init(struct ltw_store *store, bool table);

/**
 * ltw_store_free - free all of it
 * @store: the store
 */
void ltw_store_free(struct ltw_store *store);

/**
 * ltw_store_memory - how much memory it occupies
 * @store: the store
 *
 * Return: bytes; of a deadline table what can have been used.
 */
size_t ltw_store_memory(const struct ltw_store *store);

/**
 * ltw_store_find - find a timer by its key
 * @store: the store
 * @key: the key
 *
 * Return: its index, 0: there is none.
 */
uint32_t ltw_store_find(const struct ltw_store *store, uint64_t key);

/**
 * ltw_store_new - make a timer
 * @store: the store
 * @key: its key, which no other has
 * @index: is set to its index; it is LTW_NOWHERE
 *
 * Return: 0; -ENOSPC: there are @capacity; -ENOMEM.
 */
int ltw_store_new(struct ltw_store *store, uint64_t key, uint32_t *index);

/**
 * ltw_store_delete - end a timer
 * @store: the store
 * @index: the timer, LTW_NOWHERE
 */
void ltw_store_delete(struct ltw_store *store, uint32_t index);

/**
 * ltw_store_pend - put a timer into the heap
 * @store: the store
 * @index: the timer, LTW_NOWHERE
 */
void ltw_store_pend(struct ltw_store *store, uint32_t index);

/**
 * ltw_store_due - put a timer at the end of the list of those that are due
 * @store: the store
 * @index: the timer, LTW_NOWHERE
 */
void ltw_store_due(struct ltw_store *store, uint32_t index);

/**
 * ltw_store_take - take a timer out of the heap or off the list
 * @store: the store
 * @index: the timer; is LTW_NOWHERE then
 */
void ltw_store_take(struct ltw_store *store, uint32_t index);

/**
 * ltw_store_touched - let a pending timer have the deadline in the deadline table, if that is later
 * @store: the store
 * @index: the timer, LTW_PENDING
 */
void ltw_store_touched(struct ltw_store *store, uint32_t index);

/**
 * ltw_store_forget - forget what is in the deadline table about a timer, but whose word it is
 * @store: the store
 * @index: the timer
 */
void ltw_store_forget(struct ltw_store *store, uint32_t index);

#endif /* LTW_STORE_H */
