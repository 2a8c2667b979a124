// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The process back end: the interface of <linux/timerwheel.h> with a store of timers, a mutex and a
 * timerfd.
 *
 * There is no thread. Each call first expires timers whose deadlines have passed, up to a limit,
 * and then does its own work. Finally it arms the timerfd: for now if a timer is due, otherwise for
 * the first deadline. A wake-up that is too early only causes a call that finds nothing. The
 * timerfd is therefore not rearmed when a timer is postponed or removed, but only for an earlier
 * deadline and after it has fired.
 */
#define _FILE_OFFSET_BITS 64	/* required by: */
#define _TIME_BITS 64		/* seconds may need more than 32 bits */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "store.h"

/* The limits of the module, so that both back ends accept the same settings. */
#define LTW_TICK_MIN		1000ULL
#define LTW_TICK_MAX		3600000000000ULL
#define LTW_TICK_DEFAULT	1000000ULL
#define LTW_SLOTS_MIN		8U
#define LTW_SLOTS_MAX		4096U
#define LTW_CAPACITY_MAX	134217728U
#define LTW_CAPACITY_DEFAULT	4194304U
#define LTW_SLACK_MAX		0x2000000000000000ULL
#define LTW_GENERATION_BITS_MIN	12U	/* two of them are the state */
#define LTW_GENERATION_BITS_MAX	20U

/* Special values for the time for which the timerfd is armed. */
#define LTW_AT_ONCE		0ULL
#define LTW_NEVER		UINT64_MAX

/* Elements or indices processed while the lock is held, to limit the time that others wait. */
#define LTW_CHUNK			256U
/* Maximum number of expired timers that a call handles first, for the same reason. */
#define LTW_EXPIRE			1024U

/**
 * struct ltw_process - a wheel inside this process
 * @wheel: the common part
 * @lock: protects everything below
 * @store: the timers
 * @stats: the counters, except those that follow from @store
 * @tick: unit of slack, in ns
 * @slack: default slack, in ns
 * @now: with TIMERWHEEL_CLOCK_MANUAL: the time
 * @expired: time of the last complete expiry
 * @wake: the time for which the timerfd is armed
 * @drain_next: index at which the next timerwheel_drain() starts
 * @flags: flags of the current batch
 * @closed: the wheel accepts no new timers
 */
struct ltw_process {
	struct timerwheel wheel;
	pthread_mutex_t lock;
	struct ltw_store store;
	struct timerwheel_stats stats;
	uint64_t tick;
	uint64_t slack;
	uint64_t now;
	uint64_t expired;
	uint64_t wake;
	uint32_t drain_next;
	uint32_t flags;
	bool closed;
};

static struct ltw_process *ltw_process(struct timerwheel *wheel)
{
	return (struct ltw_process *)wheel;
}

static uint64_t ltw_time(const struct ltw_process *p)
{
	return p->wheel.clock == TIMERWHEEL_CLOCK_MANUAL ? p->now : ltw_clock_now(p->wheel.clock);
}

static uint64_t ltw_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Make the descriptor readable at time @wake. */
static void ltw_set_wake(struct ltw_process *p, uint64_t wake)
{
	struct pollfd now = { .fd = p->wheel.fd, .events = POLLIN };
	struct itimerspec at = { 0 };
	int cancel;

	if (wake == LTW_AT_ONCE) {
		at.it_value.tv_nsec = 1;
	} else if (wake != LTW_NEVER) {
		at.it_value.tv_sec = wake / 1000000000;
		at.it_value.tv_nsec = wake % 1000000000;
	}
	timerfd_settime(p->wheel.fd, TFD_TIMER_ABSTIME, &at, NULL);
	p->wake = wake;
	if (wake != LTW_AT_ONCE)
		return;
	/*
	 * The descriptor must be readable when this returns, so wait for the timerfd's interrupt.
	 * Disable cancellation, because a thread that is cancelled in poll() would keep the lock.
	 */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	while (poll(&now, 1, -1) < 0 && errno == EINTR)
		;
	pthread_setcancelstate(cancel, NULL);
}

