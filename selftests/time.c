// SPDX-License-Identifier: GPL-2.0
/*
 * time: when timers fire. Timers fire never early and at most one tick late, on every clock; at the
 * boundaries of levels, in the distant future, periodically, with slack, when clocks are set, and
 * in time namespaces. The program also tests the cost of a wheel while no timer is due.
 *
 * A MANUAL wheel is exact everywhere. Lateness on a running clock is asserted only under
 * instruction-counted time (TW_ICOUNT=1), because elsewhere the machine itself may be late. Idle
 * time is free under instruction-counted time, so some tests wait much longer then.
 */
#include "tw_test.h"
#include <pthread.h>
#include <sys/mman.h>

#define TICK	MSEC
#define LAG	(50 * USEC)	/* from an interrupt to the timer, instruction-counted */
#define PASS_NS	(100 * USEC)	/* the longest batch, instruction-counted */

/* --- Helpers ------------------------------------------------------------ */

static __u64 round_up(__u64 ns, __u64 tick)
{
	return (ns + tick - 1) / tick * tick;
}

/* Not early; under instruction-counted time at most a tick and @slack late */
static bool on_time(const struct timerwheel_event *ev, __u64 tick, __u64 slack)
{
	if (ev->fired >= ev->deadline &&
	    (!tw_timed() || ev->fired <= ev->deadline + tick + slack + LAG))
		return true;
	fprintf(stderr, "# %llu: deadline %llu, fired %lld ns later\n", ev->key, ev->deadline,
		ev->fired - ev->deadline);
	return false;
}

/* Wait for one event. Returns 1 if it came. */
static int wait_one(int fd, struct timerwheel_event *ev, int ms)
{
	return tw_read_all(fd, ev, 1, ms);
}

static __u64 stat_firings(int fd)
{
	struct timerwheel_stats stats;

	return tw_stats(fd, &stats) ? ~0ULL : stats.firings;
}

/* The number of due timers, without a call */
static long long look_due(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return tw_file_number(path, "timerwheel-due:");
}

static int get_result(int fd, __u64 key)
{
	struct timerwheel_entry ent;

	return tw_get1(fd, key, &ent);
}

/* Arm @n timers, keys from @key, with deadlines from @from to below @from + @span */
static void arm_many(int fd, __u64 key, __u32 n, __u64 from, __u64 span, __u32 flags)
{
	static struct timerwheel_add add[4096];
	__u64 r = 0x7117e2;

	while (n) {
		__u32 some = n < ARRAY_SIZE(add) ? n : ARRAY_SIZE(add), i;

		for (i = 0; i < some; i++) {
			add[i] = (struct timerwheel_add){
				.key = key++, .deadline = from + tw_rand(&r) % span,
				.flags = flags,
			};
		}
		if (dev_add(fd, add, some) != (int)some)
			abort();
		for (i = 0; i < some; i++) {
			if (add[i].result)
				abort();
		}
		n -= some;
	}
}

/* --- Each running clock ------------------------------------------------- */

FIXTURE(running) {
	int fd;
};

FIXTURE_VARIANT(running) {
	__u32 clock;
	clockid_t id;
};

FIXTURE_VARIANT_ADD(running, monotonic) { TIMERWHEEL_CLOCK_MONOTONIC, CLOCK_MONOTONIC };
FIXTURE_VARIANT_ADD(running, boottime) { TIMERWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME };
FIXTURE_VARIANT_ADD(running, realtime) { TIMERWHEEL_CLOCK_REALTIME, CLOCK_REALTIME };

FIXTURE_SETUP(running)
{
	self->fd = tw_open_clock(variant->clock, TICK, 0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(running)
{
	close(self->fd);
}

/* The wheel uses the chosen clock */
TEST_F(running, now)
{
	__u64 before = tw_now(variant->id), after;
	struct timerwheel_info info;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	after = tw_now(variant->id);
	EXPECT_LE(before, info.now);
	EXPECT_GE(after, info.now);
}

/* Relative deadlines count from the call; timers fire in order, none early or late */
TEST_F(running, relative)
{
	enum { MANY = 300 };
	__u64 seed = tw_seed(), r = seed, delay[MANY], before, after, last = 0;
	struct timerwheel_event ev;
	int i;

	ASSERT_EQ(0, tw_pin(0));
	before = tw_now(variant->id);
	for (i = 0; i < MANY; i++) {
		delay[i] = tw_rand(&r) % (300 * MSEC);
		ASSERT_EQ(0, tw_add1(self->fd, i, 0, delay[i], 0));
	}
	after = tw_now(variant->id);
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS));
		EXPECT_LE(ev.deadline, tw_now(variant->id));
		EXPECT_LE(before + delay[ev.key], ev.deadline);
		EXPECT_GE(after + delay[ev.key], ev.deadline);
		EXPECT_TRUE(on_time(&ev, TICK, 0))
			TH_LOG("seed %llu", seed);
		EXPECT_LE(last / TICK, ev.fired / TICK);
		last = ev.fired;
	}
	EXPECT_EQ(0, dev_poll(self->fd, 10));
}

/* Absolute deadlines are times of the clock, exact to the ns */
TEST_F(running, absolute)
{
	__u64 deadline = tw_now(variant->id) + 50 * MSEC + 123;
	struct timerwheel_event ev;

	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, deadline, TIMERWHEEL_ABS));
	ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS));
	EXPECT_LE(deadline, tw_now(variant->id));
	EXPECT_EQ(deadline, ev.deadline);
	EXPECT_TRUE(on_time(&ev, TICK, 0));
}

/* Delays around a tick: never early, and at most a tick late */
TEST_F(running, sub_tick)
{
	static const __u64 delays[] = {
		1, 2, 1000, TICK / 2, TICK - 1, TICK, TICK + 1, 2 * TICK - 1,
	};
	struct timerwheel_event ev;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		ASSERT_EQ(0, tw_add1(self->fd, i, 0, delays[i], 0));
		ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS));
		EXPECT_LE(ev.deadline, tw_now(variant->id));
		EXPECT_TRUE(on_time(&ev, TICK, 0));
	}
}

/* No delay, or a time in the past: due when ADD returns, without an interrupt */
TEST_F(running, past)
{
	static const struct {
		__u64 deadline;
		__u32 flags;
	} t[] = { { 0, 0 }, { 0, TIMERWHEEL_ABS }, { 1, TIMERWHEEL_ABS } };
	struct timerwheel_event ev;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		ASSERT_EQ(0, tw_add1(self->fd, i, 0, t[i].deadline, t[i].flags));
		EXPECT_EQ(POLLIN, dev_poll(self->fd, 0));
		ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
		EXPECT_LE(ev.deadline, ev.fired);
		EXPECT_GE(tw_now(variant->id), ev.fired);
	}
	ASSERT_EQ(0, tw_add1(self->fd, 9, 0, tw_now(variant->id) - 1, TIMERWHEEL_ABS));
	EXPECT_EQ(POLLIN, dev_poll(self->fd, 0));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	tw_sleep(20 * MSEC);
	EXPECT_EQ(0, stat_firings(self->fd));
}

/* MOVE to a time in the past also causes no interrupt */
TEST_F(running, move_past)
{
	struct timerwheel_event ev;
	__u64 firings;

	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, HOUR, 0));
	firings = stat_firings(self->fd);
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, 0, TIMERWHEEL_ABS));
	EXPECT_EQ(POLLIN, dev_poll(self->fd, 0));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	tw_sleep(20 * MSEC);
	EXPECT_EQ(firings, stat_firings(self->fd));
}

/* Timers with the largest times are pending, do not fire and can be removed */
TEST_F(running, huge)
{
	static const struct {
		__u64 deadline;
		__u32 flags;
	} t[] = {
		{ TIMERWHEEL_TIME_MAX, 0 }, { TIMERWHEEL_TIME_MAX, TIMERWHEEL_ABS },
		{ TIMERWHEEL_TIME_MAX - 1, TIMERWHEEL_ABS }, { 1ULL << 62, 0 },
		{ ~0ULL, TIMERWHEEL_ABS },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		ASSERT_EQ(0, tw_add1(self->fd, i, 0, t[i].deadline, t[i].flags));
	EXPECT_EQ(0, dev_poll(self->fd, 50));
	EXPECT_EQ(0, stat_firings(self->fd));
	for (i = 0; i < ARRAY_SIZE(t); i++)
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, i));
}

/* A negative delay: ADD and MOVE make the timer due at once, without an interrupt */
TEST_F(running, negative)
{
	__u64 now = tw_now(variant->id), then = now / 2;
	struct timerwheel_event ev;
	int i;

	for (i = 0; i < 2; i++) {
		if (i) {
			ASSERT_EQ(0, tw_add1(self->fd, 1, 0, HOUR, 0));
			ASSERT_EQ(TIMERWHEEL_WAS_PENDING,
				  tw_move1(self->fd, 1, then - tw_now(variant->id), 0));
		} else {
			ASSERT_EQ(0, tw_add1(self->fd, 1, 0, then - tw_now(variant->id), 0));
		}
		ASSERT_EQ(1, wait_one(self->fd, &ev, 0));
		EXPECT_LE(then, ev.deadline);
		EXPECT_GT(now, ev.deadline);
		EXPECT_LE(now, ev.fired);
	}
	EXPECT_EQ(0, stat_firings(self->fd));
}

/* MOVE earlier: the interrupt comes for the new deadline */
TEST_F(running, move_earlier)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, HOUR, 0));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, 20 * MSEC, 0));
	ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS));
	EXPECT_TRUE(on_time(&ev, TICK, 0));
}

/* MOVE later repeatedly, past the old deadlines: fires once, at the last deadline */
TEST_F(running, move_later)
{
	struct timerwheel_event ev;
	__u64 deadline = 0;
	int i;

	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, SEC, 0));
	for (i = 0; i < 30; i++) {
		int was;

		deadline = tw_now(variant->id) + SEC;
		was = tw_move1(self->fd, 1, deadline, TIMERWHEEL_ABS);
		/* If the machine is late the timer may be due already; its event is withdrawn. */
		if (tw_timed() || was != TIMERWHEEL_WAS_DUE)
			ASSERT_EQ(TIMERWHEEL_WAS_PENDING, was);
		tw_sleep(tw_icount() ? 900 * MSEC : 50 * MSEC);
	}
	ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS));
	EXPECT_EQ(deadline, ev.deadline);
	EXPECT_TRUE(on_time(&ev, TICK, 0));
	EXPECT_EQ(0, dev_poll(self->fd, 10));
}

/* A periodic timer's deadlines are exactly a period apart; missed ones are counted */
TEST_F(running, periodic)
{
	__u64 period = 7300123, first = tw_now(variant->id) + 10 * MSEC, next = first, now;
	struct timerwheel_stats stats;
	struct timerwheel_event ev;
	__u64 passed = 0;
	int i;

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, first, period, TIMERWHEEL_ABS));
	for (i = 0; i < 20; i++) {
		if (i % 5 == 4)
			tw_sleep(50 * MSEC);
		ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS));
		now = tw_now(variant->id);
		EXPECT_EQ(TIMERWHEEL_EVENT_PERIODIC, ev.flags);
		EXPECT_EQ(next, ev.deadline);
		EXPECT_TRUE(on_time(&ev, TICK, 0));
		EXPECT_GE((now - ev.deadline) / period, ev.overruns);
		if (i % 5 == 4)
			EXPECT_LE(4, ev.overruns);
		passed += 1 + ev.overruns;
		next = first + passed * period;
	}
	ASSERT_EQ(0, tw_stats(self->fd, &stats));
	EXPECT_EQ(20, stats.delivered);
	EXPECT_EQ(passed, stats.delivered + stats.overruns);
}

/* A period of 1 ns: one event per read, and no expiry without a read */
TEST_F(running, period_1_ns)
{
	struct timerwheel_event ev[8];
	__u64 firings, delivered = 0;
	int i, n;

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, 1, 1, 0));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(POLLIN, dev_poll(self->fd, LONG_MS));
		firings = stat_firings(self->fd);
		tw_sleep(20 * MSEC);
		EXPECT_EQ(firings, stat_firings(self->fd));
		EXPECT_GE(delivered + 1, firings);
		n = dev_read(self->fd, ev, 8);
		/* During a read that takes longer than a tick it may fall due again. */
		if (tw_timed() || n < 1)
			ASSERT_EQ(1, n);
		EXPECT_LE(20 * MSEC, ev->overruns);
		delivered += n;
	}
}

/* The histogram and the maximum of lateness agree with the events */
TEST_F(running, lateness)
{
	enum { MANY = 200 };
	__u64 want[TIMERWHEEL_LATENESS_BUCKETS] = { 0 }, late, late_max = 0;
	struct timerwheel_stats stats;
	struct timerwheel_event ev;
	int i, bucket;

	arm_many(self->fd, 0, MANY, 0, 30 * MSEC, 0);
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS));
		late = ev.fired - ev.deadline;
		late_max = late > late_max ? late : late_max;
		for (bucket = 0; late >> bucket; bucket++)
			;
		want[bucket < TIMERWHEEL_LATENESS_BUCKETS ? bucket :
		     TIMERWHEEL_LATENESS_BUCKETS - 1]++;
	}
	ASSERT_EQ(0, tw_stats(self->fd, &stats));
	EXPECT_EQ(late_max, stats.late_max);
	for (i = 0; i < TIMERWHEEL_LATENESS_BUCKETS; i++)
		EXPECT_EQ(want[i], stats.lateness[i])
			TH_LOG("bucket %d", i);
}

