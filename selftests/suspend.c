// SPDX-License-Identifier: GPL-2.0
/*
 * suspend: timers while the machine is suspended. No timer is early on any clock and none is lost.
 * Timers of BOOTTIME and REALTIME that fell due meanwhile are delivered at resume. MONOTONIC stops,
 * so its timers fire later.
 *
 * Runs only in a guest that can be suspended (scripts/vm/run --suspend sets TW_SUSPEND). From
 * suspend to RAM the RTC's alarm wakes it. From suspend to idle a byte on ttyS3 does: the UART is
 * in loopback mode, and it reports a received byte four character times later, which at 13 baud
 * are 3 seconds. In such a guest CLOCK_MONOTONIC continues in suspend to idle and stops in suspend
 * to RAM.
 */
#define _GNU_SOURCE
#include <glob.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <linux/serial.h>
#include "abuse.h"

#define ALARM	"/sys/class/rtc/rtc0/wakealarm"
#define LINE	"ttyS3"
#define STATE	"/sys/power/state"

#ifndef TIOCM_LOOP
#define TIOCM_LOOP	0x8000	/* of the kernel's termios.h, which libc's excludes */
#endif

/* Maximum lateness of a timer after resume or its deadline: emulation is slow after a resume */
#define LATE_MOST	(10 * SEC)

#define BULK	50000	/* timers that fall due together while the machine sleeps */

struct one {
	__u32 clock;
	clockid_t id;
	int fd;
	__u64 armed;		/* the wheel's clock when the timers were armed... */
	__u64 woke;		/* ...and at resume */
	bool had[5];		/* timers that were delivered */
};

/* Deadlines in ms after arming: before, during and after the suspend */
static const __u64 after_ms[] = { 1, 1500, 2500, 20000, 3600000 };

FIXTURE(suspend) {
	const char *cannot;
	struct one one[3];
	int asking;	/* a wheel with TIMERWHEEL_SETUP_CLOCK_SET */
	int line;
};

FIXTURE_VARIANT(suspend) {
	bool ram;
};

FIXTURE_VARIANT_ADD(suspend, to_ram) {
	true
};

FIXTURE_VARIANT_ADD(suspend, to_idle) {
	false
};

FIXTURE_SETUP(suspend)
{
	static const struct one all[] = {
		{ .clock = TIMERWHEEL_CLOCK_MONOTONIC, .id = CLOCK_MONOTONIC },
		{ .clock = TIMERWHEEL_CLOCK_BOOTTIME, .id = CLOCK_BOOTTIME },
		{ .clock = TIMERWHEEL_CLOCK_REALTIME, .id = CLOCK_REALTIME },
	};
	struct timerwheel_setup asking = {
		.flags = TIMERWHEEL_SETUP_CLOCK_SET, .clock = TIMERWHEEL_CLOCK_REALTIME,
	};
	int i;

	self->line = -1;
	self->cannot = NULL;
	if (!getenv("TW_SUSPEND"))
		self->cannot = "not in a guest that can be suspended: scripts/vm/run --suspend";
	else if (access(STATE, W_OK) || access(ALARM, W_OK))
		self->cannot = "this kernel cannot suspend, or has no RTC";
	self->asking = dev_open(O_NONBLOCK);
	ASSERT_EQ(0, dev_setup(self->asking, &asking));
	for (i = 0; i < 3; i++) {
		self->one[i] = all[i];
		self->one[i].fd = tw_open_clock(all[i].clock, 0, 0);
		ASSERT_LE(0, self->one[i].fd);
	}
}

FIXTURE_TEARDOWN(suspend)
{
	int i;

	for (i = 0; i < 3; i++)
		close(self->one[i].fd);
	close(self->asking);
	close(self->line);
}

