// SPDX-License-Identifier: GPL-2.0
/*
 * fail_nth: error paths. Each allocation, and each copy to or from user memory, that the kernel
 * makes for a call fails once. The test repeats a call with the 1st, the 2nd, ... of them failing
 * (/proc/PID/fail-nth), until none is left. Each time the call succeeds or fails with a documented
 * error, the wheel is in the state that the results imply (tw_model.h), and the call succeeds when
 * it is repeated. At the end no memory has leaked.
 *
 * Fault injection does not reach get_user() and put_user(): faults.c tests them with memory that is
 * inaccessible.
 *
 * Skipped on kernels without fault injection. With TW_VERBOSE=2 the kernel logs the place of each
 * injected fault.
 */
#include "tw_model.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define LIMIT		900		/* for one test, in s: emulation is slow */
#define DEBUGFS		"/sys/kernel/debug/"
#define CGROUP		"/sys/fs/cgroup/"
#define PRINTK		"/proc/sys/kernel/printk"
#define MODULE		"/vm/timerwheel.ko"	/* or TW_MODULE */

/* --- Faults ----------------------------------------------------------------------- */

enum { SLAB, PAGE, COPY, KINDS };

static const char * const kinds[KINDS] = { "failslab", "fail_page_alloc", "fail_usercopy" };

/* Initial value of the `times' files. They count down and so show the kind of fault. */
#define TIMES		1000000000

/* Results of a sweep */
struct tally {
	char name[32];
	unsigned int made[KINDS];	/* faults injected */
	unsigned int refused;		/* calls that then failed */
};

static struct {
	unsigned int n;
	struct tally tally[64];
} *tallies;				/* shared with the children */

static char missing[128];		/* what this kernel lacks */

static int file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret = fd < 0 ? -errno : tw_err(write(fd, text, strlen(text)));

	if (fd >= 0)
		close(fd);
	return ret < 0 ? ret : 0;
}

static int file_read(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int n, got = 0;

	if (fd < 0)
		return -errno;
	while (got < (int)size - 1 && (n = read(fd, buf + got, size - 1 - got)) > 0)
		got += n;
	close(fd);
	buf[got] = 0;
	return got;
}

/* Does the file contain @text? */
static bool file_has(const char *path, const char *text)
{
	static char buf[1 << 16];

	return file_read(path, buf, sizeof(buf)) > 0 && strstr(buf, text);
}

static int fault_set(int kind, const char *name, const char *value)
{
	char path[96];

	snprintf(path, sizeof(path), DEBUGFS "%s/%s", kinds[kind], name);
	return file_write(path, value);
}

static void fault_need(const char *what)
{
	if (!missing[0])
		snprintf(missing, sizeof(missing), "this kernel has no %s", what);
}

/* Enable all kinds of faults, also for GFP_KERNEL, but let only fail-nth inject them. */
static void __attribute__((constructor)) fault_init(void)
{
	static const char * const config[KINDS] = {
		"CONFIG_FAILSLAB", "CONFIG_FAIL_PAGE_ALLOC", "CONFIG_FAULT_INJECTION_USERCOPY",
	};
	char path[96];
	int k;

	tallies = mmap(NULL, sizeof(*tallies), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tallies == MAP_FAILED)
		abort();
	tallies->n = 0;		/* charges the page to this process, not to the first child */
	if (access("/proc/self/fail-nth", W_OK))
		fault_need("/proc/PID/fail-nth (CONFIG_FAULT_INJECTION)");
	if (access(DEBUGFS, X_OK))
		fault_need(DEBUGFS);
	for (k = 0; k < KINDS; k++) {
		snprintf(path, sizeof(path), "%d", TIMES);
		if (fault_set(k, "times", path) || fault_set(k, "probability", "0") ||
		    fault_set(k, "verbose", getenv("TW_VERBOSE") ?: "0"))
			fault_need(config[k]);
	}
	fault_set(SLAB, "ignore-gfp-wait", "N");
	fault_set(PAGE, "ignore-gfp-wait", "N");
	fault_set(PAGE, "ignore-gfp-highmem", "N");
}

static int fault_times(int kind)
{
	char path[96], buf[16];

	snprintf(path, sizeof(path), DEBUGFS "%s/times", kinds[kind]);
	return file_read(path, buf, sizeof(buf)) > 0 ? atoi(buf) : 0;
}

/* --- Sweeps ----------------------------------------------------------------------- */

/*
 * A slab allocation needs a new page in some rounds only, which shifts the numbers of all later
 * allocations. So a sweep makes four passes: with faults of slabs and not of pages, then of pages
 * and not of slabs, and both again.
 */
enum { PASSES = 4 };

struct sweep {
	struct tally *tally;
	int pass;
	unsigned int nth;	/* number of the fault to inject in this round */
	unsigned int from;	/* the first fault has number @from + 1... */
	unsigned int step;	/* ...up to @tail only every @step-th is injected... */
	unsigned int tail;	/* ...and from there on each */
	bool hit;		/* it was injected */
	int fd;			/* fail-nth of this thread */
	int times[KINDS];
};

static void sweep_kinds(bool slab, bool page)
{
	/* no cache is marked for the filter, and no allocation has order 100 */
	fault_set(SLAB, "cache-filter", slab ? "N" : "Y");
	fault_set(PAGE, "min-order", page ? "0" : "100");
}

static void sweep_begin(struct sweep *s, const char *name)
{
	char path[64];

	*s = (struct sweep) {
		.tally = &tallies->tally[tallies->n++], .step = 1,
	};
	sweep_kinds(true, true);
	snprintf(s->tally->name, sizeof(s->tally->name), "%s", name);
	snprintf(path, sizeof(path), "/proc/self/task/%d/fail-nth", gettid());
	s->fd = open(path, O_RDWR | O_CLOEXEC);
	if (s->fd < 0)
		abort();
}

/* Make the nth allocation or copy from here to disarm() fail. */
static void arm(struct sweep *s)
{
	char buf[16];
	int k, len;

	for (k = 0; k < KINDS; k++)
		s->times[k] = fault_times(k);
	len = snprintf(buf, sizeof(buf), "%u", s->nth);
	if (pwrite(s->fd, buf, len, 0) != len)
		abort();
}

/* Returns the number of possible faults since arm(), up to the one that was injected. */
static unsigned int disarm(struct sweep *s)
{
	unsigned int left = 1;
	char buf[16] = "";
	int k;

	/* the copy made by this read may itself be the one that fails */
	if (pread(s->fd, buf, sizeof(buf) - 1, 0) > 0)
		left = atoi(buf);
	while (pwrite(s->fd, "0", 1, 0) != 1)
		;
	s->hit = !left;
	for (k = 0; k < KINDS; k++) {
		if (s->hit && fault_times(k) < s->times[k]) {
			s->tally->made[k]++;
			s->times[k] = -1;
		}
	}
	return s->nth - left;
}

/* The next round; false: all possible faults have been injected. */
static bool sweep_next(struct sweep *s)
{
	if (s->nth && s->hit) {
		s->nth += s->nth < s->tail ? s->step : 1;
	} else {
		if (s->nth && ++s->pass >= PASSES)
			return false;
		if (!s->tail)
			sweep_kinds(s->pass % 2 == 0, s->pass % 2);
		s->nth = s->from + 1;
	}
	s->hit = false;
	return s->nth < 5000;
}

