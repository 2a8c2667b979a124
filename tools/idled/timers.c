// SPDX-License-Identifier: GPL-2.0
/*
 * One wheel holds one timer for each connection. A turn of the loop gathers the operations and
 * submits them at its end, with at most three system calls, however many connections have sent
 * data.
 *
 * A timer's key belongs to one connection only, never to a later connection with the same
 * descriptor (see conns.c). Therefore the program can recognize an event of a closed connection.
 * Because it removes a timer before it reads events, the kernel has already withdrawn such an
 * event.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "idled.h"
#include "util.h"
#include "wheel.h"

#define EVENTS	256

static int wheel = -1;

/* The operations of this turn, as many as fit in one call. */
static struct timerwheel_add adds[TIMERWHEEL_BATCH_MAX];
static struct timerwheel_move moves[TIMERWHEEL_BATCH_MAX];
static struct timerwheel_remove removes[TIMERWHEEL_BATCH_MAX];
static __u32 nr_adds, nr_moves, nr_removes;

int timers_init(void)
{
	struct timerwheel_setup setup = {
		.clock = TIMERWHEEL_CLOCK_MONOTONIC,
		.capacity = options.max_connections,
	};

	wheel = wheel_open();
	wheel_setup(wheel, &setup);
	return wheel;
}

void timers_add(__u64 key)
{
	if (nr_adds == ARRAY_SIZE(adds))
		timers_submit();
	adds[nr_adds++] = (struct timerwheel_add) {
		.key = key,
		.deadline = turn_time + options.idle,
		.flags = TIMERWHEEL_ABS | TIMERWHEEL_EXCL,
	};
}

void timers_refresh(__u64 key)
{
	if (nr_moves == ARRAY_SIZE(moves))
		timers_submit();
	moves[nr_moves++] = (struct timerwheel_move) {
		.key = key,
		.deadline = turn_time + options.idle,
		.flags = TIMERWHEEL_ABS,
	};
}

void timers_remove(__u64 key)
{
	if (nr_removes == ARRAY_SIZE(removes))
		timers_submit();
	removes[nr_removes++] = (struct timerwheel_remove) { .key = key };
}

/*
 * The order matters: a connection may open, send data and close in one turn. Adds must not fail and
 * leave a connection without a timer. A removed timer may no longer exist, because its event has
 * closed the connection.
 */
void timers_submit(void)
{
	__u32 i;

	counts.calls += wheel_add(wheel, adds, nr_adds);
	counts.calls += wheel_move(wheel, moves, nr_moves);
	for (i = 0; i < nr_moves; i++) {
		if (moves[i].result >= 0)
			counts.refreshed++;
		if (moves[i].result == TIMERWHEEL_WAS_DUE)
			counts.last_moment++;
		conns_refresh_done(moves[i].key);
	}
	nr_moves = 0;
	for (i = 0; i < nr_adds; i++) {
		if (adds[i].result < 0)
			conns_unarmed(adds[i].key, -adds[i].result);
	}
	nr_adds = 0;
	counts.calls += wheel_remove(wheel, removes, nr_removes);
	nr_removes = 0;
}

void timers_collect(void)
{
	struct timerwheel_event events[EVENTS];
	__u32 i, n;

	do {
		n = wheel_read(wheel, events, EVENTS);
		counts.calls++;
		for (i = 0; i < n; i++)
			conns_expired(events[i].key, events[i].deadline, events[i].fired);
	} while (n == EVENTS);
}

/* Close the wheel to new timers and drain it. Returns the number of timers. */
__u32 timers_close(void)
{
	static struct timerwheel_entry entries[1024];
	__u32 n, total = 0;

	timers_submit();
	while ((n = wheel_drain(wheel, TIMERWHEEL_DRAIN_CLOSE, entries, ARRAY_SIZE(entries))))
		total += n;
	return total;
}
