// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events that report that CLOCK_REALTIME was set, for files with TIMERWHEEL_SETUP_CLOCK_SET.
 *
 * The criterion is the offset of CLOCK_REALTIME from CLOCK_BOOTTIME. It changes when the clock is
 * set or a leap second is inserted, but neither in suspend nor while the clock is slewed. Each such
 * file keeps the offset that was last reported to its readers. If the current offset differs,
 * tw_clockset_check() records an event. The module checks the offset
 *
 * - before it expires timers of a base, so that the event precedes the events of timers that fall
 *   due because of it;
 * - in read, poll and FLOW, so that they report every change before the call;
 * - in the work below, for readers that sleep.
 *
 * The waiting event is only a number (tw_events.clock_sets) of changes that were not reported yet.
 * Therefore it needs no memory and cannot be lost. It is delivered before all due timers. In a file
 * with a ring the number also changes under the ring's lock.
 *
 * Sleeping readers
 * ----------------
 * The kernel calls tw_clockset_notify() with the timekeeper locked, where it may only start an
 * irq_work. The irq_work queues the work, which walks the files. The kernel calls such notifiers at
 * every tick, so the module registers its notifier only for the first such file. It keeps the
 * notifier until it is unloaded: whenever a notifier is registered, the kernel reports to all
 * notifiers that the clock was set, and that can cost others more than the tick costs this module
 * (Xen's notifier sets the clock of the hypervisor).
 *
 * tw_clockset_lock protects the list of files and is held for one file at a time. The work moves
 * each file that it has handled to the end of the list and marks it with its generation. The
 * handled files are therefore the tail of the list, and new files are also added there. The work
 * enters rcu_read_lock() before it releases the lock, because a file leaves the list before its
 * grace period begins (tw_release()).
 *
 * Lock order: tw_file.mutex, tw_clockset_lock, the timekeeper's lock. The module takes no lock
 * inside the last one.
 */
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/notifier.h>
#include <linux/pvclock_gtod.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "clockset.h"
#include "deliver.h"
#include "events.h"
#include "flow.h"
#include "internal.h"
#include "monitor.h"
#include "ring.h"

static DEFINE_SPINLOCK(tw_clockset_lock);
static LIST_HEAD(tw_clockset_files);
static u32 tw_clockset_generation;
static bool tw_clockset_registered;

/* CLOCK_REALTIME minus CLOCK_BOOTTIME. */
static s64 tw_clockset_offset(void)
{
	ktime_t boot, real;

	/* Both change at resume: read them consistently. */
	do {
		boot = ktime_mono_to_any(0, TK_OFFS_BOOT);
		real = ktime_mono_to_any(0, TK_OFFS_REAL);
	} while (boot != ktime_mono_to_any(0, TK_OFFS_BOOT));
	return real - boot;
}

/**
 * tw_clockset_changed - was the clock set without an event for that?
 * @file: a file for which tw_clockset_enabled() is true
 *
 * Return: true if so. If it returns false after the caller has read the time, that time precedes
 * any change of the clock without an event.
 */
bool tw_clockset_changed(const struct tw_file *file)
{
	return tw_clockset_offset() != READ_ONCE(file->clockset.offset);
}

/**
 * tw_clockset_check - record an event if the clock was set
 * @file: a file for which tw_clockset_enabled() is true
 *
 * The event then waits for a reader or is in the ring, and readers are woken.
 *
 * Context: softirq or process; no lock held.
 */
void tw_clockset_check(struct tw_file *file)
{
	struct tw_clockset *clockset = &file->clockset;
	struct tw_events *events = &file->events;
	bool ring = tw_has_ring(file), set, wake_monitors = false;
	s64 offset;

	if (likely(!tw_clockset_changed(file)))
		return;
	local_bh_disable();
	if (ring)
		raw_spin_lock(&file->ring.lock);
	raw_spin_lock(&events->lock);
	/* Check again under the lock: other CPUs may notice it at the same time. */
	offset = tw_clockset_offset();
	set = offset != clockset->offset;
	if (set) {
		WRITE_ONCE(clockset->offset, offset);
		WRITE_ONCE(events->clock_sets, events->clock_sets + 1);
		events->clock_set_at = ktime_get_real_ns();
		if (ring)
			wake_monitors = tw_flow_clock_set(file);
	}
	raw_spin_unlock(&events->lock);
	if (ring)
		raw_spin_unlock(&file->ring.lock);
	local_bh_enable();
	if (set)
		tw_events_wake(file);
	if (wake_monitors)
		tw_monitor_wake(file);
}

/* The next file for the work, with rcu_read_lock() held; NULL, without it: there is none. */
static struct tw_file *tw_clockset_next(u32 generation)
{
	struct tw_file *file;

	spin_lock(&tw_clockset_lock);
	file = list_first_entry_or_null(&tw_clockset_files, struct tw_file, clockset.list);
	if (file && file->clockset.generation == generation)
		file = NULL;
	if (file) {
		file->clockset.generation = generation;
		list_move_tail(&file->clockset.list, &tw_clockset_files);
		rcu_read_lock();
	}
	spin_unlock(&tw_clockset_lock);
	return file;
}

static void tw_clockset_work(struct work_struct *work)
{
	struct tw_file *file;
	u32 generation;

	/* Only the work changes it. */
	spin_lock(&tw_clockset_lock);
	generation = ++tw_clockset_generation;
	spin_unlock(&tw_clockset_lock);
	while ((file = tw_clockset_next(generation))) {
		tw_clockset_check(file);
		rcu_read_unlock();
		cond_resched();
	}
}

static DECLARE_WORK(tw_clockset_worker, tw_clockset_work);

static void tw_clockset_irq(struct irq_work *work)
{
	queue_work(system_highpri_wq, &tw_clockset_worker);
}

static DEFINE_IRQ_WORK(tw_clockset_irq_work, tw_clockset_irq);

static int tw_clockset_notify(struct notifier_block *nb, unsigned long was_set, void *timekeeper)
{
	if (was_set)
		irq_work_queue(&tw_clockset_irq_work);
	return NOTIFY_OK;
}

static struct notifier_block tw_clockset_notifier = {
	.notifier_call = tw_clockset_notify,
};

/**
 * tw_clockset_join - report from now on when the clock is set
 * @file: the file, which has not joined before
 *
 * Context: process.
 */
void tw_clockset_join(struct tw_file *file)
{
	struct tw_clockset *clockset = &file->clockset;

	clockset->offset = tw_clockset_offset();
	spin_lock(&tw_clockset_lock);
	if (!tw_clockset_registered)
		pvclock_gtod_register_notifier(&tw_clockset_notifier);
	tw_clockset_registered = true;
	clockset->generation = tw_clockset_generation;
	list_add_tail(&clockset->list, &tw_clockset_files);
	spin_unlock(&tw_clockset_lock);
	/* Pairs with the acquire in tw_clockset_enabled(); litmus publish. */
	smp_store_release(&clockset->enabled, true);
	/* The clock may have been set before the file was in the list. */
	tw_clockset_check(file);
}

/**
 * tw_clockset_leave - undo tw_clockset_join(), if it was called
 * @file: the file, which is being closed and will be freed after a grace period
 */
void tw_clockset_leave(struct tw_file *file)
{
	if (!tw_clockset_enabled(file))
		return;
	spin_lock(&tw_clockset_lock);
	list_del(&file->clockset.list);
	spin_unlock(&tw_clockset_lock);
}

/**
 * tw_clockset_exit - stop listening, and wait for the irq_work and the work
 *
 * Context: process, may sleep; all files are closed.
 */
void tw_clockset_exit(void)
{
	if (tw_clockset_registered)
		pvclock_gtod_unregister_notifier(&tw_clockset_notifier);
	irq_work_sync(&tw_clockset_irq_work);
	cancel_work_sync(&tw_clockset_worker);
}
