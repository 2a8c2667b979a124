// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clocks and time namespaces.
 *
 * Inside the module all times are those of the initial time namespace; the caller's
 * offset is taken off on the way in and added on the way out.
 */
#include <linux/ktime.h>
#include <linux/nsproxy.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>

#include "clock.h"
#include "internal.h"

/**
 * tw_clock_id - which hrtimer clock drives a wheel
 * @clock: enum timerwheel_clock; not MANUAL, which has none
 *
 * Return: CLOCK_*.
 */
clockid_t tw_clock_id(u32 clock)
{
	switch (clock) {
	case TIMERWHEEL_CLOCK_BOOTTIME:
		return CLOCK_BOOTTIME;
	case TIMERWHEEL_CLOCK_REALTIME:
		return CLOCK_REALTIME;
	default:
		return CLOCK_MONOTONIC;
	}
}

/* Unlike timespec64_to_ns() for negative times, too, and inline. */
static u64 __maybe_unused tw_ns(const struct timespec64 *time)
{
	return (u64)time->tv_sec * NSEC_PER_SEC + time->tv_nsec;
}

/**
 * tw_clock_offset - what the caller's time namespace adds to a clock
 * @clock: enum timerwheel_clock
 *
 * Context: process.
 * Return: ns, to be added (modulo 2^64) to a time on its way out.
 */
u64 tw_clock_offset(u32 clock)
{
#ifdef CONFIG_TIME_NS
	const struct timens_offsets *offsets = &current->nsproxy->time_ns->offsets;

	if (clock == TIMERWHEEL_CLOCK_MONOTONIC)
		return tw_ns(&offsets->monotonic);
	if (clock == TIMERWHEEL_CLOCK_BOOTTIME)
		return tw_ns(&offsets->boottime);
#endif
	return 0;
}
