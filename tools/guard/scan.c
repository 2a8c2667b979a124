// SPDX-License-Identifier: GPL-2.0
/*
 * See scan.h.
 *
 * A list takes a microsecond or less for each connection. The kernel counts the connections that it
 * has accepted, for the whole network namespace. If it has accepted none since the last list, the
 * guard skips the list; only the memory of ended connections then stays until the next list.
 *
 * A worker takes the list, and searches it for new connections (worker.h). The guard then reads the
 * same list, and starts another worker for each user whose processes have new sockets, and for each
 * such process of root. If this worker hangs because it waits for a process, only the sockets that
 * it has taken hang with it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conns.h"
#include "counters.h"
#include "diag.h"
#include "log.h"
#include "options.h"
#include "owners.h"
#include "procs.h"
#include "scan.h"
#include "timers.h"
#include "worker.h"

/* A list is taken at least every SKIP_MAX turns. */
#define SKIP_MAX	8
/* The ports are searched again at least every PORTS_AGAIN lists. */
#define PORTS_AGAIN	16
/* Looking for the ports takes at most one part in this many of the time. */
#define PORTS_PART	8
/* A connection may be missing in one list although it exists. */
#define MISSED_MAX	2
/* A process may be about to get the socket from another one. */
#define TRIES_MAX	3
/* It may also get it much later: missing sockets are searched again every TRIES_AGAIN lists. */
#define TRIES_AGAIN	32
/* With more ports the kernel lists the connections to all ports of the machine. */
#define PORTS_MAX	64

struct counters counters;

/* Number of this scan; number of connections of the table that it has seen. */
static uint32_t number;
static unsigned int seen;
/* Some connections must be checked again, even if no new connection comes. */
static bool unfinished;
/* The worker takes the sockets of a group; @nr_left of them are left. */
static bool taking;
static struct wanted group;
static unsigned int nr_left;
/* There is a worker; the time at which this scan began, in ns. */
static bool busy;
static uint64_t began;

/* Sockets to search for. */
static struct wanted *wanted;
static unsigned int nr_wanted, room_wanted;

/* The list that the worker has taken, for the guard. */
static struct listed {
	struct inet_diag_msg msg;
	uint64_t known;		/* before this list; the size aligns what follows in the results */
} *listed;
static unsigned int nr_listed, room_listed;

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

/* Is it in the current list? */
static bool living(uint64_t cookie)
{
	const struct conn *conn = conn_find(cookie);

	return conn && conn->scan == number;
}

/* --- ports -------------------------------------------------------------- */

/* The worker returns this to the guard. */
static struct ports {
	uint16_t port[PORTS_MAX];
	unsigned int nr;
	bool more;		/* there are more than PORTS_MAX */
	uint64_t listeners;	/* at that time */
	unsigned int scans;
	uint64_t next;		/* do not look for them again before this time */
	bool said;		/* that there are none */
} ports = { .listeners = UINT64_MAX };

static uint64_t listeners;

bool scan_waits(void)
{
	return ports.said;
}

/*
 * The addresses on which the processes listen, sorted. The port alone is not enough: a daemon's own
 * connection to a server also has a local port, and any user may listen on that port at another
 * address of this machine.
 */
static struct places {
	union address *at;
	unsigned int nr, room;
} places, heard;

/*
 * The previous addresses, for a worker that searches again: a daemon may have accepted a connection
 * and then closed its listening socket since the last list.
 */
static struct places former;

static union address *add_place(struct places *to, const union address *at)
{
	if (to->nr == to->room) {
		to->room = to->room ? 2 * to->room : 64;
		to->at = realloc(to->at, to->room * sizeof(*to->at));
		if (!to->at)
			log_die("no memory for %u addresses", to->room);
	}
	to->at[to->nr] = *at;
	return &to->at[to->nr++];
}

static int by_address(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(union address));
}

static bool is_in(const struct places *in, const union address *at)
{
	return in->nr && bsearch(at, in->at, in->nr, sizeof(*at), by_address);
}

