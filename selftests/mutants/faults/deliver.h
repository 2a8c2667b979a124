# SPDX-License-Identifier: GPL-2.0
overruns: the deadline itself is one; readers:manual.periodic_overruns; s/return div64_u64(max(ctx->now, t->deadline) - t->deadline, period);/return div64_u64(max(ctx->now, t->deadline) - t->deadline, period) + 1;/
overruns: a deadline ahead of the clock is one of long ago; time:set.backward_periodic; s/max(ctx->now, t->deadline) - t->deadline/ctx->now - t->deadline/
event: fired by the wheel's clock; time:namespace.*.read; s/.fired = t->fired + offset,/.fired = t->fired,/
event: of a set clock: the sets before it and it; time:set.told_merged; s/.overruns = events->clock_sets - 1,/.overruns = events->clock_sets,/
rearm: a period from now; readers:manual.periodic_in_step_after_overruns; s/return t->deadline + passed + t->period;/return t->fired + t->period;/
rearm: beyond the last deadline; time:manual.periodic_to_the_end,manual.periodic_at_the_end; s/if (t->period > TIMERWHEEL_TIME_MAX - t->deadline - passed)/if (0)/
rearm: still another CPU's; readers:clock.periodic_read_elsewhere; s/WRITE_ONCE(t->cpu, cpu->nr);/;/
rearm: overruns are not counted; ops:ledger.deliver; s/cpu->counts.overruns += overruns;/;/
free: the next one in its chain is lost; ops:model.*.random; s/t->hash_next);/0);/
taken: a period ends with the first event; readers:manual.periodic_next_deadline; s/taken->stay = true;/WRITE_ONCE(t->state, TW_CLAIMED);/
