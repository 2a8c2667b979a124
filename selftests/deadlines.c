// SPDX-License-Identifier: GPL-2.0
/*
 * deadlines: the deadline table, in which a store to mapped memory postpones a timer.
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

/* ADD a timer at an absolute time; @add has its index and generation afterwards */
static int arm(int fd, struct timerwheel_add *add, __u64 key, __u64 deadline, __u64 period)
{
	*add = (struct timerwheel_add) {
		.key = key, .value = ~key, .deadline = deadline, .period = period,
		.flags = TIMERWHEEL_ABS,
	};
	return tw_add_elem(fd, add);
}

/* --- What a store does, on a wheel with the MANUAL clock --------------------------- */

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
	.bits = 10,
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
		.clock = TIMERWHEEL_CLOCK_MANUAL, .tick = variant->tick, .capacity = CAPACITY,
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
	ASSERT_GT(self->unit, self->a.generation);
}

FIXTURE_TEARDOWN(table)
{
	close(self->fd);
}

/* Store a deadline for the timer that @a armed. Returns the rounded deadline. */
static __u64 store(FIXTURE_DATA(table) * self, const struct timerwheel_add *a, __u64 deadline)
{
	__u64 word = timerwheel_mapped_entry(deadline, a->generation, self->bits);

	timerwheel_mapped_touch(self->word, a->index, word, self->bits);
	return word - a->generation;
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
	EXPECT_EQ(self->a.generation, self->word[self->a.index]);
	ASSERT_EQ(1, tw_drain(self->fd, 0, &ent, 1));
	EXPECT_EQ(self->a.index, ent.index);
	EXPECT_EQ(self->a.generation, ent.generation);
}

/* Without a store nothing changes */
TEST_F(table, untouched)
{
	EXPECT_DUE_AT(100 * SEC);
}

TEST_F(table, puts_off)
{
	EXPECT_DUE_AT(store(self, &self->a, 200 * SEC + 1));
}

/* Postponed to a time in the same tick, as far as the granularity permits */
TEST_F(table, puts_off_a_little)
{
	EXPECT_DUE_AT(store(self, &self->a, 100 * SEC + 1));
}

/* The last store counts, even if an earlier one had a later deadline */
TEST_F(table, last_store_counts)
{
	int i;

	for (i = 0; i < 1000; i++)
		store(self, &self->a, 101 * SEC + i * MSEC);
	store(self, &self->a, HOUR);
	EXPECT_DUE_AT(store(self, &self->a, 150 * SEC));
}

/* A GET in between does not bring the previous deadline back */
TEST_F(table, only_ever_later_once_seen)
{
	__u64 later = store(self, &self->a, 300 * SEC);

	EXPECT_EQ(later, deadline_of(self->fd, 1));
	store(self, &self->a, 200 * SEC);
	EXPECT_DUE_AT(later);
}

/* A store that is earlier than the deadline, equal to it, or 0 changes nothing */
TEST_F(table, not_later_is_ignored)
{
	store(self, &self->a, 50 * SEC);
	EXPECT_EQ(100 * SEC, deadline_of(self->fd, 1));
	store(self, &self->a, 0);
	EXPECT_EQ(100 * SEC, deadline_of(self->fd, 1));
	timerwheel_mapped_store(self->word, self->a.index,
				((100 * SEC) & ~(self->unit - 1)) | self->a.generation);
	EXPECT_DUE_AT(100 * SEC);
}

/* A store beyond the largest time is treated as the largest time */
TEST_F(table, is_clamped)
{
	struct timerwheel_event ev;
	struct timerwheel_entry ent;

	timerwheel_mapped_store(self->word, self->a.index, -self->unit | self->a.generation);
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(self->fd, 1, &ent));
	EXPECT_EQ(TIMERWHEEL_TIME_MAX, ent.deadline);
	EXPECT_EQ(TIMERWHEEL_TIME_MAX, ent.left);
	EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, TIMERWHEEL_TIME_MAX - 1));
	/* its tick ends after the largest time, except a tick of 1 ns */
	EXPECT_EQ(variant->tick == 1, tw_advance(self->fd, TIMERWHEEL_ABS, TIMERWHEEL_TIME_MAX));
	EXPECT_EQ(variant->tick == 1 ? 1 : -EAGAIN, dev_read(self->fd, &ev, 1));
}

