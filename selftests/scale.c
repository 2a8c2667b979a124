// SPDX-License-Identifier: GPL-2.0
/*
 * scale: one million timers through every operation, what one of them costs in
 * time (printed) and in memory (bounded), and how long the kernel works on them
 * at a stretch.
 *
 * TW_SCALE: how many timers (1000000).
 */
#define _GNU_SOURCE
#include "tw_test.h"

#define PAGE		4096	/* timers in one call */
#define TIMEOUT		900	/* for one test, in s */
#define LONG_MS		20000
#define SPREAD		20	/* s over which timers are due */
#define EV_SIZE		sizeof(struct timerwheel_event)

/* As documented: what a wheel may take */
#define IDLE_BYTES	(16 << 10)
#define ONE_BYTES	(64 << 10)
#define TIMER_BYTES	70

/* Most timers that one pass may handle; how long it may take is asserted in time.c. */

/* How a timer is to end */
enum end { FIRES, IS_REMOVED, IS_MOVED };

static __u64 value_of(__u32 key)
{
	return ~(__u64)key * 0x9e3779b97f4a7c15ULL;
}

/* Keys are spread over all of their range, and one can be turned back */
static __u64 key_of(__u32 i)
{
	return i * 0x9e3779b97f4a7c15ULL;
}

static __u32 timer_of(__u64 key)
{
	return key * 0xf1de83e19937733dULL;
}

static enum end end_of(__u32 i)
{
	return i % 3;
}

/* A wheel and what is known of its timers */
struct timers {
	int fd;
	__u32 n;
	__u64 seed;
	__u64 *deadline;	/* of each, from some base on */
	unsigned char *seen;
};

/* Returns 0, or -errno; -EDQUOT if this user may not have so many */
static int timers_open(struct timers *t, __u32 clock)
{
	struct timerwheel_info info;

	t->n = tw_scale();
	t->seed = tw_seed();
	t->deadline = calloc(t->n, sizeof(*t->deadline));
	t->seen = calloc(t->n, 1);
	t->fd = clock ? tw_open_clock(clock, 0, 0) : dev_open(O_NONBLOCK);
	if (t->fd < 0)
		return t->fd;
	if (!t->deadline || !t->seen)
		return -ENOMEM;
	return tw_info(t->fd, &info) ?:
	       t->n > (info.user_memory_max - info.user_memory) / 80 ? -EDQUOT : 0;
}

static void timers_close(struct timers *t)
{
	free(t->deadline);
	free(t->seen);
	close(t->fd);
}

/* What depends on the clock... */
FIXTURE(scale) {
	struct timers t;
};

FIXTURE_VARIANT(scale) {
	__u32 clock;
};

FIXTURE_VARIANT_ADD(scale, manual) {
	.clock = TIMERWHEEL_CLOCK_MANUAL,
};

FIXTURE_VARIANT_ADD(scale, monotonic) {
	.clock = TIMERWHEEL_CLOCK_MONOTONIC,
};

FIXTURE_SETUP(scale)
{
	ASSERT_EQ(0, timers_open(&self->t, variant->clock));
}

FIXTURE_TEARDOWN(scale)
{
	timers_close(&self->t);
}

/* ...and what does not */
FIXTURE(million) {
	struct timers t;
};

FIXTURE_SETUP(million)
{
	ASSERT_EQ(0, timers_open(&self->t, TIMERWHEEL_CLOCK_MONOTONIC));
}

FIXTURE_TEARDOWN(million)
{
	timers_close(&self->t);
}

/* --- Helpers ------------------------------------------------------------------ */

static __u64 now_of(int fd)
{
	struct timerwheel_info info;

	return tw_info(fd, &info) ? 0 : info.now;
}

/* Say what one of @n operations took since @since, the filling of arrays included */
static void report(const char *what, __u32 n, __u64 since)
{
	__u64 ns = tw_now(CLOCK_MONOTONIC) - since;

	printf("# %-28s %8u timers %8.1f ns each\n", what, n, n ? (double)ns / n : 0);
	fflush(stdout);
}

