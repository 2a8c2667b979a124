/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of pages that are allocated and freed one at a time. See pages.c. */
#ifndef TW_PAGES_H
#define TW_PAGES_H

#include <linux/gfp.h>
#include <linux/types.h>

struct page;

/**
 * struct tw_zone - the zone that memory comes from
 * @nid: the node
 * @gfp: the flags that select the zone
 */
struct tw_zone {
	int nid;
	gfp_t gfp;
};

void *tw_piece_alloc(size_t size);
void tw_piece_free(const void *p, size_t size);
void *tw_pages_alloc(size_t size);
void tw_pages_free(const void *p, size_t size);
void tw_free_page(void *p);
struct tw_zone tw_zone_of(const struct page *page);
void tw_free_pause(struct tw_zone zone);

#endif /* TW_PAGES_H */
