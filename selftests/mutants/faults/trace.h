# SPDX-License-Identifier: GPL-2.0
deliver: early; ops:trace.tells; s/__entry->late = event->fired - event->deadline;/__entry->late = event->deadline - event->fired;/
arm: of a periodic timer only; ops:trace.tells; s/__entry->period = tw_timer_period(t);/__entry->period = t->period;/
expire: a run has one timer; ops:trace.tells; s/__entry->count = due->count;/__entry->count = 1;/
