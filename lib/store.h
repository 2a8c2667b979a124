/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The timers of the process back end: a hash table by key, an array by index, a heap of pending
 * timers by deadline, and a list of due timers in the order in which they fell due. It uses no
 * clocks, no locks, and no system calls except for memory.
 */
#ifndef LTW_STORE_H
#define LTW_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

/**
 * enum ltw_state - the state of a timer
 * @LTW_FREE: on the free list
 * @LTW_NOWHERE: it exists, but is in none of the following states
 * @LTW_PENDING: in the heap
 * @LTW_DUE: on the due list
 * @LTW_PARKED: in neither: its last arming was cancelled, or it is resident and its event was
 *	delivered
 */
enum ltw_state {
	LTW_FREE,
	LTW_NOWHERE,
	LTW_PENDING,
	LTW_DUE,
	LTW_PARKED
};

/**
 * struct ltw_timer - a timer; its index is not 0
 * @key: its key
 * @value: the program's data
 * @deadline: its deadline, in ns
 * @period: ns between deadlines; 0: one shot; if resident: its linger in ns, or 0
 * @fired: if LTW_DUE: the time at which it fired, in ns
 * @slack: its slack, in ticks
 * @generation: distinguishes successive owners of the index; not 0 while there is one
 * @chain: the next timer in its hash chain
 * @next: if LTW_DUE or LTW_FREE: the next timer on that list
 * @prev: if LTW_DUE: the previous timer on the list
 * @place: if LTW_PENDING: its place in the heap
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

/* Deadlines are stored in the heap itself, so that a step reads one or two cache lines. */
struct ltw_heap_entry {
	uint64_t deadline;
	uint32_t index;
};

/**
 * struct ltw_store - all timers of a wheel
 * @timer: the timers, by index; index 0 is not used
 * @heap: the pending timers; the parent of entry i is (i - 1) / 4
 * @chain: the first timer of each hash chain; 0: none
 * @deadlines: the deadline table; NULL: there is none
 * @seed: seed of the hash
 * @capacity: maximum number of timers
 * @room: length of @timer and of @heap
 * @chains: length of @chain, a power of two
 * @made: the indices from 1 to @made have been used
 * @free: the first index that is free again; 0: none
 * @pending: number of timers in the heap
 * @due: number of due timers
 * @due_first: the first due timer
 * @due_last: the last due timer
 * @parked: number of parked timers
 * @generation_bits: bits of an entry of @deadlines that hold generation and state
 * @resident: timers are resident: they stay after delivery
 */
struct ltw_store {
	struct ltw_timer *timer;
	struct ltw_heap_entry *heap;
	uint32_t *chain;
	__u64 *deadlines;
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
	uint32_t parked;
	uint32_t generation_bits;
	bool resident;
};

/**
 * ltw_store_init - initialize an empty store
 * @store: all zero except @capacity, @generation_bits and @resident; on failure call
 *	ltw_store_free()
 * @table: create a deadline table, which resident timers need
 *
 * Return: 0 or -ENOMEM.
 */
int ltw_store_init(struct ltw_store *store, bool table);

/**
 * ltw_store_free - free all memory of a store
 * @store: the store
 */
void ltw_store_free(struct ltw_store *store);

/**
 * ltw_store_memory - the memory of a store
 * @store: the store
 *
 * Return: its size in bytes. A deadline table counts only as far as it can have been used.
 */
size_t ltw_store_memory(const struct ltw_store *store);

/**
 * ltw_store_find - find a timer by its key
 * @store: the store
 * @key: the key
 *
 * Return: its index; 0: there is none.
 */
uint32_t ltw_store_find(const struct ltw_store *store, uint64_t key);

/**
 * ltw_store_owned - does a handle identify a timer?
 * @store: the store
 * @index: any number
 * @generation: any number
 *
 * Return: true if there is a timer with this index and generation.
 */
bool ltw_store_owned(const struct ltw_store *store, uint32_t index, uint32_t generation);

/**
 * ltw_store_new - create a timer, LTW_NOWHERE
 * @store: the store
 * @key: its key, which no other timer has
 * @index: out: its index
 *
 * Return: 0; -ENOSPC: there are @capacity timers; -ENOMEM.
 */
