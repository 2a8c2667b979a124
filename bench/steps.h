/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Workloads in which time goes on in small steps. In each one something happens to
 * timers, as in a server whose loop wakes for its sockets.
 */
#ifndef STEPS_H
#define STEPS_H

#include <linux/types.h>

struct steps {
	__u64 length;	/* of one, in ns */
	__u64 next;	/* when the next one is */
	double base;	/* CPU time of one in which nothing happens */
};

/* The facility is open, and no timer is armed. */
void steps_begin(struct steps *steps, __u64 length);
/* To the next step; what falls due meanwhile is delivered. */
void steps_next(struct steps *steps);

#endif /* STEPS_H */
