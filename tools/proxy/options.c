// SPDX-License-Identifier: GPL-2.0
/* See options.h. */
#include <getopt.h>
#include <netdb.h>
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
"  -x, --half-close TIME        the same, after one side has shut down sending (30s)\n"
"  -L, --lifetime TIME          limit for a connection in total (none)\n"
"  -g, --grace TIME             time that connections get when it is stopped (30s)\n"
"  -s, --store-after TIME       age at which connections begin to survive a restart (1s)\n"
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

/* What ":PORT" means: this machine; this machine over IPv4 and IPv6; all its addresses. */
enum any { ANY_FIRST, ANY_LOOPBACK, ANY_ALL };

static void target_add(const char *option, struct targets *targets, struct target target)
{
	if (targets->n == TARGETS_MAX)
		log_usage("%s may be given %u times at most", option, TARGETS_MAX);
	targets->target[targets->n++] = target;
}

static bool have_ipv6(void)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool have = fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at));

	if (fd >= 0)
		close(fd);
	return have;
}

static void add_any(const char *option, struct targets *targets, struct target target, enum any any)
{
	in_port_t port = target.at.v4.sin_port;
	bool ipv6 = have_ipv6();

	if (any == ANY_LOOPBACK || !ipv6) {
		target.at.v4 = (struct sockaddr_in) {
			.sin_family = AF_INET, .sin_port = port,
			.sin_addr.s_addr = htonl(any == ANY_ALL ? INADDR_ANY : INADDR_LOOPBACK),
		};
		target_add(option, targets, target);
	}
	if (ipv6) {
		target.both = any == ANY_ALL;
		target.at.v6 = (struct sockaddr_in6) {
			.sin6_family = AF_INET6, .sin6_port = port,
			.sin6_addr = any == ANY_ALL ? in6addr_any : in6addr_loopback,
		};
		target_add(option, targets, target);
	}
}

/* ADDRESS:PORT, [ADDRESS]:PORT or :PORT */
static void parse_address(const char *option, const char *text, enum any any,
			  struct targets *targets)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	char host[256], *name = host;
	const char *port = strrchr(text, ':');
	struct target target = { .name = text };
	int err;

	/* getaddrinfo() takes any number and cuts it. */
	if (!port || port - text >= (ptrdiff_t)sizeof(host) || strtoul(port + 1, NULL, 10) > 65535)
		log_usage("%s needs ADDRESS:PORT, not '%s'", option, text);
	memcpy(host, text, port - text);
	host[port - text] = '\0';
	if (*name == '[' && name[strlen(name) - 1] == ']') {
		name[strlen(name) - 1] = '\0';
		name++;
	}
	err = getaddrinfo(*name ? name : NULL, port + 1, &hints, &found);
	if (err)
		log_die("%s %s: %s; check the address and the port", option, text,
			gai_strerror(err));
	/* The port is at the same place in both families. */
	memcpy(&target.at, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	if (!*name && any != ANY_FIRST)
		add_any(option, targets, target, any);
	else
		target_add(option, targets, target);
}

static uint64_t parse_time(const char *option, const char *text)
{
	__u64 ns;

	if (!strcmp(text, "none"))
		return TIME_NONE;
	if (!parse_duration(text, &ns) || ns > 100ULL * 365 * 24 * 3600 * NSEC_PER_SEC)
		log_usage("%s needs a time such as 1500ms, 30s, 1h or none, not '%s'", option,
			  text);
	return ns;
}

static unsigned int parse_number(const char *option, const char *text, unsigned int most)
{
	__u64 n;

	if (!parse_count(text, &n) || !n || n > most)
		log_usage("%s needs a number from 1 to %u, not '%s'", option, most, text);
	return n;
}

/* Those whose value is a time; one of no time at all would end every connection. */
static const struct time_option {
	int c;
	uint64_t *ns;
	bool zero;
} time_options[] = {
	{ 'c', &options.timeout[KIND_CONNECT], false },
	{ 'i', &options.timeout[KIND_IDLE], false },
	{ 'x', &options.timeout[KIND_HALF_CLOSE], false },
	{ 'L', &options.timeout[KIND_LIFETIME], false },
	{ 'g', &options.grace, true },
	{ 's', &options.store_after, true },
};

static void parse_time_option(int c, const char *option, const char *text)
{
	const struct time_option *t = time_options;

	while (t->c != c)
		t++;
	*t->ns = parse_time(option, text);
	if (!*t->ns && !t->zero)
		log_usage("%s must be greater than 0, or none", option);
}

static void parse_one(int c, const char *option, const char *text)
{
	switch (c) {
	case 'l':
		parse_address(option, text, ANY_ALL, &options.listen);
		break;
	case 't':
		parse_address(option, text, ANY_FIRST, &options.to);
		break;
	case 'M':
		parse_address(option, text, ANY_LOOPBACK, &options.metrics);
		break;
	case 'n':
		options.threads = parse_number(option, text, THREADS_MAX);
		break;
	case 'm':
		options.max_connections = parse_number(option, text, CONNECTIONS_MAX);
		break;
	case 'p':
		if (strcmp(text, "v1") && strcmp(text, "v2"))
			log_usage("%s needs v1 or v2, not '%s'", option, text);
		options.proxy_protocol = text[1] - '0';
		break;
	case 'o':
		options.log = text;
		break;
	case 'j':
		options.json = true;
		break;
	case 'V':
		say_version();
		exit(EXIT_SUCCESS);
	case 'h':
		fputs(usage_text, stdout);
		exit(EXIT_SUCCESS);
	case '?':
		exit(EXIT_USAGE);
	default:
		parse_time_option(c, option, text);
	}
}

void options_parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "listen", required_argument, NULL, 'l' },
		{ "to", required_argument, NULL, 't' },
		{ "connect-timeout", required_argument, NULL, 'c' },
		{ "idle", required_argument, NULL, 'i' },
		{ "half-close", required_argument, NULL, 'x' },
		{ "lifetime", required_argument, NULL, 'L' },
		{ "grace", required_argument, NULL, 'g' },
		{ "store-after", required_argument, NULL, 's' },
		{ "threads", required_argument, NULL, 'n' },
		{ "max-connections", required_argument, NULL, 'm' },
		{ "metrics", required_argument, NULL, 'M' },
		{ "proxy-protocol", required_argument, NULL, 'p' },
		{ "log", required_argument, NULL, 'o' },
		{ "json", no_argument, NULL, 'j' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	char name[32];
	int c, i;

	while ((c = getopt_long(argc, argv, "l:t:c:i:x:L:g:s:n:m:p:o:jM:Vh", longs, NULL)) != -1) {
		for (i = 0; longs[i].val && longs[i].val != c; i++)
			;
		snprintf(name, sizeof(name), "--%s", longs[i].name);
		parse_one(c, name, optarg);
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