/* Sort the addresses, and keep each of them once. */
static void sort_places(void)
{
	unsigned int i, n = 0;

	if (places.nr)
		qsort(places.at, places.nr, sizeof(*places.at), by_address);
	for (i = 0; i < places.nr; i++) {
		if (!n || by_address(&places.at[n - 1], &places.at[i]))
			places.at[n++] = places.at[i];
	}
	places.nr = n;
}

/* Does or did a process listen on this address, or on all addresses of its family? */
static bool listens_on(const union address *at)
{
	union address any = { };

	any.any.sa_family = at->any.sa_family;
	any.v4.sin_port = at->v4.sin_port;
	return is_in(&places, at) || is_in(&places, &any) ||
	       is_in(&former, at) || is_in(&former, &any);
}

static void listener(const struct inet_diag_msg *msg)
{
	const union address at = diag_address(msg, false);

	listeners += mix64(diag_cookie(msg));
	want(msg)->place = heard.nr;
	wanted[nr_wanted - 1].transparent = diag_transparent(msg);
	/* AF_UNSPEC marks a socket that also listens on all addresses of IPv4. */
	add_place(&heard, &at)->any.sa_family = diag_dual(msg) ? AF_UNSPEC : at.any.sa_family;
}

static void add_port(uint16_t port)
{
	unsigned int i;

	for (i = 0; i < ports.nr && ports.port[i] != port; i++)
		;
	ports.more |= i == PORTS_MAX;
	if (i == ports.nr && ports.nr < PORTS_MAX)
		ports.port[ports.nr++] = port;
}

/* Clients of a transparent proxy connect to any address and port, as its processes do. */
static void say_transparent(const struct wanted *one)
{
	if (!one->transparent || !owners_transparent(one->pid))
		return;
	log_say(LOG_NOTICE, "%s[%d] listens on port %u as a transparent proxy: connections to other ports are guarded only if you give these with --port",
		one->name, one->pid, ntohs(heard.at[one->place].v4.sin_port));
}

static void add_listener(union address at)
{
	const bool dual = at.any.sa_family == AF_UNSPEC;

	add_port(ntohs(at.v4.sin_port));
	if (dual) {
		at.any.sa_family = AF_INET;
		add_place(&places, &at);
		at.any.sa_family = AF_INET6;
	}
	add_place(&places, &at);
}

/*
 * Keep the port of this connection? A daemon may close its listening socket before its connections.
 * If the choice has changed, connections in a wheel that was kept may belong to other processes.
 */
static bool is_kept(const struct conn *conn)
{
	return conn->pid || conn->tries < TRIES_MAX || (conn->armed && timers_same_choice());
}

static void keep_port(struct conn *conn)
{
	if (is_kept(conn))
		add_port(ntohs(conn->server.v4.sin_port));
}

/*
 * Find the addresses and ports on which the processes listen, and the ports of known connections.
 * The answer changes if listening sockets change. A process may also get an existing socket (socket
 * activation).
 */
static void find_ports(void)
{
	unsigned int i;

	listeners = 0;
	nr_wanted = 0;
	heard.nr = 0;
	if (!diag_listeners(listener) ||
	    (listeners == ports.listeners && !ports.said && ++ports.scans % PORTS_AGAIN))
		return;
	ports.listeners = listeners;
	ports.nr = 0;
	ports.more = false;
	former = places;
	memset(&places, 0, sizeof(places));
	owners_find(wanted, nr_wanted, NULL);
	for (i = 0; i < nr_wanted; i++) {
		if (!wanted[i].pid)
			continue;
		add_listener(heard.at[wanted[i].place]);
		say_transparent(&wanted[i]);
	}
	sort_places();
	if (!ports.nr && !ports.said && owners_any())
		log_say(LOG_NOTICE, "the processes listen on no TCP port now; waiting for that (or give it with --port)");
	else if (!ports.nr && !ports.said)
		log_say(LOG_NOTICE, "none of the chosen units and processes is running; waiting for them");
	ports.said = !ports.nr;
	for (i = 0; i < former.nr; i++)
		add_port(ntohs(former.at[i].v4.sin_port));
	conns_each(keep_port);
}

