// SPDX-License-Identifier: GPL-2.0
/*
 * faults: user memory that cannot be accessed. The argument or array of a call crosses into an
 * inaccessible page at each of its bytes in turn, or the memory becomes inaccessible while the call
 * runs. The call must do exactly what it reported: after each call the test compares the wheel with
 * a model (tw_model.h), in which no timer or event is lost or reported twice.
 *
 * The memory is mapped twice: calls get a view whose protection changes, and the test fills and
 * reads the memory through a view that is always accessible.
 */
#include "tw_model.h"
#include <pthread.h>
#include <stdatomic.h>

#define LIMIT	600		/* for one test, in s: emulation is slow */

struct window {
	char *all;		/* always accessible, for the test */
	char *view;		/* the same memory, for the calls */
	size_t page;
	size_t size;
	int fd;
};

static void window_make(struct window *w, size_t pages)
{
	w->page = getpagesize();
	w->size = pages * w->page;
	w->fd = memfd_create("faults", MFD_CLOEXEC);
	if (w->fd < 0 || ftruncate(w->fd, w->size))
		abort();
	w->all = mmap(NULL, w->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, w->fd, 0);
	w->view = mmap(NULL, w->size, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
	if (w->all == MAP_FAILED || w->view == MAP_FAILED)
		abort();
}

/* Assert that @why, the description of an error, is NULL. */
#define FINE(why) do {								\
	const char *wrong = (why);						\
										\
	ASSERT_TRUE(!wrong) {							\
		TH_LOG("%s", wrong);						\
	}									\
} while (0)

/* --- The calls -------------------------------------------------------------------- */

/* A call on an array, or read */
struct op {
	const char *name;
	unsigned long cmd;		/* 0: read() */
	__u32 size;			/* of an element */
	__u32 out;			/* offset of the outputs, the rest of the element */
	__u32 n;			/* number of elements: more than a chunk has */
};

static const struct op add_op = { "ADD", TIMERWHEEL_IOC_ADD, 64, 48, 26 };
static const struct op move_op = { "MOVE", TIMERWHEEL_IOC_MOVE, 32, 24, 50 };
static const struct op remove_op = { "REMOVE", TIMERWHEEL_IOC_REMOVE, 40, 16, 40 };
static const struct op get_op = { "GET", TIMERWHEEL_IOC_GET, 64, 0, 26 };
static const struct op list_op = { "LIST", TIMERWHEEL_IOC_LIST, 64, 0, 20 };
static const struct op drain_op = { "DRAIN", TIMERWHEEL_IOC_DRAIN, 64, 0, 20 };
static const struct op read_op = { "read", 0, 48, 0, 20 };

/* Do the elements name timers by their keys? */
static bool op_asks(const struct op *op)
{
	return op->cmd && op->cmd != TIMERWHEEL_IOC_LIST && op->cmd != TIMERWHEEL_IOC_DRAIN;
}

/* Arm the missing timers of 0 to @n - 1. For read they are due, otherwise pending. */
static const char *restock(const struct op *op, struct model *m, __u32 n, __u64 round)
{
	__u32 from, to;
	const char *why;

	for (from = 0; from < n; from = to) {
		for (to = from; to < n && !m->timer[to].state; to++)
			;
		why = to > from ? model_fill(m, from, to, round, op->cmd ? HOUR : 1, 0) : NULL;
		if (why)
			return why;
		while (to < n && m->timer[to].state)
			to++;
	}
	return NULL;
}

/* Write the elements. @round makes deadlines and values unique to the call. */
static void fill(const struct op *op, char *elems, __u32 n, __u64 round)
{
	struct timerwheel_entry ent;
	__u32 i;

	tw_poison(elems, (size_t)n * op->size);
	if (!op_asks(op))
		return;
	for (i = 0; i < n; i++, elems += op->size) {
		struct timerwheel_add add = {
			.key = i, .value = round, .deadline = HOUR + round,
			.flags = TIMERWHEEL_ABS,
		};
		struct timerwheel_move move = {
			.key = i, .deadline = HOUR + round, .flags = TIMERWHEEL_ABS,
		};
		struct timerwheel_remove rem = { .key = i };

		tw_poison(&add.result, 4);
		tw_poison(&add.index, 4);
		tw_poison(&move.result, 4);
		tw_poison(&rem.value, 16);
		tw_poison(&rem.result, 4);
		tw_poison(&ent, sizeof(ent));
		ent.key = i;
		ent.flags = 0;
		memcpy(elems, op == &add_op ? (void *)&add : op == &move_op ? (void *)&move :
		       op == &remove_op ? (void *)&rem : (void *)&ent, op->size);
	}
}

