/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A timer is handed over between operations, expiry batches and readers on different CPUs:
 * module/ops.h, ops.c, events.c, run.h, cpu.c, table.h. README.md maps names here to names there.
 *
 * Processes: TASKS tasks, and for each base its expiry batches (batch()), which run at any time.
 * Task n runs on the CPU of base n, its own base, and makes OPS calls of kinds from the mask KINDS. In the kernel, bottom halves are off in a batch of operations, so the
 * expiry batches of a CPU wait for its task, except those of a base that another CPU runs. The
 * model always lets them run beside each other.
 *
 * Time is one bit, later[]: if it is set the deadline is never reached, else a batch may find it
 * passed at any time. To postpone a timer is to set the bit.
 *
 * The arrays where[], alive[], version[] and copied[] are ghosts: the kernel does not have them,
 * and they only serve assertions.
 *
 * Each macro without a comment beside its #if is a mutant of the table in `check`: it leaves out a
 * lock, a second check or an order.
 */

#ifndef TASKS
#define TASKS	2
#endif
#ifndef BASES
#define BASES	TASKS
#endif
#ifndef TIMERS
#define TIMERS	2
#endif
#ifndef KEYS
#define KEYS	2
#endif
#ifndef BUCKETS		/* 1: all keys are in one hash chain. 2: each has its own */
#define BUCKETS	1
#endif
#ifndef OPS
#define OPS	1
#endif
#define ADD	1
#define MOVE	2
#define REMOVE	4
#define GET	8
#define DRAIN	16
#define LOOK	32
#define READ	64
#define CLOSE	128
#ifndef KINDS
#define KINDS	255
#endif

#define NONE	255

/* enum tw_state */
#define FREE	0
#define PENDING	1
#define DUE	2
#define CLAIMED	3

/* where[]: the list that a timer is in */
#define NOWHERE	0
#define DUELIST	1		/* tw_events.due */
#define TABLE	2		/* a magazine in tw_table.full */
#define WHEEL	4		/* + base: tw_cpu.wheel */
#define BATCH	8		/* + base: struct tw_due_list of an expiry batch */
#define STOCK	12		/* + base: tw_cpu.free */

byte state[TIMERS + 1];
byte cpu[TIMERS + 1];
byte key[TIMERS + 1];
byte hash_next[TIMERS + 1];
bit period[TIMERS + 1];
bit later[TIMERS + 1];
byte head[BUCKETS];
bit closed;

byte base[BASES];		/* locks: 0, or _pid + 1 of the owner */
byte bucket[BUCKETS];
byte events;

byte where[TIMERS + 1];
bit alive[TIMERS + 1];		/* its arming has not ended */
byte version[TIMERS + 1];	/* number of armings, modulo 4 */
bit copied[TIMERS + 1];		/* its event was copied to a reader */
bit close_done;
byte finished;

#define ACQUIRE(l)	l == 0 -> l = _pid + 1
#define RELEASE(l)	assert(l == _pid + 1); l = 0
#define LOCK(l)		d_step { ACQUIRE(l) }
#define UNLOCK(l)	d_step { RELEASE(l) }
#ifdef NO_BUCKET_ON_OP
#define ACQUIRE_BUCKET(k) true
#define RELEASE_BUCKET(k) true
#else
#define ACQUIRE_BUCKET(k) ACQUIRE(bucket[BUCKET(k)])
#define RELEASE_BUCKET(k) RELEASE(bucket[BUCKET(k)])
#endif
#define LOCK_BUCKET(k)	d_step { ACQUIRE_BUCKET(k) }
#define UNLOCK_BUCKET(k) d_step { RELEASE_BUCKET(k) }
#define ANY_OF(n, from, to) \
			n = from; do :: n < to -> n++ :: break od
#define BUCKET(k)	((k) % BUCKETS)

/* An arming begins; it ends. */
#define BEGINS(t)	assert(!alive[t] && !(kind == ADD && close_done)); alive[t] = 1; copied[t] = 0; \
			version[t] = (version[t] + 1) % 4
