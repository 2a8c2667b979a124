# SPDX-License-Identifier: GPL-2.0
copy: the whole directory at once; icount/many:closing.four_million.*; s/n = min_t(u32, used, TW_PAGE \/ sizeof(\*to));/n = used;/