/* --- The boundaries of levels ------------------------------------------- */

FIXTURE(turns) {
	__u64 ticks[200];	/* delays */
	int n;
};

FIXTURE_VARIANT(turns) {
	__u32 slots;
	__u64 tick;		/* of a MANUAL wheel */
};

FIXTURE_VARIANT_ADD(turns, slots_8_ns) { 8, 1 };
FIXTURE_VARIANT_ADD(turns, slots_8_ms) { 8, 1000000 };
FIXTURE_VARIANT_ADD(turns, slots_64_odd) { 64, 12345 };
FIXTURE_VARIANT_ADD(turns, slots_256_ns) { 256, 1 };
FIXTURE_VARIANT_ADD(turns, slots_256_ms) { 256, 1000000 };
FIXTURE_VARIANT_ADD(turns, slots_4096_us) { 4096, 1000 };

/* Delays of k * slots^n ticks, one less and one more, in ascending order */
FIXTURE_SETUP(turns)
{
	__u64 ks[] = { 1, 2, 3, variant->slots / 2, variant->slots - 1 }, power, ticks, last = 0;
	size_t i;
	int d;

	for (power = 1; power < 1ULL << 40; power *= variant->slots) {
		for (i = 0; i < ARRAY_SIZE(ks); i++) {
			for (d = -1; d <= 1; d++) {
				ticks = ks[i] * power + d;
				if (ticks <= last || self->n == ARRAY_SIZE(self->ticks) ||
				    ticks * variant->tick >= 1ULL << 58)
					continue;
				self->ticks[self->n++] = ticks;
				last = ticks;
			}
		}
	}
	ASSERT_LT(12, self->n);
}

FIXTURE_TEARDOWN(turns)
{
}

/* A MANUAL wheel whose time is @base ticks */
static int open_at(__u32 slots, __u64 tick, __u64 base)
{
	int fd = tw_open_clock(TIMERWHEEL_CLOCK_MANUAL, tick, slots);

	/* A timer makes sure that a base exists and its cursor advances. */
	if (fd < 0 || tw_add1(fd, ~0ULL, 0, TIMERWHEEL_TIME_MAX, 0) ||
	    tw_advance(fd, 0, base * tick))
		abort();
	return fd;
}

/* At any time of the wheel each timer fires at its tick and never earlier: step by step */
TEST_F(turns, steps)
{
	__u64 s = variant->slots, bases[] = { 0, 1, s - 1, s, s * s - 1, s * s, 1234567890123ULL };
	size_t b;
	int i;

	for (b = 0; b < ARRAY_SIZE(bases); b++) {
		int fd = open_at(s, variant->tick, bases[b]);
		struct timerwheel_event ev;

		for (i = 0; i < self->n; i++)
			ASSERT_EQ(0, tw_add1(fd, i, 0, self->ticks[i] * variant->tick, 0));
		for (i = 0; i < self->n; i++) {
			__u64 at = (bases[b] + self->ticks[i]) * variant->tick;

			ASSERT_EQ(0, tw_advance(fd, TIMERWHEEL_ABS, at - 1));
			ASSERT_EQ(1, tw_advance(fd, TIMERWHEEL_ABS, at));
			ASSERT_EQ(1, dev_read(fd, &ev, 1));
			EXPECT_EQ(i, ev.key);
			EXPECT_EQ(at, ev.deadline);
			EXPECT_EQ(at, ev.fired);
		}
		close(fd);
	}
}

/* The same in one jump, with deadlines within ticks: each timer has the time of its tick */
TEST_F(turns, jump)
{
	__u64 s = variant->slots, bases[] = { 0, 1, s - 1, s, s * s - 1, s * s, 1234567890123ULL };
	size_t b;
	int i;

	for (b = 0; b < ARRAY_SIZE(bases); b++) {
		int fd = open_at(s, variant->tick, bases[b]);
		struct timerwheel_event ev[200];

		for (i = 0; i < self->n; i++)
			ASSERT_EQ(0, tw_add1(fd, i, 0, self->ticks[i] * variant->tick +
						       variant->tick / 3, 0));
		ASSERT_EQ(self->n, tw_advance(fd, 0, 1ULL << 60));
		ASSERT_EQ(self->n, dev_read(fd, ev, self->n));
		for (i = 0; i < self->n; i++) {
			EXPECT_EQ(round_up(ev[i].deadline, variant->tick), ev[i].fired);
			if (i)
				EXPECT_LE(ev[i - 1].fired, ev[i].fired);
		}
		close(fd);
	}
}

/* On a running clock, within the time of the test: never early, at most a tick late */
TEST_F_TIMEOUT(turns, running, 7200)
{
	__u64 tick = 50 * USEC, most = tw_icount() ? 3000 * SEC : SEC / 2;
	int fd = tw_open_clock(TIMERWHEEL_CLOCK_MONOTONIC, tick, variant->slots);
	struct timerwheel_event ev;
	int i, n;

	for (n = 0; n < self->n && self->ticks[n] * tick < most; n++)
		ASSERT_EQ(0, tw_add1(fd, n, 0, self->ticks[n] * tick, 0));
	for (i = 0; i < n; i++) {
		ASSERT_EQ(1, wait_one(fd, &ev, most / MSEC + LONG_MS));
		EXPECT_TRUE(on_time(&ev, tick, 0));
	}
	close(fd);
}

/* --- MANUAL: exact ------------------------------------------------------ */

FIXTURE(manual) {
	int fd;
};

FIXTURE_SETUP(manual)
{
	self->fd = tw_open_manual(TICK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(manual)
{
	close(self->fd);
}

/* Its time begins at 0 and stands still */
TEST_F(manual, stands)
{
	struct timerwheel_info info;

	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, 1, 0));
	tw_sleep(20 * MSEC);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get_result(self->fd, 1));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0, info.now);
}

/* Deadlines stay exactly a period apart, and all are counted, whatever the steps of time */
TEST_F(manual, periodic)
{
	static const __u64 jumps[] = {
		1, TICK - 1, TICK, 3 * TICK, 1, 1000 * TICK, TICK / 2, TICK / 2, 12345678901, 1,
		7 * TICK, 7 * TICK, 7 * TICK, 1ULL << 50,
	};
	__u64 first = 5 * TICK + 77, period = 7 * TICK / 2, now = 0, passed = 0, due;
	struct timerwheel_stats stats;
	struct timerwheel_event ev;
	size_t i;

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, first, period, 0));
	for (i = 0; i < ARRAY_SIZE(jumps); i++) {
		now += jumps[i];
		due = round_up(first + passed * period, TICK) <= now;
		ASSERT_EQ(due, tw_advance(self->fd, 0, jumps[i]));
		ASSERT_EQ(due ? 1 : -EAGAIN, dev_read(self->fd, &ev, 1));
		if (!due)
			continue;
		EXPECT_EQ(first + passed * period, ev.deadline);
		EXPECT_EQ(round_up(ev.deadline, TICK), ev.fired);
		EXPECT_EQ((now - ev.deadline) / period, ev.overruns);
		passed += 1 + ev.overruns;
	}
	ASSERT_EQ(0, tw_stats(self->fd, &stats));
	EXPECT_EQ((now - first) / period + 1, stats.delivered + stats.overruns);
}

/* A period whose next deadline would be beyond the largest time: it is the largest time */
TEST_F(manual, periodic_to_the_end)
{
	struct timerwheel_event ev;
	struct timerwheel_entry ent;

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, TICK, TIMERWHEEL_TIME_MAX, 0));
	ASSERT_EQ(1, tw_advance(self->fd, 0, TICK));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(self->fd, 1, &ent));
	EXPECT_EQ(TIMERWHEEL_TIME_MAX, ent.deadline);
}

/* At the largest time a period has no next deadline: the timer fires once, also in a new wheel */
TEST_F(manual, periodic_at_the_end)
{
	struct timerwheel_event ev;
	struct timerwheel_entry ent;
	int fd = tw_open_manual(1);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_advance(fd, TIMERWHEEL_ABS, TIMERWHEEL_TIME_MAX));
	ASSERT_EQ(0, tw_add1_periodic(fd, 1, 2, 0, 1, 0));
	ASSERT_EQ(1, dev_read(fd, &ev, 1));
	EXPECT_EQ(0, tw_advance(fd, 0, 0));
	EXPECT_EQ(-EAGAIN, dev_read(fd, &ev, 1));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(fd, 1, &ent));
	EXPECT_EQ(TIMERWHEEL_TIME_MAX, ent.deadline);
	close(fd);
}

/* A timer for the next tick does not cascade, however far time has advanced */
TEST_F(manual, no_cascade_after_a_leap)
{
	struct timerwheel_stats st;
	__u64 leap;

	for (leap = 1; leap < TIMERWHEEL_TIME_MAX / TICK / 16; leap *= 16) {
		ASSERT_EQ(0, tw_advance(self->fd, 0, leap * TICK));
		ASSERT_EQ(0, tw_add1(self->fd, leap, 2, TICK, 0));
		ASSERT_EQ(1, tw_advance(self->fd, 0, TICK));
	}
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(0, st.cascades);
}

/* With slack: not before its deadline, and not after deadline + slack + a tick */
TEST_F(manual, slack)
{
	static const __u64 slacks[] = { 0, 1, 2, 3, 7, 8, 31, 100, 1000, 65536 };
	__u64 seed = tw_seed(), r = seed;
	struct timerwheel_event ev;
	int i;

	for (i = 0; i < 2000; i++) {
		struct timerwheel_add add = {
			.key = i, .deadline = tw_rand(&r) % (2000 * TICK),
			.slack = slacks[i % ARRAY_SIZE(slacks)] * TICK, .flags = TIMERWHEEL_SLACK,
		};

		ASSERT_EQ(0, tw_add_elem(self->fd, &add));
		ASSERT_LE(0, tw_advance(self->fd, 0, tw_rand(&r) % (10 * TICK)));
	}
	ASSERT_LE(0, tw_advance(self->fd, 0, 1ULL << 50));
	for (i = 0; i < 2000; i++) {
		ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
		EXPECT_LE(ev.deadline, ev.fired);
		EXPECT_GT(ev.deadline + slacks[ev.key % ARRAY_SIZE(slacks)] * TICK + TICK, ev.fired)
			TH_LOG("seed %llu: key %llu", seed, ev.key);
	}
}

/* The histogram of lateness counts every timer in the right bucket */
TEST_F(manual, lateness)
{
	static const __u64 late[] = { 0, 1, 2, 3, 4, 1000, TICK / 2, TICK - 1 };
	static const int bucket[] = { 0, 1, 2, 2, 3, 10, 19, 20 };
	struct timerwheel_stats stats;
	__u64 sum = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(late); i++)
		ASSERT_EQ(0, tw_add1(self->fd, i, 0, 5 * TICK - late[i], 0));
	ASSERT_EQ(ARRAY_SIZE(late), tw_advance(self->fd, 0, HOUR));
	ASSERT_EQ(0, tw_stats(self->fd, &stats));
	for (i = 0; i < TIMERWHEEL_LATENESS_BUCKETS; i++)
		sum += stats.lateness[i];
	EXPECT_EQ(ARRAY_SIZE(late), sum);
	for (i = 0; i < ARRAY_SIZE(late); i++)
		EXPECT_EQ(bucket[i] == 2 ? 2 : 1, stats.lateness[bucket[i]]);
	EXPECT_EQ(TICK - 1, stats.late_max);
}

/* The last bucket also counts all later timers */
TEST_F(manual, lateness_last_bucket)
{
	struct timerwheel_stats stats;

	ASSERT_EQ(0, tw_advance(self->fd, 0, 1ULL << 60));
	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, 0, TIMERWHEEL_ABS));
	ASSERT_EQ(0, tw_stats(self->fd, &stats));
	EXPECT_EQ(1, stats.lateness[TIMERWHEEL_LATENESS_BUCKETS - 1]);
	EXPECT_EQ(1ULL << 60, stats.late_max);
}

/* A MANUAL wheel never causes an interrupt */
TEST_F(manual, no_interrupt)
{
	struct timerwheel_stats stats;

	arm_many(self->fd, 0, 1000, 0, SEC, 0);
	ASSERT_LE(0, tw_advance(self->fd, 0, SEC));
	ASSERT_EQ(0, tw_stats(self->fd, &stats));
	EXPECT_EQ(0, stats.firings);
	EXPECT_EQ(1000, stats.due);
}

