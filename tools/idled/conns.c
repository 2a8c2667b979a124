// SPDX-License-Identifier: GPL-2.0
/*
 * The connections, in a table by descriptor. Descriptors are reused, so each has a generation that
 * grows with every use. Both together are the key of the timer, so no two connections ever share a
 * key.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "idled.h"
#include "util.h"

#define BUFFER	4096

struct conn {
	__u32 generation;
	bool open;
	bool refreshing;	/* in the batch of this turn */
	__u64 heard;		/* when it was accepted, or its last bytes were read, in ns */
	char *unsent;		/* bytes that the peer has not taken: do not read before */
	__u32 unsent_len;
	__u32 unsent_done;
};

static struct conn *conns;
static __u32 nr_conns;
static int epoll_fd, listener_fd;
static bool full;		/* max_connections are open: do not accept */

/* For this number of idle connections: the delay of the timer, and of the close. */
#define LATE	65536
static __u64 fired_late[LATE], closed_late[LATE];
static __u64 nr_late;

static __u64 key_of(int fd)
{
	return (__u64)conns[fd].generation << 32 | (__u32)fd;
}

/* The descriptor, or -1 if that connection no longer exists. */
static int fd_of(__u64 key)
{
	__u32 fd = (__u32)key;

	if (fd < nr_conns && conns[fd].open && conns[fd].generation == key >> 32)
		return fd;
	return -1;
}

static void watch(int op, int fd, __u32 events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (epoll_ctl(epoll_fd, op, fd, &event))
		die("epoll_ctl on descriptor %d: %s", fd, strerror(errno));
}

void conns_init(int epoll, int listener)
{
	epoll_fd = epoll;
	listener_fd = listener;
	/* Descriptors are small numbers, so the table has an entry for each. */
	nr_conns = options.max_connections + 64;
	conns = xcalloc(nr_conns, sizeof(*conns));
	watch(EPOLL_CTL_ADD, listener, EPOLLIN);
}

static void conn_close(int fd)
{
	struct conn *conn = &conns[fd];

	close(fd);
	free(conn->unsent);
	conn->unsent = NULL;
	conn->open = false;
	counts.open--;
	if (full) {
		full = false;
		watch(EPOLL_CTL_ADD, listener_fd, EPOLLIN);
	}
}

static void conn_gone(int fd, __u64 *count)
{
	(*count)++;
	timers_remove(key_of(fd));
	conn_close(fd);
}

static void conn_open(int fd)
{
	struct conn *conn = &conns[fd];

	conn->generation++;
	conn->open = true;
	conn->refreshing = false;
	conn->heard = turn_time;
	counts.accepted++;
	counts.open++;
	if (counts.open > counts.open_max)
		counts.open_max = counts.open;
	watch(EPOLL_CTL_ADD, fd, EPOLLIN);
	timers_add(key_of(fd));
}

void conns_accept(void)
{
	int fd;

	for (;;) {
		if (counts.open == options.max_connections) {
			/* Further clients wait in the kernel until a connection is closed. */
			full = true;
			watch(EPOLL_CTL_DEL, listener_fd, 0);
			say("%u connections are open, no more are taken (--max-connections)",
			    counts.open);
			return;
		}
		fd = accept4(listener_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			if (errno != EAGAIN)
				say("accept: %s", strerror(errno));
			return;
		}
		if ((__u32)fd >= nr_conns)
			die("descriptor %d is larger than expected", fd);
		conn_open(fd);
	}
}

static void conn_refresh(int fd)
{
	if (conns[fd].refreshing)
		return;
	conns[fd].refreshing = true;
	timers_refresh(key_of(fd));
}

void conns_refresh_done(__u64 key)
{
	int fd = fd_of(key);

	if (fd >= 0)
		conns[fd].refreshing = false;
}

