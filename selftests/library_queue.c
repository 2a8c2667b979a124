// SPDX-License-Identifier: GPL-2.0
/* libtimerwheel's queue: order, number of system calls, failures. */
#include "library.h"

#define MINUTES	(60 * SEC)

/* The reports to timerwheel_queue_failed_fn(), in order. */
struct told {
	int count;
	unsigned long op[64];
	uint64_t key[64];
	int result[64];
};

static void note(void *arg, unsigned long op, const void *elem)
{
	struct told *told = arg;
	int n = told->count++ % 64;

	told->op[n] = op;
	if (op == TIMERWHEEL_IOC_ADD) {
		told->key[n] = ((const struct timerwheel_add *)elem)->key;
		told->result[n] = ((const struct timerwheel_add *)elem)->result;
	} else if (op == TIMERWHEEL_IOC_MOVE) {
		told->key[n] = ((const struct timerwheel_move *)elem)->key;
		told->result[n] = ((const struct timerwheel_move *)elem)->result;
	} else {
		told->key[n] = ((const struct timerwheel_remove *)elem)->key;
		told->result[n] = ((const struct timerwheel_remove *)elem)->result;
	}
}

static int q_add(struct timerwheel_queue *q, uint64_t key, uint64_t value, uint64_t deadline)
{
	struct timerwheel_add elem = { .key = key, .value = value, .deadline = deadline };

	return timerwheel_queue_add(q, &elem);
}

static int q_move(struct timerwheel_queue *q, uint64_t key, uint64_t deadline)
{
	struct timerwheel_move elem = { .key = key, .deadline = deadline };

	return timerwheel_queue_move(q, &elem);
}

static int q_remove(struct timerwheel_queue *q, uint64_t key)
{
	struct timerwheel_remove elem = { .key = key };

	return timerwheel_queue_remove(q, &elem);
}

/* System calls for the wheel's operations since the last call of this function; device only. */
static int calls(void)
{
	int n = ioctls;

	ioctls = 0;
	return ON_DEVICE ? n : -1;
}

/* The process back end makes no system calls. */
#define EXPECT_CALLS(n) EXPECT_EQ(ON_DEVICE ? (n) : -1, calls())

FIXTURE(queue)
{
	struct timerwheel *w;
	struct timerwheel_queue *q;
	struct told told;
};

FIXTURE_SETUP(queue)
{
	self->w = wheel_manual(1000, 0);
	ASSERT_NE(NULL, self->w);
	/* execute() does the work of io_uring, so old kernels can run the tests of commands. */
	features_added = TIMERWHEEL_FEATURE_URING;
	ASSERT_EQ(0, timerwheel_queue_new(&self->q, self->w, 16, note, &self->told));
	calls();
}

FIXTURE_TEARDOWN(queue)
{
	timerwheel_queue_free(self->q);
	EXPECT_EQ(true, balanced(self->w));
	timerwheel_close(self->w);
	EXPECT_EQ(false, leaks());
}

TEST_F(queue, new_errors)
{
	struct timerwheel_queue *other = NULL;
	int n;

	EXPECT_EQ(-EINVAL, timerwheel_queue_new(&other, self->w, TIMERWHEEL_BATCH_MAX + 1, NULL,
						NULL));
	/* The queue, an array for each kind, the notes. */
	for (n = 0; n < 5; n++) {
		fail_allocation = n;
		errno = 4711;
		EXPECT_EQ(-ENOMEM, timerwheel_queue_new(&other, self->w, 0, NULL, NULL));
		EXPECT_EQ(4711, errno);
		EXPECT_EQ(-1, fail_allocation);
	}
	EXPECT_EQ(NULL, other);
	EXPECT_EQ(0, timerwheel_queue_new(&other, self->w, TIMERWHEEL_BATCH_MAX, NULL, NULL));
	timerwheel_queue_free(other);
	EXPECT_EQ(0, timerwheel_queue_new(&other, self->w, 1, NULL, NULL));
	timerwheel_queue_free(other);
}

TEST_F(queue, nothing_queued)
{
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_CALLS(0);
}

