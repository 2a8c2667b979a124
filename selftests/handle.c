// SPDX-License-Identifier: GPL-2.0
/*
 * handle: MOVE and REMOVE by index and generation. Tests their effect on a timer in each state, on
 * this CPU and on another; handles whose timer no longer exists; long batches; and a race on few
 * indices with a ledger. abi tests layouts, flags and faults, and race all other races.
 *
 * TW_RACE_SECONDS: duration of the race (2). TW_SEED: see tw_test.h.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include "tw_test.h"

#define KEY	7
#define VALUE	0x1234567890abcdefULL
#define MAPPED	(64 * 1024)		/* bytes of the deadline table */

/* The difference between the wheel's clock and the caller's is small: no test takes this long. */
#define ABOUT	MINUTE

static __u64 now_of(int fd)
{
	struct timerwheel_info info;

	return tw_info(fd, &info) ? ~0ULL : info.now;
}

static int get_result(int fd, __u64 key)
{
	struct timerwheel_entry ent;

	return tw_get1(fd, key, &ent);
}

static struct timerwheel_stats stats_of(int fd)
{
	struct timerwheel_stats stats;

	if (tw_stats(fd, &stats))
		abort();
	return stats;
}

/* No event waits */
static bool quiet(int fd)
{
	struct timerwheel_event ev;

	return dev_read(fd, &ev, 1) == -EAGAIN;
}

/* Exactly one event waits; reads it. */
static bool one_event(int fd, __u64 key, __u64 value)
{
	struct timerwheel_event ev[2];

	return dev_read(fd, ev, 2) == 1 && ev->key == key && ev->value == value;
}

static __u64 *map_table(int fd)
{
	void *p = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       TIMERWHEEL_MMAP_DEADLINES);

	return p == MAP_FAILED ? NULL : p;
}

/* --- A timer in the base of this CPU or of another CPU ------------------------------------ */

FIXTURE(one) {
	int fd;
	int home;			/* the CPU whose timer it is */
	__u64 *table;			/* NULL: not mapped */
	struct timerwheel_add add;
};

FIXTURE_VARIANT(one) {
	__u32 clock;
	bool elsewhere;
	bool mapped;
};

FIXTURE_VARIANT_ADD(one, manual) { .clock = TIMERWHEEL_CLOCK_MANUAL };
FIXTURE_VARIANT_ADD(one, manual_mapped) { .clock = TIMERWHEEL_CLOCK_MANUAL, .mapped = true };
FIXTURE_VARIANT_ADD(one, here) { .clock = TIMERWHEEL_CLOCK_MONOTONIC };
FIXTURE_VARIANT_ADD(one, here_mapped) { .clock = TIMERWHEEL_CLOCK_MONOTONIC, .mapped = true };
FIXTURE_VARIANT_ADD(one, elsewhere) { .clock = TIMERWHEEL_CLOCK_MONOTONIC, .elsewhere = true };
FIXTURE_VARIANT_ADD(one, elsewhere_mapped) {
	.clock = TIMERWHEEL_CLOCK_MONOTONIC, .elsewhere = true, .mapped = true,
};

/* ADD, on the CPU of this test's timers */
static int add_there(int fd, int home, struct timerwheel_add *add)
{
	int ret;

	if (tw_pin(home))
		abort();
	ret = tw_add_elem(fd, add);
	return tw_pin(0) ?: ret;
}

FIXTURE_SETUP(one)
{
	self->home = variant->elsewhere;
	if (self->home && tw_pin(1))
		SKIP(return, "only one CPU");
	self->fd = variant->mapped ? tw_open_table(variant->clock, MSEC) :
				     tw_open_clock(variant->clock, MSEC, 0);
	ASSERT_LE(0, self->fd);
	if (variant->clock == TIMERWHEEL_CLOCK_MANUAL)
		ASSERT_EQ(0, tw_advance(self->fd, 0, SEC));
	if (variant->mapped) {
		self->table = map_table(self->fd);
		ASSERT_NE(NULL, self->table);
	}
	self->add = (struct timerwheel_add){ .key = KEY, .value = VALUE, .deadline = 2 * HOUR };
	ASSERT_EQ(0, add_there(self->fd, self->home, &self->add));
}

FIXTURE_TEARDOWN(one)
{
	struct timerwheel_stats stats = stats_of(self->fd);

	EXPECT_TRUE(tw_balanced(&stats));
	close(self->fd);
}

#define MOVE(deadline, flags) \
	tw_move_handle1(self->fd, self->add.index, self->add.generation, deadline, flags)
#define REMOVE(value) \
	tw_remove_handle1(self->fd, self->add.index, self->add.generation, value)

/* The timer is pending for @deadline ns from now, with its handle, and its entry is empty. */
/* Resolution of the deadline table of wheels with a tick of 1 ms */
#define UNIT	524288ULL

