// SPDX-License-Identifier: GPL-2.0
/* monitor: copies of events. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define EVENTS	256

static const char *reason(int err)
{
	switch (err) {
	case -ENOSPC:
		return "the wheel has the maximum number of monitors: stop one";
	case -EDQUOT:
		return "the memory limit of the user is reached: use a smaller --buffer";
	default:
		return error_text(err);
	}
}

/* Open a monitor, and close the wheel, so that this program does not keep it open. */
static int open_monitor(void)
{
	struct timerwheel *wheel = target_open();
	int fd = timerwheel_monitor(wheel, opt.number[OPT_BUFFER], TIMERWHEEL_MONITOR_CLOEXEC);

	if (fd < 0)
		die("MONITOR: %s", reason(fd));
	timerwheel_close(wheel);
	if (opt.given[OPT_FD])
		close(opt.number[OPT_FD]);
	return fd;
}

static int follow(int fd, struct events_limit *limit)
{
	struct timerwheel_event events[EVENTS];
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	ssize_t n;

	while (limit->left) {
		n = poll(&poller, 1, events_timeout(limit));
		if (n < 0 && errno != EINTR)
			die("cannot wait for events: %s", strerror(errno));
		if (!n && !events_timeout(limit))
			return STATUS_TIMEOUT;
		if (n <= 0)
			continue;
		n = read(fd, events, (limit->left < EVENTS ? limit->left : EVENTS) *
				     sizeof(events[0]));
		if (n < 0 && errno != EINTR)
			die("cannot read events: %s", strerror(errno));
		if (!n)
			break;
		if (n < 0)
			continue;
		n /= sizeof(events[0]);
		limit->left -= events_rows(events, n);
	}
	return STATUS_DONE;
}

int command_monitor(int argc, char **argv)
{
	struct events_limit limit;
	int fd, status;

	no_arguments(argc, argv);
	fd = open_monitor();
	events_limit(&limit, 0);
	events_begin();
	table_flush();
	status = follow(fd, &limit);
	close(fd);
	return status;
}
