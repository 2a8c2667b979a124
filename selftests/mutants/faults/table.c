# SPDX-License-Identifier: GPL-2.0
copy: the whole directory at once; icount/many:closing.four_million.*; s/n = min_t(u32, used, TW_PAGE \/ sizeof(\*to));/n = used;/
page: a page of the deadline table is not zeroed; deadlines:map.pages_are_new; s/(void \*)get_zeroed_page(TW_GFP)/(void *)__get_free_page(TW_GFP | (kind == TW_DIR_DEADLINES ? 0 : __GFP_ZERO))/
grow: no strands; ops:global.strands_memory; s/tw_cpu_spread(file);/;/
