// SPDX-License-Identifier: GPL-2.0
/* libtimerwheel: random operations match a plain model exactly, on a MANUAL clock of 1 ns. */
#include "library.h"

enum { KEYS = 96, CAPACITY = 64, STEPS = 6000, MOST = 24 };

/* A timer of the model. @touched: its deadline in the table if it was refreshed, else 0. */
struct model_timer {
	int state;		/* TIMERWHEEL_WAS_*, NONE: there is no such timer */
	uint64_t value, deadline, period, slack, touched, fired;
	uint32_t index, generation;
};

struct model {
	struct timerwheel *wheel;
	struct timerwheel_table table;
	struct model_timer timer[KEYS];
	uint64_t rand, now, unit;	/* @unit: of deadlines */
	int count, due;
	char why[200];
};

/* Returns true if these are equal; otherwise describes the difference. */
static bool same(struct model *m, const char *what, uint64_t key, int64_t got, int64_t want)
{
	if (got == want)
		return true;
	snprintf(m->why, sizeof(m->why), "%s of key %llu is %lld, should be %lld", what,
		 (unsigned long long)key, (long long)got, (long long)want);
	return false;
}

static void set_state(struct model *m, struct model_timer *t, int state)
{
	m->count += !!state - !!t->state;
	m->due += (state == TIMERWHEEL_WAS_DUE) - (t->state == TIMERWHEEL_WAS_DUE);
	t->state = state;
}

/* The deadline of a pending timer, after the table was read. */
static void look(struct model_timer *t)
{
	if (t->state == TIMERWHEEL_WAS_PENDING && t->touched > t->deadline)
		t->deadline = t->touched;
}

static void fall_due(struct model *m, struct model_timer *t, uint64_t now)
{
	t->fired = now;
	set_state(m, t, TIMERWHEEL_WAS_DUE);
}

static void set_deadline(struct model *m, struct model_timer *t, uint64_t deadline, bool absolute)
{
	t->deadline = absolute ? deadline : m->now + deadline;
	if (t->deadline > m->now)
		t->deadline = (t->deadline + m->unit - 1) / m->unit * m->unit;
	t->touched = 0;
	if (t->deadline > m->now)
		set_state(m, t, TIMERWHEEL_WAS_PENDING);
	else
		fall_due(m, t, m->now);
}

static uint64_t below(struct model *m, uint64_t n)
{
	return rand64(&m->rand) % n;
}

/* A deadline near or far, sometimes in the past */
static uint64_t some_time(struct model *m, bool absolute)
{
	uint64_t ahead = below(m, 1ULL << (1 + below(m, 40)));

	if (!absolute)
		return ahead;
	return below(m, 10) ? m->now + ahead : m->now - below(m, m->now + 1);
}

static int expected_add(const struct model *m, const struct timerwheel_add *e)
{
	const struct model_timer *t = &m->timer[e->key];

	if ((e->flags & TIMERWHEEL_EXCL && e->flags & TIMERWHEEL_MATCH) || e->flags & 1U << 30)
		return -EINVAL;
	if (e->flags & TIMERWHEEL_EXCL && t->state)
		return -EEXIST;
	if (e->flags & TIMERWHEEL_MATCH && !t->state)
		return -ENOENT;
	if (e->flags & TIMERWHEEL_MATCH && t->value != e->match)
		return -ESTALE;
	if (!t->state && m->count == CAPACITY)
		return -ENOSPC;
	return t->state;
}

