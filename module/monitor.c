// SPDX-License-Identifier: GPL-2.0-only
/*
 * Monitors: descriptors that see a copy of every event a wheel delivers.
 *
 * A monitor has a ring of its own in kernel memory. Whoever delivers an event copies it there while
 * the events' lock is held (so each monitor has the events in the same order); when the ring is
 * full it counts instead. Readers of a monitor take turns (@reading); what they take is
 * what they have copied, so a copy that faults loses nothing.
 *
 * A monitor does not keep the wheel: when the wheel is closed it has an end (read returns 0) once
 * what is in its ring was read. And a wheel does not wait for its monitors.
 *
 * Locks: tw_monitors (mutex) protects tw_monitor.file, in both directions of going away; the list
 * of a file's monitors is changed under it and the events' lock, and walked under the latter or
 * RCU. tw_monitor.lock is a leaf, taken inside of the events' lock.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "internal.h"
#include "memory.h"

/* Length of a ring if none is asked for. */
#define TW_MONITOR_DEFAULT	1024U

/* Events that are copied to a reader together. */
#define TW_MONITOR_EVENTS	8U

/**
 * struct tw_monitor - a monitor
 * @node: in tw_events.monitors, while @file is set
 * @rcu: to free it after the last waker has let go
 * @file: what it watches; NULL: that was closed
 * @user: who is charged for the ring
 * @reading: one reader at a time
 * @readers: who waits
 * @lock: protects all that follows
 * @missed: events there was no room for since the last that there was
 * @tail: events written, modulo 2^32
 * @head: events read, modulo 2^32; written with @reading held, too
 * @events: length of the ring, a power of two; constant
 * @event: the ring
 */
struct tw_monitor {
	struct list_head node;
	struct rcu_head rcu;
	struct tw_file *file;
	struct tw_user *user;
	struct mutex reading;		/* one reader at a time */
	wait_queue_head_t readers;
	raw_spinlock_t lock;		/* @missed, @tail, @head */
	u64 missed;
	u32 tail;
	u32 head;
	u32 events;
	struct timerwheel_event event[];
};

static DEFINE_MUTEX(tw_monitors);

static void tw_monitor_add(struct tw_monitor *monitor, const struct timerwheel_event *event)
{
	monitor->event[monitor->tail & (monitor->events - 1)] = *event;
	WRITE_ONCE(monitor->tail, monitor->tail + 1);
}

static u32 tw_monitor_room(const struct tw_monitor *monitor)
{
	return monitor->events - (monitor->tail - READ_ONCE(monitor->head));
}

/* Tell what was missed where it belongs in the order: once there is room, before what follows. */
static void tw_monitor_confess(struct tw_monitor *monitor)
{
	if (likely(!monitor->missed) || !tw_monitor_room(monitor))
		return;
	tw_monitor_add(monitor, &(struct timerwheel_event) {
		.overruns = monitor->missed,
		.flags = TIMERWHEEL_EVENT_MISSED,
	});
	WRITE_ONCE(monitor->missed, 0);
}

static void tw_monitor_push(struct tw_monitor *monitor, const struct timerwheel_event *event)
{
	raw_spin_lock(&monitor->lock);
	tw_monitor_confess(monitor);
	if (likely(tw_monitor_room(monitor)))
		tw_monitor_add(monitor, event);
	else
		WRITE_ONCE(monitor->missed, monitor->missed + 1);
	raw_spin_unlock(&monitor->lock);
}

/**
 * tw_monitor_tell - copy an event to all monitors
 * @file: whose event
 * @event: the event
 *
 * The caller calls tw_monitor_wake() once it holds no lock.
 *
 * Context: the events' lock is held.
 */
void tw_monitor_tell(struct tw_file *file, const struct timerwheel_event *event)
{
	struct tw_monitor *monitor;

	lockdep_assert_held(&file->events.lock);
	list_for_each_entry(monitor, &file->events.monitors, node)
		tw_monitor_push(monitor, event);
}

/**
 * tw_monitor_wake - wake the readers of all monitors
 * @file: whose monitors
 *
 * Context: softirq or process; no raw lock held.
 */
void tw_monitor_wake(struct tw_file *file)
{
	struct tw_monitor *monitor;

	rcu_read_lock();
	list_for_each_entry_rcu(monitor, &file->events.monitors, node) {
		/* The barrier in here pairs with those of wait_event() and tw_monitor_poll(). */
		if (wq_has_sleeper(&monitor->readers))
			wake_up_interruptible_poll(&monitor->readers, EPOLLIN | EPOLLRDNORM);
	}
	rcu_read_unlock();
}

