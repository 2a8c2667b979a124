// SPDX-License-Identifier: GPL-2.0
/* ring: the event ring, events in mapped memory without a system call. */
#include "sleeper.h"
#include "../lib/timerwheel-mapped.h"
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>

enum { LENGTH = 16, MOST = 4096 };

static size_t ring_size(size_t events)
{
	size_t page = getpagesize();

	return (TIMERWHEEL_RING_EVENTS + events * sizeof(struct timerwheel_event) + page - 1) /
	       page * page;
}

static struct timerwheel_ring *map_ring(int fd, size_t events)
{
	return mmap(NULL, ring_size(events), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    TIMERWHEEL_MMAP_RING);
}

static int open_ring(__u32 clock, __u32 ring)
{
	struct timerwheel_setup setup = { .clock = clock, .ring = ring };
	int fd = dev_open(O_NONBLOCK), ret;

	if (fd < 0)
		return fd;
	ret = dev_setup(fd, &setup);
	if (ret >= 0)
		return fd;
	close(fd);
	return ret;
}

static int flow(int fd)
{
	return dev_ioctl(fd, TIMERWHEEL_IOC_FLOW, NULL);
}

static bool overflow(const struct timerwheel_ring *ring)
{
	return __atomic_load_n(&ring->flags, __ATOMIC_RELAXED) & TIMERWHEEL_RING_OVERFLOW;
}

/* Arm keys @first to @first + @n - 1, from @deadline, each a second later than the previous key */
static int arm(int fd, __u64 first, int n, __u64 deadline)
{
	static struct timerwheel_add add[MOST];
	int i;

	for (i = 0; i < n; i++)
		add[i] = (struct timerwheel_add) {
			.key = first + i, .value = ~(first + i), .deadline = deadline + i * SEC,
			.flags = TIMERWHEEL_ABS,
		};
	return dev_add(fd, add, n);
}

/* Are these the events of keys @first to @first + @n - 1, in this order? */
static bool in_order(const struct timerwheel_event *ev, __u64 first, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		if (ev[i].key == first + i && ev[i].value == ~(first + i) &&
		    ev[i].fired >= ev[i].deadline)
			continue;
		fprintf(stderr, "# event %d: key %llu, not %llu\n", i, ev[i].key, first + i);
		return false;
	}
	return true;
}

/* --- A wheel with the MANUAL clock --------------------------------------------------- */

FIXTURE(ring) {
	int fd;
	struct timerwheel_ring *ring;
	struct timerwheel_event ev[MOST];
};

FIXTURE_SETUP(ring)
{
	self->fd = open_ring(TIMERWHEEL_CLOCK_MANUAL, LENGTH);
	ASSERT_LE(0, self->fd);
	self->ring = map_ring(self->fd, LENGTH);
	ASSERT_NE(MAP_FAILED, self->ring);
	tw_poison(self->ev, sizeof(self->ev));
}

FIXTURE_TEARDOWN(ring)
{
	struct timerwheel_stats st;

	EXPECT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_TRUE(tw_balanced(&st));
	close(self->fd);
}

static unsigned int take(FIXTURE_DATA(ring) * self, unsigned int max)
{
	tw_poison(self->ev, sizeof(self->ev));
	return timerwheel_ring_take(TW_RING(self->ring), self->ev, max);
}

TEST_F(ring, empty)
{
	EXPECT_EQ(LENGTH - 1, self->ring->mask);
	EXPECT_EQ(0, self->ring->tail);
	EXPECT_EQ(0, self->ring->head);
	EXPECT_EQ(0, self->ring->flags);
	EXPECT_EQ(0, take(self, MOST));
	EXPECT_EQ(0, flow(self->fd));
	EXPECT_EQ(0, dev_poll(self->fd, 0));
	EXPECT_EQ(TIMERWHEEL_RING_POLL, timerwheel_ring_sleep(TW_RING(self->ring)));
}

/* A new ring has none of its pages' previous contents */
TEST(pages_are_new)
{
	struct timerwheel_ring header = { .mask = MOST - 1,
					  .event_size = sizeof(struct timerwheel_event) };
	struct timerwheel_ring *ring;
	int fd;

	ASSERT_EQ(0, tw_pin(0));
	ASSERT_TRUE(tw_dirty_pages(16 * ring_size(MOST)));
	fd = open_ring(TIMERWHEEL_CLOCK_MANUAL, MOST);
	ASSERT_LE(0, fd);
	ring = map_ring(fd, MOST);
	ASSERT_NE(MAP_FAILED, ring);
	EXPECT_EQ(0, memcmp(ring, &header, sizeof(header)));
	EXPECT_TRUE(tw_all_bytes(ring + 1, 0, ring_size(MOST) - sizeof(*ring)));
	close(fd);
}

/* An event has all fields that read() would return */
TEST_F(ring, one_event)
{
	ASSERT_EQ(0, tw_add1(self->fd, 7, 8, 5 * SEC, 0));
	EXPECT_EQ(0, take(self, MOST));
	EXPECT_EQ(1, tw_advance(self->fd, 0, 6 * SEC));
	EXPECT_EQ(POLLIN, dev_poll(self->fd, 0));
	ASSERT_EQ(1, take(self, MOST));
	EXPECT_EQ(7, self->ev[0].key);
	EXPECT_EQ(8, self->ev[0].value);
	EXPECT_EQ(5 * SEC, self->ev[0].deadline);
	EXPECT_EQ(5 * SEC, self->ev[0].fired);
	EXPECT_EQ(0, self->ev[0].overruns);
	EXPECT_EQ(0, self->ev[0].flags);
	EXPECT_NE(0, self->ev[0].index);
	EXPECT_TRUE(tw_poisoned(&self->ev[1], sizeof(self->ev[1])));
	EXPECT_EQ(0, dev_poll(self->fd, 0));
	EXPECT_EQ(0, take(self, MOST));
}

