// SPDX-License-Identifier: GPL-2.0
/* Structured random calls on /dev/timerwheel: arguments, tests, KTAP. See fuzz.h. */
#define _GNU_SOURCE
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"
#include "kselftest.h"

#define SECONDS		20
#define THREADS_MAX	64
#define REPEATED	100	/* number of programs that are run twice */
#define FIXED_SEEDS	4	/* seeds that are always run, from 1 on */
#define FIXED_PROGRAMS	50	/* number of programs of each */

static const char usage[] =
"usage: abi_fuzz [OPTION]...\n"
"Make structured random calls on /dev/timerwheel and check what they do.\n"
"\n"
"  --seconds N     run for N seconds (20; or TW_FUZZ_SECONDS in the environment)\n"
"  --seed N        seed of all random decisions (default: a new one each time)\n"
"  --threads N     threads of the second part (default: one per CPU, at least 2);\n"
"                  0: only the first part, one thread compared with the model\n"
"  --programs N    run N programs in each thread, instead of for a time\n"
"  --unguided      do not use KCOV. With KCOV, programs are derived from those\n"
"                  that reached new code, so the seed alone does not decide\n"
"  --program FILE  run only these calls, in one thread: lines printed by a failure\n"
"  --help          print this help\n"
"\n"
"With the same seed, and unguided, each thread makes the same calls again. A\n"
"single thread also gets the same results.\n";

static struct {
	unsigned int seconds;
	unsigned int threads;
	__u64 programs;
	const char *program;
} options;

static unsigned long number(const char *text)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 0);

	if (!*text || *end) {
		fprintf(stderr, "abi_fuzz: %s is not a number; see --help\n", text);
		exit(KSFT_FAIL);
	}
	return n;
}

static void read_options(int argc, char **argv)
{
	static const struct option names[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'e' },
		{ "threads", required_argument, NULL, 't' },
		{ "programs", required_argument, NULL, 'n' },
		{ "program", required_argument, NULL, 'p' },
		{ "unguided", no_argument, NULL, 'u' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	const char *seconds = getenv("TW_FUZZ_SECONDS");
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int c;

	options.seconds = seconds ? number(seconds) : SECONDS;
	options.threads = cpus > 2 ? cpus : 2;
	fuzz_seed = now_ns(CLOCK_REALTIME);
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 's':
			options.seconds = number(optarg);
			break;
		case 'e':
			fuzz_seed = number(optarg);
			break;
		case 't':
			options.threads = number(optarg);
			break;
		case 'n':
			options.programs = number(optarg);
			break;
		case 'p':
			options.program = optarg;
			break;
		case 'u':
			cover_wanted = false;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(KSFT_PASS);
		default:
			fputs("see --help\n", stderr);
			exit(KSFT_FAIL);
		}
	}
	if (optind < argc || options.threads > THREADS_MAX) {
		fputs("abi_fuzz: too many arguments, or a bad number of threads; see --help\n",
		      stderr);
		exit(KSFT_FAIL);
	}
}

static struct worker *new_worker(unsigned int number, __u64 seed, bool threads)
{
	struct worker *w = malloc(sizeof(*w));

	if (!w)
		ksft_exit_fail_msg("no memory\n");
	worker_init(w, number, seed, threads);
	return w;
}

static void free_worker(struct worker *w)
{
	worker_free(w);
	free(w);
}

static void report(struct worker **w, unsigned int n, __u64 began)
{
	__u64 calls = 0, programs = 0, ns = now_ns(CLOCK_MONOTONIC) - began;
	unsigned int i, corpus = 0;

	for (i = 0; i < n; i++) {
		calls += w[i]->calls;
		programs += w[i]->programs;
		corpus += w[i]->in_corpus;
	}
	ksft_print_msg("%llu programs, %llu calls in %llu s: %llu calls/s\n",
		       programs, calls, ns / SEC, calls * 1000 / (ns / 1000000 + 1));
	if (corpus)
		ksft_print_msg("KCOV: %u places reached so far, corpus of %u programs\n",
			       cover_total(), corpus);
	else
		ksft_print_msg("no KCOV: unguided\n");
}

static struct limits limits_in(unsigned int share)
{
	return (struct limits) {
		.until = options.programs ? 0 : now_ns(CLOCK_MONOTONIC) +
						options.seconds * SEC * share / 100,
		.programs = options.programs,
	};
}

static bool digest_of(__u64 seed, __u64 *digest)
{
	const struct limits limits = { .programs = REPEATED };
	struct worker *w = new_worker(0, seed, false);
	bool fine = single_run(w, &limits, NULL);

	*digest = w->digest;
	free_worker(w);
	return fine;
}

