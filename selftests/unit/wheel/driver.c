// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "deadlines.h"
#include "driver.h"
#include "fail.h"
#include "slots.h"
#include "times.h"

#define trace(d, ...)				\
do {						\
	if ((d)->trace)				\
		printf("# " __VA_ARGS__);	\
} while (0)

static void print_context(const void *context)
{
	const struct driver *d = context;
	char text[128];

	config_print(d->config, text, sizeof(text));
	printf("# at operation %llu, tick %llu, time %llu ns, bias %llu ns\n", d->stats->ops,
	       driver_now(d), d->now_ns, d->model.bias);
	if (d->source.bytes)
		printf("# fuzzed, %s\n", text);
	else
		printf("# repeat with: wheel_test --seed %llu --config %s\n", d->seed, text);
}

/* The current tick, as the module passes it to the wheel */
u64 driver_now(const struct driver *d)
{
	u64 tick = model_tick(&d->model, d->now_ns);

	/* this happens only when the bias has reached its limit */
	if (tick + 1 < d->rig.w.cursor)
		tick = d->rig.w.cursor - 1;
	return tick;
}

/* Check everything. */
static void walk(struct driver *d)
{
	check_wheel(&d->rig, &d->model, d->latest, d->exact);
	check_due(&d->rig, &d->model);
	d->stats->walks++;
}

/* --- Timers ------------------------------------------------------------------- */

/* The index of a random pending timer; 0: there is none */
static u32 any_pending(struct driver *d)
{
	if (!d->model.count)
		return 0;
	return d->model.order[source_pick(&d->source, d->model.count)].index;
}

/* The index of a timer in a backlog; 0: there is none */
static u32 any_backlog(struct driver *d)
{
	const struct tw_wheel *w = &d->rig.w;
	unsigned int n, base = d->rig.lists - TW_BACKLOGS;
	u32 index;

	if (!w->backlogs)
		return 0;
	n = w->backlog_first + source_pick(&d->source, w->backlogs);
	base += n % TW_BACKLOGS;
	index = w->head[base + w->strand[source_pick(&d->source, TW_STRANDS)]];
	for (n = source_pick(&d->source, 4); index && n; n--)
		if (rig_timer(&d->rig, index)->next)
			index = rig_timer(&d->rig, index)->next;
	return index;
}

/* The index of a due timer, one of the first or the last; 0: there is none */
static u32 any_due(struct driver *d)
{
	u32 index = d->rig.due.first;
	unsigned int n;

	if (source_once_in(&d->source, 3))
		return d->rig.due.last;
	for (n = source_pick(&d->source, 8); index && n; n--)
		if (rig_timer(&d->rig, index)->next)
			index = rig_timer(&d->rig, index)->next;
	return index;
}

static u32 take_free(struct driver *d)
{
	u32 n, index;

	if (d->rig.max - d->free_count >= d->population)
		return 0;
	n = source_pick(&d->source, min(d->free_count, 256U));
	d->free_count--;
	index = d->free[d->free_count - n];
	d->free[d->free_count - n] = d->free[d->free_count];
	tw_deadline_new_owner(&d->rig.pool, rig_timer(&d->rig, index));
	rig_reset(&d->rig, index);
	return index;
}

static void give_free(struct driver *d, u32 index)
{
	d->model.timer[index].state = MODEL_FREE;
	d->free[d->free_count++] = index;
}

/*
 * Timer @index was inserted: it is first in its strand, in a slot of the lowest level that
 * reaches its tick.
 */
static void check_inserted(struct driver *d, u32 index)
{
	const struct rig *r = &d->rig;
	unsigned int strand, list, level, n, shift;
	u64 tick = d->model.timer[index].queued;
	u64 away;

	strand = rig_timer(r, index)->prev & ~TW_HEAD;
	CHECK(strand < r->lists * r->w.strands && r->w.head[strand] == index,
	      "timer %u is not first in its strand", index);
	CHECK(strand / r->lists == (r->w.strands > 1 ? index % TW_STRANDS : 0),
	      "timer %u is in strand %u", index, strand / r->lists);
	list = strand % r->lists;
	level = list / rig_level_size(r);
	CHECK(level < r->w.levels, "timer %u was put into a backlog", index);
	for (n = 0; n <= level; n++) {
		shift = n * r->w.shift;
		away = (tick >> shift) - (r->w.cursor >> shift);
		CHECK((away < rig_level_size(r)) == (n == level),
		      "timer %u was put into level %u, level %u is %llu away", index, level, n,
		      away);
	}
	d->model.timer[index].level = level;
	d->cascades += level;
}

