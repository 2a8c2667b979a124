// SPDX-License-Identifier: GPL-2.0-only
/*
 * The due list, and delivery of events to readers.
 *
 * The due list links the due timers themselves, so expiry allocates nothing and a due timer is
 * withdrawn in O(1). A timer leaves the list in one of two ways, both under the events' lock: its
 * event is delivered, or an operation on its key withdraws it.
 *
 * A reader copies events to its buffer with that lock held and page faults disabled. Only then it
 * removes their timers from the list. A timer whose event could not be copied is therefore
 * unchanged. It waits until this reader has faulted its buffer in, or for the next reader.
 *
 * A delivered one-shot timer must be removed from the key table. That needs the bucket's lock,
 * which comes before the events' lock. Therefore the timer is TW_CLAIMED from the copy until the
 * reader has released the events' lock and freed it; lookups skip claimed timers. A delivered
 * periodic timer is queued again immediately, in the wheel of the reader's CPU, for its first
 * deadline in the future. A delivered resident timer is parked, or queued there for its linger
 * (resident.c).
 *
 * In a file with an event ring, timers come here only if the ring has no room for them or if they
 * were armed for a time in the past: see flow.c.
 */
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>

#include "clock.h"
#include "clockset.h"
#include "deliver.h"
#include "events.h"
#include "internal.h"
#include "log.h"
#include "monitor.h"
#include "ring.h"
#include "run.h"
#include "trace.h"

#define TW_EVENT_SIZE	((ssize_t)sizeof(struct timerwheel_event))

/**
 * tw_events_init - initialize the due list and its wait queue
 * @events: zeroed
 */
void tw_events_init(struct tw_events *events)
{
	raw_spin_lock_init(&events->lock);
	init_waitqueue_head(&events->readers);
}

/* Number of due timers plus events in the ring that the reader has not taken. */
static u32 tw_events_waiting(const struct tw_file *file)
{
	u32 due = READ_ONCE(file->events.due.count);

	return tw_has_ring(file) ? due + min(tw_ring_used(&file->ring), file->ring.events) : due;
}

/**
 * tw_events_any - does any event wait for a reader?
 * @file: the file
 *
 * Return: true if so. Without a lock the answer may already be stale.
 */
bool tw_events_any(const struct tw_file *file)
{
	return tw_events_waiting(file) || READ_ONCE(file->events.clock_sets);
}

/**
 * tw_events_need_wake - decide whether timers that fell due wake the readers
 * @cpu: their base, locked; the due list is locked, too
 * @n: number of timers
 * @now: the file's time, in ns
 *
 * If they do not, ensures that readers are woken wake_ns after the first event.
 *
 * Return: true if the caller must wake readers.
 */
bool tw_events_need_wake(struct tw_cpu *cpu, u32 n, u64 now)
{
	const struct tw_setup *setup = &cpu->file->setup;
	struct tw_events *events = &cpu->file->events;
	u32 waiting = tw_events_waiting(cpu->file);

	lockdep_assert_held(&events->lock);
	/* Assume that readers were woken for the events that were delivered or withdrawn. */
	events->woken = min(events->woken, waiting);
	waiting += n;
	if (waiting - events->woken >= setup->wake_events ||
	    setup->clock == TIMERWHEEL_CLOCK_MANUAL) {
		events->woken = waiting;
		return true;
	}
	if (!events->wake_armed) {
		events->wake_armed = true;
		cpu->wake_at = min_t(u64, now + setup->wake_ns, KTIME_MAX);
		cpu->wheel.sooner = true;
	}
	return false;
}

/**
 * tw_events_add - append timers that fell due to the due list
 * @cpu: their base, locked
 * @due: the timers, linked and TW_DUE
 * @now: the file's time, in ns
 *
 * Return: true if the caller must wake readers, once it holds no lock.
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
	wake = tw_events_need_wake(cpu, due->count, now);
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
 * tw_events_wake_timeout - wake_ns have passed since the first event
 * @cpu: the base whose @wake_at has been reached, locked
 *
 * Return: true if the caller must wake readers.
 */
