/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Timers, and how to find one by its index.
 *
 * A timer is an object of 64 bytes in a page of 4 kB. The module refers to it by a u32 index, with
 * 0 for "none". Lists also link timers by index. An index is half the size of a pointer, so a timer
 * fits one cache line. Documentation/design/locking.md describes the locks.
 */
#ifndef TW_TIMER_H
#define TW_TIMER_H

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/types.h>

struct tw_sock;

/**
 * enum tw_state - the state of a timer
 * @TW_FREE: no timer: on a free list
 * @TW_PENDING: in a slot or a backlog of the wheel of base tw_timer.cpu
 * @TW_DUE: on the due list, or still held by an expiry batch of base tw_timer.cpu
 * @TW_CLAIMED: one-shot; its event was copied out, and the reader is about to free it. Lookups skip
 *	it.
 * @TW_PARKED: in no list: its last arming was cancelled, or it is resident and its event was
 *	delivered. Of a connection: the worker decides about it. Changed with its bucket locked
 *	only.
 */
enum tw_state {
	TW_FREE,
	TW_PENDING,
	TW_DUE,
	TW_CLAIMED,
	TW_PARKED,
};

/**
 * enum tw_stay - what happens to a timer after its event was delivered
 * @TW_ENDS: it is freed
 * @TW_PERIODIC: it is queued for its next deadline
 * @TW_RESIDENT: it is parked
 * @TW_LINGERS: resident; it is queued again, cancelled
 * @TW_SOCKET: it watches a connection; it is freed
 * @TW_WARNING: it is the warning of a TW_SOCKET timer, and exists as long as that timer
 */
enum tw_stay {
	TW_ENDS,
	TW_PERIODIC,
	TW_RESIDENT,
	TW_LINGERS,
	TW_SOCKET,
	TW_WARNING,
};

/**
 * struct tw_timer - a timer
 * @key: its key
 * @value: the caller's data, returned with each event
 * @deadline: the deadline, in ns on the file's clock
 * @period: TW_PERIODIC: ns between deadlines; TW_LINGERS: the linger in ns
 * @chain: TW_ENDS: its hash chain, so that expiry need not hash the key. Written with the chain's
 *	bucket locked. Read without a lock, and then checked again: see tw_table_lock_timer().
 * @sock: TW_SOCKET, TW_WARNING: the connection
 * @fired: TW_DUE: the time at which it fired, in ns
 * @slack: number of ticks by which it may be late to share a wake-up. In the first timer of a
 *	magazine: the number of timers in the magazine.
 * @hash_next: next in its hash chain. In the first timer of a magazine: the next magazine.
 * @next: next in its strand of a slot or backlog, on the due list or on a free list
 * @prev: previous timer in that list; for the first of a strand, TW_HEAD and the strand's number
 * @cpu: the CPU of the base whose wheel it is in, or was in last
 * @state: enum tw_state
 * @stay: enum tw_stay; selects @period, @chain or @sock
 * @generation: number of owners that the index has had, limited to the bits in an entry of the
 *	deadline table, and never 0; see deadlines.h
 */
struct tw_timer {
	u64 key;
	u64 value;
	u64 deadline;
	union {
		u64 period;
		u32 *chain;
		struct tw_sock *sock;
	};
	u64 fired;
	u32 slack;
	u32 hash_next;
	u32 next;
	u32 prev;
	u16 cpu;
	u8 state;
	u8 stay;
	u32 generation;
};

static_assert(sizeof(struct tw_timer) == 64);

static __always_inline bool tw_timer_has_sock(const struct tw_timer *t)
{
	return t->stay == TW_SOCKET;
}

/* The period or linger of a timer that cannot change during the call; 0: it has none. */
static inline u64 tw_timer_period(const struct tw_timer *t)
{
	return unlikely(t->stay == TW_PERIODIC || t->stay == TW_LINGERS) ? t->period : 0;
}

/*
 * The unit in which timers and buckets are allocated, in bytes. PAGE_SIZE would be too large: with
 * pages of 64 kB, each of ten thousand small wheels would pay for a thousand timers.
 */
#define TW_PAGE		4096U

/* Timers in it. */
#define TW_PAGE_TIMERS	(TW_PAGE / (u32)sizeof(struct tw_timer))

/**
 * struct tw_pool - all timers of a file, by index
 * @page: directory of their pages. Entries are set once and never change; the directory is replaced
 *	by a larger copy as the pool grows.
 * @deadlines: directory of the pages of the deadline table, replaced like @page; NULL: the wheel
 *	has no table. Every timer has an entry. See deadlines.h.
 * @deadlines_offset: how far the times in there are ahead of those in the kernel (modulo 2^64), by
 *	the time namespace of the task that created the table
 * @generation_mask: the lower bits of an entry, which hold generation and state
 * @stay: enum tw_stay of timers without a period
 *
 * Whether there is a table, and all that follows @deadlines, is constant once there are timers.
 */
struct tw_pool {
	struct tw_timer **page;
	u64 **deadlines;
	u64 deadlines_offset;
	u32 generation_mask;
	u8 stay;
};

/* Has a pool a deadline table? */
static inline bool tw_pool_table(const struct tw_pool *pool)
{
	return READ_ONCE(pool->deadlines);
}

/* Are the timers of a pool resident? Then it has a deadline table. */
static inline bool tw_pool_resident(const struct tw_pool *pool)
{
	return pool->stay == TW_RESIDENT;
}

/**
 * tw_pool_pages - the directory of a pool's pages
 * @pool: the pool
 *
 * Context: any.
 * Return: the directory, which contains all timers that exist now. It lives as long as the file.
 */
static inline struct tw_timer **tw_pool_pages(const struct tw_pool *pool)
{
	/* Pairs with the release in tw_dir_publish(); litmus dependency. */
	return READ_ONCE(pool->page);
}

/**
 * tw_timer_in_pages - find a timer by its index, in a directory that was read before
 * @pages: tw_pool_pages()
 * @index: an existing index, not 0
 *
 * Return: the timer. It lives as long as the file.
 */
static __always_inline struct tw_timer *tw_timer_in_pages(struct tw_timer **pages, u32 index)
{
	return &pages[index / TW_PAGE_TIMERS][index % TW_PAGE_TIMERS];
}

/**
 * tw_timer_at - find a timer by its index
 * @pool: the pool
 * @index: an existing index, not 0
 *
 * Context: as tw_pool_pages().
 * Return: the timer. It lives as long as the file.
 */
static inline struct tw_timer *tw_timer_at(const struct tw_pool *pool, u32 index)
{
	return tw_timer_in_pages(tw_pool_pages(pool), index);
}

#endif /* TW_TIMER_H */
