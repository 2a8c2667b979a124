// SPDX-License-Identifier: GPL-2.0
/* See bench.h. Options, and the choice of workloads and sizes. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct options options = {
	.most = 1000000,
	.budget = 300 * NSEC_PER_MSEC,
	.idle_budget = 30 * NSEC_PER_SEC,
	.longest_life = 24 * HOUR,
};

const struct facility *facility;

static const char usage_text[] =
"usage: bench [OPTION]... FACILITY\n"
"       bench --list\n"
"\n"
"Measure the cost of timeouts with one facility, such as timerwheel, timerfd or\n"
"libevent. Needs root. For reproducible figures run it under instruction-counted\n"
"time: bench/run does that, for all facilities.\n"
"\n"
"  -n, --most N      maximum number of pending timers (1M)\n"
"  -q, --quick       at most 100k timers, shorter workloads, none of 24 h\n"
"  -o, --only WHAT   ops, expire, lateness, burst, many, requests, leases, retransmit, idle,\n"
"                    cache, calls, uring, passes or sockets\n"
"  -l, --list        the facilities; of those that were not built, what was missing\n"
"  -V, --version     the version\n"
"  -h, --help        this text\n"
"\n"
"Some workloads (idle timeouts, cache, lives of timers) last for up to a day. They run\n"
"only if idle time is skipped, as TW_ICOUNT=1 in the environment says.\n"
"\n"
"Progress goes to stderr. Results go to stdout, separated by tabs: facility, operation,\n"
"pending, batch, value, unit, clock. A skipped workload has `-' as its value and the reason\n"
"in place of the unit.\n";

/* Properties and requirements of a workload */
#define LONG_IDLE	1	/* takes hours that are mostly idle */
#define ANY_DEADLINE	2	/* timers have different timeouts */
#define OPERATIONS	4	/* measures operations, not expiry */
#define ONE_THREAD	8
#define OUR_DEVICE	16	/* only for timerwheel */
#define DESCRIPTORS	32	/* needs many descriptors: timerwheel, timerfd */
#define PROCESSES	64	/* has two processes */

static const struct workload {
	const char *name;
	void (*run)(void);
	unsigned int flags;
} workloads[] = {
	{ "ops", bench_ops, OPERATIONS },
	{ "expire", bench_expire, ANY_DEADLINE },
	{ "lateness", bench_lateness, ANY_DEADLINE },
	{ "burst", bench_burst, ANY_DEADLINE | ONE_THREAD },
	{ "many", bench_many, DESCRIPTORS },
	{ "requests", bench_requests, OPERATIONS },
	{ "leases", bench_leases, PROCESSES },
	{ "retransmit", bench_retransmit, OPERATIONS | ONE_THREAD },
	{ "idle", bench_idle, OPERATIONS | ONE_THREAD | LONG_IDLE },
	{ "cache", bench_cache, ANY_DEADLINE | LONG_IDLE },
	{ "calls", bench_calls, OUR_DEVICE },
	{ "uring", bench_uring, OUR_DEVICE },
	{ "passes", bench_passes, OUR_DEVICE },
	{ "sockets", bench_sockets, OUR_DEVICE },
};

__u32 bearable(const char *workload, __u32 wanted)
{
	__u32 most = facility->most;

	/* a quick run scales it down, too */
	if (most && options.most < 1000000)
		most /= 1000000 / options.most;
	if (!most || most >= wanted)
		return wanted;
	skipped(workload, wanted, "%s", facility->why);
	return most;
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
	die("no workload %s; see --help", name);
}

/* The reason to skip a workload for this facility; NULL: there is none */
static const char *not_for_it(unsigned int flags)
{
	if (flags & LONG_IDLE && !options.skips_idle)
		return "takes hours, because idle time is not skipped";
	if (flags & ANY_DEADLINE && facility->one_timeout)
		return "all its timers have the same timeout";
	if (flags & OPERATIONS && facility->expiry_only)
		return "differs from exact deadlines only in expiry";
	if (flags & ONE_THREAD && facility->threads > 1)
		return "the workload has one thread";
	return NULL;
}

static void measure(const struct workload *only)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(workloads); i++) {
		const struct workload *w = &workloads[i];
		const char *why_not;

		if (only && only != w)
			continue;
		if (facility->only && !strstr(facility->only, w->name))
			continue;
		if (w->flags & OUR_DEVICE && facility != &facility_timerwheel)
			continue;
		if (w->flags & DESCRIPTORS && facility != &facility_timerwheel &&
		    facility != &facility_timerwheel_mapped && facility != &facility_timerfd)
			continue;
		if (w->flags & PROCESSES && !facility->processes)
			continue;
		why_not = not_for_it(w->flags);
		if (why_not)
			skipped(w->name, 0, "%s", why_not);
		else
			w->run();
	}
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "most", required_argument, NULL, 'n' },
		{ "quick", no_argument, NULL, 'q' },
		{ "only", required_argument, NULL, 'o' },
		{ "list", no_argument, NULL, 'l' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	const struct workload *only = NULL;
	__u64 n;
	int c;

	progname = "bench";
	signals_reset();
	options.skips_idle = getenv("TW_ICOUNT");
	while ((c = getopt_long(argc, argv, "n:qo:lVh", longs, NULL)) != -1) {
		switch (c) {
		case 'n':
			if (!parse_count(optarg, &n) || n < 10000 || n > 100000000)
				die("--most needs a number from 10k to 100M, not '%s'", optarg);
			options.most = n;
			break;
		case 'q':
			options.most = 100000;
			options.budget = 20 * NSEC_PER_MSEC;
			options.idle_budget = 2500 * NSEC_PER_MSEC;
			options.longest_life = HOUR;
			break;
		case 'o':
			only = workload_named(optarg);
			break;
		case 'l':
			list();
			return EXIT_SUCCESS;
		case 'V':
			say_version();
			return EXIT_SUCCESS;
		case 'h':
			fputs(usage_text, stdout);
			return EXIT_SUCCESS;
		default:
			die("try --help");
		}
	}
	if (optind != argc - 1)
		die("one facility is needed; try --list or --help");
	facility = facility_named(argv[optind]);
	if (!facility)
		die("no facility %s; try --list", argv[optind]);
	if (facility->missing)
		die("%s is not available: the bench was built without %s", facility->name,
		    facility->missing);
	if (options.skips_idle)
		quieten_kernel();
	measure(only);
	return EXIT_SUCCESS;
}
