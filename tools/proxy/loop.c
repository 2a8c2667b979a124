// SPDX-License-Identifier: GPL-2.0
/* See loop.h. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "conn.h"
#include "listener.h"
#include "log.h"
#include "loop.h"
#include "options.h"
#include "store.h"
#include "timers.h"

static void ring(int eventfd)
{
	/* Fails only if it rings already. */
	if (write(eventfd, &(uint64_t) { 1 }, sizeof(uint64_t)) < 0)
		return;
}

static void wake_ready(struct source *source, uint32_t events)
{
	struct loop *loop = (struct loop *)((char *)source - offsetof(struct loop, wake));
	uint64_t rings;

	(void)events;
	if (read(loop->wake_fd, &rings, sizeof(rings)) < 0)
		return;
}

struct loop *loop_open(unsigned int number, int wheel, int ledger, int done_fd)
{
	struct loop *loop = xcalloc(1, sizeof(*loop));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &loop->wake };

	loop->number = number;
	loop->done_fd = done_fd;
	loop->wake.ready = wake_ready;
	loop->now = now_ns();
	TAILQ_INIT(&loop->unstored);
	loop->max_open = (options.max_connections + options.threads - 1) / options.threads;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (loop->epoll < 0 || loop->wake_fd < 0 ||
	    epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake_fd, &event))
		log_die("epoll: %s", strerror(errno));
	loop->timers = timers_open(loop, wheel);
	store_begin(loop->timers);
	pipes_open(&loop->pipes, ledger, &loop->counters);
	return loop;
}

/* What the main thread wants, and what follows from it: when to look again. False: the end. */
static bool obey(struct loop *loop, uint64_t *until)
{
	switch (atomic_load(&loop->command)) {
	case COMMAND_SERVE:
		listener_turn(loop);
		return true;
	case COMMAND_DRAIN:
		listener_stop(loop);
		return loop->counters.open > 0;
	case COMMAND_CLOSE:
		listener_stop(loop);
		conns_close(loop);
		return false;
	case COMMAND_HAND_OVER:
		*until = loop->now + STORE_BUSY;
		return !store_all(loop);
	}
	return false;
}

static int sleep_ms(uint64_t until, uint64_t now)
{
	if (until == TIME_NONE)
		return -1;
	/* An hour at a time: epoll_wait() takes no more than weeks. */
	if (until > now + 3600 * NSEC_PER_SEC)
		return 3600 * 1000;
	return until <= now ? 0 : (until - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
}

static void *loop_run(void *arg)
{
	struct epoll_event events[LOOP_EVENTS];
	struct loop *loop = arg;
	uint64_t until = loop->now;
	struct source *source;
	int i, n;

	while (obey(loop, &until)) {
		if (loop->listener.again && loop->listener.again < until)
			until = loop->listener.again;
		n = timers_wait(loop->timers, events, LOOP_EVENTS, sleep_ms(until, loop->now));
		loop->now = now_ns();
		counter_add(&loop->beats, 1);
		for (i = 0; i < n; i++) {
			source = events[i].data.ptr;
			source->ready(source, events[i].events);
		}
		/* What was asked for withdraws events: first that, then what is still due. */
		timers_flush(loop->timers);
		timers_expire(loop->timers);
		timers_flush(loop->timers);
		until = store_turn(loop);
		conns_reap(loop);
	}
	timers_flush(loop->timers);
	conns_reap(loop);
	ring(loop->done_fd);
	return NULL;
}

void loop_start(struct loop *loop)
{
	int err = pthread_create(&loop->thread, NULL, loop_run, loop);

	if (err)
		log_die("cannot start a thread: %s", strerror(err));
}

void loop_command(struct loop *loop, enum command command)
{
	atomic_store(&loop->command, command);
	loop_wake(loop);
}

void loop_wake(struct loop *loop)
{
	ring(loop->wake_fd);
}
