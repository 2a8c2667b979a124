// SPDX-License-Identifier: GPL-2.0
/*
 * See store.h. This file restores descriptors from the store.
 *
 * They arrive in any order: listening sockets, wheels with the number of their thread, and sockets
 * of connections. A timer identifies its connection's two sockets by their SO_COOKIE.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "listener.h"
#include "log.h"
#include "store.h"

/* A socket of a connection. */
struct found {
	uint64_t cookie;
	int fd;			/* -1: a connection has it again */
	struct conn *conn;	/* the connection whose client it is */
};

static struct found *sockets;
static unsigned int nr_sockets;

static int by_cookie(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return (x->cookie > y->cookie) - (x->cookie < y->cookie);
}

static bool hung_up(int fd)
{
	struct pollfd poll_fd = { .fd = fd };

	return poll(&poll_fd, 1, 0) > 0 && poll_fd.revents & POLLHUP;
}

/*
 * Collect a socket of a connection. Drop a socket that has hung up, as the service manager would
 * have done soon. Its connection cannot continue, because only the killed process may have known
 * whether it ended by an end of file or a reset. It must not be reset, because its last bytes may
 * still be in transit.
 */
static bool collect_socket(int fd)
{
	uint64_t cookie = hung_up(fd) ? 0 : cookie_of(fd);

	if (cookie)
		sockets[nr_sockets++] = (struct found) { .cookie = cookie, .fd = fd };
	return cookie;
}

/* Collect a wheel with exactly a name that the previous proxy has written: "wheel0" and so on. */
static bool collect_wheel(struct stored *stored, int fd, const char *name)
{
	unsigned int number;
	char again[32];

	if (sscanf(name, "wheel%u", &number) != 1 || number >= ARRAY_SIZE(stored->wheel))
		return false;
	snprintf(again, sizeof(again), "wheel%u", number);
	if (strcmp(name, again) || stored->wheel[number] >= 0)
		return false;
	stored->wheel[number] = fd;
	if (number >= stored->threads)
		stored->threads = number + 1;
	return true;
}

/* Collect "listener", or a listening socket of a socket unit, which has any other name. */
static bool collect_listener(struct stored *stored, int fd, const char *name)
{
	socklen_t len = sizeof(int);
	int listens = 0, protocol = 0;

	getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len);
	if (!listens || stored->listeners == ARRAY_SIZE(stored->listener))
		return false;
	/*
	 * An AF_UNIX socket cannot send a reset, so half an answer would look like a whole one.
	 * MPTCP counts bytes for each of its paths.
	 */
	getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len);
	if (protocol != IPPROTO_TCP)
		log_usage("the socket unit's socket '%s' is not TCP; see timerwheel-proxy(8)",
			  name);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	stored->listener[stored->listeners].fd = fd;
	stored->listener[stored->listeners++].own = !strcmp(name, "listener");
	return true;
}

static void collect_one(struct stored *stored, int fd, const char *name)
{
	/* A socket unit may have any name, "s" included. */
	if (collect_listener(stored, fd, name))
		return;
	if (!strcmp(name, "s")) {
		if (!collect_socket(fd))
			close(fd);
	} else if (!collect_wheel(stored, fd, name)) {
		log_say(LOG_WARNING, "unknown descriptor '%s' was passed; closing it", name);
		close(fd);
	}
}

void store_collect(struct stored *stored)
{
	char **names = NULL;
	int i, n = sd_listen_fds_with_names(1, &names);

	*stored = (struct stored) { };
	memset(stored->wheel, -1, sizeof(stored->wheel));
	if (n < 0)
		log_say(LOG_WARNING, "cannot use what the service manager kept: %s",
			strerror(-n));
	if (n <= 0)
		return;
	sockets = xcalloc(n, sizeof(*sockets));
	for (i = 0; i < n; i++) {
		collect_one(stored, SD_LISTEN_FDS_START + i, names[i]);
		free(names[i]);
	}
	free(names);
}

static struct found *find(uint64_t cookie)
{
	struct found wanted = { .cookie = cookie };

	return bsearch(&wanted, sockets, nr_sockets, sizeof(*sockets), by_cookie);
}

