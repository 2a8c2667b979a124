/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bases; see cpu.c. The functions for a base's stock of free timers (two magazines) are inline,
 * because every ADD and every end of a timer uses them.
 */
#ifndef TW_CPU_H
#define TW_CPU_H

#include <linux/lockdep.h>

#include "internal.h"

/**
 * tw_cpu_alloc - allocate a timer
 * @cpu: the base whose stock is used, locked
 * @index: set to the timer's index
 *
 * Return: the timer; NULL: no timer is free, see tw_table_grow().
 */
static inline struct tw_timer *tw_cpu_alloc(struct tw_cpu *cpu, u32 *index)
{
	struct tw_timer *t;

	lockdep_assert_held(&cpu->lock);
	if (unlikely(!cpu->free)) {
		if (cpu->spare) {
			cpu->free = cpu->spare;
			cpu->nr_free = TW_MAGAZINE;
			cpu->spare = 0;
		} else {
			cpu->free = tw_magazine_pop(&cpu->file->table, &cpu->nr_free);
			if (!cpu->free)
				return NULL;
		}
	}
	*index = cpu->free;
	t = tw_timer_at(&cpu->file->table.pool, *index);
	cpu->nr_free--;
	cpu->free = t->next;
	return t;
}

/**
 * tw_cpu_free - free a timer
 * @cpu: the base that gets it, locked
 * @index: the timer's index
 * @t: the timer, in no list and no hash chain
 */
static inline void tw_cpu_free(struct tw_cpu *cpu, u32 index, struct tw_timer *t)
{
	lockdep_assert_held(&cpu->lock);
	if (unlikely(cpu->nr_free == TW_MAGAZINE)) {
		if (cpu->spare)
			tw_magazine_push(&cpu->file->table, cpu->spare, TW_MAGAZINE);
		cpu->spare = cpu->free;
		cpu->free = 0;
		cpu->nr_free = 0;
	}
	t->next = cpu->free;
	cpu->free = index;
	cpu->nr_free++;
}

struct tw_cpu *tw_cpu_obtain(struct tw_file *file, bool nowait);
u64 tw_cpu_clock_set_back(struct tw_cpu *cpu, u64 now, u64 tick);
void tw_cpu_program(struct tw_cpu *cpu);
bool tw_cpu_run(struct tw_cpu *cpu, u64 began);
struct tw_cpu *tw_cpu_lock_two(struct tw_cpu *cpu, u32 nr);
bool tw_cpu_reclaim(struct tw_file *file);
int tw_cpu_advance(struct tw_file *file, u64 to, u64 *expired);
void tw_cpu_close(struct tw_file *file);
void tw_cpu_free_all(struct tw_file *file);
void tw_cpu_reset(struct tw_file *file);
void tw_cpu_barrier(struct tw_file *file);
void tw_cpu_spread(struct tw_file *file);

#endif /* TW_CPU_H */