/*
 * For slow rounds: inject some @rounds of the faults @from + 1 to @to. Half of the rounds are for
 * the last faults, each of them, because the module's faults come at the end. The other half are
 * spread evenly over the rest.
 */
static void sweep_some(struct sweep *s, unsigned int from, unsigned int to, unsigned int rounds)
{
	s->from = from;
	s->tail = to > from + rounds / 2 ? to - rounds / 2 : from + 1;
	s->step = (s->tail - from) / (rounds / 2) + 1;
	s->pass = PASSES - 1;
	s->nth = 0;
	printf("# %s: %u possible faults, from number %u on\n", s->tally->name, to, from + 1);
}

static unsigned int tally_sum(const struct tally *t)
{
	return t->made[SLAB] + t->made[PAGE] + t->made[COPY];
}

static void tally_print(const struct tally *t)
{
	printf("# %-20s %5u faults: %5u slab, %4u page, %4u copy; %4u calls failed\n", t->name,
	       tally_sum(t), t->made[SLAB], t->made[PAGE], t->made[COPY], t->refused);
	fflush(stdout);
}

/* Is @ret an error that a call may return after a fault? */
static bool refused(struct sweep *s, int ret)
{
	if (ret != -ENOMEM && ret != -EFAULT)
		return false;
	s->tally->refused++;
	return true;
}

/* Assert that @why, the description of an error, is NULL. */
#define FINE(why) do {								\
	const char *wrong = (why);						\
										\
	ASSERT_TRUE(!wrong) {							\
		TH_LOG("fault %u: %s", s->nth, wrong);			\
	}									\
} while (0)

/* --- Memory leaks ------------------------------------------------------------------ */

/* A file of this test's cgroup */
static char *cgroup_path(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), CGROUP "fail_nth.%d/%s", getpid(), name);
	return path;
}

/*
 * Create a cgroup with a child cgroup, in which the sweep runs. The child is removed first,
 * together with the partly used pages that the kernel has charged to it in advance. Charges of the
 * parent after that are memory in use.
 */
static int cgroup_make(void)
{
	file_write(CGROUP "cgroup.subtree_control", "+memory");
	if (mkdir(cgroup_path(""), 0700) ||
	    file_write(cgroup_path("cgroup.subtree_control"), "+memory") ||
	    mkdir(cgroup_path("run"), 0700))
		return -errno;
	return access(cgroup_path("run/memory.current"), R_OK) ? -ENOENT : 0;
}

/* Remove both. Returns the bytes that stay charged after reclaim and up to 10 s for RCU. */
static long cgroup_end(void)
{
	__u64 end = tw_now(CLOCK_MONOTONIC) + 10 * SEC;
	char buf[32];
	long left;

	for (;;) {
		file_write(cgroup_path("memory.high"), "0");	/* flushes stocks... */
		file_write(cgroup_path("memory.reclaim"), "1G");	/* ...and LRU batches */
		rmdir(cgroup_path("run"));
		left = file_read(cgroup_path("memory.current"), buf, sizeof(buf)) > 0 ?
		       atol(buf) : -1;
		if (!left || tw_now(CLOCK_MONOTONIC) > end)
			break;
		tw_sleep(20 * MSEC);
	}
	rmdir(cgroup_path(""));
	return left;
}

typedef void (*sweep_fn)(struct __test_metadata *_metadata, struct sweep *s);

/* Run a sweep in its own process and cgroup, and check that no memory has leaked. */
static void sweep_run(struct __test_metadata *_metadata, sweep_fn fn)
{
	struct sweep s;
	int status;
	pid_t pid;
	long left;

	if (missing[0])
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, cgroup_make()) {
		TH_LOG("no memory cgroup: leaks would go unnoticed");
	}
	/* the path contains the parent's pid */
	const char *procs = cgroup_path("run/cgroup.procs");

	pid = fork();
	if (!pid) {
		ASSERT_EQ(0, file_write(procs, "0"));
		sweep_begin(&s, _metadata->name);
		fn(_metadata, &s);
		EXPECT_FALSE(s.hit) {
			TH_LOG("no end after %u faults", s.nth);
		}
		_exit(!_metadata->passed);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	tally_print(&tallies->tally[tallies->n - 1]);
	EXPECT_LT(0, tally_sum(&tallies->tally[tallies->n - 1])) {
		TH_LOG("no fault was injected");
	}
	left = cgroup_end();
	EXPECT_EQ(0, left) {
		TH_LOG("%ld bytes of memory leaked", left);
	}
}

FIXTURE(fail) {
};

FIXTURE_SETUP(fail)
{
	ASSERT_LE(2, sysconf(_SC_NPROCESSORS_ONLN)) {
		TH_LOG("this needs two CPUs");
	}
}

FIXTURE_TEARDOWN(fail)
{
}

