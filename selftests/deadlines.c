// SPDX-License-Identifier: GPL-2.0
/*
 * deadlines: the deadline table, in which timers are refreshed and cancelled in mapped memory.
 * Program resident tests timers that stay after they have fired.
 */
#include "tw_test.h"
#include "../lib/timerwheel-mapped.h"
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define CAPACITY	4096

/* Size in bytes of the table of a wheel with this capacity */
static size_t table_size(size_t capacity)
{
	size_t page = getpagesize();

	return ((capacity + 1) * sizeof(__u64) + page - 1) / page * page;
}

/* Returns the table, or MAP_FAILED and sets errno */
static __u64 *map_table(int fd, size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, TIMERWHEEL_MMAP_DEADLINES);
}

/* ADD a timer at an absolute time; sets index and generation of @add */
static int arm(int fd, struct timerwheel_add *add, __u64 key, __u64 deadline, __u64 period)
{
	*add = (struct timerwheel_add) {
		.key = key, .value = ~key, .deadline = deadline, .period = period,
		.flags = TIMERWHEEL_ABS,
	};
	return tw_add_elem(fd, add);
}

/* --- Effect of a refresh, on a wheel with the MANUAL clock --------------------------- */

FIXTURE(table) {
	int fd;
	unsigned int bits;
	__u64 unit;
	__u64 *word;
	struct timerwheel_add a;
};

FIXTURE_VARIANT(table) {
	__u64 tick;
	unsigned int bits;
};

FIXTURE_VARIANT_ADD(table, tick_1_ns) {
	.tick = 1,
	.bits = 12,
};

FIXTURE_VARIANT_ADD(table, tick_1_ms) {
	.tick = MSEC,
	.bits = 19,
};

FIXTURE_VARIANT_ADD(table, tick_1_s) {
	.tick = SEC,
	.bits = 20,
};

FIXTURE_SETUP(table)
{
	struct timerwheel_setup setup = {
		.flags = TIMERWHEEL_SETUP_TABLE, .clock = TIMERWHEEL_CLOCK_MANUAL,
		.tick = variant->tick, .capacity = CAPACITY,
	};
	struct timerwheel_info info;

	self->fd = dev_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, dev_setup(self->fd, &setup));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	ASSERT_EQ(variant->bits, info.generation_bits);
	self->bits = info.generation_bits;
	self->unit = 1ULL << self->bits;
	self->word = map_table(self->fd, table_size(CAPACITY));
	ASSERT_NE(MAP_FAILED, self->word);
	ASSERT_EQ(0, arm(self->fd, &self->a, 1, 100 * SEC, 0));
	ASSERT_LT(0, self->a.generation);
	ASSERT_EQ(0, self->a.generation % 4);
	ASSERT_GT(self->unit, self->a.generation);
}

FIXTURE_TEARDOWN(table)
{
	close(self->fd);
}

/* A deadline in the resolution of an entry */
static __u64 rounded(FIXTURE_DATA(table) * self, __u64 deadline)
{
	return timerwheel_mapped_entry(deadline, 0, self->bits);
}

/* The entry of an armed timer */
static __u64 armed(FIXTURE_DATA(table) * self, const struct timerwheel_add *a, __u64 deadline)
{
	return timerwheel_mapped_entry(deadline, a->generation, self->bits) |
	       TIMERWHEEL_TABLE_ARMED;
}

static enum timerwheel_answer refresh(FIXTURE_DATA(table) * self, const struct timerwheel_add *a,
				      __u64 deadline)
{
	return timerwheel_mapped_refresh(self->word, a->index,
					 timerwheel_mapped_entry(deadline, a->generation,
								 self->bits), self->bits);
}

static enum timerwheel_answer arm_again(FIXTURE_DATA(table) * self, const struct timerwheel_add *a,
					__u64 deadline)
{
	return timerwheel_mapped_arm(self->word, a->index,
				     timerwheel_mapped_entry(deadline, a->generation, self->bits),
				     self->bits);
}

static enum timerwheel_answer cancel(FIXTURE_DATA(table) * self, const struct timerwheel_add *a)
{
	return timerwheel_mapped_cancel(self->word, a->index, a->generation, self->bits);
}

/* Postpone the timer that @a armed. Returns the rounded deadline, or 0 on failure. */
static __u64 postpone(FIXTURE_DATA(table) * self, const struct timerwheel_add *a, __u64 deadline)
{
	return refresh(self, a, deadline) == TIMERWHEEL_DONE ? rounded(self, deadline) : 0;
}

/* Write any value to an entry, without a compare-and-swap */
static void scribble(__u64 *table, __u32 index, __u64 word)
{
	__atomic_store_n(&table[index], word, __ATOMIC_RELAXED);
}

static __u64 deadline_of(int fd, __u64 key)
{
	struct timerwheel_entry ent;

	return tw_get1(fd, key, &ent) > 0 ? ent.deadline : 0;
}

/* The event of key 1 comes at @deadline and not before */
#define EXPECT_DUE_AT(when) do {							\
	struct timerwheel_event ev_;							\
	__u64 at_ = (when);								\
											\
	EXPECT_EQ(at_, deadline_of(self->fd, 1));					\
	EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, at_ - 1));			\
	EXPECT_EQ(-EAGAIN, dev_read(self->fd, &ev_, 1));					\
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, at_ + variant->tick));	\
	ASSERT_EQ(1, dev_read(self->fd, &ev_, 1));					\
	EXPECT_EQ(1, ev_.key);								\
	EXPECT_EQ(~1ULL, ev_.value);							\
	EXPECT_EQ(at_, ev_.deadline);							\
	EXPECT_LE(at_, ev_.fired);							\
	EXPECT_GE(at_ + variant->tick, ev_.fired);					\
	EXPECT_EQ(self->a.index, ev_.index);						\
} while (0)

/* ADD, GET and LIST report the same index and generation, and the entry exists */
TEST_F(table, is_told)
{
	struct timerwheel_entry ent;
	__u64 cursor = 0;

	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(self->fd, 1, &ent));
	EXPECT_EQ(self->a.index, ent.index);
	EXPECT_EQ(self->a.generation, ent.generation);
	ASSERT_EQ(1, tw_list(self->fd, &cursor, &ent, 1));
	EXPECT_EQ(self->a.index, ent.index);
	EXPECT_EQ(self->a.generation, ent.generation);
	EXPECT_EQ(armed(self, &self->a, 100 * SEC), self->word[self->a.index]);
	ASSERT_EQ(1, tw_drain(self->fd, 0, &ent, 1));
	EXPECT_EQ(0, self->word[self->a.index]);
	EXPECT_EQ(self->a.index, ent.index);
	EXPECT_EQ(self->a.generation, ent.generation);
}

