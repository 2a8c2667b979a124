/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers shared by the timerwheel selftests.
 *
 * Every wrapper returns what the call returned, or -errno, never -1. The *1() wrappers make a call
 * with one element and return that element's result. If the call itself failed they return
 * TW_FAILED(errno), which is different from all results.
 *
 * To avoid names of the module, calls that the module has a function for begin with dev_.
 */
#ifndef TW_TEST_H
#define TW_TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/timerwheel.h>
#include <linux/userfaultfd.h>

#include "../lib/timerwheel-mapped.h"

/*
 * The harness has a handler that does not use its last argument, and compares values without
 * conversion: EXPECT_EQ(0, unsigned).
 */
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "kselftest_harness.h"
#pragma GCC diagnostic pop

/* Timeout of a test in s; emulated kernels with all checkers are slow. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 180

#include "only.h"

#define TW_DEV		"/dev/timerwheel"
#define TW_POISON	0xA5		/* every byte of an output before a call */
#define TW_FAILED(err)	(-10000 - (err))

/* Maximum number of timers in one hold of a lock: TW_BATCH_TIMERS; fewer with a ring */
#define TW_BATCH_TIMERS	128

/*
 * The reader of a ring to which no other process writes, for the functions of timerwheel-mapped.h.
 * Programs take length and size from INFO.
 */
#define TW_RING(memory)	((struct timerwheel_mapped_ring []){ tw_ring(memory) })

static inline struct timerwheel_mapped_ring tw_ring(struct timerwheel_ring *ring)
{
	return (struct timerwheel_mapped_ring) {
		.ring = ring, .events = ring->mask + 1, .event_size = ring->event_size,
		.head = ring->head,
	};
}

#define USEC	1000ULL
#define MSEC	1000000ULL
#define SEC	1000000000ULL
#define MINUTE	(60 * SEC)
#define HOUR	(3600 * SEC)

/* Timeout of a wait in ms, long enough for a slow guest */
#define LONG_MS	60000

/* -errno if a call failed (returned -1) */
static inline int tw_err(int ret)
{
	if (ret < -1)
		return INT_MIN;
	return ret < 0 ? -errno : ret;
}

/* --- Machine and time --------------------------------------------------- */

/* Is this a guest with instruction-counted time? Then timing is reproducible. */
static inline bool tw_icount(void)
{
	const char *s = getenv("TW_ICOUNT");

	return s && *s == '1';
}

/*
 * May this test assert timing? Only if time is counted in instructions. It prints in any guest that
 * it would: such tests must be in icount.list, because otherwise the guest with counted time does
 * not run them and they assert nothing. scripts/vm/selfcheck compares.
 */
static inline bool tw_timed(void)
{
	static bool said;

	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
		printf("# asserts timing\n");
		fflush(stdout);
	}
	return tw_icount();
}

