/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The slots of a wheel: the slot of a timer, insertion and removal. Every operation uses these
 * functions, so all are inline. wheel.c explains slots and levels.
 */
#ifndef TW_SLOTS_H
#define TW_SLOTS_H

#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "wheel.h"

/*
 * The tick at which to fire @t: without slack, the first tick that is not before the deadline. With
 * slack, up to @t->slack later ticks are allowed; of these, return the multiple of the largest
 * power of two, so that timers with slack share ticks.
 *
 * Neither the sum nor the levels overflow: in ns, a deadline is below 2^63, the bias at most
 * TW_BIAS_MAX, the slack at most TW_SLACK_MAX and a tick below 2^60.
 */
static inline u64 tw_fire_tick(const struct tw_wheel *w, const struct tw_timer *t)
{
	u64 first = div64_u64(t->deadline + w->bias + w->tick - 1, w->tick);
	u64 last;

	if (likely(!t->slack))
		return first;
	last = first + t->slack;
	return last & (~0ULL << (fls64((first - 1) ^ last) - 1));
}

/**
 * __tw_place - put a timer into the slot of a tick, without counting it as pending
 * @w: the wheel
 * @pages: tw_pool_pages()
 * @index: the timer's index
 * @t: the timer
 * @tick: the tick; a tick before the cursor means the cursor's tick
 */
static __always_inline void __tw_place(struct tw_wheel *w, struct tw_timer **pages, u32 index,
				       struct tw_timer *t, u64 tick)
{
	u64 b = max(tick, w->cursor), delta = b - w->cursor;
	unsigned int list = 0, shift = 0, strand;
	u32 first;

	if (delta >= w->level_size) {
		/* Use the lowest level with slots for that many ticks ... */
		list = w->reach[__fls(delta)].list;
		shift = w->reach[__fls(delta)].shift;
		b >>= shift;
		/*
		 * ... or the next level: counted from the cursor's slot, it can be one slot more.
		 */
		if (unlikely(b - (w->cursor >> shift) >= w->level_size)) {
			list += w->level_size;
			shift += w->shift;
			b >>= w->shift;
		}
	}
	list += b & w->level_mask;
	strand = list + w->strand[index % TW_STRANDS];
	first = w->head[strand];
	t->prev = TW_HEAD | strand;
	w->head[strand] = index;
	t->next = first;
	/* If the strand was not empty, the wheel has already accounted for it. */
	if (likely(first))
		tw_timer_in_pages(pages, first)->prev = index;
	else
		tw_wheel_open_slot(w, list, b);
}

/**
 * tw_place - put a timer into its slot, without counting it as pending
 * @w: the wheel
 * @pages: tw_pool_pages()
 * @index: the timer's index
 * @t: the timer
 */
static __always_inline void tw_place(struct tw_wheel *w, struct tw_timer **pages, u32 index,
				     struct tw_timer *t)
{
	__tw_place(w, pages, index, t, tw_fire_tick(w, t));
}

/**
 * tw_wheel_catch_up - advance the cursor to the present
 * @w: the wheel
 * @now: the current tick
 *
 * Call it before tw_wheel_insert(), so that the timer goes to the lowest possible level. It does
 * nothing while there is work to do, because the cursor must not pass that.
 */
static inline void tw_wheel_catch_up(struct tw_wheel *w, u64 now)
{
	if (w->work > now && w->cursor <= now)
		w->cursor = now + 1;
}

/**
 * tw_wheel_insert - queue a timer
 * @w: the wheel
 * @index: the timer's index
 * @t: the timer, in no list, with its deadline and slack
 *
 * May lower @w->work.
 */
static __always_inline void tw_wheel_insert(struct tw_wheel *w, u32 index, struct tw_timer *t)
{
	tw_place(w, tw_pool_pages(w->pool), index, t);
	w->pending++;
}

/**
 * tw_wheel_remove - remove a timer
 * @w: the wheel that it is in
 * @t: the timer
 *
 * Does not change @w->work: at worst there is nothing to do at that tick.
 */
static __always_inline void tw_wheel_remove(struct tw_wheel *w, struct tw_timer *t)
{
	u32 next = t->next;
	u32 prev = t->prev;

	if (prev & TW_HEAD) {
		tw_wheel_set_first(w, prev & ~TW_HEAD, next);
	} else {
		tw_timer_at(w->pool, prev)->next = next;
		if (next)
			tw_timer_at(w->pool, next)->prev = prev;
	}
	w->pending--;
}

#endif /* TW_SLOTS_H */
