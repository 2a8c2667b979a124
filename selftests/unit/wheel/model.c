// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include <linux/kernel.h>

#include "fail.h"
#include "model.h"

void model_init(struct model *m, u64 tick, u32 max)
{
	m->tick = tick;
	m->bias = 0;
	m->count = 0;
	m->moved = 0;
	m->timer = calloc(max + 1, sizeof(*m->timer));
	m->order = calloc(max + 1, sizeof(*m->order));
	CHECK(m->timer && m->order, "no memory");
}

void model_free(struct model *m)
{
	free(m->timer);
	free(m->order);
}

/* The current tick at clock time @ns */
u64 model_tick(const struct model *m, u64 ns)
{
	return ((__uint128_t)ns + m->bias) / m->tick;
}

/* The first tick that does not begin before @deadline */
u64 model_first(const struct model *m, u64 deadline)
{
	return ((__uint128_t)deadline + m->bias + m->tick - 1) / m->tick;
}

/*
 * The tick to fire in: of the first tick and the @slack ticks after it, the one that is a multiple
 * of the greatest power of two
 */
u64 model_target(const struct model *m, u64 deadline, u32 slack)
{
	u64 first = model_first(m, deadline);
	u64 last = first + slack;
	unsigned int zeros;

	for (zeros = 63; zeros; zeros--)
		if (last >> zeros << zeros >= first)
			break;
	return last >> zeros << zeros;
}

static bool before(const struct model_entry *a, const struct model_entry *b)
{
	return a->bound < b->bound || (a->bound == b->bound && a->index < b->index);
}

/* The position of @e in the array, or where to insert it */
static u32 place(const struct model *m, const struct model_entry *e)
{
	u32 low = 0, high = m->count;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (before(&m->order[middle], e))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void order_add(struct model *m, u32 index)
{
	struct model_timer *t = &m->timer[index];
	struct model_entry e;
	u32 at;

	t->target = model_target(m, t->deadline, t->slack);
	t->bound = max(t->target, t->floor);
	e = (struct model_entry){ t->bound, index };
	at = place(m, &e);
	memmove(&m->order[at + 1], &m->order[at], (m->count - at) * sizeof(e));
	m->order[at] = e;
	m->count++;
}

static void order_remove(struct model *m, u32 index)
{
	struct model_entry e = { m->timer[index].bound, index };
	u32 at = place(m, &e);

	CHECK(at < m->count && m->order[at].index == index, "model: no timer %u", index);
	m->count--;
	memmove(&m->order[at], &m->order[at + 1], (m->count - at) * sizeof(e));
}

/* Timer @index is inserted in tick @now into a wheel with this @cursor. */
void model_insert(struct model *m, u32 index, u64 deadline, u32 slack, u64 now, u64 cursor)
{
	struct model_timer *t = &m->timer[index];

	t->state = MODEL_PENDING;
	t->moved = false;
	t->deadline = deadline;
	t->slack = slack;
	t->floor = now + 1;
	order_add(m, index);
	t->queued = max(t->target, cursor);
}

static void set_moved(struct model *m, struct model_timer *t, bool moved)
{
	m->moved += moved - t->moved;
	t->moved = moved;
}

/* A later deadline and no less slack: the timer stays where it is queued. */
void model_postpone(struct model *m, u32 index, u64 deadline, u32 slack)
{
	struct model_timer *t = &m->timer[index];

	order_remove(m, index);
	t->deadline = deadline;
	t->slack = slack;
	set_moved(m, t, true);
	order_add(m, index);
}

/*
 * The clock was set back: all deadlines are in later ticks now. If the bias has reached its limit,
 * no timer need fire before tick @floor.
 */
void model_set_bias(struct model *m, u64 bias, u64 floor)
{
	u32 i, n = m->count;

	m->bias = bias;
	m->count = 0;
	for (i = 0; i < n; i++) {
		/* order_add() writes at most as many entries as have been read */
		u32 index = m->order[i].index;

		set_moved(m, &m->timer[index], true);
		m->timer[index].floor = max(m->timer[index].floor, floor);
		order_add(m, index);
	}
}

/* Timer @index is no longer in the wheel. */
void model_remove(struct model *m, u32 index)
{
	order_remove(m, index);
	set_moved(m, &m->timer[index], false);
	m->timer[index].state = MODEL_FREE;
}

/* The first tick by the end of which a timer must have fired */
u64 model_bound(const struct model *m)
{
	return m->count ? m->order[0].bound : U64_MAX;
}
