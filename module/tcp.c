// SPDX-License-Identifier: GPL-2.0-only
/*
 * Access to TCP connections. The headers of the network stack define names that the module also
 * uses (tw_state), so no other file includes them.
 *
 * All fields are read without the lock of the socket. A value may be stale when it is used, just as
 * if a packet had arrived a moment later.
 */
#include <linux/bpf.h>
#include <linux/errno.h>
#include <linux/net.h>
#include <linux/tcp.h>
#include <net/inet_connection_sock.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "compat.h"
#include "tcp.h"

/**
 * tw_tcp_check - may a timer watch this socket?
 * @sk: the socket
 *
 * Return: 0; -EOPNOTSUPP: the socket is not TCP over IPv4 or IPv6, or it listens; -ENOTCONN.
 */
int tw_tcp_check(const struct sock *sk)
{
	if (!tw_tcp_supported() || (sk->sk_family != AF_INET && sk->sk_family != AF_INET6) ||
	    sk->sk_type != SOCK_STREAM || sk->sk_protocol != IPPROTO_TCP ||
	    !READ_ONCE(sk->sk_prot)->diag_destroy)
		return -EOPNOTSUPP;
	switch (READ_ONCE(sk->sk_state)) {
	case TCP_LISTEN:
		return -EOPNOTSUPP;
	case TCP_CLOSE:
		return -ENOTCONN;
	default:
		return 0;
	}
}

/* Take a reference to a socket; this does not keep it open. */
void tw_tcp_hold(struct sock *sk)
{
	sock_hold(sk);
}

/* Drop a reference from tw_tcp_hold(). Context: process, may sleep. */
void tw_tcp_put(struct sock *sk)
{
	if (tw_tcp_supported())
		sock_put(sk);
}

/* The memory that stays allocated while there is a reference to a socket. */
u32 tw_tcp_size(const struct sock *sk)
{
	/* sk_prot may have changed, to IPv4 (IPV6_ADDRFORM) or TLS. */
	return sk->sk_prot_creator->obj_size;
}

/* Has the program closed the socket, so that no descriptor leads to it? Once true, always true. */
bool tw_tcp_closed(const struct sock *sk)
{
	/* The flags change without atomic operations, under the lock of the socket. */
	return data_race(sock_flag(sk, SOCK_DEAD));
}

/* Has the connection ended, or does it not exist? */
bool tw_tcp_gone(const struct sock *sk)
{
	u8 state = READ_ONCE(sk->sk_state);

	return tw_tcp_closed(sk) || state == TCP_CLOSE || state == TCP_LISTEN;
}

/* Has one end closed the connection? */
bool tw_tcp_half_closed(const struct sock *sk)
{
	const u32 half = TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2 | TCPF_CLOSE_WAIT | TCPF_LAST_ACK |
			 TCPF_CLOSING;

	return BIT(READ_ONCE(sk->sk_state)) & half;
}

/* The clock of tw_tcp_received() and tw_tcp_sent(): jiffies, modulo 2^32. */
u32 tw_tcp_now(void)
{
	return tcp_jiffies32;
}

/* The time at which data was last received; any number if none was. */
u32 tw_tcp_received(const struct sock *sk)
{
	return READ_ONCE(inet_csk(sk)->icsk_ack.lrcvtime);
}

/* The time at which data was last sent; any number if none was. */
u32 tw_tcp_sent(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->lsndtime);
}

/* The sequence number of the peer's last acknowledgment. */
u32 tw_tcp_acked(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->snd_una);
}

/*
 * Lock a socket as lock_sock() does, unless a task holds its lock. lock_sock() has no such variant.
 * Unlock it with release_sock().
 */
static bool tw_tcp_trylock(struct sock *sk)
{
	bool got;

	spin_lock_bh(&sk->sk_lock.slock);
	got = !sk->sk_lock.owned;
	sk->sk_lock.owned = 1;
	spin_unlock_bh(&sk->sk_lock.slock);
	if (got)
		mutex_acquire(&sk->sk_lock.dep_map, 0, 1, _RET_IP_);
	return got;
}

typedef int (*tw_tcp_abort_fn)(struct sock *sk, int err);

/*
 * Abort a connection whose lock the caller holds. tcp_abort() does not take the lock if it is
 * called from a BPF program, whose iterator holds it (bpf_sock_destroy(), since 6.5). This function
 * uses the same contract.
 */
static int tw_tcp_abort_locked(struct sock *sk, tw_tcp_abort_fn abort)
{
	struct bpf_run_ctx ctx = {}, *old = bpf_set_run_ctx(&ctx);
	int err = abort(sk, ETIMEDOUT);

	bpf_reset_run_ctx(old);
	return err;
}

/*
 * The function that aborts the connection; NULL: there is none. The structure behind sk_prot may
 * belong to a module (tls), which can be unloaded after the socket is closed; its memory is freed
 * after a grace period of RCU. The function is part of the kernel, so it stays.
 */
static tw_tcp_abort_fn tw_tcp_aborter(const struct sock *sk)
{
	tw_tcp_abort_fn abort;

	rcu_read_lock();
	abort = READ_ONCE(sk->sk_prot)->diag_destroy;
	rcu_read_unlock();
	return abort;
}

/**
 * tw_tcp_abort - abort a connection: the local end gets ETIMEDOUT, the other end a reset
 * @sk: a socket that tw_tcp_check() has accepted
 *
 * A task may hold the lock of a socket for any length of time, because user space may serve its
 * page faults. Therefore this function does not wait for the lock. Before 6.5 it may wait if a task
 * takes the lock at this moment. It then also aborts the socket if it has become a listening socket
 * in the meantime, by connect() to AF_UNSPEC and listen().
 *
 * This function does not ask security modules (security_socket_shutdown()), like the kernel for
 * SOCK_DESTROY: see Documentation/design/decisions.md.
 *
 * Context: process, may sleep.
 * Return: 0; -EBUSY: a task holds the lock; another error: there was no connection.
 */
int tw_tcp_abort(struct sock *sk)
{
	tw_tcp_abort_fn abort = tw_tcp_aborter(sk);
	int err;

	/* Never true here, but a kernel without a network has no release_sock(). */
	if (!tw_tcp_supported())
		return -EOPNOTSUPP;
	if (tw_tcp_gone(sk) || !abort)
		return -ENOENT;
	if (!TW_TCP_ABORT_LOCKED)
		return READ_ONCE(sk->sk_lock.owned) ? -EBUSY : abort(sk, ETIMEDOUT);
	if (!tw_tcp_trylock(sk))
		return -EBUSY;
	err = tw_tcp_gone(sk) ? -ENOENT : tw_tcp_abort_locked(sk, abort);
	release_sock(sk);
	return err;
}