/* Send a byte that arrives in a few seconds and wakes the machine. Returns 0 or -errno. */
static int line_rings(int *line)
{
	struct serial_struct serial;
	int loop = TIOCM_LOOP;
	struct termios t;

	*line = open("/dev/" LINE, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (*line < 0 || tcgetattr(*line, &t) || ioctl(*line, TIOCGSERIAL, &serial))
		return -errno;
	cfmakeraw(&t);
	cfsetspeed(&t, B38400);		/* with ASYNC_SPD_CUST: use custom_divisor */
	t.c_cflag |= CLOCAL | CREAD;
	serial.flags = (serial.flags & ~ASYNC_SPD_MASK) | ASYNC_SPD_CUST;
	serial.custom_divisor = 3 * serial.baud_base / 40;
	if (ioctl(*line, TIOCSSERIAL, &serial) || tcsetattr(*line, TCSANOW, &t) ||
	    ioctl(*line, TIOCMBIS, &loop))
		return -errno;
	tcflush(*line, TCIOFLUSH);
	if (tw_file_write("/sys/class/tty/" LINE "/power/wakeup", "enabled"))
		return -ENODEV;
	return write(*line, "", 1) == 1 ? 0 : -errno;
}

/* Suspend for about 3 to 4 seconds. Returns 0 or -errno. */
static int sleep_now(bool ram, int *line)
{
	int ret;

	if (!ram) {
		ret = line_rings(line);
		return ret ? ret : tw_file_write(STATE, "freeze");
	}
	ret = tw_file_write("/sys/power/mem_sleep", "deep");
	if (!ret)
		tw_file_write(ALARM, "0");
	if (!ret)
		ret = tw_file_write(ALARM, "+4");
	return ret ? ret : tw_file_write(STATE, "mem");
}

/*
 * Read the due events of a wheel: timers that were armed, each once, never early and at most
 * LATE_MOST late. Returns 0 or a negative error.
 */
static int take(struct one *o)
{
	struct timerwheel_event ev[16];
	int i, n = dev_read(o->fd, ev, 16);
	__u64 due, now = tw_now(o->id);

	if (n < 0)
		return n == -EAGAIN ? 0 : n;
	for (i = 0; i < n; i++) {
		if (ev[i].key >= ARRAY_SIZE(after_ms) || o->had[ev[i].key])
			return -EEXIST;
		o->had[ev[i].key] = true;
		if (ev[i].deadline < o->armed + after_ms[ev[i].key] * MSEC)
			return -ERANGE;
		if (ev[i].fired < ev[i].deadline || now < ev[i].fired)
			return -ETIME;
		due = ev[i].deadline > o->woke ? ev[i].deadline : o->woke;
		if (ev[i].fired > due + LATE_MOST)
			return -ELNRNG;
	}
	return 0;
}

/* Timers on three clocks and all CPUs that fall due before, during and after the suspend */
TEST_F_TIMEOUT(suspend, all_clocks, TIMEOUT)
{
	__u64 gap, boot, mono, until;
	struct timerwheel_entry ent;
	struct one *o;
	int i, k, cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t key;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	mono = tw_now(CLOCK_MONOTONIC);
	boot = tw_now(CLOCK_BOOTTIME);
	for (i = 0; i < 3; i++) {
		o = &self->one[i];
		o->armed = tw_now(o->id);
		for (key = 0; key < ARRAY_SIZE(after_ms); key++) {
			tw_pin((i + key) % cpus);
			ASSERT_EQ(0, tw_add1(o->fd, key, key, after_ms[key] * MSEC, 0));
		}
	}
	ASSERT_EQ(0, sleep_now(variant->ram, &self->line));
	for (i = 0; i < 3; i++)
		self->one[i].woke = tw_now(self->one[i].id);
	gap = tw_now(CLOCK_BOOTTIME) - boot - (tw_now(CLOCK_MONOTONIC) - mono);
	printf("# suspended; BOOTTIME advanced by %llu ms, MONOTONIC by %llu ms less\n",
	       (unsigned long long)(tw_now(CLOCK_BOOTTIME) - boot) / MSEC,
	       (unsigned long long)gap / MSEC);
	fflush(stdout);
	EXPECT_LT(2500 * MSEC, tw_now(CLOCK_BOOTTIME) - boot);
	EXPECT_TRUE(!variant->ram || gap > SEC);
	/* suspend and resume do not count as setting the clock */
	EXPECT_EQ(0, dev_poll(self->asking, 0));
	/* on each clock, timers whose deadline has passed are delivered; the others are pending */
	for (i = 0; i < 3; i++) {
		o = &self->one[i];
		until = tw_now(CLOCK_MONOTONIC) + LONG_MS * MSEC;
		do {
			ASSERT_EQ(0, take(o));
		} while (!(o->had[0] && (i == 0 || (o->had[1] && o->had[2]))) &&
			 tw_now(CLOCK_MONOTONIC) < until);
		EXPECT_TRUE(o->had[0]);
		EXPECT_TRUE(!i || (o->had[1] && o->had[2]));
		for (key = 0; key < ARRAY_SIZE(after_ms); key++) {
			k = tw_get1(o->fd, key, &ent);
			if (o->had[key]) {
				EXPECT_EQ(-ENOENT, k);
				continue;
			}
			/* it may be due by now */
			ASSERT_LT(0, k);
			EXPECT_LE(o->armed + after_ms[key] * MSEC, ent.deadline);
		}
		EXPECT_FALSE(o->had[4]);
	}
	/* timers of MONOTONIC fire when that clock reaches them */
	o = &self->one[0];
	until = tw_now(CLOCK_MONOTONIC) + LONG_MS * MSEC;
	while (!(o->had[1] && o->had[2]) && tw_now(CLOCK_MONOTONIC) < until) {
		ASSERT_LE(0, dev_poll(o->fd, 100));
		ASSERT_EQ(0, take(o));
	}
	EXPECT_TRUE(o->had[1] && o->had[2]);
}

/* Open a wheel that wakes the machine. Returns its descriptor or -errno. */
static int open_alarm(__u32 clock)
{
	struct timerwheel_setup setup = { .flags = TIMERWHEEL_SETUP_ALARM, .clock = clock };
	int fd = dev_open(O_NONBLOCK);
	int ret = fd < 0 ? fd : dev_setup(fd, &setup);

	if (ret >= 0)
		return fd;
	close(fd);
	return ret;
}

/* Refused without CAP_WAKE_ALARM, and for clocks that stop during suspend */
TEST(alarm_refused)
{
	EXPECT_EQ(-EINVAL, open_alarm(TIMERWHEEL_CLOCK_MONOTONIC));
	EXPECT_EQ(-EINVAL, open_alarm(TIMERWHEEL_CLOCK_MANUAL));
	ASSERT_EQ(0, chmod(TW_DEV, 0666));
	ASSERT_EQ(0, seteuid(1000));
	EXPECT_EQ(-EPERM, open_alarm(TIMERWHEEL_CLOCK_BOOTTIME));
	EXPECT_EQ(-EPERM, open_alarm(TIMERWHEEL_CLOCK_REALTIME));
	ASSERT_EQ(0, seteuid(0));
	ASSERT_EQ(0, chmod(TW_DEV, 0660));
}

FIXTURE(alarm) {
	const char *cannot;
	int fd;
	__u64 base;	/* the wheel's clock when the test began */
};

FIXTURE_VARIANT(alarm) {
	__u32 clock;
	clockid_t id;
};

FIXTURE_VARIANT_ADD(alarm, boottime) {
	TIMERWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME
};

FIXTURE_VARIANT_ADD(alarm, realtime) {
	TIMERWHEEL_CLOCK_REALTIME, CLOCK_REALTIME
};

FIXTURE_SETUP(alarm)
{
	struct timerwheel_info info;

	self->fd = -1;
	self->cannot = NULL;
	if (!getenv("TW_SUSPEND"))
		self->cannot = "not in a guest that can be suspended: scripts/vm/run --suspend";
	else if (access(STATE, W_OK) || tw_file_write("/sys/power/mem_sleep", "deep"))
		self->cannot = "this kernel cannot suspend to RAM";
	if (self->cannot)
		return;
	/* if the wheel does not wake the machine the RTC does, too late for any test to pass */
	tw_file_write(ALARM, "0");
	ASSERT_EQ(0, tw_file_write(ALARM, "+70"));
	self->fd = open_alarm(variant->clock);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(TIMERWHEEL_INFO_SETTLED | TIMERWHEEL_INFO_ALARM, info.flags);
	self->base = tw_now(variant->id);
}

FIXTURE_TEARDOWN(alarm)
{
	close(self->fd);
}

/*
 * The earliest of several timers on different CPUs wakes the machine. A cascade, which may come
 * about 65 s before its timers, does not wake it, nor does a timer of a wheel without
 * TIMERWHEEL_SETUP_ALARM.
 */
TEST_F_TIMEOUT(alarm, wakes, TIMEOUT)
{
	int other, cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct timerwheel_event ev;
	__u64 mono, woke;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	other = tw_open_clock(variant->clock, 0, 0);
	ASSERT_LE(0, other);
	ASSERT_EQ(0, tw_add1(other, 1, 0, 3 * SEC, 0));
	tw_pin(0);
	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, 3600 * SEC, 0));
	tw_pin(cpus - 1);
	ASSERT_EQ(0, tw_add1(self->fd, 2, 0, self->base + 20 * SEC, TIMERWHEEL_ABS));
	mono = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, tw_file_write(STATE, "mem"));
	woke = tw_now(variant->id);
	printf("# resumed after %llu ms, of which %llu ms awake\n",
	       (unsigned long long)(woke - self->base) / MSEC,
	       (unsigned long long)(tw_now(CLOCK_MONOTONIC) - mono) / MSEC);
	fflush(stdout);
	EXPECT_LT(self->base + 18 * SEC, woke);
	EXPECT_GT(self->base + 35 * SEC, woke);
	EXPECT_GT(15 * SEC, tw_now(CLOCK_MONOTONIC) - mono);
	ASSERT_EQ(1, dev_poll(self->fd, LONG_MS));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(2, ev.key);
	EXPECT_LE(self->base + 20 * SEC, ev.fired);
	EXPECT_EQ(-EAGAIN, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(1, dev_poll(other, LONG_MS));
	close(other);
}

