// SPDX-License-Identifier: GPL-2.0
/*
 * Timers in real time: the same operations, on the same timers, in the same random order, for the
 * module and for other queues inside a process. See README.md.
 *
 * native --peers
 * native --calls
 * native [--count] PEER TIMERS ROUNDS
 *
 * Prints a line "ROW TIMERS OPERATIONS NS" for each row and round; --count prints no times, and
 * dumps the counts of callgrind under the name of the row.
 *
 * Time is simulated, so no call waits: clock_gettime() and epoll_wait() of the libraries are
 * here. Deliveries are checked after the measurement: each pending timer once, none early.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "../bench.h"
#include "native.h"
#include "peers.h"

#if __has_include("valgrind/callgrind.h")
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION	do { } while (0)
#define CALLGRIND_TOGGLE_COLLECT	do { } while (0)
#define CALLGRIND_ZERO_STATS		do { } while (0)
#define CALLGRIND_DUMP_STATS_AT(name)	((void)(name))
#endif

#define CHUNK	1024	/* approximate number of operations between two turns of the event loop */
#define CALL	256	/* operations in a call */
#define SAMPLE	262144	/* operations in a row, if there are more than twice as many timers */
#define COUNTED	65536	/* the same with --count */

/* an ioctl that no file has */
#define NO_IOCTL	_IO(0xff, 0xff)

#ifdef __x86_64__
#define fence()	__builtin_ia32_lfence()
#else
#define fence()	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

__u32 native_timers;
bool expiring;
__u32 *native_log, native_logged;

static const struct peer *peer;
static const struct facility *queue;
static bool counting;
static __u32 n, sample;
static __u32 *order;			/* all timers, in an order that changes with each row */
static __u32 *other_order;
static struct change *change;
__u64 seed;
static __u64 *deadline;			/* of timer i; 0: it is not pending */
static struct turn {			/* of the event loop */
	__u32 logged;			/* deliveries so far */
	__u64 end;
} *turns;

/* --- Simulated time ----------------------------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	time->tv_sec = lines_now / NSEC_PER_SEC;
	time->tv_nsec = lines_now % NSEC_PER_SEC;
	return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	(void)zone;
	time->tv_sec = lines_now / NSEC_PER_SEC;
	time->tv_usec = lines_now % NSEC_PER_SEC / NSEC_PER_USEC;
	return 0;
}

static __thread bool main_thread;

/* No descriptor is ready, and a microsecond has passed. A thread of a library waits forever. */
static int pass(void)
{
	while (!main_thread)
		pause();
	lines_now += NSEC_PER_USEC;
	return 0;
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	(void)fd;
	(void)events;
	(void)most;
	(void)timeout;
	return pass();
}

int epoll_pwait(int fd, struct epoll_event *events, int most, int timeout, const sigset_t *signals)
{
	(void)signals;
	return epoll_wait(fd, events, most, timeout);
}

/* This makes Boost.Asio pass its timeout to epoll_wait(). */
int timerfd_create(int clock, int flags)
{
	if (peer->facility != &native_asio)
		return syscall(SYS_timerfd_create, clock, flags);
	errno = EPERM;
	return -1;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	/* The library waits for a timerfd that is due at once. */
	if (!new->it_value.tv_sec && new->it_value.tv_nsec)
		return syscall(SYS_timerfd_settime, fd, flags, new, old);
	return 0;
}

/* CPU time of this thread: other work of the machine does not count, except in the caches. */
static __u64 cpu_time(void)
{
	struct timespec time;

	syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * NSEC_PER_SEC + time.tv_nsec;
}

/* A timeout of 30 s that is refreshed every 10 s. So most deadlines are 20 s to 30 s ahead. */
#define TIMEOUT		(30 * NSEC_PER_SEC)
#define EVERY		(10 * NSEC_PER_SEC)
#define TIMERS_PER_MS	262U

/* --- Measured work ------------------------------------------------------------------ */

