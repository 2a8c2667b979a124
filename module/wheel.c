// SPDX-License-Identifier: GPL-2.0-only
/*
 * The timing wheel: slots, levels and bitmaps. It takes no locks, reads no clock, allocates nothing
 * and accesses no user memory, so it also builds in user space (selftests/unit/wheel). The caller
 * serialises all calls on one wheel.
 *
 * Levels and slots
 * ----------------
 * Time is divided into ticks. A wheel has a few levels. A slot of level 0 spans one tick; a slot of
 * level n spans S = 2^shift slots of level n - 1. Each slot is an unordered list of timers. Slots
 * are numbered from tick 0 on: tick t belongs to slot number t >> (n * shift) of level n. A level
 * has memory for 2 * S slots; slot number b is at place b modulo 2 * S.
 *
 * A timer goes to the lowest level whose 2 * S slots, counted from the cursor, include its tick.
 * Therefore insertion and removal are O(1), whatever the delay and the number of timers.
 *
 * Early cascades
 * --------------
 * When the time of an upper slot approaches, its timers cascade: they move to lower levels. An
 * upper slot may hold a million timers, some of them due in its very first tick. Therefore it is
 * opened one slot early: slot b of level n begins at tick b * S^n, and its cascade may begin at
 * (b - 1) * S^n. This is why a level has 2 * S slots instead of S: all ticks from there to the end
 * of the slot fit the level below. A cascade may take several batches (@budget). The slot's list is
 * its only state, so REMOVE finds a timer that has not moved yet.
 *
 * The order of work
 * -----------------
 * Each job has a tick from which it may be done, and a tick from which it is late:
 *
 *	expire slot e of level 0	from e			late from e
 *	cascade slot b of level n	from (b - 1) * S^n	late from b * S^n
 *
 * Of the jobs that may be done now, the job that is late first is done first. At the same tick, a
 * cascade comes before an expiry. Therefore ticks are expired in order, and a large cascade does
 * not delay them unless it is late itself.
 *
 * The cursor
 * ----------
 * Invariant: no timer in a slot belongs to a tick before the cursor. (A timer that is inserted
 * after its tick goes to the cursor's tick.) Hence no level holds a slot before the cursor's slot.
 * From there a level has 2 * S slots, so two slots never share a place.
 *
 * The order of work keeps the invariant. When slot b of level n is opened at @now, all work that
 * was late before b * S^n is done, and all work that may not be done yet begins after @now.
 * Therefore the cursor may advance to min(now + 1, b * S^n). This is not before (b - 1) * S^n, so
 * each timer of the slot fits level n - 1 or a lower level: cascades always descend. A timer that
 * was postponed since it was queued can go to any place except its old one: as long as the slot is
 * not empty, that place stands for ticks b * S^n to (b + 1) * S^n, and these fit the level below.
 *
 * Oversized ticks
 * ---------------
 * A million timers may be due in one tick. If the budget of the caller's last batch for a while
 * (@last) ends in the middle of a slot that is late, the rest of its list becomes a separate list,
 * a backlog, and later ticks go first. Therefore a burst does not delay other timers. The same
 * applies to an upper slot whose cascade is late.
 *
 * Visits
 * ------
 * A timer may be postponed while it stays in its slot: by MOVE to a later time, by its entry in the
 * deadline table, or because the clock was set back. When the slot is expired or cascaded, the
 * timer is queued again for its current deadline. This is one visit, however often the timer was
 * postponed. If its deadline is moved to an earlier time, the timer must be removed and inserted
 * again.
 *
 * Strands
 * -------
 * With a million timers, most timers of a slot are in no cache, and the address of the next timer
 * is in the timer that has not arrived yet. A walk along one chain waits for the memory once per
 * timer. Therefore each list of a large wheel has TW_STRANDS strands. A strand is a chain of its
 * own, and a walk visits the strands in turn. The visit of a timer prefetches the next timer of its
 * strand, and one timer of each other strand is visited before that timer is needed. Only timers
 * of the list are prefetched, whatever was removed from it.
 *
 * The lower bits of a timer's index select its strand. The number of a strand is the number of its
 * list plus a distance (tw_wheel.strand), which takes three instructions at insertion and none at
 * removal. All strands of a list share a bit of @occupied.
 *
 * The heads of all strands take 4 * TW_STRANDS bytes per list, 99 kB in a wheel with the default
 * settings. Therefore a new wheel has one strand per list, and all distances are 0. When it has
 * TW_STRAND_TIMERS pending timers per list, it gets a larger array (tw_wheel_spread()). The first
 * strands keep their numbers, and their timers stay where they are. So the first strand of a list
 * may have any timers. This does no harm, because a timer is removed by its links.
 */
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/prefetch.h>
#include <linux/string.h>

