// SPDX-License-Identifier: GPL-2.0
/* monitor: descriptors that return a copy of each event. */
#include "sleeper.h"
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { LENGTH = 16, MOST = 4096, READERS = 4 };

static int monitor_with(int fd, struct timerwheel_monitor arg)
{
	arg.size = sizeof(arg);
	return dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &arg);
}

static int monitor(int fd, __u32 events)
{
	return monitor_with(fd, (struct timerwheel_monitor) {
		.flags = TIMERWHEEL_MONITOR_CLOEXEC | TIMERWHEEL_MONITOR_NONBLOCK,
		.events = events,
	});
}

/* Arm keys @first to @first + @n - 1, each a second later than the previous key */
static int arm(int fd, __u64 first, int n)
{
	static struct timerwheel_add add[MOST];
	int i;

	for (i = 0; i < n; i++)
		add[i] = (struct timerwheel_add) {
			.key = first + i, .value = ~(first + i), .deadline = (1 + i) * SEC,
		};
	return dev_add(fd, add, n);
}

FIXTURE(monitor) {
	int fd;
	int mon;
	struct timerwheel_event ev[MOST];
	struct timerwheel_event copy[MOST];
};

FIXTURE_SETUP(monitor)
{
	self->fd = tw_open_manual(0);
	ASSERT_LE(0, self->fd);
	self->mon = monitor(self->fd, LENGTH);
	ASSERT_LE(0, self->mon);
}

FIXTURE_TEARDOWN(monitor)
{
	close(self->mon);
	close(self->fd);
}

/* Deliver @n events of timers that are armed for the past */
static int deliver(FIXTURE_DATA(monitor) * self, __u64 first, int n)
{
	int ret = arm(self->fd, first, n);

	if (ret != n || tw_advance(self->fd, 0, HOUR) != n)
		return -EPROTO;
	return dev_read(self->fd, self->ev, n);
}

/* The monitor returns the events that were delivered */
static bool same(FIXTURE_DATA(monitor) * self, int mon, int from, int n)
{
	return dev_read(mon, self->copy, n) == n &&
	       !memcmp(self->copy, self->ev + from, n * sizeof(*self->ev));
}

/* No event before the events are delivered, then a copy of each */
TEST_F(monitor, copies)
{
	EXPECT_EQ(-EAGAIN, dev_read(self->mon, self->copy, 1));
	EXPECT_EQ(0, dev_poll(self->mon, 0));
	ASSERT_EQ(8, arm(self->fd, 0, 8));
	ASSERT_EQ(0, tw_add1_periodic(self->fd, 99, 5, SEC, SEC, 0));
	EXPECT_EQ(9, tw_advance(self->fd, 0, MINUTE));
	EXPECT_EQ(-EAGAIN, dev_read(self->mon, self->copy, 1));
	ASSERT_EQ(9, dev_read(self->fd, self->ev, MOST));
	EXPECT_EQ(POLLIN, dev_poll(self->mon, 0));
	EXPECT_TRUE(same(self, self->mon, 0, 3));
	EXPECT_TRUE(same(self, self->mon, 3, 6));
	EXPECT_EQ(0, dev_poll(self->mon, 0));
	EXPECT_EQ(-EAGAIN, dev_read(self->mon, self->copy, 1));
}

/* A withdrawn event is not copied */
TEST_F(monitor, withdrawn)
{
	struct timerwheel_entry ent[4];

	ASSERT_EQ(4, arm(self->fd, 0, 4));
	EXPECT_EQ(4, tw_advance(self->fd, 0, MINUTE));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_remove1(self->fd, 0));
	ASSERT_EQ(1, dev_read(self->fd, self->ev, 1));
	EXPECT_EQ(2, tw_drain(self->fd, 0, ent, 4));
	EXPECT_TRUE(same(self, self->mon, 0, 1));
	EXPECT_EQ(-EAGAIN, dev_read(self->mon, self->copy, 1));
}

/* Each of many monitors gets all events; one that is created late gets only later ones */
TEST_F(monitor, many)
{
	int mon[TIMERWHEEL_MONITORS_MAX], i;

	mon[0] = self->mon;
	for (i = 1; i < TIMERWHEEL_MONITORS_MAX - 1; i++) {
		mon[i] = monitor(self->fd, LENGTH);
		ASSERT_LE(0, mon[i]);
	}
	ASSERT_EQ(5, deliver(self, 0, 5));
	mon[i] = monitor(self->fd, LENGTH);
	ASSERT_LE(0, mon[i]);
	EXPECT_EQ(-ENOSPC, monitor(self->fd, LENGTH));
	for (i = 0; i < TIMERWHEEL_MONITORS_MAX - 1; i++)
		EXPECT_TRUE(same(self, mon[i], 0, 5));
	EXPECT_EQ(-EAGAIN, dev_read(mon[i], self->copy, 1));
	/* closing one does not affect the others */
	close(mon[3]);
	ASSERT_EQ(3, deliver(self, 20, 3));
	for (i = 0; i < TIMERWHEEL_MONITORS_MAX; i++)
		if (i != 3)
			EXPECT_TRUE(same(self, mon[i], 0, 3));
	mon[3] = monitor(self->fd, LENGTH);
	EXPECT_LE(0, mon[3]);
	ASSERT_EQ(5, deliver(self, 10, 5));
	for (i = 0; i < TIMERWHEEL_MONITORS_MAX; i++)
		EXPECT_TRUE(same(self, mon[i], 0, 5));
	for (i = 1; i < TIMERWHEEL_MONITORS_MAX; i++)
		close(mon[i]);
}

/* Read @n events of @mon: the first one reports @missed missing events, then keys from @key */
static bool missed(FIXTURE_DATA(monitor) * self, int mon, int n, __u64 missed, __u64 key)
{
	const struct timerwheel_event *ev = self->copy;

	return dev_read(mon, self->copy, n) == n && ev->flags == TIMERWHEEL_EVENT_MISSED &&
	       ev->overruns == missed &&
	       !(ev->key | ev->value | ev->deadline | ev->fired | ev->index) &&
	       (n == 1 || (!ev[1].flags && ev[1].key == key));
}

