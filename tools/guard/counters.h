/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of the guard. Only the main thread writes them; the metrics may be read at any time. A
 * worker counts from 0, and the guard adds its counts.
 */
#ifndef GUARD_COUNTERS_H
#define GUARD_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "options.h"
#include "unreachable.h"

/** enum action - what happened to a connection */
enum action {
	/** @ACTION_WARNED: it is idle, and will be ended after the grace time */
	ACTION_WARNED,
	/** @ACTION_ENDED: the kernel has aborted it */
	ACTION_ENDED,
	/** @ACTION_WOULD_END: with --dry-run */
	ACTION_WOULD_END,
	/** @ACTIONS: the number of actions */
	ACTIONS
};

typedef _Atomic uint64_t counter;

/** struct counters - all counters */
struct counters {
	/** @taken: connections whose sockets were taken */
	counter taken;
	/** @restored: connections with timers in a kept wheel */
	counter restored;
	/** @unreachable: connections that are not guarded, by reason */
	counter unreachable[REASONS];
	/** @acted: expired timeouts, by timeout and action */
	counter acted[KINDS][ACTIONS];
	/** @left: connections that have ended in another way */
	counter left;
	/** @scans: lists of connections that were read */
	counter scans;
	/** @skipped: lists that were skipped, because no client had connected to the machine */
	counter skipped;
	/** @scan_ns: time that scans took, including work on new connections */
	counter scan_ns;
	/** @log_lost: lines of the report that were dropped */
	counter log_lost;
	/** @workers_killed: workers that a process has blocked */
	counter workers_killed;
	/**
	 * @workers_stuck: killed workers that have not ended yet; the only counter that decreases
	 */
	counter workers_stuck;
};

/** counters - the counters */
extern struct counters counters;

#endif /* GUARD_COUNTERS_H */
