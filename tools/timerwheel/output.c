// SPDX-License-Identifier: GPL-2.0
/* Tables for people, JSON for programs: a command says what there is, this how it looks. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* Rows that wait until the width of their columns is known. */
#define ROWS	512
#define COLUMNS	12
/* Where values begin on lines of their own. */
#define INDENT	22

static const struct column *columns;
static int nr_columns, nr_rows;
static int width[COLUMNS];
static char *cells[ROWS][COLUMNS];
static bool head_due;

/* --- JSON --------------------------------------------------------------- */

#define DEPTH	8

static char brackets[DEPTH];
static bool occupied[DEPTH];
static int depth;

static void json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

/* Elements of arrays have lines of their own, unless the document is one of many. */
static void json_newline(void)
{
	if (!opt.given[OPT_WATCH] && !opt.given[OPT_BATCH])
		putchar('\n');
}

/* What stands before a member or an element. */
static void json_begin(const char *name)
{
	if (depth && occupied[depth - 1]) {
		putchar(',');
		if (brackets[depth - 1] == '[')
			json_newline();
		else
			putchar(' ');
	}
	if (depth)
		occupied[depth - 1] = true;
	if (name) {
		json_string(name);
		fputs(": ", stdout);
	}
}

void json_open(const char *name, char bracket)
{
	if (!opt.given[OPT_JSON])
		return;
	json_begin(name);
	putchar(bracket);
	if (bracket == '[')
		json_newline();
	brackets[depth] = bracket;
	occupied[depth++] = false;
}

void json_close(void)
{
	if (!opt.given[OPT_JSON])
		return;
	depth--;
	if (brackets[depth] == '[' && occupied[depth])
		json_newline();
	putchar(brackets[depth] == '[' ? ']' : '}');
	if (!depth)
		putchar('\n');
}

static void json_value(const char *name, enum kind kind, union value value)
{
	json_begin(name);
	switch (kind) {
	case SHOW_NUMBER:
	case SHOW_COUNT:
	case SHOW_PERIOD:
	case SHOW_BYTES:
		printf("%llu", value.number);
		break;
	case SHOW_SPAN:
		printf("%lld", value.span);
		break;
	case SHOW_TEXT:
		json_string(value.text);
		break;
	case SHOW_BOOL:
		fputs(value.yes ? "true" : "false", stdout);
		break;
	}
}

/* --- for people --------------------------------------------------------- */

void out_heading(const char *text)
{
	bool bold = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");

	if (!opt.given[OPT_JSON])
		printf("%s%s%s\n", bold ? "\033[1m" : "", text, bold ? "\033[m" : "");
}

const char *bytes_text(__u64 bytes)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	char *text = text_buffer();
	double value = bytes;
	size_t i = 0;

	for (; value >= 999.95 && i + 1 < ARRAY_SIZE(units); i++)
		value /= 1000;
	snprintf(text, TEXT_LENGTH, "%.*f %s", i && value < 99.95 ? 1 : 0, value, units[i]);
	return text;
}