#include "deadlines.h"
#include "resident.h"
#include "slots.h"
#include "sock.h"

/* Budget charged for the visit of a connection, in addition to its timer's visit. */
#define TW_SOCK_COST	2U

/* The search for the next slot is charged 1 per level, and 1 per this number of bitmap bits. */
#define TW_SEARCH_BITS	1024U

/**
 * tw_wheel_levels - number of levels that cover every tick of 64-bit time
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
 * tw_wheel_lists - number of lists that a wheel needs
 * @slots: slots per level, as for tw_wheel_levels()
 * @tick: length of a tick in ns
 *
 * Return: the number of elements of the array @head, and of bits of the bitmap @occupied, of
 * tw_wheel_init().
 */
unsigned int tw_wheel_lists(unsigned int slots, u64 tick)
{
	return tw_wheel_levels(slots, tick) * 2 * slots + TW_BACKLOGS;
}

/**
 * tw_wheel_init - initialise an empty wheel
 * @w: the wheel, zeroed
 * @pool: the pool of its timers
 * @head: an array of tw_wheel_lists() elements, zeroed
 * @occupied: a bitmap with as many bits, zeroed
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
	w->level_size = 2 * slots;
	w->level_mask = w->level_size - 1;
	w->levels = tw_wheel_levels(slots, tick);
	w->lists = tw_wheel_lists(slots, tick);
	w->strands = 1;
	for (; bit < 64; bit++) {
		while (BIT_ULL(bit) >> (level * w->shift) >= w->level_size)
			level++;
		w->reach[bit].list = level * w->level_size;
		w->reach[bit].shift = level * w->shift;
	}
	w->cursor = now;
	w->work = TW_NEVER;
}

/* The tick from which slot number @b of @level may be expired or cascaded. */
static u64 tw_work_tick(const struct tw_wheel *w, unsigned int level, u64 b)
{
	return level ? (b - 1) << (level * w->shift) : b;
}

/**
 * tw_wheel_spread - give the lists of a wheel TW_STRANDS strands: see "Strands"
 * @w: the wheel, whose lists have one strand
 * @head: an array of TW_STRANDS * @w->lists elements, zeroed. It replaces the array of
 *	tw_wheel_init().
 */
void tw_wheel_spread(struct tw_wheel *w, u32 *head)
{
	unsigned int i;

	memcpy(head, w->head, w->lists * sizeof(*head));
	w->head = head;
	w->strands = TW_STRANDS;
	for (i = 0; i < TW_STRANDS; i++)
		w->strand[i] = i * w->lists;
}

/* Has no strand of @list a timer? */
static bool tw_list_empty(const struct tw_wheel *w, unsigned int list)
{
	unsigned int i;

	for (i = 0; i < w->strands; i++)
		if (w->head[list + w->strand[i]])
			return false;
	return true;
}

/**
 * tw_wheel_set_first - set the first timer of a strand
 * @w: the wheel
 * @strand: the strand
 * @first: index of the timer; 0: the strand is empty from now on
 */
void tw_wheel_set_first(struct tw_wheel *w, unsigned int strand, u32 first)
{
	unsigned int list = strand;

	w->head[strand] = first;
	if (first) {
		tw_timer_at(w->pool, first)->prev = TW_HEAD | strand;
		return;
	}
	if (w->strands > 1) {
		list %= w->lists;
		if (!tw_list_empty(w, list))
			return;
	}
	__clear_bit(list, w->occupied);
}

