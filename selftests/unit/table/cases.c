// SPDX-License-Identifier: GPL-2.0
#include "cases.h"

#include "cpu.h"
#include "deadlines.h"
#include "events.h"
#include "fail.h"
#include "flow.h"
#include "ops.h"
#include "resident.h"
#include "rig.h"
#include "ring.h"
#include "run.h"
#include "table.h"

#define TICK		BIT_ULL(20)
#define NOW		(1000 * TICK)
#define DEADLINE	(NOW + 100 * TICK)

static struct tw_file *file;

/* @ring: its length; 0: there is none */
static void begin_with(u32 ring, u32 capacity, bool resident)
{
	const struct rig_setup setup = {
		.bases = RIG_BASES, .slots = 256, .tick = TICK, .capacity = capacity,
		.generation_bits = 12, .ring = ring, .resident = resident,
	};

	rig_now = NOW;
	shim_cpu = 0;
	file = rig_make(&setup);
}

static void begin(u32 ring)
{
	begin_with(ring, 1000, true);
}

static void end(void)
{
	rig_free(file);
}

/* --- Calls -------------------------------------------------------------------------------- */

static struct timerwheel_add add(u64 key, u64 deadline)
{
	struct timerwheel_add arg = { .key = key, .deadline = deadline, .flags = TIMERWHEEL_ABS };
	u32 other = TW_NO_CPU;
	struct tw_ctx ctx;
	int done;

	do {
		tw_cpu_begin_with(&ctx, file, 0, other);
		done = tw_ops_add(&ctx, &arg, 1);
		tw_cpu_end(&ctx);
		other = ctx.wants;
	} while (!done && (other != TW_NO_CPU || !tw_table_grow(file)));
	CHECK(arg.result == TIMERWHEEL_WAS_NONE, "ADD returned %d", arg.result);
	return arg;
}

static void remove_key(u64 key)
{
	struct timerwheel_remove arg = { .key = key };
	u32 other = TW_NO_CPU;
	struct tw_ctx ctx;
	int done;

	do {
		tw_cpu_begin_with(&ctx, file, 0, other);
		done = tw_ops_remove(&ctx, &arg, 1);
		tw_cpu_end(&ctx);
		other = ctx.wants;
	} while (!done);
	CHECK(arg.result > 0, "REMOVE returned %d", arg.result);
}

static void read_one(void)
{
	struct timerwheel_event event;
	struct iov_iter to = { .ubuf = &event, .count = sizeof(event) };

	CHECK(tw_events_read(file, &to, true) == sizeof(event), "there is no event");
}

static int drain(u32 index, struct timerwheel_entry *entry)
{
	u32 other = TW_NO_CPU;
	struct tw_ctx ctx;
	int result;

	do {
		tw_cpu_begin_with(&ctx, file, 0, other);
		result = tw_drain_index(&ctx, index, entry);
		tw_cpu_end(&ctx);
		other = ctx.wants;
	} while (result == -EAGAIN);
	return result;
}

static int get(u32 index, struct timerwheel_entry *entry)
{
	u32 other = TW_NO_CPU;
	struct tw_ctx ctx;
	int result;

	do {
		tw_cpu_begin_with(&ctx, file, 0, other);
		result = tw_get_index(&ctx, index, entry);
		tw_cpu_end(&ctx);
		other = ctx.wants;
	} while (result == -EAGAIN);
	return result;
}

/* --- DRAIN of a timer whose entry changes -------------------------------------------------- */

/* What a program writes before each compare-and-swap, and what was written last */
static struct {
	u64 *entry;
	u64 (*write)(u64 old);
	unsigned int swaps;
	u64 last;
	u32 generation;
	unsigned int copies;
	unsigned int fault;		/* the number of the copy that faults; 0: none */
} drained;

static void strike(u64 *entry)
{
	if (entry != drained.entry)
		return;
	drained.swaps++;
	drained.last = drained.write(*entry);
	*entry = drained.last;
}

static u64 flip(u64 old)
{
	return old ^ TIMERWHEEL_TABLE_ARMED;
}