static inline __u64 tw_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static inline void tw_sleep(__u64 ns)
{
	struct timespec ts = { .tv_sec = ns / SEC, .tv_nsec = ns % SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

static inline void tw_sleep_until(clockid_t clock, __u64 ns)
{
	struct timespec ts = { .tv_sec = ns / SEC, .tv_nsec = ns % SEC };

	while (clock_nanosleep(clock, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* Stay on one CPU */
static inline int tw_pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return tw_err(sched_setaffinity(0, sizeof(one), &one));
}

/* xorshift64*: *state must not be 0 */
static inline __u64 tw_rand(__u64 *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

/* The seed of a random test: TW_SEED, or a new one each time. Prints it. */
static inline __u64 tw_seed(void)
{
	const char *s = getenv("TW_SEED");
	__u64 seed = s ? strtoull(s, NULL, 0) : tw_now(CLOCK_REALTIME);

	return seed ? seed : 1;
}

/* Number of timers in tests of many: a million, or TW_SCALE in the environment */
static inline int tw_scale(void)
{
	const char *s = getenv("TW_SCALE");

	return s && atoi(s) > 0 ? atoi(s) : 1000000;
}

/* --- Processes and files ------------------------------------------------ */

/* The end of a child: its exit status, or 1000 + the signal that killed it */
static inline int tw_reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Send a descriptor through a Unix socket: 0 or -errno */
static inline int tw_send_fd(int sock, int fd)
{
	char c = 0, ctl[CMSG_SPACE(sizeof(fd))] = "";
	struct iovec iov = { &c, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = ctl, .msg_controllen = sizeof(ctl),
	};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&msg);

	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cm), &fd, sizeof(fd));
	return sendmsg(sock, &msg, 0) == 1 ? 0 : -errno;
}

/* Receive a descriptor, or -errno */
static inline int tw_recv_fd(int sock)
{
	char c, ctl[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &c, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = ctl, .msg_controllen = sizeof(ctl),
	};
	struct cmsghdr *cm;
	int fd;

	if (recvmsg(sock, &msg, 0) != 1)
		return -errno;
	cm = CMSG_FIRSTHDR(&msg);
	if (!cm || cm->cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(cm), sizeof(fd));
	return fd;
}

/* Memory that children share, zeroed. Never freed: each test is a process. */
static inline void *tw_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

/* 0 or -errno */
static inline int tw_file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Take a CPU offline, or bring it back: 0 or -errno */
static inline int tw_cpu_online(int cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	return tw_file_write(path, online ? "1" : "0");
}

/* The number in a file that follows @word, or the first number; -1: there is none */
static inline long long tw_file_number(const char *path, const char *word)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	static char buf[65536];
	size_t got = 0;
	ssize_t n;
	char *p;

	while (fd >= 0 && (n = read(fd, buf + got, sizeof(buf) - 1 - got)) > 0)
		got += n;
	close(fd);
	buf[got] = 0;
	p = word ? strstr(buf, word) : buf;
	return p && got ? atoll(p + (word ? strlen(word) : 0)) : -1;
}

/*
 * Available memory in bytes, including the free pages in per-CPU lists. MemAvailable does not count
 * these, and they may exceed the memory that a test measures.
 */
static inline long long tw_memory_available(void)
{
	long long pages = 0, count;
	char line[256];
	FILE *f = fopen("/proc/zoneinfo", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " count: %lld", &count) == 1)
			pages += count;
	}
	if (f)
		fclose(f);
	return tw_file_number("/proc/meminfo", "MemAvailable:") * 1024 + pages * getpagesize();
}

/* Has the mapping at @p this flag, two letters as in proc(5)? */
static inline bool tw_vm_flag(const void *p, const char *flag)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	unsigned long from, to, at = (uintptr_t)p;
	char line[512], want[8];
	bool here = false, has = false;

	snprintf(want, sizeof(want), " %s ", flag);
	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from <= at && at < to;
		else if (here && !strncmp(line, "VmFlags:", 8))
			has = strstr(line, want);
	}
	if (maps)
		fclose(maps);
	return has;
}

/* PID of the engine's thread of @cpu; 0: there is none */
static inline pid_t tw_engine_thread(int cpu)
{
	char want[32], path[300], comm[32];
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	pid_t pid = 0;
	FILE *f;

	snprintf(want, sizeof(want), "timerwheel/%d", cpu);
	while (dir && !pid && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		f = atoi(entry->d_name) ? fopen(path, "re") : NULL;
		if (f && fscanf(f, "%31s", comm) == 1 && !strcmp(comm, want))
			pid = atoi(entry->d_name);
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return pid;
}

/* The number of times that a task has gone to sleep */
static inline long long tw_sleeps(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return tw_file_number(path, "\nvoluntary_ctxt_switches:");
}

/* --- Poison ------------------------------------------------------------- */

static inline void *tw_poison(void *p, size_t size)
{
	return memset(p, TW_POISON, size);
}

static inline bool tw_all_bytes(const void *p, int byte, size_t size)
{
	const unsigned char *c = p;

	return !size || (c[0] == byte && !memcmp(c, c + 1, size - 1));
}

/* Is the memory still as tw_poison() left it? */
static inline bool tw_poisoned(const void *p, size_t size)
{
	return tw_all_bytes(p, TW_POISON, size);
}

/*
 * Make the kernel allocate pages that are not zero, unless it zeroes them: the pages that were
 * freed last on this CPU are allocated first. Stay on one CPU before. This has no effect if the
 * kernel zeroes all pages by itself, as Debian's kernel does unless it is booted with
 * init_on_alloc=0.
 */
static inline bool tw_dirty_pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	/* A huge page would be freed as one page, and split last. */
	madvise(p, size, MADV_NOHUGEPAGE);
	tw_poison(p, size);
	return !munmap(p, size);
}

