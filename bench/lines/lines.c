// SPDX-License-Identifier: GPL-2.0
/*
 * The cost of operations with very many timers in random order: the module's table, operations,
 * wheel, events and ring, built in user space for valgrind, which counts instructions and cache
 * lines. See run and README.md.
 *
 * lines [--time] [--until PHASE] TIMERS
 * lines --phases
 *
 * Prints a line for each phase: its name, the number of operations, and nanoseconds (--time) or 0.
 */
#include <stdio.h>
#include <time.h>

#include "cpu.h"
#include "file.h"
#include "internal.h"
#include "ring.h"
#include "run.h"
#include "table.h"

#define HOUR	3600000000000ULL
#define MSEC	1000000ULL
#define SLOTS	LINES_SLOTS
#define BATCH	32U		/* operations in a batch; batch.c has 24 to 48, by size */
#define EXPIRY	64U		/* timers in an expiry batch; cpu.c has 128, or 96 with a ring */
#define EVENTS	1024U		/* events in a reader's buffer */
#define RING	4096U		/* events in the ring */

/* Length of a slot of level 2, in ns */
#define UPPER	(MSEC * SLOTS * SLOTS)

static struct tw_file *file;
static struct tw_cpu *cpu;
static u64 timers;
static u32 *order;
static struct { u32 index, generation; } *handle;

/* --- Counted functions ---------------------------------------------------------------- */

/*
 * valgrind counts inside functions whose names begin with measured_. It clears the counts when
 * count_from_here() is called, and dumps them when count_to_here() is.
 */

enum kind {
	ADD, MOVE, REMOVE, GET, MOVE_HANDLE, REMOVE_HANDLE, CASCADE, EXPIRE, READ, EXPIRE_READ,
	EXPIRE_RING
};

/* A batch, as in batch.c */
noinline void measured_batch(enum kind kind, void *elems)
{
	struct tw_ctx ctx;
	int done = 0;

	tw_cpu_begin(&ctx, file, 0);
	switch (kind) {
	case ADD:
		done = tw_ops_add(&ctx, elems, BATCH);
		break;
	case MOVE:
		done = tw_ops_move(&ctx, elems, BATCH);
		break;
	case REMOVE:
		done = tw_ops_remove(&ctx, elems, BATCH);
		break;
	case GET:
		done = tw_ops_get(&ctx, elems, BATCH);
		break;
	case MOVE_HANDLE:
		ctx.flags = 0;
		done = tw_ops_move_handle(&ctx, elems, BATCH);
		break;
	case REMOVE_HANDLE:
		done = tw_ops_remove_handle(&ctx, elems, BATCH);
		break;
	default:
		break;
	}
	tw_cpu_end(&ctx);
	if (done < (int)BATCH)
		abort();
}

/* Expiry batches until there is no more work, as in cpu.c and engine.c */
noinline void measured_expiry(void)
{
	struct tw_ctx ctx = { .file = file, .cpu = cpu, .now = lines_now };
	struct tw_wheel *w = &cpu->wheel;
	struct tw_due_list due;
	bool more;

	do {
		raw_spin_lock(&cpu->lock);
		due = (struct tw_due_list){};
		more = tw_wheel_collect(w, div64_u64(lines_now, w->tick), lines_now, EXPIRY, false,
					false, &due);
		if (due.count)
			tw_flow_expire(&ctx, &due);
		raw_spin_unlock(&cpu->lock);
	} while (more);
	if (ctx.wake_readers)
		tw_events_wake(file);
}

/* A call of read(). Returns the number of events. */
noinline u64 measured_read(void)
{
	static struct timerwheel_event event[EVENTS];
	struct iov_iter to = { .ubuf = event, .count = sizeof(event) };

	return tw_events_read(file, &to, false) / sizeof(event[0]);
}

/* TIMERWHEEL_IOC_FLOW */
noinline void measured_flow(void)
{
	tw_flow_ioctl(file);
}

noinline void count_from_here(void)
{
	__asm__ volatile("");
}

noinline void count_to_here(void)
{
	__asm__ volatile("");
}

/* With --time these are timed. */
static bool timing;
static u64 spent;

