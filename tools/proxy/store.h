/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How connections survive the proxy: the service manager keeps their sockets and the wheels with
 * their deadlines, and gives all that to the next proxy. README.md has the protocol.
 */
#ifndef PROXY_STORE_H
#define PROXY_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "conn.h"
#include "loop.h"
#include "notify.h"
#include "options.h"

/** struct stored - what a service manager gave us at the start */
struct stored {
	/** @listeners: how many listening sockets */
	unsigned int listeners;
	/** @listener: they */
	struct {
		/** @fd: the socket */
		int fd;
		/** @own: of a former proxy; else of a socket unit */
		bool own;
	} listener[TARGETS_MAX];
	/** @threads: how many wheels there are */
	unsigned int threads;
	/** @wheel: wheel of each thread, -1: none */
	int wheel[THREADS_MAX];
};

/**
 * store_collect - see what the service manager gave us
 * @stored: is filled in
 */
void store_collect(struct stored *stored);

/**
 * store_begin - have the wheel of a thread kept, if connections may survive this process
 * @loop: the thread
 * @kept: it is there already
 */
void store_begin(struct loop *loop, bool kept);

/**
 * store_active - may they?
 *
 * Return: true if there is a service manager that keeps descriptors, and timers that can be kept.
 */
bool store_active(void);

/**
 * store_restore - take up the connections that were kept
 *
 * No thread runs yet.
 *
 * Return: how many connections there are now.
 */
unsigned int store_restore(void);

/**
 * restore_conn - a connection, of which a timer was kept
 * @loop: the thread in whose wheel it is
 * @id: the connection's
 * @server_id: that of the server's socket
 *
 * Return: it; NULL: its sockets did not come back.
 */
struct conn *restore_conn(struct loop *loop, uint64_t id, uint64_t server_id);

/**
 * store_fd - have a descriptor kept that the proxy cannot do without
 * @name: by which it comes back
 * @fd: it
 * @watch: it shall be dropped when it hangs up
 */
void store_fd(const char *name, int fd, bool watch);

/**
 * store_conn - have a connection kept once it is old enough
 * @conn: a new one, or one whose server's socket is another one
 */
void store_conn(struct conn *conn);

/**
 * store_forget - a connection ends
 * @conn: it
 */
void store_forget(struct conn *conn);

/**
 * store_kept - the sockets of a connection came from the service manager, which still has them
 */
void store_kept(void);

/**
 * store_turn - send what is old enough to the store
 * @loop: of this thread
 *
 * Return: when to call it again, CLOCK_MONOTONIC, in ns.
 */
uint64_t store_turn(struct loop *loop);

/**
 * store_all - send all that is not there yet, however young
 * @loop: of this thread
 *
 * Return: false: the service manager is busy, call it again.
 */
bool store_all(struct loop *loop);

#endif /* PROXY_STORE_H */