#define SWEEP(sequence)								\
static void sweep_##sequence(struct __test_metadata *_metadata, struct sweep *s);	\
TEST_F_TIMEOUT(fail, sequence, LIMIT)						\
{										\
	sweep_run(_metadata, sweep_##sequence);					\
}										\
static void sweep_##sequence(struct __test_metadata *_metadata, struct sweep *s)

/* --- Wheels ----------------------------------------------------------------------- */

static __u64 user_memory(int fd)
{
	struct timerwheel_info info;

	return tw_info(fd, &info) ? ~0ULL : info.user_memory;
}

/*
 * Bytes charged to the only wheel of a user. Closed wheels may still be charged for a while, so
 * wait until they are freed. ~0: the user stays charged for other memory.
 */
static __u64 charged(int fd)
{
	struct timerwheel_stats st;
	int i;

	if (tw_stats(fd, &st))
		return ~0ULL;
	for (i = 0; i < 5000 && user_memory(fd) != st.memory; i++)
		tw_sleep(MSEC);
	return user_memory(fd) == st.memory ? st.memory : ~0ULL;
}

/*
 * Bytes of a directory for @pages pages, of the directories that it has replaced, and of the pages.
 * The first has 7 entries and a link, each of the others twice as many.
 */
static __u64 directory(__u32 pages, __u32 size)
{
	__u64 room = 8, all = room;

	for (; room - 1 < pages; all += room)
		room *= 2;
	return pages ? all * sizeof(void *) + (__u64)pages * size : 0;
}

/* Is the deadline table mapped? */
static bool deadlines_mapped;

/*
 * Bytes charged to a wheel that has had @peak timers at once. Timers are allocated in pages of 64,
 * of which index 0 is not used. There is a bucket for each 14 timers, and a page has 64 buckets.
 */
static __u64 charged_for(__u32 peak)
{
	static __u64 none;	/* of a MANUAL wheel with a base and without a timer */
	__u32 pages = peak ? peak / 64 + 1 : 0, made = peak ? pages * 64 - 1 : 0;
	__u32 buckets = made ? (made + 13) / 14 : 1, page = getpagesize();
	struct timerwheel_stats st;
	int fd;

	if (!none) {
		fd = tw_open_manual(1);
		tw_remove1(fd, 1);
		none = tw_stats(fd, &st) ? 0 : st.memory - directory(1, 4096);
		close(fd);
	}
	return none + directory(pages, 4096) + directory((buckets + 63) / 64, 4096) +
	       (deadlines_mapped ? directory(made / (page / 8) + 1, page) : 0);
}

/* Does the wheel differ from the model, or the memory charged for it from charged_for()? */
static const char *differs(struct model *m)
{
	const char *why = model_differs(m);

	if (!why && m->manual &&
	    !model_same(m, "bytes charged", 0, charged(m->fd), charged_for(m->peak)))
		why = m->why;
	return why;
}

/*
 * Open a wheel with all sorts of timers:
 *   0 to 7 pending, 8 to 15 due, 16 to 19 pending and periodic, 20 to 23 due and
 *   periodic, 24 to 31 do not exist
 * @near: a MANUAL wheel. Otherwise a wheel with a running clock whose timers are all on CPU 0,
 * while the test runs on CPU 1, where the wheel has no base.
 */
static void rig_open(struct __test_metadata *_metadata, struct sweep *s, struct model *m,
		     bool near)
{
	int fd = near ? tw_open_manual(1) : dev_open(O_NONBLOCK);
	__u64 base = near ? 0 : tw_now(CLOCK_MONOTONIC);

	ASSERT_LE(0, fd);
	model_init(m, fd, near, 32);
	ASSERT_EQ(0, tw_pin(0));
	FINE(model_fill(m, 0, 8, 100, base + HOUR, 0));
	FINE(model_fill(m, 8, 16, 200, base, 0));
	FINE(model_fill(m, 16, 20, 300, base + HOUR, HOUR));
	FINE(model_fill(m, 20, 24, 400, base, HOUR));
	ASSERT_EQ(0, tw_pin(1));
}

/* Compare with the model, read all events, compare again, and close. */
static void rig_close(struct __test_metadata *_metadata, struct sweep *s, struct model *m)
{
	FINE(differs(m));
	FINE(model_read_all(m));
	FINE(differs(m));
	model_free(m);
}

/* --- Open, settings --------------------------------------------------------------- */

/* open and close: of a user without wheels, so that open also creates the user */
SWEEP(open_close)
{
	int fd;

	/* root would not do, because id 0 needs no memory in the index of users */
	ASSERT_EQ(0, setreuid(1000, -1));
	while (sweep_next(s)) {
		arm(s);
		fd = dev_open(O_NONBLOCK);
		if (fd >= 0)
			close(fd);
		disarm(s);
		ASSERT_TRUE(fd >= 0 || refused(s, fd));

		fd = dev_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		EXPECT_NE(~0ULL, charged(fd));
		EXPECT_EQ(TIMERWHEEL_WAS_NONE, tw_add1(fd, 1, 1, HOUR, 0));
		close(fd);
	}
}

/* SETUP of a wheel that has a base: failed without effect, or done */
SWEEP(settings)
{
	struct timerwheel_info info;
	int fd, ret;

	while (sweep_next(s)) {
		struct timerwheel_setup setup = {
			.clock = TIMERWHEEL_CLOCK_MANUAL, .slots = 64, .tick = 1000,
		};

		fd = dev_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		ASSERT_EQ(-ENOENT, tw_remove1(fd, 1));
		arm(s);
		ret = dev_setup(fd, &setup);
		disarm(s);
		if (refused(s, ret)) {
			ASSERT_EQ(0, tw_info(fd, &info));
			EXPECT_EQ(0, info.flags);
			EXPECT_EQ(TIMERWHEEL_CLOCK_MONOTONIC, info.clock);
			ret = dev_setup(fd, &setup);
		}
		ASSERT_EQ(0, ret);
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(TIMERWHEEL_CLOCK_MANUAL, info.clock);
		EXPECT_EQ(1000, info.tick);
		EXPECT_EQ(0, tw_add1(fd, 1, 1, 1, 0));
		EXPECT_EQ(1, tw_advance(fd, 0, 1000));
		close(fd);
	}
}

/* SETUP with a ring: failed and nothing charged, or done */
static void ring_sweep(struct __test_metadata *_metadata, struct sweep *s, __u32 flags)
{
	struct timerwheel_info info;
	__u64 before;
	int fd, ret;

	while (sweep_next(s)) {
		struct timerwheel_setup setup = {
			.clock = TIMERWHEEL_CLOCK_MANUAL, .ring = 1000, .flags = flags,
		};

		fd = dev_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		before = charged(fd);
		arm(s);
		ret = dev_setup(fd, &setup);
		disarm(s);
		if (refused(s, ret)) {
			ASSERT_EQ(0, tw_info(fd, &info));
			EXPECT_EQ(0, info.flags);
			EXPECT_EQ(0, info.ring);
			EXPECT_EQ(before, info.user_memory);
			ret = dev_setup(fd, &setup);
		}
		ASSERT_EQ(0, ret);
		EXPECT_LT(before + 1024 * sizeof(struct timerwheel_event), charged(fd));
		close(fd);
	}
}

SWEEP(settings_ring) { ring_sweep(_metadata, s, 0); }
SWEEP(settings_ring_table) { ring_sweep(_metadata, s, TIMERWHEEL_SETUP_TABLE); }
SWEEP(settings_ring_resident) { ring_sweep(_metadata, s, TIMERWHEEL_SETUP_RESIDENT); }

/* FLOW as the first call of a wheel: it creates a base */
SWEEP(flow_first)
{
	struct timerwheel_setup setup = { .ring = 2 };
	__u64 before;
	int fd, ret;

	while (sweep_next(s)) {
		fd = dev_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, dev_setup(fd, &setup));
		before = charged(fd);
		arm(s);
		ret = dev_ioctl(fd, TIMERWHEEL_IOC_FLOW, NULL);
		disarm(s);
		if (refused(s, ret)) {
			EXPECT_EQ(before, charged(fd));
			ret = dev_ioctl(fd, TIMERWHEEL_IOC_FLOW, NULL);
		}
		ASSERT_EQ(0, ret);
		close(fd);
	}
}

static void *map_deadlines(int fd)
{
	return mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    TIMERWHEEL_MMAP_DEADLINES);
}

/* mmap: failed, or mapped; then the first store to the mapping */
SWEEP(mmap)
{
	void *p;
	int fd;

	while (sweep_next(s)) {
		fd = tw_open_table(TIMERWHEEL_CLOCK_MANUAL, 0);
		ASSERT_LE(0, fd);
		arm(s);
		p = map_deadlines(fd);
		disarm(s);
		if (p == MAP_FAILED) {
			ASSERT_TRUE(refused(s, -errno));
			p = map_deadlines(fd);
		}
		ASSERT_NE(MAP_FAILED, p);
		arm(s);
		__atomic_store_n((__u64 *)p, 1, __ATOMIC_RELAXED);
		disarm(s);
		munmap(p, getpagesize());
		close(fd);
	}
}

/* MONITOR: failed and nothing charged, or a monitor that works */
SWEEP(monitor)
{
	struct timerwheel_monitor arg = { .size = sizeof(arg), .events = 100 };
	struct timerwheel_event ev;
	__u64 before;
	int fd, mon;

	while (sweep_next(s)) {
		fd = tw_open_manual(0);
		ASSERT_LE(0, fd);
		before = charged(fd);
		arm(s);
		mon = dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &arg);
		disarm(s);
		if (refused(s, mon)) {
			EXPECT_EQ(before, charged(fd));
			mon = dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &arg);
		}
		ASSERT_LE(0, mon);
		ASSERT_EQ(0, tw_add1(fd, 1, 1, SEC, 0));
		ASSERT_EQ(1, tw_advance(fd, 0, HOUR));
		ASSERT_EQ(1, dev_read(fd, &ev, 1));
		arm(s);
		if (dev_read(mon, &ev, 1) != 1)
			ASSERT_EQ(1, dev_read(mon, &ev, 1));
		disarm(s);
		EXPECT_EQ(1, ev.key);
		close(mon);
		close(fd);
	}
}

