// SPDX-License-Identifier: GPL-2.0
/* drain: take all timers out. */
#include <errno.h>

#include "cli.h"

#define PAGE	4096

int command_drain(int argc, char **argv)
{
	static struct timerwheel_entry entries[PAGE];
	__u64 left = opt.given[OPT_LIMIT] ? opt.number[OPT_LIMIT] : ~0ULL, drained = 0;
	__u32 flags = opt.given[OPT_CLOSE] ? TIMERWHEEL_DRAIN_CLOSE : 0;
	bool print = !opt.given[OPT_QUIET];
	struct timerwheel *wheel;
	long n, i;

	no_arguments(argc, argv);
	wheel = target_open();
	json_open(NULL, '{');
	if (print)
		timers_begin("timers");
	do {
		n = timerwheel_drain(wheel, entries, left < PAGE ? left : PAGE, flags);
		if (n < 0 && n != -EINTR)
			die("DRAIN: %s", timerwheel_strerror(n));
		for (i = 0; i < n && print; i++)
			timers_row(&entries[i]);
		if (n > 0) {
			drained += n;
			left -= n;
		}
	} while (n && left);
	if (print)
		timers_end();
	out_number(NULL, "drained", SHOW_NUMBER, drained);
	json_close();
	timerwheel_close(wheel);
	return STATUS_DONE;
}
