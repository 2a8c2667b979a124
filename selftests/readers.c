// SPDX-License-Identifier: GPL-2.0
/*
 * readers: which reader gets the events, the number of events in a read, and the ways to notify
 * readers: read, readv, signals, poll, epoll, SIGIO, io_uring, wake-up batching.
 *
 * Most tests use a wheel with the MANUAL clock and a tick of 1 ns, so timers fall due exactly when
 * the test advances the time.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <liburing.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include "sleeper.h"

#define EV_SIZE		sizeof(struct timerwheel_event)

/* --- Helpers ---------------------------------------------------------------- */

static __u64 value_of(__u64 key)
{
	return ~key * 0x9e3779b97f4a7c15ULL;
}

/* Arm @n timers (at most 64): keys from @key, relative @deadline. 0, or an error. */
static int arm(int fd, __u64 key, int n, __u64 deadline)
{
	struct timerwheel_add add[64];
	int i, ret;

	memset(add, 0, sizeof(add));
	for (i = 0; i < n; i++) {
		add[i].key = key + i;
		add[i].value = value_of(key + i);
		add[i].deadline = deadline;
		tw_poison(&add[i].result, sizeof(add[i].result));
	}
	ret = dev_add(fd, add, n);
	if (ret != n)
		return ret < 0 ? ret : -EPROTO;
	for (i = 0; i < n; i++) {
		if (add[i].result != TIMERWHEEL_WAS_NONE)
			return add[i].result ?: -EPROTO;
	}
	return 0;
}

/* Arm @n timers on a MANUAL wheel and let them fall due at once. Returns 0 if they did. */
static int make_due(int fd, __u64 key, int n)
{
	int ret, i, part;
	__s64 expired;

	for (i = 0; i < n; i += part) {
		part = n - i < 64 ? n - i : 64;
		ret = arm(fd, key + i, part, 1);
		if (ret)
			return ret;
	}
	expired = tw_advance(fd, 0, 1);
	return expired == n ? 0 : -EPROTO;
}

/* A wheel on CLOCK_MONOTONIC that wakes its readers for @events, or after @ns */
static int open_batching(__u32 events, __u64 ns)
{
	struct timerwheel_setup setup = { .wake_events = events, .wake_ns = ns };
	int fd = dev_open(0);
	int ret = fd < 0 ? fd : dev_setup(fd, &setup);

	return ret < 0 ? ret : fd;
}

/* Create an event at once on a wheel with a running clock: the deadline is in the past */
static int add_past(int fd, __u64 key)
{
	return tw_add1(fd, key, value_of(key), 1, TIMERWHEEL_ABS);
}

static int set_fl(int fd, int set, int clear)
{
	int fl = fcntl(fd, F_GETFL);

	return fl < 0 ? -errno : tw_err(fcntl(fd, F_SETFL, (fl & ~clear) | set));
}

static int pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return tw_err(sched_setaffinity(0, sizeof(set), &set));
}

/* read() that never sleeps, on any descriptor: events, or -errno */
static int read_nowait(int fd, struct timerwheel_event *ev, size_t n)
{
	struct iovec iov = { .iov_base = ev, .iov_len = n * EV_SIZE };
	ssize_t ret;

	tw_poison(ev, n * EV_SIZE);
	ret = preadv2(fd, &iov, 1, -1, RWF_NOWAIT);
	return ret < 0 ? -errno : (int)(ret / EV_SIZE);
}

/* Are these the keys from @first, each once, in any order (at most 64)? */
static bool has_keys(const struct timerwheel_event *ev, int n, __u64 first)
{
	__u64 seen = 0;
	int i;

	for (i = 0; i < n; i++) {
		__u64 k = ev[i].key - first;

		if (k >= (__u64)n || seen & (1ULL << k) || ev[i].value != value_of(ev[i].key))
			return false;
		seen |= 1ULL << k;
	}
	return true;
}

static atomic_int signals_seen;

static void on_signal(int sig)
{
	(void)sig;
	atomic_fetch_add(&signals_seen, 1);
}

static int catch_signal(int sig, int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };

	return tw_err(sigaction(sig, &sa, NULL));
}

FIXTURE(manual) {
	int fd;		/* MANUAL clock, tick of 1 ns, non-blocking */
};

FIXTURE_SETUP(manual)
{
	self->fd = tw_open_manual(1);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(manual)
{
	close(self->fd);
}

FIXTURE(clock) {
	int fd;		/* CLOCK_MONOTONIC, all defaults, non-blocking */
};

FIXTURE_SETUP(clock)
{
	self->fd = dev_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(clock)
{
	close(self->fd);
}

/* --- Buffers ------------------------------------------------------------------ */

/* A buffer for one event gets one; the others wait for the next read. */
TEST_F(manual, short_buffer_gets_one)
{
	struct timerwheel_event ev[5];
	int i;

	ASSERT_EQ(0, make_due(self->fd, 0, 5));
	for (i = 0; i < 5; i++)
		ASSERT_EQ(1, dev_read(self->fd, &ev[i], 1));
	EXPECT_TRUE(has_keys(ev, 5, 0));
}

/* A buffer for two and a half events gets two, and its last half is not touched. */
TEST_F(manual, odd_buffer_used_to_last_whole_event)
{
	char buf[EV_SIZE * 5 / 2];

	ASSERT_EQ(0, make_due(self->fd, 0, 5));
	tw_poison(buf, sizeof(buf));
	EXPECT_EQ(2 * EV_SIZE, read(self->fd, buf, sizeof(buf)));
	EXPECT_TRUE(tw_poisoned(buf + 2 * EV_SIZE, sizeof(buf) - 2 * EV_SIZE));
}

/* A buffer too small for one event is EINVAL, due or not. */
TEST_F(manual, tiny_buffer_einval)
{
	static const size_t size[] = { 0, 1, EV_SIZE - 1 };
	char buf[EV_SIZE];
	size_t i;
	int due;

	for (due = 0; due < 2; due++) {
		for (i = 0; i < ARRAY_SIZE(size); i++) {
			EXPECT_EQ(-EINVAL, tw_err(read(self->fd, buf, size[i]))) {
				TH_LOG("size %zu, due %d", size[i], due);
			}
		}
		ASSERT_EQ(0, due ? 0 : make_due(self->fd, 0, 1));
	}
}

/* A read that failed because of its size has not taken the event. */
TEST_F(manual, tiny_buffer_takes_nothing)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, make_due(self->fd, 7, 1));
	ASSERT_EQ(-EINVAL, tw_err(read(self->fd, &ev, EV_SIZE - 1)));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(7, ev.key);
}

/* A read returns as many as fit: ten thousand events come in one read. */
TEST_F(manual, large_buffer_gets_all)
{
	enum { N = 10000 };
	struct timerwheel_event *ev = calloc(N + 1, EV_SIZE);

	ASSERT_NE(NULL, ev);
	ASSERT_EQ(0, make_due(self->fd, 0, N));
	EXPECT_EQ(N, dev_read(self->fd, ev, N + 1));
	free(ev);
}

/* readv: the events continue from one piece into the next, whatever their sizes. */
TEST_F(manual, readv_scatters)
{
	struct timerwheel_event ev[3];
	char a[20], b[100], c[3 * EV_SIZE - 120 + 10];
	struct iovec iov[] = {
		{ a, sizeof(a) }, { b, sizeof(b) }, { c, sizeof(c) },
	};

	ASSERT_EQ(0, make_due(self->fd, 40, 3));
	tw_poison(c, sizeof(c));
	ASSERT_EQ(3 * EV_SIZE, readv(self->fd, iov, ARRAY_SIZE(iov)));
	memcpy(ev, a, sizeof(a));
	memcpy((char *)ev + 20, b, sizeof(b));
	memcpy((char *)ev + 120, c, 3 * EV_SIZE - 120);
	EXPECT_TRUE(has_keys(ev, 3, 40));
	EXPECT_TRUE(tw_poisoned(c + 3 * EV_SIZE - 120, 10));
}

/* The contents of an event: key, value, deadline, fired time, no flags. */
TEST_F(manual, event_fields)
{
	struct timerwheel_event ev;
	struct timerwheel_add add = { .key = 1, .value = 2, .deadline = 30 };

	ASSERT_EQ(TIMERWHEEL_WAS_NONE, tw_add_elem(self->fd, &add));
	ASSERT_EQ(1, tw_advance(self->fd, 0, 100));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(1, ev.key);
	EXPECT_EQ(2, ev.value);
	EXPECT_EQ(30, ev.deadline);
	EXPECT_EQ(30, ev.fired);
	EXPECT_EQ(0, ev.overruns);
	EXPECT_EQ(0, ev.flags);
	EXPECT_EQ(add.index, ev.index);
}

/* --- Memory that faults --------------------------------------------------------- */

/* A bad pointer is EFAULT. */
TEST_F(manual, bad_buffer_efault)
{
	ASSERT_EQ(0, make_due(self->fd, 0, 1));
	EXPECT_EQ(-EFAULT, tw_err(read(self->fd, tw_fence(0), EV_SIZE)));
}

/* The event then goes to the next reader. */
TEST_F(manual, bad_buffer_takes_nothing)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, make_due(self->fd, 9, 1));
	ASSERT_EQ(-EFAULT, tw_err(read(self->fd, tw_fence(0), EV_SIZE)));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(9, ev.key);
}

/* The same when all but the last byte of the first event could be written. */
TEST_F(manual, nearly_good_buffer_takes_nothing)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, make_due(self->fd, 9, 1));
	ASSERT_EQ(-EFAULT, tw_err(read(self->fd, tw_fence(EV_SIZE - 1), EV_SIZE)));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(9, ev.key);
}

/* After EFAULT the wheel is still readable for poll. */
TEST_F(manual, bad_buffer_stays_readable)
{
	ASSERT_EQ(0, make_due(self->fd, 9, 1));
	ASSERT_EQ(-EFAULT, tw_err(read(self->fd, tw_fence(0), EV_SIZE)));
	EXPECT_TRUE(dev_poll(self->fd, 0) & POLLIN);
}

/* A copy that faults half-way returns the whole events before the fault. */
TEST_F(manual, fault_midway_counts_whole_events)
{
	char *buf = tw_fence(3 * EV_SIZE + EV_SIZE / 2);

	ASSERT_EQ(0, make_due(self->fd, 0, 10));
	EXPECT_EQ(3 * EV_SIZE, read(self->fd, buf, 10 * EV_SIZE));
}

