/* SPDX-License-Identifier: GPL-2.0 */
/*
 * timerwheel: what scripts and people do with wheels on the command line.
 *
 *   main.c       the table of commands
 *   options.c    the table of options; numbers
 *   help.c       help and --help, out of these tables
 *   target.c     which wheel is meant: --fd, --pid, or one of its own
 *   scan.c       the wheels of other processes, as /proc shows them
 *   output.c     tables for people, JSON for programs
 *   hold.c       no signal between taking and writing
 *   putback.c    what could not be written goes back
 *   error.c      what errors mean here
 *   when.c       points in time, as people write them
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
 *   terminal.c   what the terminal can do
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

/** enum status - how the program ends */
enum status {
	/** @STATUS_DONE: all was done */
	STATUS_DONE = 0,
	/** @STATUS_ERROR: nothing could be done, or not to the end; die() ends with it */
	STATUS_ERROR = 1,
	/** @STATUS_USAGE: the command line is not understood */
	STATUS_USAGE = 2,
	/** @STATUS_FAILED: some of it failed: timers, a command of --exec; the others are done */
	STATUS_FAILED = 3,
	/** @STATUS_TIMEOUT: the time of --timeout was over first */
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
/* What each command takes, those that work on a wheel take, and those that watch one. */
#define OPTIONS_ALL	(OPTION(JSON) | OPTION(HELP) | OPTION(VERSION))
#define OPTIONS_WHEEL	(OPTION(FD) | OPTION(PID) | OPTION(WHEEL_FD))

/**
 * struct options - what the command line says
 * @given: is the option there?
 * @number: its number, or its time in ns
 * @text: its text
 * @exec: the command behind --exec, ended by NULL
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
 * @letter: its short name, 0: none
 * @argument: what its argument is called, NULL: it has none
 * @kind: what its argument is; an optional one is a time
 * @min: smallest number or time
 * @max: largest number, 0: there is no limit
 * @help: what it does
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
 * options_parse - take the options out of a command line
 * @command: whose they are, for messages; NULL: those before the command
 * @mask: those that are allowed
 * @argc: how many words, the first one is not looked at
 * @argv: the words; reordered
 *
 * Ends the program when something is not understood. Before the command it stops at the first
 * word that is no option.
 *
 * Return: the index of the first word that is no option.
 */
int options_parse(const char *command, __u64 mask, int argc, char **argv);

/**
 * usage - say what is wrong with the command line, and end the program
 * @fmt: as printf()
 */
noreturn void usage(const char *fmt, ...) __printf(1, 2);

/**
 * no_arguments - end the program if there are words that are no options
 * @argc: how many
 * @argv: they
 */
void no_arguments(int argc, char **argv);

/**
 * parse_number - a whole number, decimal or 0x and hexadecimal
 * @text: all of it
 * @number: is set
 *
 * Return: is it one, below 2^64?
 */
bool parse_number(const char *text, __u64 *number);

/* --- main.c, help.c ----------------------------------------------------- */

/**
 * struct command - one of the commands
 * @name: its name
 * @arguments: what it takes besides options
 * @summary: a line for the list of commands
 * @text: more, for its own help; NULL: another program has that
 * @options: which it takes, besides OPTIONS_ALL
 * @run: does it, with the words that are no options; returns an enum status
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
 * help_all - the list of commands
 */
void help_all(void);

/**
 * help_command - what one of them does
 * @command: which
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
 * target_fd - a descriptor of the wheel that --fd or --pid names
 *
 * Ends the program when there is none.
 *
 * Return: the descriptor: a new one, closed on exec.
 */
int target_fd(void);

/**
 * target_open - the wheel that --fd or --pid names
 *
 * Ends the program when there is none.
 *
 * Return: the wheel.
 */
struct timerwheel *target_open(void);

/**
 * target_open_own - a new wheel
 * @config: how it is to be
 *
 * It is on the device, unless TIMERWHEEL_BACKEND asks for something else. Ends the program when
 * that does not go.
 *
 * Return: the wheel.
 */
struct timerwheel *target_open_own(struct timerwheel_config *config);

/**
 * target_given - does the command line name a wheel?
 *
 * Return: whether --fd or --pid is there.
 */
bool target_given(void);

/**
 * target_info - INFO of a wheel; never fails
 * @wheel: the wheel
 * @info: is filled in
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
 * wall_synchronized - is the time of day known to be right?
 *
 * Return: whether a daemon such as chronyd has told the kernel so since the machine was booted.
 */
bool wall_synchronized(void);

/**
 * boot_id - what the monotonic and boottime clocks count from
 * @text: is set to a word that is another one after a reboot, and in another time namespace; to an
 *	empty text if that is not known
 * @size: its size
 */
void boot_id(char *text, size_t size);

/* --- scan.c ------------------------------------------------------------- */

/**
 * struct seen - a wheel of another process, as its fdinfo tells
 * @pid: a process that has it open; init only if there is no other
 * @tid: a living thread of it
 * @fd: its descriptor there
 * @owners: how many processes have it open, as far as can be seen
 * @last: the last one that was counted
 * @command: the name of that process
 * @clock: the wheel's clock
 * @closed: it takes no new timers
 * @tick: its tick in ns
 * @capacity: most timers in it
 * @pending: timers pending
 * @due: timers due
 * @armed: armings so far
 * @delivered: events delivered so far
 * @memory: bytes it occupies
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
 * @wheels: each of them once, unless the kernel does not tell that two descriptors are one
 * @count: how many
 * @room: for how many there is room
 * @hidden: processes that one may not look at
 */
struct scan {
	struct seen *wheels;
	size_t count;
	size_t room;
	unsigned int hidden;
};

/**
 * scan_process - the wheels of a process
 * @scan: they are added to it
 * @pid: the process
 *
 * Return: 0; -errno: it cannot be looked at.
 */
int scan_process(struct scan *scan, int pid);

/**
 * scan_all - the wheels of all processes
 * @scan: is emptied and filled in
 */
void scan_all(struct scan *scan);

/**
 * scan_loaded - is the module loaded?
 *
 * Return: whether the kernel knows the device.
 */
bool scan_loaded(void);

/* --- output.c ----------------------------------------------------------- */

/** enum kind - how a value is shown */
enum kind {
	/** @SHOW_NUMBER: as it is: keys, values, descriptors */
	SHOW_NUMBER,
	/** @SHOW_COUNT: with commas */
	SHOW_COUNT,
	/** @SHOW_SPAN: ns, as a duration */
	SHOW_SPAN,
	/** @SHOW_PERIOD: the same, but 0 means that there is none */
	SHOW_PERIOD,
	/** @SHOW_BYTES: in kB, MB... */
	SHOW_BYTES,
	/** @SHOW_TEXT: text, to the left */
	SHOW_TEXT,
	/** @SHOW_BOOL: yes or no */
	SHOW_BOOL
};

/** union value - a value; which member is meant its enum kind says */
union value {
	__u64 number;
	__s64 span;
	const char *text;
	bool yes;
};

/**
 * struct column - a column of a table
 * @title: its head
 * @name: the name of a member in JSON; NULL: it is not there
 * @kind: how its values are shown
 * @width: how wide it is at least
 */
struct column {
	const char *title;
	const char *name;
	enum kind kind;
	int width;
};

/**
 * out_number - a named value on a line of its own, or a member of the JSON object
 * @title: its name for people; NULL: only in JSON
 * @name: its name in JSON; NULL: only for people
 * @kind: how it is shown
 * @number: the value
 */
void out_number(const char *title, const char *name, enum kind kind, __u64 number);

/**
 * out_text - the same for a text
 * @title: its name for people; NULL: only in JSON
 * @name: its name in JSON; NULL: only for people
 * @text: the value
 */
void out_text(const char *title, const char *name, const char *text);

/**
 * out_line - words for people; nothing in JSON
 * @fmt: as printf()
 */
void out_line(const char *fmt, ...) __printf(1, 2);

/**
 * json_open - begin an object or an array
 * @name: its name in the object around it, NULL: there is none
 * @bracket: '{' or '['
 *
 * Nothing happens without --json; so with the other functions.
 */
void json_open(const char *name, char bracket);

/**
 * json_close - end the last one that was begun
 */
void json_close(void);

/**
 * table_begin - from now on rows of this table come
 * @columns: its columns
 * @count: how many
 *
 * For JSON the rows are objects: in the array that is open, or else each on a line of its own.
 */
void table_begin(const struct column *columns, int count);

/**
 * table_row - a row
 * @values: one for each column
 *
 * For people it is printed later: see table_flush().
 */
void table_row(const union value *values);

/**
 * table_flush - print the head, if it was not yet, and the rows that are waiting
 *
 * Some rows wait, so that the width of columns can be told. All output is written out.
 */
void table_flush(void);

/** PAGE - the most timers or events that are taken and printed at a time */
#define PAGE	4096

/**
 * page_begin - collect what is printed from now on
 *
 * For what is taken from a wheel: page_end() tells what of it has reached the file.
 */
void page_begin(void);

/**
 * page_item - what was printed so far belongs to this item or those before; done for rows of tables
 */
void page_item(void);

/**
 * page_end - write what was collected
 *
 * A pending signal (see hold_begin()) ends a write that blocks. A regular file is synced; if that
 * fails, none of the page counts as written.
 *
 * Return: how many items are written out as a whole.
 */
size_t page_end(void);

/**
 * page_error - why the last page was not written as a whole
 *
 * Return: a text; NULL: it was.
 */
const char *page_error(void);

/**
 * out_heading - a line for people, bold on a terminal
 * @text: the line
 */
void out_heading(const char *text);

/**
 * bytes_text - a number of bytes
 * @bytes: how many
 *
 * Return: "12.3 kB", in a static buffer fit for one printf.
 */
const char *bytes_text(__u64 bytes);

/**
 * printable - take out of a text what a terminal might obey: processes and files choose it
 * @text: the text; all but printable characters of ASCII become question marks
 *
 * Return: the same text.
 */
char *printable(char *text);

/**
 * histogram - the lateness of a wheel's timers
 * @lateness: as in struct timerwheel_stats
 * @width: of the screen
 * @print: is given each line
 */
void histogram(const __u64 *lateness, int width, void (*print)(const char *line));

/* --- hold.c ------------------------------------------------------------- */

/**
 * hold_begin - hold back signals that would end the program
 */
void hold_begin(void);

/**
 * hold_end - signals end the program again; one that was held back does so now
 */
void hold_end(void);

/**
 * hold_write - from now on, writing to a pipe that nobody reads or to a file that has become too
 * large is an error, and does not end the program
 */
void hold_write(void);

/**
 * hold_fd - what to poll, besides what one waits for
 *
 * Return: a descriptor that is readable while a signal is held back; -1 outside of hold_begin()
 * and hold_end().
 */
int hold_fd(void);

/* --- putback.c ---------------------------------------------------------- */

/**
 * put_back - arm timers that were taken out, as they were
 * @wheel: the wheel
 * @entries: they
 * @count: how many
 *
 * One that cannot be armed is printed on the standard error. For one that watched a connection its
 * socket would be needed. A parked one is parked again.
 *
 * Return: how many are in the wheel.
 */
size_t put_back(struct timerwheel *wheel, const struct timerwheel_entry *entries, size_t count);

/**
 * put_back_events - arm the timers of events that were taken: they are due at once
 * @wheel: the wheel
 * @events: they
 * @count: how many
 *
 * Return: how many timers are in the wheel.
 */
size_t put_back_events(struct timerwheel *wheel, const struct timerwheel_event *events,
		       size_t count);

/* --- error.c ------------------------------------------------------------ */

/**
 * error_text - what an error means here and what to do about it
 * @error: as the library returns it
 *
 * Return: the text; where the library's names functions or constants, another one.
 */
const char *error_text(int error);

/* --- when.c, lines.c ---------------------------------------------------- */

/**
 * when_parse - a point in time
 * @text: a duration from now; or @ and a time of the wheel's clock, or a date and time of day
 * @info: INFO of the wheel
 * @deadline: is set, in ns
 * @flags: TIMERWHEEL_ABS is set if it is an absolute one
 *
 * Return: NULL, or what is wrong with it.
 */
const char *when_parse(const char *text, const struct timerwheel_info *info, __u64 *deadline,
		       __u32 *flags);

/**
 * struct line_source - input, line by line
 * @name: of the file
 * @opened: NULL, or is called with a descriptor of the file, unless it is the standard input
 * @line: is called for each line, without what ends it; it may write to it
 * @pause: is called when the next line may be long in coming, and at the end
 */
struct line_source {
	const char *name;
	void (*opened)(int fd);
	void (*line)(char *text, unsigned int number);
	void (*pause)(void);
};

/**
 * lines_read - go through a file
 * @source: the file and what is to be done; its name may be -, the standard input
 */
void lines_read(const struct line_source *source);

/* --- look.c ------------------------------------------------------------- */

/**
 * watch - show something once, or with --watch until the user ends it: in place on a terminal
 * @wheel: the wheel
 * @show: what is to be done
 */
void watch(struct timerwheel *wheel, void (*show)(struct timerwheel *wheel));

/* --- list.c: rows of timers --------------------------------------------- */

/**
 * timers_begin - rows of timers come
 * @array: their name in JSON
 */
void timers_begin(const char *array);

/**
 * timers_row - a timer
 * @entry: it
 */
void timers_row(const struct timerwheel_entry *entry);

/**
 * timers_end - that was all
 */
void timers_end(void);

/**
 * timers_all - LIST from the first timer to the last
 * @wheel: the wheel
 * @count: is set: how many there are
 *
 * Return: an array of them, to be freed.
 */
struct timerwheel_entry *timers_all(struct timerwheel *wheel, size_t *count);

/* --- events.c ----------------------------------------------------------- */

/**
 * events_begin - rows of events come
 */
void events_begin(void);

/**
 * event_text - what has happened
 * @event: of a timer
 *
 * Return: a word: "expired", or of a timer that watches a connection another one.
 */
const char *event_text(const struct timerwheel_event *event);

/**
 * events_rows - some events
 * @events: they
 * @count: how many
 *
 * What is no timer's event, but tells that the clock was set or that events are missing, is a line
 * between the rows; in JSON an object with other members.
 *
 * Return: how many are those of timers.
 */
size_t events_rows(const struct timerwheel_event *events, size_t count);

/**
 * struct events_limit - when to stop: --count and --timeout
 * @left: events of timers that may still come
 * @end: now_ns() at which the time is over
 * @forever: there is no end
 */
struct events_limit {
	__u64 left;
	__u64 end;
	bool forever;
};

/**
 * events_limit - what the command line says
 * @limit: is set
 * @count: how many events, if it does not say
 */
void events_limit(struct events_limit *limit, __u64 count);

/**
 * events_timeout - how long to sleep now
 * @limit: as above
 *
 * Return: ms, rounded up; negative: for ever; 0: the time is over.
 */
int events_timeout(const struct events_limit *limit);

/* --- exec.c ------------------------------------------------------------- */

/**
 * exec_event - start the command of --exec for an event
 * @event: told in its environment
 * @pid: is set to its process
 *
 * Return: 0 or an errno: it was not started.
 */
int exec_event(const struct timerwheel_event *event, pid_t *pid);

/**
 * exec_wait - wait until the command has ended
 * @pid: its process
 *
 * Return: whether its exit status is 0.
 */
bool exec_wait(pid_t pid);

/* --- savefile.c --------------------------------------------------------- */

/**
 * struct saved - a wheel in a file
 * @time: when it was saved, CLOCK_REALTIME in ns
 * @clock: its clock
 * @slots: its slots per level
 * @tick: its tick
 * @capacity: its capacity
 * @slack: its default slack
 * @flags: TIMERWHEEL_SETUP_* that it was set up with
 * @boot: of the machine, as boot_id() says; empty if the clock does not count from it, or if the
 *	file does not say
 * @now: with @boot: what clock_ns() of its clock said when it was saved
 * @synchronized: with @boot: wall_synchronized() when it was saved
 * @timers: its timers; of these fields key, value, left, period, slack are saved
 * @count: how many
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
 * savefile_write - write one
 * @name: the file, - is the standard output; it is replaced whole or not at all
 * @saved: the wheel
 */
void savefile_write(const char *name, const struct saved *saved);

/**
 * savefile_read - read one; ends the program if something is wrong with it
 * @name: the file, - is the standard input
 * @saved: is set
 */
void savefile_read(const char *name, struct saved *saved);

/* --- terminal.c --------------------------------------------------------- */

/**
 * terminal_text - what makes the terminal do something
 * @capability: what, as in terminfo(5)
 *
 * Return: the text to print; NULL: the output is no terminal, or one that cannot do it.
 */
const char *terminal_text(const char *capability);

/**
 * terminal_bold - may there be bold text?
 *
 * Return: not if NO_COLOR is set.
 */
bool terminal_bold(void);

#endif /* CLI_H */
