# SPDX-License-Identifier: GPL-2.0
tick: a clock that is set back is not noticed; icount/time:set.backward_new; s/if (unlikely(tick + 1 < w->cursor))/if (0)/
tick: a clock that is set back by a tick is not noticed; icount/time:set.backward_by_a_tick; s/if (unlikely(tick + 1 < w->cursor))/if (unlikely(tick + 2 < w->cursor))/
tick: the look counts for as long from now on; time:global.no_cascade_in_the_next_tick; s/cpu->tick_began = tick \* w->tick - w->bias;/cpu->tick_began = now;/
tick: the wheel is not told; icount/time:manual.no_cascade_after_a_leap; s/^\ttw_wheel_catch_up(w, tick);//
catch up: a clock that is set back is not noticed; icount/time:set.backward_new; s/if (unlikely(now - cpu->tick_began >= cpu->wheel.tick))/if (unlikely(now >= cpu->tick_began + cpu->wheel.tick))/
catch up: a tick later; time:global.no_cascade_in_the_next_tick; s/if (unlikely(now - cpu->tick_began >= cpu->wheel.tick))/if (unlikely(now - cpu->tick_began >= 2 * cpu->wheel.tick))/
begin: makes a part although it may not sleep; readers:clock.nowait_allocates_nothing; s/cpu = tw_cpu_obtain(file, nowait);/cpu = tw_cpu_obtain(file, false);/
begin: in times of the first namespace; time:namespace.monotonic_plus.absolute; s/ctx->offset = offset;/ctx->offset = 0;/
wake: what fell due in a run does not flow; ring:ring.due_at_once; s/^\tif (ctx->flow)$/\tif (0)/
wake: no reader; readers:clock.past_deadline_wakes_reader; s/^\tif (ctx->wake_readers)$/\tif (0)/
wake: no monitor; monitor:monitor.wakes; s/^\tif (ctx->wake_monitors)$/\tif (0)/
end: not started for what comes sooner; readers:clock.blocking_read_wakes; s/if (unlikely(ctx->cpu->wheel.sooner))/if (0)/