/* Wherever it faults, no event is lost: the next reader gets the rest. */
TEST_F(manual, fault_midway_loses_nothing)
{
	static const int whole[] = { 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 47, 48, 59 };
	static const int part[] = { 0, 1, 8, EV_SIZE / 2, EV_SIZE - 1 };
	enum { N = 60 };
	struct timerwheel_event ev[N], *buf;
	size_t i, j;
	ssize_t n;

	for (i = 0; i < ARRAY_SIZE(whole); i++) {
		for (j = 0; j < ARRAY_SIZE(part); j++) {
			buf = tw_fence(whole[i] * EV_SIZE + part[j]);
			ASSERT_EQ(0, make_due(self->fd, 0, N));
			n = read(self->fd, buf, N * EV_SIZE) / (ssize_t)EV_SIZE;
			ASSERT_LT(0, n);
			ASSERT_GT(N, n);
			memcpy(ev, buf, n * EV_SIZE);
			ASSERT_EQ(N - n, dev_read(self->fd, ev + n, N - n));
			ASSERT_EQ(-EAGAIN, read_nowait(self->fd, buf, 1));
			ASSERT_TRUE(has_keys(ev, N, 0)) {
				TH_LOG("fault after %d events and %d bytes", whole[i], part[j]);
			}
		}
	}
}

/* readv with a bad second piece returns what went into the first. */
TEST_F(manual, fault_in_second_iovec)
{
	struct timerwheel_event ev[4];
	struct iovec iov[] = {
		{ ev, 2 * EV_SIZE }, { tw_fence(0), 2 * EV_SIZE },
	};

	ASSERT_EQ(0, make_due(self->fd, 0, 4));
	EXPECT_EQ(2 * EV_SIZE, readv(self->fd, iov, 2));
}

/* Memory whose second page is mapped only while an event is written to it */
TEST_F(manual, readv_fresh_memory)
{
	enum { N = 20 };
	size_t page = getpagesize();
	char *fresh = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	struct timerwheel_event ev[N];
	struct iovec iov[2] = { { ev, EV_SIZE } };

	ASSERT_NE(MAP_FAILED, fresh);
	/* Half of the event is in the first page */
	iov[1].iov_base = fresh + page - 3 * EV_SIZE - EV_SIZE / 2;
	iov[1].iov_len = (N - 1) * EV_SIZE;
	fresh[0] = 1;
	ASSERT_EQ(0, make_due(self->fd, 0, N));
	ASSERT_EQ(N * EV_SIZE, readv(self->fd, iov, 2));
	memcpy(ev + 1, iov[1].iov_base, iov[1].iov_len);
	EXPECT_TRUE(has_keys(ev, N, 0));
}

/*
 * The next free timer does not depend on whether the buffer's second page had to be faulted in,
 * even if a periodic timer is among the read timers: a seed of abi_fuzz gives one digest.
 */
TEST_F(manual, fresh_memory_same_handles)
{
	enum { N = 8 };
	size_t page = getpagesize();
	struct timerwheel_add add[N];
	__u32 first[N] = {};
	int round, i;
	char *buf;

	for (round = 0; round < 2; round++) {
		buf = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
		ASSERT_NE(MAP_FAILED, buf);
		buf[0] = 1;
		buf[page] = 1;
		if (round)
			ASSERT_EQ(0, madvise(buf + page, page, MADV_DONTNEED));
		close(self->fd);
		self->fd = tw_open_manual(1);
		ASSERT_LE(0, self->fd);
		ASSERT_EQ(0, tw_add1_periodic(self->fd, 99, 0, 1, 1, 0));
		ASSERT_EQ(0, arm(self->fd, 0, N, 1));
		ASSERT_EQ(N + 1, tw_advance(self->fd, 0, 1));
		ASSERT_EQ((N + 1) * EV_SIZE,
			  read(self->fd, buf + page - N / 2 * EV_SIZE, (N + 1) * EV_SIZE));
		for (i = 0; i < N; i++)
			add[i] = (struct timerwheel_add){ .key = i, .deadline = HOUR };
		ASSERT_EQ(N, dev_add(self->fd, add, N));
		for (i = 0; i < N && round; i++)
			EXPECT_EQ(first[i], add[i].index);
		for (i = 0; i < N; i++)
			first[i] = add[i].index;
	}
}

/* Events that were not delivered because of a fault are counted once. */
TEST_F(manual, fault_counts_deliveries_once)
{
	struct timerwheel_event ev[10];
	struct timerwheel_stats st;

	ASSERT_EQ(0, make_due(self->fd, 0, 10));
	ASSERT_EQ(3 * EV_SIZE, read(self->fd, tw_fence(3 * EV_SIZE), 10 * EV_SIZE));
	ASSERT_EQ(7, dev_read(self->fd, ev, 10));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(10, st.delivered);
}

/* A fault does not arm a periodic timer again: its event is not delivered yet. */
TEST_F(manual, fault_keeps_periodic_due)
{
	struct timerwheel_stats st;

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 1, 10, 10, 0));
	ASSERT_EQ(1, tw_advance(self->fd, 0, 10));
	ASSERT_EQ(-EFAULT, tw_err(read(self->fd, tw_fence(0), EV_SIZE)));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(1, st.due);
	EXPECT_EQ(0, st.rearmed);
}

/* --- Blocking and signals ---------------------------------------------------------- */

/* O_NONBLOCK: EAGAIN when no timer is due, even if one is pending. */
TEST_F(manual, nonblock_eagain)
{
	struct timerwheel_event ev;

	EXPECT_EQ(-EAGAIN, dev_read(self->fd, &ev, 1));
	ASSERT_EQ(0, arm(self->fd, 1, 1, 10));
	EXPECT_EQ(-EAGAIN, dev_read(self->fd, &ev, 1));
}

/* RWF_NOWAIT: EAGAIN even though the descriptor blocks. */
TEST_F(manual, nowait_eagain)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	EXPECT_EQ(-EAGAIN, read_nowait(self->fd, &ev, 1));
}

/* RWF_NOWAIT takes the waiting events. */
TEST_F(manual, nowait_reads)
{
	struct timerwheel_event ev[4];

	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	ASSERT_EQ(0, make_due(self->fd, 0, 3));
	ASSERT_EQ(3, read_nowait(self->fd, ev, 4));
	EXPECT_TRUE(has_keys(ev, 3, 0));
}

/* Bytes of kernel memory that the wheel occupies */
static __u64 memory(int fd)
{
	struct timerwheel_stats st;

	return tw_stats(fd, &st) ? 0 : st.memory;
}

/* RWF_NOWAIT takes events without allocating a base, on a CPU that has none for this wheel. */
TEST_F(clock, nowait_allocates_nothing)
{
	struct timerwheel_event ev[8];
	__u64 before;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU only");
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, arm(self->fd, 0, 3, 0));
	ASSERT_EQ(0, tw_add1_periodic(self->fd, 3, value_of(3), 0, HOUR, 0));
	before = memory(self->fd);
	ASSERT_EQ(0, pin(1));
	ASSERT_EQ(4, read_nowait(self->fd, ev, 8));
	EXPECT_TRUE(has_keys(ev, 4, 0));
	EXPECT_EQ(before, memory(self->fd));
	EXPECT_EQ(-EAGAIN, read_nowait(self->fd, ev, 8));
	EXPECT_EQ(before, memory(self->fd));
	/* A blocking call allocates a base for this CPU. */
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, arm(self->fd, 0, 1, 0));
	ASSERT_EQ(0, pin(1));
	ASSERT_EQ(1, dev_read(self->fd, ev, 8));
	EXPECT_LT(before, memory(self->fd));
}

/* RWF_NOWAIT returns the event even if the buffer must be faulted in. */
TEST_F(manual, nowait_fresh_memory)
{
	struct iovec iov = { .iov_len = 4 * EV_SIZE };

	iov.iov_base = mmap(NULL, iov.iov_len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, iov.iov_base);
	ASSERT_EQ(0, make_due(self->fd, 0, 3));
	ASSERT_EQ(3 * EV_SIZE, preadv2(self->fd, &iov, 1, -1, RWF_NOWAIT));
	EXPECT_TRUE(has_keys(iov.iov_base, 3, 0));
}

/* A blocking read sleeps until a timer is due. */
TEST_F(manual, blocking_read_sleeps)
{
	struct sleeper s;

	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	ASSERT_EQ(0, arm(self->fd, 1, 1, 10));
	ASSERT_EQ(0, sleeper_start(&s, self->fd, 4));
	ASSERT_EQ(0, tw_advance(self->fd, 0, 9));
	EXPECT_FALSE(sleeper_done(&s, QUIET_MS));
}

/* It returns with the waiting events, not only when its buffer is full. */
TEST_F(manual, blocking_read_wakes)
{
	struct sleeper s;

	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	ASSERT_EQ(0, sleeper_start(&s, self->fd, 16));
	ASSERT_EQ(0, make_due(self->fd, 0, 2));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	ASSERT_LT(0, s.ret);
	EXPECT_GT(3, s.ret);
}

/* The clock alone also wakes it. */
TEST_F(clock, blocking_read_wakes)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	ASSERT_EQ(0, arm(self->fd, 5, 1, 30 * MSEC));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(5, ev.key);
}

/* A timer armed for the past also wakes a reader. */
TEST_F(clock, past_deadline_wakes_reader)
{
	struct sleeper s;

	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	ASSERT_EQ(0, sleeper_start(&s, self->fd, 1));
	ASSERT_EQ(0, add_past(self->fd, 1));
	EXPECT_TRUE(sleeper_done(&s, LONG_MS));
}

/* Eight readers sleep, eight events fall due at once: all readers are woken. */
TEST_F(manual, blocked_readers_all_served)
{
	enum { N = 8 };
	struct timerwheel_event ev[N];
	struct sleeper s[N];
	int i;

	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, sleeper_start(&s[i], self->fd, 1));
	ASSERT_EQ(0, make_due(self->fd, 0, N));
	for (i = 0; i < N; i++) {
		ASSERT_TRUE(sleeper_done(&s[i], LONG_MS));
		ASSERT_EQ(1, s[i].ret);
		ev[i] = s[i].ev[0];
	}
	EXPECT_TRUE(has_keys(ev, N, 0));
}

