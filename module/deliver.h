/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Code that delivery to readers (events.c) and delivery into the ring (flow.c) share. Inline,
 * because it runs for each timer.
 */
#ifndef TW_DELIVER_H
#define TW_DELIVER_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/timerwheel.h>

#include "cpu.h"
#include "internal.h"
#include "resident.h"
#include "slots.h"
#include "sock.h"
#include "table.h"

/*
 * Maximum number of events delivered while the due list's lock is held, which takes 2 to 13 us.
 * With 16 events it would take a quarter of that, but reading an event would take a tenth longer.
 */
#define TW_DELIVER_BATCH	64U

/*
 * Functions that tw_event_of() uses are always inline: it runs while user memory is accessible
 * (user_access_begin()), where function calls are not allowed.
 */

/* Number of deadlines of a periodic timer that have passed since the deadline of its event. */
static __always_inline u64 tw_overruns(const struct tw_ctx *ctx, const struct tw_timer *t)
{
	u64 period = t->period;

	/* A period is never 0. If the compiler does not know that, UBSAN adds a call. */
	if (t->stay != TW_PERIODIC || !period)
		return 0;
	return div64_u64(max(ctx->now, t->deadline) - t->deadline, period);
}

static __always_inline u32 tw_event_flags(const struct tw_timer *t)
{
	if (t->stay == TW_WARNING)
		return TIMERWHEEL_EVENT_WARNING;
	if (tw_timer_has_sock(t))
		return t->sock->event;
	return t->stay == TW_PERIODIC ? TIMERWHEEL_EVENT_PERIODIC : 0;
}

/* The event of a warning names the timer that it belongs to. */
static __always_inline u32 tw_event_index(const struct tw_timer *t, u32 index)
{
	return t->stay == TW_WARNING ? t->sock->index : index;
}

/* The event of a due timer. @offset converts its times to the reader's time namespace. */
static __always_inline struct timerwheel_event
tw_event_of(const struct tw_ctx *ctx, u32 index, const struct tw_timer *t, u64 offset)
{
	return (struct timerwheel_event) {
		.key = t->key,
		.value = t->value,
		.deadline = t->deadline + offset,
		.fired = t->fired + offset,
		.overruns = unlikely(t->stay) ? tw_overruns(ctx, t) : 0,
		.flags = unlikely(t->stay) ? tw_event_flags(t) : 0,
		.index = unlikely(t->stay) ? tw_event_index(t, index) : index,
	};
}

/* The event of a clock that was set. The due list is locked. */
static inline struct timerwheel_event tw_event_of_clock_set(const struct tw_events *events)
{
	return (struct timerwheel_event) {
		.deadline = events->clock_set_at,
		.fired = events->clock_set_at,
		.overruns = events->clock_sets - 1,
		.flags = TIMERWHEEL_EVENT_CLOCK_SET,
	};
}

/* The first deadline of a periodic timer in the future. */
static inline u64 tw_next_deadline(const struct tw_timer *t, u64 overruns)
{
	u64 passed = overruns * t->period;	/* at most now - deadline */

	/* This time is never reached. */
	if (t->period > TIMERWHEEL_TIME_MAX - t->deadline - passed)
		return TIMERWHEEL_TIME_MAX;
	return t->deadline + passed + t->period;
}

/* Park or queue a timer that continues to exist after the delivery of its event. */
static inline void tw_timer_stay(struct tw_ctx *ctx, struct tw_timer *t, u32 index)
{
	u64 overruns = tw_overruns(ctx, t);
	struct tw_cpu *cpu = ctx->cpu;

	cpu->counts.rearmed++;
	if (t->stay == TW_WARNING) {
		/* The due list is locked, because only that list has warnings. */
		t->sock->warned = false;
		ctx->file->events.warnings--;
		return;
	}
	if (t->stay == TW_RESIDENT) {
		tw_timer_park(&cpu->wheel, t);
		return;
	}
	if (t->stay == TW_PERIODIC)
		t->deadline = tw_next_deadline(t, overruns);
	else
		tw_resident_linger(&ctx->file->table.pool, index, t, ctx->now);
	WRITE_ONCE(t->cpu, cpu->nr);
	/* Publishes the CPU: pairs with the acquire in tw_timer_held(); litmus settled. */
	smp_store_release(&t->state, TW_PENDING);
	tw_wheel_insert(&cpu->wheel, index, t);
	cpu->counts.overruns += overruns;
}

/* Remove a one-shot timer from the key table and free it, after the delivery of its event. */
static __always_inline void tw_timer_free(struct tw_ctx *ctx, struct tw_timer *t, u32 index)
{
	struct tw_table *table = &ctx->file->table;
	struct tw_bucket *bucket;
	u32 *chain;

	bucket = tw_table_lock_timer(table, t, &chain);
	tw_table_set_link(tw_table_link_to(table, chain, index), t->hash_next);
	WRITE_ONCE(t->state, TW_FREE);
	tw_bucket_unlock(table, bucket);
	tw_cpu_free(ctx->cpu, index, t);
}

/**
 * struct tw_taken - timers at the head of the due list whose events were copied
 * @first: index of the first timer
 * @next: index of the first timer behind them; 0: none
 * @count: number of timers
 * @stay: some of them continue to exist, or watch a connection. The others are TW_CLAIMED.
 */
struct tw_taken {
	u32 first;
	u32 next;
	unsigned int count;
	bool stay;
};

/* Add a timer whose event was copied to @taken. */
static __always_inline void tw_taken_add(struct tw_taken *taken, struct tw_timer *t)
{
	if (unlikely(t->stay))
		taken->stay = true;
	else
		WRITE_ONCE(t->state, TW_CLAIMED);
	taken->next = t->next;
	taken->count++;
}

/* events.c */
void tw_events_pop(struct tw_ctx *ctx, struct tw_taken *taken);
void tw_taken_free(struct tw_ctx *ctx, const struct tw_taken *taken);
bool tw_events_take_clock_set(struct tw_file *file, const struct timerwheel_event *event);
void tw_events_log(struct tw_ctx *ctx, u32 first, u32 next);
bool tw_events_need_wake(struct tw_cpu *cpu, u32 n, u64 now);

#endif /* TW_DELIVER_H */
