/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is a part's hrtimer started whenever there is something to wait for?
 * module/run.h: tw_cpu_end(), tw_cpu_tick(); cpu.c: tw_cpu_program(), tw_cpu_fire(),
 * tw_cpu_set_back(); slots.h: tw_place(); events.c: tw_events_more().
 *
 * One part. Task 0 runs on its CPU; task 1 is a run on another CPU that has no memory
 * for a part of its own (tw_cpu_any()), so that both use this part and start its hrtimer;
 * hrtimer_start() then moves it, but not while its callback runs. Each task does OPS
 * runs: arm one for now + 0 to 2, take one out, or let a due one arrive that sets
 * @wake_at (wake-up batching).
 *
 * Time goes on only when nobody has to run: no hrtimer has expired, no callback and no run
 * is under way. So whatever is late is late by design, or forgotten. The clock may be
 * set back once (CLOCK_REALTIME); timers that were due then are excused until the pass that
 * they wait for.
 *
 * A slot of the wheel is a unit of time; a pass handles one timer, so that two make
 * it pause for one unit.
 */
#ifndef OPS
#define OPS	2
#endif
#define HORIZON	5
#define NEVER	15

byte now = 2;
byte pending[HORIZON + 1];	/* timers by deadline */
byte cursor = 2;		/* the wheel's time: never goes back */
byte wake_at = NEVER;
bit sooner;			/* there may be something to do before @programmed */
byte programmed = NEVER;
bit passing;
byte lock;

bit enqueued;			/* the hrtimer */
byte expires;
bit running;			/* its callback */

byte runs;			/* under way */
bit set_back;
byte excused[HORIZON + 1];	/* ghosts: of @pending; when a pause ends */
byte pause_ends;

#define LOCK		atomic { lock == 0 -> lock = _pid + 1 }
#define UNLOCK		d_step { assert(lock == _pid + 1); lock = 0 }

/* When the wheel has work to do: its first slot, in the clock's time. */
inline work(at)
{
	at = 0;
	do
	:: at <= HORIZON && pending[at] == 0 -> at++
	:: else -> break
	od;
	if
	:: at > HORIZON -> at = NEVER
	:: else
	fi
}

/* One of the timers with deadline @d is gone. */
inline took(d)
{
	d_step {
		pending[d]--;
		if
		:: excused[d] -> excused[d]--
		:: else
		fi
	}
}

/* hrtimer_start() */
#define START(at)	programmed = at; enqueued = 1; expires = at

inline program()
{
	d_step {
		sooner = 0;
		work(at);
		if
		:: wake_at < at -> at = wake_at
		:: else
		fi
	};
	if
#ifdef PROGRAM_WHILE_PASSING
	:: at < programmed -> d_step { START(at) }
#else
	:: at < programmed && !passing -> d_step { START(at) }
#endif
	:: else
	fi;
	at = 0
}

/* tw_cpu_tick(): the clock was set back */
inline tick(time)
{
	d_step {
		time = now;
		if
		:: now + 1 < cursor ->
			cursor = now + 1;
#ifndef NOT_SOONER_AFTER_SET_BACK
			sooner = 1;
#endif
#ifndef PAUSE_AS_IT_WAS
			if
			:: programmed != NEVER -> passing = 0; pause_ends = 0
			:: else
			fi
#endif
		:: now + 1 >= cursor -> cursor = now + 1
		fi
	}
}

proctype task()
{
	byte ops, d, at;

end:
	do
	:: ops == OPS -> break
	:: atomic { ops < OPS && lock == 0 -> lock = _pid + 1; runs++; ops++ };
		tick(d);
		if
		:: true ->			/* ADD */
			if
			:: d++
			:: d = d + 2
			:: true
			fi;
			if
			:: d > HORIZON -> d = HORIZON
			:: else
			fi;
			d_step {
				work(at);
				if
#ifndef NOT_SOONER_WITH_WORK
				:: d < at -> sooner = 1
#endif
				:: else
				fi;
				at = 0;
				pending[d]++
			}
		:: true ->			/* REMOVE: the hrtimer stays */
			work(d);
			if
			:: d == NEVER
			:: d != NEVER -> took(d)
			:: d != NEVER && pending[HORIZON] -> d = HORIZON; took(d)
			fi
		:: wake_at == NEVER ->
#ifndef NOT_SOONER_WITH_WAKE_AT
			sooner = 1;
#endif
			wake_at = (d < HORIZON -> d + 1 : HORIZON)
		fi;
		d = 0;
		/* tw_cpu_end() */
#ifdef PROGRAM_AFTER_UNLOCK
		UNLOCK;
		program();
#else
		if
#ifndef NO_PROGRAM
		:: sooner -> program()
#endif
		:: else
		fi;
		UNLOCK;
#endif
		runs--
	od;
}

/* The hrtimer's callback: tw_cpu_fire() */
proctype fire()
{
	byte pieces, d, at;
	bit more;

end:
	do
	:: atomic { enqueued && expires <= now -> enqueued = 0; running = 1 };
		LOCK;
		/* Between two passes tasks have their share of the CPU. */
		d_step {
			assert(now >= pause_ends);
			pause_ends = 0;
#ifndef PROGRAMMED_STAYS
			programmed = NEVER;
#endif
			passing = 1;
			if
			:: wake_at <= now -> wake_at = NEVER
			:: else
			fi
		};
		pieces = 0;
		do
		:: pieces++;
			tick(d);
			work(d);
			if
			:: d <= now -> took(d)
			:: else
			fi;
			work(d);
			more = (d <= now);
			if
			:: !more || pieces == 2 -> break
			:: else
			fi;
			UNLOCK;
			LOCK
		od;
#ifndef PASSING_STAYS
		passing = more;
#endif
		if
#ifndef NO_RESUME
		:: more -> d_step { START(now + 1); pause_ends = now + 1 }
#else
		:: more
#endif
		:: !more ->
#ifndef NO_PROGRAM_AFTER_PASS
			program()
#else
			skip
#endif
		fi;
		d_step { d = 0; pieces = 0; more = 0 };
		UNLOCK;
		running = 0
	od
}

proctype clock()
{
	byte d;

end:
	do
	:: atomic {
		now < HORIZON && runs == 0 && !running && !(enqueued && expires <= now) ->
		/* What is due has been handled, or a pass goes on at the next tick. */
		d = 0;
		do
		:: d <= now ->
			assert(pending[d] <= excused[d] ||
			       (passing && enqueued && expires == now + 1));
			d++
		:: else -> break
		od;
		assert(wake_at > now || (passing && enqueued && expires == now + 1));
		d = 0;
		now++
	   }
	:: atomic {
		!set_back && now > 2 ->
		d = 0;
		do
		:: d <= now -> excused[d] = pending[d]; d++
		:: else -> break
		od;
		d = 0;
		set_back = 1;
		pause_ends = 0;
		now = now - 2
	   }
	od
}

init
{
	atomic {
		run task();
		run task();
		run fire();
		run clock()
	}
}
