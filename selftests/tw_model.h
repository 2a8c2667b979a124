/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A plain model of a wheel: its contents after a program has made these calls, with these results.
 * The keys are 0 to n - 1; all deadlines are absolute, so that the model knows them.
 * model_differs() compares all of it with the wheel.
 */
#ifndef TW_MODEL_H
#define TW_MODEL_H

#include "tw_test.h"

/* A timer of the model. @state: TIMERWHEEL_WAS_*, NONE if the timer does not exist. */
struct model_timer {
	__u64 value;
	__u64 deadline;
	__u64 period;
	int state;
};

struct model {
	int fd;
	bool manual;			/* then @now is the wheel's time */
	__u64 now;
	__u32 n;
	__u32 count;			/* number of timers */
	__u32 peak;			/* maximum number of timers so far */
	__u32 due;
	struct model_timer *timer;
	unsigned char *seen;
	char why[160];
};

/* A model with room for @n keys, of the wheel @fd, which is empty. */
static inline void model_init(struct model *m, int fd, bool manual, __u32 n)
{
	*m = (struct model) { .fd = fd, .manual = manual, .n = n };
	m->timer = calloc(n, sizeof(*m->timer));
	m->seen = malloc(n);
	if (!m->timer || !m->seen)
		abort();
}

static inline void model_free(struct model *m)
{
	free(m->timer);
	free(m->seen);
	close(m->fd);
}

static inline void model_set(struct model *m, __u64 key, int state)
{
	struct model_timer *t = &m->timer[key];

	m->count += !!state - !!t->state;
	m->due += (state == TIMERWHEEL_WAS_DUE) - (t->state == TIMERWHEEL_WAS_DUE);
	t->state = state;
	if (m->count > m->peak)
		m->peak = m->count;
}

/* The state that a deadline gives a timer. On a running clock it is hours ahead, or in the past. */
static inline int model_when(const struct model *m, __u64 deadline)
{
	return deadline > (m->manual ? m->now : tw_now(CLOCK_MONOTONIC)) ?
	       TIMERWHEEL_WAS_PENDING : TIMERWHEEL_WAS_DUE;
}

static inline bool model_same(struct model *m, const char *what, __u64 key, __s64 got,
			      __s64 want)
{
	if (got == want)
		return true;
	snprintf(m->why, sizeof(m->why), "%s of key %llu is %lld, should be %lld", what,
		 (unsigned long long)key, (long long)got, (long long)want);
	return false;
}

/* Process an element of ADD that was done. Returns false if the result is wrong. */
static inline bool model_added(struct model *m, const struct timerwheel_add *add)
{
	struct model_timer *t = &m->timer[add->key];

	if (!model_same(m, "result of ADD", add->key, add->result, t->state))
		return false;
	t->value = add->value;
	t->deadline = add->deadline;
	t->period = add->period;
	model_set(m, add->key, model_when(m, add->deadline));
	return true;
}

static inline bool model_moved(struct model *m, const struct timerwheel_move *move)
{
	int state = m->timer[move->key].state;

	if (!model_same(m, "result of MOVE", move->key, move->result, state ?: -ENOENT))
		return false;
	if (state) {
		m->timer[move->key].deadline = move->deadline;
		model_set(m, move->key, model_when(m, move->deadline));
	}
	return true;
}

static inline bool model_removed(struct model *m, const struct timerwheel_remove *rem)
{
	const struct model_timer *t = &m->timer[rem->key];
	int state = t->state;

	if (!model_same(m, "result of REMOVE", rem->key, rem->result, state ?: -ENOENT) ||
	    (state && !model_same(m, "removed value", rem->key, rem->value, t->value)))
		return false;
	model_set(m, rem->key, TIMERWHEEL_WAS_NONE);
	return true;
}

/* Does this entry (of GET, LIST, DRAIN) match the timer of the model? */
static inline bool model_entry(struct model *m, const struct timerwheel_entry *e)
{
	const struct model_timer *t = &m->timer[e->key];

	return model_same(m, "key", e->key, e->key < m->n, true) &&
	       model_same(m, "state", e->key, e->result, t->state) &&
	       model_same(m, "value", e->key, e->value, t->value) &&
	       model_same(m, "deadline", e->key, e->deadline, t->deadline) &&
	       model_same(m, "period", e->key, e->period, t->period) &&
	       (!m->manual ||
		model_same(m, "time left", e->key, e->left, t->deadline - m->now));
}

static inline bool model_drained(struct model *m, const struct timerwheel_entry *e)
{
	if (!model_entry(m, e) || !model_same(m, "drained", e->key, !e->result, false))
		return false;
	model_set(m, e->key, TIMERWHEEL_WAS_NONE);
	return true;
}

