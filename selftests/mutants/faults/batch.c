# SPDX-License-Identifier: GPL-2.0
read: the end is not tried; faults:faults.*.end_readonly; s/if (kind->out != kind->len - 1)/if (0)/
read: the first word that is written is not tried; faults:faults.*.begin_readonly; s/^\t\tunsafe_put_user(buf\[kind->out\], from + kind->out, fault);//
read: nothing of a chunk that ends in a fault; abi:array.*.cut_short; /^fault:/,/^}/s/return i;/return 0;/
write: without the word that is the first; abi:element.*_writes; s/for (w = kind->out; w < kind->len; w++)/for (w = kind->out + 1; w < kind->len; w++)/
chunk: asks for memory again and again; lifetime:memcg_full.seldom_asks_in_vain; s/\*no_memory = err == -ENOMEM;/*no_memory = false;/
chunk: an ADD that fails ends it; ops:capacity.*.batch; s/^\t\t\t\ti++;$/\t\t\t\treturn i + 1;/
chunk: no room is no memory; ops:capacity.*.batch; s/\*no_memory = err == -ENOMEM;/*no_memory = err;/
many: in times of the first namespace; time:namespace.*.absolute_several; /^static .* tw_batch_many(/,/^}/s/u64 offset = .*/u64 offset = 0;/
many: a signal does not end it; ops:ops.batch_signals; /^static .* tw_batch_many(/,/^}/s/ || tw_batch_interrupted(flags))/)/
one: in times of the first namespace; time:namespace.monotonic_plus.look; s/err = tw_cpu_begin(&ctx, file, tw_clock_offset(READ_ONCE(file->setup.clock)));/err = tw_cpu_begin(\&ctx, file, 0);/
one: without the flags of the call; handle:one.manual.move_absolute; /^static .* tw_batch_one(/,/^}/s/ctx.flags = batch->flags;/ctx.flags = 0;/
many: without the flags of the call; handle:one.manual.batches; /^static .* tw_batch_chunk(/,/^}/s/ctx.flags = flags;/ctx.flags = 0;/
signals: none ends a call; ops:ops.batch_signals; s/return !(flags \& TW_BATCH_KILLABLE) ||/return/
signals: each ends a command; uring:way.*.signals; s/return !(flags \& TW_BATCH_KILLABLE) || fatal_signal_pending(current);/return true;/
chunk: begins again after something was done; uring:place.memory_in_the_middle; s/if (!i \&\& flags \& TW_BATCH_NOWAIT)/if (flags \& TW_BATCH_NOWAIT)/
chunk: a command waits for memory; uring:place.first_*; s/if (!i \&\& flags \& TW_BATCH_NOWAIT)/if (0)/
many: ends where it needs memory; uring:place.memory_in_the_middle; /^static .* tw_batch_many(/,/^}/s/flags &= ~TW_BATCH_NOWAIT;//
chunk: batches without a pause; race:foreign.*; /^static .* tw_batch_chunk(/,/^}/s/^\t\tcond_resched();$//
