// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls on an array of timers that the caller fills in: ADD, MOVE, REMOVE, GET, and MOVE and REMOVE
 * by handle.
 *
 * A call processes the array in chunks that fit a buffer on the stack. It copies a chunk in,
 * performs its operations, usually in one batch (with the base's lock held), and copies the results
 * out.
 *
 * If the output of an element cannot be written when the element is copied in, its operation does
 * not begin. To check this, the copy-in writes the first and the last u64 of each element's output
 * back unchanged. This is sufficient, because an element is in at most two pages. If another thread
 * unmaps the memory later, the operation takes effect and its results are lost.
 */
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "clock.h"
#include "internal.h"
#include "ops.h"
#include "run.h"

/* Size of the buffer in u64. It is large, so that many elements share the cost of a batch. */
#define TW_BUFFER_LEN	192U

/* Elements in a chunk: the number that fits the buffer and a call of tw_ops_add() and so on. */
#define TW_CHUNK(type)								\
	(TW_BUFFER_LEN * sizeof(u64) / sizeof(type) < TW_OPS_MAX ?		\
	 TW_BUFFER_LEN * sizeof(u64) / sizeof(type) : TW_OPS_MAX)

/* The longest element, in u64. */
#define TW_ELEM_LEN	8U

static_assert(sizeof(struct timerwheel_add) <= TW_ELEM_LEN * sizeof(u64));
static_assert(sizeof(struct timerwheel_entry) <= TW_ELEM_LEN * sizeof(u64));

/**
 * struct tw_kind - one of the calls
 * @len: length of an element, in u64
 * @out: index of the first u64 that is written back, together with all that follow
 * @result: offset of the result, in bytes
 * @most: elements in a chunk
 * @many: does the operation on several elements; returns the number done
 */
struct tw_kind {
	unsigned int len;
	unsigned int out;
	unsigned int result;
	unsigned int most;
	int (*many)(struct tw_ctx *ctx, void *elems, int n);
};

/*
 * Copy @n elements in, and check that their output can be written. Returns the number of elements
 * before the first fault. Only these are set in @buf.
 *
 * The compiler must unroll the inner loops here and in tw_elems_write(). clang does so where it
 * can, without a pragma. With a pragma, clang before 17 warns, because it cannot unroll loops with
 * the gotos of unsafe_put_user().
 */
static __always_inline unsigned int tw_elems_read(const struct tw_kind *kind, u64 *buf,
						  u64 __user *from, unsigned int n)
{
	unsigned int i, w;

	if (!user_access_begin(from, n * kind->len * sizeof(u64)))
		return 0;
	for (i = 0; i < n; i++) {
#ifndef CONFIG_CC_IS_CLANG
#pragma GCC unroll 8
#endif
		for (w = 0; w < kind->len; w++)
			unsafe_get_user(buf[w], from + w, fault);
		unsafe_put_user(buf[kind->out], from + kind->out, fault);
		if (kind->out != kind->len - 1)
			unsafe_put_user(buf[kind->len - 1], from + kind->len - 1, fault);
		buf += kind->len;
		from += kind->len;
	}
	user_access_end();
	return n;
fault:
	user_access_end();
	return i;
}

/* Copy the output of @n elements out. The operations took effect, so a fault is not an error. */
static __always_inline void tw_elems_write(const struct tw_kind *kind, const u64 *buf,
					   u64 __user *to, unsigned int n)
{
	unsigned int w;

	if (!user_access_begin(to, n * kind->len * sizeof(u64)))
		return;
	while (n--) {
#ifndef CONFIG_CC_IS_CLANG
#pragma GCC unroll 8
#endif
		for (w = kind->out; w < kind->len; w++)
			unsafe_put_user(buf[w], to + w, fault);
		buf += kind->len;
		to += kind->len;
	}
fault:
	user_access_end();
}

/*
 * Does a signal end a call early? Tasks that run io_uring commands often have pending work
 * (TIF_NOTIFY_SIGNAL), which signal_pending() reports as a signal. For them only a fatal signal
 * counts.
 */
static __always_inline bool tw_batch_interrupted(u32 flags)
{
	if (likely(!signal_pending(current)))
		return false;
	return !(flags & TW_BATCH_KILLABLE) || fatal_signal_pending(current);
}

/*
 * Perform the operations of a chunk. Returns the number of operations, or an error if there are
 * none.
 *
 * A batch ends where an operation needs the base of another CPU; the next batch locks that base. If
 * keys alternate between CPUs, a batch performs a single operation. But a batch looks up the hash
 * chains of all its elements before it begins with the first. Therefore the next batch gets few
 * more elements than the previous one has processed.
 *
 * Each failing allocation makes the kernel search all memory several times, and a call may have
 * 65,536 elements. Therefore, after the first -ENOMEM (@no_memory) the rest of the call fails
 * without trying to allocate.
 *
 * Once some elements are done, the call must not fail with -EAGAIN (TW_BATCH_NOWAIT), or the caller
 * would repeat them. It waits for memory instead.
 *
 * Other tasks may take the free timers of a full wheel, or move a timer to another base, each time
 * this call tries again. Therefore a signal ends the call between two batches, but only a fatal
 * signal if nothing was done.
 */
static __always_inline int tw_batch_chunk(const struct tw_kind *kind, struct tw_file *file,
					  u64 *buf, int n, u64 offset, u32 flags, bool *no_memory)
{
	struct tw_ctx ctx __uninitialized;
	int err, done, most = n, i = 0;
	u32 other = TW_NO_CPU;

	while (i < n) {
		err = tw_cpu_begin_with(&ctx, file, offset, other);
		if (err)
			return i ? i : err;
		ctx.flags = flags;
		most = min(most, n - i);
		done = kind->many(&ctx, buf, most);
		tw_cpu_end(&ctx);
		i += done;
		buf += done * kind->len;
		if (likely(i == n))
			break;
		if (done < most)
			other = ctx.wants;
		if (other != TW_NO_CPU) {
			most = 2 * done + 2;
		} else {
			if (!i && flags & TW_BATCH_NOWAIT)
				return -EAGAIN;
			/* ADD found no free timer: create timers and try again, or fail. */
			err = *no_memory ? -ENOMEM : tw_table_grow(file);
			*no_memory = err == -ENOMEM;
			if (err) {
				*(s32 *)((void *)buf + kind->result) = err;
				buf += kind->len;
				i++;
			}
			most = n;
		}
		if (i ? tw_batch_interrupted(flags) : fatal_signal_pending(current))
			return i ? i : -EINTR;
		cond_resched();
	}
	return n;
}

static __always_inline long tw_batch_many(const struct tw_kind *kind, struct tw_file *file,
					  const struct timerwheel_batch *batch)
{
	u64 __user *user = u64_to_user_ptr(batch->elems);
	u64 offset = tw_clock_offset(READ_ONCE(file->setup.clock));
	unsigned int want, got;
	u64 buf[TW_BUFFER_LEN] __uninitialized;	/* 1.5 kB, not zeroed in each call */
	u32 flags = batch->flags;
	bool no_memory = false;
	long done = 0;		/* signed, as errors are */
	int n;

	while (done < batch->count) {
		want = min_t(u32, batch->count - done, kind->most);
		got = tw_elems_read(kind, buf, user, want);
		if (!got)
			return done ? done : -EFAULT;
		n = tw_batch_chunk(kind, file, buf, got, offset, flags, &no_memory);
		if (n < 0)
			return done ? done : n;
		flags &= ~TW_BATCH_NOWAIT;
		tw_elems_write(kind, buf, user, n);
		done += n;
		user += n * kind->len;
		if (n < want || done == batch->count || tw_batch_interrupted(flags))
			break;
		cond_resched();
	}
	return done;
}

/*
 * A call on one element: as tw_batch_many(), but without its loops, which saves a twentieth of the
 * cost. Returns -EAGAIN if nothing was done, because there is no free timer at hand or the timer is
 * in another CPU's base.
 */
static __always_inline long tw_batch_one(const struct tw_kind *kind, struct tw_file *file,
					 const struct timerwheel_batch *batch)
{
	u64 __user *user = u64_to_user_ptr(batch->elems);
	u64 elem[TW_ELEM_LEN] __uninitialized;
	struct tw_ctx ctx __uninitialized;
	int err, done;

	if (!tw_elems_read(kind, elem, user, 1))
		return -EFAULT;
	err = tw_cpu_begin(&ctx, file, tw_clock_offset(READ_ONCE(file->setup.clock)));
	if (unlikely(err))
		return err;
	ctx.flags = batch->flags;
	done = kind->many(&ctx, elem, 1);
	tw_cpu_end(&ctx);
	if (unlikely(!done))
		return -EAGAIN;
	tw_elems_write(kind, elem, user, 1);
	return 1;
}

/*
 * tw_batch_NAME(): the function of a call, NAME. tw_batch_many() is not inlined there, because a
 * call on one element should not have its large stack frame.
 *
 * Context: process, may sleep; the fields of @batch were checked.
 * Return: the number of processed elements, or an error if there are none.
 */
#define TW_BATCH_CALL(name, type, first_out)						\
static const struct tw_kind tw_##name##_kind = {					\
	.len = sizeof(struct type) / sizeof(u64),					\
	.out = offsetof(struct type, first_out) / sizeof(u64),				\
	.result = offsetof(struct type, result),					\
	.most = TW_CHUNK(struct type),							\
	.many = tw_ops_##name,								\
};											\
											\
static noinline long tw_many_##name(struct tw_file *file,				\
				    const struct timerwheel_batch *batch)		\
{											\
	return tw_batch_many(&tw_##name##_kind, file, batch);				\
}											\
											\
long tw_batch_##name(struct tw_file *file, const struct timerwheel_batch *batch)	\
{											\
	long done = -EAGAIN;								\
											\
	if (batch->count == 1)								\
		done = tw_batch_one(&tw_##name##_kind, file, batch);			\
	return done == -EAGAIN ? tw_many_##name(file, batch) : done;			\
}

TW_BATCH_CALL(add, timerwheel_add, flags)
TW_BATCH_CALL(move, timerwheel_move, flags)
TW_BATCH_CALL(remove, timerwheel_remove, value)
TW_BATCH_CALL(get, timerwheel_entry, key)
TW_BATCH_CALL(move_handle, timerwheel_move_handle, index)
TW_BATCH_CALL(remove_handle, timerwheel_remove_handle, value)
