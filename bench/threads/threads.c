// SPDX-License-Identifier: GPL-2.0
/*
 * Scaling of the device: one thread on each CPU operates on its own timers. Prints operations per
 * millisecond with 1, 2, ... threads: the median, minimum and maximum of some rounds. All threads
 * use one wheel. For comparison, because a machine is not N times as fast with N processors, each
 * uses its own wheel: any loss in this case is not due to sharing.
 *
 * Resident timers are armed and cancelled in the deadline table. They are compared with the minimum
 * that a queue in the process needs when threads share it: a lock, and a store while it is held.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/timerwheel-mapped.h"
#include "util.h"
#include "wheel.h"

#define BATCH		256
#define MOST_THREADS	64
#define MOST_ROUNDS	99
#define HOUR		3600000000000ULL

static const char usage_text[] =
"usage: threads [OPTION]...\n"
"\n"
"Measure operations per millisecond with 1, 2, ... threads. Each thread has its own CPU and\n"
"its own timers, 256 in a call. All threads use the same wheel, or (`apart') each its own. The\n"
"quotient of the two shows the cost of sharing a wheel. In memory, without calls: resident\n"
"timers, and a lock with a store, the least that threads need to share a queue.\n"
"\n"
"  -t, --threads N   maximum number of threads (the number of CPUs)\n"
"  -n, --timers N    timers of each thread (100k)\n"
"  -r, --rounds N    rounds of half a second for each number of threads (7)\n"
"  -V, --version     the version\n"
"  -h, --help        this text\n"
"\n"
"Rounds differ if the machine has other work, or if a guest has more CPUs than its host.\n";

struct way;

struct worker {
	pthread_t thread;
	int cpu;
	int wheel;
	const struct way *way;
	__u64 *table;			/* the deadline table; of @bits bits is a generation */
	size_t table_size;
	unsigned int bits;
	pthread_mutex_t own_lock, *lock;
	struct timerwheel_add *add;
	struct timerwheel_move *move;
	struct timerwheel_remove *remove;
	__u64 random;
	__u64 deadline;			/* the last one in memory */
	__u64 done;
};

static __u32 timers = 100000;
static atomic_bool stop;
static pthread_barrier_t barrier;

static __u64 some_deadline(struct worker *w)
{
	return HOUR + random_below(&w->random, 4 * HOUR);
}

static void move(struct worker *w, __u32 at, __u32 n)
{
	__u32 i;

	for (i = at; i < at + n; i++)
		w->move[i].deadline = some_deadline(w);
	wheel_move(w->wheel, w->move + at, n);
	w->done += n;
}

static void remove_add(struct worker *w, __u32 at, __u32 n)
{
	wheel_remove(w->wheel, w->remove + at, n);
	wheel_add(w->wheel, w->add + at, n);
	w->done += 2 * n;
}

static void arm_cancel(struct worker *w, __u32 at, __u32 n)
{
	__u32 i;

	for (i = at; i < at + n; i++) {
		const struct timerwheel_add *add = &w->add[i];
		__u64 entry = timerwheel_mapped_entry(++w->deadline, add->generation, w->bits);

		if (timerwheel_mapped_arm(w->table, add->index, entry, w->bits) ||
		    timerwheel_mapped_cancel(w->table, add->index, add->generation, w->bits))
			die("a timer could not be armed and cancelled");
	}
	w->done += 2 * n;
}

static void lock_store(struct worker *w, __u32 at, __u32 n)
{
	__u32 i, twice;

	for (i = at; i < at + n; i++) {
		for (twice = 0; twice < 2; twice++) {
			pthread_mutex_lock(w->lock);
			w->move[i].deadline = ++w->deadline;
			pthread_mutex_unlock(w->lock);
		}
	}
	w->done += 2 * n;
}

/* The measurements */
static const struct way {
	const char *name;
	void (*work)(struct worker *w, __u32 at, __u32 n);
	bool resident;
	bool apart;
} ways[] = {
	{ .name = "REMOVE+ADD", .work = remove_add },
	{ .name = "REMOVE+ADD apart", .work = remove_add, .apart = true },
	{ .name = "MOVE", .work = move },
	{ .name = "MOVE apart", .work = move, .apart = true },
	{ .name = "arm+cancel", .work = arm_cancel, .resident = true },
	{ .name = "arm+cancel apart", .work = arm_cancel, .resident = true, .apart = true },
	{ .name = "lock+store", .work = lock_store },
	{ .name = "lock+store apart", .work = lock_store, .apart = true },
};

#define WAYS	ARRAY_SIZE(ways)

static void map_table(struct worker *w)
{
	struct timerwheel_info info;

	wheel_info(w->wheel, &info);
	w->bits = info.generation_bits;
	w->table_size = info.capacity * sizeof(*w->table);
	w->table = mmap(NULL, w->table_size, PROT_READ | PROT_WRITE, MAP_SHARED, w->wheel,
			TIMERWHEEL_MMAP_DEADLINES);
	if (w->table == MAP_FAILED)
		die("mmap of the deadline table: %s", strerror(errno));
}

