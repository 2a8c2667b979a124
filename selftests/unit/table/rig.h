/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file with its CPU bases, and what the module's other files do for table, operations, events
 * and ring: time, user accounting, expiry, memory that is there or not.
 */
#ifndef RIG_H
#define RIG_H

#include "internal.h"

#define RIG_BASES	2U

/**
 * struct rig_setup - what a file is made with
 * @bases: CPUs, 1 or 2
 * @slots: slots per level
 * @tick: in ns
 * @capacity: most timers
 * @generation_bits: of a word of the deadline table
 * @ring: events in the ring, 0: there is none
 * @offset: what the time namespace of those who share memory with us adds, in ns
 */
struct rig_setup {
	unsigned int bases;
	unsigned int slots;
	u64 tick;
	u32 capacity;
	unsigned int generation_bits;
	u32 ring;
	u64 offset;
};

/* The time, in ns. */
extern u64 rig_now;

/* Bytes charged to the user. */
extern u64 rig_charged;

/* Asked when memory is allocated: is there none? NULL: there always is. */
extern bool (*rig_refuse)(void);

/* Asked when user memory is written: does it fault? NULL: never. */
extern bool (*rig_fault)(void);

/* Asked when memory is charged: is that allowed? NULL: always. */
extern bool (*rig_allow)(void);

/*
 * Called where other CPUs may do something in the middle of an operation: a bucket is about to be
 * locked, or our base was unlocked for a moment. NULL: nothing is done.
 */
extern void (*rig_gap)(void);

/* Called where others may run in the middle of long work. NULL: nothing is done. */
extern void (*rig_resched)(void);

/* Do raw locks forbid that the CPU with number @nr begins a run? */
bool rig_base_locked(const struct tw_file *file, unsigned int nr);

struct tw_file *rig_make(const struct rig_setup *setup);
void rig_free(struct tw_file *file);

/* Expire the base of the CPU that we are on, until it has no more work. */
void rig_expire(struct tw_file *file);

#endif /* RIG_H */