#define ENDS(t)		assert(alive[t] && !copied[t]); alive[t] = 0

/* A timer leaves a list; it enters another. */
#define LEAVES(t, list)	assert(where[t] == (list)); where[t] = NOWHERE
#define ENTERS(t, list)	assert(where[t] == NOWHERE); where[t] = (list)

/* tw_base_held(): is this base locked by the task? */
#define LOCKED(nr)	((nr) == me || (nr) == other)

/* __tw_cpu_begin(), tw_cpu_lock_two(): lock the own base, and the one that the last batch wants. */
inline lock_bases()
{
	if
	:: want == NONE -> LOCK(base[me])
	:: want != NONE ->
#ifdef NOT_ASCENDING
		LOCK(base[me]);
		LOCK(base[want]);
#else
		if
		:: want < me -> LOCK(base[want]); LOCK(base[me])
		:: else -> LOCK(base[me]); LOCK(base[want])
		fi;
#endif
		d_step { other = want; want = NONE }
	fi
}

/* Unlock them. */
inline unlock_bases()
{
	if
	:: other != NONE -> RELEASE(base[other]); other = NONE
	:: else
	fi;
	RELEASE(base[me])
}

/* tw_table_lookup() */
inline find()
{
	link = 0;
	t = head[BUCKET(k)];
	do
	:: t != 0 && !(key[t] == k && state[t] != CLAIMED) -> link = t; t = hash_next[t]
	:: else -> break
	od
}

/* tw_table_link_to(): walk to the timer. */
inline walk_to(chain)
{
	d_step {
		link = 0;
		i = head[chain];
		do
		:: i != t && i != 0 -> link = i; i = hash_next[i]
		:: else -> break
		od;
		assert(i == t)
	}
}

/* tw_table_set_link(): unlink it. */
inline take_out(chain)
{
	if
	:: link == 0 -> head[chain] = hash_next[t]
	:: else -> hash_next[link] = hash_next[t]
	fi
}

/* tw_cpu_free(): into the magazines of the own base; a third full one goes to the table. */
inline give_back()
{
	atomic {
		if
		:: ENTERS(t, STOCK + me)
		:: ENTERS(t, TABLE)
		fi
	}
}

/* tw_enqueue(): pending, with a deadline that may pass or that never does; or due at once. */
inline queue()
{
#ifndef QUEUE_STATE_FIRST
	cpu[t] = me;
#endif
	if
	:: d_step { state[t] = PENDING; later[t] = 0; BEGINS(t) }
	:: d_step { state[t] = PENDING; later[t] = 1; BEGINS(t) }
	:: d_step { state[t] = DUE; later[t] = 0; BEGINS(t) }
	fi;
#ifdef QUEUE_STATE_FIRST
	cpu[t] = me;
#endif
	if
	:: state[t] == PENDING -> d_step { ENTERS(t, WHEEL + me) }
	:: else -> d_step { ACQUIRE(events); ENTERS(t, DUELIST); RELEASE(events) }
	fi
}

/* All that is reported about a timer belongs to one arming. */
inline describe(list)
{
	d_step { assert(where[t] == (list) && alive[t] && key[t] == k); v = version[t] };
	d_step { assert(where[t] == (list) && alive[t] && key[t] == k && v == version[t]); v = 0 }
}

/* tw_lock_if_due(): if `due`, the list is locked and the timer is on it. */
inline lock_due()
{
#ifndef NO_EVENTS_ON_WITHDRAW
	LOCK(events);
#endif
	if
#ifdef NO_STATE_RECHECK
	:: true -> due = 1
#elif defined(NO_BASE_RECHECK)
	:: state[t] == DUE -> due = 1
	:: state[t] != DUE -> UNLOCK(events)
#elif defined(NO_EVENTS_ON_WITHDRAW)
	:: state[t] == DUE && LOCKED(cpu[t]) -> due = 1
	:: else
#else
	:: state[t] == DUE && LOCKED(cpu[t]) -> due = 1
	:: else -> UNLOCK(events)
#endif
	fi
}

