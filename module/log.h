/* SPDX-License-Identifier: GPL-2.0-only */
/* A wheel's log: the events that it delivered last, for its monitors. See log.c. */
#ifndef TW_LOG_H
#define TW_LOG_H

#include <linux/atomic.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/timerwheel.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "internal.h"

/* Maximum number of events copied to or from a store while the lock is held. */
#define TW_LOG_COPY	16U

/**
 * struct tw_log_store - memory for events
 * @event: event number i is in entry i modulo @events
 * @events: length, a power of two; 0: there is no store
 */
struct tw_log_store {
	struct timerwheel_event *event;
	u32 events;
};

/**
 * struct tw_log - a wheel's log
 * @lock: protects @tail, @store, @older, @from and @closed; a leaf
 * @tail: number of events written, which is the number of the next event
 * @store: the store to which events are written while there are monitors
 * @older: while the log grows: the previous store, which no longer changes
 * @from: events below this number are read from @older
 * @closed: the wheel is closed; no events follow
 * @readers: waiting readers of all monitors
 * @crowded: waking the readers has taken long, so @wake does it
 * @crowded_at: the last time at which it took long, in jiffies
 * @wake: work that wakes the readers (monitor.c); cancelled with the last reference
 * @mutex: attaching and detaching monitors
 * @monitors: number of monitors; @mutex
 * @user: the user who is charged
 * @charged: bytes charged: @store, @older, the monitors and this structure
 * @refs: held by the wheel and by each monitor
 */
struct tw_log {
	raw_spinlock_t lock;	/* @tail, @store, @older, @from, @closed */
	u64 tail;
	struct tw_log_store store;
	struct tw_log_store older;
	u64 from;
	bool closed;
	wait_queue_head_t readers;
	bool crowded;
	u64 crowded_at;
	struct work_struct wake;
	struct mutex mutex;	/* attach and detach */
	unsigned int monitors;
	struct tw_user *user;
	atomic_long_t charged;
	refcount_t refs;
};

/**
 * struct tw_cursor - position of a monitor in the log
 * @next: number of the next event to read
 * @missed: number of events before it that were missed and are not reported yet
 * @events: length: the number of events by which it may be behind; 0: it is not attached. Constant
 *	once attached.
 */
struct tw_cursor {
	u64 next;
	u64 missed;
	u32 events;
};

/**
 * tw_log_active - a file's log, if it has monitors
 * @file: the file
 *
 * Context: the due list or the ring is locked, so that no first monitor is attached in the
 * meantime. The last monitor may be detached: see tw_log_write().
 * Return: the log, or NULL.
 */
static inline struct tw_log *tw_log_active(const struct tw_file *file)
{
	/* Pairs with the release in tw_monitor_log(); litmus dependency. */
	struct tw_log *log = READ_ONCE(file->events.log);

	return log && READ_ONCE(log->store.events) ? log : NULL;
}

/**
 * tw_log_write - write an event to the log
 * @log: the log, locked
 * @event: the event
 */
static inline void tw_log_write(struct tw_log *log, const struct timerwheel_event *event)
{
	lockdep_assert_held(&log->lock);
	if (unlikely(!log->store.events || log->closed))
		return;
	log->store.event[log->tail & (log->store.events - 1)] = *event;
	/* tw_log_ready() reads it without the lock. */
	WRITE_ONCE(log->tail, log->tail + 1);
}

/**
 * tw_log_ready - would a read of a monitor return immediately?
 * @log: the log
 * @cursor: the monitor's cursor
 *
 * Lockless. Writers wake readers after they have written, so a reader that sleeps because of a
 * stale answer is woken.
 *
 * Return: true if there is an event, a report of missed events, or end of file.
 */
static inline bool tw_log_ready(const struct tw_log *log, const struct tw_cursor *cursor)
{
	return READ_ONCE(log->tail) != READ_ONCE(cursor->next) || READ_ONCE(cursor->missed) ||
	       READ_ONCE(log->closed);
}

/**
 * tw_log_wake - wake the readers of all monitors
 * @log: the log
 * @mask: the events to report: EPOLLIN and so on
 *
 * Wakes even exclusive waiters (EPOLLEXCLUSIVE), because each monitor has its own events.
 *
 * Context: any; neither the log nor its wait queue is locked.
 */
static inline void tw_log_wake(struct tw_log *log, __poll_t mask)
{
	__wake_up(&log->readers, TASK_INTERRUPTIBLE, 0, poll_to_key(mask));
}

struct tw_log *tw_log_make(struct tw_user *user);
int tw_log_charge(struct tw_log *log, size_t bytes);
void tw_log_uncharge(struct tw_log *log, size_t bytes);
void tw_log_put(struct tw_log *log);
int tw_log_attach(struct tw_file *file, struct tw_cursor *cursor, u32 events);
void tw_log_detach(struct tw_log *log);
void tw_log_close(struct tw_log *log);
int tw_log_peek(struct tw_log *log, struct tw_cursor *cursor, struct timerwheel_event *event,
		unsigned int max);
void tw_log_take(struct tw_cursor *cursor, unsigned int n);
size_t tw_log_memory(const struct tw_file *file);

#endif /* TW_LOG_H */
