// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of the wheel: wheel.c and slots.h, without clocks, locks or users.
 *
 * The model is a flat array: for each timer its deadline, the tick in which it must fire, and
 * whether it is pending. All random numbers are from a fixed seed.
 */
#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "deadlines.h"
#include "slots.h"
#include "wheel.h"

#define SEED		20250101U
#define TIMERS		2000U
#define BUDGET		128U
#define RANDOM_OPS	100000U

/**
 * struct shape - the shape of a wheel
 * @slots: slots per level
 * @tick: length of a tick in ns
 */
struct shape {
	unsigned int slots;
	u64 tick;
};

/* The least and the greatest of both, odd ones, and the default (the last) */
static const struct shape shapes[] = {
	{ TW_SLOTS_MIN, 1 },
	{ TW_SLOTS_MIN, 1000 },
	{ 64, 999983 },
	{ TW_SLOTS_MAX, 3600ULL * NSEC_PER_SEC },
	{ 256, NSEC_PER_MSEC },
};

/**
 * struct model - what must be true of a timer
 * @deadline: in ns
 * @slack: in ticks
 * @bound: the tick in which it must fire
 * @pending: it is in the wheel
 */
struct model {
	u64 deadline;
	u64 bound;
	u32 slack;
	bool pending;
};

/**
 * struct rig - a wheel with its memory, and the model of its timers
 * @w: the wheel
 * @pool: the timers
 * @due: timers that are due
 * @now: the time, in ns
 * @model: by index
 * @pending: how many are pending
 * @rnd: random numbers
 */
struct rig {
	struct tw_wheel w;
	struct tw_pool pool;
	struct tw_due_list due;
	u64 now;
	struct model *model;
	u32 pending;
	struct rnd_state rnd;
};

static u64 random_u64(struct rig *r)
{
	return (u64)prandom_u32_state(&r->rnd) << 32 | prandom_u32_state(&r->rnd);
}

static u32 pick(struct rig *r, u32 below)
{
	return random_u64(r) % below;
}

/* A number of any magnitude up to @most: as likely to have 10 bits as 60 */
static u64 random_size(struct rig *r, u64 most)
{
	return min(random_u64(r) >> pick(r, 64), most);
}

static u64 now_tick(const struct rig *r)
{
	return div64_u64(r->now, r->w.tick);
}

static struct rig *make(struct kunit *test, const struct shape *shape, u64 now)
{
	unsigned int lists = tw_wheel_lists(shape->slots, shape->tick);
	unsigned int pages = TIMERS / TW_PAGE_TIMERS + 1, i;
	struct rig *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	unsigned long *occupied;
	u32 *head;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->pool.page = kunit_kcalloc(test, pages, sizeof(*r->pool.page), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->pool.page);
	for (i = 0; i < pages; i++) {
		r->pool.page[i] = kunit_kzalloc(test, TW_PAGE, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, r->pool.page[i]);
	}
	head = kunit_kcalloc(test, lists, sizeof(*head), GFP_KERNEL);
	occupied = kunit_kcalloc(test, BITS_TO_LONGS(lists), sizeof(*occupied), GFP_KERNEL);
	r->model = kunit_kcalloc(test, TIMERS + 1, sizeof(*r->model), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, head);
	KUNIT_ASSERT_NOT_NULL(test, occupied);
	KUNIT_ASSERT_NOT_NULL(test, r->model);
	tw_pool_set_entries(&r->pool, 0, false);
	r->now = now;
	tw_wheel_init(&r->w, &r->pool, head, occupied, shape->slots, shape->tick,
		      div64_u64(now, shape->tick));
	prandom_seed_state(&r->rnd, SEED);
	return r;
}

static u64 slack_max(const struct rig *r)
{
	return min_t(u64, div64_u64(TW_SLACK_MAX, r->w.tick), U32_MAX);
}

