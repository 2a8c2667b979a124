// SPDX-License-Identifier: GPL-2.0
/*
 * guard and proxy: separate programs, because they need libraries that this program does not need.
 * Each is in sbin beside this program's bin, in a folder beside this one in a build tree, or in the
 * PATH.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

int command_program(int argc, char **argv)
{
	char own[PATH_MAX], path[PATH_MAX + 64], name[32], *end;
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

	(void)argc;
	snprintf(name, sizeof(name), "timerwheel-%s", argv[0]);
	own[n > 0 ? n : 0] = '\0';
	end = strrchr(own, '/');
	if (end) {
		snprintf(path, sizeof(path), "%.*s/../sbin/%s", (int)(end - own), own, name);
		execv(path, argv);
		snprintf(path, sizeof(path), "%.*s/../%s/%s", (int)(end - own), own, argv[0], name);
		execv(path, argv);
	}
	execvp(name, argv);
	die("cannot run %s: %s; install it (package timerwheel-tools)", name, strerror(errno));
}
