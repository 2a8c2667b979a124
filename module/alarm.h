/* SPDX-License-Identifier: GPL-2.0-only */
/* Wheels that wake the machine from suspend. See alarm.c. */
#ifndef TW_ALARM_H
#define TW_ALARM_H

#include "internal.h"

int tw_alarm_init(void);
void tw_alarm_exit(void);
int tw_alarm_permitted(void);
void tw_alarm_join(struct tw_file *file);
void tw_alarm_leave(struct tw_file *file);

#endif /* TW_ALARM_H */