/* A store with any other generation, even 0, changes nothing */
TEST_F(table, other_generations_are_ignored)
{
	__u64 late = (HOUR + self->unit) & ~(self->unit - 1);
	__u64 g;

	for (g = 0; g < 1024; g++) {
		if (g == self->a.generation)
			continue;
		timerwheel_mapped_store(self->word, self->a.index, late | g);
		ASSERT_EQ(100 * SEC, deadline_of(self->fd, 1)) TH_LOG("generation %llu", g);
	}
	for (g = 1; g < self->unit; g <<= 1) {
		timerwheel_mapped_store(self->word, self->a.index, late | (self->a.generation ^ g));
		ASSERT_EQ(100 * SEC, deadline_of(self->fd, 1)) TH_LOG("bit %llx", g);
	}
	EXPECT_DUE_AT(100 * SEC);
}

/* A store while the timer is due changes nothing */
TEST_F(table, too_late)
{
	struct timerwheel_event ev;
	struct timerwheel_entry ent;

	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 101 * SEC));
	store(self, &self->a, HOUR);
	ASSERT_EQ(TIMERWHEEL_WAS_DUE, tw_get1(self->fd, 1, &ent));
	EXPECT_EQ(100 * SEC, ent.deadline);
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(100 * SEC, ev.deadline);
	EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, 2 * HOUR));
	EXPECT_EQ(-EAGAIN, dev_read(self->fd, &ev, 1));
}

/* The next timer with an index has another generation, and earlier stores do not affect it */
TEST_F(table, recycled_index)
{
	struct timerwheel_add b;
	unsigned int i, generations = 0;

	store(self, &self->a, HOUR);
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 1));
	for (i = 0; i < 5000; i++) {
		ASSERT_EQ(0, arm(self->fd, &b, 1, 100 * SEC, 0));
		ASSERT_EQ(self->a.index, b.index);
		ASSERT_LT(0, b.generation);
		ASSERT_GT(self->unit, b.generation);
		ASSERT_EQ(100 * SEC, deadline_of(self->fd, 1));
		generations += b.generation == self->a.generation;
		if (b.generation != self->a.generation) {
			/* a late store for the previous timer */
			store(self, &self->a, HOUR);
			ASSERT_EQ(100 * SEC, deadline_of(self->fd, 1));
		}
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 1));
	}
	EXPECT_EQ(5000 / (self->unit - 1), generations);
}

/* A late swap for the previous timer fails, and does not undo a store for the present one */
TEST_F(table, former_owner_undoes_nothing)
{
	__u64 mine, other = timerwheel_mapped_entry(HOUR, self->a.generation, self->bits);
	struct timerwheel_add b;
	int i;

	ASSERT_EQ(1, timerwheel_mapped_touch(self->word, self->a.index, other, self->bits));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 1));
	ASSERT_EQ(0, arm(self->fd, &b, 1, 100 * SEC, 0));
	ASSERT_EQ(self->a.index, b.index);
	/* neither before the first store for the present timer */
	EXPECT_EQ(0, timerwheel_mapped_touch(self->word, b.index, other, self->bits));
	EXPECT_EQ(b.generation, self->word[b.index]);
	for (i = 0; i < 2; i++) {
		/* nor after it, nor after MOVE */
		mine = timerwheel_mapped_entry(200 * SEC, b.generation, self->bits);
		EXPECT_EQ(1, timerwheel_mapped_touch(self->word, b.index, mine, self->bits));
		EXPECT_EQ(0, timerwheel_mapped_touch(self->word, b.index, other, self->bits));
		EXPECT_EQ(mine, self->word[b.index]);
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, 150 * SEC, TIMERWHEEL_ABS));
		EXPECT_EQ(0, timerwheel_mapped_touch(self->word, b.index, other, self->bits));
		EXPECT_EQ(b.generation, self->word[b.index]);
	}
	EXPECT_EQ(1, timerwheel_mapped_touch(self->word, b.index, mine, self->bits));
	EXPECT_EQ(0, timerwheel_mapped_touch(self->word, b.index, other, self->bits));
	EXPECT_DUE_AT(mine - b.generation);
}

