// SPDX-License-Identifier: GPL-2.0
/*
 * lifetime: sharing of wheels, a wheel that survives its daemon, the end of a wheel when the last
 * descriptor is closed, and unloading the module.
 *
 * The module's file is TW_MODULE, or timerwheel.ko in /lib/modules, /, /work or /vm.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "sleeper.h"

#define PAGE		4096	/* most timers in one call */
#define NOBODY		65534
#define EXEC_FD		"TW_LIFETIME_FD"

/* --- Helpers ----------------------------------------------------------------- */

static __u64 value_of(__u64 key)
{
	return ~key * 0x9e3779b97f4a7c15ULL;
}

/* Arm keys @first to @first + @n - 1 (at most PAGE), relative @deadline. 0, or an error. */
static int arm(int fd, __u64 first, int n, __u64 deadline)
{
	static struct timerwheel_add add[PAGE];
	int i, ret;

	memset(add, 0, n * sizeof(*add));
	for (i = 0; i < n; i++) {
		add[i].key = first + i;
		add[i].value = value_of(first + i);
		add[i].deadline = deadline;
	}
	ret = dev_add(fd, add, n);
	if (ret != n)
		return ret < 0 ? ret : -EPROTO;
	for (i = 0; i < n; i++) {
		if (add[i].result)
			return add[i].result;
	}
	return 0;
}

/*
 * LIST all timers into @seen, which counts them for each key below @n. Returns their number, or
 * -EPROTO for a timer that was never armed.
 */
static int list_all(int fd, unsigned char *seen, int n)
{
	static struct timerwheel_entry ent[PAGE];
	__u64 cursor = 0;
	int i, ret, total = 0;

	while ((ret = tw_list(fd, &cursor, ent, PAGE)) > 0) {
		for (i = 0; i < ret; i++) {
			if (ent[i].key >= (__u64)n || ent[i].value != value_of(ent[i].key))
				return -EPROTO;
			seen[ent[i].key]++;
		}
		total += ret;
	}
	return ret < 0 ? ret : total;
}

static __u64 user_memory(int fd)
{
	struct timerwheel_info info;

	return tw_info(fd, &info) ? ~0ULL : info.user_memory;
}

/* Does the charge of this user become @want within some seconds? */
static bool user_memory_become(int fd, __u64 want)
{
	int i;

	for (i = 0; i < LONG_MS / 10 && user_memory(fd) != want; i++)
		tw_sleep(10 * MSEC);
	return user_memory(fd) == want;
}

/* The exit status of a child, or 1000 and the signal that ended it */
static int reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void *shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* A thread in a blocking read of one event */
struct reader {
	pthread_t thread;
	int fd;
	atomic_int tid;
	atomic_bool done;
	int ret;
	struct timerwheel_event ev;
};

static void *reader_main(void *arg)
{
	struct reader *r = arg;

	atomic_store(&r->tid, gettid());
	r->ret = dev_read(r->fd, &r->ev, 1);
	atomic_store(&r->done, true);
	return NULL;
}

static int reader_start(struct reader *r, int fd)
{
	int i;

	memset(r, 0, sizeof(*r));
	r->fd = fd;
	if (pthread_create(&r->thread, NULL, reader_main, r))
		return -EAGAIN;
	for (i = 0; i < LONG_MS; i++) {
		if (atomic_load(&r->done) ||
		    (atomic_load(&r->tid) && asleep(getpid(), atomic_load(&r->tid))))
			return 0;
		tw_sleep(MSEC);
	}
	return -ETIMEDOUT;
}

/* The work of this program after execve() with EXEC_FD: read one event. */
static void __attribute__((constructor)) exec_main(void)
{
	const char *s = getenv(EXEC_FD);
	struct timerwheel_event ev;
	int ret;

	if (!s)
		return;
	ret = dev_read(atoi(s), &ev, 1);
	_exit(ret == 1 && ev.key == 1 ? 0 : ret == -EBADF ? EBADF : 100);
}

/* Execute this program in a child. Returns the result of exec_main() for @fd. */
static int exec_with(int fd)
{
	char var[16];
	pid_t pid;

	snprintf(var, sizeof(var), "%d", fd);
	pid = fork();
	if (!pid) {
		setenv(EXEC_FD, var, 1);
		execl("/proc/self/exe", "lifetime", NULL);
		_exit(101);
	}
	return reap(pid);
}

/* --- Sharing -------------------------------------------------------------------- */

FIXTURE(wheel) {
	int fd;		/* CLOCK_MONOTONIC, blocks */
	int probe;	/* another wheel, to see what is charged to this user */
	__u64 base;	/* charged before there was a timer in fd */
	__u64 none;	/* charged before fd was open */
};

FIXTURE_SETUP(wheel)
{
	self->probe = dev_open(O_NONBLOCK);
	ASSERT_LE(0, self->probe);
	self->none = tw_memory_alone(self->probe);
	self->fd = dev_open(0);
	ASSERT_LE(0, self->fd);
	self->base = user_memory(self->probe);
}

FIXTURE_TEARDOWN(wheel)
{
	close(self->fd);
	close(self->probe);
}

/* Two opens are two wheels: a timer of one is not in the other. */
TEST_F(wheel, opens_are_private)
{
	ASSERT_EQ(0, arm(self->fd, 1, 1, HOUR));
	EXPECT_EQ(-ENOENT, tw_remove1(self->probe, 1));
}

/* An event of one wheel cannot be read from the other. */
TEST_F(wheel, events_are_private)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, arm(self->fd, 1, 1, 0));
	ASSERT_EQ(POLLIN, dev_poll(self->fd, LONG_MS));
	EXPECT_EQ(-EAGAIN, dev_read(self->probe, &ev, 1));
}

/* fork: the child reads events of timers that the parent armed. */
TEST_F(wheel, fork_child_reads)
{
	struct timerwheel_event ev;
	pid_t pid;

	ASSERT_EQ(0, arm(self->fd, 1, 1, 10 * MSEC));
	pid = fork();
	if (!pid)
		_exit(dev_read(self->fd, &ev, 1) != 1 || ev.key != 1);
	EXPECT_EQ(0, reap(pid));
}

/* fork: the parent reads events of timers that the child armed, after the child's end. */
TEST_F(wheel, fork_child_arms)
{
	struct timerwheel_event ev;
	pid_t pid;

	pid = fork();
	if (!pid)
		_exit(!!arm(self->fd, 1, 1, 10 * MSEC));
	ASSERT_EQ(0, reap(pid));
	ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
	EXPECT_EQ(1, ev.key);
}

/* The exit of a child does not end the wheel. */
TEST_F(wheel, fork_child_exit_keeps_timers)
{
	pid_t pid;

	ASSERT_EQ(0, arm(self->fd, 1, 1, HOUR));
	pid = fork();
	if (!pid)
		_exit(0);
	ASSERT_EQ(0, reap(pid));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(self->fd, 1));
}

/* exec: the new program has the descriptor, with its timers. */
TEST_F(wheel, exec_keeps)
{
	ASSERT_EQ(0, arm(self->fd, 1, 1, 10 * MSEC));
	ASSERT_EQ(0, fcntl(self->fd, F_SETFD, 0));
	EXPECT_EQ(0, exec_with(self->fd));
}

/* With O_CLOEXEC the new program does not have it. */
TEST_F(wheel, exec_closes_cloexec)
{
	ASSERT_EQ(0, arm(self->fd, 1, 1, 10 * MSEC));
	EXPECT_EQ(EBADF, exec_with(self->fd));
}

