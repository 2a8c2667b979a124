/* SPDX-License-Identifier: GPL-2.0 */
/* What keeps the deadlines: a wheel for each thread. */
#ifndef PROXY_TIMERS_H
#define PROXY_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "counters.h"
#include "loop.h"

struct conn;
struct timerwheel_stats;

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
 * @timers: of any thread
 *
 * Return: "device", or "process": they end with it.
 */
const char *timers_backend(struct timers *timers);

/**
 * timers_share - what the service manager may keep
 * @timers: of a thread
 *
 * Return: a descriptor; -1: these timers end with the process.
 */
int timers_share(struct timers *timers);

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
 * timers_stats - counters of the wheel
 * @timers: of any thread
 * @stats: are filled in
 *
 * Return: true if they could be read.
 */
bool timers_stats(struct timers *timers, struct timerwheel_stats *stats);

/** struct sight - a timer of a wheel that was kept */
struct sight {
	/** @id: the connection's */
	uint64_t id;
	/** @server_id: that of the server's socket */
	uint64_t server_id;
	/** @kind: which timer it is */
	enum kind kind;
	/** @header: version of the PROXY protocol's header that the server gets */
	uint8_t header;
	/** @lives: the connection has a timer for its lifetime */
	bool lives;
};

/**
 * timers_each - look at all timers of a wheel that was kept
 * @timers: of a thread; none runs yet
 *
 * restore_timer() is called for each.
 */
void timers_each(struct timers *timers);

/**
 * restore_timer - see a timer that was kept
 * @loop: the thread whose wheel it is in
 * @sight: what is known of it
 *
 * Return: the timer of a connection to which it belongs; NULL: nobody's, it is removed.
 */
struct timer *restore_timer(struct loop *loop, const struct sight *sight);

#endif /* PROXY_TIMERS_H */
