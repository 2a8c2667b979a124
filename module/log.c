// SPDX-License-Identifier: GPL-2.0-only
/*
 * A wheel's log: the events that it delivered last, for its monitors.
 *
 * A wheel has one log for all its monitors, so each event is written once, however many monitors
 * there are. The log overwrites its oldest events. Writers never wait for readers.
 *
 * Events are numbered from 0. A monitor is a cursor: the number of its next event, and its length,
 * which is the number of events by which it may be behind. A monitor that is further behind has
 * missed the oldest events. When it reads, it counts them and continues with the events that its
 * length allows. The log is at least as long as each of its monitors, so it still has these events.
 *
 * States
 * ------
 * Without monitors there is no store, and nothing is written. The first monitor allocates the store
 * and the last one frees it. A monitor that is longer than the store makes it grow:
 *
 *   1. Memory is allocated, with no spinlock held.
 *   2. Under the locks, the new store replaces the old one. From now on events are written to the
 *      new store, and the old store does not change. Events below @from are read from the old one.
 *   3. These events are copied, at most TW_LOG_COPY each time the lock is held. The new store is at
 *      least twice as long, so an event in it is overwritten only when all monitors may miss it.
 *   4. The old store is freed.
 *
 * Therefore growth loses no event and holds no lock for long. The log does not shrink before its
 * last monitor is detached.
 *
 * Locks
 * -----
 * tw_log.mutex: attaching and detaching monitors, which may allocate. No other code takes it, so a
 * wheel's monitors wait only for each other.
 *
 * tw_log.lock (raw, a leaf): all data of readers and writers. Writers also hold the lock of the due
 * list or of the ring, so the log has the order of delivery. A monitor is attached with both locks
 * held, see tw_log_join().
 *
 * Lifetimes
 * ---------
 * The wheel and each monitor hold a reference to the log, but not to each other. The store is freed
 * with the last monitor, even if the wheel was closed before, so that its events can be read until
 * then.
 *
 * The store is charged to the user who opened the wheel, like timers and ring. It belongs to the
 * wheel: any process that has the descriptor may attach a monitor, just as it may arm timers.
 */
#include <linux/minmax.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "events.h"
#include "internal.h"
#include "log.h"
#include "memory.h"
#include "user.h"

/* The place of event number @i, which is still in the log. */
static struct timerwheel_event *tw_log_at(const struct tw_log *log, u64 i)
{
	const struct tw_log_store *store = i < log->from ? &log->older : &log->store;

	lockdep_assert_held(&log->lock);
	return &store->event[i & (store->events - 1)];
}

/**
 * tw_log_charge - charge memory to a log and its user, before it is allocated
 * @log: the log
 * @bytes: number of bytes, as tw_alloc_size() counts them
 *
 * Return: 0 or -EDQUOT.
 */
int tw_log_charge(struct tw_log *log, size_t bytes)
{
	int err = tw_user_charge(log->user, bytes);

	if (!err)
		atomic_long_add(bytes, &log->charged);
	return err;
}

/**
 * tw_log_uncharge - uncharge memory of a log after it was freed
 * @log: the log
 * @bytes: number of bytes
 */
void tw_log_uncharge(struct tw_log *log, size_t bytes)
{
	atomic_long_sub(bytes, &log->charged);
	tw_user_uncharge(log->user, bytes);
}

/**
 * tw_log_make - create a log
 * @user: the user to charge
 *
 * Context: process, may sleep.
 * Return: the log, with one reference; or -EDQUOT, -ENOMEM.
 */
struct tw_log *tw_log_make(struct tw_user *user)
{
	size_t bytes = tw_alloc_size(sizeof(struct tw_log));
	struct tw_log *log;

	if (tw_user_charge(user, bytes))
		return ERR_PTR(-EDQUOT);
	log = tw_alloc(sizeof(*log));
	if (!log) {
		tw_user_uncharge(user, bytes);
		return ERR_PTR(-ENOMEM);
	}
	atomic_long_set(&log->charged, bytes);
	raw_spin_lock_init(&log->lock);
	init_waitqueue_head(&log->readers);
	mutex_init(&log->mutex);
	tw_user_hold(user);
	log->user = user;
	refcount_set(&log->refs, 1);
	return log;
}

