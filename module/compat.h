/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * New kernel names on old kernels. The module is written for the newest kernel. All differences of
 * older ones are here, each with the version that changed it, why, and where it was backported to.
 */
#ifndef TW_COMPAT_H
#define TW_COMPAT_H

#include <linux/alarmtimer.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/version.h>

/*
 * hrtimer_setup(): changed in 6.13 (sets the callback, too; hrtimer_init() was removed in 6.15).
 * Not backported.
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
 * alarm_start_timer(): changed in 7.2 (replaces alarm_start() and alarm_start_relative(), and
 * returns if the time is in the future). Not backported.
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
 * vm_flags_mod(): changed in 6.3 (vm_area_struct.vm_flags is no longer written directly, so that
 * the lock for that can be asserted). Not backported to 6.1.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/*
 * __uninitialized: changed in 6.9 (a local variable that is not zeroed in kernels that are built to
 * zero all of them). Backported to 6.1 and 6.6 in 2024. gcc 12 and clang have the attribute; older
 * compilers cannot zero variables anyway.
 */
#ifndef __uninitialized
#if __has_attribute(__uninitialized__)
#define __uninitialized	__attribute__((__uninitialized__))
#else
#define __uninitialized
#endif
#endif

#endif /* TW_COMPAT_H */
