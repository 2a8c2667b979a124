// SPDX-License-Identifier: GPL-2.0
/*
 * See store.h. This file: what comes out of the store.
 *
 * It is found in any order: wheels and ledgers with the number of their thread, a heap of sockets
 * and a heap of pipes. A timer names its connection's two sockets by their SO_COOKIE; the
 * ledger names for each pipe, by its inode, the connection that has bytes in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "options.h"
#include "store.h"

/* sd_listen_fds(3) */
#define FIRST_FD	3

/* A descriptor, and what tells it: cookie of a socket, inode of a pipe. */
struct found {
	uint64_t id;
	int fd;
};

static struct found *sockets, *pipe_ends;
static unsigned int nr_sockets, nr_pipe_ends;

static int by_id(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int option_of(int fd, int option)
{
	socklen_t len = sizeof(int);
	int value = 0;

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) ? 0 : value;
}

static bool hung_up(int fd)
{
	struct pollfd poll_fd = { .fd = fd };

	return poll(&poll_fd, 1, 0) > 0 && poll_fd.revents & POLLHUP;
}

/*
 * One that has hung up was only not dropped yet by the service manager, and is dropped here. It
 * cannot go on: whether by an end of file or by a reset may be known to the killed process
 * alone. It must not be reset: its last bytes may still be under way.
 */
static void collect_socket(int fd)
{
	struct found *found = &sockets[nr_sockets];
	socklen_t len = sizeof(found->id);

	if (hung_up(fd) || getsockopt(fd, SOL_SOCKET, SO_COOKIE, &found->id, &len)) {
		close(fd);
		return;
	}
	found->fd = fd;
	nr_sockets++;
}

static void collect_pipe(int fd)
{
	struct stat stat;

	if (fstat(fd, &stat)) {
		close(fd);
		return;
	}
	pipe_ends[nr_pipe_ends++] = (struct found) { .id = stat.st_ino, .fd = fd };
}

/* Kept by a former process, of which the user may not think when he says --listen anew. */
static void check_listener(int fd)
{
	struct sockaddr_storage at = { };
	socklen_t len = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &len) ||
	    len != options.listen.len || memcmp(&at, &options.listen.any, len))
		log_say(LOG_WARNING,
			"--listen %s: not used, because the socket that was kept listens elsewhere: stop and start to change it",
			options.listen.name);
}

static void collect_one(struct stored *stored, int fd, const char *name)
{
	unsigned int number;

	fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (!strcmp(name, "s")) {
		collect_socket(fd);
	} else if (!strcmp(name, "p")) {
		collect_pipe(fd);
	} else if (sscanf(name, "wheel%u", &number) == 1 && number < ARRAY_SIZE(stored->wheel)) {
		stored->wheel[number] = fd;
		if (number >= stored->threads)
			stored->threads = number + 1;
	} else if (sscanf(name, "ledger%u", &number) == 1 && number < ARRAY_SIZE(stored->ledger)) {
		stored->ledger[number] = fd;
	} else if (option_of(fd, SO_ACCEPTCONN) && stored->listener < 0) {
		/* "listener", or of a socket unit, by any name. */
		stored->listener = fd;
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
		if (!strcmp(name, "listener"))
			check_listener(fd);
	} else {
		log_say(LOG_WARNING, "unknown descriptor '%s' was passed; closing it",
			name);
		close(fd);
	}
}

void store_collect(struct stored *stored)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	char *names = getenv("LISTEN_FDNAMES"), *name;
	int i, n;

	*stored = (struct stored) { .listener = -1 };
	memset(stored->wheel, -1, sizeof(stored->wheel));
	memset(stored->ledger, -1, sizeof(stored->ledger));
	if (!pid || !fds || atoi(pid) != getpid())
		return;
	n = atoi(fds);
	sockets = xcalloc(n + 1, sizeof(*sockets));
	pipe_ends = xcalloc(n + 1, sizeof(*pipe_ends));
	for (i = 0; i < n; i++) {
		name = names ? strsep(&names, ":") : NULL;
		collect_one(stored, FIRST_FD + i, name ? name : "");
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
}

/* The socket, which is nobody else's from now on; -1: it did not come back. */
static int claim(uint64_t cookie)
{
	struct found wanted = { .id = cookie }, *found;
	int fd = -1;

	found = bsearch(&wanted, sockets, nr_sockets, sizeof(*sockets), by_id);
	if (found) {
		fd = found->fd;
		found->fd = -1;
	}
	return fd;
}