static u64 refresh(u64 old)
{
	return old + 10 * TICK;
}

static u64 garbage(u64 old)
{
	return old ^ 0x123456789abcdef0ULL;
}

/* The description is copied out: the first time the entry is the program's, then the kernel's. */
static bool copied(void)
{
	u64 own = drained.generation | TIMERWHEEL_TABLE_FIRED;

	drained.copies++;
	CHECK((*drained.entry == own) == (drained.copies == 2), "entry %llx in copy %u",
	      *drained.entry, drained.copies);
	return drained.copies == drained.fault;
}

/* @was, @deadline: what DRAIN must report */
static void drain_struck(u64 (*write)(u64 old), int was, u64 deadline, unsigned int fault)
{
	struct timerwheel_entry entry = {};
	struct timerwheel_add arg;
	struct tw_timer *t;
	int result;

	begin(0);
	arg = add(7, DEADLINE);
	t = tw_timer_at(&file->table.pool, arg.index);
	drained.entry = tw_deadline_entry(file->table.pool.deadlines, arg.index);
	drained.write = write;
	drained.swaps = 0;
	drained.generation = arg.generation;
	drained.copies = 0;
	drained.fault = fault;
	rig_hammer = strike;
	rig_fault = copied;
	result = drain(arg.index, &entry);
	rig_hammer = NULL;
	rig_fault = NULL;
	if (fault) {
		CHECK(result == -EFAULT, "DRAIN returned %d", result);
		CHECK(t->state == TW_PENDING, "state %u after a fault", t->state);
		/* in the first copy nothing was written yet */
		CHECK(fault == 1 || *drained.entry == drained.last,
		      "%llx became %llx after a fault", drained.last, *drained.entry);
		CHECK(fault > 1 || !drained.swaps, "a swap before the first copy");
		*drained.entry = DEADLINE | arg.generation | TIMERWHEEL_TABLE_ARMED;
		result = drain(arg.index, &entry);
		was = TIMERWHEEL_WAS_PENDING;
		/* a later deadline that was read stays */
		CHECK(entry.deadline == DEADLINE || entry.deadline == deadline, "deadline %llx",
		      entry.deadline);
	} else {
		CHECK(drained.swaps == 1 && drained.copies == 2, "%u swaps, %u copies",
		      drained.swaps, drained.copies);
		CHECK(entry.deadline == deadline, "deadline %llx", entry.deadline);
	}
	CHECK(result == was, "DRAIN returned %d", result);
	CHECK(entry.result == was && entry.key == 7, "key %llu, result %d", entry.key,
	      entry.result);
	CHECK(t->state == TW_FREE && !*drained.entry, "state %u, entry %llx", t->state,
	      *drained.entry);
	end();
}

void case_drain_changed(void)
{
	unsigned int fault;

	for (fault = 0; fault <= 2; fault++) {
		drain_struck(flip, TIMERWHEEL_WAS_PARKED, DEADLINE, fault);
		drain_struck(refresh, TIMERWHEEL_WAS_PENDING, DEADLINE + 10 * TICK, fault);
		drain_struck(garbage, TIMERWHEEL_WAS_PENDING, DEADLINE, fault);
	}
}

/* --- A new owner ----------------------------------------------------------------------------- */

/* Two keys in different buckets; the first one's bucket; the timer that both have, in turn */
static struct {
	u64 key[2];
	struct tw_bucket *bucket;
	struct tw_timer *t;
	u32 index;
	unsigned int reads;
	bool removed;
	bool parked;
} owner;

static struct tw_bucket *bucket_of(u64 key)
{
	struct tw_table *table = &file->table;
	u32 *chain = tw_table_chain(table, key, tw_table_buckets(table));

	return PTR_ALIGN_DOWN((struct tw_bucket *)chain, sizeof(struct tw_bucket));
}

/* CPU 1 removes the timer with the first key before the lookup locks that key's bucket. */
static void first_gone(void)
{
	if (owner.removed)
		return;
	owner.removed = true;
	shim_cpu = 1;
	remove_key(owner.key[0]);
	shim_cpu = 0;
}

