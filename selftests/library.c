// SPDX-License-Identifier: GPL-2.0
/*
 * libtimerwheel: tests every function and every documented error on both back ends.
 * library_queue.c, library_resident.c and library_random.c test the queue, resident timers and
 * random operations.
 */
#include "library.h"

/* ---- opening a wheel ------------------------------------------------------------------------- */

/* The descriptor that the next open() returns */
static int next_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* Open a wheel and close it. No descriptor may stay open. */
static int try_open(const struct timerwheel_config *config)
{
	struct timerwheel *wheel = NULL;
	int next = next_fd(), err = timerwheel_open(&wheel, config);

	if (!err && !wheel)
		return -EPROTO;
	if (err && wheel)
		return -EPROTO;
	timerwheel_close(wheel);
	return next_fd() == next ? err : -EPROTO;
}

TEST(open_invalid)
{
	static const struct timerwheel_config wrong[] = {
		{ .backend = (enum timerwheel_backend)7 },
		{ .clock = TIMERWHEEL_CLOCK_MANUAL + 1 },
		{ .tick = 999 },
		{ .tick = HOUR + 1 },
		{ .slots = 7 },
		{ .slots = 4097 },
		{ .capacity = (1U << 27) + 1 },
		{ .slack = TIMERWHEEL_TIME_MAX + 1 },
		{ .wake_ns = TIMERWHEEL_TIME_MAX + 1 },
		{ .wake_events = 2 },
		{ .ring = TIMERWHEEL_RING_MAX + 1 },
		{ .clock_set = true },
		{ .alarm = true },
	};
	struct timerwheel_config config;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		config = wrong[i];
		if (!config.backend)
			config.backend = BACKEND;
		EXPECT_EQ(-EINVAL, try_open(&config)) TH_LOG("configuration %zu", i);
	}
}

TEST(open_limits)
{
	static const struct timerwheel_config right[] = {
		{ 0 },
		{ .clock = TIMERWHEEL_CLOCK_MANUAL, .tick = 1 },
		{ .clock = TIMERWHEEL_CLOCK_REALTIME, .tick = 1000 },
		{ .clock = TIMERWHEEL_CLOCK_BOOTTIME, .tick = HOUR },
		{ .slots = 8 },
		{ .slots = 4096, .table = true },
		{ .capacity = 1, .table = true },
		{ .capacity = 1U << 27, .table = true },
		{ .slack = TIMERWHEEL_TIME_MAX },
		{ .wake_events = 2, .wake_ns = TIMERWHEEL_TIME_MAX },
		{ .ring = 1 },
	};
	struct timerwheel_config config;
	size_t i;

	for (i = 0; i < sizeof(right) / sizeof(*right); i++) {
		config = right[i];
		config.backend = BACKEND;
		EXPECT_EQ(0, try_open(&config)) TH_LOG("configuration %zu", i);
	}
}

/* Only the kernel can report that the clock was set */
TEST(open_clock_set)
{
	struct timerwheel_config config = {
		.backend = BACKEND, .clock = TIMERWHEEL_CLOCK_REALTIME, .clock_set = true,
	};

	EXPECT_EQ(config.backend == TIMERWHEEL_BACKEND_DEVICE ? 0 : -ENOTSUP, try_open(&config));
}

/* The back end of a program that does not choose one, or -errno */
static int automatic(const char *backend, const char *device)
{
	struct timerwheel_config config = { .device = device };
	struct timerwheel *wheel;
	int ret;

	if (backend)
		setenv("TIMERWHEEL_BACKEND", backend, 1);
	else
		unsetenv("TIMERWHEEL_BACKEND");
	ret = timerwheel_open(&wheel, &config);
	if (ret)
		return ret;
	ret = timerwheel_backend(wheel);
	timerwheel_close(wheel);
	return ret;
}

TEST(open_automatic)
{
	/* Existing back ends. */
	EXPECT_EQ(BACKEND, automatic(ON_DEVICE ? NULL : "process", NULL));
	EXPECT_EQ(BACKEND, automatic(ON_DEVICE ? "auto" : "process", NULL));
	EXPECT_EQ(TIMERWHEEL_BACKEND_PROCESS, automatic("process", NULL));
	EXPECT_EQ(TIMERWHEEL_BACKEND_PROCESS, automatic(NULL, "/nowhere"));
	EXPECT_EQ(TIMERWHEEL_BACKEND_PROCESS, automatic("auto", "/nowhere"));
	EXPECT_EQ(-ENOENT, automatic("device", "/nowhere"));
	EXPECT_EQ(-EINVAL, automatic("kernel", NULL));
	EXPECT_EQ(-EINVAL, automatic("", NULL));
	/* A device that is not a wheel is an error, without a fallback to the process. */
	EXPECT_EQ(-ENOTTY, automatic(NULL, "/dev/null"));
	setenv("TIMERWHEEL_DEVICE", "/dev/null", 1);
	EXPECT_EQ(-ENOTTY, automatic("device", NULL));
	EXPECT_EQ(-ENOENT, automatic("device", "/nowhere"));
}

TEST(open_explicit)
{
	struct timerwheel_config config = {
		.backend = TIMERWHEEL_BACKEND_PROCESS, .device = "/nowhere",
	};

	/* The environment does not override the program's choice. */
	setenv("TIMERWHEEL_BACKEND", "device", 1);
	EXPECT_EQ(0, try_open(&config));
	setenv("TIMERWHEEL_BACKEND", "process", 1);
	config.backend = TIMERWHEEL_BACKEND_DEVICE;
	EXPECT_EQ(-ENOENT, try_open(&config));
}

TEST(open_no_device)
{
	struct sockaddr_un { sa_family_t family; char path[108]; } name = { AF_UNIX, "tw-socket" };
	char folder[] = "/tmp/tw-library.XXXXXX";
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	ASSERT_NE(NULL, mkdtemp(folder));
	ASSERT_EQ(0, chdir(folder));
	/* Opening a socket fails with ENXIO. */
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)&name, sizeof(name)));
	EXPECT_EQ(-ENXIO, automatic("device", "tw-socket"));
	EXPECT_EQ(TIMERWHEEL_BACKEND_PROCESS, automatic(NULL, "tw-socket"));
	unlink("tw-socket");
	rmdir(folder);
	close(fd);
}

/* The library returns the error of the system call that fails. */
TEST(open_refused)
{
	struct timerwheel_config config = { .backend = BACKEND };
	static const int errors[] = { ENFILE, EMFILE, ENODEV, EPERM, ENOMEM };
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		open_error = errors[i];
		EXPECT_EQ(-errors[i], try_open(&config));
	}
	open_error = 0;
	EXPECT_EQ(0, try_open(&config));
}

TEST(open_forbidden)
{
	char file[] = "/tmp/tw-library.XXXXXX";
	int fd = mkstemp(file);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fchmod(fd, 0));
	if (!geteuid())
		ASSERT_EQ(0, seteuid(65534));
	EXPECT_EQ(-EACCES, automatic(NULL, file));
	EXPECT_EQ(-EACCES, automatic("device", file));
	if (!getuid())
		ASSERT_EQ(0, seteuid(0));
	unlink(file);
	close(fd);
}

TEST(open_no_descriptor)
{
	struct timerwheel_config config = { .backend = BACKEND };
	int next = dup(0);
	struct rlimit limit;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	close(next);
	limit.rlim_cur = next;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_EQ(-EMFILE, try_open(&config));
	limit.rlim_cur = next + 1;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_EQ(0, try_open(&config));
}

TEST(open_no_memory)
{
	struct timerwheel_config config = { .backend = BACKEND, .table = true, .ring = 16 };
	int n, next = dup(0);

	close(next);
	for (n = 0; n < 10; n++) {
		fail_allocation = n;
		if (!try_open(&config))
			break;
		EXPECT_EQ(-1, fail_allocation);
		/* mmap() fails with EAGAIN if too much memory is locked */
		fail_allocation = n;
		allocation_error = EAGAIN;
		EXPECT_EQ(-ENOMEM, try_open(&config));
		allocation_error = ENOMEM;
	}
	/* The wheel itself and the table; with a device also the ring. */
	EXPECT_EQ(ON_DEVICE ? 3 : 2, n);
	fail_allocation = -1;
	/* No descriptor stays open, and no memory leaks. */
	EXPECT_EQ(next, dup(0));
	EXPECT_EQ(false, leaks());
}

/* Started programs do not inherit the descriptor. */
TEST(open_cloexec)
{
	struct timerwheel *wheel = wheel_of(TIMERWHEEL_CLOCK_MONOTONIC);

	ASSERT_NE(NULL, wheel);
	EXPECT_EQ(FD_CLOEXEC, fcntl(timerwheel_fd(wheel), F_GETFD));
	timerwheel_close(wheel);
}

TEST(close_nothing)
{
	timerwheel_close(NULL);
	timerwheel_queue_free(NULL);
}

TEST(info)
{
	struct timerwheel_config config = {
		.backend = BACKEND, .clock = TIMERWHEEL_CLOCK_MANUAL, .tick = 5000000,
		.capacity = 77, .slack = 3 * SEC,
	};
	struct timerwheel_info info;
	struct timerwheel *wheel;

	ASSERT_EQ(0, timerwheel_open(&wheel, &config));
	EXPECT_EQ(BACKEND, timerwheel_backend(wheel));
	poison(&info, sizeof(info));
	ASSERT_EQ(0, timerwheel_info(wheel, &info));
	EXPECT_EQ(sizeof(info), info.size);
	EXPECT_EQ(TIMERWHEEL_ABI_VERSION, info.abi_version);
	EXPECT_EQ(TIMERWHEEL_BATCH_MAX, info.batch_max);
	EXPECT_EQ(TIMERWHEEL_INFO_SETTLED, info.flags);
	EXPECT_EQ(TIMERWHEEL_FEATURE_HANDLE,
		  info.features & ~(TIMERWHEEL_FEATURE_TABLE | TIMERWHEEL_FEATURE_SOCKET |
				    TIMERWHEEL_FEATURE_URING));
#ifdef PROCESS
	EXPECT_FALSE(info.features & (TIMERWHEEL_FEATURE_SOCKET | TIMERWHEEL_FEATURE_URING));
#endif
	EXPECT_EQ(0, info.errata);
	EXPECT_EQ(1000, info.tick_min);
	EXPECT_EQ(HOUR, info.tick_max);
	EXPECT_EQ(8, info.slots_min);
	EXPECT_EQ(4096, info.slots_max);
	EXPECT_EQ(1U << 27, info.capacity_max);
	EXPECT_EQ(TIMERWHEEL_RING_MAX, info.ring_max);
	EXPECT_EQ(sizeof(struct timerwheel_event), info.event_size);
	EXPECT_EQ(sizeof(struct timerwheel_event), info.event_size_max);
	EXPECT_EQ(TIMERWHEEL_CLOCK_MANUAL, info.clock);
	EXPECT_EQ(5000000, info.tick);
	EXPECT_EQ(77, info.capacity);
	EXPECT_EQ(3 * SEC, info.slack);
	EXPECT_EQ(1, info.wake_events);
	EXPECT_EQ(0, info.wake_ns);
	EXPECT_EQ(20, info.generation_bits);
	EXPECT_EQ(0, info.ring);
	EXPECT_EQ(0, info.now);
	EXPECT_EQ(ON_DEVICE ? 256 : 0, info.slots);
	EXPECT_EQ(9, timerwheel_advance(wheel, 9, 0) + 9);
	ASSERT_EQ(0, timerwheel_info(wheel, &info));
	EXPECT_EQ(9, info.now);
	EXPECT_EQ(9, timerwheel_now(wheel));
	EXPECT_EQ(0, timerwheel_drain(wheel, NULL, 0, TIMERWHEEL_DRAIN_CLOSE));
	ASSERT_EQ(0, timerwheel_info(wheel, &info));
	EXPECT_EQ(TIMERWHEEL_INFO_SETTLED | TIMERWHEEL_INFO_CLOSED, info.flags);
	timerwheel_close(wheel);
}

TEST(errors_in_words)
{
	static const int all[] = {
		0, EINVAL, E2BIG, EFAULT, ENOENT, ENXIO, ENODEV, EEXIST, ESTALE, ENOSPC, EDQUOT,
		EMLINK, ENOMEM, EMFILE, ENFILE, EACCES, EPERM, EBUSY, ESHUTDOWN, EAGAIN, EINTR,
		ENOTTY, EBADF, EPROTO, ENOTSUP, EXDEV, ENOTSOCK, ENOTCONN,
	};
	const char *other = timerwheel_strerror(ECHILD), *text;
	size_t i;

	ASSERT_NE(NULL, other);
	EXPECT_EQ(other, timerwheel_strerror(1000000));
	EXPECT_EQ(other, timerwheel_strerror(INT_MIN));
	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		text = timerwheel_strerror(-all[i]);
		ASSERT_NE(NULL, text);
		EXPECT_EQ(text, timerwheel_strerror(all[i]));
		EXPECT_NE(text, other) TH_LOG("error %d", all[i]);
		EXPECT_LT(5, strlen(text));
		EXPECT_NE('.', text[strlen(text) - 1]);
		/* The text is for users of a program, so it names no function. */
		EXPECT_EQ(NULL, strstr(text, "()")) TH_LOG("%s", text);
		EXPECT_EQ(NULL, strstr(text, "timerwheel_")) TH_LOG("%s", text);
		while ((text = strstr(text, "TIMERWHEEL_"))) {
			EXPECT_EQ(0, strncmp(text, "TIMERWHEEL_BACKEND", 18)) TH_LOG("%s", text);
			EXPECT_NE('_', text[18]);
			text += 18;
		}
	}
}

/* ---- operations, on a wheel with a MANUAL clock ---------------------------------------------- */

enum { CAPACITY = 64 };

FIXTURE(wheel)
{
	struct timerwheel *w;
};

FIXTURE_SETUP(wheel)
{
	self->w = wheel_manual(CAPACITY, 0);
	ASSERT_NE(NULL, self->w);
}

FIXTURE_TEARDOWN(wheel)
{
	EXPECT_EQ(true, balanced(self->w));
	timerwheel_close(self->w);
	EXPECT_EQ(false, leaks());
}