/* Process an event that was read exactly once; the timer must have been due. */
static inline bool model_read(struct model *m, const struct timerwheel_event *ev)
{
	struct model_timer *t = &m->timer[ev->key];

	if (!model_same(m, "key", ev->key, ev->key < m->n, true) ||
	    !model_same(m, "state when read", ev->key, t->state, TIMERWHEEL_WAS_DUE) ||
	    !model_same(m, "value read", ev->key, ev->value, t->value) ||
	    !model_same(m, "deadline read", ev->key, ev->deadline, t->deadline))
		return false;
	if (t->period)
		t->deadline += (ev->overruns + 1) * t->period;
	model_set(m, ev->key, t->period ? TIMERWHEEL_WAS_PENDING : TIMERWHEEL_WAS_NONE);
	return true;
}

/* Set the time of a MANUAL wheel. Returns the number of timers that fell due. */
static inline __u32 model_advanced(struct model *m, __u64 now)
{
	__u32 i, due = m->due;

	m->now = now;
	for (i = 0; i < m->n; i++)
		if (m->timer[i].state == TIMERWHEEL_WAS_PENDING && m->timer[i].deadline <= now)
			model_set(m, i, TIMERWHEEL_WAS_DUE);
	return m->due - due;
}

/* Compare by LIST: the same timers, each once */
static inline bool model_lists(struct model *m)
{
	static struct timerwheel_entry page[512];
	__u64 cursor = 0;
	__u32 total = 0;
	int i, n;

	memset(m->seen, 0, m->n);
	do {
		n = tw_list(m->fd, &cursor, page, 512);
		if (n < 0)
			return model_same(m, "LIST, errno", 0, n, 0);
		for (i = 0; i < n; i++) {
			if (!model_entry(m, &page[i]) ||
			    !model_same(m, "times listed", page[i].key,
					++m->seen[page[i].key], 1))
				return false;
		}
		total += n;
	} while (n);
	return model_same(m, "timers listed instead", 0, total, m->count);
}

/* Compare by GET: found under their keys, and no others. All of them, or a thousand. */
static inline bool model_gets(struct model *m)
{
	static struct timerwheel_entry ent[1024];
	__u32 step = m->n / 1024 + 1, key, n = 0;
	int ret, i;

	tw_poison(ent, sizeof(ent));
	for (key = 0; key < m->n; key += step, n++)
		ent[n] = (struct timerwheel_entry) { .key = key };
	ret = dev_get(m->fd, ent, n);
	if (!model_same(m, "GET, number", 0, ret, n))
		return false;
	for (i = 0; i < ret; i++) {
		int state = m->timer[ent[i].key].state;

		if (!model_same(m, "GET", ent[i].key, ent[i].result, state ?: -ENOENT) ||
		    (state && !model_entry(m, &ent[i])))
			return false;
	}
	return true;
}

/* A difference between the wheel and the model; NULL: none. */
static inline const char *model_differs(struct model *m)
{
	struct timerwheel_stats st;
	bool same;

	same = model_lists(m) && model_gets(m) &&
	       model_same(m, "STATS, errno", 0, tw_stats(m->fd, &st), 0) &&
	       model_same(m, "number due", 0, st.due, m->due) &&
	       model_same(m, "number pending", 0, st.pending, m->count - m->due) &&
	       model_same(m, "balance of endings", 0, tw_balanced(&st), true) &&
	       model_same(m, "readiness", 0, dev_poll(m->fd, 0) == POLLIN, m->due > 0);
	return same ? NULL : m->why;
}

/* Read all events of a non-blocking descriptor. Returns NULL if they were right. */
static inline const char *model_read_all(struct model *m)
{
	struct timerwheel_event ev[64];
	int ret, i;

	while ((ret = dev_read(m->fd, ev, 64)) > 0)
		for (i = 0; i < ret; i++)
			if (!model_read(m, &ev[i]))
				return m->why;
	if (!model_same(m, "read, errno", 0, ret, -EAGAIN) ||
	    !model_same(m, "events missing", 0, m->due, 0))
		return m->why;
	return NULL;
}

/* Add timers @from to @to - 1 with a value and deadlines; all must succeed. */
static inline const char *model_fill(struct model *m, __u32 from, __u32 to, __u64 value,
				     __u64 deadline, __u64 period)
{
	static struct timerwheel_add add[4096];
	__u32 n, i;

	for (; from < to; from += n) {
		n = to - from < 4096 ? to - from : 4096;
		for (i = 0; i < n; i++)
			add[i] = (struct timerwheel_add) {
				.key = from + i, .value = value + i, .deadline = deadline,
				.period = period, .flags = TIMERWHEEL_ABS,
			};
		if (!model_same(m, "ADD, number", from, dev_add(m->fd, add, n), n))
			return m->why;
		for (i = 0; i < n; i++)
			if (!model_added(m, &add[i]))
				return m->why;
	}
	return NULL;
}

#endif /* TW_MODEL_H */
