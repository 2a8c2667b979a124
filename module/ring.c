// SPDX-License-Identifier: GPL-2.0-only
/*
 * The event ring: memory that user space maps and the kernel writes events to. Which events and
 * when is events.c's business; here is only what is shared.
 *
 * User space may write anything anywhere in it at any time. So the kernel never reads what it has
 * written there itself (the tail, the length: its own copies count), and of what user space
 * writes it reads two words, each once per use: the head, of which only the distance to the tail
 * matters and that only as far as it makes sense, and @waiting, of which only whether it is 0.
 *
 * Barriers, each with its pair in user space (struct timerwheel_ring in the uapi header):
 *
 *   tw_ring_publish(): events, then the tail (release)
 *	the reader loads the tail (acquire), then events
 *   tw_ring_room(): the head (acquire), then new events in the place of old ones
 *	the reader copies events, then stores the head (release)
 *   tw_ring_reader_sleeps(): tail and flags, full barrier, then @waiting
 *	the reader stores @waiting, full barrier, then loads tail and flags: one of both sees the
 *	other's store, so no wake-up is lost
 */
#include <linux/compiler.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/timerwheel.h>
#include <linux/vmalloc.h>

#include "internal.h"
#include "memory.h"
#include "ring.h"

static_assert(sizeof(struct timerwheel_ring) == TIMERWHEEL_RING_EVENTS);
static_assert(!(TIMERWHEEL_RING_MAX & (TIMERWHEEL_RING_MAX - 1)));

static size_t tw_ring_size(u32 events)
{
	return PAGE_ALIGN(TIMERWHEEL_RING_EVENTS +
			  (size_t)events * sizeof(struct timerwheel_event));
}

/**
 * tw_ring_init - prepare
 * @ring: zeroed
 */
void tw_ring_init(struct tw_ring *ring)
{
	raw_spin_lock_init(&ring->lock);
}

/**
 * tw_ring_alloc - make a ring
 * @ring: as tw_ring_init() left it. @ring->events stays 0, for the caller to set once all is ready.
 * @events: its length, a power of two, at most TIMERWHEEL_RING_MAX
 * @offset: what is added to times in it
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int tw_ring_alloc(struct tw_ring *ring, u32 events, u64 offset)
{
	struct timerwheel_ring *shared;

	shared = __vmalloc(tw_ring_size(events), TW_GFP | __GFP_ZERO);
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
 * tw_ring_free - free what tw_ring_alloc() made, if anything
 * @ring: the ring; nobody maps it any more
 *
 * Context: process, may sleep.
 */
void tw_ring_free(struct tw_ring *ring)
{
	vfree(ring->shared);
}

/**
 * tw_ring_used - how many events the reader has not taken yet
 * @ring: the ring
 *
 * Return: the number; more than its length: the reader has written nonsense.
 */
u32 tw_ring_used(const struct tw_ring *ring)
{
	/* Pairs with the reader's release: it has copied what it lets us write over. */
	return READ_ONCE(ring->tail) - smp_load_acquire(&ring->shared->head);
}

/**
 * tw_ring_room - how many events there is room for
 * @ring: the ring, locked
 *
 * Return: the number. If the reader wrote nonsense there is none.
 */
u32 tw_ring_room(const struct tw_ring *ring)
{
	u32 used = tw_ring_used(ring);

	return used <= ring->events ? ring->events - used : 0;
}

/**
 * tw_ring_publish - let the reader see what was written
 * @ring: the ring, locked
 * @n: how many events were: in its slots from @ring->tail on
 * @overflow: timers are due that there was no room for
 */
void tw_ring_publish(struct tw_ring *ring, unsigned int n, bool overflow)
{
	WRITE_ONCE(ring->tail, ring->tail + n);
	WRITE_ONCE(ring->shared->flags, overflow ? TIMERWHEEL_RING_OVERFLOW : 0);
	/* Pairs with the reader's acquire: the events are there. */
	smp_store_release(&ring->shared->tail, ring->tail);
}

/**
 * tw_ring_reader_sleeps - does the reader sleep, or is it about to?
 * @ring: the ring
 *
 * @waiting is the reader's to clear: were it done here, that could undo what it has stored for
 * its next sleep, when it has taken our event meanwhile.
 *
 * Return: true if it is to be woken.
 */
bool tw_ring_reader_sleeps(const struct tw_ring *ring)
{
	/* Pairs with the reader's between its store to @waiting and its last look. */
	smp_mb();
	return READ_ONCE(ring->shared->waiting);
}

/**
 * tw_ring_pages - how many pages it is long
 * @ring: the ring
 *
 * Return: the number, 0: there is no ring.
 */
unsigned long tw_ring_pages(const struct tw_ring *ring)
{
	return ring->events ? tw_ring_size(ring->events) >> PAGE_SHIFT : 0;
}

/**
 * tw_ring_page - a page of it
 * @ring: the ring
 * @nr: its number
 *
 * Return: the page; NULL: there is none.
 */
struct page *tw_ring_page(const struct tw_ring *ring, unsigned long nr)
{
	if (nr >= tw_ring_pages(ring))
		return NULL;
	return vmalloc_to_page((void *)ring->shared + (nr << PAGE_SHIFT));
}

/**
 * tw_ring_memory - how much memory a ring takes
 * @events: its length
 *
 * Return: bytes.
 */
size_t tw_ring_memory(u32 events)
{
	return tw_vmalloc_size(tw_ring_size(events));
}
