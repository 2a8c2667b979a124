# SPDX-License-Identifier: GPL-2.0
fits: powers of two for all that kmalloc has; monitor:monitor.charged; s/(size <= TW_KMALLOC_MAX \&\& kmalloc_size_roundup(size) <= PAGE_ALIGN(size))/size <= TW_KMALLOC_MAX/
size: what is asked for, not what it takes; limits:charged.small.is_exact,charged.few_slots.is_exact; s/return tw_alloc_fits(size) ? kmalloc_size_roundup(size)/return tw_alloc_fits(size) ? size/
size: as if all of it were pages; limits:charged.small.is_exact,charged.few_slots.is_exact; s/return tw_alloc_fits(size) ? kmalloc_size_roundup(size) : tw_pages_size(size);/return tw_pages_size(size);/
pages: whole ones only of what is asked for; limits:charged.some_slots.is_exact; s/size_t pages = PAGE_ALIGN(size) >> PAGE_SHIFT;/size_t pages = size >> PAGE_SHIFT;/
alloc: no cgroup sees it; lifetime:memcg.charges_wheels; s/kzalloc(size, TW_GFP)/kzalloc(size, GFP_KERNEL)/
charge: the user, but not the wheel; ops:cap.memory; s/WRITE_ONCE(file->charged, file->charged + bytes);/;/
uncharge: the user, but not the wheel; ops:cap.others; s/WRITE_ONCE(file->charged, file->charged - bytes);/;/
uncharge: the wheel, but not the user; ops:cap.others; s/tw_user_uncharge(file->user, bytes);/;/
