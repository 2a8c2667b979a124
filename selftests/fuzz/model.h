/* SPDX-License-Identifier: GPL-2.0 */
/* What a wheel with the MANUAL clock must do, in the plainest way. */
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
 * @from: tick at which it fires, at the earliest
 * @index: what ADD said, 0: it could not be seen
 * @generation: the same
 * @due: it fell due
 * @fired_lo: if due: when, at the earliest; with slack that is not known exactly
 * @fired_hi: and at the latest
 * @seen: stamp of the last call that told of it
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
 * @setup: its settings, defaults at first
 * @settled: too late for SETUP
 * @closed: no new timers
 * @slacked: some timer had slack: lateness is not known exactly
 * @now: its time
 * @before: its time before the last ADVANCE
 * @stamp: of this call, see struct mtimer
 * @timers: how many there are
 * @n_due: how many of them are due
 * @expired: timers that ever fell due
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
void model_put_off(struct model *m, struct mtimer *t, __u64 deadline);
void model_describe(const struct model *m, const struct mtimer *t, struct timerwheel_entry *e);
/*
 * Move the time. Timers with slack may or may not be due then: they stay pending here until one
 * has looked, see model_may_be_due(). Returns how many there are of them.
 */
unsigned int model_advance(struct model *m, __u64 to);
bool model_may_be_due(const struct model *m, const struct mtimer *t);
void model_set_due(struct model *m, struct mtimer *t);
/* Is this what read() may tell next? If so it is done. NULL, or what is wrong. */
const char *model_event(struct model *m, const struct timerwheel_event *e);

#endif /* FUZZ_MODEL_H */
