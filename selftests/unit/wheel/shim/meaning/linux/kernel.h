/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Same meaning as the kernel's. As in older kernels, both arguments of min() and max() must have
 * the same type: otherwise the compiler warns that pointers differ.
 */
#ifndef SHIM_KERNEL_H
#define SHIM_KERNEL_H

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/types.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define min(a, b)				\
({						\
	__typeof__(a) _min_a = (a);		\
	__typeof__(b) _min_b = (b);		\
						\
	(void)(&_min_a == &_min_b);		\
	_min_a < _min_b ? _min_a : _min_b;	\
})

#define max(a, b)				\
({						\
	__typeof__(a) _max_a = (a);		\
	__typeof__(b) _max_b = (b);		\
						\
	(void)(&_max_a == &_max_b);		\
	_max_a > _max_b ? _max_a : _max_b;	\
})

#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))

#endif /* SHIM_KERNEL_H */