bool tw_events_wake_timeout(struct tw_cpu *cpu)
{
	struct tw_events *events = &cpu->file->events;
	bool wake;

	lockdep_assert_held(&cpu->lock);
	cpu->wake_at = TW_NEVER;
	raw_spin_lock(&events->lock);
	events->wake_armed = false;
	events->woken = tw_events_waiting(cpu->file);
	wake = events->woken;
	raw_spin_unlock(&events->lock);
	return wake;
}

/**
 * tw_events_wake - wake readers
 * @file: the file
 *
 * The reader of a ring is woken only if it has announced that it sleeps.
 *
 * Context: softirq or process; no raw lock held.
 */
void tw_events_wake(struct tw_file *file)
{
	struct tw_events *events = &file->events;

	if (tw_has_ring(file) && !tw_ring_reader_sleeps(&file->ring))
		return;
	/* Its barrier pairs with those in tw_poll() and in wait_event(); litmus readers. */
	if (wq_has_sleeper(&events->readers)) {
		atomic64_inc(&events->wakeups);
		wake_up_interruptible_poll(&events->readers, EPOLLIN | EPOLLRDNORM);
	}
	kill_fasync(&events->fasync, SIGIO, POLL_IN);
}

/**
 * tw_events_lock - lock the due list
 * @file: the file
 */
void tw_events_lock(struct tw_file *file)
{
	raw_spin_lock(&file->events.lock);
}

/**
 * tw_events_unlink - withdraw a timer's event: remove the timer from the due list
 * @ctx: the batch context; the due list is locked
 * @t: the timer, in the list
 *
 * The timer stays TW_DUE. Its bucket is locked, so no lookup finds it before the caller has set
 * another state.
 *
 * If no event waits after that, TIMERWHEEL_RING_OVERFLOW is cleared, but only after the batch,
 * because the ring's lock is outside the due list's lock.
 */