/* INFO and STATS: succeed or fail */
SWEEP(info_stats)
{
	struct timerwheel_info info;
	struct timerwheel_stats st;
	struct model m;
	int ret;

	rig_open(_metadata, s, &m, true);
	while (sweep_next(s)) {
		tw_poison(&info, sizeof(info));
		info.size = sizeof(info);
		info.flags = 0;
		tw_poison(&st, sizeof(st));
		st.size = sizeof(st);
		st.flags = 0;
		arm(s);
		ret = dev_ioctl(m.fd, TIMERWHEEL_IOC_INFO, &info);
		if (!ret)
			ret = dev_ioctl(m.fd, TIMERWHEEL_IOC_STATS, &st);
		disarm(s);
		ASSERT_TRUE(!ret || refused(s, ret));
		FINE(differs(&m));
	}
	EXPECT_EQ(1, info.tick);
	EXPECT_EQ(m.due, st.due);
	rig_close(_metadata, s, &m);
}

/* /proc/PID/fdinfo/FD: the whole text, or an error */
SWEEP(fdinfo)
{
	char path[64], text[4096], buf[4096];
	struct model m;
	int ret;

	rig_open(_metadata, s, &m, true);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", m.fd);
	ASSERT_LT(0, file_read(path, text, sizeof(text)));
	ASSERT_TRUE(strstr(text, "timerwheel-due:\t12\n"));
	while (sweep_next(s)) {
		int fd;

		tw_poison(buf, sizeof(buf));
		arm(s);
		fd = tw_err(open(path, O_RDONLY | O_CLOEXEC));
		ret = fd < 0 ? fd : tw_err(read(fd, buf, sizeof(buf) - 1));
		disarm(s);
		if (!refused(s, ret)) {
			ASSERT_EQ(strlen(text), ret);
			EXPECT_EQ(0, memcmp(text, buf, ret));
		}
		if (fd >= 0)
			close(fd);
		FINE(differs(&m));
	}
	rig_close(_metadata, s, &m);
}

/* --- Calls on arrays -------------------------------------------------------------- */

/*
 * ADD with a fault, then again for the elements that were not added. The model follows the
 * results.
 */
static void add_all(struct __test_metadata *_metadata, struct sweep *s, struct model *m,
		    struct timerwheel_add *add, int n)
{
	struct timerwheel_add rest[8];
	int i, ret, left = 0;

	ASSERT_GE(8, n);
	for (i = 0; i < n; i++)
		tw_poison(&add[i].result, 4);
	arm(s);
	ret = dev_add(m->fd, add, n);
	disarm(s);
	if (refused(s, ret))
		ret = 0;
	ASSERT_LE(0, ret);
	ASSERT_GE(n, ret);
	for (i = 0; i < n; i++) {
		if (i < ret && add[i].result != -ENOMEM) {
			ASSERT_TRUE(model_added(m, &add[i])) {
				TH_LOG("fault %u: %s", s->nth, m->why);
			}
			continue;
		}
		if (i < ret)
			s->tally->refused++;
		else
			ASSERT_TRUE(tw_poisoned(&add[i].result, 4));
		rest[left++] = add[i];
	}
	FINE(differs(m));
	if (left)
		ASSERT_EQ(left, dev_add(m->fd, rest, left));
	for (i = 0; i < left; i++)
		ASSERT_TRUE(model_added(m, &rest[i])) {
			TH_LOG("after fault %u: %s", s->nth, m->why);
		}
}

/* The first ADD of a wheel: it creates the table and a base */
static void first_add(struct __test_metadata *_metadata, struct sweep *s, bool near)
{
	struct model m;
	int fd;

	while (sweep_next(s)) {
		struct timerwheel_add add[] = {
			{ .key = 0, .value = 1, .deadline = ~0ULL >> 2, .flags = TIMERWHEEL_ABS },
			{ .key = 1, .value = 2, .flags = TIMERWHEEL_ABS },
			{ .key = 2, .value = 3, .period = HOUR, .flags = TIMERWHEEL_ABS },
		};

		fd = near ? tw_open_manual(1) : dev_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		model_init(&m, fd, near, 4);
		add_all(_metadata, s, &m, add, 3);
		rig_close(_metadata, s, &m);
	}
}

SWEEP(add_first) { first_add(_metadata, s, true); }
SWEEP(add_first_clock) { first_add(_metadata, s, false); }

/* A connection of this process with itself; its descriptor or -errno */
static int connected(void)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int listening = socket(AF_INET, SOCK_STREAM, 0), sock = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(addr);

	if (listen(listening, 1) || getsockname(listening, (void *)&addr, &len))
		return -errno;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return connect(sock, (void *)&addr, len) ? -errno : sock;
}

/* Returns the previous state, or an error of the call or of the connection alone. */
static int add_socket1(int fd, struct timerwheel_add_socket *add)
{
	int ret = tw_batch(fd, TIMERWHEEL_IOC_ADD_SOCKET, 0, add, sizeof(*add), 1, NULL);

	return ret == 1 ? add->result : ret;
}

/* The first ADD_SOCKET of a wheel: its list of connections, the table, a base, the connection */
SWEEP(add_socket_first)
{
	struct timerwheel_remove remove = { .key = 1 };
	int fd, ret, sock = connected();
	struct timerwheel_stats st;

	ASSERT_LE(0, sock);
	while (sweep_next(s)) {
		struct timerwheel_add_socket add = {
			.key = 1, .value = 2, .deadline = HOUR, .grace = SEC, .fd = sock,
			.flags = TIMERWHEEL_SOCKET_ABORT,
		};
		bool armed = false;

		fd = dev_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		arm(s);
		ret = add_socket1(fd, &add);
		disarm(s);
		if (refused(s, ret)) {
			/* If the result cannot be written the timer is armed. */
			ASSERT_EQ(0, tw_stats(fd, &st));
			EXPECT_GE(ret == -EFAULT, st.pending);
			armed = st.pending;
			ret = add_socket1(fd, &add);
		}
		ASSERT_EQ(armed ? TIMERWHEEL_WAS_PENDING : TIMERWHEEL_WAS_NONE, ret);
		ASSERT_EQ(1, dev_remove(fd, &remove, 1));
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, remove.result);
		EXPECT_LT(0, charged(fd));
		close(fd);
	}
	close(sock);
}

/* ADD on a CPU without a base: new timers, and timers of another CPU */
SWEEP(add_new_cpu)
{
	struct model m;

	while (sweep_next(s)) {
		__u64 far = tw_now(CLOCK_MONOTONIC) + 2 * HOUR;
		struct timerwheel_add add[] = {
			{ .key = 24, .value = 1, .deadline = far, .flags = TIMERWHEEL_ABS },
			{ .key = 25, .value = 2, .deadline = 7, .flags = TIMERWHEEL_ABS },
			{ .key = 1, .value = 3, .deadline = far, .flags = TIMERWHEEL_ABS },
			{ .key = 2, .value = 4, .deadline = 7, .flags = TIMERWHEEL_ABS },
			{ .key = 9, .value = 5, .deadline = far, .flags = TIMERWHEEL_ABS },
			{ .key = 21, .value = 6, .deadline = 7, .flags = TIMERWHEEL_ABS },
		};

		rig_open(_metadata, s, &m, false);
		add_all(_metadata, s, &m, add, 6);
		rig_close(_metadata, s, &m);
	}
}

