/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pipes, through which bytes pass from socket to socket without being copied. A connection
 * has one only while bytes are in it.
 *
 * Bytes in a pipe are with neither side: were they lost when the proxy is killed, the connection
 * could not go on. So the service manager keeps the pipes too, and a ledger, memory that it
 * keeps as well, says whose bytes are in which: a store before the bytes come.
 */
#ifndef PROXY_PIPES_H
#define PROXY_PIPES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "counters.h"

/** PIPE_BYTES - most that are taken at once: what a pipe holds unless asked for more */
#define PIPE_BYTES	65536

/** PIPES_MAX - most pipes of a thread */
#define PIPES_MAX	65536

/** struct ledger - a pipe's line in the ledger */
struct ledger {
	/** @inode: which pipe it is about; 0: none */
	uint64_t inode;
	/** @owner: whose bytes are in it, see pipes_owner(); 0: nobody's */
	_Atomic uint64_t owner;
};

/** struct pipe - a pipe */
struct pipe {
	/** @in: write end */
	int in;
	/** @out: read end */
	int out;
	/** @held: bytes in it */
	uint32_t held;
	/** @ledger: its line; NULL: there is no ledger */
	struct ledger *ledger;
	/** @next: in the list of free ones */
	struct pipe *next;
	/** @store: in pipes->unstored */
	LIST_ENTRY(pipe) store;
};

/** struct pipes - those of a thread */
struct pipes {
	/** @free: empty ones */
	struct pipe *free;
	/** @nr_free: how many */
	unsigned int nr_free;
	/** @unstored: those for which the service manager had no time or no room */
	LIST_HEAD(, pipe) unstored;
	/** @ledger: an array of PIPES_MAX lines; NULL: the service manager keeps nothing */
	struct ledger *ledger;
	/** @back: of each line that was there at the start: its pipe was given back */
	bool *back;
	/** @ledger_fd: the memory of that */
	int ledger_fd;
	/** @lines: how many of them are in use or were */
	unsigned int lines;
	/** @null: where bytes go that nobody wants any more */
	int null;
	/** @counters: of the thread */
	struct counters *counters;
};

/**
 * pipes_owner - who has bytes in a pipe, as one number
 * @id: of the connection
 * @side: from which side
 *
 * Return: the number, never 0.
 */
static inline uint64_t pipes_owner(uint64_t id, unsigned int side)
{
	return id << 1 | side;
}

/**
 * pipes_open - prepare a thread's pipes
 * @pipes: is filled in
 * @ledger: memory that the service manager kept, -1: none
 * @counters: of the thread
 *
 * Ends the process with a message if it cannot.
 */
void pipes_open(struct pipes *pipes, int ledger, struct counters *counters);

/**
 * pipes_get - an empty pipe
 * @pipes: those of this thread
 * @owner: pipes_owner(), whose bytes are about to come in
 *
 * Return: the pipe, NULL: there is none (errno).
 */
struct pipe *pipes_get(struct pipes *pipes, uint64_t owner);

/**
 * pipes_put - give a pipe back
 * @pipes: where it came from
 * @pipe: it; bytes that are still in it are thrown away
 */
void pipes_put(struct pipes *pipes, struct pipe *pipe);

/**
 * pipes_restore - take a pipe that the service manager kept
 * @pipes: those of a thread
 * @in: write end
 * @out: read end
 * @inode: which it is
 *
 * Return: the pipe, whose line in the ledger says whose bytes it holds; NULL: it is not in the
 * ledger of this thread.
 */
struct pipe *pipes_restore(struct pipes *pipes, int in, int out, uint64_t inode);

/**
 * pipes_lost - somebody whose bytes were in a pipe that did not come back
 * @pipes: those of a thread, all pipes_restore() done
 * @line: 0 at first, then as the last call left it
 *
 * Return: the owner; 0: that was all.
 */
uint64_t pipes_lost(struct pipes *pipes, unsigned int *line);

#endif /* PROXY_PIPES_H */
