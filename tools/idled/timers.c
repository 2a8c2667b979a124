// SPDX-License-Identifier: GPL-2.0
/*
 * One wheel holds one timer for each connection. What a turn of the loop asks
 * for is gathered and submitted at its end: three system calls at most, however
 * many connections spoke.
 *
 * A timer's key belongs to one connection alone, never to a later one with the
 * same descriptor (see conns.c). So an event that comes out of the wheel when
 * its connection is gone can be told from all others; and as this program removes
 * a timer before it reads events, the kernel has withdrawn such an event already.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "idled.h"
#include "util.h"
#include "wheel.h"

#define EVENTS	256

static int wheel = -1;

/* What this turn asks for; as much as fits into one call. */
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
 * In this order: a connection may come, speak and go in one turn. Adds must not fail
 * and leave a connection without a timer; a removed timer may be gone, because its
 * event was what closed the connection.
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

/* Close the wheel to new timers and empty it: how many were there. */
__u32 timers_close(void)
{
	static struct timerwheel_entry entries[1024];
	__u32 n, total = 0;

	timers_submit();
	while ((n = wheel_drain(wheel, TIMERWHEEL_DRAIN_CLOSE, entries, ARRAY_SIZE(entries))))
		total += n;
	return total;
}
