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

/** enum reason - why a connection ended */
enum reason {
	/** @REASON_DONE: both sides have said all */
	REASON_DONE,
	/** @REASON_TIMEOUT: see struct counters.timeouts */
	REASON_TIMEOUT,
	/** @REASON_RESET: one side broke it */
	REASON_RESET,
	/** @REASON_REFUSED: no server could be reached */
	REASON_REFUSED,
	/** @REASON_FAILED: no descriptor, no memory, no timer */
	REASON_FAILED,
	/** @REASON_STOPPED: the proxy was stopped and the time of grace is over */
	REASON_STOPPED,
	/** @REASONS: how many there are */
	REASONS
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
	/** @closed: by reason */
	counter closed[REASONS];
	/** @bytes: passed on, from the client, from the server */
	counter bytes[2];
	/** @blocked: directions in which the receiver has no room now */
	counter blocked;
	/** @timeouts: by kind */
	counter timeouts[KINDS];
	/** @postponed: timers that were due when a byte had come at the last moment */
	counter postponed;
	/** @lateness: of timeouts, from the deadline to the close, by bucket */
	counter lateness[LATENESS_BUCKETS];
	/** @lateness_ns: sum of them all */
	counter lateness_ns;
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
