/* SPDX-License-Identifier: GPL-2.0 */
/* Which descriptor of which process is a socket, and a descriptor of our own for it. */
#ifndef GUARD_OWNERS_H
#define GUARD_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

#include "conns.h"
#include "procs.h"

/** struct wanted - a socket to look for */
struct wanted {
	/** @inode: it */
	uint32_t inode;
	/** @again: it was looked for before, in vain */
	bool again;
	/** @cookie: its other number */
	uint64_t cookie;
	/** @conn: its connection, for the caller */
	struct conn *conn;
	/** @port: its local port, the same */
	uint16_t port;
	/** @pid: out: who has it; 0: nobody */
	pid_t pid;
	/** @name: out: that process's name */
	char name[DAEMON_TEXT];
	/** @fd: out: its descriptor there */
	int fd;
};

/**
 * owners_find - look for sockets in the processes that are meant
 * @wanted: which; are sorted
 * @count: how many
 * @living: does the connection with this number exist? NULL: these are listening sockets; only
 *	processes whose ports are meant are searched
 */
void owners_find(struct wanted *wanted, unsigned int count, bool (*living)(uint64_t cookie));

/**
 * owners_take - get a descriptor for a socket that was found
 * @wanted: the socket
 *
 * Return: the descriptor; -1: it is not there any more, or one may not have it, which was said.
 */
int owners_take(const struct wanted *wanted);

#endif /* GUARD_OWNERS_H */