/* STATS count batches and report the largest and the longest batch, for expiry and for cascades */
TEST_F(manual, is_counted)
{
	const __u64 n = (1000 + TW_BATCH_TIMERS - 1) / TW_BATCH_TIMERS;
	struct timerwheel_stats first, second, idle;
	int i, fd = tw_open_manual(TICK);

	arm_many(self->fd, 0, 1000, 10 * TICK, 1, 0);
	EXPECT_EQ(1000, tw_advance(self->fd, 0, 10 * TICK));
	ASSERT_EQ(0, tw_stats(self->fd, &first));
	EXPECT_EQ(n, first.passes);
	EXPECT_EQ(TW_BATCH_TIMERS, first.pass_max_timers);
	EXPECT_LT(0, first.pass_max_ns);
	arm_many(self->fd, 1000, 1000, 10 * TICK, 1, 0);
	EXPECT_EQ(1000, tw_advance(self->fd, 0, 10 * TICK));
	ASSERT_EQ(0, tw_stats(self->fd, &second));
	EXPECT_EQ(2 * n, second.passes);
	EXPECT_EQ(TW_BATCH_TIMERS, second.pass_max_timers);
	for (i = 1; i <= 100; i++) {
		EXPECT_EQ(0, tw_advance(self->fd, 0, TICK));
		ASSERT_EQ(0, tw_stats(self->fd, &idle));
		EXPECT_EQ(2 * n + i, idle.passes);
		EXPECT_LE(second.pass_max_ns, idle.pass_max_ns);
		second.pass_max_ns = idle.pass_max_ns;
	}

	arm_many(fd, 0, 1000, 1000 * TICK, 1, 0);
	EXPECT_EQ(0, tw_advance(fd, 0, 999 * TICK));
	ASSERT_EQ(0, tw_stats(fd, &first));
	EXPECT_EQ(1000, first.cascades);
	EXPECT_EQ(TW_BATCH_TIMERS, first.pass_max_timers);
	close(fd);
}

/*
 * The cost of a jump of 2^48 ticks with many pending timers depends on the timers that fall due,
 * not on the ticks: in batches and, under instruction-counted time, in time. All timers are exact.
 */
TEST_F_TIMEOUT(manual, jumps, 600)
{
	enum { NEAR = 1000 };
	/* A million timers would take a minute in an instruction-counted guest. */
	const int many = tw_icount() ? tw_scale() / 10 : tw_scale();
	__u64 jump = 1ULL << 48, took, alone, expired = 0, overdue = 0;
	int fd = tw_open_manual(1), few = tw_open_manual(1), i, j, n;
	struct timerwheel_stats before, after;
	static struct timerwheel_event ev[4096];

	arm_many(few, many, NEAR, 1, jump, 0);
	alone = tw_now(CLOCK_MONOTONIC);
	EXPECT_EQ(NEAR, tw_advance(few, 0, jump));
	alone = tw_now(CLOCK_MONOTONIC) - alone;
	close(few);

	arm_many(fd, many, NEAR, 1, jump, 0);
	arm_many(fd, 0, many, 1ULL << 50, 1ULL << 61, 0);
	ASSERT_EQ(0, tw_stats(fd, &before));

	took = tw_now(CLOCK_MONOTONIC);
	EXPECT_EQ(NEAR, tw_advance(fd, 0, jump));
	took = tw_now(CLOCK_MONOTONIC) - took;
	ASSERT_EQ(0, tw_stats(fd, &after));
	EXPECT_GE(NEAR * 8, after.cascades - before.cascades);
	EXPECT_EQ(before.requeues, after.requeues);
	if (tw_timed())
		EXPECT_GE(alone + alone / 2, took);

	took = tw_now(CLOCK_MONOTONIC);
	EXPECT_EQ(0, tw_advance(fd, 0, jump));
	took = tw_now(CLOCK_MONOTONIC) - took;
	if (tw_timed())
		EXPECT_GE(20 * USEC, took);

	EXPECT_EQ(NEAR, tw_read_all(fd, ev, ARRAY_SIZE(ev), 0));
	for (i = 0; expired < many && i < 1 << 14; i++) {
		int ret = tw_advance(fd, 0, jump);

		ASSERT_LE(0, ret);
		expired += ret;
		while ((n = dev_read(fd, ev, ARRAY_SIZE(ev))) > 0) {
			for (j = 0; j < n; j++)
				overdue += ev[j].fired != ev[j].deadline;
		}
	}
	EXPECT_EQ(many, expired);
	EXPECT_EQ(0, overdue);
	ASSERT_EQ(0, tw_stats(fd, &after));
	EXPECT_EQ(NEAR + many, after.delivered);
	EXPECT_GE(8ULL * (NEAR + many), after.cascades);
	close(fd);
}

/* --- Slack on a running clock ------------------------------------------- */

FIXTURE(slack) {
	int fd;
	__u64 round;	/* a round time in the near future */
};

FIXTURE_SETUP(slack)
{
	self->fd = tw_open_clock(TIMERWHEEL_CLOCK_MONOTONIC, TICK, 0);
	ASSERT_LE(0, self->fd);
	self->round = round_up(tw_now(CLOCK_MONOTONIC) + 300 * MSEC, 64 * TICK);
}

FIXTURE_TEARDOWN(slack)
{
	close(self->fd);
}

/* Arm timer @key at @ticks from the round time */
static int add_slack(int fd, __u64 key, __u64 round, int ticks, __u64 slack_ticks)
{
	struct timerwheel_add add = {
		.key = key, .deadline = round + ticks * (__s64)TICK,
		.slack = slack_ticks * TICK, .flags = TIMERWHEEL_ABS | TIMERWHEEL_SLACK,
	};

	return tw_add_elem(fd, &add);
}

/* A timer with slack is not early, and at most its slack and a tick late */
TEST_F(slack, bounds)
{
	struct timerwheel_event ev;
	int i;

	for (i = 0; i < 50; i++)
		ASSERT_EQ(0, add_slack(self->fd, i, self->round, 3 * i, i));
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS));
		EXPECT_TRUE(on_time(&ev, TICK, ev.key * TICK));
	}
}

/* Were all calls of the test made before any of its timers could fire? */
static bool armed_in_time(const FIXTURE_DATA(slack) * self)
{
	return tw_timed() || tw_now(CLOCK_MONOTONIC) < self->round - 20 * TICK;
}

/* Timers whose windows overlap at a round time share one interrupt there */
TEST_F(slack, shared)
{
	struct timerwheel_event ev;
	bool in_time;
	int i;

	ASSERT_EQ(0, add_slack(self->fd, 0, self->round, -20, 30));
	ASSERT_EQ(0, add_slack(self->fd, 1, self->round, -5, 30));
	ASSERT_EQ(0, add_slack(self->fd, 2, self->round, -12, 12));
	ASSERT_EQ(0, add_slack(self->fd, 3, self->round, 0, 0));
	in_time = armed_in_time(self);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS));
		if (in_time)
			EXPECT_LE(self->round, ev.fired);
		EXPECT_LE(ev.deadline, ev.fired);
		if (tw_timed())
			EXPECT_GE(self->round + TICK, ev.fired);
	}
	/* With a free-running clock the time of a firing may run out in the middle. */
	if (tw_timed())
		EXPECT_EQ(1, stat_firings(self->fd));
}

/* A replacing ADD with less slack: the new slack applies */
TEST_F(slack, less)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, add_slack(self->fd, 1, self->round, 1, 1000));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, add_slack(self->fd, 1, self->round, 2, 0));
	ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS));
	EXPECT_TRUE(on_time(&ev, TICK, 0));
}

/* MOVE keeps the slack */
TEST_F(slack, moved)
{
	struct timerwheel_event ev;
	bool in_time;

	ASSERT_EQ(0, add_slack(self->fd, 1, self->round, 1000, 30));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING,
		  tw_move1(self->fd, 1, self->round - 20 * TICK, TIMERWHEEL_ABS));
	ASSERT_EQ(0, add_slack(self->fd, 2, self->round, 0, 0));
	in_time = armed_in_time(self);
	ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS));
	if (in_time)
		EXPECT_LE(self->round, ev.fired);
	ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS));
	/* With a free-running clock the time of a firing may run out in the middle. */
	if (tw_timed())
		EXPECT_EQ(1, stat_firings(self->fd));
}

/* --- No interrupts while no timer is due --------------------------------- */

FIXTURE(idle) {
	int fd;
};

FIXTURE_SETUP(idle)
{
	self->fd = tw_open_clock(TIMERWHEEL_CLOCK_MONOTONIC, TICK, 0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(idle)
{
	close(self->fd);
}

/* One timer 60 s away: at most two interrupts until it has fired, on time */
TEST_F_TIMEOUT(idle, one_timer, 300)
{
	__u64 delay = tw_icount() ? 60 * SEC : 3 * SEC;
	struct timerwheel_event ev;

	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, delay, 0));
	ASSERT_EQ(1, wait_one(self->fd, &ev, 100000));
	EXPECT_TRUE(on_time(&ev, TICK, 0));
	EXPECT_LE(1, stat_firings(self->fd));
	EXPECT_GE(2, stat_firings(self->fd));
	tw_sleep(SEC);
	EXPECT_GE(2, stat_firings(self->fd));
}

/* A million timers due in an hour: no interrupt in the first ten minutes */
TEST_F_TIMEOUT(idle, million, 1200)
{
	struct timerwheel_stats stats;

	arm_many(self->fd, 0, tw_scale(), HOUR, SEC, 0);
	tw_sleep(tw_icount() ? 600 * SEC : 2 * SEC);
	ASSERT_EQ(0, tw_stats(self->fd, &stats));
	EXPECT_EQ(tw_scale(), stats.pending);
	EXPECT_EQ(0, stats.firings);
	EXPECT_EQ(0, stats.passes);
}

/* A timer that was removed: at most the one interrupt that was already programmed */
TEST_F(idle, removed)
{
	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, 20 * MSEC, 0));
	ASSERT_LE(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 1));
	tw_sleep(500 * MSEC);
	EXPECT_GE(1, stat_firings(self->fd));
	EXPECT_EQ(0, dev_poll(self->fd, 0));
}

/* A due timer that is not read: no interrupt after the one in which it fired */
TEST_F(idle, unread)
{
	__u64 firings;

	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, MSEC, 0));
	ASSERT_EQ(POLLIN, dev_poll(self->fd, LONG_MS));
	firings = stat_firings(self->fd);
	tw_sleep(500 * MSEC);
	EXPECT_EQ(firings, stat_firings(self->fd));
}

/*
 * A base that was used late in one tick reads the time again early in the next tick, so a timer
 * that need not cascade does not. With 8 slots these are timers less than 16 ticks after the next
 * tick.
 */
TEST(no_cascade_in_the_next_tick)
{
	const __u64 tick = 20 * MSEC;
	struct timerwheel_stats stats;
	struct timerwheel_event ev;
	int round, valid = 0, fd;
	bool early;
	__u64 k;

	ASSERT_EQ(0, tw_pin(0));
	for (round = 0; round < 50 && valid < 3; round++) {
		fd = tw_open_clock(TIMERWHEEL_CLOCK_MONOTONIC, tick, 8);
		ASSERT_LE(0, fd);
		EXPECT_EQ(-ENOENT, tw_remove1(fd, 1));
		k = tw_now(CLOCK_MONOTONIC) / tick + 2;
		tw_sleep_until(CLOCK_MONOTONIC, k * tick + tick * 9 / 10);
		EXPECT_EQ(-ENOENT, tw_remove1(fd, 1));
		early = tw_now(CLOCK_MONOTONIC) < (k + 1) * tick;
		tw_sleep_until(CLOCK_MONOTONIC, (k + 1) * tick + tick / 2);
		ASSERT_EQ(0, tw_add1(fd, 1, 0, (k + 17) * tick, TIMERWHEEL_ABS));
		/* if time passes too fast the result is meaningless */
		if (early && tw_now(CLOCK_MONOTONIC) < (k + 2) * tick) {
			ASSERT_EQ(1, wait_one(fd, &ev, LONG_MS));
			ASSERT_EQ(0, tw_stats(fd, &stats));
			EXPECT_EQ(0, stats.cascades);
			valid++;
		}
		close(fd);
	}
}

/* --- Batches are short --------------------------------------------------- */

enum { BURST = 200000, OTHER = 1 << 30 };

FIXTURE(burst) {
	int fd;
	__u64 at;			/* a tick in the near future */
	struct timerwheel_event *ev;
};

FIXTURE_SETUP(burst)
{
	self->fd = tw_open_clock(TIMERWHEEL_CLOCK_MONOTONIC, TICK, 0);
	ASSERT_LE(0, self->fd);
	self->at = round_up(tw_now(CLOCK_MONOTONIC), TICK);
	self->ev = calloc(BURST + 2, sizeof(*self->ev));
}

FIXTURE_TEARDOWN(burst)
{
	close(self->fd);
}