static bool step_add(struct model *m)
{
	struct timerwheel_add e[MOST];
	struct model_timer *t;
	int n = 1 + below(m, MOST), i;
	bool was;

	poison(e, sizeof(e));
	for (i = 0; i < n; i++) {
		e[i] = (struct timerwheel_add){ .key = below(m, KEYS), .value = below(m, 4) };
		e[i].flags = below(m, 2) * TIMERWHEEL_ABS;
		e[i].deadline = some_time(m, e[i].flags);
		/* a wheel with a table has no periods */
		if (m->unit == 1 && !below(m, 3))
			e[i].period = 1 + below(m, 1ULL << (1 + below(m, 40)));
		if (!below(m, 8))
			e[i].flags |= TIMERWHEEL_EXCL;
		if (!below(m, 8)) {
			e[i].flags |= TIMERWHEEL_MATCH;
			e[i].match = below(m, 4);
		}
		if (!below(m, 30))
			e[i].flags |= 1U << 30;
	}
	if (!same(m, "number of ADD", 0, timerwheel_add(m->wheel, e, n), n))
		return false;
	for (i = 0; i < n; i++) {
		t = &m->timer[e[i].key];
		if (!same(m, "result of ADD", e[i].key, e[i].result, expected_add(m, &e[i])))
			return false;
		if (e[i].result < 0)
			continue;
		was = t->state;
		if (was && (!same(m, "index", e[i].key, e[i].index, t->index) ||
			    !same(m, "generation", e[i].key, e[i].generation, t->generation)))
			return false;
		t->index = e[i].index;
		t->generation = e[i].generation;
		t->value = e[i].value;
		t->period = e[i].period;
		set_deadline(m, t, e[i].deadline, e[i].flags & TIMERWHEEL_ABS);
	}
	return true;
}

/* The checks that MOVE and REMOVE begin with */
static int expected(const struct model *m, uint64_t key, uint32_t flags, uint64_t match)
{
	const struct model_timer *t = &m->timer[key];

	if (match && !(flags & TIMERWHEEL_MATCH))
		return -EINVAL;
	if (!t->state)
		return -ENOENT;
	return flags & TIMERWHEEL_MATCH && t->value != match ? -ESTALE : t->state;
}

static bool step_move(struct model *m)
{
	struct timerwheel_move e[MOST];
	int n = 1 + below(m, MOST), i;

	for (i = 0; i < n; i++) {
		e[i] = (struct timerwheel_move){ .key = below(m, KEYS) };
		e[i].flags = below(m, 2) * TIMERWHEEL_ABS;
		e[i].deadline = some_time(m, e[i].flags);
		if (!below(m, 6))
			e[i].match = below(m, 4);
		if (!below(m, 6))
			e[i].flags |= TIMERWHEEL_MATCH;
	}
	if (!same(m, "number of MOVE", 0, timerwheel_move(m->wheel, e, n), n))
		return false;
	for (i = 0; i < n; i++) {
		if (!same(m, "result of MOVE", e[i].key, e[i].result,
			  expected(m, e[i].key, e[i].flags, e[i].match)))
			return false;
		if (e[i].result > 0)
			set_deadline(m, &m->timer[e[i].key], e[i].deadline,
				     e[i].flags & TIMERWHEEL_ABS);
	}
	return true;
}

static bool step_remove(struct model *m)
{
	struct timerwheel_remove e[MOST];
	struct model_timer *t;
	int n = 1 + below(m, MOST), i;

	poison(e, sizeof(e));
	for (i = 0; i < n; i++) {
		e[i].key = below(m, KEYS);
		e[i].match = below(m, 6) ? 0 : below(m, 4);
		e[i].flags = below(m, 6) ? 0 : TIMERWHEEL_MATCH;
	}
	if (!same(m, "number of REMOVE", 0, timerwheel_remove(m->wheel, e, n), n))
		return false;
	for (i = 0; i < n; i++) {
		t = &m->timer[e[i].key];
		if (!same(m, "result of REMOVE", e[i].key, e[i].result,
			  expected(m, e[i].key, e[i].flags, e[i].match)))
			return false;
		if (e[i].result < 0) {
			if (!poisoned(&e[i].value, 16))
				return same(m, "untouched result", e[i].key, 0, 1);
			continue;
		}
		look(t);
		if (!same(m, "removed value", e[i].key, e[i].value, t->value) ||
		    !same(m, "time left", e[i].key, e[i].left, t->deadline - m->now))
			return false;
		set_state(m, t, TIMERWHEEL_WAS_NONE);
	}
	return true;
}