/* MOVE, REMOVE and GET do not fail without memory, because they use another CPU's base. */
SWEEP(move_new_cpu)
{
	struct model m;
	int i;

	while (sweep_next(s)) {
		__u64 far = tw_now(CLOCK_MONOTONIC) + 2 * HOUR;
		struct timerwheel_move move[] = {
			{ .key = 1, .deadline = far, .flags = TIMERWHEEL_ABS },
			{ .key = 2, .deadline = 7, .flags = TIMERWHEEL_ABS },
			{ .key = 9, .deadline = far, .flags = TIMERWHEEL_ABS },
			{ .key = 21, .deadline = 7, .flags = TIMERWHEEL_ABS },
			{ .key = 30, .deadline = far, .flags = TIMERWHEEL_ABS },
		};

		rig_open(_metadata, s, &m, false);
		arm(s);
		i = dev_move(m.fd, move, 5);
		disarm(s);
		ASSERT_EQ(5, i);
		for (i = 0; i < 5; i++)
			FINE(model_moved(&m, &move[i]) ? NULL : m.why);
		rig_close(_metadata, s, &m);
	}
}

SWEEP(remove_new_cpu)
{
	struct model m;
	int i;

	while (sweep_next(s)) {
		struct timerwheel_remove rem[] = {
			{ .key = 1 }, { .key = 9 }, { .key = 17 }, { .key = 21 }, { .key = 30 },
		};

		rig_open(_metadata, s, &m, false);
		arm(s);
		i = dev_remove(m.fd, rem, 5);
		disarm(s);
		ASSERT_EQ(5, i);
		for (i = 0; i < 5; i++)
			FINE(model_removed(&m, &rem[i]) ? NULL : m.why);
		rig_close(_metadata, s, &m);
	}
}

SWEEP(get_new_cpu)
{
	struct timerwheel_entry ent[32];
	struct model m;
	int i;

	while (sweep_next(s)) {
		rig_open(_metadata, s, &m, false);
		for (i = 0; i < 32; i++)
			ent[i] = (struct timerwheel_entry) { .key = i };
		arm(s);
		i = dev_get(m.fd, ent, 32);
		disarm(s);
		ASSERT_EQ(32, i);
		for (i = 0; i < 32; i++) {
			if (i < 24)
				FINE(model_entry(&m, &ent[i]) ? NULL : m.why);
			else
				ASSERT_EQ(-ENOENT, ent[i].result);
		}
		rig_close(_metadata, s, &m);
	}
}

/* LIST in several calls, the first with a fault: each timer is listed once */
static void list_sweep(struct __test_metadata *_metadata, struct sweep *s, bool near)
{
	struct timerwheel_entry page[20];
	struct model m;
	int i, n;

	while (sweep_next(s)) {
		__u64 cursor = 0, before;
		bool first = true;

		rig_open(_metadata, s, &m, near);
		memset(m.seen, 0, m.n);
		do {
			tw_poison(page, sizeof(page));
			before = cursor;
			if (first)
				arm(s);
			n = tw_batch(m.fd, TIMERWHEEL_IOC_LIST, 0, page, sizeof(*page), 20,
				     &cursor);
			if (first)
				disarm(s);
			if (first && refused(s, n)) {
				ASSERT_EQ(before, cursor);
				first = false;
				n = 1;
				continue;
			}
			first = false;
			ASSERT_LE(0, n);
			for (i = 0; i < n; i++) {
				FINE(model_entry(&m, &page[i]) ? NULL : m.why);
				ASSERT_EQ(1, ++m.seen[page[i].key]);
			}
		} while (n);
		ASSERT_EQ(24, memchr(m.seen, 0, m.n) - (void *)m.seen);
		rig_close(_metadata, s, &m);
	}
}

SWEEP(list) { list_sweep(_metadata, s, true); }
SWEEP(list_new_cpu) { list_sweep(_metadata, s, false); }

/* DRAIN: a timer that is not returned stays in the wheel */
static void drain_sweep(struct __test_metadata *_metadata, struct sweep *s, bool near)
{
	struct timerwheel_entry page[20];
	struct model m;
	int i, n;

	while (sweep_next(s)) {
		rig_open(_metadata, s, &m, near);
		tw_poison(page, sizeof(page));
		arm(s);
		n = tw_batch(m.fd, TIMERWHEEL_IOC_DRAIN, 0, page, sizeof(*page), 20, NULL);
		disarm(s);
		if (refused(s, n))
			n = 0;
		ASSERT_LE(0, n);
		for (i = 0; i < n; i++)
			FINE(model_drained(&m, &page[i]) ? NULL : m.why);
		FINE(differs(&m));
		while ((n = tw_drain(m.fd, 0, page, 20)) > 0)
			for (i = 0; i < n; i++)
				FINE(model_drained(&m, &page[i]) ? NULL : m.why);
		ASSERT_EQ(0, n);
		ASSERT_EQ(0, m.count);
		rig_close(_metadata, s, &m);
	}
}

SWEEP(drain) { drain_sweep(_metadata, s, true); }
SWEEP(drain_new_cpu) { drain_sweep(_metadata, s, false); }

/* --- Events ----------------------------------------------------------------------- */

/* readv of three buffers: events that were not copied out are read later, once */
static void read_sweep(struct __test_metadata *_metadata, struct sweep *s, bool near)
{
	struct timerwheel_event ev[10];
	struct iovec iov[] = {
		{ ev, 3 * sizeof(*ev) + 5 },
		{ (char *)ev + 3 * sizeof(*ev) + 5, sizeof(*ev) },
		{ (char *)ev + 4 * sizeof(*ev) + 5, 6 * sizeof(*ev) - 5 },
	};
	struct model m;
	int i, n;

	while (sweep_next(s)) {
		rig_open(_metadata, s, &m, near);
		tw_poison(ev, sizeof(ev));
		arm(s);
		n = tw_err(readv(m.fd, iov, 3));
		disarm(s);
		if (refused(s, n))
			n = 0;
		ASSERT_LE(0, n);
		ASSERT_EQ(0, n % sizeof(*ev));
		n /= sizeof(*ev);
		for (i = 0; i < n; i++)
			FINE(model_read(&m, &ev[i]) ? NULL : m.why);
		rig_close(_metadata, s, &m);
	}
}

SWEEP(read) { read_sweep(_metadata, s, true); }
SWEEP(read_new_cpu) { read_sweep(_metadata, s, false); }

/* ADVANCE: failed and the time is unchanged, or the time has advanced and the timers are due */
SWEEP(advance)
{
	struct model m;
	int ret;

	while (sweep_next(s)) {
		struct timerwheel_advance adv = {
			.size = sizeof(adv), .flags = TIMERWHEEL_ABS, .time = 2 * HOUR,
		};

		rig_open(_metadata, s, &m, true);
		arm(s);
		ret = dev_ioctl(m.fd, TIMERWHEEL_IOC_ADVANCE, &adv);
		disarm(s);
		if (refused(s, ret)) {
			FINE(differs(&m));
			ASSERT_EQ(12, tw_advance(m.fd, TIMERWHEEL_ABS, 2 * HOUR));
		} else {
			ASSERT_EQ(0, ret);
		}
		ASSERT_EQ(12, model_advanced(&m, 2 * HOUR));
		rig_close(_metadata, s, &m);
	}
}

