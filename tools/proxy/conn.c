// SPDX-License-Identifier: GPL-2.0
/* See conn.h. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"
#include "listener.h"
#include "log.h"
#include "options.h"
#include "pump.h"
#include "store.h"

static const char *const reasons[REASONS] = {
	[REASON_DONE] = "done",
	[REASON_TIMEOUT] = "timeout",
	[REASON_RESET] = "reset",
	[REASON_REFUSED] = "server not reached",
	[REASON_FAILED] = "no resources",
	[REASON_STOPPED] = "stopped",
};

static uint64_t timeout_of(enum kind kind)
{
	switch (kind) {
	case KIND_CONNECT:
		return options.connect;
	case KIND_IDLE:
		return options.idle;
	case KIND_HALF_CLOSE:
		return options.half_close;
	default:
		return options.lifetime;
	}
}

/* When it would be over if it began now. The clock is read anew: a turn may be long. */
static uint64_t deadline_of(enum kind kind)
{
	uint64_t timeout = timeout_of(kind);

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
	if (conn->timer.deadline == TIME_NONE)
		return;
	conn->timer.deadline = deadline_of(conn->phase);
	timers_refresh(conn->loop->timers, &conn->timer);
}

/* --- Which events are wanted -------------------------------------------- */

static struct side *other(struct side *side)
{
	return &side->conn->side[side == &side->conn->side[CLIENT]];
}

static uint32_t wanted(struct side *side)
{
	uint32_t events = 0;

	if (side->conn->phase == KIND_CONNECT)
		return side == &side->conn->side[SERVER] ? EPOLLOUT : 0;
	/* Nothing more is read before the other has taken what was. */
	if (!side->eof && !side->pipe)
		events |= EPOLLIN;
	if (other(side)->pipe)
		events |= EPOLLOUT;
	return events;
}

/*
 * A socket from which nothing is wanted is not watched at all: it might hang up, and epoll would
 * say so again and again.
 */
static bool side_watch(struct side *side)
{
	struct epoll_event event = { .events = wanted(side), .data.ptr = &side->source };
	int op = !side->watched ? EPOLL_CTL_ADD : event.events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;

	if (event.events == side->watched)
		return true;
	side->watched = event.events;
	return !epoll_ctl(side->conn->loop->epoll, op, side->fd, &event);
}

/* After anything has happened: what now? */
static void conn_settle(struct conn *conn)
{
	struct side *client = &conn->side[CLIENT], *server = &conn->side[SERVER];

	if (client->shut && server->shut) {
		conn_close(conn, REASON_DONE);
		return;
	}
	if (conn->phase == KIND_IDLE && (client->eof || server->eof))
		phase_begin(conn, KIND_HALF_CLOSE);
	if (!side_watch(client) || !side_watch(server)) {
		log_seldom(LOG_WARNING, "epoll_ctl: %s; raise fs.epoll.max_user_watches",
			   strerror(errno));
		conn_close(conn, REASON_FAILED);
	}
}

/* --- What happens to a connection --------------------------------------- */

static void conn_pump(struct conn *conn, struct side *from)
{
	uint64_t moved;

	switch (pump(from, other(from), &moved)) {
	case PUMP_OK:
		break;
	case PUMP_BROKEN:
		conn_close(conn, REASON_RESET);
		return;
	case PUMP_NO_PIPE:
		log_seldom(LOG_WARNING, "cannot create a pipe: %s; raise LimitNOFILE=",
			   strerror(errno));
		conn_close(conn, REASON_FAILED);
		return;
	}
	if (!moved)
		return;
	counter_add(&conn->loop->counters.bytes[from - conn->side], moved);
	phase_refresh(conn);
}

static void conn_refused(struct conn *conn, int err)
{
	log_seldom(LOG_WARNING, "server %s: %s; is it running?", options.to.name, strerror(err));
	conn_close(conn, REASON_REFUSED);
}

static void conn_connected(struct conn *conn)
{
	socklen_t len = sizeof(int);
	int err = 0;

	getsockopt(conn->side[SERVER].fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (err) {
		conn_refused(conn, err);
		return;
	}
	phase_begin(conn, KIND_IDLE);
	conn_settle(conn);
}

static void side_ready(struct source *source, uint32_t events)
{
	struct side *side = (struct side *)source;
	struct conn *conn = side->conn;

	/* By something that came earlier in this turn. */
	if (conn->closed)
		return;
	if (conn->phase == KIND_CONNECT) {
		conn_connected(conn);
		return;
	}
	if (events & EPOLLERR) {
		conn_close(conn, REASON_RESET);
		return;
	}
	/* Who hangs up may have said something before: read and write find out. */
	if (side->watched & EPOLLIN && events & (EPOLLIN | EPOLLHUP))
		conn_pump(conn, side);
	if (!conn->closed && side->watched & EPOLLOUT && events & (EPOLLOUT | EPOLLHUP))
		conn_pump(conn, other(side));
	if (!conn->closed)
		conn_settle(conn);
}

void conn_expired(struct conn *conn, struct timer *timer)
{
	struct counters *counters = &conn->loop->counters;
	static const unsigned int bounds[] = LATENESS_BOUNDS;
	uint64_t now = now_ns(), late;
	unsigned int i = 0;

	/* A byte came when the timer was due already, or was about to be. */
	if (timer->deadline > now) {
		counter_add(&counters->put_off, 1);
		timers_arm(conn->loop->timers, timer);
		return;
	}
	late = now - timer->deadline;
	while (i < ARRAY_SIZE(bounds) && late > bounds[i] * NSEC_PER_USEC)
		i++;
	counter_add(&counters->lateness[i], 1);
	counter_add(&counters->lateness_ns, late);
	counter_add(&counters->timeouts[timer->kind], 1);
	if (timer->kind == KIND_CONNECT)
		log_seldom(LOG_WARNING, "server %s does not answer; see --connect-timeout",
			   options.to.name);
	conn_close(conn, REASON_TIMEOUT);
}

/* --- Beginning ------------------------------------------------------------ */

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len);
	return cookie;
}

