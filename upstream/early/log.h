/* SPDX-License-Identifier: GPL-2.0-only */
/* A wheel's log, for its monitors: added by a later patch. */
#ifndef TW_LOG_H
#define TW_LOG_H

#include <linux/spinlock.h>
#include <linux/timerwheel.h>
#include <linux/types.h>

#include "internal.h"

/**
 * struct tw_log - a wheel's log
 * @lock: a leaf
 */
struct tw_log {
	raw_spinlock_t lock;	/* a leaf */
};

static inline struct tw_log *tw_log_active(const struct tw_file *file)
{
	return NULL;
}

static inline void tw_log_write(struct tw_log *log, const struct timerwheel_event *event)
{
}

static inline void tw_log_put(struct tw_log *log)
{
}

static inline void tw_log_close(struct tw_log *log)
{
}

static inline size_t tw_log_memory(const struct tw_file *file)
{
	return 0;
}

#endif /* TW_LOG_H */
