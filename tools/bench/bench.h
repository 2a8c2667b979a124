/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bench: what each operation on a wheel costs, and what its peers cost.
 *
 *   bench.c    options, order
 *   results.c  the table: rows, goals, printing
 *   busy.c     CPU time spent by anyone, interrupts included
 *   ops.c      ADD, MOVE, REMOVE: in batches and alone
 *   expiry.c   expiring and delivering; a timer's life; bursts
 *   peers.c    timerfd and POSIX timers
 *
 * Made for a guest with instruction-counted time (tools/bench/run): there a nanosecond
 * is an instruction, idle time is skipped, and two runs give the same digits.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <linux/types.h>

#include "util.h"

#define BATCH	256

struct options {
	__u32 timers;
	__u32 peers;		/* timerfds, likewise */
	__u32 posix;
	bool quick;
	const char *tsv;
};

extern struct options options;

enum column { OURS, TIMERFD, POSIX, COLUMNS };

/* results.c: the rows are named there, in the order of the table. */
enum row {
	ROW_SYSCALL,
	ROW_ADD,
	ROW_ADD_AGAIN,
	ROW_MOVE_LATER,
	ROW_MOVE_EARLIER,
	ROW_REMOVE,
	ROW_CLOSE,
	ROW_EMPTY,
	ROW_ADD_ONE,
	ROW_MOVE_ONE_LATER,
	ROW_MOVE_ONE_EARLIER,
	ROW_REMOVE_ONE,
	ROW_READ,
	ROW_EXPIRE,
	ROW_EXPIRE_EXACT,
	ROW_MEMORY,
	ROW_LIFE_MINUTE,
	ROW_LIFE_HOUR,
	ROW_LIFE_DAY,
	ROW_FIRINGS,
	ROW_BURST_PASS,
	ROW_BURST_TIMERS,
	ROW_BURST_SAME,
	ROW_BURST_OTHER,
	ROW_BURST_TASK,
	ROW_BURST_ALL,
	ROW_CASCADE_PASS,
	ROW_CASCADE_TIMERS,
	ROW_CASCADE_SAME,
	ROW_CASCADE_OTHER,
	ROW_CASCADE_TASK,
	ROWS
};

/* Say what is going on, and let that have no effect on what comes after. */
void progress(const char *fmt, ...) __printf(1, 2);
void result(enum row row, enum column column, __u64 value);
void results_print(void);
void results_write(const char *path);

/* busy.c */
__u64 busy_ns(void);

/* ops.c, expiry.c, peers.c */
void bench_ops(void);
void bench_expiry(void);
void bench_timerfd(void);
void bench_posix(void);

/* Key of timer i: looks like anything, no two are the same. */
__u64 bench_key(__u64 i);

#endif /* BENCH_H */
