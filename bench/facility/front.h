/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A queue of timers in the memory of the process, behind one timerfd: what a daemon does that
 * keeps its timeouts itself. Alone in one thread, or shared by two behind a lock.
 *
 * Wake-ups are rounded up to a millisecond, the tick that /dev/timerwheel has.
 */
#ifndef FRONT_H
#define FRONT_H

#include "../facility.h"

struct queue {
	void (*open)(__u32 capacity);
	void (*close)(void);
	void (*arm)(const struct change *changes, __u32 n);
	void (*move)(const struct change *changes, __u32 n);
	/*
	 * The new deadline is later: it is enough to write it down, and to look at
	 * it once the old one has come.
	 */
	void (*refresh)(const struct change *changes, __u32 n);
	void (*cancel)(const struct change *changes, __u32 n);
	/* When there may be something to do next; NEVER: it is empty. */
	__u64 (*next)(void);
	/* Take out at most so many timers that are due. */
	__u32 (*expire)(__u64 now, __u32 *ids, __u32 most);
};

void front_open(const struct queue *queue, __u32 capacity, bool shared);
void front_close(void);
void front_arm(const struct change *changes, __u32 n);
void front_move(const struct change *changes, __u32 n);
void front_refresh(const struct change *changes, __u32 n);
void front_cancel(const struct change *changes, __u32 n);
void front_run(__u64 until);

/* The rest of the table of a facility. */
#define FRONT_FUNCTIONS			\
	.close = front_close,		\
	.arm = front_arm,		\
	.move = front_move,		\
	.refresh = front_refresh,	\
	.cancel = front_cancel,		\
	.run = front_run

#endif /* FRONT_H */
