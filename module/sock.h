/* SPDX-License-Identifier: GPL-2.0-only */
/* Timers that watch a TCP connection. sock.c explains them. */
#ifndef TW_SOCK_H
#define TW_SOCK_H

#include <linux/types.h>

struct timerwheel_batch;
struct tw_ctx;
struct tw_file;
struct tw_timer;
struct tw_user;
struct work_struct;

int tw_sock_init(void);
void tw_sock_exit(void);
long tw_sock_add(struct tw_file *file, const struct timerwheel_batch *batch);
bool tw_sock_visit(struct tw_timer *t, u64 now);
u64 tw_sock_move(struct tw_ctx *ctx, struct tw_timer *t, u64 deadline);
void tw_sock_end(struct tw_ctx *ctx, struct tw_timer *t);
void tw_sock_free(struct tw_ctx *ctx, struct tw_timer *t, u32 index);
void tw_sock_kick(struct tw_file *file);
bool tw_sock_waiting(struct tw_file *file);
void tw_sock_work(struct work_struct *work);
void tw_sock_close(struct tw_file *file);
void tw_sock_quiesce(struct tw_user *user);
void tw_sock_free_all(struct tw_file *file);

#endif /* TW_SOCK_H */
