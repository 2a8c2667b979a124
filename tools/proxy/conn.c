// SPDX-License-Identifier: GPL-2.0
/* See conn.h. */
#include <errno.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"
#include "log.h"
#include "options.h"
#include "record.h"
#include "socket.h"
#include "store.h"
#include "upstream.h"

/* The longest pause between two checks of a send queue that must become empty, ns. */
#define EMPTY_POLL_MAX	(500 * NSEC_PER_MSEC)

/* The deadline of a timer that starts now. Reads the clock again, because a turn may be long. */
static uint64_t deadline_of(enum kind kind)
{
	uint64_t timeout = options.timeout[kind];

	return timeout == TIME_NONE ? TIME_NONE : now_ns() + timeout;
}

static void timer_start(struct conn *conn, struct timer *timer, enum kind kind)
{
	timer->kind = kind;
	timer->deadline = deadline_of(kind);
	timers_arm(conn->loop->timers, timer);
}

static void phase_begin(struct conn *conn, enum kind phase)
{
	conn->phase = phase;
	timer_start(conn, &conn->timer, phase);
}

static void phase_refresh(struct conn *conn)
{
	uint64_t former = conn->timer.deadline, deadline = deadline_of(conn->phase);

	conn->timer.deadline = deadline;
	/* The previous proxy's timeout was longer, or there was none. */
	if (deadline < former)
		timers_arm(conn->loop->timers, &conn->timer);
	else if (deadline > former)
		timers_refresh(conn->loop->timers, &conn->timer);
}

/* --- Wanted events ------------------------------------------------------ */

static struct side *other(struct side *side)
{
	return &side->conn->side[side == &side->conn->side[CLIENT]];
}

static uint32_t wanted(struct side *side)
{
	uint32_t events = 0;

	if (side->conn->phase == KIND_CONNECT) {
		/* Leave the client's bytes and its end of file in its socket. */
		if (side == &side->conn->side[SERVER])
			events = EPOLLOUT;
	} else {
		/* Read no more until the other side has taken the bytes that were read. */
		if (!side->eof && !side->blocked)
			events |= EPOLLIN;
		if (other(side)->blocked)
			events |= EPOLLOUT;
	}
	/* epoll always reports resets and hangups; report each only once if nothing is wanted. */
	return events ? events : EPOLLERR | EPOLLET;
}

static bool side_watch(struct side *side)
{
	struct epoll_event event = { .events = wanted(side), .data.ptr = &side->source };
	int op = side->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (event.events == side->watched)
		return true;
	side->watched = event.events;
	return !epoll_ctl(side->conn->loop->epoll, op, side->fd, &event);
}

static void set_blocked(struct side *side, bool blocked)
{
	counter_add(&side->conn->loop->counters.blocked, blocked - side->blocked);
	side->blocked = blocked;
}

static void side_end(struct side *gone)
{
	conn_close(gone->conn, gone == &gone->conn->side[CLIENT] ? END_CLIENT_RESET :
			       END_SERVER_RESET);
}

/*
 * One side is gone. The other side first takes all bytes that the gone side had sent, and then gets
 * a reset. An earlier reset would overtake these bytes: the kernel drops its send queue.
 *
 * Return: true if the connection has ended.
 */
static bool conn_broken(struct conn *conn)
{
	struct side *gone = conn->gone, *to = other(gone);
	uint64_t now = now_ns(), limit = options.timeout[KIND_HALF_CLOSE], at;
	struct progress progress;

	conn->phase = KIND_HALF_CLOSE;
	conn->timer.kind = KIND_HALF_CLOSE;
	if (to->broken || !progress_of(to->fd, &progress) || (gone->eof && !progress.unacked)) {
		side_end(gone);
		return true;
	}
	if (progress.acked != to->acked)
		conn->moved = now;
	to->acked = progress.acked;
	if (now - conn->moved >= limit) {
		side_end(gone);
		return true;
	}
	/* The kernel does not report that a send queue has become empty. */
	at = now + NSEC_PER_MSEC + (now - conn->moved) / 4;
	if (at > now + EMPTY_POLL_MAX)
		at = now + EMPTY_POLL_MAX;
	if (limit != TIME_NONE && at > conn->moved + limit)
		at = conn->moved + limit;
	if (!conn->timer.armed || at < conn->timer.deadline) {
		conn->timer.deadline = at;
		timers_arm(conn->loop->timers, &conn->timer);
	}
	return false;
}

