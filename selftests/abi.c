// SPDX-License-Identifier: GPL-2.0
/*
 * abi: the interface of /dev/timerwheel: layouts, sizes, flags, reserved fields, ioctl numbers,
 * counts and pointers. Built as a 64-bit and as a 32-bit program: the interface is the same for
 * both. A call that fails must have changed nothing.
 */
#include "tw_test.h"
#include <assert.h>
#include <stddef.h>

#define N		300	/* elements in an array that faults: more than one chunk */
#define VALUE(key)	(~(__u64)(key))

/* --- Layout ------------------------------------------------------------- */

#define SIZE(s, want) \
	{ #s, sizeof(struct timerwheel_##s), want }
#define FIELD(s, f, want) \
	{ #s "." #f, offsetof(struct timerwheel_##s, f), want }

static const struct {
	char name[32];
	size_t is, want;
} layout[] = {
	SIZE(info, 144),
	FIELD(info, size, 0),
	FIELD(info, flags, 4),
	FIELD(info, abi_version, 8),
	FIELD(info, batch_max, 12),
	FIELD(info, features, 16),
	FIELD(info, errata, 24),
	FIELD(info, tick_min, 32),
	FIELD(info, tick_max, 40),
	FIELD(info, slots_min, 48),
	FIELD(info, slots_max, 52),
	FIELD(info, capacity_max, 56),
	FIELD(info, clock, 60),
	FIELD(info, tick, 64),
	FIELD(info, slots, 72),
	FIELD(info, capacity, 76),
	FIELD(info, slack, 80),
	FIELD(info, wake_ns, 88),
	FIELD(info, wake_events, 96),
	FIELD(info, generation_bits, 100),
	FIELD(info, user_memory, 104),
	FIELD(info, user_memory_max, 112),
	FIELD(info, now, 120),
	FIELD(info, ring, 128),
	FIELD(info, ring_max, 132),
	FIELD(info, event_size, 136),
	FIELD(info, event_size_max, 140),
	SIZE(setup, 56),
	FIELD(setup, size, 0),
	FIELD(setup, flags, 4),
	FIELD(setup, clock, 8),
	FIELD(setup, slots, 12),
	FIELD(setup, tick, 16),
	FIELD(setup, capacity, 24),
	FIELD(setup, wake_events, 28),
	FIELD(setup, wake_ns, 32),
	FIELD(setup, slack, 40),
	FIELD(setup, ring, 48),
	FIELD(setup, event_size, 52),
	SIZE(batch, 32),
	FIELD(batch, size, 0),
	FIELD(batch, flags, 4),
	FIELD(batch, elems, 8),
	FIELD(batch, count, 16),
	FIELD(batch, elem_size, 20),
	FIELD(batch, cursor, 24),
	SIZE(add, 64),
	FIELD(add, key, 0),
	FIELD(add, value, 8),
	FIELD(add, deadline, 16),
	FIELD(add, period, 24),
	FIELD(add, slack, 32),
	FIELD(add, match, 40),
	FIELD(add, flags, 48),
	FIELD(add, result, 52),
	FIELD(add, index, 56),
	FIELD(add, generation, 60),
	SIZE(move, 32),
	FIELD(move, key, 0),
	FIELD(move, deadline, 8),
	FIELD(move, match, 16),
	FIELD(move, flags, 24),
	FIELD(move, result, 28),
	SIZE(add_socket, 72),
	FIELD(add_socket, key, 0),
	FIELD(add_socket, value, 8),
	FIELD(add_socket, deadline, 16),
	FIELD(add_socket, grace, 24),
	FIELD(add_socket, slack, 32),
	FIELD(add_socket, match, 40),
	FIELD(add_socket, fd, 48),
	FIELD(add_socket, kind, 52),
	FIELD(add_socket, flags, 56),
	FIELD(add_socket, result, 60),
	FIELD(add_socket, index, 64),
	FIELD(add_socket, generation, 68),
	SIZE(remove, 40),
	FIELD(remove, key, 0),
	FIELD(remove, match, 8),
	FIELD(remove, value, 16),
	FIELD(remove, left, 24),
	FIELD(remove, flags, 32),
	FIELD(remove, result, 36),
	SIZE(move_handle, 16),
	FIELD(move_handle, deadline, 0),
	FIELD(move_handle, index, 8),
	FIELD(move_handle, generation, 12),
	FIELD(move_handle, result, 12),
	SIZE(remove_handle, 16),
	FIELD(remove_handle, value, 0),
	FIELD(remove_handle, index, 8),
	FIELD(remove_handle, generation, 12),
	FIELD(remove_handle, result, 12),
	SIZE(uring, 16),
	FIELD(uring, elems, 0),
	FIELD(uring, count, 8),
	FIELD(uring, elem_size, 12),
	SIZE(entry, 64),
	FIELD(entry, key, 0),
	FIELD(entry, value, 8),
	FIELD(entry, deadline, 16),
	FIELD(entry, left, 24),
	FIELD(entry, period, 32),
	FIELD(entry, slack, 40),
	FIELD(entry, flags, 48),
	FIELD(entry, result, 52),
	FIELD(entry, index, 56),
	FIELD(entry, generation, 60),
	SIZE(advance, 32),
	FIELD(advance, size, 0),
	FIELD(advance, flags, 4),
	FIELD(advance, time, 8),
	FIELD(advance, now, 16),
	FIELD(advance, expired, 24),
	SIZE(monitor, 16),
	FIELD(monitor, size, 0),
	FIELD(monitor, flags, 4),
	FIELD(monitor, events, 8),
	FIELD(monitor, reserved, 12),
	SIZE(ring, 128),
	FIELD(ring, tail, 0),
	FIELD(ring, mask, 4),
	FIELD(ring, flags, 8),
	FIELD(ring, event_size, 12),
	FIELD(ring, head, 64),
	FIELD(ring, waiting, 68),
	SIZE(event, 48),
	FIELD(event, key, 0),
	FIELD(event, value, 8),
	FIELD(event, deadline, 16),
	FIELD(event, fired, 24),
	FIELD(event, overruns, 32),
	FIELD(event, flags, 40),
	FIELD(event, index, 44),
	SIZE(stats, 512),
	FIELD(stats, size, 0),
	FIELD(stats, flags, 4),
	FIELD(stats, pending, 8),
	FIELD(stats, due, 16),
	FIELD(stats, armed, 24),
	FIELD(stats, rearmed, 32),
	FIELD(stats, moved, 40),
	FIELD(stats, removed, 48),
	FIELD(stats, replaced, 56),
	FIELD(stats, drained, 64),
	FIELD(stats, delivered, 72),
	FIELD(stats, overruns, 80),
	FIELD(stats, withdrawn, 88),
	FIELD(stats, cascades, 96),
	FIELD(stats, requeues, 104),
	FIELD(stats, wakeups, 112),
	FIELD(stats, firings, 120),
	FIELD(stats, passes, 128),
	FIELD(stats, pass_max_timers, 136),
	FIELD(stats, pass_max_ns, 144),
	FIELD(stats, memory, 152),
	FIELD(stats, late_max, 160),
	FIELD(stats, lateness, 168),
	FIELD(stats, parked, 488),
	FIELD(stats, sockets, 496),
	FIELD(stats, aborted, 504),
};

/*
 * Certain 32-bit machines align 64-bit integers to 4 bytes. __aligned_u64 makes the layout the same
 * everywhere.
 */
#define ALIGNED(s)	static_assert(__alignof__(struct timerwheel_##s) == 8, #s)
ALIGNED(info);
ALIGNED(setup);
ALIGNED(batch);
ALIGNED(add);
ALIGNED(move);
ALIGNED(remove);
ALIGNED(move_handle);
ALIGNED(remove_handle);
ALIGNED(add_socket);
ALIGNED(entry);
ALIGNED(advance);
ALIGNED(event);
ALIGNED(stats);
#undef ALIGNED

static_assert(sizeof(struct timerwheel_info) == 144, "info");
static_assert(sizeof(struct timerwheel_setup) == 56, "setup");
static_assert(sizeof(struct timerwheel_batch) == 32, "batch");
static_assert(sizeof(struct timerwheel_add) == 64, "add");
static_assert(sizeof(struct timerwheel_move) == 32, "move");
static_assert(sizeof(struct timerwheel_remove) == 40, "remove");
static_assert(sizeof(struct timerwheel_move_handle) == 16, "move_handle");
static_assert(sizeof(struct timerwheel_remove_handle) == 16, "remove_handle");
static_assert(sizeof(struct timerwheel_add_socket) == 72, "add_socket");
static_assert(sizeof(struct timerwheel_entry) == 64, "entry");
static_assert(sizeof(struct timerwheel_advance) == 32, "advance");
static_assert(sizeof(struct timerwheel_event) == 48, "event");
static_assert(sizeof(struct timerwheel_stats) == 512, "stats");

/* --- The visible state of a wheel --------------------------------------- */

struct state {
	struct timerwheel_info info;
	struct timerwheel_stats stats;
};

/* Everything that a failed call must not change */
static struct state look(int fd)
{
	struct state s;

	if (tw_info(fd, &s.info) || tw_stats(fd, &s.stats))
		abort();
	if (s.info.clock != TIMERWHEEL_CLOCK_MANUAL)
		s.info.now = 0;
	s.info.user_memory = 0;
	s.stats.memory = 0;
	return s;
}

static bool same(int fd, const struct state *before)
{
	struct state now = look(fd);

	return !memcmp(&now, before, sizeof(now));
}

static void *kernel_address(void)
{
	return (void *)(uintptr_t)(sizeof(void *) == 8 ? 0xffff888000000000ULL : 0xfffff000ULL);
}

/* --- The device --------------------------------------------------------- */

FIXTURE(device) {
	int fd;
};

FIXTURE_SETUP(device)
{
	self->fd = tw_open_manual(0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(device)
{
	close(self->fd);
}

/* Sizes of structures and offsets of fields have not changed since version 1. */
TEST_F(device, layout)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(layout); i++)
		EXPECT_EQ(layout[i].want, layout[i].is)
			TH_LOG("%s", layout[i].name);
}

/* The calls have the numbers of version 1 */
TEST_F(device, numbers)
{
	static const unsigned long cmds[] = {
		TIMERWHEEL_IOC_INFO, TIMERWHEEL_IOC_SETUP, TIMERWHEEL_IOC_ADD,
		TIMERWHEEL_IOC_MOVE, TIMERWHEEL_IOC_REMOVE, TIMERWHEEL_IOC_DRAIN,
		TIMERWHEEL_IOC_GET, TIMERWHEEL_IOC_LIST, TIMERWHEEL_IOC_STATS,
		TIMERWHEEL_IOC_ADVANCE, TIMERWHEEL_IOC_FLOW, TIMERWHEEL_IOC_MONITOR,
		TIMERWHEEL_IOC_MOVE_HANDLE, TIMERWHEEL_IOC_REMOVE_HANDLE,
		TIMERWHEEL_IOC_ADD_SOCKET,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		EXPECT_EQ(0xf500 + i, cmds[i]);
	EXPECT_EQ(0x30000, TIMERWHEEL_URING_FLAGS(TIMERWHEEL_ABS | TIMERWHEEL_EXCL));
}

/* Unknown numbers: ENOTTY */
TEST_F(device, unknown_number)
{
	static char arg[16384];
	unsigned int nr;

	for (nr = 0x0f; nr <= 0xff; nr++)
		EXPECT_EQ(-ENOTTY, dev_ioctl(self->fd, _IO(TIMERWHEEL_IOC_TYPE, nr), arg));
}

/* Known numbers with a direction or a size: ENOTTY */
TEST_F(device, unknown_direction)
{
	static char arg[16384];
	unsigned int nr, dir, size;

	for (nr = 0; nr <= 0x0e; nr++) {
		for (dir = 0; dir < 4; dir++) {
			for (size = !dir; size <= 128; size += 8) {
				unsigned long cmd = _IOC(dir, TIMERWHEEL_IOC_TYPE, nr, size);

				EXPECT_EQ(-ENOTTY, dev_ioctl(self->fd, cmd, arg))
					TH_LOG("%lx", cmd);
			}
		}
	}
}

/* Known numbers of another type: ENOTTY (type 0 belongs to the VFS) */
TEST_F(device, unknown_type)
{
	static char arg[16384];
	unsigned int type, nr;

	for (type = 1; type <= 0xff; type++) {
		for (nr = 0; nr <= 0x0e; nr++) {
			if (type != TIMERWHEEL_IOC_TYPE)
				EXPECT_EQ(-ENOTTY, dev_ioctl(self->fd, _IO(type, nr), arg));
		}
	}
}

/* Only O_RDWR opens a wheel, also by its descriptor in /proc */
TEST_F(device, modes)
{
	static const int modes[] = { O_RDONLY, O_WRONLY, O_ACCMODE };
	char path[40];
	size_t i;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->fd);
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		EXPECT_EQ(-EINVAL, tw_err(open(TW_DEV, modes[i])));
		EXPECT_EQ(-EINVAL, tw_err(open(path, modes[i])));
	}
}

/* The device node is created with mode 0660 */
TEST_F(device, node)
{
	char text[512] = "";
	int fd = open("/sys/class/timerwheel/timerwheel/uevent", O_RDONLY);

	if (fd < 0)
		SKIP(return, "no sysfs here");
	EXPECT_LT(0, read(fd, text, sizeof(text) - 1));
	EXPECT_NE(NULL, strstr(text, "DEVMODE=0660\n")) TH_LOG("%s", text);
	close(fd);
}

/* INFO reports the version and the limits of this header */
TEST_F(device, version)
{
	__u64 features = TIMERWHEEL_FEATURE_HANDLE;
	struct timerwheel_info info;

#ifdef __x86_64__
	features |= TIMERWHEEL_FEATURE_TABLE;
#endif
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(sizeof(info), info.size);
	EXPECT_EQ(TIMERWHEEL_ABI_VERSION, info.abi_version);
	EXPECT_EQ(TIMERWHEEL_BATCH_MAX, info.batch_max);
	/* resident timers depend on the machine, sockets and io_uring on the kernel */
	EXPECT_EQ(features, info.features & (features | ~(TIMERWHEEL_FEATURE_TABLE |
							  TIMERWHEEL_FEATURE_SOCKET |
							  TIMERWHEEL_FEATURE_URING)));
	EXPECT_EQ(1U << 27, info.capacity_max);
	EXPECT_EQ(0, info.errata);
}

/* Random arguments: success or a documented error, and the counters stay consistent */
TEST_F(device, junk)
{
	/* all but FLOW and MONITOR */
	static const unsigned long calls[] = {
		TIMERWHEEL_IOC_INFO, TIMERWHEEL_IOC_SETUP, TIMERWHEEL_IOC_ADD,
		TIMERWHEEL_IOC_MOVE, TIMERWHEEL_IOC_REMOVE, TIMERWHEEL_IOC_DRAIN,
		TIMERWHEEL_IOC_GET, TIMERWHEEL_IOC_LIST, TIMERWHEEL_IOC_STATS,
		TIMERWHEEL_IOC_ADVANCE, TIMERWHEEL_IOC_MOVE_HANDLE,
		TIMERWHEEL_IOC_REMOVE_HANDLE, TIMERWHEEL_IOC_ADD_SOCKET,
	};
	__u64 seed = tw_seed(), r = seed;
	struct timerwheel_stats stats;
	static __u64 elems[4096];
	__u64 arg[64];
	int i, j;

	for (i = 0; i < 50000; i++) {
		struct timerwheel_batch *batch = (void *)arg;
		unsigned long cmd = calls[tw_rand(&r) % ARRAY_SIZE(calls)];
		int ret;

		for (j = 0; j < 64; j++)
			arg[j] = tw_rand(&r) % 4 ? 0 : tw_rand(&r) >> (tw_rand(&r) % 64);
		for (j = 0; j < 64; j++)
			elems[tw_rand(&r) % 4096] = tw_rand(&r) >> (tw_rand(&r) % 64);
		batch->size = tw_rand(&r) % 8 ? 32 : tw_rand(&r) % 512;
		if (tw_rand(&r) % 4)
			batch->flags &= 1;
		if (tw_rand(&r) % 8) {
			batch->elems = (uintptr_t)elems;
			batch->count = tw_rand(&r) % 400;
			batch->elem_size = 16 + tw_rand(&r) % 7 * 8;
		}
		/* no ADVANCE to the end of time at once, and no DRAIN_CLOSE before the end */
		if (cmd == TIMERWHEEL_IOC_ADVANCE)
			arg[1] >>= 16;
		if (cmd == TIMERWHEEL_IOC_DRAIN && i < 40000)
			batch->flags = 0;
		ret = dev_ioctl(self->fd, cmd, arg);
		ASSERT_TRUE(ret >= 0 || ret == -EINVAL || ret == -E2BIG || ret == -EFAULT ||
			    ret == -EBUSY)
			TH_LOG("seed %llu: call %d, number %lx: %d", seed, i, cmd, ret);
	}
	ASSERT_EQ(0, tw_stats(self->fd, &stats));
	EXPECT_TRUE(tw_balanced(&stats))
		TH_LOG("seed %llu", seed);
}

/* --- INFO and STATS: the structure is an output -------------------------- */

FIXTURE(report) {
	int fd;
	char *end;	/* of two pages; the memory behind is inaccessible */
};

FIXTURE_VARIANT(report) {
	unsigned long cmd;
	__u32 size;
};

FIXTURE_VARIANT_ADD(report, info) { .cmd = TIMERWHEEL_IOC_INFO, .size = 144 };
FIXTURE_VARIANT_ADD(report, stats) { .cmd = TIMERWHEEL_IOC_STATS, .size = 512 };

FIXTURE_SETUP(report)
{
	self->fd = tw_open_manual(0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_add1(self->fd, 1, 2, HOUR, 0));
	/* from now on the user's memory that INFO reports does not change */
	ASSERT_NE(~0ULL, tw_memory_alone(self->fd));
	self->end = (char *)tw_fence(2 * getpagesize()) + 2 * getpagesize();
}

FIXTURE_TEARDOWN(report)
{
	close(self->fd);
}

/* A poisoned structure of @room bytes before @end, with these values of size and flags */
static char *report_at(char *end, __u32 room, __u32 size, __u32 flags)
{
	struct timerwheel_stats *arg = tw_poison(end - room, room);

	memcpy(&arg->size, &size, sizeof(size));
	if (room >= 8)
		memcpy(&arg->flags, &flags, sizeof(flags));
	return (char *)arg;
}

/* A size below the size of the fields size and flags: EINVAL, and nothing is written. */
TEST_F(report, too_small)
{
	__u32 size;

	for (size = 0; size < 8; size++) {
		__u32 room = size < 4 ? 4 : size;
		char *arg = report_at(self->end, room, size, 0);

		EXPECT_EQ(-EINVAL, dev_ioctl(self->fd, variant->cmd, arg));
		EXPECT_EQ(0, memcmp(arg, &size, 4));
		EXPECT_TRUE(tw_poisoned(arg + 4, room - 4));
	}
}

/* A smaller structure, of an older program, gets the part that fits and nothing behind it */
TEST_F(report, smaller)
{
	__u32 size, got;
	char full[512];

	memcpy(full, report_at(self->end, variant->size, variant->size, 0), variant->size);
	ASSERT_EQ(0, dev_ioctl(self->fd, variant->cmd, full));
	for (size = 8; size <= variant->size; size++) {
		/* with accessible memory behind the structure, and without */
		char *arg = report_at(self->end - 512, size + 512, size, 0);

		ASSERT_EQ(0, dev_ioctl(self->fd, variant->cmd, arg));
		EXPECT_TRUE(tw_poisoned(arg + size, 512));
		arg = report_at(self->end, size, size, 0);
		ASSERT_EQ(0, dev_ioctl(self->fd, variant->cmd, arg));
		memcpy(&got, arg, 4);
		EXPECT_EQ(variant->size, got);
		EXPECT_EQ(0, memcmp(arg, full, size))
			TH_LOG("size %u", size);
	}
}

/* A larger structure, of a newer program: the part that the kernel does not know is zeroed */
TEST_F(report, larger)
{
	__u32 size, got;

	for (size = variant->size + 1; size <= getpagesize(); size++) {
		char *arg = report_at(self->end, size, size, 0);

		ASSERT_EQ(0, dev_ioctl(self->fd, variant->cmd, arg));
		memcpy(&got, arg, 4);
		EXPECT_EQ(variant->size, got);
		EXPECT_TRUE(tw_all_bytes(arg + variant->size, 0, size - variant->size))
			TH_LOG("size %u", size);
	}
}

/* A structure larger than a page: E2BIG, and nothing is written */
TEST_F(report, beyond_a_page)
{
	__u32 sizes[] = { getpagesize() + 1, 2 * getpagesize(), 1U << 31, ~0U };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		char *arg = report_at(self->end, 2 * getpagesize(), sizes[i], 0);

		EXPECT_EQ(-E2BIG, dev_ioctl(self->fd, variant->cmd, arg));
		EXPECT_EQ(0, memcmp(arg, &sizes[i], 4));
		EXPECT_TRUE(tw_poisoned(arg + 8, 2 * getpagesize() - 8));
	}
}

