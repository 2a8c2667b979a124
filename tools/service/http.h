/* SPDX-License-Identifier: GPL-2.0 */
/* Metrics in the text format of Prometheus over HTTP (libmicrohttpd). */
#ifndef SERVICE_HTTP_H
#define SERVICE_HTTP_H

#include <stdio.h>

#include "target.h"

/** HTTP_CLIENTS - maximum number of clients at an address at a time */
#define HTTP_CLIENTS	32

/**
 * http_start - serve GET /metrics in a separate thread
 * @targets: the addresses; if there are none, nothing happens
 * @tell: prints the metrics; called by that thread
 *
 * A request has 5 s in total. If all places at an address are taken, the thread disconnects the
 * oldest client of the host with the most clients, but not in its first 100 ms.
 *
 * Ends the process with a message if it cannot.
 */
void http_start(const struct targets *targets, void (*tell)(FILE *out));

#endif /* SERVICE_HTTP_H */