/* dup: both descriptors are one wheel. */
TEST_F(wheel, dup_shares)
{
	int other = dup(self->fd);

	ASSERT_EQ(0, arm(self->fd, 1, 1, HOUR));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(other, 1));
	close(other);
}

/* dup: closing one descriptor leaves the other unchanged. */
TEST_F(wheel, dup_survives_close)
{
	struct timerwheel_event ev;
	int other = dup(self->fd);

	ASSERT_EQ(0, arm(self->fd, 1, 1, 10 * MSEC));
	ASSERT_EQ(0, close(self->fd));
	self->fd = other;
	EXPECT_EQ(1, dev_read(self->fd, &ev, 1));
}

/* SCM_RIGHTS: the receiver has the wheel, even after the sender has exited. */
TEST_F(wheel, scm_rights)
{
	struct timerwheel_event ev;
	int sock[2], fd;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	if (!pid) {
		fd = dev_open(0);
		_exit(fd < 0 || arm(fd, 1, 1, 10 * MSEC) || tw_send_fd(sock[1], fd));
	}
	ASSERT_EQ(0, reap(pid));
	fd = tw_recv_fd(sock[0]);
	ASSERT_LE(0, fd);
	ASSERT_EQ(1, dev_read(fd, &ev, 1));
	EXPECT_EQ(1, ev.key);
	close(fd);
}

/* A wheel in flight, in a socket that is not read, keeps running. */
TEST_F(wheel, scm_rights_in_flight)
{
	struct timerwheel_event ev;
	int sock[2], fd;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	ASSERT_EQ(0, arm(self->fd, 1, 1, 10 * MSEC));
	ASSERT_EQ(0, tw_send_fd(sock[1], self->fd));
	ASSERT_EQ(0, close(self->fd));
	tw_sleep(50 * MSEC);
	fd = tw_recv_fd(sock[0]);
	ASSERT_LE(0, fd);
	self->fd = fd;
	EXPECT_EQ(1, dev_read(fd, &ev, 1));
}

/* An ordinary user can use the device if its mode permits it. */
TEST_F(wheel, ordinary_user)
{
	struct timerwheel_event ev;
	struct stat st;
	pid_t pid;
	int fd;

	if (geteuid())
		SKIP(return, "only root can become someone else");
	ASSERT_EQ(0, stat(TW_DEV, &st));
	ASSERT_EQ(0, chmod(TW_DEV, 0666));
	pid = fork();
	if (!pid) {
		if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
			_exit(2);
		fd = dev_open(0);
		if (fd < 0)
			_exit(3);
		if (arm(fd, 1, 1, 10 * MSEC))
			_exit(4);
		_exit(dev_read(fd, &ev, 1) == 1 ? 0 : 5);
	}
	EXPECT_EQ(0, reap(pid));
	ASSERT_EQ(0, chmod(TW_DEV, st.st_mode & 07777));
}

/* --- The end of a wheel ------------------------------------------------------------- */

/* Timers are charged to the user while they exist. */
TEST_F(wheel, timers_are_charged)
{
	ASSERT_EQ(0, arm(self->fd, 0, 1000, HOUR));
	EXPECT_LE(self->base + 1000 * 68, user_memory(self->probe));
}

/* Closing the last descriptor ends the wheel: its memory is uncharged. */
TEST_F(wheel, last_close_ends_it)
{
	ASSERT_EQ(0, arm(self->fd, 0, 1000, HOUR));
	ASSERT_EQ(0, close(self->fd));
	self->fd = -1;
	EXPECT_TRUE(user_memory_become(self->probe, self->none));
}

/* Timers that are due, about to fall due or periodic do not delay this. */
TEST_F(wheel, close_with_all_kinds)
{
	int i;

	ASSERT_EQ(0, arm(self->fd, 0, 1000, 0));
	ASSERT_EQ(0, arm(self->fd, 1000, 1000, MSEC));
	for (i = 2000; i < 2100; i++)
		ASSERT_EQ(0, tw_add1_periodic(self->fd, i, i, MSEC, MSEC, 0));
	ASSERT_EQ(0, close(self->fd));
	self->fd = -1;
	EXPECT_TRUE(user_memory_become(self->probe, self->none));
}

/* Killing the process that has the only descriptor also ends the wheel. */
TEST_F(wheel, kill_of_only_holder_ends_it)
{
	int pipefd[2], fd;
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(pipefd));
	pid = fork();
	if (!pid) {
		fd = dev_open(0);
		if (fd < 0 || arm(fd, 0, 1000, HOUR) || write(pipefd[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	ASSERT_EQ(1, read(pipefd[0], &c, 1));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(1000 + SIGKILL, reap(pid));
	EXPECT_TRUE(user_memory_become(self->probe, self->base));
}

/* A read that sleeps keeps the wheel open when another thread closes the descriptor. */
TEST_F(wheel, close_under_reader)
{
	struct reader r;

	ASSERT_EQ(0, reader_start(&r, self->fd));
	ASSERT_EQ(0, arm(self->fd, 1, 1, 300 * MSEC));
	ASSERT_EQ(0, close(self->fd));
	self->fd = -1;
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	ASSERT_EQ(1, r.ret);
	EXPECT_EQ(1, r.ev.key);
}

/* When that read returns, the wheel ends. */
TEST_F(wheel, close_under_reader_ends_it)
{
	struct reader r;

	ASSERT_EQ(0, arm(self->fd, 2, 100, HOUR));
	ASSERT_EQ(0, reader_start(&r, self->fd));
	ASSERT_EQ(0, arm(self->fd, 1, 1, 200 * MSEC));
	ASSERT_EQ(0, close(self->fd));
	self->fd = -1;
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	EXPECT_EQ(1, r.ret);
	EXPECT_TRUE(user_memory_become(self->probe, self->none));
}

/* When a process exits its wheel ends, even if one of its threads sleeps in read. */
TEST_F(wheel, exit_under_reader)
{
	struct reader r;
	pid_t pid;
	int fd;

	pid = fork();
	if (!pid) {
		fd = dev_open(0);
		if (fd < 0 || arm(fd, 0, 1000, HOUR) || reader_start(&r, fd) ||
		    atomic_load(&r.done))
			_exit(1);
		close(fd);
		_exit(0);
	}
	EXPECT_EQ(0, reap(pid));
	EXPECT_TRUE(user_memory_become(self->probe, self->base));
}

/* A closed wheel sends no more SIGIO. */
TEST_F(wheel, close_ends_sigio)
{
	struct timespec ts = { .tv_nsec = 200 * MSEC };
	sigset_t set;
	int i, fd;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &set, NULL));
	for (i = 0; i < 50; i++) {
		fd = dev_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, fcntl(fd, F_SETOWN, getpid()));
		ASSERT_EQ(0, fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC));
		ASSERT_EQ(0, arm(fd, 0, 50, i % 4 * MSEC));
		tw_sleep(i % 3 * MSEC);
		ASSERT_EQ(0, close(fd));
	}
	while (sigtimedwait(&set, NULL, &(struct timespec){ 0 }) == SIGIO)
		;
	EXPECT_EQ(-EAGAIN, tw_err(sigtimedwait(&set, NULL, &ts)));
}

/* A closed wheel is removed from its epoll set. */
TEST_F(wheel, close_leaves_epoll)
{
	struct epoll_event ee = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->fd, &ee));
	ASSERT_EQ(0, arm(self->fd, 1, 50, 20 * MSEC));
	ASSERT_EQ(0, close(self->fd));
	self->fd = -1;
	EXPECT_EQ(0, epoll_wait(ep, &ee, 1, 200));
}

/* --- fdinfo ----------------------------------------------------------------------- */