/* A read into unmapped memory */
static void *reads_nowhere(void *arg)
{
	struct sleeper *s = arg;

	atomic_store(&s->tid, gettid());
	s->ret = tw_err(read(s->fd, tw_fence(0), EV_SIZE));
	atomic_store(&s->done, true);
	return NULL;
}

/* A reader that was woken and cannot take the event leaves it to the next reader. */
TEST_F(manual, fault_wakes_another)
{
	struct sleeper bad, good;

	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	ASSERT_EQ(0, sleeper_call(&bad, self->fd, 1, reads_nowhere));
	ASSERT_EQ(0, sleeper_start(&good, self->fd, 1));
	ASSERT_EQ(0, make_due(self->fd, 0, 1));
	ASSERT_TRUE(sleeper_done(&good, LONG_MS));
	EXPECT_EQ(1, good.ret);
	/* In case the other reader was woken first. */
	if (!sleeper_done(&bad, QUIET_MS))
		ASSERT_EQ(0, make_due(self->fd, 1, 1));
	ASSERT_TRUE(sleeper_done(&bad, LONG_MS));
	EXPECT_EQ(-EFAULT, bad.ret);
}

/* A signal without SA_RESTART ends a read that sleeps: EINTR. */
TEST_F(manual, signal_eintr)
{
	struct sleeper s;

	ASSERT_EQ(0, catch_signal(SIGUSR1, 0));
	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	ASSERT_EQ(0, sleeper_start(&s, self->fd, 1));
	ASSERT_EQ(0, pthread_kill(s.thread, SIGUSR1));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(-EINTR, s.ret);
}

/* With SA_RESTART the read continues, and gets its event. */
TEST_F(manual, signal_restart)
{
	struct sleeper s;

	ASSERT_EQ(0, catch_signal(SIGUSR1, SA_RESTART));
	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	ASSERT_EQ(0, sleeper_start(&s, self->fd, 1));
	ASSERT_EQ(0, pthread_kill(s.thread, SIGUSR1));
	while (!atomic_load(&signals_seen))
		tw_sleep(MSEC);
	EXPECT_FALSE(sleeper_done(&s, QUIET_MS));
	ASSERT_EQ(0, make_due(self->fd, 3, 1));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(1, s.ret);
}

/* A signal that comes while events wait does not make read() fail. */
TEST_F(manual, signal_does_not_hide_event)
{
	struct timerwheel_event ev;
	sigset_t set;

	ASSERT_EQ(0, catch_signal(SIGUSR1, 0));
	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	ASSERT_EQ(0, make_due(self->fd, 3, 1));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &set, NULL));
	ASSERT_EQ(0, raise(SIGUSR1));
	EXPECT_EQ(1, dev_read(self->fd, &ev, 1));
}

/*
 * A reader is killed at any moment: each event is either in its buffer or goes to the next reader,
 * never both or neither.
 */
TEST_F_TIMEOUT(manual, killed_reader_loses_nothing, 300)
{
	enum { ROUNDS = 100, N = 32 };
	struct timerwheel_event ev[N + 1], *buf;
	__u64 seed = tw_seed();
	int round, i, n;
	pid_t pid;

	TH_LOG("TW_SEED=%llu", (unsigned long long)seed);
	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	buf = mmap(NULL, sizeof(ev), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, buf);
	for (round = 0; round < ROUNDS; round++) {
		tw_poison(buf, sizeof(ev));
		pid = fork();
		ASSERT_LE(0, pid);
		for (i = 0; !pid && i < N; i++) {
			if (read(self->fd, buf + i, EV_SIZE) != EV_SIZE)
				_exit(1);
		}
		if (!pid)
			_exit(0);
		for (i = 0; i < 1000 && !asleep(pid, pid); i++)
			sched_yield();
		ASSERT_EQ(0, make_due(self->fd, 0, N));
		tw_sleep(tw_rand(&seed) % 500 * USEC);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		for (i = 0; i < N && !tw_poisoned(buf + i, EV_SIZE); i++)
			ev[i] = buf[i];
		n = read_nowait(self->fd, ev + i, N + 1 - i);
		ASSERT_EQ(N, i + (n == -EAGAIN ? 0 : n)) {
			TH_LOG("round %d: %d to the killed one, then %d", round, i, n);
		}
		ASSERT_TRUE(has_keys(ev, N, 0));
	}
}

/* --- Many readers ------------------------------------------------------------------ */

#define CROWD_TIMERS	20000
#define CROWD_READERS	4

/* Shared by the readers, which are threads or processes */
struct crowd {
	int fd;
	atomic_int left;	/* events still to come */
	atomic_int wrong;	/* events that were never armed, or are early */
	atomic_uchar seen[CROWD_TIMERS];
};

FIXTURE(crowd) {
	struct crowd *c;
};

FIXTURE_VARIANT(crowd) {
	bool processes;
	bool blocks;		/* read() sleeps; else poll() does */
	int per_read;
};

FIXTURE_VARIANT_ADD(crowd, threads_one) {
	.per_read = 1,
};

FIXTURE_VARIANT_ADD(crowd, threads_many) {
	.per_read = 100,
};

FIXTURE_VARIANT_ADD(crowd, threads_blocked) {
	.blocks = true, .per_read = 1,
};

FIXTURE_VARIANT_ADD(crowd, processes_one) {
	.processes = true, .per_read = 1,
};

FIXTURE_VARIANT_ADD(crowd, processes_many) {
	.processes = true, .per_read = 100,
};

FIXTURE_VARIANT_ADD(crowd, processes_blocked) {
	.processes = true, .blocks = true, .per_read = 1,
};

FIXTURE_SETUP(crowd)
{
	self->c = mmap(NULL, sizeof(*self->c), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->c);
	self->c->fd = dev_open(variant->blocks ? 0 : O_NONBLOCK);
	ASSERT_LE(0, self->c->fd);
	atomic_store(&self->c->left, CROWD_TIMERS);
}

FIXTURE_TEARDOWN(crowd)
{
	close(self->c->fd);
}

static void crowd_read(struct crowd *c, bool blocks, int per_read)
{
	struct timerwheel_event ev[128];
	int i, n;

	while (blocks || atomic_load(&c->left) > 0) {
		if (!blocks && dev_poll(c->fd, 20) <= 0)
			continue;
		n = dev_read(c->fd, ev, per_read);
		if (n < 0 && n != -EAGAIN)
			atomic_fetch_add(&c->wrong, 1);
		for (i = 0; i < n; i++) {
			if (ev[i].key >= CROWD_TIMERS)
				return;		/* told to stop */
			if (ev[i].value != value_of(ev[i].key) || ev[i].fired < ev[i].deadline)
				atomic_fetch_add(&c->wrong, 1);
			atomic_fetch_add(&c->seen[ev[i].key], 1);
			atomic_fetch_sub(&c->left, 1);
		}
	}
}

struct crowd_member {
	pthread_t thread;
	pid_t pid;
	struct crowd *c;
	bool blocks;
	int per_read;
};

static void *crowd_thread(void *arg)
{
	struct crowd_member *m = arg;

	crowd_read(m->c, m->blocks, m->per_read);
	return NULL;
}

/* Thousands of timers and several readers: each event goes to exactly one reader. */
TEST_F_TIMEOUT(crowd, exactly_once, 300)
{
	struct crowd *c = self->c;
	struct crowd_member m[CROWD_READERS];
	int i, n, status, twice = 0, lost = 0;

	for (i = 0; i < CROWD_READERS; i++) {
		m[i].c = c;
		m[i].blocks = variant->blocks;
		m[i].per_read = variant->per_read;
		if (!variant->processes) {
			ASSERT_EQ(0, pthread_create(&m[i].thread, NULL, crowd_thread, &m[i]));
			continue;
		}
		m[i].pid = fork();
		ASSERT_LE(0, m[i].pid);
		if (!m[i].pid) {
			crowd_read(c, variant->blocks, variant->per_read);
			_exit(0);
		}
	}
	for (i = 0; i < CROWD_TIMERS; i += n) {
		n = CROWD_TIMERS - i < 50 ? CROWD_TIMERS - i : 50;
		ASSERT_EQ(0, arm(c->fd, i, n, i / 50 % 7 * MSEC));
	}
	while (atomic_load(&c->left) > 0)
		tw_sleep(10 * MSEC);
	for (i = 0; variant->blocks && i < CROWD_READERS; i++)
		ASSERT_EQ(0, arm(c->fd, CROWD_TIMERS + i, 1, 0));
	for (i = 0; i < CROWD_READERS; i++) {
		if (!variant->processes) {
			ASSERT_EQ(0, pthread_join(m[i].thread, NULL));
			continue;
		}
		ASSERT_EQ(m[i].pid, waitpid(m[i].pid, &status, 0));
		ASSERT_EQ(0, status);
	}
	for (i = 0; i < CROWD_TIMERS; i++) {
		twice += c->seen[i] > 1;
		lost += !c->seen[i];
	}
	EXPECT_EQ(0, twice);
	EXPECT_EQ(0, lost);
	EXPECT_EQ(0, atomic_load(&c->wrong));
}

/* --- poll and epoll --------------------------------------------------------------- */

/* A due timer makes the wheel readable, a pending one does not. */
TEST_F(manual, poll_readable)
{
	EXPECT_EQ(0, dev_poll(self->fd, 0));
	ASSERT_EQ(0, arm(self->fd, 1, 1, 10));
	EXPECT_EQ(0, dev_poll(self->fd, 0));
	ASSERT_EQ(1, tw_advance(self->fd, 0, 10));
	EXPECT_EQ(POLLIN, dev_poll(self->fd, 0));
}

/* A timer armed in the past makes it readable before ADD returns. */
TEST_F(clock, past_deadline_readable_at_once)
{
	ASSERT_EQ(0, add_past(self->fd, 1));
	EXPECT_EQ(POLLIN, dev_poll(self->fd, 0));
}

/* It stays readable until the last event is read. */
TEST_F(manual, poll_readable_until_empty)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, make_due(self->fd, 0, 2));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(POLLIN, dev_poll(self->fd, 0));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(0, dev_poll(self->fd, 0));
}

