// SPDX-License-Identifier: GPL-2.0
/*
 * top: repeatedly show all wheels of the machine and the processes that have them open. Rates are
 * the difference between two readings of the counters in fdinfo.
 */
#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"
#include "threads.h"

/**
 * struct row - a wheel, and its rates since the last reading
 * @seen: its current state
 * @armed: armings per second
 * @delivered: events per second
 */
struct row {
	struct seen seen;
	__u64 armed;
	__u64 delivered;
};

static struct row *rows;
static size_t nr_rows;
static struct scan now, last;
static __u64 last_time;

/* --- order -------------------------------------------------------------- */

static __u64 pid_of(const struct row *row)
{
	return row->seen.pid;
}

static __u64 pending_of(const struct row *row)
{
	return row->seen.pending;
}

static __u64 due_of(const struct row *row)
{
	return row->seen.due;
}

static __u64 armed_of(const struct row *row)
{
	return row->armed;
}

static __u64 delivered_of(const struct row *row)
{
	return row->delivered;
}

static __u64 memory_of(const struct row *row)
{
	return row->seen.memory;
}

/* Names in alphabetical order, processes by number, all others in descending order. */
static const struct order {
	const char *name;
	__u64 (*number)(const struct row *row);
	bool rising;
} orders[] = {
	{ "pending", pending_of, false },
	{ "due", due_of, false },
	{ "armed", armed_of, false },
	{ "delivered", delivered_of, false },
	{ "memory", memory_of, false },
	{ "pid", pid_of, true },
	{ "command", NULL, true },
};

static size_t order;
static bool reverse;

static int compare(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	const struct order *o = &orders[order];
	int sign;

	if (o->number)
		sign = (o->number(x) > o->number(y)) - (o->number(x) < o->number(y));
	else
		sign = strcmp(x->seen.command, y->seen.command);
	if (o->rising == reverse)
		sign = -sign;
	if (sign)
		return sign;
	if (x->seen.pid != y->seen.pid)
		return x->seen.pid - y->seen.pid;
	return x->seen.fd - y->seen.fd;
}

static void choose_order(void)
{
	const char *name = opt.text[OPT_SORT];

	if (!name)
		return;
	for (order = 0; order < ARRAY_SIZE(orders); order++) {
		if (!strcmp(name, orders[order].name))
			return;
	}
	usage("--sort needs pending, due, armed, delivered, memory, pid or command, not '%s'",
	      name);
}

/* --- reading ------------------------------------------------------------ */

static const struct seen *before(const struct seen *seen)
{
	size_t i;

	for (i = 0; i < last.count; i++) {
		const struct seen *old = &last.wheels[i];

		/* Counters only grow, so a smaller counter belongs to another wheel. */
		if (old->pid == seen->pid && old->fd == seen->fd && old->armed <= seen->armed &&
		    old->delivered <= seen->delivered)
			return old;
	}
	return NULL;
}

static __u64 rate(__u64 more, __u64 ns)
{
	return ns ? more * (double)NSEC_PER_SEC / ns + 0.5 : 0;
}

static void look(void)
{
	struct scan swap = last;
	__u64 time, passed;
	size_t i;

	last = now;
	now = swap;
	scan_all(&now);
	time = now_ns();
	passed = last_time ? time - last_time : 0;
	last_time = time;
	free(rows);
	nr_rows = now.count;
	rows = xcalloc(nr_rows + 1, sizeof(*rows));
	for (i = 0; i < nr_rows; i++) {
		const struct seen *old = before(&now.wheels[i]);

		rows[i].seen = now.wheels[i];
		if (!old)
			continue;
		rows[i].armed = rate(now.wheels[i].armed - old->armed, passed);
		rows[i].delivered = rate(now.wheels[i].delivered - old->delivered, passed);
	}
	qsort(rows, nr_rows, sizeof(*rows), compare);
}

static void summary(char *text, size_t size)
{
	__u64 pending = 0, due = 0, armed = 0, delivered = 0, memory = 0;
	size_t i;
	int n;

	for (i = 0; i < nr_rows; i++) {
		pending += rows[i].seen.pending;
		due += rows[i].seen.due;
		armed += rows[i].armed;
		delivered += rows[i].delivered;
		memory += rows[i].seen.memory;
	}
	n = snprintf(text, size, "%zu wheel%s, %s pending, %s due, %s armed/s, %s events/s, %s",
		     nr_rows, nr_rows == 1 ? "" : "s", commas(pending), commas(due),
		     commas(armed), commas(delivered), bytes_text(memory));
	if (now.hidden && n < (int)size)
		snprintf(text + n, size - n, "; %u processes hidden, run as root to see them",
			 now.hidden);
}

