/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What a program does with memory that it shares with a wheel. */
#ifndef TIMERWHEEL_MAPPED_H
#define TIMERWHEEL_MAPPED_H

#include <linux/timerwheel.h>

/**
 * timerwheel_mapped_entry - what to store in the deadline table
 * @deadline: when, absolute, in ns, at most TIMERWHEEL_TIME_MAX
 * @generation: of the timer, as ADD, GET or LIST told it
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
 * timerwheel_mapped_touch - put a timer off
 * @table: the deadline table, as mapped
 * @index: of the timer, as ADD, GET or LIST told it
 * @entry: timerwheel_mapped_entry(); many timers with the same deadline share all of it but the
 *	generation
 * @bits: generation_bits of INFO
 *
 * A compare-and-swap: from any thread and any process that has the table mapped, and from signal
 * handlers. It need not be ordered against anything: the kernel reads nothing else because of it.
 * What others store for a timer that is gone, and whose index is another one's now, does no harm.
 *
 * Return: 1: it is there, though an event that was on its way already comes all the same; 0: the
 * timer is gone, and its index has another owner: nothing was stored.
 */
static inline int timerwheel_mapped_touch(__u64 *table, __u32 index, __u64 entry, unsigned int bits)
{
	__u64 old = __atomic_load_n(&table[index], __ATOMIC_RELAXED);

	do {
		/* Its generation is there from ADD on. */
		if ((old ^ entry) << (64 - bits))
			return 0;
	} while (!__atomic_compare_exchange_n(&table[index], &old, entry, 1, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return 1;
}

/**
 * timerwheel_mapped_store - put a timer off, which is known not to be gone
 * @table: the deadline table, as mapped
 * @index: of the timer
 * @entry: timerwheel_mapped_entry()
 *
 * As timerwheel_mapped_touch(), by one plain store. Only for those who never store for a timer that
 * was removed, drained or delivered (as a program with one thread that forgets index and generation
 * then): it would undo what the next owner of the index has stored, whose timer then fires at the
 * deadline that it had before.
 */
static inline void timerwheel_mapped_store(__u64 *table, __u32 index, __u64 entry)
{
	__atomic_store_n(&table[index], entry, __ATOMIC_RELAXED);
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
 * timerwheel_ring_look - look at events in the ring
 * @ring: the event ring
 * @n: is set to how many there are in a row, 0: there is none
 *
 * They are read where they are, without a copy, and stay there until timerwheel_ring_drop(). From
 * one to the next it is timerwheel_ring_next(), or, where this program has set the wheel up and
 * asked for no larger ones, they are an array. There may be more behind the end of the memory, at
 * its beginning: look again after that.
 *
 * For one thread at a time. Makes no system call: for what to do when there is nothing see
 * timerwheel_ring_sleep().
 *
 * Return: the first of them.
 */
static inline const struct timerwheel_event *
timerwheel_ring_look(struct timerwheel_mapped_ring *ring, unsigned int *n)
{
	const char *events = (const char *)ring->ring + TIMERWHEEL_RING_EVENTS;
	/* Pairs with the kernel's release: what it counts is there. */
	__u32 tail = __atomic_load_n(&ring->ring->tail, __ATOMIC_ACQUIRE), place, to_end;

	ring->head = __atomic_load_n(&ring->ring->head, __ATOMIC_RELAXED);
	place = ring->head & (ring->events - 1);
	to_end = ring->events - place;
	/* Awake: no need for wake-ups now. */
	if (__atomic_load_n(&ring->ring->waiting, __ATOMIC_RELAXED))
		__atomic_store_n(&ring->ring->waiting, 0, __ATOMIC_RELAXED);
	*n = tail - ring->head < to_end ? tail - ring->head : to_end;
	return (const struct timerwheel_event *)(events + (__u64)place * ring->event_size);
}

/**
 * timerwheel_ring_next - the event behind another one
 * @ring: the event ring
 * @seen: that one, not the last that timerwheel_ring_look() has found
 *
 * Return: the next one, be they larger than this program knows or not.
 */
static inline const struct timerwheel_event *
timerwheel_ring_next(const struct timerwheel_mapped_ring *ring, const void *seen)
{
	return (const struct timerwheel_event *)((const char *)seen + ring->event_size);
}

/**
 * timerwheel_ring_drop - give the room of events back
 * @ring: the event ring
 * @n: how many, at most what timerwheel_ring_look() said: they are not looked at any more
 */
static inline void timerwheel_ring_drop(struct timerwheel_mapped_ring *ring, unsigned int n)
{
	ring->head += n;
	/* Pairs with the kernel's acquire: it may write over what was looked at. */
	__atomic_store_n(&ring->ring->head, ring->head, __ATOMIC_RELEASE);
}

/**
 * timerwheel_ring_take - take events from the ring
 * @ring: the event ring
 * @event: where to copy them
 * @max: how many at most
 *
 * As timerwheel_ring_look() and timerwheel_ring_drop() for those who want to keep them.
 *
 * Return: how many; 0: none is there.
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

/** enum timerwheel_ring_todo - what to do when there is no event */
enum timerwheel_ring_todo {
	/** @TIMERWHEEL_RING_TAKE: an event came meanwhile: take it */
	TIMERWHEEL_RING_TAKE,
	/** @TIMERWHEEL_RING_FLOW: more wait in the kernel: TIMERWHEEL_IOC_FLOW, then take */
	TIMERWHEEL_RING_FLOW,
	/** @TIMERWHEEL_RING_POLL: there is none: sleep in poll() or the like, then take */
	TIMERWHEEL_RING_POLL
};

/**
 * timerwheel_ring_sleep - before going to sleep: ask to be woken, and look once more
 * @ring: the event ring; timerwheel_ring_look() or timerwheel_ring_take() has just found nothing
 *
 * Return: what to do now.
 */
static inline enum timerwheel_ring_todo
timerwheel_ring_sleep(const struct timerwheel_mapped_ring *ring)
{
	__atomic_store_n(&ring->ring->waiting, 1, __ATOMIC_RELAXED);
	/* Pairs with the kernel's: either it sees that we wait, or we see what it has done. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&ring->ring->tail, __ATOMIC_RELAXED) != ring->head)
		return TIMERWHEEL_RING_TAKE;
	if (__atomic_load_n(&ring->ring->flags, __ATOMIC_RELAXED) & TIMERWHEEL_RING_OVERFLOW)
		return TIMERWHEEL_RING_FLOW;
	return TIMERWHEEL_RING_POLL;
}

#endif /* TIMERWHEEL_MAPPED_H */
