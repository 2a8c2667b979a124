// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

#include "deadlines.h"
#include "fail.h"
#include "model.h"
#include "monitors.h"
#include "ops.h"
#include "rig.h"
#include "run.h"
#include "source.h"
#include "table.h"
#include "walk.h"

#define TICK	1000ULL
#define SLOTS	16

/* Most deadlines are within this many ticks. */
#define SOON	40

static const struct config *config;
static struct driver_stats *stats;
static struct source source;
static struct tw_file *file;
static struct model model;
static bool closed;

/* The current operation runs in the middle of another one. */
static bool in_gap;

/* Number of faults on writes to user memory since faults were last enabled */
static unsigned int faults;

static bool once_in(u64 n)
{
	return source_once_in(&source, n);
}

static u64 pick(u64 n)
{
	return source_pick(&source, n);
}

static struct entry *pick_entry(void)
{
	return &model.entry[pick(model.keys)];
}

/* The caller is in the initial time namespace or in the namespace of the table's mappers. */
static u64 pick_offset(void)
{
	return once_in(2) ? model.offset : 0;
}

static u64 pick_deadline(u32 flags, u64 offset)
{
	u64 delay;

	if (once_in(50))
		return source_word(&source);
	if (once_in(50))
		return pick(2) ? TIMERWHEEL_TIME_MAX : 0;
	delay = once_in(8) ? 0 : once_in(8) ? pick(1ULL << 32) : pick(SOON * TICK);
	if (!(flags & TIMERWHEEL_ABS))
		return delay;
	/* some of them have passed */
	return rig_now + offset + delay - pick(SOON / 8 * TICK);
}

/* Mostly the value that matches */
static u64 pick_match(const struct entry *e, u32 flags)
{
	if (!(flags & TIMERWHEEL_MATCH))
		return once_in(200);
	return e->value + once_in(4);
}

static u32 pick_flags(void)
{
	u32 flags = 0;

	if (once_in(2))
		flags |= TIMERWHEEL_ABS;
	if (once_in(5))
		flags |= TIMERWHEEL_MATCH;
	if (once_in(200))
		flags |= 1U << pick(32);
	return flags;
}

static u64 pick_period(void)
{
	if (once_in(20))
		return once_in(2) ? source_word(&source) : TIMERWHEEL_TIME_MAX - pick(TICK);
	return 1 + pick(SOON * TICK);
}

static struct timerwheel_add pick_add(const struct entry *e, u64 offset)
{
	struct timerwheel_add arg = { .key = e->key, .flags = pick_flags(), .result = 12345 };

	if (once_in(8))
		arg.flags |= TIMERWHEEL_EXCL;
	if (once_in(4))
		arg.flags |= TIMERWHEEL_SLACK;
	arg.value = pick(1000);
	arg.deadline = pick_deadline(arg.flags, offset);
	/* with a deadline table there are no periods */
	if (once_in(config->bits ? 100 : 4))
		arg.period = pick_period();
	if (arg.flags & TIMERWHEEL_SLACK || once_in(200))
		arg.slack = pick(8 * TICK);
	arg.match = pick_match(e, arg.flags);
	arg.index = -1;
	arg.generation = -1;
	return arg;
}

static struct timerwheel_move pick_move(const struct entry *e, u64 offset)
{
	struct timerwheel_move arg = { .key = e->key, .flags = pick_flags(), .result = 12345 };

	arg.deadline = pick_deadline(arg.flags, offset);
	arg.match = pick_match(e, arg.flags);
	return arg;
}

static struct timerwheel_remove pick_remove(const struct entry *e)
{
	struct timerwheel_remove arg = { .key = e->key, .result = 12345, .left = 12345 };

	arg.flags = pick_flags();
	if (!once_in(20))
		arg.flags &= ~TIMERWHEEL_ABS;
	arg.match = pick_match(e, arg.flags);
	return arg;
}

/*
 * The handle of a key's timer or, if it has none, of the last one it had. In the middle of another
 * operation no other: that timer could be in a base that is locked.
 */