/* The earliest timer of several wheels wakes the machine, whichever wheel and CPU it belongs to. */
TEST_F_TIMEOUT(alarm, first_of_wheels, TIMEOUT)
{
	int i, fd[3] = { -1, self->fd, -1 }, cpus = sysconf(_SC_NPROCESSORS_ONLN);
	__u64 woke;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	for (i = 0; i < 3; i += 2) {
		fd[i] = open_alarm(variant->clock);
		ASSERT_LE(0, fd[i]);
	}
	/* the earliest timer belongs to the second wheel that was opened */
	for (i = 0; i < 3; i++) {
		tw_pin(0);
		ASSERT_EQ(0, tw_add1(fd[i], 1, 0, self->base + (i == 0 ? 12 : 60) * SEC,
				     TIMERWHEEL_ABS));
		tw_pin(cpus - 1);
		ASSERT_EQ(0, tw_add1(fd[i], 2, 0, self->base + 3600 * SEC, TIMERWHEEL_ABS));
	}
	ASSERT_EQ(0, tw_file_write(STATE, "mem"));
	woke = tw_now(variant->id);
	EXPECT_LT(self->base + 10 * SEC, woke);
	EXPECT_GT(self->base + 27 * SEC, woke);
	EXPECT_EQ(1, dev_poll(fd[0], LONG_MS));
	close(fd[0]);
	close(fd[2]);
}

