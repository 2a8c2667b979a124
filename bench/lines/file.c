// SPDX-License-Identifier: GPL-2.0
/* The module's file in user space. See file.h. */
#include "clockset.h"
#include "cpu.h"
#include "deadlines.h"
#include "events.h"
#include "file.h"
#include "internal.h"
#include "ring.h"
#include "slots.h"
#include "table.h"

u64 lines_now;

/* --- Functions of the module's other files ------------------------------------------ */

u64 ktime_get_ns(void)
{
	return lines_now;
}

struct tw_cpu *tw_cpu_obtain(struct tw_file *f, bool nowait)
{
	abort();	/* there is one base */
}

u64 tw_cpu_clock_set_back(struct tw_cpu *base, u64 now, u64 tick)
{
	abort();	/* the clock is not set */
}

void tw_cpu_program(struct tw_cpu *base)
{
	base->wheel.sooner = false;
	base->programmed = 0;
}

struct tw_cpu *tw_cpu_lock_two(struct tw_cpu *base, u32 nr)
{
	abort();	/* there is one base */
}

void tw_cpu_barrier(struct tw_file *f)
{
}

bool tw_cpu_reclaim(struct tw_file *f)
{
	return false;
}

void tw_cpu_spread(struct tw_file *f)
{
	struct tw_wheel *w = &f->cpu[0]->wheel;

	if (tw_wheel_large(w))
		tw_wheel_spread(w, shim_zeroed(w->lists * TW_STRANDS * sizeof(u32)));
}

int tw_user_charge(struct tw_user *user, size_t bytes)
{
	return 0;
}

void tw_user_hold(struct tw_user *user)
{
	(void)user;
}

void tw_user_put(struct tw_user *user)
{
	(void)user;
}

void tw_user_uncharge(struct tw_user *user, size_t bytes)
{
}

void tw_clockset_check(struct tw_file *f)
{
}

void tw_monitor_wake(struct tw_file *f)
{
}

/* --- A file --------------------------------------------------------------------------- */

struct tw_file *lines_file(u64 now, u32 ring, bool table, bool resident)
{
	unsigned int lists = tw_wheel_lists(LINES_SLOTS, LINES_TICK);
	struct tw_file *file = shim_zeroed(sizeof(*file) + sizeof(file->cpu[0]));
	struct tw_cpu *cpu = shim_zeroed(sizeof(*cpu));

	if (!file || !cpu)
		abort();
	lines_now = now;
	file->setup = (struct tw_setup){
		.clock = TIMERWHEEL_CLOCK_MONOTONIC, .slots = LINES_SLOTS, .tick = LINES_TICK,
		.capacity = TW_CAPACITY_MAX, .wake_events = 1,
	};
	tw_pool_set_entries(&file->table.pool, LINES_BITS, resident);
	tw_events_init(&file->events);
	tw_ring_init(&file->ring);
	if (tw_table_init(file) || (table && tw_table_add_deadlines(file)) ||
	    (ring && tw_ring_alloc(&file->ring, ring, 0)))
		abort();
	raw_spin_lock_init(&cpu->lock);
	cpu->file = file;
	cpu->wake_at = TW_NEVER;
	file->cpu[0] = cpu;
	tw_wheel_init(&cpu->wheel, &file->table.pool, shim_zeroed(lists * sizeof(u32)),
		      shim_zeroed(BITS_TO_LONGS(lists) * sizeof(long)), LINES_SLOTS, LINES_TICK,
		      now / LINES_TICK);
	return file;
}