static void pick_handle(const struct entry *e, u32 *index, u32 *generation)
{
	*index = e->index;
	*generation = e->generation;
	if (in_gap)
		return;
	if (once_in(20))
		*generation = once_in(2) ? *generation + 1 : source_word(&source);
	if (once_in(20))
		*index = once_in(2) ? pick(file->table.made + 3) : source_word(&source);
}

static void count(int result)
{
	if (result < 0)
		stats->refused++;
	else
		stats->done[result]++;
}

/* --- Batches, as in batch.c ----------------------------------------------------------------- */

static void gap(void);

/*
 * @other: a second base to lock; TW_NO_CPU: none. @gaps: the other CPU may run in the middle of the
 * batch.
 */
static void run_begin(struct tw_ctx *ctx, u64 offset, bool gaps, u32 other)
{
	tw_cpu_begin_with(ctx, file, offset, other);
	if (gaps && config->bases == 2 && once_in(2))
		rig_gap = gap;
}

/*
 * tw_cpu_end() works after the whole batch, with its locks still held: no more gaps. After a batch
 * that has ended before it did anything the other CPU may run. Returns the second base that the
 * next batch needs.
 */
static u32 run_end(struct tw_ctx *ctx, bool gaps)
{
	rig_gap = NULL;
	tw_cpu_end(ctx);
	if (ctx->wants != TW_NO_CPU && gaps && config->bases == 2 && once_in(2))
		gap();
	return ctx->wants;
}

/* The state that growth changes */
struct size {
	u32 made;
	struct tw_dir dir[TW_DIRS];
	u64 charged;
	long allocations;
};

static struct size size_now(void)
{
	struct size size;

	memset(&size, 0, sizeof(size));
	size.made = file->table.made;
	memcpy(size.dir, file->table.dir, sizeof(size.dir));
	size.charged = rig_charged;
	size.allocations = shim_allocations;
	return size;
}

/* Grow the table. Returns whether an ADD should be tried again. */
static bool grow(void)
{
	struct size before = size_now(), after;
	u32 made = before.made;
	int err;

	err = tw_table_grow(file);
	if (!err) {
		stats->grown += file->table.made > made;
		return true;
	}
	stats->failed++;
	after = size_now();
	CHECK(!memcmp(&before, &after, sizeof(before)),
	      "growth returned %d, but left %u timers, %llu bytes and %ld allocations more", err,
	      after.made - made, after.charged - before.charged,
	      after.allocations - before.allocations);
	if (err == -ENOSPC)
		CHECK(made == file->setup.capacity, "ENOSPC with %u timers of %u", made,
		      file->setup.capacity);
	else
		CHECK(rig_refuse && (err == -ENOMEM || err == -EDQUOT), "growth returned %d", err);
	return false;
}

/* The model is up to date: compare the file with it. */
static void look(struct entry **e, unsigned int n)
{
	unsigned int i;

	model_ring(&model, RIG_BASES);
	for (i = 0; i < n; i++)
		model_look(&model, e[i]);
}

static void run_add(struct entry **e, unsigned int n, u64 offset, bool gaps)
{
	struct timerwheel_add arg[TW_OPS_MAX];
	unsigned int i, done = 0;
	u32 other = TW_NO_CPU;
	struct tw_ctx ctx;
	int ran;

	for (i = 0; i < n; i++)
		arg[i] = pick_add(e[i], offset);
	do {
		run_begin(&ctx, offset, gaps, other);
		ran = tw_ops_add(&ctx, arg + done, n - done);
		other = run_end(&ctx, gaps);
		for (i = done; i < done + ran; i++) {
			model_add(&model, e[i], &arg[i], offset, closed);
			count(arg[i].result);
		}
		done += ran;
		look(e, done);
	} while (done < n && (other != TW_NO_CPU || grow()));
	/* ADD fails only when the free timers of all bases are used up */
	CHECK(done == n || in_gap || model.timers == file->table.made,
	      "ADD found none of %u free timers", file->table.made - model.timers);
	for (i = done; i < n; i++)
		CHECK(arg[i].result == 12345, "an ADD that was not processed has result %d",
		      arg[i].result);
	stats->most = max_t(u64, stats->most, model.timers);
}

