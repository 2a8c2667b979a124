/* SPDX-License-Identifier: GPL-2.0 */
/* Same meaning as the kernel's. The Makefile may define PAGE_SHIFT. */
#ifndef SHIM_PAGE_H
#define SHIM_PAGE_H

#ifndef PAGE_SHIFT
#define PAGE_SHIFT	12
#endif
#define PAGE_SIZE	(4096UL << (PAGE_SHIFT - 12))

#endif /* SHIM_PAGE_H */