int ltw_store_new(struct ltw_store *store, uint64_t key, uint32_t *index);

/**
 * ltw_store_delete - end a timer
 * @store: the store
 * @index: the timer, LTW_NOWHERE
 */
void ltw_store_delete(struct ltw_store *store, uint32_t index);

/**
 * ltw_store_pend - make a timer pending
 * @store: the store
 * @index: the timer, LTW_NOWHERE
 */
void ltw_store_pend(struct ltw_store *store, uint32_t index);

/**
 * ltw_store_due - append a timer to the due list
 * @store: the store
 * @index: the timer, LTW_NOWHERE
 */
void ltw_store_due(struct ltw_store *store, uint32_t index);

/**
 * ltw_store_park - park a timer
 * @store: the store
 * @index: the timer, LTW_NOWHERE
 */
void ltw_store_park(struct ltw_store *store, uint32_t index);

/**
 * ltw_store_take - remove a timer from the heap or the due list, or unpark it
 * @store: the store
 * @index: the timer, not LTW_NOWHERE; becomes LTW_NOWHERE
 */
void ltw_store_take(struct ltw_store *store, uint32_t index);

/** enum ltw_visit - what happens to a pending timer at its deadline in the heap */
enum ltw_visit {
	/** @LTW_POSTPONED: it stays, or its entry in the deadline table has just changed */
	LTW_POSTPONED,
	/** @LTW_FIRED: it falls due */
	LTW_FIRED,
	/** @LTW_CANCELLED: its arming was cancelled: park it */
	LTW_CANCELLED
};

/**
 * ltw_store_visit - visit a pending timer whose deadline has passed
 * @store: the store
 * @index: the timer, LTW_PENDING. It gets the deadline in the deadline table, if that is later.
 *	Otherwise its arming ends in the table.
 *
 * Return: what happens to the timer.
 */
enum ltw_visit ltw_store_visit(struct ltw_store *store, uint32_t index);

/**
 * ltw_store_touched - give a pending timer the deadline in the deadline table, if that is later
 * @store: the store
 * @index: the timer, LTW_PENDING
 *
 * Return: true if it is armed; false: its arming was cancelled in the table.
 */
bool ltw_store_touched(struct ltw_store *store, uint32_t index);

/*
 * With a deadline table: programs change an entry of the deadline table by compare-and-swap, as
 * <linux/timerwheel.h> describes (TIMERWHEEL_MMAP_DEADLINES), while a call has the wheel's lock. So
 * the end of an arming is a compare-and-swap, too. While the entry is CANCELLED or ARMED:
 *
 *	deadline in the heap <= deadline of the timer <= deadline of the entry
 *
 * A program that writes any other value harms only its timer, which falls due at its own deadline.
 */

/**
 * ltw_store_set - set the deadline of a timer, and arm it in its entry
 * @store: the store
 * @index: the timer, not LTW_FREE. The caller must take it and queue it for the new deadline.
 * @deadline: the deadline. Unless it has passed, it is rounded up to what an entry can hold.
 * @now: the time, in ns
 * @unless_armed: do nothing if it is armed or due
 *
 * Return: TIMERWHEEL_WAS_*, from its state and its entry; -EEXIST: @unless_armed, and the timer is
 * armed or due.
 */
int ltw_store_set(struct ltw_store *store, uint32_t index, uint64_t deadline, uint64_t now,
		  bool unless_armed);

/**
 * ltw_store_linger - prepare a resident timer for its linger, after its event was delivered
 * @store: the store
 * @index: the timer, LTW_NOWHERE; its deadline is set
 * @now: the time, in ns
 */
void ltw_store_linger(struct ltw_store *store, uint32_t index, uint64_t now);

/**
 * ltw_store_disown - take the entry of a timer from programs
 * @store: the store
 * @index: the timer. If it is pending it gets the deadline in the entry.
 *
 * Return: as ltw_store_touched().
 */
bool ltw_store_disown(struct ltw_store *store, uint32_t index);

#endif /* LTW_STORE_H */
