# SPDX-License-Identifier: GPL-2.0
MOVE: EXCL of a pending resident timer; handle:resident.move_unless_armed; s/deadline, ctx->flags, TW_PENDING,/deadline, 0, TW_PENDING,/
MOVE: EXCL of a resident timer, looked up; handle:resident.move_unless_armed; s/deadline, ctx->flags);/deadline, 0);/
MOVE: a parked timer is not found; handle:resident.move; /^static .*tw_lookup_handle(/,/^}/s/ \&\& t->generation != generation) {/ \&\& (lookup->state == TW_PARKED || t->generation != generation)) {/
MOVE: a due timer is as good as a pending one; handle:one.*.move_due; s/&state, &nr) \&\& state == TW_PENDING/\&state, \&nr) \&\& state/
done although a timer has another base; race:race.*.handles,race.*.one_key; s/if (unlikely(result == -EAGAIN))/if (0)/
REMOVE: the chain of a periodic timer; handle:one.*.periodic; s/ || t->stay != TW_ENDS))/))/
on a wheel without timers; handle:global.empty; s/if (unlikely(!most))/if (0)/
