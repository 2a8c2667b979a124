// SPDX-License-Identifier: GPL-2.0
/*
 * Most cases advance a wheel with ticks of 1 ms in simulated time and handle a limited number of
 * timers in each tick.
 */
#include <stdio.h>

#include "cases.h"
#include "fail.h"
#include "rig.h"

#define MSEC		1000000ULL
#define MILLION		1000000U

/*
 * Timers in a batch, and in 16 batches. As in module/cpu.c, the last of 16 batches detaches the
 * rest of an oversized tick; the module's are twice as long.
 */
#define BATCH		64U
#define BUDGET		1024U

/* Run batches of at most @timers in total at the start of tick @now. Returns if there is more. */
static bool run_tick(struct rig *r, u64 now, unsigned int timers)
{
	u64 before = rig_visits(r);
	bool more, last;

	do {
		u64 left = before + timers - rig_visits(r);

		last = left <= BATCH;
		more = tw_wheel_collect(&r->w, now, now * r->w.tick, min_t(u64, left, BATCH),
					false, last, &r->due);
		CHECK(rig_visits(r) - before <= timers, "%llu timers handled in a tick",
		      rig_visits(r) - before);
	} while (more && !last && rig_visits(r) - before + 2 <= timers);
	return more;
}

/* The tick in which timer @index fired */
static u64 fired(const struct rig *r, u32 index)
{
	const struct tw_timer *t = rig_timer(r, index);

	CHECK(t->state == TW_DUE, "timer %u has not fired", index);
	CHECK(t->fired >= t->deadline, "timer %u: early", index);
	return t->fired / r->w.tick;
}

/* The lateness of timer @index in ticks, without slack */
static u64 late(const struct rig *r, u32 index)
{
	return fired(r, index) - (rig_timer(r, index)->deadline + r->w.tick - 1) / r->w.tick;
}

/*
 * Advance to each tick that is announced in w.work, up to @until, and do all the work there.
 * Returns the number of these ticks.
 */
static unsigned int run_until(struct rig *r, u64 until)
{
	unsigned int wakes = 0;

	while (r->w.work <= until) {
		u64 now = r->w.work;

		CHECK(!tw_wheel_collect(&r->w, now, min(now * r->w.tick, TIMERWHEEL_TIME_MAX),
					2 * MILLION, false, true, &r->due),
		      "not finished, but within the budget");
		CHECK(r->w.work > now, "tick %llu is announced again", now);
		wakes++;
	}
	return wakes;
}

/* --- Few timers --------------------------------------------------------------- */

/* The number of levels is the least that reaches every tick of 64-bit time. */
static void levels(void)
{
	static const u64 ticks[] = { 1, 2, 3, 997, 1000, 1048576, 1000000, 1000000000,
				     3600000000000ULL, 1ULL << 60 };
	unsigned int i, slots;

	for (slots = TW_SLOTS_MIN; slots <= TW_SLOTS_MAX; slots *= 2) {
		for (i = 0; i < ARRAY_SIZE(ticks); i++) {
			unsigned int n = tw_wheel_levels(slots, ticks[i]);
			u64 top = U64_MAX / ticks[i];
			__uint128_t reach = 2 * slots;
			unsigned int level = 1;

			for (; reach <= top; level++)
				reach *= slots;
			CHECK(n == level, "%u slots, tick %llu: %u levels instead of %u", slots,
			      ticks[i], n, level);
			CHECK(tw_wheel_lists(slots, ticks[i]) == n * 2 * slots + TW_BACKLOGS,
			      "%u slots, tick %llu: lists", slots, ticks[i]);
		}
	}
}

/* Count wake-ups, which are returned, and visits for one timer @distance ticks away. */
static unsigned int lone(struct rig *r, u64 distance, u64 *visits)
{
	unsigned int level, wakes;
	u64 before = rig_visits(r);
	u64 now = r->w.cursor;
	u64 tick = now + distance;

	rig_catch_up(r, now);
	rig_add(r, 1, tick * r->w.tick, 0);
	level = (rig_timer(r, 1)->prev & ~TW_HEAD) / rig_level_size(r);
	wakes = run_until(r, tick);
	CHECK(!late(r, 1), "fired %llu ticks late", late(r, 1));
	CHECK(wakes <= level + 1, "%llu ticks away, level %u: %u wake-ups", distance, level, wakes);
	CHECK(rig_visits(r) - before == wakes, "%llu visits in %u wake-ups",
	      rig_visits(r) - before, wakes);
	*visits = rig_visits(r) - before;
	rig_take_due(r, 1);
	return wakes;
}