/* Read /proc/PID/fdinfo/FD as text. Returns the number of lines that only wheels have. */
static int read_info(pid_t pid, int fd, char *buf, size_t size)
{
	static const char * const common[] = {
		"pos:", "flags:", "mnt_id:", "ino:", "scm_fds:", "lock:",
	};
	char path[64], *line, *save = NULL, copy[4096];
	ssize_t len;
	int info, own = 0;
	size_t i;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	info = open(path, O_RDONLY);
	if (info < 0)
		return -errno;
	len = read(info, buf, size - 1);
	close(info);
	if (len < 0)
		return -EIO;
	buf[len] = 0;
	snprintf(copy, sizeof(copy), "%s", buf);
	for (line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		for (i = 0; i < ARRAY_SIZE(common); i++) {
			if (!strncmp(line, common[i], strlen(common[i])))
				break;
		}
		own += i == ARRAY_SIZE(common);
	}
	return own;
}

/* A wheel has additional lines in fdinfo. */
TEST_F(wheel, fdinfo_present)
{
	char buf[4096];

	EXPECT_LT(0, read_info(getpid(), self->fd, buf, sizeof(buf)));
}

/* Another process can read them; they have the number of pending timers. */
TEST_F(wheel, fdinfo_shows_pending)
{
	char buf[4096], *p;
	pid_t pid;

	ASSERT_EQ(0, arm(self->fd, 0, 3217, HOUR));
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	ASSERT_LT(0, read_info(pid, self->fd, buf, sizeof(buf)));
	p = strcasestr(buf, "pending");
	ASSERT_NE(NULL, p) {
		TH_LOG("%s", buf);
	}
	p += strcspn(p, "0123456789\n");
	EXPECT_EQ(3217, atoi(p));
	kill(pid, SIGKILL);
	reap(pid);
}

/* The text in a line of fdinfo; NULL if there is no such line */
static const char *info_line(const char *buf, const char *name)
{
	static char value[32];
	const char *p = strstr(buf, name);

	return p && sscanf(p + strlen(name), ":\t%31s", value) == 1 ? value : NULL;
}

/* fdinfo has all arguments of SETUP for another wheel with the same settings */
TEST_F(wheel, fdinfo_shows_setup)
{
	static const char * const names[] = {
		"clock", "tick-ns", "slots", "capacity", "slack-ns", "wake-events", "wake-ns",
		"ring", "event-size", "setup-flags",
	};
	static const struct {
		struct timerwheel_setup setup;
		const char *is[ARRAY_SIZE(names)];
	} all[] = {
		{
			{ },
			{ "monotonic", "1000000", "256", "4194304", "0", "1", "0", "0", "48",
			  "0x0" },
		}, {
			{
				.flags = TIMERWHEEL_SETUP_CLOCK_SET,
				.clock = TIMERWHEEL_CLOCK_REALTIME, .slots = 63, .tick = 2000,
				.capacity = 99, .wake_events = 7, .wake_ns = 4000, .slack = 5000,
				.ring = 8, .event_size = 96,
			},
			{ "realtime", "2000", "64", "99", "5000", "7", "4000", "8", "48",
			  "0x1" },
		}, {
			{
				.flags = TIMERWHEEL_SETUP_ALARM,
				.clock = TIMERWHEEL_CLOCK_BOOTTIME,
			},
			{ "boottime", "1000000", "256", "4194304", "0", "1", "0", "0", "48",
			  "0x2" },
		}, {
			{ .flags = TIMERWHEEL_SETUP_TABLE },
			{ "monotonic", "1000000", "256", "4194304", "0", "1", "0", "0", "48",
			  "0x8" },
		}, {
			{ .flags = TIMERWHEEL_SETUP_RESIDENT },
			{ "monotonic", "1000000", "256", "4194304", "0", "1", "0", "0", "48",
			  "0xc" },
		},
	};
	char buf[4096], name[64];
	size_t i, k;
	int fd, ret;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		struct timerwheel_setup setup = all[i].setup;

		fd = dev_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		ret = dev_setup(fd, &setup);
		if (ret == -EOPNOTSUPP && setup.flags) {
			printf("# this machine has no such wheels: flags 0x%x\n", setup.flags);
			close(fd);
			continue;
		}
		ASSERT_EQ(0, ret);
		ASSERT_LT(0, read_info(getpid(), fd, buf, sizeof(buf)));
		for (k = 0; k < ARRAY_SIZE(names); k++) {
			snprintf(name, sizeof(name), "timerwheel-%s", names[k]);
			EXPECT_STREQ(all[i].is[k], info_line(buf, name))
				TH_LOG("%zu: %s", i, name);
		}
		close(fd);
	}
}

/* The number in the line of that name; ~0 if there is no such line */
static __u64 info_number(const char *buf, const char *name)
{
	char line[64];
	const char *p;

	snprintf(line, sizeof(line), "timerwheel-%s:\t", name);
	p = strstr(buf, line);
	return p ? strtoull(p + strlen(line), NULL, 10) : ~0ULL;
}

/* All values of fdinfo agree with INFO and STATS. */
TEST_F(wheel, fdinfo_is_stats)
{
	static const char * const clock[] = { "monotonic", "boottime", "realtime", "manual" };
	struct timerwheel_event ev[4];
	struct timerwheel_entry ent;
	struct timerwheel_stats st;
	struct timerwheel_info info;
	char buf[4096], line[64];
	__u32 i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(clock); i++) {
		fd = tw_open_clock(i, 2 * MSEC, 64);
		ASSERT_LE(0, fd);
		snprintf(line, sizeof(line), "timerwheel-clock:\t%s\n", clock[i]);
		ASSERT_LT(0, read_info(getpid(), fd, buf, sizeof(buf)));
		EXPECT_NE(NULL, strstr(buf, line));
		EXPECT_EQ(0, info_number(buf, "closed"));
		close(fd);
	}
	fd = tw_open_manual(MSEC);
	ASSERT_EQ(0, arm(fd, 10, 5, HOUR));
	ASSERT_EQ(0, arm(fd, 3, 2, SEC));
	ASSERT_EQ(0, tw_add1_periodic(fd, 5, 5, SEC, SEC, 0));
	ASSERT_EQ(3, tw_advance(fd, 0, SEC));
	ASSERT_EQ(3, dev_read(fd, ev, 4));
	ASSERT_EQ(0, arm(fd, 6, 2, SEC));
	ASSERT_LE(2, tw_advance(fd, 0, SEC));
	ASSERT_EQ(0, tw_drain(fd, TIMERWHEEL_DRAIN_CLOSE, &ent, 0));
	ASSERT_EQ(0, tw_info(fd, &info));
	ASSERT_EQ(0, tw_stats(fd, &st));
	ASSERT_LT(0, st.rearmed);
	ASSERT_NE(st.pending, st.due);
	ASSERT_LT(0, read_info(getpid(), fd, buf, sizeof(buf)));
	EXPECT_EQ(info.tick, info_number(buf, "tick-ns"));
	EXPECT_EQ(info.slots, info_number(buf, "slots"));
	EXPECT_EQ(info.capacity, info_number(buf, "capacity"));
	EXPECT_EQ(1, info_number(buf, "closed"));
	EXPECT_EQ(st.pending, info_number(buf, "pending"));
	EXPECT_EQ(st.due, info_number(buf, "due"));
	EXPECT_EQ(st.armed + st.rearmed, info_number(buf, "armed"));
	EXPECT_EQ(st.delivered, info_number(buf, "delivered"));
	EXPECT_EQ(st.memory, info_number(buf, "memory"));
	close(fd);
}

