/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TCP sockets of this network namespace, as sock_diag(7) lists them.
 *
 * The kernel announces closed sockets (SKNLGRP_INET_TCP_DESTROY), but only when the last reference
 * is dropped, and a timer holds a reference. It does not announce new sockets. Therefore the guard
 * finds both by the list.
 */
#ifndef GUARD_DIAG_H
#define GUARD_DIAG_H

#include <linux/inet_diag.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"

/** diag_open - in the worker: open the netlink socket; on failure end with a message */
void diag_open(void);

/**
 * diag_connections - list connections that a process may have, IPv4 and IPv6
 * @ports: local ports, to which the kernel limits the list
 * @nr_ports: number of ports; 0: list the connections to all ports
 * @each: called for each connection
 *
 * A connection may be missing if others are closed during the call.
 *
 * Return: false: the list is not complete.
 */
bool diag_connections(const uint16_t *ports, unsigned int nr_ports,
		      void (*each)(const struct inet_diag_msg *msg));

/**
 * diag_listeners - list the listening sockets
 * @each: called for each socket
 *
 * Return: false: the list is not complete.
 */
bool diag_listeners(void (*each)(const struct inet_diag_msg *msg));

/**
 * diag_cookie - the cookie of a socket
 * @msg: the socket
 *
 * Return: the unique number that the kernel gives to the socket.
 */
static inline uint64_t diag_cookie(const struct inet_diag_msg *msg)
{
	return (uint64_t)msg->id.idiag_cookie[1] << 32 | msg->id.idiag_cookie[0];
}

/**
 * diag_waits - does a connection that no process has wait to be accepted?
 * @msg: its socket
 *
 * Return: true if so; false: it was closed.
 */
bool diag_waits(const struct inet_diag_msg *msg);

/**
 * diag_address - an address of a socket; IPv4 on a dual-stack socket is returned as IPv4
 * @msg: the socket
 * @peer: the address of the other end instead of its own
 *
 * Return: the address.
 */
union address diag_address(const struct inet_diag_msg *msg, bool peer);

/**
 * diag_dual - does a socket listen on all addresses of IPv6 and of IPv4?
 * @msg: the socket, as diag_listeners() passes it
 *
 * Return: true if so.
 */
bool diag_dual(const struct inet_diag_msg *msg);

/**
 * diag_transparent - can a socket accept connections to any address and port?
 * @msg: the socket, as diag_listeners() passes it
 *
 * Return: true if it has IP_TRANSPARENT; false before Linux 5.10.
 */
bool diag_transparent(const struct inet_diag_msg *msg);

/**
 * diag_opened - connections that were accepted in this network namespace since it exists
 * @count: is set
 *
 * Return: false: the number is not known.
 */
bool diag_opened(uint64_t *count);

#endif /* GUARD_DIAG_H */