/* Arm all, absolute, each at @base + its deadline[]. 0, or what went wrong. */
static int add_all(const struct timers *t, __u64 base)
{
	static struct timerwheel_add add[PAGE];
	__u64 since = tw_now(CLOCK_MONOTONIC);
	__u32 i, k, part;
	int ret;

	memset(add, 0, sizeof(add));
	for (i = 0; i < t->n; i += part) {
		part = t->n - i < PAGE ? t->n - i : PAGE;
		for (k = 0; k < part; k++) {
			add[k].key = key_of(i + k);
			add[k].value = value_of(i + k);
			add[k].deadline = base + t->deadline[i + k];
			add[k].flags = TIMERWHEEL_ABS;
		}
		ret = dev_add(t->fd, add, part);
		if (ret != (int)part)
			return ret < 0 ? ret : -EPROTO;
		for (k = 0; k < part; k++) {
			if (add[k].result)
				return add[k].result;
		}
	}
	report("ADD", t->n, since);
	return 0;
}

/* GET every 16th and compare */
static int get_some(const struct timers *t, __u64 base)
{
	static struct timerwheel_entry ent[PAGE];
	__u64 since = tw_now(CLOCK_MONOTONIC);
	__u32 i, k, part, all = t->n / 16;
	int ret;

	for (i = 0; i < all; i += part) {
		part = all - i < PAGE ? all - i : PAGE;
		memset(ent, 0, sizeof(ent));
		for (k = 0; k < part; k++)
			ent[k].key = key_of((i + k) * 16);
		ret = dev_get(t->fd, ent, part);
		if (ret != (int)part)
			return ret < 0 ? ret : -EPROTO;
		for (k = 0; k < part; k++) {
			if (ent[k].result != TIMERWHEEL_WAS_PENDING ||
			    ent[k].value != value_of((i + k) * 16) ||
			    ent[k].deadline != base + t->deadline[(i + k) * 16])
				return -EPROTO;
		}
	}
	report("GET", all, since);
	return 0;
}

/* Move one third, to other times of the same range */
static int move_third(struct timers *t, __u64 base)
{
	static struct timerwheel_move move[PAGE];
	__u64 since = tw_now(CLOCK_MONOTONIC);
	__u32 i, k = 0, moved = 0;
	int ret;

	memset(move, 0, sizeof(move));
	for (i = 0; i < t->n; i++) {
		if (end_of(i) == IS_MOVED) {
			t->deadline[i] = SEC + tw_rand(&t->seed) % (SPREAD * SEC);
			move[k].key = key_of(i);
			move[k].deadline = base + t->deadline[i];
			move[k++].flags = TIMERWHEEL_ABS;
		}
		if (k < PAGE && i < t->n - 1)
			continue;
		ret = dev_move(t->fd, move, k);
		if (ret != (int)k)
			return ret < 0 ? ret : -EPROTO;
		for (moved += k; k; k--) {
			if (move[k - 1].result != TIMERWHEEL_WAS_PENDING)
				return -EPROTO;
		}
	}
	report("MOVE", moved, since);
	return 0;
}

static int remove_third(const struct timers *t)
{
	static struct timerwheel_remove rem[PAGE];
	__u64 since = tw_now(CLOCK_MONOTONIC);
	__u32 i, k = 0, removed = 0;
	int ret;

	memset(rem, 0, sizeof(rem));
	for (i = 0; i < t->n; i++) {
		if (end_of(i) == IS_REMOVED)
			rem[k++].key = key_of(i);
		if (k < PAGE && i < t->n - 1)
			continue;
		ret = dev_remove(t->fd, rem, k);
		if (ret != (int)k)
			return ret < 0 ? ret : -EPROTO;
		for (removed += k; k; k--) {
			if (rem[k - 1].result != TIMERWHEEL_WAS_PENDING ||
			    rem[k - 1].value != value_of(timer_of(rem[k - 1].key)))
				return -EPROTO;
		}
	}
	report("REMOVE", removed, since);
	return 0;
}

