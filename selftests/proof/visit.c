// SPDX-License-Identifier: GPL-2.0
/*
 * resident.c, tw_resident_visit(): whatever programs write to the entry, at any time, a resident
 * timer does not fire or park before its deadline, and it ends in exactly one way, which the entry
 * then shows.
 *
 * Assumed: times up to TIMERWHEEL_TIME_MAX; bits and offsets as in entry.c.
 */
#define SHIM_SWAP	proof_write
void proof_write(unsigned long long *entry);

#include "proof.h"
#include "internal.h"
#include "resident.c"

static unsigned int writes;

/* A program on another CPU, before each compare-and-swap */
void proof_write(unsigned long long *entry)
{
	writes++;
	if (nondet_bool())
		*entry = nondet_u64();
}

int main(void)
{
	unsigned int bits = proof_within(TW_GENERATION_BITS_MIN, TW_GENERATION_BITS_MAX);
	u64 entry[2], *page[1] = { entry }, now = proof_within(0, TIMERWHEEL_TIME_MAX), before;
	struct tw_pool pool = { .deadlines = page };
	struct tw_timer t = { .deadline = proof_within(0, TIMERWHEEL_TIME_MAX) };
	s64 offset = nondet_u64();
	enum tw_visited visited;

	ASSUME(offset > -(1LL << 62) && offset < 1LL << 62);
	tw_pool_set_entries(&pool, bits, true);
	pool.deadlines_offset = offset;
	t.generation = nondet_u32() & pool.generation_mask & ~3U;
	entry[1] = nondet_u64();
	before = t.deadline;

	visited = tw_resident_visit(&pool, 1, &t, now);
	PROVE(t.deadline >= before, "postponed at most");
	PROVE((visited == TW_VISITED_LATER) == (t.deadline > now), "ends at its deadline only");
	if (visited == TW_VISITED_FIRED)
		PROVE((entry[1] & pool.generation_mask) ==
		      (t.generation | TIMERWHEEL_TABLE_FIRED), "fired: the entry says so");
	if (visited == TW_VISITED_PARKED)
		PROVE((entry[1] & pool.generation_mask) ==
		      (t.generation | TIMERWHEEL_TABLE_PARKED), "parked: the entry says so");
	PROVE(visited != TW_VISITED_AGAIN || writes == TW_RESIDENT_TRIES,
	      "again: only after all tries");
	CASE(visited == TW_VISITED_AGAIN);
	CASE(visited == TW_VISITED_PARKED && writes == 3);
	CASE(visited == TW_VISITED_FIRED && !writes);
	CASE(visited == TW_VISITED_FIRED && writes == TW_RESIDENT_TRIES);
	CASE(visited == TW_VISITED_LATER && writes);
	return 0;
}