static void insert(struct driver *d, u32 index, u64 deadline, u32 slack)
{
	struct tw_wheel *w = &d->rig.w;
	u64 now = driver_now(d), work;

	if (!source_once_in(&d->source, 8))
		rig_catch_up(&d->rig, now);
	model_insert(&d->model, index, deadline, slack, now, w->cursor);
	w->sooner = false;
	work = w->work;
	rig_add(&d->rig, index, deadline, slack);
	CHECK(w->sooner == (w->work < work), "work for tick %llu, then for %llu, sooner: %d", work,
	      w->work, w->sooner);
	check_inserted(d, index);
	d->stats->inserted++;
}

/* Take a pending timer out. */
static void take_pending(struct driver *d, u32 index)
{
	rig_remove(&d->rig, index);
	model_remove(&d->model, index);
	d->exact = false;
	d->stats->removed++;
}

/* --- Time --------------------------------------------------------------------- */

/* Check timer @index, which has fired. @ordered: timers fire in the order of their ticks. */
static void check_fired(struct driver *d, u32 index, bool ordered)
{
	const struct tw_timer *t = rig_timer(&d->rig, index);
	const struct model_timer *m = &d->model.timer[index];
	u64 tick = t->fired / d->model.tick;
	u64 fired = d->now_ns;
	unsigned int bucket = 0;
	u64 late;

	CHECK(m->state == MODEL_PENDING, "timer %u fired in state %u", index, m->state);
	CHECK(t->state == TW_DUE, "timer %u fired and is in state %u", index, t->state);
	CHECK(t->deadline == m->deadline, "timer %u: its deadline was changed", index);
	CHECK(t->fired >= t->deadline, "timer %u: early: fired at %llu, deadline %llu", index,
	      t->fired, t->deadline);
	/* in a backlog it may be visited before its tick, but fires not before its deadline */
	CHECK(!ordered || m->queued <= d->latest, "timer %u: queued for tick %llu, fired in %llu",
	      index, m->queued, d->latest);
	if (d->config->manual) {
		/* if postponed, it may have been queued again for its new tick */
		if (!m->moved || tick != m->target)
			tick = m->queued;
		CHECK(tick <= d->latest, "timer %u: tick %llu, fired in %llu", index, tick,
		      d->latest);
		fired = tick * d->model.tick;
	} else {
		tick = m->queued;
	}
	CHECK(t->fired == fired, "timer %u: fired at %llu instead of %llu", index, t->fired,
	      fired);
	if (d->config->manual || (ordered && !m->moved)) {
		CHECK(tick >= d->order, "timer %u of tick %llu fired after one of tick %llu",
		      index, tick, d->order);
		d->order = tick;
	}

	late = t->fired - t->deadline;
	while (bucket < 64 && late >= 1ULL << bucket)
		bucket++;
	d->lateness[bucket]++;
	d->late_max = max(d->late_max, late);
	d->fired++;
}

/* The most that a timer costs of a budget: it is alone in its slot, and no level is empty. */
static unsigned int most_cost(const struct tw_wheel *w)
{
	return 1 + w->levels + w->levels * w->level_size / 1024;
}

