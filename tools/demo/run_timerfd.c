// SPDX-License-Identifier: GPL-2.0
/* The run without the module: a timerfd for each timeout, watched by one epoll. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bulk.h"
#include "util.h"

#define EVENTS	1024
#define OTHERS	32

static int epoll_fd;
static int *fds;
static __u32 nr;
static struct outcome *out;
static struct ledger *ledger;
static __u64 seed;

static void set(__u32 i, __u64 deadline)
{
	struct itimerspec when = {
		.it_value.tv_sec = deadline / NSEC_PER_SEC,
		.it_value.tv_nsec = deadline % NSEC_PER_SEC,
	};

	if (timerfd_settime(fds[i], TFD_TIMER_ABSTIME, &when, NULL))
		die("timerfd_settime: %s", strerror(errno));
}

static void arm_all(void)
{
	struct phase *p = &out->arm;
	__u64 now, deadline;
	__u32 i;

	phase_begin(p);
	for (i = 0; i < nr; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };

		now = now_ns();
		deadline = deadline_new(now, &seed);
		fds[i] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		if (fds[i] < 0)
			die("timerfd_create number %u: %s: try fewer (--timerfds)",
			    i, strerror(errno));
		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fds[i], &event))
			die("epoll_ctl number %u: %s: try fewer (--timerfds)", i, strerror(errno));
		set(i, deadline);
		p->wall += now_ns() - now;
		ledger_arm(ledger, i, deadline);
	}
	p->ops = nr;
	p->calls = 3 * nr;
	phase_end(p, "armed");
}

static void move_third(void)
{
	__u64 stride = stride_of(nr), at = 0, now, deadline;
	struct phase *p = &out->move;
	__u32 seen;

	phase_begin(p);
	for (seen = 0; seen < nr; seen++) {
		at = (at + stride) % nr;
		if (!is_moved(at))
			continue;
		now = now_ns();
		deadline = deadline_moved(now, ledger->deadlines[at], at & 1, &seed);
		set(at, deadline);
		p->wall += now_ns() - now;
		ledger_move(ledger, at, deadline);
		p->ops++;
	}
	p->calls = p->ops;
	phase_end(p, "moved");
}

static void remove_third(void)
{
	__u64 stride = stride_of(nr), at = 0, now;
	struct phase *p = &out->remove;
	__u32 seen;

	phase_begin(p);
	for (seen = 0; seen < nr; seen++) {
		at = (at + stride) % nr;
		if (!is_removed(at))
			continue;
		now = now_ns();
		close(fds[at]);
		p->wall += now_ns() - now;
		ledger_remove(ledger, at);
		p->ops++;
	}
	p->calls = p->ops;
	phase_end(p, "removed");
}

static void read_one(struct phase *p, __u32 i, bool waiting)
{
	__u64 times, now;

	p->calls++;
	if (read(fds[i], &times, sizeof(times)) != sizeof(times)) {
		ledger->refused++;
		return;
	}
	now = now_ns();
	ledger_deliver(ledger, i, ledger->deadlines[i], now);
	if (waiting)
		histogram_add(&out->seen, now - ledger->deadlines[i]);
	p->ops++;
}

static void collect_rest(void)
{
	struct epoll_event events[EVENTS];
	__u64 last = 0, limit, now, said, busy;
	struct phase *p = &out->collect;
	bool waiting = false;
	int i, n;

	for (i = 0; i < (int)nr; i++) {
		if (ledger->states[i] == TIMER_ARMED && ledger->deadlines[i] > last)
			last = ledger->deadlines[i];
	}
	/* As for the wheel. */
	limit = last + 10 * NSEC_PER_SEC;
	phase_begin(p);
	said = p->start;
	out->expired = ledger_passed(ledger, now_ns());
	busy = machine_busy_ns();
	while (ledger_expected(ledger)) {
		now = now_ns();
		if (now >= said + 3 * NSEC_PER_SEC) {
			said += 3 * NSEC_PER_SEC;
			printf("  ... %9s delivered, %9s to come\n",
			       commas(ledger->delivered), commas(ledger_expected(ledger)));
			fflush(stdout);
		}
		p->calls++;
		n = epoll_wait(epoll_fd, events, EVENTS, 1000);
		if (n < 1 && now > limit)
			break;
		now = now_ns();
		for (i = 0; i < n; i++)
			read_one(p, events[i].data.u32, waiting);
		p->wall += now_ns() - now;
		out->wakeups++;
		if (n < EVENTS)
			waiting = true;
	}
	out->collect_busy = machine_busy_ns() - busy;
	phase_end(p, "read");
}

static void limit_number(void)
{
	__u64 limit = raise_nofile((__u64)options.timerfds + OTHERS);
	__u64 fit = mem_available() / 2 / 1500;

	nr = options.timerfds;
	if (limit < (__u64)nr + OTHERS) {
		nr = limit > OTHERS ? limit - OTHERS : 0;
		say("this process may have %s descriptors: %s timerfds instead of %s",
		    commas(limit), commas(nr), commas(options.timerfds));
	}
	if (nr > fit) {
		nr = fit;
		say("memory for %s timerfds only", commas(nr));
	}
	if (!nr)
		die("not one timerfd is possible here: raise ulimit -n, or use --timerfds 0");
}

void run_timerfd(struct outcome *o)
{
	__u64 memory;
	__u32 i;

	limit_number();
	raise_watches(nr + OTHERS);
	out = o;
	ledger = &o->ledger;
	seed = 1;
	ledger_init(ledger, nr);
	fds = xcalloc(nr, sizeof(*fds));
	memset(fds, 0xff, nr * sizeof(*fds));
	printf("\ntimerfd + epoll: %s timers in as many descriptors\n", commas(nr));
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		die("epoll: %s", strerror(errno));
	o->descriptors = nr;
	memory = mem_settled();
	arm_all();
	o->memory = mem_taken(memory);
	move_third();
	remove_third();
	collect_rest();
	printf("  memory: %s bytes a timer by /proc/meminfo\n", commas(o->memory / nr));
	histogram_draw(&o->seen, "  How late the program saw them (there is no other stamp):");
	o->right = ledger_close(ledger, "timerfd");
	for (i = 0; i < nr; i++) {
		if (!is_removed(i))
			close(fds[i]);
	}
	close(epoll_fd);
	free(fds);
	ledger_free(ledger);
}
