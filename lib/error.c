// SPDX-License-Identifier: MIT OR GPL-2.0
/* What errors mean here, and what to do about them. */
#include <errno.h>

#include "backend.h"

/* A line each, so that one can look for them. */
static const char * const ltw_errors[] = {
	[0] =
		"no error",
	[EINVAL] =
		"a value, flag or size that is not understood or outside the limits: compare with timerwheel_info(), and TIMERWHEEL_BACKEND must be device, process or auto",
	[E2BIG] =
		"more than this kernel's module knows: load a newer timerwheel module",
	[EFAULT] =
		"an array that cannot be read or written: check its address and count",
	[ENOENT] =
		"there is none: no timer with this key, no deadline table (open with one), or no /dev/timerwheel (modprobe timerwheel, or set TIMERWHEEL_BACKEND=process)",
	[ENXIO] =
		"the device is not there: modprobe timerwheel, or set TIMERWHEEL_BACKEND=process",
	[ENODEV] =
		"the device is not there: modprobe timerwheel, or set TIMERWHEEL_BACKEND=process",
	[EEXIST] =
		"a timer with this key exists: leave TIMERWHEEL_EXCL out to replace it",
	[ESTALE] =
		"the timer has another value than the one to match: somebody changed it, look with timerwheel_get()",
	[ENOSPC] =
		"the wheel is full, or has as many monitors as it may have: open it with a larger capacity, or remove some",
	[EDQUOT] =
		"the user has as much memory in wheels as one may have: close some, or raise the module's max_user_memory (timerwheel_info() tells it)",
	[EMLINK] =
		"too many timers share the hash chain of this key: somebody chooses keys that collide, use another key",
	[ENOMEM] =
		"no memory: free some, or raise the limit of the memory cgroup",
	[EMFILE] =
		"this process has as many descriptors as it may have: close some, or raise RLIMIT_NOFILE (ulimit -n)",
	[ENFILE] =
		"the system has as many open files as it may have: raise fs.file-max",
	[EACCES] =
		"not allowed to use the device: become a member of the group that owns it, or set TIMERWHEEL_BACKEND=process",
	[EPERM] =
		"not allowed to use the device: become a member of the group that owns it, or set TIMERWHEEL_BACKEND=process",
	[EBUSY] =
		"too late to set the wheel up: it has timers already, open another one",
	[ESHUTDOWN] =
		"the wheel was closed to new timers (TIMERWHEEL_DRAIN_CLOSE): open another one",
	[EAGAIN] =
		"nothing is due: wait for the descriptor to become readable",
	[EINTR] =
		"a signal arrived before anything was done: call again",
	[ENOTTY] =
		"this is no wheel: give the path or the descriptor of /dev/timerwheel",
	[EBADF] =
		"this is no open descriptor, or one that is not open for writing, which all calls need that change the wheel: open /dev/timerwheel for both (in a shell: exec 3<>/dev/timerwheel)",
	[EPROTO] =
		"a newer program has set this wheel up for larger events than this library knows: link a newer one",
	[ENOTSUP] =
		"a wheel inside the process cannot do this: load the module (modprobe timerwheel) and use TIMERWHEEL_BACKEND_DEVICE; or no clock of this machine can wake it: open without alarm",
	[EXDEV] =
		"the deadline table is in use in another time namespace, where the wheel's clock says another time: adopt the wheel without it",
};

const char *timerwheel_strerror(int error)
{
	unsigned int number = error < 0 ? -(unsigned int)error : (unsigned int)error;
	const char *text = NULL;

	if (number < sizeof(ltw_errors) / sizeof(*ltw_errors))
		text = ltw_errors[number];
	return text ? text : "an error that this library does not give: see errno(3)";
}