/* The time at which the descriptor must become readable. */
static uint64_t ltw_wanted(const struct ltw_process *p)
{
	if (p->store.due)
		return LTW_AT_ONCE;
	if (p->store.pending && p->wheel.clock != TIMERWHEEL_CLOCK_MANUAL)
		return p->store.heap[0].deadline;
	return LTW_NEVER;
}

/* Make a timer due. It is not queued, and its deadline has passed. */
static void ltw_fire(struct ltw_process *p, uint32_t index, uint64_t now)
{
	struct ltw_timer *timer = &p->store.timer[index];
	uint64_t late = now - timer->deadline;
	int bits = late ? 64 - __builtin_clzll(late) : 0;

	timer->fired = now;
	ltw_store_due(&p->store, index);
	if (bits >= TIMERWHEEL_LATENESS_BUCKETS)
		bits = TIMERWHEEL_LATENESS_BUCKETS - 1;
	p->stats.lateness[bits]++;
	if (late > p->stats.late_max)
		p->stats.late_max = late;
}

/* Visit a pending timer whose deadline has passed. Returns 1 if it fell due, else 0. */
static unsigned int ltw_visit_timer(struct ltw_process *p, uint32_t index, uint64_t now)
{
	enum ltw_visit visit = ltw_store_visit(&p->store, index);

	if (visit == LTW_POSTPONED)
		return 0;
	ltw_store_take(&p->store, index);
	if (visit == LTW_CANCELLED) {
		ltw_store_park(&p->store, index);
		return 0;
	}
	ltw_fire(p, index, now);
	return 1;
}

/* Are there timers that must expire now? */
static bool ltw_behind(const struct ltw_process *p, uint64_t now)
{
	/*
	 * At TIMERWHEEL_TIME_MAX a periodic timer is armed for it again, and must not expire twice.
	 */
	return now != p->expired && p->store.pending && p->store.heap[0].deadline <= now;
}

/*
 * Expire timers whose deadlines have passed, visiting at most @most of them. The others expire in
 * later calls. Returns the number of timers that fell due.
 */
static uint64_t ltw_expire(struct ltw_process *p, uint64_t now, uint64_t most)
{
	bool manual = p->wheel.clock == TIMERWHEEL_CLOCK_MANUAL;
	uint64_t deadline, expired = 0;
	uint32_t index;

	for (; ltw_behind(p, now); most--) {
		if (!most)
			return expired;
		index = p->store.heap[0].index;
		deadline = p->store.heap[0].deadline;
		/* A MANUAL clock passes through every time. */
		expired += ltw_visit_timer(p, index, manual ? deadline : now);
	}
	p->expired = now;
	return expired;
}

/* Begin a call: lock the wheel and expire timers. Returns the time. */
static uint64_t ltw_begin(struct ltw_process *p)
{
	uint64_t now;

	pthread_mutex_lock(&p->lock);
	now = ltw_time(p);
	ltw_expire(p, now, LTW_EXPIRE);
	return now;
}

/* End a call: arm the timerfd if needed and unlock the wheel. */
static void ltw_end(struct ltw_process *p, uint64_t now)
{
	uint64_t wake = ltw_wanted(p);

	if (wake < p->wake || (wake > p->wake && p->wake <= now))
		ltw_set_wake(p, wake);
	pthread_mutex_unlock(&p->lock);
}

/* The absolute deadline. */
static uint64_t ltw_deadline(uint64_t deadline, uint32_t flags, uint64_t now)
{
	if (flags & TIMERWHEEL_ABS)
		return ltw_least(deadline, TIMERWHEEL_TIME_MAX);
	/* Relative deadlines are signed: this deadline has passed. */
	if ((int64_t)deadline < 0)
		return now > -deadline ? now + deadline : 0;
	return now + ltw_least(deadline, TIMERWHEEL_TIME_MAX - ltw_least(now, TIMERWHEEL_TIME_MAX));
}

static uint32_t ltw_slack_ticks(const struct ltw_process *p, uint64_t slack)
{
	return ltw_least(ltw_least(slack, LTW_SLACK_MAX) / p->tick, UINT32_MAX);
}

