// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bases: a timing wheel and a lock for each CPU that arms timers.
 *
 * Operations on timers run inside a batch (struct tw_ctx). tw_cpu_begin() locks the base of this
 * CPU. tw_cpu_end() starts the base in the engine if necessary, and unlocks it. (Both are in
 * run.h.) New timers always go to that base.
 *
 * An operation on a timer in another base also needs the lock of that base. It ends its batch and
 * is repeated in the next batch, which locks both bases before it does anything
 * (tw_cpu_lock_two()). A batch therefore waits for at most one lock besides the lock of its own
 * base, and releases no lock in the middle of an operation. Two bases are locked in the order of
 * their CPU numbers.
 *
 * The engine (engine.c) runs a base that has work (tw_cpu_run()): an expiry batch of at most
 * TW_BATCH_TIMERS timers, with the lock held throughout. A base with more work gets its next turn
 * after the others.
 *
 * A base is never started for a time in the past: work that is due now is either in progress or
 * waits for a turn.
 */
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "clock.h"
#include "clockset.h"
#include "cpu.h"
#include "deadlines.h"
#include "events.h"
#include "flow.h"
#include "internal.h"
#include "memory.h"
#include "run.h"
#include "trace.h"

/*
 * Maximum number of timers in an expiry batch, which holds the lock for about 10 us, or 21 us with
 * a ring and monitors. The rest of a turn takes as long as ten timers. With batches of half the
 * length, expiry would take a tenth longer.
 */
#define TW_BATCH_TIMERS		128U
#define TW_BATCH_RING_TIMERS	96U

/* After this many batches, detach the rest of an oversized tick: see tw_wheel_collect(). */
#define TW_DETACH_BATCHES	16U

static bool tw_is_manual(const struct tw_file *file)
{
	return file->setup.clock == TIMERWHEEL_CLOCK_MANUAL;
}

/**
 * tw_cpu_clock_set_back - stop the wheel's time after CLOCK_REALTIME was set back
 * @cpu: the base, locked
 * @now: the file's time
 * @tick: the tick of @now, which is before the wheel's current one
 *
 * A wheel cannot go back. Therefore the difference is added to its bias, and its time does not
 * advance. Timers armed before are then visited too early by that difference, and queued again. The
 * bias is limited: if the clock is set back by more than a century in total, timers are late.
 *
 * Return: the wheel's current tick.
 */
u64 tw_cpu_clock_set_back(struct tw_cpu *cpu, u64 now, u64 tick)
{
	struct tw_wheel *w = &cpu->wheel;

	lockdep_assert_held(&cpu->lock);
	w->bias = min(w->bias + (w->cursor - 1 - tick) * w->tick, TW_BIAS_MAX);
	/* By the clock, the next work begins before the time for which the base is started. */
	w->sooner = true;
	/* Otherwise readers would sleep until the clock has reached its old time again. */
	if (cpu->wake_at != TW_NEVER)
		cpu->wake_at = min(cpu->wake_at, now + cpu->file->setup.wake_ns);
	return w->cursor - 1;
}

/**
 * tw_cpu_program - start a base in its engine if it has work before its current start time
 * @cpu: the base, locked
 */
void tw_cpu_program(struct tw_cpu *cpu)
{
	struct tw_wheel *w = &cpu->wheel;
	u64 at = TW_NEVER;

	lockdep_assert_held(&cpu->lock);
	w->sooner = false;
	if (w->work != TW_NEVER)
		at = min_t(u64, w->work * w->tick - w->bias, KTIME_MAX);
	at = min(at, cpu->wake_at);
	if (at < cpu->programmed) {
		cpu->programmed = at;
		tw_engine_start(cpu, at);
	}
}

