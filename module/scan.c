// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that walk all timers by index: LIST and DRAIN.
 *
 * An index is a timer's own from ADD until it ends, so a cursor is just an index: whatever
 * is armed and removed meanwhile, a timer that stays is met exactly once.
 */
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "clock.h"
#include "cpu.h"
#include "internal.h"
#include "run.h"

/* Indices looked at in one run; */
#define TW_SCAN		64U

/* and timers of these that are taken out. */
#define TW_DRAIN	16U

/* Entries of LIST that are copied together. */
#define TW_LIST_COPY	8U

/* How many indices there are: 1 to that. */
static u32 tw_index_max(const struct tw_file *file)
{
	/* Pairs with the release in tw_table_grow(): their pages are there. */
	return smp_load_acquire(&file->table.made);
}

/*
 * Is a walk that has @done so many to end now? If there is nothing yet only a signal that
 * kills ends it: else nobody with signals more frequent than timers would come to the end.
 */
static bool tw_interrupted(long done)
{
	return done ? signal_pending(current) : fatal_signal_pending(current);
}

/* Describe timers from index *@next on. Returns how many; -ENOMEM. */
static int tw_list_chunk(struct tw_file *file, u64 offset, u64 *next, u64 end,
			 struct timerwheel_entry *entry, unsigned int max)
{
	u64 stop = min(end, *next + TW_SCAN);
	unsigned int n = 0;
	struct tw_ctx ctx;
	int err;

	err = tw_cpu_begin(&ctx, file, offset);
	if (err)
		return err;
	for (; *next < stop && n < max; ++*next)
		if (tw_get_index(&ctx, *next, &entry[n]) != -ENOENT)
			n++;
	tw_cpu_end(&ctx);
	return n;
}

/* How much of an entry there is in one of the caller's, which is @size bytes long. */
static size_t tw_entry_bytes(size_t size)
{
	return min(size, sizeof(struct timerwheel_entry));
}

/* Zero what is behind the part that is known. */
static int tw_clear_tail(void __user *to, size_t size)
{
	return clear_user(to + tw_entry_bytes(size), size - tw_entry_bytes(size)) ? -EFAULT : 0;
}

static int tw_list_copy_one(void __user *to, size_t size, const struct timerwheel_entry *entry)
{
	return copy_to_user(to, entry, tw_entry_bytes(size)) ? -EFAULT : tw_clear_tail(to, size);
}

/*
 * Copy @n entries out, each in @size bytes. Returns how many arrived whole: at a fault some
 * machines say that more is missing than is, so those in question are copied once more, one by one.
 */
static int tw_list_copy(void __user *to, size_t size, const struct timerwheel_entry *entry, int n)
{
	size_t missed;
	int copied = 0;

	if (likely(size == sizeof(*entry))) {
		missed = copy_to_user(to, entry, n * sizeof(*entry));
		copied = n - DIV_ROUND_UP(missed, sizeof(*entry));
	}
	while (copied < n && !tw_list_copy_one(to + copied * size, size, &entry[copied]))
		copied++;
	return copied;
}

/**
 * tw_scan_list - TIMERWHEEL_IOC_LIST
 * @file: the file
 * @batch: the call, its fields checked; the cursor is moved on
 *
 * Context: process, may sleep.
 * Return: elements done, or an error if there are none.
 */
long tw_scan_list(struct tw_file *file, struct timerwheel_batch *batch)
{
	void __user *to = u64_to_user_ptr(batch->elems);
	size_t size = batch->elem_size;
	u64 offset = tw_clock_offset(READ_ONCE(file->setup.clock));
	struct timerwheel_entry entry[TW_LIST_COPY] __uninitialized;
	u64 next = max(batch->cursor, 1ULL);
	u64 end = tw_index_max(file) + 1ULL;
	long done = 0;		/* signed, as errors are */
	int n, copied;

	while (done < batch->count && next < end) {
		n = tw_list_chunk(file, offset, &next, end, entry,
				  min_t(u32, batch->count - done, TW_LIST_COPY));
		if (n < 0)
			return done ? done : n;
		copied = tw_list_copy(to + done * size, size, entry, n);
		done += copied;
		if (copied < n) {
			/* Go on with the first one that was not copied whole. */
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

/* No new timers from now on. When this returns none is being armed any more. */
static void tw_drain_close(struct tw_file *file)
{
	mutex_lock(&file->mutex);
	WRITE_ONCE(file->closed, true);
	tw_cpu_barrier(file);
	mutex_unlock(&file->mutex);
}

/* Take out timers from index *@next on. Returns how many; -ENOMEM. Sets @fault at one. */
static int tw_drain_chunk(struct tw_file *file, u64 offset, u32 *next, u32 stop,
			  void __user *to, size_t size, unsigned int max, bool *fault)
{
	unsigned int n = 0;
	struct tw_ctx ctx;
	int err;

	err = tw_cpu_begin(&ctx, file, offset);
	if (err)
		return err;
	for (; *next < stop && n < max; ++*next) {
		err = tw_drain_index(&ctx, *next, to + n * size, tw_entry_bytes(size));
		if (err == -EFAULT) {
			*fault = true;
			break;
		}
		if (err != -ENOENT)
			n++;
	}
	tw_cpu_end(&ctx);
	return n;
}

/* Drain indices from @next to below @end. Returns how many timers; an error if none. */
static long tw_drain_range(struct tw_file *file, u32 next, u32 end, void __user *to, size_t size,
			   unsigned int max)
{
	bool tail = size > sizeof(struct timerwheel_entry);
	u64 offset = tw_clock_offset(READ_ONCE(file->setup.clock));
	long done = 0;		/* signed, as errors are */
	bool fault;
	int n;

	while (done < max && next < end) {
		fault = false;
		/* One at a time if there is more to write: before the timer is gone. */
		if (tail && tw_clear_tail(to, size))
			return done ? done : -EFAULT;
		n = tw_drain_chunk(file, offset, &next, min(end, next + TW_SCAN), to, size,
				   tail ? 1 : min_t(unsigned int, max - done, TW_DRAIN), &fault);
		if (n < 0)
			return done ? done : n;
		done += n;
		to += n * size;
		if (fault && fault_in_subpage_writeable(to, tw_entry_bytes(size)))
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
 * Goes on where the last one stopped, so that a drain in pages is linear; if it comes to
 * the end it begins anew, so that 0 means there is none.
 *
 * Context: process, may sleep.
 * Return: elements done, or an error if there are none.
 */
long tw_scan_drain(struct tw_file *file, const struct timerwheel_batch *batch)
{
	void __user *to = u64_to_user_ptr(batch->elems);
	size_t size = batch->elem_size;
	u32 end = tw_index_max(file) + 1;
	u32 from = clamp(READ_ONCE(file->drain_next), 1U, end);
	long done, more;

	if (batch->flags & TIMERWHEEL_DRAIN_CLOSE) {
		tw_drain_close(file);
		end = tw_index_max(file) + 1;
	}
	if (!batch->count)
		return 0;
	done = tw_drain_range(file, from, end, to, size, batch->count);
	if (done < 0 || done == batch->count || (done && signal_pending(current)))
		return done;
	more = tw_drain_range(file, 1, from, to + done * size, size, batch->count - done);
	return more < 0 && !done ? more : done + max(more, 0L);
}
