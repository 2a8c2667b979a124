// SPDX-License-Identifier: GPL-2.0-only
/*
 * The timing wheel: slots, levels and bitmaps. No locks, no clocks, no memory of
 * its own, no user memory: it builds in user space too (selftests/unit/wheel). The caller
 * serialises all calls on one wheel.
 *
 * Shape
 * -----
 * Time is cut into ticks. A wheel has a few levels; a slot of level 0 is one tick,
 * and a slot of level n is as long as S = 2^shift slots of level n - 1. Each level is a
 * ring of 2 * S slots, each slot an unordered list of timers. Slots are numbered from
 * tick 0 on: timer and slot of level n match when tick >> (n * shift) is the slot's number;
 * the number modulo 2 * S is its place in the ring.
 *
 * A timer goes into the lowest level whose ring reaches its tick from the cursor. That
 * makes inserting and removing O(1), whatever the delay and however many there are.
 *
 * Cascading, early
 * ----------------
 * When time comes near an upper slot its timers move to lower levels: that is a cascade.
 * Such a slot may hold a million timers, some of them due in its very first tick, so it is
 * opened one slot ahead of time: slot b of level n holds ticks from b * S^n on, and
 * its cascade may begin at (b - 1) * S^n. That is what the rings' double length is for: all
 * ticks from there to the slot's end fit the level below. The work is done in pieces
 * (@budget), with the slot's list as the only state: what has not moved yet is where
 * REMOVE finds it.
 *
 * Each piece of work has a tick from which it may be done and one from which it is late:
 *
 *	expire slot e of level 0	from e			late from e
 *	cascade slot b of level n	from (b - 1) * S^n	late from b * S^n
 *
 * and of all work that may be done the one that is late first is done first; a cascade
 * before an expiry of the same tick. So ticks are expired in order, and a large
 * cascade does not delay them unless it is late itself.
 *
 * The cursor
 * ----------
 * No timer in a slot belongs to a tick before the cursor (one that is inserted later
 * than its tick goes to the cursor's). Since no level holds a slot before the cursor's
 * own, and a ring spans 2 * S slots from there, two slots never share a place. Proof
 * that the order above keeps this: when slot b of level n is opened at @now, all
 * that was late before b * S^n is done, and what may not be done yet begins after now; so
 * the cursor may go to min(now + 1, b * S^n). As that is not before (b - 1) * S^n, each
 * timer of the slot fits level n - 1 or lower: a cascade always descends. (A timer put off
 * since it was queued may go anywhere but into the same slot: that is b * S^n to
 * (b + 1) * S^n and nothing else as long as the slot is not empty.)
 *
 * An oversized tick
 * -----------------
 * A million timers may be due in one tick. When a pass has used up its budget in the
 * middle of one, the rest of the slot's list becomes a backlog, a list of its own, and later
 * ticks go first: timers that are not in the burst are not late because of it. The same
 * goes for an upper slot whose cascade is late.
 *
 * Visits
 * ------
 * A timer's deadline may be put off while it stays in its slot (MOVE to a later time, a store
 * in the deadline table, or a clock set back): when the slot comes up, to expire or to cascade,
 * the timer is queued again for the deadline that it has then. However often it was put
 * off, that is one visit per old deadline. The other way round a timer must be removed and
 * inserted.
 */
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/prefetch.h>
#include <linux/string.h>

#include "deadlines.h"
#include "slots.h"

/* Timers of a level that tw_wheel_first() looks at. */
#define TW_LOOKS	4096U

/**
 * tw_wheel_levels - how many levels reach every tick of 64-bit time
 * @slots: S, a power of two from TW_SLOTS_MIN to TW_SLOTS_MAX
 * @tick: length of a tick in ns
 *
 * Return: the number of levels, at least 1.
 */
unsigned int tw_wheel_levels(unsigned int slots, u64 tick)
{
	u64 top = div64_u64(U64_MAX, tick);
	unsigned int levels = 1;

	for (; top >= 2 * slots; levels++)
		top >>= ilog2(slots);
	return levels;
}

