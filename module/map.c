// SPDX-License-Identifier: GPL-2.0-only
/*
 * mmap of the deadline table (deadlines.h) and the event ring (ring.h).
 *
 * Their pages live as long as the file, to which a mapping holds a reference. A page fault maps
 * existing pages and allocates none, so a program is never killed in the middle of a store because
 * memory is short. The deadline table has no pages beyond the last timer. SETUP has created table
 * and ring, so mmap takes no lock and no memory, and does not wait.
 */
#include <linux/kmsan-checks.h>
#include <linux/mm.h>

#include "clock.h"
#include "deadlines.h"
#include "internal.h"
#include "map.h"
#include "ring.h"

#define TW_RING_PGOFF	(TIMERWHEEL_MMAP_RING >> PAGE_SHIFT)

static vm_fault_t tw_map_fault(struct vm_fault *vmf)
{
	struct tw_file *file = vmf->vma->vm_private_data;
	struct page *page;

	if (vmf->pgoff < TW_RING_PGOFF)
		page = tw_table_deadlines_page(file, vmf->pgoff);
	else
		page = tw_ring_page(&file->ring, vmf->pgoff - TW_RING_PGOFF);
	if (!page)
		return VM_FAULT_SIGBUS;
	/* Check explicitly: KMSAN itself checks only memory that is copied to user space. */
	kmsan_check_memory(page_address(page), PAGE_SIZE);
	get_page(page);
	vmf->page = page;
	return 0;
}

static const struct vm_operations_struct tw_vm_ops = {
	.fault	= tw_map_fault,
};

/*
 * Returns 0 if the file has a deadline table that can have these pages, with the times of this time
 * namespace, else -EINVAL or -EXDEV.
 */
static int tw_map_deadlines(const struct tw_file *file, unsigned long first, unsigned long count)
{
	unsigned long pages;

	/* Pairs with tw_setup(): settings and table are there; litmus publish. */
	if (!smp_load_acquire(&file->setup_done) || !file->setup.table)
		return -EINVAL;
	/* Index 0 has an entry, too. */
	pages = file->setup.capacity / TW_PAGE_DEADLINES + 1;
	if (first >= pages || count > pages - first)
		return -EINVAL;
	return file->table.pool.deadlines_offset == tw_clock_offset(file->setup.clock) ? 0 : -EXDEV;
}

/* 0 if the file has a ring with these pages, else -EINVAL. */
static int tw_map_ring(const struct tw_file *file, unsigned long first, unsigned long count)
{
	unsigned long pages = tw_has_ring(file) ? tw_ring_pages(&file->ring) : 0;

	return first < pages && count <= pages - first ? 0 : -EINVAL;
}

/**
 * tw_mmap - map the deadline table or the event ring
 * @filp: the open file
 * @vma: the mapping; its offset selects one of them
 *
 * Context: process; the address space is locked for writing.
 * Return: 0; -EINVAL: the mapping is not shared or is executable, the wheel has no such table or
 * ring, or the mapping exceeds it; -EXDEV: the wheel's clock has another time in this time
 * namespace than in the one in which the deadline table was created.
 */
int tw_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct tw_file *file = filp->private_data;
	int err;

	/* Stores to a private copy would be lost. (VM_SHARED is only set for writable mappings.) */
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_flags & VM_EXEC)
		return -EINVAL;
	if (vma->vm_pgoff < TW_RING_PGOFF)
		err = tw_map_deadlines(file, vma->vm_pgoff, vma_pages(vma));
	else
		err = tw_map_ring(file, vma->vm_pgoff - TW_RING_PGOFF, vma_pages(vma));
	if (err)
		return err;
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYEXEC);
	vma->vm_private_data = file;
	vma->vm_ops = &tw_vm_ops;
	return 0;
}
