// SPDX-License-Identifier: GPL-2.0-only
/* timerwheel: one file descriptor for millions of timeouts. Init and exit. */
#include <linux/cpuhotplug.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "internal.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* All open files, for CPU hotplug. */
DEFINE_MUTEX(tw_files_lock);
LIST_HEAD(tw_files);		/* tw_files_lock */

static enum cpuhp_state tw_hotplug;

/* A CPU has gone: runs on one of those that are left. */
static int tw_cpu_dead(unsigned int nr)
{
	struct tw_file *file;

	mutex_lock(&tw_files_lock);
	list_for_each_entry(file, &tw_files, node)
		tw_cpu_offline(file, nr);
	mutex_unlock(&tw_files_lock);
	return 0;
}

static struct miscdevice tw_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= TW_NAME,
	.fops	= &tw_fops,
	.mode	= 0660,
};

static int __init tw_init(void)
{
	int err;

	tw_user_init();
	err = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "timerwheel:dead", NULL,
					tw_cpu_dead);
	if (err < 0)
		return err;
	tw_hotplug = err;
	err = misc_register(&tw_device);
	if (err)
		cpuhp_remove_state_nocalls(tw_hotplug);
	return err;
}

static void __exit tw_exit(void)
{
	misc_deregister(&tw_device);
	cpuhp_remove_state_nocalls(tw_hotplug);
	/* Directories that kvfree_rcu() still holds are the kernel's, no code of ours runs. */
}

module_init(tw_init);
module_exit(tw_exit);

MODULE_DESCRIPTION("One file descriptor for millions of timeouts: a hashed timing wheel");
MODULE_LICENSE("GPL");
