// SPDX-License-Identifier: GPL-2.0-only
/* The file operations of a wheel: open, close, read, poll. */
#include <linux/compat.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "alarm.h"
#include "clockset.h"
#include "cover.h"
#include "cpu.h"
#include "deadlines.h"
#include "events.h"
#include "internal.h"
#include "log.h"
#include "map.h"
#include "memory.h"
#include "ring.h"
#include "sock.h"
#include "stats.h"
#include "uring.h"
#include "user.h"

/* Frees closed files, with up to millions of timers, in a preemptible context. */
static struct workqueue_struct *tw_freeing;

/**
 * tw_file_init - create the workqueue that frees files
 *
 * Return: 0 or -ENOMEM.
 */
int __init tw_file_init(void)
{
	tw_freeing = alloc_workqueue("timerwheel-free", WQ_UNBOUND, 0);
	return tw_freeing ? 0 : -ENOMEM;
}

/**
 * tw_file_exit - wait until all closed files are freed
 *
 * Context: process, may sleep.
 */
void tw_file_exit(void)
{
	destroy_workqueue(tw_freeing);
}

static size_t tw_file_size(void)
{
	return struct_size((struct tw_file *)NULL, cpu, nr_cpu_ids);
}

static void tw_file_free(struct tw_file *file)
{
	struct tw_user *user = file->user;
	size_t charged = file->charged;

	tw_sock_free_all(file);
	tw_cpu_free_all(file);
	tw_log_put(file->events.log);
	tw_ring_free(&file->ring, file->ring.events);
	tw_table_free(&file->table);
	tw_free(file, tw_file_size());
	/* Uncharge only after all memory was freed. */
	tw_user_uncharge(user, charged);
	tw_user_count_freed(user);
	tw_user_put(user);
}

/**
 * tw_file_free_closed - free the closed wheels of a user, in the order in which they were closed
 * @work: tw_user.free
 *
 * Each wheel holds a reference to the user, which may be freed with the last wheel.
 */
void tw_file_free_closed(struct work_struct *work)
{
	struct tw_user *user = container_of(work, struct tw_user, free);
	struct tw_file *file, *next;
	LIST_HEAD(closed);

	tw_user_take_closed(user, &closed);
	/* After this no code runs their bases; litmus grace. */
	synchronize_rcu();
	tw_sock_quiesce(user);
	list_for_each_entry_safe(file, next, &closed, closed_node)
		tw_file_free(file);
}

static int tw_open(struct inode *inode, struct file *filp)
{
	struct tw_file *file;
	size_t bytes = tw_alloc_size(tw_file_size());
	struct tw_user *user;
	int err;

	/* A mode would restrict only this opener: each open creates a wheel. */
	if ((filp->f_flags & O_ACCMODE) != O_RDWR)
		return -EINVAL;
	user = tw_user_get();
	if (!user)
		return -ENOMEM;
	err = tw_user_wait(user);
	if (!err)
		err = tw_user_charge(user, bytes);
	if (err)
		goto put;
	file = tw_alloc(tw_file_size());
	if (!file) {
		err = -ENOMEM;
		goto uncharge;
	}
	file->user = user;
	file->charged = bytes;
	tw_setup_default(&file->setup);
	tw_pool_set_entries(&file->table.pool, tw_setup_generation_bits(&file->setup), false);
	tw_events_init(&file->events);
	tw_ring_init(&file->ring);
	INIT_LIST_HEAD(&file->alarm);
	mutex_init(&file->mutex);
	mutex_init(&file->advance);
	tw_cover_open(file);

	filp->private_data = file;
	filp->f_mode |= FMODE_NOWAIT;
	return stream_open(inode, filp);

uncharge:
	tw_user_uncharge(user, bytes);
put:
	tw_user_put(user);
	return err;
}

static int tw_release(struct inode *inode, struct file *filp)
{
	struct tw_file *file = filp->private_data;

	tw_cpu_close(file);
	tw_sock_close(file);
	tw_clockset_leave(file);
	tw_alarm_leave(file);
	tw_log_close(file->events.log);
	/* Otherwise the worker is already queued, for earlier wheels. */
	if (tw_user_queue_closed(file->user, &file->closed_node))
		queue_work(tw_freeing, &file->user->free);
	return 0;
}

static ssize_t tw_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct file *filp = iocb->ki_filp;
	struct tw_file *file = filp->private_data;
	bool nowait = iocb->ki_flags & IOCB_NOWAIT;
	ssize_t n;
	int err;

	if (iov_iter_count(to) < sizeof(struct timerwheel_event) || tw_has_ring(file))
		return -EINVAL;
	for (;;) {
		n = tw_events_read(file, to, nowait);
		if (n)
			return n;
		if (nowait || filp->f_flags & O_NONBLOCK)
			return -EAGAIN;
		err = wait_event_interruptible_exclusive(file->events.readers,
							 tw_events_any(file) ||
							 tw_has_ring(file));
		if (err)
			return err;
		/* A concurrent SETUP may have created a ring. */
		if (tw_has_ring(file))
			return -EINVAL;
	}
}

static __poll_t tw_poll(struct file *filp, poll_table *wait)
{
	struct tw_file *file = filp->private_data;

	poll_wait(filp, &file->events.readers, wait);
	if (unlikely(tw_clockset_enabled(file)))
		tw_clockset_check(file);
	/* Pairs with the barrier of wq_has_sleeper() in tw_events_wake(); litmus readers. */
	smp_mb();
	return tw_events_any(file) ? EPOLLIN | EPOLLRDNORM : 0;
}

static int tw_fasync(int fd, struct file *filp, int on)
{
	struct tw_file *file = filp->private_data;

	return fasync_helper(fd, filp, on, &file->events.fasync);
}

const struct file_operations tw_fops = {
	.owner		= THIS_MODULE,
	.open		= tw_open,
	.release	= tw_release,
	.read_iter	= tw_read_iter,
	.poll		= tw_poll,
	.mmap		= tw_mmap,
	.fasync		= tw_fasync,
	.unlocked_ioctl	= tw_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
#ifdef CONFIG_TIMERWHEEL_URING
	.uring_cmd	= tw_uring_cmd,
#endif
	.show_fdinfo	= tw_stats_show,
	.llseek		= noop_llseek,
};
