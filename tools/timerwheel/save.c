// SPDX-License-Identifier: GPL-2.0
/* save: write a wheel to a file. The wheel and its timers do not change. */
#include <stdlib.h>

#include "cli.h"

int command_save(int argc, char **argv)
{
	struct timerwheel_info info;
	struct timerwheel *wheel;
	struct saved saved;
	size_t i, kept = 0;

	if (argc != 1)
		usage("one FILE is required; - is the standard output");
	wheel = target_open();
	/* Use one point in time for all timers, not the time at which each was listed. */
	target_info(wheel, &info);
	/* In a file, cancelled timers would be armed, and a linger would be a period. */
	if (info.flags & TIMERWHEEL_INFO_TABLE)
		die("this wheel has a deadline table, and its timers cannot be saved: use timerwheel list --json for a list, and let their owner arm them again; nothing was written");
	saved = (struct saved) {
		.time = info.clock == TIMERWHEEL_CLOCK_REALTIME ? info.now : wall_ns(),
		.clock = info.clock,
		.slots = info.slots,
		.tick = info.tick,
		.capacity = info.capacity,
		.slack = info.slack,
		.flags = (info.flags & TIMERWHEEL_INFO_CLOCK_SET ? TIMERWHEEL_SETUP_CLOCK_SET : 0) |
			 (info.flags & TIMERWHEEL_INFO_ALARM ? TIMERWHEEL_SETUP_ALARM : 0),
	};
	if (info.clock < TIMERWHEEL_CLOCK_REALTIME) {
		boot_id(saved.boot, sizeof(saved.boot));
		saved.now = clock_ns(info.clock);
		saved.synchronized = wall_synchronized();
	}
	saved.timers = timers_all(wheel, &saved.count);
	for (i = 0; i < saved.count; i++) {
		/* A file cannot contain a connection. */
		if (saved.timers[i].flags & TIMERWHEEL_ENTRY_SOCKET)
			continue;
		saved.timers[kept] = saved.timers[i];
		saved.timers[kept].left = saved.timers[kept].deadline - info.now;
		kept++;
	}
	if (kept < saved.count)
		say("save: timers that watch connections cannot be saved: %s skipped",
		    commas(saved.count - kept));
	saved.count = kept;
	savefile_write(argv[0], &saved);
	free(saved.timers);
	timerwheel_close(wheel);
	return STATUS_DONE;
}
