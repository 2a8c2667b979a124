// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring: a timeout for each timer, submitted in batches by a single thread
 * (IORING_SETUP_SINGLE_ISSUER, _DEFER_TASKRUN). To update or remove a timeout the kernel searches a
 * list of all timeouts.
 */
#include "absent.h"

#ifdef HAVE_LIBURING
#include <errno.h>
#include <liburing.h>
#include <string.h>

#include "../bench.h"

#define ENTRIES	BATCH_MOST
#define UNNAMED	(~0ULL)		/* user_data of updates and removals */

static struct io_uring ring;
static struct __kernel_timespec times[ENTRIES];

static void uring_open(__u32 room, __u64 timeout)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			 IORING_SETUP_CQSIZE,
		.cq_entries = 4 * ENTRIES,
	};
	int error = io_uring_queue_init_params(ENTRIES, &ring, &params);

	(void)room;
	(void)timeout;
	if (error)
		die("io_uring: %s", strerror(-error));
}

static void uring_close(void)
{
	io_uring_queue_exit(&ring);
}

static struct __kernel_timespec *time_of(__u32 i, __u64 ns)
{
	times[i].tv_sec = ns / NSEC_PER_SEC;
	times[i].tv_nsec = ns % NSEC_PER_SEC;
	return &times[i];
}

/* Submit all @n entries and wait for @wait_for completions, in one call. */
static void submit(__u32 n, __u32 wait_for)
{
	int done = io_uring_submit_and_wait(&ring, wait_for);

	if (done != (int)n)
		die("io_uring_submit took %d of %u: this is not a measurement", done, n);
}

static void uring_arm(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		io_uring_prep_timeout(sqe, time_of(i, c[i].deadline), 0, IORING_TIMEOUT_ABS);
		io_uring_sqe_set_data64(sqe, c[i].id);
	}
	submit(n, 0);
}

/* Updates have a completion only if they fail. */
static void uring_move(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		io_uring_prep_timeout_update(sqe, time_of(i, c[i].deadline), c[i].id,
					     IORING_TIMEOUT_ABS);
		io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
		io_uring_sqe_set_data64(sqe, UNNAMED);
	}
	submit(n, 0);
}

/* Process all completions: of timers that expired, and of @cancelled ones. */
static void reap(__u32 cancelled)
{
	struct io_uring_cqe *cqe;
	unsigned int head, seen = 0;

	io_uring_for_each_cqe(&ring, head, cqe) {
		if (cqe->user_data == UNNAMED)
			die("io_uring changed no timeout: %s: this is not a measurement",
			    strerror(-cqe->res));
		else if (cqe->res == -ETIME)
			deliver(cqe->user_data);
		else if (cqe->res == -ECANCELED && cancelled)
			cancelled--;
		else
			die("io_uring: timer %llu: %s: this is not a measurement", cqe->user_data,
			    strerror(-cqe->res));
		seen++;
	}
	io_uring_cq_advance(&ring, seen);
	if (cancelled)
		die("%u io_uring timeouts were not cancelled: this is not a measurement",
		    cancelled);
}

static void uring_cancel(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		io_uring_prep_timeout_remove(sqe, c[i].id, 0);
		io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
		io_uring_sqe_set_data64(sqe, UNNAMED);
	}
	/* each cancelled timer has a completion */
	submit(n, n);
	reap(n);
}

static void uring_run(__u64 until)
{
	while (!nothing_left()) {
		struct __kernel_timespec left = { };
		struct io_uring_cqe *cqe;
		__u64 now = until == NEVER ? 0 : now_ns();
		int error;

		if (now < until) {
			left.tv_sec = (until - now) / NSEC_PER_SEC;
			left.tv_nsec = (until - now) % NSEC_PER_SEC;
		}
		error = io_uring_submit_and_wait_timeout(&ring, &cqe, 1,
							 until == NEVER ? NULL : &left, NULL);
		if (error == -ETIME)
			return;
		if (error < 0 && error != -EINTR)
			die("waiting for io_uring: %s", strerror(-error));
		reap(0);
	}
}

const struct facility facility_uring = {
	.name = "io_uring",
	.most = 100000,
	.step_most = 1000,
	.why = "each update or removal searches a list of all timeouts",
	.batches = true,
	.open = uring_open,
	.close = uring_close,
	.arm = uring_arm,
	.move = uring_move,
	.refresh = uring_move,
	.cancel = uring_cancel,
	.run = uring_run,
};
#else
FACILITY_ABSENT(facility_uring, "io_uring", "liburing-dev");
#endif
