// SPDX-License-Identifier: GPL-2.0
/* Errors in terms of the command line. The library's texts are meant for programmers. */
#include <errno.h>

#include "cli.h"

static const char *const texts[] = {
	[EINVAL] =
		"a value is outside the limits that timerwheel info shows; TIMERWHEEL_BACKEND must be device, process or auto",
	[ENOENT] =
		"no timer has this key; see timerwheel list",
	[EEXIST] =
		"a timer with this key exists: omit --excl to replace it",
	[ESTALE] =
		"the value of the timer does not match; see timerwheel list",
	[ENOSPC] =
		"the wheel is full: remove timers, or set up a wheel with a larger capacity",
	[EDQUOT] =
		"the user who opened this wheel has reached the memory limit: close some wheels, or raise /sys/module/timerwheel/parameters/max_user_memory (timerwheel info shows both)",
	[ESHUTDOWN] =
		"the wheel was closed to new timers (drain --close): open another one",
	[EPROTO] =
		"a newer program has set this wheel up for larger events: use a newer timerwheel",
};

const char *error_text(int error)
{
	size_t number = -(long)error;

	if (number < ARRAY_SIZE(texts) && texts[number])
		return texts[number];
	return timerwheel_strerror(error);
}
