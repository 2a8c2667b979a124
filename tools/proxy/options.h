/* SPDX-License-Identifier: GPL-2.0 */
/* What the proxy was asked to do. */
#ifndef PROXY_OPTIONS_H
#define PROXY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "counters.h"
#include "target.h"
#include "util.h"

/** struct options - what the proxy was asked to do; times in ns, TIME_NONE: no limit */
struct options {
	/** @listen: where clients come */
	struct targets listen;
	/** @to: where the servers are */
	struct targets to;
	/** @metrics: where to serve metrics */
	struct targets metrics;
	/** @timeout: of a connection, by enum kind */
	uint64_t timeout[KINDS];
	/** @grace: for connections to end by themselves when the proxy is stopped */
	uint64_t grace;
	/** @store_after: age at which a connection goes into the service manager's store */
	uint64_t store_after;
	/** @store_max: most descriptors in that store */
	unsigned int store_max;
	/** @threads: how many serve connections */
	unsigned int threads;
	/** @max_connections: most at a time; 0: as descriptors allow */
	unsigned int max_connections;
	/** @proxy_protocol: version of the header that the server gets; 0: none */
	unsigned int proxy_protocol;
	/** @log: where each connection is logged: "-" is standard error; NULL: nowhere */
	const char *log;
	/** @json: that log is in JSON */
	bool json;
};

/** THREADS_MAX - most threads */
#define THREADS_MAX		256

/** CONNECTIONS_MAX - most connections, whatever the limit of descriptors is */
#define CONNECTIONS_MAX		2000000

/**
 * STORE_MAX - most descriptors in the service manager's store
 *
 * The names of all go into one environment variable of the next process, and the kernel takes no
 * string longer than 128 KiB: so the name of sockets is one letter, and this is how many fit.
 */
#define STORE_MAX		60000

/** options - set by options_parse(), not changed while threads run */
extern struct options options;

/**
 * options_parse - read the command line
 * @argc: of main()
 * @argv: of main()
 *
 * Ends the process with a message on anything not understood.
 */
void options_parse(int argc, char **argv);

#endif /* PROXY_OPTIONS_H */
