// SPDX-License-Identifier: GPL-2.0
/* The test has no timers that watch connections: none of this is called. */
#include "internal.h"
#include "sock.h"

bool tw_sock_visit(struct tw_timer *t, u64 now)
{
	abort();
}

u64 tw_sock_move(struct tw_ctx *ctx, struct tw_timer *t, u64 deadline)
{
	abort();
}

void tw_sock_end(struct tw_ctx *ctx, struct tw_timer *t)
{
	abort();
}

void tw_sock_free(struct tw_ctx *ctx, struct tw_timer *t, u32 index)
{
	abort();
}

void tw_sock_kick(struct tw_file *file)
{
	abort();
}
