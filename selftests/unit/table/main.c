// SPDX-License-Identifier: GPL-2.0
/*
 * Runs each configuration in its own process, so that the others still run after one aborts, as
 * sanitizers do. Prints KTAP.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/kernel.h>

#include "cases.h"
#include "driver.h"
#include "fail.h"
#include "hash.h"

/* Limits on the CPU time of a run, in s: longer ones hang. The second is for --short. */
#define TIME_LIMIT		120
#define TIME_LIMIT_SHORT	2

static const char usage[] =
"usage: table_test [OPTION]... [NAME]...\n"
"Test the module's tables, operations, due list and ring in user space.\n"
"\n"
"  --seed N   begin the generator with N (1)\n"
"  --short    a tenth of the operations; stop at the first failure\n"
"  --first N  number the tests from N on and print no plan\n"
"  --count    print the number of tests\n"
"  NAME       only the runs with these names, see --list\n"
"  --list     print the names\n";

/* Offset of a time namespace: this much ahead, or behind */
#define AHEAD	123456789012LL

/*
 * A run of the driver; if @seeds is not 0, a test of the hash with that many seeds; if @call is not
 * NULL, one of cases.h
 */
struct run {
	const char *name;
	struct config config;
	unsigned int seeds;
	void (*call)(void);
};

static const struct run runs[] = {
	{ "one timer",
	  { .keys = 1, .capacity = 1, .bases = 1, .bits = 12, .files = 10, .ops = 10000,
	    .walk = 1 } },
	{ "few keys",
	  { .keys = 12, .capacity = 8, .bases = 1, .files = 20, .ops = 10000, .walk = 1 } },
	{ "few keys, two CPUs",
	  { .keys = 12, .capacity = 8, .bases = 2, .monitors = 4, .bits = 12, .files = 20,
	    .ops = 10000,
	    .walk = 1 } },
	{ "few keys, two CPUs, ring",
	  { .keys = 40, .capacity = 30, .bases = 2, .ring = 4, .monitors = 17, .bits = 4,
	    .offset = AHEAD,
	    .files = 20, .ops = 10000, .walk = 1 } },
	{ "one chain",
	  { .keys = 48, .capacity = 250, .bases = 1, .alike = 1, .bits = 5, .offset = -AHEAD,
	    .files = 10, .ops = 10000, .walk = 10 } },
	{ "one chain, two CPUs",
	  { .keys = 40, .capacity = 90, .bases = 2, .alike = 1, .files = 20, .ops = 10000,
	    .walk = 10 } },
	{ "no memory",
	  { .keys = 1000, .capacity = 900, .bases = 1, .monitors = 8, .bits = 12, .refuse = 2,
	    .files = 50, .ops = 2000, .walk = 20 } },
	{ "no memory, two CPUs, ring",
	  { .keys = 3000, .capacity = 2500, .bases = 2, .ring = 64, .monitors = 3, .bits = 14,
	    .refuse = 4,
	    .offset = -AHEAD, .files = 50, .ops = 2000, .walk = 50 } },
	{ "many keys",
	  { .keys = 60000, .capacity = 50000, .bases = 2, .bits = 20, .files = 4, .ops = 20000,
	    .walk = 1000 } },
	{ "many keys, ring",
	  { .keys = 60000, .capacity = 60000, .bases = 2, .ring = 4096, .monitors = 5,
	    .files = 4, .ops = 20000, .walk = 1000 } },
	{ "keys in patterns", .seeds = 1000 },
	{ "DRAIN of a timer that changes", .call = case_drain_changed },
	{ "a new owner during a lookup", .call = case_new_owner },
	{ "the event of a clock comes first", .call = case_clock_set_first },
	{ "read() into memory that cannot be written", .call = case_unwritable },
	{ "timers in the bases of two other CPUs", .call = case_elsewhere },
	{ "a timer that other CPUs move", .call = case_hops },
	{ "ADD to a full wheel that another CPU churns", .call = case_churned },
	{ "timers that wait for a ring are withdrawn", .call = case_withdrawn },
	{ "indices from user space are limited", .call = case_limited },
};