/* Queue a timer for its deadline. If the deadline has passed, make the timer due. */
static void ltw_queue_timer(struct ltw_process *p, uint32_t index, uint64_t now)
{
	if (p->store.timer[index].deadline > now)
		ltw_store_pend(&p->store, index);
	else
		ltw_fire(p, index, now);
}

/* Dequeue a timer in order to end or change it. Returns TIMERWHEEL_WAS_* if there is no table. */
static int ltw_unqueue_timer(struct ltw_process *p, uint32_t index)
{
	bool due = p->store.timer[index].state == LTW_DUE;

	ltw_store_take(&p->store, index);
	if (!due)
		return TIMERWHEEL_WAS_PENDING;
	p->stats.withdrawn++;
	return TIMERWHEEL_WAS_DUE;
}

/*
 * Give a timer that exists a new deadline, and dequeue it. Returns TIMERWHEEL_WAS_*; -EEXIST:
 * @unless_armed, and the timer is armed or due.
 */
static int ltw_set_deadline(struct ltw_process *p, uint32_t index, uint64_t deadline, uint64_t now,
			    bool unless_armed)
{
	int was;

	if (p->store.deadlines) {
		was = ltw_store_set(&p->store, index, deadline, now, unless_armed);
		if (was >= 0)
			ltw_unqueue_timer(p, index);
		return was;
	}
	was = ltw_unqueue_timer(p, index);
	p->store.timer[index].deadline = deadline;
	return was;
}

static int64_t ltw_left(const struct ltw_timer *timer, uint64_t now)
{
	/* The clock may have been set back since the timer fired. */
	if (timer->state == LTW_DUE && timer->fired > now)
		now = timer->fired;
	return timer->deadline - now;
}

/* Describe a timer. @armed: the result of ltw_store_touched() or ltw_store_disown(), if pending. */
static void ltw_describe(struct ltw_process *p, uint32_t index, uint64_t now, bool armed,
			 struct timerwheel_entry *entry)
{
	const struct ltw_timer *timer = &p->store.timer[index];
	bool lingers = p->store.resident && timer->period;
	int was = armed ? TIMERWHEEL_WAS_PENDING : TIMERWHEEL_WAS_PARKED;

	if (timer->state == LTW_DUE)
		was = TIMERWHEEL_WAS_DUE;
	else if (timer->state == LTW_PARKED)
		was = TIMERWHEEL_WAS_PARKED;
	*entry = (struct timerwheel_entry) {
		.key = timer->key,
		.value = timer->value,
		.deadline = timer->deadline,
		.left = ltw_left(timer, now),
		.period = timer->period,
		.slack = timer->slack * p->tick,
		.flags = lingers ? TIMERWHEEL_LINGER : 0,
		.result = was,
		.index = index,
		.generation = timer->generation,
	};
}

static void ltw_look(struct ltw_process *p, uint32_t index, uint64_t now,
		     struct timerwheel_entry *entry)
{
	bool armed = p->store.timer[index].state != LTW_PENDING ||
		     ltw_store_touched(&p->store, index);

	ltw_describe(p, index, now, armed, entry);
}

/* Describe a timer and end it. */
static void ltw_end_timer(struct ltw_process *p, uint32_t index, uint64_t now,
			  struct timerwheel_entry *entry)
{
	if (p->store.deadlines)
		ltw_describe(p, index, now, ltw_store_disown(&p->store, index), entry);
	else
		ltw_look(p, index, now, entry);
	ltw_unqueue_timer(p, index);
	ltw_store_delete(&p->store, index);
}

static bool ltw_add_invalid(const struct ltw_process *p, const struct timerwheel_add *add)
{
	const uint32_t either = TIMERWHEEL_EXCL | TIMERWHEEL_MATCH;
	const uint32_t linger = p->store.resident ? TIMERWHEEL_LINGER : 0;

	return add->flags & ~(TIMERWHEEL_ABS | TIMERWHEEL_SLACK | either | linger) ||
	       (add->flags & either) == either ||
	       add->period > TIMERWHEEL_TIME_MAX ||
	       (p->store.deadlines && !add->period == !!(add->flags & TIMERWHEEL_LINGER)) ||
	       (add->slack && !(add->flags & TIMERWHEEL_SLACK)) ||
	       (add->match && !(add->flags & TIMERWHEEL_MATCH));
}

