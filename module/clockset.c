// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events that report that CLOCK_REALTIME was set, for files with TIMERWHEEL_SETUP_CLOCK_SET.
 *
 * The criterion is the offset of CLOCK_REALTIME from CLOCK_BOOTTIME. It changes when the clock is
 * set or a leap second is inserted, but neither in suspend nor while the clock is slewed. Each such
 * file keeps the offset that its readers know. Code that finds a different one records an event
 * (tw_clockset_check()). This is checked
 *
 * - before timers of a base are expired, so that the event comes before those of timers that fall
 *   due because of it;
 * - in read, poll and FLOW, so that they see every set before the call;
 * - in the work below, for readers that sleep.
 *
 * The waiting event is a number, tw_events.clock_sets, of sets that no reader knows of. So it needs
 * no memory and cannot be lost. It is delivered before all due timers. In a file with a ring the
 * number changes under the ring's lock, too.
 *
 * Sleeping readers
 * ----------------
 * The kernel calls tw_clockset_notify() with the timekeeper locked, where it may only start an
 * irq_work. That queues the work, which walks the files. The kernel calls such notifiers at every
 * tick, so ours is registered for the first such file. Then it stays until the module is unloaded:
 * the kernel tells all notifiers that the clock was set whenever one is registered, and that may
 * cost others more than the tick costs us (Xen's sets the clock of the hypervisor).
 *
 * tw_clockset_lock protects the list of files and is held for one file at a time. The work moves
 * each file that it has handled to the end of the list and marks it with its generation. So the
 * handled files are the tail of the list, where new files belong as well. The work enters
 * rcu_read_lock() before it releases the lock: a file leaves the list before its grace period
 * begins (tw_release()).
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
 * tw_clockset_changed - was the clock set without an event for it so far?
 * @file: a file for which tw_clockset_enabled() is true
 *
 * Return: true if so. If it is false after a time was read, that time is from before any set that
 * has no event.
 */
bool tw_clockset_changed(const struct tw_file *file)
{
	return tw_clockset_offset() != READ_ONCE(file->clockset.offset);
}

/**
 * tw_clockset_check - record an event if the clock was set
 * @file: a file for which tw_clockset_enabled() is true
 *
 * The event waits for a reader, or is in the ring, and readers are woken.
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
	/* Check again under the lock: others may notice it at the same time. */
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

/* The next file for the work, inside rcu_read_lock(). NULL, outside of it: there is none. */
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

	/* Nothing else changes it. */
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
	/* It may have been set before the file was on the list. */
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