/* Each unknown flag: EINVAL, and nothing is written */
TEST_F(report, unknown_flag)
{
	int bit;

	for (bit = 0; bit < 32; bit++) {
		char *arg = report_at(self->end, variant->size, variant->size, 1U << bit);

		EXPECT_EQ(-EINVAL, dev_ioctl(self->fd, variant->cmd, arg))
			TH_LOG("bit %d", bit);
		EXPECT_TRUE(tw_poisoned(arg + 8, variant->size - 8));
	}
}

/* A structure that is inaccessible, completely or at its end: EFAULT */
TEST_F(report, bad_pointer)
{
	__u32 room;

	EXPECT_EQ(-EFAULT, dev_ioctl(self->fd, variant->cmd, NULL));
	EXPECT_EQ(-EFAULT, dev_ioctl(self->fd, variant->cmd, self->end));
	EXPECT_EQ(-EFAULT, dev_ioctl(self->fd, variant->cmd, kernel_address()));
	for (room = 4; room < variant->size; room++)
		EXPECT_EQ(-EFAULT, dev_ioctl(self->fd, variant->cmd,
					     report_at(self->end, room, variant->size, 0)));
}

/* A structure in read-only memory: EFAULT */
TEST_F(report, readonly)
{
	char *arg = report_at(self->end, variant->size, variant->size, 0);

	ASSERT_EQ(0, mprotect(self->end - getpagesize(), getpagesize(), PROT_READ));
	EXPECT_EQ(-EFAULT, dev_ioctl(self->fd, variant->cmd, arg));
	EXPECT_TRUE(tw_poisoned(arg + 8, variant->size - 8));
}