/* Timers older than the table can be postponed, whatever had their index before */
TEST_F(table, owners_before_the_table)
{
	int fd = tw_open_manual(variant->tick), i, k;
	struct timerwheel_add add[600];		/* more than a page of entries */
	struct timerwheel_info info;
	struct timerwheel_entry ent;
	__u64 *word, stored;

	ASSERT_EQ(0, tw_info(fd, &info));
	for (k = 0; k < 3; k++) {
		for (i = 0; i < 600; i++) {
			ASSERT_EQ(0, arm(fd, &add[i], i, 100 * SEC, 0));
			if (k < 2 && i % (k + 2))
				ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(fd, i));
		}
		for (i = 0; k < 2 && i < 600; i += k + 2)
			ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(fd, i));
	}
	word = map_table(fd, table_size(600));
	ASSERT_NE(MAP_FAILED, word);
	for (i = 0; i < 600; i++) {
		EXPECT_EQ(add[i].generation, word[add[i].index]);
		stored = timerwheel_mapped_entry(200 * SEC, add[i].generation,
						 info.generation_bits);
		ASSERT_EQ(1, timerwheel_mapped_touch(word, add[i].index, stored,
						     info.generation_bits));
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(fd, i, &ent));
		EXPECT_EQ(stored - add[i].generation, ent.deadline);
	}
	close(fd);
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
	store(self, &self->a, HOUR);
	EXPECT_EQ(200 * SEC, deadline_of(self->fd, 2));
	ASSERT_EQ(1, tw_drain(self->fd, 0, &ent, 1));
	ASSERT_EQ(0, arm(self->fd, &self->a, 3, 300 * SEC, 0));
	ASSERT_EQ(self->a.index, b.index);
	EXPECT_NE(self->a.generation, b.generation);
	store(self, &b, HOUR);
	EXPECT_EQ(300 * SEC, deadline_of(self->fd, 3));
}

/* MOVE discards an earlier store; a store after it counts */
TEST_F(table, move_forgets)
{
	static const __u64 to[] = { 150 * SEC, 120 * SEC, 130 * SEC, 250 * SEC };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		store(self, &self->a, 200 * SEC);
		if (i & 1)
			EXPECT_LE(200 * SEC, deadline_of(self->fd, 1));
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, to[i], TIMERWHEEL_ABS));
		EXPECT_EQ(to[i], deadline_of(self->fd, 1));
		EXPECT_EQ(self->a.generation, self->word[self->a.index]);
	}
	EXPECT_DUE_AT(store(self, &self->a, 400 * SEC));
}

/* So does ADD of an existing key; index and generation do not change */
TEST_F(table, add_forgets)
{
	struct timerwheel_add b;

	store(self, &self->a, 200 * SEC);
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, arm(self->fd, &b, 1, 150 * SEC, 0));
	EXPECT_EQ(self->a.index, b.index);
	EXPECT_EQ(self->a.generation, b.generation);
	EXPECT_EQ(150 * SEC, deadline_of(self->fd, 1));
	store(self, &self->a, 200 * SEC);
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, arm(self->fd, &b, 1, 50 * SEC, 0));
	EXPECT_EQ(50 * SEC, deadline_of(self->fd, 1));
	EXPECT_DUE_AT(store(self, &b, 60 * SEC));
}

/* So does MOVE of a due timer, for which a store came too late */
TEST_F(table, move_due_forgets)
{
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 101 * SEC));
	store(self, &self->a, HOUR);
	ASSERT_EQ(TIMERWHEEL_WAS_DUE, tw_move1(self->fd, 1, 200 * SEC, TIMERWHEEL_ABS));
	EXPECT_DUE_AT(200 * SEC);
}

/* REMOVE and DRAIN report the time left until the stored deadline */
TEST_F(table, left_is_until_then)
{
	struct timerwheel_remove rem = { .key = 1 };
	struct timerwheel_entry ent;
	struct timerwheel_add b;
	__u64 at = store(self, &self->a, 200 * SEC);

	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove_elem(self->fd, &rem));
	EXPECT_EQ(at, rem.left);
	ASSERT_EQ(0, arm(self->fd, &b, 2, 100 * SEC, 0));
	at = store(self, &b, 300 * SEC);
	ASSERT_EQ(1, tw_drain(self->fd, 0, &ent, 1));
	EXPECT_EQ(at, ent.left);
	EXPECT_EQ(at, ent.deadline);
}

