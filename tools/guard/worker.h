/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The worker: a child process that makes all system calls that a guarded process can block.
 *
 * See worker.c for the reasons. One worker runs at a time. It begins with a copy of the guard's
 * memory, and returns its results in a memfd.
 */
#ifndef GUARD_WORKER_H
#define GUARD_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** enum worker_state - the state of the worker */
enum worker_state {
	/** @WORKER_NONE: there is none */
	WORKER_NONE,
	/** @WORKER_RUNS: it is running */
	WORKER_RUNS,
	/** @WORKER_ENDED: it has ended or was abandoned; call worker_results() */
	WORKER_ENDED
};

/* --- for the guard ------------------------------------------------------ */

/**
 * worker_start - start a worker; there must be none
 * @work: does the work; gets the file for its results, and returns false if there are none
 *
 * Return: false: this is not possible now, and was logged.
 */
bool worker_start(bool (*work)(int out));

/**
 * worker_fd - get a descriptor to poll for POLLIN
 *
 * Return: the descriptor; -1: there is no worker.
 */
int worker_fd(void);

/**
 * worker_next - the latest time for the next worker_check()
 *
 * Return: the time, in ns; TIME_NONE: there is no worker.
 */
uint64_t worker_next(void);

/**
 * worker_check - check whether the worker has ended, and abandon it if a process blocks it
 *
 * Return: its state.
 */
enum worker_state worker_check(void);

/**
 * worker_results - get the results of a worker that has ended; after that there is no worker
 * @len: out: their length
 *
 * Return: the results, which the caller frees; NULL: there are none.
 */
void *worker_results(size_t *len);

/* --- for the worker ----------------------------------------------------- */

/**
 * worker_visit - report that the next steps concern a process
 * @pid: its number; 0: they concern no process, and the time of each user starts again
 * @name: its name, for messages; "": not known yet
 *
 * Return: false: skip the process. It has ended, has blocked a worker, or the processes of its user
 * have taken too much time.
 */
bool worker_visit(pid_t pid, const char *name);

/**
 * worker_uid - get the user of the process of the last worker_visit()
 *
 * Return: the user.
 */
uid_t worker_uid(void);

/**
 * worker_step - report progress of the worker
 *
 * Return: false: skip the process of the last worker_visit(), because it and other processes of its
 * user have taken too much time.
 */
bool worker_step(void);

/**
 * worker_close_last - close a descriptor after the results are written
 * @fd: a descriptor of any kind, copied from the process of the last worker_visit()
 */
void worker_close_last(int fd);

/** pidfd_of - pidfd_open(2); -1: errno has the reason */
int pidfd_of(pid_t pid);

#endif /* GUARD_WORKER_H */