/* The first tick that does not begin before the deadline */
static u64 first_tick(const struct rig *r, const struct model *m)
{
	return DIV64_U64_ROUND_UP(m->deadline, r->w.tick);
}

static void expect_in_slot(struct kunit *test, struct rig *r, u32 index)
{
	u32 list = tw_timer_at(&r->pool, index)->prev & ~TW_HEAD;
	u64 tick = max(tw_fire_tick(&r->w, tw_timer_at(&r->pool, index)), r->w.cursor);
	unsigned int level = list / r->w.level_size, n, shift;
	u64 away;

	KUNIT_ASSERT_LT(test, level, (unsigned int)r->w.levels);
	KUNIT_ASSERT_EQ(test, r->w.head[list], index);
	KUNIT_ASSERT_TRUE(test, test_bit(list, r->w.occupied));
	KUNIT_ASSERT_EQ(test, (u64)(list % r->w.level_size),
			(tick >> (level * r->w.shift)) & (r->w.level_size - 1));
	for (n = 0; n <= level; n++) {
		shift = n * r->w.shift;
		away = (tick >> shift) - (r->w.cursor >> shift);
		/* The lowest level that reaches it, and no other one */
		KUNIT_ASSERT_EQ(test, away < r->w.level_size, n == level);
	}
}

static void add(struct kunit *test, struct rig *r, u32 index, u64 deadline, u32 slack)
{
	struct tw_timer *t = tw_timer_at(&r->pool, index);
	struct model *m = &r->model[index];

	t->deadline = deadline;
	t->slack = slack;
	t->state = TW_PENDING;
	m->deadline = deadline;
	m->slack = slack;
	m->pending = true;
	tw_wheel_catch_up(&r->w, now_tick(r));
	/*
	 * A timer armed for the past fires in the next tick, or in this tick if it has not ended.
	 */
	m->bound = max(first_tick(r, m) + slack, r->w.cursor);
	tw_wheel_insert(&r->w, index, t);
	r->pending++;
	expect_in_slot(test, r, index);
}

static void del(struct kunit *test, struct rig *r, u32 index)
{
	struct tw_timer *t = tw_timer_at(&r->pool, index);

	KUNIT_ASSERT_EQ(test, (unsigned int)t->state, (unsigned int)TW_PENDING);
	tw_wheel_remove(&r->w, t);
	t->state = TW_FREE;
	r->model[index].pending = false;
	r->pending--;
}

static u64 handled(const struct rig *r)
{
	return r->w.expired + r->w.cascades + r->w.requeues;
}

/* Take the timers that fell due, and check each. Returns their number. */
static u32 take_due(struct kunit *test, struct rig *r)
{
	u32 index, count = 0;

	for (index = r->due.first; index; index = tw_timer_at(&r->pool, index)->next) {
		struct tw_timer *t = tw_timer_at(&r->pool, index);
		struct model *m = &r->model[index];

		KUNIT_ASSERT_LE(test, index, TIMERS);
		KUNIT_ASSERT_TRUE_MSG(test, m->pending, "timer %u fired, which was not pending",
				      index);
		KUNIT_ASSERT_EQ(test, (unsigned int)t->state, (unsigned int)TW_DUE);
		KUNIT_ASSERT_EQ(test, t->deadline, m->deadline);
		KUNIT_ASSERT_GE_MSG(test, r->now, m->deadline, "timer %u is early", index);
		KUNIT_ASSERT_EQ(test, t->fired, r->now);
		t->state = TW_FREE;
		m->pending = false;
		r->pending--;
		count++;
	}
	KUNIT_ASSERT_EQ(test, count, r->due.count);
	memset(&r->due, 0, sizeof(r->due));
	return count;
}

