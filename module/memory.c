// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that users make the kernel hold.
 *
 * Each byte is accounted for twice: the allocator charges it to the memory cgroup of the task that
 * asks, and the file charges it to the cap of its user. The latter is done before anything is
 * allocated, and in bytes that the allocator really takes: whole size classes, whole pages. A file
 * remembers the sum (tw_file.charged), which is what STATS reports and what its release gives
 * back in one call, once all of it is free.
 *
 * kmalloc() rounds up to a power of two, which can double a large array. So it only serves where
 * whole pages would be no less: up to a page, and just below a few powers of two above that. All
 * else is vmalloc memory. That has a price of its own, which no cgroup sees: a descriptor, and for
 * each page a pointer and a page table entry. It is counted in the cap.
 *
 * What a user has once, however many wheels there are, is in no cap: struct tw_user, and a struct
 * tw_queue for each CPU and clock.
 */
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "internal.h"
#include "memory.h"
#include "user.h"

/* Larger ones are hard to find in one piece. */
#define TW_KMALLOC_MAX	(PAGE_SIZE << PAGE_ALLOC_COSTLY_ORDER)

/* Does kmalloc() take no more for it than whole pages would be? */
static bool tw_alloc_fits(size_t size)
{
	return size <= PAGE_SIZE ||
	       (size <= TW_KMALLOC_MAX && kmalloc_size_roundup(size) <= PAGE_ALIGN(size));
}

/**
 * tw_vmalloc_size - how much memory an allocation by vmalloc() takes
 * @size: what is asked for
 *
 * Return: bytes.
 */
size_t tw_vmalloc_size(size_t size)
{
	size_t pages = PAGE_ALIGN(size) >> PAGE_SHIFT;

	return pages * (PAGE_SIZE + sizeof(struct page *) + sizeof(pte_t)) +
	       sizeof(struct vm_struct) + sizeof(struct vmap_area);
}

/**
 * tw_alloc_size - how much memory tw_alloc() takes
 * @size: what it is asked for
 *
 * Return: bytes.
 */
size_t tw_alloc_size(size_t size)
{
	return tw_alloc_fits(size) ? kmalloc_size_roundup(size) : tw_vmalloc_size(size);
}

/**
 * tw_alloc - allocate zeroed memory
 * @size: how much
 *
 * It is the local node's, as far as the task's memory policy allows. Powers of two up to a page
 * are aligned to their size. kvfree() frees it.
 *
 * Context: process, may sleep.
 * Return: the memory, or NULL.
 */
void *tw_alloc(size_t size)
{
	if (tw_alloc_fits(size))
		return kvzalloc(size, TW_GFP);
	return __vmalloc(size, TW_GFP | __GFP_ZERO);
}

/**
 * tw_free_pause - to be called now and then while much is freed
 *
 * The page allocator collects freed pages for each CPU and gives them back to the zone in batches
 * that double each time, as long as nothing is allocated: thousands at last, a millisecond for
 * which nobody is scheduled. After such a batch, some kernels give back all they have
 * collected at the next free of more than one page. Each allocation halves the batch; these undo
 * what the free of one large array has done.
 *
 * Context: process, may sleep.
 */
void tw_free_pause(void)
{
	struct page *page;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		page = alloc_page(GFP_NOWAIT | __GFP_NOWARN);
		if (page)
			__free_page(page);
	}
	cond_resched();
}

/**
 * tw_charge - charge memory to a file and its user, before it is allocated
 * @file: the file
 * @bytes: how much, as the allocator counts
 *
 * Context: process; tw_file.mutex is held.
 * Return: 0 or -EDQUOT.
 */
int tw_charge(struct tw_file *file, size_t bytes)
{
	int err;

	lockdep_assert_held(&file->mutex);
	err = tw_user_charge(file->user, bytes);
	if (!err)
		WRITE_ONCE(file->charged, file->charged + bytes);
	return err;
}

/**
 * tw_uncharge - give back what tw_charge() charged, after it was freed
 * @file: the file
 * @bytes: how much
 *
 * Context: process; tw_file.mutex is held.
 */
void tw_uncharge(struct tw_file *file, size_t bytes)
{
	lockdep_assert_held(&file->mutex);
	WRITE_ONCE(file->charged, file->charged - bytes);
	tw_user_uncharge(file->user, bytes);
}
