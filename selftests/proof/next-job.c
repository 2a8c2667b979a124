// SPDX-License-Identifier: GPL-2.0
/*
 * wheel.c, tw_next_job(): of all jobs that may be done now it chooses the job that is late first,
 * and a cascade before an expiry. No job is due before the tick that it sets as work. The cursor
 * that tw_wheel_collect() then sets does not pass the beginning of any slot that is not empty, and
 * is at most one slot before the slot of the job.
 *
 * Assumed: no slot that is not empty begins before the cursor (place.c for new slots, and here);
 * all assumptions of first-slot.c.
 */
#include "proof.h"
#include "wheel.c"

#ifndef SHIFT
#define SHIFT	8
#endif
#define LEVELS	((64 + SHIFT - 2) / SHIFT)

static struct tw_wheel w;

/* A slot that is not empty does not begin before the cursor; an upper slot is not the first. */
static void assume_slot(unsigned int level, u64 slot)
{
	u64 from = w.cursor >> (level * SHIFT);

	ASSUME(slot >= from && slot - from < w.level_size);
	ASSUME(slot <= U64_MAX >> (level * SHIFT));
	ASSUME(slot << (level * SHIFT) >= w.cursor);
	ASSUME(!level || slot);
}

void proof_assume_set(unsigned long bit)
{
	u64 from = w.cursor >> (proof_level * SHIFT);

	assume_slot(proof_level, from + ((bit - from) & (w.level_size - 1)));
}

int main(void)
{
	unsigned int level = LEVEL;
	u64 now = proof_within(0, U64_MAX - TW_SLACK_MAX / 2);
	u64 slot = nondet_u64(), late = slot << (level * SHIFT), work;
	struct tw_job job;
	bool any;

	w = (struct tw_wheel){
		.shift = SHIFT,
		.level_size = 2U << SHIFT,
		.levels = LEVELS,
		.cursor = proof_within(0, U64_MAX - TW_SLACK_MAX / 2),
		.busy = proof_within(0, BIT(LEVELS) - 1),
	};

	/* The witness: a slot of any level */
	assume_slot(level, slot);
	ASSUME(w.busy & BIT(level));
	proof_witness = level * w.level_size + (slot & (w.level_size - 1));
	work = level ? (slot - 1) << (level * SHIFT) : slot;

	any = tw_next_job(&w, now, &job);
	PROVE(w.work <= work, "nothing to do before the tick of work");
	PROVE(any || work > now, "a job that may be done is done");
	PROVE(w.busy & BIT(level), "its level stays busy");
	if (any) {
		PROVE(work > now || job.late <= late, "the one that is late first");
		PROVE(work > now || job.late != late || job.level >= level,
		      "a cascade before an expiry");
		PROVE(max(w.cursor, min(now + 1, job.late)) <= late,
		      "the cursor does not pass a slot");
		PROVE(max(w.cursor, min(now + 1, job.late)) >=
		      tw_work_tick(&w, job.level, job.slot), "nor is it far behind the job's");
		PROVE(w.work <= now, "there is work if there is a job");
		PROVE(job.late == job.slot << (job.level * SHIFT), "late from its first tick");
	}
	CASE(any && job.level == level && job.slot == slot && level == 2);
	CASE(any && job.level != level && job.late < late && work <= now);
	CASE(any && work > now);
	CASE(!any);
	return 0;
}
