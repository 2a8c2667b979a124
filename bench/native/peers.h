/* SPDX-License-Identifier: GPL-2.0 */
/* The queues that are compared. All but those at the end are facilities of ../facility. */
#ifndef PEERS_H
#define PEERS_H

#include "../facility.h"

/**
 * struct peer - a queue of timers
 * @name: its name
 * @title: a few words for tables
 * @facility: its functions
 * @stores: a later deadline is only stored, and read when the timer's old one has passed
 * @real_time: it reads a clock that cannot be simulated, so all timers expire in one turn
 */
struct peer {
	const char *name;
	const char *title;
	const struct facility *facility;
	bool stores;
	bool real_time;
};

extern const struct peer peers[];	/* the last has no name */

/* here */
extern const struct facility native_wheel, native_wheel_lazy, native_heap;
extern const struct facility native_connections, native_connections_prefetch;
extern const struct facility native_library, native_asio, native_rte;

#endif /* PEERS_H */