#define EXPECT_PENDING(delay) do {							\
	__u64 want = now_of(self->fd) + (delay), low = UNIT - 1;		\
	struct timerwheel_entry ent;							\
											\
	if (self->table)								\
		want = (want + low) & ~low;						\
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(self->fd, KEY, &ent));		\
	EXPECT_EQ(VALUE, ent.value);							\
	EXPECT_EQ(self->add.index, ent.index);						\
	EXPECT_EQ(self->add.generation, ent.generation);				\
	if (variant->clock == TIMERWHEEL_CLOCK_MANUAL)					\
		EXPECT_EQ(want, ent.deadline);						\
	EXPECT_GT(want + ABOUT, ent.deadline);						\
	EXPECT_LT(want - ABOUT, ent.deadline);						\
	if (self->table)								\
		EXPECT_EQ(ent.deadline | self->add.generation | TIMERWHEEL_TABLE_ARMED,	\
			  self->table[self->add.index]);				\
} while (0)

/* MOVE to later and earlier times, repeatedly */
TEST_F(one, move)
{
	static const __u64 delays[] = { 3, 3, 1, 200, 2, 1, 8000, 1 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(delays[i] * HOUR, 0));
		EXPECT_PENDING(delays[i] * HOUR);
	}
	EXPECT_EQ(ARRAY_SIZE(delays), stats_of(self->fd).moved);
	EXPECT_EQ(1, stats_of(self->fd).pending);
	EXPECT_TRUE(quiet(self->fd));
}

/* MOVE to absolute times: exact, or rounded up in a deadline table */
TEST_F(one, move_absolute)
{
	__u64 now = now_of(self->fd), low = self->table ? UNIT - 1 : 0;
	struct timerwheel_entry ent;

	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(now + 3 * HOUR + 5, TIMERWHEEL_ABS));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(self->fd, KEY, &ent));
	EXPECT_EQ((now + 3 * HOUR + 5 + low) & ~low, ent.deadline);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(now + HOUR + 5, TIMERWHEEL_ABS));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(self->fd, KEY, &ent));
	EXPECT_EQ((now + HOUR + 5 + low) & ~low, ent.deadline);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(~0ULL, TIMERWHEEL_ABS));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(self->fd, KEY, &ent));
	EXPECT_EQ(TIMERWHEEL_TIME_MAX & ~low, ent.deadline);
}

/* MOVE to a time that has passed: the event comes once, then the timer no longer exists */
TEST_F(one, move_past)
{
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(-1, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, get_result(self->fd, KEY));
	EXPECT_TRUE(one_event(self->fd, KEY, VALUE));
	EXPECT_TRUE(quiet(self->fd));
	EXPECT_EQ(-ENOENT, MOVE(HOUR, 0));
	EXPECT_EQ(-ENOENT, REMOVE(NULL));
	EXPECT_EQ(-ENOENT, get_result(self->fd, KEY));

	ASSERT_EQ(0, add_there(self->fd, self->home, &self->add));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(1, TIMERWHEEL_ABS));
	EXPECT_TRUE(one_event(self->fd, KEY, VALUE));
}

/* MOVE of a due timer withdraws its event */
TEST_F(one, move_due)
{
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(0, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, MOVE(HOUR, 0));
	EXPECT_TRUE(quiet(self->fd));
	EXPECT_PENDING(HOUR);
	EXPECT_EQ(1, stats_of(self->fd).withdrawn);

	/* armed there to be due at once, then moved to the past again */
	self->add.deadline = 0;
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, add_there(self->fd, self->home, &self->add));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, MOVE(0, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, MOVE(0, 0));
	EXPECT_TRUE(one_event(self->fd, KEY, VALUE));
	EXPECT_TRUE(quiet(self->fd));
	EXPECT_EQ(3, stats_of(self->fd).withdrawn);
}

/* A MOVE moves a timer into the base of its CPU: the next MOVE finds it there. */
TEST_F(one, move_comes_here)
{
	int i;

	for (i = 0; i < 4; i++) {
		if (variant->elsewhere)
			ASSERT_EQ(0, tw_pin(i % 2));
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE((i % 2 ? 1 : 4) * HOUR, 0));
		EXPECT_PENDING((i % 2 ? 1 : 4) * HOUR);
	}
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, REMOVE(NULL));
}

/* A periodic timer keeps its period */
TEST_F(one, periodic)
{
	struct timerwheel_entry ent;
	__u64 value;

	self->add.period = HOUR;
	if (variant->mapped) {
		EXPECT_EQ(-EINVAL, add_there(self->fd, self->home, &self->add));
		return;
	}
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, add_there(self->fd, self->home, &self->add));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(3 * HOUR, 0));
	EXPECT_PENDING(3 * HOUR);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(0, 0));
	EXPECT_TRUE(one_event(self->fd, KEY, VALUE));
	/* the reader has armed it again: the handle stays valid */
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(self->fd, KEY, &ent));
	EXPECT_EQ(HOUR, ent.period);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(2 * HOUR, 0));
	EXPECT_PENDING(2 * HOUR);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, REMOVE(&value));
	EXPECT_EQ(VALUE, value);
	EXPECT_EQ(-ENOENT, get_result(self->fd, KEY));

	/* due */
	self->add.deadline = 0;
	EXPECT_EQ(0, add_there(self->fd, self->home, &self->add));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, REMOVE(&value));
	EXPECT_EQ(VALUE, value);
	EXPECT_TRUE(quiet(self->fd));
	EXPECT_EQ(-ENOENT, REMOVE(&value));
}