/* All events arrived, none early. Events of @strict were not late. */
static bool burst_came(FIXTURE_DATA(burst) * self, bool all_strict)
{
	bool ok = tw_read_all(self->fd, self->ev, BURST + 1, LONG_MS) == BURST + 1;
	struct timerwheel_stats stats;
	int i;

	for (i = 0; ok && i <= BURST; i++) {
		const struct timerwheel_event *ev = &self->ev[i];

		ok = ev->fired >= ev->deadline;
		if (tw_timed() && (all_strict || ev->key == OTHER))
			ok &= on_time(ev, TICK, MSEC - LAG);
	}
	if (tw_stats(self->fd, &stats))
		return false;
	printf("# longest batch: %llu ns, %llu timers; latest by %llu ns\n", stats.pass_max_ns,
	       stats.pass_max_timers, stats.late_max);
	return ok && (!tw_timed() || stats.pass_max_ns <= PASS_NS);
}

/* 200,000 due in one tick, in bounded batches; another timer 5 ticks later is not late */
TEST_F_TIMEOUT(burst, one_tick, 300)
{
	__u64 at = self->at + (tw_icount() ? SEC : 5 * SEC);

	arm_many(self->fd, 0, BURST, at, 1, TIMERWHEEL_ABS);
	ASSERT_EQ(0, tw_add1(self->fd, OTHER, 0, at + 5 * TICK, TIMERWHEEL_ABS));
	tw_sleep_until(CLOCK_MONOTONIC, at + 500 * MSEC);
	EXPECT_TRUE(burst_came(self, false));
}

/* The same while events are read */
TEST_F_TIMEOUT(burst, one_tick_read, 300)
{
	__u64 at = self->at + (tw_icount() ? SEC : 5 * SEC);

	arm_many(self->fd, 0, BURST, at, 1, TIMERWHEEL_ABS);
	ASSERT_EQ(0, tw_add1(self->fd, OTHER, 0, at + 5 * TICK, TIMERWHEEL_ABS));
	EXPECT_TRUE(burst_came(self, false));
}

/* 200,000 that cascade from one upper slot: neither they nor earlier timers are late */
TEST_F_TIMEOUT(burst, cascade, 300)
{
	/* A slot of the next level spans 256 ticks. */
	__u64 at = round_up(self->at, 256 * TICK) + (tw_icount() ? 400 : 20) * 256 * TICK;

	arm_many(self->fd, 0, BURST, at, 256 * TICK, TIMERWHEEL_ABS);
	ASSERT_EQ(0, tw_add1(self->fd, OTHER, 0, at - 128 * TICK, TIMERWHEEL_ABS));
	tw_sleep_until(CLOCK_MONOTONIC, at + 500 * MSEC);
	EXPECT_TRUE(burst_came(self, true));
}

/* A burst is one firing of its wheel, with any number of batches */
TEST_F(burst, is_one_firing)
{
	__u64 tick = 20 * MSEC, at = round_up(tw_now(CLOCK_MONOTONIC), tick) + 100 * tick;
	struct timerwheel_stats stats;
	int fd;

	ASSERT_EQ(0, tw_pin(0));
	fd = tw_open_clock(TIMERWHEEL_CLOCK_MONOTONIC, tick, 0);
	ASSERT_LE(0, fd);
	arm_many(fd, 0, 1000, at, 1, TIMERWHEEL_ABS);
	ASSERT_EQ(1000, tw_read_all(fd, self->ev, 1000, LONG_MS));
	ASSERT_EQ(0, tw_stats(fd, &stats));
	EXPECT_EQ(1, stats.firings);
	EXPECT_EQ((1000 + TW_BATCH_TIMERS - 1) / TW_BATCH_TIMERS, stats.passes);
	EXPECT_EQ(TW_BATCH_TIMERS, stats.pass_max_timers);
	/* and later timers are the next firing */
	ASSERT_EQ(0, tw_add1(fd, OTHER, 0, 5 * tick, 0));
	ASSERT_EQ(1, wait_one(fd, self->ev, LONG_MS));
	EXPECT_EQ(2, stat_firings(fd));
	close(fd);
}

/* --- Delays that a call causes for a task of the highest priority -------- */

enum { CALLS = 4096, SPAN_MONITORS = TIMERWHEEL_MONITORS_MAX, ROUNDS = 10, SPANS = 3 };

#define SPAN_MOST	(25 * USEC)

FIXTURE(span) {
	int fd;
	int mon[SPAN_MONITORS];
	struct timerwheel_ring *ring;
	struct timerwheel_add add[CALLS];
	struct timerwheel_move move[CALLS];
	struct timerwheel_entry ent[CALLS];
	struct timerwheel_event ev[CALLS];
	pthread_t thread;
	bool stop;
	__u64 worst[SPANS];
	int spans;			/* measured so far */
	__u64 alone;			/* the same without calls */
};

FIXTURE_VARIANT(span) {
	__u32 ring;
	int monitors;
};

FIXTURE_VARIANT_ADD(span, plain) { 0, 0 };
FIXTURE_VARIANT_ADD(span, monitors) { 0, SPAN_MONITORS };
FIXTURE_VARIANT_ADD(span, ring) { CALLS, 0 };
FIXTURE_VARIANT_ADD(span, ring_monitors) { CALLS, SPAN_MONITORS };

/* Sleep for short times, and measure how late the task runs */
static void *span_meter(void *arg)
{
	FIXTURE_DATA(span) * self = arg;
	__u64 state = self->spans + 1, *worst = &self->worst[self->spans], at, late;

	while (!__atomic_load_n(&self->stop, __ATOMIC_RELAXED)) {
		at = tw_now(CLOCK_MONOTONIC) + 20 * USEC + tw_rand(&state) % (30 * USEC);
		tw_sleep_until(CLOCK_MONOTONIC, at);
		late = tw_now(CLOCK_MONOTONIC) - at;
		if (late > *worst)
			*worst = late;
	}
	return NULL;
}

/* Should it be measured, or measured again? */
static bool span_again(const FIXTURE_DATA(span) * self)
{
	return self->spans < (tw_timed() ? SPANS : 1);
}

static int span_begin(FIXTURE_DATA(span) * self)
{
	struct sched_param param = { .sched_priority = 99 };
	pthread_attr_t attr;

	/* It is not measured there, and on a slow kernel the call hardly ran beside it. */
	if (!tw_timed())
		return 0;
	self->stop = false;
	self->worst[self->spans] = 0;
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	return pthread_create(&self->thread, &attr, span_meter, self);
}

static void span_end(FIXTURE_DATA(span) * self)
{
	if (tw_timed()) {
		__atomic_store_n(&self->stop, true, __ATOMIC_RELAXED);
		pthread_join(self->thread, NULL);
	}
	self->spans++;
}

static int span_order(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * The longest wait, taken as the median of several runs: the work of the calls appears in every
 * run, but an occasional slow interrupt at the end of a batch does not.
 */
static __u64 span_longest(FIXTURE_DATA(span) * self, const char *what)
{
	self->spans = 0;
	if (!tw_timed())
		return 0;
	qsort(self->worst, SPANS, sizeof(*self->worst), span_order);
	printf("# %s: %.1f us (%.1f to %.1f), %.1f us alone\n", what, self->worst[SPANS / 2] / 1e3,
	       self->worst[0] / 1e3, self->worst[SPANS - 1] / 1e3, self->alone / 1e3);
	fflush(stdout);
	return self->worst[SPANS / 2];
}

/* Check that it is within the limit */
static bool span_short(FIXTURE_DATA(span) * self, const char *what)
{
	return span_longest(self, what) <= SPAN_MOST + self->alone;
}

FIXTURE_SETUP(span)
{
	struct timerwheel_setup setup = { .ring = variant->ring };
	struct timerwheel_monitor mon = {
		.size = sizeof(mon), .flags = TIMERWHEEL_MONITOR_NONBLOCK, .events = CALLS,
	};
	__u64 end;
	int i;

	ASSERT_EQ(0, tw_pin(0));
	self->fd = dev_open(O_NONBLOCK);
	ASSERT_EQ(0, dev_setup(self->fd, &setup));
	if (variant->ring) {
		self->ring = mmap(NULL, TIMERWHEEL_RING_EVENTS + sizeof(self->ev),
				  PROT_READ | PROT_WRITE, MAP_SHARED, self->fd,
				  TIMERWHEEL_MMAP_RING);
		ASSERT_NE(MAP_FAILED, self->ring);
	}
	for (i = 0; i < variant->monitors; i++) {
		self->mon[i] = dev_ioctl(self->fd, TIMERWHEEL_IOC_MONITOR, &mon);
		ASSERT_LE(0, self->mon[i]);
	}
	/* Fault in all pages before the measurement. */
	memset(self->ent, 1, sizeof(self->ent));
	memset(self->ev, 1, sizeof(self->ev));
	/* Measure for many periods of the scheduler's tick, because a long call meets it, too. */
	while (span_again(self)) {
		ASSERT_EQ(0, span_begin(self));
		end = tw_now(CLOCK_MONOTONIC) + (tw_timed() ? 50 * MSEC : 0);
		while (tw_now(CLOCK_MONOTONIC) < end)
			for (i = 0; i < 10000; i++)
				__atomic_signal_fence(__ATOMIC_SEQ_CST);
		span_end(self);
	}
	self->alone = span_longest(self, "nothing");
}

FIXTURE_TEARDOWN(span)
{
	close(self->fd);
}

static bool span_add(FIXTURE_DATA(span) * self, __u64 deadline, __u32 flags)
{
	int i;

	for (i = 0; i < CALLS; i++)
		self->add[i] = (struct timerwheel_add) {
			.key = i, .deadline = deadline, .flags = flags,
		};
	return dev_add(self->fd, self->add, CALLS) == CALLS;
}

static bool span_move(FIXTURE_DATA(span) * self, __u64 deadline)
{
	int i;

	for (i = 0; i < CALLS; i++)
		self->move[i] = (struct timerwheel_move) { .key = i, .deadline = deadline };
	return dev_move(self->fd, self->move, CALLS) == CALLS;
}

/* Take all events, by read or from the ring */
static bool span_take(FIXTURE_DATA(span) * self)
{
	__u32 tail;

	if (!self->ring)
		return dev_read(self->fd, self->ev, CALLS) == CALLS;
	dev_ioctl(self->fd, TIMERWHEEL_IOC_FLOW, NULL);
	tail = __atomic_load_n(&self->ring->tail, __ATOMIC_ACQUIRE);
	if (tail - self->ring->head != CALLS)
		return false;
	__atomic_store_n(&self->ring->head, tail, __ATOMIC_RELEASE);
	return true;
}

/* ADD, MOVE to an earlier deadline, LIST and DRAIN of pending timers */
TEST_F_TIMEOUT(span, pending, 120)
{
	__u64 cursor;
	int i, n, got;

	while (span_again(self)) {
		ASSERT_EQ(0, span_begin(self));
		for (i = 0; i < ROUNDS; i++) {
			ASSERT_TRUE(span_add(self, HOUR, 0));
			ASSERT_TRUE(span_move(self, MINUTE));
			cursor = 0;
			got = 0;
			while ((n = tw_list(self->fd, &cursor, self->ent, CALLS)) > 0)
				got += n;
			ASSERT_EQ(CALLS, got);
			ASSERT_EQ(CALLS, tw_drain(self->fd, 0, self->ent, CALLS));
		}
		span_end(self);
	}
	EXPECT_TRUE(span_short(self, "pending"));
}

/* ADD of past deadlines, and taking the events */
TEST_F_TIMEOUT(span, past, 120)
{
	int i;

	while (span_again(self)) {
		ASSERT_EQ(0, span_begin(self));
		for (i = 0; i < ROUNDS; i++) {
			ASSERT_TRUE(span_add(self, 1, TIMERWHEEL_ABS));
			ASSERT_TRUE(span_take(self));
		}
		span_end(self);
	}
	EXPECT_TRUE(span_short(self, "past deadlines"));
}

/* MOVE to now, and taking the events */
TEST_F_TIMEOUT(span, moved, 120)
{
	int i;

	while (span_again(self)) {
		ASSERT_EQ(0, span_begin(self));
		for (i = 0; i < ROUNDS; i++) {
			ASSERT_TRUE(span_add(self, HOUR, 0));
			ASSERT_TRUE(span_move(self, 0));
			ASSERT_TRUE(span_take(self));
		}
		span_end(self);
	}
	EXPECT_TRUE(span_short(self, "MOVE to now"));
}

/* DRAIN of due timers; with a ring, of the timers that do not fit into it */
TEST_F_TIMEOUT(span, due, 120)
{
	int i;

	if (self->ring) {
		ASSERT_TRUE(span_add(self, 0, 0));
		ASSERT_EQ(CALLS, self->ring->tail);
	}
	while (span_again(self)) {
		ASSERT_EQ(0, span_begin(self));
		for (i = 0; i < ROUNDS; i++) {
			ASSERT_TRUE(span_add(self, 0, 0));
			ASSERT_EQ(CALLS, tw_drain(self->fd, 0, self->ent, CALLS));
		}
		span_end(self);
	}
	EXPECT_TRUE(span_short(self, "DRAIN of due timers"));
}

/* One ADD that is due at once, while many events wait and the ring has room again */
TEST_F_TIMEOUT(span, one, 120)
{
	__u32 tail;
	int i, k;

	if (!self->ring)
		return;
	while (span_again(self)) {
		ASSERT_LE(0, tw_drain(self->fd, 0, self->ent, CALLS));
		self->ring->head = self->ring->tail;
		ASSERT_TRUE(span_add(self, 0, 0));
		ASSERT_TRUE(span_add(self, 0, 0));
		self->ring->head = self->ring->tail;
		tail = self->ring->tail;
		ASSERT_EQ(0, span_begin(self));
		for (i = 1; i <= 200; i++) {
			ASSERT_EQ(0, tw_add1(self->fd, CALLS + i, 0, 0, 0));
			/* Its own event and 16 others. */
			ASSERT_EQ(tail + 17 * i, self->ring->tail);
		}
		span_end(self);
	}
	EXPECT_TRUE(span_short(self, "one ADD"));
	for (k = 0; k < variant->monitors; k++)
		EXPECT_EQ(CALLS, dev_read(self->mon[k], self->ev, CALLS));
}

/*
 * ADVANCE over ticks that have a timer each. Finding the next tick takes longest when each upper
 * level has a single timer, far away.
 */
static void advance_spread(struct __test_metadata *_metadata, FIXTURE_DATA(span) * self,
			   __u64 tick, __u32 slots)
{
	struct timerwheel_setup setup = {
		.clock = TIMERWHEEL_CLOCK_MANUAL, .tick = tick, .slots = slots,
	};
	int fd = dev_open(O_NONBLOCK), key = CALLS, round, i;
	__u64 distance = (2 * slots - 3) * tick, level;

	ASSERT_EQ(0, dev_setup(fd, &setup));
	for (level = slots; level < TIMERWHEEL_TIME_MAX / distance; level *= slots)
		if (level * distance > SPANS * ROUNDS * CALLS * tick)
			ASSERT_EQ(0, tw_add1(fd, key++, 0, level * distance, TIMERWHEEL_ABS));
	while (span_again(self)) {
		ASSERT_EQ(0, span_begin(self));
		for (round = 0; round < ROUNDS; round++) {
			for (i = 0; i < CALLS; i++)
				self->add[i] = (struct timerwheel_add) {
					.key = i, .deadline = (i + 1) * tick,
				};
			ASSERT_EQ(CALLS, dev_add(fd, self->add, CALLS));
			ASSERT_EQ(CALLS, tw_advance(fd, 0, CALLS * tick));
			ASSERT_EQ(CALLS, dev_read(fd, self->ev, CALLS));
		}
		span_end(self);
	}
	EXPECT_TRUE(span_short(self, "ADVANCE"));
	close(fd);
}

TEST_F_TIMEOUT(span, advance, 120)
{
	if (variant->ring || variant->monitors)
		return;
	advance_spread(_metadata, self, MSEC, 256);
	advance_spread(_metadata, self, USEC, 4096);
	advance_spread(_metadata, self, 1, 4096);
	advance_spread(_metadata, self, 1, 16);
}

/* Read monitors whose log has grown. Growth clears pages without a lock. */
TEST_F_TIMEOUT(span, read, 120)
{
	struct timerwheel_monitor mon = { .size = sizeof(mon), .events = 2 * CALLS };
	int i, k, fd;

	if (!variant->monitors)
		return;
	ASSERT_TRUE(span_add(self, 0, 0));
	ASSERT_TRUE(span_take(self));
	for (i = 0; i < 2; i++) {
		/* Close one first to make room for it. */
		close(self->mon[i]);
		fd = dev_ioctl(self->fd, TIMERWHEEL_IOC_MONITOR, &mon);
		ASSERT_LE(0, fd);
		mon.events *= 2;
	}
	while (span_again(self)) {
		ASSERT_EQ(0, span_begin(self));
		for (k = 2; k < variant->monitors; k++)
			EXPECT_EQ(CALLS, dev_read(self->mon[k], self->ev, CALLS));
		span_end(self);
		/* for the next time */
		ASSERT_TRUE(span_add(self, 0, 0));
		ASSERT_TRUE(span_take(self));
	}
	EXPECT_TRUE(span_short(self, "monitors are read"));
}

/* --- CLOCK_REALTIME is set ---------------------------------------------- */

FIXTURE(set) {
	int fd;
	__u64 real, mono;	/* start of the test by both clocks */
};

static bool set_clock(__u64 ns)
{
	return !tw_set_realtime(ns);
}

static bool shift_clock(__s64 ns)
{
	return set_clock(tw_now(CLOCK_REALTIME) + ns);
}

FIXTURE_SETUP(set)
{
	self->fd = tw_open_clock(TIMERWHEEL_CLOCK_REALTIME, TICK, 0);
	ASSERT_LE(0, self->fd);
	self->mono = tw_now(CLOCK_MONOTONIC);
	self->real = tw_now(CLOCK_REALTIME);
	if (!shift_clock(0)) {
		self->real = 0;
		SKIP(return, "may not set the clock");
	}
}

FIXTURE_TEARDOWN(set)
{
	if (self->real)
		EXPECT_TRUE(set_clock(self->real + tw_now(CLOCK_MONOTONIC) - self->mono));
	close(self->fd);
}

/* An event of the REALTIME wheel has come, not early by the clock after it was set */
static bool came(int fd, __u64 key, bool strict)
{
	struct timerwheel_event ev;

	if (wait_one(fd, &ev, LONG_MS) != 1) {
		fprintf(stderr, "# no event\n");
		return false;
	}
	return ev.key == key && ev.deadline <= tw_now(CLOCK_REALTIME) &&
	       ev.fired >= ev.deadline && (!strict || on_time(&ev, TICK, 0));
}

/* Set forward to shortly before a deadline: the timer fires earlier by that amount, on time */
TEST_F(set, forward)
{
	if (!self->real)
		return;
	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, self->real + HOUR, TIMERWHEEL_ABS));
	ASSERT_TRUE(set_clock(self->real + HOUR - 100 * MSEC));
	EXPECT_TRUE(came(self->fd, 1, true));
	if (tw_timed())
		EXPECT_GT(self->mono + 10 * SEC, tw_now(CLOCK_MONOTONIC));
}

