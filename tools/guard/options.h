/* SPDX-License-Identifier: GPL-2.0 */
/* The options of the guard. */
#ifndef GUARD_OPTIONS_H
#define GUARD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "target.h"

/** enum kind - the timeouts of a connection */
enum kind {
	/** @KIND_IDLE: no data was received or sent */
	KIND_IDLE,
	/** @KIND_HALF_CLOSED: one side has closed, the other has not, and no data moves */
	KIND_HALF_CLOSED,
	/** @KIND_LIFETIME: time since the guard found it, however busy it is */
	KIND_LIFETIME,
	/** @KINDS: the number of timeouts */
	KINDS
};

/** kind_names - names of enum kind in options, the report and metrics */
extern const char *const kind_names[KINDS];

/** CHOICES_MAX - maximum number of units, cgroups, processes, and ports */
#define CHOICES_MAX	64

/** struct options - the options; times in ns, TIME_NONE: no limit */
struct options {
	/** @units: guard the connections of these units */
	const char *units[CHOICES_MAX];
	/** @cgroups: guard the connections of these control groups */
	const char *cgroups[CHOICES_MAX];
	/** @pids: guard the connections of these processes and their children */
	pid_t pids[CHOICES_MAX];
	/** @ports: guard only connections to these ports */
	uint16_t ports[CHOICES_MAX];
	/** @nr_units: number of @units */
	unsigned int nr_units;
	/** @nr_cgroups: number of @cgroups */
	unsigned int nr_cgroups;
	/** @nr_pids: number of @pids */
	unsigned int nr_pids;
	/** @nr_ports: number of @ports; 0: use the ports on which the processes listen */
	unsigned int nr_ports;
	/** @timeout: timeouts of a connection, by enum kind */
	uint64_t timeout[KINDS];
	/** @grace: time from the warning to the end; 0: no warning */
	uint64_t grace;
	/** @interval: time between two scans */
	uint64_t interval;
	/** @dry_run: only report */
	bool dry_run;
	/** @log: file of the report; "-": standard output */
	const char *log;
	/** @json: write the report as JSON */
	bool json;
	/** @metrics: addresses at which to serve metrics */
	struct targets metrics;
};

/** options - set by options_parse(), not changed later */
extern struct options options;

/**
 * options_parse - read the command line
 * @argc: of main()
 * @argv: of main()
 *
 * Ends the process with a message if the command line is invalid.
 */
void options_parse(int argc, char **argv);

#endif /* GUARD_OPTIONS_H */
