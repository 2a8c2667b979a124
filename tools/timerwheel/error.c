// SPDX-License-Identifier: GPL-2.0
/* What errors mean on the command line; the library's words are for those who write programs. */
#include <errno.h>

#include "cli.h"

const char *error_text(int error)
{
	switch (error) {
	case -EINVAL:
		return "a value outside of the limits, which timerwheel info shows; and TIMERWHEEL_BACKEND must be device, process or auto";
	case -ENOENT:
		return "no timer has this key; see timerwheel list";
	case -EEXIST:
		return "a timer with this key exists: omit --excl to replace it";
	case -ESTALE:
		return "the value of the timer does not match; see timerwheel list";
	case -ENOSPC:
		return "the wheel is full: remove timers, or set up a wheel with a larger capacity";
	case -EDQUOT:
		return "the wheels of the user who opened this one have as much memory as allowed: close some, or raise /sys/module/timerwheel/parameters/max_user_memory (timerwheel info shows both)";
	case -ESHUTDOWN:
		return "the wheel was closed to new timers (drain --close): open another one";
	case -EBADF:
		return "the wheel is not open for writing: open it for both, in a shell with exec 3<>/dev/timerwheel";
	case -EPROTO:
		return "a newer program has set this wheel up for larger events: use a newer timerwheel";
	default:
		return timerwheel_strerror(error);
	}
}
