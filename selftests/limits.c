// SPDX-License-Identifier: GPL-2.0
/*
 * limits: programs that take all they can get. Each reaches its own limit and gets the documented
 * error; no other program does; and all resources are released again.
 *
 * Needs root and an idle machine: it changes the module's memory limit, the mode of the device and
 * the limit on open files, and restores them.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include "abuse.h"

#define MAX_USER_MEMORY	"/sys/module/timerwheel/parameters/max_user_memory"
#define REFCNT		"/sys/module/timerwheel/refcnt"
#define FILE_MAX	"/proc/sys/fs/file-max"
#define CGROUPS		"/sys/fs/cgroup"

#define ALICE		20001
#define BOB		20002

/* --- Users ------------------------------------------------------------------------ */

/*
 * Timers of a user: the limit is set to the memory of a wheel with this many timers, used on one
 * CPU. They fill their pages: 63 in the first page, 64 in each of the others.
 */
#define CAP		(64 * 32 - 1)

/* Memory for one more page of timers, with a page of buckets and larger directories */
#define STEP		(2 * 4096 + 2048)

FIXTURE(users) {
	char cap[32];
	mode_t mode;
};

/* The limit in bytes */
static __u64 cap;

FIXTURE_SETUP(users)
{
	struct timerwheel_stats stats;
	char text[32];
	struct stat st;
	int fd;

	ASSERT_EQ(0, geteuid());
	snprintf(self->cap, sizeof(self->cap), "%lld", tw_file_number(MAX_USER_MEMORY, NULL));
	ASSERT_EQ(0, stat(TW_DEV, &st));
	self->mode = st.st_mode & 07777;
	ASSERT_EQ(0, chmod(TW_DEV, 0666));
	ASSERT_EQ(0, tw_pin(0));
	fd = dev_open(O_NONBLOCK);
	ASSERT_EQ(0, arm(fd, 0, CAP, tw_now(CLOCK_MONOTONIC) + HOUR, 0, 0));
	ASSERT_EQ(0, tw_stats(fd, &stats));
	close(fd);
	cap = stats.memory;
	snprintf(text, sizeof(text), "%llu", cap);
	ASSERT_EQ(0, tw_file_write(MAX_USER_MEMORY, text));
}

FIXTURE_TEARDOWN(users)
{
	EXPECT_EQ(0, tw_file_write(MAX_USER_MEMORY, self->cap));
	EXPECT_EQ(0, chmod(TW_DEV, self->mode));
}

/* Become an ordinary user, who also owns the files of this process in /proc. 0 or -errno */
static int become(uid_t uid)
{
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ||
	    prctl(PR_SET_DUMPABLE, 1))
		return -errno;
	return 0;
}

/*
 * The number of timers that can be armed on @fd, beginning with key @first, in single calls, before
 * @error. The timer has this error, or the call if the memory that the wheel needs before its first
 * timer exceeds the limit.
 */
static int arm_until(int fd, __u64 first, int error)
{
	int n, ret;

	for (n = 0; n <= 4 * CAP; n++) {
		ret = tw_add1(fd, first + n, value_of(first + n), HOUR, 0);
		if (ret == error || ret == TW_FAILED(-error))
			return n;
		if (ret)
			break;
	}
	return -1;
}

/* Is only the wheel @fd charged? Other wheels may have been closed a moment ago. */
static bool alone(int fd)
{
	struct timerwheel_stats stats;

	return !tw_stats(fd, &stats) && user_memory_become(fd, stats.memory);
}

/* Repeatedly arm timers up to the limit in three wheels, until @stop */
static void greedy(const atomic_bool *stop, atomic_int *refused)
{
	struct timerwheel_stats stats;
	int i, fd[3];

	for (i = 0; i < 3; i++)
		fd[i] = dev_open(O_NONBLOCK);
	while (!atomic_load(stop)) {
		for (i = 0; i < 3; i++) {
			if (arm_until(fd[i], atomic_load(refused) * 10000, -EDQUOT) >= 0)
				atomic_fetch_add(refused, 1);
			else
				_exit(2);
		}
	}
	if (user_memory(fd[0]) > cap || user_memory(fd[0]) + STEP < cap)
		_exit(3);
	/* the limit applies to all wheels together, and closing one releases its share */
	if (tw_stats(fd[1], &stats))
		_exit(4);
	close(fd[0]);
	close(fd[2]);
	if (!user_memory_become(fd[1], stats.memory))
		_exit(5);
	fd[0] = dev_open(O_NONBLOCK);
	close(fd[1]);
	if (!alone(fd[0]) || arm_until(fd[0], 0, -EDQUOT) != CAP || user_memory(fd[0]) != cap)
		_exit(6);
	_exit(0);
}

