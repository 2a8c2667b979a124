// SPDX-License-Identifier: GPL-2.0
/*
 * scale: every operation on a million timers. Prints the time per timer, and asserts the memory per
 * timer and the number of timers in one expiry batch (time.c asserts the duration of a batch).
 *
 * TW_SCALE: number of timers (1000000)
 */
#define _GNU_SOURCE
#include "tw_test.h"

#define PAGE		4096	/* timers in one call */
#define TIMEOUT		900	/* for one test, in s */
#define SPREAD		20	/* s over which timers are due */
#define EV_SIZE		sizeof(struct timerwheel_event)

/* The documented limits on memory: a wheel without a timer, a wheel with one, and each timer */
#define IDLE_BYTES	(16 << 10)
#define ONE_BYTES	(64 << 10)
#define TIMER_BYTES	70

/* How a timer ends */
enum end { FIRES, IS_REMOVED, IS_MOVED };

static __u64 value_of(__u32 key)
{
	return ~(__u64)key * 0x9e3779b97f4a7c15ULL;
}

/* Keys are spread over the whole range; timer_of() is the inverse. */
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

/* A wheel and the expected state of its timers */
struct timers {
	int fd;
	__u32 n;
	__u64 seed;
	__u64 *deadline;	/* of each timer, relative to a base that the test chooses */
	unsigned char *seen;
};

/* A wheel for @n timers, with the default capacity if it suffices. Returns it or -errno. */
static int timers_wheel(__u32 n, __u32 clock)
{
	struct timerwheel_setup setup = { .size = sizeof(setup), .clock = clock };
	int fd = dev_open(O_NONBLOCK), err;

	if (fd < 0)
		return fd;
	if (n > 4194304)
		setup.capacity = n;
	/* Some tests have their own settings. */
	err = clock || setup.capacity ? dev_setup(fd, &setup) : 0;
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* Returns 0 or -errno; -EDQUOT: the user's limit on memory is too low for the timers */
static int timers_open(struct timers *t, __u32 clock)
{
	struct timerwheel_info info;

	t->n = tw_scale();
	t->seed = tw_seed();
	t->deadline = calloc(t->n, sizeof(*t->deadline));
	t->seen = calloc(t->n, 1);
	t->fd = timers_wheel(t->n, clock);
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

/* Tests that run with both clocks */
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

/* Tests that do not depend on the clock */
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

/* Print the time of each of @n operations since @since, including the filling of arrays. */
static void report(const char *what, __u32 n, __u64 since)
{
	__u64 ns = tw_now(CLOCK_MONOTONIC) - since;

	printf("# %-28s %8u timers %8.1f ns each\n", what, n, n ? (double)ns / n : 0);
	fflush(stdout);
}

/* Arm all timers for the absolute times @base + deadline[]. Returns 0 or a negative error. */
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

/*
 * Does this result show a waiting timer? On a slow machine the first timers, a second after @base,
 * may have fallen due, which has no other effect until a read.
 */
static bool waits(const struct timers *t, int result, __u64 base)
{
	return result == TIMERWHEEL_WAS_PENDING ||
	       (result == TIMERWHEEL_WAS_DUE && now_of(t->fd) > base + SEC);
}

/* GET every 16th timer and compare. */
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
			if (!waits(t, ent[k].result, base) ||
			    ent[k].value != value_of((i + k) * 16) ||
			    ent[k].deadline != base + t->deadline[(i + k) * 16])
				return -EPROTO;
		}
	}
	report("GET", all, since);
	return 0;
}

/* MOVE a third of the timers to other times in the same range. */
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
			if (!waits(t, move[k - 1].result, base))
				return -EPROTO;
		}
	}
	report("MOVE", moved, since);
	return 0;
}

static int remove_third(const struct timers *t, __u64 base)
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
			if (!waits(t, rem[k - 1].result, base) ||
			    rem[k - 1].value != value_of(timer_of(rem[k - 1].key)))
				return -EPROTO;
		}
	}
	report("REMOVE", removed, since);
	return 0;
}

