/* SPDX-License-Identifier: GPL-2.0 */
/* What the guard tells Prometheus. */
#ifndef GUARD_METRICS_H
#define GUARD_METRICS_H

/** metrics_start - serve them where --metrics says */
void metrics_start(void);

#endif /* GUARD_METRICS_H */