TEST_F(wheel, add)
{
	struct timerwheel_add again, elem = { .key = 7, .value = 70, .deadline = 100 };
	struct timerwheel_entry entry;

	EXPECT_EQ(TIMERWHEEL_WAS_NONE, add_elem(self->w, &elem));
	EXPECT_LT(0, elem.index);
	EXPECT_LT(0, elem.generation);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 7, &entry));
	EXPECT_EQ(elem.index, entry.index);
	EXPECT_EQ(elem.generation, entry.generation);

	/* Replaced while pending and while due: index and generation stay. */
	again = elem;
	again.value = 71;
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, add_elem(self->w, &again));
	EXPECT_EQ(elem.index, again.index);
	EXPECT_EQ(elem.generation, again.generation);
	EXPECT_EQ(1, timerwheel_advance(self->w, 100, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, add_elem(self->w, &again));
	EXPECT_EQ(elem.index, again.index);
	EXPECT_EQ(elem.generation, again.generation);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 7, &entry));
	EXPECT_EQ(71, entry.value);
	EXPECT_EQ(200, entry.deadline);
}

TEST_F(wheel, add_at_once)
{
	struct timerwheel_event ev[3];

	/* Now and in the past: due at once. */
	EXPECT_EQ(0, timerwheel_advance(self->w, 50, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, add(self->w, 1, 10, 0, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, add(self->w, 2, 20, 40, TIMERWHEEL_ABS));
	EXPECT_EQ(true, readable(self->w));
	ASSERT_EQ(2, take(self->w, ev, 3));
	EXPECT_EQ(1, ev[0].key);
	EXPECT_EQ(50, ev[0].deadline);
	EXPECT_EQ(2, ev[1].key);
	EXPECT_EQ(40, ev[1].deadline);
	EXPECT_EQ(50, ev[1].fired);
	EXPECT_EQ(false, readable(self->w));
}

TEST_F(wheel, add_deadlines)
{
	struct timerwheel_entry entry;

	EXPECT_EQ(0, timerwheel_advance(self->w, 1000, 0));
	EXPECT_EQ(0, add(self->w, 1, 0, 5, 0));
	EXPECT_EQ(1, get(self->w, 1, &entry));
	EXPECT_EQ(1005, entry.deadline);
	EXPECT_EQ(1, add(self->w, 1, 0, 1007, TIMERWHEEL_ABS));
	EXPECT_EQ(1, get(self->w, 1, &entry));
	EXPECT_EQ(1007, entry.deadline);
	EXPECT_EQ(1, add(self->w, 1, 0, INT64_MAX, 0));
	EXPECT_EQ(1, get(self->w, 1, &entry));
	EXPECT_EQ(TIMERWHEEL_TIME_MAX, entry.deadline);
	EXPECT_EQ(1, add(self->w, 1, 0, UINT64_MAX, TIMERWHEEL_ABS));
	EXPECT_EQ(1, get(self->w, 1, &entry));
	EXPECT_EQ(TIMERWHEEL_TIME_MAX, entry.deadline);
	EXPECT_EQ(TIMERWHEEL_TIME_MAX - 1000, entry.left);
}

/* The delay is then - now, and then is in the past */
TEST_F(wheel, negative_delays)
{
	static const struct { uint64_t time, deadline; } t[] = {
		{ -1, 999 }, { -1000, 0 }, { -1001, 0 }, { INT64_MIN, 0 },
	};
	struct timerwheel_event event;
	size_t i;

	EXPECT_EQ(-EINVAL, timerwheel_advance(self->w, -1, 0));
	EXPECT_EQ(0, timerwheel_advance(self->w, 1000, 0));
	EXPECT_EQ(-EINVAL, timerwheel_advance(self->w, -1, 0));
	EXPECT_EQ(-EINVAL, timerwheel_advance(self->w, INT64_MIN, 0));
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		EXPECT_EQ(0, add(self->w, 1, 0, t[i].time, 0));
		ASSERT_EQ(1, take(self->w, &event, 1));
		EXPECT_EQ(t[i].deadline, event.deadline);
		EXPECT_EQ(1000, event.fired);
		EXPECT_EQ(0, add(self->w, 1, 0, 5, 0));
		EXPECT_EQ(1, move(self->w, 1, t[i].time, 0));
		ASSERT_EQ(1, take(self->w, &event, 1));
		EXPECT_EQ(t[i].deadline, event.deadline);
	}
}

TEST_F(wheel, add_errors)
{
	const struct timerwheel_add wrong[] = {
		{ .key = 1, .flags = 1U << 4 },
		{ .key = 1, .flags = 1U << 31 },
		{ .key = 1, .flags = TIMERWHEEL_EXCL | TIMERWHEEL_MATCH },
		{ .key = 1, .period = TIMERWHEEL_TIME_MAX + 1 },
		{ .key = 1, .slack = 1 },
		{ .key = 1, .match = 1 },
	};
	struct timerwheel_add elem;
	struct timerwheel_entry entry;
	size_t i;

	ASSERT_EQ(0, add(self->w, 1, 10, 100, 0));
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		elem = wrong[i];
		EXPECT_EQ(-EINVAL, add_elem(self->w, &elem)) TH_LOG("element %zu", i);
		EXPECT_EQ(true, poisoned(&elem.index, 8));
	}
	EXPECT_EQ(-EEXIST, add(self->w, 1, 11, 200, TIMERWHEEL_EXCL));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, add(self->w, 2, 11, 200, TIMERWHEEL_EXCL));
	elem = (struct timerwheel_add){ .key = 1, .value = 12, .match = 9,
					.flags = TIMERWHEEL_MATCH };
	EXPECT_EQ(-ESTALE, add_elem(self->w, &elem));
	EXPECT_EQ(true, poisoned(&elem.index, 8));
	elem.key = 3;
	EXPECT_EQ(-ENOENT, add_elem(self->w, &elem));
	/* The timer has not changed. */
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(10, entry.value);
	EXPECT_EQ(100, entry.deadline);
	elem.key = 1;
	elem.match = 10;
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, add_elem(self->w, &elem));
}

TEST_F(wheel, add_full)
{
	uint64_t key;

	for (key = 0; key < CAPACITY; key++)
		ASSERT_EQ(0, add(self->w, key, 0, HOUR, 0));
	EXPECT_EQ(-ENOSPC, add(self->w, key, 0, HOUR, 0));
	/* Replacing a timer needs no room, and removing one makes room. */
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, add(self->w, 3, 0, HOUR, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, rm(self->w, 3));
	EXPECT_EQ(0, add(self->w, key, 0, HOUR, 0));
	EXPECT_EQ(-ENOSPC, add(self->w, 3, 0, HOUR, 0));
}

TEST_F(wheel, move)
{
	struct timerwheel_move elem = { .key = 1, .deadline = 5, .match = 11 };
	struct timerwheel_entry entry;
	struct timerwheel_event ev;

	ASSERT_EQ(0, add(self->w, 1, 10, 100, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, move(self->w, 1, 300, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, move(self->w, 1, 50, TIMERWHEEL_ABS));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(50, entry.deadline);
	EXPECT_EQ(10, entry.value);
	EXPECT_EQ(1, timerwheel_advance(self->w, 50, 0));
	EXPECT_EQ(true, readable(self->w));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, move(self->w, 1, 50, 0));
	EXPECT_EQ(false, readable(self->w));
	EXPECT_EQ(0, take(self->w, &ev, 1));

	EXPECT_EQ(-ENOENT, move(self->w, 2, 50, 0));
	EXPECT_EQ(-EINVAL, move(self->w, 1, 50, TIMERWHEEL_EXCL));
	EXPECT_EQ(1, timerwheel_move(self->w, &elem, 1));
	EXPECT_EQ(-EINVAL, elem.result);
	elem.flags = TIMERWHEEL_MATCH;
	EXPECT_EQ(1, timerwheel_move(self->w, &elem, 1));
	EXPECT_EQ(-ESTALE, elem.result);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(100, entry.deadline);
	elem.match = 10;
	EXPECT_EQ(1, timerwheel_move(self->w, &elem, 1));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, elem.result);
}

TEST_F(wheel, remove)
{
	struct timerwheel_remove elem = { .key = 1 };
	struct timerwheel_event ev;

	ASSERT_EQ(0, add(self->w, 1, 10, 100, 0));
	ASSERT_EQ(0, add(self->w, 2, 20, 30, 0));
	ASSERT_EQ(1, timerwheel_advance(self->w, 30, 0));
	ASSERT_EQ(0, timerwheel_advance(self->w, 5, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, remove_elem(self->w, &elem));
	EXPECT_EQ(10, elem.value);
	EXPECT_EQ(65, elem.left);
	EXPECT_EQ(-ENOENT, remove_elem(self->w, &elem));
	EXPECT_EQ(true, poisoned(&elem.value, 16));
	elem.key = 2;
	elem.match = 21;
	EXPECT_EQ(-EINVAL, remove_elem(self->w, &elem));
	elem.flags = TIMERWHEEL_MATCH;
	EXPECT_EQ(-ESTALE, remove_elem(self->w, &elem));
	EXPECT_EQ(true, poisoned(&elem.value, 16));
	elem.flags = TIMERWHEEL_MATCH | TIMERWHEEL_ABS;
	EXPECT_EQ(-EINVAL, remove_elem(self->w, &elem));
	elem.flags = TIMERWHEEL_MATCH;
	elem.match = 20;
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, remove_elem(self->w, &elem));
	EXPECT_EQ(20, elem.value);
	EXPECT_EQ(-5, elem.left);
	EXPECT_EQ(0, take(self->w, &ev, 1));
	EXPECT_EQ(false, readable(self->w));
}

/* MOVE by handle: a pending, a due and a periodic timer */
TEST_F(wheel, move_handle)
{
	struct timerwheel_add elem = { .key = 1, .value = 10, .deadline = 100 };
	struct timerwheel_entry entry;
	struct timerwheel_event ev;

	ASSERT_EQ(0, add_elem(self->w, &elem));
#define MOVE(deadline, flags) \
	move_handle(self->w, elem.index, elem.generation, deadline, flags)
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(300, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(50, TIMERWHEEL_ABS));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(50, entry.deadline);
	EXPECT_EQ(10, entry.value);
	EXPECT_EQ(1, timerwheel_advance(self->w, 50, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, MOVE(50, 0));
	EXPECT_EQ(false, readable(self->w));
	EXPECT_EQ(0, take(self->w, &ev, 1));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(100, entry.deadline);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(80, TIMERWHEEL_ABS));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(-1, 0));
	EXPECT_EQ(true, readable(self->w));
	EXPECT_EQ(1, take(self->w, &ev, 1));
	EXPECT_EQ(49, ev.deadline);
	EXPECT_EQ(-ENOENT, MOVE(50, 0));

	elem.period = 7;
	ASSERT_EQ(0, add_elem(self->w, &elem));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(5, 0));
	EXPECT_EQ(1, timerwheel_advance(self->w, 5, 0));
	EXPECT_EQ(1, take(self->w, &ev, 1));
	EXPECT_EQ(TIMERWHEEL_EVENT_PERIODIC, ev.flags);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, MOVE(70, 0));
	EXPECT_EQ(0, timerwheel_advance(self->w, 69, 0));

	/* A flag for resident timers, and unknown flags: the call fails if it has an element. */
	EXPECT_EQ(-EINVAL, MOVE(50, TIMERWHEEL_EXCL));
	EXPECT_EQ(-10000 - EINVAL, MOVE(50, TIMERWHEEL_MATCH));
	EXPECT_EQ(-10000 - EINVAL, MOVE(50, 1U << 31));
	EXPECT_EQ(0, timerwheel_move_handles(self->w, NULL, 0, 0));
#undef MOVE
}

/* REMOVE by handle */
TEST_F(wheel, remove_handle)
{
	struct timerwheel_add elem = { .key = 1, .value = 10, .deadline = 100 }, due = elem;
	struct timerwheel_event ev;
	uint64_t value;

	due.key = 2;
	due.value = 20;
	due.deadline = 30;
	ASSERT_EQ(0, add_elem(self->w, &elem));
	ASSERT_EQ(0, add_elem(self->w, &due));
	ASSERT_EQ(1, timerwheel_advance(self->w, 30, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING,
		  rm_handle(self->w, elem.index, elem.generation, &value));
	EXPECT_EQ(10, value);
	EXPECT_EQ(-ENOENT, rm(self->w, 1));
	EXPECT_EQ(-ENOENT, rm_handle(self->w, elem.index, elem.generation, &value));
	EXPECT_EQ(true, poisoned(&value, sizeof(value)));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, rm_handle(self->w, due.index, due.generation, &value));
	EXPECT_EQ(20, value);
	EXPECT_EQ(0, take(self->w, &ev, 1));
	EXPECT_EQ(false, readable(self->w));
	EXPECT_EQ(0, timerwheel_remove_handles(self->w, NULL, 0));
}

/* Handles that no timer has, and a handle whose index has another owner: no timer changes */
TEST_F(wheel, stale_handles)
{
	struct timerwheel_add elem = { .key = 1, .value = 10, .deadline = 100 }, next;
	static const uint32_t none[] = { 0, 3, 64, 65, 1U << 27, 1U << 31, ~0U };
	struct timerwheel_entry before, after;
	uint64_t value;
	size_t i;

	for (i = 0; i < sizeof(none) / sizeof(*none); i++) {
		EXPECT_EQ(-ENOENT, move_handle(self->w, none[i], 1, 5, 0));
		EXPECT_EQ(-ENOENT, rm_handle(self->w, none[i], 0, &value));
	}
	ASSERT_EQ(0, add_elem(self->w, &elem));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, rm(self->w, 1));
	EXPECT_EQ(-ENOENT, move_handle(self->w, elem.index, elem.generation, 5, 0));
	next = elem;
	next.key = 2;
	ASSERT_EQ(0, add_elem(self->w, &next));
	ASSERT_EQ(elem.index, next.index);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 2, &before));
	EXPECT_EQ(-ENOENT, move_handle(self->w, elem.index, elem.generation, 5, 0));
	EXPECT_EQ(-ENOENT, rm_handle(self->w, elem.index, elem.generation, &value));
	EXPECT_EQ(true, poisoned(&value, sizeof(value)));
	EXPECT_EQ(-ENOENT, rm_handle(self->w, next.index, next.generation + 1, &value));
	EXPECT_EQ(-ENOENT, rm_handle(self->w, next.index, next.generation | 1U << 31, &value));
	for (i = 0; i < sizeof(none) / sizeof(*none); i++) {
		EXPECT_EQ(-ENOENT, move_handle(self->w, none[i], next.generation, 5, 0));
		EXPECT_EQ(-ENOENT, rm_handle(self->w, none[i], next.generation, &value));
	}
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 2, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	/* ADD of the same key: the handle stays valid. */
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, add(self->w, 2, 30, 100, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING,
		  rm_handle(self->w, next.index, next.generation, &value));
	EXPECT_EQ(30, value);
}

