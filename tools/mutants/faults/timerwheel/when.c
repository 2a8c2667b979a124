# SPDX-License-Identifier: GPL-2.0
a date in UTC is taken as local time; timerwheel/wheels:UTC; s/count = utc ? 1 : /count = /
a date that does not exist is moved; timerwheel/wheels:dates; s/^\tif (!same(&again, &tm))/\tif (0)/
a local time that is skipped is moved; timerwheel/wheels:skipped; s/localtime_r(&time, &local) && same(&local, tm) && /localtime_r(\&time, \&local) \&\& /
a local time that occurs twice is one of them; timerwheel/wheels:twice; s/^\tif (count > 1)/\tif (0)/
only summer time changes clocks; timerwheel/wheels:dates; s/i ? 86400 : -86400/0/
a year has any number of digits; timerwheel/wheels:not_a_date; s/^\tfor (; digits; digits--, (\*text)++) {/\tfor (; digits \&\& **text != '-'; digits--, (*text)++) {/
a date before 1970 is the beginning of time; timerwheel/wheels:too_early; s/^\tif (times\[0\] < 0)/\tif (0)/
