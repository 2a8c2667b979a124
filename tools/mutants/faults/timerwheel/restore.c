# SPDX-License-Identifier: GPL-2.0
no clamp for what is overdue beyond all times; timerwheel/host:overdue; s/^\t\t\te->left = (passed .*;/\t\t\t;/
what was replaced is not put back; timerwheel/wheels:what_was_replaced; s/^\t\t\tput_back(wheel, &before\[i\], 1);/\t\t\t;/
a time of day counts from now; timerwheel/wheels:times_of_day; s/TIMERWHEEL_CLOCK_REALTIME ? day : info.now;/TIMERWHEEL_CLOCK_REALTIME ? info.now : info.now;/
a time of day is not later when the clock is behind; timerwheel/wheels:times_of_day; s/^\tpassed = by_day;/\tpassed = by_day < 0 ? 0 : by_day;/
the time of day counts in the same boot; timerwheel/wheels:time_of_day_was_set; s/} else if (same_boot()) {/} else if (0) {/
another boot is the same; timerwheel/wheels:time_of_day_has_passed; s/return \*boot && !strcmp(boot, saved.boot) && /return *boot \&\& /
a clock that is behind subtracts; timerwheel/wheels:nothing_is_subtracted; s/^\t\tpassed = 0;$/\t\t;/
a time of day that may be wrong is not mentioned; timerwheel/wheels:may_be_wrong_now; s/!saved.synchronized || !wall_synchronized()/0/
a time of day that was wrong at the save is not mentioned; timerwheel/wheels:wrong_at_the_save; s/!saved.synchronized || //
--elapsed is ignored; timerwheel/wheels:--elapsed; s/passed = opt.number\[OPT_ELAPSED\];/;/