TEST_F(wheel, get)
{
	struct timerwheel_add elem = {
		.key = 5, .value = 50, .deadline = 100, .period = 33, .slack = 12,
		.flags = TIMERWHEEL_SLACK,
	};
	struct timerwheel_entry entry;

	ASSERT_EQ(0, add_elem(self->w, &elem));
	EXPECT_EQ(0, timerwheel_advance(self->w, 40, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 5, &entry));
	EXPECT_EQ(5, entry.key);
	EXPECT_EQ(50, entry.value);
	EXPECT_EQ(100, entry.deadline);
	EXPECT_EQ(60, entry.left);
	EXPECT_EQ(33, entry.period);
	EXPECT_EQ(12, entry.slack);
	EXPECT_EQ(0, entry.flags);
	EXPECT_EQ(elem.index, entry.index);
	EXPECT_EQ(elem.generation, entry.generation);
	EXPECT_EQ(1, timerwheel_advance(self->w, 100, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, get(self->w, 5, &entry));
	EXPECT_EQ(100, entry.deadline);
	EXPECT_EQ(-40, entry.left);

	EXPECT_EQ(-ENOENT, get(self->w, 6, &entry));
	EXPECT_EQ(true, poisoned(&entry.value, offsetof(struct timerwheel_entry, flags) - 8));
	entry = (struct timerwheel_entry){ .key = 5, .flags = 1 };
	EXPECT_EQ(1, timerwheel_get(self->w, &entry, 1));
	EXPECT_EQ(-EINVAL, entry.result);
}

TEST_F(wheel, one_bad_element)
{
	struct timerwheel_add elem[3] = {
		{ .key = 1, .deadline = 5 },
		{ .key = 2, .flags = ~0U },
		{ .key = 3, .deadline = 6 },
	};

	EXPECT_EQ(3, timerwheel_add(self->w, elem, 3));
	EXPECT_EQ(0, elem[0].result);
	EXPECT_EQ(-EINVAL, elem[1].result);
	EXPECT_EQ(0, elem[2].result);
	EXPECT_EQ(2, timerwheel_advance(self->w, 10, 0));
	EXPECT_EQ(0, timerwheel_add(self->w, elem, 0));
	EXPECT_EQ(0, timerwheel_move(self->w, NULL, 0));
	EXPECT_EQ(0, timerwheel_remove(self->w, NULL, 0));
	EXPECT_EQ(0, timerwheel_get(self->w, NULL, 0));
}

TEST_F(wheel, list)
{
	struct timerwheel_entry page[4];
	unsigned char seen[40] = { 0 };
	uint64_t cursor = 0, key;
	long n, i, total = 0;

	for (key = 0; key < 40; key++)
		ASSERT_EQ(0, add(self->w, key, key + 1000, key < 3 ? 0 : HOUR, 0));
	do {
		poison(page, sizeof(page));
		n = timerwheel_list(self->w, page, 3, &cursor);
		ASSERT_LE(0, n);
		ASSERT_EQ(true, poisoned(page + n, sizeof(page) - n * sizeof(*page)));
		for (i = 0; i < n; i++) {
			key = page[i].key;
			/* Every fourth timer is removed and added again in the meantime. */
			if (key >= 40)
				continue;
			seen[key]++;
			EXPECT_EQ(key + 1000, page[i].value);
			EXPECT_EQ(key < 3 ? TIMERWHEEL_WAS_DUE : TIMERWHEEL_WAS_PENDING,
				  page[i].result);
			EXPECT_EQ(key < 3 ? 0 : HOUR, page[i].deadline);
		}
		total += n;
		key = total % 40 / 4 * 4;
		if (rm(self->w, key) > 0)
			add(self->w, key + 100, 0, HOUR, 0);
	} while (n);
	for (key = 0; key < 40; key++)
		if (key % 4)
			EXPECT_EQ(1, seen[key]) TH_LOG("key %d", (int)key);
	EXPECT_EQ(0, timerwheel_list(self->w, page, 3, &cursor));
	EXPECT_EQ(0, timerwheel_list(self->w, page, 0, &cursor));
}

TEST_F(wheel, drain)
{
	struct timerwheel_entry page[8];
	uint64_t key, seen = 0;
	long n, i;

	for (key = 0; key < 20; key++)
		ASSERT_EQ(0, add(self->w, key, key + 1000, key < 3 ? 0 : HOUR, 0));
	do {
		poison(page, sizeof(page));
		n = timerwheel_drain(self->w, page, 7, 0);
		ASSERT_LE(0, n);
		ASSERT_EQ(true, poisoned(page + n, sizeof(page) - n * sizeof(*page)));
		for (i = 0; i < n; i++) {
			key = page[i].key;
			EXPECT_EQ(0, seen & 1 << key);
			seen |= 1 << key;
			EXPECT_EQ(key + 1000, page[i].value);
			EXPECT_EQ(key < 3 ? 0 : HOUR, page[i].left);
			EXPECT_EQ(key < 3 ? TIMERWHEEL_WAS_DUE : TIMERWHEEL_WAS_PENDING,
				  page[i].result);
		}
	} while (n);
	EXPECT_EQ((1 << 20) - 1, seen);
	EXPECT_EQ(false, readable(self->w));
	EXPECT_EQ(-EINVAL, timerwheel_drain(self->w, page, 8, 2));
	/* The wheel is still open for ADD. */
	EXPECT_EQ(0, add(self->w, 1, 0, HOUR, 0));
}

TEST_F(wheel, drain_close)
{
	struct timerwheel_entry page[4];

	ASSERT_EQ(0, add(self->w, 1, 0, 10, 0));
	ASSERT_EQ(0, add(self->w, 2, 0, 20, 0));
	EXPECT_EQ(1, timerwheel_drain(self->w, page, 1, TIMERWHEEL_DRAIN_CLOSE));
	EXPECT_EQ(-ESHUTDOWN, add(self->w, 3, 0, HOUR, 0));
	/* This also applies to an existing timer, and to an ADD that would otherwise fail. */
	EXPECT_EQ(-ESHUTDOWN, add(self->w, 2, 0, HOUR, 0));
	EXPECT_EQ(-ESHUTDOWN, add(self->w, 2, 0, HOUR, TIMERWHEEL_EXCL));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, move(self->w, 2, 30, 0));
	EXPECT_EQ(1, timerwheel_drain(self->w, page, 4, 0));
	EXPECT_EQ(0, timerwheel_drain(self->w, page, 4, 0));
}

TEST_F(wheel, advance)
{
	static const uint64_t when[] = { 30, 10, 20, 10, 40, 1000 };
	struct timerwheel_event ev[8];
	uint64_t key, last = 0;
	long i;

	for (key = 0; key < 6; key++)
		ASSERT_EQ(0, add(self->w, key, 0, when[key], TIMERWHEEL_ABS));
	EXPECT_EQ(0, timerwheel_advance(self->w, 9, 0));
	EXPECT_EQ(5, timerwheel_advance(self->w, 100, TIMERWHEEL_ABS));
	EXPECT_EQ(100, timerwheel_now(self->w));
	EXPECT_EQ(0, timerwheel_advance(self->w, 100, TIMERWHEEL_ABS));
	EXPECT_EQ(-EINVAL, timerwheel_advance(self->w, 99, TIMERWHEEL_ABS));
	EXPECT_EQ(-EINVAL, timerwheel_advance(self->w, 1, TIMERWHEEL_MATCH));
	EXPECT_EQ(100, timerwheel_now(self->w));
	/* Timers fire in order, each at its own time. */
	ASSERT_EQ(5, take(self->w, ev, 8));
	for (i = 0; i < 5; i++) {
		EXPECT_LE(last, ev[i].fired);
		EXPECT_EQ(ev[i].deadline, ev[i].fired);
		EXPECT_EQ(when[ev[i].key], ev[i].deadline);
		last = ev[i].fired;
	}
	/* Time stops at its maximum. */
	EXPECT_EQ(1, timerwheel_advance(self->w, INT64_MAX, 0));
	EXPECT_EQ(TIMERWHEEL_TIME_MAX, timerwheel_now(self->w));
}

TEST_F(wheel, take)
{
	struct timerwheel_event ev[8];
	struct timerwheel_add elem = { .key = 1, .value = 10, .deadline = 5 };

	EXPECT_EQ(false, readable(self->w));
	EXPECT_EQ(0, take(self->w, ev, 8));
	ASSERT_EQ(0, add_elem(self->w, &elem));
	ASSERT_EQ(0, add(self->w, 2, 20, 6, 0));
	ASSERT_EQ(0, add(self->w, 3, 30, 7, 0));
	EXPECT_EQ(false, readable(self->w));
	EXPECT_EQ(3, timerwheel_advance(self->w, 50, 0));
	EXPECT_EQ(true, readable(self->w));
	EXPECT_EQ(0, timerwheel_take(self->w, NULL, 0));
	ASSERT_EQ(1, take(self->w, ev, 1));
	EXPECT_EQ(1, ev[0].key);
	EXPECT_EQ(10, ev[0].value);
	EXPECT_EQ(5, ev[0].deadline);
	EXPECT_EQ(5, ev[0].fired);
	EXPECT_EQ(0, ev[0].overruns);
	EXPECT_EQ(0, ev[0].flags);
	EXPECT_EQ(elem.index, ev[0].index);
	/* The remaining events are still reported. */
	EXPECT_EQ(true, readable(self->w));
	ASSERT_EQ(2, take(self->w, ev, 8));
	EXPECT_EQ(2, ev[0].key);
	EXPECT_EQ(3, ev[1].key);
	EXPECT_EQ(0, take(self->w, ev, 8));
	EXPECT_EQ(false, readable(self->w));
	EXPECT_EQ(-ENOENT, rm(self->w, 1));
}

TEST_F(wheel, periodic)
{
	struct timerwheel_add elem = { .key = 1, .deadline = 100, .period = 30 };
	struct timerwheel_entry entry;
	struct timerwheel_event ev[4];

	ASSERT_EQ(0, add_elem(self->w, &elem));
	/* Due once, however many periods have passed. */
	EXPECT_EQ(1, timerwheel_advance(self->w, 175, TIMERWHEEL_ABS));
	ASSERT_EQ(1, take(self->w, ev, 4));
	EXPECT_EQ(TIMERWHEEL_EVENT_PERIODIC, ev[0].flags);
	EXPECT_EQ(100, ev[0].deadline);
	EXPECT_EQ(100, ev[0].fired);
	EXPECT_EQ(2, ev[0].overruns);
	EXPECT_EQ(elem.index, ev[0].index);
	/* The period does not drift. */
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(190, entry.deadline);
	EXPECT_EQ(elem.generation, entry.generation);
	EXPECT_EQ(1, timerwheel_advance(self->w, 190, TIMERWHEEL_ABS));
	ASSERT_EQ(1, take(self->w, ev, 4));
	EXPECT_EQ(190, ev[0].deadline);
	EXPECT_EQ(0, ev[0].overruns);
	/* One event per call, however short the period. */
	elem.period = 1;
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, add_elem(self->w, &elem));
	EXPECT_EQ(1, timerwheel_advance(self->w, SEC, 0));
	EXPECT_EQ(1, take(self->w, ev, 4));
	EXPECT_EQ(SEC - 100, ev[0].overruns);
	EXPECT_EQ(0, take(self->w, ev, 4));
	/* A period whose next deadline is never reached. */
	elem.period = TIMERWHEEL_TIME_MAX;
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, add_elem(self->w, &elem));
	EXPECT_EQ(1, timerwheel_advance(self->w, 100, 0));
	EXPECT_EQ(1, take(self->w, ev, 4));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(TIMERWHEEL_TIME_MAX, entry.deadline);
}

TEST_F(wheel, stats)
{
	struct timerwheel_add elem = { .key = 1, .deadline = 10, .period = 10 };
	struct timerwheel_stats s;
	struct timerwheel_entry entry;
	struct timerwheel_event ev[4];

	ASSERT_EQ(0, add_elem(self->w, &elem));
	ASSERT_EQ(0, add(self->w, 2, 0, 20, 0));
	ASSERT_EQ(0, add(self->w, 3, 0, 20, 0));
	ASSERT_EQ(0, add(self->w, 4, 0, HOUR, 0));
	ASSERT_EQ(0, add(self->w, 5, 0, HOUR, 0));
	ASSERT_EQ(1, add(self->w, 5, 0, HOUR, 0));
	ASSERT_EQ(3, timerwheel_advance(self->w, 25, 0));
	ASSERT_EQ(TIMERWHEEL_WAS_DUE, rm(self->w, 2));
	ASSERT_EQ(TIMERWHEEL_WAS_DUE, move(self->w, 3, HOUR, 0));
	ASSERT_EQ(1, take(self->w, ev, 4));
	ASSERT_EQ(1, timerwheel_drain(self->w, &entry, 1, 0));
	ASSERT_EQ(0, add(self->w, 6, 0, 0, 0));
	poison(&s, sizeof(s));
	ASSERT_EQ(0, timerwheel_stats(self->w, &s));
	EXPECT_EQ(sizeof(s), s.size);
	EXPECT_EQ(0, s.flags);
	EXPECT_EQ(3, s.pending);
	EXPECT_EQ(1, s.due);
	EXPECT_EQ(7, s.armed);
	EXPECT_EQ(1, s.rearmed);
	EXPECT_EQ(1, s.moved);
	EXPECT_EQ(1, s.removed);
	EXPECT_EQ(1, s.replaced);
	EXPECT_EQ(1, s.drained);
	EXPECT_EQ(1, s.delivered);
	EXPECT_EQ(1, s.overruns);
	EXPECT_EQ(2, s.withdrawn);
	EXPECT_EQ(0, s.late_max);
	EXPECT_EQ(4, s.lateness[0]);
	EXPECT_LT(0, s.memory);
	/* A lateness of 5 is in the bucket from 4 to 7. */
	ASSERT_EQ(0, add(self->w, 7, 0, 20, TIMERWHEEL_ABS));
	ASSERT_EQ(0, timerwheel_stats(self->w, &s));
	EXPECT_EQ(5, s.late_max);
	EXPECT_EQ(1, s.lateness[3]);
	/* The maximum stays, and the last bucket counts all larger values. */
	ASSERT_EQ(0, add(self->w, 8, 0, 22, TIMERWHEEL_ABS));
	ASSERT_EQ(0, timerwheel_stats(self->w, &s));
	EXPECT_EQ(5, s.late_max);
	ASSERT_EQ(3, timerwheel_advance(self->w, HOUR * 1000, 0));
	ASSERT_EQ(0, add(self->w, 9, 0, 0, TIMERWHEEL_ABS));
	ASSERT_EQ(0, timerwheel_stats(self->w, &s));
	EXPECT_EQ(HOUR * 1000 + 25, s.late_max);
	EXPECT_EQ(1, s.lateness[TIMERWHEEL_LATENESS_BUCKETS - 1]);
}

