// SPDX-License-Identifier: GPL-2.0
/*
 * Runs each case and each configuration in its own process, so that the others still run after one
 * aborts, as sanitizers do. Prints KTAP.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "config.h"
#include "driver.h"
#include "fail.h"

/* Limits on the CPU time of a test, in s: longer ones hang. The second is for --short. */
#define TIME_LIMIT		200
#define TIME_LIMIT_SHORT	2

static unsigned int time_limit = TIME_LIMIT;

static const char usage[] =
"usage: wheel_test [OPTION]...\n"
"Test the timing wheel (module/wheel.c) in user space.\n"
"\n"
"  --seed N           begin the generator with N (1)\n"
"  --config NAME=N,.. only one run, with these settings (defaults:\n"
"                     slots=256,timers=100,tick=1000000,ops=1000000,walk=1,manual=0,bits=20)\n"
"  --trace            with --config: print each operation\n"
"  --case NAME        only the case with this name\n"
"  --short            a twentieth of the operations, no large cases; stop at the first\n"
"                     failure\n"
"  --first N          number the tests from N on and print no plan\n"
"  --count            print the number of tests\n";

/**
 * struct options - the command line
 * @seed: --seed
 * @number: of the first test, --first
 * @plan: print the plan
 * @brief: --short
 */
struct options {
	u64 seed;
	unsigned int number;
	bool plan;
	bool brief;
};

static double seconds(void)
{
	struct timeval tv;

	gettimeofday(&tv, NULL);
	return tv.tv_sec + tv.tv_usec / 1e6;
}

/* Wait for a test. Returns whether it passed. */
static bool finish(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	if (WIFSIGNALED(status))
		printf("# %s\n", strsignal(WTERMSIG(status)));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Start a process for a test. Returns as fork() does. */
static pid_t begin(void)
{
	const struct rlimit core = { 0, 0 };
	const struct rlimit cpu = { time_limit, time_limit };
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	if (!pid) {
		setrlimit(RLIMIT_CORE, &core);
		setrlimit(RLIMIT_CPU, &cpu);
	}
	return pid;
}

static bool run_case(const struct test_case *test)
{
	pid_t pid = begin();

	if (pid)
		return finish(pid);
	test->run();
	exit(0);
}

/* @stats is shared with the test's process. */
static bool run_config(const struct config *config, u64 seed, struct driver_stats *stats,
		       bool trace)
{
	pid_t pid;

	memset(stats, 0, sizeof(*stats));
	pid = begin();
	if (pid)
		return finish(pid);
	driver_run(config, seed, stats, trace);
	exit(0);
}

static void print_stats(const struct driver_stats *s, double took)
{
	printf("# %llu operations in %.1f s: %llu wheels, %llu inserted, %llu postponed, ",
	       s->ops, took, s->epochs, s->inserted, s->postponed);
	printf("%llu by stores, ", s->stored);
	printf("%llu removed, %llu expired, %llu cascaded, %llu visited early, ",
	       s->removed, s->expired, s->cascades, s->requeues);
	printf("%llu batches, %llu left backlogs (at most %llu), clock set back %llu times, ",
	       s->collects, s->backlogs, s->most_backlogs, s->biases);
	printf("%llu walks\n", s->walks);
}

static int run_all(const struct options *o, struct driver_stats *stats)
{
	unsigned int i, number = o->number, done = 0, failed = 0;
	double start, begun = seconds();
	u64 ops = 0;

	if (o->plan)
		printf("TAP version 13\n");
	if (o->plan && !o->brief)
		printf("1..%u\n", case_count + config_count);
	for (i = 0; i < case_count && !(o->brief && failed); i++) {
		bool ok;

		if (o->brief && case_table[i].large)
			continue;
		ok = run_case(&case_table[i]);
		done++;
		printf("%s %u - wheel: %s\n", ok ? "ok" : "not ok", number++, case_table[i].name);
		failed += !ok;
	}
	for (i = 0; i < config_count && !(o->brief && failed); i++) {
		struct config c = config_table[i];
		char text[128];
		bool ok;

		if (o->brief)
			c.ops /= 20;
		start = seconds();
		ok = run_config(&c, o->seed, stats, false);
		print_stats(stats, seconds() - start);
		ops += stats->ops;
		config_print(&c, text, sizeof(text));
		printf("%s %u - wheel: random: %s\n", ok ? "ok" : "not ok", number++, text);
		failed += !ok;
		done++;
	}
	printf("# %llu random operations, seed %llu, %.1f s in all, %u of %u tests failed\n", ops,
	       o->seed, seconds() - begun, failed, done);
	return !!failed;
}

static int run_one_case(const char *name)
{
	unsigned int i;

	for (i = 0; i < case_count; i++) {
		if (strcmp(case_table[i].name, name))
			continue;
		return !run_case(&case_table[i]);
	}
	fprintf(stderr, "wheel_test: no case \"%s\"\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	struct config config = { 256, 100, 1000000, 1000000, 1, false, 20 };
	struct options o = { .seed = 1, .number = 1, .plan = true };
	const char *one_case = NULL;
	bool one = false, trace = false;
	struct driver_stats *stats;
	int i;

	for (i = 1; i < argc; i++) {
		const char *arg = argv[i];
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (!strcmp(arg, "--trace")) {
			trace = true;
		} else if (!strcmp(arg, "--short")) {
			o.brief = true;
			time_limit = TIME_LIMIT_SHORT;
		} else if (!strcmp(arg, "--count")) {
			printf("%u\n", case_count + config_count);
			return 0;
		} else if (!strcmp(arg, "--seed") && value) {
			o.seed = strtoull(value, NULL, 0);
			i++;
		} else if (!strcmp(arg, "--first") && value) {
			o.number = strtoul(value, NULL, 0);
			o.plan = false;
			i++;
		} else if (!strcmp(arg, "--config") && value && config_parse(&config, value)) {
			one = true;
			i++;
		} else if (!strcmp(arg, "--case") && value) {
			one_case = value;
			i++;
		} else {
			fputs(usage, stderr);
			return 2;
		}
	}
	stats = mmap(NULL, sizeof(*stats), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	CHECK(stats != MAP_FAILED, "no memory");
	if (one_case)
		return run_one_case(one_case);
	if (one) {
		double start = seconds();
		bool ok = run_config(&config, o.seed, stats, trace);

		print_stats(stats, seconds() - start);
		return !ok;
	}
	return run_all(&o, stats);
}
