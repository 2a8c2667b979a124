// SPDX-License-Identifier: GPL-2.0
/*
 * See scan.h.
 *
 * A list costs a microsecond for each connection or less. It is not even taken if the kernel has
 * accepted none since the last one: it counts them, for all of the network namespace. Then only the
 * memory of connections that have ended waits, until the next list.
 */
#include <stdlib.h>
#include <string.h>

#include "conns.h"
#include "counters.h"
#include "diag.h"
#include "log.h"
#include "options.h"
#include "owners.h"
#include "scan.h"
#include "timers.h"

/* At least each so many turns a list is taken. */
#define SKIP_MAX	8
/* At least each so many lists the ports are looked for again. */
#define PORTS_AGAIN	16
/* A connection may be missing in one list although it exists. */
#define MISSED_MAX	2
/* A process may be about to get the socket from another one. */
#define TRIES_MAX	3
/* It may also get it much later: those not found are looked for again each so many lists. */
#define TRIES_AGAIN	32
#define PORTS_MAX	1024

struct counters counters;

/* Number of this scan; how many connections of the table it has seen. */
static uint32_t number;
static unsigned int seen;
/* There are connections that are to be looked at again, whatever comes. */
static bool unfinished;

/* Sockets to be looked for. */
static struct wanted *wanted;
static unsigned int nr_wanted, room_wanted;

static struct wanted *want(const struct inet_diag_msg *msg)
{
	if (nr_wanted == room_wanted) {
		room_wanted = room_wanted ? 2 * room_wanted : 1024;
		wanted = realloc(wanted, room_wanted * sizeof(*wanted));
		if (!wanted)
			log_die("no memory for %u connections", room_wanted);
	}
	wanted[nr_wanted] = (struct wanted) {
		.inode = msg->idiag_inode,
		.cookie = diag_cookie(msg),
	};
	return &wanted[nr_wanted++];
}

/* Was it in the list that is being worked on? */
static bool living(uint64_t cookie)
{
	const struct conn *conn = conn_find(cookie);

	return conn && conn->scan == number;
}

/* --- ports -------------------------------------------------------------- */

static uint16_t ports[PORTS_MAX];
static unsigned int nr_ports;
static uint64_t listeners;

static void listener(const struct inet_diag_msg *msg)
{
	listeners += mix64(diag_cookie(msg));
	want(msg)->port = ntohs(msg->id.idiag_sport);
}

static void add_port(uint16_t port)
{
	unsigned int i;

	for (i = 0; i < nr_ports && ports[i] != port; i++)
		;
	if (i == nr_ports && nr_ports < PORTS_MAX)
		ports[nr_ports++] = port;
}

/*
 * A daemon may close its listening socket before its connections. Those in a wheel that was kept
 * may be of processes that are not meant any more.
 */
static void keep_port(struct conn *conn)
{
	if (conn->pid || conn->tries < TRIES_MAX)
		add_port(ntohs(conn->server.v4.sin_port));
}

/*
 * The ports that the processes listen on, and those of known connections. Other listening sockets
 * mean another answer. A process may also get one that was there before (socket activation).
 */
static void find_ports(void)
{
	static unsigned int scans;
	static uint64_t last;
	static bool said;
	unsigned int i;

	listeners = 0;
	nr_wanted = 0;
	if (!diag_listeners(listener) || (listeners == last && !said && ++scans % PORTS_AGAIN))
		return;
	last = listeners;
	nr_ports = 0;
	owners_find(wanted, nr_wanted, NULL);
	for (i = 0; i < nr_wanted; i++) {
		if (wanted[i].pid)
			add_port(wanted[i].port);
	}
	if (!nr_ports && !said)
		log_say(LOG_NOTICE, "the processes listen on no TCP port now; waiting for that (or give it with --port)");
	said = !nr_ports;
	conns_each(keep_port);
}

/* --- connections -------------------------------------------------------- */

static void connection(const struct inet_diag_msg *msg)
{
	struct conn *conn = conn_find(diag_cookie(msg));
	struct wanted *one;

	if (!msg->idiag_inode) {
		/* No process has it: not yet, or not any more. */
		unfinished |= diag_waits(msg);
		return;
	}
	if (!conn)
		conn = conn_new(diag_cookie(msg));
	seen += conn->scan != number;
	conn->scan = number;
	conn->missed = 0;
	if (!conn->pid) {
		conn->client = diag_address(msg, true);
		conn->server = diag_address(msg, false);
	}
	if (timers_complete(conn) && conn->pid)
		return;
	if (conn->tries == TRIES_MAX && number % TRIES_AGAIN)
		return;
	one = want(msg);
	one->conn = conn;
	one->again = conn->tries;
}

/* What was found gets its timers; the others get two chances soon, and some later. */
static void arm_new(void)
{
	unsigned int i;
	int fd;

	if (!nr_wanted)
		return;
	owners_find(wanted, nr_wanted, living);
	for (i = 0; i < nr_wanted; i++) {
		struct conn *conn = wanted[i].conn;

		fd = wanted[i].pid ? owners_take(&wanted[i]) : -1;
		if (fd >= 0) {
			conn->pid = wanted[i].pid;
			memcpy(conn->daemon, wanted[i].name, sizeof(conn->daemon));
			timers_arm(conn, fd);
		} else if (conn->tries < TRIES_MAX) {
			unfinished |= ++conn->tries < TRIES_MAX;
			counters.unreachable += conn->tries == TRIES_MAX;
		}
	}
	timers_flush();
}

static void sweep(struct conn *conn)
{
	if (conn->scan == number)
		return;
	if (++conn->missed < MISSED_MAX) {
		unfinished = true;
		return;
	}
	counters.left++;
	timers_drop(conn);
}

/* Nothing has come since the last list, nothing is left to do, and it is not long ago. */
static bool nothing_new(void)
{
	static unsigned int skipped;
	static uint64_t last;
	uint64_t opened;

	if (diag_opened(&opened) && opened == last && !unfinished && ++skipped % SKIP_MAX)
		return true;
	last = opened;
	return false;
}

void scan_turn(void)
{
	uint64_t began = now_ns();

	if (nothing_new()) {
		counters.skipped++;
		return;
	}
	unfinished = false;
	if (options.nr_ports) {
		nr_ports = options.nr_ports;
		memcpy(ports, options.ports, sizeof(options.ports));
	} else {
		find_ports();
	}
	number++;
	nr_wanted = 0;
	seen = 0;
	if (nr_ports && !diag_connections(ports, nr_ports, connection)) {
		unfinished = true;
		return;
	}
	arm_new();
	if (seen < conns_count())
		conns_each(sweep);
	timers_flush();
	counters.scans++;
	counters.scan_ns += now_ns() - began;
}
