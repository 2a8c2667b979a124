// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/timerwheel with resident timers: they are armed, refreshed and cancelled in the deadline
 * table, and events are delivered through the ring. Calls create a timer, give it an
 * earlier deadline than the last one, and arm a parked timer.
 *
 * If two threads share it, the only difference is that events are read, since the ring is for one
 * thread at a time.
 *
 * With the timeout as the linger, a timer that fired is not parked when it is armed again.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "../../lib/timerwheel.h"
#include "../bench.h"
#include "device.h"
#include "wheel.h"

static struct timerwheel_table mapped;
static size_t table_size;
static __u64 linger;

static struct handle {
	__u32 index;
	__u32 generation;
} *handles;

static __thread struct timerwheel_add adds[BATCH];
static __thread struct timerwheel_move moves[BATCH];
static __thread __u32 new, moved;	/* their numbers */

static void table_open(__u32 room, __u64 timeout)
{
	struct timerwheel_info info;
	__u32 i;

	wheel_info(wheel, &info);
	mapped.bits = info.generation_bits;
	table_size = room * sizeof(*mapped.entries);
	mapped.entries = wheel_map(table_size, TIMERWHEEL_MMAP_DEADLINES);
	linger = timeout;
	handles = xcalloc(room, sizeof(*handles));
	/* a generation that no timer has for long: arming is TIMERWHEEL_GONE */
	for (i = 0; i < room; i++)
		handles[i].generation = (1U << mapped.bits) - 4;
}

static void table_close(void)
{
	free(handles);
	munmap(mapped.entries, table_size);
}

static void resident_open(__u32 room, __u64 timeout)
{
	calls_open(room, timeout);
	ring_open(TIMERWHEEL_SETUP_RESIDENT);
	table_open(room, timeout);
}

static void resident_close(void)
{
	table_close();
	ring_close();
	calls_close();
}

/* Create the timers in @adds, and arm the timers in @moves. */
static void flush(void)
{
	__u32 i;

	if (new)
		wheel_add(wheel, adds, new);
	for (i = 0; i < new; i++) {
		__u32 id = adds[i].key;

		if (adds[i].result != TIMERWHEEL_WAS_NONE)
			wheel_wrong("ADD", id, adds[i].result);
		handles[id].index = adds[i].index;
		handles[id].generation = adds[i].generation;
	}
	if (moved)
		wheel_move(wheel, moves, moved);
	for (i = 0; i < moved; i++) {
		if (moves[i].result < 0)
			wheel_wrong("MOVE", moves[i].key, moves[i].result);
	}
	new = 0;
	moved = 0;
}

/* Arm a timer by a call. */
static __attribute__((noinline)) void needs_call(const struct change *c, bool create)
{
	if (create)
		adds[new++] = (struct timerwheel_add) {
			.key = c->id,
			.value = c->id,
			.deadline = c->deadline,
			.period = linger,
			.flags = TIMERWHEEL_ABS | (linger ? TIMERWHEEL_LINGER : 0),
		};
	else
		moves[moved++] = (struct timerwheel_move) {
			.key = c->id,
			.deadline = c->deadline,
			.flags = TIMERWHEEL_ABS,
		};
	if (new == BATCH || moved == BATCH)
		flush();
}

/* Change timers in the table. Only arming may need a call; otherwise the measurement is invalid. */
static __attribute__((always_inline)) inline
void change_in_memory(const struct change *c, __u32 n, enum op op)
{
	static const char *const name[] = { [REFRESH] = "refresh", [CANCEL] = "cancel" };
	const struct timerwheel_table table = mapped;
	const struct handle *const handle_of = handles;
	__u32 i;

	for (i = 0; i < n; i++) {
		const struct handle *handle = &handle_of[c[i].id];
		__u32 index = handle->index, generation = handle->generation;
		enum timerwheel_answer answer;

		if (op == ARM)
			answer = timerwheel_table_arm(&table, index, generation, c[i].deadline);
		else if (op == REFRESH)
			answer = timerwheel_table_refresh(&table, index, generation,
							  c[i].deadline);
		else
			answer = timerwheel_table_cancel(&table, index, generation);
		if (answer == TIMERWHEEL_DONE)
			continue;
		if (op != ARM)
			die("%s of timer %u: answer %d: this is not a measurement", name[op],
			    c[i].id, answer);
		needs_call(&c[i], answer == TIMERWHEEL_GONE);
	}
	if (op == ARM && (new || moved))
		flush();
}

static void resident_arm(const struct change *c, __u32 n)
{
	change_in_memory(c, n, ARM);
}

static void resident_refresh(const struct change *c, __u32 n)
{
	change_in_memory(c, n, REFRESH);
}

static void resident_cancel(const struct change *c, __u32 n)
{
	change_in_memory(c, n, CANCEL);
}

static void resident_move(const struct change *c, __u32 n)
{
	__u32 i, count;

	for (i = 0; i < n; i += count) {
		count = n - i < BATCH ? n - i : BATCH;
		calls_move(c + i, count);
	}
}

static void shared_open(__u32 room, __u64 timeout)
{
	struct timerwheel_setup setup = { .flags = TIMERWHEEL_SETUP_RESIDENT };

	calls_open(room, timeout);
	wheel_setup(wheel, &setup);
	table_open(room, timeout);
}

static void shared_close(void)
{
	table_close();
	calls_close();
}

const struct facility facility_resident = {
	.name = "timerwheel-resident",
	.only = "requests leases",
	.processes = true,
	.open = resident_open,
	.close = resident_close,
	.arm = resident_arm,
	.move = resident_move,
	.refresh = resident_refresh,
	.cancel = resident_cancel,
	.run = mapped_run,
};

const struct facility facility_resident_shared = {
	.name = "timerwheel-resident-shared",
	.only = "requests",
	.threads = 2,
	.open = shared_open,
	.close = shared_close,
	.arm = resident_arm,
	.move = resident_move,
	.refresh = resident_refresh,
	.cancel = resident_cancel,
	.run = calls_run,
};
