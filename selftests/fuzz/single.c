// SPDX-License-Identifier: GPL-2.0
/*
 * One thread, one wheel with the MANUAL clock. Each call must do exactly what the model does, down
 * to the byte. Each program gets a new wheel.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

#define fallthrough	__attribute__((__fallthrough__))

bool failed_with(struct test *t, const char *what, ssize_t ret, unsigned int errors)
{
	if (ret < 0 && error_bit(-ret) & errors)
		return true;
	wrong(t->w, "%s returned %zd (%s), not one of the errors %#x", what, ret,
	      ret < 0 ? strerror(-ret) : "no error", errors);
	return false;
}

bool same(struct test *t, const char *what, __s64 is, __s64 must)
{
	if (is != must)
		wrong(t->w, "%s is %lld, not %lld", what, is, must);
	return is == must;
}

/* --- Calls with a structure of their own --------------------------------------- */

static size_t both(const struct io *io)
{
	return io->size < io->known ? io->size : io->known;
}

/* The expected answer: the part that both know, then zeros where only the caller knows more. */
static void answer(struct io *io, const void *is)
{
	memcpy(io->arg, is, both(io));
	if (io->size > io->known)
		memset(io->arg + io->known, 0, io->size - io->known);
}

static void take_answer(const struct io *io, void *to, size_t size)
{
	memset(to, 0, size);
	memcpy(to, io->at.alias, both(io));
}

static void info_done(struct test *t)
{
	const struct model *m = &t->m;
	struct timerwheel_info is, must;

	take_answer(&t->w->io, &is, sizeof(is));
	must = is;
	must.size = sizeof(must);
	must.flags = (m->settled ? TIMERWHEEL_INFO_SETTLED : 0) |
		     (m->closed ? TIMERWHEEL_INFO_CLOSED : 0) |
		     (model_table(m) ? TIMERWHEEL_INFO_TABLE : 0) |
		     (model_resident(m) ? TIMERWHEEL_INFO_RESIDENT : 0);
	must.abi_version = TIMERWHEEL_ABI_VERSION;
	must.batch_max = TIMERWHEEL_BATCH_MAX;
	must.features = TIMERWHEEL_FEATURE_HANDLE |
			(resident_errors ? 0 : TIMERWHEEL_FEATURE_TABLE) |
			(is.features & (TIMERWHEEL_FEATURE_SOCKET | TIMERWHEEL_FEATURE_URING));
	must.errata = 0;
	must.clock = m->setup.clock;
	must.tick = m->setup.tick;
	must.slots = m->setup.slots;
	must.capacity = m->setup.capacity;
	must.slack = m->setup.slack;
	must.wake_ns = m->setup.wake_ns;
	must.wake_events = m->setup.wake_events;
	must.generation_bits = generation_bits(&m->setup);
	must.ring = m->setup.ring;
	must.ring_max = TIMERWHEEL_RING_MAX;
	must.event_size = m->setup.event_size;
	must.event_size_max = sizeof(struct timerwheel_event);
	if (m->setup.clock == TIMERWHEEL_CLOCK_MANUAL)
		must.now = m->now;
	/* The other fields depend on the machine. */
	answer(&t->w->io, &must);
}

static void stats_done(struct test *t)
{
	const struct model *m = &t->m;
	struct timerwheel_stats is, must = m->stats;
	unsigned int i;
	__u64 late = 0;

	take_answer(&t->w->io, &is, sizeof(is));
	must.size = sizeof(must);
	must.flags = 0;
	must.pending = m->timers - m->n_due - m->n_parked;
	must.due = m->n_due;
	must.parked = m->n_parked;
	/* These count how the work was done, which the model does not know. */
	must.cascades = is.cascades;
	must.requeues = is.requeues;
	must.passes = is.passes;
	must.pass_max_timers = is.pass_max_timers;
	must.pass_max_ns = is.pass_max_ns;
	must.memory = is.memory;
	if (t->w->io.size >= sizeof(is)) {
		for (i = 0; i < TIMERWHEEL_LATENESS_BUCKETS; i++)
			late += is.lateness[i];
		same(t, "stats: sum of lateness", late, m->expired);
	}
	if (m->slacked) {
		must.late_max = is.late_max;
		memcpy(must.lateness, is.lateness, sizeof(is.lateness));
	}
	answer(&t->w->io, &must);
}

