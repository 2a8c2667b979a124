// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cap on kernel memory that a user may hold with all wheels and monitors.
 *
 * A wheel and its monitors are charged to the user who opened the wheel, from before memory is
 * allocated until after it is freed. A user namespace does not raise the cap: see tw_user_uid().
 *
 * A user namespace that the system's root created is a container. It can have many users, so they
 * also share a cap, which is as large as the cap of one user. A container is a struct tw_user, and
 * each of its users has a reference to it.
 *
 * A charge never waits: at the cap it fails. Closed wheels are freed later, so a program that
 * closes a wheel and opens another could find the cap still in use. Therefore open() waits, with no
 * lock held (tw_user_wait()), until at least half of the cap is unused, or all wheels that the user
 * closed before the call are uncharged.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/xarray.h>

#include "internal.h"
#include "memory.h"
#include "sock.h"
#include "user.h"

static unsigned long max_user_memory;
module_param(max_user_memory, ulong, 0644);
MODULE_PARM_DESC(max_user_memory,
		 "Maximum bytes of kernel memory that a user may hold (default: 0, half of all)");

static DEFINE_XARRAY_FLAGS(tw_users, XA_FLAGS_ACCOUNT);

/*
 * The calling user. If a user namespace was not created by the system's root, all of its ids count
 * as its owner, because users may have many ids in their own namespaces (/etc/subuid). The owner of
 * the outermost such namespace counts. The ids of a container that root created are separate users.
 */