/* --- All other calls: the structure is an input ------------------------- */

struct call {
	unsigned long cmd;
	__u32 size;
	__u32 flags;			/* all that the kernel knows */
	__u32 elem_size;		/* for calls on an array */
	bool writes;			/* does the call write its structure? */
};

FIXTURE(call) {
	int fd;
	char *end;			/* as in report */
};

FIXTURE_VARIANT(call) {
	struct call call;
};

FIXTURE_VARIANT_ADD(call, setup) {
	{ .cmd = TIMERWHEEL_IOC_SETUP, .size = 56,
	  .flags = TIMERWHEEL_SETUP_RESIDENT | TIMERWHEEL_SETUP_TABLE,
	  .writes = true, }
};

FIXTURE_VARIANT_ADD(call, add) {
	{ .cmd = TIMERWHEEL_IOC_ADD, .size = 32, .elem_size = 64, }
};

FIXTURE_VARIANT_ADD(call, move) {
	{ .cmd = TIMERWHEEL_IOC_MOVE, .size = 32, .elem_size = 32, }
};

FIXTURE_VARIANT_ADD(call, remove) {
	{ .cmd = TIMERWHEEL_IOC_REMOVE, .size = 32, .elem_size = 40, }
};

FIXTURE_VARIANT_ADD(call, move_handle) {
	{ .cmd = TIMERWHEEL_IOC_MOVE_HANDLE, .size = 32, .elem_size = 16,
	  .flags = TIMERWHEEL_ABS | TIMERWHEEL_EXCL, }
};

