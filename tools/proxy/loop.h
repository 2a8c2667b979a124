/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A thread that serves connections: its own epoll, its own timers, its own buffer. A connection
 * stays with its thread, so that nothing of it needs a lock. The thread that accepts a client may
 * be another one: it leaves the connection among the arrivals of the thread that is to serve it.
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

/** struct source - something that epoll watches: the first member of what it belongs to */
struct source {
	/** @ready: is called with the events */
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

/** LOOP_EVENTS - most events of a turn */
#define LOOP_EVENTS	512

/** LOOP_BUFFER - most bytes that are passed on at once */
#define LOOP_BUFFER	65536

/** LOOP_RECORDS - bytes of the connection log that are gathered in a turn */
#define LOOP_RECORDS	4096

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
	/** @wake_fd: an eventfd by which other threads wake it */
	int wake_fd;
	/** @wake: the source for that */
	struct source wake;
	/** @done_fd: an eventfd to say that it has ended */
	int done_fd;
	/** @command: of the main thread */
	_Atomic enum command command;
	/** @beats: turns so far: a thread that hangs makes no more */
	counter beats;
	/** @arrivals: connections that were accepted for it, linked by @next */
	struct conn *_Atomic arrivals;
	/** @load: its connections, arrivals included */
	_Atomic unsigned int load;
	/** @max_open: most of them */
	unsigned int max_open;
	/** @now: when this turn began, CLOCK_MONOTONIC, in ns */
	uint64_t now;
	/** @accepts: the listening sockets are in its epoll */
	bool accepts;
	/** @accept_again: when to try again after accept() failed, in ns; 0: it did not */
	uint64_t accept_again;
	/** @wheel: where the deadlines are */
	struct timerwheel *wheel;
	/** @timers: of its connections */
	struct timers *timers;
	/** @turn: of the servers, who is next */
	unsigned int turn;
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
	/** @nr_records: bytes in @records */
	unsigned int nr_records;
	/** @records: lines of the connection log, written at the end of the turn */
	char records[LOOP_RECORDS];
	/** @buffer: bytes on their way; nothing stays there */
	char buffer[LOOP_BUFFER];
};

/** loops - all of them, options.threads in number */
extern struct loop **loops;

/** loop_self - that of the calling thread; NULL: it has none */
extern _Thread_local struct loop *loop_self;

/**
 * loop_open - make what a thread needs
 * @number: from 0 on
 * @wheel: a wheel that the service manager kept for this number, -1: none
 * @done_fd: an eventfd to say that it has ended
 *
 * Return: the loop. Whatever fails ends the process with a message.
 */
struct loop *loop_open(unsigned int number, int wheel, int done_fd);

/**
 * loop_start - let it serve
 * @loop: the loop
 */
void loop_start(struct loop *loop);

/**
 * loop_give - leave a new connection to a thread
 * @loop: the thread
 * @conn: the connection, which is nobody else's from now on
 *
 * Any thread may call this.
 *
 * Return: false: that thread has ended.
 */
bool loop_give(struct loop *loop, struct conn *conn);

/**
 * loop_command - say what it is to do now
 * @loop: the loop
 * @command: what to do
 */
void loop_command(struct loop *loop, enum command command);

/**
 * loop_wake - make it turn once
 * @loop: the loop
 */
void loop_wake(struct loop *loop);

/**
 * poll_ms - a timeout for poll()
 * @until: when it is to end, CLOCK_MONOTONIC, in ns; TIME_NONE: never
 *
 * Return: ms, rounded up; an hour at most, since poll() takes no more than weeks.
 */
int poll_ms(uint64_t until);

#endif /* PROXY_LOOP_H */
