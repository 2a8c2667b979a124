/* SPDX-License-Identifier: GPL-2.0 */
/* Numbers, in the text format of Prometheus, for whoever asks over HTTP (libmicrohttpd). */
#ifndef PROXY_METRICS_H
#define PROXY_METRICS_H

/**
 * metrics_start - serve them where --metrics says, in a thread of libmicrohttpd's
 *
 * Ends the process with a message if it cannot.
 */
void metrics_start(void);

#endif /* PROXY_METRICS_H */
