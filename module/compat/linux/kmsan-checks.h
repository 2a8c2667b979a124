/* SPDX-License-Identifier: GPL-2.0-only */
/* linux/kmsan-checks.h: changed in 6.1 (was not there, nor was KMSAN). Not backported. */
#ifndef TW_COMPAT_KMSAN_CHECKS_H
#define TW_COMPAT_KMSAN_CHECKS_H

#include <linux/types.h>

static inline void kmsan_check_memory(const void *address, size_t size)
{
}

#endif /* TW_COMPAT_KMSAN_CHECKS_H */
