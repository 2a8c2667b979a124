/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A key is found, and by one operation at a time, while the table splits buckets.
 * module/table.h: tw_table_lock(), tw_table_lock_timer(); table.c: tw_split().
 *
 * Hashes are 0 to 3, one key each. The table grows from 1 bucket to 4. USERS each lock the bucket
 * of some key a few times, arm the key if it is absent and remove it if it is present. A timer
 * whose event was delivered is freed by the reader, which finds the timer's hash chain by its
 * number (tw_timer.chain).
 */
#ifndef USERS
#define USERS	2
#endif
#ifndef OPS
#define OPS	2
#endif
#define KEYS	4

byte buckets = 1;
byte lock[4];
bit chained[16];		/* bucket * 4 + key: the key's timer is in a chain of this bucket */
bit armed[KEYS];		/* ghost: it is in some chain */
byte chain[KEYS];		/* tw_timer.chain: in which one */
bit claimed[KEYS];		/* by the reader that frees it */
byte used[4];			/* ghost: _pid that changes the chains of a bucket */
byte user[KEYS];		/* ghost: _pid that operates on the key */

#define LOCK(l)		atomic { l == 0 -> l = _pid + 1 }
#define UNLOCK(l)	d_step { assert(l == _pid + 1); l = 0 }

/* tw_bucket_of() for up to 4 buckets */
#define MASK(n)		((n) == 1 -> 1 : ((n) < 4 -> 3 : 7))
#define BUCKET_OF(h, n)	(((h) & MASK(n)) < (n) -> ((h) & MASK(n)) : ((h) & (MASK(n) / 2)))

proctype task()
{
	byte ops, k, n, b;

	do
	:: ops == OPS -> break
	:: ops < OPS ->
		ops++;
		if
		:: k = 0
		:: k = 1
		:: k = 2
		:: k = 3
		fi;
		/* tw_ops_prefetch() */
		n = buckets;
		b = BUCKET_OF(k, n);
again:		/* tw_table_lock() */
		LOCK(lock[b]);
#ifndef NO_BUCKETS_RECHECK
		if
		:: buckets != n ->
			n = buckets;
			if
			:: BUCKET_OF(k, n) != b ->
				UNLOCK(lock[b]);
				b = BUCKET_OF(k, n);
				goto again
			:: else
			fi
		:: else
		fi;
#endif
		d_step { assert(!user[k]); user[k] = _pid };
		assert(chained[b * 4 + k] == armed[k]);
		if
		:: armed[k] && !claimed[k] ->
			claimed[k] = 1;		/* by a reader */
			user[k] = 0;
			UNLOCK(lock[b]);
			/* tw_table_lock_timer() */
			n = chain[k];
			LOCK(lock[n]);
#ifndef NO_CHAIN_RECHECK
			do
			:: chain[k] == n -> break
			:: else -> UNLOCK(lock[n]); n = chain[k]; LOCK(lock[n])
			od;
			skip;
#endif
			d_step { assert(!used[n]); used[n] = _pid };
			assert(chained[n * 4 + k]);
			d_step { armed[k] = 0; chained[n * 4 + k] = 0; claimed[k] = 0 };
			used[n] = 0;
			UNLOCK(lock[n])
		:: armed[k] && claimed[k] -> user[k] = 0; UNLOCK(lock[b])	/* absent: its reader frees it */
		:: !armed[k] ->
			d_step { armed[k] = 1; chained[b * 4 + k] = 1; chain[k] = b };
			user[k] = 0;
			UNLOCK(lock[b])
		:: armed[k] && !claimed[k] ->		/* REMOVE */
			d_step { armed[k] = 0; chained[b * 4 + k] = 0 };
			user[k] = 0;
			UNLOCK(lock[b])
		fi;
		d_step { n = 0; b = 0; k = 0 }
	od
}

/* tw_split(), under tw_file.mutex */
proctype grow()
{
	byte new, old, k;

	do
	:: buckets == 4 -> break
	:: buckets < 4 ->
		new = buckets;
		old = (new == 1 -> 0 : new - 2);
#ifdef PUBLISH_FIRST
		buckets = new + 1;
#endif
#ifndef NO_LOCK_IN_SPLIT
		LOCK(lock[old]);
#endif
#ifndef NO_LOCK_ON_NEW
		LOCK(lock[new]);
#endif
		d_step { assert(!used[new]); used[new] = _pid };
		k = 0;
		do
		:: k == KEYS -> break
		:: k < KEYS && (!chained[old * 4 + k] || BUCKET_OF(k, new + 1) != new) -> k++
		:: k < KEYS && chained[old * 4 + k] && BUCKET_OF(k, new + 1) == new ->
			chained[new * 4 + k] = 1;
			chained[old * 4 + k] = 0;
			chain[k] = new;
			k++
		od;
		used[new] = 0;
#if !defined(PUBLISH_FIRST) && !defined(PUBLISH_AFTER_UNLOCK)
		buckets = new + 1;
#endif
#ifndef NO_LOCK_ON_NEW
		UNLOCK(lock[new]);
#endif
#ifndef NO_LOCK_IN_SPLIT
		UNLOCK(lock[old]);
#endif
#ifdef PUBLISH_AFTER_UNLOCK
		buckets = new + 1;
#endif
	od
}

init
{
	atomic {
		if
		:: chained[0] = 1; armed[0] = 1
		:: true
		fi;
		if
		:: chained[3] = 1; armed[3] = 1
		:: true
		fi;
		run task();
		run task();
#if USERS > 2
		run task();
#endif
		run grow()
	}
}