/* Is there something to read, or an end? */
static bool tw_monitor_ready(const struct tw_monitor *monitor)
{
	return READ_ONCE(monitor->tail) != READ_ONCE(monitor->head) ||
	       READ_ONCE(monitor->missed) || !READ_ONCE(monitor->file);
}

/* Copy some events out of the ring. Returns how many. */
static unsigned int tw_monitor_peek(struct tw_monitor *monitor, struct timerwheel_event *event,
				    unsigned int max)
{
	unsigned int n, i;

	tw_lock_bh(&monitor->lock);
	tw_monitor_confess(monitor);
	n = min(max, monitor->tail - monitor->head);
	for (i = 0; i < n; i++)
		event[i] = monitor->event[(monitor->head + i) & (monitor->events - 1)];
	tw_unlock_bh(&monitor->lock);
	return n;
}

static ssize_t tw_monitor_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct tw_monitor *monitor = iocb->ki_filp->private_data;
	struct timerwheel_event event[TW_MONITOR_EVENTS] __uninitialized;
	bool nowait = iocb->ki_filp->f_flags & O_NONBLOCK || iocb->ki_flags & IOCB_NOWAIT;
	ssize_t room = iov_iter_count(to) / sizeof(*event);
	ssize_t done = 0;	/* signed, as errors are */
	unsigned int n, max = TW_MONITOR_EVENTS;
	size_t copied;
	int err;

	if (!room)
		return -EINVAL;
again:
	if (!tw_monitor_ready(monitor)) {
		if (nowait)
			return -EAGAIN;
		err = wait_event_interruptible(monitor->readers, tw_monitor_ready(monitor));
		if (err)
			return err;
	}
	if (nowait ? !mutex_trylock(&monitor->reading) :
		     mutex_lock_interruptible(&monitor->reading))
		return nowait ? -EAGAIN : -EINTR;
	err = 0;
	while (done < room && !err) {
		n = tw_monitor_peek(monitor, event, min_t(ssize_t, room - done, max));
		if (!n)
			break;
		copied = copy_to_iter(event, n * sizeof(*event), to);
		if (copied < n * sizeof(*event)) {
			iov_iter_revert(to, copied % sizeof(*event));
			/* One at a time from now on: see tw_events_read(). */
			if (n == 1)
				err = -EFAULT;
			max = 1;
		}
		n = copied / sizeof(*event);
		done += n;
		/* Who writes reads it without our lock: the room is there from now on. */
		WRITE_ONCE(monitor->head, monitor->head + n);
	}
	mutex_unlock(&monitor->reading);
	if (done)
		return done * sizeof(*event);
	if (err)
		return err;
	/* Another reader was faster, or it is the end. */
	if (READ_ONCE(monitor->file) || READ_ONCE(monitor->tail) != READ_ONCE(monitor->head))
		goto again;
	return 0;
}

static __poll_t tw_monitor_poll(struct file *filp, poll_table *wait)
{
	struct tw_monitor *monitor = filp->private_data;
	__poll_t mask = 0;

	poll_wait(filp, &monitor->readers, wait);
	/* Pairs with the barrier in wq_has_sleeper(), tw_monitor_wake(): we look after that. */
	smp_mb();
	if (tw_monitor_ready(monitor))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (!READ_ONCE(monitor->file))
		mask |= EPOLLHUP;
	return mask;
}

/*
 * Lock a file's list of monitors for changing it: so that neither who hands out events of the due
 * list is at it, nor who writes to the ring and has seen that there is no monitor.
 */
static void tw_monitors_lock(struct tw_file *file)
{
	tw_lock_bh(&file->ring.lock);
	tw_events_lock(file);
}

static void tw_monitors_unlock(struct tw_file *file)
{
	tw_events_unlock(file);
	tw_unlock_bh(&file->ring.lock);
}

/* Take a monitor out of its file's list. */
static void tw_monitor_detach(struct tw_monitor *monitor)
{
	struct tw_file *file = monitor->file;

	lockdep_assert_held(&tw_monitors);
	tw_monitors_lock(file);
	list_del_rcu(&monitor->node);
	file->events.nr_monitors--;
	tw_monitors_unlock(file);
	WRITE_ONCE(monitor->file, NULL);
}

/* How much memory a monitor for @events events takes. */
static size_t tw_monitor_memory(u32 events)
{
	return tw_alloc_size(struct_size((struct tw_monitor *)NULL, event, events));
}