/* A lone timer costs at most one wake-up per level, however far away it is. */
static void lone_timer(void)
{
	unsigned int slots, n, most = 0;
	u64 distance, visits;
	struct rig r;

	for (slots = TW_SLOTS_MIN; slots <= TW_SLOTS_MAX; slots *= 2) {
		for (n = 0; n <= 52; n++) {
			rig_init(&r, slots, n % 3 ? 1000 : 1, n * 1000003ULL, 1, 0);
			for (distance = 1ULL << n; distance; distance /= 5)
				most = max(most, lone(&r, distance, &visits));
			rig_free(&r);
		}
	}
	printf("# at most %u wake-ups for a timer up to 2^52 ticks away\n", most);
	for (n = 0; n < 3 * 512; n++) {
		rig_init(&r, 256, MSEC, 1000000 + n, 1, 0);
		CHECK(lone(&r, 60000, &visits) <= 2, "more than 2 wake-ups in 60 s from tick %u",
		      1000000 + n);
		rig_free(&r);
	}
}

/* Visits of a timer a minute, an hour or a day away: at most 2, 3 or 4 */
static void life(void)
{
	static const struct {
		const char *name;
		u64 ticks;
		unsigned int most;
	} lives[] = {
		{ "60 s", 60000, 2 },
		{ "1 h", 3600000, 3 },
		{ "24 h", 86400000, 4 },
	};
	unsigned int i, j, wakes;
	struct rig r;
	u64 visits;

	for (i = 0; i < ARRAY_SIZE(lives); i++) {
		unsigned int most_wakes = 0;
		u64 most_visits = 0;

		for (j = 0; j < 1000; j++) {
			rig_init(&r, 256, MSEC, 977ULL * j * j, 1, 0);
			wakes = lone(&r, lives[i].ticks, &visits);
			rig_free(&r);
			most_wakes = max(most_wakes, wakes);
			most_visits = max(most_visits, visits);
		}
		printf("# a timer in %s: at most %llu visits in %u wake-ups\n", lives[i].name,
		       most_visits, most_wakes);
		CHECK(most_visits <= lives[i].most, "%llu visits in %s", most_visits,
		      lives[i].name);
	}
}

/* However often a timer is postponed, it is only visited when the slot it is queued in comes up. */
static void postponed(void)
{
	u64 now, visits = 0, timeout = 60000;
	struct rig r;

	rig_init(&r, 256, MSEC, 0, 1, 0);
	rig_add(&r, 1, timeout * MSEC, 0);
	for (now = 0; now < 3600000; now++) {
		rig_timer(&r, 1)->deadline = (now + timeout) * MSEC;
		run_tick(&r, now, BUDGET);
	}
	visits = rig_visits(&r);
	printf("# postponed by 60 s every ms for 1 h: %llu visits\n", visits);
	CHECK(visits <= 2 * 3600000 / timeout + 2, "%llu visits", visits);
	CHECK(r.w.pending == 1, "not pending");
	run_until(&r, now + timeout);
	CHECK(!late(&r, 1), "late");
	rig_free(&r);
}

/* Timers with slack fire in the same tick, none before its deadline or after its slack. */
static void slack(void)
{
	const u32 n = 1000;
	unsigned int wakes;
	struct rig r;
	u32 i;

	rig_init(&r, 256, MSEC, 12345, n, 0);
	for (i = 1; i <= n; i++)
		rig_add(&r, i, (12345 + 100 + i % 100) * MSEC, 127);
	wakes = run_until(&r, 12345 + 400);
	printf("# %u timers in 100 ticks with a slack of 127: %u wake-ups\n", n, wakes);
	for (i = 1; i <= n; i++)
		CHECK(late(&r, i) <= 127, "timer %u fired %llu ticks late", i, late(&r, i));
	CHECK(wakes <= 2, "%u wake-ups", wakes);
	rig_free(&r);
}

/* TIMERWHEEL_TIME_MAX, and a clock that gets there */
static void never(void)
{
	static const u64 ticks[] = { 1, 1000, 1000000, 999999937, 3600000000000ULL };
	unsigned int i, slots, wakes;
	struct rig r;

	for (slots = TW_SLOTS_MIN; slots <= TW_SLOTS_MAX; slots *= 2) {
		for (i = 0; i < ARRAY_SIZE(ticks); i++) {
			u64 end = TIMERWHEEL_TIME_MAX / ticks[i];

			rig_init(&r, slots, ticks[i], 0, 2, 0);
			rig_add(&r, 1, TIMERWHEEL_TIME_MAX, 0);
			rig_add(&r, 2, end * ticks[i], 0);
			wakes = run_until(&r, end);
			CHECK(!late(&r, 2), "late");
			CHECK(r.w.pending == (TIMERWHEEL_TIME_MAX % ticks[i] ? 1 : 0), "%u pending",
			      r.w.pending);
			CHECK(wakes <= 2U * r.w.levels, "%u wake-ups", wakes);
			rig_free(&r);
		}
	}
}

/* --- A million timers ----------------------------------------------------------- */

