// SPDX-License-Identifier: GPL-2.0
/*
 * libtimerwheel's resident timers: the results of arm, refresh, cancel and the calls in each state;
 * queues; races with a ledger.
 *
 * TW_RACE_SECONDS: duration of each race (1; at most 4).
 */
#include "library.h"
#include <sched.h>
#include <stdatomic.h>

#define UNIT	4096ULL			/* of deadlines in a wheel with ticks of 1 ns */
#define DONE		TIMERWHEEL_DONE
#define TOO_LATE	TIMERWHEEL_TOO_LATE
#define NEEDS_CALL	TIMERWHEEL_NEEDS_CALL
#define NOT_ARMED	TIMERWHEEL_NOT_ARMED
#define GONE		TIMERWHEEL_GONE
#define WAS_NONE	TIMERWHEEL_WAS_NONE
#define WAS_PENDING	TIMERWHEEL_WAS_PENDING
#define WAS_DUE		TIMERWHEEL_WAS_DUE
#define WAS_PARKED	TIMERWHEEL_WAS_PARKED

/* A timer of a wheel, and the functions that change it */
struct timer {
	struct timerwheel *w;
	struct timerwheel_table table;
	bool bound;			/* uses the functions that are not inline */
	uint64_t key;
	uint32_t index;
	uint32_t generation;
};

static int arm(const struct timer *t, uint64_t deadline)
{
	return t->bound ? timerwheel_arm(t->w, t->index, t->generation, deadline) :
	       (int)timerwheel_table_arm(&t->table, t->index, t->generation, deadline);
}

static int refresh(const struct timer *t, uint64_t deadline)
{
	return t->bound ? timerwheel_refresh(t->w, t->index, t->generation, deadline) :
	       (int)timerwheel_table_refresh(&t->table, t->index, t->generation, deadline);
}

static int cancel(const struct timer *t)
{
	return t->bound ? timerwheel_cancel(t->w, t->index, t->generation) :
	       (int)timerwheel_table_cancel(&t->table, t->index, t->generation);
}

/* The contents of its entry */
static uint64_t entry(const struct timer *t)
{
	return __atomic_load_n(&t->table.entries[t->index], __ATOMIC_RELAXED);
}

/* ADD. Returns its result. */
static int add_timer(struct timer *t, uint64_t deadline, uint32_t flags, uint64_t linger)
{
	struct timerwheel_add elem = {
		.key = t->key, .value = ~t->key, .deadline = deadline, .period = linger,
		.flags = flags | (linger ? TIMERWHEEL_LINGER : 0),
	};
	int result = add_elem(t->w, &elem);

	if (result >= 0) {
		t->index = elem.index;
		t->generation = elem.generation;
	}
	return result;
}

static int move_to(const struct timer *t, uint64_t deadline, uint32_t flags)
{
	return move(t->w, t->key, deadline, flags | TIMERWHEEL_ABS);
}

static struct timerwheel *wheel_resident(uint32_t clock, uint64_t tick)
{
	struct timerwheel_config config = {
		.backend = BACKEND, .clock = clock, .tick = tick, .capacity = 64, .resident = true,
	};
	struct timerwheel *wheel;

	return timerwheel_open(&wheel, &config) ? NULL : wheel;
}

/* ---- one timer, MANUAL clock ----------------------------------------------------------------- */

FIXTURE(one)
{
	struct timer t;
};

FIXTURE_VARIANT(one)
{
	bool bound;
};

FIXTURE_VARIANT_ADD(one, inlined)
{
	.bound = false,
};

FIXTURE_VARIANT_ADD(one, bound)
{
	.bound = true,
};

/* It is armed for 10 units. */
FIXTURE_SETUP(one)
{
	struct timer *t = &self->t;

	t->w = wheel_resident(TIMERWHEEL_CLOCK_MANUAL, 1);
	ASSERT_NE(NULL, t->w);
	ASSERT_EQ(0, timerwheel_table(t->w, &t->table));
	t->bound = variant->bound;
	t->key = 7;
	ASSERT_EQ(WAS_NONE, add_timer(t, 10 * UNIT, TIMERWHEEL_ABS, 0));
}

FIXTURE_TEARDOWN(one)
{
	EXPECT_EQ(true, balanced(self->t.w));
	timerwheel_close(self->t.w);
	EXPECT_EQ(false, leaks());
}

#define EXPECT_ENTRY(deadline, state)							\
	EXPECT_EQ((deadline) | self->t.generation | TIMERWHEEL_TABLE_##state, entry(&self->t))

/* Advance the time to @at; @fired timers fall due. */
#define ADVANCE(at, fired)								\
	EXPECT_EQ(fired, timerwheel_advance(self->t.w, at, TIMERWHEEL_ABS))

#define EXPECT_NO_EVENT() do {								\
	struct timerwheel_event none;							\
	EXPECT_EQ(0, take(self->t.w, &none, 1));					\
} while (0)

#define EXPECT_EVENT(at) do {								\
	struct timerwheel_event ev;							\
	ASSERT_EQ(1, take(self->t.w, &ev, 1));						\
	EXPECT_EQ(7, ev.key);								\
	EXPECT_EQ(~7ULL, ev.value);							\
	EXPECT_EQ(at, ev.deadline);							\
	EXPECT_LE(ev.deadline, ev.fired);						\
	EXPECT_EQ(0, ev.flags);								\
	EXPECT_EQ(0, ev.overruns);							\
	EXPECT_EQ(self->t.index, ev.index);						\
} while (0)

/* The result of GET, and the number of parked timers */
#define EXPECT_GET(was, at, how_many_parked) do {					\
	struct timerwheel_entry got;							\
	struct timerwheel_stats stats;							\
	EXPECT_EQ(was, get(self->t.w, 7, &got));					\
	EXPECT_EQ(at, got.deadline);							\
	EXPECT_EQ(self->t.index, got.index);						\
	EXPECT_EQ(self->t.generation, got.generation);					\
	ASSERT_EQ(0, timerwheel_stats(self->t.w, &stats));				\
	EXPECT_EQ(how_many_parked, stats.parked);					\
} while (0)

TEST_F(one, armed)
{
	struct timerwheel_info info;

	ASSERT_EQ(0, timerwheel_info(self->t.w, &info));
	EXPECT_EQ(TIMERWHEEL_FEATURE_TABLE, info.features & TIMERWHEEL_FEATURE_TABLE);
	EXPECT_EQ(TIMERWHEEL_INFO_SETTLED | TIMERWHEEL_INFO_TABLE |
		  TIMERWHEEL_INFO_RESIDENT, info.flags);
	EXPECT_EQ(12, info.generation_bits);
	EXPECT_EQ(12, self->t.table.bits);
	EXPECT_NE(0, self->t.generation);
	EXPECT_EQ(0, self->t.generation % 4);
	EXPECT_ENTRY(10 * UNIT, ARMED);
	EXPECT_GET(WAS_PENDING, 10 * UNIT, 0);
	ADVANCE(10 * UNIT - 1, 0);
	EXPECT_NO_EVENT();
	EXPECT_ENTRY(10 * UNIT, ARMED);
	ADVANCE(10 * UNIT, 1);
	EXPECT_EVENT(10 * UNIT);
	EXPECT_NO_EVENT();
}

