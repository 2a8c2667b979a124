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

/** struct progress - how far the peer of a TCP socket is with what was sent to it */
struct progress {
	/** @acked: bytes that it has acknowledged; a SYN and a FIN count as one each */
	uint64_t acked;
	/** @ack_age: time since its last acknowledgment, ns; up to 20 ms less than the true time */
	uint64_t ack_age;
	/** @unacked: bytes that it has not acknowledged, a FIN included */
	unsigned int unacked;
};

/**
 * progress_of - read how far the peer is
 * @fd: the socket
 * @progress: is filled in
 *
 * Return: false: it is not TCP.
 */
bool progress_of(int fd, struct progress *progress);

/**
 * socket_error - take the error of a socket, which is reported only once
 * @fd: the socket
 *
 * Return: an error number; 0 if there is none.
 */
int socket_error(int fd);

/**
 * socket_unread - bytes that have come and were not read
 * @fd: the socket, or -1
 *
 * Return: the number; 0 if there is no such socket.
 */
unsigned int socket_unread(int fd);

/**
 * socket_unacked - bytes that were written and that the peer has not acknowledged
 * @fd: the socket, or -1
 *
 * Return: the number, in which a FIN counts as one; 0 if there is no such socket.
 */
unsigned int socket_unacked(int fd);

/**
 * socket_failed - does a socket have an error that no call has reported yet?
 * @fd: the socket, or -1
 *
 * Return: true if its connection has failed, for example by a reset.
 */
bool socket_failed(int fd);

/**
 * socket_is_own_peer - is a TCP socket connected to itself?
 * @fd: the socket
 *
 * This happens where a port is not bound and the kernel picks it as the local port of a connection
 * to the very same port.
 *
 * Return: true if both ends have the same address.
 */
bool socket_is_own_peer(int fd);

/**
 * socket_keep_urgent - receive urgent bytes in sequence
 * @fd: the socket, or a listening socket, whose connections inherit this
 */
void socket_keep_urgent(int fd);

/**
 * socket_prepare - set the options of a socket whose bytes are relayed
 * @fd: the socket. It sends a reset if the process ends without socket_end().
 */
void socket_prepare(int fd);

/**
 * socket_end - close a connection with an end of file after its last byte
 * @fd: the socket
 * @shared: another process has it open as well, and sees a hangup
 */
void socket_end(int fd, bool shared);

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
