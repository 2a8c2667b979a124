// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/timerwheel: with calls by key (refresh is MOVE, events are read); by handle; and by handle
 * with its two mappings (refresh is a compare-and-swap in the deadline table, events are in a ring)
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../lib/timerwheel-mapped.h"
#include "../bench.h"
#include "device.h"
#include "poller.h"
#include "wheel.h"

#define RING	16384
#define EVENTS	1024		/* taken at a time */
#define CAPACITY_DEFAULT	4194304

int wheel;
static int poller;
static struct timerwheel_add adds[BATCH_MOST];
static struct timerwheel_move moves[BATCH_MOST];
static struct timerwheel_remove removes[BATCH_MOST];
static struct timerwheel_move_handle handle_moves[BATCH_MOST];
static struct timerwheel_remove_handle handle_removes[BATCH_MOST];
static __thread struct timerwheel_event events[EVENTS];

/* The handle of each timer */
static __u32 capacity;
static struct handle {
	__u32 index;
	__u32 generation;
} *handles;

/* With the mappings */
static __u64 *table;
static struct timerwheel_mapped_ring ring;
static size_t ring_size;
static unsigned int generation_bits;

void wheel_wrong(const char *what, __u32 id, int result)
{
	die("%s of timer %u: %s: this is not a measurement", what, id,
	    result < 0 ? strerror(-result) : "unexpected result");
}

/* More timers than by default need SETUP. */
static __u32 capacity_asked(void)
{
	return capacity > CAPACITY_DEFAULT ? capacity : 0;
}

void calls_open(__u32 room, __u64 timeout)
{
	(void)timeout;
	capacity = room;
	wheel = wheel_open();
	poller = poller_open();
	poller_add(poller, wheel, 0);
}

static void plain_open(__u32 room, __u64 timeout)
{
	struct timerwheel_setup setup = { };

	calls_open(room, timeout);
	setup.capacity = capacity_asked();
	wheel_setup(wheel, &setup);
}

void calls_close(void)
{
	close(poller);
	close(wheel);
	/* otherwise freeing it would be measured with the next workload */
	wheel_wait_freed();
}

static void calls_arm(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		adds[i].key = c[i].id;
		adds[i].value = c[i].id;
		adds[i].deadline = c[i].deadline;
		adds[i].flags = TIMERWHEEL_ABS;
	}
	wheel_add(wheel, adds, n);
	for (i = 0; i < n; i++) {
		if (adds[i].result != TIMERWHEEL_WAS_NONE)
			wheel_wrong("ADD", c[i].id, adds[i].result);
	}
}

void calls_move(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		moves[i].key = c[i].id;
		moves[i].deadline = c[i].deadline;
		moves[i].flags = TIMERWHEEL_ABS;
	}
	wheel_move(wheel, moves, n);
	for (i = 0; i < n; i++) {
		if (moves[i].result != TIMERWHEEL_WAS_PENDING)
			wheel_wrong("MOVE", c[i].id, moves[i].result);
	}
}

static void calls_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		removes[i].key = c[i].id;
	wheel_remove(wheel, removes, n);
	for (i = 0; i < n; i++) {
		if (removes[i].result != TIMERWHEEL_WAS_PENDING)
			wheel_wrong("REMOVE", c[i].id, removes[i].result);
	}
}

void calls_run(__u64 until)
{
	struct epoll_event ready;
	__u32 i, n;

	while (!nothing_left()) {
		if (!poller_wait(poller, &ready, 1, until))
			return;
		n = wheel_read(wheel, events, ARRAY_SIZE(events));
		for (i = 0; i < n; i++)
			deliver(events[i].value);
	}
}

static void handle_open(__u32 room, __u64 timeout)
{
	plain_open(room, timeout);
	handles = xcalloc(capacity, sizeof(*handles));
}

static void handle_close(void)
{
	free(handles);
	calls_close();
}

static void handle_arm(const struct change *c, __u32 n)
{
	__u32 i;

	calls_arm(c, n);
	for (i = 0; i < n; i++) {
		handles[c[i].id].index = adds[i].index;
		handles[c[i].id].generation = adds[i].generation;
	}
}

