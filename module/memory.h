/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that the kernel holds for users: allocation, and charges to a file. See memory.c. */
#ifndef TW_MEMORY_H
#define TW_MEMORY_H

#include <linux/gfp.h>
#include <linux/types.h>

struct tw_file;

/* In a cgroup at its limit, allocations fail without starting the OOM killer. */
#define TW_GFP	(GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_RETRY_MAYFAIL)

size_t tw_alloc_size(size_t size);
size_t tw_pages_size(size_t size);
void *tw_alloc(size_t size);
void tw_free(const void *p, size_t size);
int tw_charge(struct tw_file *file, size_t bytes);
void tw_uncharge(struct tw_file *file, size_t bytes);

#endif /* TW_MEMORY_H */
