/* SPDX-License-Identifier: GPL-2.0 */
/* Counters of each thread. Only that thread writes them; the metrics may be read at any time. */
#ifndef PROXY_COUNTERS_H
#define PROXY_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/** enum kind - the timeouts of a connection */
enum kind {
	/** @KIND_CONNECT: no server has accepted it yet */
	KIND_CONNECT,
	/** @KIND_IDLE: bytes can flow in both directions */
	KIND_IDLE,
	/** @KIND_HALF_CLOSE: one side has shut down sending */
	KIND_HALF_CLOSE,
	/** @KIND_LIFETIME: the whole connection */
	KIND_LIFETIME,
	/** @KINDS: the number of timeouts */
	KINDS
};

/** enum end - how a connection ended */
enum end {
	/** @END_CLIENT: both sides shut down sending, the client first */
	END_CLIENT,
	/** @END_SERVER: both sides shut down sending, the server first */
	END_SERVER,
	/** @END_TIMEOUT: the first of the timeouts, in the order of enum kind */
	END_TIMEOUT,
	/** @END_STOPPED: the proxy was stopped and the grace time has expired */
	END_STOPPED = END_TIMEOUT + KINDS,
	/** @END_RESET: for this and the following, both sides see a reset, not an end of file */
	END_RESET,
	/** @END_CLIENT_RESET: the client reset the connection */
	END_CLIENT_RESET = END_RESET,
	/** @END_SERVER_RESET: the server reset the connection */
	END_SERVER_RESET,
	/** @END_REFUSED: no server could be reached */
	END_REFUSED,
	/** @END_FAILED: descriptors, memory or timers ran out, or bytes were lost */
	END_FAILED,
	/** @END_NOT_KEPT: the proxy was restarted, and the service manager's store had no place */
	END_NOT_KEPT,
	/** @ENDS: the number of ends */
	ENDS
};

/* Upper bounds of the histogram of lateness, in us. One more bucket has all larger values. */
#define LATENESS_BOUNDS	{ 1000, 2000, 5000, 10000, 20000, 50000, 100000, 1000000 }
#define LATENESS_BUCKETS	9

typedef _Atomic uint64_t counter;

/** struct counters - counters of a thread */
struct counters {
	/** @accepted: connections so far */
	counter accepted;
	/** @restored: the part of @accepted that the service manager passed back */
	counter restored;
	/** @closed: ended connections, by enum end */
	counter closed[ENDS];
	/** @bytes: forwarded bytes from the client and from the server */
	counter bytes[2];
	/** @blocked: directions in which the receiver currently has no room */
	counter blocked;
	/** @connect_failures: attempts to connect to a server that failed */
	counter connect_failures;
	/** @postponed: timers that were due although a byte had postponed the timeout */
	counter postponed;
	/** @lateness: timeouts by the time from the deadline to the close, in buckets */
	counter lateness[LATENESS_BUCKETS];
	/** @lateness_ns: sum of these times, in ns */
	counter lateness_ns;
	/** @store_waiting: connections that are not in the service manager's store yet */
	counter store_waiting;
	/** @log_lost: lines of the connection log that were dropped */
	counter log_lost;
};

/**
 * counter_add - change a counter
 * @counter: a counter of the calling thread
 * @n: added to it; may be negative
 */
static inline void counter_add(counter *counter, int64_t n)
{
	uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);

	/* A store, no locked instruction: there is one writer. */
	atomic_store_explicit(counter, old + n, memory_order_relaxed);
}

#endif /* PROXY_COUNTERS_H */