/* Returns the number of elements processed, or -errno. @cursor is for LIST. */
static int call(const struct op *op, int fd, char *elems, __u32 n, __u64 *cursor)
{
	int ret;

	if (op->cmd)
		return tw_batch(fd, op->cmd, 0, elems, op->size, n,
				op == &list_op ? cursor : NULL);
	ret = tw_err(read(fd, elems, (size_t)n * op->size));
	if (ret == -EAGAIN)
		return 0;
	return ret < 0 ? ret : ret % op->size ? -EPROTO : ret / (int)op->size;
}

/*
 * An element was processed: do the same in the model, and compare. If @untold, its outputs may not
 * have been copied out, because the memory became inaccessible.
 */
static const char *done(const struct op *op, struct model *m, const char *elem, bool untold)
{
	struct timerwheel_remove rem;
	struct timerwheel_entry ent;
	struct timerwheel_event ev;
	struct timerwheel_move move;
	struct timerwheel_add add;
	bool fine;

	if (op == &add_op) {
		memcpy(&add, elem, sizeof(add));
		if (untold && tw_poisoned(&add.result, 4))
			add.result = m->timer[add.key].state;
		fine = model_added(m, &add);
	} else if (op == &move_op) {
		memcpy(&move, elem, sizeof(move));
		if (untold && tw_poisoned(&move.result, 4))
			move.result = m->timer[move.key].state;
		fine = model_moved(m, &move);
	} else if (op == &remove_op) {
		memcpy(&rem, elem, sizeof(rem));
		if (untold && tw_poisoned(&rem.result, 4)) {
			rem.result = m->timer[rem.key].state;
			rem.value = m->timer[rem.key].value;
		}
		fine = model_removed(m, &rem);
	} else if (op == &drain_op) {
		memcpy(&ent, elem, sizeof(ent));
		fine = model_drained(m, &ent);
	} else if (op->cmd) {
		memcpy(&ent, elem, sizeof(ent));
		if (untold && tw_poisoned(&ent.result, 4))
			return NULL;
		fine = model_entry(m, &ent) &&
		       (op == &get_op || model_same(m, "times listed", ent.key,
						    ++m->seen[ent.key], 1));
	} else {
		memcpy(&ev, elem, sizeof(ev));
		fine = model_read(m, &ev);
	}
	return fine ? NULL : m->why;
}

/* Continue LIST from the cursor: each timer that was not listed is listed once. */
static const char *list_rest(struct model *m, __u64 *cursor)
{
	struct timerwheel_entry ent[7];
	const char *why = NULL;
	int i, n;

	while (!why && (n = tw_list(m->fd, cursor, ent, 7)) > 0)
		for (i = 0; i < n && !why; i++)
			why = done(&list_op, m, (char *)&ent[i], false);
	if (!why && !model_same(m, "one not listed", 0, !memchr(m->seen, 0, m->count), true))
		why = m->why;
	return why;
}

enum { LOST = 2048 };		/* elements of a call that takes long */

/* --- Every byte ------------------------------------------------------------------- */

FIXTURE(faults) {
	struct window w;
	struct model m;
};

FIXTURE_SETUP(faults)
{
	int fd = tw_open_manual(1);

	ASSERT_LE(0, fd);
	model_init(&self->m, fd, true, LOST);
	ASSERT_EQ(0, tw_advance(fd, 0, 1000));
	model_advanced(&self->m, 1000);
	window_make(&self->w, LOST * 64 / getpagesize());
}

FIXTURE_TEARDOWN(faults)
{
	model_free(&self->m);
}

