/* SPDX-License-Identifier: GPL-2.0-only */
/* Delivery of events into the event ring. See flow.c. */
#ifndef TW_FLOW_H
#define TW_FLOW_H

#include <linux/types.h>

struct tw_due_list;
struct tw_ctx;
struct tw_file;

void tw_flow_expire(struct tw_ctx *ctx, const struct tw_due_list *due);
void tw_flow_after_batch(struct tw_file *file, unsigned int n);
long tw_flow_ioctl(struct tw_file *file);
bool tw_flow_clock_set(struct tw_file *file);

#endif /* TW_FLOW_H */
