/* SPDX-License-Identifier: GPL-2.0 */
/* What a wheel with the MANUAL clock must do, as simply as possible. */
#ifndef FUZZ_MODEL_H
#define FUZZ_MODEL_H

#include "fuzz.h"

/**
 * struct mentry - the entry of a timer in the deadline table
 * @time: its deadline
 * @state: TIMERWHEEL_TABLE_*
 * @garbled: a program has stored something that the kernel ignores: @raw
 * @raw: all of it, if it is garbled
 */
struct mentry {
	__u64 time;
	__u32 state;
	bool garbled;
	__u64 raw;
};

/**
 * struct mtimer - a timer
 * @key: its key
 * @value: its value
 * @deadline: in ns
 * @period: in ns; of a resident timer: its linger
 * @slack: in ticks
 * @from: earliest tick at which it fires
 * @index: as reported by ADD; 0: its result could not be read
 * @generation: the same
 * @due: it fell due
 * @parked: it is neither pending nor due
 * @entry: its entry in the deadline table, if there is one
 * @fired_lo: if due: earliest time; with slack the exact time is not known
 * @fired_hi: if due: latest time
 * @seen: stamp of the last call that reported it
 * @next: in its hash chain
 */
struct mtimer {
	__u64 key;
	__u64 value;
	__u64 deadline;
	__u64 period;
	__u64 slack;
	__u64 from;
	__u32 index;
	__u32 generation;
	bool due;
	bool parked;
	struct mentry entry;
	__u64 fired_lo;
	__u64 fired_hi;
	__u64 seen;
	struct mtimer *next;
};

#define MODEL_CHAINS	1024

/* The model knows as many of the latest events. No ring and no monitor is longer. */
#define MODEL_LOG	1024

/**
 * struct model - a wheel
 * @setup: its settings; initially the defaults
 * @settled: too late for SETUP
 * @closed: no new timers are accepted
 * @slacked: some timer had slack, so the lateness is not known exactly
 * @now: its time
 * @before: its time before the last ADVANCE
 * @stamp: number of this call, see struct mtimer
 * @timers: number of timers
 * @n_due: number of due timers
 * @n_parked: number of parked timers
 * @newly: number of timers that fell due in the call
 * @expired: number of timers that ever fell due
 * @stats: the counters, as far as they are known
 * @ring_head: the head that the reader of the event ring has stored
 * @delivered: number of events delivered
 * @log: the latest of them: event number i is in entry i modulo MODEL_LOG
 * @chain: the timers by key
 */
struct model {
	struct timerwheel_setup setup;
	bool settled;
	bool closed;
	bool slacked;
	__u64 now;
	__u64 before;
	__u64 stamp;
	__u32 timers;
	__u32 n_due;
	__u32 n_parked;
	__u32 newly;
	__u64 expired;
	struct timerwheel_stats stats;
	__u32 ring_head;
	__u64 delivered;
	struct timerwheel_event log[MODEL_LOG];
	struct mtimer *chain[MODEL_CHAINS];
};

void model_init(struct model *m);
void model_free(struct model *m);
void model_setup(struct model *m, const struct timerwheel_setup *asked);
struct mtimer *model_find(const struct model *m, __u64 key);
void model_drop(struct model *m, struct mtimer *t);
int model_add(struct model *m, const struct timerwheel_add *a, struct mtimer **t);
int model_move(struct model *m, const struct timerwheel_move *a);
int model_remove(struct model *m, struct timerwheel_remove *a);
/* The same by handle, with the flags of the call: a timer whose index is not known is not found. */
int model_move_handle(struct model *m, const struct timerwheel_move_handle *a, __u32 flags);
int model_remove_handle(struct model *m, struct timerwheel_remove_handle *a);
void model_put_off(struct model *m, struct mtimer *t, __u64 deadline);
/* TIMERWHEEL_WAS_* */
int model_state(const struct model *m, const struct mtimer *t);
void model_describe(const struct model *m, const struct mtimer *t, struct timerwheel_entry *e);
/*
 * Advance the time of a wheel without a ring. Timers with slack may or may not be due then; they
 * stay pending here until the kernel's answer is known, see model_may_be_due(). Returns the number
 * of these.
 */
unsigned int model_advance(struct model *m, __u64 to);
bool model_may_be_due(const struct model *m, const struct mtimer *t);
/* The timer is visited: it falls due, or it was cancelled and is parked. */
void model_visit(struct model *m, struct mtimer *t);
/* The first tick in which a timer without slack is visited; ~0: there is none. */
__u64 model_next_tick(const struct model *m);
/* Deliver an event. Returns NULL, or why it is wrong. */
const char *model_event(struct model *m, const struct timerwheel_event *e);
/* The timer that the handle means, or NULL. */
struct mtimer *model_find_handle(struct model *m, __u32 index, __u32 generation);

/* The event ring: events that the reader has not taken, and free entries. */
__u32 model_ring_used(const struct model *m);
__u32 model_ring_room(const struct model *m);

/* --- The deadline table: table.c -------------------------------------------------- */

bool model_table(const struct model *m);
bool model_resident(const struct model *m);
unsigned int generation_bits(const struct timerwheel_setup *setup);
/* The contents of an entry. */
__u64 mentry_word(const struct mtimer *t);
/* Was the last arming of a timer that is pending cancelled? */
bool mentry_cancelled(const struct mtimer *t);
/* A call sets a deadline. Returns the one that the timer gets. */
__u64 mentry_arm(struct model *m, struct mtimer *t, __u64 deadline);
/* A visit when the deadline has passed. Returns false if the timer is parked. */
bool mentry_visit(struct model *m, struct mtimer *t);
/* The event was delivered, and the linger begins. Returns the new deadline. */
__u64 mentry_linger(struct model *m, struct mtimer *t);
/* A program stores a word. Returns the deadline that the timer then has. */
__u64 mentry_store(struct model *m, struct mtimer *t, __u64 word);

#endif /* FUZZ_MODEL_H */
