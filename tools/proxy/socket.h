/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Properties of a socket: its addresses, its number, and the number of bytes that have passed
 * through it. The kernel counts the bytes, even if the process that wrote and read them was killed.
 */
#ifndef PROXY_SOCKET_H
#define PROXY_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"

/**
 * address_of - an address of a socket; IPv4 on a dual-stack socket is returned as IPv4
 * @fd: the socket
 * @peer: the address of the other end instead of its own
 *
 * Return: the address; AF_UNSPEC if there is none.
 */
union address address_of(int fd, bool peer);

/** struct passed - byte counts and state of a TCP socket */
struct passed {
	/** @written: bytes that programs have written, acknowledged or not */
	uint64_t written;
	/** @read: bytes that programs have read */
	uint64_t read;
	/** @connecting: the other end has not answered */
	bool connecting;
	/** @ended: sending was shut down */
	bool ended;
};

/**
 * passed_of - get the byte counts and state of a TCP socket
 * @fd: the socket, which no program reads or writes during the call
 * @active: it was connected, not accepted
 * @passed: out: filled in
 *
 * Return: false: it is not TCP.
 */
bool passed_of(int fd, bool active, struct passed *passed);

/** struct progress - progress of the peer of a TCP socket */
struct progress {
	/** @acked: bytes that it has acknowledged; a SYN and a FIN count as one each */
	uint64_t acked;
	/** @ack_age: time since its last acknowledgment, ns; up to 20 ms less than the true time */
	uint64_t ack_age;
	/** @unacked: bytes that it has not acknowledged, a FIN included */
	unsigned int unacked;
};

/**
 * progress_of - get the progress of the peer
 * @fd: the socket
 * @progress: out: filled in
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
 * socket_unread - number of bytes that have arrived and were not read
 * @fd: the socket, or -1
 *
 * Return: the number; 0 if there is no such socket.
 */
unsigned int socket_unread(int fd);

/**
 * socket_unacked - number of bytes that were written and that the peer has not acknowledged
 * @fd: the socket, or -1
 *
 * Return: the number, in which a FIN counts as one; 0 if there is no such socket.
 */
unsigned int socket_unacked(int fd);

/**
 * socket_has_gap - have bytes arrived at a TCP socket while an earlier byte is missing?
 * @fd: the socket, whose bytes were all read, or -1
 *
 * The network has lost the missing byte. The bytes after it cannot be read.
 *
 * Return: true if bytes wait for a missing byte.
 */
bool socket_has_gap(int fd);

/**
 * socket_failed - does a socket have an error that no call has reported yet?
 * @fd: the socket, or -1
 *
 * Return: true if its connection has failed, for example by a reset.
 */
bool socket_failed(int fd);

/**
 * socket_receives - is the peer of a TCP socket in the middle of sending?
 * @fd: the socket, or -1
 *
 * A peer that sends without a pause sends at least once in a round trip, and the retransmission
 * timeout is longer than that.
 *
 * Return: true if bytes have arrived within the last retransmission timeout.
 */
bool socket_receives(int fd);

/**
 * socket_is_own_peer - is a TCP socket connected to itself?
 * @fd: the socket
 *
 * This happens if a port is not bound and the kernel chooses it as the local port of a connection
 * to the same port.
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
 * @shared: another process also has it open, and sees a hangup
 */
void socket_end(int fd, bool shared);

/**
 * cookie_of - the unique number that the kernel gives to a socket
 * @fd: the socket
 *
 * Return: the number; 0: this is not a socket.
 */
uint64_t cookie_of(int fd);

/**
 * socket_reset - reset a connection, so that no peer sees an end of file, and close its socket
 * @fd: the socket, or -1. Other processes that have it open see the reset, too.
 */
void socket_reset(int fd);

#endif /* PROXY_SOCKET_H */
