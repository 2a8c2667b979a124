# SPDX-License-Identifier: GPL-2.0
a newer timer is replaced; timerwheel/wheels:newer; /^static int restore(/,/^}/s/TIMERWHEEL_EXCL/0/
the slack is forgotten; timerwheel/wheels:as_it_was; s/^\t\t\.slack = entry->slack,/\t\t.slack = 0,/
the period is forgotten; timerwheel/wheels:as_it_was; s/^\t\t\.period = entry->period,/\t\t.period = 0,/
the deadline is taken from now; timerwheel/wheels; s/TIMERWHEEL_ABS | TIMERWHEEL_SLACK | flags/TIMERWHEEL_SLACK | flags/
a periodic timer's event replaces its timer; timerwheel/wheels:periodic; s/^\t\tentry->period = now.period;/\t\t;/
what is refused is not printed; timerwheel/wheels:printed; s/^\tfprintf(stderr, /\tif (0) fprintf(stderr, /
the linger is forgotten; timerwheel/wheels:armed_ones; s/(entry->flags & TIMERWHEEL_LINGER),/0,/
a linger is printed as a period; timerwheel/wheels:lingers; s/"linger" : "period"/"period" : "period"/
a parked timer is due; timerwheel/wheels:armed_ones; s/^\tif (entry->result != TIMERWHEEL_WAS_PARKED)/\tif (1)/
a parked timer is armed for never; timerwheel/wheels:armed_ones; s/^\t\tcancel(&table, &add);/\t\t;/
a resident timer's event is another timer; timerwheel/wheels:event_of_a_resident; s/info.flags & TIMERWHEEL_INFO_RESIDENT/0/