static void do_answer(struct test *t, const struct call *call, int ret, unsigned int errors)
{
	struct io *io = &t->w->io;

	if (errors) {
		/* A part of an answer that did not fit may have been written. */
		if (failed_with(t, op_names[call->op], ret, errors) && ret == -EFAULT &&
		    io->at.alias)
			memcpy(io->arg, io->at.alias,
			       io->arg_len < io->at.len ? io->arg_len : io->at.len);
		return;
	}
	if (!same(t, op_names[call->op], ret, 0))
		return;
	if (call->op == OP_INFO)
		info_done(t);
	else
		stats_done(t);
}

static void do_setup(struct test *t, int ret, unsigned int errors)
{
	struct io *io = &t->w->io;

	if (t->m.settled)
		errors |= MAY_EBUSY;
	if (errors) {
		failed_with(t, "setup", ret, errors);
		return;
	}
	if (!same(t, "setup", ret, 0))
		return;
	model_setup(&t->m, &io->setup);
	t->m.setup.size = io->setup.size;
	io->setup = t->m.setup;
	table_map(t);
	ring_map(t);
}

static int ask(struct test *t, unsigned long cmd, struct timerwheel_batch *batch)
{
	batch->size = sizeof(*batch);
	batch->elem_size = sizeof(struct timerwheel_entry);
	return exec_ioctl(t->w, t->fd, cmd, batch);
}

void get_timer(struct test *t, __u64 key)
{
	struct timerwheel_entry entry = { .key = key };
	struct timerwheel_batch batch = { .elems = (uintptr_t)&entry, .count = 1 };

	ask(t, TIMERWHEEL_IOC_GET, &batch);
}

static void tell(struct test *t, const struct timerwheel_entry *e)
{
	wrong(t->w, "value %llx deadline %llx left %lld period %llx slack %llx", e->value,
	      e->deadline, e->left, e->period, e->slack);
	wrong(t->w, "result %d index %u generation %u flags %x", e->result, e->index,
	      e->generation, e->flags);
}

/* Compare a reported entry with the model, and learn what the model could not know. */
static struct mtimer *learn(struct test *t, const struct timerwheel_entry *e)
{
	struct mtimer *timer = model_find(&t->m, e->key);
	struct timerwheel_entry must;

	if (!timer || timer->seen == t->m.stamp) {
		wrong(t->w, "key %llx was told %s", e->key, timer ? "twice" : "but is not there");
		return NULL;
	}
	timer->seen = t->m.stamp;
	if (e->result == TIMERWHEEL_WAS_DUE && model_may_be_due(&t->m, timer))
		model_visit(&t->m, timer);
	if (!timer->index) {
		timer->index = e->index;
		timer->generation = e->generation;
	}
	table_learn(t, timer);
	model_describe(&t->m, timer, &must);
	if (memcmp(&must, e, sizeof(must))) {
		wrong(t->w, "key %llx was told otherwise than it is:", e->key);
		tell(t, e);
		tell(t, &must);
		return NULL;
	}
	return timer;
}

/* LIST all: it must be what the model holds. */
static void audit(struct test *t)
{
	struct timerwheel_entry entry[64];
	struct timerwheel_batch batch = { .elems = (uintptr_t)entry, .count = ARRAY_LEN(entry) };
	__u64 seen = 0;
	int n, i;

	t->m.stamp++;
	for (;;) {
		n = ask(t, TIMERWHEEL_IOC_LIST, &batch);
		if (n <= 0)
			break;
		for (i = 0; i < n; i++)
			if (!learn(t, &entry[i]))
				return;
		digest(t->w, entry, n * sizeof(*entry));
		seen += n;
	}
	same(t, "the last LIST", n, 0);
	same(t, "the number of timers in LIST", seen, t->m.timers);
}