FIXTURE_VARIANT_ADD(call, remove_handle) {
	{ .cmd = TIMERWHEEL_IOC_REMOVE_HANDLE, .size = 32, .elem_size = 16, }
};

FIXTURE_VARIANT_ADD(call, add_socket) {
	{ .cmd = TIMERWHEEL_IOC_ADD_SOCKET, .size = 32, .elem_size = 72, }
};

FIXTURE_VARIANT_ADD(call, drain) {
	{ .cmd = TIMERWHEEL_IOC_DRAIN, .size = 32, .elem_size = 64,
	  .flags = TIMERWHEEL_DRAIN_CLOSE, }
};

FIXTURE_VARIANT_ADD(call, get) {
	{ .cmd = TIMERWHEEL_IOC_GET, .size = 32, .elem_size = 64, }
};

FIXTURE_VARIANT_ADD(call, list) {
	{ .cmd = TIMERWHEEL_IOC_LIST, .size = 32, .elem_size = 64, .writes = true, }
};

FIXTURE_VARIANT_ADD(call, advance) {
	{ .cmd = TIMERWHEEL_IOC_ADVANCE, .size = 32, .flags = TIMERWHEEL_ABS, .writes = true, }
};

FIXTURE_VARIANT_ADD(call, monitor) {
	{ .cmd = TIMERWHEEL_IOC_MONITOR, .size = 16,
	  .flags = TIMERWHEEL_MONITOR_CLOEXEC | TIMERWHEEL_MONITOR_NONBLOCK, }
};

/* A wheel in which the call succeeds and has a timer to work on */
static int call_open(const struct call *call)
{
	int fd;

	if (call->cmd == TIMERWHEEL_IOC_SETUP)
		return dev_open(O_NONBLOCK);
	fd = tw_open_manual(0);
	if (call->cmd != TIMERWHEEL_IOC_ADD && tw_add1(fd, 0, 1, HOUR, 0))
		abort();
	return fd;
}

/*
 * The first @room bytes, before @end, of a valid structure with this @size. The part behind the
 * known structure is zero.
 */
static char *call_fill(const struct call *call, char *end, __u32 room, __u32 size, __u32 flags)
{
	static struct timerwheel_add_socket elem;	/* large enough for any element */
	struct timerwheel_batch batch = {
		.size = size, .flags = flags, .elems = (uintptr_t)&elem, .count = 1,
		.elem_size = call->elem_size,
	};
	struct timerwheel_setup setup = { .size = size, .flags = flags };
	struct timerwheel_advance adv = { .size = size, .flags = flags, .time = HOUR };
	struct timerwheel_monitor mon = { .size = size, .flags = flags };
	const void *from = &batch;

	memset(&elem, 0, sizeof(elem));
	if (call->cmd == TIMERWHEEL_IOC_SETUP)
		from = &setup;
	else if (call->cmd == TIMERWHEEL_IOC_ADVANCE)
		from = &adv;
	else if (call->cmd == TIMERWHEEL_IOC_MONITOR)
		from = &mon;
	memset(end - room, 0, room);
	return memcpy(end - room, from, room < call->size ? room : call->size);
}

FIXTURE_SETUP(call)
{
	self->fd = call_open(&variant->call);
	ASSERT_LE(0, self->fd);
	self->end = (char *)tw_fence(2 * getpagesize()) + 2 * getpagesize();
}

FIXTURE_TEARDOWN(call)
{
	close(self->fd);
}

/* Each size smaller than in version 1: EINVAL, and nothing is done */
TEST_F(call, too_small)
{
	const struct call *call = &variant->call;
	struct state before = look(self->fd);
	__u32 size;

	for (size = 0; size < call->size; size++) {
		char *arg = call_fill(call, self->end, size < 4 ? 4 : size, size, 0);

		EXPECT_EQ(-EINVAL, dev_ioctl(self->fd, call->cmd, arg))
			TH_LOG("size %u", size);
	}
	EXPECT_TRUE(same(self->fd, &before));
}

/* All sizes up to @known + 64, then every 53rd, and a page */
static __u32 next_size(__u32 known, __u32 size)
{
	__u32 page = getpagesize(), next = size < known + 64 ? size + 1 : size + 53;

	return size < page && next > page ? page : next;
}

/* Sizes from version 1 up to a page, with the unknown part zero: success. */
TEST_F(call, larger_zero)
{
	const struct call *call = &variant->call;
	__u32 size;

	for (size = call->size; size <= getpagesize(); size = next_size(call->size, size)) {
		int fd = call_open(call);

		EXPECT_LE(0, dev_ioctl(fd, call->cmd, call_fill(call, self->end, size, size, 0)))
			TH_LOG("size %u", size);
		EXPECT_TRUE(tw_all_bytes(self->end - size + call->size, 0,
					 size - call->size));
		close(fd);
	}
}

/* A nonzero byte in the unknown part: E2BIG, and nothing is done */
TEST_F(call, larger_nonzero)
{
	const struct call *call = &variant->call;
	struct state before = look(self->fd);
	__u32 size;

	for (size = call->size + 1; size <= getpagesize(); size++) {
		char *arg = call_fill(call, self->end, size, size, 0);

		arg[size - 1] = 1;
		EXPECT_EQ(-E2BIG, dev_ioctl(self->fd, call->cmd, arg))
			TH_LOG("size %u, last byte", size);
		arg[size - 1] = 0;
		arg[call->size] = 0x80;
		EXPECT_EQ(-E2BIG, dev_ioctl(self->fd, call->cmd, arg))
			TH_LOG("size %u, first byte", size);
	}
	EXPECT_TRUE(same(self->fd, &before));
}

