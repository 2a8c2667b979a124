/* SPDX-License-Identifier: GPL-2.0-only */
/* What time it is, and times as callers give them: part of each run, so it is inline. */
#ifndef TW_CLOCK_H
#define TW_CLOCK_H

#include <linux/minmax.h>
#include <linux/timekeeping.h>
#include <linux/timerwheel.h>
#include <linux/types.h>

#include "internal.h"

/**
 * tw_clock_deadline - turn what a caller gave into a deadline
 * @time: ns, from now or absolute
 * @absolute: which of them
 * @now: the file's time
 * @offset: tw_clock_offset()
 *
 * Return: an absolute time of the initial time namespace, at most TIMERWHEEL_TIME_MAX.
 */
static inline u64 tw_clock_deadline(u64 time, bool absolute, u64 now, u64 offset)
{
	s64 shift = offset;

	if (!absolute)
		return min(time, TIMERWHEEL_TIME_MAX - now) + now;
	time = min(time, TIMERWHEEL_TIME_MAX);
	if (likely(!shift))
		return time;
	if (shift > 0)
		return time > offset ? time - offset : 0;
	return min(time - offset, TIMERWHEEL_TIME_MAX);
}

/**
 * tw_clock_now - what time it is for a file
 * @file: the file
 *
 * Context: any. For a MANUAL file the lock of CPU part 0 makes the answer stay true.
 * Return: ns.
 */
static inline u64 tw_clock_now(const struct tw_file *file)
{
	switch (READ_ONCE(file->setup.clock)) {
	case TIMERWHEEL_CLOCK_BOOTTIME:
		return ktime_get_boottime_ns();
	case TIMERWHEEL_CLOCK_REALTIME:
		return ktime_get_real_ns();
	case TIMERWHEEL_CLOCK_MANUAL:
		return READ_ONCE(file->advanced);
	default:
		return ktime_get_ns();
	}
}

#endif /* TW_CLOCK_H */
