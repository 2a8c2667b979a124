/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The log that all monitors of a wheel share. Does each monitor get, in order, every event that is
 * delivered after the call that created it, or the number of those that are missing in their place?
 * Is nothing used after it was freed? module/log.c, log.h; events.c: tw_events_log();
 * flow.c: tw_flow_direct(); monitor.c: tw_monitor_read().
 *
 * One wheel delivers EVENTS events with its delivery lock held (the ring's or the due list's) and is
 * then closed. MONITORS are created at any time with lengths of 1, 2, ... (powers of two), so the
 * log may grow while events are written and read. Each monitor is read until its end or closed at
 * any time. READERS share a monitor. The value of an event is the number of events before it.
 *
 * Wake-ups are checked by wakeup.pml. Here a reader waits until there is something to read.
 */
#ifndef MONITORS
#define MONITORS 2
#endif
#ifndef READERS
#define READERS	1
#endif
#ifndef EVENTS
#define EVENTS	3
#endif

#if MONITORS == 1
#define LONGEST	1
#define STORES	1
#elif MONITORS == 2
#define LONGEST	2
#define STORES	3
#else
#define LONGEST	4
#define STORES	4
#endif

byte delivery;			/* lock: tw_ring.lock, tw_events.lock */
byte lock;			/* tw_log.lock */
byte mutex;			/* tw_log.mutex */

byte delivered;			/* number of events that user space can see */
byte tail;			/* tw_log.tail */
bit closed;
byte monitors;
byte from;

/* Stores: their contents, those that are allocated, and the log's two; length 0: none */
byte event[12];
bit alive[STORES];
byte store, events;
byte older, older_events;

/* Cursors */
byte next[MONITORS], missed[MONITORS], length[MONITORS];
byte reading[MONITORS];		/* lock */
byte readers[MONITORS];		/* how many are left */

/* Ghosts: the next event that a monitor must get; !begun: none so far, the first may be older */
byte expect[MONITORS];
bit begun[MONITORS];
byte first[MONITORS];		/* !begun: events counted as missing */

#define LOCK(l)		atomic { l == 0 -> l = _pid + 1 }
#define UNLOCK(l)	d_step { assert(l == _pid + 1); l = 0 }
#define AT(s, n, i)	event[(s) * LONGEST + (i) % (n)]

#ifdef NO_LOCK_ON_WRITE
#define LOCK_W		skip
#define UNLOCK_W	skip
#else
#define LOCK_W		LOCK(lock)
#define UNLOCK_W	UNLOCK(lock)
#endif
#ifdef NO_LOCK_ON_READ
#define LOCK_R		skip
#define UNLOCK_R	skip
#else
#define LOCK_R		LOCK(lock)
#define UNLOCK_R	UNLOCK(lock)
#endif

proctype wheel()
{
	byte left;
	bit wanted;

	left = EVENTS;
	do
	:: left == 0 -> break
	:: left > 0 ->
		left--;
		LOCK(delivery);
		/* tw_log_active() */
		wanted = (events > 0);
		if
		:: wanted ->
			LOCK_W;
			/* tw_log_write() */
			if
#ifdef NO_SECOND_LOOK
			:: true ->
#else
			:: events > 0 ->
#endif
				assert(alive[store]);
				AT(store, events, tail) = delivered;
				tail++
			:: events == 0
			fi;
			UNLOCK_W
		:: else
		fi;
		wanted = 0;
		/* it is in the ring, or copied to a reader */
		delivered++;
		UNLOCK(delivery)
	od;
	/* tw_log_close() */
	LOCK(lock);
	closed = 1;
#ifdef FREE_WITH_WHEEL
	alive[store] = 0;
#endif
	UNLOCK(lock)
}

/* tw_log_attach() of monitor @me */
inline attach(me)
{
#ifndef NO_MUTEX
	LOCK(mutex);
#endif
	want = 1 << me;
	if
	:: want > events ->
		/* tw_log_store_make() */
		d_step {
			fresh = 0;
			do :: alive[fresh] -> fresh++ :: else -> break od;
			assert(fresh < STORES);
			alive[fresh] = 1
		}
	:: else -> want = 0
	fi;
	/* tw_log_join() */
#ifndef JOIN_AT_ANY_TIME
	LOCK(delivery);
#endif
	LOCK(lock);
	d_step {
		length[me] = 1 << me;
		next[me] = tail;
		monitors++;
		if
		:: want ->
			older = store;
			older_events = events;
			from = tail;
			store = fresh;
			events = want
		:: else
		fi
	};
	UNLOCK(lock);
#ifndef JOIN_AT_ANY_TIME
	UNLOCK(delivery);
#endif
	if
	:: want -> settle()
	:: else
	fi;
	want = 0;
	fresh = 0;
	/* From here on no event may be lost. */
	d_step { expect[me] = delivered; begun[me] = 0 };
#ifndef NO_MUTEX
	UNLOCK(mutex)
#endif
}