/* The greatest lateness of timers @first to @last, without those due in tick @except */
static u64 latest(const struct rig *r, u32 first, u32 last, u64 except)
{
	u64 most = 0;
	u32 i;

	for (i = first; i <= last; i++)
		if (rig_timer(r, i)->deadline != except * r->w.tick)
			most = max(most, late(r, i));
	return most;
}

/*
 * @size timers fall due in one tick and are handled at a rate of @rate per tick. Others are due in
 * the ticks before and after, and do not wait for them. Returns the others' greatest lateness.
 */
static u64 burst(u32 size, unsigned int rate)
{
	const u64 begin = 1000, tick = 100000;
	const u32 others = 1000;
	u64 now, own, other;
	struct rig r;
	u32 i;

	rig_init(&r, 256, MSEC, begin, size + others, 0);
	for (i = 1; i <= size; i++)
		rig_add(&r, i, tick * MSEC, 0);
	for (i = 0; i < others; i++)
		rig_add(&r, size + 1 + i, (tick - 500 + i) * MSEC, 0);
	for (now = begin; r.w.pending; now++)
		run_tick(&r, now, rate);
	CHECK(r.w.expired == size + others, "%llu expired", r.w.expired);
	own = latest(&r, 1, size, 0);
	other = latest(&r, size + 1, size + others, tick);
	printf("# %u in one tick at %u a tick: %llu ticks late, others %llu\n", size, rate, own,
	       other);
	CHECK(own <= 2 * (size + others) / rate + 2, "took too long");
	rig_free(&r);
	return other;
}

static void burst_fast(void)
{
	CHECK(!burst(MILLION, 5 * BUDGET), "others are late");
}

/*
 * Here the cascade, too, takes longer than there is time. It takes the budget of one tick before
 * its rest becomes a backlog.
 */
static void burst_slow(void)
{
	CHECK(burst(MILLION, BUDGET) <= 1, "others are late");
}

static void burst_small(void)
{
	CHECK(burst(MILLION / 50, BUDGET / 50) <= 1, "others are late");
}

/* More oversized ticks in a row than there are backlogs: all timers fire in the end. */
static void bursts(void)
{
	const u32 ticks = 3 * TW_BACKLOGS, size = 500, rate = 100;
	bool full = false;
	struct rig r;
	u64 now;
	u32 i;

	rig_init(&r, 256, MSEC, 0, ticks * size, 0);
	for (i = 0; i < ticks * size; i++)
		rig_add(&r, i + 1, (1000 + i / size) * MSEC, 0);
	for (now = 0; r.w.pending; now++) {
		run_tick(&r, now, rate);
		full |= r.w.backlogs == TW_BACKLOGS;
	}
	CHECK(full, "the backlogs were never used up");
	for (i = 1; i <= ticks * size; i++)
		fired(&r, i);
	CHECK(now <= 1000 + 2 * ticks * size / rate + 2, "took %llu ticks", now - 1000);
	CHECK(r.due.count == ticks * size, "%u fired", r.due.count);
	CHECK(!run_tick(&r, now, BUDGET) && r.w.work == TW_NEVER, "work is left");
	rig_free(&r);
}

/*
 * A million timers in one slot of level 1, in the first @spread of its ticks, and one other timer
 * in each tick before and after: the cascade begins early enough and delays no other timer.
 */
static void cascade(u32 spread, unsigned int rate)
{
	const u64 slot = 400 * 256, before = 300;
	const u32 others = 1000;
	u64 now, done = 0;
	struct rig r;
	u32 i;

	rig_init(&r, 256, MSEC, 0, MILLION + others, 0);
	for (i = 0; i < MILLION; i++)
		rig_add(&r, i + 1, (slot + i % spread) * MSEC, 0);
	for (i = 0; i < others; i++)
		rig_add(&r, MILLION + 1 + i, (slot - before + i) * MSEC, 0);
	for (now = 0; r.w.pending; now++) {
		run_tick(&r, now, rate);
		if (!done && r.w.cascades >= MILLION)
			done = now;
	}
	printf("# a million at %u a tick left their slot %lld ticks before it began\n", rate,
	       (long long)(slot - done));
	CHECK(done < slot, "the cascade ended %llu ticks late", done - slot);
	CHECK(!latest(&r, MILLION + 1, MILLION + others, spread == 1 ? slot : 0),
	      "others are late");
	CHECK(spread == 1 || !latest(&r, 1, MILLION, 0), "late");
	CHECK(r.w.expired == MILLION + others, "%llu expired", r.w.expired);
	rig_free(&r);
}

static void cascade_spread(void)
{
	cascade(256, 5 * BUDGET);
}

static void cascade_first_tick(void)
{
	cascade(1, 5 * BUDGET);
}

