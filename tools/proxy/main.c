// SPDX-License-Identifier: GPL-2.0
/*
 * timerwheel-proxy: a TCP proxy that ends connections which take too long. This file: start,
 * signals, watchdog, end. README.md describes the other files.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "http.h"
#include "listener.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "notify.h"
#include "options.h"
#include "record.h"
#include "store.h"
#include "timers.h"
#include "upstream.h"

/* Descriptors that are not connections: per thread, per --metrics, and for the whole process. */
#define FDS_OF_THREAD	4
#define FDS_OF_METRICS	(4 + HTTP_CLIENTS)
#define FDS_OF_ALL	96
/* Descriptors of a connection: its sockets. */
#define FDS_OF_CONN	2

static int signals, done;

static void count_descriptors(void)
{
	unsigned long others = options.threads * FDS_OF_THREAD +
			       options.metrics.n * FDS_OF_METRICS + FDS_OF_ALL;
	unsigned long want = options.max_connections * (unsigned long)FDS_OF_CONN + others;
	struct rlimit limit;
	rlim_t soft;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		log_die("getrlimit: %s", strerror(errno));
	soft = limit.rlim_cur;
	limit.rlim_cur = limit.rlim_max;
	/* The unit's system call filter does not allow it. */
	if (soft < limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit))
		limit.rlim_cur = soft;
	if (limit.rlim_cur < want && options.max_connections)
		limit.rlim_cur = raise_nofile(want);
	if (limit.rlim_cur < want || limit.rlim_cur < others + FDS_OF_CONN)
		log_die("%lu descriptors needed, %llu allowed; "
			"lower --max-connections or raise ulimit -n",
			want, (unsigned long long)limit.rlim_cur);
	if (options.max_connections)
		return;
	options.max_connections = CONNECTIONS_MAX;
	if ((limit.rlim_cur - others) / FDS_OF_CONN >= CONNECTIONS_MAX)
		return;
	options.max_connections = (limit.rlim_cur - others) / FDS_OF_CONN;
	log_say(LOG_NOTICE,
		"%llu descriptors are allowed, which is enough for %u connections; for more raise ulimit -n, in a unit LimitNOFILE=",
		(unsigned long long)limit.rlim_cur, options.max_connections);
}

/* Without a local port a connection is reset, but a client that is not accepted only waits. */
static void count_ports(bool chosen)
{
	unsigned int ports = upstream_ports();

	if (!ports || options.max_connections <= ports)
		return;
	if (chosen) {
		log_say(LOG_WARNING,
			"--max-connections is %u, but there are local ports for only %u connections to the servers; widen net.ipv4.ip_local_port_range or add server addresses with --to",
			options.max_connections, ports);
		return;
	}
	options.max_connections = ports;
	log_say(LOG_NOTICE,
		"there are local ports for %u connections to the servers; for more widen net.ipv4.ip_local_port_range or add server addresses with --to",
		ports);
}

static void open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	/* Block them for all threads. Ignore SIGPIPE, which a log without a reader raises. */
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* A log that has reached RLIMIT_FSIZE loses lines and does not end the proxy. */
	signal(SIGXFSZ, SIG_IGN);
	signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	done = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	if (signals < 0 || done < 0)
		log_die("signalfd: %s", strerror(errno));
}

static void start(void)
{
	struct stored stored;
	bool chosen = options.max_connections;
	unsigned int i, restored;

	store_collect(&stored);
	/* Each wheel needs its thread. */
	if (stored.threads > options.threads)
		options.threads = stored.threads;
	count_descriptors();
	count_ports(chosen);
	loops = xcalloc(options.threads, sizeof(*loops));
	for (i = 0; i < options.threads; i++)
		loops[i] = loop_open(i, stored.wheel[i], done);
	listeners_open(&stored);
	restored = store_restore();
	metrics_start();
	for (i = 0; i < options.threads; i++)
		loop_start(loops[i]);
	log_say(LOG_INFO, "%u threads, at most %u connections, deadlines in the %s; %s",
		options.threads, options.max_connections, timers_backend(loops[0]),
		store_active() ? "connections survive a restart" : "a restart ends connections");
	if (access("/dev/timerwheel", F_OK) && !getenv("TIMERWHEEL_BACKEND"))
		log_say(LOG_NOTICE, "there is no /dev/timerwheel; %s", module_advice());
	if (restored)
		log_say(LOG_NOTICE, restored == 1 ? "%u connection continues" :
			"%u connections continue", restored);
	notify("READY=1\nSTATUS=serving");
}