/* A batch of work. Returns true if there is more. */
static bool collect(struct kunit *test, struct rig *r, unsigned int budget)
{
	/* A timer that is alone in its slot costs the search of all levels besides. */
	unsigned int cost = 1 + r->w.levels * (r->w.level_size + 1536) / 1536;
	u64 before = handled(r);
	bool more;

	more = tw_wheel_collect(&r->w, now_tick(r), r->now, budget, false, true, &r->due);
	KUNIT_ASSERT_LE(test, handled(r) - before, (u64)budget);
	/* Else it could go on for ever. */
	if (more)
		KUNIT_ASSERT_GE(test, (handled(r) - before) * cost, (u64)budget - budget / 2);
	take_due(test, r);
	KUNIT_ASSERT_EQ(test, r->w.pending, r->pending);
	return more;
}

/* Do all work of this tick. Then nothing is left that had to fire by now. */
static void collect_all(struct kunit *test, struct rig *r)
{
	u64 tick = now_tick(r);
	u32 index;

	while (collect(test, r, BUDGET))
		;
	KUNIT_ASSERT_GT(test, r->w.work, tick);
	for (index = 1; index <= TIMERS; index++) {
		if (r->model[index].pending)
			KUNIT_ASSERT_GT_MSG(test, r->model[index].bound, tick, "timer %u is late",
					    index);
	}
}

/* Nothing is left: no timer, no list, no bit. */
static void expect_empty(struct kunit *test, struct rig *r)
{
	unsigned int lists = r->w.levels * r->w.level_size + TW_BACKLOGS, i;

	KUNIT_EXPECT_EQ(test, r->w.pending, 0U);
	KUNIT_EXPECT_EQ(test, find_first_bit(r->w.occupied, lists), (unsigned long)lists);
	for (i = 0; i < lists; i++)
		KUNIT_ASSERT_EQ(test, r->w.head[i], 0U);
	KUNIT_EXPECT_EQ(test, tw_wheel_first(&r->w), TW_NEVER);
}

/* Levels cover all of time, and a timer at each distance is in the slot of its tick. */
static void wheel_slots(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = make(test, shape, 0);
	unsigned int bit, start;
	u32 index = 1;
	s64 off;

	/* At most 21 levels: 2^64 ticks of 1 ns, in levels of 8 slots */
	KUNIT_EXPECT_LE(test, tw_wheel_levels(shape->slots, shape->tick), 21U);
	for (start = 0; start < 2; start++) {
		for (bit = 0; bit < 63; bit++) {
			for (off = -1; off <= 1; off++) {
				u64 deadline = BIT_ULL(bit) + off;

				add(test, r, index++, min(deadline, TIMERWHEEL_TIME_MAX), 0);
			}
		}
		/* The same from an odd cursor: all that was armed is removed first. */
		while (--index)
			del(test, r, index);
		index = 1;
		expect_empty(test, r);
		r->now = 987654321987654321ULL;
		r->w.cursor = now_tick(r) + 1;
	}
}

/*
 * A timer at each distance, alone: not early, in the tick of its deadline, after no more steps than
 * there are levels. In between the wheel announces when it has work; nothing else is called.
 */
static void wheel_one(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	unsigned int bit, steps;
	struct rig *r;

	for (bit = 0; bit < 63; bit++) {
		u64 now = BIT_ULL(bit) / 3, deadline = TIMERWHEEL_TIME_MAX;
		u64 tick;

		r = make(test, shape, now);
		if (bit < 62)
			deadline = now + BIT_ULL(bit) + pick(r, 1000);
		add(test, r, 1, deadline, 0);
		tick = DIV64_U64_ROUND_UP(deadline, shape->tick);
		for (steps = 0; r->pending; steps++) {
			KUNIT_ASSERT_LT(test, steps, (unsigned int)r->w.levels);
			KUNIT_ASSERT_LE(test, r->w.work, tick);
			/*
			 * The last step is at the end of time, which need not be the end of a tick.
			 */
			r->now = max(r->now, min(r->w.work * shape->tick, TIMERWHEEL_TIME_MAX));
			if (now_tick(r) < r->w.work)
				break;
			collect(test, r, BUDGET);
		}
		if (!r->pending)
			expect_empty(test, r);
		else
			KUNIT_EXPECT_GT(test, tick * shape->tick, TIMERWHEEL_TIME_MAX);
	}
}

