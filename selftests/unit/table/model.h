/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What should happen: an array of keys with what is known of each one's timer, and what an
 * operation must say about it. Nothing is looked up, linked or hashed.
 */
#ifndef MODEL_H
#define MODEL_H

#include <linux/timerwheel.h>

#include "internal.h"

/* enum tw_state, and: */
#define NO_TIMER	TW_FREE

/**
 * struct entry - a key and its timer
 * @key: the key
 * @state: NO_TIMER, TW_PENDING or TW_DUE; and of a timer that there is:
 * @base: whose wheel it is, or last was, in
 * @value: as ADD had it
 * @deadline: on the file's clock, as far as calls have set it
 * @period: 0: one shot
 * @slack: in ticks
 * @index: the timer
 * @generation: its owner's
 * @fired: when it fell due
 * @turn: TW_DUE: those with smaller ones are delivered first
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
};

/**
 * struct model - what should be in a file
 * @file: the file
 * @entry: all keys that are ever used
 * @keys: how many
 * @owner: for each index its key's place in @entry and 1 more, 0: no timer has it
 * @generation: for each index that of its last owner, 0: it had none
 * @timers: how many timers there are
 * @due: of these, how many are due
 * @turn: of what fell due last
 * @delivered: turn of what was delivered last
 * @ring_seen: events in the ring that were looked at
 * @offset: of those who share memory with the kernel
 * @alike: all keys have the same hash chain
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

/* The deadline that a timer has now that user space may have stored another one. */
u64 model_deadline(const struct model *m, const struct entry *e);
/* Its word of the deadline table, NULL: there is none. */
u64 *model_word(const struct model *m, const struct entry *e);

/* Does the file agree about a timer? To be called at any time; sees to @deadline, too. */
void model_look(struct model *m, struct entry *e);

/*
 * An operation was done for the caller whose offset is @offset: is it right what it said? In the
 * order of a batch; model_look() once all of it was.
 */
void model_add(struct model *m, struct entry *e, const struct timerwheel_add *arg, u64 offset,
	       bool closed);
void model_move(struct model *m, struct entry *e, const struct timerwheel_move *arg, u64 offset);
void model_remove(struct model *m, struct entry *e, const struct timerwheel_remove *arg);
void model_get(struct model *m, struct entry *e, const struct timerwheel_entry *arg, u64 offset);
/* By index; @drained: it was taken out, too */
void model_index(struct model *m, u32 index, int result, const struct timerwheel_entry *arg,
		 u64 offset, bool drained);

/* An event was delivered on a CPU. @expiring: the base that is being expired, or RIG_BASES: none */
void model_event(struct model *m, const struct timerwheel_event *event, u64 offset,
		 unsigned int expiring);
/* The same for what has come to the ring. */
void model_ring(struct model *m, unsigned int expiring);

/* This CPU's base was expired. */
void model_expire(struct model *m);

#endif /* MODEL_H */