/* Beyond the monitor's length the oldest events are missing, with a count in their place */
TEST_F(monitor, misses)
{
	ASSERT_EQ(LENGTH, deliver(self, 0, LENGTH));
	ASSERT_EQ(7, deliver(self, 100, 7));
	EXPECT_TRUE(missed(self, self->mon, LENGTH + 1, 7, 7));
	EXPECT_EQ(LENGTH - 1, self->copy[LENGTH - 7].key);
	EXPECT_EQ(100, self->copy[LENGTH - 6].key);
	EXPECT_EQ(106, self->copy[LENGTH].key);
	EXPECT_EQ(0, dev_poll(self->mon, 0));
	EXPECT_EQ(-EAGAIN, dev_read(self->mon, self->copy, 1));

	/* twice: between two reads, and when some events were left */
	ASSERT_EQ(LENGTH, deliver(self, 200, LENGTH));
	ASSERT_EQ(9, deliver(self, 300, 9));
	EXPECT_TRUE(missed(self, self->mon, 5, 9, 209));
	EXPECT_EQ(212, self->copy[4].key);
	ASSERT_EQ(6, deliver(self, 400, 6));
	EXPECT_TRUE(missed(self, self->mon, LENGTH + 1, 2, 215));
	EXPECT_EQ(300, self->copy[2].key);
	EXPECT_EQ(405, self->copy[LENGTH].key);
	EXPECT_EQ(-EAGAIN, dev_read(self->mon, self->copy, 1));
}

/* poll reports what a short read has left, even if the count used the place of an event */
TEST_F(monitor, misses_in_small_reads)
{
	struct timerwheel_event *nowhere = tw_fence(0);

	ASSERT_EQ(LENGTH + 3, deliver(self, 0, LENGTH + 3));
	EXPECT_EQ(POLLIN, dev_poll(self->mon, 0));
	EXPECT_TRUE(missed(self, self->mon, 1, 3, 0));
	EXPECT_EQ(POLLIN, dev_poll(self->mon, 0));
	/* these have not been reported yet, and are not part of the former count */
	ASSERT_EQ(2, deliver(self, 100, 2));
	EXPECT_TRUE(missed(self, self->mon, LENGTH, 2, 5));
	EXPECT_EQ(POLLIN, dev_poll(self->mon, 0));
	ASSERT_EQ(1, dev_read(self->mon, self->copy, MOST));
	EXPECT_EQ(101, self->copy[0].key);
	EXPECT_EQ(0, dev_poll(self->mon, 0));
	/* all events are missing; a count that could not be read stays */
	ASSERT_EQ(3 * LENGTH, deliver(self, 200, 3 * LENGTH));
	EXPECT_EQ(-1, read(self->mon, nowhere, sizeof(*nowhere)));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(POLLIN, dev_poll(self->mon, 0));
	EXPECT_TRUE(missed(self, self->mon, LENGTH + 1, 2 * LENGTH, 200 + 2 * LENGTH));
	EXPECT_EQ(0, dev_poll(self->mon, 0));
}

/* A monitor shorter than the chunk that the kernel copies at once, emptied by one read */
TEST_F(monitor, misses_of_a_short_one)
{
	int mon = monitor(self->fd, 8);

	ASSERT_LE(0, mon);
	ASSERT_EQ(11, deliver(self, 0, 11));
	EXPECT_EQ(POLLIN, dev_poll(mon, 0));
	EXPECT_TRUE(missed(self, mon, 9, 3, 3));
	EXPECT_EQ(0, dev_poll(mon, 0));
	EXPECT_EQ(-EAGAIN, dev_read(mon, self->copy, 1));
	/* The count uses the place of one event. */
	ASSERT_EQ(9, deliver(self, 100, 9));
	EXPECT_TRUE(missed(self, mon, 8, 1, 101));
	EXPECT_EQ(POLLIN, dev_poll(mon, 0));
	ASSERT_EQ(1, dev_read(mon, self->copy, 8));
	EXPECT_EQ(108, self->copy[0].key);
	EXPECT_EQ(0, dev_poll(mon, 0));
	close(mon);
}

/* The default length is 1,024 events. */
TEST_F(monitor, default_length)
{
	int mon = monitor(self->fd, 0);

	ASSERT_LE(0, mon);
	ASSERT_EQ(1024, deliver(self, 0, 1024));
	EXPECT_TRUE(same(self, mon, 0, 1024));
	ASSERT_EQ(1025, deliver(self, 2000, 1025));
	EXPECT_TRUE(missed(self, mon, 1025, 1, 2001));
	close(mon);
}

/*
 * Monitors of different lengths, created at different times: each gets all events since it was
 * attached, up to its own length. A monitor that makes the log longer does not affect the others.
 */
TEST_F(monitor, lengths)
{
	int more, most;

	ASSERT_EQ(10, deliver(self, 0, 10));
	ASSERT_EQ(3, dev_read(self->mon, self->copy, 3));
	more = monitor(self->fd, 4 * LENGTH);
	ASSERT_LE(0, more);
	ASSERT_EQ(3, deliver(self, 10, 3));
	ASSERT_EQ(10, dev_read(self->mon, self->copy, MOST));
	EXPECT_EQ(3, self->copy[0].key);
	EXPECT_EQ(12, self->copy[9].key);
	ASSERT_EQ(LENGTH + 5, deliver(self, 100, LENGTH + 5));
	most = monitor(self->fd, MOST);
	ASSERT_LE(0, most);
	ASSERT_EQ(4, deliver(self, 200, 4));
	EXPECT_TRUE(missed(self, self->mon, LENGTH + 1, 9, 109));
	EXPECT_EQ(203, self->copy[LENGTH].key);
	ASSERT_EQ(3 + LENGTH + 5 + 4, dev_read(more, self->copy, MOST));
	EXPECT_EQ(10, self->copy[0].key);
	EXPECT_EQ(100, self->copy[3].key);
	EXPECT_EQ(203, self->copy[3 + LENGTH + 5 + 3].key);
	/* an odd one that is shorter than the log */
	close(more);
	more = monitor(self->fd, 2 * LENGTH - 1);
	ASSERT_LE(0, more);
	ASSERT_EQ(1000, deliver(self, 1000, 1000));
	ASSERT_EQ(1004, dev_read(most, self->copy, MOST));
	EXPECT_EQ(200, self->copy[0].key);
	EXPECT_EQ(1999, self->copy[1003].key);
	EXPECT_TRUE(missed(self, more, 2 * LENGTH + 1, 1000 - 2 * LENGTH, 2000 - 2 * LENGTH));
	EXPECT_TRUE(missed(self, self->mon, LENGTH + 1, 1000 - LENGTH, 2000 - LENGTH));
	close(more);
	close(most);
}

