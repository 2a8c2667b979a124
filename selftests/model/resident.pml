/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Does each arming of a timer in the deadline table end once, whoever ends it? Programs arm,
 * refresh and cancel it by compare-and-swap. A resident timer stays after it has fired, others end.
 *
 * One timer with one key, and two bases. Programs change the entry in memory; calls (MOVE, REMOVE,
 * ADD) run on the CPU of either base; each base is visited when the timer's slot has come; readers
 * on either CPU deliver events. Bases, bucket and due list are locked as in handover.pml.
 *
 * The entry is 16 * deadline + 4 * generation + state. Time advances only when no process can make
 * a step (timeout), so what is late then was forgotten. A tick is one unit of time.
 *
 * live and event are ghosts: an arming has not ended; one has ended by firing, and its event was
 * neither delivered nor withdrawn. Each process asserts them in the very step in which it changes
 * the entry.
 */
#ifndef PROGRAMS
#define PROGRAMS	2
#endif
#ifndef OPS			/* of each program */
#define OPS	2
#endif
#ifndef CALLS			/* 1: on CPU 0. 2: another one on CPU 1 */
#define CALLS	1
#endif
#ifndef CALL_OPS
#define CALL_OPS	1
#endif
#ifndef LINGER			/* a fired timer is queued again at delivery, as cancelled */
#define LINGER	0
#endif
#ifndef ENDS			/* 1: it is not resident: it ends when its event is delivered */
#define ENDS	0
#endif
#ifndef TRIES			/* compare-and-swaps of a visit */
#define TRIES	2
#endif
#ifndef DRAINS			/* 1: calls are also DRAIN */
#define DRAINS	0
#endif
#ifndef UNARMED			/* 1: MOVE may be asked to do nothing if the timer is armed */
#define UNARMED	0
#endif
#ifndef HORIZON
#define HORIZON	3
#endif

/* States of an entry. From PARKED_ENTRY on it is the kernel's. */
#define CANCELLED	0
#define ARMED		1
#define PARKED_ENTRY	2
#define FIRED		3
#define S(e)		((e) & 3)
#define G(e)		(((e) >> 2) & 3)
#define D(e)		((e) >> 4)
/* tw_deadline_apply(): an entry can only postpone the timer. */
#ifdef LOWERED_COUNTS
#define LATER(d, e)	D(e)
#else
#define LATER(d, e)	(D(e) > d -> D(e) : d)
#endif
#define ENTRY(d, g, s)	((d) << 4 | (g) << 2 | (s))

/* enum tw_state */
#define FREE		0
#define PENDING		1
#define DUE		2
#define PARKED		3
#define CLAIMED		4	/* its event was delivered, and it is about to be freed */

/* Calls */
#define MOVE		1
#define ADD		2
#define REMOVE		3
#define DRAIN		4

#define NONE		3	/* no base */

byte now = 1;
byte entry;

/* The timer */
byte state = FREE;
byte cpu;
byte deadline;			/* a lower bound of that in the entry */
byte generation;
bit hashed;			/* a look-up finds it */

/* In which list it is */
bit queued;			/* in the wheel of base cpu */
byte slot;			/* visited when this time has come */
bit listed;			/* on the due list */

byte base[2];			/* locks: 0, or _pid + 1 of the holder */
byte bucket;
byte due_list;

/* Ghosts */
bit live;
bit event;
byte owner = 1;			/* how many timers have had the index */

hidden byte i;

#define ACQUIRE(l)	l == 0 -> l = _pid + 1
#define RELEASE(l)	assert(l == _pid + 1); l = 0
#define LOCK(l)		d_step { ACQUIRE(l) }
#define UNLOCK(l)	d_step { RELEASE(l) }

#ifdef HOSTILE
/* Nothing holds for the ghosts then: only for the timer, its lists and its locks. */
#define assert_honest(x)	true
#else
#define assert_honest(x)	assert(x)
#endif

/* An arming that the kernel ends or begins as it writes the entry; @old is what was there. */
#define ENDED_BY_CALL(old)					\
	assert_honest(live == (S(old) == ARMED));		\
	live = 0

