// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many timers a user may have in all wheels.
 *
 * A wheel is charged to the user who opened it, as memory for timers is first used,
 * and gives all back when it is closed.
 */
#include <linux/cred.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "internal.h"

static unsigned long max_user_timers = 1UL << 24;
module_param(max_user_timers, ulong, 0644);
MODULE_PARM_DESC(max_user_timers, "Most timers one user may have in all wheels (16777216)");

static DEFINE_MUTEX(tw_users_lock);
static DEFINE_XARRAY(tw_users);		/* tw_users_lock */

/**
 * tw_user_get - find or make the calling user
 *
 * Context: process, may sleep.
 * Return: the user, or NULL without memory. Give it back with tw_user_put().
 */
struct tw_user *tw_user_get(void)
{
	kuid_t uid = current_uid();
	struct tw_user *user;

	mutex_lock(&tw_users_lock);
	user = xa_load(&tw_users, __kuid_val(uid));
	if (!user) {
		user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
		if (!user)
			goto unlock;
		user->uid = uid;
		spin_lock_init(&user->lock);
		if (xa_err(xa_store(&tw_users, __kuid_val(uid), user, GFP_KERNEL_ACCOUNT))) {
			kfree(user);
			user = NULL;
			goto unlock;
		}
	}
	user->files++;
unlock:
	mutex_unlock(&tw_users_lock);
	return user;
}

/**
 * tw_user_hold - one more reference
 * @user: the user, who cannot go away meanwhile
 *
 * Context: process, may sleep. Give it back with tw_user_put().
 */
void tw_user_hold(struct tw_user *user)
{
	mutex_lock(&tw_users_lock);
	user->files++;
	mutex_unlock(&tw_users_lock);
}

/**
 * tw_user_put - drop a reference of tw_user_get() or tw_user_hold()
 * @user: the user
 *
 * Context: process, may sleep.
 */
void tw_user_put(struct tw_user *user)
{
	mutex_lock(&tw_users_lock);
	if (!--user->files) {
		WARN_ON_ONCE(user->timers);
		xa_erase(&tw_users, __kuid_val(user->uid));
		kfree(user);
	}
	mutex_unlock(&tw_users_lock);
}

/**
 * tw_user_charge - account for timers
 * @user: to whom
 * @timers: how many are wanted
 *
 * Return: how many of them there is room for.
 */
u32 tw_user_charge(struct tw_user *user, u32 timers)
{
	u64 max = tw_user_timers_max();

	spin_lock(&user->lock);
	if (user->timers >= max)
		timers = 0;
	else
		timers = min_t(u64, timers, max - user->timers);
	user->timers += timers;
	spin_unlock(&user->lock);
	return timers;
}

/**
 * tw_user_uncharge - give back
 * @user: to whom they were charged
 * @timers: how many
 */
void tw_user_uncharge(struct tw_user *user, u32 timers)
{
	spin_lock(&user->lock);
	user->timers -= timers;
	spin_unlock(&user->lock);
}

/**
 * tw_user_timers - how many are charged
 * @user: to whom
 *
 * Return: the number.
 */
u64 tw_user_timers(struct tw_user *user)
{
	u64 timers;

	spin_lock(&user->lock);
	timers = user->timers;
	spin_unlock(&user->lock);
	return timers;
}

/**
 * tw_user_timers_max - how many there may be for each user
 *
 * Return: the number; the administrator may change it at any time.
 */
u64 tw_user_timers_max(void)
{
	return READ_ONCE(max_user_timers);
}
