/* SPDX-License-Identifier: GPL-2.0 */
/* Same meaning as the kernel's. */
#ifndef SHIM_PAGE_H
#define SHIM_PAGE_H

#define PAGE_SIZE	4096UL

#endif /* SHIM_PAGE_H */