/* The event waits or was taken: too late in both cases. The timer still exists. */
TEST_F(one, fired)
{
	int taken;

	ADVANCE(10 * UNIT, 1);
	for (taken = 0; taken < 2; taken++) {
		EXPECT_ENTRY(10 * UNIT, FIRED);
		EXPECT_EQ(TOO_LATE, cancel(&self->t));
		EXPECT_EQ(TOO_LATE, refresh(&self->t, 20 * UNIT));
		EXPECT_EQ(NEEDS_CALL, arm(&self->t, 20 * UNIT));
		EXPECT_GET(taken ? WAS_PARKED : WAS_DUE, 10 * UNIT, taken);
		if (!taken)
			EXPECT_EVENT(10 * UNIT);
	}
	EXPECT_EQ(WAS_PARKED, move_to(&self->t, 20 * UNIT, 0));
	EXPECT_GET(WAS_PENDING, 20 * UNIT, 0);
	EXPECT_EQ(DONE, arm(&self->t, 30 * UNIT));
	ADVANCE(30 * UNIT - 1, 0);
	ADVANCE(30 * UNIT, 1);
	EXPECT_EVENT(30 * UNIT);
}

/* Refresh: no event comes for the former deadline, whenever the timer is visited. */
TEST_F(one, refreshed)
{
	uint64_t n;

	for (n = 11; n < 40; n += 3) {
		EXPECT_EQ(DONE, refresh(&self->t, n * UNIT));
		EXPECT_ENTRY(n * UNIT, ARMED);
		ADVANCE((n - 1) * UNIT, 0);
		EXPECT_NO_EVENT();
		EXPECT_GET(WAS_PENDING, n * UNIT, 0);
	}
	EXPECT_EQ(DONE, refresh(&self->t, 50 * UNIT - 1));
	EXPECT_EQ(DONE, refresh(&self->t, 50 * UNIT));
	EXPECT_EQ(NEEDS_CALL, refresh(&self->t, 49 * UNIT));
	EXPECT_ENTRY(50 * UNIT, ARMED);
	ADVANCE(60 * UNIT, 1);
	EXPECT_EVENT(50 * UNIT);
}

/* Cancel: no event comes. The timer is parked when its deadline passes, not before. */
TEST_F(one, cancelled)
{
	EXPECT_EQ(DONE, cancel(&self->t));
	EXPECT_ENTRY(10 * UNIT, CANCELLED);
	EXPECT_EQ(NOT_ARMED, cancel(&self->t));
	EXPECT_EQ(NOT_ARMED, refresh(&self->t, 20 * UNIT));
	EXPECT_GET(WAS_PARKED, 10 * UNIT, 0);
	ADVANCE(10 * UNIT - 1, 0);
	EXPECT_ENTRY(10 * UNIT, CANCELLED);
	ADVANCE(10 * UNIT, 0);
	EXPECT_NO_EVENT();
	EXPECT_ENTRY(10 * UNIT, PARKED);
	EXPECT_GET(WAS_PARKED, 10 * UNIT, 1);
	EXPECT_EQ(NOT_ARMED, cancel(&self->t));
	EXPECT_EQ(NOT_ARMED, refresh(&self->t, 20 * UNIT));
	EXPECT_EQ(NEEDS_CALL, arm(&self->t, 20 * UNIT));
	ADVANCE(HOUR, 0);
	EXPECT_NO_EVENT();
	EXPECT_EQ(WAS_PARKED, move_to(&self->t, HOUR + UNIT, 0));
	ADVANCE(HOUR + 2 * UNIT, 1);
}

/* Armed again after a cancel: for the same deadline or a later one, not for an earlier one */
TEST_F(one, armed_again)
{
	EXPECT_EQ(DONE, cancel(&self->t));
	EXPECT_EQ(NEEDS_CALL, arm(&self->t, 9 * UNIT));
	EXPECT_ENTRY(10 * UNIT, CANCELLED);
	EXPECT_EQ(DONE, arm(&self->t, 9 * UNIT + 1));
	EXPECT_ENTRY(10 * UNIT, ARMED);
	EXPECT_EQ(NEEDS_CALL, arm(&self->t, 9 * UNIT));
	EXPECT_EQ(DONE, arm(&self->t, 20 * UNIT));
	EXPECT_EQ(DONE, arm(&self->t, 20 * UNIT));
	EXPECT_EQ(DONE, cancel(&self->t));
	ADVANCE(15 * UNIT, 0);
	EXPECT_ENTRY(20 * UNIT, CANCELLED);
	EXPECT_EQ(DONE, arm(&self->t, 30 * UNIT));
	ADVANCE(30 * UNIT - 1, 0);
	EXPECT_NO_EVENT();
	ADVANCE(30 * UNIT, 1);
	EXPECT_EVENT(30 * UNIT);
}

/* The largest time: the same for ADD, MOVE and stores */
TEST_F(one, end_of_time)
{
	const uint64_t end = TIMERWHEEL_TIME_MAX & ~(UNIT - 1);

	EXPECT_EQ(DONE, arm(&self->t, UINT64_MAX));
	EXPECT_GET(WAS_PENDING, TIMERWHEEL_TIME_MAX, 0);
	EXPECT_EQ(DONE, refresh(&self->t, UINT64_MAX));
	EXPECT_EQ(DONE, refresh(&self->t, TIMERWHEEL_TIME_MAX));
	EXPECT_EQ(WAS_PENDING, move_to(&self->t, UINT64_MAX, 0));
	EXPECT_GET(WAS_PENDING, end, 0);
	EXPECT_ENTRY(end, ARMED);
	EXPECT_EQ(DONE, refresh(&self->t, end));
	EXPECT_EQ(NEEDS_CALL, refresh(&self->t, end - UNIT));
	/* The deadline that the entry can hold has passed. */
	ADVANCE(TIMERWHEEL_TIME_MAX - 10, 1);
	EXPECT_EQ(WAS_DUE, move_to(&self->t, TIMERWHEEL_TIME_MAX, 0));
	EXPECT_ENTRY(end, FIRED);
	EXPECT_EQ(TOO_LATE, cancel(&self->t));
	EXPECT_EVENT(end);
}

TEST_F(one, moved)
{
	EXPECT_EQ(WAS_PENDING, move_to(&self->t, 5 * UNIT - 1, 0));
	EXPECT_ENTRY(5 * UNIT, ARMED);
	EXPECT_GET(WAS_PENDING, 5 * UNIT, 0);
	EXPECT_EQ(DONE, cancel(&self->t));
	EXPECT_EQ(WAS_PARKED, move_to(&self->t, 3 * UNIT, 0));
	EXPECT_ENTRY(3 * UNIT, ARMED);
	ADVANCE(3 * UNIT, 1);
	/* due: its event is withdrawn */
	EXPECT_EQ(WAS_DUE, move_to(&self->t, 4 * UNIT, 0));
	EXPECT_NO_EVENT();
	ADVANCE(4 * UNIT, 1);
	EXPECT_EVENT(4 * UNIT);
	/* to a time that has passed: the deadline is not rounded */
	EXPECT_EQ(WAS_PARKED, move_to(&self->t, UNIT + 1, 0));
	EXPECT_EQ(TOO_LATE, cancel(&self->t));
	EXPECT_GET(WAS_DUE, UNIT + 1, 0);
	EXPECT_EVENT(UNIT + 1);
}

