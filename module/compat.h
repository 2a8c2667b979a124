/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * New kernel names on old kernels. The module is written for the newest kernel. This file has all
 * differences of older kernels, each with the version that changed it, the reason, and the older
 * versions to which the change was backported. The folder compat/ has the headers that older
 * kernels lack.
 *
 * Kernels of distributions have changes of later versions. So this file asks for a name and not for
 * a version wherever a header shows the change: Kbuild defines TW_HAVE_name for each name in its
 * list that a header of the kernel contains.
 */
#ifndef TW_COMPAT_H
#define TW_COMPAT_H

#include <linux/alarmtimer.h>
#include <linux/cpu.h>
#include <linux/device.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smpboot.h>
#include <linux/timerwheel.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/version.h>

/*
 * hrtimer_setup(): changed in 6.13 (sets the callback, too; hrtimer_init() was removed in 6.15).
 * Not backported.
 */
#ifndef TW_HAVE_hrtimer_setup
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
 * the alarm again, as an alarmtimer_restart). Not backported.
 */
#ifdef TW_HAVE_alarmtimer_restart
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
#ifndef TW_HAVE_alarm_start_timer
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
 * class.devnode(): changed in 6.2 (the device is const). Not backported to 6.1. The type of the
 * member shows the change.
 */
#define TW_DEVNODE_CONST						\
	__builtin_types_compatible_p(typeof(((struct class *)NULL)->devnode),	\
				     char *(*)(const struct device *, umode_t *))
#define tw_devnode_device						\
	typeof(*__builtin_choose_expr(TW_DEVNODE_CONST, (const struct device *)NULL,	\
				      (struct device *)NULL))

/*
 * vm_flags_mod(): changed in 6.3 (vm_area_struct.vm_flags is no longer written directly, so that
 * the kernel can assert its lock). Not backported to 6.1.
 */
#ifndef TW_HAVE_vm_flags_mod
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/*
 * kmalloc_size_roundup(): changed in 6.1 (was not there). Not backported. Older kernels also have
 * caches for powers of two and for 96 and 192 bytes.
 */
#ifndef TW_HAVE_kmalloc_size_roundup
static inline size_t kmalloc_size_roundup(size_t size)
{
	if (KMALLOC_MIN_SIZE <= 32 && size > 64 && size <= 96)
		return 96;
	if (KMALLOC_MIN_SIZE <= 64 && size > 128 && size <= 192)
		return 192;
	return max_t(size_t, roundup_pow_of_two(size), KMALLOC_MIN_SIZE);
}
#endif

/*
 * usleep_range_state(): changed in 5.17 (was not there; usleep_range() counts as load). Not
 * backported.
 */
#ifndef TW_HAVE_usleep_range_state
static inline void usleep_range_state(unsigned long min, unsigned long max, unsigned int state)
{
	ktime_t end = ktime_add_us(ktime_get(), min);

	do {
		__set_current_state(state);
	} while (schedule_hrtimeout_range(&end, (max - min) * NSEC_PER_USEC, HRTIMER_MODE_ABS));
}
#endif

/*
 * smpboot_unregister_percpu_thread(): changed in 6.12 (before, the kernel warned about threads that
 * were not parked). Backported to 5.15, 6.1 and 6.6 but not to 5.10. No header shows it. On a
 * kernel with a backport it is correct, too, to park the threads first. selfparking keeps CPU
 * hotplug from parking or unparking them meanwhile.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
static inline void tw_smpboot_unregister(struct smp_hotplug_thread *threads)
{
	unsigned int cpu;

	cpus_read_lock();
	for_each_online_cpu(cpu)
		kthread_park(*per_cpu_ptr(threads->store, cpu));
	threads->selfparking = true;
	cpus_read_unlock();
	smpboot_unregister_percpu_thread(threads);
}

#define smpboot_unregister_percpu_thread(threads)	tw_smpboot_unregister(threads)
#endif

/*
 * Accounted pages that user space maps: changed in 5.11 (accounting has a bit of its own; before,
 * the bit was in the field that counts mappings). Not backported. tw_page_map() clears the bit, and
 * tw_page_unmap() sets it before the page is freed, so that the memory cgroup is uncharged.
 */
static inline void tw_page_map(struct page *page)
{
#ifdef TW_HAVE_PG_kmemcg
	if (PageKmemcg(page))
		__ClearPageKmemcg(page);
#endif
}

