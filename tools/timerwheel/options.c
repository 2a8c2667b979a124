// SPDX-License-Identifier: GPL-2.0
/* One table of the options of all commands. main.c defines which options a command accepts. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

struct options opt;

const struct option_def option_defs[OPT_NR] = {
	[OPT_FD] = { "fd", 0, "N", KIND_NUMBER, 0, INT_MAX,
		"use the wheel of open descriptor N (in a shell: exec 3<>/dev/timerwheel)" },
	[OPT_PID] = { "pid", 0, "PID", KIND_NUMBER, 1, INT_MAX,
		"use a wheel that this process has open" },
	[OPT_WHEEL_FD] = { "wheel-fd", 0, "N", KIND_NUMBER, 0, INT_MAX,
		"with --pid: use the process's descriptor N, if it has several wheels" },
	[OPT_JSON] = { "json", 0, NULL, KIND_FLAG, 0, 0,
		"print JSON: one document, or one object per line for continuous output" },
	[OPT_NO_HEADER] = { "no-header", 0, NULL, KIND_FLAG, 0, 0,
		"print no column headings" },
	[OPT_WATCH] = { "watch", 0, "TIME", KIND_OPTIONAL, 10 * NSEC_PER_MSEC, 0,
		"repeat every second, or at this interval" },
	[OPT_VALUE] = { "value", 0, "V", KIND_NUMBER, 0, 0,
		"the value that the event returns (default 0)" },
	[OPT_PERIOD] = { "period", 0, "TIME", KIND_TIME, 0, 0,
		"make the timer periodic, with this time between deadlines" },
	[OPT_LINGER] = { "linger", 0, "TIME", KIND_TIME, 0, 0,
		"how long after its event a resident timer can be armed in memory" },
	[OPT_SLACK] = { "slack", 0, "TIME", KIND_TIME, 0, 0,
		"how much later it may fire to share a wake-up (default: the wheel's slack)" },
	[OPT_EXCL] = { "excl", 0, NULL, KIND_FLAG, 0, 0,
		"fail if the key exists, instead of replacing the timer" },
	[OPT_MATCH] = { "match", 0, "V", KIND_NUMBER, 0, 0,
		"act only if the timer exists and its value is V" },
	[OPT_FROM] = { "from", 0, "FILE", KIND_TEXT, 0, 0,
		"read timers from a file, one per line; - is the standard input" },
	[OPT_QUIET] = { "quiet", 'q', NULL, KIND_FLAG, 0, 0,
		"do not print the removed timers" },
	[OPT_SORT] = { "sort", 0, "COLUMN", KIND_TEXT, 0, 0,
		"sort by this column; see above" },
	[OPT_LIMIT] = { "limit", 0, "N", KIND_NUMBER, 1, 0,
		"list or drain at most N timers" },
	[OPT_CLOSE] = { "close", 0, NULL, KIND_FLAG, 0, 0,
		"close the wheel to new timers" },
	[OPT_COUNT] = { "count", 'n', "N", KIND_NUMBER, 0, 0,
		"exit after N events or updates; 0 means never" },
	[OPT_TIMEOUT] = { "timeout", 't', "TIME", KIND_TIME, 0, 0,
		"exit with status 4 after this time" },
	[OPT_UNTIL_EMPTY] = { "until-empty", 0, NULL, KIND_FLAG, 0, 0,
		"exit when no timer is left in the wheel" },
	[OPT_EXEC] = { "exec", 0, "COMMAND...", KIND_FLAG, 0, 0,
		"run a command for each event; must be the last option" },
	[OPT_BUFFER] = { "buffer", 0, "N", KIND_NUMBER, 1, TIMERWHEEL_RING_MAX,
		"number of events that can wait to be printed (default 1024)" },
	[OPT_BATCH] = { "batch", 'b', NULL, KIND_FLAG, 0, 0,
		"print one table after another, instead of a live screen" },
	[OPT_INTERVAL] = { "interval", 'd', "TIME", KIND_TIME, 10 * NSEC_PER_MSEC, 0,
		"the time between updates (default 1s)" },
	[OPT_CHECK] = { "check", 0, NULL, KIND_FLAG, 0, 0,
		"only check the file, and report which timers would be overdue" },
	[OPT_OVERDUE] = { "overdue", 0, "FILE", KIND_TEXT, 0, 0,
		"write the overdue timers to a file; - is the standard output" },
	[OPT_OVERDUE_MARK] = { "overdue-mark", 0, "BITS", KIND_NUMBER, 1, 0,
		"set these bits in the values of overdue timers" },
	[OPT_ELAPSED] = { "elapsed", 0, "TIME", KIND_TIME, 0, 0,
		"subtract this time, instead of the time that seems to have passed" },
	[OPT_TIMERS] = { "timers", 0, "N", KIND_NUMBER, 0, 4000000,
		"number of other timers pending during the measurement (default 100000)" },
	[OPT_HELP] = { "help", 'h', NULL, KIND_FLAG, 0, 0,
		"print this help" },
	[OPT_VERSION] = { "version", 0, NULL, KIND_FLAG, 0, 0,
		"print the version" },
};

static const char *command_name;

void usage(const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (command_name)
		say("%s: %s; see timerwheel %s --help", command_name, text, command_name);
	else
		say("%s; see timerwheel --help", text);
	exit(STATUS_USAGE);
}

void no_arguments(int argc, char **argv)
{
	if (argc)
		usage("unexpected argument '%s'", argv[0]);
}

bool parse_number(const char *text, __u64 *number)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? "0123456789abcdefABCDEF" : "0123456789";
	const char *start = hex ? text + 2 : text;

	if (!*start || start[strspn(start, digits)])
		return false;
	errno = 0;
	*number = strtoull(start, NULL, hex ? 16 : 10);
	return !errno;
}

static void set(enum option_id id, const char *text)
{
	const struct option_def *def = &option_defs[id];
	__u64 number = 0;

	switch (def->kind) {
	case KIND_FLAG:
	case KIND_TEXT:
		break;
	case KIND_NUMBER:
		if (!parse_number(text, &number))
			usage("--%s needs a number, such as 7 or 0x1f, not '%s'", def->name, text);
		if (number < def->min || (def->max && number > def->max))
			usage("--%s needs a number from %llu to %llu, not '%s'", def->name,
			      def->min, def->max ? def->max : ~0ULL, text);
		break;
	case KIND_OPTIONAL:
	case KIND_TIME:
		number = NSEC_PER_SEC;
		if (text && !parse_duration(text, &number))
			usage(errno == ERANGE ? "--%s is at most 292 years, not '%s'" :
			      "--%s needs a time, such as 250ms, 10s or 1h30m, not '%s'",
			      def->name, text);
		if (number < def->min)
			usage("--%s must be at least %s, not '%s'", def->name, span(def->min),
			      text);
		break;
	}
	opt.given[id] = true;
	opt.number[id] = number;
	opt.text[id] = text;
}

/* Fill in the tables for getopt. Returns the number of long options. */
static void tell_getopt(__u64 mask, struct option *longs, char *shorts)
{
	int id;

	/* Distinguish a missing argument from an unknown option. */
	*shorts++ = ':';
	for (id = 0; id < OPT_NR; id++) {
		const struct option_def *def = &option_defs[id];

		if (!(mask & 1ULL << id))
			continue;
		*longs++ = (struct option) {
			.name = def->name,
			.has_arg = def->kind == KIND_OPTIONAL ? optional_argument :
				   def->kind == KIND_FLAG ? no_argument : required_argument,
			.val = 256 + id,
		};
		if (!def->letter)
			continue;
		*shorts++ = def->letter;
		if (def->kind != KIND_FLAG)
			*shorts++ = ':';
	}
	*longs = (struct option) {};
	*shorts = '\0';
}