/* Set forward beyond a deadline: that timer is due at once; others keep waiting */
TEST_F(set, forward_beyond)
{
	if (!self->real)
		return;
	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, self->real + HOUR, TIMERWHEEL_ABS));
	ASSERT_EQ(0, tw_add1(self->fd, 2, 0, self->real + 3 * HOUR, TIMERWHEEL_ABS));
	ASSERT_TRUE(set_clock(self->real + 2 * HOUR));
	EXPECT_TRUE(came(self->fd, 1, false));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get_result(self->fd, 2));
}

/* Relative deadlines have become absolute, so setting the clock affects them, too */
TEST_F(set, forward_relative)
{
	if (!self->real)
		return;
	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, HOUR, 0));
	ASSERT_TRUE(shift_clock(2 * HOUR));
	EXPECT_TRUE(came(self->fd, 1, false));
}

/* Set back: no timer fires before the clock shows its deadline again; then it fires on time */
TEST_F(set, backward)
{
	__u64 deadline = self->real + SEC;
	bool timed = tw_timed();

	if (!self->real)
		return;
	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, deadline, TIMERWHEEL_ABS));
	ASSERT_TRUE(shift_clock(-(__s64)SEC));
	if (dev_poll(self->fd, 1500)) {
		EXPECT_FALSE(timed);
		EXPECT_LE(deadline, tw_now(CLOCK_REALTIME));
	}
	EXPECT_TRUE(came(self->fd, 1, true));
}

/* Set back before and after the old deadlines have passed: all old timers still fire */
TEST_F(set, backward_many)
{
	enum { MANY = 100 };
	struct timerwheel_event ev;
	int i;

	if (!self->real)
		return;
	arm_many(self->fd, 0, MANY, 0, 400 * MSEC, 0);
	tw_sleep(200 * MSEC);
	ASSERT_TRUE(shift_clock(-(__s64)SEC));
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS));
		EXPECT_LE(ev.deadline, ev.fired);
	}
	EXPECT_LE(ev.deadline, tw_now(CLOCK_REALTIME));
	EXPECT_EQ(0, dev_poll(self->fd, 10));
}

/* Set back without pending timers: no interrupt */
TEST_F(set, backward_idle)
{
	if (!self->real)
		return;
	ASSERT_EQ(0, tw_pin(0));
	EXPECT_EQ(-ENOENT, tw_remove1(self->fd, 1));
	ASSERT_TRUE(shift_clock(-(__s64)HOUR));
	EXPECT_EQ(-ENOENT, tw_remove1(self->fd, 1));
	tw_sleep(100 * MSEC);
	EXPECT_EQ(0, stat_firings(self->fd));
}

/* After the clock was set back, new short timers are on time */
TEST_F(set, backward_new)
{
	__u64 delay;

	if (!self->real)
		return;
	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, HOUR, 0));
	ASSERT_EQ(0, tw_add1(self->fd, 2, 0, 10 * MSEC, 0));
	ASSERT_TRUE(shift_clock(-10 * (__s64)HOUR));
	for (delay = 1; delay < SEC; delay *= 7) {
		ASSERT_EQ(0, tw_add1(self->fd, 3, 0, delay, 0));
		EXPECT_TRUE(came(self->fd, 3, true));
	}
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get_result(self->fd, 1));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get_result(self->fd, 2));
	ASSERT_TRUE(shift_clock(10 * (__s64)HOUR));
	EXPECT_TRUE(came(self->fd, 2, false));
}

/*
 * Set back into the tick in which timers were armed last, after later ticks have passed: new timers
 * are still on time. Ticks are long, to leave the test time for this.
 */
TEST_F(set, backward_into_a_tick)
{
	__u64 base = (self->real / SEC + 10) * SEC + 10 * MSEC;
	struct timerwheel_event ev;
	int fd;

	if (!self->real)
		return;
	ASSERT_EQ(0, tw_pin(0));
	fd = tw_open_clock(TIMERWHEEL_CLOCK_REALTIME, SEC, 0);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(set_clock(base));
	ASSERT_EQ(0, tw_add1(fd, 1, 0, HOUR, 0));
	ASSERT_TRUE(set_clock(base + 2 * HOUR));
	ASSERT_EQ(1, dev_poll(fd, LONG_MS));
	ASSERT_TRUE(set_clock(base + 50 * MSEC));
	ASSERT_EQ(0, tw_add1(fd, 2, 0, 10 * MSEC, 0));
	ASSERT_EQ(1, wait_one(fd, &ev, LONG_MS));
	EXPECT_EQ(1, ev.key);
	ASSERT_EQ(1, wait_one(fd, &ev, LONG_MS));
	EXPECT_EQ(2, ev.key);
	EXPECT_TRUE(on_time(&ev, SEC, 0));
	close(fd);
}

/*
 * Set back by a tick, from a tick in which timers were armed: a new timer is at most one tick late.
 */
TEST_F(set, backward_by_a_tick)
{
	__u64 base = (self->real / SEC + 10) * SEC + SEC / 2;
	struct timerwheel_event ev;
	int fd;

	if (!self->real)
		return;
	ASSERT_EQ(0, tw_pin(0));
	fd = tw_open_clock(TIMERWHEEL_CLOCK_REALTIME, SEC, 0);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(set_clock(base));
	ASSERT_EQ(0, tw_add1(fd, 1, 0, HOUR, 0));
	ASSERT_TRUE(set_clock(base - SEC));
	ASSERT_EQ(0, tw_add1(fd, 2, 0, 100 * MSEC, 0));
	ASSERT_EQ(1, wait_one(fd, &ev, LONG_MS));
	EXPECT_EQ(2, ev.key);
	EXPECT_TRUE(on_time(&ev, SEC, 0));
	close(fd);
}

/* Set forward over several ticks: timers fire in order, unless a tick has very many */
TEST_F(set, forward_in_order)
{
	enum { MANY = 600 };	/* ten batches; very many are 16 */
	static struct timerwheel_event ev[MANY + 1];
	__u64 at;
	int i, k;

	if (!self->real)
		return;
	ASSERT_EQ(0, tw_pin(0));
	for (i = 0; i < 4; i++) {
		at = round_up(tw_now(CLOCK_REALTIME), TICK) + 300 * TICK;
		arm_many(self->fd, 0, MANY, at, 1, TIMERWHEEL_ABS);
		ASSERT_EQ(0, tw_add1(self->fd, MANY, 0, at + 10 * TICK, TIMERWHEEL_ABS));
		ASSERT_TRUE(shift_clock(SEC));
		ASSERT_EQ(MANY + 1, tw_read_all(self->fd, ev, MANY + 1, LONG_MS));
		for (k = 0; k < MANY; k++)
			EXPECT_GT(MANY, ev[k].key);
		EXPECT_EQ(MANY, ev[k].key);
	}
}

