/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bulk: arm, move, remove and collect a very large number of timeouts, and check each one.
 *
 *   bulk.c        options, the two runs, the table that compares them
 *   run_wheel.c   the run on /dev/timerwheel
 *   run_timerfd.c the run with a timerfd for each timeout
 *   ledger.c      the expected result of each timer, compared with the actual one
 *   histogram.c   lateness, counted and drawn
 *   phase.c       cost of one phase of a run
 */
#ifndef BULK_H
#define BULK_H

#include <stdbool.h>
#include <linux/types.h>

struct options {
	__u32 timers;
	__u32 batch;
	__u32 timerfds;
	__u64 delay_min;
	__u64 delay_max;
};

extern struct options options;

/* histogram.c: lateness in buckets, eight for each power of two. */
#define HISTOGRAM_BUCKETS	512

struct histogram {
	__u64 count;
	__u64 max;
	__u64 buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, __u64 ns);
__u64 histogram_quantile(const struct histogram *h, double q);
void histogram_draw(const struct histogram *h, const char *title);

/* ledger.c */
enum timer_state { TIMER_NONE, TIMER_ARMED, TIMER_REMOVED, TIMER_DELIVERED };

struct ledger {
	__u32 timers;
	__u64 *deadlines;	/* the last deadline of each */
	__u8 *states;
	/* Results. */
	__u64 armed, moved, removed, delivered;
	/* Errors. */
	__u64 early, lost, twice, after_remove, old_deadline, unknown, refused;
};

void ledger_init(struct ledger *l, __u32 timers);
void ledger_free(struct ledger *l);
void ledger_arm(struct ledger *l, __u32 i, __u64 deadline);
void ledger_move(struct ledger *l, __u32 i, __u64 deadline);
void ledger_remove(struct ledger *l, __u32 i);
/* How many armed timers have a deadline before this time. */
__u64 ledger_passed(const struct ledger *l, __u64 now);
void ledger_deliver(struct ledger *l, __u32 i, __u64 deadline, __u64 fired);
/* Number of events that must still arrive. */
__u64 ledger_expected(const struct ledger *l);
/* Count lost timers and report errors. Returns false if there are any. */
bool ledger_close(struct ledger *l, const char *who);

/* phase.c: cost of a phase of a run. */
struct phase {
	__u64 ops;
	__u64 calls;		/* system calls */
	__u64 wall;		/* ns inside them */
	__u64 cpu;		/* ns of this process's CPU time in the whole phase */
	/* Used during the measurement. */
	__u64 start;
	__u64 cpu_start;
};

void phase_begin(struct phase *p);
void phase_end(struct phase *p, const char *what);
static inline __u64 phase_each(const struct phase *p, __u64 ns)
{
	return p->ops ? ns / p->ops : 0;
}

/* CPU time that all CPUs have used since the start, in ns. */
__u64 machine_busy_ns(void);

/* Results of a run. */
struct outcome {
	struct ledger ledger;
	struct phase arm, move, remove, collect;
	__u64 collect_busy;	/* all CPU time while collecting, interrupts included, in ns */
	__u64 expired;		/* timers whose deadline had passed before collecting began */
	__u64 memory;		/* decrease of MemAvailable by armed timers, in bytes */
	__u64 memory_stats;	/* memory in STATS, in bytes */
	__u64 descriptors;
	__u64 wakeups;
	struct histogram seen;	/* lateness that this program saw while it was waiting */
	bool right;
};

void run_wheel(struct outcome *o);
void run_timerfd(struct outcome *o);

/* A deadline for a timer armed now, and for a moved timer: earlier or later than before. */
__u64 deadline_new(__u64 now, __u64 *seed);
__u64 deadline_moved(__u64 now, __u64 old, bool later, __u64 *seed);
/* The operations on timer i, equal in both runs. */
static inline bool is_moved(__u32 i)
{
	return i % 3 == 1;
}

static inline bool is_removed(__u32 i)
{
	return i % 3 == 2;
}

#endif /* BULK_H */
