/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The deadline table: a u64 for each timer, by index, in memory that user space maps and
 * may write at any time. A store there puts a timer off without a system call.
 *
 * A word is a deadline, rounded up to a multiple of 2^generation_bits, plus the generation of the
 * timer it is meant for. An index is used again for other timers: each new owner has another
 * generation, so that what a former owner stores late is not taken for the new one's.
 *
 * Nor may it undo what the new one has stored. So the kernel puts the generation there, with no
 * deadline, whenever an index gets an owner (and when ADD or MOVE make what was stored void), and
 * a program swaps its word in only where it finds its own generation: a word of another one says
 * that the timer is gone. That is a convention among programs (plain stores are allowed, to those
 * who never store for a timer that is gone); the kernel relies on nothing there.
 *
 * Nothing is done when user space stores. The kernel reads a word once, with one load, when it
 * has to do with the timer anyway: its slot comes up, or a call wants to know or to change
 * its deadline. Nothing read there can do more than put one's own timer off.
 *
 * Which deadline a timer has is decided under its part's lock. So the load either sees a
 * store, and then the timer does not expire, or it does not, and the timer is due, whatever is
 * stored from then on: never both and never neither. That needs no barrier, for no other
 * memory is told about by a word.
 */
#ifndef TW_DEADLINES_H
#define TW_DEADLINES_H

#include <asm/page.h>
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/timerwheel.h>

#include "timer.h"

/* Words in a page. */
#define TW_PAGE_DEADLINES	(PAGE_SIZE / sizeof(u64))

/**
 * tw_pool_deadlines - the directory of the deadline table's pages
 * @pool: the pool
 *
 * Context: as tw_pool_pages().
 * Return: it, with the words of all timers that there are now; NULL: nobody has mapped the table.
 */
static inline u64 **tw_pool_deadlines(const struct tw_pool *pool)
{
	return rcu_dereference_raw(pool->deadlines);
}

/* The word of a timer. @deadlines: tw_pool_deadlines(), not NULL */
static inline u64 *tw_deadline_entry(u64 **deadlines, u32 index)
{
	return &deadlines[index / TW_PAGE_DEADLINES][index % TW_PAGE_DEADLINES];
}

/* The time a word tells, whatever it is, as one of ours. */
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
 * __tw_deadline_sync - let a timer have the deadline that user space wants, one of many
 * @pool: the pool
 * @deadlines: tw_pool_deadlines()
 * @index: the timer
 * @t: the same, TW_PENDING; its part is locked
 *
 * A word can only put a timer off.
 */
static inline void __tw_deadline_sync(const struct tw_pool *pool, u64 **deadlines, u32 index,
				      struct tw_timer *t)
{
	u64 entry, time;

	if (likely(!deadlines))
		return;
	/* It may change at any time: once, and all that follows is about what was read. */
	entry = READ_ONCE(*tw_deadline_entry(deadlines, index));
	if (((u32)entry ^ t->generation) & pool->generation_mask)
		return;
	time = tw_deadline_decode(pool, entry);
	if (time > t->deadline)
		t->deadline = time;
}

/**
 * tw_deadline_sync - let a timer have the deadline that user space wants
 * @pool: the pool
 * @index: the timer
 * @t: the same, TW_PENDING; its part is locked
 */
static inline void tw_deadline_sync(const struct tw_pool *pool, u32 index, struct tw_timer *t)
{
	__tw_deadline_sync(pool, tw_pool_deadlines(pool), index, t);
}

/**
 * tw_deadline_reset - forget what user space has stored for a timer
 * @pool: the pool
 * @index: the timer; its part is locked, or it is in none yet
 * @t: the same
 *
 * For operations that set a deadline: what was stored before them counts no more. What stays is
 * whose word it is.
 */
static inline void tw_deadline_reset(const struct tw_pool *pool, u32 index,
				     const struct tw_timer *t)
{
	u64 **deadlines = tw_pool_deadlines(pool);

	if (unlikely(deadlines) && READ_ONCE(*tw_deadline_entry(deadlines, index)) != t->generation)
		WRITE_ONCE(*tw_deadline_entry(deadlines, index), t->generation);
}

/**
 * tw_deadline_new_owner - a free timer gets a new owner
 * @pool: the pool
 * @index: the timer
 * @t: the same
 */
static inline void tw_deadline_new_owner(const struct tw_pool *pool, u32 index, struct tw_timer *t)
{
	u32 generation = (t->generation + 1) & pool->generation_mask;

	/* tw_table_tag() looks at it without a lock. */
	WRITE_ONCE(t->generation, generation ?: 1);
	tw_deadline_reset(pool, index, t);
}

#endif /* TW_DEADLINES_H */