static void handle_move(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		handle_moves[i].deadline = c[i].deadline;
		handle_moves[i].index = handles[c[i].id].index;
		handle_moves[i].generation = handles[c[i].id].generation;
	}
	wheel_move_handle(wheel, TIMERWHEEL_ABS, handle_moves, n);
	for (i = 0; i < n; i++) {
		if (handle_moves[i].result != TIMERWHEEL_WAS_PENDING)
			wheel_wrong("MOVE_HANDLE", c[i].id, handle_moves[i].result);
	}
}

static void handle_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		handle_removes[i].index = handles[c[i].id].index;
		handle_removes[i].generation = handles[c[i].id].generation;
	}
	wheel_remove_handle(wheel, handle_removes, n);
	for (i = 0; i < n; i++) {
		if (handle_removes[i].result != TIMERWHEEL_WAS_PENDING)
			wheel_wrong("REMOVE_HANDLE", c[i].id, handle_removes[i].result);
	}
}

void *wheel_map(size_t size, __u64 offset)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, wheel, offset);

	if (memory == MAP_FAILED)
		die("mmap of the wheel at %#llx: %s", offset, strerror(errno));
	return memory;
}

void ring_open(__u32 flags)
{
	struct timerwheel_setup setup = {
		.flags = flags, .ring = RING, .capacity = capacity_asked(),
	};
	struct timerwheel_info info;

	wheel_setup(wheel, &setup);
	wheel_info(wheel, &info);
	ring_size = TIMERWHEEL_RING_EVENTS + setup.ring * sizeof(struct timerwheel_event);
	ring.ring = wheel_map(ring_size, TIMERWHEEL_MMAP_RING);
	ring.events = info.ring;
	ring.event_size = info.event_size;
}

void ring_close(void)
{
	munmap(ring.ring, ring_size);
}

static void mapped_open(__u32 room, __u64 timeout)
{
	struct timerwheel_info info;

	calls_open(room, timeout);
	handles = xcalloc(capacity, sizeof(*handles));
	ring_open(TIMERWHEEL_SETUP_TABLE);
	wheel_info(wheel, &info);
	generation_bits = info.generation_bits;
	table = wheel_map(capacity * sizeof(*table), TIMERWHEEL_MMAP_DEADLINES);
}

static void mapped_close(void)
{
	ring_close();
	munmap(table, capacity * sizeof(*table));
	handle_close();
}

static void mapped_refresh(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		const struct handle *handle = &handles[c[i].id];
		__u64 entry = timerwheel_mapped_entry(c[i].deadline, handle->generation,
						      generation_bits);

		timerwheel_mapped_refresh(table, handle->index, entry, generation_bits);
	}
}

void mapped_run(__u64 until)
{
	const struct timerwheel_event *event;
	struct epoll_event ready;
	unsigned int i, n;

	while (!nothing_left()) {
		event = timerwheel_ring_look(&ring, &n);
		for (i = 0; i < n; i++)
			deliver(event[i].value);
		timerwheel_ring_drop(&ring, n);
		if (n)
			continue;
		switch (timerwheel_ring_sleep(&ring)) {
		case TIMERWHEEL_RING_TAKE:
			break;
		case TIMERWHEEL_RING_FLOW:
			if (ioctl(wheel, TIMERWHEEL_IOC_FLOW) < 0)
				die("FLOW: %s", strerror(errno));
			break;
		case TIMERWHEEL_RING_POLL:
			if (!poller_wait(poller, &ready, 1, until))
				return;
			break;
		}
	}
}

const struct facility facility_timerwheel = {
	.name = "timerwheel",
	.processes = true,
	.batches = true,
	.open = plain_open,
	.close = calls_close,
	.arm = calls_arm,
	.move = calls_move,
	.refresh = calls_move,
	.cancel = calls_cancel,
	.run = calls_run,
};

const struct facility facility_timerwheel_handle = {
	.name = "timerwheel-handle",
	.batches = true,
	.open = handle_open,
	.close = handle_close,
	.arm = handle_arm,
	.move = handle_move,
	.refresh = handle_move,
	.cancel = handle_cancel,
	.run = calls_run,
};

const struct facility facility_timerwheel_mapped = {
	.name = "timerwheel-mapped",
	.batches = true,
	.open = mapped_open,
	.close = mapped_close,
	.arm = handle_arm,
	.move = handle_move,
	.refresh = mapped_refresh,
	.cancel = handle_cancel,
	.run = mapped_run,
};
