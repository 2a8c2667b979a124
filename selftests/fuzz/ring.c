// SPDX-License-Identifier: GPL-2.0
/*
 * The event ring of a wheel with the MANUAL clock.
 *
 * Within a call it is not specified after which element events flow into the ring, nor which of the
 * timers of a tick come first. So the model learns both from the ring, event by event, and checks
 * that each event is one that may come next.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../lib/timerwheel-mapped.h"
#include "test.h"

/* Waiting events that an expiry, or a call that makes timers due, moves along: see flow.c. */
#define ALONG	16

/* With fewer timers than this all that happens in a tick is one expiry batch. */
#define ONE_BATCH	30

static size_t size_of(const struct test *t)
{
	return TIMERWHEEL_RING_EVENTS + t->m.setup.ring * sizeof(struct timerwheel_event);
}

void ring_map(struct test *t)
{
	void *p;

	if (!t->m.setup.ring)
		return;
	p = mmap(NULL, size_of(t), PROT_READ | PROT_WRITE, MAP_SHARED, t->fd,
		 TIMERWHEEL_MMAP_RING);
	if (p == MAP_FAILED)
		wrong(t->w, "mmap of the ring: %s", strerror(errno));
	else
		t->ring = p;
	t->taken = 0;
}

void ring_unmap(struct test *t)
{
	if (t->ring)
		munmap(t->ring, size_of(t));
	t->ring = NULL;
}