TEST_F(one, moved_unless_armed)
{
	EXPECT_EQ(-EEXIST, move_to(&self->t, 5 * UNIT, TIMERWHEEL_EXCL));
	EXPECT_ENTRY(10 * UNIT, ARMED);
	EXPECT_EQ(DONE, cancel(&self->t));
	EXPECT_EQ(WAS_PARKED, move_to(&self->t, 5 * UNIT, TIMERWHEEL_EXCL));
	EXPECT_EQ(-EEXIST, move_to(&self->t, 6 * UNIT, TIMERWHEEL_EXCL));
	ADVANCE(5 * UNIT, 1);
	EXPECT_EQ(-EEXIST, move_to(&self->t, 6 * UNIT, TIMERWHEEL_EXCL));
	EXPECT_EVENT(5 * UNIT);
	EXPECT_EQ(WAS_PARKED, move_to(&self->t, 6 * UNIT, TIMERWHEEL_EXCL));
	EXPECT_ENTRY(6 * UNIT, ARMED);
	self->t.key = 8;
	EXPECT_EQ(-ENOENT, move_to(&self->t, 6 * UNIT, TIMERWHEEL_EXCL));
}

/* MOVE and REMOVE by handle, in each state */
TEST_F(one, by_handle)
{
	struct timer *t = &self->t;
	uint64_t value;

#define MOVE(deadline, flags) \
	move_handle(t->w, t->index, t->generation, deadline, (flags) | TIMERWHEEL_ABS)
	EXPECT_EQ(WAS_PENDING, MOVE(5 * UNIT - 1, 0));
	EXPECT_ENTRY(5 * UNIT, ARMED);
	EXPECT_EQ(-EEXIST, MOVE(3 * UNIT, TIMERWHEEL_EXCL));
	EXPECT_EQ(DONE, cancel(t));
	EXPECT_EQ(WAS_PARKED, MOVE(3 * UNIT, TIMERWHEEL_EXCL));
	EXPECT_ENTRY(3 * UNIT, ARMED);
	ADVANCE(3 * UNIT, 1);
	EXPECT_EQ(-EEXIST, MOVE(4 * UNIT, TIMERWHEEL_EXCL));
	EXPECT_EQ(WAS_DUE, MOVE(4 * UNIT, 0));
	EXPECT_NO_EVENT();
	ADVANCE(4 * UNIT, 1);
	EXPECT_EVENT(4 * UNIT);
	EXPECT_EQ(WAS_PARKED, MOVE(5 * UNIT, TIMERWHEEL_EXCL));
	EXPECT_ENTRY(5 * UNIT, ARMED);
	EXPECT_EQ(WAS_PENDING, rm_handle(t->w, t->index, t->generation, &value));
	EXPECT_EQ(~7ULL, value);
	EXPECT_EQ(-ENOENT, MOVE(5 * UNIT, 0));
	EXPECT_EQ(-ENOENT, rm_handle(t->w, t->index, t->generation, &value));

	/* cancelled, parked */
	ASSERT_EQ(WAS_NONE, add_timer(t, 10 * UNIT, TIMERWHEEL_ABS, 0));
	EXPECT_EQ(DONE, cancel(t));
	EXPECT_EQ(WAS_PARKED, rm_handle(t->w, t->index, t->generation, &value));
	ASSERT_EQ(WAS_NONE, add_timer(t, 10 * UNIT, TIMERWHEEL_ABS, 0));
	EXPECT_EQ(DONE, cancel(t));
	ADVANCE(20 * UNIT, 0);
	EXPECT_EQ(WAS_PARKED, rm_handle(t->w, t->index, t->generation, &value));
	EXPECT_EQ(~7ULL, value);
	/* another generation: the timer does not change */
	ASSERT_EQ(WAS_NONE, add_timer(t, 30 * UNIT, TIMERWHEEL_ABS, 0));
	EXPECT_EQ(-ENOENT, move_handle(t->w, t->index, t->generation - 4, 1, 0));
	EXPECT_EQ(-ENOENT, move_handle(t->w, t->index, t->generation | TIMERWHEEL_TABLE_ARMED,
				       1, 0));
	EXPECT_ENTRY(30 * UNIT, ARMED);
#undef MOVE
}

/* ADD replaces value and deadline. Index and generation stay. */
TEST_F(one, replaced)
{
	struct timer old = self->t;

	EXPECT_EQ(WAS_PENDING, add_timer(&self->t, 5 * UNIT, TIMERWHEEL_ABS, 0));
	EXPECT_EQ(DONE, cancel(&old));
	EXPECT_EQ(WAS_PARKED, add_timer(&self->t, 3 * UNIT, TIMERWHEEL_ABS, 0));
	EXPECT_ENTRY(3 * UNIT, ARMED);
	ADVANCE(3 * UNIT, 1);
	EXPECT_EQ(WAS_DUE, add_timer(&self->t, 4 * UNIT, TIMERWHEEL_ABS, 0));
	EXPECT_NO_EVENT();
	ADVANCE(4 * UNIT, 1);
	EXPECT_EVENT(4 * UNIT);
	EXPECT_EQ(WAS_PARKED, add_timer(&self->t, 8 * UNIT, TIMERWHEEL_ABS, 0));
	EXPECT_EQ(-EEXIST, add_timer(&self->t, 9 * UNIT, TIMERWHEEL_ABS | TIMERWHEEL_EXCL, 0));
	EXPECT_EQ(old.index, self->t.index);
	EXPECT_EQ(old.generation, self->t.generation);
	EXPECT_EQ(DONE, refresh(&old, 9 * UNIT));
}

/* REMOVE of an armed, a cancelled, a due and a parked timer */
TEST_F(one, removed)
{
	struct timerwheel_remove rem = { .key = 7 };
	struct timer old = self->t;

	EXPECT_EQ(DONE, refresh(&self->t, 20 * UNIT));
	EXPECT_EQ(WAS_PENDING, remove_elem(self->t.w, &rem));
	EXPECT_EQ(20 * UNIT, rem.left);
	EXPECT_EQ(0, entry(&self->t));
	EXPECT_EQ(GONE, arm(&self->t, HOUR));
	EXPECT_EQ(GONE, refresh(&self->t, HOUR));
	EXPECT_EQ(GONE, cancel(&self->t));
	EXPECT_EQ(0, entry(&self->t));
	EXPECT_EQ(-ENOENT, rm(self->t.w, 7));

	/* the next owner of the index */
	ASSERT_EQ(WAS_NONE, add_timer(&self->t, 10 * UNIT, TIMERWHEEL_ABS, 0));
	EXPECT_EQ(old.index, self->t.index);
	EXPECT_EQ(GONE, cancel(&old));
	EXPECT_EQ(GONE, arm(&old, 20 * UNIT));
	EXPECT_ENTRY(10 * UNIT, ARMED);
	EXPECT_EQ(DONE, cancel(&self->t));
	EXPECT_EQ(GONE, arm(&old, 20 * UNIT));
	EXPECT_EQ(WAS_PARKED, rm(self->t.w, 7));

	ASSERT_EQ(WAS_NONE, add_timer(&self->t, UNIT, 0, 0));
	ADVANCE(UNIT, 1);
	EXPECT_EQ(WAS_DUE, rm(self->t.w, 7));
	EXPECT_EQ(GONE, cancel(&self->t));
	EXPECT_NO_EVENT();

	ASSERT_EQ(WAS_NONE, add_timer(&self->t, UNIT, 0, 0));
	ADVANCE(2 * UNIT, 1);
	EXPECT_EVENT(2 * UNIT);
	EXPECT_EQ(WAS_PARKED, rm(self->t.w, 7));
	EXPECT_EQ(GONE, cancel(&self->t));
	EXPECT_EQ(0, entry(&self->t));
}

