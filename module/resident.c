// SPDX-License-Identifier: GPL-2.0-only
/*
 * The deadline table: timers that are armed, refreshed and cancelled in memory, without the kernel.
 *
 * This is the protocol of all timers of a wheel that has a table. A resident timer only differs in
 * that it stays after it has fired.
 *
 * The entry
 * ---------
 * An entry holds a deadline, the generation of the timer that owns it, and a state:
 *
 *	CANCELLED	the program's; the kernel has the timer queued
 *	ARMED		the same
 *	PARKED		the kernel's; the last arming was cancelled, the timer is in no list
 *	FIRED		the kernel's; the last arming fired
 *
 * The entry of a timer that was removed is 0, which is no generation. When the event of a timer
 * that is not resident was delivered, its entry stays FIRED. No program can change it, so delivery
 * need not write it. The next owner of the index has another generation, and writes its own entry.
 *
 * Programs change it by compare-and-swap: arm (CANCELLED or ARMED to ARMED, the deadline not
 * earlier), refresh (ARMED to ARMED, likewise) and cancel (ARMED to CANCELLED, the deadline stays).
 * The kernel ends an arming by setting bit 1: ARMED becomes FIRED, CANCELLED becomes PARKED. So
 * each race has one winner, and the loser sees in the entry what has happened.
 *
 * The invariant
 * -------------
 *	tw_timer.deadline <= deadline of the entry, while that is CANCELLED or ARMED
 *
 * The timer is visited by the time that tw_timer.deadline, rounded up to a tick, and its slack have
 * passed. (A visit that has lost all its races is repeated in the next tick.) The invariant holds
 * as long as programs only raise the deadline of an entry. What else they write there is ignored:
 * see "No trust".
 *
 * A program does not know the slot. It knows that the timer is visited by the deadline in the
 * entry, apart from tick and slack, so it may only raise that, even if the timer is cancelled:
 * therefore a cancelled entry keeps its deadline. And whatever the kernel has read, however long
 * ago, is a lower bound. So it queues by a plain load, and needs a compare-and-swap only to end an
 * arming. A timer is parked when its deadline passes, not at the first visit that finds it
 * cancelled: most timers are cancelled most of the time, and arming them again must not need a
 * call.
 *
 * Deadlines have the resolution of the entry, so ADD and MOVE round up to that. Otherwise a program
 * that arms the timer for a little later could not say so, and the timer would be early. A deadline
 * in the last 2^generation_bits ns before TIMERWHEEL_TIME_MAX is rounded down, because the next
 * multiple is greater than TIMERWHEEL_TIME_MAX.
 *
 * States of the timer
 * -------------------
 *	PENDING	the entry is CANCELLED or ARMED, and it may change at any time
 *	DUE	the entry is FIRED
 *	PARKED	the entry is PARKED or, of a resident timer, FIRED; the bucket's lock protects the
 *		timer
 *
 * PENDING to PARKED (visit) and DUE to PARKED (delivery) happen with the base's lock, the latter
 * also with the due list's or the ring's, and without the bucket's. All other changes of a parked
 * timer need the bucket's lock. A call that looks it up sees the state last (tw_timer_held()).
 *
 * No trust
 * --------
 * Programs may write anything. A garbled entry counts as if nothing had been written: the kernel's
 * own deadline is valid. So it is if the entry has an earlier one: an entry can only postpone. A
 * visit tries its compare-and-swap a few times. A program that keeps them from succeeding makes its
 * own timer a tick late. MOVE, ADD and REMOVE write the entry whatever is in it, and so does DRAIN
 * if its compare-and-swap fails.
 *
 * selftests/model/resident.pml has the protocol; selftests/litmus/resident-* the order of memory.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/timerwheel.h>

#ifdef CONFIG_ARM64
#include <asm/cpufeature.h>
#endif

#include "deadlines.h"
#include "resident.h"

/* Bit 1 of an entry: the state is the kernel's. */
#define TW_ENTRY_KERNEL		2ULL
static_assert((TIMERWHEEL_TABLE_ARMED | TW_ENTRY_KERNEL) == TIMERWHEEL_TABLE_FIRED);
static_assert((TIMERWHEEL_TABLE_CANCELLED | TW_ENTRY_KERNEL) == TIMERWHEEL_TABLE_PARKED);

