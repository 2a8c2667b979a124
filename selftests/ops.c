// SPDX-License-Identifier: GPL-2.0
/*
 * ops: the effect of each operation. Tests every flag and every documented error, alone and in
 * batches, on timers that are pending, due, delivered or absent, then random operations against a
 * small model. The wheels are MANUAL, so all results are known in advance.
 *
 * TW_OPERATIONS: number of operations against the model (150,000).
 */
#include "tw_test.h"
#include <pthread.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>

#define TICK	1000ULL
#define T(n)	((n) * TICK)
#define START	T(1000)		/* the time when a test begins */
#define MAX_USER_MEMORY	"/sys/module/timerwheel/parameters/max_user_memory"

/* --- Helpers ------------------------------------------------------------ */

/* No event waits: poll and read return none */
static bool quiet(int fd)
{
	struct timerwheel_event ev;

	return dev_poll(fd, 0) == 0 && dev_read(fd, &ev, 1) == -EAGAIN;
}

/* Exactly this event waits; reads it */
static bool event_is(int fd, struct timerwheel_event want)
{
	struct timerwheel_event ev[2];
	int ret = dev_poll(fd, 0);

	if (ret != POLLIN) {
		fprintf(stderr, "# poll: %d\n", ret);
		return false;
	}
	ret = dev_read(fd, ev, 2);
	want.index = ev->index;
	if (ret == 1 && !memcmp(ev, &want, sizeof(want)))
		return true;
	fprintf(stderr, "# %d events; %llu: value %llu deadline %llu fired %llu overruns %llu %x\n",
		ret, ev->key, ev->value, ev->deadline, ev->fired, ev->overruns, ev->flags);
	return false;
}

static bool entry_is(const struct timerwheel_entry *ent, struct timerwheel_entry want)
{
	want.index = ent->index;
	want.generation = ent->generation;
	if (!memcmp(ent, &want, sizeof(want)))
		return true;
	fprintf(stderr, "# %llu: value %llu due %llu left %lld period %llu slack %llu %d %x\n",
		ent->key, ent->value, ent->deadline, ent->left, ent->period, ent->slack,
		ent->result, ent->flags);
	return false;
}

/* GET returns exactly this timer */
static bool timer_is(int fd, struct timerwheel_entry want)
{
	struct timerwheel_entry ent;

	tw_get1(fd, want.key, &ent);
	return entry_is(&ent, want);
}

/* A one-shot timer is pending, @left ns before its deadline */
static bool pending_is(int fd, __u64 key, __u64 value, __u64 deadline, __s64 left)
{
	return timer_is(fd, (struct timerwheel_entry){
		.key = key, .value = value, .deadline = deadline, .left = left,
		.result = TIMERWHEEL_WAS_PENDING,
	});
}

static int get_result(int fd, __u64 key)
{
	struct timerwheel_entry ent;

	return tw_get1(fd, key, &ent);
}

static __u32 get_index(int fd, __u64 key)
{
	struct timerwheel_entry ent;

	tw_get1(fd, key, &ent);
	return ent.index;
}

static __u64 now_is(int fd)
{
	struct timerwheel_info info;

	return tw_info(fd, &info) ? ~0ULL : info.now;
}

/* --- An empty wheel at START --------------------------------------------- */

FIXTURE(ops) {
	int fd;
};

FIXTURE_SETUP(ops)
{
	self->fd = tw_open_manual(TICK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 0, START));
}

FIXTURE_TEARDOWN(ops)
{
	struct timerwheel_stats stats;

	/* Every test: no arming is lost or counted twice. */
	EXPECT_EQ(0, tw_stats(self->fd, &stats));
	EXPECT_TRUE(tw_balanced(&stats));
	close(self->fd);
}

/* Make timer @key due: its deadline is START + 5 ticks, and the time is 2 ticks later */
static void make_due(int fd, __u64 key, __u64 value)
{
	if (tw_add1(fd, key, value, START + T(5), TIMERWHEEL_ABS) < 0 ||
	    tw_advance(fd, TIMERWHEEL_ABS, START + T(7)) != 1)
		abort();
}

/* Arm timer @key, let it fall due and read its event */
static void make_delivered(int fd, __u64 key, __u64 value)
{
	struct timerwheel_event ev;

	make_due(fd, key, value);
	if (dev_read(fd, &ev, 1) != 1)
		abort();
}

/* ADD of a new key: WAS_NONE, and the timer is pending as it was armed */
TEST_F(ops, add_new)
{
	struct timerwheel_add add = {
		.key = 1, .value = 2, .deadline = T(5), .period = T(3), .slack = T(2),
		.flags = TIMERWHEEL_SLACK,
	};

	EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add_elem(self->fd, &add));
	EXPECT_TRUE(timer_is(self->fd, (struct timerwheel_entry){
		.key = 1, .value = 2, .deadline = START + T(5), .left = T(5), .period = T(3),
		.slack = T(2), .result = TIMERWHEEL_WAS_PENDING,
	}));
	EXPECT_TRUE(quiet(self->fd));
}

/* Any number can be a key, and any number can be a value */
TEST_F(ops, add_any_key)
{
	static const __u64 keys[] = { 0, 1, 1ULL << 31, 1ULL << 32, 1ULL << 63, ~0ULL };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys); i++)
		EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(self->fd, keys[i], ~keys[i], T(1), 0));
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		EXPECT_TRUE(pending_is(self->fd, keys[i], ~keys[i], START + T(1), T(1)));
}

/* A timer falls due at the tick of its deadline, not before; its event is exact */
TEST_F(ops, add_falls_due)
{
	EXPECT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	EXPECT_EQ(0, tw_advance(self->fd, 0, T(5) - 1));
	EXPECT_TRUE(quiet(self->fd));
	EXPECT_EQ(1, tw_advance(self->fd, 0, 1));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START + T(5), .fired = START + T(5),
	}));
	EXPECT_TRUE(quiet(self->fd));
	EXPECT_EQ(-ENOENT, get_result(self->fd, 1));
}

/* ADD with TIMERWHEEL_ABS: the time is absolute */
TEST_F(ops, add_absolute)
{
	EXPECT_EQ(0, tw_add1(self->fd, 1, 2, START + T(5), TIMERWHEEL_ABS));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, START + T(5), T(5)));
}

/* ADD with a time in the past: due at once, with the requested deadline */
TEST_F(ops, add_past)
{
	EXPECT_EQ(0, tw_add1(self->fd, 1, 2, 3, TIMERWHEEL_ABS));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, get_result(self->fd, 1));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = 3, .fired = START,
	}));
}

/* Times before START, relative to it, and the resulting deadlines: none is before 0 */
static const struct { __u64 time, deadline; } negative[] = {
	{ -1ULL, START - 1 }, { -T(1), START - T(1) }, { -(START - 1ULL), 1 }, { -(__u64)START, 0 },
	{ -(START + 1ULL), 0 }, { -TIMERWHEEL_TIME_MAX, 0 }, { 1ULL << 63, 0 },
};

/* ADD with a negative delay (then - now): due at once, and late by that time */
TEST_F(ops, add_negative)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(negative); i++) {
		EXPECT_EQ(0, tw_add1(self->fd, 1, 2, negative[i].time, 0));
		EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
			.key = 1, .value = 2, .deadline = negative[i].deadline, .fired = START,
		}));
	}
}

/* Periods count from the resulting deadline */
TEST_F(ops, add_negative_periodic)
{
	EXPECT_EQ(0, tw_add1_periodic(self->fd, 1, 2, -T(5), T(2), 0));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START - T(5), .fired = START, .overruns = 2,
		.flags = TIMERWHEEL_EVENT_PERIODIC,
	}));
	EXPECT_EQ(1, tw_advance(self->fd, 0, T(1)));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START + T(1), .fired = START + T(1),
		.flags = TIMERWHEEL_EVENT_PERIODIC,
	}));
}

/* ADD with no delay: due at once */
TEST_F(ops, add_zero)
{
	EXPECT_EQ(0, tw_add1(self->fd, 1, 2, 0, 0));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START, .fired = START,
	}));
}

/* ADD beyond the largest time: treated as the largest time */
TEST_F(ops, add_beyond_max)
{
	static const struct {
		__u64 deadline;
		__u32 flags;
	} far[] = {
		{ TIMERWHEEL_TIME_MAX, 0 }, { TIMERWHEEL_TIME_MAX - START + 1, 0 },
		{ TIMERWHEEL_TIME_MAX, TIMERWHEEL_ABS },
		{ TIMERWHEEL_TIME_MAX + 1, TIMERWHEEL_ABS }, { ~0ULL, TIMERWHEEL_ABS },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(far); i++) {
		EXPECT_EQ(0, tw_add1(self->fd, i, 0, far[i].deadline, far[i].flags));
		EXPECT_TRUE(pending_is(self->fd, i, 0, TIMERWHEEL_TIME_MAX,
				       TIMERWHEEL_TIME_MAX - START));
	}
}

/* ADD of a pending key replaces the whole timer; nothing happens at the old deadline */
TEST_F(ops, upsert_pending)
{
	struct timerwheel_add add = {
		.key = 1, .value = 3, .deadline = T(9), .period = T(4), .slack = T(1),
		.flags = TIMERWHEEL_SLACK,
	};

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, T(5), T(7), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_add_elem(self->fd, &add));
	EXPECT_TRUE(timer_is(self->fd, (struct timerwheel_entry){
		.key = 1, .value = 3, .deadline = START + T(9), .left = T(9), .period = T(4),
		.slack = T(1), .result = TIMERWHEEL_WAS_PENDING,
	}));
	EXPECT_EQ(0, tw_advance(self->fd, 0, T(8)));
	EXPECT_TRUE(quiet(self->fd));
}

/* ADD of a pending key with an earlier deadline: it falls due then, and only then */
TEST_F(ops, upsert_earlier)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(9), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_add1(self->fd, 1, 3, T(5), 0));
	EXPECT_EQ(1, tw_advance(self->fd, 0, T(20)));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 3, .deadline = START + T(5), .fired = START + T(5),
	}));
}

/* ADD of a due key withdraws the old event: it is never read */
TEST_F(ops, upsert_due)
{
	make_due(self->fd, 1, 2);
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_add1(self->fd, 1, 3, T(5), 0));
	EXPECT_TRUE(quiet(self->fd));
	EXPECT_EQ(1, tw_advance(self->fd, 0, T(5)));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 3, .deadline = START + T(12), .fired = START + T(12),
	}));
}

/* ADD of a due key with a time in the past: due again, with the new value only */
TEST_F(ops, upsert_due_past)
{
	make_due(self->fd, 1, 2);
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_add1(self->fd, 1, 3, START, TIMERWHEEL_ABS));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 3, .deadline = START, .fired = START + T(7),
	}));
}

/* ADD of a pending key, with old and new deadline just passed: due at once */
TEST_F(ops, upsert_past_within_tick)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, 200, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 0, 500));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_add1(self->fd, 1, 3, 0, 0));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 3, .deadline = START + 500, .fired = START + 500,
	}));
}

/* ADD of a key whose event was read: a new timer */
TEST_F(ops, add_after_delivered)
{
	make_delivered(self->fd, 1, 2);
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(self->fd, 1, 3, T(5), 0));
	EXPECT_TRUE(pending_is(self->fd, 1, 3, START + T(12), T(5)));
}

/* EXCL: a new key is armed */
TEST_F(ops, excl_new)
{
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(self->fd, 1, 2, T(5), TIMERWHEEL_EXCL));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, START + T(5), T(5)));
}

/* EXCL: a pending key is EEXIST, and the timer does not change */
TEST_F(ops, excl_pending)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	EXPECT_EQ(-EEXIST, tw_add1(self->fd, 1, 3, T(9), TIMERWHEEL_EXCL));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, START + T(5), T(5)));
}

/* EXCL: a due key is EEXIST, and its event is read */
TEST_F(ops, excl_due)
{
	make_due(self->fd, 1, 2);
	EXPECT_EQ(-EEXIST, tw_add1(self->fd, 1, 3, T(9), TIMERWHEEL_EXCL));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START + T(5), .fired = START + T(5),
	}));
}

/* EXCL: a key whose event was read does not exist */
TEST_F(ops, excl_delivered)
{
	make_delivered(self->fd, 1, 2);
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(self->fd, 1, 3, T(5), TIMERWHEEL_EXCL));
}

/* ADD + MATCH with the right value: the timer is replaced, pending or due */
TEST_F(ops, add_match)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(9), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_add1_match(self->fd, 1, 3, T(6), 2, 0));
	EXPECT_TRUE(pending_is(self->fd, 1, 3, START + T(6), T(6)));
	EXPECT_EQ(1, tw_advance(self->fd, 0, T(6)));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_add1_match(self->fd, 1, 0, T(6), 3, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_add1_match(self->fd, 1, 4, T(7), 0, 0));
	EXPECT_TRUE(pending_is(self->fd, 1, 4, START + T(13), T(7)));
}

/* ADD + MATCH with another value: ESTALE, and the pending timer does not change */
TEST_F(ops, add_match_stale)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	EXPECT_EQ(-ESTALE, tw_add1_match(self->fd, 1, 3, T(9), 0, 0));
	EXPECT_EQ(-ESTALE, tw_add1_match(self->fd, 1, 3, T(9), 2 | 1ULL << 32, 0));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, START + T(5), T(5)));
}

/* ADD + MATCH with another value: ESTALE, and the event of the due timer is read */
TEST_F(ops, add_match_stale_due)
{
	make_due(self->fd, 1, 2);
	EXPECT_EQ(-ESTALE, tw_add1_match(self->fd, 1, 3, T(9), 3, 0));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START + T(5), .fired = START + T(5),
	}));
}

/* ADD + MATCH without a timer: ENOENT, and no timer is armed */
TEST_F(ops, add_match_none)
{
	EXPECT_EQ(-ENOENT, tw_add1_match(self->fd, 1, 3, T(9), 0, 0));
	make_delivered(self->fd, 2, 3);
	EXPECT_EQ(-ENOENT, tw_add1_match(self->fd, 2, 3, T(9), 3, 0));
	EXPECT_EQ(-ENOENT, get_result(self->fd, 1));
	EXPECT_EQ(-ENOENT, get_result(self->fd, 2));
}

/* The wheel's default slack is used without the flag; slack is in whole ticks */
TEST_F(ops, slack_granted)
{
	struct timerwheel_setup setup = {
		.clock = TIMERWHEEL_CLOCK_MANUAL, .tick = TICK, .slack = 5 * TICK / 2,
	};
	static const struct {
		__u64 slack, granted;
		__u32 flags;
	} t[] = {
		{ 0, T(2), 0 }, { 0, 0, TIMERWHEEL_SLACK }, { 1, 0, TIMERWHEEL_SLACK },
		{ T(1) - 1, 0, TIMERWHEEL_SLACK }, { T(1), T(1), TIMERWHEEL_SLACK },
		{ T(9) + 1, T(9), TIMERWHEEL_SLACK },
		{ T(0xffffffffULL), T(0xffffffffULL), TIMERWHEEL_SLACK },
		{ T(0x100000000ULL), T(0xffffffffULL), TIMERWHEEL_SLACK },
		{ ~0ULL, T(0xffffffffULL), TIMERWHEEL_SLACK },
	};
	int fd = dev_open(O_NONBLOCK);
	size_t i;

	ASSERT_EQ(0, dev_setup(fd, &setup));
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct timerwheel_add add = {
			.key = i, .deadline = T(5), .slack = t[i].slack, .flags = t[i].flags,
		};
		struct timerwheel_entry ent;

		ASSERT_EQ(0, tw_add_elem(fd, &add));
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(fd, i, &ent));
		EXPECT_EQ(t[i].granted, ent.slack);
	}
}