/* Every thread that sleeps in poll is woken, even if a reader also sleeps. */
TEST_F(manual, poll_wakes_every_poller)
{
	struct sleeper s[4], reader;
	size_t i;

	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	ASSERT_EQ(0, sleeper_start(&reader, self->fd, 1));
	for (i = 0; i < ARRAY_SIZE(s); i++)
		ASSERT_EQ(0, sleeper_start(&s[i], self->fd, 0));
	ASSERT_EQ(0, make_due(self->fd, 0, 2));
	for (i = 0; i < ARRAY_SIZE(s); i++)
		EXPECT_TRUE(sleeper_done(&s[i], LONG_MS));
}

static int errors_of(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLPRI | POLLOUT | POLLRDHUP };

	if (poll(&p, 1, 0) < 0)
		return -errno;
	return p.revents & (POLLHUP | POLLERR | POLLNVAL | POLLRDHUP);
}

/* Never POLLHUP or POLLERR: a service manager would drop the descriptor. */
TEST_F(manual, poll_never_hup_or_err)
{
	struct timerwheel_entry ent[4];
	struct timerwheel_event ev[4];
	int other, fd = self->fd;
	pid_t pid;

	EXPECT_EQ(0, errors_of(fd));			/* new */
	ASSERT_EQ(0, arm(fd, 0, 2, 5));
	EXPECT_EQ(0, errors_of(fd));			/* pending */
	ASSERT_EQ(2, tw_advance(fd, 0, 5));
	EXPECT_EQ(0, errors_of(fd));			/* due */
	ASSERT_EQ(2, dev_read(fd, ev, 4));
	EXPECT_EQ(0, errors_of(fd));			/* all read */
	pid = fork();
	if (!pid)
		_exit(0);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(0, errors_of(fd));			/* another holder is gone */
	other = dup(fd);
	ASSERT_EQ(0, close(other));
	EXPECT_EQ(0, errors_of(fd));			/* a copy is closed */
	ASSERT_EQ(0, arm(fd, 0, 2, 5));
	ASSERT_EQ(2, tw_drain(fd, 0, ent, 4));
	EXPECT_EQ(0, errors_of(fd));			/* drained */
	ASSERT_EQ(0, tw_drain(fd, TIMERWHEEL_DRAIN_CLOSE, ent, 4));
	EXPECT_EQ(0, errors_of(fd));			/* closed to new timers */
}

static int epoll_with(int fd, __u32 events)
{
	struct epoll_event ee = { .events = events, .data.fd = fd };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	return tw_err(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ee)) ?: ep;
}

/* Wait up to @ms. The epoll events of the first descriptor that is ready, or 0. */
static int epoll_get(int ep, int ms)
{
	struct epoll_event ee = { 0 };
	int ret = tw_err(epoll_wait(ep, &ee, 1, ms));

	return ret > 0 ? (int)ee.events : ret;
}

/* epoll, level-triggered: reports the wheel repeatedly until all events are read. */
TEST_F(manual, epoll_level)
{
	struct timerwheel_event ev[4];
	int ep = epoll_with(self->fd, EPOLLIN);

	ASSERT_LE(0, ep);
	EXPECT_EQ(0, epoll_get(ep, 0));
	ASSERT_EQ(0, make_due(self->fd, 0, 2));
	EXPECT_EQ(EPOLLIN, epoll_get(ep, LONG_MS));
	EXPECT_EQ(EPOLLIN, epoll_get(ep, LONG_MS));
	ASSERT_EQ(1, dev_read(self->fd, ev, 1));
	EXPECT_EQ(EPOLLIN, epoll_get(ep, LONG_MS));
	ASSERT_EQ(1, dev_read(self->fd, ev, 1));
	EXPECT_EQ(0, epoll_get(ep, QUIET_MS));
}

/* epoll, edge-triggered: reports the wheel once. */
TEST_F(manual, epoll_edge_tells_once)
{
	int ep = epoll_with(self->fd, EPOLLIN | EPOLLET);

	ASSERT_LE(0, ep);
	ASSERT_EQ(0, make_due(self->fd, 0, 1));
	ASSERT_EQ(EPOLLIN, epoll_get(ep, LONG_MS));
	EXPECT_EQ(0, epoll_get(ep, QUIET_MS));
}

/* It reports the wheel again for timers that fall due after all events were read. */
TEST_F(manual, epoll_edge_tells_again)
{
	struct timerwheel_event ev[4];
	int i, ep = epoll_with(self->fd, EPOLLIN | EPOLLET);

	ASSERT_LE(0, ep);
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, make_due(self->fd, 0, 1));
		ASSERT_EQ(EPOLLIN, epoll_get(ep, LONG_MS));
		ASSERT_EQ(1, dev_read(self->fd, ev, 4));
		ASSERT_EQ(-EAGAIN, dev_read(self->fd, ev, 4));
	}
}

/* Edge-triggered on a running clock: a reader that reads to EAGAIN each time gets all events. */
TEST_F_TIMEOUT(clock, epoll_edge_loses_no_wakeup, 300)
{
	enum { N = 5000 };
	struct timerwheel_event ev[64];
	int i, n, got = 0, ep = epoll_with(self->fd, EPOLLIN | EPOLLET);

	ASSERT_LE(0, ep);
	for (i = 0; i < N; i += 50)
		ASSERT_EQ(0, arm(self->fd, i, 50, i * 100 * USEC / 50));
	while (got < N) {
		ASSERT_EQ(EPOLLIN, epoll_get(ep, LONG_MS)) {
			TH_LOG("no wake-up after %d of %d events", got, N);
		}
		while ((n = dev_read(self->fd, ev, 64)) > 0)
			got += n;
		ASSERT_EQ(-EAGAIN, n);
	}
	EXPECT_EQ(N, got);
}

/* epoll never reports EPOLLHUP or EPOLLERR. */
TEST_F(manual, epoll_never_hup_or_err)
{
	struct timerwheel_entry ent;
	int ep = epoll_with(self->fd, EPOLLPRI | EPOLLRDHUP);	/* HUP and ERR always */

	ASSERT_LE(0, ep);
	ASSERT_EQ(0, make_due(self->fd, 0, 1));
	EXPECT_EQ(0, epoll_get(ep, 0));
	ASSERT_EQ(1, tw_drain(self->fd, TIMERWHEEL_DRAIN_CLOSE, &ent, 1));
	EXPECT_EQ(0, epoll_get(ep, QUIET_MS));
}

/* A waiter with its own epoll set and EPOLLEXCLUSIVE */
struct waiter {
	pthread_t thread;
	int ep, fd;
	int stop;		/* an eventfd */
	bool reads;
	atomic_int tid;
	atomic_int woken;
	atomic_int *got;
};

static void *waiter_main(void *arg)
{
	struct timerwheel_event ev;
	struct waiter *w = arg;
	struct epoll_event ee;

	atomic_store(&w->tid, gettid());
	for (;;) {
		if (epoll_wait(w->ep, &ee, 1, -1) != 1)
			continue;
		if (ee.data.fd == w->stop)
			return NULL;
		atomic_fetch_add(&w->woken, 1);
		if (!w->reads)
			return NULL;
		if (dev_read(w->fd, &ev, 1) == 1)
			atomic_fetch_add(w->got, 1);
	}
}

static int waiter_start(struct waiter *w, int fd, int stop, bool reads, atomic_int *got)
{
	struct epoll_event ee = { .events = EPOLLIN, .data.fd = stop };
	int i;

	memset(w, 0, sizeof(*w));
	w->fd = fd;
	w->stop = stop;
	w->reads = reads;
	w->got = got;
	w->ep = epoll_with(fd, EPOLLIN | EPOLLEXCLUSIVE);
	if (w->ep < 0 || epoll_ctl(w->ep, EPOLL_CTL_ADD, stop, &ee))
		return -errno;
	if (pthread_create(&w->thread, NULL, waiter_main, w))
		return -EAGAIN;
	for (i = 0; i < LONG_MS; i++) {
		if (atomic_load(&w->tid) && asleep(getpid(), atomic_load(&w->tid)))
			return 0;
		tw_sleep(MSEC);
	}
	return -ETIMEDOUT;
}

/* EPOLLEXCLUSIVE: one event does not wake all waiters. */
TEST_F(manual, epoll_exclusive_no_herd)
{
	struct waiter w[4];
	int i, k, woken = 0, stop = eventfd(0, 0);

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, waiter_start(&w[i], self->fd, stop, false, NULL));
	ASSERT_EQ(0, make_due(self->fd, 0, 1));
	for (k = 0; k < LONG_MS && !woken; k++) {
		tw_sleep(MSEC);
		for (i = 0; i < 4; i++)
			woken += atomic_load(&w[i].woken);
	}
	EXPECT_LT(0, woken);
	tw_sleep(QUIET_MS * MSEC);
	for (woken = 0, i = 0; i < 4; i++)
		woken += atomic_load(&w[i].woken);
	EXPECT_GT(4, woken);
}

/* EPOLLEXCLUSIVE: several waiters together collect everything. */
TEST_F_TIMEOUT(clock, epoll_exclusive_collects_all, 300)
{
	enum { N = 2000 };
	int i, stop = eventfd(0, 0);
	atomic_int got = 0;
	struct waiter w[4];

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, waiter_start(&w[i], self->fd, stop, true, &got));
	for (i = 0; i < N; i += 20)
		ASSERT_EQ(0, arm(self->fd, i, 20, i / 20 % 5 * MSEC));
	for (i = 0; i < LONG_MS && atomic_load(&got) < N; i++)
		tw_sleep(MSEC);
	EXPECT_EQ(N, atomic_load(&got));
	ASSERT_EQ(0, eventfd_write(stop, 1));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
}

/* --- SIGIO ---------------------------------------------------------------------------- */

/* Wait for @sig (blocked) up to @ms: 0 or -errno */
static int signal_get(int sig, int ms, siginfo_t *info)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * MSEC };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return sigtimedwait(&set, info, &ts) == sig ? 0 : -errno;
}

static int async_on(int fd, int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	if (sigprocmask(SIG_BLOCK, &set, NULL) || fcntl(fd, F_SETOWN, getpid()) ||
	    fcntl(fd, F_SETSIG, sig == SIGIO ? 0 : sig))
		return -errno;
	return set_fl(fd, O_ASYNC, 0);
}

/* O_ASYNC: a due timer sends SIGIO. */
TEST_F(manual, sigio)
{
	siginfo_t info;

	ASSERT_EQ(0, async_on(self->fd, SIGIO));
	ASSERT_EQ(0, make_due(self->fd, 0, 1));
	EXPECT_EQ(0, signal_get(SIGIO, LONG_MS, &info));
}

