// SPDX-License-Identifier: GPL-2.0
/* The terminal of top: a picture at a time, written at once so that nothing flickers. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli.h"

#define SIZE	65536

static struct termios cooked;
static bool taken;
static char picture[SIZE];
static size_t used;
static int line, rows, columns;

static void write_all(const char *text, size_t length)
{
	ssize_t n;

	while (length) {
		n = write(STDOUT_FILENO, text, length);
		if (n < 0 && errno != EINTR)
			return;
		if (n < 0)
			continue;
		text += n;
		length -= n;
	}
}

static void write_text(const char *text)
{
	write_all(text, strlen(text));
}

/* Whatever ends the program: the terminal is as it was before. */
static void restore(int number)
{
	screen_end();
	signal(number, SIG_DFL);
	raise(number);
}

static void take(void)
{
	struct termios raw = cooked;

	taken = true;
	raw.c_lflag &= ~(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	/* Another screen, no cursor. */
	write_text("\033[?1049h\033[?25l");
}

/* The shell has the terminal until we go on. */
static void suspend(int number)
{
	sigset_t set;

	screen_end();
	signal(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	signal(number, suspend);
	take();
}

/* Interrupts poll() so that the picture is drawn anew. */
static void resized(int number)
{
	(void)number;
}

void screen_begin(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction size = { .sa_handler = resized };
	size_t i;

	if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &cooked))
		usage("the output is not a terminal: use --batch");
	for (i = 0; i < ARRAY_SIZE(ends); i++)
		signal(ends[i], restore);
	atexit(screen_end);
	signal(SIGTSTP, suspend);
	sigaction(SIGWINCH, &size, NULL);
	take();
}

void screen_end(void)
{
	if (!taken)
		return;
	taken = false;
	write_text("\033[?25h\033[?1049l");
	tcsetattr(STDIN_FILENO, TCSANOW, &cooked);
}

void screen_size(int *r, int *c)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		size = (struct winsize) { .ws_row = 24, .ws_col = 80 };
	*r = size.ws_row;
	*c = size.ws_col;
}

static void put(const char *text)
{
	size_t length = strlen(text);

	if (used + length < SIZE) {
		memcpy(picture + used, text, length);
		used += length;
	}
}

void screen_clear(void)
{
	screen_size(&rows, &columns);
	used = 0;
	line = 0;
	put("\033[H");
}

void screen_line(const char *style, const char *fmt, ...)
{
	char text[512];
	va_list args;

	if (line >= rows)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (columns < (int)sizeof(text))
		text[columns] = '\0';
	if (line++)
		put("\r\n");
	put(getenv("NO_COLOR") ? "" : style);
	put(printable(text));
	/* The rest of the line in the same style, then plain. */
	put("\033[K\033[m");
}

void screen_show(void)
{
	put("\033[J");
	write_all(picture, used);
}

enum key screen_wait(__u64 ns)
{
	struct pollfd poller = { .fd = STDIN_FILENO, .events = POLLIN };
	char keys[8] = "";
	ssize_t n;

	if (poll(&poller, 1, (ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC) <= 0)
		return KEY_NONE;
	n = read(STDIN_FILENO, keys, sizeof(keys) - 1);
	/* The terminal has gone. */
	if (n <= 0)
		return KEY_QUIT;
	if (!strcmp(keys, "\033[A") || !strcmp(keys, "\033OA") || *keys == 'k')
		return KEY_UP;
	if (!strcmp(keys, "\033[B") || !strcmp(keys, "\033OB") || *keys == 'j')
		return KEY_DOWN;
	switch (*keys) {
	case 'q':
		return KEY_QUIT;
	case 's':
		return KEY_SORT;
	case 'r':
		return KEY_REVERSE;
	default:
		return KEY_OTHER;
	}
}
