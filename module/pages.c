// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of pages that are allocated and freed one at a time, so that other tasks can run in
 * between, whatever the size.
 *
 * vmalloc() and vfree() do not offer that. The page allocator collects freed pages for each zone
 * and CPU and returns them in batches. If nothing is allocated from the zone, the batches double up
 * to thousands of pages, which takes a millisecond or more without scheduling. After such a batch,
 * some kernels return all collected pages at the next free of more than one page. An allocation
 * halves the batch. Therefore, before it frees a page, this file allocates a page from the same
 * zone and frees that.
 */
#include <linux/gfp.h>
#include <linux/kmemleak.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "memory.h"
#include "pages.h"

/* The flags that select the zone of a page. */
static gfp_t tw_zone_gfp(const struct page *page)
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
 * tw_free_pause - let other tasks run before memory is freed
 * @page: a page of the memory
 *
 * The allocation must not wake kswapd, because freeing memory is not a reason to reclaim more. As a
 * result, it fails in a zone below its low watermark. The allocator then collects at most four
 * ordinary batches, about 250 pages, as long as kswapd works on that zone.
 *
 * Context: process, may sleep.
 */
void tw_free_pause(const struct page *page)
{
	gfp_t gfp = tw_zone_gfp(page) | __GFP_THISNODE | __GFP_NOWARN;
	struct page *other = alloc_pages_node(page_to_nid(page), gfp, 0);

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

	tw_free_pause(page);
	tw_page_unmap(page);
	free_page((unsigned long)p);
}

/**
 * tw_piece_alloc - allocate zeroed memory in one piece
 * @size: the size, which is rounded up to pages
 *
 * Context: process, may sleep.
 * Return: the memory, to be freed with tw_piece_free(); or NULL.
 */
void *tw_piece_alloc(size_t size)
{
	void *p = alloc_pages_exact(size, TW_GFP | __GFP_ZERO);

	if (p)
		kmemleak_alloc(p, size, 1, TW_GFP);
	return p;
}

/**
 * tw_piece_free - free memory in one piece
 * @p: the result of tw_piece_alloc()
 * @size: the size
 *
 * Context: process, may sleep.
 */
void tw_piece_free(const void *p, size_t size)
{
	size_t at;

	kmemleak_free(p);
	for (at = 0; at < size; at += PAGE_SIZE)
		tw_free_page((void *)p + at);
}

/**
 * tw_pages_alloc - allocate zeroed pages that user space may map
 * @size: the size, which is rounded up to pages
 *
 * The allocation also needs a temporary array of pointers to the pages. It is charged to the memory
 * cgroup, but not to the user's cap: its size is 1/512 of the memory (with pages of 4 kB), and a
 * task has at most one such array, and none when it returns to user space.
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
		tw_page_map(page[i]);
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
 * @p: the result of tw_pages_alloc()
 * @size: the size
 *
 * Context: process, may sleep.
 */
void tw_pages_free(const void *p, size_t size)
{
	struct page *page, *next;
	LIST_HEAD(pages);
	size_t at;

	kmemleak_free(p);
	for (at = 0; at < size; at += PAGE_SIZE) {
		page = vmalloc_to_page(p + at);
		list_add(&page->lru, &pages);
		cond_resched();
	}
	vunmap(p);
	list_for_each_entry_safe(page, next, &pages, lru) {
		list_del(&page->lru);
		tw_free_page(page_address(page));
	}
}
