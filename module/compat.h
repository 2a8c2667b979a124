/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * New kernel names on old kernels. The module is written for the newest kernel; all
 * that is different on older ones is here, each entry with: changed in, backported
 * to, why.
 */
#ifndef TW_COMPAT_H
#define TW_COMPAT_H

#include <linux/alarmtimer.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/version.h>

/*
 * hrtimer_setup(): changed in 6.13 (initialises the callback together with the timer; the
 * old hrtimer_init() went away in 6.15). Not backported.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

/*
 * alarm_start_timer(): changed in 7.2 (replaces alarm_start() and alarm_start_relative(), and says
 * if the time is still to come). Not backported.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
static inline bool alarm_start_timer(struct alarm *alarm, ktime_t expires, bool relative)
{
	if (relative)
		alarm_start_relative(alarm, expires);
	else
		alarm_start(alarm, expires);
	return true;
}
#endif

/*
 * kvfree_rcu_mightsleep(): changed in 6.3 (kvfree_rcu() without a place for the head was renamed,
 * because it may wait; the old name was given up later). Backported to 6.1.139.
 */
#ifndef kvfree_rcu_mightsleep
#define kvfree_rcu_mightsleep(ptr)	kvfree_rcu(ptr)
#endif

/*
 * vm_flags_mod(): changed in 6.3 (vm_area_struct.vm_flags is no longer written to directly, so
 * that the lock it needs is checked). Not backported to 6.1.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/*
 * __uninitialized: changed in 6.9 (a local variable that the compiler shall not zero, where the
 * kernel is built to zero all of them). Backported to 6.1 and 6.6 in 2024. The attribute is
 * that of gcc 12 and clang, and older compilers cannot zero them anyway.
 */
#ifndef __uninitialized
#if __has_attribute(__uninitialized__)
#define __uninitialized	__attribute__((__uninitialized__))
#else
#define __uninitialized
#endif
#endif

#endif /* TW_COMPAT_H */
