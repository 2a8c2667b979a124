// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdlib.h>

#include "model.h"

#include "deadlines.h"
#include "fail.h"
#include "monitors.h"
#include "rig.h"

void model_init(struct model *m, struct tw_file *file, const u64 *keys, u32 n, u64 offset,
		bool alike)
{
	u32 i;

	*m = (struct model){ .file = file, .keys = n, .offset = offset, .alike = alike };
	m->entry = calloc(n, sizeof(*m->entry));
	m->owner = calloc(file->setup.capacity + 1, sizeof(*m->owner));
	m->generation = calloc(file->setup.capacity + 1, sizeof(*m->generation));
	CHECK(m->entry && m->owner && m->generation, "no memory");
	for (i = 0; i < n; i++)
		m->entry[i].key = keys[i];
}

void model_free(struct model *m)
{
	free(m->entry);
	free(m->owner);
	free(m->generation);
}

/* Times are limited at both ends of the clock. */
static u64 clamped(__int128 time)
{
	if (time < 0)
		return 0;
	return time > (__int128)TIMERWHEEL_TIME_MAX ? TIMERWHEEL_TIME_MAX : time;
}

static u64 absolute(u64 time, u64 offset)
{
	return clamped((__int128)clamped(time) - (s64)offset);
}

static bool has_table(const struct model *m)
{
	return m->file->table.pool.deadlines;
}

u64 *model_deadline_entry(const struct model *m, const struct entry *e)
{
	u64 **deadlines = m->file->table.pool.deadlines;

	return deadlines && e->state != NO_TIMER ? tw_deadline_entry(deadlines, e->index) : NULL;
}

u64 model_deadline(const struct model *m, const struct entry *e)
{
	return e->state == TW_PENDING && e->later > e->deadline ? e->later : e->deadline;
}

void model_stored(struct model *m, u32 index)
{
	u64 mask = m->file->table.pool.generation_mask, stored;
	u32 owner = m->owner[index];
	struct entry *e;

	if (!owner)
		return;
	e = &m->entry[owner - 1];
	stored = *model_deadline_entry(m, e);
	e->later = (stored & mask) == (e->generation | TIMERWHEEL_TABLE_ARMED) ?
		   absolute(stored & ~mask, m->offset) : 0;
}

/* The entry of a deadline, without generation and state */
static u64 encoded(const struct model *m, u64 deadline)
{
	u64 mask = m->file->table.pool.generation_mask;
	u64 time = clamped((__int128)deadline + (s64)m->offset);

	return (min(time, TIMERWHEEL_TIME_MAX - mask) + mask) & ~mask;
}

static struct tw_timer *timer_of(const struct model *m, const struct entry *e)
{
	return tw_timer_at(&m->file->table.pool, e->index);
}

/* The last new deadline has replaced the one in the entry, and no program has changed it since. */
static void written(const struct model *m, const struct entry *e)
{
	const u64 *stored = model_deadline_entry(m, e);
	u64 want = encoded(m, e->deadline) | e->generation |
		   (e->state == TW_DUE ? TIMERWHEEL_TABLE_FIRED : TIMERWHEEL_TABLE_ARMED);

	CHECK(!stored || *stored == want,
	      "key %llx has a new deadline, but its entry is %llx, not %llx", e->key, *stored,
	      want);
}

void model_look(struct model *m, struct entry *e)
{
	const struct tw_timer *t;

	if (e->state == NO_TIMER)
		return;
	t = timer_of(m, e);
	CHECK(t->key == e->key, "index %u has key %llx, not %llx", e->index, t->key, e->key);
	CHECK(t->state == e->state, "key %llx is in state %u, not %u", e->key, t->state, e->state);
	CHECK(t->value == e->value, "key %llx: value %llx, not %llx", e->key, t->value, e->value);
	CHECK(t->generation == e->generation, "key %llx: generation %u, not %u", e->key,
	      t->generation, e->generation);
	CHECK(t->cpu == e->base, "key %llx is in base %u, not %u", e->key, t->cpu, e->base);
	CHECK(tw_timer_period(t) == e->period, "key %llx: period %llu, not %llu", e->key,
	      tw_timer_period(t), e->period);
	CHECK(t->deadline == e->deadline || t->deadline == model_deadline(m, e),
	      "key %llx: deadline %llu, not %llu or %llu", e->key, t->deadline, e->deadline,
	      model_deadline(m, e));
	e->deadline = t->deadline;
	if (e->written)
		written(m, e);
	e->written = false;
}