/* Check an ADD against the timer that has its key; @index is 0 if there is none. */
static int ltw_add_may(const struct ltw_process *p, const struct timerwheel_add *add,
		       uint32_t index)
{
	if (p->closed)
		return -ESHUTDOWN;
	if (index && add->flags & TIMERWHEEL_EXCL)
		return -EEXIST;
	if (!(add->flags & TIMERWHEEL_MATCH))
		return 0;
	if (!index)
		return -ENOENT;
	return p->store.timer[index].value == add->match ? 0 : -ESTALE;
}

static int ltw_process_add(struct ltw_process *p, void *elem, uint64_t now)
{
	int err, was = TIMERWHEEL_WAS_NONE;
	struct timerwheel_add *add = elem;
	struct ltw_timer *timer;
	uint64_t deadline;
	uint32_t index;

	if (ltw_add_invalid(p, add))
		return -EINVAL;
	index = ltw_store_find(&p->store, add->key);
	err = ltw_add_may(p, add, index);
	if (err)
		return err;
	deadline = ltw_deadline(add->deadline, add->flags, now);
	if (index) {
		was = ltw_set_deadline(p, index, deadline, now, false);
		p->stats.replaced++;
	} else {
		err = ltw_store_new(&p->store, add->key, &index);
		if (err)
			return err;
		p->store.timer[index].deadline = deadline;
		if (p->store.deadlines)
			ltw_store_set(&p->store, index, deadline, now, false);
	}
	timer = &p->store.timer[index];
	timer->value = add->value;
	timer->period = add->period;
	timer->slack = ltw_slack_ticks(p, add->flags & TIMERWHEEL_SLACK ? add->slack : p->slack);
	ltw_queue_timer(p, index, now);
	p->stats.armed++;
	add->index = index;
	add->generation = timer->generation;
	return was;
}

/* Find the timer for MOVE or REMOVE. Returns 0 or an error. */
static int ltw_lookup(const struct ltw_process *p, uint64_t key, uint32_t flags, uint64_t match,
		      uint32_t *index)
{
	if (match && !(flags & TIMERWHEEL_MATCH))
		return -EINVAL;
	*index = ltw_store_find(&p->store, key);
	if (!*index)
		return -ENOENT;
	if (flags & TIMERWHEEL_MATCH && p->store.timer[*index].value != match)
		return -ESTALE;
	return 0;
}

/* MOVE a timer. Returns TIMERWHEEL_WAS_* or -EEXIST. */
static int ltw_move_timer(struct ltw_process *p, uint32_t index, uint64_t deadline, uint32_t flags,
			  uint64_t now)
{
	int was = ltw_set_deadline(p, index, ltw_deadline(deadline, flags, now), now,
				   flags & TIMERWHEEL_EXCL);

	if (was < 0)
		return was;
	ltw_queue_timer(p, index, now);
	p->stats.moved++;
	return was;
}

static int ltw_process_move(struct ltw_process *p, void *elem, uint64_t now)
{
	const uint32_t excl = p->store.deadlines ? TIMERWHEEL_EXCL : 0;
	struct timerwheel_move *move = elem;
	uint32_t index;
	int err;

	if (move->flags & ~(TIMERWHEEL_ABS | TIMERWHEEL_MATCH | excl))
		return -EINVAL;
	err = ltw_lookup(p, move->key, move->flags, move->match, &index);
	if (err)
		return err;
	return ltw_move_timer(p, index, move->deadline, move->flags, now);
}

static int ltw_process_move_handle(struct ltw_process *p, void *elem, uint64_t now)
{
	const struct timerwheel_move_handle *move = elem;

	if (p->flags & TIMERWHEEL_EXCL && !p->store.deadlines)
		return -EINVAL;
	if (!ltw_store_owned(&p->store, move->index, move->generation))
		return -ENOENT;
	return ltw_move_timer(p, move->index, move->deadline, p->flags, now);
}