/**
 * tw_wheel_open_slot - account for a slot with a strand that is no longer empty
 * @w: the wheel
 * @list: the slot's list
 * @b: the slot's number
 */
void tw_wheel_open_slot(struct tw_wheel *w, unsigned int list, u64 b)
{
	unsigned int level = list >> ilog2(w->level_size);
	u64 work = tw_work_tick(w, level, b);

	__set_bit(list, w->occupied);
	w->busy |= BIT(level);
	if (work < w->work) {
		w->work = work;
		w->sooner = true;
	}
}

/**
 * tw_wheel_count_lateness - count how late a timer fired
 * @w: the wheel whose statistics count it
 * @late: fired - deadline, in ns
 */
void tw_wheel_count_lateness(struct tw_wheel *w, u64 late)
{
	w->lateness[(unsigned int)fls64(late)]++;
	if (unlikely(late > w->late_max))
		w->late_max = late;
}

/* Find the first slot of @level that is not empty. Returns false if there is none. */
static bool tw_first_slot(struct tw_wheel *w, unsigned int level, u64 *b)
{
	unsigned int size = w->level_size;
	unsigned int base = level * size;
	u64 from = w->cursor >> (level * w->shift);
	unsigned int place = from & (size - 1);
	unsigned int found;

	found = find_next_bit(w->occupied, base + size, base + place);
	if (found >= base + size) {
		found = find_next_bit(w->occupied, base + place, base);
		if (found >= base + place) {
			w->busy &= ~BIT(level);
			return false;
		}
	}
	*b = from + ((found - base - place) & (size - 1));
	return true;
}

/*
 * The first tick for which a timer in slot number @b of @level is queued, or an earlier tick of the
 * slot. Examines at most @left timers, and subtracts their number from @left.
 */
static u64 tw_slot_tick(const struct tw_wheel *w, unsigned int level, u64 b, unsigned int *left)
{
	u64 begin = b << (level * w->shift);
	u64 first = begin + BIT_ULL(level * w->shift) - 1;
	unsigned int list = level * w->level_size + (b & (w->level_size - 1)), i;
	const struct tw_timer *t;
	u32 index;

	/*
	 * Timers postponed beyond the slot count as at its last tick, because they are visited
	 * then.
	 */
	for (i = 0; i < w->strands; i++) {
		for (index = w->head[list + w->strand[i]]; index; index = t->next) {
			if (!*left)
				return begin;
			--*left;
			t = tw_timer_at(w->pool, index);
			first = min(first, tw_fire_tick(w, t));
		}
	}
	return max(first, begin);
}

/**
 * tw_wheel_first - find the tick of the first timer
 * @w: the wheel
 * @left: maximum number of timers to examine; the number of examined timers is subtracted
 *
 * Unlike @w->work, this is not a tick at which there is only a cascade to do. Examines the timers
 * in the first slot of each level. If the slot has more timers than @left, uses its first tick.
 *
 * Return: the tick, or an earlier one; TW_NEVER: the wheel is empty.
 */
u64 tw_wheel_first(struct tw_wheel *w, unsigned int *left)
{
	unsigned long busy = w->busy;
	u64 first = TW_NEVER, slot;
	unsigned int level;

	if (w->backlogs)
		return w->cursor;
	for_each_set_bit(level, &busy, w->levels)
		if (tw_first_slot(w, level, &slot))
			first = min(first, tw_slot_tick(w, level, slot, left));
	return first;
}

/**
 * struct tw_job - a slot that is to be expired or cascaded
 * @level: its level; 0: expire it; else cascade it
 * @slot: its number
 * @late: the tick from which the job is late
 * @cost: budget charged for the search
 */
struct tw_job {
	unsigned int level;
	u64 slot;
	u64 late;
	unsigned int cost;
};

/*
 * Budget charged for searching @levels levels for a job. The search passes a level's whole bitmap
 * if its first slot is far away. Without a charge, a batch of ticks with a single timer each would
 * hold the lock twenty times as long.
 */
