// SPDX-License-Identifier: GPL-2.0
/* What the terminal can do, as terminfo(5) knows it. top takes its whole screen, with ncurses. */
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"

/* Behind all others: these make macros of common words. */
#include <curses.h>
#include <term.h>

/* Is there a terminal that is known? */
static bool known(void)
{
	static int answer = -1;
	int error;

	if (answer < 0)
		answer = isatty(STDOUT_FILENO) && setupterm(NULL, STDOUT_FILENO, &error) == OK;
	return answer;
}

const char *terminal_text(const char *capability)
{
	const char *text = known() ? tigetstr((char *)capability) : NULL;

	/* -1: it is no string. */
	return text && text != (char *)-1 ? text : NULL;
}

bool terminal_bold(void)
{
	const char *no = getenv("NO_COLOR");

	return !no || !*no;
}
