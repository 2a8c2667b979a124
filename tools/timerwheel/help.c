// SPDX-License-Identifier: GPL-2.0
/* --help, made of the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* Where the explanations of options begin. */
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
	     "Wheels of /dev/timerwheel, for scripts and for people. A wheel belongs to those who\n"
	     "have it open: name it by a descriptor, or by a process that has it.\n"
	     "\n"
	     "Commands (timerwheel COMMAND --help says more):");
	for (c = commands; c->name; c++)
		printf("  %-8s  %s\n", c->name, c->summary);
	puts("\nOptions:");
	for (id = 0; id < OPT_NR; id++) {
		if ((OPTIONS_WHEEL | OPTIONS_ALL) & 1ULL << id)
			print_option(&option_defs[id]);
	}
	puts("\n"
	     "Times: 250ms, 10s, 1h30m, 2d; units ns, us, ms, s, m or min, h, d, w; a plain number is\n"
	     "seconds. Points in time: such a time from now; @SECONDS of the wheel's clock;\n"
	     "@2030-12-24T18:00 local time, with Z behind it UTC. Keys and values: 0 to 2^64 - 1,\n"
	     "decimal or 0x and hexadecimal.\n"
	     "\n"
	     "Exit status: 0 all was done; 1 it could not be done; 2 the command line is wrong;\n"
	     "3 some of it failed; 4 --timeout was over first.\n"
	     "\n"
	     "For example:\n"
	     "  exec 3<>/dev/timerwheel                # in a shell: a wheel of its own\n"
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
