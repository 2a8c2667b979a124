// SPDX-License-Identifier: GPL-2.0
/* See options.h. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "options.h"

struct options options = {
	.timeout = {
		[KIND_CONNECT] = 5 * NSEC_PER_SEC,
		[KIND_IDLE] = 60 * NSEC_PER_SEC,
		[KIND_HALF_CLOSE] = 30 * NSEC_PER_SEC,
		[KIND_LIFETIME] = TIME_NONE,
	},
	.grace = 30 * NSEC_PER_SEC,
	.store_after = NSEC_PER_SEC,
	.store_max = 1000,
};

static const char usage_text[] =
"usage: timerwheel-proxy --listen ADDRESS:PORT --to ADDRESS:PORT [OPTION]...\n"
"\n"
"Relay connections to a TCP server and end those that take too long.\n"
"\n"
"  -l, --listen ADDRESS:PORT    listen for clients here (127.0.0.1:80; [::1]:80; :80 for all\n"
"                               addresses of IPv4 and IPv6); may be repeated\n"
"  -t, --to ADDRESS:PORT        address of the server; a name is resolved once. Repeated: each\n"
"                               client gets the next one, and another one if that fails\n"
"  -c, --connect-timeout TIME   limit for connecting to a server (5s)\n"
"  -i, --idle TIME              limit without a byte in either direction (60s)\n"
"  -x, --half-closed TIME       the same, after one side has shut down sending (30s)\n"
"  -L, --lifetime TIME          limit for a connection in total (none)\n"
"  -g, --grace TIME             time that connections get when it is stopped (30s)\n"
"  -s, --store-after TIME       age at which connections begin to survive a restart (1s)\n"
"  -S, --store-max N            maximum of descriptors in the service manager's store; each\n"
"                               connection that is to survive a restart needs two (1000)\n"
"  -n, --threads N              number of threads (one for each processor)\n"
"  -m, --max-connections N      maximum at a time (what ulimit -n allows)\n"
"  -p, --proxy-protocol v1|v2   tell the server the client's address with this header\n"
"  -o, --log FILE               log each connection that ends to FILE; -: to standard error\n"
"  -j, --json                   write this log as JSON\n"
"  -M, --metrics ADDRESS:PORT   serve metrics for Prometheus here (nowhere); :PORT is that of\n"
"                               127.0.0.1 and ::1\n"
"  -V, --version                the version\n"
"  -h, --help                   this text\n"
"\n"
"A TIME is 1500ms, 30s, 5m, 1h, or none. See timerwheel-proxy(8).\n";

/* An option, and the place for its value. */
struct known {
	const char *name;
	char c;
	void (*take)(const struct known *known, const char *text);	/* NULL: it has no value */
	void *to;
	unsigned int arg;
};

/* @arg is the meaning of :PORT. */
static void take_address(const struct known *known, const char *text)
{
	const struct targets *to = known->to;

	target_add(known->to, known->name, text, known->arg);
	/* The port is at the same place in both families. */
	if (to == &options.to && !to->target[to->n - 1].at.v4.sin_port)
		log_usage("--to %s: no server can listen on port 0", text);
}

/* At least @arg ns, because 0 would end every connection. */
static void take_time(const struct known *known, const char *text)
{
	__u64 ns = TIME_NONE;

	if (strcmp(text, "none") &&
	    (!parse_duration(text, &ns) || ns > 100ULL * 365 * 24 * 3600 * NSEC_PER_SEC))
		log_usage("--%s needs a time such as 1500ms, 30s, 1h or none, not '%s'",
			  known->name, text);
	if (ns < known->arg)
		log_usage("--%s must be greater than 0, or none", known->name);
	*(uint64_t *)known->to = ns;
}

/* At most @arg. */
static void take_number(const struct known *known, const char *text)
{
	__u64 n;

	if (!parse_count(text, &n) || !n || n > known->arg)
		log_usage("--%s needs a number from 1 to %u, not '%s'", known->name, known->arg,
			  text);
	*(unsigned int *)known->to = n;
}

static void take_version(const struct known *known, const char *text)
{
	if (strcmp(text, "v1") && strcmp(text, "v2"))
		log_usage("--%s needs v1 or v2, not '%s'", known->name, text);
	*(unsigned int *)known->to = text[1] - '0';
}

static void take_text(const struct known *known, const char *text)
{
	*(const char **)known->to = text;
}

static const struct known all[] = {
	{ "listen", 'l', take_address, &options.listen, ANY_ALL },
	{ "to", 't', take_address, &options.to, ANY_FIRST },
	{ "connect-timeout", 'c', take_time, &options.timeout[KIND_CONNECT], 1 },
	{ "idle", 'i', take_time, &options.timeout[KIND_IDLE], 1 },
	{ "half-closed", 'x', take_time, &options.timeout[KIND_HALF_CLOSE], 1 },
	{ "lifetime", 'L', take_time, &options.timeout[KIND_LIFETIME], 1 },
	{ "grace", 'g', take_time, &options.grace, 0 },
	{ "store-after", 's', take_time, &options.store_after, 0 },
	{ "store-max", 'S', take_number, &options.store_max, STORE_MAX },
	{ "threads", 'n', take_number, &options.threads, THREADS_MAX },
	{ "max-connections", 'm', take_number, &options.max_connections, CONNECTIONS_MAX },
	{ "proxy-protocol", 'p', take_version, &options.proxy_protocol, 0 },
	{ "log", 'o', take_text, &options.log, 0 },
	{ "json", 'j', NULL, NULL, 0 },
	{ "metrics", 'M', take_address, &options.metrics, ANY_LOOPBACK },
	{ "version", 'V', NULL, NULL, 0 },
	{ "help", 'h', NULL, NULL, 0 },
};

static void take_switch(char c)
{
	switch (c) {
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

void options_parse(int argc, char **argv)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
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
	if (!options.to.n)
		log_usage("--listen and --to are required; try --help");
	if (options.json && !options.log)
		log_usage("--json is the format of --log, which is missing");
	if (!options.threads)
		options.threads = processors < THREADS_MAX ? processors : THREADS_MAX;
}
