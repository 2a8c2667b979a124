// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Descriptions of errors: what they mean here, and what to do about them. They are meant for users
 * of programs, who do not know the functions and constants that the programs use.
 */
#include <errno.h>

#include "backend.h"

/* Each on one line, so that grep finds them. */
static const char * const ltw_errors[] = {
	[0] =
		"no error",
	[EINVAL] =
		"a value, flag or size is unknown or outside the limits; the wheel was opened without a deadline table; or TIMERWHEEL_BACKEND in the environment is not device, process or auto",
	[E2BIG] =
		"the timerwheel module is too old for this request: load a newer one",
	[EFAULT] =
		"the program has passed memory that cannot be read or written: this is a bug in the program",
	[ENOENT] =
		"not found: no timer has this key or handle, the wheel was opened without a deadline table, or there is no /dev/timerwheel (modprobe timerwheel, or set TIMERWHEEL_BACKEND=process)",
	[ENXIO] =
		"there is no device: modprobe timerwheel, or set TIMERWHEEL_BACKEND=process",
	[ENODEV] =
		"there is no device: modprobe timerwheel, or set TIMERWHEEL_BACKEND=process",
	[EEXIST] =
		"a timer with this key exists already; or the timer is armed already",
	[ESTALE] =
		"the timer has a different value than the one to match: it has changed in the meantime",
	[ENOSPC] =
		"the wheel has the maximum number of timers or of monitors: remove some, or open a wheel with a larger capacity",
	[EDQUOT] =
		"the user has reached the limit on kernel memory for all wheels: close wheels, or raise /sys/module/timerwheel/parameters/max_user_memory, in bytes, as root",
	[EMLINK] =
		"too many keys collide with this one, which happens only if keys are chosen for that: use another key",
	[ENOMEM] =
		"out of memory: free some, or raise the limit of the memory cgroup, or the limit on locked memory (ulimit -l) if the program locks its memory",
	[EMFILE] =
		"this process has the maximum number of open descriptors: close some, or raise RLIMIT_NOFILE (ulimit -n)",
	[ENFILE] =
		"the system has the maximum number of open files: raise fs.file-max",
	[EACCES] =
		"not allowed to use the device: become a member of the group that owns it, or set TIMERWHEEL_BACKEND=process",
	[EPERM] =
		"not allowed: to use the device become a member of the group that owns it, or set TIMERWHEEL_BACKEND=process; a wheel that wakes the machine needs CAP_WAKE_ALARM",
	[EBUSY] =
		"the wheel is already in use and cannot be set up: open another one; or commands of the queue are not completed: wait for their results",
	[ESHUTDOWN] =
		"the wheel accepts no new timers: open another one",
	[EAGAIN] =
		"nothing is due: wait for the descriptor to become readable",
	[EINTR] =
		"a signal arrived before anything was done: try again",
	[ENOTTY] =
		"not a wheel: use the path or a descriptor of /dev/timerwheel; or the timerwheel module is too old for this request: load a newer one",
	[EBADF] =
		"the descriptor is not open: open /dev/timerwheel (in a shell: exec 3<>/dev/timerwheel)",
	[EPROTO] =
		"this wheel has larger events, or another kind of clock, event ring or deadline table, than this library knows: install a newer libtimerwheel",
	[ENOTSUP] =
		"a wheel inside the process cannot do this: load the module (modprobe timerwheel), and do not set TIMERWHEEL_BACKEND=process; or this machine cannot: no clock can wake it, its atomic operations do not allow a deadline table, or its kernel cannot abort connections (INET_DIAG_DESTROY, BPF_SYSCALL); or the socket is no TCP connection over IPv4 or IPv6",
	[ENOTSOCK] =
		"the descriptor is not a socket",
	[ENOTCONN] =
		"the socket is not connected: arm its timer when the connection is established or being opened",
	[EXDEV] =
		"the wheel was set up in another time namespace, where the wheel's clock shows a different time",
};

const char *timerwheel_strerror(int error)
{
	unsigned int number = error < 0 ? -(unsigned int)error : (unsigned int)error;
	const char *text = NULL;

	if (number < sizeof(ltw_errors) / sizeof(*ltw_errors))
		text = ltw_errors[number];
	return text ? text : "not an error of this library: see errno(3)";
}