/* Run one in its own process. Returns whether it passed. */
static bool run(const struct run *r, u64 seed, unsigned int limit, struct driver_stats *stats)
{
	const struct rlimit core = { 0, 0 };
	const struct rlimit cpu = { limit, limit };
	int status;
	pid_t pid;

	memset(stats, 0, sizeof(*stats));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		setrlimit(RLIMIT_CORE, &core);
		setrlimit(RLIMIT_CPU, &cpu);
		if (r->call)
			r->call();
		else if (r->seeds)
			hash_run(r->seeds, seed);
		else
			driver_run(&r->config, seed, stats);
		exit(0);
	}
	while (pid < 0 || waitpid(pid, &status, 0) < 0) {
		if (pid < 0 || errno != EINTR) {
			perror("table_test");
			return false;
		}
	}
	if (WIFSIGNALED(status))
		printf("# %s\n", strsignal(WTERMSIG(status)));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static void print_stats(const struct driver_stats *s)
{
	printf("# %llu new, %llu on pending and %llu on due timers, %llu failed, %llu events, ",
	       s->done[0], s->done[1], s->done[2], s->refused, s->events);
	printf("%llu copies, %llu expiries, %llu stores, %llu in gaps, ", s->copies, s->expiries,
	       s->stores, s->gaps);
	printf("grown %llu times, growth failed %llu times, ", s->grown, s->failed);
	printf("at most %llu timers, %llu in a chain\n", s->most, s->longest);
}

/* Is @name one of @names? */
static bool is_among(const char *name, char **names)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

/* Is there a run for each of @names? */
static bool all_known(char **names)
{
	unsigned int i;

	for (; *names; names++) {
		for (i = 0; i < ARRAY_SIZE(runs) && strcmp(runs[i].name, *names); i++)
			;
		if (i == ARRAY_SIZE(runs)) {
			fprintf(stderr, "table_test: no run \"%s\"; see --list\n", *names);
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	unsigned int limit = TIME_LIMIT, number = 1, failed = 0, i;
	struct driver_stats *stats;
	bool plan = true, brief = false;
	u64 seed = 1;

	for (i = 1; i < (unsigned int)argc && argv[i][0] == '-'; i++) {
		const char *arg = argv[i], *value = argv[i + 1];

		if (!strcmp(arg, "--count")) {
			printf("%zu\n", ARRAY_SIZE(runs));
			return 0;
		}
		if (!strcmp(arg, "--list")) {
			for (i = 0; i < ARRAY_SIZE(runs); i++)
				printf("%s\n", runs[i].name);
			return 0;
		}
		if (!strcmp(arg, "--short")) {
			brief = true;
			limit = TIME_LIMIT_SHORT;
		} else if (!strcmp(arg, "--seed") && value) {
			seed = strtoull(value, NULL, 0);
			i++;
		} else if (!strcmp(arg, "--first") && value) {
			number = strtoul(value, NULL, 0);
			plan = false;
			i++;
		} else {
			fputs(usage, stderr);
			return 2;
		}
	}
	argv += i;
	if (!all_known(argv))
		return 2;
	stats = mmap(NULL, sizeof(*stats), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	CHECK(stats != MAP_FAILED, "no memory");
	if (plan)
		printf("TAP version 13\n");
	if (plan && !*argv)
		printf("1..%zu\n", ARRAY_SIZE(runs));
	for (i = 0; i < ARRAY_SIZE(runs) && !(brief && failed); i++) {
		struct run r = runs[i];
		bool ok;

		if (*argv && !is_among(runs[i].name, argv))
			continue;
		if (brief)
			r.config.ops /= 10;
		ok = run(&r, seed, limit, stats);
		if (!r.seeds && !r.call)
			print_stats(stats);
		if (!ok)
			printf("# repeat with: table_test --seed %llu \"%s\"\n", seed,
			       runs[i].name);
		printf("%s %u - table: %s\n", ok ? "ok" : "not ok", number++, runs[i].name);
		failed += !ok;
	}
	return !!failed;
}