/* A size larger than a page: E2BIG even if the unknown part is zero, and nothing is done */
TEST_F(call, beyond_a_page)
{
	const struct call *call = &variant->call;
	__u32 sizes[] = { getpagesize() + 1, 2 * getpagesize(), 1U << 31, ~0U };
	struct state before = look(self->fd);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		EXPECT_EQ(-E2BIG, dev_ioctl(self->fd, call->cmd,
					    call_fill(call, self->end, 2 * getpagesize(),
						      sizes[i], 0)));
	EXPECT_TRUE(same(self->fd, &before));
}

/* Each unknown flag, alone and with all known ones: EINVAL, and nothing is done */
TEST_F(call, unknown_flag)
{
	const struct call *call = &variant->call;
	struct state before = look(self->fd);
	__u32 size = call->size;
	int bit;

	for (bit = 0; bit < 32; bit++) {
		if (call->flags & (1U << bit))
			continue;
		EXPECT_EQ(-EINVAL, dev_ioctl(self->fd, call->cmd,
					     call_fill(call, self->end, size, size, 1U << bit)))
			TH_LOG("bit %d", bit);
		EXPECT_EQ(-EINVAL, dev_ioctl(self->fd, call->cmd,
					     call_fill(call, self->end, size, size,
						       call->flags | 1U << bit)))
			TH_LOG("bit %d with all known flags", bit);
	}
	EXPECT_TRUE(same(self->fd, &before));
}

/* A structure that is inaccessible, completely or at its end: EFAULT, and nothing is done */
TEST_F(call, bad_pointer)
{
	const struct call *call = &variant->call;
	struct state before = look(self->fd);
	__u32 room;

	EXPECT_EQ(-EFAULT, dev_ioctl(self->fd, call->cmd, NULL));
	EXPECT_EQ(-EFAULT, dev_ioctl(self->fd, call->cmd, self->end));
	EXPECT_EQ(-EFAULT, dev_ioctl(self->fd, call->cmd, kernel_address()));
	for (room = 4; room < call->size; room++)
		EXPECT_EQ(-EFAULT, dev_ioctl(self->fd, call->cmd,
					     call_fill(call, self->end, room, call->size, 0)))
			TH_LOG("%u bytes", room);
	EXPECT_TRUE(same(self->fd, &before));
}

/*
 * A structure in read-only memory: calls that write it fail with EFAULT and do nothing; the others
 * succeed
 */
TEST_F(call, readonly)
{
	const struct call *call = &variant->call;
	char *arg = call_fill(call, self->end, call->size, call->size, 0);
	struct state before = look(self->fd);
	int ret;

	ASSERT_EQ(0, mprotect(self->end - getpagesize(), getpagesize(), PROT_READ));
	ret = dev_ioctl(self->fd, call->cmd, arg);
	if (call->writes) {
		EXPECT_EQ(-EFAULT, ret);
		EXPECT_TRUE(same(self->fd, &before));
	} else if (call->cmd == TIMERWHEEL_IOC_MONITOR) {
		EXPECT_EQ(0, close(ret));
	} else {
		EXPECT_EQ(1, ret);
	}
}

/* --- Calls on an array -------------------------------------------------- */

struct op {
	unsigned long cmd;
	__u32 elem_size;
	__u32 result_at;
};

FIXTURE(array) {
};

FIXTURE_VARIANT(array) {
	struct op op;
};

FIXTURE_VARIANT_ADD(array, add) { { TIMERWHEEL_IOC_ADD, 64, 52 } };
FIXTURE_VARIANT_ADD(array, move) { { TIMERWHEEL_IOC_MOVE, 32, 28 } };
FIXTURE_VARIANT_ADD(array, remove) { { TIMERWHEEL_IOC_REMOVE, 40, 36 } };
FIXTURE_VARIANT_ADD(array, move_handle) { { TIMERWHEEL_IOC_MOVE_HANDLE, 16, 12 } };
FIXTURE_VARIANT_ADD(array, remove_handle) { { TIMERWHEEL_IOC_REMOVE_HANDLE, 16, 12 } };
FIXTURE_VARIANT_ADD(array, drain) { { TIMERWHEEL_IOC_DRAIN, 64, 52 } };
FIXTURE_VARIANT_ADD(array, get) { { TIMERWHEEL_IOC_GET, 64, 52 } };
FIXTURE_VARIANT_ADD(array, list) { { TIMERWHEEL_IOC_LIST, 64, 52 } };

/* Is the first u64 of an element not the key, but its timer named by a handle? */
static bool by_handle(const struct op *op)
{
	return op->cmd == TIMERWHEEL_IOC_MOVE_HANDLE || op->cmd == TIMERWHEEL_IOC_REMOVE_HANDLE;
}

static bool moves(const struct op *op)
{
	return op->cmd == TIMERWHEEL_IOC_MOVE || op->cmd == TIMERWHEEL_IOC_MOVE_HANDLE;
}

static bool removes(const struct op *op)
{
	return op->cmd == TIMERWHEEL_IOC_REMOVE || op->cmd == TIMERWHEEL_IOC_REMOVE_HANDLE;
}

/* The handle of each timer that array_open() has armed last; of one more that there is not */
static struct {
	__u32 index;
	__u32 generation;
} handle[TIMERWHEEL_BATCH_MAX + 1];

FIXTURE_SETUP(array)
{
}

FIXTURE_TEARDOWN(array)
{
}

/* Valid elements for the timers 0 to @n - 1 of array_open(); their outputs are poisoned */
static void array_fill(const struct op *op, char *elems, __u32 n)
{
	__u32 i;

	tw_poison(elems, (size_t)n * op->elem_size);
	for (i = 0; i < n; i++, elems += op->elem_size) {
		struct timerwheel_add add = {
			.key = i, .value = VALUE(i), .deadline = HOUR,
		};
		struct timerwheel_move move = { .key = i, .deadline = 2 * HOUR };
		struct timerwheel_remove rem = { .key = i };
		struct timerwheel_move_handle moveh = {
			.deadline = 2 * HOUR, .index = handle[i].index,
			.generation = handle[i].generation,
		};
		struct timerwheel_remove_handle remh = {
			.index = handle[i].index, .generation = handle[i].generation,
		};
		struct timerwheel_entry ent;

		/* memcpy, because the array may be unaligned */
		switch (op->cmd) {
		case TIMERWHEEL_IOC_ADD:
			tw_poison(&add.result, 4);
			tw_poison(&add.index, 4);
			memcpy(elems, &add, sizeof(add));
			break;
		case TIMERWHEEL_IOC_MOVE:
			tw_poison(&move.result, 4);
			memcpy(elems, &move, sizeof(move));
			break;
		case TIMERWHEEL_IOC_REMOVE:
			tw_poison(&rem.value, 16);
			tw_poison(&rem.result, 4);
			memcpy(elems, &rem, sizeof(rem));
			break;
		case TIMERWHEEL_IOC_MOVE_HANDLE:
			memcpy(elems, &moveh, sizeof(moveh));
			break;
		case TIMERWHEEL_IOC_REMOVE_HANDLE:
			tw_poison(&remh.value, 8);
			memcpy(elems, &remh, sizeof(remh));
			break;
		case TIMERWHEEL_IOC_GET:
			tw_poison(&ent, sizeof(ent));
			ent.key = i;
			ent.flags = 0;
			memcpy(elems, &ent, sizeof(ent));
			break;
		}
	}
}

