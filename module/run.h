/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Begin and end of a batch: a group of operations with a base's lock held. Inline, because every
 * call needs them; the slow paths are in cpu.c.
 */
#ifndef TW_RUN_H
#define TW_RUN_H

#include <linux/bottom_half.h>
#include <linux/err.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "clock.h"
#include "cpu.h"
#include "events.h"
#include "flow.h"
#include "internal.h"
#include "monitor.h"
#include "slots.h"
#include "sock.h"

/**
 * tw_cpu_here - the base of this CPU
 * @file: the file
 *
 * Context: bottom halves off.
 * Return: the base, or NULL if it does not exist yet.
 */
static __always_inline struct tw_cpu *tw_cpu_here(struct tw_file *file)
{
	bool manual = READ_ONCE(file->setup.clock) == TIMERWHEEL_CLOCK_MANUAL;

	/* Pairs with the release in tw_cpu_create(); litmus publish. */
	return smp_load_acquire(&file->cpu[manual ? 0 : smp_processor_id()]);
}

/**
 * tw_cpu_tick - convert a time to a tick, and advance the wheel's cursor to it
 * @cpu: the base, locked
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
		tick = tw_cpu_clock_set_back(cpu, now, tick);
	cpu->tick_began = tick * w->tick - w->bias;
	tw_wheel_catch_up(w, tick);
	return tick;
}

/**
 * tw_cpu_catch_up - advance the wheel's cursor to the present
 * @cpu: the base, locked
 * @now: the file's time
 *
 * Most batches begin in the tick that began at tick_began, and then there is nothing to do.
 *
 * Invariant: tick_began and the cursor advance together, in expiry batches too; the cursor lags
 * only while there is work to do (tw_wheel_catch_up()). If only the cursor advanced, a clock set
 * back to the tick of tick_began would go unnoticed. If only tick_began advanced, timers would be
 * queued on a higher level than necessary, and a timer armed again for the current tick would fire
 * in it.
 */
static __always_inline void tw_cpu_catch_up(struct tw_cpu *cpu, u64 now)
{
	if (unlikely(now - cpu->tick_began >= cpu->wheel.tick))
		tw_cpu_tick(cpu, now);
}

/**
 * __tw_cpu_begin - begin a batch of operations
 * @ctx: filled in
 * @file: the file
 * @offset: tw_clock_offset() of the caller
 * @nowait: do not sleep to create a base; use another base
 * @other: CPU number of a second base to lock; TW_NO_CPU: none
 *
 * Creates the base of this CPU if it does not exist yet. Without memory for it, uses another CPU's
 * base, because operations such as read and REMOVE must not fail. If an hrtimer must then be
 * started, the thread of that CPU's engine starts it.
 *
 * Context: process, may sleep unless @nowait. On success bottom halves are off and @ctx->cpu is
 * locked.
 * Return: 0; -EDQUOT, -ENOMEM: the file has no base at all and none could be created; -EAGAIN:
 * @nowait, and the file has no base.
 */
static __always_inline int __tw_cpu_begin(struct tw_ctx *ctx, struct tw_file *file, u64 offset,
					  bool nowait, u32 other)
{
	struct tw_cpu *cpu;

	local_bh_disable();
	cpu = tw_cpu_here(file);
	if (unlikely(!cpu)) {
		cpu = tw_cpu_obtain(file, nowait);
		if (IS_ERR(cpu))
			return PTR_ERR(cpu);
	}
	ctx->other = NULL;
	if (likely(other == TW_NO_CPU))
		raw_spin_lock(&cpu->lock);
	else
		ctx->other = tw_cpu_lock_two(cpu, other);
	ctx->file = file;
	ctx->cpu = cpu;
	ctx->now = tw_clock_now(file);
	ctx->offset = offset;
	ctx->todo = 0;
	ctx->wants = TW_NO_CPU;
	tw_cpu_catch_up(cpu, ctx->now);
	return 0;
}

/* __tw_cpu_begin() for callers that may sleep. */
static __always_inline int tw_cpu_begin(struct tw_ctx *ctx, struct tw_file *file, u64 offset)
{
	return __tw_cpu_begin(ctx, file, offset, false, TW_NO_CPU);
}

/* tw_cpu_begin() with a second base, which the previous batch requested (tw_ctx.wants). */
static __always_inline int tw_cpu_begin_with(struct tw_ctx *ctx, struct tw_file *file, u64 offset,
					     u32 other)
{
	return __tw_cpu_begin(ctx, file, offset, false, other);
}

/**
 * tw_ctx_finish - do the work of a batch that needs no lock: fill the ring, start the worker, wake
 * @ctx: the batch context
 *
 * Context: no lock held.
 */
static __always_inline void tw_ctx_finish(const struct tw_ctx *ctx)
{
	if (likely(!ctx->todo))
		return;
	if (ctx->flow)
		tw_flow_after_batch(ctx->file, ctx->flow);
	if (ctx->socks)
		tw_sock_kick(ctx->file);
	if (ctx->wake_readers)
		tw_events_wake(ctx->file);
	if (ctx->wake_monitors)
		tw_monitor_wake(ctx->file);
}

/**
 * tw_cpu_end - end a batch of operations
 * @ctx: the batch context that tw_cpu_begin() filled in
 *
 * Undoes what tw_cpu_begin() has locked and disabled.
 */
static __always_inline void tw_cpu_end(struct tw_ctx *ctx)
{
	if (unlikely(ctx->other))
		raw_spin_unlock(&ctx->other->lock);
	if (unlikely(ctx->cpu->wheel.sooner))
		tw_cpu_program(ctx->cpu);
	raw_spin_unlock(&ctx->cpu->lock);
	local_bh_enable();
	tw_ctx_finish(ctx);
}

/**
 * tw_cpu_again - let other tasks run before an operation is repeated in another batch
 *
 * Other CPUs can keep the operation from succeeding for any length of time.
 *
 * Context: process, no lock held.
 * Return: false: the task was killed, do not repeat the operation.
 */
static inline bool tw_cpu_again(void)
{
	cond_resched();
	return !fatal_signal_pending(current);
}

#endif /* TW_RUN_H */