/* Call tw_wheel_collect() once, and check all that it did. Returns what it returned. */
static bool collect(struct driver *d, unsigned int budget, bool last)
{
	struct rig *r = &d->rig;
	struct tw_wheel *w = &r->w;
	u64 now = driver_now(d);
	u64 visits = rig_visits(r);
	u64 requeues = w->requeues;
	u64 cascades = w->cascades;
	u32 end = r->due.last;
	u32 backlogs = w->backlogs;
	bool work = w->work <= now;
	bool more;
	u32 index;

	d->latest = max(d->latest, now);
	more = tw_wheel_collect(w, now, d->now_ns, budget, d->config->manual, last, &r->due);
	visits = rig_visits(r) - visits;
	trace(d, "collect budget %u last %d: %llu visits, more %d, work %llu, cursor %llu\n",
	      budget, last, visits, more, w->work, w->cursor);
	CHECK(visits <= budget, "%llu timers were handled with a budget of %u", visits, budget);
	CHECK(visits || !work || !d->exact || backlogs, "announced work in tick %llu, had none",
	      now);
	if (work || backlogs)
		d->exact = true;

	for (index = end ? rig_timer(r, end)->next : r->due.first; index;
	     index = rig_timer(r, index)->next) {
		CHECK(index <= r->max, "timer %u fired", index);
		check_fired(d, index, !backlogs);
		model_remove(&d->model, index);
		d->model.timer[index].state = MODEL_DUE;
		CHECK(d->model.count == w->pending || rig_timer(r, index)->next,
		      "%u timers left, should be %u", w->pending, d->model.count);
	}
	if (!d->config->manual && (w->backlogs || backlogs))
		d->order = 0;

	if (more) {
		CHECK(w->work <= now || w->backlogs, "there is more, but no work is announced");
		CHECK(visits * most_cost(w) >= budget - budget / 2,
		      "%llu of %u done, but there is more", visits, budget);
	} else {
		CHECK(w->work > now && !w->backlogs, "there is no more, but work is announced");
		CHECK(model_bound(&d->model) > now, "timer %u of tick %llu has not fired in %llu",
		      d->model.order[0].index, d->model.order[0].bound, now);
	}
	/* timers that have moved may have been queued again: the walk records that */
	if (visits && d->model.moved)
		walk(d);
	CHECK(w->cascades <= d->cascades, "%llu cascades of timers, expected at most %llu",
	      w->cascades, d->cascades);
	d->stats->collects++;
	d->stats->cascades += w->cascades - cascades;
	d->stats->requeues += w->requeues - requeues;
	d->stats->backlogs += !!w->backlogs;
	d->stats->most_backlogs = max_t(u64, d->stats->most_backlogs, w->backlogs);
	return more;
}

static unsigned int any_budget(struct driver *d)
{
	if (source_once_in(&d->source, 8))
		return 1000000;
	return 2 + source_pick(&d->source, d->budget);
}

/* A few batches in a row; time may advance between them. */
static void batches(struct driver *d)
{
	unsigned int left = 1 + source_pick(&d->source, 8);
	unsigned int budget = any_budget(d);

	while (collect(d, budget, left == 1) && --left)
		if (source_once_in(&d->source, 8))
			d->now_ns = times_jump(d);
}

/*
 * The clock is set back. The wheel's own time stands still, or goes back as well, but not before
 * the cursor: the module sees to that. The bias is limited.
 */
static void op_set_back(struct driver *d)
{
	struct tw_wheel *w = &d->rig.w;
	u64 by = min(d->now_ns, source_word(&d->source) >> source_pick(&d->source, 64));
	u64 now = driver_now(d);
	u64 tick, bias, floor = 0;

	if (d->config->manual)
		return;
	d->now_ns -= by;
	if (source_once_in(&d->source, 2)) {
		bias = w->bias + by + source_pick(&d->source, min(d->model.tick, U32_MAX + 1ULL));
	} else {
		bias = w->bias;
		tick = model_tick(&d->model, d->now_ns);
		if (tick + 1 < w->cursor)
			bias += (w->cursor - 1 - tick) * w->tick;
	}
	if (bias > TW_BIAS_MAX || bias < w->bias) {
		bias = TW_BIAS_MAX;
		floor = now + 1;
	}
	w->bias = bias;
	model_set_bias(&d->model, bias, floor);
	d->cascades += (u64)d->model.count * w->levels;
	d->stats->biases++;
	trace(d, "set back by %llu, bias %llu, tick %llu\n", by, bias, driver_now(d));
}

/* --- Operations --------------------------------------------------------------- */

static void op_add(struct driver *d)
{
	u32 index = take_free(d);
	u64 deadline;
	u32 slack;

	if (!index)
		return;
	deadline = times_deadline(d);
	slack = times_slack(d);
	trace(d, "add %u deadline %llu slack %u\n", index, deadline, slack);
	insert(d, index, deadline, slack);
}