TEST_F(wheel, errno_stays)
{
	struct timerwheel_info info;
	struct timerwheel *other;
	struct timerwheel_config config = {
		.backend = TIMERWHEEL_BACKEND_DEVICE, .device = "/nowhere",
	};
	struct timerwheel_event ev;

	errno = 4711;
	EXPECT_EQ(-ENOENT, timerwheel_open(&other, &config));
	EXPECT_EQ(-EBADF, timerwheel_adopt(&other, -1, false));
	EXPECT_EQ(0, timerwheel_take(self->w, &ev, 1));
	EXPECT_EQ(0, timerwheel_wait(self->w, &ev, 1, MSEC));
	EXPECT_EQ(-EINVAL, timerwheel_advance(self->w, 0, ~0U));
	EXPECT_EQ(0, timerwheel_info(self->w, &info));
	EXPECT_GT(0, timerwheel_monitor(self->w, 0, ~0U));
	EXPECT_EQ(-EINVAL, timerwheel_drain(self->w, NULL, 0, ~0U));
	/* The library asks the device for a MANUAL clock's time. */
	fail_ioctl = ON_DEVICE ? 0 : -1;
	EXPECT_EQ(0, timerwheel_now(self->w));
	EXPECT_EQ(-1, fail_ioctl);
	EXPECT_EQ(4711, errno);
}

TEST_F(wheel, allocates_nothing)
{
	struct timerwheel_entry entry;
	struct timerwheel_event ev;
	struct timerwheel_queue *queue;
	uint64_t cursor = 0, key;

	ASSERT_EQ(0, timerwheel_queue_new(&queue, self->w, 0, NULL, NULL));
	/* The process back end allocates memory for timers as they are added. */
	ASSERT_EQ(0, add(self->w, 0, 0, HOUR, 0));
	allocations = 0;
	for (key = 0; key < 60; key++)
		EXPECT_LE(0, add(self->w, key, 0, HOUR, 0));
	move(self->w, 1, 2 * HOUR, 0);
	rm(self->w, 2);
	get(self->w, 3, &entry);
	timerwheel_list(self->w, &entry, 1, &cursor);
	timerwheel_drain(self->w, &entry, 1, 0);
	timerwheel_advance(self->w, HOUR, 0);
	timerwheel_wait(self->w, &ev, 1, MSEC);
	timerwheel_queue_move(queue, &(struct timerwheel_move){ .key = 1 });
	timerwheel_queue_flush(queue);
	EXPECT_EQ(0, allocations);
	timerwheel_queue_free(queue);
}

/* ---- the deadline table ---------------------------------------------------------------------- */

TEST(table_none)
{
	struct timerwheel *wheel = wheel_of(TIMERWHEEL_CLOCK_MANUAL);
	struct timerwheel_table table;

	ASSERT_NE(NULL, wheel);
	poison(&table, sizeof(table));
	EXPECT_EQ(-ENOENT, timerwheel_table(wheel, &table));
	EXPECT_EQ(true, poisoned(&table, sizeof(table)));
	timerwheel_close(wheel);
}

/* ---- the deadline table ---------------------------------------------------------------------- */

enum { UNIT = 4096 };		/* the clock has a tick of 1 ns */

FIXTURE(table)
{
	struct timerwheel *w;
	struct timerwheel_table table;
	struct timerwheel_add elem;
};

FIXTURE_SETUP(table)
{
	self->w = wheel_manual_of(CAPACITY, 0, true);
	ASSERT_NE(NULL, self->w);
	ASSERT_EQ(0, timerwheel_table(self->w, &self->table));
	EXPECT_EQ(UNIT, 1 << self->table.bits);
	self->elem = (struct timerwheel_add) { .key = 1, .value = 10, .deadline = 1 << 20 };
	ASSERT_EQ(0, add_elem(self->w, &self->elem));
}

FIXTURE_TEARDOWN(table)
{
	EXPECT_EQ(true, balanced(self->w));
	timerwheel_close(self->w);
	EXPECT_EQ(false, leaks());
}

static enum timerwheel_answer refresh(const struct timerwheel_table *table,
				      const struct timerwheel_add *elem, uint64_t deadline)
{
	return timerwheel_table_refresh(table, elem->index, elem->generation, deadline);
}

static enum timerwheel_answer arm(const struct timerwheel_table *table,
				  const struct timerwheel_add *elem, uint64_t deadline)
{
	return timerwheel_table_arm(table, elem->index, elem->generation, deadline);
}

static enum timerwheel_answer cancel(const struct timerwheel_table *table,
				     const struct timerwheel_add *elem)
{
	return timerwheel_table_cancel(table, elem->index, elem->generation);
}

#define REFRESH(elem, deadline)	refresh(&self->table, &(elem), deadline)
#define ARM(elem, deadline)	arm(&self->table, &(elem), deadline)
#define CANCEL(elem)		cancel(&self->table, &(elem))

TEST_F(table, refresh)
{
	struct timerwheel_entry entry;
	struct timerwheel_event ev;

	/* A later deadline is rounded up to 2^bits ns. An earlier one needs a call. */
	EXPECT_EQ(TIMERWHEEL_DONE, REFRESH(self->elem, (2 << 20) + 1));
	EXPECT_EQ(TIMERWHEEL_NEEDS_CALL, REFRESH(self->elem, 2 << 20));
	EXPECT_EQ(0, timerwheel_advance(self->w, 2 << 20, TIMERWHEEL_ABS));
	EXPECT_EQ(1, timerwheel_advance(self->w, (2 << 20) + UNIT, TIMERWHEEL_ABS));
	/* It has fired: a refresh is too late, before and after its event was taken. */
	EXPECT_EQ(TIMERWHEEL_TOO_LATE, REFRESH(self->elem, 9 << 20));
	ASSERT_EQ(1, take(self->w, &ev, 1));
	EXPECT_EQ((2 << 20) + UNIT, ev.deadline);
	EXPECT_EQ((2 << 20) + UNIT, ev.fired);
	EXPECT_EQ(TIMERWHEEL_TOO_LATE, REFRESH(self->elem, 9 << 20));
	EXPECT_EQ(TIMERWHEEL_TOO_LATE, CANCEL(self->elem));
	EXPECT_EQ(TIMERWHEEL_NEEDS_CALL, ARM(self->elem, 9 << 20));
	EXPECT_EQ(-ENOENT, move(self->w, 1, 9 << 20, 0));

	/* Its index has another owner, so a late operation has no effect. */
	ASSERT_EQ(0, add(self->w, 2, 20, 3 << 20, TIMERWHEEL_ABS));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 2, &entry));
	ASSERT_EQ(self->elem.index, entry.index);
	EXPECT_NE(self->elem.generation, entry.generation);
	EXPECT_EQ(TIMERWHEEL_GONE, REFRESH(self->elem, 9 << 20));
	EXPECT_EQ(1, timerwheel_advance(self->w, 3 << 20, TIMERWHEEL_ABS));
	ASSERT_EQ(1, take(self->w, &ev, 1));
	EXPECT_EQ(3 << 20, ev.deadline);
}

/* A cancelled timer has no event. It exists until it is removed, and can be armed again. */
TEST_F(table, cancel)
{
	struct timerwheel_entry entry;
	struct timerwheel_stats stats;
	struct timerwheel_event ev;

	EXPECT_EQ(TIMERWHEEL_DONE, CANCEL(self->elem));
	EXPECT_EQ(TIMERWHEEL_NOT_ARMED, CANCEL(self->elem));
	EXPECT_EQ(TIMERWHEEL_NOT_ARMED, REFRESH(self->elem, 9 << 20));
	EXPECT_EQ(TIMERWHEEL_NEEDS_CALL, ARM(self->elem, 1 << 19));
	EXPECT_EQ(TIMERWHEEL_DONE, ARM(self->elem, 2 << 20));
	EXPECT_EQ(TIMERWHEEL_DONE, CANCEL(self->elem));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, get(self->w, 1, &entry));
	EXPECT_EQ(0, timerwheel_advance(self->w, 3 << 20, TIMERWHEEL_ABS));
	EXPECT_EQ(0, take(self->w, &ev, 1));
	EXPECT_EQ(TIMERWHEEL_NEEDS_CALL, ARM(self->elem, 9 << 20));
	ASSERT_EQ(0, timerwheel_stats(self->w, &stats));
	EXPECT_EQ(1, stats.parked);
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, move(self->w, 1, 1 << 20, TIMERWHEEL_EXCL));
	EXPECT_EQ(-EEXIST, move(self->w, 1, 1 << 20, TIMERWHEEL_EXCL));
	EXPECT_EQ(1, timerwheel_advance(self->w, 4 << 20, TIMERWHEEL_ABS));
	ASSERT_EQ(1, take(self->w, &ev, 1));
	EXPECT_EQ(4 << 20, ev.deadline);
	EXPECT_EQ(-ENOENT, get(self->w, 1, &entry));

	ASSERT_EQ(0, add_elem(self->w, &self->elem));
	EXPECT_EQ(TIMERWHEEL_DONE, CANCEL(self->elem));
	EXPECT_EQ(0, timerwheel_advance(self->w, 9 << 20, TIMERWHEEL_ABS));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, rm(self->w, 1));
	EXPECT_EQ(TIMERWHEEL_GONE, ARM(self->elem, HOUR));
}

/* A late operation of a former owner has no effect, before and after the new owner's operations */
TEST_F(table, former_owner)
{
	struct timerwheel_add old = self->elem, now = { .key = 1, .deadline = 1 << 20 };
	struct timerwheel_event ev;
	int i;

	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, rm(self->w, 1));
	EXPECT_EQ(TIMERWHEEL_GONE, REFRESH(old, 6 << 20));
	ASSERT_EQ(0, add_elem(self->w, &now));
	ASSERT_EQ(old.index, now.index);
	for (i = 2; i < 5; i++) {
		EXPECT_EQ(TIMERWHEEL_GONE, REFRESH(old, 6 << 20));
		EXPECT_EQ(TIMERWHEEL_GONE, ARM(old, 6 << 20));
		EXPECT_EQ(TIMERWHEEL_GONE, CANCEL(old));
		EXPECT_EQ(TIMERWHEEL_DONE, REFRESH(now, i << 20));
	}
	EXPECT_EQ(0, timerwheel_advance(self->w, (4 << 20) - 1, TIMERWHEEL_ABS));
	EXPECT_EQ(1, timerwheel_advance(self->w, 4 << 20, TIMERWHEEL_ABS));
	ASSERT_EQ(1, take(self->w, &ev, 1));
	EXPECT_EQ(4 << 20, ev.deadline);
}

/* A plain store of a former owner is a fault of the program: the present timer is not postponed. */
TEST_F(table, store_of_a_former_owner)
{
	struct timerwheel_add now = self->elem;
	struct timerwheel_event ev;

	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, rm(self->w, 1));
	ASSERT_EQ(0, add_elem(self->w, &now));
	ASSERT_EQ(self->elem.index, now.index);
	self->table.entries[now.index] = timerwheel_mapped_entry(9 << 20, self->elem.generation,
								 self->table.bits);
	EXPECT_EQ(1, timerwheel_advance(self->w, 1 << 20, TIMERWHEEL_ABS));
	ASSERT_EQ(1, take(self->w, &ev, 1));
	EXPECT_EQ(1 << 20, ev.deadline);
}

/* Generations wrap around: none is 0, and operations of an old owner have no effect. */
TEST_F(table, generations)
{
	struct timerwheel_add first = self->elem, elem = first;
	struct timerwheel_entry entry;
	int i;

	EXPECT_EQ(TIMERWHEEL_DONE, REFRESH(first, 9 << 20));
	for (i = 0; i < UNIT / 4; i++) {
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, rm(self->w, 1));
		ASSERT_EQ(0, add_elem(self->w, &elem));
		ASSERT_EQ(first.index, elem.index);
		ASSERT_NE(0, elem.generation);
		if (elem.generation == first.generation)
			break;
	}
	ASSERT_EQ(first.generation, elem.generation);
	EXPECT_EQ(UNIT / 4 - 2, i);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(1 << 20, entry.deadline);
}

