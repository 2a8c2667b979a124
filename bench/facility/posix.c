// SPDX-License-Identifier: GPL-2.0
/*
 * POSIX timers, with sigwaitinfo(). They are created when first armed and kept when cancelled. The
 * kernel finds them in a hash table of 512 lists, of which each operation walks one.
 *
 * Before Linux 6.13, a pending signal stays pending when its timer is armed again or cancelled.
 * Therefore the program has to compare the deadline to find out whether a signal is still valid.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "../bench.h"

static timer_t *timers;
static __u64 *deadlines;	/* ~0: not armed, or delivered */
static bool *made;
static __u32 capacity;
static sigset_t signals;

static void posix_open(__u32 room, __u64 timeout)
{
	struct rlimit limit = { room + 64, room + 64 };

	(void)timeout;
	if (setrlimit(RLIMIT_SIGPENDING, &limit))
		die("RLIMIT_SIGPENDING for %u timers: %s: be root, or --most N", room,
		    strerror(errno));
	capacity = room;
	timers = xcalloc(capacity, sizeof(*timers));
	deadlines = xcalloc(capacity, sizeof(*deadlines));
	memset(deadlines, 0xff, capacity * sizeof(*deadlines));
	made = xcalloc(capacity, sizeof(*made));
	sigemptyset(&signals);
	sigaddset(&signals, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &signals, NULL);
}

static void posix_close(void)
{
	struct timespec none = { 0 };
	__u32 i;

	for (i = 0; i < capacity; i++) {
		if (made[i])
			timer_delete(timers[i]);
	}
	/* Signals of deleted timers also stay. */
	while (sigtimedwait(&signals, NULL, &none) >= 0 || errno == EINTR)
		;
	free(timers);
	free(deadlines);
	free(made);
}

static void set(__u32 id, __u64 deadline)
{
	struct itimerspec when = {
		.it_value.tv_sec = deadline / NSEC_PER_SEC,
		.it_value.tv_nsec = deadline % NSEC_PER_SEC,
	};

	deadlines[id] = deadline ? deadline : ~0ULL;
	if (timer_settime(timers[id], TIMER_ABSTIME, &when, NULL))
		die("timer_settime: %s", strerror(errno));
}

static void posix_move(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		set(c[i].id, c[i].deadline);
}

static void posix_arm(const struct change *c, __u32 n)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	__u32 i;

	for (i = 0; i < n; i++) {
		__u32 id = c[i].id;

		if (!made[id]) {
			event.sigev_value.sival_int = id;
			if (timer_create(CLOCK_MONOTONIC, &event, &timers[id]))
				die("POSIX timer number %u: %s: try fewer (--most)", id,
				    strerror(errno));
			made[id] = true;
		}
		set(id, c[i].deadline);
	}
}

static void posix_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		set(c[i].id, 0);
}

static void posix_run(__u64 until)
{
	struct timespec left;
	siginfo_t info;
	__u64 now = 0;
	__u32 id;

	while (!nothing_left()) {
		if (until == NEVER) {
			if (sigwaitinfo(&signals, &info) < 0)
				continue;
		} else {
			now = now_ns();
			left.tv_sec = now < until ? (until - now) / NSEC_PER_SEC : 0;
			left.tv_nsec = now < until ? (until - now) % NSEC_PER_SEC : 0;
			if (sigtimedwait(&signals, &info, &left) < 0) {
				if (errno == EAGAIN)
					return;
				continue;
			}
		}
		id = info.si_value.sival_int;
		if (deadlines[id] > now && deadlines[id] > now_ns())
			continue;
		/* If this was an old signal, another signal may come. */
		deadlines[id] = ~0ULL;
		deliver(id);
	}
}

const struct facility facility_posix = {
	.name = "posix",
	.most = 100000,
	.why = "each call searches a list of one in 512 timers",
	.open = posix_open,
	.close = posix_close,
	.arm = posix_arm,
	.move = posix_move,
	.refresh = posix_move,
	.cancel = posix_cancel,
	.run = posix_run,
};
