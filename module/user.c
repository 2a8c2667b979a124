// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much memory a user may make the kernel hold with all wheels and monitors, in bytes.
 *
 * A wheel and its monitors are charged to the user who opened it: before memory is allocated, and
 * until it is freed. A user is a kuid: user namespaces add nothing to a cap.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "internal.h"
#include "memory.h"

static unsigned long max_user_memory;	/* 0 only before tw_user_init() */

/* Half of what the machine has: one user with no memory cgroup leaves enough to all others. */
static unsigned long tw_default_memory(void)
{
	return (totalram_pages() << PAGE_SHIFT) / 2;
}

/* 0 stands for the default, which reads back as a number. */
static int tw_set_memory(const char *text, const struct kernel_param *kp)
{
	unsigned long bytes;
	int err;

	err = kstrtoul(text, 0, &bytes);
	if (!err)
		WRITE_ONCE(max_user_memory, bytes ?: tw_default_memory());
	return err;
}

static const struct kernel_param_ops tw_memory_ops = {
	.set	= tw_set_memory,
	.get	= param_get_ulong,
};

module_param_cb(max_user_memory, &tw_memory_ops, &max_user_memory, 0644);
__MODULE_PARM_TYPE(max_user_memory, "ulong");
MODULE_PARM_DESC(max_user_memory,
		 "Most bytes of kernel memory that one user may hold with all wheels (half of all)");

static DEFINE_XARRAY_FLAGS(tw_users, XA_FLAGS_ACCOUNT);

/**
 * tw_user_init - settle the cap where no module parameter has
 */
void __init tw_user_init(void)
{
	if (!max_user_memory)
		max_user_memory = tw_default_memory();
}

/* Find the user and take a reference. */
static struct tw_user *tw_user_find(unsigned long id)
{
	struct tw_user *user;

	xa_lock(&tw_users);
	user = xa_load(&tw_users, id);
	if (user)
		user->files++;
	xa_unlock(&tw_users);
	return user;
}

/**
 * tw_user_get - find or make the calling user
 *
 * Nothing is allocated under the lock: nobody waits for another user's memory.
 *
 * Context: process, may sleep.
 * Return: the user, or NULL without memory. Give it back with tw_user_put().
 */
struct tw_user *tw_user_get(void)
{
	kuid_t uid = current_uid();
	unsigned long id = __kuid_val(uid);
	struct tw_user *user, *other;

	for (;;) {
		user = tw_user_find(id);
		if (user)
			return user;
		user = tw_alloc(struct_size(user, queue, nr_cpu_ids * TW_CLOCKS));
		if (!user)
			return NULL;
		user->uid = uid;
		user->files = 1;
		spin_lock_init(&user->lock);
		init_waitqueue_head(&user->wait);
		INIT_LIST_HEAD(&user->closed);
		INIT_WORK(&user->free, tw_file_free_closed);
		other = xa_cmpxchg(&tw_users, id, NULL, user, TW_GFP);
		if (!other)
			return user;
		kvfree(user);
		if (xa_is_err(other))
			return NULL;
	}
}

/**
 * tw_user_hold - one more reference
 * @user: the user, who cannot go away meanwhile
 *
 * Give it back with tw_user_put().
 */
void tw_user_hold(struct tw_user *user)
{
	xa_lock(&tw_users);
	user->files++;
	xa_unlock(&tw_users);
}

/**
 * tw_user_put - drop a reference of tw_user_get() or tw_user_hold()
 * @user: the user
 *
 * Context: process, may sleep.
 */
void tw_user_put(struct tw_user *user)
{
	bool last;

	xa_lock(&tw_users);
	last = !--user->files;
	if (last)
		__xa_erase(&tw_users, __kuid_val(user->uid));
	xa_unlock(&tw_users);
	if (!last)
		return;
	WARN_ON_ONCE(user->memory);
	kvfree(user);
}

/**
 * tw_user_queue_closed - a wheel of the user is closed and will be freed
 * @user: the user
 * @node: the wheel's, for tw_user_take_closed()
 *
 * Return: true if it is the first since tw_user_take_closed().
 */
bool tw_user_queue_closed(struct tw_user *user, struct list_head *node)
{
	bool first;

	spin_lock(&user->lock);
	first = list_empty(&user->closed);
	list_add_tail(node, &user->closed);
	user->closing++;
	spin_unlock(&user->lock);
	return first;
}

/**
 * tw_user_take_closed - take all wheels that are closed
 * @user: the user
 * @closed: where to, the first one first; an empty list
 */
void tw_user_take_closed(struct tw_user *user, struct list_head *closed)
{
	spin_lock(&user->lock);
	list_splice_init(&user->closed, closed);
	spin_unlock(&user->lock);
}

/**
 * tw_user_count_freed - the wheel closed first is freed, and what it was charged was given back
 * @user: the user
 */
void tw_user_count_freed(struct tw_user *user)
{
	spin_lock(&user->lock);
	user->closing--;
	WRITE_ONCE(user->freed, user->freed + 1);
	spin_unlock(&user->lock);
	wake_up_all(&user->wait);
}

/**
 * tw_user_charge - charge memory that is about to be allocated
 * @user: to whom
 * @bytes: how much
 *
 * Who has closed a wheel has its share of the cap again: if that is not free yet this waits for it,
 * but not for those that are closed later: they are freed in the order in which they were closed.
 *
 * Context: process, may sleep.
 * Return: 0; -EDQUOT: that is more than the cap leaves, and nothing was charged.
 */
int tw_user_charge(struct tw_user *user, size_t bytes)
{
	u64 max = tw_user_memory_max();
	bool first = true, fits;
	u32 freed, last = 0;

	for (;;) {
		spin_lock(&user->lock);
		/* The cap may have been lowered below what is charged. */
		fits = user->memory <= max && bytes <= max - user->memory;
		if (fits)
			user->memory += bytes;
		freed = user->freed;
		if (first)
			last = freed + user->closing;
		spin_unlock(&user->lock);
		if (fits)
			return 0;
		first = false;
		if ((s32)(last - freed) <= 0 || bytes > max ||
		    wait_event_killable(user->wait, READ_ONCE(user->freed) != freed))
			return -EDQUOT;
	}
}

/**
 * tw_user_uncharge - give back memory that was freed
 * @user: to whom it was charged
 * @bytes: how much
 */
void tw_user_uncharge(struct tw_user *user, size_t bytes)
{
	spin_lock(&user->lock);
	user->memory -= bytes;
	spin_unlock(&user->lock);
}

/**
 * tw_user_memory - how much is charged
 * @user: to whom
 *
 * Return: bytes.
 */
u64 tw_user_memory(struct tw_user *user)
{
	u64 bytes;

	spin_lock(&user->lock);
	bytes = user->memory;
	spin_unlock(&user->lock);
	return bytes;
}

/**
 * tw_user_memory_max - how much may be charged to each user
 *
 * Return: bytes; the administrator may change it at any time.
 */
u64 tw_user_memory_max(void)
{
	return READ_ONCE(max_user_memory);
}
