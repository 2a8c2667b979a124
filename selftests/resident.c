// SPDX-License-Identifier: GPL-2.0
/*
 * resident: timers that are armed, refreshed and cancelled in the deadline table. Tests the effect
 * of each of these operations and of each call in each state; exact times and slack; setting
 * CLOCK_REALTIME, time namespaces, CPUs that go offline, several processes; races with a strict
 * ledger; hostile programs. suspend.c tests them in suspend.
 *
 * TW_RACE_SECONDS: duration of each race and each hammering (2; each race at most 4).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include "tw_test.h"

#define USEC		1000ULL
#define MSEC		1000000ULL
#define SEC		1000000000ULL
#define HOUR		(3600 * SEC)

/* States of an entry, and GONE: another generation */
enum state {
	CANCELLED = TIMERWHEEL_TABLE_CANCELLED,
	ARMED = TIMERWHEEL_TABLE_ARMED,
	PARKED = TIMERWHEEL_TABLE_PARKED,
	FIRED = TIMERWHEEL_TABLE_FIRED,
	TOO_EARLY,
	GONE,
};

/* A wheel with its table */
struct wheel {
	int fd;
	__u64 mask;			/* the bits of an entry beside the deadline */
	atomic_ullong *table;
};

#define MAPPED	(64 * 1024)		/* bytes of the table */

static int wheel_map(struct wheel *w)
{
	w->table = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd,
			TIMERWHEEL_MMAP_DEADLINES);
	return w->table == MAP_FAILED ? -errno : 0;
}

static int wheel_open(struct wheel *w, const struct timerwheel_setup *ask)
{
	struct timerwheel_setup setup = *ask;
	struct timerwheel_info info;
	int ret;

	setup.flags |= TIMERWHEEL_SETUP_RESIDENT;
	w->fd = dev_open(O_NONBLOCK);
	if (w->fd < 0)
		return w->fd;
	ret = dev_setup(w->fd, &setup) ?: tw_info(w->fd, &info);
	if (ret)
		return ret;
	w->mask = (1ULL << info.generation_bits) - 1;
	return wheel_map(w);
}

static void wheel_close(struct wheel *w)
{
	munmap((void *)w->table, MAPPED);
	close(w->fd);
}

/* A handle of a timer */
struct handle {
	atomic_ullong *entry;
	__u64 mask;
	__u64 generation;
};

static struct handle handle_of(const struct wheel *w, const struct timerwheel_add *add)
{
	return (struct handle){ w->table + add->index, w->mask, add->generation };
}

static __u64 unit_up(const struct handle *h, __u64 deadline)
{
	return (deadline + h->mask) & ~h->mask;
}

static enum state state_of(const struct handle *h, __u64 entry)
{
	return (entry ^ h->generation) & h->mask & ~3ULL ? GONE : (enum state)(entry & 3);
}

static enum state state_now(const struct handle *h)
{
	return state_of(h, atomic_load(h->entry));
}

/* Arm (@only CANCELLED: or refresh). Returns the previous state; CANCELLED or ARMED: done */
static enum state arm(const struct handle *h, __u64 deadline, bool refresh)
{
	__u64 old = atomic_load_explicit(h->entry, memory_order_relaxed), want;
	enum state was;

	want = unit_up(h, deadline) | h->generation | ARMED;
	do {
		was = state_of(h, old);
		if (was > ARMED || (refresh && was == CANCELLED))
			return was;
		if (want < old)
			return TOO_EARLY;
	} while (!atomic_compare_exchange_weak_explicit(h->entry, &old, want,
							memory_order_acq_rel,
							memory_order_relaxed));
	return was;
}

/* Cancel. Returns the previous state; ARMED: done */
static enum state cancel(const struct handle *h)
{
	__u64 old = atomic_load_explicit(h->entry, memory_order_relaxed);
	enum state was;

	do {
		was = state_of(h, old);
		if (was != ARMED)
			return was;
	} while (!atomic_compare_exchange_weak_explicit(h->entry, &old, old - 1,
							memory_order_acq_rel,
							memory_order_relaxed));
	return was;
}

static int add(const struct wheel *w, __u64 key, __u64 deadline, __u32 flags, __u64 linger,
	       struct handle *h)
{
	struct timerwheel_add elem = {
		.key = key, .value = ~key, .deadline = deadline, .period = linger,
		.flags = flags | (linger ? TIMERWHEEL_LINGER : 0),
	};
	int ret = tw_add_elem(w->fd, &elem);

	if (ret >= 0)
		*h = handle_of(w, &elem);
	return ret;
}

static __u64 parked(int fd)
{
	struct timerwheel_stats st;

	return tw_stats(fd, &st) ? ~0ULL : st.parked;
}

/* Are there timers that are pending, or due and not read? */
static bool waiting(int fd)
{
	struct timerwheel_stats st;

	return tw_stats(fd, &st) || st.pending + st.due;
}

static bool balanced(int fd)
{
	struct timerwheel_stats st;

	return !tw_stats(fd, &st) && tw_balanced(&st);
}

/* --- One timer, MANUAL clock ------------------------------------------------------- */

FIXTURE(one) {
	struct wheel w;
	struct handle h;
	struct timerwheel_event *ev;	/* with a ring: it is mapped */
	struct timerwheel_ring *ring;
};

FIXTURE_VARIANT(one) {
	__u32 ring;
};

FIXTURE_VARIANT_ADD(one, read) { 0 };
FIXTURE_VARIANT_ADD(one, ring) { 16 };

FIXTURE_SETUP(one)
{
	struct timerwheel_setup setup = {
		.clock = TIMERWHEEL_CLOCK_MANUAL, .tick = MSEC, .ring = variant->ring,
	};

	ASSERT_EQ(0, wheel_open(&self->w, &setup));
	if (variant->ring) {
		self->ring = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, self->w.fd,
				  TIMERWHEEL_MMAP_RING);
		ASSERT_NE(MAP_FAILED, self->ring);
	}
	ASSERT_EQ(0, add(&self->w, 7, 100 * MSEC, 0, 0, &self->h));
}

FIXTURE_TEARDOWN(one)
{
	EXPECT_TRUE(balanced(self->w.fd));
	wheel_close(&self->w);
}

/* Take an event. Returns 1, or 0 if there is none */
static int take(struct wheel *w, struct timerwheel_ring *ring, struct timerwheel_event *ev)
{
	int n;

	if (!ring) {
		n = dev_read(w->fd, ev, 1);
		return n == -EAGAIN ? 0 : n;
	}
	dev_ioctl(w->fd, TIMERWHEEL_IOC_FLOW, NULL);
	if (ring->tail == ring->head)
		return 0;
	*ev = ((struct timerwheel_event *)((char *)ring + TIMERWHEEL_RING_EVENTS))[ring->head &
										   ring->mask];
	ring->head++;
	return 1;
}

#define EXPECT_NO_EVENT() do {						\
	struct timerwheel_event none;					\
	EXPECT_EQ(0, take(&self->w, self->ring, &none));		\
} while (0)

/* There is an event, and its deadline is @at, rounded up. */
#define EXPECT_EVENT(at) do {						\
	struct timerwheel_event event = {};				\
	ASSERT_EQ(1, take(&self->w, self->ring, &event));		\
	EXPECT_EQ(7, event.key);					\
	EXPECT_EQ(~7ULL, event.value);					\
	EXPECT_EQ(unit_up(&self->h, at), event.deadline);		\
	EXPECT_LE(event.deadline, event.fired);				\
	EXPECT_GE(event.deadline + MSEC, event.fired);			\
	EXPECT_EQ(0, event.flags);					\
} while (0)

/* ADD arms it: the entry is ARMED, with the deadline rounded up, as GET reports it */
TEST_F(one, add)
{
	struct timerwheel_entry ent;
	struct timerwheel_info info;

	ASSERT_EQ(0, tw_info(self->w.fd, &info));
	EXPECT_EQ(TIMERWHEEL_FEATURE_TABLE, info.features & TIMERWHEEL_FEATURE_TABLE);
	EXPECT_EQ(TIMERWHEEL_INFO_RESIDENT, info.flags & TIMERWHEEL_INFO_RESIDENT);
	EXPECT_EQ(unit_up(&self->h, 100 * MSEC) | self->h.generation | ARMED,
		  atomic_load(self->h.entry));
	EXPECT_EQ(0, self->h.generation & 3);
	EXPECT_NE(0, self->h.generation);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(self->w.fd, 7, &ent));
	EXPECT_EQ(unit_up(&self->h, 100 * MSEC), ent.deadline);
}

/* It fires and stays, with its key, index and generation. MOVE arms it again. */
TEST_F(one, fires_and_stays)
{
	struct timerwheel_entry ent;
	int i;

	for (i = 1; i <= 3; i++) {
		EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, i * SEC - SEC + 99 * MSEC));
		EXPECT_NO_EVENT();
		EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, i * SEC - SEC + 102 * MSEC));
		EXPECT_EQ(FIRED, state_now(&self->h));
		EXPECT_EVENT(i * SEC - SEC + 100 * MSEC);
		EXPECT_NO_EVENT();
		EXPECT_EQ(FIRED, state_now(&self->h));
		EXPECT_EQ(1, parked(self->w.fd));
		EXPECT_EQ(FIRED, arm(&self->h, HOUR, false));
		EXPECT_EQ(FIRED, cancel(&self->h));
		EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_get1(self->w.fd, 7, &ent));
		EXPECT_EQ(self->h.generation, ent.generation);
		EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, i * SEC));
		EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_move1(self->w.fd, 7, i * SEC + 100 * MSEC,
							  TIMERWHEEL_ABS));
		EXPECT_EQ(ARMED, state_now(&self->h));
		EXPECT_EQ(0, parked(self->w.fd));
	}
}

/* Refresh: the timer fires at the later deadline, after any number of visits */
TEST_F(one, refresh)
{
	__u64 at, unit = self->w.mask + 1;

	for (at = 200 * MSEC; at < 2 * SEC; at += 100 * MSEC) {
		EXPECT_EQ(ARMED, arm(&self->h, at, true));
		EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, at - 2 * MSEC));
		EXPECT_NO_EVENT();
	}
	EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, at));
	EXPECT_EVENT(at - 100 * MSEC);
	EXPECT_EQ(FIRED, arm(&self->h, HOUR, true));
	/* later, but the timer still falls due in the same tick */
	at = unit_up(&self->h, at + 100 * MSEC);
	while ((at - 1) / MSEC != (at + unit - 1) / MSEC)
		at += unit;
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_move1(self->w.fd, 7, at, TIMERWHEEL_ABS));
	EXPECT_EQ(ARMED, arm(&self->h, at + unit, true));
	EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, at + 2 * MSEC));
	EXPECT_EVENT(at + unit);
}

/* Cancel: no event comes. The timer is parked when its deadline has passed, not before. */
TEST_F(one, cancel)
{
	EXPECT_EQ(ARMED, cancel(&self->h));
	EXPECT_EQ(CANCELLED, cancel(&self->h));
	EXPECT_EQ(CANCELLED, arm(&self->h, HOUR, true));
	EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, 99 * MSEC));
	EXPECT_EQ(CANCELLED, state_now(&self->h));
	EXPECT_EQ(0, parked(self->w.fd));
	EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, 102 * MSEC));
	EXPECT_EQ(PARKED, state_now(&self->h));
	EXPECT_EQ(1, parked(self->w.fd));
	EXPECT_EQ(PARKED, arm(&self->h, HOUR, false));
	EXPECT_EQ(PARKED, cancel(&self->h));
	EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, 2 * HOUR));
	EXPECT_NO_EVENT();
}

/* Arm again after a cancel: at the same deadline or later, but not earlier */
TEST_F(one, arm_again)
{
	EXPECT_EQ(ARMED, cancel(&self->h));
	EXPECT_EQ(TOO_EARLY, arm(&self->h, 90 * MSEC, false));
	EXPECT_EQ(CANCELLED, arm(&self->h, 100 * MSEC, false));
	EXPECT_EQ(TOO_EARLY, arm(&self->h, 90 * MSEC, false));
	EXPECT_EQ(ARMED, cancel(&self->h));
	EXPECT_EQ(CANCELLED, arm(&self->h, 300 * MSEC, false));
	EXPECT_EQ(ARMED, arm(&self->h, 400 * MSEC, false));
	EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, 399 * MSEC));
	EXPECT_NO_EVENT();
	EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, 402 * MSEC));
	EXPECT_EVENT(400 * MSEC);
}

/* MOVE gives a pending timer any deadline, and reports if it was armed. */
TEST_F(one, move)
{
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->w.fd, 7, 50 * MSEC, TIMERWHEEL_ABS));
	EXPECT_EQ(unit_up(&self->h, 50 * MSEC) | self->h.generation | ARMED,
		  atomic_load(self->h.entry));
	EXPECT_EQ(ARMED, cancel(&self->h));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_move1(self->w.fd, 7, 20 * MSEC, TIMERWHEEL_ABS));
	EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, 22 * MSEC));
	EXPECT_EVENT(20 * MSEC);
	/* MOVE of a parked timer */
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_move1(self->w.fd, 7, 30 * MSEC, TIMERWHEEL_ABS));
	EXPECT_EQ(ARMED, cancel(&self->h));
	EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, 40 * MSEC));
	EXPECT_EQ(PARKED, state_now(&self->h));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_move1(self->w.fd, 7, 50 * MSEC, TIMERWHEEL_ABS));
	EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, 52 * MSEC));
	EXPECT_EVENT(50 * MSEC);
	EXPECT_NO_EVENT();
}

