/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Does each base have its turn when it has work?
 * module/engine.c; cpu.c: tw_cpu_program(), tw_cpu_run(), tw_cpu_clock_set_back(), tw_cpu_close();
 * run.h: tw_cpu_end(), tw_cpu_tick(). README.md maps names here to names there.
 *
 * One engine. A task is a batch of operations on any CPU; each arms a timer for now + 0 to 2, or
 * sets @wake_at (wake-up batching). A bit of work[] is an expiry batch that a base has to run at
 * that time. There are a firing for each clock and the thread. Options add tasks on another CPU
 * than the engine's, a CPU that goes offline and comes back, the close of wheels, and
 * CLOCK_REALTIME (clock 1) being set back.
 *
 * Time advances only when no process can make a step (timeout). Work that is late then was either
 * forgotten or waits because the pace forbids it. The cost of turns is nondeterministic: each may
 * use up the budget, the quantum or the pace.
 *
 * The engine's lock is taken and dropped in one step: everything it protects is accessed only under
 * it, except that the thread reads the list without it. Lists are sets, so any order of turns is
 * possible. With PAUSES a queue that the thread takes may have used up its user's share: it pauses.
 * With GROUP the queue is that of a container, and each base has a queue of its own in it (c_*). Entities move from a tree to a list one at a time, so some may be left behind.
 */
#ifndef TASKS
#define TASKS	2
#endif
#ifndef OPS
#define OPS	1
#endif
#ifndef BASES
#define BASES	2
#endif
#ifndef QUEUES		/* 2: each base belongs to a different user */
#define QUEUES	1
#endif
#ifndef CLOCKS		/* 2: the last queue is on CLOCK_REALTIME */
#define CLOCKS	1
#endif
#ifndef CLOSES		/* how many bases are removed, from the last one down */
#define CLOSES	0
#endif
#ifndef ELSEWHERE	/* 1: tasks run on any CPU, else on the engine's own */
#define ELSEWHERE	0
#endif
#ifndef PAUSES		/* how often a user may use up the share */
#define PAUSES	0
#endif
#ifndef GROUP		/* 1: a container with a user for each base; only with QUEUES=1 */
#define GROUP	0
#endif
#ifndef HORIZON
#define HORIZON	4
#endif
#define NEVER	15
#define NONE	15
#define BEGIN	2

#define QUEUE(b)	((b) % QUEUES)
#define CLOCK(q)	((q) == QUEUES - 1 -> CLOCKS - 1 : 0)

/* enum tw_place */
#define NOWHERE	0
#define TIMED	1
#define LISTED	2
#define REMOVED	3

byte now[CLOCKS] = BEGIN;
byte rest;			/* tw_pace: no firing before this time of clock 0 */

/* Bases */
byte lock[BASES];
byte work[BASES];		/* bit t: there is work at time t */
byte wake_at[BASES] = NEVER;
byte cursor[BASES] = BEGIN;	/* the wheel's time */
bit sooner[BASES];
byte programmed[BASES] = NEVER;
byte place[BASES];
byte at[BASES];			/* while TIMED */

/* Queues */
byte bases[QUEUES];
byte q_place[QUEUES];
byte q_at[QUEUES];
bit q_deferred[QUEUES];		/* if LISTED: on which list */
#if PAUSES
bit q_paused[QUEUES];		/* if TIMED: it waits until its user has earned more time */
byte q_until[QUEUES];		/* ghost: until then */
byte pauses;
#define PAUSED(q)	(q_place[q] == TIMED && q_paused[q])
#else
#define PAUSED(q)	0
#endif
#ifdef PAUSES_BY_ITS_CLOCK
#define TREE(q)		CLOCK(q)
#else
#define TREE(q)		(PAUSED(q) -> 0 : CLOCK(q))
#endif

#if GROUP
/* Queues of the users of the container: base b is the only one of queue b. */
byte c_place[BASES];
byte c_at[BASES];
#endif

/* The engine */
byte engine;			/* its lock, for mutants that hold it for more than one step */
byte running;
bit threaded = 1;
bit kick;
byte kick_next;
byte c_programmed[CLOCKS] = NEVER;
bit enqueued[CLOCKS];		/* the hrtimers */
byte expires[CLOCKS];
bit away[CLOCKS];		/* on another CPU than the engine's */

/* The thread */
bit awake = 1;			/* TASK_RUNNING */
byte sleep_until;
bit should_park, parked;

