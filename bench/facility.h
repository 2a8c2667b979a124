/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A facility implements timeouts. It is a table of functions, so that each workload is written once
 * for all of them.
 *
 * Timers are numbered from 0. All deadlines are absolute times of CLOCK_MONOTONIC in ns. A facility
 * that needs another form (a relative time, a double, a timespec) converts them, as a program that
 * uses it must. The time for that counts.
 */
#ifndef FACILITY_H
#define FACILITY_H

#include <stdbool.h>
#include <linux/types.h>

#define NEVER	(~0ULL)

/* An operation on a timer; cancel ignores the deadline. */
struct change {
	__u64 deadline;
	__u32 id;
};

/* Maximum number of changes in a call of a facility that has batches */
#define BATCH_MOST	4096

struct facility {
	const char *name;
	const char *missing;	/* package that was missing when it was built; NULL: none */
	__u32 most;		/* maximum number of timers; 0: any number */
	__u32 step_most;	/* the same for workloads in small steps */
	const char *why;	/* reason for the maximum */
	unsigned int threads;	/* number of threads that share it; 0: not shared */
	bool batches;		/* many timers in one system call, or under one hold of a lock */
	bool one_timeout;	/* all timers have the timeout given to open() */
	bool processes;		/* one process may change timers that another one waits for */
	bool expiry_only;	/* differs from another facility only in how timers expire */
	const char *only;	/* names of the only workloads it is for; NULL: all */

	/* prepare for timers 0 to capacity - 1 */
	void (*open)(__u32 capacity, __u64 timeout);
	void (*close)(void);
	/* arm timers that are not pending */
	void (*arm)(const struct change *changes, __u32 n);
	/* change pending timers: to any time; to a later time, the most frequent case; cancel */
	void (*move)(const struct change *changes, __u32 n);
	void (*refresh)(const struct change *changes, __u32 n);
	void (*cancel)(const struct change *changes, __u32 n);
	/*
	 * Wait, and call deliver() for each timer that falls due, until the time @until or
	 * nothing_left(). If there are two threads both call this.
	 */
	void (*run)(__u64 until);
	/* call @call inside the event loop, as intended by its authors; NULL: call it directly */
	void (*inside)(void (*call)(void *arg), void *arg);
};

/* facility/ */
extern const struct facility facility_timerwheel, facility_timerwheel_handle;
extern const struct facility facility_timerwheel_mapped;
extern const struct facility facility_resident, facility_resident_shared;
extern const struct facility facility_timerfd, facility_timerfd_1ms, facility_timerfd_leases;
extern const struct facility facility_posix, facility_uring;
extern const struct facility facility_libevent, facility_libevent_common;
extern const struct facility facility_libuv, facility_libev, facility_glib;
extern const struct facility facility_heap, facility_heap_shared;
extern const struct facility facility_heap_lazy, facility_heap_lazy_shared;
extern const struct facility facility_wheel, facility_wheel_shared;
extern const struct facility facility_wheel_lazy, facility_wheel_lazy_shared;
extern const struct facility facility_wheel_messages, facility_wheel_memory;

/* facilities.c */
extern const struct facility * const facilities[];	/* the last is NULL */
const struct facility *facility_named(const char *name);

/* expected.c: checks that each timer is delivered, once */
struct expected {
	__u32 capacity;
	__u32 want;		/* number of deliveries after which nothing is left */
	__u32 delivered;
	bool keep_lateness;
	__u64 *deadline;	/* of timer i; 0: it is not pending */
	__s64 *late;		/* lateness of delivered timers, in ns */
	__u32 lates;
};

extern struct expected expected;

__attribute__((noreturn, cold)) void expected_wrong(__u32 id);
void expected_late(__u32 id);

#ifdef BENCH_NATIVE
/* native/ checks deliveries later. */
extern __u32 *native_log, native_logged;

static inline void deliver(__u32 id)
{
	native_log[native_logged++] = id;
}

static inline bool nothing_left(void)
{
	return false;
}
#else
static inline void deliver(__u32 id)
{
	if (__builtin_expect(id >= expected.capacity || !expected.deadline[id], 0))
		expected_wrong(id);
	if (__builtin_expect(expected.keep_lateness, 0))
		expected_late(id);
	expected.deadline[id] = 0;
	/* there may be two threads */
	__atomic_fetch_add(&expected.delivered, 1, __ATOMIC_RELAXED);
}

static inline bool nothing_left(void)
{
	return __atomic_load_n(&expected.delivered, __ATOMIC_RELAXED) >= expected.want;
}
#endif

#endif /* FACILITY_H */
