// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring commands: calls on arrays.
 *
 * A command has its result when tw_uring_cmd() returns, so no command is ever pending: closing a
 * ring or a wheel has nothing to cancel or clean up.
 *
 * A command runs in the task that submits it, in the ring's SQPOLL thread, or in a worker of
 * either. All of them have the memory and the namespaces of the task that created them.
 *
 * In the task that submits a command (IO_URING_F_NONBLOCK) these may sleep:
 * - page faults on elements, as in every request that reads or writes user memory at once
 * - creating the base of this CPU, once for each wheel; a worker would use its own CPU's base
 * - growth in the middle of an ADD: see tw_batch_chunk()
 * A worker runs an ADD whose first element needs memory.
 */
#include <linux/ioctl.h>

#include "compat.h"
#include "internal.h"
#include "uring.h"

/**
 * tw_uring_cmd - an io_uring command on /dev/timerwheel
 * @cmd: the command
 * @issue_flags: IO_URING_F_*
 *
 * Context: process, may sleep.
 * Return: the command's result (see the uapi header); -EAGAIN: call it again where it may wait
 * (never without IO_URING_F_NONBLOCK); -EIOCBQUEUED: the result was reported.
 */
int tw_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const struct timerwheel_uring *arg = tw_uring_argument(cmd);
	/* The submitter can still write to @arg, so each field is read once. */
	struct timerwheel_batch batch = {
		.flags = _IOC_SIZE(cmd->cmd_op),
		.elems = READ_ONCE(arg->elems),
		.count = READ_ONCE(arg->count),
		.elem_size = READ_ONCE(arg->elem_size),
	};
	unsigned int call = cmd->cmd_op & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT);
	u32 internal = TW_BATCH_KILLABLE;
	int result;

	/* Registered buffers are not supported. A multishot command would never be completed. */
	if (unlikely(cmd->flags & IORING_URING_CMD_MASK))
		return -EINVAL;
	if (issue_flags & IO_URING_F_NONBLOCK)
		internal |= TW_BATCH_NOWAIT;
	result = tw_call_array(cmd->file->private_data, call, &batch, internal);
	return tw_uring_result(cmd, result, issue_flags);
}
