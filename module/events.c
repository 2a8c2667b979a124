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
 *
 * With an event ring they do not come here if it has room for them: see flow.c.
 */
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>

#include "clock.h"
#include "clockset.h"
#include "deliver.h"
#include "internal.h"
#include "log.h"
#include "ring.h"
#include "run.h"
#include "trace.h"

#define TW_EVENT_SIZE	((ssize_t)sizeof(struct timerwheel_event))

/**
 * tw_events_init - prepare
 * @events: zeroed
 */
void tw_events_init(struct tw_events *events)
{
	raw_spin_lock_init(&events->lock);
	init_waitqueue_head(&events->readers);
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
	return tw_events_waiting(file) || READ_ONCE(file->events.sets);
}

/**
 * tw_events_more - count timers that fell due
 * @cpu: the part in which they did, locked; so is the list
 * @n: how many
 * @now: the file's time, in ns
 *
 * Return: true if readers are to be woken.
 */
bool tw_events_more(struct tw_cpu *cpu, u32 n, u64 now)
{
	const struct tw_setup *setup = &cpu->file->setup;
	struct tw_events *events = &cpu->file->events;
	u32 waiting = tw_events_waiting(cpu->file);

	lockdep_assert_held(&events->lock);
	/* Those that are gone were the ones that readers were woken for. */
	events->woken = min(events->woken, waiting);
	waiting += n;
	if (waiting - events->woken >= setup->wake_events ||
	    setup->clock == TIMERWHEEL_CLOCK_MANUAL) {
		events->woken = waiting;
		return true;
	}
	if (!events->wake_set) {
		events->wake_set = true;
		cpu->wake_at = min_t(u64, now + setup->wake_ns, KTIME_MAX);
		cpu->wheel.sooner = true;
	}
	return false;
}

/**
 * tw_events_add - queue timers that fell due
 * @cpu: the part in which they did, locked
 * @due: they, linked and TW_DUE
 * @now: the file's time, in ns
 *
 * Return: true if readers are to be woken, which the caller does once it holds no lock.
 */
bool tw_events_add(struct tw_cpu *cpu, const struct tw_due_list *due, u64 now)
{
	struct tw_file *file = cpu->file;
	struct tw_events *events = &file->events;
	struct tw_due_list *all = &events->due;
	bool wake;

	lockdep_assert_held(&cpu->lock);
	trace_timerwheel_expire(cpu, due, now);
	raw_spin_lock(&events->lock);
	wake = tw_events_more(cpu, due->count, now);
	if (all->last) {
		tw_timer_at(&file->table.pool, all->last)->next = due->first;
		tw_timer_at(&file->table.pool, due->first)->prev = all->last;
	} else {
		all->first = due->first;
	}
	all->last = due->last;
	WRITE_ONCE(all->count, all->count + due->count);
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
	struct tw_due_list *all = &file->events.due;
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

/**
 * tw_events_log - write events that are handed out to the log, if there are monitors
 * @ctx: the run or pass
 * @first: the first timer
 * @next: the one after the last, 0: there is none
 *
 * Context: who else hands out events is kept out, by the lock of the due list or the ring.
 */
void tw_events_log(struct tw_ctx *ctx, u32 first, u32 next)
{
	struct tw_file *file = ctx->file;
	struct tw_log *log = tw_log_wanted(file);
	struct timerwheel_event event;
	struct tw_timer *t;
	u32 index;

	if (log)
		raw_spin_lock(&log->lock);
	for (index = first; index != next; index = t->next) {
		t = tw_timer_at(&file->table.pool, index);
		event = tw_event_of(ctx, index, t, ctx->offset);
		trace_timerwheel_deliver(file, &event);
		if (log)
			tw_log_write(log, &event);
	}
	if (log) {
		raw_spin_unlock(&log->lock);
		ctx->wake_monitors = true;
	}
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
		if (t->periodic) {
			tw_event_rearm(ctx, t, index);
		} else {
			t->next = claimed;
			claimed = index;
			taken->count++;
		}
	}
	taken->first = claimed;
}

/**
 * tw_events_pop - take the timers whose events were handed out off the list
 * @ctx: the run; the list is locked
 * @taken: they; those that are left in it must be freed
 */
