// SPDX-License-Identifier: GPL-2.0
/*
 * wheel.c, tw_wheel_levels(), tw_wheel_lists(), tw_wheel_init(): the levels cover each tick of
 * 64-bit time with the minimum number of levels, no shift is by 64 or more, numbers of lists fit
 * beside TW_HEAD, and "reach" has the lowest level for each distance.
 *
 * Assumed: slots as SETUP grants them (setup.c), any tick except 0.
 */
#include "proof.h"
#include "wheel.c"

#define SLOTS_LOG2_MIN	3
#define SLOTS_LOG2_MAX	12
static_assert(TW_SLOTS_MIN == 1 << SLOTS_LOG2_MIN && TW_SLOTS_MAX == 1 << SLOTS_LOG2_MAX);

int main(void)
{
	u64 tick = proof_within(1, U64_MAX);
	unsigned int shift, bit, high;
	struct tw_wheel w;
	u64 top;

	for (shift = SLOTS_LOG2_MIN; shift <= SLOTS_LOG2_MAX; shift++) {
		w = (struct tw_wheel){};
		tw_wheel_init(&w, NULL, NULL, NULL, 1U << shift, tick, 0);
		top = proof_division.quotient;
		PROVE(w.levels >= 1 && w.levels <= 21, "at most 21 levels");
		PROVE(BIT(w.levels - 1) <= U32_MAX, "a bit for each level");
		high = (w.levels - 1) * shift;
		PROVE(high < 64, "no shift by 64");
		PROVE(top >> high < w.level_size, "the last tick is in the last level");
		PROVE(w.levels == 1 || top >> (high - shift) >= w.level_size,
		      "no level is superfluous");
		PROVE(tw_wheel_lists(1U << shift, tick) * TW_STRANDS < TW_HEAD,
		      "strand numbers fit");
		PROVE(tw_wheel_lists(1U << shift, tick) == w.levels * w.level_size + TW_BACKLOGS,
		      "a list for each slot and backlog");
		PROVE(w.level_size == 1U << (shift + 1) && w.shift == shift, "2 * S slots");
		for (bit = 0; bit < 64; bit++) {
			PROVE(BIT_ULL(bit) >> w.reach[bit].shift < w.level_size,
			      "reach: far enough");
			PROVE(!w.reach[bit].shift ||
			      BIT_ULL(bit) >> (w.reach[bit].shift - shift) >= w.level_size,
			      "reach: the lowest level");
			PROVE(w.reach[bit].list * shift == w.reach[bit].shift * w.level_size,
			      "reach: list and shift of one level");
		}
		CASE(shift == SLOTS_LOG2_MIN && w.levels == 21);
		CASE(shift == SLOTS_LOG2_MAX && w.levels == 1);
	}
	return 0;
}