FIXTURE_VARIANT(faults) {
	const struct op *op;
};

FIXTURE_VARIANT_ADD(faults, add) { &add_op };
FIXTURE_VARIANT_ADD(faults, move) { &move_op };
FIXTURE_VARIANT_ADD(faults, remove) { &remove_op };
FIXTURE_VARIANT_ADD(faults, get) { &get_op };
FIXTURE_VARIANT_ADD(faults, list) { &list_op };
FIXTURE_VARIANT_ADD(faults, drain) { &drain_op };
FIXTURE_VARIANT_ADD(faults, read) { &read_op };

/*
 * One call on an array that begins at @at in the window and is partly inaccessible: @want elements
 * are processed. 0: the call fails with EFAULT.
 */
static void array_at(struct __test_metadata *_metadata, const struct op *op, struct window *w,
		     struct model *m, size_t at, __u32 want, __u64 round)
{
	char before[64 * 64];
	char *elems = w->all + at;
	__u64 cursor = 0;
	__u32 i;
	int ret;

	FINE(restock(op, m, op->n, round));
	fill(op, elems, op->n, round);
	memcpy(before, elems, op->n * op->size);
	memset(m->seen, 0, m->n);
	ret = call(op, m->fd, w->view + at, op->n, &cursor);
	ASSERT_EQ(want ? (int)want : -EFAULT, ret)
		TH_LOG("array %zu bytes before the end of the page", w->page - at);
	for (i = 0; i < want; i++)
		FINE(done(op, m, elems + i * op->size, false));
	if (op_asks(op))
		ASSERT_EQ(0, memcmp(before + want * op->size, elems + want * op->size,
				    (op->n - want) * op->size));
	if (op == &list_op)
		FINE(list_rest(m, &cursor));
	FINE(model_differs(m));
}

/* The end of the array is inaccessible: the elements before it are processed. */
static void array_ends(struct __test_metadata *_metadata, const struct op *op,
		       struct window *w, struct model *m, int prot)
{
	size_t bytes = op->n * op->size, room;

	m->n = op->n;
	ASSERT_EQ(0, mprotect(w->view + w->page, w->page, prot));
	for (room = 0; room < bytes; room++)
		array_at(_metadata, op, w, m, w->page - room, room / op->size, room);
}

TEST_F_TIMEOUT(faults, end_missing, LIMIT)
{
	array_ends(_metadata, variant->op, &self->w, &self->m, PROT_NONE);
}

TEST_F_TIMEOUT(faults, end_readonly, LIMIT)
{
	array_ends(_metadata, variant->op, &self->w, &self->m, PROT_READ);
}

/*
 * The beginning of the array is inaccessible: no element is done. If it is read-only, and contains
 * only inputs of the first element, all elements are processed.
 */
static void array_begins(struct __test_metadata *_metadata, const struct op *op,
			 struct window *w, struct model *m, int prot)
{
	__u32 harmless = prot == PROT_READ && op_asks(op) ? op->out : 0;
	size_t bad;

	m->n = op->n;
	ASSERT_EQ(0, mprotect(w->view, w->page, prot));
	for (bad = 1; bad <= op->size; bad++)
		array_at(_metadata, op, w, m, w->page - bad, bad <= harmless ? op->n : 0, bad);
}

TEST_F_TIMEOUT(faults, begin_missing, LIMIT)
{
	array_begins(_metadata, variant->op, &self->w, &self->m, PROT_NONE);
}

TEST_F_TIMEOUT(faults, begin_readonly, LIMIT)
{
	array_begins(_metadata, variant->op, &self->w, &self->m, PROT_READ);
}

/* --- The argument itself ---------------------------------------------------------- */

FIXTURE(argument) {
	struct window w;
	struct model m;
};

FIXTURE_VARIANT(argument) {
	unsigned long cmd;
	__u32 size;
	__u32 elem_size;
	bool writes;			/* does the call write its argument? */
};