/* The longest period is the largest time */
TEST_F(ops, period_max)
{
	EXPECT_EQ(0, tw_add1_periodic(self->fd, 1, 2, T(5), TIMERWHEEL_TIME_MAX, 0));
	EXPECT_TRUE(timer_is(self->fd, (struct timerwheel_entry){
		.key = 1, .value = 2, .deadline = START + T(5), .left = T(5),
		.period = TIMERWHEEL_TIME_MAX, .result = TIMERWHEEL_WAS_PENDING,
	}));
}

/* ADD reports each timer's index: within the table, unique, and the same in all calls */
TEST_F(ops, index)
{
	struct timerwheel_add add[200] = { 0 };
	struct timerwheel_entry ent[200];
	struct timerwheel_event ev[100];
	struct timerwheel_info info;
	__u64 cursor = 0;
	int i, j;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	for (i = 0; i < 200; i++) {
		add[i].key = i;
		add[i].deadline = i < 100 ? T(5) : HOUR;
	}
	ASSERT_EQ(200, dev_add(self->fd, add, 200));
	for (i = 0; i < 200; i++) {
		EXPECT_GT(info.capacity, add[i].index);
		EXPECT_EQ(add[i].index, get_index(self->fd, i));
		for (j = 0; j < i; j++)
			ASSERT_NE(add[i].index, add[j].index);
	}
	ASSERT_EQ(200, tw_list(self->fd, &cursor, ent, 200));
	for (i = 0; i < 200; i++)
		EXPECT_EQ(add[ent[i].key].index, ent[i].index);
	ASSERT_EQ(100, tw_advance(self->fd, 0, T(5)));
	ASSERT_EQ(100, dev_read(self->fd, ev, 100));
	for (i = 0; i < 100; i++)
		EXPECT_EQ(add[ev[i].key].index, ev[i].index);
	ASSERT_EQ(100, tw_drain(self->fd, 0, ent, 200));
	for (i = 0; i < 100; i++)
		EXPECT_EQ(add[ent[i].key].index, ent[i].index);
}

/* A timer keeps its index when it is replaced, moved, due, and armed again */
TEST_F(ops, index_stays)
{
	struct timerwheel_add add = { .key = 1, .deadline = T(5), .period = T(5) };
	struct timerwheel_event ev;
	__u32 index;

	ASSERT_EQ(0, tw_add1(self->fd, 0, 0, HOUR, 0));
	ASSERT_EQ(0, tw_add_elem(self->fd, &add));
	index = add.index;
	ASSERT_EQ(0, tw_add1(self->fd, 2, 0, HOUR, 0));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_add_elem(self->fd, &add));
	EXPECT_EQ(index, add.index);
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, T(3), 0));
	EXPECT_EQ(index, get_index(self->fd, 1));
	ASSERT_EQ(1, tw_advance(self->fd, 0, T(3)));
	EXPECT_EQ(index, get_index(self->fd, 1));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(index, ev.index);
	EXPECT_EQ(index, get_index(self->fd, 1));
	ASSERT_EQ(1, tw_advance(self->fd, 0, T(5)));
	ASSERT_EQ(TIMERWHEEL_WAS_DUE, tw_add_elem(self->fd, &add));
	EXPECT_EQ(index, add.index);
}

/* --- MOVE --------------------------------------------------------------- */

/* MOVE later: due at the new deadline, not at the old one; the value stays */
TEST_F(ops, move_later)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, T(9), 0));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, START + T(9), T(9)));
	EXPECT_EQ(0, tw_advance(self->fd, 0, T(9) - 1));
	EXPECT_EQ(1, tw_advance(self->fd, 0, 1));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START + T(9), .fired = START + T(9),
	}));
}

/* MOVE earlier: due at the new deadline, and only once */
TEST_F(ops, move_earlier)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(9), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, T(5), 0));
	EXPECT_EQ(1, tw_advance(self->fd, 0, T(20)));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START + T(5), .fired = START + T(5),
	}));
	EXPECT_TRUE(quiet(self->fd));
}

/* MOVE to the same deadline: pending, and due once */
TEST_F(ops, move_same)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, T(5), 0));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, START + T(5), T(5)));
	EXPECT_EQ(1, tw_advance(self->fd, 0, T(5)));
}

/* MOVE with TIMERWHEEL_ABS: the time is absolute */
TEST_F(ops, move_absolute)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, START + T(9), TIMERWHEEL_ABS));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, START + T(9), T(9)));
}

/* MOVE to a time in the past: due at once */
TEST_F(ops, move_past)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, 3, TIMERWHEEL_ABS));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = 3, .fired = START,
	}));
}

/* MOVE to a time that has just passed, as has the old deadline: due at once */
TEST_F(ops, move_past_within_tick)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, 200, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 0, 500));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, get_result(self->fd, 1));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, START + 300, TIMERWHEEL_ABS));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START + 300, .fired = START + 500,
	}));
}

/* MOVE beyond the largest time: treated as the largest time */
TEST_F(ops, move_beyond_max)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, TIMERWHEEL_TIME_MAX, 0));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, TIMERWHEEL_TIME_MAX, TIMERWHEEL_TIME_MAX - START));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, T(5), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, ~0ULL, TIMERWHEEL_ABS));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, TIMERWHEEL_TIME_MAX, TIMERWHEEL_TIME_MAX - START));
}

/* MOVE by a negative delay, of a pending or due timer: due at once, and late by that time */
TEST_F(ops, move_negative)
{
	size_t i;

	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	for (i = 0; i < ARRAY_SIZE(negative); i++) {
		EXPECT_EQ(i ? TIMERWHEEL_WAS_DUE : TIMERWHEEL_WAS_PENDING,
			  tw_move1(self->fd, 1, negative[i].time, 0));
		EXPECT_TRUE(timer_is(self->fd, (struct timerwheel_entry){
			.key = 1, .value = 2, .deadline = negative[i].deadline,
			.left = negative[i].deadline - START, .result = TIMERWHEEL_WAS_DUE,
		}));
	}
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = 0, .fired = START,
	}));
}

/* MOVE of a due timer withdraws its event; the new deadline applies */
TEST_F(ops, move_due)
{
	make_due(self->fd, 1, 2);
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_move1(self->fd, 1, T(9), 0));
	EXPECT_TRUE(quiet(self->fd));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, START + T(16), T(9)));
	EXPECT_EQ(1, tw_advance(self->fd, 0, T(9)));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START + T(16), .fired = START + T(16),
	}));
}

/* MOVE of a due timer to a time in the past: one event, with the new deadline */
TEST_F(ops, move_due_past)
{
	make_due(self->fd, 1, 2);
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_move1(self->fd, 1, START, TIMERWHEEL_ABS));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START, .fired = START + T(7),
	}));
}

/* MOVE of a timer that never existed, was delivered or was removed: ENOENT */
TEST_F(ops, move_none)
{
	EXPECT_EQ(-ENOENT, tw_move1(self->fd, 1, T(9), 0));
	make_delivered(self->fd, 2, 3);
	EXPECT_EQ(-ENOENT, tw_move1(self->fd, 2, T(9), 0));
	ASSERT_EQ(0, tw_add1(self->fd, 3, 4, T(9), 0));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 3));
	EXPECT_EQ(-ENOENT, tw_move1(self->fd, 3, T(9), 0));
	EXPECT_EQ(0, tw_advance(self->fd, 0, HOUR));
	EXPECT_TRUE(quiet(self->fd));
}

/* MOVE does not change period and slack; later deadlines count from the new one */
TEST_F(ops, move_keeps_period)
{
	struct timerwheel_add add = {
		.key = 1, .value = 2, .deadline = T(5), .period = T(10), .slack = T(2),
		.flags = TIMERWHEEL_SLACK,
	};
	struct timerwheel_event ev;

	ASSERT_EQ(0, tw_add_elem(self->fd, &add));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, T(7), 0));
	ASSERT_EQ(1, tw_advance(self->fd, 0, T(9)));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(START + T(7), ev.deadline);
	EXPECT_TRUE(timer_is(self->fd, (struct timerwheel_entry){
		.key = 1, .value = 2, .deadline = START + T(17), .left = T(8), .period = T(10),
		.slack = T(2), .result = TIMERWHEEL_WAS_PENDING,
	}));
}

/* MOVE + MATCH with the right value: moved, pending or due */
TEST_F(ops, move_match)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, T(5), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1_match(self->fd, 1, T(6), 0, 0));
	EXPECT_TRUE(pending_is(self->fd, 1, 0, START + T(6), T(6)));
	EXPECT_EQ(1, tw_advance(self->fd, 0, T(6)));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_move1_match(self->fd, 1, START + T(9), 0, TIMERWHEEL_ABS));
	EXPECT_TRUE(pending_is(self->fd, 1, 0, START + T(9), T(3)));
}

/* MOVE + MATCH with another value: ESTALE, and the timer does not change */
TEST_F(ops, move_match_stale)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	EXPECT_EQ(-ESTALE, tw_move1_match(self->fd, 1, T(9), 0, 0));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, START + T(5), T(5)));
	ASSERT_EQ(1, tw_advance(self->fd, 0, T(5)));
	EXPECT_EQ(-ESTALE, tw_move1_match(self->fd, 1, T(9), 2 | 1ULL << 32, 0));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START + T(5), .fired = START + T(5),
	}));
}

/* MOVE + MATCH without a timer: ENOENT */
TEST_F(ops, move_match_none)
{
	EXPECT_EQ(-ENOENT, tw_move1_match(self->fd, 1, T(9), 0, 0));
	make_delivered(self->fd, 2, 3);
	EXPECT_EQ(-ENOENT, tw_move1_match(self->fd, 2, T(9), 3, 0));
}

/* --- REMOVE ------------------------------------------------------------- */

/* REMOVE of a pending timer: its value, and the time left; no event follows */
TEST_F(ops, remove_pending)
{
	struct timerwheel_remove rem = { .key = 1 };

	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	ASSERT_EQ(0, tw_advance(self->fd, 0, T(1) + 1));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove_elem(self->fd, &rem));
	EXPECT_EQ(2, rem.value);
	EXPECT_EQ(T(4) - 1, rem.left);
	EXPECT_EQ(-ENOENT, get_result(self->fd, 1));
	EXPECT_EQ(0, tw_advance(self->fd, 0, HOUR));
	EXPECT_TRUE(quiet(self->fd));
}

/* REMOVE of a due timer: its value, and the time since its deadline; no event follows */
TEST_F(ops, remove_due)
{
	struct timerwheel_remove rem = { .key = 1 };

	make_due(self->fd, 1, 2);
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_remove_elem(self->fd, &rem));
	EXPECT_EQ(2, rem.value);
	EXPECT_EQ(-(__s64)T(2), rem.left);
	EXPECT_TRUE(quiet(self->fd));
	EXPECT_EQ(-ENOENT, get_result(self->fd, 1));
	EXPECT_EQ(0, tw_advance(self->fd, 0, HOUR));
	EXPECT_TRUE(quiet(self->fd));
}

/* REMOVE of a timer that never existed, was delivered or removed: ENOENT; no output is written */
TEST_F(ops, remove_none)
{
	struct timerwheel_remove rem = { .key = 1 };

	EXPECT_EQ(-ENOENT, tw_remove_elem(self->fd, &rem));
	EXPECT_TRUE(tw_poisoned(&rem.value, 16));
	make_delivered(self->fd, 1, 3);
	EXPECT_EQ(-ENOENT, tw_remove_elem(self->fd, &rem));
	EXPECT_TRUE(tw_poisoned(&rem.value, 16));
	ASSERT_EQ(0, tw_add1(self->fd, 1, 4, T(9), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove_elem(self->fd, &rem));
	EXPECT_EQ(-ENOENT, tw_remove_elem(self->fd, &rem));
	EXPECT_TRUE(tw_poisoned(&rem.value, 16));
}

/* REMOVE of a periodic timer, pending or due: it does not fire again */
TEST_F(ops, remove_periodic)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, T(5), T(5), 0));
	ASSERT_EQ(1, tw_advance(self->fd, 0, T(5)));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_remove1(self->fd, 1));
	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, T(5), T(5), 0));
	ASSERT_EQ(1, tw_advance(self->fd, 0, T(5)));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 1));
	EXPECT_EQ(0, tw_advance(self->fd, 0, HOUR));
	EXPECT_TRUE(quiet(self->fd));
}

/* REMOVE + MATCH with the right value: removed, pending or due */
TEST_F(ops, remove_match)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, T(9), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1_match(self->fd, 1, 0));
	make_due(self->fd, 1, 2);
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_remove1_match(self->fd, 1, 2));
	EXPECT_EQ(-ENOENT, get_result(self->fd, 1));
}

/* REMOVE + MATCH with another value: ESTALE; the timer stays and no output is written */
TEST_F(ops, remove_match_stale)
{
	struct timerwheel_remove rem = { .key = 1, .match = 3, .flags = TIMERWHEEL_MATCH };

	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	EXPECT_EQ(-ESTALE, tw_remove_elem(self->fd, &rem));
	EXPECT_TRUE(tw_poisoned(&rem.value, 16));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, START + T(5), T(5)));
	ASSERT_EQ(1, tw_advance(self->fd, 0, T(5)));
	EXPECT_EQ(-ESTALE, tw_remove1_match(self->fd, 1, 2 | 1ULL << 32));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START + T(5), .fired = START + T(5),
	}));
}

/* REMOVE + MATCH without a timer: ENOENT */
TEST_F(ops, remove_match_none)
{
	EXPECT_EQ(-ENOENT, tw_remove1_match(self->fd, 1, 0));
	make_delivered(self->fd, 2, 3);
	EXPECT_EQ(-ENOENT, tw_remove1_match(self->fd, 2, 3));
}

/* --- GET and LIST ------------------------------------------------------- */

/* GET of a pending timer: all fields; it stays pending */
TEST_F(ops, get_pending)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	ASSERT_EQ(0, tw_advance(self->fd, 0, T(1) + 1));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, START + T(5), T(4) - 1));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, START + T(5), T(4) - 1));
}

/* GET of a due timer: the time since it fell due; its event is still read */
TEST_F(ops, get_due)
{
	make_due(self->fd, 1, 2);
	EXPECT_TRUE(timer_is(self->fd, (struct timerwheel_entry){
		.key = 1, .value = 2, .deadline = START + T(5), .left = -(__s64)T(2),
		.result = TIMERWHEEL_WAS_DUE,
	}));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START + T(5), .fired = START + T(5),
	}));
}

/* GET of a key that does not exist: ENOENT, and nothing else is written */
TEST_F(ops, get_none)
{
	struct timerwheel_entry ent, copy;

	tw_poison(&ent, sizeof(ent));
	ent.key = 1;
	ent.flags = 0;
	memcpy(&copy, &ent, sizeof(copy));
	copy.result = -ENOENT;
	ASSERT_EQ(1, dev_get(self->fd, &ent, 1));
	EXPECT_EQ(0, memcmp(&ent, &copy, sizeof(ent)));
}

/* GET of an array: a result for each key, in the order of the array, even for the same key twice */
TEST_F(ops, get_batch)
{
	static const struct {
		__u64 key;
		int result;
	} want[] = {
		{ 1, TIMERWHEEL_WAS_DUE }, { 9, -ENOENT }, { 2, TIMERWHEEL_WAS_PENDING },
		{ 1, TIMERWHEEL_WAS_DUE }, { 9, -ENOENT }, { 3, TIMERWHEEL_WAS_PENDING },
	};
	struct timerwheel_entry ent[ARRAY_SIZE(want)];
	size_t i;

	make_due(self->fd, 1, 11);
	ASSERT_EQ(0, tw_add1(self->fd, 2, 12, T(5), 0));
	ASSERT_EQ(0, tw_add1(self->fd, 3, 13, T(6), 0));
	memset(ent, 0, sizeof(ent));
	for (i = 0; i < ARRAY_SIZE(want); i++)
		ent[i].key = want[i].key;
	ASSERT_EQ(ARRAY_SIZE(want), dev_get(self->fd, ent, ARRAY_SIZE(want)));
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		EXPECT_EQ(want[i].key, ent[i].key);
		EXPECT_EQ(want[i].result, ent[i].result);
		EXPECT_EQ(want[i].result < 0 ? 0 : 10 + want[i].key, ent[i].value);
	}
}

