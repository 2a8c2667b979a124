// SPDX-License-Identifier: GPL-2.0
/* wait --exec: run a command for each event. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

static void set_number(const char *name, __u64 number)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", number);
	if (setenv(name, text, 1))
		die("no memory for the environment of %s", opt.exec[0]);
}

/*
 * Commands start with no signal blocked and with default actions, whatever the parent has chosen.
 * Signals that nohup and the shell's & ignore stay ignored, because that applies to all programs
 * they start.
 */
static void set_signals(posix_spawnattr_t *attributes)
{
	static const int kept[] = { SIGHUP, SIGINT, SIGQUIT };
	sigset_t set;
	size_t i;

	sigfillset(&set);
	for (i = 0; i < ARRAY_SIZE(kept); i++)
		sigdelset(&set, kept[i]);
	posix_spawnattr_setsigdefault(attributes, &set);
	sigemptyset(&set);
	posix_spawnattr_setsigmask(attributes, &set);
	posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
}

int exec_event(const struct timerwheel_event *event, pid_t *pid)
{
	posix_spawnattr_t attributes;
	int err;

	set_number("KEY", event->key);
	set_number("VALUE", event->value);
	set_number("DEADLINE", event->deadline);
	set_number("LATE", event->fired - event->deadline);
	set_number("OVERRUNS", event->overruns);
	if (setenv("EVENT", event_text(event), 1))
		die("no memory for the environment of %s", opt.exec[0]);
	posix_spawnattr_init(&attributes);
	set_signals(&attributes);
	err = posix_spawnp(pid, opt.exec[0], NULL, &attributes, opt.exec, environ);
	posix_spawnattr_destroy(&attributes);
	return err;
}

bool exec_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			die("cannot wait for %s: %s", opt.exec[0], strerror(errno));
	}
	return WIFEXITED(status) && !WEXITSTATUS(status);
}