static void run_move(struct entry **e, unsigned int n, u64 offset, bool gaps)
{
	struct timerwheel_move arg[TW_OPS_MAX];
	u32 other = TW_NO_CPU;
	struct tw_ctx ctx;
	unsigned int i, ran, done = 0;

	for (i = 0; i < n; i++)
		arg[i] = pick_move(e[i], offset);
	do {
		run_begin(&ctx, offset, gaps, other);
		ran = tw_ops_move(&ctx, arg + done, n - done);
		other = run_end(&ctx, gaps);
		for (i = done; i < done + ran; i++) {
			model_move(&model, e[i], &arg[i], offset);
			count(arg[i].result);
		}
		done += ran;
		look(e, done);
	} while (done < n);
}

static void run_remove(struct entry **e, unsigned int n, u64 offset, bool gaps)
{
	struct timerwheel_remove arg[TW_OPS_MAX];
	u32 other = TW_NO_CPU;
	struct tw_ctx ctx;
	unsigned int i, ran, done = 0;

	for (i = 0; i < n; i++)
		arg[i] = pick_remove(e[i]);
	do {
		run_begin(&ctx, offset, gaps, other);
		ran = tw_ops_remove(&ctx, arg + done, n - done);
		other = run_end(&ctx, gaps);
		for (i = done; i < done + ran; i++) {
			model_remove(&model, e[i], &arg[i]);
			count(arg[i].result);
		}
		done += ran;
		look(e, done);
	} while (done < n);
}

static void run_move_handle(struct entry **e, unsigned int n, u64 offset, bool gaps)
{
	struct timerwheel_move_handle arg[TW_OPS_MAX];
	u32 index[TW_OPS_MAX], generation[TW_OPS_MAX], flags = 0;
	unsigned int i, ran, done = 0, moved = 0;
	struct entry *hit;
	u32 other = TW_NO_CPU;
	struct tw_ctx ctx;

	if (once_in(2))
		flags |= TIMERWHEEL_ABS;
	if (once_in(100))
		flags |= TIMERWHEEL_EXCL;
	for (i = 0; i < n; i++) {
		arg[i].deadline = pick_deadline(flags, offset);
		pick_handle(e[i], &arg[i].index, &arg[i].generation);
		index[i] = arg[i].index;
		generation[i] = arg[i].generation;
	}
	do {
		run_begin(&ctx, offset, gaps, other);
		ctx.flags = flags;
		ran = tw_ops_move_handle(&ctx, arg + done, n - done);
		other = run_end(&ctx, gaps);
		for (i = done; i < done + ran; i++) {
			CHECK(arg[i].index == index[i], "index %u became %u", index[i],
			      arg[i].index);
			hit = model_move_handle(&model, &arg[i], generation[i], flags, offset);
			if (hit)
				e[moved++] = hit;
			count(arg[i].result);
		}
		done += ran;
		look(e, moved);
	} while (done < n);
}

static void run_remove_handle(struct entry **e, unsigned int n, u64 offset, bool gaps)
{
	struct timerwheel_remove_handle arg[TW_OPS_MAX];
	u32 index[TW_OPS_MAX], generation[TW_OPS_MAX];
	u32 other = TW_NO_CPU;
	struct tw_ctx ctx;
	unsigned int i, ran, done = 0;

	for (i = 0; i < n; i++) {
		arg[i].value = 12345;
		pick_handle(e[i], &arg[i].index, &arg[i].generation);
		index[i] = arg[i].index;
		generation[i] = arg[i].generation;
	}
	do {
		run_begin(&ctx, offset, gaps, other);
		ran = tw_ops_remove_handle(&ctx, arg + done, n - done);
		other = run_end(&ctx, gaps);
		for (i = done; i < done + ran; i++) {
			CHECK(arg[i].index == index[i], "index %u became %u", index[i],
			      arg[i].index);
			model_remove_handle(&model, &arg[i], generation[i]);
			count(arg[i].result);
		}
		done += ran;
		look(e, done);
	} while (done < n);
}

