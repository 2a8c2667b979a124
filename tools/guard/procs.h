/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The chosen processes: the processes of --pid, --unit and --cgroup, and their children, even in
 * other control groups (the sessions of sshd leave its unit). With --port alone: all processes.
 */
#ifndef GUARD_PROCS_H
#define GUARD_PROCS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "conns.h"

/** struct proc - a process */
struct proc {
	/** @pid: its number */
	pid_t pid;
	/** @parent: number of its parent */
	pid_t parent;
	/** @start: its start time, which distinguishes it from others with this number */
	uint64_t start;
	/** @name: its name, printable */
	char name[DAEMON_TEXT];
	/** @chosen: the guard takes its connections */
	bool chosen;
	/**
	 * @family: it was chosen by its number, so the listening ports of its children count, too
	 */
	bool family;
	/** @listens: its listening ports count */
	bool listens;
	/** @seen: the search for chosen ancestors has visited it */
	bool seen;
};

/**
 * procs_check - end the program with a message if a --pid or --cgroup does not exist
 *
 * From now on a --pid refers to the process that has this number now.
 */
void procs_check(void);

/**
 * procs_list - list the chosen processes, sorted by pid
 * @count: out: their number
 *
 * A process can block this function, so only the worker calls it. procs_left() determines which
 * processes of --pid have ended.
 *
 * Return: an array, which the caller frees.
 */
struct proc *procs_list(unsigned int *count);

/**
 * procs_all - are all processes of the machine chosen?
 *
 * Return: true if only ports were selected.
 */
bool procs_all(void);

/**
 * procs_left - can there be connections in future?
 *
 * Return: false: all processes of --pid have ended, and no unit or control group was selected.
 */
bool procs_left(void);

#endif /* GUARD_PROCS_H */
