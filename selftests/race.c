// SPDX-License-Identifier: GPL-2.0
/*
 * race: every operation against expiry and against every other operation, on two and four CPUs,
 * with a ledger that must balance exactly.
 *
 * Each arming has a version, which is part of the timer's value. Each report of the end of a
 * version (an event, the result of a REMOVE, an ADD with MATCH, a DRAIN) is recorded for it; a
 * second end is an error at once. An ADD without MATCH does not report the version it replaced, so
 * the test counts these ADDs per key. At the end each version must have had exactly one end, except
 * for the number of versions of each key that such ADDs replaced, and the counters of STATS must
 * equal the counters of the threads.
 *
 * A logical clock, incremented with each use, orders the calls: a read that began after a REMOVE
 * had returned must not return the event of the removed timer.
 *
 * TW_RACE_SECONDS: running time of each scenario (2 s: all scenarios together run for more than 30
 * s with two CPUs, and again with four). TW_SEED: see tw_test.h. TW_PROBE_LOCKS: run
 * foreign.bounds_waits.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include "tw_test.h"
#include "../lib/timerwheel-mapped.h"

#define VERSIONS	(8U << 20)	/* a scenario ends when they are used up */
#define BATCH		8		/* elements in a call, at most */
#define READ_MAX	64		/* events in a read, at most */
#define THREADS		64
#define TIMEOUT		900		/* for one test, in s */
#define EV_SIZE		sizeof(struct timerwheel_event)

#define VALUE_MAGIC	(0x5aULL << 56)
#define VALUE(key, v)	(VALUE_MAGIC | (__u64)(key) << 32 | (v))
#define VERSION_OF(val)	((__u32)(val))

/* The known state of a version. All except ARMED are ends. */
enum fate {
	ARMED		= 1 << 0,
	DELIVERED	= 1 << 1,	/* if periodic: at least once, and not an end */
	REMOVED		= 1 << 2,
	REPLACED	= 1 << 3,
	DRAINED		= 1 << 4,
	ENDS		= DELIVERED | REMOVED | REPLACED | DRAINED
};

/* The operations of workers; a scenario has a weight for each */
enum op {
	OP_ADD,			/* may replace a timer: it is not known which version */
	OP_EXCL,
	OP_ADD_MATCH,
	OP_MOVE,
	OP_MOVE_MATCH,
	OP_REMOVE,
	OP_REMOVE_MATCH,
	OP_GET,
	OP_LIST,
	OP_DRAIN,
	OP_MOVE_HANDLE,
	OP_REMOVE_HANDLE,
	OPS
};

struct scenario {
	unsigned char weight[OPS];	/* of shared-key workers */
	int workers;			/* per CPU */
	int owners;			/* per CPU: threads with keys of their own */
	int readers;
	int listers;
	int advancers;			/* on the MANUAL clock */
	__u32 keys;			/* shared by the workers */
	__u32 own_keys;			/* of each owner */
	__u32 stable_keys;		/* that do not change, for the listers */
	__u32 capacity;			/* of the wheel; 0: more than enough */
	__u32 ring;			/* length of the event ring; 0: events are read */
	bool due;			/* every timer is due when it is armed */
	bool periodic;			/* timers with odd keys are periodic */
	bool signals;
	bool hotplug;
};

struct counts {
	__u64 armed, rearmed, moved, removed, replaced, drained, delivered, overruns, withdrawn;
};

struct world;

struct thread {
	pthread_t id;
	struct world *w;
	int number;		/* among the threads that do the same */
	int cpu;
	__u64 rnd;
	struct counts c;
	atomic_bool done;
};

struct world {
	const struct scenario *sc;
	int fd;
	struct timerwheel_ring *ring;
	__u64 seed;
	int cpus;
	int cpu[CPU_SETSIZE];		/* the CPUs that we may use */
	__u32 keys;			/* of all kinds */
	atomic_bool stop;		/* for the threads that arm and end timers... */
	atomic_bool stop_helpers;	/* ...and for the threads that disturb them */
	atomic_uint clock;
	atomic_uint errors;
	atomic_uint closed_at;		/* when DRAIN_CLOSE had returned; 0: not yet */
	int threads;
	struct thread thread[THREADS];
	struct counts total;
	/* by key */
	atomic_uint *last;		/* a version that may still exist */
	atomic_uint *nameless;		/* number replaced by ADDs without MATCH */
	atomic_ullong *handle;		/* index << 32 | generation of a timer that it had */
	/* by version */
	atomic_uint version;		/* the last one that was allocated */
	atomic_uchar *fate;
	atomic_uint *ended;		/* when its end was known; 0: not yet */
	__u32 *key_of;
	__u32 *period;
	unsigned long long *deadline;	/* as last armed or moved by its owner */
	atomic_ullong *event;		/* the (last) deadline that its event stands for */
	atomic_uint *beats;		/* periodic: deadlines that its events stand for */
};

/* Report an error, but limit the number of reports */
#define bad(w, fmt, ...) do {						\
	if (atomic_fetch_add(&(w)->errors, 1) < 20)			\
		fprintf(stderr, "# " fmt "\n", ##__VA_ARGS__);		\
} while (0)

static __u32 tick(struct world *w)
{
	return atomic_fetch_add(&w->clock, 1) + 1;
}

static __u32 below(struct thread *t, __u32 n)
{
	return n ? (tw_rand(&t->rnd) >> 32) % n : 0;
}

static bool running(struct world *w)
{
	return !atomic_load(&w->stop);
}