TEST_F(queue, one_call_for_each_kind)
{
	struct timerwheel_entry entry;
	uint64_t key;

	for (key = 0; key < 10; key++)
		ASSERT_EQ(0, add(self->w, key, 0, HOUR, 0));
	calls();
	for (key = 0; key < 5; key++)
		EXPECT_EQ(0, q_remove(self->q, key));
	for (key = 5; key < 10; key++)
		EXPECT_EQ(0, q_move(self->q, key, 2 * HOUR));
	for (key = 10; key < 15; key++)
		EXPECT_EQ(0, q_add(self->q, key, 0, 3 * HOUR));
	/* The operations are still queued. */
	EXPECT_CALLS(0);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 0, &entry));
	calls();
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_CALLS(3);
	for (key = 0; key < 15; key++) {
		EXPECT_EQ(key < 5 ? -ENOENT : TIMERWHEEL_WAS_PENDING, get(self->w, key, &entry));
		if (key >= 5)
			EXPECT_EQ(key < 10 ? 2 * HOUR : 3 * HOUR, entry.deadline);
	}
	EXPECT_EQ(0, self->told.count);
	calls();
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_CALLS(0);
}

/* Arm, refresh, end: each pair of kinds in both orders, for one key. */
TEST_F(queue, order_of_a_key)
{
	struct timerwheel_entry entry;

	EXPECT_EQ(0, q_add(self->q, 1, 10, HOUR));
	EXPECT_EQ(0, q_move(self->q, 1, 2 * HOUR));
	EXPECT_EQ(0, q_add(self->q, 2, 20, HOUR));
	EXPECT_EQ(0, q_remove(self->q, 2));
	EXPECT_EQ(0, q_add(self->q, 3, 30, HOUR));
	EXPECT_EQ(0, q_add(self->q, 3, 31, HOUR));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_CALLS(3);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(2 * HOUR, entry.deadline);
	EXPECT_EQ(-ENOENT, get(self->w, 2, &entry));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 3, &entry));
	EXPECT_EQ(31, entry.value);

	/* In the opposite order: a key that is used again. */
	calls();
	EXPECT_EQ(0, q_remove(self->q, 1));
	EXPECT_EQ(0, q_add(self->q, 1, 11, HOUR));
	EXPECT_EQ(0, q_move(self->q, 3, 2 * HOUR));
	EXPECT_EQ(0, q_remove(self->q, 3));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_CALLS(3);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(11, entry.value);
	EXPECT_EQ(-ENOENT, get(self->w, 3, &entry));
	EXPECT_EQ(0, self->told.count);
}

TEST_F(queue, no_order_suits)
{
	struct timerwheel_entry entry;

	/* Add before remove for one key, remove before add for the other: a flush in between. */
	EXPECT_EQ(0, q_add(self->q, 1, 10, HOUR));
	EXPECT_EQ(0, q_remove(self->q, 1));
	EXPECT_EQ(0, q_add(self->q, 1, 11, HOUR));
	EXPECT_CALLS(2);
	EXPECT_EQ(0, q_move(self->q, 1, 2 * HOUR));
	EXPECT_EQ(0, q_remove(self->q, 1));
	EXPECT_CALLS(0);
	EXPECT_EQ(0, q_add(self->q, 1, 12, HOUR));
	EXPECT_CALLS(3);
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_CALLS(1);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(12, entry.value);

	/* A ring of three: move 2, add 2; add 3, remove 3; remove 1, move 1. */
	calls();
	EXPECT_EQ(0, q_move(self->q, 2, HOUR));
	EXPECT_EQ(0, q_add(self->q, 2, 20, HOUR));
	EXPECT_EQ(0, q_add(self->q, 3, 30, HOUR));
	EXPECT_EQ(0, q_remove(self->q, 3));
	EXPECT_EQ(0, q_remove(self->q, 1));
	EXPECT_CALLS(0);
	EXPECT_EQ(0, q_move(self->q, 1, HOUR));
	EXPECT_CALLS(3);
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_CALLS(1);
	EXPECT_EQ(2, self->told.count);
	EXPECT_EQ(2, self->told.key[0]);
	EXPECT_EQ(1, self->told.key[1]);
}

