// SPDX-License-Identifier: GPL-2.0
/* See idled.h. This file: options, the loop, messages to the user. */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "idled.h"
#include "util.h"

#define EVENTS	1024
/* Descriptors that are not connections: standard descriptors, wheel, epoll, signals... */
#define OTHERS	32

struct options options = {
	.listen = "127.0.0.1:7007",
	.idle = 30 * NSEC_PER_SEC,
	.report = 100,
};

struct counts counts;
__u64 turn_time;

static int epoll_fd, listener_fd, wheel_fd, signal_fd, second_fd = -1;

static const char usage_text[] =
"usage: idled [OPTION]...\n"
"\n"
"A TCP server that echoes what it receives and closes connections that have been\n"
"idle for too long: one wheel of /dev/timerwheel holds one timer for each.\n"
"Prints a summary and exits on SIGINT or SIGTERM.\n"
"\n"
"  -l, --listen ADDRESS:PORT    where to listen (127.0.0.1:7007; [::1]:7007; :7007)\n"
"  -i, --idle DURATION          close connections after this time without a byte (30s)\n"
"  -m, --max-connections N      maximum at a time (100000, or what ulimit -n allows)\n"
"  -r, --report N               report each N closed connections (100)\n"
"  -s, --stats                  a line of counts each second\n"
"  -V, --version                the version\n"
"  -h, --help                   this text\n";

static void parse_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "listen", required_argument, NULL, 'l' },
		{ "idle", required_argument, NULL, 'i' },
		{ "max-connections", required_argument, NULL, 'm' },
		{ "report", required_argument, NULL, 'r' },
		{ "stats", no_argument, NULL, 's' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	__u64 n;
	int c;

	while ((c = getopt_long(argc, argv, "l:i:m:r:sVh", longs, NULL)) != -1) {
		switch (c) {
		case 'l':
			options.listen = optarg;
			break;
		case 'i':
			if (!parse_duration(optarg, &options.idle) || !options.idle)
				die("--idle needs a time such as 30s or 1500ms, not '%s'", optarg);
			break;
		case 'm':
			if (!parse_count(optarg, &n) || !n || n > 4000000)
				die("--max-connections needs 1 to 4,000,000, not '%s'", optarg);
			options.max_connections = n;
			break;
		case 'r':
			if (!parse_count(optarg, &n) || !n || n > 1000000000)
				die("--report needs a number from 1 on, not '%s'", optarg);
			options.report = n;
			break;
		case 's':
			options.stats = true;
			break;
		case 'V':
			say_version();
			exit(EXIT_SUCCESS);
		case 'h':
			fputs(usage_text, stdout);
			exit(EXIT_SUCCESS);
		default:
			die("try --help");
		}
	}
	if (optind < argc)
		die("unexpected argument '%s'; try --help", argv[optind]);
}

/* ADDRESS:PORT, [ADDRESS]:PORT or :PORT */
static int listen_on(const char *where)
{
	struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
	};
	char host[64], *name = host;
	struct addrinfo *address;
	const char *port;
	int fd, err, on = 1;

	port = strrchr(where, ':');
	if (!port || port - where >= (ptrdiff_t)sizeof(host))
		die("--listen needs ADDRESS:PORT, not '%s'", where);
	memcpy(host, where, port - where);
	host[port - where] = '\0';
	if (*name == '[' && name[strlen(name) - 1] == ']') {
		name[strlen(name) - 1] = '\0';
		name++;
	}
	err = getaddrinfo(*name ? name : NULL, port + 1, &hints, &address);
	if (err)
		die("--listen %s: %s (it needs a numeric address and port)",
		    where, gai_strerror(err));
	fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, 4096))
		die("cannot listen on %s: %s", where, strerror(errno));
	freeaddrinfo(address);
	return fd;
}

static int open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		die("signalfd: %s", strerror(errno));
	return fd;
}