/**
 * tw_log_put - drop a reference
 * @log: the log, or NULL
 *
 * Context: process, may sleep.
 */
void tw_log_put(struct tw_log *log)
{
	struct tw_user *user;

	if (!log || !refcount_dec_and_test(&log->refs))
		return;
	WARN_ON_ONCE(log->store.events);
	cancel_work_sync(&log->wake);
	user = log->user;
	tw_free(log, sizeof(*log));
	tw_user_uncharge(user, tw_alloc_size(sizeof(*log)));
	tw_user_put(user);
}

static size_t tw_log_store_size(u32 events)
{
	return events * sizeof(struct timerwheel_event);
}

/* Returns 0, -EDQUOT or -ENOMEM. */
static int tw_log_store_make(struct tw_log *log, struct tw_log_store *store, u32 events)
{
	size_t size = tw_log_store_size(events);
	int err = tw_log_charge(log, tw_alloc_size(size));

	if (err)
		return err;
	store->event = tw_alloc(size);
	if (!store->event) {
		tw_log_uncharge(log, tw_alloc_size(size));
		return -ENOMEM;
	}
	store->events = events;
	return 0;
}

static void tw_log_store_free(struct tw_log *log, const struct tw_log_store *store)
{
	if (!store->events)
		return;
	tw_free(store->event, tw_log_store_size(store->events));
	tw_log_uncharge(log, tw_alloc_size(tw_log_store_size(store->events)));
}

/*
 * Set a monitor's cursor to the next event to be written, and install @store if it is not empty.
 * With the ring and the due list locked, no event is being delivered. The monitor therefore gets
 * exactly the events that are delivered from now on; earlier events in the log were read or are in
 * the ring.
 */
static void tw_log_join(struct tw_file *file, struct tw_cursor *cursor,
			const struct tw_log_store *store)
{
	struct tw_log *log = file->events.log;

	tw_lock_bh(&file->ring.lock);
	tw_events_lock(file);
	raw_spin_lock(&log->lock);
	WRITE_ONCE(cursor->next, log->tail);
	if (store->events) {
		log->older = log->store;
		log->from = log->tail;
		log->store.event = store->event;
		WRITE_ONCE(log->store.events, store->events);
	}
	raw_spin_unlock(&log->lock);
	tw_events_unlock(file);
	tw_unlock_bh(&file->ring.lock);
}

/* Copy the events of the older store to the new one, except where newer events were written. */
static void tw_log_copy(struct tw_log *log)
{
	u64 end = log->from, i = end - min_t(u64, end, log->older.events);
	unsigned int n;

	while (i < end) {
		tw_lock_bh(&log->lock);
		for (n = 0; n < TW_LOG_COPY && i < end; n++, i++)
			/* Event i + store.events goes to the same place. */
			if (log->tail - i <= log->store.events)
				log->store.event[i & (log->store.events - 1)] = *tw_log_at(log, i);
		tw_unlock_bh(&log->lock);
		cond_resched();
	}
}

/* After the store was replaced, copy the events of the older store, and free it. */
static void tw_log_retire_older(struct tw_log *log)
{
	struct tw_log_store older;

	lockdep_assert_held(&log->mutex);
	tw_log_copy(log);
	tw_lock_bh(&log->lock);
	older = log->older;
	log->older = (struct tw_log_store){};
	log->from = 0;
	tw_unlock_bh(&log->lock);
	tw_log_store_free(log, &older);
}

/**
 * tw_log_attach - attach a monitor, which gets all events that are delivered from now on
 * @file: the file, which has a log and which the caller holds open
 * @cursor: the monitor's cursor, zeroed
 * @events: length of the monitor, a power of two
 *
 * Context: process, may sleep.
 * Return: 0; -ENOSPC: there are TIMERWHEEL_MONITORS_MAX monitors; -EDQUOT, -ENOMEM.
 */