/* tw_log_retire_older() */
inline settle()
{
#ifdef FREE_OLDER_EARLY
	if
	:: older_events -> alive[older] = 0
	:: else
	fi;
#endif
#ifndef NO_COPY
	d_step {
		end = from;
		i = (from > older_events -> from - older_events : 0)
	};
	do
	:: i < end ->
		LOCK(lock);
		if
#ifdef COPY_ALL
		:: true ->
#else
		:: tail - i <= events ->
#endif
			assert(alive[older] && alive[store]);
			AT(store, events, i) = AT(older, older_events, i)
		:: tail - i > events
		fi;
		UNLOCK(lock);
		i++
	:: else -> break
	od;
#endif
	LOCK(lock);
	d_step {
		end = 0;
		i = 0;
		from = 0;
		fresh = older;
		want = older_events;
		older = 0;
		older_events = 0
	};
	UNLOCK(lock);
	if
	:: want -> alive[fresh] = 0
	:: else
	fi
}

/* tw_log_detach() */
inline detach()
{
	LOCK(mutex);
	monitors--;
	if
	:: monitors == 0 ->
		LOCK(lock);
		d_step { fresh = store; store = 0; events = 0 };
		UNLOCK(lock);
		alive[fresh] = 0;
		fresh = 0
	:: else
	fi;
	UNLOCK(mutex)
}

/* One event, count or end of @me: tw_log_peek(), copy to user memory, tw_log_take() */
inline read_one(me)
{
#ifndef NO_READING
	LOCK(reading[me]);
#endif
	LOCK_R;
	if
	:: tail - next[me] > length[me] ->
		d_step {
			missed[me] = missed[me] + tail - next[me] - length[me];
			next[me] = tail - length[me]
		}
	:: else
	fi;
	count = missed[me];
	if
	:: count == 0 && next[me] < tail ->
		if
#ifndef READ_NEW_STORE
		:: next[me] < from -> assert(alive[older]); value = AT(older, older_events, next[me])
#endif
		:: else -> assert(alive[store]); value = AT(store, events, next[me])
		fi;
		some = 1
	:: else
	fi;
#ifdef CLOSED_IS_THE_END
	over = closed;
#else
	over = (closed && !some && !count);
#endif
	UNLOCK_R;
	if
	:: over ->
		/* End of file: no delivered event is left unread. */
		assert(expect[me] == delivered || (!begun[me] && expect[me] >= delivered))
	:: !over && count ->
		d_step {
			/* The count may include events from before the attach. */
			if
			:: !begun[me] -> first[me] = first[me] + count
			:: else -> expect[me] = expect[me] + count
			fi;
			missed[me] = missed[me] - count
		}
	:: !over && some ->
		d_step {
			if
			:: !begun[me] -> assert(value <= expect[me] + first[me]); begun[me] = 1
			:: else -> assert(value == expect[me])
			fi;
			expect[me] = value + 1;
			first[me] = 0
		};
		next[me]++
	:: else
	fi;
	d_step { value = 0; some = 0; count = 0 };
#ifndef NO_READING
	UNLOCK(reading[me])
#endif
}

proctype reader(byte me)
{
	byte value, count;
	bit some, over;

	do
	:: over -> break
	:: !over ->
		/* tw_log_ready() */
		(tail != next[me] || missed[me] || closed);
		read_one(me)
	:: !over -> break		/* stops reading */
	od;
	over = 0;
	readers[me]--
}

proctype monitor(byte me)
{
	byte want, fresh, i, end;

	attach(me);
	readers[me] = READERS;
	atomic {
		run reader(me);
#if READERS > 1
		run reader(me);
#endif
	};
	readers[me] == 0;
	detach()
}

/* When no process can make a step, everything was freed and unlocked. */
proctype judge()
{
	byte i;

	timeout;
	assert(delivered == EVENTS && closed && !monitors && !events && !older_events);
	assert(!delivery && !lock && !mutex);
	do
	:: i < STORES -> assert(!alive[i]); i++
	:: else -> break
	od
}

init
{
	byte i;

	atomic {
		run wheel();
		do
		:: i < MONITORS -> run monitor(i); i++
		:: else -> break
		od;
		run judge()
	}
}
