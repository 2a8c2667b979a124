/* SPDX-License-Identifier: GPL-2.0 */
/* Numbers, in the text format of Prometheus, for whoever asks over HTTP. */
#ifndef PROXY_METRICS_H
#define PROXY_METRICS_H

#include "loop.h"

/**
 * metrics_start - answer on this socket, in a thread of its own
 * @listener: a listening socket
 * @loops: all threads that serve
 * @n: how many
 */
void metrics_start(int listener, struct loop **loops, unsigned int n);

#endif /* PROXY_METRICS_H */