/* The key whose timer has this handle, or KEYS */
static uint64_t holder(const struct model *m, uint32_t index, uint32_t generation)
{
	uint64_t key;

	for (key = 0; key < KEYS; key++)
		if (m->timer[key].state && m->timer[key].index == index &&
		    m->timer[key].generation == generation)
			break;
	return key;
}

/* The handle of a timer that a key has or had last, sometimes a handle of none */
static void some_handle(struct model *m, uint32_t *index, uint32_t *generation)
{
	const struct model_timer *t = &m->timer[below(m, KEYS)];

	*index = below(m, 20) ? t->index : below(m, CAPACITY + 3);
	*generation = t->generation + !below(m, 20);
}

static bool step_move_handle(struct model *m)
{
	uint32_t flags = below(m, 2) * TIMERWHEEL_ABS, generation[MOST];
	struct timerwheel_move_handle e[MOST];
	int n = 1 + below(m, MOST), i;
	uint64_t key;

	for (i = 0; i < n; i++) {
		some_handle(m, &e[i].index, &e[i].generation);
		generation[i] = e[i].generation;
		e[i].deadline = some_time(m, flags);
	}
	if (!same(m, "number of MOVE by handle", 0,
		  timerwheel_move_handles(m->wheel, e, n, flags), n))
		return false;
	for (i = 0; i < n; i++) {
		key = holder(m, e[i].index, generation[i]);
		if (!same(m, "result of MOVE by handle", key, e[i].result,
			  key == KEYS ? -ENOENT : m->timer[key].state))
			return false;
		if (key != KEYS)
			set_deadline(m, &m->timer[key], e[i].deadline, flags);
	}
	return true;
}

static bool step_remove_handle(struct model *m)
{
	struct timerwheel_remove_handle e[MOST];
	int n = 1 + below(m, MOST), i;
	uint32_t generation[MOST];
	uint64_t key;

	for (i = 0; i < n; i++) {
		some_handle(m, &e[i].index, &e[i].generation);
		generation[i] = e[i].generation;
		e[i].value = 4711;
	}
	if (!same(m, "number of REMOVE by handle", 0,
		  timerwheel_remove_handles(m->wheel, e, n), n))
		return false;
	for (i = 0; i < n; i++) {
		key = holder(m, e[i].index, generation[i]);
		if (!same(m, "result of REMOVE by handle", key, e[i].result,
			  key == KEYS ? -ENOENT : m->timer[key].state) ||
		    !same(m, "value removed by handle", key, e[i].value,
			  key == KEYS ? 4711 : m->timer[key].value))
			return false;
		if (key != KEYS)
			set_state(m, &m->timer[key], TIMERWHEEL_WAS_NONE);
	}
	return true;
}

/* Does this entry (of GET, LIST, DRAIN) match the timer of the model? */
static bool is_entry(struct model *m, const struct timerwheel_entry *e)
{
	struct model_timer *t = &m->timer[e->key % KEYS];

	look(t);
	return same(m, "key", e->key, e->key < KEYS, true) &&
	       same(m, "state", e->key, e->result, t->state) &&
	       same(m, "value", e->key, e->value, t->value) &&
	       same(m, "deadline", e->key, e->deadline, t->deadline) &&
	       same(m, "time left", e->key, e->left, t->deadline - m->now) &&
	       same(m, "period", e->key, e->period, t->period) &&
	       same(m, "slack", e->key, e->slack, 0) &&
	       same(m, "flags", e->key, e->flags, 0) &&
	       same(m, "index", e->key, e->index, t->index) &&
	       same(m, "generation", e->key, e->generation, t->generation);
}

