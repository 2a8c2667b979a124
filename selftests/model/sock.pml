/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is each connection that a timer watches let go of, once, and by whom; is none forgotten; does the
 * worker leave closed wheels alone?
 * module/sock.c: tw_sock_visit(), tw_sock_end(), tw_sock_kick(), tw_sock_work(), tw_sock_handle(),
 * tw_sock_settle(), tw_held_round(), tw_held_purge(), tw_sock_sweep(), tw_sock_quiesce(),
 * tw_sock_free_all(); file.c: tw_file_free_closed().
 * README.md maps names here to names there.
 *
 * Wheels of one user, each with one timer. Calls move, remove, replace and read it. The engine
 * visits it. The user's worker decides about connections that were idle, aborts them, and lets go
 * of those whose timer has ended, and of closed sockets. Then the wheels are closed (CLOSES), or
 * stay.
 *
 * What is done under the locks of a timer is one step. When a connection was idle, and whether it
 * has ended, is chosen: the stamps of TCP are not modelled.
 */
#ifndef WHEELS
#define WHEELS	1
#endif
#ifndef OPS		/* calls of each wheel */
#define OPS	2
#endif
#ifndef VISITS		/* visits of each wheel, if it is not closed */
#define VISITS	2
#endif
#ifndef CLOSES
#define CLOSES	0
#endif
#define MOST	(OPS + 1)	/* connections of a wheel, one after the other */
#define SOCKS	(WHEELS * MOST)

mtype = { FREE, PENDING, PARKED, DUE };

/* Timers: struct tw_timer */
mtype timer[WHEELS] = FREE;
byte sock[WHEELS];		/* timer.sock */

/* Connections: struct tw_sock */
bit queued[SOCKS];		/* TW_SOCK_QUEUED */
bit ended[SOCKS];		/* TW_SOCK_ENDED */
bit let_go[SOCKS];		/* tw_sock.sk is NULL */
bit held[SOCKS];		/* in tw_held.tree: a task holds the lock of the socket */

/* Wheels: struct tw_socks */
chan todo[WHEELS] = [MOST] of { byte };
bit kicked[WHEELS];
bit closed[WHEELS];

/* The user and the worker */
chan files = [WHEELS] of { byte };	/* tw_user.sock_files */
bit pending;			/* the work is queued */
bit running;
bit purge;			/* tw_held.purge */
bit asked[WHEELS];		/* queued by tw_sock_quiesce() of this wheel... */
bit serving[WHEELS];		/* the run that takes that has begun... */
bit served[WHEELS];		/* and has ended: flush_work() returns */

byte calls = WHEELS;		/* programs that go on */
byte visits = WHEELS;		/* engines that go on */
bit quiet[WHEELS];		/* a grace period has passed since the close */

/* Ghosts */
byte made;			/* bits: tw_socks that exist, or did */
byte freed;
byte gone;			/* wheels that were freed */
bit aborting[SOCKS];		/* the connection was aborted */

#define BIT(x, n)	(((x) >> (n)) & 1)
#define ALIVE(s)	assert(BIT(made, s) && !BIT(freed, s))
#define WHEEL(w)	assert(!BIT(gone, w))

/* tw_sock_queue(); in a step of the caller */
inline queue(w, s, flag)
{
	ALIVE(s);
	ended[s] = ended[s] | flag;
	if
	:: !queued[s] -> assert(nfull(todo[w])); queued[s] = 1; todo[w]!s
	:: else
	fi
}

/* tw_sock_kick() */
inline kick(w)
{
	atomic { WHEEL(w); was = kicked[w]; kicked[w] = 1 };
	if
#ifdef QUEUE_FIRST
	:: !was -> pending = 1; files!w
#else
	:: !was -> files!w; pending = 1
#endif
	:: else
	fi
}

/* tw_sock_drop(), in a step of the caller */
inline drop(s)
{
	ALIVE(s);
	assert(!held[s]);
	freed = freed | (1 << (s))
}

/* tw_sock_end(), in a step of the caller */
inline end_sock(w)
{
#ifdef END_DROPS
	if
	:: !queued[sock[w]] -> drop(sock[w])
	:: else -> queue(w, sock[w], 1)
	fi;
#elif defined(END_NOT_QUEUED)
	ended[sock[w]] = 1;
#else
	queue(w, sock[w], 1);
#endif
	timer[w] = FREE
}