/* An event in the ring is delivered: no operation finds its timer */
TEST_F(ring, is_delivered)
{
	struct timerwheel_stats st;
	struct timerwheel_entry ent;

	ASSERT_EQ(1, arm(self->fd, 1, 1, SEC));
	EXPECT_EQ(1, tw_advance(self->fd, 0, 2 * SEC));
	EXPECT_EQ(-ENOENT, tw_remove1(self->fd, 1));
	EXPECT_EQ(-ENOENT, tw_move1(self->fd, 1, HOUR, 0));
	EXPECT_EQ(-ENOENT, tw_get1(self->fd, 1, &ent));
	EXPECT_EQ(0, tw_drain(self->fd, 0, &ent, 1));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(1, st.delivered);
	EXPECT_EQ(0, st.due);
	/* the same key, armed again */
	EXPECT_EQ(0, tw_add1(self->fd, 1, ~1ULL, SEC, 0));
	EXPECT_EQ(1, tw_advance(self->fd, 0, 2 * SEC));
	ASSERT_EQ(2, take(self, MOST));
	EXPECT_EQ(1, self->ev[0].key);
	EXPECT_EQ(1, self->ev[1].key);
}

/* read() is for wheels without a ring */
TEST_F(ring, no_read)
{
	EXPECT_EQ(-EINVAL, dev_read(self->fd, self->ev, 1));
	ASSERT_EQ(1, arm(self->fd, 1, 1, SEC));
	EXPECT_EQ(1, tw_advance(self->fd, 0, 2 * SEC));
	EXPECT_EQ(-EINVAL, dev_read(self->fd, self->ev, 1));
	EXPECT_EQ(1, take(self, MOST));
}

/* A deadline that has passed is in the ring when ADD returns */
TEST_F(ring, due_at_once)
{
	EXPECT_EQ(0, tw_advance(self->fd, 0, HOUR));
	ASSERT_EQ(LENGTH, arm(self->fd, 0, LENGTH, SEC));
	ASSERT_EQ(LENGTH, take(self, MOST));
	EXPECT_TRUE(in_order(self->ev, 0, LENGTH));
	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, HOUR, 0));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, 1, SEC, TIMERWHEEL_ABS));
	EXPECT_EQ(1, take(self, MOST));
}

/* Several times around the ring, in pieces of all sizes */
TEST_F(ring, wraps)
{
	__u64 key = 0, now = 0;
	int i, n;

	for (i = 0; i < 1000; i++) {
		n = 1 + i % LENGTH;
		ASSERT_EQ(n, arm(self->fd, key, n, now + SEC));
		now += (n + 1) * SEC;
		ASSERT_EQ(n, tw_advance(self->fd, TIMERWHEEL_ABS, now));
		ASSERT_FALSE(overflow(self->ring));
		ASSERT_EQ(n, take(self, MOST));
		ASSERT_TRUE(in_order(self->ev, key, n));
		key += n;
	}
}

/* Events read in place: contiguous ones, which stay until the reader returns them */
TEST_F(ring, in_place)
{
	const struct timerwheel_event *ev;
	unsigned int n = 77;

	timerwheel_ring_look(TW_RING(self->ring), &n);
	EXPECT_EQ(0, n);
	ASSERT_EQ(LENGTH - 2, arm(self->fd, 0, LENGTH - 2, SEC));
	ASSERT_EQ(LENGTH - 2, tw_advance(self->fd, TIMERWHEEL_ABS, HOUR));
	ASSERT_EQ(LENGTH - 2, take(self, MOST));

	ASSERT_EQ(5, arm(self->fd, 100, 5, HOUR + SEC));
	ASSERT_EQ(5, tw_advance(self->fd, TIMERWHEEL_ABS, 2 * HOUR));
	ev = timerwheel_ring_look(TW_RING(self->ring), &n);
	EXPECT_EQ(2, n);
	EXPECT_TRUE(in_order(ev, 100, 2));
	timerwheel_ring_drop(TW_RING(self->ring), 1);
	ev = timerwheel_ring_look(TW_RING(self->ring), &n);
	EXPECT_EQ(1, n);
	EXPECT_TRUE(in_order(ev, 101, 1));
	timerwheel_ring_drop(TW_RING(self->ring), 1);
	ev = timerwheel_ring_look(TW_RING(self->ring), &n);
	EXPECT_EQ(3, n);
	EXPECT_TRUE(in_order(ev, 102, 3));

	/* Three are still in use, so there is room only for the others. */
	ASSERT_EQ(LENGTH, arm(self->fd, 105, LENGTH, 2 * HOUR + SEC));
	ASSERT_EQ(LENGTH, tw_advance(self->fd, TIMERWHEEL_ABS, 3 * HOUR));
	EXPECT_TRUE(overflow(self->ring));
	EXPECT_TRUE(in_order(ev, 102, 3));
	timerwheel_ring_drop(TW_RING(self->ring), 3);
	EXPECT_EQ(3, flow(self->fd));
	EXPECT_EQ(LENGTH, take(self, MOST));
	EXPECT_TRUE(in_order(self->ev, 105, LENGTH));
}

/* When the ring is full the rest waits in the kernel, and enters in order when there is room */
TEST_F(ring, overflows)
{
	enum { MANY = 10 * LENGTH + 3 };
	struct timerwheel_stats st;
	int got = 0, n;

	ASSERT_EQ(MANY, arm(self->fd, 0, MANY, SEC));
	EXPECT_EQ(MANY, tw_advance(self->fd, 0, HOUR));
	EXPECT_TRUE(overflow(self->ring));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(LENGTH, st.delivered);
	EXPECT_EQ(MANY - LENGTH, st.due);
	EXPECT_EQ(0, flow(self->fd));
	while (got < MANY) {
		n = take(self, 1 + got % 7);
		if (n) {
			ASSERT_TRUE(in_order(self->ev, got, n));
			got += n;
			if (got % 3)
				continue;
		}
		/* the flag stays until the kernel checks again */
		EXPECT_LE(got + LENGTH < MANY, overflow(self->ring));
		n = flow(self->fd);
		ASSERT_LE(0, n);
		EXPECT_EQ(got + LENGTH < MANY, overflow(self->ring));
	}
	EXPECT_FALSE(overflow(self->ring));
	EXPECT_EQ(0, flow(self->fd));
	EXPECT_EQ(0, take(self, MOST));
}

/* Later timers wait behind the overflow, and let it into the ring when they fall due */
TEST_F(ring, order_is_kept)
{
	ASSERT_EQ(LENGTH + 5, arm(self->fd, 0, LENGTH + 5, SEC));
	EXPECT_EQ(LENGTH + 5, tw_advance(self->fd, TIMERWHEEL_ABS, 100 * SEC));
	ASSERT_EQ(8, take(self, 8));
	EXPECT_TRUE(in_order(self->ev, 0, 8));
	EXPECT_TRUE(overflow(self->ring));
	ASSERT_EQ(1, arm(self->fd, LENGTH + 5, 1, 200 * SEC));
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 300 * SEC));
	EXPECT_FALSE(overflow(self->ring));
	ASSERT_EQ(LENGTH - 8 + 6, take(self, MOST));
	EXPECT_TRUE(in_order(self->ev, 8, LENGTH - 8 + 6));
}