TEST_F(queue, failures)
{
	EXPECT_EQ(0, q_move(self->q, 1, HOUR));
	EXPECT_EQ(0, q_remove(self->q, 2));
	EXPECT_EQ(0, timerwheel_queue_add(self->q,
					  &(struct timerwheel_add){ .key = 3, .flags = ~0U }));
	EXPECT_EQ(0, q_add(self->q, 4, 0, HOUR));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	ASSERT_EQ(3, self->told.count);
	for (int i = 0; i < 3; i++) {
		switch (self->told.op[i]) {
		case TIMERWHEEL_IOC_MOVE:
			EXPECT_EQ(1, self->told.key[i]);
			EXPECT_EQ(-ENOENT, self->told.result[i]);
			break;
		case TIMERWHEEL_IOC_REMOVE:
			EXPECT_EQ(2, self->told.key[i]);
			EXPECT_EQ(-ENOENT, self->told.result[i]);
			break;
		default:
			EXPECT_EQ(TIMERWHEEL_IOC_ADD, self->told.op[i]);
			EXPECT_EQ(3, self->told.key[i]);
			EXPECT_EQ(-EINVAL, self->told.result[i]);
		}
	}
}

TEST_F(queue, nobody_is_told)
{
	struct timerwheel_queue *other;
	struct timerwheel_entry entry;

	ASSERT_EQ(0, timerwheel_queue_new(&other, self->w, 0, NULL, NULL));
	EXPECT_EQ(0, q_remove(other, 1));
	EXPECT_EQ(0, q_add(other, 2, 0, HOUR));
	/* Freeing a queue flushes it. */
	timerwheel_queue_free(other);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 2, &entry));
}

TEST_F(queue, full)
{
	struct timerwheel_entry entry;
	uint64_t key;

	for (key = 0; key < 16; key++)
		EXPECT_EQ(0, q_add(self->q, key, 0, HOUR));
	EXPECT_CALLS(0);
	EXPECT_EQ(0, q_add(self->q, key, 0, HOUR));
	EXPECT_CALLS(1);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 15, &entry));
	EXPECT_EQ(-ENOENT, get(self->w, 16, &entry));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 16, &entry));
}

/* A flush leaves no state behind: each time there is room for as many keys, in any order. */
TEST_F(queue, many_turns)
{
	uint64_t key = 0;
	int turn, n;

	for (turn = 0; turn < 40; turn++) {
		for (n = 0; n < 16; n++, key++)
			ASSERT_EQ(0, q_add(self->q, key, 0, HOUR));
		EXPECT_EQ(0, timerwheel_queue_flush(self->q));
		EXPECT_CALLS(1);
		for (n = 0; n < 16; n++)
			ASSERT_EQ(0, q_move(self->q, key - 16 + n, HOUR));
		EXPECT_EQ(0, timerwheel_queue_flush(self->q));
		EXPECT_CALLS(1);
	}
	EXPECT_EQ(0, self->told.count);
}

TEST_F(queue, counts_from_the_flush)
{
	struct timerwheel_entry entry;

	EXPECT_EQ(0, q_add(self->q, 1, 0, 100));
	EXPECT_EQ(0, timerwheel_advance(self->w, 1000, 0));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(1100, entry.deadline);
}

#ifndef PROCESS

