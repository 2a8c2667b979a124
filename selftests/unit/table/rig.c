// SPDX-License-Identifier: GPL-2.0
#include "rig.h"

#include "clockset.h"
#include "cpu.h"
#include "deadlines.h"
#include "fail.h"
#include "ring.h"
#include "run.h"
#include "slots.h"
#include "table.h"

/* As in cpu.c. */
#define TW_BATCH_TIMERS	128U

unsigned int shim_cpu;
long shim_allocations;
u64 rig_now;
u64 rig_charged;
bool (*rig_refuse)(void);
bool (*rig_fault)(void);
bool rig_unwritable;
bool (*rig_allow)(void);
void (*rig_gap)(void);
void (*rig_read)(const void *place);
void (*rig_hammer)(u64 *entry);
void (*rig_resched)(void);
bool (*rig_killed)(void);
void (*rig_nospec)(unsigned long index, unsigned long size);
unsigned int rig_two;

/* The file under test, and locks of its bases that each CPU took since it disabled bottom halves */
static struct tw_file *rig_file;
static unsigned int rig_taken[RIG_BASES];

/* --- Functions that shim.h declares ------------------------------------------------------- */

/* Operations in a gap have no gaps themselves. */
static void gap(void)
{
	void (*call)(void) = rig_gap;

	if (!call)
		return;
	rig_gap = NULL;
	call();
	rig_gap = call;
}

void shim_before_bucket(void)
{
	gap();
}

/* See linux/atomic.h. */
void rig_swap(u64 *place)
{
	if (rig_hammer)
		rig_hammer(place);
}

bool shim_no_memory(void)
{
	return rig_refuse && rig_refuse();
}

bool shim_fault(void)
{
	return rig_fault && rig_fault();
}

bool shim_fault_in(void)
{
	return !rig_unwritable && shim_fault();
}

/* As in gap(): not recursive. */
void shim_resched(void)
{
	void (*call)(void) = rig_resched;

	if (!call)
		return;
	rig_resched = NULL;
	call();
	rig_resched = call;
}

bool shim_killed(void)
{
	return rig_killed && rig_killed();
}

unsigned long shim_nospec(unsigned long index, unsigned long size)
{
	if (rig_nospec)
		rig_nospec(index, size);
	return index < size ? index : 0;
}

void shim_bh_disable(void)
{
	rig_taken[shim_cpu] = 0;
}

/*
 * Bottom halves stay off until the lock is there, however long another CPU holds it. So a CPU may
 * wait for two bases at most, its own one and another, before it enables them.
 */
void shim_lock(const void *lock)
{
	unsigned int nr;

	for (nr = 0; rig_file && nr < RIG_BASES; nr++) {
		if (!rig_file->cpu[nr] || lock != &rig_file->cpu[nr]->lock)
			continue;
		rig_taken[shim_cpu]++;
		CHECK(rig_taken[shim_cpu] <= 2, "CPU %u waits for %u bases with bottom halves off",
		      shim_cpu, rig_taken[shim_cpu]);
	}
}

u64 ktime_get_ns(void)
{
	return rig_now;
}

/* --- Functions of the module's other files ------------------------------------------------ */

struct tw_cpu *tw_cpu_obtain(struct tw_file *file, bool nowait)
{
	(void)file;
	(void)nowait;
	fail("a base is missing");
}

u64 tw_cpu_clock_set_back(struct tw_cpu *cpu, u64 now, u64 tick)
{
	(void)cpu;
	fail("time %llu, tick %llu: the clock is not set back here", now, tick);
}

/* The driver decides when a base is expired. */
void tw_cpu_program(struct tw_cpu *cpu)
{
	cpu->wheel.sooner = false;
}

/* As in cpu.c. */
struct tw_cpu *tw_cpu_lock_two(struct tw_cpu *cpu, u32 nr)
{
	struct tw_cpu *other = cpu->file->cpu[nr];

	CHECK(other, "there is no base %u", nr);
	raw_spin_lock(&cpu->lock);
	if (other == cpu)
		return NULL;
	raw_spin_lock(&other->lock);
	rig_two++;
	return other;
}

/* No other CPU is in a batch. */
void tw_cpu_barrier(struct tw_file *file)
{
	(void)file;
}

/* As in cpu.c; skips bases that are locked, which happens in a gap. */
bool tw_cpu_reclaim(struct tw_file *file)
{
	struct tw_cpu *cpu;
	unsigned int nr;

	gap();
	for (nr = 0; nr < RIG_BASES; nr++) {
		cpu = file->cpu[nr];
		if (!cpu || cpu->lock.word)
			continue;
		if (cpu->nr_free)
			tw_magazine_push(&file->table, cpu->free, cpu->nr_free);
		if (cpu->spare)
			tw_magazine_push(&file->table, cpu->spare, TW_MAGAZINE);
		cpu->free = 0;
		cpu->nr_free = 0;
		cpu->spare = 0;
	}
	return file->table.full;
}

/* make_base() has done it. */
void tw_cpu_spread(struct tw_file *file)
{
	(void)file;
}