/*
 * The lookup reads key or state for the second time since it has locked the bucket of the first
 * key. CPU 1 has added the second key by now, which got the same timer, and delivered its event.
 */
static void second_comes(const void *place)
{
	struct timerwheel_add arg;

	if (place != &owner.t->key && place != &owner.t->state)
		return;
	if (owner.parked || !owner.bucket->lock || owner.t->state != TW_FREE)
		return;
	if (!owner.reads++)
		return;
	owner.parked = true;
	shim_cpu = 1;
	arg = add(owner.key[1], NOW);
	read_one();
	shim_cpu = 0;
	CHECK(arg.index == owner.index, "index %u, not %u", arg.index, owner.index);
	CHECK(owner.t->state == TW_PARKED, "state %u", owner.t->state);
}

static void look(int (*call)(u32 index, struct timerwheel_entry *entry), bool stays)
{
	struct timerwheel_entry entry = {};
	struct timerwheel_add arg;
	u64 key;
	int result;

	begin(0);
	for (key = 1; file->table.buckets < 8; key++)
		add(key, DEADLINE);
	owner.key[0] = key;
	shim_cpu = 1;
	arg = add(key, DEADLINE);
	shim_cpu = 0;
	owner.bucket = bucket_of(key);
	while (bucket_of(++key) == owner.bucket)
		;
	owner.key[1] = key;
	owner.index = arg.index;
	owner.t = tw_timer_at(&file->table.pool, arg.index);
	owner.reads = 0;
	owner.removed = false;
	owner.parked = false;
	rig_gap = first_gone;
	rig_read = second_comes;
	result = call(owner.index, &entry);
	rig_read = NULL;
	rig_gap = NULL;
	CHECK(owner.parked, "there was no second read");
	CHECK(result == TIMERWHEEL_WAS_PARKED && entry.key == owner.key[1],
	      "result %d, key %llu", result, entry.key);
	CHECK(!owner.bucket->lock && !bucket_of(key)->lock, "a bucket stays locked");
	if (stays)
		remove_key(owner.key[1]);
	CHECK(owner.t->state == TW_FREE, "state %u", owner.t->state);
	end();
}

void case_new_owner(void)
{
	look(get, true);
	look(drain, false);
}

/* --- A clock that is set while the ring is full -------------------------------------------- */

static unsigned int heads;

/* The reader takes all events after the module has found that the ring is full. */
static void make_room(const void *place)
{
	struct tw_ring *ring = &file->ring;

	if (place == &ring->shared->head)
		heads++;
	else if (heads)
		ring->shared->head = ring->tail;
}

void case_clock_set_first(void)
{
	struct tw_ring *ring;
	u64 key;

	begin(2);
	ring = &file->ring;
	for (key = 1; key <= 4; key++)
		add(key, NOW);
	rig_expire(file);
	CHECK(ring->tail == 2 && file->events.due.count == 2, "tail %u, %u due", ring->tail,
	      file->events.due.count);
	file->events.clock_sets = 1;
	heads = 0;
	rig_read = make_room;
	CHECK(!tw_flow_ioctl(file), "an event overtakes that of the clock");
	rig_read = NULL;
	CHECK(heads, "nobody has looked for room");
	ring->shared->head = ring->tail;
	CHECK(tw_flow_ioctl(file) == 2, "not as many events as there is room for");
	CHECK(ring->event[0].flags == TIMERWHEEL_EVENT_CLOCK_SET && ring->event[1].key == 3,
	      "flags %x, key %llu", ring->event[0].flags, ring->event[1].key);
	end();
}

/* --- Memory that can be faulted in, but not written ---------------------------------------- */

static unsigned int writes;

static bool never(void)
{
	CHECK(++writes < 10, "read() does not end");
	return true;
}

