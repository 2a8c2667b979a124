/* SPDX-License-Identifier: GPL-2.0-only */
/* io_uring commands: added by a later patch. */
#ifndef TW_URING_H
#define TW_URING_H

#define tw_uring_cmd	NULL

#endif /* TW_URING_H */
