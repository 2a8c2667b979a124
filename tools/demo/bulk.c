// SPDX-License-Identifier: GPL-2.0
/* See bulk.h. This file: options, the two runs, the table that compares them. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/timerwheel.h>

#include "bulk.h"
#include "util.h"

struct options options = {
	.timers = 1000000,
	.batch = 256,
	.delay_min = 1 * NSEC_PER_SEC,
	.delay_max = 30 * NSEC_PER_SEC,
};

static const char usage_text[] =
"usage: bulk [OPTION]...\n"
"\n"
"Arm very many timeouts on /dev/timerwheel, with deadlines at random. Move a third of\n"
"them, earlier and later, remove a third, and collect the rest with epoll and read.\n"
"Check for each timer that it is not early, not lost and not delivered twice. With\n"
"--timerfds, do the same with a timerfd for each timeout, and print both results side by\n"
"side. The exit status is 0 if everything is right.\n"
"\n"
"  -n, --timers N       how many (1M)\n"
"  -b, --batch N        in batches of so many (256)\n"
"  -t, --timerfds N     how many timerfds beside it (0: none)\n"
"      --min DURATION   the nearest deadline (1s)\n"
"      --max DURATION   the farthest (30s)\n"
"  -V, --version        print the version\n"
"  -h, --help           print this text\n";

static __u32 count_of(const char *option, const char *text, __u64 min, __u64 max)
{
	__u64 n;

	if (!parse_count(text, &n) || n < min || n > max)
		die("%s wants a number from %s to %s, not '%s'", option, commas(min), commas(max),
		    text);
	return n;
}

static __u64 delay_of(const char *option, const char *text)
{
	__u64 ns;

	if (!parse_duration(text, &ns) || ns > 1000 * NSEC_PER_SEC)
		die("%s wants a time up to 1000s, not '%s'", option, text);
	return ns;
}

static void parse_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "timers", required_argument, NULL, 'n' },
		{ "batch", required_argument, NULL, 'b' },
		{ "timerfds", required_argument, NULL, 't' },
		{ "min", required_argument, NULL, 'm' },
		{ "max", required_argument, NULL, 'M' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	int c;

	while ((c = getopt_long(argc, argv, "n:b:t:Vh", longs, NULL)) != -1) {
		switch (c) {
		case 'n':
			options.timers = count_of("--timers", optarg, 3, 4000000);
			break;
		case 'b':
			options.batch = count_of("--batch", optarg, 1, TIMERWHEEL_BATCH_MAX);
			break;
		case 't':
			options.timerfds = count_of("--timerfds", optarg, 0, 4000000);
			break;
		case 'm':
			options.delay_min = delay_of("--min", optarg);
			break;
		case 'M':
			options.delay_max = delay_of("--max", optarg);
			break;
		case 'V':
			say_version();
			exit(EXIT_SUCCESS);
		case 'h':
			fputs(usage_text, stdout);
			exit(EXIT_SUCCESS);
		default:
			die("try --help");
		}
	}
	if (optind < argc)
		die("'%s' is not understood; try --help", argv[optind]);
	if (options.delay_min > options.delay_max)
		die("--min is beyond --max");
}

__u64 deadline_new(__u64 now, __u64 *seed)
{
	return now + options.delay_min +
	       random_below(seed, options.delay_max - options.delay_min + 1);
}

__u64 deadline_moved(__u64 now, __u64 old, bool later, __u64 *seed)
{
	if (later)
		return old + 1 + random_below(seed, options.delay_max / 6 + 1);
	return old > now ? now + random_below(seed, old - now) : now;
}

#define CELL	20

static void row(const char *what, const char *ours, const char *theirs)
{
	printf("  %-46s %*s %*s\n", what, CELL, ours, CELL, theirs);
}

static void row_number(const char *what, __u64 ours, __u64 theirs)
{
	row(what, commas(ours), commas(theirs));
}

/* Nothing is measured if the program had no time to wait for timers. */
static void row_late(const char *what, const struct outcome *o, const struct outcome *t, double q)
{
	row(what, o->seen.count ? duration(histogram_quantile(&o->seen, q)) : "-",
	    t->seen.count ? duration(histogram_quantile(&t->seen, q)) : "-");
}

static void row_phase(const char *what, const struct phase *ours, const struct phase *theirs)
{
	row_number(what, phase_each(ours, ours->wall), phase_each(theirs, theirs->wall));
}

static __u64 calls_per_1000(const struct outcome *o)
{
	__u64 calls = o->arm.calls + o->move.calls + o->remove.calls + o->collect.calls;

	return calls * 1000 / o->ledger.timers;
}

/* Only if most timers expired in the time that was measured. */
static const char *busy_each(const struct outcome *o)
{
	if (!o->collect.ops || o->expired > o->collect.ops / 5)
		return "-";
	return commas(o->collect_busy / o->collect.ops);
}

static void compare(const struct outcome *o, const struct outcome *t)
{
	printf("Side by side\n\n");
	row("", "timerwheel", "timerfd + epoll");
	row_number("timers", o->ledger.timers, t->ledger.timers);
	row_number("descriptors", o->descriptors, t->descriptors);
	row_phase("arm one, ns", &o->arm, &t->arm);
	row_phase("move one, ns", &o->move, &t->move);
	row_phase("remove one (close it), ns", &o->remove, &t->remove);
	row("expire and deliver one, all CPU time, ns", busy_each(o), busy_each(t));
	row_number("memory of one, bytes (/proc/meminfo)", o->memory / o->ledger.timers,
		   t->memory / t->ledger.timers);
	row("  as the wheel itself has it", commas(o->memory_stats / o->ledger.timers), "");
	row_number("system calls for 1,000 timers' whole lives", calls_per_1000(o),
		   calls_per_1000(t));
	row_number("wake-ups of the program", o->wakeups, t->wakeups);
	row_late("late as the program saw it: median", o, t, 0.5);
	row_late("  99%", o, t, 0.99);
	row_late("  largest", o, t, 1);
	puts("\nThe guest is emulated: compare the columns, not the figures of other machines.\n"
	     "A timer is late by at most one tick, plus the time that the timers need which expired\n"
	     "before it and were not handled yet (the backlog), plus the time that the machine stands\n"
	     "still (see below). A - was not measured, because this machine was too slow.\n");
}

static void claims(const struct outcome *o, const char *who)
{
	const struct ledger *l = &o->ledger;

	printf("%s  %s: %s armed = %s delivered + %s removed; %s moved in between\n",
	       o->right ? "PASS" : "FAIL", who, commas(l->armed), commas(l->delivered),
	       commas(l->removed), commas(l->moved));
	printf("%s  %s: %s early, %s lost, %s twice, %s after their removal, %s wrong otherwise\n",
	       o->right ? "PASS" : "FAIL", who, commas(l->early), commas(l->lost),
	       commas(l->twice), commas(l->after_remove),
	       commas(l->old_deadline + l->unknown + l->refused));
}

int main(int argc, char **argv)
{
	static struct outcome wheel, timerfd;

	progname = "bulk";
	parse_options(argc, argv);
	run_wheel(&wheel);
	if (options.timerfds) {
		run_timerfd(&timerfd);
		compare(&wheel, &timerfd);
	}
	claims(&wheel, "timerwheel");
	if (options.timerfds)
		claims(&timerfd, "timerfd");
	if (!wheel.right || (options.timerfds && !timerfd.right))
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
