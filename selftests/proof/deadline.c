// SPDX-License-Identifier: GPL-2.0
/*
 * clock.h: the deadline that a caller requests is computed exactly, as if in unlimited integers,
 * and then clamped to 0 ... TIMERWHEEL_TIME_MAX.
 *
 * Assumed: the clock is at most TIMERWHEEL_TIME_MAX (292 years), and the offset of a time namespace
 * less than half of this in either direction (the kernel's proc_timens_set_offset()).
 */
#include "proof.h"
#include "clock.h"

static wide clamped(wide time)
{
	return time < 0 ? 0 : time > TIMERWHEEL_TIME_MAX ? TIMERWHEEL_TIME_MAX : time;
}

int main(void)
{
	u64 time = nondet_u64(), now = proof_within(0, TIMERWHEEL_TIME_MAX);
	s64 offset = nondet_u64();
	u64 relative, absolute;

	ASSUME(offset > -(1LL << 62) && offset < 1LL << 62);
	relative = tw_clock_deadline(time, false, now, offset);
	PROVE(relative == clamped((wide)now + (s64)time), "relative: now plus the time, clamped");
	absolute = tw_clock_deadline(time, true, now, offset);
	PROVE(absolute == clamped((wide)min(time, TIMERWHEEL_TIME_MAX) - offset),
	      "absolute: the time less the offset, clamped");
	PROVE((s64)time <= 0 || relative > now || now == TIMERWHEEL_TIME_MAX,
	      "relative: later than now");
	CASE(relative == TIMERWHEEL_TIME_MAX && (s64)time > 0 && now < TIMERWHEEL_TIME_MAX / 2);
	CASE(relative == 0 && now);
	CASE(absolute == 0 && time);
	CASE(absolute == TIMERWHEEL_TIME_MAX && time < TIMERWHEEL_TIME_MAX);
	return 0;
}
