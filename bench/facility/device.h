/* SPDX-License-Identifier: GPL-2.0 */
/* The common part of facilities that use /dev/timerwheel. See timerwheel.c. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdnoreturn.h>

#include "../facility.h"

extern int wheel;

noreturn void wheel_wrong(const char *what, __u32 id, int result);
void *wheel_map(size_t size, __u64 offset);

void calls_open(__u32 room, __u64 timeout);
void calls_close(void);
void calls_move(const struct change *c, __u32 n);
void calls_run(__u64 until);

/* Set up the wheel, with an event ring, which mapped_run() takes events from. */
void ring_open(__u32 flags);
void ring_close(void);
void mapped_run(__u64 until);

#endif /* DEVICE_H */
