// SPDX-License-Identifier: GPL-2.0-only
/*
 * Due timers on their way into the event ring.
 *
 * What falls due in a piece of a pass goes there at once if there is room for all of it
 * (tw_flow_at_once()). Else, and if it was armed for a time in the past, it goes to the list of due
 * timers (events.c), where it can be withdrawn, and from there into the ring as far as there is
 * room (tw_flow_some()): now or, if it fell due in a run, right after that; and with
 * each later pass or TIMERWHEEL_IOC_FLOW. Nothing overtakes what waits on the list.
 *
 * Who writes to the ring holds its lock, inside of a part's and outside of the others.
 */
#include <linux/sched/signal.h>

#include "clockset.h"
#include "deliver.h"
#include "internal.h"
#include "log.h"
#include "ring.h"
#include "run.h"
#include "trace.h"

/* Most events that go from the list into the ring in a run. */
#define TW_FLOW		64U

/* Timers that waited before and may go into the ring along with those that fall due. */
#define TW_FLOW_ALONG	16U

/* Does anything wait that there was no room for? */
static bool tw_flow_overflow(const struct tw_events *events)
{
	return events->due.count || events->sets;
}

/**
 * tw_flow_set - let the event of a clock that was set into the ring, if there is room
 * @file: the file; ring and due list are locked
 *
 * Return: true if monitors are to be woken.
 */
bool tw_flow_set(struct tw_file *file)
{
	struct tw_events *events = &file->events;
	struct tw_ring *ring = &file->ring;
	struct timerwheel_event event;
	bool room = tw_ring_room(ring), told = false;

	if (room) {
		event = tw_event_of_set(events);
		*tw_ring_slot(ring, ring->tail) = event;
		told = tw_events_take_set(file, &event);
	}
	tw_ring_publish(ring, room, tw_flow_overflow(events));
	return told;
}

/* Hand out the first due timers' events, at most @max of them, to the ring: it has room. */
static void tw_flow_write(const struct tw_ctx *ctx, unsigned int max, struct tw_taken *taken)
{
	struct tw_timer **pages = tw_pool_pages(&ctx->file->table.pool);
	const struct tw_ring *ring = &ctx->file->ring;
	struct timerwheel_event event;
	struct tw_timer *t;

	while (taken->count < max) {
		t = tw_timer_in_pages(pages, taken->next);
		event = tw_event_of(ctx, taken->next, t, ring->offset);
		*tw_ring_slot(ring, ring->tail + taken->count) = event;
		tw_taken_add(taken, t, &event);
	}
}

/* Let at most @most due timers into the ring, in a run or pass. Returns how many went. */
static unsigned int tw_flow_some(struct tw_ctx *ctx, unsigned int most)
{
	struct tw_events *events = &ctx->file->events;
	struct tw_ring *ring = &ctx->file->ring;
	unsigned int n, done = 0;
	struct tw_taken taken;

	ctx->offset = ring->offset;
	do {
		raw_spin_lock(&ring->lock);
		raw_spin_lock(&events->lock);
		if (unlikely(events->sets)) {
			ctx->wake_monitors |= tw_flow_set(ctx->file);
			done += !events->sets;
		}
		taken = (struct tw_taken){ events->due.first, events->due.first };
		n = min(tw_ring_room(ring), events->due.count);
		n = min3(n, most - done, TW_EVENTS);
		tw_flow_write(ctx, n, &taken);
		tw_events_pop(ctx, &taken);
		tw_ring_publish(ring, n, tw_flow_overflow(events));
		raw_spin_unlock(&events->lock);
		raw_spin_unlock(&ring->lock);
		tw_events_free(ctx, &taken);
		done += n;
	} while (n == TW_EVENTS && done < most);
	return done;
}

/* The same, TW_FLOW in a run. Returns how many went, or -ENOMEM if none. */
static long tw_flow_runs(struct tw_file *file, unsigned int most)
{
	struct tw_ctx ctx;
	unsigned int n;
	long done = 0;		/* signed, as errors are */
	int err;

	do {
		err = tw_cpu_begin(&ctx, file, 0);
		if (err)
			return done ? done : err;
		n = tw_flow_some(&ctx, min_t(u32, most - done, TW_FLOW));
		tw_cpu_end(&ctx);
		done += n;
		cond_resched();
	} while (n && done < most && !signal_pending(current));
	return done;
}