/*
 * Memory of @before + @after bytes with a page boundary in between, so that the second part can be
 * protected. Never freed: each test is a process.
 */
static inline void *tw_boundary(size_t before, size_t after)
{
	size_t page = getpagesize();
	size_t len = (before + page - 1) / page * page;
	char *p = mmap(NULL, len + after, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p + len - before;
}

/* Memory of @size bytes, followed by an inaccessible page */
static inline void *tw_fence(size_t size)
{
	char *p = tw_boundary(size, 1);

	if (mprotect(p + size, 1, PROT_NONE))
		abort();
	return p;
}

/* A page that is missing until tw_fill_page(); NULL: this kernel has no userfaultfd */
static inline void *tw_missing_page(int *uffd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	size_t page = getpagesize();
	void *p;

	*uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (*uffd < 0)
		return NULL;
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.range.start = (uintptr_t)p;
	reg.range.len = page;
	if (ioctl(*uffd, UFFDIO_API, &api) || ioctl(*uffd, UFFDIO_REGISTER, &reg))
		abort();
	return p;
}

static inline void tw_fill_page(int uffd, void *page)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)page, .len = getpagesize() },
	};

	if (ioctl(uffd, UFFDIO_ZEROPAGE, &zero))
		abort();
}

/* --- Open and calls ----------------------------------------------------- */

/* @flags besides O_RDWR and O_CLOEXEC: O_NONBLOCK or 0 */
static inline int dev_open(int flags)
{
	return tw_err(open(TW_DEV, O_RDWR | O_CLOEXEC | flags));
}

static inline int dev_ioctl(int fd, unsigned long cmd, void *arg)
{
	return tw_err(ioctl(fd, cmd, arg));
}

static inline int dev_setup(int fd, struct timerwheel_setup *setup)
{
	setup->size = sizeof(*setup);
	return dev_ioctl(fd, TIMERWHEEL_IOC_SETUP, setup);
}

/* A non-blocking wheel with a clock, a tick and slots per level (0: default) */
static inline int tw_open_setup(struct timerwheel_setup setup)
{
	int fd = dev_open(O_NONBLOCK);
	int ret = fd < 0 ? fd : dev_setup(fd, &setup);

	if (ret >= 0)
		return fd;
	close(fd);
	return ret;
}

static inline int tw_open_clock(__u32 clock, __u64 tick, __u32 slots)
{
	return tw_open_setup((struct timerwheel_setup) {
		.clock = clock, .tick = tick, .slots = slots,
	});
}

/* With a deadline table */
static inline int tw_open_table(__u32 clock, __u64 tick)
{
	return tw_open_setup((struct timerwheel_setup) {
		.flags = TIMERWHEEL_SETUP_TABLE, .clock = clock, .tick = tick,
	});
}

static inline int tw_open_manual(__u64 tick)
{
	return tw_open_clock(TIMERWHEEL_CLOCK_MANUAL, tick, 0);
}

static inline int tw_info(int fd, struct timerwheel_info *info)
{
	tw_poison(info, sizeof(*info));
	info->size = sizeof(*info);
	info->flags = 0;
	return dev_ioctl(fd, TIMERWHEEL_IOC_INFO, info);
}

