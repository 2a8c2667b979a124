/* SPDX-License-Identifier: GPL-2.0 */
/* Find the descriptors of processes that refer to sockets, and copy them. */
#ifndef GUARD_OWNERS_H
#define GUARD_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

#include "conns.h"
#include "procs.h"
#include "unreachable.h"

/** struct wanted - a socket to search for */
struct wanted {
	/** @inode: its inode */
	uint32_t inode;
	/** @again: an earlier search did not find it */
	bool again;
	/** @last: if it is not found now, it counts as unreachable, so find out why */
	bool last;
	/** @cookie: its cookie */
	uint64_t cookie;
	/** @conn: its connection; for the caller */
	struct conn *conn;
	/** @place: for the caller, the number of its address if it listens */
	unsigned int place;
	/** @transparent: for the caller: it also listens for connections to other addresses */
	bool transparent;
	/** @pid: out: the process that has it; 0: none */
	pid_t pid;
	/** @name: out: that process's name */
	char name[DAEMON_TEXT];
	/** @tid: out: the thread that has it */
	pid_t tid;
	/** @uid: out: that process's user */
	uid_t uid;
	/** @fd: out: its descriptor there */
	int fd;
	/** @reason: out: the reason why it was not found or cannot be taken */
	enum reason reason;
	/** @suspect: out: the process that caused this; 0: none */
	pid_t suspect;
	/** @tried: out: the worker has tried to take it */
	bool tried;
	/** @taken: out: it has succeeded */
	bool taken;
	/** @armed: out: bits of enum kind, as in struct conn */
	uint8_t armed;
};

/**
 * owners_find - search for sockets in the chosen processes
 * @wanted: the sockets; the function sorts them
 * @count: number of sockets
 * @living: returns whether the connection with a cookie exists. NULL: these are listening sockets,
 *	so search only processes whose listening ports count.
 */
void owners_find(struct wanted *wanted, unsigned int count, bool (*living)(uint64_t cookie));

/**
 * owners_take - copy the descriptor of a socket that was found
 * @wanted: the socket; on failure its reason and suspect are set
 *
 * The copy must not be closed, because its process can delay the close for any length of time. The
 * worker exits instead.
 *
 * Return: the descriptor; -1: it no longer exists, or cannot be copied.
 */
int owners_take(struct wanted *wanted);

/**
 * owners_refresh - list the chosen processes again, and count those in other network namespaces
 *
 * sock_diag(7) does not list the connections of a process in another network namespace.
 */
void owners_refresh(void);

/**
 * owners_any - does any of the chosen processes exist?
 *
 * Return: true if any existed when they were last listed.
 */
bool owners_any(void);

/**
 * owners_say - make owners_report() log that connections of a process are not guarded
 * @pid: the process
 * @reason: why
 */
void owners_say(pid_t pid, enum reason reason);

/**
 * owners_transparent - note that a process is a transparent proxy
 * @pid: the process
 *
 * Return: true if it was not noted before.
 */
bool owners_transparent(pid_t pid);

/** owners_report - log each reason of each process, once */
void owners_report(void);

/**
 * owners_size - size of the worker's data about processes
 *
 * Return: bytes.
 */
size_t owners_size(void);

/**
 * owners_save - write the worker's data about processes for the guard
 * @to: the output, owners_size() bytes
 */
void owners_save(void *to);

/**
 * owners_load - in the guard: load the worker's data about processes
 * @from: the output of owners_save()
 * @size: its size in bytes
 */
void owners_load(const void *from, size_t size);

/**
 * owners_remember - in the guard: make later searches skip the descriptor of a socket
 * @wanted: the socket
 */
void owners_remember(const struct wanted *wanted);

#endif /* GUARD_OWNERS_H */