FIXTURE_VARIANT_ADD(argument, info) { TIMERWHEEL_IOC_INFO, 136, 0, true };
FIXTURE_VARIANT_ADD(argument, stats) { TIMERWHEEL_IOC_STATS, 488, 0, true };
FIXTURE_VARIANT_ADD(argument, setup) { TIMERWHEEL_IOC_SETUP, 56, 0, true };
FIXTURE_VARIANT_ADD(argument, add) { TIMERWHEEL_IOC_ADD, 32, 64, false };
FIXTURE_VARIANT_ADD(argument, move) { TIMERWHEEL_IOC_MOVE, 32, 32, false };
FIXTURE_VARIANT_ADD(argument, remove) { TIMERWHEEL_IOC_REMOVE, 32, 40, false };
FIXTURE_VARIANT_ADD(argument, drain) { TIMERWHEEL_IOC_DRAIN, 32, 64, false };
FIXTURE_VARIANT_ADD(argument, get) { TIMERWHEEL_IOC_GET, 32, 64, false };
FIXTURE_VARIANT_ADD(argument, list) { TIMERWHEEL_IOC_LIST, 32, 64, true };
FIXTURE_VARIANT_ADD(argument, advance) { TIMERWHEEL_IOC_ADVANCE, 32, 0, true };

FIXTURE_SETUP(argument)
{
	bool setup = variant->cmd == TIMERWHEEL_IOC_SETUP;
	int fd = setup ? dev_open(O_NONBLOCK) : tw_open_manual(1);

	ASSERT_LE(0, fd);
	model_init(&self->m, fd, !setup, 2);
	if (!setup)
		FINE(model_fill(&self->m, 0, 1, 1, HOUR, 0));
	window_make(&self->w, 2);
}

FIXTURE_TEARDOWN(argument)
{
	model_free(&self->m);
}

/*
 * A call whose argument has @before bytes in the first page and the rest in the second. The second
 * (@end) or the first has the protection @prot. The call does not change the wheel: ADD finds its
 * key in use, other calls on keys find no timer, and ADVANCE advances by 0.
 */
static int argument_at(const struct _fixture_variant_argument *v, struct window *w, int fd,
		       size_t before, bool end, int prot)
{
	static struct timerwheel_add elem;
	struct timerwheel_batch batch = {
		.size = v->size, .elems = (uintptr_t)&elem, .count = 1,
		.elem_size = v->elem_size,
	};
	size_t at = w->page - before;
	int ret;

	elem = (struct timerwheel_add) {
		.key = v->cmd == TIMERWHEEL_IOC_ADD ? 0 : 1,
		.flags = v->cmd == TIMERWHEEL_IOC_ADD ? TIMERWHEEL_EXCL : 0,
	};
	memset(w->all, 0, w->size);
	memcpy(w->all + at, &batch, v->elem_size ? sizeof(batch) : sizeof(__u32));
	if (mprotect(w->view + (end ? w->page : 0), w->page, prot))
		abort();
	ret = dev_ioctl(fd, v->cmd, w->view + at);
	mprotect(w->view, w->size, PROT_READ | PROT_WRITE);
	return ret;
}

/* The argument crosses from or into an inaccessible page at each of its bytes. */
TEST_F(argument, each_byte)
{
	const struct _fixture_variant_argument *v = variant;
	struct model *m = &self->m;
	int readonly = v->writes ? -EFAULT : v->cmd == TIMERWHEEL_IOC_DRAIN ? 0 : 1, fd = m->fd;
	struct timerwheel_info info;
	size_t b;

	/* DRAIN changes nothing only in an empty wheel */
	if (v->cmd == TIMERWHEEL_IOC_DRAIN) {
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_remove1(fd, 0));
		model_set(m, 0, TIMERWHEEL_WAS_NONE);
	}
	for (b = 1; b < v->size; b++) {
		EXPECT_EQ(-EFAULT, argument_at(v, &self->w, fd, b, false, PROT_NONE))
			TH_LOG("the first %zu bytes are inaccessible", b);
		EXPECT_EQ(-EFAULT, argument_at(v, &self->w, fd, b, true, PROT_NONE))
			TH_LOG("all but the first %zu bytes are inaccessible", b);
		EXPECT_EQ(readonly, argument_at(v, &self->w, fd, b, false, PROT_READ))
			TH_LOG("the first %zu bytes are read-only", b);
		EXPECT_EQ(readonly, argument_at(v, &self->w, fd, b, true, PROT_READ))
			TH_LOG("all but the first %zu bytes are read-only", b);
	}
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(v->cmd == TIMERWHEEL_IOC_SETUP ? 0 : TIMERWHEEL_INFO_SETTLED, info.flags);
	if (m->manual)
		FINE(model_differs(m));
	EXPECT_EQ(v->writes ? !!v->elem_size : readonly,
		  argument_at(v, &self->w, fd, v->size, true, PROT_NONE));
}