enum row_kind {
	APPLY,		/* one operation on each timer */
	SERIAL,		/* the same, each after the previous one has ended */
	LOOP,		/* as APPLY, with turns of the event loop while time passes */
	REQUESTS,	/* as LOOP: arm, and cancel 1,024 requests later */
	EXPIRE,		/* turns of the event loop until this number of timers has expired */
};

struct row {
	enum row_kind kind;
	enum op op;
	__u32 count;
	__u64 step;	/* time between two turns of the event loop, in ns */
};

typedef void (*operation)(const struct change *changes, __u32 n);

struct job {
	operation function;
	__u32 from, count;
	bool serial;
};

static operation operation_of(enum op op)
{
	switch (op) {
	case ARM:	return queue->arm;
	case MOVE:	return queue->move;
	case REFRESH:	return queue->refresh;
	default:	return queue->cancel;
	}
}

static void do_job(void *arg)
{
	const struct job *job = arg;
	const struct change *next = change + job->from, *end = next + job->count;
	__u32 part;

	for (; next < end; next += part) {
		part = end - next < CALL ? end - next : CALL;
		if (job->serial)
			part = 1;
		job->function(next, part);
		/* wait for its loads */
		if (job->serial)
			fence();
	}
}

static void operate(enum op op, __u32 from, __u32 count, bool serial)
{
	struct job job = { operation_of(op), from, count, serial };

	if (queue->inside)
		queue->inside(do_job, &job);
	else
		do_job(&job);
}

/* Let time pass. A turn begins with a millisecond, because libuv rounds its timeouts up to that. */
static void turn(__u64 step)
{
	lines_now = (lines_now + step) / NSEC_PER_MSEC * NSEC_PER_MSEC;
	queue->run(lines_now);
}

/* The time between two turns, in ms, and operations in it, if each timer has one in EVERY */
static __u64 step_of_loop(void)
{
	return (CHUNK * EVERY / n / NSEC_PER_MSEC + 1) * NSEC_PER_MSEC;
}

static __u32 chunk_of_loop(void)
{
	return n * step_of_loop() / EVERY;
}

static void measured(const struct row *row)
{
	__u32 i, steps = 0, part = row->count;

	if (row->kind == LOOP || row->kind == REQUESTS)
		part = chunk_of_loop();
	for (i = 0; row->kind != EXPIRE && i < row->count; i += part) {
		if (part > row->count - i)
			part = row->count - i;
		operate(row->op, i, part, row->kind == SERIAL);
		if (row->kind == REQUESTS)
			operate(CANCEL, i, part, false);
		if (row->step)
			turn(row->step);
	}
	while (row->kind == EXPIRE && native_logged < row->count) {
		turn(row->step);
		turns[steps++] = (struct turn) { native_logged, lines_now };
	}
}

static __u64 spend(const struct row *row)
{
	__u64 began;

	CALLGRIND_ZERO_STATS;
	began = cpu_time();
	CALLGRIND_TOGGLE_COLLECT;
	measured(row);
	CALLGRIND_TOGGLE_COLLECT;
	return cpu_time() - began;
}

/* --- Rows --------------------------------------------------------------------------- */

static void report(const char *name, const struct row *row, __u64 ns)
{
	if (!name)
		return;
	if (counting)
		CALLGRIND_DUMP_STATS_AT(name);
	printf("%s %u %u %llu\n", name, n, row->count, counting ? 0 : (unsigned long long)ns);
	fflush(stdout);
}

/* Begin @order with @count random timers: a new permutation, or the timers of the last row. */
static void choose(__u32 count, bool again)
{
	__u32 i, j, t, among = again ? count : n;

	for (i = 0; i < count; i++) {
		j = i + random_below(&seed, among - i);
		t = order[i];
		order[i] = order[j];
		order[j] = t;
	}
}

/* Prepare changes of the first @count timers of @order, to deadlines from now on. */
static void prepare(const struct row *row, __u64 from, __u64 range)
{
	__u32 i, id, chunk = chunk_of_loop();
	__u64 time = lines_now;

	for (i = 0; i < row->count; i++) {
		id = order[i];
		change[i].id = id;
		change[i].deadline = time + i / chunk * row->step + from +
				     (range ? random_below(&seed, range) : 0);
		deadline[id] = row->op == CANCEL || row->kind == REQUESTS ? 0 : change[i].deadline;
	}
}