char *printable(char *text)
{
	char *c;

	for (c = text; *c; c++) {
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
	return text;
}

static const char *text_of(enum kind kind, union value value)
{
	char *text;

	switch (kind) {
	case SHOW_NUMBER:
		text = text_buffer();
		snprintf(text, TEXT_LENGTH, "%llu", value.number);
		return text;
	case SHOW_COUNT:
		return commas(value.number);
	case SHOW_SPAN:
		return span(value.span);
	case SHOW_PERIOD:
		return value.number ? span(value.number) : "-";
	case SHOW_BYTES:
		return bytes_text(value.number);
	case SHOW_TEXT:
		return value.text;
	case SHOW_BOOL:
		break;
	}
	return value.yes ? "yes" : "no";
}

static void out_value(const char *title, const char *name, enum kind kind, union value value)
{
	if (opt.given[OPT_JSON]) {
		if (name)
			json_value(name, kind, value);
	} else if (title) {
		printf("%-*s  %s\n", INDENT, title, text_of(kind, value));
	}
}

void out_number(const char *title, const char *name, enum kind kind, __u64 number)
{
	union value value = { .number = number };

	if (kind == SHOW_BOOL)
		value.yes = number;
	out_value(title, name, kind, value);
}

void out_text(const char *title, const char *name, const char *text)
{
	out_value(title, name, SHOW_TEXT, (union value){ .text = text });
}

void out_line(const char *fmt, ...)
{
	va_list args;

	if (opt.given[OPT_JSON])
		return;
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

void out_check(void)
{
	if (fflush(stdout) || ferror(stdout))
		die("cannot write the output: %s", strerror(errno));
}

/* --- tables ------------------------------------------------------------- */

void table_begin(const struct column *these, int count)
{
	int i;

	columns = these;
	nr_columns = count;
	nr_rows = 0;
	head_due = !opt.given[OPT_NO_HEADER];
	for (i = 0; i < count; i++) {
		int title = columns[i].title ? strlen(columns[i].title) : 0;

		width[i] = columns[i].width > title ? columns[i].width : title;
	}
}

static void json_row(const union value *values)
{
	int i;

	json_open(NULL, '{');
	for (i = 0; i < nr_columns; i++) {
		if (columns[i].name)
			json_value(columns[i].name, columns[i].kind, values[i]);
	}
	json_close();
}

void table_row(const union value *values)
{
	int i;

	if (opt.given[OPT_JSON]) {
		json_row(values);
		return;
	}
	if (nr_rows == ROWS)
		table_flush();
	for (i = 0; i < nr_columns; i++) {
		char *text = strdup(text_of(columns[i].kind, values[i]));

		if (!text)
			die("no memory for a table");
		printable(text);
		if ((int)strlen(text) > width[i])
			width[i] = strlen(text);
		cells[nr_rows][i] = text;
	}
	nr_rows++;
}

/* Text to the left, all else to the right; nothing behind the last column. */
static void print_row(char *line, size_t size, char *const *row)
{
	size_t used = 0;
	int i;

	*line = '\0';
	for (i = 0; i < nr_columns && used < size; i++) {
		const char *text = row ? row[i] : columns[i].title;
		bool left = columns[i].kind == SHOW_TEXT;

		if (left && i == nr_columns - 1)
			used += snprintf(line + used, size - used, "%s%s", i ? "  " : "", text);
		else
			used += snprintf(line + used, size - used, "%s%*s", i ? "  " : "",
					 left ? -width[i] : width[i], text);
	}
}

void table_flush(void)
{
	char line[512];
	int row, i;

	if (head_due) {
		print_row(line, sizeof(line), NULL);
		out_heading(line);
		head_due = false;
	}
	for (row = 0; row < nr_rows; row++) {
		print_row(line, sizeof(line), cells[row]);
		puts(line);
		for (i = 0; i < nr_columns; i++)
			free(cells[row][i]);
	}
	nr_rows = 0;
	out_check();
}

/* --- lateness ----------------------------------------------------------- */

/*
 * A line for each power of two from the first to the last that has timers in it. The last bucket
 * holds all that were later than the one before.
 */
void histogram(const __u64 *lateness, int width_of_screen, void (*print)(const char *line))
{
	int first = 0, last = TIMERWHEEL_LATENESS_BUCKETS - 1, room = width_of_screen - 36, i;
	__u64 most = 0, all = 0;
	char line[256], bar[129];

	if (room > (int)sizeof(bar) - 1)
		room = sizeof(bar) - 1;
	for (i = 0; i < TIMERWHEEL_LATENESS_BUCKETS; i++) {
		all += lateness[i];
		if (lateness[i] > most)
			most = lateness[i];
	}
	if (!all) {
		print("no timer has fired yet");
		return;
	}
	while (!lateness[first])
		first++;
	while (!lateness[last])
		last--;
	for (i = first; i <= last; i++) {
		bool rest = i == TIMERWHEEL_LATENESS_BUCKETS - 1;
		/* Whatever is there can be seen. */
		int length = room > 0 ? (lateness[i] * room + most - 1) / most : 0;

		memset(bar, '#', length);
		bar[length] = '\0';
		snprintf(line, sizeof(line), "%s %6s %14s %5.1f%%  %s", rest ? "from" : "   <",
			 span(1LL << (rest ? i - 1 : i)), commas(lateness[i]),
			 100.0 * lateness[i] / all, bar);
		print(line);
	}
}