/* Number of started hrtimers of the engine; -1: unknown, /proc/timer_list is not readable */
static int hrtimers_started(void)
{
	FILE *f = fopen("/proc/timer_list", "re");
	char line[512];
	int n = 0;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "tw_engine_fire") && strstr(line, "S:01");
	fclose(f);
	return n;
}

/* The hrtimer of a clock is cancelled when the last wheel on it is closed. */
TEST_F(wheel, close_stops_the_hrtimer)
{
	static const __u32 clocks[] = {
		TIMERWHEEL_CLOCK_MONOTONIC, TIMERWHEEL_CLOCK_BOOTTIME, TIMERWHEEL_CLOCK_REALTIME,
	};
	__u64 until;
	int i, fd;

	for (i = 0; i < 3; i++) {
		fd = tw_open_clock(clocks[i], 0, 0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, arm(fd, 1, 1, HOUR));
		if (hrtimers_started() < 1)
			SKIP(return, "/proc/timer_list does not show hrtimers by name");
		close(fd);
		/* Not LONG_MS tries: each takes some ms, and the test has 180 s. */
		until = tw_now(CLOCK_MONOTONIC) + LONG_MS * MSEC;
		while (hrtimers_started() && tw_now(CLOCK_MONOTONIC) < until)
			tw_sleep(MSEC);
		ASSERT_EQ(0, hrtimers_started());
	}
}

/* An hrtimer cancelled with one wheel is started again for the next. */
TEST_F(wheel, close_and_arm_later)
{
	static const __u32 clocks[] = {
		TIMERWHEEL_CLOCK_MONOTONIC, TIMERWHEEL_CLOCK_BOOTTIME, TIMERWHEEL_CLOCK_REALTIME,
	};
	struct timerwheel_event ev;
	int i, fd;

	ASSERT_EQ(0, tw_pin(0));
	for (i = 0; i < 3; i++) {
		fd = tw_open_clock(clocks[i], 0, 0);
		ASSERT_LE(0, fd);
		/* both are in the first level, so nothing cascades earlier */
		ASSERT_EQ(0, arm(fd, 1, 1, 150 * MSEC));
		close(fd);
		fd = tw_open_clock(clocks[i], 0, 0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, arm(fd, 2, 1, 300 * MSEC));
		ASSERT_EQ(1, tw_read_all(fd, &ev, 1, LONG_MS));
		close(fd);
	}
}

/* A user's wheels on a CPU share a queue, which stays as long as one of them. */
TEST_F(wheel, close_leaves_the_others)
{
	struct timerwheel_event ev;
	int a, b;

	ASSERT_EQ(0, tw_pin(0));
	a = tw_open_clock(TIMERWHEEL_CLOCK_MONOTONIC, 0, 0);
	b = tw_open_clock(TIMERWHEEL_CLOCK_MONOTONIC, 0, 0);
	ASSERT_LE(0, b);
	ASSERT_EQ(0, arm(a, 1, 1, HOUR));
	/* long enough for the grace period after which the first is freed */
	ASSERT_EQ(0, arm(b, 1, 1, 2 * SEC));
	close(a);
	EXPECT_EQ(1, tw_read_all(b, &ev, 1, LONG_MS));
	close(b);
}

#define USERS	20000

/* USERS users, one after another, open a wheel, arm a timer and close it. Returns 0 or -errno. */
static int users_come_and_go(void)
{
	int i, fd, ret;

	for (i = 0; i < USERS; i++) {
		if (setresuid(30000 + i, 0, 0))
			return -errno;
		fd = dev_open(O_NONBLOCK);
		if (setresuid(0, 0, 0))
			return -errno;
		ret = fd < 0 ? fd : arm(fd, 1, 1, HOUR);
		close(fd);
		if (ret)
			return ret;
	}
	return 0;
}

/* Unreclaimable slab memory in kB, once it has not decreased for a second */
static long long kernel_memory(void)
{
	long long least = LLONG_MAX, now;
	int i;

	for (i = 0; i < 10; i++) {
		now = tw_file_number("/proc/meminfo", "SUnreclaim:");
		if (now < least) {
			least = now;
			i = 0;
		}
		tw_sleep(100 * MSEC);
	}
	return least;
}

/*
 * A user's queue is freed with the user's last wheel on its CPU, so a sequence of users costs no
 * memory: 68 kB were measured, and 2868 kB when queues were not freed.
 */
TEST_F_TIMEOUT(wheel, queues_end, 600)
{
	__u64 until = tw_now(CLOCK_MONOTONIC) + 5 * MINUTE;
	long long before, more;

	if (geteuid())
		SKIP(return, "only root can be other users");
	/* at first the kernel's caches grow */
	ASSERT_EQ(0, users_come_and_go());
	before = kernel_memory();
	ASSERT_EQ(0, users_come_and_go());
	/* On a slow machine a second may contain no grace period. */
	do
		more = kernel_memory() - before;
	while (more >= 1500 && tw_now(CLOCK_MONOTONIC) < until);
	printf("# %lld kB more for %d users\n", more, USERS);
	fflush(stdout);
	EXPECT_GT(1500, more);
}

/* --- Many wheels --------------------------------------------------------------------- */

#define WHEELS	1000

FIXTURE(wheels) {
	int probe;
	__u64 base;
	int fd[WHEELS];
};

FIXTURE_SETUP(wheels)
{
	struct rlimit rl = { WHEELS + 100, WHEELS + 100 };
	int i;

	for (i = 0; i < WHEELS; i++)
		self->fd[i] = -1;
	self->probe = dev_open(O_NONBLOCK);
	ASSERT_LE(0, self->probe);
	self->base = tw_memory_alone(self->probe);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &rl));
	for (i = 0; i < WHEELS; i++) {
		self->fd[i] = dev_open(O_NONBLOCK);
		ASSERT_LE(0, self->fd[i]);
		ASSERT_EQ(0, arm(self->fd[i], i, 5, HOUR));
		ASSERT_EQ(0, arm(self->fd[i], i + 5, 5, 20 * MSEC));
	}
}

FIXTURE_TEARDOWN(wheels)
{
	int i;

	for (i = 0; i < WHEELS; i++)
		close(self->fd[i]);
	close(self->probe);
}

/* A thousand wheels at once: each has its own timers and events. */
TEST_F_TIMEOUT(wheels, work_at_once, 300)
{
	struct timerwheel_event ev[16];
	struct timerwheel_stats st;
	int i, j;

	for (i = 0; i < WHEELS; i++) {
		ASSERT_EQ(5, tw_read_all(self->fd[i], ev, 5, LONG_MS));
		for (j = 0; j < 5; j++)
			ASSERT_EQ(value_of(ev[j].key), ev[j].value);
		ASSERT_EQ(0, tw_stats(self->fd[i], &st));
		ASSERT_EQ(5, st.pending);
		ASSERT_EQ(0, st.due);
	}
}

/* After they were closed no memory stays charged. */
TEST_F_TIMEOUT(wheels, close_gives_back, 300)
{
	int i;

	for (i = 0; i < WHEELS; i++) {
		ASSERT_EQ(0, close(self->fd[i]));
		self->fd[i] = -1;
	}
	EXPECT_TRUE(user_memory_become(self->probe, self->base));
}

/* --- A daemon that is killed ------------------------------------------------------------ */

#define DAEMON_TIMERS	100000

FIXTURE(killed) {
	int fd;			/* the daemon's wheel, which we keep */
	unsigned char *seen;
};

/*
 * A daemon arms 100,000 timers, the even ones within a second, the odd ones in an hour, and is
 * killed when some are due. This process keeps its descriptor.
 */
