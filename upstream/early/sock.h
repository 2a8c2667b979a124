/* SPDX-License-Identifier: GPL-2.0-only */
/* Timers that watch a TCP connection: added by a later patch. */
#ifndef TW_SOCK_H
#define TW_SOCK_H

#include <linux/errno.h>
#include <linux/types.h>

struct timerwheel_batch;
struct tw_ctx;
struct tw_file;
struct tw_timer;
struct tw_user;
struct work_struct;

static inline int tw_sock_init(void)
{
	return 0;
}

static inline void tw_sock_exit(void)
{
}

static inline long tw_sock_add(struct tw_file *file, const struct timerwheel_batch *batch)
{
	return -ENOTTY;
}

static inline bool tw_sock_visit(struct tw_timer *t, u64 now)
{
	return true;
}

static inline u64 tw_sock_move(struct tw_ctx *ctx, struct tw_timer *t, u64 deadline)
{
	return deadline;
}

static inline void tw_sock_end(struct tw_ctx *ctx, struct tw_timer *t)
{
}

static inline void tw_sock_free(struct tw_ctx *ctx, struct tw_timer *t, u32 index)
{
}

static inline void tw_sock_kick(struct tw_file *file)
{
}

static inline bool tw_sock_waiting(struct tw_file *file)
{
	return false;
}

static inline void tw_sock_work(struct work_struct *work)
{
}

static inline void tw_sock_close(struct tw_file *file)
{
}

static inline void tw_sock_quiesce(struct tw_user *user)
{
}

static inline void tw_sock_free_all(struct tw_file *file)
{
}

#endif /* TW_SOCK_H */
