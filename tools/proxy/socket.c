// SPDX-License-Identifier: GPL-2.0
/* See socket.h. */
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "socket.h"

union address address_of(int fd, bool peer)
{
	union address address = { };
	socklen_t len = sizeof(address);

	/* getpeername() does not know the server while a socket connects. */
	if (getsockname(fd, &address.any, &len) ||
	    (peer && getsockopt(fd, SOL_SOCKET, SO_PEERNAME, &address, &len)))
		address.any.sa_family = AF_UNSPEC;
	address_unmap(&address);
	return address;
}

/*
 * TCP counts bytes as sequence numbers, in which SYN and FIN have one each. Of those
 * the kernel counts among the acknowledged bytes: the FIN, and the SYN of the end that connected;
 * among the received ones the FIN. SIOCOUTQ has an unacknowledged FIN in it, SIOCINQ has not.
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
	state->state = info.tcpi_state;
	return !ioctl(fd, SIOCOUTQ, &state->unacked) && !ioctl(fd, SIOCINQ, &state->unread);
}

bool passed_of(int fd, bool active, struct passed *passed)
{
	struct state one, two;

	/* Acknowledgements and bytes come at any time: what is the same twice fits together. */
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

uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len);
	return cookie;
}

void socket_reset(int fd)
{
	static const struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	if (fd < 0)
		return;
	connect(fd, &nobody, sizeof(nobody));
	close(fd);
}
