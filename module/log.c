// SPDX-License-Identifier: GPL-2.0-only
/*
 * A wheel's log: the events it delivered last, for its monitors.
 *
 * There is one for all monitors of a wheel, so an event is written once however many they are. It
 * is overwritten from its oldest event on: who writes never waits and knows nothing of who reads.
 * Events are numbered from 0. A monitor is a cursor: the number of its next event, and how far
 * behind it may be (its length). One that is further behind has missed the oldest: it finds
 * out when it reads, counts them, and goes on with those that it may still have. The log is at
 * least as long as each of its monitors, so what these may have is there.
 *
 * States. No monitor: there is no store, and nothing is written. The first monitor makes the
 * store, the last one frees it, and one that is longer than the store makes it grow:
 *
 *   1. memory is allocated, with no spinlock held;
 *   2. new and old store change places, under the locks. From now on events are written to the new
 *	one, and the old one does not change any more; numbers below @from are read from there;
 *   3. they are copied, TW_LOG_COPY under a hold of the lock. The new store is at least twice as
 *	long: an event's place there is overwritten only when everybody may miss it;
 *   4. when all are copied the old store is not needed any more, and freed.
 *
 * So nobody misses an event because the log grows, and no lock is held for long. The log does not
 * shrink before the last monitor has gone.
 *
 * Locks. tw_log.mutex: monitors come and go, which may allocate; nobody else takes it, so one
 * wheel's monitors wait for each other and for nobody else. tw_log.lock (raw, a leaf): all that
 * writers and readers use. Who delivers holds the events' lock as well, so that the log has the
 * order of delivery. A monitor comes with the ring and the due list locked, see tw_log_join().
 *
 * Who frees what. The wheel and each monitor hold a reference to the log; whichever goes last frees
 * it. The store is freed with the last monitor, even if the wheel was closed before: what
 * is in it can be read until then. Wheel and monitors never point to each other.
 *
 * The store is charged to the user who opened the wheel, as timers and ring are: it belongs to the
 * wheel, and whoever holds the descriptor may attach a monitor as he may arm timers.
 */
#include <linux/minmax.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "internal.h"
#include "log.h"
#include "memory.h"

/* Events that are copied to or from a store under one hold of the lock. */
#define TW_LOG_COPY	16U

/* Where event number @i of those that are still there is. */
static struct timerwheel_event *tw_log_at(const struct tw_log *log, u64 i)
{
	const struct tw_log_store *store = i < log->from ? &log->older : &log->store;

	lockdep_assert_held(&log->lock);
	return &store->event[i & (store->events - 1)];
}

/**
 * tw_log_charge - charge memory to a log and its user, before it is allocated
 * @log: the log
 * @bytes: how much, as the allocator counts
 *
 * Context: process, may sleep.
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
 * tw_log_uncharge - give back what tw_log_charge() charged, after it was freed
 * @log: the log
 * @bytes: how much
 */
void tw_log_uncharge(struct tw_log *log, size_t bytes)
{
	atomic_long_sub(bytes, &log->charged);
	tw_user_uncharge(log->user, bytes);
}

/**
 * tw_log_make - make a log
 * @user: who is to be charged
 *
 * Context: process, may sleep.
 * Return: the log, with one reference, -EDQUOT or -ENOMEM.
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
 * @log: the log; NULL: nothing is done
 *
 * Context: process, may sleep.
 */
void tw_log_put(struct tw_log *log)
{
	struct tw_user *user;

	if (!log || !refcount_dec_and_test(&log->refs))
		return;
	WARN_ON_ONCE(log->store.events);
	user = log->user;
	kvfree(log);
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
	kvfree(store->event);
	tw_log_uncharge(log, tw_alloc_size(tw_log_store_size(store->events)));
}

/*
 * Let a monitor have all that is written from now on, to another store if there is one. Nobody is
 * handing out events meanwhile, neither of the due list nor straight to the ring. So the monitor
 * has all that is delivered after the call that made it: what is in the log before is in the ring,
 * too, or has been read.
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

/* Copy what the older store has to the new one, as far as that was not written anew. */
static void tw_log_copy(struct tw_log *log)
{
	u64 end = log->from, i = end - min_t(u64, end, log->older.events);
	unsigned int n;

	while (i < end) {
		tw_lock_bh(&log->lock);
		for (n = 0; n < TW_LOG_COPY && i < end; n++, i++)
			/* Its place is that of number i + store.events, too. */
			if (log->tail - i <= log->store.events)
				log->store.event[i & (log->store.events - 1)] = *tw_log_at(log, i);
		tw_unlock_bh(&log->lock);
		cond_resched();
	}
}

/* The store was changed: let the older one go. */
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
 * tw_log_attach - a monitor comes: it has all that is written from now on
 * @file: whose log; there is one, and the caller holds the file open
 * @cursor: zeroed
 * @events: its length, a power of two
 *
 * Context: process, may sleep.
 * Return: 0, -ENOSPC, -EDQUOT, -ENOMEM.
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
 * tw_log_detach - a monitor goes
 * @log: its log
 *
 * Context: process, may sleep.
 */
void tw_log_detach(struct tw_log *log)
{
	struct tw_log_store store;

	mutex_lock(&log->mutex);
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
 * tw_log_close - the wheel is closed: its monitors have an end
 * @log: the log; NULL: nothing is done
 *
 * A turn of the engine may still be under way; what it delivers is seen by nobody.
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
	wake_up_interruptible_poll(&log->readers, EPOLLIN | EPOLLHUP);
}

/**
 * tw_log_peek - copy the next events of a monitor out of the log
 * @log: the log
 * @cursor: the monitor's, which its readers use one at a time
 * @event: where to
 * @max: how many at most, not 0; no more than TW_LOG_COPY are copied
 *
 * If some are missing, that comes first. They come again unless tw_log_take() is called.
 *
 * Return: how many; 0: it is the end; -EAGAIN: there is nothing yet.
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
 * tw_log_take - a monitor's reader has events
 * @cursor: the monitor's
 * @n: how many of those that tw_log_peek() has copied
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
 * tw_log_memory - how much memory a file's log occupies
 * @file: the file
 *
 * Return: bytes.
 */
size_t tw_log_memory(const struct tw_file *file)
{
	const struct tw_log *log = READ_ONCE(file->events.log);

	return log ? atomic_long_read(&log->charged) : 0;
}