int tw_user_charge(struct tw_user *user, size_t bytes)
{
	(void)user;
	if (rig_allow && !rig_allow())
		return -EDQUOT;
	rig_charged += bytes;
	return 0;
}

void tw_user_uncharge(struct tw_user *user, size_t bytes)
{
	(void)user;
	rig_charged -= bytes;
}

void tw_user_hold(struct tw_user *user)
{
	(void)user;
}

void tw_user_put(struct tw_user *user)
{
	(void)user;
}

/* No reader sleeps. */
void tw_monitor_wake(struct tw_file *file)
{
	CHECK(file->events.log, "monitors are woken without a log");
}

void tw_clockset_check(struct tw_file *file)
{
	CHECK(false, "no file has TIMERWHEEL_SETUP_CLOCK_SET");
}

/* --- A file ----------------------------------------------------------------------------------- */

bool rig_base_locked(const struct tw_file *file, unsigned int nr)
{
	return file->cpu[nr]->lock.word || file->events.lock.word || file->ring.lock.word;
}

static void *must(void *memory)
{
	CHECK(memory, "no memory");
	return memory;
}

static struct tw_cpu *make_base(struct tw_file *file, unsigned int nr)
{
	const struct tw_setup *setup = &file->setup;
	unsigned int lists = tw_wheel_lists(setup->slots, setup->tick);
	struct tw_cpu *cpu = must(shim_zeroed(sizeof(*cpu)));
	u64 tick = rig_now / setup->tick;
	u32 *heads;

	raw_spin_lock_init(&cpu->lock);
	cpu->nr = nr;
	cpu->file = file;
	cpu->wake_at = TW_NEVER;
	tw_wheel_init(&cpu->wheel, &file->table.pool, must(shim_zeroed(lists * sizeof(u32))),
		      must(shim_zeroed(BITS_TO_LONGS(lists) * sizeof(long))), setup->slots,
		      setup->tick, tick);
	/* Some wheels are large. */
	if (nr != 1) {
		heads = cpu->wheel.head;
		tw_wheel_spread(&cpu->wheel, must(shim_zeroed(lists * TW_STRANDS * sizeof(u32))));
		shim_free(heads);
	}
	tw_wheel_catch_up(&cpu->wheel, tick);
	cpu->tick_began = tick * setup->tick;
	return cpu;
}

struct tw_file *rig_make(const struct rig_setup *setup)
{
	struct tw_file *file;
	unsigned int nr;

	file = must(shim_zeroed(sizeof(*file) + RIG_BASES * sizeof(file->cpu[0])));
	file->setup = (struct tw_setup){
		.clock = TIMERWHEEL_CLOCK_MONOTONIC, .slots = setup->slots, .tick = setup->tick,
		.capacity = setup->capacity, .wake_events = 1, .ring = setup->ring,
	};
	rig_charged = 0;
	tw_events_init(&file->events);
	tw_ring_init(&file->ring);
	CHECK(!tw_table_init(file), "no memory for a table");
	tw_pool_set_entries(&file->table.pool, setup->generation_bits, setup->resident);
	if (setup->table || setup->resident) {
		CHECK(!tw_table_add_deadlines(file), "no memory for a deadline table");
		file->table.pool.deadlines_offset = setup->offset;
	}
	if (setup->ring) {
		CHECK(!tw_ring_alloc(&file->ring, setup->ring, setup->offset), "no ring");
		file->ring.events = setup->ring;
	}
	for (nr = 0; nr < setup->bases; nr++)
		file->cpu[nr] = make_base(file, nr);
	rig_file = file;
	return file;
}

void rig_free(struct tw_file *file)
{
	unsigned int nr;

	rig_file = NULL;
	for (nr = 0; nr < RIG_BASES; nr++) {
		if (!file->cpu[nr])
			continue;
		shim_free(file->cpu[nr]->wheel.head);
		shim_free(file->cpu[nr]->wheel.occupied);
		shim_free(file->cpu[nr]);
	}
	tw_ring_free(&file->ring, file->ring.events);
	tw_table_free(&file->table);
	shim_free(file);
	CHECK(!shim_allocations, "%ld allocations were not freed", shim_allocations);
}

/* As in cpu.c. */
void rig_expire(struct tw_file *file)
{
	struct tw_cpu *cpu = file->cpu[shim_cpu];
	struct tw_ctx ctx = { .file = file, .cpu = cpu, .now = rig_now };
	struct tw_due_list due;
	bool more;

	do {
		local_bh_disable();
		raw_spin_lock(&cpu->lock);
		due = (struct tw_due_list){};
		more = tw_wheel_collect(&cpu->wheel, tw_cpu_tick(cpu, rig_now), rig_now,
					TW_BATCH_TIMERS, false, false, &due);
		if (due.count && tw_has_ring(file))
			tw_flow_expire(&ctx, &due);
		else if (due.count)
			ctx.wake_readers |= tw_events_add(cpu, &due, ctx.now);
		raw_spin_unlock(&cpu->lock);
		local_bh_enable();
	} while (more);
	tw_ctx_finish(&ctx);
}