static bool step_get(struct model *m)
{
	struct timerwheel_entry e[KEYS];
	uint64_t key;

	poison(e, sizeof(e));
	for (key = 0; key < KEYS; key++) {
		e[key].key = key;
		e[key].flags = 0;
	}
	if (!same(m, "number of GET", 0, timerwheel_get(m->wheel, e, KEYS), KEYS))
		return false;
	for (key = 0; key < KEYS; key++) {
		if (!m->timer[key].state) {
			if (!same(m, "result of GET", key, e[key].result, -ENOENT))
				return false;
		} else if (!is_entry(m, &e[key])) {
			return false;
		}
	}
	return true;
}

static bool step_list(struct model *m)
{
	struct timerwheel_entry e[MOST];
	unsigned char seen[KEYS] = { 0 };
	size_t page = 1 + below(m, MOST);
	uint64_t cursor = 0;
	int total = 0;
	long n, i;

	do {
		n = timerwheel_list(m->wheel, e, page, &cursor);
		if (n < 0)
			return same(m, "LIST", 0, n, 0);
		for (i = 0; i < n; i++)
			if (!is_entry(m, &e[i]) ||
			    !same(m, "times listed", e[i].key, ++seen[e[i].key], 1))
				return false;
		total += n;
	} while (n);
	return same(m, "timers listed", 0, total, m->count);
}

static bool step_drain(struct model *m)
{
	struct timerwheel_entry e[MOST];
	long n = timerwheel_drain(m->wheel, e, 1 + below(m, MOST), 0), i;

	if (!n)
		return same(m, "timers not drained", 0, m->count, 0);
	for (i = 0; i < n; i++) {
		if (!is_entry(m, &e[i]))
			return false;
		set_state(m, &m->timer[e[i].key], TIMERWHEEL_WAS_NONE);
	}
	return same(m, "DRAIN", 0, n > 0, true);
}

/* Refresh a timer, and check the result against its state. */
static bool step_refresh(struct model *m)
{
	struct model_timer *t = &m->timer[below(m, KEYS)];
	uint64_t key = t - m->timer, when, end;
	int want = TIMERWHEEL_DONE, got;

	if (!t->index || m->unit == 1)
		return true;
	when = m->now + below(m, 1ULL << (1 + below(m, 40)));
	got = timerwheel_table_refresh(&m->table, t->index, t->generation, when);
	when = (when + m->unit - 1) / m->unit * m->unit;
	/* it was removed or delivered, and its index may have another owner */
	if (!t->state)
		return same(m, "refresh of one that has ended", key,
			    got == TIMERWHEEL_GONE || got == TIMERWHEEL_TOO_LATE, true);
	end = t->touched > t->deadline ? t->touched : t->deadline;
	if (t->state == TIMERWHEEL_WAS_DUE)
		want = TIMERWHEEL_TOO_LATE;
	else if (when < end)
		want = TIMERWHEEL_NEEDS_CALL;
	else
		t->touched = when;
	return same(m, "refresh", key, got, want);
}

static bool step_advance(struct model *m)
{
	uint64_t by = below(m, 1ULL << (1 + below(m, 38)));
	struct model_timer *t;
	int due = m->due;
	long n;

	n = below(m, 2) ? timerwheel_advance(m->wheel, by, 0) :
			  timerwheel_advance(m->wheel, m->now + by, TIMERWHEEL_ABS);
	m->now += by;
	for (t = m->timer; t < m->timer + KEYS; t++) {
		if (t->state != TIMERWHEEL_WAS_PENDING || t->deadline > m->now)
			continue;
		look(t);
		if (t->deadline <= m->now)
			fall_due(m, t, t->deadline);
	}
	return same(m, "number fallen due", 0, n, m->due - due) &&
	       same(m, "time", 0, timerwheel_now(m->wheel), m->now);
}

