/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How connections survive the proxy: the service manager keeps their sockets and the wheels with
 * their deadlines, and passes them to the next proxy. README.md describes the protocol.
 */
#ifndef PROXY_STORE_H
#define PROXY_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "conn.h"
#include "loop.h"
#include "notify.h"
#include "options.h"

/** STORE_RATE - number of connections per second that may take places of ended ones in the store */
#define STORE_RATE	50

/** struct stored - the descriptors that the service manager passed at the start */
struct stored {
	/** @listeners: number of listening sockets */
	unsigned int listeners;
	/** @listener: the listening sockets */
	struct {
		/** @fd: the socket */
		int fd;
		/** @own: it belongs to a previous proxy; otherwise to a socket unit */
		bool own;
	} listener[TARGETS_MAX];
	/** @threads: number of wheels */
	unsigned int threads;
	/** @wheel: wheel of each thread; -1: none */
	int wheel[THREADS_MAX];
};

/**
 * store_collect - collect the descriptors from the service manager
 * @stored: out: filled in
 */
void store_collect(struct stored *stored);

/**
 * store_begin - store the wheel of a thread, if connections can survive this process
 * @loop: the thread
 * @kept: the wheel is already in the store
 */
void store_begin(struct loop *loop, bool kept);

/**
 * store_active - can connections survive this process?
 *
 * Return: true if there is a service manager that keeps descriptors, and the timers can be kept.
 */
bool store_active(void);

/**
 * store_restore - continue the connections that were kept
 *
 * No thread runs yet.
 *
 * Return: the number of connections.
 */
unsigned int store_restore(void);

/**
 * restore_conn - restore the connection of a kept timer
 * @loop: the thread whose wheel has the timer
 * @id: the connection's id
 * @server_id: the cookie of the server's socket
 *
 * Return: the connection; NULL: its sockets did not come back.
 */
struct conn *restore_conn(struct loop *loop, uint64_t id, uint64_t server_id);

/**
 * store_fd - store a descriptor that the proxy needs after a restart
 * @name: the name under which it comes back
 * @fd: the descriptor
 * @watch: the service manager drops it when it hangs up
 * @kept: it is already in the store; only count it
 */
void store_fd(const char *name, int fd, bool watch, bool kept);

/**
 * store_used - the number of descriptors in the store
 *
 * A socket that has hung up counts for the time that the service manager needs to drop it.
 *
 * Return: the number.
 */
unsigned int store_used(void);

/**
 * store_conn - store a connection when it is old enough
 * @conn: a new connection, or one that has a new socket to a server
 */
void store_conn(struct conn *conn);

/**
 * store_forget - account for the end of a connection
 * @conn: the connection
 */
void store_forget(struct conn *conn);

/**
 * store_kept - account for a connection whose sockets the service manager already has
 * @conn: the connection; no thread runs yet
 */
void store_kept(struct conn *conn);

/**
 * store_turn - send connections that are old enough to the store
 * @loop: the calling thread
 *
 * Return: the time of the next call, CLOCK_MONOTONIC, in ns.
 */
uint64_t store_turn(struct loop *loop);

/**
 * store_all - send all connections to the store, however young, and reset those without a place
 * @loop: the calling thread
 *
 * Return: false: the service manager is busy, call it again.
 */
bool store_all(struct loop *loop);

#endif /* PROXY_STORE_H */