inline unlock_due()
{
	due = 0;
#ifndef NO_EVENTS_ON_WITHDRAW
	UNLOCK(events)
#endif
}

proctype task(byte me)
{
	byte ops, k, t, link, i, st, nr, v;
	short kind;
	byte other = NONE;
	byte want = NONE;		/* tw_ctx.wants */
	byte mask;			/* reader: timers whose events were copied */
	byte seen[TIMERS + 1];
	bit due;

call:
	atomic {
		if
		:: ops == OPS -> goto end_of_task
		:: else -> ops++
		fi;
		if
		:: (KINDS & ADD) -> kind = ADD
		:: (KINDS & MOVE) -> kind = MOVE
		:: (KINDS & REMOVE) -> kind = REMOVE
		:: (KINDS & GET) -> kind = GET
		:: (KINDS & DRAIN) -> kind = DRAIN
		:: (KINDS & LOOK) -> kind = LOOK
		:: (KINDS & READ) -> kind = READ
		:: (KINDS & CLOSE) -> kind = CLOSE
		fi;
		/* Choose a key; for DRAIN and LOOK an index. */
		if
		:: kind & (ADD | MOVE | REMOVE | GET) -> ANY_OF(k, 1, KEYS)
		:: kind & (DRAIN | LOOK) -> ANY_OF(t, 1, TIMERS)
		:: else
		fi
	};

begin:	/* tw_cpu_begin() */
	if
	:: kind == CLOSE -> goto close
	:: else
	fi;
#ifdef CLOSED_BEFORE_LOCK
	if
	:: kind == ADD && closed -> goto called
	:: else
	fi;
#endif
	skip;
	lock_bases();
#ifdef NO_LOOK_AGAIN
	if
	:: other != NONE -> LOCK_BUCKET(k); goto found
	:: else
	fi;
#endif
#ifndef CLOSED_BEFORE_LOCK
	if
	:: kind == ADD && closed -> goto end_batch
	:: else
	fi;
#endif
	if
	:: kind == READ -> goto read
	:: kind & (DRAIN | LOOK) -> goto look_index
	:: kind == MOVE -> goto look_own
	:: else
	fi;

look_key: /* tw_lookup() */
	skip;
	d_step { ACQUIRE_BUCKET(k); find() };
	if
	:: t == 0 -> goto absent
	:: else
	fi;
settle:	/* tw_timer_held() */
#ifdef CPU_BEFORE_STATE
	nr = cpu[t];
	st = state[t];
#else
	st = state[t];
	nr = cpu[t];
#endif
	if
#ifdef NO_OTHER_LOCK
	:: true
#else
	:: LOCKED(nr)
#endif
	:: !LOCKED(nr) ->
		UNLOCK_BUCKET(k);
		goto start_over
	fi;
	if
	:: (kind & (DRAIN | LOOK)) && st != PENDING && st != DUE -> goto unlock
	:: else
	fi;
found:
	if
	:: kind & (GET | LOOK) -> goto look
	:: else
	fi;
	if
	:: (kind & (ADD | MOVE)) && st == PENDING ->
		/* tw_can_stay(): postponed in place */
		d_step {
			ENDS(t);
			BEGINS(t);
			later[t] = 1
		};
		goto unlock
	:: true
	fi;
	/* tw_dequeue(); DRAIN's own is the same */
	if
	:: st == PENDING ->
		d_step {
#ifndef NO_OTHER_LOCK
			assert(LOCKED(cpu[t]));
#endif
			LEAVES(t, WHEEL + cpu[t]);
			ENDS(t)
		}
	:: else ->
		lock_due();
		if
		:: due ->
			d_step {
				LEAVES(t, DUELIST);
				ENDS(t)
			};
			unlock_due()
		:: else ->
			/* a reader was faster */
			UNLOCK_BUCKET(k);
			nr = cpu[t];
			goto start_over
		fi
	fi;
	if
	:: kind & (ADD | MOVE) ->
		if
		:: kind == ADD -> period[t] = 0
		:: kind == ADD -> period[t] = 1
		:: kind == MOVE
		fi;
		queue()
	:: else ->
		/* tw_unhash_free() */
		walk_to(BUCKET(k));
		take_out(BUCKET(k));
#ifndef DROP_STATE_LATE
		state[t] = FREE;
#endif
		UNLOCK_BUCKET(k);
		give_back();
#ifdef DROP_STATE_LATE
		state[t] = FREE;
#endif
		goto end_batch
	fi;

unlock:
	skip;
	UNLOCK_BUCKET(k);
end_batch: /* tw_cpu_end() */
	skip;
	d_step {
		unlock_bases();
		k = 0; t = 0; link = 0; i = 0; st = 0; nr = 0; mask = 0; kind = 0
	};
	goto call;
start_over: /* tw_start_over(): the batch ends, and the next one has base nr locked */
	skip;
	d_step {
		unlock_bases();
		want = (nr == me -> NONE : nr);
		link = 0; st = 0; nr = 0
	};
	goto begin;
called:
	skip;
	d_step {
		k = 0; t = 0; link = 0; i = 0; st = 0; nr = 0; mask = 0; kind = 0
	};
	goto call;

look_own: /* tw_lookup_lockless() */
	t = head[BUCKET(k)];
	do
	:: t == 0 -> goto look_key
	:: t != 0 && key[t] == k -> break
	:: t != 0 && key[t] != k -> t = hash_next[t]
	:: true -> goto look_key	/* too deep in the chain */
	od;
	/* tw_timer_held() */
#ifdef CPU_BEFORE_STATE
	nr = cpu[t];
	st = state[t];
#else
	st = state[t];
	nr = cpu[t];
#endif
	if
#ifdef OWN_IN_ANY_STATE
	:: LOCKED(nr)
#elif defined(OWN_IN_ANY_BASE)
	:: st == PENDING
#else
	:: st == PENDING && LOCKED(nr)
#endif
	:: else -> goto look_key
	fi;
	if
	:: /* tw_can_stay() */
		d_step {
			assert(where[t] == WHEEL + cpu[t] && LOCKED(cpu[t]) && key[t] == k);
			ENDS(t);
			BEGINS(t);
			later[t] = 1
		}
	:: d_step {
			assert(LOCKED(cpu[t]) && key[t] == k);
			LEAVES(t, WHEEL + cpu[t]);
			ENDS(t)
		};
		queue()
	fi;
	goto end_batch;

absent:	/* No timer was found with this key: assert that there is none. */
	skip;
	d_step {
		i = 1;
		do
		:: i <= TIMERS -> assert(!(alive[i] && key[i] == k)); i++
		:: else -> break
		od;
		i = 0
	};
	if
	:: kind == ADD
	:: else -> goto unlock
	fi;
	/* tw_cpu_alloc() */
	atomic {
		if
		:: where[1] == STOCK + me -> t = 1
		:: TIMERS > 1 && where[TIMERS] == STOCK + me -> t = TIMERS
		:: TIMERS > 2 && where[2] == STOCK + me -> t = 2
		:: else ->
			if
			:: where[1] == TABLE -> t = 1
			:: TIMERS > 1 && where[TIMERS] == TABLE -> t = TIMERS
			:: TIMERS > 2 && where[2] == TABLE -> t = 2
			:: else
			fi;
			if
			:: t -> where[t] = STOCK + me
			:: else
			fi
		fi
	};
	if
	:: t == 0 -> goto grow
	:: else
	fi;
	d_step { LEAVES(t, STOCK + me); assert(state[t] == FREE) };
	key[t] = k;
	hash_next[t] = 0;
	if
	:: link == 0 -> head[BUCKET(k)] = t
	:: else -> hash_next[link] = t
	fi;
	if
	:: period[t] = 0
	:: period[t] = 1
	fi;
	queue();
	goto unlock;

grow:	/* The table cannot grow: tw_cpu_reclaim() */
	skip;
	d_step {
		RELEASE_BUCKET(k);
		unlock_bases();
		nr = 0
	};
	do
	:: nr < BASES ->
#ifndef NO_BASE_ON_RECLAIM
		LOCK(base[nr]);
#endif
		d_step {
			i = 1;
			do
			:: i <= TIMERS ->
				if
				:: where[i] == STOCK + nr -> where[i] = TABLE
				:: else
				fi;
				i++
			:: else -> break
			od;
			i = 0
		};
#ifndef NO_BASE_ON_RECLAIM
		UNLOCK(base[nr]);
#endif
		nr++
	:: else -> break
	od;
	skip;
	d_step {
		i = 1;
		do
		:: i <= TIMERS && where[i] != TABLE -> i++
		:: else -> break
		od;
		nr = 0
	};
	if
	:: i <= TIMERS -> i = 0; goto begin
	:: else -> goto called
	fi;

look:	/* tw_get_unlock() */
	if
	:: st == PENDING -> describe(WHEEL + cpu[t]); goto unlock
	:: else ->
		lock_due();
		if
		:: due -> describe(DUELIST); unlock_due(); goto unlock
		:: else ->
			UNLOCK_BUCKET(k);
			nr = cpu[t];
			goto start_over
		fi
	fi;

look_index: /* tw_lookup_index() */
	atomic {
		if
		:: state[t] == FREE || state[t] == CLAIMED -> assert(!alive[t]); goto end_batch
		:: else
		fi
	};
	k = key[t];
	LOCK_BUCKET(k);
	if
#ifndef NO_KEY_RECHECK
	:: key[t] != k -> UNLOCK_BUCKET(k); nr = me; goto start_over
	:: else -> goto settle
#else
	:: true -> goto settle
#endif
	fi;

read:	/* tw_events_deliver() */
	skip;
	LOCK(events);
	d_step {
		/* tw_events_copy(), tw_taken_add() */
		t = 1;
		do
		:: t <= TIMERS ->
			if
			:: where[t] == DUELIST -> mask = mask | (1 << t); seen[t] = version[t]
			:: else
			fi;
			t++
		:: else -> break
		od;
		t = 0
	};
	if
	:: true				/* a fault or a short buffer: some events are not copied */
		-> mask = mask & (1 << TIMERS)
	:: true
	fi;
	d_step {
		t = 1;
		do
		:: t <= TIMERS ->
			if
			:: mask & (1 << t) ->
				assert(alive[t] && !copied[t] && version[t] == seen[t] && !later[t]);
				copied[t] = 1
			:: else
			fi;
			t++
		:: else -> break
		od;
		t = 1
	};
#ifdef COPY_THEN_LOCK_AGAIN
	UNLOCK(events);
	LOCK(events);
#endif
	/* tw_events_pop(), tw_taken_stay() */
	do
	:: t > TIMERS -> break
	:: t <= TIMERS && !(mask & (1 << t)) -> t++
	:: t <= TIMERS && (mask & (1 << t)) ->
		d_step {
			LEAVES(t, DUELIST);
			assert(alive[t] && copied[t] && version[t] == seen[t]);
			copied[t] = 0;
			seen[t] = 0
		};
		if
		:: period[t] ->
			/* tw_timer_stay() */
			d_step { mask = mask & ~(1 << t); ENDS(t); later[t] = 0 };
#ifndef REARM_STATE_FIRST
			cpu[t] = me;
#endif
			d_step { state[t] = PENDING; BEGINS(t) };
#ifdef REARM_STATE_FIRST
			cpu[t] = me;
#endif
#ifdef REARM_UNLOCKED
			UNLOCK(base[me]);
#endif
			d_step { ENTERS(t, WHEEL + me) };
#ifdef REARM_UNLOCKED
			LOCK(base[me])
#endif
		:: else ->
#if defined(NO_CLAIM) || defined(CLAIM_AFTER_UNLOCK)
			d_step { ENDS(t) }
#else
			d_step { state[t] = CLAIMED; ENDS(t) }
#endif
		fi;
		t++
	od;
	skip;
	UNLOCK(events);
#ifdef CLAIM_AFTER_UNLOCK
	t = 1;
	do
	:: t <= TIMERS ->
		if
		:: mask & (1 << t) -> state[t] = CLAIMED
		:: else
		fi;
		t++
	:: else -> break
	od;
#endif
	/* tw_taken_free() */
	t = 1;
	do
	:: t > TIMERS -> break
	:: t <= TIMERS && !(mask & (1 << t)) -> t++
	:: t <= TIMERS && (mask & (1 << t)) ->
#ifdef FREE_BEFORE_UNHASH
		d_step { state[t] = FREE; ENTERS(t, TABLE) };
#endif
#ifndef NO_BUCKET_ON_FREE
		LOCK(bucket[BUCKET(key[t])]);
#endif
		walk_to(BUCKET(key[t]));
		take_out(BUCKET(key[t]));
#ifndef FREE_BEFORE_UNHASH
		state[t] = FREE;
#endif
#ifndef NO_BUCKET_ON_FREE
		UNLOCK(bucket[BUCKET(key[t])]);
#endif
#ifndef FREE_BEFORE_UNHASH
		give_back();
#endif
		t++
	od;
	goto end_batch;

close:	/* tw_drain_close(), tw_cpu_barrier() */
	closed = 1;
#ifndef CLOSE_NO_BARRIER
	nr = 0;
	do
	:: nr < BASES -> LOCK(base[nr]); UNLOCK(base[nr]); nr++
	:: else -> break
	od;
#endif
	close_done = 1;
	goto called;

end_of_task:
	atomic {
		finished++;
		if
		:: finished < TASKS -> goto gone
		:: else
		fi
	};
	nr = 0;
	do
	:: nr < BASES -> LOCK(base[nr]); nr++
	:: else -> break
	od;
	skip;
	/* Wait for batches under way: mutants may release the lock of a base too early. */
	where[1] / 4 != BATCH / 4 && where[TIMERS] / 4 != BATCH / 4 && where[(TIMERS + 1) / 2] / 4 != BATCH / 4;
	LOCK(events);
	/* Each timer is in the list of its state and found by its key; none is lost. */
	d_step {
		t = 1;
		do
		:: t <= TIMERS ->
			assert((state[t] == FREE) == (where[t] == TABLE || where[t] >= STOCK));
			assert((state[t] == PENDING) == (where[t] == WHEEL + cpu[t]));
			assert((state[t] == DUE) == (where[t] == DUELIST));
			assert((state[t] != FREE) == alive[t]);
			assert(!copied[t]);
			link = 0;
			i = head[BUCKET(key[t])];
			do
			:: i != 0 ->
				link = link + (i == t);
				assert(link < 2 && alive[i]);
				i = hash_next[i]
			:: else -> break
			od;
			assert(link == alive[t]);
			t++
		:: else -> break
		od;
		t = 0; link = 0; i = 0
	};
	UNLOCK(events);
	nr = 0;
	do
	:: nr < BASES -> UNLOCK(base[nr]); nr++
	:: else -> break
	od;
gone:
	skip
}