/* A call fails: its operations stay queued, and so do all later ones. */
TEST_F(queue, error_of_a_call)
{
	struct timerwheel_entry entry;
	uint64_t key;
	int n;

	for (n = 0; n < 3; n++) {
		EXPECT_EQ(0, q_add(self->q, 1, 10, HOUR));
		EXPECT_EQ(0, q_move(self->q, 1, 2 * HOUR));
		EXPECT_EQ(0, q_remove(self->q, 1));
		/* The first, second and third call fail in turn. */
		fail_ioctl = n;
		calls();
		EXPECT_EQ(-EINTR, timerwheel_queue_flush(self->q));
		EXPECT_CALLS(n + 1);
		EXPECT_EQ(n ? TIMERWHEEL_WAS_PENDING : -ENOENT, get(self->w, 1, &entry));
		calls();
		EXPECT_EQ(0, timerwheel_queue_flush(self->q));
		EXPECT_CALLS(3 - n);
		EXPECT_EQ(-ENOENT, get(self->w, 1, &entry));
		EXPECT_EQ(0, self->told.count);
	}

	/* An operation without room is not queued. */
	for (key = 0; key < 16; key++)
		EXPECT_EQ(0, q_add(self->q, key, 0, HOUR));
	fail_ioctl = 0;
	EXPECT_EQ(-EINTR, q_add(self->q, 16, 0, HOUR));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 15, &entry));
	EXPECT_EQ(-ENOENT, get(self->w, 16, &entry));
}

/* Operations that could not be performed still precede later ones on the same key. */
TEST_F(queue, order_after_an_error)
{
	struct timerwheel_add again = {
		.key = 1, .value = 20, .deadline = HOUR, .flags = TIMERWHEEL_EXCL,
	};
	struct timerwheel_entry entry;

	ASSERT_EQ(0, add(self->w, 1, 10, HOUR, 0));
	EXPECT_EQ(0, q_remove(self->q, 1));
	fail_ioctl = 0;
	EXPECT_EQ(-EINTR, timerwheel_queue_flush(self->q));
	EXPECT_EQ(0, timerwheel_queue_add(self->q, &again));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_EQ(0, self->told.count);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(20, entry.value);
}

/* One kind is done repeatedly while another fails: the done operations leave no state behind. */
TEST_F(queue, errors_without_end)
{
	struct timerwheel_entry entry;
	uint64_t key;
	int n;

	ASSERT_EQ(0, add(self->w, 1000, 0, HOUR, 0));
	EXPECT_EQ(0, q_move(self->q, 1000, 2 * HOUR));
	for (key = 0; key < 40 * 16;) {
		for (n = 0; n < 16; n++, key++)
			ASSERT_EQ(0, q_add(self->q, key, 0, HOUR));
		fail_ioctl = 1;
		ASSERT_EQ(-EINTR, timerwheel_queue_flush(self->q));
	}
	/* The remaining operation still precedes later ones. */
	EXPECT_EQ(0, q_remove(self->q, 1000));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_EQ(-ENOENT, get(self->w, 1000, &entry));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, key - 1, &entry));
	EXPECT_EQ(0, self->told.count);
}

/* An error after some operations of a kind: these are done once, the others stay in order. */
TEST_F(queue, error_in_the_middle)
{
	struct timerwheel_entry entry;
	struct timerwheel_stats s;
	uint64_t key;

	for (key = 0; key < 15; key++)
		EXPECT_EQ(0, q_add(self->q, key, key, HOUR));
	EXPECT_EQ(0, q_add(self->q, 14, 15, HOUR));
	most_elements = 5;
	fail_ioctl = 2;
	keep_failing = true;
	EXPECT_EQ(-EINTR, timerwheel_queue_flush(self->q));
	fail_ioctl = -1;
	ASSERT_EQ(0, timerwheel_stats(self->w, &s));
	EXPECT_EQ(10, s.armed);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 9, &entry));
	EXPECT_EQ(-ENOENT, get(self->w, 10, &entry));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	ASSERT_EQ(0, timerwheel_stats(self->w, &s));
	EXPECT_EQ(16, s.armed);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 14, &entry));
	EXPECT_EQ(15, entry.value);
	EXPECT_EQ(0, self->told.count);
	most_elements = 0;
}

/* Freeing a queue flushes it, whatever signals come. */
TEST_F(queue, free_interrupted)
{
	struct timerwheel_entry entry;
	struct timerwheel_queue *other;

	ASSERT_EQ(0, timerwheel_queue_new(&other, self->w, 0, NULL, NULL));
	EXPECT_EQ(0, q_add(other, 1, 0, HOUR));
	EXPECT_EQ(0, q_move(other, 1, 2 * HOUR));
	fail_ioctl = 1;
	timerwheel_queue_free(other);
	EXPECT_EQ(-1, fail_ioctl);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(2 * HOUR, entry.deadline);
}