/* Move to the thread's CPU, which may be offline */
static void pin(struct thread *t)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(t->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* --- The ledger ------------------------------------------------------------- */

/* Allocate a version for @key. Returns 0 if none is left, which ends the scenario. */
static __u32 new_version(struct world *w, __u32 key, __u32 period, __u64 deadline)
{
	__u32 v = atomic_fetch_add(&w->version, 1) + 1;

	if (v >= VERSIONS) {
		atomic_store(&w->stop, true);
		atomic_fetch_sub(&w->version, 1);
		return 0;
	}
	w->key_of[v] = key;
	w->period[v] = period;
	w->deadline[v] = deadline;
	return v;
}

/* The version in a value that came from the kernel with @key, or 0 if it is wrong */
static __u32 version_of(struct world *w, __u64 key, __u64 value, const char *what)
{
	__u32 v = VERSION_OF(value);

	if (v && v <= atomic_load(&w->version) && key < w->keys && w->key_of[v] == key &&
	    value == VALUE(key, v))
		return v;
	bad(w, "%s: key %llu has the value %#llx, which was never given to it", what,
	    (unsigned long long)key, (unsigned long long)value);
	return 0;
}

static void end_version(struct world *w, __u32 v, enum fate how)
{
	unsigned char old = atomic_fetch_or(&w->fate[v], how);

	atomic_store(&w->ended[v], tick(w));
	if (w->period[v])
		old &= ~DELIVERED;
	if (old & ENDS)
		bad(w, "version %u of key %u has two ends: %#x and %#x", v, w->key_of[v],
		    old & ENDS, how);
}

/* A call that began at @since has reported that @v exists */
static void still_there(struct world *w, __u32 v, __u32 since, const char *what)
{
	__u32 ended = atomic_load(&w->ended[v]);

	if (ended && (__s32)(ended - since) < 0)
		bad(w, "%s: version %u of key %u had ended before (%#x)", what, v,
		    w->key_of[v], atomic_load(&w->fate[v]));
}

static void count_result(struct thread *t, int result, __u64 *count)
{
	*count += result >= 0;
	t->c.withdrawn += result == TIMERWHEEL_WAS_DUE;
}

/* An ADD for @v has succeeded */
static void armed(struct thread *t, __u32 v)
{
	unsigned char old = atomic_fetch_or(&t->w->fate[v], ARMED);

	t->c.armed++;
	if (old & ARMED)
		bad(t->w, "two ADDs of version %u succeeded", v);
}

/* --- Calls that a signal may interrupt -------------------------------------- */

static int call(struct thread *t, unsigned long cmd, void *elems, size_t size, int n,
		void (*done)(struct thread *t, void *elem, int i), const char *what)
{
	int i, ret, at = 0;

	while (at < n) {
		ret = tw_batch(t->w->fd, cmd, 0, (char *)elems + at * size, size, n - at, NULL);
		if (ret <= 0 || ret > n - at) {
			bad(t->w, "%s: %d of %d elements", what, ret, n - at);
			return -1;
		}
		for (i = at; i < at + ret; i++)
			done(t, (char *)elems + i * size, i);
		at += ret;
	}
	return 0;
}

static __u64 some_delay(struct thread *t)
{
	static const __u64 delay[] = {
		0, 0, 50 * USEC, 300 * USEC, MSEC, MSEC, 2 * MSEC, 5 * MSEC, 20 * MSEC, HOUR,
	};
	const struct scenario *sc = t->w->sc;

	if (sc->due)
		return 0;
	if (sc->advancers)
		return below(t, 200);
	return delay[below(t, ARRAY_SIZE(delay))];
}

/* Choose a deadline and its flag: relative, absolute, or in the past */
static __u64 some_deadline(struct thread *t, __u32 *flags)
{
	__u64 delay = some_delay(t);

	if (t->w->sc->advancers || below(t, 2))
		return delay;
	*flags |= TIMERWHEEL_ABS;
	return below(t, 8) ? tw_now(CLOCK_MONOTONIC) + delay : 1;
}

/* --- Workers: shared keys ------------------------------------------------------- */

static bool is_error(int result)
{
	return result == -ENOENT || result == -EEXIST || result == -ESTALE;
}

static void worker_added(struct thread *t, void *elem, int i)
{
	struct timerwheel_add *add = elem;
	struct world *w = t->w;
	__u32 v = VERSION_OF(add->value);

	(void)i;
	if (add->result < 0) {
		if (!is_error(add->result) && !(add->result == -ENOSPC && w->sc->capacity))
			bad(w, "ADD: result %d", add->result);
		return;
	}
	armed(t, v);
	atomic_store(&w->last[add->key], v);
	atomic_store(&w->handle[add->key], (__u64)add->index << 32 | add->generation);
	if (add->result == TIMERWHEEL_WAS_NONE) {
		if (add->flags & TIMERWHEEL_MATCH)
			bad(w, "ADD with MATCH: there was nothing");
		return;
	}
	if (add->flags & TIMERWHEEL_EXCL)
		bad(w, "ADD with EXCL: replaced a timer");
	count_result(t, add->result, &t->c.replaced);
	if (add->flags & TIMERWHEEL_MATCH)
		end_version(w, VERSION_OF(add->match), REPLACED);
	else
		atomic_fetch_add(&w->nameless[add->key], 1);
}

static void worker_moved(struct thread *t, void *elem, int i)
{
	struct timerwheel_move *move = elem;

	(void)i;
	if (move->result > 0)
		count_result(t, move->result, &t->c.moved);
	else if (!is_error(move->result))
		bad(t->w, "MOVE: result %d", move->result);
}

static void worker_removed(struct thread *t, void *elem, int i)
{
	struct timerwheel_remove *rem = elem;
	struct world *w = t->w;
	__u32 v;

	(void)i;
	if (rem->result <= 0) {
		if (!is_error(rem->result))
			bad(w, "REMOVE: result %d", rem->result);
		return;
	}
	count_result(t, rem->result, &t->c.removed);
	if (rem->flags & TIMERWHEEL_MATCH && rem->value != rem->match)
		bad(w, "REMOVE with MATCH: another value");
	if (rem->result == TIMERWHEEL_WAS_DUE && rem->left > 0)
		bad(w, "REMOVE: due with %lld ns left", (long long)rem->left);
	v = version_of(w, rem->key, rem->value, "REMOVE");
	if (v)
		end_version(w, v, REMOVED);
}

static void drained(struct thread *t, const struct timerwheel_entry *ent)
{
	__u32 v = version_of(t->w, ent->key, ent->value, "DRAIN");

	if (ent->result != TIMERWHEEL_WAS_PENDING && ent->result != TIMERWHEEL_WAS_DUE)
		bad(t->w, "DRAIN: result %d", ent->result);
	count_result(t, ent->result, &t->c.drained);
	if (v)
		end_version(t->w, v, DRAINED);
}

static void worker_add(struct thread *t, __u32 flags)
{
	struct timerwheel_add add[BATCH];
	int i, n = below(t, 2) ? 1 : 1 + below(t, BATCH);
	struct world *w = t->w;

	memset(add, 0, sizeof(add));
	for (i = 0; i < n; i++) {
		__u32 v, key = below(t, w->sc->keys), last = atomic_load(&w->last[key]);

		add[i].key = key;
		add[i].flags = flags;
		add[i].deadline = some_deadline(t, &add[i].flags);
		if (flags & TIMERWHEEL_MATCH)
			add[i].match = VALUE(key, last);
		if (w->sc->periodic && key % 2) {
			add[i].period = (200 + key % 8 * 100) * USEC;
			add[i].flags |= TIMERWHEEL_ABS;
			add[i].deadline = tw_now(CLOCK_MONOTONIC) + some_delay(t);
		}
		v = new_version(w, key, add[i].period, add[i].deadline);
		if (!v)
			return;
		add[i].value = VALUE(key, v);
		tw_poison(&add[i].result, sizeof(add[i].result));
	}
	call(t, TIMERWHEEL_IOC_ADD, add, sizeof(*add), n, worker_added, "ADD");
}

static void worker_move(struct thread *t, __u32 flags)
{
	struct timerwheel_move move[BATCH];
	int i, n = below(t, 2) ? 1 : 1 + below(t, BATCH);
	struct world *w = t->w;

	memset(move, 0, sizeof(move));
	for (i = 0; i < n; i++) {
		__u32 key = below(t, w->sc->keys);

		if (w->sc->periodic)
			key &= ~1;	/* a moved one is out of step */
		move[i].key = key;
		move[i].flags = flags;
		move[i].deadline = some_deadline(t, &move[i].flags);
		if (flags & TIMERWHEEL_MATCH)
			move[i].match = VALUE(key, atomic_load(&w->last[key]));
		tw_poison(&move[i].result, sizeof(move[i].result));
	}
	call(t, TIMERWHEEL_IOC_MOVE, move, sizeof(*move), n, worker_moved, "MOVE");
}

static void worker_remove(struct thread *t, __u32 flags)
{
	struct timerwheel_remove rem[BATCH];
	int i, n = below(t, 2) ? 1 : 1 + below(t, BATCH);
	struct world *w = t->w;

	tw_poison(rem, sizeof(rem));
	for (i = 0; i < n; i++) {
		__u32 key = below(t, w->sc->keys);

		rem[i].key = key;
		rem[i].flags = flags;
		rem[i].match = 0;
		if (flags & TIMERWHEEL_MATCH)
			rem[i].match = VALUE(key, atomic_load(&w->last[key]));
	}
	call(t, TIMERWHEEL_IOC_REMOVE, rem, sizeof(*rem), n, worker_removed, "REMOVE");
}

static void worker_handle_moved(struct thread *t, void *elem, int i)
{
	struct timerwheel_move_handle *move = elem;

	(void)i;
	if (move->result > 0)
		count_result(t, move->result, &t->c.moved);
	else if (move->result != -ENOENT)
		bad(t->w, "MOVE_HANDLE: result %d", move->result);
}

/*
 * The handle may be stale. After many owners of the index it may refer to another timer, which the
 * value identifies.
 */
static void worker_handle_removed(struct thread *t, void *elem, int i)
{
	struct timerwheel_remove_handle *rem = elem;
	struct world *w = t->w;
	__u32 v;

	(void)i;
	if (rem->result <= 0) {
		if (rem->result != -ENOENT)
			bad(w, "REMOVE_HANDLE: result %d", rem->result);
		return;
	}
	count_result(t, rem->result, &t->c.removed);
	v = version_of(w, rem->value >> 32 & 0xffffff, rem->value, "REMOVE_HANDLE");
	if (v)
		end_version(w, v, REMOVED);
}

static void worker_move_handle(struct thread *t)
{
	struct timerwheel_move_handle move[BATCH];
	int i, n = below(t, 2) ? 1 : 1 + below(t, BATCH);
	struct world *w = t->w;

	for (i = 0; i < n; i++) {
		__u32 key = below(t, w->sc->keys);
		__u64 handle = atomic_load(&w->handle[w->sc->periodic ? key & ~1 : key]);

		move[i].deadline = some_delay(t);
		move[i].index = handle >> 32;
		move[i].generation = handle;
	}
	call(t, TIMERWHEEL_IOC_MOVE_HANDLE, move, sizeof(*move), n, worker_handle_moved,
	     "MOVE_HANDLE");
}

static void worker_remove_handle(struct thread *t)
{
	struct timerwheel_remove_handle rem[BATCH];
	int i, n = below(t, 2) ? 1 : 1 + below(t, BATCH);
	struct world *w = t->w;

	for (i = 0; i < n; i++) {
		__u64 handle = atomic_load(&w->handle[below(t, w->sc->keys)]);

		tw_poison(&rem[i].value, sizeof(rem[i].value));
		rem[i].index = handle >> 32;
		rem[i].generation = handle;
	}
	call(t, TIMERWHEEL_IOC_REMOVE_HANDLE, rem, sizeof(*rem), n, worker_handle_removed,
	     "REMOVE_HANDLE");
}

static void worker_get(struct thread *t)
{
	struct world *w = t->w;
	struct timerwheel_entry ent;
	__u32 v, key = below(t, w->sc->keys), since = tick(w);
	int ret = tw_get1(w->fd, key, &ent);

	if (ret == -ENOENT)
		return;
	if (ret != TIMERWHEEL_WAS_PENDING && ret != TIMERWHEEL_WAS_DUE) {
		bad(w, "GET: result %d", ret);
		return;
	}
	v = version_of(w, ent.key, ent.value, "GET");
	if (v)
		still_there(w, v, since, "GET");
}

/* One call of LIST that begins at @cursor. Returns the number of timers, or -errno. */
static int list_page(struct thread *t, __u64 *cursor, struct timerwheel_entry *ent, int n)
{
	__u32 v, since = tick(t->w);
	int i, ret = tw_list(t->w->fd, cursor, ent, n);

	for (i = 0; i < ret; i++) {
		v = version_of(t->w, ent[i].key, ent[i].value, "LIST");
		if (v)
			still_there(t->w, v, since, "LIST");
	}
	return ret;
}

static void worker_list(struct thread *t)
{
	struct timerwheel_entry ent[16];
	__u64 cursor = 0;
	int i, ret;

	for (i = 0; i < 4; i++) {
		ret = list_page(t, &cursor, ent, 1 + below(t, ARRAY_SIZE(ent)));
		if (ret < 0)
			bad(t->w, "LIST: %d", ret);
		if (ret <= 0)
			return;
	}
}

static void worker_drain(struct thread *t)
{
	struct timerwheel_entry ent[16];
	int i, ret = tw_drain(t->w->fd, 0, ent, 1 + below(t, ARRAY_SIZE(ent)));

	if (ret < 0)
		bad(t->w, "DRAIN: %d", ret);
	for (i = 0; i < ret; i++)
		drained(t, &ent[i]);
}

static void worker_op(struct thread *t, enum op op)
{
	switch (op) {
	case OP_ADD:
		return worker_add(t, 0);
	case OP_EXCL:
		return worker_add(t, TIMERWHEEL_EXCL);
	case OP_ADD_MATCH:
		return worker_add(t, TIMERWHEEL_MATCH);
	case OP_MOVE:
		return worker_move(t, 0);
	case OP_MOVE_MATCH:
		return worker_move(t, TIMERWHEEL_MATCH);
	case OP_REMOVE:
		return worker_remove(t, 0);
	case OP_REMOVE_MATCH:
		return worker_remove(t, TIMERWHEEL_MATCH);
	case OP_GET:
		return worker_get(t);
	case OP_LIST:
		return worker_list(t);
	case OP_DRAIN:
		return worker_drain(t);
	case OP_MOVE_HANDLE:
		return worker_move_handle(t);
	case OP_REMOVE_HANDLE:
		return worker_remove_handle(t);
	case OPS:
		break;
	}
}

static void *worker_main(void *arg)
{
	struct thread *t = arg;
	const unsigned char *weight = t->w->sc->weight;
	int i, sum = 0, at, op;

	for (op = 0; op < OPS; op++)
		sum += weight[op];
	for (i = 0; running(t->w); i++) {
		if (i % 256 == 0)
			pin(t);
		at = below(t, sum);
		for (op = 0; at >= weight[op]; op++)
			at -= weight[op];
		worker_op(t, op);
	}
	atomic_store(&t->done, true);
	return NULL;
}

/* --- Owners: keys that no other thread changes, so each result is known ------------- */

struct own {
	__u32 base;		/* the first of its keys */
	__u32 *now;		/* the version of each; 0: none, or it has fired */
	__u64 deadline[BATCH];	/* of the elements of a call */
};

static __thread struct own own;

static void owner_added(struct thread *t, void *elem, int i)
{
	struct timerwheel_add *add = elem;
	__u32 *now = &own.now[add->key - own.base];

	(void)i;
	if (add->result < 0) {
		bad(t->w, "ADD of an own key: result %d", add->result);
		return;
	}
	armed(t, VERSION_OF(add->value));
	if (add->result != TIMERWHEEL_WAS_NONE) {
		count_result(t, add->result, &t->c.replaced);
		if (*now)
			end_version(t->w, *now, REPLACED);
		else
			bad(t->w, "ADD of an own key: there was nothing to replace");
	}
	*now = VERSION_OF(add->value);
}

static void owner_moved(struct thread *t, void *elem, int i)
{
	struct timerwheel_move *move = elem;
	__u32 *now = &own.now[move->key - own.base];

	if (move->result == -ENOENT) {
		*now = 0;
		return;
	}
	if (move->result <= 0 || !*now) {
		bad(t->w, "MOVE of an own key: result %d", move->result);
		return;
	}
	count_result(t, move->result, &t->c.moved);
	t->w->deadline[*now] = own.deadline[i];
}

static void owner_removed(struct thread *t, void *elem, int i)
{
	struct timerwheel_remove *rem = elem;
	__u32 *now = &own.now[rem->key - own.base];

	(void)i;
	if (rem->result != -ENOENT) {
		worker_removed(t, elem, i);
		if (rem->value != VALUE(rem->key, *now))
			bad(t->w, "REMOVE of an own key: value %#llx, not of version %u",
			    (unsigned long long)rem->value, *now);
	}
	*now = 0;
}

static void owner_get(struct thread *t, __u32 key)
{
	__u32 now = own.now[key - own.base];
	struct timerwheel_entry ent;
	int ret = tw_get1(t->w->fd, key, &ent);

	if (ret == -ENOENT)
		return;
	if (ret < 0 || !now || ent.value != VALUE(key, now) ||
	    ent.deadline != t->w->deadline[now])
		bad(t->w, "GET of an own key: result %d, value %#llx, deadline %llu; "
		    "it has version %u for %llu", ret, (unsigned long long)ent.value,
		    (unsigned long long)ent.deadline, now, t->w->deadline[now]);
}

static void owner_op(struct thread *t)
{
	union {
		struct timerwheel_add add[BATCH];
		struct timerwheel_move move[BATCH];
		struct timerwheel_remove rem[BATCH];
	} e;
	int i, n = below(t, 2) ? 1 : 1 + below(t, BATCH), op = below(t, 8);
	__u64 now = tw_now(CLOCK_MONOTONIC);
	__u32 key, v;

	memset(&e, 0, sizeof(e));
	for (i = 0; i < n; i++) {
		key = own.base + below(t, t->w->sc->own_keys);
		own.deadline[i] = now + some_delay(t);
		if (op < 3) {
			v = new_version(t->w, key, 0, own.deadline[i]);
			if (!v)
				return;
			e.add[i].key = key;
			e.add[i].value = VALUE(key, v);
			e.add[i].deadline = own.deadline[i];
			e.add[i].flags = TIMERWHEEL_ABS;
		} else if (op < 5) {
			e.move[i].key = key;
			e.move[i].deadline = own.deadline[i];
			e.move[i].flags = TIMERWHEEL_ABS;
		} else if (op < 7) {
			e.rem[i].key = key;
		} else {
			return owner_get(t, key);
		}
	}
	if (op < 3)
		call(t, TIMERWHEEL_IOC_ADD, e.add, sizeof(*e.add), n, owner_added, "ADD");
	else if (op < 5)
		call(t, TIMERWHEEL_IOC_MOVE, e.move, sizeof(*e.move), n, owner_moved, "MOVE");
	else
		call(t, TIMERWHEEL_IOC_REMOVE, e.rem, sizeof(*e.rem), n, owner_removed, "REMOVE");
}

static void *owner_main(void *arg)
{
	struct thread *t = arg;
	int i;

	own.base = t->w->sc->keys + t->number * t->w->sc->own_keys;
	own.now = calloc(t->w->sc->own_keys, sizeof(*own.now));
	for (i = 0; own.now && running(t->w); i++) {
		if (i % 256 == 0)
			pin(t);
		owner_op(t);
	}
	free(own.now);
	atomic_store(&t->done, true);
	return NULL;
}

/* --- Readers ------------------------------------------------------------------------ */

static void got_event(struct thread *t, const struct timerwheel_event *ev, __u32 since)
{
	struct world *w = t->w;
	__u32 v = version_of(w, ev->key, ev->value, "event");
	unsigned long long covers, before;

	t->c.delivered++;
	t->c.overruns += ev->overruns;
	if (ev->fired < ev->deadline)
		bad(w, "event of key %llu: %llu ns early", (unsigned long long)ev->key,
		    (unsigned long long)(ev->deadline - ev->fired));
	if (!w->sc->advancers && ev->fired > tw_now(CLOCK_MONOTONIC))
		bad(w, "event of key %llu: fired in the future", (unsigned long long)ev->key);
	if (!v)
		return;
	still_there(w, v, since, "event");
	if (ev->flags != (w->period[v] ? TIMERWHEEL_EVENT_PERIODIC : 0))
		bad(w, "event of version %u: flags %#x", v, ev->flags);
	if (!w->period[v]) {
		if (ev->overruns)
			bad(w, "event of version %u: overruns of a one-shot timer", v);
		end_version(w, v, DELIVERED);
		atomic_store(&w->event[v], ev->deadline);
		return;
	}
	t->c.rearmed++;
	atomic_fetch_or(&w->fate[v], DELIVERED);
	atomic_fetch_add(&w->beats[v], 1 + ev->overruns);
	covers = ev->deadline + ev->overruns * w->period[v];
	before = atomic_load(&w->event[v]);
	while (before < covers && !atomic_compare_exchange_weak(&w->event[v], &before, covers))
		;
}

/*
 * Half of the readers sleep in read, the others in poll. Sometimes the buffer ends in memory that
 * faults.
 */
static void *reader_main(void *arg)
{
	struct timerwheel_event ev[READ_MAX], *short_buf = tw_fence(5 * EV_SIZE + 20);
	struct thread *t = arg;
	struct world *w = t->w;
	int i, round;

	for (round = 0; running(w); round++) {
		struct iovec iov = { .iov_len = (1 + below(t, READ_MAX)) * EV_SIZE };
		ssize_t n;
		__u32 since;

		if (round % 256 == 0)
			pin(t);
		iov.iov_base = below(t, 8) ? ev : short_buf;
		if (t->number % 2 && dev_poll(w->fd, 5) <= 0)
			continue;
		since = tick(w);
		n = tw_err(preadv2(w->fd, &iov, 1, -1, t->number % 2 ? RWF_NOWAIT : 0));
		if (n == -EINTR || n == -EAGAIN)
			continue;
		if (n <= 0 || n % EV_SIZE) {
			bad(w, "read: %zd", n);
			continue;
		}
		for (i = 0; i < n / (ssize_t)EV_SIZE; i++)
			got_event(t, (struct timerwheel_event *)iov.iov_base + i, since);
	}
	atomic_store(&t->done, true);
	return NULL;
}

/* Take events from the ring, for one thread at a time. Returns the number of events. */
static unsigned int take(struct thread *t, unsigned int max)
{
	struct timerwheel_event ev[READ_MAX];
	unsigned int n, i;

	n = timerwheel_ring_take(TW_RING(t->w->ring), ev, max);
	/* An event may have been in the ring for any time. */
	for (i = 0; i < n; i++)
		got_event(t, &ev[i], 0);
	return n;
}

/* The reader of a ring: a single thread */
static void *ring_reader_main(void *arg)
{
	struct thread *t = arg;
	struct world *w = t->w;
	int round;

	for (round = 0; running(w); round++) {
		if (round % 256 == 0)
			pin(t);
		if (take(t, 1 + below(t, READ_MAX)))
			continue;
		switch (timerwheel_ring_sleep(TW_RING(w->ring))) {
		case TIMERWHEEL_RING_TAKE:
			break;
		case TIMERWHEEL_RING_FLOW:
			if (ioctl(w->fd, TIMERWHEEL_IOC_FLOW) < 0)
				bad(w, "FLOW: %s", strerror(errno));
			break;
		case TIMERWHEEL_RING_POLL:
			dev_poll(w->fd, 5);
			break;
		}
	}
	atomic_store(&t->done, true);
	return NULL;
}

/* --- Other threads --------------------------------------------------------------------- */

/* LIST all timers repeatedly: each stable key is returned exactly once */
static void *lister_main(void *arg)
{
	struct timerwheel_entry ent[64];
	struct thread *t = arg;
	struct world *w = t->w;
	__u32 i, k, first = w->keys - w->sc->stable_keys;
	unsigned char *seen = calloc(w->sc->stable_keys, 1);

	while (seen && running(w)) {
		__u64 cursor = 0;
		int ret;

		pin(t);
		memset(seen, 0, w->sc->stable_keys);
		do {
			ret = list_page(t, &cursor, ent, 1 + below(t, ARRAY_SIZE(ent)));
			for (i = 0; ret > 0 && i < (__u32)ret; i++) {
				k = ent[i].key - first;
				if (k < w->sc->stable_keys && seen[k] < 2)
					seen[k]++;
			}
		} while (ret > 0);
		if (ret)
			bad(w, "LIST: %d", ret);
		for (k = 0; k < w->sc->stable_keys; k++) {
			if (seen[k] != 1)
				bad(w, "LIST: key %u, which stays, seen %s", first + k,
				    seen[k] ? "twice" : "never");
		}
	}
	free(seen);
	atomic_store(&t->done, true);
	return NULL;
}

static void *advancer_main(void *arg)
{
	struct thread *t = arg;
	__s64 ret;

	while (running(t->w)) {
		ret = tw_advance(t->w->fd, 0, below(t, 50));
		if (ret < 0)
			bad(t->w, "ADVANCE: %lld", (long long)ret);
		sched_yield();
	}
	atomic_store(&t->done, true);
	return NULL;
}

static void *signaller_main(void *arg)
{
	struct thread *t = arg;
	struct world *w = t->w;

	while (!atomic_load(&w->stop_helpers)) {
		struct thread *to = &w->thread[below(t, w->threads)];

		if (to != t && !atomic_load(&to->done))
			pthread_kill(to->id, SIGUSR1);
		tw_sleep(below(t, 1000) * USEC);
	}
	atomic_store(&t->done, true);
	return NULL;
}

/* All CPUs except the first go offline and come back */
static void *hotplug_main(void *arg)
{
	struct thread *t = arg;
	struct world *w = t->w;
	int n = 0;

	while (!atomic_load(&w->stop_helpers)) {
		int cpu = w->cpu[1 + below(t, w->cpus - 1)];

		if (tw_cpu_online(cpu, false)) {
			bad(w, "CPU %d does not go offline", cpu);
			break;
		}
		tw_sleep(below(t, 20) * MSEC);
		if (tw_cpu_online(cpu, true))
			bad(w, "CPU %d does not come back", cpu);
		tw_sleep(below(t, 20) * MSEC);
		n++;
	}
	fprintf(stderr, "# CPUs went offline and came back %d times\n", n);
	atomic_store(&t->done, true);
	return NULL;
}

/* --- A scenario from beginning to end ------------------------------------------------------ */

static void on_signal(int sig)
{
	(void)sig;
}

static void *zeroes(size_t n, size_t size)
{
	void *p = mmap(NULL, n * size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static unsigned int seconds(void)
{
	const char *s = getenv("TW_RACE_SECONDS");
	unsigned int n = s ? atoi(s) : 2;

	return n ?: 1;
}

/* Find the usable CPUs, at most @want. Returns their number. */
static int find_cpus(struct world *w, int want)
{
	cpu_set_t set;
	int i;

	w->cpus = 0;
	if (sched_getaffinity(0, sizeof(set), &set))
		return 0;
	for (i = 0; i < CPU_SETSIZE && w->cpus < want; i++) {
		if (CPU_ISSET(i, &set))
			w->cpu[w->cpus++] = i;
	}
	return w->cpus;
}

/* Create a ledger for @keys keys and a wheel with a short tick. Returns 0 or -errno. */
static int open_world(struct world *w, __u32 keys, bool manual)
{
	struct timerwheel_setup setup = { .capacity = w->sc->capacity };
	struct timerwheel_info info;
	int ret;

	w->keys = keys;
	w->last = zeroes(keys, sizeof(*w->last));
	w->nameless = zeroes(keys, sizeof(*w->nameless));
	w->handle = zeroes(keys, sizeof(*w->handle));
	w->fate = zeroes(VERSIONS, sizeof(*w->fate));
	w->ended = zeroes(VERSIONS, sizeof(*w->ended));
	w->key_of = zeroes(VERSIONS, sizeof(*w->key_of));
	w->period = zeroes(VERSIONS, sizeof(*w->period));
	w->deadline = zeroes(VERSIONS, sizeof(*w->deadline));
	w->event = zeroes(VERSIONS, sizeof(*w->event));
	w->beats = zeroes(VERSIONS, sizeof(*w->beats));
	w->fd = dev_open(0);
	if (w->fd < 0)
		return w->fd;
	ret = tw_info(w->fd, &info);
	if (ret)
		return ret;
	setup.clock = manual ? TIMERWHEEL_CLOCK_MANUAL : TIMERWHEEL_CLOCK_MONOTONIC;
	setup.tick = manual ? 1 : info.tick_min > 200 * USEC ? info.tick_min : 200 * USEC;
	/* few slots: many cascades */
	setup.slots = w->seed & 1 ? info.slots_min : 0;
	setup.ring = w->sc->ring;
	ret = dev_setup(w->fd, &setup);
	if (ret || !setup.ring)
		return ret;
	w->ring = mmap(NULL, TIMERWHEEL_RING_EVENTS + setup.ring * EV_SIZE, PROT_READ | PROT_WRITE,
		       MAP_SHARED, w->fd, TIMERWHEEL_MMAP_RING);
	return w->ring == MAP_FAILED ? -errno : 0;
}

static struct thread *start(struct world *w, void *(*fn)(void *), int number)
{
	struct thread *t = &w->thread[w->threads];

	if (w->threads >= THREADS)
		abort();
	t->w = w;
	t->number = number;
	t->cpu = w->cpu[w->threads % w->cpus];
	t->rnd = w->seed + 0x9e3779b97f4a7c15ULL * (w->threads + 1);
	t->rnd = t->rnd ?: 1;
	if (pthread_create(&t->id, NULL, fn, t))
		abort();
	w->threads++;
	return t;
}

static void add_counts(struct counts *to, const struct counts *c)
{
	to->armed += c->armed;
	to->rearmed += c->rearmed;
	to->moved += c->moved;
	to->removed += c->removed;
	to->replaced += c->replaced;
	to->drained += c->drained;
	to->delivered += c->delivered;
	to->overruns += c->overruns;
	to->withdrawn += c->withdrawn;
}

/* Stop all threads; sleeping threads get a signal */
static void join_all(struct world *w)
{
	int i;

	atomic_store(&w->stop, true);
	atomic_store(&w->stop_helpers, true);
	for (i = 0; i < w->threads; i++) {
		struct thread *t = &w->thread[i];

		while (!atomic_load(&t->done)) {
			pthread_kill(t->id, SIGUSR1);
			tw_sleep(MSEC);
		}
		pthread_join(t->id, NULL);
		add_counts(&w->total, &t->c);
	}
}

/* Drain the remaining timers, so that each version has ended */
static void drain_rest(struct world *w)
{
	static struct timerwheel_entry ent[1024];
	struct thread t = { .w = w };
	int i, n;

	while ((n = tw_drain(w->fd, 0, ent, ARRAY_SIZE(ent))) > 0) {
		for (i = 0; i < n; i++)
			drained(&t, &ent[i]);
	}
	if (n)
		bad(w, "the last DRAIN: %d", n);
	while (w->sc->ring && take(&t, READ_MAX))
		;
	add_counts(&w->total, &t.c);
}

/* Check the end of each version and, if it is periodic, that its events cover each deadline */
static void check_versions(struct world *w)
{
	__u32 *unknown = zeroes(w->keys, sizeof(*unknown));
	__u32 v, key, last = atomic_load(&w->version);

	for (v = 1; v <= last; v++) {
		unsigned char ends, fate = atomic_load(&w->fate[v]);
		__u32 period = w->period[v], beats = atomic_load(&w->beats[v]);

		ends = fate & (period ? ENDS & ~DELIVERED : ENDS);
		if (!(fate & ARMED)) {
			if (fate)
				bad(w, "version %u never was armed, and ended: %#x", v, fate);
			continue;
		}
		if (!ends)
			unknown[w->key_of[v]]++;
		if (w->key_of[v] >= w->sc->keys && !period && ends == DELIVERED &&
		    atomic_load(&w->event[v]) != w->deadline[v])
			bad(w, "version %u: its event is for %llu, its deadline was %llu", v,
			    atomic_load(&w->event[v]), w->deadline[v]);
		if (beats && atomic_load(&w->event[v]) !=
			     w->deadline[v] + (beats - 1) * (__u64)period)
			bad(w, "version %u: %u deadlines from %llu on by %u, but the last is %llu",
			    v, beats, w->deadline[v], period, atomic_load(&w->event[v]));
	}
	for (key = 0; key < w->keys; key++) {
		if (unknown[key] != atomic_load(&w->nameless[key]))
			bad(w, "key %u: %u versions have no end, %u were replaced", key,
			    unknown[key], atomic_load(&w->nameless[key]));
	}
}

/* Check that the kernel's counters equal the counters of the threads. */
static void check_stats(struct __test_metadata *_metadata, struct world *w)
{
	const struct counts *c = &w->total;
	struct timerwheel_stats st;

	ASSERT_EQ(0, tw_stats(w->fd, &st));
	EXPECT_EQ(0, st.pending);
	EXPECT_EQ(0, st.due);
	EXPECT_EQ(c->armed, st.armed);
	EXPECT_EQ(c->rearmed, st.rearmed);
	EXPECT_EQ(c->moved, st.moved);
	EXPECT_EQ(c->removed, st.removed);
	EXPECT_EQ(c->replaced, st.replaced);
	EXPECT_EQ(c->drained, st.drained);
	EXPECT_EQ(c->delivered, st.delivered);
	EXPECT_EQ(c->overruns, st.overruns);
	EXPECT_EQ(c->withdrawn, st.withdrawn);
	EXPECT_TRUE(tw_balanced(&st));
}

static void print_counts(const struct counts *c)
{
	printf("# %llu armed, %llu rearmed, %llu moved, %llu withdrawn;",
	       (unsigned long long)c->armed, (unsigned long long)c->rearmed,
	       (unsigned long long)c->moved, (unsigned long long)c->withdrawn);
	printf(" %llu delivered, %llu removed, %llu replaced, %llu drained\n",
	       (unsigned long long)c->delivered, (unsigned long long)c->removed,
	       (unsigned long long)c->replaced, (unsigned long long)c->drained);
	fflush(stdout);
}

/* Arm the stable timers for the listers */
static void arm_stable(struct world *w)
{
	struct thread t = { .w = w, .rnd = w->seed };
	__u32 i, v, key;

	for (i = 0; i < w->sc->stable_keys; i++) {
		key = w->keys - w->sc->stable_keys + i;
		v = new_version(w, key, 0, 0);
		if (tw_add1(w->fd, key, VALUE(key, v), HOUR, 0))
			bad(w, "ADD of a key that stays failed");
		else
			armed(&t, v);
	}
	add_counts(&w->total, &t.c);
}

/* Check that one CPU can arm exactly as many timers as the wheel's capacity */
static void check_capacity(struct __test_metadata *_metadata, struct world *w)
{
	__u32 key;

	pin(&w->thread[0]);
	for (key = 0; key < w->sc->capacity; key++) {
		if (tw_add1(w->fd, key, 0, HOUR, 0))
			break;
	}
	EXPECT_EQ(w->sc->capacity, key);
	EXPECT_EQ(-ENOSPC, tw_add1(w->fd, w->sc->capacity, 0, HOUR, 0));
}

static void play(struct __test_metadata *_metadata, struct world *w, const struct scenario *sc)
{
	struct sigaction sa = { .sa_handler = on_signal };
	int i;

	w->sc = sc;
	w->seed = tw_seed();
	TH_LOG("TW_SEED=%llu", (unsigned long long)w->seed);
	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	ASSERT_EQ(0, open_world(w, sc->keys + w->cpus * sc->owners * sc->own_keys +
				   sc->stable_keys, sc->advancers));
	arm_stable(w);
	for (i = 0; i < sc->workers * w->cpus; i++)
		start(w, worker_main, i);
	for (i = 0; i < sc->owners * w->cpus; i++)
		start(w, owner_main, i);
	for (i = 0; i < sc->readers; i++)
		start(w, sc->ring ? ring_reader_main : reader_main, i);
	for (i = 0; i < sc->listers; i++)
		start(w, lister_main, i);
	for (i = 0; i < sc->advancers; i++)
		start(w, advancer_main, i);
	if (sc->hotplug)
		start(w, hotplug_main, 0);
	if (sc->signals)
		start(w, signaller_main, 0);
	for (i = seconds() * 20; i && running(w); i--)
		tw_sleep(50 * MSEC);
	join_all(w);
	drain_rest(w);
	check_versions(w);
	print_counts(&w->total);
	check_stats(_metadata, w);
	EXPECT_EQ(0, atomic_load(&w->errors));
	if (sc->capacity)
		check_capacity(_metadata, w);
	close(w->fd);
}

static struct world world;

FIXTURE(race) {
	struct world *w;
	bool too_few;
};

FIXTURE_VARIANT(race) {
	int cpus;
};

FIXTURE_VARIANT_ADD(race, two_cpus) {
	.cpus = 2,
};

FIXTURE_VARIANT_ADD(race, four_cpus) {
	.cpus = 4,
};

FIXTURE_SETUP(race)
{
	self->w = &world;
	self->too_few = find_cpus(self->w, variant->cpus) < variant->cpus;
}

FIXTURE_TEARDOWN(race)
{
	int i;

	for (i = 1; i < self->w->cpus; i++)
		tw_cpu_online(self->w->cpu[i], true);
}

/* All operations on the same few keys, by all threads. */
TEST_F_TIMEOUT(race, same_keys, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_ADD] = 30, [OP_EXCL] = 10, [OP_ADD_MATCH] = 10, [OP_MOVE] = 15,
			[OP_MOVE_MATCH] = 5, [OP_REMOVE] = 10, [OP_REMOVE_MATCH] = 5,
			[OP_GET] = 5, [OP_LIST] = 1, [OP_MOVE_HANDLE] = 10,
			[OP_REMOVE_HANDLE] = 10,
		},
		.workers = 2, .readers = 2, .keys = 64,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/* One key only, so that every operation meets every other. */
TEST_F_TIMEOUT(race, one_key, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_ADD] = 10, [OP_EXCL] = 10, [OP_ADD_MATCH] = 10, [OP_MOVE] = 10,
			[OP_MOVE_MATCH] = 5, [OP_REMOVE] = 5, [OP_REMOVE_MATCH] = 5,
			[OP_GET] = 5, [OP_LIST] = 1, [OP_DRAIN] = 2, [OP_MOVE_HANDLE] = 10,
			[OP_REMOVE_HANDLE] = 5,
		},
		.workers = 2, .readers = 2, .keys = 1,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/*
 * Values as version stamps: timers are armed only with EXCL or MATCH and removed with MATCH, so the
 * one end of each version is known.
 */
TEST_F_TIMEOUT(race, versions, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_EXCL] = 30, [OP_ADD_MATCH] = 20, [OP_MOVE_MATCH] = 10,
			[OP_REMOVE_MATCH] = 20, [OP_REMOVE] = 5, [OP_GET] = 5,
		},
		.workers = 2, .readers = 2, .keys = 32,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/* Threads with keys of their own: each result and each event is known in advance. */