/* The events so far, and their errors */
struct faults {
	__u32 got;
	__u32 strange;		/* no timer was armed with this key, value and deadline */
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
 * Read @want events; advance a MANUAL clock by 10 ms before each attempt, or wait for the first
 * deadlines, which come after @base, and a minute for each of the others. Returns 0 or a negative
 * error: -ETIMEDOUT if events are missing.
 */
static int collect(struct timers *t, bool manual, __u32 want, struct faults *f, __u64 base)
{
	static struct timerwheel_event ev[PAGE];
	__u64 since = tw_now(CLOCK_MONOTONIC), spent = 0, began;
	int steps = 0, patience = 60000;
	ssize_t n;

	if (!manual && base > since)
		patience += (base - since) / MSEC;
	while (f->got < want) {
		if (manual && (steps++ > 10000 || tw_advance(t->fd, 0, 10 * MSEC) < 0))
			return -ETIMEDOUT;
		if (!manual && dev_poll(t->fd, patience) <= 0)
			return -ETIMEDOUT;
		began = tw_now(CLOCK_MONOTONIC);
		/* not dev_read(): poisoning the buffer would take longer than the call */
		while ((n = read(t->fd, ev, sizeof(ev))) > 0)
			take_events(t, f, ev, n / EV_SIZE, base);
		spent += tw_now(CLOCK_MONOTONIC) - began;
		if (!n || errno != EAGAIN)
			return -EPROTO;
	}
	report(manual ? "ADVANCE and read" : "wait, expire and read", f->got, since);
	report("only read and check", f->got, tw_now(CLOCK_MONOTONIC) - spent);
	return 0;
}

/* DRAIN until no timer is left. Returns the number of timers or a negative error. */
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
 * Of a million timers a third is moved and a third removed. All others fire, each once and none
 * early.
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
	/* on a running clock, 25 s, or 2 us for each, to arm, move and remove all of them first */
	base = now_of(self->t.fd) + (manual ? 0 : n > 12500000 ? n * 2000ULL : 25 * SEC);
	ASSERT_EQ(0, add_all(&self->t, base));
	ASSERT_EQ(0, get_some(&self->t, base));
	ASSERT_EQ(0, move_third(&self->t, base));
	ASSERT_EQ(0, remove_third(&self->t, base));
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
	printf("# latest %.3f ms, longest batch %llu us, most timers in a batch %llu\n",
	       f.late_max / 1e3, (unsigned long long)st.pass_max_ns / 1000,
	       (unsigned long long)st.pass_max_timers);
	fflush(stdout);
}

/* DRAIN returns each of a million timers exactly once. */
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

/* LIST returns each of a million timers exactly once. */
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

/* A million timers due in the same tick: each is delivered once, none early. */
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

/* An expiry batch handles a bounded number of timers. */
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
	printf("# %llu batches of at most %llu timers and %llu us\n",
	       (unsigned long long)st.passes, (unsigned long long)st.pass_max_timers,
	       (unsigned long long)st.pass_max_ns / 1000);
	fflush(stdout);
	EXPECT_GE(TW_BATCH_TIMERS, st.pass_max_timers);
}

/*
 * STATS counts expiry batches and the timers of the largest one, and their product is at least the
 * number of timers. On average a batch is at least a quarter full: early cascades leave half of the
 * budget to backlogs, and the last batch of a tick may be short.
 */
TEST_F_TIMEOUT(scale, passes_are_counted, TIMEOUT)
{
	bool manual = variant->clock == TIMERWHEEL_CLOCK_MANUAL;
	struct timerwheel_stats before, st;
	struct faults f = { 0 };
	__u32 n = self->t.n / 10;
	__u64 base, ahead;

	self->t.n = n;
	/* Retry with more time if they were due before a slow machine had armed all of them */
	for (ahead = manual ? 50 * MSEC : 5 * SEC;; ahead *= 2) {
		base = now_of(self->t.fd) + ahead;
		ASSERT_EQ(0, add_all(&self->t, base));
		ASSERT_EQ(0, tw_stats(self->t.fd, &before));
		if (now_of(self->t.fd) < base)
			break;
		ASSERT_EQ(n, drain_all(&self->t));
	}
	ASSERT_EQ(0, collect(&self->t, manual, n, &f, base));
	ASSERT_EQ(0, tw_stats(self->t.fd, &st));
	st.passes -= before.passes;
	printf("# %llu batches for %u timers, at most %llu in one\n",
	       (unsigned long long)st.passes, n, (unsigned long long)st.pass_max_timers);
	fflush(stdout);
	EXPECT_GE(TW_BATCH_TIMERS, st.pass_max_timers);
	EXPECT_LE(n, st.passes * st.pass_max_timers);
	EXPECT_GE(n / (TW_BATCH_TIMERS / 4), st.passes);
}