static void tw_monitor_free(struct tw_monitor *monitor)
{
	tw_user_uncharge(monitor->user, tw_monitor_memory(monitor->events));
	tw_user_put(monitor->user);
	/* Someone may be about to wake its readers. */
	kvfree_rcu(monitor, rcu);
}

static int tw_monitor_release(struct inode *inode, struct file *filp)
{
	struct tw_monitor *monitor = filp->private_data;

	mutex_lock(&tw_monitors);
	if (monitor->file)
		tw_monitor_detach(monitor);
	mutex_unlock(&tw_monitors);
	tw_monitor_free(monitor);
	return 0;
}

static const struct file_operations tw_monitor_fops = {
	.owner		= THIS_MODULE,
	.release	= tw_monitor_release,
	.read_iter	= tw_monitor_read,
	.poll		= tw_monitor_poll,
	.llseek		= noop_llseek,
};

/**
 * tw_monitor_close - a file goes away: its monitors have an end
 * @file: the file
 *
 * Context: process, may sleep.
 */
void tw_monitor_close(struct tw_file *file)
{
	struct tw_monitor *monitor, *next;

	mutex_lock(&tw_monitors);
	list_for_each_entry_safe(monitor, next, &file->events.monitors, node) {
		tw_monitor_detach(monitor);
		wake_up_interruptible_poll(&monitor->readers, EPOLLIN | EPOLLHUP);
	}
	mutex_unlock(&tw_monitors);
	/* Who wakes monitors holds a reference to the file, and so has let go of its list. */
}

/* Make a monitor, charged to the user who asks. */
static struct tw_monitor *tw_monitor_make(u32 events)
{
	size_t bytes = tw_monitor_memory(events);
	struct tw_monitor *monitor;
	struct tw_user *user;
	int err;

	user = tw_user_get();
	if (!user)
		return ERR_PTR(-ENOMEM);
	err = tw_user_charge(user, bytes);
	if (err)
		goto put;
	monitor = tw_alloc(struct_size(monitor, event, events));
	if (!monitor) {
		err = -ENOMEM;
		goto uncharge;
	}
	monitor->user = user;
	monitor->events = events;
	raw_spin_lock_init(&monitor->lock);
	mutex_init(&monitor->reading);
	init_waitqueue_head(&monitor->readers);
	return monitor;

uncharge:
	tw_user_uncharge(user, bytes);
put:
	tw_user_put(user);
	return ERR_PTR(err);
}

/* Put a monitor into its file's list. Returns 0 or -ENOSPC. */
static int tw_monitor_attach(struct tw_monitor *monitor, struct tw_file *file)
{
	struct tw_events *events = &file->events;
	int err = 0;

	mutex_lock(&tw_monitors);
	if (events->nr_monitors == TIMERWHEEL_MONITORS_MAX) {
		err = -ENOSPC;
	} else {
		monitor->file = file;
		tw_monitors_lock(file);
		list_add_tail_rcu(&monitor->node, &events->monitors);
		events->nr_monitors++;
		tw_monitors_unlock(file);
	}
	mutex_unlock(&tw_monitors);
	return err;
}

/**
 * tw_monitor_open - TIMERWHEEL_IOC_MONITOR
 * @file: the file, which the caller holds open
 * @arg: what is asked for
 *
 * Context: process, may sleep.
 * Return: a descriptor, -EINVAL, -ENOMEM, -EDQUOT, -ENOSPC, -EMFILE, -ENFILE.
 */
long tw_monitor_open(struct tw_file *file, const struct timerwheel_monitor *arg)
{
	struct tw_monitor *monitor;
	struct file *filp;
	int fd, err;

	if (arg->flags & ~(TIMERWHEEL_MONITOR_CLOEXEC | TIMERWHEEL_MONITOR_NONBLOCK) ||
	    arg->events > TIMERWHEEL_RING_MAX || arg->reserved)
		return -EINVAL;
	monitor = tw_monitor_make(arg->events ? roundup_pow_of_two(arg->events) :
						TW_MONITOR_DEFAULT);
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
	/* From here on fput() frees the monitor. */
	fd = get_unused_fd_flags(arg->flags & TIMERWHEEL_MONITOR_CLOEXEC ? O_CLOEXEC : 0);
	err = fd < 0 ? fd : tw_monitor_attach(monitor, file);
	if (err) {
		if (fd >= 0)
			put_unused_fd(fd);
		fput(filp);
		return err;
	}
	fd_install(fd, filp);
	return fd;
}
