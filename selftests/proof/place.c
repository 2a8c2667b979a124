// SPDX-License-Identifier: GPL-2.0
/*
 * slots.h, __tw_place(); wheel.c, tw_wheel_open_slot(): a timer goes to the slot of its tick, in
 * the lowest level whose slots, from the cursor's slot, include this tick; the list is a list of
 * the wheel. A slot of an upper level is at least the second after the cursor's slot, so its
 * cascade may not begin yet. A slot that was empty is accounted for, with the tick from which there
 * is work.
 *
 * Assumed: ticks up to U64_MAX / w->tick, as tw_fire_tick() and the clock make them (fire-tick.c);
 * the wheel is as tw_wheel_init() made it.
 */
#include "proof.h"
#include "wheel.c"

#ifndef SHIFT
#define SHIFT	3
#endif
#define SLOTS	(1U << SHIFT)

static u32 head[(1 + 64 / SHIFT) * 2 * SLOTS];
static unsigned long occupied[BITS_TO_LONGS(ARRAY_SIZE(head))];

int main(void)
{
	struct tw_timer timers[3], *page[1] = { timers }, *t = &timers[1];
	struct tw_pool pool = { .page = page };
	unsigned int list, level, shift, place;
	u64 cursor, tick, top, from, b, first, work, before, used;
	struct tw_wheel w = {};

	tw_wheel_init(&w, &pool, head, occupied, SLOTS, proof_within(1, U64_MAX), 0);
	top = proof_division.quotient;
	cursor = proof_within(0, top);
	tick = proof_within(0, top);
	/* Its list may already have a timer. */
	used = proof_within(0, ARRAY_SIZE(head) - 1);
	head[used] = 2;
	before = nondet_u64();
	w.cursor = cursor;
	w.work = before;
	__tw_place(&w, page, 1, t, tick);

	list = t->prev & ~TW_HEAD;
	PROVE(t->prev & TW_HEAD && list < w.levels * w.level_size, "a list of the wheel");
	first = list == used ? 2 : 0;
	level = list >> (SHIFT + 1);
	shift = level * SHIFT;
	from = cursor >> shift;
	place = list & (2 * SLOTS - 1);
	/* The slot that tw_first_slot() derives from this place */
	b = from + ((place - from) & (2 * SLOTS - 1));
	tick = max(tick, cursor);
	PROVE(b == tick >> shift, "the slot of its tick");
	PROVE(!level || (tick >> (shift - SHIFT)) - (cursor >> (shift - SHIFT)) >= w.level_size,
	      "the lowest level");
	PROVE(!level || b >= from + 2, "no work before its time");
	PROVE(head[list] == 1 && t->next == first, "first in its list");
	PROVE(!first || timers[2].prev == 1, "the next one knows it");
	work = level ? (b - 1) << shift : b;
	PROVE(first || (test_bit(list, occupied) && w.busy & BIT(level)), "found by the search");
	PROVE(first || w.work == min(before, work), "work is known");
	PROVE(first || w.sooner == (work < before), "sooner work is announced");
	PROVE(!first || w.work == before, "nothing to do for a slot in use");
	PROVE(work >= cursor, "work is not before the cursor");
	CASE(level == 1 && first);
	CASE(level == w.levels - 1 && tick == top);
	CASE(!level && tick > cursor && !first);
	return 0;
}