/* REMOVE reports the value of a pending timer and of a due timer, whose event is withdrawn */
TEST_F(one, remove)
{
	__u64 value;

	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, REMOVE(&value));
	EXPECT_EQ(VALUE, value);
	EXPECT_EQ(-ENOENT, get_result(self->fd, KEY));
	EXPECT_EQ(-ENOENT, REMOVE(&value));
	EXPECT_TRUE(tw_poisoned(&value, sizeof(value)));

	self->add.deadline = 0;
	ASSERT_EQ(0, add_there(self->fd, self->home, &self->add));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, REMOVE(&value));
	EXPECT_EQ(VALUE, value);
	EXPECT_TRUE(quiet(self->fd));
	EXPECT_EQ(2, stats_of(self->fd).removed);
	EXPECT_EQ(1, stats_of(self->fd).withdrawn);
}

/* ADD of the same key: the handle stays valid, with the new value */
TEST_F(one, replaced)
{
	__u32 index = self->add.index, generation = self->add.generation;
	__u64 value;

	self->add.value = 1;
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_add_elem(self->fd, &self->add));
	EXPECT_EQ(index, self->add.index);
	EXPECT_EQ(generation, self->add.generation);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(HOUR, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, REMOVE(&value));
	EXPECT_EQ(1, value);
}

/* All state that the failed calls of stale() might change */
struct state {
	struct timerwheel_entry ent;
	struct timerwheel_stats stats;
	__u64 entry;
};

static struct state look(int fd, __u64 key, const __u64 *entry)
{
	struct state s = { .entry = entry ? *entry : 0 };

	tw_get1(fd, key, &s.ent);	/* may make a base */
	s.stats = stats_of(fd);
	s.ent.left = 0;
	return s;
}

/* A handle of a timer that has ended: ENOENT, and the next owner of its index does not change */
TEST_F(one, stale)
{
	struct timerwheel_add next = { .key = KEY + 1, .value = ~VALUE, .deadline = 2 * HOUR };
	struct timerwheel_entry drained;
	struct state before, after;
	int way;

	for (way = 0; way < 4; way++) {
		switch (way) {
		case 0:
			EXPECT_EQ(TIMERWHEEL_WAS_PENDING, REMOVE(NULL));
			break;
		case 1:
			EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, KEY));
			break;
		case 2:
			EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(0, 0));
			EXPECT_TRUE(one_event(self->fd, KEY, VALUE));
			break;
		case 3:
			EXPECT_EQ(1, tw_drain(self->fd, 0, &drained, 1));
			break;
		}
		EXPECT_EQ(-ENOENT, MOVE(HOUR, 0)) TH_LOG("%d", way);
		EXPECT_EQ(-ENOENT, REMOVE(NULL)) TH_LOG("%d", way);
		/* the free indices of this CPU are used in the opposite order */
		ASSERT_EQ(0, tw_add_elem(self->fd, &next));
		ASSERT_EQ(self->add.index, next.index);
		EXPECT_NE(self->add.generation, next.generation);
		before = look(self->fd, next.key, self->table ? &self->table[next.index] : NULL);
		EXPECT_EQ(-ENOENT, MOVE(HOUR, 0));
		EXPECT_EQ(-ENOENT, MOVE(0, 0));
		EXPECT_EQ(-ENOENT, REMOVE(NULL));
		after = look(self->fd, next.key, self->table ? &self->table[next.index] : NULL);
		EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING,
			  tw_remove_handle1(self->fd, next.index, next.generation, NULL));
		ASSERT_EQ(0, tw_add_elem(self->fd, &self->add));
	}
}

/* Handles that no timer has: ENOENT, and no timer changes */
TEST_F(one, none)
{
	const __u32 index[] = {
		0, self->add.index - 1, self->add.index + 1, 63, 64, 65, 4096, 1U << 20, 1U << 27,
		(1U << 27) + 1, 1U << 31, (1U << 31) | self->add.index, ~0U - 1, ~0U,
	};
	const __u32 generation[] = {
		0, self->add.generation + 1, self->add.generation - 1, ~self->add.generation,
		self->add.generation | 1U << 31, self->add.generation | 1U << 20, ~0U,
	};
	__u64 *entry = self->table ? &self->table[self->add.index] : NULL;
	struct state before = look(self->fd, KEY, entry), after;
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(index); i++) {
		for (j = 0; j < ARRAY_SIZE(generation) + 1; j++) {
			__u32 gen = j ? generation[j - 1] : self->add.generation;

			EXPECT_EQ(-ENOENT, tw_move_handle1(self->fd, index[i], gen, 0, 0))
				TH_LOG("%x %x", index[i], gen);
			EXPECT_EQ(-ENOENT, tw_remove_handle1(self->fd, index[i], gen, NULL))
				TH_LOG("%x %x", index[i], gen);
		}
	}
	for (j = 0; j < ARRAY_SIZE(generation); j++) {
		EXPECT_EQ(-ENOENT, tw_move_handle1(self->fd, self->add.index, generation[j], 0, 0));
		EXPECT_EQ(-ENOENT, tw_remove_handle1(self->fd, self->add.index, generation[j],
						     NULL));
	}
	after = look(self->fd, KEY, entry);
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
}