/* A cascade gets its share of the budget while there is a backlog, and ends in time. */
static void cascade_and_backlog(void)
{
	const u64 slot = 400 * 256, burst = slot - 300;
	const u32 size = 200000;
	struct rig r;
	u64 now;
	u32 i;

	rig_init(&r, 256, MSEC, burst - 700, MILLION + size, 0);
	for (i = 0; i < size; i++)
		rig_add(&r, i + 1, (slot + i % 256) * MSEC, 0);
	for (i = 0; i < MILLION; i++)
		rig_add(&r, size + i + 1, burst * MSEC, 0);
	for (now = burst - 700; r.w.pending; now++) {
		run_tick(&r, now, 2 * BUDGET);
		if (now == slot - 1)
			CHECK(r.w.backlogs, "no backlog");
	}
	CHECK(!latest(&r, 1, size, 0), "late");
	rig_free(&r);
}

/* A wheel with a million timers of which nearly all are in a backlog */
static void make_backlog(struct rig *r)
{
	u32 i;

	rig_init(r, 256, MSEC, 0, MILLION, 0);
	for (i = 1; i <= MILLION; i++)
		rig_add(r, i, 100 * MSEC, 0);
	CHECK(run_tick(r, 100, BUDGET), "a million timers in one tick");
	CHECK(r->w.backlogs == 1 && r->w.work > 100, "no backlog");
}

/* All timers of a backlog are removed: no work is left. */
static void backlog_remove(void)
{
	struct rig r;
	u64 visits;
	u32 i;

	make_backlog(&r);
	visits = rig_visits(&r);
	for (i = 1; i <= MILLION; i++) {
		if (rig_timer(&r, i)->state == TW_PENDING)
			rig_remove(&r, i);
		else
			rig_take_due(&r, i);
	}
	CHECK(!r.due.count && !r.due.first && !r.due.last, "%u are due", r.due.count);
	CHECK(!run_tick(&r, 100, BUDGET), "there is more work");
	CHECK(rig_visits(&r) == visits, "removed timers are visited");
	CHECK(r.w.work == TW_NEVER && !r.w.backlogs, "work is announced");
	rig_restart(&r, 100);
	rig_free(&r);
}

/* tw_wheel_first(), which may examine @most timers */
static u64 first_of(struct rig *r, unsigned int most)
{
	return tw_wheel_first(&r->w, &most);
}

/* tw_wheel_first(): the tick of the first timer, not of its cascade */
static void first(void)
{
	static const u64 after[] = { 5, 700, 200000, 20 * 1000 * 1000 };
	const u32 many = 10000;
	unsigned int left;
	struct rig r;
	u64 now = 12345;
	u32 i;

	rig_init(&r, 256, MSEC, now, many + 10, 0);
	CHECK(first_of(&r, 100) == TW_NEVER, "an empty wheel has a first timer");
	/* from the last to the first, on different levels, and two in the same slot */
	rig_add(&r, 1, (now + 20000001) * MSEC, 0);
	for (i = 4; i--; ) {
		rig_add(&r, 2 + i, (now + after[i]) * MSEC, 0);
		CHECK(first_of(&r, 100) == now + after[i], "first in tick %llu, not %llu",
		      first_of(&r, 100), now + after[i]);
	}
	rig_free(&r);
	/* more timers in a slot than are examined: may be too early, never late */
	rig_init(&r, 256, MSEC, now, many, 0);
	for (i = 1; i <= many; i++)
		rig_add(&r, i, (now + 100000 + i) * MSEC, 0);
	CHECK(first_of(&r, 4096) <= now + 100001 && first_of(&r, 4096) > now,
	      "first in tick %llu", first_of(&r, 4096));
	rig_free(&r);
	/* the limit is for all levels together: 60 timers in a slot of each of two */
	rig_init(&r, 256, MSEC, now, 120, 0);
	for (i = 1; i <= 60; i++) {
		rig_add(&r, i, (now + 5) * MSEC, 0);
		rig_add(&r, 60 + i, (now + 100000) * MSEC, 0);
	}
	left = 100;
	CHECK(tw_wheel_first(&r.w, &left) == now + 5 && !left, "%u timers left", left);
	left = 200;
	CHECK(tw_wheel_first(&r.w, &left) == now + 5 && left == 80, "%u timers left", left);
	left = 0;
	CHECK(tw_wheel_first(&r.w, &left) <= now + 5 && !left, "%u timers left", left);
	rig_free(&r);
}

/* A million timers due in an hour: until then the wheel only wakes for cascades. */
static void quiet(void)
{
	const u64 tick = 3600000;
	unsigned int wakes;
	struct rig r;
	u32 i;

	rig_init(&r, 256, MSEC, 0, MILLION, 0);
	for (i = 1; i <= MILLION; i++)
		rig_add(&r, i, tick * MSEC, 0);
	wakes = run_until(&r, tick - 1);
	printf("# a million due in 1 h: %u wake-ups before that\n", wakes);
	CHECK(wakes <= 2, "%u wake-ups", wakes);
	run_until(&r, tick);
	CHECK(r.due.count == MILLION, "%u fired", r.due.count);
	rig_free(&r);
}