/* MOVE to a time that has passed: due at once, from each state */
TEST_F(one, move_to_the_past)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, 10 * MSEC));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->w.fd, 7, 0, 0));
	EXPECT_EQ(FIRED, state_now(&self->h));
	ASSERT_EQ(1, take(&self->w, self->ring, &ev));
	EXPECT_EQ(10 * MSEC, ev.deadline);
	EXPECT_EQ(10 * MSEC, ev.fired);
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_move1(self->w.fd, 7, 5 * MSEC, TIMERWHEEL_ABS));
	EXPECT_EQ(FIRED, state_now(&self->h));
	ASSERT_EQ(1, take(&self->w, self->ring, &ev));
	EXPECT_EQ(5 * MSEC, ev.deadline);
	EXPECT_NO_EVENT();
}

/* MOVE with EXCL arms only a timer that is not armed. */
TEST_F(one, move_unless_armed)
{
	const __u32 flags = TIMERWHEEL_ABS | TIMERWHEEL_EXCL;

	EXPECT_EQ(-EEXIST, tw_move1(self->w.fd, 7, 50 * MSEC, flags));
	EXPECT_EQ(ARMED, cancel(&self->h));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_move1(self->w.fd, 7, 50 * MSEC, flags));
	EXPECT_EQ(-EEXIST, tw_move1(self->w.fd, 7, 60 * MSEC, flags));
	EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, 52 * MSEC));
	if (!variant->ring)
		EXPECT_EQ(-EEXIST, tw_move1(self->w.fd, 7, 60 * MSEC, flags));
	EXPECT_EVENT(50 * MSEC);
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_move1(self->w.fd, 7, 60 * MSEC, flags));
	EXPECT_EQ(ARMED, state_now(&self->h));
}

/* ADD replaces value and deadline; the handle stays valid. */
TEST_F(one, add_replaces)
{
	struct timerwheel_event ev;
	struct handle h;

	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, add(&self->w, 7, 50 * MSEC, TIMERWHEEL_ABS, 0, &h));
	EXPECT_EQ(h.entry, self->h.entry);
	EXPECT_EQ(h.generation, self->h.generation);
	EXPECT_EQ(-EEXIST, add(&self->w, 7, 50 * MSEC, TIMERWHEEL_EXCL, 0, &h));
	EXPECT_EQ(ARMED, cancel(&h));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, add(&self->w, 7, 20 * MSEC, TIMERWHEEL_ABS, 0, &h));
	EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, 22 * MSEC));
	ASSERT_EQ(1, take(&self->w, self->ring, &ev));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, add(&self->w, 7, 30 * MSEC, TIMERWHEEL_ABS, 0, &h));
	EXPECT_EQ(-EEXIST, add(&self->w, 7, 50 * MSEC, TIMERWHEEL_EXCL, 0, &h));
	EXPECT_EQ(h.generation, self->h.generation);
	EXPECT_EQ(ARMED, state_now(&self->h));
}

/* REMOVE reports in each state whether the timer was armed. Then the entry has no owner. */
TEST_F(one, remove)
{
	struct timerwheel_remove rem = { .key = 7 };
	struct handle old = self->h;
	struct timerwheel_event ev;

	EXPECT_EQ(ARMED, arm(&self->h, 200 * MSEC, true));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove_elem(self->w.fd, &rem));
	EXPECT_EQ(unit_up(&self->h, 200 * MSEC), rem.left);
	EXPECT_EQ(GONE, state_now(&self->h));
	EXPECT_EQ(GONE, arm(&self->h, HOUR, false));
	EXPECT_EQ(0, atomic_load(self->h.entry));
	EXPECT_EQ(-ENOENT, tw_remove1(self->w.fd, 7));

	/* The next owner of the index has another generation. */
	ASSERT_EQ(0, add(&self->w, 8, HOUR, 0, 0, &self->h));
	EXPECT_EQ(old.entry, self->h.entry);
	EXPECT_NE(old.generation, self->h.generation);
	EXPECT_EQ(GONE, cancel(&old));
	EXPECT_EQ(ARMED, cancel(&self->h));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_remove1(self->w.fd, 8));

	/* parked; delivered */
	ASSERT_EQ(0, add(&self->w, 9, MSEC, 0, 0, &self->h));
	EXPECT_EQ(ARMED, cancel(&self->h));
	EXPECT_EQ(0, tw_advance(self->w.fd, 0, 10 * MSEC));
	EXPECT_EQ(PARKED, state_now(&self->h));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_remove1(self->w.fd, 9));
	EXPECT_EQ(0, atomic_load(self->h.entry));
	ASSERT_EQ(0, add(&self->w, 9, MSEC, 0, 0, &self->h));
	EXPECT_EQ(1, tw_advance(self->w.fd, 0, 10 * MSEC));
	ASSERT_EQ(1, take(&self->w, self->ring, &ev));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_remove1(self->w.fd, 9));
	EXPECT_EQ(0, parked(self->w.fd));
	/* due */
	if (!variant->ring) {
		ASSERT_EQ(0, add(&self->w, 9, MSEC, 0, 0, &self->h));
		EXPECT_EQ(1, tw_advance(self->w.fd, 0, 10 * MSEC));
		EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_remove1(self->w.fd, 9));
		EXPECT_EQ(0, atomic_load(self->h.entry));
		EXPECT_NO_EVENT();
	}
}

/* LIST and DRAIN return timers in each state, with the values of the entry. */
TEST_F(one, list_and_drain)
{
	struct timerwheel_entry ent[8];
	struct timerwheel_event ev;
	struct handle h[5];
	__u64 cursor;
	int i, drain;

	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->w.fd, 7));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, add(&self->w, i, (i < 2 ? 500 : 5) * MSEC, 0, 0, &h[i]));
	EXPECT_EQ(ARMED, arm(&h[0], SEC, true));
	EXPECT_EQ(ARMED, cancel(&h[1]));
	EXPECT_EQ(ARMED, cancel(&h[2]));
	EXPECT_EQ(1, tw_advance(self->w.fd, 0, 10 * MSEC));
	ASSERT_EQ(1, take(&self->w, self->ring, &ev));
	for (drain = 0; drain < 2; drain++) {
		cursor = 0;
		ASSERT_EQ(4, drain ? tw_drain(self->w.fd, 0, ent, 8) :
				     tw_list(self->w.fd, &cursor, ent, 8));
		for (i = 0; i < 4; i++) {
			EXPECT_GT(4, ent[i].key);
			EXPECT_EQ(ent[i].key ? TIMERWHEEL_WAS_PARKED : TIMERWHEEL_WAS_PENDING,
				  ent[i].result);
			if (ent[i].key == 0)
				EXPECT_EQ(unit_up(h, SEC), ent[i].deadline);
			EXPECT_EQ(h[ent[i].key].generation, ent[i].generation);
			EXPECT_EQ(drain ? GONE : ent[i].key == 0 ? ARMED :
				  ent[i].key == 1 ? CANCELLED : ent[i].key == 2 ? PARKED : FIRED,
				  state_now(&h[ent[i].key]));
		}
		if (!drain) {
			EXPECT_EQ(2, parked(self->w.fd));
			EXPECT_TRUE(balanced(self->w.fd));
		}
	}
	EXPECT_EQ(0, tw_drain(self->w.fd, 0, ent, 8));
	EXPECT_EQ(0, parked(self->w.fd));
}

/* With a linger a delivered timer is cancelled, and is armed again in memory. */
TEST_F(one, linger)
{
	struct timerwheel_entry ent;
	__u64 now = 0;
	int i;

	ASSERT_EQ(TIMERWHEEL_WAS_PENDING,
		  add(&self->w, 7, 100 * MSEC, TIMERWHEEL_ABS, 50 * MSEC, &self->h));
	for (i = 0; i < 3; i++) {
		now += 200 * MSEC;
		EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, now));
		EXPECT_EVENT(now - 100 * MSEC);
		EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_get1(self->w.fd, 7, &ent));
		EXPECT_EQ(TIMERWHEEL_LINGER, ent.flags);
		EXPECT_EQ(50 * MSEC, ent.period);
		if (variant->ring) {
			/* It was delivered at its tick, so the linger has ended. */
			EXPECT_EQ(PARKED, state_now(&self->h));
			EXPECT_EQ(TIMERWHEEL_WAS_PARKED,
				  tw_move1(self->w.fd, 7, now + 100 * MSEC, TIMERWHEEL_ABS));
		} else {
			EXPECT_EQ(unit_up(&self->h, now + 50 * MSEC) | self->h.generation,
				  atomic_load(self->h.entry));
			EXPECT_EQ(TOO_EARLY, arm(&self->h, now + 40 * MSEC, false));
			EXPECT_EQ(CANCELLED, arm(&self->h, now + 100 * MSEC, false));
		}
	}
	EXPECT_EQ(ARMED, cancel(&self->h));
	EXPECT_EQ(0, tw_advance(self->w.fd, 0, SEC));
	EXPECT_EQ(PARKED, state_now(&self->h));
	EXPECT_NO_EVENT();
}

/* Flags and periods that are invalid here, or valid only here */
TEST_F(one, invalid)
{
	struct timerwheel_add elem = { .key = 9, .deadline = SEC, .period = SEC };
	int plain = tw_open_manual(MSEC);

	ASSERT_LE(0, plain);
	EXPECT_EQ(-EINVAL, tw_add_elem(self->w.fd, &elem));
	elem.period = 0;
	elem.flags = TIMERWHEEL_LINGER;
	EXPECT_EQ(-EINVAL, tw_add_elem(self->w.fd, &elem));
	elem.period = TIMERWHEEL_TIME_MAX + 1;
	EXPECT_EQ(-EINVAL, tw_add_elem(self->w.fd, &elem));
	elem.period = SEC;
	EXPECT_EQ(-EINVAL, tw_add_elem(plain, &elem));
	elem.flags = 0;
	EXPECT_EQ(0, tw_add_elem(plain, &elem));
	EXPECT_EQ(-EINVAL, tw_move1(plain, 9, SEC, TIMERWHEEL_EXCL));
	EXPECT_EQ(-ENOENT, tw_move1(self->w.fd, 9, SEC, TIMERWHEEL_EXCL));
	close(plain);
}

/* Garbage in an entry is ignored: the timer fires at the deadline of the last call. */
TEST_F(one, nonsense)
{
	static const __u64 words[] = { 0, ~0ULL, 1, 2, 3, 0x123456789abcdef0 };
	unsigned int i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
		ASSERT_EQ(TIMERWHEEL_WAS_PARKED,
			  i ? tw_move1(self->w.fd, 7, 100 * MSEC, 0) : TIMERWHEEL_WAS_PARKED);
		atomic_store(self->h.entry, words[i]);
		EXPECT_EQ(0, tw_advance(self->w.fd, 0, 99 * MSEC));
		EXPECT_NO_EVENT();
		EXPECT_EQ(1, tw_advance(self->w.fd, 0, 3 * MSEC));
		EXPECT_EVENT(i * 102 * MSEC + 100 * MSEC);
		EXPECT_EQ(FIRED, state_now(&self->h));
	}
}

/*
 * An entry cannot make a timer earlier: it fires, or is parked, at the latest deadline that the
 * kernel has set or read.
 */
TEST_F(one, lowered)
{
	__u64 own = self->h.generation;

	/* set by a call that left the timer in its slot */
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->w.fd, 7, 300 * MSEC, TIMERWHEEL_ABS));
	atomic_store(self->h.entry, unit_up(&self->h, 50 * MSEC) | own | ARMED);
	EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, 299 * MSEC));
	EXPECT_NO_EVENT();
	EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, 302 * MSEC));
	EXPECT_EVENT(300 * MSEC);
	/* read at a visit */
	ASSERT_EQ(TIMERWHEEL_WAS_PARKED, tw_move1(self->w.fd, 7, 400 * MSEC, TIMERWHEEL_ABS));
	EXPECT_EQ(ARMED, arm(&self->h, 600 * MSEC, true));
	EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, 450 * MSEC));
	atomic_store(self->h.entry, unit_up(&self->h, 500 * MSEC) | own | ARMED);
	EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, 599 * MSEC));
	EXPECT_NO_EVENT();
	EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, 602 * MSEC));
	EXPECT_EVENT(600 * MSEC);
	/* cancelled */
	ASSERT_EQ(TIMERWHEEL_WAS_PARKED, tw_move1(self->w.fd, 7, 700 * MSEC, TIMERWHEEL_ABS));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->w.fd, 7, 900 * MSEC, TIMERWHEEL_ABS));
	atomic_store(self->h.entry, own | CANCELLED);
	EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, 899 * MSEC));
	EXPECT_EQ(0, parked(self->w.fd));
	EXPECT_EQ(CANCELLED, arm(&self->h, HOUR, true));
	EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, 902 * MSEC));
	EXPECT_EQ(PARKED, state_now(&self->h));
	EXPECT_EQ(1, parked(self->w.fd));
}