TEST_F_TIMEOUT(race, own_keys, TIMEOUT)
{
	static const struct scenario sc = {
		.owners = 2, .readers = 2, .own_keys = 300,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/* By key and by handle: each version is armed by ADD with EXCL or MATCH, and has one end. */
TEST_F_TIMEOUT(race, handles, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_EXCL] = 30, [OP_ADD_MATCH] = 5, [OP_MOVE] = 5, [OP_REMOVE] = 10,
			[OP_MOVE_HANDLE] = 20, [OP_REMOVE_HANDLE] = 20, [OP_LIST] = 1,
			[OP_DRAIN] = 1,
		},
		.workers = 2, .readers = 2, .keys = 200,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/* Threads with their own keys, enough keys to make the tables grow meanwhile. */
TEST_F_TIMEOUT(race, growth, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = { [OP_ADD] = 10, [OP_REMOVE] = 5, [OP_GET] = 5, [OP_LIST] = 1 },
		.workers = 1, .keys = 16, .owners = 1, .readers = 2, .own_keys = 150000,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/* A wheel that is full most of the time: no part of its capacity is lost. */
TEST_F_TIMEOUT(race, full_wheel, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_ADD] = 20, [OP_EXCL] = 20, [OP_MOVE] = 10, [OP_REMOVE] = 10,
			[OP_REMOVE_MATCH] = 5, [OP_DRAIN] = 1,
		},
		.workers = 2, .readers = 2, .keys = 600, .capacity = 150,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/* Timers that are due at once: withdrawing an event races with reading it. */
TEST_F_TIMEOUT(race, take_back_against_read, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_ADD] = 30, [OP_EXCL] = 20, [OP_ADD_MATCH] = 10, [OP_MOVE] = 20,
			[OP_REMOVE] = 30, [OP_REMOVE_MATCH] = 10, [OP_DRAIN] = 2,
		},
		.workers = 1, .readers = 4, .keys = 256, .due = true,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/* The same, mostly with MOVE: a reader may take the event of a timer that was found due. */
