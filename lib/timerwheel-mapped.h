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
 * timerwheel_mapped_touch - postpone a timer
 * @table: the mapped deadline table
 * @index: index of the timer, from ADD, GET or LIST
 * @entry: timerwheel_mapped_entry(); entries of timers with the same deadline differ only in the
 *	generation
 * @bits: generation_bits of INFO
 *
 * May be called by any thread of any process that has mapped the table, and by signal handlers. It
 * is a compare-and-swap, so it does not store anything for a timer that has ended and whose index
 * has a new owner. It needs no ordering: an entry orders no other memory.
 *
 * Return: 1: stored; if the timer is due already its event is delivered all the same, and if it has
 * ended the store has no effect. 0: the timer has ended and its index has a new owner; nothing was
 * stored.
 */
static inline int timerwheel_mapped_touch(__u64 *table, __u32 index, __u64 entry, unsigned int bits)
{
	__u64 old = __atomic_load_n(&table[index], __ATOMIC_RELAXED);

	do {
		/* the entry has the generation of its owner from ADD on */
		if ((old ^ entry) << (64 - bits))
			return 0;
		/* Nothing is stored over what a new owner has there; litmus c11/touch. */
	} while (!__atomic_compare_exchange_n(&table[index], &old, entry, 1, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return 1;
}

/**
 * timerwheel_mapped_store - postpone a timer that is known to exist
 * @table: the mapped deadline table
 * @index: index of the timer
 * @entry: timerwheel_mapped_entry()
 *
 * As timerwheel_mapped_touch(), by a plain store. It must not be called for a timer that was
 * removed, drained or delivered (a program with a single thread can see to that): it would
 * overwrite what the next owner of the index has stored, whose timer would then fire at its
 * previous deadline.
 */
static inline void timerwheel_mapped_store(__u64 *table, __u32 index, __u64 entry)
{
	__atomic_store_n(&table[index], entry, __ATOMIC_RELAXED);
}

/**
 * enum timerwheel_answer - answers of the functions that arm, refresh and cancel resident timers
 *
 * Only after TIMERWHEEL_DONE anything has changed, and memory is ordered: who takes the event of an
 * arming sees what was written before it, and who has cancelled sees what was written before the
 * arming that this has ended.
 */
enum timerwheel_answer {
	/** @TIMERWHEEL_DONE: done. After a cancel no event comes for that arming. */
	TIMERWHEEL_DONE,
	/**
	 * @TIMERWHEEL_TOO_LATE: refresh, cancel: the last arming has fired. Its event comes, has
	 * been taken, or was withdrawn by timerwheel_move(), timerwheel_add() or
	 * timerwheel_drain().
	 */
	TIMERWHEEL_TOO_LATE,
	/**
	 * @TIMERWHEEL_NEEDS_CALL: arm: the timer has fired, is parked, or has a later deadline;
	 * refresh: it has a later deadline. timerwheel_move() arms it in each of these states.
	 */
	TIMERWHEEL_NEEDS_CALL,
	/**
	 * @TIMERWHEEL_NOT_ARMED: refresh, cancel: the last arming was cancelled; or the timer has a
	 * linger (TIMERWHEEL_LINGER), and the event of its last arming was taken
	 */
	TIMERWHEEL_NOT_ARMED,
	/** @TIMERWHEEL_GONE: the timer has ended, and its index may have a new owner */
	TIMERWHEEL_GONE
};

/**
 * timerwheel_mapped_arm - arm a resident timer, whether or not it is armed
 * @table: the mapped deadline table of a wheel with TIMERWHEEL_SETUP_RESIDENT
 * @index: index of the timer, from ADD, GET or LIST
 * @entry: timerwheel_mapped_entry(), for a deadline that is not before that of the last arming,
 *	even if that was cancelled
 * @bits: generation_bits of INFO
 *
 * May be called by any thread of any process that has mapped the table, and by signal handlers.
 *
 * Return: TIMERWHEEL_DONE, TIMERWHEEL_NEEDS_CALL or TIMERWHEEL_GONE.
 */
static inline enum timerwheel_answer timerwheel_mapped_arm(__u64 *table, __u32 index, __u64 entry,
							   unsigned int bits)
{
	__u64 old = __atomic_load_n(&table[index], __ATOMIC_RELAXED);
	__u64 want = entry | TIMERWHEEL_RESIDENT_ARMED, differs;

	do {
		differs = (old ^ want) & ((1ULL << bits) - 1);
		if (differs & ~(__u64)TIMERWHEEL_RESIDENT_ARMED)
			return differs > TIMERWHEEL_RESIDENT_FIRED ? TIMERWHEEL_GONE :
								     TIMERWHEEL_NEEDS_CALL;
		/* The state is in the lowest bits: CANCELLED is less than ARMED. */
		if (want < old)
			return TIMERWHEEL_NEEDS_CALL;
		/*
		 * Release: who takes the event, or cancels, sees what was written before; litmus
		 * c11/resident-publish, c11/resident-cancel. Acquire: what is written from now on
		 * is not seen by who cancelled the last arming; litmus c11/resident-rearm.
		 */
	} while (!__atomic_compare_exchange_n(&table[index], &old, want, 1, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	return TIMERWHEEL_DONE;
}

/**
 * timerwheel_mapped_refresh - postpone a resident timer if it is armed
 * @table: the mapped deadline table of a wheel with TIMERWHEEL_SETUP_RESIDENT
 * @index: index of the timer, from ADD, GET or LIST
 * @entry: timerwheel_mapped_entry(), for a deadline that is not before that of the timer
 * @bits: generation_bits of INFO
 *
 * May be called by any thread of any process that has mapped the table, and by signal handlers.
 *
 * Return: any answer. After TIMERWHEEL_DONE no event comes for the former deadline.
 */
static inline enum timerwheel_answer timerwheel_mapped_refresh(__u64 *table, __u32 index,
							       __u64 entry, unsigned int bits)
{
	__u64 old = __atomic_load_n(&table[index], __ATOMIC_RELAXED);
	__u64 want = entry | TIMERWHEEL_RESIDENT_ARMED, differs;

	do {
		differs = (old ^ want) & ((1ULL << bits) - 1);
		if (differs)
			return differs > TIMERWHEEL_RESIDENT_FIRED ? TIMERWHEEL_GONE :
			       differs & TIMERWHEEL_RESIDENT_ARMED ? TIMERWHEEL_NOT_ARMED :
								     TIMERWHEEL_TOO_LATE;
		if (want < old)
			return TIMERWHEEL_NEEDS_CALL;
		/* As in timerwheel_mapped_arm(); litmus c11/resident-publish. */
	} while (!__atomic_compare_exchange_n(&table[index], &old, want, 1, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	return TIMERWHEEL_DONE;
}

/**
 * timerwheel_mapped_cancel - cancel a resident timer
 * @table: the mapped deadline table of a wheel with TIMERWHEEL_SETUP_RESIDENT
 * @index: index of the timer, from ADD, GET or LIST
 * @generation: generation of the timer, from the same call
 * @bits: generation_bits of INFO
 *
 * May be called by any thread of any process that has mapped the table, and by signal handlers.
 *
 * Return: TIMERWHEEL_DONE, TIMERWHEEL_TOO_LATE, TIMERWHEEL_NOT_ARMED or TIMERWHEEL_GONE.
 */
static inline enum timerwheel_answer timerwheel_mapped_cancel(__u64 *table, __u32 index,
							      __u32 generation, unsigned int bits)
{
	__u64 old = __atomic_load_n(&table[index], __ATOMIC_RELAXED);
	__u64 want = generation | TIMERWHEEL_RESIDENT_ARMED, differs;

	do {
		differs = (old ^ want) & ((1ULL << bits) - 1);
		if (differs)
			return differs > TIMERWHEEL_RESIDENT_FIRED ? TIMERWHEEL_GONE :
			       differs & TIMERWHEEL_RESIDENT_ARMED ? TIMERWHEEL_NOT_ARMED :
								     TIMERWHEEL_TOO_LATE;
		/*
		 * The deadline stays: the timer is still queued for it. Acquire: see above;
		 * litmus c11/resident-cancel. Release: who arms it again does not disturb what was
		 * read before; litmus c11/resident-rearm. Only one ends an arming; litmus
		 * c11/resident-end.
		 */
	} while (!__atomic_compare_exchange_n(&table[index], &old,
					      old - TIMERWHEEL_RESIDENT_ARMED, 1,
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
 * Every process that has the wheel can write to the mapping. So length and size are those of INFO,
 * not those in the mapping, and its head is loaded once in each look. A hostile process can make
 * the reader see wrong events, but not access memory outside of the ring, and not loop.
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
 * @n: out: number of contiguous events; 0: there is none
 *
 * The events stay valid until timerwheel_ring_drop(). Get from one to the next with
 * timerwheel_ring_next(). If this program has set up the wheel, and not for larger events, they are
 * an array. There may be more events at the beginning of the ring's memory: call this again after
 * timerwheel_ring_drop().
 *
 * For one thread at a time. Makes no system call. If there is no event see timerwheel_ring_sleep().
 *
 * Return: the first event.
 */
static inline const struct timerwheel_event *
timerwheel_ring_look(struct timerwheel_mapped_ring *ring, unsigned int *n)
{
	const char *events = (const char *)ring->ring + TIMERWHEEL_RING_EVENTS;
	/* Pairs with the kernel's release: the events are there; litmus c11/ring-publish. */
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
 * @seen: an event, not the last one that timerwheel_ring_look() has found
 *
 * Works also if events are larger than this program knows.
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
 * @n: number of events, at most that of timerwheel_ring_look(). They must not be accessed any more.
 */
static inline void timerwheel_ring_drop(struct timerwheel_mapped_ring *ring, unsigned int n)
{
	ring->head += n;
	/* Pairs with the kernel's acquire: it may overwrite them now; litmus c11/ring-room. */
	__atomic_store_n(&ring->ring->head, ring->head, __ATOMIC_RELEASE);
}

/**
 * timerwheel_ring_take - copy events from the ring and consume them
 * @ring: the mapped event ring
 * @event: out: the events
 * @max: maximum number of events
 *
 * Return: the number of events; 0: there is none.
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
	/** @TIMERWHEEL_RING_FLOW: events wait in the kernel: TIMERWHEEL_IOC_FLOW, then take them */
	TIMERWHEEL_RING_FLOW,
	/** @TIMERWHEEL_RING_POLL: there is no event: sleep in poll() or the like, then take */
	TIMERWHEEL_RING_POLL
};

/**
 * timerwheel_ring_sleep - before sleeping: request a wake-up, and check the ring once more
 * @ring: the event ring, in which timerwheel_ring_look() or timerwheel_ring_take() found no event
 *
 * Return: what to do now.
 */
static inline enum timerwheel_ring_todo
timerwheel_ring_sleep(const struct timerwheel_mapped_ring *ring)
{
	__atomic_store_n(&ring->ring->waiting, 1, __ATOMIC_RELAXED);
	/*
	 * Pairs with the kernel's barrier: either it sees @waiting, or we see its changes; litmus
	 * c11/ring-waiting.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&ring->ring->tail, __ATOMIC_RELAXED) != ring->head)
		return TIMERWHEEL_RING_TAKE;
	if (__atomic_load_n(&ring->ring->flags, __ATOMIC_RELAXED) & TIMERWHEEL_RING_OVERFLOW)
		return TIMERWHEEL_RING_FLOW;
	return TIMERWHEEL_RING_POLL;
}

#endif /* TIMERWHEEL_MAPPED_H */