/* Run an expiry batch. Returns true if there is more work now. */
static bool tw_cpu_batch(struct tw_ctx *ctx, u64 tick, bool last)
{
	struct tw_cpu *cpu = ctx->cpu;
	struct tw_wheel *w = &cpu->wheel;
	bool ring = tw_has_ring(cpu->file);
	struct tw_due_list due = {};
	u64 cascades = w->cascades;
	struct tw_socks *socks;
	bool more;

	lockdep_assert_held(&cpu->lock);
	more = tw_wheel_collect(w, tick, ctx->now, ring ? TW_BATCH_RING_TIMERS : TW_BATCH_TIMERS,
				tw_is_manual(cpu->file), last, &due);
	if (w->cascades != cascades)
		trace_timerwheel_cascade(cpu, w->cascades - cascades);
	socks = tw_file_socks(cpu->file);
	if (unlikely(socks) && !llist_empty(&socks->todo))
		ctx->socks = true;
	if (due.count && ring)
		tw_flow_expire(ctx, &due);
	else if (due.count)
		ctx->wake_readers |= tw_events_add(cpu, &due, ctx->now);
	return more;
}

/* Number of timers that the wheel has handled so far, to count the timers of a batch. */
static u64 tw_cpu_handled(const struct tw_cpu *cpu)
{
	return cpu->wheel.expired + cpu->wheel.cascades + cpu->wheel.requeues;
}

/* Count a batch that has ended. @began and @handled are values from its beginning. */
static void tw_cpu_count_batch(struct tw_cpu *cpu, u64 began, u64 handled)
{
	struct tw_counts *counts = &cpu->counts;
	u64 took = ktime_get_ns() - began;

	counts->batches++;
	counts->batch_max_timers = max(counts->batch_max_timers, tw_cpu_handled(cpu) - handled);
	counts->batch_max_ns = max(counts->batch_max_ns, took);
}

/*
 * Lock a base and read its clock for a turn. If the clock was set, record that event first, so that
 * it precedes the events of timers that fall due because of it.
 */
static void tw_cpu_lock_for_turn(struct tw_cpu *cpu, struct tw_ctx *ctx)
	__acquires(&cpu->lock)
{
	for (;;) {
		raw_spin_lock(&cpu->lock);
		ctx->now = tw_clock_now(cpu->file);
		if (likely(!tw_clockset_enabled(cpu->file) || !tw_clockset_changed(cpu->file)))
			return;
		raw_spin_unlock(&cpu->lock);
		tw_clockset_check(cpu->file);
	}
}

/**
 * tw_cpu_run - run one expiry batch of a base, its turn
 * @cpu: the base
 * @began: the beginning of the turn, in ns of CLOCK_MONOTONIC
 *
 * Context: bottom halves off, so that the base is not freed; no lock held.
 * Return: true if the base has more work now. The caller must then give it another turn, because
 * nothing else starts it.
 */
bool tw_cpu_run(struct tw_cpu *cpu, u64 began)
{
	struct tw_ctx ctx = { .file = cpu->file, .cpu = cpu };
	bool last, more;
	u64 handled;

	tw_cpu_lock_for_turn(cpu, &ctx);
	if (cpu->programmed) {
		cpu->counts.firings++;
		cpu->batches = 0;
	}
	cpu->programmed = TW_NEVER;
	handled = tw_cpu_handled(cpu);
	if (cpu->wake_at <= ctx.now)
		ctx.wake_readers = tw_events_wake_timeout(cpu);
	last = ++cpu->batches % TW_DETACH_BATCHES == 0;
	more = tw_cpu_batch(&ctx, tw_cpu_tick(cpu, ctx.now), last);
	tw_cpu_count_batch(cpu, began, handled);
	if (more)
		cpu->programmed = 0;
	else
		tw_cpu_program(cpu);
	raw_spin_unlock(&cpu->lock);
	tw_ctx_finish(&ctx);
	return more;
}

/* A base of the file, for a CPU that cannot have its own. NULL: there is none. */
static struct tw_cpu *tw_cpu_any(struct tw_file *file)
{
	struct tw_cpu *cpu = NULL;
	unsigned int nr;

	for (nr = 0; nr < nr_cpu_ids && !cpu; nr++) {
		/* Pairs with the release in tw_cpu_create(); litmus publish. */
		cpu = smp_load_acquire(&file->cpu[nr]);
	}
	return cpu;
}

/* Size of a base, including its lists and their bitmap. */
static size_t tw_cpu_size(const struct tw_setup *setup)
{
	unsigned int lists = tw_wheel_lists(setup->slots, setup->tick);

	return sizeof(struct tw_cpu) + BITS_TO_LONGS(lists) * sizeof(long) + lists * sizeof(u32);
}