/* Choose the next step after an event. */
static void conn_settle(struct conn *conn)
{
	struct side *client = &conn->side[CLIENT], *server = &conn->side[SERVER];

	if (conn->gone && conn->phase != KIND_CONNECT) {
		if (conn_broken(conn))
			return;
	} else if (client->eof && server->eof) {
		conn_close(conn, conn->first == CLIENT ? END_CLIENT : END_SERVER);
		return;
	} else if (conn->phase == KIND_IDLE && (client->eof || server->eof)) {
		phase_begin(conn, KIND_HALF_CLOSE);
	}
	if (!side_watch(client) || !side_watch(server)) {
		log_seldom(LOG_WARNING, "epoll_ctl: %s; raise fs.epoll.max_user_watches",
			   strerror(errno));
		conn_close(conn, END_FAILED);
	}
}

/* --- Bytes ----------------------------------------------------------------- */

static bool only_later(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/*
 * The connection to this side has failed. Earlier bytes may still wait in its socket. Bytes for it
 * are discarded from now on, so that the other side can continue to read.
 */
static void side_broken(struct side *side)
{
	side->broken = true;
	if (!side->conn->gone) {
		side->conn->gone = side;
		side->conn->moved = now_ns();
	}
	set_blocked(other(side), false);
}

/* Take bytes from a socket that are known to be there. */
static bool discard(int fd, char *buffer, size_t n)
{
	ssize_t got;

	while (n) {
		/* MSG_TRUNC copies no bytes. Stops before an urgent byte. */
		got = recv(fd, buffer, n < LOOP_BUFFER ? n : LOOP_BUFFER,
			   MSG_TRUNC | MSG_DONTWAIT);
		if (got <= 0)
			return false;
		n -= got;
	}
	return true;
}

static void pass_eof(struct side *from)
{
	struct conn *conn = from->conn;

	/* If it is gone already, its own events report that. */
	shutdown(other(from)->fd, SHUT_WR);
	if (!other(from)->eof)
		conn->first = from - conn->side;
}

/* Like side_broken(), with @err from the socket. EPIPE: an end of file came before the failure. */
static void side_failed(struct side *side, int err)
{
	side->reset = err != EPIPE;
	side_broken(side);
}

/* No more bytes come from a side, which has sent an end of file or failed. */
static void side_done(struct side *from, bool failed)
{
	if (failed)
		side_broken(from);
	/* After a reset, recv() returns an end of file once the error was taken from the socket. */
	if (!from->reset && !failed && !other(from)->broken)
		pass_eof(from);
	from->eof = true;
	set_blocked(from, false);
}

/*
 * Pass on the bytes that one side has sent, as many as fit into the buffer and the other side
 * takes. The rest stays in the socket, so a slow reader slows its writer down.
 */
static void pump(struct side *from)
{
	struct loop *loop = from->conn->loop;
	struct side *to = other(from);
	/* MSG_TRUNC: discard without a copy. */
	int how = to->broken ? MSG_TRUNC : MSG_PEEK;
	ssize_t n, sent;

	n = recv(from->fd, loop->buffer, LOOP_BUFFER, how | MSG_DONTWAIT);
	if (n == 0 || (n < 0 && !only_later()))
		side_done(from, n);
	if (n <= 0 || to->broken)
		return;
	sent = send(to->fd, loop->buffer, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0 && !only_later()) {
		side_failed(to, errno);
		return;
	}
	set_blocked(from, sent < n);
	if (sent <= 0)
		return;
	/* If the proxy is killed here, the next proxy finds more bytes sent than taken. */
	if (!discard(from->fd, loop->buffer, sent)) {
		conn_close(from->conn, END_FAILED);
		return;
	}
	from->bytes += sent;
	counter_add(&loop->counters.bytes[from - from->conn->side], sent);
	if (!from->conn->gone)
		phase_refresh(from->conn);
}

/* --- The server's side -------------------------------------------------------- */

static void side_close(struct side *side, bool reset)
{
	struct conn *conn = side->conn;

	if (side->fd < 0)
		return;
	/*
	 * epoll watches a socket as long as any process has it open. The service manager keeps some
	 * sockets open, and timerwheel-guard copies sockets for a moment.
	 */
	if (side->watched)
		epoll_ctl(conn->loop->epoll, EPOLL_CTL_DEL, side->fd, NULL);
	if (reset)
		socket_reset(side->fd);
	else
		socket_end(side->fd, conn->stored);
	side->fd = -1;
	side->watched = 0;
}

static bool no_resources(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS;
}

/* Connect to the next server. If none is left, end the connection with @end. */
static void conn_connect(struct conn *conn, enum end end)
{
	side_close(&conn->side[SERVER], true);
	counter_add(&conn->loop->counters.connect_failures, 1);
	if (!upstream_next(conn)) {
		conn_close(conn, no_resources(errno) ? END_FAILED : end);
		return;
	}
	store_conn(conn);
	phase_begin(conn, KIND_CONNECT);
	/* The timer also stores the cookie of the server's socket. */
	if (conn->lives)
		timers_arm(conn->loop->timers, &conn->life);
	conn_settle(conn);
}

static void conn_connected(struct conn *conn)
{
	int fd = conn->side[SERVER].fd, err = socket_error(fd);

	/* The port has no listener, and the kernel gave the socket the port that it connects to. */
	if (!err && socket_is_own_peer(fd))
		err = ECONNREFUSED;
	/* It was connected, has sent bytes, and has already failed. */
	if (err == EPIPE || (err == ECONNRESET && socket_unread(fd))) {
		side_failed(&conn->side[SERVER], err);
		err = 0;
	} else if (!err && !upstream_greet(conn)) {
		err = errno;
	}
	if (err) {
		log_seldom(LOG_WARNING, "server %s: %s; %s", options.to.target[conn->server].name,
			   strerror(err), upstream_advice(err));
		conn_connect(conn, END_REFUSED);
		return;
	}
	phase_begin(conn, KIND_IDLE);
	conn_settle(conn);
}

/* --- Events of a connection --------------------------------------------- */

static void side_ready(struct source *source, uint32_t events)
{
	struct side *side = (struct side *)source;
	struct conn *conn = side->conn;

	/* An earlier event of this turn has closed it. */
	if (conn->closed)
		return;
	if (conn->phase == KIND_CONNECT && side == &conn->side[SERVER]) {
		conn_connected(conn);
		return;
	}
	if (conn->phase == KIND_CONNECT) {
		/* The server still gets the bytes that the client sent before its reset. */
		if (events & EPOLLERR && !side->broken)
			side_failed(side, socket_error(side->fd));
		if (side->reset && !socket_unread(side->fd))
			side_end(side);
		return;
	}
	if (events & EPOLLERR)
		side_broken(side);
	/* A side that hangs up may have sent bytes before: read and write find out. */
	if (side->watched & EPOLLIN && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		pump(side);
	if (!conn->closed && side->watched & EPOLLOUT && events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		pump(other(side));
	if (!conn->closed)
		conn_settle(conn);
}

/*
 * Pass on bytes that epoll has not reported yet. After the process was stopped for a while, epoll
 * reports many sockets.
 */
static void look_again(struct conn *conn)
{
	int i;

	if (conn->phase == KIND_CONNECT)
		return;
	for (i = 0; i < 2 && !conn->closed; i++) {
		if (conn->side[i].watched & EPOLLIN)
			pump(&conn->side[i]);
	}
	if (!conn->closed)
		conn_settle(conn);
}

static void count_lateness(struct counters *counters, uint64_t late)
{
	static const unsigned int bounds[] = LATENESS_BOUNDS;
	unsigned int i = 0;

	while (i < ARRAY_SIZE(bounds) && late > bounds[i] * NSEC_PER_USEC)
		i++;
	counter_add(&counters->lateness[i], 1);
	counter_add(&counters->lateness_ns, late);
}

/*
 * The time at which a peer last took bytes that were sent to it, as far as the sockets tell. A
 * reader takes them from a send queue long after the proxy has sent them. The last acknowledgment
 * is assumed to be the relevant one; this errs at most once, because the number of bytes is kept.
 */
static uint64_t last_taken(struct conn *conn)
{
	struct progress progress;
	uint64_t last = 0, at;
	int i;

	for (i = 0; i < 2; i++) {
		struct side *side = &conn->side[i];

		if (!progress_of(side->fd, &progress) || progress.acked == side->acked)
			continue;
		side->acked = progress.acked;
		at = now_ns() - progress.ack_age;
		last = at > last ? at : last;
	}
	return last;
}

/* If a peer still takes bytes, let the timeout count from its last acknowledgment. */
static void look_at_readers(struct conn *conn)
{
	uint64_t timeout = options.timeout[conn->phase], last;

	if (conn->phase == KIND_CONNECT || timeout == TIME_NONE)
		return;
	last = last_taken(conn);
	if (last + timeout > conn->timer.deadline)
		conn->timer.deadline = last + timeout;
}

void conn_expired(struct conn *conn, struct timer *timer)
{
	struct counters *counters = &conn->loop->counters;
	uint64_t now = now_ns();

	if (timer == &conn->timer && timer->deadline <= now) {
		look_again(conn);
		/* While a server does not answer, a client's reset does not change the deadline. */
		if (conn->closed || (conn->gone && conn->phase != KIND_CONNECT))
			return;
		if (timer->deadline <= now)
			look_at_readers(conn);
	}
	/* A byte came, or was taken, when the timer was already due or nearly due. */
	if (timer->deadline > now) {
		counter_add(&counters->postponed, 1);
		timers_arm(conn->loop->timers, timer);
		return;
	}
	count_lateness(counters, now - timer->deadline);
	if (timer->kind == KIND_CONNECT) {
		log_seldom(LOG_WARNING, "server %s does not answer; see --connect-timeout",
			   options.to.target[conn->server].name);
		conn_connect(conn, END_TIMEOUT + KIND_CONNECT);
		return;
	}
	conn_close(conn, END_TIMEOUT + timer->kind);
}

/* --- Start -------------------------------------------------------------- */

static struct conn *conn_new(int client, int server)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	int i;

	if (!conn)
		return NULL;
	for (i = 0; i < 2; i++)
		conn->side[i] = (struct side) {
			.source.ready = side_ready, .conn = conn,
			.fd = i == CLIENT ? client : server,
		};
	conn->timer.conn = conn;
	conn->life.conn = conn;
	return conn;
}

void conn_enter(struct conn *conn, struct loop *loop)
{
	conn->loop = loop;
	LIST_INSERT_HEAD(&loop->conns, conn, all);
	LIST_INSERT_HEAD(&loop->by_id[conn->id % CONN_HASH], conn, same);
}

void conn_leave(struct conn *conn)
{
	LIST_REMOVE(conn, same);
	LIST_REMOVE(conn, all);
	atomic_fetch_sub(&conn->loop->load, 1);
}

void conn_accept(struct loop *loop, int fd, const union address *from)
{
	struct conn *conn = conn_new(fd, -1);

	if (conn) {
		conn->side[CLIENT].address = *from;
		/* While the threads end one after the other, the accepting thread still runs. */
		if (loop_give(loop, conn) || (loop_self && loop_give(loop_self, conn)))
			return;
		free(conn);
	}
	socket_reset(fd);
}

void conn_open(struct loop *loop, struct conn *conn)
{
	int fd = conn->side[CLIENT].fd;

	socket_prepare(fd);
	conn->id = cookie_of(fd);
	conn->opened = loop->now;
	conn->header = options.proxy_protocol;
	conn->server = loop->turn++ % options.to.n;
	conn->tries = options.to.n;
	conn_enter(conn, loop);
	counter_add(&loop->counters.accepted, 1);
	if (!upstream_next(conn)) {
		conn_close(conn, no_resources(errno) ? END_FAILED : END_REFUSED);
		return;
	}
	conn->lives = options.timeout[KIND_LIFETIME] != TIME_NONE;
	phase_begin(conn, KIND_CONNECT);
	if (conn->lives)
		timer_start(conn, &conn->life, KIND_LIFETIME);
	store_conn(conn);
	conn_settle(conn);
}

struct conn *conn_restore(struct loop *loop, const int fd[2], uint64_t id, uint64_t server_id)
{
	struct conn *conn = conn_new(fd[CLIENT], fd[SERVER]);
	unsigned int i;

	if (!conn)
		return NULL;
	for (i = 0; i < 2; i++) {
		socket_prepare(fd[i]);
		conn->side[i].address = address_of(fd[i], true);
	}
	for (i = 0; i < options.to.n; i++) {
		if (!memcmp(&options.to.target[i].at, &conn->side[SERVER].address,
			    sizeof(union address)))
			conn->server = i;
	}
	conn->tries = options.to.n - 1;
	conn->id = id;
	conn->server_id = server_id;
	conn->opened = loop->now;
	conn->stored = true;
	conn->restored = true;
	conn_enter(conn, loop);
	atomic_fetch_add(&loop->load, 1);
	counter_add(&loop->counters.accepted, 1);
	counter_add(&loop->counters.restored, 1);
	return conn;
}

/*
 * Discard bytes that the previous proxy had forwarded but not yet taken from this socket. Return
 * false if more was taken than was forwarded, or if the bytes are missing.
 */
static bool catch_up(struct side *from, uint64_t read, uint64_t written)
{
	from->bytes = written;
	return written >= read && discard(from->fd, from->conn->loop->buffer, written - read);
}

void conn_resume(struct conn *conn)
{
	struct side *client = &conn->side[CLIENT], *server = &conn->side[SERVER];
	struct passed here, there;

	if (!passed_of(client->fd, false, &here) || !passed_of(server->fd, true, &there)) {
		conn_close(conn, END_FAILED);
		return;
	}
	if (there.written && conn->header)
		there.written -= upstream_header(conn, conn->loop->buffer);
	if (!catch_up(client, here.read, there.written) ||
	    !catch_up(server, there.read, here.written))
		conn_close(conn, END_FAILED);
	else
		conn_settle(conn);
}

struct conn *conn_find(struct loop *loop, uint64_t id)
{
	struct conn *conn;

	LIST_FOREACH(conn, &loop->by_id[id % CONN_HASH], same) {
		if (conn->id == id)
			break;
	}
	return conn;
}

/* --- End -------------------------------------------------------------------- */

/*
 * Has one side sent bytes that the other side does not have yet? A reset may have discarded such
 * bytes, and epoll may not have reported the reset yet. If the connection ends in the middle of a
 * transfer, all sockets can be empty because the next bytes are still in the network.
 */
static bool bytes_missing(const struct conn *conn, enum end end)
{
	bool silent = end != END_TIMEOUT + KIND_LIFETIME && end != END_STOPPED;
	const struct side *side;

	for (side = conn->side; side < conn->side + 2; side++) {
		if (socket_unread(side->fd) || socket_unacked(side->fd) ||
		    socket_failed(side->fd) || socket_has_gap(side->fd) ||
		    (!silent && !side->eof && socket_receives(side->fd)))
			return true;
	}
	return conn->gone;
}

void conn_close(struct conn *conn, enum end end)
{
	struct loop *loop = conn->loop;
	/* An end of file would make half an answer look complete. */
	bool reset = end >= END_RESET || (end >= END_TIMEOUT && bytes_missing(conn, end));
	int i;

	/* Count it before a peer can see that it has ended. */
	counter_add(&loop->counters.closed[end], 1);
	record(conn, end);
	timers_cancel(loop->timers, conn);
	store_forget(conn);
	for (i = 0; i < 2; i++) {
		set_blocked(&conn->side[i], false);
		side_close(&conn->side[i], reset);
	}
	conn_leave(conn);
	LIST_INSERT_HEAD(&loop->closed, conn, all);
	conn->closed = true;
}

void conns_reap(struct loop *loop)
{
	struct conn *conn;

	while ((conn = LIST_FIRST(&loop->closed))) {
		LIST_REMOVE(conn, all);
		free(conn);
	}
}

void conns_close(struct loop *loop)
{
	struct conn *conn;

	while ((conn = LIST_FIRST(&loop->conns)))
		conn_close(conn, END_STOPPED);
}
