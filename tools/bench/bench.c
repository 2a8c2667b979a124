// SPDX-License-Identifier: GPL-2.0
/* See bench.h. This file: options, order. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct options options = {
	.timers = 1000000,
	.peers = 1000000,
	.posix = 100000,
};

static const char usage_text[] =
"usage: bench [OPTION]...\n"
"\n"
"What each operation on /dev/timerwheel costs with very many timers pending, and what\n"
"timerfd and POSIX timers cost beside it. Needs root. For figures that mean something\n"
"run it where a nanosecond is an instruction: tools/bench/run does that.\n"
"\n"
"  -n, --timers N    pending timers (1M)\n"
"  -p, --peers N     timerfds (1M; 0: none)\n"
"  -x, --posix N     POSIX timers (100k; 0: none)\n"
"  -q, --quick       100k timers, 20k peers, no life of 24 h\n"
"  -o, --only WHAT   ops, expiry, timerfd or posix\n"
"  -t, --tsv FILE    the table with tabs between its cells (-: instead of the other)\n"
"  -h, --help        this text\n"
"\n"
"Progress goes to stderr, the table to stdout.\n";

static __u32 count_of(const char *option, const char *text, __u64 min)
{
	__u64 n;

	if (!parse_count(text, &n) || n > 4000000 || (n && n < min))
		die("%s wants a number from %s to 4,000,000, not '%s'", option, commas(min), text);
	return n;
}

static bool wanted(const char *only, const char *what)
{
	return !only || !strcmp(only, what);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "timers", required_argument, NULL, 'n' },
		{ "peers", required_argument, NULL, 'p' },
		{ "posix", required_argument, NULL, 'x' },
		{ "quick", no_argument, NULL, 'q' },
		{ "only", required_argument, NULL, 'o' },
		{ "tsv", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	const char *only = NULL;
	int c;

	progname = "bench";
	while ((c = getopt_long(argc, argv, "n:p:x:qo:t:h", longs, NULL)) != -1) {
		switch (c) {
		case 'n':
			options.timers = count_of("--timers", optarg, 4 * BATCH);
			break;
		case 'p':
			options.peers = count_of("--peers", optarg, 1);
			break;
		case 'x':
			options.posix = count_of("--posix", optarg, 1);
			break;
		case 'q':
			options.quick = true;
			options.timers = 100000;
			options.peers = 20000;
			options.posix = 20000;
			break;
		case 'o':
			only = optarg;
			break;
		case 't':
			options.tsv = optarg;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return EXIT_SUCCESS;
		default:
			die("try --help");
		}
	}
	if (optind < argc)
		die("'%s' is not understood; try --help", argv[optind]);
	if (!options.timers)
		die("--timers 0 leaves nothing to measure");
	if (wanted(only, "ops"))
		bench_ops();
	if (wanted(only, "expiry"))
		bench_expiry();
	if (options.peers && wanted(only, "timerfd"))
		bench_timerfd();
	if (options.posix && wanted(only, "posix"))
		bench_posix();
	if (!options.tsv || strcmp(options.tsv, "-"))
		results_print();
	if (options.tsv)
		results_write(options.tsv);
	return EXIT_SUCCESS;
}
