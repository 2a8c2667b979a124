// SPDX-License-Identifier: GPL-2.0
/*
 * Many descriptors on one CPU: wheels with 1,024 timers each, or timerfds with one timer each.
 *
 * First all timers fall due in the same tick: measures the wait of a SCHED_FIFO task. Then each
 * descriptor has one timer in each of the same ticks, 100 ms apart: measures the interrupts,
 * and the CPU time until all were read.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"
#include "facility/poller.h"
#include "wheel.h"

#define EACH	1024		/* timers of a wheel that are due in the same tick */
#define TICKS	10
#define APART	(100 * NSEC_PER_MSEC)

static struct {
	int fd;
	struct timerwheel_ring *ring;
} *many;

static __u32 count;
static int poller;

static bool has_ring(void)
{
	return facility == &facility_timerwheel_mapped;
}

static bool is_timerfd(void)
{
	return facility == &facility_timerfd;
}

static size_t ring_size(__u32 events)
{
	return TIMERWHEEL_RING_EVENTS + events * sizeof(struct timerwheel_event);
}

static void many_open(__u32 n)
{
	struct timerwheel_setup setup = { .ring = EACH };
	__u32 i;

	count = n;
	many = xcalloc(n, sizeof(*many));
	poller = poller_open();
	if (raise_nofile(n + 64) < n + 64)
		die("%u descriptors exceed the limit of this process: run as root", n);
	for (i = 0; i < n; i++) {
		many[i].fd = is_timerfd() ? timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK) :
					    wheel_open();
		if (many[i].fd < 0)
			die("timerfd number %u: %s", i, strerror(errno));
		if (has_ring())
			wheel_setup(many[i].fd, &setup);
		poller_add(poller, many[i].fd, i);
		if (!has_ring())
			continue;
		many[i].ring = mmap(NULL, ring_size(EACH), PROT_READ | PROT_WRITE, MAP_SHARED,
				    many[i].fd, TIMERWHEEL_MMAP_RING);
		if (many[i].ring == MAP_FAILED)
			die("mmap: %s", strerror(errno));
		/* as if the reader slept in epoll_wait() */
		many[i].ring->waiting = 1;
	}
}

static void many_close(void)
{
	__u32 i;

	close(poller);
	for (i = 0; i < count; i++) {
		if (many[i].ring)
			munmap(many[i].ring, ring_size(EACH));
		close(many[i].fd);
	}
	if (!is_timerfd())
		wheel_wait_freed();
	free(many);
}

static void arm_timerfd(int fd, __u64 at, __u64 apart)
{
	struct itimerspec when = {
		.it_value.tv_sec = at / NSEC_PER_SEC,
		.it_value.tv_nsec = at % NSEC_PER_SEC,
		.it_interval.tv_nsec = apart,
	};

	if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL))
		die("timerfd_settime: %s", strerror(errno));
}

/* Arm @each timers in each wheel, the first for @from, @apart ns from each other. */
static void many_arm(__u64 from, __u32 each, __u64 apart)
{
	static struct timerwheel_add add[EACH];
	__u32 i, k;

	for (i = 0; i < count; i++) {
		if (is_timerfd()) {
			arm_timerfd(many[i].fd, from, apart);
			continue;
		}
		for (k = 0; k < each; k++) {
			add[k] = (struct timerwheel_add){
				.key = k, .deadline = from + k * apart, .flags = TIMERWHEEL_ABS,
			};
		}
		wheel_add(many[i].fd, add, each);
		for (k = 0; k < each; k++) {
			if (add[k].result)
				die("ADD failed: this is not a measurement");
		}
	}
	if (now_ns() + NSEC_PER_SEC > from)
		die("arming took too long: this is not a measurement");
}

/* The number of timers that descriptor @i has delivered */
static __u32 take(__u32 i)
{
	static struct timerwheel_event events[EACH];
	__u32 n = 0, some;
	__u64 times;

	if (is_timerfd())
		return read(many[i].fd, &times, sizeof(times)) == sizeof(times) ? times : 0;
	if (!many[i].ring) {
		while ((some = wheel_read(many[i].fd, events, EACH)))
			n += some;
		return n;
	}
	n = __atomic_load_n(&many[i].ring->tail, __ATOMIC_ACQUIRE) - many[i].ring->head;
	__atomic_store_n(&many[i].ring->head, many[i].ring->head + n, __ATOMIC_RELEASE);
	return n;
}

