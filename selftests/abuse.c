// SPDX-License-Identifier: GPL-2.0
/*
 * abuse: malicious and faulty programs. They may harm only themselves: tasks on the same CPUs, the
 * tick and other wheels make progress meanwhile, and the abused wheel stays consistent.
 *
 * `struct others' below checks this progress. `many', where time is counted in instructions,
 * asserts how long tasks may wait and which share of the CPU they keep. If a CPU is held for long,
 * the kernel's watchdogs complain, and the harness finds their messages in the kernel's log.
 *
 * TW_ABUSE_ROUNDS: factor for the number of rounds of tests that depend on chance (1)
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include "abuse.h"

#define MAX_CPUS	64
#define OTHERS_MS	(tw_icount() ? 10000 : 120000)	/* for 20 turns of some ms */

static int cpus(void)
{
	int n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < MAX_CPUS ? n : MAX_CPUS;
}

static __u64 firings(int fd)
{
	struct timerwheel_stats st;

	return tw_stats(fd, &st) ? ~0ULL : st.firings;
}

/* --- The others ----------------------------------------------------------------- */

/*
 * On each CPU: a thread that computes, a thread that sleeps, and a thread that waits for timers in
 * its own wheel. Each counts its turns that end while the clock is in @window.
 */
struct other {
	pthread_t id;
	int cpu;
	struct others *all;
	atomic_ulong turns;
};

struct others {
	struct other computes[MAX_CPUS];
	struct other sleeps[MAX_CPUS];
	struct other waits[MAX_CPUS];
	atomic_ullong window[2];
	atomic_bool stop;
	atomic_int wrong;
};

static bool other_turn(struct other *o)
{
	__u64 now = tw_now(CLOCK_MONOTONIC);

	if (now >= atomic_load(&o->all->window[0]) && now < atomic_load(&o->all->window[1]))
		atomic_fetch_add(&o->turns, 1);
	return !atomic_load(&o->all->stop);
}

static void *other_computes(void *arg)
{
	struct other *o = arg;
	int n;

	tw_pin(o->cpu);
	do {
		for (n = 0; n < 100000; n++)
			__asm__ volatile("" : "+r" (n));
	} while (other_turn(o));
	return NULL;
}

static void *other_sleeps(void *arg)
{
	struct other *o = arg;

	tw_pin(o->cpu);
	do
		tw_sleep(MSEC);
	while (other_turn(o));
	return NULL;
}

static void *other_waits(void *arg)
{
	struct timerwheel_event ev[2];
	struct other *o = arg;
	__u64 key = 0;
	int fd;

	tw_pin(o->cpu);
	fd = dev_open(0);
	do {
		key++;
		if (tw_add1(fd, key, value_of(key), MSEC, 0) || dev_read(fd, ev, 2) != 1 ||
		    ev[0].key != key || ev[0].value != value_of(key) ||
		    ev[0].fired < ev[0].deadline)
			atomic_fetch_add(&o->all->wrong, 1);
	} while (other_turn(o));
	close(fd);
	return NULL;
}

static int others_start(struct others *o)
{
	static const struct {
		size_t first;
		void *(*function)(void *arg);
	} kind[] = {
		{ offsetof(struct others, computes), other_computes },
		{ offsetof(struct others, sleeps), other_sleeps },
		{ offsetof(struct others, waits), other_waits },
	};
	struct other *one;
	size_t k;
	int i;

	memset(o, 0, sizeof(*o));
	atomic_store(&o->window[1], ~0ULL);
	for (k = 0; k < ARRAY_SIZE(kind); k++) {
		for (i = 0; i < cpus(); i++) {
			one = (struct other *)((char *)o + kind[k].first) + i;
			one->cpu = i;
			one->all = o;
			if (pthread_create(&one->id, NULL, kind[k].function, one))
				return -EAGAIN;
		}
	}
	return 0;
}

static int others_stop(struct others *o)
{
	int i;

	atomic_store(&o->stop, true);
	for (i = 0; i < cpus(); i++) {
		pthread_join(o->computes[i].id, NULL);
		pthread_join(o->sleeps[i].id, NULL);
		pthread_join(o->waits[i].id, NULL);
	}
	return atomic_load(&o->wrong);
}

static unsigned long others_least(const struct others *o, const char **who, int *cpu)
{
	unsigned long least = ~0UL, n;
	int i, k;

	for (i = 0; i < cpus(); i++) {
		const struct other *all[] = { &o->computes[i], &o->sleeps[i], &o->waits[i] };

		for (k = 0; k < 3; k++) {
			n = atomic_load(&all[k]->turns);
			if (n < least) {
				least = n;
				*who = k == 0 ? "computes" : k == 1 ? "sleeps" : "waits";
				*cpu = i;
			}
		}
	}
	return least;
}