/* Bring timer 7 into a state; FIRED: its event was delivered */
static bool bring(struct wheel *w, struct timerwheel_ring *ring, const struct handle *h,
		  enum state state)
{
	struct timerwheel_event ev;

	if (tw_move1(w->fd, 7, 100 * MSEC, 0) < 0)
		return false;
	if (state == CANCELLED || state == PARKED)
		cancel(h);
	if (state >= PARKED)
		tw_advance(w->fd, 0, 200 * MSEC);
	if (state == FIRED && take(w, ring, &ev) != 1)
		return false;
	return state_now(h) == state;
}

/* MATCH compares the value in each state. If it differs, neither timer nor entry changes. */
TEST_F(one, match)
{
	const __u64 value = ~7ULL;
	enum state state;
	__u64 before;
	int was;

	for (state = CANCELLED; state <= FIRED; state++) {
		was = state == ARMED ? TIMERWHEEL_WAS_PENDING : TIMERWHEEL_WAS_PARKED;
		ASSERT_TRUE(bring(&self->w, self->ring, &self->h, state));
		before = atomic_load(self->h.entry);
		EXPECT_EQ(-ESTALE, tw_move1_match(self->w.fd, 7, MSEC, 5, 0));
		EXPECT_EQ(-ESTALE, tw_move1_match(self->w.fd, 7, MSEC, 5, TIMERWHEEL_EXCL));
		EXPECT_EQ(-ESTALE, tw_add1_match(self->w.fd, 7, 1, MSEC, 5, 0));
		EXPECT_EQ(-ESTALE, tw_remove1_match(self->w.fd, 7, 5));
		EXPECT_EQ(before, atomic_load(self->h.entry));
		EXPECT_EQ(state >= PARKED, parked(self->w.fd));
		/* as without MATCH */
		EXPECT_EQ(was, tw_move1_match(self->w.fd, 7, SEC, value, 0));
		EXPECT_EQ(ARMED, state_now(&self->h));
		ASSERT_TRUE(bring(&self->w, self->ring, &self->h, state));
		EXPECT_EQ(state == ARMED ? -EEXIST : was,
			  tw_move1_match(self->w.fd, 7, SEC, value, TIMERWHEEL_EXCL));
		ASSERT_TRUE(bring(&self->w, self->ring, &self->h, state));
		EXPECT_EQ(was, tw_add1_match(self->w.fd, 7, value, SEC, value, 0));
		EXPECT_EQ(ARMED, state_now(&self->h));
		ASSERT_TRUE(bring(&self->w, self->ring, &self->h, state));
		EXPECT_EQ(was, tw_remove1_match(self->w.fd, 7, value));
		EXPECT_EQ(-ENOENT, tw_move1_match(self->w.fd, 7, SEC, value, 0));
		EXPECT_EQ(-ENOENT, tw_add1_match(self->w.fd, 7, value, SEC, value, 0));
		EXPECT_EQ(-ENOENT, tw_remove1_match(self->w.fd, 7, value));
		EXPECT_EQ(0, parked(self->w.fd));
		ASSERT_EQ(0, add(&self->w, 7, SEC, 0, 0, &self->h));
	}
}

/* A monitor reads delivered events, and none of armings that were cancelled or withdrawn. */
TEST_F(one, monitor)
{
	struct timerwheel_monitor ask = {
		.size = sizeof(ask), .flags = TIMERWHEEL_MONITOR_NONBLOCK,
	};
	struct timerwheel_event ev[3], copy[4];
	int mon = dev_ioctl(self->w.fd, TIMERWHEEL_IOC_MONITOR, &ask), n = 0;

	ASSERT_LE(0, mon);
	/* refreshed, then fired */
	EXPECT_EQ(ARMED, arm(&self->h, 200 * MSEC, true));
	EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, 250 * MSEC));
	EXPECT_EQ(variant->ring ? 1 : -EAGAIN, dev_read(mon, copy, 1));
	ASSERT_EQ(1, take(&self->w, self->ring, &ev[n++]));
	/* cancelled, and parked */
	ASSERT_TRUE(bring(&self->w, self->ring, &self->h, PARKED));
	if (!variant->ring) {
		ASSERT_EQ(1, dev_read(mon, copy, 4));
		/* due, and withdrawn */
		EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_move1(self->w.fd, 7, 0, 0));
		EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_move1(self->w.fd, 7, SEC, 0));
	}
	EXPECT_EQ(0, memcmp(ev, copy, sizeof(ev[0])));
	EXPECT_EQ(-EAGAIN, dev_read(mon, copy, 1));
	/* armed by a call, cancelled, armed again in memory; the linger ends without an event */
	EXPECT_LE(TIMERWHEEL_WAS_PENDING, add(&self->w, 7, 10 * MSEC, 0, 20 * MSEC, &self->h));
	EXPECT_EQ(ARMED, cancel(&self->h));
	EXPECT_EQ(CANCELLED, arm(&self->h, 600 * MSEC, false));
	EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, 700 * MSEC));
	ASSERT_EQ(1, take(&self->w, self->ring, &ev[n++]));
	EXPECT_EQ(unit_up(&self->h, 600 * MSEC), ev[1].deadline);
	EXPECT_EQ(0, tw_advance(self->w.fd, 0, SEC));
	EXPECT_EQ(PARKED, state_now(&self->h));
	ASSERT_EQ(1, dev_read(mon, copy, 4));
	EXPECT_EQ(0, memcmp(&ev[1], copy, sizeof(ev[1])));
	close(mon);
}

/* --- Exact times: the MANUAL clock, slack --------------------------------------------- */

/* A multiple of all units, so that deadlines need not be rounded */
#define EXACT_TICK	1048576ULL

FIXTURE(exact) {
	struct wheel w;
	struct handle h[8];
};

FIXTURE_SETUP(exact)
{
	struct timerwheel_setup setup = {
		.clock = TIMERWHEEL_CLOCK_MANUAL, .tick = EXACT_TICK,
	};
	int i;

	ASSERT_EQ(0, wheel_open(&self->w, &setup));
	ASSERT_EQ(0, EXACT_TICK & self->w.mask);
	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, add(&self->w, i, 100 * EXACT_TICK, 0, 0, &self->h[i]));
}

FIXTURE_TEARDOWN(exact)
{
	EXPECT_TRUE(balanced(self->w.fd));
	wheel_close(&self->w);
}

/* Fired, and parked, exactly at the deadline in the table: not a nanosecond earlier */
TEST_F(exact, at_the_deadline)
{
	const __u64 at = 150 * EXACT_TICK;
	struct timerwheel_event ev[8];
	int i;

	for (i = 0; i < 8; i++)
		EXPECT_EQ(ARMED, arm(&self->h[i], at, true));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(ARMED, cancel(&self->h[i]));
	EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, at - 1));
	EXPECT_EQ(0, parked(self->w.fd));
	for (i = 0; i < 8; i++)
		EXPECT_EQ(i < 4 ? CANCELLED : ARMED, state_now(&self->h[i]));
	/* at the last moment */
	EXPECT_EQ(CANCELLED, arm(&self->h[0], at, false));
	EXPECT_EQ(ARMED, cancel(&self->h[7]));
	EXPECT_EQ(4, tw_advance(self->w.fd, 0, 1));
	EXPECT_EQ(4, parked(self->w.fd));
	for (i = 0; i < 8; i++)
		EXPECT_EQ(i == 0 || (i > 3 && i < 7) ? FIRED : PARKED, state_now(&self->h[i]));
	ASSERT_EQ(4, dev_read(self->w.fd, ev, 8));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(at, ev[i].deadline);
		EXPECT_EQ(at, ev[i].fired);
	}
}

/* Near the largest time the deadline that an entry can hold may have passed: it fires at once. */
TEST_F(exact, end_of_time)
{
	struct timerwheel_event ev[10];
	struct handle h;

	ASSERT_EQ(8, tw_advance(self->w.fd, TIMERWHEEL_ABS, TIMERWHEEL_TIME_MAX - 1));
	ASSERT_EQ(8, dev_read(self->w.fd, ev, 10));
	ASSERT_EQ(0, add(&self->w, 8, TIMERWHEEL_TIME_MAX, TIMERWHEEL_ABS, 0, &h));
	EXPECT_EQ(FIRED, state_now(&h));
	EXPECT_EQ(FIRED, cancel(&h));
	ASSERT_EQ(1, dev_read(self->w.fd, ev, 10));
	EXPECT_EQ(8, ev[0].key);
}

/*
 * The same by ADD and MOVE of a pending timer: its linger ends later in this tick. It must not stay
 * in its slot.
 */
TEST_F(exact, end_of_time_pending)
{
	struct timerwheel_event ev[10];
	struct handle h;

	ASSERT_EQ(8, tw_advance(self->w.fd, TIMERWHEEL_ABS, TIMERWHEEL_TIME_MAX - 1));
	ASSERT_EQ(8, dev_read(self->w.fd, ev, 10));
	ASSERT_EQ(0, add(&self->w, 8, 0, TIMERWHEEL_ABS, SEC, &h));
	ASSERT_EQ(1, dev_read(self->w.fd, ev, 10));
	ASSERT_EQ(CANCELLED, state_now(&h));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED,
		  tw_move1(self->w.fd, 8, TIMERWHEEL_TIME_MAX, TIMERWHEEL_ABS));
	EXPECT_EQ(FIRED, state_now(&h));
	ASSERT_EQ(1, dev_read(self->w.fd, ev, 10));
	ASSERT_EQ(CANCELLED, state_now(&h));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED,
		  add(&self->w, 8, TIMERWHEEL_TIME_MAX, TIMERWHEEL_ABS, SEC, &h));
	EXPECT_EQ(FIRED, state_now(&h));
	EXPECT_EQ(1, dev_read(self->w.fd, ev, 10));
}

/* One ADVANCE over many ticks: each timer ends at its own tick, in order. */
TEST_F(exact, in_order)
{
	/* deadline of each, in ticks; negative: cancelled */
	static const int at[] = { 700, -100, 300, 65536, -400, 100, 1200, -70000 };
	static const int order[] = { 5, 2, 0, 6, 3 };
	struct timerwheel_event ev[8];
	int i;

	for (i = 0; i < 8; i++) {
		EXPECT_EQ(ARMED, arm(&self->h[i], abs(at[i]) * EXACT_TICK, false));
		if (at[i] < 0)
			EXPECT_EQ(ARMED, cancel(&self->h[i]));
	}
	EXPECT_EQ(5, tw_advance(self->w.fd, TIMERWHEEL_ABS, 66000 * EXACT_TICK));
	EXPECT_EQ(2, parked(self->w.fd));
	EXPECT_EQ(CANCELLED, state_now(&self->h[7]));
	ASSERT_EQ(5, dev_read(self->w.fd, ev, 8));
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(order[i], ev[i].key);
		EXPECT_EQ(at[order[i]] * EXACT_TICK, ev[i].deadline);
		EXPECT_EQ(at[order[i]] * EXACT_TICK, ev[i].fired);
	}
}

/* A linger is counted from the delivery, and ends exactly then. */
TEST_F(exact, linger)
{
	struct timerwheel_event ev[8];

	ASSERT_EQ(TIMERWHEEL_WAS_PENDING,
		  add(&self->w, 0, 50 * EXACT_TICK, TIMERWHEEL_ABS, 10 * EXACT_TICK, &self->h[0]));
	EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, 60 * EXACT_TICK));
	EXPECT_EQ(FIRED, state_now(&self->h[0]));
	ASSERT_EQ(1, dev_read(self->w.fd, ev, 8));
	EXPECT_EQ(70 * EXACT_TICK | self->h[0].generation, atomic_load(self->h[0].entry));
	EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, 70 * EXACT_TICK - 1));
	EXPECT_EQ(TOO_EARLY, arm(&self->h[0], 69 * EXACT_TICK, false));
	EXPECT_EQ(CANCELLED, arm(&self->h[0], 70 * EXACT_TICK, false));
	EXPECT_EQ(1, tw_advance(self->w.fd, 0, 1));
	ASSERT_EQ(1, dev_read(self->w.fd, ev, 8));
	EXPECT_EQ(70 * EXACT_TICK, ev[0].fired);
	EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, 80 * EXACT_TICK - 1));
	EXPECT_EQ(CANCELLED, state_now(&self->h[0]));
	EXPECT_EQ(0, tw_advance(self->w.fd, 0, 1));
	EXPECT_EQ(PARKED, state_now(&self->h[0]));
}

