// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that the kernel holds for users.
 *
 * Each byte is accounted twice. The allocator charges it to the memory cgroup of the calling task.
 * The file charges it to the cap of its user, before it is allocated, with the size that the
 * allocator really takes: whole size classes, whole pages. The file keeps the sum
 * (tw_file.charged). STATS reports the sum, and the release of the file uncharges it in one call,
 * after all memory was freed.
 *
 * Only small objects come from kmalloc(). On machines with up to seven CPUs, their slabs are single
 * pages. Freeing objects may empty several slabs at once. Slabs of several pages would then make
 * the page allocator return all pages that it has collected, which takes a millisecond or more
 * without scheduling. All other memory is whole pages, which are freed one at a time (pages.c): in
 * one piece if such a piece is easily found, otherwise mapped in a row. A mapping has overhead that
 * no cgroup is charged for: a descriptor of the area, and a page table entry for each page. The cap
 * includes it.
 *
 * Objects that exist once per user, for any number of wheels, are charged to no cap: struct
 * tw_user, and a struct tw_queue for each CPU and clock.
 */
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "internal.h"
#include "memory.h"
#include "pages.h"
#include "timer.h"
#include "user.h"

/* Limit for kmalloc(). If pages are larger than a page of timers, it includes such a page. */
#if PAGE_SIZE > 4096
#define TW_SMALL	TW_PAGE
#else
#define TW_SMALL	(PAGE_SIZE / 16)
#endif

/* Blocks larger than this are hard to find in one piece. */
#define TW_PIECE	(PAGE_SIZE << PAGE_ALLOC_COSTLY_ORDER)

/**
 * tw_pages_size - the memory that tw_pages_alloc() takes
 * @size: the requested size
 *
 * Return: bytes.
 */
size_t tw_pages_size(size_t size)
{
	size_t pages = PAGE_ALIGN(size) >> PAGE_SHIFT;

	return pages * (PAGE_SIZE + sizeof(pte_t)) +
	       sizeof(struct vm_struct) + sizeof(struct vmap_area);
}

/**
 * tw_alloc_size - the memory that tw_alloc() takes
 * @size: the requested size
 *
 * Return: bytes.
 */
size_t tw_alloc_size(size_t size)
{
	if (size <= TW_SMALL)
		return kmalloc_size_roundup(size);
	return size <= TW_PIECE ? PAGE_ALIGN(size) : tw_pages_size(size);
}

/**
 * tw_alloc - allocate zeroed memory
 * @size: the size
 *
 * The memory is on the local node if the task's memory policy allows. Powers of two up to a page
 * are aligned to their size. Free it with tw_free().
 *
 * Context: process, may sleep.
 * Return: the memory, or NULL.
 */
void *tw_alloc(size_t size)
{
	if (size <= TW_SMALL)
		return kzalloc(size, TW_GFP);
	return size <= TW_PIECE ? tw_piece_alloc(size) : tw_pages_alloc(size);
}

/**
 * tw_free - free memory
 * @p: the result of tw_alloc(), or NULL
 * @size: the size
 *
 * Other tasks may run in between, whatever the size.
 *
 * Context: process, may sleep.
 */
void tw_free(const void *p, size_t size)
{
	if (!p)
		return;
	if (size > TW_PIECE) {
		tw_pages_free(p, size);
	} else if (size > TW_SMALL) {
		tw_piece_free(p, size);
	} else {
		tw_free_pause(virt_to_page(p));
		kfree(p);
	}
}

/**
 * tw_charge - charge memory to a file and its user, before it is allocated
 * @file: the file
 * @bytes: number of bytes, as the allocator takes them: see tw_alloc_size()
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
 * tw_uncharge - undo tw_charge(), after the memory was freed
 * @file: the file
 * @bytes: number of bytes
 *
 * Context: process; tw_file.mutex is held.
 */
void tw_uncharge(struct tw_file *file, size_t bytes)
{
	lockdep_assert_held(&file->mutex);
	WARN_ON_ONCE(bytes > file->charged);
	WRITE_ONCE(file->charged, file->charged - bytes);
	tw_user_uncharge(file->user, bytes);
}