/* Without a refresh the deadline does not change */
TEST_F(table, untouched)
{
	EXPECT_DUE_AT(rounded(self, 100 * SEC));
}

TEST_F(table, puts_off)
{
	EXPECT_DUE_AT(postpone(self, &self->a, 200 * SEC + 1));
}

/* Postponed to a time in the same tick, as far as the granularity permits */
TEST_F(table, puts_off_a_little)
{
	EXPECT_DUE_AT(postpone(self, &self->a, 100 * SEC + 1));
}

/* An entry only gets later deadlines: an earlier one needs a call */
TEST_F(table, earlier_needs_a_call)
{
	int i;

	for (i = 0; i < 1000; i++)
		ASSERT_EQ(TIMERWHEEL_DONE, refresh(self, &self->a, 101 * SEC + i * MSEC));
	EXPECT_EQ(TIMERWHEEL_DONE, refresh(self, &self->a, 150 * SEC));
	EXPECT_EQ(TIMERWHEEL_NEEDS_CALL, refresh(self, &self->a, 149 * SEC));
	EXPECT_EQ(TIMERWHEEL_NEEDS_CALL, arm_again(self, &self->a, 149 * SEC));
	EXPECT_DUE_AT(rounded(self, 150 * SEC));
}

/* A deadline that the kernel has read stays, even if a program stores an earlier one */
TEST_F(table, only_ever_later_once_seen)
{
	__u64 later = postpone(self, &self->a, 300 * SEC);

	EXPECT_EQ(later, deadline_of(self->fd, 1));
	scribble(self->word, self->a.index, armed(self, &self->a, 200 * SEC));
	EXPECT_DUE_AT(later);
}

/* A store that is earlier than the deadline, equal to it, or 0 has no effect */
TEST_F(table, not_later_is_ignored)
{
	__u64 at = rounded(self, 100 * SEC);

	scribble(self->word, self->a.index, armed(self, &self->a, 50 * SEC));
	EXPECT_EQ(at, deadline_of(self->fd, 1));
	scribble(self->word, self->a.index, armed(self, &self->a, 0));
	EXPECT_EQ(at, deadline_of(self->fd, 1));
	EXPECT_EQ(TIMERWHEEL_DONE, refresh(self, &self->a, 100 * SEC));
	EXPECT_DUE_AT(at);
}

/* A store beyond the largest time is treated as the largest time */
TEST_F(table, is_clamped)
{
	struct timerwheel_event ev;
	struct timerwheel_entry ent;

	scribble(self->word, self->a.index,
		 -self->unit | self->a.generation | TIMERWHEEL_TABLE_ARMED);
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(self->fd, 1, &ent));
	EXPECT_EQ(TIMERWHEEL_TIME_MAX, ent.deadline);
	EXPECT_EQ(TIMERWHEEL_TIME_MAX, ent.left);
	EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, TIMERWHEEL_TIME_MAX - 1));
	/* its tick ends after the largest time, except a tick of 1 ns */
	EXPECT_EQ(variant->tick == 1, tw_advance(self->fd, TIMERWHEEL_ABS, TIMERWHEEL_TIME_MAX));
	EXPECT_EQ(variant->tick == 1 ? 1 : -EAGAIN, dev_read(self->fd, &ev, 1));
}

/* A store with any other generation, even 0, or with a state of the kernel has no effect */
TEST_F(table, other_generations_are_ignored)
{
	__u64 late = (HOUR + self->unit) & ~(self->unit - 1);
	__u64 g;

	for (g = 0; g < 1024; g++) {
		if ((g | TIMERWHEEL_TABLE_ARMED) == (self->a.generation | TIMERWHEEL_TABLE_ARMED))
			continue;
		scribble(self->word, self->a.index, late | g);
		ASSERT_EQ(rounded(self, 100 * SEC), deadline_of(self->fd, 1))
			TH_LOG("generation %llu", g);
	}
	for (g = 2; g < self->unit; g <<= 1) {
		scribble(self->word, self->a.index, late | (self->a.generation ^ g));
		ASSERT_EQ(rounded(self, 100 * SEC), deadline_of(self->fd, 1)) TH_LOG("bit %llx", g);
	}
	EXPECT_DUE_AT(rounded(self, 100 * SEC));
}

/* After the timer has fired a refresh fails, before and after its event is read */
TEST_F(table, too_late)
{
	__u64 fired = armed(self, &self->a, 100 * SEC) | TIMERWHEEL_TABLE_FIRED;
	struct timerwheel_event ev;
	struct timerwheel_entry ent;
	int i;

	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 102 * SEC));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(TIMERWHEEL_TOO_LATE, refresh(self, &self->a, HOUR));
		EXPECT_EQ(TIMERWHEEL_TOO_LATE, cancel(self, &self->a));
		EXPECT_EQ(TIMERWHEEL_NEEDS_CALL, arm_again(self, &self->a, HOUR));
		EXPECT_EQ(fired, self->word[self->a.index]);
		if (i)
			break;
		ASSERT_EQ(TIMERWHEEL_WAS_DUE, tw_get1(self->fd, 1, &ent));
		EXPECT_EQ(rounded(self, 100 * SEC), ent.deadline);
		ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
		EXPECT_EQ(rounded(self, 100 * SEC), ev.deadline);
	}
	EXPECT_EQ(-ENOENT, tw_move1(self->fd, 1, HOUR, 0));
	EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, 2 * HOUR));
	EXPECT_EQ(-EAGAIN, dev_read(self->fd, &ev, 1));
}

