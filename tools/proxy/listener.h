/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The listening sockets. All threads accept from the same ones: they are few to keep, and none
 * of the clients that wait there belongs to a thread that is gone after a restart. Whoever accepts
 * a client gives it to the thread with the fewest connections.
 */
#ifndef PROXY_LISTENER_H
#define PROXY_LISTENER_H

#include "loop.h"
#include "options.h"

struct stored;

/** LISTENER_ACCEPTS - clients taken at once: others are left to other threads, or the next turn */
#define LISTENER_ACCEPTS	16

/** LISTENER_PAUSE - how long nothing is accepted after accept() failed, ns */
#define LISTENER_PAUSE	(200 * NSEC_PER_MSEC)

/**
 * listeners_open - listen
 * @stored: what the service manager gave us. The sockets of a socket unit are used, and if there
 *	are none, those of --listen; of these a former proxy's that listen at the same address
 *
 * Ends the process with a message if it cannot.
 */
void listeners_open(const struct stored *stored);

/**
 * least_loaded - the thread with the fewest connections, of those that have room
 * @loop: which it is if none has room
 *
 * Return: that thread.
 */
struct loop *least_loaded(struct loop *loop);

/**
 * listener_turn - begin to accept, or pause, as there is room
 * @loop: of this thread
 */
void listener_turn(struct loop *loop);

/**
 * listener_stop - accept no more in this thread
 * @loop: its
 */
void listener_stop(struct loop *loop);

/**
 * listeners_close - refuse new clients from now on
 *
 * Clients that the kernel has accepted are taken first, if there is room for them. A socket of a
 * socket unit goes on to listen, and its clients wait for the next proxy.
 */
void listeners_close(void);

#endif /* PROXY_LISTENER_H */
