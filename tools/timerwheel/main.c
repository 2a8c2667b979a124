// SPDX-License-Identifier: GPL-2.0
/* See cli.h. This file: the table of commands. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

const struct command commands[] = {
	{ "info", "", "show the limits of the kernel and the settings of a wheel",
	  "Show the limits of the kernel and the settings of the wheel. Without --fd and --pid, show\n"
	  "a new wheel with default settings.",
	  OPTIONS_WHEEL | OPTION(WATCH), command_info },
	{ "stat", "", "show the counters of a wheel and a histogram of lateness",
	  "Show the counters of the wheel, and a histogram of how late its timers fired. All counters\n"
	  "count from the opening of the wheel.\n"
	  "\n"
	  "  pending                 timers that wait for their deadline\n"
	  "  due                     timers that have expired, with events that no reader has taken yet\n"
	  "  parked                  timers that are not armed (cancelled, or resident and delivered), and\n"
	  "                          connections being aborted\n"
	  "  connections watched     timers that watch a connection now\n"
	  "  connections aborted     connections that the kernel has reset\n"
	  "  armed                   times that ADD armed a timer\n"
	  "  periodic, again         times that a timer stayed in the wheel after its event\n"
	  "  moved                   times that MOVE gave a timer a new deadline\n"
	  "  removed                 timers that REMOVE took out\n"
	  "  replaced                timers that ADD replaced\n"
	  "  drained                 timers that DRAIN took out\n"
	  "  delivered               events of timers that readers have taken\n"
	  "  overruns                deadlines of periodic timers that passed without an event of their own\n"
	  "  events withdrawn        events of due timers that a later call on the timer took back\n"
	  "  cascades                timers that went from one level of the wheel to a lower one\n"
	  "  requeues                timers that were queued again, because their deadline was postponed\n"
	  "  readers woken           times that readers were woken\n"
	  "  hrtimer interrupts      times that the wheel ran because it had work\n"
	  "  expiry batches          groups of timers handled without releasing a lock\n"
	  "  most timers in a batch  the largest such group\n"
	  "  longest batch           the longest time that such a group took\n"
	  "  memory                  kernel memory of the wheel\n"
	  "  largest lateness        the longest time from a deadline to the event\n"
	  "  lateness of timers      number of timers by the time from deadline to event. A timer is at most one\n"
	  "                          tick late, plus its slack and the backlog: when more timers expire than\n"
	  "                          the kernel can handle at once, the rest waits.",
	  OPTIONS_WHEEL | OPTION(WATCH), command_stat },
	{ "top", "", "show a live screen of all wheels and their owners",
	  "Show all wheels of this machine that the caller may inspect, with their owners, timers and\n"
	  "activity, and the lateness of the timers of the selected wheel. Keys: up and down (or k and\n"
	  "j) select a wheel, s selects the next sort order, r reverses the order, q quits.\n"
	  "\n"
	  "With --batch, print tables; --count sets their number. Columns for --sort: pid, command,\n"
	  "pending (the default), due, armed, delivered, memory.",
	  OPTION(BATCH) | OPTION(COUNT) | OPTION(INTERVAL) | OPTION(SORT) | OPTION(NO_HEADER),
	  command_top },
	{ "list", "[KEY]...", "list the timers in a wheel",
	  "List the timers in the wheel, or only these keys. A key without a timer is an error.\n"
	  "Columns for --sort: left (the default), key, value, none (the order of the wheel's table).",
	  OPTIONS_WHEEL | OPTION(WATCH) | OPTION(SORT) | OPTION(LIMIT) | OPTION(NO_HEADER),
	  command_list },
	{ "add", "KEY WHEN | --from FILE", "arm timers",
	  "Arm a timer. A timer with this key is replaced. WHEN is a time from now or, after an @, a\n"
	  "time of the wheel's clock in seconds, or a date and time of day.\n"
	  "\n"
	  "Lines of --from: KEY WHEN [value=V] [period=TIME] [linger=TIME] [slack=TIME] [match=V]\n"
	  "[excl]. The options are the defaults for all lines. A # begins a comment.",
	  OPTIONS_WHEEL | OPTION(VALUE) | OPTION(PERIOD) | OPTION(LINGER) | OPTION(SLACK) |
	  OPTION(EXCL) | OPTION(MATCH) | OPTION(FROM), command_add },
	{ "move", "KEY WHEN | --from FILE", "give timers new deadlines",
	  "Give an existing timer a new deadline. WHEN has the same form as for add. The value, period\n"
	  "and slack do not change. An undelivered event of the previous deadline is withdrawn.\n"
	  "\n"
	  "Lines of --from: KEY WHEN [match=V].",
	  OPTIONS_WHEEL | OPTION(MATCH) | OPTION(FROM), command_move },
	{ "remove", "KEY... | --from FILE", "remove timers",
	  "Remove timers and print the removed timers.\n"
	  "\n"
	  "Lines of --from: KEY [match=V].",
	  OPTIONS_WHEEL | OPTION(MATCH) | OPTION(FROM) | OPTION(QUIET) | OPTION(NO_HEADER),
	  command_remove },
	{ "drain", "", "remove all timers",
	  "Remove all timers (pending, due or parked) and print them.",
	  OPTIONS_WHEEL | OPTION(LIMIT) | OPTION(CLOSE) | OPTION(QUIET) | OPTION(NO_HEADER),
	  command_drain },
	{ "wait", "", "take events, and run a command for each",
	  "Take events as timers fall due, by default one event (see --count). Print them, or run a\n"
	  "command for each event. The command has KEY, VALUE, DEADLINE, LATE (ns), OVERRUNS and EVENT\n"
	  "in its environment. Each event goes to only one reader: no other reader gets the events that\n"
	  "this command takes.",
	  OPTIONS_WHEEL | OPTION(COUNT) | OPTION(TIMEOUT) | OPTION(UNTIL_EMPTY) | OPTION(EXEC) |
	  OPTION(NO_HEADER), command_wait },
	{ "monitor", "", "print copies of events without taking them",
	  "Print a copy of each event that is delivered from now on, until the wheel is closed.\n"
	  "This does not take events from other readers.",
	  OPTIONS_WHEEL | OPTION(COUNT) | OPTION(TIMEOUT) | OPTION(BUFFER) | OPTION(NO_HEADER),
	  command_monitor },
	{ "save", "FILE", "write a wheel to a file",
	  "Write the timers of the wheel to a file (- is the standard output). An existing file is\n"
	  "replaced completely or not at all. A wheel with a deadline table cannot be saved.",
	  OPTIONS_WHEEL, command_save },
	{ "restore", "FILE", "arm the timers of a saved file",
	  "Arm the timers of a file (- is the standard input) for the time of day at which they would\n"
	  "have fallen due. Timers whose time has passed are due at once and reported as overdue. If\n"
	  "one timer cannot be armed, no timer is armed. A wheel that is not set up gets the saved\n"
	  "settings.",
	  OPTIONS_WHEEL | OPTION(EXCL) | OPTION(CHECK) | OPTION(OVERDUE) | OPTION(OVERDUE_MARK) |
	  OPTION(ELAPSED),
	  command_restore },
	{ "guard", "", "end idle connections of running daemons",
	  NULL,
	  0, command_program },
	{ "proxy", "", "relay TCP connections, and end those that take too long",
	  NULL,
	  0, command_program },
	{ "bench", "", "measure the cost of calls on this machine",
	  "Measure the cost of timers in a new wheel on this machine, with one timer per call and\n"
	  "with many. This takes a few seconds.",
	  OPTION(TIMERS) | OPTION(NO_HEADER), command_bench },
	{ "help", "[COMMAND]", "describe a command and its options",
	  "Describe a command and its options. Without COMMAND, list all commands.",
	  0, command_help },
	{ }
};

/* The number of letters to insert, remove or replace, so that @a becomes @b. */
static size_t distance(const char *a, const char *b)
{
	size_t row[NAME_MAX + 1], i, j, left, above, best;

	for (j = 0; j <= strlen(b); j++)
		row[j] = j;
	for (i = 0; a[i]; i++) {
		left = row[0];
		row[0] = i + 1;
		for (j = 0; b[j]; j++) {
			above = row[j + 1];
			best = left + (a[i] != b[j]);
			if (above + 1 < best)
				best = above + 1;
			if (row[j] + 1 < best)
				best = row[j] + 1;
			row[j + 1] = best;
			left = above;
		}
	}
	return row[j];
}