/* Disarm timerfds, which are periodic here: the meter is slow if many of them are armed. */
static void disarm(void)
{
	__u64 start = now_ns();
	__u32 i;

	for (i = 0; i < count && is_timerfd(); i++)
		arm_timerfd(many[i].fd, 0, 0);
	own_ns += now_ns() - start;
}

/* Wait until each descriptor has delivered @each timers. */
static void many_come(__u32 each)
{
	__u64 until = now_ns() + 10 * NSEC_PER_SEC;
	__u32 i, n;

	for (i = 0; i < count; i++) {
		for (n = take(i); n < each && now_ns() < until; n += take(i))
			sleep_until(now_ns() + NSEC_PER_MSEC);
		if (n != each)
			die("%u timers were delivered, not %u: this is not a measurement", n, each);
	}
}

/* The longest time in which a task of the highest priority could not read the clock */
static __u64 longest_gap(__u64 until)
{
	struct sched_param param = { .sched_priority = 99 };
	__u64 last = now_ns(), now, longest = 0;

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		die("no real-time priority: %s (this needs root)", strerror(errno));
	for (; last < until; last = now) {
		now = now_ns();
		if (now - last > longest)
			longest = now - last;
	}
	param.sched_priority = 0;
	sched_setscheduler(0, SCHED_OTHER, &param);
	return longest;
}

/* A time at the start of a tick that is far enough ahead to arm all timers before */
static __u64 later(__u64 timers)
{
	return (now_ns() / NSEC_PER_SEC + 3 + timers * 2 * NSEC_PER_USEC / NSEC_PER_SEC +
		count * 100 * NSEC_PER_USEC / NSEC_PER_SEC) * NSEC_PER_SEC;
}

static void hold(__u32 n)
{
	__u32 each = is_timerfd() ? 1 : EACH;
	__u64 from, gap;

	progress("%s descriptors fall due in one tick", commas(n));
	many_open(n);
	from = later((__u64)n * each);
	many_arm(from, each, 0);
	sleep_until(from - 2 * NSEC_PER_MSEC);
	gap = longest_gap(from + 300 * NSEC_PER_MSEC);
	many_come(each);
	result("many_hold", n, 0, gap, "ns");
	many_close();
}

/* The number of timer interrupts of all CPUs */
static __u64 interrupts(void)
{
	FILE *file = fopen("/proc/interrupts", "r");
	unsigned long long n = 0, one;
	char line[4096], *at, *end;

	while (file && fgets(line, sizeof(line), file)) {
		at = strstr(line, "LOC:");
		if (!at)
			continue;
		for (at += 4; one = strtoull(at, &end, 10), end != at; at = end)
			n += one;
	}
	if (file)
		fclose(file);
	if (!n)
		die("/proc/interrupts has no timer interrupts");
	return n;
}

static void ticks(__u32 n)
{
	const __u64 span = TICKS * APART;
	__u64 from, arming, mine, base;
	struct meter meter;
	double work;
	int i;

	progress("%s descriptors have timers in the same ticks", commas(n));
	many_open(n);
	meter_start(&meter);
	arming = now_ns();
	from = later((__u64)n * TICKS);
	many_arm(from, TICKS, APART);
	arming = now_ns() - arming;
	sleep_until(from - APART / 2);
	mine = interrupts();
	for (i = 0; i < TICKS; i++) {
		sleep_until(from + i * APART + APART / 2);
		many_come(1);
	}
	mine = interrupts() - mine;
	disarm();
	work = meter_stop(&meter) - arming;
	base = interrupts();
	sleep_until(now_ns() + span);
	base = interrupts() - base;
	result("many_interrupts", n, 0, ((double)mine - base) / TICKS, "interrupts");
	result("many_work", n, 0, work / n / TICKS, "ns");
	many_close();
}

void bench_many(void)
{
	__u32 n;

	for (n = 1; n <= options.most / 1000; n *= 10)
		hold(n);
	for (n = 1; n <= options.most / 100; n *= 10)
		ticks(n);
}