/* RWF_NOWAIT on a descriptor that blocks */
TEST_F(monitor, nowait)
{
	struct iovec iov = { .iov_base = self->copy, .iov_len = sizeof(self->copy) };
	int mon = monitor_with(self->fd, (struct timerwheel_monitor) { .events = LENGTH });

	ASSERT_LE(0, mon);
	EXPECT_EQ(-1, preadv2(mon, &iov, 1, -1, RWF_NOWAIT));
	EXPECT_EQ(EAGAIN, errno);
	ASSERT_EQ(3, deliver(self, 0, 3));
	EXPECT_EQ(3 * sizeof(self->copy[0]), preadv2(mon, &iov, 1, -1, RWF_NOWAIT));
	EXPECT_EQ(-1, preadv2(mon, &iov, 1, -1, RWF_NOWAIT));
	EXPECT_EQ(EAGAIN, errno);
	close(self->fd);
	EXPECT_EQ(0, preadv2(mon, &iov, 1, -1, RWF_NOWAIT));
	close(mon);
	self->fd = tw_open_manual(0);
}

struct stalled {
	int mon;
	void *page;
	int ret;
};

static void *stalls(void *arg)
{
	struct stalled *s = arg;

	s->ret = tw_err(read(s->mon, s->page, 3 * sizeof(struct timerwheel_event)));
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
}

/*
 * While a reader waits for a page of its buffer, a non-blocking reader does not wait for it. Other
 * readers wait until a signal comes whose handler does not restart calls. At the end each event was
 * read once.
 */
