/* SPDX-License-Identifier: GPL-2.0-only */
/* A CPU part's stock of free timers: two magazines, part of each ADD and of each end. */
#ifndef TW_CPU_H
#define TW_CPU_H

#include <linux/lockdep.h>

#include "internal.h"

/**
 * tw_cpu_alloc - get a free timer
 * @cpu: the part whose stock is used, locked
 * @index: is set to its index
 *
 * Return: the timer; NULL: there is none, see tw_table_grow().
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
 * tw_cpu_free - give a timer back
 * @cpu: the part that gets it, locked
 * @index: the timer's index
 * @t: the timer: in no list, in no chain
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

#endif /* TW_CPU_H */
