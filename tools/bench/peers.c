// SPDX-License-Identifier: GPL-2.0
/* The same with what Linux has: timerfds watched by an epoll, POSIX timers. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define EVENTS	1024
#define HOUR	(3600 * NSEC_PER_SEC)

static __u64 seed = 1;

static struct itimerspec at(__u64 ns)
{
	struct itimerspec when = {
		.it_value.tv_sec = ns / NSEC_PER_SEC,
		.it_value.tv_nsec = ns % NSEC_PER_SEC,
	};

	return when;
}

static int epoll_fd;
static int *fds;

static void set(__u32 i, __u64 deadline)
{
	struct itimerspec when = at(deadline);

	if (timerfd_settime(fds[i], TFD_TIMER_ABSTIME, &when, NULL))
		die("timerfd_settime: %s", strerror(errno));
}

/* Each one to a deadline at random in [from, from + range), or to none; ns for each. */
static __u64 set_all(__u32 n, __u64 from, __u64 range, __u64 granularity)
{
	__u64 stride = stride_of(n), i = 0, start = now_ns();
	__u32 done;

	for (done = 0; done < n; done++) {
		__u64 deadline = from ? from + random_below(&seed, range) : 0;

		i = (i + stride) % n;
		if (granularity)
			deadline = (deadline + granularity - 1) / granularity * granularity;
		set(i, deadline);
	}
	return (now_ns() - start) / n;
}

static __u64 create_all(__u32 n)
{
	__u64 start = now_ns();
	__u32 i;

	for (i = 0; i < n; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };

		fds[i] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		if (fds[i] < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fds[i], &event))
			die("timerfd number %u: %s: try fewer (--peers)", i, strerror(errno));
		set(i, start + HOUR + random_below(&seed, HOUR));
	}
	return (now_ns() - start) / n;
}

static void collect(__u32 n)
{
	struct epoll_event events[EVENTS];
	__u64 times;
	__u32 got = 0;
	int i, ready;

	while (got < n) {
		ready = epoll_wait(epoll_fd, events, EVENTS, 10000);
		if (ready < 1)
			die("%u timerfds have not come", n - got);
		for (i = 0; i < ready; i++) {
			if (read(fds[events[i].data.u32], &times, sizeof(times)) == sizeof(times))
				got++;
		}
	}
}

/* As with the wheel: all CPU time of a second in which all fall due, less the arming. */
static __u64 expire(__u32 n, __u64 granularity)
{
	__u64 busy, base, start, armed, span, ahead = n * 3000ULL;

	busy = busy_ns();
	start = now_ns();
	set_all(n, start + ahead, NSEC_PER_SEC, granularity);
	armed = now_ns();
	if (armed > start + ahead)
		progress("arming took longer than expected: some fell due meanwhile");
	collect(n);
	span = now_ns() - armed;
	busy = busy_ns() - busy - (armed - start);
	base = busy_ns();
	sleep_until(now_ns() + span);
	base = busy_ns() - base;
	return (busy - base) / n;
}

static __u64 close_all(__u32 n)
{
	__u64 start = now_ns();
	__u32 i;

	for (i = 0; i < n; i++)
		close(fds[i]);
	return (now_ns() - start) / n;
}

void bench_timerfd(void)
{
	__u32 n = options.peers;
	__u64 memory;

	if (raise_nofile(n + 64) < n + 64)
		die("%u timerfds are more than this process may have: be root, or --peers N", n);
	raise_watches(n + 64);
	fds = xcalloc(n, sizeof(*fds));
	memset(fds, 0xff, n * sizeof(*fds));
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		die("epoll: %s", strerror(errno));
	progress("%s timerfds", commas(n));
	memory = mem_available();
	result(ROW_ADD, TIMERFD, create_all(n));
	result(ROW_MEMORY, TIMERFD, mem_taken(memory) / n);
	result(ROW_MOVE_LATER, TIMERFD, set_all(n, now_ns() + 3 * HOUR, HOUR, 0));
	result(ROW_MOVE_EARLIER, TIMERFD, set_all(n, now_ns() + HOUR / 2, HOUR / 2, 0));
	result(ROW_REMOVE, TIMERFD, set_all(n, 0, 0, 0));
	result(ROW_ADD_AGAIN, TIMERFD, set_all(n, now_ns() + HOUR, HOUR, 0));
	set_all(n, 0, 0, 0);
	result(ROW_EXPIRE, TIMERFD, expire(n, NSEC_PER_MSEC));
	result(ROW_EXPIRE_EXACT, TIMERFD, expire(n < 100000 ? n : 100000, 0));
	set_all(n, now_ns() + HOUR, HOUR, 0);
	result(ROW_CLOSE, TIMERFD, close_all(n));
	close(epoll_fd);
	free(fds);
}

static void set_posix(timer_t timer, __u64 deadline)
{
	struct itimerspec when = at(deadline);

	if (timer_settime(timer, TIMER_ABSTIME, &when, NULL))
		die("timer_settime: %s", strerror(errno));
}

void bench_posix(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	__u64 stride = stride_of(options.posix), place = 0, start, memory;
	timer_t *timers = xcalloc(options.posix, sizeof(*timers));
	struct rlimit limit = { options.posix + 64, options.posix + 64 };
	__u32 i, n = options.posix;

	if (setrlimit(RLIMIT_SIGPENDING, &limit))
		die("RLIMIT_SIGPENDING for %u timers: %s: be root, or --posix N",
		    n, strerror(errno));
	memset(timers, 0xff, n * sizeof(*timers));
	progress("%s POSIX timers", commas(n));
	memory = mem_available();
	start = now_ns();
	for (i = 0; i < n; i++) {
		if (timer_create(CLOCK_MONOTONIC, &event, &timers[i]))
			die("timer_create number %u: %s: try fewer (--posix)", i, strerror(errno));
		set_posix(timers[i], start + HOUR + random_below(&seed, HOUR));
	}
	result(ROW_ADD, POSIX, (now_ns() - start) / n);
	result(ROW_MEMORY, POSIX, mem_taken(memory) / n);
	start = now_ns();
	for (i = 0; i < n; i++) {
		place = (place + stride) % n;
		set_posix(timers[place], start + 3 * HOUR + random_below(&seed, HOUR));
	}
	result(ROW_MOVE_LATER, POSIX, (now_ns() - start) / n);
	start = now_ns();
	for (i = 0; i < n; i++) {
		place = (place + stride) % n;
		set_posix(timers[place], start + HOUR / 2 + random_below(&seed, HOUR / 2));
	}
	result(ROW_MOVE_EARLIER, POSIX, (now_ns() - start) / n);
	start = now_ns();
	for (i = 0; i < n; i++) {
		place = (place + stride) % n;
		timer_delete(timers[place]);
	}
	result(ROW_CLOSE, POSIX, (now_ns() - start) / n);
	free(timers);
}