/* Due timers that do not fit into the ring can be withdrawn */
TEST_F(ring, withdrawn)
{
	struct timerwheel_entry ent[8];
	int i;

	ASSERT_EQ(LENGTH + 8, arm(self->fd, 0, LENGTH + 8, SEC));
	EXPECT_EQ(LENGTH + 8, tw_advance(self->fd, 0, HOUR));
	EXPECT_EQ(-ENOENT, tw_remove1(self->fd, LENGTH - 1));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_remove1(self->fd, LENGTH));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_move1(self->fd, LENGTH + 1, HOUR, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, tw_add1(self->fd, LENGTH + 2, 0, HOUR, 0));
	ASSERT_EQ(LENGTH, take(self, MOST));
	EXPECT_TRUE(in_order(self->ev, 0, LENGTH));
	EXPECT_EQ(5, flow(self->fd));
	ASSERT_EQ(5, take(self, MOST));
	EXPECT_TRUE(in_order(self->ev, LENGTH + 3, 5));
	ASSERT_EQ(2, tw_drain(self->fd, 0, ent, 8));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, ent[i].result);
}

/* Periodic timers keep firing by themselves while there is room; then they wait */
TEST_F(ring, periodic)
{
	struct timerwheel_stats st;
	int i;

	ASSERT_EQ(0, tw_add1_periodic(self->fd, 1, 2, SEC, SEC, TIMERWHEEL_ABS));
	for (i = 1; i <= LENGTH; i++)
		EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, i * SEC));
	EXPECT_FALSE(overflow(self->ring));
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, i * SEC));
	EXPECT_TRUE(overflow(self->ring));
	EXPECT_EQ(0, tw_advance(self->fd, TIMERWHEEL_ABS, 100 * SEC));
	ASSERT_EQ(LENGTH, take(self, MOST));
	for (i = 0; i < LENGTH; i++) {
		EXPECT_EQ(1, self->ev[i].key);
		EXPECT_EQ((i + 1) * SEC, self->ev[i].deadline);
		EXPECT_EQ(0, self->ev[i].overruns);
		EXPECT_EQ(TIMERWHEEL_EVENT_PERIODIC, self->ev[i].flags);
	}
	EXPECT_EQ(1, flow(self->fd));
	ASSERT_EQ(1, take(self, MOST));
	EXPECT_EQ((LENGTH + 1) * SEC, self->ev[0].deadline);
	EXPECT_EQ(100 - LENGTH - 1, self->ev[0].overruns);
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(1, st.pending);
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 101 * SEC));
	EXPECT_EQ(1, take(self, MOST));
}

/* Values that the reader writes to the ring do no harm: the kernel does not trust them */
TEST_F(ring, nonsense)
{
	struct timerwheel_stats st;
	__u64 state = tw_seed(), key = 0;
	__u32 *word = (void *)self->ring;
	int i;

	for (i = 0; i < 20000; i++) {
		__atomic_store_n(&word[tw_rand(&state) % (ring_size(LENGTH) / 4)],
				 tw_rand(&state), __ATOMIC_RELAXED);
		switch (tw_rand(&state) % 8) {
		case 0:
			ASSERT_LE(0, flow(self->fd));
			break;
		case 1:
			ASSERT_LE(0, tw_advance(self->fd, 0, SEC));
			break;
		case 2:
			ASSERT_LE(0, dev_poll(self->fd, 0));
			break;
		default:
			ASSERT_LE(0, tw_add1(self->fd, key++ % 100, 0, SEC, 0));
		}
	}
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_TRUE(tw_balanced(&st));
	EXPECT_GE(100, st.pending + st.due);
	/* with a valid head it continues */
	word[offsetof(struct timerwheel_ring, head) / 4] = 0;
	flow(self->fd);
}

/* The kernel does not read back values that it has written. */
TEST_F(ring, tail_is_the_kernels)
{
	self->ring->tail = 1000;
	self->ring->mask = 0;
	self->ring->event_size = 1;
	self->ring->flags = TIMERWHEEL_RING_OVERFLOW;
	ASSERT_EQ(2, arm(self->fd, 0, 2, SEC));
	ASSERT_EQ(2, tw_advance(self->fd, TIMERWHEEL_ABS, HOUR));
	EXPECT_EQ(2, self->ring->tail);
	EXPECT_EQ(0, self->ring->flags);
	EXPECT_TRUE(in_order((void *)self->ring + TIMERWHEEL_RING_EVENTS, 0, 2));
}

/* A head ahead of the tail, or too far behind it: no room */
TEST_F(ring, head_out_of_bounds)
{
	struct timerwheel_stats st;

	self->ring->head = 1;
	ASSERT_EQ(1, arm(self->fd, 0, 1, SEC));
	EXPECT_EQ(1, tw_advance(self->fd, 0, 2 * SEC));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(1, st.due);
	EXPECT_TRUE(overflow(self->ring));
	EXPECT_EQ(0, flow(self->fd));
	self->ring->head = -LENGTH - 1U;
	EXPECT_EQ(0, flow(self->fd));
	self->ring->head = -LENGTH + 0U;
	EXPECT_EQ(0, flow(self->fd));
	self->ring->head = -LENGTH + 1U;
	EXPECT_EQ(1, flow(self->fd));
	EXPECT_EQ(1, self->ring->tail);
}

/* --- Time that passes at once, or in small steps -------------------------------------- */

/* Sort by firing time, and by key where the order is not specified */
static int by_fired(const void *one, const void *other)
{
	const struct timerwheel_event *a = one, *b = other;

	if (a->fired != b->fired)
		return a->fired < b->fired ? -1 : 1;
	return a->key < b->key ? -1 : a->key > b->key;
}

/*
 * Advance a wheel with a ring of @length to 100 ms in steps of @step, with timers of several
 * periods and other timers in between. Returns the number of events, stored in @ev, or an error.
 */