static kuid_t tw_user_uid(void)
{
	const struct user_namespace *ns;
	kuid_t uid = current_uid();

	for (ns = current_user_ns(); ns != &init_user_ns; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
	return uid;
}

/* A user namespace with more ids than this can be a container. */
#define TW_CONTAINER_IDS	16

/*
 * Does a user namespace have so many ids that they must count as one user? A namespace with few ids
 * cannot make many users. Its ids count as the ids outside, because programs such as bubblewrap let
 * any user create such namespaces as root.
 */
static bool tw_user_many_ids(const struct user_namespace *ns)
{
	/* Pairs with the barrier in map_write(), which is called once; litmus publish. */
	u32 n = smp_load_acquire(&ns->uid_map.nr_extents), i;
	u64 ids = 0;

	for (i = 0; i < n && n <= UID_GID_MAP_MAX_BASE_EXTENTS; i++)
		ids += ns->uid_map.extent[i].count;
	return n > UID_GID_MAP_MAX_BASE_EXTENTS || ids > TW_CONTAINER_IDS;
}

/*
 * The container of the calling user: the outermost namespace, if the system's root created it and
 * it has many ids, else NULL. The caller is in it.
 */
static struct user_namespace *tw_user_container(void)
{
	struct user_namespace *ns = current_user_ns();

	if (ns == &init_user_ns)
		return NULL;
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	if (!uid_eq(ns->owner, GLOBAL_ROOT_UID) || !tw_user_many_ids(ns))
		return NULL;
	return ns;
}

static size_t tw_user_size(void)
{
	return struct_size((struct tw_user *)NULL, share, nr_cpu_ids);
}

static void tw_user_free(struct tw_user *user)
{
	if (user->is_container)
		put_user_ns(user->ns);
	else if (user->container)
		tw_user_put(user->container);
	tw_free(user, tw_user_size());
}

/*
 * Find or create a user of @container (NULL: none), or the container itself: @uid is INVALID_UID. A
 * container holds its namespace, so the kernel gives the number of the namespace to no other one.
 */
static struct tw_user *__tw_user_get(struct user_namespace *container, kuid_t uid)
{
	unsigned long id = __kuid_val(uid);
	struct tw_user *user, *other;

	if (container)
		id |= (unsigned long)container->ns.inum << 32;
	for (;;) {
		xa_lock(&tw_users);
		user = xa_load(&tw_users, id);
		if (user)
			user->files++;
		xa_unlock(&tw_users);
		if (user)
			return user;
		user = tw_alloc(tw_user_size());
		if (!user)
			return NULL;
		user->id = id;
		user->is_container = !uid_valid(uid);
		user->files = 1;
		spin_lock_init(&user->lock);
		init_waitqueue_head(&user->wait);
		INIT_LIST_HEAD(&user->closed);
		INIT_WORK(&user->free, tw_file_free_closed);
		init_llist_head(&user->sock_files);
		INIT_DELAYED_WORK(&user->sock_work, tw_sock_work);
		if (user->is_container) {
			user->ns = get_user_ns(container);
		} else if (container) {
			user->container = __tw_user_get(container, INVALID_UID);
			if (!user->container) {
				tw_free(user, tw_user_size());
				return NULL;
			}
		}
		other = xa_cmpxchg(&tw_users, id, NULL, user, TW_GFP);
		if (!other)
			return user;
		tw_user_free(user);
		if (xa_is_err(other))
			return NULL;
	}
}

/**
 * tw_user_get - find or create the calling user
 *
 * Allocates with no lock held, so no user waits for another user's allocation.
 *
 * Context: process, may sleep.
 * Return: the user, with a reference for tw_user_put(); NULL without memory.
 */
struct tw_user *tw_user_get(void)
{
	return __tw_user_get(tw_user_container(), tw_user_uid());
}

/**
 * tw_user_hold - take another reference, for tw_user_put()
 * @user: the user, with a reference of the caller
 */
void tw_user_hold(struct tw_user *user)
{
	xa_lock(&tw_users);
	user->files++;
	xa_unlock(&tw_users);
}

/**
 * tw_user_put - drop a reference
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
		__xa_erase(&tw_users, user->id);
	xa_unlock(&tw_users);
	if (!last)
		return;
	WARN_ON_ONCE(user->memory || user->closing || !list_empty(&user->closed));
	tw_user_free(user);
}

/**
 * tw_user_queue_closed - queue a closed wheel to be freed
 * @user: the user who opened it
 * @node: its list node
 *
 * Return: true if the queue was empty, so that the caller must start the worker.
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
 * tw_user_take_closed - take all wheels that tw_user_queue_closed() has queued
 * @user: the user
 * @closed: an empty list, filled in the order in which the wheels were closed
 */
void tw_user_take_closed(struct tw_user *user, struct list_head *closed)
{
	spin_lock(&user->lock);
	list_splice_init(&user->closed, closed);
	spin_unlock(&user->lock);
}

/**
 * tw_user_count_freed - the oldest queued wheel was freed and uncharged
 * @user: the user
 */
void tw_user_count_freed(struct tw_user *user)
{
	spin_lock(&user->lock);
	WARN_ON_ONCE(!user->closing);
	user->closing--;
	/* tw_user_wait() is woken under the lock of the wait queue; litmus user-freed. */
	WRITE_ONCE(user->freed, user->freed + 1);
	spin_unlock(&user->lock);
	wake_up_all(&user->wait);
}

/**
 * tw_user_wait - wait for the wheels that were closed, if more than half of the cap is charged
 * @user: the user; in a container, memory charged to all of its users counts
 *
 * Only open() calls this, because it holds no lock. It does not wait for wheels that are closed
 * during the call, because wheels are freed in the order in which they were closed.
 *
 * Context: process, may sleep, no locks held.
 * Return: 0; -ERESTARTSYS: a fatal signal.
 */
int tw_user_wait(struct tw_user *user)
{
	u64 memory = tw_user_memory(user->container ?: user);
	u32 last;

	spin_lock(&user->lock);
	last = user->freed;
	if (memory > tw_user_memory_max() / 2)
		last += user->closing;
	spin_unlock(&user->lock);
	return wait_event_killable(user->wait, (s32)(READ_ONCE(user->freed) - last) >= 0);
}

static void __tw_user_uncharge(struct tw_user *user, size_t bytes)
{
	spin_lock(&user->lock);
	WARN_ON_ONCE(bytes > user->memory);
	user->memory -= bytes;
	spin_unlock(&user->lock);
}

/* Charge a user or container, but not the container of the user. Returns 0 or -EDQUOT. */
static int __tw_user_charge(struct tw_user *user, size_t bytes)
{
	u64 max = tw_user_memory_max();
	bool fits;

	spin_lock(&user->lock);
	/* The cap may have been lowered below what is charged. */
	fits = user->memory <= max && bytes <= max - user->memory;
	if (fits)
		user->memory += bytes;
	spin_unlock(&user->lock);
	return fits ? 0 : -EDQUOT;
}

/**
 * tw_user_charge - charge memory that is about to be allocated
 * @user: the user to charge, and the user's container
 * @bytes: amount
 *
 * Return: 0; -EDQUOT: a cap would be exceeded, and nothing was charged.
 */
int tw_user_charge(struct tw_user *user, size_t bytes)
{
	/* The container is charged at least as much, so normally only it can refuse. */
	int err = user->container ? __tw_user_charge(user->container, bytes) : 0;

	if (err)
		return err;
	err = __tw_user_charge(user, bytes);
	if (err && user->container)
		__tw_user_uncharge(user->container, bytes);
	return err;
}

/**
 * tw_user_uncharge - uncharge memory that was freed
 * @user: the user to whom it was charged
 * @bytes: amount
 */
void tw_user_uncharge(struct tw_user *user, size_t bytes)
{
	__tw_user_uncharge(user, bytes);
	if (user->container)
		__tw_user_uncharge(user->container, bytes);
}

/**
 * tw_user_memory - memory that is charged to a user
 * @user: the user
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
 * tw_user_memory_max - the cap, the same for each user
 *
 * Return: bytes. The administrator may change it at any time.
 */
u64 tw_user_memory_max(void)
{
	unsigned long max = READ_ONCE(max_user_memory);

	/* Half of all memory leaves enough to users outside a memory cgroup. */
	return max ?: (totalram_pages() << PAGE_SHIFT) / 2;
}