/* After REALTIME was set back the machine wakes later by the same amount. */
TEST_F_TIMEOUT(alarm, set_back, TIMEOUT)
{
	__u64 woke;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	if (variant->clock != TIMERWHEEL_CLOCK_REALTIME)
		return;
	/* the wheel's base has seen the time before the change */
	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, 10 * MSEC, 0));
	ASSERT_EQ(1, dev_poll(self->fd, LONG_MS));
	ASSERT_EQ(0, tw_set_realtime(self->base - 60 * SEC));
	ASSERT_EQ(0, tw_add1(self->fd, 2, 0, self->base - 48 * SEC, TIMERWHEEL_ABS));
	ASSERT_EQ(0, tw_file_write(STATE, "mem"));
	woke = tw_now(CLOCK_REALTIME);
	EXPECT_LT(self->base - 50 * SEC, woke);
	EXPECT_GT(self->base - 33 * SEC, woke);
	ASSERT_EQ(0, tw_set_realtime(tw_now(CLOCK_REALTIME) + 60 * SEC));
}

/*
 * The RTC wakes the machine before the wheel would, and the wheel is closed. Then it neither wakes
 * the machine from the next suspend nor prevents that suspend.
 */
TEST_F_TIMEOUT(alarm, closed, TIMEOUT)
{
	__u64 woke;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	ASSERT_EQ(0, tw_add1(self->fd, 1, 0, self->base + 12 * SEC, TIMERWHEEL_ABS));
	ASSERT_EQ(0, tw_file_write(ALARM, "0"));
	ASSERT_EQ(0, tw_file_write(ALARM, "+4"));
	ASSERT_EQ(0, tw_file_write(STATE, "mem"));
	woke = tw_now(variant->id);
	EXPECT_GT(self->base + 9 * SEC, woke);
	close(self->fd);
	self->fd = -1;
	tw_file_write(ALARM, "0");
	ASSERT_EQ(0, tw_file_write(ALARM, "+15"));
	ASSERT_EQ(0, tw_file_write(STATE, "mem"));
	EXPECT_LT(woke + 13 * SEC, tw_now(variant->id));
}