/* Set by decades, forward, back and forward: new timers are on time, old timers are kept */
TEST_F(set, decades)
{
	__s64 years = 40 * 365 * 24 * (__s64)HOUR;
	int i;

	if (!self->real)
		return;
	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, 2 * years, 0));
	for (i = 0; i < 6; i++) {
		ASSERT_TRUE(shift_clock(i % 2 ? -years : years));
		ASSERT_EQ(0, tw_add1(self->fd, 2, 0, 5 * MSEC, 0));
		EXPECT_TRUE(came(self->fd, 2, true))
			TH_LOG("time %d", i);
	}
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 1));
}

/* Set forward and back repeatedly: no timer is early or lost, and none fires twice */
TEST_F_TIMEOUT(set, at_random, 120)
{
	enum { MANY = 500 };
	__u64 seed = tw_seed(), r = seed;
	struct timerwheel_event ev;
	bool seen[MANY] = { 0 };
	int i, n = 0;

	if (!self->real)
		return;
	arm_many(self->fd, 0, MANY, 0, 4 * SEC, 0);
	for (i = 0; i < 60; i++) {
		ASSERT_TRUE(shift_clock(tw_rand(&r) % SEC - (__s64)SEC / 2));
		tw_sleep(tw_rand(&r) % (20 * MSEC));
		while (dev_read(self->fd, &ev, 1) == 1) {
			EXPECT_LE(ev.deadline, ev.fired)
				TH_LOG("seed %llu", seed);
			ASSERT_GT(MANY, ev.key);
			EXPECT_FALSE(seen[ev.key]);
			seen[ev.key] = true;
			n++;
		}
	}
	ASSERT_TRUE(shift_clock(HOUR));
	for (; n < MANY; n++) {
		ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS))
			TH_LOG("seed %llu: %d came", seed, n);
		ASSERT_GT(MANY, ev.key);
		EXPECT_FALSE(seen[ev.key]);
		seen[ev.key] = true;
	}
	EXPECT_EQ(0, dev_poll(self->fd, 10));
}

struct armed {
	__u64 when;
	__u64 deadline;
};

/* The clock was set to @to when timers with keys below @armed had been armed. */
struct jump {
	__u64 to;
	int armed;
};

/* At most @late after the last of: its deadline, its arming, a jump over its deadline */
static bool fired_in_time(const struct timerwheel_event *ev, __u64 armed,
			  const struct jump *jump, int jumps, __u64 late)
{
	int i;

	if (ev->fired <= (ev->deadline > armed ? ev->deadline : armed) + late)
		return true;
	for (i = 0; i < jumps; i++)
		if ((int)ev->key < jump[i].armed && jump[i].to > ev->deadline &&
		    jump[i].to <= ev->fired && ev->fired - jump[i].to <= late)
			return true;
	fprintf(stderr, "# %llu: fired %lld ns after its deadline, %lld after it was armed\n",
		ev->key, ev->fired - ev->deadline, ev->fired - armed);
	return false;
}

/*
 * Set by a few ticks or by many, to and fro or back to where timers were armed, while other timers
 * are armed, wait and fire. Each fires at most a tick after the clock reaches its deadline or jumps
 * over it, or after it is armed for the past. After a jump, a jiffy is added: kernels from 5.15 on
 * do not reprogram the clock event device of the CPU that sets the clock, and only its next
 * interrupt handles the elapsed time. Therefore ticks are long.
 */
TEST_F_TIMEOUT(set, late_at_random, 600)
{
	enum { MOST = 4000 };
	const __u64 tick = 50 * MSEC, jiffy = 10 * MSEC;
	int steps = tw_icount() ? MOST : MOST / 20, i, armed = 0, came = 0, jumps = 0;
	static struct armed began[MOST];
	static struct jump jump[MOST];
	__u64 seed = tw_seed(), r = seed, now, far;
	struct timerwheel_event ev;
	int fd;

	if (!self->real)
		return;
	ASSERT_EQ(0, tw_pin(0));
	fd = tw_open_clock(TIMERWHEEL_CLOCK_REALTIME, tick, 0);
	ASSERT_LE(0, fd);
	for (i = 0; i < steps; i++) {
		now = tw_now(CLOCK_REALTIME);
		/* Mostly in this order, so that a step back meets timers armed before. */
		switch (tw_rand(&r) % 8 ? i % 5 : tw_rand(&r) % 5) {
		case 1:
		case 4:
			tw_sleep(tw_rand(&r) % (4 * tick));
			break;
		case 2:
			far = tw_rand(&r) % 8 ? 4 * tick : 2000 * tick;
			now += tw_rand(&r) % (2 * far) - far;
			if (armed && tw_rand(&r) % 2)
				now = began[armed - 1].when + tw_rand(&r) % tick;
			ASSERT_TRUE(set_clock(now));
			jump[jumps++] = (struct jump){ .to = now, .armed = armed };
			break;
		default:
			began[armed].when = now;
			began[armed].deadline = now - tick + tw_rand(&r) % (6 * tick);
			ASSERT_EQ(0, tw_add1(fd, armed, 0, began[armed].deadline,
					     TIMERWHEEL_ABS));
			armed++;
		}
		/* Rarely: a call that reads the clock. */
		while (!(tw_rand(&r) % 8) && dev_read(fd, &ev, 1) == 1) {
			ASSERT_GT(armed, ev.key);
			ASSERT_EQ(began[ev.key].deadline, ev.deadline);
			EXPECT_LE(ev.deadline, ev.fired);
			if (tw_timed())
				EXPECT_TRUE(fired_in_time(&ev, began[ev.key].when, jump, jumps,
							  tick + jiffy))
					TH_LOG("seed %llu", seed);
			came++;
		}
	}
	ASSERT_TRUE(shift_clock(HOUR));
	for (; came < armed; came++)
		ASSERT_EQ(1, wait_one(fd, &ev, LONG_MS));
	EXPECT_EQ(0, dev_poll(fd, 10));
	close(fd);
}

/* --- TIMERWHEEL_SETUP_CLOCK_SET: events when the clock is set ----------- */

/* A non-blocking wheel on @clock with CLOCK_SET and a ring of @ring events (0: none) */
static int open_asking(__u32 clock, __u32 ring)
{
	struct timerwheel_setup setup = {
		.flags = TIMERWHEEL_SETUP_CLOCK_SET, .clock = clock, .tick = TICK, .ring = ring,
	};
	int fd = dev_open(O_NONBLOCK);
	int ret = fd < 0 ? fd : dev_setup(fd, &setup);

	if (ret >= 0)
		return fd;
	close(fd);
	return ret;
}

/* Is it the event of a clock set to @least or later, @overruns + 1 times? */
static bool is_set(const struct timerwheel_event *ev, __u64 least, __u64 overruns)
{
	return ev->flags == TIMERWHEEL_EVENT_CLOCK_SET && !ev->key && !ev->value && !ev->index &&
	       ev->deadline == ev->fired && ev->fired >= least &&
	       ev->fired <= tw_now(CLOCK_REALTIME) && ev->overruns == overruns;
}

/*
 * Set forward: poll reports the event. It arrives once, before the event of the timer that it makes
 * due.
 */
TEST_F(set, told_forward)
{
	int fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0);
	struct timerwheel_event ev[2];
	struct timerwheel_info info;
	struct timerwheel_stats st;

	if (!self->real)
		return;
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TIMERWHEEL_INFO_SETTLED | TIMERWHEEL_INFO_CLOCK_SET, info.flags);
	ASSERT_EQ(0, tw_add1(fd, 1, 0, self->real + HOUR, TIMERWHEEL_ABS));
	EXPECT_EQ(0, dev_poll(fd, 0));
	EXPECT_EQ(-EAGAIN, dev_read(fd, ev, 1));
	ASSERT_TRUE(set_clock(self->real + 2 * HOUR));
	EXPECT_EQ(1, dev_poll(fd, 0));
	ASSERT_EQ(1, dev_read(fd, ev, 1));
	EXPECT_TRUE(is_set(ev, self->real + 2 * HOUR, 0));
	ASSERT_EQ(1, wait_one(fd, ev, LONG_MS));
	EXPECT_EQ(1, ev[0].key);
	EXPECT_EQ(0, ev[0].flags);
	EXPECT_EQ(-EAGAIN, dev_read(fd, ev, 1));
	EXPECT_EQ(0, dev_poll(fd, 10));
	ASSERT_EQ(0, tw_stats(fd, &st));
	EXPECT_EQ(1, st.delivered);
	close(fd);
}

/* The same if the timer is due long before the first call or read */
TEST_F(set, told_first)
{
	int fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0), i;
	struct timerwheel_event ev[3];

	if (!self->real)
		return;
	ASSERT_EQ(0, tw_add1(fd, 1, 0, self->real + HOUR, TIMERWHEEL_ABS));
	ASSERT_TRUE(set_clock(self->real + 2 * HOUR));
	for (i = 0; i < LONG_MS && look_due(fd) < 1; i++)
		usleep(1000);
	ASSERT_EQ(2, dev_read(fd, ev, 3));
	EXPECT_TRUE(is_set(ev, self->real + 2 * HOUR, 0));
	EXPECT_EQ(1, ev[1].key);
	close(fd);
}

TEST_F(set, told_backward)
{
	int fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0);
	struct timerwheel_event ev;

	if (!self->real)
		return;
	ASSERT_TRUE(set_clock(self->real - HOUR));
	ASSERT_EQ(1, dev_read(fd, &ev, 1));
	EXPECT_TRUE(is_set(&ev, self->real - HOUR, 0));
	EXPECT_GT(self->real, ev.fired);
	EXPECT_EQ(-EAGAIN, dev_read(fd, &ev, 1));
	close(fd);
}

/* If none was read, several changes are one event, with the time of the last change */
TEST_F(set, told_merged)
{
	int fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0), i;
	struct timerwheel_event ev[2];

	if (!self->real)
		return;
	for (i = 1; i <= 3; i++) {
		ASSERT_TRUE(set_clock(self->real + i * HOUR));
		ASSERT_EQ(1, dev_poll(fd, 0));
	}
	ASSERT_EQ(1, dev_read(fd, ev, 2));
	EXPECT_TRUE(is_set(ev, self->real + 3 * HOUR, 2));
	ASSERT_TRUE(set_clock(self->real));
	ASSERT_EQ(1, dev_read(fd, ev, 2));
	EXPECT_TRUE(is_set(ev, self->real, 0));
	close(fd);
}

/* Without CLOCK_SET there is no event; on other clocks SETUP with it is EINVAL */
TEST_F(set, told_only_who_asks)
{
	static const __u32 other[] = {
		TIMERWHEEL_CLOCK_MONOTONIC, TIMERWHEEL_CLOCK_BOOTTIME, TIMERWHEEL_CLOCK_MANUAL,
	};
	struct timerwheel_event ev;
	size_t i;

	if (!self->real)
		return;
	for (i = 0; i < ARRAY_SIZE(other); i++)
		EXPECT_EQ(-EINVAL, open_asking(other[i], 0));
	ASSERT_TRUE(shift_clock(HOUR));
	EXPECT_EQ(0, dev_poll(self->fd, 100));
	EXPECT_EQ(-EAGAIN, dev_read(self->fd, &ev, 1));
}

struct waiting {
	int fd;
	void *page;
	int ret;
};

static void *read_into_page(void *arg)
{
	struct waiting *w = arg;

	w->ret = tw_err(read(w->fd, w->page, 2 * sizeof(struct timerwheel_event)));
	return NULL;
}

/* If the buffer cannot be written the event keeps waiting */
TEST_F(set, told_after_fault)
{
	int fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0);
	struct timerwheel_event ev;

	if (!self->real)
		return;
	ASSERT_TRUE(shift_clock(HOUR));
	EXPECT_EQ(-EFAULT, tw_err(read(fd, tw_fence(sizeof(ev) / 2), sizeof(ev))));
	ASSERT_EQ(1, dev_read(fd, &ev, 1));
	EXPECT_TRUE(is_set(&ev, self->real + HOUR, 0));
	close(fd);
}

/*
 * If it is set while a read waits for the memory of its buffer, the event precedes all unread
 * events.
 */
TEST_F(set, told_first_after_wait)
{
	int fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0), uffd;
	struct waiting w = { .fd = fd };
	struct timerwheel_event ev;
	pthread_t thread;

	if (!self->real)
		return;
	w.page = tw_missing_page(&uffd);
	if (!w.page)
		SKIP(return, "this kernel has no userfaultfd");
	ASSERT_EQ(0, tw_add1(fd, 1, 0, self->real, TIMERWHEEL_ABS));
	ASSERT_EQ(POLLIN, dev_poll(fd, LONG_MS));
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_into_page, &w));
	ASSERT_EQ(POLLIN, dev_poll(uffd, LONG_MS));
	ASSERT_TRUE(set_clock(self->real + 2 * HOUR));
	EXPECT_EQ(POLLIN, dev_poll(fd, LONG_MS));
	tw_fill_page(uffd, w.page);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(sizeof(ev), w.ret);
	EXPECT_TRUE(is_set(w.page, self->real + 2 * HOUR, 0));
	ASSERT_EQ(1, dev_read(fd, &ev, 1));
	EXPECT_EQ(1, ev.key);
	close(uffd);
	close(fd);
}