FIXTURE_SETUP(killed)
{
	int sock[2], fd, i;
	pid_t pid;
	char c;

	self->seen = calloc(DAEMON_TIMERS, 1);
	ASSERT_NE(NULL, self->seen);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		static struct timerwheel_add add[1000];
		int j;

		fd = dev_open(O_NONBLOCK);
		if (fd < 0 || tw_send_fd(sock[1], fd))
			_exit(1);
		for (i = 0; i < DAEMON_TIMERS; i += 1000) {
			for (j = 0; j < 1000; j++) {
				add[j].key = i + j;
				add[j].value = value_of(i + j);
				add[j].deadline = j % 2 ? HOUR : j * MSEC;
			}
			if (dev_add(fd, add, 1000) != 1000)
				_exit(2);
		}
		if (write(sock[1], "", 1) != 1)
			_exit(3);
		pause();
	}
	self->fd = tw_recv_fd(sock[0]);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(1, read(sock[0], &c, 1));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(1000 + SIGKILL, reap(pid));
}

FIXTURE_TEARDOWN(killed)
{
	close(self->fd);
}

/* The owner of the other descriptor LISTs every timer exactly once. */
TEST_F_TIMEOUT(killed, list_finds_every_timer, 300)
{
	int i;

	ASSERT_EQ(DAEMON_TIMERS, list_all(self->fd, self->seen, DAEMON_TIMERS));
	for (i = 0; i < DAEMON_TIMERS; i++)
		ASSERT_EQ(1, self->seen[i]);
}

/* Collect the events of the even timers in seen[]. Returns 0 if all came. */
static int collect_even(int fd, unsigned char *seen)
{
	static struct timerwheel_event ev[PAGE];
	int i, n, got = 0;

	while (got < DAEMON_TIMERS / 2) {
		n = tw_read_all(fd, ev, 1, LONG_MS);
		if (n != 1)
			return -ETIMEDOUT;
		n = dev_read(fd, ev + 1, PAGE - 1);
		n = n < 0 ? 1 : n + 1;
		for (i = 0; i < n; i++) {
			if (ev[i].key >= DAEMON_TIMERS || ev[i].value != value_of(ev[i].key))
				return -EPROTO;
			seen[ev[i].key]++;
		}
		got += n;
	}
	return dev_poll(fd, 100);
}

/* It reads exactly these events, each once. */
TEST_F_TIMEOUT(killed, read_finds_every_event, 300)
{
	int i;

	ASSERT_EQ(0, collect_even(self->fd, self->seen));
	for (i = 0; i < DAEMON_TIMERS; i++)
		ASSERT_EQ(!(i % 2), self->seen[i]);
}

/* It can use the remaining timers: after MOVE each fires once. */
TEST_F_TIMEOUT(killed, rest_goes_on, 300)
{
	static struct timerwheel_move move[PAGE];
	static struct timerwheel_event ev[PAGE];
	int i, n, got;

	ASSERT_EQ(0, collect_even(self->fd, self->seen));
	for (i = 1; i < DAEMON_TIMERS; i += 2 * PAGE) {
		for (n = 0; n < PAGE && i + 2 * n < DAEMON_TIMERS; n++)
			move[n] = (struct timerwheel_move){ .key = i + 2 * n };
		ASSERT_EQ(n, dev_move(self->fd, move, n));
	}
	for (got = 0; got < DAEMON_TIMERS / 2; got += n) {
		n = tw_read_all(self->fd, ev, 1, LONG_MS);
		ASSERT_EQ(1, n);
		self->seen[ev[0].key]++;
		n = dev_read(self->fd, ev, PAGE);
		for (i = 0; i < n; i++)
			self->seen[ev[i].key]++;
		n = n < 0 ? 1 : n + 1;
	}
	for (i = 0; i < DAEMON_TIMERS; i++)
		ASSERT_EQ(1, self->seen[i]);
}

/* Killed in the middle of a call: all elements up to some point are done, and no others. */
TEST_F_TIMEOUT(wheel, killed_in_batch, 300)
{
	enum { MAX = 1000000 };
	unsigned char *seen = calloc(MAX, 1);
	__u64 seed = tw_seed();
	atomic_int *armed = shared(sizeof(*armed));
	int i, total, round;
	pid_t pid;

	ASSERT_NE(NULL, seen);
	ASSERT_NE(NULL, armed);
	TH_LOG("TW_SEED=%llu", (unsigned long long)seed);
	for (round = 0; round < 5; round++) {
		int fd = dev_open(O_NONBLOCK);

		ASSERT_LE(0, fd);
		memset(seen, 0, MAX);
		atomic_store(armed, 0);
		pid = fork();
		if (!pid) {
			for (i = 0; i + PAGE < MAX && !arm(fd, i, PAGE, HOUR); i += PAGE)
				atomic_store(armed, i + PAGE);
			pause();
		}
		while (atomic_load(armed) < PAGE)
			tw_sleep(MSEC);
		tw_sleep(tw_rand(&seed) % (20 * MSEC));
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(1000 + SIGKILL, reap(pid));
		total = list_all(fd, seen, MAX);
		ASSERT_LE(atomic_load(armed), total);
		for (i = 0; i < total; i++)
			ASSERT_EQ(1, seen[i]);
		ASSERT_EQ(0, close(fd));
	}
	free(seen);
}

/* --- The module ------------------------------------------------------------------------- */

static const char *module_file(void)
{
	static const char * const place[] = {
		"/lib/modules/timerwheel.ko", "/timerwheel.ko", "/work/timerwheel.ko",
		"/vm/timerwheel.ko",
	};
	const char *s = getenv("TW_MODULE");
	size_t i;

	if (s && *s)
		return s;
	for (i = 0; i < ARRAY_SIZE(place); i++) {
		if (!access(place[i], R_OK))
			return place[i];
	}
	return NULL;
}

static int unload(void)
{
	return tw_err(syscall(SYS_delete_module, "timerwheel", O_NONBLOCK));
}

/* Load it and wait for the device. Returns 0, -EEXIST if it is loaded already, or -errno. */
static int load(void)
{
	int i, ret, fd = open(module_file(), O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	ret = tw_err(syscall(SYS_finit_module, fd, "", 0));
	close(fd);
	for (i = 0; !ret && i < LONG_MS && access(TW_DEV, R_OK | W_OK); i++)
		tw_sleep(MSEC);
	return ret;
}

/* The reason why the module cannot be unloaded and loaded here, or NULL */
static const char *module_stays(void)
{
	if (geteuid())
		return "only root can load a module";
	if (access("/sys/module/timerwheel/refcnt", R_OK))
		return "timerwheel is not a module that can be unloaded here";
	if (!module_file())
		return "no file of the module (set TW_MODULE)";
	return NULL;
}

FIXTURE(module) {
	const char *stays;
};

FIXTURE_SETUP(module)
{
	self->stays = module_stays();
}

FIXTURE_TEARDOWN(module)
{
	if (!self->stays && access("/sys/module/timerwheel", F_OK))
		load();
}

/* rmmod is refused while a wheel is open. */
TEST_F(module, rmmod_refused_while_open)
{
	int fd = dev_open(0);

	if (self->stays)
		SKIP(return, "%s", self->stays);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EWOULDBLOCK, unload());
	close(fd);
}

/* That wheel keeps running. */
TEST_F(module, wheel_goes_on_after_rmmod_refused)
{
	struct timerwheel_event ev;
	int fd = dev_open(0);

	if (self->stays)
		SKIP(return, "%s", self->stays);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, arm(fd, 1, 1, 100 * MSEC));
	ASSERT_EQ(-EWOULDBLOCK, unload());
	EXPECT_EQ(1, dev_read(fd, &ev, 1));
	close(fd);
}

