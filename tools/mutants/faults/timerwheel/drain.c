# SPDX-License-Identifier: GPL-2.0
one of those that were not written is forgotten; timerwheel/wheels:does_not_fit; s/entries + out, count - out)/entries + out + 1, count - out - 1)/
the wheel is closed before anything is written; timerwheel/wheels:--close; s/? 0 : timers()/? 0 : 0/
the wheel is not closed; timerwheel/wheels:closed; s/^\t\tclose_wheel();/\t\t;/
a signal between taking and writing; timerwheel/wheels:took_nothing_away; s/^\t\thold_begin();/\t\t;/
the limit counts each part for itself; timerwheel/wheels:--limit; s/take(limit - drained)/take(limit)/
the wheel is closed before parked timers are written; timerwheel/wheels:parked; s/ + stats.parked;/;/
