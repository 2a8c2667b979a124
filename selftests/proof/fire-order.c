// SPDX-License-Identifier: GPL-2.0
/*
 * slots.h, tw_fire_tick(): with slack a timer fires at the permitted tick that the largest power of
 * two divides. A timer that is postponed, or gets more slack, does not fire at an earlier tick. So
 * a timer in a slot never belongs to a tick before the slot, and may stay there (tw_can_stay() in
 * ops.h).
 *
 * With a tick of 1 ns and no bias the first tick is the deadline, so the proof covers any first
 * tick. For other ticks, a larger dividend does not have a smaller quotient.
 */
#include "proof.h"
#include "slots.h"

/* The largest power of two that divides a tick, in a comparable form: 0 is the largest */
static u64 divided_by(u64 tick)
{
	return (tick & -tick) - 1;
}

int main(void)
{
	struct tw_wheel w = { .tick = 1 };
	struct tw_timer before = {
		.deadline = proof_within(0, U64_MAX - U32_MAX),
		.slack = nondet_u32(),
	}, after = {
		.deadline = proof_within(before.deadline, U64_MAX - U32_MAX),
		.slack = nondet_u32(),
	};
	u64 fire = tw_fire_tick(&w, &before);
	u64 other = proof_within(before.deadline, before.deadline + before.slack);

	PROVE(divided_by(fire) >= divided_by(other), "slack: timers meet");
	PROVE(fire >= before.deadline && fire <= before.deadline + before.slack,
	      "slack: within the range");
	ASSUME(after.slack >= before.slack);
	PROVE(tw_fire_tick(&w, &after) >= fire, "postponed: not an earlier tick");
	CASE(fire > before.deadline && fire < before.deadline + before.slack);
	CASE(!before.deadline && before.slack);
	return 0;
}