/* ADVANCE as the first call on a MANUAL wheel: it creates the base */
SWEEP(advance_first)
{
	__s64 ret;
	int fd;

	while (sweep_next(s)) {
		fd = tw_open_manual(1);
		ASSERT_LE(0, fd);
		arm(s);
		ret = tw_advance(fd, TIMERWHEEL_ABS, 10);
		disarm(s);
		if (refused(s, ret)) {
			ASSERT_EQ(0, tw_add1(fd, 1, 1, 5, TIMERWHEEL_ABS));
			ret = tw_advance(fd, TIMERWHEEL_ABS, 10) - 1;
		}
		ASSERT_EQ(0, ret);
		close(fd);
	}
}

static atomic_int signals;

static void on_sigio(int sig)
{
	(void)sig;
	atomic_fetch_add(&signals, 1);
}

/* O_ASYNC: failed, or the next event sends a signal */
SWEEP(fasync)
{
	struct model m;
	int ret, flags;

	signal(SIGIO, on_sigio);
	while (sweep_next(s)) {
		rig_open(_metadata, s, &m, true);
		FINE(model_read_all(&m));
		ASSERT_EQ(0, fcntl(m.fd, F_SETOWN, getpid()));
		flags = fcntl(m.fd, F_GETFL);
		arm(s);
		ret = tw_err(fcntl(m.fd, F_SETFL, flags | O_ASYNC));
		disarm(s);
		if (refused(s, ret)) {
			EXPECT_EQ(flags, fcntl(m.fd, F_GETFL));
			ret = tw_err(fcntl(m.fd, F_SETFL, flags | O_ASYNC));
		}
		ASSERT_EQ(0, ret);
		atomic_store(&signals, 0);
		ASSERT_EQ(8, tw_advance(m.fd, TIMERWHEEL_ABS, HOUR + 1) -
			     (m.timer[20].deadline <= HOUR + 1 ? 8 : 0));
		model_advanced(&m, HOUR + 1);
		EXPECT_EQ(1, atomic_load(&signals));
		rig_close(_metadata, s, &m);
	}
}

/* epoll: failed, or the next event is reported */
SWEEP(epoll)
{
	struct epoll_event ee = { .events = EPOLLIN }, got;
	struct model m;
	int ret, ep;

	while (sweep_next(s)) {
		rig_open(_metadata, s, &m, true);
		FINE(model_read_all(&m));
		arm(s);
		ep = tw_err(epoll_create1(EPOLL_CLOEXEC));
		ret = ep < 0 ? ep : tw_err(epoll_ctl(ep, EPOLL_CTL_ADD, m.fd, &ee));
		disarm(s);
		if (refused(s, ret)) {
			if (ep < 0)
				ep = epoll_create1(EPOLL_CLOEXEC);
			ret = tw_err(epoll_ctl(ep, EPOLL_CTL_ADD, m.fd, &ee));
		}
		ASSERT_EQ(0, ret);
		ASSERT_EQ(0, epoll_wait(ep, &got, 1, 0));
		ASSERT_LT(0, tw_advance(m.fd, TIMERWHEEL_ABS, HOUR));
		model_advanced(&m, HOUR);
		ASSERT_EQ(1, epoll_wait(ep, &got, 1, 0));
		EXPECT_EQ(EPOLLIN, got.events);
		close(ep);
		rig_close(_metadata, s, &m);
	}
}

SWEEP(poll)
{
	struct model m;
	int ret;

	rig_open(_metadata, s, &m, true);
	while (sweep_next(s)) {
		struct pollfd p = { .fd = m.fd, .events = POLLIN };

		arm(s);
		ret = tw_err(poll(&p, 1, 0));
		disarm(s);
		if (!refused(s, ret)) {
			ASSERT_EQ(1, ret);
			ASSERT_EQ(POLLIN, p.revents);
		}
	}
	rig_close(_metadata, s, &m);
}

/* --- Growth ----------------------------------------------------------------------- */

/*
 * A wheel whose @n timers fill its memory grows: add a new timer, replace an old timer, add another
 * new timer.
 */
static void grow(struct __test_metadata *_metadata, struct sweep *s, struct model *m, __u32 n)
{
	struct timerwheel_add add[] = {
		{ .key = n, .value = 1, .deadline = 2 * HOUR, .flags = TIMERWHEEL_ABS },
		{ .key = n / 2, .value = 2, .deadline = HOUR, .flags = TIMERWHEEL_ABS },
		{ .key = n + 1, .value = 3, .deadline = 2 * HOUR, .flags = TIMERWHEEL_ABS },
	};

	add_all(_metadata, s, m, add, 3);
	FINE(differs(m));
}

static void grow_sweep(struct __test_metadata *_metadata, struct sweep *s, __u32 n, bool mapped)
{
	void *deadlines = NULL;
	struct model m;
	int fd;

	while (sweep_next(s)) {
		fd = tw_open_manual(1);
		ASSERT_LE(0, fd);
		model_init(&m, fd, true, n + 2);
		deadlines_mapped = mapped;
		if (mapped) {
			deadlines = map_deadlines(fd);
			ASSERT_NE(MAP_FAILED, deadlines);
		}
		FINE(model_fill(&m, 0, n, 100, HOUR, 0));
		grow(_metadata, s, &m, n);
		/* the mapping would keep the wheel open */
		if (mapped)
			munmap(deadlines, getpagesize());
		model_free(&m);
	}
}

/*
 * The first page has 63 timers, each of the others 64. There are 14 timers for each bucket and 64
 * buckets in a page. The directories of both have room for 7 pages at first, then for 15, 31, ...
 */
SWEEP(grow_page) { grow_sweep(_metadata, s, 63, false); }
SWEEP(grow_timers_7) { grow_sweep(_metadata, s, 64 * 7 - 1, false); }
SWEEP(grow_timers_15) { grow_sweep(_metadata, s, 64 * 15 - 1, false); }
SWEEP(grow_buckets_1) { grow_sweep(_metadata, s, 896 * 1 - 1, false); }
SWEEP(grow_timers_31) { grow_sweep(_metadata, s, 64 * 31 - 1, false); }
SWEEP(grow_timers_63) { grow_sweep(_metadata, s, 64 * 63 - 1, false); }
SWEEP(grow_buckets_7) { grow_sweep(_metadata, s, 896 * 7 - 1, false); }
/* the deadline table: 512 entries in a page; its directory grows like the others */
SWEEP(grow_deadlines) { grow_sweep(_metadata, s, 512 - 1, true); }
SWEEP(grow_deadlines_7) { grow_sweep(_metadata, s, 512 * 7 - 1, true); }