/* RCU: the readers, and those that a grace period waits for */
byte reads, waits_for;
#define READ_LOCK	reads = reads | (1 << _pid)
#define READ_UNLOCK	reads = reads & ~(1 << _pid); waits_for = waits_for & ~(1 << _pid)

byte users[BASES];		/* batches of operations */
bit closed[BASES];

/* Ghosts */
bit freed[BASES], q_freed[QUEUES];
byte excused[BASES];		/* bits of work[] that were due when the clock was set back */
bit set_back;

hidden byte i, n, f, first;
hidden byte any;
#if GROUP
hidden byte user;
#endif

#define ACQUIRE(b)	lock[b] == 0 -> assert(!freed[b]); lock[b] = _pid + 1
#define RELEASE(b)	assert(lock[b] == _pid + 1 && !freed[b]); lock[b] = 0
#define PACE_WAIT	(rest > now[0])

/* When a base has work next, by its clock. */
inline first_work(b, r)
{
	r = 0;
	do
	:: r <= HORIZON && !(work[b] & (1 << r)) -> r++
	:: else -> break
	od;
	if
	:: r > HORIZON -> r = NEVER
	:: else
	fi
}

/* What is in a queue: bases, or the queues of a container's users */
#if GROUP
#define M_PLACE(n)	c_place[n]
#define M_AT(n)	c_at[n]
#else
#define M_PLACE(n)	place[n]
#define M_AT(n)	at[n]
#endif

/* tw_first_time() of a queue, from what is in it. any: some of that is LISTED. */
inline first_base(q, r)
{
	r = NEVER;
	any = 0;
	n = 0;
	do
	:: n == BASES -> break
	:: n < BASES && QUEUE(n) == q && M_PLACE(n) == TIMED ->
		if
		:: M_AT(n) < r -> r = M_AT(n)
		:: else
		fi;
		n++
	:: n < BASES && QUEUE(n) == q && M_PLACE(n) == LISTED -> any = 1; n++	/* unreached in a task */
	:: else -> n++
	od;
	n = 0
}

/* The same for a clock, from its queues. */
inline first_queue(c, r)
{
	r = NEVER;
	any = 0;
	n = 0;
	do
	:: n == QUEUES -> break
	:: n < QUEUES && q_place[n] == TIMED && TREE(n) == c ->
		if
		:: q_at[n] < r -> r = q_at[n]
		:: else
		fi;
		n++
	:: n < QUEUES && q_place[n] == LISTED && !q_deferred[n] -> any = 1; n++
	:: else -> n++
	od;
	n = 0
}

/* tw_entities_due(): one base; one queue */
inline bases_due(q)
{
	first_base(q, f);
	i = 0;
	do
	:: i == BASES -> break
	:: i < BASES && f <= now[CLOCK(q)] && QUEUE(i) == q && M_PLACE(i) == TIMED && M_AT(i) == f ->
		M_PLACE(i) = LISTED;
		M_AT(i) = 0;
		break
	:: else -> i++
	od;
	i = 0; f = 0
}

inline queues_due(c)
{
	first_queue(c, f);
	i = 0;
	do
	:: i == QUEUES -> break
	:: i < QUEUES && f <= now[c] && TREE(i) == c && q_place[i] == TIMED && q_at[i] == f ->
		assert(!q_freed[i]);
		q_place[i] = LISTED;
		q_deferred[i] = 0;
		q_at[i] = 0;
#if PAUSES
		q_paused[i] = 0;
#endif
		break
	:: else -> i++
	od;
	i = 0; f = 0
}

#if GROUP
/* tw_queue_settle() of a user's queue, in that of the container */
inline settle_user(b, time)
{
	assert(!freed[b]);
	c_place[b] = NOWHERE;
	c_at[b] = 0;
	if
	:: place[b] == LISTED || (place[b] == TIMED && at[b] <= time) -> c_place[b] = LISTED
	:: place[b] == TIMED && at[b] > time -> c_place[b] = TIMED; c_at[b] = at[b]
	:: else
	fi
}
#endif

/* tw_queue_settle() */
inline settle(q, deferred, time)
{
	assert(!q_freed[q]);
	first_base(q, first);
#ifdef SETTLE_FORGETS_TIMED
	first = NEVER;
#endif
	q_place[q] = NOWHERE;
	q_deferred[q] = 0;
	q_at[q] = 0;
#if PAUSES
	q_paused[q] = 0;
	if
	:: !any && first == NEVER -> q_until[q] = 0
	:: else
	fi;
#endif
	if
	:: any || first <= time -> q_place[q] = LISTED; q_deferred[q] = deferred /* unreached in a task */
	:: !any && first > time && first != NEVER -> q_place[q] = TIMED; q_at[q] = first
	:: else
	fi;
	first = 0
}

