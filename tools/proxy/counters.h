/* SPDX-License-Identifier: GPL-2.0 */
/* What each thread counts. Only that thread writes; the metrics are read at any time. */
#ifndef PROXY_COUNTERS_H
#define PROXY_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/** enum kind - the timeouts of a connection */
enum kind {
	/** @KIND_CONNECT: the server has not taken it yet */
	KIND_CONNECT,
	/** @KIND_IDLE: bytes flow, or may */
	KIND_IDLE,
	/** @KIND_HALF_CLOSE: one side has said that it sends no more */
	KIND_HALF_CLOSE,
	/** @KIND_LIFETIME: of all that together */
	KIND_LIFETIME,
	/** @KINDS: how many there are */
	KINDS
};

/** enum end - how a connection ended */
enum end {
	/** @END_CLIENT: the client said first that it sends no more, then the server */
	END_CLIENT,
	/** @END_SERVER: the server did */
	END_SERVER,
	/** @END_TIMEOUT: the first of the timeouts, in the order of enum kind */
	END_TIMEOUT,
	/** @END_STOPPED: the proxy was stopped and the time of grace is over */
	END_STOPPED = END_TIMEOUT + KINDS,
	/** @END_RESET: from here on both sides see a reset, and not an end of file */
	END_RESET,
	/** @END_CLIENT_RESET: the client broke it */
	END_CLIENT_RESET = END_RESET,
	/** @END_SERVER_RESET: the server did */
	END_SERVER_RESET,
	/** @END_REFUSED: no server could be reached */
	END_REFUSED,
	/** @END_FAILED: no descriptor, no memory, no timer */
	END_FAILED,
	/** @END_NOT_KEPT: the proxy was restarted, and the service manager's store had no place */
	END_NOT_KEPT,
	/** @ENDS: how many there are */
	ENDS
};

/* Upper bounds of the histogram of lateness, in us; one more bucket has all above. */
#define LATENESS_BOUNDS	{ 1000, 2000, 5000, 10000, 20000, 50000, 100000, 1000000 }
#define LATENESS_BUCKETS	9

typedef _Atomic uint64_t counter;

/** struct counters - of one thread */
struct counters {
	/** @accepted: connections so far */
	counter accepted;
	/** @restored: of those, connections that the service manager gave back */
	counter restored;
	/** @closed: by how they ended */
	counter closed[ENDS];
	/** @bytes: passed on, from the client, from the server */
	counter bytes[2];
	/** @blocked: directions in which the receiver has no room now */
	counter blocked;
	/** @connect_failures: attempts to connect to a server that failed */
	counter connect_failures;
	/** @postponed: timers that were due when a byte had come at the last moment */
	counter postponed;
	/** @lateness: of timeouts, from the deadline to the close, by bucket */
	counter lateness[LATENESS_BUCKETS];
	/** @lateness_ns: sum of them all */
	counter lateness_ns;
	/** @store_waiting: connections that are not in the service manager's store yet */
	counter store_waiting;
	/** @log_lost: lines of the connection log that nobody took */
	counter log_lost;
};

/**
 * counter_add - count
 * @counter: of the calling thread
 * @n: how many, may be negative
 */
static inline void counter_add(counter *counter, int64_t n)
{
	uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);

	/* A store, no locked instruction: there is one writer. */
	atomic_store_explicit(counter, old + n, memory_order_relaxed);
}

#endif /* PROXY_COUNTERS_H */