/* Arm timers 0 to @n - 1: a third is due, a third periodic, a third in the distant future */
static void arm_mix(int fd, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		struct timerwheel_add add = {
			.key = i, .value = ~(__u64)i, .deadline = i % 3 ? HOUR + i : T(1),
			.period = i % 3 == 1 ? T(5) + i : 0, .slack = T(i % 5),
			.flags = TIMERWHEEL_SLACK,
		};

		if (i % 3 == 0)
			add.slack = 0;
		if (tw_add_elem(fd, &add))
			abort();
	}
	if (tw_advance(fd, 0, T(3)) != (n + 2) / 3)
		abort();
}

/* Is @ent a timer of arm_mix()? */
static bool mix_is(const struct timerwheel_entry *ent)
{
	__u64 i = ent->key;

	return entry_is(ent, (struct timerwheel_entry){
		.key = i, .value = ~i, .deadline = START + (i % 3 ? HOUR + i : T(1)),
		.left = i % 3 ? HOUR + i - T(3) : -T(2), .period = i % 3 == 1 ? T(5) + i : 0,
		.slack = i % 3 ? T(i % 5) : 0,
		.result = i % 3 ? TIMERWHEEL_WAS_PENDING : TIMERWHEEL_WAS_DUE,
	});
}

/* LIST: every timer once with all fields, in pages of any length; none changes */
TEST_F(ops, list_pages)
{
	static const __u32 pages[] = { 1, 2, 7, 64, 299, 300, 301, 1000 };
	struct timerwheel_event ev[101];
	size_t i;

	arm_mix(self->fd, 300);
	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		struct timerwheel_entry ent[1000];
		bool seen[300] = { 0 };
		__u32 total = 0;
		__u64 cursor = 0;
		int n, j;

		while ((n = tw_list(self->fd, &cursor, ent, pages[i])) > 0) {
			ASSERT_GE(pages[i], n);
			EXPECT_TRUE(tw_poisoned(ent + n, (pages[i] - n) * sizeof(*ent)));
			for (j = 0; j < n; j++) {
				ASSERT_GT(300, ent[j].key);
				EXPECT_FALSE(seen[ent[j].key]);
				seen[ent[j].key] = true;
				EXPECT_TRUE(mix_is(&ent[j]));
			}
			total += n;
		}
		EXPECT_EQ(0, n);
		EXPECT_EQ(300, total);
		EXPECT_EQ(0, tw_list(self->fd, &cursor, ent, pages[i]));
	}
	EXPECT_EQ(100, dev_read(self->fd, ev, 101));
}

/* LIST of an empty wheel: 0, even if it had timers before */
TEST_F(ops, list_empty)
{
	struct timerwheel_entry ent[2];
	__u64 cursor = 0;

	EXPECT_EQ(0, tw_list(self->fd, &cursor, ent, 2));
	EXPECT_TRUE(tw_poisoned(ent, sizeof(ent)));
	make_delivered(self->fd, 1, 2);
	cursor = 0;
	EXPECT_EQ(0, tw_list(self->fd, &cursor, ent, 2));
	EXPECT_TRUE(tw_poisoned(ent, sizeof(ent)));
}

/*
 * LIST while other threads arm, remove, move and replace timers, and the table grows: a timer that
 * exists from the first call to the last is returned exactly once
 */
TEST_F(ops, list_while_changing)
{
	enum { STAY = 1000, PAGE = 17 };
	__u32 seen[STAY] = { 0 }, i, passing = STAY, total = 0;
	struct timerwheel_entry ent[PAGE];
	__u64 seed = tw_seed(), r = seed, cursor = 0;
	int n;

	for (i = 0; i < STAY; i++) {
		ASSERT_EQ(0, tw_add1(self->fd, i, i, HOUR, 0));
		ASSERT_EQ(0, tw_add1(self->fd, passing++, 0, HOUR, 0));
	}
	while ((n = tw_list(self->fd, &cursor, ent, PAGE)) > 0) {
		total += n;
		ASSERT_GT(100 * STAY, total);
		for (i = 0; i < n; i++) {
			if (ent[i].key < STAY)
				seen[ent[i].key]++;
		}
		for (i = 0; i < 40; i++)
			tw_remove1(self->fd, STAY + tw_rand(&r) % (passing - STAY));
		for (i = 0; i < 30; i++)
			ASSERT_EQ(0, tw_add1(self->fd, passing++, 0, HOUR, 0));
		for (i = 0; i < 20; i++) {
			ASSERT_EQ(1, tw_move1(self->fd, tw_rand(&r) % STAY, 2 * HOUR, 0));
			ASSERT_EQ(1, tw_add1(self->fd, tw_rand(&r) % STAY, 9, HOUR, 0));
		}
	}
	EXPECT_EQ(0, n);
	for (i = 0; i < STAY; i++)
		EXPECT_EQ(1, seen[i])
			TH_LOG("seed %llu: key %u", seed, i);
}

/* --- DRAIN -------------------------------------------------------------- */

/* DRAIN: pending and due timers with all fields, in pages of any length; then 0, and no event */
TEST_F(ops, drain_pages)
{
	static const __u32 pages[] = { 1, 7, 64, 300, 1000 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		int fd = tw_open_manual(TICK), n, j;
		struct timerwheel_entry ent[1000];
		bool seen[300] = { 0 };
		__u32 total = 0;

		ASSERT_EQ(0, tw_advance(fd, 0, START));
		arm_mix(fd, 300);
		while ((n = tw_drain(fd, 0, ent, pages[i])) > 0) {
			ASSERT_GE(pages[i], n);
			EXPECT_TRUE(tw_poisoned(ent + n, (pages[i] - n) * sizeof(*ent)));
			for (j = 0; j < n; j++) {
				ASSERT_GT(300, ent[j].key);
				EXPECT_FALSE(seen[ent[j].key]);
				seen[ent[j].key] = true;
				EXPECT_TRUE(mix_is(&ent[j]));
				EXPECT_EQ(-ENOENT, get_result(fd, ent[j].key));
			}
			total += n;
		}
		EXPECT_EQ(0, n);
		EXPECT_EQ(300, total);
		EXPECT_TRUE(quiet(fd));
		EXPECT_EQ(0, tw_advance(fd, 0, HOUR + HOUR));
		EXPECT_EQ(0, tw_drain(fd, 0, ent, 1));
		EXPECT_TRUE(tw_poisoned(ent, sizeof(*ent)));
		close(fd);
	}
}

/*
 * DRAIN continues where the last DRAIN stopped, and wraps around at the end: it finds timers that
 * were armed meanwhile, and a fault in the second part does not affect the results of the first
 * part.
 */
TEST_F(ops, drain_begins_anew)
{
	struct timerwheel_entry ent[300], *some = tw_fence(100 * sizeof(*some));
	int i;

	for (i = 0; i < 300; i++)
		ASSERT_EQ(0, tw_add1(self->fd, i, i, HOUR, 0));
	ASSERT_EQ(200, tw_drain(self->fd, 0, ent, 200));
	for (i = 300; i < 400; i++)
		ASSERT_EQ(0, tw_add1(self->fd, i, i, HOUR, 0));
	/* first the timers behind, then a timer before, which faults */
	EXPECT_EQ(100, tw_batch(self->fd, TIMERWHEEL_IOC_DRAIN, 0, some, sizeof(*some), 150, NULL));
	EXPECT_EQ(100, tw_drain(self->fd, 0, ent, 300));
	EXPECT_EQ(0, tw_drain(self->fd, 0, ent, 300));
}

/* DRAIN to memory that must be faulted in */
TEST_F(ops, drain_fresh_memory)
{
	size_t size = 100 * sizeof(struct timerwheel_entry);
	void *to = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	ASSERT_NE(MAP_FAILED, to);
	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, tw_add1(self->fd, i, i, HOUR, 0));
	EXPECT_EQ(100, tw_batch(self->fd, TIMERWHEEL_IOC_DRAIN, 0, to,
				sizeof(struct timerwheel_entry), 100, NULL));
	EXPECT_EQ(0, tw_batch(self->fd, TIMERWHEEL_IOC_DRAIN, 0, to,
			      sizeof(struct timerwheel_entry), 100, NULL));
}

/* DRAIN of an empty wheel: 0, and nothing is written */
TEST_F(ops, drain_empty)
{
	struct timerwheel_entry ent;

	EXPECT_EQ(0, tw_drain(self->fd, 0, &ent, 1));
	EXPECT_TRUE(tw_poisoned(&ent, sizeof(ent)));
}

/* DRAIN, arm again, DRAIN again: the wheel works as before */
TEST_F(ops, drain_twice)
{
	struct timerwheel_entry ent[3];
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, tw_add1(self->fd, 1, i, T(9), 0));
		ASSERT_EQ(0, tw_add1(self->fd, 2, i, T(9), 0));
		EXPECT_EQ(2, tw_drain(self->fd, 0, ent, 3));
		EXPECT_EQ(i, ent[0].value);
		EXPECT_EQ(i, ent[1].value);
		EXPECT_EQ(0, tw_drain(self->fd, 0, ent, 3));
	}
}

/* DRAIN_CLOSE: arming and replacing is ESHUTDOWN; INFO has the flag */
TEST_F(ops, close_add)
{
	struct timerwheel_entry ent;
	struct timerwheel_info info;

	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	ASSERT_EQ(0, tw_add1(self->fd, 2, 3, T(5), 0));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_FALSE(info.flags & TIMERWHEEL_INFO_CLOSED);
	ASSERT_EQ(1, tw_drain(self->fd, TIMERWHEEL_DRAIN_CLOSE, &ent, 1));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_TRUE(info.flags & TIMERWHEEL_INFO_CLOSED);
	EXPECT_EQ(-ESHUTDOWN, tw_add1(self->fd, 3, 4, T(5), 0));
	EXPECT_EQ(-ESHUTDOWN, tw_add1(self->fd, ent.key ^ 3, 4, T(5), 0));
	EXPECT_EQ(-ESHUTDOWN, tw_add1_match(self->fd, ent.key ^ 3, 4, T(5), 2, 0));
	EXPECT_EQ(-ENOENT, get_result(self->fd, 3));
	/* It stays closed. */
	ASSERT_EQ(1, tw_drain(self->fd, 0, &ent, 1));
	EXPECT_EQ(-ESHUTDOWN, tw_add1(self->fd, 3, 4, T(5), 0));
}

/* DRAIN_CLOSE with an empty array: only closes */
TEST_F(ops, close_count_0)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	EXPECT_EQ(0, tw_drain(self->fd, TIMERWHEEL_DRAIN_CLOSE, NULL, 0));
	EXPECT_EQ(-ESHUTDOWN, tw_add1(self->fd, 2, 3, T(5), 0));
	EXPECT_TRUE(pending_is(self->fd, 1, 2, START + T(5), T(5)));
}

/* DRAIN_CLOSE: remaining timers can be moved and removed, fall due and are read */
TEST_F(ops, close_the_rest)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(5), 0));
	ASSERT_EQ(0, tw_add1(self->fd, 2, 3, T(5), 0));
	ASSERT_EQ(0, tw_drain(self->fd, TIMERWHEEL_DRAIN_CLOSE, NULL, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, T(7), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 2));
	EXPECT_EQ(1, tw_advance(self->fd, 0, T(9)));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START + T(7), .fired = START + T(7),
	}));
}

/* DRAIN_CLOSE: periodic timers keep firing */
TEST_F(ops, close_periodic)
{
	int i;

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, T(5), T(5), 0));
	ASSERT_EQ(0, tw_drain(self->fd, TIMERWHEEL_DRAIN_CLOSE, NULL, 0));
	for (i = 1; i <= 3; i++) {
		EXPECT_EQ(1, tw_advance(self->fd, 0, T(5)));
		EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
			.key = 1, .value = 2, .deadline = START + T(5 * i),
			.fired = START + T(5 * i), .flags = TIMERWHEEL_EVENT_PERIODIC,
		}));
	}
}

/* --- Periodic timers ---------------------------------------------------- */

/* A due periodic timer is due, not pending, until it is read; then it is armed again */
TEST_F(ops, periodic_states)
{
	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, T(5), T(3), 0));
	EXPECT_EQ(1, tw_advance(self->fd, 0, T(6)));
	EXPECT_TRUE(timer_is(self->fd, (struct timerwheel_entry){
		.key = 1, .value = 2, .deadline = START + T(5), .left = -(__s64)T(1),
		.period = T(3), .result = TIMERWHEEL_WAS_DUE,
	}));
	/* Unread, it does not fall due again. */
	EXPECT_EQ(0, tw_advance(self->fd, 0, T(100)));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START + T(5), .fired = START + T(5),
		.overruns = 33, .flags = TIMERWHEEL_EVENT_PERIODIC,
	}));
	EXPECT_TRUE(timer_is(self->fd, (struct timerwheel_entry){
		.key = 1, .value = 2, .deadline = START + T(5 + 34 * 3), .left = T(1),
		.period = T(3), .result = TIMERWHEEL_WAS_PENDING,
	}));
	EXPECT_TRUE(quiet(self->fd));
}

/* ADD of a due periodic timer replaces it by a one-shot timer: one event */
TEST_F(ops, periodic_replaced)
{
	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, T(5), T(3), 0));
	ASSERT_EQ(1, tw_advance(self->fd, 0, T(5)));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_add1(self->fd, 1, 3, T(1), 0));
	EXPECT_EQ(1, tw_advance(self->fd, 0, HOUR));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 3, .deadline = START + T(6), .fired = START + T(6),
	}));
	EXPECT_EQ(-ENOENT, get_result(self->fd, 1));
}

/* --- Batches ------------------------------------------------------------ */

/* ADD: each element has its own result, in the order of the array; errors change nothing */
TEST_F(ops, add_batch_mixed)
{
	struct {
		struct timerwheel_add add;
		int result;
	} t[] = {
		{ { .key = 1, .value = 1, .deadline = T(9) }, TIMERWHEEL_WAS_NONE },
		{ { .key = 1, .value = 2, .deadline = T(9), .flags = TIMERWHEEL_EXCL }, -EEXIST },
		{ { .key = 1, .value = 3, .deadline = T(9) }, TIMERWHEEL_WAS_PENDING },
		{ { .key = 1, .value = 4, .deadline = T(9), .flags = 1U << 31 }, -EINVAL },
		{ { .key = 1, .value = 5, .deadline = T(9), .match = 1 }, -EINVAL },
		{ { .key = 1, .value = 6, .deadline = T(9), .match = 1,
		    .flags = TIMERWHEEL_MATCH }, -ESTALE },
		{ { .key = 1, .value = 7, .deadline = T(8), .match = 3,
		    .flags = TIMERWHEEL_MATCH }, TIMERWHEEL_WAS_PENDING },
		{ { .key = 2, .value = 8, .deadline = T(9), .match = 0,
		    .flags = TIMERWHEEL_MATCH }, -ENOENT },
		{ { .key = 2, .value = 9, .deadline = T(9), .flags = TIMERWHEEL_EXCL },
		  TIMERWHEEL_WAS_NONE },
		{ { .key = 3, .value = 1, .deadline = 0 }, TIMERWHEEL_WAS_NONE },
		{ { .key = 3, .value = 2, .deadline = T(7) }, TIMERWHEEL_WAS_DUE },
		{ { .key = 3, .value = 3, .deadline = T(7), .period = ~0ULL }, -EINVAL },
	};
	struct timerwheel_add add[ARRAY_SIZE(t)];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		add[i] = t[i].add;
	ASSERT_EQ(ARRAY_SIZE(t), dev_add(self->fd, add, ARRAY_SIZE(t)));
	for (i = 0; i < ARRAY_SIZE(t); i++)
		EXPECT_EQ(t[i].result, add[i].result)
			TH_LOG("element %zu", i);
	EXPECT_TRUE(pending_is(self->fd, 1, 7, START + T(8), T(8)));
	EXPECT_TRUE(pending_is(self->fd, 2, 9, START + T(9), T(9)));
	EXPECT_TRUE(pending_is(self->fd, 3, 2, START + T(7), T(7)));
	EXPECT_TRUE(quiet(self->fd));
}