/* Several timers at once, some due in the same tick. */
static void op_burst(struct driver *d)
{
	unsigned int n = 1 + source_pick(&d->source, 128);
	unsigned int group = 1 + source_pick(&d->source, 32);
	u64 deadline = times_deadline(d);
	u32 index;

	for (; n && (index = take_free(d)); n--) {
		trace(d, "add %u deadline %llu\n", index, deadline);
		insert(d, index, deadline, 0);
		d->stats->ops++;
		if (!(n % group) && deadline < TIMERWHEEL_TIME_MAX - d->model.tick)
			deadline += d->model.tick;
	}
}

static void op_postpone(struct driver *d)
{
	u32 index = any_pending(d);
	struct tw_timer *t;

	if (!index)
		return;
	t = rig_timer(&d->rig, index);
	t->deadline = times_later(d, t->deadline);
	rig_reset(&d->rig, index);
	if (source_once_in(&d->source, 8))
		t->slack = max(t->slack, times_slack(d));
	trace(d, "postpone %u deadline %llu slack %u\n", index, t->deadline, t->slack);
	model_postpone(&d->model, index, t->deadline, t->slack);
	d->cascades += d->rig.w.levels;
	d->stats->postponed++;
}

/*
 * User space stores an entry in the deadline table: mostly a valid one, else one with another
 * owner's generation, or anything.
 */
static void op_store(struct driver *d)
{
	u32 index = any_pending(d);
	unsigned int bits = ilog2(d->rig.pool.generation_mask + 1);
	u64 *entry, deadline, unit = 1ULL << bits;
	struct tw_timer *t;
	u64 value;

	if (!index || !d->rig.deadlines)
		return;
	t = rig_timer(&d->rig, index);
	entry = tw_deadline_entry(tw_pool_deadlines(&d->rig.pool), index);
	value = source_once_in(&d->source, 8) ? times_deadline(d) : times_later(d, t->deadline);
	value = ((value + unit - 1) & ~(unit - 1)) | t->generation | TIMERWHEEL_TABLE_ARMED;
	if (source_once_in(&d->source, 8))
		value ^= source_pick(&d->source, unit);
	else if (source_once_in(&d->source, 16))
		value = source_word(&d->source);
	/* the model has no timers that are cancelled in the table */
	if (tw_deadline_valid(&d->rig.pool, t, value))
		value |= TIMERWHEEL_TABLE_ARMED;
	*entry = value;
	deadline = rig_deadline(&d->rig, index);
	trace(d, "store %llx for %u, deadline %llu\n", value, index, deadline);
	if (deadline == d->model.timer[index].deadline)
		return;
	model_postpone(&d->model, index, deadline, t->slack);
	d->cascades += d->rig.w.levels;
	d->stats->stored++;
}

/* MOVE to any time: removal and insertion */
static void op_move(struct driver *d)
{
	u32 index = any_pending(d);
	struct tw_timer *t;
	u64 deadline;

	if (!index)
		return;
	t = rig_timer(&d->rig, index);
	deadline = times_deadline(d);
	switch (source_pick(&d->source, 4)) {
	case 0:
		/* often the same slot */
		deadline = t->deadline - min(t->deadline, source_pick(&d->source, 3));
		break;
	case 1:
		deadline = min(deadline, t->deadline);
		break;
	}
	trace(d, "move %u deadline %llu\n", index, deadline);
	rig_reset(&d->rig, index);
	take_pending(d, index);
	insert(d, index, deadline, source_once_in(&d->source, 4) ? times_slack(d) : t->slack);
}

static void op_remove(struct driver *d)
{
	u32 index = any_pending(d);

	if (!index)
		return;
	trace(d, "remove %u\n", index);
	take_pending(d, index);
	give_free(d, index);
}

static void op_remove_backlog(struct driver *d)
{
	u32 index = any_backlog(d);

	if (!index)
		return;
	trace(d, "remove %u from a backlog\n", index);
	take_pending(d, index);
	give_free(d, index);
}

static void op_postpone_backlog(struct driver *d)
{
	u32 index = any_backlog(d);
	struct tw_timer *t;

	if (!index)
		return;
	t = rig_timer(&d->rig, index);
	t->deadline = times_later(d, t->deadline);
	rig_reset(&d->rig, index);
	trace(d, "postpone %u in a backlog, deadline %llu\n", index, t->deadline);
	model_postpone(&d->model, index, t->deadline, t->slack);
	d->cascades += d->rig.w.levels;
	d->stats->postponed++;
}

