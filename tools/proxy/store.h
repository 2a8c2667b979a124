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

/** STORE_RATE - connections that may take the places of others in the store, per second */
#define STORE_RATE	50

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
 * @kept: it is there already, and is only counted
 */
void store_fd(const char *name, int fd, bool watch, bool kept);

/**
 * store_used - the number of descriptors in the store
 *
 * Sockets that have hung up count until the service manager must have dropped them.
 *
 * Return: that number.
 */
unsigned int store_used(void);

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
 * @conn: the connection; no thread runs yet
 */
void store_kept(struct conn *conn);

/**
 * store_turn - send what is old enough to the store
 * @loop: of this thread
 *
 * Return: when to call it again, CLOCK_MONOTONIC, in ns.
 */
uint64_t store_turn(struct loop *loop);

/**
 * store_all - send all connections that are not there yet, however young, and reset the others
 * @loop: of this thread
 *
 * Return: false: the service manager is busy, call it again.
 */
bool store_all(struct loop *loop);

#endif /* PROXY_STORE_H */
