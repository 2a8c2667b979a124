// SPDX-License-Identifier: GPL-2.0
/* The library's back end inside the process, by handle; refresh is a store in the deadline table */
#include <stdlib.h>

#include "../../lib/timerwheel.h"
#include "../bench.h"
#include "peers.h"

#define EVENTS	1024	/* taken at a time */

static struct timerwheel *wheel;
static struct timerwheel_table table;
static struct handle {
	__u32 index;
	__u32 generation;
} *handles;

static void library_open(__u32 capacity, __u64 timeout)
{
	struct timerwheel_config config = {
		.backend = TIMERWHEEL_BACKEND_PROCESS, .capacity = capacity, .table = true,
	};

	(void)timeout;
	if (timerwheel_open(&wheel, &config) || timerwheel_table(wheel, &table))
		die("the library does not open a wheel");
	handles = xcalloc(capacity, sizeof(*handles));
}

static void wrong(const char *what, __u32 id, long result)
{
	die("%s of timer %u: result %ld: this is not a measurement", what, id, result);
}

static void library_arm(const struct change *c, __u32 n)
{
	struct timerwheel_add adds[BATCH];
	__u32 i;

	for (i = 0; i < n; i++)
		adds[i] = (struct timerwheel_add) {
			.key = c[i].id,
			.value = c[i].id,
			.deadline = c[i].deadline,
			.flags = TIMERWHEEL_ABS,
		};
	timerwheel_add(wheel, adds, n);
	for (i = 0; i < n; i++) {
		if (adds[i].result != TIMERWHEEL_WAS_NONE)
			wrong("ADD", c[i].id, adds[i].result);
		handles[c[i].id].index = adds[i].index;
		handles[c[i].id].generation = adds[i].generation;
	}
}

static void library_move(const struct change *c, __u32 n)
{
	struct timerwheel_move_handle moves[BATCH];
	__u32 i;

	for (i = 0; i < n; i++)
		moves[i] = (struct timerwheel_move_handle) {
			.deadline = c[i].deadline,
			.index = handles[c[i].id].index,
			.generation = handles[c[i].id].generation,
		};
	timerwheel_move_handles(wheel, moves, n, TIMERWHEEL_ABS);
	for (i = 0; i < n; i++)
		if (moves[i].result != TIMERWHEEL_WAS_PENDING)
			wrong("MOVE_HANDLE", c[i].id, moves[i].result);
}

static void library_refresh(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		const struct handle *handle = &handles[c[i].id];
		enum timerwheel_answer answer;

		answer = timerwheel_table_refresh(&table, handle->index, handle->generation,
						  c[i].deadline);
		if (answer != TIMERWHEEL_DONE)
			wrong("refresh", c[i].id, answer);
	}
}

static void library_cancel(const struct change *c, __u32 n)
{
	struct timerwheel_remove_handle removes[BATCH];
	__u32 i;

	for (i = 0; i < n; i++)
		removes[i] = (struct timerwheel_remove_handle) {
			.index = handles[c[i].id].index,
			.generation = handles[c[i].id].generation,
		};
	timerwheel_remove_handles(wheel, removes, n);
	for (i = 0; i < n; i++)
		if (removes[i].result != TIMERWHEEL_WAS_PENDING)
			wrong("REMOVE_HANDLE", c[i].id, removes[i].result);
}

static void library_run(__u64 until)
{
	static struct timerwheel_event events[EVENTS];
	long n, i;

	(void)until;
	do {
		n = timerwheel_take(wheel, events, EVENTS);
		for (i = 0; i < n; i++)
			deliver(events[i].value);
	} while (n > 0);
}

const struct facility native_library = {
	.name = "library",
	.open = library_open,
	.arm = library_arm,
	.move = library_move,
	.refresh = library_refresh,
	.cancel = library_cancel,
	.run = library_run,
};
