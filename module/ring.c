// SPDX-License-Identifier: GPL-2.0-only
/*
 * The event ring: memory that user space maps and to which the kernel writes events. flow.c decides
 * which events are written, and when; this file handles the shared memory.
 *
 * User space may write any value to any place in this memory at any time. Therefore the kernel does
 * not read its own values back: it uses private copies of the tail and the length. It reads only
 * two words that user space writes, with one load per use: the head, as a distance to the tail that
 * is checked against the length, and @waiting, which is compared with 0.
 *
 * Barriers, each with its pair in user space (struct timerwheel_ring in the uapi header):
 *
 *   tw_ring_publish(): events, then the tail (release)
 *	the reader loads the tail (acquire), then events
 *   tw_ring_room(): the head (acquire), then new events in the place of old ones
 *	the reader copies events, then stores the head (release)
 *   tw_ring_reader_sleeps(): tail and flags, full barrier, then @waiting
 *	the reader stores @waiting, full barrier, then loads tail and flags: at least one side sees
 *	the other's store, so no wake-up is lost
 */
#include <linux/compiler.h>
#include <linux/kmsan-checks.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/timerwheel.h>
#include <linux/vmalloc.h>

#include "internal.h"
#include "memory.h"
#include "pages.h"
#include "ring.h"

static_assert(sizeof(struct timerwheel_ring) == TIMERWHEEL_RING_EVENTS);
static_assert(!(TIMERWHEEL_RING_MAX & (TIMERWHEEL_RING_MAX - 1)));

static size_t tw_ring_size(u32 events)
{
	return PAGE_ALIGN(TIMERWHEEL_RING_EVENTS +
			  (size_t)events * sizeof(struct timerwheel_event));
}

/**
 * tw_ring_init - initialize a ring
 * @ring: zeroed
 */
void tw_ring_init(struct tw_ring *ring)
{
	raw_spin_lock_init(&ring->lock);
}

/**
 * tw_ring_alloc - allocate the memory of a ring
 * @ring: the ring, initialized. @ring->events stays 0; the caller sets it last, to publish the
 *	ring.
 * @events: length, a power of two, at most TIMERWHEEL_RING_MAX
 * @offset: added to all times in the ring
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int tw_ring_alloc(struct tw_ring *ring, u32 events, u64 offset)
{
	struct timerwheel_ring *shared;

	shared = tw_pages_alloc(tw_ring_size(events));
	if (!shared)
		return -ENOMEM;
	shared->mask = events - 1;
	shared->event_size = sizeof(struct timerwheel_event);
	ring->shared = shared;
	ring->event = (void *)shared + TIMERWHEEL_RING_EVENTS;
	ring->offset = offset;
	return 0;
}

/**
 * tw_ring_free - free the memory of a ring, if any
 * @ring: the ring, which is not mapped
 * @events: its length
 *
 * Context: process, may sleep.
 */
void tw_ring_free(struct tw_ring *ring, u32 events)
{
	if (ring->shared)
		tw_pages_free(ring->shared, tw_ring_size(events));
	ring->shared = NULL;
}

/**
 * tw_ring_used - number of events that the reader has not taken yet
 * @ring: the ring
 *
 * Return: the number. It is greater than the length if the reader has stored an invalid head.
 */
u32 tw_ring_used(const struct tw_ring *ring)
{
	/* Pairs with the reader's release: it has copied events up to it; litmus ring-room. */
	return READ_ONCE(ring->tail) - smp_load_acquire(&ring->shared->head);
}

/**
 * tw_ring_room - number of free entries
 * @ring: the ring, locked
 *
 * Return: the number; 0 if the reader has stored an invalid head.
 */
u32 tw_ring_room(const struct tw_ring *ring)
{
	u32 used = tw_ring_used(ring);

	return used <= ring->events ? ring->events - used : 0;
}

/**
 * tw_ring_publish - make new events visible to the reader
 * @ring: the ring, locked
 * @n: number of events written to its entries from @ring->tail on
 * @overflow: events wait for room
 */
void tw_ring_publish(struct tw_ring *ring, unsigned int n, bool overflow)
{
	unsigned int i;

	/* As in tw_map_fault(). Without KMSAN the compiler removes the loop. */
	for (i = 0; i < n; i++)
		kmsan_check_memory(tw_ring_entry(ring, ring->tail + i),
				   sizeof(struct timerwheel_event));
	WRITE_ONCE(ring->tail, ring->tail + n);
	WRITE_ONCE(ring->shared->flags, overflow ? TIMERWHEEL_RING_OVERFLOW : 0);
	/* Pairs with the reader's acquire: the events are there; litmus ring-publish. */
	smp_store_release(&ring->shared->tail, ring->tail);
}

/**
 * tw_ring_reader_sleeps - is the reader asleep, or about to sleep?
 * @ring: the ring
 *
 * Only the reader clears @waiting. If the kernel cleared it, it could overwrite the value that the
 * reader has stored for its next sleep after taking the event of this wake-up.
 *
 * Return: true if it must be woken.
 */
bool tw_ring_reader_sleeps(const struct tw_ring *ring)
{
	/*
	 * Pairs with the reader's barrier between its store to @waiting and its last check;
	 * litmus ring-waiting.
	 */
	smp_mb();
	return READ_ONCE(ring->shared->waiting);
}

/**
 * tw_ring_pages - length of the mapping
 * @ring: the ring
 *
 * Return: number of pages; 0 if there is no ring.
 */
unsigned long tw_ring_pages(const struct tw_ring *ring)
{
	return ring->events ? tw_ring_size(ring->events) >> PAGE_SHIFT : 0;
}

/**
 * tw_ring_page - find a page of the mapping
 * @ring: the ring
 * @nr: number of the page, from a program
 *
 * Return: the page; NULL beyond the end.
 */
struct page *tw_ring_page(const struct tw_ring *ring, unsigned long nr)
{
	unsigned long pages = tw_ring_pages(ring);

	if (nr >= pages)
		return NULL;
	nr = array_index_nospec(nr, pages);
	return vmalloc_to_page((void *)ring->shared + (nr << PAGE_SHIFT));
}

/**
 * tw_ring_memory - memory that a ring takes
 * @events: length of the ring
 *
 * Return: bytes.
 */
size_t tw_ring_memory(u32 events)
{
	return tw_pages_size(tw_ring_size(events));
}
