// SPDX-License-Identifier: GPL-2.0
/*
 * uring: calls on timers as io_uring commands, in each way that io_uring runs them: by the
 * submitting task, by a worker, by an SQPOLL thread. Tests arguments and errors; links; signals;
 * hostile submitters; time namespaces; multishot reads; processes that may not use io_uring.
 *
 * ops, handle and resident test the effect of the calls on timers. readers tests single reads and
 * polls through io_uring.
 *
 * TW_SEED: see tw_test.h.
 */
#include "tw_test.h"
#include <dirent.h>
#include <liburing.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define TICK		USEC
#define MOST		TIMERWHEEL_BATCH_MAX
#define URING_FLAGS	TIMERWHEEL_URING_FLAGS
#define NO_COMPLETION	INT_MIN

/* Names that this machine's headers may not have */
#define OP_READ_MULTISHOT	49
#define CMD_MULTISHOT		2U	/* IORING_URING_CMD_MULTISHOT */

/* Time in ms to wait for a completion that must not come */
#define QUIET_MS	100

#define MOVE		TIMERWHEEL_IOC_MOVE_HANDLE

static struct timerwheel_uring array_of(const void *elems, __u32 count, __u32 size)
{
	return (struct timerwheel_uring){
		.elems = (uintptr_t)elems, .count = count, .elem_size = size,
	};
}

#define ARRAY(elems, count)	array_of(elems, count, sizeof((elems)[0]))

/*
 * Does this kernel have the commands that the module needs? Linux 6.1 added their flags, and this
 * option of rings.
 */
static bool kernel_has_commands(void)
{
	struct io_uring ring;

	if (io_uring_queue_init(8, &ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN))
		return false;
	io_uring_queue_exit(&ring);
	return true;
}

/* The harness runs a test even if its setup returns after SKIP(). 255 reports the skip. */
#define SKIP_SETUP(reason)	SKIP(_exit(255), reason)

#define NO_COMMANDS	"this kernel has no io_uring commands with flags, which Linux 6.1 added"

/* --- A ring -------------------------------------------------------------------------------- */

static struct io_uring_sqe *prep_fd(struct io_uring *ring, int fd, __u8 flags, __u32 op,
				    struct timerwheel_uring arg)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		abort();
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->flags = flags;
	sqe->fd = fd;
	sqe->cmd_op = op;
	memcpy(sqe->cmd, &arg, sizeof(arg));
	return sqe;
}

/* Submit the prepared entries. Returns the number of submissions, or -errno. */
static int submit(struct io_uring *ring)
{
	int prepared = ring->sq.sqe_tail - ring->sq.sqe_head, ret;

	do
		ret = io_uring_submit(ring);
	while (ret == -EINTR);
	/* With an SQPOLL thread it also counts entries that the thread has not seen yet. */
	return ret > 0 && ring->flags & IORING_SETUP_SQPOLL ? prepared : ret;
}

/* The result of the next completion, or NO_COMPLETION after @ms */
static int result(struct io_uring *ring, int ms, __u64 *tag, __u32 *flags)
{
	struct __kernel_timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * MSEC };
	struct io_uring_cqe *cqe;
	int ret;

	do
		ret = io_uring_wait_cqe_timeout(ring, &cqe, &ts);
	while (ret == -EINTR);
	if (ret)
		return NO_COMPLETION;
	ret = cqe->res;
	if (tag)
		*tag = cqe->user_data;
	if (flags)
		*flags = cqe->flags;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

static int run_fd(struct io_uring *ring, int fd, __u8 flags, __u32 op, struct timerwheel_uring arg)
{
	prep_fd(ring, fd, flags, op, arg);
	if (submit(ring) != 1)
		return NO_COMPLETION;
	return result(ring, LONG_MS, NULL, NULL);
}

/* Worker threads of this process */
static int workers(void)
{
	DIR *dir = opendir("/proc/self/task");
	char path[300], name[32] = "";
	struct dirent *de;
	int n = 0, fd;

	while (dir && (de = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", de->d_name);
		fd = open(path, O_RDONLY);
		if (fd >= 0 && read(fd, name, sizeof(name) - 1) > 0)
			n += !strncmp(name, "iou-wrk-", 8);
		close(fd);
	}
	closedir(dir);
	return n;
}

static struct timerwheel_stats stats_of(int fd)
{
	struct timerwheel_stats stats;

	if (tw_stats(fd, &stats))
		abort();
	return stats;
}

static __u64 deadline_of(int fd, __u64 key)
{
	struct timerwheel_entry ent;

	return tw_get1(fd, key, &ent) == TIMERWHEEL_WAS_PENDING ? ent.deadline : ~0ULL;
}

/* --- Tests in each way ---------------------------------------------------------------------- */

FIXTURE(way) {
	struct io_uring ring;
	int fd;				/* a MANUAL wheel */
	int file;			/* the wheel's file in submissions */
	__u8 flags;			/* of submissions */
	struct timerwheel_add add;	/* key 7, due in an hour */
};

FIXTURE_VARIANT(way) {
	__u32 setup;
	__u8 flags;
};

FIXTURE_VARIANT_ADD(way, plain) { 0 };
FIXTURE_VARIANT_ADD(way, worker) { .flags = IOSQE_ASYNC };
FIXTURE_VARIANT_ADD(way, fixed_file) { .flags = IOSQE_FIXED_FILE };
FIXTURE_VARIANT_ADD(way, sqpoll) { .setup = IORING_SETUP_SQPOLL };

FIXTURE_VARIANT_ADD(way, sqpoll_worker) {
	.setup = IORING_SETUP_SQPOLL, .flags = IOSQE_ASYNC | IOSQE_FIXED_FILE,
};

FIXTURE_VARIANT_ADD(way, task_run) {
	.setup = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
};

FIXTURE_VARIANT_ADD(way, task_run_worker) {
	.setup = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, .flags = IOSQE_ASYNC,
};

FIXTURE_VARIANT_ADD(way, large) { .setup = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 };

FIXTURE_SETUP(way)
{
	struct io_uring_params params = { .flags = variant->setup, .sq_thread_idle = 1000 };

	if (!kernel_has_commands())
		SKIP_SETUP(NO_COMMANDS);
	self->fd = tw_open_manual(TICK);
	ASSERT_LE(0, self->fd);
	self->add = (struct timerwheel_add){ .key = 7, .value = 70, .deadline = HOUR };
	ASSERT_EQ(0, tw_add_elem(self->fd, &self->add));
	ASSERT_EQ(0, io_uring_queue_init_params(64, &self->ring, &params));
	self->flags = variant->flags;
	self->file = self->fd;
	if (self->flags & IOSQE_FIXED_FILE) {
		ASSERT_EQ(0, io_uring_register_files(&self->ring, &self->fd, 1));
		self->file = 0;
	}
}

FIXTURE_TEARDOWN(way)
{
	struct timerwheel_stats stats = stats_of(self->fd);

	EXPECT_TRUE(tw_balanced(&stats));
	io_uring_queue_exit(&self->ring);
	close(self->fd);
}

/* Prepare a command, or run one. */
#define PREP(op, arg)	prep_fd(&self->ring, self->file, self->flags, op, arg)
#define RUN(op, arg)	run_fd(&self->ring, self->file, self->flags, op, arg)

static struct timerwheel_move_handle move_to(const struct timerwheel_add *add, __u64 deadline)
{
	return (struct timerwheel_move_handle){
		.deadline = deadline, .index = add->index, .generation = add->generation,
	};
}

static struct timerwheel_remove_handle remove_of(const struct timerwheel_add *add)
{
	return (struct timerwheel_remove_handle){
		.index = add->index, .generation = add->generation,
	};
}

/* Each call on an array has the results of the ioctl. */
TEST_F(way, arrays)
{
	enum { N = 300 };
	static struct timerwheel_add add[N];
	static struct timerwheel_move move[N];
	static struct timerwheel_entry ent[N], must[N];
	static struct timerwheel_remove rem[N];
	int i;

	for (i = 0; i < N; i++) {
		add[i] = (struct timerwheel_add){ .key = 100 + i, .value = i, .deadline = HOUR };
		move[i] = (struct timerwheel_move){ .key = 100 + i, .deadline = MINUTE + i };
		rem[i] = (struct timerwheel_remove){ .key = 100 + i };
		ent[i] = (struct timerwheel_entry){ .key = 100 + i };
		must[i] = ent[i];
	}
	ASSERT_EQ(N, RUN(TIMERWHEEL_IOC_ADD, ARRAY(add, N)));
	for (i = 0; i < N; i++) {
		EXPECT_EQ(TIMERWHEEL_WAS_NONE, add[i].result);
		EXPECT_NE(0, add[i].index);
		EXPECT_EQ(HOUR, deadline_of(self->fd, 100 + i));
	}
	ASSERT_EQ(N, RUN(TIMERWHEEL_IOC_MOVE, ARRAY(move, N)));
	ASSERT_EQ(N, RUN(TIMERWHEEL_IOC_GET, ARRAY(ent, N)));
	ASSERT_EQ(N, dev_get(self->fd, must, N));
	for (i = 0; i < N; i++) {
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, move[i].result);
		EXPECT_EQ(MINUTE + i, ent[i].deadline);
	}
	EXPECT_EQ(0, memcmp(ent, must, sizeof(ent)));
	rem[5].key = 99;
	ASSERT_EQ(N, RUN(TIMERWHEEL_IOC_REMOVE, ARRAY(rem, N)));
	for (i = 0; i < N; i++) {
		EXPECT_EQ(i == 5 ? -ENOENT : TIMERWHEEL_WAS_PENDING, rem[i].result);
		EXPECT_EQ(i == 5 ? 0 : i, rem[i].value);
	}
	EXPECT_EQ(2, stats_of(self->fd).pending);
}

