/* SPDX-License-Identifier: GPL-2.0 */
/* What the guard was asked to do. */
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
	/** @KIND_LIFETIME: since the guard has found it, whatever it does */
	KIND_LIFETIME,
	/** @KINDS: how many there are */
	KINDS
};

/** kind_names - of each, in options, lines of the report and metrics */
extern const char *const kind_names[KINDS];

/** CHOICES_MAX - most units, cgroups, processes, ports */
#define CHOICES_MAX	64

/** struct options - what the guard was asked to do; times in ns, TIME_NONE: no limit */
struct options {
	/** @units: whose connections */
	const char *units[CHOICES_MAX];
	/** @cgroups: the same */
	const char *cgroups[CHOICES_MAX];
	/** @pids: the same, with their children */
	pid_t pids[CHOICES_MAX];
	/** @ports: those on this port only */
	uint16_t ports[CHOICES_MAX];
	/** @nr_units: how many */
	unsigned int nr_units;
	/** @nr_cgroups: how many */
	unsigned int nr_cgroups;
	/** @nr_pids: how many */
	unsigned int nr_pids;
	/** @nr_ports: how many; 0: those that the processes listen on */
	unsigned int nr_ports;
	/** @timeout: of a connection, by enum kind */
	uint64_t timeout[KINDS];
	/** @grace: from the warning to the end; 0: there is no warning */
	uint64_t grace;
	/** @interval: between two scans */
	uint64_t interval;
	/** @dry_run: report, and end nothing */
	bool dry_run;
	/** @log: where reports go: "-" is standard output */
	const char *log;
	/** @json: they are JSON */
	bool json;
	/** @metrics: where to serve metrics */
	struct targets metrics;
};

/** options - set by options_parse(), not changed later */
extern struct options options;

/**
 * options_parse - read the command line
 * @argc: of main()
 * @argv: of main()
 *
 * Ends the process with a message on anything not understood.
 */
void options_parse(int argc, char **argv);

#endif /* GUARD_OPTIONS_H */
