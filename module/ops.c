// SPDX-License-Identifier: GPL-2.0-only
/* Operations on several timers by key, and on one timer by its index for LIST and DRAIN. */
#include <linux/err.h>
#include <linux/prefetch.h>
#include <linux/uaccess.h>

#include "internal.h"
#include "ops.h"

/**
 * tw_enqueue_due - make a timer due whose deadline has passed
 * @ctx: the batch context
 * @index: the timer's index
 * @t: the timer, on no list
 */
void tw_enqueue_due(struct tw_ctx *ctx, u32 index, struct tw_timer *t)
{
	struct tw_due_list due = { .first = index, .last = index, .count = 1 };
	struct tw_cpu *cpu = ctx->cpu;

	t->fired = ctx->now;
	t->next = 0;
	t->prev = 0;
	/* Pairs with the acquire in tw_timer_held(); litmus settled. */
	smp_store_release(&t->state, TW_DUE);
	cpu->wheel.expired++;
	tw_wheel_count_lateness(&cpu->wheel, ctx->now - t->deadline);
	ctx->wake_readers |= tw_events_add(cpu, &due, ctx->now);
	if (tw_has_ring(ctx->file))
		ctx->flow++;
}

/*
 * Find the hash chains of a chunk's keys, and prefetch all their buckets, then the first timer of
 * each chain. With many timers none of these is in a cache. Prefetching makes the misses overlap
 * instead of following one another.
 *
 * The chains are hints (struct tw_hint). The links that are read here without a lock are only used
 * to prefetch. @locks: the buckets will be locked, that is, written. @chain: set for @n elements.
 */
static noinline void tw_ops_prefetch(const struct tw_ctx *ctx, const void *elems, size_t size,
				     int n, u32 buckets, bool locks, u32 **chain)
{
	const struct tw_table *table = &ctx->file->table;
	u32 index;
	int i;

	for (i = 0; i < n; i++, elems += size) {
		chain[i] = tw_table_chain(table, *(const u64 *)elems, buckets);
		if (locks)
			prefetchw(chain[i]);
		else
			prefetch(chain[i]);
	}
	for (i = 0; i < n; i++) {
		/* Pairs with the release in tw_table_set_link(); litmus link. */
		index = smp_load_acquire(chain[i]);
		if (index)
			prefetchw(tw_timer_at(&table->pool, index));
	}
}

/*
 * Do the operation @op on @n elements of @size bytes, and set the result of each, which is at
 * offset @result. Returns the number of elements done. Inline, so that @op is inline, too.
 */
static __always_inline int tw_ops_each(struct tw_ctx *ctx, void *elem, int n, size_t size,
				       size_t result, bool locks,
				       int (*op)(struct tw_ctx *ctx, void *elem,
						 struct tw_hint hint))
{
	struct tw_hint hint = { tw_table_buckets(&ctx->file->table) };
	u32 *chain[TW_OPS_MAX] __uninitialized;
	int i, was;

	if (n > 1)
		tw_ops_prefetch(ctx, elem, size, n, hint.buckets, locks, chain);
	else
		chain[0] = tw_table_chain(&ctx->file->table, *(const u64 *)elem, hint.buckets);
	for (i = 0; i < n; i++, elem += size) {
		hint.chain = chain[i];
		was = op(ctx, elem, hint);
		if (unlikely(was == -EAGAIN))
			break;
		*(s32 *)(elem + result) = was;
	}
	return i;
}

/*
 * The calls. They do their operation on @n elements of struct @type, at most TW_OPS_MAX, set the
 * result of each, and after success its output. They return the number of elements done. If this is
 * less than @n, end the batch and continue with the next element in a batch that has the base of
 * @ctx->wants locked. If @ctx->wants is TW_NO_CPU, ADD has found no free timer: call
 * tw_table_grow() before.
 */