/* One element takes another path than several elements */
TEST_F(way, single)
{
	struct timerwheel_add add = { .key = 1, .value = 2, .deadline = HOUR };
	struct timerwheel_entry ent = { .key = 1 };
	struct timerwheel_remove rem = { .key = 1 };

	ASSERT_EQ(1, RUN(TIMERWHEEL_IOC_ADD, ARRAY(&add, 1)));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, add.result);
	ASSERT_EQ(1, RUN(TIMERWHEEL_IOC_GET, ARRAY(&ent, 1)));
	EXPECT_EQ(add.index, ent.index);
	ASSERT_EQ(1, RUN(TIMERWHEEL_IOC_REMOVE, ARRAY(&rem, 1)));
	EXPECT_EQ(2, rem.value);
	ASSERT_EQ(1, RUN(TIMERWHEEL_IOC_REMOVE, ARRAY(&rem, 1)));
	EXPECT_EQ(-ENOENT, rem.result);
	EXPECT_EQ(0, RUN(TIMERWHEEL_IOC_REMOVE, ARRAY(&rem, 0)));
}

/* Handles in an array; the flags of that call are in the command's number. */
TEST_F(way, handles)
{
	struct timerwheel_move_handle move[3];
	struct timerwheel_remove_handle rem = remove_of(&self->add);

	ASSERT_EQ(0, tw_advance(self->fd, 0, SEC));
	move[0] = move_to(&self->add, 10);
	move[1] = move_to(&self->add, 20);
	move[1].generation++;
	move[2] = move_to(&self->add, 30);
	ASSERT_EQ(3, RUN(MOVE, ARRAY(move, 3)));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, move[0].result);
	EXPECT_EQ(-ENOENT, move[1].result);
	EXPECT_EQ(SEC + 30, deadline_of(self->fd, 7));
	move[0] = move_to(&self->add, MINUTE);
	ASSERT_EQ(1, RUN(MOVE | URING_FLAGS(TIMERWHEEL_ABS),
			 ARRAY(move, 1)));
	EXPECT_EQ(MINUTE, deadline_of(self->fd, 7));
	ASSERT_EQ(1, RUN(TIMERWHEEL_IOC_REMOVE_HANDLE, ARRAY(&rem, 1)));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, rem.result);
	EXPECT_EQ(70, rem.value);
}

/* A resident timer is armed by MOVE, with EXCL only if it is not armed. */
TEST_F(way, arm)
{
	struct timerwheel_setup setup = {
		.clock = TIMERWHEEL_CLOCK_MANUAL, .tick = TICK, .flags = TIMERWHEEL_SETUP_RESIDENT,
	};
	struct timerwheel_move_handle move = move_to(&self->add, SEC);
	__u32 arm = MOVE | URING_FLAGS(TIMERWHEEL_EXCL);
	struct timerwheel_add add = { .key = 1, .deadline = SEC };
	int fd = dev_open(O_NONBLOCK), ret;
	struct timerwheel_event ev;

	/* On an ordinary timer the flag is an error. */
	EXPECT_EQ(1, RUN(arm, ARRAY(&move, 1)));
	EXPECT_EQ(-EINVAL, move.result);
	ret = dev_setup(fd, &setup);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "no resident timers on this machine");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, tw_add_elem(fd, &add));
	self->flags &= ~IOSQE_FIXED_FILE;
	self->file = fd;
	move = move_to(&add, MINUTE);
	EXPECT_EQ(1, RUN(arm, ARRAY(&move, 1)));
	EXPECT_EQ(-EEXIST, move.result);
	ASSERT_EQ(1, tw_advance(fd, 0, 2 * SEC));
	ASSERT_EQ(1, dev_read(fd, &ev, 1));
	move = move_to(&add, MINUTE);
	EXPECT_EQ(1, RUN(arm, ARRAY(&move, 1)));
	EXPECT_EQ(TIMERWHEEL_WAS_PARKED, move.result);
	/* rounded up as in the deadline table */
	EXPECT_EQ((2 * SEC + MINUTE) >> 10, (deadline_of(fd, 1) - 1) >> 10);
	close(fd);
}

