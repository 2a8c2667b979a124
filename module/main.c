// SPDX-License-Identifier: GPL-2.0-only
/* timerwheel: one file descriptor for millions of timeouts. Init and exit. */
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "alarm.h"
#include "clockset.h"
#include "internal.h"
#include "monitor.h"
#include "sock.h"
#include "user.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

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
	err = misc_register(&tw_device);
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
	misc_deregister(&tw_device);
	/* Files first: the engines must have no bases when they exit. */
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
