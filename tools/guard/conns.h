/* SPDX-License-Identifier: GPL-2.0 */
/* The connections that the guard knows, by the cookie of their socket. */
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
	/** @next: next in its hash chain */
	struct conn *next;
	/** @cookie: the unique number that the kernel gives to the socket */
	uint64_t cookie;
	/** @client: the client's address; AF_UNSPEC: unknown */
	union address client;
	/** @server: the daemon's address; AF_UNSPEC: unknown */
	union address server;
	/** @pid: a process that has the socket; 0: none was found so far */
	pid_t pid;
	/** @daemon: that process's name */
	char daemon[DAEMON_TEXT];
	/** @scan: number of the last scan that has seen it */
	uint32_t scan;
	/** @missed: number of scans since then */
	uint8_t missed;
	/** @tries: number of unsuccessful searches for a process with the socket */
	uint8_t tries;
	/** @armed: bits of enum kind: it has or had this timer; only timers.c changes it */
	uint8_t armed;
};

/**
 * conn_find - look up a connection
 * @cookie: its cookie
 *
 * Return: the connection; NULL: it is not known.
 */
struct conn *conn_find(uint64_t cookie);

/**
 * conn_new - add a connection that is not known yet
 * @cookie: its cookie
 *
 * Return: the connection.
 */
struct conn *conn_new(uint64_t cookie);

/**
 * conn_free - remove a connection
 * @conn: the connection
 */
void conn_free(struct conn *conn);

/**
 * conn_value - compute the value of a timer, for a guard that finds it in a kept wheel
 * @conn: the connection
 *
 * Return: the client's IPv4 address (0: none), its port, and the daemon's port.
 */
uint64_t conn_value(const struct conn *conn);

/**
 * conn_from_value - set addresses from the value of a timer
 * @conn: gets the addresses: only the port of the server, and no address of an IPv6 client
 * @value: value of the timer
 */
void conn_from_value(struct conn *conn, uint64_t value);

/**
 * conns_each - visit all connections
 * @each: called for each connection, which it may free
 */
void conns_each(void (*each)(struct conn *conn));

/**
 * conns_count - number of connections
 *
 * Return: the number. Any thread may call this.
 */
unsigned int conns_count(void);

#endif /* GUARD_CONNS_H */
