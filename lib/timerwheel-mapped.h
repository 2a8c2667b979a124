/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Access to memory that a program shares with a wheel: the deadline table and the event ring */
#ifndef TIMERWHEEL_MAPPED_H
#define TIMERWHEEL_MAPPED_H

#include <linux/timerwheel.h>

/**
 * timerwheel_mapped_entry - compute an entry of the deadline table
 * @deadline: the new deadline, absolute, in ns, at most TIMERWHEEL_TIME_MAX
 * @generation: generation of the timer, from ADD, GET or LIST
 * @bits: generation_bits of INFO
 *
 * Return: the entry.
 */
static inline __u64 timerwheel_mapped_entry(__u64 deadline, __u32 generation, unsigned int bits)
{
	__u64 unit = 1ULL << bits;

	return ((deadline + unit - 1) & ~(unit - 1)) | generation;
}

/**
 * enum timerwheel_answer - answers of the functions that arm, refresh and cancel timers in memory
 *
 * Only TIMERWHEEL_DONE means that the function changed something and ordered memory. A thread that
 * takes the event of an arming, or that cancels the arming, sees everything that was written before
 * the timer was armed.
 */
enum timerwheel_answer {
	/** @TIMERWHEEL_DONE: done. After a cancel no event is delivered for that arming. */
	TIMERWHEEL_DONE,
	/**
	 * @TIMERWHEEL_TOO_LATE: refresh, cancel: the last arming has fired. Its event will be
	 * delivered, was taken, or was withdrawn by timerwheel_move(), timerwheel_add() or
	 * timerwheel_drain().
	 */
	TIMERWHEEL_TOO_LATE,
	/**
	 * @TIMERWHEEL_NEEDS_CALL: arm: the timer has fired, is parked, or has a later deadline;
	 * refresh: it has a later deadline. timerwheel_move() arms it in each of these states,
	 * unless the timer is not resident and its event was delivered: then use timerwheel_add().
	 */
	TIMERWHEEL_NEEDS_CALL,
	/**
	 * @TIMERWHEEL_NOT_ARMED: refresh, cancel: the last arming was cancelled, or the timer has a
	 * linger (TIMERWHEEL_LINGER) and the event of its last arming was taken
	 */
	TIMERWHEEL_NOT_ARMED,
	/** @TIMERWHEEL_GONE: the timer has ended, and its index may have a new owner */
	TIMERWHEEL_GONE
};

/**
 * timerwheel_mapped_arm - arm a timer, whether or not it is armed
 * @table: the mapped deadline table
 * @index: index of the timer, from ADD, GET or LIST
 * @entry: from timerwheel_mapped_entry(), with a deadline that is not earlier than the deadline of
 *	the last arming, even if that arming was cancelled
 * @bits: generation_bits of INFO
 *
 * Any thread of any process that has mapped the table may call this, and so may signal handlers.
 *
 * Return: TIMERWHEEL_DONE, TIMERWHEEL_NEEDS_CALL or TIMERWHEEL_GONE.
 */