static unsigned int tw_search_cost(const struct tw_wheel *w, unsigned int levels)
{
	return levels + levels * w->level_size / TW_SEARCH_BITS;
}

/*
 * Of the jobs that may be done @now, choose the job that is late first. Sets @w->work. Returns
 * false if there is none.
 */
static bool tw_next_job(struct tw_wheel *w, u64 now, struct tw_job *job)
{
	unsigned long busy = w->busy;
	unsigned int level, searched = 0;
	u64 work, late, slot;
	bool any = false;

	w->work = TW_NEVER;
	for_each_set_bit(level, &busy, w->levels) {
		searched++;
		if (!tw_first_slot(w, level, &slot))
			continue;
		work = tw_work_tick(w, level, slot);
		w->work = min(w->work, work);
		if (work > now)
			continue;
		late = slot << (level * w->shift);
		/* Use <=, so that at the same tick the higher level goes first. */
		if (!any || late <= job->late)
			*job = (struct tw_job){ level, slot, late };
		any = true;
	}
	job->cost = tw_search_cost(w, searched);
	return any;
}

/**
 * struct tw_strand - a strand of a list that is walked
 * @t: its next timer, prefetched
 * @index: the index of this timer
 * @number: the strand's number
 * @after: the strand that is next in turn
 */
struct tw_strand {
	struct tw_timer *t;
	u32 index;
	u32 number;
	struct tw_strand *after;
};

/* The next timer of a strand is @index. Prefetch it. */
static __always_inline void tw_strand_to(struct tw_strand *strand, struct tw_timer **pages,
					 u32 index)
{
	strand->index = index;
	strand->t = tw_timer_in_pages(pages, index);
	prefetchw(strand->t);
}

/*
 * Begin a walk through @list: take all its timers out of it. Returns the strand whose turn it is.
 * The functions of walks are compiled twice. If lists have one strand, @many is false, and the
 * state of the walk is in registers.
 */
static __always_inline struct tw_strand *tw_walk_begin(struct tw_wheel *w, unsigned int list,
						       struct tw_strand *strand, bool many)
{
	struct tw_timer **pages = tw_pool_pages(w->pool);
	struct tw_strand *end = strand;
	unsigned int i, number;
	u32 first;

	if (!many) {
		strand->number = list;
		tw_strand_to(strand, pages, w->head[list]);
		w->head[list] = 0;
		return strand;
	}
	for (i = 0; i < w->strands; i++) {
		number = list + w->strand[i];
		first = w->head[number];
		if (!first)
			continue;
		w->head[number] = 0;
		end->number = number;
		tw_strand_to(end, pages, first);
		end->after = end + 1;
		end++;
	}
	if (end == strand)
		return NULL;
	end[-1].after = strand;
	return strand;
}

/* Has a walk visited all timers? */
static __always_inline bool tw_walk_done(const struct tw_strand *strand, bool many)
{
	return many ? !strand : !strand->index;
}

/* The last timer of @strand is visited. Returns the strand whose turn it is; NULL: none. */
static noinline struct tw_strand *tw_strand_end(struct tw_strand *strand)
{
	struct tw_strand *before = strand;

	while (before->after != strand)
		before = before->after;
	before->after = strand->after;
	return before == strand ? NULL : strand->after;
}

/* Go on to timer @next of a strand, 0: there is none. Returns the strand whose turn it is. */
static __always_inline struct tw_strand *tw_walk_on(struct tw_strand *strand,
						    struct tw_timer **pages, u32 next, bool many)
{
	if (many && unlikely(!next))
		return tw_strand_end(strand);
	tw_strand_to(strand, pages, next);
	return many ? strand->after : strand;
}

/* End a walk. The timers that it has not visited go back to their list. */
static __always_inline void tw_walk_end(struct tw_wheel *w, unsigned int list,
					const struct tw_strand *strand, bool many)
{
	const struct tw_strand *at = strand;

	if (tw_walk_done(strand, many)) {
		__clear_bit(list, w->occupied);
		return;
	}
	do {
		w->head[at->number] = at->index;
		at->t->prev = TW_HEAD | at->number;
	} while (many && (at = at->after) != strand);
}

