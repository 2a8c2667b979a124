# SPDX-License-Identifier: GPL-2.0
# What differs in a wheel with a deadline table; for others, and for the rest of the file, see ../../unit/table.
dequeue: a parked timer is counted still; resident:one.*.fires_and_stays; s/ctx->cpu->wheel.parked--;/;/
remove: whatever its value; resident:one.*.match; /^static .*tw_remove(/,/^}/s/t->value != arg->match/0/
look: a cancelled timer is pending; resident:one.*.list_and_drain; s/return tw_resident_cancelled(pool, t, stored) ?/return 0 ?/
move: a due timer is not armed; resident:one.read.move_unless_armed; s/flags & TIMERWHEEL_EXCL \&\& lookup->state == TW_DUE/0/
lookup: another base is locked in the middle of a batch; race:foreign.*; /^static __always_inline bool tw_lookup(/,/^}/{s/^\tlookup->bucket = /again:\n&/;s/^\ttw_start_over(ctx, nr);$/\tif (ctx->other)\n\t\traw_spin_unlock(\&ctx->other->lock);\n\traw_spin_unlock(\&ctx->cpu->lock);\n\tctx->other = tw_cpu_lock_two(ctx->cpu, nr);\n\tgoto again;/}
add: a period in a wheel with a table; deadlines:table.*.no_periods; s/(tw_pool_table(pool) \&\& !arg->period == !!(arg->flags & TIMERWHEEL_LINGER)) ||/0 ||/
add: a linger of a timer that is not resident; deadlines:table.*.no_periods; s/(tw_pool_resident(pool) ?/(tw_pool_table(pool) ?/
add: at the end of time a pending timer stays in its slot; resident:exact.end_of_time_pending; s/if (lookup.state != TW_FREE \&\& unlikely(t->deadline <= ctx->now)) {/if (0) {/
move: at the end of time a pending timer stays in its slot; resident:exact.end_of_time_pending; s/^\tstays = stays \&\& t->deadline > ctx->now;/\tstays = stays \&\& deadline > ctx->now;/