TEST_F(table, is_seen)
{
	struct timerwheel_remove rem = { .key = 1 };
	struct timerwheel_entry entry;
	uint64_t cursor = 0;

	EXPECT_EQ(TIMERWHEEL_DONE, REFRESH(self->elem, 2 << 20));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(2 << 20, entry.deadline);
	EXPECT_EQ(TIMERWHEEL_DONE, REFRESH(self->elem, 3 << 20));
	EXPECT_EQ(1, timerwheel_list(self->w, &entry, 1, &cursor));
	EXPECT_EQ(3 << 20, entry.deadline);
	EXPECT_EQ(TIMERWHEEL_DONE, REFRESH(self->elem, UINT64_MAX / 2));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, remove_elem(self->w, &rem));
	EXPECT_LT((int64_t)(UINT64_MAX / 4), rem.left);

	/* A deadline beyond the largest time becomes the largest time. */
	ASSERT_EQ(0, add_elem(self->w, &self->elem));
	EXPECT_EQ(TIMERWHEEL_DONE, REFRESH(self->elem, UINT64_MAX));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, remove_elem(self->w, &rem));
	EXPECT_EQ(TIMERWHEEL_TIME_MAX, rem.left);

	/* MOVE and ADD set their own deadlines, rounded up. */
	ASSERT_EQ(0, add_elem(self->w, &self->elem));
	EXPECT_EQ(TIMERWHEEL_DONE, REFRESH(self->elem, 4 << 20));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, move(self->w, 1, (2 << 20) - 1, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(2 << 20, entry.deadline);
	EXPECT_EQ(TIMERWHEEL_DONE, REFRESH(self->elem, 4 << 20));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, add_elem(self->w, &self->elem));
	EXPECT_EQ(TIMERWHEEL_DONE, REFRESH(self->elem, 3 << 20));
	EXPECT_EQ(1, timerwheel_drain(self->w, &entry, 1, 0));
	EXPECT_EQ(3 << 20, entry.deadline);
	EXPECT_EQ(3 << 20, entry.left);
}

/* A wheel with a table has no periods; only resident timers linger. */
TEST_F(table, no_periods)
{
	struct timerwheel_add elem = { .key = 2, .deadline = 1, .period = 1 };

	EXPECT_EQ(-EINVAL, add_elem(self->w, &elem));
	elem.flags = TIMERWHEEL_LINGER;
	EXPECT_EQ(-EINVAL, add_elem(self->w, &elem));
}

/* The functions for other languages have the same effect. Without a table they fail. */
TEST_F(table, of_the_wheel)
{
	struct timerwheel *plain = wheel_manual(16, 0);
	__u32 index = self->elem.index, generation = self->elem.generation;

	EXPECT_EQ(TIMERWHEEL_DONE, timerwheel_refresh(self->w, index, generation, 2 << 20));
	EXPECT_EQ(TIMERWHEEL_DONE, timerwheel_cancel(self->w, index, generation));
	EXPECT_EQ(TIMERWHEEL_DONE, timerwheel_arm(self->w, index, generation, 3 << 20));
	EXPECT_EQ(3 << 20, self->table.entries[index] & ~(__u64)(UNIT - 1));
	EXPECT_EQ(-EINVAL, timerwheel_refresh(plain, index, generation, 2 << 20));
	EXPECT_EQ(-EINVAL, timerwheel_cancel(plain, index, generation));
	EXPECT_EQ(-EINVAL, timerwheel_arm(plain, index, generation, 2 << 20));
	timerwheel_close(plain);
}

/* The last entry of a table: it is alone in its page */
TEST(table_to_its_end)
{
	struct timerwheel *wheel = wheel_manual_of(512, 0, true);
	struct timerwheel_add elem = { .deadline = 1 << 20 };
	struct timerwheel_table table;
	struct timerwheel_event ev;

	ASSERT_NE(NULL, wheel);
	ASSERT_EQ(0, timerwheel_table(wheel, &table));
	for (; elem.key < 512; elem.key++) {
		ASSERT_EQ(0, add_elem(wheel, &elem));
		EXPECT_EQ(TIMERWHEEL_DONE,
			  timerwheel_table_refresh(&table, elem.index, elem.generation,
						   elem.index == 512 ? 3 << 20 : 2 << 20));
	}
	EXPECT_EQ(-ENOSPC, add(wheel, elem.key, 0, 0, 0));
	EXPECT_EQ(511, timerwheel_advance(wheel, 2 << 20, 0));
	EXPECT_EQ(1, timerwheel_advance(wheel, 1 << 20, 0));
	while (take(wheel, &ev, 1) == 1)
		EXPECT_EQ(ev.index == 512 ? 3 << 20 : 2 << 20, ev.deadline);
	timerwheel_close(wheel);
}

TEST(refresh_running)
{
	struct timerwheel_config config = { .backend = BACKEND, .table = true };
	struct timerwheel_add elem = { .key = 1, .deadline = 20 * MSEC };
	struct timerwheel_event ev;
	struct timerwheel *wheel;
	struct timerwheel_table table;
	uint64_t until;

	ASSERT_EQ(0, timerwheel_open(&wheel, &config));
	ASSERT_EQ(0, timerwheel_table(wheel, &table));
	/* Retry if the refresh came too late on a slow machine. */
	do {
		ASSERT_LE(0, add_elem(wheel, &elem));
		until = timerwheel_now(wheel) + 60 * MSEC;
	} while (timerwheel_table_refresh(&table, elem.index, elem.generation, until) !=
		 TIMERWHEEL_DONE);
	ASSERT_EQ(1, timerwheel_wait(wheel, &ev, 1, PATIENCE));
	EXPECT_LE(until, ev.fired);
	EXPECT_LE(until, ev.deadline);
	EXPECT_GE(until + (1 << table.bits), ev.deadline);
	timerwheel_close(wheel);
}

/* At the largest time, a periodic timer does not fire forever. */
TEST_F(wheel, periodic_at_the_end)
{
	struct timerwheel_add elem = { .key = 1, .deadline = 100, .period = 30 };
	struct timerwheel_event ev;

	ASSERT_EQ(0, add_elem(self->w, &elem));
	EXPECT_EQ(1, timerwheel_advance(self->w, INT64_MAX, 0));
	EXPECT_EQ(1, take(self->w, &ev, 1));
	EXPECT_EQ(0, take(self->w, &ev, 1));
	EXPECT_EQ(0, take(self->w, &ev, 1));
	EXPECT_EQ(false, readable(self->w));
	EXPECT_EQ(0, timerwheel_advance(self->w, 0, 0));
}

/* ---- running clocks -------------------------------------------------------------------------- */

FIXTURE(clock)
{
	struct timerwheel *w;
	clockid_t id;
};

FIXTURE_VARIANT(clock)
{
	uint32_t clock;
	clockid_t id;
};

FIXTURE_VARIANT_ADD(clock, monotonic)
{
	.clock = TIMERWHEEL_CLOCK_MONOTONIC, .id = CLOCK_MONOTONIC,
};

FIXTURE_VARIANT_ADD(clock, boottime)
{
	.clock = TIMERWHEEL_CLOCK_BOOTTIME, .id = CLOCK_BOOTTIME,
};

FIXTURE_VARIANT_ADD(clock, realtime)
{
	.clock = TIMERWHEEL_CLOCK_REALTIME, .id = CLOCK_REALTIME,
};

FIXTURE_SETUP(clock)
{
	self->w = wheel_of(variant->clock);
	ASSERT_NE(NULL, self->w);
	self->id = variant->id;
}

FIXTURE_TEARDOWN(clock)
{
	EXPECT_EQ(true, balanced(self->w));
	timerwheel_close(self->w);
}

TEST_F(clock, now)
{
	uint64_t before = clock_ns(self->id), now = timerwheel_now(self->w);
	struct timerwheel_info info;

	EXPECT_LE(before, now);
	ASSERT_EQ(0, timerwheel_info(self->w, &info));
	EXPECT_LE(now, info.now);
	EXPECT_LE(info.now, clock_ns(self->id));
	EXPECT_EQ(-EINVAL, timerwheel_advance(self->w, SEC, 0));
}

TEST_F(clock, never_early)
{
	uint64_t began = timerwheel_now(self->w);
	struct timerwheel_event ev[4];
	long n, got = 0;

	ASSERT_EQ(0, add(self->w, 1, 0, 30 * MSEC, 0));
	ASSERT_EQ(0, add(self->w, 2, 0, began + 10 * MSEC, TIMERWHEEL_ABS));
	ASSERT_EQ(0, add(self->w, 3, 0, HOUR, 0));
	while (got < 2) {
		n = timerwheel_wait(self->w, ev, 4, PATIENCE);
		ASSERT_LT(0, n);
		EXPECT_LE(ev[0].deadline, ev[0].fired);
		EXPECT_LE(ev[0].fired, timerwheel_now(self->w));
		EXPECT_LE(began + (ev[0].key == 1 ? 30 : 10) * MSEC, ev[0].fired);
		got += n;
	}
	EXPECT_EQ(0, take(self->w, ev, 4));
	EXPECT_EQ(false, readable(self->w));
}

TEST_F(clock, due_without_a_call)
{
	struct timerwheel_remove rem = { .key = 1 };
	struct pollfd p = { .fd = timerwheel_fd(self->w), .events = POLLIN };
	uint64_t deadline = timerwheel_now(self->w) + 10 * MSEC;

	ASSERT_EQ(0, add(self->w, 1, 5, deadline, TIMERWHEEL_ABS));
	EXPECT_EQ(true, !poll(&p, 1, 0) || timerwheel_now(self->w) >= deadline);
	EXPECT_EQ(1, poll(&p, 1, PATIENCE_MS));
	nap(5 * MSEC);
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, remove_elem(self->w, &rem));
	EXPECT_GT(0, rem.left);
	/* The event was withdrawn, so the descriptor is not readable. */
	EXPECT_EQ(0, poll(&p, 1, 0));
}

TEST_F(clock, earlier_while_waiting)
{
	struct timerwheel_event ev;

	/* First a later deadline, then an earlier one. */
	ASSERT_EQ(0, add(self->w, 1, 0, HOUR, 0));
	ASSERT_EQ(0, add(self->w, 2, 0, 20 * MSEC, 0));
	ASSERT_EQ(1, timerwheel_wait(self->w, &ev, 1, PATIENCE));
	EXPECT_EQ(2, ev.key);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, move(self->w, 1, 5 * MSEC, 0));
	ASSERT_EQ(1, timerwheel_wait(self->w, &ev, 1, PATIENCE));
	EXPECT_EQ(1, ev.key);
}

/* Seconds that do not fit into 32 bits, and the remaining time of such timers */
TEST(far_away)
{
	static const uint64_t when[] = {
		(1ULL << 31) * SEC, (1ULL << 32) * SEC, (1ULL << 32) * SEC + 5, TIMERWHEEL_TIME_MAX,
	};
	struct timerwheel *wheel;
	size_t i;

	for (i = 0; i < sizeof(when) / sizeof(*when); i++) {
		wheel = wheel_of(TIMERWHEEL_CLOCK_MONOTONIC);
		ASSERT_NE(NULL, wheel);
		ASSERT_EQ(0, add(wheel, 1, 0, when[i], TIMERWHEEL_ABS));
		EXPECT_EQ(false, readable(wheel)) TH_LOG("deadline %zu", i);
		timerwheel_close(wheel);
	}
}

/* ---- waiting --------------------------------------------------------------------------------- */

TEST(wait_times_out)
{
	struct timerwheel *wheel = wheel_of(TIMERWHEEL_CLOCK_MONOTONIC);
	uint64_t began = clock_ns(CLOCK_MONOTONIC), busy;
	struct timerwheel_event ev;

	ASSERT_NE(NULL, wheel);
	EXPECT_EQ(0, timerwheel_wait(wheel, &ev, 1, 0));
	EXPECT_EQ(0, timerwheel_wait(wheel, &ev, 0, -1));
	EXPECT_EQ(0, timerwheel_wait(wheel, &ev, 1, 30 * MSEC));
	EXPECT_LE(began + 30 * MSEC, clock_ns(CLOCK_MONOTONIC));
	/* A part of a millisecond is not rounded down. */
	began = clock_ns(CLOCK_MONOTONIC);
	EXPECT_EQ(0, timerwheel_wait(wheel, &ev, 1, 999 * USEC));
	EXPECT_LE(began + 999 * USEC, clock_ns(CLOCK_MONOTONIC));
	/* The wait sleeps instead of polling. */
	busy = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	EXPECT_EQ(0, timerwheel_wait(wheel, &ev, 1, 400 * MSEC));
	EXPECT_GT(busy + 200 * MSEC, clock_ns(CLOCK_THREAD_CPUTIME_ID));
	/* A spurious wake-up of the descriptor does not shorten the wait. */
	ASSERT_EQ(0, add(wheel, 1, 0, 10 * MSEC, 0));
	ASSERT_LT(0, move(wheel, 1, HOUR, 0));
	began = clock_ns(CLOCK_MONOTONIC);
	EXPECT_EQ(0, timerwheel_wait(wheel, &ev, 1, 30 * MSEC));
	EXPECT_LE(began + 30 * MSEC, clock_ns(CLOCK_MONOTONIC));
	timerwheel_close(wheel);
}

static void ignore(int signal)
{
	(void)signal;
}

struct disturbed {
	pthread_t thread;
	bool over;
};

/* Several signals, because a signal that comes before the thread sleeps has no effect. */
static void *disturb(void *arg)
{
	struct disturbed *d = arg;

	do {
		nap(20 * MSEC);
		pthread_kill(d->thread, SIGUSR1);
	} while (!__atomic_load_n(&d->over, __ATOMIC_RELAXED));
	return NULL;
}

TEST(wait_interrupted)
{
	struct timerwheel *wheel = wheel_of(TIMERWHEEL_CLOCK_MONOTONIC);
	struct sigaction action = { .sa_handler = ignore };
	struct disturbed disturbed = { .thread = pthread_self() };
	struct timerwheel_event ev;
	pthread_t other;

	ASSERT_NE(NULL, wheel);
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, pthread_create(&other, NULL, disturb, &disturbed));
	EXPECT_EQ(-EINTR, timerwheel_wait(wheel, &ev, 1, -1));
	__atomic_store_n(&disturbed.over, true, __ATOMIC_RELAXED);
	pthread_join(other, NULL);
	timerwheel_close(wheel);
}

static void *arm_soon(void *wheel)
{
	nap(20 * MSEC);
	add(wheel, 9, 0, 0, 0);
	return NULL;
}

