/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The deadlines: a wheel of the kernel, with a timer for each connection and kind of timeout.
 *
 * A timer's key is the socket's cookie and the kind. Cookies are counted upwards from 1, and in
 * interrupts downwards from -1: the cookie, shifted by KIND_BITS, and its sign lose nothing.
 */
#ifndef GUARD_TIMERS_H
#define GUARD_TIMERS_H

#include <stdbool.h>

#include "conns.h"
#include "unreachable.h"

struct timerwheel;

/**
 * timers_open - open a wheel
 * @kept: that of a former guard, -1: none. Its timers go on if they have the same timeouts.
 *
 * Ends the process with a message if it cannot.
 *
 * Return: is it the kept one?
 */
bool timers_open(int kept);

/**
 * timers_wheel - the wheel
 *
 * Return: it.
 */
struct timerwheel *timers_wheel(void);

/**
 * timers_complete - has a connection all its timers?
 * @conn: the connection
 *
 * Return: true if so.
 */
bool timers_complete(const struct conn *conn);

/**
 * timers_armed - which timers of a connection does the wheel have?
 * @cookie: the connection's number
 *
 * Return: bits of enum kind.
 */
uint8_t timers_armed(uint64_t cookie);

/**
 * timers_arm - in the worker: arm those timers of a connection that it has not
 * @conn: the connection; may not be freed before timers_flush()
 * @fd: its socket; may not be closed before timers_flush()
 */
void timers_arm(struct conn *conn, int fd);

/**
 * timers_leave - count a connection that can never get timers, and leave it alone
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
 * timers_drop - a connection has ended: remove its timers, and forget it
 * @conn: the connection
 */
void timers_drop(struct conn *conn);

/**
 * timers_flush - do what timers_arm(), timers_disarm() and timers_drop() have asked for
 */
void timers_flush(void);

/**
 * timers_expire - take events and report them
 */
void timers_expire(void);

#endif /* GUARD_TIMERS_H */
