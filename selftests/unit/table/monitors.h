/* SPDX-License-Identifier: GPL-2.0 */
/* Monitors of a file: each reads all that was delivered since it was attached, or a count of it. */
#ifndef MONITORS_H
#define MONITORS_H

#include <linux/timerwheel.h>

#include "internal.h"
#include "source.h"

/* At most @most monitors exist at a time. If @refused, allocations may fail. */
void monitors_init(struct tw_file *file, struct source *source, unsigned int most, bool refused);

/* An event was delivered. */
void monitors_event(const struct timerwheel_event *event);

/*
 * A random monitor is attached or detached, or reads. @meanwhile is called while the log grows; it
 * may call monitors_read(), but not this function. Returns the number of events read.
 */
u64 monitors_one(void (*meanwhile)(void));

/* A random monitor reads. Returns the number of events read. */
u64 monitors_read(void);

/* The length of the log that is charged, in events */
u32 monitors_charged(void);

/* Close the wheel: all monitors read what is left, and then end of file. */
void monitors_end(void);

#endif /* MONITORS_H */
