/* SPDX-License-Identifier: GPL-2.0 */
/* What keeps the deadlines: a wheel for each thread. */
#ifndef PROXY_TIMERS_H
#define PROXY_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "counters.h"
#include "loop.h"

struct conn;

/** struct timer - a timeout of a connection */
struct timer {
	/** @conn: whose */
	struct conn *conn;
	/** @kind: which it is */
	enum kind kind;
	/** @armed: it is to fire */
	bool armed;
	/** @deadline: when, CLOCK_MONOTONIC, in ns */
	uint64_t deadline;
	/** @index: of its entry in the deadline table */
	uint32_t index;
	/** @generation: which goes into that */
	uint32_t generation;
	/** @added: its place in this turn's batch, from 1 on; 0: it is armed */
	uint32_t added;
};

/**
 * timers_open - begin
 * @loop: whose
 * @kept: a wheel that the service manager kept, -1: none
 *
 * Ends the process with a message if it cannot.
 *
 * Return: the timers of one thread.
 */
struct timers *timers_open(struct loop *loop, int kept);

/**
 * timers_backend - where the deadlines are
 * @loop: any thread
 *
 * Return: "device", or "process": they end with it.
 */
const char *timers_backend(const struct loop *loop);

/**
 * timers_arm - set a timer, or set it anew, to any time
 * @timers: of this thread
 * @timer: conn, kind and deadline are set
 */
void timers_arm(struct timers *timers, struct timer *timer);

/**
 * timers_refresh - postpone an armed timer
 * @timers: of this thread
 * @timer: it; its deadline has become a later one
 */
void timers_refresh(struct timers *timers, struct timer *timer);

/**
 * timers_cancel - the connection ends: forget its timers
 * @timers: of this thread
 * @conn: it
 */
void timers_cancel(struct timers *timers, struct conn *conn);

/**
 * timers_flush - do what this turn asked for
 * @timers: of this thread
 */
void timers_flush(struct timers *timers);

/**
 * timers_expire - call conn_expired() for each timer that is due
 * @timers: of this thread
 *
 * Sockets come first in a turn: who spoke in time is not closed.
 */
void timers_expire(struct timers *timers);

/**
 * timers_each - call restore_conn() for each timer of a wheel that was kept
 * @timers: of a thread; none runs yet
 *
 * Timers whose connection did not come back are removed.
 */
void timers_each(struct timers *timers);

#endif /* PROXY_TIMERS_H */