/* One user is at the limit and gets EDQUOT; another user is not affected. */
TEST_F_TIMEOUT(users, one_at_the_cap, TIMEOUT)
{
	struct {
		atomic_bool stop;
		atomic_int refused;
	} *s = tw_shared(sizeof(*s));
	pid_t alice, bob;

	alice = fork();
	if (!alice) {
		if (become(ALICE))
			_exit(1);
		greedy(&s->stop, &s->refused);
	}
	while (!atomic_load(&s->refused))
		tw_sleep(MSEC);
	bob = fork();
	if (!bob) {
		struct timerwheel_event ev[100];
		int i, round, fd;

		if (become(BOB))
			_exit(1);
		tw_pin(1);
		for (round = 0; round < 20; round++) {
			fd = dev_open(O_NONBLOCK);
			if (!alone(fd) || arm(fd, 0, 100, tw_now(CLOCK_MONOTONIC), 0, 0) ||
			    arm(fd, 100, CAP - 100, HOUR, 0, 0) || user_memory(fd) != cap)
				_exit(2);
			if (tw_read_all(fd, ev, 100, LONG_MS) != 100)
				_exit(3);
			for (i = 0; i < 100; i++) {
				/* delivered timers leave room in this wheel */
				if (tw_add1(fd, ev[i].key, 0, HOUR, 0) ||
				    tw_remove1(fd, ev[i].key) != TIMERWHEEL_WAS_PENDING)
					_exit(4);
			}
			close(fd);
		}
		_exit(0);
	}
	EXPECT_EQ(0, tw_reap(bob));
	atomic_store(&s->stop, true);
	EXPECT_EQ(0, tw_reap(alice));
}

/* --- User namespaces ------------------------------------------------------------------ */

#define OTHER_IDS	999	/* ids 1 to 999 of a namespace, which belong to nobody outside */

/* Map root in the namespace of @pid to @uid, and OTHER_IDS to ids of no user */
static int map_ids(pid_t pid, uid_t uid)
{
	char path[64], text[64];

	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	snprintf(text, sizeof(text), "0 %u 1\n1 300000 %u\n", uid, OTHER_IDS);
	return tw_file_write(path, text);
}

/*
 * Run @function in a child of user @uid in its own user namespace, where the user is root if
 * @mapped. Returns the result of tw_reap().
 */
static int in_namespace(uid_t uid, bool mapped, int flags, int (*function)(void))
{
	int to[2], back[2];
	pid_t pid;
	char c;

	if (pipe(to) || pipe(back))
		return -errno;
	pid = fork();
	if (!pid) {
		if (become(uid) || unshare(CLONE_NEWUSER | flags))
			_exit(100);
		if (write(back[1], "", 1) != 1 || read(to[0], &c, 1) != 1)
			_exit(101);
		if (mapped && getuid())
			_exit(102);
		_exit(function());
	}
	if (read(back[0], &c, 1) != 1 || (mapped && map_ids(pid, uid)) ||
	    write(to[1], "", 1) != 1)
		kill(pid, SIGKILL);
	close(to[0]);
	close(to[1]);
	close(back[0]);
	close(back[1]);
	return tw_reap(pid);
}

/*
 * Arm timers on @fd up to the whole limit. The same container may still be charged for wheels that
 * other users have closed. Returns the number of timers, or -1.
 */
static int arm_all(int fd)
{
	int n = 0, more, ms;

	for (ms = 0; ms < LONG_MS && n < CAP; ms++) {
		more = arm_until(fd, n, -EDQUOT);
		if (more < 0)
			return -1;
		n += more;
		if (n < CAP)
			usleep(1000);
	}
	return n;
}

/* Arm timers up to the whole limit, then get EDQUOT; they fire */
static int take_all(void)
{
	int fd = dev_open(O_NONBLOCK);
	struct timerwheel_event ev;

	if (fd < 0)
		return 1;
	if (!alone(fd) || arm_all(fd) != CAP || user_memory(fd) != cap)
		return 2;
	if (tw_move1(fd, 7, MSEC, 0) != TIMERWHEEL_WAS_PENDING ||
	    tw_read_all(fd, &ev, 1, LONG_MS) != 1 || ev.key != 7)
		return 3;
	return 0;
}

/* A user who has reached the limit outside the namespace cannot open a wheel inside it. */
static int take_nothing(void)
{
	return dev_open(O_NONBLOCK) == -EDQUOT ? 0 : 1;
}

/* Root of a user namespace can neither set the limit nor create a device node. */
static int no_root(void)
{
	struct stat st;

	if (stat(TW_DEV, &st))
		return 1;
	if (tw_file_write(MAX_USER_MEMORY, "1000000") != -EACCES)
		return 2;
	return mknod("/tmp/tw-node", S_IFCHR | 0600, st.st_rdev) < 0 && errno == EPERM ? 0 : 3;
}

/* An ordinary user opens the device in a user namespace, mapped there or not. */
TEST_F_TIMEOUT(users, in_a_user_namespace, TIMEOUT)
{
	EXPECT_EQ(0, in_namespace(ALICE, true, 0, take_all));
	EXPECT_EQ(0, in_namespace(ALICE, false, 0, take_all));
	EXPECT_EQ(0, in_namespace(ALICE, true, 0, no_root));
}

/* Run @function in a child with another id of the namespace. Returns the result of tw_reap(). */
static int with_id(uid_t uid, int (*function)(void))
{
	pid_t pid = fork();

	if (!pid)
		_exit(setresuid(uid, uid, uid) ? 100 : function());
	return tw_reap(pid);
}

static int take_nothing_with_other_ids(void)
{
	return with_id(1, take_nothing) ?: with_id(OTHER_IDS, take_nothing);
}

