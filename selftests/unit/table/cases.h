/* SPDX-License-Identifier: GPL-2.0 */
/* Cases that are not random: another CPU or a program acts at one point of an operation. */
#ifndef CASES_H
#define CASES_H

/* DRAIN of a resident timer whose entry a program changes at the same time */
void case_drain_changed(void);

/* A timer gets another owner, and is parked, while it is looked up by its index. */
void case_new_owner(void);

/* The reader of a full ring makes room just after the event of a clock that was set found none. */
void case_clock_set_first(void);

/* read() into memory that can be faulted in, but not written */
void case_unwritable(void);

/* Calls on timers that are in the bases of two other CPUs, by turns */
void case_elsewhere(void);

/* A call on a timer that other CPUs move from base to base ends when its task is killed. */
void case_hops(void);

/* So does an ADD to a full wheel in which another CPU arms and removes timers all the time. */
void case_churned(void);

/* All timers that wait for room in a ring are withdrawn: there is no overflow any more. */
void case_withdrawn(void);

/* Indices that come from user space are limited under speculation. */
void case_limited(void);

#endif /* CASES_H */
