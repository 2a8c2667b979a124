// SPDX-License-Identifier: GPL-2.0
/* The run on /dev/timerwheel: one descriptor, batches, events read in arrays. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bulk.h"
#include "util.h"
#include "wheel.h"

#define EVENTS		1024
/* While removing, read events after this number of batches. */
#define READ_EVERY	64

/* A part of each timer's value, so that a wrong value is detected. */
#define VALUE_TAG	0x7157e0f1ULL

static int wheel, epoll_fd;
static struct outcome *out;
static struct ledger *ledger;
static __u64 seed;
static struct timerwheel_event events[EVENTS];
static struct histogram stamped;
static __u64 tick, in_time;

/* Keys that look random. mix64 is a bijection, so they are unique. */
static __u64 key_of(__u32 i)
{
	return mix64(i + 1);
}

static __u64 value_of(__u32 i)
{
	return VALUE_TAG << 32 | i;
}

static void arm_all(void)
{
	struct timerwheel_add *elems = xcalloc(options.batch, sizeof(*elems));
	struct phase *p = &out->arm;
	__u32 done = 0, i, n;
	__u64 now;

	phase_begin(p);
	while (done < options.timers) {
		n = options.timers - done;
		if (n > options.batch)
			n = options.batch;
		now = now_ns();
		for (i = 0; i < n; i++) {
			elems[i] = (struct timerwheel_add) {
				.key = key_of(done + i),
				.value = value_of(done + i),
				.deadline = deadline_new(now, &seed),
				.flags = TIMERWHEEL_ABS | TIMERWHEEL_EXCL,
			};
		}
		now = now_ns();
		p->calls += wheel_add(wheel, elems, n);
		p->wall += now_ns() - now;
		for (i = 0; i < n; i++) {
			if (elems[i].result == TIMERWHEEL_WAS_NONE)
				ledger_arm(ledger, done + i, elems[i].deadline);
			else
				ledger->refused++;
		}
		done += n;
	}
	p->ops = done;
	phase_end(p, "armed");
	free(elems);
}

/* No event has been read yet, so each timer must still exist, pending or due. */
static void move_third(void)
{
	struct timerwheel_move *elems = xcalloc(options.batch, sizeof(*elems));
	__u32 *which = xcalloc(options.batch, sizeof(*which));
	__u64 stride = stride_of(options.timers), at = 0, due = 0, now;
	__u32 seen = 0, i, n;
	struct phase *p = &out->move;

	phase_begin(p);
	while (seen < options.timers) {
		now = now_ns();
		for (n = 0; n < options.batch && seen < options.timers; seen++) {
			at = (at + stride) % options.timers;
			if (!is_moved(at))
				continue;
			which[n] = at;
			elems[n] = (struct timerwheel_move) {
				.key = key_of(at),
				.deadline = deadline_moved(now, ledger->deadlines[at], at & 1,
							   &seed),
				.flags = TIMERWHEEL_ABS,
			};
			n++;
		}
		now = now_ns();
		p->calls += wheel_move(wheel, elems, n);
		p->wall += now_ns() - now;
		for (i = 0; i < n; i++) {
			due += elems[i].result == TIMERWHEEL_WAS_DUE;
			if (elems[i].result > 0)
				ledger_move(ledger, which[i], elems[i].deadline);
			else
				ledger->refused++;
		}
		p->ops += n;
	}
	phase_end(p, "moved");
	if (due)
		printf("           %s of them were due already: their events were withdrawn\n",
		       commas(due));
	free(elems);
	free(which);
}

/* Make one read. Count the lateness that the program sees only while it does nothing else. */
static __u32 read_events(struct phase *p, bool waiting)
{
	__u32 i, n = wheel_read(wheel, events, EVENTS);
	__u64 now = now_ns();

	p->calls++;
	for (i = 0; i < n; i++) {
		const struct timerwheel_event *e = &events[i];
		__u32 which = (__u32)e->value;

		if (which >= options.timers || e->value != value_of(which) ||
		    e->key != key_of(which)) {
			ledger->unknown++;
			continue;
		}
		ledger_deliver(ledger, which, e->deadline, e->fired);
		if (e->fired > now)
			ledger->refused++;
		histogram_add(&stamped, e->fired - e->deadline);
		in_time += e->fired - e->deadline <= tick;
		if (waiting && now > e->deadline)
			histogram_add(&out->seen, now - e->deadline);
	}
	p->ops += n;
	return n;
}

/*
 * Events are read in between, so some timers are delivered before their removal. For these REMOVE
 * must return ENOENT, for the others success and the right value.
 */
static void remove_one_checked(const struct timerwheel_remove *elem, __u32 i, __u64 *gone)
{
	bool delivered = ledger->states[i] == TIMER_DELIVERED;

	if (elem->result == -ENOENT && delivered)
		(*gone)++;
	else if (elem->result > 0 && !delivered && elem->value == value_of(i))
		ledger_remove(ledger, i);
	else
		ledger->refused++;
}