/* A cancelled timer has no event. It exists until it is removed, and can be armed again. */
TEST_F(table, cancelled)
{
	struct timerwheel_stats st;
	struct timerwheel_entry ent;
	struct timerwheel_event ev;

	EXPECT_EQ(TIMERWHEEL_DONE, cancel(self, &self->a));
	EXPECT_EQ(TIMERWHEEL_NOT_ARMED, cancel(self, &self->a));
	EXPECT_EQ(TIMERWHEEL_NOT_ARMED, refresh(self, &self->a, HOUR));
	EXPECT_EQ(TIMERWHEEL_NEEDS_CALL, arm_again(self, &self->a, 99 * SEC));
	EXPECT_EQ(TIMERWHEEL_DONE, arm_again(self, &self->a, 200 * SEC));
	EXPECT_EQ(TIMERWHEEL_DONE, cancel(self, &self->a));
	ASSERT_EQ(TIMERWHEEL_WAS_PARKED, tw_get1(self->fd, 1, &ent));
	/* its deadline passes */
	EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, 202 * SEC));
	EXPECT_EQ(-EAGAIN, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(TIMERWHEEL_NOT_ARMED, cancel(self, &self->a));
	EXPECT_EQ(TIMERWHEEL_NEEDS_CALL, arm_again(self, &self->a, HOUR));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(1, st.parked);
	EXPECT_EQ(0, st.pending);
	EXPECT_TRUE(tw_balanced(&st));
	ASSERT_EQ(TIMERWHEEL_WAS_PARKED, tw_get1(self->fd, 1, &ent));
	EXPECT_EQ(-EEXIST, tw_add1(self->fd, 1, 0, SEC, TIMERWHEEL_EXCL));
	ASSERT_EQ(TIMERWHEEL_WAS_PARKED, tw_move1(self->fd, 1, 300 * SEC,
						  TIMERWHEEL_ABS | TIMERWHEEL_EXCL));
	EXPECT_EQ(-EEXIST, tw_move1(self->fd, 1, HOUR, TIMERWHEEL_EXCL));
	EXPECT_DUE_AT(rounded(self, 300 * SEC));
	/* its event was delivered: it has ended */
	EXPECT_EQ(-ENOENT, tw_get1(self->fd, 1, &ent));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(0, st.parked);
	EXPECT_TRUE(tw_balanced(&st));
}

/* REMOVE and DRAIN of a cancelled timer, before and after its deadline */
TEST_F(table, cancelled_is_removed)
{
	struct timerwheel_entry ent;
	struct timerwheel_add b = self->a;
	int i;

	for (i = 0; i < 4; i++) {
		EXPECT_EQ(TIMERWHEEL_DONE, cancel(self, &b));
		if (i & 1)
			EXPECT_EQ(0, tw_advance(self->fd, 0, 200 * SEC));
		if (i & 2) {
			ASSERT_EQ(1, tw_drain(self->fd, 0, &ent, 1));
			EXPECT_EQ(TIMERWHEEL_WAS_PARKED, ent.result);
		} else {
			EXPECT_EQ(TIMERWHEEL_WAS_PARKED, tw_remove1(self->fd, 1));
		}
		EXPECT_EQ(TIMERWHEEL_GONE, cancel(self, &b));
		EXPECT_EQ(TIMERWHEEL_GONE, refresh(self, &b, HOUR));
		EXPECT_EQ(TIMERWHEEL_GONE, arm_again(self, &b, HOUR));
		ASSERT_EQ(0, tw_add1(self->fd, 1, 0, 100 * SEC, 0));
		ASSERT_LT(0, tw_get1(self->fd, 1, &ent));
		b.index = ent.index;
		b.generation = ent.generation;
	}
}

/* The next timer with an index has another generation, and no earlier refresh affects it */
TEST_F(table, recycled_index)
{
	struct timerwheel_add b;
	unsigned int i, generations = 0;

	postpone(self, &self->a, HOUR);
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 1));
	for (i = 0; i < 5000; i++) {
		ASSERT_EQ(0, arm(self->fd, &b, 1, 100 * SEC, 0));
		ASSERT_EQ(self->a.index, b.index);
		ASSERT_LT(0, b.generation);
		ASSERT_GT(self->unit, b.generation);
		ASSERT_EQ(rounded(self, 100 * SEC), deadline_of(self->fd, 1));
		generations += b.generation == self->a.generation;
		if (b.generation != self->a.generation) {
			/* a late refresh of the previous timer */
			ASSERT_EQ(TIMERWHEEL_GONE, refresh(self, &self->a, HOUR));
			ASSERT_EQ(rounded(self, 100 * SEC), deadline_of(self->fd, 1));
		}
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 1));
	}
	EXPECT_EQ(5000 / (self->unit / 4 - 1), generations);
}

/* A late swap for the previous timer fails, and does not undo a swap for the present timer */
TEST_F(table, former_owner_undoes_nothing)
{
	struct timerwheel_add b;
	__u64 mine;
	int i;

	ASSERT_EQ(TIMERWHEEL_DONE, refresh(self, &self->a, HOUR));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 1));
	ASSERT_EQ(0, arm(self->fd, &b, 1, 100 * SEC, 0));
	ASSERT_EQ(self->a.index, b.index);
	mine = armed(self, &b, 100 * SEC);
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(mine, self->word[b.index]);
		EXPECT_EQ(TIMERWHEEL_GONE, refresh(self, &self->a, HOUR));
		EXPECT_EQ(TIMERWHEEL_GONE, arm_again(self, &self->a, HOUR));
		EXPECT_EQ(TIMERWHEEL_GONE, cancel(self, &self->a));
		EXPECT_EQ(mine, self->word[b.index]);
		if (i & 1) {
			mine = armed(self, &b, 150 * SEC);
			ASSERT_EQ(TIMERWHEEL_WAS_PENDING,
				  tw_move1(self->fd, 1, 150 * SEC, TIMERWHEEL_ABS));
		} else {
			mine = armed(self, &b, 200 * SEC);
			EXPECT_EQ(TIMERWHEEL_DONE, refresh(self, &b, 200 * SEC));
		}
	}
	EXPECT_DUE_AT(rounded(self, 200 * SEC));
}

/* The same after delivery and after DRAIN */
TEST_F(table, recycled_after_its_end)
{
	struct timerwheel_entry ent;
	struct timerwheel_event ev;
	struct timerwheel_add b;

	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 101 * SEC));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	ASSERT_EQ(0, arm(self->fd, &b, 2, 200 * SEC, 0));
	ASSERT_EQ(self->a.index, b.index);
	EXPECT_NE(self->a.generation, b.generation);
	EXPECT_EQ(TIMERWHEEL_GONE, refresh(self, &self->a, HOUR));
	EXPECT_EQ(rounded(self, 200 * SEC), deadline_of(self->fd, 2));
	ASSERT_EQ(1, tw_drain(self->fd, 0, &ent, 1));
	ASSERT_EQ(0, arm(self->fd, &self->a, 3, 300 * SEC, 0));
	ASSERT_EQ(self->a.index, b.index);
	EXPECT_NE(self->a.generation, b.generation);
	EXPECT_EQ(TIMERWHEEL_GONE, refresh(self, &b, HOUR));
	EXPECT_EQ(rounded(self, 300 * SEC), deadline_of(self->fd, 3));
}

/* MOVE replaces the deadline in the entry; a refresh after it counts */
TEST_F(table, move_forgets)
{
	static const __u64 to[] = { 150 * SEC, 120 * SEC, 130 * SEC, 250 * SEC };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		postpone(self, &self->a, 200 * SEC);
		if (i & 1)
			EXPECT_LE(200 * SEC, deadline_of(self->fd, 1));
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, to[i], TIMERWHEEL_ABS));
		EXPECT_EQ(rounded(self, to[i]), deadline_of(self->fd, 1));
		EXPECT_EQ(armed(self, &self->a, to[i]), self->word[self->a.index]);
	}
	EXPECT_DUE_AT(postpone(self, &self->a, 400 * SEC));
}