/*
 * Wait for the byte that a child writes to @ready. Only the child has the other end, so its end
 * fails the test.
 */
static bool is_ready(int ready[2])
{
	bool is;
	char c;

	close(ready[1]);
	is = read(ready[0], &c, 1) == 1;
	close(ready[0]);
	return is;
}

/* Hold a wheel as large as allowed until killed; write a byte to @ready when it exists. */
static int hold_all(int ready)
{
	if (take_all() || write(ready, "", 1) != 1)
		return 1;
	return pause();
}

/*
 * Two namespaces whose roots are two users have two limits. A namespace of a user at the limit
 * shares that limit, whatever ids it has: ids from /etc/subuid do not turn one user into many.
 */
TEST_F_TIMEOUT(users, namespaces_do_not_add_caps, TIMEOUT)
{
	int ready[2];
	pid_t alice;

	ASSERT_EQ(0, pipe(ready));
	alice = fork();
	if (!alice)
		_exit(become(ALICE) ?: hold_all(ready[1]));
	ASSERT_TRUE(is_ready(ready));
	EXPECT_EQ(0, in_namespace(ALICE, true, 0, take_nothing));
	EXPECT_EQ(0, in_namespace(ALICE, false, 0, take_nothing));
	EXPECT_EQ(0, in_namespace(ALICE, true, 0, take_nothing_with_other_ids));
	EXPECT_EQ(0, in_namespace(BOB, true, 0, take_all));
	kill(alice, SIGKILL);
	ASSERT_EQ(1000 + SIGKILL, tw_reap(alice));
	EXPECT_EQ(0, in_namespace(ALICE, true, 0, take_all));
}

/* Hold a small wheel until killed; write a byte to @ready when it exists. */
static int hold_little(int ready)
{
	int fd = dev_open(O_NONBLOCK);

	if (fd < 0 || tw_add1(fd, 1, 0, HOUR, 0) || write(ready, "", 1) != 1)
		return 1;
	return pause();
}

/* No other memory is charged to this user. */
static int take_alone(void)
{
	int fd = dev_open(O_NONBLOCK);

	return fd >= 0 && alone(fd) ? 0 : 1;
}

/* While id 1 of a namespace calls @hold, id 2 calls @take. */
static int two_ids(int (*hold)(int ready), int (*take)(void))
{
	int ready[2], ret;
	pid_t first;

	if (pipe(ready))
		return -errno;
	first = fork();
	if (!first)
		_exit(setresuid(1, 1, 1) ?: hold(ready[1]));
	ret = is_ready(ready) ? with_id(2, take) : 100;
	kill(first, SIGKILL);
	return tw_reap(first) == 1000 + SIGKILL ? ret : 101;
}

/* The memory of the first id is freed in between. */
static int two_users_one_cap(void)
{
	return two_ids(hold_little, take_alone) ?: two_ids(hold_all, take_nothing) ?:
	       with_id(1, take_all);
}

/*
 * In a namespace that root has made, a container, different ids are different users, but they share
 * one cap. A user outside has another cap.
 */
TEST_F_TIMEOUT(users, in_a_namespace_of_root, TIMEOUT)
{
	int ready[2];
	pid_t other;

	EXPECT_EQ(0, in_namespace(0, true, 0, two_users_one_cap));
	ASSERT_EQ(0, pipe(ready));
	other = fork();
	if (!other)
		_exit(become(ALICE) ?: hold_all(ready[1]));
	ASSERT_TRUE(is_ready(ready));
	EXPECT_EQ(0, in_namespace(0, true, 0, two_users_one_cap));
	kill(other, SIGKILL);
	EXPECT_EQ(1000 + SIGKILL, tw_reap(other));
}

/*
 * A namespace that root has made for only one user counts as that user. Programs that are setuid
 * root let any user make such namespaces.
 */
TEST_F_TIMEOUT(users, namespace_of_root_with_one_id, TIMEOUT)
{
	int ready[2], unshared[2], go[2];
	pid_t alice, child;
	char path[64], text[64], c;

	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(unshared));
	ASSERT_EQ(0, pipe(go));
	alice = fork();
	if (!alice)
		_exit(become(ALICE) ?: hold_all(ready[1]));
	ASSERT_TRUE(is_ready(ready));
	child = fork();
	if (!child) {
		if (unshare(CLONE_NEWUSER) || write(unshared[1], "", 1) != 1 ||
		    read(go[0], &c, 1) != 1 || setresuid(0, 0, 0))
			_exit(100);
		_exit(take_nothing());
	}
	ASSERT_TRUE(is_ready(unshared));
	snprintf(path, sizeof(path), "/proc/%d/uid_map", child);
	snprintf(text, sizeof(text), "0 %u 1\n", ALICE);
	EXPECT_EQ(0, tw_file_write(path, text));
	ASSERT_EQ(1, write(go[1], "", 1));
	EXPECT_EQ(0, tw_reap(child));
	kill(alice, SIGKILL);
	EXPECT_EQ(1000 + SIGKILL, tw_reap(alice));
}

static int apart[2][2];	/* pipes: the first container has taken all; it may end */

static int take_all_until_told(void)
{
	int fd = dev_open(O_NONBLOCK);
	char c;

	if (fd < 0 || arm_all(fd) != CAP)
		return 1;
	return write(apart[0][1], "", 1) == 1 && read(apart[1][0], &c, 1) == 1 ? 0 : 2;
}