static __u32 least(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

/* Number of events in the ring that the model does not know yet. */
static __u32 news(const struct test *t)
{
	return t->ring ? t->ring->tail - (__u32)t->m.delivered : 0;
}

static const struct timerwheel_event *event_at(const struct test *t, __u32 i)
{
	const struct timerwheel_event *events = (void *)((char *)t->ring + TIMERWHEEL_RING_EVENTS);

	return &events[i & (t->m.setup.ring - 1)];
}

/* The next @n events in the ring are delivered. */
static void deliver(struct test *t, __u32 n)
{
	const struct timerwheel_event *e;
	const char *what;

	if (n > news(t) || n > model_ring_room(&t->m)) {
		wrong(t->w, "%u events came into the ring, with room for %u; not %u", news(t),
		      model_ring_room(&t->m), n);
		return;
	}
	for (; n && !t->w->failed; n--) {
		e = event_at(t, t->m.delivered);
		what = model_event(&t->m, e);
		if (what)
			wrong(t->w, "event %llu in the ring (key %llx): %s", t->m.delivered,
			      e->key, what);
	}
}

struct flow ring_before(struct test *t)
{
	t->m.newly = 0;
	return (struct flow){ .delivered = t->m.delivered, .waiting = t->m.n_due };
}

void ring_catch_up(struct test *t, __u64 key, int result)
{
	const struct mtimer *timer;

	/* These results say the same of a timer that is due and of one that no longer is. */
	if (result == TIMERWHEEL_WAS_DUE || (result < 0 && result != -ENOENT))
		return;
	while (news(t) && !t->w->failed) {
		timer = model_find(&t->m, key);
		/* A timer that was added may have needed the place of another one. */
		if (timer ? !timer->due : result < 0 || t->m.timers < t->m.setup.capacity)
			return;
		deliver(t, 1);
	}
}

void ring_after(struct test *t, const struct flow *before)
{
	struct model *m = &t->m;
	__u64 moved;

	if (!t->ring || t->w->failed)
		return;
	if (news(t))
		deliver(t, news(t));
	moved = m->delivered - before->delivered;
	if (moved && !m->newly)
		wrong(t->w, "%llu events came into the ring for no reason", moved);
	else if (m->newly && m->n_due && model_ring_room(m) &&
		 (!before->waiting || moved < m->newly + ALONG))
		wrong(t->w, "%u timers wait although there is room, %llu of %u went in", m->n_due,
		      moved, m->newly);
}

/* Check the fields that the kernel writes at the start of the ring, and all others. */
void ring_check(struct test *t)
{
	const struct timerwheel_ring *ring = t->ring;

	if (!ring || t->w->failed)
		return;
	same(t, "tail", ring->tail, (__u32)t->m.delivered);
	same(t, "head", ring->head, t->m.ring_head);
	same(t, "mask", ring->mask, t->m.setup.ring - 1);
	same(t, "size of an event", ring->event_size, t->m.setup.event_size);
	same(t, "flags", ring->flags, t->m.n_due ? TIMERWHEEL_RING_OVERFLOW : 0);
}

static void advance_to(struct test *t, __u64 to)
{
	struct timerwheel_advance advance = {
		.size = sizeof(advance), .flags = TIMERWHEEL_ABS, .time = to,
	};

	same(t, "advance", exec_ioctl(t->w, t->fd, TIMERWHEEL_IOC_ADVANCE, &advance), 0);
}

/*
 * If timers wait although there is room, each expiry moves a few. Only in a single tick it is known
 * how many. So advance one tick with work after the other, or let all of them flow.
 */
void ring_trickle(struct test *t)
{
	struct model *m = &t->m;
	unsigned int times = 8;
	__u64 next, tick = m->setup.tick;
	__u32 most, must;

	while (t->ring && m->n_due && model_ring_room(m) && !t->w->failed) {
		next = model_next_tick(m);
		if (!times-- || next > m->now / tick + 64 || next > TIMERWHEEL_TIME_MAX / tick) {
			ring_flow(t);
			return;
		}
		m->newly = 0;
		model_advance(m, next * tick);
		advance_to(t, next * tick);
		most = m->newly ? least(model_ring_room(m), m->n_due) : 0;
		must = least(most, m->newly + ALONG);
		if (news(t) < must || news(t) > (m->timers < ONE_BATCH ? must : most))
			wrong(t->w, "%u events came into the ring, not %u to %u", news(t), must,
			      most);
		deliver(t, news(t));
		ring_check(t);
	}
}

/* No timer waits, or there is no room: in each tick as many go in as there is room for. */
void ring_advance(struct test *t, __u64 to)
{
	struct model *m = &t->m;
	__u64 next, tick = m->setup.tick;

	while (!t->w->failed) {
		next = model_next_tick(m);
		if (next > to / tick)
			break;
		model_advance(m, next * tick);
		deliver(t, least(model_ring_room(m), m->n_due));
	}
	model_advance(m, to);
}

void ring_flow(struct test *t)
{
	struct model *m = &t->m;
	__u32 n = least(model_ring_room(m), m->n_due);
	int ret = exec_ioctl(t->w, t->fd, TIMERWHEEL_IOC_FLOW, NULL);

	if (same(t, "flow", ret, t->ring ? (int)n : -EINVAL) && t->ring)
		deliver(t, n);
}

/* A head that no reader stores: it is beyond the tail, or further behind than the ring is long. */
static void invalid_head(struct test *t, __u64 *r)
{
	__u32 far = 1 + (one_in(r, 2) ? rnd_to(r, 4) : rnd_to(r, 1U << 31));

	t->m.ring_head = t->m.delivered + (one_in(r, 2) ? far : -t->m.setup.ring - far);
	__atomic_store_n(&t->ring->head, t->m.ring_head, __ATOMIC_RELEASE);
}

/* Check the library's advice to a reader that wants to sleep. */
static void sleep_now(struct test *t, const struct timerwheel_mapped_ring *ring)
{
	enum timerwheel_ring_todo must = TIMERWHEEL_RING_POLL;

	if (model_ring_used(&t->m))
		must = TIMERWHEEL_RING_TAKE;
	else if (t->m.n_due)
		must = TIMERWHEEL_RING_FLOW;
	same(t, "what to do before a sleep", timerwheel_ring_sleep(ring), must);
}

/**
 * ring_take - take events from the ring as the library does, or store an invalid head
 * @t: the test
 * @call: the call, which chooses how many
 */
void ring_take(struct test *t, const struct call *call)
{
	struct timerwheel_mapped_ring ring = {
		.ring = t->ring, .events = t->m.setup.ring, .event_size = t->m.setup.event_size,
	};
	struct timerwheel_event event[16];
	__u32 left, n, i, got;
	__u64 r = call->seed;

	if (!t->ring)
		return;
	if (one_in(&r, 16)) {
		invalid_head(t, &r);
		return;
	}
	t->m.ring_head = t->taken;
	__atomic_store_n(&t->ring->head, t->taken, __ATOMIC_RELEASE);
	left = model_ring_used(&t->m);
	if (one_in(&r, 2))
		left = rnd_to(&r, left + 1);
	for (; left; left -= n) {
		n = least(left, 1 + rnd_to(&r, ARRAY_LEN(event)));
		got = timerwheel_ring_take(&ring, event, n);
		if (!same(t, "events taken", got, n))
			return;
		for (i = 0; i < n; i++, t->taken++)
			if (memcmp(&event[i], &t->m.log[t->taken % MODEL_LOG], sizeof(*event)))
				wrong(t->w, "event %u in the ring has changed", t->taken);
		digest(t->w, event, n * sizeof(*event));
		t->m.ring_head = t->taken;
	}
	if (one_in(&r, 4)) {
		ring.head = t->taken;
		sleep_now(t, &ring);
	}
}