#endif

/* The same operations through a queue and one by one: the same wheel, whatever their order. */
TEST_F(queue, random)
{
	enum { KEYS = 12, OPERATIONS = 40000 };
	struct timerwheel *plain = wheel_manual(1000, 0);
	uint64_t state = seed(), began = state, key, when;
	struct timerwheel_entry a, b;
	long failed = 0, i;
	int was;

	ASSERT_NE(NULL, plain);
	TH_LOG("TW_SEED=%llu", (unsigned long long)began);
	for (i = 0; i < OPERATIONS; i++) {
		key = rand64(&state) % KEYS;
		when = HOUR + rand64(&state) % HOUR;
		switch (rand64(&state) % 8) {
		case 0 ... 2:
			ASSERT_EQ(0, q_add(self->q, key, i, when));
			was = add(plain, key, i, when, 0);
			break;
		case 3 ... 4:
			ASSERT_EQ(0, q_move(self->q, key, when));
			was = move(plain, key, when, 0);
			break;
		case 5 ... 6:
			ASSERT_EQ(0, q_remove(self->q, key));
			was = rm(plain, key);
			break;
		default:
			calls();
			ASSERT_EQ(0, timerwheel_queue_flush(self->q));
			ASSERT_GE(3, calls());
			was = get(plain, key, &a);
			ASSERT_EQ(was, get(self->w, key, &b));
			if (was > 0) {
				ASSERT_EQ(a.value, b.value);
				ASSERT_EQ(a.deadline, b.deadline);
			}
			ASSERT_EQ(failed, self->told.count);
			was = 0;
		}
		failed += was < 0;
	}
	timerwheel_close(plain);
}

/* --- Commands for the program's own ring ------------------------------------------------------ */

/*
 * The process back end, and a kernel without commands, return none. Queued operations stay queued.
 */
TEST_F(queue, no_commands)
{
	struct timerwheel_command commands[TIMERWHEEL_COMMANDS];
	struct timerwheel_entry entry;

	features_removed = TIMERWHEEL_FEATURE_URING;
	ASSERT_EQ(0, q_add(self->q, 1, 2, HOUR));
	EXPECT_EQ(-EOPNOTSUPP, timerwheel_queue_commands(self->q, commands));
	EXPECT_EQ(-EINVAL, timerwheel_queue_completed(self->q, 0, 1));
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
}

#ifndef PROCESS
/* Execute a command as io_uring does, for at most @most elements. Returns the result. */
static int execute(const struct timerwheel_command *command, uint32_t most)
{
	struct timerwheel_uring arg;
	struct timerwheel_batch batch = { .size = sizeof(batch) };
	int ret, was = ioctls;

	memcpy(&arg, command->bytes, sizeof(arg));
	batch.elems = arg.elems;
	batch.count = arg.count < most ? arg.count : most;
	batch.elem_size = arg.elem_size;
	ret = ioctl(command->fd, command->op, &batch);
	ioctls = was;
	return ret < 0 ? -errno : ret;
}

/* Execute all commands in order. Returns the first error. */
static int execute_all(struct timerwheel_queue *q)
{
	struct timerwheel_command commands[TIMERWHEEL_COMMANDS];
	int n = timerwheel_queue_commands(q, commands), i, err;

	for (i = 0; i < n; i++) {
		err = timerwheel_queue_completed(q, i, execute(&commands[i], UINT32_MAX));
		if (err)
			return err;
	}
	return n < 0 ? n : 0;
}

