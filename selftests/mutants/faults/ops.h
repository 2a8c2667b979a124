# SPDX-License-Identifier: GPL-2.0
# What differs for resident timers; for others, and for the rest of the file, see ../../unit/table.
dequeue: a parked timer is counted still; resident:one.*.fires_and_stays; s/ctx->cpu->wheel.parked--;/;/
remove: whatever its value; resident:one.*.match; /^static .*tw_remove(/,/^}/s/t->value != arg->match/0/
look: a cancelled timer is pending; resident:one.*.list_and_drain; s/return tw_pool_resident(pool) \&\& tw_resident_cancelled(pool, t, stored) ?/return 0 ?/
move: a due timer is not armed; resident:one.read.move_unless_armed; s/flags & TIMERWHEEL_EXCL \&\& lookup->state == TW_DUE/0/
