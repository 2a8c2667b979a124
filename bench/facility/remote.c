// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel in one process, whose timers another process arms and refreshes, as programs do for
 * leases without the device. Changes are messages; or deadlines are in shared memory, and only
 * arming a timer that is not in the wheel takes a message.
 *
 * As in the deadline table, each race has one outcome: a refresh succeeds, or the timer
 * has fired. So both use compare-and-swap. Shared memory is for processes that trust each other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../bench.h"
#include "front.h"

static int sender, receiver;

/* A message is an array of changes. */
static void tell(const struct change *c, __u32 n)
{
	__u32 i, count;

	for (i = 0; i < n; i += count) {
		ssize_t size;

		count = n - i < BATCH_MOST ? n - i : BATCH_MOST;
		size = count * sizeof(*c);
		if (send(sender, c + i, size, 0) != size)
			die("sending a message: %s", strerror(errno));
	}
}

static void receive(void)
{
	static struct change message[BATCH_MOST];
	ssize_t size;

	while ((size = recv(receiver, message, sizeof(message), MSG_DONTWAIT)) > 0)
		front_arm(message, size / sizeof(*message));
}

static void open_with(const struct queue *queue, __u32 capacity)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds))
		die("socketpair: %s", strerror(errno));
	sender = fds[0];
	receiver = fds[1];
	front_open(queue, capacity, false);
	front_also(receiver, receive);
}

static void remote_close(void)
{
	front_close();
	close(sender);
	close(receiver);
}

static void no_cancel(const struct change *c, __u32 n)
{
	(void)c;
	(void)n;
	die("leases are not cancelled");
}

static void messages_open(__u32 capacity, __u64 timeout)
{
	(void)timeout;
	open_with(lazily(&wheel_queue), capacity);
}

/* By timer: its deadline; 0: it is not in the wheel */
static __u64 *deadlines;
static size_t deadlines_size;

static void shared_open(__u32 capacity)
{
	deadlines_size = capacity * sizeof(*deadlines);
	deadlines = mmap(NULL, deadlines_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
	if (deadlines == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	wheel_queue.open(capacity);
}

static void shared_close(void)
{
	munmap(deadlines, deadlines_size);
	wheel_queue.close();
}

static __u64 shared_arm(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		__atomic_store_n(&deadlines[c[i].id], c[i].deadline, __ATOMIC_RELEASE);
	return wheel_queue.arm(c, n);
}

/* Returns true if the timer has fired; otherwise it is in the wheel again. */
static bool fire(__u32 id, __u64 now)
{
	struct change again = { .id = id };

	again.deadline = __atomic_load_n(&deadlines[id], __ATOMIC_RELAXED);
	while (again.deadline <= now) {
		if (__atomic_compare_exchange_n(&deadlines[id], &again.deadline, 0, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return true;
	}
	wheel_queue.arm(&again, 1);
	return false;
}

static __u32 shared_expire(__u64 now, __u32 *ids, __u32 most)
{
	__u32 n = 0, wanted, taken, i;
	__u32 *first;

	do {
		first = ids + n;
		wanted = most - n;
		taken = wheel_queue.expire(now, first, wanted);
		for (i = 0; i < taken; i++) {
			if (fire(first[i], now))
				ids[n++] = first[i];
		}
	} while (taken == wanted && n < most);
	return n;
}

static __u64 shared_next(void)
{
	return wheel_queue.next();
}

static const struct queue shared = {
	.open = shared_open,
	.close = shared_close,
	.arm = shared_arm,
	.next = shared_next,
	.expire = shared_expire,
};

static void memory_open(__u32 capacity, __u64 timeout)
{
	(void)timeout;
	open_with(&shared, capacity);
}

static void memory_refresh(const struct change *c, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		__u64 *deadline = &deadlines[c[i].id];
		__u64 old = __atomic_load_n(deadline, __ATOMIC_RELAXED);

		do {
			if (!old || c[i].deadline < old)
				die("a lease has ended too early: this is not a measurement");
		} while (!__atomic_compare_exchange_n(deadline, &old, c[i].deadline, false,
						      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	}
}

const struct facility facility_wheel_messages = {
	.name = "wheel-messages",
	.only = "leases",
	.processes = true,
	.batches = true,
	.open = messages_open,
	.close = remote_close,
	.arm = tell,
	.move = tell,
	.refresh = tell,
	.cancel = no_cancel,
	.run = front_run,
};

const struct facility facility_wheel_memory = {
	.name = "wheel-memory",
	.only = "leases",
	.processes = true,
	.open = memory_open,
	.close = remote_close,
	.arm = tell,
	.move = tell,
	.refresh = memory_refresh,
	.cancel = no_cancel,
	.run = front_run,
};