static inline int tw_stats(int fd, struct timerwheel_stats *stats)
{
	tw_poison(stats, sizeof(*stats));
	stats->size = sizeof(*stats);
	stats->flags = 0;
	return dev_ioctl(fd, TIMERWHEEL_IOC_STATS, stats);
}

/*
 * The memory charged to the user, once only the @n wheels @fd are charged: closed wheels are freed
 * a moment later. ~0: other wheels stay charged.
 */
static inline __u64 tw_memory_of(const int *fd, int n)
{
	struct timerwheel_stats st;
	struct timerwheel_info info;
	__u64 sum, least = ~0ULL;
	int i, k;

	/* until no memory was freed for a while */
	for (i = 0; i < 20000; i++) {
		for (k = 0, sum = 0; k < n; k++) {
			if (tw_stats(fd[k], &st))
				return ~0ULL;
			sum += st.memory;
		}
		if (tw_info(fd[0], &info))
			return ~0ULL;
		if (info.user_memory == sum)
			return sum;
		if (info.user_memory < least) {
			least = info.user_memory;
			i = 0;
		}
		tw_sleep(MSEC);
	}
	return ~0ULL;
}

static inline __u64 tw_memory_alone(int fd)
{
	return tw_memory_of(&fd, 1);
}

/* Do the counters balance? Each arming has ended in exactly one way, or has not ended. */
static inline bool tw_balanced(const struct timerwheel_stats *s)
{
	return s->armed + s->rearmed == s->delivered + s->removed + s->replaced +
					s->drained + s->pending + s->due + s->parked;
}

/* @flags: 0 or TIMERWHEEL_ABS. Returns the number of timers that fell due, or -errno. */
static inline __s64 tw_advance(int fd, __u32 flags, __u64 time)
{
	struct timerwheel_advance adv = {
		.size = sizeof(adv), .flags = flags, .time = time,
	};
	int ret = dev_ioctl(fd, TIMERWHEEL_IOC_ADVANCE, &adv);

	return ret < 0 ? ret : (__s64)adv.expired;
}

/* @cursor: for LIST, else NULL. Returns the number of elements done, or -errno. */
static inline int tw_batch(int fd, unsigned long cmd, __u32 flags, const void *elems,
			   size_t elem_size, __u32 count, __u64 *cursor)
{
	struct timerwheel_batch batch = {
		.size = sizeof(batch), .flags = flags,
		.elems = (uintptr_t)elems, .count = count,
		.elem_size = elem_size, .cursor = cursor ? *cursor : 0,
	};
	int ret = dev_ioctl(fd, cmd, &batch);

	if (cursor)
		*cursor = batch.cursor;
	return ret;
}

static inline int dev_add(int fd, struct timerwheel_add *add, __u32 n)
{
	return tw_batch(fd, TIMERWHEEL_IOC_ADD, 0, add, sizeof(*add), n, NULL);
}

static inline int dev_move(int fd, struct timerwheel_move *move, __u32 n)
{
	return tw_batch(fd, TIMERWHEEL_IOC_MOVE, 0, move, sizeof(*move), n, NULL);
}

static inline int dev_remove(int fd, struct timerwheel_remove *rem, __u32 n)
{
	return tw_batch(fd, TIMERWHEEL_IOC_REMOVE, 0, rem, sizeof(*rem), n, NULL);
}

static inline int dev_get(int fd, struct timerwheel_entry *ent, __u32 n)
{
	return tw_batch(fd, TIMERWHEEL_IOC_GET, 0, ent, sizeof(*ent), n, NULL);
}

/* @flags: TIMERWHEEL_ABS, TIMERWHEEL_EXCL */
static inline int dev_move_handle(int fd, __u32 flags, struct timerwheel_move_handle *move, __u32 n)
{
	return tw_batch(fd, TIMERWHEEL_IOC_MOVE_HANDLE, flags, move, sizeof(*move), n, NULL);
}

static inline int dev_remove_handle(int fd, struct timerwheel_remove_handle *rem, __u32 n)
{
	return tw_batch(fd, TIMERWHEEL_IOC_REMOVE_HANDLE, 0, rem, sizeof(*rem), n, NULL);
}

