// SPDX-License-Identifier: GPL-2.0
/*
 * A signal must not end the program between taking timers or events and writing them out, because
 * only this program has them. Such signals are blocked during this time, and a descriptor shows
 * whether one is pending. Code that may block also polls that descriptor.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "cli.h"

/* Signals from outside whose default action ends the program. */
static const int ends[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2 };

static sigset_t others;
static int pending = -1;
static bool active;

void hold_begin(void)
{
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		struct sigaction action;

		/* An ignored signal (nohup) stays pending as long as it is blocked. */
		if (!sigaction(ends[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(&set, ends[i]);
	}
	sigprocmask(SIG_BLOCK, &set, &others);
	pending = signalfd(pending, &set, SFD_CLOEXEC);
	if (pending < 0)
		die("cannot create a descriptor for signals: %s", strerror(errno));
	active = true;
}

void hold_end(void)
{
	active = false;
	sigprocmask(SIG_SETMASK, &others, NULL);
}

void hold_write(void)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

int hold_fd(void)
{
	return active ? pending : -1;
}
