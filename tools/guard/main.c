// SPDX-License-Identifier: GPL-2.0
/*
 * timerwheel-guard: ends the connections of running daemons that take too long. This file:
 * beginning, turns, watchdog, end. README.md says what the others are.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "conns.h"
#include "counters.h"
#include "log.h"
#include "metrics.h"
#include "notify.h"
#include "options.h"
#include "procs.h"
#include "report.h"
#include "scan.h"
#include "timers.h"
#include "timerwheel.h"
#include "worker.h"

/* The wheel's name in the service manager's store. */
#define WHEEL_NAME	"wheel"
/* How long the start waits for a service manager that is busy, ns. */
#define PATIENCE	(5 * NSEC_PER_SEC)

static int signals;

static void open_signals(void)
{
	sigset_t set;

	signals_reset();
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* A report that has reached RLIMIT_FSIZE loses lines and does not end the guard. */
	signal(SIGXFSZ, SIG_IGN);
	signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (signals < 0)
		log_die("signalfd: %s", strerror(errno));
}

/* The wheel that a service manager gave us, -1: none. */
static int kept_wheel(void)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names), wheel = -1, i;

	for (i = 0; i < n; i++) {
		if (wheel < 0 && !strcmp(names[i], WHEEL_NAME))
			wheel = SD_LISTEN_FDS_START + i;
		else
			close(SD_LISTEN_FDS_START + i);
		free(names[i]);
	}
	free(names);
	return wheel;
}

static void keep_wheel(void)
{
	int fd = timerwheel_share(timers_wheel()), err;
	uint64_t until = now_ns() + PATIENCE;

	while ((err = notify_store(WHEEL_NAME, &fd, 1, false)) == -EAGAIN && now_ns() < until)
		sleep_until(now_ns() + NOTIFY_BUSY);
	if (err)
		log_say(LOG_WARNING, "the wheel cannot be kept: %s; a restart will begin anew",
			strerror(-err));
}

static void start(void)
{
	int kept = kept_wheel();

	if (!timers_open(kept) && notify_there())
		keep_wheel();
	if (counters.restored)
		log_say(LOG_NOTICE, "timeouts of %llu connections continue",
			(unsigned long long)counters.restored);
}

/* ns between two messages to the watchdog, TIME_NONE: there is none. */
static uint64_t watchdog_interval(void)
{
	uint64_t us;

	return sd_watchdog_enabled(1, &us) > 0 ? us * NSEC_PER_USEC / 3 : TIME_NONE;
}

static void tell_count(void)
{
	static unsigned int last = -1;
	unsigned int count = conns_count();
	char text[64];

	if (count == last)
		return;
	last = count;
	snprintf(text, sizeof(text), "STATUS=%u connections", count);
	notify(text);
}

/* ms until then, rounded up. */
static int wait_ms(uint64_t until)
{
	uint64_t now = now_ns();

	if (until <= now)
		return 0;
	return until - now < 3600 * NSEC_PER_SEC ?
	       (until - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC : 3600 * 1000;
}

/* The first scan is complete when the guard reports that it is ready. */
static void scan_all(void)
{
	struct pollfd fd = { .events = POLLIN };

	scan_turn();
	while (scan_busy()) {
		fd.fd = worker_fd();
		poll(&fd, 1, wait_ms(worker_next()));
		scan_go_on();
	}
}

/* Until a signal comes, or nothing is left that could be guarded. */
static void run(void)
{
	struct pollfd fds[] = {
		{ .fd = timerwheel_fd(timers_wheel()), .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
		{ .events = POLLIN },
	};
	uint64_t interval = watchdog_interval(), next_scan, next_beat, until;

	next_scan = now_ns() + options.interval;
	next_beat = interval == TIME_NONE ? TIME_NONE : now_ns();
	while (!fds[1].revents) {
		until = notify_again();
		if (!scan_busy())
			until = until < next_scan ? until : next_scan;
		until = until < next_beat ? until : next_beat;
		until = until < worker_next() ? until : worker_next();
		fds[2].fd = worker_fd();
		poll(fds, ARRAY_SIZE(fds), wait_ms(until));
		scan_go_on();
		tell_count();
		timers_expire();
		if (now_ns() >= next_scan && !scan_busy()) {
			scan_turn();
			next_scan = now_ns() + options.interval;
			if (!procs_left()) {
				log_say(LOG_NOTICE, "the processes have ended");
				return;
			}
		}
		if (now_ns() >= next_beat) {
			notify_alive();
			next_beat = now_ns() + interval;
		}
	}
}

int main(int argc, char **argv)
{
	progname = "timerwheel-guard";
	log_open();
	open_signals();
	options_parse(argc, argv);
	report_open();
	notify_open();
	procs_check();
	start();
	metrics_start();
	scan_all();
	log_say(LOG_INFO, "%u connections, a look each %s%s", conns_count(),
		duration(options.interval), options.dry_run ? "; nothing is ended" : "");
	notify("READY=1\nSTATUS=guarding");
	run();
	log_say(LOG_NOTICE, "ended; %u connections are %s", conns_count(),
		notify_there() ? "left to the service manager" : "guarded no more");
	return EXIT_SUCCESS;
}