/* --- Stores in the deadline table, MANUAL clock ---------------------------------------------- */

FIXTURE(postponed) {
	int fd;
	__u64 *table;
	struct timerwheel_add add;
};

FIXTURE_VARIANT(postponed) {
	__u32 clock;
};

FIXTURE_VARIANT_ADD(postponed, manual) { .clock = TIMERWHEEL_CLOCK_MANUAL };

FIXTURE_SETUP(postponed)
{
	self->fd = tw_open_table(variant->clock, MSEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 0, SEC));
	self->table = map_table(self->fd);
	ASSERT_NE(NULL, self->table);
	self->add = (struct timerwheel_add){ .key = KEY, .value = VALUE, .deadline = 2 * HOUR };
	ASSERT_EQ(1, dev_add(self->fd, &self->add, 1));
	ASSERT_EQ(0, self->add.result);
}

FIXTURE_TEARDOWN(postponed)
{
	close(self->fd);
}

/* The deadline table: MOVE replaces the deadline in the entry, REMOVE ends the entry's owner */
TEST_F(postponed, moved_and_removed)
{
	struct timerwheel_info info;
	__u64 later;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	later = timerwheel_mapped_entry(info.now + 100 * HOUR, self->add.generation,
					info.generation_bits) | TIMERWHEEL_TABLE_ARMED;
	self->table[self->add.index] = later;
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(3 * HOUR, 0));
	EXPECT_PENDING(3 * HOUR);
	self->table[self->add.index] = later;
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(HOUR, 0));
	EXPECT_PENDING(HOUR);
	/* of another generation */
	self->table[self->add.index] = later ^ 4;
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(2 * HOUR, 0));
	EXPECT_PENDING(2 * HOUR);
	self->table[self->add.index] = later;
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, REMOVE(NULL));
	EXPECT_EQ(-ENOENT, get_result(self->fd, KEY));
}

/* A timer that was postponed in the table is pending at its first deadline, and MOVE finds it. */
TEST_F(postponed, fires_when_moved_to)
{
	struct timerwheel_info info;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	self->table[self->add.index] =
		timerwheel_mapped_entry(info.now + 10 * HOUR, self->add.generation,
					info.generation_bits) | TIMERWHEEL_TABLE_ARMED;
	EXPECT_EQ(0, tw_advance(self->fd, 0, 5 * HOUR));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(2 * HOUR, 0));
	EXPECT_EQ(0, tw_advance(self->fd, 0, HOUR));
	EXPECT_EQ(1, tw_advance(self->fd, 0, HOUR + 2 * MSEC));
	EXPECT_TRUE(one_event(self->fd, KEY, VALUE));
}

/* --- Resident timers, MANUAL clock ----------------------------------------------------------- */

FIXTURE(resident) {
	int fd;
	__u64 *table;
	__u64 mask;
	struct timerwheel_add add;
	__u64 *entry;
};

FIXTURE_SETUP(resident)
{
	struct timerwheel_setup setup = {
		.flags = TIMERWHEEL_SETUP_RESIDENT, .clock = TIMERWHEEL_CLOCK_MANUAL, .tick = MSEC,
	};
	struct timerwheel_info info;
	int ret;

	self->fd = dev_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ret = dev_setup(self->fd, &setup);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "no resident timers on this machine");
	ASSERT_EQ(0, ret);
	self->table = map_table(self->fd);
	ASSERT_NE(NULL, self->table);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	self->mask = (1ULL << info.generation_bits) - 1;
	self->add = (struct timerwheel_add){
		.key = KEY, .value = VALUE, .deadline = 100 * MSEC,
	};
	ASSERT_EQ(0, tw_add_elem(self->fd, &self->add));
	self->entry = &self->table[self->add.index];
}

FIXTURE_TEARDOWN(resident)
{
	struct timerwheel_stats stats = stats_of(self->fd);

	EXPECT_TRUE(tw_balanced(&stats));
	close(self->fd);
}

