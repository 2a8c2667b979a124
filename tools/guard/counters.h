/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the guard counts. Only the main thread writes; the metrics are read at any time. The worker
 * counts from 0, and the guard adds what it has counted.
 */
#ifndef GUARD_COUNTERS_H
#define GUARD_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "options.h"
#include "unreachable.h"

/** enum action - what happened to a connection */
enum action {
	/** @ACTION_WARNED: it is idle, and will be ended after the time of grace */
	ACTION_WARNED,
	/** @ACTION_ENDED: the kernel has aborted it */
	ACTION_ENDED,
	/** @ACTION_WOULD_END: with --dry-run */
	ACTION_WOULD_END,
	/** @ACTIONS: how many there are */
	ACTIONS
};

typedef _Atomic uint64_t counter;

/** struct counters - all of them */
struct counters {
	/** @taken: connections whose sockets were taken */
	counter taken;
	/** @restored: those of the timers in a kept wheel */
	counter restored;
	/** @unreachable: connections that are not guarded, by reason */
	counter unreachable[REASONS];
	/** @acted: timeouts, by timeout and what happened */
	counter acted[KINDS][ACTIONS];
	/** @left: connections that have ended without the guard */
	counter left;
	/** @scans: lists of connections taken */
	counter scans;
	/** @skipped: not taken, since no connection had been opened on the machine */
	counter skipped;
	/** @scan_ns: time that scans have taken, with what they found */
	counter scan_ns;
	/** @log_lost: lines of the report that nobody took */
	counter log_lost;
	/** @workers_killed: workers that a process has held up */
	counter workers_killed;
	/** @workers_stuck: those that have not ended yet; the only one that falls */
	counter workers_stuck;
};

/** counters - they */
extern struct counters counters;

#endif /* GUARD_COUNTERS_H */
