# SPDX-License-Identifier: GPL-2.0
grant: fewer slots; ops:setup.beyond_limits; s/arg->slots < TW_SLOTS_MIN ||/arg->slots < 1 ||/
grant: a shorter tick; ops:setup.beyond_limits; s/arg->tick < tick_min ||/arg->tick < 1 ||/
grant: slack without end; ops:setup.beyond_limits; s/ || arg->slack > TIMERWHEEL_TIME_MAX ||/ ||/
grant: wake_ns without end; ops:setup.beyond_limits; s/arg->wake_ns > TIMERWHEEL_TIME_MAX || //
grant: a longer ring; ring:global.setup; s/ || arg->ring > TIMERWHEEL_RING_MAX)/)/
grant: events without a time for readers; ops:setup.wake_events_without_time; s/if (arg->wake_events > 1 \&\& !arg->wake_ns)/if (0)/
grant: one event needs a time, too; ops:setup.*; s/if (arg->wake_events > 1 \&\& !arg->wake_ns)/if (arg->wake_events \&\& !arg->wake_ns)/
grant: the tick of a MANUAL wheel is as for others; ops:setup.limits; s/arg->clock == TIMERWHEEL_CLOCK_MANUAL ? 1 : TW_TICK_MIN/TW_TICK_MIN/
grant: who asks to be told of another clock; ops:setup.beyond_limits; s/if (arg->flags & TIMERWHEEL_SETUP_CLOCK_SET \&\& .*/if (0)/
grant: an alarm of MONOTONIC; ops:setup.beyond_limits; s/^\tif (arg->flags & TIMERWHEEL_SETUP_ALARM \&\& arg->clock != .*/\tif (0 \&\&/
grant: events of odd sizes; ring:global.event_size; s/ || arg->event_size % 8 ||/ ||/
grant: events larger than there are; ring:global.event_size; s/min_t(u32, arg->event_size ?: TW_EVENT_SIZE_FIRST,/max_t(u32, arg->event_size,/
ring: not charged; ops:cap.ring; s/err = tw_charge(file, bytes);/err = 0;/
ring: charged although there is no memory; lifetime:memcg_full.no_ring; s/^\t\ttw_uncharge(file, bytes);/\t\t;/
ring: in times of the first namespace; ring:global.time_namespace; s/tw_clock_offset(setup->clock));/0);/
ring: in times of the clock before; ring:global.time_namespace; s/tw_clock_offset(setup->clock));/tw_clock_offset(file->setup.clock));/
apply: generations of the tick before; deadlines:table.tick_1_s.*,table.tick_1_ns.*; /^static void tw_setup_apply/,/^}/s/tw_pool_set_entries(.*/;/
apply: nothing but the clock; ops:setup.* icount/time:slack.*; s/^\tdata_race(file->setup = \*setup);//
twice; ops:setup.twice; s/if (file->setup_done || file->table.made)/if (file->table.made)/
after a timer; ops:setup.after_add; s/if (file->setup_done || file->table.made)/if (file->setup_done)/
what was made before stays; ops:setup.after_look; s/^\t\ttw_cpu_reset(file);//
who may not wake the machine may; suspend:global.alarm_refused; s/err = tw_alarm_permitted();/err = 0;/
who reads already goes on; ring:global.setup_while_reading; s/wake_up_interruptible_all(&file->events.readers);/;/
the capacity that was granted is not told; ops:setup.zeroes; s/^\targ->capacity = arg->capacity ?: TW_CAPACITY_DEFAULT;//; s/\.capacity = arg->capacity,/.capacity = arg->capacity ?: TW_CAPACITY_DEFAULT,/
table: only with resident timers; deadlines:global.only_setup_creates_it; s/arg->flags & (TIMERWHEEL_SETUP_TABLE | TIMERWHEEL_SETUP_RESIDENT),/arg->flags \& TIMERWHEEL_SETUP_RESIDENT,/
table: not with resident timers; deadlines:global.only_setup_creates_it; s/arg->flags & (TIMERWHEEL_SETUP_TABLE | TIMERWHEEL_SETUP_RESIDENT),/arg->flags \& TIMERWHEEL_SETUP_TABLE,/
table: a ring without one stays charged; ops:cap.others; s/^\t\ttw_uncharge(file, tw_ring_memory(setup->ring));$/\t\t;/
