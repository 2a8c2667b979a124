// SPDX-License-Identifier: GPL-2.0
/*
 * The device through io_uring: MOVE as a command of its own, and as one command for many timers.
 * And the idle timeout of a connection: a receive alone, with a LINK_TIMEOUT, with a MOVE linked
 * to it.
 */
#include "bench.h"

#ifdef HAVE_LIBURING
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wheel.h"

#define ROUNDS	200

static int wheel;
static __u32 timers;
static struct timerwheel_add *adds;
static struct io_uring ring;
static __u64 place;

static void ring_open(__u32 flags)
{
	struct io_uring_params params = { .flags = flags, .sq_thread_idle = 1000 };
	int error = io_uring_queue_init_params(4 * BATCH, &ring, &params);

	if (error)
		die("io_uring: %s", strerror(-error));
	/* as a server would have it */
	error = io_uring_register_files(&ring, &wheel, 1);
	if (error)
		die("io_uring_register_files: %s", strerror(-error));
}

/* A timer that was not used recently, with a later timeout: the guest may be up for days. */
static struct timerwheel_move_handle next_move(void)
{
	const struct timerwheel_add *add;

	place = (place + stride_of(timers)) % timers;
	add = &adds[place];
	return (struct timerwheel_move_handle) {
		.deadline = 3 * HOUR + random_below(&seed, HOUR),
		.index = add->index, .generation = add->generation,
	};
}

/* A call on an array of @count elements of @size bytes */
static struct io_uring_sqe *prep(__u32 op, const void *elems, __u32 count, __u32 size)
{
	struct timerwheel_uring arg = {
		.elems = (unsigned long)elems, .count = count, .elem_size = size,
	};
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	/* It clears all but the command itself. */
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, 0, NULL, 0, op);
	sqe->flags = IOSQE_FIXED_FILE;
	memcpy(&sqe->cmd, &arg, sizeof(arg));
	return sqe;
}

static struct io_uring_sqe *prep_move(const struct timerwheel_move_handle *move, __u32 count)
{
	return prep(TIMERWHEEL_IOC_MOVE_HANDLE, move, count, sizeof(*move));
}

/* Check each element's result, because a completion reports only their number. */
static void check(const struct timerwheel_move_handle *move, __u32 n)
{
	for (; n--; move++) {
		if (move->result != TIMERWHEEL_WAS_PENDING)
			die("MOVE: %d: this is not a measurement", move->result);
	}
}

/* Take @n completions, which are there or will be. */
static void reap(__u32 n, int expected)
{
	struct io_uring_cqe *cqe;
	unsigned int head, seen = 0;
	int error;

	while (n) {
		error = io_uring_wait_cqe_nr(&ring, &cqe, n);
		if (error)
			die("waiting for io_uring: %s", strerror(-error));
		seen = 0;
		io_uring_for_each_cqe(&ring, head, cqe) {
			if (cqe->res != expected && cqe->user_data != ~0ULL)
				die("io_uring: %d: this is not a measurement", cqe->res);
			seen++;
		}
		io_uring_cq_advance(&ring, seen);
		n -= seen < n ? seen : n;
	}
}

/* A MOVE in each command, @n in an enter. Returns ns for each, with filling in and reaping. */
static double single_moves(__u32 n)
{
	struct timerwheel_move_handle move[BATCH];
	__u64 start, time = 0;
	__u32 round, i;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < n; i++)
			move[i] = next_move();
		start = now_ns();
		for (i = 0; i < n; i++)
			prep_move(&move[i], 1);
		io_uring_submit_and_wait(&ring, n);
		reap(n, 1);
		time += now_ns() - start;
		check(move, n);
	}
	return (double)time / ROUNDS / n;
}

/* Requests that do nothing: the cost of io_uring itself */
static double nothing(__u32 n)
{
	__u64 start = now_ns();
	__u32 round, i;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < n; i++)
			io_uring_prep_nop(io_uring_get_sqe(&ring));
		io_uring_submit_and_wait(&ring, n);
		reap(n, 0);
	}
	return (double)(now_ns() - start) / ROUNDS / n;
}

/* As single_moves(), but the completions are left out. */
static double silent_moves(__u32 n)
{
	struct timerwheel_move_handle move[BATCH];
	__u64 start, time = 0;
	__u32 round, i;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < n; i++)
			move[i] = next_move();
		start = now_ns();
		for (i = 0; i < n; i++)
			prep_move(&move[i], 1)->flags |= IOSQE_CQE_SKIP_SUCCESS;
		io_uring_submit(&ring);
		time += now_ns() - start;
		check(move, n);
	}
	if (io_uring_cq_ready(&ring))
		die("a MOVE failed: this is not a measurement");
	return (double)time / ROUNDS / n;
}