/* The calls of a wheel's program, and its close */
proctype program(byte w)
{
	byte n, s = w * MOST;
	bit was, socks;

	/* ADD_SOCKET */
	atomic { made = made | (1 << s); sock[w] = s; timer[w] = PENDING; s++ };
	do
	:: n == OPS -> break
	:: n < OPS ->
		atomic {
			if
			:: timer[w] != FREE -> end_sock(w); socks = 1		/* REMOVE */
			:: timer[w] == DUE -> end_sock(w); socks = 1		/* read */
			:: timer[w] != FREE -> timer[w] = PENDING		/* MOVE */
			:: if							/* ADD_SOCKET */
			   :: timer[w] != FREE -> end_sock(w); socks = 1
			   :: else
			   fi;
			   made = made | (1 << s);
			   sock[w] = s;
			   timer[w] = PENDING;
			   s++
			:: true
			fi;
			n++
		};
		if
		:: socks -> socks = 0; kick(w)
		:: else
		fi
	od;
#if CLOSES
	/* tw_release() */
	closed[w] = 1;
#endif
	calls--
}

/* The engine: tw_visit(), tw_cpu_batch() */
proctype engine(byte w)
{
	byte n;
	bit was;

	do
#if CLOSES
	:: closed[w] -> break
#else
	:: n == VISITS -> break
#endif
	:: atomic { timer[w] == PENDING && (CLOSES || n < VISITS) ->
		WHEEL(w);
		queue(w, sock[w], 0);
		timer[w] = PARKED;
		n = n + !CLOSES
	   };
#ifndef VISIT_WITHOUT_KICK
	   kick(w)
#endif
#if !CLOSES
	:: calls == 0 && timer[w] != PENDING -> break
#endif
	od;
	quiet[w] = 1;
	visits--
}

/* tw_sock_let_go() of a timer whose socket may have been closed; of the first wheel only */
inline sweep(w)
{
	atomic {
		if
#ifdef LET_GO_HELD
		:: w == 0 && timer[w] != FREE -> ALIVE(sock[w]); let_go[sock[w]] = 1
#else
		:: w == 0 && timer[w] != FREE && !held[sock[w]] ->
			ALIVE(sock[w]);
			let_go[sock[w]] = 1
#endif
		:: true
		fi
	}
}

/* tw_sock_try(), then tw_held_add() or tw_held_remove() */
inline try(w)
{
	/* tw_sock_settle(), tw_sock_decide() */
	atomic {
		WHEEL(w);
		ALIVE(s);
		if
#ifdef DECIDE_FOR_ANY
		:: timer[w] == PARKED ->
#else
		:: timer[w] == PARKED && sock[w] == s ->
#endif
			assert(sock[w] == s && !ended[s]);
			if
			:: timer[w] = DUE
			:: !aborting[s] && !let_go[s] -> timer[w] = PENDING
			:: !aborting[s] && !let_go[s] -> abort = 1
			fi
		:: else
		fi
	};
	if
	:: abort ->
		abort = 0;
		/* tw_tcp_abort(); or a task holds the lock of the socket */
		atomic {
			ALIVE(s);
			assert(!aborting[s] && !let_go[s]);
			if
			:: aborting[s] = 1
			:: w == 0		/* of the first wheel only */
			fi
		};
		if
		:: aborting[s] ->
			atomic {
				WHEEL(w);
				ALIVE(s);
				if
#ifdef SETTLE_WITHOUT_LOOK
				:: true ->
#else
				:: timer[w] == PARKED && sock[w] == s ->
#endif
					assert(sock[w] == s && !ended[s]);
					timer[w] = DUE
				:: else
				fi
			};
			held[s] = 0
		:: else ->
#ifndef HELD_FORGOTTEN
			held[s] = 1
#endif
		fi
	:: else -> held[s] = 0
	fi
}

/* tw_sock_handle() */
inline handle(w)
{
#ifdef TAKE_IN_TWO_STEPS
	is_ended = ended[s];
	queued[s] = 0;
#else
	atomic { ALIVE(s); is_ended = ended[s]; queued[s] = 0 };
#endif
	if
	:: is_ended ->
		atomic {
#ifndef ENDED_STAYS_HELD
			held[s] = 0;
#endif
			drop(s);
			is_ended = 0
		}
	:: else -> try(w)
	fi
}

/* tw_held_purge() */
inline purge_held()
{
	atomic {
		if
		:: purge ->
			purge = 0;
			do
			:: s == SOCKS -> s = 0; break
			:: s < SOCKS && held[s] && closed[s / MOST] -> held[s] = 0; s++
			:: s < SOCKS && !(held[s] && closed[s / MOST]) -> s++
			od
		:: else
		fi
	}
}

