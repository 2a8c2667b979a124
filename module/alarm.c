// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wheels that wake the machine from suspend (TIMERWHEEL_SETUP_ALARM).
 *
 * While the machine is awake, these wheels work like other wheels. When the machine goes to sleep,
 * the module starts one alarm for all of them, on CLOCK_BOOTTIME. The kernel's alarm timers program
 * the RTC for it. After resume the engine's hrtimers find the timers that fell due, as in any
 * wheel.
 *
 * The prepare callback of a device of our own starts the alarm. All devices are prepared before the
 * first one is suspended, so the order of registration of our device and of the alarm timers'
 * device does not matter. At that point the tasks and the worker of connections (sock.c) are
 * frozen, so none of them arms a timer. If that worker has work, the machine stays awake.
 *
 * The alarm may fire while devices are still being suspended. There is no alarm for the next timer
 * then, so it ends the suspend: its timer is due, or it is time to wake readers (wake-up batching).
 *
 * The walk over all bases examines a limited number of timers in each base, and in all bases
 * together. It treats other timers as due at the first tick of their slot, so the alarm can be
 * early. The scheduler may run between two bases.
 *
 * tw_alarm_lock protects the list of files. It is inside tw_file.mutex and outside a base's lock. A
 * file leaves the list before its grace period begins (tw_release()).
 */
#include <linux/alarmtimer.h>
#include <linux/capability.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/pm.h>
#include <linux/pm_wakeup.h>
#include <linux/sched.h>

#include "alarm.h"
#include "clock.h"
#include "compat.h"
#include "events.h"
#include "internal.h"
#include "sock.h"

/* Do not suspend if the machine must wake up this soon, like the kernel's alarm timers. */
#define TW_ALARM_SOON_MS	(2 * MSEC_PER_SEC)

/* Maximum number of timers to examine in a base, with its lock held, and in all bases. */
#define TW_ALARM_BASE	4096U
#define TW_ALARM_ALL	65536U

static DEFINE_MUTEX(tw_alarm_lock);
static LIST_HEAD(tw_alarm_files);
static struct alarm tw_alarm;
static struct platform_device *tw_alarm_device;

/*
 * Lower bound of the time until a timer of a base is due, or until readers are woken for due
 * timers; TW_NEVER: there are none. @left: maximum number of timers to examine in this base and in
 * the bases that follow.
 */
static u64 tw_alarm_base_delay(struct tw_cpu *cpu, unsigned int *left)
{
	unsigned int here = min(*left, TW_ALARM_BASE);
	struct tw_wheel *w = &cpu->wheel;
	u64 now = tw_clock_now(cpu->file), tick, at;

	*left -= here;
	tw_lock_bh(&cpu->lock);
	tick = tw_wheel_first(w, &here);
	at = tick == TW_NEVER ? TW_NEVER : min_t(u64, tick * w->tick - w->bias, KTIME_MAX);
	/* If events wait, readers are woken at that time. */
	if (tw_events_any(cpu->file))
		at = min(at, cpu->wake_at);
	tw_unlock_bh(&cpu->lock);
	*left += here;
	cond_resched();
	if (at == TW_NEVER)
		return TW_NEVER;
	return at > now ? at - now : 0;
}

/* tw_alarm_base_delay() for all files. */
static u64 tw_alarm_first_delay(void)
{
	unsigned int left = TW_ALARM_ALL, nr;
	u64 first = TW_NEVER;
	struct tw_file *file;
	struct tw_cpu *cpu;

	mutex_lock(&tw_alarm_lock);
	list_for_each_entry(file, &tw_alarm_files, alarm) {
		/* The machine must stay awake. */
		if (tw_sock_waiting(file))
			first = 0;
		if (first < TW_ALARM_SOON_MS * NSEC_PER_MSEC)
			break;
		for (nr = 0; nr < nr_cpu_ids; nr++) {
			/* Pairs with the release in tw_cpu_create(); litmus publish. */
			cpu = smp_load_acquire(&file->cpu[nr]);
			if (cpu)
				first = min(first, tw_alarm_base_delay(cpu, &left));
		}
	}
	mutex_unlock(&tw_alarm_lock);
	return first;
}

