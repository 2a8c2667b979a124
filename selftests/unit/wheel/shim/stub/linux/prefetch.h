/* SPDX-License-Identifier: GPL-2.0 */
/* Stub: nothing is prefetched, but the address must be one that may be read. */
#ifndef SHIM_PREFETCH_H
#define SHIM_PREFETCH_H

#define prefetch(x)	((void)*(const volatile char *)(x))
#define prefetchw(x)	prefetch(x)

#endif /* SHIM_PREFETCH_H */
