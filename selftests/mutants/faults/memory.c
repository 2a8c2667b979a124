# SPDX-License-Identifier: GPL-2.0
fits: powers of two for all that kmalloc has; monitor:monitor.charged; s/(size <= TW_KMALLOC_MAX \&\& kmalloc_size_roundup(size) <= PAGE_ALIGN(size))/size <= TW_KMALLOC_MAX/
size: what is asked for, not what it takes; limits:charged.small.is_exact,charged.few_slots.is_exact; s/return tw_alloc_fits(size) ? kmalloc_size_roundup(size)/return tw_alloc_fits(size) ? size/
size: as if all of it were pages; limits:charged.small.is_exact,charged.few_slots.is_exact; s/return tw_alloc_fits(size) ? kmalloc_size_roundup(size) : tw_vmalloc_size(size);/return tw_vmalloc_size(size);/
vmalloc: whole pages only of what is asked for; limits:charged.some_slots.is_exact; s/size_t pages = PAGE_ALIGN(size) >> PAGE_SHIFT;/size_t pages = size >> PAGE_SHIFT;/
vmalloc: no cgroup sees it; lifetime:memcg.monitor_enomem; s/return __vmalloc(size, TW_GFP | __GFP_ZERO);/return __vmalloc(size, GFP_KERNEL | __GFP_ZERO);/
alloc: no cgroup sees it; lifetime:memcg.charges_wheels; s/return kvzalloc(size, TW_GFP);/return kvzalloc(size, GFP_KERNEL);/
pause: the allocator is not helped; icount/many:closing*.holds_nobody; s/for (i = 0; i < 4; i++) {/for (i = 0; i < 0; i++) {/
pause: nobody may run; icount/many:closing*.holds_nobody; s/cond_resched();/;/
charge: the user, but not the wheel; ops:cap.memory; s/WRITE_ONCE(file->charged, file->charged + bytes);/;/
uncharge: the user, but not the wheel; ops:cap.others; s/WRITE_ONCE(file->charged, file->charged - bytes);/;/
uncharge: the wheel, but not the user; ops:cap.others; s/tw_user_uncharge(file->user, bytes);/;/
