// SPDX-License-Identifier: GPL-2.0
/* --help, generated from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* Column in which the descriptions of options begin. */
#define INDENT	22

static void print_option(const struct option_def *def)
{
	char text[64], letter[8] = "    ";

	if (def->letter)
		snprintf(letter, sizeof(letter), "-%c, ", def->letter);
	snprintf(text, sizeof(text), "%s--%s%s%s%s%s", letter, def->name,
		 def->kind == KIND_OPTIONAL ? "[=" : def->argument ? " " : "",
		 def->argument ? def->argument : "", def->kind == KIND_OPTIONAL ? "]" : "", "");
	if (strlen(text) > INDENT)
		printf("  %s\n  %*s  %s\n", text, INDENT, "", def->help);
	else
		printf("  %-*s  %s\n", INDENT, text, def->help);
}

void help_all(void)
{
	const struct command *c;
	int id;

	puts("usage: timerwheel COMMAND [OPTION]... [ARGUMENT]...\n"
	     "\n"
	     "Inspect wheels of /dev/timerwheel, arm timers and read events, from scripts or interactively.\n"
	     "A wheel exists as long as a process has it open. Select a wheel by a descriptor, or by a\n"
	     "process that has it open.\n"
	     "\n"
	     "Commands (for details: timerwheel COMMAND --help):");
	for (c = commands; c->name; c++)
		printf("  %-8s  %s\n", c->name, c->summary);
	puts("\nOptions:");
	for (id = 0; id < OPT_NR; id++) {
		if ((OPTIONS_WHEEL | OPTIONS_ALL) & 1ULL << id)
			print_option(&option_defs[id]);
	}
	puts("\n"
	     "Times: 250ms, 10s, 1h30m, 2d. The units are ns, us, ms, s, m or min, h, d, w. The default\n"
	     "unit is s. Points in time: a time from now; @SECONDS of the wheel's clock;\n"
	     "@2030-12-24T18:00 in local time, or in UTC with Z at the end. Keys and values: 0 to 2^64 - 1,\n"
	     "in decimal, or in hexadecimal with 0x.\n"
	     "\n"
	     "Exit status: 0 success; 1 failure; 2 invalid command line; 3 some timers or commands failed;\n"
	     "4 the time of --timeout has passed.\n"
	     "\n"
	     "For example:\n"
	     "  exec 3<>/dev/timerwheel                # in a shell: open a new wheel\n"
	     "  timerwheel --fd 3 add 1 10s\n"
	     "  timerwheel --fd 3 wait --exec sh -c 'echo timer $KEY is late by $LATE ns'\n"
	     "  timerwheel --pid 1234 list             # the timers of a daemon\n"
	     "  timerwheel top                         # all wheels of this machine");
}

void help_command(const struct command *command)
{
	__u64 options = command->options | OPTIONS_ALL;
	int id;

	printf("usage: timerwheel %s%s [OPTION]...%s%s\n\n%s\n\nOptions:\n",
	       command->options & OPTION(FD) ? "[--fd N | --pid PID [--wheel-fd N]] " : "",
	       command->name, *command->arguments ? " " : "", command->arguments, command->text);
	for (id = 0; id < OPT_NR; id++) {
		if (options & 1ULL << id)
			print_option(&option_defs[id]);
	}
}

int command_help(int argc, char **argv)
{
	const struct command *command;

	if (argc > 1)
		usage("unexpected argument '%s'", argv[1]);
	if (!argc) {
		help_all();
		return STATUS_DONE;
	}
	command = command_by_name(argv[0]);
	if (command->run == command_program)
		return command_program(2, (char *[]) { argv[0], "--help", NULL });
	help_command(command);
	return STATUS_DONE;
}
