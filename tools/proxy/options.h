/* SPDX-License-Identifier: GPL-2.0 */
/* The options of the proxy. */
#ifndef PROXY_OPTIONS_H
#define PROXY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "counters.h"
#include "target.h"
#include "util.h"

/** struct options - the options; times in ns, TIME_NONE: no limit */
struct options {
	/** @listen: addresses to listen on */
	struct targets listen;
	/** @to: addresses of the servers */
	struct targets to;
	/** @metrics: addresses at which to serve metrics */
	struct targets metrics;
	/** @timeout: timeouts of a connection, by enum kind */
	uint64_t timeout[KINDS];
	/** @grace: time for connections to end after the proxy is stopped */
	uint64_t grace;
	/** @store_after: age at which a connection is put in the service manager's store */
	uint64_t store_after;
	/** @store_max: maximum number of descriptors in that store */
	unsigned int store_max;
	/** @threads: number of threads that serve connections */
	unsigned int threads;
	/** @max_connections: maximum number of connections; 0: as descriptors allow */
	unsigned int max_connections;
	/** @proxy_protocol: version of the header for the server; 0: none */
	unsigned int proxy_protocol;
	/** @log: file of the connection log; "-": standard error; NULL: none */
	const char *log;
	/** @json: write the connection log as JSON */
	bool json;
};

/** THREADS_MAX - maximum number of threads */
#define THREADS_MAX		256

/** CONNECTIONS_MAX - maximum number of connections, whatever the limit of descriptors is */
#define CONNECTIONS_MAX		2000000

/**
 * STORE_MAX - maximum number of descriptors in the service manager's store
 *
 * One environment variable of the next process contains all names, and the kernel accepts no string
 * longer than 128 KiB. Therefore the name of sockets is one letter, and this number fits.
 */
#define STORE_MAX		60000

/** options - set by options_parse(), not changed while threads run */
extern struct options options;

/**
 * options_parse - read the command line
 * @argc: of main()
 * @argv: of main()
 *
 * Ends the process with a message if the command line is invalid.
 */
void options_parse(int argc, char **argv);

#endif /* PROXY_OPTIONS_H */