static int events_by(__u64 step, __u32 length, bool monitored, struct timerwheel_event *ev)
{
	struct timerwheel_monitor monitor = { .size = sizeof(monitor) };
	int fd = open_ring(TIMERWHEEL_CLOCK_MANUAL, length), mon = -1, n;
	struct timerwheel_ring *ring = map_ring(fd, length);
	static const unsigned int period[] = { 1, 7, 10, 13, 50, 1000 };
	__u64 at;
	size_t i;

	if (fd < 0 || ring == MAP_FAILED)
		return -EIO;
	if (monitored)
		mon = dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &monitor);
	if (monitored && mon < 0)
		return mon;
	for (i = 0; i < sizeof(period) / sizeof(*period); i++) {
		if (tw_add1_periodic(fd, i, i, 3 * MSEC + i, period[i] * MSEC, 0) ||
		    tw_add1(fd, 100 + i, 0, period[i] * MSEC, 0))
			return -EIO;
	}
	for (at = step; at <= 100 * MSEC; at += step) {
		if (tw_advance(fd, TIMERWHEEL_ABS, at) < 0)
			return -EIO;
	}
	n = timerwheel_ring_take(TW_RING(ring), ev, MOST);
	for (i = 1; i < (size_t)n; i++) {
		if (ev[i].fired < ev[i - 1].fired)
			return -EPROTO;
	}
	qsort(ev, n, sizeof(*ev), by_fired);
	close(mon);
	close(fd);
	return n;
}

/* Periodic timers fire again in the same ADVANCE, in order with others: one equals ten */
TEST(advance_at_once_or_in_steps)
{
	enum { ALL = 98 + 14 + 10 + 8 + 2 + 1 + 5 };	/* of each period, and one-shot timers */
	static struct timerwheel_event steps[MOST], once[MOST];
	static const __u64 step[] = { 10 * MSEC, 100 * MSEC };
	int i, k, n;

	/* with monitors events take another path */
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(ALL, events_by(MSEC, 1024, i & 1, steps));
		ASSERT_EQ(ALL, events_by(step[i / 2], 1024, i & 1, once));
		EXPECT_EQ(0, memcmp(once, steps, ALL * sizeof(*once)));
		for (k = 0; k < ALL; k++)
			EXPECT_EQ(0, once[k].overruns);
		/* a ring that is too short has the first of them */
		n = events_by(step[i / 2], 64, i & 1, once);
		ASSERT_EQ(64, n);
		for (k = 0; k < n; k++)
			EXPECT_EQ(steps[k].fired, once[k].fired);
	}
}

/* --- Mapping and setting up ----------------------------------------------------------- */

static int map_errno(int fd, size_t size, int prot, int flags, off_t offset)
{
	void *p = mmap(NULL, size, prot, flags, fd, offset);

	if (p == MAP_FAILED)
		return errno;
	munmap(p, size);
	return 0;
}

TEST_F(ring, mmap_errors)
{
	const off_t at = TIMERWHEEL_MMAP_RING;
	size_t page = getpagesize(), size = ring_size(LENGTH);
	int fd;

	EXPECT_EQ(0, map_errno(self->fd, size, PROT_READ, MAP_SHARED, at));
	EXPECT_EQ(EINVAL, map_errno(self->fd, size, PROT_READ, MAP_PRIVATE, at));
	EXPECT_EQ(EINVAL, map_errno(self->fd, size, PROT_READ | PROT_EXEC, MAP_SHARED, at));
	EXPECT_EQ(EINVAL, map_errno(self->fd, size + page, PROT_READ, MAP_SHARED, at));
	EXPECT_EQ(EINVAL, map_errno(self->fd, page, PROT_READ, MAP_SHARED, at + size));
	EXPECT_EQ(EINVAL, map_errno(self->fd, page, PROT_READ, MAP_SHARED, at + size + page));
	EXPECT_EQ(EINVAL, map_errno(self->fd, page, PROT_READ, MAP_SHARED, at - page));
	fd = dev_open(0);
	EXPECT_EQ(EINVAL, map_errno(fd, page, PROT_READ, MAP_SHARED, at));
	EXPECT_EQ(-EINVAL, flow(fd));
	close(fd);
}