/* Numbers that are not a command: other calls, numbers, types and directions. */
TEST_F(way, unknown)
{
	static struct timerwheel_entry ent[4];
	struct timerwheel_uring arg = ARRAY(ent, 1);
	__u32 nr, dir;

	for (nr = 0; nr < 0x20; nr++) {
		__u32 op = _IO(TIMERWHEEL_IOC_TYPE, nr);

		for (dir = 1; dir < 4; dir++)
			EXPECT_EQ(-EOPNOTSUPP, RUN(op | dir << 30, arg)) TH_LOG("%x", op);
		EXPECT_EQ(-EOPNOTSUPP, RUN(op + 0x100, arg)) TH_LOG("%x", op);
		if (nr < 2 || nr == 5 || (nr > 6 && nr < 0xc) || nr > 0xd)
			EXPECT_EQ(-EOPNOTSUPP, RUN(op, arg)) TH_LOG("%x", op);
	}
	EXPECT_EQ(-EOPNOTSUPP, RUN(0, arg));
	EXPECT_EQ(-EOPNOTSUPP, RUN(~0U, arg));
	EXPECT_EQ(1, stats_of(self->fd).pending);
}

/* Flags that a call does not have */
TEST_F(way, unknown_flags)
{
	static const __u32 none[] = {
		TIMERWHEEL_IOC_ADD, TIMERWHEEL_IOC_MOVE, TIMERWHEEL_IOC_REMOVE, TIMERWHEEL_IOC_GET,
		TIMERWHEEL_IOC_REMOVE_HANDLE,
	};
	static const size_t size[] = { 64, 32, 40, 64, 16 };
	static __u64 elem[8] = { 7 };
	__u32 known = TIMERWHEEL_ABS | TIMERWHEEL_EXCL, bit;
	size_t i;

	for (bit = 1; bit < 1U << 14; bit *= 2) {
		for (i = 0; i < ARRAY_SIZE(none); i++)
			EXPECT_EQ(-EINVAL, RUN(none[i] | URING_FLAGS(bit),
					       array_of(elem, 1, size[i])));
		if (bit & known)
			continue;
		EXPECT_EQ(-EINVAL, RUN(MOVE | URING_FLAGS(bit), array_of(elem, 1, 16)));
	}
	EXPECT_EQ(HOUR, deadline_of(self->fd, 7));
}

/* Sizes and counts */
TEST_F(way, sizes)
{
	static struct timerwheel_add many[2];

	EXPECT_EQ(-EINVAL, RUN(TIMERWHEEL_IOC_ADD, array_of(many, 1, 0)));
	EXPECT_EQ(-EINVAL, RUN(TIMERWHEEL_IOC_ADD, array_of(many, 1, 63)));
	EXPECT_EQ(-E2BIG, RUN(TIMERWHEEL_IOC_ADD, array_of(many, 1, 65)));
	EXPECT_EQ(-E2BIG, RUN(TIMERWHEEL_IOC_ADD, array_of(many, 1, 72)));
	EXPECT_EQ(-E2BIG, RUN(TIMERWHEEL_IOC_ADD, array_of(many, 1, ~0U)));
	EXPECT_EQ(-E2BIG, RUN(TIMERWHEEL_IOC_ADD, ARRAY(many, MOST + 1)));
	EXPECT_EQ(-E2BIG, RUN(TIMERWHEEL_IOC_ADD, ARRAY(many, ~0U)));
	EXPECT_EQ(1, stats_of(self->fd).pending);
}

/* Memory that is missing, ends in the middle, or cannot be written */
TEST_F(way, faults)
{
	enum { N = 100, THERE = 33 };
	struct timerwheel_add *add = tw_fence(THERE * sizeof(*add)), *only;
	int i;

	EXPECT_EQ(-EFAULT, RUN(TIMERWHEEL_IOC_ADD, array_of(NULL, 1, sizeof(*add))));
	EXPECT_EQ(-EFAULT, RUN(TIMERWHEEL_IOC_ADD,
			       array_of((void *)~0xfffUL, 1, sizeof(*add))));
	EXPECT_EQ(-EFAULT, RUN(TIMERWHEEL_IOC_ADD, ARRAY(add + THERE, 1)));
	for (i = 0; i < THERE; i++)
		add[i] = (struct timerwheel_add){ .key = 100 + i, .deadline = HOUR };
	EXPECT_EQ(THERE, RUN(TIMERWHEEL_IOC_ADD, ARRAY(add, N)));
	for (i = 0; i < THERE; i++)
		EXPECT_EQ(TIMERWHEEL_WAS_NONE, add[i].result);
	only = mmap(NULL, getpagesize(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT_EQ(-EFAULT, RUN(TIMERWHEEL_IOC_ADD, ARRAY(only, 1)));
	EXPECT_EQ(THERE + 1, stats_of(self->fd).pending);
}

/* Registered buffers and multishot commands are refused: by the module, or by older kernels. */
TEST_F(way, command_flags)
{
	static char memory[4096];
	struct iovec iov = { memory, sizeof(memory) };
	struct timerwheel_move_handle move = move_to(&self->add, MINUTE);
	struct io_uring_sqe *sqe;

	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &iov, 1));
	sqe = PREP(MOVE, ARRAY(&move, 1));
	sqe->rw_flags = IORING_URING_CMD_FIXED;
	ASSERT_EQ(1, submit(&self->ring));
	EXPECT_EQ(-EINVAL, result(&self->ring, LONG_MS, NULL, NULL));

	io_uring_prep_provide_buffers(io_uring_get_sqe(&self->ring), memory, 16, 4, 1, 0);
	ASSERT_EQ(1, submit(&self->ring));
	ASSERT_LE(0, result(&self->ring, LONG_MS, NULL, NULL));
	sqe = PREP(MOVE, ARRAY(&move, 1));
	sqe->rw_flags = CMD_MULTISHOT;
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = 1;
	ASSERT_LE(0, submit(&self->ring));
	EXPECT_GT(0, result(&self->ring, LONG_MS, NULL, NULL));
	EXPECT_EQ(HOUR, deadline_of(self->fd, 7));
}

/* Neither a positive result nor an element that failed breaks a chain of links. An error does. */
TEST_F(way, links)
{
	struct timerwheel_move_handle move[3];
	struct timerwheel_remove rem = { .key = 99 };
	int i;

	for (i = 0; i < 3; i++)
		move[i] = move_to(&self->add, 10 * (i + 1));
	PREP(MOVE, ARRAY(&move[0], 1))->flags |= IOSQE_IO_LINK;
	PREP(TIMERWHEEL_IOC_REMOVE, ARRAY(&rem, 1))->flags |= IOSQE_IO_LINK;
	PREP(MOVE, ARRAY(&move[1], 1));
	ASSERT_EQ(3, submit(&self->ring));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(1, result(&self->ring, LONG_MS, NULL, NULL));
	EXPECT_EQ(-ENOENT, rem.result);
	EXPECT_EQ(20, deadline_of(self->fd, 7));

	PREP(MOVE, array_of(NULL, 1, sizeof(move[0])))->flags |= IOSQE_IO_LINK;
	PREP(MOVE, ARRAY(&move[2], 1));
	ASSERT_EQ(2, submit(&self->ring));
	EXPECT_EQ(-EFAULT, result(&self->ring, LONG_MS, NULL, NULL));
	EXPECT_EQ(-ECANCELED, result(&self->ring, LONG_MS, NULL, NULL));
	EXPECT_EQ(20, deadline_of(self->fd, 7));
}

