/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is somebody always awake, or about to be woken, while an event waits?
 * module/events.c: tw_events_add(), tw_events_wake_timeout(), tw_events_wake(),
 * tw_events_read(); file.c: tw_read_iter(), tw_poll(); and the kernel's wait queue.
 *
 * READERS block in read with a buffer for one event; after each event they may leave, fail or
 * read again. The last one may get a signal. With POLL, reader 0 polls. PRODUCERS (batches of
 * operations and of expiries) each queue EVENTS events, and wake readers once WAKE_EVENTS wait or
 * when wake_at has come.
 *
 * What is done under the wait queue's own lock is one step here.
 *
 * Without a full barrier a store may become visible after a later load. The effect is that of a
 * program that does the two in the other order, and that is what the mutants NO_BARRIER_* do.
 */
#ifndef READERS
#define READERS	2
#endif
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef EVENTS
#define EVENTS	2
#endif
#ifndef WAKE_EVENTS
#define WAKE_EVENTS 1
#endif

byte count;			/* tw_events.due.count */
byte woken;
bit wake_set;
bit wake_at;			/* set in some base; it will come */
byte events;			/* lock */
bit queued[READERS];		/* is in the wait queue */
bit asleep[READERS];		/* its state is not TASK_RUNNING */
bit signalled[READERS];
byte delivered;

#define LOCK(l)		atomic { l == 0 -> l = _pid + 1 }
#define UNLOCK(l)	d_step { assert(l == _pid + 1); l = 0 }

#ifdef POLL
#define EXCLUSIVE(i)	((i) != 0)
#else
#define EXCLUSIVE(i)	true
#endif

/* wq_has_sleeper(), after its barrier */
#define LOOK_FOR_SLEEPER d_step { i = 0; \
			do :: i < READERS && !queued[i] -> i++ :: else -> break od }

/* wake_up_interruptible_poll(): all pollers and one exclusive sleeper */
inline wake_up()
{
	if
	:: i < READERS ->
		d_step {
			i = 0;
			do
			:: i < READERS ->
				if
				:: queued[i] ->
					queued[i] = 0;
					asleep[i] = 0;
					if
					:: EXCLUSIVE(i) -> break
					:: else
					fi
				:: else
				fi;
				i++
			:: else -> break
			od;
			i = 0
		}
	:: else -> i = 0
	fi
}

proctype producer()
{
	byte i, left;
	bit wake;

	left = EVENTS;
	do
	:: left == 0 -> break
	:: left > 0 ->
		left--;
		/* tw_events_add() */
		LOCK(events);
#ifdef NO_BARRIER_IN_WAKER
		LOOK_FOR_SLEEPER;
#endif
		d_step {
			if
			:: woken > count -> woken = count
			:: else
			fi;
			count++;
			wake = (count - woken >= WAKE_EVENTS);
			if
			:: wake -> woken = count
#ifndef NO_WAKE_AT
			:: !wake && !wake_set -> wake_set = 1; wake_at = 1
#endif
			:: else
			fi
		};
		UNLOCK(events);
		/* tw_events_wake() */
		if
		:: wake ->
#ifndef NO_BARRIER_IN_WAKER
			LOOK_FOR_SLEEPER;
#endif
			wake_up()
		:: else
		fi;
		i = 0;
		wake = 0
	od
}

/* The hrtimer fires at wake_at: tw_events_wake_timeout() */
proctype wake_now()
{
	byte i;
	bit wake;

end:
	do
	:: wake_at ->
		wake_at = 0;
		LOCK(events);
#ifndef WAKE_SET_LATE
		wake_set = 0;
#endif
		woken = count;
		wake = (count != 0);
		UNLOCK(events);
#ifdef WAKE_SET_LATE
		wake_set = 0;
#endif
		if
		:: wake -> LOOK_FOR_SLEEPER; wake_up()
		:: else
		fi;
		i = 0;
		wake = 0
	od
}

proctype reader(byte me)
{
	byte i;
	bit done, failed, interrupted, seen;

again:	/* tw_events_read() */
	if
	:: count == 0 -> goto wait
	:: else
	fi;
	LOCK(events);
	if
	:: count > 0 -> d_step { count--; delivered++ }; done = 1
	:: count == 0
	:: failed = 1			/* EFAULT, ENOMEM: nothing was taken */
	fi;
	UNLOCK(events);
#ifndef NO_PASS_ON
#ifdef NO_PASS_ON_AFTER_ERROR
	if
	:: done && count -> LOOK_FOR_SLEEPER; wake_up()
#else
	if
	:: (done || failed) && count -> LOOK_FOR_SLEEPER; wake_up()
#endif
	:: else
	fi;
	i = 0;
#endif
	if
	:: done || failed -> goto gone
	:: !failed
	fi;
	done = 0;
	goto again;

wait:	/* wait_event_interruptible_exclusive(); poll */
	if
	:: count > 0 && EXCLUSIVE(me) -> goto again
	:: else
	fi;
prepare: /* prepare_to_wait_event() */
	skip;
#ifdef NO_BARRIER_IN_SLEEPER
	seen = (count > 0);
#endif
	d_step {
		if
		:: signalled[me] -> queued[me] = 0; interrupted = 1
		:: else -> queued[me] = 1; asleep[me] = 1
		fi
	};
#ifndef NO_BARRIER_IN_SLEEPER
	seen = (count > 0);
#endif
	if
	:: seen ->
		/* finish_wait() */
		seen = 0;
		interrupted = 0;
		asleep[me] = 0;
		queued[me] = 0;
		goto again
	:: !seen && interrupted -> goto gone
	:: else
	fi;
	/* schedule() */
end:
	!asleep[me] || signalled[me];
	goto prepare;

gone:
	asleep[me] = 0;
	queued[me] = 0
}

/* When no process can make a step, no reader sleeps while an event waits. */
proctype judge()
{
	byte i;

	timeout;
	do
	:: i < READERS ->
		assert(count == 0 || !asleep[i]);
		i++
	:: else -> break
	od;
	assert(count + delivered == PRODUCERS * EVENTS && !events && !wake_at)
}

init
{
	atomic {
		run producer();
#if PRODUCERS > 1
		run producer();
#endif
		run wake_now();
		run reader(0);
		run reader(1);
#if READERS > 2
		run reader(2);
#endif
		run judge()
	}
	if
	:: signalled[READERS - 1] = 1
	:: true
	fi
}
