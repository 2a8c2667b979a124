// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of pages that are allocated and freed one at a time, so that other tasks can run in
 * between, however much it is.
 *
 * vmalloc() and vfree() do not offer that. The page allocator collects freed pages for each zone
 * and CPU and gives them back in batches. The batches double as long as nothing is allocated from
 * that zone, up to thousands of pages: a millisecond or more in which nothing is scheduled. And
 * after such a batch some kernels give back all that they have collected at the next free of more
 * than one page. An allocation halves the batch. So after each page one is allocated from its zone
 * and freed again.
 */
#include <linux/gfp.h>
#include <linux/kmemleak.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "memory.h"
#include "pages.h"

/* The flags that select the zone of a page. */
static gfp_t tw_zone(const struct page *page)
{
#ifdef CONFIG_ZONE_DMA
	if (page_zonenum(page) == ZONE_DMA)
		return __GFP_DMA;
#endif
#ifdef CONFIG_ZONE_DMA32
	if (page_zonenum(page) == ZONE_DMA32)
		return __GFP_DMA32;
#endif
	return 0;
}

/**
 * tw_free_pause - let other tasks run after memory was freed, and more may be
 * @page: the page that it was, or was in
 *
 * Context: process, may sleep.
 */
void tw_free_pause(const struct page *page)
{
	struct page *other = alloc_pages_node(page_to_nid(page), tw_zone(page) | __GFP_THISNODE |
					      GFP_NOWAIT | __GFP_NOWARN, 0);

	if (other)
		__free_page(other);
	cond_resched();
}

/**
 * tw_free_page - free a page
 * @p: the page, allocated as one
 *
 * Context: process, may sleep.
 */
void tw_free_page(void *p)
{
	struct page *page = virt_to_page(p);

	__free_page(page);
	tw_free_pause(page);
}

/**
 * tw_pages_alloc - allocate zeroed memory, of pages that user space may map
 * @size: the size, which is rounded up to pages
 *
 * Context: process, may sleep.
 * Return: the memory, to be freed with tw_pages_free(); or NULL.
 */
void *tw_pages_alloc(size_t size)
{
	unsigned int count = PAGE_ALIGN(size) >> PAGE_SHIFT, i;
	struct page **page = kvmalloc_array(count, sizeof(*page), TW_GFP);
	void *p = NULL;

	if (!page)
		return NULL;
	for (i = 0; i < count; i++) {
		page[i] = alloc_page(TW_GFP | __GFP_ZERO);
		if (!page[i])
			break;
		cond_resched();
	}
	if (i == count)
		p = vmap(page, count, VM_MAP, PAGE_KERNEL);
	if (p)
		kmemleak_alloc(p, size, 1, TW_GFP);
	while (!p && i--)
		tw_free_page(page_address(page[i]));
	kvfree(page);
	return p;
}

/**
 * tw_pages_free - free memory of pages
 * @p: what tw_pages_alloc() returned
 *
 * Context: process, may sleep.
 */
void tw_pages_free(const void *p)
{
	struct page *page, *next;
	LIST_HEAD(pages);
	const void *at;

	kmemleak_free(p);
	/* Behind the last page there is a guard page, which is not mapped. */
	for (at = p; (page = vmalloc_to_page(at)); at += PAGE_SIZE) {
		list_add(&page->lru, &pages);
		cond_resched();
	}
	vunmap(p);
	list_for_each_entry_safe(page, next, &pages, lru) {
		list_del(&page->lru);
		tw_free_page(page_address(page));
	}
}