/* Send data, and keep the bytes that the peer does not take. False: the connection failed. */
static bool conn_send(int fd, const char *data, __u32 len)
{
	struct conn *conn = &conns[fd];
	ssize_t sent = send(fd, data, len, MSG_NOSIGNAL);

	if (sent < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return false;
		sent = 0;
	}
	if (sent == len)
		return true;
	conn->unsent = malloc(len - sent);
	if (!conn->unsent)
		return false;
	memcpy(conn->unsent, data + sent, len - sent);
	conn->unsent_len = len - sent;
	conn->unsent_done = 0;
	watch(EPOLL_CTL_MOD, fd, EPOLLOUT);
	return true;
}

/* Send more of the kept bytes. False: the connection failed. */
static bool conn_send_rest(int fd)
{
	struct conn *conn = &conns[fd];
	ssize_t sent = send(fd, conn->unsent + conn->unsent_done,
			    conn->unsent_len - conn->unsent_done, MSG_NOSIGNAL);

	if (sent < 0)
		return errno == EAGAIN || errno == EINTR;
	conn->unsent_done += sent;
	if (conn->unsent_done < conn->unsent_len)
		return true;
	free(conn->unsent);
	conn->unsent = NULL;
	watch(EPOLL_CTL_MOD, fd, EPOLLIN);
	return true;
}

enum outcome { NOTHING, GOT_BYTES, PEER_CLOSED, BROKEN };

/* Read once and echo. */
static enum outcome conn_receive(int fd)
{
	char buffer[BUFFER];
	ssize_t got = recv(fd, buffer, sizeof(buffer), 0);

	if (!got)
		return PEER_CLOSED;
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? NOTHING : BROKEN;
	counts.bytes += got;
	conns[fd].heard = turn_time;
	return conn_send(fd, buffer, got) ? GOT_BYTES : BROKEN;
}

void conns_ready(int fd, __u32 events)
{
	/* It may have been closed earlier in this turn. */
	if (!conns[fd].open)
		return;
	if (conns[fd].unsent) {
		if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP) && !conn_send_rest(fd))
			conn_gone(fd, &counts.closed_error);
		return;
	}
	switch (conn_receive(fd)) {
	case GOT_BYTES:
		conn_refresh(fd);
		break;
	case PEER_CLOSED:
		conn_gone(fd, &counts.closed_peer);
		break;
	case BROKEN:
		conn_gone(fd, &counts.closed_error);
		break;
	case NOTHING:
		break;
	}
}

static void count_idle_close(__u64 deadline, __u64 fired)
{
	fired_late[nr_late % LATE] = fired - deadline;
	closed_late[nr_late % LATE] = now_ns() - deadline;
	nr_late++;
	counts.closed_idle++;
	if (counts.closed_idle % options.report == 0)
		say("closed %s idle connections so far, %s are open",
		    commas(counts.closed_idle), commas(counts.open - 1));
}

/* Handle the event of a connection that has been idle for too long. */
void conns_expired(__u64 key, __u64 deadline, __u64 fired)
{
	int fd = fd_of(key);

	if (fd < 0) {
		counts.stale++;
		return;
	}
	/*
	 * Bytes may have arrived since this turn began. Check again, so that no connection is
	 * closed that has sent data in time. Its timer has ended, so it needs a new one.
	 */
	if (!conns[fd].unsent && conn_receive(fd) == GOT_BYTES) {
		counts.last_look++;
		timers_add(key);
		return;
	}
	/* Its timer must agree with what was read. */
	counts.early += now_ns() - conns[fd].heard < options.idle;
	count_idle_close(deadline, fired);
	conn_close(fd);
}

/* Close a connection whose timer could not be armed. */
void conns_unarmed(__u64 key, int error)
{
	int fd = fd_of(key);

	if (fd < 0)
		return;
	say("no timer for a connection, closing it: %s", strerror(error));
	counts.closed_error++;
	conn_close(fd);
}

static int compare(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void report_lateness(const char *what, __u64 *late)
{
	__u64 n = nr_late < LATE ? nr_late : LATE;

	qsort(late, n, sizeof(*late), compare);
	say("%s: min %s, median %s, max %s", what,
	    duration(late[0]), duration(late[n / 2]), duration(late[n - 1]));
}

void conns_report_lateness(void)
{
	if (!nr_late)
		return;
	report_lateness("their timers fired late by", fired_late);
	report_lateness("idle ones were closed late by", closed_late);
}