/* One container has reached its cap; another container has its own cap. */
TEST_F_TIMEOUT(users, containers_are_apart, TIMEOUT)
{
	pid_t first;

	ASSERT_EQ(0, pipe(apart[0]));
	ASSERT_EQ(0, pipe(apart[1]));
	first = fork();
	if (!first)
		_exit(in_namespace(0, true, 0, take_all_until_told));
	ASSERT_TRUE(is_ready(apart[0]));
	EXPECT_EQ(0, in_namespace(0, true, 0, take_all));
	ASSERT_EQ(1, write(apart[1][1], "", 1));
	EXPECT_EQ(0, tw_reap(first));
}

/* A process that runs as another user is charged to its real user, who started it. */
TEST_F_TIMEOUT(users, real_user, TIMEOUT)
{
	int fd = dev_open(O_NONBLOCK), mine;
	struct timerwheel_stats st[2];
	pid_t pid;

	ASSERT_EQ(0, tw_stats(fd, &st[0]));
	ASSERT_TRUE(alone(fd));
	pid = fork();
	if (!pid) {
		/* root's wheel is not charged to ALICE */
		if (setresuid(ALICE, 0, 0))
			_exit(1);
		mine = dev_open(O_NONBLOCK);
		_exit(mine < 0 ? 2 : alone(mine) ? 0 : 3);
	}
	EXPECT_EQ(0, tw_reap(pid));
	pid = fork();
	if (!pid) {
		if (setresuid(0, ALICE, ALICE))
			_exit(1);
		mine = dev_open(O_NONBLOCK);
		if (mine < 0 || tw_stats(mine, &st[1]))
			_exit(2);
		_exit(user_memory_become(mine, st[0].memory + st[1].memory) ? 0 : 3);
	}
	EXPECT_EQ(0, tw_reap(pid));
	close(fd);
}

/* A user who has closed all wheels starts at zero again, whichever users came in between. */
TEST_F_TIMEOUT(users, come_again, TIMEOUT)
{
	enum { OTHERS = 20 };
	pid_t pid, other[OTHERS];
	int i, fd, ready[2];
	char c;

	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	if (!pid) {
		if (become(ALICE))
			_exit(1);
		fd = dev_open(O_NONBLOCK);
		_exit(fd < 0 ? 2 : tw_add1(fd, 1, 1, HOUR, 0));
	}
	ASSERT_EQ(0, tw_reap(pid));
	/* Wait for a grace period, and some time for the freeing that follows */
	syscall(SYS_membarrier, 1 /* MEMBARRIER_CMD_GLOBAL */, 0, 0);
	tw_sleep(200 * MSEC);
	for (i = 0; i < OTHERS; i++) {
		other[i] = fork();
		if (other[i])
			continue;
		if (become(BOB + i))
			_exit(1);
		fd = dev_open(O_NONBLOCK);
		if (fd < 0 || tw_add1(fd, 1, 1, HOUR, 0) || write(ready[1], "", 1) != 1)
			_exit(2);
		pause();
	}
	close(ready[1]);
	for (i = 0; i < OTHERS; i++)
		ASSERT_EQ(1, read(ready[0], &c, 1));
	pid = fork();
	if (!pid) {
		if (become(ALICE))
			_exit(1);
		fd = dev_open(O_NONBLOCK);
		_exit(fd < 0 ? 2 : alone(fd) ? 0 : 3);
	}
	EXPECT_EQ(0, tw_reap(pid));
	for (i = 0; i < OTHERS; i++) {
		kill(other[i], SIGKILL);
		ASSERT_EQ(1000 + SIGKILL, tw_reap(other[i]));
	}
}

/* In a namespace whose clock is an hour ahead, absolute times use that clock; none fires early. */
static int other_time(void)
{
	struct timerwheel_info info;
	struct timerwheel_event ev;
	__u64 at;
	pid_t pid;
	int fd;

	if (tw_file_write("/proc/self/timens_offsets", "monotonic 3600 0\nboottime 3600 0\n"))
		return 1;
	pid = fork();
	if (pid)
		return tw_reap(pid);
	fd = dev_open(O_NONBLOCK);
	if (fd < 0 || tw_now(CLOCK_MONOTONIC) < HOUR || tw_info(fd, &info) || info.now < HOUR)
		_exit(2);
	if (tw_add1(fd, 2, 2, tw_now(CLOCK_MONOTONIC) - HOUR / 2, TIMERWHEEL_ABS))
		_exit(3);
	if (dev_read(fd, &ev, 1) != 1 || ev.key != 2)
		_exit(4);
	at = tw_now(CLOCK_MONOTONIC) + 100 * MSEC;
	if (tw_add1(fd, 1, 1, at, TIMERWHEEL_ABS))
		_exit(3);
	if (tw_read_all(fd, &ev, 1, LONG_MS) != 1 || ev.key != 1 || ev.deadline != at ||
	    ev.fired < at || tw_now(CLOCK_MONOTONIC) < ev.fired)
		_exit(5);
	_exit(0);
}