static u64 clock_ns(void)
{
	struct timespec t;

	if (!timing)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static void do_batch(enum kind kind, void *elems)
{
	u64 began = clock_ns();

	measured_batch(kind, elems);
	spent += clock_ns() - began;
}

static void do_expiry(void)
{
	u64 began = clock_ns();

	measured_expiry();
	spent += clock_ns() - began;
}

static u64 do_read(void)
{
	u64 began = clock_ns(), n;

	n = measured_read();
	spent += clock_ns() - began;
	return n;
}

static void do_flow(void)
{
	u64 began = clock_ns();

	measured_flow();
	spent += clock_ns() - began;
}

/* --- Workload ------------------------------------------------------------------------- */

/**
 * struct phase - many operations of the same kind
 * @name: its name; NULL: it prepares the next phase and is not counted
 * @kind: the operation
 * @all: on all timers; otherwise on a quarter of them
 * @again: on the same timers and in the same order as the previous phase; otherwise in a new order
 * @from: ADD, MOVE: time from now to the earliest deadline
 * @range: ADD, MOVE: time from the earliest to the latest deadline
 */
struct phase {
	const char *name;
	enum kind kind;
	bool all;
	bool again;
	u64 from;
	u64 range;
};

static const struct phase phases[] = {
	{ "add",		ADD, .all = true, .from = HOUR, .range = HOUR },
	{ "get",		GET },
	{ "move-later",		MOVE, .from = 3 * HOUR, .range = HOUR },
	{ "move-earlier",	MOVE, .from = HOUR / 2, .range = HOUR / 2 },
	{ "remove",		REMOVE },
	{ "add-again",		ADD, .again = true, .from = HOUR, .range = HOUR },
	{ "handle-later",	MOVE_HANDLE, .from = 3 * HOUR, .range = HOUR },
	{ "handle-earlier",	MOVE_HANDLE, .from = HOUR / 2, .range = HOUR / 2 },
	{ "handle-remove",	REMOVE_HANDLE },
	{ NULL,			ADD, .again = true, .from = HOUR, .range = HOUR },
	{ "add-replace",	ADD, .from = HOUR / 2, .range = HOUR / 2 },
	/* all into one slot of level 2; time has not advanced so far, so no timer is due */
	{ NULL,			MOVE, .all = true, .from = 3 * UPPER, .range = UPPER - MSEC },
	{ "cascade",		CASCADE, .all = true },
	/* all into one second */
	{ "move-near",		MOVE, .all = true, .from = 100 * MSEC, .range = 1000 * MSEC },
	{ "expire+read",	EXPIRE_READ, .all = true },
	{ NULL,			ADD, .all = true, .from = 100 * MSEC, .range = 1000 * MSEC },
	{ "expire+ring",	EXPIRE_RING, .all = true },
	{ NULL,			ADD, .all = true, .from = 100 * MSEC, .range = 1000 * MSEC },
	{ "expire",		EXPIRE, .all = true },
	{ "read",		READ, .all = true },
};

static u64 rnd(void)
{
	static u64 seed = 1;
	u64 z = (seed += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static u64 key_of(u64 i)
{
	return (i + 1) * 0x9e3779b97f4a7c15ULL;
}

static void shuffle(void)
{
	u64 i, j;
	u32 t;

	for (i = timers - 1; i; i--) {
		j = rnd() % (i + 1);
		t = order[i];
		order[i] = order[j];
		order[j] = t;
	}
}

static void operate(const struct phase *p, u64 n)
{
	static union {
		struct timerwheel_add add[BATCH];
		struct timerwheel_move move[BATCH];
		struct timerwheel_remove remove[BATCH];
		struct timerwheel_move_handle move_handle[BATCH];
		struct timerwheel_remove_handle remove_handle[BATCH];
		struct timerwheel_entry entry[BATCH];
	} elems;
	u64 done, i, key, delay;

	for (done = 0; done < n; done += BATCH) {
		memset(&elems, 0, sizeof(elems));
		for (i = 0; i < BATCH; i++) {
			key = key_of(order[done + i]);
			delay = p->from + (p->range ? rnd() % p->range : 0);
			if (p->kind == ADD) {
				elems.add[i].key = key;
				elems.add[i].deadline = delay;
			} else if (p->kind == MOVE) {
				elems.move[i].key = key;
				elems.move[i].deadline = delay;
			} else if (p->kind == REMOVE) {
				elems.remove[i].key = key;
			} else if (p->kind == MOVE_HANDLE) {
				elems.move_handle[i].deadline = delay;
				elems.move_handle[i].index = handle[order[done + i]].index;
				elems.move_handle[i].generation =
					handle[order[done + i]].generation;
			} else if (p->kind == REMOVE_HANDLE) {
				elems.remove_handle[i].index = handle[order[done + i]].index;
				elems.remove_handle[i].generation =
					handle[order[done + i]].generation;
			} else {
				elems.entry[i].key = key;
			}
		}
		/* growth is not counted, because its cost occurs once */
		while (p->kind == ADD && cpu->nr_free < BATCH && !file->table.full)
			if (tw_table_grow(file))
				abort();
		do_batch(p->kind, &elems);
		for (i = 0; p->kind == ADD && i < BATCH; i++) {
			handle[order[done + i]].index = elems.add[i].index;
			handle[order[done + i]].generation = elems.add[i].generation;
		}
	}
}

/* All timers are in one slot of level 2: advance the time to where it may be opened. */
static void cascade(void)
{
	u64 before = cpu->wheel.cascades;

	lines_now += 2 * UPPER;
	do_expiry();
	if (cpu->wheel.cascades - before != timers)
		abort();
}

/* Advance the time tick by tick. Due timers are read, taken from the ring, or left. */
static void expire(enum kind how)
{
	struct timerwheel_ring *shared = file->ring.shared;

	file->ring.events = how == EXPIRE_RING ? RING : 0;
	while (cpu->wheel.pending || (how != EXPIRE && file->events.due.count)) {
		lines_now += MSEC;
		do_expiry();
		while (how == EXPIRE_READ && file->events.due.count)
			do_read();
		if (how == EXPIRE_RING)
			shared->head = shared->tail;
		while (how == EXPIRE_RING && file->events.due.count) {
			do_flow();
			shared->head = shared->tail;
		}
	}
	file->ring.events = 0;
}

static void do_phase(const struct phase *p)
{
	u64 n = p->all ? timers : timers / 4 / BATCH * BATCH, got;

	if (!p->again)
		shuffle();
	spent = 0;
	count_from_here();
	switch (p->kind) {
	case CASCADE:
		cascade();
		break;
	case EXPIRE:
	case EXPIRE_READ:
	case EXPIRE_RING:
		expire(p->kind);
		break;
	case READ:
		for (got = 0; got < n; )
			got += do_read();
		break;
	default:
		operate(p, n);
		break;
	}
	if (!p->name)
		return;
	count_to_here();
	printf("%s %llu %llu\n", p->name, n, spent);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *until = "";
	u64 i;

	for (i = 0; argc > 1 && !strcmp(argv[1], "--phases") && i < ARRAY_SIZE(phases); i++)
		if (phases[i].name)
			puts(phases[i].name);
	if (i)
		return 0;
	if (argc > 1 && !strcmp(argv[1], "--time")) {
		timing = true;
		argv++;
		argc--;
	}
	if (argc > 2 && !strcmp(argv[1], "--until")) {
		until = argv[2];
		argv += 2;
		argc -= 2;
	}
	timers = argc == 2 ? strtoull(argv[1], NULL, 10) / BATCH * BATCH : 0;
	if (timers < 4 * BATCH || timers > TW_CAPACITY_MAX / 2) {
		fprintf(stderr, "usage: lines --phases | [--time] [--until PHASE] TIMERS\n");
		return 2;
	}
	order = malloc(timers * sizeof(*order));
	handle = malloc(timers * sizeof(*handle));
	if (!order || !handle)
		abort();
	for (i = 0; i < timers; i++)
		order[i] = i;
	file = lines_file(50000 * UPPER, RING, false, false);
	cpu = file->cpu[0];
	for (i = 0; i < ARRAY_SIZE(phases); i++) {
		do_phase(&phases[i]);
		if (phases[i].name && !strcmp(phases[i].name, until))
			break;
	}
	return 0;
}