/* The same for ADD of an existing key; index and generation do not change */
TEST_F(table, add_forgets)
{
	struct timerwheel_add b;

	postpone(self, &self->a, 200 * SEC);
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, arm(self->fd, &b, 1, 150 * SEC, 0));
	EXPECT_EQ(self->a.index, b.index);
	EXPECT_EQ(self->a.generation, b.generation);
	EXPECT_EQ(rounded(self, 150 * SEC), deadline_of(self->fd, 1));
	postpone(self, &self->a, 200 * SEC);
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, arm(self->fd, &b, 1, 50 * SEC, 0));
	EXPECT_EQ(rounded(self, 50 * SEC), deadline_of(self->fd, 1));
	EXPECT_DUE_AT(postpone(self, &b, 60 * SEC));
}

/* The same for MOVE of a due timer, for which a refresh came too late */
TEST_F(table, move_due_forgets)
{
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 102 * SEC));
	EXPECT_EQ(TIMERWHEEL_TOO_LATE, refresh(self, &self->a, HOUR));
	ASSERT_EQ(TIMERWHEEL_WAS_DUE, tw_move1(self->fd, 1, 200 * SEC, TIMERWHEEL_ABS));
	EXPECT_DUE_AT(rounded(self, 200 * SEC));
}

/* REMOVE and DRAIN report the time left until the deadline in the entry */
TEST_F(table, left_is_until_then)
{
	struct timerwheel_remove rem = { .key = 1 };
	struct timerwheel_entry ent;
	struct timerwheel_add b;
	__u64 at = postpone(self, &self->a, 200 * SEC);

	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove_elem(self->fd, &rem));
	EXPECT_EQ(at, rem.left);
	ASSERT_EQ(0, arm(self->fd, &b, 2, 100 * SEC, 0));
	at = postpone(self, &b, 300 * SEC);
	ASSERT_EQ(1, tw_drain(self->fd, 0, &ent, 1));
	EXPECT_EQ(at, ent.left);
	EXPECT_EQ(at, ent.deadline);
}

/* A failed MATCH or a bad flag does not change the entry */
TEST_F(table, failures_forget_nothing)
{
	__u64 at = postpone(self, &self->a, 200 * SEC);

	EXPECT_EQ(-ESTALE, tw_move1_match(self->fd, 1, SEC, 77, TIMERWHEEL_ABS));
	EXPECT_EQ(-EINVAL, tw_move1(self->fd, 1, SEC, 1U << 30));
	EXPECT_EQ(-ESTALE, tw_add1_match(self->fd, 1, 0, SEC, 77, 0));
	EXPECT_EQ(-EEXIST, tw_add1(self->fd, 1, 0, SEC, TIMERWHEEL_EXCL));
	EXPECT_DUE_AT(at);
}

/* Timers in a wheel with a table have no period; only resident timers linger */
TEST_F(table, no_periods)
{
	struct timerwheel_add b = { .key = 2, .deadline = SEC, .period = SEC };

	EXPECT_EQ(-EINVAL, tw_add_elem(self->fd, &b));
	b.flags = TIMERWHEEL_LINGER;
	EXPECT_EQ(-EINVAL, tw_add_elem(self->fd, &b));
}

/* Each previous deadline costs one visit, however many refreshes there are */
TEST_F(table, costs_one_visit)
{
	struct timerwheel_stats before, st;
	struct timerwheel_event ev;
	__u64 at = 100 * SEC;
	int i, j;

	ASSERT_EQ(0, tw_stats(self->fd, &before));
	for (i = 0; i < 5; i++) {
		for (j = 0; j < 100000; j++)
			postpone(self, &self->a, at + SEC + j * MSEC);
		at = postpone(self, &self->a, at + 200 * SEC);
		EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, at - SEC));
	}
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(before.moved, st.moved);
	EXPECT_EQ(before.armed, st.armed);
	/* it may also cascade */
	EXPECT_GE(5 * 4, st.requeues - before.requeues + st.cascades - before.cascades);
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, at + variant->tick));
	EXPECT_EQ(1, dev_read(self->fd, &ev, 1));
}

/* --- Mapping ----------------------------------------------------------------------- */

FIXTURE(map) {
	int fd;
	size_t page;
};

FIXTURE_SETUP(map)
{
	struct timerwheel_setup setup = {
		.flags = TIMERWHEEL_SETUP_TABLE, .clock = TIMERWHEEL_CLOCK_MANUAL,
		.capacity = 1 << 20,
	};

	self->page = getpagesize();
	self->fd = dev_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, dev_setup(self->fd, &setup));
}

FIXTURE_TEARDOWN(map)
{
	close(self->fd);
}

static int map_errno(int fd, size_t size, int prot, int flags, off_t offset)
{
	void *p = mmap(NULL, size, prot, flags, fd, offset);

	if (p == MAP_FAILED)
		return errno;
	munmap(p, size);
	return 0;
}

TEST_F(map, private)
{
	EXPECT_EQ(EINVAL, map_errno(self->fd, self->page, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0));
	EXPECT_EQ(EINVAL, map_errno(self->fd, self->page, PROT_READ, MAP_PRIVATE, 0));
	EXPECT_EQ(0, map_errno(self->fd, self->page, PROT_READ, MAP_SHARED, 0));
}

