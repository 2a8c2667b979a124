/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * New kernel names on old kernels. The module is written for the newest kernel. This file has all
 * differences of older kernels, each with the version that changed it, the reason, and the older
 * versions to which the change was backported.
 */
#ifndef TW_COMPAT_H
#define TW_COMPAT_H

#include <linux/alarmtimer.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/timerwheel.h>
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
 * alarm_init(): changed in 6.13 (the callback returns nothing; before, it returned whether to start
 * the alarm again). Not backported.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline enum alarmtimer_restart tw_alarm_once(struct alarm *alarm, ktime_t now)
{
	void (*function)(struct alarm *, ktime_t) = alarm->data;

	function(alarm, now);
	return ALARMTIMER_NORESTART;
}

static inline void tw_alarm_setup(struct alarm *alarm, enum alarmtimer_type type,
				  void (*function)(struct alarm *, ktime_t))
{
	alarm->data = function;
	alarm_init(alarm, type, tw_alarm_once);
}

#define alarm_init(alarm, type, function)	tw_alarm_setup(alarm, type, function)
#endif

/*
 * alarm_start_timer(): changed in 7.2 (replaces alarm_start() and alarm_start_relative(), and
 * returns whether the time is in the future). Not backported.
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

/* class.devnode(): changed in 6.2 (the device is const). Not backported to 6.1. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define tw_devnode_device	struct device
#else
#define tw_devnode_device	const struct device
#endif

/*
 * vm_flags_mod(): changed in 6.3 (vm_area_struct.vm_flags is no longer written directly, so that
 * the kernel can assert its lock). Not backported to 6.1.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

#ifdef CONFIG_IO_URING
/* linux/io_uring/cmd.h: changed in 6.8 (split off linux/io_uring.h). Not backported to 6.1. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#include <linux/io_uring.h>
#else
#include <linux/io_uring/cmd.h>
#endif

/*
 * io_uring_sqe_cmd(): changed in 6.5 (io_uring_cmd.sqe replaces io_uring_cmd.cmd) and in 7.x (a
 * macro, with the type as an argument). Not backported.
 */
static inline const struct timerwheel_uring *
tw_uring_argument(const struct io_uring_cmd *cmd)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	return cmd->cmd;
#elif !defined(io_uring_sqe_cmd)
	return io_uring_sqe_cmd(cmd->sqe);
#else
	return io_uring_sqe_cmd(cmd->sqe, struct timerwheel_uring);
#endif
}

/*
 * Results of .uring_cmd: changed in 6.11 (before, a positive result broke the chain of links, and a
 * worker lost the request). Backported to 6.6 and 6.10, but not to 6.1. There a positive result
 * must be reported by io_uring_cmd_done().
 */
static inline int tw_uring_result(struct io_uring_cmd *cmd, int result, unsigned int issue_flags)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	if (result > 0) {
		io_uring_cmd_done(cmd, result, 0, issue_flags);
		return -EIOCBQUEUED;
	}
#endif
	return result;
}

/* IORING_URING_CMD_MASK: changed in 6.7 (was IORING_URING_CMD_FIXED). Not backported to 6.1. */
#ifndef IORING_URING_CMD_MASK
#define IORING_URING_CMD_MASK	IORING_URING_CMD_FIXED
#endif
#endif /* CONFIG_IO_URING */

/*
 * tcp_abort(): changed in 6.5 (does not take the lock of the socket if it is called from a BPF
 * program, which holds it). Not backported to 6.1.
 */
#define TW_TCP_ABORT_LOCKED	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0))

/*
 * __uninitialized: changed in 6.9 (a local variable that is not zeroed even if the kernel is built
 * to zero all of them). Backported to 6.1 and 6.6 in 2024. gcc 12 and clang have the attribute;
 * older compilers cannot zero variables.
 */
#ifndef __uninitialized
#if __has_attribute(__uninitialized__)
#define __uninitialized	__attribute__((__uninitialized__))
#else
#define __uninitialized
#endif
#endif

#endif /* TW_COMPAT_H */