static int tw_alarm_prepare(struct device *dev)
{
	u64 first = tw_alarm_first_delay();

	if (first == TW_NEVER)
		return 0;
	if (first < TW_ALARM_SOON_MS * NSEC_PER_MSEC) {
		pm_wakeup_event(dev, TW_ALARM_SOON_MS);
		return -EBUSY;
	}
	alarm_start_timer(&tw_alarm, ns_to_ktime(min_t(u64, first, KTIME_MAX)), true);
	return 0;
}

static void tw_alarm_fired(struct alarm *alarm, ktime_t now)
{
	pm_wakeup_dev_event(&tw_alarm_device->dev, TW_ALARM_SOON_MS, true);
}

static void tw_alarm_complete(struct device *dev)
{
	alarm_cancel(&tw_alarm);
}

static const struct dev_pm_ops tw_alarm_pm = {
	.prepare	= tw_alarm_prepare,
	.complete	= tw_alarm_complete,
};

static struct platform_driver tw_alarm_driver = {
	.driver = {
		.name	= TW_NAME,
		.pm	= &tw_alarm_pm,
		/* Without its driver, the device would not wake the machine. */
		.suppress_bind_attrs = true,
	},
};

/**
 * tw_alarm_init - register the device whose callbacks start and cancel the alarm
 *
 * Context: process, may sleep.
 * Return: 0 or an error.
 */
int __init tw_alarm_init(void)
{
	int err;

	alarm_init(&tw_alarm, ALARM_BOOTTIME, tw_alarm_fired);
	err = platform_driver_register(&tw_alarm_driver);
	if (err)
		return err;
	tw_alarm_device = platform_device_register_simple(TW_NAME, PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(tw_alarm_device)) {
		platform_driver_unregister(&tw_alarm_driver);
		return PTR_ERR(tw_alarm_device);
	}
	device_init_wakeup(&tw_alarm_device->dev, true);
	return 0;
}

/**
 * tw_alarm_exit - undo tw_alarm_init()
 *
 * Context: process, may sleep; all files are closed.
 */
void tw_alarm_exit(void)
{
	device_init_wakeup(&tw_alarm_device->dev, false);
	platform_device_unregister(tw_alarm_device);
	platform_driver_unregister(&tw_alarm_driver);
	alarm_cancel(&tw_alarm);
}

/**
 * tw_alarm_permitted - may the caller create a wheel that wakes the machine?
 *
 * Context: process.
 * Return: 0; -EPERM; -EOPNOTSUPP: no clock can wake this machine.
 */
int tw_alarm_permitted(void)
{
	if (!capable(CAP_WAKE_ALARM))
		return -EPERM;
	return alarmtimer_get_rtcdev() ? 0 : -EOPNOTSUPP;
}

/**
 * tw_alarm_join - let a file wake the machine from now on
 * @file: the file, which has not joined before
 *
 * Context: process, may sleep.
 */
void tw_alarm_join(struct tw_file *file)
{
	mutex_lock(&tw_alarm_lock);
	list_add_tail(&file->alarm, &tw_alarm_files);
	mutex_unlock(&tw_alarm_lock);
}

/**
 * tw_alarm_leave - undo tw_alarm_join(), if it was called
 * @file: the file, which is being closed and will be freed after a grace period
 *
 * Context: process, may sleep.
 */
void tw_alarm_leave(struct tw_file *file)
{
	if (list_empty(&file->alarm))
		return;
	mutex_lock(&tw_alarm_lock);
	list_del(&file->alarm);
	mutex_unlock(&tw_alarm_lock);
}
