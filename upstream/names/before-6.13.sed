# SPDX-License-Identifier: GPL-2.0
# hrtimer_setup() came with 6.13: before, the callback was set by assignment. Callbacks of alarms
# returned if the alarm is to be started again.
/hrtimer_setup(&engine->clock\[i\]\.timer, tw_engine_fire, id\[i\],/{
N
s/hrtimer_setup(\(&engine->clock\[i\]\.timer\), tw_engine_fire, id\[i\],\n\t*\( *\)\(HRTIMER_[A-Z_]*\));/hrtimer_init(\1, id[i],\n\t\t\t\t     \3);\n\t\t\tengine->clock[i].timer.function = tw_engine_fire;/
}
s/^static void tw_alarm_fired(/static enum alarmtimer_restart tw_alarm_fired(/
s/^\tpm_wakeup_dev_event(&tw_alarm_device->dev, TW_ALARM_SOON_MS, true);$/&\n\treturn ALARMTIMER_NORESTART;/