static int add_slack(const struct wheel *w, __u64 key, __u64 deadline, __u64 slack,
		     struct handle *h)
{
	struct timerwheel_add elem = {
		.key = key, .value = ~key, .deadline = deadline, .slack = slack,
		.flags = TIMERWHEEL_ABS | TIMERWHEEL_SLACK,
	};
	int ret = tw_add_elem(w->fd, &elem);

	*h = handle_of(w, &elem);
	return ret;
}

/* Timers that are armed in the table keep their slack, and share a tick with others. */
TEST_F(exact, slack_is_shared)
{
	const __u64 slack = 100 * EXACT_TICK;
	struct timerwheel_event ev[8];
	struct timerwheel_entry ent;
	int i, n;

	for (i = 0; i < 8; i++)
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING,
			  add_slack(&self->w, i, (30 + i) * EXACT_TICK, slack, &self->h[i]));
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(ARMED, cancel(&self->h[i]));
		EXPECT_EQ(CANCELLED, arm(&self->h[i], (1000 + i) * EXACT_TICK, false));
	}
	/* the tick with most zeros within all their slacks is 1024 */
	EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, 1024 * EXACT_TICK - 1));
	EXPECT_EQ(8, tw_advance(self->w.fd, 0, 1));
	ASSERT_EQ(8, dev_read(self->w.fd, ev, 8));
	for (i = 0; i < 8; i++) {
		EXPECT_EQ((1000 + ev[i].key) * EXACT_TICK, ev[i].deadline);
		EXPECT_EQ(1024 * EXACT_TICK, ev[i].fired);
		EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_get1(self->w.fd, i, &ent));
		EXPECT_EQ(slack, ent.slack);
	}
	/* MOVE of a parked timer also keeps it; cancelled timers are parked together. */
	for (i = 0; i < 8; i++)
		EXPECT_EQ(TIMERWHEEL_WAS_PARKED,
			  tw_move1(self->w.fd, i, (2000 + i) * EXACT_TICK, TIMERWHEEL_ABS));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(ARMED, cancel(&self->h[i]));
	n = tw_advance(self->w.fd, TIMERWHEEL_ABS, 2048 * EXACT_TICK - 1);
	EXPECT_EQ(0, n);
	EXPECT_EQ(0, parked(self->w.fd));
	EXPECT_EQ(4, tw_advance(self->w.fd, 0, 1));
	EXPECT_EQ(4, parked(self->w.fd));
	ASSERT_EQ(4, dev_read(self->w.fd, ev, 8));
}

#define SLACK_TIMERS	200

/* A timer armed in memory fires not before its deadline, and not after deadline and slack */
TEST_F(exact, slack_bounds)
{
	static struct handle h[SLACK_TIMERS];
	__u64 seed = tw_seed(), slack[SLACK_TIMERS], at[SLACK_TIMERS] = {}, want, now;
	static struct timerwheel_event ev[SLACK_TIMERS];
	int i, k, n, fired = 0;

	TH_LOG("TW_SEED=%llu", (unsigned long long)seed);
	for (i = 0; i < SLACK_TIMERS; i++) {
		slack[i] = tw_rand(&seed) % 300;
		at[i] = 1 + tw_rand(&seed) % 500;
		ASSERT_EQ(0, add_slack(&self->w, 100 + i, at[i] * EXACT_TICK,
				       slack[i] * EXACT_TICK, &h[i]));
	}
	for (i = 0; i < 8; i++)
		EXPECT_EQ(ARMED, cancel(&self->h[i]));
	for (now = 1; now < 2000; now++) {
		for (k = 0; now < 1000 && k < 4; k++) {
			i = tw_rand(&seed) % SLACK_TIMERS;
			want = now + tw_rand(&seed) % 400;
			if (tw_rand(&seed) % 2)
				cancel(&h[i]);
			if (arm(&h[i], want * EXACT_TICK, false) <= ARMED)
				at[i] = want;
			else if (state_now(&h[i]) == CANCELLED)
				ASSERT_EQ(CANCELLED, arm(&h[i], at[i] * EXACT_TICK, false));
		}
		ASSERT_LE(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, now * EXACT_TICK));
		for (n = dev_read(self->w.fd, ev, SLACK_TIMERS); n > 0; n--) {
			i = ev[n - 1].key - 100;
			ASSERT_TRUE(i >= 0 && i < SLACK_TIMERS);
			EXPECT_EQ(at[i] * EXACT_TICK, ev[n - 1].deadline);
			EXPECT_EQ(now * EXACT_TICK, ev[n - 1].fired);
			EXPECT_LE(at[i], now);
			EXPECT_GE(at[i] + slack[i], now);
			EXPECT_EQ(FIRED, state_now(&h[i]));
			fired++;
		}
	}
	EXPECT_EQ(SLACK_TIMERS, fired);
}

/* --- CLOCK_REALTIME is set -------------------------------------------------------------- */

FIXTURE(set) {
	struct wheel w;
	struct handle h[16];
	__u64 real, mono;		/* when the test began; real 0: it cannot run */
};

FIXTURE_SETUP(set)
{
	struct timerwheel_setup setup = { .clock = TIMERWHEEL_CLOCK_REALTIME };

	ASSERT_EQ(0, wheel_open(&self->w, &setup));
	self->mono = tw_now(CLOCK_MONOTONIC);
	self->real = tw_now(CLOCK_REALTIME);
	if (tw_set_realtime(self->real)) {
		self->real = 0;
		SKIP(return, "may not set the clock");
	}
}

FIXTURE_TEARDOWN(set)
{
	EXPECT_TRUE(balanced(self->w.fd));
	if (self->real)
		tw_set_realtime(self->real + tw_now(CLOCK_MONOTONIC) - self->mono);
	wheel_close(&self->w);
}

/* Wait until the kernel has brought a timer into a state. */
static bool becomes(const struct handle *h, enum state state)
{
	int i;

	for (i = 0; i < LONG_MS && state_now(h) != state; i++)
		tw_sleep(MSEC);
	return state_now(h) == state;
}

/* The next event is for @key and for @at, rounded up, and is not early. */
static bool comes(const struct wheel *w, __u64 key, const struct handle *h, __u64 at)
{
	struct timerwheel_event ev;

	return dev_poll(w->fd, LONG_MS) == POLLIN && dev_read(w->fd, &ev, 1) == 1 &&
	       ev.key == key && ev.deadline == unit_up(h, at) && ev.fired >= ev.deadline;
}

/*
 * Cancel timer @key, which was armed for @delay at @since or later. If a slow machine is too late,
 * the event is read and the timer armed again.
 */
static bool cancel_in_time(const struct wheel *w, __u64 key, struct handle *h, __u64 delay,
			   __u64 since)
{
	struct timerwheel_event ev;

	while (cancel(h) != ARMED) {
		if (tw_now(CLOCK_MONOTONIC) < since + delay ||
		    dev_poll(w->fd, LONG_MS) != POLLIN || dev_read(w->fd, &ev, 1) != 1 ||
		    ev.key != key)
			return false;
		since = tw_now(CLOCK_MONOTONIC);
		if (tw_move1(w->fd, key, delay, 0) != TIMERWHEEL_WAS_PARKED)
			return false;
	}
	return true;
}

/* Timers in all states: 0 armed and 1 cancelled, both for @at; 2 parked, 3 fired and delivered */
static bool all_states(const struct wheel *w, struct handle *h, __u64 at)
{
	struct timerwheel_event ev;
	__u64 since;
	int i;

	for (i = 0; i < 4; i++) {
		since = tw_now(CLOCK_MONOTONIC);
		if (add(w, i, i < 2 ? HOUR : 100 * MSEC, 0, 0, &h[i]))
			return false;
		if (i == 2 && !cancel_in_time(w, i, &h[i], 100 * MSEC, since))
			return false;
	}
	return arm(&h[0], at, true) == ARMED && arm(&h[1], at, false) == ARMED &&
	       cancel(&h[1]) == ARMED && becomes(&h[2], PARKED) &&
	       dev_poll(w->fd, LONG_MS) == POLLIN && dev_read(w->fd, &ev, 1) == 1 &&
	       ev.key == 3 && state_now(&h[3]) == FIRED;
}

/* Set forward beyond the deadlines: armed timers fire, cancelled timers are parked. */
TEST_F(set, forward)
{
	__u64 at = self->real + 2 * HOUR;

	if (!self->real)
		return;
	ASSERT_TRUE(all_states(&self->w, self->h, at));
	/* beyond the slots, but not beyond the deadlines in the table */
	ASSERT_EQ(0, tw_set_realtime(at - HOUR / 2));
	EXPECT_EQ(0, dev_poll(self->w.fd, 200));
	EXPECT_EQ(ARMED, state_now(&self->h[0]));
	EXPECT_EQ(CANCELLED, state_now(&self->h[1]));
	ASSERT_EQ(0, tw_set_realtime(at + SEC));
	EXPECT_TRUE(comes(&self->w, 0, &self->h[0], at));
	EXPECT_TRUE(becomes(&self->h[1], PARKED));
	EXPECT_EQ(PARKED, state_now(&self->h[2]));
	EXPECT_EQ(FIRED, state_now(&self->h[3]));
	EXPECT_EQ(0, dev_poll(self->w.fd, 50));
	EXPECT_EQ(4, parked(self->w.fd));
}

/*
 * The clock is set back: deadlines are absolute, so the entries stay, and armed or cancelled timers
 * wait until the clock has reached them again. An earlier time needs MOVE. Timers that have ended
 * stay ended.
 */
TEST_F(set, back)
{
	__u64 at = self->real + 2 * HOUR, now = self->real - 9 * HOUR, entry[4], since;
	struct timerwheel_event ev;
	struct timerwheel_entry ent;
	int i;

	if (!self->real)
		return;
	ASSERT_TRUE(all_states(&self->w, self->h, at));
	for (i = 0; i < 4; i++)
		entry[i] = atomic_load(self->h[i].entry);
	ASSERT_EQ(0, tw_set_realtime(now));
	EXPECT_EQ(0, dev_poll(self->w.fd, 200));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(entry[i], atomic_load(self->h[i].entry));
		EXPECT_EQ(i ? TIMERWHEEL_WAS_PARKED : TIMERWHEEL_WAS_PENDING,
			  tw_get1(self->w.fd, i, &ent));
		if (i < 2) {
			EXPECT_EQ(unit_up(&self->h[i], at), ent.deadline);
			EXPECT_LT(10 * HOUR, ent.left);
		}
	}
	EXPECT_EQ(TOO_EARLY, arm(&self->h[0], now + HOUR, false));
	EXPECT_EQ(TOO_EARLY, arm(&self->h[1], now + HOUR, false));
	EXPECT_EQ(PARKED, arm(&self->h[2], at, false));
	EXPECT_EQ(FIRED, arm(&self->h[3], at, false));
	for (i = 2; i < 4; i++) {
		EXPECT_EQ(TIMERWHEEL_WAS_PARKED,
			  tw_move1(self->w.fd, i, now + MINUTE, TIMERWHEEL_ABS));
		EXPECT_EQ(ARMED, state_now(&self->h[i]));
	}
	/* near enough to be visited instead of cascaded to its new deadline */
	since = tw_now(CLOCK_MONOTONIC);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->w.fd, 0, 400 * MSEC, 0));
	while (arm(&self->h[0], now + HOUR, true) != ARMED) {
		/* A slow machine was too late. */
		ASSERT_LE(since + 400 * MSEC, tw_now(CLOCK_MONOTONIC));
		ASSERT_EQ(POLLIN, dev_poll(self->w.fd, LONG_MS));
		ASSERT_EQ(1, dev_read(self->w.fd, &ev, 1));
		ASSERT_EQ(0, ev.key);
		since = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(TIMERWHEEL_WAS_PARKED, tw_move1(self->w.fd, 0, 400 * MSEC, 0));
	}
	EXPECT_EQ(0, dev_poll(self->w.fd, 50));
	/* two timers are due at this time, and 0 is visited; 1 waits for its old deadline */
	ASSERT_EQ(0, tw_set_realtime(now + MINUTE));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(POLLIN, dev_poll(self->w.fd, LONG_MS));
		ASSERT_EQ(1, dev_read(self->w.fd, &ev, 1));
		EXPECT_LE(2, ev.key);
		EXPECT_EQ(unit_up(&self->h[0], now + MINUTE), ev.deadline);
		EXPECT_LE(ev.deadline, ev.fired);
	}
	EXPECT_EQ(0, dev_poll(self->w.fd, 50));
	EXPECT_EQ(ARMED, state_now(&self->h[0]));
	ASSERT_EQ(0, tw_set_realtime(now + HOUR + SEC));
	EXPECT_TRUE(comes(&self->w, 0, &self->h[0], now + HOUR));
	EXPECT_EQ(CANCELLED, arm(&self->h[1], at, false));
	EXPECT_EQ(0, dev_poll(self->w.fd, 50));
	ASSERT_EQ(0, tw_set_realtime(at + SEC));
	EXPECT_TRUE(comes(&self->w, 1, &self->h[1], at));
	EXPECT_EQ(0, dev_poll(self->w.fd, 50));
}

