/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What there is to know of a socket: its addresses; its number; how many bytes have gone through
 * it. Whatever became of the process that wrote and read them: the kernel has counted.
 */
#ifndef PROXY_SOCKET_H
#define PROXY_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"

/**
 * address_of - an address of a socket; one of IPv4 on a dual-stack socket comes as IPv4
 * @fd: the socket
 * @peer: that of the other end, not its own
 *
 * Return: the address; AF_UNSPEC if there is none.
 */
union address address_of(int fd, bool peer);

/** struct passed - what a TCP socket has done */
struct passed {
	/** @written: bytes, by a program, whether or not they were acknowledged */
	uint64_t written;
	/** @read: by a program */
	uint64_t read;
	/** @connecting: the other end has not answered */
	bool connecting;
	/** @ended: it was said that no more is written */
	bool ended;
};

/**
 * passed_of - what has passed through a TCP socket
 * @fd: the socket; nobody reads or writes it meanwhile
 * @active: it was connected, and not accepted
 * @passed: is filled in
 *
 * Return: false: it is not TCP.
 */
bool passed_of(int fd, bool active, struct passed *passed);

/**
 * cookie_of - a socket's number, which the kernel gives to no other one
 * @fd: the socket
 *
 * Return: the number; 0: this is no socket.
 */
uint64_t cookie_of(int fd);

/**
 * socket_reset - break a connection, so that this is not taken for an end of file, and close it
 * @fd: its socket, or -1. Whoever else has it open sees the same.
 */
void socket_reset(int fd);

#endif /* PROXY_SOCKET_H */