/* The wheel has no deadline table. */
static void do_touch(struct test *t, const struct call *call)
{
	__u64 r = call->seed;

	if (exec_touch(t->fd, rnd_to(&r, 2000), r))
		wrong(t->w, "a wheel without a deadline table has an entry of one");
}

static void do_advance(struct test *t, int ret, unsigned int errors)
{
	struct io *io = &t->w->io;
	struct model *m = &t->m;
	__u64 to = io->advance.time, told, before = m->expired;

	if (m->setup.clock != TIMERWHEEL_CLOCK_MANUAL)
		errors |= MAY_EINVAL;
	if (!(io->advance.flags & TIMERWHEEL_ABS) && (__s64)to < 0 && !errors)
		errors |= MAY_EINVAL;
	if (!(io->advance.flags & TIMERWHEEL_ABS))
		to = to > TIMERWHEEL_TIME_MAX - m->now ? TIMERWHEEL_TIME_MAX : m->now + to;
	else if (to > TIMERWHEEL_TIME_MAX)
		to = TIMERWHEEL_TIME_MAX;
	if (to < m->now && !(errors & ~MAY_EINVAL))
		errors |= MAY_EINVAL;
	if (errors) {
		failed_with(t, "advance", ret, errors);
		return;
	}
	if (!same(t, "advance", ret, 0))
		return;
	io->advance.now = to;
	memcpy(&told, io->at.alias + offsetof(struct timerwheel_advance, expired), 8);
	io->advance.expired = told;
	if (t->ring)
		ring_advance(t, to);
	else if (model_advance(m, to))
		audit(t);
	same(t, "timers that fell due", told, m->expired - before);
}

/* --- Calls on arrays ------------------------------------------------------------ */

/* Number of elements that lie completely within @room bytes. */
static __u32 fit(const struct io *io, size_t room)
{
	size_t n = room / io->elem;

	return n < io->batch.count ? n : io->batch.count;
}

/* Where index and generation are. */
#define PLACE	offsetof(struct timerwheel_add, index)

static_assert(offsetof(struct timerwheel_entry, index) == PLACE);
static_assert(offsetof(struct timerwheel_add, generation) == PLACE + 4);
static_assert(offsetof(struct timerwheel_entry, generation) == PLACE + 4);

/* Apply to the model the result of a done element, @is, in a wheel with a ring. */
static void catch_up(struct test *t, unsigned int op, const union elem *e, const char *is)
{
	struct mtimer *timer;
	union elem done;

	if (!t->ring)
		return;
	memcpy(&done, is, t->w->io.elem);
	switch (op) {
	case OP_ADD:
		ring_catch_up(t, e->add.key, done.add.result);
		break;
	case OP_MOVE:
		ring_catch_up(t, e->move.key, done.move.result);
		break;
	case OP_MOVE_HANDLE:
		timer = model_find_handle(&t->m, e->move_handle.index, e->move_handle.generation);
		if (timer)
			ring_catch_up(t, timer->key, done.move_handle.result);
		break;
	}
}

static void add_handle(struct test *t, const struct mtimer *timer)
{
	t->handles[t->n_handles++ % HANDLES] = (struct handle){ timer->index, timer->generation };
}

