// SPDX-License-Identifier: GPL-2.0-only
/*
 * The deadline table: timers that are armed, refreshed and cancelled in memory, without the kernel.
 *
 * All timers of a wheel that has a table use this protocol. A resident timer differs only in that
 * it stays after it has fired.
 *
 * The entry
 * ---------
 * An entry holds a deadline, the generation of the timer that owns it, and a state:
 *
 *	CANCELLED	programs own the entry; the timer is queued
 *	ARMED		programs own the entry; the timer is queued
 *	PARKED		the kernel owns it; the last arming was cancelled
 *	FIRED		the kernel owns it; the last arming fired
 *
 * The entry of a timer that was removed is 0, which is never a valid generation. When the event of
 * a timer that is not resident was delivered, its entry stays FIRED. Programs cannot change it
 * then, so delivery does not write it. The next owner of the index has another generation, and
 * writes its own entry.
 *
 * Programs change an entry by compare-and-swap: arm (CANCELLED or ARMED to ARMED, the deadline not
 * earlier), refresh (ARMED to ARMED, the deadline not earlier) and cancel (ARMED to CANCELLED, the
 * deadline unchanged). The kernel ends an arming by setting bit 1: ARMED becomes FIRED, CANCELLED
 * becomes PARKED. So each race has one winner, and the loser sees the outcome in the entry.
 *
 * The invariant
 * -------------
 *	tw_timer.deadline <= deadline of the entry, while that is CANCELLED or ARMED
 *
 * The timer is visited by the time that tw_timer.deadline, rounded up to a tick, and its slack have
 * passed. (A visit that has lost all its races is repeated in the next tick.) The invariant holds
 * as long as programs only raise the deadline of an entry. The kernel ignores all other values: see
 * "No trust".
 *
 * A program does not know the slot. It knows that the timer is visited by the deadline in the
 * entry, apart from tick and slack, so it may only raise that deadline, even if the timer is
 * cancelled. Therefore a cancelled entry keeps its deadline. A value that the kernel has read at
 * any time is a lower bound. So it queues timers by a plain load, and needs a compare-and-swap only
 * to end an arming. A timer is parked when its deadline passes, not at the first visit that finds
 * it cancelled: most timers are cancelled most of the time, and re-arming them must not need a
 * call.
 *
 * Deadlines have the resolution of the entry, so ADD and MOVE round up to it. Otherwise a program
 * that arms the timer for slightly later could not store that deadline, and the timer would be
 * early. A deadline in the last 2^generation_bits ns before TIMERWHEEL_TIME_MAX is rounded down,
 * because the next multiple is greater than TIMERWHEEL_TIME_MAX.
 *
 * States of the timer
 * -------------------
 *	PENDING	the entry is CANCELLED or ARMED, and it may change at any time
 *	DUE	the entry is FIRED
 *	PARKED	the entry is PARKED or, if resident, FIRED; the bucket's lock protects it
 *
 * PENDING to PARKED (visit) and DUE to PARKED (delivery) happen with the base's lock and without
 * the bucket's lock; delivery also holds the due list's or the ring's lock. All other changes of a
 * parked timer need the bucket's lock. A call that looks up the timer reads the state with acquire
 * (tw_timer_held()).
 *
 * No trust
 * --------
 * Programs may write any value. A garbled entry counts as if the program had not written it: the
 * kernel's own deadline is valid. The same holds for an entry with an earlier deadline, because an
 * entry can only postpone. A visit tries its compare-and-swap a few times, so a program that
 * prevents it from succeeding makes its own timer a tick late. MOVE, ADD and REMOVE overwrite the
 * entry whatever its value. DRAIN overwrites it if its compare-and-swap fails.
 *
 * selftests/model/resident.pml models the protocol; selftests/litmus/resident-* check memory order.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/timerwheel.h>

#ifdef CONFIG_ARM64
#include <asm/cpufeature.h>
#endif

#include "deadlines.h"
#include "resident.h"

/* Bit 1 of an entry: the kernel owns it. */
#define TW_ENTRY_KERNEL		2ULL
static_assert((TIMERWHEEL_TABLE_ARMED | TW_ENTRY_KERNEL) == TIMERWHEEL_TABLE_FIRED);
static_assert((TIMERWHEEL_TABLE_CANCELLED | TW_ENTRY_KERNEL) == TIMERWHEEL_TABLE_PARKED);