static inline void tw_page_unmap(struct page *page)
{
#if defined(TW_HAVE_PG_kmemcg) && defined(CONFIG_MEMCG)
	if (page->mem_cgroup && !PageKmemcg(page))
		__SetPageKmemcg(page);
#endif
}

/*
 * iter_is_ubuf(): changed in 6.0 (read() has a buffer instead of an array with one; before, this
 * function returns true for such an array). Not backported.
 *
 * iter_iov_addr(): changed in 6.4 (was not there). Not backported.
 */
#ifndef TW_HAVE_iter_is_ubuf
static inline bool iter_is_ubuf(const struct iov_iter *i)
{
	return iter_is_iovec(i) && i->nr_segs == 1;
}

static inline void __user *iter_iov_addr(const struct iov_iter *i)
{
	return i->iov->iov_base + i->iov_offset;
}
#elif !defined(TW_HAVE_iter_iov_addr)
static inline void __user *iter_iov_addr(const struct iov_iter *i)
{
	return i->ubuf + i->iov_offset;
}
#endif

/*
 * fault_in_iov_iter_writeable(): changed in 5.16 (was not there). Backported to 5.15 but not to
 * 5.10. Must not write to the memory: if the reader is killed before the event is copied, no bytes
 * may look like one.
 */
#ifndef TW_HAVE_fault_in_iov_iter_writeable
static inline size_t fault_in_iov_iter_writeable(const struct iov_iter *i, size_t size)
{
	size_t left = min(size, iov_iter_count(i)), skip = i->iov_offset, len;
	const struct iovec *iov = i->iov;
	bool unlocked = false;
	unsigned long at, end;

	if (!iter_is_iovec(i))
		return 0;
	mmap_read_lock(current->mm);
	for (; left; left -= len, skip = 0, iov++) {
		len = min(left, iov->iov_len - skip);
		at = (unsigned long)iov->iov_base + skip;
		for (end = at + len; at < end; at = (at & PAGE_MASK) + PAGE_SIZE)
			if (fixup_user_fault(current->mm, at, FAULT_FLAG_WRITE, &unlocked))
				goto out;
	}
out:
	mmap_read_unlock(current->mm);
	return left;
}
#endif

/*
 * fault_in_subpage_writeable(): changed in 5.18 (was not there). Not backported. This function
 * fills the memory with zeros, and so finds memory that only part of a page refuses. The real
 * function writes zeros, too.
 */
#ifndef TW_HAVE_fault_in_subpage_writeable
static inline size_t fault_in_subpage_writeable(char __user *uaddr, size_t size)
{
	return clear_user(uaddr, size);
}
#endif

/*
 * CONFIG_TIMERWHEEL_URING: changed in 5.19 (io_uring has commands for files, .uring_cmd) and in 6.1
 * (io_uring_cmd.flags). Kbuild defines it if the kernel has these flags.
 */
#ifdef CONFIG_TIMERWHEEL_URING
#include <linux/io_uring/cmd.h>

/*
 * io_uring_sqe_cmd(): changed in 6.5 (io_uring_cmd.sqe replaces io_uring_cmd.cmd) and in 7.x (a
 * macro, with the type as an argument). Not backported.
 */
static inline const struct timerwheel_uring *
tw_uring_argument(const struct io_uring_cmd *cmd)
{
#ifndef TW_HAVE_io_uring_sqe_cmd
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
 * must be reported by io_uring_cmd_done(), which is also correct on a kernel with the change. No
 * header shows the change.
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
#endif /* CONFIG_TIMERWHEEL_URING */

/*
 * tcp_abort(): changed in 6.5 (does not take the lock of the socket if it is called from a BPF
 * program, which holds it). Not backported to 6.1. No header shows the change. On a kernel with a
 * backport 0 is correct, too, because tcp_abort() takes the lock unless a BPF program calls it.
 */
#define TW_TCP_ABORT_LOCKED	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0))

/*
 * bpf_set_run_ctx(): changed in 5.15 (was not there). Not backported. It is used only with
 * TW_TCP_ABORT_LOCKED.
 */
#ifndef TW_HAVE_bpf_set_run_ctx
struct bpf_run_ctx { };

static inline struct bpf_run_ctx *bpf_set_run_ctx(struct bpf_run_ctx *new_ctx)
{
	return NULL;
}

static inline void bpf_reset_run_ctx(struct bpf_run_ctx *old_ctx)
{
}
#endif

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
