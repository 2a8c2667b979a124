/* SPDX-License-Identifier: GPL-2.0 */
/* The server's side of a connection: choice of the server, and the header of the PROXY protocol. */
#ifndef PROXY_UPSTREAM_H
#define PROXY_UPSTREAM_H

#include <stdbool.h>

#include "conn.h"

/**
 * upstream_next - connect to the next server that has not been tried
 * @conn: the connection. Its server's side is filled in; the old socket is already closed.
 *
 * Return: false: all servers were tried. errno is the error of the last one, if any.
 */
bool upstream_next(struct conn *conn);

/**
 * upstream_greet - send the header of the PROXY protocol, if it is enabled
 * @conn: the connection, which a server has just accepted
 *
 * Return: false: it could not be sent (errno).
 */
bool upstream_greet(struct conn *conn);

/**
 * upstream_header - write the header of the PROXY protocol
 * @conn: the connection, which has a header
 * @header: the output, at most 128 bytes
 *
 * Return: its length.
 */
unsigned int upstream_header(const struct conn *conn, char *header);

/**
 * upstream_ports - maximum number of connections to the servers
 *
 * Return: number of local ports times number of servers; 0 if the number of ports cannot be read.
 */
unsigned int upstream_ports(void);

/**
 * upstream_advice - what to do about a failure to connect
 * @err: the error
 *
 * Return: a text for the log.
 */
const char *upstream_advice(int err);

#endif /* PROXY_UPSTREAM_H */