/* Queue the timer, in a base that is locked. */
inline enqueue(c, time)
{
	assert(base[c] == _pid + 1 && !queued && !listed);
	cpu = c;
	slot = time;
	queued = 1;
	state = PENDING
}

/* A compare-and-swap in user space: @old is what it expects, and then what is there. */
inline swap(old, want, done)
{
	done = (entry == old);
	if
	:: done -> entry = want
	:: else -> old = entry
	fi
}

proctype program()
{
	byte ops, when, handle, since, old, want, time;
	bit done;

	do
	:: ops == OPS -> break
	:: atomic { ops < OPS ->
		ops++;
		/* The handle that it has learnt, be it stale; or that of the timer now. */
		when = 1;
		do
		:: when < HORIZON -> when++
		:: break
		od
	   };
end_wait:
	   atomic { now >= when ->
		if
		:: since != owner -> handle = generation; since = owner
		:: handle != 0
		fi;
		time = now;
		do
		:: time < now + 2 -> time++
		:: break
		od;
		when = 0
	   };
	   if
	   :: /* arm */
		old = entry;
		do
		:: G(old) != handle -> break			/* GONE */
		:: G(old) == handle && S(old) >= PARKED_ENTRY -> break
		:: G(old) == handle && S(old) < PARKED_ENTRY ->
			want = ENTRY(time, handle, ARMED);
			if
#ifndef ARM_EARLIER
			:: want < old -> break			/* EARLIER */
#endif
			:: else
			fi;
			atomic {
				done = S(old);
				i = done;
				swap(old, want, done);
				if
				:: done -> assert_honest(live == i && since == owner); live = 1
				:: else
				fi;
				i = 0
			};
			if
			:: done -> break
			:: else
			fi
		od
	   :: /* refresh */
		old = entry;
		do
		:: G(old) != handle || S(old) != ARMED -> break
		:: G(old) == handle && S(old) == ARMED ->
			want = ENTRY(time, handle, ARMED);
			if
			:: want < old -> break
			:: else
			fi;
			atomic {
				swap(old, want, done);
				assert_honest(!done || (live && since == owner))
			};
			if
			:: done -> break
			:: else
			fi
		od
	   :: /* cancel */
		old = entry;
		do
		:: G(old) != handle || S(old) != ARMED -> break
		:: G(old) == handle && S(old) == ARMED ->
#ifdef CANCEL_FORGETS_DEADLINE
			want = ENTRY(0, handle, CANCELLED);
#else
			want = old - 1;
#endif
			atomic {
				swap(old, want, done);
				if
				:: done -> assert_honest(live && !event && since == owner); live = 0
				:: else
				fi
			};
			if
			:: done -> break
			:: else
			fi
		od
#ifdef HOSTILE
	   :: /* whatever */
		if
		:: entry = ENTRY(time, handle, ARMED)
		:: entry = ENTRY(time, handle, FIRED)
		:: entry = ENTRY(time, handle, CANCELLED)
		:: entry = ENTRY(0, handle, PARKED_ENTRY)
		:: entry = ENTRY(0, handle, ARMED)
		:: entry = 0
		fi
#endif
	   fi;
	   old = 0; want = 0; time = 0; done = 0
	od
}