/* A wheel with the timers 0 to @n - 1; for ADD an empty one */
static int array_open(const struct op *op, __u32 n)
{
	struct timerwheel_add *add = calloc(n, sizeof(*add));
	int fd = tw_open_manual(0);
	__u32 i;

	for (i = 0; i < n; i++) {
		add[i].key = i;
		add[i].value = VALUE(i);
		add[i].deadline = HOUR;
	}
	if (fd < 0 || (op->cmd != TIMERWHEEL_IOC_ADD && dev_add(fd, add, n) != (int)n))
		abort();
	for (i = 0; i < n; i++) {
		handle[i].index = add[i].index;
		handle[i].generation = add[i].generation;
	}
	free(add);
	return fd;
}

static int array_call(int fd, const struct op *op, const void *elems, __u32 n)
{
	return tw_batch(fd, op->cmd, 0, elems, op->elem_size, n, NULL);
}

/* Of an array of @n elements exactly the first @done were processed */
static void array_check(struct __test_metadata *_metadata, int fd, const struct op *op,
			const char *elems, __u32 n, __u32 done)
{
	bool drain = op->cmd == TIMERWHEEL_IOC_DRAIN;
	bool list = op->cmd == TIMERWHEEL_IOC_LIST;
	bool *seen = calloc(n, 1);
	struct timerwheel_entry *ent = calloc(n, sizeof(*ent));
	struct timerwheel_stats stats;
	__u32 i;

	for (i = 0; i < done; i++, elems += op->elem_size) {
		__u64 key;
		__s32 result;

		memcpy(&key, elems, sizeof(key));
		memcpy(&result, elems + op->result_at, sizeof(result));
		if (by_handle(op)) {
			ASSERT_EQ(moves(op) ? 2 * HOUR : VALUE(i), key);
			ASSERT_EQ(0, memcmp(&handle[i].index, elems + 8, 4));
			key = i;
		}
		ASSERT_GT(n, key);
		ASSERT_FALSE(seen[key]);
		seen[key] = true;
		if (!drain && !list)
			ASSERT_EQ(i, key);
		ASSERT_EQ(op->cmd == TIMERWHEEL_IOC_ADD ?
			  TIMERWHEEL_WAS_NONE : TIMERWHEEL_WAS_PENDING, result);
	}
	for (i = 0; i < n; i++)
		ent[i].key = i;
	ASSERT_EQ(n, tw_batch(fd, TIMERWHEEL_IOC_GET, 0, ent, sizeof(*ent), n, NULL));
	for (i = 0; i < n; i++) {
		bool there = true;

		if (op->cmd == TIMERWHEEL_IOC_ADD)
			there = seen[i];
		else if (removes(op) || drain)
			there = !seen[i];
		ASSERT_EQ(there ? TIMERWHEEL_WAS_PENDING : -ENOENT, ent[i].result);
		if (!there)
			continue;
		ASSERT_EQ(VALUE(i), ent[i].value);
		ASSERT_EQ(moves(op) && seen[i] ? 2 * HOUR : HOUR, ent[i].deadline);
	}
	ASSERT_EQ(0, tw_stats(fd, &stats));
	EXPECT_EQ(op->cmd == TIMERWHEEL_IOC_ADD ? done : n, stats.armed);
	EXPECT_EQ(moves(op) ? done : 0, stats.moved);
	EXPECT_EQ(removes(op) ? done : 0, stats.removed);
	EXPECT_EQ(drain ? done : 0, stats.drained);
	EXPECT_EQ(0, stats.replaced);
	free(ent);
	free(seen);
}

/*
 * A call on N elements. The page that begins @cut bytes into element @k has the protection @prot;
 * the memory behind it is accessible. Exactly the first @k elements are processed and reported. A
 * call with the remaining ones then fails with EFAULT.
 */
static void array_fault(struct __test_metadata *_metadata, const struct op *op,
			__u32 k, __u32 cut, int prot)
{
	size_t total = N * op->elem_size;
	size_t at = k * op->elem_size;
	size_t whole = cut ? at + op->elem_size : at;
	char *elems = tw_boundary(at + cut, total - at - cut);
	int fd = array_open(op, N);
	struct timerwheel_entry rest[N];
	char *copy = malloc(total);
	__u64 cursor = 0;
	__u32 i;

	array_fill(op, elems, N);
	memcpy(copy, elems, total);
	ASSERT_EQ(0, mprotect(elems + at + cut, 1, prot));
	EXPECT_EQ(k ? (int)k : -EFAULT,
		  tw_batch(fd, op->cmd, 0, elems, op->elem_size, N, &cursor))
		TH_LOG("element %u", k);
	ASSERT_EQ(0, mprotect(elems + at + cut, 1, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, memcmp(copy + whole, elems + whole, total - whole));
	array_check(_metadata, fd, op, elems, N, k);

	if (op->cmd != TIMERWHEEL_IOC_LIST)
		cursor = 0;
	ASSERT_EQ(0, mprotect(elems + at + cut, 1, prot));
	EXPECT_EQ(-EFAULT, tw_batch(fd, op->cmd, 0, elems + at, op->elem_size,
				    N - k, &cursor));
	array_check(_metadata, fd, op, elems, N, k);
	/* a failed LIST does not change the cursor */
	if (op->cmd == TIMERWHEEL_IOC_LIST) {
		EXPECT_EQ(N - k, tw_list(fd, &cursor, rest, N));
		memcpy(copy, elems, at);
		memset(copy + at, 0, total - at);
		for (i = 0; i < N - k; i++)
			memcpy(copy + at + i * op->elem_size, &rest[i], sizeof(*rest));
		array_check(_metadata, fd, op, copy, N, N);
	}
	free(copy);
	close(fd);
}

static const __u32 fault_at[] = { 0, 1, N / 2, N - 1 };

/* Elements that cannot be read */
TEST_F(array, unreadable)
{
	const struct op *op = &variant->op;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fault_at); i++)
		array_fault(_metadata, op, fault_at[i], 0, PROT_NONE);
}

/* An element whose last four bytes cannot be read */
TEST_F(array, cut_short)
{
	const struct op *op = &variant->op;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fault_at); i++)
		array_fault(_metadata, op, fault_at[i], op->elem_size - 4, PROT_NONE);
}

/* Elements that cannot be written are not processed, since their results could not be reported */
TEST_F(array, readonly)
{
	const struct op *op = &variant->op;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fault_at); i++)
		array_fault(_metadata, op, fault_at[i], 0, PROT_READ);
}

/* An element whose result cannot be written is not processed */
TEST_F(array, readonly_result)
{
	const struct op *op = &variant->op;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fault_at); i++)
		array_fault(_metadata, op, fault_at[i], op->result_at, PROT_READ);
}

/* An array at an invalid address: EFAULT, and nothing is done */
TEST_F(array, bad_address)
{
	const struct op *op = &variant->op;
	static const __u64 where[] = {
		0, 8, 0xffff888000000000ULL, 0xdead000000000000ULL, 0x7fffffffffffffffULL,
		~0ULL - 7, ~0ULL,
	};
	int fd = array_open(op, N);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(where); i++) {
		struct timerwheel_batch batch = {
			.size = sizeof(batch), .elems = where[i], .count = N,
			.elem_size = op->elem_size,
		};

		EXPECT_EQ(-EFAULT, dev_ioctl(fd, op->cmd, &batch))
			TH_LOG("%llx", where[i]);
	}
	array_check(_metadata, fd, op, NULL, N, 0);
}