static void run_get(struct entry **e, unsigned int n, u64 offset, bool gaps)
{
	struct timerwheel_entry arg[TW_OPS_MAX];
	u32 other = TW_NO_CPU;
	struct tw_ctx ctx;
	unsigned int i, ran, done = 0;

	for (i = 0; i < n; i++)
		arg[i] = (struct timerwheel_entry){ .key = e[i]->key, .flags = once_in(200) };
	do {
		run_begin(&ctx, offset, gaps, other);
		ran = tw_ops_get(&ctx, arg + done, n - done);
		other = run_end(&ctx, gaps);
		for (i = done; i < done + ran; i++)
			model_get(&model, e[i], &arg[i], offset);
		done += ran;
		look(e, done);
	} while (done < n);
}

/* One step of LIST or DRAIN */
static void run_index(u32 index, u64 offset, bool drain, bool gaps)
{
	struct timerwheel_entry entry = {};
	u32 other = TW_NO_CPU;
	struct tw_ctx ctx;
	int result;

	do {
		run_begin(&ctx, offset, gaps, other);
		if (drain)
			result = tw_drain_index(&ctx, index, &entry);
		else
			result = tw_get_index(&ctx, index, &entry);
		other = run_end(&ctx, gaps);
	} while (result == -EAGAIN);
	if (result == -EFAULT && faults) {
		stats->refused++;
	} else {
		model_index(&model, index, result, &entry, offset, drain);
		count(result);
	}
	look(NULL, 0);
}

/* --- In the middle of an operation on one timer, before it has changed anything --------------- */

static void run_read(void);
static void run_ring(void);

/* The other CPU does an operation that waits for none of the locks that this CPU holds. */
static void other_cpu(void)
{
	struct entry *e = pick_entry();
	bool locked = rig_base_locked(file, !shim_cpu);

	if (once_in(4)) {
		if (config->ring)
			run_ring();
		else
			run_read();
	} else if (e->state == NO_TIMER) {
		run_add(&e, 1, 0, false);
	} else if (locked && e->base != shim_cpu) {
		/* it would wait for the base that this CPU has locked */
		return;
	} else if (once_in(2)) {
		(once_in(2) ? run_move : run_move_handle)(&e, 1, 0, false);
	} else {
		(once_in(2) ? run_remove : run_remove_handle)(&e, 1, 0, false);
	}
}

/* The other CPU does up to 3 operations, and sometimes the table grows. */
static void gap(void)
{
	bool (*fault)(void) = rig_fault;
	unsigned int here = shim_cpu, faulted = faults, n;

	in_gap = true;
	if (once_in(8) && file->table.made < file->setup.capacity)
		grow();
	rig_fault = NULL;
	shim_cpu = !here;
	for (n = pick(4); n && !rig_base_locked(file, shim_cpu); n--) {
		stats->gaps++;
		other_cpu();
	}
	shim_cpu = here;
	rig_fault = fault;
	faults = faulted;
	in_gap = false;
}

/*
 * A reader has copied events and is about to free their timers, which are CLAIMED: lookups do not
 * find them.
 */
static void read_gap(void)
{
	struct entry *e = pick_entry();
	struct timerwheel_remove_handle by_handle = {
		.index = e->index, .generation = e->generation,
	};
	struct timerwheel_remove arg = { .key = e->key };
	struct tw_ctx ctx;

	if (e->state != TW_DUE || tw_timer_at(&file->table.pool, e->index)->state != TW_CLAIMED)
		return;
	stats->gaps++;
	shim_cpu = !shim_cpu;
	run_begin(&ctx, 0, false, TW_NO_CPU);
	tw_ops_remove(&ctx, &arg, 1);
	tw_ops_remove_handle(&ctx, &by_handle, 1);
	run_end(&ctx, false);
	shim_cpu = !shim_cpu;
	CHECK(arg.result == -ENOENT, "REMOVE of key %llx, which is CLAIMED: %d", e->key,
	      arg.result);
	CHECK(by_handle.result == -ENOENT, "REMOVE by handle of key %llx, which is CLAIMED: %d",
	      e->key, by_handle.result);
}