static int ltw_process_remove(struct ltw_process *p, void *elem, uint64_t now)
{
	struct timerwheel_remove *remove = elem;
	struct timerwheel_entry entry;
	uint32_t index;
	int err;

	if (remove->flags & ~TIMERWHEEL_MATCH)
		return -EINVAL;
	err = ltw_lookup(p, remove->key, remove->flags, remove->match, &index);
	if (err)
		return err;
	ltw_end_timer(p, index, now, &entry);
	p->stats.removed++;
	remove->value = entry.value;
	remove->left = entry.left;
	return entry.result;
}

static int ltw_process_remove_handle(struct ltw_process *p, void *elem, uint64_t now)
{
	struct timerwheel_remove_handle *remove = elem;
	struct timerwheel_entry entry;

	if (!ltw_store_owned(&p->store, remove->index, remove->generation))
		return -ENOENT;
	ltw_end_timer(p, remove->index, now, &entry);
	p->stats.removed++;
	remove->value = entry.value;
	return entry.result;
}

static int ltw_process_get(struct ltw_process *p, void *elem, uint64_t now)
{
	struct timerwheel_entry *entry = elem;
	uint32_t index;

	if (entry->flags)
		return -EINVAL;
	index = ltw_store_find(&p->store, entry->key);
	if (!index)
		return -ENOENT;
	ltw_look(p, index, now, entry);
	return entry->result;
}

#define LTW_KIND(type, function, flags) \
	{ function, sizeof(struct type), offsetof(struct type, result), flags }

static long ltw_process_batch(struct timerwheel *wheel, enum ltw_kind kind, uint32_t flags,
			      void *elems, size_t count)
{
	static const struct {
		int (*one)(struct ltw_process *p, void *elem, uint64_t now);
		size_t size;
		size_t result;
		uint32_t flags;
	} kinds[] = {
		[LTW_ADD] = LTW_KIND(timerwheel_add, ltw_process_add, 0),
		[LTW_MOVE] = LTW_KIND(timerwheel_move, ltw_process_move, 0),
		[LTW_REMOVE] = LTW_KIND(timerwheel_remove, ltw_process_remove, 0),
		[LTW_GET] = LTW_KIND(timerwheel_entry, ltw_process_get, 0),
		[LTW_MOVE_HANDLE] = LTW_KIND(timerwheel_move_handle, ltw_process_move_handle,
					     TIMERWHEEL_ABS | TIMERWHEEL_EXCL),
		[LTW_REMOVE_HANDLE] = LTW_KIND(timerwheel_remove_handle,
					       ltw_process_remove_handle, 0),
	};
	struct ltw_process *p = ltw_process(wheel);
	char *elem = elems;
	size_t done, end;
	uint64_t now;

	/* Only the kernel can watch a connection. */
	if (kind == LTW_ADD_SOCKET)
		return -EOPNOTSUPP;
	if (flags & ~kinds[kind].flags)
		return -EINVAL;
	for (done = 0; done < count;) {
		now = ltw_begin(p);
		p->flags = flags;
		for (end = ltw_least(count, done + LTW_CHUNK); done < end; done++) {
			*(__s32 *)(elem + kinds[kind].result) = kinds[kind].one(p, elem, now);
			elem += kinds[kind].size;
		}
		ltw_end(p, now);
	}
	return done;
}

static long ltw_process_list(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count,
			     uint64_t *cursor)
{
	struct ltw_process *p = ltw_process(wheel);
	uint64_t index = *cursor ? *cursor : 1, stop, now;
	size_t done = 0;
	bool more = true;

	while (more && done < count) {
		now = ltw_begin(p);
		stop = ltw_least(p->store.made + 1ULL, index + LTW_CHUNK);
		for (; index < stop && done < count; index++)
			if (p->store.timer[index].state != LTW_FREE)
				ltw_look(p, index, now, &elems[done++]);
		more = index <= p->store.made;
		ltw_end(p, now);
	}
	*cursor = index;
	return done;
}

