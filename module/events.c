// SPDX-License-Identifier: GPL-2.0-only
/*
 * Due timers on their way to readers.
 *
 * A timer that fell due is queued here as it is: the timer is the queue entry, so that
 * expiry allocates nothing and a due timer can be withdrawn in O(1). It leaves the
 * list in one of two ways, both under the events' lock: a reader has its event, or an
 * operation on its key withdraws it.
 *
 * A reader copies events to its buffer while it holds that lock, with page faults off. Only
 * then the timers leave the list: what could not be copied has not been touched and waits
 * for this reader to fault its buffer in, or for the next one. A one-shot timer is
 * TW_CLAIMED from its copy until the reader has taken it out of the key table, which
 * must wait until the events' lock is dropped (bucket locks come before it); look-ups
 * take a claimed timer for absent. A periodic timer is queued again at once in the wheel of
 * the reader's CPU, for the first of its deadlines that is still to come.
 */
#include <linux/math64.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>

#include "clock.h"
#include "cpu.h"
#include "internal.h"
#include "ring.h"
#include "run.h"
#include "slots.h"
#include "table.h"
#include "trace.h"

/* Events that are copied under one hold of the lock: as many timers as in a piece of a pass. */
#define TW_EVENTS	64U

/* Events that go into the ring at once: more than fall due in a piece of a pass. */
#define TW_FLOW		128U

#define TW_EVENT_SIZE	((ssize_t)sizeof(struct timerwheel_event))

/**
 * tw_events_init - prepare
 * @events: zeroed
 */
void tw_events_init(struct tw_events *events)
{
	raw_spin_lock_init(&events->lock);
	init_waitqueue_head(&events->readers);
	INIT_LIST_HEAD(&events->monitors);
}

/* How many events user space has not got yet: due timers, and what is in the ring. */
static u32 tw_events_waiting(const struct tw_file *file)
{
	u32 due = READ_ONCE(file->events.due.count);

	return tw_has_ring(file) ? due + min(tw_ring_used(&file->ring), file->ring.events) : due;
}

/**
 * tw_events_any - does any event wait?
 * @file: whose
 *
 * Return: true if so, just now.
 */
bool tw_events_any(const struct tw_file *file)
{
	return tw_events_waiting(file);
}

/**
 * tw_events_add - queue timers that fell due
 * @cpu: the part in which they did, locked
 * @due: they, linked and TW_DUE
 * @now: the file's time, in ns
 *
 * Return: true if readers are to be woken, which the caller does once it holds no lock.
 */
bool tw_events_add(struct tw_cpu *cpu, const struct tw_chain *due, u64 now)
{
	struct tw_file *file = cpu->file;
	struct tw_events *events = &file->events;
	struct tw_chain *all = &events->due;
	u32 waiting;
	bool wake;

	lockdep_assert_held(&cpu->lock);
	trace_timerwheel_expire(cpu, due, now);
	raw_spin_lock(&events->lock);
	if (all->last) {
		tw_timer_at(&file->table.pool, all->last)->next = due->first;
		tw_timer_at(&file->table.pool, due->first)->prev = all->last;
	} else {
		all->first = due->first;
	}
	all->last = due->last;
	/* Those that are gone were the ones that readers were woken for. */
	waiting = tw_events_waiting(file);
	events->woken = min(events->woken, waiting);
	waiting += due->count;
	WRITE_ONCE(all->count, all->count + due->count);

	wake = waiting - events->woken >= file->setup.wake_events ||
	       file->setup.clock == TIMERWHEEL_CLOCK_MANUAL;
	if (wake) {
		events->woken = waiting;
	} else if (!events->wake_set) {
		events->wake_set = true;
		cpu->wake_at = min_t(u64, now + file->setup.wake_ns, KTIME_MAX);
	}
	raw_spin_unlock(&events->lock);
	return wake;
}

