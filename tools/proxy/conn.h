/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections. One begins when a client comes and goes through these phases, each of which
 * has its own timeout:
 *
 *	KIND_CONNECT -> KIND_IDLE -> KIND_HALF_CLOSE -> closed
 *
 * In KIND_CONNECT the server has not answered. In KIND_IDLE bytes pass both ways. One side's end
 * of file is passed on as such, and then it is KIND_HALF_CLOSE, until the other's. Each byte
 * that passes puts the timeout off. One more timeout limits the whole of it.
 */
#ifndef PROXY_CONN_H
#define PROXY_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "counters.h"
#include "loop.h"
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
	/** @pipe: bytes it sent that the other has not taken yet; NULL: none */
	struct pipe *pipe;
	/** @fd: its socket */
	int fd;
	/** @watched: for which events */
	uint32_t watched;
	/** @eof: it has said that it sends no more */
	bool eof;
	/** @shut: it was told that the other sends no more */
	bool shut;
};

/** struct conn - a connection */
struct conn {
	/** @side: client and server */
	struct side side[2];
	/** @loop: its thread */
	struct loop *loop;
	/** @id: tells it from all others. If it can survive the proxy: the client's SO_COOKIE */
	uint64_t id;
	/** @server_id: the same of the server's socket; else 0 */
	uint64_t server_id;
	/** @phase: KIND_CONNECT, KIND_IDLE or KIND_HALF_CLOSE */
	enum kind phase;
	/** @closed: it only waits for the end of the turn */
	bool closed;
	/** @lives: it has a timer of its lifetime */
	bool lives;
	/** @waits: it is among loop->unstored */
	bool waits;
	/** @stored: the service manager keeps its sockets as well */
	bool stored;
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
 * conn_open - a client has come
 * @loop: whose thread this is
 * @fd: its socket; is closed if this fails
 */
void conn_open(struct loop *loop, int fd);

/**
 * conn_restore - a connection that the service manager kept
 * @loop: whose it was; no thread runs yet
 * @fd: the sockets of client and server
 * @id: as it was
 * @server_id: as it was
 *
 * Return: it, for its phase, timers and pipes to be filled in; then conn_resume(). NULL: no memory.
 */
struct conn *conn_restore(struct loop *loop, const int fd[2], uint64_t id, uint64_t server_id);

/**
 * conn_resume - let a restored connection go on
 * @conn: it, with its timers and pipes
 */
void conn_resume(struct conn *conn);

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
 * @reason: what to count it as. After REASON_DONE, REASON_TIMEOUT and REASON_STOPPED both sides see
 *	an end of file, else a reset
 */
void conn_close(struct conn *conn, enum reason reason);

/**
 * conn_expired - its time is over
 * @conn: it
 * @timer: which of its two
 *
 * Called by the timers; @timer is not armed any more.
 */
void conn_expired(struct conn *conn, struct timer *timer);

/**
 * socket_reset - break a connection, so that this is not taken for an end of file
 * @fd: its socket. It stays open; whoever else has it open sees the same.
 */
void socket_reset(int fd);

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
