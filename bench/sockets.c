// SPDX-License-Identifier: GPL-2.0
/*
 * Deadlines of TCP connections, with timerwheel alone: an ADD_SOCKET, the visit of a connection
 * that need not end yet, and an abort with all its consequences: the reset, both ends of the
 * connection, and the event.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "wheel.h"

#define CONNECTIONS	1000U
#define EVENTS		256
#define TIMEOUT		(20 * NSEC_PER_MSEC)
#define VISITS		1000		/* of each connection */

static int here[CONNECTIONS], peer[CONNECTIONS];

static void must(bool right, const char *what)
{
	if (!right)
		die("%s had a wrong result: this is not a measurement", what);
}

static void connect_all(void)
{
	struct rlimit limit = { 2 * CONNECTIONS + 64, 2 * CONNECTIONS + 64 };
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(addr);
	__u32 i;

	must(!setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
	must(!bind(fd, (void *)&addr, len) && !listen(fd, 128) &&
	     !getsockname(fd, (void *)&addr, &len), "listen");
	for (i = 0; i < CONNECTIONS; i++) {
		peer[i] = socket(AF_INET, SOCK_STREAM, 0);
		must(!connect(peer[i], (void *)&addr, len), "connect");
		here[i] = accept(fd, NULL, NULL);
		must(here[i] >= 0, "accept");
	}
	close(fd);
}

static void close_all(void)
{
	__u32 i;

	for (i = 0; i < CONNECTIONS; i++) {
		close(here[i]);
		close(peer[i]);
	}
}

/* Watch all connections. Returns the time in ns. */
static __u64 watch(int wheel, __u32 kind, __u64 time, __u32 flags)
{
	struct timerwheel_add_socket *elems = xcalloc(CONNECTIONS, sizeof(*elems));
	struct timerwheel_batch batch = {
		.size = sizeof(batch), .elems = (unsigned long)elems, .count = CONNECTIONS,
		.elem_size = sizeof(*elems),
	};
	__u64 start;
	__u32 i;

	for (i = 0; i < CONNECTIONS; i++) {
		elems[i].key = i;
		elems[i].deadline = time;
		elems[i].fd = here[i];
		elems[i].kind = kind;
		elems[i].flags = flags;
	}
	start = now_ns();
	must(ioctl(wheel, TIMERWHEEL_IOC_ADD_SOCKET, &batch) == CONNECTIONS, "ADD_SOCKET");
	start = now_ns() - start;
	for (i = 0; i < CONNECTIONS; i++)
		must(elems[i].result == TIMERWHEEL_WAS_NONE, "ADD_SOCKET");
	free(elems);
	return start;
}

/* Both ends stay open, so no connection is half closed: it is visited, and queued again. */
static void visits(void)
{
	struct timerwheel_stats before, after;
	struct meter meter;
	double busy;
	int wheel;

	wheel = wheel_open();
	result("socket_add", CONNECTIONS, CONNECTIONS,
	       (double)watch(wheel, TIMERWHEEL_SOCKET_HALF_CLOSED, TIMEOUT, 0) / CONNECTIONS,
	       "ns");
	wheel_stats(wheel, &before);
	meter_start(&meter);
	sleep_until(now_ns() + VISITS * TIMEOUT);
	wheel_stats(wheel, &after);
	/* Before the meter measures the background. A thousand visits outweigh the close. */
	close(wheel);
	busy = meter_stop(&meter);
	must(after.requeues - before.requeues > CONNECTIONS * VISITS / 2, "a visit");
	result("socket_visit", CONNECTIONS, 0, busy / (after.requeues - before.requeues), "ns");
}

static void aborts(void)
{
	struct timerwheel_event events[EVENTS];
	struct pollfd poller = { .events = POLLIN };
	struct meter meter;
	__u32 ended = 0;
	ssize_t n, i;
	int wheel;

	wheel = wheel_open();
	poller.fd = wheel;
	watch(wheel, TIMERWHEEL_SOCKET_LIFETIME, NSEC_PER_SEC, TIMERWHEEL_SOCKET_ABORT);
	sleep_until(now_ns() + NSEC_PER_SEC / 2);
	meter_start(&meter);
	while (ended < CONNECTIONS) {
		must(poll(&poller, 1, -1) == 1, "poll");
		n = read(wheel, events, sizeof(events));
		must(n > 0, "read");
		for (i = 0; i < n / (ssize_t)sizeof(*events); i++, ended++)
			must(events[i].flags == TIMERWHEEL_EVENT_ABORTED, "an abort");
	}
	result("socket_abort", CONNECTIONS, 0, meter_stop(&meter) / CONNECTIONS, "ns");
	close(wheel);
}

void bench_sockets(void)
{
	progress("%u connections with a deadline", CONNECTIONS);
	connect_all();
	visits();
	aborts();
	close_all();
}