/* The same seed twice, and another one. */
static void test_repeat(void)
{
	__u64 first, again, other;
	bool fine;

	fine = digest_of(fuzz_seed, &first) && digest_of(fuzz_seed, &again) &&
	       digest_of(fuzz_seed + 1, &other);
	if (fine)
		ksft_print_msg("digest of %u programs: %016llx %016llx, other seed: %016llx\n",
			       REPEATED, first, again, other);
	ksft_test_result(fine && first == again && first != other,
			 "a seed repeats calls and results\n");
}

/* The same programs in each run. */
static void test_fixed(void)
{
	const struct limits limits = { .programs = FIXED_PROGRAMS };
	__u64 seed = fuzz_seed;
	bool fine = true;
	struct worker *w;

	/* A failure prints the seed. */
	for (fuzz_seed = 1; fine && fuzz_seed <= FIXED_SEEDS; fuzz_seed++) {
		w = new_worker(0, fuzz_seed, false);
		fine = single_run(w, &limits, NULL);
		free_worker(w);
	}
	fuzz_seed = seed;
	ksft_test_result(fine, "one thread does what the model does, with fixed seeds\n");
}

static void test_single(void)
{
	const struct limits limits = limits_in(options.threads ? 45 : 95);
	__u64 began = now_ns(CLOCK_MONOTONIC);
	struct worker *w = new_worker(0, fuzz_seed, false);
	bool fine;

	cover_open(&w->cover);
	fine = single_run(w, &limits, NULL);
	cover_close(&w->cover);
	report(&w, 1, began);
	ksft_print_msg("digest %016llx\n", w->digest);
	ksft_test_result(fine, "one thread does what the model does\n");
	free_worker(w);
}

static void test_threads(void)
{
	const struct limits limits = limits_in(45);
	__u64 began = now_ns(CLOCK_MONOTONIC);
	struct worker *w[THREADS_MAX];
	unsigned int i;
	bool fine;

	for (i = 0; i < options.threads; i++)
		w[i] = new_worker(i, fuzz_seed, true);
	fine = threads_run(w, options.threads, &limits);
	report(w, options.threads, began);
	ksft_test_result(fine, "threads: documented results only, and all counts add up\n");
	for (i = 0; i < options.threads; i++)
		free_worker(w[i]);
}

static void test_program(void)
{
	struct program program;
	struct worker *w = new_worker(0, fuzz_seed, false);

	if (!program_read(&program, options.program))
		ksft_exit_fail_msg("%s: cannot be read, or contains no call\n",
				   options.program);
	ksft_test_result(single_run(w, NULL, &program), "%u calls of %s\n", program.n,
			 options.program);
	free_worker(w);
}

/* May a wheel wake this machine? The answer does not change during the test. */
static void try_alarm(int fd)
{
	struct timerwheel_setup setup = {
		.size = sizeof(setup), .flags = TIMERWHEEL_SETUP_ALARM,
		.clock = TIMERWHEEL_CLOCK_BOOTTIME,
	};

	if (!ioctl(fd, TIMERWHEEL_IOC_SETUP, &setup))
		return;
	alarm_errors = error_bit(errno);
	if (!(alarm_errors & (MAY_EPERM | MAY_EOPNOTSUPP)))
		ksft_exit_fail_msg("SETUP_ALARM: %s\n", strerror(errno));
}

/* Can this machine have deadline tables? */
static void try_resident(int fd)
{
	struct timerwheel_info info = { .size = sizeof(info) };

	if (ioctl(fd, TIMERWHEEL_IOC_INFO, &info))
		ksft_exit_fail_msg("INFO: %s\n", strerror(errno));
	if (!(info.features & TIMERWHEEL_FEATURE_TABLE))
		resident_errors = MAY_EOPNOTSUPP;
}

int main(int argc, char **argv)
{
	int fd;

	read_options(argc, argv);
	setlinebuf(stdout);
	/* Some calls switch O_ASYNC on. */
	signal(SIGIO, SIG_IGN);
	ksft_print_header();
	ksft_set_plan(options.program ? 1 : options.threads ? 4 : 3);
	fd = dev_open(0);
	if (fd < 0)
		ksft_exit_fail_msg("/dev/timerwheel: %s\n", strerror(-fd));
	try_resident(fd);
	try_alarm(fd);
	close(fd);
	if (options.program) {
		test_program();
		ksft_finished();
	}
	ksft_print_msg("--seed %#llx --threads %u\n", fuzz_seed, options.threads);
	test_repeat();
	test_fixed();
	test_single();
	if (options.threads)
		test_threads();
	ksft_finished();
}