/* Each linked command sees the effect of the one before it, though workers run ADDs. */
TEST_F(way, links_in_order)
{
	enum { N = 128 };
	static struct timerwheel_add add[N];
	static struct timerwheel_move move[N];
	static struct timerwheel_remove rem[N];
	int round, i;

	for (round = 0; round < 20; round++) {
		for (i = 0; i < N; i++) {
			__u64 key = 1000 * round + i + 100;

			add[i] = (struct timerwheel_add){ .key = key, .deadline = HOUR };
			move[i] = (struct timerwheel_move){ .key = key, .deadline = MINUTE };
			rem[i] = (struct timerwheel_remove){ .key = key };
		}
		PREP(TIMERWHEEL_IOC_ADD, ARRAY(add, N))->flags |= IOSQE_IO_LINK;
		PREP(TIMERWHEEL_IOC_MOVE, ARRAY(move, N))->flags |= IOSQE_IO_LINK;
		PREP(TIMERWHEEL_IOC_REMOVE, ARRAY(rem, round % 2 ? N : 0));
		ASSERT_EQ(3, submit(&self->ring));
		EXPECT_EQ(N, result(&self->ring, LONG_MS, NULL, NULL));
		EXPECT_EQ(N, result(&self->ring, LONG_MS, NULL, NULL));
		EXPECT_EQ(round % 2 ? N : 0, result(&self->ring, LONG_MS, NULL, NULL));
		for (i = 0; i < N; i++)
			ASSERT_EQ(TIMERWHEEL_WAS_PENDING, move[i].result);
	}
	EXPECT_EQ(10 * N + 1, stats_of(self->fd).pending);
}

/* Receive, then refresh: the idle timeout of a connection in the submission of its receive */
TEST_F(way, receive_then_refresh)
{
	__u8 flags = self->flags & IOSQE_ASYNC;
	struct timerwheel_move_handle move;
	struct io_uring_sqe *sqe;
	int pair[2], round;
	char c;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	for (round = 1; round < 5; round++) {
		sqe = io_uring_get_sqe(&self->ring);
		io_uring_prep_recv(sqe, pair[0], &c, 1, 0);
		sqe->flags = flags | IOSQE_IO_LINK;
		move = move_to(&self->add, MINUTE);
		PREP(MOVE, ARRAY(&move, 1));
		ASSERT_EQ(2, submit(&self->ring));
		/* The timer is not refreshed before data came. */
		EXPECT_EQ(NO_COMPLETION, result(&self->ring, QUIET_MS, NULL, NULL));
		ASSERT_EQ(0, tw_advance(self->fd, 0, SEC));
		ASSERT_EQ(1, write(pair[1], "", 1));
		EXPECT_EQ(1, result(&self->ring, LONG_MS, NULL, NULL));
		EXPECT_EQ(1, result(&self->ring, LONG_MS, NULL, NULL));
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, move.result);
		EXPECT_EQ(round * SEC + MINUTE, deadline_of(self->fd, 7));
	}
	/* A receive that fails does not refresh. */
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_recv(sqe, pair[0], NULL, 1, 0);
	sqe->flags = flags | IOSQE_IO_LINK;
	move = move_to(&self->add, HOUR);
	PREP(MOVE, ARRAY(&move, 1));
	ASSERT_EQ(2, submit(&self->ring));
	ASSERT_EQ(1, write(pair[1], "", 1));
	EXPECT_EQ(-EFAULT, result(&self->ring, LONG_MS, NULL, NULL));
	EXPECT_EQ(-ECANCELED, result(&self->ring, LONG_MS, NULL, NULL));
	EXPECT_EQ(4 * SEC + MINUTE, deadline_of(self->fd, 7));
	close(pair[0]);
	close(pair[1]);
}

/* Commands whose success is not reported, even if an element failed; an error is reported. */
TEST_F(way, silent)
{
	struct timerwheel_move_handle move[2];
	struct io_uring_sqe *sqe;
	int waited;
	__u64 tag;

	move[0] = move_to(&self->add, HOUR);
	move[0].generation++;
	move[1] = move_to(&self->add, MINUTE);
	sqe = PREP(MOVE, ARRAY(move, 2));
	sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	sqe->user_data = 1;
	ASSERT_EQ(1, submit(&self->ring));
	/* A worker needs some time for it. */
	for (waited = 0; waited < LONG_MS && deadline_of(self->fd, 7) != MINUTE; waited++)
		tw_sleep(MSEC);
	EXPECT_EQ(MINUTE, deadline_of(self->fd, 7));
	EXPECT_EQ(NO_COMPLETION, result(&self->ring, QUIET_MS, NULL, NULL));
	EXPECT_EQ(-ENOENT, move[0].result);
	sqe = PREP(MOVE, array_of(NULL, 1, sizeof(move[0])));
	sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	sqe->user_data = 2;
	ASSERT_EQ(1, submit(&self->ring));
	EXPECT_EQ(-EFAULT, result(&self->ring, LONG_MS, &tag, NULL));
	EXPECT_EQ(2, tag);
}

static struct timerwheel_move many[MOST];

static void fill_many(int fd)
{
	static struct timerwheel_add add[MOST];
	int i, n;

	for (i = 0; i < MOST; i++) {
		add[i] = (struct timerwheel_add){ .key = i, .deadline = HOUR };
		many[i] = (struct timerwheel_move){ .key = i, .deadline = MINUTE };
	}
	/* The call stops early if a worker of io_uring has work for this task. */
	for (i = 0; i < MOST; i += n) {
		n = dev_add(fd, add + i, MOST - i);
		if (n <= 0)
			abort();
	}
}

static void ignore(int sig)
{
	(void)sig;
}

/* Only a fatal signal ends a command, wherever it runs. */
TEST_F(way, signals)
{
	int i;

	fill_many(self->fd);
	/*
	 * Create a worker before the signals: io_uring tries three times to create the first
	 * worker, which a signal prevents, and then cancels its work.
	 */
	ASSERT_EQ(MOST, RUN(TIMERWHEEL_IOC_MOVE, ARRAY(many, MOST)));
	signal(SIGALRM, ignore);
	ASSERT_EQ(0, tw_storm(200));
	for (i = 0; i < 10; i++)
		EXPECT_EQ(MOST, RUN(TIMERWHEEL_IOC_MOVE, ARRAY(many, MOST)));
	ASSERT_EQ(0, tw_storm(0));
}