TEST_F_TIMEOUT(race, move_against_read, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = { [OP_ADD] = 30, [OP_MOVE] = 70 },
		.workers = 1, .readers = 4, .keys = 64, .due = true,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/* DRAIN by several threads against all other operations. */
TEST_F_TIMEOUT(race, drain, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_ADD] = 40, [OP_EXCL] = 20, [OP_MOVE] = 20, [OP_REMOVE] = 5,
			[OP_REMOVE_MATCH] = 5, [OP_DRAIN] = 30,
		},
		.workers = 2, .readers = 2, .keys = 512,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/*
 * Periodic timers: no event after a REMOVE, and the events of an arming cover each of its deadlines
 * once.
 */
TEST_F_TIMEOUT(race, periodic, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_ADD] = 10, [OP_EXCL] = 20, [OP_ADD_MATCH] = 5, [OP_MOVE] = 5,
			[OP_REMOVE] = 10, [OP_REMOVE_MATCH] = 10, [OP_DRAIN] = 1, [OP_GET] = 100,
		},
		.workers = 1, .readers = 3, .keys = 64, .periodic = true,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/* LIST returns each stable timer exactly once, whatever happens to the others. */
TEST_F_TIMEOUT(race, list, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_ADD] = 20, [OP_EXCL] = 20, [OP_MOVE] = 10, [OP_REMOVE] = 20,
			[OP_LIST] = 1,
		},
		.workers = 1, .readers = 2, .listers = 2, .keys = 3000, .stable_keys = 1000,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/* Signals interrupt calls: their results report exactly which elements were done. */
TEST_F_TIMEOUT(race, signals, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_ADD] = 20, [OP_EXCL] = 10, [OP_ADD_MATCH] = 10, [OP_MOVE] = 15,
			[OP_REMOVE] = 10, [OP_REMOVE_MATCH] = 5, [OP_DRAIN] = 2, [OP_LIST] = 1,
		},
		.workers = 1, .owners = 1, .readers = 4, .keys = 64, .own_keys = 300,
		.signals = true,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	/* DRAIN also takes the keys of owners: that is an end like any other */
	play(_metadata, self->w, &sc);
}

/* The MANUAL clock, advanced by two threads while others arm and end timers. */
TEST_F_TIMEOUT(race, manual_clock, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_ADD] = 20, [OP_EXCL] = 10, [OP_ADD_MATCH] = 10, [OP_MOVE] = 15,
			[OP_REMOVE] = 10, [OP_REMOVE_MATCH] = 5, [OP_DRAIN] = 1, [OP_GET] = 5,
		},
		.workers = 1, .readers = 2, .advancers = 2, .keys = 128,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

static const char *no_hotplug(struct world *w)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", w->cpu[1]);
	return access(path, W_OK) ? "CPUs cannot be taken offline here" : NULL;
}

/* CPUs go offline and come back meanwhile. */
TEST_F_TIMEOUT(race, cpu_hotplug, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_ADD] = 20, [OP_EXCL] = 10, [OP_ADD_MATCH] = 10, [OP_MOVE] = 15,
			[OP_REMOVE] = 10, [OP_REMOVE_MATCH] = 5, [OP_GET] = 5,
		},
		.workers = 1, .owners = 1, .readers = 2, .keys = 64, .own_keys = 300,
		.periodic = true, .hotplug = true,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	if (no_hotplug(self->w))
		SKIP(return, "%s", no_hotplug(self->w));
	play(_metadata, self->w, &sc);
}

/* Events go directly into a ring that is long enough, without the due list. */
TEST_F_TIMEOUT(race, ring, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_ADD] = 20, [OP_EXCL] = 10, [OP_ADD_MATCH] = 10, [OP_MOVE] = 15,
			[OP_MOVE_MATCH] = 5, [OP_REMOVE] = 10, [OP_REMOVE_MATCH] = 5,
			[OP_GET] = 5, [OP_LIST] = 1, [OP_DRAIN] = 2,
		},
		.workers = 2, .owners = 1, .readers = 1, .keys = 64, .own_keys = 200,
		.periodic = true, .ring = 16384,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/* The same with a ring that is full half of the time: sometimes directly, sometimes by the list. */
TEST_F_TIMEOUT(race, short_ring, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_ADD] = 20, [OP_EXCL] = 10, [OP_ADD_MATCH] = 10, [OP_MOVE] = 15,
			[OP_REMOVE] = 10, [OP_REMOVE_MATCH] = 5, [OP_DRAIN] = 2,
		},
		.workers = 2, .readers = 1, .keys = 256, .periodic = true, .ring = 16,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/* A ring, and enough keys to make the tables grow: expiring timers move to new buckets. */
TEST_F_TIMEOUT(race, ring_growth, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = { [OP_ADD] = 10, [OP_REMOVE] = 5, [OP_GET] = 5, [OP_LIST] = 1 },
		.workers = 1, .keys = 16, .owners = 1, .readers = 1, .own_keys = 150000,
		.ring = 16384,
	};

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	play(_metadata, self->w, &sc);
}

/*
 * Timers expire while the table of a new wheel creates its first buckets, so many of them move from
 * one bucket to another at that moment. All are found, moved or not. Rounds with and without a ring
 * alternate.
 */
#define EXPIRE	64
#define STAY	2000

struct growth {
	pthread_barrier_t barrier;
	int fd;			/* of this round; -1: there are no more rounds */
	int cpu;
	int added;
};

static void *growth_main(void *arg)
{
	struct timerwheel_add add[STAY];
	struct growth *g = arg;
	int i;

	for (i = 0; i < STAY; i++)
		add[i] = (struct timerwheel_add){ .key = EXPIRE + i, .deadline = HOUR };
	tw_pin(g->cpu);
	for (;;) {
		pthread_barrier_wait(&g->barrier);
		if (g->fd < 0)
			return NULL;
		g->added = dev_add(g->fd, add, STAY);
		pthread_barrier_wait(&g->barrier);
	}
}

/* Wait for all events of a round, then check that they have the keys 0 to EXPIRE - 1. */
static int expired_once(int fd, struct timerwheel_ring *ring)
{
	struct timerwheel_event ev[2 * EXPIRE];
	__u64 seen = 0;
	int i, n = 0;

	while (n < EXPIRE) {
		int got = ring ? (int)timerwheel_ring_take(TW_RING(ring), ev + n, 2 * EXPIRE - n) :
				 dev_read(fd, ev + n, 2 * EXPIRE - n);

		if (got <= 0)
			break;
		n += got;
	}
	for (i = 0; i < n; i++)
		seen |= ev[i].key < EXPIRE ? 1ULL << ev[i].key : 0;
	return n == EXPIRE && seen == ~0ULL;
}

