// SPDX-License-Identifier: GPL-2.0
/*
 * wait: take events. It takes only as many events as it prints or starts commands for. Events that
 * cannot be written are put back as timers that are due.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define EVENTS	256
/* Interval of the checks whether the wheel is empty, ms. */
#define LOOK	500

static bool empty(struct timerwheel *wheel)
{
	struct timerwheel_stats stats;
	int err = timerwheel_stats(wheel, &stats);

	if (err)
		die("STATS: %s", error_text(err));
	return !stats.pending && !stats.due;
}

/* A ring has only one reader, which is the daemon that owns the wheel. */
static void refuse_ring(struct timerwheel *wheel)
{
	struct timerwheel_info info;

	target_info(wheel, &info);
	if (info.ring)
		die("the events of this wheel go to its event ring, which only its owner can read; use timerwheel monitor to see them");
}

/* Removed timers cause no wake-up, so --until-empty has to poll. */
static int timeout_of(const struct events_limit *limit)
{
	int timeout = events_timeout(limit);

	return opt.given[OPT_UNTIL_EMPTY] && (timeout < 0 || timeout > LOOK) ? LOOK : timeout;
}

/* Sleep until there may be events. Ends the program if the output has no reader. */
static void sleep_until_due(struct timerwheel *wheel, const struct events_limit *limit)
{
	struct pollfd pollers[] = {
		{ .fd = timerwheel_fd(wheel), .events = POLLIN },
		{ .fd = hold_fd(), .events = POLLIN },
		{ .fd = opt.exec ? -1 : STDOUT_FILENO },
	};

	if (poll(pollers, ARRAY_SIZE(pollers), timeout_of(limit)) < 0 && errno != EINTR)
		die("cannot wait for events: %s", strerror(errno));
	if (pollers[1].revents) {
		hold_end();
		exit(STATUS_ERROR);
	}
	if (pollers[2].revents & (POLLERR | POLLNVAL))
		die("cannot write the output: no process reads it");
}

static void print(struct timerwheel *wheel, const struct timerwheel_event *events, size_t count,
		  struct events_limit *limit)
{
	size_t out, back;

	page_begin();
	limit->left -= events_rows(events, count);
	out = page_end();
	if (!page_error())
		return;
	back = put_back_events(wheel, events + out, count - out);
	say("cannot write the output: %s; %s %s due again", page_error(), commas(back),
	    back == 1 ? "event was put back and is" : "events were put back and are");
	hold_end();
	exit(STATUS_ERROR);
}

/* Run the command. Returns true if its exit status is 0. */
static bool execute(struct timerwheel *wheel, const struct timerwheel_event *event)
{
	pid_t pid;
	int err;

	err = exec_event(event, &pid);
	if (err) {
		size_t back = put_back_events(wheel, event, 1);

		die("cannot run %s: %s%s", opt.exec[0], strerror(err),
		    back ? "; the event was put back and is due again" : "");
	}
	hold_end();
	return exec_wait(pid);
}

static int take(struct timerwheel *wheel, struct events_limit *limit)
{
	struct timerwheel_event events[EVENTS];
	size_t most = opt.exec ? 1 : EVENTS;
	bool failed = false;
	long n;

	while (limit->left) {
		if (opt.given[OPT_UNTIL_EMPTY] && empty(wheel))
			break;
		hold_begin();
		n = timerwheel_take(wheel, events, limit->left < most ? limit->left : most);
		if (n < 0 && n != -EINTR)
			die("cannot take events: %s", error_text(n));
		if (n > 0 && !opt.exec) {
			print(wheel, events, n, limit);
		} else if (n > 0 && events[0].flags & TIMERWHEEL_EVENT_CLOCK_SET) {
			/* The event has no key, so do not run a command for it. */
			say("the clock was set");
		} else if (n > 0) {
			limit->left--;
			failed |= !execute(wheel, &events[0]);
		} else if (events_timeout(limit)) {
			sleep_until_due(wheel, limit);
		} else {
			hold_end();
			return STATUS_TIMEOUT;
		}
		hold_end();
	}
	return failed ? STATUS_FAILED : STATUS_DONE;
}

int command_wait(int argc, char **argv)
{
	struct events_limit limit;
	struct timerwheel *wheel;
	int status;

	no_arguments(argc, argv);
	wheel = target_open();
	refuse_ring(wheel);
	events_limit(&limit, opt.given[OPT_UNTIL_EMPTY] ? 0 : 1);
	if (!opt.exec) {
		events_begin();
		table_flush();
	}
	status = take(wheel, &limit);
	timerwheel_close(wheel);
	return status;
}
