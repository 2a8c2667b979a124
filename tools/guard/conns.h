/* SPDX-License-Identifier: GPL-2.0 */
/* The connections that the guard knows, by the kernel's number of their socket. */
#ifndef GUARD_CONNS_H
#define GUARD_CONNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "address.h"

/** DAEMON_TEXT - room for a process's name */
#define DAEMON_TEXT	16

/** struct conn - a connection */
struct conn {
	/** @next: in its hash chain */
	struct conn *next;
	/** @cookie: the socket's number, which the kernel gives to no other one */
	uint64_t cookie;
	/** @client: who connected; AF_UNSPEC: not known */
	union address client;
	/** @server: the daemon's address; AF_UNSPEC: not known */
	union address server;
	/** @pid: a process that has the socket; 0: none was found yet */
	pid_t pid;
	/** @daemon: that process's name */
	char daemon[DAEMON_TEXT];
	/** @scan: number of the last scan that has seen it */
	uint32_t scan;
	/** @missed: scans since then */
	uint8_t missed;
	/** @tries: how often a process with the socket was looked for in vain */
	uint8_t tries;
	/** @armed: bits of enum kind: there is or was a timer */
	uint8_t armed;
};

/**
 * conn_find - look one up
 * @cookie: its number
 *
 * Return: it; NULL: it is not known.
 */
struct conn *conn_find(uint64_t cookie);

/**
 * conn_new - a connection that is not known yet
 * @cookie: its number
 *
 * Return: it.
 */
struct conn *conn_new(uint64_t cookie);

/**
 * conn_free - forget one
 * @conn: it
 */
void conn_free(struct conn *conn);

/**
 * conn_value - what helps a guard that finds the timer in a kept wheel
 * @conn: the connection
 *
 * Return: the client's IPv4 address (0: it has none), its port, and the daemon's port.
 */
uint64_t conn_value(const struct conn *conn);

/**
 * conn_from_value - the other way round
 * @conn: gets these addresses; of the server only the port, of a client with IPv6 none
 * @value: of a timer
 */
void conn_from_value(struct conn *conn, uint64_t value);

/**
 * conns_each - go through all
 * @each: is called for each; it may free that one
 */
void conns_each(void (*each)(struct conn *conn));

/**
 * conns_count - how many there are
 *
 * Return: their number. Any thread may call this.
 */
unsigned int conns_count(void);

#endif /* GUARD_CONNS_H */