static void on_signal(int sig)
{
	(void)sig;
}

/* rmmod is refused while a read sleeps, although the descriptor is closed. A signal ends it. */
TEST_F(module, rmmod_refused_under_reader)
{
	struct sigaction sa = { .sa_handler = on_signal };
	int fd = dev_open(0);
	struct reader r;

	if (self->stays)
		SKIP(return, "%s", self->stays);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	ASSERT_EQ(0, reader_start(&r, fd));
	ASSERT_EQ(0, close(fd));
	EXPECT_EQ(-EWOULDBLOCK, unload());
	ASSERT_EQ(0, pthread_kill(r.thread, SIGUSR1));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	EXPECT_EQ(-EINTR, r.ret);
}

/* rmmod succeeds as soon as the last descriptor is closed. */
TEST_F(module, rmmod_after_close)
{
	int fd = dev_open(0);

	if (self->stays)
		SKIP(return, "%s", self->stays);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, close(fd));
	EXPECT_EQ(0, unload());
}

/* The kernel then no longer reports to the module that the clock was set. */
TEST_F(module, rmmod_after_clock_set)
{
	struct timerwheel_setup setup = {
		.clock = TIMERWHEEL_CLOCK_REALTIME, .flags = TIMERWHEEL_SETUP_CLOCK_SET,
	};
	int fd = dev_open(0);

	if (self->stays)
		SKIP(return, "%s", self->stays);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, dev_setup(fd, &setup));
	ASSERT_EQ(0, close(fd));
	ASSERT_EQ(0, unload());
	/* some ticks, each of which would call it */
	tw_sleep(100 * MSEC);
	EXPECT_EQ(0, load());
}

/* rmmod succeeds while a CPU is offline, and the CPU comes back. */
TEST_F(module, rmmod_while_cpu_offline)
{
	int cpu = sysconf(_SC_NPROCESSORS_CONF) - 1;

	if (self->stays)
		SKIP(return, "%s", self->stays);
	if (cpu < 1 || tw_cpu_online(cpu, false))
		SKIP(return, "no CPU can go offline");
	EXPECT_EQ(0, unload());
	ASSERT_EQ(0, tw_cpu_online(cpu, true));
	EXPECT_EQ(0, load());
}

/* Afterwards there is no device. */
TEST_F(module, rmmod_takes_device)
{
	if (self->stays)
		SKIP(return, "%s", self->stays);
	ASSERT_EQ(0, unload());
	EXPECT_EQ(-ENOENT, dev_open(0));
	/* its number is gone, too */
	EXPECT_EQ(-1, tw_file_number("/proc/devices", "timerwheel"));
}

/* The module is loaded and unloaded 100 times; each time a wheel works. */
TEST_F_TIMEOUT(module, load_unload_100, 600)
{
	struct timerwheel_event ev;
	int i, fd;

	if (self->stays)
		SKIP(return, "%s", self->stays);
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, unload());
		ASSERT_EQ(0, load());
		fd = dev_open(0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, arm(fd, i, 1, i % 2 * MSEC));
		ASSERT_EQ(1, dev_read(fd, &ev, 1));
		ASSERT_EQ(0, close(fd));
	}
}

/* Timers of all kinds that exist at close do not disturb a later unload. */
TEST_F_TIMEOUT(module, unload_after_close_with_timers, 300)
{
	int i, j, fd;

	if (self->stays)
		SKIP(return, "%s", self->stays);
	for (i = 0; i < 20; i++) {
		fd = dev_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, arm(fd, 0, 1000, i * 100 * USEC));
		ASSERT_EQ(0, arm(fd, 1000, 1000, HOUR));
		for (j = 2000; j < 2100; j++)
			ASSERT_EQ(0, tw_add1_periodic(fd, j, j, MSEC, 100 * USEC, 0));
		tw_sleep(i % 5 * 300 * USEC);
		ASSERT_EQ(0, close(fd));
		ASSERT_EQ(0, unload());
		ASSERT_EQ(0, load());
	}
}

#define CLOSERS		8
#define CLOSER_WHEELS	25

/* Many wheels of several processes, closed at once: unload waits until all of them are freed. */
TEST_F_TIMEOUT(module, unload_after_close_of_many, 300)
{
	atomic_int *ready = shared(sizeof(*ready));
	int round, i, k, fd, pipefd[2];
	pid_t pid[CLOSERS];
	char c;

	if (self->stays)
		SKIP(return, "%s", self->stays);
	for (round = 0; round < 10; round++) {
		atomic_store(ready, 0);
		ASSERT_EQ(0, pipe(pipefd));
		for (i = 0; i < CLOSERS; i++) {
			pid[i] = fork();
			ASSERT_LE(0, pid[i]);
			if (pid[i])
				continue;
			close(pipefd[1]);
			for (k = 0; k < CLOSER_WHEELS; k++) {
				fd = dev_open(O_NONBLOCK);
				if (fd < 0 || arm(fd, 0, 100 * k, k % 2 ? HOUR : 10 * MSEC))
					_exit(1);
			}
			atomic_fetch_add(ready, 1);
			/* until the other end is closed, so that all exit at the same time */
			_exit(read(pipefd[0], &c, 1) != 0);
		}
		for (i = 0; i < LONG_MS && atomic_load(ready) < CLOSERS; i++)
			tw_sleep(MSEC);
		EXPECT_EQ(CLOSERS, atomic_load(ready));
		close(pipefd[0]);
		close(pipefd[1]);
		for (i = 0; i < CLOSERS; i++)
			EXPECT_EQ(0, reap(pid[i]));
		ASSERT_EQ(0, unload());
		ASSERT_EQ(0, load());
	}
}

/* The unload also waits for so many timers that freeing them takes a while. */
TEST_F_TIMEOUT(module, unload_while_they_are_freed, 300)
{
	int i, k, fd;

	if (self->stays)
		SKIP(return, "%s", self->stays);
	for (k = 0; k < 2; k++) {
		fd = dev_open(0);
		ASSERT_LE(0, fd);
		for (i = 0; i < 250; i++)
			ASSERT_EQ(0, arm(fd, i * PAGE, PAGE, HOUR));
		ASSERT_EQ(0, close(fd));
		ASSERT_EQ(0, unload());
		ASSERT_EQ(0, load());
	}
}

/* --- Memory of a control group ------------------------------------------------------------- */

#define CHARGED		300000	/* timers to arm */
#define LIMIT		(4 << 20)
#define MANY		200000
#define SMALL		250	/* timers in a call */
#define IN_VAIN		10000	/* timers in a call that finds no memory */

/* Results of a child in the group, which does not print anything itself */
struct finding {
	long long before;	/* memory.current without a wheel */
	long long one;		/* with one timer */
	long long full;		/* with all timers */
	long long after;	/* after close */
	int error;
	int tried;
	int armed;
	int nomem;
	int listed;
	int wrong;
	int refused;		/* of a call with IN_VAIN timers */
	int other_read;		/* result of read() on another CPU */
	int other_remove;	/* result of REMOVE there */
	int other_moved;	/* timers moved there to fall due soon */
	int other_fired;	/* number of these that fell due */
	int ring;		/* result of SETUP with a ring */
	long long ring_charged;	/* additional charge after it */
	unsigned char is_armed[MANY];
	unsigned char is_listed[MANY];
};

FIXTURE(memcg) {
	const char *cannot;
	char root[64];		/* where cgroup2 is mounted */
	char group[128];
	bool mounted;		/* this program has mounted it */
	struct finding *f;
};

static int write_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	int fd, ret;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