/* What was wrong with events */
struct faults {
	__u32 got;
	__u32 strange;		/* never armed like that */
	__u32 early;
	__u32 late_max;		/* in us */
};

static void take_events(struct timers *t, struct faults *f, const struct timerwheel_event *ev,
			int n, __u64 base)
{
	int k;

	for (k = 0; k < n; k++) {
		__u32 i = timer_of(ev[k].key);
		__u64 late = (ev[k].fired - ev[k].deadline) / USEC;

		if (i >= t->n || ev[k].key != key_of(i) || ev[k].value != value_of(i) ||
		    ev[k].deadline != base + t->deadline[i]) {
			f->strange++;
			continue;
		}
		f->early += ev[k].fired < ev[k].deadline;
		if (ev[k].fired >= ev[k].deadline && late > f->late_max)
			f->late_max = late;
		t->seen[i]++;
	}
	f->got += n;
}

/*
 * Collect @want events, on the MANUAL clock moving it on by 10 ms each time. Returns
 * 0, -ETIMEDOUT when they do not come, or what went wrong.
 */
static int collect(struct timers *t, bool manual, __u32 want, struct faults *f, __u64 base)
{
	static struct timerwheel_event ev[PAGE];
	__u64 since = tw_now(CLOCK_MONOTONIC), spent = 0, began;
	int steps = 0;
	ssize_t n;

	while (f->got < want) {
		if (manual && (steps++ > 10000 || tw_advance(t->fd, 0, 10 * MSEC) < 0))
			return -ETIMEDOUT;
		if (!manual && dev_poll(t->fd, 60000) <= 0)
			return -ETIMEDOUT;
		began = tw_now(CLOCK_MONOTONIC);
		/* dev_read() would spend more on poison than the kernel on events */
		while ((n = read(t->fd, ev, sizeof(ev))) > 0)
			take_events(t, f, ev, n / EV_SIZE, base);
		spent += tw_now(CLOCK_MONOTONIC) - began;
		if (!n || errno != EAGAIN)
			return -EPROTO;
	}
	report(manual ? "ADVANCE and read" : "expire and read, waits too", f->got, since);
	report("read and check alone", f->got, tw_now(CLOCK_MONOTONIC) - spent);
	return 0;
}

/* DRAIN until nothing is left. Returns how many there were. */
static int drain_all(struct timers *t)
{
	static struct timerwheel_entry ent[PAGE];
	__u64 since = tw_now(CLOCK_MONOTONIC);
	int k, ret, total = 0;

	while ((ret = tw_drain(t->fd, 0, ent, PAGE)) > 0) {
		for (k = 0; k < ret; k++) {
			__u32 i = timer_of(ent[k].key);

			if (i >= t->n || ent[k].key != key_of(i) || ent[k].value != value_of(i))
				return -EPROTO;
			t->seen[i]++;
		}
		total += ret;
	}
	report("DRAIN", total, since);
	return ret < 0 ? ret : total;
}

static void random_deadlines(struct timers *t)
{
	__u32 i;

	for (i = 0; i < t->n; i++)
		t->deadline[i] = SEC + tw_rand(&t->seed) % (SPREAD * SEC);
}

/* --- Operations ------------------------------------------------------------------- */

/*
 * A million timers armed, a third moved, a third removed: the others fire, each once,
 * none early, and no other does.
 */
