/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A thread that serves connections: its own epoll, its own timers, its own pipes. A connection
 * stays with the thread that accepted it, so that nothing of it needs a lock.
 */
#ifndef PROXY_LOOP_H
#define PROXY_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "counters.h"
#include "pipes.h"

struct conn;
struct timers;

/** struct source - something that epoll watches: the first member of what it belongs to */
struct source {
	/** @ready: is told the events */
	void (*ready)(struct source *source, uint32_t events);
};

/** enum command - what the main thread wants of the others */
enum command {
	/** @COMMAND_SERVE: go on */
	COMMAND_SERVE,
	/** @COMMAND_DRAIN: accept no more, end with the last connection */
	COMMAND_DRAIN,
	/** @COMMAND_CLOSE: close all connections and end */
	COMMAND_CLOSE,
	/** @COMMAND_HAND_OVER: put all into the service manager's store and end */
	COMMAND_HAND_OVER
};

/** struct listener - how a thread accepts */
struct listener {
	/** @source: the listening socket, which all threads share */
	struct source source;
	/** @loop: whose */
	struct loop *loop;
	/** @watched: it is in the epoll */
	bool watched;
	/** @again: when to try again after accept() failed, in ns; 0: it did not */
	uint64_t again;
};

/** LOOP_EVENTS - most events of a turn */
#define LOOP_EVENTS	512

/** CONN_HASH - chains of connections by id */
#define CONN_HASH	16384

/** struct loop - one such thread */
struct loop {
	/** @number: from 0 on */
	unsigned int number;
	/** @thread: it */
	pthread_t thread;
	/** @epoll: what it waits for */
	int epoll;
	/** @wake_fd: an eventfd by which the main thread wakes it */
	int wake_fd;
	/** @wake: the source for that */
	struct source wake;
	/** @done_fd: an eventfd to tell that it has ended */
	int done_fd;
	/** @command: of the main thread */
	_Atomic enum command command;
	/** @beats: turns so far: a thread that hangs makes no more */
	counter beats;
	/** @now: when this turn began, CLOCK_MONOTONIC, in ns */
	uint64_t now;
	/** @listener: how it accepts */
	struct listener listener;
	/** @timers: of its connections */
	struct timers *timers;
	/** @pipes: for their bytes */
	struct pipes pipes;
	/** @max_open: most connections */
	unsigned int max_open;
	/** @ids: the last number given to a connection */
	uint64_t ids;
	/** @conns: all that are open */
	LIST_HEAD(, conn) conns;
	/** @closed: closed in this turn, freed at its end: events for them may still come */
	LIST_HEAD(, conn) closed;
	/** @by_id: all that are open, by id */
	LIST_HEAD(, conn) by_id[CONN_HASH];
	/** @unstored: those that are to go into the service manager's store, oldest first */
	TAILQ_HEAD(, conn) unstored;
	/** @counters: what it counts */
	struct counters counters;
};

/**
 * loop_open - make what a thread needs
 * @number: from 0 on
 * @wheel: a wheel that the service manager kept for this number, -1: none
 * @ledger: the same of the ledger of its pipes
 * @done_fd: an eventfd to tell that it has ended
 *
 * Return: the loop. Whatever fails ends the process with a message.
 */
struct loop *loop_open(unsigned int number, int wheel, int ledger, int done_fd);

/**
 * loop_start - let it serve
 * @loop: the loop
 */
void loop_start(struct loop *loop);

/**
 * loop_command - tell it what to do now
 * @loop: the loop
 * @command: what to do
 */
void loop_command(struct loop *loop, enum command command);

/**
 * loop_wake - make it turn once
 * @loop: the loop
 */
void loop_wake(struct loop *loop);

#endif /* PROXY_LOOP_H */
