// SPDX-License-Identifier: GPL-2.0-only
/* Open, close, read, poll: what makes a wheel a file. */
#include <linux/compat.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "internal.h"
#include "log.h"
#include "ring.h"

static int tw_open(struct inode *inode, struct file *filp)
{
	struct tw_file *file;

	file = kvzalloc(struct_size(file, cpu, nr_cpu_ids), GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	file->user = tw_user_get();
	if (!file->user) {
		kvfree(file);
		return -ENOMEM;
	}
	tw_setup_default(&file->setup);
	file->table.pool.generation_mask = BIT(tw_setup_generation_bits(&file->setup)) - 1;
	tw_events_init(&file->events);
	tw_ring_init(&file->ring);
	mutex_init(&file->mutex);
	mutex_init(&file->advance);

	mutex_lock(&tw_files_lock);
	list_add_tail(&file->node, &tw_files);
	mutex_unlock(&tw_files_lock);

	filp->private_data = file;
	filp->f_mode |= FMODE_NOWAIT;
	return stream_open(inode, filp);
}

static int tw_release(struct inode *inode, struct file *filp)
{
	struct tw_file *file = filp->private_data;

	mutex_lock(&tw_files_lock);
	list_del(&file->node);
	mutex_unlock(&tw_files_lock);

	tw_cpu_destroy(file);
	tw_log_close(file->events.log);
	tw_user_uncharge(file->user, file->table.made + file->ring.events);
	tw_ring_free(&file->ring);
	tw_user_put(file->user);
	tw_table_free(&file->table);
	kvfree(file);
	return 0;
}

static ssize_t tw_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct file *filp = iocb->ki_filp;
	struct tw_file *file = filp->private_data;
	bool nowait = filp->f_flags & O_NONBLOCK || iocb->ki_flags & IOCB_NOWAIT;
	ssize_t n;
	int err;

	if (iov_iter_count(to) < sizeof(struct timerwheel_event) || tw_has_ring(file))
		return -EINVAL;
	for (;;) {
		n = tw_events_read(file, to);
		if (n)
			return n;
		if (nowait)
			return -EAGAIN;
		err = wait_event_interruptible_exclusive(file->events.readers,
							 READ_ONCE(file->events.due.count) ||
							 tw_has_ring(file));
		if (err)
			return err;
		/* Set up in the meantime. */
		if (tw_has_ring(file))
			return -EINVAL;
	}
}

static __poll_t tw_poll(struct file *filp, poll_table *wait)
{
	struct tw_file *file = filp->private_data;

	poll_wait(filp, &file->events.readers, wait);
	/* Pairs with the barrier in wq_has_sleeper(), tw_events_wake(): we look after that. */
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
	.show_fdinfo	= tw_stats_show,
	.llseek		= noop_llseek,
};