struct asking {
	int fd;
	int ret;
	struct timerwheel_event ev;
};

static void *read_blocking(void *arg)
{
	struct asking *a = arg;

	a->ret = dev_read(a->fd, &a->ev, 1);
	return NULL;
}

static void *poll_long(void *arg)
{
	struct asking *a = arg;

	a->ret = dev_poll(a->fd, LONG_MS);
	return NULL;
}

/* Readers that sleep are woken, even without a timer */
TEST_F(set, told_asleep)
{
	struct asking a[2] = {
		{ .fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0) },
		{ .fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0) },
	};
	pthread_t id[2];

	if (!self->real)
		return;
	ASSERT_EQ(0, fcntl(a[0].fd, F_SETFL, O_RDWR));
	ASSERT_EQ(0, pthread_create(&id[0], NULL, read_blocking, &a[0]));
	ASSERT_EQ(0, pthread_create(&id[1], NULL, poll_long, &a[1]));
	usleep(100 * 1000);
	ASSERT_TRUE(shift_clock(HOUR));
	ASSERT_EQ(0, pthread_join(id[0], NULL));
	ASSERT_EQ(0, pthread_join(id[1], NULL));
	EXPECT_EQ(1, a[0].ret);
	EXPECT_TRUE(is_set(&a[0].ev, self->real + HOUR, 0));
	EXPECT_EQ(1, a[1].ret);
	EXPECT_EQ(1, dev_read(a[1].fd, &a[1].ev, 1));
	if (tw_timed())
		EXPECT_GT(self->mono + 10 * SEC, tw_now(CLOCK_MONOTONIC));
	close(a[0].fd);
	close(a[1].fd);
}

/* The task that sets the clock keeps the CPU. Timers that fire because of it follow its event. */
TEST_F(set, told_ahead)
{
	int fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 2);
	struct sched_param high = { .sched_priority = 99 }, normal = { 0 };
	struct timerwheel_event *in;
	struct timerwheel_ring *ring;
	__u64 until;
	int i;

	if (!self->real)
		return;
	ring = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    TIMERWHEEL_MMAP_RING);
	ASSERT_NE(MAP_FAILED, ring);
	in = (void *)ring + TIMERWHEEL_RING_EVENTS;
	ASSERT_EQ(0, tw_pin(0));
	ASSERT_EQ(0, tw_add1(fd, 1, 0, self->real + HOUR, TIMERWHEEL_ABS));
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_FIFO, &high));
	ASSERT_TRUE(set_clock(self->real + 2 * HOUR));
	until = tw_now(CLOCK_MONOTONIC) + 100 * MSEC;
	while (tw_now(CLOCK_MONOTONIC) < until)
		;
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_OTHER, &normal));
	for (i = 0; i < LONG_MS && __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) < 2; i++)
		usleep(1000);
	ASSERT_EQ(2, __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE));
	EXPECT_TRUE(is_set(&in[0], self->real + 2 * HOUR, 0));
	EXPECT_EQ(1, in[1].key);
	close(fd);
}

/* The event enters the ring ahead of the timer's event, once there is room; monitors get a copy */
TEST_F(set, told_ring)
{
	int fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 2), mon, i;
	struct timerwheel_monitor monitor = {
		.size = sizeof(monitor), .flags = TIMERWHEEL_MONITOR_NONBLOCK,
	};
	struct timerwheel_event ev[8], *in;
	struct timerwheel_ring *ring;

	if (!self->real)
		return;
	ASSERT_LE(0, fd);
	ring = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    TIMERWHEEL_MMAP_RING);
	ASSERT_NE(MAP_FAILED, ring);
	in = (void *)ring + TIMERWHEEL_RING_EVENTS;
	mon = dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &monitor);
	ASSERT_LE(0, mon);
	/* room for it, and for one timer */
	ASSERT_EQ(0, tw_add1(fd, 1, 0, self->real + HOUR, TIMERWHEEL_ABS));
	ASSERT_EQ(0, tw_add1(fd, 2, 0, self->real + HOUR + MINUTE, TIMERWHEEL_ABS));
	ASSERT_TRUE(set_clock(self->real + 2 * HOUR));
	for (i = 0; i < LONG_MS && ring->flags != TIMERWHEEL_RING_OVERFLOW; i++)
		usleep(1000);
	ASSERT_EQ(2, __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE));
	EXPECT_EQ(TIMERWHEEL_RING_OVERFLOW, ring->flags);
	EXPECT_TRUE(is_set(&in[0], self->real + 2 * HOUR, 0));
	EXPECT_EQ(1, in[1].key);
	/* no room: the event waits ahead of the other timer's event */
	ASSERT_TRUE(set_clock(self->real + 3 * HOUR));
	ASSERT_EQ(0, dev_ioctl(fd, TIMERWHEEL_IOC_FLOW, NULL));
	__atomic_store_n(&ring->head, 1, __ATOMIC_RELEASE);
	ASSERT_EQ(1, dev_ioctl(fd, TIMERWHEEL_IOC_FLOW, NULL));
	EXPECT_EQ(3, ring->tail);
	EXPECT_EQ(TIMERWHEEL_RING_OVERFLOW, ring->flags);
	EXPECT_TRUE(is_set(&in[0], self->real + 3 * HOUR, 0));
	__atomic_store_n(&ring->head, 3, __ATOMIC_RELEASE);
	ASSERT_EQ(1, dev_ioctl(fd, TIMERWHEEL_IOC_FLOW, NULL));
	EXPECT_EQ(2, in[1].key);
	EXPECT_EQ(0, ring->flags);
	/* an empty ring and no due timer: poll lets the event in and reports it */
	__atomic_store_n(&ring->head, 4, __ATOMIC_RELEASE);
	EXPECT_EQ(0, dev_poll(fd, 0));
	ASSERT_TRUE(set_clock(self->real));
	EXPECT_EQ(1, dev_poll(fd, 0));
	EXPECT_EQ(5, ring->tail);
	EXPECT_TRUE(is_set(&in[0], self->real, 0));
	ASSERT_EQ(5, dev_read(mon, ev, 8));
	for (i = 0; i < 5; i++)
		EXPECT_EQ(i % 2 ? 0 : TIMERWHEEL_EVENT_CLOCK_SET, ev[i].flags)
			TH_LOG("event %d", i);
	close(mon);
	close(fd);
}

/* poll reports it at once, before any other task has run */
TEST_F(set, told_poll)
{
	struct sched_param first = { .sched_priority = 1 };
	int fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0), i, known = 0;
	struct timerwheel_event ev;

	if (!self->real)
		return;
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_pin(0));
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_FIFO, &first));
	for (i = 1; i <= 20; i++) {
		ASSERT_TRUE(set_clock(self->real + i * HOUR));
		known += dev_poll(fd, 0) == POLLIN;
		ASSERT_EQ(1, dev_read(fd, &ev, 1));
	}
	EXPECT_EQ(20, known);
	close(fd);
}

/* A monitor gets a copy when the event is read */
TEST_F(set, told_monitor)
{
	int fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0), mon;
	struct timerwheel_monitor monitor = {
		.size = sizeof(monitor), .flags = TIMERWHEEL_MONITOR_NONBLOCK,
	};
	struct timerwheel_event ev, copy;

	if (!self->real)
		return;
	mon = dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &monitor);
	ASSERT_LE(0, mon);
	ASSERT_TRUE(shift_clock(HOUR));
	EXPECT_EQ(-EAGAIN, dev_read(mon, &copy, 1));
	ASSERT_EQ(1, dev_read(fd, &ev, 1));
	EXPECT_EQ(1, dev_poll(mon, 0));
	ASSERT_EQ(1, dev_read(mon, &copy, 1));
	EXPECT_EQ(0, memcmp(&ev, &copy, sizeof(ev)));
	EXPECT_EQ(-EAGAIN, dev_read(mon, &copy, 1));
	close(mon);
	close(fd);
}

/* Does setting the clock wake a task in poll on @fd, with exactly one event? */
static bool told_sleeper(int fd)
{
	struct asking a = { .fd = fd };
	__u64 mono = tw_now(CLOCK_MONOTONIC);
	pthread_t id;

	/* take earlier events */
	while (dev_read(fd, &a.ev, 1) == 1)
		;
	if (pthread_create(&id, NULL, poll_long, &a))
		return false;
	usleep(100 * 1000);
	return shift_clock(MINUTE) && !pthread_join(id, NULL) && a.ret == 1 &&
	       tw_now(CLOCK_MONOTONIC) < mono + 10 * SEC && dev_read(fd, &a.ev, 1) == 1 &&
	       is_set(&a.ev, 0, 0) && dev_read(fd, &a.ev, 1) == -EAGAIN;
}

/* A sleeping reader is woken each time while other wheels with CLOCK_SET are opened and closed */
TEST_F(set, told_after_others)
{
	int fd[4], i;

	if (!self->real)
		return;
	for (i = 0; i < 3; i++)
		fd[i] = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0);
	for (i = 0; i < 3; i++)
		EXPECT_TRUE(told_sleeper(fd[i]));
	fd[3] = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0);
	EXPECT_TRUE(told_sleeper(fd[3]));
	close(fd[0]);
	EXPECT_TRUE(told_sleeper(fd[3]));
	close(fd[3]);
	close(fd[2]);
	EXPECT_TRUE(told_sleeper(fd[1]));
	close(fd[1]);
	/* the first event after the last one */
	fd[0] = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0);
	EXPECT_TRUE(told_sleeper(fd[0]));
	close(fd[0]);
}

/* With a ring a task that sleeps on a monitor is woken, without a call and without a timer */
TEST_F(set, told_monitor_asleep)
{
	int fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 8), mon;
	struct timerwheel_monitor monitor = {
		.size = sizeof(monitor), .flags = TIMERWHEEL_MONITOR_NONBLOCK,
	};

	if (!self->real)
		return;
	mon = dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &monitor);
	ASSERT_LE(0, mon);
	EXPECT_TRUE(told_sleeper(mon));
	EXPECT_TRUE(told_sleeper(mon));
	close(mon);
	close(fd);
}

/* A task that sleeps on a monitor is woken when the event is read */
TEST_F(set, told_monitor_reader_asleep)
{
	struct timerwheel_monitor monitor = { .size = sizeof(monitor) };
	int fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0);
	struct asking a = { .fd = dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &monitor) };
	struct timerwheel_event ev;
	pthread_t id;
	int i;

	if (!self->real)
		return;
	ASSERT_LE(0, a.fd);
	ASSERT_EQ(0, pthread_create(&id, NULL, read_blocking, &a));
	usleep(100 * 1000);
	ASSERT_TRUE(shift_clock(HOUR));
	ASSERT_EQ(1, dev_read(fd, &ev, 1));
	for (i = 0; i < LONG_MS && !__atomic_load_n(&a.ret, __ATOMIC_ACQUIRE); i++)
		tw_sleep(MSEC);
	EXPECT_EQ(1, a.ret);
	/* This would wake it anyway. */
	close(fd);
	ASSERT_EQ(0, pthread_join(id, NULL));
	EXPECT_EQ(0, memcmp(&ev, &a.ev, sizeof(ev)));
	close(a.fd);
}

/* Ahead of more timers than the buffer can hold: no byte is written behind the buffer */
TEST_F(set, told_in_a_short_read)
{
	int fd = open_asking(TIMERWHEEL_CLOCK_REALTIME, 0), i;
	struct timerwheel_event ev[8];

	if (!self->real)
		return;
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, tw_add1(fd, i, 0, self->real - HOUR, TIMERWHEEL_ABS));
	ASSERT_TRUE(shift_clock(HOUR));
	tw_poison(ev, sizeof(ev));
	ASSERT_EQ(3 * sizeof(*ev), read(fd, ev, 3 * sizeof(*ev)));
	EXPECT_TRUE(is_set(ev, self->real + HOUR, 0));
	EXPECT_TRUE(tw_poisoned(ev + 3, 5 * sizeof(*ev)));
	EXPECT_EQ(3, dev_read(fd, ev, 8));
	close(fd);
}

/* Set back to before the deadline of a due periodic timer: it has no overruns */
TEST_F(set, backward_periodic)
{
	struct timerwheel_event ev;

	if (!self->real)
		return;
	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 0, self->real, MINUTE, TIMERWHEEL_ABS));
	ASSERT_EQ(POLLIN, dev_poll(self->fd, LONG_MS));
	ASSERT_TRUE(set_clock(self->real - 2 * HOUR));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(1, ev.key);
	EXPECT_EQ(0, ev.overruns);
	EXPECT_EQ(0, dev_poll(self->fd, 10));
}

struct setter {
	bool stop;
	bool failed;
};

