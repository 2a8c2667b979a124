/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which processes are meant: those of --pid and of the control groups of --unit and --cgroup, and
 * their children, wherever they are: sshd's sessions leave its unit. With --port alone: all.
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
	/** @parent: that of its parent */
	pid_t parent;
	/** @start: when it began, which tells it from others with this number */
	uint64_t start;
	/** @name: its name, printable */
	char name[DAEMON_TEXT];
	/** @chosen: it is meant */
	bool chosen;
	/** @family: so is all that its children do: it was chosen by its number */
	bool family;
	/** @listens: the ports on which it listens are meant */
	bool listens;
	/** @seen: the search for chosen ancestors has visited it */
	bool seen;
};

/**
 * procs_check - end the program with a message if a --pid or --cgroup does not exist
 *
 * From now on it is known which process is meant by a --pid.
 */
void procs_check(void);

/**
 * procs_list - the processes that are meant, by pid
 * @count: is set: how many
 *
 * It may wait for a process, so the worker calls it. procs_left() tells which processes of --pid
 * have ended.
 *
 * Return: an array, to be freed.
 */
struct proc *procs_list(unsigned int *count);

/**
 * procs_all - are all processes of the machine meant?
 *
 * Return: true: only ports were chosen.
 */
bool procs_all(void);

/**
 * procs_left - may there be connections in future?
 *
 * Return: false: all processes of --pid have ended, and nothing else is meant.
 */
bool procs_left(void);

#endif /* GUARD_PROCS_H */