/**
 * tw_events_wake_now - the time is up for readers that wait for more events
 * @cpu: the part whose @wake_at it was, locked
 *
 * Return: true if readers are to be woken.
 */
bool tw_events_wake_now(struct tw_cpu *cpu)
{
	struct tw_events *events = &cpu->file->events;
	bool wake;

	lockdep_assert_held(&cpu->lock);
	cpu->wake_at = TW_NEVER;
	raw_spin_lock(&events->lock);
	events->wake_set = false;
	events->woken = tw_events_waiting(cpu->file);
	wake = events->woken;
	raw_spin_unlock(&events->lock);
	return wake;
}

/**
 * tw_events_wake - wake readers
 * @file: whose
 *
 * Context: softirq or process; no raw lock held.
 */
void tw_events_wake(struct tw_file *file)
{
	struct tw_events *events = &file->events;

	if (tw_has_ring(file) && !tw_ring_wanted(&file->ring))
		return;
	/* The barrier in here pairs with the one in tw_poll() and that of wait_event(). */
	if (wq_has_sleeper(&events->readers)) {
		atomic64_inc(&events->wakeups);
		wake_up_interruptible_poll(&events->readers, EPOLLIN | EPOLLRDNORM);
	}
	kill_fasync(&events->fasync, SIGIO, POLL_IN);
}

/**
 * tw_events_lock - lock the list
 * @file: the file
 */
void tw_events_lock(struct tw_file *file)
{
	raw_spin_lock(&file->events.lock);
}

/**
 * tw_events_unlink - take a timer off the list
 * @file: the file
 * @t: the timer, which is on it; the list is locked
 *
 * Its state stays: nobody finds it while its bucket is locked.
 */
void tw_events_unlink(struct tw_file *file, struct tw_timer *t)
{
	struct tw_chain *all = &file->events.due;
	const struct tw_pool *pool = &file->table.pool;

	lockdep_assert_held(&file->events.lock);
	if (t->prev)
		tw_timer_at(pool, t->prev)->next = t->next;
	else
		all->first = t->next;
	if (t->next)
		tw_timer_at(pool, t->next)->prev = t->prev;
	else
		all->last = t->prev;
	WRITE_ONCE(all->count, all->count - 1);
}

/**
 * tw_events_unlock - undo tw_events_lock()
 * @file: the file
 */
void tw_events_unlock(struct tw_file *file)
{
	raw_spin_unlock(&file->events.lock);
}

/* Deadlines of a periodic timer that have passed since the one that it is due for. */
static u64 tw_overruns(const struct tw_ctx *ctx, const struct tw_timer *t)
{
	return div64_u64(max(ctx->now, t->deadline) - t->deadline, t->period);
}

/* What there is to tell about a due timer. @offset: that of @ctx */
static __always_inline struct timerwheel_event
tw_event_of(const struct tw_ctx *ctx, u32 index, const struct tw_timer *t, u64 offset)
{
	return (struct timerwheel_event) {
		.key = t->key,
		.value = t->value,
		.deadline = t->deadline + offset,
		.fired = t->fired + offset,
		.overruns = unlikely(t->period) ? tw_overruns(ctx, t) : 0,
		.flags = unlikely(t->period) ? TIMERWHEEL_EVENT_PERIODIC : 0,
		.index = index,
	};
}

/* A periodic timer's event was handed out: queue it for the next deadline that is to come. */
static void tw_event_rearm(struct tw_ctx *ctx, struct tw_timer *t, u32 index)
{
	u64 overruns = tw_overruns(ctx, t);
	u64 passed = overruns * t->period;	/* at most now - deadline */
	struct tw_cpu *cpu = ctx->cpu;

	/* A deadline that far ahead is never reached. */
	if (t->period > TIMERWHEEL_TIME_MAX - t->deadline - passed)
		t->deadline = TIMERWHEEL_TIME_MAX;
	else
		t->deadline += passed + t->period;
	WRITE_ONCE(t->cpu, cpu->nr);
	/* Whoever reads the state reads the CPU afterwards: pairs with tw_settled(). */
	smp_store_release(&t->state, TW_PENDING);
	tw_wheel_insert(&cpu->wheel, index, t);
	cpu->counts.rearmed++;
	cpu->counts.overruns += overruns;
}

