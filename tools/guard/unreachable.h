/* SPDX-License-Identifier: GPL-2.0 */
/* Connections that the guard cannot guard: why, and one line in the log for each process. */
#ifndef GUARD_UNREACHABLE_H
#define GUARD_UNREACHABLE_H

#include <stdbool.h>

#include "conns.h"

/** enum reason - why a connection is not guarded */
enum reason {
	/** @REASON_NOT_FOUND: none of the chosen processes has a descriptor for it */
	REASON_NOT_FOUND,
	/** @REASON_DENIED: the guard may not examine a process or take its sockets */
	REASON_DENIED,
	/** @REASON_THREAD: only a thread's table has it, and this kernel cannot copy from that */
	REASON_THREAD,
	/** @REASON_MPTCP: it is a path of an MPTCP connection */
	REASON_MPTCP,
	/** @REASON_IO_URING: it is in the file table of an io_uring */
	REASON_IO_URING,
	/** @REASON_NAMESPACE: the process is in another network namespace; counted per process */
	REASON_NAMESPACE,
	/** @REASON_UNSUPPORTED: the module cannot watch this kind of socket */
	REASON_UNSUPPORTED,
	/** @REASONS: the number of reasons */
	REASONS
};

/** reason_names - names of enum reason in metrics */
extern const char *const reason_names[REASONS];

/**
 * unreachable_say - log that connections of a process are not guarded
 * @reason: why; not REASON_NOT_FOUND
 * @name: the name of the process
 * @pid: its number
 *
 * Return: false: there were many lines in this minute; call this again later.
 */
bool unreachable_say(enum reason reason, const char *name, pid_t pid);

/**
 * unreachable_not_found - log that a connection was not found in the chosen processes
 * @conn: the connection
 *
 * The first connection of each port is logged.
 */
void unreachable_not_found(const struct conn *conn);

#endif /* GUARD_UNREACHABLE_H */