/* The timer ended. */
static void end(struct model *m, struct entry *e)
{
	CHECK(timer_of(m, e)->state == TW_FREE, "key %llx was removed, its timer is in state %u",
	      e->key, timer_of(m, e)->state);
	m->due -= e->state == TW_DUE;
	m->timers--;
	m->owner[e->index] = 0;
	e->state = NO_TIMER;
}

static void fall_due(struct model *m, struct entry *e, u64 turn)
{
	e->state = TW_DUE;
	e->fired = rig_now;
	e->turn = turn;
	m->due++;
}

/*
 * The timer has a new deadline. It is due at once or in this CPU's base. If it was only postponed,
 * and @may_stay, it may still be where it was.
 */
static void queued(struct model *m, struct entry *e, u64 deadline, bool may_stay)
{
	const struct tw_timer *t = timer_of(m, e);

	may_stay &= deadline >= e->deadline;
	e->deadline = deadline;
	e->later = 0;
	/* rounded up to what an entry can hold */
	if (has_table(m) && deadline > rig_now)
		e->deadline = absolute(encoded(m, deadline), m->offset);
	m->due -= e->state == TW_DUE;
	if (e->deadline <= rig_now) {
		e->base = shim_cpu;
		fall_due(m, e, ++m->turn);
		return;
	}
	if (e->state == TW_PENDING && may_stay && t->cpu == e->base)
		return;
	e->state = TW_PENDING;
	e->base = shim_cpu;
}

/* The result of a successful operation on a key in this state */
static int was(u8 state)
{
	return state == TW_PENDING ? TIMERWHEEL_WAS_PENDING :
	       state == TW_DUE ? TIMERWHEEL_WAS_DUE : TIMERWHEEL_WAS_NONE;
}

static int add_result(const struct model *m, const struct entry *e,
		      const struct timerwheel_add *arg, bool closed)
{
	const u32 known = TIMERWHEEL_ABS | TIMERWHEEL_EXCL | TIMERWHEEL_MATCH | TIMERWHEEL_SLACK;
	bool excl = arg->flags & TIMERWHEEL_EXCL, match = arg->flags & TIMERWHEEL_MATCH;

	if (arg->flags & ~known || (excl && match) || (!match && arg->match) ||
	    (arg->slack && !(arg->flags & TIMERWHEEL_SLACK)) ||
	    arg->period > TIMERWHEEL_TIME_MAX || (has_table(m) && arg->period))
		return -EINVAL;
	if (closed)
		return -ESHUTDOWN;
	if (e->state == NO_TIMER && match)
		return -ENOENT;
	if (e->state == NO_TIMER)
		return m->alike && m->timers >= TW_CHAIN_MAX ? -EMLINK : TIMERWHEEL_WAS_NONE;
	if (excl)
		return -EEXIST;
	if (match && arg->match != e->value)
		return -ESTALE;
	return was(e->state);
}

static u64 given(u64 time, u32 flags, u64 offset)
{
	if (flags & TIMERWHEEL_ABS)
		return absolute(time, offset);
	return clamped((__int128)rig_now + (s64)time);
}

void model_add(struct model *m, struct entry *e, const struct timerwheel_add *arg, u64 offset,
	       bool closed)
{
	int result = add_result(m, e, arg, closed);
	u64 mask = m->file->table.pool.generation_mask, slack;
	bool may_stay;

	CHECK(arg->result == result, "ADD of key %llx: %d, not %d", e->key, arg->result,
	      result);
	if (result < 0)
		return;
	if (result == TIMERWHEEL_WAS_NONE) {
		u32 last;

		CHECK(arg->index && arg->index <= m->file->table.made, "index %u of %u",
		      arg->index, m->file->table.made);
		CHECK(!m->owner[arg->index], "index %u has two owners", arg->index);
		last = m->generation[arg->index];
		CHECK(arg->generation && arg->generation <= mask && arg->generation != last,
		      "index %u: generation %u after %u, of %llu", arg->index, arg->generation,
		      last, mask);
		m->owner[arg->index] = e - m->entry + 1;
		m->generation[arg->index] = arg->generation;
		m->timers++;
		e->index = arg->index;
		e->generation = arg->generation;
		e->deadline = 0;
	}
	CHECK(arg->index == e->index && arg->generation == e->generation,
	      "key %llx had index %u, generation %u, and ADD returned %u, %u", e->key, e->index,
	      e->generation, arg->index, arg->generation);
	e->value = arg->value;
	e->period = arg->period;
	slack = arg->flags & TIMERWHEEL_SLACK ? arg->slack : m->file->setup.slack;
	may_stay = slack / m->file->setup.tick >= e->slack;
	e->slack = slack / m->file->setup.tick;
	queued(m, e, given(arg->deadline, arg->flags, offset), may_stay);
	e->written = true;
}

