// SPDX-License-Identifier: GPL-2.0
/*
 * Readers of an event ring to which a hostile process that also has the wheel writes. It can make
 * them see wrong events, but they read no memory outside of the ring, and they end. Except in the
 * last test, the ring is memory of the test, because the tested code is in this process.
 */
#include "library.h"

enum { EVENTS = 16, WORDS = TIMERWHEEL_RING_EVENTS / 4, MAX = 3 * EVENTS };

#define EVENT_SIZE	sizeof(struct timerwheel_event)

struct memory {
	struct timerwheel_ring head;
	struct timerwheel_event event[EVENTS];
};

FIXTURE(ring)
{
	struct memory *memory;
	struct timerwheel_mapped_ring ring;
	struct timerwheel_event ev[MAX + 1];
	uint64_t random;
};

static struct timerwheel_ring honest_head(void)
{
	return (struct timerwheel_ring){ .mask = EVENTS - 1, .event_size = EVENT_SIZE };
}

FIXTURE_SETUP(ring)
{
	/* Memory behind it can be neither read nor written. */
	const size_t page = sysconf(_SC_PAGESIZE), behind = 1 << 24;
	char *p = mmap(NULL, page + behind, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);

	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, mprotect(p, page, PROT_READ | PROT_WRITE));
	self->memory = (struct memory *)(p + page - sizeof(struct memory));
	self->memory->head = honest_head();
	self->ring = (struct timerwheel_mapped_ring) {
		.ring = &self->memory->head, .events = EVENTS, .event_size = EVENT_SIZE,
	};
	self->random = seed();
	printf("# TW_SEED=%llu\n", (unsigned long long)self->random);
}

FIXTURE_TEARDOWN(ring)
{
}

/* Visit all visible events and give some back. Returns true if all are inside of the ring. */
static bool look_inside(FIXTURE_DATA(ring) * self)
{
	const struct timerwheel_event *ev, *first;
	unsigned int n, i;
	uint64_t sum = 0;

	first = timerwheel_ring_look(&self->ring, &n);
	if (first < self->memory->event || first >= self->memory->event + EVENTS ||
	    n > self->memory->event + EVENTS - first)
		return false;
	for (i = 0, ev = first; i < n; i++) {
		sum += ev->key;
		if (i + 1 < n)
			ev = timerwheel_ring_next(&self->ring, ev);
	}
	if (n && ev != first + n - 1)
		return false;
	if (n)
		timerwheel_ring_drop(&self->ring, 1 + sum % n);
	return true;
}

/* Take at most @max events. Returns true if these are all written events. */
static bool take_inside(FIXTURE_DATA(ring) * self, unsigned int max)
{
	unsigned int n;

	poison(self->ev, sizeof(self->ev));
	n = timerwheel_ring_take(&self->ring, self->ev, max);
	return n <= max && poisoned(self->ev + n, (MAX + 1 - n) * EVENT_SIZE);
}

/* With an honest writer: all events, in order, even where the counts wrap around to 0. */
TEST_F(ring, honest)
{
	uint32_t tail = -5U * EVENTS, head = tail;
	unsigned int n, i, round;

	self->memory->head.tail = tail;
	self->memory->head.head = head;
	for (round = 0; round < 1000; round++) {
		for (n = rand64(&self->random) % (EVENTS + 1 - (tail - head)); n; n--)
			self->memory->event[tail++ % EVENTS].key = round * 100 + n;
		__atomic_store_n(&self->memory->head.tail, tail, __ATOMIC_RELEASE);
		memcpy(self->ev + EVENTS, self->memory->event, sizeof(self->memory->event));
		n = timerwheel_ring_take(&self->ring, self->ev, 1 + round % EVENTS);
		ASSERT_EQ(tail - head < 1 + round % EVENTS ? tail - head : 1 + round % EVENTS, n);
		for (i = 0; i < n; i++)
			ASSERT_EQ(self->ev[EVENTS + head++ % EVENTS].key, self->ev[i].key);
		ASSERT_EQ(head, self->memory->head.head);
		ASSERT_EQ(tail == head ? TIMERWHEEL_RING_POLL : TIMERWHEEL_RING_TAKE,
			  timerwheel_ring_sleep(&self->ring));
		ASSERT_EQ(1, self->memory->head.waiting);
	}
}