/* A failed MATCH or a bad flag does not discard a store */
TEST_F(table, failures_forget_nothing)
{
	__u64 at = store(self, &self->a, 200 * SEC);

	EXPECT_EQ(-ESTALE, tw_move1_match(self->fd, 1, SEC, 77, TIMERWHEEL_ABS));
	EXPECT_EQ(-EINVAL, tw_move1(self->fd, 1, SEC, 1U << 30));
	EXPECT_EQ(-ESTALE, tw_add1_match(self->fd, 1, 0, SEC, 77, 0));
	EXPECT_EQ(-EEXIST, tw_add1(self->fd, 1, 0, SEC, TIMERWHEEL_EXCL));
	EXPECT_DUE_AT(at);
}

/* A periodic timer is postponed once, and its period counts from there */
TEST_F(table, periodic)
{
	struct timerwheel_event ev;
	__u64 at;
	int i;

	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, arm(self->fd, &self->a, 1, 100 * SEC, 10 * SEC));
	at = store(self, &self->a, 205 * SEC);
	EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, at - 1));
	for (i = 0; i < 3; i++, at += 10 * SEC) {
		EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, at + variant->tick));
		ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
		EXPECT_EQ(at, ev.deadline);
		EXPECT_EQ(TIMERWHEEL_EVENT_PERIODIC, ev.flags);
		EXPECT_EQ(0, ev.overruns);
		EXPECT_EQ(at + 10 * SEC, deadline_of(self->fd, 1));
	}
}

/* A store while a periodic timer is due applies to its next deadline */
TEST_F(table, periodic_while_due)
{
	struct timerwheel_event ev;
	__u64 at;

	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, arm(self->fd, &self->a, 1, 100 * SEC, 10 * SEC));
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 101 * SEC));
	at = store(self, &self->a, 155 * SEC);
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(100 * SEC, ev.deadline);
	EXPECT_DUE_AT(at);
	EXPECT_EQ(at + 10 * SEC, deadline_of(self->fd, 1));
}

/* However many stores there are, each previous deadline costs one visit */
TEST_F(table, costs_one_visit)
{
	struct timerwheel_stats before, st;
	struct timerwheel_event ev;
	__u64 at = 100 * SEC;
	int i, j;

	ASSERT_EQ(0, tw_stats(self->fd, &before));
	for (i = 0; i < 5; i++) {
		for (j = 0; j < 100000; j++)
			store(self, &self->a, at + SEC + j * MSEC);
		at = store(self, &self->a, at + 100 * SEC);
		EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, at - SEC));
	}
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(before.moved, st.moved);
	EXPECT_EQ(before.armed, st.armed);
	/* it may cascade as well */
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
		.clock = TIMERWHEEL_CLOCK_MANUAL, .capacity = 1 << 20,
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

/* There are entries for the most timers so far, in whole pages; beyond them there is SIGBUS */
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

/* The table has nothing of what was in its pages before, only the generations of the timers */
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
	for (i = 0; i < size / sizeof(*word) - 1; i++)
		ASSERT_EQ(0, arm(self->fd, &a, i, HOUR, 0));
	EXPECT_EQ(0, word[0]);
	for (i = 0; i < size / sizeof(*word); i++)
		ASSERT_GT(1ULL << info.generation_bits, word[i]);
}