#if PAUSES
/* tw_queue_pause() */
inline pause(q)
{
	q_deferred[q] = 0;
	q_place[q] = TIMED;
	q_paused[q] = 1;
	q_at[q] = now[0] + 1;
	q_until[q] = now[0] + 1
}
#endif

/* tw_engine_program(); far: on another CPU than the engine's */
#ifdef RUNNING_IGNORED
#define RUNNING	0
#else
#define RUNNING	running
#endif
#ifdef NO_KICK
#define KICKS(far)	0
#else
#define KICKS(far)	(threaded && far)
#endif

/* tw_engine_kick() */
inline engine_kick()
{
	if
	:: kick				/* unreached on the engine's CPU, as what follows */
	:: else ->
#ifndef KICK_NOT_SET
		kick = 1;		/* unreached there */
#endif
#ifndef KICK_WITHOUT_WAKE
		awake = 1		/* unreached there */
#endif
	fi
}

inline program(far)
{
	i = 0;
	do
	:: i == CLOCKS || RUNNING -> break
	:: i < CLOCKS && !RUNNING ->
		first_queue(i, first);
		if
		:: i == 0 && any -> first = 0
		:: else
		fi;
		if
		:: first < c_programmed[i] && KICKS(far) ->	/* unreached on the engine's CPU */
			engine_kick();
			break
		:: first < c_programmed[i] && !KICKS(far) ->
			if
#ifndef PROGRAM_IGNORES_PACE
			:: PACE_WAIT && first <= now[i] -> first = now[i] + 1
			:: first == 0 && !PACE_WAIT -> first = now[i]
#else
			:: first == 0 -> first = now[i]
#endif
			:: else
			fi
		:: else
		fi;
		if
		:: first < c_programmed[i] ->
			/* Not back to back: the cost of a firing is not known before its end. */
			assert(first > now[i] || !(PACE_WAIT || running));
			c_programmed[i] = first;
			enqueued[i] = 1;
			expires[i] = first;
			away[i] = far
		:: else
		fi;
		i++
	od;
	i = 0; first = 0
}

/* tw_engine_start() */
inline engine_start(b, time, far)
{
	assert(!freed[b] && !q_freed[QUEUE(b)]);
	if
#ifdef START_TAKES_LISTED
	:: place[b] != REMOVED ->
#else
	:: place[b] == NOWHERE || place[b] == TIMED ->
#endif
		place[b] = TIMED;
		at[b] = time;
#if GROUP && !defined(START_WITHOUT_USER)
		if
		:: c_place[b] != LISTED -> settle_user(b, 0)
		:: else
		fi;
#endif
#ifndef START_WITHOUT_QUEUE
		if
#ifdef START_ENDS_PAUSE
		:: q_place[QUEUE(b)] != LISTED -> settle(QUEUE(b), 0, 0)
#else
		:: q_place[QUEUE(b)] != LISTED && !PAUSED(QUEUE(b)) -> settle(QUEUE(b), 0, 0)
#endif
		:: else
		fi;
#endif
#ifndef START_WITHOUT_PROGRAM
		program(far)
#endif
	:: else
	fi
}

/* The end of tw_engine_turn(): after run_base() */
inline again(b)
{
#if GROUP
	user = b;
#endif
	if
	:: b != NONE && time == 0 ->
		assert(!freed[b] && !q_freed[QUEUE(b)]);
		if
#ifdef AGAIN_IN_ANY_PLACE
		:: true ->
#else
		:: place[b] == NOWHERE || place[b] == TIMED ->
#endif
			at[b] = 0;
#ifndef AGAIN_NOT_LISTED
			place[b] = LISTED
#else
			place[b] = NOWHERE
#endif
		:: else
		fi
	:: else
	fi;
#if GROUP
	if
	:: user != NONE -> settle_user(user, now[0])
	:: else
	fi;
	user = 0;
#endif
	b = 0; time = 0
}

/* tw_cpu_program(), up to tw_engine_start() at @time; NEVER: it need not be started */
inline base_program(b)
{
	sooner[b] = 0;
	first_work(b, time);
	if
	:: wake_at[b] < time -> time = wake_at[b]
	:: else
	fi;
	if
	:: time < programmed[b] -> programmed[b] = time
	:: else -> time = NEVER
	fi
}