/* The command that begins with @name, or differs in at most two letters; NULL: there is none. */
static const struct command *nearest(const char *name)
{
	const struct command *c, *found = NULL;
	size_t least = 3, d;

	for (c = commands; c->name; c++) {
		d = strncmp(c->name, name, strlen(name)) ? distance(name, c->name) : 1;
		if (d < least && d < strlen(c->name)) {
			least = d;
			found = c;
		}
	}
	return found;
}

const struct command *command_by_name(const char *name)
{
	const struct command *c;

	for (c = commands; c->name; c++) {
		if (!strcmp(c->name, name))
			return c;
	}
	c = nearest(name);
	if (c)
		usage("unknown command '%s'; did you mean '%s'?", name, c->name);
	usage("unknown command '%s'", name);
}

static void print_version(void)
{
	printf("timerwheel %s, for version %d of the kernel's interface\n", version,
	       TIMERWHEEL_ABI_VERSION);
}

/* Before the command, only options that many commands share are allowed. */
static void refuse_others(const struct command *command)
{
	int id;

	for (id = 0; id < OPT_NR; id++) {
		if (opt.given[id] && !((command->options | OPTIONS_ALL) & 1ULL << id))
			usage("%s takes no --%s", command->name, option_defs[id].name);
	}
}

static int run(int argc, char **argv)
{
	const struct command *command;
	int first;

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
		usage("a command is required");
	command = command_by_name(argv[first]);
	argc -= first;
	argv += first;
	/* This is another program with its own options. */
	if (command->run == command_program)
		return command_program(argc, argv);
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
	return command->run(argc - first, argv + first);
}

int main(int argc, char **argv)
{
	int status;

	progname = "timerwheel";
	signals_reset();
	status = run(argc, argv);
	out_check();
	/* Some file systems report write errors only at close. */
	if (close(STDOUT_FILENO) && errno != EBADF)
		die("cannot write the output: %s", strerror(errno));
	return status;
}