/* BATCH timers in one command, by handle */
static double array_moves(void)
{
	struct timerwheel_move_handle move[BATCH];
	__u64 start, time = 0;
	__u32 round, i;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < BATCH; i++)
			move[i] = next_move();
		start = now_ns();
		prep_move(move, BATCH);
		io_uring_submit_and_wait(&ring, 1);
		reap(1, BATCH);
		time += now_ns() - start;
	}
	return (double)time / ROUNDS / BATCH;
}

/* The same by key */
static double key_moves(void)
{
	struct timerwheel_move move[BATCH] = { };
	__u64 start, time = 0;
	__u32 round, i;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < BATCH; i++) {
			move[i].deadline = next_move().deadline;
			move[i].key = adds[place].key;
		}
		start = now_ns();
		prep(TIMERWHEEL_IOC_MOVE, move, BATCH, sizeof(move[0]));
		io_uring_submit_and_wait(&ring, 1);
		reap(1, BATCH);
		time += now_ns() - start;
	}
	return (double)time / ROUNDS / BATCH;
}

/* --- A receive, and the idle timeout of its connection --------------------------------------- */

enum timeout { NONE, LINK_TIMEOUT, LINKED_MOVE };

/*
 * Receives that wait, @n per enter; then a byte arrives for each. Returns the ns per receive of the
 * submission and of the completion, without the time of the sender.
 */
static double receives(enum timeout timeout, __u32 n)
{
	struct __kernel_timespec idle = { .tv_sec = 3600 };
	struct timerwheel_move_handle move[BATCH];
	static int pair[BATCH][2];
	__u64 start, time = 0;
	__u32 round, i;
	char c[BATCH];

	for (i = 0; i < n; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]))
			die("socketpair: %s", strerror(errno));
	}
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < n; i++)
			move[i] = next_move();
		start = now_ns();
		for (i = 0; i < n; i++) {
			struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

			io_uring_prep_recv(sqe, pair[i][0], &c[i], 1, 0);
			sqe->user_data = i;
			if (timeout == NONE)
				continue;
			sqe->flags |= IOSQE_IO_LINK;
			if (timeout == LINKED_MOVE) {
				sqe = prep_move(&move[i], 1);
				sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
			} else {
				sqe = io_uring_get_sqe(&ring);
				io_uring_prep_link_timeout(sqe, &idle, 0);
				/* its completion has ECANCELED */
				sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
			}
			sqe->user_data = ~0ULL;
		}
		io_uring_submit(&ring);
		time += now_ns() - start;
		for (i = 0; i < n; i++) {
			if (write(pair[i][1], "", 1) != 1)
				die("write: %s", strerror(errno));
		}
		start = now_ns();
		reap(n, 1);
		time += now_ns() - start;
	}
	for (i = 0; i < n; i++) {
		close(pair[i][0]);
		close(pair[i][1]);
	}
	return (double)time / ROUNDS / n;
}

static void arm_timers(void)
{
	__u32 i, n;

	wheel = wheel_open();
	adds = xcalloc(timers, sizeof(*adds));
	for (i = 0; i < timers; i++) {
		adds[i].key = mix64(i + 1);
		adds[i].deadline = 2 * HOUR + random_below(&seed, HOUR);
	}
	for (i = 0; i < timers; i += n) {
		n = timers - i < BATCH_MOST ? timers - i : BATCH_MOST;
		wheel_add(wheel, adds + i, n);
	}
}

void bench_uring(void)
{
	static const __u32 sizes[] = { 1, BATCH };
	unsigned int i;

	timers = options.most;
	progress("commands through io_uring, with %s timers", commas(timers));
	arm_timers();
	ring_open(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		result("uring_nop", 0, sizes[i], nothing(sizes[i]), "ns");
		result("uring_move", timers, sizes[i], single_moves(sizes[i]), "ns");
		result("uring_move_silent", timers, sizes[i], silent_moves(sizes[i]), "ns");
	}
	result("uring_array_handle", timers, BATCH, array_moves(), "ns");
	result("uring_array_key", timers, BATCH, key_moves(), "ns");
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		result("uring_recv", timers, sizes[i], receives(NONE, sizes[i]), "ns");
		result("uring_recv_timeout", timers, sizes[i], receives(LINK_TIMEOUT, sizes[i]),
		       "ns");
		result("uring_recv_move", timers, sizes[i], receives(LINKED_MOVE, sizes[i]), "ns");
	}
	io_uring_queue_exit(&ring);
	ring_open(IORING_SETUP_SQPOLL);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		result("uring_move_sqpoll", timers, sizes[i], single_moves(sizes[i]), "ns");
	io_uring_queue_exit(&ring);
	close(wheel);
	free(adds);
}
#else
void bench_uring(void)
{
	skipped("uring", 0, "the bench was built without liburing-dev");
}
#endif
