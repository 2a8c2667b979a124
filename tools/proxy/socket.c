// SPDX-License-Identifier: GPL-2.0
/* See socket.h. */
#include <arpa/inet.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "socket.h"
#include "util.h"

union address address_of(int fd, bool peer)
{
	union address address = { };
	socklen_t len = sizeof(address);

	/* getpeername() does not return the server while a socket connects. */
	if (getsockname(fd, &address.any, &len) ||
	    (peer && getsockopt(fd, SOL_SOCKET, SO_PEERNAME, &address, &len)))
		address.any.sa_family = AF_UNSPEC;
	address_unmap(&address);
	return address;
}

/*
 * TCP counts bytes as sequence numbers, in which SYN and FIN count as one each. The kernel's count
 * of acknowledged bytes includes the FIN, and the SYN of the end that connected. Its count of
 * received bytes includes the FIN. SIOCOUTQ includes an unacknowledged FIN, SIOCINQ includes no
 * FIN.
 */
enum tcp_state {
	SYN_SENT = 2, FIN_WAIT1 = 4, FIN_WAIT2, TIME_WAIT, CLOSE_WAIT = 8, LAST_ACK, CLOSING = 11,
};

static bool fin_sent(enum tcp_state state)
{
	return state == FIN_WAIT1 || state == FIN_WAIT2 || state == CLOSING || state == LAST_ACK ||
	       state == TIME_WAIT;
}

static bool fin_received(enum tcp_state state)
{
	return state == CLOSE_WAIT || state == CLOSING || state == LAST_ACK || state == TIME_WAIT;
}

struct state {
	uint64_t acked, received;
	unsigned int disordered;	/* segments that arrived before an earlier one */
	int unacked, unread, state;
};

static bool state_of(int fd, struct state *state)
{
	struct tcp_info info = { };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return false;
	memset(state, 0, sizeof(*state));
	state->acked = info.tcpi_bytes_acked;
	state->received = info.tcpi_bytes_received;
	state->disordered = info.tcpi_rcv_ooopack;
	state->state = info.tcpi_state;
	return !ioctl(fd, SIOCOUTQ, &state->unacked) && !ioctl(fd, SIOCINQ, &state->unread);
}

bool passed_of(int fd, bool active, struct passed *passed)
{
	struct state one, two;

	/* ACKs and data may arrive in between; two identical reads are a consistent snapshot. */
	do {
		if (!state_of(fd, &one) || !state_of(fd, &two))
			return false;
	} while (memcmp(&one, &two, sizeof(one)));
	*passed = (struct passed) {
		.connecting = one.state == SYN_SENT, .ended = fin_sent(one.state),
	};
	if (passed->connecting)
		return true;
	passed->written = one.acked + one.unacked - active - fin_sent(one.state);
	passed->read = one.received - one.unread - fin_received(one.state);
	return true;
}

/* The kernel counts the age of an acknowledgment in ticks of 10 ms with CONFIG_HZ=100. */
#define TICK_MS_MAX	10

bool progress_of(int fd, struct progress *progress)
{
	struct tcp_info info = { };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return false;
	progress->acked = info.tcpi_bytes_acked;
	progress->ack_age = info.tcpi_last_ack_recv > TICK_MS_MAX ?
			    (info.tcpi_last_ack_recv - TICK_MS_MAX) * NSEC_PER_MSEC : 0;
	progress->unacked = socket_unacked(fd);
	return true;
}

static unsigned int queued(int fd, unsigned long which)
{
	int n = 0;

	return ioctl(fd, which, &n) || n < 0 ? 0 : n;
}

int socket_error(int fd)
{
	socklen_t len = sizeof(int);
	int err = 0;

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	return err;
}

unsigned int socket_unread(int fd)
{
	return queued(fd, SIOCINQ);
}

unsigned int socket_unacked(int fd)
{
	return queued(fd, SIOCOUTQ);
}

bool socket_has_gap(int fd)
{
	uint32_t memory[SK_MEMINFO_VARS] = { };
	socklen_t len = sizeof(memory);
	struct state state;

	/*
	 * The kernel also counts the memory of an end of file, which no byte follows, and of a SYN,
	 * which it keeps if net.ipv6.flowlabel_reflect is set.
	 */
	return state_of(fd, &state) && !fin_received(state.state) && state.disordered &&
	       !getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &len) &&
	       memory[SK_MEMINFO_RMEM_ALLOC];
}

bool socket_failed(int fd)
{
	struct pollfd poll_fd = { .fd = fd };

	return poll(&poll_fd, 1, 0) > 0 && poll_fd.revents & POLLERR;
}

bool socket_receives(int fd)
{
	struct tcp_info info = { };
	socklen_t len = sizeof(info);

	/* The kernel gives the first time in ms, and the second time in us. */
	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) && info.tcpi_bytes_received &&
	       info.tcpi_last_data_recv * 1000ULL < info.tcpi_rto;
}

bool socket_is_own_peer(int fd)
{
	union address here = address_of(fd, false), there = address_of(fd, true);

	return here.any.sa_family != AF_UNSPEC && !memcmp(&here, &there, sizeof(here));
}

uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len);
	return cookie;
}

static void set_linger(int fd, bool on)
{
	struct linger linger = { .l_onoff = on };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void socket_keep_urgent(int fd)
{
	int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
}

void socket_prepare(int fd)
{
	int on = 1;

	/* If this process dies, its peers see a reset: none takes half a message as whole. */
	set_linger(fd, true);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	socket_keep_urgent(fd);
}

void socket_end(int fd, bool shared)
{
	set_linger(fd, false);
	if (shared)
		shutdown(fd, SHUT_RDWR);
	close(fd);
}

void socket_reset(int fd)
{
	static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };

	if (fd < 0)
		return;
	connect(fd, &nowhere, sizeof(nowhere));
	close(fd);
}