/*
 * Set back while an event waits: it is still delivered, and the linger counts from the clock's time
 * at delivery.
 */
TEST_F(set, back_while_due)
{
	__u64 now = self->real - HOUR, at, entry;
	struct handle *h = &self->h[0];

	if (!self->real)
		return;
	at = tw_now(CLOCK_REALTIME) + 20 * MSEC;
	ASSERT_EQ(0, add(&self->w, 0, at, TIMERWHEEL_ABS, 2 * HOUR, h));
	ASSERT_TRUE(becomes(h, FIRED));
	ASSERT_EQ(0, tw_set_realtime(now));
	EXPECT_TRUE(comes(&self->w, 0, h, at));
	entry = atomic_load(h->entry);
	EXPECT_EQ(CANCELLED, state_of(h, entry));
	EXPECT_LE(now + 2 * HOUR, entry & ~h->mask);
	EXPECT_GE(unit_up(h, tw_now(CLOCK_REALTIME) + 2 * HOUR), entry & ~h->mask);
	EXPECT_EQ(CANCELLED, arm(h, now + 3 * HOUR, false));
	ASSERT_EQ(0, tw_set_realtime(now + 2 * HOUR + MINUTE));
	EXPECT_EQ(0, dev_poll(self->w.fd, 50));
	EXPECT_EQ(ARMED, state_now(h));
	ASSERT_EQ(0, tw_set_realtime(now + 3 * HOUR + SEC));
	EXPECT_TRUE(comes(&self->w, 0, h, now + 3 * HOUR));
}

/* Set back and forth at random, while timers are armed, cancelled and moved: each ends once. */
TEST_F_TIMEOUT(set, at_random, 300)
{
	__u64 seed = tw_seed(), at[16] = {}, now, want;		/* at: 0: it is not armed */
	struct timerwheel_event ev[16];
	int i, k, n, round, events = 0;
	enum state was;

	if (!self->real)
		return;
	TH_LOG("TW_SEED=%llu", (unsigned long long)seed);
	for (i = 0; i < 16; i++) {
		at[i] = self->real + 10 * SEC + i * SEC;
		ASSERT_EQ(0, add(&self->w, i, at[i], TIMERWHEEL_ABS, 0, &self->h[i]));
		at[i] = unit_up(&self->h[i], at[i]);
	}
	for (round = 0; round < 300; round++) {
		now = tw_now(CLOCK_REALTIME);
		for (k = 0; k < 8; k++) {
			i = tw_rand(&seed) % 16;
			want = unit_up(&self->h[i], now + tw_rand(&seed) % (20 * SEC));
			switch (tw_rand(&seed) % 4) {
			case 0:
				if (cancel(&self->h[i]) == ARMED)
					at[i] = 0;
				break;
			case 1:
				/* if it has fired its event is withdrawn */
				ASSERT_LT(0, tw_move1(self->w.fd, i, want, TIMERWHEEL_ABS));
				at[i] = want;
				break;
			default:
				was = arm(&self->h[i], want, false);
				if (was == CANCELLED || was == ARMED)
					at[i] = want;
			}
		}
		ASSERT_EQ(0, tw_set_realtime(round < 299 ? self->real + tw_rand(&seed) % MINUTE :
							   self->real + HOUR));
		n = round < 299 ? tw_rand(&seed) % 4 ? 0 : 5 : LONG_MS;
		while (dev_poll(self->w.fd, n) == POLLIN) {
			k = dev_read(self->w.fd, ev, 16);
			ASSERT_LT(0, k);
			while (k--) {
				ASSERT_GT(16, ev[k].key);
				EXPECT_NE(0, ev[k].deadline);
				EXPECT_EQ(at[ev[k].key], ev[k].deadline);
				EXPECT_LE(ev[k].deadline, ev[k].fired);
				at[ev[k].key] = 0;
				events++;
			}
			for (i = 0, k = 0; i < 16; i++)
				k += at[i] != 0;
			if (!k)
				break;
		}
	}
	for (i = 0; i < 16; i++) {
		EXPECT_EQ(0, at[i]);
		EXPECT_TRUE(becomes(&self->h[i], state_now(&self->h[i]) == FIRED ? FIRED : PARKED));
	}
	EXPECT_EQ(16, parked(self->w.fd));
	EXPECT_LT(16, events);
}

/* --- Time namespaces ------------------------------------------------------------------- */

FIXTURE(namespace) {
	bool there;			/* children are in another time namespace */
};

FIXTURE_VARIANT(namespace) {
	const char *offset;
	__s64 shift;			/* its clock minus ours */
};

FIXTURE_VARIANT_ADD(namespace, ahead) { "monotonic 100000 0\n", 100000 * (__s64)SEC };
FIXTURE_VARIANT_ADD(namespace, behind) { "monotonic -2 0\n", -2 * (__s64)SEC };

FIXTURE_SETUP(namespace)
{
	/* A clock does not go below 0. */
	tw_sleep_until(CLOCK_MONOTONIC, 3 * SEC);
	self->there = !unshare(CLONE_NEWTIME);
	if (!self->there)
		SKIP(return, "no time namespaces");
	ASSERT_EQ(0, tw_file_write("/proc/self/timens_offsets", variant->offset));
}

FIXTURE_TEARDOWN(namespace)
{
}

/* The event of timer 7 comes for @at, rounded up, on the caller's clock. */
static bool comes_here(const struct wheel *w, const struct handle *h, __u64 at)
{
	return comes(w, 7, h, at) && tw_now(CLOCK_MONOTONIC) >= at;
}

/* In a child, which is in the other namespace and makes the wheel and its table. */
static int made_there(__s64 shift)
{
	struct timerwheel_setup setup = {};
	__u64 now = tw_now(CLOCK_MONOTONIC);
	struct timerwheel_event ev;
	struct timerwheel_entry ent;
	struct handle h;
	struct wheel w;

	if (shift > 0 && now < (__u64)shift)
		return 1;
	if (wheel_open(&w, &setup) || add(&w, 7, now + HOUR, TIMERWHEEL_ABS, 0, &h))
		return 2;
	if (atomic_load(h.entry) != (unit_up(&h, now + HOUR) | h.generation | ARMED))
		return 3;
	if (tw_move1(w.fd, 7, now + SEC, TIMERWHEEL_ABS) != TIMERWHEEL_WAS_PENDING)
		return 4;
	if (arm(&h, now + 1200 * MSEC, true) != ARMED)
		return 5;
	if (tw_get1(w.fd, 7, &ent) != TIMERWHEEL_WAS_PENDING ||
	    ent.deadline != unit_up(&h, now + 1200 * MSEC))
		return 6;
	if (!comes_here(&w, &h, now + 1200 * MSEC) ||
	    atomic_load(h.entry) != (unit_up(&h, now + 1200 * MSEC) | h.generation | FIRED))
		return 7;
	/* a time before the origin of either clock */
	if (tw_move1(w.fd, 7, -(__u64)(1000000 * SEC), 0) != TIMERWHEEL_WAS_PARKED ||
	    atomic_load(h.entry) != (unit_up(&h, shift > 0 ? shift : 0) | h.generation | FIRED) ||
	    dev_poll(w.fd, LONG_MS) != POLLIN)
		return 8;
	/* the largest time */
	if (tw_move1(w.fd, 7, TIMERWHEEL_TIME_MAX, TIMERWHEEL_ABS) != TIMERWHEEL_WAS_DUE ||
	    state_now(&h) != ARMED || (atomic_load(h.entry) | h.mask) < TIMERWHEEL_TIME_MAX / 2)
		return 9;
	if (cancel(&h) != ARMED || dev_poll(w.fd, 50))
		return 10;
	/* with a linger: its end is also a time of the namespace */
	now = tw_now(CLOCK_MONOTONIC);
	if (add(&w, 7, now, TIMERWHEEL_ABS, HOUR, &h) != TIMERWHEEL_WAS_PARKED ||
	    dev_read(w.fd, &ev, 1) != 1 || ev.deadline != now)
		return 11;
	if (arm(&h, now + HOUR / 2, false) != TOO_EARLY || arm(&h, now + 2 * HOUR, false))
		return 12;
	return balanced(w.fd) ? 0 : 13;
}

/* The table has the times of the namespace in which the wheel was set up. */
TEST_F(namespace, made_there)
{
	pid_t pid;

	if (!self->there)
		return;
	pid = fork();
	if (!pid)
		_exit(made_there(variant->shift));
	EXPECT_EQ(0, tw_reap(pid));
}

/*
 * A child uses a wheel and a mapping of its parent, which is in the initial namespace: calls use
 * the times of the caller, and the table uses the times of its own namespace.
 */
static int inherited(const struct wheel *w, const struct handle *h, __s64 shift)
{
	__u64 now = tw_now(CLOCK_MONOTONIC), at = now + HOUR;
	struct timerwheel_entry ent;

	if (mmap(NULL, MAPPED, PROT_READ, MAP_SHARED, w->fd, TIMERWHEEL_MMAP_DEADLINES) !=
	    MAP_FAILED || errno != EXDEV)
		return 1;
	if (tw_move1(w->fd, 7, at, TIMERWHEEL_ABS) != TIMERWHEEL_WAS_PENDING)
		return 2;
	if (atomic_load(h->entry) != (unit_up(h, at - shift) | h->generation | ARMED))
		return 3;
	if (tw_get1(w->fd, 7, &ent) != TIMERWHEEL_WAS_PENDING ||
	    ent.deadline != unit_up(h, at - shift) + shift)
		return 4;
	/* in the table with the owner's times */
	if (tw_move1(w->fd, 7, now + SEC, TIMERWHEEL_ABS) != TIMERWHEEL_WAS_PENDING ||
	    arm(h, now + 1200 * MSEC - shift, true) != ARMED)
		return 5;
	return 0;
}

TEST_F(namespace, inherited)
{
	struct timerwheel_setup setup = {};
	struct timerwheel_event ev;
	struct handle h;
	struct wheel w;
	__u64 entry;
	pid_t pid;

	if (!self->there)
		return;
	ASSERT_EQ(0, wheel_open(&w, &setup));
	ASSERT_EQ(0, add(&w, 7, 2 * HOUR, 0, 0, &h));
	pid = fork();
	if (!pid)
		_exit(inherited(&w, &h, variant->shift));
	ASSERT_EQ(0, tw_reap(pid));
	entry = atomic_load(h.entry);
	ASSERT_EQ(POLLIN, dev_poll(w.fd, LONG_MS));
	ASSERT_EQ(1, dev_read(w.fd, &ev, 1));
	EXPECT_EQ(entry & ~w.mask, ev.deadline);
	EXPECT_LE(ev.deadline, ev.fired);
	EXPECT_GE(tw_now(CLOCK_MONOTONIC), ev.fired);
	EXPECT_TRUE(balanced(w.fd));
	wheel_close(&w);
}

/* --- CPU hotplug ------------------------------------------------------------------------ */

/* How a timer of the second CPU got into its state, and what happens while the CPU is offline */
enum {
	STAYS_ARMED, STAYS_CANCELLED, IS_CANCELLED, IS_ARMED, IS_REFRESHED, IS_MOVED,
	PARKED_IS_MOVED, FIRED_IS_MOVED, PARKED_IS_REMOVED, FIRED_IS_REPLACED, KINDS,
};

#define OF_A_KIND	20
#define HOTPLUGGED	(KINDS * OF_A_KIND)

FIXTURE(hotplug) {
	const char *cannot;
	struct wheel w;
	struct handle h[HOTPLUGGED];
	__u64 at, later;
};

FIXTURE_VARIANT(hotplug) {
	bool returns;			/* the CPU comes back before the timers are due */
};

FIXTURE_VARIANT_ADD(hotplug, offline) { false };
FIXTURE_VARIANT_ADD(hotplug, returns) { true };

/* Arm timers on the second CPU. Half of them are parked or have fired by then. */
FIXTURE_SETUP(hotplug)
{
	struct timerwheel_setup setup = {};
	struct timerwheel_event ev;
	int i, kind, fired = 0;

	self->cannot = access("/sys/devices/system/cpu/cpu1/online", W_OK) || tw_pin(1) ?
		       "there is no CPU 1 that can go offline" : NULL;
	if (self->cannot)
		return;
	ASSERT_EQ(0, wheel_open(&self->w, &setup));
	for (i = 0; i < HOTPLUGGED; i++) {
		kind = i % KINDS;
		if (kind < PARKED_IS_MOVED)
			continue;
		ASSERT_EQ(0, add(&self->w, i, 0, TIMERWHEEL_ABS, 0, &self->h[i]));
		if (kind == PARKED_IS_MOVED || kind == PARKED_IS_REMOVED) {
			ASSERT_EQ(TIMERWHEEL_WAS_DUE, tw_move1(self->w.fd, i, 2 * SEC, 0));
			ASSERT_EQ(ARMED, cancel(&self->h[i]));
		} else {
			fired++;
		}
	}
	for (i = 0; i < fired; i++)
		ASSERT_EQ(1, dev_read(self->w.fd, &ev, 1));
	for (i = 0; i < HOTPLUGGED; i++) {
		kind = i % KINDS;
		if (kind == PARKED_IS_MOVED || kind == PARKED_IS_REMOVED)
			ASSERT_TRUE(becomes(&self->h[i], PARKED));
	}
	/* long enough for all steps until then, even on a busy machine */
	self->at = tw_now(CLOCK_MONOTONIC) + 8 * SEC;
	self->later = self->at + SEC;
	for (i = 0; i < HOTPLUGGED; i++) {
		kind = i % KINDS;
		if (kind >= PARKED_IS_MOVED)
			continue;
		ASSERT_EQ(0, add(&self->w, i, self->at, TIMERWHEEL_ABS, 0, &self->h[i]));
		if (kind == STAYS_CANCELLED || kind == IS_ARMED)
			ASSERT_EQ(ARMED, cancel(&self->h[i]));
	}
	ASSERT_EQ(0, tw_pin(0));
	ASSERT_EQ(0, tw_cpu_online(1, false));
}