/* tw_visit(): the slot has come. */
proctype visit(byte c)
{
	byte old, tries;
	bit done;

end:
	do
	:: d_step { queued && cpu == c && slot <= now && base[c] == 0 -> base[c] = _pid + 1 };
		tries = 0;
		do
		:: atomic { true ->
			old = entry;		/* READ_ONCE() */
			assert(queued && state == PENDING);
			assert_honest(G(old) == generation && S(old) < PARKED_ENTRY);
			assert_honest(deadline <= D(old) && slot <= D(old) || tries || slot == now)
		   };
		   if
		   :: G(old) != generation || S(old) >= PARKED_ENTRY ->
			/* Garbage: as if nothing had been written. */
			atomic {
				if
				:: deadline > now -> slot = deadline
				:: else ->
					entry = ENTRY(deadline, generation, FIRED);
					queued = 0;
					state = DUE;
					event = 1
				fi;
				break
			}
		   :: G(old) == generation && S(old) < PARKED_ENTRY && LATER(deadline, old) > now ->
			/* Still to come. A plain load is enough, because programs only raise it. */
			atomic {
				deadline = LATER(deadline, old);
				slot = deadline;
				break
			}
		   :: G(old) == generation && S(old) < PARKED_ENTRY && LATER(deadline, old) <= now ->
#ifdef PARKED_BEFORE_TAKEN
			if
			:: S(old) == CANCELLED -> state = PARKED
			:: else
			fi;
#endif
			atomic {
#ifdef VISIT_STORES
				done = 1;
				entry = old | 2;
#else
				i = old;
				swap(i, old | 2, done);
#ifdef ENDS_STAYS_ARMED
				if
				:: done && S(old) == ARMED -> entry = old
				:: else
				fi;
#endif
				i = 0;
#endif
				if
				:: done && S(old) == ARMED ->
					assert_honest(live && !event);
					live = 0;
					event = 1;
					assert(deadline <= now);
					deadline = LATER(deadline, old);
					queued = 0;
					state = DUE;
					break
				:: done && S(old) == CANCELLED ->
					assert_honest(!live);
					assert(deadline <= now);
					deadline = LATER(deadline, old);
					queued = 0;
					/* Its last access to the timer: a release. */
					state = PARKED;
					break
				:: !done && tries == TRIES - 1 ->
					slot = now + 1;
					break
				:: else -> tries++
				fi
			}
		   fi
		od;
		if
		:: state == DUE && !queued && !listed && base[c] == _pid + 1 && cpu == c && event ->
			d_step { ACQUIRE(due_list) };
			d_step { listed = 1; RELEASE(due_list) }
		:: else
		fi;
		atomic { old = 0; tries = 0; done = 0; RELEASE(base[c]) }
	od
}

/* Deliver the event: tw_events_deliver(), on the CPU of base @c. */
proctype reader(byte c)
{
	bit got;

end:
	do
	:: d_step { listed && base[c] == 0 -> base[c] = _pid + 1 };
		LOCK(due_list);
		atomic {
			got = listed;
			if
			:: got ->
				assert(state == DUE && !queued && event);
				/* The event is about the last arming. */
				assert_honest(S(entry) == FIRED && D(entry) == deadline && !live);
				event = 0;
				listed = 0
			:: else
			fi
		};
		if
#if ENDS
		:: got ->
			state = CLAIMED		/* the entry stays FIRED */
#elif LINGER
		:: got ->
			/* The entry is the kernel's, so a store will do. */
			atomic {
				deadline = now + LINGER;
				entry = ENTRY(deadline, generation, CANCELLED);
				enqueue(c, deadline)
			}
#else
		:: got -> state = PARKED	/* a release; the entry stays FIRED */
#endif
		:: else
		fi;
		UNLOCK(due_list);
#if ENDS
		if
		:: got ->
			LOCK(bucket);
			/* The entry is not touched: the index may have a new owner from now on. */
			atomic { hashed = 0; state = FREE; deadline = 0; slot = 0 };
#ifdef FREED_TAKES_ENTRY
			UNLOCK(bucket);
			entry = 0
#else
			UNLOCK(bucket)
#endif
		:: else
		fi;
#endif
		atomic { got = 0; RELEASE(base[c]) }
	od
}

/*
 * tw_lookup(): lock the bucket and, if it is in one, the timer's base. Sets @seen; FREE: there is
 * no timer. @other: the other base, if it is locked, or NONE
 */
inline lookup(c)
{
	do
	::	LOCK(bucket);
		if
		:: !hashed || state == CLAIMED -> seen = FREE; break
		:: else
		fi;
		seen = state;
		n = cpu;
		if
		:: seen == PARKED || n == c || n == other -> break
		:: else
		fi;
		UNLOCK(bucket);
		assert(other == NONE);		/* there are only two */
		if
		:: n > c -> LOCK(base[n])
		:: else ->
			UNLOCK(base[c]);
			LOCK(base[n]);
			LOCK(base[c])
		fi;
		other = n
	od
}