/* Many timers in one tick: batches are bounded, and timers of later ticks are still on time. */
static void wheel_burst(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	/* The first tick of a slot of an upper level: its cascade must be over by then. */
	u64 from = 4 * shape->slots * shape->tick;
	struct rig *r = make(test, shape, 0);
	u32 index;

	for (index = 1; index < TIMERS; index++)
		add(test, r, index, from, 0);
	add(test, r, TIMERS, from + shape->tick, 0);
	/* All cascades up to here are early: they cannot be late. */
	for (r->now = 0; r->now < from; r->now += shape->tick)
		collect_all(test, r);
	KUNIT_EXPECT_EQ(test, r->pending, TIMERS);
	r->now = from;
	KUNIT_EXPECT_TRUE(test, collect(test, r, BUDGET));
	KUNIT_EXPECT_EQ(test, r->pending, TIMERS - BUDGET);
	/* One batch for each tick: the rest of the burst waits in a backlog. */
	r->now += shape->tick;
	KUNIT_EXPECT_TRUE(test, collect(test, r, BUDGET));
	KUNIT_EXPECT_FALSE(test, r->model[TIMERS].pending);
	collect_all(test, r);
	expect_empty(test, r);
}

/* Slack: within it, never early, and timers whose slack overlaps enough share a tick. */
static void wheel_slack(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = make(test, shape, 0);
	u64 tick, first, zeros;
	unsigned int n;
	u32 slack;

	for (n = 0; n < 1000; n++) {
		struct tw_timer t = { .deadline = random_size(r, TIMERWHEEL_TIME_MAX) };

		slack = random_size(r, slack_max(r));
		t.slack = slack;
		first = DIV64_U64_ROUND_UP(t.deadline, shape->tick);
		tick = tw_fire_tick(&r->w, &t);
		KUNIT_ASSERT_GE(test, tick, first);
		KUNIT_ASSERT_LE(test, tick, first + slack);
		/* No tick within the slack is a multiple of a larger power of two. */
		zeros = tick ? __ffs64(tick) + 1 : 64;
		KUNIT_ASSERT_TRUE(test, zeros == 64 ||
				  ((first + slack) >> zeros << zeros) < first);
	}
	/* 64 timers in successive ticks whose slack is as long as that: two ticks suffice. */
	for (n = 0; n < 64; n++)
		add(test, r, n + 1, (1000 + n) * shape->tick, 63);
	for (n = 0; r->pending; n++) {
		KUNIT_ASSERT_LT(test, n, 1200U);
		r->now = n * shape->tick;
		collect_all(test, r);
	}
	KUNIT_EXPECT_EQ(test, r->w.expired, 64ULL);
	KUNIT_EXPECT_EQ(test, r->now, 1088 * shape->tick);
}

/* MOVE to a later time only writes the deadline: the timer is queued again when it is visited. */
static void wheel_postpone(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = make(test, shape, 0);
	unsigned int n;

	add(test, r, 1, 5 * shape->tick, 0);
	for (n = 1; n <= 20; n++) {
		u64 deadline = 5 * shape->tick + 7 * n * shape->tick;

		tw_timer_at(&r->pool, 1)->deadline = deadline;
		r->model[1].deadline = deadline;
		r->model[1].bound = DIV64_U64_ROUND_UP(deadline, shape->tick);
	}
	for (n = 0; n <= 144; n++) {
		r->now = n * shape->tick;
		collect_all(test, r);
	}
	KUNIT_EXPECT_EQ(test, r->pending, 1U);
	/* However often it was moved, it was visited once. */
	KUNIT_EXPECT_EQ(test, r->w.requeues, 1ULL);
	r->now = 145 * shape->tick;
	collect_all(test, r);
	expect_empty(test, r);
}

