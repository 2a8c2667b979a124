// SPDX-License-Identifier: GPL-2.0
/*
 * The calls of the device alone: arrays are filled before the measurement.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "wheel.h"

#define EVENTS	4096
#define SINGLES	20000

static struct timerwheel_event events[EVENTS];
static int wheel;
static __u32 timers;

static void must(bool right, const char *what)
{
	if (!right)
		die("%s had a wrong result: this is not a measurement", what);
}

static __u64 key_of(__u64 i)
{
	/* a bijection whose results look random */
	return mix64(i + 1);
}

static __u64 next_deadline(__u64 from, __u64 range)
{
	return from + random_below(&seed, range);
}

/* ADD of @n timers from number @first, due in [from, from + range). Returns ns for each. */
static double call_add(__u64 first, __u64 n, __u64 from, __u64 range)
{
	struct timerwheel_add elems[BATCH] = { };
	__u64 done, i, start, time = 0;

	for (done = 0; done < n; done += BATCH) {
		for (i = 0; i < BATCH; i++) {
			elems[i].key = key_of(first + done + i);
			elems[i].deadline = next_deadline(from, range);
		}
		start = now_ns();
		wheel_add(wheel, elems, BATCH);
		time += now_ns() - start;
		for (i = 0; i < BATCH; i++)
			must(!elems[i].result, "ADD");
	}
	return (double)time / done;
}

static double call_move(__u64 n, __u64 from, __u64 range)
{
	struct timerwheel_move elems[BATCH] = { };
	__u64 stride = stride_of(timers), place = 0, done, i, start, time = 0;

	for (done = 0; done < n; done += BATCH) {
		for (i = 0; i < BATCH; i++) {
			place = (place + stride) % timers;
			elems[i].key = key_of(place);
			elems[i].deadline = next_deadline(from, range);
		}
		start = now_ns();
		wheel_move(wheel, elems, BATCH);
		time += now_ns() - start;
		for (i = 0; i < BATCH; i++)
			must(elems[i].result == TIMERWHEEL_WAS_PENDING, "MOVE");
	}
	return (double)time / done;
}

/* REMOVE of timers that may not exist. Returns ns for each. */
static double call_remove(__u64 first, __u64 n, int expected_result)
{
	struct timerwheel_remove elems[BATCH] = { };
	__u64 done, i, start, time = 0;

	for (done = 0; done < n; done += BATCH) {
		for (i = 0; i < BATCH; i++)
			elems[i].key = key_of(first + done + i);
		start = now_ns();
		wheel_remove(wheel, elems, BATCH);
		time += now_ns() - start;
		for (i = 0; i < BATCH; i++)
			must(elems[i].result == expected_result, "REMOVE");
	}
	return (double)time / done;
}

/* The ioctl alone, with one element in each call. Returns ns for each. */
static double singles(unsigned long op, void *elems, __u32 elem_size)
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
	return (double)start / SINGLES;
}

static void single_adds(const char *row, struct timerwheel_add *adds)
{
	int i;

	result(row, timers, 1, singles(TIMERWHEEL_IOC_ADD, adds, sizeof(*adds)), "ns");
	for (i = 0; i < SINGLES; i++)
		must(!adds[i].result, "ADD");
}

static void single_removes(const char *row, struct timerwheel_remove *removes)
{
	int i;

	result(row, timers, 1, singles(TIMERWHEEL_IOC_REMOVE, removes, sizeof(*removes)), "ns");
	for (i = 0; i < SINGLES; i++)
		must(removes[i].result == TIMERWHEEL_WAS_PENDING, "REMOVE");
}

static void single_moves(const char *row, struct timerwheel_move *moves, __u64 from, __u64 range)
{
	int i;

	for (i = 0; i < SINGLES; i++) {
		moves[i] = (struct timerwheel_move) {
			.key = key_of(timers + i),
			.deadline = next_deadline(from, range),
		};
	}
	result(row, timers, 1, singles(TIMERWHEEL_IOC_MOVE, moves, sizeof(*moves)), "ns");
	for (i = 0; i < SINGLES; i++)
		must(moves[i].result == TIMERWHEEL_WAS_PENDING, "MOVE");
}

static void single_calls(void)
{
	struct timerwheel_add *adds = xcalloc(SINGLES, sizeof(*adds));
	struct timerwheel_move *moves = xcalloc(SINGLES, sizeof(*moves));
	struct timerwheel_remove *removes = xcalloc(SINGLES, sizeof(*removes));
	int i;

	for (i = 0; i < SINGLES; i++) {
		adds[i].key = key_of(timers + i);
		adds[i].deadline = next_deadline(HOUR, HOUR);
		removes[i].key = adds[i].key;
	}
	single_adds("call_add_cold", adds);
	single_moves("call_move_later", moves, 3 * HOUR, HOUR);
	single_moves("call_move_earlier", moves, HOUR / 2, HOUR / 2);
	single_removes("call_remove", removes);
	single_adds("call_add", adds);
	wheel_remove(wheel, removes, SINGLES);
	free(adds);
	free(moves);
	free(removes);
}

static void empty_system_call(void)
{
	const int n = 100000;
	__u64 start = now_ns();
	int i;

	for (i = 0; i < n; i++)
		syscall(SYS_getppid);
	result("call_empty", 0, 1, (double)(now_ns() - start) / n, "ns");
}

static void batches(void)
{
	/* a quarter of the timers is enough for a mean */
	__u64 part = timers / 4 / BATCH * BATCH;
	struct timerwheel_stats stats;

	wheel = wheel_open();
	empty_system_call();
	result("call_add_cold", timers, BATCH, call_add(0, timers, HOUR, HOUR), "ns");
	wheel_stats(wheel, &stats);
	result("memory_told", timers, 0, (double)stats.memory / stats.pending, "bytes");
	result("call_move_later", timers, BATCH, call_move(part, 3 * HOUR, HOUR), "ns");
	result("call_move_earlier", timers, BATCH, call_move(part, HOUR / 2, HOUR / 2), "ns");
	result("call_nothing", timers, BATCH, call_remove(1ULL << 40, part, -ENOENT), "ns");
	single_calls();
	result("call_remove", timers, BATCH, call_remove(0, part, TIMERWHEEL_WAS_PENDING), "ns");
	result("call_add", timers, BATCH, call_add(0, part, HOUR, HOUR), "ns");
	close(wheel);
}

/* Read @n waiting events, @most in a call. Returns ns for each. */
static double read_events(__u64 n, __u32 most)
{
	__u64 start = now_ns(), got = 0;

	while (got < n) {
		__u32 now = wheel_read(wheel, events, most);

		must(now, "a read of waiting events");
		got += now;
	}
	return (double)(now_ns() - start) / got;
}

/* Reading events, without expiry */
static void reads(void)
{
	static const __u32 sizes[] = { 1, 16, 256, EVENTS };
	unsigned int i;

	wheel = wheel_open();
	/* due long before all of them are armed */
	call_add(0, timers, NSEC_PER_MSEC, 1);
	sleep_until(now_ns() + 10 * NSEC_PER_SEC);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		result("read", timers, sizes[i], read_events(timers / 5, sizes[i]), "ns");
	close(wheel);
}

void bench_calls(void)
{
	timers = options.most / BATCH * BATCH;
	progress("calls alone, with %s timers", commas(timers));
	batches();
	reads();
}
