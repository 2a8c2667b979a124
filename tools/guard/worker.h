/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The worker: a child process that does whatever may wait for a guarded process.
 *
 * See worker.c for the reasons. One worker runs at a time. It begins with a copy of the guard's
 * memory, and hands back its results in a file in memory.
 */
#ifndef GUARD_WORKER_H
#define GUARD_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** enum worker_state - what became of the worker */
enum worker_state {
	/** @WORKER_NONE: there is none */
	WORKER_NONE,
	/** @WORKER_RUNS: it is still at work */
	WORKER_RUNS,
	/** @WORKER_ENDED: it has ended, or was given up: call worker_results() */
	WORKER_ENDED
};

/* --- for the guard ------------------------------------------------------ */

/**
 * worker_start - start a worker; there must be none
 * @work: what it does, with the file for its results; false: there are none
 *
 * Return: false: that is not possible now, which was said.
 */
bool worker_start(bool (*work)(int out));

/**
 * worker_fd - a descriptor to poll for POLLIN
 *
 * Return: it; -1: there is no worker.
 */
int worker_fd(void);

/**
 * worker_next - when to call worker_check() at the latest
 *
 * Return: the time, in ns; TIME_NONE: there is no worker.
 */
uint64_t worker_next(void);

/**
 * worker_check - has the worker ended? Give it up if a process holds it up.
 *
 * Return: what became of it.
 */
enum worker_state worker_check(void);

/**
 * worker_results - take what a worker that has ended has written; then there is none
 * @len: is set: how much
 *
 * Return: the results, to be freed; NULL: it has none.
 */
void *worker_results(size_t *len);

/* --- for the worker ----------------------------------------------------- */

/**
 * worker_visit - the next steps are about this process
 * @pid: its number; 0: they are about no process, and the time for each user begins again
 * @name: its name, for messages; "": not known yet
 *
 * Return: false: it has ended, or has held a worker up, or its user's processes have taken too much
 * time: leave it alone.
 */
bool worker_visit(pid_t pid, const char *name);

/**
 * worker_uid - the user of the process of the last worker_visit()
 *
 * Return: it.
 */
uid_t worker_uid(void);

/**
 * worker_step - the worker makes progress
 *
 * Return: false: the process of the last worker_visit() and others of its user have taken too much
 * time: leave it alone.
 */
bool worker_step(void);

/**
 * worker_close_last - close a descriptor after the results are written
 * @fd: what the process of the last worker_visit() has had; it may be anything
 */
void worker_close_last(int fd);

/** pidfd_of - pidfd_open(2); -1: errno has the reason */
int pidfd_of(pid_t pid);

#endif /* GUARD_WORKER_H */
