/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The deadline table: a u64 for each timer, by index, in memory that user space maps and may write
 * at any time. SETUP creates it. A wheel without a table never gets one.
 *
 * An entry is a deadline, rounded up to a multiple of 2^generation_bits, the generation of the
 * timer that owns it, and a state (resident.c). An index is reused for other timers, and each new
 * owner has another generation. So a late operation of a former owner fails.
 *
 * An operation on an entry causes no work. The kernel reads an entry when it deals with the timer
 * anyway: its slot comes up, or a call reports or changes its deadline.
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
	pool->stay = resident ? TW_RESIDENT : TW_ENDS;
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

/* The entry of a timer. @deadlines is not NULL. */
static inline u64 *tw_deadline_entry(u64 **deadlines, u32 index)
{
	return &deadlines[index / TW_PAGE_DEADLINES][index % TW_PAGE_DEADLINES];
}

/* The deadline in an entry, clamped, in the initial time namespace. The entry may be any number. */
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

/* Is an entry one that a program may have written for @t, which is pending? */
static inline bool tw_deadline_valid(const struct tw_pool *pool, const struct tw_timer *t,
				     u64 entry)
{
	u32 owner = pool->generation_mask & ~TIMERWHEEL_TABLE_ARMED;

	return !(((u32)entry ^ t->generation) & owner);
}

/**
 * tw_deadline_apply - postpone a timer if its entry has a later deadline
 * @pool: the pool
 * @t: the timer; its base is locked
 * @entry: the value that was read from its entry
 *
 * An entry can only postpone a timer.
 */
static inline void tw_deadline_apply(const struct tw_pool *pool, struct tw_timer *t, u64 entry)
{
	u64 time;

	if (!tw_deadline_valid(pool, t, entry))
		return;
	time = tw_deadline_decode(pool, entry);
	if (time > t->deadline)
		t->deadline = time;
}

/**
 * tw_deadline_sync - postpone a timer if user space did
 * @pool: the pool
 * @deadlines: what tw_pool_deadlines() returned
 * @index: the timer
 * @t: the same, TW_PENDING; its base is locked
 */
static inline void tw_deadline_sync(const struct tw_pool *pool, u64 **deadlines, u32 index,
				    struct tw_timer *t)
{
	/* Read once: it may change at any time. */
	if (unlikely(deadlines))
		tw_deadline_apply(pool, t, READ_ONCE(*tw_deadline_entry(deadlines, index)));
}

/**
 * tw_deadline_new_owner - give a free timer the generation of its new owner
 * @pool: the pool
 * @t: the timer. tw_deadline_set() follows.
 *
 * The two lowest bits are for the state.
 */
static __always_inline void tw_deadline_new_owner(const struct tw_pool *pool, struct tw_timer *t)
{
	const u32 step = TIMERWHEEL_TABLE_FIRED + 1;
	u32 generation = (t->generation + step) & pool->generation_mask;

	t->generation = generation ?: step;
}

#endif /* TW_DEADLINES_H */
