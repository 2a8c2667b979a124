/* SPDX-License-Identifier: GPL-2.0 */
/*
 * timerwheel: wheels on the command line, for scripts and interactive use.
 *
 *   main.c       the table of commands
 *   options.c    the table of options; numbers
 *   help.c       help and --help, from these tables
 *   target.c     selection of the wheel: --fd, --pid, or a new one
 *   scan.c       the wheels of other processes, from /proc
 *   output.c     tables for people, JSON for programs
 *   hold.c       holding signals back between taking and writing
 *   putback.c    putting back timers and events that could not be written
 *   error.c      texts for errors
 *   when.c       points in time in human notation
 *   lines.c      input, line by line
 *   look.c       info, stat
 *   list.c       list; rows of timers
 *   change.c     add, move, remove
 *   drain.c      drain
 *   events.c     rows of events
 *   wait.c       wait; exec.c runs a command for each event
 *   monitor.c    monitor
 *   savefile.c   the format of saved wheels
 *   save.c       save
 *   restore.c    restore
 *   top.c        top
 *   terminal.c   capabilities of the terminal
 *   program.c    guard and proxy: run timerwheel-guard, timerwheel-proxy
 *   measure.c    bench
 */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <sys/types.h>
#include <linux/timerwheel.h>

#include "timerwheel.h"
#include "util.h"

/** enum status - exit status of the program */
enum status {
	/** @STATUS_DONE: everything was done */
	STATUS_DONE = 0,
	/** @STATUS_ERROR: nothing was done, or the command did not complete; see die() */
	STATUS_ERROR = 1,
	/** @STATUS_USAGE: the command line is invalid */
	STATUS_USAGE = 2,
	/** @STATUS_FAILED: some timers, or a command of --exec, failed; the others were done */
	STATUS_FAILED = 3,
	/** @STATUS_TIMEOUT: the time of --timeout expired first */
	STATUS_TIMEOUT = 4
};

/* --- options.c ---------------------------------------------------------- */

enum option_id {
	OPT_FD,
	OPT_PID,
	OPT_WHEEL_FD,
	OPT_JSON,
	OPT_NO_HEADER,
	OPT_WATCH,
	OPT_VALUE,
	OPT_PERIOD,
	OPT_LINGER,
	OPT_SLACK,
	OPT_EXCL,
	OPT_MATCH,
	OPT_FROM,
	OPT_QUIET,
	OPT_SORT,
	OPT_LIMIT,
	OPT_CLOSE,
	OPT_COUNT,
	OPT_TIMEOUT,
	OPT_UNTIL_EMPTY,
	OPT_EXEC,
	OPT_BUFFER,
	OPT_BATCH,
	OPT_INTERVAL,
	OPT_CHECK,
	OPT_OVERDUE,
	OPT_OVERDUE_MARK,
	OPT_ELAPSED,
	OPT_TIMERS,
	OPT_HELP,
	OPT_VERSION,
	OPT_NR
};

#define OPTION(id)	(1ULL << OPT_##id)
/* Options of all commands, of commands that use a wheel, and of commands that watch one. */
#define OPTIONS_ALL	(OPTION(JSON) | OPTION(HELP) | OPTION(VERSION))
#define OPTIONS_WHEEL	(OPTION(FD) | OPTION(PID) | OPTION(WHEEL_FD))

/**
 * struct options - the options on the command line
 * @given: the option is given
 * @number: its number, or its time in ns
 * @text: its text
 * @exec: the command after --exec, ended by NULL
 */
struct options {
	bool given[OPT_NR];
	__u64 number[OPT_NR];
	const char *text[OPT_NR];
	char **exec;
};

extern struct options opt;

/**
 * struct option_def - an option
 * @name: its long name
 * @letter: its short name; 0: none
 * @argument: name of its argument; NULL: it has none
 * @kind: kind of its argument; an optional argument is a time
 * @min: smallest number or time
 * @max: largest number; 0: no limit
 * @help: its description
 */
struct option_def {
	const char *name;
	char letter;
	const char *argument;
	enum option_kind { KIND_FLAG, KIND_NUMBER, KIND_TIME, KIND_OPTIONAL, KIND_TEXT } kind;
	__u64 min;
	__u64 max;
	const char *help;
};

extern const struct option_def option_defs[OPT_NR];