static void others_forget(struct others *o)
{
	int i;

	for (i = 0; i < cpus(); i++) {
		atomic_store(&o->computes[i].turns, 0);
		atomic_store(&o->sleeps[i].turns, 0);
		atomic_store(&o->waits[i].turns, 0);
	}
}

/* Ticks that the kernel has accounted on a CPU */
static long long ticks_of(int cpu)
{
	long long v[8] = { 0 }, sum = 0;
	char word[16], line[256];
	FILE *f = fopen("/proc/stat", "re");
	int k;

	snprintf(word, sizeof(word), "cpu%d ", cpu);
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, word, strlen(word)))
			continue;
		if (sscanf(line, "%*s %lld %lld %lld %lld %lld %lld %lld %lld", v, v + 1, v + 2,
			   v + 3, v + 4, v + 5, v + 6, v + 7) == 8)
			break;
	}
	if (f)
		fclose(f);
	for (k = 0; k < 8; k++)
		sum += v[k];
	return sum;
}

/* Has each thread completed 20 turns, each CPU been accounted ticks, and the tick advanced time? */
static bool others_went_on(struct others *o, const long long *ticks, __u64 began, bool say)
{
	const char *who = "";
	bool good = true;
	int i, cpu = 0;

	if (others_least(o, &who, &cpu) < 20) {
		if (say)
			fprintf(stderr, "# CPU %d: the thread that %s: only %lu turns\n", cpu, who,
				others_least(o, &who, &cpu));
		good = false;
	}
	for (i = 0; i < cpus(); i++) {
		if (ticks_of(i) - ticks[i] >= 5)
			continue;
		if (say)
			fprintf(stderr, "# CPU %d: only %lld ticks\n", i, ticks_of(i) - ticks[i]);
		good = false;
	}
	if (tw_now(CLOCK_MONOTONIC_COARSE) < began + 250 * MSEC) {
		if (say)
			fprintf(stderr, "# CLOCK_MONOTONIC_COARSE has not advanced\n");
		good = false;
	}
	return good;
}

/* Do all others make progress? CLOCK_MONOTONIC_COARSE is advanced by the tick only. */
static bool others_go_on(struct others *o)
{
	__u64 began = tw_now(CLOCK_MONOTONIC), until = began + OTHERS_MS * MSEC;
	long long ticks[MAX_CPUS];
	int i;

	for (i = 0; i < cpus(); i++)
		ticks[i] = ticks_of(i);
	others_forget(o);
	tw_sleep(500 * MSEC);
	while (!others_went_on(o, ticks, began, false) && tw_now(CLOCK_MONOTONIC) < until)
		tw_sleep(10 * MSEC);
	return others_went_on(o, ticks, began, true);
}

/*
 * Arm keys 0 to @n - 1 on MONOTONIC, @step apart, the first for a time when all are armed. Returns
 * this time, or 0 if an operation failed.
 */
static __u64 arm_for(int fd, int n, __u64 step)
{
	struct timerwheel_move *move = calloc(PAGE, sizeof(*move));
	__u64 began = tw_now(CLOCK_MONOTONIC), now, most, start = 0;
	int i, k;

	/* an hour ahead first, to measure the duration of arming */
	if (!move || arm(fd, 0, n, began + HOUR, step, 0))
		return 0;
	/* On a busy machine it may take longer the next time. */
	for (most = 2; start < (now = tw_now(CLOCK_MONOTONIC)) + SEC; most *= 2) {
		start = now + most * (now - began) + 2 * SEC;
		began = now;
		for (i = 0; i < n; i += k) {
			for (k = 0; k < PAGE && i + k < n; k++) {
				move[k] = (struct timerwheel_move){
					.key = i + k, .deadline = start + (i + k) * step,
					.flags = TIMERWHEEL_ABS,
				};
			}
			if (dev_move(fd, move, k) != k)
				return 0;
		}
	}
	free(move);
	return start;
}

/* --- Attacks by time -------------------------------------------------------------- */

/* Two threads on each CPU that call @turn until they are stopped */
struct attacker {
	pthread_t id;
	int number;
	struct attack *all;
};

struct attack {
	int fd;
	int (*turn)(int fd, int number);	/* returns 0 or a negative error */
	struct attacker by[2 * MAX_CPUS];
	atomic_bool stop;
	atomic_int error;
	atomic_ulong turns;
};

FIXTURE(attack) {
	struct others others;
	struct attack a;
};

FIXTURE_SETUP(attack)
{
	ASSERT_EQ(0, others_start(&self->others));
	self->a.fd = dev_open(O_NONBLOCK);
	ASSERT_LE(0, self->a.fd);
}

FIXTURE_TEARDOWN(attack)
{
	EXPECT_EQ(0, others_stop(&self->others));
	close(self->a.fd);
}

