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
 * TW_CLAIMED from then until the reader has taken it out of the key table, which
 * must wait until the events' lock is dropped (bucket locks come before it); look-ups
 * take a claimed timer for absent. A periodic timer is queued again at once in the wheel of
 * the reader's CPU, for the first of its deadlines that is still to come.
 */
#include <linux/math64.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>

#include "cpu.h"
#include "internal.h"
#include "ring.h"
#include "table.h"
#include "trace.h"

/* Events that are copied under one hold of the lock. */
#define TW_EVENTS	16U

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

/* Describe the first due timers, at most @max. Returns how many. */
static unsigned int tw_events_peek(struct tw_ctx *ctx, struct timerwheel_event *event,
				   unsigned int max)
{
	struct tw_file *file = ctx->file;
	const struct tw_timer *t;
	unsigned int n;
	u32 index;

	index = file->events.due.first;
	for (n = 0; n < max && index; n++, event++, index = t->next) {
		t = tw_timer_at(&file->table.pool, index);
		event->key = t->key;
		event->value = t->value;
		event->deadline = t->deadline + ctx->offset;
		event->fired = t->fired + ctx->offset;
		event->overruns = 0;
		event->flags = 0;
		event->index = index;
		if (t->period) {
			event->overruns = div64_u64(max(ctx->now, t->deadline) - t->deadline,
						    t->period);
			event->flags = TIMERWHEEL_EVENT_PERIODIC;
		}
	}
	return n;
}

/* A periodic timer's event was read: queue it for the next deadline that is to come. */
static void tw_events_rearm(struct tw_ctx *ctx, struct tw_timer *t, u32 index, u64 overruns)
{
	struct tw_cpu *cpu = ctx->cpu;
	u64 passed = overruns * t->period;	/* at most now - deadline */

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

/*
 * Take the first due timers off the list, those whose @n events were copied. Returns
 * how many of them were claimed; their events are now the first ones in the array.
 */
static unsigned int tw_events_pop(struct tw_ctx *ctx, struct timerwheel_event *event,
				  unsigned int n)
{
	const struct tw_pool *pool = &ctx->file->table.pool;
	struct tw_chain *all = &ctx->file->events.due;
	unsigned int i, claimed = 0;
	struct tw_timer *t;
	u32 next;

	if (unlikely(ctx->file->events.nr_monitors) && n) {
		tw_monitor_tell(ctx->file, event, n);
		ctx->told = true;
	}
	for (i = 0; i < n; i++) {
		t = tw_timer_at(pool, event[i].index);
		next = t->next;
		trace_timerwheel_deliver(ctx->file, &event[i]);
		if (t->period) {
			tw_events_rearm(ctx, t, event[i].index, event[i].overruns);
			all->first = next;
			continue;
		}
		WRITE_ONCE(t->state, TW_CLAIMED);
		if (claimed != i)
			event[claimed] = event[i];
		claimed++;
		all->first = next;
	}
	if (all->first)
		tw_timer_at(pool, all->first)->prev = 0;
	else
		all->last = 0;
	WRITE_ONCE(all->count, all->count - n);
	ctx->cpu->counts.delivered += n;
	return claimed;
}

/* Free the one-shot timers of these events. */
static void tw_events_free(struct tw_ctx *ctx, const struct timerwheel_event *event,
			   unsigned int n)
{
	struct tw_table *table = &ctx->file->table;
	struct tw_bucket *bucket;
	struct tw_timer *t;
	u32 *chain;

	for (; n; n--, event++) {
		t = tw_timer_at(&table->pool, event->index);
		bucket = tw_table_lock(table, event->key, &chain);
		tw_table_unhash(table, chain, event->index, t);
		WRITE_ONCE(t->state, TW_FREE);
		raw_spin_unlock(&bucket->lock);
		tw_cpu_free(ctx->cpu, event->index, t);
	}
}

/* Deliver at most @max events under one hold of the locks. Sets @short_copy at a fault. */
static int tw_events_deliver(struct tw_file *file, struct iov_iter *to, unsigned int max,
			     u64 offset, bool *short_copy)
{
	struct timerwheel_event event[TW_EVENTS] __uninitialized;
	struct tw_events *events = &file->events;
	unsigned int n, claimed;
	struct tw_ctx ctx;
	size_t copied;
	int err;

	err = tw_cpu_begin(&ctx, file, offset);
	if (err)
		return err;
	raw_spin_lock(&events->lock);
	n = tw_events_peek(&ctx, event, min(max, TW_EVENTS));
	pagefault_disable();
	copied = copy_to_iter(event, n * sizeof(*event), to);
	pagefault_enable();
	*short_copy = copied < n * sizeof(*event);
	n = copied / sizeof(*event);
	claimed = tw_events_pop(&ctx, event, n);
	raw_spin_unlock(&events->lock);
	tw_events_free(&ctx, event, claimed);
	tw_cpu_end(&ctx);

	iov_iter_revert(to, copied % sizeof(*event));
	return n;
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
	struct timerwheel_event event[TW_EVENTS] __uninitialized;
	struct tw_events *events = &ctx->file->events;
	struct tw_ring *ring = &ctx->file->ring;
	unsigned int n, claimed, done = 0;

	ctx->offset = ring->offset;
	do {
		raw_spin_lock(&events->lock);
		n = tw_events_peek(ctx, event, min(tw_ring_room(ring), TW_EVENTS));
		tw_ring_write(ring, event, n);
		claimed = tw_events_pop(ctx, event, n);
		tw_ring_publish(ring, events->due.count);
		raw_spin_unlock(&events->lock);
		tw_events_free(ctx, event, claimed);
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