/* Size of the heads of all strands of a large wheel. */
static size_t tw_cpu_heads_size(const struct tw_setup *setup)
{
	return tw_wheel_lists(setup->slots, setup->tick) * TW_STRANDS * sizeof(u32);
}

/**
 * tw_cpu_spread - give the lists of this CPU's base more strands once it has many timers
 * @file: the file
 *
 * See "Strands" in wheel.c. This only saves time, so errors are ignored. After a failed allocation,
 * another one is tried after a second at the earliest.
 *
 * Context: process, may sleep; tw_file.mutex is held, no other lock.
 */
void tw_cpu_spread(struct tw_file *file)
{
	size_t size = tw_cpu_heads_size(&file->setup);
	struct tw_cpu *cpu;
	u32 *heads;

	lockdep_assert_held(&file->mutex);
	cpu = file->cpu[tw_is_manual(file) ? 0 : raw_smp_processor_id()];
	if (!cpu || !tw_wheel_large(&cpu->wheel) ||
	    time_before64(get_jiffies_64(), file->base_retry_at))
		return;
	if (tw_charge(file, tw_alloc_size(size)))
		return;
	heads = tw_alloc(size);
	if (!heads) {
		tw_uncharge(file, tw_alloc_size(size));
		file->base_retry_at = get_jiffies_64() + HZ;
		return;
	}
	tw_lock_bh(&cpu->lock);
	tw_wheel_spread(&cpu->wheel, heads);
	tw_unlock_bh(&cpu->lock);
}

/*
 * Create the base of this CPU. May sleep. If memory is short or the user is at the cap, and there
 * is another base to use, try this only once per second: each failing allocation makes the kernel
 * try hard to reclaim memory.
 */
static int tw_cpu_create(struct tw_file *file)
{
	const struct tw_setup *setup = &file->setup;
	struct tw_queue *queue = NULL;
	unsigned int lists;
	struct tw_cpu *cpu;
	size_t size;
	int err = 0;
	void *tail;
	u64 tick;
	u32 nr;

	/* SETUP may change the settings until the mutex is held. */
	mutex_lock(&file->mutex);
	size = tw_cpu_size(setup);
	nr = tw_is_manual(file) ? 0 : raw_smp_processor_id();
	if (file->cpu[nr])
		goto unlock;
	if (time_before64(get_jiffies_64(), file->base_retry_at) && tw_cpu_any(file)) {
		err = -ENOMEM;
		goto unlock;
	}
	err = tw_charge(file, tw_alloc_size(size));
	if (err)
		goto later;
	if (!tw_is_manual(file))
		queue = tw_engine_queue_get(file->user, nr, setup->clock);
	cpu = tw_alloc(size);
	if (!cpu || (!queue && !tw_is_manual(file)))
		err = -ENOMEM;
	else if (!file->table.buckets)
		err = tw_table_init(file);
	if (err) {
		if (queue)
			tw_engine_queue_put(queue);
		tw_free(cpu, size);
		tw_uncharge(file, tw_alloc_size(size));
		goto later;
	}
	lists = tw_wheel_lists(setup->slots, setup->tick);
	tail = cpu + 1;
	raw_spin_lock_init(&cpu->lock);
	cpu->nr = nr;
	cpu->file = file;
	cpu->wake_at = TW_NEVER;
	if (queue) {
		cpu->programmed = TW_NEVER;
		timerqueue_init(&cpu->entity.node);
		cpu->queue = queue;
	}
	tick = div64_u64(tw_clock_now(file), setup->tick);
	tw_wheel_init(&cpu->wheel, &file->table.pool,
		      tail + BITS_TO_LONGS(lists) * sizeof(long), tail, setup->slots,
		      setup->tick, tick);
	tw_wheel_catch_up(&cpu->wheel, tick);
	cpu->tick_began = tick * setup->tick;
	/* Pairs with the acquire in tw_cpu_here(); litmus publish. */
	smp_store_release(&file->cpu[nr], cpu);
	goto unlock;
later:
	file->base_retry_at = get_jiffies_64() + HZ;
unlock:
	mutex_unlock(&file->mutex);
	return err;
}