TEST_F(map, executable)
{
	void *p;

	EXPECT_EQ(EINVAL, map_errno(self->fd, self->page, PROT_READ | PROT_EXEC, MAP_SHARED, 0));
	p = map_table(self->fd, self->page);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(-1, mprotect(p, self->page, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(map, beyond_the_capacity)
{
	size_t size = table_size(1 << 20);
	int rw = PROT_READ | PROT_WRITE;

	EXPECT_EQ(0, map_errno(self->fd, size, rw, MAP_SHARED, 0));
	EXPECT_EQ(EINVAL, map_errno(self->fd, size + 1, rw, MAP_SHARED, 0));
	EXPECT_EQ(0, map_errno(self->fd, self->page, rw, MAP_SHARED, size - self->page));
	EXPECT_EQ(EINVAL, map_errno(self->fd, 2 * self->page, rw, MAP_SHARED, size - self->page));
	EXPECT_EQ(EINVAL, map_errno(self->fd, self->page, rw, MAP_SHARED, size));
	EXPECT_EQ(EINVAL, map_errno(self->fd, self->page, rw, MAP_SHARED, 1LL << 50));
}

/* A mapping cannot grow, since mremap() would not check the size, and is not in core dumps */
TEST_F(map, flags_of_the_mapping)
{
	void *p = map_table(self->fd, self->page);

	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(MAP_FAILED, mremap(p, self->page, 2 * self->page, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_TRUE(tw_vm_flag(p, "dd"));
}

static sigjmp_buf sigbus_back;

static void sigbus(int sig)
{
	(void)sig;
	siglongjmp(sigbus_back, 1);
}

/* Does an access to this address raise SIGBUS? */
static bool gets_sigbus(const __u64 *p)
{
	struct sigaction sa = { .sa_handler = sigbus };

	sigaction(SIGBUS, &sa, NULL);
	if (sigsetjmp(sigbus_back, 1))
		return true;
	(void)__atomic_load_n(p, __ATOMIC_RELAXED);
	return false;
}

/* There are entries for the maximum number of timers so far, in whole pages; then SIGBUS */
TEST_F(map, beyond_the_timers)
{
	size_t size = table_size(1 << 20), words = self->page / sizeof(__u64);
	struct timerwheel_add a;
	__u64 *word, key;

	word = map_table(self->fd, size);
	ASSERT_NE(MAP_FAILED, word);
	EXPECT_FALSE(gets_sigbus(&word[0]));
	EXPECT_FALSE(gets_sigbus(&word[words - 1]));
	EXPECT_TRUE(gets_sigbus(&word[words]));
	for (key = 0; key < 3 * words; key++) {
		ASSERT_EQ(0, arm(self->fd, &a, key, HOUR, 0));
		ASSERT_FALSE(gets_sigbus(&word[a.index]));
	}
	EXPECT_FALSE(gets_sigbus(&word[4 * words - 1]));
	EXPECT_TRUE(gets_sigbus(&word[4 * words]));
	EXPECT_TRUE(gets_sigbus(&word[size / sizeof(__u64) - 1]));
}

/* The table has no previous contents of its pages, only the entries of the timers */
TEST_F(map, pages_are_new)
{
	enum { PAGES = 16 };
	size_t size = PAGES * self->page, i;
	struct timerwheel_info info;
	struct timerwheel_add a;
	__u64 *word;

	ASSERT_EQ(0, tw_pin(0));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	ASSERT_TRUE(tw_dirty_pages(64 * size));
	word = map_table(self->fd, size);
	ASSERT_NE(MAP_FAILED, word);
	EXPECT_TRUE(tw_all_bytes(word, 0, self->page));
	for (i = 0; i < size / sizeof(*word) - 1; i++) {
		ASSERT_EQ(0, arm(self->fd, &a, i, HOUR, 0));
		ASSERT_EQ(timerwheel_mapped_entry(HOUR, a.generation, info.generation_bits) |
			  TIMERWHEEL_TABLE_ARMED, word[a.index]);
	}
	EXPECT_EQ(0, word[0]);
}

/* Mapped before the first timer or after many: each timer has its entry, however the table grows */
TEST_F(map, grows)
{
	enum { MANY = 200000, BATCH = 1000 };
	static struct timerwheel_add add[MANY];
	struct timerwheel_stats st;
	struct timerwheel_info info;
	struct timerwheel_event *ev = tw_shared(MANY * sizeof(*ev));
	size_t size = table_size(1 << 20), memory;
	__u64 *word = NULL, unit;
	int i;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	unit = 1ULL << info.generation_bits;
	for (i = 0; i < MANY; i++)
		add[i] = (struct timerwheel_add) { .key = i, .deadline = SEC };
	for (i = 0; i < MANY; i += BATCH) {
		if (i == MANY / 2) {
			ASSERT_EQ(0, tw_stats(self->fd, &st));
			memory = st.memory;
			word = map_table(self->fd, size);
			ASSERT_NE(MAP_FAILED, word);
			/* mapping it takes no memory of the wheel */
			ASSERT_EQ(0, tw_stats(self->fd, &st));
			EXPECT_EQ(memory, st.memory);
		}
		ASSERT_EQ(BATCH, dev_add(self->fd, add + i, BATCH));
	}
	/* postpone every other timer */
	for (i = 0; i < MANY; i += 2)
		ASSERT_EQ(TIMERWHEEL_DONE,
			  timerwheel_mapped_refresh(word, add[i].index,
						    timerwheel_mapped_entry(HOUR, add[i].generation,
									    info.generation_bits),
						    info.generation_bits));
	EXPECT_EQ(MANY / 2, tw_advance(self->fd, 0, MINUTE));
	ASSERT_EQ(MANY / 2, tw_read_all(self->fd, ev, MANY, 0));
	for (i = 0; i < MANY / 2; i++)
		ASSERT_EQ(1, ev[i].key % 2);
	EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, HOUR - 1));
	EXPECT_EQ(MANY / 2, tw_advance(self->fd, TIMERWHEEL_ABS, HOUR + unit + MSEC));
	ASSERT_EQ(MANY / 2, tw_read_all(self->fd, ev, MANY, 0));
	for (i = 0; i < MANY / 2; i++)
		ASSERT_EQ(0, ev[i].key % 2);
}

/* Without SETUP, each timer with the same index also has another generation */
TEST(generations_by_default)
{
	__u32 index = 0, generation = 0;
	struct timerwheel_add a;
	int fd = dev_open(0), i;

	ASSERT_EQ(0, tw_pin(0));
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, arm(fd, &a, 1, HOUR, 0));
		if (i) {
			EXPECT_EQ(index, a.index);
			EXPECT_NE(generation, a.generation);
		}
		index = a.index;
		generation = a.generation;
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(fd, 1));
	}
	close(fd);
}

/* Only SETUP creates the table; mmap() fails without it, and changes nothing */
TEST(only_setup_creates_it)
{
	static const __u32 flags[] = {
		0, TIMERWHEEL_SETUP_TABLE, TIMERWHEEL_SETUP_RESIDENT,
		TIMERWHEEL_SETUP_TABLE | TIMERWHEEL_SETUP_RESIDENT,
	};
	struct timerwheel_setup setup;
	struct timerwheel_stats before, st;
	struct timerwheel_info info;
	unsigned int i;
	int fd;

	for (i = 0; i < 4; i++) {
		fd = dev_open(0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, tw_stats(fd, &before));
		EXPECT_EQ(EINVAL, map_errno(fd, getpagesize(), PROT_READ, MAP_SHARED, 0));
		ASSERT_EQ(0, tw_stats(fd, &st));
		EXPECT_EQ(before.memory, st.memory);
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(0, info.flags);
		setup = (struct timerwheel_setup) { .flags = flags[i] };
		ASSERT_EQ(0, dev_setup(fd, &setup));
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(i ? TIMERWHEEL_INFO_TABLE : 0, info.flags & TIMERWHEEL_INFO_TABLE);
		EXPECT_EQ(i ? 0 : EINVAL,
			  map_errno(fd, getpagesize(), PROT_READ, MAP_SHARED, 0));
		/* nor does a later call create it */
		ASSERT_EQ(0, tw_add1(fd, 1, 0, HOUR, 0));
		EXPECT_EQ(i ? 0 : EINVAL,
			  map_errno(fd, getpagesize(), PROT_READ, MAP_SHARED, 0));
		close(fd);
	}
	/* a wheel that was never set up, with a timer */
	fd = dev_open(0);
	ASSERT_EQ(0, tw_add1(fd, 1, 0, HOUR, 0));
	EXPECT_EQ(EINVAL, map_errno(fd, getpagesize(), PROT_READ, MAP_SHARED, 0));
	close(fd);
}

