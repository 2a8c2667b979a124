/* SPDX-License-Identifier: GPL-2.0-only */
/* Access to TCP connections. See tcp.c. */
#ifndef TW_TCP_H
#define TW_TCP_H

#include <linux/kconfig.h>
#include <linux/types.h>

#include "compat.h"

struct sock;

/**
 * tw_tcp_supported - can this kernel abort connections?
 *
 * Without BPF the kernel cannot abort a connection whose lock the caller holds, and waiting for
 * that lock is not allowed: see tw_tcp_abort(). Inline, so that the compiler removes references to
 * symbols that a kernel without a network does not export.
 *
 * Return: true if so.
 */
static inline bool tw_tcp_supported(void)
{
	return IS_ENABLED(CONFIG_INET) && IS_ENABLED(CONFIG_INET_DIAG_DESTROY) &&
	       (IS_ENABLED(CONFIG_BPF_SYSCALL) || !TW_TCP_ABORT_LOCKED);
}

int tw_tcp_check(const struct sock *sk);
void tw_tcp_hold(struct sock *sk);
void tw_tcp_put(struct sock *sk);
u32 tw_tcp_size(const struct sock *sk);
bool tw_tcp_gone(const struct sock *sk);
bool tw_tcp_closed(const struct sock *sk);
bool tw_tcp_half_closed(const struct sock *sk);
u32 tw_tcp_now(void);
u32 tw_tcp_received(const struct sock *sk);
u32 tw_tcp_sent(const struct sock *sk);
u32 tw_tcp_acked(const struct sock *sk);
int tw_tcp_abort(struct sock *sk);

#endif /* TW_TCP_H */
