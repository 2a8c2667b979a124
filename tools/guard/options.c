// SPDX-License-Identifier: GPL-2.0
/* See options.h. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/timerwheel.h>

#include "log.h"
#include "options.h"

/* The default interval is this part of the shortest timeout, within these limits. */
#define INTERVAL_PART	20
#define INTERVAL_MIN	(100 * NSEC_PER_MSEC)
#define INTERVAL_MAX	(10 * NSEC_PER_SEC)

const char *const kind_names[KINDS] = {
	[KIND_IDLE] = "idle",
	[KIND_HALF_CLOSED] = "half-closed",
	[KIND_LIFETIME] = "lifetime",
};

struct options options = {
	.timeout = { TIME_NONE, TIME_NONE, TIME_NONE },
	.log = "-",
};

static const char usage_text[] =
"usage: timerwheel guard --unit NAME|--cgroup PATH|--pid N|--port N --idle TIME [OPTION]...\n"
"\n"
"End the connections of running daemons that take too long. Neither the daemons nor their\n"
"configuration change, and it works while a daemon is stopped or hangs.\n"
"\n"
"Whose connections; each may be repeated:\n"
"  -u, --unit NAME           of this systemd unit\n"
"  -C, --cgroup PATH         of the processes in this control group\n"
"  -P, --pid N               of this process and its children\n"
"  -p, --port N              to this TCP port only; alone: of any process. Without it: to the\n"
"                            addresses and ports that the processes listen on\n"
"\n"
"When they end; at least one:\n"
"  -i, --idle TIME           no data was received or sent for this time\n"
"  -x, --half-closed TIME    one side has closed, the other has not, and no data was received,\n"
"                            sent or acknowledged for this time\n"
"  -L, --lifetime TIME       this time has passed since the guard found them\n"
"\n"
"  -g, --grace TIME          warn first, and end the connection this time later (0)\n"
"  -n, --dry-run             only report what would be ended\n"
"  -I, --interval TIME       how often to look for new connections (a twentieth of the\n"
"                            shortest time, 100ms to 10s)\n"
"  -o, --log FILE            append reports to FILE (-: to standard output)\n"
"  -j, --json                write them as JSON\n"
"  -M, --metrics ADDRESS:PORT  serve metrics for Prometheus here (nowhere); :PORT means\n"
"                            127.0.0.1 and ::1\n"
"  -V, --version             print the version\n"
"  -h, --help                print this text\n"
"\n"
"A TIME is 1500ms, 30s, 5m or 1h. See timerwheel-guard(8).\n";

/* An option, and the place for its value. */
struct known {
	const char *name;
	char c;
	void (*take)(const struct known *known, const char *text);	/* NULL: it has no value */
	void *to;
	unsigned int *count;
};

static void count_one(const struct known *known)
{
	if (*known->count == CHOICES_MAX)
		log_usage("--%s may be given %u times at most", known->name, CHOICES_MAX);
	++*known->count;
}

static void take_name(const struct known *known, const char *text)
{
	/* An empty path would be the control group of all processes. */
	if (!*text)
		log_usage("--%s needs a name, not an empty text", known->name);
	count_one(known);
	((const char **)known->to)[*known->count - 1] = text;
}

static unsigned long number(const struct known *known, const char *text, unsigned long max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !n || n > max)
		log_usage("--%s needs a number from 1 to %lu, not '%s'", known->name, max, text);
	count_one(known);
	return n;
}

static void take_pid(const struct known *known, const char *text)
{
	unsigned long n = number(known, text, INT32_MAX);

	((pid_t *)known->to)[*known->count - 1] = n;
}

static void take_port(const struct known *known, const char *text)
{
	unsigned long n = number(known, text, UINT16_MAX);

	((uint16_t *)known->to)[*known->count - 1] = n;
}

static void take_time(const struct known *known, const char *text)
{
	__u64 ns;

	if (!parse_duration(text, &ns))
		log_usage("--%s needs a time such as 1500ms, 30s or 1h, not '%s'", known->name,
			  text);
	if (ns > TIMERWHEEL_SOCKET_TIME_MAX)
		log_usage("--%s is at most 14 days, not '%s'", known->name, text);
	if (!ns && known->to != &options.grace)
		log_usage("--%s must be greater than 0", known->name);
	*(uint64_t *)known->to = ns;
}

static void take_text(const struct known *known, const char *text)
{
	*(const char **)known->to = text;
}

static void take_address(const struct known *known, const char *text)
{
	target_add(known->to, known->name, text, ANY_LOOPBACK);
}

static const struct known all[] = {
	{ "unit", 'u', take_name, options.units, &options.nr_units },
	{ "cgroup", 'C', take_name, options.cgroups, &options.nr_cgroups },
	{ "pid", 'P', take_pid, options.pids, &options.nr_pids },
	{ "port", 'p', take_port, options.ports, &options.nr_ports },
	{ "idle", 'i', take_time, &options.timeout[KIND_IDLE], NULL },
	{ "half-closed", 'x', take_time, &options.timeout[KIND_HALF_CLOSED], NULL },
	{ "lifetime", 'L', take_time, &options.timeout[KIND_LIFETIME], NULL },
	{ "grace", 'g', take_time, &options.grace, NULL },
	{ "dry-run", 'n', NULL, NULL, NULL },
	{ "interval", 'I', take_time, &options.interval, NULL },
	{ "log", 'o', take_text, &options.log, NULL },
	{ "json", 'j', NULL, NULL, NULL },
	{ "metrics", 'M', take_address, &options.metrics, NULL },
	{ "version", 'V', NULL, NULL, NULL },
	{ "help", 'h', NULL, NULL, NULL },
};

static void take_switch(char c)
{
	switch (c) {
	case 'n':
		options.dry_run = true;
		return;
	case 'j':
		options.json = true;
		return;
	case 'V':
		say_version();
		break;
	case 'h':
		fputs(usage_text, stdout);
		break;
	}
	if (c == '?')
		log_options_file();
	out_check();
	exit(c == '?' ? EXIT_USAGE : EXIT_SUCCESS);
}

static void complete(void)
{
	uint64_t least = TIME_NONE;
	unsigned int i;

	for (i = 0; i < KINDS; i++) {
		if (options.timeout[i] < least)
			least = options.timeout[i];
	}
	if (!options.nr_units && !options.nr_cgroups && !options.nr_pids && !options.nr_ports)
		log_usage("--unit, --cgroup, --pid or --port is required; try --help");
	if (least == TIME_NONE)
		log_usage("--idle, --half-closed or --lifetime is required; try --help");
	if (options.interval)
		return;
	options.interval = least / INTERVAL_PART;
	if (options.interval < INTERVAL_MIN)
		options.interval = INTERVAL_MIN;
	if (options.interval > INTERVAL_MAX)
		options.interval = INTERVAL_MAX;
}

void options_parse(int argc, char **argv)
{
	char shorts[2 * ARRAY_SIZE(all) + 1], *at = shorts;
	struct option longs[ARRAY_SIZE(all) + 1] = { };
	unsigned int i;
	int c;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		longs[i] = (struct option) { all[i].name, !!all[i].take, NULL, all[i].c };
		at += sprintf(at, all[i].take ? "%c:" : "%c", all[i].c);
	}
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		/* An unknown option stops at the last entry, which has no value. */
		for (i = 0; i < ARRAY_SIZE(all) - 1 && all[i].c != c; i++)
			;
		if (all[i].take)
			all[i].take(&all[i], optarg);
		else
			take_switch(c);
	}
	if (optind < argc)
		log_usage("unexpected argument '%s'; try --help", argv[optind]);
	complete();
}
