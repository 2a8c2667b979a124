// SPDX-License-Identifier: GPL-2.0-only
/*
 * The calls: a table of them, and how arguments are copied in and out.
 *
 * Each argument begins with its size, which says how much of it is copied: see "Extending this
 * interface" in the uapi header.
 */
#include <linux/indirect_call_wrapper.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "clock.h"
#include "cpu.h"
#include "flow.h"
#include "internal.h"
#include "monitor.h"
#include "sock.h"
#include "stats.h"

/* The ABI. Arguments are only extended; .min below keeps their first sizes. */
static_assert(sizeof(struct timerwheel_info) == 144);
static_assert(sizeof(struct timerwheel_setup) == 56);
static_assert(sizeof(struct timerwheel_ring) == 128);
static_assert(sizeof(struct timerwheel_monitor) == 16);
static_assert(sizeof(struct timerwheel_batch) == 32);
static_assert(sizeof(struct timerwheel_uring) == 16);
static_assert(sizeof(struct timerwheel_add) == 64);
static_assert(sizeof(struct timerwheel_move) == 32);
static_assert(sizeof(struct timerwheel_remove) == 40);
static_assert(sizeof(struct timerwheel_move_handle) == 16);
static_assert(sizeof(struct timerwheel_remove_handle) == 16);
static_assert(sizeof(struct timerwheel_entry) == 64);
static_assert(sizeof(struct timerwheel_advance) == 32);
static_assert(sizeof(struct timerwheel_event) == 48);
static_assert(sizeof(struct timerwheel_stats) == 512);

/* The argument of a call. */
union tw_arg {
	u32 size;
	struct timerwheel_info info;
	struct timerwheel_setup setup;
	struct timerwheel_batch batch;
	struct timerwheel_advance advance;
	struct timerwheel_stats stats;
	struct timerwheel_monitor monitor;
};

/**
 * struct tw_call - a call
 * @size: current size of its argument
 * @min: size of the argument's first version; less is -EINVAL
 * @elem: size of the elements of its array; 0: the call has no array
 * @report: the argument is output: only its size and flags are read; the caller's size limits how
 *	much is written
 * @write_back: the argument is input and output: the part that was read is written back
 * @cursor: the argument has a cursor
 * @flags: flags that the argument of a call on an array may have
 * @batch: performs a call on an array whose argument is not written back; NULL: tw_call_other()
 * @command: an io_uring command can perform it
 */
struct tw_call {
	u16 size;
	u16 min;
	u16 elem;
	bool report;
	bool write_back;
	bool cursor;
	bool command;
	u32 flags;
	long (*batch)(struct tw_file *file, const struct timerwheel_batch *batch);
};

static long tw_call_advance(struct tw_file *file, struct timerwheel_advance *advance)
{
	u64 to;
	int err;

	if (advance->flags & ~TIMERWHEEL_ABS)
		return -EINVAL;
	if (READ_ONCE(file->setup.clock) != TIMERWHEEL_CLOCK_MANUAL)
		return -EINVAL;
	/* tw_cpu_advance() refuses to go back, but at time 0 the sum would be clamped to 0. */
	if (!(advance->flags & TIMERWHEEL_ABS) && (s64)advance->time < 0)
		return -EINVAL;
	if (mutex_lock_killable(&file->advance))
		return -EINTR;
	to = tw_clock_deadline(advance->time, advance->flags & TIMERWHEEL_ABS,
			       tw_clock_now(file), 0);
	err = tw_cpu_advance(file, to, &advance->expired);
	advance->now = tw_clock_now(file);
	mutex_unlock(&file->advance);
	return err;
}

#define TW_ELEM(name)	.elem = sizeof(struct timerwheel_##name)

