/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a wheel should do, so plain that it is obviously right: pending timers
 * in an array sorted by the tick at which each must have fired.
 */
#ifndef MODEL_H
#define MODEL_H

#include <linux/types.h>

/**
 * enum model_state - what the model thinks of a timer
 * @MODEL_FREE: there is none under this index
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
 * @moved: deadline or bias changed since the wheel last looked at them: the timer
 *	may still be queued for its old tick
 * @slack: ticks it may be late
 * @deadline: when, in ns
 * @target: the tick at which it is to fire
 * @floor: a timer that is inserted when its tick has begun need not fire before this tick
 * @bound: by the end of this tick it must have fired: the later of @target and @floor
 * @queued: the tick for which the wheel has queued it
 * @level: and in which level at that time
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
 * struct model_entry - a pending timer in its order
 * @bound: its model_timer.bound
 * @index: which
 */
struct model_entry {
	u64 bound;
	u32 index;
};

/**
 * struct model - all timers
 * @tick: length of a tick in ns
 * @bias: ns added to a deadline before it is turned into a tick
 * @timer: timers by index
 * @order: those that are pending, sorted
 * @count: how many
 * @moved: how many of them have moved
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