TEST_F_TIMEOUT(scale, life_of_a_million, TIMEOUT)
{
	bool manual = variant->clock == TIMERWHEEL_CLOCK_MANUAL;
	__u32 i, removed = 0, lost = 0, twice = 0, n = self->t.n;
	struct timerwheel_stats st;
	struct faults f = { 0 };
	__u64 base;

	TH_LOG("TW_SEED=%llu", (unsigned long long)self->t.seed);
	random_deadlines(&self->t);
	/* on a running clock, time enough to arm, move and remove them all before */
	base = now_of(self->t.fd) + (manual ? 0 : 25 * SEC);
	ASSERT_EQ(0, add_all(&self->t, base));
	ASSERT_EQ(0, get_some(&self->t, base));
	ASSERT_EQ(0, move_third(&self->t, base));
	ASSERT_EQ(0, remove_third(&self->t));
	for (i = 0; i < n; i++)
		removed += end_of(i) == IS_REMOVED;
	ASSERT_EQ(0, collect(&self->t, manual, n - removed, &f, base));
	for (i = 0; i < n; i++) {
		twice += self->t.seen[i] > (end_of(i) != IS_REMOVED);
		lost += self->t.seen[i] < (end_of(i) != IS_REMOVED);
	}
	EXPECT_EQ(0, f.strange);
	EXPECT_EQ(0, f.early);
	EXPECT_EQ(0, lost);
	EXPECT_EQ(0, twice);
	ASSERT_EQ(0, tw_stats(self->t.fd, &st));
	EXPECT_EQ(0, st.pending + st.due);
	EXPECT_TRUE(tw_balanced(&st));
	printf("# latest %.3f ms, longest pass %llu us, most timers in a pass %llu\n",
	       f.late_max / 1e3, (unsigned long long)st.pass_max_ns / 1000,
	       (unsigned long long)st.pass_max_timers);
	fflush(stdout);
}

/* DRAIN returns each of a million exactly once. */
TEST_F_TIMEOUT(million, drain, TIMEOUT)
{
	__u32 i, n = self->t.n;

	random_deadlines(&self->t);
	ASSERT_EQ(0, add_all(&self->t, now_of(self->t.fd) + HOUR));
	ASSERT_EQ(n, drain_all(&self->t));
	for (i = 0; i < n; i++) {
		if (self->t.seen[i] != 1)
			break;
	}
	EXPECT_EQ(n, i);
}

/* LIST shows each of a million exactly once. */
TEST_F_TIMEOUT(million, list, TIMEOUT)
{
	static struct timerwheel_entry ent[PAGE];
	__u32 i, total = 0, n = self->t.n;
	__u64 since, cursor = 0;
	int k, ret;

	random_deadlines(&self->t);
	ASSERT_EQ(0, add_all(&self->t, now_of(self->t.fd) + HOUR));
	since = tw_now(CLOCK_MONOTONIC);
	while ((ret = tw_list(self->t.fd, &cursor, ent, PAGE)) > 0) {
		for (k = 0; k < ret; k++) {
			ASSERT_LT(timer_of(ent[k].key), n);
			self->t.seen[timer_of(ent[k].key)]++;
		}
		total += ret;
	}
	ASSERT_EQ(0, ret);
	report("LIST", total, since);
	ASSERT_EQ(n, total);
	for (i = 0; i < n; i++) {
		if (self->t.seen[i] != 1)
			break;
	}
	EXPECT_EQ(n, i);
}

/* A million due in the same tick: each is delivered once, none early. */
TEST_F_TIMEOUT(scale, a_million_in_one_tick, TIMEOUT)
{
	bool manual = variant->clock == TIMERWHEEL_CLOCK_MANUAL;
	struct faults f = { 0 };
	__u32 i, n = self->t.n;
	__u64 base;

	base = now_of(self->t.fd) + (manual ? 50 * MSEC : 12 * SEC);
	ASSERT_EQ(0, add_all(&self->t, base));
	ASSERT_EQ(0, collect(&self->t, manual, n, &f, base));
	for (i = 0; i < n; i++) {
		if (self->t.seen[i] != 1)
			break;
	}
	EXPECT_EQ(n, i);
	EXPECT_EQ(0, f.strange);
	EXPECT_EQ(0, f.early);
}

