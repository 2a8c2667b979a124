// SPDX-License-Identifier: GPL-2.0
/*
 * drain: remove all timers, a page at a time. Timers of a page that cannot be written are put back.
 * Therefore the wheel is closed to new timers only after the existing timers were written.
 */
#include <errno.h>
#include <stdlib.h>

#include "cli.h"

static struct timerwheel *wheel;
static __u64 drained;

/* Print a page. If that fails, put back the timers that were not written, and end the program. */
static void print(const struct timerwheel_entry *entries, size_t count)
{
	size_t i, out, back;

	page_begin();
	for (i = 0; i < count; i++)
		timers_row(&entries[i]);
	out = page_end();
	if (!page_error())
		return;
	back = put_back(wheel, entries + out, count - out);
	say("cannot write the output: %s; %s timers were drained and written, %s were put back",
	    page_error(), commas(drained + out), commas(back));
	hold_end();
	exit(STATUS_ERROR);
}

/* Take and print up to @most timers. */
static void take(__u64 most)
{
	static struct timerwheel_entry entries[PAGE];
	long n = 1;

	for (; n && most; most -= n) {
		hold_begin();
		do {
			n = timerwheel_drain(wheel, entries, most < PAGE ? most : PAGE, 0);
		} while (n == -EINTR);
		if (n < 0)
			die("DRAIN: %s", error_text(n));
		if (!opt.given[OPT_QUIET])
			print(entries, n);
		hold_end();
		drained += n;
	}
}

/* The current number of timers, including those that are not armed. */
static __u64 timers(void)
{
	struct timerwheel_stats stats;
	int err = timerwheel_stats(wheel, &stats);

	if (err)
		die("STATS: %s", error_text(err));
	return stats.pending + stats.due + stats.parked;
}

static void close_wheel(void)
{
	long err;

	do {
		err = timerwheel_drain(wheel, NULL, 0, TIMERWHEEL_DRAIN_CLOSE);
	} while (err == -EINTR);
	if (err < 0)
		die("DRAIN: %s", error_text(err));
}

int command_drain(int argc, char **argv)
{
	__u64 limit = opt.given[OPT_LIMIT] ? opt.number[OPT_LIMIT] : ~0ULL, first;

	no_arguments(argc, argv);
	wheel = target_open();
	json_open(NULL, '{');
	if (!opt.given[OPT_QUIET])
		timers_begin("timers");
	out_check();
	if (opt.given[OPT_CLOSE]) {
		first = opt.given[OPT_QUIET] ? 0 : timers();
		take(first < limit ? first : limit);
		close_wheel();
	}
	take(limit - drained);
	if (!opt.given[OPT_QUIET])
		timers_end();
	out_number(NULL, "drained", SHOW_NUMBER, drained);
	json_close();
	timerwheel_close(wheel);
	return STATUS_DONE;
}
