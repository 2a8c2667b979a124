/* SPDX-License-Identifier: GPL-2.0 */
/* Same meaning as the kernel's, on u64. */
#ifndef SHIM_ATOMIC_H
#define SHIM_ATOMIC_H

/* The kernel has these by way of other headers. */
#include <errno.h>

#define xchg(p, v)		__atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#define try_cmpxchg(p, old, new)	\
	__atomic_compare_exchange_n(p, old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

#ifndef smp_store_release
/* There is one thread. */
#define smp_store_release(p, v)	WRITE_ONCE(*(p), v)
#endif

#endif /* SHIM_ATOMIC_H */