static int new_wheel(const struct way *way)
{
	struct timerwheel_setup setup = {
		.flags = way->resident ? TIMERWHEEL_SETUP_RESIDENT : 0,
	};
	int wheel = wheel_open();

	wheel_setup(wheel, &setup);
	return wheel;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	cpu_set_t set;
	__u32 i, at = 0, n;

	CPU_ZERO(&set);
	CPU_SET(w->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("cannot run on CPU %d: %s", w->cpu, strerror(errno));
	w->add = xcalloc(timers, sizeof(*w->add));
	w->move = xcalloc(timers, sizeof(*w->move));
	w->remove = xcalloc(timers, sizeof(*w->remove));
	for (i = 0; i < timers; i++) {
		__u64 key = mix64((__u64)w->cpu << 32 | i);

		w->add[i] = (struct timerwheel_add){ .key = key, .deadline = some_deadline(w) };
		w->move[i].key = key;
		w->remove[i].key = key;
	}
	for (at = 0; at < timers; at += n) {
		n = timers - at < BATCH ? timers - at : BATCH;
		wheel_add(w->wheel, w->add + at, n);
	}
	if (w->way->resident)
		map_table(w);
	w->deadline = now_ns() + 6 * HOUR;

	at = 0;
	pthread_barrier_wait(&barrier);		/* all are ready */
	while (!stop) {
		n = timers - at < BATCH ? timers - at : BATCH;
		w->way->work(w, at, n);
		at = at + n < timers ? at + n : 0;
	}
	pthread_barrier_wait(&barrier);		/* all have ended */
	if (w->way->resident)
		munmap(w->table, w->table_size);
	free(w->add);
	free(w->move);
	free(w->remove);
	return NULL;
}

/* Returns operations per millisecond. */
static double measure(int threads, const struct way *way)
{
	static struct worker worker[MOST_THREADS];
	__u64 began, ended, done = 0;
	int i;

	stop = false;
	pthread_barrier_init(&barrier, NULL, threads + 1);
	for (i = 0; i < threads; i++) {
		worker[i] = (struct worker){ .cpu = i, .way = way, .random = i };
		worker[i].wheel = i && !way->apart ? worker[0].wheel : new_wheel(way);
		pthread_mutex_init(&worker[i].own_lock, NULL);
		worker[i].lock = &worker[way->apart ? i : 0].own_lock;
		if (pthread_create(&worker[i].thread, NULL, worker_main, &worker[i]))
			die("cannot start a thread");
	}
	pthread_barrier_wait(&barrier);
	began = now_ns();
	usleep(500000);
	stop = true;
	pthread_barrier_wait(&barrier);
	ended = now_ns();
	for (i = 0; i < threads; i++) {
		pthread_join(worker[i].thread, NULL);
		done += worker[i].done;
	}
	pthread_barrier_destroy(&barrier);
	for (i = 0; i < (way->apart ? threads : 1); i++)
		close(worker[i].wheel);
	return done * 1e6 / (ended - began);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int number(const char *option, const char *text, int most)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end || n < 1 || n > most)
		die("%s needs a number from 1 to %d, not '%s'", option, most, text);
	return n;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "threads", required_argument, NULL, 't' },
		{ "timers", required_argument, NULL, 'n' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	static double ops[WAYS][MOST_ROUNDS], one[WAYS];
	int threads = sysconf(_SC_NPROCESSORS_ONLN), rounds = 7, t, r, c;
	unsigned int m;

	progname = "threads";
	if (threads > MOST_THREADS)
		threads = MOST_THREADS;
	while ((c = getopt_long(argc, argv, "t:n:r:Vh", longs, NULL)) != -1) {
		switch (c) {
		case 't':
			threads = number("--threads", optarg, MOST_THREADS);
			break;
		case 'n':
			timers = number("--timers", optarg, 1000000);
			break;
		case 'r':
			rounds = number("--rounds", optarg, MOST_ROUNDS);
			break;
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
	if (optind < argc)
		die("unexpected argument '%s'; try --help", argv[optind]);

	printf("threads  operation          per ms    least     most   times one thread\n");
	for (t = 1; t <= threads; t++) {
		/* alternate, so that other work of the machine affects all in the same way */
		for (r = 0; r < rounds; r++)
			for (m = 0; m < WAYS; m++)
				ops[m][r] = measure(t, &ways[m]);
		for (m = 0; m < WAYS; m++) {
			qsort(ops[m], rounds, sizeof(ops[m][0]), by_value);
			if (t == 1)
				one[m] = ops[m][rounds / 2];
			printf("%7d  %-16s %8.0f %8.0f %8.0f   %.2f\n", t,
			       ways[m].name, ops[m][rounds / 2], ops[m][0], ops[m][rounds - 1],
			       ops[m][rounds / 2] / one[m]);
			fflush(stdout);
		}
	}
	return EXIT_SUCCESS;
}