static void none_expired(const char *name)
{
	if (native_logged)
		die("%s: timer %u was delivered in row %s: this is not a measurement", peer->name,
		    native_log[0], name);
}

static void do_row(const char *name, struct row row, bool again, __u64 from, __u64 range)
{
	__u64 ns;

	choose(row.count, again);
	/* libraries read the clock in their loop */
	turn(NSEC_PER_MSEC);
	prepare(&row, from, range);
	ns = spend(&row);
	none_expired(name ?: "(none)");
	report(name, &row, ns);
}

static void check_log(void)
{
	__u32 i, id, steps = 0;

	for (i = 0; i < native_logged; i++) {
		while (i >= turns[steps].logged)
			steps++;
		id = native_log[i];
		if (id >= n || !deadline[id])
			die("%s: timer %u was delivered, but is not pending", peer->name, id);
		/* libevent rounds deadlines down to microseconds */
		if (!peer->real_time && deadline[id] >= turns[steps].end + NSEC_PER_USEC)
			die("%s: timer %u was delivered early", peer->name, id);
		deadline[id] = 0;
	}
}

/* --- Workload ----------------------------------------------------------------------- */

static void *big(size_t size)
{
	void *memory = xcalloc(1, size);

	/* use it, so that no page fault is measured */
	memset(memory, 1, size);
	return memset(memory, 0, size);
}

/* Use another order for a while, so that all queues have the same timers in the measured rows. */
static void swap_order(void)
{
	static __u64 other_seed = 1;
	__u32 *order_now = order;
	__u64 seed_now = seed;

	order = other_order;
	seed = other_seed;
	other_order = order_now;
	other_seed = seed_now;
}

/*
 * If later deadlines are only stored, some timers are still queued for earlier ones. Queue as many
 * of them for the next @count operations as in a steady state: a timer is visited once in TIMEOUT.
 */
static void queue_early(__u64 step, __u32 count)
{
	__u64 window = count / chunk_of_loop() * step;
	struct row row = { APPLY, MOVE, n * window / TIMEOUT };

	if (!peer->stores || !row.count)
		return;
	swap_order();
	do_row(NULL, row, false, 2 * NSEC_PER_MSEC, window);
	row.op = REFRESH;
	do_row(NULL, row, true, TIMEOUT - EVERY + window, EVERY - window);
	swap_order();
}

static void refresh(const char *name)
{
	struct row row = { LOOP, REFRESH, sample, step_of_loop() };

	queue_early(row.step, row.count);
	do_row(name, row, false, TIMEOUT, 0);
}

static void operations(void)
{
	__u32 some = sample < n / 2 ? sample : n / 2;
	struct row requests = { REQUESTS, ARM, some, step_of_loop() };

	refresh("refresh");
	do_row("refresh-serial", (struct row) { SERIAL, REFRESH, sample }, false, TIMEOUT, 0);
	do_row("move-later", (struct row) { APPLY, MOVE, sample }, false, TIMEOUT + EVERY, EVERY);
	do_row("move-earlier", (struct row) { APPLY, MOVE, sample }, true, TIMEOUT - EVERY / 2,
	       EVERY / 2);
	queue_early(requests.step, requests.count);
	do_row("cancel", (struct row) { APPLY, CANCEL, some }, false, 0, 0);
	do_row("request", requests, true, TIMEOUT, 0);
	do_row("add", (struct row) { APPLY, ARM, some }, true, TIMEOUT, EVERY / 4);
	/* then timers can be refreshed to TIMEOUT from now */
	turn(EVERY / 4);
}

