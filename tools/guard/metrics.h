/* SPDX-License-Identifier: GPL-2.0 */
/* The guard's metrics for Prometheus. */
#ifndef GUARD_METRICS_H
#define GUARD_METRICS_H

/** metrics_start - serve metrics at the addresses of --metrics */
void metrics_start(void);

#endif /* GUARD_METRICS_H */
