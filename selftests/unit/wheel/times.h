/* SPDX-License-Identifier: GPL-2.0 */
/* The driver's choice of deadlines, jumps and start times: mostly near boundaries */
#ifndef TIMES_H
#define TIMES_H

#include "driver.h"

void times_start(struct driver *d, u64 *tick, u64 *bias);
u64 times_deadline(struct driver *d);
u64 times_later(struct driver *d, u64 deadline);
u32 times_slack(struct driver *d);
u64 times_jump(struct driver *d);

#endif /* TIMES_H */
