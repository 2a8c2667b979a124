/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The deadlines: a wheel of the kernel, with a timer for each connection and kind of timeout.
 *
 * A timer's key is the socket's cookie and the kind. Cookies count up from 1, and in interrupts
 * down from -1, so shifting a cookie by KIND_BITS loses no information: the sign recovers the upper
 * bits.
 */
#ifndef GUARD_TIMERS_H
#define GUARD_TIMERS_H

#include <stdbool.h>

#include "conns.h"
#include "unreachable.h"

struct timerwheel;

/**
 * timers_open - open a wheel
 * @kept: the wheel of a previous guard; -1: none. Its timers continue if they have the same
 *	timeouts.
 *
 * Ends the process with a message if it fails.
 *
 * Return: true if it uses the kept wheel.
 */
bool timers_open(int kept);

/**
 * timers_mark_choice - note in the wheel that all timers are of the chosen processes and ports
 *
 * The next guard with the same choice keeps the timers of connections that it does not find.
 */
void timers_mark_choice(void);

/**
 * timers_same_choice - did a former guard with the same processes and ports leave the wheel?
 *
 * Return: true if so.
 */
bool timers_same_choice(void);

/**
 * timers_wheel - the wheel
 *
 * Return: the wheel.
 */
struct timerwheel *timers_wheel(void);

/**
 * timers_set - change which timers a connection has
 * @conn: the connection
 * @armed: the new value of its member
 */
void timers_set(struct conn *conn, uint8_t armed);

/**
 * timers_guarded - number of connections that have timers
 *
 * Return: the number.
 */
unsigned int timers_guarded(void);

/**
 * timers_complete - does a connection have all its timers?
 * @conn: the connection
 *
 * Return: true if so.
 */
bool timers_complete(const struct conn *conn);

/**
 * timers_armed - get the timers of a connection that are in the wheel
 * @cookie: the connection's cookie
 *
 * Return: bits of enum kind.
 */
uint8_t timers_armed(uint64_t cookie);

/**
 * timers_arm - in the worker: arm the missing timers of a connection
 * @conn: the connection; must not be freed before timers_flush()
 * @fd: its socket; must not be closed before timers_flush()
 */
void timers_arm(struct conn *conn, int fd);

/**
 * timers_leave - count a connection that can never get timers, and ignore it from now on
 * @conn: the connection
 * @reason: why
 */
void timers_leave(struct conn *conn, enum reason reason);

/**
 * timers_disarm - remove the timers of a connection
 * @conn: the connection
 */
void timers_disarm(struct conn *conn);

/**
 * timers_drop - remove a connection that has ended, with its timers
 * @conn: the connection
 */
void timers_drop(struct conn *conn);

/**
 * timers_flush - perform the operations of timers_arm(), timers_disarm() and timers_drop()
 */
void timers_flush(void);

/**
 * timers_expire - take events and report them
 */
void timers_expire(void);

#endif /* GUARD_TIMERS_H */
