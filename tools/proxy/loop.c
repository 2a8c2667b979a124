// SPDX-License-Identifier: GPL-2.0
/* See loop.h. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "conn.h"
#include "listener.h"
#include "log.h"
#include "loop.h"
#include "options.h"
#include "record.h"
#include "store.h"
#include "timers.h"

/* Value of arrivals: the thread has ended, or is about to end. */
#define NO_MORE	((struct conn *)-1)

struct loop **loops;
_Thread_local struct loop *loop_self;

static void ring(int eventfd)
{
	/* Fails only if the eventfd is already readable. */
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

struct loop *loop_open(unsigned int number, int wheel, int done_fd)
{
	struct loop *loop = xcalloc(1, sizeof(*loop));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &loop->wake };

	loop->number = number;
	loop->turn = number;
	loop->done_fd = done_fd;
	loop->wake.ready = wake_ready;
	loop->now = now_ns();
	TAILQ_INIT(&loop->unstored);
	loop->max_open = (options.max_connections + options.threads - 1) / options.threads;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (loop->epoll < 0 || loop->wake_fd < 0 ||
	    epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake_fd, &event))
		log_die("epoll: %s; raise fs.epoll.max_user_watches or ulimit -n",
			strerror(errno));
	loop->timers = timers_open(loop, wheel);
	store_begin(loop, wheel >= 0);
	return loop;
}

bool loop_give(struct loop *loop, struct conn *conn)
{
	struct conn *first = atomic_load(&loop->arrivals);

	atomic_fetch_add(&loop->load, 1);
	do {
		if (first == NO_MORE) {
			atomic_fetch_sub(&loop->load, 1);
			return false;
		}
		conn->next = first;
	} while (!atomic_compare_exchange_weak(&loop->arrivals, &first, conn));
	/* If there already was an arrival, the thread was woken for it. */
	if (!first && loop != loop_self)
		loop_wake(loop);
	return true;
}

/* Open the arrivals of this thread. @instead is NULL, or NO_MORE to accept no more. */
static void take_arrivals(struct loop *loop, struct conn *instead)
{
	struct conn *conn, *next;
	unsigned int n = 0;

	conn = atomic_load_explicit(&loop->arrivals, memory_order_relaxed);
	if (conn == NO_MORE || conn == instead)
		return;
	for (conn = atomic_exchange(&loop->arrivals, instead); conn; conn = next) {
		next = conn->next;
		/* A batch of timers has room only for this number. */
		if (n++ % LISTENER_ACCEPTS == 0)
			timers_flush(loop->timers);
		conn_open(loop, conn);
	}
}

/* Is there no connection, and will there be none? */
static bool no_more(struct loop *loop)
{
	struct conn *first = NULL;

	/* A hand-over that was interrupted by a stop leaves NO_MORE there. */
	return LIST_EMPTY(&loop->conns) &&
	       (atomic_compare_exchange_strong(&loop->arrivals, &first, NO_MORE) ||
		first == NO_MORE);
}

/* Obey the main thread's command. @until: time of the next turn. Returns false at the end. */
static bool obey(struct loop *loop, uint64_t *until)
{
	enum command command = atomic_load(&loop->command);

	if (command == COMMAND_SERVE) {
		listener_turn(loop);
		return true;
	}
	listener_stop(loop);
	switch (command) {
	case COMMAND_DRAIN:
		return !no_more(loop);
	case COMMAND_CLOSE:
		take_arrivals(loop, NO_MORE);
		conns_close(loop);
		return false;
	default:
		take_arrivals(loop, NO_MORE);
		*until = loop->now + NOTIFY_BUSY;
		return !store_all(loop);
	}
}

int poll_ms(uint64_t until)
{
	uint64_t now;

	if (until == TIME_NONE)
		return -1;
	now = now_ns();
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

	loop_self = loop;
	while (obey(loop, &until)) {
		if (loop->accept_again && loop->accept_again < until)
			until = loop->accept_again;
		n = epoll_wait(loop->epoll, events, LOOP_EVENTS, poll_ms(until));
		loop->now = now_ns();
		counter_add(&loop->beats, 1);
		for (i = 0; i < n; i++) {
			source = events[i].data.ptr;
			source->ready(source, events[i].events);
		}
		take_arrivals(loop, NULL);
		/* Flush first, which withdraws events. Then handle timers that are still due. */
		timers_flush(loop->timers);
		timers_expire(loop->timers);
		timers_flush(loop->timers);
		until = store_turn(loop);
		records_flush(loop);
		conns_reap(loop);
	}
	timers_flush(loop->timers);
	records_flush(loop);
	conns_reap(loop);
	ring(loop->done_fd);
	return NULL;
}

void loop_start(struct loop *loop)
{
	int err = pthread_create(&loop->thread, NULL, loop_run, loop);
	char name[16];

	if (err)
		log_die("cannot start a thread: %s", strerror(err));
	snprintf(name, sizeof(name), "proxy-%u", loop->number);
	pthread_setname_np(loop->thread, name);
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
