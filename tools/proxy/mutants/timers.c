# SPDX-License-Identifier: GPL-2.0
backend: always the device; messages; s/return timerwheel_backend(timers->wheel) == TIMERWHEEL_BACKEND_DEVICE/return true/
cancel: timers stay; thousands all_servers_refuse; s/err = timerwheel_queue_remove(timers->removals, &removal);/err = 0;/