/* No elements: returns 0, whatever the address of the array */
TEST_F(array, count_0)
{
	const struct op *op = &variant->op;
	int fd = array_open(op, 4);

	EXPECT_EQ(0, array_call(fd, op, NULL, 0));
	EXPECT_EQ(0, array_call(fd, op, kernel_address(), 0));
	array_check(_metadata, fd, op, NULL, 4, 0);
}

/* One element: no other one is processed or written */
TEST_F(array, count_1)
{
	const struct op *op = &variant->op;
	int fd = array_open(op, 2);
	char elems[256], copy[256];

	array_fill(op, elems, 2);
	memcpy(copy, elems, sizeof(copy));
	EXPECT_EQ(1, array_call(fd, op, elems, 1));
	array_check(_metadata, fd, op, elems, 2, 1);
	EXPECT_EQ(0, memcmp(elems + op->elem_size, copy + op->elem_size,
			    op->elem_size));
}

/* The maximum: all elements are processed, and no byte behind them is accessed */
TEST_F(array, count_65536)
{
	const struct op *op = &variant->op;
	__u32 n = TIMERWHEEL_BATCH_MAX;
	char *elems = tw_fence((size_t)n * op->elem_size);
	int fd = array_open(op, n);

	array_fill(op, elems, n);
	EXPECT_EQ(n, array_call(fd, op, elems, n));
	array_check(_metadata, fd, op, elems, n, n);
}

/* More than the maximum: E2BIG, and nothing is done */
TEST_F(array, count_65537)
{
	const struct op *op = &variant->op;
	static const __u32 counts[] = { TIMERWHEEL_BATCH_MAX + 1, 1U << 26, 1U << 31, ~0U };
	size_t size = (TIMERWHEEL_BATCH_MAX + 1) * (size_t)op->elem_size, i;
	int fd = array_open(op, N);
	char *elems = malloc(size), *copy = malloc(size);

	array_fill(op, elems, TIMERWHEEL_BATCH_MAX + 1);
	memcpy(copy, elems, size);
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		EXPECT_EQ(-E2BIG, array_call(fd, op, elems, counts[i]));
	EXPECT_EQ(0, memcmp(elems, copy, size));
	array_check(_metadata, fd, op, NULL, N, 0);
}

/* elem_size too small, or 0: EINVAL; too large: E2BIG; nothing is done */
TEST_F(array, elem_size)
{
	const struct op *op = &variant->op;
	size_t size = N * (size_t)getpagesize();
	char *elems = tw_poison(malloc(size), size);
	int fd = array_open(op, N);
	__u32 es;

	for (es = 0; es <= getpagesize() + 9; es++) {
		if (es == op->elem_size)
			continue;
		EXPECT_EQ(es < op->elem_size ? -EINVAL : -E2BIG,
			  tw_batch(fd, op->cmd, 0, elems, es, N, NULL))
			TH_LOG("elem_size %u", es);
	}
	EXPECT_EQ(-E2BIG, tw_batch(fd, op->cmd, 0, elems, ~0U, N, NULL));
	EXPECT_TRUE(tw_poisoned(elems, size));
	array_check(_metadata, fd, op, NULL, N, 0);
}

/* A cursor in any call but LIST: EINVAL, and nothing is done; LIST accepts any cursor */
TEST_F(array, cursor)
{
	const struct op *op = &variant->op;
	static const __u64 cursors[] = { 1, 64, N, 1ULL << 32, 1ULL << 63, ~0ULL };
	int fd = array_open(op, N);
	char elems[N * 128];
	size_t i;

	array_fill(op, elems, N);
	for (i = 0; i < ARRAY_SIZE(cursors); i++) {
		__u64 cursor = cursors[i];
		int ret = tw_batch(fd, op->cmd, 0, elems, op->elem_size, N, &cursor);

		if (op->cmd == TIMERWHEEL_IOC_LIST && ret >= 0)
			continue;
		EXPECT_EQ(-EINVAL, ret);
	}
	array_check(_metadata, fd, op, NULL, N, 0);
}

/* --- Elements ----------------------------------------------------------- */

FIXTURE(element) {
	int fd;
	struct timerwheel_add add;	/* of its timer */
	struct state before;
};

FIXTURE_SETUP(element)
{
	self->fd = tw_open_manual(0);
	ASSERT_LE(0, self->fd);
	self->add = (struct timerwheel_add){ .key = 1, .value = 7, .deadline = HOUR };
	ASSERT_EQ(0, tw_add_elem(self->fd, &self->add));
	self->before = look(self->fd);
}

FIXTURE_TEARDOWN(element)
{
	EXPECT_TRUE(same(self->fd, &self->before));
	close(self->fd);
}

/* ADD with an unknown flag: EINVAL */
TEST_F(element, add_flags)
{
	__u32 known = TIMERWHEEL_ABS | TIMERWHEEL_EXCL | TIMERWHEEL_MATCH | TIMERWHEEL_SLACK;
	int bit;

	for (bit = 0; bit < 32; bit++) {
		if (!(known & (1U << bit)))
			EXPECT_EQ(-EINVAL, tw_add1(self->fd, 1, 2, HOUR, 1U << bit))
				TH_LOG("bit %d", bit);
	}
}

/* MOVE with an unknown flag, or one that only ADD knows: EINVAL */
TEST_F(element, move_flags)
{
	int bit;

	for (bit = 0; bit < 32; bit++) {
		if (!((TIMERWHEEL_ABS | TIMERWHEEL_MATCH) & (1U << bit)))
			EXPECT_EQ(-EINVAL, tw_move1(self->fd, 1, HOUR, 1U << bit))
				TH_LOG("bit %d", bit);
	}
}

/* REMOVE with an unknown flag, or one that only ADD or MOVE know: EINVAL */
TEST_F(element, remove_flags)
{
	int bit;

	for (bit = 0; bit < 32; bit++) {
		struct timerwheel_remove rem = { .key = 1, .flags = 1U << bit };

		if (TIMERWHEEL_MATCH == 1U << bit)
			continue;
		EXPECT_EQ(-EINVAL, tw_remove_elem(self->fd, &rem))
			TH_LOG("bit %d", bit);
		EXPECT_TRUE(tw_poisoned(&rem.value, 16));
	}
}

/* MOVE by handle with EXCL, which is for resident timers: each element EINVAL, no other output */
TEST_F(element, move_handle_flags)
{
	static const __u32 indices[] = { 0, 1, 2, ~0U };
	struct timerwheel_move_handle move[ARRAY_SIZE(indices)];
	__u32 flags, i;

	for (flags = TIMERWHEEL_EXCL; flags <= (TIMERWHEEL_ABS | TIMERWHEEL_EXCL); flags++) {
		for (i = 0; i < ARRAY_SIZE(indices); i++) {
			move[i].deadline = 2 * HOUR;
			move[i].index = indices[i];
			move[i].generation = self->add.generation;
		}
		ASSERT_EQ(ARRAY_SIZE(indices),
			  dev_move_handle(self->fd, flags, move, ARRAY_SIZE(indices)));
		for (i = 0; i < ARRAY_SIZE(indices); i++) {
			EXPECT_EQ(-EINVAL, move[i].result);
			EXPECT_EQ(indices[i], move[i].index);
			EXPECT_EQ(2 * HOUR, move[i].deadline);
		}
		EXPECT_EQ(-EINVAL, tw_move_handle1(self->fd, self->add.index, self->add.generation,
						   2 * HOUR, flags));
	}
}

