/* SPDX-License-Identifier: GPL-2.0 */
/* Same meaning as the kernel's, on u64. */
#ifndef SHIM_ATOMIC_H
#define SHIM_ATOMIC_H

/* The kernel has these by way of other headers. */
#include <errno.h>

#ifdef SHIM_SWAP
/* The test's: it may write to the place first, as a program on another CPU. */
void SHIM_SWAP(unsigned long long *place);
#else
#define SHIM_SWAP(p)		do { } while (0)
#endif

#define xchg(p, v)		__atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#define try_cmpxchg(p, old, new) ({								\
	SHIM_SWAP(p);										\
	__atomic_compare_exchange_n(p, old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);	\
})

#ifndef smp_store_release
/* There is one thread. */
#define smp_store_release(p, v)	WRITE_ONCE(*(p), v)
#endif

#endif /* SHIM_ATOMIC_H */