/* An event waits until its readers are woken (wake-up batching): the machine wakes for this. */
TEST_F_TIMEOUT(alarm, batched, TIMEOUT)
{
	struct timerwheel_setup setup = {
		.flags = TIMERWHEEL_SETUP_ALARM, .clock = variant->clock,
		.wake_events = 2, .wake_ns = 15 * SEC,
	};
	__u64 woke;
	int fd;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	fd = dev_open(O_NONBLOCK);
	ASSERT_EQ(0, dev_setup(fd, &setup));
	ASSERT_EQ(0, tw_add1(fd, 1, 0, 10 * MSEC, 0));
	tw_sleep(100 * MSEC);
	ASSERT_EQ(0, tw_file_write(STATE, "mem"));
	woke = tw_now(variant->id);
	EXPECT_LT(self->base + 13 * SEC, woke);
	EXPECT_GT(self->base + 30 * SEC, woke);
	EXPECT_EQ(1, dev_poll(fd, LONG_MS));
	close(fd);
}

/* Suspend fails if a timer falls due within 2 seconds. */
TEST_F_TIMEOUT(alarm, soon, TIMEOUT)
{
	int try, ret = 0;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	/* Retry if a slow machine took longer. */
	for (try = 0; try < 5; try++) {
		self->base = tw_now(variant->id);
		ASSERT_LE(0, tw_add1(self->fd, 1, 0, 1900 * MSEC, 0));
		ret = tw_file_write(STATE, "mem");
		if (tw_now(variant->id) < self->base + 1900 * MSEC)
			break;
	}
	EXPECT_GT(5, try);
	EXPECT_EQ(-EBUSY, ret);
}

