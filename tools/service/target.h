/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses on the command line: ADDRESS:PORT, [ADDRESS]:PORT or :PORT. */
#ifndef SERVICE_TARGET_H
#define SERVICE_TARGET_H

#include <stdbool.h>

#include "address.h"

/** struct target - where to listen or to connect to */
struct target {
	/** @name: as the user wrote it */
	const char *name;
	/** @at: the same for the kernel */
	union address at;
	/** @both: any address of IPv6 and IPv4: @at is that of IPv6 */
	bool both;
};

/** TARGETS_MAX - most listening addresses, and most servers */
#define TARGETS_MAX		64

/** struct targets - several */
struct targets {
	/** @n: how many */
	unsigned int n;
	/** @target: which */
	struct target target[TARGETS_MAX];
};

/** enum any - what ":PORT" means */
enum any {
	/** @ANY_FIRST: this machine */
	ANY_FIRST,
	/** @ANY_LOOPBACK: this machine over IPv4 and IPv6 */
	ANY_LOOPBACK,
	/** @ANY_ALL: all its addresses */
	ANY_ALL
};

/**
 * target_add - add what an option says
 * @targets: to these
 * @option: its name, for messages
 * @text: its value
 * @any: what :PORT means
 *
 * Ends the process with a message on anything not understood.
 */
void target_add(struct targets *targets, const char *option, const char *text, enum any any);

/**
 * target_listen - a listening socket
 * @option: what the user calls it, for messages
 * @target: where
 * @backlog: most that may wait
 *
 * Ends the process with a message if it cannot.
 *
 * Return: the descriptor, which does not block.
 */
int target_listen(const char *option, const struct target *target, int backlog);

#endif /* SERVICE_TARGET_H */
