/* SPDX-License-Identifier: GPL-2.0-only */
/* io_uring commands; see uring.c. */
#ifndef TW_URING_H
#define TW_URING_H

struct io_uring_cmd;

#ifdef CONFIG_IO_URING
int tw_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);
#else
#define tw_uring_cmd	NULL
#endif

#endif /* TW_URING_H */