/* The number of wakeup events that the module has reported, or -1 */
static long wakeups(void)
{
	static const char pattern[] = "/sys/devices/platform/timerwheel/wakeup/wakeup*/event_count";
	char text[32] = "";
	glob_t found;
	ssize_t n;
	int fd;

	if (glob(pattern, 0, NULL, &found))
		return -1;
	fd = open(found.gl_pathv[0], O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	globfree(&found);
	return n > 0 ? atol(text) : -1;
}

/*
 * Switch the kernel's detectors of CPUs that are stuck on or off. In test mode the kernel waits in
 * a busy loop of 5,000 delays of 1 ms, without rescheduling. If the host gives an emulated CPU a
 * fifth of a processor, the loop takes longer than the 20 s of the detectors.
 */
static void detect_stuck(bool on)
{
	tw_file_write("/proc/sys/kernel/soft_watchdog", on ? "1" : "0");
	tw_file_write("/sys/module/rcupdate/parameters/rcu_cpu_stall_suppress", on ? "0" : "1");
}

/*
 * A timer that falls due while devices are being suspended ends the suspend, because it is a wakeup
 * event. (Test mode: the kernel waits for 5 s with all devices suspended, and resumes them.)
 */
TEST_F_TIMEOUT(alarm, while_devices_are_suspended, TIMEOUT)
{
	static const char test[] = "/sys/power/pm_test";
	struct timerwheel_event ev;
	long before;
	int try;

	if (!self->cannot && access(test, W_OK))
		self->cannot = "this kernel has no CONFIG_PM_DEBUG";
	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	before = wakeups();
	ASSERT_LE(0, before);
	ASSERT_EQ(0, tw_file_write(test, "devices"));
	/* A slow machine takes 2 s to freeze all tasks; then suspend fails, as in "soon". */
	for (try = 0; try < 5 && wakeups() == before; try++) {
		ASSERT_EQ(0, tw_add1(self->fd, 1, 0, 4 * SEC, 0));
		detect_stuck(false);
		tw_file_write(STATE, "mem");
		detect_stuck(true);
		ASSERT_EQ(1, dev_poll(self->fd, LONG_MS));
		ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	}
	ASSERT_EQ(0, tw_file_write(test, "none"));
	EXPECT_EQ(before + 1, wakeups());
}

struct sleeper {
	int fd;
	int ret;
	struct timerwheel_event ev;
};

static void *sleeper(void *arg)
{
	struct sleeper *s = arg;

	s->ret = dev_read(s->fd, &s->ev, 1);
	return NULL;
}

/*
 * Many timers and a periodic timer fall due during the suspend. They expire at resume in bounded
 * batches. Each is delivered once, and the periodic timer's first event has its overruns. A reader
 * that slept in read still sleeps.
 */
TEST_F_TIMEOUT(suspend, many_at_resume, TIMEOUT)
{
	struct timerwheel_event *ev = calloc(BULK + 1, sizeof(*ev));
	unsigned char *seen = calloc(BULK + 1, 1);
	struct one *o = &self->one[1];
	struct sleeper s = { .fd = dev_open(0) };
	struct timerwheel_stats st;
	int i, n, left;
	pthread_t id;
	__u64 base;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	ASSERT_LE(0, s.fd);
	ASSERT_EQ(0, tw_add1(s.fd, 1, 1, 8 * SEC, 0));
	ASSERT_EQ(0, pthread_create(&id, NULL, sleeper, &s));
	base = tw_now(CLOCK_BOOTTIME) + 2500 * MSEC;
	ASSERT_EQ(0, arm(o->fd, 0, BULK, base, 0, 0));
	ASSERT_EQ(0, arm(o->fd, BULK, 1, base, 0, MSEC));
	ASSERT_EQ(0, sleep_now(variant->ram, &self->line));
	ASSERT_LT(base, tw_now(CLOCK_BOOTTIME));
	/* The periodic timer fires again while the others are read. */
	for (left = BULK + 1; left; ) {
		n = left;
		ASSERT_EQ(n, tw_read_all(o->fd, ev, n, LONG_MS));
		for (i = 0; i < n; i++) {
			ASSERT_LE(base, ev[i].fired);
			ASSERT_GE(BULK, ev[i].key);
			if (ev[i].key == BULK && seen[BULK])
				continue;
			EXPECT_EQ(ev[i].key == BULK, ev[i].overruns > 0);
			ASSERT_EQ(0, seen[ev[i].key]);
			seen[ev[i].key] = 1;
			left--;
		}
	}
	ASSERT_EQ(0, tw_stats(o->fd, &st));
	EXPECT_GE(TW_BATCH_TIMERS, st.pass_max_timers);
	ASSERT_EQ(0, pthread_join(id, NULL));
	EXPECT_EQ(1, s.ret);
	EXPECT_LE(s.ev.deadline, s.ev.fired);
	close(s.fd);
}

/* --- Resident timers: armed in the deadline table --------------------------------------- */

/* A resident wheel, its table, and timers with the keys 0 to 7 */
struct resident {
	int fd;
	unsigned int bits;
	__u64 *table;
	__u32 index[8], generation[8];
};

/* Returns 0 or -errno */
static int resident_open(struct resident *r, __u32 clock, __u32 flags)
{
	struct timerwheel_setup setup = {
		.flags = TIMERWHEEL_SETUP_RESIDENT | flags, .clock = clock,
	};
	struct timerwheel_info info;
	int ret;

	r->fd = dev_open(O_NONBLOCK);
	ret = r->fd < 0 ? r->fd : dev_setup(r->fd, &setup) ?: tw_info(r->fd, &info);
	if (ret)
		return ret;
	r->bits = info.generation_bits;
	r->table = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
			TIMERWHEEL_MMAP_DEADLINES);
	return r->table == MAP_FAILED ? -errno : 0;
}

