# SPDX-License-Identifier: GPL-2.0
late_max: of the last CPU; readers:clock.stats_of_all_cpus; s/stats->late_max = max(stats->late_max, w->late_max);/stats->late_max = w->late_max;/
pass_max_timers: of the last CPU; readers:clock.stats_of_all_cpus; s/max(stats->pass_max_timers, c->batch_max_timers)/c->batch_max_timers/
pass_max_ns: of the last CPU; readers:clock.stats_of_all_cpus; s/max(stats->pass_max_ns, c->batch_max_ns)/c->batch_max_ns/
lateness: of the last CPU; readers:clock.stats_of_all_cpus; s/TIMERWHEEL_LATENESS_BUCKETS - 1U)\] += w->lateness/TIMERWHEEL_LATENESS_BUCKETS - 1U)] = w->lateness/
lateness: one bucket more; time:manual.lateness_last_bucket; s/min(i, TIMERWHEEL_LATENESS_BUCKETS - 1U)/min(i, TIMERWHEEL_LATENESS_BUCKETS - 2U)/
overruns: of the last CPU; readers:clock.stats_of_all_cpus; s/stats->overruns += c->overruns;/stats->overruns = c->overruns;/
withdrawn: those removed, too; ops:ledger.remove_pending; s/stats->withdrawn += c->withdrawn;/stats->withdrawn += c->removed;/
get: up to the first CPU that did nothing; readers:clock.stats_of_the_last_cpu; /^void tw_stats_get(/,/^}/s/^\t\tif (cpu)$/\t\tif (!cpu) {\n\t\t\trcu_read_unlock();\n\t\t\tbreak;\n\t\t} else/
get: memory without the log; monitor:monitor.charged; s| + tw_log_memory(file);|;|
info: settled by timers alone; ops:setup.granted; s/info->flags = TIMERWHEEL_INFO_SETTLED |$/info->flags =/
info: settled by SETUP alone; ops:setup.after_add; s/READ_ONCE(file->table.made) ? TIMERWHEEL_INFO_SETTLED : 0/0/
info: closed is not said; ops:ops.close_add; s/READ_ONCE(file->closed) ? TIMERWHEEL_INFO_CLOSED : 0/0/
info: now is the first namespace's; time:namespace.*.look; s/ + tw_clock_offset(setup.clock);/;/
info: the ring's length is forgotten; ring:global.setup; s/info->ring = setup.ring;/;/
fdinfo: armed without rearmed; lifetime:wheel.fdinfo_is_stats; s/stats.armed + stats.rearmed/stats.armed/
fdinfo: pending and due are one; lifetime:wheel.fdinfo_is_stats; s/timerwheel-pending:\\t%llu\\n", stats.pending/timerwheel-pending:\\t%llu\\n", stats.pending + stats.due/
fdinfo: closed is the whole word; lifetime:wheel.fdinfo_is_stats; s/!!(info.flags \& TIMERWHEEL_INFO_CLOSED)/info.flags/
fdinfo: boottime and realtime change places; lifetime:wheel.fdinfo_is_stats; s/"boottime", "realtime"/"realtime", "boottime"/
info: io_uring is not said; uring:global.forbidden_by_filter; s/info->features |= TIMERWHEEL_FEATURE_URING;/;/
