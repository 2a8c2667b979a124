# SPDX-License-Identifier: GPL-2.0
may: everybody; suspend/suspend:global.alarm_refused; s/if (!capable(CAP_WAKE_ALARM))/if (0)/
base: from the beginning of the clock; suspend/suspend:alarm.realtime.wakes; s/return at > now ? at - now : 0;/return at;/
base: events may wait; suspend/suspend:alarm.boottime.batched; s/if (tw_events_any(cpu->file))/if (0)/
base: a clock that was set back is not; suspend/suspend:alarm.realtime.set_back; s/ - w->bias, KTIME_MAX/, KTIME_MAX/
first: that of the last base; suspend/suspend:alarm.boottime.first_of_wheels; s/first = min(first, tw_alarm_base_delay(cpu, \&left));/first = tw_alarm_base_delay(cpu, \&left);/
first: of the first wheel only; suspend/suspend:alarm.boottime.first_of_wheels; /^static u64 tw_alarm_first_delay(/,/^}/s/^\t\t}$/\t\t}\n\t\tbreak;/
prepare: without an alarm; suspend/suspend:alarm.boottime.wakes; s/^\talarm_start_timer(.*/\t;/
prepare: it sleeps, however soon; suspend/suspend:alarm.boottime.soon; s/^\t\treturn -EBUSY;/\t\treturn 0;/
prepare: an alarm without a timer; suspend/suspend:suspend.to_ram.all_clocks; s/if (first == TW_NEVER)/if (0)/
complete: the alarm stays; suspend/suspend:alarm.boottime.closed; /^static void tw_alarm_complete(/,/^}/s/alarm_cancel(&tw_alarm);/;/
leave: it stays in the list; suspend/suspend:alarm.boottime.closed; /^void tw_alarm_leave(/,/^}/s/list_del(&file->alarm);/;/
fired: a timer in the middle of the suspend is nothing; suspend/suspend:alarm.boottime.while_devices_are_suspended; /^static void tw_alarm_fired(/,/^}/s/^\tpm_wakeup_dev_event(.*/\t;/