/* A jump of 2^48 ticks: the cost depends on the timers that fall due, not on the ticks. */
static void jump(void)
{
	const u64 far = 1ULL << 52, to = 1ULL << 48;
	const u32 few = 100;
	struct rig r;
	u32 i;

	rig_init(&r, 256, 1, 0, MILLION, 0);
	for (i = 1; i <= few; i++)
		rig_add(&r, i, i * (to / few), 0);
	for (; i <= MILLION; i++)
		rig_add(&r, i, far + i, 0);
	CHECK(!tw_wheel_collect(&r.w, to, to, MILLION, true, false, &r.due), "not finished");
	printf("# a jump of 2^48 ticks: %llu visits for %u timers\n", rig_visits(&r), few);
	CHECK(r.due.count == few, "%u fired", r.due.count);
	CHECK(rig_visits(&r) <= few * r.w.levels, "%llu visits", rig_visits(&r));
	for (i = 1; i <= few; i++)
		CHECK(!late(&r, i), "timer %u: %llu ticks late", i, late(&r, i));
	rig_free(&r);
}

/* --- Strands -------------------------------------------------------------------- */

/* Timers in the slot, some of which joined it when it had one strand */
#define STRAND_TIMERS	200U

/*
 * Arm timers for the same tick, in a wheel that becomes large after the first @early of them.
 * Returns the tick.
 */
static u64 stranded(struct rig *r, u32 early)
{
	const u64 tick = 100;
	u32 i;

	rig_init(r, 256, MSEC, 0, STRAND_TIMERS, 0);
	for (i = 1; i <= STRAND_TIMERS; i++) {
		if (i == early + 1)
			rig_spread(r);
		rig_add(r, i, tick * MSEC, 0);
	}
	return tick;
}

/* The strands of a slot take turns, in each batch, and each timer fires once. */
static void strands(void)
{
	const u32 rounds = STRAND_TIMERS / TW_STRANDS;
	unsigned int i, k, seen;
	struct rig r;
	u64 tick;
	u32 index;

	tick = stranded(&r, 0);
	while (tw_wheel_collect(&r.w, tick, tick * MSEC, 5 * TW_STRANDS, false, false, &r.due))
		;
	CHECK(r.due.count == STRAND_TIMERS, "%u fired", r.due.count);
	for (index = r.due.first, i = 0; i < rounds; i++) {
		for (seen = 0, k = 0; k < TW_STRANDS; k++, index = rig_timer(&r, index)->next)
			seen |= BIT(index % TW_STRANDS);
		CHECK(seen == BIT(TW_STRANDS) - 1, "round %u: strands %#x", i, seen);
	}
	CHECK(!index, "timer %u is due, too", index);
	rig_free(&r);
}

/* Timers of the only strand stay in it when the wheel becomes large. */
static void strands_mixed(void)
{
	struct rig r;
	u32 early, i;
	u64 tick;

	for (early = 0; early <= STRAND_TIMERS; early += 25) {
		tick = stranded(&r, early);
		for (i = 1; i <= STRAND_TIMERS; i += 3)
			rig_remove(&r, i);
		CHECK(!tw_wheel_collect(&r.w, tick, tick * MSEC, BUDGET, false, false, &r.due),
		      "not finished");
		for (i = 1; i <= STRAND_TIMERS; i++)
			CHECK(rig_timer(&r, i)->state == (i % 3 == 1 ? TW_FREE : TW_DUE),
			      "%u early: timer %u is in state %u", early, i,
			      rig_timer(&r, i)->state);
		CHECK(!r.w.pending, "%u timers pending", r.w.pending);
		rig_free(&r);
	}
}

/* A slot is occupied until the last timer of its last strand is removed. */
static void strands_removed(void)
{
	struct rig r;
	u64 tick = stranded(&r, 0);
	u32 i;

	for (i = STRAND_TIMERS; i; i--) {
		CHECK(test_bit(tick, r.w.occupied), "%u timers, and the slot is empty", i);
		rig_remove(&r, i);
	}
	CHECK(!test_bit(tick, r.w.occupied), "the slot is not empty");
	rig_free(&r);
}

/* The first timer is found, whatever its strand, and the search examines a limited number. */
static void strands_first(void)
{
	unsigned int left;
	struct rig r;
	u64 first;
	u32 i;

	for (i = 1; i <= TW_STRANDS; i++) {
		stranded(&r, 0);
		/* a slot of level 1, with one timer that is earlier than the others */
		for (left = 1; left <= STRAND_TIMERS; left++) {
			rig_remove(&r, left);
			rig_add(&r, left, (left == i ? 1030 : 1200) * MSEC, 0);
		}
		left = 1000;
		first = tw_wheel_first(&r.w, &left);
		CHECK(first == 1030, "timer %u: the first tick is %llu", i, first);
		CHECK(left == 1000 - STRAND_TIMERS, "%u timers were examined", 1000 - left);
		left = STRAND_TIMERS - 1;
		first = tw_wheel_first(&r.w, &left);
		CHECK(first == 1024 && !left, "not all examined: the first tick is %llu", first);
		rig_free(&r);
	}
}

