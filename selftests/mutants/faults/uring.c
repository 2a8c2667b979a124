# SPDX-License-Identifier: GPL-2.0
move: any descriptor; uring:way.plain.modes; /^static int tw_uring_move(/,/^}/s/if (unlikely(!(filp->f_mode & FMODE_WRITE)))/if (0)/
move: any flag; uring:way.plain.unknown_flags; s/if (unlikely(flags \& ~(TIMERWHEEL_ABS | TIMERWHEEL_EXCL)))/if (0)/
move: without its flags; uring:way.plain.move; s/tw_uring_begin(&ctx, filp->private_data, flags, other)/tw_uring_begin(\&ctx, filp->private_data, 0, other)/
remove: any descriptor; uring:way.plain.modes; /^static int tw_uring_remove(/,/^}/s/if (unlikely(!(filp->f_mode & FMODE_WRITE)))/if (0)/
remove: any flag; uring:way.plain.unknown_flags; s/if (unlikely(flags || elem->value))/if (unlikely(elem->value))/
remove: any value; uring:way.plain.remove; s/if (unlikely(flags || elem->value))/if (unlikely(flags))/
begin: in times of the first namespace; uring:global.namespace; s/tw_clock_offset(READ_ONCE(file->setup.clock))/0/
array: without its flags; uring:way.plain.handles,way.plain.unknown_flags; s/^\t\t\.flags = flags,$/\t\t.flags = 0,/
array: a signal ends it; uring:way.plain.signals; s/u32 internal = TW_BATCH_KILLABLE;/u32 internal = 0;/
array: waits for memory wherever it is; uring:place.first_add_in_a_worker; s/if (issue_flags \& IO_URING_F_NONBLOCK)/if (0)/
array: a worker may not wait either; uring:place.first_add_in_a_worker; s/if (issue_flags \& IO_URING_F_NONBLOCK)/if (1)/
command: registered buffers are ignored; uring:way.plain.command_flags; s/if (unlikely(cmd->flags \& IORING_URING_CMD_MASK))/if (0)/
command: half of its bytes; uring:way.plain.move; s/arg.bytes\[1\] = READ_ONCE(shared\[1\]);/arg.bytes[1] = 0;/
command: its number with the flags; uring:way.plain.move; s/ = cmd->cmd_op \& ~(_IOC_SIZEMASK << _IOC_SIZESHIFT)/ = cmd->cmd_op/