TEST_F(monitor, stalled_reader)
{
	int mon = monitor_with(self->fd, (struct timerwheel_monitor) { .events = LENGTH });
	struct iovec iov = { .iov_base = self->copy, .iov_len = sizeof(self->copy) };
	struct sigaction restart = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct sigaction sa = { .sa_handler = on_signal };
	struct stalled stalled = { .mon = mon };
	struct sleeper s;
	pthread_t thread;
	int uffd;

	ASSERT_LE(0, mon);
	stalled.page = tw_missing_page(&uffd);
	if (!stalled.page)
		SKIP(return, "this kernel has no userfaultfd");
	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	ASSERT_EQ(0, sigaction(SIGUSR2, &restart, NULL));
	ASSERT_EQ(0, sigaction(SIGALRM, &sa, NULL));
	ASSERT_EQ(5, deliver(self, 0, 5));
	ASSERT_EQ(0, pthread_create(&thread, NULL, stalls, &stalled));
	ASSERT_EQ(POLLIN, dev_poll(uffd, LONG_MS));

	EXPECT_EQ(POLLIN, dev_poll(mon, 0));
	/* If it waited, the alarm would end the wait. */
	alarm(LONG_MS / 1000);
	EXPECT_EQ(-EAGAIN, tw_err(preadv2(mon, &iov, 1, -1, RWF_NOWAIT)));
	ASSERT_EQ(0, fcntl(mon, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-EAGAIN, dev_read(mon, self->copy, 1));
	ASSERT_EQ(0, fcntl(mon, F_SETFL, 0));
	alarm(0);
	ASSERT_EQ(0, sleeper_start(&s, mon, 1));
	EXPECT_FALSE(sleeper_done(&s, QUIET_MS));
	ASSERT_EQ(0, pthread_kill(s.thread, SIGUSR2));
	EXPECT_FALSE(sleeper_done(&s, QUIET_MS));
	ASSERT_EQ(0, pthread_kill(s.thread, SIGUSR1));
	EXPECT_TRUE(sleeper_done(&s, LONG_MS));

	tw_fill_page(uffd, stalled.page);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(-EINTR, s.ret);
	ASSERT_EQ(3 * sizeof(*self->ev), stalled.ret);
	EXPECT_EQ(0, memcmp(stalled.page, self->ev, 3 * sizeof(*self->ev)));
	EXPECT_TRUE(same(self, mon, 3, 2));
	EXPECT_TRUE(same(self, self->mon, 0, 5));
	close(uffd);
	close(mon);
}

/* A reader that comes too late gets neither end of file nor an error: it sleeps again. */
TEST_F(monitor, late_reader)
{
	int mon = monitor_with(self->fd, (struct timerwheel_monitor) {}), uffd;
	struct stalled stalled = { .mon = mon };
	struct sleeper s;
	pthread_t thread;

	ASSERT_LE(0, mon);
	stalled.page = tw_missing_page(&uffd);
	if (!stalled.page)
		SKIP(return, "this kernel has no userfaultfd");
	ASSERT_EQ(1, deliver(self, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, stalls, &stalled));
	ASSERT_EQ(POLLIN, dev_poll(uffd, LONG_MS));
	ASSERT_EQ(0, sleeper_start(&s, mon, 1));
	tw_fill_page(uffd, stalled.page);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(sizeof(*self->ev), stalled.ret);
	EXPECT_FALSE(sleeper_done(&s, QUIET_MS));
	ASSERT_EQ(1, deliver(self, 1, 1));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(1, s.ret);
	EXPECT_EQ(1, s.ev[0].key);
	close(uffd);
	close(mon);
}

/* A copy that faults loses no event */
TEST_F(monitor, faults)
{
	struct timerwheel_event *some = tw_fence(3 * sizeof(*some));

	ASSERT_EQ(6, deliver(self, 0, 6));
	EXPECT_EQ(-1, read(self->mon, some + 3, sizeof(*some)));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(3 * sizeof(*some), read(self->mon, some, 6 * sizeof(*some)));
	EXPECT_EQ(0, memcmp(some, self->ev, 3 * sizeof(*some)));
	EXPECT_TRUE(same(self, self->mon, 3, 3));
}

TEST_F(monitor, read_too_small)
{
	char small[sizeof(struct timerwheel_event) - 1];

	EXPECT_EQ(-1, read(self->mon, small, sizeof(small)));
	EXPECT_EQ(EINVAL, errno);
}

/* After the wheel was closed, copied events can be read, then there is an end of file */
TEST_F(monitor, has_an_end)
{
	ASSERT_EQ(4, deliver(self, 0, 4));
	EXPECT_EQ(POLLIN, dev_poll(self->mon, 0));
	close(self->fd);
	EXPECT_EQ(POLLIN | POLLHUP, dev_poll(self->mon, 0));
	EXPECT_TRUE(same(self, self->mon, 0, 4));
	EXPECT_EQ(POLLIN | POLLHUP, dev_poll(self->mon, 0));
	EXPECT_EQ(0, dev_read(self->mon, self->copy, 1));
	self->fd = tw_open_manual(0);
}

/* A reader that sleeps is woken by an event, and by the end of file */
TEST_F(monitor, wakes)
{
	struct sleeper s;
	int mon;

	mon = monitor_with(self->fd, (struct timerwheel_monitor) {});
	ASSERT_LE(0, mon);
	ASSERT_EQ(0, sleeper_start(&s, mon, 1));
	ASSERT_EQ(1, deliver(self, 0, 1));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(1, s.ret);
	ASSERT_EQ(0, sleeper_start(&s, mon, 1));
	close(self->fd);
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(0, s.ret);
	close(mon);
	self->fd = tw_open_manual(0);
}

/* The same for a task that sleeps in poll. */
TEST_F(monitor, wakes_poll)
{
	struct sleeper s;

	ASSERT_EQ(0, sleeper_start(&s, self->mon, 0));
	ASSERT_EQ(1, deliver(self, 0, 1));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(POLLIN, s.ret);
}

/* Several readers sleep: each event goes to one of them, and the others keep sleeping. */
TEST_F(monitor, blocked_readers_share)
{
	int mon = monitor_with(self->fd, (struct timerwheel_monitor) {}), i, round, got = 0;
	struct sleeper s[READERS];
	bool had[READERS] = {};

	ASSERT_LE(0, mon);
	for (i = 0; i < READERS; i++)
		ASSERT_EQ(0, sleeper_start(&s[i], mon, 1));
	for (round = 1; round < READERS - 1; round++) {
		ASSERT_EQ(1, deliver(self, round, 1));
		tw_sleep(QUIET_MS * MSEC);
		for (i = 0; i < READERS; i++) {
			if (had[i] || !atomic_load(&s[i].done))
				continue;
			EXPECT_EQ(1, s[i].ret);
			EXPECT_GE(round, s[i].ev[0].key);
			had[i] = true;
			got++;
		}
		ASSERT_GE(round, got);
	}
	/* One may be slow, but all must be woken. */
	ASSERT_EQ(2, deliver(self, 100, 2));
	for (i = 0; i < READERS; i++) {
		ASSERT_TRUE(sleeper_done(&s[i], LONG_MS));
		EXPECT_EQ(1, s[i].ret);
	}
	EXPECT_EQ(-EAGAIN, tw_err(preadv2(mon, &(struct iovec) {
		.iov_base = self->copy, .iov_len = sizeof(self->copy),
	}, 1, -1, RWF_NOWAIT)));
	close(mon);
}

/* Several readers sleep: all get the end of file. */
TEST_F(monitor, blocked_readers_end)
{
	int mon = monitor_with(self->fd, (struct timerwheel_monitor) {}), i;
	struct sleeper s[READERS];

	ASSERT_LE(0, mon);
	for (i = 0; i < READERS; i++)
		ASSERT_EQ(0, sleeper_start(&s[i], mon, 1));
	close(self->fd);
	for (i = 0; i < READERS; i++) {
		ASSERT_TRUE(sleeper_done(&s[i], LONG_MS));
		EXPECT_EQ(0, s[i].ret);
	}
	close(mon);
	self->fd = tw_open_manual(0);
}

/* A signal ends the sleep, and takes no event. */
TEST_F(monitor, blocked_reader_signalled)
{
	int mon = monitor_with(self->fd, (struct timerwheel_monitor) {});
	struct sigaction sa = { .sa_handler = on_signal };
	struct sleeper s;

	ASSERT_LE(0, mon);
	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	ASSERT_EQ(0, sleeper_start(&s, mon, 1));
	ASSERT_EQ(0, pthread_kill(s.thread, SIGUSR1));
	EXPECT_TRUE(sleeper_done(&s, LONG_MS));
	ASSERT_EQ(1, deliver(self, 0, 1));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(-EINTR, s.ret);
	EXPECT_TRUE(same(self, mon, 0, 1));
	close(mon);
}

static void *waits_for_the_end(void *arg)
{
	struct sleeper *s = arg;
	struct pollfd p = { .fd = s->fd };

	atomic_store(&s->tid, gettid());
	s->ret = tw_err(poll(&p, 1, -1)) == 1 ? p.revents : -EPROTO;
	atomic_store(&s->done, true);
	return NULL;
}

/* A poll for no events is woken by the end of file (POLLHUP), and not by an event. */
TEST_F(monitor, wakes_who_waits_for_the_end)
{
	struct sleeper s;

	ASSERT_EQ(0, sleeper_call(&s, self->mon, 0, waits_for_the_end));
	ASSERT_EQ(1, deliver(self, 0, 1));
	EXPECT_FALSE(sleeper_done(&s, QUIET_MS));
	close(self->fd);
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(POLLHUP, s.ret);
	self->fd = tw_open_manual(0);
}

static void *waits_in_a_set(void *arg)
{
	struct epoll_event ee = {};
	struct sleeper *s = arg;

	atomic_store(&s->tid, gettid());
	s->ret = epoll_wait(s->fd, &ee, 1, -1) == 1 ? ee.events : -errno;
	atomic_store(&s->done, true);
	return NULL;
}

/*
 * EPOLLEXCLUSIVE is for several waiters on one descriptor. Here each waits on its own monitor, so
 * all are woken: by an event, and by the end of file.
 */
TEST_F(monitor, wakes_exclusive_waiters)
{
	struct epoll_event ee = { .events = EPOLLIN | EPOLLEXCLUSIVE };
	int mon[READERS], set[READERS], i;
	struct sleeper s[READERS];

	for (i = 0; i < READERS; i++) {
		mon[i] = monitor(self->fd, LENGTH);
		ASSERT_LE(0, mon[i]);
		set[i] = epoll_create1(0);
		ASSERT_EQ(0, epoll_ctl(set[i], EPOLL_CTL_ADD, mon[i], &ee));
		ASSERT_EQ(0, sleeper_call(&s[i], set[i], 0, waits_in_a_set));
	}
	ASSERT_EQ(1, deliver(self, 0, 1));
	for (i = 0; i < READERS; i++) {
		ASSERT_TRUE(sleeper_done(&s[i], LONG_MS));
		EXPECT_EQ(EPOLLIN, s[i].ret);
		ASSERT_EQ(1, dev_read(mon[i], self->ev, 1));
		ASSERT_EQ(0, sleeper_call(&s[i], set[i], 0, waits_in_a_set));
	}
	close(self->fd);
	for (i = 0; i < READERS; i++) {
		ASSERT_TRUE(sleeper_done(&s[i], LONG_MS));
		EXPECT_EQ(EPOLLIN | EPOLLHUP, s[i].ret);
		close(set[i]);
		close(mon[i]);
	}
	self->fd = tw_open_manual(0);
}

/* Monitors closed in any order, with and without events, repeatedly */
TEST_F(monitor, lifetime)
{
	int i, fd, mon;

	for (i = 0; i < 200; i++) {
		fd = tw_open_manual(0);
		mon = monitor(fd, 1 + i % 100);
		ASSERT_LE(0, mon);
		ASSERT_EQ(0, tw_add1(fd, 1, 0, SEC, 0));
		if (i & 4) {
			ASSERT_EQ(1, tw_advance(fd, 0, MINUTE));
			ASSERT_EQ(1, dev_read(fd, self->ev, 1));
		}
		close(i & 1 ? fd : mon);
		close(i & 1 ? mon : fd);
	}
}

TEST_F(monitor, errors)
{
	struct rlimit few = { 0, 0 }, before;
	struct timerwheel_info info, later;

	EXPECT_EQ(-EINVAL, monitor_with(self->fd, (struct timerwheel_monitor) { .flags = 4 }));
	EXPECT_EQ(-EINVAL, monitor_with(self->fd, (struct timerwheel_monitor) { .reserved = 1 }));
	EXPECT_EQ(-EINVAL, monitor(self->fd, TIMERWHEEL_RING_MAX + 1));
	ASSERT_NE(~0ULL, tw_memory_alone(self->fd));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
	few.rlim_max = before.rlim_max;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &few));
	EXPECT_EQ(-EMFILE, monitor(self->fd, 1));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
	ASSERT_EQ(0, tw_info(self->fd, &later));
	EXPECT_EQ(info.user_memory, later.user_memory);
	/* a monitor has no monitors, and the calls on wheels fail */
	EXPECT_EQ(-ENOTTY, monitor(self->mon, 1));
	EXPECT_EQ(-ENOTTY, tw_info(self->mon, &info));
}

