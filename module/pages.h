/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of pages that are allocated and freed one at a time. See pages.c. */
#ifndef TW_PAGES_H
#define TW_PAGES_H

#include <linux/types.h>

struct page;

void *tw_piece_alloc(size_t size);
void tw_piece_free(const void *p, size_t size);
void *tw_pages_alloc(size_t size);
void tw_pages_free(const void *p, size_t size);
void tw_free_page(void *p);
void tw_free_pause(const struct page *page);

#endif /* TW_PAGES_H */