/* tw_cpu_tick(), tw_cpu_clock_set_back(): what is in the wheel comes sooner by the clock. */
inline tick(b)
{
	if
	:: now[CLOCK(QUEUE(b))] < cursor[b] ->
		i = cursor[b] - now[CLOCK(QUEUE(b))];
		work[b] = work[b] >> i;
		excused[b] = 0;
#ifndef NOT_SOONER_AFTER_SET_BACK
		sooner[b] = 1;
#endif
		if
		:: wake_at[b] != NEVER && wake_at[b] > now[CLOCK(QUEUE(b))] + 1 ->
			wake_at[b] = now[CLOCK(QUEUE(b))] + 1
		:: else
		fi;
		i = 0
	:: else
	fi;
	cursor[b] = now[CLOCK(QUEUE(b))]
}

/* tw_cpu_run(): a batch. At the end, @time is 0 if there is more to do now. */
inline run_base(b, far)
{
	d_step {
		ACQUIRE(b);
#ifndef PROGRAMMED_STAYS
		programmed[b] = NEVER;
#endif
		tick(b);
		if
		:: wake_at[b] <= cursor[b] -> wake_at[b] = NEVER
		:: else
		fi;
		first_work(b, time);
		if
		:: time <= cursor[b] ->
			work[b] = work[b] & ~(1 << time);
			excused[b] = excused[b] & ~(1 << time);
			first_work(b, time)
		:: else
		fi;
		if
		:: time <= cursor[b] -> programmed[b] = 0; time = 0
		:: else ->
#ifndef NO_PROGRAM_AFTER_BATCH
			base_program(b)
#else
			time = NEVER
#endif
		fi
	};
	d_step {
		engine == 0 ->
		if
		:: time == 0 || time == NEVER
		:: else -> engine_start(b, time, far); time = NEVER
		fi;
		RELEASE(b)
	}
}

/* Take any LISTED base of a queue for a turn; NONE: there is none. */
inline take_base(q, b)
{
#if PAUSES
	assert(now[0] >= q_until[q]);
#endif
	bases_due(q);
	b = 0;
	do
	:: b == BASES -> b = NONE; break
	:: b < BASES && QUEUE(b) == q && M_PLACE(b) == LISTED -> break
	:: b + QUEUES < BASES && QUEUE(b) == q && M_PLACE(b) == LISTED &&
	   M_PLACE((b + QUEUES) % BASES) == LISTED -> b++
	:: b < BASES && !(QUEUE(b) == q && M_PLACE(b) == LISTED) -> b++
	od;
#if GROUP
	/* The base of that user has work now, or was removed, or its time has been changed. */
	if
	:: b != NONE && !(place[b] == LISTED || (place[b] == TIMED && at[b] <= now[0])) ->
		settle_user(b, now[0]);
		b = NONE
	:: else
	fi;
#endif
	if
	:: b != NONE -> assert(!freed[b]); place[b] = NOWHERE
	:: else
	fi
}

/* Take any queue that is on a list. */
inline take_queue(q, deferred)
{
	q = 0;
	do
	:: q == QUEUES -> q = NONE; break
	:: q < QUEUES && q_place[q] == LISTED && q_deferred[q] == deferred ->
		if
		:: break
		:: QUEUES > 1 && q == 0 && q_place[1] == LISTED && q_deferred[1] == deferred ->
			q++
		fi
	:: else -> q++
	od
}

#ifdef KEEP_ENGINE_LOCK
#define UNLOCK_ENGINE	engine = _pid + 1
#define LOCK_ENGINE	assert(engine == _pid + 1); engine = 0
#else
#define UNLOCK_ENGINE	skip
#define LOCK_ENGINE	engine == 0
#endif

#define DEFERRED(q)	((q) < QUEUES && q_place[(q) % QUEUES] == LISTED && q_deferred[(q) % QUEUES])
#define ANY_DEFERRED	(DEFERRED(0) || DEFERRED(1))