/* An attempt to cancel a command that has begun does not end it either. */
TEST_F(way, cancelled)
{
	struct io_uring_sqe *sqe;
	__u64 tag, done;
	int i, k, res;

	fill_many(self->fd);
	for (i = 0; i < 10; i++) {
		done = stats_of(self->fd).moved;
		PREP(TIMERWHEEL_IOC_MOVE, ARRAY(many, MOST))->user_data = 1;
		ASSERT_EQ(1, submit(&self->ring));
		if (i % 2)
			tw_sleep(MSEC);
		sqe = io_uring_get_sqe(&self->ring);
		io_uring_prep_cancel64(sqe, 1, 0);
		sqe->user_data = 2;
		ASSERT_EQ(1, submit(&self->ring));
		for (k = 0; k < 2; k++) {
			res = result(&self->ring, LONG_MS, &tag, NULL);
			if (tag != 1)
				continue;
			/* or the command has not begun */
			EXPECT_EQ(res == -ECANCELED ? 0 : MOST, stats_of(self->fd).moved - done);
			EXPECT_TRUE(res == -ECANCELED || res == MOST);
		}
	}
}

/* After a ring is closed, its workers run commands to their end, and the wheel stays until then. */
TEST_F(way, ring_closed)
{
	struct io_uring_params params = { .flags = variant->setup };
	__u64 first, now, last = 0;
	int i, still = 0;

	fill_many(self->fd);
	io_uring_unregister_files(&self->ring);
	self->flags &= ~IOSQE_FIXED_FILE;
	self->file = self->fd;
	first = stats_of(self->fd).moved;
	for (i = 0; i < 4; i++) {
		PREP(TIMERWHEEL_IOC_MOVE, ARRAY(many, MOST));
		ASSERT_EQ(1, submit(&self->ring));
		io_uring_queue_exit(&self->ring);
		ASSERT_EQ(0, io_uring_queue_init_params(64, &self->ring, &params));
	}
	/* A command that a worker had not begun is cancelled; all others are done completely. */
	while (still < 100) {
		now = stats_of(self->fd).moved;
		still = now == last && !((now - first) % MOST) ? still + 1 : 0;
		last = now;
		tw_sleep(MSEC);
	}
	EXPECT_GE(4 * MOST, now - first);
}

/* Two threads with a ring each change their own timers of the same wheel. */
struct racer {
	int fd;
	__u64 base;
	struct io_uring_params params;
	__u8 flags;
	int wrong;
};

static void *race(void *arg)
{
	enum { N = 64, ROUNDS = 60 };
	struct racer *r = arg;
	struct timerwheel_add add[N];
	struct timerwheel_move_handle move[N];
	struct timerwheel_remove rem[N];
	struct timerwheel_entry ent[N];
	struct io_uring ring;
	int round, i;

	if (io_uring_queue_init_params(2 * N, &ring, &r->params)) {
		r->wrong = 1000;
		return NULL;
	}
	for (round = 0; round < ROUNDS && !r->wrong; round++) {
		for (i = 0; i < N; i++) {
			add[i] = (struct timerwheel_add){ .key = r->base + i, .deadline = HOUR };
			rem[i] = (struct timerwheel_remove){ .key = r->base + i };
			ent[i] = (struct timerwheel_entry){ .key = r->base + i };
		}
		prep_fd(&ring, r->fd, r->flags, TIMERWHEEL_IOC_ADD, ARRAY(add, N));
		r->wrong += submit(&ring) != 1 || result(&ring, LONG_MS, NULL, NULL) != N;
		for (i = 0; i < N; i++) {
			r->wrong += add[i].result != TIMERWHEEL_WAS_NONE;
			move[i] = move_to(&add[i], MINUTE);
			prep_fd(&ring, r->fd, r->flags, MOVE, ARRAY(&move[i], 1));
		}
		r->wrong += submit(&ring) != N;
		for (i = 0; i < N; i++)
			r->wrong += result(&ring, LONG_MS, NULL, NULL) != 1;
		for (i = 0; i < N; i++)
			r->wrong += move[i].result != TIMERWHEEL_WAS_PENDING;
		r->wrong += run_fd(&ring, r->fd, 0, TIMERWHEEL_IOC_GET, ARRAY(ent, N)) != N;
		for (i = 0; i < N; i++)
			r->wrong += ent[i].deadline != MINUTE || ent[i].index != add[i].index;
		prep_fd(&ring, r->fd, r->flags, TIMERWHEEL_IOC_REMOVE, ARRAY(rem, N));
		r->wrong += submit(&ring) != 1 || result(&ring, LONG_MS, NULL, NULL) != N;
		for (i = 0; i < N; i++)
			r->wrong += rem[i].result != TIMERWHEEL_WAS_PENDING;
	}
	io_uring_queue_exit(&ring);
	return NULL;
}

TEST_F(way, two_rings)
{
	struct racer r[2];
	pthread_t thread[2];
	int i;

	for (i = 0; i < 2; i++) {
		r[i] = (struct racer){
			.fd = self->fd, .base = 10000 * (i + 1),
			.params = { .flags = variant->setup, .sq_thread_idle = 100 },
			.flags = variant->flags & IOSQE_ASYNC,
		};
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, race, &r[i]));
	}
	for (i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_EQ(0, r[i].wrong);
	}
	EXPECT_EQ(1, stats_of(self->fd).pending);
}

/* --- Killed while a command runs ----------------------------------------------------------- */

/* Each element was done or not begun, and the wheel is intact. */
TEST_F(way, killed)
{
	enum { N = 4096, ROUNDS = 25 };
	struct timerwheel_add *add = tw_shared(N * sizeof(*add));
	__u64 r = tw_seed(), cursor;
	struct timerwheel_entry ent[64];
	int round, i, n, listed;
	pid_t pid;

	for (round = 0; round < ROUNDS; round++) {
		pid = fork();
		if (!pid) {
			struct io_uring_params params = { .flags = variant->setup };
			struct io_uring ring;

			if (io_uring_queue_init_params(64, &ring, &params))
				_exit(1);
			for (;;) {
				for (i = 0; i < N; i++)
					add[i] = (struct timerwheel_add){
						.key = 1000 + i, .deadline = HOUR,
					};
				prep_fd(&ring, self->fd, variant->flags & IOSQE_ASYNC,
					TIMERWHEEL_IOC_ADD, ARRAY(add, N));
				if (submit(&ring) != 1 ||
				    result(&ring, LONG_MS, NULL, NULL) != N)
					_exit(1);
			}
		}
		ASSERT_LT(0, pid);
		tw_sleep(tw_rand(&r) % (5 * MSEC));
		kill(pid, SIGKILL);
		ASSERT_EQ(1000 + SIGKILL, tw_reap(pid));
	}
	/* Workers end, too, but the last worker may still run for a moment. */
	for (i = 0; i < 1000; i++) {
		__u64 armed = stats_of(self->fd).armed;

		tw_sleep(10 * MSEC);
		if (armed == stats_of(self->fd).armed)
			break;
	}
	for (cursor = 0, listed = 0; (n = tw_list(self->fd, &cursor, ent, 64)) > 0; listed += n)
		;
	EXPECT_EQ(stats_of(self->fd).pending, listed);
}

