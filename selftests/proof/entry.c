// SPDX-License-Identifier: GPL-2.0
/*
 * deadlines.h, resident.c: the contents of an entry of the deadline table. A deadline that is
 * stored and read again is rounded up by less than the resolution: it is never early, and does not
 * change when it is stored again. The generation is never 0, and differs from the generation of the
 * previous owner. An entry of a former owner has no effect, and no entry can do more than postpone.
 * The states are distinct.
 *
 * Assumed: TW_GENERATION_BITS_MIN to _MAX bits (setup.c); offsets of time namespaces below 2^62 in
 * either direction. Deadlines in the last 2^bits ns of time, in either namespace, cannot be stored:
 * they become the last deadline that can be stored.
 */
#include "proof.h"
#include "internal.h"
#include "resident.c"

int main(void)
{
	unsigned int bits = proof_within(TW_GENERATION_BITS_MIN, TW_GENERATION_BITS_MAX);
	struct tw_pool pool = {};
	struct tw_timer t = { .deadline = proof_within(0, TIMERWHEEL_TIME_MAX) };
	u64 deadline = proof_within(0, TIMERWHEEL_TIME_MAX), entry, out, any = nondet_u64(), mask;
	u32 state = proof_within(0, 3), generation;
	s64 offset = nondet_u64();
	u64 before = t.deadline;

	ASSUME(offset > -(1LL << 62) && offset < 1LL << 62);
	tw_pool_set_entries(&pool, bits, nondet_bool());
	pool.deadlines_offset = offset;
	mask = pool.generation_mask;
	t.generation = nondet_u32() & mask;
	ASSUME(!(t.generation & 3));
	generation = t.generation;

	/* The next owner */
	tw_deadline_new_owner(&pool, &t);
	PROVE(t.generation && !(t.generation & ~pool.generation_mask), "generation: fits, not 0");
	PROVE(t.generation != generation, "generation: not the former one");
	PROVE(!(t.generation & 3), "generation: leaves room for the state");
	entry = (any & ~mask) | generation | (state & 1);
	tw_deadline_apply(&pool, &t, entry);
	PROVE(t.deadline == before, "an entry of the former owner does not count");

	/* Any entry */
	tw_deadline_apply(&pool, &t, any);
	PROVE(t.deadline >= before && t.deadline <= TIMERWHEEL_TIME_MAX, "postponed at most");

	/* A deadline of the present owner */
	entry = tw_resident_encode(&pool, deadline);
	out = tw_deadline_decode(&pool, entry);
	PROVE(!(entry & mask), "the deadline leaves room for generation and state");
	PROVE(out >= deadline || entry == (TIMERWHEEL_TIME_MAX & ~mask), "never early");
	PROVE(out - deadline <= mask || out < deadline || (s64)deadline < -offset,
	      "later by less than the resolution");
	PROVE(out <= TIMERWHEEL_TIME_MAX, "a valid time");
	PROVE(tw_resident_encode(&pool, out) == entry, "the same when it goes in again");
	entry |= t.generation;
	entry |= state;
	PROVE((entry & 3) == state && ((u32)entry & mask & ~3U) == t.generation,
	      "state and generation come out again");
	PROVE(tw_deadline_valid(&pool, &t, entry) == !(state & TW_ENTRY_KERNEL),
	      "valid unless the state is the kernel's");
	PROVE(tw_resident_cancelled(&pool, &t, entry) == (state == TIMERWHEEL_TABLE_CANCELLED),
	      "cancelled is one state only");
	PROVE(tw_deadline_decode(&pool, entry) == out, "the deadline comes out again");
	CASE(out > deadline && offset > 0);
	CASE(out > deadline && offset < 0);
	CASE(t.deadline > before);
	CASE(generation + 4 > mask);
	CASE(out < deadline);
	return 0;
}
