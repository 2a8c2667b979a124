// SPDX-License-Identifier: GPL-2.0
/* What a wheel with the MANUAL clock must do, written from uapi/linux/timerwheel.h alone. */
#include <stdlib.h>

#include "model.h"

/* Largest slack in ns: 73 years. */
#define SLACK_MAX	0x2000000000000000ULL

static __u64 min64(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

static __u64 max64(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

void model_init(struct model *m)
{
	memset(m, 0, sizeof(*m));
	m->setup = (struct timerwheel_setup) {
		.clock = TIMERWHEEL_CLOCK_MONOTONIC, .slots = 256, .tick = 1000000,
		.capacity = 1 << 22, .wake_events = 1, .event_size = 48,
	};
}

void model_free(struct model *m)
{
	struct mtimer *t, *next;
	unsigned int i;

	for (i = 0; i < MODEL_CHAINS; i++) {
		for (t = m->chain[i]; t; t = next) {
			next = t->next;
			free(t);
		}
	}
}

void model_setup(struct model *m, const struct timerwheel_setup *asked)
{
	m->setup.clock = asked->clock;
	if (asked->slots)
		for (m->setup.slots = 8; m->setup.slots < asked->slots;)
			m->setup.slots *= 2;
	if (asked->tick)
		m->setup.tick = asked->tick;
	if (asked->capacity)
		m->setup.capacity = asked->capacity;
	if (asked->wake_events)
		m->setup.wake_events = asked->wake_events;
	m->setup.wake_ns = asked->wake_ns;
	m->setup.slack = asked->slack;
	m->setup.flags = asked->flags;
	if (asked->ring)
		for (m->setup.ring = 1; m->setup.ring < asked->ring;)
			m->setup.ring *= 2;
	if (asked->event_size)
		m->setup.event_size = min64(asked->event_size, sizeof(struct timerwheel_event));
	m->settled = true;
}

static struct mtimer **chain_of(struct model *m, __u64 key)
{
	return &m->chain[value_of(key, 0) % MODEL_CHAINS];
}

struct mtimer *model_find(const struct model *m, __u64 key)
{
	struct mtimer *t = *chain_of((struct model *)m, key);

	while (t && t->key != key)
		t = t->next;
	return t;
}

/* A timer ends. */
void model_drop(struct model *m, struct mtimer *t)
{
	struct mtimer **link = chain_of(m, t->key);

	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	m->timers--;
	m->n_due -= t->due;
	m->n_parked -= t->parked;
	free(t);
}

static __u64 deadline_of(const struct model *m, __u64 time, bool absolute)
{
	if (absolute)
		return min64(time, TIMERWHEEL_TIME_MAX);
	if ((__s64)time < 0)
		return m->now > -time ? m->now + time : 0;
	return time > TIMERWHEEL_TIME_MAX - m->now ? TIMERWHEEL_TIME_MAX : m->now + time;
}

static __u64 slack_ticks(const struct model *m, __u64 slack)
{
	return min64(min64(slack, SLACK_MAX) / m->setup.tick, 0xffffffff);
}

static void count_lateness(struct model *m, __u64 late)
{
	unsigned int bucket = late ? 64 - __builtin_clzll(late) : 0;

	if (bucket >= TIMERWHEEL_LATENESS_BUCKETS)
		bucket = TIMERWHEEL_LATENESS_BUCKETS - 1;
	m->stats.lateness[bucket]++;
	m->stats.late_max = max64(m->stats.late_max, late);
	m->expired++;
}

static void fall_due(struct model *m, struct mtimer *t, __u64 lo, __u64 hi)
{
	t->due = true;
	t->fired_lo = lo;
	t->fired_hi = hi;
	m->n_due++;
	m->newly++;
	count_lateness(m, hi - t->deadline);
}

/* The first tick not before the deadline, and not before the next one. */
static void wait_for(struct model *m, struct mtimer *t)
{
	__u64 first = t->deadline / m->setup.tick + !!(t->deadline % m->setup.tick);

	t->from = max64(first, m->now / m->setup.tick + 1);
	t->due = false;
}

/* Arm a timer that is in no list. */
static void arm(struct model *m, struct mtimer *t, __u64 deadline)
{
	t->deadline = model_table(m) ? mentry_arm(m, t, deadline) : deadline;
	if (t->deadline <= m->now)
		fall_due(m, t, m->now, m->now);
	else
		wait_for(m, t);
}

static void park(struct model *m, struct mtimer *t)
{
	t->parked = true;
	m->n_parked++;
}

int model_state(const struct model *m, const struct mtimer *t)
{
	if (t->due)
		return TIMERWHEEL_WAS_DUE;
	if (t->parked || (model_table(m) && mentry_cancelled(t)))
		return TIMERWHEEL_WAS_PARKED;
	return TIMERWHEEL_WAS_PENDING;
}

/* An arming ends; the event, if there was one, is withdrawn. */
static int take(struct model *m, struct mtimer *t)
{
	int was = model_state(m, t);

	if (t->due)
		m->stats.withdrawn++;
	m->n_due -= t->due;
	m->n_parked -= t->parked;
	t->due = false;
	t->parked = false;
	return was;
}

int model_add(struct model *m, const struct timerwheel_add *a, struct mtimer **timer)
{
	struct mtimer *t;
	int was = TIMERWHEEL_WAS_NONE;

	*timer = NULL;
	if (add_invalid(a, model_table(m), model_resident(m)))
		return -EINVAL;
	if (m->closed)
		return -ESHUTDOWN;
	t = model_find(m, a->key);
	if (t && a->flags & TIMERWHEEL_EXCL)
		return -EEXIST;
	if (a->flags & TIMERWHEEL_MATCH && (!t || t->value != a->match))
		return t ? -ESTALE : -ENOENT;
	if (!t && m->timers == m->setup.capacity)
		return -ENOSPC;
	if (t) {
		was = take(m, t);
		m->stats.replaced++;
	} else {
		t = calloc(1, sizeof(*t));
		if (!t)
			abort();
		t->key = a->key;
		t->next = *chain_of(m, a->key);
		*chain_of(m, a->key) = t;
		m->timers++;
	}
	t->value = a->value;
	t->period = a->period;
	t->slack = slack_ticks(m, a->flags & TIMERWHEEL_SLACK ? a->slack : m->setup.slack);
	m->slacked |= t->slack;
	arm(m, t, deadline_of(m, a->deadline, a->flags & TIMERWHEEL_ABS));
	m->stats.armed++;
	m->settled = true;
	*timer = t;
	return was;
}

static int move(struct model *m, struct mtimer *t, __u64 deadline, __u32 flags)
{
	int was = model_state(m, t);

	if (flags & TIMERWHEEL_EXCL && was != TIMERWHEEL_WAS_PARKED)
		return -EEXIST;
	take(m, t);
	arm(m, t, deadline_of(m, deadline, flags & TIMERWHEEL_ABS));
	m->stats.moved++;
	return was;
}

int model_move(struct model *m, const struct timerwheel_move *a)
{
	struct mtimer *t;

	if (move_invalid(a, model_table(m)))
		return -EINVAL;
	t = model_find(m, a->key);
	if (!t)
		return -ENOENT;
	if (a->flags & TIMERWHEEL_MATCH && t->value != a->match)
		return -ESTALE;
	return move(m, t, a->deadline, a->flags);
}

int model_remove(struct model *m, struct timerwheel_remove *a)
{
	struct mtimer *t;
	int was;

	if (remove_invalid(a))
		return -EINVAL;
	t = model_find(m, a->key);
	if (!t)
		return -ENOENT;
	if (a->flags & TIMERWHEEL_MATCH && t->value != a->match)
		return -ESTALE;
	was = take(m, t);
	a->value = t->value;
	a->left = t->deadline - m->now;
	model_drop(m, t);
	m->stats.removed++;
	return was;
}

struct mtimer *model_find_handle(struct model *m, __u32 index, __u32 generation)
{
	struct mtimer *t;
	unsigned int i;

	for (i = 0; i < MODEL_CHAINS; i++)
		for (t = m->chain[i]; t; t = t->next)
			if (t->index && t->index == index && t->generation == generation)
				return t;
	return NULL;
}

int model_move_handle(struct model *m, const struct timerwheel_move_handle *a, __u32 flags)
{
	struct mtimer *t = model_find_handle(m, a->index, a->generation);

	if (flags & TIMERWHEEL_EXCL && !model_table(m))
		return -EINVAL;
	return t ? move(m, t, a->deadline, flags) : -ENOENT;
}

int model_remove_handle(struct model *m, struct timerwheel_remove_handle *a)
{
	struct mtimer *t = model_find_handle(m, a->index, a->generation);
	int was;

	if (!t)
		return -ENOENT;
	was = take(m, t);
	a->value = t->value;
	model_drop(m, t);
	m->stats.removed++;
	return was;
}

void model_put_off(struct model *m, struct mtimer *t, __u64 deadline)
{
	t->deadline = min64(deadline, TIMERWHEEL_TIME_MAX);
	wait_for(m, t);
}

void model_describe(const struct model *m, const struct mtimer *t, struct timerwheel_entry *e)
{
	*e = (struct timerwheel_entry) {
		.key = t->key,
		.value = t->value,
		.deadline = t->deadline,
		.left = t->deadline - m->now,
		.period = t->period,
		.slack = t->slack * m->setup.tick,
		.flags = model_resident(m) && t->period ? TIMERWHEEL_LINGER : 0,
		.result = model_state(m, t),
		.index = t->index,
		.generation = t->generation,
	};
}

bool model_may_be_due(const struct model *m, const struct mtimer *t)
{
	return !t->due && !t->parked && t->slack && t->from <= m->now / m->setup.tick;
}

/* It is visited in the last ADVANCE. */
void model_visit(struct model *m, struct mtimer *t)
{
	__u64 tick = m->setup.tick;

	if (model_table(m) && !mentry_visit(m, t))
		park(m, t);
	else
		fall_due(m, t, max64(t->from, m->before / tick + 1) * tick,
			 min64(t->from + t->slack, m->now / tick) * tick);
}

unsigned int model_advance(struct model *m, __u64 to)
{
	__u64 ticks = to / m->setup.tick;
	unsigned int unsure = 0, i;
	struct mtimer *t;

	m->before = m->now;
	m->now = to;
	for (i = 0; i < MODEL_CHAINS; i++) {
		for (t = m->chain[i]; t; t = t->next) {
			if (t->due || t->parked || t->from > ticks)
				continue;
			if (t->slack && t->from + t->slack > ticks)
				unsure++;
			else
				model_visit(m, t);
		}
	}
	return unsure;
}

__u64 model_next_tick(const struct model *m)
{
	const struct mtimer *t;
	__u64 first = ~0ULL;
	unsigned int i;

	for (i = 0; i < MODEL_CHAINS; i++)
		for (t = m->chain[i]; t; t = t->next)
			if (!t->due && !t->parked)
				first = min64(first, t->from);
	return first;
}

__u32 model_ring_used(const struct model *m)
{
	return (__u32)m->delivered - m->ring_head;
}

/* With an invalid head the ring counts as full. */
__u32 model_ring_room(const struct model *m)
{
	__u32 used = model_ring_used(m);

	return used <= m->setup.ring ? m->setup.ring - used : 0;
}

/* A timer without slack fires at exactly one time. */
static bool fired_then(const struct model *m, const struct mtimer *t, __u64 fired)
{
	if (t->fired_lo == t->fired_hi)
		return fired == t->fired_lo;
	return fired >= t->fired_lo && fired <= t->fired_hi && !(fired % m->setup.tick);
}

/* All events that still wait fired then or later. */
static bool is_next(struct model *m, __u64 fired)
{
	struct mtimer *t;
	unsigned int i;

	for (i = 0; i < MODEL_CHAINS; i++) {
		for (t = m->chain[i]; t; t = t->next) {
			if (!t->due)
				continue;
			if (t->fired_hi < fired)
				return false;
			t->fired_lo = max64(t->fired_lo, fired);
		}
	}
	return true;
}

/* The timer stays after its event was delivered. */
static void stay(struct model *m, struct mtimer *t, __u64 overruns)
{
	__u64 passed = overruns * t->period;

	m->n_due--;
	t->due = false;
	m->stats.rearmed++;
	m->stats.overruns += overruns;
	if (!t->period) {
		park(m, t);
		return;
	}
	if (model_resident(m))
		t->deadline = mentry_linger(m, t);
	else if (t->period > TIMERWHEEL_TIME_MAX - t->deadline - passed)
		t->deadline = TIMERWHEEL_TIME_MAX;
	else
		t->deadline += passed + t->period;
	wait_for(m, t);
}

const char *model_event(struct model *m, const struct timerwheel_event *e)
{
	struct mtimer *t = model_find(m, e->key);
	__u64 overruns = 0;
	bool periodic;

	if (!t)
		return "no timer has its key";
	if (!t->due)
		return "its timer is not due";
	if (e->value != t->value || e->deadline != t->deadline)
		return "its value or deadline is another";
	if (t->index && e->index != t->index)
		return "its index is another";
	if (!fired_then(m, t, e->fired))
		return "it did not fire then";
	if (!is_next(m, e->fired))
		return "another timer fired before";
	periodic = t->period && !model_table(m);
	if (periodic)
		overruns = (m->now - t->deadline) / t->period;
	if (e->overruns != overruns || e->flags != (periodic ? TIMERWHEEL_EVENT_PERIODIC : 0))
		return "its overruns or flags are wrong";
	m->stats.delivered++;
	m->log[m->delivered++ % MODEL_LOG] = *e;
	if (periodic || model_resident(m))
		stay(m, t, overruns);
	else
		model_drop(m, t);
	return NULL;
}