/* May @count timers go straight into the ring? Not ahead of others. */
static bool tw_flow_open(const struct tw_file *file, u32 count)
{
	lockdep_assert_held(&file->ring.lock);
	return tw_ring_room(&file->ring) >= count && !READ_ONCE(file->events.due.count) &&
	       !READ_ONCE(file->events.sets);
}

/**
 * tw_flow_at_once - let timers that fell due in a pass into the ring at once
 * @ctx: the pass; no bucket is locked
 * @due: they, linked and TW_DUE; they are in no other list
 *
 * Timers between wheel and due list are in the hands of their part's holder: nobody else does
 * anything with them before that lock is dropped, for it is not on the list that they are found
 * (tw_lock_if_due()). So if the ring has room they need not go there. Their part is not unlocked
 * before all of them are in the ring and free, or armed again if they are periodic.
 *
 * Return: true if they went; false: none did, they must go to the list.
 */
static bool tw_flow_at_once(struct tw_ctx *ctx, const struct tw_due_list *due)
{
	struct tw_file *file = ctx->file;
	struct tw_timer **pages = tw_pool_pages(&file->table.pool);
	struct tw_ring *ring = &file->ring;
	u64 offset = ring->offset;
	struct timerwheel_event *event;
	u32 index, next, place;
	struct tw_timer *t;

	raw_spin_lock(&ring->lock);
	if (!tw_flow_open(file, due->count)) {
		raw_spin_unlock(&ring->lock);
		return false;
	}
	trace_timerwheel_expire(ctx->cpu, due, ctx->now);
	tw_events_lock(file);
	ctx->wake |= tw_events_more(ctx->cpu, due->count, ctx->now);
	tw_events_unlock(file);
	if (unlikely(tw_log_wanted(file) || trace_timerwheel_deliver_enabled())) {
		ctx->offset = offset;
		tw_events_log(ctx, due->first, 0);
	}
	for (index = due->first, place = ring->tail; index; index = next, place++) {
		t = tw_timer_in_pages(pages, index);
		next = t->next;
		event = tw_ring_slot(ring, place);
		/* Said twice: so the usual one is without what a period takes. */
		if (likely(!t->periodic)) {
			*event = tw_event_of(ctx, index, t, offset);
			tw_event_free(ctx, t, index);
		} else {
			*event = tw_event_of(ctx, index, t, offset);
			tw_event_rearm(ctx, t, index);
		}
	}
	ctx->cpu->counts.delivered += due->count;
	tw_ring_publish(ring, due->count, READ_ONCE(file->events.due.count));
	raw_spin_unlock(&ring->lock);
	return true;
}

/**
 * tw_flow_expire - timers of a file with a ring fell due in a pass
 * @ctx: the pass; no bucket is locked
 * @due: they, linked and TW_DUE
 */
void tw_flow_expire(struct tw_ctx *ctx, const struct tw_due_list *due)
{
	lockdep_assert_held(&ctx->cpu->lock);
	if (tw_flow_at_once(ctx, due))
		return;
	ctx->wake |= tw_events_add(ctx->cpu, due, ctx->now);
	/* More than came: once there is room again the list becomes empty. */
	tw_flow_some(ctx, due->count + TW_FLOW_ALONG);
}

/**
 * tw_flow_after - timers of a file with a ring fell due in a run, which has ended
 * @file: the file
 * @n: how many
 *
 * In runs of its own, so that the one before was no longer for it; and not more than a few others
 * along with them.
 *
 * Context: process, may sleep.
 */
void tw_flow_after(struct tw_file *file, unsigned int n)
{
	tw_flow_runs(file, n + TW_FLOW_ALONG);
}

/**
 * tw_flow_all - TIMERWHEEL_IOC_FLOW
 * @file: the file
 *
 * Context: process, may sleep.
 * Return: how many events went into the ring; -EINVAL: there is none; -ENOMEM.
 */
long tw_flow_all(struct tw_file *file)
{
	if (unlikely(tw_clockset_asked(file)))
		tw_clockset_notice(file);
	/* A ring's worth at most: the reader may empty it as fast as we fill it. */
	return tw_has_ring(file) ? tw_flow_runs(file, file->ring.events) : -EINVAL;
}