TEST_F_TIMEOUT(race, expiry_against_growth, TIMEOUT)
{
	const size_t size = TIMERWHEEL_RING_EVENTS + 2 * EXPIRE * EV_SIZE;
	static struct timerwheel_entry ent[STAY];
	struct timerwheel_add add[EXPIRE];
	struct growth g = { .cpu = self->w->cpu[1] };
	struct timerwheel_stats st;
	__u64 end = tw_now(CLOCK_MONOTONIC) + seconds() * SEC;
	pthread_t thread;
	int i, round;

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	pthread_barrier_init(&g.barrier, NULL, 2);
	ASSERT_EQ(0, pthread_create(&thread, NULL, growth_main, &g));
	tw_pin(self->w->cpu[0]);
	for (i = 0; i < EXPIRE; i++)
		add[i] = (struct timerwheel_add){ .key = i, .deadline = 1 + i };
	for (round = 0; round < 2 || tw_now(CLOCK_MONOTONIC) < end; round++) {
		struct timerwheel_setup setup = {
			.clock = TIMERWHEEL_CLOCK_MANUAL, .tick = 1,
			.ring = round % 2 ? 2 * EXPIRE : 0,
		};
		struct timerwheel_ring *ring = NULL;

		g.fd = dev_open(O_NONBLOCK);
		ASSERT_LE(0, g.fd);
		ASSERT_EQ(0, dev_setup(g.fd, &setup));
		if (setup.ring)
			ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, g.fd,
				    TIMERWHEEL_MMAP_RING);
		ASSERT_NE(MAP_FAILED, ring);
		ASSERT_EQ(EXPIRE, dev_add(g.fd, add, EXPIRE));
		pthread_barrier_wait(&g.barrier);
		/* A few at a time, while the table grows. */
		for (i = 4; i <= EXPIRE; i += 4)
			EXPECT_EQ(4, tw_advance(g.fd, TIMERWHEEL_ABS, i));
		EXPECT_TRUE(expired_once(g.fd, ring));
		pthread_barrier_wait(&g.barrier);
		ASSERT_EQ(STAY, g.added);
		for (i = 0; i < STAY; i++)
			ent[i] = (struct timerwheel_entry){ .key = EXPIRE + i };
		ASSERT_EQ(STAY, dev_get(g.fd, ent, STAY));
		for (i = 0; i < STAY && ent[i].result == TIMERWHEEL_WAS_PENDING; i++)
			;
		ASSERT_EQ(STAY, i);
		for (i = 0; i < EXPIRE; i++)
			ASSERT_EQ(-ENOENT, tw_remove1(g.fd, i));
		ASSERT_EQ(0, tw_stats(g.fd, &st));
		EXPECT_TRUE(tw_balanced(&st));
		if (ring)
			munmap(ring, size);
		close(g.fd);
	}
	TH_LOG("%d wheels", round);
	EXPECT_LT(1, round);		/* with a ring, and without */
	g.fd = -1;
	pthread_barrier_wait(&g.barrier);
	pthread_join(thread, NULL);
}

/* All of these at once. */
TEST_F_TIMEOUT(race, everything, TIMEOUT)
{
	static const struct scenario sc = {
		.weight = {
			[OP_ADD] = 20, [OP_EXCL] = 10, [OP_ADD_MATCH] = 10, [OP_MOVE] = 15,
			[OP_MOVE_MATCH] = 5, [OP_REMOVE] = 10, [OP_REMOVE_MATCH] = 5,
			[OP_GET] = 5, [OP_LIST] = 1, [OP_DRAIN] = 2, [OP_MOVE_HANDLE] = 10,
			[OP_REMOVE_HANDLE] = 10,
		},
		.workers = 1, .owners = 1, .readers = 3, .keys = 64, .own_keys = 200,
		.periodic = true, .signals = true, .hotplug = true,
	};
	static struct scenario here;

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	here = sc;
	here.hotplug = !no_hotplug(self->w);
	play(_metadata, self->w, &here);
}

/* --- The end of a wheel against its use ----------------------------------------------------- */

/* Arms new keys until the wheel accepts no more */
static void *adder_main(void *arg)
{
	struct timerwheel_add add[BATCH];
	struct thread *t = arg;
	struct world *w = t->w;
	int i, n, ret;

	pin(t);
	for (;;) {
		__u32 since;

		memset(add, 0, sizeof(add));
		n = 1 + below(t, BATCH);
		for (i = 0; i < n; i++) {
			__u32 v = new_version(w, 0, 0, 0);

			if (!v || v >= w->keys)
				goto out;
			w->key_of[v] = v;
			add[i].key = v;
			add[i].value = VALUE(v, v);
			add[i].deadline = some_delay(t);
		}
		since = tick(w);
		ret = dev_add(w->fd, add, n);
		if (ret <= 0) {
			bad(w, "ADD: %d of %d", ret, n);
			break;
		}
		/* a signal may have interrupted the call; the other versions stay unused */
		for (i = 0; i < ret; i++) {
			__u32 closed = atomic_load(&w->closed_at);

			if (add[i].result == -ESHUTDOWN)
				goto out;
			if (add[i].result)
				bad(w, "ADD of a new key: result %d", add[i].result);
			else
				armed(t, VERSION_OF(add[i].value));
			if (!add[i].result && closed && (__s32)(closed - since) < 0)
				bad(w, "ADD that began after DRAIN with CLOSE had returned");
		}
	}
out:
	atomic_store(&t->done, true);
	return NULL;
}

/*
 * DRAIN with CLOSE against ADD: after the drain has ended no timer is left, and none is armed.
 */
TEST_F_TIMEOUT(race, drain_close, TIMEOUT)
{
	static const struct scenario sc = { .keys = 1 << 20 };
	static struct timerwheel_entry ent[64];
	struct sigaction sa = { .sa_handler = on_signal };
	__u64 end = tw_now(CLOCK_MONOTONIC) + seconds() * SEC;
	struct timerwheel_stats st;
	struct world *w = self->w;
	int i, n, rounds = 0;

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	w->sc = &sc;
	w->seed = tw_seed();
	TH_LOG("TW_SEED=%llu", (unsigned long long)w->seed);
	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	ASSERT_EQ(0, open_world(w, sc.keys, false));
	for (; !rounds || (tw_now(CLOCK_MONOTONIC) < end &&
			   atomic_load(&w->version) < sc.keys / 2); rounds++) {
		struct thread drainer = { .w = w };

		if (rounds) {
			w->fd = dev_open(0);
			ASSERT_LE(0, w->fd);
		}
		memset(&w->total, 0, sizeof(w->total));
		memset(w->thread, 0, sizeof(w->thread));
		w->threads = 0;
		w->seed += 1000;
		atomic_store(&w->stop, false);
		atomic_store(&w->closed_at, 0);
		for (i = 0; i < w->cpus; i++)
			start(w, adder_main, i);
		tw_sleep(2 * MSEC + rounds % 10 * MSEC);
		while ((n = tw_drain(w->fd, TIMERWHEEL_DRAIN_CLOSE, ent, ARRAY_SIZE(ent))) > 0) {
			if (!atomic_load(&w->closed_at))
				atomic_store(&w->closed_at, tick(w));
			for (i = 0; i < n; i++)
				drained(&drainer, &ent[i]);
		}
		ASSERT_EQ(0, n);
		ASSERT_EQ(0, tw_stats(w->fd, &st));
		EXPECT_EQ(0, st.pending + st.due);
		join_all(w);
		add_counts(&w->total, &drainer.c);
		check_stats(_metadata, w);
		ASSERT_EQ(0, close(w->fd));
		ASSERT_EQ(0, atomic_load(&w->errors));
	}
	check_versions(w);
	EXPECT_EQ(0, atomic_load(&w->errors));
	EXPECT_LT(0, rounds);
	TH_LOG("%d wheels", rounds);
}

/* --- The moment of DRAIN with CLOSE ---------------------------------------------------------- */

enum { CLOSING_ADD = 48, CLOSING_MOST = 20000 };

/* The wheels in which threads arm timers, one wheel after another */
struct closing {
	atomic_int round;	/* number of the current round */
	atomic_int began;	/* number of threads that have armed timers in it */
	atomic_int ended;	/* number of threads that have finished it */
	atomic_int left;	/* number of timers that must be left */
	atomic_int failed;
	atomic_bool stop;
	bool stays;		/* threads do not remove what they armed */
	int fd;
};

struct closing_thread {
	pthread_t id;
	struct closing *c;
	int cpu;
};

/* Arm timers until the wheel is closed or full, and remove them unless they are to stay */
static void closing_round(struct closing *c, __u64 key)
{
	struct timerwheel_remove rem[CLOSING_ADD] = { };
	struct timerwheel_add add[CLOSING_ADD] = { };
	int i, n = CLOSING_ADD, calls = 0;

	while (n == CLOSING_ADD) {
		for (i = 0; i < CLOSING_ADD; i++) {
			add[i].key = key + i;
			add[i].deadline = HOUR;
			rem[i].key = key + i;
		}
		if (dev_add(c->fd, add, CLOSING_ADD) != CLOSING_ADD)
			atomic_fetch_add(&c->failed, 1);
		for (n = 0; n < CLOSING_ADD && !add[n].result; n++)
			;
		for (i = n; i < CLOSING_ADD; i++) {
			if (add[i].result != -ESHUTDOWN && add[i].result != -ENOSPC)
				atomic_fetch_add(&c->failed, 1);
		}
		if (c->stays)
			atomic_fetch_add(&c->left, n);
		else if (dev_remove(c->fd, rem, n) != n)
			atomic_fetch_add(&c->failed, 1);
		if (c->stays)
			key += CLOSING_ADD;
		if (!calls++)
			atomic_fetch_add(&c->began, 1);
	}
}

static void *closing_main(void *arg)
{
	struct closing_thread *t = arg;
	struct closing *c = t->c;
	int round = 0;

	tw_pin(t->cpu);
	for (;;) {
		while (atomic_load(&c->round) == round && !atomic_load(&c->stop))
			sched_yield();
		if (atomic_load(&c->stop))
			return NULL;
		round++;
		closing_round(c, (__u64)t->cpu << 32);
		atomic_fetch_add(&c->ended, 1);
	}
}

/* Open a wheel in which all threads arm timers. */
static void closing_begin(struct closing *c, int threads, bool stays)
{
	struct timerwheel_setup setup = {
		.flags = TIMERWHEEL_SETUP_TABLE, .capacity = CLOSING_MOST,
	};

	c->fd = dev_open(O_NONBLOCK);
	if (c->fd < 0 || dev_setup(c->fd, &setup))
		abort();
	c->stays = stays;
	atomic_store(&c->left, 0);
	atomic_store(&c->began, 0);
	atomic_store(&c->ended, 0);
	atomic_fetch_add(&c->round, 1);
	while (atomic_load(&c->began) < threads)
		sched_yield();
}

/* Wait until they have ended. Returns the number of timers that must be left. */
static int closing_end(struct closing *c, int threads)
{
	while (atomic_load(&c->ended) < threads)
		sched_yield();
	return atomic_load(&c->left);
}

/*
 * When DRAIN with CLOSE has returned no ADD is in progress: none writes to the deadline table, not
 * even an ADD that began before. If all timers fitted into that call none is left.
 */
TEST_F_TIMEOUT(race, closed_at_once, TIMEOUT)
{
	__u64 end = tw_now(CLOCK_MONOTONIC) + seconds() * SEC;
	static struct timerwheel_entry ent[CLOSING_MOST + 1];
	int i, n, rounds, threads = self->w->cpus - 1;
	int words = getpagesize() / sizeof(__u64);
	static struct closing_thread t[THREADS];
	static struct closing c;
	struct timerwheel_stats st;
	__u64 *word, *seen;

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	tw_pin(self->w->cpu[0]);
	seen = malloc(getpagesize());
	for (i = 0; i < threads; i++) {
		t[i].c = &c;
		t[i].cpu = self->w->cpu[i + 1];
		ASSERT_EQ(0, pthread_create(&t[i].id, NULL, closing_main, &t[i]));
	}
	for (rounds = 0; tw_now(CLOCK_MONOTONIC) < end; rounds++) {
		closing_begin(&c, threads, rounds % 8 == 0);
		if (rounds % 8 == 0) {
			n = tw_drain(c.fd, TIMERWHEEL_DRAIN_CLOSE, ent, CLOSING_MOST + 1);
			ASSERT_EQ(n, closing_end(&c, threads)) TH_LOG("round %d", rounds);
			ASSERT_EQ(0, tw_stats(c.fd, &st));
			ASSERT_EQ(0, st.pending);
			close(c.fd);
			continue;
		}
		/* the entries that they use are in the first page of the table */
		word = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, c.fd, 0);
		ASSERT_NE(MAP_FAILED, word);
		ASSERT_EQ(0, tw_drain(c.fd, TIMERWHEEL_DRAIN_CLOSE, ent, 0));
		for (i = 0; i < words; i++)
			seen[i] = __atomic_load_n(&word[i], __ATOMIC_RELAXED);
		ASSERT_EQ(0, closing_end(&c, threads));
		for (i = 0; i < words; i++)
			/* REMOVE, which may come later, writes 0. */
			ASSERT_TRUE(!word[i] || seen[i] == word[i])
				TH_LOG("round %d, index %d", rounds, i);
		munmap(word, getpagesize());
		close(c.fd);
	}
	atomic_store(&c.stop, true);
	for (i = 0; i < threads; i++)
		ASSERT_EQ(0, pthread_join(t[i].id, NULL));
	EXPECT_EQ(0, atomic_load(&c.failed));
	TH_LOG("%d rounds", rounds);
}

#define PASSED_ON	8

/* Descriptors that threads pass on to each other */
static atomic_int passed_on[PASSED_ON];

static void use_wheel(struct thread *t, int fd)
{
	struct timerwheel_event ev[16];
	struct timerwheel_entry ent[16];
	struct timerwheel_add add[32];
	int i, n;

	memset(add, 0, sizeof(add));
	n = 1 + below(t, ARRAY_SIZE(add));
	for (i = 0; i < n; i++) {
		add[i].key = below(t, 200);
		add[i].value = ~add[i].key;
		add[i].deadline = some_delay(t);
		add[i].period = below(t, 4) ? 0 : 100 * USEC;
	}
	n = dev_add(fd, add, n);
	if (n <= 0)
		bad(t->w, "ADD on a wheel that was passed on: %d", n);
	if (below(t, 2))
		tw_move1(fd, below(t, 200), some_delay(t), 0);
	if (below(t, 2))
		tw_remove1(fd, below(t, 200));
	if (below(t, 8) == 0)
		tw_drain(fd, 0, ent, ARRAY_SIZE(ent));
	n = dev_read(fd, ev, ARRAY_SIZE(ev));
	for (i = 0; i < n; i++) {
		if (ev[i].value != ~ev[i].key || ev[i].fired < ev[i].deadline)
			bad(t->w, "event on a wheel that was passed on");
	}
	if (n < 0 && n != -EAGAIN)
		bad(t->w, "read on a wheel that was passed on: %d", n);
}