static enum option_id by_letter(int letter)
{
	int id;

	for (id = 0; option_defs[id].letter != letter; id++)
		;
	return id;
}

/* All words after --exec belong to its command. */
static int cut_exec(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--"))
			break;
		if (strcmp(argv[i], "--exec"))
			continue;
		if (i + 1 == argc)
			usage("--exec needs a command");
		opt.exec = argv + i + 1;
		opt.given[OPT_EXEC] = true;
		return i;
	}
	return argc;
}

int options_parse(const char *command, __u64 mask, int argc, char **argv)
{
	struct option longs[OPT_NR + 1];
	char shorts[2 * OPT_NR + 3] = "+";
	char *all = shorts;
	int c;

	command_name = command;
	if (mask & OPTION(EXEC)) {
		int end = cut_exec(argc, argv);

		argv[end] = NULL;
		argc = end;
	}
	/* A plus: stop at the first word that is not an option. */
	tell_getopt(mask, longs, command ? shorts : shorts + 1);
	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, all, longs, NULL)) != -1) {
		const char *word = argv[optind - 1];

		if (c == ':')
			usage("%s needs a value", word);
		if (c == '?' && optopt >= 256)
			usage("--%s takes no value", option_defs[optopt - 256].name);
		/* A word of several letters is the current one until all of them are taken. */
		if (c == '?' && isdigit(optopt))
			usage("%s is negative: times from now, keys and values begin at 0",
			      optind < argc && argv[optind][0] == '-' && argv[optind][1] == optopt ?
			      argv[optind] : word);
		if (c == '?' && optopt)
			usage("unknown option -%c", optopt);
		if (c == '?')
			usage("unknown or ambiguous option %s",
			      word);
		set(c >= 256 ? (enum option_id)(c - 256) : by_letter(c), optarg);
	}
	return optind;
}
