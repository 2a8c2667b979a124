// SPDX-License-Identifier: GPL-2.0
/*
 * ADD, MOVE and REMOVE with very many timers pending, none of which falls due
 * meanwhile. Keys and deadlines are random; the arrays are filled before the clock runs.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "wheel.h"

#define HOUR	(3600 * NSEC_PER_SEC)
#define SINGLES	20000

static int wheel;
static __u64 seed = 1;
static __u64 nr_keys;		/* keys given out so far */
static __u64 stride, place;	/* the order in which timers are visited */

__u64 bench_key(__u64 i)
{
	return mix64(i + 1);
}

static __u64 next_key(void)
{
	place = (place + stride) % options.timers;
	return bench_key(place);
}

static void must(bool right, const char *what)
{
	if (!right)
		die("%s did not do what it should: this is not a measurement", what);
}

static void syscall_empty(void)
{
	const int n = 100000;
	__u64 start = now_ns();
	int i;

	for (i = 0; i < n; i++)
		syscall(SYS_getppid);
	result(ROW_SYSCALL, OURS, (now_ns() - start) / n);
}

/* Deadlines of new timers: in one to two hours. */
static __u64 add_batches(__u64 n)
{
	struct timerwheel_add elems[BATCH];
	__u64 done, i, start, time = 0;

	for (done = 0; done < n; done += BATCH) {
		for (i = 0; i < BATCH; i++) {
			elems[i] = (struct timerwheel_add) {
				.key = bench_key(nr_keys++),
				.deadline = HOUR + random_below(&seed, HOUR),
			};
		}
		start = now_ns();
		wheel_add(wheel, elems, BATCH);
		time += now_ns() - start;
		for (i = 0; i < BATCH; i++)
			must(!elems[i].result, "ADD");
	}
	return time / done;
}

/* Later: in three to four hours. Earlier: in half an hour to one. */
static __u64 move_batches(__u64 n, bool later)
{
	__u64 base = later ? 3 * HOUR : HOUR / 2, range = later ? HOUR : HOUR / 2;
	struct timerwheel_move elems[BATCH];
	__u64 done, i, start, time = 0;

	for (done = 0; done < n; done += BATCH) {
		for (i = 0; i < BATCH; i++) {
			elems[i] = (struct timerwheel_move) {
				.key = next_key(),
				.deadline = base + random_below(&seed, range),
			};
		}
		start = now_ns();
		wheel_move(wheel, elems, BATCH);
		time += now_ns() - start;
		for (i = 0; i < BATCH; i++)
			must(elems[i].result == TIMERWHEEL_WAS_PENDING, "MOVE");
	}
	return time / done;
}

/* Of timers that are there, or of none. */
static __u64 remove_batches(__u64 n, bool there)
{
	struct timerwheel_remove elems[BATCH];
	__u64 done, i, start, time = 0;

	for (done = 0; done < n; done += BATCH) {
		for (i = 0; i < BATCH; i++) {
			elems[i] = (struct timerwheel_remove) {
				.key = there ? next_key() : bench_key(1ULL << 40 | done | i),
			};
		}
		start = now_ns();
		wheel_remove(wheel, elems, BATCH);
		time += now_ns() - start;
		for (i = 0; i < BATCH; i++)
			must(elems[i].result == (there ? TIMERWHEEL_WAS_PENDING : -ENOENT),
			     "REMOVE");
	}
	return time / done;
}

/* One element in each call, the ioctl itself and nothing around it. */
static __u64 singles(unsigned long op, void *elems, __u32 elem_size)
{
	struct timerwheel_batch arg = {
		.size = sizeof(arg),
		.elems = (unsigned long)elems,
		.count = 1,
		.elem_size = elem_size,
	};
	__u64 start = now_ns();
	int i, done = 0;

	for (i = 0; i < SINGLES; i++) {
		done += ioctl(wheel, op, &arg);
		arg.elems += elem_size;
	}
	start = now_ns() - start;
	must(done == SINGLES, "a call with one element");
	return start / SINGLES;
}

static void move_singles(enum row row, struct timerwheel_move *moves, __u64 first, bool later)
{
	int i;

	for (i = 0; i < SINGLES; i++) {
		moves[i] = (struct timerwheel_move) {
			.key = bench_key(first + i),
			.deadline = later ? 3 * HOUR + random_below(&seed, HOUR) :
					    HOUR / 2 + random_below(&seed, HOUR / 2),
		};
	}
	result(row, OURS, singles(TIMERWHEEL_IOC_MOVE, moves, sizeof(*moves)));
	for (i = 0; i < SINGLES; i++)
		must(moves[i].result == TIMERWHEEL_WAS_PENDING, "MOVE");
}

static void bench_singles(void)
{
	struct timerwheel_add *adds = xcalloc(SINGLES, sizeof(*adds));
	struct timerwheel_move *moves = xcalloc(SINGLES, sizeof(*moves));
	struct timerwheel_remove *removes = xcalloc(SINGLES, sizeof(*removes));
	__u64 first = nr_keys;
	int i;

	for (i = 0; i < SINGLES; i++) {
		adds[i] = (struct timerwheel_add) {
			.key = bench_key(nr_keys++),
			.deadline = HOUR + random_below(&seed, HOUR),
		};
		removes[i] = (struct timerwheel_remove) { .key = adds[i].key };
	}
	result(ROW_ADD_ONE, OURS, singles(TIMERWHEEL_IOC_ADD, adds, sizeof(*adds)));
	for (i = 0; i < SINGLES; i++)
		must(!adds[i].result, "ADD");
	move_singles(ROW_MOVE_ONE_LATER, moves, first, true);
	move_singles(ROW_MOVE_ONE_EARLIER, moves, first, false);
	result(ROW_REMOVE_ONE, OURS, singles(TIMERWHEEL_IOC_REMOVE, removes, sizeof(*removes)));
	for (i = 0; i < SINGLES; i++)
		must(removes[i].result == TIMERWHEEL_WAS_PENDING, "REMOVE");
	free(adds);
	free(moves);
	free(removes);
}

void bench_ops(void)
{
	/* A quarter is moved and removed: enough for a mean, and it shortens the run. */
	__u64 part = options.timers / 4 / BATCH * BATCH;
	struct timerwheel_stats stats;

	wheel = wheel_open();
	stride = stride_of(options.timers);
	syscall_empty();
	progress("arming %s timers", commas(options.timers));
	result(ROW_ADD, OURS, add_batches(options.timers));
	wheel_stats(wheel, &stats);
	result(ROW_MEMORY, OURS, (stats.memory + stats.pending / 2) / stats.pending);
	result(ROW_MOVE_LATER, OURS, move_batches(part, true));
	result(ROW_MOVE_EARLIER, OURS, move_batches(part, false));
	result(ROW_EMPTY, OURS, remove_batches(part, false));
	bench_singles();
	result(ROW_REMOVE, OURS, remove_batches(part, true));
	result(ROW_ADD_AGAIN, OURS, add_batches(part));
	close(wheel);
}