/* --- Everything else ------------------------------------------------------------------------- */

static void run_expiry(void)
{
	rig_now += once_in(50) ? pick(1ULL << 32) : pick(2 * TICK);
	rig_expire(file);
	model_expire(&model);
	stats->expiries++;
}

static bool fault(void)
{
	if (!once_in(40))
		return false;
	faults++;
	return true;
}

static void run_read(void)
{
	static struct timerwheel_event event[300];
	struct iov_iter to = { .ubuf = event, .count = (1 + pick(300)) * sizeof(event[0]) };
	size_t room = to.count / sizeof(event[0]), i;
	size_t most = min_t(size_t, room, model.due);
	ssize_t n;

	faults = 0;
	rig_fault = once_in(4) ? fault : NULL;
	if (config->bases == 2 && !in_gap)
		rig_gap = read_gap;
	n = tw_events_read(file, &to, once_in(2));
	rig_gap = NULL;
	rig_fault = NULL;
	if (n == -EFAULT && faults)
		return;
	CHECK(n >= 0 && !(n % sizeof(event[0])), "read returned %zd", n);
	n /= sizeof(event[0]);
	CHECK((size_t)n == most || (faults && (size_t)n < most),
	      "read returned %zd of %u events, with room for %zu", n, model.due, room);
	for (i = 0; i < (size_t)n; i++)
		model_event(&model, &event[i], 0, RIG_BASES);
	stats->events += n;
}

/* The reader of the ring consumes some events, and sometimes writes random values. */
static void run_ring(void)
{
	struct timerwheel_ring *shared = file->ring.shared;
	u32 used = file->ring.tail - shared->head, before = file->ring.tail;

	if (once_in(50))
		shared->head = source_word(&source);
	else if (used > file->ring.events)
		shared->head = file->ring.tail;
	else
		shared->head += pick(used + 1);
	if (once_in(50))
		shared->mask = source_word(&source);
	if (once_in(2))
		CHECK(tw_flow_ioctl(file) == file->ring.tail - before, "FLOW miscounted");
	model_ring(&model, RIG_BASES);
	stats->events += file->ring.tail - before;
}

/* A store in the deadline table, by the owner of a timer or a former one */
static void run_store(void)
{
	struct entry *e = pick_entry();
	u64 mask = file->table.pool.generation_mask;
	u64 time = pick_deadline(TIMERWHEEL_ABS, model.offset);
	u32 generation = e->generation, owner;

	if (!file->table.pool.deadlines || !e->index)
		return;
	/* The module may have used the entry that is overwritten: see the model's deadline. */
	owner = model.owner[e->index];
	if (owner)
		model_look(&model, &model.entry[owner - 1]);
	if (once_in(20))
		generation = source_word(&source) & mask;
	/* the model has no timers that are cancelled in the table */
	generation |= TIMERWHEEL_TABLE_ARMED;
	*tw_deadline_entry(file->table.pool.deadlines, e->index) =
		((time + mask) & ~mask) | generation;
	model_stored(&model, e->index);
	stats->stores++;
}

static void run_one(void);

/* Other operations while the log grows: one, or up to 59 */
static void meanwhile(void)
{
	unsigned int here = shim_cpu, n;

	for (n = once_in(2) ? pick(60) : 1; n; n--) {
		run_one();
		if (once_in(4))
			stats->copies += monitors_read();
	}
	shim_cpu = here;
}

static void run_monitor(void)
{
	if (config->monitors)
		stats->copies += monitors_one(meanwhile);
}