TEST_F(ring, hostile_words)
{
	static const uint32_t values[] = {
		0, 1, EVENTS - 1, EVENTS, EVENTS + 1, 3 * EVENTS + 1, 0xffff, 1U << 20, 1U << 31,
		-1U - EVENTS, -1U,
	};
	const int count = sizeof(values) / sizeof(*values);
	struct timerwheel_ring *head = &self->memory->head;
	int i;

	for (i = 0; i < count * count * count * count; i++) {
		*head = (struct timerwheel_ring) {
			.mask = values[i % count],
			.head = values[i / count % count],
			.tail = values[i / count / count % count],
			.event_size = values[i / count / count / count],
			.flags = i,
		};
		ASSERT_EQ(true, look_inside(self)) TH_LOG("try %d", i);
		ASSERT_EQ(true, take_inside(self, i % MAX)) TH_LOG("try %d", i);
	}
}

/* The ring and its event size stay as INFO reported them. */
TEST_F(ring, what_info_told_counts)
{
	struct timerwheel_ring *head = &self->memory->head;
	unsigned int i;

	for (i = 0; i < EVENTS; i++)
		self->memory->event[i].key = 100 + i;
	head->mask = 0;
	head->event_size = 0;
	head->head = 3;
	head->tail = 3 + EVENTS;
	ASSERT_EQ(EVENTS, timerwheel_ring_take(&self->ring, self->ev, MAX));
	for (i = 0; i < EVENTS; i++)
		EXPECT_EQ(100 + (3 + i) % EVENTS, self->ev[i].key);
	EXPECT_EQ(3 + EVENTS, head->head);
}

/* A writer that keeps overwriting the head. */
struct scribbler {
	uint32_t *word;
	pthread_t thread;
	bool stop;
};

static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	uint64_t random = 1;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		uint64_t r = rand64(&random);
		/* Most values are near the correct ones. */
		uint32_t value = r & 1 << 20 ? r >> 40 : r >> 58;

		__atomic_store_n(&s->word[r % WORDS], value, __ATOMIC_RELAXED);
	}
	return NULL;
}

TEST_F(ring, hostile_thread)
{
	struct scribbler s = { .word = (uint32_t *)&self->memory->head };
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + 500 * MSEC;
	int i;

	ASSERT_EQ(0, pthread_create(&s.thread, NULL, scribble, &s));
	for (i = 0; clock_ns(CLOCK_MONOTONIC) < end; i++) {
		ASSERT_EQ(true, look_inside(self));
		ASSERT_EQ(true, take_inside(self, i % MAX));
		timerwheel_ring_sleep(&self->ring);
	}
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	pthread_join(s.thread, NULL);
}

/* ---- the library's own reader, of a fake device ---------------------------------------------- */

static struct memory *mapped;	/* the mapping of the process that shares the wheel */
static void (*on_flow)(void);	/* its action when the library asks for more */
static int flows;

/* The reply of INFO */
static const struct timerwheel_info honest_info = {
	.size = sizeof(honest_info), .flags = TIMERWHEEL_INFO_SETTLED | TIMERWHEEL_INFO_TABLE,
	.abi_version = TIMERWHEEL_ABI_VERSION, .capacity = 100, .generation_bits = 12,
	.ring = EVENTS, .event_size = EVENT_SIZE,
};

static struct timerwheel_info file_info;

static int file_ioctl(unsigned long request, void *arg)
{
	if (request == TIMERWHEEL_IOC_FLOW) {
		flows++;
		if (on_flow)
			on_flow();
		return 0;
	}
	if (request != TIMERWHEEL_IOC_INFO) {
		errno = ENOTTY;
		return -1;
	}
	*(struct timerwheel_info *)arg = file_info;
	return 0;
}

/* A file that answers INFO. Its first page of a ring is mapped. */
static int fake_device(void)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	int fd = memfd_create("ring", MFD_CLOEXEC);

	if (fd < 0 || ftruncate64(fd, TIMERWHEEL_MMAP_RING + page))
		return -1;
	mapped = mmap64(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, TIMERWHEEL_MMAP_RING);
	if (mapped == MAP_FAILED)
		return -1;
	mapped->head = honest_head();
	file_info = honest_info;
	fake_ioctl = file_ioctl;
	fake_class = "timerwheel";
	return fd;
}

FIXTURE(file)
{
	struct timerwheel *wheel;
	struct timerwheel_event ev[MAX];
};

