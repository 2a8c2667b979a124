/* SPDX-License-Identifier: GPL-2.0-only */
/* The event ring: added by a later patch. */
#ifndef TW_RING_H
#define TW_RING_H

#include <linux/errno.h>
#include <linux/types.h>

#include "internal.h"

static inline void tw_ring_init(struct tw_ring *ring)
{
}

static inline int tw_ring_alloc(struct tw_ring *ring, u32 events, u64 offset)
{
	return -EINVAL;
}

static inline void tw_ring_free(struct tw_ring *ring, u32 events)
{
}

static inline u32 tw_ring_used(const struct tw_ring *ring)
{
	return 0;
}

static inline bool tw_ring_reader_sleeps(const struct tw_ring *ring)
{
	return false;
}

static inline size_t tw_ring_memory(u32 events)
{
	return 0;
}

#endif /* TW_RING_H */