/* A mapping cannot grow, since mremap() would not check the size, and is not in core dumps */
TEST_F(ring, flags_of_the_mapping)
{
	size_t size = ring_size(LENGTH);

	EXPECT_EQ(MAP_FAILED, mremap(self->ring, size, 2 * size, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_TRUE(tw_vm_flag(self->ring, "dd"));
}

TEST(setup)
{
	static const struct { __u32 want, granted; } t[] = {
		{ 1, 1 }, { 2, 2 }, { 3, 4 }, { 1000, 1024 },
		{ TIMERWHEEL_RING_MAX, TIMERWHEEL_RING_MAX },
	};
	struct timerwheel_setup setup;
	struct timerwheel_stats st;
	struct timerwheel_info info;
	struct timerwheel_ring *ring;
	unsigned int i;
	__u64 before;
	size_t size;
	int fd;

	for (i = 0; i < 5; i++) {
		setup = (struct timerwheel_setup) { .ring = t[i].want };
		fd = dev_open(O_NONBLOCK);
		before = tw_memory_alone(fd);
		ASSERT_EQ(0, dev_setup(fd, &setup));
		EXPECT_EQ(t[i].granted, setup.ring);
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(t[i].granted, info.ring);
		EXPECT_EQ(TIMERWHEEL_RING_MAX, info.ring_max);
		/* its pages and what the kernel needs to map them, no more */
		size = ring_size(t[i].granted);
		EXPECT_LT(before + size, info.user_memory);
		EXPECT_GT(before + size + size / 128 + 200, info.user_memory);
		ring = map_ring(fd, t[i].granted);
		ASSERT_NE(MAP_FAILED, ring);
		EXPECT_EQ(t[i].granted - 1, ring->mask);
		ASSERT_EQ(0, tw_stats(fd, &st));
		EXPECT_EQ(info.user_memory, st.memory);
		munmap(ring, size);
		close(fd);
	}
	fd = dev_open(O_NONBLOCK);
	setup = (struct timerwheel_setup) { .ring = TIMERWHEEL_RING_MAX + 1 };
	EXPECT_EQ(-EINVAL, dev_setup(fd, &setup));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(before, tw_memory_alone(fd));
	EXPECT_EQ(0, info.flags);
	close(fd);
}

/* A request for larger events than the kernel's is granted the kernel's size, which is reported */
TEST(event_size)
{
	static const struct { __u32 want; int ret; } t[] = {
		{ 0, 0 }, { 48, 0 }, { 56, 0 }, { 64, 0 }, { 4096, 0 },
		{ 1, -EINVAL }, { 8, -EINVAL }, { 40, -EINVAL }, { 47, -EINVAL }, { 49, -EINVAL },
		{ 52, -EINVAL }, { 4104, -EINVAL }, { 1 << 20, -EINVAL }, { ~0U, -EINVAL },
	};
	struct timerwheel_monitor monitor = { .size = sizeof(monitor) };
	struct timerwheel_event ev[3];
	struct timerwheel_setup setup;
	struct timerwheel_ring *ring;
	struct timerwheel_info info;
	int fd, mon, ring_length;
	unsigned int i;

	for (i = 0; i < 2 * sizeof(t) / sizeof(*t); i++) {
		ring_length = i % 2 ? 4 : 0;
		setup = (struct timerwheel_setup) {
			.clock = TIMERWHEEL_CLOCK_MANUAL, .ring = ring_length,
			.event_size = t[i / 2].want,
		};
		fd = dev_open(O_NONBLOCK);
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(48, info.event_size);
		EXPECT_EQ(48, info.event_size_max);
		EXPECT_EQ(t[i / 2].ret, dev_setup(fd, &setup)) TH_LOG("%u", t[i / 2].want);
		EXPECT_EQ(t[i / 2].ret ? t[i / 2].want : 48, setup.event_size);
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(48, info.event_size);
		if (t[i / 2].ret) {
			EXPECT_EQ(0, info.flags);
			close(fd);
			continue;
		}
		mon = dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &monitor);
		ASSERT_LE(0, mon);
		ASSERT_EQ(2, arm(fd, 0, 2, SEC));
		ASSERT_EQ(2, tw_advance(fd, 0, HOUR));
		if (ring_length) {
			ring = map_ring(fd, ring_length);
			ASSERT_NE(MAP_FAILED, ring);
			EXPECT_EQ(48, ring->event_size);
			EXPECT_EQ(2, timerwheel_ring_take(TW_RING(ring), ev, 3));
		} else {
			EXPECT_EQ(2, dev_read(fd, ev, 3));
		}
		EXPECT_TRUE(in_order(ev, 0, 2));
		EXPECT_EQ(2, dev_read(mon, ev, 3));
		EXPECT_TRUE(in_order(ev, 0, 2));
		close(mon);
		close(fd);
	}
}

/* A ring with larger events than this program knows: it uses the ring's size of an event */
TEST(larger_events)
{
	enum { SIZE = sizeof(struct timerwheel_event) + 16, EVENTS = 8 };
	static char memory[TIMERWHEEL_RING_EVENTS + EVENTS * SIZE] __attribute__((aligned(8)));
	struct timerwheel_ring *ring = (struct timerwheel_ring *)memory;
	struct timerwheel_event ev[EVENTS], *slot;
	const struct timerwheel_event *seen;
	unsigned int n, i;

	memset(memory, 0xff, sizeof(memory));
	*ring = (struct timerwheel_ring) {
		.mask = EVENTS - 1, .event_size = SIZE, .head = 5, .tail = 11,
	};
	for (i = 5; i < 11; i++) {
		slot = (struct timerwheel_event *)(memory + TIMERWHEEL_RING_EVENTS +
						   i % EVENTS * SIZE);
		*slot = (struct timerwheel_event) { .key = i, .value = ~(__u64)i };
	}
	seen = timerwheel_ring_look(TW_RING(ring), &n);
	ASSERT_EQ(3, n);
	EXPECT_EQ(5, seen->key);
	EXPECT_EQ(6, timerwheel_ring_next(TW_RING(ring), seen)->key);
	ASSERT_EQ(6, timerwheel_ring_take(TW_RING(ring), ev, EVENTS));
	EXPECT_TRUE(in_order(ev, 5, 6));
	EXPECT_EQ(11, ring->head);
}

/* A read that sleeps when the ring is set up also returns EINVAL */
TEST(setup_while_reading)
{
	struct timerwheel_setup setup = { .ring = 8 };
	int fd = dev_open(0);
	struct sleeper s;

	ASSERT_EQ(0, sleeper_start(&s, fd, 1));
	ASSERT_EQ(0, dev_setup(fd, &setup));
	ASSERT_TRUE(sleeper_done(&s, LONG_MS));
	EXPECT_EQ(-EINVAL, s.ret);
	close(fd);
}

/* A ring of one event */
TEST(shortest)
{
	int fd = open_ring(TIMERWHEEL_CLOCK_MANUAL, 1), i;
	struct timerwheel_ring *ring = map_ring(fd, 1);
	struct timerwheel_event ev[4];

	ASSERT_NE(MAP_FAILED, ring);
	ASSERT_EQ(100, arm(fd, 0, 100, SEC));
	ASSERT_EQ(100, tw_advance(fd, 0, HOUR));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(1, timerwheel_ring_take(TW_RING(ring), ev, 4));
		EXPECT_EQ(i, ev[0].key);
		EXPECT_EQ(i < 99, flow(fd));
	}
	close(fd);
}

/*
 * A reader that takes over after another has died continues at the other's position, whatever
 * memory was used meanwhile
 */