/* tw_cpu_run(), tw_cpu_advance(): expiry batches of base p */
proctype batch(byte p)
{
	byte t, i, link;
	bit postponed, room;
#define FIRST(t)	(where[t] == WHEEL + p)
#define IN_BATCH	(where[1] == BATCH + p || (TIMERS > 1 && where[TIMERS] == BATCH + p) || \
			 (TIMERS > 2 && where[2] == BATCH + p))
#define ANY		(FIRST(1) || (TIMERS > 1 && FIRST(TIMERS)) || (TIMERS > 2 && FIRST(2)))

end:
	do
#ifdef NO_BASE_IN_BATCH
	:: ANY ->
#else
	:: atomic { ANY && base[p] == 0 -> base[p] = _pid + 1 };
#endif
	   /* tw_wheel_collect(), tw_visit(): any number of timers of the base */
	   t = 1;
	   do
	   :: t > TIMERS -> break
	   :: t <= TIMERS && !FIRST(t) -> t++
	   :: t <= TIMERS && FIRST(t) -> t++		/* its slot has not come up */
	   :: t <= TIMERS && FIRST(t) ->
		postponed = later[t];
		if
		:: postponed				/* queued again in the same wheel */
		:: else -> d_step { assert(!later[t]); LEAVES(t, WHEEL + p); state[t] = DUE; where[t] = BATCH + p }
		fi;
		postponed = 0;
		t++
	   od;
	   t = 0;