static void resident_close(struct resident *r)
{
	munmap(r->table, getpagesize());
	close(r->fd);
}

static int resident_add(struct resident *r, __u64 key, __u64 deadline)
{
	struct timerwheel_add add = {
		.key = key, .value = ~key, .deadline = deadline, .flags = TIMERWHEEL_ABS,
	};
	int ret = tw_add_elem(r->fd, &add);

	r->index[key] = add.index;
	r->generation[key] = add.generation;
	return ret;
}

static int resident_arm(struct resident *r, int key, __u64 deadline)
{
	return timerwheel_mapped_arm(r->table, r->index[key],
				     timerwheel_mapped_entry(deadline, r->generation[key], r->bits),
				     r->bits);
}

static int resident_cancel(struct resident *r, int key)
{
	return timerwheel_mapped_cancel(r->table, r->index[key], r->generation[key], r->bits);
}

static unsigned int resident_state(const struct resident *r, int key)
{
	return __atomic_load_n(&r->table[r->index[key]], __ATOMIC_RELAXED) &
	       TIMERWHEEL_TABLE_FIRED;
}

/* The operation on a timer in the table before the suspend; FIRES and AGAIN have an event. */
enum { FIRES, AGAIN, CANCELLED, LATER, PARKED, RESIDENTS };

#define SUSPENDED_UNTIL(armed)	((armed) + 2500 * MSEC)

static int resident_prepare(struct resident *r, __u64 now)
{
	int key, cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (key = 0; key < RESIDENTS; key++) {
		tw_pin(key % cpus);
		if (resident_add(r, key, now + (key == PARKED ? 500 : 1800) * MSEC))
			return -1;
		if (key >= AGAIN && key != LATER && resident_cancel(r, key) != TIMERWHEEL_DONE)
			return -2;
		if ((key <= AGAIN && resident_arm(r, key, SUSPENDED_UNTIL(now))) ||
		    (key == LATER && resident_arm(r, key, now + HOUR)))
			return -3;
	}
	return 0;
}

/* Wait until the timers that have an event have fired; the cancelled timer is parked. */
static bool resident_ended(const struct resident *r)
{
	__u64 until = tw_now(CLOCK_MONOTONIC) + LONG_MS * MSEC;

	while (resident_state(r, FIRES) != TIMERWHEEL_TABLE_FIRED ||
	       resident_state(r, AGAIN) != TIMERWHEEL_TABLE_FIRED ||
	       resident_state(r, CANCELLED) != TIMERWHEEL_TABLE_PARKED) {
		if (tw_now(CLOCK_MONOTONIC) > until)
			return false;
		tw_sleep(MSEC);
	}
	return true;
}

/*
 * Changes in the table before a suspend are effective after it, on each clock: deadlines that
 * passed during the suspend, cancels, and later deadlines.
 */