/* Compare an element that was done with what the model does. */
static bool element(struct test *t, unsigned int op, unsigned int i)
{
	struct io *io = &t->w->io;
	const char *is = io->elems_at.alias + i * io->elem;
	bool whole = i * io->elem + io->elem <= io->elems_at.rw;
	struct mtimer *timer, ended = {};
	int must = -EINVAL;
	union elem e;

	elem_get(io, i, &e);
	catch_up(t, op, &e, is);
	switch (op) {
	case OP_ADD:
		must = model_add(&t->m, &e.add, &timer);
		e.add.result = must;
		if (must < 0)
			break;
		/* The kernel chooses index and generation; they do not change. */
		if (!whole)
			break;
		memcpy(&e.add.index, is + PLACE, 8);
		if (!e.add.index || !e.add.generation ||
		    (timer->index && (timer->index != e.add.index ||
				      timer->generation != e.add.generation)))
			wrong(t->w, "element %u: index %u, generation %u became %u, %u", i,
			      timer->index, timer->generation, e.add.index, e.add.generation);
		timer->index = e.add.index;
		timer->generation = e.add.generation;
		add_handle(t, timer);
		break;
	case OP_MOVE:
		must = model_move(&t->m, &e.move);
		e.move.result = must;
		break;
	case OP_REMOVE:
		timer = model_find(&t->m, e.remove.key);
		ended = timer ? *timer : ended;
		must = model_remove(&t->m, &e.remove);
		e.remove.result = must;
		break;
	case OP_MOVE_HANDLE:
		must = model_move_handle(&t->m, &e.move_handle, io->batch.flags);
		e.move_handle.result = must;
		break;
	case OP_REMOVE_HANDLE:
		timer = model_find_handle(&t->m, e.remove_handle.index,
					  e.remove_handle.generation);
		ended = timer ? *timer : ended;
		must = model_remove_handle(&t->m, &e.remove_handle);
		e.remove_handle.result = must;
		break;
	case OP_GET:
		timer = model_find(&t->m, e.entry.key);
		if (!get_invalid(&e.entry))
			must = timer ? model_state(&t->m, timer) : -ENOENT;
		if (must > 0 && !timer->index && whole) {
			memcpy(&timer->index, is + PLACE, 4);
			memcpy(&timer->generation, is + PLACE + 4, 4);
		}
		if (must > 0)
			model_describe(&t->m, timer, &e.entry);
		else
			e.entry.result = must;
		break;
	}
	if (must > 0 && ended.index)
		table_ended(t, &ended);
	elem_put(io, i, &e);
	/* It may be the index that could not be written. */
	if (memcmp(is, io->elems + i * io->elem, whole ? io->elem : PLACE)) {
		wrong(t->w, "element %u (key %llx) is not as it should be: result %d", i,
		      e.add.key, must);
		return false;
	}
	return true;
}

/* ADD, MOVE, REMOVE, GET; MOVE and REMOVE by handle */
static void do_elements(struct test *t, const struct call *call, int ret, unsigned int errors)
{
	struct io *io = &t->w->io;
	__u32 fits = fit(io, io->elems_at.rw), most, i;

	most = fits;
	/* An element of which the result, but not all, can be written is done as well. */
	if ((call->op == OP_ADD || call->op == OP_GET) &&
	    io->elems_at.rw % io->elem >= PLACE)
		most = fit(io, io->elems_at.rw + io->elem);
	if (most > fit(io, io->elems_at.rd))
		most = fits;
	if (!most && io->batch.count)
		errors |= MAY_EFAULT;
	if (errors) {
		failed_with(t, op_names[call->op], ret, errors);
		return;
	}
	if (ret == -EFAULT && !fits && io->batch.count)
		return;
	if (ret < (int)fits || ret > (int)most) {
		wrong(t->w, "%s of %u elements returned %d, not %u", op_names[call->op],
		      io->batch.count, ret, fits);
		return;
	}
	for (i = 0; i < (__u32)ret; i++)
		if (!element(t, call->op, i))
			return;
	if (ret > (int)fits)
		memcpy(io->elems + fits * io->elem + PLACE,
		       io->elems_at.alias + fits * io->elem + PLACE, 8);
}