/* LIST and DRAIN of timers in all states */
TEST_F(one, listed_and_drained)
{
	enum { ARMED, CANCELLED, PARKED, FIRED, DUE, STATES };
	static const int was[] = {
		[ARMED] = WAS_PENDING, [CANCELLED] = WAS_PARKED, [PARKED] = WAS_PARKED,
		[FIRED] = WAS_PARKED, [DUE] = WAS_DUE,
	};
	struct timer t[STATES], *one;
	struct timerwheel_entry list[STATES + 1];
	struct timerwheel_stats stats;
	int drained, i;

	ASSERT_EQ(WAS_PENDING, rm(self->t.w, 7));
	for (i = 0; i < STATES; i++) {
		t[i] = self->t;
		t[i].key = i;
		ASSERT_EQ(WAS_NONE, add_timer(&t[i], i == DUE ? 3 * UNIT : 2 * UNIT,
					      TIMERWHEEL_ABS, 0));
	}
	EXPECT_EQ(DONE, arm(&t[ARMED], 100 * UNIT));
	EXPECT_EQ(DONE, arm(&t[CANCELLED], 50 * UNIT));
	EXPECT_EQ(DONE, cancel(&t[CANCELLED]));
	EXPECT_EQ(DONE, cancel(&t[PARKED]));
	ADVANCE(2 * UNIT, 1);
	ASSERT_EQ(1, take(self->t.w, &(struct timerwheel_event){ 0 }, 1));
	ADVANCE(3 * UNIT, 1);
	ASSERT_EQ(0, timerwheel_stats(self->t.w, &stats));
	EXPECT_EQ(2, stats.pending);
	EXPECT_EQ(2, stats.parked);
	EXPECT_EQ(1, stats.due);
	EXPECT_EQ(true, balanced(self->t.w));
	for (drained = 0; drained < 2; drained++) {
		poison(list, sizeof(list));
		ASSERT_EQ(STATES, drained ? timerwheel_drain(self->t.w, list, STATES + 1, 0) :
			  timerwheel_list(self->t.w, list, STATES + 1, &(uint64_t){ 0 }));
		for (i = 0; i < STATES; i++) {
			ASSERT_GT(STATES, list[i].key);
			one = &t[list[i].key];
			EXPECT_EQ(was[list[i].key], list[i].result);
			EXPECT_EQ(one->index, list[i].index);
			EXPECT_EQ(one->generation, list[i].generation);
			if (list[i].key == ARMED)
				EXPECT_EQ(100 * UNIT, list[i].deadline);
			if (list[i].key == CANCELLED)
				EXPECT_EQ(50 * UNIT, list[i].deadline);
			if (drained)
				EXPECT_EQ(GONE, arm(one, HOUR));
		}
	}
	ASSERT_EQ(0, timerwheel_stats(self->t.w, &stats));
	EXPECT_EQ(0, stats.pending + stats.parked + stats.due);
}

/* With a linger a timer is cancelled when its event was taken, and armed again in memory. */
TEST_F(one, linger)
{
	struct timerwheel_entry got;
	uint64_t now = 0;
	int i;

	ASSERT_EQ(WAS_PENDING, add_timer(&self->t, 10 * UNIT, TIMERWHEEL_ABS, 5 * UNIT));
	for (i = 0; i < 3; i++) {
		now += 20 * UNIT;
		ADVANCE(now, 1);
		EXPECT_EQ(TOO_LATE, cancel(&self->t));
		EXPECT_EVENT(now - 10 * UNIT);
		EXPECT_ENTRY(now + 5 * UNIT, CANCELLED);
		EXPECT_EQ(NOT_ARMED, cancel(&self->t));
		EXPECT_EQ(WAS_PARKED, get(self->t.w, 7, &got));
		EXPECT_EQ(TIMERWHEEL_LINGER, got.flags);
		EXPECT_EQ(5 * UNIT, got.period);
		EXPECT_EQ(now + 5 * UNIT, got.deadline);
		EXPECT_EQ(NEEDS_CALL, arm(&self->t, now + 4 * UNIT));
		EXPECT_EQ(DONE, arm(&self->t, now + 10 * UNIT));
	}
	EXPECT_EQ(DONE, cancel(&self->t));
	ADVANCE(HOUR, 0);
	EXPECT_ENTRY(now + 10 * UNIT, PARKED);
	EXPECT_NO_EVENT();
	/* without a linger */
	EXPECT_EQ(WAS_PARKED, add_timer(&self->t, 0, 0, 0));
	EXPECT_EVENT(HOUR);
	EXPECT_GET(WAS_PARKED, HOUR, 1);
	/* with the longest linger */
	EXPECT_EQ(WAS_PARKED, add_timer(&self->t, 0, 0, TIMERWHEEL_TIME_MAX));
	EXPECT_EVENT(HOUR);
	EXPECT_ENTRY(TIMERWHEEL_TIME_MAX & ~(UNIT - 1), CANCELLED);
}

/* Garbage in an entry is ignored. */
TEST_F(one, nonsense)
{
	const uint64_t words[] = {
		0, ~0ULL, self->t.generation | TIMERWHEEL_TABLE_FIRED | 1ULL << 40,
		self->t.generation | TIMERWHEEL_TABLE_PARKED | 1ULL << 40,
		(self->t.generation + 4) | TIMERWHEEL_TABLE_ARMED | 1ULL << 40,
	};
	uint64_t at = 10 * UNIT;
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++, at += 20 * UNIT) {
		self->t.table.entries[self->t.index] = words[i];
		EXPECT_GET(WAS_PENDING, at, 0);
		ADVANCE(at - 1, 0);
		ADVANCE(at + 1, 1);
		EXPECT_ENTRY(at, FIRED);
		EXPECT_EVENT(at);
		ASSERT_EQ(WAS_PARKED, move_to(&self->t, at + 20 * UNIT, 0));
	}
}