/* A command for each queued kind, in an order that keeps the order of each key. */
TEST_F(queue, commands)
{
	struct timerwheel_command commands[TIMERWHEEL_COMMANDS];
	struct timerwheel_entry entry;
	int i;

	EXPECT_EQ(0, timerwheel_queue_commands(self->q, commands));
	EXPECT_EQ(-EINVAL, timerwheel_queue_completed(self->q, 0, 0));
	calls();
	ASSERT_EQ(0, q_move(self->q, 5, HOUR));
	ASSERT_EQ(0, q_add(self->q, 1, 1, HOUR));
	ASSERT_EQ(0, q_move(self->q, 1, 2 * HOUR));
	ASSERT_EQ(0, q_add(self->q, 2, 2, HOUR));
	ASSERT_EQ(0, q_remove(self->q, 2));
	ASSERT_EQ(3, timerwheel_queue_commands(self->q, commands));
	EXPECT_EQ(TIMERWHEEL_IOC_ADD, commands[0].op);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(timerwheel_fd(self->w), commands[i].fd);
		ASSERT_EQ(0, timerwheel_queue_completed(self->q, i,
							execute(&commands[i], UINT32_MAX)));
	}
	EXPECT_CALLS(0);
	EXPECT_EQ(-EINVAL, timerwheel_queue_completed(self->q, 0, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(2 * HOUR, entry.deadline);
	EXPECT_EQ(-ENOENT, get(self->w, 2, &entry));
	ASSERT_EQ(1, self->told.count);
	EXPECT_EQ(TIMERWHEEL_IOC_MOVE, self->told.op[0]);
	EXPECT_EQ(5, self->told.key[0]);
	EXPECT_EQ(-ENOENT, self->told.result[0]);
}

/* Calls perform the operations that a command has not performed. */
TEST_F(queue, commands_cut_short)
{
	static const int results[] = { -ECANCELED, -EFAULT, 0, 3 };
	struct timerwheel_command commands[TIMERWHEEL_COMMANDS];
	struct timerwheel_entry entry;
	unsigned int i;
	uint64_t key;
	int res;

	for (i = 0; i < 4; i++) {
		for (key = 0; key < 10; key++)
			ASSERT_EQ(0, q_add(self->q, 10 * i + key, key, HOUR));
		for (key = 0; key < 10; key++)
			ASSERT_EQ(0, q_move(self->q, 10 * i + key, MINUTES * (key + 1)));
		ASSERT_EQ(2, timerwheel_queue_commands(self->q, commands));
		calls();
		res = results[i] <= 0 ? results[i] : execute(&commands[0], results[i]);
		ASSERT_EQ(0, timerwheel_queue_completed(self->q, 0, res));
		EXPECT_CALLS(1);
		ASSERT_EQ(0, timerwheel_queue_completed(self->q, 1, -ECANCELED));
		EXPECT_CALLS(1);
		for (key = 0; key < 10; key++) {
			ASSERT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 10 * i + key, &entry));
			EXPECT_EQ(MINUTES * (key + 1), entry.deadline);
			EXPECT_EQ(key, entry.value);
		}
	}
	/* an impossible result */
	ASSERT_EQ(0, q_move(self->q, 1, HOUR));
	ASSERT_EQ(1, timerwheel_queue_commands(self->q, commands));
	ASSERT_EQ(0, timerwheel_queue_completed(self->q, 0, 1000));
	EXPECT_EQ(0, self->told.count);
}

/* Until all results are there, new operations are queued behind, in order. */
TEST_F(queue, commands_busy)
{
	struct timerwheel_command commands[TIMERWHEEL_COMMANDS], more[TIMERWHEEL_COMMANDS];
	struct timerwheel_entry entry;
	uint64_t key;

	ASSERT_EQ(0, q_add(self->q, 1, 1, HOUR));
	ASSERT_EQ(0, q_remove(self->q, 3));
	ASSERT_EQ(2, timerwheel_queue_commands(self->q, commands));
	EXPECT_EQ(-EINVAL, timerwheel_queue_completed(self->q, 2, 1));
	EXPECT_EQ(-EBUSY, timerwheel_queue_commands(self->q, more));
	EXPECT_EQ(-EBUSY, timerwheel_queue_flush(self->q));
	for (key = 0; key < 16; key++)
		EXPECT_EQ(0, q_move(self->q, 1, (key + 1) * MINUTES));
	/* No room without a flush. */
	EXPECT_EQ(-EBUSY, q_move(self->q, 1, 17 * MINUTES));
	ASSERT_EQ(0, timerwheel_queue_completed(self->q, 0, execute(&commands[0], 1)));
	EXPECT_EQ(-EBUSY, timerwheel_queue_flush(self->q));
	ASSERT_EQ(0, timerwheel_queue_completed(self->q, 1, execute(&commands[1], 1)));
	EXPECT_EQ(1, self->told.count);
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(HOUR, entry.deadline);
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_EQ(TIMERWHEEL_WAS_PENDING, get(self->w, 1, &entry));
	EXPECT_EQ(16 * MINUTES, entry.deadline);
	EXPECT_EQ(1, self->told.count);
}

