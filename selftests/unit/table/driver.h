/* SPDX-License-Identifier: GPL-2.0 */
/* Random operations, each done to a file and to the model. */
#ifndef DRIVER_H
#define DRIVER_H

#include <linux/types.h>

/**
 * struct config - a run
 * @keys: how many keys there are
 * @capacity: most timers
 * @bases: CPUs, 1 or 2. With 2 another CPU does something in the middle of operations.
 * @ring: events in the ring, 0: events are read
 * @bits: of a generation; 0: the deadline table is not mapped
 * @monitors: at most so many at once; 17: one more than there may be
 * @refuse: memory and charges are refused once in so many times, 0: never
 * @offset: of those who map the table and the ring, in ns
 * @alike: all keys have the same chain, as far as the table can tell them apart
 * @files: how many files, one after another
 * @ops: operations on each
 * @walk: all is looked at once in so many of them
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
 * struct driver_stats - what was done
 * @done: operations on a timer that did something, by what there was: nothing, pending, due
 * @refused: those that said an error
 * @events: events
 * @copies: events and misses read from monitors
 * @expiries: times that a base was expired
 * @stores: stores in the deadline table
 * @gaps: operations in the middle of others
 * @grown: how often the table grew
 * @failed: how often it could not
 * @most: most timers at once
 * @longest: longest chain
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