/* --- tables ------------------------------------------------------------- */

static const struct column columns[] = {
	{ "PID", "pid", SHOW_NUMBER, 7 },
	{ "FD", "fd", SHOW_NUMBER, 3 },
	{ "COMMAND", "command", SHOW_TEXT, 15 },
	{ "PENDING", "pending", SHOW_COUNT, 9 },
	{ "DUE", "due", SHOW_COUNT, 7 },
	{ "ARMED/s", "armed_per_second", SHOW_COUNT, 9 },
	{ "EVENTS/s", "events_per_second", SHOW_COUNT, 9 },
	{ "MEMORY", "memory", SHOW_BYTES, 8 },
	{ "CLOCK", "clock", SHOW_TEXT, 9 },
	{ "OWNERS", "owners", SHOW_NUMBER, 0 },
	{ NULL, "armed", SHOW_NUMBER, 0 },
	{ NULL, "delivered", SHOW_NUMBER, 0 },
};

#define FOR_PEOPLE	10

static void print_table(void)
{
	char text[256];
	size_t i;

	summary(text, sizeof(text));
	if (!opt.given[OPT_NO_HEADER])
		out_line("%s", text);
	json_open(NULL, '{');
	out_number(NULL, "time_ns", SHOW_NUMBER, wall_ns());
	out_number(NULL, "hidden_processes", SHOW_NUMBER, now.hidden);
	json_open("wheels", '[');
	table_begin(columns, opt.given[OPT_JSON] ? ARRAY_SIZE(columns) : FOR_PEOPLE);
	for (i = 0; i < nr_rows; i++) {
		const struct row *r = &rows[i];
		const union value values[] = {
			{ .number = r->seen.pid },
			{ .number = r->seen.fd },
			{ .text = r->seen.command },
			{ .number = r->seen.pending },
			{ .number = r->seen.due },
			{ .number = r->armed },
			{ .number = r->delivered },
			{ .number = r->seen.memory },
			{ .text = r->seen.clock },
			{ .number = r->seen.owners },
			{ .number = r->seen.armed },
			{ .number = r->seen.delivered },
		};

		table_row(values);
	}
	table_flush();
	json_close();
	json_close();
	out_check();
}

static void batch(__u64 interval)
{
	__u64 left = opt.given[OPT_COUNT] && opt.number[OPT_COUNT] ? opt.number[OPT_COUNT] : ~0ULL;
	__u64 next = now_ns();

	/* Read once before the first table, to have values for comparison. */
	look();
	while (left--) {
		next += interval;
		sleep_until(next);
		look();
		print_table();
		if (left)
			out_line("%s", "");
	}
}

/* --- the live screen ---------------------------------------------------- */

/* The selected wheel, independent of its place in the order. */
static int selected_pid, selected_fd;

static size_t selected(void)
{
	size_t i;

	for (i = 0; i < nr_rows; i++) {
		if (rows[i].seen.pid == selected_pid && rows[i].seen.fd == selected_fd)
			return i;
	}
	return 0;
}

static void select_row(size_t i)
{
	if (i < nr_rows) {
		selected_pid = rows[i].seen.pid;
		selected_fd = rows[i].seen.fd;
	}
}

/* The next line of the screen. */
static int next_line;

/* Draw a line, truncated to the width. Below the last row, draw nothing. */
static void __printf(2, 3) draw_line(attr_t style, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	mvaddnstr(next_line, 0, printable(text), COLS);
	if (style == A_BOLD && !terminal_bold())
		style = A_NORMAL;
	mvchgat(next_line++, 0, -1, style, 0, NULL);
}

static void draw_bar(const char *text)
{
	draw_line(A_NORMAL, "  %s", text);
}

/* Draw the lateness, if this program may copy the descriptor to ask the wheel. */
static void draw_lateness(const struct seen *seen)
{
	struct timerwheel_stats stats = { .size = sizeof(stats) };
	int fd, err;

	draw_line(A_NORMAL, "%s", "");
	draw_line(A_BOLD, "lateness of the timers of %s (%d), descriptor %d", seen->command,
		  seen->pid, seen->fd);
	fd = thread_getfd(seen->pid, seen->tid, seen->fd);
	if (fd < 0) {
		draw_line(A_NORMAL, errno == EOPNOTSUPP ?
			  "  cannot inspect it: its main thread has ended (this needs Linux 6.9)" :
			  "  not allowed to inspect it: run as root");
		return;
	}
	err = ioctl(fd, TIMERWHEEL_IOC_STATS, &stats);
	close(fd);
	if (!err && (stats.sockets || stats.aborted))
		draw_line(A_NORMAL, "  connections: %s watched, %s aborted", commas(stats.sockets),
			  commas(stats.aborted));
	if (!err)
		histogram(stats.lateness, COLS, draw_bar);
}

