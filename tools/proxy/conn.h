/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections. One begins when a client comes and goes through these phases, each of which
 * has its own timeout:
 *
 *	KIND_CONNECT -> KIND_IDLE -> KIND_HALF_CLOSE -> closed
 *
 * In KIND_CONNECT no server has answered. In KIND_IDLE bytes pass both ways. One side's end
 * of file is passed on as such, and then it is KIND_HALF_CLOSE, until the other's. Each byte
 * that passes or is acknowledged postpones the timeout. One more timeout limits the whole of it.
 *
 * If one side fails, the other side gets what had come before, and then a reset. If a timeout ends
 * a connection with bytes under way, both sides get a reset.
 *
 * A byte is taken from one socket only after the other one has it. So the sockets know all:
 * nothing of a connection is in this process that a kill would lose.
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
	/** @CLIENT: who came */
	CLIENT,
	/** @SERVER: where it was to go */
	SERVER
};

/** struct side - one of them */
struct side {
	/** @source: its socket */
	struct source source;
	/** @conn: whose */
	struct conn *conn;
	/** @bytes: that it sent and the other has taken */
	uint64_t bytes;
	/** @fd: its socket */
	int fd;
	/** @watched: for which events */
	uint32_t watched;
	/** @address: its address */
	union address address;
	/** @eof: nothing more comes from it: an end of file, which was passed on, or a failure */
	bool eof;
	/** @blocked: the other has no room for what it sends */
	bool blocked;
	/** @broken: the connection to it has failed; what it sent before may still wait */
	bool broken;
	/** @reset: it failed without an end of file, and its socket has reported that already */
	bool reset;
	/** @acked: how many bytes it had acknowledged when that was last read */
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
	/** @gone: the side that is broken, the first of two; NULL: none */
	struct side *gone;
	/** @moved: since @gone, when the other side last took bytes, CLOCK_MONOTONIC, in ns */
	uint64_t moved;
	/** @id: tells it from all others: the client's SO_COOKIE */
	uint64_t id;
	/** @server_id: the server's, if the connection can survive the proxy; else 0 */
	uint64_t server_id;
	/** @phase: KIND_CONNECT, KIND_IDLE or KIND_HALF_CLOSE */
	enum kind phase;
	/** @first: CLIENT or SERVER, who said first that it sends no more */
	uint8_t first;
	/** @server: number of the server in options.to */
	uint8_t server;
	/** @tries: how many servers are left to be tried */
	uint8_t tries;
	/** @header: version of the header of the PROXY protocol that the server gets; 0: none */
	uint8_t header;
	/** @closed: it only waits for the end of the turn */
	bool closed;
	/** @lives: it has a timer of its lifetime */
	bool lives;
	/** @waits: it is among loop->unstored */
	bool waits;
	/** @stored: the service manager may have its sockets, one or both */
	bool stored;
	/** @placed: it has a place in the service manager's store, see store.c */
	bool placed;
	/** @restored: it came from there; @opened is when */
	bool restored;
	/** @timer: of the phase */
	struct timer timer;
	/** @life: of all its life */
	struct timer life;
	/** @opened: when, CLOCK_MONOTONIC, in ns */
	uint64_t opened;
	/** @all: in loop->conns or loop->closed */
	LIST_ENTRY(conn) all;
	/** @same: in loop->by_id */
	LIST_ENTRY(conn) same;
	/** @store: in loop->unstored */
	TAILQ_ENTRY(conn) store;
};

/**
 * conn_accept - a client has come
 * @loop: the thread that is to serve it
 * @fd: its socket
 * @from: its address
 *
 * Any thread may call this.
 */
void conn_accept(struct loop *loop, int fd, const union address *from);

/**
 * conn_open - begin with a connection
 * @loop: whose thread this is
 * @conn: an arrival
 */
void conn_open(struct loop *loop, struct conn *conn);

/**
 * conn_restore - a connection that the service manager kept
 * @loop: whose it was; no thread runs yet
 * @fd: the sockets of client and server
 * @id: as it was
 * @server_id: as it was
 *
 * Return: it, for its phase and timers to be filled in; then conn_resume(). NULL: no memory.
 */
struct conn *conn_restore(struct loop *loop, const int fd[2], uint64_t id, uint64_t server_id);

/**
 * conn_resume - let a restored connection go on
 * @conn: it, with its timers
 *
 * It is closed if bytes of it were lost.
 */
void conn_resume(struct conn *conn);

/**
 * conn_enter - put a connection among those of a thread
 * @conn: it
 * @loop: the thread
 */
void conn_enter(struct conn *conn, struct loop *loop);

/**
 * conn_leave - take it out of there
 * @conn: it
 */
void conn_leave(struct conn *conn);

/**
 * conn_find - a connection by its id
 * @loop: whose
 * @id: its
 *
 * Return: it, or NULL.
 */
struct conn *conn_find(struct loop *loop, uint64_t id);

/**
 * conn_close - end a connection
 * @conn: it
 * @end: how it ended
 */
void conn_close(struct conn *conn, enum end end);

/**
 * conn_expired - its time is over
 * @conn: it
 * @timer: which of its two
 *
 * Called by the timers; @timer is not armed any more.
 */
void conn_expired(struct conn *conn, struct timer *timer);

/**
 * conns_reap - free what was closed in this turn
 * @loop: whose
 */
void conns_reap(struct loop *loop);

/**
 * conns_close - close all
 * @loop: whose
 */
void conns_close(struct loop *loop);

#endif /* PROXY_CONN_H */