/**
 * tw_cpu_obtain - create the base of this CPU, or find another one
 * @file: the file
 * @nowait: do not create one
 *
 * Context: process, may sleep unless @nowait. Called with bottom halves off. On success they are
 * off again, after an error they are on.
 * Return: a base; -EDQUOT or -ENOMEM: it could not be created, and there is no other base; -EAGAIN:
 * @nowait, and there is no base.
 */
struct tw_cpu *tw_cpu_obtain(struct tw_file *file, bool nowait)
{
	struct tw_cpu *cpu;
	int err;

	do {
		err = -EAGAIN;
		if (!nowait) {
			local_bh_enable();
			err = tw_cpu_create(file);
			local_bh_disable();
		}
		cpu = err ? tw_cpu_any(file) : tw_cpu_here(file);
	} while (!cpu && !err);
	if (cpu)
		return cpu;
	local_bh_enable();
	return ERR_PTR(err);
}

/**
 * tw_cpu_lock_two - lock this CPU's base and another one
 * @cpu: the base of this CPU
 * @nr: CPU number of the other base
 *
 * If SETUP has freed the other base, or the task now runs on its CPU, there is no other base.
 *
 * Context: bottom halves off, no lock held.
 * Return: the other base; NULL: only @cpu is locked.
 */
struct tw_cpu *tw_cpu_lock_two(struct tw_cpu *cpu, u32 nr)
{
	/* Pairs with the release in tw_cpu_create(); litmus publish. */
	struct tw_cpu *other = smp_load_acquire(&cpu->file->cpu[nr]);

	if (!other || other == cpu) {
		raw_spin_lock(&cpu->lock);
		return NULL;
	}
	if (nr < cpu->nr) {
		raw_spin_lock(&other->lock);
		raw_spin_lock_nested(&cpu->lock, SINGLE_DEPTH_NESTING);
	} else {
		raw_spin_lock(&cpu->lock);
		raw_spin_lock_nested(&other->lock, SINGLE_DEPTH_NESTING);
	}
	return other;
}

/**
 * tw_cpu_reclaim - move the free timers of all bases to the table
 * @file: the file
 *
 * Context: process; tw_file.mutex is held, no other lock.
 * Return: true if the table has free timers now.
 */
bool tw_cpu_reclaim(struct tw_file *file)
{
	struct tw_cpu *cpu;
	unsigned int nr;

	lockdep_assert_held(&file->mutex);
	for (nr = 0; nr < nr_cpu_ids; nr++) {
		cpu = file->cpu[nr];
		if (!cpu)
			continue;
		tw_lock_bh(&cpu->lock);
		if (cpu->nr_free)
			tw_magazine_push(&file->table, cpu->free, cpu->nr_free);
		if (cpu->spare)
			tw_magazine_push(&file->table, cpu->spare, TW_MAGAZINE);
		cpu->free = 0;
		cpu->nr_free = 0;
		cpu->spare = 0;
		tw_unlock_bh(&cpu->lock);
		cond_resched();
	}
	return READ_ONCE(file->table.full);
}

/**
 * tw_cpu_barrier - wait for all batches of a file that are in progress
 * @file: the file
 *
 * Batches that begin later see everything that was written before the call.
 *
 * Context: process; tw_file.mutex is held, no other lock.
 */
void tw_cpu_barrier(struct tw_file *file)
{
	unsigned int nr;

	lockdep_assert_held(&file->mutex);
	for (nr = 0; nr < nr_cpu_ids; nr++) {
		if (!file->cpu[nr])
			continue;
		tw_lock_bh(&file->cpu[nr]->lock);
		tw_unlock_bh(&file->cpu[nr]->lock);
	}
}

/*
 * The time to which a MANUAL file may advance in one step towards @to. In a file with a ring, the
 * expiry batch arms periodic timers again, relative to the current time. Therefore the time must
 * stop at each tick with work.
 */
static u64 tw_cpu_step(const struct tw_cpu *cpu, u64 to)
{
	const struct tw_wheel *w = &cpu->wheel;

	lockdep_assert_held(&cpu->lock);
	if (!tw_has_ring(cpu->file) || w->work > div64_u64(to, w->tick))
		return to;
	return max(w->work * w->tick, cpu->file->advanced);
}