static void op_remove_due(struct driver *d)
{
	u32 index = any_due(d);

	if (!index)
		return;
	trace(d, "remove %u, due\n", index);
	rig_take_due(&d->rig, index);
	give_free(d, index);
}

static void op_move_due(struct driver *d)
{
	u32 index = any_due(d);
	u64 deadline;

	if (!index)
		return;
	deadline = times_deadline(d);
	trace(d, "move %u, due, deadline %llu\n", index, deadline);
	rig_reset(&d->rig, index);
	rig_take_due(&d->rig, index);
	insert(d, index, deadline, times_slack(d));
}

static void op_deliver(struct driver *d)
{
	unsigned int n = 1 + source_pick(&d->source, 64);
	u32 index;

	for (; n && d->rig.due.first; n--) {
		index = d->rig.due.first;
		rig_take_due(&d->rig, index);
		give_free(d, index);
	}
}

static void op_jump(struct driver *d)
{
	d->now_ns = times_jump(d);
	trace(d, "time %llu, tick %llu\n", d->now_ns, driver_now(d));
}

static void op_jump_and_collect(struct driver *d)
{
	op_jump(d);
	batches(d);
}

/* Tick by tick with a small budget: each tick with more timers leaves a backlog. */
static void op_crawl(struct driver *d)
{
	unsigned int ticks = 1 + source_pick(&d->source, 64);
	unsigned int budget = 2 + source_pick(&d->source, 3);

	while (ticks--) {
		d->now_ns = min(d->now_ns + d->model.tick, TIMERWHEEL_TIME_MAX);
		collect(d, budget, true);
		d->stats->ops++;
	}
}

static void op_collect(struct driver *d)
{
	collect(d, any_budget(d), source_once_in(&d->source, 2));
}

static void op_catch_up(struct driver *d)
{
	trace(d, "catch up\n");
	rig_catch_up(&d->rig, driver_now(d));
}

/* The wheel became large. Its timers stay where they are. */
static void op_spread(struct driver *d)
{
	if (!source_once_in(&d->source, 4))
		return;
	trace(d, "spread\n");
	rig_spread(&d->rig);
}

/* --- Runs --------------------------------------------------------------------- */

/**
 * struct operation - a random operation
 * @run: does it
 * @weight: how often it is chosen: @weight of WEIGHTS times
 */
static const struct operation {
	void (*run)(struct driver *d);
	unsigned int weight;
} operations[] = {
	{ op_add, 63 },
	{ op_burst, 4 },
	{ op_postpone, 22 },
	{ op_store, 24 },
	{ op_move, 20 },
	{ op_remove, 20 },
	{ op_remove_backlog, 6 },
	{ op_postpone_backlog, 2 },
	{ op_remove_due, 6 },
	{ op_move_due, 8 },
	{ op_deliver, 10 },
	{ op_jump, 14 },
	{ op_jump_and_collect, 30 },
	{ op_collect, 18 },
	{ op_crawl, 1 },
	{ op_catch_up, 4 },
	{ op_set_back, 3 },
	{ op_spread, 1 },
};

#define WEIGHTS	256

static void operate(struct driver *d)
{
	unsigned int n = source_pick(&d->source, WEIGHTS);
	unsigned int i;

	for (i = 0; n >= operations[i].weight; i++)
		n -= operations[i].weight;
	operations[i].run(d);
	d->stats->ops++;
}

/* Check what the wheel announces against the model. */
static void check_announced(struct driver *d)
{
	struct tw_wheel *w = &d->rig.w;
	unsigned int most = 4096;
	u64 first = tw_wheel_first(w, &most);

	CHECK(w->pending == d->model.count, "%u timers pending, should be %u", w->pending,
	      d->model.count);
	if (!w->backlogs && w->work > driver_now(d))
		CHECK(w->work <= model_bound(&d->model),
		      "work is announced for tick %llu, timer %u must fire in %llu", w->work,
		      d->model.order[0].index, d->model.order[0].bound);
	if (!w->backlogs && w->work > driver_now(d))
		CHECK(first <= model_bound(&d->model),
		      "the first timer is in tick %llu, timer %u must fire in %llu",
		      first, d->model.order[0].index, d->model.order[0].bound);
}

