// SPDX-License-Identifier: GPL-2.0-only
/*
 * Monitors: descriptors that return a copy of every event that a wheel delivers.
 *
 * A monitor is a cursor in its wheel's log and a reference to that log; see log.c. It holds no
 * reference to the wheel. After the wheel is closed, the monitor returns its remaining events and
 * then end of file (read returns 0).
 *
 * Only one reader of a monitor reads at a time (tw_monitor.reading, a mutex, which is held while
 * user memory is written). It reads some events, copies them to user memory with the log
 * unlocked, and advances the cursor past the copied events. Therefore a copy that faults loses no
 * event.
 *
 * A wheel does not wait for its monitors. Another user may have the descriptor of a monitor and
 * wait for it in any number of places: 100,000 entries of epoll take only memory of that user, but
 * the wake-up takes about 20 ms in a turn of the wheel. Therefore, after a wake-up has taken long,
 * a worker does the following wake-ups until none has taken long for a while. It wakes the readers
 * of one log after another, and pauses after each wake-up that took long. Such logs delay each
 * other, and all of them together use less than half of one CPU. The kernel disables interrupts
 * during a wake-up.
 */
#include <linux/anon_inodes.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "internal.h"
#include "log.h"
#include "memory.h"
#include "monitor.h"

/* Length of a monitor if the caller does not choose one. */
#define TW_MONITOR_DEFAULT	1024U

/* The longest wake-up in a turn. After a longer one, the worker does the following wake-ups. */
#define TW_MONITOR_WAKE_NS	(50 * NSEC_PER_USEC)

/* The minimum time for which the worker does them, in jiffies. */
#define TW_MONITOR_CROWDED	(10 * HZ)

/* The longest time that counts for a wake-up; in a longer time the machine may have paused. */
#define TW_MONITOR_TOOK_NS	NSEC_PER_SEC

/**
 * struct tw_monitor - a monitor
 * @log: the log of its wheel; holds a reference
 * @reading: serializes readers
 * @cursor: its position in the log; changed with @reading held
 */
struct tw_monitor {
	struct tw_log *log;
	struct mutex reading;	/* one reader at a time */
	struct tw_cursor cursor;
};

static struct workqueue_struct *tw_monitor_wq;

/**
 * tw_monitor_init - create the workqueue
 *
 * Return: 0 or -ENOMEM.
 */
int __init tw_monitor_init(void)
{
	tw_monitor_wq = alloc_ordered_workqueue("timerwheel-log", 0);
	return tw_monitor_wq ? 0 : -ENOMEM;
}

/**
 * tw_monitor_exit - destroy the workqueue
 *
 * Context: process, may sleep; all files were freed and all monitors closed.
 */
void tw_monitor_exit(void)
{
	destroy_workqueue(tw_monitor_wq);
}

/* Number of context switches of the current task. There are none in a soft interrupt. */
static unsigned long tw_monitor_switches(void)
{
	return current->nvcsw + current->nivcsw;
}

/*
 * Wake the readers of a log. Returns the time that it took, in ns, at most TW_MONITOR_TOOK_NS; 0:
 * it did not take long, or the time is unknown because another task ran in between, perhaps a
 * reader.
 */
static u64 tw_monitor_wake_log(struct tw_log *log)
{
	unsigned long switches = tw_monitor_switches();
	u64 took = ktime_get_ns();

	tw_log_wake(log, EPOLLIN | EPOLLRDNORM);
	took = ktime_get_ns() - took;
	if (likely(took <= TW_MONITOR_WAKE_NS) || switches != tw_monitor_switches())
		return 0;
	WRITE_ONCE(log->crowded_at, get_jiffies_64());
	WRITE_ONCE(log->crowded, true);
	return min_t(u64, took, TW_MONITOR_TOOK_NS);
}