/* Memory of a log and a monitor in a kernel with lock debugging, half a page or more; else 0. */
static __u64 debugging(void)
{
	struct timerwheel_info before, info;
	int fd = tw_open_manual(0), mon;
	__u64 took;

	tw_info(fd, &before);
	mon = monitor(fd, 1);
	tw_info(fd, &info);
	close(mon);
	close(fd);
	took = info.user_memory - before.user_memory;
	return mon < 0 || took < (__u64)getpagesize() / 2 ? 0 : took;
}

/*
 * Is the memory of a log of @events events charged, and at most the rest of its last page more?
 * Waits for this, because files are freed with a delay.
 */
static bool charged(int fd, const struct timerwheel_info *before, __u64 events, __u64 more)
{
	__u64 least = before->user_memory + events * sizeof(struct timerwheel_event);
	__u64 most = least + (least - before->user_memory) / 50 + getpagesize() + more;
	struct timerwheel_info info;
	int i;

	for (i = 0; i < LONG_MS; i++) {
		if (tw_info(fd, &info))
			return false;
		if (info.user_memory >= least && info.user_memory <= most)
			return true;
		tw_sleep(MSEC);
	}
	fprintf(stderr, "# %lld bytes are charged for %llu events\n",
		(long long)(info.user_memory - before->user_memory), (unsigned long long)events);
	return false;
}

/* The log is charged to the opener of the wheel, by the longest monitor, until the last close */
TEST_F(monitor, charged)
{
	struct timerwheel_info info;
	struct timerwheel_stats st, more;
	__u64 debug = debugging();
	int fd = tw_open_manual(0), mon[2];

	ASSERT_LE(0, fd);
	ASSERT_NE(~0ULL, tw_memory_of((int[]){ self->fd, fd }, 2));
	ASSERT_EQ(0, tw_info(fd, &info));
	ASSERT_EQ(0, tw_stats(fd, &st));
	mon[0] = monitor(fd, 100);
	ASSERT_LE(0, mon[0]);
	EXPECT_TRUE(charged(fd, &info, 128, debug));
	mon[1] = monitor(fd, 128);
	ASSERT_LE(0, mon[1]);
	EXPECT_TRUE(charged(fd, &info, 128, debug));
	close(mon[1]);
	mon[1] = monitor(fd, TIMERWHEEL_RING_MAX);
	ASSERT_LE(0, mon[1]);
	EXPECT_TRUE(charged(fd, &info, TIMERWHEEL_RING_MAX, debug));
	ASSERT_EQ(0, tw_stats(fd, &more));
	EXPECT_LE(st.memory + TIMERWHEEL_RING_MAX * sizeof(struct timerwheel_event), more.memory);
	close(mon[1]);
	EXPECT_TRUE(charged(fd, &info, TIMERWHEEL_RING_MAX, debug));
	close(mon[0]);
	EXPECT_TRUE(charged(fd, &info, 0, debug));
	/* in whole pages; the next power of two would be a third more */
	mon[0] = monitor(fd, 512);
	ASSERT_LE(0, mon[0]);
	EXPECT_TRUE(charged(fd, &info, 512, debug));
	close(mon[0]);
	EXPECT_TRUE(charged(fd, &info, 0, debug));
	EXPECT_NE(~0ULL, tw_memory_of((int[]){ self->fd, fd }, 2));

	/* a monitor of another user, which outlives the wheel */
	if (!fork())
		_exit(setuid(1000) || monitor(fd, 4096) < 0 || !charged(fd, &info, 4096, debug));
	ASSERT_EQ(0, tw_reap(-1));
	EXPECT_TRUE(charged(fd, &info, 0, debug));
	mon[0] = monitor(fd, 4096);
	ASSERT_LE(0, mon[0]);
	close(fd);
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	info.user_memory = st.memory;
	EXPECT_TRUE(charged(self->fd, &info, 4096, debug));
	close(mon[0]);
	EXPECT_TRUE(charged(self->fd, &info, 0, debug));
}

/* At the limit: a longer log is refused, and existing monitors keep working */
TEST_F(monitor, over_the_cap)
{
	const char *path = "/sys/module/timerwheel/parameters/max_user_memory";
	struct timerwheel_info info, later;
	char before[32] = "", text[32];
	int fd = open(path, O_RDWR), mon, next;

	ASSERT_LE(0, fd);
	next = dup(fd);
	close(next);
	ASSERT_LT(0, read(fd, before, sizeof(before) - 1));
	ASSERT_EQ(3, deliver(self, 0, 3));
	ASSERT_NE(~0ULL, tw_memory_alone(self->fd));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	/* Room for the events of the longest monitor, but not for the monitor itself */
	snprintf(text, sizeof(text), "%llu",
		 info.user_memory + MOST * sizeof(struct timerwheel_event));
	ASSERT_EQ(strlen(text), pwrite(fd, text, strlen(text), 0));
	EXPECT_EQ(-EDQUOT, monitor(self->fd, MOST));
	ASSERT_EQ(0, tw_info(self->fd, &later));
	EXPECT_EQ(info.user_memory, later.user_memory);
	mon = monitor(self->fd, 2 * LENGTH);
	EXPECT_EQ(next, mon);
	EXPECT_EQ(strlen(before), pwrite(fd, before, strlen(before), 0));
	close(fd);
	close(mon);
	EXPECT_TRUE(same(self, self->mon, 0, 3));
	EXPECT_EQ(-EAGAIN, dev_read(self->mon, self->copy, 1));
}

