/* SPDX-License-Identifier: GPL-2.0 */
/* A program in one thread, compared with the model: what the files that do this share. */
#ifndef FUZZ_TEST_H
#define FUZZ_TEST_H

#include "model.h"

#define HANDLES	32

/**
 * struct watch - a monitor
 * @fd: its descriptor
 * @events: its length; 0: there is no such monitor
 * @next: number of the next event that it reads
 * @missed: number of events before that one which it has missed and not reported
 */
struct watch {
	int fd;
	__u32 events;
	__u64 next;
	__u64 missed;
};

/**
 * struct test - a program being run
 * @w: the worker
 * @m: the model
 * @fd: the wheel
 * @cursor: the cursor that LIST returned last
 * @handles: handles that ADD has returned; their timers may have ended
 * @n_handles: how many there were; the latest are kept
 * @table: the deadline table; NULL: there is none
 * @table_size: bytes mapped
 * @ring: the event ring; NULL: there is none
 * @taken: number of events taken from it: its head, unless that is invalid
 * @watches: the monitors
 */
struct test {
	struct worker *w;
	struct model m;
	int fd;
	__u64 cursor;
	struct handle handles[HANDLES];
	unsigned int n_handles;
	__u64 *table;
	size_t table_size;
	struct timerwheel_ring *ring;
	__u32 taken;
	struct watch watches[TIMERWHEEL_MONITORS_MAX];
};

/* single.c */
bool same(struct test *t, const char *what, __s64 is, __s64 must);
/* Must the call fail? Then it must have failed with one of @errors. */
bool failed_with(struct test *t, const char *what, ssize_t ret, unsigned int errors);
/* GET: the kernel reads the timer's entry in the deadline table. */
void get_timer(struct test *t, __u64 key);

/**
 * struct source - what a read must return
 * @fd: the descriptor to read
 * @waiting: number of events that wait
 * @errors: errors that it must fail with, whatever the memory is
 * @check: compare the next event with the model. Returns NULL, or why it is wrong.
 * @watch: the monitor, for @check
 */
struct source {
	int fd;
	size_t waiting;
	unsigned int errors;
	const char *(*check)(struct test *t, struct watch *watch,
			     const struct timerwheel_event *event);
	struct watch *watch;
};

void do_read(struct test *t, const struct call *call, const struct source *source);

/* table.c */
void table_map(struct test *t);
void table_unmap(struct test *t);
void table_learn(struct test *t, struct mtimer *timer);
void table_check(struct test *t);
/* The timer was removed: its entry must be empty. */
void table_ended(struct test *t, const struct mtimer *timer);
void table_touch(struct test *t, const struct call *call);

/**
 * struct flow - the event ring before a call
 * @delivered: number of events delivered
 * @waiting: number of due timers
 */
struct flow {
	__u64 delivered;
	__u32 waiting;
};

/* ring.c: these do nothing if the wheel has no ring. */
void ring_map(struct test *t);
void ring_unmap(struct test *t);
struct flow ring_before(struct test *t);
/* The result of an element shows that the timer's event was delivered during the call. */
void ring_catch_up(struct test *t, __u64 key, int result);
/* After a call: the events that it has delivered. */
void ring_after(struct test *t, const struct flow *before);
void ring_check(struct test *t);
/* Timers wait although there is room: advance so that this is over. */
void ring_trickle(struct test *t);
void ring_advance(struct test *t, __u64 to);
void ring_flow(struct test *t);
void ring_take(struct test *t, const struct call *call);

/* watch.c */
void watch_open(struct test *t, int ret, unsigned int errors);
void watch_read(struct test *t, const struct call *call);
void watch_close(struct test *t, const struct call *call);
/* The wheel was closed: read all monitors to their end. */
void watch_end(struct test *t);

#endif /* FUZZ_TEST_H */