/* One pass handles a bounded number of them, not all. */
TEST_F_TIMEOUT(scale, pass_is_bounded, TIMEOUT)
{
	bool manual = variant->clock == TIMERWHEEL_CLOCK_MANUAL;
	struct timerwheel_stats st;
	struct faults f = { 0 };
	__u32 n = self->t.n;
	__u64 base;

	base = now_of(self->t.fd) + (manual ? 50 * MSEC : 12 * SEC);
	ASSERT_EQ(0, add_all(&self->t, base));
	ASSERT_EQ(0, collect(&self->t, manual, n, &f, base));
	ASSERT_EQ(0, tw_stats(self->t.fd, &st));
	printf("# %llu passes, of at most %llu timers and %llu us\n",
	       (unsigned long long)st.passes, (unsigned long long)st.pass_max_timers,
	       (unsigned long long)st.pass_max_ns / 1000);
	fflush(stdout);
	EXPECT_GE(TW_BATCH_TIMERS, st.pass_max_timers);
}

/*
 * STATS counts passes and their length: so many of at most that length made it all. Most are
 * full: half of one may be kept free for a backlog, and a tick's last may be short.
 */
TEST_F_TIMEOUT(scale, passes_are_counted, TIMEOUT)
{
	bool manual = variant->clock == TIMERWHEEL_CLOCK_MANUAL;
	struct timerwheel_stats st;
	struct faults f = { 0 };
	__u32 n = self->t.n / 10;
	__u64 base;

	self->t.n = n;
	base = now_of(self->t.fd) + (manual ? 50 * MSEC : 5 * SEC);
	ASSERT_EQ(0, add_all(&self->t, base));
	ASSERT_EQ(0, collect(&self->t, manual, n, &f, base));
	ASSERT_EQ(0, tw_stats(self->t.fd, &st));
	printf("# %llu passes for %u timers, %llu at most\n", (unsigned long long)st.passes, n,
	       (unsigned long long)st.pass_max_timers);
	fflush(stdout);
	EXPECT_GE(TW_BATCH_TIMERS, st.pass_max_timers);
	EXPECT_LE(n, st.passes * st.pass_max_timers);
	EXPECT_GE(n / (TW_BATCH_TIMERS / 4), st.passes);
}

/* A batch of the largest size does all of its elements. */
TEST_F_TIMEOUT(million, largest_batch, TIMEOUT)
{
	struct timerwheel_add *add = calloc(TIMERWHEEL_BATCH_MAX, sizeof(*add));
	struct timerwheel_remove *rem = calloc(TIMERWHEEL_BATCH_MAX, sizeof(*rem));
	__u32 i;

	ASSERT_NE(NULL, add);
	ASSERT_NE(NULL, rem);
	for (i = 0; i < TIMERWHEEL_BATCH_MAX; i++) {
		add[i].key = key_of(i);
		add[i].deadline = HOUR;
		rem[i].key = key_of(i);
	}
	ASSERT_EQ(TIMERWHEEL_BATCH_MAX, dev_add(self->t.fd, add, TIMERWHEEL_BATCH_MAX));
	ASSERT_EQ(TIMERWHEEL_BATCH_MAX, dev_remove(self->t.fd, rem, TIMERWHEEL_BATCH_MAX));
	for (i = 0; i < TIMERWHEEL_BATCH_MAX; i++) {
		if (add[i].result != TIMERWHEEL_WAS_NONE ||
		    rem[i].result != TIMERWHEEL_WAS_PENDING)
			break;
	}
	EXPECT_EQ(TIMERWHEEL_BATCH_MAX, i);
	free(add);
	free(rem);
}

/* --- Memory ------------------------------------------------------------------------- */

