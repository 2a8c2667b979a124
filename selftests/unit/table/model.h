/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The model: an array of keys with the state of their timers, and from that the results that
 * operations must have. It has no lookups, lists or hashes.
 */
#ifndef MODEL_H
#define MODEL_H

#include <linux/timerwheel.h>

#include "internal.h"

/* States: enum tw_state, and these: */
#define NO_TIMER	TW_FREE

/**
 * struct entry - a key and its timer
 * @key: the key
 * @state: NO_TIMER, TW_PENDING or TW_DUE. The following are valid if there is a timer.
 * @base: number of the base whose wheel it is, or was last, in
 * @value: its value
 * @deadline: on the file's clock, without later stores in the deadline table
 * @period: its period; 0: one shot
 * @slack: its slack, in ticks
 * @index: its index
 * @generation: its generation
 * @fired: when it fell due
 * @turn: if TW_DUE: timers with smaller numbers are delivered first
 * @later: what a program has stored in its entry of the deadline table since then; 0: nothing valid
 * @written: its entry was written since model_look()
 */
struct entry {
	u64 key;
	u8 state;
	u8 base;
	u64 value;
	u64 deadline;
	u64 period;
	u64 slack;
	u32 index;
	u32 generation;
	u64 fired;
	u64 turn;
	u64 later;
	bool written;
};

/**
 * struct model - the expected state of a file
 * @file: the file
 * @entry: all keys that are ever used
 * @keys: their number
 * @owner: for each index the place of its key in @entry, plus 1; 0: no timer has the index
 * @generation: for each index the generation of its last owner; 0: it had none
 * @timers: number of timers
 * @due: number of due timers
 * @turn: of the timer that fell due last
 * @delivered: of the timer that was delivered last
 * @ring_seen: number of events in the ring that were checked
 * @offset: time namespace offset of the mappers of table and ring
 * @alike: all keys belong to the same hash chain
 */
struct model {
	struct tw_file *file;
	struct entry *entry;
	u32 keys;
	u32 *owner;
	u32 *generation;
	u32 timers;
	u32 due;
	u64 turn;
	u64 delivered;
	u32 ring_seen;
	u64 offset;
	bool alike;
};

void model_init(struct model *m, struct tw_file *file, const u64 *keys, u32 n, u64 offset,
		bool alike);
void model_free(struct model *m);

/* The deadline of a timer, with a store in the deadline table if that is later */
u64 model_deadline(const struct model *m, const struct entry *e);
/* A program has stored something in the entry of a timer. */
void model_stored(struct model *m, u32 index);
/* Its entry of the deadline table; NULL: there is none */
u64 *model_deadline_entry(const struct model *m, const struct entry *e);

/*
 * Compare a timer with the model. Call it at any time. It also updates @deadline if the module has
 * read the timer's entry of the deadline table.
 */
void model_look(struct model *m, struct entry *e);

/*
 * Check the results of an operation for a caller with time namespace offset @offset, and do the
 * same in the model. Call them in the order of the batch, and model_look() after all of them.
 */
void model_add(struct model *m, struct entry *e, const struct timerwheel_add *arg, u64 offset,
	       bool closed);
void model_move(struct model *m, struct entry *e, const struct timerwheel_move *arg, u64 offset);
void model_remove(struct model *m, struct entry *e, const struct timerwheel_remove *arg);
/*
 * The same by handle. @generation: what it was before the call. They return the key whose timer it
 * was; NULL: there was none.
 */
struct entry *model_move_handle(struct model *m, const struct timerwheel_move_handle *arg,
				u32 generation, u32 flags, u64 offset);
struct entry *model_remove_handle(struct model *m, const struct timerwheel_remove_handle *arg,
				  u32 generation);
void model_get(struct model *m, struct entry *e, const struct timerwheel_entry *arg, u64 offset);
/* LIST or, if @drained, DRAIN of the timer with this index */
void model_index(struct model *m, u32 index, int result, const struct timerwheel_entry *arg,
		 u64 offset, bool drained);

/* An event was delivered. @expiring: the base that is being expired; RIG_BASES: none */
void model_event(struct model *m, const struct timerwheel_event *event, u64 offset,
		 unsigned int expiring);
/* The same for new events in the ring */
void model_ring(struct model *m, unsigned int expiring);

/* The base of this CPU was expired. */
void model_expire(struct model *m);

#endif /* MODEL_H */