/* --- Results that cannot be copied out --------------------------------------------- */

/* A thread that makes the argument read-only after @after ns */
struct lock {
	pthread_t thread;
	struct window *w;
	__u64 after;
};

static void *lock_main(void *arg)
{
	struct lock *l = arg;

	tw_sleep(l->after);
	mprotect(l->w->view, l->w->page, PROT_READ);
	return NULL;
}

/* A call whose argument is at the start of the window and becomes read-only after @after ns */
static int locked_call(struct window *w, int fd, unsigned long cmd, __u64 after)
{
	struct lock l = { .w = w, .after = after };
	int ret;

	if (pthread_create(&l.thread, NULL, lock_main, &l))
		abort();
	ret = dev_ioctl(fd, cmd, w->view);
	pthread_join(l.thread, NULL);
	mprotect(w->view, w->page, PROT_READ | PROT_WRITE);
	return ret;
}

/* LIST fails if it cannot copy the cursor out: it has no other effect. */
TEST_F(argument, list_cannot_say_where)
{
	enum { MANY = 20000, ROUNDS = 60 };
	struct timerwheel_entry *ent = calloc(MANY, sizeof(*ent));
	struct timerwheel_add *add = calloc(MANY, sizeof(*add));
	struct timerwheel_batch *batch = (void *)self->w.all;
	int i, ret, fd = tw_open_manual(1);

	if (variant->cmd != TIMERWHEEL_IOC_LIST)
		return;
	for (i = 0; i < MANY; i++)
		add[i] = (struct timerwheel_add){ .key = i, .deadline = HOUR };
	ASSERT_EQ(MANY, dev_add(fd, add, MANY));
	for (i = 0; i < ROUNDS; i++) {
		*batch = (struct timerwheel_batch){
			.size = sizeof(*batch), .elems = (uintptr_t)ent, .count = MANY,
			.elem_size = sizeof(*ent),
		};
		ret = locked_call(&self->w, fd, TIMERWHEEL_IOC_LIST, i % 30 * 200 * USEC);
		EXPECT_TRUE(ret == -EFAULT || (ret == MANY && batch->cursor > MANY))
			TH_LOG("%d, cursor %llu", ret, batch->cursor);
	}
	close(fd);
}

/*
 * SETUP succeeds if it cannot copy the granted values out, because it took effect. It fails if the
 * argument was read-only before. In between it waits for a grace period.
 */
TEST_F(argument, setup_cannot_say_what)
{
	struct timerwheel_setup *setup = (void *)self->w.all;
	struct timerwheel_info info;
	int i, ret, fd;

	if (variant->cmd != TIMERWHEEL_IOC_SETUP)
		return;
	for (i = 0; i < 40; i++) {
		fd = dev_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		/* creates a base, which SETUP must free */
		EXPECT_EQ(-ENOENT, tw_remove1(fd, 1));
		*setup = (struct timerwheel_setup){ .size = sizeof(*setup), .tick = 2 * MSEC };
		ret = locked_call(&self->w, fd, TIMERWHEEL_IOC_SETUP, i % 20 * 500 * USEC);
		EXPECT_TRUE(ret == 0 || ret == -EFAULT);
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(ret ? MSEC : 2 * MSEC, info.tick);
		close(fd);
	}
}

/* --- Memory that becomes inaccessible ----------------------------------------------- */

/* A thread that makes random pages of the first ones inaccessible, and accessible again */
struct thief {
	pthread_t thread;
	struct window *w;
	size_t pages;
	void (*take)(char *page, size_t size, struct window *w);
	atomic_bool stop;
};