/* tw_held_round(): any connection that waits */
inline round()
{
	do
	:: s == SOCKS -> break
	:: s < SOCKS && held[s] -> break
	:: s < SOCKS -> s++
	od;
	if
	:: s < SOCKS && held[s] ->
		assert(!let_go[s]);
		w = s / MOST;
		try(w);
		w = 0
	:: else
	fi;
	s = 0
}

/* tw_sock_work() */
proctype worker()
{
	byte w, n, s, i;
	bit was, is_ended, abort;

end:	do
	:: atomic {
		pending -> pending = 0;
		running = 1;
		for (i : 0 .. WHEELS - 1) {
			serving[i] = asked[i]
		}
		i = 0;
		n = len(files)
	   };
	   do
	   :: n == 0 -> break
	   :: else ->
		/* What is added later comes behind these. */
		atomic { files?w; n-- };
#ifndef CLEAR_LATE
		atomic { WHEEL(w); kicked[w] = 0 };
#endif
		if
#ifdef CLOSED_TOO
		:: len(todo[w]) > 0 ->
#else
		:: atomic { !closed[w] && len(todo[w]) > 0 -> WHEEL(w) };
#endif
			/* tw_sock_turn(): one in a turn */
			todo[w]?s;
			handle(w);
#ifndef REST_FORGOTTEN
			if
			:: len(todo[w]) > 0 -> kick(w)
			:: else
			fi;
#endif
#ifndef SWEEP_BESIDE
			sweep(w)
#else
			skip
#endif
		:: else -> WHEEL(w)
		fi;
#ifdef CLEAR_LATE
		atomic { WHEEL(w); kicked[w] = 0 };
#endif
		w = 0; s = 0; was = 0
	   od;
#ifndef NO_PURGE
	   purge_held();
#endif
	   round();
	   atomic {
		running = 0;
		do
		:: s == SOCKS -> break
		:: s < SOCKS && held[s] -> pending = 1; break
		:: s < SOCKS && !held[s] -> s++
		od;
		s = 0;
		for (i : 0 .. WHEELS - 1) {
			served[i] = served[i] | serving[i];
			serving[i] = 0
		}
		i = 0
	   }
	od
}

#ifdef SWEEP_BESIDE
/* The search for closed sockets in a work of its own */
proctype sweeper()
{
	sweep(0)
}
#endif

#if CLOSES
/* tw_file_free_closed() */
proctype freeing(byte w)
{
	byte s;

	quiet[w];	/* synchronize_rcu() */
#ifndef NO_QUIESCE
	/* tw_sock_quiesce() */
	atomic {
		purge = 1;
#ifndef FLUSH_ONLY
		pending = 1;
#endif
		if
		:: pending -> asked[w] = 1
		:: !pending && running -> serving[w] = 1
		:: else -> served[w] = 1
		fi
	};
	served[w];
#endif
	/* tw_sock_free_all() */
	atomic {
		gone = gone | (1 << w);
		do
		:: len(todo[w]) > 0 ->
			todo[w]?s;
			if
			:: ended[s] -> drop(s)
			:: else
			fi
		:: else -> break
		od;
		if
		:: timer[w] != FREE -> drop(sock[w])
		:: else
		fi;
		s = w * MOST;
		do
		:: s == (w + 1) * MOST -> break
		:: else -> assert(BIT(made, s) == BIT(freed, s)); s++
		od
	}
}
#else
/* All is quiet: no connection waits, each that ended was let go of. */
proctype idle()
{
	byte s;

	atomic {
		calls == 0 && visits == 0 && !pending && !running ->
		do
		:: s == WHEELS -> break
		:: else ->
			assert(timer[s] != PARKED);
			assert(len(todo[s]) == 0);
			s++
		od;
		s = 0;
		do
		:: s == SOCKS -> break
		:: else -> assert(BIT(freed, s) == ended[s]); s++
		od
	}
}
#endif

init
{
	byte n;

	atomic {
		do
		:: n == WHEELS -> break
		:: else ->
			run program(n);
			run engine(n);
#if CLOSES
			run freeing(n);
#endif
			n++
		od;
		run worker();
#ifdef SWEEP_BESIDE
		run sweeper();
#endif
#if !CLOSES
		run idle()
#endif
	}
}
