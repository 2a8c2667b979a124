# SPDX-License-Identifier: GPL-2.0
resident timers are saved; timerwheel/wheels:resident_timers; s/^\tif (info.flags & TIMERWHEEL_INFO_RESIDENT)/\tif (0)/
