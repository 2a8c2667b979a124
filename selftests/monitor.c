// SPDX-License-Identifier: GPL-2.0
/*
 * Monitors: descriptors that see a copy of each event.
 */
#include "tw_test.h"
#include <sys/uio.h>
#include <pthread.h>
#include <sys/resource.h>

enum { LENGTH = 16, MOST = 4096 };

static int monitor_with(int fd, struct timerwheel_monitor arg)
{
	arg.size = sizeof(arg);
	return tw_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &arg);
}

static int monitor(int fd, __u32 events)
{
	return monitor_with(fd, (struct timerwheel_monitor) {
		.flags = TIMERWHEEL_MONITOR_CLOEXEC | TIMERWHEEL_MONITOR_NONBLOCK,
		.events = events,
	});
}

/* Keys @first to @first + @n - 1, each a second later than the one before */
static int arm(int fd, __u64 first, int n)
{
	static struct timerwheel_add add[MOST];
	int i;

	for (i = 0; i < n; i++)
		add[i] = (struct timerwheel_add) {
			.key = first + i, .value = ~(first + i), .deadline = (1 + i) * SEC,
		};
	return tw_add(fd, add, n);
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

/* Deliver @n events that are due already */
static int deliver(FIXTURE_DATA(monitor) * self, __u64 first, int n)
{
	int ret = arm(self->fd, first, n);

	if (ret != n || tw_advance(self->fd, 0, HOUR) != n)
		return -EPROTO;
	return tw_read(self->fd, self->ev, n);
}

/* The monitor's events are those that were delivered */
static bool same(FIXTURE_DATA(monitor) * self, int mon, int from, int n)
{
	return tw_read(mon, self->copy, n) == n &&
	       !memcmp(self->copy, self->ev + from, n * sizeof(*self->ev));
}

/* Nothing before it is delivered, then a copy of all of it */
TEST_F(monitor, copies)
{
	EXPECT_EQ(-EAGAIN, tw_read(self->mon, self->copy, 1));
	EXPECT_EQ(0, tw_poll(self->mon, 0));
	ASSERT_EQ(8, arm(self->fd, 0, 8));
	ASSERT_EQ(0, tw_add1_periodic(self->fd, 99, 5, SEC, SEC, 0));
	EXPECT_EQ(9, tw_advance(self->fd, 0, MINUTE));
	EXPECT_EQ(-EAGAIN, tw_read(self->mon, self->copy, 1));
	ASSERT_EQ(9, tw_read(self->fd, self->ev, MOST));
	EXPECT_EQ(POLLIN, tw_poll(self->mon, 0));
	EXPECT_TRUE(same(self, self->mon, 0, 3));
	EXPECT_TRUE(same(self, self->mon, 3, 6));
	EXPECT_EQ(0, tw_poll(self->mon, 0));
	EXPECT_EQ(-EAGAIN, tw_read(self->mon, self->copy, 1));
}

/* What is withdrawn was no event */
TEST_F(monitor, withdrawn)
{
	struct timerwheel_entry ent[4];

	ASSERT_EQ(4, arm(self->fd, 0, 4));
	EXPECT_EQ(4, tw_advance(self->fd, 0, MINUTE));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_remove1(self->fd, 0));
	ASSERT_EQ(1, tw_read(self->fd, self->ev, 1));
	EXPECT_EQ(2, tw_drain(self->fd, 0, ent, 4));
	EXPECT_TRUE(same(self, self->mon, 0, 1));
	EXPECT_EQ(-EAGAIN, tw_read(self->mon, self->copy, 1));
}

/* Each of many has its own; one that comes late sees what comes later */
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
	EXPECT_EQ(-EAGAIN, tw_read(mon[i], self->copy, 1));
	/* one less */
	close(mon[3]);
	mon[3] = monitor(self->fd, LENGTH);
	EXPECT_LE(0, mon[3]);
	ASSERT_EQ(5, deliver(self, 10, 5));
	for (i = 0; i < TIMERWHEEL_MONITORS_MAX; i++)
		EXPECT_TRUE(same(self, mon[i], 0, 5));
	for (i = 1; i < TIMERWHEEL_MONITORS_MAX; i++)
		close(mon[i]);
}