/* Two mappings in one process, one in a child, one in a process that received the descriptor */
TEST_F(map, is_shared)
{
	size_t size = self->page;
	__u64 *one = map_table(self->fd, size), *two = map_table(self->fd, size), *three;
	struct timerwheel_info info;
	struct timerwheel_add a;
	pid_t pid;

	ASSERT_NE(MAP_FAILED, one);
	ASSERT_NE(MAP_FAILED, two);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	ASSERT_EQ(0, arm(self->fd, &a, 1, SEC, 0));
	timerwheel_mapped_refresh(one, a.index,
				  timerwheel_mapped_entry(2 * SEC, a.generation,
							  info.generation_bits),
				  info.generation_bits);
	EXPECT_EQ(one[a.index], two[a.index]);
	munmap(one, size);
	EXPECT_LE(2 * SEC, deadline_of(self->fd, 1));

	pid = fork();
	if (!pid) {
		/* inherited */
		timerwheel_mapped_refresh(two, a.index,
					  timerwheel_mapped_entry(3 * SEC, a.generation,
								  info.generation_bits),
					  info.generation_bits);
		_exit(0);
	}
	ASSERT_EQ(0, tw_reap(pid));
	EXPECT_LE(3 * SEC, deadline_of(self->fd, 1));

	pid = fork();
	if (!pid) {
		munmap(two, size);
		three = map_table(self->fd, size);
		if (three == MAP_FAILED)
			_exit(1);
		timerwheel_mapped_refresh(three, a.index,
					  timerwheel_mapped_entry(4 * SEC, a.generation,
								  info.generation_bits),
					  info.generation_bits);
		_exit(0);
	}
	ASSERT_EQ(0, tw_reap(pid));
	EXPECT_LE(4 * SEC, deadline_of(self->fd, 1));
}

/* The table outlives the descriptor, and the wheel outlives its daemon's mapping */
TEST_F(map, outlives_the_descriptor)
{
	int other = dup(self->fd);
	__u64 *word = map_table(other, self->page), entry;
	struct timerwheel_info info;
	struct timerwheel_add a;
	int i;

	ASSERT_NE(MAP_FAILED, word);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	ASSERT_EQ(0, arm(self->fd, &a, 1, SEC, 0));
	entry = timerwheel_mapped_entry(SEC, a.generation, info.generation_bits) |
		TIMERWHEEL_TABLE_ARMED;
	close(other);
	close(self->fd);
	self->fd = -1;
	for (i = 0; i < (int)(self->page / sizeof(__u64)); i++) {
		EXPECT_EQ(i == (int)a.index ? entry : 0, word[i]);
		word[i] = ~0ULL;
	}
	munmap(word, self->page);
}

/* --- Running clocks ---------------------------------------------------------------- */

FIXTURE(clock) {
	int fd;
	unsigned int bits;
	__u64 *word;
};

FIXTURE_VARIANT(clock) {
	__u32 clock;
	clockid_t id;
};

FIXTURE_VARIANT_ADD(clock, monotonic) {
	.clock = TIMERWHEEL_CLOCK_MONOTONIC,
	.id = CLOCK_MONOTONIC,
};

FIXTURE_VARIANT_ADD(clock, boottime) {
	.clock = TIMERWHEEL_CLOCK_BOOTTIME,
	.id = CLOCK_BOOTTIME,
};

FIXTURE_VARIANT_ADD(clock, realtime) {
	.clock = TIMERWHEEL_CLOCK_REALTIME,
	.id = CLOCK_REALTIME,
};

FIXTURE_SETUP(clock)
{
	struct timerwheel_info info;

	self->fd = tw_open_table(variant->clock, 0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	self->bits = info.generation_bits;
	self->word = map_table(self->fd, table_size(1 << 20));
	ASSERT_NE(MAP_FAILED, self->word);
}

FIXTURE_TEARDOWN(clock)
{
	close(self->fd);
}

/* Postponed only in memory for ten times its timeout, then the timer fires, not early */
TEST_F(clock, heartbeat)
{
	struct timerwheel_event ev;
	struct timerwheel_add a;
	__u64 base = tw_now(variant->id), word = 0;
	int i;

	ASSERT_EQ(0, arm(self->fd, &a, 1, base + 100 * MSEC, 0));
	for (i = 0; i < 100; i++) {
		word = timerwheel_mapped_entry(tw_now(variant->id) + 100 * MSEC, a.generation,
					       self->bits);
		timerwheel_mapped_refresh(self->word, a.index, word, self->bits);
		if (i < 99)
			tw_sleep(10 * MSEC);
		/* if the machine is very slow it may have fired */
		if (dev_poll(self->fd, 0) == POLLIN)
			break;
	}
	ASSERT_EQ(POLLIN, dev_poll(self->fd, LONG_MS));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_LE(ev.deadline, ev.fired);
	if (i == 100) {
		EXPECT_EQ(word - a.generation, ev.deadline);
		EXPECT_LE(base + SEC, ev.fired);
	}
	EXPECT_GE(tw_now(variant->id), ev.fired);
}

/* At most one interrupt for each previous deadline, however often it is refreshed */
TEST_F(clock, refresh_wakes_nobody)
{
	struct timerwheel_stats before, st;
	struct timerwheel_add a;
	__u64 base = tw_now(variant->id);
	int i;

	ASSERT_EQ(0, arm(self->fd, &a, 1, base + HOUR, 0));
	ASSERT_EQ(0, tw_stats(self->fd, &before));
	for (i = 0; i < 1000000; i++)
		timerwheel_mapped_refresh(self->word, a.index,
					  timerwheel_mapped_entry(base + HOUR + i, a.generation,
								  self->bits), self->bits);
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(before.firings, st.firings);
	EXPECT_EQ(before.passes, st.passes);
	EXPECT_EQ(before.requeues, st.requeues);
}

/* A deadline in the table is absolute, even if the clock is set */
TEST(realtime_set)
{
	int fd = tw_open_table(TIMERWHEEL_CLOCK_REALTIME, 0);
	__u64 base = tw_now(CLOCK_REALTIME), *word;
	struct timerwheel_event ev;
	struct timerwheel_info info;
	struct timerwheel_add a;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &info));
	word = map_table(fd, getpagesize());
	ASSERT_NE(MAP_FAILED, word);
	ASSERT_EQ(0, arm(fd, &a, 1, base + HOUR, 0));
	ASSERT_EQ(TIMERWHEEL_DONE,
		  timerwheel_mapped_refresh(word, a.index,
					    timerwheel_mapped_entry(base + 2 * HOUR, a.generation,
								    info.generation_bits),
					    info.generation_bits));
	ASSERT_EQ(0, tw_set_realtime(base + HOUR + MINUTE));
	EXPECT_EQ(0, dev_poll(fd, 100));
	ASSERT_EQ(0, tw_set_realtime(base + 2 * HOUR + MINUTE));
	EXPECT_EQ(POLLIN, dev_poll(fd, LONG_MS));
	ASSERT_EQ(1, dev_read(fd, &ev, 1));
	EXPECT_LE(base + 2 * HOUR, ev.deadline);
	EXPECT_GE(base + 2 * HOUR + MSEC, ev.deadline);
	tw_set_realtime(base);
	close(fd);
}