/* Mapped before the first timer or after many: each has its entry, however the table grows */
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
			ASSERT_EQ(0, tw_stats(self->fd, &st));
			/* 8 bytes for each timer, and a directory */
			EXPECT_LE(memory + 8 * MANY / 2, st.memory);
			EXPECT_GE(memory + 8 * MANY / 2 + 4 * self->page, st.memory);
		}
		ASSERT_EQ(BATCH, dev_add(self->fd, add + i, BATCH));
	}
	/* postpone every other timer */
	for (i = 0; i < MANY; i += 2)
		timerwheel_mapped_store(word, add[i].index,
					timerwheel_mapped_entry(HOUR, add[i].generation,
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

/* Without SETUP, too, each timer with the same index has another generation */
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

/* It is too late for SETUP then; INFO has the flag */
TEST(setup_is_too_late)
{
	struct timerwheel_setup setup = {};
	struct timerwheel_info info;
	int fd = dev_open(0);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0, info.flags & TIMERWHEEL_INFO_SETTLED);
	EXPECT_EQ(EINVAL, map_errno(fd, getpagesize(), PROT_READ, MAP_PRIVATE, 0));
	EXPECT_EQ(EINVAL, map_errno(fd, getpagesize(), PROT_READ, MAP_SHARED, 1LL << 50));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0, info.flags & TIMERWHEEL_INFO_SETTLED);
	EXPECT_EQ(0, map_errno(fd, getpagesize(), PROT_READ, MAP_SHARED, 0));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TIMERWHEEL_INFO_SETTLED, info.flags & TIMERWHEEL_INFO_SETTLED);
	EXPECT_EQ(-EBUSY, dev_setup(fd, &setup));
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
	timerwheel_mapped_store(one, a.index, timerwheel_mapped_entry(2 * SEC, a.generation,
								      info.generation_bits));
	EXPECT_EQ(one[a.index], two[a.index]);
	munmap(one, size);
	EXPECT_LE(2 * SEC, deadline_of(self->fd, 1));

	pid = fork();
	if (!pid) {
		/* inherited */
		timerwheel_mapped_store(two, a.index,
					timerwheel_mapped_entry(3 * SEC, a.generation,
								info.generation_bits));
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
		timerwheel_mapped_store(three, a.index,
					timerwheel_mapped_entry(4 * SEC, a.generation,
								info.generation_bits));
		_exit(0);
	}
	ASSERT_EQ(0, tw_reap(pid));
	EXPECT_LE(4 * SEC, deadline_of(self->fd, 1));
}

/* The table outlives the descriptor, and the wheel outlives its daemon's mapping */
TEST_F(map, outlives_the_descriptor)
{
	int other = dup(self->fd);
	__u64 *word = map_table(other, self->page);
	struct timerwheel_add a;
	int i;

	ASSERT_NE(MAP_FAILED, word);
	ASSERT_EQ(0, arm(self->fd, &a, 1, SEC, 0));
	close(other);
	close(self->fd);
	self->fd = -1;
	for (i = 0; i < (int)(self->page / sizeof(__u64)); i++) {
		EXPECT_EQ(i == (int)a.index ? a.generation : 0, word[i]);
		word[i] = ~0ULL;
	}
	munmap(word, self->page);
}

/* --- Clocks that run --------------------------------------------------------------- */

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

	self->fd = tw_open_clock(variant->clock, 0, 0);
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

/* Postponed only by stores for ten times its timeout, then the timer fires, not early */
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
		timerwheel_mapped_store(self->word, a.index, word);
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

/* At most one interrupt for each previous deadline, whatever is stored */
TEST_F(clock, stores_wake_nobody)
{
	struct timerwheel_stats before, st;
	struct timerwheel_add a;
	__u64 base = tw_now(variant->id);
	int i;

	ASSERT_EQ(0, arm(self->fd, &a, 1, base + HOUR, 0));
	ASSERT_EQ(0, tw_stats(self->fd, &before));
	for (i = 0; i < 1000000; i++)
		timerwheel_mapped_store(self->word, a.index,
					timerwheel_mapped_entry(base + HOUR + i, a.generation,
								self->bits));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(before.firings, st.firings);
	EXPECT_EQ(before.passes, st.passes);
	EXPECT_EQ(before.requeues, st.requeues);
}

