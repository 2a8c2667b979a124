// SPDX-License-Identifier: GPL-2.0
/*
 * resident: timers that are armed, refreshed and cancelled in the deadline table. What each of
 * these and each call does in each state; races with a strict ledger; hostile programs.
 *
 * TW_RACE_SECONDS: how long each race lasts (2; at most 4).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include "tw_test.h"

#define USEC		1000ULL
#define MSEC		1000000ULL
#define SEC		1000000000ULL
#define HOUR		(3600 * SEC)
#define LONG_MS		60000

/* States of an entry, and GONE: another generation */
enum state {
	CANCELLED = TIMERWHEEL_RESIDENT_CANCELLED,
	ARMED = TIMERWHEEL_RESIDENT_ARMED,
	PARKED = TIMERWHEEL_RESIDENT_PARKED,
	FIRED = TIMERWHEEL_RESIDENT_FIRED,
	TOO_EARLY,
	GONE,
};

/* A wheel with its table */
struct wheel {
	int fd;
	__u64 mask;			/* the bits of an entry that are no deadline */
	atomic_ullong *table;
};

#define MAPPED	(64 * 1024)		/* bytes of the table */

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
	w->table = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd,
			TIMERWHEEL_MMAP_DEADLINES);
	return w->table == MAP_FAILED ? -errno : 0;
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

/* Arm (@only CANCELLED: or refresh). Returns what the timer was: CANCELLED, ARMED: done */
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

/* Cancel. Returns what the timer was: ARMED: done */
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

/* Take an event. Returns 1, 0: there is none */
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

/* ADD arms it: the entry says so, with the deadline rounded up, as GET reports it */
TEST_F(one, add)
{
	struct timerwheel_entry ent;
	struct timerwheel_info info;

	ASSERT_EQ(0, tw_info(self->w.fd, &info));
	EXPECT_EQ(TIMERWHEEL_FEATURE_RESIDENT, info.features & TIMERWHEEL_FEATURE_RESIDENT);
	EXPECT_EQ(TIMERWHEEL_INFO_RESIDENT, info.flags & TIMERWHEEL_INFO_RESIDENT);
	EXPECT_EQ(unit_up(&self->h, 100 * MSEC) | self->h.generation | ARMED,
		  atomic_load(self->h.entry));
	EXPECT_EQ(0, self->h.generation & 3);
	EXPECT_NE(0, self->h.generation);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(self->w.fd, 7, &ent));
	EXPECT_EQ(unit_up(&self->h, 100 * MSEC), ent.deadline);
}

/* It fires, and stays: key, index and generation are its own. MOVE arms it again. */
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

/* Refresh: the timer fires at the later deadline, however often it was visited before */
TEST_F(one, refresh)
{
	__u64 at;

	for (at = 200 * MSEC; at < 2 * SEC; at += 100 * MSEC) {
		EXPECT_EQ(ARMED, arm(&self->h, at, true));
		EXPECT_EQ(0, tw_advance(self->w.fd, TIMERWHEEL_ABS, at - 2 * MSEC));
		EXPECT_NO_EVENT();
	}
	EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, at));
	EXPECT_EVENT(at - 100 * MSEC);
	EXPECT_EQ(FIRED, arm(&self->h, HOUR, true));
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

/* Arm again after a cancel: at the same deadline or a later one; not earlier */
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

/* MOVE takes a pending timer to any deadline, and says if it was armed. */
TEST_F(one, move)
{
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->w.fd, 7, 50 * MSEC, TIMERWHEEL_ABS));
	EXPECT_EQ(unit_up(&self->h, 50 * MSEC) | self->h.generation | ARMED,
		  atomic_load(self->h.entry));
	EXPECT_EQ(ARMED, cancel(&self->h));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_move1(self->w.fd, 7, 20 * MSEC, TIMERWHEEL_ABS));
	EXPECT_EQ(1, tw_advance(self->w.fd, TIMERWHEEL_ABS, 22 * MSEC));
	EXPECT_EVENT(20 * MSEC);
	/* of a parked one */
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

/* REMOVE says if the timer was armed, from each state; then nobody owns the entry. */
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

/* LIST and DRAIN return timers in each state, with what the entry says. */
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
			/* It was delivered at its tick, so the linger is over. */
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

/* Flags and periods that do not exist here, or only here */
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

/* Nonsense in an entry counts as nothing: the timer fires at the deadline of the last call. */
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

/* --- Races, with a ledger ------------------------------------------------------------ */

/*
 * Processes change the same timers, in memory and by calls, while events are taken. Each arming has
 * a deadline of its own, so that a cancel, a refresh and an event name the arming that they ended.
 * MOVE, REMOVE and ADD do not: they are counted. In the end each arming must have ended once.
 */
#define KEYS_MAX	64
#define UNITS		524288			/* deadlines from the begin of a race on: 4.3 s */
#define SECONDS_MAX	4
#define NEAR		MSEC			/* how far away deadlines are at most */

/* What is known about the arming for one deadline of a timer */
#define CLAIMED		1U			/* somebody tries to arm it for that */
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

/* The ledger's place of a deadline */
static atomic_uchar *arming_of(struct race *r, __u64 key, __u64 deadline)
{
	__u64 unit = deadline / unit_of(r) - r->begin;

	if (key >= (__u64)r->keys || deadline % unit_of(r) || unit >= UNITS) {
		bad(r, "strange deadline", key, deadline);
		unit = 0;
	}
	return &r->l->arming[key][unit];
}

/* Find a deadline that nobody has used for this timer, at most @ns from now. 0: none was found */
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

/* The arming for @deadline has ended in the way @how. */
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

/* Count an arming that a call has ended, and the one that it began. */
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

/* A process that changes timers in memory, and now and then by calls */
static int race_program(struct race *r, bool owner)
{
	struct timerwheel_entry ent;
	struct handle h = {};
	__u64 key;
	int i = 0;

	while (!atomic_load(&r->l->stop)) {
		key = tw_rand(&r->seed) % r->keys;
		/* Sometimes another key's handle, or one that may be stale by now */
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

/* Each arming ends once: one that was cancelled gives no event, all others do. None is early. */
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
			/* one process is the owner: a handle is that of the last ADD */
			_exit(race_program(r, variant->owners && !i));
		}
	}
	end = tw_now(CLOCK_MONOTONIC) + seconds * SEC;
	while (tw_now(CLOCK_MONOTONIC) < end) {
		race_take(r);
		dev_poll(r->w.fd, 1);
	}
	atomic_store(&l->stop, true);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, tw_reap(pid[i]));
	/* All that is armed fires. */
	tw_sleep(30 * MSEC);
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
	EXPECT_LT(0, l->armed);
	EXPECT_LT(0, l->cancelled);
	EXPECT_LT(0, l->refreshed);
	EXPECT_LT(0, l->moved);
	EXPECT_LT(0, l->events);
	EXPECT_LT(0, l->late_losers);
}

TEST_HARNESS_MAIN