/* The same on a running clock: the signal comes from the interrupt. */
TEST_F(clock, sigio)
{
	siginfo_t info;

	ASSERT_EQ(0, async_on(self->fd, SIGIO));
	ASSERT_EQ(0, arm(self->fd, 1, 1, 20 * MSEC));
	EXPECT_EQ(0, signal_get(SIGIO, LONG_MS, &info));
}

/* F_SETSIG: the signal has the descriptor, and reports that it is readable. */
TEST_F(manual, sigio_tells_what)
{
	int sig = SIGRTMIN + 1;
	siginfo_t info = { 0 };

	ASSERT_EQ(0, async_on(self->fd, sig));
	ASSERT_EQ(0, make_due(self->fd, 0, 1));
	ASSERT_EQ(0, signal_get(sig, LONG_MS, &info));
	EXPECT_EQ(self->fd, info.si_fd);
	EXPECT_EQ(POLL_IN, info.si_code);
	EXPECT_TRUE(info.si_band & POLLIN);
}

/* A pending timer sends no signal. */
TEST_F(manual, sigio_not_for_pending)
{
	siginfo_t info;

	ASSERT_EQ(0, async_on(self->fd, SIGIO));
	ASSERT_EQ(0, arm(self->fd, 1, 1, 10));
	EXPECT_EQ(-EAGAIN, signal_get(SIGIO, QUIET_MS, &info));
}

/* Without O_ASYNC no signal is sent. */
TEST_F(manual, sigio_off)
{
	siginfo_t info;

	ASSERT_EQ(0, async_on(self->fd, SIGIO));
	ASSERT_EQ(0, set_fl(self->fd, 0, O_ASYNC));
	ASSERT_EQ(0, make_due(self->fd, 0, 1));
	EXPECT_EQ(-EAGAIN, signal_get(SIGIO, QUIET_MS, &info));
}

/* --- io_uring ------------------------------------------------------------------------ */

FIXTURE(uring) {
	struct io_uring ring;
	int fd;		/* MANUAL clock, tick of 1 ns, blocks */
};

FIXTURE_SETUP(uring)
{
	self->fd = tw_open_manual(1);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	ASSERT_EQ(0, io_uring_queue_init(64, &self->ring, 0));
}

FIXTURE_TEARDOWN(uring)
{
	io_uring_queue_exit(&self->ring);
	close(self->fd);
}

static int uring_read(struct io_uring *ring, int fd, struct timerwheel_event *ev, int n,
		      __u64 tag)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	tw_poison(ev, n * EV_SIZE);
	io_uring_prep_read(sqe, fd, ev, n * EV_SIZE, -1);
	io_uring_sqe_set_data64(sqe, tag);
	return io_uring_submit(ring);
}

/* The next completion within @ms: 0, its result in @res, or -errno */
static int uring_get(struct io_uring *ring, int ms, int *res, __u64 *tag, __u32 *flags)
{
	struct __kernel_timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * MSEC };
	struct io_uring_cqe *cqe;
	int ret = io_uring_wait_cqe_timeout(ring, &cqe, &ts);

	if (ret < 0)
		return ret;
	*res = cqe->res;
	if (tag)
		*tag = cqe->user_data;
	if (flags)
		*flags = cqe->flags;
	io_uring_cqe_seen(ring, cqe);
	return 0;
}

/* A read through io_uring waits while no timer is due. */
TEST_F(uring, read_waits)
{
	struct timerwheel_event ev;
	int res;

	ASSERT_EQ(0, arm(self->fd, 1, 1, 10));
	ASSERT_EQ(1, uring_read(&self->ring, self->fd, &ev, 1, 1));
	EXPECT_EQ(-ETIME, uring_get(&self->ring, QUIET_MS, &res, NULL, NULL));
}

/* It completes when a timer falls due. */
TEST_F(uring, read_completes)
{
	struct timerwheel_event ev;
	int res;

	ASSERT_EQ(1, uring_read(&self->ring, self->fd, &ev, 1, 1));
	ASSERT_EQ(0, make_due(self->fd, 6, 1));
	ASSERT_EQ(0, uring_get(&self->ring, LONG_MS, &res, NULL, NULL));
	ASSERT_EQ(EV_SIZE, res);
	EXPECT_EQ(6, ev.key);
}

/* The same on a running clock. */
TEST_F(uring, read_completes_by_clock)
{
	struct timerwheel_event ev;
	int res, fd = dev_open(0);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, arm(fd, 6, 1, 30 * MSEC));
	ASSERT_EQ(1, uring_read(&self->ring, fd, &ev, 1, 1));
	ASSERT_EQ(0, uring_get(&self->ring, LONG_MS, &res, NULL, NULL));
	EXPECT_EQ(EV_SIZE, res);
}

/* Threads of this process, including the threads of io_uring. */
static int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *de;
	int n = 0;

	while (dir && (de = readdir(dir)))
		n += de->d_name[0] != '.';
	return n;
}

/* No worker thread sleeps for the read, because io_uring polls instead. */
TEST_F(uring, read_needs_no_worker)
{
	struct timerwheel_event ev[8];
	int i;

	for (i = 0; i < 8; i++)
		ASSERT_EQ(1, uring_read(&self->ring, self->fd, &ev[i], 1, i));
	tw_sleep(QUIET_MS * MSEC);
	EXPECT_EQ(1, count_threads());
}

/* Eight reads wait, eight events fall due at once: each read gets one. */
TEST_F(uring, reads_all_served)
{
	enum { N = 8 };
	struct timerwheel_event ev[N];
	int i, res;

	for (i = 0; i < N; i++)
		ASSERT_EQ(1, uring_read(&self->ring, self->fd, &ev[i], 1, i));
	ASSERT_EQ(0, make_due(self->fd, 0, N));
	for (i = 0; i < N; i++) {
		ASSERT_EQ(0, uring_get(&self->ring, LONG_MS, &res, NULL, NULL));
		ASSERT_EQ(EV_SIZE, res);
	}
	EXPECT_TRUE(has_keys(ev, N, 0));
}

/* A read that was cancelled takes no event; the next reader gets it. */
TEST_F(uring, cancelled_read_takes_nothing)
{
	struct timerwheel_event ev, other;
	struct io_uring_sqe *sqe;
	int i, res;

	ASSERT_EQ(1, uring_read(&self->ring, self->fd, &ev, 1, 77));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_cancel64(sqe, 77, 0);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, uring_get(&self->ring, LONG_MS, &res, NULL, NULL));
	ASSERT_EQ(0, make_due(self->fd, 4, 1));
	ASSERT_EQ(1, read_nowait(self->fd, &other, 1));
	EXPECT_EQ(4, other.key);
}

/* A poll through io_uring completes with POLLIN when a timer falls due. */
TEST_F(uring, poll_completes)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);
	int res;

	io_uring_prep_poll_add(sqe, self->fd, POLLIN);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(-ETIME, uring_get(&self->ring, QUIET_MS, &res, NULL, NULL));
	ASSERT_EQ(0, make_due(self->fd, 0, 1));
	ASSERT_EQ(0, uring_get(&self->ring, LONG_MS, &res, NULL, NULL));
	EXPECT_EQ(POLLIN, res & (POLLIN | POLLERR | POLLHUP));
}

/* A multishot poll completes again for each new event. */
TEST_F(uring, poll_multishot)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);
	struct timerwheel_event ev[4];
	int i, res;
	__u32 flags;

	io_uring_prep_poll_multishot(sqe, self->fd, POLLIN);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, make_due(self->fd, i, 1));
		ASSERT_EQ(0, uring_get(&self->ring, LONG_MS, &res, NULL, &flags));
		ASSERT_EQ(POLLIN, res & (POLLIN | POLLERR | POLLHUP));
		ASSERT_TRUE(flags & IORING_CQE_F_MORE);
		ASSERT_EQ(1, read_nowait(self->fd, ev, 4));
	}
}

/* --- Wake-up batching ------------------------------------------------------------------ */

FIXTURE(batch) {
	int fd;		/* each test opens its own kind */
};

FIXTURE_SETUP(batch)
{
	self->fd = -1;
}

FIXTURE_TEARDOWN(batch)
{
	close(self->fd);
}

/* wake_events 10: nine events do not wake a reader before wake_ns. */
TEST_F(batch, sleeps_below_count)
{
	struct sleeper s;
	int i, fd = self->fd = open_batching(10, HOUR);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, sleeper_start(&s, fd, 16));
	for (i = 0; i < 9; i++)
		ASSERT_EQ(0, add_past(fd, i));
	EXPECT_FALSE(sleeper_done(&s, QUIET_MS));
}

/* Nine events one after another do not wake it, because they do not expire at wake_ns. */
TEST_F(batch, sleeps_below_count_by_clock)
{
	struct sleeper s;
	int i, fd = self->fd = open_batching(10, HOUR);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, sleeper_start(&s, fd, 16));
	for (i = 0; i < 9; i++)
		ASSERT_EQ(0, arm(fd, i, 1, (i + 1) * 5 * MSEC));
	EXPECT_FALSE(sleeper_done(&s, QUIET_MS));
}

/* The tenth event wakes it. */
TEST_F(batch, wakes_at_count)
{
	struct sleeper s;
	int i, fd = self->fd = open_batching(10, HOUR);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, sleeper_start(&s, fd, 16));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, add_past(fd, i));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(10, s.ret);
}

/* The tenth also wakes it if the clock causes the events. */
TEST_F(batch, wakes_at_count_by_clock)
{
	struct sleeper s;
	int fd = self->fd = open_batching(10, HOUR);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, sleeper_start(&s, fd, 16));
	ASSERT_EQ(0, arm(fd, 0, 10, 20 * MSEC));
	EXPECT_TRUE(sleeper_done(&s, LONG_MS));
}

/* The count also wakes a task that sleeps in poll. */
TEST_F(batch, wakes_poll_at_count)
{
	struct sleeper s;
	int i, fd = self->fd = open_batching(10, HOUR);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, sleeper_start(&s, fd, 0));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, add_past(fd, i));
	EXPECT_TRUE(sleeper_done(&s, LONG_MS));
}

/* wake_ns: one event of a thousand wakes a reader after that time. */
TEST_F(batch, wakes_after_time)
{
	struct sleeper s;
	int fd = self->fd = open_batching(1000, 50 * MSEC);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, sleeper_start(&s, fd, 16));
	ASSERT_EQ(0, add_past(fd, 1));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(1, s.ret);
}

