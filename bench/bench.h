/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bench: what timeouts cost, with each facility that keeps them.
 *
 *   bench.c       options; which workloads, at which sizes
 *   facility.h    the interface that facilities have; they are in facility/
 *   expected.c    each timer must come, once
 *   apply.c       operations on many timers, timed; two threads
 *   busy.c        CPU time spent by anyone, interrupts included
 *   sleeper.c     another task, and how late it wakes
 *   results.c     rows of the table
 *
 *   ops.c         each operation alone
 *   expire.c      expiring and delivering: cost, lateness
 *   idle.c        a million idle timeouts; steps.c: time goes on in small steps
 *   retransmit.c  short timeouts, nearly all of them cancelled
 *   cache.c       time to live from a second to a day
 *   burst.c       all due in the same tick
 *   many.c        many wheels, or timerfds, due in the same ticks
 *   calls.c       our own device: its calls with nothing around them
 *   passes.c      ... the work of a timer's life, how long passes are
 *
 * Made for a guest with instruction-counted time (bench/run): there a nanosecond
 * is an instruction, idle time is skipped, and two runs give the same digits.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <linux/types.h>

#include "facility.h"
#include "util.h"

#define HOUR	(3600 * NSEC_PER_SEC)

/* Changes to one batch in a call of a facility where nothing else is said. */
#define BATCH	256

struct options {
	__u32 most;		/* timers */
	__u64 budget;		/* CPU time for one operation at one size, in ns */
	__u64 idle_budget;	/* and for all refreshes of the idle timeouts */
	__u64 longest_life;	/* in the cache, in ns */
	bool skips_idle;	/* time when nothing happens costs nothing */
};

extern struct options options;
extern const struct facility *facility;

/* As many timers as wanted, or as the facility bears: then that is in the results. */
__u32 bearable(const char *workload, __u32 wanted);
/* Changes in one call of the facility, unless something else is measured. */
__u32 usual_batch(void);

/* results.c: for value see the unit; 0 pending or batch: does not apply. */
void result(const char *operation, __u64 pending, __u32 batch, double value, const char *unit);
/* Not measured, with so many timers (0: at all), for a reason. */
void skipped(const char *workload, __u64 pending, const char *fmt, ...) __printf(3, 4);
/* Say what is going on, and let that have no effect on what comes after. */
void progress(const char *fmt, ...) __printf(1, 2);

/* expected.c */
void expected_open(__u32 capacity);
/* Wait for so many in all, the last of them due at a time. */
void expected_come(__u32 want, __u64 until);
void expected_close(void);

/* apply.c */
enum op { ARM, MOVE, REFRESH, CANCEL };

void facility_open(__u32 capacity, __u64 timeout);
void facility_close(void);
/* Bytes it has taken since it was opened, in the kernel and in the process. */
__u64 facility_memory(void);
/* The ns that it took, in calls with so many each; what must come is updated before. */
__u64 apply(enum op op, const struct change *changes, __u32 n, __u32 batch);
void run_until(__u64 until);
/* Timers 0 to n - 1, with deadlines at random in [from, from + range). */
__u64 arm_all(__u32 n, __u64 from, __u64 range);

/* For changes that are prepared before the clock runs. */
#define CHANGES	65536
extern struct change changes[CHANGES];
extern __u64 seed;

/* busy.c */
struct meter {
	__u64 start, busy, own;
};

/* Time that the bench spent on itself since it was started: not the facility's. */
extern __u64 own_ns;

/* Where idle time is skipped, long spans are measured: for exact ones, stop what can be. */
void quieten_kernel(void);
void meter_start(struct meter *meter);
/* CPU time of anyone since then, less that, less what goes on anyway in as much time. */
__u64 meter_stop(struct meter *meter);

/* sleeper.c */
struct sleeper;

struct sleeper *sleeper_start(bool realtime);
/* Begin to write down the worst lateness; end. */
void sleeper_watch(struct sleeper *s);
__u64 sleeper_worst(struct sleeper *s);
void sleeper_stop(struct sleeper *s);

/* The workloads. */
void bench_ops(void);
void bench_expire(void);
void bench_lateness(void);
void bench_idle(void);
void bench_retransmit(void);
void bench_cache(void);
void bench_burst(void);
void bench_many(void);
void bench_calls(void);
void bench_passes(void);

/* idle.c needs it to choose its size: ns of one refresh, as ops.c found. */
__u64 refresh_cost(void);

#endif /* BENCH_H */
