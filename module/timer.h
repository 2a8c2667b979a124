/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A timer, and how one is found by its index.
 *
 * Timers are 64-byte objects in pages of 4 kB, named by a u32 index (0 is "none"),
 * which also serves as the link in every list: half the size of a pointer, so that
 * all of a timer fits in one cache line. Which lock protects what is told in
 * README.md, "Locks".
 */
#ifndef TW_TIMER_H
#define TW_TIMER_H

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

/**
 * enum tw_state - where a timer is in its life
 * @TW_FREE: not a timer: on a free list
 * @TW_PENDING: in a slot (or on the backlog) of the wheel of CPU part tw_timer.cpu
 * @TW_DUE: on the file's list of due timers
 * @TW_CLAIMED: one shot, its event copied to a reader, soon to be freed by it;
 *	look-ups pass over it
 */
enum tw_state {
	TW_FREE,
	TW_PENDING,
	TW_DUE,
	TW_CLAIMED,
};

/**
 * struct tw_timer - a timer
 * @key: the caller's name for it
 * @value: the caller's word about it
 * @deadline: when it falls due, in ns on the file's clock
 * @period: of a periodic timer: ns between deadlines
 * @chain: of any other one, which has no such: where it is in the key table, so that expiry need
 *	not look for it. Written with the chain's bucket locked; read without, and then to be
 *	looked at again: see tw_table_lock_timer().
 * @fired: TW_DUE: when that was seen, in ns
 * @slack: ticks it may be late so as to share a wake-up
 * @hash_next: next in the chain of its hash bucket
 * @next: next in its slot, on the due list or on a free list
 * @prev: the one before it there; for the first in a slot TW_HEAD and the slot's number
 * @cpu: number of the CPU part whose wheel it is, or last was, in
 * @state: enum tw_state
 * @periodic: has @period, not @chain
 * @generation: how often the index had a new owner, modulo what fits a word of the deadline
 *	table and never 0; see deadlines.h
 */
struct tw_timer {
	u64 key;
	u64 value;
	u64 deadline;
	union {
		u64 period;
		u32 *chain;
	};
	u64 fired;
	u32 slack;
	u32 hash_next;
	u32 next;
	u32 prev;
	u16 cpu;
	u8 state;
	bool periodic;
	u32 generation;
};

static_assert(sizeof(struct tw_timer) == 64);

/* Its period, 0 for one shot. Context: the timer cannot change meanwhile. */
static inline u64 tw_timer_period(const struct tw_timer *t)
{
	return unlikely(t->periodic) ? t->period : 0;
}

/*
 * A page of the table, in bytes: what timers and buckets are allocated in. Not PAGE_SIZE: with
 * 64 kB each of ten thousand small wheels would pay for a thousand timers.
 */
#define TW_PAGE		4096U

/* Timers in it. */
#define TW_PAGE_TIMERS	(TW_PAGE / (u32)sizeof(struct tw_timer))

/**
 * struct tw_pool - all timers of a file, by index
 * @page: directory of their pages. Entries are set once and never change; the
 *	directory itself is replaced by a larger copy as the pool grows.
 * @deadlines: the same for the pages of the deadline table; NULL: nobody has mapped it. Where
 *	there is a timer there is its word. See deadlines.h.
 * @deadlines_offset: what user space's times in there are ahead of ours (modulo 2^64); constant
 *	once @deadlines is set
 * @generation_mask: the lower bits of a word, which hold a generation; constant once there are
 *	timers
 */
struct tw_pool {
	struct tw_timer *__rcu *page;
	u64 *__rcu *deadlines;
	u64 deadlines_offset;
	u32 generation_mask;
};

/**
 * tw_pool_pages - the directory of a pool's pages
 * @pool: the pool
 *
 * Context: with preemption or bottom halves off, or inside rcu_read_lock(), so that the
 * directory read here stays in memory while it is used.
 * Return: it. Whatever is made later, all timers that there are now are found in it.
 */
static inline struct tw_timer **tw_pool_pages(const struct tw_pool *pool)
{
	return rcu_dereference_raw(pool->page);
}

/**
 * tw_timer_in_pages - find a timer by its index, one of many
 * @pages: tw_pool_pages()
 * @index: an index that was handed out, not 0
 *
 * Return: the timer. It lives as long as the file.
 */
static inline struct tw_timer *tw_timer_in_pages(struct tw_timer **pages, u32 index)
{
	return &pages[index / TW_PAGE_TIMERS][index % TW_PAGE_TIMERS];
}

/**
 * tw_timer_at - find a timer by its index
 * @pool: the pool
 * @index: an index that was handed out, not 0
 *
 * Context: as tw_pool_pages().
 * Return: the timer. It lives as long as the file.
 */
static inline struct tw_timer *tw_timer_at(const struct tw_pool *pool, u32 index)
{
	return tw_timer_in_pages(tw_pool_pages(pool), index);
}

#endif /* TW_TIMER_H */
