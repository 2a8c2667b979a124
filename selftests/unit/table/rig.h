/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file with its bases, and replacements for the module's other files that table, operations,
 * events and ring call: time, user accounting, expiry.
 */
#ifndef RIG_H
#define RIG_H

#include "internal.h"

#define RIG_BASES	3U

/**
 * struct rig_setup - settings of a file
 * @bases: CPUs with a base, 1 to RIG_BASES
 * @slots: slots per level
 * @tick: in ns
 * @capacity: maximum number of timers
 * @generation_bits: bits of an entry of the deadline table that hold the generation
 * @ring: length of the event ring; 0: there is none
 * @offset: time namespace offset of the mapper of the ring, in ns
 * @table: there is a deadline table
 * @resident: timers are resident; there is a deadline table
 */
struct rig_setup {
	unsigned int bases;
	unsigned int slots;
	u64 tick;
	u32 capacity;
	unsigned int generation_bits;
	u32 ring;
	u64 offset;
	bool table;
	bool resident;
};

/* The time, in ns. */
extern u64 rig_now;

/* Bytes charged to the user. */
extern u64 rig_charged;

/* Called when memory is allocated: true if the allocation is to fail. NULL: none fails. */
extern bool (*rig_refuse)(void);

/* Called when user memory is written: true if the write is to fault. NULL: none faults. */
extern bool (*rig_fault)(void);

/* User memory can be faulted in, even if each write there faults. */
extern bool rig_unwritable;

/* Called when memory is charged: false if the charge is to fail. NULL: none fails. */
extern bool (*rig_allow)(void);

/*
 * Called where another CPU may run in the middle of an operation: before a bucket is locked, and
 * before the free timers of all bases are gathered. May be NULL.
 */
extern void (*rig_gap)(void);

/* Called before each READ_ONCE(), and each compare-and-swap of an entry. May be NULL. */
extern void (*rig_read)(const void *place);
extern void (*rig_hammer)(u64 *entry);

/* Called by cond_resched(). May be NULL. */
extern void (*rig_resched)(void);

/* Was the task killed? NULL: it was not. */
extern bool (*rig_killed)(void);

/* Called when an index is limited for speculation, too. May be NULL. */
extern void (*rig_nospec)(unsigned long index, unsigned long size);

/* Batches that this CPU has begun with the base of another one locked as well */
extern unsigned int rig_two;

/* Would CPU @nr wait for a raw lock if it began a batch? */
bool rig_base_locked(const struct tw_file *file, unsigned int nr);

struct tw_file *rig_make(const struct rig_setup *setup);
void rig_free(struct tw_file *file);

/* Expire the base of this CPU until it has no more work. */
void rig_expire(struct tw_file *file);

#endif /* RIG_H */
