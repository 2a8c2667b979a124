// SPDX-License-Identifier: GPL-2.0
/* See unreachable.h. */
#include "log.h"
#include "unreachable.h"

/* Maximum number of lines per minute, because some daemons have a process per connection. */
#define LINES_MAX	16

const char *const reason_names[REASONS] = {
	[REASON_NOT_FOUND] = "not-found",
	[REASON_DENIED] = "denied",
	[REASON_THREAD] = "thread",
	[REASON_MPTCP] = "mptcp",
	[REASON_IO_URING] = "io-uring",
	[REASON_NAMESPACE] = "namespace",
	[REASON_UNSUPPORTED] = "unsupported",
};

static const char *const texts[REASONS] = {
	[REASON_DENIED] = "may not take its sockets: run as root, or with the capabilities CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH (in a unit: AmbientCapabilities=)",
	[REASON_THREAD] = "only a thread other than its main thread has them, and taking them from there needs Linux 6.9",
	[REASON_MPTCP] = "they use MPTCP, which cannot be guarded: make the daemon listen with TCP (Go: GODEBUG=multipathtcp=0), or set net.mptcp.enabled=0 with sysctl and restart it",
	[REASON_IO_URING] = "they are direct descriptors of io_uring, which other processes cannot take: make the daemon accept with ordinary descriptors",
	[REASON_NAMESPACE] = "it is in another network namespace: run a guard there, see nsenter(1)",
	[REASON_UNSUPPORTED] = "the module cannot watch this kind of socket",
};

static bool may_say(void)
{
	static unsigned int lines;
	static uint64_t began;
	uint64_t now = now_ns();

	if (!began || now - began >= 60 * NSEC_PER_SEC) {
		began = now;
		lines = 0;
	}
	return lines++ < LINES_MAX;
}

bool unreachable_say(enum reason reason, const char *name, pid_t pid)
{
	if (!may_say())
		return false;
	log_say(LOG_WARNING, "cannot guard connections of %s[%d]: %s", name, pid, texts[reason]);
	return true;
}

void unreachable_not_found(const struct conn *conn)
{
	static bool said[UINT16_MAX + 1];
	uint16_t port = ntohs(conn->server.v4.sin_port);
	char client[ADDRESS_TEXT];

	if (said[port] || !may_say())
		return;
	said[port] = true;
	log_say(LOG_NOTICE,
		"cannot guard a connection from %s to port %u: none of the chosen processes has a descriptor for it; see CAVEATS in timerwheel-guard(8)",
		address_text(&conn->client, client), port);
}