static int read_file(const char *dir, const char *name, char *buf, size_t size)
{
	char path[256];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, buf, size - 1);
	close(fd);
	buf[len < 0 ? 0 : len] = 0;
	return len < 0 ? -EIO : 0;
}

/* A number in a file of the group: the one after @word, or the first */
static long long group_number(const char *dir, const char *name, const char *word)
{
	char buf[4096], *p = buf;

	if (read_file(dir, name, buf, sizeof(buf)))
		return -1;
	if (word) {
		p = strstr(buf, word);
		p = p ? p + strlen(word) : "-1";
	}
	return atoll(p);
}

/* Find the mount point of cgroup2, or mount it */
static bool find_cgroup2(char *root, size_t size, bool *mounted)
{
	char line[512], dir[256], type[64];
	FILE *f = fopen("/proc/mounts", "re");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %255s %63s", dir, type) != 2)
			continue;
		found = !strcmp(type, "cgroup2") && strlen(dir) < size;
	}
	if (f)
		fclose(f);
	snprintf(root, size, "%s", found ? dir : "/tmp/tw-cgroup-XXXXXX");
	if (found)
		return true;
	*mounted = mkdtemp(root) && !mount("none", root, "cgroup2", 0, NULL);
	return *mounted;
}

FIXTURE_SETUP(memcg)
{
	char buf[1024];

	self->cannot = NULL;
	self->f = shared(sizeof(*self->f));
	ASSERT_NE(NULL, self->f);
	if (geteuid()) {
		self->cannot = "only root can make a control group";
		return;
	}
	if (!find_cgroup2(self->root, sizeof(self->root), &self->mounted) ||
	    read_file(self->root, "cgroup.controllers", buf, sizeof(buf)) ||
	    !strstr(buf, "memory")) {
		self->cannot = "no memory controller in cgroup2";
		return;
	}
	ASSERT_EQ(0, write_file(self->root, "cgroup.subtree_control", "+memory"));
	snprintf(self->group, sizeof(self->group), "%s/timerwheel-%d", self->root, getpid());
	ASSERT_EQ(0, mkdir(self->group, 0755));
}

FIXTURE_TEARDOWN(memcg)
{
	int i;

	for (i = 0; self->group[0] && i < 100 && rmdir(self->group) && errno == EBUSY; i++)
		tw_sleep(10 * MSEC);
	if (self->mounted) {
		umount(self->root);
		rmdir(self->root);
	}
}

/* In a group: fill in @f while a wheel grows and is closed */
static void memcg_grow(const char *group, struct finding *f)
{
	int i, n, fd;

	/* let arm() and group_number() allocate their memory before the measurement */
	fd = dev_open(O_NONBLOCK);
	f->error = fd < 0 ? fd : arm(fd, 0, PAGE, HOUR);
	close(fd);
	if (f->error || write_file(group, "cgroup.procs", "0"))
		_exit(1);
	group_number(group, "memory.current", NULL);
	f->before = group_number(group, "memory.current", NULL);
	fd = dev_open(O_NONBLOCK);
	if (fd < 0 || arm(fd, 0, 1, HOUR))
		_exit(2);
	f->one = group_number(group, "memory.current", NULL);
	for (i = 1; !f->error && i < CHARGED; i += n) {
		n = CHARGED - i < PAGE ? CHARGED - i : PAGE;
		f->error = arm(fd, i, n, HOUR);
	}
	f->full = group_number(group, "memory.current", NULL);
	close(fd);
	for (i = 0; i < LONG_MS / 10; i++) {
		f->after = group_number(group, "memory.current", NULL);
		if (f->after < f->before + (f->full - f->before) / 20)
			break;
		tw_sleep(10 * MSEC);
	}
	_exit(0);
}

/* Timers are charged to the caller's group: 60 to 90 bytes each. */
TEST_F_TIMEOUT(memcg, charges_timers, 300)
{
	struct finding *f = self->f;
	pid_t pid;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	pid = fork();
	if (!pid)
		memcg_grow(self->group, f);
	ASSERT_EQ(0, reap(pid));
	ASSERT_EQ(0, f->error);
	printf("# %.1f bytes a timer in memory.current\n",
	       (double)(f->full - f->one) / CHARGED);
	fflush(stdout);
	EXPECT_LE(60 * CHARGED, f->full - f->one);
	EXPECT_GE(90 * CHARGED, f->full - f->one);
}

/* Closing the wheel uncharges it (except up to 5% that a cache may hold). */
TEST_F_TIMEOUT(memcg, close_gives_back, 300)
{
	struct finding *f = self->f;
	pid_t pid;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	pid = fork();
	if (!pid)
		memcg_grow(self->group, f);
	ASSERT_EQ(0, reap(pid));
	EXPECT_GT(f->before + (f->full - f->before) / 20, f->after);
}

/* The other memory of wheels is also charged to the caller's group. */
static void memcg_wheels(const char *group, struct finding *f)
{
	struct timerwheel_stats st;
	int i, fd;

	fd = dev_open(O_NONBLOCK);
	if (fd < 0 || arm(fd, 0, 1, HOUR) || write_file(group, "cgroup.procs", "0"))
		_exit(1);
	group_number(group, "memory.current", NULL);
	f->before = group_number(group, "memory.current", NULL);
	for (i = 0; i < 400; i++) {
		fd = dev_open(O_NONBLOCK);
		if (fd < 0 || arm(fd, 0, 1, HOUR) || tw_stats(fd, &st))
			_exit(2);
		f->one += st.memory;
	}
	f->full = group_number(group, "memory.current", NULL);
	_exit(0);
}

TEST_F_TIMEOUT(memcg, charges_wheels, 300)
{
	struct finding *f = self->f;
	pid_t pid;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	pid = fork();
	if (!pid)
		memcg_wheels(self->group, f);
	ASSERT_EQ(0, reap(pid));
	printf("# %lld kB told, %lld in memory.current\n", f->one >> 10,
	       (f->full - f->before) >> 10);
	fflush(stdout);
	EXPECT_LE(f->one / 10 * 9, f->full - f->before);
}

/* In a group with too little memory a long log is refused, and no memory is charged for it. */
static void memcg_monitor(const char *group)
{
	struct timerwheel_monitor monitor = {
		.size = sizeof(monitor), .flags = TIMERWHEEL_MONITOR_NONBLOCK, .events = 16,
	};
	int fd = dev_open(O_NONBLOCK), ret;
	__u64 before;

	if (fd < 0 || arm(fd, 0, 1, HOUR) || mlockall(MCL_CURRENT | MCL_FUTURE) ||
	    write_file(group, "cgroup.procs", "0"))
		_exit(1);
	if (dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &monitor) < 0)
		_exit(2);
	/* Wheels of other tests may not have been freed yet. */
	before = tw_memory_alone(fd);
	monitor.events = TIMERWHEEL_RING_MAX;
	ret = dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &monitor);
	if (before == ~0ULL || ret != -ENOMEM)
		_exit(3);
	_exit(tw_memory_alone(fd) == before ? 0 : 4);
}

TEST_F_TIMEOUT(memcg, monitor_enomem, 300)
{
	pid_t pid;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	ASSERT_EQ(0, write_file(self->group, "memory.max", "1048576"));
	write_file(self->group, "memory.swap.max", "0");
	pid = fork();
	if (!pid)
		memcg_monitor(self->group);
	EXPECT_EQ(0, reap(pid));
}

