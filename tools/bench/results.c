// SPDX-License-Identifier: GPL-2.0
/* The table of results. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "bench.h"

/* The goals are those of the design, in ns where nothing else is said. */
static const struct {
	const char *id;
	const char *name;
	__u64 goal;	/* 0: none */
} rows[ROWS] = {
	[ROW_SYSCALL] = { "syscall", "empty system call", 0 },
	[ROW_ADD] = { "add", "arm: ADD, 256 in a call, first use of memory", 250 },
	[ROW_ADD_AGAIN] = { "add_again", "  the same, memory used before", 250 },
	[ROW_MOVE_LATER] = { "move_later", "MOVE later, 256 in a call", 180 },
	[ROW_MOVE_EARLIER] = { "move_earlier", "MOVE earlier, 256 in a call", 180 },
	[ROW_REMOVE] = { "remove", "REMOVE, 256 in a call (disarm)", 150 },
	[ROW_CLOSE] = { "close", "  close, delete", 0 },
	[ROW_EMPTY] = { "empty", "element that does nothing: no such key, 256", 0 },
	[ROW_ADD_ONE] = { "add_one", "ADD alone in its call", 900 },
	[ROW_MOVE_ONE_LATER] = { "move_one_later", "MOVE later alone", 900 },
	[ROW_MOVE_ONE_EARLIER] = { "move_one_earlier", "MOVE earlier alone", 900 },
	[ROW_REMOVE_ONE] = { "remove_one", "REMOVE alone", 0 },
	[ROW_READ] = { "read", "read of a due timer's event, 1,024 in a call", 0 },
	[ROW_EXPIRE] = { "expire", "expire + deliver, all CPU time, tick 1 ms", 140 },
	[ROW_EXPIRE_EXACT] = { "expire_exact", "  the same, deadlines not rounded", 0 },
	[ROW_MEMORY] = { "memory", "memory of one timer, bytes", 66 },
	[ROW_LIFE_MINUTE] = { "life_60s", "kernel work over a life of 60 s", 200 },
	[ROW_LIFE_HOUR] = { "life_1h", "  of 1 h", 300 },
	[ROW_LIFE_DAY] = { "life_24h", "  of 24 h", 400 },
	[ROW_FIRINGS] = { "firings", "interrupts while one timer waits 60 s", 2 },
	[ROW_BURST_PASS] = { "burst_pass", "all due in one tick: longest pass", 500000 },
	[ROW_BURST_TIMERS] = { "burst_timers", "  timers in the largest pass", 0 },
	[ROW_BURST_SAME] = { "burst_same", "  lateness of others in the wheel", 2000000 },
	[ROW_BURST_OTHER] = { "burst_other", "  lateness in another wheel", 2000000 },
	[ROW_BURST_TASK] = { "burst_task", "  lateness of a task's sleep", 0 },
	[ROW_BURST_ALL] = { "burst_all", "  until the last of the burst fired", 0 },
	[ROW_CASCADE_PASS] = { "cascade_pass", "all in one upper slot: longest pass", 500000 },
	[ROW_CASCADE_TIMERS] = { "cascade_timers", "  timers in the largest pass", 0 },
	[ROW_CASCADE_SAME] = { "cascade_same", "  lateness of others in the wheel", 2000000 },
	[ROW_CASCADE_OTHER] = { "cascade_other", "  lateness in another wheel", 2000000 },
	[ROW_CASCADE_TASK] = { "cascade_task", "  lateness of a task's sleep", 0 },
};

static const char * const columns[COLUMNS] = { "timerwheel", "timerfd", "POSIX" };

static struct {
	bool known;
	__u64 value;
} results[ROWS][COLUMNS];

void result(enum row row, enum column column, __u64 value)
{
	results[row][column].known = true;
	results[row][column].value = value;
	progress("%-46s %10s: %s", rows[row].name, columns[column], commas(value));
}

/*
 * On a serial line what is printed goes out slowly, with an interrupt for every few
 * characters: wait for that to end, so that it does not fall into the next measurement.
 */
void progress(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	tcdrain(STDERR_FILENO);
	sleep_until(now_ns() + 50 * NSEC_PER_MSEC);
}

static bool row_known(int row)
{
	int column;

	for (column = 0; column < COLUMNS; column++) {
		if (results[row][column].known)
			return true;
	}
	return false;
}

void results_print(void)
{
	int row, column;

	printf("%-46s", "one timer, ns where nothing else is said");
	for (column = 0; column < COLUMNS; column++)
		printf(" %12s", columns[column]);
	printf(" %10s\n", "goal");
	for (row = 0; row < ROWS; row++) {
		if (!row_known(row))
			continue;
		printf("%-46s", rows[row].name);
		for (column = 0; column < COLUMNS; column++) {
			printf(" %12s", results[row][column].known ?
			       commas(results[row][column].value) : "");
		}
		printf(" %10s\n", rows[row].goal ? commas(rows[row].goal) : "");
	}
	puts("(timerfd, POSIX: each timer in system calls of its own, three or two to arm it)");
}

static void write_cell(FILE *file, bool known, __u64 value)
{
	if (known)
		fprintf(file, "\t%llu", value);
	else
		fprintf(file, "\t");
}

void results_write(const char *path)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "w") : stdout;
	int row, column;

	if (!file)
		die("cannot write %s: %s", path, strerror(errno));
	fprintf(file, "id\ttimerwheel\ttimerfd\tposix\tgoal\n");
	for (row = 0; row < ROWS; row++) {
		fputs(rows[row].id, file);
		for (column = 0; column < COLUMNS; column++)
			write_cell(file, results[row][column].known, results[row][column].value);
		write_cell(file, rows[row].goal, rows[row].goal);
		fputc('\n', file);
	}
	if (file != stdout)
		fclose(file);
}