static struct conn *conn_new(struct loop *loop, const int fd[2])
{
	struct conn *conn = calloc(1, sizeof(*conn));
	int i;

	if (!conn)
		return NULL;
	for (i = 0; i < 2; i++)
		conn->side[i] = (struct side) {
			.source.ready = side_ready, .conn = conn, .fd = fd[i],
		};
	conn->loop = loop;
	conn->timer.conn = conn;
	conn->life.conn = conn;
	conn->opened = loop->now;
	return conn;
}

static void conn_enter(struct conn *conn)
{
	struct loop *loop = conn->loop;

	LIST_INSERT_HEAD(&loop->conns, conn, all);
	LIST_INSERT_HEAD(&loop->by_id[conn->id % CONN_HASH], conn, same);
	counter_add(&loop->counters.accepted, 1);
	counter_add(&loop->counters.open, 1);
}

/* A socket on its way to the server, or -1. */
static int server_connect(void)
{
	const struct sockaddr *to = (const struct sockaddr *)&options.to.any;
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0 || !connect(fd, to, options.to.len) || errno == EINPROGRESS)
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

void socket_reset(int fd)
{
	static const struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	connect(fd, &nobody, sizeof(nobody));
}

void conn_open(struct loop *loop, int fd)
{
	int on = 1, i, fds[2] = { fd, server_connect() };
	struct conn *conn = fds[SERVER] < 0 ? NULL : conn_new(loop, fds);

	if (!conn) {
		log_seldom(LOG_WARNING, "server %s: %s; disconnecting the client", options.to.name,
			   strerror(errno));
		counter_add(&loop->counters.accepted, 1);
		counter_add(&loop->counters.closed[REASON_REFUSED], 1);
		socket_reset(fd);
		close(fd);
		if (fds[SERVER] >= 0)
			close(fds[SERVER]);
		return;
	}
	for (i = 0; i < 2; i++) {
		setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(fds[i], SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	}
	if (store_active()) {
		conn->id = cookie_of(fds[CLIENT]);
		conn->server_id = cookie_of(fds[SERVER]);
	} else {
		conn->id = ++loop->ids;
	}
	conn_enter(conn);
	conn->lives = options.lifetime != TIME_NONE;
	phase_begin(conn, KIND_CONNECT);
	if (conn->lives)
		timer_start(conn, &conn->life, KIND_LIFETIME);
	store_conn(conn);
	conn_settle(conn);
}

struct conn *conn_restore(struct loop *loop, const int fd[2], uint64_t id, uint64_t server_id)
{
	struct conn *conn = conn_new(loop, fd);

	if (!conn)
		return NULL;
	conn->id = id;
	conn->server_id = server_id;
	conn->stored = true;
	conn_enter(conn);
	counter_add(&loop->counters.restored, 1);
	return conn;
}

void conn_resume(struct conn *conn)
{
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

static void side_close(struct side *side, bool reset)
{
	struct conn *conn = side->conn;

	/*
	 * Closed here, it would still be open in the service manager, which drops it when it
	 * hangs up; and as long as it is open, epoll watches it.
	 */
	if (conn->stored && side->watched)
		epoll_ctl(conn->loop->epoll, EPOLL_CTL_DEL, side->fd, NULL);
	if (reset)
		socket_reset(side->fd);
	else if (conn->stored)
		shutdown(side->fd, SHUT_RDWR);
	close(side->fd);
}

void conn_close(struct conn *conn, enum reason reason)
{
	bool reset = reason == REASON_RESET || reason == REASON_REFUSED || reason == REASON_FAILED;
	struct loop *loop = conn->loop;
	int i;

	log_say(LOG_DEBUG, "connection %llu ends: %s", (unsigned long long)conn->id,
		reasons[reason]);
	timers_cancel(loop->timers, conn);
	store_forget(conn);
	side_close(&conn->side[CLIENT], reset);
	side_close(&conn->side[SERVER], reset);
	/* Last: killed in between, the connection must not go on without these bytes. */
	for (i = 0; i < 2; i++) {
		if (conn->side[i].pipe)
			pipes_put(&loop->pipes, conn->side[i].pipe);
	}
	LIST_REMOVE(conn, same);
	LIST_REMOVE(conn, all);
	LIST_INSERT_HEAD(&loop->closed, conn, all);
	conn->closed = true;
	counter_add(&loop->counters.open, -1);
	counter_add(&loop->counters.closed[reason], 1);
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
		conn_close(conn, REASON_STOPPED);
}