#define TW_OPS(name, type, locks)						\
int tw_ops_##name(struct tw_ctx *ctx, void *elems, int n)			\
{										\
	return tw_ops_each(ctx, elems, n, sizeof(struct type),			\
			   offsetof(struct type, result), locks, tw_##name);	\
}

TW_OPS(add, timerwheel_add, true)
TW_OPS(move, timerwheel_move, false)
TW_OPS(remove, timerwheel_remove, true)
TW_OPS(get, timerwheel_entry, true)

/**
 * tw_move_slow - MOVE of a timer that tw_lookup_lockless() did not find
 * @ctx: the batch context
 * @arg: the call's element
 * @deadline: its deadline on the file's clock
 * @hint: where its key's chain was
 *
 * Return: as tw_move().
 */
int tw_move_slow(struct tw_ctx *ctx, const struct timerwheel_move *arg, u64 deadline,
		 struct tw_hint hint)
{
	struct tw_lookup lookup __uninitialized;
	struct tw_timer *t;

	if (!tw_lookup(ctx, arg->key, hint, &lookup, &t))
		return -EAGAIN;
	if (!t) {
		tw_lookup_unlock(ctx, &lookup);
		return -ENOENT;
	}
	if (arg->flags & TIMERWHEEL_MATCH && t->value != arg->match) {
		tw_lookup_unlock(ctx, &lookup);
		return -ESTALE;
	}
	return tw_move_found(ctx, t, &lookup, deadline, arg->flags);
}

/**
 * tw_add_any - ADD with any flags and fields; the timer may be resident or watch a connection
 * @ctx: the batch context
 * @arg: the call's element; index and generation are set
 * @hint: where its key's chain was
 * @sock: the connection to watch, with a deadline in the future; NULL: none
 *
 * Return: as tw_add().
 */
int tw_add_any(struct tw_ctx *ctx, struct timerwheel_add *arg, struct tw_hint hint,
	       struct tw_sock *sock)
{
	return __tw_add(ctx, arg, hint, false, sock);
}

/**
 * tw_lookup_index - find a timer by its index, and lock its bucket
 * @ctx: the batch context
 * @index: an index that exists
 * @lookup: filled in, except the depth
 *
 * Return: the timer, with its base locked unless it is PARKED; NULL: no timer has that index;
 * ERR_PTR(-EAGAIN): the operation starts over in the next batch (tw_ctx.wants). The bucket is
 * locked only if a timer is returned.
 */
struct tw_timer *tw_lookup_index(struct tw_ctx *ctx, u32 index, struct tw_lookup *lookup)
{
	struct tw_table *table = &ctx->file->table;
	struct tw_timer *t = tw_timer_at(&table->pool, index);
	u8 state;
	u64 key;
	u32 buckets, nr;
	bool held;

	lookup->index = index;
	/* Read without a lock, to find the bucket to lock; checked again under that lock. */
	state = READ_ONCE(t->state);
	if (state == TW_FREE || state == TW_CLAIMED)
		return NULL;
	key = READ_ONCE(t->key);
	buckets = tw_table_buckets(table);
	lookup->chain = tw_table_chain(table, key, buckets);
	lookup->bucket = tw_table_lock(table, key, buckets, &lookup->chain);
	/*
	 * The state first, with acquire: a timer that was freed may get another owner at any time.
	 * The owner's key may be in another bucket, and the owner may park the timer. Then the key
	 * has also changed.
	 */
	held = tw_timer_held(ctx, t, &lookup->state, &nr);
	if (READ_ONCE(t->key) != key) {
		tw_lookup_unlock(ctx, lookup);
		return ERR_PTR(tw_start_over(ctx, ctx->cpu->nr));
	}
	if (unlikely(!held && lookup->state != TW_PARKED)) {
		tw_lookup_unlock(ctx, lookup);
		return ERR_PTR(tw_start_over(ctx, nr));
	}
	if (lookup->state == TW_PENDING || lookup->state == TW_DUE ||
	    lookup->state == TW_PARKED) {
		lookup->link = tw_table_link_to(table, lookup->chain, index);
		return t;
	}
	tw_lookup_unlock(ctx, lookup);
	return NULL;
}

/**
 * tw_get_index - describe a timer by its index
 * @ctx: the batch context
 * @index: an index that exists
 * @entry: filled in
 *
 * Return: TIMERWHEEL_WAS_PENDING, _DUE or _PARKED; -ENOENT: no timer has that index; -EAGAIN: see
 * tw_ctx.wants.
 */
int tw_get_index(struct tw_ctx *ctx, u32 index, struct timerwheel_entry *entry)
{
	struct tw_lookup lookup __uninitialized;
	struct tw_timer *t;

	t = tw_lookup_index(ctx, index, &lookup);
	if (IS_ERR_OR_NULL(t))
		return t ? PTR_ERR(t) : -ENOENT;
	return tw_get_unlock(ctx, t, &lookup, entry);
}

/* Describe a timer in user memory, without sleeping. As tw_fill_entry(). */
static int tw_copy_entry(const struct tw_ctx *ctx, struct tw_timer *t, u32 index, int was,
			 struct timerwheel_entry __user *to)
{
	struct timerwheel_entry entry;

	tw_fill_entry(ctx, t, index, was, &entry);
	return copy_to_user_nofault(to, &entry, sizeof(entry));
}

/*
 * Copy the description of a PENDING timer out and take the timer out of its wheel, or do neither.
 * With a deadline table the description must still be right when the entry is taken. If programs
 * change the entry meanwhile, it is first taken from them, and given back after a fault.
 */
static int tw_drain_pending(struct tw_ctx *ctx, struct tw_timer *t, u32 index, int *was,
			    struct timerwheel_entry __user *to)
{
	const struct tw_pool *pool = &ctx->file->table.pool;
	u64 stored;

	*was = tw_deadline_look(pool, index, t, &stored);
	if (tw_copy_entry(ctx, t, index, *was, to))
		return -EFAULT;
	if (tw_pool_table(pool) && !tw_resident_take(pool, index, stored)) {
		stored = tw_resident_seize(pool, index, t);
		*was = tw_deadline_stored(pool, t, stored);
		if (tw_copy_entry(ctx, t, index, *was, to)) {
			tw_resident_release(pool, index, stored);
			return -EFAULT;
		}
		tw_resident_release(pool, index, 0);
	}
	tw_dequeue_pending(ctx, t);
	return 0;
}

/**
 * tw_drain_index - copy the description of a timer out and remove the timer, or neither
 * @ctx: the batch context
 * @index: an index that exists
 * @to: destination of its description
 *
 * The description is copied out first, so that a fault loses nothing.
 *
 * Return: TIMERWHEEL_WAS_PENDING, _DUE or _PARKED; -ENOENT: no timer has that index; -EFAULT: @to
 * cannot be written without sleeping; -EAGAIN: see tw_ctx.wants. An error has no effect.
 */
int tw_drain_index(struct tw_ctx *ctx, u32 index, struct timerwheel_entry __user *to)
{
	struct tw_file *file = ctx->file;
	struct tw_lookup lookup __uninitialized;
	struct tw_timer *t;
	int was, err;

	t = tw_lookup_index(ctx, index, &lookup);
	if (IS_ERR_OR_NULL(t))
		return t ? PTR_ERR(t) : -ENOENT;
	if (lookup.state == TW_PENDING) {
		err = tw_drain_pending(ctx, t, index, &was, to);
	} else if (lookup.state == TW_PARKED) {
		was = tw_was_parked(ctx);
		err = tw_copy_entry(ctx, t, index, was, to);
		if (!err)
			ctx->cpu->wheel.parked--;
	} else if (tw_lock_if_due(ctx, t)) {
		was = TIMERWHEEL_WAS_DUE;
		err = tw_copy_entry(ctx, t, index, was, to);
		if (!err)
			tw_events_unlink(ctx, t);
		tw_events_unlock(file);
	} else {
		tw_lookup_unlock(ctx, &lookup);
		return tw_start_over(ctx, READ_ONCE(t->cpu));
	}
	if (err) {
		tw_lookup_unlock(ctx, &lookup);
		return -EFAULT;
	}
	/* The kernel owns the entry of a due or parked timer. */
	if (tw_pool_table(&file->table.pool) && lookup.state != TW_PENDING)
		tw_resident_end(&file->table.pool, index, t, was);
	if (unlikely(tw_timer_has_sock(t)))
		tw_sock_end(ctx, t);
	trace_timerwheel_remove(file, t, was);
	tw_unhash_free(ctx, t, &lookup);
	ctx->cpu->counts.drained++;
	return was;
}