/* MOVE: each element has its own result, in the order of the array */
TEST_F(ops, move_batch_mixed)
{
	struct {
		struct timerwheel_move move;
		int result;
	} t[] = {
		{ { .key = 1, .deadline = T(20) }, TIMERWHEEL_WAS_PENDING },
		{ { .key = 9, .deadline = T(20) }, -ENOENT },
		{ { .key = 1, .deadline = 0 }, TIMERWHEEL_WAS_PENDING },
		{ { .key = 1, .deadline = T(21) }, TIMERWHEEL_WAS_DUE },
		{ { .key = 1, .deadline = T(22), .flags = TIMERWHEEL_EXCL }, -EINVAL },
		{ { .key = 2, .deadline = T(23), .match = 1, .flags = TIMERWHEEL_MATCH }, -ESTALE },
		{ { .key = 2, .deadline = T(24), .match = 12, .flags = TIMERWHEEL_MATCH },
		  TIMERWHEEL_WAS_PENDING },
		{ { .key = 9, .deadline = T(25), .match = 1, .flags = TIMERWHEEL_MATCH }, -ENOENT },
		{ { .key = 1, .deadline = START + T(26), .flags = TIMERWHEEL_ABS },
		  TIMERWHEEL_WAS_PENDING },
	};
	struct timerwheel_move move[ARRAY_SIZE(t)];
	size_t i;

	ASSERT_EQ(0, tw_add1(self->fd, 1, 11, T(9), 0));
	ASSERT_EQ(0, tw_add1(self->fd, 2, 12, T(9), 0));
	for (i = 0; i < ARRAY_SIZE(t); i++)
		move[i] = t[i].move;
	ASSERT_EQ(ARRAY_SIZE(t), dev_move(self->fd, move, ARRAY_SIZE(t)));
	for (i = 0; i < ARRAY_SIZE(t); i++)
		EXPECT_EQ(t[i].result, move[i].result)
			TH_LOG("element %zu", i);
	EXPECT_TRUE(pending_is(self->fd, 1, 11, START + T(26), T(26)));
	EXPECT_TRUE(pending_is(self->fd, 2, 12, START + T(24), T(24)));
	EXPECT_TRUE(quiet(self->fd));
}

/* REMOVE: each element has its own result, in the order of the array */
TEST_F(ops, remove_batch_mixed)
{
	struct {
		struct timerwheel_remove rem;
		int result;
		__u64 value;
	} t[] = {
		{ { .key = 2, .match = 1, .flags = TIMERWHEEL_MATCH }, -ESTALE, 0 },
		{ { .key = 1 }, TIMERWHEEL_WAS_DUE, 11 },
		{ { .key = 1 }, -ENOENT, 0 },
		{ { .key = 2, .flags = TIMERWHEEL_ABS }, -EINVAL, 0 },
		{ { .key = 2, .match = 12, .flags = TIMERWHEEL_MATCH },
		  TIMERWHEEL_WAS_PENDING, 12 },
		{ { .key = 2, .match = 12, .flags = TIMERWHEEL_MATCH }, -ENOENT, 0 },
		{ { .key = 9 }, -ENOENT, 0 },
		{ { .key = 3 }, TIMERWHEEL_WAS_PENDING, 13 },
	};
	struct timerwheel_remove rem[ARRAY_SIZE(t)];
	size_t i;

	make_due(self->fd, 1, 11);
	ASSERT_EQ(0, tw_add1(self->fd, 2, 12, T(9), 0));
	ASSERT_EQ(0, tw_add1(self->fd, 3, 13, T(9), 0));
	for (i = 0; i < ARRAY_SIZE(t); i++)
		rem[i] = t[i].rem;
	ASSERT_EQ(ARRAY_SIZE(t), dev_remove(self->fd, rem, ARRAY_SIZE(t)));
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		EXPECT_EQ(t[i].result, rem[i].result)
			TH_LOG("element %zu", i);
		EXPECT_EQ(t[i].value, rem[i].value);
	}
	EXPECT_TRUE(quiet(self->fd));
}

/* Many elements, every third invalid: these fail, and all others are done */
TEST_F(ops, batch_long_mixed)
{
	enum { LONG = 3000 };
	struct timerwheel_add *add = calloc(LONG, sizeof(*add));
	struct timerwheel_stats stats;
	int i;

	for (i = 0; i < LONG; i++) {
		add[i].key = i;
		add[i].value = i;
		add[i].deadline = HOUR;
		add[i].match = i % 3 == 1;
	}
	ASSERT_EQ(LONG, dev_add(self->fd, add, LONG));
	for (i = 0; i < LONG; i++) {
		EXPECT_EQ(i % 3 == 1 ? -EINVAL : TIMERWHEEL_WAS_NONE, add[i].result);
		EXPECT_EQ(i % 3 == 1 ? -ENOENT : TIMERWHEEL_WAS_PENDING, get_result(self->fd, i));
	}
	ASSERT_EQ(0, tw_stats(self->fd, &stats));
	EXPECT_EQ(LONG / 3 * 2, stats.armed);
	EXPECT_EQ(LONG / 3 * 2, stats.pending);
}

/* The same key throughout a long array: the last element wins */
TEST_F(ops, batch_one_key)
{
	enum { LONG = 3000 };
	struct timerwheel_add *add = calloc(LONG, sizeof(*add));
	int i;

	for (i = 0; i < LONG; i++) {
		add[i].key = 7;
		add[i].value = i;
		add[i].deadline = T(LONG - i);
	}
	ASSERT_EQ(LONG, dev_add(self->fd, add, LONG));
	for (i = 0; i < LONG; i++)
		EXPECT_EQ(i ? TIMERWHEEL_WAS_PENDING : TIMERWHEEL_WAS_NONE, add[i].result);
	EXPECT_EQ(1, tw_advance(self->fd, 0, HOUR));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 7, .value = LONG - 1, .deadline = START + T(1), .fired = START + T(1),
	}));
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* Number of calls that a signal has interrupted */
static int cut_short;

/*
 * Call until all @n elements are done. Each call processes at least one element, whatever signals
 * come. Returns false if a call fails.
 */
static bool through_signals(int fd, unsigned long cmd, void *elems, size_t elem_size, __u32 n)
{
	__u32 done = 0;
	__u64 cursor = 0;
	int ret;

	while (done < n) {
		ret = tw_batch(fd, cmd, 0, (char *)elems + done * elem_size, elem_size, n - done,
			       cmd == TIMERWHEEL_IOC_LIST ? &cursor : NULL);
		if (ret <= 0)
			return false;
		done += ret;
		cut_short += done < n;
	}
	return true;
}

/* Are these the timers @from to @to - 1, each exactly once? */
static bool each_once(const struct timerwheel_entry *ent, __u64 from, __u64 to)
{
	bool *seen = calloc(to, 1);
	__u64 n;

	for (n = 0; n < to - from; n++) {
		if (ent[n].key < from || ent[n].key >= to || seen[ent[n].key])
			break;
		seen[ent[n].key] = true;
	}
	free(seen);
	return n == to - from;
}

/* A signal ends a call between two elements; all results are correct, and the rest can be done */
TEST_F_TIMEOUT(ops, batch_signals, 300)
{
	enum { LONG = TIMERWHEEL_BATCH_MAX };
	struct timerwheel_remove *rem = calloc(LONG, sizeof(*rem));
	struct timerwheel_entry *ent = calloc(LONG, sizeof(*ent));
	struct timerwheel_move *move = calloc(LONG, sizeof(*move));
	struct timerwheel_add *add = calloc(LONG, sizeof(*add));
	struct sigaction sa = { .sa_handler = on_alarm };
	struct timerwheel_stats stats;
	int i;

	for (i = 0; i < LONG; i++) {
		add[i] = (struct timerwheel_add){ .key = i, .deadline = T(5), .result = -1 };
		move[i] = (struct timerwheel_move){ .key = i, .deadline = HOUR, .result = -1 };
		rem[i] = (struct timerwheel_remove){ .key = i, .result = -1 };
	}
	ASSERT_EQ(0, sigaction(SIGALRM, &sa, NULL));
	ASSERT_EQ(0, tw_storm(700));
	EXPECT_TRUE(through_signals(self->fd, TIMERWHEEL_IOC_ADD, add, sizeof(*add), LONG));
	EXPECT_TRUE(through_signals(self->fd, TIMERWHEEL_IOC_MOVE, move, sizeof(*move), LONG));
	EXPECT_LT(0, cut_short);
	EXPECT_TRUE(through_signals(self->fd, TIMERWHEEL_IOC_LIST, ent, sizeof(*ent), LONG));
	EXPECT_TRUE(each_once(ent, 0, LONG));
	EXPECT_TRUE(through_signals(self->fd, TIMERWHEEL_IOC_REMOVE, rem, sizeof(*rem), LONG / 2));
	EXPECT_TRUE(through_signals(self->fd, TIMERWHEEL_IOC_DRAIN, ent, sizeof(*ent), LONG / 2));
	EXPECT_TRUE(each_once(ent, LONG / 2, LONG));
	ASSERT_EQ(0, tw_storm(0));
	for (i = 0; i < LONG; i++) {
		ASSERT_EQ(TIMERWHEEL_WAS_NONE, add[i].result);
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, move[i].result);
		ASSERT_EQ(i < LONG / 2 ? TIMERWHEEL_WAS_PENDING : -1, rem[i].result);
	}
	ASSERT_EQ(0, tw_stats(self->fd, &stats));
	EXPECT_EQ(0, stats.pending);
	EXPECT_EQ(LONG, stats.moved);
	EXPECT_EQ(LONG / 2, stats.removed);
	EXPECT_EQ(LONG / 2, stats.drained);
}

/* --- read --------------------------------------------------------------- */

/* A buffer too small for one event: EINVAL, nothing is written, and the event keeps waiting */
TEST_F(ops, read_too_small)
{
	char buf[sizeof(struct timerwheel_event)];
	size_t size;

	make_due(self->fd, 1, 2);
	for (size = 1; size < sizeof(buf); size++) {
		tw_poison(buf, sizeof(buf));
		EXPECT_EQ(-1, read(self->fd, buf, size));
		EXPECT_EQ(EINVAL, errno);
		EXPECT_TRUE(tw_poisoned(buf, sizeof(buf)));
	}
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = START + T(5), .fired = START + T(5),
	}));
}

/* A buffer that ends in the middle of an event is used up to the last complete one */
TEST_F(ops, read_whole_events)
{
	struct timerwheel_event ev[3];

	make_due(self->fd, 1, 2);
	ASSERT_EQ(0, tw_add1(self->fd, 2, 3, 0, 0));
	tw_poison(ev, sizeof(ev));
	EXPECT_EQ(sizeof(*ev), read(self->fd, ev, 2 * sizeof(*ev) - 1));
	EXPECT_TRUE(tw_poisoned(ev + 1, 2 * sizeof(*ev)));
	EXPECT_EQ(1, ev[0].key);
	tw_poison(ev, sizeof(ev));
	EXPECT_EQ(sizeof(*ev), read(self->fd, ev, sizeof(ev)));
	EXPECT_TRUE(tw_poisoned(ev + 1, 2 * sizeof(*ev)));
	EXPECT_EQ(2, ev[0].key);
}

/* --- ADVANCE ------------------------------------------------------------ */

/* ADVANCE by some time: reports the new time and the number of timers that fell due */
TEST_F(ops, advance_relative)
{
	struct timerwheel_advance adv = { .size = sizeof(adv), .time = T(5) + 1 };

	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(4), 0));
	ASSERT_EQ(0, tw_add1(self->fd, 2, 2, T(5), 0));
	ASSERT_EQ(0, tw_add1(self->fd, 3, 2, T(6), 0));
	tw_poison(&adv.now, 16);
	EXPECT_EQ(0, dev_ioctl(self->fd, TIMERWHEEL_IOC_ADVANCE, &adv));
	EXPECT_EQ(START + T(5) + 1, adv.now);
	EXPECT_EQ(2, adv.expired);
	EXPECT_EQ(START + T(5) + 1, now_is(self->fd));
}

/* ADVANCE to a time */
TEST_F(ops, advance_absolute)
{
	struct timerwheel_advance adv = {
		.size = sizeof(adv), .flags = TIMERWHEEL_ABS, .time = START + T(5),
	};

	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(4), 0));
	tw_poison(&adv.now, 16);
	EXPECT_EQ(0, dev_ioctl(self->fd, TIMERWHEEL_IOC_ADVANCE, &adv));
	EXPECT_EQ(START + T(5), adv.now);
	EXPECT_EQ(1, adv.expired);
}

/* ADVANCE to the present, or by 0: no effect */
TEST_F(ops, advance_nowhere)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, T(4), 0));
	EXPECT_EQ(0, tw_advance(self->fd, 0, 0));
	EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, START));
	EXPECT_EQ(START, now_is(self->fd));
}

/* ADVANCE to a time in the past: EINVAL, and the time does not change */
TEST_F(ops, advance_backwards)
{
	EXPECT_EQ(-EINVAL, tw_advance(self->fd, TIMERWHEEL_ABS, START - 1));
	EXPECT_EQ(-EINVAL, tw_advance(self->fd, TIMERWHEEL_ABS, 0));
	EXPECT_EQ(START, now_is(self->fd));
}

/* ADVANCE by a negative time is EINVAL, even at time 0 */
TEST_F(ops, advance_negative)
{
	int fd = tw_open_manual(TICK);
	size_t i;

	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(negative); i++) {
		EXPECT_EQ(-EINVAL, tw_advance(self->fd, 0, negative[i].time));
		EXPECT_EQ(-EINVAL, tw_advance(fd, 0, negative[i].time));
	}
	EXPECT_EQ(START, now_is(self->fd));
	EXPECT_EQ(0, now_is(fd));
	close(fd);
}

/* ADVANCE beyond the largest time: stops there; timers with that deadline are the last to fire */
TEST_F(ops, advance_beyond_max)
{
	int fd = tw_open_manual(1);

	ASSERT_EQ(0, tw_add1(fd, 1, 2, TIMERWHEEL_TIME_MAX, 0));
	EXPECT_EQ(0, tw_advance(fd, TIMERWHEEL_ABS, TIMERWHEEL_TIME_MAX - 1));
	EXPECT_EQ(1, tw_advance(fd, 0, TIMERWHEEL_TIME_MAX));
	EXPECT_EQ(TIMERWHEEL_TIME_MAX, now_is(fd));
	EXPECT_EQ(0, tw_advance(fd, 0, 1));
	EXPECT_EQ(0, tw_advance(fd, TIMERWHEEL_ABS, ~0ULL));
	EXPECT_EQ(TIMERWHEEL_TIME_MAX, now_is(fd));
	EXPECT_TRUE(event_is(fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = TIMERWHEEL_TIME_MAX,
		.fired = TIMERWHEEL_TIME_MAX,
	}));
}

enum { STEPS = 2000 };

static void *advances(void *arg)
{
	long failed = 0;
	int i;

	for (i = 0; i < STEPS; i++)
		failed += tw_advance(*(int *)arg, 0, T(1)) < 0;
	return (void *)failed;
}

