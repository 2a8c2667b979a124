/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A queue of timers in the memory of the process with one timerfd, as in a daemon that implements
 * its timeouts itself. It is used by one thread, or shared by two with a lock.
 *
 * Wake-ups are rounded up to a millisecond, the tick of /dev/timerwheel.
 */
#ifndef FRONT_H
#define FRONT_H

#include "../facility.h"

struct queue {
	void (*open)(__u32 capacity);
	void (*close)(void);
	/* these two return the first deadline inserted; NEVER: none */
	__u64 (*arm)(const struct change *changes, __u32 n);
	__u64 (*move)(const struct change *changes, __u32 n);
	/*
	 * The new deadline is later: store it, and read it when the old one has
	 * passed.
	 */
	void (*refresh)(const struct change *changes, __u32 n);
	void (*cancel)(const struct change *changes, __u32 n);
	/* the time of the next work; NEVER: the queue is empty */
	__u64 (*next)(void);
	/* remove at most @most due timers and return their number */
	__u32 (*expire)(__u64 now, __u32 *ids, __u32 most);
};

/* lazy.c: a queue whose timers are moved and taken out only when they fire */
const struct queue *lazily(const struct queue *queue);

extern const struct queue heap_queue, wheel_queue;

void front_open(const struct queue *queue, __u32 capacity, bool shared);
void front_close(void);
void front_arm(const struct change *changes, __u32 n);
void front_move(const struct change *changes, __u32 n);
void front_refresh(const struct change *changes, __u32 n);
void front_cancel(const struct change *changes, __u32 n);
void front_run(__u64 until);
/* While it runs, wait also for @fd, and call this when it is readable. */
void front_also(int fd, void (*readable)(void));

/* The common part of the facilities' tables */
#define FRONT_FUNCTIONS			\
	.close = front_close,		\
	.arm = front_arm,		\
	.move = front_move,		\
	.refresh = front_refresh,	\
	.cancel = front_cancel,		\
	.run = front_run

#endif /* FRONT_H */
