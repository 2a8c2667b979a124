// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring commands: calls on arrays, and MOVE and REMOVE of one timer by its handle, which is in
 * the command itself.
 *
 * A command has its result when tw_uring_cmd() returns, so none is ever pending: there is nothing
 * to cancel and nothing to clean up when a ring or a wheel is closed.
 *
 * A command runs in the task that submits it, in the ring's SQPOLL thread or in a worker of either.
 * All of them have the memory and the namespaces of the task that created them.
 *
 * What may sleep in the task that submits (IO_URING_F_NONBLOCK):
 * - page faults on elements, as with every request that reads or writes user memory at once
 * - creating the base of this CPU, once for each wheel. A worker would create that of its own CPU.
 * - growth in the middle of an ADD: see tw_batch_chunk()
 * An ADD whose first element needs memory is left to a worker.
 */
#include <linux/ioctl.h>

#include "clock.h"
#include "compat.h"
#include "internal.h"
#include "run.h"
#include "uring.h"

/**
 * union tw_uring_arg - the argument of a command: its own 16 bytes in the submission
 * @bytes: as two u64
 * @array: of a call on an array
 * @move: of TIMERWHEEL_URING_MOVE
 * @remove: of TIMERWHEEL_URING_REMOVE
 */
union tw_uring_arg {
	u64 bytes[2];
	struct timerwheel_uring array;
	struct timerwheel_move_handle move;
	struct timerwheel_remove_handle remove;
};

static_assert(sizeof(union tw_uring_arg) == 16);

/* Begin a batch that is a single operation. */
static __always_inline int tw_uring_begin(struct tw_ctx *ctx, struct tw_file *file, u32 flags,
					  u32 other)
{
	u64 offset = tw_clock_offset(READ_ONCE(file->setup.clock));
	int err = tw_cpu_begin_with(ctx, file, offset, other);

	ctx->flags = flags;
	return err;
}

static int tw_uring_move(struct file *filp, u32 flags, struct timerwheel_move_handle *elem)
{
	struct tw_ctx ctx __uninitialized;
	u32 other = TW_NO_CPU;
	int err, done;

	if (unlikely(!(filp->f_mode & FMODE_WRITE)))
		return -EBADF;
	if (unlikely(flags & ~(TIMERWHEEL_ABS | TIMERWHEEL_EXCL)))
		return -EINVAL;
	do {
		err = tw_uring_begin(&ctx, filp->private_data, flags, other);
		if (unlikely(err))
			return err;
		done = tw_ops_move_handle(&ctx, elem, 1);
		tw_cpu_end(&ctx);
		other = ctx.wants;
	} while (unlikely(!done) && tw_cpu_again());
	return done ? elem->result : -EINTR;
}

static int tw_uring_remove(struct file *filp, u32 flags, struct timerwheel_remove_handle *elem)
{
	struct tw_ctx ctx __uninitialized;
	u32 other = TW_NO_CPU;
	int err, done;

	if (unlikely(!(filp->f_mode & FMODE_WRITE)))
		return -EBADF;
	if (unlikely(flags || elem->value))
		return -EINVAL;
	do {
		err = tw_uring_begin(&ctx, filp->private_data, 0, other);
		if (unlikely(err))
			return err;
		done = tw_ops_remove_handle(&ctx, elem, 1);
		tw_cpu_end(&ctx);
		other = ctx.wants;
	} while (unlikely(!done) && tw_cpu_again());
	return done ? elem->result : -EINTR;
}

static int tw_uring_array(struct file *filp, unsigned int call, u32 flags,
			  const struct timerwheel_uring *arg, unsigned int issue_flags)
{
	struct timerwheel_batch batch = {
		.flags = flags,
		.elems = arg->elems,
		.count = arg->count,
		.elem_size = arg->elem_size,
	};
	u32 internal = TW_BATCH_KILLABLE;

	if (issue_flags & IO_URING_F_NONBLOCK)
		internal |= TW_BATCH_NOWAIT;
	return tw_call_array(filp, call, &batch, internal);
}

/**
 * tw_uring_cmd - an io_uring command on /dev/timerwheel
 * @cmd: the command
 * @issue_flags: IO_URING_F_*
 *
 * Context: process, may sleep.
 * Return: the command's result: see the uapi header; -EAGAIN: it is to be called again where it may
 * wait (never without IO_URING_F_NONBLOCK); -EIOCBQUEUED: the result was reported.
 */
int tw_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const u64 *shared = tw_uring_argument(cmd);
	unsigned int call = cmd->cmd_op & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT);
	u32 flags = _IOC_SIZE(cmd->cmd_op);
	union tw_uring_arg arg;
	int result;

	/* No registered buffers. A multishot command would never be completed. */
	if (unlikely(cmd->flags & IORING_URING_CMD_MASK))
		return -EINVAL;
	/* The submitter can still write there. */
	arg.bytes[0] = READ_ONCE(shared[0]);
	arg.bytes[1] = READ_ONCE(shared[1]);

	if (call == TIMERWHEEL_URING_MOVE)
		result = tw_uring_move(cmd->file, flags, &arg.move);
	else if (call == TIMERWHEEL_URING_REMOVE)
		result = tw_uring_remove(cmd->file, flags, &arg.remove);
	else
		result = tw_uring_array(cmd->file, call, flags, &arg.array, issue_flags);
	return tw_uring_result(cmd, result, issue_flags);
}