TEST_F(ring, reader_dies)
{
	size_t size = 32 << 20;
	pid_t pid;
	void *p;

	ASSERT_EQ(0, tw_pin(0));
	ASSERT_EQ(LENGTH, arm(self->fd, 0, LENGTH, SEC));
	EXPECT_EQ(LENGTH, tw_advance(self->fd, 0, HOUR));
	pid = fork();
	if (!pid) {
		if (take(self, 5) != 5)
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	ASSERT_EQ(1000 + SIGKILL, tw_reap(pid));
	munmap(self->ring, ring_size(LENGTH));
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	madvise(p, size, MADV_NOHUGEPAGE);
	memset(p, 0xff, size);
	self->ring = map_ring(self->fd, LENGTH);
	ASSERT_EQ(LENGTH - 5, take(self, MOST));
	EXPECT_TRUE(in_order(self->ev, 5, LENGTH - 5));
}

/* --- Waking --------------------------------------------------------------------------- */

/* Only a reader that has announced its sleep is woken, and only once */
TEST_F(ring, wakes_who_waits)
{
	struct epoll_event what = { .events = EPOLLIN | EPOLLET }, got;
	struct timerwheel_stats st;
	int ep = epoll_create1(EPOLL_CLOEXEC);

	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->fd, &what));
	ASSERT_EQ(1, arm(self->fd, 0, 1, SEC));
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, SEC));
	EXPECT_EQ(0, epoll_wait(ep, &got, 1, 50));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(0, st.wakeups);
	EXPECT_EQ(TIMERWHEEL_RING_TAKE, timerwheel_ring_sleep(TW_RING(self->ring)));
	EXPECT_EQ(1, take(self, MOST));
	EXPECT_EQ(0, self->ring->waiting);

	EXPECT_EQ(TIMERWHEEL_RING_POLL, timerwheel_ring_sleep(TW_RING(self->ring)));
	EXPECT_EQ(1, self->ring->waiting);
	ASSERT_EQ(2, arm(self->fd, 1, 2, 2 * SEC));
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 2 * SEC));
	EXPECT_EQ(1, epoll_wait(ep, &got, 1, 5000));
	/* Only the reader clears it. */
	EXPECT_EQ(1, self->ring->waiting);
	EXPECT_EQ(1, take(self, MOST));
	EXPECT_EQ(0, self->ring->waiting);
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, 3 * SEC));
	EXPECT_EQ(0, epoll_wait(ep, &got, 1, 50));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(1, st.wakeups);
	EXPECT_EQ(1, take(self, MOST));
	close(ep);
}

/* A waiting reader is woken although ADVANCE continues to a time without timers */
TEST_F(ring, wakes_who_waits_on_the_way)
{
	struct epoll_event what = { .events = EPOLLIN | EPOLLET }, got;
	int ep = epoll_create1(EPOLL_CLOEXEC);

	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->fd, &what));
	ASSERT_EQ(1, arm(self->fd, 0, 1, SEC));
	EXPECT_EQ(TIMERWHEEL_RING_POLL, timerwheel_ring_sleep(TW_RING(self->ring)));
	EXPECT_EQ(1, tw_advance(self->fd, TIMERWHEEL_ABS, HOUR));
	EXPECT_EQ(1, epoll_wait(ep, &got, 1, 5000));
	close(ep);
}

/* Wake-up batching: events in the ring that were not taken count. */
TEST(batching)
{
	struct timerwheel_setup setup = { .ring = LENGTH, .wake_events = 3, .wake_ns = HOUR };
	struct epoll_event what = { .events = EPOLLIN | EPOLLET };
	int fd = dev_open(O_NONBLOCK), ep = epoll_create1(EPOLL_CLOEXEC), i, round;
	struct timerwheel_event ev[LENGTH];
	struct timerwheel_ring *ring;
	struct timerwheel_stats st;

	ASSERT_EQ(0, dev_setup(fd, &setup));
	ring = map_ring(fd, LENGTH);
	ASSERT_NE(MAP_FAILED, ring);
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, fd, &what));
	for (round = 1; round <= 3; round++) {
		ASSERT_EQ(TIMERWHEEL_RING_POLL, timerwheel_ring_sleep(TW_RING(ring)));
		for (i = 1; i <= 3; i++) {
			ASSERT_EQ(0, tw_add1(fd, i, 0, 1, TIMERWHEEL_ABS));
			ASSERT_EQ(0, tw_stats(fd, &st));
			EXPECT_EQ(round - (i < 3), st.wakeups)
				TH_LOG("round %d, event %d", round, i);
		}
		ASSERT_EQ(3, timerwheel_ring_take(TW_RING(ring), ev, LENGTH));
	}
	close(ep);
	close(fd);
}

/* After an overflow, timerwheel_ring_sleep() asks for FLOW */
TEST_F(ring, sleep_sees_overflow)
{
	ASSERT_EQ(LENGTH + 1, arm(self->fd, 0, LENGTH + 1, SEC));
	EXPECT_EQ(LENGTH + 1, tw_advance(self->fd, 0, HOUR));
	EXPECT_EQ(TIMERWHEEL_RING_TAKE, timerwheel_ring_sleep(TW_RING(self->ring)));
	ASSERT_EQ(LENGTH, take(self, MOST));
	EXPECT_EQ(TIMERWHEEL_RING_FLOW, timerwheel_ring_sleep(TW_RING(self->ring)));
	EXPECT_EQ(1, flow(self->fd));
	EXPECT_EQ(1, take(self, MOST));
	EXPECT_EQ(TIMERWHEEL_RING_POLL, timerwheel_ring_sleep(TW_RING(self->ring)));
}

/* --- A reader that is as fast as the kernel, and signals --------------------------------- */

/* Arm @times as many timers as fit into one call, all due */
static bool make_due(int fd, int times)
{
	int i;

	for (i = 0; i < times; i++) {
		if (arm(fd, i * MOST, MOST, SEC) != MOST)
			return false;
	}
	return tw_advance(fd, 0, 2 * MOST * SEC) == times * MOST;
}

