# SPDX-License-Identifier: GPL-2.0
array: without its flags; uring:way.plain.handles,way.plain.unknown_flags; s/\.flags = _IOC_SIZE(cmd->cmd_op),/.flags = 0,/
array: a signal ends it; uring:way.plain.signals; s/u32 internal = TW_BATCH_KILLABLE;/u32 internal = 0;/
array: waits for memory wherever it is; uring:place.first_add_in_a_worker; s/if (issue_flags \& IO_URING_F_NONBLOCK)/if (0)/
array: a worker may not wait either; uring:place.first_add_in_a_worker; s/if (issue_flags \& IO_URING_F_NONBLOCK)/if (1)/
command: registered buffers are ignored; uring:way.plain.command_flags; s/if (unlikely(cmd->flags \& IORING_URING_CMD_MASK))/if (0)/
command: always one element; uring:way.plain.arrays; s/\.count = READ_ONCE(arg->count),/.count = 1,/
command: its number with the flags; uring:way.plain.handles; s/ = cmd->cmd_op \& ~(_IOC_SIZEMASK << _IOC_SIZESHIFT)/ = cmd->cmd_op/