/* --- Hostile submitters --------------------------------------------------------------------- */

static atomic_bool stop;

/* Write to submissions at random. */
static void *scribble(void *arg)
{
	struct io_uring *ring = arg;
	size_t size = sizeof(struct io_uring_sqe) << !!(ring->flags & IORING_SETUP_SQE128);
	__u64 r = tw_seed();
	atomic_ullong *word;
	atomic_uint *op;

	while (!stop) {
		/* arguments and numbers of commands in entries that are being submitted */
		word = (void *)((char *)ring->sq.sqes + tw_rand(&r) % 64 * size);
		word += 6 + tw_rand(&r) % 2;
		atomic_store(word, tw_rand(&r) % 4 ? tw_rand(&r) % 128 : tw_rand(&r));
		/* Not the padding beside it, which would end the whole submission. */
		op = (void *)((char *)ring->sq.sqes + tw_rand(&r) % 64 * size +
			      offsetof(struct io_uring_sqe, cmd_op));
		if (tw_rand(&r) % 4 == 0)
			atomic_store(op, _IO(TIMERWHEEL_IOC_TYPE, tw_rand(&r) % 0x10));
	}
	return NULL;
}

/* Submissions that change while they are read: each has a result, and the wheel stays intact */
TEST_F(way, changing_submissions)
{
	static struct timerwheel_add add[64];
	struct timerwheel_move_handle move = move_to(&self->add, SEC);
	pthread_t thread;
	int i, k, n, res;
	__u64 end;

	for (i = 0; i < 64; i++)
		add[i] = (struct timerwheel_add){ .key = i, .deadline = HOUR };
	stop = false;
	ASSERT_EQ(0, pthread_create(&thread, NULL, scribble, &self->ring));
	end = tw_now(CLOCK_MONOTONIC) + SEC;
	while (tw_now(CLOCK_MONOTONIC) < end) {
		for (i = 0; i < 32; i++)
			PREP(i % 2 ? TIMERWHEEL_IOC_ADD : MOVE,
			     i % 2 ? ARRAY(add, 64) : ARRAY(&move, 1));
		n = submit(&self->ring);
		for (k = 0; k < n; k++) {
			res = result(&self->ring, LONG_MS, NULL, NULL);
			ASSERT_NE(NO_COMPLETION, res);
			ASSERT_LE(-4095, res);
			ASSERT_GE((int)MOST, res);
			ASSERT_NE(-EAGAIN, res);
		}
	}
	stop = true;
	pthread_join(thread, NULL);
}

/* --- The task that runs a command ----------------------------------------------------------- */

FIXTURE(place) {
	struct io_uring ring;
	int fd;				/* a new wheel */
};

FIXTURE_SETUP(place)
{
	if (!kernel_has_commands())
		SKIP_SETUP(NO_COMMANDS);
	self->fd = dev_open(0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, io_uring_queue_init(1024, &self->ring, 0));
}

FIXTURE_TEARDOWN(place)
{
	io_uring_queue_exit(&self->ring);
	close(self->fd);
}

/* The first ADD of a wheel needs memory: a worker does it. */
TEST_F(place, first_add_in_a_worker)
{
	struct timerwheel_add add = { .key = 1, .deadline = HOUR };

	ASSERT_EQ(0, workers());
	EXPECT_EQ(1, run_fd(&self->ring, self->fd, 0, TIMERWHEEL_IOC_ADD, ARRAY(&add, 1)));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, add.result);
	EXPECT_EQ(1, workers());
}

/* The same with several elements */
TEST_F(place, first_adds_in_a_worker)
{
	struct timerwheel_add add[3] = {
		{ .key = 1, .deadline = HOUR },
		{ .key = 2, .deadline = HOUR },
		{ .key = 3, .deadline = HOUR },
	};

	EXPECT_EQ(3, run_fd(&self->ring, self->fd, 0, TIMERWHEEL_IOC_ADD, ARRAY(add, 3)));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, add[2].result);
	EXPECT_EQ(1, workers());
}

/* A command that needs no memory is complete when the submission returns, without a worker. */
TEST_F(place, all_else_at_once)
{
	enum { N = 64 };
	struct timerwheel_add add[N];
	struct timerwheel_move move[N];
	struct timerwheel_move_handle handle;
	struct timerwheel_entry ent[N];
	struct timerwheel_remove rem[N];
	struct io_uring_cqe *cqe;
	int i, round;

	for (i = 0; i < N; i++) {
		add[i] = (struct timerwheel_add){ .key = i, .deadline = HOUR };
		move[i] = (struct timerwheel_move){ .key = i, .deadline = 2 * HOUR };
		rem[i] = (struct timerwheel_remove){ .key = i };
		ent[i] = (struct timerwheel_entry){ .key = i };
	}
	/* the memory */
	ASSERT_EQ(N, dev_add(self->fd, add, N));
	for (round = 0; round < 10; round++) {
		prep_fd(&self->ring, self->fd, 0, TIMERWHEEL_IOC_GET, ARRAY(ent, N));
		prep_fd(&self->ring, self->fd, 0, TIMERWHEEL_IOC_MOVE, ARRAY(move, N));
		handle = move_to(&add[0], HOUR);
		prep_fd(&self->ring, self->fd, 0, MOVE, ARRAY(&handle, 1));
		prep_fd(&self->ring, self->fd, 0, TIMERWHEEL_IOC_REMOVE, ARRAY(rem, N));
		prep_fd(&self->ring, self->fd, 0, TIMERWHEEL_IOC_ADD, ARRAY(add, 1));
		prep_fd(&self->ring, self->fd, 0, TIMERWHEEL_IOC_ADD, ARRAY(add + 1, N - 1));
		ASSERT_EQ(6, submit(&self->ring));
		for (i = 0; i < 6; i++) {
			ASSERT_EQ(0, io_uring_peek_cqe(&self->ring, &cqe));
			ASSERT_LT(0, cqe->res);
			io_uring_cqe_seen(&self->ring, cqe);
		}
	}
	EXPECT_EQ(0, workers());
	EXPECT_EQ(N, stats_of(self->fd).pending);
}

/*
 * An ADD that needs memory only later continues in place, and is done to the end. Memory is
 * allocated in pages of 64 timers: in the middle of the first 24 elements, which the module copies
 * in together, and before the first of another 24.
 */
