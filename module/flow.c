// SPDX-License-Identifier: GPL-2.0-only
/*
 * Delivery of events into the event ring.
 *
 * If the ring has room for all timers of an expiry batch, they go into the ring directly
 * (tw_flow_direct()). Otherwise they go to the due list (events.c), where they can be withdrawn.
 * Timers that are armed for a time in the past also go to the due list. From there timers move into
 * the ring while there is room (tw_flow_from_list()): immediately, after the batch that armed them
 * (tw_flow_after_batch()), and with each later expiry batch or TIMERWHEEL_IOC_FLOW. No event
 * overtakes the events that wait in the list.
 *
 * Writing to the ring needs tw_ring.lock, which is inside a base's lock and outside the locks of
 * buckets and of the due list.
 */
#include <linux/sched/signal.h>

#include "clockset.h"
#include "deliver.h"
#include "events.h"
#include "flow.h"
#include "internal.h"
#include "log.h"
#include "ring.h"
#include "run.h"
#include "trace.h"

/* Maximum number of events that a batch moves from the due list into the ring. */
#define TW_FLOW_BATCH	64U

/* Maximum number of waiting timers that move into the ring together with newly due timers. */
#define TW_FLOW_ALONG	16U

/* Does an event wait because the ring was full? */
static bool tw_flow_overflow(const struct tw_events *events)
{
	return events->due.count || events->clock_sets;
}

/**
 * tw_flow_clock_set - write the event of a clock that was set into the ring, if there is room
 * @file: the file, its ring and due list locked
 *
 * Return: true if the caller must wake monitors.
 */
bool tw_flow_clock_set(struct tw_file *file)
{
	struct tw_events *events = &file->events;
	struct tw_ring *ring = &file->ring;
	struct timerwheel_event event;
	bool room = tw_ring_room(ring), wake_monitors = false;

	if (room) {
		event = tw_event_of_clock_set(events);
		*tw_ring_entry(ring, ring->tail) = event;
		wake_monitors = tw_events_take_clock_set(file, &event);
	}
	tw_ring_publish(ring, room, tw_flow_overflow(events));
	return wake_monitors;
}

/* Write the events of the first @max due timers into the ring, which has room for them. */
static void tw_flow_write(const struct tw_ctx *ctx, unsigned int max, struct tw_taken *taken)
{
	struct tw_timer **pages = tw_pool_pages(&ctx->file->table.pool);
	const struct tw_ring *ring = &ctx->file->ring;
	struct timerwheel_event event;
	struct tw_timer *t;

	while (taken->count < max) {
		t = tw_timer_in_pages(pages, taken->next);
		event = tw_event_of(ctx, taken->next, t, ring->offset);
		*tw_ring_entry(ring, ring->tail + taken->count) = event;
		tw_taken_add(taken, t);
	}
}

/* Move up to @most events from the due list into the ring. Returns the number of events. */
static unsigned int tw_flow_from_list(struct tw_ctx *ctx, unsigned int most)
{
	struct tw_events *events = &ctx->file->events;
	struct tw_ring *ring = &ctx->file->ring;
	unsigned int n, done = 0;
	struct tw_taken taken;

	ctx->offset = ring->offset;
	do {
		raw_spin_lock(&ring->lock);
		raw_spin_lock(&events->lock);
		if (unlikely(events->clock_sets)) {
			ctx->wake_monitors |= tw_flow_clock_set(ctx->file);
			done += !events->clock_sets;
		}
		taken = (struct tw_taken){ events->due.first, events->due.first };
		/* A reader may have made room since the clock's event found none. */
		n = events->clock_sets ? 0 : min(tw_ring_room(ring), events->due.count);
		n = min3(n, most - done, TW_DELIVER_BATCH);
		tw_flow_write(ctx, n, &taken);
		tw_events_pop(ctx, &taken);
		tw_ring_publish(ring, n, tw_flow_overflow(events));
		raw_spin_unlock(&events->lock);
		raw_spin_unlock(&ring->lock);
		tw_taken_free(ctx, &taken);
		done += n;
	} while (n == TW_DELIVER_BATCH && done < most);
	return done;
}

/*
 * tw_flow_from_list() in batches of TW_FLOW_BATCH. @nowait: as in __tw_cpu_begin(). Returns the
 * number of events; -EDQUOT or -ENOMEM if it is 0.
 */
static long tw_flow_batches(struct tw_file *file, unsigned int most, bool nowait)
{
	struct tw_ctx ctx;
	unsigned int n;
	long done = 0;		/* signed, as errors are */
	int err;

	do {
		err = __tw_cpu_begin(&ctx, file, 0, nowait, TW_NO_CPU);
		if (err)
			return done ? done : err;
		n = tw_flow_from_list(&ctx, min_t(u32, most - done, TW_FLOW_BATCH));
		tw_cpu_end(&ctx);
		done += n;
		cond_resched();
	} while (n && done < most && !signal_pending(current));
	return done;
}

