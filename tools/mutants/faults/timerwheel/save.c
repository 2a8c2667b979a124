# SPDX-License-Identifier: GPL-2.0
timers of a deadline table are saved; timerwheel/wheels:resident_timers; s/^\tif (info.flags & TIMERWHEEL_INFO_TABLE)/\tif (0)/
a time of day is read again; timerwheel/wheels:exact; s/info.clock == TIMERWHEEL_CLOCK_REALTIME ? info.now : wall_ns(),/wall_ns(),/