/**
 * struct tw_taken - timers whose events were handed out: the first ones of the list
 * @first: the first of them
 * @next: the first that is left, 0: none is
 * @count: how many were handed out
 * @periodic: some of them are periodic. All others are TW_CLAIMED.
 */
struct tw_taken {
	u32 first;
	u32 next;
	unsigned int count;
	bool periodic;
};

/* One more was handed out: @event. */
static __always_inline void tw_taken_add(struct tw_taken *taken, struct tw_timer *t,
					 const struct timerwheel_event *event)
{
	if (unlikely(event->flags))
		taken->periodic = true;
	else
		WRITE_ONCE(t->state, TW_CLAIMED);
	taken->next = t->next;
	taken->count++;
}

/* Tell those who watch what was handed out. */
static noinline void tw_events_tell(struct tw_ctx *ctx, const struct tw_taken *taken)
{
	struct tw_file *file = ctx->file;
	struct timerwheel_event event;
	struct tw_timer *t;
	u32 index;

	for (index = taken->first; index != taken->next; index = t->next) {
		t = tw_timer_at(&file->table.pool, index);
		event = tw_event_of(ctx, index, t, ctx->offset);
		trace_timerwheel_deliver(file, &event);
		tw_monitor_tell(file, &event);
	}
	ctx->told = true;
}

/* Arm the periodic ones of the timers that were taken, and leave only the others in @taken. */
static noinline void tw_events_rearm(struct tw_ctx *ctx, struct tw_taken *taken)
{
	u32 claimed = 0, index, next;
	struct tw_timer *t;

	taken->count = 0;
	for (index = taken->first; index != taken->next; index = next) {
		t = tw_timer_at(&ctx->file->table.pool, index);
		next = t->next;
		if (t->period) {
			tw_event_rearm(ctx, t, index);
		} else {
			t->next = claimed;
			claimed = index;
			taken->count++;
		}
	}
	taken->first = claimed;
}

/* Take the timers whose events were handed out off the list. */
static void tw_events_pop(struct tw_ctx *ctx, struct tw_taken *taken)
{
	struct tw_file *file = ctx->file;
	struct tw_chain *all = &file->events.due;

	if (unlikely(file->events.nr_monitors || trace_timerwheel_deliver_enabled()))
		tw_events_tell(ctx, taken);
	all->first = taken->next;
	if (all->first)
		tw_timer_at(&file->table.pool, all->first)->prev = 0;
	else
		all->last = 0;
	WRITE_ONCE(all->count, all->count - taken->count);
	ctx->cpu->counts.delivered += taken->count;
	if (unlikely(taken->periodic))
		tw_events_rearm(ctx, taken);
}

/* Free the timers that were taken. */
static void tw_events_free(struct tw_ctx *ctx, const struct tw_taken *taken)
{
	struct tw_table *table = &ctx->file->table;
	struct tw_timer **pages = tw_pool_pages(&table->pool);
	u32 buckets = tw_table_buckets(table);
	struct tw_bucket *bucket;
	struct tw_timer *t;
	u32 *chain;
	u32 index, next;
	unsigned int n;

	for (n = taken->count, index = taken->first; n; n--, index = next) {
		t = tw_timer_in(pages, index);
		next = t->next;
		chain = tw_table_chain(table, t->key, buckets);
		bucket = tw_table_lock(table, t->key, buckets, &chain);
		tw_table_set_link(tw_table_link(table, chain, index), t->hash_next);
		WRITE_ONCE(t->state, TW_FREE);
		tw_bucket_unlock(table, bucket);
		tw_cpu_free(ctx->cpu, index, t);
	}
}

