/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections. A connection begins when a client is accepted and goes through these phases, each
 * with its own timeout:
 *
 *	KIND_CONNECT -> KIND_IDLE -> KIND_HALF_CLOSE -> closed
 *
 * In KIND_CONNECT no server has answered. In KIND_IDLE bytes pass in both directions. The end of
 * file of one side is forwarded, and begins KIND_HALF_CLOSE, which ends with the other side's end
 * of file. Each byte that is forwarded or acknowledged postpones the timeout. Another timeout
 * limits the lifetime.
 *
 * If one side fails, the other side gets the earlier bytes, and then a reset. If a timeout ends a
 * connection while bytes are in transit, both sides get a reset.
 *
 * A byte is removed from one socket only after the other socket has it. Therefore the sockets
 * contain all data of a connection, and a kill of this process loses nothing.
 */
#ifndef PROXY_CONN_H
#define PROXY_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "counters.h"
#include "loop.h"
#include "socket.h"
#include "timers.h"

/** enum which - the two sides of a connection */
enum which {
	/** @CLIENT: the side that was accepted */
	CLIENT,
	/** @SERVER: the side to which the proxy connects */
	SERVER
};

/** struct side - one side of a connection */
struct side {
	/** @source: its socket */
	struct source source;
	/** @conn: the connection */
	struct conn *conn;
	/** @bytes: number of bytes that it sent and the proxy has forwarded */
	uint64_t bytes;
	/** @fd: its socket */
	int fd;
	/** @watched: the events for which epoll watches it */
	uint32_t watched;
	/** @address: its address */
	union address address;
	/** @eof: it sends no more: it sent an end of file, which was forwarded, or failed */
	bool eof;
	/** @blocked: the other side has no room for its bytes */
	bool blocked;
	/** @broken: the connection to it has failed; earlier bytes from it may still wait */
	bool broken;
	/** @reset: it failed without an end of file, and its socket has already reported that */
	bool reset;
	/** @acked: number of bytes that it had acknowledged at the last check */
	uint64_t acked;
};

/** struct conn - a connection */
struct conn {
	/** @side: client and server */
	struct side side[2];
	/** @loop: its thread */
	struct loop *loop;
	/** @next: in loop->arrivals */
	struct conn *next;
	/** @gone: the broken side, or the first of two; NULL: none */
	struct side *gone;
	/** @moved: with @gone, the time at which the other side last acknowledged bytes, in ns */
	uint64_t moved;
	/** @id: its unique number: the client's SO_COOKIE */
	uint64_t id;
	/** @server_id: the server's SO_COOKIE, if the connection can survive the proxy; else 0 */
	uint64_t server_id;
	/** @phase: KIND_CONNECT, KIND_IDLE or KIND_HALF_CLOSE */
	enum kind phase;
	/** @first: CLIENT or SERVER: the side that first sent an end of file */
	uint8_t first;
	/** @server: number of the server in options.to */
	uint8_t server;
	/** @tries: number of servers that were not tried yet */
	uint8_t tries;
	/** @header: version of the header of the PROXY protocol that the server gets; 0: none */
	uint8_t header;
	/** @closed: it is freed at the end of the turn */
	bool closed;
	/** @lives: it has a lifetime timer */
	bool lives;
	/** @waits: it is in loop->unstored */
	bool waits;
	/** @stored: the service manager may have one or both of its sockets */
	bool stored;
	/** @placed: it has a place in the service manager's store, see store.c */
	bool placed;
	/** @restored: it came from the store at the time @opened */
	bool restored;
	/** @timer: timer of the phase */
	struct timer timer;
	/** @life: timer of the lifetime */
	struct timer life;
	/** @opened: time of the open, CLOCK_MONOTONIC, in ns */
	uint64_t opened;
	/** @all: in loop->conns or loop->closed */
	LIST_ENTRY(conn) all;
	/** @same: in loop->by_id */
	LIST_ENTRY(conn) same;
	/** @store: in loop->unstored */
	TAILQ_ENTRY(conn) store;
};

/**
 * conn_accept - accept a client
 * @loop: the thread that will serve it
 * @fd: its socket
 * @from: its address
 *
 * Any thread may call this.
 */
void conn_accept(struct loop *loop, int fd, const union address *from);

/**
 * conn_open - begin a connection
 * @loop: the calling thread
 * @conn: an arrival
 */
void conn_open(struct loop *loop, struct conn *conn);

/**
 * conn_restore - restore a connection that the service manager kept
 * @loop: the thread whose wheel had it; no thread runs yet
 * @fd: the sockets of client and server
 * @id: its id
 * @server_id: its server_id
 *
 * Return: the connection. The caller fills in its phase and timers, and then calls conn_resume().
 * NULL: no memory.
 */
struct conn *conn_restore(struct loop *loop, const int fd[2], uint64_t id, uint64_t server_id);

/**
 * conn_resume - continue a restored connection
 * @conn: the connection, with its timers
 *
 * Closes the connection if it has lost bytes.
 */
void conn_resume(struct conn *conn);

/**
 * conn_enter - add a connection to a thread
 * @conn: the connection
 * @loop: the thread
 */
void conn_enter(struct conn *conn, struct loop *loop);

/**
 * conn_leave - remove a connection from its thread
 * @conn: the connection
 */
void conn_leave(struct conn *conn);

/**
 * conn_find - find a connection by its id
 * @loop: its thread
 * @id: its id
 *
 * Return: the connection, or NULL.
 */
struct conn *conn_find(struct loop *loop, uint64_t id);

/**
 * conn_close - end a connection
 * @conn: the connection
 * @end: how it ended
 */
void conn_close(struct conn *conn, enum end end);

/**
 * conn_expired - handle an expired timer of a connection
 * @conn: the connection
 * @timer: one of its two timers, which is no longer armed
 */
void conn_expired(struct conn *conn, struct timer *timer);

/**
 * conns_reap - free the connections that were closed in this turn
 * @loop: the thread
 */
void conns_reap(struct loop *loop);

/**
 * conns_close - close all connections
 * @loop: the thread
 */
void conns_close(struct loop *loop);

#endif /* PROXY_CONN_H */
