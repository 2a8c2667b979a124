/* SPDX-License-Identifier: GPL-2.0-only */
/* The event ring, which user space maps and reads without system calls. See ring.c. */
#ifndef TW_RING_H
#define TW_RING_H

#include <linux/timerwheel.h>
#include <linux/types.h>

#include "internal.h"

struct page;

/**
 * tw_ring_entry - entry for an event
 * @ring: the ring, locked
 * @place: number of the event; @ring->tail is the next event to publish
 *
 * Return: the entry. The caller has checked that there is room for it.
 */
static inline struct timerwheel_event *tw_ring_entry(const struct tw_ring *ring, u32 place)
{
	return &ring->event[place & (ring->events - 1)];
}

void tw_ring_init(struct tw_ring *ring);
int tw_ring_alloc(struct tw_ring *ring, u32 events, u64 offset);
void tw_ring_free(struct tw_ring *ring, u32 events);
u32 tw_ring_used(const struct tw_ring *ring);
u32 tw_ring_room(const struct tw_ring *ring);
void tw_ring_publish(struct tw_ring *ring, unsigned int n, bool overflow);
bool tw_ring_reader_sleeps(const struct tw_ring *ring);
unsigned long tw_ring_pages(const struct tw_ring *ring);
struct page *tw_ring_page(const struct tw_ring *ring, unsigned long nr);
size_t tw_ring_memory(u32 events);

#endif /* TW_RING_H */