/* The entry holds the timer's generation, @state and the deadline @at, rounded up. */
#define EXPECT_ENTRY(at, state) \
	EXPECT_EQ((((at) + self->mask) & ~self->mask) | self->add.generation | \
		  TIMERWHEEL_TABLE_##state, *self->entry)

/* Cancel it in memory; it is parked when its deadline, @at, has passed. */
#define CANCEL()	(*self->entry &= ~(__u64)TIMERWHEEL_TABLE_ARMED)

/* MOVE in each state */
TEST_F(resident, move)
{
	/* armed: later, earlier */
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(200 * MSEC, TIMERWHEEL_ABS));
	EXPECT_ENTRY(200 * MSEC, ARMED);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(50 * MSEC, 0));
	EXPECT_ENTRY(50 * MSEC, ARMED);
	/* cancelled */
	CANCEL();
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, MOVE(20 * MSEC, 0));
	EXPECT_ENTRY(20 * MSEC, ARMED);
	/* parked */
	CANCEL();
	EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, 40 * MSEC));
	EXPECT_EQ(1, stats_of(self->fd).parked);
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, MOVE(50 * MSEC, TIMERWHEEL_ABS));
	EXPECT_EQ(0, stats_of(self->fd).parked);
	EXPECT_ENTRY(50 * MSEC, ARMED);
	/* due */
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 60 * MSEC));
	EXPECT_ENTRY(50 * MSEC, FIRED);
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, MOVE(70 * MSEC, TIMERWHEEL_ABS));
	EXPECT_TRUE(quiet(self->fd));
	/* fired */
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 80 * MSEC));
	EXPECT_TRUE(one_event(self->fd, KEY, VALUE));
	EXPECT_EQ(1, stats_of(self->fd).parked);
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, MOVE(90 * MSEC, TIMERWHEEL_ABS));
	EXPECT_ENTRY(90 * MSEC, ARMED);
	/* to the past */
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(-5, 0));
	EXPECT_TRUE(one_event(self->fd, KEY, VALUE));
	EXPECT_TRUE(quiet(self->fd));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, MOVE(100 * MSEC, 0));
}

/* MOVE with EXCL arms only a timer that is not armed */
TEST_F(resident, move_unless_armed)
{
	const __u32 flags = TIMERWHEEL_ABS | TIMERWHEEL_EXCL;

	EXPECT_EQ(-EEXIST, MOVE(50 * MSEC, flags));
	EXPECT_ENTRY(100 * MSEC, ARMED);
	CANCEL();
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, MOVE(50 * MSEC, flags));
	EXPECT_EQ(-EEXIST, MOVE(60 * MSEC, flags));
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 52 * MSEC));
	EXPECT_EQ(-EEXIST, MOVE(60 * MSEC, flags));
	EXPECT_TRUE(one_event(self->fd, KEY, VALUE));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, MOVE(60 * MSEC, flags));
	CANCEL();
	EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, 70 * MSEC));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, MOVE(80 * MSEC, flags));
	EXPECT_ENTRY(80 * MSEC, ARMED);
}

/* REMOVE in each state; then the handle is stale */
TEST_F(resident, remove)
{
	static const int was[] = {
		TIMERWHEEL_WAS_PENDING, TIMERWHEEL_WAS_PARKED, TIMERWHEEL_WAS_PARKED,
		TIMERWHEEL_WAS_DUE, TIMERWHEEL_WAS_PARKED,
	};
	__u64 value;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(was); i++) {
		if (i == 1 || i == 2)
			CANCEL();
		if (i >= 2)
			EXPECT_EQ(i >= 3, tw_advance(self->fd, 0, SEC));
		if (i == 4)
			EXPECT_TRUE(one_event(self->fd, KEY, VALUE));
		EXPECT_EQ(was[i], REMOVE(&value)) TH_LOG("%zu", i);
		EXPECT_EQ(VALUE, value);
		EXPECT_EQ(0, *self->entry);
		EXPECT_EQ(-ENOENT, REMOVE(&value));
		EXPECT_TRUE(tw_poisoned(&value, sizeof(value)));
		EXPECT_EQ(-ENOENT, MOVE(HOUR, 0));
		EXPECT_EQ(0, *self->entry);
		EXPECT_EQ(0, stats_of(self->fd).parked);
		EXPECT_TRUE(quiet(self->fd));
		ASSERT_EQ(0, tw_add_elem(self->fd, &self->add));
		EXPECT_EQ(&self->table[self->add.index], self->entry);
	}
}

/* A timer that lingers: cancelled, then parked */
TEST_F(resident, lingers)
{
	self->add.period = 100 * MSEC;
	self->add.flags = TIMERWHEEL_LINGER;
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_add_elem(self->fd, &self->add));
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 102 * MSEC));
	EXPECT_TRUE(one_event(self->fd, KEY, VALUE));
	EXPECT_ENTRY(202 * MSEC, CANCELLED);
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, MOVE(150 * MSEC, TIMERWHEEL_ABS));
	EXPECT_ENTRY(150 * MSEC, ARMED);
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 152 * MSEC));
	EXPECT_TRUE(one_event(self->fd, KEY, VALUE));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, REMOVE(NULL));
	EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, SEC));
	EXPECT_EQ(0, stats_of(self->fd).parked);
}

/* --- Many ------------------------------------------------------------------------------------ */

