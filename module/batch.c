// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls on an array of timers that the caller fills in: ADD, MOVE, REMOVE, GET.
 *
 * The array is walked through a small buffer on the stack: a chunk is read, its operations
 * are done in one run (one hold of the CPU part's lock), their results are written.
 * While it is read, the first and the last word that will be written of each element are written
 * once with what they held (an element is in two pages at most): so one whose results could
 * not be told is not begun.
 */
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "clock.h"
#include "internal.h"
#include "ops.h"
#include "run.h"

/* Elements are arrays of these. */
#define TW_WORD		sizeof(u64)

/* Size of the buffer: the longer the runs, the less their begin and end matter. */
#define TW_WORDS	192U

/* Words of the longest element. */
#define TW_WORDS_MOST	8U

static_assert(sizeof(struct timerwheel_add) <= TW_WORDS_MOST * TW_WORD);
static_assert(sizeof(struct timerwheel_entry) <= TW_WORDS_MOST * TW_WORD);
static_assert(TW_WORDS / (sizeof(struct timerwheel_move) / TW_WORD) <= TW_OPS_MAX);

/**
 * struct tw_kind - what is special about one of the calls
 * @words: length of an element, in u64
 * @out: the first of the words that are written back; all from there to the end are
 * @result: offset of the result, in bytes
 * @run: does the operation on some elements
 * @one: does it on one
 */
struct tw_kind {
	unsigned int words;
	unsigned int out;
	unsigned int result;
	int (*run)(struct tw_ctx *ctx, void *elems, int n);
	int (*one)(struct tw_ctx *ctx, void *elem);
};

#define TW_KIND(type, first_out, operation) {				\
	.words = sizeof(struct type) / TW_WORD,				\
	.out = offsetof(struct type, first_out) / TW_WORD,		\
	.result = offsetof(struct type, result),			\
	.run = tw_ops_##operation,					\
	.one = tw_one_##operation,					\
}

/* Read @n elements and see that they can be written. Returns how many are fine. */
static __always_inline unsigned int tw_read(const struct tw_kind *kind, u64 *buf,
					    u64 __user *from, unsigned int n)
{
	unsigned int i, w;

	if (!user_access_begin(from, n * kind->words * TW_WORD))
		return 0;
	for (i = 0; i < n; i++) {
#pragma GCC unroll 8
		for (w = 0; w < kind->words; w++)
			unsafe_get_user(buf[w], from + w, fault);
		unsafe_put_user(buf[kind->out], from + kind->out, fault);
		if (kind->out != kind->words - 1)
			unsafe_put_user(buf[kind->words - 1], from + kind->words - 1, fault);
		buf += kind->words;
		from += kind->words;
	}
	user_access_end();
	return n;
fault:
	user_access_end();
	return i;
}

/* Write back what @n elements have to tell. */
static __always_inline void tw_write(const struct tw_kind *kind, const u64 *buf,
				     u64 __user *to, unsigned int n)
{
	unsigned int w;

	if (!user_access_begin(to, n * kind->words * TW_WORD))
		return;
	while (n--) {
#pragma GCC unroll 8
		for (w = kind->out; w < kind->words; w++)
			unsafe_put_user(buf[w], to + w, fault);
		buf += kind->words;
		to += kind->words;
	}
fault:
	user_access_end();
}

/*
 * Do the operations of a chunk. Returns how many were done, or -ENOMEM if none. Each vain request
 * for memory has the kernel search all there is, some times, so that after the first one
 * (@no_memory) a call asks for none: it may have 65,536 elements.
 */
static __always_inline int tw_chunk(const struct tw_kind *kind, struct tw_file *file,
				    u64 *buf, int n, u64 offset, bool *no_memory)
{
	struct tw_ctx ctx __uninitialized;
	int err, done, i = 0;

	while (i < n) {
		err = tw_cpu_begin(&ctx, file, offset);
		if (err)
			return i ? i : err;
		done = kind->run(&ctx, buf, n - i);
		tw_cpu_end(&ctx);
		i += done;
		buf += done * kind->words;
		if (i < n) {
			/* An ADD found no free timer: make more and try again, or fail. */
			err = *no_memory ? -ENOMEM : tw_table_grow(file);
			*no_memory = err == -ENOMEM;
			if (err) {
				*(s32 *)((void *)buf + kind->result) = err;
				buf += kind->words;
				i++;
			}
		}
	}
	return n;
}

