// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>
#include <linux/atomic.h>

#include "deadlines.h"
#include "fail.h"
#include "rig.h"
#include "slots.h"

void (*rig_hammer)(u64 *entry);

/* The shim's: see linux/atomic.h. */
void rig_swap(u64 *place)
{
	if (rig_hammer)
		rig_hammer(place);
}

static void *must(void *memory)
{
	CHECK(memory, "no memory");
	return memory;
}

void rig_init(struct rig *r, unsigned int slots, u64 tick, u64 now, u32 max, unsigned int bits)
{
	unsigned int pages = max / TW_PAGE_TIMERS + 1;
	unsigned int deadline_pages = max / TW_PAGE_DEADLINES + 1;
	unsigned int i;

	memset(r, 0, sizeof(*r));
	r->slots = slots;
	r->max = max;
	r->lists = tw_wheel_lists(slots, tick);
	r->page = must(calloc(pages, sizeof(*r->page)));
	for (i = 0; i < pages; i++)
		r->page[i] = must(calloc(TW_PAGE_TIMERS, sizeof(**r->page)));
	r->pool.page = r->page;
	if (bits) {
		r->deadlines = must(calloc(deadline_pages, sizeof(*r->deadlines)));
		for (i = 0; i < deadline_pages; i++)
			r->deadlines[i] = must(calloc(TW_PAGE_DEADLINES, sizeof(**r->deadlines)));
		r->pool.deadlines = r->deadlines;
	}
	tw_pool_set_entries(&r->pool, bits, false);
	r->head = must(calloc(r->lists, sizeof(u32)));
	r->heads = must(calloc(r->lists, TW_STRANDS * sizeof(u32)));
	tw_wheel_init(&r->w, &r->pool, r->head,
		      must(calloc(BITS_TO_LONGS(r->lists), sizeof(long))), slots, tick, now);
}

/* Start over at tick @now with the same memory. The wheel must be empty. */
void rig_restart(struct rig *r, u64 now)
{
	unsigned long *occupied = r->w.occupied;
	u64 tick = r->w.tick;
	unsigned int i;

	CHECK(!r->w.pending, "%u timers pending in an empty wheel", r->w.pending);
	for (i = 0; i < r->lists; i++)
		CHECK(!test_bit(i, occupied), "list %u of an empty wheel is occupied", i);
	for (i = 0; i < r->lists * r->w.strands; i++)
		CHECK(!r->w.head[i], "strand %u of an empty wheel: %u", i, r->w.head[i]);
	memset(r->head, 0, r->lists * sizeof(u32));
	memset(&r->w, 0, sizeof(r->w));
	memset(&r->due, 0, sizeof(r->due));
	tw_wheel_init(&r->w, &r->pool, r->head, occupied, r->slots, tick, now);
}

/* Give the lists TW_STRANDS strands, if they have one. */
void rig_spread(struct rig *r)
{
	if (r->w.strands > 1)
		return;
	memset(r->heads, 0, r->lists * TW_STRANDS * sizeof(u32));
	tw_wheel_spread(&r->w, r->heads);
}

void rig_free(struct rig *r)
{
	unsigned int pages = r->max / TW_PAGE_TIMERS + 1;
	unsigned int deadline_pages = r->deadlines ? r->max / TW_PAGE_DEADLINES + 1 : 0;

	while (pages)
		free(r->page[--pages]);
	free(r->page);
	while (deadline_pages)
		free(r->deadlines[--deadline_pages]);
	free(r->deadlines);
	free(r->head);
	free(r->heads);
	free(r->w.occupied);
	memset(r, 0, sizeof(*r));
}

/* The deadline of timer @index: its own or, if that is later, the one in its entry */
u64 rig_deadline(const struct rig *r, u32 index)
{
	const struct tw_timer *t = rig_timer(r, index);
	u64 entry, unit;

	if (!r->deadlines)
		return t->deadline;
	entry = r->deadlines[index / TW_PAGE_DEADLINES][index % TW_PAGE_DEADLINES];
	unit = r->pool.generation_mask + 1ULL;
	if (entry % unit != (t->generation | TIMERWHEEL_TABLE_ARMED))
		return t->deadline;
	return max(t->deadline, min(entry - entry % unit, TIMERWHEEL_TIME_MAX));
}

void rig_catch_up(struct rig *r, u64 now)
{
	tw_wheel_catch_up(&r->w, now);
}

void rig_add(struct rig *r, u32 index, u64 deadline, u32 slack)
{
	struct tw_timer *t = rig_timer(r, index);

	t->deadline = deadline;
	t->slack = slack;
	t->chain = &r->chain;
	t->state = TW_PENDING;
	tw_wheel_insert(&r->w, index, t);
}

void rig_remove(struct rig *r, u32 index)
{
	struct tw_timer *t = rig_timer(r, index);

	CHECK(t->state == TW_PENDING, "removing timer %u in state %u", index, t->state);
	tw_wheel_remove(&r->w, t);
	t->state = TW_FREE;
}

/* Remove a timer from the due list. */
void rig_take_due(struct rig *r, u32 index)
{
	struct tw_timer *t = rig_timer(r, index);

	CHECK(t->state == TW_DUE, "taking timer %u in state %u", index, t->state);
	if (t->prev)
		rig_timer(r, t->prev)->next = t->next;
	else
		r->due.first = t->next;
	if (t->next)
		rig_timer(r, t->next)->prev = t->prev;
	else
		r->due.last = t->prev;
	r->due.count--;
	t->state = TW_FREE;
}

/* From now on its timers are resident. It has a deadline table, and no timer yet. */
void rig_resident(struct rig *r, unsigned int bits)
{
	tw_pool_set_entries(&r->pool, bits, true);
}

u64 *rig_entry(const struct rig *r, u32 index)
{
	return tw_deadline_entry(r->deadlines, index);
}

/* The deadline must be one that an entry can hold. */
void rig_add_resident(struct rig *r, u32 index, u64 deadline)
{
	struct tw_timer *t = rig_timer(r, index);

	CHECK(!(deadline & r->pool.generation_mask), "deadline %llx", deadline);
	tw_deadline_new_owner(&r->pool, t);
	t->stay = TW_RESIDENT;
	*rig_entry(r, index) = deadline | t->generation | TIMERWHEEL_TABLE_ARMED;
	rig_add(r, index, deadline, 0);
}
