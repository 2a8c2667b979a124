// SPDX-License-Identifier: GPL-2.0
/* Capabilities of the terminal, from terminfo(5). top uses the whole screen with ncurses. */
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"

/* Included last, because these define macros with common names. */
#include <curses.h>
#include <term.h>

/* Is the output a known terminal? */
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

	/* -1: it is not a string capability. */
	return text && text != (char *)-1 ? text : NULL;
}

bool terminal_bold(void)
{
	const char *no = getenv("NO_COLOR");

	return !no || !*no;
}
