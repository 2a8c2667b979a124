/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event ring: does each event arrive, once and in order, and is the reader awake, or about to
 * be woken, while one waits? module/ring.c, flow.c: tw_flow_from_list(), events.c: tw_events_wake();
 * lib/timerwheel-mapped.h: timerwheel_ring_take(), timerwheel_ring_sleep().
 *
 * PRODUCERS (runs, passes) each queue EVENTS events, let them flow into a ring of LENGTH, and wake.
 * One reader takes events, asks for more to flow, sleeps in poll; with EDGE in epoll, edge-triggered:
 * that does not look, but waits for the next wake-up since it has returned.
 *
 * A store may be seen by others after a later load, and stores and loads that are not ordered may be
 * seen in any order: what can happen without one of the barriers is the same as another order of
 * the two, which is what the mutants do.
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
byte made;			/* events queued so far: their numbers */
byte due;			/* tw_events.due.count: numbers made - due to made - 1 */
byte ktail;			/* tw_ring.tail */

byte tail, head;		/* struct timerwheel_ring */
bit overflow, waiting;
byte event[LENGTH];

bit asleep;
bit ready;			/* woken since epoll has returned */
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
		/* what the reader has not copied yet must not be written over: see take() */
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
		/* who is not in the wait queue looks before it sleeps: wakeup.pml */
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
	/* in the wait queue, a last look at all there is, and to sleep */
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

/* When nobody can do anything any more every event has arrived. */
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
