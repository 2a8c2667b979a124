/* SPDX-License-Identifier: GPL-2.0-only */
/* The protocol of the deadline table. resident.c explains it. */
#ifndef TW_RESIDENT_H
#define TW_RESIDENT_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/timerwheel.h>
#include <linux/types.h>

#include "deadlines.h"
#include "timer.h"
#include "wheel.h"

/**
 * enum tw_visited - result of a visit of a timer that has an entry
 * @TW_VISITED_LATER: it is queued again, for its deadline
 * @TW_VISITED_FIRED: its event is delivered
 * @TW_VISITED_PARKED: its last arming was cancelled, so it is parked
 * @TW_VISITED_AGAIN: programs keep changing its entry, so it is visited again in the next tick,
 *	with one of these results
 */
enum tw_visited {
	TW_VISITED_LATER,
	TW_VISITED_FIRED,
	TW_VISITED_PARKED,
	TW_VISITED_AGAIN,
};

bool tw_resident_supported(void);
enum tw_visited tw_resident_visit(const struct tw_pool *pool, u32 index, struct tw_timer *t,
				  u64 now);
int tw_resident_set(const struct tw_pool *pool, u32 index, struct tw_timer *t, u64 deadline,
		    u64 now, bool unless_armed, int was);
void tw_resident_linger(const struct tw_pool *pool, u32 index, struct tw_timer *t, u64 now);
bool tw_resident_take(const struct tw_pool *pool, u32 index, u64 old);
u64 tw_resident_seize(const struct tw_pool *pool, u32 index, const struct tw_timer *t);
void tw_resident_release(const struct tw_pool *pool, u32 index, u64 entry);
int tw_resident_end(const struct tw_pool *pool, u32 index, struct tw_timer *t, int was);

/* Was the arming in an entry cancelled? */
static inline bool tw_resident_cancelled(const struct tw_pool *pool, const struct tw_timer *t,
					 u64 entry)
{
	return tw_deadline_valid(pool, t, entry) && !(entry & TIMERWHEEL_TABLE_ARMED);
}

/**
 * tw_timer_park - park a timer that is in no list, and has an entry or watches a connection
 * @w: the wheel of a base that is locked
 * @t: the timer
 *
 * Afterwards the bucket's lock protects the timer instead of the base's lock.
 */
static inline void tw_timer_park(struct tw_wheel *w, struct tw_timer *t)
{
	w->parked++;
	/* The last access: pairs with the acquire in tw_timer_held(); litmus resident-parked. */
	smp_store_release(&t->state, TW_PARKED);
}

#endif /* TW_RESIDENT_H */