/* @flags: 0 or TIMERWHEEL_DRAIN_CLOSE. Elements that are not returned stay poisoned. */
static inline int tw_drain(int fd, __u32 flags, struct timerwheel_entry *ent, __u32 n)
{
	tw_poison(ent, n * sizeof(*ent));
	return tw_batch(fd, TIMERWHEEL_IOC_DRAIN, flags, ent, sizeof(*ent), n, NULL);
}

static inline int tw_list(int fd, __u64 *cursor, struct timerwheel_entry *ent, __u32 n)
{
	tw_poison(ent, n * sizeof(*ent));
	return tw_batch(fd, TIMERWHEEL_IOC_LIST, 0, ent, sizeof(*ent), n, cursor);
}

/* --- Calls with one element --------------------------------------------- */

static inline int tw_result1(int ret, const __s32 *result)
{
	return ret == 1 ? *result : TW_FAILED(ret < 0 ? -ret : 0);
}

/* Any ADD: result, index and generation are poisoned first, then left in @add. */
static inline int tw_add_elem(int fd, struct timerwheel_add *add)
{
	tw_poison(&add->result, sizeof(add->result));
	tw_poison(&add->index, sizeof(add->index));
	tw_poison(&add->generation, sizeof(add->generation));
	return tw_result1(dev_add(fd, add, 1), &add->result);
}

static inline int tw_add1(int fd, __u64 key, __u64 value, __u64 deadline, __u32 flags)
{
	struct timerwheel_add add = {
		.key = key, .value = value, .deadline = deadline, .flags = flags,
	};

	return tw_add_elem(fd, &add);
}

static inline int tw_add1_periodic(int fd, __u64 key, __u64 value, __u64 deadline,
				   __u64 period, __u32 flags)
{
	struct timerwheel_add add = {
		.key = key, .value = value, .deadline = deadline, .period = period, .flags = flags,
	};

	return tw_add_elem(fd, &add);
}

static inline int tw_add1_match(int fd, __u64 key, __u64 value, __u64 deadline,
				__u64 match, __u32 flags)
{
	struct timerwheel_add add = {
		.key = key, .value = value, .deadline = deadline, .match = match,
		.flags = flags | TIMERWHEEL_MATCH,
	};

	return tw_add_elem(fd, &add);
}

static inline int tw_move1(int fd, __u64 key, __u64 deadline, __u32 flags)
{
	struct timerwheel_move move = { .key = key, .deadline = deadline, .flags = flags };

	tw_poison(&move.result, sizeof(move.result));
	return tw_result1(dev_move(fd, &move, 1), &move.result);
}

static inline int tw_move1_match(int fd, __u64 key, __u64 deadline, __u64 match,
				 __u32 flags)
{
	struct timerwheel_move move = {
		.key = key, .deadline = deadline, .match = match, .flags = flags | TIMERWHEEL_MATCH,
	};

	tw_poison(&move.result, sizeof(move.result));
	return tw_result1(dev_move(fd, &move, 1), &move.result);
}

/* Any REMOVE: the outputs are poisoned first, then left in @rem. */
static inline int tw_remove_elem(int fd, struct timerwheel_remove *rem)
{
	tw_poison(&rem->value, sizeof(rem->value));
	tw_poison(&rem->left, sizeof(rem->left));
	tw_poison(&rem->result, sizeof(rem->result));
	return tw_result1(dev_remove(fd, rem, 1), &rem->result);
}

static inline int tw_remove1(int fd, __u64 key)
{
	struct timerwheel_remove rem = { .key = key };

	return tw_remove_elem(fd, &rem);
}

static inline int tw_remove1_match(int fd, __u64 key, __u64 match)
{
	struct timerwheel_remove rem = {
		.key = key, .match = match, .flags = TIMERWHEEL_MATCH,
	};

	return tw_remove_elem(fd, &rem);
}