/* An index gets all generations in turn, none of them 0, each with room for the state. */
TEST_F(one, generations)
{
	uint32_t last = self->t.generation;
	int i;

	for (i = 0; i < 2500; i++) {
		ASSERT_EQ(WAS_PENDING, rm(self->t.w, 7));
		ASSERT_EQ(WAS_NONE, add_timer(&self->t, HOUR, 0, 0));
		ASSERT_EQ(last + 4 < UNIT ? last + 4 : 4, self->t.generation);
		last = self->t.generation;
	}
}

TEST_F(one, invalid)
{
	struct timerwheel_add elem = { .key = 9, .deadline = HOUR, .period = HOUR };
	struct timerwheel *plain = wheel_manual(16, 0);
	struct timerwheel_queue *q;

	EXPECT_EQ(-EINVAL, add_elem(self->t.w, &elem));
	elem.flags = TIMERWHEEL_LINGER;
	elem.period = 0;
	EXPECT_EQ(-EINVAL, add_elem(self->t.w, &elem));
	elem.period = TIMERWHEEL_TIME_MAX + 1;
	EXPECT_EQ(-EINVAL, add_elem(self->t.w, &elem));
	elem.period = HOUR;
	ASSERT_NE(NULL, plain);
	EXPECT_EQ(-EINVAL, add_elem(plain, &elem));
	elem.flags = 0;
	EXPECT_EQ(WAS_NONE, add_elem(plain, &elem));
	EXPECT_EQ(-EINVAL, move(plain, 9, HOUR, TIMERWHEEL_EXCL));
	EXPECT_EQ(-EINVAL, timerwheel_arm(plain, elem.index, elem.generation, HOUR));
	EXPECT_EQ(-EINVAL, timerwheel_refresh(plain, elem.index, elem.generation, HOUR));
	EXPECT_EQ(-EINVAL, timerwheel_cancel(plain, elem.index, elem.generation));
	ASSERT_EQ(0, timerwheel_queue_new(&q, plain, 0, NULL, NULL));
	EXPECT_EQ(-EINVAL, timerwheel_queue_arm(q, 9, elem.index, elem.generation, HOUR));
	EXPECT_EQ(-EINVAL, timerwheel_queue_refresh(q, 9, elem.index, elem.generation, HOUR));
	EXPECT_EQ(-EINVAL, timerwheel_queue_cancel(q, 9, elem.index, elem.generation));
	timerwheel_queue_free(q);
	timerwheel_close(plain);
}

#ifndef PROCESS
/* Adopted without its table, and with it */
TEST_F(one, adopted)
{
	struct timerwheel *other;
	struct timer t = self->t;

	ASSERT_EQ(0, timerwheel_adopt(&other, dup(timerwheel_share(t.w)), false));
	EXPECT_EQ(-EINVAL, timerwheel_cancel(other, t.index, t.generation));
	timerwheel_close(other);
	ASSERT_EQ(0, timerwheel_adopt(&other, dup(timerwheel_share(t.w)), true));
	t.w = other;
	ASSERT_EQ(0, timerwheel_table(other, &t.table));
	EXPECT_EQ(DONE, cancel(&t));
	EXPECT_EQ(NOT_ARMED, cancel(&self->t));
	timerwheel_close(other);
}
#endif

/* ---- queues ---------------------------------------------------------------------------------- */

/* System calls since the last call of this function; the process back end has none to count */
static int calls(void)
{
	int n = ioctls;

	ioctls = 0;
	return n;
}

#define EXPECT_CALLS(n) EXPECT_EQ(ON_DEVICE ? (n) : 0, calls())

FIXTURE(queue)
{
	struct timer t;
	struct timerwheel_queue *q;
	int failed;
};

static void count(void *arg, unsigned long op, const void *elem)
{
	if (op == TIMERWHEEL_IOC_MOVE && ((const struct timerwheel_move *)elem)->result < 0)
		++*(int *)arg;
}

FIXTURE_SETUP(queue)
{
	struct timer *t = &self->t;

	t->w = wheel_resident(TIMERWHEEL_CLOCK_MANUAL, 1);
	ASSERT_NE(NULL, t->w);
	ASSERT_EQ(0, timerwheel_table(t->w, &t->table));
	t->key = 7;
	ASSERT_EQ(WAS_NONE, add_timer(t, 10 * UNIT, TIMERWHEEL_ABS, 0));
	ASSERT_EQ(0, timerwheel_queue_new(&self->q, t->w, 16, count, &self->failed));
	calls();
}

FIXTURE_TEARDOWN(queue)
{
	timerwheel_queue_free(self->q);
	EXPECT_EQ(true, balanced(self->t.w));
	timerwheel_close(self->t.w);
	EXPECT_EQ(false, leaks());
}

static int q_arm(struct timerwheel_queue *q, const struct timer *t, uint64_t deadline)
{
	return timerwheel_queue_arm(q, t->key, t->index, t->generation, deadline);
}

static int q_refresh(struct timerwheel_queue *q, const struct timer *t, uint64_t deadline)
{
	return timerwheel_queue_refresh(q, t->key, t->index, t->generation, deadline);
}

static int q_cancel(struct timerwheel_queue *q, const struct timer *t)
{
	return timerwheel_queue_cancel(q, t->key, t->index, t->generation);
}

TEST_F(queue, in_memory)
{
	EXPECT_EQ(DONE, q_arm(self->q, &self->t, 20 * UNIT));
	EXPECT_EQ(DONE, q_refresh(self->q, &self->t, 21 * UNIT));
	EXPECT_ENTRY(21 * UNIT, ARMED);
	EXPECT_EQ(DONE, q_cancel(self->q, &self->t));
	EXPECT_EQ(NOT_ARMED, q_cancel(self->q, &self->t));
	EXPECT_EQ(NOT_ARMED, q_refresh(self->q, &self->t, 22 * UNIT));
	EXPECT_EQ(DONE, q_arm(self->q, &self->t, 22 * UNIT));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_CALLS(0);
	ADVANCE(22 * UNIT, 1);
	EXPECT_EQ(TOO_LATE, q_cancel(self->q, &self->t));
	EXPECT_EQ(TOO_LATE, q_refresh(self->q, &self->t, 23 * UNIT));
	EXPECT_EVENT(22 * UNIT);
	EXPECT_EQ(WAS_PARKED, rm(self->t.w, 7));
	calls();
	EXPECT_EQ(GONE, q_arm(self->q, &self->t, 22 * UNIT));
	EXPECT_EQ(GONE, q_refresh(self->q, &self->t, 22 * UNIT));
	EXPECT_EQ(GONE, q_cancel(self->q, &self->t));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_CALLS(0);
}

/* An operation that needs a call gets it in the next flush, and only then. */
TEST_F(queue, with_the_flush)
{
	EXPECT_EQ(NEEDS_CALL, q_arm(self->q, &self->t, 5 * UNIT));
	EXPECT_CALLS(0);
	EXPECT_ENTRY(10 * UNIT, ARMED);
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_CALLS(1);
	EXPECT_ENTRY(5 * UNIT, ARMED);
	EXPECT_EQ(NEEDS_CALL, q_refresh(self->q, &self->t, 4 * UNIT));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_ENTRY(4 * UNIT, ARMED);
	/* due, and taken */
	ADVANCE(4 * UNIT, 1);
	EXPECT_EQ(NEEDS_CALL, q_arm(self->q, &self->t, 6 * UNIT));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_NO_EVENT();
	ADVANCE(6 * UNIT, 1);
	EXPECT_EVENT(6 * UNIT);
	EXPECT_EQ(NEEDS_CALL, q_arm(self->q, &self->t, 8 * UNIT));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_ENTRY(8 * UNIT, ARMED);
	EXPECT_EQ(0, self->failed);
}

