/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The operations on one timer by its key, in a batch (struct tw_ctx: this CPU's base is locked).
 * They are inline in ops.c, in the loops over several elements.
 *
 * tw_lookup() locks the key's bucket. If the timer is in the base of a CPU that is not locked, this
 * batch cannot do the operation. It returns -EAGAIN, and starts over in the next batch, which has
 * that base locked (tw_ctx.wants). So no operation waits for another CPU's base or is repeated with
 * bottom halves off. MOVE seldom needs tw_lookup(): see tw_lookup_lockless().
 *
 * With these locks held a PENDING timer does not change. A reader may still claim or re-arm a DUE
 * timer, until the events' lock is taken and the timer is seen to be on the due list
 * (tw_lock_if_due()). If it is not there, the operation also starts over in the next batch.
 */
#ifndef TW_OPS_H
#define TW_OPS_H

#include <linux/math64.h>
#include <linux/minmax.h>

#include "clock.h"
#include "cpu.h"
#include "deadlines.h"
#include "events.h"
#include "internal.h"
#include "resident.h"
#include "slots.h"
#include "sock.h"
#include "table.h"
#include "trace.h"

/*
 * Maximum number of links that a lockless walk of a hash chain follows. Nearly all chains are
 * shorter. A chain that changes meanwhile may lead the walk to other chains, and without a limit in
 * circles.
 */
#define TW_LOCKLESS_DEPTH	16

/**
 * struct tw_lookup - where a key is in the table; its bucket is locked
 * @bucket: its bucket
 * @chain: the head of its hash chain
 * @link: the link to its timer, or else the last link of the chain, which is 0
 * @index: its timer; 0: there is none
 * @depth: timers in the chain before @link; set by tw_lookup() only
 * @state: of the timer. The locks keep only TW_PENDING and TW_PARKED from changing.
 *
 * It need not be initialized. A lookup that has found a timer has set all of it except @depth,
 * which only ADD reads, after tw_lookup(). If there is no timer, tw_lookup() sets all except
 * @state, and callers of tw_lookup_index() use none of it.
 */
struct tw_lookup {
	struct tw_bucket *bucket;
	u32 *chain;
	u32 *link;
	u32 index;
	u32 depth;
	u8 state;
};

static inline void tw_lookup_unlock(const struct tw_ctx *ctx, const struct tw_lookup *lookup)
{
	tw_bucket_unlock(&ctx->file->table, lookup->bucket);
}

/* Is the base of CPU @nr locked? */
static inline bool tw_base_held(const struct tw_ctx *ctx, u32 nr)
{
	return likely(ctx->cpu->nr == nr) || (ctx->other && ctx->other->nr == nr);
}

/* Read a timer's state and CPU. Returns true if the base of that CPU, @nr, is locked. */
static inline bool tw_timer_held(const struct tw_ctx *ctx, const struct tw_timer *t, u8 *state,
				 u32 *nr)
{
	/*
	 * In this order: pairs with the releases in tw_timer_stay() and tw_timer_park();
	 * litmus settled, resident-parked.
	 */
	*state = smp_load_acquire(&t->state);
	*nr = READ_ONCE(t->cpu);
	return tw_base_held(ctx, *nr);
}

/**
 * struct tw_hint - where a key's chain was when nothing was locked
 * @buckets: tw_table_buckets() at that time
 * @chain: tw_table_chain() with that number
 */
struct tw_hint {
	u32 buckets;
	u32 *chain;
};

/* Make the operation start over in a batch that has the base of CPU @nr locked. */
static inline int tw_start_over(struct tw_ctx *ctx, u32 nr)
{
	ctx->wants = nr;
	return -EAGAIN;
}

/*
 * Lock a key's bucket and look up its timer, @timer: NULL if there is none. Its base is locked,
 * unless it is PARKED. If that base is not locked, returns false without locking the bucket, and
 * the operation starts over in the next batch.
 */
static __always_inline bool tw_lookup(struct tw_ctx *ctx, u64 key, struct tw_hint hint,
				      struct tw_lookup *lookup, struct tw_timer **timer)
{
	struct tw_table *table = &ctx->file->table;
	struct tw_timer *t;
	u32 nr;

	lookup->bucket = tw_table_lock(table, key, hint.buckets, &hint.chain);
	lookup->chain = hint.chain;
	t = tw_table_lookup(table, lookup->chain, key, &lookup->link, &lookup->depth);
	lookup->index = *lookup->link;
	*timer = t;
	/* A parked timer is in no base. */
	if (!t || likely(tw_timer_held(ctx, t, &lookup->state, &nr)) ||
	    lookup->state == TW_PARKED)
		return true;
	tw_lookup_unlock(ctx, lookup);
	tw_start_over(ctx, nr);
	return false;
}

/*
 * Lock the due list if a timer that was seen DUE is still on it: a reader may have claimed it or
 * armed it again. The base must be checked as well as the state, because a timer that was armed
 * again on another CPU may be DUE in an expiry batch of that CPU's base and not yet on the list. A
 * base that this batch has locked has no expiry batch in progress.
 */
static inline bool tw_lock_if_due(const struct tw_ctx *ctx, const struct tw_timer *t)
{
	tw_events_lock(ctx->file);
	if (likely(READ_ONCE(t->state) == TW_DUE && tw_base_held(ctx, READ_ONCE(t->cpu))))
		return true;
	tw_events_unlock(ctx->file);
	return false;
}

/* Take a PENDING timer out of its wheel. Its base is locked. */
static __always_inline void tw_dequeue_pending(struct tw_ctx *ctx, struct tw_timer *t)
{
	struct tw_cpu *cpu = likely(t->cpu == ctx->cpu->nr) ? ctx->cpu : ctx->other;

	tw_wheel_remove(&cpu->wheel, t);
}

/* The state that calls report for a PARKED timer. A parked connection's deadline has passed. */
static inline int tw_was_parked(const struct tw_ctx *ctx)
{
	return tw_pool_table(&ctx->file->table.pool) ? TIMERWHEEL_WAS_PARKED :
							  TIMERWHEEL_WAS_DUE;
}

/*
 * Take a timer out of its wheel or off the due list. Returns TIMERWHEEL_WAS_PENDING, _DUE or
 * _PARKED; -EAGAIN if a reader was faster: tw_start_over() was called, and the bucket is unlocked.
 */
static __always_inline int tw_dequeue(struct tw_ctx *ctx, struct tw_timer *t,
				      const struct tw_lookup *lookup)
{
	if (lookup->state == TW_PENDING) {
		tw_dequeue_pending(ctx, t);
		return TIMERWHEEL_WAS_PENDING;
	}
	if (lookup->state == TW_PARKED) {
		ctx->cpu->wheel.parked--;
		return tw_was_parked(ctx);
	}
	if (tw_lock_if_due(ctx, t)) {
		tw_events_unlink(ctx, t);
		tw_events_unlock(ctx->file);
		return TIMERWHEEL_WAS_DUE;
	}
	tw_lookup_unlock(ctx, lookup);
	return tw_start_over(ctx, READ_ONCE(t->cpu));
}

/* Queue a timer that is on no list, in this CPU's base. */
static __always_inline void tw_enqueue(struct tw_ctx *ctx, u32 index, struct tw_timer *t)
{
	struct tw_cpu *cpu = ctx->cpu;

	WRITE_ONCE(t->cpu, cpu->nr);
	if (likely(t->deadline > ctx->now)) {
		/* As in tw_enqueue_due(): pairs with tw_timer_held(); litmus settled. */
		smp_store_release(&t->state, TW_PENDING);
		tw_wheel_insert(&cpu->wheel, index, t);
	} else {
		tw_enqueue_due(ctx, index, t);
	}
}

/* Take a timer that is on no list out of its hash chain, unlock the bucket and free the timer. */
static __always_inline void tw_unhash_free(struct tw_ctx *ctx, struct tw_timer *t,
					   const struct tw_lookup *lookup)
{
	tw_table_set_link(lookup->link, t->hash_next);
	WRITE_ONCE(t->state, TW_FREE);
	tw_lookup_unlock(ctx, lookup);
	tw_cpu_free(ctx->cpu, lookup->index, t);
}

static inline u32 tw_slack_ticks(const struct tw_ctx *ctx, u64 slack)
{
	if (likely(!slack))
		return 0;
	return min_t(u64, div64_u64(min(slack, TW_SLACK_MAX), ctx->file->setup.tick), U32_MAX);
}

/* May @t stay in its slot with this deadline? See "Visits" in wheel.c. */
static inline bool tw_can_stay(const struct tw_ctx *ctx, const struct tw_timer *t, u64 deadline)
{
	return deadline >= t->deadline && deadline > ctx->now;
}

/*
 * Time left until the deadline. A due timer may have fired on another CPU after this batch read the
 * clock. The time then counts from its firing, so that it is never positive.
 */
static inline s64 tw_time_left(const struct tw_ctx *ctx, const struct tw_timer *t, int was)
{
	u64 now = was == TIMERWHEEL_WAS_DUE ? max(ctx->now, t->fired) : ctx->now;

	return t->deadline - now;
}

/* Does an ADD to a wheel without resident timers have only key, value and deadline? */
static inline bool tw_add_plain(const struct tw_pool *pool, const struct timerwheel_add *arg)
{
	return !((arg->flags & ~TIMERWHEEL_ABS) | arg->slack | arg->match | arg->period) &&
	       !tw_pool_resident(pool);
}

/* Does an ADD have invalid fields or flags, or an invalid combination of them? */
static inline bool tw_add_invalid(const struct tw_pool *pool, const struct timerwheel_add *arg)
{
	const u32 known = TIMERWHEEL_ABS | TIMERWHEEL_EXCL | TIMERWHEEL_MATCH | TIMERWHEEL_SLACK |
			  (tw_pool_resident(pool) ? TIMERWHEEL_LINGER : 0);
	const u32 either = TIMERWHEEL_EXCL | TIMERWHEEL_MATCH;

	return arg->flags & ~known || (arg->flags & either) == either ||
	       arg->period > TIMERWHEEL_TIME_MAX ||
	       (tw_pool_table(pool) && !arg->period == !!(arg->flags & TIMERWHEEL_LINGER)) ||
	       (arg->slack && !(arg->flags & TIMERWHEEL_SLACK)) ||
	       (arg->match && !(arg->flags & TIMERWHEEL_MATCH));
}

/*
 * ADD and MOVE: give a timer a new deadline, also in its entry if there is a deadline table.
 * Returns @was, or the state in that entry: see tw_resident_set().
 */
static __always_inline int tw_deadline_set(const struct tw_pool *pool, u32 index,
					   struct tw_timer *t, u64 deadline, u64 now,
					   bool unless_armed, int was)
{
	if (unlikely(tw_pool_table(pool)))
		return tw_resident_set(pool, index, t, deadline, now, unless_armed, was);
	t->deadline = deadline;
	return was;
}

/*
 * ADD. @plain: tw_add_plain(), a constant. @sock: the connection to watch, or NULL. Returns
 * TIMERWHEEL_WAS_*, a documented error, or -EAGAIN if nothing was done, because no free timer is at
 * hand, or because the operation starts over in the next batch (tw_ctx.wants).
 */
static __always_inline int __tw_add(struct tw_ctx *ctx, struct timerwheel_add *arg,
				    struct tw_hint hint, bool plain, struct tw_sock *sock)
{
	u32 flags = plain ? arg->flags & TIMERWHEEL_ABS : arg->flags;
	struct tw_file *file = ctx->file;
	bool resident = !plain && tw_pool_resident(&file->table.pool);
	struct tw_lookup lookup __uninitialized;
	struct tw_timer *t;
	u64 deadline;
	u32 slack;
	int was;

	if (!plain && tw_add_invalid(&file->table.pool, arg))
		return -EINVAL;
	deadline = tw_clock_deadline(arg->deadline, flags & TIMERWHEEL_ABS, ctx->now, ctx->offset);
	slack = tw_slack_ticks(ctx, flags & TIMERWHEEL_SLACK ? arg->slack : file->setup.slack);
	/* This CPU's base stays locked until the timer is queued: see tw_cpu_barrier(). */
	if (unlikely(READ_ONCE(file->closed)))
		return -ESHUTDOWN;
	if (unlikely(!tw_lookup(ctx, arg->key, hint, &lookup, &t)))
		return -EAGAIN;
	if (t) {
		if (flags & TIMERWHEEL_EXCL) {
			tw_lookup_unlock(ctx, &lookup);
			return -EEXIST;
		}
		if (flags & TIMERWHEEL_MATCH && t->value != arg->match) {
			tw_lookup_unlock(ctx, &lookup);
			return -ESTALE;
		}
		if (lookup.state == TW_PENDING && tw_can_stay(ctx, t, deadline) &&
		    slack >= t->slack) {
			was = TIMERWHEEL_WAS_PENDING;
		} else {
			was = tw_dequeue(ctx, t, &lookup);
			if (was == -EAGAIN)
				return was;
			lookup.state = TW_FREE;
		}
		if (unlikely(tw_timer_has_sock(t)))
			tw_sock_end(ctx, t);
		ctx->cpu->counts.replaced++;
	} else {
		if (flags & TIMERWHEEL_MATCH) {
			tw_lookup_unlock(ctx, &lookup);
			return -ENOENT;
		}
		if (unlikely(lookup.depth >= TW_CHAIN_MAX)) {
			tw_lookup_unlock(ctx, &lookup);
			return -EMLINK;
		}
		t = tw_cpu_alloc(ctx->cpu, &lookup.index);
		if (!t) {
			tw_lookup_unlock(ctx, &lookup);
			return -EAGAIN;
		}
		lookup.state = TW_FREE;
		was = TIMERWHEEL_WAS_NONE;
		tw_deadline_new_owner(&file->table.pool, t);
		WRITE_ONCE(t->key, arg->key);
		tw_table_set_link(&t->hash_next, 0);
		tw_table_set_link(lookup.link, lookup.index);
	}
	was = tw_deadline_set(&file->table.pool, lookup.index, t, deadline, ctx->now, false, was);
	t->value = arg->value;
	WRITE_ONCE(t->chain, lookup.chain);
	t->stay = resident ? TW_RESIDENT : TW_ENDS;
	if (!plain && arg->period) {
		t->period = arg->period;
		t->stay = resident ? TW_LINGERS : TW_PERIODIC;
	}
	if (sock) {
		t->sock = sock;
		t->stay = TW_SOCKET;
	}
	t->slack = slack;
	trace_timerwheel_arm(file, t, was);
	/* Near TIMERWHEEL_TIME_MAX the latest deadline that its entry can hold may have passed. */
	if (lookup.state != TW_FREE && unlikely(t->deadline <= ctx->now)) {
		tw_dequeue_pending(ctx, t);
		lookup.state = TW_FREE;
	}
	if (lookup.state == TW_FREE)
		tw_enqueue(ctx, lookup.index, t);
	arg->index = lookup.index;
	arg->generation = t->generation;
	tw_lookup_unlock(ctx, &lookup);
	ctx->cpu->counts.armed++;
	return was;
}

int tw_add_any(struct tw_ctx *ctx, struct timerwheel_add *arg, struct tw_hint hint,
	       struct tw_sock *sock);
int tw_move_slow(struct tw_ctx *ctx, const struct timerwheel_move *arg, u64 deadline,
		 struct tw_hint hint);

/* ADD. Returns the result of __tw_add(). */
static __always_inline int tw_add(struct tw_ctx *ctx, void *elem, struct tw_hint hint)
{
	struct timerwheel_add *arg = elem;

	return likely(tw_add_plain(&ctx->file->table.pool, arg)) ?
	       __tw_add(ctx, arg, hint, true, NULL) : tw_add_any(ctx, arg, hint, NULL);
}

/* All elements begin with their key: see tw_ops_prefetch(). */
static_assert(!offsetof(struct timerwheel_add, key));
static_assert(!offsetof(struct timerwheel_move, key));
static_assert(!offsetof(struct timerwheel_remove, key));
static_assert(!offsetof(struct timerwheel_entry, key));

/*
 * Look up a timer that is PENDING in a locked base, without the lock of its bucket. This writes no
 * memory that other CPUs need, so the bucket's cache line stays shared.
 *
 * Invariant: a timer becomes PENDING, changes and ceases to be PENDING only under its base's lock.
 * So all fields read here of a timer that is PENDING in a locked base are stable, including its
 * key. Fields of any other timer may be stale.
 *
 * Returns its index. After a result of 0 look the key up again with tw_lookup().
 */
static __always_inline u32 tw_lookup_lockless(const struct tw_ctx *ctx, u64 key, const u32 *chain,
					      struct tw_timer **timer)
{
	const struct tw_pool *pool = &ctx->file->table.pool;
	unsigned int depth = TW_LOCKLESS_DEPTH;
	struct tw_timer *t;
	u32 index, nr;
	u8 state;

	do {
		/* Pairs with the release in tw_table_set_link(); litmus link. */
		index = smp_load_acquire(chain);
		if (unlikely(!index))
			return 0;
		t = tw_timer_at(pool, index);
		if (READ_ONCE(t->key) == key) {
			*timer = t;
			return tw_timer_held(ctx, t, &state, &nr) && state == TW_PENDING ?
			       index : 0;
		}
		chain = &t->hash_next;
	} while (--depth);
	return 0;
}

/*
 * Give a timer a new deadline, and queue it for that. @state: TW_PENDING if its base is locked,
 * else any other state: the timer is on no list. Returns @was, or the result of tw_deadline_set().
 */
static __always_inline int tw_set_deadline(struct tw_ctx *ctx, u32 index, struct tw_timer *t,
					   u64 deadline, u32 flags, u8 state, int was)
{
	bool stays;

	if (unlikely(tw_timer_has_sock(t)))
		deadline = tw_sock_move(ctx, t, deadline);
	stays = state == TW_PENDING && deadline >= t->deadline;
	was = tw_deadline_set(&ctx->file->table.pool, index, t, deadline, ctx->now,
			      flags & TIMERWHEEL_EXCL, was);
	if (was < 0)
		return was;
	/*
	 * As tw_can_stay(), but with the deadline that was set: near TIMERWHEEL_TIME_MAX the latest
	 * deadline that an entry can hold may have passed.
	 */
	stays = stays && t->deadline > ctx->now;
	if (state == TW_PENDING && !stays)
		tw_dequeue_pending(ctx, t);
	trace_timerwheel_move(ctx->file, t, was);
	if (!stays)
		tw_enqueue(ctx, index, t);
	ctx->cpu->counts.moved++;
	return was;
}

/*
 * MOVE a timer that was looked up, and unlock its bucket. Returns TIMERWHEEL_WAS_* or a documented
 * error; -EAGAIN if a reader was faster: tw_start_over() was called.
 */
static __always_inline int tw_move_found(struct tw_ctx *ctx, struct tw_timer *t,
					 const struct tw_lookup *lookup, u64 deadline, u32 flags)
{
	int was = TIMERWHEEL_WAS_PENDING;

	if (flags & TIMERWHEEL_EXCL && lookup->state == TW_DUE) {
		tw_lookup_unlock(ctx, lookup);
		return -EEXIST;
	}
	/* TW_DUE may be outdated; tw_dequeue() checks it again. */
	if (lookup->state != TW_PENDING)
		was = tw_dequeue(ctx, t, lookup);
	if (was == -EAGAIN)
		return was;
	was = tw_set_deadline(ctx, lookup->index, t, deadline, flags, lookup->state, was);
	tw_lookup_unlock(ctx, lookup);
	return was;
}

/* Is MOVE with TIMERWHEEL_EXCL used in a wheel without a deadline table? */
static inline bool tw_move_excl_invalid(const struct tw_ctx *ctx, u32 flags)
{
	return flags & TIMERWHEEL_EXCL && !tw_pool_table(&ctx->file->table.pool);
}

/* MOVE. Returns TIMERWHEEL_WAS_*, a documented error, or -EAGAIN: see tw_ctx.wants. */
static __always_inline int tw_move(struct tw_ctx *ctx, void *elem, struct tw_hint hint)
{
	const struct timerwheel_move *arg = elem;
	struct tw_timer *t __uninitialized;	/* set if there is an index */
	u64 deadline;
	u32 index;

	if (unlikely(arg->flags & ~(TIMERWHEEL_ABS | TIMERWHEEL_MATCH | TIMERWHEEL_EXCL) ||
		     (arg->match && !(arg->flags & TIMERWHEEL_MATCH)) ||
		     tw_move_excl_invalid(ctx, arg->flags)))
		return -EINVAL;
	deadline = tw_clock_deadline(arg->deadline, arg->flags & TIMERWHEEL_ABS, ctx->now,
				     ctx->offset);
	index = tw_lookup_lockless(ctx, arg->key, hint.chain, &t);
	if (unlikely(!index))
		return tw_move_slow(ctx, arg, deadline, hint);
	if (arg->flags & TIMERWHEEL_MATCH && t->value != arg->match)
		return -ESTALE;
	return tw_set_deadline(ctx, index, t, deadline, arg->flags, TW_PENDING,
			       TIMERWHEEL_WAS_PENDING);
}

/*
 * REMOVE a timer that was looked up, but leave it in its hash chain. Returns TIMERWHEEL_WAS_*, and
 * tw_unhash_free() follows; -EAGAIN if a reader was faster: tw_start_over() was called, and the
 * bucket is unlocked.
 */
static __always_inline int tw_remove_found(struct tw_ctx *ctx, struct tw_timer *t,
					   const struct tw_lookup *lookup)
{
	int was = tw_dequeue(ctx, t, lookup);

	if (was == -EAGAIN)
		return was;
	if (unlikely(tw_pool_table(&ctx->file->table.pool)))
		was = tw_resident_end(&ctx->file->table.pool, lookup->index, t, was);
	if (unlikely(tw_timer_has_sock(t)))
		tw_sock_end(ctx, t);
	trace_timerwheel_remove(ctx->file, t, was);
	ctx->cpu->counts.removed++;
	return was;
}

/* REMOVE. Returns TIMERWHEEL_WAS_*, a documented error, or -EAGAIN: see tw_ctx.wants. */
static __always_inline int tw_remove(struct tw_ctx *ctx, void *elem, struct tw_hint hint)
{
	struct timerwheel_remove *arg = elem;
	struct tw_lookup lookup __uninitialized;
	struct tw_timer *t;
	int was;

	if (unlikely(arg->flags & ~TIMERWHEEL_MATCH ||
		     (arg->match && !(arg->flags & TIMERWHEEL_MATCH))))
		return -EINVAL;
	if (unlikely(!tw_lookup(ctx, arg->key, hint, &lookup, &t)))
		return -EAGAIN;
	if (!t) {
		tw_lookup_unlock(ctx, &lookup);
		return -ENOENT;
	}
	if (arg->flags & TIMERWHEEL_MATCH && t->value != arg->match) {
		tw_lookup_unlock(ctx, &lookup);
		return -ESTALE;
	}
	was = tw_remove_found(ctx, t, &lookup);
	if (was == -EAGAIN)
		return was;
	arg->value = t->value;
	arg->left = tw_time_left(ctx, t, was);
	tw_unhash_free(ctx, t, &lookup);
	return was;
}

/*
 * Update the deadline of a PENDING timer whose base is locked from its entry, @stored. Returns
 * TIMERWHEEL_WAS_PENDING or _PARKED.
 */
static inline int tw_deadline_stored(const struct tw_pool *pool, struct tw_timer *t, u64 stored)
{
	tw_deadline_apply(pool, t, stored);
	return tw_resident_cancelled(pool, t, stored) ? TIMERWHEEL_WAS_PARKED :
							TIMERWHEEL_WAS_PENDING;
}

/* The same, with the entry read here; sets @stored if there is a deadline table. */
static inline int tw_deadline_look(const struct tw_pool *pool, u32 index, struct tw_timer *t,
				   u64 *stored)
{
	u64 **deadlines = tw_pool_deadlines(pool);

	if (likely(!deadlines))
		return TIMERWHEEL_WAS_PENDING;
	*stored = READ_ONCE(*tw_deadline_entry(deadlines, index));
	return tw_deadline_stored(pool, t, *stored);
}

static inline u64 tw_entry_period(const struct tw_timer *t)
{
	return unlikely(tw_timer_has_sock(t)) ? t->sock->timeout : tw_timer_period(t);
}

static inline u32 tw_entry_flags(const struct tw_timer *t)
{
	if (tw_timer_has_sock(t))
		return TIMERWHEEL_ENTRY_SOCKET | (t->sock->grace_end ? TIMERWHEEL_ENTRY_GRACE : 0);
	return t->stay == TW_LINGERS ? TIMERWHEEL_LINGER : 0;
}

/* Describe a timer in @entry. It is PENDING in a locked base, PARKED, or DUE on a locked list. */
static inline void tw_fill_entry(const struct tw_ctx *ctx, struct tw_timer *t, u32 index, int was,
				 struct timerwheel_entry *entry)
{
	*entry = (struct timerwheel_entry) {
		.key = t->key,
		.value = t->value,
		.deadline = t->deadline + ctx->offset,
		.left = tw_time_left(ctx, t, was),
		.period = tw_entry_period(t),
		.slack = t->slack * ctx->file->setup.tick,
		.flags = unlikely(t->stay) ? tw_entry_flags(t) : 0,
		.result = was,
		.index = index,
		.generation = t->generation,
	};
}

/*
 * Describe a timer in @entry, and unlock its bucket. Returns TIMERWHEEL_WAS_PENDING, _DUE or
 * _PARKED; -EAGAIN if a reader was faster: tw_start_over() was called.
 */
static __always_inline int tw_get_unlock(struct tw_ctx *ctx, struct tw_timer *t,
					 const struct tw_lookup *lookup,
					 struct timerwheel_entry *entry)
{
	u64 stored;
	int was;

	if (lookup->state == TW_PENDING) {
		was = tw_deadline_look(&ctx->file->table.pool, lookup->index, t, &stored);
		tw_fill_entry(ctx, t, lookup->index, was, entry);
	} else if (unlikely(lookup->state == TW_PARKED)) {
		was = tw_was_parked(ctx);
		tw_fill_entry(ctx, t, lookup->index, was, entry);
	} else if (tw_lock_if_due(ctx, t)) {
		was = TIMERWHEEL_WAS_DUE;
		tw_fill_entry(ctx, t, lookup->index, was, entry);
		tw_events_unlock(ctx->file);
	} else {
		was = tw_start_over(ctx, READ_ONCE(t->cpu));
	}
	tw_lookup_unlock(ctx, lookup);
	return was;
}

/* GET. Returns TIMERWHEEL_WAS_*, a documented error, or -EAGAIN: see tw_ctx.wants. */
static __always_inline int tw_get(struct tw_ctx *ctx, void *elem, struct tw_hint hint)
{
	struct timerwheel_entry *arg = elem;
	struct tw_lookup lookup __uninitialized;
	struct tw_timer *t;

	if (arg->flags)
		return -EINVAL;
	if (unlikely(!tw_lookup(ctx, arg->key, hint, &lookup, &t)))
		return -EAGAIN;
	if (!t) {
		tw_lookup_unlock(ctx, &lookup);
		return -ENOENT;
	}
	return tw_get_unlock(ctx, t, &lookup, arg);
}

/* The hint for a single key; tw_ops_each() makes the hints for several. */
static __always_inline struct tw_hint tw_hint_of(const struct tw_ctx *ctx, u64 key)
{
	const struct tw_table *table = &ctx->file->table;
	u32 buckets = tw_table_buckets(table);

	return (struct tw_hint){ buckets, tw_table_chain(table, key, buckets) };
}

struct tw_timer *tw_lookup_index(struct tw_ctx *ctx, u32 index, struct tw_lookup *lookup);

#endif /* TW_OPS_H */