static void *passer_main(void *arg)
{
	struct thread *t = arg;
	int i, fd, other;

	for (i = 0; running(t->w); i++) {
		if (i % 16 == 0)
			pin(t);
		fd = dev_open(O_NONBLOCK);
		if (fd < 0) {
			bad(t->w, "open: %d", fd);
			break;
		}
		t->c.armed++;
		use_wheel(t, fd);
		/* exchange a copy with another thread, use both wheels, close both */
		other = atomic_exchange(&passed_on[below(t, PASSED_ON)], dup(fd));
		if (other >= 0) {
			use_wheel(t, other);
			close(other);
		}
		use_wheel(t, fd);
		close(fd);
	}
	atomic_store(&t->done, true);
	return NULL;
}

static __u64 user_memory(int fd)
{
	struct timerwheel_info info;

	return tw_info(fd, &info) ? ~0ULL : info.user_memory;
}

/*
 * Threads open wheels, use each in two threads, and close it in either while its timers fire. All
 * memory is freed at the end.
 */
TEST_F_TIMEOUT(race, open_close, TIMEOUT)
{
	static const struct scenario sc = { 0 };
	int i, probe = dev_open(O_NONBLOCK);
	struct world *w = self->w;
	__u64 base;

	if (self->too_few)
		SKIP(return, "fewer than %d CPUs", variant->cpus);
	ASSERT_LE(0, probe);
	base = tw_memory_alone(probe);
	w->sc = &sc;
	w->seed = tw_seed();
	TH_LOG("TW_SEED=%llu", (unsigned long long)w->seed);
	ASSERT_NE(SIG_ERR, signal(SIGUSR1, on_signal));
	for (i = 0; i < PASSED_ON; i++)
		atomic_store(&passed_on[i], -1);
	for (i = 0; i < 2 * w->cpus; i++)
		start(w, passer_main, i);
	tw_sleep(seconds() * SEC);
	join_all(w);
	for (i = 0; i < PASSED_ON; i++)
		close(atomic_load(&passed_on[i]));
	for (i = 0; i < LONG_MS / 10 && user_memory(probe) != base; i++)
		tw_sleep(10 * MSEC);
	EXPECT_EQ(base, user_memory(probe));
	EXPECT_EQ(0, atomic_load(&w->errors));
	TH_LOG("%llu wheels", (unsigned long long)w->total.armed);
	close(probe);
}

/* --- CPUs on which timers fall due ----------------------------------------------------------- */

#define TRACING		"/sys/kernel/tracing/"
#define TRACE_EXPIRE		TRACING "events/timerwheel/timerwheel_expire/enable"
#define TRACE_CASCADE		TRACING "events/timerwheel/timerwheel_cascade/enable"
#define MAX_USER_MEMORY	"/sys/module/timerwheel/parameters/max_user_memory"

/* Start to record the CPU on which the engine works. Returns false without tracepoints. */
static bool trace_start(void)
{
	int fd = open(TRACING "trace", O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	return !tw_file_write(TRACE_EXPIRE, "1") && !tw_file_write(TRACE_CASCADE, "1");
}

/*
 * Stop recording. Returns the number of batches of the base of CPU @base that expired or cascaded
 * timers, and in @others the number of these that ran on other CPUs.
 */
static int trace_stop(int base, int *others)
{
	FILE *f = fopen(TRACING "trace", "re");
	char line[512], *p, *field;
	int n = 0;

	tw_file_write(TRACE_EXPIRE, "0");
	tw_file_write(TRACE_CASCADE, "0");
	*others = 0;
	while (f && fgets(line, sizeof(line), f)) {
		field = strstr(line, " base=");
		p = strstr(line, " [");
		if (line[0] == '#' || !field || !p || atoi(field + 6) != base)
			continue;
		n++;
		*others += atoi(p + 2) != base;
	}
	if (f)
		fclose(f);
	return n;
}

FIXTURE(elsewhere) {
	struct world *w;
	char cap[32];
	const char *cannot;
	int fd;
};

#define ELSEWHERE_TIMERS	50

/*
 * A wheel has a base only on the second CPU, with timers for later. A task on the first CPU has no
 * memory for another base, and uses this base.
 */
FIXTURE_SETUP(elsewhere)
{
	struct thread t = { 0 };
	int i;

	self->w = &world;
	self->fd = -1;
	self->cannot = find_cpus(self->w, 2) < 2 ? "only one CPU" : NULL;
	if (self->cannot)
		return;
	snprintf(self->cap, sizeof(self->cap), "%lld", tw_file_number(MAX_USER_MEMORY, NULL));
	self->fd = dev_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	t.cpu = self->w->cpu[1];
	pin(&t);
	for (i = 0; i < ELSEWHERE_TIMERS; i++)
		ASSERT_EQ(0, tw_add1(self->fd, i, ~(__u64)i, HOUR, 0));
	ASSERT_EQ(0, tw_file_write(MAX_USER_MEMORY, "1"));
	t.cpu = self->w->cpu[0];
	pin(&t);
}

FIXTURE_TEARDOWN(elsewhere)
{
	if (!self->cannot)
		EXPECT_EQ(0, tw_file_write(MAX_USER_MEMORY, self->cap));
	close(self->fd);
}

/* MOVE each timer to @delay from now after the previous one has fired. Returns the number fired. */
static int fired_one_by_one(int fd, __u64 delay)
{
	struct timerwheel_event ev;
	int i;

	for (i = 0; i < ELSEWHERE_TIMERS; i++) {
		/* the thread may sleep meanwhile, or not */
		tw_sleep(i % 4 * MSEC);
		if (tw_move1(fd, i, delay, 0) != TIMERWHEEL_WAS_PENDING ||
		    dev_poll(fd, LONG_MS) != POLLIN || dev_read(fd, &ev, 1) != 1)
			break;
		if (ev.key != (__u64)i || ev.value != ~ev.key || ev.fired < ev.deadline)
			break;
	}
	return i;
}

/* A timer fires that another CPU moved to an earlier time than all timers of the base. */
TEST_F_TIMEOUT(elsewhere, moved_earlier_fires, 600)
{
	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	EXPECT_EQ(ELSEWHERE_TIMERS, fired_one_by_one(self->fd, 3 * MSEC));
}

/* It fires on the CPU of the base, because its engine stays there. */
TEST_F_TIMEOUT(elsewhere, fires_at_home, 600)
{
	int others, n;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	if (!trace_start())
		SKIP(return, "no tracepoints");
	EXPECT_EQ(ELSEWHERE_TIMERS, fired_one_by_one(self->fd, 3 * MSEC));
	n = trace_stop(self->w->cpu[1], &others);
	EXPECT_LE(ELSEWHERE_TIMERS, n);
	EXPECT_EQ(0, others);
}

#define KICKS	6000		/* times, each earlier than the one before */

/*
 * Make a wheel with a base on the second CPU only, and a timer that waits longer than all others.
 */
static int elsewhere_fine(struct world *w, const char *cap)
{
	struct timerwheel_setup setup = { .tick = USEC, .slots = 4096 };
	struct thread t = { .cpu = w->cpu[1] };
	int fd;

	pin(&t);
	/* At the cap open() fails as well. */
	if (tw_file_write(MAX_USER_MEMORY, cap))
		return -1;
	fd = dev_open(O_NONBLOCK);
	if (fd < 0 || dev_setup(fd, &setup) || tw_add1(fd, 0, 0, 48 * HOUR, 0) ||
	    tw_file_write(MAX_USER_MEMORY, "1"))
		return -1;
	t.cpu = w->cpu[0];
	pin(&t);
	return fd;
}

/* MOVE the timer, and give the other CPU time to notice. */
static int moved_earlier(int fd, __u64 delay)
{
	__u64 until = tw_now(CLOCK_MONOTONIC) + 10 * USEC;
	int ret = tw_move1(fd, 0, delay, 0);

	while (tw_now(CLOCK_MONOTONIC) < until)
		;
	return ret;
}

/*
 * A task moves a timer of another CPU to an earlier time repeatedly. For each move that CPU's
 * thread would have to preempt the task that runs there. It preempts at most every 100 us, and the
 * last time counts. (Emulated CPUs are too slow to exceed the limit without this rule.)
 */
TEST_F_TIMEOUT(elsewhere, kicks_are_paced, 600)
{
	struct timerwheel_event ev;
	__u64 began, took;
	long long slept;
	pid_t pid;
	int i, fd;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	pid = tw_engine_thread(self->w->cpu[1]);
	ASSERT_LT(0, pid);
	fd = elsewhere_fine(self->w, self->cap);
	ASSERT_LE(0, fd);
	slept = tw_sleeps(pid);
	began = tw_now(CLOCK_MONOTONIC);
	/* A slot of level 2 is 17 s long, one of level 1 is 4.1 ms long. */
	for (i = 0; i < KICKS / 2; i++)
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, moved_earlier(fd, (60000 - 18 * i) * SEC));
	for (i = 0; i < KICKS / 2; i++)
		ASSERT_EQ(TIMERWHEEL_WAS_PENDING, moved_earlier(fd, 16 * SEC - 4200 * i * USEC));
	/* On a busy host that CPU may not have run so far. */
	for (i = 0; i < LONG_MS && tw_sleeps(pid) == slept; i++)
		tw_sleep(MSEC);
	slept = tw_sleeps(pid) - slept;
	took = tw_now(CLOCK_MONOTONIC) - began;
	printf("# %d times, %lld sleeps of the thread in %.1f ms\n", KICKS, slept, took / 1e6);
	/* One after a kick, and one before the next kick may be served */
	EXPECT_GE(2 * (took / (100 * USEC) + 2), slept);
	EXPECT_LE(1, slept);
	EXPECT_EQ(POLLIN, dev_poll(fd, LONG_MS));
	EXPECT_EQ(1, dev_read(fd, &ev, 1));
	close(fd);
}

/* --- Timers of a CPU that is offline --------------------------------------------------------- */

#define OFFLINE_TIMERS	1000

FIXTURE(offline) {
	struct world *w;
	const char *cannot;
	int fd;
};

/* Arm timers on the second CPU, then take it offline before they are due */
FIXTURE_SETUP(offline)
{
	struct thread t = { 0 };
	int i;

	self->w = &world;
	self->fd = -1;
	self->cannot = find_cpus(self->w, 2) < 2 ? "only one CPU" : no_hotplug(self->w);
	if (self->cannot)
		return;
	self->fd = dev_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	t.cpu = self->w->cpu[1];
	pin(&t);
	for (i = 0; i < OFFLINE_TIMERS; i++)
		ASSERT_EQ(0, tw_add1(self->fd, i, ~(__u64)i, 4 * SEC + i * 100 * USEC, 0));
	t.cpu = self->w->cpu[0];
	pin(&t);
	ASSERT_EQ(0, tw_cpu_online(self->w->cpu[1], false));
}

FIXTURE_TEARDOWN(offline)
{
	close(self->fd);
	if (!self->cannot)
		tw_cpu_online(self->w->cpu[1], true);
}

/* Does each of them fire exactly once, and never early? */
static bool all_fire(int fd)
{
	static struct timerwheel_event ev[OFFLINE_TIMERS + 1];
	static unsigned char seen[OFFLINE_TIMERS];
	int i;

	if (tw_read_all(fd, ev, OFFLINE_TIMERS, LONG_MS) != OFFLINE_TIMERS)
		return false;
	for (i = 0; i < OFFLINE_TIMERS; i++) {
		if (ev[i].key >= OFFLINE_TIMERS || ev[i].value != ~ev[i].key ||
		    seen[ev[i].key]++ || ev[i].fired < ev[i].deadline)
			return false;
	}
	return dev_poll(fd, 50) == 0;
}

/* They fire on another CPU, each exactly once and never early. */
TEST_F_TIMEOUT(offline, timers_fire, 300)
{
	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	EXPECT_TRUE(all_fire(self->fd));
}

/* They can be moved, and fire at the new time. */
TEST_F_TIMEOUT(offline, timers_can_be_moved, 300)
{
	int i;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	for (i = 0; i < OFFLINE_TIMERS; i++)
		ASSERT_LT(0, tw_move1(self->fd, i, i * 50 * USEC, 0));
	EXPECT_TRUE(all_fire(self->fd));
}

/* They can be removed, and do not fire. */
TEST_F_TIMEOUT(offline, timers_can_be_removed, 300)
{
	struct timerwheel_stats st;
	int i;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	for (i = 0; i < OFFLINE_TIMERS; i++)
		ASSERT_LT(0, tw_remove1(self->fd, i));
	ASSERT_EQ(0, tw_stats(self->fd, &st));
	EXPECT_EQ(0, st.pending + st.due + st.delivered);
}

/* They fire when the CPU has come back before they are due. */
TEST_F_TIMEOUT(offline, timers_fire_after_return, 300)
{
	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	ASSERT_EQ(0, tw_cpu_online(self->w->cpu[1], true));
	EXPECT_TRUE(all_fire(self->fd));
}

/* They fire there, because the engine has come back, too. */
TEST_F_TIMEOUT(offline, timers_fire_at_home_after_return, 300)
{
	int others, n;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	ASSERT_EQ(0, tw_cpu_online(self->w->cpu[1], true));
	/* allow the thread some time */
	tw_sleep(50 * MSEC);
	if (!trace_start())
		SKIP(return, "no tracepoints");
	EXPECT_TRUE(all_fire(self->fd));
	n = trace_stop(self->w->cpu[1], &others);
	EXPECT_LT(0, n);
	EXPECT_EQ(0, others);
}