/* A stored deadline is absolute, even if the clock is set */
TEST(realtime_set)
{
	int fd = tw_open_clock(TIMERWHEEL_CLOCK_REALTIME, 0, 0);
	__u64 base = tw_now(CLOCK_REALTIME), *word;
	struct timerwheel_event ev;
	struct timerwheel_info info;
	struct timerwheel_add a;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &info));
	word = map_table(fd, getpagesize());
	ASSERT_NE(MAP_FAILED, word);
	ASSERT_EQ(0, arm(fd, &a, 1, base + HOUR, 0));
	timerwheel_mapped_store(word, a.index,
				timerwheel_mapped_entry(base + 2 * HOUR, a.generation,
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

/* Stored deadlines are in the time namespace of the process that maps the table */
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
	fd = dev_open(O_NONBLOCK);
	word = map_table(fd, getpagesize());
	if (word == MAP_FAILED || tw_info(fd, &info))
		_exit(2);
	/* Once more if it was due before the store, in a slow guest */
	do {
		now = tw_now(CLOCK_MONOTONIC);
		if (arm(fd, &a, 1, now + 2 * SEC, 0) < 0)
			_exit(3);
		timerwheel_mapped_store(word, a.index,
					timerwheel_mapped_entry(now + 2200 * MSEC, a.generation,
								info.generation_bits));
	} while (tw_now(CLOCK_MONOTONIC) >= now + 2 * SEC);
	if (dev_poll(fd, LONG_MS) != POLLIN || dev_read(fd, &ev, 1) != 1)
		_exit(4);
	if (ev.deadline < now + 2200 * MSEC || ev.deadline > now + 2202 * MSEC)
		_exit(5);
	_exit(ev.fired < ev.deadline ? 6 : 0);
}

/* mmap() in a time namespace other than that of the first mapping is EXDEV */
TEST(other_time_namespace)
{
	/* A clock that differs there, and one that does not; mapped first here or there */
	static const __u32 clock[] = {
		TIMERWHEEL_CLOCK_BOOTTIME, TIMERWHEEL_CLOCK_REALTIME, TIMERWHEEL_CLOCK_BOOTTIME,
	};
	int fd[3], i, ret;
	pid_t pid;

	for (i = 0; i < 3; i++) {
		fd[i] = tw_open_clock(clock[i], 0, 0);
		ASSERT_LE(0, fd[i]);
		if (i < 2)
			ASSERT_NE(MAP_FAILED, map_table(fd[i], getpagesize()));
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
		_exit(map_table(fd[2], getpagesize()) == MAP_FAILED ? 3 : 0);
	}
	EXPECT_EQ(0, tw_reap(pid));
	EXPECT_NE(MAP_FAILED, map_table(fd[0], getpagesize()));
	EXPECT_EQ(MAP_FAILED, map_table(fd[2], getpagesize()));
	EXPECT_EQ(EXDEV, errno);
	for (i = 0; i < 3; i++)
		close(fd[i]);
}

/* --- Timers come and go while the table is created ---------------------------------- */

enum { COMING = 600 };

static atomic_bool coming_stop;

/* Arm and remove half of the keys again and again: each time an index gets another timer. */
static void *come_and_go(void *arg)
{
	int fd = *(int *)arg, i;

	while (!atomic_load(&coming_stop)) {
		for (i = 0; i < COMING; i += 2)
			tw_remove1(fd, i);
		for (i = 0; i < COMING; i += 2)
			tw_add1(fd, i, 0, HOUR, 0);
	}
	return NULL;
}

/*
 * However these overlap, each timer's entry has its generation. (This test cannot hit the window
 * for which tw_table_share() has its barrier: it is as short as the delay of a store.)
 */
TEST(made_under_way)
{
	struct timerwheel_entry ent;
	pthread_t thread[2];
	int round, i, fd;
	__u64 *word;

	for (round = 0; round < 200; round++) {
		fd = dev_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		for (i = 0; i < COMING; i++)
			ASSERT_EQ(0, tw_add1(fd, i, 0, HOUR, 0));
		atomic_store(&coming_stop, false);
		for (i = 0; i < 2; i++)
			ASSERT_EQ(0, pthread_create(&thread[i], NULL, come_and_go, &fd));
		tw_sleep(round % 8 * 50 * USEC);
		word = map_table(fd, table_size(COMING));
		atomic_store(&coming_stop, true);
		for (i = 0; i < 2; i++)
			pthread_join(thread[i], NULL);
		ASSERT_NE(MAP_FAILED, word);
		for (i = 0; i < COMING; i++) {
			if (tw_get1(fd, i, &ent) == -ENOENT)
				continue;
			ASSERT_EQ(ent.generation, word[ent.index]);
		}
		munmap(word, table_size(COMING));
		close(fd);
	}
}

/* --- Stores while timers expire, on other CPUs ------------------------------------- */

enum { CROWD = 2000 };

FIXTURE(crowd) {
	int fd, cpus;
	unsigned int bits;
	__u64 *word;
	struct timerwheel_add *add;
	__u64 *put_off;
	int *seen;
	atomic_bool stop;
	pthread_t thread;
};

FIXTURE_SETUP(crowd)
{
	struct timerwheel_info info;

	self->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	self->fd = tw_open_clock(TIMERWHEEL_CLOCK_MONOTONIC, 0, 0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	self->bits = info.generation_bits;
	self->word = map_table(self->fd, table_size(1 << 20));
	ASSERT_NE(MAP_FAILED, self->word);
	self->add = calloc(CROWD, sizeof(*self->add));
	self->put_off = calloc(CROWD, sizeof(*self->put_off));
	self->seen = calloc(CROWD, sizeof(*self->seen));
	self->stop = false;
}

FIXTURE_TEARDOWN(crowd)
{
	free(self->add);
	free(self->put_off);
	free(self->seen);
	close(self->fd);
}

/* Arm a timer every 50 us from @from on */
static int crowd_arm(FIXTURE_DATA(crowd) * self, __u64 from)
{
	int i;

	for (i = 0; i < CROWD; i++)
		self->add[i] = (struct timerwheel_add) {
			.key = i, .deadline = from + i * 50 * USEC, .flags = TIMERWHEEL_ABS,
		};
	return dev_add(self->fd, self->add, CROWD);
}

/* Store for each timer once, shortly before or after its deadline */
static void *crowd_stores(void *arg)
{
	FIXTURE_DATA(crowd) * self = arg;
	__u64 state = tw_seed();
	int i;

	tw_pin(self->cpus - 1);
	for (i = 0; i < CROWD; i++) {
		__u64 at = self->add[i].deadline + tw_rand(&state) % (2 * MSEC);

		while (tw_now(CLOCK_MONOTONIC) < at)
			;
		timerwheel_mapped_store(self->word, self->add[i].index, self->put_off[i]);
	}
	return NULL;
}

/* There is an event for the old deadline or for the new one: never both, never neither */
TEST_F(crowd, either_or)
{
	static struct timerwheel_event ev[CROWD];
	int i, n, got, old = 0, new = 0;
	__u64 first;

	tw_pin(0);
	first = tw_now(CLOCK_MONOTONIC) + 200 * MSEC;
	ASSERT_EQ(CROWD, crowd_arm(self, first));
	for (i = 0; i < CROWD; i++)
		self->put_off[i] = timerwheel_mapped_entry(self->add[i].deadline + 300 * MSEC,
							   self->add[i].generation, self->bits);
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, crowd_stores, self));
	for (got = 0; got < CROWD; got += n) {
		ASSERT_LT(0, dev_poll(self->fd, LONG_MS));
		n = dev_read(self->fd, ev, CROWD);
		ASSERT_LT(0, n);
		for (i = 0; i < n; i++) {
			__u64 key = ev[i].key;

			ASSERT_GT(CROWD, key);
			ASSERT_EQ(0, self->seen[key]++) TH_LOG("key %llu twice", key);
			ASSERT_LE(ev[i].deadline, ev[i].fired);
			if (ev[i].deadline == self->add[key].deadline) {
				old++;
				continue;
			}
			ASSERT_EQ(self->put_off[key] - self->add[key].generation, ev[i].deadline);
			new++;
		}
	}
	ASSERT_EQ(0, pthread_join(self->thread, NULL));
	EXPECT_EQ(0, dev_poll(self->fd, 400));
	EXPECT_EQ(CROWD, old + new);
	TH_LOG("%d fired, %d were put off", old, new);
}

