// SPDX-License-Identifier: GPL-2.0
/*
 * wheel.c, tw_first_slot(): finds the nearest slot of a level after the cursor that is not empty,
 * however the level wraps around, without skipping any.
 *
 * Assumed: levels and slots as tw_wheel_init() makes them (levels.c); slots that are not empty
 * belong to the 2 * S slots from the cursor's slot (place.c, next-job.c); ticks end long before
 * 2^64 (fire-tick.c).
 */
#include "proof.h"
#include "wheel.c"

/* Nothing */
void proof_assume_set(unsigned long bit)
{
}

int main(void)
{
	struct tw_wheel w = {
		.shift = proof_within(3, 12),
		.cursor = proof_within(0, U64_MAX - TW_SLACK_MAX / 2),
		.busy = nondet_u32(),
	};
	unsigned int level = proof_within(0, 20), base;
	u64 from, slot, near, busy = w.busy;
	bool any;

	w.level_size = 2U << w.shift;
	ASSUME(level * w.shift < 64);
	base = level * w.level_size;
	from = w.cursor >> (level * w.shift);
	near = proof_within(from, from + w.level_size - 1);
	/* It exists, or the bit of another level stands for none at all. */
	proof_witness = nondet_bool() ? base + (near & (w.level_size - 1)) : base + w.level_size;

	any = tw_first_slot(&w, level, &slot);
	if (proof_witness < base + w.level_size) {
		PROVE(any, "a slot that is not empty is found");
		PROVE(slot <= near, "none is skipped");
		PROVE(w.busy == busy, "its level stays busy");
	}
	if (any) {
		PROVE(slot >= from && slot - from < w.level_size, "one of the 2 * S slots");
		PROVE((slot & (w.level_size - 1)) == proof_found - base, "that is not empty");
	} else {
		PROVE(w.busy == (busy & ~BIT(level)), "only this level is not busy any more");
	}
	CASE(any && slot == near && near - from > 5 && (slot & (w.level_size - 1)) == 1);
	CASE(any && slot < near);
	CASE(!any);
	return 0;
}