static bool delivered(struct model *m, const struct timerwheel_event *e)
{
	struct model_timer *t = &m->timer[e->key % KEYS];
	uint64_t overruns = t->period ? (m->now - t->deadline) / t->period : 0;

	if (!same(m, "key", e->key, e->key < KEYS, true) ||
	    !same(m, "state when taken", e->key, t->state, TIMERWHEEL_WAS_DUE) ||
	    !same(m, "value taken", e->key, e->value, t->value) ||
	    !same(m, "deadline taken", e->key, e->deadline, t->deadline) ||
	    !same(m, "time fired", e->key, e->fired, t->fired) ||
	    !same(m, "overruns", e->key, e->overruns, overruns) ||
	    !same(m, "flags taken", e->key, e->flags, t->period ? TIMERWHEEL_EVENT_PERIODIC : 0) ||
	    !same(m, "index taken", e->key, e->index, t->index))
		return false;
	t->deadline += (overruns + 1) * t->period;
	set_state(m, t, t->period ? TIMERWHEEL_WAS_PENDING : TIMERWHEEL_WAS_NONE);
	return true;
}

static bool step_take(struct model *m)
{
	size_t count = 1 + below(m, MOST);
	struct timerwheel_event e[MOST];
	long n, i;

	poison(e, sizeof(e));
	n = timerwheel_take(m->wheel, e, count);
	if (!same(m, "number taken", 0, n, (size_t)m->due < count ? (size_t)m->due : count))
		return false;
	for (i = 0; i < n; i++) {
		if (i && e[i].fired < e[i - 1].fired)
			return same(m, "order of fired", e[i].key, e[i].fired, e[i - 1].fired);
		if (!delivered(m, &e[i]))
			return false;
	}
	return poisoned(e + n, (MOST - n) * sizeof(*e)) || same(m, "what is behind", 0, 0, 1);
}

static bool holds(struct model *m)
{
	struct timerwheel_stats s;

	return same(m, "STATS", 0, timerwheel_stats(m->wheel, &s), 0) &&
	       same(m, "due", 0, s.due, m->due) &&
	       same(m, "pending", 0, s.pending, m->count - m->due) &&
	       same(m, "balance", 0, balanced(m->wheel), true) &&
	       same(m, "readiness", 0, readable(m->wheel), m->due > 0);
}

/* The steps, each as often as it is chosen */
static bool (*const steps[])(struct model *m) = {
	step_add, step_add, step_add, step_move, step_move, step_remove, step_refresh, step_refresh,
	step_refresh, step_refresh, step_advance, step_advance, step_take, step_take, step_get,
	step_list, step_drain, step_move_handle, step_remove_handle,
};

FIXTURE(random)
{
	struct model *m;
};

FIXTURE_VARIANT(random)
{
	bool table;
};

FIXTURE_VARIANT_ADD(random, plain)
{
	.table = false,
};

FIXTURE_VARIANT_ADD(random, table)
{
	.table = true,
};

FIXTURE_SETUP(random)
{
	self->m = calloc(1, sizeof(*self->m));
	ASSERT_NE(NULL, self->m);
}

FIXTURE_TEARDOWN(random)
{
	free(self->m);
}

TEST_F(random, operations)
{
	struct model *m = self->m;
	uint64_t began = seed();
	int i, step;

	TH_LOG("TW_SEED=%llu", (unsigned long long)began);
	m->rand = began;
	m->wheel = wheel_manual_of(CAPACITY, 0, variant->table);
	ASSERT_NE(NULL, m->wheel);
	m->unit = 1;
	if (variant->table) {
		ASSERT_EQ(0, timerwheel_table(m->wheel, &m->table));
		m->unit = 1ULL << m->table.bits;
	}
	for (i = 0; i < STEPS; i++) {
		step = below(m, sizeof(steps) / sizeof(*steps));
		/* Drain rarely, or the wheel never becomes full. */
		if (steps[step] == step_drain && below(m, 20))
			continue;
		ASSERT_EQ(true, steps[step](m) && holds(m))
			TH_LOG("after step %d (%d): %s", i, step, m->why);
	}
	timerwheel_close(m->wheel);
}

TEST_HARNESS_MAIN