/* Larger directories, in one wheel that keeps growing */
SWEEP(grow_large)
{
	static const __u32 sizes[] = {
		64 * 127 - 1, 64 * 255 - 1, 896 * 15 - 1, 64 * 511 - 1, 896 * 31 - 1,
		64 * 1023 - 1,
	};
	struct model m;
	size_t i;
	int ret;

	model_init(&m, tw_open_manual(1), true, 64 * 1024);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct timerwheel_add add = {
			.key = sizes[i], .deadline = HOUR, .flags = TIMERWHEEL_ABS,
		};

		FINE(model_fill(&m, m.count, sizes[i], 100, HOUR, 0));
		for (s->nth = 1; ; s->nth++) {
			arm(s);
			ret = tw_result1(dev_add(m.fd, &add, 1), &add.result);
			disarm(s);
			if (!refused(s, ret))
				break;
			ASSERT_EQ(charged_for(m.peak), charged(m.fd));
		}
		FINE(model_added(&m, &add) ? NULL : m.why);
		FINE(differs(&m));
	}
	s->hit = false;		/* the sweep has ended, even if the last fault had no effect */
	model_free(&m);
}

/* --- CPU hotplug ------------------------------------------------------------------- */

static int cpu_online(struct sweep *s, int cpu, bool on)
{
	char path[64];
	int fd, ret;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (s)
		arm(s);
	ret = tw_err(write(fd, on ? "1" : "0", 1));
	close(fd);
	return ret == 1 ? 0 : ret;
}

/*
 * A fault while a CPU goes offline (@off) or comes online: whether it succeeds or fails, the timers
 * of the CPU still exist, and timers that fall due meanwhile are delivered once.
 */
static void hotplug_round(struct __test_metadata *_metadata, struct sweep *s, int cpu,
			  bool off)
{
	enum { FAR = 40, N = 48 };
	struct timerwheel_stats st;
	struct model m;
	__u64 now;
	int i, ret;

	ASSERT_EQ(0, tw_pin(cpu));
	model_init(&m, dev_open(O_NONBLOCK), false, N);
	now = tw_now(CLOCK_MONOTONIC);
	FINE(model_fill(&m, 0, FAR, 100, now + HOUR, 0));
	FINE(model_fill(&m, FAR, N, 200, now + SEC, 0));
	ASSERT_EQ(0, tw_pin(0));

	ret = cpu_online(off ? s : NULL, cpu, false);
	if (off)
		disarm(s);
	else
		ASSERT_EQ(0, ret);
	if (ret)
		refused(s, -ENOMEM);
	for (i = 0; i < 600; i++) {
		ASSERT_EQ(0, tw_stats(m.fd, &st));
		if (st.due == N - FAR)
			break;
		tw_sleep(50 * MSEC);
	}
	for (i = FAR; i < N; i++)
		model_set(&m, i, TIMERWHEEL_WAS_DUE);
	FINE(differs(&m));
	FINE(model_read_all(&m));

	if (!off) {
		ret = cpu_online(s, cpu, true);
		disarm(s);
		if (ret)
			refused(s, -ENOMEM);
	}
	if (off ? !ret : ret)
		ASSERT_EQ(0, cpu_online(NULL, cpu, true));
	FINE(differs(&m));
	ASSERT_EQ(0, tw_pin(cpu));
	FINE(model_fill(&m, FAR, N, 300, now + 2 * HOUR, 0));
	FINE(differs(&m));
	model_free(&m);
}

static void hotplug(struct __test_metadata *_metadata, struct sweep *s, bool off)
{
	int cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	unsigned int found;

	ASSERT_EQ(0, tw_pin(0));
	if (!off)
		ASSERT_EQ(0, cpu_online(NULL, cpu, false));
	s->nth = TIMES;
	ASSERT_EQ(0, cpu_online(s, cpu, !off));
	found = disarm(s);
	if (off)
		ASSERT_EQ(0, cpu_online(NULL, cpu, true));
	sweep_some(s, 0, found, 24);
	while (sweep_next(s))
		hotplug_round(_metadata, s, cpu, off);
}

static void offline(struct __test_metadata *_metadata, struct sweep *s)
{
	hotplug(_metadata, s, true);
}

static void online(struct __test_metadata *_metadata, struct sweep *s)
{
	hotplug(_metadata, s, false);
}

/* Once before the sweep, outside its cgroup: the kernel keeps some memory for the next time. */
static void hotplug_warm_up(struct __test_metadata *_metadata)
{
	int cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;

	ASSERT_EQ(0, cpu_online(NULL, cpu, false));
	ASSERT_EQ(0, cpu_online(NULL, cpu, true));
}

TEST_F_TIMEOUT(fail, cpu_offline, LIMIT)
{
	if (missing[0])
		SKIP(return, "%s", missing);
	hotplug_warm_up(_metadata);
	sweep_run(_metadata, offline);
}

TEST_F_TIMEOUT(fail, cpu_online, LIMIT)
{
	if (missing[0])
		SKIP(return, "%s", missing);
	hotplug_warm_up(_metadata);
	sweep_run(_metadata, online);
}

/* --- Softirq ---------------------------------------------------------------------- */

/* Let all allocations fail that must not sleep. */
static void atomic_fails(bool on)
{
	int k;

	sweep_kinds(true, true);
	/* This order avoids a moment in which all allocations fail, including those made here. */
	for (k = SLAB; k <= PAGE; k++) {
		if (!on)
			fault_set(k, "probability", "0");
		fault_set(k, "ignore-gfp-wait", on ? "Y" : "N");
		if (on)
			fault_set(k, "probability", "100");
	}
}

/*
 * Expiry allocates no memory: a million timers fall due while atomic allocations fail. Readers are
 * notified by SIGIO, for which the kernel does allocate.
 */
TEST_F_TIMEOUT(fail, softirq, LIMIT)
{
	enum { N = 1000000, BATCH = 4000 };
	struct timerwheel_add *add = calloc(BATCH, sizeof(*add));
	struct timerwheel_event *ev = calloc(BATCH, sizeof(*ev));
	int fd = dev_open(O_NONBLOCK), i, j, n, slab, notified = 0;
	unsigned char *seen = calloc(N, 1);
	const struct timespec now = {};
	struct timerwheel_stats st;
	sigset_t sigio;

	if (missing[0])
		SKIP(return, "%s", missing);
	ASSERT_LE(0, fd);
	sigemptyset(&sigio);
	sigaddset(&sigio, SIGIO);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &sigio, NULL));
	ASSERT_EQ(0, fcntl(fd, F_SETOWN, getpid()));
	ASSERT_EQ(0, fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC));
	slab = fault_times(SLAB);
	atomic_fails(true);
	for (i = 0; i < N; i += n) {
		for (j = 0; j < BATCH; j++)
			add[j] = (struct timerwheel_add) {
				.key = i + j, .value = i + j, .deadline = j * USEC,
			};
		n = dev_add(fd, add, BATCH);
		if (n != BATCH)
			break;
		notified += sigtimedwait(&sigio, NULL, &now) == SIGIO;
	}
	do {
		tw_sleep(50 * MSEC);
	} while (!tw_stats(fd, &st) && st.pending);
	atomic_fails(false);
	slab -= fault_times(SLAB);

	ASSERT_EQ(N, i);
	EXPECT_EQ(N, st.due);
	EXPECT_LT(0, notified);
	EXPECT_LT(0, slab) {
		TH_LOG("no fault was injected");
	}
	printf("# softirq: %d allocations failed, %llu expiry batches, %d signals\n", slab,
	       (unsigned long long)st.passes, notified);
	while ((n = dev_read(fd, ev, BATCH)) > 0) {
		for (i = 0; i < n; i++) {
			ASSERT_GT(N, ev[i].key);
			ASSERT_EQ(1, ++seen[ev[i].key]);
			ASSERT_EQ(ev[i].key, ev[i].value);
		}
	}
	ASSERT_EQ(-EAGAIN, n);
	EXPECT_EQ(NULL, memchr(seen, 0, N));
}