/* Take all events without reading them */
static void take_all(struct timerwheel_ring *ring)
{
	__atomic_store_n(&ring->head, __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

struct emptier {
	struct timerwheel_ring *ring;
	bool stop;
};

static void *empties(void *arg)
{
	struct emptier *e = arg;

	while (!__atomic_load_n(&e->stop, __ATOMIC_RELAXED)) {
		take_all(e->ring);
		tw_sleep(20 * USEC);
	}
	return NULL;
}

/* FLOW ends after as many events as the ring has, even if a reader has emptied it meanwhile */
TEST(flow_is_bounded)
{
	enum { TIMES = 30 };
	struct sched_param first = { .sched_priority = 1 };
	struct emptier e = { .stop = false };
	int fd = open_ring(TIMERWHEEL_CLOCK_MANUAL, MOST), left, n;
	pthread_t thread;

	e.ring = map_ring(fd, MOST);
	ASSERT_NE(MAP_FAILED, e.ring);
	ASSERT_TRUE(make_due(fd, TIMES));
	ASSERT_EQ(0, pthread_create(&thread, NULL, empties, &e));
	/* lets it also run on the same CPU; optional */
	pthread_setschedparam(thread, SCHED_FIFO, &first);
	for (left = (TIMES - 1) * MOST; left > 0; left -= n) {
		n = flow(fd);
		ASSERT_LE(0, n);
		EXPECT_GE(MOST, n);
	}
	EXPECT_EQ(0, left);
	__atomic_store_n(&e.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, flow(fd));
	close(fd);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* A signal interrupts FLOW after some events; the next FLOW continues */
TEST(flow_signals)
{
	enum { LONG = TIMERWHEEL_RING_MAX, ROUNDS = 3 };
	int fd = open_ring(TIMERWHEEL_CLOCK_MANUAL, LONG), round, left, i, n, cut = 0;
	struct sigaction sa = { .sa_handler = on_alarm };
	struct timerwheel_ring *ring = map_ring(fd, LONG);

	ASSERT_NE(MAP_FAILED, ring);
	ASSERT_TRUE(make_due(fd, (1 + ROUNDS) * LONG / MOST));
	ASSERT_EQ(0, sigaction(SIGALRM, &sa, NULL));
	ASSERT_EQ(0, tw_storm(700));
	/* On a busy machine no signal may come in time. */
	for (round = 0; round < ROUNDS || (!cut && round < 100); round++) {
		if (round >= ROUNDS) {
			ASSERT_EQ(0, tw_storm(0));
			for (i = 0; i < LONG / MOST; i++)
				ASSERT_EQ(MOST, arm(fd, i * MOST, MOST, 0));
			ASSERT_EQ(0, tw_storm(700));
		}
		take_all(ring);
		for (left = LONG; left > 0; left -= n) {
			n = flow(fd);
			ASSERT_LT(0, n);
			cut += n < left;
		}
		EXPECT_EQ(0, left);
	}
	ASSERT_EQ(0, tw_storm(0));
	EXPECT_LT(0, cut);
	take_all(ring);
	EXPECT_EQ(0, flow(fd));
	close(fd);
}

/* --- Time namespaces -------------------------------------------------------------------- */

/* Clocks of the namespace are this much ahead. */
static const struct {
	__u32 clock;
	clockid_t id;
	__u64 ahead;
} there[] = {
	{ TIMERWHEEL_CLOCK_MONOTONIC, CLOCK_MONOTONIC, 1000 * SEC + 1 },
	{ TIMERWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME, 5000 * SEC + 2 },
};

/* Arm a timer. Its deadline in the ring minus the deadline by our clock; ~0: early, or missing */
static __u64 later(int fd, struct timerwheel_ring *ring, clockid_t id, __s64 delay)
{
	__u64 at = tw_now(id) + delay;
	struct timerwheel_event ev;
	int i;

	if (tw_add1(fd, 1, 0, at, TIMERWHEEL_ABS))
		return ~0ULL;
	for (i = 0; i < LONG_MS; i++) {
		if (timerwheel_ring_take(TW_RING(ring), &ev, 1))
			return ev.fired < ev.deadline ? ~0ULL : ev.deadline - at;
		tw_sleep(MSEC);
	}
	return ~0ULL;
}

/* Times in a ring are in the time namespace of SETUP, whoever arms and reads */
TEST(time_namespace)
{
	static const __s64 delay[] = { 20 * MSEC, -(__s64)MSEC };
	struct timerwheel_setup setup = { .ring = LENGTH };
	struct timerwheel_ring *ring[2];
	int here[2], other[2], i, k, ret;
	pid_t pid;

	for (i = 0; i < 2; i++) {
		here[i] = open_ring(there[i].clock, LENGTH);
		other[i] = dev_open(O_NONBLOCK);
		ASSERT_LE(0, other[i]);
		ring[i] = map_ring(here[i], LENGTH);
		ASSERT_NE(MAP_FAILED, ring[i]);
	}
	ret = unshare(CLONE_NEWTIME);
	if (ret && errno == EINVAL)
		SKIP(return, "no time namespaces");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, tw_file_write("/proc/self/timens_offsets",
				   "monotonic 1000 1\nboottime 5000 2\n"));
	pid = fork();
	if (!pid) {
		for (i = 0; i < 2; i++) {
			setup.clock = there[i].clock;
			if (dev_setup(other[i], &setup))
				_exit(1);
			for (k = 0; k < 2; k++) {
				if (later(other[i], map_ring(other[i], LENGTH), there[i].id,
					  delay[k]))
					_exit(2 + k);
				if (later(here[i], ring[i], there[i].id, delay[k]) !=
				    -there[i].ahead)
					_exit(4 + k);
			}
		}
		_exit(0);
	}
	ASSERT_EQ(0, tw_reap(pid));
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 2; k++) {
			EXPECT_EQ(0, later(here[i], ring[i], there[i].id, delay[k]));
			EXPECT_EQ(there[i].ahead, later(other[i], map_ring(other[i], LENGTH),
							there[i].id, delay[k]));
		}
		close(here[i]);
		close(other[i]);
	}
}

/* --- A reader that never sleeps ---------------------------------------------------------- */

enum { BUSY = 64 };

struct busy {
	struct timerwheel_ring *ring;
	bool stop;
	bool wrong;		/* stopped at @key because its event was wrong */
	__u64 key;
};

/* Is the event complete? Its place was poisoned before. */
static bool is_whole(const struct timerwheel_event *ev, __u64 key)
{
	return ev->key == key && ev->value == ~key && ev->deadline <= ev->fired &&
	       !tw_poisoned(&ev->fired, sizeof(ev->fired)) && !ev->overruns && !ev->flags &&
	       !tw_poisoned(&ev->index, sizeof(ev->index));
}

