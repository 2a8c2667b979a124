/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The listening sockets. All threads accept from the same sockets, so there are few to keep, and no
 * waiting client belongs to a thread that does not exist after a restart. The thread that accepts a
 * client gives it to the thread with the fewest connections.
 */
#ifndef PROXY_LISTENER_H
#define PROXY_LISTENER_H

#include "loop.h"
#include "options.h"

struct stored;

/** LISTENER_ACCEPTS - clients accepted at once; other threads or the next turn take others */
#define LISTENER_ACCEPTS	16

/** LISTENER_PAUSE - time without accepts after accept() failed, ns */
#define LISTENER_PAUSE	(200 * NSEC_PER_MSEC)

/**
 * listeners_open - open the listening sockets
 * @stored: the descriptors from the service manager. If there are sockets of a socket unit, use
 *	them. Otherwise use the addresses of --listen, and the sockets of a previous proxy for the
 *	same addresses.
 *
 * Ends the process with a message if it fails.
 */
void listeners_open(const struct stored *stored);

/**
 * least_loaded - find the thread with the fewest connections, of those that have room
 * @loop: the result if no thread has room
 *
 * Return: the thread.
 */
struct loop *least_loaded(struct loop *loop);

/**
 * listener_turn - start or stop to accept, depending on the room
 * @loop: the calling thread
 */
void listener_turn(struct loop *loop);

/**
 * listener_stop - stop to accept in this thread
 * @loop: the calling thread
 */
void listener_stop(struct loop *loop);

/**
 * listeners_close - refuse new clients from now on
 *
 * Clients that the kernel has accepted are taken first, if there is room for them. A socket of a
 * socket unit continues to listen, and its clients wait for the next proxy.
 */
void listeners_close(void);

#endif /* PROXY_LISTENER_H */
