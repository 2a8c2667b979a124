// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What errors mean here, and what to do about them. They are for the users of programs, who know
 * nothing of the functions and constants that the programs use.
 */
#include <errno.h>

#include "backend.h"

/* A line each, so that one can look for them. */
static const char * const ltw_errors[] = {
	[0] =
		"no error",
	[EINVAL] =
		"a value, flag or size that is not understood or is outside the limits of this wheel; or TIMERWHEEL_BACKEND in the environment is not device, process or auto",
	[E2BIG] =
		"more than this kernel's module knows: load a newer timerwheel module",
	[EFAULT] =
		"the program has given memory that cannot be read or written, which is a fault of the program",
	[ENOENT] =
		"there is none: no timer with this key, no deadline table in this wheel, or no /dev/timerwheel (modprobe timerwheel, or set TIMERWHEEL_BACKEND=process)",
	[ENXIO] =
		"the device is not there: modprobe timerwheel, or set TIMERWHEEL_BACKEND=process",
	[ENODEV] =
		"the device is not there: modprobe timerwheel, or set TIMERWHEEL_BACKEND=process",
	[EEXIST] =
		"a timer with this key exists already, and was not to be replaced",
	[ESTALE] =
		"the timer has another value than expected: somebody has changed it",
	[ENOSPC] =
		"the wheel has as many timers, or as many monitors, as it may have: remove some, or make one with a larger capacity",
	[EDQUOT] =
		"this user's wheels have as much kernel memory as one user may have: close some, or let root write a larger number of bytes to /sys/module/timerwheel/parameters/max_user_memory",
	[EMLINK] =
		"too many keys collide with this one, as somebody must have chosen them to: use another key",
	[ENOMEM] =
		"no memory: free some, or raise the limit of the memory cgroup",
	[EMFILE] =
		"this process has as many descriptors as it may have: close some, or raise RLIMIT_NOFILE (ulimit -n)",
	[ENFILE] =
		"the system has as many open files as it may have: raise fs.file-max",
	[EACCES] =
		"not allowed to use the device: become a member of the group that owns it, or set TIMERWHEEL_BACKEND=process",
	[EPERM] =
		"not allowed: to use the device become a member of the group that owns it, or set TIMERWHEEL_BACKEND=process; to wake the machine from suspend one needs CAP_WAKE_ALARM",
	[EBUSY] =
		"too late to set the wheel up: it is in use already, make another one",
	[ESHUTDOWN] =
		"the wheel was closed to new timers: make another one",
	[EAGAIN] =
		"nothing is due: wait for the descriptor to become readable",
	[EINTR] =
		"a signal arrived before anything was done: try again",
	[ENOTTY] =
		"this is no wheel: give the path or the descriptor of /dev/timerwheel",
	[EBADF] =
		"this is no open descriptor, or one that is not open for writing, which all calls need that change the wheel: open /dev/timerwheel for both (in a shell: exec 3<>/dev/timerwheel)",
	[EPROTO] =
		"a newer program has set this wheel up for larger events than this library knows: install a newer libtimerwheel",
	[ENOTSUP] =
		"a wheel inside the process cannot do this: load the module (modprobe timerwheel), and do not set TIMERWHEEL_BACKEND=process; or no clock of this machine can wake it",
	[EXDEV] =
		"the deadline table is in use in another time namespace, in which the wheel's clock shows another time",
};

const char *timerwheel_strerror(int error)
{
	unsigned int number = error < 0 ? -(unsigned int)error : (unsigned int)error;
	const char *text = NULL;

	if (number < sizeof(ltw_errors) / sizeof(*ltw_errors))
		text = ltw_errors[number];
	return text ? text : "an error that this library does not give: see errno(3)";
}