/**
 * options_parse - parse the options on a command line
 * @command: the command, for messages; NULL: parse the options before the command
 * @mask: the allowed options
 * @argc: number of words; the first one is ignored
 * @argv: the words; reordered
 *
 * Ends the program if the command line is invalid. Before the command it stops at the first word
 * that is not an option.
 *
 * Return: the index of the first word that is not an option.
 */
int options_parse(const char *command, __u64 mask, int argc, char **argv);

/**
 * usage - report what is wrong with the command line, and end the program
 * @fmt: as printf()
 */
noreturn void usage(const char *fmt, ...) __printf(1, 2);

/**
 * no_arguments - end the program if there are words that are not options
 * @argc: their number
 * @argv: the words
 */
void no_arguments(int argc, char **argv);

/**
 * parse_number - parse a whole number, decimal, or hexadecimal with 0x
 * @text: the complete text
 * @number: out: the number
 *
 * Return: true if it is a number below 2^64.
 */
bool parse_number(const char *text, __u64 *number);

/* --- main.c, help.c ----------------------------------------------------- */

/**
 * struct command - a command
 * @name: its name
 * @arguments: its arguments besides options
 * @summary: a line for the list of commands
 * @text: more, for its own help; NULL: another program prints the help
 * @options: its options, besides OPTIONS_ALL
 * @run: performs it, with the words that are not options; returns an enum status
 */
struct command {
	const char *name;
	const char *arguments;
	const char *summary;
	const char *text;
	__u64 options;
	int (*run)(int argc, char **argv);
};

extern const struct command commands[];

/**
 * command_by_name - find a command; ends the program if there is none
 * @name: its name
 *
 * Return: the command.
 */
const struct command *command_by_name(const char *name);

/**
 * help_all - print the list of commands
 */
void help_all(void);

/**
 * help_command - print the help of a command
 * @command: the command
 */
void help_command(const struct command *command);