FIXTURE_SETUP(file)
{
	int fd = fake_device();

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, timerwheel_adopt(&self->wheel, fd, false));
}

FIXTURE_TEARDOWN(file)
{
	timerwheel_close(self->wheel);
	fake_ioctl = NULL;
	fake_class = NULL;
}

TEST_F(file, honest)
{
	mapped->head.tail = 5;
	EXPECT_EQ(3, timerwheel_take(self->wheel, self->ev, 3));
	EXPECT_EQ(2, timerwheel_take(self->wheel, self->ev, 3));
	EXPECT_EQ(0, timerwheel_take(self->wheel, self->ev, 3));
	EXPECT_EQ(1, mapped->head.waiting);
	EXPECT_EQ(0, flows);
}

static void one_comes(void)
{
	mapped->head.flags = 0;
	mapped->head.tail++;
}

TEST_F(file, flows)
{
	on_flow = one_comes;
	mapped->head.flags = TIMERWHEEL_RING_OVERFLOW;
	EXPECT_EQ(1, timerwheel_take(self->wheel, self->ev, MAX));
	EXPECT_EQ(1, flows);
}

/* Each of these made the library search forever. */
TEST_F(file, no_end)
{
	mapped->head.mask = -1U;
	mapped->head.tail = 1;
	EXPECT_EQ(1, timerwheel_take(self->wheel, self->ev, MAX));
	mapped->head.mask = 0;
	mapped->head.tail = 3;
	EXPECT_EQ(2, timerwheel_take(self->wheel, self->ev, MAX));
}

/* An impossible number of events returns as many as there is room for. */
TEST_F(file, too_many)
{
	mapped->head.tail = 1U << 31;
	EXPECT_EQ(MAX, timerwheel_take(self->wheel, self->ev, MAX));
	EXPECT_EQ(MAX, mapped->head.head);
}

/* OVERFLOW stays set: the library calls FLOW a few times, then waits for the descriptor. */
TEST_F(file, no_flow)
{
	mapped->head.flags = TIMERWHEEL_RING_OVERFLOW;
	EXPECT_EQ(0, timerwheel_take(self->wheel, self->ev, MAX));
	EXPECT_LE(1, flows);
	EXPECT_GE(10, flows);
}

/* ---- descriptors that only pretend to be a wheel --------------------------------------------- */

/* A file that answers every call, as one in a FUSE mount can, is not the device. */
TEST(pretends)
{
	struct timerwheel *wheel = NULL;
	int fd = fake_device();

	ASSERT_LE(0, fd);
	fake_class = NULL;
	EXPECT_EQ(-ENOTTY, timerwheel_adopt(&wheel, fd, false));
	fake_class = "misc";
	EXPECT_EQ(-ENOTTY, timerwheel_adopt(&wheel, fd, false));
	fake_class = "not-timerwheel";
	EXPECT_EQ(-ENOTTY, timerwheel_adopt(&wheel, fd, false));
	EXPECT_EQ(NULL, wheel);
	/* The descriptor stays open. */
	EXPECT_LE(0, fcntl(fd, F_GETFD));
	/* A sandbox may have no sysfs. */
	fake_class = "";
	ASSERT_EQ(0, timerwheel_adopt(&wheel, fd, false));
	timerwheel_close(wheel);
}

/* Try INFO as it is in file_info, which is then reset to honest_info. */
static int adopt_file(int fd, bool table)
{
	struct timerwheel *wheel;
	int err = timerwheel_adopt(&wheel, dup(fd), table);

	if (!err)
		timerwheel_close(wheel);
	file_info = honest_info;
	return err;
}

