/* SPDX-License-Identifier: GPL-2.0 */
/* Same meaning as the kernel's, on top of the C library's. */
#ifndef SHIM_TYPES_H
#define SHIM_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include_next <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#define U32_MAX	((u32)~0U)
#define U64_MAX	((u64)~0ULL)

#endif /* SHIM_TYPES_H */