#ifdef EVENTS_AFTER_BASE
	   UNLOCK(base[p]);
#endif
	   /* tw_flow_direct(): there is a ring, and it has room for all of them */
	   if
#ifdef RING
	   :: IN_BATCH -> room = 1
#endif
	   :: true
	   fi;
	   do
	   :: !room || !IN_BATCH -> break
	   :: room && IN_BATCH ->
		d_step {
			t = 1;
			do
			:: where[t] != BATCH + p -> t++
			:: else -> break
			od;
			assert(state[t] == DUE);
			ENDS(t);
			if
			:: period[t] ->
				later[t] = 0;
				state[t] = PENDING;
				alive[t] = 1;
				version[t] = (version[t] + 1) % 4;
				LEAVES(t, BATCH + p);
				ENTERS(t, WHEEL + p)
			:: else
			fi
		};
		if
		:: state[t] == PENDING
		:: else ->
#ifdef PASS_ON_AFTER_BASE
			UNLOCK(base[p]);
#endif
#ifndef NO_BUCKET_ON_PASS_ON
			LOCK(bucket[BUCKET(key[t])]);
#endif
			walk_to(BUCKET(key[t]));
			take_out(BUCKET(key[t]));
			state[t] = FREE;
#ifndef NO_BUCKET_ON_PASS_ON
			UNLOCK(bucket[BUCKET(key[t])]);
