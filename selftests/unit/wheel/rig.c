// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "deadlines.h"
#include "fail.h"
#include "rig.h"
#include "slots.h"

static void *must(void *memory)
{
	CHECK(memory, "no memory");
	return memory;
}

void rig_init(struct rig *r, unsigned int slots, u64 tick, u64 now, u32 max, unsigned int bits)
{
	unsigned int pages = max / TW_PAGE_TIMERS + 1;
	unsigned int words = max / TW_PAGE_DEADLINES + 1;
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
		r->word = must(calloc(words, sizeof(*r->word)));
		for (i = 0; i < words; i++)
			r->word[i] = must(calloc(TW_PAGE_DEADLINES, sizeof(**r->word)));
		r->pool.deadlines = r->word;
		r->pool.generation_mask = BIT(bits) - 1;
	}
	tw_wheel_init(&r->w, &r->pool, must(calloc(r->lists, sizeof(u32))),
		      must(calloc(BITS_TO_LONGS(r->lists), sizeof(long))), slots, tick, now);
}

/* Begin again at tick @now with the same memory; the wheel must have been emptied. */
void rig_restart(struct rig *r, u64 now)
{
	unsigned long *occupied = r->w.occupied;
	u32 *head = r->w.head;
	u64 tick = r->w.tick;
	unsigned int i;

	CHECK(!r->w.pending, "%u timers pending in an empty wheel", r->w.pending);
	for (i = 0; i < r->lists; i++)
		CHECK(!head[i] && !test_bit(i, occupied), "list %u of an empty wheel: %u", i,
		      head[i]);
	memset(&r->w, 0, sizeof(r->w));
	memset(&r->due, 0, sizeof(r->due));
	tw_wheel_init(&r->w, &r->pool, head, occupied, r->slots, tick, now);
}

void rig_free(struct rig *r)
{
	unsigned int pages = r->max / TW_PAGE_TIMERS + 1;
	unsigned int words = r->word ? r->max / TW_PAGE_DEADLINES + 1 : 0;

	while (pages)
		free(r->page[--pages]);
	free(r->page);
	while (words)
		free(r->word[--words]);
	free(r->word);
	free(r->w.head);
	free(r->w.occupied);
	memset(r, 0, sizeof(*r));
}

/* The deadline that timer @index has by now: its own or, if that is later, the one in its word. */
u64 rig_deadline(const struct rig *r, u32 index)
{
	const struct tw_timer *t = rig_timer(r, index);
	u64 word, unit;

	if (!r->word)
		return t->deadline;
	word = r->word[index / TW_PAGE_DEADLINES][index % TW_PAGE_DEADLINES];
	unit = r->pool.generation_mask + 1ULL;
	if (word % unit != t->generation)
		return t->deadline;
	return max(t->deadline, min(word - word % unit, TIMERWHEEL_TIME_MAX));
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
	t->state = TW_PENDING;
	tw_wheel_insert(&r->w, index, t);
}

void rig_remove(struct rig *r, u32 index)
{
	struct tw_timer *t = rig_timer(r, index);

	CHECK(t->state == TW_PENDING, "timer %u in state %u to be removed", index, t->state);
	tw_wheel_remove(&r->w, t);
	t->state = TW_FREE;
}

/* Take a due timer off the due list. */
void rig_take_due(struct rig *r, u32 index)
{
	struct tw_timer *t = rig_timer(r, index);

	CHECK(t->state == TW_DUE, "timer %u in state %u to be taken", index, t->state);
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