TEST(wait_for_another_thread)
{
	struct timerwheel *wheel = wheel_of(TIMERWHEEL_CLOCK_MONOTONIC);
	struct timerwheel_event ev;
	pthread_t other;

	ASSERT_NE(NULL, wheel);
	ASSERT_EQ(0, pthread_create(&other, NULL, arm_soon, wheel));
	EXPECT_EQ(1, timerwheel_wait(wheel, &ev, 1, -1));
	EXPECT_EQ(9, ev.key);
	pthread_join(other, NULL);
	/* The longest timeout does not overflow. */
	ASSERT_EQ(0, pthread_create(&other, NULL, arm_soon, wheel));
	EXPECT_EQ(1, timerwheel_wait(wheel, &ev, 1, INT64_MAX));
	EXPECT_EQ(9, ev.key);
	pthread_join(other, NULL);
	timerwheel_close(wheel);
}

/* ---- arrays of any length -------------------------------------------------------------------- */

/* Only fixtures can set a longer timeout, which slow kernels need. */
FIXTURE(many) {
	struct timerwheel *wheel;
};

FIXTURE_SETUP(many)
{
	self->wheel = wheel_manual(0, 0);
	ASSERT_NE(NULL, self->wheel);
}

FIXTURE_TEARDOWN(many)
{
	timerwheel_close(self->wheel);
}

TEST_F_TIMEOUT(many, long_arrays, 300)
{
	enum { MANY = TIMERWHEEL_BATCH_MAX + 5 };
	struct timerwheel_entry *entry = malloc((MANY + 1) * sizeof(*entry));
	struct timerwheel_remove *rem = malloc(MANY * sizeof(*rem));
	struct timerwheel_move *moves = malloc(MANY * sizeof(*moves));
	struct timerwheel_add *adds = malloc(MANY * sizeof(*adds));
	struct timerwheel_move_handle *moveh = malloc(MANY * sizeof(*moveh));
	struct timerwheel_remove_handle *remh = malloc(MANY * sizeof(*remh));
	struct timerwheel *wheel = self->wheel;
	uint64_t cursor = 0, i, bad = 0;

	for (i = 0; i < MANY; i++) {
		adds[i] = (struct timerwheel_add){ .key = i * 7, .value = i, .deadline = HOUR };
		moves[i] = (struct timerwheel_move){ .key = i * 7, .deadline = 2 * HOUR };
		rem[i] = (struct timerwheel_remove){ .key = i * 7 };
		entry[i] = (struct timerwheel_entry){ .key = i * 7 };
	}
	ASSERT_EQ(MANY, timerwheel_add(wheel, adds, MANY));
	ASSERT_EQ(MANY, timerwheel_move(wheel, moves, MANY));
	ASSERT_EQ(MANY, timerwheel_get(wheel, entry, MANY));
	for (i = 0; i < MANY; i++)
		bad += adds[i].result || moves[i].result != 1 || entry[i].result != 1 ||
		       entry[i].value != i || entry[i].deadline != 2 * HOUR;
	ASSERT_EQ(MANY, timerwheel_list(wheel, entry, MANY + 1, &cursor));
	ASSERT_EQ(0, timerwheel_list(wheel, entry, MANY, &cursor));
	ASSERT_EQ(MANY - 10, timerwheel_remove(wheel, rem, MANY - 10));
	for (i = 0; i < MANY - 10; i++)
		bad += rem[i].result != 1 || rem[i].value != i;
	EXPECT_EQ(0, bad);
	ASSERT_EQ(10, timerwheel_drain(wheel, entry, MANY, 0));
	ASSERT_EQ(MANY, timerwheel_add(wheel, adds, MANY));
	for (i = 0; i < MANY; i++) {
		moveh[i] = (struct timerwheel_move_handle){
			.deadline = 3 * HOUR + i, .index = adds[i].index,
			.generation = adds[i].generation,
		};
		remh[i] = (struct timerwheel_remove_handle){
			.index = adds[i].index, .generation = adds[i].generation,
		};
		entry[i] = (struct timerwheel_entry){ .key = i * 7 };
	}
	ASSERT_EQ(MANY, timerwheel_move_handles(wheel, moveh, MANY, TIMERWHEEL_ABS));
	ASSERT_EQ(MANY, timerwheel_get(wheel, entry, MANY));
	ASSERT_EQ(MANY, timerwheel_remove_handles(wheel, remh, MANY));
	for (i = 0; i < MANY; i++)
		bad += moveh[i].result != 1 || entry[i].deadline != 3 * HOUR + i ||
		       remh[i].result != 1 || remh[i].value != i;
	EXPECT_EQ(0, bad);
	ASSERT_EQ(MANY, timerwheel_add(wheel, adds, MANY));
	ASSERT_EQ(MANY, timerwheel_drain(wheel, entry, MANY + 1, TIMERWHEEL_DRAIN_CLOSE));
	EXPECT_EQ(true, balanced(wheel));
	free(moveh);
	free(remh);
	free(adds);
	free(moves);
	free(rem);
	free(entry);
}

TEST(slack_in_ticks)
{
	struct timerwheel_config config = {
		.backend = BACKEND, .clock = TIMERWHEEL_CLOCK_MANUAL, .tick = 1000,
		.slack = 5999,
	};
	struct timerwheel_add elem = { .key = 2, .deadline = HOUR, .flags = TIMERWHEEL_SLACK };
	struct timerwheel_entry entry;
	struct timerwheel *wheel;

	ASSERT_EQ(0, timerwheel_open(&wheel, &config));
	ASSERT_EQ(0, add(wheel, 1, 0, HOUR, 0));
	ASSERT_EQ(1, get(wheel, 1, &entry));
	EXPECT_EQ(5000, entry.slack);
	ASSERT_EQ(0, add_elem(wheel, &elem));
	ASSERT_EQ(1, get(wheel, 2, &entry));
	EXPECT_EQ(0, entry.slack);
	elem.slack = UINT64_MAX;
	ASSERT_EQ(1, add_elem(wheel, &elem));
	ASSERT_EQ(1, get(wheel, 2, &entry));
	EXPECT_EQ(0xffffffffULL * 1000, entry.slack);
	timerwheel_close(wheel);

	/* With long ticks the limit is lower. */
	config.tick = HOUR;
	ASSERT_EQ(0, timerwheel_open(&wheel, &config));
	ASSERT_EQ(0, add_elem(wheel, &elem));
	ASSERT_EQ(1, get(wheel, 2, &entry));
	EXPECT_EQ((1ULL << 61) / HOUR * HOUR, entry.slack);
	timerwheel_close(wheel);
}

/* ---- several threads ------------------------------------------------------------------------- */

enum { THREADS = 3, ROUNDS = 300, OWN = 40 };

struct worker {
	struct timerwheel *wheel;
	uint64_t first;
	long removed, taken, wrong;
};

/* The worker's own keys: armed for soon, some postponed, some removed. */
static void *work(void *arg)
{
	struct worker *me = arg;
	struct timerwheel_remove rem[OWN];
	struct timerwheel_move moves[OWN];
	struct timerwheel_add adds[OWN];
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < OWN; i++) {
			adds[i] = (struct timerwheel_add) {
				.key = me->first + round * OWN + i, .deadline = i * 50 * USEC,
			};
			moves[i] = (struct timerwheel_move) {
				.key = adds[i].key, .deadline = i * 60 * USEC,
			};
			rem[i] = (struct timerwheel_remove){ .key = adds[i].key };
		}
		me->wrong += timerwheel_add(me->wheel, adds, OWN) != OWN;
		me->wrong += timerwheel_move(me->wheel, moves, OWN / 2) != OWN / 2;
		me->wrong += timerwheel_remove(me->wheel, rem, OWN / 4) != OWN / 4;
		for (i = 0; i < OWN; i++)
			me->wrong += adds[i].result != 0;
		for (i = 0; i < OWN / 4; i++)
			me->removed += rem[i].result > 0;
	}
	return NULL;
}

static void *collect(void *arg)
{
	struct worker *me = arg;
	struct timerwheel_event ev[64];
	long n, i;

	for (;;) {
		n = timerwheel_wait(me->wheel, ev, 64, -1);
		if (n < 0)
			me->wrong++;
		for (i = 0; i < n; i++) {
			if (!ev[i].key)
				return NULL;
			me->wrong += ev[i].fired < ev[i].deadline;
			me->taken++;
		}
	}
}

TEST(threads)
{
	struct worker worker[THREADS + 1] = { 0 };
	struct timerwheel_stats s;
	struct timerwheel *wheel = wheel_of(TIMERWHEEL_CLOCK_MONOTONIC);
	pthread_t thread[THREADS + 1];
	long removed = 0, i;

	ASSERT_NE(NULL, wheel);
	for (i = 0; i <= THREADS; i++) {
		worker[i].wheel = wheel;
		worker[i].first = (i + 1ULL) << 32;
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, i ? work : collect, &worker[i]));
	}
	for (i = 1; i <= THREADS; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_EQ(0, worker[i].wrong);
		removed += worker[i].removed;
	}
	/* The collector ends with this last event, after all workers have ended. */
	do {
		nap(MSEC);
		ASSERT_EQ(0, timerwheel_stats(wheel, &s));
	} while (s.pending + s.due);
	ASSERT_EQ(0, add(wheel, 0, 0, 0, 0));
	pthread_join(thread[0], NULL);
	EXPECT_EQ(0, worker[0].wrong);
	EXPECT_EQ(THREADS * ROUNDS * OWN, removed + worker[0].taken);
	EXPECT_EQ(true, balanced(wheel));
	timerwheel_close(wheel);
}

static void *add_cancelled(void *wheel)
{
	pthread_cancel(pthread_self());
	add(wheel, 1, 0, 0, 0);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return wheel;
}

/* A thread that is cancelled during a call leaves the wheel usable: it ends only after the call. */
TEST(thread_is_cancelled)
{
	struct timerwheel *wheel = wheel_of(TIMERWHEEL_CLOCK_MONOTONIC);
	struct timerwheel_event ev;
	pthread_t other;
	void *end;

	ASSERT_NE(NULL, wheel);
	ASSERT_EQ(0, pthread_create(&other, NULL, add_cancelled, wheel));
	ASSERT_EQ(0, pthread_join(other, &end));
	EXPECT_EQ(wheel, end);
	EXPECT_EQ(1, timerwheel_wait(wheel, &ev, 1, PATIENCE));
	EXPECT_EQ(1, ev.key);
	timerwheel_close(wheel);
}

/* ---- after fork() ---------------------------------------------------------------------------- */

TEST(fork_and_close)
{
	struct timerwheel *wheel = wheel_of(TIMERWHEEL_CLOCK_MONOTONIC);
	struct timerwheel_event ev;
	pid_t pid;

	/* A child may close its parent's wheel without harm to the parent. */
	ASSERT_NE(NULL, wheel);
	ASSERT_EQ(0, add(wheel, 1, 0, 30 * MSEC, 0));
	pid = fork();
	if (!pid) {
		timerwheel_close(wheel);
		_exit(0);
	}
	ASSERT_EQ(0, reap(pid));
	EXPECT_EQ(1, timerwheel_wait(wheel, &ev, 1, PATIENCE));
	timerwheel_close(wheel);
}

/* ---- differences between the back ends ------------------------------------------------------- */

TEST(adopt_errors)
{
	struct timerwheel *wheel = NULL;
	int pipes[2];

	ASSERT_EQ(0, pipe(pipes));
	EXPECT_EQ(-EBADF, timerwheel_adopt(&wheel, -1, false));
	EXPECT_EQ(-ENOTTY, timerwheel_adopt(&wheel, pipes[0], false));
	EXPECT_EQ(NULL, wheel);
	/* The descriptor stays open. */
	EXPECT_EQ(0, fcntl(pipes[0], F_GETFL));
	fail_allocation = 0;
	EXPECT_EQ(-ENOMEM, timerwheel_adopt(&wheel, pipes[0], false));
	EXPECT_EQ(0, fcntl(pipes[0], F_GETFL));
}

#ifdef PROCESS

TEST_F(wheel, not_supported)
{
	struct timerwheel_add_socket socket = { .deadline = 1 };

	EXPECT_EQ(-ENOTSUP, timerwheel_share(self->w));
	EXPECT_EQ(-ENOTSUP, timerwheel_monitor(self->w, 0, 0));
	EXPECT_EQ(-EOPNOTSUPP, timerwheel_add_socket(self->w, &socket, 1));
}

/* Between two parts of a DRAIN another thread allocates more indices and frees them. */
static struct timerwheel *drained;

static void grow_drained(void)
{
	uint64_t key;

	after_unlock = NULL;
	for (key = 1000; key < 1700; key++)
		add(drained, key, 0, HOUR, 0);
	for (key = 1000; key < 1700; key++)
		rm(drained, key);
}

/* After a DRAIN that returns 0, no timer that was armed before is left. */
TEST_F(many, drain_while_it_grows)
{
	struct timerwheel_entry page[600];
	uint64_t key;

	for (key = 1; key <= 600; key++)
		ASSERT_EQ(0, add(self->wheel, key, 0, HOUR, 0));
	ASSERT_EQ(300, timerwheel_drain(self->wheel, page, 300, 0));
	/* It gets the index before the one at which the next DRAIN starts. */
	ASSERT_EQ(0, add(self->wheel, 0, 0, HOUR, 0));
	for (key = 301; key <= 600; key++)
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, rm(self->wheel, key));
	drained = self->wheel;
	after_unlock = grow_drained;
	EXPECT_EQ(1, timerwheel_drain(self->wheel, page, 600, 0));
	EXPECT_EQ(NULL, after_unlock);
	EXPECT_EQ(0, page[0].key);
}

#define LATE	5000

