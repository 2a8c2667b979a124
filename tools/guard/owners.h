/* SPDX-License-Identifier: GPL-2.0 */
/* Which descriptor of which process is a socket, and a descriptor of our own for it. */
#ifndef GUARD_OWNERS_H
#define GUARD_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

#include "conns.h"
#include "procs.h"
#include "unreachable.h"

/** struct wanted - a socket to look for */
struct wanted {
	/** @inode: it */
	uint32_t inode;
	/** @again: it was looked for before, in vain */
	bool again;
	/** @last: if it is not found now, it counts as unreachable: find out why */
	bool last;
	/** @cookie: its other number */
	uint64_t cookie;
	/** @conn: its connection, for the caller */
	struct conn *conn;
	/** @place: for the caller, the number of its address if it listens */
	unsigned int place;
	/** @pid: out: who has it; 0: nobody */
	pid_t pid;
	/** @name: out: that process's name */
	char name[DAEMON_TEXT];
	/** @tid: out: the thread that has it */
	pid_t tid;
	/** @uid: out: that process's user */
	uid_t uid;
	/** @fd: out: its descriptor there */
	int fd;
	/** @reason: out: why it was not found or cannot be taken */
	enum reason reason;
	/** @suspect: out: a process that is the reason for this; 0: there is none */
	pid_t suspect;
	/** @tried: out: the worker has tried to take it */
	bool tried;
	/** @taken: out: it has succeeded */
	bool taken;
	/** @armed: out: bits of enum kind, as in struct conn */
	uint8_t armed;
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
 * @wanted: the socket; gets the reason and the suspect if this fails
 *
 * It must not be closed, which may take as long as its process likes. The worker exits instead.
 *
 * Return: the descriptor; -1: it is not there any more, or cannot be taken.
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
 * Return: true if so when they were listed last.
 */
bool owners_any(void);

/**
 * owners_say - have owners_report() log that connections of a process are not guarded
 * @pid: the process
 * @reason: why
 */
void owners_say(pid_t pid, enum reason reason);

/** owners_report - log each reason of each process, once */
void owners_report(void);

/**
 * owners_size - how large is what the worker knows of processes?
 *
 * Return: bytes.
 */
size_t owners_size(void);

/**
 * owners_save - write that for the guard
 * @to: where to, owners_size() bytes
 */
void owners_save(void *to);

/**
 * owners_load - in the guard: know what the worker knew
 * @from: what owners_save() has written
 * @size: bytes
 */
void owners_load(const void *from, size_t size);

/**
 * owners_remember - in the guard: pass over the descriptor of a socket that was found
 * @wanted: the socket
 */
void owners_remember(const struct wanted *wanted);

#endif /* GUARD_OWNERS_H */