/* Queue a timer for the tick after @now_ns, although its deadline has passed. */
static noinline void tw_place_next(struct tw_wheel *w, u32 index, struct tw_timer *t, u64 now_ns)
{
	__tw_place(w, tw_pool_pages(w->pool), index, t, div64_u64(now_ns + w->bias, w->tick) + 1);
}

/*
 * Visit at most @budget timers of @list, fewer if they watch connections. Append timers that are
 * due to @due. Queue the others again, never in @list, and count them in @moved. Returns the used
 * budget; 0 if the list was empty.
 */
static __always_inline unsigned int __tw_visit(struct tw_wheel *w, unsigned int list, u64 now_ns,
					       unsigned int budget, u64 *moved,
					       struct tw_due_list *due, bool many)
{
	struct tw_timer **pages = tw_pool_pages(w->pool);
	u64 **deadlines = tw_pool_deadlines(w->pool);
	u32 index, next, prev = due->last;
	u32 *link = prev ? &tw_timer_in_pages(pages, prev)->next : &due->first;
	unsigned int left = budget, postponed = 0, parked = 0, cost = 0, expired, extra;
	struct tw_strand strands[TW_STRANDS], *turn = tw_walk_begin(w, list, strands, many);
	enum tw_visited visited;
	struct tw_timer *t;
	u64 late;

	for (; left && !tw_walk_done(turn, many); left--) {
		t = turn->t;
		index = turn->index;
		next = t->next;
		turn = tw_walk_on(turn, pages, next, many);
		if (unlikely(deadlines)) {
			prefetchw(tw_deadline_entry(deadlines, next));
			visited = tw_resident_visit(w->pool, index, t, now_ns);
			if (visited == TW_VISITED_PARKED) {
				tw_timer_park(w, t);
				parked++;
				continue;
			}
			if (unlikely(visited == TW_VISITED_AGAIN)) {
				tw_place_next(w, index, t, now_ns);
				postponed++;
				continue;
			}
		}
		/* Delivery locks the timer's bucket. */
		if (likely(!t->stay)) {
			prefetchw(READ_ONCE(t->chain));
		} else if (tw_timer_has_sock(t) && t->deadline <= now_ns) {
			extra = min(left - 1, TW_SOCK_COST);
			left -= extra;
			cost += extra;
			if (!tw_sock_visit(t, now_ns)) {
				tw_timer_park(w, t);
				parked++;
				continue;
			}
		}
		late = now_ns - t->deadline;
		if (late > now_ns) {	/* it is negative */
			tw_place(w, pages, index, t);
			postponed++;
			continue;
		}
		WRITE_ONCE(t->state, TW_DUE);
		t->fired = now_ns;
		t->prev = prev;
		*link = index;
		link = &t->next;
		prev = index;
		tw_wheel_count_lateness(w, late);
	}
	tw_walk_end(w, list, turn, many);
	*moved += postponed;
	w->pending -= parked;
	expired = budget - left - cost - postponed - parked;
	if (expired) {
		*link = 0;
		due->last = prev;
		due->count += expired;
		w->expired += expired;
		w->pending -= expired;
	}
	return budget - left;
}

static unsigned int tw_visit(struct tw_wheel *w, unsigned int list, u64 now_ns,
			     unsigned int budget, u64 *moved, struct tw_due_list *due)
{
	if (w->strands > 1)
		return __tw_visit(w, list, now_ns, budget, moved, due, true);
	return __tw_visit(w, list, now_ns, budget, moved, due, false);
}

/* Cascade at most @budget timers of @list. Returns their number. */
static __always_inline unsigned int __tw_cascade(struct tw_wheel *w, unsigned int list,
						 unsigned int budget, bool many)
{
	struct tw_timer **pages = tw_pool_pages(w->pool);
	u64 **deadlines = tw_pool_deadlines(w->pool);
	struct tw_strand strands[TW_STRANDS], *turn = tw_walk_begin(w, list, strands, many);
	unsigned int left = budget;
	struct tw_timer *t;
	u32 index, next;

	for (; left && !tw_walk_done(turn, many); left--) {
		t = turn->t;
		index = turn->index;
		next = t->next;
		turn = tw_walk_on(turn, pages, next, many);
		if (unlikely(deadlines)) {
			prefetchw(tw_deadline_entry(deadlines, next));
			tw_deadline_sync(w->pool, deadlines, index, t);
		}
		tw_place(w, pages, index, t);
	}
	tw_walk_end(w, list, turn, many);
	w->cascades += budget - left;
	return budget - left;
}

