// SPDX-License-Identifier: GPL-2.0
/*
 * See passed.h. TCP counts bytes as sequence numbers, in which SYN and FIN have one each. Of those
 * the kernel counts among the acknowledged bytes: the FIN, and the SYN of the end that connected;
 * among the received ones the FIN. SIOCOUTQ has an unacknowledged FIN in it, SIOCINQ has not.
 */
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "passed.h"

/* States of TCP, as in TCP_INFO. */
enum { SYN_SENT = 2, FIN_WAIT1 = 4, FIN_WAIT2, TIME_WAIT, CLOSE, CLOSE_WAIT, LAST_ACK, LISTEN,
       CLOSING };

#define FIN_SENT	(1 << FIN_WAIT1 | 1 << FIN_WAIT2 | 1 << CLOSING | 1 << LAST_ACK | \
			 1 << TIME_WAIT)
#define FIN_RECEIVED	(1 << CLOSE_WAIT | 1 << CLOSING | 1 << LAST_ACK | 1 << TIME_WAIT)

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
	*passed = (struct passed) { };
	if (one.state == SYN_SENT)
		return true;
	passed->written = one.acked + one.unacked - active - !!(FIN_SENT & 1 << one.state);
	passed->read = one.received - one.unread - !!(FIN_RECEIVED & 1 << one.state);
	return true;
}

uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len);
	return cookie;
}