static void *attacker(void *arg)
{
	struct attacker *by = arg;
	int ret;

	tw_pin(by->number % cpus());
	while (!atomic_load(&by->all->stop)) {
		ret = by->all->turn(by->all->fd, by->number);
		if (ret)
			atomic_store(&by->all->error, ret);
		atomic_fetch_add(&by->all->turns, 1);
	}
	return NULL;
}

static int attack_start(struct attack *a, int (*turn)(int fd, int number))
{
	int i;

	a->turn = turn;
	for (i = 0; i < 2 * cpus(); i++) {
		a->by[i].number = i;
		a->by[i].all = a;
		if (pthread_create(&a->by[i].id, NULL, attacker, &a->by[i]))
			return -EAGAIN;
	}
	return 0;
}

static int attack_stop(struct attack *a)
{
	int i;

	atomic_store(&a->stop, true);
	for (i = 0; i < 2 * cpus(); i++)
		pthread_join(a->by[i].id, NULL);
	return atomic_load(&a->error);
}

/* Each thread makes its own timer due: by ADD, MOVE, ADD with a period, or REMOVE and ADD. */
static int turn_past(int fd, int number)
{
	int ret = TIMERWHEEL_WAS_DUE;

	switch (number % 4) {
	case 0:
		ret = tw_add1(fd, number, value_of(number), 1, TIMERWHEEL_ABS);
		break;
	case 1:
		ret = tw_move1(fd, number, 0, 0);
		if (ret == -ENOENT)
			ret = tw_add1(fd, number, value_of(number), 0, TIMERWHEEL_ABS);
		break;
	case 2:
		ret = tw_add1_periodic(fd, number, value_of(number), 1, 1, TIMERWHEEL_ABS);
		break;
	case 3:
		tw_remove1(fd, number);
		ret = tw_add1(fd, number, value_of(number), 0, 0);
		break;
	}
	return ret == TIMERWHEEL_WAS_NONE || ret == TIMERWHEEL_WAS_DUE ? 0 : ret ?: -EPROTO;
}

/* Past deadlines in a loop, two threads on each CPU: no hrtimer fires for them. */
TEST_F_TIMEOUT(attack, past_deadlines, TIMEOUT)
{
	struct timerwheel_event ev[2 * MAX_CPUS];
	struct timerwheel_stats st;
	int i, n = 2 * cpus();
	__u64 seen = 0;

	ASSERT_EQ(0, attack_start(&self->a, turn_past));
	for (i = 0; i < rounds(2); i++)
		EXPECT_TRUE(others_go_on(&self->others));
	EXPECT_EQ(0, attack_stop(&self->a));
	EXPECT_LT(100, atomic_load(&self->a.turns));
	ASSERT_EQ(0, tw_stats(self->a.fd, &st));
	EXPECT_EQ(0, st.firings);
	EXPECT_EQ(n, st.due);
	EXPECT_TRUE(tw_balanced(&st));
	ASSERT_EQ(n, dev_read(self->a.fd, ev, n));
	for (i = 0; i < n; i++)
		seen |= 1ULL << ev[i].key % 64;
	EXPECT_EQ(n < 64 ? (1ULL << n) - 1 : ~0ULL, seen);
}

/* Each thread arms its own timer for the next tick and reads due events. */
static int turn_near(int fd, int number)
{
	struct timerwheel_event ev[8];
	int ret = tw_add1(fd, number, value_of(number), 1, 0);

	if (ret < 0)
		return ret;
	ret = dev_read(fd, ev, 8);
	return ret > 0 || ret == -EAGAIN ? 0 : ret;
}

/* Deadlines one nanosecond ahead in a loop: at most one interrupt per tick and CPU. */
TEST_F_TIMEOUT(attack, near_deadlines, TIMEOUT)
{
	__u64 began = tw_now(CLOCK_MONOTONIC);
	struct timerwheel_stats st;
	int i;

	ASSERT_EQ(0, attack_start(&self->a, turn_near));
	for (i = 0; i < rounds(2); i++)
		EXPECT_TRUE(others_go_on(&self->others));
	EXPECT_EQ(0, attack_stop(&self->a));
	ASSERT_EQ(0, tw_stats(self->a.fd, &st));
	EXPECT_GE(cpus() * ((tw_now(CLOCK_MONOTONIC) - began) / MSEC + 2), st.firings);
	EXPECT_LT(0, st.delivered);
	EXPECT_TRUE(tw_balanced(&st));
}

FIXTURE(fine) {
	struct others others;
	int fd;		/* tick of 1 us, the shortest */
};

