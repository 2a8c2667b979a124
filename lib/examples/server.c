// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * usage: server SOCKET [MILLISECONDS [ring]]
 *
 * An echo server on a Unix socket that closes connections which are idle for MILLISECONDS (2000).
 * Each message postpones the timer of its connection in the deadline table. Try it with
 *
 *	server /tmp/echo & nc -U /tmp/echo
 *
 * The loop is the loop of libtimerwheel(3), so the server closes no live connection after it was
 * stopped. It has no queue, and so nothing to flush.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <timerwheel.h>

#define CONNS	1024		/* descriptors */
#define ROOM	64		/* events taken at a time */
#define PAUSE	100000000ULL	/* ns, after an accept that failed */

struct conn {
	uint64_t key;		/* of its timer: never used twice; 0: no connection */
	uint64_t deadline;	/* of its timer */
	uint32_t index;
	uint32_t generation;
};

static struct conn conns[CONNS];	/* by descriptor, which is also the value of the timer */
static struct timerwheel *wheel;
static struct timerwheel_table table;
static uint64_t idle = 2000000000, last_key;
static int epoll, listener;

static void check(const char *what, bool right)
{
	if (right)
		return;
	perror(what);
	exit(1);
}

static void check_wheel(const char *what, long result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, timerwheel_strerror(result));
	exit(1);
}

static void watch(int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	check("epoll", !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

/* Accept again after a while, for example if too many files are open. No connection has key 0. */
static void pause_accept(void)
{
	struct timerwheel_add add = { .deadline = PAUSE };

	if (timerwheel_add(wheel, &add, 1) == 1 && add.result >= 0)
		check("epoll", !epoll_ctl(epoll, EPOLL_CTL_DEL, listener, NULL));
}

/* Add the timer of a connection, or replace it: an event that was not taken yet is withdrawn. */
static bool conn_arm(int fd, uint64_t key, uint64_t deadline)
{
	struct timerwheel_add add = {
		.key = key, .value = fd, .deadline = deadline, .flags = TIMERWHEEL_ABS,
	};

	if (timerwheel_add(wheel, &add, 1) != 1 || add.result < 0)
		return false;
	conns[fd] = (struct conn) {
		.key = key,
		.deadline = deadline,
		.index = add.index,
		.generation = add.generation,
	};
	return true;
}

static void conn_open(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		if (errno != EAGAIN)
			pause_accept();
		return;
	}
	if (fd >= CONNS || !conn_arm(fd, ++last_key, timerwheel_now(wheel) + idle)) {
		close(fd);
		return;
	}
	watch(fd);
}

static void conn_close(int fd)
{
	struct timerwheel_remove timer = { .key = conns[fd].key };

	/* If the element fails with -ENOENT, its event was already taken. */
	check_wheel("remove", timerwheel_remove(wheel, &timer, 1));
	conns[fd].key = 0;
	close(fd);
}

/* Read once, echo, and postpone the timeout. */
static void conn_read(int fd)
{
	struct conn *conn = &conns[fd];
	uint64_t deadline;
	char text[4096];
	ssize_t n = recv(fd, text, sizeof(text), 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0 || send(fd, text, n, MSG_NOSIGNAL) != n) {
		conn_close(fd);
		return;
	}
	deadline = timerwheel_now(wheel) + idle;
	if (timerwheel_table_refresh(&table, conn->index, conn->generation, deadline) ==
	    TIMERWHEEL_DONE)
		conn->deadline = deadline;
	else if (!conn_arm(fd, conn->key, deadline))
		conn_close(fd);
}

static void conn_expired(const struct timerwheel_event *event)
{
	int fd = event->value;
	struct conn *conn = &conns[fd];

	if (!event->key) {
		watch(listener);
		return;
	}
	/* The connection was closed in the meantime; another one may have its descriptor. */
	if (conn->key != event->key)
		return;
	conn_read(fd);
	/* It was armed again for a later deadline, now or before. */
	if (conn->key && event->deadline >= conn->deadline)
		conn_close(fd);
}

/* Take events until there are none. Only then the descriptor becomes readable again. */
static void expire(void)
{
	struct timerwheel_event events[ROOM];
	long n, i;

	do {
		n = timerwheel_take(wheel, events, ROOM);
		check_wheel("events", n);
		for (i = 0; i < n; i++)
			conn_expired(&events[i]);
	} while (n > 0);
}

static void start(int argc, char **argv)
{
	struct timerwheel_config config = { .capacity = CONNS, .table = true };
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	if (argc < 2 || strlen(argv[1]) >= sizeof(name.sun_path)) {
		fprintf(stderr, "usage: server SOCKET [MILLISECONDS [ring]]\n");
		exit(2);
	}
	strcpy(name.sun_path, argv[1]);
	if (argc > 2)
		idle = strtoull(argv[2], NULL, 0) * 1000000;
	if (argc > 3)
		config.ring = ROOM;
	check_wheel("wheel", timerwheel_open(&wheel, &config));
	check_wheel("table", timerwheel_table(wheel, &table));
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	check(argv[1], !bind(listener, (struct sockaddr *)&name, sizeof(name)));
	check(argv[1], !listen(listener, 128));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	watch(listener);
	watch(timerwheel_fd(wheel));
}

int main(int argc, char **argv)
{
	struct epoll_event ready[ROOM];
	int i, fd, n = 0;

	start(argc, argv);
	for (;;) {
		for (i = 0; i < n; i++) {
			fd = ready[i].data.fd;
			if (fd == listener)
				conn_open();
			else if (fd != timerwheel_fd(wheel) && conns[fd].key)
				conn_read(fd);
		}
		expire();
		n = epoll_wait(epoll, ready, ROOM, -1);
		/* EINTR: the server was stopped and continues. */
		check("epoll", n >= 0 || errno == EINTR);
	}
}