/* Take events as soon as they come, and poison their places. */
static void *takes_busily(void *arg)
{
	struct busy *b = arg;
	struct timerwheel_event *in = (void *)b->ring + TIMERWHEEL_RING_EVENTS, ev;
	__u32 head = 0, tail;
	__u64 key = 0;

	while (!b->wrong && !__atomic_load_n(&b->stop, __ATOMIC_RELAXED)) {
		tail = __atomic_load_n(&b->ring->tail, __ATOMIC_ACQUIRE);
		for (; head != tail && !b->wrong; head++, key++) {
			memcpy(&ev, &in[head % BUSY], sizeof(ev));
			tw_poison(&in[head % BUSY], sizeof(ev));
			if (!is_whole(&ev, key))
				__atomic_store_n(&b->wrong, true, __ATOMIC_RELAXED);
		}
		__atomic_store_n(&b->ring->head, head, __ATOMIC_RELEASE);
		__atomic_store_n(&b->key, key, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* An event is complete when the tail includes it. */
TEST(tail_comes_last)
{
	int fd = open_ring(TIMERWHEEL_CLOCK_MANUAL, BUSY), i;
	struct busy busy = { .ring = map_ring(fd, BUSY) };
	static struct timerwheel_add add[BUSY];
	__u64 key = 0, end;
	pthread_t thread;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_NE(MAP_FAILED, busy.ring);
	tw_poison((void *)busy.ring + TIMERWHEEL_RING_EVENTS,
		  BUSY * sizeof(struct timerwheel_event));
	ASSERT_EQ(0, pthread_create(&thread, NULL, takes_busily, &busy));
	end = tw_now(CLOCK_MONOTONIC) + 3 * SEC;
	while (!__atomic_load_n(&busy.wrong, __ATOMIC_RELAXED) &&
	       tw_now(CLOCK_MONOTONIC) < end) {
		/* In their own ticks, so that they come in this order. */
		for (i = 0; i < BUSY; i++, key++)
			add[i] = (struct timerwheel_add) {
				.key = key, .value = ~key, .deadline = (1 + i) * 2 * MSEC,
			};
		ASSERT_EQ(BUSY, dev_add(fd, add, BUSY));
		ASSERT_EQ(BUSY, tw_advance(fd, 0, SEC));
		while (__atomic_load_n(&busy.key, __ATOMIC_RELAXED) != key &&
		       !__atomic_load_n(&busy.wrong, __ATOMIC_RELAXED))
			sched_yield();
	}
	__atomic_store_n(&busy.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	TH_LOG("%llu events", key);
	EXPECT_FALSE(busy.wrong);
	close(fd);
}

/* --- A running clock, a reader that sleeps ---------------------------------------------- */

FIXTURE(running) {
	int fd;
	struct timerwheel_ring *ring;
};

FIXTURE_VARIANT(running) {
	__u32 length;
};

FIXTURE_VARIANT_ADD(running, short_ring) {
	.length = 8,
};

FIXTURE_VARIANT_ADD(running, long_ring) {
	.length = 4096,
};

FIXTURE_SETUP(running)
{
	self->fd = open_ring(TIMERWHEEL_CLOCK_MONOTONIC, variant->length);
	ASSERT_LE(0, self->fd);
	self->ring = map_ring(self->fd, variant->length);
	ASSERT_NE(MAP_FAILED, self->ring);
}

FIXTURE_TEARDOWN(running)
{
	close(self->fd);
}

static void *arms_thousands(void *arg)
{
	int fd = *(int *)arg, i, j;
	struct timerwheel_add add[100];
	__u64 state = tw_seed();

	for (i = 0; i < 200; i++) {
		for (j = 0; j < 100; j++)
			add[j] = (struct timerwheel_add) {
				.key = i * 100 + j, .deadline = tw_rand(&state) % (20 * MSEC),
			};
		if (dev_add(fd, add, 100) != 100)
			return (void *)1;
		if (i % 8 == 0)
			tw_sleep(MSEC);
	}
	return NULL;
}

/* 20,000 timers from other threads, each once; a reader that misses no wake-up */
TEST_F(running, each_once)
{
	enum { ALL = 20000 };
	static struct timerwheel_event ev[512];
	static int seen[ALL];
	pthread_t thread;
	void *failed;
	int got = 0, n, i, slept = 0;

	ASSERT_EQ(0, pthread_create(&thread, NULL, arms_thousands, &self->fd));
	while (got < ALL) {
		n = timerwheel_ring_take(TW_RING(self->ring), ev, 512);
		for (i = 0; i < n; i++) {
			ASSERT_GT(ALL, ev[i].key);
			ASSERT_EQ(0, seen[ev[i].key]++) TH_LOG("key %llu twice", ev[i].key);
			ASSERT_LE(ev[i].deadline, ev[i].fired);
		}
		got += n;
		if (n || got == ALL)
			continue;
		switch (timerwheel_ring_sleep(TW_RING(self->ring))) {
		case TIMERWHEEL_RING_TAKE:
			break;
		case TIMERWHEEL_RING_FLOW:
			ASSERT_LE(0, flow(self->fd));
			break;
		case TIMERWHEEL_RING_POLL:
			slept++;
			ASSERT_EQ(POLLIN, dev_poll(self->fd, LONG_MS)) TH_LOG("got %d", got);
		}
	}
	ASSERT_EQ(0, pthread_join(thread, &failed));
	EXPECT_EQ(NULL, failed);
	TH_LOG("slept %d times", slept);
	EXPECT_EQ(0, timerwheel_ring_take(TW_RING(self->ring), ev, 512));
}

/* Readers that do not read: a full ring costs no more, and no event is lost */
TEST_F(running, never_taken)
{
	enum { MANY = 3000 };
	static struct timerwheel_add add[MANY];
	struct timerwheel_stats st, later;
	static struct timerwheel_event ev[MANY];
	int got = 0, n;

	ASSERT_EQ(0, tw_add1_periodic(self->fd, MOST, 0, MSEC, 1, 0));
	for (n = 0; n < MANY; n++)
		add[n] = (struct timerwheel_add) { .key = n };
	ASSERT_EQ(MANY, dev_add(self->fd, add, MANY));
	tw_sleep(100 * MSEC);
	if (variant->length < MANY) {
		for (n = 0; n < LONG_MS; n++) {
			ASSERT_EQ(0, tw_stats(self->fd, &st));
			if (overflow(self->ring) && !st.pending)
				break;
			tw_sleep(MSEC);
		}
		EXPECT_TRUE(overflow(self->ring));
		EXPECT_EQ(0, st.pending);
		tw_sleep(100 * MSEC);
		ASSERT_EQ(0, tw_stats(self->fd, &later));
		EXPECT_EQ(st.firings, later.firings);
		EXPECT_EQ(variant->length, later.delivered);
	}
	EXPECT_LT(0, tw_remove1(self->fd, MOST));
	while (got < MANY) {
		n = timerwheel_ring_take(TW_RING(self->ring), ev, MANY);
		got += n;
		while (n--)
			got -= ev[n].key == MOST;
		if (got < MANY)
			ASSERT_LE(0, flow(self->fd));
	}
	EXPECT_EQ(MANY, got);
}

TEST_HARNESS_MAIN