/* The rest of an oversized tick becomes a backlog, whatever its strand. */
static void strands_backlog(void)
{
	const u64 tick = 100;
	unsigned int k;
	struct rig r;
	u32 i;

	for (k = 0; k < TW_STRANDS; k++) {
		rig_init(&r, 256, MSEC, 0, 100 * TW_STRANDS, 0);
		rig_spread(&r);
		for (i = 1; i < 100; i++)
			rig_add(&r, i * TW_STRANDS + k, tick * MSEC, 0);
		CHECK(tw_wheel_collect(&r.w, tick, tick * MSEC, BATCH, false, true, &r.due),
		      "strand %u: nothing is left", k);
		CHECK(r.w.backlogs == 1 && !test_bit(tick, r.w.occupied), "strand %u: %u backlogs",
		      k, r.w.backlogs);
		while (tw_wheel_collect(&r.w, tick, tick * MSEC, BATCH, false, true, &r.due))
			;
		CHECK(r.due.count == 99, "strand %u: %u fired", k, r.due.count);
		rig_free(&r);
	}
}

/* A wheel is large when it has many timers per list, unless it has very many lists. */
static void strands_large(void)
{
	struct rig r;

	rig_init(&r, 256, MSEC, 0, 1, 0);
	r.w.pending = r.w.lists * TW_STRAND_TIMERS - 1;
	CHECK(!tw_wheel_large(&r.w), "large with %u timers", r.w.pending);
	r.w.pending++;
	CHECK(tw_wheel_large(&r.w), "not large with %u timers", r.w.pending);
	rig_spread(&r);
	CHECK(!tw_wheel_large(&r.w), "it gets strands again");
	rig_free(&r);
	rig_init(&r, TW_SLOTS_MAX, 1, 0, 1, 0);
	r.w.pending = U32_MAX;
	CHECK(!tw_wheel_large(&r.w), "large with %u lists", r.w.lists);
	rig_free(&r);
}

/* --- Resident timers ------------------------------------------------------------ */

/* TW_RESIDENT_TRIES */
#define TRIES	4

/* A tick is a unit of the deadline table. */
#define RESIDENT_BITS	20
#define RESIDENT_TICK	BIT_ULL(RESIDENT_BITS)

/* What is written to an entry before a swap, how often, and how many swaps there were */
static struct {
	u64 *entry;
	u64 (*write)(u64 old);
	unsigned int left;
	unsigned int swaps;
} hammer;

static void hammer_strike(u64 *entry)
{
	if (entry != hammer.entry)
		return;
	hammer.swaps++;
	if (!hammer.left)
		return;
	hammer.left--;
	*entry = hammer.write(*entry);
}

static void hammer_begin(const struct rig *r, u32 index, u64 (*write)(u64 old), unsigned int times)
{
	hammer.entry = rig_entry(r, index);
	hammer.write = write;
	hammer.left = times;
	hammer.swaps = 0;
	rig_hammer = hammer_strike;
}

/* Cancel, arm for the same deadline: both are allowed. */
static u64 flip(u64 old)
{
	return old ^ TIMERWHEEL_TABLE_ARMED;
}

static u64 garbage(u64 old)
{
	return old ^ 0x123456789abcdef0ULL;
}

static u64 kernels_state(u64 old)
{
	return old | TIMERWHEEL_TABLE_PARKED;
}

static u64 later(u64 old)
{
	return old + 10 * RESIDENT_TICK;
}

/* A tick, with the MANUAL clock or a running one. Nothing is left to do. */
static void resident_tick(struct rig *r, u64 now, bool manual)
{
	CHECK(!tw_wheel_collect(&r->w, now, now * r->w.tick, BUDGET, manual, true, &r->due),
	      "tick %llu is not finished", now);
}

/*
 * One entry is hammered while others fall due: in the same tick, each tick, and later. A visit
 * swaps TRIES times and puts the timer off to the next tick. When it is left alone, it fires, or is
 * parked, at once. The others are not late.
 */
