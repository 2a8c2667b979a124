# SPDX-License-Identifier: GPL-2.0
piece: no cgroup sees it; lifetime:memcg.charges_wheels; s/alloc_pages_exact(size, TW_GFP | /alloc_pages_exact(size, GFP_KERNEL | /
piece: the pages stay; limits:charged.small.is_exact; s/^\t\ttw_free_page((void \*)p + at);/\t\t;/
alloc: no cgroup sees it; lifetime:memcg.monitor_enomem; s/alloc_page(TW_GFP | __GFP_ZERO)/alloc_page(GFP_KERNEL | __GFP_ZERO)/
alloc: pages are not zeroed; ring:global.pages_are_new; s/alloc_page(TW_GFP | __GFP_ZERO)/alloc_page(TW_GFP)/
free: the pages stay; many:closing.large_ring.*; /^void tw_pages_free(/,/^}/s/^\t\ttw_free_page(page_address(page));/\t\t;/
pause: the allocator is not helped; icount/many:closing*.holds_nobody; s/alloc_pages_node(page_to_nid(page), gfp, 0);/alloc_pages_node(page_to_nid(page), gfp, 30);/
pause: in the first zone; icount/many:closing.other_zone.*; s/return __GFP_DMA32;/return 0;/
pause: nobody may run; icount/many:closing*.holds_nobody; /^void tw_free_pause(/,/^}/s/cond_resched();/;/