/* @clock_set: the event of a clock that was set waits, too */
static void read_unwritable(bool clock_set)
{
	struct timerwheel_event event = { .key = 9 };
	struct iov_iter to = { .ubuf = &event, .count = sizeof(event) };
	ssize_t n;

	begin(0);
	add(7, NOW);
	rig_expire(file);
	file->events.clock_sets = clock_set;
	writes = 0;
	rig_fault = never;
	rig_unwritable = true;
	n = tw_events_read(file, &to, false);
	rig_unwritable = false;
	rig_fault = NULL;
	CHECK(n == -EFAULT && event.key == 9, "read returned %zd, key %llu", n, event.key);
	/* no event is lost */
	if (clock_set)
		read_one();
	read_one();
	end();
}

void case_unwritable(void)
{
	read_unwritable(false);
	read_unwritable(true);
}

/* --- Timers in the bases of other CPUs ---------------------------------------------------- */

#define MANY	TW_OPS_MAX

static u32 handle[MANY][2];

/* Reads without a lock; reads of a call that handles MANY timers one by one */
static unsigned int reads;
#define READS	(60 * MANY)

static void count_read(const void *place)
{
	(void)place;
	reads++;
}

/* Keys 1 to MANY, of CPUs 1 and 2 by turns, or of CPU 0 (@own) */
static void add_elsewhere(bool own)
{
	struct timerwheel_add arg;
	unsigned int i;

	begin_with(0, 1000, false);
	for (i = 0; i < MANY; i++) {
		shim_cpu = own ? 0 : 1 + i % 2;
		arg = add(1 + i, DEADLINE);
		handle[i][0] = arg.index;
		handle[i][1] = arg.generation;
	}
	shim_cpu = 0;
	rig_two = 0;
	reads = 0;
	rig_read = count_read;
}

/* @least: batches with two bases, unless the timers are in CPU 0's */
static void check_elsewhere(const char *what, long done, unsigned int least)
{
	rig_read = NULL;
	CHECK(done == MANY, "%s of %u timers returned %ld", what, MANY, done);
	CHECK(reads < READS, "%s of %u timers: %u reads", what, MANY, reads);
	CHECK(least ? rig_two >= least : !rig_two, "%s: %u batches with two bases", what, rig_two);
}

/* Each call on MANY timers: shim_lock() checks what its batches wait for. */
static void call_elsewhere(bool own)
{
	struct timerwheel_move_handle moved_handle[MANY] = {};
	struct timerwheel_remove_handle removed_handle[MANY] = {};
	struct timerwheel_remove removed[MANY] = {};
	struct timerwheel_entry entry[MANY] = {};
	struct timerwheel_move moved[MANY] = {};
	struct timerwheel_add added[MANY] = {};
	struct timerwheel_batch batch = { .count = MANY };
	unsigned int each = own ? 0 : MANY, i;

	for (i = 0; i < MANY; i++) {
		added[i].key = 1 + i;
		moved[i].key = 1 + i;
		removed[i].key = 1 + i;
		entry[i].key = 1 + i;
	}
	add_elsewhere(own);
	batch.elems = (unsigned long)added;
	check_elsewhere("ADD", tw_batch_add(file, &batch), each);
	end();
	add_elsewhere(own);
	batch.elems = (unsigned long)moved;
	check_elsewhere("MOVE", tw_batch_move(file, &batch), each);
	end();
	add_elsewhere(own);
	batch.elems = (unsigned long)entry;
	check_elsewhere("GET", tw_batch_get(file, &batch), each);
	end();
	add_elsewhere(own);
	batch.elems = (unsigned long)removed;
	check_elsewhere("REMOVE", tw_batch_remove(file, &batch), each);
	end();
	add_elsewhere(own);
	for (i = 0; i < MANY; i++) {
		moved_handle[i].index = handle[i][0];
		moved_handle[i].generation = handle[i][1];
	}
	batch.elems = (unsigned long)moved_handle;
	check_elsewhere("MOVE by handle", tw_batch_move_handle(file, &batch), each);
	end();
	add_elsewhere(own);
	for (i = 0; i < MANY; i++) {
		removed_handle[i].index = handle[i][0];
		removed_handle[i].generation = handle[i][1];
	}
	batch.elems = (unsigned long)removed_handle;
	check_elsewhere("REMOVE by handle", tw_batch_remove_handle(file, &batch), each);
	end();
	batch.elems = (unsigned long)entry;
	batch.elem_size = sizeof(entry[0]);
	add_elsewhere(own);
	/* the indices of a CPU are in a row */
	check_elsewhere("LIST", tw_scan_list(file, &batch), own ? 0 : 2);
	rig_two = 0;
	reads = 0;
	rig_read = count_read;
	check_elsewhere("DRAIN", tw_scan_drain(file, &batch), own ? 0 : 2);
	end();
	for (i = 0; i < MANY; i++)
		CHECK(added[i].result == TIMERWHEEL_WAS_PENDING &&
		      moved[i].result == TIMERWHEEL_WAS_PENDING &&
		      removed[i].result == TIMERWHEEL_WAS_PENDING &&
		      moved_handle[i].result == TIMERWHEEL_WAS_PENDING &&
		      removed_handle[i].result == TIMERWHEEL_WAS_PENDING,
		      "key %u: results %d, %d, %d, %d, %d", 1 + i, added[i].result,
		      moved[i].result, removed[i].result, moved_handle[i].result,
		      removed_handle[i].result);
}

