/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is each closed wheel freed, once, and its user after the last one?
 * module/file.c: tw_open(), tw_release(), tw_file_free_closed(), tw_file_exit();
 * user.c. README.md maps names here to names there.
 *
 * Tasks of one uid open wheels, each of which is charged 1, and close them. A user (struct tw_user)
 * is created by open and freed with its last wheel, so there may be several, one after the other,
 * each with a worker. At the end the module is unloaded.
 *
 * What is done under tw_user.lock, or under the lock of the array of users, is one step. Grace
 * periods are in engine.pml.
 */
#ifndef TASKS
#define TASKS	3
#endif
#ifndef ROUNDS		/* number of wheels of each task, one after the other */
#define ROUNDS	1
#endif
#ifndef CAP
#define CAP	1
#endif
#define WHEELS	(TASKS * ROUNDS)
#define USERS	WHEELS
#define NONE	15

/* Users */
byte current = NONE;		/* tw_users: the user that has the uid */
byte made;
byte files[USERS];
byte memory[USERS];
byte closing[USERS];
byte freed[USERS];
chan closed[USERS] = [WHEELS] of { byte };	/* wheels not freed yet */
byte waiting[USERS];		/* how many of them are still in the user's list */
bit queued[USERS];		/* the work is pending */
bit busy[USERS];		/* the work is running */

byte user_of[WHEELS];
byte tasks = TASKS;

/* Ghosts */
bit gone[USERS];
byte charged;			/* a bit for each wheel that is charged */
byte given;			/* a bit for each wheel whose close() has returned */
bit unloaded;

#define BIT(x, n)	(((x) >> (n)) & 1)
#define COUNT(x)	(BIT(x, 0) + BIT(x, 1) + BIT(x, 2) + BIT(x, 3))
#define ALIVE(u)	assert(!gone[u])

/* tw_user_put() */
inline put(u)
{
#ifdef ERASE_LATE
	atomic { ALIVE(u); files[u]--; left = files[u] };
	if
	:: left == 0 -> atomic { current = NONE; gone[u] = 1 }
	:: else
	fi
#else
	atomic {
		ALIVE(u);
		files[u]--;
		if
		:: files[u] == 0 ->
			assert(memory[u] == 0 && closing[u] == 0 && len(closed[u]) == 0);
			current = NONE;
			gone[u] = 1
		:: else
		fi
	}
#endif
}

/* tw_user_get() */
inline get(u)
{
	do
#ifdef FIND_WITHOUT_LOCK
	:: atomic { current != NONE -> u = current };
	   atomic { ALIVE(u); files[u]++ };
	   break
#else
	:: atomic { current != NONE -> u = current; files[u]++ };
	   break
#endif
	:: current == NONE ->
		if
#ifdef STORE_WITHOUT_LOOK
		:: atomic {
#else
		:: atomic { current == NONE ->
#endif
			u = made;
			made++;
			files[u] = 1;
			current = u
		   };
		   break
#ifndef STORE_WITHOUT_LOOK
		:: current != NONE
#endif
		fi
	od
}

/*
 * tw_user_wait(). Afterwards nothing is charged for the wheels that were closed before, if more
 * than half of the cap was charged.
 */
inline wait_closed(u)
{
	atomic {
		ALIVE(u);
		last = freed[u];
		if
		:: 2 * memory[u] > CAP ->
#ifdef WAIT_FOR_ONE
			last = last + (closing[u] > 0);
#elif !defined(WAIT_FOR_NONE)
			last = last + closing[u];
#endif
			before = given & charged
		:: else
		fi
	};
	atomic { freed[u] >= last -> ALIVE(u); assert(!(before & charged)); last = 0; before = 0 }
}

/* tw_user_charge() */
inline charge(u, wheel)
{
	atomic {
		ALIVE(u);
		if
		:: memory[u] < CAP ->
			memory[u]++;
			charged = charged | (1 << wheel);
			/* The cap is that of the uid, however many users there are. */
			assert(COUNT(charged) <= CAP);
			fits = 1
		:: else
		fi
	}
}

proctype task(byte wheel)
{
	byte round, u, before, last, left;
	bit fits, first;

	do
	:: round == ROUNDS -> break
	:: round < ROUNDS ->
		/* tw_open() */
		get(u);
		wait_closed(u);
		charge(u, wheel);
		if
		:: fits ->
			fits = 0;
			user_of[wheel] = u;
			/* tw_release(), tw_user_queue_closed() */
#ifdef QUEUE_FIRST
			queued[u] = 1;
#endif
			atomic {
				ALIVE(u);
				first = waiting[u] == 0;
				waiting[u]++;
				closed[u]!wheel;
#ifndef CLOSING_LATE
				closing[u]++
#endif
			};
			if
#ifdef QUEUE_ALWAYS
			:: queued[u] = 1
#elif defined(QUEUE_UNLESS_BUSY)
			:: first && !busy[u] -> queued[u] = 1
			:: else
#elif defined(QUEUE_FIRST)
			:: true
#else
			:: first -> queued[u] = 1
			:: else
#endif
			fi;
			atomic { first = 0; given = given | (1 << wheel) }
		:: else -> put(u)
		fi;
		atomic { u = 0; wheel++; round++ }
	od;
	tasks--
}

/* tw_file_free_closed() of one user */
proctype worker(byte u)
{
	byte n, wheel, left;
#ifdef LAST_FIRST
	byte i;
#endif

end:
	do
	:: atomic { queued[u] -> assert(!unloaded); queued[u] = 0; busy[u] = 1 };
	   /* tw_user_take_closed() */
	   atomic {
		ALIVE(u);
#ifdef TAKE_ONE
		n = 1;
#else
		n = waiting[u];
#endif
#ifdef CLOSING_LATE
		closing[u] = closing[u] + n;
#endif
		waiting[u] = waiting[u] - n
	   };
	   do
	   :: n == 0 -> break
	   :: else ->
		/* tw_file_free() */
		atomic {
			assert(len(closed[u]) >= n + waiting[u]);
			closed[u]?wheel;
#ifdef LAST_FIRST
			i = 1;
			do
			:: i < n -> closed[u]!wheel; closed[u]?wheel; i++
			:: else -> i = 0; break
			od;
#endif
			n--
		};
#ifdef PUT_FIRST
		put(u);
#endif
#ifdef FREED_BEFORE_UNCHARGE
		atomic { ALIVE(u); closing[u]--; freed[u]++ };
#endif
		atomic {
			ALIVE(u);
			assert(charged & (1 << wheel));
			memory[u]--;
			charged = charged & ~(1 << wheel);
			wheel = 0
		};
#ifndef FREED_BEFORE_UNCHARGE
		atomic { ALIVE(u); closing[u]--; freed[u]++ };
#endif
#ifndef PUT_FIRST
		put(u);
#endif
	   od;
	   busy[u] = 0
	od
}

/* tw_exit(): each open wheel holds a reference to the module. */
proctype unload()
{
	byte u;

	tasks == 0;
#ifndef NO_DRAIN
	/* destroy_workqueue() */
	do
	:: u < USERS -> atomic { !queued[u] && !busy[u] -> u++ }
	:: else -> break
	od;
#endif
	unloaded = 1;
	assert(charged == 0 && current == NONE)
}

init
{
	byte n;

	atomic {
		do
		:: n < TASKS -> run task(n * ROUNDS); n++
		:: else -> break
		od;
		n = 0;
		do
		:: n < USERS -> run worker(n); n++
		:: else -> break
		od;
		run unload()
	}
}
