// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that walk all timers by index: LIST and DRAIN.
 *
 * A timer keeps its index from ADD until it ends, so a cursor is just an index. A timer that exists
 * during the whole walk is visited exactly once, whatever is armed and removed in the meantime.
 */
#include <linux/nospec.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "clock.h"
#include "cpu.h"
#include "internal.h"
#include "run.h"
#include "table.h"

/* Maximum number of indices that a batch examines. */
#define TW_SCAN		64U

/* Maximum number of timers that a batch removes. */
#define TW_DRAIN	16U

/* Number of LIST entries that are copied out together. */
#define TW_LIST_COPY	8U

/*
 * Does a signal end a walk that has found @done timers? If it has found none yet, only a fatal
 * signal does. Otherwise a task that often gets signals would never reach the end of a large, empty
 * table.
 */
static bool tw_interrupted(long done)
{
	return done ? signal_pending(current) : fatal_signal_pending(current);
}

/*
 * Describe at most @max timers, beginning with index *@next. Returns the number of entries that
 * were set, or an error. @other: tw_ctx.wants of the last batch; on return, of this batch.
 */
static int tw_list_chunk(struct tw_file *file, u64 offset, u64 *next, u64 end,
			 struct timerwheel_entry *entry, unsigned int max, u32 *other)
{
	u64 stop = min(end, *next + TW_SCAN);
	unsigned int n = 0;
	struct tw_ctx ctx;
	int result;

	result = tw_cpu_begin_with(&ctx, file, offset, *other);
	if (result)
		return result;
	for (; *next < stop && n < max; ++*next) {
		result = tw_get_index(&ctx, *next, &entry[n]);
		if (result == -EAGAIN)
			break;
		n += result != -ENOENT;
	}
	tw_cpu_end(&ctx);
	*other = ctx.wants;
	return n;
}

/*
 * Copy @n entries out. Returns the number of entries that were copied completely. After a fault,
 * copy_to_user() reports more missing bytes than there are on some machines. Therefore entries that
 * may be missing are copied again, one by one.
 */
static int tw_list_copy(struct timerwheel_entry __user *to, const struct timerwheel_entry *entry,
			int n)
{
	size_t missed = copy_to_user(to, entry, n * sizeof(*entry));
	int copied = n - DIV_ROUND_UP(missed, sizeof(*entry));

	while (copied < n && !copy_to_user(to + copied, &entry[copied], sizeof(*entry)))
		copied++;
	return copied;
}

/**
 * tw_scan_list - TIMERWHEEL_IOC_LIST
 * @file: the file
 * @batch: the call, its fields checked; the cursor is advanced
 *
 * Context: process, may sleep.
 * Return: the number of elements, or an error if there are none.
 */
long tw_scan_list(struct tw_file *file, struct timerwheel_batch *batch)
{
	struct timerwheel_entry __user *to = u64_to_user_ptr(batch->elems);
	u64 offset = tw_clock_offset(READ_ONCE(file->setup.clock));
	struct timerwheel_entry entry[TW_LIST_COPY] __uninitialized;
	u64 next = max(batch->cursor, 1ULL);
	u64 end = tw_index_max(&file->table) + 1ULL;
	long done = 0;		/* signed, as errors are */
	u32 other = TW_NO_CPU;
	int n, copied;

	if (next < end)
		next = array_index_nospec(next, end);
	while (done < batch->count && next < end) {
		n = tw_list_chunk(file, offset, &next, end, entry,
				  min_t(u32, batch->count - done, TW_LIST_COPY), &other);
		if (n < 0)
			return done ? done : n;
		copied = tw_list_copy(to + done, entry, n);
		done += copied;
		if (copied < n) {
			/* The next call continues with the first entry that was not copied. */
			next = entry[copied].index;
			if (!done)
				return -EFAULT;
			break;
		}
		if (tw_interrupted(done)) {
			if (!done)
				return -EINTR;
			break;
		}
		cond_resched();
	}
	batch->cursor = next;
	return done;
}

/* Accept no new timers from now on. On return, no call is arming a timer. */
static void tw_drain_close(struct tw_file *file)
{
	mutex_lock(&file->mutex);
	WRITE_ONCE(file->closed, true);
	/* Batches that have not seen it end, and their timers are seen; litmus close. */
	tw_cpu_barrier(file);
	mutex_unlock(&file->mutex);
}

/*
 * Remove timers from index *@next on, at most @max, and copy their descriptions out. Returns how
 * many, or an error. Sets @fault if it stopped at a page fault. @other: as in tw_list_chunk().
 */
static int tw_drain_chunk(struct tw_file *file, u64 offset, u32 *next, u32 stop,
			  struct timerwheel_entry __user *to, unsigned int max, bool *fault,
			  u32 *other)
{
	unsigned int n = 0;
	struct tw_ctx ctx;
	int err;

	err = tw_cpu_begin_with(&ctx, file, offset, *other);
	if (err)
		return err;
	for (; *next < stop && n < max; ++*next) {
		err = tw_drain_index(&ctx, *next, to + n);
		*fault = err == -EFAULT;
		if (*fault || err == -EAGAIN)
			break;
		if (err != -ENOENT)
			n++;
	}
	tw_cpu_end(&ctx);
	*other = ctx.wants;
	return n;
}

/* Drain indices @next to @end - 1. Returns the number of timers, or an error if it is 0. */
static long tw_drain_range(struct tw_file *file, u32 next, u32 end,
			   struct timerwheel_entry __user *to, unsigned int max)
{
	u64 offset = tw_clock_offset(READ_ONCE(file->setup.clock));
	long done = 0;		/* signed, as errors are */
	u32 other = TW_NO_CPU;
	bool fault;
	int n;

	while (done < max && next < end) {
		fault = false;
		n = tw_drain_chunk(file, offset, &next, min(end, next + TW_SCAN), to,
				   min_t(unsigned int, max - done, TW_DRAIN), &fault, &other);
		if (n < 0)
			return done ? done : n;
		done += n;
		to += n;
		if (fault && fault_in_subpage_writeable((char __user *)to, sizeof(*to)))
			return done ? done : -EFAULT;
		if (tw_interrupted(done)) {
			if (!done)
				return -EINTR;
			break;
		}
		cond_resched();
	}
	WRITE_ONCE(file->drain_next, next);
	return done;
}

/**
 * tw_scan_drain - TIMERWHEEL_IOC_DRAIN
 * @file: the file
 * @batch: the call, its fields checked
 *
 * Starts where the last DRAIN of the file stopped, so that several calls take linear time. At the
 * end of the table it continues from the start, so that 0 means that there are no timers.
 *
 * Context: process, may sleep.
 * Return: the number of elements, or an error if there are none.
 */
long tw_scan_drain(struct tw_file *file, const struct timerwheel_batch *batch)
{
	struct timerwheel_entry __user *to = u64_to_user_ptr(batch->elems);
	u32 end = tw_index_max(&file->table) + 1;
	u32 from = clamp(READ_ONCE(file->drain_next), 1U, end);
	long done, more;

	if (batch->flags & TIMERWHEEL_DRAIN_CLOSE) {
		tw_drain_close(file);
		end = tw_index_max(&file->table) + 1;
	}
	if (!batch->count)
		return 0;
	done = tw_drain_range(file, from, end, to, batch->count);
	if (done < 0 || done == batch->count || (done && signal_pending(current)))
		return done;
	more = tw_drain_range(file, 1, from, to + done, batch->count - done);
	return more < 0 && !done ? more : done + max(more, 0L);
}
