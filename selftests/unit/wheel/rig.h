/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A wheel, and replacements for the module's other files: memory, the due list, removal of timers
 * from it.
 */
#ifndef RIG_H
#define RIG_H

#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/types.h>

#include "deadlines.h"
#include "wheel.h"

/* Called before each compare-and-swap of an entry; NULL: no other program writes to it. */
extern void (*rig_hammer)(u64 *entry);

/**
 * struct rig - a wheel with all its memory
 * @w: the wheel
 * @pool: its timers, with the indices 1 to @max. Each page is a separate allocation.
 * @page: the pool's directory
 * @deadlines: directory of the deadline table; NULL: there is none
 * @head: heads of the lists of @w while they have one strand
 * @heads: heads of all strands
 * @chain: the hash chain of all timers
 * @due: timers that fell due
 * @slots: slots per level
 * @lists: lists in @w: slots of all levels and backlogs
 * @max: largest index
 */
struct rig {
	struct tw_wheel w;
	struct tw_pool pool;
	struct tw_timer **page;
	u64 **deadlines;
	u32 *head;
	u32 *heads;
	u32 chain;
	struct tw_due_list due;
	unsigned int slots;
	unsigned int lists;
	u32 max;
};

void rig_init(struct rig *r, unsigned int slots, u64 tick, u64 now, u32 max, unsigned int bits);
void rig_restart(struct rig *r, u64 now);
void rig_spread(struct rig *r);
void rig_free(struct rig *r);

static inline struct tw_timer *rig_timer(const struct rig *r, u32 index)
{
	return tw_timer_at(&r->pool, index);
}

/* Arm a timer in its entry, if there is a deadline table, without another deadline. */
static inline void rig_reset(const struct rig *r, u32 index)
{
	if (r->deadlines)
		*tw_deadline_entry(r->deadlines, index) = rig_timer(r, index)->generation |
							  TIMERWHEEL_TABLE_ARMED;
}

u64 rig_deadline(const struct rig *r, u32 index);
void rig_catch_up(struct rig *r, u64 now);
void rig_add(struct rig *r, u32 index, u64 deadline, u32 slack);
void rig_remove(struct rig *r, u32 index);
void rig_take_due(struct rig *r, u32 index);
void rig_resident(struct rig *r, unsigned int bits);
u64 *rig_entry(const struct rig *r, u32 index);
void rig_add_resident(struct rig *r, u32 index, u64 deadline);

/* Number of slots of each level */
static inline unsigned int rig_level_size(const struct rig *r)
{
	return 2 * r->slots;
}

/* Number of timers that the wheel has handled so far */
static inline u64 rig_visits(const struct rig *r)
{
	return r->w.expired + r->w.cascades + r->w.requeues;
}

#endif /* RIG_H */