#define TW_CALL(nr, name, ...)						\
	[_IOC_NR(TIMERWHEEL_IOC_##nr)] = {				\
		.size = sizeof(struct timerwheel_##name), __VA_ARGS__ }

static const struct tw_call tw_call_table[] = {
	TW_CALL(INFO, info, .min = 8, .report = true),
	TW_CALL(SETUP, setup, .min = 56, .write_back = true),
	TW_CALL(ADD, batch, .min = 32, TW_ELEM(add), .batch = tw_batch_add,
		.command = true),
	TW_CALL(MOVE, batch, .min = 32, TW_ELEM(move), .batch = tw_batch_move,
		.command = true),
	TW_CALL(REMOVE, batch, .min = 32, TW_ELEM(remove), .batch = tw_batch_remove,
		.command = true),
	TW_CALL(DRAIN, batch, .min = 32, TW_ELEM(entry), .flags = TIMERWHEEL_DRAIN_CLOSE,
		.batch = tw_scan_drain),
	TW_CALL(GET, batch, .min = 32, TW_ELEM(entry), .batch = tw_batch_get,
		.command = true),
	TW_CALL(LIST, batch, .min = 32, TW_ELEM(entry), .cursor = true, .write_back = true),
	TW_CALL(STATS, stats, .min = 8, .report = true),
	TW_CALL(ADVANCE, advance, .min = 32, .write_back = true),
	[_IOC_NR(TIMERWHEEL_IOC_FLOW)] = {},	/* has no argument */
	TW_CALL(MONITOR, monitor, .min = 16),
	TW_CALL(MOVE_HANDLE, batch, .min = 32, TW_ELEM(move_handle),
		.flags = TIMERWHEEL_ABS | TIMERWHEEL_EXCL, .batch = tw_batch_move_handle,
		.command = true),
	TW_CALL(REMOVE_HANDLE, batch, .min = 32, TW_ELEM(remove_handle),
		.batch = tw_batch_remove_handle, .command = true),
	TW_CALL(ADD_SOCKET, batch, .min = 32, TW_ELEM(add_socket), .batch = tw_sock_add),
};

/*
 * Copy the argument in. Sets @size to the caller's size, and the member of @arg that the call uses:
 * the whole member, whatever the caller's size.
 */
static int tw_arg_read(const struct tw_call *call, union tw_arg *arg, void __user *user,
		       u32 *size)
{
	struct { u32 size; u32 flags; } __user *head = user;	/* of all arguments */
	u32 flags;
	int err;

	if (get_user(*size, &head->size))
		return -EFAULT;
	if (*size > PAGE_SIZE)
		return -E2BIG;
	if (*size < call->min)
		return -EINVAL;
	if (call->report) {
		memset(arg, 0, call->size);
		if (get_user(flags, &head->flags))
			return -EFAULT;
		return flags ? -EINVAL : 0;
	}
	err = copy_struct_from_user(arg, call->size, user, *size);
	/* Check before the call that the argument can be written back. */
	if (!err && call->write_back && copy_to_user(user, arg, min_t(size_t, *size, call->size)))
		err = -EFAULT;
	return err;
}

/* Copy a report out: the part that both sides know, then zeros up to the caller's size. */
static int tw_report_write(const struct tw_call *call, union tw_arg *arg, void __user *user,
			   u32 size)
{
	size_t both = min_t(size_t, size, call->size);

	arg->size = call->size;
	if (copy_to_user(user, arg, both))
		return -EFAULT;
	return clear_user(user + both, size - both) ? -EFAULT : 0;
}

/* Check the argument of a call on an array. */
static __always_inline int tw_batch_check(const struct tw_call *call,
					  const struct timerwheel_batch *batch)
{
	if (unlikely(batch->elem_size != call->elem))
		return batch->elem_size < call->elem ? -EINVAL : -E2BIG;
	if (unlikely(batch->flags | batch->cursor) &&
	    (batch->flags & ~call->flags || (batch->cursor && !call->cursor)))
		return -EINVAL;
	return batch->count > TIMERWHEEL_BATCH_MAX ? -E2BIG : 0;
}

/* Perform a call that has no tw_call.batch; its argument is in kernel memory. */
static long tw_call_other(struct tw_file *file, unsigned int cmd, union tw_arg *arg)
{
	switch (cmd) {
	case TIMERWHEEL_IOC_INFO:
		tw_stats_info(file, &arg->info);
		return 0;
	case TIMERWHEEL_IOC_SETUP:
		return tw_setup(file, &arg->setup);
	case TIMERWHEEL_IOC_LIST:
		return tw_scan_list(file, &arg->batch);
	case TIMERWHEEL_IOC_STATS:
		tw_stats_get(file, &arg->stats);
		return 0;
	case TIMERWHEEL_IOC_ADVANCE:
		return tw_call_advance(file, &arg->advance);
	case TIMERWHEEL_IOC_MONITOR:
		return tw_monitor_open(file, &arg->monitor);
	}
	return -ENOTTY;
}

/* A call whose argument has any allowed size. */
static noinline long tw_call_any_size(const struct tw_call *call, struct tw_file *file,
				      unsigned int cmd, void __user *user)
{
	union tw_arg karg __uninitialized;
	long result;
	u32 size;
	int err;

	err = tw_arg_read(call, &karg, user, &size);
	if (!err && call->elem)
		err = tw_batch_check(call, &karg.batch);
	if (err)
		return err;
	if (call->batch)
		return call->batch(file, &karg.batch);
	result = tw_call_other(file, cmd, &karg);
	if (result < 0)
		return result;
	/*
	 * The call took effect, so a failed write back is not an error; the memory was writable
	 * when the argument was read. LIST and reports have changed nothing: for them it is an
	 * error.
	 */
	if (call->report)
		err = tw_report_write(call, &karg, user, size);
	else if (call->write_back && copy_to_user(user, &karg, min_t(size_t, size, call->size)) &&
		 call->cursor)
		err = -EFAULT;
	return err ?: result;
}

/*
 * Copy the argument of a call on an array in. Copying field by field takes less than a third of the
 * time of copy_from_user(). Returns false if it cannot be read or does not have the current size;
 * then @batch is not used.
 */
static __always_inline bool tw_batch_read(struct timerwheel_batch *batch,
					  struct timerwheel_batch __user *user)
{
	if (!user_access_begin(user, sizeof(*user)))
		return false;
	unsafe_get_user(batch->size, &user->size, fault);
	unsafe_get_user(batch->flags, &user->flags, fault);
	unsafe_get_user(batch->elems, &user->elems, fault);
	unsafe_get_user(batch->count, &user->count, fault);
	unsafe_get_user(batch->elem_size, &user->elem_size, fault);
	unsafe_get_user(batch->cursor, &user->cursor, fault);
	user_access_end();
	return batch->size == sizeof(*batch);
fault:
	user_access_end();
	return false;
}

/* Find a call by its number. Returns NULL if there is none. */
static __always_inline const struct tw_call *tw_call_find(unsigned int cmd)
{
	unsigned int nr = cmd - _IO(TIMERWHEEL_IOC_TYPE, 0);

	if (nr >= ARRAY_SIZE(tw_call_table))
		return NULL;
	return &tw_call_table[array_index_nospec(nr, ARRAY_SIZE(tw_call_table))];
}

/* Perform a call on an array. */
static __always_inline long tw_call_batch(const struct tw_call *call, struct tw_file *file,
					  const struct timerwheel_batch *batch)
{
	return INDIRECT_CALL_3(call->batch, tw_batch_add, tw_batch_move, tw_batch_remove, file,
			       batch);
}

/**
 * tw_call_array - perform a call on an array, with the argument in kernel memory
 * @file: the file
 * @cmd: TIMERWHEEL_IOC_*
 * @batch: the argument; its size is ignored
 * @internal: TW_BATCH_*
 *
 * Context: process, may sleep.
 * Return: as the call; -EOPNOTSUPP: the call is not one of ADD, MOVE, REMOVE, GET, MOVE_HANDLE and
 * REMOVE_HANDLE; -EAGAIN: see TW_BATCH_NOWAIT.
 */
long tw_call_array(struct tw_file *file, unsigned int cmd, struct timerwheel_batch *batch,
		   u32 internal)
{
	const struct tw_call *call = tw_call_find(cmd);
	int err;

	if (!call || !call->command)
		return -EOPNOTSUPP;
	err = tw_batch_check(call, batch);
	if (err)
		return err;
	batch->flags |= internal;
	return tw_call_batch(call, file, batch);
}

/**
 * tw_ioctl - a call on /dev/timerwheel
 * @filp: the open file
 * @cmd: TIMERWHEEL_IOC_*
 * @arg: address of its argument; FLOW has none
 *
 * Context: process, may sleep.
 * Return: see the uapi header.
 */
long tw_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	struct timerwheel_batch batch __uninitialized;
	const struct tw_call *call = tw_call_find(cmd);
	int err;

	if (!call)
		return -ENOTTY;
	/*
	 * A fast path for operations on timers: for a single timer, the dispatch dominates the
	 * cost.
	 */
	if (likely(call->batch) && tw_batch_read(&batch, user)) {
		err = tw_batch_check(call, &batch);
		return err ?: tw_call_batch(call, filp->private_data, &batch);
	}
	if (cmd == TIMERWHEEL_IOC_FLOW)
		return tw_flow_ioctl(filp->private_data);
	return tw_call_any_size(call, filp->private_data, cmd, user);
}