/* Many timers are due, and a call expires only some of them. Each timer's event arrives once. */
TEST(late)
{
	struct timerwheel *wheel = wheel_of(TIMERWHEEL_CLOCK_MONOTONIC);
	static unsigned char seen[LATE];
	struct timerwheel_event ev;
	struct timerwheel_stats s;
	uint64_t ahead = SEC / 8, at;
	int i;

	ASSERT_NE(NULL, wheel);
	/* Arm all before they are due; a slow machine gets more time with each try. */
	do {
		ahead *= 4;
		at = clock_ns(CLOCK_MONOTONIC) + ahead;
		for (i = 0; i < LATE; i++)
			ASSERT_LE(0, add(wheel, i, 0, at, TIMERWHEEL_ABS));
	} while (clock_ns(CLOCK_MONOTONIC) >= at);
	while (clock_ns(CLOCK_MONOTONIC) <= at)
		nap(MSEC);
	for (i = 0; i < LATE; i++) {
		ASSERT_EQ(1, timerwheel_take(wheel, &ev, 1));
		ASSERT_GT(LATE, ev.key);
		seen[ev.key]++;
		if (i)
			continue;
		/* each call also expires some */
		ASSERT_EQ(0, timerwheel_stats(wheel, &s));
		EXPECT_EQ(LATE - 1, s.pending + s.due);
		EXPECT_LT(LATE / 2, s.pending);
	}
	EXPECT_EQ(0, timerwheel_take(wheel, &ev, 1));
	for (i = 0; i < LATE; i++)
		ASSERT_EQ(1, seen[i]);
	timerwheel_close(wheel);
}

/* If a call examines only postponed timers, which are not due, the next due timer still fires. */
TEST(late_behind_postponed)
{
	struct timerwheel_config config = {
		.backend = BACKEND, .tick = USEC, .table = true,
	};
	struct timerwheel_table table;
	struct timerwheel_event ev;
	struct timerwheel *wheel;
	uint64_t ahead = SEC / 8, at;
	int i;

	ASSERT_EQ(0, timerwheel_open(&wheel, &config));
	ASSERT_EQ(0, timerwheel_table(wheel, &table));
	/* Arm and postpone all before they are due; a slow machine gets more time with each try. */
	do {
		ahead *= 4;
		at = clock_ns(CLOCK_MONOTONIC) + ahead;
		for (i = 0; i < LATE; i++) {
			struct timerwheel_add elem = {
				.key = i, .deadline = at + i, .flags = TIMERWHEEL_ABS,
			};

			ASSERT_LE(0, add_elem(wheel, &elem));
			if (i < LATE - 1 &&
			    timerwheel_table_refresh(&table, elem.index, elem.generation,
						     at + HOUR) != TIMERWHEEL_DONE)
				ASSERT_LE(at, clock_ns(CLOCK_MONOTONIC));
		}
	} while (clock_ns(CLOCK_MONOTONIC) >= at);
	while (clock_ns(CLOCK_MONOTONIC) <= at + LATE + (1 << table.bits))
		nap(MSEC);
	ASSERT_EQ(1, timerwheel_take(wheel, &ev, 1));
	EXPECT_EQ(LATE - 1, ev.key);
	EXPECT_EQ(0, timerwheel_take(wheel, &ev, 1));
	timerwheel_close(wheel);
}

/* If a program locks its memory, only memory for timers is allocated, not for the capacity. */
TEST(locked_memory)
{
	struct timerwheel_config config = { .backend = BACKEND, .table = true };
	struct rusage before, after;
	struct timerwheel *wheel;

	ASSERT_EQ(0, getrusage(RUSAGE_SELF, &before));
	if (mlockall(MCL_FUTURE))
		SKIP(return, "this user may not lock memory");
	ASSERT_EQ(0, timerwheel_open(&wheel, &config));
	ASSERT_EQ(0, add(wheel, 1, 0, HOUR, 0));
	ASSERT_EQ(0, getrusage(RUSAGE_SELF, &after));
	EXPECT_GT(4096, after.ru_maxrss - before.ru_maxrss);
	timerwheel_close(wheel);
	munlockall();
}

TEST_F(wheel, adopt_a_timerfd)
{
	struct timerwheel *other;

	EXPECT_EQ(-ENOTTY, timerwheel_adopt(&other, timerwheel_fd(self->w), false));
}

/* INFO and STATS include the table. */
TEST(table_memory)
{
	struct timerwheel_config config = { .backend = BACKEND };
	struct timerwheel *plain, *mapped;
	struct timerwheel_stats a, b;
	uint64_t key;

	ASSERT_EQ(0, timerwheel_open(&plain, &config));
	config.table = true;
	ASSERT_EQ(0, timerwheel_open(&mapped, &config));
	for (key = 0; key < 100; key++) {
		ASSERT_EQ(0, add(plain, key, 0, HOUR, 0));
		ASSERT_EQ(0, add(mapped, key, 0, HOUR, 0));
	}
	ASSERT_EQ(0, timerwheel_stats(plain, &a));
	ASSERT_EQ(0, timerwheel_stats(mapped, &b));
	EXPECT_EQ(a.memory + 100 * sizeof(__u64), b.memory);
	timerwheel_close(plain);
	timerwheel_close(mapped);
}

TEST(add_no_memory)
{
	struct timerwheel *wheel = wheel_of(TIMERWHEEL_CLOCK_MANUAL);
	struct timerwheel_add elem[3] = { { .key = 1 }, { .key = 2 }, { .key = 3 } };
	uint64_t key;
	int n;

	/* Allocation of timers, heap and hash may fail each; the next try continues. */
	ASSERT_NE(NULL, wheel);
	for (n = 0; n < 3; n++) {
		fail_allocation = n;
		ASSERT_EQ(1, timerwheel_add(wheel, elem, 1));
		EXPECT_EQ(-ENOMEM, elem[0].result);
	}
	fail_allocation = 0;
	ASSERT_EQ(3, timerwheel_add(wheel, elem, 3));
	EXPECT_EQ(-ENOMEM, elem[0].result);
	EXPECT_EQ(0, elem[1].result);
	EXPECT_EQ(0, elem[2].result);
	/* The same with timers in the wheel. */
	for (key = 4; add(wheel, key, 0, HOUR, 0) == 0; key++)
		fail_allocation = 2;
	EXPECT_EQ(-1, fail_allocation);
	EXPECT_LT(50, key);
	EXPECT_EQ(0, add(wheel, key, 0, HOUR, 0));
	while (--key > 1)
		EXPECT_LT(0, rm(wheel, key)) TH_LOG("key %d", (int)key);
	EXPECT_EQ(true, balanced(wheel));
	timerwheel_close(wheel);
}

#else

TEST(device_settings)
{
	struct timerwheel_config config = {
		.backend = BACKEND, .clock = TIMERWHEEL_CLOCK_REALTIME, .tick = 2 * MSEC,
		.slots = 64, .wake_events = 3, .wake_ns = 4 * MSEC, .slack = 5 * MSEC, .ring = 16,
		.clock_set = true,
	};
	struct timerwheel_info info;
	struct timerwheel *wheel;

	ASSERT_EQ(0, timerwheel_open(&wheel, &config));
	ASSERT_EQ(0, timerwheel_info(wheel, &info));
	EXPECT_EQ(TIMERWHEEL_CLOCK_REALTIME, info.clock);
	EXPECT_EQ(2 * MSEC, info.tick);
	EXPECT_EQ(64, info.slots);
	EXPECT_EQ(3, info.wake_events);
	EXPECT_EQ(4 * MSEC, info.wake_ns);
	EXPECT_EQ(5 * MSEC, info.slack);
	EXPECT_EQ(16, info.ring);
	EXPECT_EQ(TIMERWHEEL_INFO_CLOCK_SET, info.flags & TIMERWHEEL_INFO_CLOCK_SET);
	timerwheel_close(wheel);
	config.clock = TIMERWHEEL_CLOCK_BOOTTIME;
	config.clock_set = false;
	config.alarm = true;
	/* Not every machine can be woken. */
	if (!timerwheel_open(&wheel, &config)) {
		ASSERT_EQ(0, timerwheel_info(wheel, &info));
		EXPECT_EQ(TIMERWHEEL_INFO_ALARM, info.flags & TIMERWHEEL_INFO_ALARM);
		timerwheel_close(wheel);
	}
}

/* A mapping that stays would keep the wheel. */
TEST(device_close)
{
	struct timerwheel *wheel = wheel_manual(10, 8);
	struct timerwheel_event ev;
	int monitor;

	ASSERT_NE(NULL, wheel);
	monitor = timerwheel_monitor(wheel, 4, TIMERWHEEL_MONITOR_NONBLOCK);
	ASSERT_LE(0, monitor);
	ASSERT_EQ(0, add(wheel, 1, 0, HOUR, 0));
	timerwheel_close(wheel);
	EXPECT_EQ(0, read(monitor, &ev, sizeof(ev)));
}

/* A ring of several pages, to its end */
TEST(device_long_ring)
{
	enum { RING = 512 };
	struct timerwheel *wheel = wheel_manual(RING, RING);
	static struct timerwheel_event ev[RING];
	int i;

	ASSERT_NE(NULL, wheel);
	for (i = 0; i < RING; i++)
		ASSERT_EQ(0, add(wheel, i, 0, i + 1, 0));
	EXPECT_EQ(RING, timerwheel_advance(wheel, RING, 0));
	ASSERT_EQ(RING, take(wheel, ev, RING));
	for (i = 0; i < RING; i++)
		EXPECT_EQ(i, ev[i].key);
	timerwheel_close(wheel);
}

TEST(device_errors)
{
	struct timerwheel_config config = { .backend = BACKEND };
	struct timerwheel_add *adds;
	struct timerwheel_event *ev;
	struct timerwheel *wheel;
	size_t page = getpagesize();
	uint64_t cursor = 0;
	char *edge;
	int fd;

	ASSERT_EQ(0, timerwheel_open(&wheel, &config));
	edge = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(0, mprotect(edge + page, page, PROT_NONE));
	adds = (struct timerwheel_add *)(edge + page) - 2;
	adds[0] = (struct timerwheel_add){ .key = 1, .deadline = 0 };
	adds[1] = (struct timerwheel_add){ .key = 2, .deadline = 0 };
	/* Elements before the fault are done, then the call fails. */
	EXPECT_EQ(2, timerwheel_add(wheel, adds, 3));
	EXPECT_EQ(-EFAULT, timerwheel_add(wheel, adds + 2, 1));
	EXPECT_EQ(-EFAULT, timerwheel_get(wheel, (struct timerwheel_entry *)(adds + 2), 1));
	EXPECT_EQ(-EFAULT, timerwheel_move(wheel, (struct timerwheel_move *)(adds + 2), 1));
	EXPECT_EQ(-EFAULT, timerwheel_remove(wheel, (struct timerwheel_remove *)(adds + 2), 1));
	EXPECT_EQ(-EFAULT, timerwheel_move_handles(wheel, (void *)(adds + 2), 1, 0));
	EXPECT_EQ(-EFAULT, timerwheel_remove_handles(wheel, (void *)(adds + 2), 1));
	EXPECT_EQ(-EFAULT,
		  timerwheel_list(wheel, (struct timerwheel_entry *)(adds + 2), 1, &cursor));
	EXPECT_EQ(0, cursor);
	EXPECT_EQ(-EFAULT, timerwheel_drain(wheel, (struct timerwheel_entry *)(adds + 2), 1, 0));
	ev = (struct timerwheel_event *)(edge + page);
	EXPECT_EQ(-EFAULT, timerwheel_take(wheel, ev, 1));
	EXPECT_EQ(2, timerwheel_take(wheel, ev - 2, 2));
	timerwheel_close(wheel);

	/* The device has larger events than the library knows, which read would return. */
	fd = open("/dev/timerwheel", O_RDWR);
	event_size = sizeof(*ev) + 8;
	EXPECT_EQ(-EPROTO, timerwheel_adopt(&wheel, fd, false));
	event_size = 0;
	/* An unknown clock. */
	info_clock = TIMERWHEEL_CLOCK_MANUAL + 1;
	EXPECT_EQ(-EPROTO, timerwheel_adopt(&wheel, fd, false));
	info_clock = 0;
	/* A deadline table is requested, but there is none. */
	EXPECT_EQ(-ENOENT, timerwheel_adopt(&wheel, fd, true));
	EXPECT_EQ(0, timerwheel_adopt(&wheel, fd, false));
	timerwheel_close(wheel);
}

/* A signal interrupts each call, yet all elements are done exactly once. */
TEST(device_calls_cut_short)
{
	struct timerwheel_entry entry[10] = { 0 };
	struct timerwheel_remove rem[10] = { 0 };
	struct timerwheel *wheel = wheel_manual(0, 0);
	struct timerwheel_move moves[10] = { 0 };
	struct timerwheel_add adds[10] = { 0 };
	struct timerwheel_remove_handle remh[10] = { 0 };
	struct timerwheel_move_handle moveh[10] = { 0 };
	int i;

	ASSERT_NE(NULL, wheel);
	for (i = 0; i < 10; i++) {
		adds[i] = (struct timerwheel_add){ .key = i, .value = i * 3, .deadline = HOUR };
		moves[i] = (struct timerwheel_move){ .key = i, .deadline = 2 * HOUR };
		entry[i].key = i;
		rem[i].key = i;
	}
	most_elements = 3;
	ioctls = 0;
	EXPECT_EQ(10, timerwheel_add(wheel, adds, 10));
	EXPECT_EQ(4, ioctls);
	EXPECT_EQ(10, timerwheel_move(wheel, moves, 10));
	EXPECT_EQ(10, timerwheel_get(wheel, entry, 10));
	EXPECT_EQ(10, timerwheel_remove(wheel, rem, 10));
	for (i = 0; i < 10; i++) {
		EXPECT_EQ(TIMERWHEEL_WAS_NONE, adds[i].result);
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, moves[i].result);
		EXPECT_EQ(2 * HOUR, entry[i].deadline);
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, rem[i].result);
		EXPECT_EQ(i * 3, rem[i].value);
	}
	/* A later call fails: the next try continues with the remaining elements. */
	fail_ioctl = 2;
	EXPECT_EQ(6, timerwheel_add(wheel, adds, 10));
	EXPECT_EQ(4, timerwheel_add(wheel, adds + 6, 4));
	for (i = 0; i < 10; i++) {
		moveh[i].index = adds[i].index;
		moveh[i].generation = adds[i].generation;
		moveh[i].deadline = 2 * HOUR;
		remh[i].index = adds[i].index;
		remh[i].generation = adds[i].generation;
	}
	EXPECT_EQ(10, timerwheel_move_handles(wheel, moveh, 10, TIMERWHEEL_ABS));
	EXPECT_EQ(10, timerwheel_remove_handles(wheel, remh, 10));
	for (i = 0; i < 10; i++) {
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, moveh[i].result);
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, remh[i].result);
		EXPECT_EQ(i * 3, remh[i].value);
	}
	most_elements = 0;
	EXPECT_EQ(true, balanced(wheel));
	timerwheel_close(wheel);
}

