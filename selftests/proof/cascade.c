// SPDX-License-Identifier: GPL-2.0
/*
 * wheel.c, tw_cascade(); slots.h, tw_place(): a timer of an upper slot that is opened goes to a
 * lower level. A timer that was postponed beyond the slot goes to any list except its previous
 * list. The same holds for a timer of level 0 that is visited before its deadline. So a batch ends.
 * No timer goes behind the cursor, and the rest of the slot stays in place.
 *
 * Assumed: the cursor is between the beginning of the previous slot and the beginning of this slot
 * (next-job.c), or at most at this slot on level 0; a timer does not belong to a tick before its
 * slot (place.c, fire-order.c), and a timer that is visited early does not belong to the slot of
 * level 0 (fire-tick.c).
 */
#include "proof.h"
#include "wheel.c"

#define SLOTS	(1U << SHIFT)
#define AT	(LEVEL * SHIFT)

static u32 head[(1 + 64 / SHIFT) * 2 * SLOTS];
static unsigned long occupied[BITS_TO_LONGS(ARRAY_SIZE(head))];

int main(void)
{
	struct tw_timer timers[4], *page[1] = { timers }, *t = &timers[1];
	u64 slot = proof_within(1, (U64_MAX - TW_SLACK_MAX) >> AT), begin = slot << AT, from, tick;
	unsigned int list, to, level;
	u32 next = nondet_bool() ? 2 : 0;
	struct tw_pool pool = { .page = page };
	struct tw_wheel w = {};

	tw_wheel_init(&w, &pool, head, occupied, SLOTS, 1, 0);
	list = LEVEL * w.level_size + (slot & (w.level_size - 1));
	/* Its new list may already have a timer. */
	head[proof_within(0, ARRAY_SIZE(head) - 1)] = 3;
	head[list] = 1;
	t->next = next;
	t->slack = 0;
	w.cursor = LEVEL ? proof_within((slot - 1) << AT, begin) : proof_within(0, slot);
	from = w.cursor;

	tw_cascade(&w, list, 1);
	tick = proof_division.quotient;
	ASSUME(tick >= begin + !LEVEL && tick <= U64_MAX - TW_SLACK_MAX / 2);
	to = t->prev & ~TW_HEAD;
	level = to >> (SHIFT + 1);
	/* In its old list it would be its own successor, and not the first. */
	PROVE(t->prev & TW_HEAD && to != list, "not in the list that it comes from");
	PROVE(!LEVEL || tick >> AT != slot || (t->prev & TW_HEAD && level < LEVEL),
	      "a cascade descends");
	PROVE(w.cursor == from && tick >= from, "not behind the cursor");
	PROVE(head[list] == next, "the rest stays");
	CASE(level == LEVEL && next);
	CASE(level > LEVEL);
	CASE(!level && LEVEL);
	return 0;
}
