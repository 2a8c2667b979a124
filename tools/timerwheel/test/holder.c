// SPDX-License-Identifier: GPL-2.0
/*
 * holder RING WHEELS: a process that has so many wheels open, each with an event ring of that
 * length, 0: none, and one timer with key 7. It says "ready", and stays until it is killed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "timerwheel.h"
#include "util.h"

int main(int argc, char **argv)
{
	struct timerwheel_config config = { .backend = TIMERWHEEL_BACKEND_DEVICE };
	int wheels, err;

	progname = "holder";
	if (argc != 3)
		die("holder RING WHEELS");
	config.ring = atoi(argv[1]);
	for (wheels = atoi(argv[2]); wheels; wheels--) {
		struct timerwheel_add add = {
			.key = 7,
			.value = 70,
			.deadline = 3600 * NSEC_PER_SEC,
		};
		struct timerwheel *wheel;

		err = timerwheel_open(&wheel, &config);
		if (err)
			die("%s", timerwheel_strerror(err));
		if (timerwheel_add(wheel, &add, 1) != 1 || add.result < 0)
			die("%s", timerwheel_strerror(add.result));
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