/* What there is no room for is counted, in its place */
TEST_F(monitor, misses)
{
	ASSERT_EQ(LENGTH, deliver(self, 0, LENGTH));
	ASSERT_EQ(7, deliver(self, 100, 7));
	ASSERT_EQ(LENGTH, tw_read(self->mon, self->copy, LENGTH));
	EXPECT_EQ(LENGTH - 1, self->copy[LENGTH - 1].key);
	/* at once, not with the next event only */
	EXPECT_EQ(POLLIN, tw_poll(self->mon, 0));
	ASSERT_EQ(1, tw_read(self->mon, self->copy, MOST));
	EXPECT_EQ(TIMERWHEEL_EVENT_MISSED, self->copy[0].flags);
	EXPECT_EQ(7, self->copy[0].overruns);
	EXPECT_EQ(0, self->copy[0].key | self->copy[0].value | self->copy[0].deadline |
		     self->copy[0].fired | self->copy[0].index);

	/* with room for the count and some */
	ASSERT_EQ(LENGTH, deliver(self, 200, LENGTH));
	ASSERT_EQ(9, deliver(self, 300, 9));
	ASSERT_EQ(5, tw_read(self->mon, self->copy, 5));
	ASSERT_EQ(6, deliver(self, 400, 6));
	ASSERT_EQ(LENGTH, tw_read(self->mon, self->copy, LENGTH));
	EXPECT_EQ(205, self->copy[0].key);
	EXPECT_EQ(200 + LENGTH - 1, self->copy[LENGTH - 6].key);
	EXPECT_EQ(TIMERWHEEL_EVENT_MISSED, self->copy[LENGTH - 5].flags);
	EXPECT_EQ(9, self->copy[LENGTH - 5].overruns);
	EXPECT_EQ(400, self->copy[LENGTH - 4].key);
	EXPECT_EQ(403, self->copy[LENGTH - 1].key);
	ASSERT_EQ(1, tw_read(self->mon, self->copy, MOST));
	EXPECT_EQ(TIMERWHEEL_EVENT_MISSED, self->copy[0].flags);
	EXPECT_EQ(2, self->copy[0].overruns);
	EXPECT_EQ(-EAGAIN, tw_read(self->mon, self->copy, 1));
}

/* A copy that faults loses nothing */
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

/* The wheel is closed: what was copied can be read, then there is an end */
TEST_F(monitor, has_an_end)
{
	ASSERT_EQ(4, deliver(self, 0, 4));
	EXPECT_EQ(POLLIN, tw_poll(self->mon, 0));
	close(self->fd);
	EXPECT_EQ(POLLIN | POLLHUP, tw_poll(self->mon, 0));
	EXPECT_TRUE(same(self, self->mon, 0, 4));
	EXPECT_EQ(POLLIN | POLLHUP, tw_poll(self->mon, 0));
	EXPECT_EQ(0, tw_read(self->mon, self->copy, 1));
	self->fd = tw_open_manual(0);
}

static void *reads_blocking(void *arg)
{
	int *fd = arg;
	struct timerwheel_event ev;

	*fd = tw_read(*fd, &ev, 1);
	return NULL;
}

/* A reader that sleeps is woken by an event, and by the end */
TEST_F(monitor, wakes)
{
	pthread_t thread;
	int mon, got;

	mon = monitor_with(self->fd, (struct timerwheel_monitor) {});
	ASSERT_LE(0, mon);
	got = mon;
	ASSERT_EQ(0, pthread_create(&thread, NULL, reads_blocking, &got));
	tw_sleep(50 * MSEC);
	ASSERT_EQ(1, deliver(self, 0, 1));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(1, got);
	got = mon;
	ASSERT_EQ(0, pthread_create(&thread, NULL, reads_blocking, &got));
	tw_sleep(50 * MSEC);
	close(self->fd);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, got);
	close(mon);
	self->fd = tw_open_manual(0);
}

/* Closed in any order, with events and without, again and again */
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
			ASSERT_EQ(1, tw_read(fd, self->ev, 1));
		}
		close(i & 1 ? fd : mon);
		close(i & 1 ? mon : fd);
	}
}

#define RING_BYTES	(TIMERWHEEL_RING_MAX * sizeof(struct timerwheel_event))

TEST_F(monitor, errors)
{
	struct rlimit few = { 0, 0 }, before;
	struct timerwheel_info info, later;
	int mon;

	EXPECT_EQ(-EINVAL, monitor_with(self->fd, (struct timerwheel_monitor) { .flags = 4 }));
	EXPECT_EQ(-EINVAL, monitor_with(self->fd, (struct timerwheel_monitor) { .reserved = 1 }));
	EXPECT_EQ(-EINVAL, monitor(self->fd, TIMERWHEEL_RING_MAX + 1));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
	few.rlim_max = before.rlim_max;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &few));
	EXPECT_EQ(-EMFILE, monitor(self->fd, 1));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
	ASSERT_EQ(0, tw_info(self->fd, &later));
	EXPECT_EQ(info.user_memory, later.user_memory);
	mon = monitor(self->fd, TIMERWHEEL_RING_MAX);
	ASSERT_LE(0, mon);
	ASSERT_EQ(0, tw_info(self->fd, &later));
	/* its events, and little more */
	EXPECT_LT(info.user_memory + RING_BYTES, later.user_memory);
	EXPECT_GT(info.user_memory + RING_BYTES + RING_BYTES / 100, later.user_memory);
	close(mon);
	ASSERT_EQ(0, tw_info(self->fd, &later));
	EXPECT_EQ(info.user_memory, later.user_memory);
	/* no monitor of a monitor, and what a wheel can do it cannot */
	EXPECT_EQ(-ENOTTY, monitor(self->mon, 1));
	EXPECT_EQ(-ENOTTY, tw_info(self->mon, &info));
}

