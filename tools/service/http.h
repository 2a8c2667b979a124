/* SPDX-License-Identifier: GPL-2.0 */
/* Numbers, in the text format of Prometheus, for whoever asks over HTTP (libmicrohttpd). */
#ifndef SERVICE_HTTP_H
#define SERVICE_HTTP_H

#include <stdio.h>

#include "target.h"

/** HTTP_CLIENTS - how many may ask at an address at a time */
#define HTTP_CLIENTS	32

/**
 * http_start - serve GET /metrics in a thread of its own
 * @targets: where; none: nothing happens
 * @tell: prints the numbers; is called by that thread
 *
 * A request has 5 s in total. If all places at an address are taken, the oldest client of the host
 * that has most of them is disconnected, but not in its first 100 ms.
 *
 * Ends the process with a message if it cannot.
 */
void http_start(const struct targets *targets, void (*tell)(FILE *out));

#endif /* SERVICE_HTTP_H */
