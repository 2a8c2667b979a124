/* SPDX-License-Identifier: GPL-2.0 */
/* Random operations on a file and on the model */
#ifndef DRIVER_H
#define DRIVER_H

#include <linux/types.h>

/**
 * struct config - the configuration of a run
 * @keys: number of keys
 * @capacity: maximum number of timers
 * @bases: CPUs with a base, 1 or 2. With 2 the other CPU runs in the middle of operations.
 * @ring: length of the event ring; 0: events are read
 * @monitors: maximum number of monitors at once; 17 is one more than is allowed
 * @bits: length of a generation, with the state; 0: there is no deadline table
 * @refuse: on average one of @refuse allocations and charges fails; 0: none
 * @offset: time namespace offset of the task that has set up the wheel, in ns
 * @alike: all keys belong to the same hash chain, whatever the size of the table
 * @files: number of files, one after another
 * @ops: operations on each file
 * @walk: on average there is one walk() for each @walk operations
 */
struct config {
	unsigned int keys;
	unsigned int capacity;
	unsigned int bases;
	unsigned int ring;
	unsigned int monitors;
	unsigned int bits;
	unsigned int refuse;
	s64 offset;
	unsigned int alike;
	unsigned int files;
	unsigned int ops;
	unsigned int walk;
};

/**
 * struct driver_stats - statistics of a run
 * @done: operations on a timer that succeeded, by the state before: none, pending, due
 * @refused: operations that returned an error
 * @events: events delivered
 * @copies: events, counts of missed ones included, that monitors read
 * @expiries: number of times that a base was expired
 * @stores: stores in the deadline table
 * @gaps: operations in the middle of others
 * @grown: number of times that the table grew...
 * @failed: ...and that it failed to
 * @most: maximum number of timers at once
 * @longest: length of the longest hash chain
 */
struct driver_stats {
	u64 done[3];
	u64 refused;
	u64 events;
	u64 copies;
	u64 expiries;
	u64 stores;
	u64 gaps;
	u64 grown;
	u64 failed;
	u64 most;
	u64 longest;
};

void driver_run(const struct config *config, u64 seed, struct driver_stats *stats);

#endif /* DRIVER_H */