TEST_F_TIMEOUT(users, with_a_time_namespace, TIMEOUT)
{
	EXPECT_EQ(0, in_namespace(ALICE, true, CLONE_NEWTIME, other_time));
}

/* --- Descriptors ----------------------------------------------------------------------- */

#define WHEELS	10000
#define EACH	10	/* timers in each wheel */

FIXTURE(files) {
	FIXTURE_DATA(users) u;
	long long refs;		/* reference count of the module */
};

FIXTURE_SETUP(files)
{
	users_setup(_metadata, &self->u, NULL);
	ASSERT_EQ(0, tw_file_write(MAX_USER_MEMORY, self->u.cap));
	self->refs = tw_file_number(REFCNT, NULL);
}

FIXTURE_TEARDOWN(files)
{
	EXPECT_EQ(self->refs, tw_file_number(REFCNT, NULL));
	users_teardown(_metadata, &self->u, NULL);
}

/* Wait until all but @most bytes of @total are available. Returns the amount that is not. */
static long long lost(long long total, long long most)
{
	long long n;
	int i;

	/* memory of files and directories (proc) is freed after a grace period */
	for (i = 0; i < LONG_MS / 10; i++) {
		n = total - tw_memory_available();
		if (n < most)
			break;
		tw_sleep(10 * MSEC);
	}
	return n;
}

/*
 * Ten thousand wheels with timers: all timers fire, all wheels are closed, all memory is freed. The
 * test does this twice because the kernel's caches keep some of the memory that is freed first.
 */
TEST_F_TIMEOUT(files, ten_thousand_wheels, TIMEOUT)
{
	struct rlimit rl = { WHEELS + 100, WHEELS + 100 };
	struct epoll_event ee = { .events = EPOLLIN };
	long long before, used, left = 0;
	int i, k, n, ep, round, *fd = calloc(WHEELS, sizeof(*fd));
	struct timerwheel_add add[EACH];
	struct timerwheel_event ev[EACH];
	unsigned char *got = calloc(WHEELS, 1);
	struct timerwheel_stats st;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &rl));
	ep = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_LE(0, ep);
	for (round = 0; round < 2; round++) {
		before = tw_memory_available();
		memset(got, 0, WHEELS);
		for (i = 0; i < WHEELS; i++) {
			fd[i] = dev_open(O_NONBLOCK);
			ASSERT_LE(0, fd[i]);
			ee.data.u32 = i;
			ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, fd[i], &ee));
			for (k = 0; k < EACH; k++) {
				add[k] = (struct timerwheel_add){
					.key = i + k, .value = value_of(i + k),
					.deadline = k < EACH / 2 ? 20 * MSEC : HOUR,
				};
			}
			ASSERT_EQ(EACH, dev_add(fd[i], add, EACH));
		}
		used = before - tw_memory_available();
		/*
		 * An open takes two references to the module: for the device and for its functions.
		 * A built-in module has no such number.
		 */
		if (self->refs >= 0)
			EXPECT_EQ(self->refs + 2 * WHEELS, tw_file_number(REFCNT, NULL));
		EXPECT_LT(0, used);
		for (n = 0; n < WHEELS * (EACH / 2) && epoll_wait(ep, &ee, 1, LONG_MS) == 1;) {
			int wheel = ee.data.u32, some = dev_read(fd[wheel], ev, EACH);

			ASSERT_LT(0, some);
			for (k = 0; k < some; k++) {
				ASSERT_LE(wheel, ev[k].key);
				ASSERT_GT(wheel + EACH / 2, ev[k].key);
				ASSERT_EQ(value_of(ev[k].key), ev[k].value);
				got[wheel] |= 1 << (ev[k].key - wheel);
			}
			n += some;
		}
		EXPECT_EQ(WHEELS * (EACH / 2), n);
		for (i = 0; i < WHEELS; i++) {
			ASSERT_EQ((1 << EACH / 2) - 1, got[i]);
			ASSERT_EQ(0, tw_stats(fd[i], &st));
			ASSERT_EQ(EACH / 2, st.pending);
			ASSERT_EQ(0, st.due);
			ASSERT_EQ(0, close(fd[i]));
		}
		EXPECT_EQ(self->refs, tw_file_number(REFCNT, NULL));
		left = lost(before, used / (round ? 50 : 10));
		printf("# %lld kB used, %lld kB not freed\n", used / 1024, left / 1024);
		fflush(stdout);
	}
	close(ep);
	EXPECT_GT(used / 50, left);
}

/* No descriptor is left: EMFILE, no leak, and existing wheels keep working. */
TEST_F_TIMEOUT(files, emfile, TIMEOUT)
{
	struct rlimit rl = { 64, 64 };
	int i, k, n, fd[64];
	struct timerwheel_event ev;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &rl));
	for (n = 0; n < 64; n++) {
		fd[n] = dev_open(O_NONBLOCK);
		if (fd[n] < 0)
			break;
		ASSERT_EQ(0, tw_add1(fd[n], n, n, 20 * MSEC, 0));
	}
	ASSERT_LT(10, n);
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(-EMFILE, dev_open(O_NONBLOCK));
	for (k = 0; k < n; k++) {
		ASSERT_EQ(1, tw_read_all(fd[k], &ev, 1, LONG_MS));
		ASSERT_EQ(k, ev.key);
	}
	close(fd[0]);
	fd[0] = dev_open(O_NONBLOCK);
	EXPECT_LE(0, fd[0]);
	for (k = 0; k < n; k++)
		close(fd[k]);
}