/* Deadlines in the table are in the time namespace of SETUP */
TEST(time_namespace)
{
	struct timerwheel_event ev;
	struct timerwheel_info info;
	struct timerwheel_add a;
	__u64 *word, now;
	int fd, ret;
	pid_t pid;

	ret = unshare(CLONE_NEWTIME);
	if (ret && errno == EINVAL)
		SKIP(return, "no time namespaces");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, tw_file_write("/proc/self/timens_offsets", "monotonic 100000 0"));
	pid = fork();
	if (pid) {
		EXPECT_EQ(0, tw_reap(pid));
		return;
	}
	if (tw_now(CLOCK_MONOTONIC) < 100000 * SEC)
		_exit(1);
	fd = tw_open_table(TIMERWHEEL_CLOCK_MONOTONIC, 0);
	word = map_table(fd, getpagesize());
	if (word == MAP_FAILED || tw_info(fd, &info))
		_exit(2);
	/* Retry if it was due before the refresh, in a slow guest */
	do {
		now = tw_now(CLOCK_MONOTONIC);
		if (arm(fd, &a, 1, now + 2 * SEC, 0) < 0)
			_exit(3);
	} while (timerwheel_mapped_refresh(word, a.index,
					   timerwheel_mapped_entry(now + 2200 * MSEC, a.generation,
								   info.generation_bits),
					   info.generation_bits) != TIMERWHEEL_DONE);
	if (dev_poll(fd, LONG_MS) != POLLIN || dev_read(fd, &ev, 1) != 1)
		_exit(4);
	if (ev.deadline < now + 2200 * MSEC || ev.deadline > now + 2202 * MSEC)
		_exit(5);
	_exit(ev.fired < ev.deadline ? 6 : 0);
}

/* mmap() in a time namespace in which the clock differs from SETUP's clock is EXDEV */
TEST(other_time_namespace)
{
	/* A clock that differs there, and one that does not */
	static const __u32 clock[] = { TIMERWHEEL_CLOCK_BOOTTIME, TIMERWHEEL_CLOCK_REALTIME };
	int fd[2], i, ret;
	pid_t pid;

	for (i = 0; i < 2; i++) {
		fd[i] = tw_open_table(clock[i], 0);
		ASSERT_LE(0, fd[i]);
	}
	ret = unshare(CLONE_NEWTIME);
	if (ret && errno == EINVAL)
		SKIP(return, "no time namespaces");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, tw_file_write("/proc/self/timens_offsets", "boottime 0 1"));
	pid = fork();
	if (!pid) {
		if (map_table(fd[0], getpagesize()) != MAP_FAILED || errno != EXDEV)
			_exit(1);
		if (map_table(fd[1], getpagesize()) == MAP_FAILED)
			_exit(2);
		_exit(map_table(tw_open_table(clock[0], 0), getpagesize()) == MAP_FAILED ? 3 : 0);
	}
	EXPECT_EQ(0, tw_reap(pid));
	EXPECT_NE(MAP_FAILED, map_table(fd[0], getpagesize()));
	for (i = 0; i < 2; i++)
		close(fd[i]);
}

/* --- Changes while timers expire, on other CPUs ------------------------------------- */

enum { CROWD = 2000 };

FIXTURE(crowd) {
	int fd, cpus;
	unsigned int bits;
	__u64 *word;
	struct timerwheel_add *add;
	__u64 *put_off;
	enum timerwheel_answer *answer;
	int *seen;
	atomic_bool stop;
	pthread_t thread;
};

