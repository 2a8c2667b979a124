/* SPDX-License-Identifier: GPL-2.0-only */
/* The cap on kernel memory that a user may hold. See user.c. */
#ifndef TW_USER_H
#define TW_USER_H

#include <linux/types.h>

struct list_head;
struct tw_user;

struct tw_user *tw_user_get(void);
void tw_user_hold(struct tw_user *user);
void tw_user_put(struct tw_user *user);
bool tw_user_queue_closed(struct tw_user *user, struct list_head *node);
void tw_user_take_closed(struct tw_user *user, struct list_head *closed);
void tw_user_count_freed(struct tw_user *user);
int tw_user_wait(struct tw_user *user);
int tw_user_charge(struct tw_user *user, size_t bytes);
void tw_user_uncharge(struct tw_user *user, size_t bytes);
u64 tw_user_memory(struct tw_user *user);
u64 tw_user_memory_max(void);

#endif /* TW_USER_H */
