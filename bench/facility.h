/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A facility is something that keeps timeouts: one table of functions, so that each
 * workload is written once and run over all of them.
 *
 * Timers are numbered from 0. All deadlines are CLOCK_MONOTONIC, absolute, in ns. What a
 * facility needs instead (a relative time, a double, a timespec) it makes from that itself,
 * as a program that uses it must, and the time this takes counts.
 */
#ifndef FACILITY_H
#define FACILITY_H

#include <stdbool.h>
#include <linux/types.h>

#define NEVER	(~0ULL)

/* What an operation does to a timer; cancel does not look at the deadline. */
struct change {
	__u64 deadline;
	__u32 id;
};

/* Most changes in one call of a facility that has batches. */
#define BATCH_MOST	4096

struct facility {
	const char *name;
	const char *missing;	/* the package it could not be built without; NULL: it is there */
	__u32 most;		/* timers it can bear, 0: as many as are wanted */
	__u32 step_most;	/* and where time goes on in small steps */
	const char *why;	/* it bears no more */
	unsigned int threads;	/* that share it, 0: one alone */
	bool batches;		/* many timers in one system call, or under one lock */
	bool one_timeout;	/* all timers have the timeout given to open() */
	bool expiry_only;	/* differs from another facility only in how timers expire */

	/* Room for timers 0 to capacity - 1. */
	void (*open)(__u32 capacity, __u64 timeout);
	void (*close)(void);
	/* Of timers that are not pending. */
	void (*arm)(const struct change *changes, __u32 n);
	/* Of pending ones: to any time; to a later one, the most usual thing; away with it. */
	void (*move)(const struct change *changes, __u32 n);
	void (*refresh)(const struct change *changes, __u32 n);
	void (*cancel)(const struct change *changes, __u32 n);
	/*
	 * Wait, and hand each timer that falls due to deliver(), until that time has come
	 * or nothing_left(). With two threads, both are in here.
	 */
	void (*run)(__u64 until);
	/* Call that where its authors expect to be called: within its loop. NULL: anywhere. */
	void (*inside)(void (*call)(void *arg), void *arg);
};

/* facility/ */
extern const struct facility facility_timerwheel, facility_timerwheel_mapped;
extern const struct facility facility_timerfd, facility_timerfd_1ms;
extern const struct facility facility_posix, facility_uring;
extern const struct facility facility_libevent, facility_libevent_common;
extern const struct facility facility_libuv, facility_libev, facility_glib;
extern const struct facility facility_heap, facility_heap_shared;
extern const struct facility facility_wheel, facility_wheel_shared;

/* facilities.c */
extern const struct facility * const facilities[];	/* the last is NULL */
const struct facility *facility_named(const char *name);

/* expected.c: what must come, and what came: each timer once. */
struct expected {
	__u32 capacity;
	__u32 want;		/* nothing is left to wait for after so many */
	__u32 delivered;
	bool keep_lateness;
	__u64 *deadline;	/* of timer i, 0: it is not pending */
	__s64 *late;		/* of those delivered */
	__u32 lates;
};

extern struct expected expected;

__attribute__((noreturn, cold)) void expected_wrong(__u32 id);
void expected_late(__u32 id);

static inline void deliver(__u32 id)
{
	if (__builtin_expect(id >= expected.capacity || !expected.deadline[id], 0))
		expected_wrong(id);
	if (__builtin_expect(expected.keep_lateness, 0))
		expected_late(id);
	expected.deadline[id] = 0;
	/* Two threads may be here. */
	__atomic_fetch_add(&expected.delivered, 1, __ATOMIC_RELAXED);
}

static inline bool nothing_left(void)
{
	return __atomic_load_n(&expected.delivered, __ATOMIC_RELAXED) >= expected.want;
}

#endif /* FACILITY_H */