TEST_F(place, memory_in_the_middle)
{
	enum { N = 1000, BEFORE = 63 - 16 };
	static struct timerwheel_add add[N];
	int i;

	for (i = 0; i < N; i++)
		add[i] = (struct timerwheel_add){ .key = N + i, .deadline = HOUR };
	ASSERT_EQ(BEFORE, dev_add(self->fd, add, BEFORE));
	for (i = 0; i < N; i++)
		add[i].key = i;
	EXPECT_EQ(N, run_fd(&self->ring, self->fd, 0, TIMERWHEEL_IOC_ADD, ARRAY(add, N)));
	EXPECT_EQ(0, workers());
	for (i = 0; i < N; i++)
		EXPECT_EQ(TIMERWHEEL_WAS_NONE, add[i].result);
}

/* Many ADDs at once, most of them in workers: each is done once. */
TEST_F(place, many_first_adds)
{
	enum { N = 1000 };
	static struct timerwheel_add add[N];
	int i;

	for (i = 0; i < N; i++) {
		add[i] = (struct timerwheel_add){
			.key = i, .deadline = HOUR, .flags = TIMERWHEEL_EXCL,
		};
		prep_fd(&self->ring, self->fd, 0, TIMERWHEEL_IOC_ADD, ARRAY(&add[i], 1));
	}
	ASSERT_EQ(N, submit(&self->ring));
	for (i = 0; i < N; i++)
		ASSERT_EQ(1, result(&self->ring, LONG_MS, NULL, NULL));
	for (i = 0; i < N; i++)
		ASSERT_EQ(TIMERWHEEL_WAS_NONE, add[i].result);
	EXPECT_EQ(N, stats_of(self->fd).pending);
	EXPECT_EQ(N, stats_of(self->fd).armed);
}

/* A wheel in which no timer was armed: no error, no timer */
TEST_F(place, empty_wheel)
{
	struct timerwheel_entry ent = { .key = 1 };
	struct timerwheel_move_handle move = {};
	struct timerwheel_remove_handle rem = {};

	EXPECT_EQ(1, run_fd(&self->ring, self->fd, 0, MOVE, ARRAY(&move, 1)));
	EXPECT_EQ(-ENOENT, move.result);
	EXPECT_EQ(1, run_fd(&self->ring, self->fd, 0, TIMERWHEEL_IOC_REMOVE_HANDLE,
			    ARRAY(&rem, 1)));
	EXPECT_EQ(-ENOENT, rem.result);
	EXPECT_EQ(1, run_fd(&self->ring, self->fd, 0, TIMERWHEEL_IOC_GET, ARRAY(&ent, 1)));
	EXPECT_EQ(-ENOENT, ent.result);
}

/* Timers that commands arm fire on time, in whichever thread they were armed. */
TEST_F(place, fires)
{
	struct timerwheel_add add = { .key = 5, .value = 6, .deadline = 20 * MSEC };
	struct timerwheel_event ev;
	__u8 flags[] = { 0, IOSQE_ASYNC };
	int i;

	for (i = 0; i < 4; i++) {
		prep_fd(&self->ring, self->fd, flags[i % 2], TIMERWHEEL_IOC_ADD, ARRAY(&add, 1));
		ASSERT_EQ(1, submit(&self->ring));
		ASSERT_EQ(1, result(&self->ring, LONG_MS, NULL, NULL));
		ASSERT_EQ(1, dev_read(self->fd, &ev, 1));
		EXPECT_EQ(5, ev.key);
		EXPECT_LE(ev.deadline, ev.fired);
	}
}

/* A wheel that is only a registered file stays, and is closed with the ring. */
TEST_F(place, registered_only)
{
	struct timerwheel_add add = { .key = 1, .deadline = HOUR };
	int other = dev_open(0);
	__u64 before = tw_memory_of((int []){ self->fd, other }, 2);

	ASSERT_NE(~0ULL, before);
	ASSERT_EQ(0, io_uring_register_files(&self->ring, &other, 1));
	close(other);
	prep_fd(&self->ring, 0, IOSQE_FIXED_FILE, TIMERWHEEL_IOC_ADD, ARRAY(&add, 1));
	ASSERT_EQ(1, submit(&self->ring));
	ASSERT_EQ(1, result(&self->ring, LONG_MS, NULL, NULL));
	EXPECT_EQ(TIMERWHEEL_WAS_NONE, add.result);
	ASSERT_EQ(0, io_uring_unregister_files(&self->ring));
	EXPECT_NE(~0ULL, tw_memory_alone(self->fd));
}

/* In a ring that polls its files for completions, older kernels refuse commands. */
TEST(polled_ring)
{
	struct io_uring ring;
	int fd = dev_open(0), res;
	struct timerwheel_move_handle move = {};

	if (!kernel_has_commands())
		SKIP(return, NO_COMMANDS);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, io_uring_queue_init(8, &ring, IORING_SETUP_IOPOLL));
	prep_fd(&ring, fd, 0, MOVE, ARRAY(&move, 1));
	ASSERT_EQ(1, submit(&ring));
	res = result(&ring, LONG_MS, NULL, NULL);
	TH_LOG("a command in a ring with IOPOLL: %d", res);
	EXPECT_TRUE(res == -EOPNOTSUPP || res == 1);
	io_uring_queue_exit(&ring);
	close(fd);
}

/* A monitor has no commands. */
TEST(monitor)
{
	struct timerwheel_monitor mon = { .size = sizeof(mon) };
	struct io_uring ring;
	int fd = dev_open(0), copy = dev_ioctl(fd, TIMERWHEEL_IOC_MONITOR, &mon);
	struct timerwheel_move_handle move = {};

	if (!kernel_has_commands())
		SKIP(return, NO_COMMANDS);
	ASSERT_LE(0, copy);
	ASSERT_EQ(0, io_uring_queue_init(8, &ring, 0));
	EXPECT_EQ(-EOPNOTSUPP, run_fd(&ring, copy, 0, MOVE, ARRAY(&move, 1)));
	io_uring_queue_exit(&ring);
	close(copy);
	close(fd);
}

/* --- Time namespaces ----------------------------------------------------------------------- */

