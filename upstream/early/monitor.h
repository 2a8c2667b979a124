/* SPDX-License-Identifier: GPL-2.0-only */
/* Monitors: added by a later patch. */
#ifndef TW_MONITOR_H
#define TW_MONITOR_H

#include <linux/errno.h>

struct timerwheel_monitor;
struct tw_file;

static inline int tw_monitor_init(void)
{
	return 0;
}

static inline void tw_monitor_exit(void)
{
}

static inline void tw_monitor_wake(struct tw_file *file)
{
}

static inline long tw_monitor_open(struct tw_file *file, const struct timerwheel_monitor *arg)
{
	return -ENOTTY;
}

#endif /* TW_MONITOR_H */
