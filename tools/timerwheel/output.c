// SPDX-License-Identifier: GPL-2.0
/* Output: tables for people, and JSON for programs. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

/* Rows that wait until the width of their columns is known. */
#define ROWS	512
#define COLUMNS	12
/* Column in which values begin on separate lines. */
#define INDENT	22

static const struct column *columns;
static int nr_columns, nr_rows;
static int width[COLUMNS];
static char *cells[ROWS][COLUMNS];
static bool head_due;

/* --- pages -------------------------------------------------------------- */

/* Output goes to standard output, or within a page to memory. */
static FILE *page;
static char *page_text;
static size_t page_length;
static size_t ends[PAGE];	/* end of each item of the page */
static size_t nr_ends;
static int error;

static FILE *out(void)
{
	return page ? page : stdout;
}

void page_begin(void)
{
	hold_write();
	out_check();
	nr_ends = 0;
	page = open_memstream(&page_text, &page_length);
	if (!page)
		die("no memory for a page of output");
}

void page_item(void)
{
	if (page && nr_ends < PAGE)
		ends[nr_ends++] = ftell(page);
}

/* Write until a signal or an error. Returns the number of written bytes. */
static size_t write_text(const char *text, size_t length)
{
	struct pollfd pollers[] = {
		{ .fd = STDOUT_FILENO, .events = POLLOUT },
		{ .fd = hold_fd(), .events = POLLIN },
	};
	size_t done = 0;
	ssize_t n;

	while (done < length) {
		/* When poll reports room, a pipe accepts this number of bytes without blocking. */
		size_t some = length - done < PIPE_BUF ? length - done : PIPE_BUF;

		if (poll(pollers, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			error = errno;
			return done;
		}
		if (pollers[1].revents) {
			error = EINTR;
			return done;
		}
		n = write(STDOUT_FILENO, text + done, some);
		if (n > 0) {
			done += n;
		} else if (errno != EINTR && errno != EAGAIN) {
			error = errno;
			return done;
		}
	}
	return done;
}

/* Some file systems report a full disk only at a sync. */
static bool synced(void)
{
	struct stat st;

	if (fstat(STDOUT_FILENO, &st) || !S_ISREG(st.st_mode) || !fsync(STDOUT_FILENO) ||
	    errno == EINVAL)
		return true;
	error = errno;
	return false;
}

size_t page_end(void)
{
	size_t written, items;

	table_flush();
	if (fclose(page))
		die("no memory for a page of output");
	page = NULL;
	error = 0;
	written = write_text(page_text, page_length);
	if (written && !synced())
		written = 0;
	free(page_text);
	for (items = 0; items < nr_ends && ends[items] <= written; items++)
		;
	return items;
}

const char *page_error(void)
{
	if (!error)
		return NULL;
	return error == EINTR ? "interrupted by a signal" : strerror(error);
}

/* --- JSON --------------------------------------------------------------- */

/*
 * No library is better for this. json-c builds complete documents, 1.5 GB for a million timers.
 * yajl writes rows immediately, but refuses a name that is not UTF-8, and escapes neither DEL nor
 * the control characters from 0x80.
 */

#define DEPTH	8

static char brackets[DEPTH];
static bool occupied[DEPTH];
static int depth;

/* The length of the UTF-8 character at @text, and the character; 0: it is not UTF-8. */
static int utf8(const unsigned char *text, unsigned int *character)
{
	static const unsigned int least[] = { 0, 0x80, 0x800, 0x10000 };
	int more = *text < 0x80 ? 0 : *text >> 5 == 6 ? 1 : *text >> 4 == 14 ? 2 :
		   *text >> 3 == 30 ? 3 : -1, i;
	unsigned int c = more > 0 ? *text & 0x3f >> more : *text;

	for (i = 1; i <= more; i++) {
		if (text[i] >> 6 != 2)
			return 0;
		c = c << 6 | (text[i] & 0x3f);
	}
	if (more < 0 || c < least[more] || c > 0x10ffff || c >> 11 == 0xd800 >> 11)
		return 0;
	*character = c;
	return 1 + more;
}

/* Print a name of any bytes as UTF-8, without control characters for a terminal. */
static void json_string(const char *text)
{
	unsigned int c;
	int length;

	fputc('"', out());
	for (; *text; text += length) {
		length = utf8((const unsigned char *)text, &c);
		if (!length) {
			fputs("\\ufffd", out());
			length = 1;
		} else if (c < 0x20 || (c >= 0x7f && c < 0xa0)) {
			fprintf(out(), "\\u%04x", c);
		} else {
			if (c == '"' || c == '\\')
				fputc('\\', out());
			fwrite(text, length, 1, out());
		}
	}
	fputc('"', out());
}

/* Elements of arrays are on separate lines, unless the document is one of many. */
static void json_newline(void)
{
	if (!opt.given[OPT_WATCH] && !opt.given[OPT_BATCH])
		fputc('\n', out());
}

/* Print the separator and name of a member or element. */
static void json_begin(const char *name)
{
	if (depth && occupied[depth - 1]) {
		fputc(',', out());
		if (brackets[depth - 1] == '[')
			json_newline();
		else
			fputc(' ', out());
	}
	if (depth)
		occupied[depth - 1] = true;
	if (name) {
		json_string(name);
		fputs(": ", out());
	}
}

void json_open(const char *name, char bracket)
{
	if (!opt.given[OPT_JSON])
		return;
	json_begin(name);
	fputc(bracket, out());
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
	fputc(brackets[depth] == '[' ? ']' : '}', out());
	if (!depth)
		fputc('\n', out());
}

static void json_value(const char *name, enum kind kind, union value value)
{
	json_begin(name);
	switch (kind) {
	case SHOW_NUMBER:
	case SHOW_COUNT:
	case SHOW_PERIOD:
	case SHOW_BYTES:
		fprintf(out(), "%llu", value.number);
		break;
	case SHOW_SPAN:
		fprintf(out(), "%lld", value.span);
		break;
	case SHOW_TEXT:
		json_string(value.text);
		break;
	case SHOW_BOOL:
		fputs(value.yes ? "true" : "false", out());
		break;
	}
}

/* --- for people --------------------------------------------------------- */

void out_heading(const char *text)
{
	const char *bold = terminal_bold() ? terminal_text("bold") : NULL;
	const char *plain = terminal_text("sgr0");

	if (!opt.given[OPT_JSON])
		fprintf(out(), "%s%s%s\n", bold && plain ? bold : "", text,
			bold && plain ? plain : "");
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
		fprintf(out(), "%-*s  %s\n", INDENT, title, text_of(kind, value));
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
	vfprintf(out(), fmt, args);
	va_end(args);
	fputc('\n', out());
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
	page_item();
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

/* Align text left and other values right. Print nothing behind the last column. */
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
		fprintf(out(), "%s\n", line);
		page_item();
		for (i = 0; i < nr_columns; i++)
			free(cells[row][i]);
	}
	nr_rows = 0;
	out_check();
}

/* --- lateness ----------------------------------------------------------- */

/*
 * Print a line for each power of two from the first to the last bucket that has timers. The last
 * bucket contains all larger values.
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
		/* Make each bucket with timers visible. */
		int length = room > 0 ? (lateness[i] * room + most - 1) / most : 0;

		memset(bar, '#', length);
		bar[length] = '\0';
		snprintf(line, sizeof(line), "%s %6s %14s %5.1f%%  %s", rest ? "from" : "   <",
			 span(1LL << (rest ? i - 1 : i)), commas(lateness[i]),
			 100.0 * lateness[i] / all, bar);
		print(line);
	}
}
