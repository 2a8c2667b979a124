# SPDX-License-Identifier: GPL-2.0
backend: always the device; proxy/run:messages; s/return timerwheel_backend(loop->wheel) == TIMERWHEEL_BACKEND_DEVICE/return true/
cancel: timers stay; proxy/run:thousands proxy/run:all_servers_refuse; s/err = timerwheel_queue_remove(timers->removals, &removal);/err = 0;/
key: a cookie that is counted downwards is not found; proxy/run:cookies_downwards; s/(int64_t)key >> 1/key >> 1/