/*
 * tw_dequeue() of a due timer: withdraw its event. Sets @seen to FREE, and unlocks the bucket, if a
 * reader was faster: look the timer up again.
 */
inline withdraw()
{
	LOCK(due_list);
	if
	:: atomic {
		state == DUE && (cpu == c || cpu == other) ->
		assert(listed && event);
		listed = 0;
		event = 0;
		RELEASE(due_list)
	   }
	:: else -> UNLOCK(due_list); UNLOCK(bucket); again = 1
	fi
}

/* The timer is freed: its entry is nobody's. */
inline removed()
{
#ifndef REMOVE_LEAVES_ENTRY
	entry = 0;
#endif
	queued = 0;
	hashed = 0;
	state = FREE;
	deadline = 0;
	slot = 0
}

/* The entry and the timer get a new deadline, @time. */
inline moved(c)
{
	if
	:: time > now -> entry = ENTRY(time, generation, ARMED); live = 1
	:: else -> entry = ENTRY(time, generation, FIRED); event = 1
	fi;
	if
	:: time > now && time >= deadline		/* tw_can_stay() */
#ifdef MOVE_KEEPS_SLOT
	:: else
#else
	:: time > now && time < deadline -> queued = 0; enqueue(c, time)
	:: else -> queued = 0; cpu = c; state = DUE
#endif
	fi;
	deadline = time
}

/* The same for one that is in no list, or new. */
inline armed_anew(c)
{
	deadline = time;
	if
	:: time > now ->
		entry = ENTRY(time, generation, ARMED);
		live = 1;
		enqueue(c, time)
	:: else ->
		entry = ENTRY(time, generation, FIRED);
		event = 1;
		cpu = c;
		state = DUE
	fi
}

#ifdef DRAIN_STORES
#define DRAINS_ANYWAY	1
#else
#define DRAINS_ANYWAY	0
#endif
#ifdef MOVE_PARKED_LOCKLESS
#define LOCKLESS_PARKED	(seen == PARKED)
#else
#define LOCKLESS_PARKED	0
#endif

