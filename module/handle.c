// SPDX-License-Identifier: GPL-2.0-only
/*
 * MOVE and REMOVE by handle: the index of a timer and its generation, both from ADD.
 *
 * With a key, an operation must hash the key, find its chain and compare the keys in the chain. An
 * index leads directly to the memory of a timer, and the generation shows whether it is still the
 * same timer.
 *
 * Both are read without a lock. If the timer is PENDING in a locked base, all its fields are
 * stable: see tw_lookup_lockless(). Otherwise it is looked up again by its index, with its bucket
 * locked.
 */
#include <linux/bottom_half.h>
#include <linux/err.h>
#include <linux/nospec.h>
#include <linux/prefetch.h>

#include "internal.h"
#include "ops.h"

/* All elements have the handle and the result in the same places. */
static_assert(offsetof(struct timerwheel_move_handle, index) ==
	      offsetof(struct timerwheel_remove_handle, index));
static_assert(offsetof(struct timerwheel_move_handle, generation) ==
	      offsetof(struct timerwheel_remove_handle, generation));
static_assert(offsetof(struct timerwheel_move_handle, result) ==
	      offsetof(struct timerwheel_remove_handle, result));
static_assert(sizeof(struct timerwheel_move_handle) == sizeof(struct timerwheel_remove_handle));

/*
 * The index of a handle; 0 if the index does not exist, even under speculation. No timer has index
 * 0, but its memory exists if there are timers, and its state is TW_FREE. @most: tw_index_max(),
 * not 0.
 */
static __always_inline u32 tw_handle_index(u32 index, u32 most)
{
	return array_index_nospec(index, most + 1);
}

/* Find the timers of all elements (@timer), and prefetch them. */
static __always_inline void tw_handles_prefetch(const struct tw_ctx *ctx,
						const struct timerwheel_move_handle *elem, int n,
						u32 most, struct tw_timer **timer)
{
	for (; n--; elem++, timer++) {
		*timer = tw_timer_at(&ctx->file->table.pool,
				     tw_handle_index(elem->index, most));
		prefetchw(*timer);
	}
}

/* Fail all elements. Returns their number. */
static noinline int tw_handles_fail(struct timerwheel_move_handle *elem, int n, int err)
{
	int i;

	for (i = 0; i < n; i++)
		elem[i].result = err;
	return n;
}

/* Does the handle name this timer, and is the timer PENDING in a locked base (so it is stable)? */
static __always_inline bool tw_handle_pending(const struct tw_ctx *ctx, const struct tw_timer *t,
					      u32 generation)
{
	u32 nr;
	u8 state;

	return tw_timer_held(ctx, t, &state, &nr) && state == TW_PENDING &&
	       t->generation == generation;
}

/* tw_lookup_index() for the timer of a handle. */
static struct tw_timer *tw_lookup_handle(struct tw_ctx *ctx, u32 index, u32 generation,
					 struct tw_lookup *lookup)
{
	struct tw_timer *t = tw_lookup_index(ctx, index, lookup);

	if (!IS_ERR_OR_NULL(t) && t->generation != generation) {
		tw_lookup_unlock(ctx, lookup);
		return NULL;
	}
	return t;
}

static noinline int tw_move_handle_slow(struct tw_ctx *ctx, u32 index, u32 generation,
					u64 deadline)
{
	struct tw_lookup lookup __uninitialized;
	struct tw_timer *t = tw_lookup_handle(ctx, index, generation, &lookup);

	if (IS_ERR_OR_NULL(t))
		return t ? PTR_ERR(t) : -ENOENT;
	return tw_move_found(ctx, t, &lookup, deadline, ctx->flags);
}

/* MOVE. @index, @t: the timer of the handle, if the handle is still valid. */
static __always_inline int tw_move_handle(struct tw_ctx *ctx, void *arg, u32 index,
					  struct tw_timer *t)
{
	const struct timerwheel_move_handle *elem = arg;
	u64 deadline = tw_clock_deadline(elem->deadline, ctx->flags & TIMERWHEEL_ABS, ctx->now,
					 ctx->offset);