/* Batches of operations. */
proctype task()
{
	byte ops, b, time, when;
	bit far;

	do
	:: ops == OPS -> break
	:: atomic { ops < OPS ->
		ops++;
		if
		:: far = 0
		:: ELSEWHERE -> far = 1
		fi;
		when = BEGIN;
		do
		:: when < HORIZON -> when++
		:: break
		od;
		do
		:: b < BASES - 1 -> b++
		:: break
		od
	   };
end_wait:
	   if
	   :: closed[b]
	   :: atomic { now[0] >= when && !closed[b] && lock[b] == 0 ->
		when = 0;
		users[b]++;
		ACQUIRE(b);
		tick(b);
		time = now[CLOCK(QUEUE(b))];
		if
		:: true ->			/* ADD: tw_wheel_open_slot() */
			if
			:: time++
			:: time = time + 2
			:: true
			fi;
			if
			:: time > HORIZON -> time = HORIZON
			:: else
			fi;
			first_work(b, f);
			if
#ifndef NOT_SOONER_WITH_WORK
			:: time < f -> sooner[b] = 1
#endif
			:: else
			fi;
			work[b] = work[b] | (1 << time);
			f = 0
#ifdef WAKE_AT
		:: wake_at[b] == NEVER ->	/* tw_events_need_wake() */
#ifndef NOT_SOONER_WITH_WAKE_AT
			sooner[b] = 1;
#endif
			wake_at[b] = time + 1
#endif
		fi;
		/* tw_cpu_end() */
		if
#ifndef NO_PROGRAM
		:: sooner[b] -> base_program(b)
#endif
		:: else -> time = NEVER
		fi;
#ifdef PROGRAM_AFTER_UNLOCK
		RELEASE(b)
#endif
	      };
	      atomic {
		engine == 0 ->
		if
		:: time == NEVER
		:: else -> engine_start(b, time, far)
		fi;
#ifndef PROGRAM_AFTER_UNLOCK
		RELEASE(b);
#endif
		users[b]--;
		time = 0
	      }
	   fi;
	   b = 0
	od
}

/* tw_engine_fire() */
proctype fire(byte c)
{
	byte q = NONE, b, time;
	bit stop, wake, far;
#ifdef WAKE_LOOKS_FIRST
	bit none;
#endif

end:
	do
	:: atomic {
		enqueued[c] && expires[c] <= now[c] ->
		enqueued[c] = 0;
		far = away[c];
		away[c] = 0;
		READ_LOCK
	   };
#ifdef WAKE_BEFORE_LISTED
		awake = 1;
#endif
		if
		:: atomic { engine == 0 && PACE_WAIT ->
#ifndef C_PROGRAMMED_STAYS
			c_programmed[c] = NEVER;
#endif
#ifndef EARLY_WITHOUT_PROGRAM
			program(far)
#endif
		   }
		:: atomic { engine == 0 && !PACE_WAIT ->
#ifndef C_PROGRAMMED_STAYS
			c_programmed[c] = NEVER;
#endif
			running++;
#ifdef WAKE_LOOKS_FIRST
			none = !ANY_DEFERRED;
#endif
			UNLOCK_ENGINE;
			goto turns
		   }
		fi;
		goto fired;
turns:
		/* tw_engine_turns(): each step begins and ends where the lock is dropped. */
		do
		:: atomic {
			LOCK_ENGINE;
			stop = 0;
			if
			:: q != NONE ->
				again(b);
				/* Either may be used up: first the quantum, then the budget. */
				if
#ifdef DEFER_WHILE_PARKED
				:: wake = 1; settle(q, 1, now[CLOCK(q)])
#else
				:: threaded ->
					wake = wake || !ANY_DEFERRED;
					settle(q, 1, now[CLOCK(q)])
#endif
#ifndef NO_SETTLE
				:: settle(q, 0, now[CLOCK(q)])
#else
				:: true
#endif
				fi;
				if
				:: stop = 1
				:: true
				fi
			:: else
			fi;
			/* tw_engine_next() */
			q = NONE;
			if
			:: !stop ->
				queues_due(0);
#if CLOCKS > 1
				queues_due(1);
#endif
				take_queue(q, 0)
			:: else
			fi;
			if
			:: q == NONE ->
				/* Depending on the cost, the pace may forbid another firing now. */
				if
				:: rest = now[0] + 1
				:: true
				fi;
				running--;
#ifndef NO_PROGRAM_AT_END
				program(far);
#endif
#ifdef WAKE_LOOKS_FIRST
				wake = none;
				none = 0;
#endif
				wake = wake && ANY_DEFERRED;
				break
			:: else -> take_base(q, b)
			fi;
			UNLOCK_ENGINE
		   };
		   if
		   :: b != NONE -> run_base(b, far)
		   :: else
		   fi
		od;
fired:
		atomic {
#if !defined(NO_WAKE) && !defined(WAKE_BEFORE_LISTED)
			if
			:: wake -> awake = 1; wake = 0
			:: else
			fi;
#endif
			READ_UNLOCK;
			stop = 0;
			far = 0
		}
	od
}

