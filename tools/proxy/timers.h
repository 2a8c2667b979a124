/* SPDX-License-Identifier: GPL-2.0 */
/* The deadlines: a wheel for each thread. */
#ifndef PROXY_TIMERS_H
#define PROXY_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "counters.h"
#include "loop.h"

struct conn;

/** struct timer - a timeout of a connection */
struct timer {
	/** @conn: the connection */
	struct conn *conn;
	/** @kind: the kind of timeout */
	enum kind kind;
	/** @armed: it is armed, or will be at the end of the turn */
	bool armed;
	/** @deadline: its deadline, CLOCK_MONOTONIC, in ns */
	uint64_t deadline;
	/** @index: index of its entry in the deadline table */
	uint32_t index;
	/** @generation: generation for that entry */
	uint32_t generation;
	/** @added: its place in this turn's batch, beginning with 1; 0: it is not in the batch */
	uint32_t added;
};

/**
 * timers_open - open the wheel of a thread
 * @loop: the thread
 * @kept: a wheel that the service manager kept; -1: none
 *
 * Ends the process with a message if it fails.
 *
 * Return: the timers of the thread.
 */
struct timers *timers_open(struct loop *loop, int kept);

/**
 * timers_backend - the back end of the wheels
 * @loop: any thread
 *
 * Return: "device", or "process": the deadlines end with the process.
 */
const char *timers_backend(const struct loop *loop);

/**
 * timers_arm - arm a timer for any time, whether or not it is armed
 * @timers: the timers of this thread
 * @timer: the timer; its conn, kind and deadline are set
 */
void timers_arm(struct timers *timers, struct timer *timer);

/**
 * timers_refresh - postpone an armed timer
 * @timers: the timers of this thread
 * @timer: the timer, with its new, later deadline
 */
void timers_refresh(struct timers *timers, struct timer *timer);

/**
 * timers_cancel - remove the timers of a connection that ends
 * @timers: the timers of this thread
 * @conn: the connection
 */
void timers_cancel(struct timers *timers, struct conn *conn);

/**
 * timers_flush - perform the operations of this turn
 * @timers: the timers of this thread
 */
void timers_flush(struct timers *timers);

/**
 * timers_expire - call conn_expired() for each due timer
 * @timers: the timers of this thread
 *
 * Sockets come first in a turn, so that a connection that has sent data in time is not closed.
 */
void timers_expire(struct timers *timers);

/**
 * timers_each - call restore_conn() for each timer of a kept wheel
 * @timers: the timers of a thread; no thread runs yet
 *
 * Removes timers whose connection did not come back.
 */
void timers_each(struct timers *timers);

#endif /* PROXY_TIMERS_H */
