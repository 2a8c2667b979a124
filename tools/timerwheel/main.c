// SPDX-License-Identifier: GPL-2.0
/* See cli.h. This file: the table of commands. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

const struct command commands[] = {
	{ "info", "", "what the kernel can, and how a wheel is set",
	  "What the kernel can do, and how the wheel is set up. Without --fd and --pid: a new\n"
	  "wheel, as it is without any SETUP.",
	  OPTIONS_WHEEL | OPTION(WATCH), command_info },
	{ "stat", "", "what a wheel did so far, with a histogram of lateness",
	  "What the wheel did so far: its counters, and how late its timers fired.",
	  OPTIONS_WHEEL | OPTION(WATCH), command_stat },
	{ "top", "", "a live screen of all wheels and their owners",
	  "All wheels of this machine that may be looked at: who has them open, their timers, and\n"
	  "what happens in a second; below, the lateness of the timers of the selected one. Keys:\n"
	  "up and down (k, j) select, s another order, r the reverse, q ends.\n"
	  "\n"
	  "With --batch tables are printed, and --count is how many. The order, --sort: pid, command,\n"
	  "pending (as long as nothing is said), due, armed, delivered, memory.",
	  OPTION(BATCH) | OPTION(COUNT) | OPTION(INTERVAL) | OPTION(SORT) | OPTION(NO_HEADER),
	  command_top },
	{ "list", "[KEY]...", "the timers in a wheel; nothing is changed",
	  "The timers in the wheel, or those with these keys, which fails for those that are not\n"
	  "there. The order, --sort: left (as long as nothing is said), key, value, none (as they\n"
	  "lie in the wheel).",
	  OPTIONS_WHEEL | OPTION(WATCH) | OPTION(SORT) | OPTION(LIMIT) | OPTION(NO_HEADER),
	  command_list },
	{ "add", "KEY WHEN | --from FILE", "arm timers",
	  "Arm a timer; one that has the key already is replaced. WHEN is a time from now, or behind\n"
	  "an @ a time of the wheel's clock in seconds, or a date and time of day.\n"
	  "\n"
	  "Lines of --from: KEY WHEN [value=V] [period=TIME] [slack=TIME] [match=V] [excl]. The\n"
	  "options count for lines that do not say otherwise; # begins a comment.",
	  OPTIONS_WHEEL | OPTION(VALUE) | OPTION(PERIOD) | OPTION(SLACK) | OPTION(EXCL) |
	  OPTION(MATCH) | OPTION(FROM), command_add },
	{ "move", "KEY WHEN | --from FILE", "give timers new deadlines",
	  "Give a timer that exists a new deadline, WHEN as with add; its value, period and slack\n"
	  "stay. An event of the old deadline that nobody has read is withdrawn.\n"
	  "\n"
	  "Lines of --from: KEY WHEN [match=V].",
	  OPTIONS_WHEEL | OPTION(MATCH) | OPTION(FROM), command_move },
	{ "remove", "KEY... | --from FILE", "take timers out",
	  "Take timers out; what they were is printed.\n"
	  "\n"
	  "Lines of --from: KEY [match=V].",
	  OPTIONS_WHEEL | OPTION(MATCH) | OPTION(FROM) | OPTION(QUIET) | OPTION(NO_HEADER),
	  command_remove },
	{ "drain", "", "take all timers out",
	  "Take all timers out, pending and due alike; what they were is printed.",
	  OPTIONS_WHEEL | OPTION(LIMIT) | OPTION(CLOSE) | OPTION(QUIET) | OPTION(NO_HEADER),
	  command_drain },
	{ "wait", "", "take events, and run a command for each",
	  "Take events as timers fall due, one if --count does not say otherwise, and print them; or\n"
	  "run a command for each, with KEY, VALUE, DEADLINE, LATE (ns) and OVERRUNS in its\n"
	  "environment. An event that is taken here nobody else gets.",
	  OPTIONS_WHEEL | OPTION(COUNT) | OPTION(TIMEOUT) | OPTION(UNTIL_EMPTY) | OPTION(EXEC) |
	  OPTION(NO_HEADER), command_wait },
	{ "monitor", "", "print copies of events as others take them",
	  "Print a copy of each event that is delivered from now on, until the wheel is closed.\n"
	  "Nobody misses an event because of it.",
	  OPTIONS_WHEEL | OPTION(COUNT) | OPTION(TIMEOUT) | OPTION(BUFFER) | OPTION(NO_HEADER),
	  command_monitor },
	{ "save", "FILE", "write a wheel to a file",
	  "Write the timers of the wheel to a file, - is the standard output. An older file is\n"
	  "replaced whole or not at all.",
	  OPTIONS_WHEEL, command_save },
	{ "restore", "FILE", "arm the timers of such a file",
	  "Arm the timers of a file, - is the standard input, at the time of day at which they would\n"
	  "have fallen due; what has passed is due at once, and said to be overdue. All of them, or,\n"
	  "if one cannot be armed, none. A wheel that is not set up yet is set up as the saved one.",
	  OPTIONS_WHEEL | OPTION(EXCL) | OPTION(CHECK) | OPTION(OVERDUE) | OPTION(OVERDUE_MARK),
	  command_restore },
	{ "bench", "", "measure what the calls cost here",
	  "Measure, in some seconds of real time, what a timer costs on this machine in a wheel of\n"
	  "its own, alone in its call and with others.",
	  OPTION(TIMERS) | OPTION(NO_HEADER), command_bench },
	{ }
};

static const struct command *command_by_name(const char *name)
{
	const struct command *c;

	for (c = commands; c->name; c++) {
		if (!strcmp(c->name, name))
			return c;
	}
	usage("there is no command '%s'", name);
}

static void print_version(void)
{
	printf("timerwheel %s, for version %d of the kernel's interface\n", version,
	       TIMERWHEEL_ABI_VERSION);
}

/* Before the command are those options that many commands take. */
static void refuse_others(const struct command *command)
{
	int id;

	for (id = 0; id < OPT_NR; id++) {
		if (opt.given[id] && !((command->options | OPTIONS_ALL) & 1ULL << id))
			usage("%s takes no --%s", command->name, option_defs[id].name);
	}
}

int main(int argc, char **argv)
{
	const struct command *command;
	int first, status;

	progname = "timerwheel";
	first = options_parse(NULL, OPTIONS_WHEEL | OPTIONS_ALL, argc, argv);
	if (opt.given[OPT_VERSION]) {
		print_version();
		return STATUS_DONE;
	}
	if (opt.given[OPT_HELP]) {
		help_all();
		return STATUS_DONE;
	}
	if (first == argc)
		usage("which command?");
	command = command_by_name(argv[first]);
	argc -= first;
	argv += first;
	first = options_parse(command->name, command->options | OPTIONS_ALL, argc, argv);
	if (opt.given[OPT_VERSION]) {
		print_version();
		return STATUS_DONE;
	}
	if (opt.given[OPT_HELP]) {
		help_command(command);
		return STATUS_DONE;
	}
	refuse_others(command);
	for (argc = first; argv[argc]; argc++)
		;
	status = command->run(argc - first, argv + first);
	out_check();
	return status;
}