#endif
#ifdef PASS_ON_AFTER_BASE
			LOCK(base[p]);
#endif
			d_step { LEAVES(t, BATCH + p) };
			atomic {
				if
				:: ENTERS(t, STOCK + p)
				:: ENTERS(t, TABLE)
				fi
			}
		fi
	   od;
	   skip;
	   d_step { t = 0; i = 0; link = 0; room = 0 };
	   /* tw_events_add() */
	   d_step {
		i = 1;
		do
		:: i <= TIMERS && where[i] != BATCH + p -> i++
		:: else -> break
		od
	   };
	   if
	   :: i > TIMERS -> i = 0
	   :: else ->
		d_step {
			ACQUIRE(events);
			i = 1;
			do
			:: i <= TIMERS ->
				if
				:: where[i] == BATCH + p -> assert(state[i] == DUE); where[i] = DUELIST
				:: else
				fi;
				i++
			:: else -> break
			od;
			i = 0;
			RELEASE(events)
		}
	   fi;
#if !defined(EVENTS_AFTER_BASE) && !defined(NO_BASE_IN_BATCH)
	   UNLOCK(base[p])
#endif
	od
}

init
{
	byte t, p;
	byte k = 1;

	atomic {
		/* each timer except the last is free, pending or due, in any base */
		t = 1;
		do
		:: t <= TIMERS ->
			ANY_OF(p, 0, BASES - 1);
			if
			:: where[t] = STOCK + p
			:: where[t] = TABLE
			:: k <= KEYS ->
				cpu[t] = p;
				key[t] = k;
				hash_next[t] = head[BUCKET(k)];
				head[BUCKET(k)] = t;
				alive[t] = 1;
				k++;
				if
				:: period[t] = 0
				:: period[t] = 1
				fi;
				if
				:: state[t] = PENDING; where[t] = WHEEL + p
				:: state[t] = DUE; where[t] = DUELIST
				fi
			fi;
			t++
		:: else -> break
		od;
		t = 0; p = 0; k = 0;
		run task(0);
		run task(1);
#if TASKS > 2
		run task(2);
#endif
		run batch(0);
		run batch(1);
#if BASES > 2
		run batch(2);
#endif
	}
}