/* smpboot_thread_fn(), tw_thread_should_run() */
#ifdef KICK_IS_NO_WORK
#define SHOULD_RUN	ANY_DEFERRED
#else
#define SHOULD_RUN	(ANY_DEFERRED || kick)
#endif

/* tw_thread_kicked(), once the time has come */
#define SERVES_KICK	(kick && now[0] >= kick_next)

inline kicked()
{
	kick = 0;
	/* The next one may have to wait. */
	if
	:: kick_next = now[0] + 1
	:: kick_next = 0
	fi;
#ifndef KICKED_LEAVES_THEM
	i = 0;
	do
	:: i < CLOCKS -> c_programmed[i] = NEVER; i++
	:: else -> break
	od;
#endif
	program(0)
}

proctype thread()
{
	byte q, b, time;

end:
	do
	::
#ifdef LOOK_BEFORE_STATE
		if
		:: !should_park && !SHOULD_RUN ->
			awake = 0;
end_asleep1:		awake
		:: else
#else
		awake = 0;
		if
		:: !should_park && !SHOULD_RUN ->
end_asleep:		awake
		:: else -> awake = 1
#endif
		fi;
		if
		:: should_park ->
			/* tw_thread_park() */
			atomic {
				engine == 0 ->
				threaded = 0;
				kick = 0;
				q = 0;
				do
				:: q < QUEUES ->
#ifndef PARK_LEAVES_DEFERRED
					q_deferred[q] = 0;
#endif
					q++
				:: else -> q = 0; break
				od;
#ifndef PARK_WITHOUT_PROGRAM
				program(0)
#endif
			};
			parked = 1;
end_parked:		!should_park;
			/* tw_thread_unpark() */
			atomic {
				engine == 0 ->
				threaded = 1;
#ifndef UNPARK_WITHOUT_KICK
				kick = 1;
#endif
				parked = 0
			}
		:: else ->
			/* tw_thread_turns() */
turns:			do
			:: atomic {
				engine == 0;
				if
				:: SERVES_KICK -> kicked()
				:: else
				fi;
				take_queue(q, 1);
				if
				:: q == NONE ->
					q = 0;
					if
					:: kick -> sleep_until = kick_next
					:: else
					fi;
					break
#if PAUSES
				/* tw_queue_pause(), then tw_thread_turns() */
				:: q != NONE && pauses < PAUSES ->
					pauses++;
					pause(q);
#ifndef PAUSE_WITHOUT_PROGRAM
					program(0);
#endif
					q = 0;
					goto turns
#endif
				:: else -> take_base(q, b); READ_LOCK
				fi
			   };
turn:
			   if
			   :: b != NONE -> run_base(b, 0)
			   :: else
			   fi;
			   if
			   :: atomic {
				engine == 0;
				again(b);
				settle(q, 1, now[CLOCK(q)]);
				q = 0;
				/* tw_thread_quantum(): another turn in the same hold? */
				if
				:: ANY_DEFERRED ->
					take_queue(q, 1);
					take_base(q, b);
					goto turn
				:: true
				fi;
#ifndef THREAD_WITHOUT_PROGRAM
				program(0);
#endif
				READ_UNLOCK;
				/* The pace may be used up, which forbids firings, too. */
				if
				:: true
				:: sleep_until = now[0] + 1;
					if
					:: rest = sleep_until
					:: true
					fi;
					break
				fi
			   }
			   fi
			od;
			/* tw_thread_sleep() */
			do
			:: now[0] >= sleep_until -> break
			:: now[0] < sleep_until ->
#ifndef SLEEP_LOOKS_FIRST
				awake = 0;
#endif
				if
#ifdef SLEEP_IGNORES_KICK
				:: false
#else
				:: SERVES_KICK -> awake = 1; atomic { engine == 0; kicked() }
#endif
				:: else ->
#ifdef SLEEP_LOOKS_FIRST
					awake = 0;
#endif
end_sleeps:				awake || now[0] >= sleep_until
				fi
			od;
			awake = 1
		fi
	od
}

#ifdef HOTPLUG
/* A CPU goes offline and comes back: kthread_park(), kthread_unpark() */
proctype hotplug()
{
	byte when = BEGIN;

	do
	:: when < HORIZON -> when++
	:: break
	od;
end_wait:
	now[0] >= when;
	should_park = 1;
	awake = 1;
end_park:
	/* Nothing runs there any more; hrtimers_dead_cpu(). */
	atomic {
		parked && !(reads & (CLOCKS > 1 -> 6 : 2)) ->
		away[0] = enqueued[0];
#if CLOCKS > 1
		away[1] = enqueued[1]
#endif
	};
	if
	:: when < HORIZON -> when++
	:: true
	fi;
end_unpark:
	now[0] >= when;
	should_park = 0
}
#endif

