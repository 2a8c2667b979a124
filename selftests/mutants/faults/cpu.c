# SPDX-License-Identifier: GPL-2.0
set back: the bias does not grow; icount/time:set.backward_new; s/w->bias = min(w->bias + (w->cursor - 1 - tick).*/;/
set back: what there is to do is not looked for again; readers:batch.wakes_after_clock_set_back_quietly; s/^\tw->sooner = true;//
set back: readers sleep until the clock is back; readers:batch.wakes_after_clock_set_back; s/cpu->wake_at = min(cpu->wake_at, now + .*/;/
set back: readers of nothing are woken; time:set.backward_idle; s/if (cpu->wake_at != TW_NEVER)/if (1)/
program: not for readers; readers:batch.wakes_after_time; s/at = min(at, cpu->wake_at);//
program: a time beyond what hrtimers know; equivalent: tw_entity_time() takes such a time for the largest that they know; s/min_t(u64, w->work \* w->tick - w->bias, KTIME_MAX)/w->work * w->tick - w->bias/
program: each time anew; time:manual.stands; s/if (at < cpu->programmed) {/if (at != TW_NEVER) {/
batch: past the ring; ring:ring.one_event; s/if (due.count \&\& ring)/if (0)/
batch: nobody is woken; readers:clock.blocking_read_wakes; s/ctx->wake_readers |= tw_events_add(cpu, \&due, ctx->now);/tw_events_add(cpu, \&due, ctx->now);/
batch: with no end; time:manual.is_counted; s/ring ? TW_BATCH_RING_TIMERS : TW_BATCH_TIMERS,/100000,/
count: the most timers ever, not in a batch; time:manual.is_counted; s/tw_cpu_handled(cpu) - handled)/tw_cpu_handled(cpu))/
count: those that are put off are none; time:manual.is_counted; s/ + cpu->wheel.cascades + cpu->wheel.requeues//
count: no longest batch; time:manual.is_counted; s/counts->batch_max_ns = .*/(void)took;/
count: the last batch is the longest; time:manual.is_counted; s/max(counts->batch_max_ns, took)/took/
run: the clock that was set is noticed later; icount/time:set.told_ahead; s/if (likely(!tw_clockset_enabled(cpu->file) || .*/if (1)/
run: each batch is a firing; time:burst.is_one_firing; s/^\tif (cpu->programmed) {/\t{/
run: batches of earlier firings count; time:set.forward_in_order; s/^\t\tcpu->batches = 0;//
run: no end of batches for a tick; icount/time:burst.one_tick; s/last = ++cpu->batches % TW_DETACH_BATCHES == 0;/last = false;/
run: each batch is the last for its tick; time:set.forward_in_order; s/last = ++cpu->batches % TW_DETACH_BATCHES == 0;/last = true;/
run: readers wait for ever; readers:batch.wakes_after_time; s/if (cpu->wake_at <= ctx.now)/if (cpu->wake_at < 1)/
run: readers are woken before their time; readers:batch.sleeps_below_count_by_clock; s/if (cpu->wake_at <= ctx.now)/if (cpu->wake_at != TW_NEVER)/
run: more work is a new firing; time:burst.is_one_firing; s/^\tif (more)$/\tif (0)/
run: has work now for ever, once it had more; time:burst.is_one_firing; /^bool tw_cpu_run/,/^}/s/^\tcpu->programmed = TW_NEVER;/\tif (cpu->programmed) cpu->programmed = TW_NEVER;/
run: not started for what comes later; time:running.monotonic.relative; s/^\t\ttw_cpu_program(cpu);/\t\t;/
any: only the first CPU's part; ops:cap.other_cpu; s/nr < nr_cpu_ids \&\& !cpu; nr++/nr < 1 \&\& !cpu; nr++/
create: tried again at once after it was in vain; ops:cap.other_cpu; s/if (time_before64(get_jiffies_64(), file->base_retry_at) \&\&/if (0 \&\&/
create: in vain once, never tried again; ops:cap.other_cpu; s/if (time_before64(get_jiffies_64(), file->base_retry_at) \&\&/if (file->base_retry_at \&\&/
create: not given back when there is no table; ops:cap.first_call_in_part; s/^\t\ttw_uncharge(file, tw_alloc_size(size));//
create: readers are to be woken at time 0; time:idle.million; s/cpu->wake_at = TW_NEVER;/;/
create: another one was faster; ops:setup.begun_by_two; s/^\tif (file->cpu\[nr\])$/\tif (0)/
create: as large as the settings were before the mutex; ops:setup.begun_meanwhile; s/^\tsize_t size;$/\tsize_t size = tw_cpu_size(setup);/; s/^\tsize = tw_cpu_size(setup);$//
obtain: makes a part although it may not sleep; readers:clock.nowait_allocates_nothing; s/if (!nowait) {/{/
obtain: another CPU's part will not do; ops:cap.other_cpu; s/cpu = err ? tw_cpu_any(file) : tw_cpu_here(file);/cpu = tw_cpu_here(file);/
reclaim: loose ones are left where they are; ops:capacity.odd.room_after_remove_elsewhere; s/^\t\tif (cpu->nr_free)$/\t\tif (0)/; s/^\t\tcpu->free = 0;//; s/^\t\tcpu->nr_free = 0;//
reclaim: the second magazine is left where it is; ops:capacity.odd.room_after_remove_elsewhere; s/^\t\tif (cpu->spare)$/\t\tif (0)/; s/^\t\tcpu->spare = 0;//
reclaim: only where nobody needs them; ops:capacity.*.room_after_remove_elsewhere; s/return READ_ONCE(file->table.full);/return false;/
reclaim: and yet kept; ops:capacity.odd.room_after_remove_elsewhere; s/^\t\tcpu->spare = 0;//
barrier: waits for nobody; race:race.four_cpus.closed_at_once; /^void tw_cpu_barrier/,/^}/s/tw_lock_bh(&file->cpu\[nr\]->lock);/if (1) continue;/
step: at once; ring:global.advance_at_once_or_in_steps; s/return max(w->work \* w->tick, cpu->file->advanced);/return to;/
step: back to where the tick began; equivalent: the work of a wheel is never before the tick that it is in, and while there is more of it time stands where that tick began; s/return max(w->work \* w->tick, cpu->file->advanced);/return w->work * w->tick;/
advance: backwards; ops:ops.advance_backwards; s/if (to < file->advanced) {/if (0) {/
advance: only the last batch is told; time:manual.is_counted; s/\*expired += ctx.cpu->wheel.expired - before;/*expired = ctx.cpu->wheel.expired - before;/
advance: woken for the last batch only; ring:ring.wakes_who_waits_on_the_way; s/wake |= ctx.wake_readers;/wake = ctx.wake_readers;/
advance: woken for each batch; readers:manual.advance_wakes_once; s/^\t\tctx.wake_readers = false;//
advance: ends before its time; ring:global.advance_at_once_or_in_steps; s/ || now < to;/;/
advance: batches are not counted; time:manual.is_counted; s/tw_cpu_count_batch(ctx.cpu, began, handled);/;/
advance: goes on when killed; killed:victim.advance.*; s/if (more \&\& fatal_signal_pending(current))/if (0)/
close: a closed wheel has turns; race:race.four_cpus.open_close; s/^\t\t\ttw_engine_remove(file->cpu\[nr\]);/\t\t\t;/
reset: parts are charged for ever; ops:setup.after_look; s/^\t\ttw_uncharge(file, tw_alloc_size(tw_cpu_size(&file->setup)));//
strands: for wheels with few timers, too; ops:global.strands_memory; s/!tw_wheel_large(&cpu->wheel)/cpu->wheel.strands > 1/
strands: never; ops:global.strands_memory; s/!tw_wheel_large(&cpu->wheel)/1/
strands: more memory with each growth; ops:global.strands_memory; s/!tw_wheel_large(&cpu->wheel)/READ_ONCE(cpu->wheel.pending) < 49664/
strands: their memory is not charged; ops:global.strands_memory; /^void tw_cpu_spread/,/^}/s/if (tw_charge(file, tw_alloc_size(size)))/if (0)/
strands: memory for one strand; ops:global.strands_memory; /^static size_t tw_cpu_heads_size/,/^}/s/ \* TW_STRANDS//
