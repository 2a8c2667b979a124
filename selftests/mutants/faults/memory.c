# SPDX-License-Identifier: GPL-2.0
size: what is asked for, not what it takes; limits:charged.small.is_exact,charged.few_slots.is_exact; s/return size <= TW_PIECE ? PAGE_ALIGN(size)/return size <= TW_PIECE ? size/
small: whole pages for everything; limits:charged.small.is_exact; s/kzalloc(size, TW_GFP)/kzalloc(max_t(size_t, size, PAGE_SIZE), TW_GFP)/
size: the next power of two; limits:charged.some_slots.is_exact; s/return size <= TW_PIECE ? PAGE_ALIGN(size)/return size <= TW_PIECE ? kmalloc_size_roundup(size)/
free: objects of slabs of several pages; icount/many:closing.thousand_*.holds_nobody; s,(PAGE_SIZE / 16),PAGE_SIZE,; s/kzalloc(size, /kzalloc(size + 64, /
pages: whole ones only of what is asked for; limits:charged.many_slots.is_exact; s/size_t pages = PAGE_ALIGN(size) >> PAGE_SHIFT;/size_t pages = size >> PAGE_SHIFT;/
charge: the user, but not the wheel; ops:cap.memory; s/WRITE_ONCE(file->charged, file->charged + bytes);/;/
uncharge: the user, but not the wheel; ops:cap.others; s/WRITE_ONCE(file->charged, file->charged - bytes);/;/
uncharge: the wheel, but not the user; ops:cap.others; s/tw_user_uncharge(file->user, bytes);/;/