/* Does wake_ns start again after CLOCK_REALTIME is set back, whether the next call @arms or not? */
static void set_back(struct __test_metadata *_metadata, int fd, bool arms)
{
	struct timerwheel_setup setup = {
		.clock = TIMERWHEEL_CLOCK_REALTIME, .wake_events = 1000, .wake_ns = 2 * SEC,
	};
	__u64 real = tw_now(CLOCK_REALTIME), mono = tw_now(CLOCK_MONOTONIC);
	struct sleeper s;
	bool woken;

	ASSERT_EQ(0, dev_setup(fd, &setup));
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, sleeper_start(&s, fd, 16));
	ASSERT_EQ(0, add_past(fd, 1));
	if (tw_set_realtime(real - HOUR))
		SKIP(return, "may not set the clock");
	EXPECT_EQ(arms ? 0 : -ENOENT, arms ? tw_add1(fd, 2, 0, HOUR, 0) : tw_remove1(fd, 2));
	woken = sleeper_done(&s, LONG_MS);
	ASSERT_EQ(0, tw_set_realtime(real + tw_now(CLOCK_MONOTONIC) - mono));
	EXPECT_TRUE(woken);
}

/* CLOCK_REALTIME is set back: with the next call on that CPU, wake_ns starts again. */
TEST_F(batch, wakes_after_clock_set_back)
{
	self->fd = dev_open(0);
	set_back(_metadata, self->fd, true);
}

/* The same with a call that changes nothing. */
TEST_F(batch, wakes_after_clock_set_back_quietly)
{
	self->fd = dev_open(0);
	set_back(_metadata, self->fd, false);
}

/* The longest wake_ns means never: no hrtimer runs for it, and the count wakes readers. */
TEST_F(batch, longest_time)
{
	struct timerwheel_stats st;
	struct sleeper s;
	int fd = self->fd = open_batching(2, TIMERWHEEL_TIME_MAX);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, sleeper_start(&s, fd, 16));
	ASSERT_EQ(0, add_past(fd, 1));
	EXPECT_FALSE(sleeper_done(&s, QUIET_MS));
	ASSERT_EQ(0, tw_stats(fd, &st));
	EXPECT_EQ(0, st.firings);
	ASSERT_EQ(0, add_past(fd, 2));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(2, s.ret);
}

/* After a wake-up, wake_ns starts again with the next event. */
TEST_F(batch, wakes_after_time_again)
{
	struct sleeper s;
	int i, fd = self->fd = open_batching(1000, 20 * MSEC);

	ASSERT_LE(0, fd);
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, sleeper_start(&s, fd, 16));
		ASSERT_EQ(0, arm(fd, i, 1, 5 * MSEC));
		ASSERT_TRUE(sleeper_done(&s, LONG_MS));
		ASSERT_EQ(0, pthread_join(s.thread, NULL));
		ASSERT_EQ(1, s.ret);
	}
}

/* After a wake-up, the count starts again: events that were read no longer count. */
TEST_F(batch, counts_anew_after_read)
{
	int i, round, fd = self->fd = open_batching(3, HOUR);
	struct sleeper s;

	ASSERT_LE(0, fd);
	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, sleeper_start(&s, fd, 16));
		for (i = 0; i < 2; i++)
			ASSERT_EQ(0, add_past(fd, i));
		ASSERT_FALSE(sleeper_done(&s, QUIET_MS));
		ASSERT_EQ(0, add_past(fd, 2));
		ASSERT_TRUE(sleeper_done(&s, LONG_MS));
		ASSERT_EQ(0, pthread_join(s.thread, NULL));
		ASSERT_EQ(3, s.ret);
	}
}

/* The count also starts again after a wake-up by wake_ns, even if no event was read. */
TEST_F(batch, counts_anew_after_time)
{
	int ep, fd = self->fd = open_batching(3, SEC);
	struct timerwheel_stats st = { 0 };
	__u64 began;
	bool late;
	int i;

	ASSERT_LE(0, fd);
	ep = epoll_with(fd, EPOLLIN | EPOLLET);
	ASSERT_LE(0, ep);
	began = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, add_past(fd, 1));
	ASSERT_EQ(0, add_past(fd, 2));
	ASSERT_EQ(0, tw_stats(fd, &st));
	late = tw_now(CLOCK_MONOTONIC) - began >= SEC;
	if (!late)
		EXPECT_EQ(0, st.wakeups);
	for (i = 0; i < LONG_MS && !st.wakeups; i++) {
		tw_sleep(MSEC);
		ASSERT_EQ(0, tw_stats(fd, &st));
	}
	ASSERT_EQ(1, st.wakeups);
	/* Two events that the reader was woken for, and a new one, whose own second must pass. */
	began = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, add_past(fd, 3));
	ASSERT_EQ(0, tw_stats(fd, &st));
	late = tw_now(CLOCK_MONOTONIC) - began >= SEC;
	if (!late)
		EXPECT_EQ(1, st.wakeups);
	for (i = 0; i < LONG_MS && st.wakeups < 2; i++) {
		tw_sleep(MSEC);
		ASSERT_EQ(0, tw_stats(fd, &st));
	}
	EXPECT_EQ(2, st.wakeups);
	close(ep);
}

/* wake_ns counts from the first event: later events do not postpone the wake-up. */
TEST_F(batch, wakes_though_more_come)
{
	int fd = self->fd = open_batching(1000000, 500 * MSEC);
	struct sleeper s;
	__u64 end;
	int i;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, sleeper_start(&s, fd, 16));
	/* Each CPU has its own wake-up time. */
	ASSERT_EQ(0, pin(0));
	end = tw_now(CLOCK_MONOTONIC) + LONG_MS * MSEC;
	for (i = 0; !atomic_load(&s.done) && tw_now(CLOCK_MONOTONIC) < end; i++) {
		ASSERT_EQ(0, add_past(fd, i));
		tw_sleep(MSEC);
	}
	EXPECT_TRUE(atomic_load(&s.done));
}

/* No reader is woken by wake_ns if all waiting events were withdrawn. */
TEST_F(batch, no_wakeup_for_nothing)
{
	int ep, fd = self->fd = open_batching(10, 100 * MSEC);
	struct timerwheel_stats st;
	int i, tries = 0;

	ASSERT_LE(0, fd);
	ep = epoll_with(fd, EPOLLIN | EPOLLET);
	ASSERT_LE(0, ep);
	do {
		__u64 began = tw_now(CLOCK_MONOTONIC);

		ASSERT_EQ(0, tw_stats(fd, &st));
		ASSERT_EQ(0, add_past(fd, 1));
		ASSERT_EQ(TIMERWHEEL_WAS_DUE, tw_remove1(fd, 1));
		i = tw_now(CLOCK_MONOTONIC) - began < 100 * MSEC;
	} while (!i && ++tries < 10);
	if (!i)
		SKIP(return, "two calls took 100 ms");
	i = st.wakeups;
	tw_sleep(500 * MSEC);
	ASSERT_EQ(0, tw_stats(fd, &st));
	EXPECT_EQ(i, st.wakeups);
	close(ep);
}

/* The largest wake_ns never passes, and causes no interrupt. */
TEST_F(batch, wakes_never)
{
	int fd = self->fd = open_batching(10, TIMERWHEEL_TIME_MAX);
	struct timerwheel_stats st;
	struct sleeper s;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, sleeper_start(&s, fd, 16));
	ASSERT_EQ(0, add_past(fd, 1));
	EXPECT_FALSE(sleeper_done(&s, QUIET_MS));
	ASSERT_EQ(0, tw_stats(fd, &st));
	EXPECT_GE(1, st.firings);
}

/* With the MANUAL clock wake_ns cannot pass by itself: each event wakes at once. */
TEST_F(batch, manual_waits_for_no_clock)
{
	struct timerwheel_setup setup = {
		.clock = TIMERWHEEL_CLOCK_MANUAL, .wake_events = 10, .wake_ns = HOUR,
	};
	int fd = self->fd = dev_open(0);
	struct sleeper s;

	ASSERT_EQ(0, dev_setup(fd, &setup));
	ASSERT_EQ(0, sleeper_start(&s, fd, 16));
	ASSERT_EQ(0, tw_add1(fd, 1, value_of(1), 10, 0));
	ASSERT_EQ(1, tw_advance(fd, 0, SEC));
	EXPECT_TRUE(sleeper_done(&s, LONG_MS));
}

/* An event that was withdrawn does not count: three must wait at the same time. */
TEST_F(batch, withdrawn_not_counted)
{
	struct sleeper s;
	int fd = self->fd = open_batching(3, HOUR);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, sleeper_start(&s, fd, 16));
	ASSERT_EQ(0, add_past(fd, 1));
	ASSERT_EQ(0, add_past(fd, 2));
	ASSERT_EQ(TIMERWHEEL_WAS_DUE, tw_remove1(fd, 1));
	ASSERT_EQ(0, add_past(fd, 3));
	ASSERT_FALSE(sleeper_done(&s, QUIET_MS));
	ASSERT_EQ(0, add_past(fd, 4));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(3, s.ret);
}

/* A read while fewer than wake_events wait does not sleep. */
TEST_F(batch, reader_does_not_sleep_on_events)
{
	struct sleeper s;
	int fd = self->fd = open_batching(10, HOUR);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, add_past(fd, 1));
	ASSERT_EQ(0, sleeper_start(&s, fd, 16));
	EXPECT_TRUE(sleeper_done(&s, LONG_MS));
}

/* STATS.wakeups: a thousand events with wake_events 100 cause at most ten wake-ups. */
TEST_F(batch, counts_wakeups)
{
	int i, ep, fd = self->fd = open_batching(100, HOUR);
	struct timerwheel_stats st;

	ASSERT_LE(0, fd);
	ep = epoll_with(fd, EPOLLIN);
	ASSERT_LE(0, ep);
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(0, add_past(fd, i));
	ASSERT_EQ(0, tw_stats(fd, &st));
	printf("# %llu wake-ups\n", (unsigned long long)st.wakeups);
	fflush(stdout);
	EXPECT_LE(1, st.wakeups);
	EXPECT_GE(10, st.wakeups);
}