/**
 * tw_wheel_lists - how many lists a wheel needs
 * @slots: slots per level, as for tw_wheel_levels()
 * @tick: length of a tick in ns
 *
 * Return: how many elements the array @head and how many bits the bitmap
 * @occupied of tw_wheel_init() must have.
 */
unsigned int tw_wheel_lists(unsigned int slots, u64 tick)
{
	return tw_wheel_levels(slots, tick) * 2 * slots + TW_BACKLOGS;
}

/**
 * tw_wheel_init - make an empty wheel
 * @w: the wheel, zeroed
 * @pool: where its timers are
 * @head: tw_wheel_lists() zeros
 * @occupied: as many zero bits
 * @slots: slots per level, a power of two from TW_SLOTS_MIN to TW_SLOTS_MAX
 * @tick: length of a tick in ns, not 0
 * @now: the current tick
 */
void tw_wheel_init(struct tw_wheel *w, const struct tw_pool *pool, u32 *head,
		   unsigned long *occupied, unsigned int slots, u64 tick, u64 now)
{
	unsigned int level = 0, bit = 0;

	w->pool = pool;
	w->head = head;
	w->occupied = occupied;
	w->tick = tick;
	w->shift = ilog2(slots);
	w->ring = 2 * slots;
	w->levels = tw_wheel_levels(slots, tick);
	for (; bit < 64; bit++) {
		while (BIT_ULL(bit) >> (level * w->shift) >= w->ring)
			level++;
		w->reach[bit].list = level * w->ring;
		w->reach[bit].shift = level * w->shift;
	}
	w->cursor = now;
	w->work = TW_NEVER;
}

/* From which tick slot number @b of @level may be worked on. */
static u64 tw_work_tick(const struct tw_wheel *w, unsigned int level, u64 b)
{
	return level ? (b - 1) << (level * w->shift) : b;
}

/**
 * tw_wheel_set_first - let a list begin with another timer
 * @w: the wheel
 * @list: the list
 * @first: the timer, 0: the list is empty now
 */
void tw_wheel_set_first(struct tw_wheel *w, unsigned int list, u32 first)
{
	w->head[list] = first;
	if (first)
		tw_timer_at(w->pool, first)->prev = TW_HEAD | list;
	else
		__clear_bit(list, w->occupied);
}

/**
 * tw_wheel_open_slot - a slot is no longer empty
 * @w: the wheel
 * @list: its list
 * @b: its number
 */
void tw_wheel_open_slot(struct tw_wheel *w, unsigned int list, u64 b)
{
	unsigned int level = list >> ilog2(w->ring);
	u64 work = tw_work_tick(w, level, b);

	__set_bit(list, w->occupied);
	w->busy |= BIT(level);
	if (work < w->work) {
		w->work = work;
		w->sooner = true;
	}
}

/**
 * tw_wheel_count_lateness - note how late a timer fired
 * @w: the wheel that keeps the statistics
 * @late: fired - deadline, in ns
 */
void tw_wheel_count_lateness(struct tw_wheel *w, u64 late)
{
	w->lateness[(unsigned int)fls64(late)]++;
	if (unlikely(late > w->late_max))
		w->late_max = late;
}

/* The number of the first slot of @level that is not empty. False: there is none. */
static bool tw_first_slot(struct tw_wheel *w, unsigned int level, u64 *b)
{
	unsigned int ring = w->ring;
	unsigned int base = level * ring;
	u64 from = w->cursor >> (level * w->shift);
	unsigned int place = from & (ring - 1);
	unsigned int found;

	found = find_next_bit(w->occupied, base + ring, base + place);
	if (found >= base + ring) {
		found = find_next_bit(w->occupied, base + place, base);
		if (found >= base + place) {
			w->busy &= ~BIT(level);
			return false;
		}
	}
	*b = from + ((found - base - place) & (ring - 1));
	return true;
}

