/* SPDX-License-Identifier: GPL-2.0 */
/* Metrics in the text format of Prometheus over HTTP (libmicrohttpd). */
#ifndef PROXY_METRICS_H
#define PROXY_METRICS_H

/**
 * metrics_start - serve metrics at the addresses of --metrics, in a separate thread
 *
 * Ends the process with a message if it fails.
 */
void metrics_start(void);

#endif /* PROXY_METRICS_H */
