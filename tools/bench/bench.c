// SPDX-License-Identifier: GPL-2.0
/* See bench.h. This file: options; which workloads, at which sizes. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct options options = {
	.most = 1000000,
	.budget = 300 * NSEC_PER_MSEC,
	.idle_budget = 25 * NSEC_PER_SEC,
	.longest_life = 24 * HOUR,
};

const struct facility *facility;

static const char usage_text[] =
"usage: bench [OPTION]... FACILITY\n"
"       bench --list\n"
"\n"
"What timeouts cost with one of the facilities that keep them, such as timerwheel,\n"
"timerfd or libevent. Needs root. For figures that mean something run it where a\n"
"nanosecond is an instruction: tools/bench/run does that, for all facilities.\n"
"\n"
"  -n, --most N      timers pending at most (1M)\n"
"  -q, --quick       100k timers at most, shorter workloads, no life of 24 h\n"
"  -o, --only WHAT   ops, expire, lateness, burst, retransmit, idle, cache, calls or passes\n"
"  -l, --list        the facilities; of those that were not built, what was missing\n"
"  -h, --help        this text\n"
"\n"
"Idle timeouts, cache and the lives of timers last for up to a day: they run only where\n"
"idle time is skipped, which TW_ICOUNT=1 in the environment says.\n"
"\n"
"Progress goes to stderr. The results go to stdout, with tabs between the cells: facility,\n"
"operation, pending, batch, value, unit, clock.\n";

static const struct workload {
	const char *name;
	void (*run)(void);
	bool long_idle;		/* hours in which little happens */
} workloads[] = {
	{ "ops", bench_ops, false },
	{ "expire", bench_expire, false },
	{ "lateness", bench_lateness, false },
	{ "burst", bench_burst, false },
	{ "retransmit", bench_retransmit, false },
	{ "idle", bench_idle, true },
	{ "cache", bench_cache, true },
	{ "calls", bench_calls, false },
	{ "passes", bench_passes, false },
};

__u32 bearable(__u32 wanted)
{
	__u32 most = facility->most;

	/* A quick run does less of what is slow, too. */
	if (most && options.most < 1000000)
		most /= 1000000 / options.most;
	return most && most < wanted ? most : wanted;
}

__u32 usual_batch(void)
{
	return facility->batches ? BATCH : 1;
}

static void list(void)
{
	int i;

	for (i = 0; facilities[i]; i++)
		printf("%s\t%s\n", facilities[i]->name, facilities[i]->missing ?: "");
}

static const struct workload *workload_named(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(workloads); i++) {
		if (!strcmp(workloads[i].name, name))
			return &workloads[i];
	}
	die("there is no workload %s; see --help", name);
}

static void measure(const struct workload *only)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(workloads); i++) {
		if (only && only != &workloads[i])
			continue;
		if (workloads[i].long_idle && !options.skips_idle) {
			progress("%s left out: it takes hours where idle time is not skipped",
				 workloads[i].name);
			continue;
		}
		workloads[i].run();
	}
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "most", required_argument, NULL, 'n' },
		{ "quick", no_argument, NULL, 'q' },
		{ "only", required_argument, NULL, 'o' },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	const struct workload *only = NULL;
	__u64 n;
	int c;

	progname = "bench";
	options.skips_idle = getenv("TW_ICOUNT");
	while ((c = getopt_long(argc, argv, "n:qo:lh", longs, NULL)) != -1) {
		switch (c) {
		case 'n':
			if (!parse_count(optarg, &n) || n < 10000 || n > 4000000)
				die("--most wants a number from 10k to 4M, not '%s'", optarg);
			options.most = n;
			break;
		case 'q':
			options.most = 100000;
			options.budget = 20 * NSEC_PER_MSEC;
			options.idle_budget = NSEC_PER_SEC;
			options.longest_life = HOUR;
			break;
		case 'o':
			only = workload_named(optarg);
			break;
		case 'l':
			list();
			return EXIT_SUCCESS;
		case 'h':
			fputs(usage_text, stdout);
			return EXIT_SUCCESS;
		default:
			die("try --help");
		}
	}
	if (optind != argc - 1)
		die("which facility, one? Try --list or --help");
	facility = facility_named(argv[optind]);
	if (!facility)
		die("there is no facility %s; try --list", argv[optind]);
	if (facility->missing)
		die("%s was left out: this was built without %s", facility->name,
		    facility->missing);
	if (options.skips_idle)
		quieten_kernel();
	measure(only);
	return EXIT_SUCCESS;
}
