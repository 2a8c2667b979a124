/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses on the command line: ADDRESS:PORT, [ADDRESS]:PORT or :PORT. */
#ifndef SERVICE_TARGET_H
#define SERVICE_TARGET_H

#include <stdbool.h>

#include "address.h"

/** struct target - an address to listen on or to connect to */
struct target {
	/** @name: as the user wrote it */
	const char *name;
	/** @at: the address in binary form */
	union address at;
	/** @both: all addresses of IPv6 and IPv4; @at is the IPv6 address */
	bool both;
};

/** TARGETS_MAX - maximum number of listening addresses, and of servers */
#define TARGETS_MAX		64

/** struct targets - several addresses */
struct targets {
	/** @n: their number */
	unsigned int n;
	/** @target: the addresses */
	struct target target[TARGETS_MAX];
};

/** enum any - what ":PORT" means */
enum any {
	/** @ANY_FIRST: this machine */
	ANY_FIRST,
	/** @ANY_LOOPBACK: this machine over IPv4 and IPv6 */
	ANY_LOOPBACK,
	/** @ANY_ALL: all addresses of this machine */
	ANY_ALL
};

/**
 * target_add - add the address in an option
 * @targets: gets the address
 * @option: name of the option, for messages
 * @text: value of the option
 * @any: what :PORT means
 *
 * Ends the process with a message if the value is invalid.
 */
void target_add(struct targets *targets, const char *option, const char *text, enum any any);

/**
 * target_listen - create a listening socket
 * @option: name of the option, for messages
 * @target: the address
 * @backlog: maximum number of waiting clients
 *
 * Ends the process with a message if it fails.
 *
 * Return: the descriptor, which is non-blocking.
 */
int target_listen(const char *option, const struct target *target, int backlog);

#endif /* SERVICE_TARGET_H */