/* An operation in memory follows the queued operations on the timer, and overrides them. */
TEST_F(queue, in_order)
{
	struct timer other = self->t;
	struct timerwheel_remove rem = { .key = 7 };

	EXPECT_EQ(NEEDS_CALL, q_arm(self->q, &self->t, 5 * UNIT));
	EXPECT_EQ(NEEDS_CALL, q_arm(self->q, &self->t, 20 * UNIT));
	calls();
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_CALLS(1);
	EXPECT_ENTRY(20 * UNIT, ARMED);

	EXPECT_EQ(NEEDS_CALL, q_arm(self->q, &self->t, 5 * UNIT));
	EXPECT_EQ(DONE, q_cancel(self->q, &self->t));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_CALLS(1);
	EXPECT_ENTRY(5 * UNIT, CANCELLED);

	ADVANCE(6 * UNIT, 0);
	EXPECT_EQ(NEEDS_CALL, q_arm(self->q, &self->t, 10 * UNIT));
	calls();
	EXPECT_EQ(DONE, q_refresh(self->q, &self->t, 11 * UNIT));
	EXPECT_CALLS(1);
	EXPECT_ENTRY(11 * UNIT, ARMED);

	/* Operations on other keys stay queued. */
	other.key = 8;
	ASSERT_EQ(WAS_NONE, add_timer(&other, 20 * UNIT, TIMERWHEEL_ABS, 0));
	EXPECT_EQ(NEEDS_CALL, q_arm(self->q, &other, 10 * UNIT));
	calls();
	EXPECT_EQ(DONE, q_cancel(self->q, &self->t));
	EXPECT_EQ(DONE, q_arm(self->q, &self->t, 11 * UNIT));
	EXPECT_EQ(DONE, q_refresh(self->q, &self->t, 11 * UNIT));
	EXPECT_CALLS(0);
	EXPECT_EQ(20 * UNIT, entry(&other) & ~(UNIT - 1));

	/* The flush ends the timer first. */
	EXPECT_EQ(0, timerwheel_queue_remove(self->q, &rem));
	EXPECT_EQ(NEEDS_CALL, q_arm(self->q, &self->t, 30 * UNIT));
	EXPECT_EQ(GONE, q_cancel(self->q, &self->t));
	EXPECT_EQ(1, self->failed);
}

#ifndef PROCESS
/* Operations that were submitted and have no result yet are still queued. */
TEST_F(queue, submitted)
{
	struct timerwheel_command commands[TIMERWHEEL_COMMANDS];
	struct timer *t = &self->t, other = { .w = t->w, .table = t->table, .key = 8 };

	/* The test executes no command, so the kernel need not support commands. */
	features_added = TIMERWHEEL_FEATURE_URING;
	ASSERT_EQ(WAS_NONE, add_timer(&other, 10 * UNIT, TIMERWHEEL_ABS, 0));
	ASSERT_EQ(NEEDS_CALL, q_arm(self->q, t, 5 * UNIT));
	ASSERT_EQ(1, timerwheel_queue_commands(self->q, commands));
	EXPECT_EQ(NEEDS_CALL, q_arm(self->q, t, 30 * UNIT));
	EXPECT_EQ(-EBUSY, q_refresh(self->q, t, 40 * UNIT));
	EXPECT_EQ(-EBUSY, q_cancel(self->q, t));
	EXPECT_EQ(DONE, q_arm(self->q, &other, 30 * UNIT));
	ASSERT_EQ(0, timerwheel_queue_completed(self->q, 0, -ECANCELED));
	ASSERT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_EQ(DONE, q_refresh(self->q, t, 40 * UNIT));
	EXPECT_EQ(0, self->failed);
}
#endif

#ifndef PROCESS
/* A necessary flush fails: the operation has no effect. */
TEST_F(queue, error_of_a_call)
{
	EXPECT_EQ(NEEDS_CALL, q_arm(self->q, &self->t, 5 * UNIT));
	fail_ioctl = 0;
	EXPECT_EQ(-EINTR, q_cancel(self->q, &self->t));
	fail_ioctl = 0;
	EXPECT_EQ(-EINTR, q_refresh(self->q, &self->t, 6 * UNIT));
	EXPECT_ENTRY(10 * UNIT, ARMED);
	EXPECT_EQ(DONE, q_cancel(self->q, &self->t));
	EXPECT_ENTRY(5 * UNIT, CANCELLED);
}
#endif

/* ---- a running clock ------------------------------------------------------------------------- */

/* Postponed, cancelled and armed again while a thread waits. */
TEST(running)
{
	struct timer t = { .w = wheel_resident(TIMERWHEEL_CLOCK_MONOTONIC, 0), .key = 1 };
	struct timerwheel_event ev;
	uint64_t until;
	int i;

	ASSERT_NE(NULL, t.w);
	ASSERT_EQ(0, timerwheel_table(t.w, &t.table));
	ASSERT_EQ(WAS_NONE, add_timer(&t, HOUR, 0, 0));
	for (i = 0; i < 3; i++) {
		ASSERT_LE(WAS_PENDING, move(t.w, 1, 30 * MSEC, 0));
		until = timerwheel_now(t.w) + 60 * MSEC;
		/* A slow machine may be too late. */
		if (refresh(&t, until) != DONE)
			until = 0;
		ASSERT_EQ(1, timerwheel_wait(t.w, &ev, 1, PATIENCE));
		EXPECT_LE(until, ev.deadline);
		EXPECT_LE(ev.deadline, ev.fired);
		EXPECT_EQ(TOO_LATE, cancel(&t));
	}
	ASSERT_EQ(WAS_PARKED, move(t.w, 1, 30 * MSEC, 0));
	if (cancel(&t) == DONE)
		EXPECT_EQ(0, timerwheel_wait(t.w, &ev, 1, 60 * MSEC));
	timerwheel_close(t.w);
}

/* ---- races, with a ledger -------------------------------------------------------------------- */

/*
 * Each timer has an owner, a thread that arms, refreshes and cancels it, by calls where necessary
 * or at random. Another thread, the thief, cancels the timers of all owners. Each arming has its
 * own deadline, so that the event identifies it; the owner records the armings that it has ended.
 * At the end each other arming must have had its event, except for as many as the thief has
 * cancelled.
 */
#define OWNERS		2
#define KEYS		8			/* of each owner */
#define UNITS		524288			/* deadlines from the start: 4.3 s */
#define SECONDS_MAX	4

enum arming { NOTHING, ARMED, CANCELLED, REFRESHED, DELIVERED };