/* The first tick of a timer in slot number @b of @level, or an earlier one in the slot. */
static u64 tw_slot_tick(const struct tw_wheel *w, unsigned int level, u64 b)
{
	u64 begin = b << (level * w->shift);
	u64 first = begin + BIT_ULL(level * w->shift) - 1;
	u32 index = w->head[level * w->ring + (b & (w->ring - 1))];
	unsigned int left = TW_LOOKS;

	/* Those that were put off beyond the slot are put anew at its end. */
	for (; index && left; left--) {
		const struct tw_timer *t = tw_timer_at(w->pool, index);

		first = min(first, tw_fire_tick(w, t));
		index = t->next;
	}
	return index ? begin : max(first, begin);
}

/**
 * tw_wheel_first - when is the first timer due?
 * @w: the wheel
 *
 * Unlike @w->work not when there is something to cascade. Looks at TW_LOOKS timers of each level at
 * most: who has more of them in a slot gets the slot's begin.
 *
 * Return: the tick, or an earlier one; TW_NEVER: there is none.
 */
u64 tw_wheel_first(struct tw_wheel *w)
{
	unsigned long busy = w->busy;
	u64 first = TW_NEVER, slot;
	unsigned int level;

	if (w->backlogs)
		return w->cursor;
	for_each_set_bit(level, &busy, w->levels)
		if (tw_first_slot(w, level, &slot))
			first = min(first, tw_slot_tick(w, level, slot));
	return first;
}

/**
 * struct tw_job - the next piece of work
 * @level: 0: expire the slot; else: cascade it
 * @slot: its number
 * @late: the tick from which it is late
 */
struct tw_job {
	unsigned int level;
	u64 slot;
	u64 late;
};

/* Choose the most urgent work that may be done @now, and set @w->work. False: none. */
static bool tw_next_job(struct tw_wheel *w, u64 now, struct tw_job *job)
{
	unsigned long busy = w->busy;
	unsigned int level;
	u64 work, late, slot;
	bool any = false;

	w->work = TW_NEVER;
	for_each_set_bit(level, &busy, w->levels) {
		if (!tw_first_slot(w, level, &slot))
			continue;
		work = tw_work_tick(w, level, slot);
		w->work = min(w->work, work);
		if (work > now)
			continue;
		late = slot << (level * w->shift);
		/* <=: of equals the higher level first */
		if (!any || late <= job->late)
			*job = (struct tw_job){ level, slot, late };
		any = true;
	}
	return any;
}

/* The timer that is next in a list, soon to be in the cache; with none the memory of index 0. */
static struct tw_timer *tw_ahead(struct tw_timer **pages, u32 next)
{
	struct tw_timer *t = tw_timer_in(pages, next);

	prefetchw(t);
	return t;
}

/*
 * Visit timers of @list, at most @budget: those that are due go to @due, the
 * others are placed anew, which never puts them back into @list.
 */
static unsigned int tw_visit(struct tw_wheel *w, unsigned int list, u64 now_ns,
			     unsigned int budget, u64 *moved, struct tw_chain *due)
{
	struct tw_timer **pages = tw_pool_pages(w->pool);
	u64 **words = tw_pool_words(w->pool);
	u32 index = w->head[list], next, before = due->last;
	struct tw_timer *t = tw_timer_in(pages, index), *after;
	struct tw_timer *last = before ? tw_timer_in(pages, before) : NULL;
	unsigned int left = budget, put_off = 0, expired;

	for (; index && left; index = next, t = after, left--) {
		next = t->next;
		after = tw_ahead(pages, next);
		tw_deadline_read(w->pool, words, index, t);
		if (t->deadline > now_ns) {
			tw_place(w, index, t);
			put_off++;
			continue;
		}
		WRITE_ONCE(t->state, TW_DUE);
		t->fired = now_ns;
		t->prev = before;
		if (last)
			last->next = index;
		else
			due->first = index;
		before = index;
		last = t;
		tw_wheel_count_lateness(w, now_ns - t->deadline);
	}
	tw_wheel_set_first(w, list, index);
	*moved += put_off;
	expired = budget - left - put_off;
	if (expired) {
		last->next = 0;
		due->last = before;
		due->count += expired;
		w->expired += expired;
		w->pending -= expired;
	}
	return budget - left;
}