static void run_one(void)
{
	unsigned int n = once_in(3) ? 1 + pick(TW_OPS_MAX) : 1, i;
	struct entry *e[TW_OPS_MAX];
	u64 offset = pick_offset();

	for (i = 0; i < n; i++)
		e[i] = pick_entry();
	shim_cpu = pick(config->bases);
	switch (pick(20)) {
	case 0 ... 5:
		run_add(e, n, offset, n == 1);
		break;
	case 6 ... 8:
		(once_in(2) ? run_move : run_move_handle)(e, n, offset, n == 1);
		break;
	case 9 ... 10:
		(once_in(2) ? run_remove : run_remove_handle)(e, n, offset, n == 1);
		break;
	case 11:
		run_get(e, n, offset, n == 1);
		break;
	case 12 ... 13:
		if (!file->table.made)
			break;
		faults = 0;
		rig_fault = once_in(4) ? fault : NULL;
		run_index(1 + pick(file->table.made), offset, once_in(2), true);
		rig_fault = NULL;
		break;
	case 14 ... 15:
		run_expiry();
		break;
	case 16:
		if (config->ring)
			run_ring();
		else
			run_read();
		break;
	case 17 ... 18:
		run_store();
		break;
	default:
		/* if allocations are to fail, allocate often */
		if (config->refuse)
			grow();
		break;
	}
}

/* --- A run ---------------------------------------------------------------------------------- */

static bool refuse(void)
{
	return once_in(config->refuse);
}

static bool allow(void)
{
	return !once_in(config->refuse);
}

/* Random keys, or random keys that share a hash chain */
static void pick_keys(u64 *key)
{
	const struct tw_table *table = &file->table;
	u32 buckets = 2U << __fls(config->capacity / TW_BUCKET_TIMERS + 1);
	unsigned int i, j;
	u64 hash;

	for (i = 0; i < config->keys; i++) {
		do {
			key[i] = source_word(&source);
			hash = tw_hash(table, key[i]);
		} while (config->alike &&
			 (tw_bucket_of(hash, buckets) || tw_chain_of(hash)));
		for (j = 0; j < i && config->keys < 1000; j++)
			CHECK(key[j] != key[i], "the same key twice");
	}
}

/* Close the wheel to new timers and drain it. */
static void finish(void)
{
	struct entry *e;
	u32 index;

	closed = true;
	file->closed = true;
	e = pick_entry();
	run_add(&e, 1, 0, false);
	for (index = 1; index <= file->table.made; index++)
		run_index(index, 0, true, false);
	CHECK(!model.timers && !model.due, "%u timers are left, %u of them due", model.timers,
	      model.due);
	walk(&model);
}

static void explain(const void *unused)
{
	(void)unused;
	printf("# CPU %u, time %llu, %u timers, %u of them due\n", shim_cpu, rig_now, model.timers,
	       model.due);
}

/* All operations on one file */
static void run_file(u64 *keys)
{
	const struct rig_setup setup = {
		.bases = config->bases, .slots = SLOTS, .tick = TICK,
		.capacity = config->capacity, .generation_bits = config->bits ? config->bits : 12,
		.ring = config->ring, .offset = config->offset, .table = config->bits,
	};
	unsigned int i;
	u32 longest;

	rig_now = 1ULL << 50;
	closed = false;
	file = rig_make(&setup);
	pick_keys(keys);
	model_init(&model, file, keys, config->keys, config->offset, config->alike);
	monitors_init(file, &source, config->monitors, config->refuse);
	rig_refuse = config->refuse ? refuse : NULL;
	rig_allow = config->refuse ? allow : NULL;
	for (i = 0; i < config->ops; i++) {
		run_one();
		if (once_in(3))
			run_monitor();
		if (once_in(config->walk)) {
			longest = walk(&model);
			stats->longest = max_t(u64, stats->longest, longest);
		}
	}
	rig_refuse = NULL;
	rig_allow = NULL;
	finish();
	monitors_end();
	model_free(&model);
	rig_free(file);
}

void driver_run(const struct config *c, u64 seed, struct driver_stats *s)
{
	u64 *keys = calloc(c->keys, sizeof(*keys));
	unsigned int i;

	CHECK(keys, "no memory");
	config = c;
	stats = s;
	source = (struct source){ .state = seed };
	fail_context(explain, NULL);
	for (i = 0; i < c->files; i++)
		run_file(keys);
	free(keys);
}