static long ltw_process_drain(struct timerwheel *wheel, struct timerwheel_entry *elems,
			      size_t count, uint32_t flags)
{
	struct ltw_process *p = ltw_process(wheel);
	uint32_t n, seen = 0, end = 0, next = 0;
	size_t done = 0;
	uint64_t now;

	if (flags & ~TIMERWHEEL_DRAIN_CLOSE)
		return -EINVAL;
	do {
		now = ltw_begin(p);
		if (flags & TIMERWHEEL_DRAIN_CLOSE)
			p->closed = true;
		/*
		 * Visit exactly the indices that exist now, beginning where the last call ended:
		 * other threads may add more or drain in the meantime.
		 */
		if (!seen) {
			end = p->store.made;
			next = p->drain_next;
		}
		for (n = 0; n < LTW_CHUNK && seen < end && done < count; n++, seen++) {
			if (next > end || !next)
				next = 1;
			if (p->store.timer[next].state != LTW_FREE) {
				ltw_end_timer(p, next, now, &elems[done++]);
				p->stats.drained++;
			}
			next++;
		}
		p->drain_next = next;
		ltw_end(p, now);
	} while (seen < end && done < count);
	return done;
}

static long ltw_process_advance(struct timerwheel *wheel, uint64_t time, uint32_t flags)
{
	struct ltw_process *p = ltw_process(wheel);
	uint64_t now, to;
	long ret = -EINVAL;

	if (flags & ~TIMERWHEEL_ABS || wheel->clock != TIMERWHEEL_CLOCK_MANUAL)
		return -EINVAL;
	if (!(flags & TIMERWHEEL_ABS) && (int64_t)time < 0)
		return -EINVAL;
	now = ltw_begin(p);
	to = ltw_deadline(time, flags, now);
	if (to >= now) {
		p->now = to;
		/* Expire all of them: the result is their number, which no later call returns. */
		ret = ltw_expire(p, to, UINT64_MAX);
	}
	ltw_end(p, now);
	return ret;
}

/* Arm a periodic timer, after its delivery, for the first deadline that has not passed. */
static void ltw_rearm(struct ltw_process *p, uint32_t index, uint64_t overruns)
{
	struct ltw_timer *timer = &p->store.timer[index];
	uint64_t passed = overruns * timer->period;	/* at most now - deadline */

	if (timer->period > TIMERWHEEL_TIME_MAX - timer->deadline - passed)
		timer->deadline = TIMERWHEEL_TIME_MAX;
	else
		timer->deadline += passed + timer->period;
	ltw_store_pend(&p->store, index);
	p->stats.rearmed++;
	p->stats.overruns += overruns;
}

/* Park a resident timer after its delivery, or queue it as cancelled for its linger. */
static void ltw_stay(struct ltw_process *p, uint32_t index, uint64_t now)
{
	p->stats.rearmed++;
	if (!p->store.timer[index].period) {
		ltw_store_park(&p->store, index);
		return;
	}
	ltw_store_linger(&p->store, index, now);
	ltw_store_pend(&p->store, index);
}

/* Deliver the event of the first due timer. */
static void ltw_deliver(struct ltw_process *p, uint64_t now, struct timerwheel_event *event)
{
	uint32_t index = p->store.due_first;
	const struct ltw_timer *timer = &p->store.timer[index];

	*event = (struct timerwheel_event) {
		.key = timer->key,
		.value = timer->value,
		.deadline = timer->deadline,
		.fired = timer->fired,
		.index = index,
	};
	ltw_store_take(&p->store, index);
	if (p->store.resident) {
		ltw_stay(p, index, now);
	} else if (timer->period) {
		event->flags = TIMERWHEEL_EVENT_PERIODIC;
		if (now > timer->deadline)
			event->overruns = (now - timer->deadline) / timer->period;
		ltw_rearm(p, index, event->overruns);
	} else {
		ltw_store_delete(&p->store, index);
	}
	p->stats.delivered++;
}