/* The system has no file left: ENFILE for an ordinary user, whose wheel keeps working. */
TEST_F_TIMEOUT(files, enfile, TIMEOUT)
{
	long long max = tw_file_number(FILE_MAX, NULL);
	struct rlimit rl = { 4096, 4096 };
	char text[32];
	pid_t pid;
	int ret;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &rl));
	snprintf(text, sizeof(text), "%lld", tw_file_number("/proc/sys/fs/file-nr", NULL) + 300);
	ASSERT_EQ(0, tw_file_write(FILE_MAX, text));
	pid = fork();
	if (!pid) {
		struct timerwheel_event ev;
		int n, fd = dev_open(O_NONBLOCK);

		if (become(ALICE) || tw_add1(fd, 1, 1, 50 * MSEC, 0))
			_exit(1);
		for (n = 0; n < 4000 && (ret = dev_open(O_NONBLOCK)) >= 0; n++)
			;
		if (ret != -ENFILE)
			_exit(2);
		_exit(tw_read_all(fd, &ev, 1, LONG_MS) == 1 && ev.key == 1 ? 0 : 3);
	}
	ret = tw_reap(pid);
	snprintf(text, sizeof(text), "%lld", max);
	EXPECT_EQ(0, tw_file_write(FILE_MAX, text));
	EXPECT_EQ(0, ret);
}

/* --- Memory ------------------------------------------------------------------------------ */

/* Each kind of memory that a wheel takes: @wheels of them take 90 MB or more. */
FIXTURE(charged) {
	int probe;
	cpu_set_t cpus;
};

FIXTURE_VARIANT(charged) {
	int wheels;
	int timers;		/* in each wheel */
	int cpus;		/* number of CPUs that arm them */
	bool mapped;
	int monitors;		/* of each wheel, with 4,096 events */
	struct timerwheel_setup setup;
};

FIXTURE_VARIANT_ADD(charged, small) {
	.wheels = 5000, .timers = 10, .cpus = 1,
};

FIXTURE_VARIANT_ADD(charged, few_slots) {
	.wheels = 5000, .timers = 1, .cpus = 2, .setup = { .slots = 8 },
};

FIXTURE_VARIANT_ADD(charged, some_slots) {
	.wheels = 2000, .timers = 1, .cpus = 2, .setup = { .slots = 512 },
};

FIXTURE_VARIANT_ADD(charged, many_slots) {
	.wheels = 400, .timers = 1, .cpus = 2, .setup = { .slots = 4096, .tick = 1000 },
};

FIXTURE_VARIANT_ADD(charged, many_timers) {
	.wheels = 5, .timers = 300000, .cpus = 1,
};

FIXTURE_VARIANT_ADD(charged, mapped) {
	.wheels = 5, .timers = 300000, .cpus = 1, .mapped = true,
	.setup = { .flags = TIMERWHEEL_SETUP_TABLE },
};

FIXTURE_VARIANT_ADD(charged, rings) {
	.wheels = 1000, .timers = 1, .cpus = 1, .setup = { .ring = 4096 },
};

FIXTURE_VARIANT_ADD(charged, monitors) {
	.wheels = 40, .timers = 1, .cpus = 1, .monitors = 3,
};

FIXTURE_SETUP(charged)
{
	struct rlimit rl = { 20000, 20000 };

	ASSERT_EQ(0, geteuid());
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &rl));
	ASSERT_EQ(0, sched_getaffinity(0, sizeof(self->cpus), &self->cpus));
	self->probe = dev_open(O_NONBLOCK);
	ASSERT_LE(0, self->probe);
}

FIXTURE_TEARDOWN(charged)
{
	sched_setaffinity(0, sizeof(self->cpus), &self->cpus);
	close(self->probe);
}

/* MemFree, and the pages on the per-CPU free lists, which it does not include */
static long long free_memory(void)
{
	long long pages = 0, some;
	FILE *zones = fopen("/proc/zoneinfo", "r");
	char line[256];

	while (zones && fgets(line, sizeof(line), zones))
		if (sscanf(line, " count: %lld", &some) == 1)
			pages += some;
	if (zones)
		fclose(zones);
	return tw_file_number("/proc/meminfo", "MemFree:") * 1024 + pages * getpagesize();
}

/* The same, after it has changed by at most 64 kB for half a second: others may be freeing */
static long long free_memory_settled(void)
{
	long long last = free_memory(), now;
	int i, quiet = 0;

	for (i = 0; i < 300 && quiet < 5; i++) {
		tw_sleep(100 * MSEC);
		now = free_memory();
		quiet = llabs(now - last) < 64 << 10 ? quiet + 1 : 0;
		last = now;
	}
	return last;
}

/* Memory that the wheels of a variant have taken, in bytes */
struct taken {
	long long lost;		/* free memory of the machine */
	long long kept;		/* ... that it lacks after close */
	long long charged;
};

/*
 * Make the wheels of a variant, and close them. The sum of the memory in their STATS is the charge
 * that INFO reports.
 */