static inline int tw_move_handle1(int fd, __u32 index, __u32 generation, __u64 deadline,
				  __u32 flags)
{
	struct timerwheel_move_handle move = {
		.deadline = deadline, .index = index, .generation = generation,
	};

	return tw_result1(dev_move_handle(fd, flags, &move, 1), &move.result);
}

/* @value: out, poisoned first; NULL: not needed */
static inline int tw_remove_handle1(int fd, __u32 index, __u32 generation, __u64 *value)
{
	struct timerwheel_remove_handle rem = { .index = index, .generation = generation };
	int ret;

	tw_poison(&rem.value, sizeof(rem.value));
	ret = tw_result1(dev_remove_handle(fd, &rem, 1), &rem.result);
	if (value)
		*value = rem.value;
	return ret;
}

/* The outputs are poisoned first, then left in @ent. */
static inline int tw_get1(int fd, __u64 key, struct timerwheel_entry *ent)
{
	tw_poison(ent, sizeof(*ent));
	ent->key = key;
	ent->flags = 0;
	return tw_result1(dev_get(fd, ent, 1), &ent->result);
}

/* --- Events ------------------------------------------------------------- */

/* Wait up to @ms. Returns POLLIN etc., 0 if no event came, or -errno. */
static inline int dev_poll(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int ret = tw_err(poll(&p, 1, ms));

	return ret > 0 ? p.revents : ret;
}

/*
 * One read of up to @n events. Returns the number of events, or -errno; -EPROTO if read() returned
 * a part of an event, or wrote behind the last event.
 */
static inline int dev_read(int fd, struct timerwheel_event *ev, size_t n)
{
	size_t size = n * sizeof(*ev), got;
	ssize_t ret;

	tw_poison(ev, size);
	ret = read(fd, ev, size);
	got = ret < 0 ? 0 : ret;
	if (ret < 0)
		ret = -errno;
	if (got > size || got % sizeof(*ev) || !tw_poisoned((char *)ev + got, size - got))
		return -EPROTO;
	return ret < 0 ? ret : (ssize_t)(got / sizeof(*ev));
}

/*
 * Read until @n events have come or none comes for @ms; the descriptor is non-blocking. Returns the
 * number of events, or -errno.
 */
static inline int tw_read_all(int fd, struct timerwheel_event *ev, size_t n, int ms)
{
	size_t got = 0;

	while (got < n) {
		size_t want = n - got < 4096 ? n - got : 4096;
		int ret = dev_read(fd, ev + got, want);

		if (ret == -EAGAIN) {
			ret = dev_poll(fd, ms);
			if (ret > 0)
				continue;
			return ret < 0 ? ret : (int)got;
		}
		if (ret < 0)
			return ret;
		got += ret;
	}
	return got;
}

/* Set CLOCK_REALTIME: 0 or -errno */
static inline int tw_set_realtime(__u64 ns)
{
	struct timespec ts = { .tv_sec = ns / SEC, .tv_nsec = ns % SEC };

	return tw_err(clock_settime(CLOCK_REALTIME, &ts));
}

/*
 * Send SIGALRM every @us; 0: stop. It is sent less often if the kernel is slow, so that some calls
 * can be made between two signals.
 */
static inline int tw_storm(int us)
{
	struct itimerval often = { { 0, us }, { 0, us } };
	__u64 began = tw_now(CLOCK_MONOTONIC);
	int i, took, fd;

	if (us) {
		fd = tw_open_manual(USEC);
		for (i = 0; i < 20; i++) {
			tw_add1(fd, i, 0, HOUR, 0);
			tw_remove1(fd, i);
		}
		close(fd);
		took = (tw_now(CLOCK_MONOTONIC) - began) / USEC;
		us = took < us ? us : took < 20000 ? took : 20000;
		often.it_value.tv_usec = us;
		often.it_interval.tv_usec = us;
	}
	return tw_err(setitimer(ITIMER_REAL, &often, NULL));
}

#endif /* TW_TEST_H */