/* May @count timers bypass the due list? Only if the ring has room and the list is empty. */
static bool tw_flow_may_bypass(const struct tw_file *file, u32 count)
{
	lockdep_assert_held(&file->ring.lock);
	return tw_ring_room(&file->ring) >= count && !READ_ONCE(file->events.due.count) &&
	       !READ_ONCE(file->events.clock_sets);
}

/**
 * tw_flow_direct - deliver the timers of an expiry batch directly into the ring
 * @ctx: the batch context; no bucket is locked
 * @due: the timers, linked and TW_DUE, not on the due list
 *
 * A timer that has left its wheel and is not in the due list belongs to the holder of its base's
 * lock. An operation that finds it TW_DUE locks that base before it does anything (tw_timer_held(),
 * tw_lock_if_due()). Therefore the timers need not go through the due list. Before the base is
 * unlocked, each of them is freed, parked or queued again.
 *
 * Return: true: all were delivered; false: none was delivered, and they must go to the due list.
 */
static bool tw_flow_direct(struct tw_ctx *ctx, const struct tw_due_list *due)
{
	struct tw_file *file = ctx->file;
	struct tw_timer **pages = tw_pool_pages(&file->table.pool);
	struct tw_ring *ring = &file->ring;
	u64 offset = ring->offset;
	struct timerwheel_event *event;
	u32 index, next, place;
	struct tw_timer *t;

	raw_spin_lock(&ring->lock);
	if (!tw_flow_may_bypass(file, due->count)) {
		raw_spin_unlock(&ring->lock);
		return false;
	}
	trace_timerwheel_expire(ctx->cpu, due, ctx->now);
	tw_events_lock(file);
	ctx->wake_readers |= tw_events_need_wake(ctx->cpu, due->count, ctx->now);
	tw_events_unlock(file);
	if (unlikely(tw_log_active(file) || trace_timerwheel_deliver_enabled())) {
		ctx->offset = offset;
		tw_events_log(ctx, due->first, 0);
	}
	for (index = due->first, place = ring->tail; index; index = next, place++) {
		t = tw_timer_in_pages(pages, index);
		next = t->next;
		event = tw_ring_entry(ring, place);
		/* Duplicated, so that the code of the usual case does not handle periods. */
		if (likely(!t->stay)) {
			*event = tw_event_of(ctx, index, t, offset);
			tw_timer_free(ctx, t, index);
		} else {
			*event = tw_event_of(ctx, index, t, offset);
			tw_timer_stay(ctx, t, index);
		}
	}
	ctx->cpu->counts.delivered += due->count;
	tw_ring_publish(ring, due->count, READ_ONCE(file->events.due.count));
	raw_spin_unlock(&ring->lock);
	return true;
}

/**
 * tw_flow_expire - deliver the timers of an expiry batch, in a file with a ring
 * @ctx: the batch context; no bucket is locked
 * @due: the timers, linked and TW_DUE
 */
void tw_flow_expire(struct tw_ctx *ctx, const struct tw_due_list *due)
{
	lockdep_assert_held(&ctx->cpu->lock);
	if (tw_flow_direct(ctx, due))
		return;
	ctx->wake_readers |= tw_events_add(ctx->cpu, due, ctx->now);
	/* Move more than were added, so that the list becomes empty once there is room again. */
	tw_flow_from_list(ctx, due->count + TW_FLOW_ALONG);
}

/**
 * tw_flow_after_batch - move timers that a batch of operations made due into the ring
 * @file: the file, which has a ring
 * @n: number of timers
 *
 * Uses separate batches, so that the previous batch does not hold its lock longer. Moves at most
 * TW_FLOW_ALONG other events along with them.
 *
 * The previous batch had a base, so no memory is needed for another one. The worker of connections
 * must not allocate, because the memory would not be charged to the owner's memory cgroup.
 *
 * Context: process, may sleep.
 */
void tw_flow_after_batch(struct tw_file *file, unsigned int n)
{
	tw_flow_batches(file, n + TW_FLOW_ALONG, true);
}

/**
 * tw_flow_ioctl - TIMERWHEEL_IOC_FLOW
 * @file: the file
 *
 * Context: process, may sleep.
 * Return: number of events moved into the ring; -EINVAL: there is no ring; -EDQUOT, -ENOMEM.
 */
long tw_flow_ioctl(struct tw_file *file)
{
	if (unlikely(tw_clockset_enabled(file)))
		tw_clockset_check(file);
	/* Stop after the length of the ring: the reader may empty it as fast as it is filled. */
	return tw_has_ring(file) ? tw_flow_batches(file, file->ring.events, false) : -EINVAL;
}
