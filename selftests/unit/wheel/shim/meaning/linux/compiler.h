/* SPDX-License-Identifier: GPL-2.0 */
/* Same meaning as the kernel's. */
#ifndef SHIM_COMPILER_H
#define SHIM_COMPILER_H

/* __always_inline */
#include <sys/cdefs.h>

#define noinline	__attribute__((__noinline__))

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))

#endif /* SHIM_COMPILER_H */
