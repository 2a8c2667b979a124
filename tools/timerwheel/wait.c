// SPDX-License-Identifier: GPL-2.0
/*
 * wait: take events. No more are taken than are printed, or than commands were run for, so that
 * whoever ends this program loses nothing that is still in the wheel.
 */
#include <errno.h>

#include "cli.h"

#define EVENTS	256
/* How often it is looked whether the wheel is empty, ms. */
#define LOOK	500

static bool empty(struct timerwheel *wheel)
{
	struct timerwheel_stats stats;
	int err = timerwheel_stats(wheel, &stats);

	if (err)
		die("STATS: %s", timerwheel_strerror(err));
	return !stats.pending && !stats.due;
}

/* A ring has one reader, and that is the daemon whose wheel it is. */
static void refuse_ring(struct timerwheel *wheel)
{
	struct timerwheel_info info;

	target_info(wheel, &info);
	if (info.ring)
		die("the events of this wheel go to its event ring, which only its owner can read; use timerwheel monitor to see them");
}

/* Timers that are removed wake nobody: with --until-empty it has to be looked for. */
static int timeout_of(const struct events_limit *limit)
{
	int timeout = events_timeout(limit);

	return opt.given[OPT_UNTIL_EMPTY] && (timeout < 0 || timeout > LOOK) ? LOOK : timeout;
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
		n = timerwheel_wait(wheel, events, limit->left < most ? limit->left : most,
				    timeout_of(limit));
		if (n < 0 && n != -EINTR)
			die("waiting for events: %s", timerwheel_strerror(n));
		if (!n && !events_timeout(limit))
			return STATUS_TIMEOUT;
		if (n <= 0)
			continue;
		if (!opt.exec) {
			limit->left -= events_rows(events, n);
		} else if (events[0].flags & TIMERWHEEL_EVENT_CLOCK_SET) {
			/* Without a key a command would do to some timer what is meant for none. */
			say("the clock was set");
		} else {
			limit->left--;
			failed |= !exec_event(&events[0]);
		}
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
