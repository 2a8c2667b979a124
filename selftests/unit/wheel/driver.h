/* SPDX-License-Identifier: GPL-2.0 */
/* Random operations, or those that a fuzzer chooses, on a wheel and on the model */
#ifndef DRIVER_H
#define DRIVER_H

#include "config.h"
#include "model.h"
#include "rig.h"
#include "source.h"

/**
 * struct driver_stats - statistics of a run
 * @ops: operations
 * @epochs: epochs: wheels that were started
 * @inserted: timers inserted
 * @postponed: timers postponed in place
 * @stored: timers postponed by a store in the deadline table
 * @removed: timers removed
 * @expired: timers that fired
 * @cascades: timers moved to a lower level
 * @requeues: postponed timers that were visited at an old deadline
 * @collects: calls of tw_wheel_collect()
 * @backlogs: calls of tw_wheel_collect() that left a backlog
 * @most_backlogs: maximum number of backlogs at a time
 * @biases: number of times that the clock was set back
 * @walks: walks through the whole wheel
 */
struct driver_stats {
	u64 ops;
	u64 epochs;
	u64 inserted;
	u64 postponed;
	u64 stored;
	u64 removed;
	u64 expired;
	u64 cascades;
	u64 requeues;
	u64 collects;
	u64 backlogs;
	u64 most_backlogs;
	u64 biases;
	u64 walks;
};

/**
 * struct driver - a run
 * @config: its configuration
 * @seed: its seed
 * @trace: print each operation
 * @source: source of all random choices
 * @rig: the wheel
 * @model: the model
 * @stats: statistics
 * @now_ns: the clock
 * @latest: the latest tick in which the wheel was run
 * @free: indices of timers that are not in use
 * @free_count: their number
 * @population: maximum number of timers in this epoch
 * @budget: limit for small budgets in this epoch
 * @exact: no timer was removed since the wheel last computed when there is work
 * @order: tick of the timer that fired last
 * @cascades: upper bound for the wheel's cascades in this epoch
 * @fired: timers that fired in this epoch
 * @late_max: greatest lateness in this epoch, in ns
 * @lateness: histogram of lateness in this epoch
 */
struct driver {
	const struct config *config;
	u64 seed;
	bool trace;
	struct source source;
	struct rig rig;
	struct model model;
	struct driver_stats *stats;
	u64 now_ns;
	u64 latest;
	u32 *free;
	u32 free_count;
	u32 population;
	u32 budget;
	bool exact;
	u64 order;
	u64 cascades;
	u64 fired;
	u64 late_max;
	u64 lateness[65];
};

u64 driver_now(const struct driver *d);

void driver_run(const struct config *config, u64 seed, struct driver_stats *stats, bool trace);
void driver_run_bytes(const struct config *config, const u8 *bytes, size_t size);

#endif /* DRIVER_H */
