/* SPDX-License-Identifier: GPL-2.0-only */
/* Delivery of events into the event ring: added by a later patch. */
#ifndef TW_FLOW_H
#define TW_FLOW_H

#include <linux/errno.h>
#include <linux/types.h>

struct tw_due_list;
struct tw_ctx;
struct tw_file;

static inline void tw_flow_expire(struct tw_ctx *ctx, const struct tw_due_list *due)
{
}

static inline void tw_flow_after_batch(struct tw_file *file, unsigned int n)
{
}

static inline long tw_flow_ioctl(struct tw_file *file)
{
	return -ENOTTY;
}

static inline bool tw_flow_clock_set(struct tw_file *file)
{
	return false;
}

#endif /* TW_FLOW_H */