/* The commands. */
int command_info(int argc, char **argv);
int command_stat(int argc, char **argv);
int command_top(int argc, char **argv);
int command_list(int argc, char **argv);
int command_add(int argc, char **argv);
int command_move(int argc, char **argv);
int command_remove(int argc, char **argv);
int command_drain(int argc, char **argv);
int command_wait(int argc, char **argv);
int command_monitor(int argc, char **argv);
int command_save(int argc, char **argv);
int command_restore(int argc, char **argv);
int command_program(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_help(int argc, char **argv);

/* --- target.c ----------------------------------------------------------- */

/**
 * target_fd - get a descriptor of the wheel that --fd or --pid selects
 *
 * Ends the program if there is no such wheel.
 *
 * Return: a new descriptor, closed on exec.
 */
int target_fd(void);

/**
 * target_open - open the wheel that --fd or --pid selects
 *
 * Ends the program if there is no such wheel.
 *
 * Return: the wheel.
 */
struct timerwheel *target_open(void);

/**
 * target_open_own - create a wheel
 * @config: its settings
 *
 * Uses the device, unless TIMERWHEEL_BACKEND selects another back end. Ends the program if it
 * fails.
 *
 * Return: the wheel.
 */
struct timerwheel *target_open_own(struct timerwheel_config *config);

/**
 * target_given - does the command line select a wheel?
 *
 * Return: true if --fd or --pid is given.
 */
bool target_given(void);

/**
 * target_info - INFO of a wheel; never fails
 * @wheel: the wheel
 * @info: out: filled in
 */
void target_info(struct timerwheel *wheel, struct timerwheel_info *info);

/**
 * clock_text - the name of a clock
 * @clock: enum timerwheel_clock
 *
 * Return: its name.
 */
const char *clock_text(__u32 clock);

/**
 * clock_ns - read a clock of this process
 * @clock: enum timerwheel_clock, not MANUAL
 *
 * Return: its time in ns.
 */
__u64 clock_ns(__u32 clock);

/**
 * wall_ns - the time of day
 *
 * Return: CLOCK_REALTIME in ns.
 */
__u64 wall_ns(void);

/**
 * wall_synchronized - is the time of day known to be correct?
 *
 * Return: true if a daemon such as chronyd has reported this to the kernel since the boot.
 */
bool wall_synchronized(void);

/**
 * boot_id - identify the origin of the monotonic and boottime clocks
 * @text: out: a word that differs after a reboot, and in another time namespace; empty if it is
 *	unknown
 * @size: size of @text
 */
void boot_id(char *text, size_t size);

/* --- scan.c ------------------------------------------------------------- */

/**
 * struct seen - a wheel of another process, from its fdinfo
 * @pid: a process that has it open; init only if there is no other
 * @tid: a living thread of that process
 * @fd: its descriptor in that process
 * @owners: number of processes that have it open, as far as is visible
 * @last: the last counted process
 * @command: name of the process @pid
 * @clock: the wheel's clock
 * @closed: it accepts no new timers
 * @tick: its tick in ns
 * @capacity: maximum number of timers
 * @pending: number of pending timers
 * @due: number of due timers
 * @armed: armings so far
 * @delivered: events delivered so far
 * @memory: its memory in bytes
 */
struct seen {
	int pid;
	int tid;
	int fd;
	unsigned int owners;
	int last;
	char command[16];
	char clock[12];
	bool closed;
	__u64 tick;
	__u64 capacity;
	__u64 pending;
	__u64 due;
	__u64 armed;
	__u64 delivered;
	__u64 memory;
};

/**
 * struct scan - wheels that were found
 * @wheels: each wheel once, unless the kernel does not show that two descriptors refer to the same
 *	wheel
 * @count: number of wheels
 * @room: number of wheels that fit
 * @hidden: number of processes that may not be examined
 */
struct scan {
	struct seen *wheels;
	size_t count;
	size_t room;
	unsigned int hidden;
};

/**
 * scan_process - find the wheels of a process
 * @scan: the wheels are added to it
 * @pid: the process
 *
 * Return: 0; -errno: the process cannot be examined.
 */
int scan_process(struct scan *scan, int pid);

/**
 * scan_all - find the wheels of all processes
 * @scan: emptied and filled in
 */
void scan_all(struct scan *scan);

/**
 * scan_loaded - is the module loaded?
 *
 * Return: true if the kernel has the device.
 */
bool scan_loaded(void);

/* --- output.c ----------------------------------------------------------- */

/** enum kind - format of a value */
enum kind {
	/** @SHOW_NUMBER: plain: keys, values, descriptors */
	SHOW_NUMBER,
	/** @SHOW_COUNT: with commas */
	SHOW_COUNT,
	/** @SHOW_SPAN: ns, as a duration */
	SHOW_SPAN,
	/** @SHOW_PERIOD: as SHOW_SPAN, but 0 means none */
	SHOW_PERIOD,
	/** @SHOW_BYTES: in kB, MB... */
	SHOW_BYTES,
	/** @SHOW_TEXT: text, left-aligned */
	SHOW_TEXT,
	/** @SHOW_BOOL: yes or no */
	SHOW_BOOL
};

/** union value - a value; its enum kind selects the member */
union value {
	__u64 number;
	__s64 span;
	const char *text;
	bool yes;
};

/**
 * struct column - a column of a table
 * @title: its title
 * @name: the name of its member in JSON; NULL: not in JSON
 * @kind: format of its values
 * @width: minimum width
 */
struct column {
	const char *title;
	const char *name;
	enum kind kind;
	int width;
};

/**
 * out_number - print a named value on a separate line, or as a member of the JSON object
 * @title: its name in text; NULL: only in JSON
 * @name: its name in JSON; NULL: only in text
 * @kind: its format
 * @number: the value
 */
void out_number(const char *title, const char *name, enum kind kind, __u64 number);

/**
 * out_text - print a named text, like out_number()
 * @title: its name in text; NULL: only in JSON
 * @name: its name in JSON; NULL: only in text
 * @text: the value
 */
void out_text(const char *title, const char *name, const char *text);

/**
 * out_line - print a line of text; nothing in JSON
 * @fmt: as printf()
 */
void out_line(const char *fmt, ...) __printf(1, 2);

/**
 * json_open - begin an object or an array
 * @name: its name in the enclosing object; NULL: none
 * @bracket: '{' or '['
 *
 * Does nothing without --json, like the other json functions.
 */
void json_open(const char *name, char bracket);

/**
 * json_close - end the innermost object or array
 */
void json_close(void);

/**
 * table_begin - begin a table
 * @columns: its columns
 * @count: number of columns
 *
 * In JSON the rows are objects: in the open array, or otherwise each on a separate line.
 */
void table_begin(const struct column *columns, int count);

/**
 * table_row - add a row
 * @values: one for each column
 *
 * In text, the row is printed later: see table_flush().
 */
void table_row(const union value *values);

/**
 * table_flush - print the titles, if they were not printed yet, and the waiting rows
 *
 * Rows wait until the width of the columns is known. This function also writes all output out.
 */
void table_flush(void);

/** PAGE - maximum number of timers or events that are taken and printed at a time */
#define PAGE	4096

/**
 * page_begin - collect the output from now on
 *
 * Use it for timers and events that are taken from a wheel: page_end() returns how many of them
 * have reached the file.
 */
void page_begin(void);

/**
 * page_item - mark the end of an item in the output; tables do this for each row
 */
void page_item(void);

/**
 * page_end - write the collected output
 *
 * A pending signal (see hold_begin()) ends a write that blocks. A regular file is synced; if that
 * fails, none of the page counts as written.
 *
 * Return: number of items that were written completely.
 */
size_t page_end(void);

/**
 * page_error - the reason why the last page was not written completely
 *
 * Return: a text; NULL: it was written completely.
 */
const char *page_error(void);

/**
 * out_heading - print a line of text, bold on a terminal
 * @text: the line
 */
void out_heading(const char *text);

/**
 * bytes_text - format a number of bytes
 * @bytes: the number
 *
 * Return: "12.3 kB", in a static buffer, enough for one printf.
 */
const char *bytes_text(__u64 bytes);

/**
 * printable - remove terminal control sequences from a text that a process or a file has chosen
 * @text: the text; all characters except printable ASCII become question marks
 *
 * Return: the same text.
 */
char *printable(char *text);

/**
 * histogram - draw the lateness of a wheel's timers
 * @lateness: as in struct timerwheel_stats
 * @width: width of the screen
 * @print: called with each line
 */
void histogram(const __u64 *lateness, int width, void (*print)(const char *line));

/* --- hold.c ------------------------------------------------------------- */

/**
 * hold_begin - hold back signals that would end the program
 */
void hold_begin(void);

/**
 * hold_end - stop holding signals back; a signal that was held back ends the program now
 */
void hold_end(void);

/**
 * hold_write - from now on, treat a write to a pipe without readers or to a file that is too large
 * as an
 *	error, which does not end the program
 */
void hold_write(void);

/**
 * hold_fd - get a descriptor to poll in addition to others
 *
 * Return: a descriptor that is readable while a signal is held back; -1 outside of hold_begin() and
 * hold_end().
 */
int hold_fd(void);

/* --- putback.c ---------------------------------------------------------- */

/**
 * put_back - arm timers that were taken out, as before
 * @wheel: the wheel
 * @entries: the timers
 * @count: number of timers
 *
 * Prints a timer that cannot be armed on standard error. A timer that watched a connection cannot
 * be armed, because that needs its socket. A parked timer is parked again.
 *
 * Return: number of timers that are in the wheel.
 */
size_t put_back(struct timerwheel *wheel, const struct timerwheel_entry *entries, size_t count);

/**
 * put_back_events - arm the timers of events that were taken, which are due immediately
 * @wheel: the wheel
 * @events: the events
 * @count: number of events
 *
 * Return: number of timers that are in the wheel.
 */
size_t put_back_events(struct timerwheel *wheel, const struct timerwheel_event *events,
		       size_t count);

/* --- error.c ------------------------------------------------------------ */

/**
 * error_text - describe an error and what to do about it
 * @error: as the library returns it
 *
 * Return: the library's text, or another text if that one names functions or constants.
 */
const char *error_text(int error);

/* --- when.c, lines.c ---------------------------------------------------- */

/**
 * when_parse - parse a point in time
 * @text: a duration from now; or @ and a time of the wheel's clock, or a date and time of day
 * @info: INFO of the wheel
 * @deadline: out: the time in ns
 * @flags: out: TIMERWHEEL_ABS is set if the time is absolute
 *
 * Return: NULL, or what is wrong with it.
 */
const char *when_parse(const char *text, const struct timerwheel_info *info, __u64 *deadline,
		       __u32 *flags);

/**
 * struct line_source - input, line by line
 * @name: name of the file
 * @opened: NULL, or called with a descriptor of the file, unless it is standard input
 * @line: called for each line, without its end; it may modify the line
 * @pause: called when the next line may take a long time, and at the end
 */
struct line_source {
	const char *name;
	void (*opened)(int fd);
	void (*line)(char *text, unsigned int number);
	void (*pause)(void);
};

/**
 * lines_read - read the lines of a file
 * @source: the file and the functions; the name - means standard input
 */
void lines_read(const struct line_source *source);

/* --- look.c ------------------------------------------------------------- */

/**
 * watch - show output once, or with --watch repeatedly until the user ends it, in place on a
 * terminal
 * @wheel: the wheel
 * @show: prints the output
 */
void watch(struct timerwheel *wheel, void (*show)(struct timerwheel *wheel));

/* --- list.c: rows of timers --------------------------------------------- */

/**
 * timers_begin - begin rows of timers
 * @array: their name in JSON
 */
void timers_begin(const char *array);

/**
 * timers_row - add a timer
 * @entry: the timer
 */
void timers_row(const struct timerwheel_entry *entry);

/**
 * timers_end - end the rows of timers
 */
void timers_end(void);

/**
 * timers_all - LIST from the first timer to the last
 * @wheel: the wheel
 * @count: out: number of timers
 *
 * Return: an array of timers, which the caller frees.
 */
struct timerwheel_entry *timers_all(struct timerwheel *wheel, size_t *count);

/* --- events.c ----------------------------------------------------------- */

/**
 * events_begin - begin rows of events
 */
void events_begin(void);

/**
 * event_text - name of what has happened
 * @event: an event of a timer
 *
 * Return: "expired", or another word for a timer that watches a connection.
 */
const char *event_text(const struct timerwheel_event *event);

/**
 * events_rows - add events
 * @events: the events
 * @count: number of events
 *
 * An event that belongs to no timer (the clock was set, or events are missing) is a line between
 * the rows, or in JSON an object with other members.
 *
 * Return: number of events of timers.
 */
size_t events_rows(const struct timerwheel_event *events, size_t count);

/**
 * struct events_limit - when to stop: --count and --timeout
 * @left: number of events of timers until the end
 * @end: end of the time, as now_ns()
 * @forever: there is no time limit
 */
struct events_limit {
	__u64 left;
	__u64 end;
	bool forever;
};

/**
 * events_limit - get the limits of the command line
 * @limit: out: filled in
 * @count: default number of events
 */
void events_limit(struct events_limit *limit, __u64 count);

/**
 * events_timeout - the time to sleep now
 * @limit: the limits
 *
 * Return: ms, rounded up; negative: forever; 0: the time has expired.
 */
int events_timeout(const struct events_limit *limit);

/* --- exec.c ------------------------------------------------------------- */

/**
 * exec_event - start the command of --exec for an event
 * @event: passed in its environment
 * @pid: out: its process
 *
 * Return: 0 or an errno: it was not started.
 */
int exec_event(const struct timerwheel_event *event, pid_t *pid);

/**
 * exec_wait - wait until the command has ended
 * @pid: its process
 *
 * Return: true if its exit status is 0.
 */
bool exec_wait(pid_t pid);

/* --- savefile.c --------------------------------------------------------- */

/**
 * struct saved - a wheel in a file
 * @time: time of the save, CLOCK_REALTIME in ns
 * @clock: its clock
 * @slots: its slots per level
 * @tick: its tick
 * @capacity: its capacity
 * @slack: its default slack
 * @flags: its TIMERWHEEL_SETUP_* flags
 * @boot: result of boot_id(); empty if the clock does not count from the boot, or if the file does
 *	not have it
 * @now: with @boot: clock_ns() of its clock at the save
 * @synchronized: with @boot: wall_synchronized() at the save
 * @timers: its timers; the fields key, value, left, period and slack are saved
 * @count: number of timers
 */
struct saved {
	__u64 time;
	__u32 clock;
	__u32 slots;
	__u64 tick;
	__u64 capacity;
	__u64 slack;
	__u32 flags;
	char boot[80];
	__u64 now;
	bool synchronized;
	struct timerwheel_entry *timers;
	size_t count;
};

/**
 * savefile_write - write a saved wheel
 * @name: the file; - means standard output. It is replaced completely or not at all.
 * @saved: the wheel
 */
void savefile_write(const char *name, const struct saved *saved);

/**
 * savefile_read - read a saved wheel; ends the program if the file is invalid
 * @name: the file; - means standard input
 * @saved: out: filled in
 */
void savefile_read(const char *name, struct saved *saved);

/* --- terminal.c --------------------------------------------------------- */

/**
 * terminal_text - get the text for a capability of the terminal
 * @capability: its name, as in terminfo(5)
 *
 * Return: the text to print; NULL: the output is not a terminal, or lacks the capability.
 */
const char *terminal_text(const char *capability);

/**
 * terminal_bold - is bold text allowed?
 *
 * Return: false if NO_COLOR is set.
 */
bool terminal_bold(void);

#endif /* CLI_H */