static void take(struct __test_metadata *_metadata, const FIXTURE_DATA(charged) * self,
		 const FIXTURE_VARIANT(charged) * variant, struct taken *taken)
{
	int i, k, cpu, monitors = 0, *fd = calloc(variant->wheels, sizeof(*fd));
	int *mon = calloc(variant->wheels * variant->monitors + 1, sizeof(*mon));
	void **map = calloc(variant->wheels, sizeof(*map));
	struct timerwheel_monitor monitor = {
		.size = sizeof(monitor), .events = TIMERWHEEL_RING_MAX,
	};
	long long before = tw_memory_alone(self->probe), reported = 0, had;
	struct timerwheel_setup setup = variant->setup;
	struct timerwheel_stats st;

	memset(fd, 0, variant->wheels * sizeof(*fd));
	memset(mon, 0, variant->wheels * variant->monitors * sizeof(*mon));
	memset(map, 0, variant->wheels * sizeof(*map));
	tw_file_write("/proc/sys/vm/drop_caches", "3");
	had = free_memory_settled();
	for (i = 0; i < variant->wheels; i++) {
		fd[i] = dev_open(O_NONBLOCK);
		ASSERT_LE(0, fd[i]);
		setup = variant->setup;
		ASSERT_EQ(0, dev_setup(fd[i], &setup));
		for (k = 0; k < variant->monitors; k++) {
			mon[monitors] = dev_ioctl(fd[i], TIMERWHEEL_IOC_MONITOR, &monitor);
			ASSERT_LE(0, mon[monitors++]);
		}
		if (!variant->mapped)
			continue;
		map[i] = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd[i],
			      TIMERWHEEL_MMAP_DEADLINES);
		ASSERT_NE(MAP_FAILED, map[i]);
	}
	for (cpu = 0; cpu < variant->cpus; cpu++) {
		ASSERT_EQ(0, tw_pin(cpu));
		for (i = 0; i < variant->wheels; i++)
			ASSERT_EQ(0, arm(fd[i], cpu * variant->timers, variant->timers,
					 tw_now(CLOCK_MONOTONIC) + HOUR, 0, 0));
	}
	taken->lost = had - free_memory();
	taken->charged = user_memory(self->probe) - before;
	for (i = 0; i < variant->wheels; i++) {
		ASSERT_EQ(0, tw_stats(fd[i], &st));
		reported += st.memory;
	}
	EXPECT_EQ(taken->charged, reported);
	while (monitors)
		close(mon[--monitors]);
	for (i = 0; i < variant->wheels; i++) {
		if (variant->mapped)
			munmap(map[i], getpagesize());
		close(fd[i]);
	}
	ASSERT_EQ(before, tw_memory_alone(self->probe));
	taken->kept = had - free_memory();
	printf("# %lld kB less free, %lld reported, %lld charged; %lld kB not freed\n",
	       taken->lost / 1024, reported / 1024, taken->charged / 1024, taken->kept / 1024);
	fflush(stdout);
	free(fd);
	free(mon);
	free(map);
}

/* The machine's free memory decreases by the charged amount, to within 2%. */
TEST_F_TIMEOUT(charged, is_exact, TIMEOUT)
{
	/* Debug kernels (with lockdep) make each allocation larger than requested. */
	bool larger = !access("/proc/lockdep", F_OK);
	int tries = 5;
	struct taken t;
	bool exact;

	do {
		take(_metadata, self, variant, &t);
		ASSERT_LT(90 << 20, t.lost);
		if (larger)
			return;
		exact = t.lost * 98 / 100 <= t.charged && t.lost * 102 / 100 >= t.charged;
		/* Repeat only if other processes have used memory, which shows after close. */
	} while (!exact && llabs(t.kept) > t.lost / 100 && --tries);
	EXPECT_LE(t.lost * 98 / 100, t.charged);
	EXPECT_GE(t.lost * 102 / 100, t.charged);
	/* All of it is free again, except what the kernel's caches keep. */
	EXPECT_GT(t.lost / 10, t.kept);
}

#define MEMORY		(32 << 20)
#define THREADS		3	/* in the group with too little memory, one wheel each */
#define MANY		1000000	/* timers that each of them tries to arm */
#define ENOUGH		500	/* failures in a row: each made the kernel try to reclaim memory */

struct eater {
	pthread_t id;
	const atomic_bool *go;
	struct timerwheel_add *add;
	int fd;
	int armed;
	int refused;
	int wrong;
	unsigned char *is_armed;
	unsigned char *is_listed;
};

FIXTURE(group) {
	char dir[128];
	long long kills;
};

static int group_write(const char *dir, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return tw_file_write(path, text);
}

static long long group_number(const char *dir, const char *name, const char *word)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return tw_file_number(path, word);
}

FIXTURE_SETUP(group)
{
	char text[32];

	ASSERT_EQ(0, geteuid());
	if (access(CGROUPS "/cgroup.subtree_control", W_OK))
		SKIP(return, "there is no cgroup2 in " CGROUPS);
	group_write(CGROUPS, "cgroup.subtree_control", "+memory");
	self->kills = tw_file_number("/proc/vmstat", "oom_kill ");
	snprintf(self->dir, sizeof(self->dir), CGROUPS "/timerwheel-limits-%d", getpid());
	ASSERT_EQ(0, mkdir(self->dir, 0755));
	snprintf(text, sizeof(text), "%d", MEMORY);
	ASSERT_EQ(0, group_write(self->dir, "memory.max", text));
	group_write(self->dir, "memory.swap.max", "0");
}