/* ADVANCE by several threads: they run one after another, and none is lost */
TEST_F(ops, advance_threads)
{
	pthread_t thread[4];
	void *failed;
	int i;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, advances, &self->fd));
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, pthread_join(thread[i], &failed));
		EXPECT_EQ(0, (long)failed);
	}
	EXPECT_EQ(START + T(4 * STEPS), now_is(self->fd));
}

/* ADVANCE of a wheel with a running clock: EINVAL */
TEST_F(ops, advance_other_clocks)
{
	__u32 clock;

	for (clock = 0; clock < TIMERWHEEL_CLOCK_MANUAL; clock++) {
		int fd = tw_open_clock(clock, 0, 0);

		ASSERT_LE(0, fd);
		EXPECT_EQ(-EINVAL, tw_advance(fd, 0, 0));
		EXPECT_EQ(-EINVAL, tw_advance(fd, 0, SEC));
		EXPECT_EQ(-EINVAL, tw_advance(fd, TIMERWHEEL_ABS, TIMERWHEEL_TIME_MAX));
		close(fd);
	}
}

/* Time passes through all ticks in order: events have that order, and the time of their ticks */
TEST_F(ops, advance_order)
{
	enum { MANY = 2000 };
	struct timerwheel_event ev[MANY];
	__u64 seed = tw_seed(), r = seed;
	int i;

	ASSERT_EQ(0, tw_pin(0));
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(0, tw_add1(self->fd, i, 0, 1 + (tw_rand(&r) >> (24 + tw_rand(&r) % 38)),
				     0));
	ASSERT_EQ(MANY, tw_advance(self->fd, 0, 1ULL << 50));
	ASSERT_EQ(MANY, tw_read_all(self->fd, ev, MANY, 0));
	for (i = 0; i < MANY; i++) {
		EXPECT_EQ((ev[i].deadline + TICK - 1) / TICK * TICK, ev[i].fired);
		if (i)
			EXPECT_LE(ev[i - 1].fired, ev[i].fired)
				TH_LOG("seed %llu: event %d", seed, i);
	}
}

/* --- SETUP -------------------------------------------------------------- */

FIXTURE(setup) {
	int fd;
	struct timerwheel_info info;
};

FIXTURE_SETUP(setup)
{
	self->fd = dev_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &self->info));
}

FIXTURE_TEARDOWN(setup)
{
	close(self->fd);
}

/* Without SETUP a wheel has the documented defaults */
TEST_F(setup, defaults)
{
	EXPECT_EQ(TIMERWHEEL_CLOCK_MONOTONIC, self->info.clock);
	EXPECT_EQ(1000000, self->info.tick);
	EXPECT_EQ(256, self->info.slots);
	EXPECT_EQ(4194304, self->info.capacity);
	EXPECT_EQ(0, self->info.slack);
	EXPECT_EQ(1, self->info.wake_events);
	EXPECT_EQ(0, self->info.wake_ns);
	EXPECT_EQ(0, self->info.flags);
}

/* SETUP with all fields 0 grants the defaults and writes them back */
TEST_F(setup, zeroes)
{
	struct timerwheel_setup setup = { 0 };

	EXPECT_EQ(0, dev_setup(self->fd, &setup));
	EXPECT_EQ(TIMERWHEEL_CLOCK_MONOTONIC, setup.clock);
	EXPECT_EQ(1000000, setup.tick);
	EXPECT_EQ(256, setup.slots);
	EXPECT_EQ(4194304, setup.capacity);
	EXPECT_EQ(0, setup.slack);
	EXPECT_EQ(1, setup.wake_events);
	EXPECT_EQ(0, setup.wake_ns);
}

/* SETUP grants what was requested and writes it back; INFO has the same */
TEST_F(setup, granted)
{
	struct timerwheel_setup setup = {
		.clock = TIMERWHEEL_CLOCK_BOOTTIME, .slots = 64, .tick = 2000000, .capacity = 1000,
		.wake_events = 32, .wake_ns = 5000000, .slack = 6000000, .event_size = 48,
	}, copy = setup;

	copy.size = sizeof(copy);
	EXPECT_EQ(0, dev_setup(self->fd, &setup));
	EXPECT_EQ(0, memcmp(&copy, &setup, sizeof(copy)));
	ASSERT_EQ(0, tw_info(self->fd, &self->info));
	EXPECT_EQ(copy.clock, self->info.clock);
	EXPECT_EQ(copy.slots, self->info.slots);
	EXPECT_EQ(copy.tick, self->info.tick);
	EXPECT_EQ(copy.capacity, self->info.capacity);
	EXPECT_EQ(copy.wake_events, self->info.wake_events);
	EXPECT_EQ(copy.wake_ns, self->info.wake_ns);
	EXPECT_EQ(copy.slack, self->info.slack);
	EXPECT_EQ(TIMERWHEEL_INFO_SETTLED, self->info.flags);
}

/* SETUP rounds slots up to a power of two */
TEST_F(setup, slots_rounded)
{
	static const __u32 t[][2] = {
		{ 9, 16 }, { 16, 16 }, { 17, 32 }, { 100, 128 }, { 1025, 2048 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct timerwheel_setup setup = { .slots = t[i][0] };
		struct timerwheel_info info;
		int fd = dev_open(0);

		EXPECT_EQ(0, dev_setup(fd, &setup));
		EXPECT_EQ(t[i][1], setup.slots);
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(t[i][1], info.slots);
		close(fd);
	}
}

/* Every limit that INFO reports is granted */
TEST_F(setup, limits)
{
	struct timerwheel_setup t[] = {
		{ .slots = self->info.slots_min }, { .slots = self->info.slots_max },
		{ .tick = self->info.tick_min }, { .tick = self->info.tick_max },
		{ .tick = 1, .clock = TIMERWHEEL_CLOCK_MANUAL },
		{ .tick = self->info.tick_max, .clock = TIMERWHEEL_CLOCK_MANUAL },
		{ .capacity = 1 }, { .capacity = self->info.capacity_max },
		{ .slack = TIMERWHEEL_TIME_MAX }, { .wake_events = 1 },
		{ .wake_events = 2, .wake_ns = TIMERWHEEL_TIME_MAX },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct timerwheel_setup copy = t[i];
		int fd = dev_open(O_NONBLOCK);

		EXPECT_EQ(0, dev_setup(fd, &t[i]))
			TH_LOG("case %zu", i);
		EXPECT_EQ(copy.slots ? copy.slots : 256, t[i].slots);
		EXPECT_EQ(copy.tick ? copy.tick : 1000000, t[i].tick);
		EXPECT_EQ(copy.capacity ? copy.capacity : 4194304, t[i].capacity);
		EXPECT_EQ(0, tw_add1(fd, 1, 2, HOUR, 0));
		close(fd);
	}
}

/* Every value beyond the limits of INFO: EINVAL, nothing is written back, not settled */
TEST_F(setup, beyond_limits)
{
	const struct timerwheel_info *info = &self->info;
	struct timerwheel_setup t[] = {
		{ .clock = TIMERWHEEL_CLOCK_MANUAL + 1 }, { .clock = ~0U },
		{ .slots = 1 }, { .slots = info->slots_min - 1 },
		{ .slots = info->slots_max + 1 }, { .slots = ~0U },
		{ .slots = 1U << 31 },
		{ .tick = 1 }, { .tick = info->tick_min - 1 }, { .tick = info->tick_max + 1 },
		{ .tick = ~0ULL },
		{ .tick = info->tick_max + 1, .clock = TIMERWHEEL_CLOCK_MANUAL },
		{ .capacity = info->capacity_max + 1 }, { .capacity = ~0U },
		{ .slack = TIMERWHEEL_TIME_MAX + 1ULL }, { .slack = ~0ULL },
		{ .wake_ns = TIMERWHEEL_TIME_MAX + 1ULL }, { .wake_ns = ~0ULL },
		{ .flags = TIMERWHEEL_SETUP_CLOCK_SET },
		{ .flags = TIMERWHEEL_SETUP_ALARM },
		{ .flags = ~0U, .clock = TIMERWHEEL_CLOCK_REALTIME },
	};
	struct timerwheel_info after;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct timerwheel_setup copy = t[i];

		EXPECT_EQ(-EINVAL, dev_setup(self->fd, &t[i]))
			TH_LOG("case %zu", i);
		copy.size = sizeof(copy);
		EXPECT_EQ(0, memcmp(&copy, &t[i], sizeof(copy)));
	}
	ASSERT_EQ(0, tw_info(self->fd, &after));
	EXPECT_EQ(0, after.flags);
	EXPECT_EQ(info->tick, after.tick);
}

/* wake_events greater than 1 without wake_ns: EINVAL */
TEST_F(setup, wake_events_without_time)
{
	struct timerwheel_setup setup = { .wake_events = 2 };

	EXPECT_EQ(-EINVAL, dev_setup(self->fd, &setup));
	setup.wake_events = ~0U;
	EXPECT_EQ(-EINVAL, dev_setup(self->fd, &setup));
}

/* SETUP a second time: EBUSY, and the granted settings stay */
TEST_F(setup, twice)
{
	struct timerwheel_setup setup = { .tick = 2000000 };

	EXPECT_EQ(0, dev_setup(self->fd, &setup));
	setup.tick = 3000000;
	EXPECT_EQ(-EBUSY, dev_setup(self->fd, &setup));
	EXPECT_EQ(3000000, setup.tick);
	ASSERT_EQ(0, tw_info(self->fd, &self->info));
	EXPECT_EQ(2000000, self->info.tick);
}

/* SETUP after a timer was armed: EBUSY, even if the timer is gone */
TEST_F(setup, after_add)
{
	struct timerwheel_setup setup = { .tick = 2000000 };

	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, HOUR, 0));
	ASSERT_EQ(0, tw_info(self->fd, &self->info));
	EXPECT_EQ(TIMERWHEEL_INFO_SETTLED, self->info.flags);
	EXPECT_EQ(-EBUSY, dev_setup(self->fd, &setup));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 1));
	EXPECT_EQ(-EBUSY, dev_setup(self->fd, &setup));
}

/* A SETUP that failed, or an operation that armed nothing, does not settle the wheel */
TEST_F(setup, after_errors)
{
	struct timerwheel_setup bad = { .clock = ~0U }, good = { .tick = 2000000 };
	struct timerwheel_entry ent;
	__u64 cursor = 0;

	EXPECT_EQ(-EINVAL, dev_setup(self->fd, &bad));
	EXPECT_EQ(-EINVAL, tw_add1(self->fd, 1, 2, HOUR, 1U << 31));
	EXPECT_EQ(-ENOENT, tw_add1_match(self->fd, 1, 2, HOUR, 0, 0));
	EXPECT_EQ(-ENOENT, tw_move1(self->fd, 1, HOUR, 0));
	EXPECT_EQ(-ENOENT, tw_remove1(self->fd, 1));
	EXPECT_EQ(-ENOENT, get_result(self->fd, 1));
	EXPECT_EQ(0, tw_list(self->fd, &cursor, &ent, 1));
	EXPECT_EQ(0, tw_drain(self->fd, 0, &ent, 1));
	EXPECT_TRUE(quiet(self->fd));
	EXPECT_EQ(0, dev_setup(self->fd, &good));
}

/* Memory allocated by a call that armed nothing has the size that SETUP grants, charged once */
TEST_F(setup, after_look)
{
	struct timerwheel_setup setup = { .clock = TIMERWHEEL_CLOCK_MANUAL, .tick = SEC }, same;
	struct timerwheel_stats st, fresh;
	int fd = dev_open(O_NONBLOCK);

	same = setup;
	ASSERT_EQ(0, tw_pin(0));
	EXPECT_EQ(-ENOENT, tw_remove1(self->fd, 1));
	ASSERT_EQ(0, dev_setup(self->fd, &setup));
	ASSERT_EQ(0, dev_setup(fd, &same));
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, SEC / 10, 0));
	ASSERT_EQ(0, tw_add1(fd, 1, 2, SEC / 10, 0));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	ASSERT_EQ(0, tw_stats(fd, &fresh));
	EXPECT_EQ(fresh.memory, st.memory);
	EXPECT_EQ(0, tw_advance(self->fd, 0, SEC / 2));
	EXPECT_EQ(1, tw_advance(self->fd, 0, SEC / 2));
	EXPECT_TRUE(event_is(self->fd, (struct timerwheel_event){
		.key = 1, .value = 2, .deadline = SEC / 10, .fired = SEC,
	}));
	close(fd);
}

/* Threads that use a wheel first, each with a call that finds no timer */
struct beginner {
	pthread_t id;
	int fd, cpu;
	bool *go;
};

static void *begins(void *arg)
{
	struct beginner *b = arg;

	tw_pin(b->cpu);
	while (!__atomic_load_n(b->go, __ATOMIC_ACQUIRE))
		sched_yield();
	tw_remove1(b->fd, 1);
	return NULL;
}

/*
 * @n threads use a wheel on a CPU without a base while SETUP holds the file's mutex. They wait and
 * then create one base with the settings that SETUP granted. The memory charged shows this.
 */
static void begin_meanwhile(struct __test_metadata *_metadata, struct timerwheel_setup setup, int n)
{
	struct timerwheel_stats want, st;
	struct timerwheel_setup arg;
	struct beginner b[2];
	int round, i, fd;
	bool go;

	ASSERT_EQ(0, tw_pin(0));
	fd = dev_open(O_NONBLOCK);
	arg = setup;
	ASSERT_EQ(0, dev_setup(fd, &arg));
	EXPECT_EQ(-ENOENT, tw_remove1(fd, 1));
	ASSERT_EQ(0, tw_stats(fd, &want));
	close(fd);
	for (round = 0; round < 20; round++) {
		fd = dev_open(O_NONBLOCK);
		ASSERT_EQ(0, tw_pin(1));
		/* a base exists, so SETUP waits for a grace period */
		EXPECT_EQ(-ENOENT, tw_remove1(fd, 1));
		go = false;
		for (i = 0; i < n; i++) {
			b[i] = (struct beginner){ .fd = fd, .cpu = 0, .go = &go };
			ASSERT_EQ(0, pthread_create(&b[i].id, NULL, begins, &b[i]));
		}
		tw_sleep(5 * MSEC);
		__atomic_store_n(&go, true, __ATOMIC_RELEASE);
		arg = setup;
		ASSERT_EQ(0, dev_setup(fd, &arg));
		for (i = 0; i < n; i++)
			ASSERT_EQ(0, pthread_join(b[i].id, NULL));
		/* if all of them came before SETUP there is no base now */
		ASSERT_EQ(0, tw_pin(0));
		EXPECT_EQ(-ENOENT, tw_remove1(fd, 1));
		ASSERT_EQ(0, tw_stats(fd, &st));
		EXPECT_EQ(want.memory, st.memory);
		close(fd);
	}
}

TEST_F(setup, begun_by_two)
{
	if (tw_pin(1))
		SKIP(return, "one CPU");
	begin_meanwhile(_metadata, (struct timerwheel_setup){ }, 2);
}

/* Fewer slots than by default: with more, the lists would not fit in a base of the wrong size. */
TEST_F(setup, begun_meanwhile)
{
	if (tw_pin(1))
		SKIP(return, "one CPU");
	begin_meanwhile(_metadata, (struct timerwheel_setup){ .slots = 8 }, 1);
}

/* --- Limits: the wheel's capacity, the user's memory -------------------- */

/* A MANUAL wheel of a given capacity with @n timers in it, keys 0 to @n - 1 */
static int open_capacity(__u32 capacity, __u32 n)
{
	struct timerwheel_setup setup = {
		.clock = TIMERWHEEL_CLOCK_MANUAL, .tick = TICK, .capacity = capacity,
	};
	int fd = dev_open(O_NONBLOCK);
	__u32 i;

	if (fd < 0 || dev_setup(fd, &setup) || setup.capacity != capacity)
		abort();
	for (i = 0; i < n; i++) {
		if (tw_add1(fd, i, i, T(5), 0))
			abort();
	}
	return fd;
}

