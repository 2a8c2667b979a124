/* SPDX-License-Identifier: GPL-2.0-only */
/* The timing wheel alone; see wheel.c for how it works. */
#ifndef TW_WHEEL_H
#define TW_WHEEL_H

#include <linux/bits.h>
#include <linux/types.h>
#include <linux/timerwheel.h>

#include "timer.h"

/* Marks tw_timer.prev of the first timer in a list: the rest is the list's number. */
#define TW_HEAD		BIT(31)

/* Oversized ticks whose remainder may wait at the same time. */
#define TW_BACKLOGS	32U

/* No work: tw_wheel.work of a wheel that has nothing to wait for. */
#define TW_NEVER	U64_MAX

/* Most that the bias and a timer's slack may be, in ns: see tw_fire_tick(). */
#define TW_BIAS_MAX	BIT_ULL(62)
#define TW_SLACK_MAX	BIT_ULL(61)

/* Limits of SETUP. At most 21 levels: 2^64 ticks of 1 ns in levels of 8 slots. */
#define TW_SLOTS_MIN	8U
#define TW_SLOTS_MAX	4096U

/**
 * struct tw_due_list - a list of timers that fell due, first fired first
 * @first: index of the first, 0: none
 * @last: index of the last
 * @count: how many
 *
 * Linked both ways by tw_timer.next and tw_timer.prev, 0 at either end.
 */
struct tw_due_list {
	u32 first;
	u32 last;
	u32 count;
};

/**
 * struct tw_wheel - a hierarchical timing wheel
 * @pool: where the timers are
 * @head: first timer of each list: levels * ring slots, then TW_BACKLOGS backlogs
 * @occupied: a bit for each of these lists that is not empty
 * @tick: length of a tick in ns
 * @bias: ns added to a deadline before it is turned into a tick: grows when a clock is
 *	set back, so that the wheel's own time never does
 * @cursor: no timer in a slot belongs to a tick before this one
 * @work: nothing needs to be done before this tick
 * @level_size: slots of each level
 * @shift: log2 of the slots by which one level turns for one slot of the next
 * @levels: how many there are
 * @busy: a bit for each level that may hold timers
 * @backlog_first: number of the oldest backlog in use, modulo TW_BACKLOGS
 * @backlogs: how many are in use
 * @pending: timers in slots and backlogs
 * @expired: timers that fell due, ever
 * @cascades: timers moved to a lower level, ever
 * @requeues: timers visited before their deadline and queued again (it was put off, or
 *	they come from a backlog), ever
 * @late_max: largest lateness, in ns
 * @lateness: histogram of it, by the number of its highest bit: user space gets less of it
 *	(struct timerwheel_stats)
 * @sooner: there is something to do earlier than was known: @work was lowered, or something of
 *	the caller's. Who has seen to that clears it.
 * @reach: the lowest level whose ring is longer than a number of ticks, by the number of that
 *	number's highest bit: its first list, and log2 of how many ticks a slot of it is long
 */
struct tw_wheel {
	const struct tw_pool *pool;
	u32 *head;
	unsigned long *occupied;
	u64 tick;
	u64 bias;
	u64 cursor;
	u64 work;
	u32 level_size;
	u32 busy;
	u8 shift;
	u8 levels;
	u8 backlog_first;
	u8 backlogs;
	u32 pending;
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

unsigned int tw_wheel_levels(unsigned int slots, u64 tick);
unsigned int tw_wheel_lists(unsigned int slots, u64 tick);
void tw_wheel_init(struct tw_wheel *w, const struct tw_pool *pool, u32 *head,
		   unsigned long *occupied, unsigned int slots, u64 tick, u64 now);
void tw_wheel_set_first(struct tw_wheel *w, unsigned int list, u32 first);
void tw_wheel_open_slot(struct tw_wheel *w, unsigned int list, u64 b);
bool tw_wheel_collect(struct tw_wheel *w, u64 now, u64 now_ns, unsigned int budget,
		      bool manual, bool last, struct tw_due_list *due);
u64 tw_wheel_first(struct tw_wheel *w);
void tw_wheel_count_lateness(struct tw_wheel *w, u64 late);

#endif /* TW_WHEEL_H */
