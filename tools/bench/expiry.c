// SPDX-License-Identifier: GPL-2.0
/* What happens at and before the deadlines: expiring, delivering, cascading, bursts. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "wheel.h"

#define EVENTS	1024
#define MINUTE	(60 * NSEC_PER_SEC)

static __u64 seed = 1;
static struct timerwheel_event events[EVENTS];

/* Arm n timers with absolute deadlines at random in [from, from + range). */
static void arm(int wheel, __u64 n, __u64 from, __u64 range)
{
	struct timerwheel_add elems[BATCH];
	__u64 done, i, count;

	for (done = 0; done < n; done += count) {
		count = n - done < BATCH ? n - done : BATCH;
		for (i = 0; i < count; i++) {
			elems[i] = (struct timerwheel_add) {
				.key = bench_key(done + i),
				.deadline = from + random_below(&seed, range),
				.flags = TIMERWHEEL_ABS,
			};
		}
		wheel_add(wheel, elems, count);
		for (i = 0; i < count; i++) {
			if (elems[i].result)
				die("ADD: %s: this is not a measurement",
				    strerror(-elems[i].result));
		}
	}
}

/* Through epoll and read, as a daemon would. */
static void collect(int wheel, __u64 n)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	__u64 got = 0;

	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wheel, &event))
		die("epoll: %s", strerror(errno));
	while (got < n) {
		if (epoll_wait(epoll_fd, &event, 1, 10000) < 1)
			die("%s events have not come", commas(n - got));
		got += wheel_read(wheel, events, EVENTS);
	}
	close(epoll_fd);
}

static __u64 time_to_arm;	/* for options.timers; sets how far ahead deadlines must be */

/*
 * What anyone does from after the arming until the end of body(), less what
 * goes on anyway in as much time.
 */
static __u64 busy_during(int wheel, __u64 n, __u64 ahead, __u64 range,
			 void (*body)(int wheel, __u64 n, __u64 until))
{
	__u64 busy, start, armed, span, base, until;

	busy = busy_ns();
	start = now_ns();
	until = start + ahead + range;
	arm(wheel, n, start + ahead, range);
	armed = now_ns();
	body(wheel, n, until);
	span = now_ns() - armed;
	busy = busy_ns() - busy - (armed - start);

	base = busy_ns();
	sleep_until(now_ns() + span);
	base = busy_ns() - base;
	return busy > base ? busy - base : 0;
}

static void body_collect(int wheel, __u64 n, __u64 until)
{
	(void)until;
	collect(wheel, n);
}

static void body_wait(int wheel, __u64 n, __u64 until)
{
	struct timerwheel_stats stats;

	sleep_until(until + 5 * NSEC_PER_SEC);
	wheel_stats(wheel, &stats);
	if (stats.due != n)
		die("%s of %s timers are due: this is not a measurement",
		    commas(stats.due), commas(n));
}

static void expire_and_deliver(void)
{
	int wheel = wheel_open();
	__u64 n = options.timers;

	progress("%s timers fall due within one second", commas(n));
	result(ROW_EXPIRE, OURS,
	       busy_during(wheel, n, time_to_arm, NSEC_PER_SEC, body_collect) / n);
	close(wheel);
}

static void read_due(void)
{
	__u64 n = options.timers, got = 0, time = 0, start, ahead = time_to_arm;
	int wheel = wheel_open();

	arm(wheel, n, now_ns() + ahead, NSEC_PER_MSEC);
	sleep_until(now_ns() + ahead + 10 * NSEC_PER_SEC);
	while (got < n) {
		start = now_ns();
		got += wheel_read(wheel, events, EVENTS);
		time += now_ns() - start;
	}
	result(ROW_READ, OURS, time / n);
	close(wheel);
}

/* All the kernel does for a timer between its arming and its being due. */
static void life(enum row row, __u64 length)
{
	int wheel = wheel_open();
	__u64 n = options.timers;

	progress("%s timers fall due in %s", commas(n), duration(length));
	result(row, OURS, (busy_during(wheel, n, length, NSEC_PER_SEC, body_wait) + n / 2) / n);
	close(wheel);
}

static void firings(void)
{
	struct timerwheel_stats stats;
	int wheel = wheel_open();

	arm(wheel, 1, now_ns() + MINUTE, 1);
	sleep_until(now_ns() + MINUTE + NSEC_PER_SEC);
	wheel_stats(wheel, &stats);
	result(ROW_FIRINGS, OURS, stats.firings);
	close(wheel);
}

/*
 * A task that sleeps for a millisecond, again and again, and writes down by how much it
 * was ever woken late. It is a process of its own.
 */
struct sleeper {
	pid_t pid;
	__u64 *worst;
};