#define EXPECT_ADOPT(result, table, ...)						\
	do {										\
		struct timerwheel_info *i = &file_info;					\
											\
		__VA_ARGS__;								\
		EXPECT_EQ(result, adopt_file(fd, table)) TH_LOG("%s", #__VA_ARGS__);	\
	} while (0)

TEST(info_bounds)
{
	const bool narrow = sizeof(size_t) == 4;
	int fd = fake_device();

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, adopt_file(fd, true));
	/* values from which the address of an event is computed */
	EXPECT_ADOPT(-EPROTO, false, i->event_size = 0);
	EXPECT_ADOPT(-EPROTO, false, i->event_size = EVENT_SIZE - 8);
	EXPECT_ADOPT(-EPROTO, false, i->event_size = EVENT_SIZE + 4);
	EXPECT_ADOPT(-EPROTO, false, i->ring = EVENTS - 1);
	EXPECT_ADOPT(-EPROTO, false, i->ring = -1U);
	EXPECT_ADOPT(-EPROTO, false, i->ring = 0, i->event_size = EVENT_SIZE - 8);
	EXPECT_ADOPT(-EPROTO, false, i->ring = 0, i->event_size = EVENT_SIZE + 8);
	/* the shift of entries of the deadline table */
	EXPECT_ADOPT(-EPROTO, true, i->generation_bits = 0);
	EXPECT_ADOPT(-EPROTO, true, i->generation_bits = 33);
	EXPECT_ADOPT(-EPROTO, true, i->generation_bits = 64);
	EXPECT_ADOPT(-EPROTO, true, i->generation_bits = 2);
	EXPECT_ADOPT(0, false, i->generation_bits = 0);
	/* a table that the wheel does not have */
	EXPECT_ADOPT(-ENOENT, true, i->flags = TIMERWHEEL_INFO_SETTLED);
	EXPECT_ADOPT(0, false, i->flags = TIMERWHEEL_INFO_SETTLED);
	EXPECT_ADOPT(-EPROTO, false, i->clock = TIMERWHEEL_CLOCK_MANUAL + 1);
	/* a newer module */
	EXPECT_ADOPT(0, true, i->size *= 2, i->abi_version++, i->event_size_max = 4096);
	EXPECT_ADOPT(0, true, i->event_size = EVENT_SIZE + 8);
	EXPECT_ADOPT(0, true, i->event_size = 4096);
	EXPECT_ADOPT(0, true, i->generation_bits = 32);
	EXPECT_ADOPT(0, true, i->generation_bits = 3);
	/* more than a 32-bit program can map */
	EXPECT_ADOPT(narrow ? -ENOMEM : 0, true, i->capacity = -1U);
	EXPECT_ADOPT(narrow ? -ENOMEM : 0, true, i->capacity = (1U << 29) - 1);
	EXPECT_ADOPT(narrow ? -ENOMEM : 0, false, i->ring = 1U << 20, i->event_size = 4096);
}

/* Events larger than this program knows are taken from a ring. */
TEST(larger_events)
{
	enum { SIZE = EVENT_SIZE + 8 };
	struct timerwheel_event ev[MAX];
	struct timerwheel *wheel;
	int fd = fake_device(), i;

	ASSERT_LE(0, fd);
	file_info.event_size = SIZE;
	ASSERT_EQ(0, timerwheel_adopt(&wheel, fd, false));
	for (i = 0; i < 3; i++)
		*(__u64 *)((char *)mapped + TIMERWHEEL_RING_EVENTS + i * SIZE) = 7 + i;
	mapped->head.tail = 3;
	ASSERT_EQ(3, timerwheel_take(wheel, ev, MAX));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(7 + i, ev[i].key);
	timerwheel_close(wheel);
}

/* ---- a wheel that another process also has --------------------------------------------------- */

#ifndef PROCESS	/* a wheel inside the process has no ring */
TEST(hostile_process)
{
	enum { ALL = 20000 };
	struct timerwheel_config config = { .backend = BACKEND, .ring = EVENTS };
	const size_t size = sizeof(struct memory);
	struct timerwheel *wheel;
	struct timerwheel_event ev[MAX];
	struct scribbler s = { };
	struct timerwheel_add add = { };
	void *ring;
	pid_t peer;
	int i, n;

	ASSERT_EQ(0, timerwheel_open(&wheel, &config));
	peer = fork();
	if (!peer) {
		ring = mmap64(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, timerwheel_fd(wheel),
			      TIMERWHEEL_MMAP_RING);
		if (ring == MAP_FAILED)
			_exit(1);
		s.word = ring;
		scribble(&s);
	}
	for (i = 0; i < ALL; i++) {
		add.key = i;
		ASSERT_EQ(1, timerwheel_add(wheel, &add, 1));
		n = timerwheel_take(wheel, ev, MAX);
		ASSERT_LE(0, n);
		ASSERT_GE(MAX, n);
	}
	ASSERT_EQ(0, kill(peer, SIGKILL));
	EXPECT_EQ(1000 + SIGKILL, reap(peer));
	timerwheel_close(wheel);
}
#endif

TEST_HARNESS_MAIN