/**
 * tw_cpu_advance - advance the time of a MANUAL file
 * @file: the file
 * @to: the new time, in ns
 * @expired: set to the number of timers that fell due
 *
 * Context: process, may sleep; tw_file.advance is held.
 * Return: 0; -EINVAL: @to is in the past; -EINTR: a fatal signal, the next call continues; -EDQUOT,
 * -ENOMEM.
 */
int tw_cpu_advance(struct tw_file *file, u64 to, u64 *expired)
{
	struct tw_ctx ctx;
	u64 began, handled, before, now;
	bool more, wake = false;
	int err = 0;

	lockdep_assert_held(&file->advance);
	*expired = 0;
	do {
		err = tw_cpu_begin(&ctx, file, 0);
		if (err)
			break;
		if (to < file->advanced) {
			tw_cpu_end(&ctx);
			err = -EINVAL;
			break;
		}
		now = tw_cpu_step(ctx.cpu, to);
		WRITE_ONCE(file->advanced, now);
		began = ktime_get_ns();
		handled = tw_cpu_handled(ctx.cpu);
		before = ctx.cpu->wheel.expired;
		ctx.now = now;
		more = tw_cpu_batch(&ctx, tw_cpu_tick(ctx.cpu, now), false) || now < to;
		/* Wake readers only once, at the end. */
		wake |= ctx.wake_readers;
		ctx.wake_readers = false;
		*expired += ctx.cpu->wheel.expired - before;
		tw_cpu_count_batch(ctx.cpu, began, handled);
		tw_cpu_end(&ctx);
		cond_resched();
		if (more && fatal_signal_pending(current))
			err = -EINTR;
	} while (more && !err);
	if (wake)
		tw_events_wake(file);
	return err;
}

/**
 * tw_cpu_close - remove all bases of a file from their engines
 * @file: the file, which is no longer in use
 *
 * No base begins another turn. A turn may be in progress until a grace period has passed.
 */
void tw_cpu_close(struct tw_file *file)
{
	unsigned int nr;

	for (nr = 0; nr < nr_cpu_ids; nr++)
		if (file->cpu[nr] && file->cpu[nr]->queue)
			tw_engine_remove(file->cpu[nr]);
}

/* Free a base; a grace period has passed since it was removed from its engine. */
static void tw_cpu_delete(struct tw_cpu *cpu)
{
	const struct tw_setup *setup = &cpu->file->setup;

	if (cpu->queue)
		tw_engine_queue_put(cpu->queue);
	if (cpu->wheel.strands > 1)
		tw_free(cpu->wheel.head, tw_cpu_heads_size(setup));
	tw_free(cpu, tw_cpu_size(setup));
}

/**
 * tw_cpu_free_all - free all bases of a file
 * @file: the file; a grace period has passed since tw_cpu_close()
 */
void tw_cpu_free_all(struct tw_file *file)
{
	unsigned int nr;

	for (nr = 0; nr < nr_cpu_ids; nr++)
		if (file->cpu[nr])
			tw_cpu_delete(file->cpu[nr]);
}

/**
 * tw_cpu_reset - free the bases of a file that has no timers
 * @file: the file, whose settings are about to change
 *
 * Waits for a grace period, because calls that look up keys may use the bases with bottom halves
 * off.
 *
 * Context: process, may sleep; tw_file.mutex is held.
 */
void tw_cpu_reset(struct tw_file *file)
{
	struct tw_cpu *cpu, *next;
	unsigned int nr;
	LIST_HEAD(unused);

	lockdep_assert_held(&file->mutex);
	tw_cpu_close(file);
	for (nr = 0; nr < nr_cpu_ids; nr++) {
		cpu = file->cpu[nr];
		if (!cpu)
			continue;
		WRITE_ONCE(file->cpu[nr], NULL);
		/* The entity is no longer in a tree or list. */
		list_add(&cpu->entity.list, &unused);
	}
	if (list_empty(&unused))
		return;
	/* Calls that found one of them in file->cpu may still use it; litmus grace. */
	synchronize_rcu();
	list_for_each_entry_safe(cpu, next, &unused, entity.list) {
		tw_cpu_delete(cpu);
		tw_uncharge(file, tw_alloc_size(tw_cpu_size(&file->setup)));
	}
}