/* After the CPU has come back, timers can be armed there in a wheel that had none there. */
TEST_F_TIMEOUT(offline, arming_after_return, 300)
{
	struct thread t = { .cpu = self->w->cpu[1] };
	int i;

	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	ASSERT_EQ(0, tw_cpu_online(self->w->cpu[1], true));
	pin(&t);
	for (i = 0; i < OFFLINE_TIMERS; i++)
		ASSERT_LT(0, tw_add1(self->fd, i, ~(__u64)i, 0, 0));
	EXPECT_TRUE(all_fire(self->fd));
}

/* --- A CPU with more work than the engine's limit -------------------------------------------- */

#define BUSY_WHEELS	16
#define BUSY_RING	1024

/* The wheels of the second CPU have a timer of the shortest period each. */
struct busy {
	int fd[BUSY_WHEELS];
	struct timerwheel_ring *ring[BUSY_WHEELS];
	__u64 next[BUSY_WHEELS];	/* deadline of the next event */
	__u64 got[BUSY_WHEELS];
	int strange;
};

FIXTURE(busy) {
	struct world *w;
	const char *cannot;
	struct busy b;
};

/* Take all events for @ns, because full rings would end the load. */
static void busy_take(struct busy *b, __u64 ns)
{
	__u64 until = tw_now(CLOCK_MONOTONIC) + ns;
	struct timerwheel_event ev[64];
	int i, k, n;

	while (tw_now(CLOCK_MONOTONIC) < until) {
		for (i = 0; i < BUSY_WHEELS; i++) {
			n = timerwheel_ring_take(TW_RING(b->ring[i]), ev, 64);
			for (k = 0; k < n; k++) {
				b->strange += ev[k].deadline != b->next[i] ||
					      ev[k].fired < ev[k].deadline;
				b->next[i] = ev[k].deadline + (1 + ev[k].overruns) * USEC;
			}
			b->got[i] += n;
			if (__atomic_load_n(&b->ring[i]->flags, __ATOMIC_RELAXED) &
			    TIMERWHEEL_RING_OVERFLOW)
				dev_ioctl(b->fd[i], TIMERWHEEL_IOC_FLOW, NULL);
		}
	}
}

/* Take events for @ns, and until each wheel has had one. Returns false if a wheel has none. */
static bool busy_goes_on(struct busy *b, __u64 ns)
{
	__u64 until = tw_now(CLOCK_MONOTONIC) + LONG_MS * MSEC, before[BUSY_WHEELS];
	int i;

	memcpy(before, b->got, sizeof(before));
	busy_take(b, ns);
	for (;;) {
		for (i = 0; i < BUSY_WHEELS && b->got[i] > before[i]; i++)
			;
		if (i == BUSY_WHEELS || tw_now(CLOCK_MONOTONIC) > until)
			return i == BUSY_WHEELS;
		busy_take(b, 10 * MSEC);
	}
}

FIXTURE_SETUP(busy)
{
	const size_t size = TIMERWHEEL_RING_EVENTS + BUSY_RING * EV_SIZE;
	struct timerwheel_setup setup = { .tick = USEC, .ring = BUSY_RING };
	struct thread t = { 0 };
	struct busy *b = &self->b;
	__u64 at;
	int i;

	self->w = &world;
	self->cannot = find_cpus(self->w, 2) < 2 ? "only one CPU" : NULL;
	if (self->cannot)
		return;
	t.cpu = self->w->cpu[1];
	pin(&t);
	at = tw_now(CLOCK_MONOTONIC) / USEC * USEC + 500 * MSEC;
	for (i = 0; i < BUSY_WHEELS; i++) {
		b->fd[i] = dev_open(O_NONBLOCK);
		ASSERT_LE(0, b->fd[i]);
		ASSERT_EQ(0, dev_setup(b->fd[i], &setup));
		b->ring[i] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd[i],
				  TIMERWHEEL_MMAP_RING);
		ASSERT_NE(MAP_FAILED, b->ring[i]);
		b->next[i] = at;
		ASSERT_EQ(0, tw_add1_periodic(b->fd[i], i, 0, at, USEC, TIMERWHEEL_ABS));
	}
	t.cpu = self->w->cpu[0];
	pin(&t);
	tw_sleep_until(CLOCK_MONOTONIC, at);
	ASSERT_TRUE(busy_goes_on(b, 100 * MSEC));
}

FIXTURE_TEARDOWN(busy)
{
	int i;

	if (self->cannot)
		return;
	tw_cpu_online(self->w->cpu[1], true);
	for (i = 0; i < BUSY_WHEELS; i++)
		close(self->b.fd[i]);
}

static void *busy_offline(void *arg)
{
	struct thread *t = arg;

	pin(t);
	t->done = !tw_cpu_online(t->w->cpu[1], false);
	return NULL;
}

/* The CPU goes offline: its thread's work is done elsewhere, and no work is done twice. */
TEST_F_TIMEOUT(busy, cpu_goes_offline, 300)
{
	struct thread t = { .w = &world, .cpu = world.cpu[0] };
	struct busy *b = &self->b;
	int i;

	if (self->cannot || no_hotplug(self->w))
		SKIP(return, "%s", self->cannot ?: no_hotplug(self->w));
	ASSERT_EQ(0, pthread_create(&t.id, NULL, busy_offline, &t));
	for (i = 0; i < LONG_MS / 10 && !t.done; i++)
		busy_take(b, 10 * MSEC);
	pthread_join(t.id, NULL);
	ASSERT_TRUE(t.done);
	/* events from before that */
	busy_take(b, 200 * MSEC);
	EXPECT_TRUE(busy_goes_on(b, SEC));
	EXPECT_EQ(0, b->strange);
}

/* --- Waits of a batch ------------------------------------------------------------------------ */

#define INSTANCES	TRACING "instances"
#define SCHED_PREEMPT	"/sys/kernel/debug/sched/preempt"
#define FOREIGN		48	/* timers that a call moves */
#define STORM_CPUS	8	/* that use a wheel together, at most */
#define PROBES		TRACING "kprobe_events"
#define STORM		"tw_race"	/* group of the probes */

FIXTURE(foreign) {
	struct world *w;
	int cpus;
	const char *cannot;
	const char *ends;	/* function at whose calls real-time tasks stop waiting */
	char dir[64];		/* a trace of this task's locks */
	int fd;
};

static int foreign_write(FIXTURE_DATA(foreign) * self, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", self->dir, file);
	return tw_file_write(path, text);
}

/*
 * In kernels that do not preempt system calls, real-time tasks wait for the next cond_resched().
 * In others they wait until bottom halves are on.
 */
FIXTURE_SETUP(foreign)
{
	char text[64] = "", pid[16];
	int fd;

	self->w = &world;
	self->cpus = find_cpus(self->w, STORM_CPUS);
	self->cannot = NULL;
	self->fd = dev_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	fd = open(SCHED_PREEMPT, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 &&
	    (strstr(text, "(voluntary)") || strstr(text, "(none)")))
		self->ends = "__cond_resched";
	else
		self->ends = "__local_bh_enable_ip";
	close(fd);
	self->dir[0] = 0;
	snprintf(self->dir, sizeof(self->dir), INSTANCES "/race-%d", getpid());
	snprintf(pid, sizeof(pid), "%d", getpid());
	if (mkdir(self->dir, 0700)) {
		self->dir[0] = 0;
		self->cannot = "no " INSTANCES;
		return;
	}
	foreign_write(self, "set_ftrace_filter", "_raw_spin_lock_nested");
	if (foreign_write(self, "set_ftrace_filter", "_raw_spin_lock") ||
	    foreign_write(self, "set_ftrace_filter", self->ends) ||
	    foreign_write(self, "set_ftrace_pid", pid) ||
	    foreign_write(self, "current_tracer", "function"))
		self->cannot = "this kernel cannot trace locks";
}

FIXTURE_TEARDOWN(foreign)
{
	close(self->fd);
	if (!self->dir[0])
		return;
	foreign_write(self, "current_tracer", "nop");
	EXPECT_EQ(0, rmdir(self->dir));
	/* Without probes these fail. */
	tw_file_write(PROBES, "-:" STORM "/want");
	tw_file_write(PROBES, "-:" STORM "/drop");
	tw_file_write(PROBES, "-:" STORM "/ends");
}

/*
 * The maximum number of locks that the module took between two calls of @self->ends; @all: the
 * total number. Clears the record.
 */
static int foreign_locks(FIXTURE_DATA(foreign) * self, int *all)
{
	int locks = 0, most = 0;
	char path[128], line[512];
	FILE *f;

	*all = 0;
	snprintf(path, sizeof(path), "%s/trace", self->dir);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line, self->ends))
			locks = 0;
		if (!strstr(line, ": _raw_spin_lock") || !strstr(line, " <-tw_"))
			continue;
		locks++;
		(*all)++;
		most = locks > most ? locks : most;
	}
	if (f)
		fclose(f);
	/* empties the trace */
	close(open(path, O_WRONLY | O_TRUNC | O_CLOEXEC));
	return most;
}

/*
 * A call on many timers lets real-time tasks run after it has locked two bases, even if each timer
 * is in the base of another CPU than the timer before. If all timers are in the base of the
 * caller's CPU, it locks only that base. The test counts locks instead of measuring time, because
 * the host can stop an emulated CPU that holds a lock for any time.
 */
TEST_F_TIMEOUT(foreign, waits_for_two_bases, TIMEOUT)
{
	struct timerwheel_move move[FOREIGN] = {};
	struct timerwheel_entry ent[FOREIGN] = {};
	__u64 at = 100 * HOUR;
	int i, all, round;

	if (self->cpus < 3)
		SKIP(return, "fewer than three CPUs");
	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	/* The bases exist, and have a timer that stays the first: no call starts an hrtimer. */
	for (i = 0; i < 3; i++) {
		tw_pin(self->w->cpu[i]);
		ASSERT_EQ(0, tw_add1(self->fd, FOREIGN + i, 0, HOUR, 0));
	}
	for (i = 0; i < FOREIGN; i++) {
		ASSERT_EQ(0, tw_add1(self->fd, i, 0, at, 0));
		ent[i].key = i;
	}
	foreign_locks(self, &all);
	if (!all)
		SKIP(return, "this kernel's spin locks are inline");
	/* A timer that is moved to an earlier time goes to the base of the caller's CPU. */
	for (round = 0; round < 3; round++) {
		at -= HOUR;
		/* one CPU of a lower number than the caller's, and one of a higher */
		for (i = 0; i < FOREIGN; i++) {
			tw_pin(self->w->cpu[i % 2 ? 0 : 2]);
			ASSERT_EQ(TIMERWHEEL_WAS_PENDING, tw_move1(self->fd, i, at, 0));
			move[i] = (struct timerwheel_move){ .key = i, .deadline = at - HOUR };
		}
		tw_pin(self->w->cpu[1]);
		foreign_locks(self, &all);
		ASSERT_EQ(FOREIGN, dev_get(self->fd, ent, FOREIGN));
		EXPECT_EQ(2, foreign_locks(self, &all));
		EXPECT_LE(FOREIGN, all);
		ASSERT_EQ(FOREIGN, dev_move(self->fd, move, FOREIGN));
		EXPECT_EQ(2, foreign_locks(self, &all));
		EXPECT_LE(FOREIGN, all);
		at -= 2 * HOUR;
		for (i = 0; i < FOREIGN; i++)
			move[i].deadline = at;
		ASSERT_EQ(FOREIGN, dev_move(self->fd, move, FOREIGN));
		EXPECT_EQ(1, foreign_locks(self, &all));
		EXPECT_GT(FOREIGN / 4, all);
	}
	for (i = 0; i < FOREIGN; i++) {
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, ent[i].result);
		EXPECT_EQ(TIMERWHEEL_WAS_PENDING, move[i].result);
	}
}

#define PROBE_WANT(func) "p:" STORM "/want " func " lock=%di:x64 caller=$stack0:symbol"
#define PROBE_DROP	"p:" STORM "/drop _raw_spin_unlock lock=%di:x64 word=+0(%di):x32"
#define STORM_CALLS	96	/* of all CPUs: queued locks are slow on a host with few CPUs */
#define STORM_KEYS	96	/* for each CPU */

struct storm_thread {
	pthread_t id;
	int fd, cpu, cpus;
	__u64 rnd;
	pthread_barrier_t *barrier;
	int failed;
};

/* Pull timers of other CPUs to this CPU's base, remove and arm them, as fast as possible. */
static void *storm_main(void *arg)
{
	struct storm_thread *t = arg;
	struct timerwheel_remove rem[FOREIGN];
	struct timerwheel_move move[FOREIGN];
	struct timerwheel_add add[FOREIGN];
	int i, k, keys = t->cpus * STORM_KEYS;
	__u64 key, at;

	tw_pin(t->cpu);
	pthread_barrier_wait(t->barrier);
	for (k = 0; k < STORM_CALLS / t->cpus; k++) {
		memset(rem, 0, sizeof(rem));
		memset(move, 0, sizeof(move));
		memset(add, 0, sizeof(add));
		for (i = 0; i < FOREIGN; i++) {
			key = (tw_rand(&t->rnd) >> 32) % keys;
			at = (10 + (tw_rand(&t->rnd) >> 32) % 90) * HOUR;
			rem[i].key = key;
			move[i] = (struct timerwheel_move){ .key = key, .deadline = at };
			add[i] = (struct timerwheel_add){ .key = key, .deadline = at };
		}
		if (k % 4 < 2)
			t->failed += dev_move(t->fd, move, FOREIGN) != FOREIGN;
		else if (k % 4 == 2)
			t->failed += dev_remove(t->fd, rem, FOREIGN) != FOREIGN;
		else
			t->failed += dev_add(t->fd, add, FOREIGN) != FOREIGN;
	}
	return NULL;
}