/*
 * The base of a CPU with many timers gets memory for more strands, once: at most 3 bytes for each
 * timer that it has then.
 */
TEST(strands_memory)
{
	enum { FEW = 40000, MANY = 60000, STEP = 64 << 10 };
	int fd = open_capacity(MANY, FEW), steps = 0;
	__u64 before, step = 0;
	struct timerwheel_stats st;
	__u32 n, at = 0;

	ASSERT_EQ(0, tw_stats(fd, &st));
	for (n = FEW; n < MANY; n++) {
		before = st.memory;
		ASSERT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(fd, n, n, T(5), 0));
		ASSERT_EQ(0, tw_stats(fd, &st));
		if (st.memory - before < STEP)
			continue;
		steps++;
		step = st.memory - before;
		at = n;
	}
	EXPECT_EQ(1, steps);
	EXPECT_GE(at * 3, step);
	/* all of them fire */
	EXPECT_EQ(MANY, tw_advance(fd, 0, T(5)));
	close(fd);
}

FIXTURE(capacity) {
	int fd;
};

FIXTURE_VARIANT(capacity) {
	__u32 capacity;
};

FIXTURE_VARIANT_ADD(capacity, one) { .capacity = 1 };
FIXTURE_VARIANT_ADD(capacity, hundred) { .capacity = 100 };
FIXTURE_VARIANT_ADD(capacity, odd) { .capacity = 4097 };

FIXTURE_SETUP(capacity)
{
	self->fd = open_capacity(variant->capacity, variant->capacity);
}

FIXTURE_TEARDOWN(capacity)
{
	close(self->fd);
}

/* The wheel accepts exactly its capacity; one more timer is ENOSPC and is not added */
TEST_F(capacity, full)
{
	struct timerwheel_stats stats;

	EXPECT_EQ(-ENOSPC, tw_add1(self->fd, ~0ULL, 0, T(5), 0));
	EXPECT_EQ(-ENOENT, get_result(self->fd, ~0ULL));
	ASSERT_EQ(0, tw_stats(self->fd, &stats));
	EXPECT_EQ(variant->capacity, stats.pending);
	EXPECT_EQ(variant->capacity, stats.armed);
}

/* A full wheel: its timers can be replaced, moved and listed */
TEST_F(capacity, full_upsert)
{
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_add1(self->fd, 0, 9, T(6), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 0, T(7), 0));
	EXPECT_TRUE(pending_is(self->fd, 0, 9, T(7), T(7)));
	EXPECT_EQ(-EEXIST, tw_add1(self->fd, 0, 9, T(6), TIMERWHEEL_EXCL));
}

/* REMOVE makes room for exactly one timer */
TEST_F(capacity, room_after_remove)
{
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(self->fd, ~0ULL, 0, T(5), 0));
	EXPECT_EQ(-ENOSPC, tw_add1(self->fd, ~1ULL, 0, T(5), 0));
}

/* Does the wheel have exactly the timers @from to @to - 1, each once? */
static bool list_is(int fd, __u32 from, __u32 to)
{
	struct timerwheel_entry *ent = calloc(to - from + 1, sizeof(*ent));
	bool *seen = calloc(to, 1);
	__u64 cursor = 0;
	int n = tw_list(fd, &cursor, ent, to - from + 1), i;

	for (i = 0; i < n && ent[i].key >= from && ent[i].key < to && !seen[ent[i].key]; i++)
		seen[ent[i].key] = true;
	free(ent);
	free(seen);
	return n == (int)(to - from) && i == n;
}

/* Timers removed on another CPU leave room for the same number on this CPU, and no more */
TEST_F(capacity, room_after_remove_elsewhere)
{
	struct timerwheel_setup setup = { .capacity = variant->capacity };
	__u32 n = variant->capacity, i;
	int fd = dev_open(O_NONBLOCK);

	ASSERT_EQ(0, dev_setup(fd, &setup));
	if (tw_pin(1))
		SKIP(return, "one CPU");
	ASSERT_EQ(0, tw_pin(0));
	for (i = 0; i < n; i++)
		ASSERT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(fd, i, 0, HOUR, 0));
	ASSERT_EQ(0, tw_pin(1));
	for (i = 0; i < n; i++)
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(fd, i));
	ASSERT_EQ(0, tw_pin(0));
	for (i = 0; i < n; i++)
		ASSERT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(fd, n + i, 0, HOUR, 0));
	EXPECT_EQ(-ENOSPC, tw_add1(fd, ~0ULL, 0, HOUR, 0));
	ASSERT_EQ(0, tw_pin(1));
	EXPECT_EQ(-ENOSPC, tw_add1(fd, ~0ULL, 0, HOUR, 0));
	EXPECT_TRUE(list_is(fd, n, 2 * n));
	close(fd);
}

/* A due timer counts against the capacity until its event is read */
TEST_F(capacity, room_after_delivery)
{
	struct timerwheel_event ev;

	ASSERT_EQ(variant->capacity, tw_advance(self->fd, 0, T(5)));
	EXPECT_EQ(-ENOSPC, tw_add1(self->fd, ~0ULL, 0, T(5), 0));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(self->fd, ~0ULL, 0, T(5), 0));
	EXPECT_EQ(-ENOSPC, tw_add1(self->fd, ~1ULL, 0, T(5), 0));
}

/* DRAIN makes room for as many as it returned */
TEST_F(capacity, room_after_drain)
{
	struct timerwheel_entry ent;

	ASSERT_EQ(1, tw_drain(self->fd, 0, &ent, 1));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(self->fd, ~0ULL, 0, T(5), 0));
	EXPECT_EQ(-ENOSPC, tw_add1(self->fd, ~1ULL, 0, T(5), 0));
}

/* LIST of a full wheel returns all timers */
TEST_F(capacity, list)
{
	struct timerwheel_entry *ent = calloc(variant->capacity, sizeof(*ent));
	bool *seen = calloc(variant->capacity, sizeof(*seen));
	__u64 cursor = 0;
	int n;

	ASSERT_EQ(variant->capacity, tw_list(self->fd, &cursor, ent, variant->capacity));
	for (n = 0; n < variant->capacity; n++) {
		ASSERT_GT(variant->capacity, ent[n].key);
		EXPECT_FALSE(seen[ent[n].key]);
		seen[ent[n].key] = true;
	}
	EXPECT_EQ(0, tw_list(self->fd, &cursor, ent, 1));
}

/* DRAIN_CLOSE of a full wheel returns all timers */
TEST_F(capacity, drain_close)
{
	struct timerwheel_entry *ent = calloc(variant->capacity + 1, sizeof(*ent));

	EXPECT_EQ(variant->capacity, tw_drain(self->fd, TIMERWHEEL_DRAIN_CLOSE, ent,
					      variant->capacity + 1));
	EXPECT_EQ(0, tw_drain(self->fd, 0, ent, 1));
}

/* An array longer than the room: the first elements fit, all others are ENOSPC */
TEST_F(capacity, batch)
{
	__u32 n = 2 * variant->capacity, i;
	struct timerwheel_add *add = calloc(n, sizeof(*add));
	int fd = open_capacity(variant->capacity, 0);

	for (i = 0; i < n; i++)
		add[i] = (struct timerwheel_add){ .key = i, .deadline = T(5) };
	ASSERT_EQ(n, dev_add(fd, add, n));
	for (i = 0; i < n; i++)
		EXPECT_EQ(i < variant->capacity ? TIMERWHEEL_WAS_NONE : -ENOSPC, add[i].result);
	close(fd);
}

/* The capacity stays, however often the wheel is filled and emptied */
TEST_F(capacity, again)
{
	struct timerwheel_entry *ent = calloc(variant->capacity + 1, sizeof(*ent));
	__u32 i;
	int n;

	for (n = 0; n < 5; n++) {
		ASSERT_EQ(variant->capacity, tw_drain(self->fd, 0, ent, variant->capacity + 1));
		for (i = 0; i < variant->capacity; i++)
			ASSERT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(self->fd, i * 7 + n, 0, T(5), 0));
		ASSERT_EQ(-ENOSPC, tw_add1(self->fd, ~0ULL, 0, T(5), 0));
	}
}

/*
 * A number of timers that fills their pages (the first page has one timer less): the next timer
 * needs more memory.
 */
enum { CAP = 64 * 128 - 1, HALF = 64 * 64 - 1 };

/* While one of these tests runs, the limit is the memory of a wheel with CAP timers. */
FIXTURE(cap) {
	char old[32];
	mode_t mode;
	__u64 cap;
};

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return ok;
}

static __u64 user_memory(int fd)
{
	struct timerwheel_info info;

	return tw_info(fd, &info) ? ~0ULL : info.user_memory;
}

/* The memory of a wheel may be uncharged a moment after close. */
static bool user_memory_becomes(int fd, __u64 want)
{
	int i;

	for (i = 0; i < 60000 && user_memory(fd) != want; i++)
		tw_sleep(MSEC);
	return user_memory(fd) == want;
}

static bool set_cap(__u64 bytes)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", bytes);
	return write_file(MAX_USER_MEMORY, text);
}

FIXTURE_SETUP(cap)
{
	int fd = open(MAX_USER_MEMORY, O_RDONLY), wheel, probe;
	struct stat st;
	__u64 none;

	if (geteuid())
		SKIP(return, "only root may set the cap");
	/* one CPU only, because a wheel has memory for each CPU that uses it */
	ASSERT_EQ(0, tw_pin(0));
	ASSERT_LT(0, read(fd, self->old, sizeof(self->old) - 1));
	ASSERT_EQ(0, stat(TW_DEV, &st));
	self->mode = st.st_mode & 0777;
	probe = dev_open(0);
	ASSERT_LE(0, probe);
	none = tw_memory_alone(probe);
	wheel = open_capacity(4 * CAP, CAP);
	self->cap = user_memory(wheel);
	close(wheel);
	ASSERT_TRUE(user_memory_becomes(probe, none));
	self->cap -= none;
	close(fd);
	close(probe);
	/* Beyond half of the cap, open() waits until the memory of closed wheels is uncharged. */
	ASSERT_TRUE(set_cap(1));
	ASSERT_EQ(-EDQUOT, dev_open(0));
	ASSERT_TRUE(set_cap(self->cap));
}

FIXTURE_TEARDOWN(cap)
{
	if (!self->mode)
		return;
	EXPECT_TRUE(write_file(MAX_USER_MEMORY, self->old));
	EXPECT_EQ(0, chmod(TW_DEV, self->mode));
}

/* INFO reports the limit that the module parameter sets, at once */
TEST_F(cap, info)
{
	int fd = dev_open(0);
	struct timerwheel_info info;

	if (geteuid())
		return;
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(self->cap, info.user_memory_max);
	ASSERT_TRUE(set_cap(self->cap + 1));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(self->cap + 1, info.user_memory_max);
}

/* INFO reports the charged memory: the STATS of one wheel, or the sum for two wheels */
TEST_F(cap, memory)
{
	int a = open_capacity(4 * CAP, HALF / 2), b;
	struct timerwheel_stats st[2];

	ASSERT_EQ(0, tw_stats(a, &st[0]));
	EXPECT_EQ(st[0].memory, tw_memory_alone(a));
	/* the memory of timers and of the tables for their keys */
	EXPECT_LT(HALF / 2 * 68, st[0].memory);
	b = open_capacity(1, 1);
	ASSERT_EQ(0, tw_stats(b, &st[1]));
	EXPECT_EQ(st[0].memory + st[1].memory, tw_memory_of((int[]){ a, b }, 2));
	close(a);
	EXPECT_TRUE(user_memory_becomes(b, st[1].memory));
}

/* 0 stands for the default: half of the machine's memory */
TEST_F(cap, default_is_half)
{
	struct timerwheel_info info;
	__u64 total = tw_file_number("/proc/meminfo", "MemTotal:") * 1024;
	int fd = dev_open(0);

	ASSERT_TRUE(set_cap(0));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(total / 2, info.user_memory_max);
}

/* At the limit a wheel cannot be opened */
TEST_F(cap, open)
{
	int fd = open_capacity(4 * CAP, CAP);

	EXPECT_EQ(-EDQUOT, dev_open(0));
	EXPECT_EQ(self->cap, user_memory(fd));
}

/* If there is room only for a new wheel, its first call on timers fails */
TEST_F(cap, first_call)
{
	int fd = dev_open(O_NONBLOCK);
	__u64 base = tw_memory_alone(fd);

	ASSERT_TRUE(set_cap(base + 4096));
	EXPECT_EQ(TW_FAILED(EDQUOT), tw_add1(fd, 1, 0, T(5), 0));
	EXPECT_EQ(TW_FAILED(EDQUOT), tw_remove1(fd, 1));
	EXPECT_EQ(base, user_memory(fd));
	ASSERT_TRUE(set_cap(base + self->cap));
	EXPECT_EQ(0, tw_add1(fd, 1, 0, T(5), 0));
}

/* Room for a part of that call's memory does not help: none of it stays charged */
TEST_F(cap, first_call_in_part)
{
	int fd = dev_open(O_NONBLOCK), more = 0;
	__u64 base = tw_memory_alone(fd);

	ASSERT_TRUE(set_cap(base));
	while (tw_remove1(fd, 1) == TW_FAILED(EDQUOT)) {
		ASSERT_EQ(base, user_memory(fd)) TH_LOG("%d bytes more", more);
		more += 512;
		ASSERT_TRUE(set_cap(base + more));
	}
	/* a base, and pages of the table */
	EXPECT_LT(2 * 4096, more);
	EXPECT_EQ(-ENOENT, tw_remove1(fd, 1));
	EXPECT_LT(base + more - 512, user_memory(fd));
	EXPECT_GE(base + more, user_memory(fd));
}

/* A wheel that has a base on CPU @cpu only, at the cap: timers 0 to HALF - 1 */
static int open_at_cap(int cpu)
{
	int fd = dev_open(O_NONBLOCK), i;

	if (fd < 0 || tw_pin(cpu))
		abort();
	for (i = 0; i < HALF; i++) {
		if (tw_add1(fd, i, 0, HOUR, 0))
			abort();
	}
	if (!set_cap(tw_memory_alone(fd)))
		abort();
	return fd;
}

/*
 * On a CPU where no base can be charged, calls use the base of another CPU. They try again later,
 * but not at once.
 */
TEST_F(cap, other_cpu)
{
	__u64 memory, began;
	int fd, first;

	if (tw_pin(1))
		SKIP(return, "one CPU");
	for (first = 0; first < 2; first++) {
		fd = open_at_cap(first);
		memory = user_memory(fd);
		ASSERT_EQ(0, tw_pin(!first));
		began = tw_now(CLOCK_MONOTONIC);
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(fd, 0));
		EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(fd, 0, 0, HOUR, 0));
		EXPECT_EQ(-EDQUOT, tw_add1(fd, ~0ULL, 0, HOUR, 0));
		EXPECT_EQ(memory, user_memory(fd));
		ASSERT_TRUE(set_cap(2 * memory));
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(fd, 0, HOUR, 0));
		/* this happens after a second; ticks may be late */
		if (tw_now(CLOCK_MONOTONIC) - began < SEC / 2)
			EXPECT_EQ(memory, user_memory(fd));
		do {
			tw_sleep(2 * SEC);
			EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(fd, 0, HOUR, 0));
		} while (memory >= user_memory(fd) &&
			 tw_now(CLOCK_MONOTONIC) - began < 10 * SEC);
		EXPECT_LT(memory, user_memory(fd));
		close(fd);
	}
}

