/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bench: the cost of timeouts with different facilities
 *
 *   bench.c       options, choice of workloads and sizes
 *   facility.h    the interface of facilities, which are in facility/
 *   expected.c    checks that each timer is delivered, once
 *   apply.c       timed operations on many timers; two threads
 *   busy.c        CPU time of the whole system, including interrupts
 *   sleeper.c     another task, and how late it wakes
 *   results.c     rows of the table
 *
 *   ops.c         each operation alone
 *   expire.c      expiry and delivery: cost, lateness
 *   idle.c        a million idle timeouts; steps.c: time advances in small steps
 *   requests.c    request timeouts: nearly all of them cancelled, in steady state
 *   leases.c      leases that one process renews, and another one sees end
 *   retransmit.c  short timeouts, nearly all of them cancelled
 *   cache.c       times to live from a second to a day
 *   burst.c       all timers due in the same tick
 *   many.c        many wheels, or timerfds, due in the same ticks
 *   calls.c       timerwheel alone: its calls, without anything else
 *   uring.c       timerwheel alone: its calls as commands of io_uring
 *   passes.c      timerwheel alone: the kernel's work for a timer, expiry batches
 *   sockets.c     timerwheel alone: deadlines of TCP connections
 *
 * Intended for a guest with instruction-counted time (bench/run): an instruction takes a
 * nanosecond, idle time is skipped, and two runs give the same figures.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <linux/types.h>

#include "facility.h"
#include "util.h"

#define HOUR	(3600 * NSEC_PER_SEC)

/* Default number of changes in a call of a facility that has batches */
#define BATCH	256

struct options {
	__u32 most;		/* maximum number of timers */
	__u64 budget;		/* CPU time for one operation at one size, in ns */
	__u64 idle_budget;	/* CPU time for all refreshes of idle timeouts, in ns */
	__u64 longest_life;	/* of entries of the cache, in ns */
	bool skips_idle;	/* idle time is skipped */
};

extern struct options options;
extern const struct facility *facility;

/* Returns @wanted, or the facility's maximum number of timers, which is noted in the results. */
__u32 bearable(const char *workload, __u32 wanted);
/* The default number of changes in a call of this facility */
__u32 usual_batch(void);

/* results.c: print a row. @pending or @batch 0: does not apply. */
void result(const char *operation, __u64 pending, __u32 batch, double value, const char *unit);
/* A workload was not measured with @pending timers (0: with any number); @fmt is the reason. */
void skipped(const char *workload, __u64 pending, const char *fmt, ...) __printf(3, 4);
/* Print progress, and wait until the output cannot disturb the next measurement. */
void progress(const char *fmt, ...) __printf(1, 2);

/* expected.c */
void expected_open(__u32 capacity);
/* Wait until @want timers in total were delivered, of which the last is due at @until. */
void expected_come(__u32 want, __u64 until);
/* Check that no timer is pending whose deadline is before this time. */
void expected_none_overdue(__u64 before);
void expected_close(void);

/* apply.c */
enum op { ARM, MOVE, REFRESH, CANCEL };

void facility_open(__u32 capacity, __u64 timeout);
void facility_close(void);
/* Memory that was taken since facility_open(), in kernel and process, in bytes */
__u64 facility_memory(void);
/* Do operations in calls of @batch each, and record what is expected. Returns the time in ns. */
__u64 apply(enum op op, const struct change *changes, __u32 n, __u32 batch);
void run_until(__u64 until);
/* Arm timers 0 to n - 1 with random deadlines in [from, from + range). Returns the time in ns. */
__u64 arm_all(__u32 n, __u64 from, __u64 range);

/* Buffer for changes that are prepared before the measurement */
#define CHANGES	65536
extern struct change changes[CHANGES];
extern __u64 seed;

/* busy.c */
struct meter {
	__u64 start, busy, idle, own;
};

/* Total time that the bench has spent on its own work, which is not the facility's */
extern __u64 own_ns;

/* Stop periodic work of the kernel that would disturb measurements of long spans. */
void quieten_kernel(void);
void meter_start(struct meter *meter);
/* CPU time of the whole system since then, less own_ns and the background work of as long a time */
__u64 meter_stop(struct meter *meter);

/* The share of the CPU that the kernel's background work takes, measured for @span ns */
double background(__u64 span);
/* The same as above while timers are armed, for one CPU, with a resolution of 10 ms */
void coarse_start(struct meter *meter);
double coarse_stop(struct meter *meter, double background);

/* sleeper.c */
struct sleeper;

struct sleeper *sleeper_start(bool realtime);
/* Start to record the greatest lateness; stop, and return it. */
void sleeper_watch(struct sleeper *s);
__u64 sleeper_worst(struct sleeper *s);
void sleeper_stop(struct sleeper *s);

/* Workloads */
void bench_ops(void);
void bench_expire(void);
void bench_lateness(void);
void bench_idle(void);
void bench_requests(void);
void bench_leases(void);
void bench_retransmit(void);
void bench_cache(void);
void bench_burst(void);
void bench_many(void);
void bench_calls(void);
void bench_uring(void);
void bench_passes(void);
void bench_sockets(void);

/* The time of one refresh in ns, measured by ops.c; idle.c chooses the number of timers by it. */
__u64 refresh_cost(void);

#endif /* BENCH_H */
