/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What it takes to hand out a due timer's event, for those who do: to readers (events.c) and into
 * the ring (flow.c). All inline: it is done for each timer.
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
 * Events that are handed out under one hold of the due list's lock: some 2 to 13 us. With 16 it
 * would be a quarter of that, and each event that is read would cost a tenth more.
 */
#define TW_EVENTS	64U

/* Deadlines of a periodic timer that have passed since the one that it is due for. */
static inline u64 tw_overruns(const struct tw_ctx *ctx, const struct tw_timer *t)
{
	return div64_u64(max(ctx->now, t->deadline) - t->deadline, t->period);
}

/* What there is to tell about a due timer. @offset: that of @ctx */
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

/* What there is to tell of a clock that was set. The due list is locked. */
static inline struct timerwheel_event tw_event_of_set(const struct tw_events *events)
{
	return (struct timerwheel_event) {
		.deadline = events->set_at,
		.fired = events->set_at,
		.overruns = events->sets - 1,
		.flags = TIMERWHEEL_EVENT_CLOCK_SET,
	};
}

/* A periodic timer's event was handed out: queue it for the next deadline that is to come. */
static inline void tw_event_rearm(struct tw_ctx *ctx, struct tw_timer *t, u32 index)
{
	u64 overruns = tw_overruns(ctx, t);
	u64 passed = overruns * t->period;	/* at most now - deadline */
	struct tw_cpu *cpu = ctx->cpu;

	/* A deadline that far ahead is never reached. */
	if (t->period > TIMERWHEEL_TIME_MAX - t->deadline - passed)
		t->deadline = TIMERWHEEL_TIME_MAX;
	else
		t->deadline += passed + t->period;
	WRITE_ONCE(t->cpu, cpu->nr);
	/* Whoever reads the state reads the CPU afterwards: pairs with tw_timer_held(). */
	smp_store_release(&t->state, TW_PENDING);
	tw_wheel_insert(&cpu->wheel, index, t);
	cpu->counts.rearmed++;
	cpu->counts.overruns += overruns;
}

/* A one-shot timer's event was handed out: take it out of the table and free it. */
static __always_inline void tw_event_free(struct tw_ctx *ctx, struct tw_timer *t, u32 index)
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
 * struct tw_taken - timers whose events were handed out: the first ones of the list
 * @first: the first of them
 * @next: the first that is left, 0: none is
 * @count: how many were handed out
 * @periodic: some of them are periodic. All others are TW_CLAIMED.
 */
struct tw_taken {
	u32 first;
	u32 next;
	unsigned int count;
	bool periodic;
};

/* One more was handed out: @event. */
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
void tw_events_free(struct tw_ctx *ctx, const struct tw_taken *taken);
bool tw_events_take_set(struct tw_file *file, const struct timerwheel_event *event);
void tw_events_log(struct tw_ctx *ctx, u32 first, u32 next);
bool tw_events_more(struct tw_cpu *cpu, u32 n, u64 now);

#endif /* TW_DELIVER_H */
