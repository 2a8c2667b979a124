// SPDX-License-Identifier: GPL-2.0
/* The queues of ../facility that are in the process, without their timerfd */
#include "../bench.h"
#include "../facility/front.h"
#include "peers.h"

static const struct queue *queue;

static void queue_arm(const struct change *changes, __u32 n)
{
	queue->arm(changes, n);
}

static void queue_move(const struct change *changes, __u32 n)
{
	queue->move(changes, n);
}

static void queue_refresh(const struct change *changes, __u32 n)
{
	queue->refresh(changes, n);
}

static void queue_cancel(const struct change *changes, __u32 n)
{
	queue->cancel(changes, n);
}

static void queue_run(__u64 until)
{
	__u32 ids[BATCH], i, n;

	do {
		n = queue->expire(until, ids, BATCH);
		for (i = 0; i < n; i++)
			deliver(ids[i]);
	} while (n == BATCH);
}

static void open_queue(const struct queue *q, __u32 capacity)
{
	queue = q;
	queue->open(capacity);
}

static void wheel_open(__u32 capacity, __u64 timeout)
{
	(void)timeout;
	open_queue(&wheel_queue, capacity);
}

static void wheel_lazy_open(__u32 capacity, __u64 timeout)
{
	(void)timeout;
	open_queue(lazily(&wheel_queue), capacity);
}

static void heap_open(__u32 capacity, __u64 timeout)
{
	(void)timeout;
	open_queue(&heap_queue, capacity);
}

#define QUEUE_FUNCTIONS			\
	.arm = queue_arm,		\
	.move = queue_move,		\
	.refresh = queue_refresh,	\
	.cancel = queue_cancel,		\
	.run = queue_run

const struct facility native_wheel = {
	.name = "wheel",
	.open = wheel_open,
	QUEUE_FUNCTIONS,
};

const struct facility native_wheel_lazy = {
	.name = "wheel-lazy",
	.open = wheel_lazy_open,
	QUEUE_FUNCTIONS,
};

const struct facility native_heap = {
	.name = "heap",
	.open = heap_open,
	QUEUE_FUNCTIONS,
};