static void tw_monitor_work(struct work_struct *work)
{
	struct tw_log *log = container_of(work, struct tw_log, wake);
	unsigned long pause = tw_monitor_wake_log(log) * 3 / 2 / NSEC_PER_USEC;

	if (pause)
		usleep_range_state(pause, 2 * pause, TASK_IDLE);
	else if (time_after64(get_jiffies_64(), READ_ONCE(log->crowded_at) + TW_MONITOR_CROWDED))
		WRITE_ONCE(log->crowded, false);
}

/**
 * tw_monitor_wake - wake the readers of all monitors of a file
 * @file: the file, which has or had monitors
 *
 * Context: softirq or process; no raw lock held.
 */
void tw_monitor_wake(struct tw_file *file)
{
	struct tw_log *log = READ_ONCE(file->events.log);

	/* Its barrier pairs with those in wait_event() and tw_monitor_poll(); litmus readers. */
	if (!wq_has_sleeper(&log->readers))
		return;
	if (unlikely(READ_ONCE(log->crowded)))
		queue_work(tw_monitor_wq, &log->wake);
	else
		tw_monitor_wake_log(log);
}

/* Read at most @room events. Returns bytes; 0: end of file; -EAGAIN: no event; -EFAULT. */
static ssize_t tw_monitor_copy(struct tw_monitor *monitor, struct iov_iter *to, size_t room)
{
	struct timerwheel_event event[TW_LOG_COPY] __uninitialized;
	unsigned int max = TW_LOG_COPY;
	size_t copied, done = 0;
	int n;

	while (done < room) {
		n = tw_log_peek(monitor->log, &monitor->cursor, event,
				min_t(size_t, room - done, max));
		if (n <= 0)
			return done ? done * sizeof(*event) : n;
		copied = copy_to_iter(event, n * sizeof(*event), to);
		iov_iter_revert(to, copied % sizeof(*event));
		tw_log_take(&monitor->cursor, copied / sizeof(*event));
		done += copied / sizeof(*event);
		cond_resched();
		/* While events arrive, this might never end. */
		if (done && signal_pending(current))
			return done * sizeof(*event);
		if (copied == n * sizeof(*event))
			continue;
		if (n == 1)
			return done ? done * sizeof(*event) : -EFAULT;
		/* Copy one at a time from now on: see tw_events_read(). */
		max = 1;
	}
	return done * sizeof(*event);
}

static ssize_t tw_monitor_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct tw_monitor *monitor = iocb->ki_filp->private_data;
	struct tw_log *log = monitor->log;
	bool nowait = iocb->ki_filp->f_flags & O_NONBLOCK || iocb->ki_flags & IOCB_NOWAIT;
	size_t room = iov_iter_count(to) / sizeof(struct timerwheel_event);
	ssize_t ret;

	if (!room)
		return -EINVAL;
	do {
		if (!tw_log_ready(log, &monitor->cursor)) {
			if (nowait)
				return -EAGAIN;
			ret = wait_event_interruptible(log->readers,
						       tw_log_ready(log, &monitor->cursor));
			if (ret)
				return ret;
		}
		if (nowait ? !mutex_trylock(&monitor->reading) :
			     mutex_lock_interruptible(&monitor->reading))
			return nowait ? -EAGAIN : -ERESTARTSYS;
		ret = tw_monitor_copy(monitor, to, room);
		mutex_unlock(&monitor->reading);
		/* Another reader was faster: wait again. */
	} while (ret == -EAGAIN);
	return ret;
}

static __poll_t tw_monitor_poll(struct file *filp, poll_table *wait)
{
	struct tw_monitor *monitor = filp->private_data;
	__poll_t mask = 0;

	poll_wait(filp, &monitor->log->readers, wait);
	/* Pairs with the barrier of wq_has_sleeper() in tw_monitor_wake(); litmus readers. */
	smp_mb();
	if (tw_log_ready(monitor->log, &monitor->cursor))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(monitor->log->closed))
		mask |= EPOLLHUP;
	return mask;
}

/* Memory of a monitor besides its log. */
static size_t tw_monitor_size(void)
{
	return tw_alloc_size(sizeof(struct tw_monitor));
}