FIXTURE_TEARDOWN(hotplug)
{
	if (self->cannot)
		return;
	tw_cpu_online(1, true);
	EXPECT_TRUE(balanced(self->w.fd));
	wheel_close(&self->w);
}

/*
 * While their CPU is offline, timers are armed, refreshed, cancelled and moved as before. Each
 * fires once, or is parked.
 */
TEST_F_TIMEOUT(hotplug, each_ends_once, 300)
{
	static struct timerwheel_event ev[HOTPLUGGED + 1];
	bool seen[HOTPLUGGED] = {};
	int i, kind, n, fires = 0;
	struct handle *h;
	__u64 at;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	for (i = 0; i < HOTPLUGGED; i++) {
		h = &self->h[i];
		switch (i % KINDS) {
		case IS_CANCELLED:
			EXPECT_EQ(ARMED, cancel(h));
			break;
		case IS_ARMED:
			EXPECT_EQ(CANCELLED, arm(h, self->later, false));
			break;
		case IS_REFRESHED:
			EXPECT_EQ(ARMED, arm(h, self->later, true));
			break;
		case IS_MOVED:
			EXPECT_EQ(TIMERWHEEL_WAS_PENDING,
				  tw_move1(self->w.fd, i, self->later, TIMERWHEEL_ABS));
			break;
		case PARKED_IS_MOVED:
		case FIRED_IS_MOVED:
			EXPECT_EQ(TIMERWHEEL_WAS_PARKED,
				  tw_move1(self->w.fd, i, self->later, TIMERWHEEL_ABS));
			break;
		case PARKED_IS_REMOVED:
			EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_remove1(self->w.fd, i));
			break;
		case FIRED_IS_REPLACED:
			EXPECT_EQ(TIMERWHEEL_WAS_PARKED,
				  add(&self->w, i, self->later, TIMERWHEEL_ABS, 0, h));
			break;
		}
		kind = i % KINDS;
		fires += kind != STAYS_CANCELLED && kind != IS_CANCELLED &&
			 kind != PARKED_IS_REMOVED;
	}
	EXPECT_EQ(0, parked(self->w.fd));
	EXPECT_TRUE(balanced(self->w.fd));
	if (variant->returns)
		ASSERT_EQ(0, tw_cpu_online(1, true));
	ASSERT_GT(self->at, tw_now(CLOCK_MONOTONIC));
	n = tw_read_all(self->w.fd, ev, fires, LONG_MS);
	ASSERT_EQ(fires, n);
	for (i = 0; i < n; i++) {
		ASSERT_GT(HOTPLUGGED, ev[i].key);
		EXPECT_FALSE(seen[ev[i].key]);
		seen[ev[i].key] = true;
		kind = ev[i].key % KINDS;
		at = unit_up(self->h, kind == STAYS_ARMED ? self->at : self->later);
		EXPECT_EQ(at, ev[i].deadline);
		EXPECT_LE(at, ev[i].fired);
	}
	for (i = 0; i < HOTPLUGGED; i++) {
		kind = i % KINDS;
		if (kind == STAYS_CANCELLED || kind == IS_CANCELLED) {
			EXPECT_TRUE(becomes(&self->h[i], PARKED));
		} else {
			EXPECT_EQ(kind == PARKED_IS_REMOVED ? GONE : FIRED,
				  state_now(&self->h[i]));
		}
	}
	EXPECT_EQ(0, dev_poll(self->w.fd, 50));
	EXPECT_EQ(HOTPLUGGED - OF_A_KIND, parked(self->w.fd));
}

/* --- Several processes -------------------------------------------------------------------- */

/*
 * A process that received the descriptor maps the table itself, and closes the descriptor. The
 * mapping stays. @h: handles of the sender, whose mapping has another address
 */
static int receiver(int sock, const struct handle *theirs)
{
	struct timerwheel_event ev;
	struct handle h[4];
	struct wheel w;
	int i;

	w.fd = tw_recv_fd(sock);
	if (w.fd < 0 || wheel_map(&w))
		return 1;
	for (i = 0; i < 4; i++) {
		h[i] = theirs[i];
		h[i].entry = w.table + (theirs[i].entry - theirs[0].entry) + 1;
	}
	if (cancel(&h[0]) != ARMED || arm(&h[1], 200 * MSEC, true) != ARMED)
		return 2;
	/* timers that the other process has ended */
	if (arm(&h[2], 200 * MSEC, false) != GONE || cancel(&h[2]) != GONE)
		return 3;
	if (cancel(&h[3]) != CANCELLED || arm(&h[3], 300 * MSEC, false) != CANCELLED)
		return 4;
	/* both take events */
	if (tw_advance(w.fd, TIMERWHEEL_ABS, 250 * MSEC) != 1 || dev_read(w.fd, &ev, 1) != 1 ||
	    ev.key != 1)
		return 5;
	close(w.fd);
	return cancel(&h[3]) == ARMED && arm(&h[3], 400 * MSEC, false) == CANCELLED ? 0 : 6;
}

/* The kernel and another process see the changes of one process in the table. */
TEST(two_processes)
{
	struct timerwheel_setup setup = { .clock = TIMERWHEEL_CLOCK_MANUAL };
	struct timerwheel_event ev;
	struct handle h[4];
	struct wheel w;
	int i, sock[2];
	pid_t pid;

	/* before the wheel is opened: the child inherits neither descriptor nor mapping */
	void *shared = tw_shared(sizeof(h));

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		char c;

		_exit(recv(sock[1], &c, 1, 0) == 1 ? receiver(sock[1], shared) : 9);
	}
	ASSERT_EQ(0, wheel_open(&w, &setup));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, add(&w, i, 100 * MSEC, 0, 0, &h[i]));
	ASSERT_EQ(w.table + 1, h[0].entry);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(w.fd, 2));
	EXPECT_EQ(ARMED, cancel(&h[3]));
	memcpy(shared, h, sizeof(h));
	ASSERT_EQ(1, send(sock[0], "", 1, 0));
	ASSERT_EQ(0, tw_send_fd(sock[0], w.fd));
	ASSERT_EQ(0, tw_reap(pid));
	EXPECT_EQ(PARKED, state_now(&h[0]));
	EXPECT_EQ(FIRED, state_now(&h[1]));
	EXPECT_EQ(0, tw_advance(w.fd, TIMERWHEEL_ABS, 399 * MSEC));
	EXPECT_EQ(ARMED, state_now(&h[3]));
	EXPECT_EQ(1, tw_advance(w.fd, TIMERWHEEL_ABS, 402 * MSEC));
	ASSERT_EQ(1, dev_read(w.fd, &ev, 1));
	EXPECT_EQ(3, ev.key);
	EXPECT_TRUE(balanced(w.fd));
	wheel_close(&w);
}

/*
 * A process is killed while it arms and cancels. The process that inherits the timers finds each in
 * a valid state, and each remaining arming ends once.
 */
TEST_F_TIMEOUT(exact, killed_while_it_arms, 300)
{
	struct timerwheel_event ev[8];
	enum state left[8];
	int i, round, fired;
	__u64 now = 0, at;
	pid_t pid;

	for (round = 0; round < 20; round++) {
		for (i = 0; i < 8; i++)
			ASSERT_LT(0, tw_move1(self->w.fd, i, 100 * EXACT_TICK, 0));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			for (i = 0;; i++) {
				arm(&self->h[i % 8], now + 100 * EXACT_TICK + i / 64 * EXACT_TICK,
				    false);
				if (i % 3)
					cancel(&self->h[i % 8]);
			}
		}
		tw_sleep((1 + round % 5) * MSEC);
		kill(pid, SIGKILL);
		ASSERT_EQ(1000 + SIGKILL, tw_reap(pid));
		EXPECT_EQ(0, parked(self->w.fd));
		for (i = 0, fired = 0; i < 8; i++) {
			left[i] = state_now(&self->h[i]);
			EXPECT_LE(left[i], ARMED);
			fired += left[i] == ARMED;
		}
		/* the deadlines show how far the process was */
		now = 0;
		for (i = 0; i < 8; i++) {
			at = atomic_load(self->h[i].entry) & ~self->w.mask;
			now = at > now ? at : now;
		}
		EXPECT_EQ(fired, tw_advance(self->w.fd, TIMERWHEEL_ABS, now));
		EXPECT_EQ(fired ?: -EAGAIN, dev_read(self->w.fd, ev, 8));
		for (i = 0; i < 8; i++)
			EXPECT_EQ(left[i] == ARMED ? FIRED : PARKED, state_now(&self->h[i]));
		EXPECT_EQ(8, parked(self->w.fd));
	}
}

/* A call against a program that continually arms and cancels the same timer */
enum { BY_MOVE, BY_MOVE_EXCL, BY_ADD, BY_REMOVE, BY_DRAIN };

FIXTURE(against) {
	struct wheel w;
	struct handle h;
	struct {
		atomic_uint generation;		/* of the timer now; its index stays */
		atomic_long armed, cancelled;
		atomic_bool stop;
	} *shared;
};

FIXTURE_VARIANT(against) {
	int call;
};

FIXTURE_VARIANT_ADD(against, move) { BY_MOVE };
FIXTURE_VARIANT_ADD(against, move_excl) { BY_MOVE_EXCL };
FIXTURE_VARIANT_ADD(against, add) { BY_ADD };
FIXTURE_VARIANT_ADD(against, remove) { BY_REMOVE };
FIXTURE_VARIANT_ADD(against, drain) { BY_DRAIN };

FIXTURE_SETUP(against)
{
	struct timerwheel_setup setup = { .clock = TIMERWHEEL_CLOCK_MANUAL };

	self->shared = tw_shared(sizeof(*self->shared));
	ASSERT_EQ(0, wheel_open(&self->w, &setup));
	ASSERT_EQ(0, add(&self->w, 7, HOUR, 0, 0, &self->h));
	atomic_store(&self->shared->generation, self->h.generation);
}

FIXTURE_TEARDOWN(against)
{
	EXPECT_TRUE(balanced(self->w.fd));
	wheel_close(&self->w);
}

/* Arm it if it is cancelled, cancel it if it is armed, without end. */
static void arm_and_cancel(FIXTURE_DATA(against) * self)
{
	struct handle h = self->h;
	long armed = 0, cancelled = 0;

	while (!atomic_load_explicit(&self->shared->stop, memory_order_relaxed)) {
		h.generation = atomic_load_explicit(&self->shared->generation,
						    memory_order_relaxed);
		if (cancel(&h) == ARMED)
			cancelled++;
		else if (arm(&h, atomic_load(h.entry), false) == CANCELLED)
			armed++;
	}
	atomic_store(&self->shared->armed, armed);
	atomic_store(&self->shared->cancelled, cancelled);
}

/* Do the call. Returns TIMERWHEEL_WAS_*; -EEXIST if it has ended no arming */
static int call_against(FIXTURE_DATA(against) * self, int call)
{
	struct timerwheel_entry ent;
	int ret;

	switch (call) {
	case BY_MOVE:
		return tw_move1(self->w.fd, 7, HOUR, 0);
	case BY_MOVE_EXCL:
		return tw_move1(self->w.fd, 7, HOUR, TIMERWHEEL_EXCL);
	case BY_ADD:
		return add(&self->w, 7, HOUR, 0, 0, &self->h);
	case BY_REMOVE:
		ret = tw_remove1(self->w.fd, 7);
		break;
	default:
		ret = tw_drain(self->w.fd, 0, &ent, 1) == 1 ? ent.result : -EPROTO;
	}
	if (ret < 0 || add(&self->w, 7, HOUR, 0, 0, &self->h))
		return -EPROTO;
	atomic_store(&self->shared->generation, self->h.generation);
	return ret;
}

