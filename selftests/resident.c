// SPDX-License-Identifier: GPL-2.0
/*
 * resident: timers that are armed, refreshed and cancelled in the deadline table. What each of
 * these and each call does in each state; races with a strict ledger; hostile programs.
 *
 * TW_RACE_SECONDS: how long each race lasts (2).
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
	EARLIER,
	GONE,
};

/* A wheel with its table */
struct wheel {
	int fd;
	__u64 mask;			/* the bits of an entry that are no deadline */
	_Atomic __u64 *table;
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
	_Atomic __u64 *entry;
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
			return EARLIER;
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
	EXPECT_EQ(EARLIER, arm(&self->h, 90 * MSEC, false));
	EXPECT_EQ(CANCELLED, arm(&self->h, 100 * MSEC, false));
	EXPECT_EQ(EARLIER, arm(&self->h, 90 * MSEC, false));
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
			EXPECT_EQ(EARLIER, arm(&self->h, now + 40 * MSEC, false));
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

TEST_HARNESS_MAIN