/* Start an empty wheel at a random time. */
static void epoch_begin(struct driver *d)
{
	u64 tick, bias;

	times_start(d, &tick, &bias);
	rig_restart(&d->rig, tick);
	d->rig.w.bias = bias;
	model_set_bias(&d->model, bias, 0);
	d->latest = tick;
	d->population = 1 + source_pick(&d->source, d->config->timers);
	d->budget = 1ULL << (1 + 2 * source_pick(&d->source, 6));
	d->exact = true;
	d->order = 0;
	d->cascades = 0;
	d->fired = 0;
	d->late_max = 0;
	memset(d->lateness, 0, sizeof(d->lateness));
	d->stats->epochs++;
	trace(d, "begin at tick %llu, time %llu, bias %llu, %u timers\n", tick, d->now_ns, bias,
	      d->population);
}

/* End a wheel: no timer is left or lost. */
static void epoch_end(struct driver *d)
{
	const struct tw_wheel *w = &d->rig.w;
	u32 index;

	trace(d, "end\n");
	if (source_once_in(&d->source, 2)) {
		d->now_ns = TIMERWHEEL_TIME_MAX;
		while (collect(d, 1000000, true))
			;
	}
	walk(d);
	while (d->model.count) {
		index = d->model.order[0].index;
		tw_wheel_remove(&d->rig.w, rig_timer(&d->rig, index));
		model_remove(&d->model, index);
		d->exact = false;
		give_free(d, index);
	}
	walk(d);
	while ((index = d->rig.due.first)) {
		rig_take_due(&d->rig, index);
		give_free(d, index);
	}
	CHECK(d->free_count == d->rig.max, "%u timers lost", d->rig.max - d->free_count);
	CHECK(w->expired == d->fired, "expired %llu, %llu fired", w->expired, d->fired);
	CHECK(w->late_max == d->late_max, "lateness %llu, should be %llu", w->late_max,
	      d->late_max);
	CHECK(!memcmp(w->lateness, d->lateness, sizeof(d->lateness)), "histogram of lateness");
	d->stats->expired += w->expired;
}

/*
 * Operate on one wheel until @ops operations are done, the run's operations or a fuzzer's bytes are
 * used up, or the clock is at its end.
 */
static void epoch(struct driver *d, u64 ops)
{
	u64 end = min(d->stats->ops + ops, d->config->ops);
	u64 next_walk = d->stats->ops;

	epoch_begin(d);
	while (d->stats->ops < end && !source_empty(&d->source) &&
	       d->now_ns < TIMERWHEEL_TIME_MAX) {
		operate(d);
		check_announced(d);
		if (d->stats->ops >= next_walk) {
			walk(d);
			next_walk = d->stats->ops + d->config->walk;
		}
	}
	epoch_end(d);
}

static void driver_init(struct driver *d)
{
	const struct config *c = d->config;
	u32 index;

	rig_init(&d->rig, c->slots, c->tick, 0, c->timers, c->bits);
	model_init(&d->model, c->tick, c->timers);
	d->free = calloc(c->timers + 1, sizeof(*d->free));
	CHECK(d->free, "no memory");
	for (index = c->timers; index; index--)
		give_free(d, index);
	fail_context(print_context, d);
}

static void driver_free(struct driver *d)
{
	fail_context(NULL, NULL);
	rig_free(&d->rig);
	model_free(&d->model);
	free(d->free);
}

/* Run with random operations from @seed. @stats is updated during the run. */
void driver_run(const struct config *config, u64 seed, struct driver_stats *stats, bool trace)
{
	struct driver d = {
		.config = config,
		.seed = seed,
		.trace = trace,
		.source = { .state = seed },
		.stats = stats,
	};

	driver_init(&d);
	while (stats->ops < config->ops)
		epoch(&d, 1ULL << (4 + source_pick(&d.source, 12)));
	driver_free(&d);
}

/* Run with operations chosen by a fuzzer's @bytes, in one epoch. */
void driver_run_bytes(const struct config *config, const u8 *bytes, size_t size)
{
	struct driver_stats stats = {};
	struct driver d = {
		.config = config,
		.source = { .bytes = bytes, .end = bytes + size },
		.stats = &stats,
	};

	driver_init(&d);
	epoch(&d, U64_MAX);
	driver_free(&d);
}