/* A wheel that never had a timer, and one without bases */
TEST(empty)
{
	static struct timerwheel_remove_handle rem[200];
	static struct timerwheel_move_handle move[200];
	__u32 i;
	int fd;

	for (i = 0; i < 200; i++) {
		move[i].index = i;
		move[i].generation = i % 3;
		rem[i].index = ~0U - i;
		rem[i].generation = i % 3;
	}
	fd = dev_open(O_NONBLOCK);
	ASSERT_LE(0, fd);
	EXPECT_EQ(200, dev_move_handle(fd, 0, move, 200));
	EXPECT_EQ(200, dev_remove_handle(fd, rem, 200));
	EXPECT_EQ(-ENOENT, tw_move_handle1(fd, 1, 1, 0, 0));
	EXPECT_EQ(-ENOENT, tw_remove_handle1(fd, 0, 0, NULL));
	for (i = 0; i < 200; i++) {
		EXPECT_EQ(-ENOENT, move[i].result);
		EXPECT_EQ(-ENOENT, rem[i].result);
		EXPECT_EQ(i, move[i].index);
	}
	close(fd);
}

#define MANY	TIMERWHEEL_BATCH_MAX

static struct timerwheel_add adds[MANY];
static struct timerwheel_move_handle moves[MANY];
static struct timerwheel_remove_handle removes[MANY];
static struct timerwheel_entry entries[MANY];
static __u32 order[MANY];

static void shuffle(__u64 *seed)
{
	__u32 i, j, tmp;

	for (i = 0; i < MANY; i++)
		order[i] = i;
	for (i = MANY - 1; i; i--) {
		j = (tw_rand(seed) >> 32) % (i + 1);
		tmp = order[i];
		order[i] = order[j];
		order[j] = tmp;
	}
}

/*
 * The longest batches, in random order, with every third handle stale: each result belongs to its
 * own element. The other timers are moved, and then removed with their values.
 */
TEST_F(one, batches)
{
	__u64 seed = tw_seed(), r = seed, now = now_of(self->fd), at;
	__u64 low = self->table ? UNIT - 1 : 0;
	__u32 i, k;

	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, REMOVE(NULL));
	for (i = 0; i < MANY; i++)
		adds[i] = (struct timerwheel_add){ .key = i, .value = ~i, .deadline = 2 * HOUR,
						   .period = i % 7 || self->table ? 0 : HOUR };
	ASSERT_EQ(0, tw_pin(self->home));
	ASSERT_EQ(MANY, dev_add(self->fd, adds, MANY));
	ASSERT_EQ(0, tw_pin(0));
	shuffle(&r);
	for (i = 0; i < MANY; i++) {
		k = order[i];
		moves[i].deadline = now + (k % 2 ? 3 : 1) * HOUR + k;
		moves[i].index = adds[k].index;
		moves[i].generation = adds[k].generation + !(k % 3);
	}
	ASSERT_EQ(MANY, dev_move_handle(self->fd, TIMERWHEEL_ABS, moves, MANY));
	for (i = 0; i < MANY; i++)
		entries[i] = (struct timerwheel_entry){ .key = order[i] };
	ASSERT_EQ(MANY, dev_get(self->fd, entries, MANY));
	for (i = 0; i < MANY; i++) {
		k = order[i];
		ASSERT_EQ(k % 3 ? TIMERWHEEL_WAS_PENDING : -ENOENT, moves[i].result)
			TH_LOG("seed %llu, timer %u", seed, k);
		ASSERT_EQ(adds[k].index, moves[i].index);
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, entries[i].result);
		if (k % 3) {
			at = now + (k % 2 ? 3 : 1) * HOUR + k;
			ASSERT_EQ((at + low) & ~low, entries[i].deadline);
		} else {
			ASSERT_LT(now + HOUR + HOUR / 2, entries[i].deadline);
			ASSERT_GT(now + 2 * HOUR + ABOUT, entries[i].deadline);
		}
	}
	shuffle(&r);
	for (i = 0; i < MANY; i++) {
		k = order[i];
		removes[i].value = 12345;
		removes[i].index = adds[k].index;
		removes[i].generation = adds[k].generation + !(k % 3);
	}
	ASSERT_EQ(MANY, dev_remove_handle(self->fd, removes, MANY));
	for (i = 0; i < MANY; i++) {
		k = order[i];
		ASSERT_EQ(k % 3 ? TIMERWHEEL_WAS_PENDING : -ENOENT, removes[i].result);
		ASSERT_EQ(k % 3 ? (__u64)~k : 12345, removes[i].value);
		ASSERT_EQ(adds[k].index, removes[i].index);
		ASSERT_EQ(k % 3 ? -ENOENT : TIMERWHEEL_WAS_PENDING, get_result(self->fd, k));
	}
	EXPECT_EQ((MANY + 2) / 3, stats_of(self->fd).pending);
}