FIXTURE_TEARDOWN(group)
{
	rmdir(self->dir);
}

/* Messages between the process in the group and the process outside; they need no memory */
struct talk {
	atomic_bool start;
	atomic_bool full;
	atomic_bool go_on;
};

static void wait_for(const atomic_bool *flag)
{
	while (!atomic_load(flag))
		tw_sleep(MSEC);
}

static void *eater(void *arg)
{
	struct eater *e = arg;
	struct timerwheel_add *add = e->add;
	int i, k, in_a_row = 0;

	wait_for(e->go);

	for (i = 0; i < MANY && in_a_row < ENOUGH; i += 250) {
		for (k = 0; k < 250; k++) {
			add[k] = (struct timerwheel_add){
				.key = i + k, .value = value_of(i + k), .deadline = HOUR,
			};
		}
		if (dev_add(e->fd, add, 250) != 250)
			e->wrong++;
		for (k = 0; k < 250; k++) {
			if (add[k].result == TIMERWHEEL_WAS_NONE) {
				e->is_armed[i + k] = 1;
				e->armed++;
				in_a_row = 0;
			} else if (add[k].result == -ENOMEM) {
				e->refused++;
				in_a_row++;
			} else {
				e->wrong++;
			}
		}
	}
	return NULL;
}

/* In the group: each thread fills a wheel until memory runs out. Exits with 0 or an error code. */
static void eat(const char *dir, struct talk *talk)
{
	struct eater e[THREADS] = { 0 };
	int i, armed = 0;

	for (i = 0; i < THREADS; i++) {
		e[i].go = &talk->start;
		e[i].add = calloc(250, sizeof(*e[i].add));
		e[i].fd = dev_open(O_NONBLOCK);
		e[i].is_armed = calloc(MANY, 1);
		e[i].is_listed = calloc(MANY, 1);
		if (pthread_create(&e[i].id, NULL, eater, &e[i]))
			_exit(10);
	}
	/* Join with all own memory allocated, so that the limit applies only to timers. */
	if (mlockall(MCL_CURRENT) || group_write(dir, "cgroup.procs", "0"))
		_exit(11);
	atomic_store(&talk->start, true);
	for (i = 0; i < THREADS; i++)
		pthread_join(e[i].id, NULL);
	/* the group has no memory left; wait until this process was moved out of it */
	atomic_store(&talk->full, true);
	wait_for(&talk->go_on);
	for (i = 0; i < THREADS; i++) {
		armed += e[i].armed;
		if (e[i].wrong)
			_exit(13);
		if (!e[i].refused)
			_exit(14);
	}
	for (i = 0; i < THREADS; i++) {
		if (list_all(e[i].fd, e[i].is_listed, NULL, MANY) != e[i].armed ||
		    memcmp(e[i].is_listed, e[i].is_armed, MANY))
			_exit(16);
	}
	_exit(armed > 100000 ? 0 : 17);
}

/*
 * A group with little memory tries to arm millions of timers: only this group gets ENOMEM, no
 * process is killed, its wheels hold exactly the timers that succeeded, and at the end all memory
 * is freed and the group can be removed.
 */
TEST_F_TIMEOUT(group, eats_all_it_has, TIMEOUT)
{
	long long used = 0;
	struct talk *talk = tw_shared(sizeof(*talk));
	int i, fd, status;
	char text[32];
	pid_t pid;

	atomic_store(&talk->start, false);
	pid = fork();
	if (!pid)
		eat(self->dir, talk);
	while (!atomic_load(&talk->full)) {
		ASSERT_EQ(0, waitpid(pid, &status, WNOHANG));
		tw_sleep(MSEC);
	}
	printf("# %lld kB charged to the group, %lld refusals\n",
	       group_number(self->dir, "memory.current", NULL) / 1024,
	       group_number(self->dir, "memory.events", "max "));
	fflush(stdout);
	/* this process has memory while the group has none */
	fd = dev_open(O_NONBLOCK);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, arm(fd, 0, 100000, HOUR, 0, 0));
	close(fd);
	/* move it out of the group, which lacks the memory for LIST and for leaving it itself */
	snprintf(text, sizeof(text), "%d", pid);
	EXPECT_EQ(0, group_write(CGROUPS, "cgroup.procs", text));
	atomic_store(&talk->go_on, true);
	EXPECT_EQ(0, tw_reap(pid));
	EXPECT_EQ(0, group_number(self->dir, "memory.events", "oom_kill "));
	EXPECT_LT(0, group_number(self->dir, "memory.events", "max "));
	EXPECT_EQ(self->kills, tw_file_number("/proc/vmstat", "oom_kill "));

	for (i = 0; i < LONG_MS / 10; i++) {
		used = group_number(self->dir, "memory.current", NULL);
		if (used < MEMORY / 20)
			break;
		tw_sleep(10 * MSEC);
	}
	EXPECT_GT(MEMORY / 20, used);
	EXPECT_EQ(0, rmdir(self->dir));
}

TEST_HARNESS_MAIN
