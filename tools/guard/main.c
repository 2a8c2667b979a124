// SPDX-License-Identifier: GPL-2.0
/*
 * timerwheel-guard: ends idle connections of running daemons. This file: start, main loop,
 * watchdog, end. README.md describes the other files.
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
/* Maximum time that the start waits for a busy service manager, ns. */
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

/* The wheel that the service manager has passed; -1: none. */
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
		log_say(LOG_WARNING, "the service manager cannot keep the wheel: %s; after a restart all timeouts start again",
			strerror(-err));
}

/* "1 connection", in a buffer fit for one line. */
static const char *connections(uint64_t count)
{
	char *text = text_buffer();

	snprintf(text, TEXT_LENGTH, "%llu connection%s", (unsigned long long)count,
		 count == 1 ? "" : "s");
	return text;
}

static void start(void)
{
	int kept = kept_wheel();

	if (!timers_open(kept) && notify_there())
		keep_wheel();
	if (counters.restored)
		log_say(LOG_NOTICE, "timeouts of %s continue", connections(counters.restored));
}

/* Time between two messages to the watchdog, in ns; TIME_NONE: there is no watchdog. */
static uint64_t watchdog_interval(void)
{
	uint64_t us;

	return sd_watchdog_enabled(1, &us) > 0 ? us * NSEC_PER_USEC / 3 : TIME_NONE;
}

static const char *activity(void)
{
	return options.dry_run ? "watching" : "guarding";
}

/* Report a status such as "guarding 3 connections; ended 12 so far, could not guard 1". */
static void tell_status(void)
{
	static char last[160];
	uint64_t ended = 0, unguarded = 0;
	char text[160];
	unsigned int i;

	for (i = 0; i < KINDS; i++)
		ended += counters.acted[i][options.dry_run ? ACTION_WOULD_END : ACTION_ENDED];
	for (i = 0; i < REASONS; i++)
		unguarded += counters.unreachable[i];
	snprintf(text, sizeof(text), "STATUS=%s%s %s; %s %llu so far, could not guard %llu",
		 scan_waits() ? "waiting for the chosen processes to listen; " : "", activity(),
		 connections(timers_guarded()), options.dry_run ? "would have ended" : "ended",
		 (unsigned long long)ended, (unsigned long long)unguarded);
	if (!strcmp(text, last))
		return;
	strcpy(last, text);
	notify(text);
}

/* Time until @until in ms, rounded up. */
static int wait_ms(uint64_t until)
{
	uint64_t now = now_ns();

	if (until <= now)
		return 0;
	return until - now < 3600 * NSEC_PER_SEC ?
	       (until - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC : 3600 * 1000;
}

/* Complete the first scan before the guard reports that it is ready. */
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

/* Run until a signal arrives, or no process is left to guard. */
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
		tell_status();
		timers_expire();
		if (now_ns() >= next_scan && !scan_busy()) {
			scan_turn();
			next_scan = now_ns() + options.interval;
			if (!procs_left()) {
				log_say(LOG_NOTICE, "all chosen processes have ended");
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
	log_say(LOG_INFO, "%s %s, scanning every %s%s", activity(), connections(timers_guarded()),
		duration(options.interval), options.dry_run ? " (dry run: ending nothing)" : "");
	notify("READY=1");
	tell_status();
	run();
	log_say(LOG_NOTICE, notify_there() ?
		"stopped; the service manager keeps the timeouts of %s" :
		"stopped; no longer guarding %s", connections(timers_guarded()));
	return EXIT_SUCCESS;
}
