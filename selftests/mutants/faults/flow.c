# SPDX-License-Identifier: GPL-2.0
set: told although there is no room; time:set.told_ring; s/bool room = tw_ring_room(ring), wake_monitors/bool room = true, wake_monitors/
flow: a batch is written beyond the room; ring:ring.overflows; s/min(tw_ring_room(ring), events->due.count);/events->due.count;/
flow: what does not fit is not told; ring:ring.overflows; s/tw_ring_publish(ring, n, tw_flow_overflow(events));/tw_ring_publish(ring, n, false);/
open: ahead of those that wait; ring:ring.order_is_kept; s/ \&\& !READ_ONCE(file->events.due.count) \&\&/ \&\&/
open: although there is one place less; ring:ring.overflows; s/return tw_ring_room(&file->ring) >= count/return tw_ring_room(\&file->ring) + 1 >= count/
at once: a period is not armed again; ring:ring.periodic; s/tw_timer_stay(ctx, t, index);/tw_timer_free(ctx, t, index);/
at once: times without the offset of the time namespace; ring:global.time_namespace; s/u64 offset = ring->offset;/u64 offset = 0;/
at once: not counted as delivered; ring:ring.is_delivered; s/ctx->cpu->counts.delivered += due->count;/;/
at once: nobody is woken; ring:ring.wakes_who_waits; s/ctx->wake_readers |= tw_events_need_wake(ctx->cpu, due->count, ctx->now);/tw_events_need_wake(ctx->cpu, due->count, ctx->now);/
at once: monitors are not told; monitor:global.of_a_ring_at_once; s/if (unlikely(tw_log_active(file) || trace_timerwheel_deliver_enabled()))/if (0)/
expire: what waits before is left out; ring:ring.order_is_kept; s/tw_flow_from_list(ctx, due->count + TW_FLOW_ALONG);/tw_flow_from_list(ctx, 0);/
all: as long as a reader empties it; ring:global.flow_is_bounded; s/tw_flow_batches(file, file->ring.events, false) : -EINVAL/tw_flow_batches(file, U32_MAX, false) : -EINVAL/
all: a signal does not end it; ring:global.flow_signals; s/ \&\& !signal_pending(current));/);/
at once: the tail is there before the events; ring:global.tail_comes_last; /^static bool tw_flow_direct/,/^}/{s/for (index = due->first, place = ring->tail; index;/tw_ring_publish(ring, due->count, false);\n\tfor (index = due->first, place = ring->tail - due->count; index;/;/tw_ring_publish(ring, due->count, READ_ONCE/d}
after: it makes a base for the worker of connections; socket:socket.ip4.ring_without_another_base; s/tw_flow_batches(file, n + TW_FLOW_ALONG, true)/tw_flow_batches(file, n + TW_FLOW_ALONG, false)/