#if CLOSES
/* tw_release(), tw_file_free() of one wheel */
proctype close(byte b)
{
	byte when = BEGIN;

	do
	:: when < HORIZON -> when++
	:: break
	od;
end_wait:
	atomic { now[0] >= when && users[b] == 0 -> closed[b] = 1; when = 0 };
	/* tw_engine_remove() */
	d_step {
		engine == 0 ->
#ifdef REMOVE_WITHOUT_REMOVED
		place[b] = NOWHERE;
#else
		place[b] = REMOVED;
#endif
		at[b] = 0;
#if GROUP && !defined(REMOVE_LEAVES_USER)
		settle_user(b, 0);
#endif
		first_base(QUEUE(b), f);
		if
#ifdef REMOVE_WITHOUT_QUEUE
		:: false
#elif defined(REMOVE_TAKES_DUE)
		:: q_place[QUEUE(b)] == TIMED || !any -> settle(QUEUE(b), 0, 0)
#elif defined(REMOVE_ENDS_PAUSE)
		:: q_place[QUEUE(b)] == TIMED || (!any && f == NEVER) -> settle(QUEUE(b), 0, 0)
#elif defined(REMOVE_LEAVES_PAUSED)
		:: !PAUSED(QUEUE(b)) && (q_place[QUEUE(b)] == TIMED || (!any && f == NEVER)) ->
			settle(QUEUE(b), 0, 0)
#else
		:: (q_place[QUEUE(b)] == TIMED && !PAUSED(QUEUE(b))) || (!any && f == NEVER) ->
			settle(QUEUE(b), 0, 0)
#endif
		:: else
		fi;
		first_queue(CLOCK(QUEUE(b)), f);
		if
#ifdef CANCEL_ALWAYS
		:: !(reads & (2 << CLOCK(QUEUE(b)))) ->
#else
		:: !any && f == NEVER && !(reads & (2 << CLOCK(QUEUE(b)))) ->
#endif
			enqueued[CLOCK(QUEUE(b))] = 0;
			expires[CLOCK(QUEUE(b))] = 0;
			c_programmed[CLOCK(QUEUE(b))] = NEVER
		:: else
		fi;
		f = 0
	};
	/* synchronize_rcu() */
	waits_for = waits_for | reads;
#ifndef FREE_WITHOUT_GRACE
	waits_for == 0;
#endif
	/* tw_engine_queue_put() */
	d_step {
#if GROUP
		assert(c_place[b] == NOWHERE);
#endif
		freed[b] = 1;
		assert(lock[b] == 0 && place[b] == REMOVED);
		work[b] = 0;
		wake_at[b] = NEVER;
		bases[QUEUE(b)]--;
		if
		:: bases[QUEUE(b)] == 0 ->
			assert(q_place[QUEUE(b)] == NOWHERE);
			q_freed[QUEUE(b)] = 1
		:: else
		fi
	}
}
#endif

/* The thread sleeps until it may serve a kick. */
#define KICK_WAITS	(kick && threaded && kick_next > now[0] && sleep_until > now[0])

