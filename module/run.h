/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A run of operations under one hold of a CPU part's lock: its begin and its end, part of each
 * call. So they are inline, and what they seldom need is in cpu.c.
 */
#ifndef TW_RUN_H
#define TW_RUN_H

#include <linux/bottom_half.h>
#include <linux/err.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "clock.h"
#include "internal.h"
#include "slots.h"

/**
 * tw_cpu_here - the part of the CPU we run on
 * @file: the file
 *
 * Context: bottom halves off.
 * Return: the part; NULL: there is none yet.
 */
static __always_inline struct tw_cpu *tw_cpu_here(struct tw_file *file)
{
	bool manual = READ_ONCE(file->setup.clock) == TIMERWHEEL_CLOCK_MANUAL;

	/* Pairs with the release in tw_cpu_create(). */
	return smp_load_acquire(&file->cpu[manual ? 0 : smp_processor_id()]);
}

/**
 * tw_cpu_tick - turn the clock's time into the wheel's tick, and let the wheel know of it
 * @cpu: the part, locked
 * @now: the file's time
 *
 * Return: the tick.
 */
static __always_inline u64 tw_cpu_tick(struct tw_cpu *cpu, u64 now)
{
	struct tw_wheel *w = &cpu->wheel;
	u64 tick = div64_u64(now + w->bias, w->tick);

	lockdep_assert_held(&cpu->lock);
	if (unlikely(tick + 1 < w->cursor))
		tick = tw_cpu_set_back(cpu, now, tick);
	cpu->tick_began = tick * w->tick - w->bias;
	tw_wheel_catch_up(w, tick);
	return tick;
}

/**
 * tw_cpu_catch_up - let the part's wheel know what time it is
 * @cpu: the part, locked
 * @now: the file's time
 *
 * Most runs begin in the tick in which the clock was last looked at: there is nothing to do then.
 * For who moves the cursor has looked, passes too: were that not so, a clock that is set back into
 * this tick would not be noticed. And who looks moves the cursor: were that not so, timers would
 * go to higher levels than they need, and one armed anew for the present would fire in it.
 */
static __always_inline void tw_cpu_catch_up(struct tw_cpu *cpu, u64 now)
{
	if (unlikely(now - cpu->tick_began >= cpu->wheel.tick))
		tw_cpu_tick(cpu, now);
}

/**
 * __tw_cpu_begin - begin a run of operations
 * @ctx: is filled in
 * @file: on which file
 * @offset: tw_clock_offset() of the caller
 * @nowait: do not sleep to make a part: use another one
 *
 * Makes the part of this CPU if it does not exist yet. Without memory for it another one will do:
 * who reads or removes must not fail. Its own engine's thread starts the hrtimer then.
 *
 * Context: process, may sleep unless @nowait. On success bottom halves are off and @ctx->cpu is
 * locked.
 * Return: 0, -ENOMEM; with @nowait -EAGAIN: there is no part at all.
 */
static __always_inline int __tw_cpu_begin(struct tw_ctx *ctx, struct tw_file *file, u64 offset,
					  bool nowait)
{
	struct tw_cpu *cpu;

	local_bh_disable();
	cpu = tw_cpu_here(file);
	if (unlikely(!cpu)) {
		cpu = tw_cpu_obtain(file, nowait);
		if (IS_ERR(cpu))
			return PTR_ERR(cpu);
	}
	raw_spin_lock(&cpu->lock);
	ctx->file = file;
	ctx->cpu = cpu;
	ctx->other = NULL;
	ctx->now = tw_clock_now(file);
	ctx->offset = offset;
	ctx->todo = 0;
	tw_cpu_catch_up(cpu, ctx->now);
	return 0;
}

/* The same for those who may sleep. */
static __always_inline int tw_cpu_begin(struct tw_ctx *ctx, struct tw_file *file, u64 offset)
{
	return __tw_cpu_begin(ctx, file, offset, false);
}

/**
 * tw_cpu_wake - what a run or a pass leaves to be done: events to the ring, and wake who waits
 * @ctx: it
 *
 * Context: no lock held.
 */
static __always_inline void tw_cpu_wake(const struct tw_ctx *ctx)
{
	if (likely(!ctx->todo))
		return;
	if (ctx->flow)
		tw_flow_after(ctx->file, ctx->flow);
	if (ctx->wake)
		tw_events_wake(ctx->file);
	if (ctx->wake_monitors)
		tw_monitor_wake(ctx->file);
}

/**
 * tw_cpu_end - end a run of operations
 * @ctx: what tw_cpu_begin() filled in
 *
 * Context: as tw_cpu_begin() left it; afterwards as before that.
 */
static __always_inline void tw_cpu_end(struct tw_ctx *ctx)
{
	if (unlikely(ctx->other))
		raw_spin_unlock(&ctx->other->lock);
	if (unlikely(ctx->cpu->wheel.sooner))
		tw_cpu_program(ctx->cpu);
	raw_spin_unlock(&ctx->cpu->lock);
	local_bh_enable();
	tw_cpu_wake(ctx);
}

#endif /* TW_RUN_H */