/*
 * At the limit no monitor can be created, neither the first monitor of a wheel nor another one, and
 * no memory stays charged after all are closed.
 */
TEST_F(monitor, at_the_cap)
{
	const char *path = "/sys/module/timerwheel/parameters/max_user_memory";
	int fd = open(path, O_RDWR), probe = tw_open_manual(0), mon;
	char before[32] = "", text[32];
	struct timerwheel_info info;
	__u64 all;

	ASSERT_LE(0, fd);
	ASSERT_LE(0, probe);
	ASSERT_LT(0, read(fd, before, sizeof(before) - 1));
	all = tw_memory_of((int[]){ self->fd, probe }, 2);
	ASSERT_NE(~0ULL, all);
	snprintf(text, sizeof(text), "%llu", all);
	ASSERT_EQ(strlen(text), pwrite(fd, text, strlen(text), 0));
	EXPECT_EQ(-EDQUOT, monitor(self->fd, 1));
	EXPECT_EQ(-EDQUOT, monitor(probe, 1));
	ASSERT_EQ(0, tw_info(probe, &info));
	EXPECT_EQ(all, info.user_memory);
	EXPECT_EQ(strlen(before), pwrite(fd, before, strlen(before), 0));
	close(fd);
	mon = monitor(probe, 1);
	EXPECT_LE(0, mon);
	close(mon);
	close(self->mon);
	close(self->fd);
	EXPECT_NE(~0ULL, tw_memory_alone(probe));
	self->fd = probe;
	self->mon = monitor(self->fd, LENGTH);
}

/* The log stays charged after the user's last wheel is closed, and counts with later wheels. */
static int outlives(void)
{
	struct timerwheel_info info;
	struct timerwheel_stats st;
	int fd, mon;

	if (setuid(1000))
		return 1;
	fd = tw_open_manual(0);
	mon = monitor(fd, MOST);
	if (fd < 0 || mon < 0)
		return 2;
	close(fd);
	/* Wait for a grace period, and some time for the freeing that follows */
	syscall(SYS_membarrier, 1 /* MEMBARRIER_CMD_GLOBAL */, 0, 0);
	tw_sleep(200 * MSEC);
	fd = tw_open_manual(0);
	if (fd < 0 || tw_stats(fd, &st))
		return 3;
	info.user_memory = st.memory;
	if (!charged(fd, &info, MOST, 0))
		return 4;
	close(mon);
	return charged(fd, &info, 0, 0) ? 0 : 5;
}

TEST_F(monitor, outlives_its_user)
{
	mode_t mode;
	struct stat st;
	pid_t pid;

	if (geteuid())
		SKIP(return, "only root can be another user");
	ASSERT_EQ(0, stat(TW_DEV, &st));
	mode = st.st_mode & 07777;
	ASSERT_EQ(0, chmod(TW_DEV, 0666));
	pid = fork();
	if (!pid)
		_exit(outlives());
	EXPECT_EQ(0, tw_reap(pid));
	EXPECT_EQ(0, chmod(TW_DEV, mode));
}

/* Flags have their effect */
TEST_F(monitor, flags)
{
	int mon = monitor_with(self->fd, (struct timerwheel_monitor) {});

	ASSERT_LE(0, mon);
	EXPECT_EQ(0, fcntl(mon, F_GETFD));
	EXPECT_EQ(0, fcntl(mon, F_GETFL) & O_NONBLOCK);
	close(mon);
	EXPECT_EQ(FD_CLOEXEC, fcntl(self->mon, F_GETFD));
	EXPECT_EQ(O_NONBLOCK, fcntl(self->mon, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(O_RDONLY, fcntl(self->mon, F_GETFL) & O_ACCMODE);
}

/* On a wheel with a ring, monitors get the events that enter the ring */
TEST(of_a_ring)
{
	struct timerwheel_setup setup = { .clock = TIMERWHEEL_CLOCK_MANUAL, .ring = 8 };
	int fd = dev_open(O_NONBLOCK), mon, i;
	struct timerwheel_event ev[32];

	ASSERT_EQ(0, dev_setup(fd, &setup));
	mon = monitor(fd, 32);
	ASSERT_LE(0, mon);
	ASSERT_EQ(12, arm(fd, 0, 12));
	EXPECT_EQ(12, tw_advance(fd, 0, HOUR));
	ASSERT_EQ(8, dev_read(mon, ev, 32));
	for (i = 0; i < 8; i++)
		EXPECT_EQ(i, ev[i].key);
	EXPECT_EQ(-EAGAIN, dev_read(mon, ev, 32));
	close(fd);
	EXPECT_EQ(0, dev_read(mon, ev, 32));
	close(mon);
}

/* Events that go directly into the ring, one shot and periodic: all monitors get the same */
TEST(of_a_ring_at_once)
{
	struct timerwheel_setup setup = { .clock = TIMERWHEEL_CLOCK_MANUAL, .ring = 64 };
	size_t size = TIMERWHEEL_RING_EVENTS + 64 * sizeof(struct timerwheel_event);
	int fd = dev_open(O_NONBLOCK), mon[3], i;
	struct timerwheel_event ev[64];
	struct timerwheel_ring *ring;

	ASSERT_EQ(0, dev_setup(fd, &setup));
	ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, TIMERWHEEL_MMAP_RING);
	ASSERT_NE(MAP_FAILED, ring);
	for (i = 0; i < 3; i++) {
		mon[i] = monitor(fd, 64 << i);
		ASSERT_LE(0, mon[i]);
	}
	ASSERT_EQ(12, arm(fd, 0, 12));
	ASSERT_EQ(0, tw_add1_periodic(fd, 99, 5, SEC, SEC, 0));
	for (i = 1; i <= 12; i++)
		EXPECT_EQ(2, tw_advance(fd, 0, SEC));
	EXPECT_EQ(24, ring->tail);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(24, dev_read(mon[i], ev, 64));
		EXPECT_EQ(0, memcmp(ev, (char *)ring + TIMERWHEEL_RING_EVENTS, 24 * sizeof(*ev)));
		close(mon[i]);
	}
	munmap(ring, size);
	close(fd);
}

