/* SPDX-License-Identifier: GPL-2.0 */
/* Stub: instead of prefetching, read, so that sanitizers check the address. */
#ifndef SHIM_PREFETCH_H
#define SHIM_PREFETCH_H

#define prefetch(x)	((void)*(const volatile char *)(x))
#define prefetchw(x)	prefetch(x)

#endif /* SHIM_PREFETCH_H */
