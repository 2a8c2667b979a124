/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A thread that serves connections, with its own epoll, timers and buffer. A connection stays with
 * its thread, so it needs no lock. The thread that accepts a client may be another one: it adds the
 * connection to the arrivals of the thread that will serve it.
 */
#ifndef PROXY_LOOP_H
#define PROXY_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "counters.h"

struct conn;
struct timers;
struct timerwheel;

/** struct source - an object that epoll watches; the first member of a larger structure */
struct source {
	/** @ready: called with the events */
	void (*ready)(struct source *source, uint32_t events);
};

/** enum command - commands of the main thread to the other threads */
enum command {
	/** @COMMAND_SERVE: continue */
	COMMAND_SERVE,
	/** @COMMAND_DRAIN: accept no more, end with the last connection */
	COMMAND_DRAIN,
	/** @COMMAND_CLOSE: close all connections and end */
	COMMAND_CLOSE,
	/** @COMMAND_HAND_OVER: put all connections in the service manager's store and end */
	COMMAND_HAND_OVER
};

/** LOOP_EVENTS - maximum number of events in a turn */
#define LOOP_EVENTS	512

/** LOOP_BUFFER - maximum number of bytes that are forwarded at once */
#define LOOP_BUFFER	65536

/** LOOP_RECORDS - bytes of the connection log that are gathered in a turn */
#define LOOP_RECORDS	4096

/** CONN_HASH - chains of connections by id */
#define CONN_HASH	16384

/** struct loop - a thread */
struct loop {
	/** @number: its number, beginning with 0 */
	unsigned int number;
	/** @thread: the thread */
	pthread_t thread;
	/** @epoll: its epoll */
	int epoll;
	/** @wake_fd: an eventfd by which other threads wake it */
	int wake_fd;
	/** @wake: the source for @wake_fd */
	struct source wake;
	/** @done_fd: an eventfd to report its end */
	int done_fd;
	/** @command: command of the main thread */
	_Atomic enum command command;
	/** @beats: number of turns; it shows whether the thread hangs */
	counter beats;
	/** @arrivals: connections that were accepted for it, linked by @next */
	struct conn *_Atomic arrivals;
	/** @load: number of its connections, including arrivals */
	_Atomic unsigned int load;
	/** @max_open: maximum number of connections */
	unsigned int max_open;
	/** @now: beginning of this turn, CLOCK_MONOTONIC, in ns */
	uint64_t now;
	/** @accepts: the listening sockets are in its epoll */
	bool accepts;
	/** @accept_again: time of the next attempt after accept() failed, in ns; 0: none */
	uint64_t accept_again;
	/** @wheel: the wheel with its deadlines */
	struct timerwheel *wheel;
	/** @timers: timers of its connections */
	struct timers *timers;
	/** @turn: selects the next server */
	unsigned int turn;
	/** @conns: open connections */
	LIST_HEAD(, conn) conns;
	/** @closed: connections closed in this turn; freed at its end, because events may follow */
	LIST_HEAD(, conn) closed;
	/** @by_id: open connections, by id */
	LIST_HEAD(, conn) by_id[CONN_HASH];
	/** @unstored: connections that wait for the service manager's store, oldest first */
	TAILQ_HEAD(, conn) unstored;
	/** @counters: its counters */
	struct counters counters;
	/** @nr_records: number of bytes in @records */
	unsigned int nr_records;
	/** @records: lines of the connection log, written at the end of the turn */
	char records[LOOP_RECORDS];
	/** @buffer: bytes that are being forwarded; none stay here */
	char buffer[LOOP_BUFFER];
};

/** loops - all threads; options.threads is their number */
extern struct loop **loops;

/** loop_self - the calling thread; NULL: it does not serve connections */
extern _Thread_local struct loop *loop_self;

/**
 * loop_open - create a thread's data
 * @number: its number, beginning with 0
 * @wheel: a wheel that the service manager kept for this number; -1: none
 * @done_fd: an eventfd to report its end
 *
 * Ends the process with a message if it fails.
 *
 * Return: the loop.
 */
struct loop *loop_open(unsigned int number, int wheel, int done_fd);

/**
 * loop_start - start the thread
 * @loop: the loop
 */
void loop_start(struct loop *loop);

/**
 * loop_give - give a new connection to a thread
 * @loop: the thread
 * @conn: the connection, which only that thread may use from now on
 *
 * Any thread may call this.
 *
 * Return: false: that thread has ended.
 */
bool loop_give(struct loop *loop, struct conn *conn);

/**
 * loop_command - send a command to a thread
 * @loop: the loop
 * @command: the command
 */
void loop_command(struct loop *loop, enum command command);

/**
 * loop_wake - make a thread run a turn
 * @loop: the loop
 */
void loop_wake(struct loop *loop);

/**
 * poll_ms - compute a timeout for poll()
 * @until: the end of the wait, CLOCK_MONOTONIC, in ns; TIME_NONE: never
 *
 * Return: ms, rounded up, at most an hour, because poll() accepts only some weeks.
 */
int poll_ms(uint64_t until);

#endif /* PROXY_LOOP_H */
