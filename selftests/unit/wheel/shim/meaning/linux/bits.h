/* SPDX-License-Identifier: GPL-2.0 */
/* Same meaning as the kernel's. */
#ifndef SHIM_BITS_H
#define SHIM_BITS_H

#define BITS_PER_LONG		(8 * (unsigned int)sizeof(long))
#define BIT(nr)			(1UL << (nr))
#define BIT_ULL(nr)		(1ULL << (nr))
#define BIT_MASK(nr)		(1UL << ((nr) % BITS_PER_LONG))
#define BIT_WORD(nr)		((nr) / BITS_PER_LONG)

#endif /* SHIM_BITS_H */