/* A call, on the CPU of base @c */
proctype call(byte c)
{
	byte ops, when, kind, time, seen, n, old, other = NONE;
	bit lockless, again;

	do
	:: ops == CALL_OPS -> break
	:: atomic { ops < CALL_OPS ->
		ops++;
		when = 1;
		do
		:: when < HORIZON -> when++
		:: break
		od
	   };
end_wait:
	   atomic { now >= when ->
		when = 0;
		if
		:: kind = MOVE
		:: kind = ADD
		:: kind = REMOVE
		:: DRAINS -> kind = DRAIN
		fi;
		/* A deadline in the future, or one that has passed */
		if
		:: kind < REMOVE -> time = now
		:: kind < REMOVE -> time = now + 1
		:: kind < REMOVE -> time = now + 2
		:: kind >= REMOVE
		fi
	   };
	   d_step {
		ACQUIRE(base[c]);
		/* tw_lookup_lockless() */
		seen = (hashed && state != CLAIMED -> state : FREE);
		lockless = (kind == MOVE && ((seen == PENDING && cpu == c) || LOCKLESS_PARKED))
	   };
	   if
	   :: lockless
	   :: else ->
		do
		::	lookup(c);
			again = 0;
			if
			:: seen == DUE -> withdraw()
			:: else
			fi;
			if
			:: !again -> break
			:: else
			fi
		od
	   fi;
	   if
	   :: (kind == MOVE || kind == ADD) && seen == PENDING ->
		/* tw_set_deadline() */
		atomic {
			assert(queued && base[cpu] == _pid + 1);
			old = entry;
			assert_honest(G(old) == generation && S(old) < PARKED_ENTRY)
		};
		if
		:: UNARMED && S(old) == ARMED
		:: UNARMED && S(old) != ARMED ->
			/* Only if it is not armed: if the swap fails, it was. */
			atomic {
#ifdef UNARMED_STORES
				old = entry;
#endif
				if
				:: entry == old -> assert_honest(!live); moved(c)
				:: else
				fi
			}
		:: true ->
			atomic {
#ifndef MOVE_STORES
				old = entry;
#endif
				ENDED_BY_CALL(old);
				moved(c)
			}
		fi
	   :: (kind == MOVE || kind == ADD) && (seen == DUE || seen == PARKED) ->
		atomic {
			old = entry;
			assert_honest(G(old) == generation && S(old) >= PARKED_ENTRY && !live);
			armed_anew(c)
		}
	   /* While a timer is claimed, ADD takes another index. */
	   :: kind == ADD && seen == FREE && state == FREE ->
		atomic {
#ifndef SAME_GENERATION
			generation = (generation % 3) + 1;
#endif
			owner++;
			armed_anew(c);
			hashed = 1
		}
	   :: (kind == REMOVE || kind == DRAIN) && seen != FREE ->
		old = entry;			/* DRAIN copies a description out */
		if
		:: atomic {
			/*
			 * DRAIN takes the timer that it has described. Of one that is not pending
			 * the entry is the kernel's.
			 */
			kind == REMOVE || seen != PENDING || entry == old || DRAINS_ANYWAY ->
#ifndef DRAIN_STORES
			old = entry;
#endif
			ENDED_BY_CALL(old);
			removed()
		   }
		:: atomic {
			kind == DRAIN && seen == PENDING && entry != old ->
			/* tw_resident_seize(); it is described once more */
			old = entry;
			assert_honest(G(old) == generation && S(old) < PARKED_ENTRY);
			assert_honest(live == (S(old) == ARMED))
#ifndef NOT_SEIZED
			; entry = ENTRY(0, generation, FIRED)
#endif
		   };
		   if
		   :: atomic { true ->		/* a fault */
			entry = old
		      }
		   :: atomic { true ->
			ENDED_BY_CALL(old);
			removed()
		      }
		   fi
		fi
	   :: else
	   fi;
	   if
	   :: state == DUE && !listed && cpu == c && !queued && event && base[c] == _pid + 1 ->
		LOCK(due_list);
		d_step { listed = 1; RELEASE(due_list) }
	   :: else
	   fi;
	   if
	   :: !lockless -> UNLOCK(bucket)
	   :: else
	   fi;
	   if
	   :: other != NONE -> UNLOCK(base[other]); other = NONE
	   :: else
	   fi;
	   atomic {
		RELEASE(base[c]);
		kind = 0; time = 0; seen = 0; n = 0; old = 0; lockless = 0; again = 0
	   }
	od
}

/* Must hold when no process can make a step. */
inline check()
{
	assert(!base[0] && !base[1] && !bucket && !due_list);
	assert(!listed && !event && state != DUE);
	assert(hashed == (state != FREE));
	assert(queued == (state == PENDING));
	assert(!queued || slot > now);
#ifndef HOSTILE
	assert(live == (hashed && S(entry) == ARMED));
	assert(!hashed || G(entry) == generation);
	assert(!hashed || queued == (S(entry) < PARKED_ENTRY));
	/* It is visited when its deadline comes, or a tick later after lost races. */
	assert(!queued || slot <= D(entry) || slot == now + 1)
#endif
}

proctype clock()
{
end:
	do
	:: timeout ->
		d_step { check(); now++ };
		if
		:: now > HORIZON -> break
		:: else
		fi
	od
}

init
{
	atomic {
		base[0] = _pid + 1;
		generation = 1;
		deadline = now + 1;
		if
		:: entry = ENTRY(deadline, 1, ARMED); live = 1
		:: entry = ENTRY(deadline, 1, CANCELLED)
		fi;
		enqueue(0, deadline);
		hashed = 1;
		base[0] = 0;
		run program();
#if PROGRAMS > 1
		run program();
#endif
#if CALLS > 0
		run call(0);
#endif
#if CALLS > 1
		run call(1);
#endif
		run visit(0);
		run visit(1);
		run reader(0);
#ifdef READERS
		run reader(1);
#endif
		run clock()
	}
}