/* The first use needs memory. Without it all operations stay queued. */
TEST_F(queue, commands_no_memory)
{
	struct timerwheel_command commands[TIMERWHEEL_COMMANDS];
	int n;

	ASSERT_EQ(0, q_add(self->q, 1, 1, HOUR));
	for (n = 0; n < 5; n++) {
		fail_allocation = n;
		EXPECT_EQ(-ENOMEM, timerwheel_queue_commands(self->q, commands));
		EXPECT_EQ(-1, fail_allocation);
	}
	EXPECT_EQ(0, timerwheel_queue_flush(self->q));
	EXPECT_EQ(0, self->told.count);
	ASSERT_EQ(0, q_move(self->q, 1, HOUR));
	EXPECT_EQ(0, execute_all(self->q));
	EXPECT_EQ(0, self->told.count);
}

/* Random operations end as without a queue, with commands that are executed or fail at random. */
TEST_F(queue, commands_random)
{
	enum { KEYS = 12, OPERATIONS = 20000 };
	struct timerwheel_command commands[TIMERWHEEL_COMMANDS];
	struct timerwheel *plain = wheel_manual(1000, 0);
	uint64_t state = seed(), began = state, key, when;
	struct timerwheel_entry a, b;
	int was, out = 0, next = 0, res, err;
	long failed = 0, i;

	ASSERT_NE(NULL, plain);
	TH_LOG("TW_SEED=%llu", (unsigned long long)began);
	for (i = 0; i < OPERATIONS; i++) {
		key = rand64(&state) % KEYS;
		when = HOUR + rand64(&state) % HOUR;
		err = 0;
		was = 0;
		switch (rand64(&state) % 9) {
		case 0 ... 1:
			err = q_add(self->q, key, i, when);
			was = err ? 0 : add(plain, key, i, when, 0);
			break;
		case 2 ... 3:
			err = q_move(self->q, key, when);
			was = err ? 0 : move(plain, key, when, 0);
			break;
		case 4 ... 5:
			err = q_remove(self->q, key);
			was = err ? 0 : rm(plain, key);
			break;
		case 6:
			if (!out) {
				out = timerwheel_queue_commands(self->q, commands);
				next = 0;
				ASSERT_LE(0, out);
			}
			break;
		case 7:
			if (!out)
				break;
			res = -ECANCELED;
			if (rand64(&state) % 4)
				res = execute(&commands[next], 1 + rand64(&state) % 16);
			ASSERT_EQ(0, timerwheel_queue_completed(self->q, next++, res));
			if (next == out)
				out = 0;
			break;
		default:
			err = timerwheel_queue_flush(self->q);
			ASSERT_EQ(out ? -EBUSY : 0, err);
			if (out)
				break;
			was = get(plain, key, &a);
			ASSERT_EQ(was, get(self->w, key, &b));
			if (was > 0) {
				ASSERT_EQ(a.value, b.value);
				ASSERT_EQ(a.deadline, b.deadline);
			}
			ASSERT_EQ(failed, self->told.count);
			was = 0;
		}
		ASSERT_TRUE(!err || (err == -EBUSY && out));
		failed += was < 0;
	}
	for (; next < out; next++)
		ASSERT_EQ(0, timerwheel_queue_completed(self->q, next, -ECANCELED));
	timerwheel_close(plain);
}
#endif

TEST_HARNESS_MAIN