/* LIST, DRAIN */
static void do_scan(struct test *t, const struct call *call, int ret, unsigned int errors)
{
	struct io *io = &t->w->io;
	struct model *m = &t->m;
	__u32 fits = fit(io, io->elems_at.rw), left = m->timers, i;
	__u32 must = left < io->batch.count ? left : io->batch.count;
	size_t partial;
	struct mtimer *timer;
	bool list = call->op == OP_LIST;
	union elem e;

	if (errors) {
		failed_with(t, op_names[call->op], ret, errors);
		return;
	}
	/* DRAIN_CLOSE closes even if the drained timers cannot be written to memory. */
	if (!list && io->batch.flags & TIMERWHEEL_DRAIN_CLOSE)
		m->closed = true;
	if (ret == -EFAULT && must && !fits)
		goto partly;
	/* From a cursor on, LIST may return any number of them. */
	if (must > fits)
		must = fits;
	if (list && io->batch.cursor && ret >= 0 && (__u32)ret < must)
		must = ret;
	if (!same(t, op_names[call->op], ret, must))
		return;
	m->stamp++;
	for (i = 0; i < must; i++) {
		/* It may not be aligned. */
		memcpy(&e, io->elems_at.alias + i * io->elem, io->elem);
		elem_put(io, i, &e);
		timer = learn(t, &e.entry);
		if (!timer)
			return;
		if (list)
			continue;
		table_ended(t, timer);
		if (timer->due)
			m->stats.withdrawn++;
		m->stats.drained++;
		model_drop(m, timer);
	}
	if (list) {
		memcpy(&io->batch.cursor,
		       io->at.alias + offsetof(struct timerwheel_batch, cursor), 8);
		t->cursor = io->batch.cursor;
	}
partly:
	/* A part of what did not fit may have been written. */
	partial = io->elems_at.rw - fits * io->elem;
	if (partial < io->elem && fits < io->batch.count && io->elems_at.alias)
		memcpy(io->elems + fits * io->elem, io->elems_at.alias + fits * io->elem, partial);
}

static void do_ioctl(struct test *t, const struct call *call)
{
	struct view view = {
		.tick = t->m.setup.tick, .cursor = t->cursor, .table = t->table,
		.resident = model_resident(&t->m),
		.exact = t->ring, .handles = t->handles,
		.n_handles = t->n_handles < HANDLES ? t->n_handles : HANDLES,
	};
	struct io *io = &t->w->io;
	unsigned int errors;
	struct flow flow;
	int ret;

	/* The model must know the handles of all timers. */
	if (op_is_handle(call->op))
		audit(t);
	if (call->op == OP_ADVANCE)
		ring_trickle(t);
	flow = ring_before(t);
	view.now = t->m.now;
	args_ioctl(t->w, call, &view);
	errors = args_errors(io, call->op);
	ret = exec_ioctl(t->w, t->fd, io->cmd, io->at.p);
	if (call->op == OP_MONITOR && ret >= 0)
		digest(t->w, "", 1);
	else
		digest(t->w, &ret, sizeof(ret));
	switch (call->op) {
	case OP_INFO:
	case OP_STATS:
		do_answer(t, call, ret, errors);
		break;
	case OP_SETUP:
		do_setup(t, ret, errors);
		break;
	case OP_ADVANCE:
		do_advance(t, ret, errors);
		break;
	case OP_MONITOR:
		watch_open(t, ret, errors);
		break;
	case OP_DRAIN:
	case OP_LIST:
		do_scan(t, call, ret, errors);
		break;
	default:
		do_elements(t, call, ret, errors);
	}
	if (call->op != OP_ADVANCE)
		ring_after(t, &flow);
	if (t->w->failed || !args_kept(t->w))
		return;
	if (io->elem)
		io->batch.elems = 0;	/* an address that differs each time */
	if (call->op != OP_INFO && call->op != OP_STATS)
		digest(t->w, io->arg, io->arg_len);
	digest(t->w, io->elems, io->elems_len);
}

/* --- The rest ------------------------------------------------------------------- */

/**
 * do_read - read events into memory of any kind
 * @t: the test
 * @call: the call
 * @source: what must come
 */
