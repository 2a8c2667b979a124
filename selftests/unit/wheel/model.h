/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A model of a wheel that is simple enough to be obviously right: the pending timers in an array
 * sorted by the tick at the end of which each must have fired.
 */
#ifndef MODEL_H
#define MODEL_H

#include <linux/types.h>

/**
 * enum model_state - the state of a timer
 * @MODEL_FREE: no timer has this index
 * @MODEL_PENDING: in the wheel
 * @MODEL_DUE: fired, not yet taken
 */
enum model_state {
	MODEL_FREE,
	MODEL_PENDING,
	MODEL_DUE,
};

/**
 * struct model_timer - a timer
 * @state: enum model_state
 * @moved: deadline or bias have changed since the wheel last visited the timer, which may still be
 *	queued for its old tick
 * @slack: how many ticks later it may fire
 * @deadline: its deadline, in ns
 * @target: the tick in which it is to fire
 * @floor: the tick after the tick of its insertion, before which it need not fire
 * @bound: the tick by the end of which it must have fired: the later of @target and @floor
 * @queued: the tick for which the wheel has queued it...
 * @level: ...and the level that it was queued in
 */
struct model_timer {
	u8 state;
	bool moved;
	u32 slack;
	u64 deadline;
	u64 target;
	u64 floor;
	u64 bound;
	u64 queued;
	unsigned int level;
};

/**
 * struct model_entry - a pending timer in the sorted array
 * @bound: its model_timer.bound
 * @index: its index
 */
struct model_entry {
	u64 bound;
	u32 index;
};

/**
 * struct model - all timers of a wheel
 * @tick: length of a tick in ns
 * @bias: ns added to a deadline before it is converted to ticks
 * @timer: timers by index
 * @order: the pending timers, sorted
 * @count: their number
 * @moved: the number of those with model_timer.moved
 */
struct model {
	u64 tick;
	u64 bias;
	struct model_timer *timer;
	struct model_entry *order;
	u32 count;
	u32 moved;
};

void model_init(struct model *m, u64 tick, u32 max);
void model_free(struct model *m);
u64 model_tick(const struct model *m, u64 ns);
u64 model_first(const struct model *m, u64 deadline);
u64 model_target(const struct model *m, u64 deadline, u32 slack);
void model_insert(struct model *m, u32 index, u64 deadline, u32 slack, u64 now, u64 cursor);
void model_postpone(struct model *m, u32 index, u64 deadline, u32 slack);
void model_set_bias(struct model *m, u64 bias, u64 floor);
void model_remove(struct model *m, u32 index);
u64 model_bound(const struct model *m);

#endif /* MODEL_H */