/* Move to the first or the last usable CPU */
static void pin(bool last)
{
	static cpu_set_t all;
	cpu_set_t one;
	int i, cpu = -1;

	if (!CPU_COUNT(&all) && sched_getaffinity(0, sizeof(all), &all))
		return;
	for (i = 0; i < CPU_SETSIZE && (cpu < 0 || last); i++) {
		if (CPU_ISSET(i, &all))
			cpu = i;
	}
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* In a group without enough memory for MANY timers: fill in @f */
static void memcg_fill(const char *group, struct finding *f)
{
	static struct timerwheel_add add[IN_VAIN];
	static struct timerwheel_entry ent[PAGE];
	static struct timerwheel_event ev;
	struct timerwheel_setup setup = { .ring = TIMERWHEEL_RING_MAX };
	int i, j, n, fd, empty, ret;
	struct timerwheel_info info;
	__u64 cursor = 0;

	pin(false);
	tw_poison(ent, sizeof(ent));
	fd = dev_open(O_NONBLOCK);
	empty = dev_open(O_NONBLOCK);
	if (fd < 0 || empty < 0 || mlockall(MCL_CURRENT | MCL_FUTURE) ||
	    write_file(group, "cgroup.procs", "0"))
		_exit(1);
	for (i = 0; i < MANY && f->nomem < SMALL; i += n) {
		n = MANY - i < SMALL ? MANY - i : SMALL;
		memset(add, 0, sizeof(add));
		for (j = 0; j < n; j++) {
			add[j].key = i + j;
			add[j].value = value_of(i + j);
			add[j].deadline = HOUR;
		}
		ret = dev_add(fd, add, n);
		if (ret != n) {
			f->error = ret;
			break;
		}
		f->tried += n;
		for (j = 0; j < n; j++) {
			f->is_armed[i + j] = add[j].result == TIMERWHEEL_WAS_NONE;
			f->armed += add[j].result == TIMERWHEEL_WAS_NONE;
			f->nomem += add[j].result == -ENOMEM;
		}
	}
	while ((ret = tw_list(fd, &cursor, ent, PAGE)) > 0) {
		f->listed += ret;
		for (j = 0; j < ret; j++) {
			if (ent[j].key >= MANY || ent[j].value != value_of(ent[j].key))
				f->wrong++;
			else
				f->is_listed[ent[j].key]++;
		}
	}
	if (ret)
		_exit(2);
	memset(add, 0, sizeof(add));
	for (i = 0; i < IN_VAIN; i++) {
		add[i].key = MANY + i;
		add[i].deadline = HOUR;
	}
	dev_add(fd, add, IN_VAIN);
	for (i = 0; i < IN_VAIN; i++)
		f->refused += add[i].result == -ENOMEM;
	if (tw_info(fd, &info))
		_exit(4);
	f->ring_charged = -info.user_memory;
	f->ring = dev_setup(empty, &setup);
	if (tw_info(fd, &info))
		_exit(4);
	f->ring_charged += info.user_memory;
	/* key 0 falls due here; then it is read, and key 1 is removed, on the other CPU */
	if (tw_add1(fd, 0, value_of(0), 0, 0) != TIMERWHEEL_WAS_PENDING)
		_exit(3);
	pin(true);
	f->other_remove = tw_remove1(fd, 1);
	f->other_read = dev_poll(fd, LONG_MS) < 0 ? -errno : dev_read(fd, &ev, 1);
	for (i = 2; i < 202; i++)
		f->other_moved += tw_move1(fd, i, i % 20 * MSEC, 0) == TIMERWHEEL_WAS_PENDING;
	for (i = 2; i < 202 && tw_read_all(fd, &ev, 1, LONG_MS) == 1; i++)
		f->other_fired += ev.key >= 2 && ev.key < 202;
	_exit(0);
}

FIXTURE(memcg_full) {
	FIXTURE_DATA(memcg) cg;
	int status;
	long long kills;
	long long limits;	/* number of times the group was at its limit */
};

/* A group with 4 MB, whose only process arms 200,000 timers */
FIXTURE_SETUP(memcg_full)
{
	char text[32];
	pid_t pid;

	memcg_setup(_metadata, &self->cg, NULL);
	if (self->cg.cannot)
		return;
	snprintf(text, sizeof(text), "%d", LIMIT);
	ASSERT_EQ(0, write_file(self->cg.group, "memory.max", text));
	write_file(self->cg.group, "memory.swap.max", "0");
	pid = fork();
	if (!pid)
		memcg_fill(self->cg.group, self->cg.f);
	self->status = reap(pid);
	self->kills = group_number(self->cg.group, "memory.events", "oom_kill ");
	self->limits = group_number(self->cg.group, "memory.events", "max ");
}

FIXTURE_TEARDOWN(memcg_full)
{
	memcg_teardown(_metadata, &self->cg, NULL);
}

/* Timers without memory have the result ENOMEM; all others are armed. */
TEST_F_TIMEOUT(memcg_full, results_enomem, 300)
{
	struct finding *f = self->cg.f;

	if (self->cg.cannot)
		SKIP(return, "%s", self->cg.cannot);
	EXPECT_EQ(0, f->error);
	EXPECT_LT(0, f->nomem);
	EXPECT_EQ(f->tried, f->nomem + f->armed);
}

/*
 * After a failed allocation the module does not try again for each timer of a call, nor with each
 * call on a CPU without a base: the kernel tries to reclaim memory more than ten times before an
 * allocation fails.
 */
TEST_F_TIMEOUT(memcg_full, seldom_asks_in_vain, 300)
{
	if (self->cg.cannot)
		SKIP(return, "%s", self->cg.cannot);
	/* nearly all, because a checker that delays freeing may give memory back meanwhile */
	EXPECT_LT(IN_VAIN * 9 / 10, self->cg.f->refused);
	EXPECT_LT(0, self->limits);
	EXPECT_GT(IN_VAIN, self->limits);
}

/* There is no ring, and no memory is charged for it. */
TEST_F_TIMEOUT(memcg_full, no_ring, 300)
{
	if (self->cg.cannot)
		SKIP(return, "%s", self->cg.cannot);
	EXPECT_EQ(-ENOMEM, self->cg.f->ring);
	EXPECT_EQ(0, self->cg.f->ring_charged);
}

/* The OOM killer does not run. */
TEST_F_TIMEOUT(memcg_full, nobody_killed, 300)
{
	if (self->cg.cannot)
		SKIP(return, "%s", self->cg.cannot);
	EXPECT_EQ(0, self->kills);
	EXPECT_EQ(0, self->status);
}

/* An event is read and a timer removed without memory, on any CPU. */
TEST_F_TIMEOUT(memcg_full, read_and_remove_need_none, 300)
{
	struct finding *f = self->cg.f;

	if (self->cg.cannot)
		SKIP(return, "%s", self->cg.cannot);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, f->other_remove);
	EXPECT_EQ(1, f->other_read);
}

/* A timer is moved without memory, on any CPU, and fires. */
TEST_F_TIMEOUT(memcg_full, move_needs_none, 300)
{
	struct finding *f = self->cg.f;

	if (self->cg.cannot)
		SKIP(return, "%s", self->cg.cannot);
	EXPECT_EQ(200, f->other_moved);
	EXPECT_EQ(200, f->other_fired);
}

/* Afterwards exactly the timers that were armed exist, with the right contents. */
TEST_F_TIMEOUT(memcg_full, armed_timers_stay, 300)
{
	struct finding *f = self->cg.f;

	if (self->cg.cannot)
		SKIP(return, "%s", self->cg.cannot);
	EXPECT_LT(0, f->armed);
	EXPECT_EQ(0, f->wrong);
	EXPECT_EQ(f->armed, f->listed);
	EXPECT_EQ(0, memcmp(f->is_armed, f->is_listed, MANY));
}

TEST_HARNESS_MAIN
