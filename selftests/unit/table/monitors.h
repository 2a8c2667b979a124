/* SPDX-License-Identifier: GPL-2.0 */
/* Monitors of a file: has each what was delivered since it came, or is told what it missed? */
#ifndef MONITORS_H
#define MONITORS_H

#include <linux/timerwheel.h>

#include "internal.h"
#include "source.h"

/* There are to be at most @most of them, at random. Refused memory is no fault if @refused. */
void monitors_init(struct tw_file *file, struct source *source, unsigned int most, bool refused);

/* An event was delivered. */
void monitors_event(const struct timerwheel_event *event);

/*
 * One comes, goes or reads, at random. @meanwhile: called while the log grows; it may do anything
 * but call this, and monitors_read() instead. Returns events read.
 */
u64 monitors_one(void (*meanwhile)(void));

/* One reads. Returns events read. */
u64 monitors_read(void);

/* What is charged for the log. */
u32 monitors_charged(void);

/* The wheel is closed: all read what is left, and have an end. */
void monitors_end(void);

#endif /* MONITORS_H */
