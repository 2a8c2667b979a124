# SPDX-License-Identifier: GPL-2.0
advance: any flag; abi:call.advance.unknown_flag; s/if (advance->flags & ~TIMERWHEEL_ABS)/if (0)/
advance: by a negative time; ops:ops.advance_negative; s/if (!(advance->flags & TIMERWHEEL_ABS) \&\& (s64)advance->time < 0)/if (0)/
advance: clocks that run, too; ops:ops.advance_other_clocks; s/if (READ_ONCE(file->setup.clock) != TIMERWHEEL_CLOCK_MANUAL)/if (0)/
advance: what time it is now is not told; ops:ops.advance_relative; s/^\tadvance->now = tw_clock_now(file);//
advance: several at a time; ops:ops.advance_threads; s/if (mutex_lock_killable(&file->advance))/if (0)/; s/mutex_unlock(&file->advance);//
argument: longer than a page; abi:call.*.beyond_a_page,report.*.beyond_a_page; s/if (\*size > PAGE_SIZE)/if (0)/
argument: shorter than the first version; abi:call.*.too_small,report.*.too_small; s/if (\*size < call->min)/if (*size < 8)/
argument: any flag of a report; abi:report.*.unknown_flag; s/return flags ? -EINVAL : 0;/return 0;/
argument: not tried whether it can be written; abi:call.*.readonly; s/if (!err \&\& call->write_back \&\&/if (0 \&\&/
answer: what only the caller knows stays; abi:report.*.larger; s/return clear_user(user + both, size - both) ? -EFAULT : 0;/return 0;/
answer: the caller's size; abi:report.*; s/arg->size = call->size;/arg->size = size;/
batch: any flag; abi:call.*.unknown_flag; s/(batch->flags & ~call->flags ||/(0 ||/
batch: flags of another call; abi:call.*.unknown_flag; s/batch->flags & ~call->flags/batch->flags \& ~TIMERWHEEL_DRAIN_CLOSE/
batch: any cursor; abi:array.*.cursor; s/(batch->cursor \&\& !call->cursor)))/0))/
batch: more than the most; abi:array.*.count_65537; s/batch->count > TIMERWHEEL_BATCH_MAX ?/batch->count > TIMERWHEEL_BATCH_MAX + 1 ?/
elements: shorter; abi:array.*.elem_size; s/if (unlikely(batch->elem_size != call->elem))/if (batch->elem_size > call->elem)/
elements: longer; abi:array.*.elem_size; s/if (unlikely(batch->elem_size != call->elem))/if (batch->elem_size < call->elem)/
call: LIST whose cursor cannot be told is fine; faults:argument.list.list_cannot_say_where; s/^\t\t call->cursor)$/\t\t 0)/
call: SETUP that cannot be told has failed; faults:argument.setup.setup_cannot_say_what; s/^\t\t call->cursor)$/\t\t 1)/
call: a number beyond the last; abi:device.unknown_number; s/if (nr >= ARRAY_SIZE(tw_call_table))/if (nr > ARRAY_SIZE(tw_call_table))/
short way: any size of the argument; abi:call.*; s/return batch->size == sizeof(\*batch);/return true;/
array: any call is a command; uring:way.plain.unknown; s/if (!call || !call->command)/if (!call)/
array: any size, count and flags; uring:way.plain.sizes; /^long tw_call_array(/,/^}/s/err = tw_batch_check(call, batch);/err = 0;/
