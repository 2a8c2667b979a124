/* SPDX-License-Identifier: GPL-2.0-only */
/* io_uring commands; see uring.c. */
#ifndef TW_URING_H
#define TW_URING_H

struct io_uring_cmd;

int tw_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);

#endif /* TW_URING_H */