static inline enum timerwheel_answer timerwheel_mapped_arm(__u64 *table, __u32 index, __u64 entry,
							   unsigned int bits)
{
	__u64 old = __atomic_load_n(&table[index], __ATOMIC_RELAXED);
	__u64 want = entry | TIMERWHEEL_TABLE_ARMED, differs;

	do {
		differs = (old ^ want) & ((1ULL << bits) - 1);
		if (differs & ~(__u64)TIMERWHEEL_TABLE_ARMED)
			return differs > TIMERWHEEL_TABLE_FIRED ? TIMERWHEEL_GONE :
								     TIMERWHEEL_NEEDS_CALL;
		/* The state is in the lowest bits: CANCELLED is less than ARMED. */
		if (want < old)
			return TIMERWHEEL_NEEDS_CALL;
		/*
		 * An entry of a new owner is never overwritten; litmus c11/resident-owner.
		 * Release: a thread that takes the event, or cancels, sees what was written before;
		 * litmus c11/resident-publish, c11/resident-cancel. Acquire: the thread that
		 * cancelled the last arming does not see what is written from now on; litmus
		 * c11/resident-rearm.
		 */
	} while (!__atomic_compare_exchange_n(&table[index], &old, want, 1, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	return TIMERWHEEL_DONE;
}

/**
 * timerwheel_mapped_refresh - postpone a timer if it is armed
 * @table: the mapped deadline table
 * @index: index of the timer, from ADD, GET or LIST
 * @entry: from timerwheel_mapped_entry(), with a deadline that is not earlier than the timer's
 * @bits: generation_bits of INFO
 *
 * Any thread of any process that has mapped the table may call this, and so may signal handlers.
 *
 * Return: any answer. After TIMERWHEEL_DONE no event is delivered for the previous deadline.
 */
static inline enum timerwheel_answer timerwheel_mapped_refresh(__u64 *table, __u32 index,
							       __u64 entry, unsigned int bits)
{
	__u64 old = __atomic_load_n(&table[index], __ATOMIC_RELAXED);
	__u64 want = entry | TIMERWHEEL_TABLE_ARMED, differs;

	do {
		differs = (old ^ want) & ((1ULL << bits) - 1);
		if (differs)
			return differs > TIMERWHEEL_TABLE_FIRED ? TIMERWHEEL_GONE :
			       differs & TIMERWHEEL_TABLE_ARMED ? TIMERWHEEL_NOT_ARMED :
								     TIMERWHEEL_TOO_LATE;
		if (want < old)
			return TIMERWHEEL_NEEDS_CALL;
		/* As in timerwheel_mapped_arm(); litmus c11/resident-publish, resident-owner. */
	} while (!__atomic_compare_exchange_n(&table[index], &old, want, 1, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	return TIMERWHEEL_DONE;
}

/**
 * timerwheel_mapped_cancel - cancel a timer
 * @table: the mapped deadline table
 * @index: index of the timer, from ADD, GET or LIST
 * @generation: generation of the timer, from the same call
 * @bits: generation_bits of INFO
 *
 * Any thread of any process that has mapped the table may call this, and so may signal handlers.
 *
 * Return: TIMERWHEEL_DONE, TIMERWHEEL_TOO_LATE, TIMERWHEEL_NOT_ARMED or TIMERWHEEL_GONE.
 */
static inline enum timerwheel_answer timerwheel_mapped_cancel(__u64 *table, __u32 index,
							      __u32 generation, unsigned int bits)
{
	__u64 old = __atomic_load_n(&table[index], __ATOMIC_RELAXED);
	__u64 want = generation | TIMERWHEEL_TABLE_ARMED, differs;

	do {
		differs = (old ^ want) & ((1ULL << bits) - 1);
		if (differs)
			return differs > TIMERWHEEL_TABLE_FIRED ? TIMERWHEEL_GONE :
			       differs & TIMERWHEEL_TABLE_ARMED ? TIMERWHEEL_NOT_ARMED :
								     TIMERWHEEL_TOO_LATE;
		/*
		 * The deadline stays because the timer is still queued for it. Acquire: this
		 * thread sees what was written before the arming; litmus c11/resident-cancel.
		 * Release: writes of a thread that arms the timer again do not affect what this
		 * thread has read before; litmus c11/resident-rearm. Each arming is ended exactly
		 * once; litmus c11/resident-end.
		 */
	} while (!__atomic_compare_exchange_n(&table[index], &old,
					      old - TIMERWHEEL_TABLE_ARMED, 1,
					      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return TIMERWHEEL_DONE;
}

/**
 * struct timerwheel_mapped_ring - a mapped event ring
 * @ring: the mapping
 * @events: its length in events: ring of INFO, a power of two
 * @event_size: size of an event in it, in bytes: event_size of INFO
 * @head: set by timerwheel_ring_look() and timerwheel_ring_drop()
 *
 * Every process that has the wheel can write to the mapping. So @events and @event_size come from
 * INFO, not from the mapping, and each timerwheel_ring_look() loads the mapping's head only once. A
 * hostile process can make the reader see wrong events, but cannot make it access memory outside of
 * the ring or loop forever.
 */
struct timerwheel_mapped_ring {
	struct timerwheel_ring *ring;
	__u32 events;
	__u32 event_size;
	__u32 head;
};

/**
 * timerwheel_ring_look - access events in the ring without copying them
 * @ring: the mapped event ring
 * @n: out: number of contiguous events; 0: there are no events
 *
 * The events stay valid until timerwheel_ring_drop(). Step from one event to the next with
 * timerwheel_ring_next(). If this program has set up the wheel, and not for larger events, the
 * events are an array. More events may be at the beginning of the ring's memory, so call this again
 * after timerwheel_ring_drop().
 *
 * Only one thread at a time may call this. It makes no system call. If there are no events, call
 * timerwheel_ring_sleep().
 *
 * Return: the first event.
 */
static inline const struct timerwheel_event *
timerwheel_ring_look(struct timerwheel_mapped_ring *ring, unsigned int *n)
{
	const char *events = (const char *)ring->ring + TIMERWHEEL_RING_EVENTS;
	/* Pairs with the kernel's release, so the events are visible; litmus c11/ring-publish. */
	__u32 tail = __atomic_load_n(&ring->ring->tail, __ATOMIC_ACQUIRE), place, to_end;

	ring->head = __atomic_load_n(&ring->ring->head, __ATOMIC_RELAXED);
	place = ring->head & (ring->events - 1);
	to_end = ring->events - place;
	/* this thread is awake and needs no wake-ups */
	if (__atomic_load_n(&ring->ring->waiting, __ATOMIC_RELAXED))
		__atomic_store_n(&ring->ring->waiting, 0, __ATOMIC_RELAXED);
	*n = tail - ring->head < to_end ? tail - ring->head : to_end;
	return (const struct timerwheel_event *)(events + (__u64)place * ring->event_size);
}

/**
 * timerwheel_ring_next - get the next event
 * @ring: the mapped event ring
 * @seen: an event, but not the last event that timerwheel_ring_look() has found
 *
 * This also works if events are larger than this program knows.
 *
 * Return: the event after @seen.
 */
static inline const struct timerwheel_event *
timerwheel_ring_next(const struct timerwheel_mapped_ring *ring, const void *seen)
{
	return (const struct timerwheel_event *)((const char *)seen + ring->event_size);
}

/**
 * timerwheel_ring_drop - consume events
 * @ring: the mapped event ring
 * @n: number of events, at most the number from timerwheel_ring_look(). Do not access these events
 *	afterwards.
 */
static inline void timerwheel_ring_drop(struct timerwheel_mapped_ring *ring, unsigned int n)
{
	ring->head += n;
	/* Pairs with the kernel's acquire, so it may overwrite events now; litmus c11/ring-room. */
	__atomic_store_n(&ring->ring->head, ring->head, __ATOMIC_RELEASE);
}

/**
 * timerwheel_ring_take - copy events from the ring and consume them
 * @ring: the mapped event ring
 * @event: out: the events
 * @max: maximum number of events
 *
 * Return: the number of events; 0: there are no events.
 */
static inline unsigned int timerwheel_ring_take(struct timerwheel_mapped_ring *ring,
						struct timerwheel_event *event, unsigned int max)
{
	const struct timerwheel_event *events;
	unsigned int done = 0, n, i;

	do {
		events = timerwheel_ring_look(ring, &n);
		if (n > max - done)
			n = max - done;
		for (i = 0; i < n; i++, events = timerwheel_ring_next(ring, events))
			event[done + i] = *events;
		if (n)
			timerwheel_ring_drop(ring, n);
		done += n;
	} while (n && done < max);
	return done;
}

/** enum timerwheel_ring_todo - what to do when the ring is empty */
enum timerwheel_ring_todo {
	/** @TIMERWHEEL_RING_TAKE: an event has arrived in the meantime: take it */
	TIMERWHEEL_RING_TAKE,
	/**
	 * @TIMERWHEEL_RING_FLOW: events wait in the kernel: call TIMERWHEEL_IOC_FLOW, then take
	 * them
	 */
	TIMERWHEEL_RING_FLOW,
	/** @TIMERWHEEL_RING_POLL: there are no events: sleep in poll() or similar, then take */
	TIMERWHEEL_RING_POLL
};

/**
 * timerwheel_ring_sleep - before sleeping: request a wake-up, and check the ring again
 * @ring: the event ring, in which timerwheel_ring_look() or timerwheel_ring_take() found no event
 *
 * Return: what to do next.
 */
static inline enum timerwheel_ring_todo
timerwheel_ring_sleep(const struct timerwheel_mapped_ring *ring)
{
	__atomic_store_n(&ring->ring->waiting, 1, __ATOMIC_RELAXED);
	/*
	 * Pairs with the kernel's barrier: either the kernel sees @waiting, or we see its changes;
	 * litmus c11/ring-waiting.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&ring->ring->tail, __ATOMIC_RELAXED) != ring->head)
		return TIMERWHEEL_RING_TAKE;
	if (__atomic_load_n(&ring->ring->flags, __ATOMIC_RELAXED) & TIMERWHEEL_RING_OVERFLOW)
		return TIMERWHEEL_RING_FLOW;
	return TIMERWHEEL_RING_POLL;
}

#endif /* TIMERWHEEL_MAPPED_H */