static void sleeper_start(struct sleeper *s)
{
	s->worst = mmap(NULL, sizeof(*s->worst), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s->worst == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	s->pid = fork();
	if (s->pid < 0)
		die("fork: %s", strerror(errno));
	while (!s->pid) {
		__u64 wanted = now_ns() + NSEC_PER_MSEC, late;

		sleep_until(wanted);
		late = now_ns() - wanted;
		if (late > *s->worst)
			*s->worst = late;
	}
}

static __u64 sleeper_stop(struct sleeper *s)
{
	__u64 worst;

	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	worst = *s->worst;
	munmap(s->worst, sizeof(*s->worst));
	return worst;
}

/*
 * Timers that stand by while something large happens in [from, to): one each millisecond,
 * in the same wheel and in another. Their keys tell them from all others.
 */
#define BYSTANDER	0x8000000000000000ULL

static void arm_bystanders(int wheel, __u64 from, __u64 to)
{
	for (; from < to; from += NSEC_PER_MSEC) {
		struct timerwheel_add elem = {
			.key = BYSTANDER | from,
			.value = BYSTANDER,
			.deadline = from,
			.flags = TIMERWHEEL_ABS,
		};

		wheel_add(wheel, &elem, 1);
		if (elem.result)
			die("ADD of a bystander: %d", elem.result);
	}
}

/* Read all there is: the worst lateness of bystanders, the last firing of the others. */
static __u64 read_bystanders(int wheel, __u64 *last_fired)
{
	__u64 worst = 0, late;
	__u32 i, n;

	while ((n = wheel_read(wheel, events, EVENTS))) {
		for (i = 0; i < n; i++) {
			if (events[i].value == BYSTANDER) {
				late = events[i].fired - events[i].deadline;
				if (late > worst)
					worst = late;
			} else if (events[i].fired > *last_fired) {
				*last_fired = events[i].fired;
			}
		}
	}
	return worst;
}

/* Around a burst at @from: whoever is due in its tick belongs to it. */
static void arm_around(int wheel, __u64 from)
{
	arm_bystanders(wheel, from - 50 * NSEC_PER_MSEC, from - NSEC_PER_MSEC);
	arm_bystanders(wheel, from + NSEC_PER_MSEC, from + NSEC_PER_SEC);
}

/* A million timers due in the same tick. */
static void one_tick(void)
{
	__u64 from = now_ns() + 2 * time_to_arm + NSEC_PER_SEC, last = 0, unused = 0;
	int wheel = wheel_open(), other = wheel_open();
	struct timerwheel_stats stats;
	struct sleeper sleeper;

	/* At the start of a tick, wherever ticks begin: all in less than one. */
	progress("%s timers fall due in one tick", commas(options.timers));
	arm(wheel, options.timers, from, 1);
	arm_around(wheel, from);
	arm_around(other, from);
	sleep_until(from - 100 * NSEC_PER_MSEC);
	sleeper_start(&sleeper);
	sleep_until(from + 5 * NSEC_PER_SEC);
	result(ROW_BURST_TASK, OURS, sleeper_stop(&sleeper));
	wheel_stats(wheel, &stats);
	result(ROW_BURST_PASS, OURS, stats.pass_max_ns);
	result(ROW_BURST_TIMERS, OURS, stats.pass_max_timers);
	result(ROW_BURST_SAME, OURS, read_bystanders(wheel, &last));
	result(ROW_BURST_OTHER, OURS, read_bystanders(other, &unused));
	result(ROW_BURST_ALL, OURS, last - from);
	close(wheel);
	close(other);
}

/*
 * A million timers in one upper slot, due over its whole length, so that they must all be
 * spread over lower slots shortly before. With 256 slots of 1 ms the slots of the third
 * level are 65.536 s long.
 */
static void one_slot(void)
{
	const __u64 slot = 65536 * NSEC_PER_MSEC;
	__u64 from = (now_ns() / slot + 3) * slot, unused = 0;
	int wheel = wheel_open(), other = wheel_open();
	struct timerwheel_stats stats;
	struct sleeper sleeper;

	progress("%s timers cascade from one slot", commas(options.timers));
	arm(wheel, options.timers, from, slot);
	arm_bystanders(wheel, from - 5 * NSEC_PER_SEC, from + NSEC_PER_SEC);
	arm_bystanders(other, from - 5 * NSEC_PER_SEC, from + NSEC_PER_SEC);
	sleep_until(from - 5 * NSEC_PER_SEC);
	sleeper_start(&sleeper);
	sleep_until(from + 2 * NSEC_PER_SEC);
	result(ROW_CASCADE_TASK, OURS, sleeper_stop(&sleeper));
	wheel_stats(wheel, &stats);
	if (stats.cascades < options.timers / 2)
		progress("only %s have cascaded: are its slots others?", commas(stats.cascades));
	result(ROW_CASCADE_PASS, OURS, stats.pass_max_ns);
	result(ROW_CASCADE_TIMERS, OURS, stats.pass_max_timers);
	result(ROW_CASCADE_SAME, OURS, read_bystanders(wheel, &unused));
	result(ROW_CASCADE_OTHER, OURS, read_bystanders(other, &unused));
	close(wheel);
	close(other);
}

void bench_expiry(void)
{
	int wheel = wheel_open();
	__u64 start = now_ns();

	arm(wheel, options.timers, start + 3600 * NSEC_PER_SEC, NSEC_PER_SEC);
	time_to_arm = 2 * (now_ns() - start);
	close(wheel);
	read_due();
	expire_and_deliver();
	firings();
	one_tick();
	one_slot();
	life(ROW_LIFE_MINUTE, MINUTE);
	life(ROW_LIFE_HOUR, 60 * MINUTE);
	if (!options.quick)
		life(ROW_LIFE_DAY, 24 * 60 * MINUTE);
}
