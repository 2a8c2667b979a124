/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many bytes have gone through a socket. Whatever became of the process that wrote and
 * read them: the kernel has counted.
 */
#ifndef PROXY_PASSED_H
#define PROXY_PASSED_H

#include <stdbool.h>
#include <stdint.h>

/** struct passed - bytes since a TCP socket was connected */
struct passed {
	/** @written: by a program, whether or not they were acknowledged */
	uint64_t written;
	/** @read: by a program */
	uint64_t read;
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

#endif /* PROXY_PASSED_H */
