/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TCP sockets of this network namespace, as sock_diag(7) lists them.
 *
 * There are notifications of closed sockets (SKNLGRP_INET_TCP_DESTROY), but not of those that a
 * timer holds: they come when the last reference is dropped. New sockets are not announced. So both
 * take a look at the list.
 */
#ifndef GUARD_DIAG_H
#define GUARD_DIAG_H

#include <linux/inet_diag.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"

/** diag_open - in the worker: open the netlink socket; ends it with a message if it cannot */
void diag_open(void);

/**
 * diag_connections - list connections that a process may have, IPv4 and IPv6
 * @ports: local ports, to which the kernel limits the list
 * @nr_ports: the number of ports; 0: list the connections to all ports
 * @each: is called for each connection
 *
 * One that exists may be missing if others are closed meanwhile.
 *
 * Return: false: the list is not complete.
 */
bool diag_connections(const uint16_t *ports, unsigned int nr_ports,
		      void (*each)(const struct inet_diag_msg *msg));

/**
 * diag_listeners - list the listening sockets
 * @each: is called for each
 *
 * Return: false: the list is not complete.
 */
bool diag_listeners(void (*each)(const struct inet_diag_msg *msg));

/**
 * diag_cookie - a socket's number, which the kernel gives to no other one
 * @msg: the socket
 *
 * Return: the number.
 */
static inline uint64_t diag_cookie(const struct inet_diag_msg *msg)
{
	return (uint64_t)msg->id.idiag_cookie[1] << 32 | msg->id.idiag_cookie[0];
}

/**
 * diag_waits - a connection that no process has: is it still to be accepted?
 * @msg: its socket
 *
 * Return: false: it was closed.
 */
bool diag_waits(const struct inet_diag_msg *msg);

/**
 * diag_address - an address of a socket; one of IPv4 on a dual-stack socket comes as IPv4
 * @msg: the socket
 * @peer: that of the other end, not its own
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
 * diag_opened - connections that were accepted in this network namespace since it exists
 * @count: is set
 *
 * Return: false: that is not known.
 */
bool diag_opened(uint64_t *count);

#endif /* GUARD_DIAG_H */
