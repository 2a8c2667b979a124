/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Same meaning as the kernel's: real prefetches, so that --time shows what they are worth. In
 * assembly, since gcc leaves __builtin_prefetch() out where SSE is off.
 */
#ifndef SHIM_PREFETCH_H
#define SHIM_PREFETCH_H

#ifdef __x86_64__

static inline void prefetch(const void *x)
{
	__asm__ volatile("prefetcht0 %0" : : "m" (*(const char *)x));
}

static inline void prefetchw(const void *x)
{
	__asm__ volatile("prefetchw %0" : : "m" (*(const char *)x));
}

#else

#define prefetch(x)	__builtin_prefetch(x)
#define prefetchw(x)	__builtin_prefetch(x, 1)

#endif

#endif /* SHIM_PREFETCH_H */