/* --- Leaks ------------------------------------------------------------------------ */

/* Fail if kmemleak reports a leak of this module. Clear its other reports. */
static void leaks(struct __test_metadata *_metadata)
{
	static char report[1 << 20];
	const char *path = DEBUGFS "kmemleak";
	int i;

	for (i = 0; i < 2; i++) {
		tw_sleep(6 * SEC);	/* it ignores objects younger than 5 s */
		ASSERT_EQ(0, file_write(path, "scan")) {
			TH_LOG("there is no kmemleak, or it is off: boot with kmemleak=on");
		}
	}
	ASSERT_LE(0, file_read(path, report, sizeof(report)));
	EXPECT_EQ(NULL, strstr(report, "timerwheel")) {
		TH_LOG("kmemleak:\n%s", report);
	}
	printf("# kmemleak: %zu bytes of reports\n", strlen(report));
	file_write(path, "clear");
}

/* After all tests above kmemleak reports no leak of this module. */
TEST_F_TIMEOUT(fail, kmemleak, LIMIT)
{
	if (missing[0])
		SKIP(return, "%s", missing);
	leaks(_metadata);
}

/* --- The module itself ------------------------------------------------------------ */

static int module_load(struct sweep *s, int fd, const char *parameters)
{
	if (s)
		arm(s);
	return tw_err(syscall(SYS_finit_module, fd, parameters, 0));
}

static int module_unload(struct sweep *s)
{
	if (s)
		arm(s);
	return tw_err(syscall(SYS_delete_module, "timerwheel", O_NONBLOCK));
}

/* Number of threads of engines: timerwheel/N for each CPU */
static int engine_threads(void)
{
	char path[64], name[32];
	struct dirent *e;
	DIR *proc = opendir("/proc");
	int n = 0;

	while (proc && (e = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%.20s/comm", e->d_name);
		n += atoi(e->d_name) && file_read(path, name, sizeof(name)) > 0 &&
		     !strncmp(name, "timerwheel/", 11);
	}
	if (proc)
		closedir(proc);
	return n;
}

/* A remainder of the module after it was unloaded; NULL: none. */
static const char *module_rest(void)
{
	static const char * const paths[] = {
		TW_DEV, "/sys/module/timerwheel", "/sys/class/timerwheel",
		"/sys/devices/virtual/timerwheel", "/sys/kernel/tracing/events/timerwheel",
	};
	static const char * const lines[][2] = {
		{ "/proc/modules", "timerwheel " }, { "/proc/devices", " timerwheel\n" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(paths); i++)
		if (!access(paths[i], F_OK))
			return paths[i];
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		if (file_has(lines[i][0], lines[i][1]))
			return lines[i][0];
	return engine_threads() ? "threads" : NULL;
}

/* A missing part of the module after it was loaded; NULL: none, and the module works. */
static const char *module_lacks(void)
{
	struct timerwheel_event ev;
	int fd;

	if (!file_has("/proc/devices", " timerwheel\n"))
		return "/proc/devices";
	if (engine_threads() != sysconf(_SC_NPROCESSORS_ONLN))
		return "threads";
	fd = tw_open_manual(1);
	if (fd < 0)
		return TW_DEV;
	if (tw_add1(fd, 1, 1, 1, 0) || tw_advance(fd, 0, 1) != 1 || dev_read(fd, &ev, 1) != 1)
		return "a timer's event";
	close(fd);
	return NULL;
}

static int module_open(void)
{
	const char *path = getenv("TW_MODULE");

	return tw_err(open(path ?: MODULE, O_RDONLY | O_CLOEXEC));
}

/*
 * Loading is done, or failed: then nothing is left of the attempt, and the next attempt succeeds.
 * The test injects only faults after the parameters were parsed. Earlier faults concern the kernel
 * alone, and its trace events handle them badly: they warn, and worse.
 */
TEST_F_TIMEOUT(fail, module_load, LIMIT)
{
	struct sweep sweep, *s = &sweep;
	int ret, fd = module_open();
	unsigned int from;

	if (missing[0])
		SKIP(return, "%s", missing);
	ASSERT_LE(0, fd) {
		TH_LOG("there is no " MODULE);
	}
	/*
	 * If kmemleak gets no memory it prints a warning under a lock that is elsewhere taken
	 * inside a console's locks. lockdep rightly reports this inversion, which is a fault of the
	 * kernel. So keep messages off the console.
	 */
	ASSERT_EQ(0, file_write(PRINTK, "1"));
	sweep_begin(s, "module_load");
	FINE(module_lacks());
	ASSERT_EQ(0, module_unload(NULL));
	FINE(module_rest());

	s->nth = TIMES;
	ASSERT_EQ(-EINVAL, module_load(s, fd, "max_user_memory=x"));
	from = disarm(s);
	FINE(module_rest());
	ASSERT_EQ(0, module_load(s, fd, ""));
	sweep_some(s, from, disarm(s), 80);
	while (sweep_next(s)) {
		ASSERT_EQ(0, module_unload(NULL));
		ret = module_load(s, fd, "");
		disarm(s);
		if (ret) {
			s->tally->refused++;
			FINE(module_rest());
			ASSERT_EQ(0, module_load(NULL, fd, "")) {
				TH_LOG("after fault %u", s->nth);
			}
		}
		FINE(module_lacks());
	}
	EXPECT_EQ(0, file_write(PRINTK, "8"));
	tally_print(s->tally);
	EXPECT_LT(0, tally_sum(s->tally));
	leaks(_metadata);
}

/* Unloading: done and nothing is left, or failed and the module still works. */
TEST_F_TIMEOUT(fail, module_unload, LIMIT)
{
	struct sweep sweep, *s = &sweep;
	int ret, fd = module_open();

	if (missing[0])
		SKIP(return, "%s", missing);
	ASSERT_LE(0, fd);
	sweep_begin(s, "module_unload");
	while (sweep_next(s)) {
		ret = module_unload(s);
		disarm(s);
		if (refused(s, ret)) {
			FINE(module_lacks());
			ret = module_unload(NULL);
		}
		ASSERT_EQ(0, ret);
		FINE(module_rest());
		ASSERT_EQ(0, module_load(NULL, fd, ""));
		FINE(module_lacks());
	}
	tally_print(s->tally);
	EXPECT_LT(0, tally_sum(s->tally));
}

/* --- Summary ------------------------------------------------------------------------ */

/* Print the faults that were injected: each kind, and at least one in each sweep. */
TEST_F(fail, summary)
{
	struct tally all = { .name = "all sweeps" };
	unsigned int i, k;

	if (missing[0])
		SKIP(return, "%s", missing);
	for (i = 0; i < tallies->n; i++) {
		const struct tally *t = &tallies->tally[i];

		tally_print(t);
		EXPECT_LT(0, tally_sum(t));
		for (k = 0; k < KINDS; k++)
			all.made[k] += t->made[k];
		all.refused += t->refused;
	}
	tally_print(&all);
	for (k = 0; k < KINDS; k++)
		EXPECT_LT(0, all.made[k]);
}

TEST_HARNESS_MAIN