/* Absolute times belong to the task that created the ring, even in its threads. */
TEST(namespace)
{
	static const struct { __u32 setup; __u8 flags; } ways[] = {
		{ 0, 0 }, { 0, IOSQE_ASYNC }, { IORING_SETUP_SQPOLL, 0 },
		{ IORING_SETUP_SQPOLL, IOSQE_ASYNC },
	};
	int fd = tw_open_clock(TIMERWHEEL_CLOCK_MONOTONIC, MSEC, 0);
	pid_t pid;

	if (!kernel_has_commands())
		SKIP(return, NO_COMMANDS);
	ASSERT_LE(0, fd);
	if (unshare(CLONE_NEWTIME))
		SKIP(return, "no time namespaces here");
	ASSERT_EQ(0, tw_file_write("/proc/self/timens_offsets", "monotonic 100000 0\n"));
	pid = fork();
	if (!pid) {
		__u64 when = tw_now(CLOCK_MONOTONIC) + HOUR;
		struct timerwheel_add add = {
			.key = 1, .deadline = when, .flags = TIMERWHEEL_ABS,
		};
		struct timerwheel_move_handle move;
		size_t i;

		for (i = 0; i < ARRAY_SIZE(ways); i++) {
			struct io_uring_params params = { .flags = ways[i].setup };
			struct io_uring ring;
			int k;

			if (io_uring_queue_init_params(8, &ring, &params))
				_exit(10);
			for (k = 0; k < 2; k++) {
				prep_fd(&ring, fd, ways[i].flags, TIMERWHEEL_IOC_ADD,
					ARRAY(&add, 1));
				if (submit(&ring) != 1 ||
				    result(&ring, LONG_MS, NULL, NULL) != 1)
					_exit(20 + i);
				if (deadline_of(fd, 1) != when)
					_exit(30 + i);
			}
			move = move_to(&add, when + HOUR);
			prep_fd(&ring, fd, ways[i].flags, MOVE | URING_FLAGS(TIMERWHEEL_ABS),
				ARRAY(&move, 1));
			if (submit(&ring) != 1 || result(&ring, LONG_MS, NULL, NULL) != 1)
				_exit(40 + i);
			if (deadline_of(fd, 1) != when + HOUR)
				_exit(50 + i);
			io_uring_queue_exit(&ring);
		}
		_exit(0);
	}
	EXPECT_EQ(0, tw_reap(pid));
	close(fd);
}

/* --- Multishot reads ----------------------------------------------------------------------- */

#define EV_SIZE	((int)sizeof(struct timerwheel_event))

static void give_buffers(struct io_uring *ring, struct timerwheel_event *ev, int n)
{
	io_uring_prep_provide_buffers(io_uring_get_sqe(ring), ev, EV_SIZE, n, 3, 0);
	if (submit(ring) != 1 || result(ring, LONG_MS, NULL, NULL) < 0)
		abort();
}

static bool make_due(int fd, __u64 key)
{
	return !tw_add1(fd, key, key, 1, 0) && tw_advance(fd, 0, 2) == 1;
}

/*
 * A single submission reads one event after another, each into its own buffer, until no buffer is
 * left. Kernels before 6.7 do not know this request.
 */
TEST_F(place, read_multishot)
{
	enum { N = 4 };
	struct timerwheel_event ev[N];
	struct io_uring_probe *probe = io_uring_get_probe();
	struct io_uring_sqe *sqe;
	__u32 flags;
	int i, fd, knows = io_uring_opcode_supported(probe, OP_READ_MULTISHOT);

	/* of a wheel that blocks */
	fd = tw_open_manual(1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fcntl(fd, F_SETFL, 0));
	give_buffers(&self->ring, ev, N);
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_read(sqe, fd, NULL, 0, -1);
	sqe->opcode = OP_READ_MULTISHOT;
	sqe->flags = IOSQE_BUFFER_SELECT;
	sqe->buf_group = 3;
	ASSERT_EQ(1, submit(&self->ring));
	TH_LOG("READ_MULTISHOT: %s", knows ? "there" : "not in this kernel");
	if (!knows) {
		EXPECT_EQ(-EINVAL, result(&self->ring, LONG_MS, NULL, NULL));
		close(fd);
		return;
	}
	EXPECT_EQ(NO_COMPLETION, result(&self->ring, QUIET_MS, NULL, NULL));
	for (i = 0; i < N; i++) {
		ASSERT_TRUE(make_due(fd, 50 + i));
		ASSERT_EQ(EV_SIZE, result(&self->ring, LONG_MS, NULL, &flags));
		ASSERT_TRUE(flags & IORING_CQE_F_BUFFER);
		EXPECT_EQ(50 + i, ev[flags >> IORING_CQE_BUFFER_SHIFT].key);
		ASSERT_TRUE(flags & IORING_CQE_F_MORE);
	}
	/* The event that finds no buffer waits for the next reader. */
	ASSERT_TRUE(make_due(fd, 60));
	EXPECT_EQ(-ENOBUFS, result(&self->ring, LONG_MS, NULL, &flags));
	EXPECT_FALSE(flags & IORING_CQE_F_MORE);
	ASSERT_EQ(1, dev_read(fd, ev, N));
	EXPECT_EQ(60, ev[0].key);
	close(fd);
}

/* --- io_uring is forbidden ------------------------------------------------------------------ */

static int uring_setup_call(void)
{
	struct io_uring_params params = { };

	return tw_err(syscall(SYS_io_uring_setup, 8, &params));
}

/* INFO reports the commands exactly on the kernels that have them. On others a command fails. */
TEST(feature)
{
	struct timerwheel_add add = { .key = 1, .deadline = HOUR };
	struct timerwheel_info info;
	struct io_uring ring;
	int fd = dev_open(0);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(kernel_has_commands(), !!(info.features & TIMERWHEEL_FEATURE_URING));
	ASSERT_EQ(0, io_uring_queue_init(8, &ring, 0));
	EXPECT_EQ(kernel_has_commands() ? 1 : -EINVAL,
		  run_fd(&ring, fd, 0, TIMERWHEEL_IOC_ADD, ARRAY(&add, 1)));
	io_uring_queue_exit(&ring);
	close(fd);
}

/* All other calls work, and INFO reports what the module supports, not what is allowed. */
static bool all_else_works(bool commands)
{
	struct timerwheel_info info;
	struct timerwheel_event ev;
	int fd = dev_open(0);
	bool ok;

	ok = fd >= 0 && !tw_info(fd, &info) &&
	     !!(info.features & TIMERWHEEL_FEATURE_URING) == commands &&
	     !tw_add1(fd, 1, 2, MSEC, 0) && dev_read(fd, &ev, 1) == 1 && ev.value == 2;
	close(fd);
	return ok;
}

/* By a filter for system calls, as in containers */
TEST(forbidden_by_filter)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { ARRAY_SIZE(code), code };
	bool commands = kernel_has_commands();

	ASSERT_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	ASSERT_EQ(0, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
	EXPECT_EQ(-EPERM, uring_setup_call());
	EXPECT_TRUE(all_else_works(commands));
}

/* By the administrator */
TEST(forbidden_by_sysctl)
{
	static const char path[] = "/proc/sys/kernel/io_uring_disabled";
	bool commands = kernel_has_commands();
	char was[2] = "0";
	int fd = open(path, O_RDONLY);

	if (fd < 0 && errno == ENOENT)
		SKIP(return, "this kernel has no io_uring_disabled");
	ASSERT_EQ(1, read(fd, was, 1));
	close(fd);
	ASSERT_EQ(0, tw_file_write(path, "2"));
	EXPECT_EQ(-EPERM, uring_setup_call());
	EXPECT_TRUE(all_else_works(commands));
	ASSERT_EQ(0, tw_file_write(path, was));
}

TEST_HARNESS_MAIN