static void tw_monitor_free(struct tw_monitor *monitor)
{
	struct tw_log *log = monitor->log;

	if (monitor->cursor.events)
		tw_log_detach(log);
	tw_free(monitor, sizeof(*monitor));
	tw_log_uncharge(log, tw_monitor_size());
	tw_log_put(log);
}

static int tw_monitor_release(struct inode *inode, struct file *filp)
{
	tw_monitor_free(filp->private_data);
	return 0;
}

static const struct file_operations tw_monitor_fops = {
	.owner		= THIS_MODULE,
	.release	= tw_monitor_release,
	.read_iter	= tw_monitor_read,
	.poll		= tw_monitor_poll,
	.llseek		= noop_llseek,
};

/* Get a reference to the file's log, or create the log. Returns it or an error. */
static struct tw_log *tw_monitor_log(struct tw_file *file)
{
	struct tw_log *log;

	mutex_lock(&file->mutex);
	log = file->events.log;
	if (!log) {
		log = tw_log_make(file->user);
		if (IS_ERR(log))
			goto unlock;
		INIT_WORK(&log->wake, tw_monitor_work);
		/* Pairs with the address dependency in tw_log_active(); litmus dependency. */
		smp_store_release(&file->events.log, log);
	}
	refcount_inc(&log->refs);
unlock:
	mutex_unlock(&file->mutex);
	return log;
}

/* Create a monitor, not attached yet. Returns it or an error. */
static struct tw_monitor *tw_monitor_make(struct tw_file *file)
{
	struct tw_log *log = tw_monitor_log(file);
	struct tw_monitor *monitor;
	int err;

	if (IS_ERR(log))
		return ERR_CAST(log);
	err = tw_log_charge(log, tw_monitor_size());
	if (err)
		goto put;
	monitor = tw_alloc(sizeof(*monitor));
	if (!monitor) {
		err = -ENOMEM;
		goto uncharge;
	}
	mutex_init(&monitor->reading);
	monitor->log = log;
	return monitor;

uncharge:
	tw_log_uncharge(log, tw_monitor_size());
put:
	tw_log_put(log);
	return ERR_PTR(err);
}

/**
 * tw_monitor_open - TIMERWHEEL_IOC_MONITOR
 * @file: the file, which the caller holds open
 * @arg: the argument
 *
 * Context: process, may sleep.
 * Return: a descriptor, -EINVAL, -ENOMEM, -EDQUOT, -ENOSPC, -EMFILE, -ENFILE.
 */
long tw_monitor_open(struct tw_file *file, const struct timerwheel_monitor *arg)
{
	u32 events = arg->events ? arg->events : TW_MONITOR_DEFAULT;
	struct tw_monitor *monitor;
	struct file *filp;
	int fd, err;

	if (arg->flags & ~(TIMERWHEEL_MONITOR_CLOEXEC | TIMERWHEEL_MONITOR_NONBLOCK) ||
	    events > TIMERWHEEL_RING_MAX || arg->reserved)
		return -EINVAL;
	monitor = tw_monitor_make(file);
	if (IS_ERR(monitor))
		return PTR_ERR(monitor);
	filp = anon_inode_getfile("[timerwheel-monitor]", &tw_monitor_fops, monitor,
				  O_RDONLY |
				  (arg->flags & TIMERWHEEL_MONITOR_NONBLOCK ? O_NONBLOCK : 0));
	if (IS_ERR(filp)) {
		tw_monitor_free(monitor);
		return PTR_ERR(filp);
	}
	filp->f_mode |= FMODE_NOWAIT;
	/* From now on fput() frees the monitor. */
	fd = get_unused_fd_flags(arg->flags & TIMERWHEEL_MONITOR_CLOEXEC ? O_CLOEXEC : 0);
	err = fd < 0 ? fd : tw_log_attach(file, &monitor->cursor, roundup_pow_of_two(events));
	if (err) {
		if (fd >= 0)
			put_unused_fd(fd);
		fput(filp);
		return err;
	}
	fd_install(fd, filp);
	return fd;
}
