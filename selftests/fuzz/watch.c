// SPDX-License-Identifier: GPL-2.0
/* Monitors: each reads all events that were delivered since it was opened, or reports a loss. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "test.h"

/* Monitor number @nr of those that are open, or NULL. */
static struct watch *watch_nr(struct test *t, unsigned int nr)
{
	unsigned int i, open = 0;

	for (i = 0; i < ARRAY_LEN(t->watches); i++)
		open += !!t->watches[i].events;
	if (!open)
		return NULL;
	nr %= open;
	for (i = 0; !t->watches[i].events || nr--; i++)
		;
	return &t->watches[i];
}

static struct watch *watch_free(struct test *t)
{
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(t->watches); i++)
		if (!t->watches[i].events)
			return &t->watches[i];
	return NULL;
}

/**
 * watch_open - MONITOR has returned
 * @t: the test
 * @ret: what it has returned
 * @errors: errors that its argument justifies
 */
void watch_open(struct test *t, int ret, unsigned int errors)
{
	const struct timerwheel_monitor *arg = &t->w->io.monitor;
	struct watch *watch = watch_free(t);
	int flags;

	if (!watch)
		errors |= MAY_ENOSPC;
	if (errors) {
		failed_with(t, "monitor", ret, errors);
		return;
	}
	if (ret < 0) {
		wrong(t->w, "monitor: %s", strerror(-ret));
		return;
	}
	flags = fcntl(ret, F_GETFL);
	same(t, "O_NONBLOCK", !!(flags & O_NONBLOCK),
	     !!(arg->flags & TIMERWHEEL_MONITOR_NONBLOCK));
	same(t, "FD_CLOEXEC", fcntl(ret, F_GETFD),
	     arg->flags & TIMERWHEEL_MONITOR_CLOEXEC ? FD_CLOEXEC : 0);
	fcntl(ret, F_SETFL, flags | O_NONBLOCK);
	*watch = (struct watch){ .fd = ret, .events = 1, .next = t->m.delivered };
	while (watch->events < (arg->events ? arg->events : 1024))
		watch->events *= 2;
	/* The model does not know that many events. */
	if (watch->events <= MODEL_LOG)
		return;
	close(ret);
	watch->events = 0;
}

/* Count missed events of a monitor. Returns the number of waiting events, with that report. */
static size_t waiting(const struct test *t, struct watch *watch)
{
	__u64 behind = t->m.delivered - watch->next;

	if (behind > watch->events) {
		watch->missed += behind - watch->events;
		watch->next = t->m.delivered - watch->events;
	}
	return t->m.delivered - watch->next + !!watch->missed;
}

static const char *check(struct test *t, struct watch *watch,
			 const struct timerwheel_event *event)
{
	const struct timerwheel_event missed = {
		.overruns = watch->missed, .flags = TIMERWHEEL_EVENT_MISSED,
	};

	if (watch->missed) {
		watch->missed = 0;
		return memcmp(event, &missed, sizeof(missed)) ? "not what was missed" : NULL;
	}
	return memcmp(event, &t->m.log[watch->next++ % MODEL_LOG], sizeof(*event)) ?
	       "not the event that was delivered" : NULL;
}

/**
 * watch_read - read a monitor, or poll it
 * @t: the test
 * @call: the call, which chooses the monitor
 */
void watch_read(struct test *t, const struct call *call)
{
	struct watch *watch = watch_nr(t, call->wheel);
	struct source source = { .check = check, .watch = watch };
	struct call poll = { .op = OP_POLL }, read = *call;
	__u64 r = call->seed;

	if (!watch)
		return;
	source.fd = watch->fd;
	source.waiting = waiting(t, watch);
	if (one_in(&r, 4))
		same(t, "poll of a monitor", exec_ready(&poll, watch->fd), source.waiting > 0);
	read.op = one_in(&r, 3) ? OP_READV : OP_READ;
	do_read(t, &read, &source);
}

/**
 * watch_close - close a monitor
 * @t: the test
 * @call: the call, which chooses the monitor
 */
void watch_close(struct test *t, const struct call *call)
{
	struct watch *watch = watch_nr(t, call->wheel);

	if (!watch)
		return;
	close(watch->fd);
	watch->events = 0;
}

static void read_to_end(struct test *t, struct watch *watch)
{
	struct pollfd p = { .fd = watch->fd, .events = POLLIN };
	struct timerwheel_event event[40];
	size_t left = waiting(t, watch), n, i;
	const char *what;

	for (; left && !t->w->failed; left -= n) {
		n = left < ARRAY_LEN(event) ? left : ARRAY_LEN(event);
		if (!same(t, "read of a monitor", read(watch->fd, event, sizeof(event)),
			  n * sizeof(*event)))
			return;
		for (i = 0; i < n; i++) {
			what = check(t, watch, &event[i]);
			if (what)
				wrong(t->w, "event %zu of a monitor: %s", i, what);
		}
	}
	same(t, "read of a monitor whose wheel was closed", read(watch->fd, event, sizeof(event)),
	     0);
	poll(&p, 1, 0);
	same(t, "poll of a monitor whose wheel was closed", p.revents, POLLIN | POLLHUP);
}

void watch_end(struct test *t)
{
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(t->watches); i++) {
		if (!t->watches[i].events)
			continue;
		if (!t->w->failed)
			read_to_end(t, &t->watches[i]);
		close(t->watches[i].fd);
		t->watches[i].events = 0;
	}
}