void tw_events_pop(struct tw_ctx *ctx, struct tw_taken *taken)
{
	struct tw_file *file = ctx->file;
	struct tw_due_list *all = &file->events.due;

	if (unlikely(tw_log_wanted(file) || trace_timerwheel_deliver_enabled()))
		tw_events_log(ctx, taken->first, taken->next);
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

/**
 * tw_events_free - free the timers that were taken
 * @ctx: the run; neither the list nor a bucket is locked
 * @taken: what tw_events_pop() has left
 */
void tw_events_free(struct tw_ctx *ctx, const struct tw_taken *taken)
{
	struct tw_timer **pages = tw_pool_pages(&ctx->file->table.pool);
	struct tw_timer *t;
	unsigned int left;
	u32 index, next;

	for (left = taken->count, index = taken->first; left; left--, index = next) {
		t = tw_timer_in_pages(pages, index);
		next = t->next;
		tw_event_free(ctx, t, index);
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
		t = tw_timer_in_pages(pages, taken->next);
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

/**
 * tw_events_take_set - a reader has the event of a clock that was set
 * @file: the file; the due list is locked
 * @event: the event
 *
 * Return: true if monitors are to be woken.
 */
bool tw_events_take_set(struct tw_file *file, const struct timerwheel_event *event)
{
	struct tw_log *log = tw_log_wanted(file);

	lockdep_assert_held(&file->events.lock);
	WRITE_ONCE(file->events.sets, 0);
	trace_timerwheel_deliver(file, event);
	if (!log)
		return false;
	raw_spin_lock(&log->lock);
	tw_log_write(log, event);
	raw_spin_unlock(&log->lock);
	return true;
}

/* Deliver the event of a clock that was set. Returns how many: 1 or 0; -EFAULT, -EINTR. */
static int tw_events_deliver_set(struct tw_file *file, struct iov_iter *to)
{
	struct tw_events *events = &file->events;
	struct timerwheel_event event;
	bool told = false;
	size_t copied;

	while (READ_ONCE(events->sets)) {
		tw_lock_bh(&events->lock);
		/* Another reader may have it. */
		copied = 0;
		if (events->sets) {
			event = tw_event_of_set(events);
			pagefault_disable();
			copied = copy_to_iter(&event, sizeof(event), to);
			pagefault_enable();
			if (copied == sizeof(event))
				told = tw_events_take_set(file, &event);
			else
				iov_iter_revert(to, copied);
		}
		tw_unlock_bh(&events->lock);
		if (told)
			tw_monitor_wake(file);
		if (copied == sizeof(event))
			return 1;
		if (fault_in_iov_iter_writeable(to, TW_EVENT_SIZE))
			return -EFAULT;
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

/* Deliver at most @max events under one hold of the locks. Sets @short_copy at a fault. */
static int tw_events_deliver(struct tw_file *file, struct iov_iter *to, unsigned int max,
			     u64 offset, bool nowait, bool *short_copy)
{
	struct tw_events *events = &file->events;
	struct tw_taken taken = {};
	struct tw_ctx ctx __uninitialized;
	int n;

	n = __tw_cpu_begin(&ctx, file, offset, nowait);
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

/**
 * tw_events_read - deliver events
 * @file: the file
 * @to: where to; its count says how many bytes at most
 * @nowait: wait for no lock and no memory of the kernel's. The caller's own is faulted in all the
 *	same, as everywhere: an event would never get to memory that was not touched before.
 *
 * Context: process, may sleep.
 * Return: bytes, a multiple of the size of an event; 0: nothing is due; -EFAULT, -ENOMEM; -EAGAIN:
 * @nowait, and it cannot be done without.
 */
ssize_t tw_events_read(struct tw_file *file, struct iov_iter *to, bool nowait)
{
	u64 offset = tw_clock_offset(READ_ONCE(file->setup.clock));
	ssize_t room = iov_iter_count(to) / TW_EVENT_SIZE;
	ssize_t done = 0;	/* signed, as errors are */
	bool short_copy = false;
	unsigned int max;
	int n = 0;

	if (unlikely(tw_clockset_asked(file))) {
		tw_clockset_notice(file);
		n = tw_events_deliver_set(file, to);
		done = max(n, 0);
	}
	/* No more than wait now: a periodic timer that fires meanwhile is for the next read. */
	room = min_t(ssize_t, room, done + READ_ONCE(file->events.due.count));
	while (n >= 0 && done < room && READ_ONCE(file->events.due.count)) {
		/*
		 * After a fault one at a time: of a copy that does not fit some machines say that
		 * less of it was done than was, and an event that fits would never arrive.
		 */
		max = short_copy ? 1 : min_t(size_t, room - done, TW_EVENTS);
		n = tw_events_deliver(file, to, max, offset, nowait, &short_copy);
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
	if ((done || n < 0) && tw_events_any(file))
		tw_events_wake(file);
	return done ? done * TW_EVENT_SIZE : min(n, 0);
}