	if (unlikely(!tw_handle_pending(ctx, t, elem->generation)))
		return tw_move_handle_slow(ctx, index, elem->generation, deadline);
	return tw_set_deadline(ctx, index, t, deadline, ctx->flags, TW_PENDING,
			       TIMERWHEEL_WAS_PENDING);
}

static noinline int tw_remove_handle_slow(struct tw_ctx *ctx,
					  struct timerwheel_remove_handle *elem, u32 index)
{
	struct tw_lookup lookup __uninitialized;
	struct tw_timer *t = tw_lookup_handle(ctx, index, elem->generation, &lookup);
	int was;

	if (IS_ERR_OR_NULL(t))
		return t ? PTR_ERR(t) : -ENOENT;
	was = tw_remove_found(ctx, t, &lookup);
	if (was == -EAGAIN)
		return was;
	elem->value = t->value;
	tw_unhash_free(ctx, t, &lookup);
	return was;
}

/* REMOVE. @index, @t: as in tw_move_handle(). */
static __always_inline int tw_remove_handle(struct tw_ctx *ctx, void *arg, u32 index,
					    struct tw_timer *t)
{
	struct timerwheel_remove_handle *elem = arg;
	struct tw_table *table = &ctx->file->table;
	struct tw_lookup lookup __uninitialized;
	int was;

	/* Only a one-shot timer has a link to its chain. */
	if (unlikely(!tw_handle_pending(ctx, t, elem->generation) || t->stay != TW_ENDS))
		return tw_remove_handle_slow(ctx, elem, index);
	lookup.bucket = tw_table_lock_timer(table, t, &lookup.chain);
	lookup.link = tw_table_link_to(table, lookup.chain, index);
	lookup.index = index;
	lookup.state = TW_PENDING;
	was = tw_remove_found(ctx, t, &lookup);
	elem->value = t->value;
	tw_unhash_free(ctx, t, &lookup);
	return was;
}

/* Do the operation @op on @n elements, as tw_ops_each() does. */
static __always_inline int tw_handles_each(struct tw_ctx *ctx, struct timerwheel_move_handle *elem,
					   int n, int (*op)(struct tw_ctx *ctx, void *arg,
							    u32 index, struct tw_timer *t))
{
	struct tw_timer *timer[TW_OPS_MAX] __uninitialized;
	u32 most = tw_index_max(&ctx->file->table);
	int i, result;

	if (unlikely(!most))
		return tw_handles_fail(elem, n, -ENOENT);
	tw_handles_prefetch(ctx, elem, n, most, timer);
	for (i = 0; i < n; i++, elem++) {
		result = op(ctx, elem, tw_handle_index(elem->index, most), timer[i]);
		if (unlikely(result == -EAGAIN))
			break;
		elem->result = result;
	}
	return i;
}

/**
 * tw_ops_move_handle - MOVE_HANDLE: give timers new deadlines
 * @ctx: the batch context, with the flags of the call
 * @elems: array of struct timerwheel_move_handle; the result of each is set
 * @n: number of elements, at most TW_OPS_MAX
 *
 * Return: as tw_ops_move().
 */
int tw_ops_move_handle(struct tw_ctx *ctx, void *elems, int n)
{
	if (unlikely(tw_move_excl_invalid(ctx, ctx->flags)))
		return tw_handles_fail(elems, n, -EINVAL);
	return tw_handles_each(ctx, elems, n, tw_move_handle);
}

/**
 * tw_ops_remove_handle - REMOVE_HANDLE: disarm timers
 * @ctx: the batch context
 * @elems: array of struct timerwheel_remove_handle; the result of each is set, and after success
 *	its value
 * @n: number of elements, at most TW_OPS_MAX
 *
 * Return: as tw_ops_move().
 */
int tw_ops_remove_handle(struct tw_ctx *ctx, void *elems, int n)
{
	return tw_handles_each(ctx, elems, n, tw_remove_handle);
}