/* The limit is lowered below what is charged: timers stay, and no new memory is granted */
TEST_F(cap, lowered)
{
	int fd = open_capacity(4 * CAP, CAP);
	__u64 caps[] = { self->cap - 1, self->cap / 2, 1 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(caps); i++) {
		ASSERT_TRUE(set_cap(caps[i]));
		EXPECT_EQ(-EDQUOT, dev_open(0));
		EXPECT_EQ(-EDQUOT, tw_add1(fd, ~0ULL, 0, T(5), 0));
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(fd, 0, T(6), 0));
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(fd, 0));
		EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(fd, 0, 0, T(5), 0));
		EXPECT_EQ(self->cap, user_memory(fd));
	}
	ASSERT_TRUE(set_cap(2 * self->cap));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(fd, ~0ULL, 0, T(5), 0));
}

/* A ring is charged exactly: a limit of its size suffices, one byte less does not */
TEST_F(cap, ring)
{
	struct timerwheel_setup setup = { .ring = 1024 };
	int fd = dev_open(0);
	__u64 base = tw_memory_alone(fd), bytes;

	ASSERT_TRUE(set_cap(base + (1 << 20)));
	ASSERT_EQ(0, dev_setup(fd, &setup));
	bytes = user_memory(fd) - base;
	EXPECT_LT(1024 * sizeof(struct timerwheel_event), bytes);
	close(fd);
	fd = dev_open(0);
	ASSERT_EQ(base, tw_memory_alone(fd));
	ASSERT_TRUE(set_cap(base + bytes - 1));
	EXPECT_EQ(-EDQUOT, dev_setup(fd, &setup));
	EXPECT_EQ(base, user_memory(fd));
	ASSERT_TRUE(set_cap(base + bytes));
	EXPECT_EQ(0, dev_setup(fd, &setup));
	EXPECT_EQ(base + bytes, user_memory(fd));
}

/* SETUP with a ring or a deadline table, a monitor: each fails at the limit and changes nothing */
TEST_F(cap, others)
{
	struct timerwheel_setup setup = { .ring = 1024 };
	struct timerwheel_monitor monitor = { .size = sizeof(monitor), .events = 1024 };
	struct timerwheel_setup with_table = { .flags = TIMERWHEEL_SETUP_TABLE };
	int fd = open_capacity(4 * CAP, HALF), empty = dev_open(0), table = dev_open(0);
	size_t page = getpagesize();
	/* a link and 7 pages */
	size_t directory = 64;
	__u64 base;

	/* allocate first the memory that stays after a wheel's first monitor */
	close(dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &monitor));
	base = tw_memory_of((int[]){ fd, empty, table }, 3);
	/* too little for the table, which needs a page and a directory */
	ASSERT_TRUE(set_cap(base + page));
	EXPECT_EQ(-EDQUOT, dev_setup(empty, &setup));
	EXPECT_EQ(-EDQUOT, dev_setup(table, &with_table));
	EXPECT_EQ(-EDQUOT, dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &monitor));
	EXPECT_EQ(base, user_memory(fd));
	/* kmalloc() without objects of 64 bytes uses 128 */
	ASSERT_TRUE(set_cap(base + page + directory + 64));
	/* no memory for the ring beside the table: neither is created */
	with_table.ring = 1024;
	EXPECT_EQ(-EDQUOT, dev_setup(table, &with_table));
	EXPECT_EQ(base, user_memory(fd));
	with_table.ring = 0;
	EXPECT_EQ(0, dev_setup(table, &with_table));
	EXPECT_LE(base + page + directory, user_memory(fd));
	EXPECT_GE(base + page + directory + 64, user_memory(fd));
	EXPECT_EQ(-EDQUOT, tw_add1(fd, ~0ULL, 0, T(5), 0));
	ASSERT_TRUE(set_cap(base + (1 << 20)));
	EXPECT_EQ(0, dev_setup(empty, &setup));
}

/* A user can use exactly the limit; one more timer is EDQUOT and is not added */
TEST_F(cap, one_wheel)
{
	int fd = open_capacity(4 * CAP, CAP);

	EXPECT_EQ(-EDQUOT, tw_add1(fd, ~0ULL, 0, T(5), 0));
	EXPECT_EQ(-ENOENT, get_result(fd, ~0ULL));
	EXPECT_EQ(self->cap, user_memory(fd));
}

/* At the limit: timers can be replaced and moved */
TEST_F(cap, upsert)
{
	int fd = open_capacity(4 * CAP, CAP);

	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_add1(fd, 0, 9, T(6), 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(fd, 0, T(7), 0));
}

/* At the limit: REMOVE makes room in that wheel */
TEST_F(cap, remove)
{
	int fd = open_capacity(4 * CAP, CAP);

	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(fd, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(fd, ~0ULL, 0, T(5), 0));
	EXPECT_EQ(-EDQUOT, tw_add1(fd, ~1ULL, 0, T(5), 0));
}

/* The limit applies to all wheels together; closing one releases its share */
TEST_F(cap, two_wheels)
{
	struct timerwheel_stats st;
	int a, b;

	ASSERT_TRUE(set_cap(2 * self->cap));
	a = open_capacity(HALF, HALF);
	b = open_capacity(4 * CAP, HALF);
	ASSERT_TRUE(set_cap(tw_memory_of((int[]){ a, b }, 2)));
	EXPECT_EQ(-EDQUOT, tw_add1(b, ~0ULL, 0, T(5), 0));
	ASSERT_EQ(0, tw_stats(b, &st));
	close(a);
	EXPECT_TRUE(user_memory_becomes(b, st.memory));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(b, ~0ULL, 0, T(5), 0));
}

/* After close() the user can use that memory again at once, although it is freed later */
TEST_F(cap, there_again)
{
	int i, fd;

	for (i = 0; i < 5; i++) {
		fd = open_capacity(4 * CAP, CAP);
		ASSERT_EQ(-EDQUOT, tw_add1(fd, ~0ULL, 0, T(5), 0));
		close(fd);
	}
}

/* A full wheel is ENOSPC, not EDQUOT; a user at the limit is EDQUOT, not ENOSPC */
TEST_F(cap, not_capacity)
{
	int a, b;

	ASSERT_TRUE(set_cap(2 * self->cap));
	a = open_capacity(HALF, HALF);
	b = open_capacity(CAP, HALF);
	ASSERT_TRUE(set_cap(tw_memory_of((int[]){ a, b }, 2)));
	EXPECT_EQ(-ENOSPC, tw_add1(a, ~0ULL, 0, T(5), 0));
	EXPECT_EQ(-EDQUOT, tw_add1(b, ~0ULL, 0, T(5), 0));
}

/* While one user is at the limit, another user can arm timers as before */
TEST_F(cap, other_user)
{
	int fd = open_capacity(4 * CAP, CAP), status;
	pid_t pid;

	if (geteuid())
		return;
	ASSERT_EQ(0, chmod(TW_DEV, 0666));
	pid = fork();
	if (!pid) {
		if (setgroups(0, NULL) || setgid(1000) || setuid(1000))
			_exit(1);
		fd = tw_open_manual(TICK);
		_exit(fd < 0 ? 2 : tw_add1(fd, 1, 2, T(5), 0) ? 3 : 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(-EDQUOT, tw_add1(fd, ~0ULL, 0, T(5), 0));
}

/* --- STATS: counters of each operation ----------------------------------- */

/* The counters from pending to withdrawn, in order */
struct ledger {
	__s64 pending, due, armed, rearmed, moved, removed, replaced, drained, delivered;
	__s64 overruns, withdrawn;
};

static const char * const ledger_names[] = {
	"pending", "due", "armed", "rearmed", "moved", "removed", "replaced", "drained",
	"delivered", "overruns", "withdrawn",
};

enum { PENDING = 1, DUE, PERIODIC, PERIODIC_DUE };	/* keys */

FIXTURE(ledger) {
	int fd;
	struct timerwheel_stats before;
};

FIXTURE_SETUP(ledger)
{
	self->fd = tw_open_manual(TICK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_add1(self->fd, PENDING, 0, T(100), 0));
	ASSERT_EQ(0, tw_add1(self->fd, DUE, 0, T(5), 0));
	ASSERT_EQ(0, tw_add1_periodic(self->fd, PERIODIC, 0, T(101), T(10), 0));
	ASSERT_EQ(0, tw_add1_periodic(self->fd, PERIODIC_DUE, 0, T(5), T(10), 0));
	ASSERT_EQ(2, tw_advance(self->fd, 0, T(30)));
	ASSERT_EQ(0, tw_stats(self->fd, &self->before));
	ASSERT_TRUE(tw_balanced(&self->before));
}

FIXTURE_TEARDOWN(ledger)
{
	close(self->fd);
}

/* Each counter has changed by the value in @want since the setup, and the counters balance. */
static bool ledger_is(const FIXTURE_DATA(ledger) * self, struct ledger want)
{
	const __u64 *was = &self->before.pending, *is;
	const __s64 *delta = &want.pending;
	struct timerwheel_stats stats;
	bool ok = !tw_stats(self->fd, &stats) && tw_balanced(&stats);
	size_t i;

	is = &stats.pending;
	for (i = 0; i < ARRAY_SIZE(ledger_names); i++) {
		if (is[i] - was[i] == (__u64)delta[i])
			continue;
		fprintf(stderr, "# %s: %llu, then %llu, not %lld more\n", ledger_names[i],
			was[i], is[i], delta[i]);
		ok = false;
	}
	return ok;
}

/* The operations of the fixture are counted */
TEST_F(ledger, at_first)
{
	EXPECT_EQ(2, self->before.pending);
	EXPECT_EQ(2, self->before.due);
	EXPECT_EQ(4, self->before.armed);
}

/* ADD */
TEST_F(ledger, add)
{
	ASSERT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(self->fd, 9, 0, T(5), 0));
	EXPECT_TRUE(ledger_is(self, (struct ledger){ .armed = 1, .pending = 1 }));
}

/* ADD with a time in the past */
TEST_F(ledger, add_past)
{
	ASSERT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(self->fd, 9, 0, 0, TIMERWHEEL_ABS));
	EXPECT_TRUE(ledger_is(self, (struct ledger){ .armed = 1, .due = 1 }));
}

/* ADD that replaces a pending timer */
TEST_F(ledger, replace_pending)
{
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_add1(self->fd, PENDING, 0, T(5), 0));
	EXPECT_TRUE(ledger_is(self, (struct ledger){ .armed = 1, .replaced = 1 }));
}

/* ADD that replaces a due timer */
TEST_F(ledger, replace_due)
{
	ASSERT_EQ(TIMERWHEEL_WAS_DUE, tw_add1(self->fd, DUE, 0, T(5), 0));
	EXPECT_TRUE(ledger_is(self, (struct ledger){
		.armed = 1, .replaced = 1, .due = -1, .pending = 1, .withdrawn = 1,
	}));
}

/* ADD that replaces a due periodic timer: its overruns are not counted */
TEST_F(ledger, replace_periodic_due)
{
	ASSERT_EQ(TIMERWHEEL_WAS_DUE, tw_add1(self->fd, PERIODIC_DUE, 0, T(5), 0));
	EXPECT_TRUE(ledger_is(self, (struct ledger){
		.armed = 1, .replaced = 1, .due = -1, .pending = 1, .withdrawn = 1,
	}));
}

/* MOVE of a pending timer */
TEST_F(ledger, move_pending)
{
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, PENDING, T(5), 0));
	EXPECT_TRUE(ledger_is(self, (struct ledger){ .moved = 1 }));
}

/* MOVE of a pending timer to a time in the past */
TEST_F(ledger, move_past)
{
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, PENDING, 0, 0));
	EXPECT_TRUE(ledger_is(self, (struct ledger){ .moved = 1, .pending = -1, .due = 1 }));
}

/* MOVE of a due timer */
TEST_F(ledger, move_due)
{
	ASSERT_EQ(TIMERWHEEL_WAS_DUE, tw_move1(self->fd, DUE, T(5), 0));
	EXPECT_TRUE(ledger_is(self, (struct ledger){
		.moved = 1, .due = -1, .pending = 1, .withdrawn = 1,
	}));
}

/* REMOVE of a pending timer */
TEST_F(ledger, remove_pending)
{
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, PENDING));
	EXPECT_TRUE(ledger_is(self, (struct ledger){ .removed = 1, .pending = -1 }));
}

/* REMOVE of a due timer */
TEST_F(ledger, remove_due)
{
	ASSERT_EQ(TIMERWHEEL_WAS_DUE, tw_remove1(self->fd, DUE));
	EXPECT_TRUE(ledger_is(self, (struct ledger){ .removed = 1, .due = -1, .withdrawn = 1 }));
}

/* A timer falls due */
TEST_F(ledger, expire)
{
	ASSERT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, T(100)));
	EXPECT_TRUE(ledger_is(self, (struct ledger){ .pending = -1, .due = 1 }));
}

/* Events are read: the one-shot timer ends, the periodic timer is armed again */
TEST_F(ledger, deliver)
{
	struct timerwheel_event ev[3];

	ASSERT_EQ(2, dev_read(self->fd, ev, 3));
	EXPECT_TRUE(ledger_is(self, (struct ledger){
		.delivered = 2, .rearmed = 1, .due = -2, .pending = 1, .overruns = 2,
	}));
}

/* DRAIN: each timer, and each event that will not be read */
TEST_F(ledger, drain)
{
	struct timerwheel_entry ent[5];

	ASSERT_EQ(4, tw_drain(self->fd, 0, ent, 5));
	EXPECT_TRUE(ledger_is(self, (struct ledger){
		.drained = 4, .pending = -2, .due = -2, .withdrawn = 2,
	}));
}

/* Calls that only read, and failures, are not counted */
TEST_F(ledger, nothing)
{
	struct timerwheel_entry ent[5];
	struct timerwheel_remove rem = { .key = PENDING, .flags = 1 };
	__u64 cursor = 0;

	EXPECT_EQ(TIMERWHEEL_WAS_DUE, get_result(self->fd, DUE));
	EXPECT_EQ(4, tw_list(self->fd, &cursor, ent, 5));
	EXPECT_EQ(0, tw_drain(self->fd, 0, ent, 0));
	EXPECT_EQ(-EEXIST, tw_add1(self->fd, DUE, 0, T(5), TIMERWHEEL_EXCL));
	EXPECT_EQ(-ESTALE, tw_add1_match(self->fd, DUE, 0, T(5), 1, 0));
	EXPECT_EQ(-ENOENT, tw_add1_match(self->fd, 9, 0, T(5), 1, 0));
	EXPECT_EQ(-EINVAL, tw_add1(self->fd, DUE, 0, T(5), 1U << 31));
	EXPECT_EQ(-ESTALE, tw_move1_match(self->fd, DUE, T(5), 1, 0));
	EXPECT_EQ(-ENOENT, tw_move1(self->fd, 9, T(5), 0));
	EXPECT_EQ(-EINVAL, tw_move1(self->fd, DUE, T(5), 1U << 31));
	EXPECT_EQ(-ESTALE, tw_remove1_match(self->fd, DUE, 1));
	EXPECT_EQ(-ENOENT, tw_remove1(self->fd, 9));
	EXPECT_EQ(-EINVAL, tw_remove_elem(self->fd, &rem));
	EXPECT_TRUE(ledger_is(self, (struct ledger){ 0 }));
}

/* --- Tracepoints -------------------------------------------------------- */

#define TRACING	"/sys/kernel/tracing/instances"

FIXTURE(trace) {
	int fd;
	char dir[64];
	char said[65536];
};

static bool trace_write(FIXTURE_DATA(trace) * self, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", self->dir, file);
	return write_file(path, text);
}

FIXTURE_SETUP(trace)
{
	self->dir[0] = 0;
	self->fd = tw_open_manual(TICK);
	ASSERT_LE(0, self->fd);
	if (access(TRACING, W_OK))
		SKIP(return, "no " TRACING);
	snprintf(self->dir, sizeof(self->dir), "%s/timerwheel-%d", TRACING, getpid());
	ASSERT_EQ(0, mkdir(self->dir, 0700));
	ASSERT_TRUE(trace_write(self, "events/timerwheel/enable", "1"));
}