int tw_log_attach(struct tw_file *file, struct tw_cursor *cursor, u32 events)
{
	struct tw_log *log = file->events.log;
	struct tw_log_store store = {};
	int err = 0;

	mutex_lock(&log->mutex);
	if (log->monitors == TIMERWHEEL_MONITORS_MAX)
		err = -ENOSPC;
	else if (events > log->store.events)
		err = tw_log_store_make(log, &store, events);
	if (!err) {
		log->monitors++;
		cursor->events = events;
		tw_log_join(file, cursor, &store);
		if (store.events)
			tw_log_retire_older(log);
	}
	mutex_unlock(&log->mutex);
	return err;
}

/**
 * tw_log_detach - detach a monitor
 * @log: its log
 *
 * Context: process, may sleep.
 */
void tw_log_detach(struct tw_log *log)
{
	struct tw_log_store store;

	mutex_lock(&log->mutex);
	WARN_ON_ONCE(!log->monitors);
	if (!--log->monitors) {
		tw_lock_bh(&log->lock);
		store = log->store;
		log->store.event = NULL;
		WRITE_ONCE(log->store.events, 0);
		tw_unlock_bh(&log->lock);
		tw_log_store_free(log, &store);
	}
	mutex_unlock(&log->mutex);
}

/**
 * tw_log_close - close the log with its wheel, so that its monitors reach end of file
 * @log: the log, or NULL
 *
 * A turn of the engine may still be in progress; the events that it delivers are not logged.
 *
 * Context: process, may sleep.
 */
void tw_log_close(struct tw_log *log)
{
	if (!log)
		return;
	tw_lock_bh(&log->lock);
	WRITE_ONCE(log->closed, true);
	tw_unlock_bh(&log->lock);
	tw_log_wake(log, EPOLLIN | EPOLLHUP);
}

/**
 * tw_log_peek - copy the next events of a monitor out of the log
 * @log: the log
 * @cursor: the monitor's cursor, used by one reader at a time
 * @event: the destination
 * @max: copy at most this many, at least 1; at most TW_LOG_COPY are copied
 *
 * If the monitor has missed events, the first event reports that. The cursor does not advance: see
 * tw_log_take().
 *
 * Return: number of events copied; 0: end of file; -EAGAIN: there is no event yet.
 */
int tw_log_peek(struct tw_log *log, struct tw_cursor *cursor, struct timerwheel_event *event,
		unsigned int max)
{
	u64 behind, i;
	int n = 0;

	max = min(max, TW_LOG_COPY);
	tw_lock_bh(&log->lock);
	behind = log->tail - cursor->next;
	if (unlikely(behind > cursor->events)) {
		WRITE_ONCE(cursor->missed, cursor->missed + behind - cursor->events);
		WRITE_ONCE(cursor->next, log->tail - cursor->events);
	}
	if (unlikely(cursor->missed))
		event[n++] = (struct timerwheel_event) {
			.overruns = cursor->missed,
			.flags = TIMERWHEEL_EVENT_MISSED,
		};
	for (i = cursor->next; n < max && i < log->tail; i++)
		event[n++] = *tw_log_at(log, i);
	if (!n && !log->closed)
		n = -EAGAIN;
	tw_unlock_bh(&log->lock);
	return n;
}

/**
 * tw_log_take - advance a monitor's cursor
 * @cursor: the cursor
 * @n: number of events from tw_log_peek() that the reader has got
 */
void tw_log_take(struct tw_cursor *cursor, unsigned int n)
{
	if (unlikely(cursor->missed && n)) {
		WRITE_ONCE(cursor->missed, 0);
		n--;
	}
	WRITE_ONCE(cursor->next, cursor->next + n);
}

/**
 * tw_log_memory - memory that a file's log and its monitors occupy
 * @file: the file
 *
 * Return: bytes.
 */
size_t tw_log_memory(const struct tw_file *file)
{
	const struct tw_log *log = READ_ONCE(file->events.log);

	return log ? atomic_long_read(&log->charged) : 0;
}
