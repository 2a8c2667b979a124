// SPDX-License-Identifier: GPL-2.0
/*
 * guard: a program of its own, because it needs libraries that not everyone who looks at a wheel
 * wants. It is in sbin beside our bin, in a folder beside ours where it was built, or in the PATH.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define GUARD	"timerwheel-guard"

int command_guard(int argc, char **argv)
{
	static const char *const folders[] = { "../sbin", "../guard" };
	char own[PATH_MAX], path[PATH_MAX + 32], *end;
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	size_t i;

	(void)argc;
	own[n > 0 ? n : 0] = '\0';
	end = strrchr(own, '/');
	for (i = 0; end && i < ARRAY_SIZE(folders); i++) {
		snprintf(path, sizeof(path), "%.*s/%s/" GUARD, (int)(end - own), own, folders[i]);
		execv(path, argv);
	}
	execvp(GUARD, argv);
	die("cannot run " GUARD ": %s; install it (package timerwheel-tools)", strerror(errno));
}