void tw_events_unlink(struct tw_ctx *ctx, struct tw_timer *t)
{
	struct tw_file *file = ctx->file;
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
	ctx->cpu->counts.withdrawn++;
	if (!all->count && tw_has_ring(file))
		ctx->flow++;
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
 * tw_events_log - write events that are being delivered to the log, if there are monitors
 * @ctx: the batch context
 * @first: index of the first timer
 * @next: index of the timer after the last, 0: none
 *
 * Context: the due list or the ring is locked, so that no other event is delivered in the meantime.
 */
void tw_events_log(struct tw_ctx *ctx, u32 first, u32 next)
{
	struct tw_file *file = ctx->file;
	struct tw_log *log = tw_log_active(file);
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

/*
 * Park or queue the timers in @taken that continue to exist. The others remain in @taken, in the
 * order of their delivery, so that the next free index does not depend on whether the reader's
 * buffer had to be faulted in.
 */
static noinline void tw_taken_stay(struct tw_ctx *ctx, struct tw_taken *taken)
{
	u32 *claimed = &taken->first;
	struct tw_timer *t;
	u32 index, next;

	taken->count = 0;
	for (index = taken->first; index != taken->next; index = next) {
		t = tw_timer_at(&ctx->file->table.pool, index);
		next = t->next;
		if (t->stay && !tw_timer_has_sock(t)) {
			tw_timer_stay(ctx, t, index);
		} else {
			WRITE_ONCE(t->state, TW_CLAIMED);
			*claimed = index;
			claimed = &t->next;
			taken->count++;
		}
	}
}

/**
 * tw_events_pop - remove timers whose events were copied from the due list
 * @ctx: the batch context; the due list is locked
 * @taken: the timers. On return it contains only the timers that tw_taken_free() must free.
 */
void tw_events_pop(struct tw_ctx *ctx, struct tw_taken *taken)
{
	struct tw_file *file = ctx->file;
	struct tw_due_list *all = &file->events.due;

	if (unlikely(tw_log_active(file) || trace_timerwheel_deliver_enabled()))
		tw_events_log(ctx, taken->first, taken->next);
	all->first = taken->next;
	if (all->first)
		tw_timer_at(&file->table.pool, all->first)->prev = 0;
	else
		all->last = 0;
	WRITE_ONCE(all->count, all->count - taken->count);
	ctx->cpu->counts.delivered += taken->count;
	if (unlikely(taken->stay))
		tw_taken_stay(ctx, taken);
}

/**
 * tw_taken_free - free delivered one-shot timers
 * @ctx: the batch context; neither the due list nor a bucket is locked
 * @taken: the timers that tw_events_pop() has left
 */
void tw_taken_free(struct tw_ctx *ctx, const struct tw_taken *taken)
{
	struct tw_timer **pages = tw_pool_pages(&ctx->file->table.pool);
	struct tw_timer *t;
	unsigned int left;
	u32 index, next;

	for (left = taken->count, index = taken->first; left; left--, index = next) {
		t = tw_timer_in_pages(pages, index);
		next = t->next;
		if (unlikely(tw_timer_has_sock(t)))
			tw_sock_free(ctx, t, index);
		else
			tw_timer_free(ctx, t, index);
	}
}

/*
 * Copy the events of the first @max due timers to a contiguous user buffer, field by field. After a
 * fault the last event may be incomplete; it does not count.
 */
static void tw_events_copy_to_user(const struct tw_ctx *ctx, struct timerwheel_event __user *to,
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
		tw_taken_add(taken, t);
	}
fault:
	user_access_end();
}

/* Copy the events of the first @max due timers out. @taken returns the copied ones. */
static void tw_events_copy(const struct tw_ctx *ctx, struct iov_iter *to, unsigned int max,
			   struct tw_taken *taken)
{
	struct timerwheel_event event;
	struct tw_timer *t;
	size_t copied;

	/* This is read(), the usual case. */
	if (likely(iter_is_ubuf(to))) {
		tw_events_copy_to_user(ctx, iter_iov_addr(to), max, taken);
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
		tw_taken_add(taken, t);
	}
}

/**
 * tw_events_take_clock_set - account for the delivery of the event of a clock that was set
 * @file: the file, its due list locked
 * @event: the event
 *
 * Return: true if the caller must wake monitors.
 */
bool tw_events_take_clock_set(struct tw_file *file, const struct timerwheel_event *event)
{
	struct tw_log *log = tw_log_active(file);

	lockdep_assert_held(&file->events.lock);
	WRITE_ONCE(file->events.clock_sets, 0);
	trace_timerwheel_deliver(file, event);
	if (!log)
		return false;
	raw_spin_lock(&log->lock);
	tw_log_write(log, event);
	raw_spin_unlock(&log->lock);
	return true;
}

/*
 * Fault in memory for an event. If this did not help before (@faults > 0), also write to the
 * memory: some memory can be faulted in but not written by the kernel (a shadow stack, or the wrong
 * tag on arm64), and the loop would never end.
 */
static bool tw_events_fault_in(struct iov_iter *to, unsigned int faults)
{
	static const struct timerwheel_event nothing;
	size_t copied;

	if (fault_in_iov_iter_writeable(to, sizeof(nothing)))
		return false;
	if (likely(!faults))
		return true;
	copied = copy_to_iter(&nothing, sizeof(nothing), to);
	iov_iter_revert(to, copied);
	return copied == sizeof(nothing);
}

/* Deliver the event of a clock that was set. Returns 1, 0 if there is none, -EFAULT or -EINTR. */
static int tw_events_deliver_clock_set(struct tw_file *file, struct iov_iter *to)
{
	struct tw_events *events = &file->events;
	struct timerwheel_event event;
	bool wake_monitors = false;
	unsigned int faults = 0;
	size_t copied;

	while (READ_ONCE(events->clock_sets)) {
		tw_lock_bh(&events->lock);
		/* Another reader may have taken the event. */
		copied = 0;
		if (events->clock_sets) {
			event = tw_event_of_clock_set(events);
			pagefault_disable();
			copied = copy_to_iter(&event, sizeof(event), to);
			pagefault_enable();
			if (copied == sizeof(event))
				wake_monitors = tw_events_take_clock_set(file, &event);
			else
				iov_iter_revert(to, copied);
		}
		tw_unlock_bh(&events->lock);
		if (wake_monitors)
			tw_monitor_wake(file);
		if (copied == sizeof(event))
			return 1;
		if (!tw_events_fault_in(to, faults++))
			return -EFAULT;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* Deliver at most @max events in one batch. Sets @short_copy if the copy faulted. */
static int tw_events_deliver(struct tw_file *file, struct iov_iter *to, unsigned int max,
			     u64 offset, bool nowait, bool *short_copy)
{
	struct tw_events *events = &file->events;
	struct tw_taken taken = {};
	struct tw_ctx ctx __uninitialized;
	int n;

	n = __tw_cpu_begin(&ctx, file, offset, nowait, TW_NO_CPU);
	if (n)
		return n;
	raw_spin_lock(&events->lock);
	/* The event of the clock comes first: timers may be due because the clock was set. */
	max = events->clock_sets ? 0 : min(max, events->due.count);
	taken.first = events->due.first;
	taken.next = taken.first;
	pagefault_disable();
	tw_events_copy(&ctx, to, max, &taken);
	pagefault_enable();
	n = taken.count;
	*short_copy = n < max;
	tw_events_pop(&ctx, &taken);
	raw_spin_unlock(&events->lock);
	tw_taken_free(&ctx, &taken);
	tw_cpu_end(&ctx);
	return n;
}

/**
 * tw_events_read - deliver events
 * @file: the file
 * @to: the destination
 * @nowait: do not sleep for a lock or for kernel memory. The user buffer is still faulted in:
 *	otherwise no event would ever reach a buffer that was not touched before.
 *
 * Context: process, may sleep.
 * Return: bytes, a multiple of the size of an event; 0: nothing is due; -EFAULT; -EINTR: a fatal
 * signal; -EDQUOT, -ENOMEM; -EAGAIN: @nowait, and the function would have to sleep.
 */
ssize_t tw_events_read(struct tw_file *file, struct iov_iter *to, bool nowait)
{
	u64 offset = tw_clock_offset(READ_ONCE(file->setup.clock));
	ssize_t room = iov_iter_count(to) / TW_EVENT_SIZE;
	ssize_t done = 0;	/* signed, as errors are */
	unsigned int faults = 0, max;
	bool short_copy = false;
	int n = 0;

	if (unlikely(tw_clockset_enabled(file))) {
		tw_clockset_check(file);
		n = tw_events_deliver_clock_set(file, to);
		done = max(n, 0);
	}
	/* Deliver only what waits now: the next read gets a periodic timer that fires meanwhile. */
	room = min_t(ssize_t, room, done + READ_ONCE(file->events.due.count));
	while (n >= 0 && done < room && READ_ONCE(file->events.due.count)) {
		if (unlikely(READ_ONCE(file->events.clock_sets))) {
			n = tw_events_deliver_clock_set(file, to);
			done += max(n, 0);
			continue;
		}
		/*
		 * Copy one at a time after a fault. A copy that faults may report fewer bytes than
		 * it has copied, so an event that fits might never count as copied.
		 */
		max = short_copy ? 1 : min_t(size_t, room - done, TW_DELIVER_BATCH);
		n = tw_events_deliver(file, to, max, offset, nowait, &short_copy);
		if (n < 0)
			break;
		done += n;
		/* There is no memory for another event. */
		faults = n ? 0 : faults;
		if (short_copy && !tw_events_fault_in(to, faults++)) {
			n = -EFAULT;
			break;
		}
		if (done && signal_pending(current))
			break;
		/* If the memory is repeatedly unmapped, this loop must still end. */
		if (fatal_signal_pending(current)) {
			n = -EINTR;
			break;
		}
		cond_resched();
	}
	/* A wake-up wakes only one reader. If events are left, wake the next reader. */
	if ((done || n < 0) && tw_events_any(file))
		tw_events_wake(file);
	return done ? done * TW_EVENT_SIZE : min(n, 0);
}