struct race {
	struct timerwheel *w;
	struct timer t[OWNERS * KEYS];
	uint64_t begin;				/* in units */
	unsigned int bits;
	uint64_t linger;
	atomic_uchar arming[OWNERS * KEYS][UNITS];
	/* Data written before an arming. It is not atomic, because the arming orders it. */
	int before[OWNERS * KEYS][UNITS];
	atomic_long stolen[OWNERS * KEYS];
	atomic_long armed, cancelled, refreshed, events, too_late, moved, bad;
	atomic_bool stop;
	atomic_int owners;
};

static void bad(struct race *r, const char *what, uint64_t key, long n)
{
	if (atomic_fetch_add(&r->bad, 1) < 10)
		fprintf(stderr, "# key %llu: %s: %ld\n", (unsigned long long)key, what, n);
}

/* An owner's knowledge of a timer */
struct known {
	uint64_t deadline;			/* of the last arming, in units from the start */
	bool ended;
};

/* A deadline soon, but later than the last one; 0: there is none, or the race has ended */
static uint64_t later(struct race *r, const struct known *k, uint64_t *state)
{
	uint64_t at = (timerwheel_now(r->w) >> r->bits) - r->begin;

	at += 1 + rand64(state) % 32;
	return at > k->deadline && at < UNITS ? at : 0;
}

/* Announce an arming, so that its event is expected */
static uint64_t announce(struct race *r, int key, uint64_t at)
{
	atomic_store(&r->arming[key][at], ARMED);
	r->before[key][at] = key + 1;
	return (r->begin + at) << r->bits;
}

/* It was not armed. */
static void denounce(struct race *r, int key, uint64_t at)
{
	atomic_store(&r->arming[key][at], NOTHING);
}

static void began(struct race *r, struct known *k, uint64_t at)
{
	*k = (struct known){ .deadline = at };
	atomic_fetch_add(&r->armed, 1);
}

/* The owner has ended the last arming. */
static void ended(struct race *r, int key, const struct known *k, enum arming how)
{
	int was = atomic_exchange(&r->arming[key][k->deadline], how);

	if (was != ARMED)
		bad(r, how == CANCELLED ? "cancelled, and" : "refreshed, and", key, was);
	atomic_fetch_add(how == CANCELLED ? &r->cancelled : &r->refreshed, 1);
}

static void owner_arm(struct race *r, int key, struct known *k, uint64_t *state)
{
	uint64_t at = later(r, k, state);
	int result;

	if (!at)
		return;
	switch (arm(&r->t[key], announce(r, key, at))) {
	case DONE:
		began(r, k, at);
		return;
	case NEEDS_CALL:
		result = move_to(&r->t[key], (r->begin + at) << r->bits, TIMERWHEEL_EXCL);
		if (result == WAS_PARKED) {
			began(r, k, at);
			atomic_fetch_add(&r->moved, 1);
			return;
		}
		/* Its event waits. */
		if (result != -EEXIST)
			bad(r, "MOVE", key, result);
		break;
	default:
		bad(r, "arm", key, 0);
	}
	denounce(r, key, at);
}

static void owner_refresh(struct race *r, int key, struct known *k, uint64_t *state)
{
	uint64_t at = later(r, k, state);
	int answer;

	if (!at)
		return;
	answer = refresh(&r->t[key], announce(r, key, at));
	if (answer == DONE) {
		ended(r, key, k, REFRESHED);
		began(r, k, at);
		return;
	}
	if (answer == TOO_LATE)
		atomic_fetch_add(&r->too_late, 1);
	else if (answer != NOT_ARMED)
		bad(r, "refresh", key, answer);
	denounce(r, key, at);
	k->ended = true;
}

static void owner_cancel(struct race *r, int key, struct known *k)
{
	int answer = cancel(&r->t[key]);

	if (answer == DONE)
		ended(r, key, k, CANCELLED);
	else if (answer == TOO_LATE)
		atomic_fetch_add(&r->too_late, 1);
	else if (answer != NOT_ARMED)
		bad(r, "cancel", key, answer);
	k->ended = true;
}

/* Set another deadline by a call, which reports how the last arming has ended */
static void owner_move(struct race *r, int key, struct known *k, uint64_t *state)
{
	uint64_t at = later(r, k, state);
	int result;

	if (!at)
		return;
	result = move_to(&r->t[key], announce(r, key, at), 0);
	if (result == WAS_PENDING || result == WAS_DUE)
		ended(r, key, k, REFRESHED);
	else if (result != WAS_PARKED)
		bad(r, "MOVE", key, result);
	began(r, k, at);
	atomic_fetch_add(&r->moved, 1);
}

static void *owner(void *arg)
{
	struct race *r = arg;
	int nr = atomic_fetch_add(&r->owners, 1), key, i;
	struct known known[KEYS] = { 0 };
	uint64_t state = seed() + nr;

	for (i = 0; i < KEYS; i++)
		known[i].ended = true;
	while (!atomic_load(&r->stop)) {
		i = rand64(&state) % KEYS;
		key = nr * KEYS + i;
		if (known[i].ended)
			owner_arm(r, key, &known[i], &state);
		else if (rand64(&state) % 16 == 0)
			owner_move(r, key, &known[i], &state);
		else if (rand64(&state) % 16)
			owner_refresh(r, key, &known[i], &state);
		else
			owner_cancel(r, key, &known[i]);
		if (rand64(&state) % 64 == 0)
			nap(USEC);
	}
	return NULL;
}

static void *thief(void *arg)
{
	struct race *r = arg;
	uint64_t state = seed();
	int key;

	while (!atomic_load(&r->stop)) {
		key = rand64(&state) % (OWNERS * KEYS);
		if (cancel(&r->t[key]) == DONE)
			atomic_fetch_add(&r->stolen[key], 1);
		nap(20 * USEC);
	}
	return NULL;
}

static void race_event(struct race *r, const struct timerwheel_event *ev)
{
	uint64_t at = (ev->deadline >> r->bits) - r->begin;
	int was;

	if (ev->key >= OWNERS * KEYS || at >= UNITS || ev->fired < ev->deadline) {
		bad(r, "event", ev->key, at);
		return;
	}
	was = atomic_exchange(&r->arming[ev->key][at], DELIVERED);
	if (was != ARMED)
		bad(r, "fired, and", ev->key, was);
	else if (r->before[ev->key][at] != (int)ev->key + 1)
		bad(r, "what was written before", ev->key, r->before[ev->key][at]);
	atomic_fetch_add(&r->events, 1);
}

static long race_take(struct race *r, int64_t timeout)
{
	struct timerwheel_event events[16];
	long n, i;

	n = timerwheel_wait(r->w, events, 16, timeout);
	for (i = 0; i < n; i++)
		race_event(r, &events[i]);
	return n;
}

FIXTURE(race)
{
	struct race *r;
};

FIXTURE_VARIANT(race)
{
	uint64_t linger;
	uint32_t ring;
};

FIXTURE_VARIANT_ADD(race, read)
{
	.linger = 0,
};

FIXTURE_VARIANT_ADD(race, linger)
{
	.linger = 200 * USEC,
};

FIXTURE_VARIANT_ADD(race, ring)
{
	.ring = 16,
};