static void draw(void)
{
	size_t i, chosen = selected(), first = 0;
	char text[256];
	int most;

	erase();
	next_line = 0;
	summary(text, sizeof(text));
	draw_line(A_NORMAL, "%s", text);
	draw_line(A_NORMAL, "by %s%s; keys: up, down, s order, r reverse, q end",
		  orders[order].name, reverse ? ", reversed" : "");
	draw_line(A_NORMAL, "%s", "");
	/* 80 columns show everything up to the memory. */
	draw_line(A_BOLD, "%7s %3s %-15s %10s %10s %9s %10s %8s  %-9s %6s", "PID", "FD", "COMMAND",
		  "PENDING", "DUE", "ARMED/s", "EVENTS/s", "MEMORY", "CLOCK", "OWNERS");
	/* Use at most half of the screen for the table, and keep the selected wheel visible. */
	most = LINES / 2 - 4 > 3 ? LINES / 2 - 4 : 3;
	if ((int)chosen >= most)
		first = chosen - most + 1;
	for (i = first; i < nr_rows && (int)(i - first) < most; i++) {
		const struct row *r = &rows[i];

		draw_line(i == chosen ? A_REVERSE : A_NORMAL,
			  "%7d %3d %-15s %10s %10s %9s %10s %8s  %-9s %6u", r->seen.pid,
			  r->seen.fd, r->seen.command, commas(r->seen.pending),
			  commas(r->seen.due), commas(r->armed), commas(r->delivered),
			  bytes_text(r->seen.memory), r->seen.clock, r->seen.owners);
	}
	if (nr_rows)
		draw_lateness(&rows[chosen].seen);
	else
		draw_line(A_NORMAL, "  no wheel is open");
	refresh();
}

/* Wait for a key until @end; ERR: none. Returns q if the terminal has gone. */
static int pressed(__u64 end)
{
	struct pollfd poller = { .fd = STDIN_FILENO, .events = POLLIN };
	__u64 time = now_ns();
	int n, key;

	n = poll(&poller, 1,
		 time < end ? (end - time + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC : 0);
	/* Call it even after a signal, which may have changed the size. */
	key = getch();
	return n > 0 && key == ERR ? 'q' : key;
}

static void handle(int key)
{
	size_t chosen = selected();

	switch (key) {
	case KEY_UP:
	case 'k':
		select_row(chosen ? chosen - 1 : 0);
		break;
	case KEY_DOWN:
	case 'j':
		select_row(chosen + 1);
		break;
	case 's':
		order = (order + 1) % ARRAY_SIZE(orders);
		qsort(rows, nr_rows, sizeof(*rows), compare);
		break;
	case 'r':
		reverse = !reverse;
		qsort(rows, nr_rows, sizeof(*rows), compare);
		break;
	default:
		break;
	}
}

static void end_screen(void)
{
	endwin();
}

static void begin_screen(void)
{
	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		usage("the output is not a terminal: use --batch");
	if (!terminal_text("cup") || !newterm(NULL, stdout, stdin))
		usage("TERM does not name a known terminal with a screen: use --batch");
	atexit(end_screen);
	cbreak();
	noecho();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	curs_set(0);
}

static void live(__u64 interval)
{
	__u64 left = opt.given[OPT_COUNT] && opt.number[OPT_COUNT] ? opt.number[OPT_COUNT] : ~0ULL;
	int key = ERR;

	begin_screen();
	while (left-- && key != 'q') {
		__u64 end = now_ns() + interval;

		look();
		if (!selected_pid)
			select_row(0);
		do {
			draw();
			key = pressed(end);
			handle(key);
		} while (key != 'q' && now_ns() < end);
	}
	end_screen();
}

int command_top(int argc, char **argv)
{
	__u64 interval = opt.given[OPT_INTERVAL] ? opt.number[OPT_INTERVAL] : NSEC_PER_SEC;

	no_arguments(argc, argv);
	choose_order();
	if (opt.given[OPT_JSON] && !opt.given[OPT_BATCH])
		usage("--json needs --batch");
	if (!scan_loaded())
		die("the module is not loaded, so there are no wheels; %s", module_advice());
	if (opt.given[OPT_BATCH])
		batch(interval);
	else
		live(interval);
	return STATUS_DONE;
}
