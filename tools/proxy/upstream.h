/* SPDX-License-Identifier: GPL-2.0 */
/* The server's side of a connection: which server, and the header of the PROXY protocol. */
#ifndef PROXY_UPSTREAM_H
#define PROXY_UPSTREAM_H

#include <stdbool.h>

#include "conn.h"

/**
 * upstream_next - connect to the next server that has not been tried
 * @conn: whose server's side is to be filled in; the old socket is closed already
 *
 * Return: false: there is none any more. errno says what was wrong with the last one, if any.
 */
bool upstream_next(struct conn *conn);

/**
 * upstream_greet - send the header of the PROXY protocol, if there is to be one
 * @conn: whose server has just taken the connection
 *
 * Return: false: it could not be sent (errno).
 */
bool upstream_greet(struct conn *conn);

/**
 * upstream_header - that header
 * @conn: whose: it has one
 * @header: where to write it: at most 128 bytes
 *
 * Return: how long it is.
 */
unsigned int upstream_header(const struct conn *conn, char *header);

/**
 * upstream_ports - how many connections to the servers there can be
 *
 * Return: one for each local port and server; 0 if the number of ports cannot be read.
 */
unsigned int upstream_ports(void);

/**
 * upstream_advice - what to do about a failure to connect
 * @err: the error
 *
 * Return: a sentence for the log.
 */
const char *upstream_advice(int err);

#endif /* PROXY_UPSTREAM_H */
