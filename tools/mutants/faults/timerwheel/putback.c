# SPDX-License-Identifier: GPL-2.0
a newer timer is replaced; timerwheel/wheels:newer; s/arm(wheel, &entries\[i\], TIMERWHEEL_EXCL)/arm(wheel, \&entries[i], 0)/
the slack is forgotten; timerwheel/wheels:as_it_was; s/^\t\t\.slack = entry->slack,/\t\t.slack = 0,/
the period is forgotten; timerwheel/wheels:as_it_was; s/^\t\t\.period = entry->period,/\t\t.period = 0,/
the deadline is taken from now; timerwheel/wheels; s/TIMERWHEEL_ABS | TIMERWHEEL_SLACK | flags/TIMERWHEEL_SLACK | flags/
a periodic timer's event replaces its timer; timerwheel/wheels:periodic; s/^\t\tentry->period = now.period;/\t\t;/
what is refused is not printed; timerwheel/wheels:printed; s/^\tfprintf(stderr, /\tif (0) fprintf(stderr, /