/* Flags do what they say */
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

/* RWF_NOWAIT: does not sleep on a monitor that blocks, and takes what is there */
TEST_F(monitor, nowait)
{
	int mon = monitor_with(self->fd, (struct timerwheel_monitor) {});
	struct iovec iov = { .iov_base = self->copy, .iov_len = sizeof(self->copy) };

	ASSERT_LE(0, mon);
	EXPECT_EQ(-1, preadv2(mon, &iov, 1, -1, RWF_NOWAIT));
	EXPECT_EQ(EAGAIN, errno);
	ASSERT_EQ(3, deliver(self, 0, 3));
	EXPECT_EQ(3 * sizeof(*self->copy), preadv2(mon, &iov, 1, -1, RWF_NOWAIT));
	close(mon);
}

/* On a wheel with a ring: what goes into the ring */
TEST(of_a_ring)
{
	struct timerwheel_setup setup = { .clock = TIMERWHEEL_CLOCK_MANUAL, .ring = 8 };
	int fd = tw_open(O_NONBLOCK), mon, i;
	struct timerwheel_event ev[32];

	ASSERT_EQ(0, tw_setup(fd, &setup));
	mon = monitor(fd, 32);
	ASSERT_LE(0, mon);
	ASSERT_EQ(12, arm(fd, 0, 12));
	EXPECT_EQ(12, tw_advance(fd, 0, HOUR));
	ASSERT_EQ(8, tw_read(mon, ev, 32));
	for (i = 0; i < 8; i++)
		EXPECT_EQ(i, ev[i].key);
	EXPECT_EQ(-EAGAIN, tw_read(mon, ev, 32));
	close(fd);
	EXPECT_EQ(0, tw_read(mon, ev, 32));
	close(mon);
}

static void *reads_wheel(void *arg)
{
	static struct timerwheel_event ev[256];
	int fd = *(int *)arg;
	long got = 0;
	int n;

	while (got < 20000) {
		if (tw_poll(fd, 20000) != POLLIN)
			break;
		n = tw_read(fd, ev, 256);
		if (n > 0)
			got += n;
	}
	return (void *)got;
}

/* On a clock that runs: copies and misses are together what was delivered */
TEST(running)
{
	enum { ALL = 20000 };
	static struct timerwheel_event ev[512];
	static struct timerwheel_add add[ALL];
	int fd = tw_open(O_NONBLOCK), mon, i, n;
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
	ASSERT_EQ(ALL, tw_add(fd, add, ALL));
	while (got + missed < ALL) {
		ASSERT_EQ(POLLIN, tw_poll(mon, 20000)) TH_LOG("%ld + %ld", got, missed);
		n = tw_read(mon, ev, 512);
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

/* Make room in a ring and wait until there is more than up to @tail. */
static void wait_for_more(int fd, struct timerwheel_ring *ring, __u32 tail)
{
	unsigned int turns;

	__atomic_store_n(&ring->head, tail, __ATOMIC_RELEASE);
	for (turns = 1; __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == tail; turns++)
		/* It was full, and nothing is left that could fall due. */
		if (!(turns % 65536))
			tw_ioctl(fd, TIMERWHEEL_IOC_FLOW, NULL);
}

/*
 * A monitor of a ring sees all that is delivered once the call has returned, though the kernel
 * may be about to fill the ring just then.
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
	fd = tw_open(O_NONBLOCK);
	ASSERT_EQ(0, tw_setup(fd, &setup));
	ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, TIMERWHEEL_MMAP_RING);
	ASSERT_NE(MAP_FAILED, ring);
	/* They fall due on the other CPU, at most 64 of them at once. */
	ASSERT_EQ(0, tw_pin(1));
	for (i = 0; i < TIMERS; i++)
		add[i] = (struct timerwheel_add) { .key = i, .period = 2 * MSEC };
	ASSERT_EQ(TIMERS, tw_add(fd, add, TIMERS));
	ASSERT_EQ(0, tw_pin(0));
	for (until = tw_now(CLOCK_MONOTONIC) + 2 * SEC; tw_now(CLOCK_MONOTONIC) < until; rounds++) {
		mon = monitor(fd, EVENTS);
		tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
		ASSERT_LE(0, mon);
		/* What comes next goes to the list, and from there to the ring. */
		wait_for_more(fd, ring, tail);
		first = (void *)ring + TIMERWHEEL_RING_EVENTS;
		first += tail % EVENTS;
		n = tw_read(mon, ev, EVENTS);
		ASSERT_LT(0, n);
		for (i = 0; i < n; i++)
			if (ev[i].key == first->key && ev[i].deadline == first->deadline)
				break;
		ASSERT_LT(i, n)
			TH_LOG("round %d: key %llu is not among %d copies", rounds, first->key, n);
		close(mon);
		/* As long as nobody watches they go to the ring at once. */
		wait_for_more(fd, ring, __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE));
	}
	TH_LOG("%d monitors", rounds);
	munmap(ring, size);
	close(fd);
}

TEST_HARNESS_MAIN