static void remove_third(void)
{
	struct timerwheel_remove *elems = xcalloc(options.batch, sizeof(*elems));
	__u32 *which = xcalloc(options.batch, sizeof(*which));
	__u64 stride = stride_of(options.timers), at = 0, due = 0, gone = 0, now;
	struct phase *p = &out->remove, reads = { 0 };
	__u32 seen = 0, i, n;

	phase_begin(p);
	while (seen < options.timers) {
		for (n = 0; n < options.batch && seen < options.timers; seen++) {
			at = (at + stride) % options.timers;
			if (!is_removed(at))
				continue;
			which[n] = at;
			elems[n] = (struct timerwheel_remove) { .key = key_of(at) };
			n++;
		}
		now = now_ns();
		p->calls += wheel_remove(wheel, elems, n);
		p->wall += now_ns() - now;
		for (i = 0; i < n; i++) {
			due += elems[i].result == TIMERWHEEL_WAS_DUE;
			remove_one_checked(&elems[i], which[i], &gone);
		}
		p->ops += n;
		if (p->calls % READ_EVERY == 0)
			read_events(&reads, false);
	}
	phase_end(p, "removed");
	if (due + gone)
		printf("           %s of them were due already, %s had been read (no such timer)\n",
		       commas(due), commas(gone));
	free(elems);
	free(which);
}

static void collect_rest(void)
{
	__u64 last = 0, limit, now, said, busy;
	struct phase *p = &out->collect;
	bool waiting = false;
	__u32 i;

	for (i = 0; i < options.timers; i++) {
		if (ledger->states[i] == TIMER_ARMED && ledger->deadlines[i] > last)
			last = ledger->deadlines[i];
	}
	/* A timer is lost if nothing comes for a second when this is over. */
	limit = last + 10 * NSEC_PER_SEC;
	phase_begin(p);
	said = p->start;
	out->expired = ledger_passed(ledger, now_ns());
	busy = machine_busy_ns();
	while (ledger_expected(ledger)) {
		struct epoll_event event;

		now = now_ns();
		if (now >= said + 3 * NSEC_PER_SEC) {
			said += 3 * NSEC_PER_SEC;
			printf("  ... %9s delivered, %9s to come\n",
			       commas(ledger->delivered), commas(ledger_expected(ledger)));
			fflush(stdout);
		}
		p->calls++;
		if (epoll_wait(epoll_fd, &event, 1, 1000) < 1) {
			waiting = true;
			if (now > limit)
				break;
			continue;
		}
		now = now_ns();
		while (read_events(p, waiting) == EVENTS)
			;
		p->wall += now_ns() - now;
		/* Once no event is left over, the program keeps up. */
		waiting = true;
	}
	out->collect_busy = machine_busy_ns() - busy;
	phase_end(p, "read");
}

/* The kernel's statistics must match the ledger. */
static bool compare_stats(const struct timerwheel_stats *s)
{
	__u64 ended = s->delivered + s->removed + s->replaced + s->drained + s->pending + s->due;
	bool right = s->armed == ledger->armed && s->moved == ledger->moved &&
		     s->removed == ledger->removed && s->delivered == ledger->delivered &&
		     !s->pending && !s->due && s->armed + s->rearmed == ended;

	if (!right)
		say("WRONG: STATS: armed %llu moved %llu removed %llu read %llu left %llu + %llu",
		    s->armed, s->moved, s->removed, s->delivered, s->pending, s->due);
	return right;
}

static void report(const struct timerwheel_stats *s)
{
	printf("  memory: %s bytes a timer by STATS, %s by /proc/meminfo\n",
	       commas(out->memory_stats / options.timers), commas(out->memory / options.timers));
	printf("  in the kernel: %s interrupts, %s wake-ups, %s moved down a level\n",
	       commas(s->firings), commas(s->wakeups), commas(s->cascades));
	printf("  %s passes, the largest of %s timers, the longest took %s\n",
	       commas(s->passes), commas(s->pass_max_timers), duration(s->pass_max_ns));
	histogram_draw(&stamped, "  How late the timers fired, as the kernel stamped them:");
	printf("  %s of %s fired within one tick (%s). The others had to wait, either for timers\n"
	       "  that expired before them and were not handled yet (the backlog), or because the\n"
	       "  machine stood still (see below).\n",
	       commas(in_time), commas(stamped.count), duration(tick));
}

void run_wheel(struct outcome *o)
{
	struct timerwheel_setup setup = { .capacity = options.timers };
	struct epoll_event event = { .events = EPOLLIN };
	struct timerwheel_stats stats;
	__u64 memory;

	out = o;
	ledger = &o->ledger;
	seed = 1;
	ledger_init(ledger, options.timers);
	wheel = wheel_open();
	wheel_setup(wheel, &setup);
	tick = setup.tick;
	printf("\n/dev/timerwheel: %s timers in one descriptor, tick %s, batches of %u\n",
	       commas(options.timers), duration(setup.tick), options.batch);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wheel, &event))
		die("epoll: %s", strerror(errno));
	o->descriptors = 1;
	memory = mem_settled();
	arm_all();
	o->memory = mem_taken(memory);
	wheel_stats(wheel, &stats);
	o->memory_stats = stats.memory;
	move_third();
	remove_third();
	collect_rest();
	wheel_stats(wheel, &stats);
	o->wakeups = stats.wakeups;
	report(&stats);
	o->right = ledger_close(ledger, "timerwheel");
	o->right &= compare_stats(&stats);
	close(epoll_fd);
	close(wheel);
	/* Or its memory would be counted as free memory that timerfds did not take. */
	wheel_wait_freed();
	ledger_free(ledger);
}