static unsigned int tw_cascade(struct tw_wheel *w, unsigned int list, unsigned int budget)
{
	return w->strands > 1 ? __tw_cascade(w, list, budget, true) :
				__tw_cascade(w, list, budget, false);
}

/* Turn the rest of slot @list into a backlog, unless there are TW_BACKLOGS backlogs. */
static void tw_detach(struct tw_wheel *w, unsigned int list)
{
	unsigned int n = (w->backlog_first + w->backlogs) % TW_BACKLOGS;
	unsigned int to = w->levels * w->level_size + n, i;
	u32 first;

	if (w->backlogs == TW_BACKLOGS)
		return;
	for (i = 0; i < w->strands; i++) {
		first = w->head[list + w->strand[i]];
		tw_wheel_set_first(w, list + w->strand[i], 0);
		tw_wheel_set_first(w, to + w->strand[i], first);
	}
	__set_bit(to, w->occupied);
	w->backlogs++;
}

/* Visit at most @budget timers of backlogs, the oldest backlog first. Returns their number. */
static unsigned int tw_visit_backlogs(struct tw_wheel *w, u64 now_ns, unsigned int budget,
				      struct tw_due_list *due)
{
	unsigned int base = w->levels * w->level_size;
	unsigned int done = 0;

	while (w->backlogs) {
		if (done == budget)
			break;
		done += tw_visit(w, base + w->backlog_first, now_ns, budget - done,
				 &w->requeues, due);
		if (test_bit(base + w->backlog_first, w->occupied))
			break;
		w->backlog_first = (w->backlog_first + 1) % TW_BACKLOGS;
		w->backlogs--;
	}
	return done;
}

/**
 * tw_wheel_collect - do a batch of the work that may be done by now
 * @w: the wheel
 * @now: the current tick
 * @now_ns: the current time in ns; timers with this deadline or an earlier one are due
 * @budget: maximum number of timers to visit or cascade, at least 2. A visit of a timer that
 *	watches a connection counts as three, and the search for a slot also counts.
 * @manual: time passes through every tick: each timer fires at the time of its own tick, strictly
 *	in the order of ticks
 * @last: the caller's last batch for a while: see "Oversized ticks"
 * @due: due timers are appended to it; they are then TW_DUE, and in no list of @w
 *
 * Return: true if more work may be done now; otherwise there is no work before @w->work.
 */
bool tw_wheel_collect(struct tw_wheel *w, u64 now, u64 now_ns, unsigned int budget,
		      bool manual, bool last, struct tw_due_list *due)
{
	unsigned int left = budget;
	struct tw_job job;
	unsigned int list;

	if (w->work > now && !w->backlogs)
		return false;

	while (tw_next_job(w, now, &job)) {
		/* Early cascades leave half of the budget to the backlogs, minus the search. */
		bool early = job.late > now;

		if (!left || (early && w->backlogs && left <= budget / 2))
			break;
		w->cursor = max(w->cursor, min(now + 1, job.late));
		list = job.level * w->level_size + (job.slot & (w->level_size - 1));
		if (job.level)
			left -= tw_cascade(w, list,
					   early && w->backlogs ? left - budget / 2 : left);
		else
			left -= tw_visit(w, list, manual ? job.slot * w->tick : now_ns, left,
					 &w->requeues, due);
		if (last && !manual && !early && !left && test_bit(list, w->occupied))
			tw_detach(w, list);
		left -= min(left, job.cost);
	}
	tw_wheel_catch_up(w, now);
	if (left)
		tw_visit_backlogs(w, now_ns, left, due);
	return w->work <= now || w->backlogs;
}