static long ltw_process_take(struct timerwheel *wheel, struct timerwheel_event *events,
			     size_t count)
{
	struct ltw_process *p = ltw_process(wheel);
	bool behind;
	uint64_t now;
	size_t n, i;

	do {
		now = ltw_begin(p);
		n = ltw_least(count, p->store.due);
		for (i = 0; i < n; i++)
			ltw_deliver(p, now, &events[i]);
		/*
		 * So many were postponed or cancelled that the limit was reached before a due one.
		 */
		behind = !n && count && ltw_behind(p, now);
		/* If the clock was set back, the descriptor may be readable too early: rearm it. */
		if (!n && wheel->clock == TIMERWHEEL_CLOCK_REALTIME)
			ltw_set_wake(p, ltw_wanted(p));
		ltw_end(p, now);
	} while (behind);
	return n;
}

static int ltw_process_share(const struct timerwheel *wheel)
{
	(void)wheel;
	return -ENOTSUP;
}

static int ltw_process_monitor(struct timerwheel *wheel, uint32_t events, uint32_t flags)
{
	(void)wheel;
	(void)events;
	(void)flags;
	return -ENOTSUP;
}

static size_t ltw_process_memory(const struct ltw_process *p)
{
	return sizeof(*p) + ltw_store_memory(&p->store);
}

static int ltw_process_info(struct timerwheel *wheel, struct timerwheel_info *info)
{
	struct ltw_process *p = ltw_process(wheel);
	uint64_t now = ltw_begin(p);

	*info = (struct timerwheel_info) {
		.size = sizeof(*info),
		.flags = TIMERWHEEL_INFO_SETTLED | (p->closed ? TIMERWHEEL_INFO_CLOSED : 0) |
			 (p->store.deadlines ? TIMERWHEEL_INFO_TABLE : 0) |
			 (p->store.resident ? TIMERWHEEL_INFO_RESIDENT : 0),
		.abi_version = TIMERWHEEL_ABI_VERSION,
		.batch_max = TIMERWHEEL_BATCH_MAX,
		.features = TIMERWHEEL_FEATURE_TABLE | TIMERWHEEL_FEATURE_HANDLE,
		.tick_min = LTW_TICK_MIN,
		.tick_max = LTW_TICK_MAX,
		.slots_min = LTW_SLOTS_MIN,
		.slots_max = LTW_SLOTS_MAX,
		.capacity_max = LTW_CAPACITY_MAX,
		.clock = wheel->clock,
		.tick = p->tick,
		.capacity = p->store.capacity,
		.slack = p->slack,
		.wake_events = 1,
		.generation_bits = p->store.generation_bits,
		.user_memory = ltw_process_memory(p),
		.user_memory_max = UINT64_MAX,
		.now = now,
		.ring_max = TIMERWHEEL_RING_MAX,
		.event_size = sizeof(struct timerwheel_event),
		.event_size_max = sizeof(struct timerwheel_event),
	};
	ltw_end(p, now);
	return 0;
}

static int ltw_process_stats(struct timerwheel *wheel, struct timerwheel_stats *stats)
{
	struct ltw_process *p = ltw_process(wheel);
	uint64_t now = ltw_begin(p);

	*stats = p->stats;
	stats->size = sizeof(*stats);
	stats->pending = p->store.pending;
	stats->due = p->store.due;
	stats->parked = p->store.parked;
	stats->memory = ltw_process_memory(p);
	ltw_end(p, now);
	return 0;
}

static uint64_t ltw_process_now(struct timerwheel *wheel)
{
	struct ltw_process *p = ltw_process(wheel);
	uint64_t now;

	if (wheel->clock != TIMERWHEEL_CLOCK_MANUAL)
		return ltw_clock_now(wheel->clock);
	pthread_mutex_lock(&p->lock);
	now = p->now;
	pthread_mutex_unlock(&p->lock);
	return now;
}