void case_elsewhere(void)
{
	call_elsewhere(true);
	call_elsewhere(false);
}

/* CPU 1 moves the timer to its base, and CPU 2 back, whenever CPU 0 is about to look for it. */
static unsigned int hops;
static u32 hopper;

static bool hopped(void);

static void hop(void)
{
	/* earlier each time, so the timer cannot stay in its slot */
	struct timerwheel_move arg = { .key = 1, .deadline = 99 * TICK - hops };
	struct timerwheel_batch batch = { .elems = (unsigned long)&arg, .count = 1 };

	CHECK(++hops < 1000, "the call does not end");
	rig_gap = NULL;
	rig_resched = NULL;
	rig_killed = NULL;
	shim_cpu = tw_timer_at(&file->table.pool, hopper)->cpu == 1 ? 2 : 1;
	/* not while CPU 0 holds one of the two bases */
	if (!file->cpu[1]->lock.word && !file->cpu[2]->lock.word)
		tw_batch_move(file, &batch);
	shim_cpu = 0;
	rig_gap = hop;
	rig_resched = hop;
	rig_killed = hopped;
}

static bool hopped(void)
{
	return hops > 10;
}

/* A timer that other CPUs move all the time */
void case_hops(void)
{
	struct timerwheel_remove arg = { .key = 1 };
	struct timerwheel_batch batch = { .elems = (unsigned long)&arg, .count = 1 };
	long done;

	begin_with(0, 1000, false);
	shim_cpu = 1;
	hopper = add(1, DEADLINE).index;
	shim_cpu = 0;
	hops = 0;
	rig_gap = hop;
	rig_resched = hop;
	rig_killed = hopped;
	done = tw_batch_remove(file, &batch);
	rig_killed = NULL;
	rig_resched = NULL;
	rig_gap = NULL;
	CHECK(done == -EINTR, "REMOVE returned %ld after %u hops", done, hops);
	end();
}

/* --- A full wheel that others churn ---------------------------------------------------------- */

static unsigned int churns;
static bool armed;

/* CPU 1 takes the last free timer when CPU 0 needs it, and gives it back when CPU 0 asks for it. */
static void churn(void)
{
	bool needed = file->cpu[0]->lock.word;

	CHECK(++churns < 1000, "ADD does not end");
	shim_cpu = 1;
	if (needed && !armed)
		add(1, DEADLINE);
	else if (!needed && armed)
		remove_key(1);
	armed = needed;
	shim_cpu = 0;
}

static bool churned(void)
{
	return churns >= 10;
}