/*
 * Hand out the first due timers' events, at most @max of them, to one piece of user memory: word
 * by word from the timers. At a fault the event that was being written may be there in part.
 */
static void tw_events_put(const struct tw_ctx *ctx, struct timerwheel_event __user *to,
			  unsigned int max, struct tw_taken *taken)
{
	struct tw_timer **pages = tw_pool_pages(&ctx->file->table.pool);
	u64 offset = ctx->offset;
	struct timerwheel_event event;
	struct tw_timer *t;

	if (!user_access_begin(to, max * sizeof(*to)))
		return;
	for (; taken->count < max; to++) {
		t = tw_timer_in(pages, taken->next);
		event = tw_event_of(ctx, taken->next, t, offset);
		unsafe_put_user(event.key, &to->key, fault);
		unsafe_put_user(event.value, &to->value, fault);
		unsafe_put_user(event.deadline, &to->deadline, fault);
		unsafe_put_user(event.fired, &to->fired, fault);
		unsafe_put_user(event.overruns, &to->overruns, fault);
		unsafe_put_user(event.flags, &to->flags, fault);
		unsafe_put_user(event.index, &to->index, fault);
		tw_taken_add(taken, t, &event);
	}
fault:
	user_access_end();
}

/* Hand out the first due timers' events, at most @max of them. */
static void tw_events_copy(const struct tw_ctx *ctx, struct iov_iter *to, unsigned int max,
			   struct tw_taken *taken)
{
	struct timerwheel_event event;
	struct tw_timer *t;
	size_t copied;

	/* read(), nearly always */
	if (likely(iter_is_ubuf(to))) {
		tw_events_put(ctx, to->ubuf + to->iov_offset, max, taken);
		iov_iter_advance(to, taken->count * sizeof(event));
		return;
	}
	while (taken->count < max) {
		t = tw_timer_at(&ctx->file->table.pool, taken->next);
		event = tw_event_of(ctx, taken->next, t, ctx->offset);
		copied = copy_to_iter(&event, sizeof(event), to);
		if (copied < sizeof(event)) {
			iov_iter_revert(to, copied);
			return;
		}
		tw_taken_add(taken, t, &event);
	}
}

/* Deliver at most @max events under one hold of the locks. Sets @short_copy at a fault. */
static int tw_events_deliver(struct tw_file *file, struct iov_iter *to, unsigned int max,
			     u64 offset, bool *short_copy)
{
	struct tw_events *events = &file->events;
	struct tw_taken taken = {};
	struct tw_ctx ctx __uninitialized;
	int n;

	n = tw_cpu_begin(&ctx, file, offset);
	if (n)
		return n;
	raw_spin_lock(&events->lock);
	max = min(max, events->due.count);
	taken.first = events->due.first;
	taken.next = taken.first;
	pagefault_disable();
	tw_events_copy(&ctx, to, max, &taken);
	pagefault_enable();
	n = taken.count;
	*short_copy = n < max;
	tw_events_pop(&ctx, &taken);
	raw_spin_unlock(&events->lock);
	tw_events_free(&ctx, &taken);
	tw_cpu_end(&ctx);
	return n;
}

/* Hand out the first due timers' events, at most @max of them, to the ring: it has room. */
static void tw_events_write(const struct tw_ctx *ctx, unsigned int max, struct tw_taken *taken)
{
	struct tw_timer **pages = tw_pool_pages(&ctx->file->table.pool);
	const struct tw_ring ring = ctx->file->ring;
	struct timerwheel_event event;
	struct tw_timer *t;

	while (taken->count < max) {
		t = tw_timer_in(pages, taken->next);
		event = tw_event_of(ctx, taken->next, t, ring.offset);
		*tw_ring_slot(&ring, taken->count) = event;
		tw_taken_add(taken, t, &event);
	}
}

