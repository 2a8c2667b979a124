// SPDX-License-Identifier: GPL-2.0
/*
 * pauses: run a command, and measure for how long this machine stood still meanwhile.
 *
 * A thread on each CPU sleeps for a few milliseconds at a time, with real-time priority where that
 * is allowed. If it wakes up late, the CPU did not run: the host of a virtual machine gave the
 * processor to others, or the machine was suspended.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util.h"

#define PERIOD	(5 * NSEC_PER_MSEC)
/* A CPU that runs wakes a thread up within this time. */
#define NOISE	(2 * NSEC_PER_MSEC)

/* EX_TEMPFAIL: the command's claims on time do not hold, everything else is right. */
#define INCONCLUSIVE	75

struct watcher {
	pthread_t thread;
	int cpu;
	__u64 due;		/* when it was started, then when it is to wake up next */
	__u64 total;		/* ns that this CPU stood still */
	__u64 longest;		/* at once */
};

static atomic_bool ended;
static __u64 excuse = NSEC_PER_SEC;

static const char usage_text[] =
"usage: pauses [--excuse TIME] COMMAND...\n"
"\n"
"Run COMMAND, and print for how long this machine stood still meanwhile. COMMAND exits with status\n"
"75 if only claims on time do not hold. Then the result is inconclusive if the machine stood still\n"
"for TIME (1s) or longer, and a failure otherwise.\n"
"\n"
"The exit status is 75 if the result is inconclusive, 1 if it is a failure, and otherwise the\n"
"status of COMMAND.\n";

static void *watch(void *arg)
{
	struct sched_param priority = { .sched_priority = 50 };
	struct watcher *watcher = arg;
	cpu_set_t set;
	__u64 late;

	CPU_ZERO(&set);
	CPU_SET(watcher->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	/* Without the right to do this, delays by other programs count as well. */
	sched_setscheduler(0, SCHED_FIFO, &priority);
	do {
		watcher->due += PERIOD;
		sleep_until(watcher->due);
		late = now_ns() - watcher->due;
		if (late < NOISE)
			continue;
		watcher->due += late;
		watcher->total += late;
		if (late > watcher->longest)
			watcher->longest = late;
	} while (!atomic_load(&ended));
	return NULL;
}

static int run(char **command)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		execvp(*command, command);
		die("cannot run %s: %s", *command, strerror(errno));
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			die("waitpid: %s", strerror(errno));
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "excuse", required_argument, NULL, 'e' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), status, i, c;
	__u64 began = now_ns(), total = 0, longest = 0;
	struct watcher *watchers;

	progname = "pauses";
	signals_reset();
	while ((c = getopt_long(argc, argv, "+e:h", longs, NULL)) != -1) {
		switch (c) {
		case 'e':
			if (!parse_duration(optarg, &excuse))
				die("--excuse needs a time such as 500ms or 2s, not '%s'", optarg);
			break;
		case 'h':
			fputs(usage_text, stdout);
			return EXIT_SUCCESS;
		default:
			die("try --help");
		}
	}
	if (optind == argc)
		die("a command is required; try --help");
	watchers = xcalloc(cpus, sizeof(*watchers));
	for (i = 0; i < cpus; i++) {
		watchers[i].cpu = i;
		watchers[i].due = now_ns();
		errno = pthread_create(&watchers[i].thread, NULL, watch, &watchers[i]);
		if (errno)
			die("pthread_create: %s", strerror(errno));
	}
	status = run(argv + optind);
	atomic_store(&ended, true);
	for (i = 0; i < cpus; i++) {
		pthread_join(watchers[i].thread, NULL);
		if (watchers[i].total > total)
			total = watchers[i].total;
		if (watchers[i].longest > longest)
			longest = watchers[i].longest;
	}
	free(watchers);
	printf("\nThis machine stood still for %s of %s, and for at most %s at once.\n",
	       duration(total), duration(now_ns() - began), duration(longest));
	if (status != INCONCLUSIVE)
		return status;
	if (total >= excuse) {
		printf("inconclusive: this machine stood still for %s\n", duration(total));
		return INCONCLUSIVE;
	}
	printf("FAIL  claims on time do not hold, though this machine stood still for only %s\n",
	       duration(total));
	return EXIT_FAILURE;
}