/* GET with any flag: EINVAL, and only the result is written */
TEST_F(element, get_flags)
{
	int bit;

	for (bit = 0; bit < 32; bit++) {
		struct timerwheel_entry ent;

		tw_poison(&ent, sizeof(ent));
		ent.key = 1;
		ent.flags = 1U << bit;
		ASSERT_EQ(1, dev_get(self->fd, &ent, 1));
		EXPECT_EQ(-EINVAL, ent.result)
			TH_LOG("bit %d", bit);
		EXPECT_EQ(1U << bit, ent.flags);
		EXPECT_TRUE(tw_poisoned(&ent.value, 40));
		EXPECT_TRUE(tw_poisoned(&ent.index, 4));
	}
}

/* ADD with a slack, but without TIMERWHEEL_SLACK: EINVAL */
TEST_F(element, add_slack_without_flag)
{
	struct timerwheel_add add = { .key = 1, .deadline = HOUR, .slack = 1 };

	EXPECT_EQ(-EINVAL, tw_add_elem(self->fd, &add));
	add.slack = 1ULL << 63;
	EXPECT_EQ(-EINVAL, tw_add_elem(self->fd, &add));
}

/* ADD with a value to match, but without TIMERWHEEL_MATCH: EINVAL */
TEST_F(element, add_match_without_flag)
{
	struct timerwheel_add add = { .key = 1, .deadline = HOUR, .match = 7 };

	EXPECT_EQ(-EINVAL, tw_add_elem(self->fd, &add));
	add.match = 7ULL << 32;
	EXPECT_EQ(-EINVAL, tw_add_elem(self->fd, &add));
}

/* MOVE with a value to match, but without TIMERWHEEL_MATCH: EINVAL */
TEST_F(element, move_match_without_flag)
{
	struct timerwheel_move move = { .key = 1, .deadline = 2 * HOUR, .match = 7 };

	ASSERT_EQ(1, dev_move(self->fd, &move, 1));
	EXPECT_EQ(-EINVAL, move.result);
}

/* REMOVE with a value to match, but without TIMERWHEEL_MATCH: EINVAL */
TEST_F(element, remove_match_without_flag)
{
	struct timerwheel_remove rem = { .key = 1, .match = 7 };

	EXPECT_EQ(-EINVAL, tw_remove_elem(self->fd, &rem));
}

/* ADD with TIMERWHEEL_MATCH and TIMERWHEEL_EXCL: EINVAL */
TEST_F(element, add_match_and_excl)
{
	EXPECT_EQ(-EINVAL, tw_add1_match(self->fd, 1, 2, HOUR, 7, TIMERWHEEL_EXCL));
	EXPECT_EQ(-EINVAL, tw_add1_match(self->fd, 2, 2, HOUR, 7, TIMERWHEEL_EXCL));
}

/* ADD with a period greater than TIMERWHEEL_TIME_MAX: EINVAL */
TEST_F(element, add_period_too_long)
{
	EXPECT_EQ(-EINVAL, tw_add1_periodic(self->fd, 1, 2, HOUR, TIMERWHEEL_TIME_MAX + 1, 0));
	EXPECT_EQ(-EINVAL, tw_add1_periodic(self->fd, 1, 2, HOUR, ~0ULL, 0));
}

/* ADD writes result, index and generation, and nothing else in the element or next to it */
TEST_F(element, add_writes)
{
	struct timerwheel_add add[3], copy[3];

	tw_poison(add, sizeof(add));
	add[1] = (struct timerwheel_add){
		.key = 5, .value = 6, .deadline = HOUR, .period = HOUR, .slack = 8 * MSEC,
		.flags = TIMERWHEEL_SLACK,
	};
	tw_poison(&add[1].result, 4);
	tw_poison(&add[1].index, 4);
	tw_poison(&add[1].generation, 4);
	memcpy(copy, add, sizeof(copy));
	ASSERT_EQ(1, dev_add(self->fd, &add[1], 1));
	EXPECT_EQ(0, add[1].result);
	EXPECT_FALSE(tw_poisoned(&add[1].index, 4));
	EXPECT_FALSE(tw_poisoned(&add[1].generation, 4));
	add[1].result = copy[1].result;
	add[1].index = copy[1].index;
	add[1].generation = copy[1].generation;
	EXPECT_EQ(0, memcmp(add, copy, sizeof(copy)));
	self->before = look(self->fd);
}

/* MOVE writes the result, and nothing else in the element or next to it */
TEST_F(element, move_writes)
{
	struct timerwheel_move move[3], copy[3];

	tw_poison(move, sizeof(move));
	move[1] = (struct timerwheel_move){
		.key = 1, .deadline = HOUR, .match = 7, .flags = TIMERWHEEL_MATCH,
	};
	tw_poison(&move[1].result, 4);
	memcpy(copy, move, sizeof(copy));
	ASSERT_EQ(1, dev_move(self->fd, &move[1], 1));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, move[1].result);
	move[1].result = copy[1].result;
	EXPECT_EQ(0, memcmp(move, copy, sizeof(copy)));
	self->before = look(self->fd);
}

/* REMOVE writes value, left and result, and nothing else in the element or next to it */
TEST_F(element, remove_writes)
{
	struct timerwheel_remove rem[3], copy[3];

	tw_poison(rem, sizeof(rem));
	rem[1] = (struct timerwheel_remove){ .key = 1, .match = 7, .flags = TIMERWHEEL_MATCH };
	tw_poison(&rem[1].value, 16);
	tw_poison(&rem[1].result, 4);
	memcpy(copy, rem, sizeof(copy));
	ASSERT_EQ(1, dev_remove(self->fd, &rem[1], 1));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, rem[1].result);
	EXPECT_EQ(7, rem[1].value);
	EXPECT_EQ(HOUR, rem[1].left);
	rem[1].value = copy[1].value;
	rem[1].left = copy[1].left;
	rem[1].result = copy[1].result;
	EXPECT_EQ(0, memcmp(rem, copy, sizeof(copy)));
	self->before = look(self->fd);
}

/* MOVE by handle writes the result in the generation's place, and nothing else */
TEST_F(element, move_handle_writes)
{
	struct timerwheel_move_handle move[3], copy[3];

	tw_poison(move, sizeof(move));
	move[1].deadline = HOUR;
	move[1].index = self->add.index;
	move[1].generation = self->add.generation;
	memcpy(copy, move, sizeof(copy));
	ASSERT_EQ(1, dev_move_handle(self->fd, 0, &move[1], 1));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, move[1].result);
	move[1].generation = copy[1].generation;
	EXPECT_EQ(0, memcmp(move, copy, sizeof(copy)));
	self->before = look(self->fd);
}

/* REMOVE by handle writes value and result, and nothing else; without a timer only the result */
TEST_F(element, remove_handle_writes)
{
	struct timerwheel_remove_handle rem[3], copy[3];
	__u32 i;

	tw_poison(rem, sizeof(rem));
	for (i = 0; i < 2; i++) {
		rem[1].index = self->add.index;
		rem[1].generation = self->add.generation;
		tw_poison(&rem[1].value, 8);
		memcpy(copy, rem, sizeof(copy));
		ASSERT_EQ(1, dev_remove_handle(self->fd, &rem[1], 1));
		EXPECT_EQ(i ? -ENOENT : TIMERWHEEL_WAS_PENDING, rem[1].result);
		if (!i) {
			EXPECT_EQ(7, rem[1].value);
			rem[1].value = copy[1].value;
		}
		rem[1].generation = copy[1].generation;
		EXPECT_EQ(0, memcmp(rem, copy, sizeof(copy)));
	}
	self->before = look(self->fd);
}

TEST_HARNESS_MAIN