/* Each arming ends once: by a cancel in the other process, or by a call that reports it. */
TEST_F_TIMEOUT(against, each_ends_once, 300)
{
	int ret, seconds = atoi(getenv("TW_RACE_SECONDS") ?: "2");
	__u64 end = tw_now(CLOCK_MONOTONIC) + seconds * SEC / 2;
	long calls = 0, armed = 1, ended = 0, parks = 0;
	atomic_ullong *entry = self->h.entry;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		tw_pin(1);
		arm_and_cancel(self);
		_exit(0);
	}
	tw_pin(0);
	/* Continue until the other process has run. */
	while (tw_now(CLOCK_MONOTONIC) < end ||
	       (!parks && tw_now(CLOCK_MONOTONIC) < end + LONG_MS * MSEC)) {
		ret = call_against(self, variant->call);
		calls++;
		armed += ret >= 0;
		ended += ret == TIMERWHEEL_WAS_PENDING;
		parks += ret == TIMERWHEEL_WAS_PARKED;
		ASSERT_TRUE(ret == TIMERWHEEL_WAS_PENDING || ret == TIMERWHEEL_WAS_PARKED ||
			    (variant->call == BY_MOVE_EXCL && ret == -EEXIST));
		ASSERT_FALSE(variant->call == BY_MOVE_EXCL && ret == TIMERWHEEL_WAS_PENDING);
		ASSERT_EQ(entry, self->h.entry);
	}
	atomic_store(&self->shared->stop, true);
	ASSERT_EQ(0, tw_reap(pid));
	printf("# %ld calls, %ld found it cancelled; armed %ld times, cancelled %ld times\n", calls,
	       parks, self->shared->armed, self->shared->cancelled);
	fflush(stdout);
	EXPECT_LT(0, parks);
	EXPECT_EQ(armed + self->shared->armed,
		  ended + self->shared->cancelled + (state_now(&self->h) == ARMED));
}

/* --- Programs that write to an entry continually ------------------------------------------- */

/* The values that a thread continually writes to an entry */
enum { TWO_DEADLINES, FLIPS, SWAPS, NONSENSE, MODES };

struct hammer {
	pthread_t thread;
	struct handle h;
	int mode;
	atomic_ullong at;		/* the timer's deadline */
	atomic_bool stop;
	long strikes, armed, cancelled;	/* when it has ended; by SWAPS only */
};

static void *hammer_main(void *arg)
{
	struct hammer *m = arg;
	__u64 seed = 12345, at, own = m->h.generation | ARMED, word;
	unsigned long i;

	tw_pin(1);
	for (i = 0; !atomic_load_explicit(&m->stop, memory_order_relaxed); i++) {
		at = atomic_load_explicit(&m->at, memory_order_relaxed);
		switch (m->mode) {
		case TWO_DEADLINES:
			/* armed, with alternating deadlines */
			word = (at + (i & 1) * (m->h.mask + 1)) | own;
			break;
		case FLIPS:
			word = at | (own - (i & 1));
			break;
		case SWAPS:
			/* as a correct program does, but without end */
			if (i & 1)
				m->cancelled += cancel(&m->h) == ARMED;
			else
				m->armed += arm(&m->h, at, false) == CANCELLED;
			continue;
		default:
			/* another generation, or a state of the kernel */
			word = tw_rand(&seed);
			if (state_of(&m->h, word) <= ARMED)
				word |= 2;
		}
		atomic_store_explicit(m->h.entry, word, memory_order_relaxed);
	}
	m->strikes = i;
	return NULL;
}

#define BYSTANDERS	32

FIXTURE(hammered) {
	struct wheel w, other;
	struct hammer m;
	struct handle h[BYSTANDERS], others[BYSTANDERS];
};

FIXTURE_VARIANT(hammered) {
	int mode;
};

FIXTURE_VARIANT_ADD(hammered, two_deadlines) { TWO_DEADLINES };
FIXTURE_VARIANT_ADD(hammered, flips) { FLIPS };
FIXTURE_VARIANT_ADD(hammered, swaps) { SWAPS };
FIXTURE_VARIANT_ADD(hammered, nonsense) { NONSENSE };

FIXTURE_SETUP(hammered)
{
	struct timerwheel_setup setup = { .tick = 100 * USEC }, again = setup;
	int i;

	ASSERT_EQ(0, wheel_open(&self->w, &setup));
	ASSERT_EQ(0, wheel_open(&self->other, &again));
	ASSERT_EQ(0, add(&self->w, BYSTANDERS, HOUR, 0, 0, &self->m.h));
	for (i = 0; i < BYSTANDERS; i++) {
		ASSERT_EQ(0, add(&self->w, i, HOUR, 0, 0, &self->h[i]));
		ASSERT_EQ(0, add(&self->other, i, HOUR, 0, 0, &self->others[i]));
	}
	self->m.mode = variant->mode;
	atomic_store(&self->m.at, tw_now(CLOCK_MONOTONIC) / (self->w.mask + 1) *
				  (self->w.mask + 1));
	tw_pin(0);
}

FIXTURE_TEARDOWN(hammered)
{
	EXPECT_TRUE(balanced(self->w.fd));
	EXPECT_TRUE(balanced(self->other.fd));
	wheel_close(&self->w);
	wheel_close(&self->other);
}

/*
 * Take the events of a round: one of each bystander, for @at and its number of ms, and at most one
 * of the hammered timer, which is counted in @own.
 */
static bool take_round(const struct wheel *w, const struct handle *h, __u64 at, int *own)
{
	bool seen[BYSTANDERS] = {};
	struct timerwheel_event ev;
	int left = BYSTANDERS;
	__u64 own_at;

	while (left) {
		if (dev_poll(w->fd, LONG_MS) != POLLIN || dev_read(w->fd, &ev, 1) != 1 ||
		    ev.fired < ev.deadline)
			return false;
		if (ev.key == BYSTANDERS) {
			if (!own || (*own)++)
				return false;
			continue;
		}
		own_at = at + ev.key * MSEC / 8;
		/* not rounded if it had passed before the call */
		if (ev.key > BYSTANDERS || seen[ev.key] ||
		    (ev.deadline != own_at && ev.deadline != unit_up(h, own_at)))
			return false;
		seen[ev.key] = true;
		left--;
	}
	return true;
}

/*
 * Whatever a program writes to one entry, all other timers fire once, for their deadlines, and none
 * early; this includes another wheel. The timer itself fires at most once for each arming and,
 * unless the program itself may have cancelled it, is not lost.
 */
TEST_F_TIMEOUT(hammered, harms_only_itself, 300)
{
	int i, ret, round, own, total = 0, seconds = atoi(getenv("TW_RACE_SECONDS") ?: "2");
	long armed = 1, ended = 0;
	struct handle *h = &self->m.h;
	struct timerwheel_event ev;
	__u64 now, end;

	ASSERT_EQ(0, pthread_create(&self->m.thread, NULL, hammer_main, &self->m));
	end = tw_now(CLOCK_MONOTONIC) + seconds * SEC;
	for (round = 0; round < 10 || tw_now(CLOCK_MONOTONIC) < end; round++) {
		now = tw_now(CLOCK_MONOTONIC) + 20 * MSEC;
		own = 0;
		ret = tw_move1(self->w.fd, BYSTANDERS, now, TIMERWHEEL_ABS);
		ASSERT_LT(0, ret);
		armed++;
		ended += ret != TIMERWHEEL_WAS_PARKED;
		atomic_store(&self->m.at, unit_up(h, now));
		for (i = 0; i < BYSTANDERS; i++) {
			ASSERT_LT(0, tw_move1(self->w.fd, i, now + i * MSEC / 8, TIMERWHEEL_ABS));
			ASSERT_LT(0, tw_move1(self->other.fd, i, now + i * MSEC / 8,
					      TIMERWHEEL_ABS));
		}
		ASSERT_TRUE(take_round(&self->w, self->h, now, &own));
		ASSERT_TRUE(take_round(&self->other, self->others, now, NULL));
		if (self->m.mode == TWO_DEADLINES || self->m.mode == NONSENSE) {
			/* the thread may still write to it */
			if (!own) {
				ASSERT_EQ(POLLIN, dev_poll(self->w.fd, LONG_MS));
				ASSERT_EQ(1, dev_read(self->w.fd, &ev, 1));
				EXPECT_EQ(BYSTANDERS, ev.key);
				EXPECT_LE(ev.deadline, ev.fired);
				own++;
			}
			EXPECT_EQ(1, own);
		}
		total += own;
	}
	atomic_store(&self->m.stop, true);
	pthread_join(self->m.thread, NULL);
	printf("# %d rounds, %ld strikes, %d events\n", round, self->m.strikes, total);
	fflush(stdout);
	/* without the thread it works like any other timer */
	ret = tw_move1(self->w.fd, BYSTANDERS, 2 * SEC, 0);
	ASSERT_LT(0, ret);
	ended += ret != TIMERWHEEL_WAS_PARKED;
	/* with valid operations only, each arming has ended once */
	if (self->m.mode == SWAPS)
		EXPECT_EQ(armed + self->m.armed, ended + self->m.cancelled + total);
	while (dev_poll(self->w.fd, 0) == POLLIN)
		ASSERT_EQ(1, dev_read(self->w.fd, &ev, 1));
	EXPECT_EQ(ARMED, state_now(h));
	now = tw_now(CLOCK_MONOTONIC) + 3 * SEC;
	EXPECT_EQ(ARMED, arm(h, now, true));
	EXPECT_TRUE(comes(&self->w, BYSTANDERS, h, now));
	EXPECT_EQ(FIRED, state_now(h));
	EXPECT_EQ(BYSTANDERS + 1, parked(self->w.fd));
}

/* DRAIN takes all timers, whatever is written to the entry of one timer meanwhile. */
TEST_F(hammered, drained)
{
	struct timerwheel_entry ent[BYSTANDERS + 2];
	bool seen[BYSTANDERS + 1] = {};
	int i;

	/* far away */
	atomic_store(&self->m.at, unit_up(&self->m.h, tw_now(CLOCK_MONOTONIC) + HOUR));
	ASSERT_EQ(0, pthread_create(&self->m.thread, NULL, hammer_main, &self->m));
	usleep(20000);
	EXPECT_EQ(BYSTANDERS + 1, tw_drain(self->w.fd, 0, ent, BYSTANDERS + 2));
	atomic_store(&self->m.stop, true);
	pthread_join(self->m.thread, NULL);
	for (i = 0; i < BYSTANDERS + 1; i++) {
		ASSERT_GE(BYSTANDERS, ent[i].key);
		EXPECT_FALSE(seen[ent[i].key]);
		seen[ent[i].key] = true;
		if (ent[i].key < BYSTANDERS)
			EXPECT_EQ(TIMERWHEEL_WAS_PENDING, ent[i].result);
	}
	EXPECT_EQ(0, tw_drain(self->w.fd, 0, ent, 1));
	EXPECT_EQ(0, parked(self->w.fd));
}

/* --- Races, with a ledger ------------------------------------------------------------ */

/*
 * Processes change the same timers, in memory and by calls, while events are taken. Each arming has
 * its own deadline, so that a cancel, a refresh and an event identify the arming that they ended.
 * MOVE, REMOVE and ADD do not identify it: they are counted. At the end each arming must have ended
 * once.
 */
#define KEYS_MAX	64
#define UNITS		524288			/* deadlines from the start of a race: 4.3 s */
#define SECONDS_MAX	4
#define NEAR		MSEC			/* maximum distance of deadlines */

/* What is known about the arming for one deadline of a timer */
#define CLAIMED		1U			/* a thread tries to arm it for that */
#define DONE		2U			/* it was armed */
#define CANCELLED_ONCE	4U			/* how that ended */
#define REFRESHED_ONCE	8U
#define DELIVERED_ONCE	16U
#define DRAINED_ONCE	32U
#define ENDS		(CANCELLED_ONCE | REFRESHED_ONCE | DELIVERED_ONCE | DRAINED_ONCE)

struct ledger {
	atomic_uint handle[KEYS_MAX][2];	/* index, generation */
	atomic_long by_call[KEYS_MAX];		/* armings ended by MOVE, REMOVE, ADD */
	atomic_uchar arming[KEYS_MAX][UNITS];
	atomic_long armed, cancelled, refreshed, events, gone, late_losers, moved, parked;
	atomic_long bad;
	atomic_bool stop;
};

struct race {
	struct wheel w;
	struct timerwheel_ring *ring;
	struct ledger *l;
	__u64 begin;				/* first deadline, in units */
	__u64 seed;
	int keys;
	__u64 linger;
};

FIXTURE(race) {
	struct race r;
};

FIXTURE_VARIANT(race) {
	int keys;
	__u32 ring;
	__u64 linger;
	bool owners;			/* timers are removed and added */
};

FIXTURE_VARIANT_ADD(race, read_8) { 8, 0, 0, false };
FIXTURE_VARIANT_ADD(race, read_64) { 64, 0, 0, false };
FIXTURE_VARIANT_ADD(race, ring_64) { 64, 16, 0, false };
FIXTURE_VARIANT_ADD(race, linger_8) { 8, 0, 5 * MSEC, false };
FIXTURE_VARIANT_ADD(race, linger_ring) { 16, 64, 5 * MSEC, false };
FIXTURE_VARIANT_ADD(race, owners_8) { 8, 0, 0, true };
FIXTURE_VARIANT_ADD(race, owners_ring) { 8, 16, 5 * MSEC, true };

