// SPDX-License-Identifier: MIT OR GPL-2.0
/* What errors mean here, and what to do about them. */
#include <errno.h>

#include "backend.h"

const char *tw_strerror(int error)
{
	switch (error < 0 ? -error : error) {
	case 0:
		return "no error";
	case EINVAL:
		return "a value, flag or size that is not understood or outside the limits: compare with tw_info(), and TIMERWHEEL_BACKEND must be device, process or auto";
	case E2BIG:
		return "more than this kernel's module knows: load a newer timerwheel module";
	case EFAULT:
		return "an array that cannot be read or written: check its address and count";
	case ENOENT:
		return "there is none: no timer with this key, no deadline table (open with one), or no /dev/timerwheel (modprobe timerwheel, or set TIMERWHEEL_BACKEND=process)";
	case ENXIO:
	case ENODEV:
		return "the device is not there: modprobe timerwheel, or set TIMERWHEEL_BACKEND=process";
	case EEXIST:
		return "a timer with this key exists: leave TIMERWHEEL_EXCL out to replace it";
	case ESTALE:
		return "the timer has another value than the one to match: somebody changed it, look with tw_get()";
	case ENOSPC:
		return "the wheel is full, or has as many monitors as it may have: open it with a larger capacity, or remove some";
	case EDQUOT:
		return "the user has as many timers as one may have in all wheels: close some, or raise the module's limit (tw_info() tells it)";
	case ENOMEM:
		return "no memory: free some, or raise the limit of the memory cgroup";
	case EMFILE:
		return "this process has as many descriptors as it may have: close some, or raise RLIMIT_NOFILE (ulimit -n)";
	case ENFILE:
		return "the system has as many open files as it may have: raise fs.file-max";
	case EACCES:
	case EPERM:
		return "not allowed to use the device: become a member of the group that owns it, or set TIMERWHEEL_BACKEND=process";
	case EBUSY:
		return "too late to set the wheel up: it has timers already, open another one";
	case ESHUTDOWN:
		return "the wheel was closed to new timers (TIMERWHEEL_DRAIN_CLOSE): open another one";
	case EAGAIN:
		return "nothing is due: wait for the descriptor to become readable";
	case EINTR:
		return "a signal arrived before anything was done: call again";
	case ENOTTY:
		return "this is no wheel: give the path or the descriptor of /dev/timerwheel";
	case EBADF:
		return "this is no open descriptor: give one that is, of /dev/timerwheel";
	case ENOTSUP:
		return "a wheel inside the process cannot do this: load the module (modprobe timerwheel) and use TW_DEVICE";
	default:
		return "an error this library does not give: see errno(3)";
	}
}
