/* SPDX-License-Identifier: GPL-2.0-only */
/* mmap of the deadline table and the event ring: added by a later patch. */
#ifndef TW_MAP_H
#define TW_MAP_H

#define tw_mmap		NULL

#endif /* TW_MAP_H */