static void ltw_process_close(struct timerwheel *wheel)
{
	struct ltw_process *p = ltw_process(wheel);

	if (wheel->fd >= 0)
		close(wheel->fd);
	ltw_store_free(&p->store);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static const struct ltw_ops ltw_process_ops = {
	.backend = TIMERWHEEL_BACKEND_PROCESS,
	.close = ltw_process_close,
	.share = ltw_process_share,
	.info = ltw_process_info,
	.stats = ltw_process_stats,
	.now = ltw_process_now,
	.batch = ltw_process_batch,
	.list = ltw_process_list,
	.drain = ltw_process_drain,
	.advance = ltw_process_advance,
	.take = ltw_process_take,
	.monitor = ltw_process_monitor,
};

/* The same checks as in the module. */
static bool ltw_config_invalid(const struct timerwheel_config *config)
{
	uint64_t tick_min = config->clock == TIMERWHEEL_CLOCK_MANUAL ? 1 : LTW_TICK_MIN;

	return config->clock > TIMERWHEEL_CLOCK_MANUAL ||
	       (config->slots && (config->slots < LTW_SLOTS_MIN ||
				  config->slots > LTW_SLOTS_MAX)) ||
	       (config->tick && (config->tick < tick_min || config->tick > LTW_TICK_MAX)) ||
	       config->capacity > LTW_CAPACITY_MAX ||
	       config->slack > TIMERWHEEL_TIME_MAX ||
	       config->wake_ns > TIMERWHEEL_TIME_MAX ||
	       config->ring > TIMERWHEEL_RING_MAX ||
	       (config->clock_set && config->clock != TIMERWHEEL_CLOCK_REALTIME) ||
	       (config->alarm && config->clock != TIMERWHEEL_CLOCK_REALTIME &&
		config->clock != TIMERWHEEL_CLOCK_BOOTTIME) ||
	       (config->wake_events > 1 && !config->wake_ns);
}

/* As many bits as represent less than a tick, within limits */
static uint32_t ltw_generation_bits(uint64_t tick)
{
	uint32_t bits = 63 - __builtin_clzll(tick);

	if (bits < LTW_GENERATION_BITS_MIN)
		return LTW_GENERATION_BITS_MIN;
	return bits < LTW_GENERATION_BITS_MAX ? bits : LTW_GENERATION_BITS_MAX;
}

static int ltw_process_timerfd(uint32_t clock)
{
	static const clockid_t clocks[] = {
		[TIMERWHEEL_CLOCK_MONOTONIC] = CLOCK_MONOTONIC,
		[TIMERWHEEL_CLOCK_BOOTTIME] = CLOCK_BOOTTIME,
		[TIMERWHEEL_CLOCK_REALTIME] = CLOCK_REALTIME,
		/* Any clock works: it is armed only for LTW_AT_ONCE and LTW_NEVER. */
		[TIMERWHEEL_CLOCK_MANUAL] = CLOCK_MONOTONIC,
	};
	int fd = timerfd_create(clocks[clock], TFD_CLOEXEC | TFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int ltw_process_open(struct timerwheel **wheel, const struct timerwheel_config *config)
{
	struct ltw_process *p;
	int err;

	if (ltw_config_invalid(config))
		return -EINVAL;
	if (config->clock_set || config->alarm)
		return -ENOTSUP;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	p->wheel.ops = &ltw_process_ops;
	p->wheel.clock = config->clock;
	p->tick = config->tick ? config->tick : LTW_TICK_DEFAULT;
	p->slack = config->slack;
	p->wake = LTW_NEVER;
	p->store.capacity = config->capacity ? config->capacity : LTW_CAPACITY_DEFAULT;
	p->store.resident = config->resident;
	p->store.generation_bits = ltw_generation_bits(p->tick);
	err = ltw_store_init(&p->store, config->table || config->resident);
	p->wheel.fd = err ? -1 : ltw_process_timerfd(config->clock);
	if (!err && p->wheel.fd < 0)
		err = p->wheel.fd;
	if (err) {
		ltw_process_close(&p->wheel);
		return err;
	}
	p->wheel.table.entries = p->store.deadlines;
	p->wheel.table.bits = p->store.generation_bits;
	*wheel = &p->wheel;
	return 0;
}