static void give_up(int fd)
{
	if (fd < 0)
		return;
	socket_reset(fd);
	close(fd);
}

static struct conn *conn_of(struct loop *loop, const struct sight *sight)
{
	struct conn *conn = conn_find(loop, sight->id);
	int fd[2];

	if (conn)
		return conn;
	fd[CLIENT] = claim(sight->id);
	fd[SERVER] = claim(sight->server_id);
	if (fd[CLIENT] >= 0 && fd[SERVER] >= 0)
		conn = conn_restore(loop, fd, sight->id, sight->server_id);
	if (conn) {
		store_kept(2);
	} else {
		give_up(fd[CLIENT]);
		give_up(fd[SERVER]);
	}
	return conn;
}

static struct timer *see(void *arg, const struct sight *sight)
{
	struct conn *conn = conn_of(arg, sight);

	if (!conn)
		return NULL;
	conn->lives = sight->lives;
	if (sight->kind == KIND_LIFETIME)
		return &conn->life;
	conn->phase = sight->kind;
	return &conn->timer;
}

static bool restore_pipe(struct loop **loops, unsigned int n, int in, int out, uint64_t inode)
{
	struct pipe *pipe = NULL;
	struct conn *conn;
	uint64_t owner;
	unsigned int i;

	for (i = 0; i < n && !pipe; i++)
		pipe = pipes_restore(&loops[i]->pipes, in, out, inode);
	if (!pipe)
		return false;
	store_kept(2);
	owner = pipe->ledger->owner;
	conn = conn_find(loops[i - 1], owner >> 1);
	if (conn && pipe->held)
		conn->side[owner & 1].pipe = pipe;
	else
		pipes_put(&loops[i - 1]->pipes, pipe);
	return true;
}

/* Sorted by inode the two ends of a pipe are neighbours. */
static void restore_pipes(struct loop **loops, unsigned int n)
{
	unsigned int i;
	int in, out;

	qsort(pipe_ends, nr_pipe_ends, sizeof(*pipe_ends), by_id);
	for (i = 0; i < nr_pipe_ends; i++) {
		in = pipe_ends[i].fd;
		if (i + 1 == nr_pipe_ends || pipe_ends[i].id != pipe_ends[i + 1].id) {
			close(in);
			continue;
		}
		out = pipe_ends[++i].fd;
		if ((fcntl(out, F_GETFL) & O_ACCMODE) == O_WRONLY) {
			in = out;
			out = pipe_ends[i - 1].fd;
		}
		if (!restore_pipe(loops, n, in, out, pipe_ends[i].id)) {
			close(in);
			close(out);
		}
	}
}

/*
 * The proxy was killed when it had taken an event but not yet acted on it, or without the pipe
 * that holds some of the bytes being kept: such a connection must not go on.
 */
static void drop_incomplete(struct loop *loop)
{
	struct conn *conn, *next;
	unsigned int line = 0;
	uint64_t owner;

	for (conn = LIST_FIRST(&loop->conns); conn; conn = next) {
		next = LIST_NEXT(conn, all);
		if (!conn->timer.armed || (conn->lives && !conn->life.armed))
			conn_close(conn, REASON_TIMEOUT);
	}
	while ((owner = pipes_lost(&loop->pipes, &line))) {
		conn = conn_find(loop, owner >> 1);
		if (conn)
			conn_close(conn, REASON_FAILED);
	}
	conns_reap(loop);
}

unsigned int store_restore(struct loop **loops, unsigned int n)
{
	struct conn *conn, *next;
	unsigned int i, total = 0;

	if (!sockets)
		return 0;
	qsort(sockets, nr_sockets, sizeof(*sockets), by_id);
	for (i = 0; i < n; i++)
		timers_each(loops[i]->timers, see, loops[i]);
	restore_pipes(loops, n);
	for (i = 0; i < n; i++)
		drop_incomplete(loops[i]);
	for (i = 0; i < nr_sockets; i++)
		give_up(sockets[i].fd);
	for (i = 0; i < n; i++) {
		for (conn = LIST_FIRST(&loops[i]->conns); conn; conn = next) {
			next = LIST_NEXT(conn, all);
			conn_resume(conn);
		}
		conns_reap(loops[i]);
		timers_flush(loops[i]->timers);
		total += loops[i]->counters.open;
	}
	free(sockets);
	free(pipe_ends);
	return total;
}