static int match_result(const struct entry *e, u32 flags, u64 match, u32 known)
{
	if (flags & ~(known | TIMERWHEEL_MATCH) || (match && !(flags & TIMERWHEEL_MATCH)))
		return -EINVAL;
	if (e->state == NO_TIMER)
		return -ENOENT;
	if (flags & TIMERWHEEL_MATCH && match != e->value)
		return -ESTALE;
	/* all timers are armed or due */
	return flags & TIMERWHEEL_EXCL ? -EEXIST : was(e->state);
}

void model_move(struct model *m, struct entry *e, const struct timerwheel_move *arg, u64 offset)
{
	u32 known = TIMERWHEEL_ABS | (has_table(m) ? TIMERWHEEL_EXCL : 0);
	int result = match_result(e, arg->flags, arg->match, known);

	CHECK(arg->result == result, "MOVE of key %llx: %d, not %d", e->key, arg->result,
	      result);
	if (result > 0) {
		queued(m, e, given(arg->deadline, arg->flags, offset), true);
		e->written = true;
	}
}

/* Time left until the deadline */
static s64 left_of(const struct model *m, const struct entry *e)
{
	return model_deadline(m, e) - rig_now;
}

void model_remove(struct model *m, struct entry *e, const struct timerwheel_remove *arg)
{
	int result = match_result(e, arg->flags, arg->match, 0);

	CHECK(arg->result == result, "REMOVE of key %llx: %d, not %d", e->key, arg->result,
	      result);
	if (result < 0)
		return;
	CHECK(arg->value == e->value, "REMOVE of key %llx: value %llx, not %llx", e->key,
	      arg->value, e->value);
	CHECK(arg->left == left_of(m, e), "REMOVE of key %llx: %lld ns left, not %lld", e->key,
	      arg->left, left_of(m, e));
	end(m, e);
}

/* The key whose timer has this handle; NULL: none has */
static struct entry *holder(const struct model *m, u32 index, u32 generation)
{
	u32 owner = index <= m->file->table.made ? m->owner[index] : 0;

	return owner && m->generation[index] == generation ? &m->entry[owner - 1] : NULL;
}

struct entry *model_move_handle(struct model *m, const struct timerwheel_move_handle *arg,
				u32 generation, u32 flags, u64 offset)
{
	struct entry *e = holder(m, arg->index, generation);
	int result = e ? was(e->state) : -ENOENT;

	if (flags & TIMERWHEEL_EXCL)
		result = !has_table(m) ? -EINVAL : e ? -EEXIST : -ENOENT;

	CHECK(arg->result == result, "MOVE of index %u, generation %u: %d, not %d", arg->index,
	      generation, arg->result, result);
	if (result < 0)
		return NULL;
	queued(m, e, given(arg->deadline, flags, offset), true);
	e->written = true;
	return e;
}

struct entry *model_remove_handle(struct model *m, const struct timerwheel_remove_handle *arg,
				  u32 generation)
{
	struct entry *e = holder(m, arg->index, generation);
	int result = e ? was(e->state) : -ENOENT;

	CHECK(arg->result == result, "REMOVE of index %u, generation %u: %d, not %d", arg->index,
	      generation, arg->result, result);
	CHECK(arg->value == (e ? e->value : 12345), "REMOVE of index %u: value %llx", arg->index,
	      arg->value);
	if (e)
		end(m, e);
	return e;
}

/* Check what GET, LIST and DRAIN report about a timer. */
static void described(const struct model *m, const struct entry *e,
		      const struct timerwheel_entry *arg, u64 offset)
{
	u64 deadline = model_deadline(m, e);

	CHECK(arg->key == e->key, "key %llx, not %llx", arg->key, e->key);
	CHECK(arg->result == was(e->state), "key %llx: result %d, not %d", e->key, arg->result,
	      was(e->state));
	CHECK(arg->value == e->value && arg->period == e->period && arg->index == e->index &&
	      arg->generation == e->generation && arg->slack == e->slack * m->file->setup.tick,
	      "key %llx: value %llx, period %llu, slack %llu, index %u, generation %u", e->key,
	      arg->value, arg->period, arg->slack, arg->index, arg->generation);
	CHECK(arg->deadline == deadline + offset, "key %llx: deadline %llu, not %llu + %llu",
	      e->key, arg->deadline, deadline, offset);
	CHECK(arg->left == left_of(m, e), "key %llx: %lld ns left, not %lld", e->key, arg->left,
	      left_of(m, e));
}