static void *reads_wheel(void *arg)
{
	static struct timerwheel_event ev[256];
	int fd = *(int *)arg;
	long got = 0;
	int n;

	while (got < 20000) {
		if (dev_poll(fd, LONG_MS) != POLLIN)
			break;
		n = dev_read(fd, ev, 256);
		if (n > 0)
			got += n;
	}
	return (void *)got;
}

/* On a running clock: copies and misses add up to the number of delivered events */
TEST(running)
{
	enum { ALL = 20000 };
	static struct timerwheel_event ev[512];
	static struct timerwheel_add add[ALL];
	int fd = dev_open(O_NONBLOCK), mon, i, n;
	static int seen[ALL];
	long got = 0, missed = 0;
	__u64 state = tw_seed();
	pthread_t thread;
	void *read;

	ASSERT_LE(0, fd);
	mon = monitor(fd, 64);
	ASSERT_LE(0, mon);
	ASSERT_EQ(0, pthread_create(&thread, NULL, reads_wheel, &fd));
	for (i = 0; i < ALL; i++)
		add[i] = (struct timerwheel_add) {
			.key = i, .deadline = tw_rand(&state) % (200 * MSEC),
		};
	ASSERT_EQ(ALL, dev_add(fd, add, ALL));
	while (got + missed < ALL) {
		ASSERT_EQ(POLLIN, dev_poll(mon, LONG_MS)) TH_LOG("%ld + %ld", got, missed);
		n = dev_read(mon, ev, 512);
		ASSERT_LT(0, n);
		for (i = 0; i < n; i++) {
			if (ev[i].flags & TIMERWHEEL_EVENT_MISSED) {
				missed += ev[i].overruns;
				continue;
			}
			ASSERT_GT(ALL, ev[i].key);
			ASSERT_EQ(0, seen[ev[i].key]++);
			got++;
		}
	}
	ASSERT_EQ(0, pthread_join(thread, &read));
	EXPECT_EQ(ALL, (long)read);
	EXPECT_EQ(ALL, got + missed);
	TH_LOG("%ld seen, %ld missed", got, missed);
	close(mon);
	close(fd);
}

/* --- Monitors with one reader and with many, while events flow ------------------------------- */

enum { FLOOD = 64 };

struct flow {
	int fd;
	bool stop;
	__u64 delivered;
};

/* Deliver keys 0, 1, 2, ... in that order until told to stop. */
static void *delivers(void *arg)
{
	struct flow *flow = arg;
	struct timerwheel_add add[FLOOD];
	struct timerwheel_event ev[FLOOD];
	__u64 state = tw_seed();
	__u64 key = 0;
	int i, n;

	while (!__atomic_load_n(&flow->stop, __ATOMIC_RELAXED)) {
		n = 1 + tw_rand(&state) % FLOOD;
		for (i = 0; i < n; i++)
			add[i] = (struct timerwheel_add) { .key = key + i };
		if (dev_add(flow->fd, add, n) != n || dev_read(flow->fd, ev, n) != n)
			return "not all were delivered";
		key += n;
	}
	flow->delivered = key;
	return NULL;
}

struct follower {
	int mon;
	__u64 next;		/* key that comes next; ~0: any */
	__u64 seen;
	__u64 missed;
};

/* Read until no event is left, or to the end. Are keys and misses exact, and in order? */
static int follow(struct follower *f, int most)
{
	struct timerwheel_event ev[100];
	int i, n = dev_read(f->mon, ev, most);

	for (i = 0; i < n; i++) {
		if (ev[i].flags & TIMERWHEEL_EVENT_MISSED) {
			f->missed += ev[i].overruns;
			if (f->next != ~0ULL)
				f->next += ev[i].overruns;
			continue;
		}
		if (f->next != ~0ULL && ev[i].key != f->next) {
			fprintf(stderr, "# key %llu, not %llu\n", ev[i].key, f->next);
			return -EPROTO;
		}
		f->next = ev[i].key + 1;
		f->seen++;
	}
	return n;
}

static void *follows(void *arg)
{
	struct follower *f = arg;
	__u64 state = tw_seed() ^ (uintptr_t)arg;
	int n;

	do {
		n = follow(f, 1 + tw_rand(&state) % 100);
		/* let the reader sometimes fall behind */
		if (!(tw_rand(&state) % 50))
			tw_sleep(tw_rand(&state) % (2 * MSEC));
	} while (n > 0);
	return n ? "a reader failed" : NULL;
}

/*
 * While events flow, monitors are created, each longer than the previous ones, and closed. Each
 * gets every event from its first one on, or a count in place of missing events.
 */
TEST(exact)
{
	struct follower f[3], more[13];
	struct flow flow = {};
	int i, k, round, rounds = 30;
	__u64 seen = 0, lost = 0;
	pthread_t source, thread[3];
	void *error;

	for (round = 0; round < rounds; round++) {
		flow = (struct flow) { .fd = tw_open_manual(0) };
		ASSERT_LE(0, flow.fd);
		for (i = 0; i < 3; i++) {
			/* these block */
			f[i] = (struct follower) {
				.mon = monitor_with(flow.fd, (struct timerwheel_monitor) {
					.events = 8 << i,
				}),
			};
			ASSERT_LE(0, f[i].mon);
			ASSERT_EQ(0, pthread_create(&thread[i], NULL, follows, &f[i]));
		}
		ASSERT_EQ(0, pthread_create(&source, NULL, delivers, &flow));
		for (i = 0; i < 13; i++) {
			more[i] = (struct follower) {
				.mon = monitor(flow.fd, 16 << i), .next = ~0ULL,
			};
			ASSERT_LE(0, more[i].mon);
			for (k = 0; k <= i; k++)
				ASSERT_NE(-EPROTO, follow(&more[k], 100));
		}
		flow.stop = true;
		ASSERT_EQ(0, pthread_join(source, &error));
		EXPECT_EQ(NULL, error);
		close(flow.fd);
		for (i = 0; i < 3; i++) {
			ASSERT_EQ(0, pthread_join(thread[i], &error));
			EXPECT_EQ(NULL, error);
			EXPECT_EQ(flow.delivered, f[i].next);
			EXPECT_EQ(flow.delivered, f[i].seen + f[i].missed);
			seen += f[i].seen;
			lost += f[i].missed;
			close(f[i].mon);
		}
		for (i = 0; i < 13; i++) {
			while (follow(&more[i], 100) > 0)
				;
			if (more[i].next != ~0ULL)
				EXPECT_EQ(flow.delivered, more[i].next);
			/* No event is missing before more events came than it holds. */
			if (more[i].seen + more[i].missed <= 16ULL << i)
				EXPECT_EQ(0, more[i].missed);
			close(more[i].mon);
		}
	}
	TH_LOG("%llu seen, %llu missed", seen, lost);
	EXPECT_LT(0, lost);
}