TEST_F_TIMEOUT(suspend, resident, TIMEOUT)
{
	__u64 armed[3], unit = 0, deadline;
	struct timerwheel_event ev[8];
	struct timerwheel_stats st;
	struct resident r[3];
	int i, k;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, resident_open(&r[i], self->one[i].clock, 0));
		armed[i] = tw_now(self->one[i].id);
		ASSERT_EQ(0, resident_prepare(&r[i], armed[i]));
	}
	for (i = 0; i < 3; i++) {
		for (k = 0; resident_state(&r[i], PARKED) != TIMERWHEEL_TABLE_PARKED; k++) {
			ASSERT_GT(LONG_MS, k);
			tw_sleep(MSEC);
		}
	}
	ASSERT_EQ(0, sleep_now(variant->ram, &self->line));
	for (i = 0; i < 3; i++) {
		unit = 1ULL << r[i].bits;
		ASSERT_TRUE(resident_ended(&r[i]));
		EXPECT_EQ(TIMERWHEEL_TABLE_ARMED, resident_state(&r[i], LATER));
		EXPECT_EQ(TIMERWHEEL_TABLE_PARKED, resident_state(&r[i], PARKED));
		deadline = (SUSPENDED_UNTIL(armed[i]) + unit - 1) & ~(unit - 1);
		EXPECT_LE(deadline, tw_now(self->one[i].id));
		ASSERT_EQ(2, dev_read(r[i].fd, ev, 8));
		EXPECT_EQ(FIRES + AGAIN, ev[0].key + ev[1].key);
		for (k = 0; k < 2; k++) {
			EXPECT_GE(AGAIN, ev[k].key);
			EXPECT_EQ(deadline, ev[k].deadline);
			EXPECT_LE(deadline, ev[k].fired);
			EXPECT_GE(tw_now(self->one[i].id), ev[k].fired);
		}
		ASSERT_EQ(0, tw_stats(r[i].fd, &st));
		EXPECT_EQ(1, st.pending);
		EXPECT_EQ(4, st.parked);
		EXPECT_TRUE(tw_balanced(&st));
		EXPECT_EQ(TIMERWHEEL_DONE, resident_cancel(&r[i], LATER));
		resident_close(&r[i]);
	}
}

/*
 * A timer wakes the machine at the latest at the deadline in the table. It may wake it earlier, at
 * the deadline of the last call; then it is still armed, and wakes the machine again. A cancelled
 * timer may also wake the machine.
 */
TEST_F_TIMEOUT(alarm, resident, TIMEOUT)
{
	struct timerwheel_event ev[8];
	struct resident r;
	int ret, wakes = 0;
	__u64 woke;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	ASSERT_EQ(0, resident_open(&r, variant->clock, TIMERWHEEL_SETUP_ALARM));
	ASSERT_EQ(0, resident_add(&r, 0, self->base + 12 * SEC));
	ASSERT_EQ(TIMERWHEEL_DONE, resident_cancel(&r, 0));
	ASSERT_EQ(0, resident_add(&r, 1, self->base + 8 * SEC));
	ASSERT_EQ(TIMERWHEEL_DONE, resident_cancel(&r, 1));
	ASSERT_EQ(TIMERWHEEL_DONE, resident_arm(&r, 1, self->base + 25 * SEC));
	/* not later, because an event that has come does not prevent suspend */
	while (tw_now(variant->id) < self->base + 22 * SEC) {
		EXPECT_EQ(TIMERWHEEL_TABLE_ARMED, resident_state(&r, 1));
		EXPECT_EQ(0, dev_poll(r.fd, 0));
		ret = tw_file_write(STATE, "mem");
		wakes += !ret;
		/* within 2 s of a timer, even of a cancelled timer */
		if (ret) {
			ASSERT_EQ(-EBUSY, ret);
			tw_sleep(200 * MSEC);
		}
	}
	woke = tw_now(variant->id);
	printf("# woken %d times\n", wakes);
	fflush(stdout);
	EXPECT_LE(1, wakes);
	EXPECT_GE(4, wakes);
	EXPECT_GT(self->base + 40 * SEC, woke);
	ASSERT_EQ(POLLIN, dev_poll(r.fd, LONG_MS));
	ASSERT_EQ(1, dev_read(r.fd, ev, 8));
	EXPECT_EQ(1, ev[0].key);
	EXPECT_LE(self->base + 25 * SEC, ev[0].deadline);
	EXPECT_LE(ev[0].deadline, ev[0].fired);
	EXPECT_EQ(TIMERWHEEL_TABLE_PARKED, resident_state(&r, 0));
	EXPECT_EQ(TIMERWHEEL_TABLE_FIRED, resident_state(&r, 1));
	resident_close(&r);
}

TEST_HARNESS_MAIN