/*
 * Compare-and-swaps of a visit. A race with a program is lost once in a great while; one that is
 * lost this often is lost on purpose.
 */
#define TW_RESIDENT_TRIES	4U

/**
 * tw_resident_supported - does this machine have what a deadline table needs?
 *
 * A compare-and-swap of the kernel, with a raw lock held, must not depend on what programs do to
 * the cache line. Where it is a loop of load and conditional store, as on arm64 without LSE atomics
 * and on most other architectures, they could keep it from ending.
 *
 * Return: true if so.
 */
bool tw_resident_supported(void)
{
#if defined(CONFIG_ARM64_LSE_ATOMICS)
	return cpus_have_cap(ARM64_HAS_LSE_ATOMICS);
#elif defined(CONFIG_X86_64) || defined(CONFIG_S390)
	return true;
#else
	return false;
#endif
}

static u64 *tw_resident_entry(const struct tw_pool *pool, u32 index)
{
	return tw_deadline_entry(tw_pool_deadlines(pool), index);
}

/* The deadline of an entry for a timer that is due at @deadline, without generation and state */
static u64 tw_resident_encode(const struct tw_pool *pool, u64 deadline)
{
	u64 mask = pool->generation_mask;
	u64 time = deadline + pool->deadlines_offset;

	/* The offset is less than 2^62 in either direction. */
	if ((s64)pool->deadlines_offset < 0 && deadline < -pool->deadlines_offset)
		time = 0;
	return (min(time, TIMERWHEEL_TIME_MAX - mask) + mask) & ~mask;
}

/**
 * tw_resident_visit - a timer is visited: its arming ends, or it is queued again
 * @pool: the pool
 * @index: the timer
 * @t: the same, TW_PENDING; its base is locked. Its deadline becomes the latest one known.
 * @now: the time, in ns
 *
 * Return: what becomes of the timer.
 */
enum tw_visited tw_resident_visit(const struct tw_pool *pool, u32 index, struct tw_timer *t,
				  u64 now)
{
	u64 *entry = tw_resident_entry(pool, index);
	unsigned int tries = TW_RESIDENT_TRIES;
	u64 old = READ_ONCE(*entry);

	do {
		/* A later visit must not see an earlier deadline; litmus resident-visits. */
		tw_deadline_apply(pool, t, old);
		if (t->deadline > now)
			return TW_VISITED_LATER;
		if (unlikely(!tw_deadline_valid(pool, t, old))) {
			WRITE_ONCE(*entry, tw_resident_encode(pool, t->deadline) | t->generation |
					   TIMERWHEEL_TABLE_FIRED);
			return TW_VISITED_FIRED;
		}
		/*
		 * Full barrier: who gets the event sees what was written before the arming;
		 * litmus resident-publish. Only one ends it; litmus resident-end. Afterwards no
		 * program changes it, not even for a new owner; litmus resident-owner.
		 */
		if (likely(try_cmpxchg(entry, &old, old | TW_ENTRY_KERNEL)))
			return old & TIMERWHEEL_TABLE_ARMED ? TW_VISITED_FIRED :
								 TW_VISITED_PARKED;
	} while (--tries);
	return TW_VISITED_AGAIN;
}

/**
 * tw_resident_set - a call gives a timer a new deadline
 * @pool: the pool
 * @index: the timer
 * @t: the same; its base is locked, or it is in none
 * @deadline: the deadline. Unless it has passed, it is rounded up to what an entry can hold.
 * @now: the time, in ns
 * @unless_armed: do nothing if it is armed
 * @was: TIMERWHEEL_WAS_*, by the state of the timer
 *
 * Return: @was; TIMERWHEEL_WAS_PARKED: its last arming was cancelled; -EEXIST: @unless_armed, and
 * it is armed.
 */