/* STATS.wakeups grows when a sleeping reader is woken, and not without events. */
TEST_F(manual, wakeups_counted)
{
	struct timerwheel_stats st;
	struct sleeper s;

	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	ASSERT_EQ(0, sleeper_start(&s, self->fd, 1));
	ASSERT_EQ(0, arm(self->fd, 1, 1, 10));
	ASSERT_EQ(0, tw_advance(self->fd, 0, 9));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(0, st.wakeups);
	ASSERT_EQ(1, tw_advance(self->fd, 0, 1));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(1, st.wakeups);
}

/* The number of times that a thread of this process has gone to sleep */
static long long slept(pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	return tw_file_number(path, "\nvoluntary_ctxt_switches:");
}

/* Of several sleeping readers one is woken for an event, and the others keep sleeping. */
TEST_F(manual, event_wakes_one_reader)
{
	enum { READERS = 8 };
	struct sleeper s[READERS];
	long long before[READERS], now;
	int i, done = 0;

	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	for (i = 0; i < READERS; i++)
		ASSERT_EQ(0, sleeper_start(&s[i], self->fd, 1));
	for (i = 0; i < READERS; i++)
		before[i] = slept(s[i].tid);
	ASSERT_EQ(0, make_due(self->fd, 1, 1));
	tw_sleep(QUIET_MS * MSEC);
	for (i = 0; i < READERS; i++) {
		/* in this order, because the reader may finish meanwhile */
		now = slept(s[i].tid);
		if (atomic_load(&s[i].done))
			done++;
		else
			EXPECT_EQ(before[i], now);
	}
	EXPECT_GE(1, done);
	/* the others get their events before they exit */
	ASSERT_EQ(0, make_due(self->fd, 2, READERS - 1));
	for (i = 0; i < READERS; i++)
		ASSERT_TRUE(sleeper_done(&s[i], LONG_MS));
}

/* A wheel is a stream: its file position cannot be given or set. */
TEST_F(manual, has_no_position)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, make_due(self->fd, 1, 1));
	EXPECT_EQ(-1, lseek(self->fd, 0, SEEK_CUR));
	EXPECT_EQ(ESPIPE, errno);
	EXPECT_EQ(-1, pread(self->fd, &ev, sizeof(ev), 0));
	EXPECT_EQ(ESPIPE, errno);
	EXPECT_EQ(1, dev_read(self->fd, &ev, 1));
}

/* One ADVANCE wakes once, for any number of due timers and of later batches. */
TEST_F(manual, advance_wakes_once)
{
	struct timerwheel_stats st;
	int i, ep = epoll_with(self->fd, EPOLLIN);

	ASSERT_LE(0, ep);
	for (i = 0; i < 16; i++)
		ASSERT_EQ(0, arm(self->fd, i * 64, 64, 10));
	ASSERT_EQ(1024, tw_advance(self->fd, 0, 10));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(1, st.wakeups);
	/* the last batches only cascade timers */
	for (i = 0; i < 16; i++)
		ASSERT_EQ(0, arm(self->fd, 2000 + i * 64, 64, 100000));
	ASSERT_EQ(0, arm(self->fd, 1024, 64, 50000));
	ASSERT_EQ(64, tw_advance(self->fd, 0, 99000));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(2, st.wakeups);
	close(ep);
}

/* --- STATS of several CPUs ------------------------------------------------------------------ */

/* Counters and maxima (from armed on) never decrease; pending and due may. */
static bool stats_grow(const struct timerwheel_stats *was, const struct timerwheel_stats *is)
{
	const __u64 *a = &was->armed, *b = &is->armed;
	size_t i, n = (sizeof(*was) - offsetof(struct timerwheel_stats, armed)) / sizeof(*a);

	for (i = 0; i < n; i++) {
		if (a[i] <= b[i])
			continue;
		fprintf(stderr, "# counter %zu from armed on: %llu, then %llu\n", i, a[i], b[i]);
		return false;
	}
	return true;
}

/* The maxima of one CPU stay when another CPU has smaller ones. */
TEST_F(clock, stats_of_all_cpus)
{
	__u64 soon = tw_now(CLOCK_MONOTONIC) + 100 * MSEC;
	struct timerwheel_stats st[2];
	struct timerwheel_event ev[80];
	int i;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU only");
	/* One timer has the greatest lateness, one has many overruns, and many fire at once. */
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, add_past(self->fd, 1001));
	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1002, value_of(1002), 1, 1, TIMERWHEEL_ABS));
	for (i = 0; i < 64; i++)
		ASSERT_EQ(0, tw_add1(self->fd, i, value_of(i), soon, TIMERWHEEL_ABS));
	tw_sleep_until(CLOCK_MONOTONIC, soon + 10 * MSEC);
	ASSERT_EQ(TIMERWHEEL_WAS_DUE, tw_remove1(self->fd, 1001));
	ASSERT_LE(64, tw_read_all(self->fd, ev, 65, LONG_MS));
	ASSERT_LT(0, tw_remove1(self->fd, 1002));
	ASSERT_EQ(0, tw_stats(self->fd, &st[0]));
	EXPECT_LT(soon / 2, st[0].late_max);
	EXPECT_LT(0, st[0].overruns);

	ASSERT_EQ(0, pin(1));
	ASSERT_EQ(0, arm(self->fd, 2000, 1, MSEC));
	ASSERT_EQ(1, tw_read_all(self->fd, ev, 1, LONG_MS));
	ASSERT_EQ(0, tw_stats(self->fd, &st[1]));
	EXPECT_TRUE(stats_grow(&st[0], &st[1]));
}

/* A CPU's counters are included although lower-numbered CPUs have no base in the wheel. */
TEST_F(clock, stats_of_the_last_cpu)
{
	struct timerwheel_stats st;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU only");
	ASSERT_EQ(0, pin(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	ASSERT_EQ(0, arm(self->fd, 1000, 1, HOUR));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(1, st.pending);
	EXPECT_EQ(1, st.armed);
}

/* --- Events that are withdrawn ------------------------------------------------------------ */

enum take_back { BY_REMOVE, BY_MOVE, BY_ADD, BY_DRAIN };

FIXTURE(withdraw) {
	int fd;
	int result;		/* of the call that withdraws the event of key 1 */
};

FIXTURE_VARIANT(withdraw) {
	enum take_back by;
	int again;		/* events of the new arming */
};

FIXTURE_VARIANT_ADD(withdraw, remove) {
	.by = BY_REMOVE,
};

FIXTURE_VARIANT_ADD(withdraw, move) {
	.by = BY_MOVE, .again = 1,
};

FIXTURE_VARIANT_ADD(withdraw, add) {
	.by = BY_ADD, .again = 1,
};

FIXTURE_VARIANT_ADD(withdraw, drain) {
	.by = BY_DRAIN,
};

static int take_back(int fd, __u64 key, enum take_back by)
{
	struct timerwheel_entry ent;

	switch (by) {
	case BY_REMOVE:
		return tw_remove1(fd, key);
	case BY_MOVE:
		return tw_move1(fd, key, 10, 0);
	case BY_ADD:
		return tw_add1(fd, key, value_of(key), 10, 0);
	case BY_DRAIN:
		return tw_drain(fd, 0, &ent, 1) == 1 && ent.key == key ? ent.result : -ENOENT;
	}
	return -EINVAL;
}

/* Key 1 falls due, then its event is withdrawn. */
FIXTURE_SETUP(withdraw)
{
	self->fd = tw_open_manual(1);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, make_due(self->fd, 1, 1));
	self->result = take_back(self->fd, 1, variant->by);
}

FIXTURE_TEARDOWN(withdraw)
{
	close(self->fd);
}

/* The result shows that the timer was due. */
TEST_F(withdraw, result_was_due)
{
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, self->result);
}

/* The event is never read. */
TEST_F(withdraw, event_not_read)
{
	struct timerwheel_event ev;

	EXPECT_EQ(-EAGAIN, dev_read(self->fd, &ev, 1));
}

/* The wheel is no longer readable. */
TEST_F(withdraw, not_readable)
{
	EXPECT_EQ(0, dev_poll(self->fd, 0));
}

/* A new arming has its own event, once; without a new arming there is no event. */
TEST_F(withdraw, new_arming_fires_once)
{
	struct timerwheel_event ev[4];

	EXPECT_EQ(variant->again, tw_advance(self->fd, 0, 1000));
	EXPECT_EQ(variant->again ?: -EAGAIN, dev_read(self->fd, ev, 4));
}

/* STATS counts it as withdrawn, and the counters balance. */
TEST_F(withdraw, counted)
{
	struct timerwheel_stats st;

	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(1, st.withdrawn);
	EXPECT_EQ(0, st.due);
	EXPECT_TRUE(tw_balanced(&st));
}

/* Withdrawing an event from the middle of the due list leaves the others. */
TEST_F(manual, withdraw_leaves_others)
{
	struct timerwheel_event ev[8];
	static const enum take_back by[] = { BY_REMOVE, BY_MOVE, BY_ADD };
	size_t i;
	int n;

	for (i = 0; i < ARRAY_SIZE(by); i++) {
		ASSERT_EQ(0, make_due(self->fd, 0, 5));
		ASSERT_EQ(TIMERWHEEL_WAS_DUE, take_back(self->fd, 2, by[i]));
		ASSERT_EQ(4, dev_read(self->fd, ev, 8));
		for (n = 0; n < 4; n++) {
			EXPECT_NE(2, ev[n].key);
			EXPECT_GT(5, ev[n].key);
		}
		take_back(self->fd, 2, BY_REMOVE);
	}
}

/* A sleeping reader does not return without an event: it gets the next one. */
TEST_F(manual, withdraw_leaves_reader_asleep)
{
	struct sleeper s;
	int i;

	ASSERT_EQ(0, set_fl(self->fd, 0, O_NONBLOCK));
	ASSERT_EQ(0, sleeper_start(&s, self->fd, 1));
	for (i = 0; i < 200 && !atomic_load(&s.done); i++) {
		ASSERT_EQ(0, arm(self->fd, 100 + i, 1, 1));
		ASSERT_LE(0, tw_advance(self->fd, 0, 1));
		tw_remove1(self->fd, 100 + i);
	}
	if (!atomic_load(&s.done))
		ASSERT_EQ(0, make_due(self->fd, 1, 1));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(1, s.ret);
}

/* --- Order --------------------------------------------------------------------------------- */