/**
 * tw_events_flow - let due timers into the ring
 * @ctx: the run; no bucket is locked
 *
 * Some of them: as far as there is room, and not more than a piece of a pass may take.
 *
 * Return: how many went.
 */
unsigned int tw_events_flow(struct tw_ctx *ctx)
{
	struct tw_events *events = &ctx->file->events;
	struct tw_ring *ring = &ctx->file->ring;
	unsigned int n, done = 0;
	struct tw_taken taken;

	ctx->offset = ring->offset;
	do {
		raw_spin_lock(&events->lock);
		taken = (struct tw_taken){ events->due.first, events->due.first };
		n = min3(tw_ring_room(ring), events->due.count, TW_EVENTS);
		tw_events_write(ctx, n, &taken);
		tw_events_pop(ctx, &taken);
		tw_ring_publish(ring, n, events->due.count);
		raw_spin_unlock(&events->lock);
		tw_events_free(ctx, &taken);
		done += n;
	} while (n == TW_EVENTS && done < TW_FLOW);
	return done;
}

/**
 * tw_events_flow_all - TIMERWHEEL_IOC_FLOW
 * @file: the file
 *
 * Context: process, may sleep.
 * Return: how many due timers went into the ring; -EINVAL: there is none; -ENOMEM.
 */
long tw_events_flow_all(struct tw_file *file)
{
	struct tw_ctx ctx;
	unsigned int n;
	long done = 0;		/* signed, as errors are */
	int err;

	if (!tw_has_ring(file))
		return -EINVAL;
	do {
		err = tw_cpu_begin(&ctx, file, 0);
		if (err)
			return done ? done : err;
		n = tw_events_flow(&ctx);
		tw_cpu_end(&ctx);
		done += n;
		cond_resched();
	/* A ring's worth at most: the reader may empty it as fast as we fill it. */
	} while (n && done < file->ring.events && !signal_pending(current));
	return done;
}

/**
 * tw_events_read - deliver events
 * @file: the file
 * @to: where to; its count says how many bytes at most
 *
 * Context: process, may sleep.
 * Return: bytes, a multiple of the size of an event; 0: nothing is due; -EFAULT, -ENOMEM.
 */
ssize_t tw_events_read(struct tw_file *file, struct iov_iter *to)
{
	u64 offset = tw_clock_offset(READ_ONCE(file->setup.clock));
	ssize_t room = iov_iter_count(to) / TW_EVENT_SIZE;
	ssize_t done = 0;	/* signed, as errors are */
	bool short_copy = false;
	unsigned int max;
	int n = 0;

	/* No more than wait now: a periodic timer that fires meanwhile is for the next read. */
	room = min_t(ssize_t, room, READ_ONCE(file->events.due.count));
	while (done < room && READ_ONCE(file->events.due.count)) {
		/*
		 * After a fault one at a time: of a copy that does not fit some machines say that
		 * less of it was done than was, and an event that fits would never arrive.
		 */
		max = short_copy ? 1 : min_t(size_t, room - done, TW_EVENTS);
		n = tw_events_deliver(file, to, max, offset, &short_copy);
		if (n < 0)
			break;
		done += n;
		/* Not one event's worth of memory there: that is the end. */
		if (short_copy && fault_in_iov_iter_writeable(to, TW_EVENT_SIZE)) {
			n = -EFAULT;
			break;
		}
		if (done && signal_pending(current))
			break;
		/* Memory that can be faulted in but not written must not hold us for ever. */
		if (fatal_signal_pending(current)) {
			n = -EINTR;
			break;
		}
		cond_resched();
	}
	/* Readers are woken one at a time: leave the rest, or all, to the next one. */
	if ((done || n < 0) && READ_ONCE(file->events.due.count))
		tw_events_wake(file);
	return done ? done * TW_EVENT_SIZE : min(n, 0);
}
