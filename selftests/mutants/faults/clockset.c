# SPDX-License-Identifier: GPL-2.0
offset: to sleep is to set the clock; suspend/suspend:suspend.to_ram.all_clocks; s/return real - boot;/return real;/
join: it knows no distance; time:set.told_forward; s/clockset->offset = tw_clockset_offset();/;/
join: nobody is told who sleeps; time:set.told_asleep; s/pvclock_gtod_register_notifier(&tw_clockset_notifier);/;/
notice: again and again; time:set.told_forward; s/WRITE_ONCE(clockset->offset, offset);/;/
notice: sets that nobody has read are one; time:set.told_merged; s/events->clock_sets + 1/1/
notice: the time of the first one stays; time:set.told_merged; s/events->clock_set_at = /if (events->clock_sets == 1) events->clock_set_at = /
notice: readers are not woken; time:set.told_asleep; s/^\t\ttw_events_wake(file);/\t\t;/
notice: monitors are not woken; time:set.told_monitor_asleep; s/^\t\ttw_monitor_wake(file);/\t\t;/
notice: into the ring with FLOW only; time:set.told_ring; s/wake_monitors = tw_flow_clock_set(file);/;/
work: one file only; time:set.told_after_others,set.told_asleep; s/while ((file = tw_clockset_next(generation)))/if ((file = tw_clockset_next(generation)))/
work: no new generation; time:set.told_asleep; s/generation = ++tw_clockset_generation;/generation = tw_clockset_generation;/
work: a file keeps its place; time:set.told_asleep,set.told_after_others,set.told_only_who_asks; s/list_move_tail(&file->clockset.list, &tw_clockset_files);/;/
join: a notifier for each file; time:set.told_after_others; s/if (!tw_clockset_registered)/if (1)/
exit: the notifier stays; lifetime:module.rmmod_after_clock_set; s/if (tw_clockset_registered)/if (0)/
leave: it stays in the list; time:set.told_*; /^void tw_clockset_leave(/,/^}/s/list_del(&file->clockset.list);/;/