static void hammered_by(bool manual, bool armed)
{
	const u64 due = 100, ticks = 50;
	const u32 others = 120;
	struct rig r;
	u64 now;
	u32 i;

	rig_init(&r, 256, RESIDENT_TICK, 0, others + 1, RESIDENT_BITS);
	rig_resident(&r, RESIDENT_BITS);
	rig_add_resident(&r, 1, due * RESIDENT_TICK);
	for (i = 0; i < others; i++)
		rig_add_resident(&r, i + 2, (due + (i < 40 ? 0 : i - 40)) * RESIDENT_TICK);
	for (now = due - 10; now < due; now++) {
		hammer_begin(&r, 1, flip, -1);
		resident_tick(&r, now, manual);
		CHECK(!hammer.swaps, "%u swaps before the deadline", hammer.swaps);
	}
	for (; now < due + ticks; now++) {
		hammer_begin(&r, 1, flip, -1);
		resident_tick(&r, now, manual);
		CHECK(hammer.swaps == TRIES, "tick %llu: %u swaps", now, hammer.swaps);
		CHECK(rig_timer(&r, 1)->state == TW_PENDING, "tick %llu: state %u", now,
		      rig_timer(&r, 1)->state);
		CHECK(r.w.work == now + 1, "the next tick is %llu, not %llu", r.w.work, now + 1);
		CHECK(*rig_entry(&r, 1) >> RESIDENT_BITS == due, "its deadline has changed");
		CHECK(r.w.requeues == now + 1 - due, "tick %llu: %llu visits", now, r.w.requeues);
	}
	hammer_begin(&r, 1, flip, 0);
	if (armed != (*rig_entry(&r, 1) & TIMERWHEEL_TABLE_ARMED))
		*rig_entry(&r, 1) = flip(*rig_entry(&r, 1));
	resident_tick(&r, now, manual);
	CHECK(hammer.swaps == 1, "%u swaps", hammer.swaps);
	if (armed) {
		CHECK(late(&r, 1) == ticks, "%llu ticks late", late(&r, 1));
		CHECK(rig_timer(&r, 1)->deadline == due * RESIDENT_TICK, "its deadline is lost");
	} else {
		CHECK(rig_timer(&r, 1)->state == TW_PARKED && r.w.parked == 1, "not parked");
	}
	CHECK((*rig_entry(&r, 1) & 3) ==
	      (armed ? TIMERWHEEL_TABLE_FIRED : TIMERWHEEL_TABLE_PARKED), "entry %llx",
	      *rig_entry(&r, 1));
	while (r.w.pending)
		resident_tick(&r, ++now, manual);
	CHECK(r.due.count == others + armed, "%u fired", r.due.count);
	for (i = 2; i < others + 2; i++)
		CHECK(!late(&r, i), "timer %u is late", i);
	rig_hammer = NULL;
	rig_free(&r);
}

static void hammered(void)
{
	hammered_by(false, false);
	hammered_by(false, true);
	hammered_by(true, false);
	hammered_by(true, true);
}

/* A timer of tick 100, whose entry a program changes @times times during its visit */
static void struck(struct rig *r, u64 (*write)(u64 old), unsigned int times)
{
	rig_init(r, 256, RESIDENT_TICK, 0, 1, RESIDENT_BITS);
	rig_resident(r, RESIDENT_BITS);
	rig_add_resident(r, 1, 100 * RESIDENT_TICK);
	hammer_begin(r, 1, write, times);
	resident_tick(r, 100, false);
}

/* A visit that loses a race reads the entry again, and acts on the new value. */
static void struck_once(void)
{
	static u64 (* const nonsense[])(u64 old) = { garbage, kernels_state };
	struct rig r;
	unsigned int i;

	/* the last try succeeds: after an odd number of flips the timer is cancelled */
	for (i = 0; i < TRIES; i++) {
		struck(&r, flip, i);
		CHECK(hammer.swaps == i + 1, "%u swaps", hammer.swaps);
		CHECK(rig_timer(&r, 1)->state == (i % 2 ? TW_PARKED : TW_DUE), "flipped %u times",
		      i);
		CHECK(i % 2 || !late(&r, 1), "late");
		rig_free(&r);
	}
	struck(&r, flip, TRIES);
	CHECK(hammer.swaps == TRIES, "%u swaps", hammer.swaps);
	resident_tick(&r, 101, false);
	CHECK(late(&r, 1) == 1, "%llu ticks late", late(&r, 1));
	rig_free(&r);
	/* nonsense counts as nothing: the timer fires, on time */
	for (i = 0; i < ARRAY_SIZE(nonsense); i++) {
		struck(&r, nonsense[i], -1);
		CHECK(hammer.swaps == 1, "%u swaps", hammer.swaps);
		CHECK(!late(&r, 1), "late");
		CHECK(*rig_entry(&r, 1) == (100 * RESIDENT_TICK | rig_timer(&r, 1)->generation |
					    TIMERWHEEL_TABLE_FIRED), "entry %llx",
		      *rig_entry(&r, 1));
		rig_free(&r);
	}
	/* refreshed in time */
	struck(&r, later, 1);
	CHECK(hammer.swaps == 1, "%u swaps", hammer.swaps);
	CHECK(r.w.work == 110, "due in tick %llu", r.w.work);
	resident_tick(&r, 110, false);
	CHECK(fired(&r, 1) == 110 && !late(&r, 1), "fired in tick %llu", fired(&r, 1));
	rig_free(&r);
	rig_hammer = NULL;
}