/* A call that fails as a whole does no element, or only the elements of earlier calls. */
TEST(device_calls_fail)
{
	enum { MANY = TIMERWHEEL_BATCH_MAX + 10 };
	struct timerwheel_entry *entry = calloc(MANY, sizeof(*entry));
	struct timerwheel_remove *rem = calloc(MANY, sizeof(*rem));
	struct timerwheel_move *moves = calloc(MANY, sizeof(*moves));
	struct timerwheel_add *adds = calloc(MANY, sizeof(*adds));
	struct timerwheel *wheel = wheel_manual(0, 0);
	uint64_t cursor = 0, i;
	int n;

	ASSERT_NE(NULL, wheel);
	for (i = 0; i < MANY; i++) {
		adds[i] = (struct timerwheel_add){ .key = i, .deadline = HOUR };
		moves[i].key = i;
		moves[i].deadline = HOUR;
		rem[i].key = i;
		entry[i].key = i;
	}
	for (n = 0; n < 2; n++) {
		/* The first call fails, or the second one that so many elements require. */
		fail_ioctl = n;
		EXPECT_EQ(n ? TIMERWHEEL_BATCH_MAX : -EINTR, timerwheel_add(wheel, adds, MANY));
	}
	EXPECT_EQ(10, timerwheel_add(wheel, adds + TIMERWHEEL_BATCH_MAX, 10));
	for (n = 0; n < 2; n++) {
		fail_ioctl = n;
		EXPECT_EQ(n ? TIMERWHEEL_BATCH_MAX : -EINTR, timerwheel_move(wheel, moves, MANY));
		fail_ioctl = n;
		EXPECT_EQ(n ? TIMERWHEEL_BATCH_MAX : -EINTR, timerwheel_get(wheel, entry, MANY));
		cursor = 0;
		fail_ioctl = n;
		EXPECT_EQ(n ? TIMERWHEEL_BATCH_MAX : -EINTR,
			  timerwheel_list(wheel, entry, MANY, &cursor));
	}
	EXPECT_EQ(10, timerwheel_list(wheel, entry, MANY, &cursor));
	fail_ioctl = 0;
	EXPECT_EQ(-EINTR, timerwheel_remove(wheel, rem, MANY));
	fail_ioctl = 1;
	EXPECT_EQ(TIMERWHEEL_BATCH_MAX, timerwheel_remove(wheel, rem, MANY));
	fail_ioctl = 0;
	EXPECT_EQ(-EINTR, timerwheel_drain(wheel, entry, MANY, 0));
	EXPECT_EQ(10, timerwheel_drain(wheel, entry, MANY, 0));
	fail_ioctl = 0;
	EXPECT_EQ(-EINTR, timerwheel_advance(wheel, SEC, 0));
	EXPECT_EQ(0, timerwheel_now(wheel));
	ioctl_error = ENFILE;
	fail_ioctl = 0;
	EXPECT_EQ(-ENFILE, timerwheel_monitor(wheel, 0, 0));
	ioctl_error = ENOMEM;
	fail_ioctl = 0;
	EXPECT_EQ(-ENOMEM, timerwheel_monitor(wheel, 0, 0));
	fail_ioctl = 0;
	EXPECT_EQ(-ENOMEM, timerwheel_add(wheel, adds, 1));
	EXPECT_EQ(-1, fail_ioctl);
	timerwheel_close(wheel);
	free(adds);
	free(moves);
	free(rem);
	free(entry);
}

TEST(device_quota)
{
	const char *path = "/sys/module/timerwheel/parameters/max_user_memory";
	struct timerwheel_config config = { .backend = BACKEND, .ring = 1024 };
	struct timerwheel_config plain = { .backend = BACKEND };
	struct timerwheel_stats stats;
	struct timerwheel_info info;
	struct timerwheel *wheel;
	char before[32] = "", cap[32];
	int fd = open(path, O_RDWR), n;

	ASSERT_LE(0, fd);
	ASSERT_LT(0, read(fd, before, sizeof(before) - 1));
	ASSERT_EQ(0, timerwheel_open(&wheel, &plain));
	/* Memory for the first page of timers and for one more wheel, but not for its ring. */
	ASSERT_EQ(0, add(wheel, 0, 0, HOUR, 0));
	/* Closed wheels of earlier tests are freed later. */
	do {
		ASSERT_EQ(0, timerwheel_info(wheel, &info));
		ASSERT_EQ(0, timerwheel_stats(wheel, &stats));
	} while (info.user_memory != stats.memory);
	n = snprintf(cap, sizeof(cap), "%llu", info.user_memory + 3000);
	ASSERT_EQ(n, pwrite(fd, cap, n, 0));
	EXPECT_EQ(-EDQUOT, try_open(&config));
	EXPECT_EQ(-EDQUOT, timerwheel_monitor(wheel, 0, 0));
	for (n = 1; n < 63; n++)
		ASSERT_EQ(0, add(wheel, n, 0, HOUR, 0));
	EXPECT_EQ(-EDQUOT, add(wheel, n, 0, HOUR, 0));
	ASSERT_EQ(1, pwrite(fd, "1", 1, 0));
	EXPECT_EQ(-EDQUOT, try_open(&plain));
	timerwheel_close(wheel);
	ASSERT_EQ(strlen(before), pwrite(fd, before, strlen(before), 0));
	EXPECT_EQ(0, try_open(&config));
	close(fd);
}

TEST(ring)
{
	enum { RING = 8, MANY = 100 };
	struct timerwheel *wheel = wheel_manual(MANY, RING);
	struct timerwheel_event ev[MANY];
	uint64_t key;
	long n, got = 0, i;

	/* More events than the ring can hold: the rest moves into it later, in order. */
	ASSERT_NE(NULL, wheel);
	for (key = 0; key < MANY; key++)
		ASSERT_EQ(0, add(wheel, key, key * 2, key + 1, 0));
	EXPECT_EQ(MANY, timerwheel_advance(wheel, MANY, 0));
	EXPECT_EQ(true, readable(wheel));
	/* Events that cannot move now do so in the next call. */
	ASSERT_EQ(RING, take(wheel, ev, 30));
	ioctl_error = ENOMEM;
	fail_ioctl = 0;
	EXPECT_EQ(-ENOMEM, take(wheel, ev + RING, 30));
	got = RING;
	while ((n = take(wheel, ev, 30)) > 0) {
		for (i = 0; i < n; i++) {
			EXPECT_EQ(got + i, ev[i].key);
			EXPECT_EQ(2 * (got + i), ev[i].value);
		}
		got += n;
	}
	EXPECT_EQ(0, n);
	EXPECT_EQ(MANY, got);
	EXPECT_EQ(false, readable(wheel));
	EXPECT_EQ(0, timerwheel_take(wheel, ev, 0));
	EXPECT_EQ(true, balanced(wheel));
	timerwheel_close(wheel);
}

TEST(ring_wait)
{
	struct timerwheel_config config = { .backend = BACKEND, .ring = 64 };
	struct timerwheel_event ev[8];
	struct timerwheel *wheel;
	uint64_t began;
	pthread_t other;
	long n, got;

	ASSERT_EQ(0, timerwheel_open(&wheel, &config));
	began = timerwheel_now(wheel);
	for (got = 0; got < 50; got++)
		ASSERT_EQ(0, add(wheel, got + 1, 0, got * MSEC, 0));
	for (got = 0; got < 50; got += n) {
		n = timerwheel_wait(wheel, ev, 8, PATIENCE);
		ASSERT_LT(0, n);
		EXPECT_LE(ev[0].deadline, ev[0].fired);
	}
	EXPECT_LE(began + 49 * MSEC, timerwheel_now(wheel));
	EXPECT_EQ(0, timerwheel_wait(wheel, ev, 8, 5 * MSEC));
	ASSERT_EQ(0, pthread_create(&other, NULL, arm_soon, wheel));
	EXPECT_EQ(1, timerwheel_wait(wheel, ev, 8, -1));
	EXPECT_EQ(9, ev[0].key);
	pthread_join(other, NULL);
	timerwheel_close(wheel);
}

TEST(monitor)
{
	struct timerwheel *wheel = wheel_of(TIMERWHEEL_CLOCK_MANUAL);
	struct timerwheel_event ev;
	struct rlimit limit;
	int fd[TIMERWHEEL_MONITORS_MAX], i, next;

	ASSERT_NE(NULL, wheel);
	EXPECT_EQ(-EINVAL, timerwheel_monitor(wheel, 0, ~0U));
	EXPECT_EQ(-EINVAL, timerwheel_monitor(wheel, TIMERWHEEL_RING_MAX + 1, 0));
	for (i = 0; i < TIMERWHEEL_MONITORS_MAX; i++) {
		fd[i] = timerwheel_monitor(wheel, 4, TIMERWHEEL_MONITOR_NONBLOCK);
		ASSERT_LE(0, fd[i]);
	}
	EXPECT_EQ(-ENOSPC, timerwheel_monitor(wheel, 0, 0));
	EXPECT_EQ(-ENOTTY, timerwheel_adopt(&wheel, fd[1], false));
	close(fd[1]);
	next = dup(0);
	close(next);
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = next;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	/* The limit leaves no free descriptor. */
	ASSERT_EQ(next, dup(0) < 0 ? next : -1);
	EXPECT_EQ(-EMFILE, timerwheel_monitor(wheel, 0, 0));
	ASSERT_EQ(0, add(wheel, 5, 50, 0, 0));
	ASSERT_EQ(1, take(wheel, &ev, 1));
	poison(&ev, sizeof(ev));
	EXPECT_EQ(sizeof(ev), read(fd[0], &ev, sizeof(ev)));
	EXPECT_EQ(5, ev.key);
	EXPECT_EQ(50, ev.value);
	timerwheel_close(wheel);
	EXPECT_EQ(0, read(fd[0], &ev, sizeof(ev)));
}

/* Pass a descriptor to another process, as a service manager does. */
static int send_fd(int socket, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec data = { .iov_base = "", .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = control.buf, .msg_controllen = sizeof(control.buf),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	return sendmsg(socket, &msg, 0) == 1 ? 0 : -errno;
}

static int receive_fd(int socket)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = control.buf, .msg_controllen = sizeof(control.buf),
	};
	int fd;

	if (recvmsg(socket, &msg, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* A wheel whose creator takes two of five events and exits. Returns the descriptor. */
static int orphan(uint32_t ring)
{
	struct timerwheel_event ev[2];
	struct timerwheel *wheel;
	int sockets[2], fd;
	uint64_t key;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets))
		return -1;
	pid = fork();
	if (!pid) {
		wheel = wheel_manual_of(100, ring, true);
		for (key = 0; wheel && key < 5; key++)
			add(wheel, key, key * 3, (key + 1) * UNIT, 0);
		add(wheel, 77, 777, HOUR, 0);
		if (!wheel || timerwheel_advance(wheel, 5 * UNIT, 0) != 5 ||
		    take(wheel, ev, 2) != 2 ||
		    send_fd(sockets[1], timerwheel_share(wheel)))
			_exit(1);
		raise(SIGKILL);
	}
	fd = receive_fd(sockets[0]);
	return reap(pid) == 1000 + SIGKILL ? fd : -1;
}

FIXTURE(heir)
{
	struct timerwheel *w;
};

FIXTURE_VARIANT(heir)
{
	uint32_t ring;
};

FIXTURE_VARIANT_ADD(heir, read)
{
	.ring = 0,
};

/* A ring that is long enough for all events, and a ring that is too short for some. */
FIXTURE_VARIANT_ADD(heir, ring)
{
	.ring = 16,
};

FIXTURE_VARIANT_ADD(heir, short_ring)
{
	.ring = 2,
};

FIXTURE_SETUP(heir)
{
	int fd = orphan(variant->ring);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, timerwheel_adopt(&self->w, fd, true));
	EXPECT_EQ(fd, timerwheel_fd(self->w));
}

FIXTURE_TEARDOWN(heir)
{
	int fd = timerwheel_fd(self->w);

	EXPECT_EQ(true, balanced(self->w));
	timerwheel_close(self->w);
	EXPECT_EQ(-1, fcntl(fd, F_GETFL));
}

/* Each event exactly once, by the old reader or the new one. */
TEST_F(heir, continues)
{
	struct timerwheel_entry entry;
	struct timerwheel_event ev[8];
	struct timerwheel_table table;
	long n, i, got = 0;

	EXPECT_EQ(TIMERWHEEL_BACKEND_DEVICE, timerwheel_backend(self->w));
	EXPECT_EQ(5 * UNIT, timerwheel_now(self->w));
	while ((n = take(self->w, ev, 8)) > 0) {
		for (i = 0; i < n; i++) {
			EXPECT_EQ(2 + got + i, ev[i].key);
			EXPECT_EQ(3 * (2 + got + i), ev[i].value);
		}
		got += n;
	}
	EXPECT_EQ(3, got);
	ASSERT_EQ(0, timerwheel_table(self->w, &table));
	ASSERT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 77, &entry));
	EXPECT_EQ(777, entry.value);
	EXPECT_EQ(TIMERWHEEL_DONE, timerwheel_table_refresh(&table, entry.index, entry.generation,
							    2 * HOUR));
	EXPECT_EQ(0, timerwheel_advance(self->w, HOUR, 0));
	EXPECT_EQ(1, timerwheel_advance(self->w, HOUR + SEC, 0));
	EXPECT_EQ(1, take(self->w, ev, 8));
}

TEST(adopt_no_memory)
{
	struct timerwheel *wheel = NULL;
	int n, fd = orphan(16);

	ASSERT_LE(0, fd);
	for (n = 0; n < 3; n++) {
		fail_allocation = n;
		EXPECT_EQ(-ENOMEM, timerwheel_adopt(&wheel, fd, true));
	}
	EXPECT_EQ(NULL, wheel);
	/* The descriptor stays open for another try. */
	EXPECT_EQ(0, timerwheel_adopt(&wheel, fd, true));
	timerwheel_close(wheel);
}

#endif

TEST_HARNESS_MAIN
