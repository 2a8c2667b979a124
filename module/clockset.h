/* SPDX-License-Identifier: GPL-2.0-only */
/* Files that report when CLOCK_REALTIME is set. See clockset.c. */
#ifndef TW_CLOCKSET_H
#define TW_CLOCKSET_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "internal.h"

/**
 * tw_clockset_enabled - does a file report when CLOCK_REALTIME is set?
 * @file: the file
 *
 * Return: true if so.
 */
static inline bool tw_clockset_enabled(const struct tw_file *file)
{
	/* Pairs with the release in tw_clockset_join(); litmus publish: the offset is set. */
	return smp_load_acquire(&file->clockset.enabled);
}

void tw_clockset_join(struct tw_file *file);
void tw_clockset_leave(struct tw_file *file);
bool tw_clockset_changed(const struct tw_file *file);
void tw_clockset_check(struct tw_file *file);
void tw_clockset_exit(void);

#endif /* TW_CLOCKSET_H */
