/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading clocks, and converting times of callers. Inline, because every batch uses it.
 *
 * Inside the module all times belong to the initial time namespace. The module subtracts the offset
 * of the caller's namespace from times passed in, and adds it to times passed out.
 */
#ifndef TW_CLOCK_H
#define TW_CLOCK_H

#include <linux/minmax.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <linux/timerwheel.h>
#include <linux/types.h>

#include "internal.h"

#ifdef CONFIG_TIME_NS
/* Works for negative times, unlike timespec64_to_ns(). */
static inline u64 tw_ns(const struct timespec64 *time)
{
	return (u64)time->tv_sec * NSEC_PER_SEC + time->tv_nsec;
}
#endif

/**
 * tw_clock_offset - offset of a clock in the caller's time namespace
 * @clock: enum timerwheel_clock
 *
 * Context: process.
 * Return: ns to add (modulo 2^64) to a time passed out.
 */
static inline u64 tw_clock_offset(u32 clock)
{
#ifdef CONFIG_TIME_NS
	const struct timens_offsets *offsets = &current->nsproxy->time_ns->offsets;

	if (likely(clock == TIMERWHEEL_CLOCK_MONOTONIC))
		return tw_ns(&offsets->monotonic);
	if (clock == TIMERWHEEL_CLOCK_BOOTTIME)
		return tw_ns(&offsets->boottime);
#endif
	return 0;
}

/**
 * tw_clock_deadline - convert a caller's time to a deadline
 * @time: ns: absolute, or relative to now (signed, negative: in the past)
 * @absolute: whether @time is absolute
 * @now: the file's time
 * @offset: tw_clock_offset()
 *
 * Return: an absolute time in the initial time namespace, at most TIMERWHEEL_TIME_MAX. A time in
 * the past stays in the past, so that lateness and periods count from it.
 */
static inline u64 tw_clock_deadline(u64 time, bool absolute, u64 now, u64 offset)
{
	s64 shift = offset;
	u64 sum = now + time;

	if (!absolute) {
		/* Usually neither is negative. */
		if (likely((s64)(time | sum) >= 0))
			return sum;
		return (s64)time < 0 ? max_t(s64, sum, 0) : TIMERWHEEL_TIME_MAX;
	}
	time = min(time, TIMERWHEEL_TIME_MAX);
	if (likely(!shift))
		return time;
	if (shift > 0)
		return time > offset ? time - offset : 0;
	return min(time - offset, TIMERWHEEL_TIME_MAX);
}

/**
 * tw_clock_read - read a clock of the kernel
 * @clock: enum timerwheel_clock, not MANUAL
 *
 * Context: any.
 * Return: ns.
 */
static inline u64 tw_clock_read(u32 clock)
{
	if (likely(clock == TIMERWHEEL_CLOCK_MONOTONIC))
		return ktime_get_ns();
	if (clock == TIMERWHEEL_CLOCK_BOOTTIME)
		return ktime_get_boottime_ns();
	return ktime_get_real_ns();
}

/**
 * tw_clock_of - current time of a file with a given clock
 * @file: the file
 * @clock: its clock
 *
 * Context: any. The time of a MANUAL file is stable while base 0 is locked.
 * Return: ns.
 */
static inline u64 tw_clock_of(const struct tw_file *file, u32 clock)
{
	if (unlikely(clock == TIMERWHEEL_CLOCK_MANUAL))
		return READ_ONCE(file->advanced);
	return tw_clock_read(clock);
}

/**
 * tw_clock_now - current time of a file
 * @file: the file
 *
 * Context: as tw_clock_of().
 * Return: ns.
 */
static inline u64 tw_clock_now(const struct tw_file *file)
{
	return tw_clock_of(file, READ_ONCE(file->setup.clock));
}

#endif /* TW_CLOCK_H */