static u64 random_deadline(struct rig *r)
{
	/* Half of them soon, the others at any distance; some in the past */
	u64 rest = TIMERWHEEL_TIME_MAX - r->now;

	if (!pick(r, 32))
		return r->now - random_size(r, r->now);
	return r->now + random_size(r, pick(r, 2) ? min(r->w.tick * 600, rest) : rest);
}

static void random_op(struct kunit *test, struct rig *r)
{
	u32 index = 1 + pick(r, TIMERS);
	struct model *m = &r->model[index];
	u32 slack = pick(r, 4) ? 0 : random_size(r, slack_max(r));
	u64 rest;

	switch (pick(r, 16)) {
	case 0 ... 7:
		/* ADD, or MOVE to any time */
		if (m->pending)
			del(test, r, index);
		add(test, r, index, random_deadline(r), slack);
		break;
	case 8 ... 9:
		if (m->pending)
			del(test, r, index);
		break;
	case 10 ... 12:
		/* MOVE to a later time */
		if (!m->pending)
			break;
		rest = TIMERWHEEL_TIME_MAX - m->deadline;
		m->deadline += random_size(r, pick(r, 4) ? min(r->w.tick * 600, rest) : rest);
		tw_timer_at(&r->pool, index)->deadline = m->deadline;
		m->bound = max(m->bound, first_tick(r, m) + m->slack);
		break;
	case 13:
		collect(test, r, 2 + pick(r, BUDGET));
		break;
	case 14:
		r->now += random_size(r, min(r->w.tick * 300, TIMERWHEEL_TIME_MAX - r->now));
		collect(test, r, 2 + pick(r, BUDGET));
		break;
	case 15:
		if (pick(r, 8))
			break;
		/* To when there is something to do, if that is not now */
		if (r->w.work < TIMERWHEEL_TIME_MAX / r->w.tick)
			r->now = max(r->now, r->w.work * r->w.tick);
		collect_all(test, r);
		break;
	}
	KUNIT_ASSERT_EQ(test, r->w.pending, r->pending);
}

/* Random operations, compared with the model */
static void wheel_random(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = make(test, shape, 1000 * shape->tick);
	unsigned int n;
	u32 index;

	for (n = 0; n < RANDOM_OPS; n++)
		random_op(test, r);
	/* That all was exercised, with this seed and all shapes */
	KUNIT_EXPECT_GT(test, r->w.expired, 100ULL);
	KUNIT_EXPECT_GT(test, r->w.requeues, 10ULL);
	KUNIT_EXPECT_GT(test, r->w.cascades, 10ULL);
	collect_all(test, r);
	for (index = 1; index <= TIMERS; index++) {
		if (r->model[index].pending)
			del(test, r, index);
	}
	expect_empty(test, r);
}

static void shape_name(const struct shape *shape, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "%u slots, tick %llu ns", shape->slots, shape->tick);
}

KUNIT_ARRAY_PARAM(shape, shapes, shape_name);

static struct kunit_case wheel_cases[] = {
	KUNIT_CASE_PARAM(wheel_slots, shape_gen_params),
	KUNIT_CASE_PARAM(wheel_one, shape_gen_params),
	KUNIT_CASE_PARAM(wheel_burst, shape_gen_params),
	KUNIT_CASE_PARAM(wheel_slack, shape_gen_params),
	KUNIT_CASE_PARAM(wheel_postpone, shape_gen_params),
	KUNIT_CASE_PARAM(wheel_random, shape_gen_params),
	{}
};

static struct kunit_suite wheel_suite = {
	.name = "timerwheel",
	.test_cases = wheel_cases,
};

kunit_test_suites(&wheel_suite);

MODULE_DESCRIPTION("KUnit tests of the timing wheel of timerwheel");
MODULE_LICENSE("GPL");
