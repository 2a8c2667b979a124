// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "check.h"
#include "fail.h"

/* The first tick in which the wheel can have visited @t where it is queued */
static u64 first_visit(const struct rig *r, const struct model_timer *t)
{
	unsigned int shift = t->level * r->w.shift;

	return t->level ? ((t->queued >> shift) - 1) << shift : t->queued;
}

/*
 * Timer @index is in slot @b of @level. That must be the slot of the tick that it was queued for.
 * If it was postponed since, and its slot may have come up by @now, it may also be the slot of its
 * new tick.
 */
static void check_slot(const struct rig *r, struct model *m, u32 index, unsigned int level,
		       u64 b, u64 now)
{
	struct model_timer *t = &m->timer[index];
	unsigned int shift = level * r->w.shift;

	if (t->moved && t->queued >> shift != b && first_visit(r, t) <= now) {
		t->queued = max(t->target, r->w.cursor);
		t->level = level;
		t->moved = false;
		m->moved--;
	}
	CHECK(t->queued >> shift == b,
	      "timer %u is in slot %llu of level %u but queued for tick %llu%s", index, b, level,
	      t->queued, t->moved ? " (moved)" : "");
	CHECK(level <= t->level, "timer %u rose from level %u to %u", index, t->level, level);
	CHECK(t->queued >= r->w.cursor, "timer %u: tick %llu is before the cursor %llu", index,
	      t->queued, r->w.cursor);
}

/* Timer @index is in a backlog: the slot that it was queued in must have begun. */
static void check_backlog(const struct rig *r, const struct model_timer *t, u32 index, u64 now)
{
	unsigned int shift = t->level * r->w.shift;

	CHECK(t->queued >> shift << shift <= now, "timer %u of tick %llu is in a backlog in %llu",
	      index, t->queued, now);
}

/*
 * Walk strand number @n of @list: slot @b of @level, or a backlog. Returns the number of its
 * timers.
 */
static u32 check_strand(const struct rig *r, struct model *m, unsigned int list, unsigned int n,
			unsigned int level, u64 b, u64 now)
{
	u32 prev = TW_HEAD | (list + n * r->lists);
	u32 index, count = 0;

	for (index = r->w.head[list + n * r->lists]; index; index = rig_timer(r, index)->next) {
		const struct tw_timer *t;

		CHECK(index <= r->max, "list %u leads to timer %u", list, index);
		CHECK(!n || index % TW_STRANDS == n, "timer %u is in strand %u", index, n);
		CHECK(++count <= r->w.pending, "list %u has more timers than are pending", list);
		t = rig_timer(r, index);
		CHECK(t->prev == prev, "timer %u in list %u: prev is %#x, not %#x", index, list,
		      t->prev, prev);
		CHECK(t->state == TW_PENDING && m->timer[index].state == MODEL_PENDING,
		      "timer %u is in list %u in state %u", index, list, t->state);
		CHECK(rig_deadline(r, index) == m->timer[index].deadline &&
		      t->slack == m->timer[index].slack, "timer %u was changed", index);
		if (level < r->w.levels)
			check_slot(r, m, index, level, b, now);
		else
			check_backlog(r, &m->timer[index], index, now);
		prev = index;
	}
	return count;
}

/* Walk all strands of a list, and check its bit. Returns the number of its timers. */
static u32 check_list(const struct rig *r, struct model *m, unsigned int list, unsigned int level,
		      u64 b, u64 now)
{
	u32 count = 0;
	unsigned int n;

	for (n = 0; n < r->w.strands; n++)
		count += check_strand(r, m, list, n, level, b, now);
	CHECK(!count == !test_bit(list, r->w.occupied), "list %u has %u timers, bit %d", list,
	      count, test_bit(list, r->w.occupied));
	return count;
}

/* Are all slots from @list to @list + @n - 1 empty? @n divides @list and BITS_PER_LONG. */
static bool all_empty(const struct tw_wheel *w, unsigned int list, unsigned int n)
{
	static const u32 zeros[BITS_PER_LONG];
	unsigned long bits = w->occupied[BIT_WORD(list)] >> list % BITS_PER_LONG;
	unsigned int i;

	if (bits << (BITS_PER_LONG - n))
		return false;
	for (i = 0; i < w->strands; i++)
		if (memcmp(w->head + list + i * w->lists, zeros, n * sizeof(u32)))
			return false;
	return true;
}

/*
 * Check all lists, bits and counters of @r->w at tick @now, and that there is no work before
 * @r->w.work; if @exact, also that there is work then.
 */
void check_wheel(const struct rig *r, struct model *m, u64 now, bool exact)
{
	const struct tw_wheel *w = &r->w;
	unsigned int size = rig_level_size(r);
	unsigned int chunk = min(size, BITS_PER_LONG);
	unsigned int list = 0, level, i;
	u64 work = TW_NEVER;
	u32 pending = 0, count;

	for (level = 0; level < w->levels; level++) {
		u64 from = w->cursor >> level * w->shift;
		bool any = false;

		for (i = 0; i < size; i++, list++) {
			/* the only slot number in reach of the cursor with this place */
			u64 b = from + ((i - from) & (size - 1));
			u64 ready = level ? (b - 1) << level * w->shift : b;

			if (!(list % chunk) && all_empty(w, list, chunk)) {
				i += chunk - 1;
				list += chunk - 1;
				continue;
			}
			count = check_list(r, m, list, level, b, now);
			if (!count)
				continue;
			pending += count;
			work = min(work, ready);
			any = true;
		}
		CHECK(!any || w->busy & BIT(level), "level %u holds timers but is not busy", level);
	}
	CHECK(w->work <= work, "work is announced for tick %llu but begins at %llu", w->work, work);
	CHECK(!exact || w->work == work,
	      "work is announced for tick %llu but begins at %llu, and nothing was removed",
	      w->work, work);
	CHECK(w->backlogs <= TW_BACKLOGS && w->backlog_first < TW_BACKLOGS,
	      "%u backlogs from %u on", w->backlogs, w->backlog_first);
	for (i = 0; i < TW_BACKLOGS; i++, list++) {
		bool used = (i - w->backlog_first) % TW_BACKLOGS < w->backlogs;

		count = check_list(r, m, list, w->levels, 0, now);
		CHECK(used || !count, "backlog %u is not in use but holds timers", i);
		pending += count;
	}
	CHECK(pending == w->pending, "%u timers pending, %u in lists", w->pending, pending);
	CHECK(pending == m->count, "%u timers pending, the model has %u", pending, m->count);
}

/* Check the list of due timers. */
void check_due(const struct rig *r, const struct model *m)
{
	u32 index, prev = 0, count = 0;

	for (index = r->due.first; index; index = rig_timer(r, index)->next) {
		const struct tw_timer *t;

		CHECK(index <= r->max, "the due list leads to timer %u", index);
		CHECK(++count <= r->due.count, "the due list is longer than %u", r->due.count);
		t = rig_timer(r, index);
		CHECK(t->prev == prev, "due timer %u: prev is %u, not %u", index, t->prev, prev);
		CHECK(t->state == TW_DUE && m->timer[index].state == MODEL_DUE,
		      "timer %u is on the due list in state %u", index, t->state);
		prev = index;
	}
	CHECK(prev == r->due.last, "the due list ends with %u, not %u", prev, r->due.last);
	CHECK(count == r->due.count, "%u timers are due, %u in the list", r->due.count, count);
}
