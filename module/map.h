/* SPDX-License-Identifier: GPL-2.0-only */
/* mmap of the deadline table and the event ring. See map.c. */
#ifndef TW_MAP_H
#define TW_MAP_H

struct file;
struct vm_area_struct;

int tw_mmap(struct file *filp, struct vm_area_struct *vma);

#endif /* TW_MAP_H */
