/* SPDX-License-Identifier: GPL-2.0 */
/* See native.c. */
#ifndef NATIVE_H
#define NATIVE_H

#include <stdbool.h>
#include <linux/types.h>

/* The largest number of timers */
extern __u32 native_timers;
/* The row "expire" is measured. */
extern bool expiring;

#endif /* NATIVE_H */