/* Take a found socket. Returns -1 if it did not come back or is already taken. */
static int claim(struct found *found)
{
	int fd = found ? found->fd : -1;

	if (found)
		found->fd = -1;
	return fd;
}

static bool has_timers(const struct conn *conn)
{
	return conn->timer.armed && (!conn->lives || conn->life.armed);
}

static void change_loop(struct conn *conn, struct loop *to)
{
	conn_leave(conn);
	conn_enter(conn, to);
	atomic_fetch_add(&to->load, 1);
}

struct conn *restore_conn(struct loop *loop, uint64_t id, uint64_t server_id)
{
	struct found *client = find(id);
	struct conn *conn = client ? client->conn : NULL;
	int fd[2];

	/* See move(). All timers of the other wheel were already handled. */
	if (conn && conn->loop != loop) {
		if (has_timers(conn))
			return NULL;
		timers_cancel(conn->loop->timers, conn);
		change_loop(conn, loop);
	}
	if (conn)
		return conn;
	fd[CLIENT] = claim(client);
	fd[SERVER] = claim(find(server_id));
	if (fd[CLIENT] >= 0 && fd[SERVER] >= 0)
		conn = conn_restore(loop, fd, id, server_id);
	if (conn) {
		client->conn = conn;
		store_kept(conn);
	} else {
		socket_reset(fd[CLIENT]);
		socket_reset(fd[SERVER]);
	}
	return conn;
}

/* The kind of the timer whose event was taken. The sockets show the phase. */
static enum kind taken_of(const struct conn *conn)
{
	struct passed here = { }, there = { };

	if (conn->timer.armed)
		return KIND_LIFETIME;
	passed_of(conn->side[CLIENT].fd, false, &here);
	passed_of(conn->side[SERVER].fd, true, &there);
	if (there.connecting)
		return KIND_CONNECT;
	return here.ended || there.ended ? KIND_HALF_CLOSE : KIND_IDLE;
}

/*
 * Close connections without a timer: the previous proxy had taken the event, and was killed before
 * it could close them.
 */
static void drop_expired(struct loop *loop)
{
	struct conn *conn, *next;

	for (conn = LIST_FIRST(&loop->conns); conn; conn = next) {
		next = LIST_NEXT(conn, all);
		if (!has_timers(conn))
			conn_close(conn, END_TIMEOUT + taken_of(conn));
	}
}

/*
 * Move a connection to another thread. Arm its timers in the new wheel before removing them from
 * the old one. If the proxy is killed in between, the next proxy finds some timers twice, and all
 * of them in one of the wheels.
 */
static void move(struct conn *conn, struct loop *to)
{
	struct loop *from = conn->loop;

	change_loop(conn, to);
	timers_arm(to->timers, &conn->timer);
	if (conn->lives)
		timers_arm(to->timers, &conn->life);
	timers_flush(to->timers);
	if (conn->closed)
		return;
	timers_cancel(from->timers, conn);
	conn->timer.armed = true;
	conn->life.armed = conn->lives;
}

/* Give each thread the same number: threads were added, or some threads lost more connections. */
static void balance(struct loop *loop)
{
	struct loop *to;

	while ((to = least_loaded(loop))->load + 1 < loop->load)
		move(LIST_FIRST(&loop->conns), to);
	timers_flush(loop->timers);
}

static void resume(struct loop *loop)
{
	struct conn *conn, *next;

	for (conn = LIST_FIRST(&loop->conns); conn; conn = next) {
		next = LIST_NEXT(conn, all);
		conn_resume(conn);
	}
	conns_reap(loop);
	timers_flush(loop->timers);
}

unsigned int store_restore(void)
{
	unsigned int i, total = 0;

	if (!sockets)
		return 0;
	qsort(sockets, nr_sockets, sizeof(*sockets), by_cookie);
	for (i = 0; i < options.threads; i++)
		timers_each(loops[i]->timers);
	for (i = 0; i < options.threads; i++)
		drop_expired(loops[i]);
	for (i = 0; i < options.threads; i++)
		balance(loops[i]);
	for (i = 0; i < options.threads; i++) {
		resume(loops[i]);
		total += loops[i]->load;
	}
	for (i = 0; i < nr_sockets; i++)
		socket_reset(sockets[i].fd);
	free(sockets);
	return total;
}