/* The same timer in several elements of a call: each sees the effect of the elements before it */
TEST_F(one, twice)
{
	struct timerwheel_remove_handle rem[3];
	struct timerwheel_move_handle move[4];
	int i;

	for (i = 0; i < 4; i++) {
		move[i].index = self->add.index;
		move[i].generation = self->add.generation;
		move[i].deadline = i == 1 ? 0 : (4 - i) * HOUR;
	}
	ASSERT_EQ(4, dev_move_handle(self->fd, 0, move, 4));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, move[0].result);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, move[1].result);
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, move[2].result);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, move[3].result);
	EXPECT_PENDING(HOUR);
	for (i = 0; i < 3; i++) {
		rem[i].index = self->add.index;
		rem[i].generation = self->add.generation;
	}
	ASSERT_EQ(3, dev_remove_handle(self->fd, rem, 3));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, rem[0].result);
	EXPECT_EQ(VALUE, rem[0].value);
	EXPECT_EQ(-ENOENT, rem[1].result);
	EXPECT_EQ(-ENOENT, rem[2].result);
}

/*
 * Generations repeat exactly after 2^(generation_bits - 2) - 1 owners, as the interface promises: a
 * wheel with room for one timer.
 */
TEST(generations)
{
	struct timerwheel_setup setup = {
		.clock = TIMERWHEEL_CLOCK_MANUAL, .tick = 1, .capacity = 1,
	};
	struct timerwheel_add first = { .key = 1, .deadline = HOUR }, add;
	struct timerwheel_info info;
	int fd = dev_open(O_NONBLOCK);
	__u32 i;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, dev_setup(fd, &setup));
	ASSERT_EQ(0, tw_info(fd, &info));
	ASSERT_EQ(0, tw_add_elem(fd, &first));
	add = first;
	for (i = 1; i < (1U << (info.generation_bits - 2)) - 1; i++) {
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING,
			  tw_remove_handle1(fd, add.index, add.generation, NULL));
		add.key = i + 1;
		ASSERT_EQ(0, tw_add_elem(fd, &add));
		ASSERT_EQ(first.index, add.index);
		ASSERT_EQ(-ENOENT, tw_move_handle1(fd, first.index, first.generation, HOUR, 0));
		ASSERT_EQ(-ENOENT, tw_remove_handle1(fd, first.index, first.generation, NULL));
	}
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(fd, add.key));
	ASSERT_EQ(0, tw_add_elem(fd, &add));
	EXPECT_EQ(first.generation, add.generation);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING,
		  tw_remove_handle1(fd, first.index, first.generation, NULL));
	close(fd);
}

/* --- A race on few indices ------------------------------------------------------------------- */

/*
 * Resident timers: each ends by a REMOVE or DRAIN that reports its value, and in no other way. So
 * each value is reported once, or is left at the end. Keys are never used again, but indices are
 * used again at once: a timer that is looked up by its index may be another timer a moment later,
 * with another key in another bucket, pending, due or parked.
 */
#define SLOTS	512		/* handles that are remembered */
#define VALUES	(4U << 20)
#define RACERS	6

struct ledger {
	int fd;
	__u64 seed;
	atomic_uint value;		/* the last one that was given out */
	atomic_uchar *ends;		/* of each value */
	atomic_ullong handle[SLOTS];	/* index << 32 | generation */
	atomic_bool stop;
	atomic_uint bad;
	atomic_ullong moved, removed, by_key, drained, listed, missed;
};

struct racer {
	pthread_t id;
	struct ledger *l;
	int number;
	__u64 seed;
};

static void complain(struct ledger *l, const char *what, __u64 value, int result)
{
	if (atomic_fetch_add(&l->bad, 1) < 20)
		fprintf(stderr, "# %s: value %llu, result %d\n", what, value, result);
}

static void ended(struct ledger *l, const char *what, __u64 value, int result)
{
	if (!value || value > atomic_load(&l->value))
		complain(l, what, value, result);
	else if (atomic_fetch_add(&l->ends[value], 1))
		complain(l, what, value, result);
}

static __u64 soon(struct racer *r)
{
	static const __u64 delay[] = { 0, 0, 50 * USEC, 300 * USEC, MSEC, HOUR };

	return delay[tw_rand(&r->seed) % ARRAY_SIZE(delay)];
}

static void race_add(struct racer *r)
{
	struct timerwheel_add add = { .deadline = soon(r) };
	struct ledger *l = r->l;
	int ret;

	add.value = atomic_fetch_add(&l->value, 1) + 1;
	if (add.value >= VALUES - RACERS) {
		atomic_store(&l->stop, true);
		atomic_fetch_add(&l->ends[add.value], 1);	/* never armed */
		return;
	}
	add.key = add.value;
	ret = tw_add_elem(l->fd, &add);
	if (ret)
		complain(l, "ADD", add.value, ret);
	atomic_store(&l->handle[tw_rand(&r->seed) % SLOTS],
		     (__u64)add.index << 32 | add.generation);
	/* many end at once, and their indices are the next to be used */
	if (tw_rand(&r->seed) % 2)
		return;
	ret = tw_remove1(l->fd, add.key);
	if (ret > 0) {
		ended(l, "REMOVE", add.value, ret);
		atomic_fetch_add(&l->by_key, 1);
	} else if (ret != -ENOENT) {
		complain(l, "REMOVE", add.value, ret);
	}
}