static void take_all(char *page, size_t size, struct window *w)
{
	(void)w;
	mprotect(page, size, PROT_NONE);
	sched_yield();
	mprotect(page, size, PROT_READ | PROT_WRITE);
}

static void take_write(char *page, size_t size, struct window *w)
{
	(void)w;
	mprotect(page, size, PROT_READ);
	sched_yield();
	mprotect(page, size, PROT_READ | PROT_WRITE);
}

static void take_mapping(char *page, size_t size, struct window *w)
{
	munmap(page, size);
	sched_yield();
	mmap(page, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, w->fd, page - w->view);
}

/* Drop only the page table entry: a page fault restores it. */
static void take_entry(char *page, size_t size, struct window *w)
{
	(void)w;
	madvise(page, size, MADV_DONTNEED);
}

static void *thief_main(void *arg)
{
	struct thief *t = arg;
	__u64 seed = 1;

	while (!atomic_load(&t->stop))
		t->take(t->w->view + tw_rand(&seed) % t->pages * t->w->page, t->w->page, t->w);
	return NULL;
}

static void thief_start(struct thief *t, struct window *w, size_t pages,
			void (*take)(char *page, size_t size, struct window *w))
{
	t->w = w;
	t->pages = pages;
	t->take = take;
	atomic_store(&t->stop, false);
	if (pthread_create(&t->thread, NULL, thief_main, t))
		abort();
}

static void thief_stop(struct thief *t)
{
	atomic_store(&t->stop, true);
	pthread_join(t->thread, NULL);
}

/*
 * Calls while memory becomes inaccessible: each did what it reported. Repeat until @faults of them
 * were interrupted; 0: none may be, in 20 rounds.
 */
static void stolen(struct __test_metadata *_metadata, const struct op *op, struct window *w,
		   struct model *m, void (*take)(char *page, size_t size, struct window *w),
		   int faults)
{
	int left = faults ?: 20, round, met = 0, ret, i;
	__u64 end = tw_now(CLOCK_MONOTONIC) + 5 * MINUTE;
	struct thief t;

	for (round = 1; left && tw_now(CLOCK_MONOTONIC) < end; round++) {
		int total = 0;
		__u64 cursor = 0;

		FINE(restock(op, m, LOST, round));
		memset(m->seen, 0, m->n);
		thief_start(&t, w, LOST * op->size / w->page, take);
		do {
			fill(op, w->all, LOST, round);
			ret = call(op, m->fd, w->view, LOST, &cursor);
			for (i = 0; i < ret; i++)
				FINE(done(op, m, w->all + i * op->size, true));
			ASSERT_TRUE(ret > 0 || ret == -EFAULT) {
				TH_LOG("returned %d after %d", ret, total);
			}
			total += ret > 0 ? ret : 0;
			met += total < LOST;
		} while (!op_asks(op) && total < LOST);
		thief_stop(&t);
		if (op == &list_op)
			FINE(list_rest(m, &cursor));
		FINE(model_differs(m));
		if (!faults) {
			ASSERT_EQ(0, met);
			left--;
		} else if (met >= faults) {
			left = 0;
		}
	}
	EXPECT_EQ(0, left) {
		TH_LOG("%s: only %d faults in %d rounds", op->name, met, round);
	}
	printf("# %s: %d faults in %d rounds\n", op->name, met, round - 1);
}

TEST_F_TIMEOUT(faults, protected_meanwhile, LIMIT)
{
	stolen(_metadata, variant->op, &self->w, &self->m, take_all, 10);
}

TEST_F_TIMEOUT(faults, readonly_meanwhile, LIMIT)
{
	stolen(_metadata, variant->op, &self->w, &self->m, take_write, 10);
}

TEST_F_TIMEOUT(faults, unmapped_meanwhile, LIMIT)
{
	stolen(_metadata, variant->op, &self->w, &self->m, take_mapping, 10);
}

TEST_F_TIMEOUT(faults, paged_out_meanwhile, LIMIT)
{
	stolen(_metadata, variant->op, &self->w, &self->m, take_entry, 0);
}

TEST_HARNESS_MAIN