/* A call on many: with a large frame, so not part of a call on one. */
static __always_inline long tw_many(const struct tw_kind *kind, struct tw_file *file,
				    const struct timerwheel_batch *batch)
{
	u64 __user *user = u64_to_user_ptr(batch->elems);
	u64 offset = tw_clock_offset(READ_ONCE(file->setup.clock));
	unsigned int want, got;
	u64 buf[TW_WORDS] __uninitialized;	/* not to be zeroed for each call */
	bool no_memory = false;
	long done = 0;		/* signed, as errors are */
	int n;

	while (done < batch->count) {
		want = min_t(u32, batch->count - done, TW_WORDS / kind->words);
		got = tw_read(kind, buf, user, want);
		if (!got)
			return done ? done : -EFAULT;
		n = tw_chunk(kind, file, buf, got, offset, &no_memory);
		if (n < 0)
			return done ? done : n;
		tw_write(kind, buf, user, n);
		done += n;
		user += n * kind->words;
		if (n < want || done == batch->count || signal_pending(current))
			break;
		cond_resched();
	}
	return done;
}

/*
 * A call on one: the same with nothing to repeat, so that hardly anything is left of it. Returns
 * -EAGAIN if there is no free timer at hand: nothing was done.
 */
static __always_inline long tw_one(const struct tw_kind *kind, struct tw_file *file,
				   const struct timerwheel_batch *batch)
{
	u64 __user *user = u64_to_user_ptr(batch->elems);
	u64 elem[TW_WORDS_MOST] __uninitialized;
	struct tw_ctx ctx __uninitialized;
	int err;

	if (!tw_read(kind, elem, user, 1))
		return -EFAULT;
	err = tw_cpu_begin(&ctx, file, tw_clock_offset(READ_ONCE(file->setup.clock)));
	if (unlikely(err))
		return err;
	err = kind->one(&ctx, elem);
	tw_cpu_end(&ctx);
	if (unlikely(err == -EAGAIN))
		return err;
	*(s32 *)((void *)elem + kind->result) = err;
	tw_write(kind, elem, user, 1);
	return 1;
}

static __always_inline int tw_one_add(struct tw_ctx *ctx, void *elem)
{
	struct timerwheel_add *add = elem;

	return tw_add(ctx, add, tw_hint_of(ctx, add->key));
}

static const struct tw_kind tw_add_kind = TW_KIND(timerwheel_add, flags, add);

static noinline long tw_many_add(struct tw_file *file, const struct timerwheel_batch *batch)
{
	return tw_many(&tw_add_kind, file, batch);
}

/**
 * tw_batch_add - TIMERWHEEL_IOC_ADD
 * @file: the file
 * @batch: the call, its fields checked
 *
 * Context: process, may sleep.
 * Return: elements done, or an error if there are none.
 */
long tw_batch_add(struct tw_file *file, const struct timerwheel_batch *batch)
{
	long done = -EAGAIN;

	if (batch->count == 1)
		done = tw_one(&tw_add_kind, file, batch);
	return done == -EAGAIN ? tw_many_add(file, batch) : done;
}

static __always_inline int tw_one_move(struct tw_ctx *ctx, void *elem)
{
	struct timerwheel_move *move = elem;

	return tw_move(ctx, move, tw_hint_of(ctx, move->key));
}

static const struct tw_kind tw_move_kind = TW_KIND(timerwheel_move, flags, move);

static noinline long tw_many_move(struct tw_file *file, const struct timerwheel_batch *batch)
{
	return tw_many(&tw_move_kind, file, batch);
}

/**
 * tw_batch_move - TIMERWHEEL_IOC_MOVE
 * @file: the file
 * @batch: the call, its fields checked
 *
 * Context: process, may sleep.
 * Return: elements done, or an error if there are none.
 */
long tw_batch_move(struct tw_file *file, const struct timerwheel_batch *batch)
{
	if (batch->count == 1)
		return tw_one(&tw_move_kind, file, batch);
	return tw_many_move(file, batch);
}

static __always_inline int tw_one_remove(struct tw_ctx *ctx, void *elem)
{
	struct timerwheel_remove *remove = elem;

	return tw_remove(ctx, remove, tw_hint_of(ctx, remove->key));
}

static const struct tw_kind tw_remove_kind = TW_KIND(timerwheel_remove, value, remove);

static noinline long tw_many_remove(struct tw_file *file, const struct timerwheel_batch *batch)
{
	return tw_many(&tw_remove_kind, file, batch);
}

/**
 * tw_batch_remove - TIMERWHEEL_IOC_REMOVE
 * @file: the file
 * @batch: the call, its fields checked
 *
 * Context: process, may sleep.
 * Return: elements done, or an error if there are none.
 */
