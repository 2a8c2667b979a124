# SPDX-License-Identifier: GPL-2.0
fault: beyond the timers; deadlines:map.beyond_the_timers; s/if (!page)$/if (!page) { page = tw_table_deadlines_page(file, 0); } if (!page)/
fault: the ring's first page for all; ring:running.long_ring.each_once; s/vmf->pgoff - TW_RING_PGOFF);/0);/
fault: the page is not held; ring:ring.reader_dies; s/^\tget_page(page);//
ring: one page more; ring:ring.mmap_errors; s/count <= pages - first ?/count <= pages - first + 1 ?/
ring: behind it; ring:ring.mmap_errors; s/return first < pages \&\& /return /
mmap: a private copy; deadlines:map.private ring:ring.mmap_errors; s/if (!(vma->vm_flags & VM_MAYSHARE) || /if (/
mmap: only who may write; deadlines:global.read_only; s/VM_MAYSHARE) ||/VM_SHARED) ||/
mmap: executable; deadlines:map.executable ring:ring.mmap_errors; s/ || vma->vm_flags & VM_EXEC)/)/
mmap: executable later; deadlines:map.executable; s/, VM_MAYEXEC);/, 0);/
mmap: grows; ring:ring.flags_of_the_mapping deadlines:map.flags_of_the_mapping; s/VM_DONTEXPAND | VM_DONTDUMP/VM_DONTDUMP/
mmap: dumped; ring:ring.flags_of_the_mapping deadlines:map.flags_of_the_mapping; s/VM_DONTEXPAND | VM_DONTDUMP/VM_DONTEXPAND/
table: of a wheel without one; deadlines:global.only_setup_creates_it; s/ || !file->setup.table)/)/
table: one page more; deadlines:map.beyond_the_capacity; s/count > pages - first)/count > pages - first + 1)/
table: behind it; deadlines:map.beyond_the_capacity; s/if (first >= pages ||/if (/
table: in any time namespace; deadlines:global.other_time_namespace; s/ == tw_clock_offset(file->setup.clock) ? 0 : -EXDEV;/ ? 0 : 0;/