FIXTURE_SETUP(race)
{
	struct timerwheel_config config = {
		.backend = BACKEND, .tick = 10 * USEC, .resident = true, .ring = variant->ring,
	};
	struct timerwheel_event ev;
	struct race *r;
	int key;

	r = calloc(1, sizeof(*r));
	ASSERT_NE(NULL, r);
	self->r = r;
	ASSERT_EQ(0, timerwheel_open(&r->w, &config));
	for (key = 0; key < OWNERS * KEYS; key++) {
		r->t[key] = (struct timer){ .w = r->w, .key = key };
		ASSERT_EQ(0, timerwheel_table(r->w, &r->t[key].table));
		ASSERT_EQ(WAS_NONE, add_timer(&r->t[key], 0, 0, variant->linger));
		ASSERT_EQ(1, timerwheel_wait(r->w, &ev, 1, PATIENCE));
	}
	r->bits = r->t[0].table.bits;
	r->begin = timerwheel_now(r->w) >> r->bits;
}

FIXTURE_TEARDOWN(race)
{
	EXPECT_EQ(true, balanced(self->r->w));
	timerwheel_close(self->r->w);
	free(self->r);
	EXPECT_EQ(false, leaks());
}

static bool raced_enough(struct race *r)
{
	return atomic_load(&r->cancelled) > 99 && atomic_load(&r->refreshed) > 99 &&
	       atomic_load(&r->moved) > 99 && atomic_load(&r->events) > 99;
}

TEST_F_TIMEOUT(race, each_ends_once, 300)
{
	const char *env = getenv("TW_RACE_SECONDS");
	int seconds = env ? atoi(env) : 1, key, i;
	struct race *r = self->r;
	pthread_t thread[OWNERS + 1];
	struct timerwheel_stats s;
	uint64_t begin;
	long left;

	if (seconds > SECONDS_MAX)
		seconds = SECONDS_MAX;
	for (i = 0; i <= OWNERS; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, i < OWNERS ? owner : thief, r));
	begin = clock_ns(CLOCK_MONOTONIC);
	/* Continue on a slow machine while there are deadlines. */
	while (clock_ns(CLOCK_MONOTONIC) < begin + seconds * SEC ||
	       (!raced_enough(r) && clock_ns(CLOCK_MONOTONIC) < begin + SECONDS_MAX * SEC))
		ASSERT_LE(0, race_take(r, MSEC));
	atomic_store(&r->stop, true);
	for (i = 0; i <= OWNERS; i++)
		ASSERT_EQ(0, pthread_join(thread[i], NULL));
	/* All armed timers fire, and all cancelled timers are parked. */
	begin = clock_ns(CLOCK_MONOTONIC);
	do {
		ASSERT_LE(0, race_take(r, 10 * MSEC));
		ASSERT_EQ(0, timerwheel_stats(r->w, &s));
	} while (s.pending + s.due && clock_ns(CLOCK_MONOTONIC) < begin + PATIENCE);
	while (race_take(r, 0) > 0)
		;
	for (key = 0; key < OWNERS * KEYS; key++) {
		EXPECT_NE(DONE, cancel(&r->t[key]));
		for (left = 0, i = 0; i < UNITS; i++)
			left += atomic_load(&r->arming[key][i]) == ARMED;
		if (left != atomic_load(&r->stolen[key]))
			bad(r, "cancelled by the thief, or without an end", key, left);
	}
	EXPECT_EQ(0, atomic_load(&r->bad));
	TH_LOG("%ld armed, %ld cancelled, %ld refreshed, %ld moved, %ld events, %ld too late",
	       atomic_load(&r->armed), atomic_load(&r->cancelled), atomic_load(&r->refreshed),
	       atomic_load(&r->moved), atomic_load(&r->events), atomic_load(&r->too_late));
	EXPECT_LT(0, atomic_load(&r->armed));
	EXPECT_LT(0, atomic_load(&r->cancelled));
	EXPECT_LT(0, atomic_load(&r->refreshed));
	EXPECT_LT(0, atomic_load(&r->moved));
	EXPECT_LT(0, atomic_load(&r->events));
}

/* A thread that has cancelled sees the data written before the arming. See ThreadSanitizer. */
static void *cancels(void *arg)
{
	struct race *r = arg;
	int i;

	for (i = 1; i <= 1000; i++) {
		while (cancel(&r->t[0]) != DONE)
			nap(USEC);
		if (r->before[0][0] != i)
			bad(r, "what was written before", 0, i);
		atomic_store(&r->stolen[0], i);
	}
	return NULL;
}

TEST_F(race, cancelled_by_another)
{
	struct race *r = self->r;
	pthread_t thread;
	int i;

	ASSERT_LE(WAS_PENDING, move(r->w, 0, HOUR, 0));
	ASSERT_EQ(DONE, cancel(&r->t[0]));
	ASSERT_EQ(0, pthread_create(&thread, NULL, cancels, r));
	for (i = 1; i <= 1000; i++) {
		r->before[0][0] = i;
		ASSERT_EQ(DONE, arm(&r->t[0], timerwheel_now(r->w) + 2 * HOUR));
		while (atomic_load(&r->stolen[0]) != i)
			nap(USEC);
	}
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, atomic_load(&r->bad));
}

/* Two threads arm the same cancelled timer: one by MOVE with EXCL, one in memory for later. */
struct two {
	struct timer t;
	atomic_int round, done;
	atomic_int bad;
};

#define ROUNDS	1000

static uint64_t deadline_in(int round)
{
	return HOUR + round * 2 * UNIT;
}

static void *arms(void *arg)
{
	struct two *two = arg;
	int round;

	for (round = 1; round <= ROUNDS; round++) {
		while (atomic_load(&two->round) != round)
			sched_yield();
		if (arm(&two->t, deadline_in(round) + UNIT) != DONE)
			atomic_fetch_add(&two->bad, 1);
		atomic_store(&two->done, round);
	}
	return NULL;
}

TEST(armed_by_two)
{
	struct two two = { .t = { .w = wheel_resident(TIMERWHEEL_CLOCK_MANUAL, 1), .key = 1 } };
	const uint64_t begin = HOUR & ~(UNIT - 1);
	pthread_t thread;
	int round, was;

	ASSERT_NE(NULL, two.t.w);
	ASSERT_EQ(0, timerwheel_table(two.t.w, &two.t.table));
	ASSERT_EQ(WAS_NONE, add_timer(&two.t, begin, TIMERWHEEL_ABS, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, arms, &two));
	for (round = 1; round <= ROUNDS; round++) {
		ASSERT_EQ(DONE, cancel(&two.t));
		atomic_store(&two.round, round);
		was = move_to(&two.t, deadline_in(round), TIMERWHEEL_EXCL);
		while (atomic_load(&two.done) != round)
			sched_yield();
		if (was != WAS_PARKED && was != -EEXIST)
			atomic_fetch_add(&two.bad, 1);
		ASSERT_EQ(((deadline_in(round) + 2 * UNIT - 1) & ~(UNIT - 1)) | two.t.generation |
			  TIMERWHEEL_TABLE_ARMED, entry(&two.t));
	}
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, atomic_load(&two.bad));
	timerwheel_close(two.t.w);
}

TEST_HARNESS_MAIN
