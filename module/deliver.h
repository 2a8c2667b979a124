/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What delivery to readers (events.c) and delivery into the ring (flow.c) have in common. Inline,
 * because it runs for each timer.
 */
#ifndef TW_DELIVER_H
#define TW_DELIVER_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/timerwheel.h>

#include "cpu.h"
#include "internal.h"
#include "slots.h"
#include "table.h"

/*
 * Most events delivered under one hold of the due list's lock, which takes 2 to 13 us. With 16 it
 * would take a quarter of that, but reading an event would cost a tenth more.
 */
#define TW_DELIVER_BATCH	64U

/* Number of deadlines of a periodic timer that have passed after the one that it is due for. */
static inline u64 tw_overruns(const struct tw_ctx *ctx, const struct tw_timer *t)
{
	return div64_u64(max(ctx->now, t->deadline) - t->deadline, t->period);
}

/* The event of a due timer. @offset is added to its times, to get those of the reader. */
static __always_inline struct timerwheel_event
tw_event_of(const struct tw_ctx *ctx, u32 index, const struct tw_timer *t, u64 offset)
{
	return (struct timerwheel_event) {
		.key = t->key,
		.value = t->value,
		.deadline = t->deadline + offset,
		.fired = t->fired + offset,
		.overruns = unlikely(t->periodic) ? tw_overruns(ctx, t) : 0,
		.flags = unlikely(t->periodic) ? TIMERWHEEL_EVENT_PERIODIC : 0,
		.index = index,
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

/* A periodic timer's event was delivered: queue it for its first deadline in the future. */
static inline void tw_timer_rearm(struct tw_ctx *ctx, struct tw_timer *t, u32 index)
{
	u64 overruns = tw_overruns(ctx, t);
	u64 passed = overruns * t->period;	/* at most now - deadline */
	struct tw_cpu *cpu = ctx->cpu;

	/* That is never reached. */
	if (t->period > TIMERWHEEL_TIME_MAX - t->deadline - passed)
		t->deadline = TIMERWHEEL_TIME_MAX;
	else
		t->deadline += passed + t->period;
	WRITE_ONCE(t->cpu, cpu->nr);
	/* Publishes the CPU: pairs with the acquire in tw_timer_held(). */
	smp_store_release(&t->state, TW_PENDING);
	tw_wheel_insert(&cpu->wheel, index, t);
	cpu->counts.rearmed++;
	cpu->counts.overruns += overruns;
}

/* A one-shot timer's event was delivered: remove it from the key table and free it. */
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
 * @first: index of the first one
 * @next: index of the first timer behind them, 0: none
 * @count: how many there are
 * @periodic: some of them are periodic. The others are TW_CLAIMED.
 */
struct tw_taken {
	u32 first;
	u32 next;
	unsigned int count;
	bool periodic;
};

/* The event of @t was copied: add the timer to @taken. */
static __always_inline void tw_taken_add(struct tw_taken *taken, struct tw_timer *t,
					 const struct timerwheel_event *event)
{
	if (unlikely(event->flags))
		taken->periodic = true;
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