void do_read(struct test *t, const struct call *call, const struct source *source)
{
	const size_t size = sizeof(struct timerwheel_event);
	const struct view view = {};
	struct io *io = &t->w->io;
	unsigned int errors = source->errors;
	size_t room, fits, must, i, part;
	const char *what;
	ssize_t ret;

	args_read(t->w, call, &view);
	room = io->elems_len / size;
	fits = (io->elems_at.rw < io->elems_len ? io->elems_at.rw : io->elems_len) / size;
	must = source->waiting < fits ? source->waiting : fits;
	ret = exec_read(t->w, call, source->fd);
	digest(t->w, &ret, sizeof(ret));
	if (!room)
		errors |= MAY_EINVAL;
	if (!fits)
		errors |= MAY_EFAULT;
	if (!source->waiting)
		errors |= MAY_EAGAIN;
	if (!io->elems_len && call->op == OP_READV && !ret)
		return;		/* the kernel does not pass an empty vector to the module */
	if (errors) {
		failed_with(t, op_names[call->op], ret, errors);
		must = 0;
	} else if (!same(t, op_names[call->op], ret, must * size)) {
		return;
	}
	for (i = 0; i < must; i++) {
		memcpy(&io->event[i], io->elems_at.alias + i * size, size);
		what = source->check(t, source->watch, &io->event[i]);
		if (what) {
			wrong(t->w, "event %zu (key %llx): %s", i, io->event[i].key, what);
			return;
		}
	}
	/* A part of an event that did not fit may have been written. */
	part = io->elems_at.rw - must * size;
	if (io->elems_at.alias && io->elems_at.rw < io->elems_len && part < size)
		memcpy((char *)io->elems + must * size, io->elems_at.alias + must * size, part);
	what = spot_differs(&io->elems_at, io->elems, io->elems_len);
	if (what)
		wrong(t->w, "%s: %s", op_names[call->op], what);
	digest(t->w, io->elems, io->elems_len);
}

static const char *check_event(struct test *t, struct watch *watch,
			       const struct timerwheel_event *event)
{
	(void)watch;
	return model_event(&t->m, event);
}

static void read_wheel(struct test *t, const struct call *call)
{
	const struct source source = {
		.fd = t->fd, .waiting = t->m.n_due, .errors = t->ring ? MAY_EINVAL : 0,
		.check = check_event,
	};

	do_read(t, call, &source);
}

static void do_fdinfo(struct test *t)
{
	__u64 pending, due;

	if (same(t, "fdinfo", exec_fdinfo(t->fd, &pending, &due), 0)) {
		same(t, "fdinfo: due", due, t->m.n_due);
		same(t, "fdinfo: pending", pending,
		     t->m.timers - t->m.n_due - t->m.n_parked);
	}
}

static bool open_wheel(struct test *t)
{
	model_init(&t->m);
	t->cursor = 0;
	t->n_handles = 0;
	t->fd = dev_open(O_NONBLOCK);
	if (t->fd < 0)
		wrong(t->w, "open: %s", strerror(-t->fd));
	return t->fd >= 0;
}

static void close_wheel(struct test *t)
{
	if (!t->w->failed)
		audit(t);
	table_unmap(t);
	ring_unmap(t);
	close(t->fd);
	watch_end(t);
	model_free(&t->m);
}