static void *keep_setting(void *arg)
{
	struct setter *s = arg;
	__s64 by = HOUR;

	for (; !__atomic_load_n(&s->stop, __ATOMIC_RELAXED); by = -by)
		s->failed |= !shift_clock(by);
	if (by < 0)
		shift_clock(by);
	return NULL;
}

/* Wheels are opened and closed while the clock is set repeatedly */
TEST_F_TIMEOUT(set, told_and_closed, 300)
{
	struct setter setter = {};
	struct timerwheel_event ev;
	pthread_t id;
	int i, k, fd[20], told = 0;

	if (!self->real)
		return;
	ASSERT_EQ(0, pthread_create(&id, NULL, keep_setting, &setter));
	/* Continue until the other thread has run. */
	for (i = 0; i < 100 || (!told && i < 10000); i++) {
		for (k = 0; k < 20; k++) {
			fd[k] = open_asking(TIMERWHEEL_CLOCK_REALTIME, k % 3 ? 0 : 8);
			ASSERT_LE(0, fd[k]);
		}
		usleep(1000);
		for (k = 19; k >= 0; k--) {
			told += dev_read(fd[k], &ev, 1) == 1;
			close(fd[k]);
		}
	}
	__atomic_store_n(&setter.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(id, NULL));
	EXPECT_FALSE(setter.failed);
	EXPECT_LT(0, told);
}

/* Timers on the other clocks are not affected */
TEST_F(set, other_clocks)
{
	static const struct {
		__u32 clock;
		clockid_t id;
	} t[] = {
		{ TIMERWHEEL_CLOCK_MONOTONIC, CLOCK_MONOTONIC },
		{ TIMERWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME },
	};
	struct timerwheel_event ev;
	size_t i;

	if (!self->real)
		return;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		int fd = tw_open_clock(t[i].clock, TICK, 0);

		ASSERT_EQ(0, tw_add1(fd, 1, 0, 200 * MSEC, 0));
		ASSERT_TRUE(shift_clock(HOUR));
		ASSERT_EQ(1, wait_one(fd, &ev, LONG_MS));
		EXPECT_LE(ev.deadline, tw_now(t[i].id));
		EXPECT_TRUE(on_time(&ev, TICK, 0));
		ASSERT_EQ(0, tw_add1(fd, 1, 0, 50 * MSEC, 0));
		ASSERT_TRUE(shift_clock(-(__s64)HOUR));
		ASSERT_EQ(1, wait_one(fd, &ev, LONG_MS));
		EXPECT_TRUE(on_time(&ev, TICK, 0));
		close(fd);
	}
}

/* --- Time namespaces ---------------------------------------------------- */

/* The values that a child in another time namespace saw */
struct report {
	__u64 before, after;	/* times of its clock */
	__u64 deadline;		/* that it chose */
	int result;
	struct timerwheel_info info;
	struct timerwheel_entry ent[3];		/* by GET, LIST and DRAIN */
	struct timerwheel_event ev;
};

FIXTURE(namespace) {
	int fd;			/* opened outside */
	struct report *child;	/* memory shared with the child */
};

FIXTURE_VARIANT(namespace) {
	__u32 clock;
	clockid_t id;
	int shift;		/* clock of the namespace minus ours, in s: an hour is no delay */
	const char *offset;
};

FIXTURE_VARIANT_ADD(namespace, monotonic_plus) {
	TIMERWHEEL_CLOCK_MONOTONIC, CLOCK_MONOTONIC, 3600, "monotonic 3600 0\n",
};

FIXTURE_VARIANT_ADD(namespace, monotonic_minus) {
	TIMERWHEEL_CLOCK_MONOTONIC, CLOCK_MONOTONIC, -10, "monotonic -10 0\n",
};

FIXTURE_VARIANT_ADD(namespace, boottime_plus) {
	TIMERWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME, 3600, "boottime 3600 0\n",
};

FIXTURE_VARIANT_ADD(namespace, boottime_minus) {
	TIMERWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME, -10, "boottime -10 0\n",
};

FIXTURE_VARIANT_ADD(namespace, realtime) {
	TIMERWHEEL_CLOCK_REALTIME, CLOCK_REALTIME, 0, "monotonic 3600 0\n",
};

FIXTURE_SETUP(namespace)
{
	int fd;

	self->fd = tw_open_clock(variant->clock, TICK, 0);
	ASSERT_LE(0, self->fd);
	self->child = mmap(NULL, sizeof(*self->child), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* A clock does not go below 0. */
	tw_sleep_until(CLOCK_MONOTONIC, 12 * SEC);
	/* From now on children are in the other namespace. */
	if (unshare(CLONE_NEWTIME)) {
		self->child = NULL;
		SKIP(return, "no time namespaces here");
	}
	fd = open("/proc/self/timens_offsets", O_WRONLY);
	ASSERT_EQ(strlen(variant->offset), write(fd, variant->offset, strlen(variant->offset)));
	close(fd);
}

FIXTURE_TEARDOWN(namespace)
{
	close(self->fd);
}

/* The operation of the child */
enum { ABSOLUTE, SEVERAL, RELATIVE, PAST, ORIGIN, AGO, LOOK, READ, ARM, LAST };

/* Arm @key and, in the same call, another timer an hour later */
static int add_several(int fd, __u64 key, __u64 deadline)
{
	struct timerwheel_add add[] = {
		{ .key = key + 1, .deadline = deadline + HOUR, .flags = TIMERWHEEL_ABS },
		{ .key = key, .deadline = deadline, .flags = TIMERWHEEL_ABS },
	};

	return dev_add(fd, add, 2) == 2 ? add[1].result : -EIO;
}

/* Run it in a child. Returns false if that is not possible here. */
static bool in_namespace(FIXTURE_DATA(namespace) * self,
			 const FIXTURE_VARIANT(namespace) * variant, int what)
{
	struct report *r = self->child;
	__u64 cursor = 0;
	pid_t pid;
	int fd;

	if (!r)
		return false;
	pid = fork();
	if (pid) {
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			abort();
		return true;
	}
	r->before = tw_now(variant->id);
	fd = what < LOOK ? tw_open_clock(variant->clock, TICK, 0) : self->fd;
	r->deadline = r->before + 50 * MSEC;
	switch (what) {
	case ABSOLUTE:
		r->result = tw_add1(fd, 1, 0, r->deadline, TIMERWHEEL_ABS);
		break;
	case SEVERAL:
		r->result = add_several(fd, 1, r->deadline);
		break;
	case RELATIVE:
		r->result = tw_add1(fd, 1, 0, 50 * MSEC, 0);
		break;
	case PAST:
		r->result = tw_add1(fd, 1, 0, r->before - 1, TIMERWHEEL_ABS);
		break;
	case ORIGIN:
		r->result = tw_add1(fd, 1, 0, 1, TIMERWHEEL_ABS);
		break;
	case AGO:
		r->result = tw_add1(fd, 1, 0, -SEC, 0);
		break;
	case LOOK:
		r->result = tw_get1(fd, 1, &r->ent[0]);
		if (!tw_info(fd, &r->info))
			r->after = tw_now(variant->id);
		tw_list(fd, &cursor, &r->ent[1], 1);
		tw_drain(fd, 0, &r->ent[2], 1);
		_exit(0);
	case ARM:
		r->result = tw_add1(fd, 1, 0, r->deadline, TIMERWHEEL_ABS);
		_exit(0);
	case LAST:
		r->result = tw_add1(fd, 1, 0, TIMERWHEEL_TIME_MAX, TIMERWHEEL_ABS);
		_exit(0);
	}
	wait_one(fd, &r->ev, what == PAST || what == ORIGIN || what == AGO ? 0 : LONG_MS);
	r->after = tw_now(variant->id);
	_exit(0);
}

/* Check a deadline of the child's clock */
static void asks(struct __test_metadata *_metadata, FIXTURE_DATA(namespace) * self,
		 const FIXTURE_VARIANT(namespace) * variant, int what)
{
	const struct report *r = self->child;
	__u64 shift = variant->shift * (__s64)SEC;

	if (!in_namespace(self, variant, what))
		return;
	EXPECT_GE(tw_now(variant->id) + shift, r->after);
	EXPECT_EQ(0, r->result);
	EXPECT_EQ(1, r->ev.key);
	EXPECT_EQ(r->deadline, r->ev.deadline);
	EXPECT_TRUE(on_time(&r->ev, TICK, 0));
	EXPECT_GE(r->after, r->ev.fired);
	if (tw_timed())
		EXPECT_GT(r->deadline + 10 * SEC, r->after);
}

/* Absolute deadlines and the times in events belong to the caller's clock. */
TEST_F(namespace, absolute)
{
	asks(_metadata, self, variant, ABSOLUTE);
}

/* The same for several timers in a call */
TEST_F(namespace, absolute_several)
{
	asks(_metadata, self, variant, SEVERAL);
}

/* Relative deadlines are the same everywhere */
TEST_F(namespace, relative)
{
	const struct report *r = self->child;

	if (!in_namespace(self, variant, RELATIVE))
		return;
	EXPECT_EQ(0, r->result);
	EXPECT_EQ(1, r->ev.key);
	EXPECT_LE(r->before + 50 * MSEC, r->ev.deadline);
	EXPECT_TRUE(on_time(&r->ev, TICK, 0));
	EXPECT_GE(r->after, r->ev.fired);
}

/* A time in the past of the caller's clock is due at once */
TEST_F(namespace, past)
{
	const struct report *r = self->child;

	if (!in_namespace(self, variant, PAST))
		return;
	EXPECT_EQ(0, r->result);
	EXPECT_EQ(1, r->ev.key);
	EXPECT_EQ(r->before - 1, r->ev.deadline);
}

/* A time before the wheel's time began is also due at once */
TEST_F(namespace, origin)
{
	const struct report *r = self->child;

	if (!in_namespace(self, variant, ORIGIN))
		return;
	EXPECT_EQ(0, r->result);
	EXPECT_EQ(1, r->ev.key);
	EXPECT_LE(r->before, r->ev.fired);
}

/* The largest time is the same everywhere: no deadline is beyond it, on any clock */
TEST_F(namespace, last)
{
	__u64 ahead = variant->shift > 0 ? variant->shift * SEC : 0;
	const struct report *r = self->child;
	struct timerwheel_entry ent;

	if (!in_namespace(self, variant, LAST))
		return;
	EXPECT_EQ(0, r->result);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_get1(self->fd, 1, &ent));
	EXPECT_EQ(TIMERWHEEL_TIME_MAX - ahead, ent.deadline);
	EXPECT_LT(0, ent.left);
}

/* A negative delay is due at once, whatever the time of the caller's clock */
TEST_F(namespace, ago)
{
	const struct report *r = self->child;

	if (!in_namespace(self, variant, AGO))
		return;
	EXPECT_EQ(0, r->result);
	EXPECT_EQ(1, r->ev.key);
	EXPECT_LE(r->before - SEC, r->ev.deadline);
	EXPECT_GE(r->after - SEC, r->ev.deadline);
	EXPECT_LE(r->before, r->ev.fired);
}

/* GET, LIST, DRAIN and INFO report times of the caller's clock, whichever task armed the timer */
TEST_F(namespace, look)
{
	__u64 deadline = tw_now(variant->id) + HOUR;
	const struct report *r = self->child;
	__u64 after;
	int i;

	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, deadline, TIMERWHEEL_ABS));
	if (!in_namespace(self, variant, LOOK))
		return;
	after = tw_now(variant->id);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, r->result);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(deadline + variant->shift * (__s64)SEC, r->ent[i].deadline);
		EXPECT_GT(HOUR, r->ent[i].left);
		EXPECT_LE(deadline - after, r->ent[i].left);
	}
	EXPECT_LE(r->before, r->info.now);
	EXPECT_GE(r->after, r->info.now);
}

/* Events have times of the reader's clock, whichever task armed the timer */
TEST_F(namespace, read)
{
	__u64 deadline = tw_now(variant->id) + 100 * MSEC;
	const struct report *r = self->child;

	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, deadline, TIMERWHEEL_ABS));
	if (!in_namespace(self, variant, READ))
		return;
	EXPECT_EQ(1, r->ev.key);
	EXPECT_EQ(deadline + variant->shift * (__s64)SEC, r->ev.deadline);
	EXPECT_TRUE(on_time(&r->ev, TICK, 0));
	EXPECT_GE(r->after, r->ev.fired);
}

/* The other way round: armed in the namespace, read outside */
TEST_F(namespace, arm)
{
	const struct report *r = self->child;
	struct timerwheel_event ev;

	if (!in_namespace(self, variant, ARM))
		return;
	EXPECT_EQ(0, r->result);
	ASSERT_EQ(1, wait_one(self->fd, &ev, LONG_MS));
	EXPECT_EQ(r->deadline - variant->shift * (__s64)SEC, ev.deadline);
	EXPECT_TRUE(on_time(&ev, TICK, 0));
	EXPECT_GE(tw_now(variant->id), ev.fired);
}

TEST_HARNESS_MAIN
