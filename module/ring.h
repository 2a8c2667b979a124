/* SPDX-License-Identifier: GPL-2.0-only */
/* The event ring: due timers to user space without a call. See ring.c. */
#ifndef TW_RING_H
#define TW_RING_H

#include <linux/types.h>

struct page;
struct timerwheel_event;
struct timerwheel_ring;
struct tw_ring;

int tw_ring_make(struct tw_ring *ring, u32 events, u64 offset);
void tw_ring_free(struct tw_ring *ring);
u32 tw_ring_used(const struct tw_ring *ring);
u32 tw_ring_room(const struct tw_ring *ring);
void tw_ring_write(struct tw_ring *ring, const struct timerwheel_event *event, unsigned int n);
void tw_ring_publish(struct tw_ring *ring, bool overflow);
bool tw_ring_wanted(const struct tw_ring *ring);
unsigned long tw_ring_pages(const struct tw_ring *ring);
struct page *tw_ring_page(const struct tw_ring *ring, unsigned long nr);
size_t tw_ring_memory(const struct tw_ring *ring);

#endif /* TW_RING_H */