int tw_resident_set(const struct tw_pool *pool, u32 index, struct tw_timer *t, u64 deadline,
		    u64 now, bool unless_armed, int was)
{
	u64 time = tw_resident_encode(pool, deadline);
	u64 *entry = tw_resident_entry(pool, index);
	u64 old = READ_ONCE(*entry), want;

	want = time | t->generation;
	/* At the end of time what the entry can hold may have passed. */
	if (deadline > now)
		deadline = tw_deadline_decode(pool, time);
	want |= deadline > now ? TIMERWHEEL_TABLE_ARMED : TIMERWHEEL_TABLE_FIRED;
	if (was != TIMERWHEEL_WAS_PENDING) {
		/* Who cancels it sees what was written before the call; litmus resident-cancel. */
		smp_store_release(entry, want);
	} else if (!unless_armed) {
		/* It tells which arming this ends; litmus resident-end. */
		old = xchg(entry, want);
	} else if (!tw_resident_cancelled(pool, t, old) || !try_cmpxchg(entry, &old, want)) {
		/* If the swap fails, it was armed meanwhile; litmus resident-end. */
		return -EEXIST;
	}
	t->deadline = deadline;
	if (was == TIMERWHEEL_WAS_PENDING && tw_resident_cancelled(pool, t, old))
		return TIMERWHEEL_WAS_PARKED;
	return was;
}

/**
 * tw_resident_linger - prepare a timer whose event was delivered to be queued as cancelled
 * @pool: the pool
 * @index: the timer
 * @t: the same, in no list, TW_LINGERS; its deadline is set
 * @now: the time, in ns
 */
void tw_resident_linger(const struct tw_pool *pool, u32 index, struct tw_timer *t, u64 now)
{
	u64 entry = tw_resident_encode(pool, now + min(t->period, TIMERWHEEL_TIME_MAX - now));

	t->deadline = tw_deadline_decode(pool, entry);
	WRITE_ONCE(*tw_resident_entry(pool, index),
		   entry | t->generation | TIMERWHEEL_TABLE_CANCELLED);
}

/**
 * tw_resident_take - take the entry of a pending timer, unless it has changed
 * @pool: the pool
 * @index: the timer; its base is locked
 * @old: what was in its entry
 *
 * Return: true if that was still there.
 */
bool tw_resident_take(const struct tw_pool *pool, u32 index, u64 old)
{
	/* Either this ends the arming, or a program has changed it; litmus resident-end. */
	return try_cmpxchg(tw_resident_entry(pool, index), &old, 0);
}

/**
 * tw_resident_seize - take the entry of a pending timer, whatever is in it
 * @pool: the pool
 * @index: the timer
 * @t: the same; its base is locked. tw_resident_release() follows.
 *
 * Until then programs find that it has fired: that its event comes, or a call has withdrawn it. So
 * none of them counts on its arming, or on having cancelled it.
 *
 * Return: what was in the entry.
 */
u64 tw_resident_seize(const struct tw_pool *pool, u32 index, const struct tw_timer *t)
{
	/* Full barrier, for tw_resident_release(); litmus resident-seize. */
	return xchg(tw_resident_entry(pool, index), t->generation | TIMERWHEEL_TABLE_FIRED);
}

/**
 * tw_resident_release - give up an entry that tw_resident_seize() has taken
 * @pool: the pool
 * @index: the timer; its base is still locked
 * @entry: what was there; 0: the timer is removed
 */
void tw_resident_release(const struct tw_pool *pool, u32 index, u64 entry)
{
	WRITE_ONCE(*tw_resident_entry(pool, index), entry);
}

/**
 * tw_resident_end - a timer is removed: no program owns its entry any more
 * @pool: the pool
 * @index: the timer
 * @t: the same, in no list. If it was pending its deadline is set to that in the entry.
 * @was: TIMERWHEEL_WAS_*, by the state of the timer
 *
 * Return: @was; TIMERWHEEL_WAS_PARKED: its last arming was cancelled.
 */
int tw_resident_end(const struct tw_pool *pool, u32 index, struct tw_timer *t, int was)
{
	/* What was there says how the last arming ended; litmus resident-end. */
	u64 old = xchg(tw_resident_entry(pool, index), 0);

	if (was != TIMERWHEEL_WAS_PENDING)
		return was;
	tw_deadline_apply(pool, t, old);
	return tw_resident_cancelled(pool, t, old) ? TIMERWHEEL_WAS_PARKED : was;
}
