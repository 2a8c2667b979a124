// SPDX-License-Identifier: GPL-2.0-only
/* timerwheel: one file descriptor for millions of timeouts. Init and exit. */
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/module.h>

#include "alarm.h"
#include "clockset.h"
#include "internal.h"
#include "monitor.h"
#include "sock.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static char *tw_devnode(tw_devnode_device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0660;
	return NULL;
}

static struct class tw_class = {
	.name		= TW_NAME,
	.devnode	= tw_devnode,
};

static int tw_major;

/*
 * The device has its own number. It is not a misc device, because an open may wait for the memory
 * of the same user's closed wheels, and misc_open() holds a lock that the opens of all misc devices
 * take. These opens, also of other users, would have to wait.
 */
static int __init tw_device_init(void)
{
	struct device *dev;
	int err;

	tw_major = __register_chrdev(0, 0, 1, TW_NAME, &tw_fops);
	if (tw_major < 0)
		return tw_major;
	err = class_register(&tw_class);
	if (err)
		goto unregister;
	dev = device_create(&tw_class, NULL, MKDEV(tw_major, 0), NULL, TW_NAME);
	if (!IS_ERR(dev))
		return 0;
	err = PTR_ERR(dev);
	class_unregister(&tw_class);
unregister:
	__unregister_chrdev(tw_major, 0, 1, TW_NAME);
	return err;
}

static void __exit tw_device_exit(void)
{
	device_destroy(&tw_class, MKDEV(tw_major, 0));
	class_unregister(&tw_class);
	__unregister_chrdev(tw_major, 0, 1, TW_NAME);
}

static int __init tw_init(void)
{
	int err;

	err = tw_file_init();
	if (err)
		return err;
	err = tw_sock_init();
	if (err)
		goto exit_file;
	err = tw_monitor_init();
	if (err)
		goto exit_sock;
	err = tw_engine_init();
	if (err)
		goto exit_monitor;
	err = tw_alarm_init();
	if (err)
		goto exit_engine;
	err = tw_device_init();
	if (err)
		goto exit_alarm;
	return 0;

exit_alarm:
	tw_alarm_exit();
exit_engine:
	tw_engine_exit();
exit_monitor:
	tw_monitor_exit();
exit_sock:
	tw_sock_exit();
exit_file:
	tw_file_exit();
	return err;
}

static void __exit tw_exit(void)
{
	tw_device_exit();
	/* Free the files first: the engines must have no bases when they exit. */
	tw_file_exit();
	tw_sock_exit();
	tw_monitor_exit();
	tw_engine_exit();
	tw_clockset_exit();
	tw_alarm_exit();
}

module_init(tw_init);
module_exit(tw_exit);

MODULE_DESCRIPTION("One file descriptor for millions of timeouts: a hierarchical timing wheel");
MODULE_AUTHOR("The authors of timerwheel");
MODULE_VERSION("0.9.0");
MODULE_LICENSE("GPL");