/*
 * Any user can make the list of listening sockets slow, because the kernel needs a time that is
 * quadratic in the number of sockets that share an address. New connections to the known ports do
 * not wait for each such list.
 */
static void refresh_ports(void)
{
	const uint64_t now = now_ns();

	if (now < ports.next)
		return;
	find_ports();
	ports.next = now + PORTS_PART * (now_ns() - now);
}

/* --- connections -------------------------------------------------------- */

static void connection(const struct inet_diag_msg *msg)
{
	struct conn *conn = conn_find(diag_cookie(msg));
	struct wanted *one;

	if (!msg->idiag_inode) {
		/* No process has it yet, or the process has closed it. */
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
	one->last = conn->tries == TRIES_MAX - 1;
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

/* --- the worker --------------------------------------------------------- */

/* Did clients make this connection, as far as the guard knows? */
static bool is_accepted(const struct inet_diag_msg *msg)
{
	const struct conn *conn = conn_find(diag_cookie(msg));
	const union address at = diag_address(msg, false);

	return options.nr_ports || (conn && is_kept(conn)) || listens_on(&at);
}

static void list(const struct inet_diag_msg *msg)
{
	const bool known = conn_find(diag_cookie(msg));

	if (!is_accepted(msg))
		return;
	if (nr_listed == room_listed) {
		room_listed = room_listed ? 2 * room_listed : 1024;
		listed = realloc(listed, room_listed * sizeof(*listed));
		if (!listed)
			log_die("no memory for %u connections", room_listed);
	}
	listed[nr_listed++] = (struct listed) { *msg, known };
	connection(msg);
}

/* Take this socket now? A group is the sockets of one user, or of one process of root. */
static bool in_group(const struct wanted *one)
{
	return one->pid && !one->tried && one->uid == group.uid &&
	       (one->uid || one->pid == group.pid);
}

/* Take the sockets of a group, as many as there are descriptors for, and arm their timers. */
static void take_group(void)
{
	/* Keeps a descriptor free for later. */
	int spare = dup(STDERR_FILENO), fd;
	bool full = false;
	struct conn *conn;
	unsigned int i;

	for (i = 0; i < nr_wanted; i++) {
		wanted[i].conn = NULL;
		if (full || !in_group(&wanted[i]))
			continue;
		conn = conn_find(wanted[i].cookie);
		fd = conn ? owners_take(&wanted[i]) : -1;
		full = conn && fd < 0 && errno == EMFILE;
		if (full)
			continue;
		wanted[i].tried = true;
		wanted[i].taken = fd >= 0;
		if (!wanted[i].taken)
			continue;
		wanted[i].conn = conn;
		/* The log names it if the timer cannot be armed. */
		conn->pid = wanted[i].pid;
		timers_arm(conn, fd);
	}
	close(spare);
	worker_visit(0, "");
	timers_flush();
	for (i = 0; i < nr_wanted; i++) {
		if (wanted[i].conn)
			wanted[i].armed = wanted[i].conn->armed;
	}
}

static void begin(void)
{
	number++;
	nr_wanted = 0;
	seen = 0;
}

/* The beginning of the worker's results; the list, the sockets and the processes follow. */
struct results {
	struct counters counters;
	struct ports ports;
	unsigned int nr_listed;
	unsigned int nr_wanted;
	unsigned int nr_places;
};

/* RLIMIT_FSIZE also applies to a memfd. */
static bool put(int out, const void *data, size_t size)
{
	if (write(out, data, size) == (ssize_t)size)
		return true;
	log_seldom(LOG_WARNING, "a worker cannot write its results; new connections are not guarded: raise ulimit -f, in a unit LimitFSIZE=");
	return false;
}

/* Take the list, and search it for new connections. */
static bool search(void)
{
	diag_open();
	_Static_assert(CHOICES_MAX <= PORTS_MAX, "the filter has all ports of --port");
	if (options.nr_ports) {
		ports.nr = options.nr_ports;
		memcpy(ports.port, options.ports, sizeof(options.ports));
		if (!(number % PORTS_AGAIN))
			owners_refresh();
	} else {
		refresh_ports();
	}
	/* No process is to blame if the kernel does not list the connections. */
	worker_visit(0, "");
	begin();
	if (ports.nr && !diag_connections(ports.port, ports.more ? 0 : ports.nr, list))
		return false;
	if (nr_wanted)
		owners_find(wanted, nr_wanted, living);
	worker_visit(0, "");
	return true;
}

static bool work(int out)
{
	struct results results = { };
	size_t size;
	void *known;

	memset(&counters, 0, sizeof(counters));
	if (taking)
		take_group();
	else if (!search())
		return false;
	results.counters = counters;
	results.ports = ports;
	results.nr_listed = nr_listed;
	results.nr_wanted = nr_wanted;
	results.nr_places = places.nr;
	size = owners_size();
	known = xcalloc(1, size + 1);
	owners_save(known);
	return put(out, &results, sizeof(results)) &&
	       put(out, listed, nr_listed * sizeof(*listed)) &&
	       put(out, wanted, nr_wanted * sizeof(*wanted)) && put(out, known, size) &&
	       put(out, places.at, places.nr * sizeof(*places.at));
}

/* --- the guard ---------------------------------------------------------- */

/* Retry twice soon, and later again: the process may be about to get the socket. */
static void not_taken(struct conn *conn, const struct wanted *one)
{
	if (one->reason == REASON_MPTCP) {
		conn->pid = one->pid;
		memcpy(conn->daemon, one->name, sizeof(conn->daemon));
		timers_leave(conn, one->reason);
		return;
	}
	if (one->reason != REASON_NOT_FOUND)
		owners_say(one->suspect, one->reason);
	if (conn->tries == TRIES_MAX)
		return;
	if (++conn->tries < TRIES_MAX) {
		unfinished = true;
		return;
	}
	/* The previous guard has found it. Its process may now be an orphan outside the unit. */
	if (one->reason == REASON_NOT_FOUND && conn->armed && timers_same_choice())
		return;
	counters.unreachable[one->reason]++;
	if (one->reason != REASON_NOT_FOUND)
		return;
	unreachable_not_found(conn);
	/* The previous guard had other processes to guard, and left the timers in the wheel. */
	if (!conn->pid)
		timers_disarm(conn);
}

/* Record the timers of a socket that the worker has taken. */
static void take_over(const struct wanted *one)
{
	struct conn *conn = conn_find(one->cookie);

	/* An event that the guard handled meanwhile has ended and counted it. */
	if (!conn) {
		conn = conn_new(one->cookie);
		timers_set(conn, one->armed);
		timers_drop(conn);
	} else if (one->taken) {
		owners_remember(one);
		conn->pid = one->pid;
		memcpy(conn->daemon, one->name, sizeof(conn->daemon));
		timers_set(conn, one->armed);
	} else if (one->pid && !one->tried) {
		unfinished = true;
	} else {
		not_taken(conn, one);
	}
}

/* Read the list that the worker has taken. */
static void read_list(const struct listed *entry, unsigned int count)
{
	unsigned int i;

	begin();
	for (i = 0; i < count; i++, entry++) {
		/* An event that the guard took meanwhile has ended and counted the others. */
		if (!entry->known || conn_find(diag_cookie(&entry->msg)))
			connection(&entry->msg);
	}
	if (seen < conns_count())
		conns_each(sweep);
	timers_flush();
}

static void read_results(const struct results *results, size_t len)
{
	const struct listed *entries = (void *)(results + 1);
	const struct wanted *from = (void *)(entries + results->nr_listed);
	const char *known = (void *)(from + results->nr_wanted);
	const char *end = (const char *)results + len;
	const union address *at = (const void *)(end - results->nr_places * sizeof(*at));
	const uint64_t *count = (void *)&results->counters;
	counter *sum = (void *)&counters;
	unsigned int i;

	for (i = 0; i < sizeof(counters) / sizeof(*sum); i++)
		sum[i] += count[i];
	ports = results->ports;
	places.nr = 0;
	for (i = 0; i < results->nr_places; i++)
		add_place(&places, &at[i]);
	owners_load(known, (const char *)at - known);
	if (!taking)
		read_list(entries, results->nr_listed);
	while (nr_wanted < results->nr_wanted)
		want(&(struct inet_diag_msg) { });
	nr_wanted = results->nr_wanted;
	if (nr_wanted)
		memcpy(wanted, from, nr_wanted * sizeof(*wanted));
}

/* The worker has ended without results, but may have armed timers. */
static void find_armed(void)
{
	struct conn *conn;
	unsigned int i;

	for (i = 0; i < nr_wanted; i++) {
		conn = in_group(&wanted[i]) ? conn_find(wanted[i].cookie) : NULL;
		if (!conn)
			continue;
		wanted[i].armed = timers_armed(wanted[i].cookie);
		if (!(wanted[i].armed & ~conn->armed))
			continue;
		wanted[i].tried = true;
		wanted[i].taken = true;
		wanted[i].armed |= conn->armed;
		counters.taken += !conn->armed;
	}
}

/* Mark the sockets of a group as tried if the worker made no progress. */
static void end_group(unsigned int left)
{
	unsigned int now = 0, i;

	for (i = 0; i < nr_wanted; i++)
		now += in_group(&wanted[i]);
	for (i = 0; now == left && i < nr_wanted; i++)
		wanted[i].tried |= in_group(&wanted[i]);
}

/* Start a worker for a group. Returns false if no group is left or no worker starts. */
static bool next_group(void)
{
	unsigned int i;

	for (i = 0; i < nr_wanted && (!wanted[i].pid || wanted[i].tried); i++)
		;
	if (i == nr_wanted)
		return false;
	group = wanted[i];
	taking = true;
	for (nr_left = 0, i = 0; i < nr_wanted; i++)
		nr_left += in_group(&wanted[i]);
	return worker_start(work);
}

static void finish(void)
{
	unsigned int i;

	for (i = 0; i < nr_wanted; i++)
		take_over(&wanted[i]);
	timers_flush();
	/* By now the timers of connections without a chosen process are removed. */
	if (number == TRIES_MAX)
		timers_mark_choice();
	owners_report();
	counters.scans++;
}

bool scan_busy(void)
{
	return busy;
}

void scan_go_on(void)
{
	void *results;
	size_t len;

	if (worker_check() != WORKER_ENDED)
		return;
	results = worker_results(&len);
	if (results)
		read_results(results, len);
	else if (taking)
		find_armed();
	if (taking)
		end_group(nr_left);
	busy = (results || taking) && next_group();
	if (!busy && (results || taking))
		finish();
	unfinished |= !results;
	free(results);
	if (!busy)
		counters.scan_ns += now_ns() - began;
}

/* No connection came since the last list, no work is left, and the last list is recent. */
static bool nothing_new(void)
{
	static unsigned int skipped;
	static uint64_t last = UINT64_MAX;
	uint64_t opened;

	if (diag_opened(&opened) && opened == last && !unfinished && ++skipped % SKIP_MAX)
		return true;
	last = opened;
	return false;
}

void scan_turn(void)
{
	if (nothing_new()) {
		counters.skipped++;
		return;
	}
	began = now_ns();
	unfinished = false;
	taking = false;
	/* Tell the worker which processes have ended. */
	procs_left();
	busy = worker_start(work);
	unfinished |= !busy;
}
