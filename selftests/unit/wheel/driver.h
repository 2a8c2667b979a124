/* SPDX-License-Identifier: GPL-2.0 */
/* Operations chosen by a source of decisions, done on a wheel and on the model. */
#ifndef DRIVER_H
#define DRIVER_H

#include "config.h"
#include "model.h"
#include "rig.h"
#include "source.h"

/**
 * struct driver_stats - what a run did
 * @ops: operations
 * @epochs: wheels begun
 * @inserted: timers inserted
 * @postponed: deadlines put off in place
 * @stored: deadlines changed by a store in the deadline table
 * @removed: timers removed
 * @expired: timers that fired
 * @cascades: timers moved to a lower level
 * @requeues: timers visited at an old deadline
 * @collects: calls of tw_wheel_collect()
 * @backlogs: of them, those that left a backlog
 * @most_backlogs: most at a time
 * @biases: clocks set back
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
 * @config: what it is made of
 * @seed: and what repeats it
 * @trace: print each operation
 * @source: makes the decisions
 * @rig: the wheel
 * @model: what it should do
 * @stats: what was done so far
 * @now_ns: the clock
 * @latest: the latest tick that it ever was
 * @free: indices of timers that are not in use
 * @free_count: how many
 * @population: most timers in this epoch
 * @budget: most of a small budget in this epoch
 * @exact: nothing was removed since the wheel last looked for work
 * @order: tick of the timer that fired last
 * @cascades: most cascades that the insertions of this epoch allow
 * @fired: timers that fired in this epoch
 * @late_max: the largest lateness in this epoch, in ns
 * @lateness: and a histogram of it
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