/* The last monitor is closed and another first one is created, while events flow. */
TEST(come_and_go)
{
	struct flow flow = { .fd = tw_open_manual(0) };
	__u64 seen = 0, end;
	struct timerwheel_event ev[FLOOD];
	pthread_t source;
	void *error;
	int mon, n, rounds;

	ASSERT_LE(0, flow.fd);
	ASSERT_EQ(0, pthread_create(&source, NULL, delivers, &flow));
	end = tw_now(CLOCK_MONOTONIC) + 2 * SEC;
	for (rounds = 0; tw_now(CLOCK_MONOTONIC) < end; rounds++) {
		mon = monitor(flow.fd, 1 + rounds % LENGTH);
		ASSERT_LE(0, mon);
		n = dev_read(mon, ev, FLOOD);
		ASSERT_NE(0, n);
		ASSERT_LE(-EAGAIN, n);
		seen += n > 0;
		close(mon);
	}
	flow.stop = true;
	ASSERT_EQ(0, pthread_join(source, &error));
	EXPECT_EQ(NULL, error);
	TH_LOG("%d monitors, %llu of them saw something", rounds, seen);
	close(flow.fd);
}

struct sharer {
	int mon;
	__u64 seen;
	__u64 missed;
	unsigned char *had;
};

static void *shares(void *arg)
{
	struct sharer *s = arg;
	struct timerwheel_event ev[50];
	__u64 state = tw_seed() ^ (uintptr_t)arg;
	int i, n;

	do {
		n = dev_read(s->mon, ev, 1 + tw_rand(&state) % 50);
		for (i = 0; i < n; i++) {
			if (ev[i].flags & TIMERWHEEL_EVENT_MISSED)
				s->missed += ev[i].overruns;
			else if (!__atomic_fetch_add(&s->had[ev[i].key], 1, __ATOMIC_RELAXED))
				s->seen++;
			else
				return "an event came twice";
		}
	} while (n > 0);
	return n ? "a reader failed" : NULL;
}

/* Several readers of a monitor: each event and each miss goes to one of them; all get the end */
TEST(shared)
{
	enum { ALL = 100000 };
	static unsigned char had[ALL];
	static struct timerwheel_add add[FLOOD];
	struct timerwheel_event ev[FLOOD];
	int fd = tw_open_manual(0), mon, i, key;
	struct sharer s[READERS];
	__u64 sum = 0, missed = 0;
	pthread_t thread[READERS];
	void *error;

	mon = monitor_with(fd, (struct timerwheel_monitor) { .events = 64 });
	ASSERT_LE(0, mon);
	for (i = 0; i < READERS; i++) {
		s[i] = (struct sharer) { .mon = mon, .had = had };
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, shares, &s[i]));
	}
	for (key = 0; key < ALL; key += 50) {
		for (i = 0; i < 50; i++)
			add[i] = (struct timerwheel_add) { .key = key + i };
		ASSERT_EQ(50, dev_add(fd, add, 50));
		ASSERT_EQ(50, dev_read(fd, ev, 50));
	}
	/* By now they sleep, or are about to. */
	close(fd);
	for (i = 0; i < READERS; i++) {
		ASSERT_EQ(0, pthread_join(thread[i], &error));
		EXPECT_EQ(NULL, error);
		sum += s[i].seen;
		missed += s[i].missed;
	}
	EXPECT_EQ(ALL, sum + missed);
	TH_LOG("%llu seen, %llu missed", sum, missed);
	close(mon);
}

/* Make room in a ring and wait until there are events beyond @tail. */
static void wait_for_more(int fd, struct timerwheel_ring *ring, __u32 tail)
{
	unsigned int turns;

	__atomic_store_n(&ring->head, tail, __ATOMIC_RELEASE);
	for (turns = 1; __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == tail; turns++)
		/* It was full, and no timer is left that could fall due. */
		if (!(turns % 65536))
			dev_ioctl(fd, TIMERWHEEL_IOC_FLOW, NULL);
}

/*
 * A monitor of a wheel with a ring gets all events delivered after the call has returned, even if
 * the kernel is filling the ring at that moment.
 */
TEST(from_now_on)
{
	enum { EVENTS = 4096, TIMERS = 256 };
	struct timerwheel_setup setup = { .ring = EVENTS, .tick = 100 * USEC };
	static struct timerwheel_event ev[EVENTS];
	size_t size = TIMERWHEEL_RING_EVENTS + EVENTS * sizeof(ev[0]);
	static struct timerwheel_add add[TIMERS];
	const struct timerwheel_event *first;
	struct timerwheel_ring *ring;
	int fd, mon, i, n, rounds = 0;
	__u64 until;
	__u32 tail;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "needs two CPUs");
	fd = dev_open(O_NONBLOCK);
	ASSERT_EQ(0, dev_setup(fd, &setup));
	ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, TIMERWHEEL_MMAP_RING);
	ASSERT_NE(MAP_FAILED, ring);
	/* They fall due on the other CPU, at most 64 of them at once. */
	ASSERT_EQ(0, tw_pin(1));
	for (i = 0; i < TIMERS; i++)
		add[i] = (struct timerwheel_add) { .key = i, .period = 2 * MSEC };
	ASSERT_EQ(TIMERS, dev_add(fd, add, TIMERS));
	ASSERT_EQ(0, tw_pin(0));
	for (until = tw_now(CLOCK_MONOTONIC) + 2 * SEC; tw_now(CLOCK_MONOTONIC) < until; rounds++) {
		mon = monitor(fd, EVENTS);
		tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
		ASSERT_LE(0, mon);
		/* The next events go to the due list, and from there into the ring. */
		wait_for_more(fd, ring, tail);
		first = (void *)ring + TIMERWHEEL_RING_EVENTS;
		first += tail % EVENTS;
		n = dev_read(mon, ev, EVENTS);
		ASSERT_LT(0, n);
		for (i = 0; i < n; i++)
			if (ev[i].key == first->key && ev[i].deadline == first->deadline)
				break;
		ASSERT_LT(i, n)
			TH_LOG("round %d: key %llu is not among %d copies", rounds, first->key, n);
		close(mon);
		/* Without a monitor they go into the ring directly. */
		wait_for_more(fd, ring, __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE));
	}
	TH_LOG("%d monitors", rounds);
	munmap(ring, size);
	close(fd);
}

TEST_HARNESS_MAIN
