/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event ring: does each event arrive, once and in order, and is the reader awake, or about to
 * be woken, while one waits? module/ring.c, flow.c: tw_flow_from_list(), events.c: tw_events_wake();
 * lib/timerwheel-mapped.h: timerwheel_ring_take(), timerwheel_ring_sleep().
 *
 * PRODUCERS (batches of operations and of expiries) each queue EVENTS events, move them into a ring
 * of LENGTH and wake the reader. The one reader takes events, calls FLOW for more, and sleeps in
 * poll or, with EDGE, in edge-triggered epoll, which does not check the condition but waits for a
 * wake-up later than its last return.
 *
 * Without a full barrier a store may become visible after a later load; stores and loads without an
 * order may become visible in any order. The effect is that of a program that does the two in
 * another order, and that is what the mutants do.
 */
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef EVENTS
#define EVENTS	2
#endif
#ifndef LENGTH
#define LENGTH	1
#endif

#define ALL	(PRODUCERS * EVENTS)

byte events;			/* lock */
byte made;			/* events queued so far; the next one has this number */
byte due;			/* tw_events.due.count: numbers made - due to made - 1 */
byte ktail;			/* tw_ring.tail */

byte tail, head;		/* struct timerwheel_ring */
bit overflow, waiting;
byte event[LENGTH];

bit asleep;
bit ready;			/* woken since the last return of epoll */
byte taken;

#define LOCK(l)		atomic { l == 0 -> l = _pid + 1 }
#define UNLOCK(l)	d_step { assert(l == _pid + 1); l = 0 }

#define PUBLISH_FLAGS	overflow = (due > 0)
#define PUBLISH_TAIL	tail = ktail

/* tw_flow_from_list(), under the lock; one event at a time */
inline flow()
{
	room = LENGTH - (ktail - head);
	do
	:: due > 0 && room > 0 ->
#ifdef TAIL_FIRST
		tail = ktail + 1;
#endif
		/* this must not overwrite an event that the reader has not copied: see take() */
		event[ktail % LENGTH] = made - due;
		d_step { due--; room--; ktail++ }
	:: else -> break
	od;
#ifndef NO_FLAGS
	PUBLISH_FLAGS;
#endif
	PUBLISH_TAIL;
	room = 0
}

/* tw_events_wake() */
inline wake()
{
#ifndef NO_BARRIER_IN_WAKER
	wanted = waiting;
#endif
	if
	:: wanted ->
#ifdef WAKER_CLEARS
		waiting = 0;
#endif
		/* a reader that is not in the wait queue checks before it sleeps: wakeup.pml */
		d_step { asleep = 0; ready = 1 }
	:: else
	fi;
	wanted = 0
}

proctype producer()
{
	byte left, room;
	bit wanted;

	left = EVENTS;
	do
	:: left == 0 -> break
	:: left > 0 ->
		left--;
		LOCK(events);
		d_step { made++; due++ };
#ifdef NO_BARRIER_IN_WAKER
		wanted = waiting;
#endif
		flow();
		UNLOCK(events);
		wake()
	od
}

proctype reader()
{
	byte seen, room, value;
	bit more;

again:	/* timerwheel_ring_take() */
	waiting = 0;
	seen = tail;
	if
	:: seen != head ->
#ifdef HEAD_FIRST
		head++;
		value = event[(head - 1) % LENGTH];
#else
		value = event[head % LENGTH];
		head++;
#endif
		assert(value == taken);
		d_step { taken++; value = 0; seen = 0 };
		goto again
	:: else
	fi;
	/* timerwheel_ring_sleep() */
#ifdef NO_BARRIER_IN_READER
	seen = tail;
	more = overflow;
	waiting = 1;
#else
	waiting = 1;
	seen = tail;
#ifdef NO_SECOND_LOOK
	seen = head;
#endif
	more = overflow;
#endif
	if
	:: seen != head -> d_step { seen = 0; more = 0 }; goto again
	:: seen == head && more ->
#ifndef NO_LOOK_AT_FLAGS
		d_step { seen = 0; more = 0 };
		/* TIMERWHEEL_IOC_FLOW */
		LOCK(events);
		flow();
		UNLOCK(events);
		goto again
#endif
	:: else
	fi;
	d_step { seen = 0; more = 0 };
#ifdef EDGE
end_edge:
	atomic { ready -> ready = 0 };
#else
	/* queue up, check for events once more, sleep */
	atomic {
		if
		:: tail != head || due > 0 -> goto again
		:: else -> asleep = 1
		fi
	};
end:
	!asleep;
#endif
	goto again
}

/* When no process can make a step, every event has arrived. */
proctype judge()
{
	timeout;
	assert(taken == ALL && made == ALL && due == 0 && !events)
}

init
{
	atomic {
		run producer();
#if PRODUCERS > 1
		run producer();
#endif
		run reader();
		run judge()
	}
}