/* @before: elements that need no new timer */
static void add_while_churned(unsigned int before)
{
	struct timerwheel_add arg[2] = { { .key = before ? 2 : 1000 }, { .key = 1001 } };
	struct timerwheel_batch batch = { .elems = (unsigned long)arg, .count = 1 + before };
	u64 key;
	long done;

	begin_with(0, 100, false);
	shim_cpu = 1;
	for (key = 2; key <= 100; key++)
		add(key, DEADLINE);
	shim_cpu = 0;
	churns = 0;
	armed = false;
	rig_gap = churn;
	rig_killed = churned;
	done = tw_batch_add(file, &batch);
	rig_killed = NULL;
	rig_gap = NULL;
	CHECK(churned() && done == (before ? 1 : -EINTR), "ADD returned %ld after %u churns", done,
	      churns);
	end();
}

void case_churned(void)
{
	add_while_churned(0);
	add_while_churned(1);
}

/* --- A ring whose waiting timers are withdrawn ----------------------------------------------- */

static void withdraw(bool draining)
{
	struct timerwheel_remove arg[4] = {
		{ .key = 1 }, { .key = 2 }, { .key = 3 }, { .key = 4 },
	};
	struct timerwheel_entry entry[4];
	struct timerwheel_batch batch = {
		.elems = (unsigned long)entry, .count = 4, .elem_size = sizeof(entry[0]),
	};
	u64 key;

	begin_with(2, 1000, false);
	for (key = 1; key <= 4; key++)
		add(key, NOW + TICK);
	rig_now += 2 * TICK;
	rig_expire(file);
	CHECK(file->ring.tail == 2 && file->ring.shared->flags == TIMERWHEEL_RING_OVERFLOW,
	      "tail %u, flags %x", file->ring.tail, file->ring.shared->flags);
	if (draining) {
		CHECK(tw_scan_drain(file, &batch) == 2, "DRAIN did not find two timers");
	} else {
		batch.elems = (unsigned long)arg;
		batch.count = 1;
		for (; file->events.due.count == 2; batch.elems += sizeof(arg[0]))
			tw_batch_remove(file, &batch);
		CHECK(file->ring.shared->flags == TIMERWHEEL_RING_OVERFLOW, "flags %x",
		      file->ring.shared->flags);
		batch.elems = (unsigned long)arg;
		batch.count = 4;
		tw_batch_remove(file, &batch);
	}
	CHECK(!file->ring.shared->flags, "flags %x although no event waits",
	      file->ring.shared->flags);
	end();
}

void case_withdrawn(void)
{
	withdraw(false);
	withdraw(true);
}

/* --- Indices from user space ----------------------------------------------------------------- */

static unsigned long limited;

static void limit(unsigned long index, unsigned long size)
{
	limited = size;
	CHECK(index < size, "index %lu of %lu", index, size);
}

/* They are limited for speculation, too, and only after they were checked. */
void case_limited(void)
{
	struct timerwheel_entry entry;
	struct timerwheel_batch batch = {
		.elems = (unsigned long)&entry, .count = 1, .elem_size = sizeof(entry),
		.cursor = 2,
	};

	begin(2);
	add(1, DEADLINE);
	add(2, DEADLINE);
	rig_nospec = limit;
	limited = 0;
	CHECK(tw_scan_list(file, &batch) == 1 && entry.key == 2, "LIST has not found key 2");
	CHECK(limited == file->table.made + 1, "LIST limits its cursor to %lu", limited);
	batch.cursor = 1ULL << 40;
	CHECK(!tw_scan_list(file, &batch) && batch.cursor == 1ULL << 40, "cursor %llx",
	      batch.cursor);
	limited = 0;
	CHECK(tw_table_deadlines_page(file, 0) && !tw_table_deadlines_page(file, 100), "a page");
	CHECK(limited == file->table.dir[TW_DIR_DEADLINES].used, "the table is limited to %lu",
	      limited);
	limited = 0;
	CHECK(tw_ring_page(&file->ring, 0) && !tw_ring_page(&file->ring, 100), "a page");
	CHECK(limited == tw_ring_pages(&file->ring), "the ring is limited to %lu", limited);
	rig_nospec = NULL;
	end();
}
