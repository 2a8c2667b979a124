// SPDX-License-Identifier: GPL-2.0
/* Arguments and arrays for the calls: most of them valid, some of them mangled. */
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuzz.h"

/* --- Single values ----------------------------------------------------------- */

static const __u32 odd_words[] = {
	0, 1, 2, 7, 8, 16, 31, 32, 33, 47, 48, 64, 128, 0x80000000, 0x7fffffff, 0xffffffff,
	TIMERWHEEL_BATCH_MAX, TIMERWHEEL_BATCH_MAX + 1,
};

static __u32 odd_word(__u64 *r)
{
	return one_in(r, 3) ? rnd(r) : odd_words[rnd_to(r, ARRAY_LEN(odd_words))];
}

__u64 choose_key(__u64 *r)
{
	static const __u64 odd[] = { 0, ~0ULL, 1ULL << 63, 0x7fffffffffffffffULL };

	switch (rnd_to(r, 8)) {
	case 0:
		return odd[rnd_to(r, ARRAY_LEN(odd))];
	case 1:
	case 2:
		return rnd_to(r, 600);
	default:
		return rnd_to(r, 12);
	}
}

/* A timer's value identifies its key; the tag is for MATCH. */
__u64 value_of(__u64 key, unsigned int tag)
{
	__u64 state = key;

	return (rnd(&state) & ~3ULL) | (tag & 3);
}

bool value_fits(__u64 key, __u64 value)
{
	return value_of(key, value) == value;
}

/* A span of time: mostly a few ticks, so that timers fall due. */
__u64 choose_time(const struct view *view, __u64 *r)
{
	static const __u64 odd[] = {
		0, 1, USEC, SEC, HOUR, 24 * 365 * HOUR, TIMERWHEEL_TIME_MAX,
		TIMERWHEEL_TIME_MAX - 1, TIMERWHEEL_TIME_MAX + 1, ~0ULL, ~0ULL - 1,
	};

	switch (rnd_to(r, 12)) {
	case 0:
		return odd[rnd_to(r, ARRAY_LEN(odd))];
	case 1:		/* around powers of two: where levels begin */
		return (1ULL << rnd_to(r, 64)) + rnd_to(r, 3) - 1;
	case 2:
		return (view->tick << rnd_to(r, 40)) + rnd_to(r, 3) - 1;
	case 3:
		return rnd_to(r, 1000) * view->tick;
	case 4:
		return rnd(r) % (view->tick * 4);
	default:
		return rnd_to(r, 40) * view->tick + rnd_to(r, 3) - 1;
	}
}

/* A deadline, or a time to ADVANCE to: relative, or absolute if @flags says so. */
static __u64 choose_when(const struct view *view, __u32 flags, __u64 *r)
{
	__u64 time = choose_time(view, r);

	if (!(flags & TIMERWHEEL_ABS) || one_in(r, 8))
		return time;
	return one_in(r, 4) && time < view->now ? view->now - time : view->now + time;
}