/* Arm @n timers at random within @range ns, on one CPU */
static int arm_random(int fd, int n, __u64 range, __u64 *seed)
{
	int i, ret;

	for (i = 0; i < n; i++) {
		ret = tw_add1(fd, i, value_of(i), 1 + tw_rand(seed) % range, 0);
		if (ret)
			return ret;
	}
	return 0;
}

/* Events come in the order of their ticks, however far the time advances. */
TEST_F(manual, order_of_ticks)
{
	enum { N = 5000 };
	struct timerwheel_event *ev = calloc(N, EV_SIZE);
	__u64 seed = tw_seed();
	int i;

	TH_LOG("TW_SEED=%llu", (unsigned long long)seed);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, arm_random(self->fd, N, 100000, &seed));
	ASSERT_EQ(N, tw_advance(self->fd, 0, 100000));
	ASSERT_EQ(N, tw_read_all(self->fd, ev, N, 0));
	for (i = 1; i < N; i++)
		ASSERT_LE(ev[i - 1].fired, ev[i].fired);
}

/* The same if the time advances between short reads. */
TEST_F(manual, order_with_short_reads)
{
	enum { N = 2000 };
	struct timerwheel_event ev[7];
	__u64 seed = tw_seed(), last = 0;
	int i, n, got = 0;

	TH_LOG("TW_SEED=%llu", (unsigned long long)seed);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, arm_random(self->fd, N, 20000, &seed));
	while (got < N) {
		ASSERT_LE(0, tw_advance(self->fd, 0, tw_rand(&seed) % 300));
		n = dev_read(self->fd, ev, ARRAY_SIZE(ev));
		for (i = 0; i < n; i++) {
			ASSERT_LE(last, ev[i].fired);
			last = ev[i].fired;
		}
		got += n > 0 ? n : 0;
	}
}

/* The same on a running clock. */
TEST_F_TIMEOUT(clock, order_of_ticks, 300)
{
	enum { N = 3000 };
	struct timerwheel_event *ev = calloc(N, EV_SIZE);
	__u64 seed = tw_seed();
	int i;

	TH_LOG("TW_SEED=%llu", (unsigned long long)seed);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, arm_random(self->fd, N, SEC, &seed));
	ASSERT_EQ(N, tw_read_all(self->fd, ev, N, LONG_MS));
	for (i = 1; i < N; i++)
		ASSERT_LE(ev[i - 1].fired, ev[i].fired);
}

/* --- Periodic timers ------------------------------------------------------------------------ */

/* A periodic timer is armed again by its delivery, one period after its deadline. */
TEST_F(manual, periodic_next_deadline)
{
	struct timerwheel_event ev;
	int i;

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, 10, 7, 0));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 10 + 7 * i));
		ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
		EXPECT_EQ(10 + 7 * i, ev.deadline);
		EXPECT_EQ(0, ev.overruns);
	}
}

/* Its event has the flag. */
TEST_F(manual, periodic_flag)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, 10, 7, 0));
	ASSERT_EQ(1, tw_advance(self->fd, 0, 10));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(TIMERWHEEL_EVENT_PERIODIC, ev.flags);
}

/* One event stands for all deadlines that were not read. */
TEST_F(manual, periodic_overruns)
{
	struct timerwheel_event ev[4];

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, 10, 10, 0));
	ASSERT_LE(1, tw_advance(self->fd, 0, 105));
	ASSERT_EQ(1, dev_read(self->fd, ev, 4));
	EXPECT_EQ(10, ev[0].deadline);
	EXPECT_EQ(9, ev[0].overruns);
}

/* Afterwards its deadlines do not drift. */
TEST_F(manual, periodic_in_step_after_overruns)
{
	struct timerwheel_event ev[4];

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, 10, 10, 0));
	ASSERT_LE(1, tw_advance(self->fd, 0, 105));
	ASSERT_EQ(1, dev_read(self->fd, ev, 4));
	ASSERT_EQ(1, tw_advance(self->fd, 0, 5));
	ASSERT_EQ(1, dev_read(self->fd, ev, 4));
	EXPECT_EQ(110, ev[0].deadline);
}

/* A period far shorter than the tick costs one event per read. */
TEST_F(clock, periodic_one_event_per_read)
{
	struct timerwheel_event ev[8];
	int i;

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, 1, 1, 0));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(POLLIN, dev_poll(self->fd, LONG_MS));
		ASSERT_EQ(1, dev_read(self->fd, ev, ARRAY_SIZE(ev)));
	}
}

/* Its next deadline is queued on the CPU that read the event. */
TEST_F(clock, periodic_read_elsewhere)
{
	enum { N = 8 };
	struct timerwheel_event ev[N];
	struct timerwheel_stats st;
	int i, n, seen[N] = { 0 };

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU only");
	ASSERT_EQ(0, pin(0));
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, tw_add1_periodic(self->fd, i, value_of(i), 1, SEC, TIMERWHEEL_ABS));
	ASSERT_EQ(0, pin(1));
	ASSERT_EQ(N, tw_read_all(self->fd, ev, N, LONG_MS));
	for (i = 0; i < N; i += 2)
		ASSERT_LT(0, tw_remove1(self->fd, i));
	/* Timers armed now reuse their memory. */
	ASSERT_EQ(0, arm(self->fd, 100, N, HOUR));
	for (n = 0; n < N / 2; n++) {
		ASSERT_EQ(1, tw_read_all(self->fd, ev, 1, LONG_MS));
		ASSERT_GT(N, ev[0].key);
		ASSERT_EQ(1, ev[0].key % 2);
		seen[ev[0].key]++;
		ASSERT_LT(0, tw_remove1(self->fd, ev[0].key));
	}
	for (i = 1; i < N; i += 2)
		EXPECT_EQ(1, seen[i]);
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(N, st.pending);
	EXPECT_TRUE(tw_balanced(&st));
}

/* Timers that fire during a read are for the next read, however long the first takes. */
TEST_F(clock, periodic_once_in_a_long_read)
{
	enum { N = 4096, ROOM = 4 * N };
	struct timerwheel_event *ev = calloc(ROOM, EV_SIZE);
	int fd = tw_open_clock(TIMERWHEEL_CLOCK_MONOTONIC, USEC, 0), i, n, round;
	static struct timerwheel_add add[N];
	static unsigned char seen[N];

	ASSERT_LE(0, fd);
	for (i = 0; i < N; i++)
		add[i] = (struct timerwheel_add) { .key = i, .deadline = 1, .period = 1 };
	ASSERT_EQ(N, dev_add(fd, add, N));
	for (round = 0; round < 20; round++) {
		ASSERT_EQ(POLLIN, dev_poll(fd, LONG_MS));
		n = dev_read(fd, ev, ROOM);
		ASSERT_LT(0, n);
		memset(seen, 0, sizeof(seen));
		for (i = 0; i < n; i++)
			ASSERT_EQ(0, seen[ev[i].key]++)
				TH_LOG("round %d: key %llu", round, ev[i].key);
	}
	close(fd);
	free(ev);
}

/* A periodic timer that is removed while due does not fire again. */
TEST_F(manual, periodic_removed_while_due)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, 10, 10, 0));
	ASSERT_LE(1, tw_advance(self->fd, 0, 10));
	ASSERT_EQ(TIMERWHEEL_WAS_DUE, tw_remove1(self->fd, 1));
	EXPECT_EQ(0, tw_advance(self->fd, 0, 100));
	EXPECT_EQ(-EAGAIN, dev_read(self->fd, &ev, 1));
}

/* One-shot and periodic timers in one read: each of them once. */
TEST_F(manual, periodic_mixed)
{
	struct timerwheel_event ev[32];
	int i, n, periodic = 0;

	ASSERT_EQ(0, arm(self->fd, 0, 10, 5));
	for (i = 10; i < 20; i++)
		ASSERT_EQ(0, tw_add1_periodic(self->fd, i, value_of(i), 5, 1000, 0));
	ASSERT_EQ(20, tw_advance(self->fd, 0, 5));
	n = dev_read(self->fd, ev, 32);
	ASSERT_EQ(20, n);
	EXPECT_TRUE(has_keys(ev, n, 0));
	for (i = 0; i < n; i++) {
		EXPECT_EQ(ev[i].key >= 10, !!(ev[i].flags & TIMERWHEEL_EVENT_PERIODIC));
		periodic += !!(ev[i].flags & TIMERWHEEL_EVENT_PERIODIC);
	}
	EXPECT_EQ(10, periodic);
}

#define PERIODS	3000

/* Readers of one periodic timer, and the deadlines that its events stood for */
struct beats {
	int fd;
	atomic_bool stop;
	atomic_int wrong;
	atomic_uchar seen[PERIODS + 1];
};

static void beats_event(struct beats *b, const struct timerwheel_event *ev)
{
	__u64 i, beat = ev->deadline / 10;

	if (ev->deadline % 10 || beat + ev->overruns > PERIODS) {
		atomic_fetch_add(&b->wrong, 1);
		return;
	}
	for (i = beat; i <= beat + ev->overruns; i++)
		atomic_fetch_add(&b->seen[i], 1);
}

static void *beats_main(void *arg)
{
	struct timerwheel_event ev[2];
	struct beats *b = arg;
	int i, n;

	while (!atomic_load(&b->stop)) {
		n = dev_read(b->fd, ev, 2);
		if (n == -EAGAIN)
			sched_yield();
		else if (n < 0)
			atomic_fetch_add(&b->wrong, 1);
		for (i = 0; i < n; i++)
			beats_event(b, &ev[i]);
	}
	return NULL;
}

/* Several readers of one periodic timer: each deadline is in exactly one event. */
TEST_F_TIMEOUT(manual, periodic_each_deadline_once, 300)
{
	static struct beats b;
	pthread_t thread[3];
	int i, twice = 0, lost = 0;

	b.fd = self->fd;
	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, 10, 10, 0));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, beats_main, &b));
	for (i = 0; i < PERIODS; i++)
		ASSERT_LE(0, tw_advance(self->fd, 0, 10));
	for (i = 0; i < LONG_MS && !atomic_load(&b.seen[PERIODS]); i++)
		tw_sleep(MSEC);
	atomic_store(&b.stop, true);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_join(thread[i], NULL));
	for (i = 1; i <= PERIODS; i++) {
		twice += b.seen[i] > 1;
		lost += !b.seen[i];
	}
	EXPECT_EQ(0, atomic_load(&b.wrong));
	EXPECT_EQ(0, twice);
	EXPECT_EQ(0, lost);
}

TEST_HARNESS_MAIN