/*
 * Compare-and-swaps of a visit. A visit rarely loses a race with a program. Losing this many races
 * means that the program does it on purpose.
 */
#define TW_RESIDENT_TRIES	4U

/**
 * tw_resident_supported - does this machine support a deadline table?
 *
 * A compare-and-swap of the kernel, with a raw lock held, must not depend on programs' accesses to
 * the cache line. On arm64 without LSE atomics and on most other architectures it is a loop of load
 * and conditional store, which programs could keep from ending.
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

/* The entry's deadline, without generation and state, for a timer that is due at @deadline. */
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
 * @t: the timer, TW_PENDING; its base is locked. Its deadline becomes the latest one known.
 * @now: the time, in ns
 *
 * Return: the new state of the timer.
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
		 * Full barrier: the reader of the event sees writes from before the arming; litmus
		 * resident-publish. Only one side ends it; litmus resident-end. Afterwards no
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
 * @t: the timer; its base is locked, or it is in none
 * @deadline: the deadline. Unless it has passed, it is rounded up to what an entry can hold.
 * @now: the time, in ns
 * @unless_armed: do nothing if it is armed
 * @was: TIMERWHEEL_WAS_*, by the state of the timer
 *
 * Return: @was; TIMERWHEEL_WAS_PARKED: its last arming was cancelled; -EEXIST: @unless_armed was
 * given, and it is armed.
 */
int tw_resident_set(const struct tw_pool *pool, u32 index, struct tw_timer *t, u64 deadline,
		    u64 now, bool unless_armed, int was)
{
	u64 time = tw_resident_encode(pool, deadline);
	u64 *entry = tw_resident_entry(pool, index);
	u64 old = READ_ONCE(*entry), want;

	want = time | t->generation;
	/* Near TIMERWHEEL_TIME_MAX the deadline that the entry can hold may have passed. */
	if (deadline > now)
		deadline = tw_deadline_decode(pool, time);
	want |= deadline > now ? TIMERWHEEL_TABLE_ARMED : TIMERWHEEL_TABLE_FIRED;
	if (was != TIMERWHEEL_WAS_PENDING) {
		/* A canceller sees writes from before the call; litmus resident-cancel. */
		smp_store_release(entry, want);
	} else if (!unless_armed) {
		/* The old entry identifies the arming that this ends; litmus resident-end. */
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
 * @t: the timer, in no list, TW_LINGERS; its deadline is set
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
 * @old: the expected value of its entry
 *
 * Return: true if the entry still had that value.
 */
bool tw_resident_take(const struct tw_pool *pool, u32 index, u64 old)
{
	/* Either this ends the arming, or a program has changed it; litmus resident-end. */
	return try_cmpxchg(tw_resident_entry(pool, index), &old, 0);
}

/**
 * tw_resident_seize - take the entry of a pending timer, whatever its value
 * @pool: the pool
 * @index: the timer
 * @t: the timer; its base is locked. tw_resident_release() follows.
 *
 * Until then programs see a timer that has fired, so that they expect an event or a withdrawal by a
 * call. So they do not rely on having armed or cancelled it.
 *
 * Return: the previous value of the entry.
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
 * @entry: the previous value; 0: the timer is removed
 */
void tw_resident_release(const struct tw_pool *pool, u32 index, u64 entry)
{
	WRITE_ONCE(*tw_resident_entry(pool, index), entry);
}

/**
 * tw_resident_end - end the programs' ownership of the entry of a timer that is removed
 * @pool: the pool
 * @index: the timer
 * @t: the timer, in no list. If it was pending its deadline is set to the deadline in the entry.
 * @was: TIMERWHEEL_WAS_*, by the state of the timer
 *
 * Return: @was; TIMERWHEEL_WAS_PARKED: its last arming was cancelled.
 */
int tw_resident_end(const struct tw_pool *pool, u32 index, struct tw_timer *t, int was)
{
	/* The old entry shows how the last arming ended; litmus resident-end. */
	u64 old = xchg(tw_resident_entry(pool, index), 0);

	if (was != TIMERWHEEL_WAS_PENDING)
		return was;
	tw_deadline_apply(pool, t, old);
	return tw_resident_cancelled(pool, t, old) ? TIMERWHEEL_WAS_PARKED : was;
}
