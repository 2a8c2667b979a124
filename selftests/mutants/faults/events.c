# SPDX-License-Identifier: GPL-2.0
more: events that are gone count as told; readers:batch.counts_anew_after_read; s/events->woken = min(events->woken, waiting);/;/
more: each event begins the time anew; readers:batch.wakes_though_more_come; s/if (!events->wake_armed) {/if (1) {/
more: MANUAL waits for a clock; readers:batch.manual_waits_for_no_clock; s/setup->wake_events ||/setup->wake_events) {/;/setup->clock == TIMERWHEEL_CLOCK_MANUAL) {/d
more: no overflow of the time; equivalent: no clock comes that far, and the engine has the same limit; s/min_t(u64, now + setup->wake_ns, KTIME_MAX)/now + setup->wake_ns/
waiting: what is in the ring does not count; ring:global.batching; s/return tw_has_ring(file) ? due + min(tw_ring_used(&file->ring), file->ring.events) : due;/return due;/
any: a clock that was set does not count; time:set.told_asleep; s/return tw_events_waiting(file) || READ_ONCE(file->events.clock_sets);/return tw_events_waiting(file);/
wake_now: the time is up only once; readers:batch.wakes_after_time_again; s/events->wake_armed = false;/;/
wake_now: those told of count again; readers:batch.counts_anew_after_time; s/events->woken = tw_events_waiting(cpu->file);/;/;s/wake = events->woken;/wake = tw_events_waiting(cpu->file);/
wake_now: though nothing waits; readers:batch.no_wakeup_for_nothing; s/wake = events->woken;/wake = true;/
wake: without SIGIO; readers:manual.sigio; s/kill_fasync(&events->fasync, SIGIO, POLL_IN);/;/
wake: a ring's reader that is awake; ring:ring.wakes_who_waits; s/if (tw_has_ring(file) \&\& !tw_ring_reader_sleeps(&file->ring))/if (0)/
log: without resident timers; resident:one.*.monitor; /^void tw_events_log(/,/^}/s/^\t\tif (log)$/\t\tif (log \&\& !t->stay)/
log: readers of monitors sleep on; monitor:monitor.wakes; s/ctx->wake_monitors = true;/;/
copy: part of an event before the next one; readers:manual.readv_fresh_memory; /^static void tw_events_copy/,/^}/s/iov_iter_revert(to, copied);/;/
copy: the second piece at the first one's place; ops:ops.advance_order; s/iov_iter_advance(to, taken->count \* sizeof(event));/;/
set: told again; time:set.told_forward; s/WRITE_ONCE(file->events.clock_sets, 0);/;/
set: monitors do not have it; time:set.told_monitor; /^bool tw_events_take_clock_set/,/^}/s/tw_log_write(log, event);/;/
set: readers of monitors sleep on; time:set.told_monitor_reader_asleep; /^static int tw_events_deliver_clock_set/,/^}/s/if (wake_monitors)/if (0)/
set: taken though it did not arrive; time:set.told_after_fault; /^static int tw_events_deliver_clock_set/,/^}/s/if (copied == sizeof(event))$/if (1)/
deliver: RWF_NOWAIT waits for memory; readers:clock.nowait_allocates_nothing; s/n = __tw_cpu_begin(&ctx, file, offset, nowait, TW_NO_CPU);/n = __tw_cpu_begin(\&ctx, file, offset, false, TW_NO_CPU);/
read: what fires meanwhile, too; readers:clock.periodic_once_in_a_long_read; s/room = min_t(ssize_t, room, done + READ_ONCE(file->events.due.count));/;/
read: more than there is room for, with a clock that was set; time:set.told_in_a_short_read; s/min_t(size_t, room - done, TW_DELIVER_BATCH)/min_t(size_t, room, TW_DELIVER_BATCH)/
read: nobody else is woken for the rest; readers:manual.blocked_readers_all_served; s/if ((done || n < 0) \&\& tw_events_any(file))/if (0)/
read: after a fault nobody else is woken; readers:manual.fault_wakes_another; s/if ((done || n < 0) \&\& tw_events_any(file))/if (done \&\& tw_events_any(file))/
read: a fault takes back what was read; readers:manual.fault_midway_counts_whole_events; s/return done ? done \* TW_EVENT_SIZE : min(n, 0);/return n < 0 ? n : done * TW_EVENT_SIZE;/
read: what is due comes before a clock that was set meanwhile; time:set.told_first_after_wait; s/events->clock_sets ? 0 : min(max/min(max/;s/if (unlikely(READ_ONCE(file->events.clock_sets))) {/if (0) {/
read: memory that is only absent is written before its event; readers:manual.killed_reader_loses_nothing; s/if (likely(!faults))/if (0)/
