/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The deadline table: a u64 for each timer, by index, in memory that user space maps and may write
 * at any time. A store there postpones a timer without a system call.
 *
 * An entry is a deadline, rounded up to a multiple of 2^generation_bits, plus the generation of the
 * timer it is meant for. An index is reused for other timers, and each new owner has another
 * generation. So a late store of a former owner is not taken for one of the new owner.
 *
 * A late store must not undo one of the new owner either. So the kernel stores the generation,
 * without a deadline, whenever an index gets a new owner, and when ADD or MOVE voids what was
 * stored before. A program replaces its entry by compare-and-swap, if it finds its own generation
 * there; if it finds another one its timer is gone. That is a convention among programs, on which
 * the kernel does not rely. (Plain stores are for programs that never store for a timer that is
 * gone.)
 *
 * A store causes no work. The kernel reads an entry when it deals with the timer anyway: its slot
 * comes up, or a call reports or changes its deadline. It reads the entry once, with one load. What
 * it finds can only postpone this one timer.
 *
 * Which deadline a timer has is decided under its base's lock. Either the load sees a store, and
 * the timer does not expire; or it does not see it, and the timer is due, whatever is stored from
 * then on. It is always exactly one of the two. No barrier is needed, because an entry announces no
 * other memory.
 */
#ifndef TW_DEADLINES_H
#define TW_DEADLINES_H

#include <asm/page.h>
#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/timerwheel.h>

#include "timer.h"

/* Entries in a page. */
#define TW_PAGE_DEADLINES	(PAGE_SIZE / sizeof(u64))

/**
 * tw_pool_set_entries - define the entries of a pool's deadline table
 * @pool: the pool, without timers
 * @bits: number of bits of a generation, with the state
 * @resident: its timers are resident
 */
static inline void tw_pool_set_entries(struct tw_pool *pool, unsigned int bits, bool resident)
{
	pool->generation_mask = BIT(bits) - 1;
	pool->owner_mask = pool->generation_mask;
	pool->stay = TW_ENDS;
	if (resident) {
		pool->owner_mask &= ~TIMERWHEEL_RESIDENT_ARMED;
		pool->stay = TW_RESIDENT;
	}
}

/**
 * tw_pool_deadlines - the directory of the deadline table's pages
 * @pool: the pool
 *
 * Context: as tw_pool_pages().
 * Return: the directory, with the entries of all timers that exist now; NULL: there is no table.
 */
static inline u64 **tw_pool_deadlines(const struct tw_pool *pool)
{
	/* Pairs with the release in tw_dir_publish(); litmus dependency. */
	return READ_ONCE(pool->deadlines);
}

/* The entry of a timer. @deadlines: what tw_pool_deadlines() returned, not NULL */
static inline u64 *tw_deadline_entry(u64 **deadlines, u32 index)
{
	return &deadlines[index / TW_PAGE_DEADLINES][index % TW_PAGE_DEADLINES];
}

/* The deadline in an entry, which may be any number, clamped, in the initial time namespace. */
static inline u64 tw_deadline_decode(const struct tw_pool *pool, u64 entry)
{
	u64 time = entry & ~(u64)pool->generation_mask;
	u64 offset = pool->deadlines_offset;

	time = min(time, TIMERWHEEL_TIME_MAX);
	if (likely(!offset))
		return time;
	if ((s64)offset > 0)
		return time > offset ? time - offset : 0;
	return min(time - offset, TIMERWHEEL_TIME_MAX);
}

/**
 * tw_deadline_apply - postpone a timer if an entry does
 * @pool: the pool
 * @t: the timer; its base is locked
 * @entry: what was read of its entry
 *
 * An entry can only postpone a timer.
 */
static inline void tw_deadline_apply(const struct tw_pool *pool, struct tw_timer *t, u64 entry)
{
	u64 time;

	if (((u32)entry ^ t->generation) & pool->owner_mask)
		return;
	time = tw_deadline_decode(pool, entry);
	if (time > t->deadline)
		t->deadline = time;
}

/**
 * __tw_deadline_sync - postpone a timer if user space did, with a directory that was read before
 * @pool: the pool
 * @deadlines: what tw_pool_deadlines() returned
 * @index: the timer
 * @t: the same, TW_PENDING; its base is locked
 */
static inline void __tw_deadline_sync(const struct tw_pool *pool, u64 **deadlines, u32 index,
				      struct tw_timer *t)
{
	/* Read once: it may change at any time. */
	if (unlikely(deadlines))
		tw_deadline_apply(pool, t, READ_ONCE(*tw_deadline_entry(deadlines, index)));
}

/**
 * tw_deadline_sync - postpone a timer if user space did
 * @pool: the pool
 * @index: the timer
 * @t: the same, TW_PENDING; its base is locked
 */
static inline void tw_deadline_sync(const struct tw_pool *pool, u32 index, struct tw_timer *t)
{
	__tw_deadline_sync(pool, tw_pool_deadlines(pool), index, t);
}

/**
 * tw_deadline_reset - void what user space has stored for a timer that is not resident
 * @pool: the pool
 * @index: the timer; its base is locked, or it is in none yet
 * @t: the same
 *
 * For operations that set a deadline: earlier stores do not count any more. The generation stays. A
 * program's compare-and-swap for a former owner does not replace what is stored here; litmus
 * deadline.
 */
static inline void tw_deadline_reset(const struct tw_pool *pool, u32 index,
				     const struct tw_timer *t)
{
	u64 **deadlines = tw_pool_deadlines(pool);

	if (unlikely(deadlines) && READ_ONCE(*tw_deadline_entry(deadlines, index)) != t->generation)
		WRITE_ONCE(*tw_deadline_entry(deadlines, index), t->generation);
}

/**
 * tw_deadline_new_owner - give a free timer the generation of its new owner
 * @pool: the pool
 * @t: the timer. tw_deadline_set() follows.
 * @resident: it is resident: the two lowest bits are for the state
 */
static __always_inline void tw_deadline_new_owner(const struct tw_pool *pool, struct tw_timer *t,
						  bool resident)
{
	u32 step = resident ? TIMERWHEEL_RESIDENT_FIRED + 1 : 1;
	u32 generation = (t->generation + step) & pool->generation_mask;

	/* tw_table_tag() reads it without a lock. */
	WRITE_ONCE(t->generation, generation ?: step);
}

#endif /* TW_DEADLINES_H */
