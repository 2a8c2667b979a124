# SPDX-License-Identifier: GPL-2.0
offset: whole seconds; deadlines:global.other_time_namespace; s/ + time->tv_nsec;/;/
offset: BOOTTIME's is MONOTONIC's; time:namespace.boottime_plus.absolute; s/return tw_ns(&offsets->boottime);/return tw_ns(\&offsets->monotonic);/
offset: REALTIME has MONOTONIC's; time:namespace.realtime.absolute; s/if (likely(clock == TIMERWHEEL_CLOCK_MONOTONIC))$/if (clock != TIMERWHEEL_CLOCK_BOOTTIME)/; s/return ktime_get_ns();/return clock == TIMERWHEEL_CLOCK_REALTIME ? ktime_get_real_ns() : ktime_get_ns();/
relative: a sum beyond the largest time is as it is; ops:ops.add_beyond_max,ops.move_beyond_max; s/max_t(s64, sum, 0) : TIMERWHEEL_TIME_MAX/max_t(s64, sum, 0) : sum/
relative: before time 0; ops:ops.add_negative,ops.move_negative; s/max_t(s64, sum, 0)/sum/
absolute: beyond the largest time; ops:ops.add_beyond_max,ops.move_beyond_max; s/^\ttime = min(time, TIMERWHEEL_TIME_MAX);//
absolute: before the namespace's time 0; time:namespace.monotonic_plus.origin; s/return time > offset ? time - offset : 0;/return time - offset;/
absolute: beyond the largest time in a namespace; time:namespace.monotonic_minus.last; s/return min(time - offset, TIMERWHEEL_TIME_MAX);/return time - offset;/
# BOOTTIME read as MONOTONIC is detected by selftests/suspend.c, in a guest that can be suspended.
now: a MANUAL wheel's is MONOTONIC's; ops:ops.advance_relative; s/if (unlikely(clock == TIMERWHEEL_CLOCK_MANUAL))/if (0)/