/*
 * An entry cannot make a timer earlier. Timer 1 is visited in tick 100 and fires in tick 200: its
 * entry says @first before the first visit and @then before the second.
 */
static void lowered_to(u64 first, u64 then, bool armed)
{
	u64 state = armed ? TIMERWHEEL_TABLE_ARMED : TIMERWHEEL_TABLE_CANCELLED;
	struct rig r;
	u64 now;

	rig_init(&r, 256, RESIDENT_TICK, 0, 1, RESIDENT_BITS);
	rig_resident(&r, RESIDENT_BITS);
	rig_add_resident(&r, 1, 100 * RESIDENT_TICK);
	/* as a MOVE that leaves it in its slot, or as a refresh */
	if (first < 200)
		rig_timer(&r, 1)->deadline = 200 * RESIDENT_TICK;
	state |= rig_timer(&r, 1)->generation;
	*rig_entry(&r, 1) = first * RESIDENT_TICK | state;
	for (now = 1; now <= 100; now++)
		resident_tick(&r, now, false);
	CHECK(rig_timer(&r, 1)->state == TW_PENDING, "state %u", rig_timer(&r, 1)->state);
	*rig_entry(&r, 1) = then * RESIDENT_TICK | state;
	for (; now < 200; now++)
		resident_tick(&r, now, false);
	CHECK(rig_timer(&r, 1)->state == TW_PENDING, "too early: state %u",
	      rig_timer(&r, 1)->state);
	resident_tick(&r, 200, false);
	CHECK(rig_timer(&r, 1)->state == (armed ? TW_DUE : TW_PARKED), "state %u",
	      rig_timer(&r, 1)->state);
	CHECK(rig_timer(&r, 1)->deadline == 200 * RESIDENT_TICK, "deadline %llx",
	      rig_timer(&r, 1)->deadline);
	rig_free(&r);
}

static void lowered(void)
{
	static const u64 tick[] = { 0, 99, 150, 200 };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(tick); i++)
		for (j = 0; j < ARRAY_SIZE(tick); j++) {
			lowered_to(tick[i], tick[j], true);
			lowered_to(tick[i], tick[j], false);
		}
}

/* How many timers does a batch of 128 handle? Each is alone in its tick. @far: with others */
static u64 spread_batch(unsigned int slots, u64 tick, bool far)
{
	const u64 start = 1000000, distance = 2 * slots - 3;
	unsigned int level, i;
	u64 scale = 1, n;
	struct rig r;

	rig_init(&r, slots, tick, start, 200, 0);
	rig_catch_up(&r, start);
	for (i = 1; i <= 128; i++)
		rig_add(&r, i, (start + i) * tick, 0);
	for (level = 1; far && level < r.w.levels; level++) {
		scale *= slots;
		if (scale > (TIMERWHEEL_TIME_MAX / tick - start) / distance)
			break;
		rig_add(&r, 128 + level, (start + scale * distance) * tick, 0);
	}
	tw_wheel_collect(&r.w, start + 128, (start + 128) * tick, 128, false, false, &r.due);
	n = r.w.expired;
	rig_free(&r);
	return n;
}

/* The search for the next tick is part of a batch: it takes longer with many levels or slots. */
static void spread(void)
{
	u64 near = spread_batch(256, MSEC, false), far = spread_batch(256, MSEC, true);
	u64 wide = spread_batch(4096, 1, true);

	printf("# a timer in each tick: %llu of 128 in a batch, %llu with others far away,", near,
	       far);
	printf(" %llu with 4096 slots\n", wide);
	CHECK(near >= 40, "only %llu timers in a batch", near);
	CHECK(far <= 25, "%llu timers in a batch", far);
	CHECK(wide <= 6, "%llu timers in a batch", wide);
}

const struct test_case case_table[] = {
	{ "levels", levels, false },
	{ "lone timer", lone_timer, true },
	{ "life", life, false },
	{ "postponed", postponed, true },
	{ "slack", slack, false },
	{ "never", never, false },
	{ "spread", spread, false },
	{ "burst", burst_fast, true },
	{ "burst, slow", burst_slow, true },
	{ "burst, small", burst_small, false },
	{ "bursts", bursts, false },
	{ "cascade, spread", cascade_spread, true },
	{ "cascade, first tick", cascade_first_tick, true },
	{ "cascade and backlog", cascade_and_backlog, true },
	{ "backlog removed", backlog_remove, true },
	{ "first", first, false },
	{ "quiet", quiet, true },
	{ "jump", jump, true },
	{ "hammered", hammered, false },
	{ "struck once", struck_once, false },
	{ "lowered", lowered, false },
	{ "strands", strands, false },
	{ "strands, mixed", strands_mixed, false },
	{ "strands, removed", strands_removed, false },
	{ "strands, first", strands_first, false },
	{ "strands, backlog", strands_backlog, false },
	{ "strands, large", strands_large, false },
};

const unsigned int case_count = ARRAY_SIZE(case_table);
