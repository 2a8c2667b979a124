// SPDX-License-Identifier: GPL-2.0
/* wait --exec: a command for each event. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

/* What a shell says, too, when there is no such command. */
#define NOT_FOUND	127

static void set_number(const char *name, __u64 number)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", number);
	if (setenv(name, text, 1))
		die("no memory for the environment of %s", opt.exec[0]);
}

bool exec_event(const struct timerwheel_event *event)
{
	pid_t pid;
	int status;

	set_number("KEY", event->key);
	set_number("VALUE", event->value);
	set_number("DEADLINE", event->deadline);
	set_number("LATE", event->fired - event->deadline);
	set_number("OVERRUNS", event->overruns);
	pid = fork();
	if (pid < 0)
		die("cannot start %s: %s", opt.exec[0], strerror(errno));
	if (!pid) {
		execvp(opt.exec[0], opt.exec);
		say("cannot run %s: %s", opt.exec[0], strerror(errno));
		_exit(NOT_FOUND);
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			die("waiting for %s: %s", opt.exec[0], strerror(errno));
	}
	/* It would be no better with the next event: do not take that from others. */
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND)
		die("the event of timer %llu was taken, but its command was not run", event->key);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}