/* Cascade timers of @list, at most @budget of them. */
static unsigned int tw_cascade(struct tw_wheel *w, unsigned int list, unsigned int budget)
{
	struct tw_timer **pages = tw_pool_pages(w->pool);
	u64 **words = tw_pool_words(w->pool);
	u32 index = w->head[list], next;
	struct tw_timer *t = tw_timer_in(pages, index), *after;
	unsigned int left = budget;

	for (; index && left; index = next, t = after, left--) {
		next = t->next;
		after = tw_ahead(pages, next);
		tw_deadline_read(w->pool, words, index, t);
		tw_place(w, index, t);
	}
	tw_wheel_set_first(w, list, index);
	w->cascades += budget - left;
	return budget - left;
}

/* Let what is left of slot @list wait as a backlog, if there is room for one more. */
static void tw_detach(struct tw_wheel *w, unsigned int list)
{
	unsigned int base = w->levels * w->ring;
	unsigned int n = (w->backlog_first + w->backlogs) % TW_BACKLOGS;
	u32 first = w->head[list];

	if (w->backlogs == TW_BACKLOGS)
		return;
	tw_wheel_set_first(w, list, 0);
	tw_wheel_set_first(w, base + n, first);
	__set_bit(base + n, w->occupied);
	w->backlogs++;
}

/* Visit timers of the oldest backlogs, at most @budget. */
static unsigned int tw_visit_backlogs(struct tw_wheel *w, u64 now_ns, unsigned int budget,
				      struct tw_chain *due)
{
	unsigned int base = w->levels * w->ring;
	unsigned int done = 0;

	while (w->backlogs) {
		if (done == budget)
			break;
		done += tw_visit(w, base + w->backlog_first, now_ns, budget - done,
				 &w->requeues, due);
		if (w->head[base + w->backlog_first])
			break;
		w->backlog_first = (w->backlog_first + 1) % TW_BACKLOGS;
		w->backlogs--;
	}
	return done;
}

/**
 * tw_wheel_collect - do some of the work that is to be done by now
 * @w: the wheel
 * @now: the current tick
 * @now_ns: the current time in ns; all that is due is due at or before it
 * @budget: most timers to handle, at least 2
 * @manual: time passes through every tick on its way here: each timer fires at the time of
 *	its own tick, strictly in the order of ticks
 * @last: the caller's last piece for a while: leave no tick half done, if possible
 * @due: where timers that are due are appended; they are TW_DUE then, in no list of @w
 *
 * Return: true if there is more to do now; else nothing is to be done before @w->work.
 */
bool tw_wheel_collect(struct tw_wheel *w, u64 now, u64 now_ns, unsigned int budget,
		      bool manual, bool last, struct tw_chain *due)
{
	unsigned int left = budget;
	struct tw_job job;
	unsigned int list;

	if (w->work > now && !w->backlogs)
		return false;

	while (tw_next_job(w, now, &job)) {
		/* Cascades that are not late yet leave half of the budget to the backlog. */
		bool early = job.late > now;

		if (!left || (early && w->backlogs && left <= budget / 2))
			break;
		w->cursor = max(w->cursor, min(now + 1, job.late));
		list = job.level * w->ring + (job.slot & (w->ring - 1));
		if (job.level)
			left -= tw_cascade(w, list,
					   early && w->backlogs ? left - budget / 2 : left);
		else
			left -= tw_visit(w, list, manual ? job.slot * w->tick : now_ns, left,
					 &w->requeues, due);
		if (last && !manual && !early && !left && w->head[list])
			tw_detach(w, list);
	}
	tw_wheel_catch_up(w, now);
	if (left)
		tw_visit_backlogs(w, now_ns, left, due);
	return w->work <= now || w->backlogs;
}