FIXTURE_TEARDOWN(trace)
{
	close(self->fd);
	if (!self->dir[0])
		return;
	EXPECT_TRUE(trace_write(self, "events/timerwheel/enable", "0"));
	EXPECT_EQ(0, rmdir(self->dir));
}

/* Is there a trace event @name with these fields? */
static bool told(FIXTURE_DATA(trace) * self, const char *name, const char *fields)
{
	char path[128], *line, *save = NULL;
	bool found = false;
	size_t got = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/trace", self->dir);
	fd = open(path, O_RDONLY);
	while (fd >= 0 && (n = read(fd, self->said + got, sizeof(self->said) - 1 - got)) > 0)
		got += n;
	close(fd);
	self->said[got] = 0;
	for (line = strtok_r(self->said, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		found |= strstr(line, name) && strstr(line, fields);
	if (!found)
		fprintf(stderr, "# not told: %s%s\n", name, fields);
	return found;
}

/* Operations on timers and their events are traced, with keys and times. */
TEST_F(trace, tells)
{
	struct timerwheel_event ev[4];
	char fields[128];
	int i;

	if (!self->dir[0])
		return;
	ASSERT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(self->fd, 7, 0, T(5), 0));
	snprintf(fields, sizeof(fields), " key=7 deadline=%llu period=0 was=0", T(5));
	EXPECT_TRUE(told(self, "timerwheel_arm:", fields));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_add1_periodic(self->fd, 7, 0, T(6), T(3), 0));
	snprintf(fields, sizeof(fields), " key=7 deadline=%llu period=%llu was=1", T(6), T(3));
	EXPECT_TRUE(told(self, "timerwheel_arm:", fields));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 7, T(8), 0));
	snprintf(fields, sizeof(fields), " key=7 deadline=%llu period=%llu was=1", T(8), T(3));
	EXPECT_TRUE(told(self, "timerwheel_move:", fields));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, tw_add1(self->fd, i, 0, T(8) - 5, 0));
	/* it fires at the end of that tick, and is delivered two periods later */
	ASSERT_EQ(3, tw_advance(self->fd, 0, T(8)));
	EXPECT_TRUE(told(self, "timerwheel_expire:", " base=0 count=3 "));
	ASSERT_EQ(0, tw_advance(self->fd, 0, T(6)));
	ASSERT_EQ(3, dev_read(self->fd, ev, 4));
	EXPECT_TRUE(told(self, "timerwheel_deliver:", " key=7 late=0 overruns=2"));
	EXPECT_TRUE(told(self, "timerwheel_deliver:", " key=0 late=5 overruns=0"));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 7));
	snprintf(fields, sizeof(fields), " key=7 deadline=%llu period=%llu was=1", T(17), T(3));
	EXPECT_TRUE(told(self, "timerwheel_remove:", fields));
}

/* --- Random operations against a model ----------------------------------- */

#define KEYS	150

static int operations(void)
{
	const char *s = getenv("TW_OPERATIONS");

	return s && atoi(s) > 0 ? atoi(s) : 150000;
}

struct model {
	bool there, due;
	__u64 value, deadline, period, fired;
};

FIXTURE(model) {
	int fd;
	__u64 seed, r;			/* random number generator */
	__u64 now, last_fired;
	struct model timers[KEYS];	/* by key */
	struct timerwheel_stats count;	/* what STATS must return */
};

FIXTURE_VARIANT(model) {
	__u64 tick;
	__u32 slots;
};

FIXTURE_VARIANT_ADD(model, ns_8) { .tick = 1, .slots = 8 };
FIXTURE_VARIANT_ADD(model, us_64) { .tick = 1000, .slots = 64 };
FIXTURE_VARIANT_ADD(model, ms_256) { .tick = 1000000, .slots = 256 };
FIXTURE_VARIANT_ADD(model, odd_4096) { .tick = 12345, .slots = 4096 };

FIXTURE_SETUP(model)
{
	/* On one CPU events come in the order of their ticks. */
	ASSERT_EQ(0, tw_pin(0));
	self->fd = tw_open_clock(TIMERWHEEL_CLOCK_MANUAL, variant->tick, variant->slots);
	ASSERT_LE(0, self->fd);
	self->seed = tw_seed();
	self->r = self->seed;
	printf("# seed %llu\n", self->seed);
}

FIXTURE_TEARDOWN(model)
{
	close(self->fd);
}

/* A number of any magnitude below 2^bits */
static __u64 any(FIXTURE_DATA(model) * self, int bits)
{
	return (tw_rand(&self->r) >> 1) >> (63 - tw_rand(&self->r) % (bits + 1));
}

/* A delay: random, or close to the boundary of a level */
static __u64 any_delay(FIXTURE_DATA(model) * self, const FIXTURE_VARIANT(model) * variant)
{
	if (tw_rand(&self->r) % 2)
		return any(self, 42);
	return ((1 + any(self, 8)) * variant->slots - 1 + tw_rand(&self->r) % 3) * variant->tick;
}

/* Report a difference from the model */
static bool as(const char *what, __s64 is, __s64 want)
{
	if (is != want)
		fprintf(stderr, "# %s: %lld, not %lld\n", what, is, want);
	return is == want;
}

static void model_arm(FIXTURE_DATA(model) * self, struct model *m, __u64 deadline)
{
	m->there = true;
	m->deadline = deadline;
	m->due = deadline <= self->now;
	m->fired = self->now;
	self->count.due += m->due;
	self->count.pending += !m->due;
}

static void model_disarm(FIXTURE_DATA(model) * self, struct model *m)
{
	self->count.due -= m->due;
	self->count.withdrawn += m->due;
	self->count.pending -= !m->due;
	m->there = false;
}

static int model_was(const struct model *m)
{
	if (!m->there)
		return TIMERWHEEL_WAS_NONE;
	return m->due ? TIMERWHEEL_WAS_DUE : TIMERWHEEL_WAS_PENDING;
}

/* The model's answer to an element; 0: go on */
static int model_check(const struct model *m, __u32 flags, __u64 match, bool must_be)
{
	if (flags & TIMERWHEEL_MATCH) {
		if (!m->there)
			return -ENOENT;
		return m->value == match ? 0 : -ESTALE;
	}
	if (must_be && !m->there)
		return -ENOENT;
	return flags & TIMERWHEEL_EXCL && m->there ? -EEXIST : 0;
}

/* One call ADD with up to 8 elements */
static bool any_add(FIXTURE_DATA(model) * self, const FIXTURE_VARIANT(model) * variant)
{
	__u32 n = 1 + tw_rand(&self->r) % 8, i;
	struct timerwheel_add add[8] = { 0 };

	for (i = 0; i < n; i++) {
		__u64 delay = any_delay(self, variant);

		add[i].key = tw_rand(&self->r) % KEYS;
		add[i].value = tw_rand(&self->r) % 4;
		add[i].period = tw_rand(&self->r) % 4 ? 0 : any(self, 40);
		add[i].deadline = delay;
		if (tw_rand(&self->r) % 2) {
			add[i].flags = TIMERWHEEL_ABS;
			add[i].deadline = self->now + delay;
			if (tw_rand(&self->r) % 4 == 0)
				add[i].deadline = self->now - (delay < self->now ? delay : 0);
		}
		if (tw_rand(&self->r) % 8 == 0)
			add[i].flags |= TIMERWHEEL_EXCL;
		else if (tw_rand(&self->r) % 4 == 0)
			add[i].flags |= TIMERWHEEL_MATCH;
		if (add[i].flags & TIMERWHEEL_MATCH)
			add[i].match = tw_rand(&self->r) % 4;
	}
	if (dev_add(self->fd, add, n) != (int)n)
		return false;
	for (i = 0; i < n; i++) {
		struct model *m = &self->timers[add[i].key];
		int want = model_check(m, add[i].flags, add[i].match, false);

		if (!want) {
			want = model_was(m);
			self->count.armed++;
			self->count.replaced += m->there;
			if (m->there)
				model_disarm(self, m);
			m->value = add[i].value;
			m->period = add[i].period;
			model_arm(self, m, add[i].flags & TIMERWHEEL_ABS ?
				  add[i].deadline : self->now + add[i].deadline);
		}
		if (!as("add", add[i].result, want))
			return false;
	}
	return true;
}

/* One call MOVE with up to 8 elements */
static bool any_move(FIXTURE_DATA(model) * self, const FIXTURE_VARIANT(model) * variant)
{
	__u32 n = 1 + tw_rand(&self->r) % 8, i;
	struct timerwheel_move move[8] = { 0 };

	for (i = 0; i < n; i++) {
		move[i].key = tw_rand(&self->r) % KEYS;
		move[i].deadline = any_delay(self, variant);
		if (tw_rand(&self->r) % 2) {
			move[i].flags = TIMERWHEEL_ABS;
			move[i].deadline += self->now / 2;
		}
		if (tw_rand(&self->r) % 4 == 0) {
			move[i].flags |= TIMERWHEEL_MATCH;
			move[i].match = tw_rand(&self->r) % 4;
		}
	}
	if (dev_move(self->fd, move, n) != (int)n)
		return false;
	for (i = 0; i < n; i++) {
		struct model *m = &self->timers[move[i].key];
		int want = model_check(m, move[i].flags, move[i].match, true);

		if (!want) {
			want = model_was(m);
			self->count.moved++;
			model_disarm(self, m);
			model_arm(self, m, move[i].flags & TIMERWHEEL_ABS ?
				  move[i].deadline : self->now + move[i].deadline);
		}
		if (!as("move", move[i].result, want))
			return false;
	}
	return true;
}

/* One call REMOVE with up to 4 elements */
static bool any_remove(FIXTURE_DATA(model) * self)
{
	__u32 n = 1 + tw_rand(&self->r) % 4, i;
	struct timerwheel_remove rem[4] = { 0 };

	for (i = 0; i < n; i++) {
		rem[i].key = tw_rand(&self->r) % KEYS;
		if (tw_rand(&self->r) % 4 == 0) {
			rem[i].flags = TIMERWHEEL_MATCH;
			rem[i].match = tw_rand(&self->r) % 4;
		}
	}
	if (dev_remove(self->fd, rem, n) != (int)n)
		return false;
	for (i = 0; i < n; i++) {
		struct model *m = &self->timers[rem[i].key];
		int want = model_check(m, rem[i].flags, rem[i].match, true);

		bool there = !want;

		if (!as("remove", rem[i].result, there ? model_was(m) : want) ||
		    !as("value", rem[i].value, there ? m->value : 0) ||
		    !as("left", rem[i].left, there ? m->deadline - self->now : 0))
			return false;
		if (!there)
			continue;
		self->count.removed++;
		model_disarm(self, m);
	}
	return true;
}

/* Time advances: each pending timer falls due at the first tick not before its deadline */
static bool any_advance(FIXTURE_DATA(model) * self, const FIXTURE_VARIANT(model) * variant)
{
	__u64 delay = any_delay(self, variant), expired = 0;
	bool absolute = tw_rand(&self->r) % 2;
	int i;

	self->now += delay;
	for (i = 0; i < KEYS; i++) {
		struct model *m = &self->timers[i];
		__u64 tick = (m->deadline + variant->tick - 1) / variant->tick * variant->tick;

		if (!m->there || m->due || tick > self->now)
			continue;
		m->due = true;
		m->fired = tick;
		expired++;
	}
	self->count.due += expired;
	self->count.pending -= expired;
	return as("expired", tw_advance(self->fd, absolute ? TIMERWHEEL_ABS : 0,
					absolute ? self->now : delay), expired);
}

/* One read of up to 32 events */
static bool any_read(FIXTURE_DATA(model) * self)
{
	int n = 1 + tw_rand(&self->r) % 32, due = self->count.due, i;
	struct timerwheel_event ev[32];
	int ret = dev_read(self->fd, ev, n);

	if (!as("read", ret, !due ? -EAGAIN : n < due ? n : due) || !due)
		return !due;
	for (i = 0; i < ret; i++) {
		struct model *m = &self->timers[ev[i].key];
		__u64 overruns = m->period ? (self->now - m->deadline) / m->period : 0;

		if (ev[i].key >= KEYS || ev[i].fired < self->last_fired ||
		    !as("event was", model_was(m), TIMERWHEEL_WAS_DUE) ||
		    !as("value", ev[i].value, m->value) ||
		    !as("deadline", ev[i].deadline, m->deadline) ||
		    !as("fired", ev[i].fired, m->fired) ||
		    !as("overruns", ev[i].overruns, overruns) ||
		    !as("flags", ev[i].flags, m->period ? TIMERWHEEL_EVENT_PERIODIC : 0))
			return false;
		self->last_fired = ev[i].fired;
		self->count.delivered++;
		self->count.overruns += overruns;
		self->count.due--;
		m->there = false;
		if (m->period) {
			self->count.rearmed++;
			model_arm(self, m, m->deadline + (overruns + 1) * m->period);
		}
	}
	return true;
}

/* Does @ent match the model? */
static bool model_has(const FIXTURE_DATA(model) * self, const struct timerwheel_entry *ent)
{
	const struct model *m = &self->timers[ent->key];

	return ent->key < KEYS && m->there && entry_is(ent, (struct timerwheel_entry){
		.key = ent->key, .value = m->value, .deadline = m->deadline,
		.left = m->deadline - self->now, .period = m->period, .result = model_was(m),
	});
}

/* LIST all timers */
static bool any_list(FIXTURE_DATA(model) * self)
{
	__u32 page = 1 + tw_rand(&self->r) % KEYS, total = 0;
	struct timerwheel_entry ent[KEYS];
	bool seen[KEYS] = { 0 };
	__u64 cursor = 0;
	int n, i;

	while ((n = tw_list(self->fd, &cursor, ent, page)) > 0) {
		for (i = 0; i < n; i++, total++) {
			if (!model_has(self, &ent[i]) || seen[ent[i].key])
				return false;
			seen[ent[i].key] = true;
		}
	}
	return as("list", n, 0) && as("listed", total, self->count.pending + self->count.due);
}

/* DRAIN some timers */
static bool any_drain(FIXTURE_DATA(model) * self)
{
	__u64 n = 1 + any(self, 7), left = self->count.pending + self->count.due;
	struct timerwheel_entry ent[128];
	int ret = tw_drain(self->fd, 0, ent, n), i;

	for (i = 0; i < ret; i++) {
		if (!model_has(self, &ent[i]))
			return false;
		self->count.drained++;
		model_disarm(self, &self->timers[ent[i].key]);
	}
	return as("drain", ret, n < left ? n : left);
}

/* STATS match the counts of the model */
static bool any_stats(FIXTURE_DATA(model) * self)
{
	const __u64 *want = &self->count.pending, *is;
	struct timerwheel_stats stats;
	size_t i;

	if (tw_stats(self->fd, &stats) || !tw_balanced(&stats))
		return false;
	is = &stats.pending;
	for (i = 0; i < ARRAY_SIZE(ledger_names); i++) {
		if (!as(ledger_names[i], is[i], want[i]))
			return false;
	}
	return true;
}

/* A wheel behaves like a small model, whatever the operations */
TEST_F_TIMEOUT(model, random, 300)
{
	int i, n = operations();

	for (i = 0; i < n; i++) {
		int what = tw_rand(&self->r) % 1000;
		bool ok;

		if (what < 300)
			ok = any_add(self, variant);
		else if (what < 450)
			ok = any_move(self, variant);
		else if (what < 550)
			ok = any_remove(self);
		else if (what < 800)
			ok = any_advance(self, variant);
		else if (what < 980)
			ok = any_read(self);
		else if (what < 988)
			ok = any_list(self);
		else if (what < 990)
			ok = any_drain(self);
		else
			ok = any_stats(self);
		ASSERT_TRUE(ok)
			TH_LOG("seed %llu: operation %d (%d), now %llu", self->seed, i, what,
			       self->now);
	}
}

TEST_HARNESS_MAIN