/* A million timers take at most 70 bytes each, all told (and not less than they can). */
TEST_F_TIMEOUT(million, memory_per_timer, TIMEOUT)
{
	struct timerwheel_stats st;
	__u32 n = self->t.n;

	random_deadlines(&self->t);
	ASSERT_EQ(0, add_all(&self->t, now_of(self->t.fd) + HOUR));
	ASSERT_EQ(0, tw_stats(self->t.fd, &st));
	printf("# %.2f bytes a timer\n", (double)st.memory / n);
	fflush(stdout);
	EXPECT_GE((__u64)TIMER_BYTES * n, st.memory);
	EXPECT_LE(64ULL * n, st.memory);
}

/* An idle wheel takes less than 16 kB... */
TEST_F(million, memory_idle)
{
	struct timerwheel_stats st;

	ASSERT_EQ(0, tw_stats(self->t.fd, &st));
	printf("# %llu bytes without a timer\n", (unsigned long long)st.memory);
	fflush(stdout);
	EXPECT_GT(IDLE_BYTES, st.memory);
}

/* ...and one with a single timer less than 64 kB. */
TEST_F(million, memory_of_one)
{
	struct timerwheel_stats st;

	ASSERT_EQ(0, tw_add1(self->t.fd, 1, 1, HOUR, 0));
	ASSERT_EQ(0, tw_stats(self->t.fd, &st));
	printf("# %llu bytes with one timer\n", (unsigned long long)st.memory);
	fflush(stdout);
	EXPECT_GT(ONE_BYTES, st.memory);
}

/*
 * What was removed is used again: a second million takes no more than the first. On one
 * CPU: another one may keep up to 128 free timers for itself.
 */
TEST_F_TIMEOUT(million, memory_is_used_again, TIMEOUT)
{
	struct timerwheel_stats first, second;
	__u32 n = self->t.n;

	ASSERT_EQ(0, tw_pin(0));
	ASSERT_EQ(0, add_all(&self->t, now_of(self->t.fd) + HOUR));
	ASSERT_EQ(0, tw_stats(self->t.fd, &first));
	ASSERT_EQ(n, drain_all(&self->t));
	ASSERT_EQ(0, add_all(&self->t, now_of(self->t.fd) + HOUR));
	ASSERT_EQ(0, tw_stats(self->t.fd, &second));
	EXPECT_EQ(first.memory, second.memory);
}

/* The same when they were not removed but delivered. */
TEST_F_TIMEOUT(million, memory_is_used_again_after_delivery, TIMEOUT)
{
	struct timerwheel_stats first, second;
	struct faults f = { 0 };
	__u32 n = self->t.n;
	__u64 base = now_of(self->t.fd);

	ASSERT_EQ(0, tw_pin(0));
	ASSERT_EQ(0, add_all(&self->t, base));
	ASSERT_EQ(0, tw_stats(self->t.fd, &first));
	ASSERT_EQ(0, collect(&self->t, false, n, &f, base));
	ASSERT_EQ(0, add_all(&self->t, now_of(self->t.fd) + HOUR));
	ASSERT_EQ(0, tw_stats(self->t.fd, &second));
	EXPECT_EQ(first.memory, second.memory);
}

/* A wheel of the default size takes at least a million. */
TEST_F(million, capacity_by_default)
{
	struct timerwheel_info info;

	ASSERT_EQ(0, tw_info(self->t.fd, &info));
	EXPECT_EQ(4 << 20, info.capacity);
}

/* A wheel with a capacity takes as many, and not one more. */
TEST_F_TIMEOUT(million, capacity_is_exact, TIMEOUT)
{
	struct timerwheel_setup setup = { .capacity = self->t.n };

	ASSERT_EQ(0, dev_setup(self->t.fd, &setup));
	ASSERT_EQ(0, add_all(&self->t, now_of(self->t.fd) + HOUR));
	EXPECT_EQ(-ENOSPC, tw_add1(self->t.fd, key_of(self->t.n), 0, HOUR, 0));
}

TEST_HARNESS_MAIN