static void bad(struct race *r, const char *what, __u64 key, __u64 got)
{
	if (atomic_fetch_add(&r->l->bad, 1) < 10)
		fprintf(stderr, "# key %llu: %s: %#llx\n", (unsigned long long)key, what,
			(unsigned long long)got);
}

static __u64 unit_of(const struct race *r)
{
	return r->w.mask + 1;
}

/* The ledger's entry for a deadline */
static atomic_uchar *arming_of(struct race *r, __u64 key, __u64 deadline)
{
	__u64 unit = deadline / unit_of(r) - r->begin;

	if (key >= (__u64)r->keys || deadline % unit_of(r) || unit >= UNITS) {
		bad(r, "strange deadline", key, deadline);
		unit = 0;
	}
	return &r->l->arming[key][unit];
}

/* Find an unused deadline for this timer, at most @ns from now. 0: none was found. */
static __u64 claim(struct race *r, __u64 key, __u64 ns)
{
	unsigned char none;
	__u64 deadline;
	int i;

	for (i = 0; i < 64; i++) {
		deadline = tw_now(CLOCK_MONOTONIC) + tw_rand(&r->seed) % ns;
		deadline = (deadline / unit_of(r) + 1) * unit_of(r);
		none = 0;
		if (atomic_compare_exchange_strong(arming_of(r, key, deadline), &none, CLAIMED))
			return deadline;
	}
	return 0;
}

/* Record that the arming for @deadline has ended as @how. */
static void ended(struct race *r, __u64 key, __u64 deadline, unsigned int how)
{
	unsigned int was = atomic_fetch_or(arming_of(r, key, deadline), how);

	if (!(was & CLAIMED) || was & ENDS)
		bad(r, "ended again, or never armed", key, was << 8 | how);
}

static struct handle handle_now(struct race *r, __u64 key)
{
	atomic_uint *h = r->l->handle[key];

	return (struct handle){ r->w.table + atomic_load(&h[0]), r->w.mask, atomic_load(&h[1]) };
}

/* Arm or refresh in memory */
static void race_arm(struct race *r, const struct handle *h, __u64 key, bool refresh)
{
	__u64 want = claim(r, key, NEAR), old;
	enum state was;

	if (!want)
		return;
	old = atomic_load_explicit(h->entry, memory_order_relaxed);
	do {
		was = state_of(h, old);
		if (was > ARMED || (refresh && was == CANCELLED) ||
		    (want | h->generation | ARMED) < old) {
			atomic_store(arming_of(r, key, want), 0);
			atomic_fetch_add(was == GONE ? &r->l->gone : &r->l->late_losers, 1);
			return;
		}
	} while (!atomic_compare_exchange_weak_explicit(h->entry, &old,
							want | h->generation | ARMED,
							memory_order_acq_rel,
							memory_order_relaxed));
	atomic_fetch_or(arming_of(r, key, want), DONE);
	if (was == ARMED) {
		ended(r, key, old & ~h->mask, REFRESHED_ONCE);
		atomic_fetch_add(&r->l->refreshed, 1);
	}
	atomic_fetch_add(&r->l->armed, 1);
}

static void race_cancel(struct race *r, const struct handle *h, __u64 key)
{
	__u64 old = atomic_load_explicit(h->entry, memory_order_relaxed);

	do {
		if (state_of(h, old) != ARMED)
			return;
	} while (!atomic_compare_exchange_weak_explicit(h->entry, &old, old - 1,
							memory_order_acq_rel,
							memory_order_relaxed));
	ended(r, key, old & ~h->mask, CANCELLED_ONCE);
	atomic_fetch_add(&r->l->cancelled, 1);
}

/* Count the arming that a call has ended, and the arming that it began. */
static void called(struct race *r, __u64 key, int ret, __u64 deadline)
{
	if (ret == TIMERWHEEL_WAS_PENDING || ret == TIMERWHEEL_WAS_DUE)
		atomic_fetch_add(&r->l->by_call[key], 1);
	else if (ret == TIMERWHEEL_WAS_PARKED)
		atomic_fetch_add(&r->l->parked, 1);
	if (deadline && ret >= 0) {
		atomic_fetch_or(arming_of(r, key, deadline), DONE);
		atomic_fetch_add(&r->l->armed, 1);
	} else if (deadline) {
		atomic_store(arming_of(r, key, deadline), 0);
	}
}

static void race_move(struct race *r, __u64 key)
{
	bool unless_armed = tw_rand(&r->seed) % 4 == 0;
	__u64 deadline = claim(r, key, NEAR);
	int ret;

	if (!deadline)
		return;
	ret = tw_move1(r->w.fd, key, deadline,
		       TIMERWHEEL_ABS | (unless_armed ? TIMERWHEEL_EXCL : 0));
	called(r, key, ret, deadline);
	atomic_fetch_add(&r->l->moved, ret >= 0);
	if (unless_armed ? ret > 0 && ret != TIMERWHEEL_WAS_PARKED : ret == -EEXIST)
		bad(r, "MOVE with EXCL", key, ret);
	if (ret < 0 && ret != -EEXIST && ret != -ENOENT)
		bad(r, "MOVE", key, -ret);
}

/* Give the key another timer; another process may be faster. */
static void race_own(struct race *r, __u64 key)
{
	struct timerwheel_add elem = {
		.key = key, .value = ~key, .period = r->linger,
		.flags = TIMERWHEEL_ABS | (r->linger ? TIMERWHEEL_LINGER : 0),
	};
	int ret;

	elem.deadline = claim(r, key, NEAR);
	if (!elem.deadline)
		return;
	ret = tw_remove1(r->w.fd, key);
	if (ret != -ENOENT)
		called(r, key, ret, 0);
	ret = tw_add_elem(r->w.fd, &elem);
	called(r, key, ret, elem.deadline);
	if (ret < 0)
		bad(r, "ADD", key, -ret);
	atomic_store(&r->l->handle[key][0], elem.index);
	atomic_store(&r->l->handle[key][1], elem.generation);
}

/* Drain all timers, and give each key another one. */
static void race_drain(struct race *r)
{
	struct timerwheel_entry ent[KEYS_MAX];
	int i, n = tw_drain(r->w.fd, 0, ent, KEYS_MAX);

	if (n < 0)
		bad(r, "DRAIN", 0, -n);
	for (i = 0; i < n; i++) {
		if (ent[i].result == TIMERWHEEL_WAS_PARKED)
			atomic_fetch_add(&r->l->parked, 1);
		else
			ended(r, ent[i].key, ent[i].deadline, DRAINED_ONCE);
	}
	for (i = 0; i < r->keys; i++)
		race_own(r, i);
}

/* Wait until an armed timer is due, or a little longer: the kernel is about to visit it. */
static void aim(struct race *r, const struct handle *h)
{
	__u64 entry = atomic_load_explicit(h->entry, memory_order_relaxed);
	__u64 at = (entry & ~h->mask) + tw_rand(&r->seed) % (60 * USEC);

	if (state_of(h, entry) != ARMED || at > tw_now(CLOCK_MONOTONIC) + NEAR)
		return;
	while (tw_now(CLOCK_MONOTONIC) < at)
		;
}

/* A process that changes timers in memory, and sometimes by calls */
static int race_program(struct race *r, bool owner)
{
	struct timerwheel_entry ent;
	struct handle h = {};
	__u64 key;
	int i = 0;

	while (!atomic_load(&r->l->stop)) {
		key = tw_rand(&r->seed) % r->keys;
		/* Sometimes another key's handle, or a handle that may be stale */
		h = handle_now(r, key);
		if (tw_rand(&r->seed) % 8 == 0)
			aim(r, &h);
		switch (tw_rand(&r->seed) % 16) {
		case 0:
			race_move(r, key);
			break;
		case 1:
			if (owner && tw_rand(&r->seed) % 16 == 0)
				race_drain(r);
			else if (owner)
				race_own(r, key);
			else
				tw_get1(r->w.fd, key, &ent);
			break;
		case 2 ... 6:
			race_cancel(r, &h, key);
			break;
		case 7 ... 9:
			race_arm(r, &h, key, true);
			break;
		default:
			race_arm(r, &h, key, false);
		}
		if (++i % 64 == 0)
			sched_yield();
	}
	return 0;
}

static void race_event(struct race *r, const struct timerwheel_event *ev)
{
	if (ev->key >= (__u64)r->keys || ev->value != ~ev->key || ev->fired < ev->deadline)
		bad(r, "event", ev->key, ev->deadline);
	ended(r, ev->key, ev->deadline, DELIVERED_ONCE);
	atomic_fetch_add(&r->l->events, 1);
}

static void race_take(struct race *r)
{
	struct timerwheel_event ev;

	while (take(&r->w, r->ring, &ev) == 1)
		race_event(r, &ev);
}

FIXTURE_SETUP(race)
{
	struct timerwheel_setup setup = { .ring = variant->ring, .tick = 10 * USEC };
	struct race *r = &self->r;
	int i;

	r->l = tw_shared(sizeof(*r->l));
	r->seed = tw_seed();
	TH_LOG("TW_SEED=%llu", (unsigned long long)r->seed);
	r->keys = variant->keys;
	r->linger = variant->linger;
	ASSERT_EQ(0, wheel_open(&r->w, &setup));
	r->begin = tw_now(CLOCK_MONOTONIC) / unit_of(r);
	if (variant->ring) {
		r->ring = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r->w.fd,
			       TIMERWHEEL_MMAP_RING);
		ASSERT_NE(MAP_FAILED, r->ring);
	}
	for (i = 0; i < r->keys; i++)
		race_own(r, i);
	ASSERT_EQ(0, atomic_load(&r->l->bad));
}

FIXTURE_TEARDOWN(race)
{
	wheel_close(&self->r.w);
}

/* Has each way to end been seen, and each loser of a race? */
static bool race_complete(struct ledger *l)
{
	return atomic_load(&l->armed) && atomic_load(&l->cancelled) &&
	       atomic_load(&l->refreshed) && atomic_load(&l->moved) &&
	       atomic_load(&l->events) && atomic_load(&l->late_losers);
}

/* Each arming ends once: a cancelled arming gives no event, all others do. None is early. */
TEST_F_TIMEOUT(race, each_ends_once, 300)
{
	int i, u, n, seconds = atoi(getenv("TW_RACE_SECONDS") ?: "2");
	struct timerwheel_entry ent[KEYS_MAX];
	struct race *r = &self->r;
	struct ledger *l = r->l;
	long open_armings;
	pid_t pid[3];
	__u64 end;

	if (seconds > SECONDS_MAX)
		seconds = SECONDS_MAX;
	for (i = 0; i < 3; i++) {
		pid[i] = fork();
		ASSERT_LE(0, pid[i]);
		if (!pid[i]) {
			r->seed += i + 1;
			/* Only one process adds timers, so a handle belongs to the last ADD. */
			_exit(race_program(r, variant->owners && !i));
		}
	}
	end = tw_now(CLOCK_MONOTONIC) + seconds * SEC;
	/* Allow more time on slow (KMSAN) kernels, where the run would otherwise prove nothing. */
	while (tw_now(CLOCK_MONOTONIC) < end ||
	       (!race_complete(l) && tw_now(CLOCK_MONOTONIC) < end + 60 * SEC)) {
		race_take(r);
		dev_poll(r->w.fd, 1);
	}
	atomic_store(&l->stop, true);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, tw_reap(pid[i]));
	/* All armed timers fire, and all cancelled timers are parked. */
	for (i = 0; i < LONG_MS && waiting(r->w.fd); i++) {
		tw_sleep(MSEC);
		race_take(r);
	}
	race_take(r);
	EXPECT_TRUE(balanced(r->w.fd));
	n = tw_drain(r->w.fd, 0, ent, KEYS_MAX);
	EXPECT_EQ(r->keys, n);
	for (i = 0; i < n; i++)
		EXPECT_EQ(TIMERWHEEL_WAS_PARKED, ent[i].result);
	for (i = 0; i < r->keys; i++) {
		open_armings = 0;
		for (u = 0; u < UNITS; u++) {
			unsigned int a = atomic_load(&l->arming[i][u]);

			if (!(a & DONE) && a)
				bad(r, "claimed, or ended, but not armed", i, a);
			open_armings += a & DONE && !(a & ENDS);
		}
		if (open_armings != atomic_load(&l->by_call[i]))
			bad(r, "armings that have not ended", i,
			    open_armings - atomic_load(&l->by_call[i]));
	}
	EXPECT_EQ(0, atomic_load(&l->bad));
	printf("# %ld armed, %ld cancelled, %ld refreshed, %ld moved, %ld events, %ld too late\n",
	       l->armed, l->cancelled, l->refreshed, l->moved, l->events, l->late_losers);
	printf("# %ld by handles of former owners\n", l->gone);
	fflush(stdout);
	EXPECT_TRUE(race_complete(l));
}

TEST_HARNESS_MAIN