static void race_handle(struct racer *r)
{
	struct ledger *l = r->l;
	__u64 handle = atomic_load(&l->handle[tw_rand(&r->seed) % SLOTS]), value;
	int ret;

	if (tw_rand(&r->seed) % 2) {
		ret = tw_move_handle1(l->fd, handle >> 32, handle, soon(r), 0);
		if (ret < 0 && ret != -ENOENT)
			complain(l, "MOVE_HANDLE", 0, ret);
		atomic_fetch_add(ret < 0 ? &l->missed : &l->moved, 1);
		return;
	}
	ret = tw_remove_handle1(l->fd, handle >> 32, handle, &value);
	if (ret > 0)
		ended(l, "REMOVE_HANDLE", value, ret);
	else if (ret != -ENOENT)
		complain(l, "REMOVE_HANDLE", 0, ret);
	atomic_fetch_add(ret < 0 ? &l->missed : &l->removed, 1);
}

static void race_scan(struct racer *r)
{
	struct timerwheel_entry ent[4];
	struct ledger *l = r->l;
	__u64 cursor = 0;
	int i, ret;

	if (tw_rand(&r->seed) % 4) {
		ret = tw_list(l->fd, &cursor, ent, 4);
		atomic_fetch_add(&l->listed, ret > 0 ? ret : 0);
	} else {
		ret = tw_drain(l->fd, 0, ent, 1);
		for (i = 0; i < ret; i++)
			ended(l, "DRAIN", ent[i].value, ent[i].result);
		atomic_fetch_add(&l->drained, ret > 0 ? ret : 0);
	}
	for (i = 0; i < ret; i++) {
		if (ent[i].key != ent[i].value)
			complain(l, "LIST or DRAIN: key and value of two timers", ent[i].value,
				 ent[i].result);
	}
}

static void *racer_main(void *arg)
{
	static struct timerwheel_event ev[RACERS][64];
	struct racer *r = arg;
	struct ledger *l = r->l;

	tw_pin(r->number % 2);
	while (!atomic_load(&l->stop)) {
		switch (r->number) {
		case 0:
		case 1:
			race_add(r);
			break;
		case 2:
		case 3:
			race_handle(r);
			break;
		case 4:
			race_scan(r);
			break;
		default:
			dev_read(l->fd, ev[r->number], 64);
			break;
		}
	}
	return NULL;
}

TEST_F_TIMEOUT(resident, race, 300)
{
	struct timerwheel_setup setup = { .flags = TIMERWHEEL_SETUP_RESIDENT, .tick = 100 * USEC };
	const char *s = getenv("TW_RACE_SECONDS");
	struct ledger *l = tw_shared(sizeof(*l));
	struct timerwheel_entry ent[16];
	struct racer racer[RACERS];
	struct timerwheel_stats st;
	__u32 i;
	int n;

	l->ends = tw_shared(VALUES);
	l->seed = tw_seed();
	l->fd = dev_open(O_NONBLOCK);
	ASSERT_EQ(0, dev_setup(l->fd, &setup));
	for (i = 0; i < RACERS; i++) {
		racer[i] = (struct racer){ .l = l, .number = i, .seed = l->seed + i + 1 };
		ASSERT_EQ(0, pthread_create(&racer[i].id, NULL, racer_main, &racer[i]));
	}
	for (i = 0; i < (s && atoi(s) > 0 ? atoi(s) : 2) * 100 && !atomic_load(&l->stop); i++)
		tw_sleep(10 * MSEC);
	atomic_store(&l->stop, true);
	for (i = 0; i < RACERS; i++)
		pthread_join(racer[i].id, NULL);
	st = stats_of(l->fd);
	EXPECT_TRUE(tw_balanced(&st));
	EXPECT_EQ(atomic_load(&l->moved), st.moved);
	EXPECT_EQ(atomic_load(&l->removed) + atomic_load(&l->by_key), st.removed);
	while ((n = tw_drain(l->fd, 0, ent, ARRAY_SIZE(ent))) > 0) {
		while (n--)
			ended(l, "the last DRAIN", ent[n].value, ent[n].result);
	}
	for (i = 1; i <= atomic_load(&l->value); i++)
		ASSERT_EQ(1, atomic_load(&l->ends[i])) TH_LOG("value %u", i);
	EXPECT_EQ(0, atomic_load(&l->bad)) TH_LOG("seed %llu", l->seed);
	TH_LOG("%u timers: %llu moved, %llu removed, %llu by key, %llu drained; %llu missed",
	       atomic_load(&l->value), atomic_load(&l->moved), atomic_load(&l->removed),
	       atomic_load(&l->by_key), atomic_load(&l->drained), atomic_load(&l->missed));
	EXPECT_LT(0, atomic_load(&l->moved));
	EXPECT_LT(0, atomic_load(&l->removed));
	close(l->fd);
}

TEST_HARNESS_MAIN