/* Must hold when no process can make a step. */
inline check()
{
	assert(engine == 0 && running == 0 && reads == 0);
	i = 0;
	do
	:: i == BASES -> break
	:: i < BASES ->
		assert(lock[i] == 0);
		/* If a base is in a tree or on a list, so is its queue. */
#if GROUP
		assert(place[i] != LISTED || c_place[i] == LISTED);
		assert(place[i] != TIMED || c_place[i] == LISTED ||
		       (c_place[i] == TIMED && c_at[i] <= at[i]));
#endif
		assert(M_PLACE(i) != LISTED || q_place[QUEUE(i)] == LISTED || PAUSED(QUEUE(i)));
		assert(M_PLACE(i) != TIMED || q_place[QUEUE(i)] == LISTED || PAUSED(QUEUE(i)) ||
		       (q_place[QUEUE(i)] == TIMED && q_at[QUEUE(i)] <= M_AT(i)));
		/* A base with work is listed or waits for its time; due work waits for the pace. */
		first_work(i, f);
		if
		:: wake_at[i] < f -> f = wake_at[i]
		:: else
		fi;
		assert(closed[i] || f == NEVER || place[i] == LISTED ||
		       (place[i] == TIMED && at[i] <= f) || excused[i]);
		if
		:: !closed[i] && f <= now[CLOCK(QUEUE(i))] && !(excused[i] & (1 << f)) ->
			assert((DEFERRED(QUEUE(i)) && threaded && sleep_until > now[0]) ||
			       (q_place[QUEUE(i)] == LISTED && !q_deferred[QUEUE(i)] &&
				PACE_WAIT && enqueued[0] && expires[0] <= rest) ||
			       (q_place[QUEUE(i)] == TIMED && PACE_WAIT &&
				enqueued[CLOCK(QUEUE(i))] &&
				expires[CLOCK(QUEUE(i))] <= now[CLOCK(QUEUE(i))] + 1) ||
			       (PAUSED(QUEUE(i)) && enqueued[0] && expires[0] <= now[0] + 1) ||
			       KICK_WAITS)
		:: else
		fi;
		i++
	od;
	i = 0;
	do
	:: i == QUEUES -> break
	:: i < QUEUES ->
		/* A queue waits for an hrtimer that was started, or for the thread. */
		assert(q_place[i] != LISTED || q_deferred[i] || enqueued[0] || KICK_WAITS);
		assert(!DEFERRED(i) || (threaded && sleep_until > now[0]));
		assert(q_place[i] != TIMED || enqueued[TREE(i)] || KICK_WAITS);
		/* A queue without a base that waits is in no place. */
		first_base(i, f);
		assert(q_place[i] == NOWHERE || any || f != NEVER);
		i++
	od;
	/*
	 * After a kick the hrtimers were started on the engine's CPU, or the thread sleeps until
	 * it may do that.
	 */
	assert(!kick || KICK_WAITS);
	i = 0;
	do
	:: i == CLOCKS -> break
	:: i < CLOCKS ->
		assert(!away[i] || c_programmed[i] == NEVER || !threaded || KICK_WAITS);
		i++
	od;
	i = 0; f = 0
}

proctype clock()
{
end:
	do
	:: timeout ->
		d_step {
			check();
			now[0]++;
#if CLOCKS > 1
			now[1]++
#endif
		};
		if
		:: now[0] > HORIZON -> break
		:: else
		fi
#ifdef SET_BACK
	:: atomic {
		!set_back && now[1] > BEGIN ->
		i = 0;
		do
		:: i == BASES -> break
		:: i < BASES && CLOCK(QUEUE(i)) == 1 ->
			excused[i] = work[i] & ((1 << (now[1] + 1)) - 1);
			i++
		:: else -> i++
		od;
		i = 0;
		set_back = 1;
		now[1]--
	   }
#endif
	od
}

init
{
	byte b, time;

	atomic {
		do
		:: b < BASES ->
			bases[QUEUE(b)]++;
			/* Work at once, soon, at both times, or none. */
			if
			:: work[b] = 1 << BEGIN
			:: work[b] = 2 << BEGIN
			:: work[b] = 3 << BEGIN
			:: true
			fi;
			/* The engine is started for the first of it. */
			if
			:: work[b] ->
				time = (work[b] & (1 << BEGIN) -> BEGIN : BEGIN + 1);
				programmed[b] = time;
				place[b] = TIMED;
				at[b] = time;
#if GROUP
				c_place[b] = TIMED;
				c_at[b] = time;
#endif
				q_place[QUEUE(b)] = TIMED;
				if
				:: q_at[QUEUE(b)] == 0 || time < q_at[QUEUE(b)] -> q_at[QUEUE(b)] = time
				:: else
				fi;
				if
				:: time < c_programmed[CLOCK(QUEUE(b))] ->
					c_programmed[CLOCK(QUEUE(b))] = time;
					expires[CLOCK(QUEUE(b))] = time;
					enqueued[CLOCK(QUEUE(b))] = 1
				:: else
				fi
			:: else
			fi;
			b++
		:: else -> break
		od;
		b = 0;
		time = 0;
		/* First, with _pid 1 and 2: close() looks in reads whether a callback is running. */
		run fire(0);
#if CLOCKS > 1
		run fire(1);
#endif
		run thread();
		run task();
#if TASKS > 1
		run task();
#endif
#ifdef HOTPLUG
		run hotplug();
#endif
#if CLOSES
		run close(BASES - 1);
#endif
#if CLOSES > 1
		run close(BASES - 2);
#endif
		run clock()
	}
}
