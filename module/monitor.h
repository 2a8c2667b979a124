/* SPDX-License-Identifier: GPL-2.0-only */
/* Monitors: descriptors that return a copy of every event. See monitor.c. */
#ifndef TW_MONITOR_H
#define TW_MONITOR_H

struct timerwheel_monitor;
struct tw_file;

int tw_monitor_init(void);
void tw_monitor_exit(void);
void tw_monitor_wake(struct tw_file *file);
long tw_monitor_open(struct tw_file *file, const struct timerwheel_monitor *arg);

#endif /* TW_MONITOR_H */