long tw_batch_remove(struct tw_file *file, const struct timerwheel_batch *batch)
{
	if (batch->count == 1)
		return tw_one(&tw_remove_kind, file, batch);
	return tw_many_remove(file, batch);
}

static __always_inline int tw_one_get(struct tw_ctx *ctx, void *elem)
{
	struct timerwheel_entry *entry = elem;

	return tw_get(ctx, entry, tw_hint_of(ctx, entry->key));
}

static const struct tw_kind tw_get_kind = TW_KIND(timerwheel_entry, key, get);

static noinline long tw_many_get(struct tw_file *file, const struct timerwheel_batch *batch)
{
	return tw_many(&tw_get_kind, file, batch);
}

/**
 * tw_batch_get - TIMERWHEEL_IOC_GET
 * @file: the file
 * @batch: the call, its fields checked
 *
 * Context: process, may sleep.
 * Return: elements done, or an error if there are none.
 */
long tw_batch_get(struct tw_file *file, const struct timerwheel_batch *batch)
{
	if (batch->count == 1)
		return tw_one(&tw_get_kind, file, batch);
	return tw_many_get(file, batch);
}

/*
 * Read an element that is not of the size it has today, and see that it can be written. Of a longer
 * one the unknown part must be zero, or, where all is output (GET), becomes that.
 */
static int tw_strided_read(const struct tw_kind *kind, void *elem, void __user *from, size_t size)
{
	size_t known = kind->words * TW_WORD, out = kind->out * TW_WORD;
	int err = 0;

	if (!out && size > known && clear_user(from + known, size - known))
		return -EFAULT;
	err = copy_struct_from_user(elem, known, from, out ? size : min(size, known));
	if (!err && copy_to_user(from + out, elem + out, min(size, known) - out))
		err = -EFAULT;
	return err;
}

/*
 * A call on elements that are not of the size they have today: one at a time. One that cannot be
 * understood is not begun.
 */
static noinline long tw_strided(const struct tw_kind *kind, struct tw_file *file,
				const struct timerwheel_batch *batch)
{
	size_t size = batch->elem_size, out = kind->out * TW_WORD;
	size_t both = min(size, kind->words * TW_WORD);
	void __user *user = u64_to_user_ptr(batch->elems);
	u64 offset = tw_clock_offset(READ_ONCE(file->setup.clock));
	u64 elem[TW_WORDS_MOST] __uninitialized;
	bool no_memory = false;
	long done = 0;		/* signed, as errors are */
	int n;

	while (done < batch->count) {
		n = tw_strided_read(kind, elem, user, size);
		if (!n)
			n = tw_chunk(kind, file, elem, 1, offset, &no_memory);
		if (n < 0)
			return done ? done : n;
		done++;
		/* What was done stays done: see tw_call_any_size(). */
		if (copy_to_user(user + out, (void *)elem + out, both - out))
			break;
		user += size;
		if (done == batch->count || signal_pending(current))
			break;
		cond_resched();
	}
	return done;
}

/**
 * tw_strided_add - tw_batch_add() on elements of another size
 * @file: the file
 * @batch: the call, its fields checked
 *
 * Context: process, may sleep.
 * Return: elements done, or an error if there are none; -E2BIG: something is set in the part of
 * the first that is not known.
 */
long tw_strided_add(struct tw_file *file, const struct timerwheel_batch *batch)
{
	return tw_strided(&tw_add_kind, file, batch);
}

/**
 * tw_strided_move - tw_batch_move() on elements of another size
 * @file: the file
 * @batch: the call, its fields checked
 *
 * Context: process, may sleep.
 * Return: elements done, or an error if there are none; -E2BIG: something is set in the part of
 * the first that is not known.
 */
long tw_strided_move(struct tw_file *file, const struct timerwheel_batch *batch)
{
	return tw_strided(&tw_move_kind, file, batch);
}

/**
 * tw_strided_remove - tw_batch_remove() on elements of another size
 * @file: the file
 * @batch: the call, its fields checked
 *
 * Context: process, may sleep.
 * Return: elements done, or an error if there are none; -E2BIG: something is set in the part of
 * the first that is not known.
 */
long tw_strided_remove(struct tw_file *file, const struct timerwheel_batch *batch)
{
	return tw_strided(&tw_remove_kind, file, batch);
}

/**
 * tw_strided_get - tw_batch_get() on elements of another size
 * @file: the file
 * @batch: the call, its fields checked
 *
 * Context: process, may sleep.
 * Return: elements done, or an error if there are none; -E2BIG: something is set in the part of
 * the first that is not known.
 */
long tw_strided_get(struct tw_file *file, const struct timerwheel_batch *batch)
{
	return tw_strided(&tw_get_kind, file, batch);
}