static void expire(void)
{
	struct row row = { EXPIRE, .count = sample, .step = NSEC_PER_MSEC };
	__u64 ns, window = NSEC_PER_MSEC * (1 + sample / TIMERS_PER_MS);

	do_row(NULL, (struct row) { APPLY, MOVE, sample }, false, 2 * NSEC_PER_MSEC, window);
	if (peer->real_time) {
		row.step += window;
		usleep(20000);
	}
	expiring = true;
	ns = spend(&row);
	expiring = false;
	check_log();
	native_logged = 0;
	report("expire", &row, ns);
	do_row(NULL, (struct row) { APPLY, ARM, sample }, true, TIMEOUT, EVERY / 4);
	turn(EVERY / 4);
}

static void measure(unsigned int rounds)
{
	unsigned int i;

	queue->open(n, TIMEOUT);
	do_row(NULL, (struct row) { APPLY, ARM, n }, false, TIMEOUT - EVERY, EVERY);
	if (counting)
		CALLGRIND_START_INSTRUMENTATION;
	/* fill the simulated caches */
	if (counting)
		refresh(NULL);
	for (i = 0; i < rounds; i++) {
		operations();
		expire();
	}
}

/* --- Memory, system calls -------------------------------------------------------------- */

/* The share of this process' memory that is in huge pages, in percent */
static unsigned int huge_share(void)
{
	unsigned long rss = 0, huge = 0;
	char line[128];
	FILE *file = fopen("/proc/self/smaps_rollup", "r");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Rss: %lu", &rss) == 1)
			continue;
		if (sscanf(line, "AnonHugePages: %lu", &huge) == 1)
			break;
	}
	if (file)
		fclose(file);
	return rss ? huge * 100 / rss : 0;
}

/*
 * A call that the kernel refuses as soon as it has found the file: the cost of a system call
 * without its work
 */
static void calls(void)
{
	int fd = eventfd(0, 0), i;
	__u64 began = cpu_time();

	for (i = 0; i < 1000000; i++)
		if (!syscall(SYS_ioctl, fd, NO_IOCTL, NULL))
			die("an ioctl that does not exist has succeeded");
	printf("call 0 1000000 %llu\n", (unsigned long long)(cpu_time() - began));
}

int main(int argc, char **argv)
{
	unsigned int i;

	progname = "native";
	main_thread = true;
	if (argc == 2 && !strcmp(argv[1], "--peers")) {
		for (i = 0; peers[i].name; i++)
			printf("%s\t%s\t%s\t%u\t%s\n", peers[i].name,
			       peers[i].facility->missing ?: "-", peers[i].title,
			       peers[i].facility->most, peers[i].facility->why ?: "-");
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "--calls")) {
		calls();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "--count")) {
		counting = true;
		argv++;
		argc--;
	}
	for (i = 0; argc == 4 && peers[i].name; i++)
		if (!strcmp(argv[1], peers[i].name))
			peer = &peers[i];
	n = peer ? strtoul(argv[2], NULL, 10) : 0;
	if (n < 4 * CHUNK || n > 1 << 24)
		die("usage: native --peers | --calls | [--count] PEER TIMERS ROUNDS");
	queue = peer->facility;
	if (queue->missing)
		die("%s is not installed", queue->missing);
	native_timers = n;
	sample = counting ? COUNTED : SAMPLE;
	/* Half of the timers at most, or all: otherwise timers that are left out expire. */
	if (n <= 2 * sample)
		sample = n;
	/* numbers in sequence: each peer sees the same timers in the same order */
	seed = getenv("SEED") ? strtoull(getenv("SEED"), NULL, 10) : 1;
	lines_now = 1000000 * NSEC_PER_SEC;
	order = big(n * sizeof(*order));
	other_order = big(n * sizeof(*order));
	change = big(n * sizeof(*change));
	deadline = big(n * sizeof(*deadline));
	native_log = big(n * sizeof(*native_log));
	turns = big((n + 100000) * sizeof(*turns));
	for (i = 0; i < n; i++)
		order[i] = i;
	memcpy(other_order, order, n * sizeof(*order));
	measure(strtoul(argv[3], NULL, 10));
	printf("huge %u 1 %u\n", n, huge_share());
	return 0;
}