/* For --stats. */
static int open_seconds(void)
{
	struct itimerspec second = { .it_value.tv_sec = 1, .it_interval.tv_sec = 1 };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd < 0 || timerfd_settime(fd, 0, &second, NULL))
		die("timerfd: %s", strerror(errno));
	return fd;
}

static void watch(int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl: %s", strerror(errno));
}

static void raise_descriptors(void)
{
	__u32 want = options.max_connections ? options.max_connections : 100000;
	__u64 limit = raise_nofile(want + OTHERS);

	if (limit < want + OTHERS) {
		if (options.max_connections || limit <= OTHERS)
			die("%u connections need %u descriptors, the limit is %llu: %s",
			    want, want + OTHERS, limit,
			    "run as root, raise ulimit -n, or lower --max-connections");
		want = limit - OTHERS;
	}
	options.max_connections = want;
}

static void start(void)
{
	raise_descriptors();
	wheel_fd = timers_init();
	listener_fd = listen_on(options.listen);
	signal_fd = open_signals();
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		die("epoll_create1: %s", strerror(errno));
	conns_init(epoll_fd, listener_fd);
	watch(wheel_fd);
	watch(signal_fd);
	if (options.stats) {
		second_fd = open_seconds();
		watch(second_fd);
	}
	say("listening on %s, closes what is idle for %s, takes %s connections",
	    options.listen, duration(options.idle), commas(options.max_connections));
}

static void stats_line(void)
{
	__u64 times;

	if (read(second_fd, &times, sizeof(times)) < 0)
		return;
	say("open %s, accepted %s, closed idle %s, by peer %s, refreshed %s, calls on the wheel %s",
	    commas(counts.open), commas(counts.accepted), commas(counts.closed_idle),
	    commas(counts.closed_peer), commas(counts.refreshed), commas(counts.calls));
}

/*
 * One turn: handle data of connections, then new connections, and then submit all changes of timers
 * at once. Take events only after that. The timer of a connection that has sent data in time has
 * been moved by then, which withdraws its event, if any. Returns false when it is time to end.
 */
static bool turn(void)
{
	struct epoll_event events[EVENTS];
	bool more = true, accept = false, expired = false;
	int i, n;

	n = epoll_wait(epoll_fd, events, EVENTS, -1);
	if (n < 0 && errno != EINTR)
		die("epoll_wait: %s", strerror(errno));
	turn_time = now_ns();
	for (i = 0; i < n; i++) {
		int fd = events[i].data.fd;

		if (fd == listener_fd)
			accept = true;
		else if (fd == wheel_fd)
			expired = true;
		else if (fd == signal_fd)
			more = false;
		else if (fd == second_fd)
			stats_line();
		else
			conns_ready(fd, events[i].events);
	}
	if (accept)
		conns_accept();
	timers_submit();
	if (expired)
		timers_collect();
	timers_submit();
	return more;
}

/* Print the summary. Returns false if the numbers are not consistent. */
static bool finish(void)
{
	__u32 timers = timers_close();
	bool right = timers == counts.open && !counts.stale && !counts.early;

	say("accepted %llu, closed idle %llu, closed by peer %llu, broken %llu, still open %u",
	    counts.accepted, counts.closed_idle, counts.closed_peer, counts.closed_error,
	    counts.open);
	say("most open at a time %u, received %llu bytes", counts.open_max, counts.bytes);
	say("refreshed %llu timers, %llu of them due already; spared %llu more at the last look",
	    counts.refreshed, counts.last_moment, counts.last_look);
	conns_report_lateness();
	say("calls on the wheel %llu, timers left %u, events without a connection %llu, %s, %s",
	    counts.calls, timers, counts.stale,
	    counts.early ? "SOME CLOSED TOO EARLY" : "none closed too early",
	    right ? "as it should be" : "THAT DOES NOT ADD UP");
	return right;
}

int main(int argc, char **argv)
{
	progname = "idled";
	parse_options(argc, argv);
	start();
	while (turn())
		;
	return finish() ? EXIT_SUCCESS : EXIT_FAILURE;
}