static bool zeros(const char *p, size_t from, size_t to)
{
	for (; from < to; from++)
		if (p[from])
			return false;
	return true;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* --- Elements ---------------------------------------------------------------- */

bool add_invalid(const struct timerwheel_add *a, bool table, bool resident)
{
	return (a->flags & ~(resident ? 31U : 15U)) ||
	       (table && !a->period == !!(a->flags & TIMERWHEEL_LINGER)) ||
	       (a->flags & TIMERWHEEL_EXCL && a->flags & TIMERWHEEL_MATCH) ||
	       a->period > TIMERWHEEL_TIME_MAX ||
	       (a->slack && !(a->flags & TIMERWHEEL_SLACK)) ||
	       (a->match && !(a->flags & TIMERWHEEL_MATCH));
}

bool move_invalid(const struct timerwheel_move *m, bool table)
{
	return (m->flags & ~(TIMERWHEEL_ABS | TIMERWHEEL_MATCH |
			     (table ? TIMERWHEEL_EXCL : 0))) ||
	       (m->match && !(m->flags & TIMERWHEEL_MATCH));
}

bool remove_invalid(const struct timerwheel_remove *r)
{
	return (r->flags & ~TIMERWHEEL_MATCH) || (r->match && !(r->flags & TIMERWHEEL_MATCH));
}

bool get_invalid(const struct timerwheel_entry *e)
{
	return e->flags;
}

static __u64 choose_match(__u64 key, __u32 flags, __u64 *r)
{
	if (!(flags & TIMERWHEEL_MATCH))
		return one_in(r, 100) ? rnd(r) : 0;
	return one_in(r, 10) ? rnd(r) : value_of(key, rnd(r));
}

static void make_add(struct timerwheel_add *a, const struct view *view, __u64 *r)
{
	__u32 flags = one_in(r, 3) ? rnd_to(r, 16) : rnd_to(r, 2);

	a->key = choose_key(r);
	a->value = value_of(a->key, rnd(r));
	a->flags = one_in(r, 100) ? odd_word(r) : flags;
	a->deadline = choose_when(view, flags, r);
	a->period = one_in(r, 4) ? choose_time(view, r) : 0;
	if (flags & TIMERWHEEL_SLACK || one_in(r, 100))
		a->slack = choose_time(view, r);
	if (view->exact)
		a->slack %= view->tick;
	if (view->resident && a->period && !one_in(r, 20))
		a->flags |= TIMERWHEEL_LINGER;
	a->match = choose_match(a->key, flags, r);
}

static void make_move(struct timerwheel_move *m, const struct view *view, __u64 *r)
{
	__u32 flags = rnd_to(r, 2) | (one_in(r, 4) ? TIMERWHEEL_MATCH : 0);

	m->key = choose_key(r);
	if (view->table && one_in(r, 3))
		flags |= TIMERWHEEL_EXCL;
	m->flags = one_in(r, 100) ? odd_word(r) : flags;
	m->deadline = choose_when(view, flags, r);
	m->match = choose_match(m->key, flags, r);
}

static void make_remove(struct timerwheel_remove *rem, __u64 *r)
{
	__u32 flags = one_in(r, 4) ? TIMERWHEEL_MATCH : 0;

	rem->key = choose_key(r);
	rem->flags = one_in(r, 100) ? odd_word(r) : flags;
	rem->match = choose_match(rem->key, flags, r);
}

/*
 * A known handle, right or stale, or the handle of one of the few timers that there are.
 * Their first owners have the generations 4, 8 and so on.
 */
static void make_handle(__u32 *index, __u32 *generation, const struct view *view, __u64 *r)
{
	const __u32 step = TIMERWHEEL_TABLE_FIRED + 1;

	if (view->n_handles && !one_in(r, 4)) {
		const struct handle *h = &view->handles[rnd_to(r, view->n_handles)];

		*index = h->index;
		*generation = h->generation;
		if (one_in(r, 10))
			*generation += one_in(r, 2) ? step : -step;
		return;
	}
	*index = one_in(r, 20) ? odd_word(r) : rnd_to(r, 16);
	*generation = one_in(r, 20) ? odd_word(r) : (1 + rnd_to(r, 4)) * step;
}

void elem_get(const struct io *io, unsigned int i, union elem *e)
{
	memcpy(e, io->elems + i * io->elem, io->elem);
}

void elem_put(struct io *io, unsigned int i, const union elem *e)
{
	memcpy(io->elems + i * io->elem, e, io->elem);
}

bool op_is_handle(unsigned int op)
{
	return op == OP_MOVE_HANDLE || op == OP_REMOVE_HANDLE;
}

static void make_elems(struct io *io, unsigned int op, unsigned int n, const struct view *view,
		       __u64 *r)
{
	union elem e;
	unsigned int i;

	memset(io->elems, POISON, n * io->elem);
	for (i = 0; i < n; i++) {
		memset(&e, POISON, sizeof(e));
		switch (op) {
		case OP_ADD:
			e.add.slack = 0;
			make_add(&e.add, view, r);
			break;
		case OP_MOVE:
			make_move(&e.move, view, r);
			break;
		case OP_REMOVE:
			make_remove(&e.remove, r);
			break;
		case OP_MOVE_HANDLE:
			e.move_handle.deadline = choose_when(view, io->batch.flags, r);
			make_handle(&e.move_handle.index, &e.move_handle.generation, view, r);
			break;
		case OP_REMOVE_HANDLE:
			make_handle(&e.remove_handle.index, &e.remove_handle.generation, view,
				    r);
			break;
		case OP_GET:
			e.entry.key = choose_key(r);
			e.entry.flags = one_in(r, 100) ? odd_word(r) : 0;
			break;
		}
		elem_put(io, i, &e);
	}
}

/* --- Arguments --------------------------------------------------------------- */

static const struct {
	unsigned long cmd;
	size_t size, min, elem;
	bool out, back;
} ioctls[] = {
	[OP_INFO]    = { TIMERWHEEL_IOC_INFO, sizeof(struct timerwheel_info), 8, 0, true },
	[OP_SETUP]   = { TIMERWHEEL_IOC_SETUP, sizeof(struct timerwheel_setup), 56, 0,
			 false, true },
	[OP_ADD]     = { TIMERWHEEL_IOC_ADD, 32, 32, sizeof(struct timerwheel_add) },
	[OP_MOVE]    = { TIMERWHEEL_IOC_MOVE, 32, 32, sizeof(struct timerwheel_move) },
	[OP_REMOVE]  = { TIMERWHEEL_IOC_REMOVE, 32, 32, sizeof(struct timerwheel_remove) },
	[OP_DRAIN]   = { TIMERWHEEL_IOC_DRAIN, 32, 32, sizeof(struct timerwheel_entry) },
	[OP_GET]     = { TIMERWHEEL_IOC_GET, 32, 32, sizeof(struct timerwheel_entry) },
	[OP_LIST]    = { TIMERWHEEL_IOC_LIST, 32, 32, sizeof(struct timerwheel_entry),
			 false, true },
	[OP_STATS]   = { TIMERWHEEL_IOC_STATS, sizeof(struct timerwheel_stats), 8, 0, true },
	[OP_ADVANCE] = { TIMERWHEEL_IOC_ADVANCE, sizeof(struct timerwheel_advance), 32, 0,
			 false, true },
	[OP_MOVE_HANDLE] = { TIMERWHEEL_IOC_MOVE_HANDLE, 32, 32,
			     sizeof(struct timerwheel_move_handle) },
	[OP_REMOVE_HANDLE] = { TIMERWHEEL_IOC_REMOVE_HANDLE, 32, 32,
			       sizeof(struct timerwheel_remove_handle) },
	[OP_MONITOR] = { TIMERWHEEL_IOC_MONITOR, sizeof(struct timerwheel_monitor), 16, 0 },
};

/* The flags of a call on an array */
static __u32 flags_known(unsigned int op)
{
	if (op == OP_MOVE_HANDLE)
		return TIMERWHEEL_ABS | TIMERWHEEL_EXCL;
	return op == OP_DRAIN ? TIMERWHEEL_DRAIN_CLOSE : 0;
}

bool op_is_ioctl(unsigned int op)
{
	return op <= OP_MONITOR;
}

bool op_is_read(unsigned int op)
{
	return op == OP_READ || op == OP_READV || op == OP_URING;
}

static void make_setup(struct timerwheel_setup *s, bool mangle, const struct view *view,
		       __u64 *r)
{
	static const __u64 ticks[] = {
		0, 1, 7, 999, 1000, 1001, 100000, 1000000, SEC, HOUR, HOUR + 1,
	};
	static const __u32 slots[] = { 0, 7, 8, 9, 16, 64, 255, 256, 1000, 4096, 4097 };
	static const __u32 caps[] = { 0, 1, 2, 10, 63, 64, 65, 200, 1 << 27, (1 << 27) + 1 };
	static const __u32 rings[] = { 1, 2, 3, 8, 60, 64, 1000 };
	static const __u32 events[] = { 8, 40, 47, 48, 49, 56, 64, 4088, 4096, 4097, 4104 };

	memset(s, 0, sizeof(*s));
	s->clock = one_in(r, 16) ? odd_word(r) : rnd_to(r, 4);
	if (!view->clocks && s->clock < TIMERWHEEL_CLOCK_MANUAL)
		s->clock = TIMERWHEEL_CLOCK_MANUAL;
	if (view->clocks && one_in(r, 3))
		s->flags = rnd_to(r, 8);
	s->slots = slots[rnd_to(r, ARRAY_LEN(slots))];
	s->tick = ticks[rnd_to(r, ARRAY_LEN(ticks))];
	s->capacity = caps[rnd_to(r, ARRAY_LEN(caps))];
	s->wake_events = one_in(r, 2) ? rnd_to(r, 5) : 0;
	if (s->wake_events > 1 || one_in(r, 8))
		s->wake_ns = choose_time(view, r);
	s->slack = one_in(r, 4) ? choose_time(view, r) : 0;
	if (one_in(r, 4))
		s->event_size = one_in(r, 4) ? events[rnd_to(r, ARRAY_LEN(events))] :
					       48 + rnd_to(r, 507) * 8;
	if (!view->clocks && one_in(r, 3))
		s->ring = rings[rnd_to(r, ARRAY_LEN(rings))];
	if (!view->clocks && one_in(r, 3))
		s->flags = one_in(r, 2) ? TIMERWHEEL_SETUP_RESIDENT : TIMERWHEEL_SETUP_TABLE;
	/* Any field, except the size. */
	if (mangle)
		((__u32 *)s)[1 + rnd_to(r, sizeof(*s) / 4 - 1)] = odd_word(r);
	/* With several threads there is no model of the ring; with one, it has short rings. */
	if (s->ring <= TIMERWHEEL_RING_MAX)
		s->ring = view->clocks ? 0 : s->ring % 1025;
	if (!view->clocks && s->clock < TIMERWHEEL_CLOCK_MANUAL)
		s->clock = TIMERWHEEL_CLOCK_MANUAL;
	/* With a ring, the model must know in which tick a timer fires. */
	if (s->ring && s->slack <= TIMERWHEEL_TIME_MAX)
		s->slack = 0;
}

static void make_monitor(struct timerwheel_monitor *m, bool mangle, __u64 *r)
{
	static const __u32 events[] = { 0, 1, 2, 3, 16, 17, 100, 512, 1024 };

	m->flags = rnd_to(r, 4);
	m->events = events[rnd_to(r, ARRAY_LEN(events))];
	if (mangle)
		((__u32 *)m)[1 + rnd_to(r, sizeof(*m) / 4 - 1)] = odd_word(r);
}

static bool monitor_invalid(const struct timerwheel_monitor *m)
{
	return m->flags & ~(TIMERWHEEL_MONITOR_CLOEXEC | TIMERWHEEL_MONITOR_NONBLOCK) ||
	       m->events > TIMERWHEEL_RING_MAX || m->reserved;
}

unsigned int alarm_errors, resident_errors;

unsigned int setup_errors(const struct timerwheel_setup *s)
{
	__u64 tick_min = s->clock == TIMERWHEEL_CLOCK_MANUAL ? 1 : USEC;
	const __u32 table = TIMERWHEEL_SETUP_RESIDENT | TIMERWHEEL_SETUP_TABLE;
	__u32 flags = s->flags & ~table;

	if (flags & ~(TIMERWHEEL_SETUP_CLOCK_SET | TIMERWHEEL_SETUP_ALARM) ||
	    (flags && s->clock != TIMERWHEEL_CLOCK_REALTIME &&
	     (flags != TIMERWHEEL_SETUP_ALARM || s->clock != TIMERWHEEL_CLOCK_BOOTTIME)) ||
	    s->ring > TIMERWHEEL_RING_MAX ||
	    (s->event_size && (s->event_size < 48 || s->event_size % 8 || s->event_size > 4096)) ||
	    s->clock > TIMERWHEEL_CLOCK_MANUAL ||
	    (s->slots && (s->slots < 8 || s->slots > 4096)) ||
	    (s->tick && (s->tick < tick_min || s->tick > HOUR)) || s->capacity > 1 << 27 ||
	    s->slack > TIMERWHEEL_TIME_MAX || s->wake_ns > TIMERWHEEL_TIME_MAX ||
	    (s->wake_events > 1 && !s->wake_ns))
		return MAY_EINVAL;
	if (flags & TIMERWHEEL_SETUP_ALARM && alarm_errors)
		return alarm_errors;
	return s->flags & table ? resident_errors : 0;
}

/* Mostly a size that is invalid. */
static __u32 choose_elem_size(const struct io *io, __u64 *r)
{
	switch (rnd_to(r, 6)) {
	case 0:
		return odd_word(r);
	case 1:
		return getpagesize() + rnd_to(r, 3) - 1;
	case 2:
		return io->elem + rnd_to(r, 3) - 1;
	case 3:
		return rnd_to(r, io->elem);
	case 4:
		return io->elem + 1 + rnd_to(r, 1000);
	default:
		return io->elem + 8 * (1 + rnd_to(r, 8));
	}
}

static void make_size(struct io *io, bool mangle, __u64 *r)
{
	size_t page = getpagesize();

	io->size = io->known;
	if (!mangle)
		return;
	switch (rnd_to(r, 6)) {
	case 0:
		io->size = odd_word(r);
		break;
	case 1:
		io->size = page + rnd_to(r, 3) - 1;
		break;
	case 2:
		io->size = io->known + rnd_to(r, 9) - 4;
		break;
	default:	/* larger, mostly with zeros in the unknown part */
		io->size = io->known + 8 * (1 + rnd_to(r, 20));
	}
}

/**
 * args_ioctl - make the argument of an ioctl and put it into memory
 * @w: whose io is filled in
 * @call: which; op_is_ioctl()
 * @view: the wheel
 */
void args_ioctl(struct worker *w, const struct call *call, const struct view *view)
{
	struct io *io = &w->io;
	size_t room = getpagesize() + ARG_MORE;
	__u64 state = call->seed, *r = &state;
	unsigned int place = call->place, elems = call->elems, n;
	struct timerwheel_batch *b = &io->batch;
	struct timerwheel_advance *adv = &io->advance;

	io->cmd = ioctls[call->op].cmd;
	io->known = ioctls[call->op].size;
	io->elem = ioctls[call->op].elem;
	io->elems_len = 0;
	memset(io->arg, 0, room);
	make_size(io, call->mangle & MANGLE_SIZE, r);
	io->arg_len = io->size > io->known ? io->size : io->known;
	if (io->arg_len > room - 64)
		io->arg_len = room - 64;
	if (ioctls[call->op].out)
		memset(io->arg + 8, POISON, io->arg_len - 8);

	if (call->op == OP_SETUP)
		make_setup(&io->setup, call->mangle & MANGLE_FIELDS, view, r);
	if (call->op == OP_MONITOR)
		make_monitor(&io->monitor, call->mangle & MANGLE_FIELDS, r);
	if (call->op == OP_ADVANCE) {
		adv->flags = rnd_to(r, 4) ? 0 : TIMERWHEEL_ABS;
		adv->time = choose_when(view, adv->flags, r);
		memset(&adv->now, POISON, sizeof(*adv) - offsetof(struct timerwheel_advance, now));
	}
	if (io->elem) {
		n = call->count;
		b->count = n;
		b->elem_size = io->elem;
		if (call->op == OP_LIST && !one_in(r, 3))
			b->cursor = one_in(r, 6) ? rnd(r) >> rnd_to(r, 64) : view->cursor;
		if (call->op == OP_DRAIN && one_in(r, 8))
			b->flags = TIMERWHEEL_DRAIN_CLOSE;
		if (call->op == OP_MOVE_HANDLE && one_in(r, 2))
			b->flags = one_in(r, 8) ? TIMERWHEEL_EXCL : TIMERWHEEL_ABS;
		if (call->mangle & MANGLE_COUNT)
			b->count = odd_word(r);
		if (call->mangle & MANGLE_ELEM_SIZE)
			b->elem_size = choose_elem_size(io, r);
		if (call->mangle & MANGLE_CURSOR)
			b->cursor = odd_word(r);
		/* A count beyond the array is only used in calls that must fail. */
		if (b->count > n && b->count <= TIMERWHEEL_BATCH_MAX)
			n = b->count;
		io->elems_len = n * io->elem;
		make_elems(io, call->op, n, view, r);
		if (view->clean && elems > PLACE_EDGE)
			elems = PLACE_PLAIN;
		spot_choose(&w->elems_arena, elems, call->elems_cut, call->cold & 2,
			    io->elems_len, &io->elems_at);
		spot_fill(&io->elems_at, io->elems, io->elems_len);
		b->elems = (uintptr_t)io->elems_at.p;
	}
	if (call->mangle & MANGLE_FLAGS)
		((__u32 *)io->arg)[1] = odd_word(r);
	io->info.size = io->size;
	if (io->size > io->known && io->arg_len > io->known && one_in(r, 3))
		io->arg[io->known + rnd_to(r, io->arg_len - io->known)] ^= 1 << rnd_to(r, 8);
	if (view->clean && place == PLACE_FLIP)
		place = PLACE_ODD;
	spot_choose(&w->arena, place, call->cut, call->cold & 1, io->arg_len, &io->at);
	spot_fill(&io->at, io->arg, io->arg_len);
}

unsigned int args_errors(const struct io *io, unsigned int op)
{
	const struct spot *at = &io->at;
	const struct timerwheel_batch *b = &io->batch;
	unsigned int errors = 0;

	if (at->flips)		/* any of these errors, or none */
		return MAY_EFAULT | MAY_EINVAL | MAY_E2BIG;
	if (at->rd < 4)
		return MAY_EFAULT;
	if (io->size > (size_t)getpagesize())
		return MAY_E2BIG;
	if (io->size < ioctls[op].min)
		return MAY_EINVAL;
	if (ioctls[op].out) {
		if (at->rw < io->size)
			errors |= MAY_EFAULT;
		if (at->rd >= 8 && io->info.flags)
			errors |= MAY_EINVAL;
		return errors;
	}
	if (at->rd < io->size || (ioctls[op].back && at->rw < least(io->size, io->known)))
		errors |= MAY_EFAULT;
	if (!zeros(io->arg, io->known, least(io->size, at->rd)))
		errors |= MAY_E2BIG;
	if (at->rd < io->known)
		return errors;
	if (op == OP_SETUP)
		errors |= setup_errors(&io->setup);
	if (op == OP_MONITOR && monitor_invalid(&io->monitor))
		errors |= MAY_EINVAL;
	if (op == OP_ADVANCE && io->advance.flags & ~TIMERWHEEL_ABS)
		errors |= MAY_EINVAL;
	if (!io->elem)
		return errors;
	if (b->flags & ~flags_known(op))
		errors |= MAY_EINVAL;
	if ((b->cursor && op != OP_LIST) || b->elem_size < io->elem)
		errors |= MAY_EINVAL;
	if (b->elem_size > io->elem || b->count > TIMERWHEEL_BATCH_MAX)
		errors |= MAY_E2BIG;
	return errors;
}

/* Memory for a read of call->count events and some bytes, in elems_at; poisoned. */
void args_read(struct worker *w, const struct call *call, const struct view *view)
{
	struct io *io = &w->io;
	__u64 state = call->seed;
	unsigned int place = view->clean && call->elems > PLACE_EDGE ? PLACE_PLAIN : call->elems;

	io->elems_len = call->count * sizeof(struct timerwheel_event);
	if (one_in(&state, 4))
		io->elems_len += rnd_to(&state, sizeof(struct timerwheel_event));
	memset(io->elems, POISON, io->elems_len);
	spot_choose(&w->elems_arena, place, call->elems_cut, call->cold & 2, io->elems_len,
		    &io->elems_at);
	spot_fill(&io->elems_at, io->elems, io->elems_len);
}

unsigned int error_bit(int err)
{
	switch (err) {
	case EINVAL:
		return MAY_EINVAL;
	case E2BIG:
		return MAY_E2BIG;
	case EFAULT:
		return MAY_EFAULT;
	case EBUSY:
		return MAY_EBUSY;
	case EAGAIN:
		return MAY_EAGAIN;
	case EINTR:
		return MAY_EINTR;
	case EPERM:
		return MAY_EPERM;
	case EOPNOTSUPP:
		return MAY_EOPNOTSUPP;
	case ENOSPC:
		return MAY_ENOSPC;
	case ENOMEM:
	case EDQUOT:	/* the same by the administrator's limit */
		return MAY_ENOMEM;
	default:
		return 0;
	}
}

/* Do the argument and the array hold what io says they must? */
bool args_kept(struct worker *w)
{
	struct io *io = &w->io;
	const char *what;

	what = spot_differs(&io->at, io->arg, io->arg_len);
	if (what) {
		wrong(w, "the argument: %s", what);
		return false;
	}
	what = io->elem ? spot_differs(&io->elems_at, io->elems, io->elems_len) : NULL;
	if (what)
		wrong(w, "the array: %s", what);
	return !what;
}