/* Postpones every timer by one tick, again and again */
static void *crowd_hammers(void *arg)
{
	FIXTURE_DATA(crowd) * self = arg;
	__u64 word;
	int i;

	while (!self->stop)
		for (i = 0; i < CROWD; i++) {
			word = timerwheel_mapped_entry(tw_now(CLOCK_MONOTONIC) + MSEC,
						       self->add[i].generation, self->bits);
			timerwheel_mapped_store(self->word, self->add[i].index, word);
		}
	return NULL;
}

/* That costs a visit per timer and tick, in batches of limited size, and delays no other timer */
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

/* Store anything, anywhere in the table */
static void *crowd_scribbles(void *arg)
{
	FIXTURE_DATA(crowd) * self = arg;
	__u64 state = tw_seed();
	unsigned int i;

	while (!self->stop) {
		i = tw_rand(&state) % CROWD;
		timerwheel_mapped_store(self->word, i, tw_rand(&state) >> tw_rand(&state) % 64);
	}
	return NULL;
}

/* Timers may then be late, which is what was stored. None is early or lost, none fires twice. */
TEST_F(crowd, scribbling)
{
	static struct timerwheel_event ev[CROWD];
	static struct timerwheel_entry ent[CROWD];
	__u64 end = tw_now(CLOCK_MONOTONIC) + SEC;
	struct timerwheel_stats st;
	int i, n, round = 0;

	/* Where there are timers there are entries. */
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
