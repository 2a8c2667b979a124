/* SPDX-License-Identifier: GPL-2.0-only */
/* The due list, and delivery of events to readers. See events.c. */
#ifndef TW_EVENTS_H
#define TW_EVENTS_H

#include <linux/types.h>

struct iov_iter;
struct tw_due_list;
struct tw_cpu;
struct tw_ctx;
struct tw_events;
struct tw_file;
struct tw_timer;

void tw_events_init(struct tw_events *events);
bool tw_events_add(struct tw_cpu *cpu, const struct tw_due_list *due, u64 now);
void tw_events_lock(struct tw_file *file);
void tw_events_unlink(struct tw_ctx *ctx, struct tw_timer *t);
void tw_events_unlock(struct tw_file *file);
bool tw_events_wake_timeout(struct tw_cpu *cpu);
void tw_events_wake(struct tw_file *file);
bool tw_events_any(const struct tw_file *file);
ssize_t tw_events_read(struct tw_file *file, struct iov_iter *to, bool nowait);

#endif /* TW_EVENTS_H */
