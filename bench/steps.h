/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Workloads in which time advances in small steps with some operations each, as in a server whose
 * event loop wakes for its sockets
 */
#ifndef STEPS_H
#define STEPS_H

#include <linux/types.h>

struct steps {
	__u64 length;	/* of a step, in ns */
	__u64 next;	/* start of the next step */
	double base;	/* CPU time of a step without operations */
};

/* Measure @base. The facility is open, and no timer is armed. */
void steps_begin(struct steps *steps, __u64 length);
/* Run until the next step; timers that fall due are delivered. */
void steps_next(struct steps *steps);

#endif /* STEPS_H */
