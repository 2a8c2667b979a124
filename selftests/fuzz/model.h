/* SPDX-License-Identifier: GPL-2.0 */
/* What a wheel with the MANUAL clock must do, as simply as possible. */
#ifndef FUZZ_MODEL_H
#define FUZZ_MODEL_H

#include "fuzz.h"

/**
 * struct mtimer - a timer
 * @key: its key
 * @value: its value
 * @deadline: in ns
 * @period: in ns
 * @slack: in ticks
 * @from: earliest tick at which it fires
 * @index: as reported by ADD; 0: its result could not be read
 * @generation: the same
 * @due: it fell due
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
	__u64 fired_lo;
	__u64 fired_hi;
	__u64 seen;
	struct mtimer *next;
};

#define MODEL_CHAINS	1024

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
 * @expired: number of timers that ever fell due
 * @stats: the counters, as far as they are known
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
	__u64 expired;
	struct timerwheel_stats stats;
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
void model_describe(const struct model *m, const struct mtimer *t, struct timerwheel_entry *e);
/*
 * Advance the time. Timers with slack may or may not be due then; they stay pending here until the
 * kernel's answer is known, see model_may_be_due(). Returns the number of these.
 */
unsigned int model_advance(struct model *m, __u64 to);
bool model_may_be_due(const struct model *m, const struct mtimer *t);
void model_set_due(struct model *m, struct mtimer *t);
/* Deliver an event that read() has returned. Returns NULL, or why it is wrong. */
const char *model_event(struct model *m, const struct timerwheel_event *e);

#endif /* FUZZ_MODEL_H */
