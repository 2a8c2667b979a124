/* SPDX-License-Identifier: GPL-2.0-only */
/* The timing wheel: see wheel.c for how it works. */
#ifndef TW_WHEEL_H
#define TW_WHEEL_H

#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/types.h>
#include <linux/timerwheel.h>

#include "timer.h"

/* Flag in tw_timer.prev of the first timer in a strand. The other bits are the strand's number. */
#define TW_HEAD		BIT(31)

/* Maximum number of backlogs: see "Oversized ticks" in wheel.c. */
#define TW_BACKLOGS	32U

/* Number of strands of a list in a large wheel: see "Strands" in wheel.c. A power of two. */
#define TW_STRANDS	8U

/* A wheel is large when it has this number of pending timers per list ... */
#define TW_STRAND_TIMERS	16U

/* ... and no more than this number of lists: their heads are copied while its base is locked. */
#define TW_STRAND_LISTS		16384U

/* tw_wheel.work of a wheel without timers. In other places: never. */
#define TW_NEVER	U64_MAX

/* Limits of the bias and of a timer's slack, in ns: see tw_fire_tick(). */
#define TW_BIAS_MAX	BIT_ULL(62)
#define TW_SLACK_MAX	BIT_ULL(61)

/* Limits of SETUP. At most 21 levels: 2^64 ticks of 1 ns in levels of 8 slots. */
#define TW_SLOTS_MIN	8U
#define TW_SLOTS_MAX	4096U

/**
 * struct tw_due_list - a list of due timers, in the order in which they fired
 * @first: index of the first; 0: the list is empty
 * @last: index of the last
 * @count: number of timers
 *
 * Doubly linked by tw_timer.next and tw_timer.prev, 0 at either end.
 */
struct tw_due_list {
	u32 first;
	u32 last;
	u32 count;
};

/**
 * struct tw_wheel - a hierarchical timing wheel
 * @pool: the pool of the timers
 * @head: first timer of each strand: the first strands of all lists, then their second strands, and
 *	so on. Lists are levels * level_size slots, then TW_BACKLOGS backlogs.
 * @occupied: a bit for each list, set if the list is not empty
 * @strand: by index modulo TW_STRANDS of a timer: the number of its strand minus the number of its
 *	list
 * @lists: number of lists
 * @strands: strands of each list: 1 or TW_STRANDS
 * @tick: length of a tick in ns
 * @bias: added to a deadline, in ns, before it is converted to a tick. It grows when a clock is set
 *	back, so that the wheel's own time never goes back.
 * @cursor: no timer in a slot belongs to a tick before this one
 * @work: there is nothing to do before this tick
 * @level_size: slots of each level: 2 * S
 * @level_mask: @level_size - 1
 * @busy: a bit for each level, set if the level may hold timers
 * @shift: log2 of S: a slot spans S slots of the level below
 * @levels: number of levels
 * @backlog_first: number of the oldest backlog in use, modulo TW_BACKLOGS
 * @backlogs: number of backlogs in use
 * @pending: number of timers in slots and backlogs
 * @parked: timers that were parked here less those that were unparked here, modulo 2^64
 * @expired: timers that have fallen due, in total
 * @cascades: timers moved to a lower level, in total
 * @requeues: timers visited before their deadline and queued again, because they were postponed
 *	or come from a backlog, in total
 * @late_max: largest lateness, in ns
 * @lateness: histogram of latenesses, by fls64() of the ns. User space sees fewer buckets (struct
 *	timerwheel_stats).
 * @sooner: there may be work earlier than the engine expects: @work was lowered, or the caller has
 *	work. The code that acts on it clears it.
 * @reach: for each x, the lowest level whose 2 * S slots span more than 2^x ticks: its first list,
 *	and log2 of the ticks in one of its slots
 */
struct tw_wheel {
	const struct tw_pool *pool;
	u32 *head;
	unsigned long *occupied;
	u32 strand[TW_STRANDS];
	u32 lists;
	u32 strands;
	u64 tick;
	u64 bias;
	u64 cursor;
	u64 work;
	u32 level_size;
	u32 level_mask;
	u32 busy;
	u8 shift;
	u8 levels;
	u8 backlog_first;
	u8 backlogs;
	u32 pending;
	u64 parked;
	u64 expired;
	u64 cascades;
	u64 requeues;
	u64 late_max;
	u64 lateness[65];
	bool sooner;
	struct {
		u32 list;
		u8 shift;
	} reach[64];
};

/* Should the lists of a wheel get more strands? The wheel need not be locked. */
static inline bool tw_wheel_large(const struct tw_wheel *w)
{
	return w->strands == 1 && w->lists <= TW_STRAND_LISTS &&
	       READ_ONCE(w->pending) / TW_STRAND_TIMERS >= w->lists;
}

unsigned int tw_wheel_levels(unsigned int slots, u64 tick);
unsigned int tw_wheel_lists(unsigned int slots, u64 tick);
void tw_wheel_init(struct tw_wheel *w, const struct tw_pool *pool, u32 *head,
		   unsigned long *occupied, unsigned int slots, u64 tick, u64 now);
void tw_wheel_spread(struct tw_wheel *w, u32 *head);
void tw_wheel_set_first(struct tw_wheel *w, unsigned int strand, u32 first);
void tw_wheel_open_slot(struct tw_wheel *w, unsigned int list, u64 b);
bool tw_wheel_collect(struct tw_wheel *w, u64 now, u64 now_ns, unsigned int budget,
		      bool manual, bool last, struct tw_due_list *due);
u64 tw_wheel_first(struct tw_wheel *w, unsigned int *left);
void tw_wheel_count_lateness(struct tw_wheel *w, u64 late);

#endif /* TW_WHEEL_H */