FIXTURE_SETUP(fine)
{
	self->fd = tw_open_clock(TIMERWHEEL_CLOCK_MONOTONIC, USEC, 0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(fine)
{
	close(self->fd);
}

/*
 * Count the turns of the others on CPU 0 in the @length ns from @from; where time is not counted in
 * instructions, wait until each has made a turn.
 */
static void fine_turns(struct others *o, __u64 from, __u64 length, unsigned long turns[3])
{
	__u64 until = from + length + LONG_MS * MSEC;

	others_forget(o);
	atomic_store(&o->window[1], tw_timed() ? from + length : ~0ULL);
	atomic_store(&o->window[0], from);
	tw_sleep_until(CLOCK_MONOTONIC, from + length);
	for (;;) {
		turns[0] = atomic_load(&o->computes[0].turns);
		turns[1] = atomic_load(&o->sleeps[0].turns);
		turns[2] = atomic_load(&o->waits[0].turns);
		if (tw_timed() || (turns[0] && turns[1] && turns[2]) ||
		    tw_now(CLOCK_MONOTONIC) > until)
			break;
		tw_sleep(MSEC);
	}
}

/*
 * The shortest tick, and a timer in every other tick for half a second: tasks on the CPU that
 * expires them do at least a fifth of their work without the timers. `many' asserts the exact
 * share. Where time is not counted in instructions they only have to make progress.
 */
TEST_F_TIMEOUT(fine, timer_in_every_tick, TIMEOUT)
{
	enum { N = 250000 };
	static const char * const who[] = { "computes", "sleeps", "waits" };
	unsigned long alone[3], turns[3];
	unsigned char *seen = calloc(N, 1);
	struct others *o = &self->others;
	struct timerwheel_event ev[256];
	__u64 start, length = N * 2 * USEC;
	int i, n, got = 0;

	ASSERT_EQ(0, tw_pin(0));
	start = arm_for(self->fd, N, 2 * USEC);
	ASSERT_NE(0, start);
	ASSERT_EQ(0, others_start(o));
	fine_turns(o, tw_now(CLOCK_MONOTONIC), length, alone);
	if (tw_timed())
		ASSERT_GT(start, tw_now(CLOCK_MONOTONIC));
	fine_turns(o, start, length, turns);
	printf("# %llu interrupts\n", (unsigned long long)firings(self->fd));
	for (i = 0; i < 3; i++) {
		printf("# the thread that %s: %lu turns, %lu without the timers\n", who[i],
		       turns[i], alone[i]);
		EXPECT_LE(tw_timed() ? alone[i] / 5 : 1, turns[i]);
	}
	fflush(stdout);
	EXPECT_EQ(0, others_stop(o));
	while (got < N && tw_read_all(self->fd, ev, 1, LONG_MS) == 1) {
		n = dev_read(self->fd, ev + 1, 255);
		n = n < 0 ? 1 : n + 1;
		for (i = 0; i < n; i++)
			seen[ev[i].key]++;
		got += n;
	}
	for (i = 0; i < N && seen[i] == 1; i++)
		;
	EXPECT_EQ(N, i);
}

/* Read periodic events: at most one event of each timer in a read. */
static int turn_period(int fd, int number)
{
	struct timerwheel_event ev[64];
	int i, k, n = dev_read(fd, ev, 64);

	(void)number;
	for (i = 0; i < n; i++) {
		if (!(ev[i].flags & TIMERWHEEL_EVENT_PERIODIC) || ev[i].fired < ev[i].deadline)
			return -EPROTO;
		for (k = 0; k < i; k++) {
			if (ev[k].key == ev[i].key)
				return -EEXIST;
		}
	}
	return n == -EAGAIN || n > 0 ? 0 : n;
}

/*
 * With a period of 1 ns, a read returns one event of each timer, every deadline is counted, and
 * there are no interrupts between reads.
 */
TEST_F_TIMEOUT(attack, period_of_1_ns, TIMEOUT)
{
	struct timerwheel_event ev[2];
	__u64 next, before, base, past = 0;
	struct timerwheel_entry ent;
	struct timerwheel_stats st;
	int i;

	base = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, arm(self->a.fd, 0, 8, base, 0, 1));
	ASSERT_EQ(0, attack_start(&self->a, turn_period));
	for (i = 0; i < rounds(2); i++)
		EXPECT_TRUE(others_go_on(&self->others));
	EXPECT_EQ(0, attack_stop(&self->a));
	/* each deadline of each timer, one per ns, was an event or an overrun */
	for (i = 0; i < 8; i++) {
		ASSERT_LT(0, tw_get1(self->a.fd, i, &ent));
		past += ent.deadline - base;
	}
	ASSERT_EQ(0, tw_stats(self->a.fd, &st));
	EXPECT_EQ(past, st.delivered + st.overruns);
	EXPECT_LT(8, st.delivered);
	for (i = 1; i < 8; i++)
		ASSERT_LT(0, tw_remove1(self->a.fd, i));

	/* each event continues where the previous one and its overruns ended */
	while (tw_read_all(self->a.fd, ev, 1, LONG_MS) == 1 && ev[0].key)
		;
	for (i = 0; i < 100; i++) {
		next = ev[0].deadline + ev[0].overruns + 1;
		ASSERT_EQ(POLLIN, dev_poll(self->a.fd, LONG_MS) & POLLIN);
		ASSERT_EQ(1, dev_read(self->a.fd, ev, 2));
		ASSERT_EQ(next, ev[0].deadline);
	}
	ASSERT_LT(0, dev_poll(self->a.fd, LONG_MS));
	before = firings(self->a.fd);
	tw_sleep(200 * MSEC);
	EXPECT_EQ(before, firings(self->a.fd));
}

/* --- A million at once ------------------------------------------------------------ */

FIXTURE(million) {
	struct others others;
	int fd;
	int n;
	unsigned char *seen;
};

FIXTURE_VARIANT(million) {
	__u32 clock;
};

FIXTURE_VARIANT_ADD(million, manual) {
	TIMERWHEEL_CLOCK_MANUAL
};

FIXTURE_VARIANT_ADD(million, running) {
	TIMERWHEEL_CLOCK_MONOTONIC
};

FIXTURE_SETUP(million)
{
	self->n = tw_scale();
	/* `scale' tests a million on a running clock */
	if (variant->clock != TIMERWHEEL_CLOCK_MANUAL)
		self->n /= 4;
	self->seen = calloc(self->n, 1);
	ASSERT_NE(NULL, self->seen);
	self->fd = tw_open_clock(variant->clock, 0, 0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(million)
{
	close(self->fd);
}

/*
 * Read @n events while the others make progress. Returns the number of failures, including
 * duplicate events, or a negative error.
 */
static int million_read(int fd, unsigned char *seen, int n, struct others *others)
{
	static struct timerwheel_event ev[PAGE];
	int i, got, total = 0, wrong = 0;

	memset(seen, 0, n);
	wrong += !others_go_on(others);
	while (total < n) {
		if (dev_poll(fd, LONG_MS) <= 0)
			return -ETIMEDOUT;
		while ((got = read(fd, ev, sizeof(ev))) > 0) {
			got /= EV_SIZE;
			for (i = 0; i < got; i++) {
				if (ev[i].fired < ev[i].deadline || ev[i].key >= (unsigned int)n)
					return -EPROTO;
				wrong += seen[ev[i].key]++;
			}
			total += got;
		}
	}
	return wrong;
}

/*
 * A million timers in one tick, several rounds: each timer is delivered once per round, no expiry
 * batch exceeds its limit, and others make progress meanwhile.
 */
TEST_F_TIMEOUT(million, again_and_again, TIMEOUT)
{
	bool manual = variant->clock == TIMERWHEEL_CLOCK_MANUAL;
	struct timerwheel_stats st;
	int i, round, n = self->n;
	__u64 at;

	/* on the MANUAL clock the period makes them due again in each round */
	if (manual)
		ASSERT_EQ(0, arm(self->fd, 0, n, SEC, 0, SEC));
	for (round = 0; round < rounds(2); round++) {
		if (manual) {
			ASSERT_EQ(n, tw_advance(self->fd, 0, SEC));
			ASSERT_EQ(0, others_start(&self->others));
		} else {
			at = arm_for(self->fd, n, 0);
			ASSERT_EQ(0, others_start(&self->others));
			tw_sleep_until(CLOCK_MONOTONIC, at);
		}
		ASSERT_EQ(0, million_read(self->fd, self->seen, n, &self->others));
		EXPECT_EQ(0, others_stop(&self->others));
		for (i = 0; i < n && self->seen[i] == 1; i++)
			;
		EXPECT_EQ(n, i);
	}
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_GE(TW_BATCH_TIMERS, st.pass_max_timers);
	EXPECT_EQ((__u64)n * rounds(2), st.delivered);
	EXPECT_TRUE(tw_balanced(&st));
}

/* Without reads, due timers need no memory and cause no interrupts. DRAIN returns each once. */
TEST_F_TIMEOUT(million, never_read, TIMEOUT)
{
	bool manual = variant->clock == TIMERWHEEL_CLOCK_MANUAL;
	__u64 base = manual ? 0 : tw_now(CLOCK_MONOTONIC), cursor, until;
	static struct timerwheel_entry ent[PAGE];
	struct timerwheel_stats before, st;
	int i, ret, n = self->n, total = 0;

	/* a tenth with a period: each falls due once and then waits for its reader */
	ASSERT_EQ(0, arm(self->fd, 0, n / 10, base + SEC, 0, 1));
	ASSERT_EQ(0, arm(self->fd, n / 10, n - n / 10, base + SEC, USEC, 0));
	ASSERT_EQ(0, tw_stats(self->fd, &before));
	if (manual)
		ASSERT_EQ(n, tw_advance(self->fd, 0, HOUR));
	until = tw_now(CLOCK_MONOTONIC) + LONG_MS * MSEC;
	do {
		ASSERT_EQ(0, tw_stats(self->fd, &st));
	} while (st.due < (__u64)n && tw_now(CLOCK_MONOTONIC) < until);
	EXPECT_EQ(n, st.due);
	/* again, because STATS does not read all counters at the same moment */
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(before.memory, st.memory);

	ASSERT_EQ(0, others_start(&self->others));
	EXPECT_TRUE(others_go_on(&self->others));
	EXPECT_EQ(0, others_stop(&self->others));
	EXPECT_EQ(st.firings, firings(self->fd));

	for (cursor = 0; (ret = tw_drain(self->fd, 0, ent, PAGE)) > 0; cursor++) {
		for (i = 0; i < ret; i++) {
			ASSERT_GT(n, ent[i].key);
			ASSERT_EQ(TIMERWHEEL_WAS_DUE, ent[i].result);
			self->seen[ent[i].key]++;
		}
		total += ret;
	}
	ASSERT_EQ(0, ret);
	EXPECT_EQ(n, total);
	for (i = 0; i < n && self->seen[i] == 1; i++)
		;
	EXPECT_EQ(n, i);
	EXPECT_EQ(0, dev_poll(self->fd, 0));
}

/* --- A storm of signals -------------------------------------------------------------- */

#define STORM	20000	/* timers */

static atomic_int alarms;

static void on_alarm(int signal)
{
	(void)signal;
	atomic_fetch_add(&alarms, 1);
}

static int storm(bool on)
{
	return tw_storm(on ? 300 : 0);
}

FIXTURE(storm) {
	int fd;		/* MANUAL clock, tick of 1 us */
	int cut;	/* calls that a signal cut short */
};

FIXTURE_VARIANT(storm) {
	int sa_flags;
};

FIXTURE_VARIANT_ADD(storm, restart) {
	SA_RESTART
};

FIXTURE_VARIANT_ADD(storm, no_restart) {
	0
};

FIXTURE_SETUP(storm)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = variant->sa_flags };

	self->fd = tw_open_manual(USEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, sigaction(SIGALRM, &sa, NULL));
}

FIXTURE_TEARDOWN(storm)
{
	storm(false);
	close(self->fd);
}

/*
 * A call on an array, repeated for the remaining elements after each signal. Returns 0 or a
 * negative error: -EPROTO if an element behind the last processed element was written.
 */
static int through(int fd, unsigned long cmd, void *elems, size_t size, int n, int *cut)
{
	char *at = elems, *copy = malloc(n * size);
	int ret, done;

	memcpy(copy, at, n * size);
	for (done = 0; done < n; done += ret) {
		ret = tw_batch(fd, cmd, 0, at + done * size, size, n - done, NULL);
		*cut += ret != n - done;
		if (ret < 0 || memcmp(at + (done + ret) * size, copy + (done + ret) * size,
				      (n - done - ret) * size)) {
			ret = ret < 0 ? ret : -EPROTO;
			break;
		}
	}
	free(copy);
	return ret < 0 ? ret : 0;
}

/*
 * Calls on arrays with a signal every few hundred us: each element is done or not begun, and the
 * returned number is exact.
 */
TEST_F_TIMEOUT(storm, arrays, TIMEOUT)
{
	struct timerwheel_add *add = calloc(STORM, sizeof(*add));
	struct timerwheel_move *move = calloc(STORM, sizeof(*move));
	struct timerwheel_remove *rem = calloc(STORM, sizeof(*rem));
	struct timerwheel_entry *ent = calloc(STORM, sizeof(*ent));
	unsigned char *seen = calloc(STORM, 1);
	__u64 *deadline = calloc(STORM, sizeof(*deadline));
	int i, round;

	ASSERT_EQ(0, storm(true));
	/* On a busy machine no signal may come in time. */
	for (round = 0; round < rounds(2) || (!self->cut && round < 100); round++) {
		for (i = 0; i < STORM; i++) {
			add[i] = (struct timerwheel_add){
				.key = i, .value = value_of(i), .deadline = HOUR, .result = -1,
				.flags = TIMERWHEEL_EXCL,
			};
			move[i] = (struct timerwheel_move){
				.key = i, .deadline = HOUR + i, .result = -1,
				.flags = TIMERWHEEL_ABS,
			};
			rem[i] = (struct timerwheel_remove){ .key = i, .result = -1 };
			ent[i] = (struct timerwheel_entry){ .key = i, .result = 0 };
		}
		/* an element processed twice would fail: EEXIST, or ENOENT for REMOVE */
		ASSERT_EQ(0, through(self->fd, TIMERWHEEL_IOC_ADD, add, sizeof(*add), STORM,
				     &self->cut));
		ASSERT_TRUE(lists(self->fd, 0, STORM));
		ASSERT_EQ(0, through(self->fd, TIMERWHEEL_IOC_MOVE, move, sizeof(*move), STORM,
				     &self->cut));
		ASSERT_EQ(0, through(self->fd, TIMERWHEEL_IOC_GET, ent, sizeof(*ent), STORM,
				     &self->cut));
		ASSERT_EQ(STORM, list_all(self->fd, seen, deadline, STORM));
		ASSERT_EQ(0, through(self->fd, TIMERWHEEL_IOC_REMOVE, rem, sizeof(*rem),
				     STORM / 2, &self->cut));
		ASSERT_TRUE(lists(self->fd, STORM / 2, STORM));
		ASSERT_EQ(0, through(self->fd, TIMERWHEEL_IOC_REMOVE, rem + STORM / 2,
				     sizeof(*rem), STORM / 2, &self->cut));
		for (i = 0; i < STORM; i++) {
			ASSERT_EQ(TIMERWHEEL_WAS_NONE, add[i].result);
			ASSERT_EQ(TIMERWHEEL_WAS_PENDING, move[i].result);
			ASSERT_EQ(TIMERWHEEL_WAS_PENDING, ent[i].result);
			ASSERT_EQ(HOUR + i, ent[i].deadline);
			ASSERT_EQ(HOUR + i, deadline[i]);
			ASSERT_EQ(TIMERWHEEL_WAS_PENDING, rem[i].result);
		}
	}
	EXPECT_LT(0, self->cut);
}

/* LIST and DRAIN end even if they find no timer between one signal and the next. */
TEST_F_TIMEOUT(storm, walks_end, TIMEOUT)
{
	enum { N = 300000 };
	static struct timerwheel_entry ent[PAGE];
	int i, k, ret, found, hits, was;
	__u64 cursor;

	/* remove all but the last 100; LIST and DRAIN still walk the indexes of the others */
	ASSERT_EQ(0, arm(self->fd, 0, N, HOUR, 0, 0));
	for (i = 0; i < N - 100; i += k) {
		struct timerwheel_remove rem[256];

		for (k = 0; k < 256 && i + k < N - 100; k++)
			rem[k] = (struct timerwheel_remove){ .key = i + k };
		ASSERT_EQ(k, dev_remove(self->fd, rem, k));
	}
	ASSERT_EQ(0, storm(true));
	/* Until a signal has come in ten walks. It does not end a call that has found no timer. */
	for (hits = 0, i = 0; hits < 10 && i < 1000; i++) {
		was = atomic_load(&alarms);
		cursor = 0;
		for (found = 0; (ret = tw_list(self->fd, &cursor, ent, PAGE)) > 0; found += ret)
			;
		ASSERT_EQ(0, ret);
		ASSERT_EQ(100, found);
		hits += atomic_load(&alarms) != was;
	}
	EXPECT_EQ(10, hits);
	for (found = 0; (ret = tw_drain(self->fd, 0, ent, PAGE)) > 0; found += ret)
		;
	ASSERT_EQ(0, ret);
	ASSERT_EQ(100, found);
	for (hits = 0, i = 0; hits < 10 && i < 1000; i++) {
		was = atomic_load(&alarms);
		ASSERT_EQ(0, tw_drain(self->fd, 0, ent, PAGE));
		hits += atomic_load(&alarms) != was;
	}
	EXPECT_EQ(10, hits);
}

/* LIST and DRAIN that have found a timer end at a signal, and no timer is lost. */
TEST_F_TIMEOUT(storm, walks_are_cut, TIMEOUT)
{
	enum { N = TIMERWHEEL_BATCH_MAX };
	static struct timerwheel_entry ent[N];
	static unsigned char left[N];
	__u64 until, cursor;
	int i, ret;

	ASSERT_EQ(0, arm(self->fd, 0, N, HOUR, 0, 0));
	ASSERT_EQ(0, storm(true));
	until = tw_now(CLOCK_MONOTONIC) + LONG_MS * MSEC;
	do {
		cursor = 0;
		ret = tw_list(self->fd, &cursor, ent, N);
		ASSERT_LT(0, ret);
	} while (ret == N && tw_now(CLOCK_MONOTONIC) < until);
	ASSERT_GT(N, ret);
	until = tw_now(CLOCK_MONOTONIC) + LONG_MS * MSEC;
	do {
		ret = tw_drain(self->fd, 0, ent, N);
		ASSERT_LT(0, ret);
		ASSERT_EQ(N - ret, list_all(self->fd, left, NULL, N));
		for (i = 0; i < ret; i++)
			ASSERT_EQ(0, left[ent[i].key]++);
		if (ret < N)
			break;
		ASSERT_EQ(0, storm(false));
		ASSERT_EQ(0, arm(self->fd, 0, N, HOUR, 0, 0));
		ASSERT_EQ(0, storm(true));
	} while (tw_now(CLOCK_MONOTONIC) < until);
	EXPECT_GT(N, ret);
}

/* ADVANCE, read and DRAIN of thousands of timers: each is delivered or drained, once. */
TEST_F_TIMEOUT(storm, events, TIMEOUT)
{
	struct timerwheel_event *ev = calloc(STORM, sizeof(*ev));
	struct timerwheel_entry *ent = calloc(STORM, sizeof(*ent));
	unsigned char *seen = calloc(STORM, 1);
	int i, got, ret, n, calls = 0;
	struct itimerval often;
	__u64 began;

	ASSERT_EQ(0, arm(self->fd, 0, STORM, USEC, USEC, 0));
	ASSERT_EQ(0, storm(true));
	for (n = 0; n < STORM; n += ret) {
		/* only a fatal signal interrupts ADVANCE */
		ret = tw_advance(self->fd, 0, STORM / 10 * USEC);
		ASSERT_LT(0, ret);
	}
	ASSERT_EQ(STORM, n);
	/* of this thread, because signals merge while another thread runs */
	began = tw_now(CLOCK_THREAD_CPUTIME_ID);
	for (got = 0; got < STORM * 3 / 4; got += ret, calls++) {
		ret = read(self->fd, ev, (STORM * 3 / 4 - got) * EV_SIZE);
		ASSERT_LT(0, ret);
		ASSERT_EQ(0, ret % EV_SIZE);
		ret /= EV_SIZE;
		for (i = 0; i < ret; i++)
			seen[ev[i].key]++;
	}
	/* each signal ends a call; on a busy host several signals may merge into one */
	began = tw_now(CLOCK_THREAD_CPUTIME_ID) - began;
	ASSERT_EQ(0, getitimer(ITIMER_REAL, &often));
	printf("# %d calls in %llu us, a signal every %ld us\n", calls,
	       (unsigned long long)began / USEC, (long)often.it_interval.tv_usec);
	fflush(stdout);
	ASSERT_LT(0, often.it_interval.tv_usec);
	if (tw_timed())
		EXPECT_LE(began / (2 * USEC * often.it_interval.tv_usec), calls);
	while ((ret = tw_drain(self->fd, 0, ent, STORM)) && got < STORM) {
		calls++;
		for (i = 0; i < ret; i++)
			seen[ent[i].key]++;
		got += ret > 0 ? ret : 0;
	}
	EXPECT_EQ(STORM, got);
	for (i = 0; i < STORM && seen[i] == 1; i++)
		;
	EXPECT_EQ(STORM, i);
	/* On a busy host none of them may come in time. */
	if (tw_timed())
		EXPECT_LT(2, calls);
}

/* Signals do not interrupt open, INFO, STATS and ADD of one element. */
TEST_F_TIMEOUT(storm, single_calls, TIMEOUT)
{
	struct timerwheel_stats st;
	struct timerwheel_info info;
	int i, fd;

	ASSERT_EQ(0, storm(true));
	for (i = 0; i < 2000 || atomic_load(&alarms) < 100; i++) {
		ASSERT_EQ(i ? TIMERWHEEL_WAS_PENDING : TIMERWHEEL_WAS_NONE,
			  tw_add1(self->fd, 1, i, HOUR, 0));
		ASSERT_EQ(0, tw_info(self->fd, &info));
		ASSERT_EQ(0, tw_stats(self->fd, &st));
		ASSERT_EQ(i + 1, st.armed);
		fd = tw_open_manual(1000 + i);
		ASSERT_LE(0, fd);
		close(fd);
	}
}

/* A sleeping read fails with EINTR without SA_RESTART and continues with it; poll always fails. */
TEST_F_TIMEOUT(storm, sleeping_calls, TIMEOUT)
{
	bool restarts = variant->sa_flags & SA_RESTART;
	struct timerwheel_event ev;
	int fd = dev_open(0), ret;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, storm(true));
	EXPECT_EQ(-EINTR, dev_poll(fd, -1));
	if (!restarts)
		EXPECT_EQ(-EINTR, dev_read(fd, &ev, 1));
	ASSERT_EQ(0, tw_add1(fd, 1, 1, 200 * MSEC, 0));
	while ((ret = dev_read(fd, &ev, 1)) == -EINTR && !restarts)
		;
	EXPECT_EQ(1, ret);
	EXPECT_EQ(1, ev.key);
	close(fd);
}

TEST_HARNESS_MAIN
