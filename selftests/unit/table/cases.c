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
static void begin(u32 ring)
{
	const struct rig_setup setup = {
		.bases = 2, .slots = 256, .tick = TICK, .capacity = 1000, .generation_bits = 12,
		.ring = ring, .resident = true,
	};

	rig_now = NOW;
	shim_cpu = 0;
	file = rig_make(&setup);
}

static void end(void)
{
	rig_free(file);
}

/* --- Calls -------------------------------------------------------------------------------- */

static struct timerwheel_add add(u64 key, u64 deadline)
{
	struct timerwheel_add arg = { .key = key, .deadline = deadline, .flags = TIMERWHEEL_ABS };
	struct tw_ctx ctx;
	int done;

	do {
		tw_cpu_begin(&ctx, file, 0);
		done = tw_ops_add(&ctx, &arg, 1);
		tw_cpu_end(&ctx);
	} while (!done && !tw_table_grow(file));
	CHECK(arg.result == TIMERWHEEL_WAS_NONE, "ADD returned %d", arg.result);
	return arg;
}

static void remove_key(u64 key)
{
	struct timerwheel_remove arg = { .key = key };
	struct tw_ctx ctx;

	tw_cpu_begin(&ctx, file, 0);
	tw_ops_remove(&ctx, &arg, 1);
	tw_cpu_end(&ctx);
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
	struct tw_ctx ctx;
	int result;

	tw_cpu_begin(&ctx, file, 0);
	result = tw_drain_index(&ctx, index, entry, sizeof(*entry));
	tw_cpu_end(&ctx);
	return result;
}

static int get(u32 index, struct timerwheel_entry *entry)
{
	struct tw_ctx ctx;
	int result;

	tw_cpu_begin(&ctx, file, 0);
	result = tw_get_index(&ctx, index, entry);
	tw_cpu_end(&ctx);
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
	return old ^ TIMERWHEEL_RESIDENT_ARMED;
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
	u64 own = drained.generation | TIMERWHEEL_RESIDENT_FIRED;

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
		*drained.entry = DEADLINE | arg.generation | TIMERWHEEL_RESIDENT_ARMED;
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