/*
 * State of a CPU as the trace shows it. It has locked bases lock[0] to lock[locks - 1], but may
 * still wait for the last one.
 */
struct storm_cpu {
	int lock[4];
	int locks;
	bool queued;		/* it waits for the last one, in the queue of that lock */
	int waited;		/* holds by other CPUs that it waited for, since it queued */
	unsigned int batch;	/* number of the hold of its bases */
	unsigned int counted[STORM_CPUS];	/* by CPU: the last batch that is in @chain */
	int taken, sum, chain;	/* since bottom halves were on */
};

struct storm {
	int cpus;
	unsigned long long address[STORM_CPUS];	/* of the bases' locks */
	struct storm_cpu cpu[STORM_CPUS];
	/* the largest values */
	int taken, waited, sum, chain;
	int locks;		/* in all */
	int disorder;		/* bases not locked in the order of their CPUs */
	int strange;		/* lines that make no sense */
};

static void storm_most(int *most, int n)
{
	*most = n > *most ? n : *most;
}

static bool storm_waits(const struct storm_cpu *c, int lock)
{
	return c->locks && c->lock[c->locks - 1] == lock;
}

static void storm_want(struct storm *s, struct storm_cpu *c, int lock)
{
	if (c->locks == ARRAY_SIZE(c->lock)) {
		s->strange++;
		return;
	}
	if (!c->locks)
		c->batch++;
	s->disorder += c->locks && c->lock[c->locks - 1] >= lock;
	c->lock[c->locks++] = lock;
	c->queued = false;
	c->waited = 0;
	s->locks++;
	storm_most(&s->taken, ++c->taken);
}

/*
 * CPU @nr is about to unlock @lock, whose value is @word: 0x100 is set if the first CPU in the
 * queue spins on it, and the CPU that queued last is in bits 18 to 31, plus one.
 *
 * A wait is counted only from the time at which the CPU was seen in the queue. The queue is in
 * order, so other CPUs take the lock once before it. (The host may have stopped the CPU between its
 * line in the trace and the queue, for any number of other CPUs' calls.)
 */
static void storm_drop(struct storm *s, int nr, int lock, unsigned int word, const int *number)
{
	bool late[STORM_CPUS] = {}, more = true;
	int i, k, waiters = 0, tail = word >> 18;
	struct storm_cpu *c = &s->cpu[nr];

	for (i = 0; i < s->cpus; i++)
		waiters += i != nr && storm_waits(&s->cpu[i], lock);
	for (i = 0; i < s->cpus; i++) {
		struct storm_cpu *o = &s->cpu[i];

		if (i == nr || !storm_waits(o, lock))
			continue;
		if (tail ? tail == number[i] + 1 : waiters == 1 && word & 0xff00)
			o->queued = true;
		if (!o->queued)
			continue;
		late[i] = true;
		o->sum++;
		storm_most(&s->waited, ++o->waited);
		storm_most(&s->sum, o->sum);
	}
	/* CPUs that wait for a base whose holder waits in turn */
	while (more) {
		more = false;
		for (i = 0; i < s->cpus; i++) {
			for (k = 0; late[i] && k < s->cpus; k++) {
				struct storm_cpu *o = &s->cpu[k];

				if (late[k] || k == nr || s->cpu[i].locks < 2 || !o->queued ||
				    !storm_waits(o, s->cpu[i].lock[0]))
					continue;
				late[k] = true;
				more = true;
			}
		}
	}
	for (i = 0; i < s->cpus; i++) {
		if (!late[i] || s->cpu[i].counted[nr] == c->batch)
			continue;
		s->cpu[i].counted[nr] = c->batch;
		storm_most(&s->chain, ++s->cpu[i].chain);
	}
	for (i = 0; i < c->locks && c->lock[i] != lock; i++)
		;
	if (i == c->locks) {
		s->strange++;
		return;
	}
	for (c->locks--; i < c->locks; i++)
		c->lock[i] = c->lock[i + 1];
	/* It holds the other base. */
	c->queued = false;
}

/* Read the trace, of CPUs @number */
static void storm_read(FIXTURE_DATA(foreign) * self, struct storm *s, const int *number)
{
	char path[128], line[512], *p, *field;
	unsigned long long address;
	struct storm_cpu *c;
	int nr, lock;
	FILE *f;

	snprintf(path, sizeof(path), "%s/trace", self->dir);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		p = strstr(line, " [");
		if (line[0] == '#' || !p)
			continue;
		for (nr = 0; nr < s->cpus && number[nr] != atoi(p + 2); nr++)
			;
		s->strange += nr == s->cpus || !!strstr(line, "LOST");
		if (nr == s->cpus)
			continue;
		c = &s->cpu[nr];
		if (strstr(line, ": ends: ") || strstr(line, ": sys_enter: ")) {
			c->taken = 0;
			c->sum = 0;
			c->chain = 0;
		}
		field = strstr(line, " lock=");
		if (!field)
			continue;
		address = strtoull(field + 6, NULL, 16);
		for (lock = 0; lock < s->cpus && s->address[lock] != address; lock++)
			;
		field = strstr(line, " word=");
		if (lock == s->cpus)
			s->strange++;
		else if (field)
			storm_drop(s, nr, lock, strtoul(field + 6, NULL, 16), number);
		else
			storm_want(s, c, lock);
	}
	if (f)
		fclose(f);
}

/* The lock of the only base that a GET of @key on this CPU locks; 0: unknown. */
static unsigned long long storm_address(FIXTURE_DATA(foreign) * self, __u64 key)
{
	unsigned long long address = 0;
	char path[128], line[512], *p;
	struct timerwheel_entry ent;
	FILE *f;

	snprintf(path, sizeof(path), "%s/trace", self->dir);
	close(open(path, O_WRONLY | O_TRUNC | O_CLOEXEC));
	if (tw_get1(self->fd, key, &ent) != TIMERWHEEL_WAS_PENDING)
		return 0;
	/* Otherwise reading the trace would make it longer. */
	foreign_write(self, "tracing_on", "0");
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		p = strstr(line, " lock=");
		if (strstr(line, ": want: ") && strstr(line, " caller=tw_") && p)
			address = strtoull(p + 6, NULL, 16);
	}
	if (f)
		fclose(f);
	close(open(path, O_WRONLY | O_TRUNC | O_CLOEXEC));
	foreign_write(self, "tracing_on", "1");
	return address;
}

/* Place the probes, and trace locks of this task and its threads. */
static const char *storm_probes(FIXTURE_DATA(foreign) * self)
{
	char text[128];

	snprintf(text, sizeof(text), "p:" STORM "/ends %s", self->ends);
	if (tw_file_write(PROBES, PROBE_WANT("_raw_spin_lock")) ||
	    tw_file_write(PROBES, PROBE_DROP) || tw_file_write(PROBES, text))
		return "this kernel cannot probe locks";
	/* Only kernels with lockdep have this probe. */
	tw_file_write(PROBES, PROBE_WANT("_raw_spin_lock_nested"));
	snprintf(text, sizeof(text), "%d", getpid());
	if (foreign_write(self, "current_tracer", "nop") ||
	    foreign_write(self, "trace_clock", "counter") ||
	    foreign_write(self, "buffer_size_kb", "8192") ||
	    foreign_write(self, "set_event_pid", text) ||
	    foreign_write(self, "options/event-fork", "1") ||
	    foreign_write(self, "events/" STORM "/want/enable", "1"))
		return "this kernel cannot trace probes";
	return NULL;
}

/*
 * All CPUs change timers of one wheel in each other's bases. A batch takes at most two bases, in
 * the order of their CPUs. If locks are queues, then each of the N - 1 other CPUs takes a base at
 * most once while a CPU waits for it. If holders in turn wait for a higher base, a batch waits for
 * at most 2^N - 2 holds: see Documentation/design/locking.md. The guest's locks are
 * queues only if the kernel does not know that it is a guest (--append clearcpuid=159).
 *
 * This test runs only on request, because some emulated kernels crashed or hung when probes were
 * placed in the functions that take and release spinlocks.
 */
TEST_F_TIMEOUT(foreign, bounds_waits, TIMEOUT)
{
	char filter[STORM_CPUS * 32] = "", path[128];
	struct storm_thread t[STORM_CPUS] = {};
	int i, n = self->cpus, len = 0;
	static struct storm storm;
	struct storm *s = &storm;
	pthread_barrier_t barrier;
	const char *cannot;

	if (!getenv("TW_PROBE_LOCKS"))
		SKIP(return, "TW_PROBE_LOCKS is not set");
	if (self->cannot)
		SKIP(return, "%s", self->cannot);
	cannot = storm_probes(self);
	if (cannot)
		SKIP(return, "%s", cannot);
	s->cpus = n;
	for (i = 0; i < n; i++) {
		tw_pin(self->w->cpu[i]);
		/* a timer that stays the first: no call starts an hrtimer */
		ASSERT_EQ(0, tw_add1(self->fd, n * STORM_KEYS + i, 0, HOUR, 0));
		s->address[i] = storm_address(self, n * STORM_KEYS + i);
		if (!s->address[i])
			SKIP(return, "this kernel's spin locks are inline");
		len += snprintf(filter + len, sizeof(filter) - len, "%slock == %#llx",
				i ? " || " : "", s->address[i]);
	}
	/* Each timer is in the base of another CPU for all CPUs but the last. */
	ASSERT_EQ(0, foreign_write(self, "events/" STORM "/want/enable", "0"));
	for (i = 0; i < n * STORM_KEYS; i++)
		ASSERT_EQ(0, tw_add1(self->fd, i, 0, 100 * HOUR, 0));
	snprintf(path, sizeof(path), "%s/trace", self->dir);
	close(open(path, O_WRONLY | O_TRUNC | O_CLOEXEC));
	ASSERT_EQ(0, foreign_write(self, "events/" STORM "/want/filter", filter));
	ASSERT_EQ(0, foreign_write(self, "events/" STORM "/drop/filter", filter));
	ASSERT_EQ(0, foreign_write(self, "events/" STORM "/want/enable", "1"));
	ASSERT_EQ(0, foreign_write(self, "events/" STORM "/drop/enable", "1"));
	ASSERT_EQ(0, foreign_write(self, "events/" STORM "/ends/enable", "1"));
	ASSERT_EQ(0, foreign_write(self, "events/raw_syscalls/sys_enter/enable", "1"));
	ASSERT_EQ(0, pthread_barrier_init(&barrier, NULL, n));
	for (i = 0; i < n; i++) {
		t[i] = (struct storm_thread){
			.fd = self->fd, .cpu = self->w->cpu[i], .cpus = n,
			.rnd = tw_seed() + i, .barrier = &barrier,
		};
		ASSERT_EQ(0, pthread_create(&t[i].id, NULL, storm_main, &t[i]));
	}
	for (i = 0; i < n; i++) {
		pthread_join(t[i].id, NULL);
		EXPECT_EQ(0, t[i].failed);
	}
	foreign_write(self, "tracing_on", "0");
	foreign_write(self, "events/enable", "0");
	storm_read(self, s, self->w->cpu);
	printf("# %d CPUs: locked bases %d times, at most %d in a batch\n", n, s->locks, s->taken);
	printf("# a batch waited for %d holds of a base, %d of its bases, %d with holders' waits\n",
	       s->waited, s->sum, s->chain);
	EXPECT_EQ(0, s->strange);
	EXPECT_LE(STORM_CALLS, s->locks);
	EXPECT_GE(n > 1 ? 2 : 1, s->taken);
	EXPECT_EQ(0, s->disorder);
	EXPECT_GE(n - 1, s->waited);
	EXPECT_GE(2 * (n - 1), s->sum);
	EXPECT_GE((1 << n) - 2, s->chain);
}

#define CLOSED_ROUNDS	200
#define CLOSED_TIMERS	5000

/*
 * A wheel is closed from another CPU during its burst, sometimes during a turn, which must be the
 * last turn. Otherwise the base would return to a queue that is freed, to wait for its last timer,
 * and the kernel would warn.
 */
TEST(closed_in_its_turn)
{
	static struct timerwheel_add add[CLOSED_TIMERS];
	struct thread t = { 0 };
	int i, k, fd, probe = dev_open(O_NONBLOCK);
	struct timerwheel_event ev;
	__u64 base, at;

	if (find_cpus(&world, 2) < 2)
		SKIP(return, "only one CPU");
	ASSERT_LE(0, probe);
	base = tw_memory_alone(probe);
	for (i = 0; i < CLOSED_ROUNDS; i++) {
		fd = dev_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		t.cpu = world.cpu[1];
		pin(&t);
		at = tw_now(CLOCK_MONOTONIC) + 10 * MSEC;
		for (k = 0; k < CLOSED_TIMERS; k++)
			add[k] = (struct timerwheel_add){
				.key = k, .deadline = k ? at : at + HOUR,
				.flags = TIMERWHEEL_ABS,
			};
		ASSERT_EQ(CLOSED_TIMERS, dev_add(fd, add, CLOSED_TIMERS));
		t.cpu = world.cpu[0];
		pin(&t);
		while (dev_poll(fd, 0) != POLLIN && tw_now(CLOCK_MONOTONIC) < at + 10 * SEC)
			;
		ASSERT_EQ(0, close(fd));
	}
	EXPECT_EQ(base, tw_memory_alone(probe));
	t.cpu = world.cpu[1];
	pin(&t);
	ASSERT_EQ(0, tw_add1(probe, 1, 2, MSEC, 0));
	ASSERT_EQ(POLLIN, dev_poll(probe, LONG_MS));
	EXPECT_EQ(1, dev_read(probe, &ev, 1));
	close(probe);
}

TEST_HARNESS_MAIN