void model_get(struct model *m, struct entry *e, const struct timerwheel_entry *arg, u64 offset)
{
	int result = arg->flags ? -EINVAL : e->state == NO_TIMER ? -ENOENT : was(e->state);

	CHECK(arg->result == result, "GET of key %llx: %d, not %d", e->key, arg->result,
	      result);
	if (result > 0)
		described(m, e, arg, offset);
}

void model_index(struct model *m, u32 index, int result, const struct timerwheel_entry *arg,
		 u64 offset, bool drained)
{
	u32 owner = m->owner[index];
	struct entry *e;

	if (!owner) {
		CHECK(result == -ENOENT, "index %u is free, but the result is %d", index, result);
		return;
	}
	e = &m->entry[owner - 1];
	CHECK(result == was(e->state), "index %u, key %llx: %d, not %d", index, e->key,
	      result, was(e->state));
	described(m, e, arg, offset);
	if (drained)
		end(m, e);
}

void model_event(struct model *m, const struct timerwheel_event *event, u64 offset,
		 unsigned int expiring)
{
	u32 index = event->index, owner;
	u64 passed = 0;
	struct entry *e;

	monitors_event(event);
	owner = index <= m->file->table.made ? m->owner[index] : 0;
	CHECK(owner, "an event of index %u, which no timer has", index);
	e = &m->entry[owner - 1];
	CHECK(event->key == e->key, "an event of key %llx, index %u, which is of key %llx",
	      event->key, index, e->key);
	/* expiry with a ring makes a timer due and delivers it at once */
	if (e->state == TW_PENDING && e->base == expiring) {
		e->deadline = model_deadline(m, e);
		fall_due(m, e, m->turn + 1);
	}
	CHECK(e->state == TW_DUE, "an event of key %llx, which is not due", e->key);
	CHECK(e->deadline <= rig_now, "key %llx: %llu ns early", e->key, e->deadline - rig_now);
	CHECK(e->turn >= m->delivered, "key %llx overtakes another one", e->key);
	m->delivered = e->turn;
	if (e->period)
		passed = (rig_now - e->deadline) / e->period;
	CHECK(event->value == e->value && event->deadline == e->deadline + offset &&
	      event->fired == e->fired + offset && event->overruns == passed &&
	      event->flags == (e->period ? TIMERWHEEL_EVENT_PERIODIC : 0),
	      "event of key %llx: value %llx, deadline %llu, fired %llu, overruns %llu, flags %x",
	      e->key, event->value, event->deadline, event->fired, event->overruns, event->flags);
	if (!e->period) {
		end(m, e);
		return;
	}
	e->deadline = clamped((__int128)e->deadline + (__int128)(passed + 1) * e->period);
	e->state = TW_PENDING;
	e->base = shim_cpu;
	m->due--;
}

void model_ring(struct model *m, unsigned int expiring)
{
	const struct tw_ring *ring = &m->file->ring;

	if (!ring->events)
		return;
	CHECK(ring->tail == ring->shared->tail, "tail %u, shared tail %u", ring->tail,
	      ring->shared->tail);
	CHECK(ring->tail - m->ring_seen <= ring->events, "%u events at once in a ring of %u",
	      ring->tail - m->ring_seen, ring->events);
	for (; m->ring_seen != ring->tail; m->ring_seen++)
		model_event(m, &ring->event[m->ring_seen % ring->events], ring->offset, expiring);
	CHECK(!m->due || ring->shared->flags & TIMERWHEEL_RING_OVERFLOW,
	      "%u timers are due, but the ring lacks TIMERWHEEL_RING_OVERFLOW", m->due);
}

void model_expire(struct model *m)
{
	u64 tick = m->file->setup.tick, turn = m->turn + 1, deadline;
	struct entry *e;
	u32 k;

	model_ring(m, shim_cpu);
	for (k = 0; k < m->keys; k++) {
		e = &m->entry[k];
		if (e->state != TW_PENDING || e->base != shim_cpu)
			continue;
		deadline = model_deadline(m, e);
		if (timer_of(m, e)->state == TW_DUE) {
			CHECK(deadline <= rig_now, "key %llx is due %llu ns early", e->key,
			      deadline - rig_now);
			e->deadline = deadline;
			fall_due(m, e, turn);
			continue;
		}
		CHECK(DIV_ROUND_UP(deadline, tick) + e->slack > rig_now / tick,
		      "key %llx is not due, %llu ns after its deadline, with a slack of %llu",
		      e->key, rig_now - deadline, e->slack);
	}
	m->turn = turn;
}