FIXTURE_SETUP(crowd)
{
	struct timerwheel_info info;

	self->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	self->fd = tw_open_table(TIMERWHEEL_CLOCK_MONOTONIC, 0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	self->bits = info.generation_bits;
	self->word = map_table(self->fd, table_size(1 << 20));
	ASSERT_NE(MAP_FAILED, self->word);
	self->add = calloc(CROWD, sizeof(*self->add));
	self->put_off = calloc(CROWD, sizeof(*self->put_off));
	self->answer = calloc(CROWD, sizeof(*self->answer));
	self->seen = calloc(CROWD, sizeof(*self->seen));
	self->stop = false;
}

FIXTURE_TEARDOWN(crowd)
{
	free(self->add);
	free(self->put_off);
	free(self->answer);
	free(self->seen);
	close(self->fd);
}

/* Arm a timer every 50 us from @from */
static int crowd_arm(FIXTURE_DATA(crowd) * self, __u64 from)
{
	int i;

	for (i = 0; i < CROWD; i++)
		self->add[i] = (struct timerwheel_add) {
			.key = i, .deadline = from + i * 50 * USEC, .flags = TIMERWHEEL_ABS,
		};
	return dev_add(self->fd, self->add, CROWD);
}

/* Refresh each timer once, shortly before or after its deadline */
static void *crowd_refreshes(void *arg)
{
	FIXTURE_DATA(crowd) * self = arg;
	__u64 state = tw_seed();
	int i;

	tw_pin(self->cpus - 1);
	for (i = 0; i < CROWD; i++) {
		__u64 at = self->add[i].deadline + tw_rand(&state) % (2 * MSEC);

		while (tw_now(CLOCK_MONOTONIC) < at)
			;
		self->answer[i] = timerwheel_mapped_refresh(self->word, self->add[i].index,
							    self->put_off[i], self->bits);
	}
	return NULL;
}

/* There is an event for the old deadline or for the new one, according to the refresh's result */
TEST_F(crowd, either_or)
{
	static struct timerwheel_event ev[CROWD];
	int i, n, got, old = 0, new = 0;
	__u64 first, before;

	tw_pin(0);
	first = tw_now(CLOCK_MONOTONIC) + 200 * MSEC;
	ASSERT_EQ(CROWD, crowd_arm(self, first));
	for (i = 0; i < CROWD; i++)
		self->put_off[i] = timerwheel_mapped_entry(self->add[i].deadline + 300 * MSEC,
							   self->add[i].generation, self->bits);
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, crowd_refreshes, self));
	for (got = 0; got < CROWD; got += n) {
		ASSERT_LT(0, dev_poll(self->fd, LONG_MS));
		n = dev_read(self->fd, ev, CROWD);
		ASSERT_LT(0, n);
		for (i = 0; i < n; i++) {
			__u64 key = ev[i].key;

			ASSERT_GT(CROWD, key);
			ASSERT_EQ(0, self->seen[key]++) TH_LOG("key %llu twice", key);
			ASSERT_LE(ev[i].deadline, ev[i].fired);
			before = timerwheel_mapped_entry(self->add[key].deadline, 0, self->bits);
			if (ev[i].deadline == before) {
				old++;
				continue;
			}
			ASSERT_EQ(self->put_off[key] - self->add[key].generation, ev[i].deadline);
			self->seen[key]++;
			new++;
		}
	}
	ASSERT_EQ(0, pthread_join(self->thread, NULL));
	for (i = 0; i < CROWD; i++)
		ASSERT_EQ(self->seen[i] == 2 ? TIMERWHEEL_DONE : TIMERWHEEL_TOO_LATE,
			  self->answer[i]) TH_LOG("key %d", i);
	EXPECT_EQ(0, dev_poll(self->fd, 400));
	EXPECT_EQ(CROWD, old + new);
	TH_LOG("%d fired, %d were put off", old, new);
}

/* Repeatedly postpone every timer by one tick */
static void *crowd_hammers(void *arg)
{
	FIXTURE_DATA(crowd) * self = arg;
	__u64 word;
	int i;

	while (!self->stop)
		for (i = 0; i < CROWD; i++) {
			word = timerwheel_mapped_entry(tw_now(CLOCK_MONOTONIC) + MSEC,
						       self->add[i].generation, self->bits);
			timerwheel_mapped_refresh(self->word, self->add[i].index, word,
						  self->bits);
		}
	return NULL;
}

/* This costs a visit per timer and tick, in batches of limited size, and delays no other timer */
TEST_F(crowd, hammering)
{
	static struct timerwheel_event ev[CROWD];
	struct timerwheel_stats st;
	__u64 began = tw_now(CLOCK_MONOTONIC), ticks, asked;
	int i, other, got;

	other = tw_open_clock(TIMERWHEEL_CLOCK_MONOTONIC, 0, 0);
	ASSERT_LE(0, other);
	ASSERT_EQ(CROWD, crowd_arm(self, began + 20 * MSEC));
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, crowd_hammers, self));
	for (i = 0; i < 20; i++) {
		asked = tw_now(CLOCK_MONOTONIC) + 20 * MSEC;
		ASSERT_EQ(0, tw_add1(other, i, 0, asked, TIMERWHEEL_ABS));
		ASSERT_EQ(POLLIN, dev_poll(other, LONG_MS));
		ASSERT_EQ(1, dev_read(other, ev, 1));
		EXPECT_LE(asked, ev[0].fired);
	}
	self->stop = true;
	ASSERT_EQ(0, pthread_join(self->thread, NULL));
	got = tw_read_all(self->fd, ev, CROWD, LONG_MS);
	EXPECT_EQ(CROWD, got);
	for (i = 0; i < got; i++)
		EXPECT_EQ(0, self->seen[ev[i].key % CROWD]++);
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	ticks = (tw_now(CLOCK_MONOTONIC) - began) / MSEC + 1;
	EXPECT_GE(CROWD * ticks, st.requeues + st.cascades);
	EXPECT_GE(TW_BATCH_TIMERS, st.pass_max_timers);
	EXPECT_TRUE(tw_balanced(&st));
	close(other);
}

/* Store random values anywhere in the table */
static void *crowd_scribbles(void *arg)
{
	FIXTURE_DATA(crowd) * self = arg;
	__u64 state = tw_seed();
	unsigned int i;

	while (!self->stop) {
		i = tw_rand(&state) % CROWD;
		scribble(self->word, i, tw_rand(&state) >> tw_rand(&state) % 64);
	}
	return NULL;
}

/* Timers may then be late, as stored. None is early or lost, and none fires twice. */
TEST_F(crowd, scribbling)
{
	static struct timerwheel_event ev[CROWD];
	static struct timerwheel_entry ent[CROWD];
	__u64 end = tw_now(CLOCK_MONOTONIC) + SEC;
	struct timerwheel_stats st;
	int i, n, round = 0;

	/* The table has entries for existing timers. */
	ASSERT_EQ(CROWD, crowd_arm(self, tw_now(CLOCK_MONOTONIC)));
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, crowd_scribbles, self));
	do {
		memset(self->seen, 0, CROWD * sizeof(*self->seen));
		ASSERT_EQ(CROWD, crowd_arm(self, tw_now(CLOCK_MONOTONIC) + MSEC));
		tw_sleep(20 * MSEC);
		while ((n = dev_read(self->fd, ev, CROWD)) > 0) {
			for (i = 0; i < n; i++) {
				ASSERT_GT(CROWD, ev[i].key);
				ASSERT_LE(self->add[ev[i].key].deadline, ev[i].deadline);
				ASSERT_LE(ev[i].deadline, ev[i].fired);
				self->seen[ev[i].key]++;
			}
		}
		while ((n = tw_drain(self->fd, 0, ent, CROWD)) > 0) {
			for (i = 0; i < n; i++) {
				ASSERT_GT(CROWD, ent[i].key);
				ASSERT_LE(self->add[ent[i].key].deadline, ent[i].deadline);
				self->seen[ent[i].key]++;
			}
		}
		for (i = 0; i < CROWD; i++)
			ASSERT_EQ(1, self->seen[i]) TH_LOG("key %d in round %d", i, round);
		round++;
	} while (tw_now(CLOCK_MONOTONIC) < end);
	self->stop = true;
	ASSERT_EQ(0, pthread_join(self->thread, NULL));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_TRUE(tw_balanced(&st));
}

TEST_HARNESS_MAIN