/* Without SETUP the wheel would run on a clock that the model does not have. */
static void settle(struct test *t, __u64 seed)
{
	static const __u64 ticks[] = { 1, 1, 1000, 1000000, HOUR, 12345 };
	static const __u32 slots[] = { 8, 16, 256, 4096 };
	static const __u32 caps[] = { 0, 0, 0, 5, 64, 100 };
	static const __u32 flags[] = {
		0, 0, TIMERWHEEL_SETUP_TABLE, TIMERWHEEL_SETUP_RESIDENT,
		TIMERWHEEL_SETUP_TABLE | TIMERWHEEL_SETUP_RESIDENT,
	};
	static const __u32 rings[] = { 0, 0, 0, 0, 1, 2, 3, 8, 64, 1000 };
	struct timerwheel_setup setup = {
		.size = sizeof(setup), .clock = TIMERWHEEL_CLOCK_MANUAL,
		.slots = slots[rnd_to(&seed, ARRAY_LEN(slots))],
		.tick = ticks[rnd_to(&seed, ARRAY_LEN(ticks))],
		.capacity = caps[rnd_to(&seed, ARRAY_LEN(caps))],
		.slack = one_in(&seed, 8) ? rnd_to(&seed, 100000) : 0,
		.ring = rings[rnd_to(&seed, ARRAY_LEN(rings))],
		.flags = resident_errors ? 0 : flags[rnd_to(&seed, ARRAY_LEN(flags))],
	};

	if (setup.ring)
		setup.slack = 0;
	model_setup(&t->m, &setup);
	same(t, "setup", exec_ioctl(t->w, t->fd, TIMERWHEEL_IOC_SETUP, &setup), 0);
	setup.size = 0;
	if (memcmp(&setup, &t->m.setup, sizeof(setup)))
		wrong(t->w, "setup granted something else");
	table_map(t);
	ring_map(t);
}

static void run_call(struct test *t, const struct program *p, const struct call *call)
{
	int ret;

	digest(t->w, &call->op, 1);
	t->w->calls++;
	switch (call->op) {
	case OP_ADD:
		if (!t->m.settled)
			settle(t, p->seed);
		fallthrough;
	case OP_INFO:
	case OP_SETUP:
	case OP_MOVE:
	case OP_REMOVE:
	case OP_DRAIN:
	case OP_GET:
	case OP_LIST:
	case OP_STATS:
	case OP_ADVANCE:
	case OP_MOVE_HANDLE:
	case OP_REMOVE_HANDLE:
	case OP_MONITOR:
		do_ioctl(t, call);
		break;
	case OP_READ:
	case OP_READV:
	case OP_URING:
		read_wheel(t, call);
		break;
	case OP_POLL:
	case OP_EPOLL:
	case OP_SELECT:
	case OP_DUP:
	case OP_SCM:
		cover_begin(&t->w->cover);
		ret = exec_ready(call, t->fd);
		t->w->fresh |= cover_end(&t->w->cover);
		same(t, op_names[call->op], ret,
		     t->m.n_due || (t->ring && model_ring_used(&t->m)));
		break;
	case OP_TOUCH:
		if (t->table)
			table_touch(t, call);
		else
			do_touch(t, call);
		break;
	case OP_FLOW:
		ring_flow(t);
		break;
	case OP_TAKE:
		ring_take(t, call);
		break;
	case OP_WATCH:
		watch_read(t, call);
		break;
	case OP_UNWATCH:
		watch_close(t, call);
		break;
	case OP_FDINFO:
		do_fdinfo(t);
		break;
	case OP_REOPEN:
		close_wheel(t);
		open_wheel(t);
		break;
	default:
		if (!t->m.settled)
			settle(t, p->seed);
		exec_other(t->w, call, t->fd, t->table ? 0 : t->m.setup.capacity);
	}
	if (!t->w->failed)
		table_check(t);
	ring_check(t);
}

static void run_program(struct worker *w)
{
	struct program *p = &w->program;
	struct test t = { .w = w };

	if (!open_wheel(&t))
		return;
	/* Now and then, some calls on a wheel without SETUP. */
	if (p->seed % 8)
		settle(&t, p->seed);
	for (w->at = 0; w->at < p->n && !w->failed; w->at++)
		run_call(&t, p, &p->call[w->at]);
	close_wheel(&t);
}

/**
 * single_run - run programs, each compared with the model
 * @w: the worker
 * @limits: when to stop
 * @only: just this one, or NULL
 *
 * Return: true if nothing was wrong.
 */
bool single_run(struct worker *w, const struct limits *limits, const struct program *only)
{
	if (only) {
		w->program = *only;
		run_program(w);
		return !w->failed;
	}
	while (!w->failed && !limits_reached(limits, w)) {
		worker_next(w, false);
		run_program(w);
		worker_keep(w);
		w->programs++;
	}
	return !w->failed;
}
