/* SPDX-License-Identifier: GPL-2.0-only */
/* Times as callers give them: part of each operation, so it is inline. */
#ifndef TW_CLOCK_H
#define TW_CLOCK_H

#include <linux/minmax.h>
#include <linux/timerwheel.h>
#include <linux/types.h>

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

#endif /* TW_CLOCK_H */