static void command(enum command command)
{
	unsigned int i;

	for (i = 0; i < options.threads; i++)
		loop_command(loops[i], command);
}

/* Time between two messages to the watchdog, in ns; TIME_NONE: there is no watchdog. */
static uint64_t watchdog_interval(void)
{
	uint64_t us;

	return sd_watchdog_enabled(1, &us) > 0 ? us * NSEC_PER_USEC / 3 : TIME_NONE;
}

/* Check that each thread has made a turn since the last call, and wake it for the next. */
static void watchdog(void)
{
	static uint64_t *beats;
	bool alive = true, first = !beats;
	uint64_t now;
	unsigned int i;

	if (first)
		beats = xcalloc(options.threads, sizeof(*beats));
	for (i = 0; i < options.threads; i++) {
		now = atomic_load_explicit(&loops[i]->beats, memory_order_relaxed);
		if (!first && now == beats[i]) {
			log_say(LOG_WARNING, "thread %u hangs", i);
			alive = false;
		}
		beats[i] = now;
		loop_wake(loops[i]);
	}
	if (alive)
		notify_alive();
}

/* Handle signals. @until is the end of the grace time. */
static void signalled(uint64_t *until)
{
	struct signalfd_siginfo info;
	char text[128];

	while (read(signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP && !store_active() && !notify_there()) {
			log_say(LOG_WARNING, "SIGHUP ignored: nothing would keep the connections");
		} else if (info.ssi_signo == SIGHUP && store_active()) {
			log_say(LOG_NOTICE, "SIGHUP: handing connections over to the next proxy");
			notify("STOPPING=1\nSTATUS=handing connections over to the next proxy");
			command(COMMAND_HAND_OVER);
		} else if (*until == TIME_NONE && options.grace) {
			listeners_close();
			log_say(LOG_NOTICE, "stopping: connections may continue for %s",
				options.grace == TIME_NONE ? "ever" : duration(options.grace));
			snprintf(text, sizeof(text),
				 "STOPPING=1\nSTATUS=waiting for connections to end\n"
				 "EXTEND_TIMEOUT_USEC=%llu",
				 (unsigned long long)(options.grace / NSEC_PER_USEC + 5000000));
			notify(text);
			*until = options.grace == TIME_NONE ? TIME_NONE - 1 :
				 now_ns() + options.grace;
			command(COMMAND_DRAIN);
		} else {
			*until = now_ns();
		}
	}
}

static void supervise(void)
{
	struct pollfd fds[] = {
		{ .fd = signals, .events = POLLIN }, { .fd = done, .events = POLLIN },
	};
	uint64_t interval = watchdog_interval(), until = TIME_NONE, next = now_ns(), rings, at;
	unsigned int alive = options.threads;

	if (interval == TIME_NONE)
		next = TIME_NONE;
	while (alive) {
		at = notify_again();
		at = until < at ? until : at;
		poll(fds, ARRAY_SIZE(fds), poll_ms(next < at ? next : at));
		signalled(&until);
		while (read(done, &rings, sizeof(rings)) > 0)
			alive--;
		if (now_ns() >= until) {
			command(COMMAND_CLOSE);
			until = TIME_NONE - 1;
		}
		/* A thread that has ended no longer counts turns. */
		if (alive < options.threads)
			next = TIME_NONE;
		if (now_ns() >= next) {
			watchdog();
			next = now_ns() + interval;
		}
	}
}

int main(int argc, char **argv)
{
	unsigned int i;

	progname = "timerwheel-proxy";
	log_open();
	/* Do this first, so that a restart during the start works like any other. */
	open_signals();
	options_parse(argc, argv);
	records_open();
	notify_open();
	start();
	supervise();
	for (i = 0; i < options.threads; i++)
		pthread_join(loops[i]->thread, NULL);
	records_close();
	log_say(LOG_NOTICE, "ended");
	return EXIT_SUCCESS;
}