/* A call with TIMERWHEEL_BATCH_MAX elements processes all of them. */
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

/* A million timers take at most 70 bytes each in total, and at least their own 64. */
TEST_F_TIMEOUT(million, memory_per_timer, TIMEOUT)
{
	struct timerwheel_stats st;
	__u32 n = self->t.n;

	random_deadlines(&self->t);
	ASSERT_EQ(0, add_all(&self->t, now_of(self->t.fd) + HOUR));
	ASSERT_EQ(0, tw_stats(self->t.fd, &st));
	printf("# %.2f bytes per timer\n", (double)st.memory / n);
	fflush(stdout);
	EXPECT_GE((__u64)TIMER_BYTES * n, st.memory);
	EXPECT_LE(64ULL * n, st.memory);
}

/* A wheel without timers takes less than 16 kB. */
TEST_F(million, memory_idle)
{
	struct timerwheel_stats st;

	ASSERT_EQ(0, tw_stats(self->t.fd, &st));
	printf("# %llu bytes without a timer\n", (unsigned long long)st.memory);
	fflush(stdout);
	EXPECT_GT(IDLE_BYTES, st.memory);
}

/* A wheel with a single timer takes less than 64 kB. */
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
 * Memory of removed timers is used again: a second million takes no more than the first. The test
 * runs on one CPU, because the base of another CPU may keep up to 128 free timers for itself.
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

/* The same for timers that were delivered. */
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

/* Closing a wheel ends a million timers and frees all of their memory. */
TEST_F_TIMEOUT(million, close_gives_memory_back, TIMEOUT)
{
	struct timerwheel_info before, info;
	int probe = dev_open(0), fds[2] = { self->t.fd, probe };
	__u64 since;

	ASSERT_LE(0, probe);
	/* The wheel of an earlier test may not be freed yet. */
	ASSERT_NE(~0ULL, tw_memory_of(fds, 2));
	ASSERT_EQ(0, tw_info(probe, &before));
	random_deadlines(&self->t);
	ASSERT_EQ(0, add_all(&self->t, now_of(self->t.fd) + HOUR));
	ASSERT_EQ(0, tw_info(probe, &info));
	EXPECT_LE(before.user_memory + 64ULL * self->t.n, info.user_memory);
	since = tw_now(CLOCK_MONOTONIC);
	close(self->t.fd);
	report("close", self->t.n, since);
	/* The first figure also included the fixture's own wheel. */
	for (; info.user_memory >= before.user_memory; usleep(1000)) {
		ASSERT_GT(5 * MINUTE, tw_now(CLOCK_MONOTONIC) - since);
		ASSERT_EQ(0, tw_info(probe, &info));
	}
	report("close and free", self->t.n, since);
	close(probe);
	self->t.fd = -1;
}

/* The default capacity is 4,194,304 timers. */
TEST_F(million, capacity_by_default)
{
	struct timerwheel_info info;

	ASSERT_EQ(0, tw_info(self->t.fd, &info));
	EXPECT_EQ(4 << 20, info.capacity);
}

/* A wheel holds exactly as many timers as its capacity. */
TEST_F_TIMEOUT(million, capacity_is_exact, TIMEOUT)
{
	struct timerwheel_setup setup = { .capacity = self->t.n };

	ASSERT_EQ(0, dev_setup(self->t.fd, &setup));
	ASSERT_EQ(0, add_all(&self->t, now_of(self->t.fd) + HOUR));
	EXPECT_EQ(-ENOSPC, tw_add1(self->t.fd, key_of(self->t.n), 0, HOUR, 0));
}

TEST_HARNESS_MAIN
