/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The listening socket. All threads accept from the one: it is one descriptor to keep, and none
 * of its waiting clients belongs to a thread that is gone after a restart.
 */
#ifndef PROXY_LISTENER_H
#define PROXY_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "loop.h"
#include "options.h"

/** LISTENER_ACCEPTS - clients taken at once: others are left to other threads, or the next turn */
#define LISTENER_ACCEPTS	16

/** LISTENER_WHILE - how long nothing is accepted after accept() failed, ns */
#define LISTENER_WHILE	(200 * NSEC_PER_MSEC)

/**
 * listener_bind - a listening socket
 * @option: what the user calls it, for messages
 * @address: where
 * @backlog: most that may wait
 * @flags: SOCK_NONBLOCK or 0
 *
 * Ends the process with a message if it cannot.
 *
 * Return: the descriptor.
 */
int listener_bind(const char *option, const struct address *address, int backlog, int flags);

/**
 * listener_use - the socket that all threads accept from
 * @fd: it
 */
void listener_use(int fd);

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

#endif /* PROXY_LISTENER_H */
