// SPDX-License-Identifier: GPL-2.0
/*
 * add, move and remove: one timer from the command line, or many from a file in batches. Each
 * failure is reported on a line, and does not affect the others.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define BATCH	PAGE

/**
 * struct change - an operation on one timer, and its result
 * @add: all fields of ADD, MOVE and REMOVE; out: result
 * @left: REMOVE: the time that was left
 * @line: its line in the input; 0: it is from the command line
 */
struct change {
	struct timerwheel_add add;
	__s64 left;
	unsigned int line;
};

/**
 * struct op - one of the three operations
 * @name: its name
 * @when: a point in time follows the key
 * @words: the words that may follow
 * @submit: makes the call
 */
struct op {
	const char *name;
	bool when;
	const char *words;
	long (*submit)(struct change *changes, size_t count);
};

static struct timerwheel *wheel;
static struct timerwheel_info info;
static const struct op *op;

static struct change changes[BATCH];
static size_t nr_changes;
static __u64 results[TIMERWHEEL_WAS_PARKED + 1], nr_failed;

/* --- failures ----------------------------------------------------------- */

/* Failures are kept until the end, because JSON prints them there. */
struct failure {
	unsigned int line;
	bool has_key;
	__u64 key;
	const char *name;
	char *text;
};

static struct failure *failures;
static size_t failures_room;

static void fail(unsigned int line, const __u64 *key, int error, const char *fmt, ...)
{
	const char *from = opt.text[OPT_FROM];
	char text[256], where[320] = "";
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	nr_failed++;
	if (!opt.given[OPT_JSON]) {
		if (line)
			snprintf(where, sizeof(where), "%s:%u: ", strcmp(from, "-") ? from :
				 "stdin", line);
		if (key)
			say("%s%s %llu: %s", where, op->name, *key, text);
		else
			say("%s%s", where, text);
		return;
	}
	if (nr_failed > failures_room) {
		failures_room = 2 * nr_failed;
		failures = realloc(failures, failures_room * sizeof(*failures));
	}
	if (!failures)
		die("no memory for the list of failures");
	failures[nr_failed - 1] = (struct failure) {
		.line = line,
		.has_key = key,
		.key = key ? *key : 0,
		.name = error ? strerrorname_np(-error) : "syntax",
		.text = strdup(text),
	};
}

static void json_failures(void)
{
	size_t i;

	json_open("failures", '[');
	for (i = 0; i < nr_failed; i++) {
		json_open(NULL, '{');
		if (failures[i].line)
			out_number(NULL, "line", SHOW_NUMBER, failures[i].line);
		if (failures[i].has_key)
			out_number(NULL, "key", SHOW_NUMBER, failures[i].key);
		out_text(NULL, "error", failures[i].name);
		out_text(NULL, "message", failures[i].text);
		json_close();
		free(failures[i].text);
	}
	json_close();
	free(failures);
}

/* The meaning of an element's result, and what to do about it. */
static const char *reason(int result)
{
	if (result == -EINVAL)
		return "a wheel with a deadline table has no periods";
	return error_text(result);
}

/* --- the calls ---------------------------------------------------------- */

static long submit_add(struct change *c, size_t count)
{
	static struct timerwheel_add adds[BATCH];
	long n;
	size_t i;

	for (i = 0; i < count; i++)
		adds[i] = c[i].add;
	n = timerwheel_add(wheel, adds, count);
	for (i = 0; n > 0 && i < (size_t)n; i++)
		c[i].add.result = adds[i].result;
	return n;
}

static long submit_move(struct change *c, size_t count)
{
	static struct timerwheel_move moves[BATCH];
	long n;
	size_t i;

	for (i = 0; i < count; i++)
		moves[i] = (struct timerwheel_move) {
			.key = c[i].add.key,
			.deadline = c[i].add.deadline,
			.match = c[i].add.match,
			.flags = c[i].add.flags,
		};
	n = timerwheel_move(wheel, moves, count);
	for (i = 0; n > 0 && i < (size_t)n; i++)
		c[i].add.result = moves[i].result;
	return n;
}

static long submit_remove(struct change *c, size_t count)
{
	static struct timerwheel_remove removes[BATCH];
	long n;
	size_t i;

	for (i = 0; i < count; i++)
		removes[i] = (struct timerwheel_remove) {
			.key = c[i].add.key,
			.match = c[i].add.match,
			.flags = c[i].add.flags,
		};
	n = timerwheel_remove(wheel, removes, count);
	for (i = 0; n > 0 && i < (size_t)n; i++) {
		c[i].add.result = removes[i].result;
		c[i].add.value = removes[i].value;
		c[i].left = removes[i].left;
	}
	return n;
}

static const struct column removed_columns[] = {
	{ "KEY", "key", SHOW_NUMBER, 0 },
	{ "VALUE", "value", SHOW_NUMBER, 0 },
	{ "STATE", "state", SHOW_TEXT, 7 },
	{ "LEFT", "left_ns", SHOW_SPAN, 6 },
};

static bool prints_removed(void)
{
	return !op->when && !opt.given[OPT_QUIET];
}

/* The timers of a call before the call, and the changes that are rows of the page. */
static struct timerwheel_entry before[BATCH];
static const struct change *removed[BATCH];
static size_t nr_rows;

static void look_before(size_t begin)
{
	size_t i, count = nr_changes - begin;
	long n;

	for (i = 0; i < count; i++)
		before[i] = (struct timerwheel_entry) { .key = changes[begin + i].add.key };
	do {
		n = timerwheel_get(wheel, before, count);
	} while (n == -EINTR);
	if (n < (long)count)
		die("GET: %s", error_text(n < 0 ? n : -EINTR));
	nr_rows = 0;
	page_begin();
}

/* Print the removed timers. Put back those that cannot be printed, and end the program. */
static void print_removed(const struct change *first)
{
	size_t out = page_end(), i, back = 0;

	if (!page_error())
		return;
	for (i = out; i < nr_rows; i++) {
		struct timerwheel_entry *entry = &before[removed[i] - first];
		const struct change *change = removed[i];

		/* The timer was armed since the GET. */
		if (entry->result < 0 || entry->result == TIMERWHEEL_WAS_PARKED)
			entry->deadline = timerwheel_now(wheel) + change->left;
		entry->value = change->add.value;
		entry->result = change->add.result;
		back += put_back(wheel, entry, 1);
	}
	say("cannot write the output: %s; %s of the removed timers were put back", page_error(),
	    commas(back));
	hold_end();
	exit(STATUS_ERROR);
}

static void print_row(const struct change *change)
{
	static const char *const states[] = {
		[TIMERWHEEL_WAS_PENDING] = "pending",
		[TIMERWHEEL_WAS_DUE] = "due",
		[TIMERWHEEL_WAS_PARKED] = "parked",
	};
	const union value values[] = {
		{ .number = change->add.key },
		{ .number = change->add.value },
		{ .text = states[change->add.result] },
		{ .span = change->left },
	};

	table_row(values);
}

static void done(const struct change *change)
{
	if (change->add.result < 0) {
		fail(change->line, &change->add.key, change->add.result, "%s",
		     reason(change->add.result));
		return;
	}
	results[change->add.result]++;
	if (!prints_removed())
		return;
	print_row(change);
	removed[nr_rows++] = change;
}

/* Submit the whole batch, in as many calls as needed. */
static void submit(void)
{
	size_t begin = 0;
	long n, i;

	while (begin < nr_changes) {
		hold_begin();
		if (prints_removed())
			look_before(begin);
		n = op->submit(changes + begin, nr_changes - begin);
		if (n < 0 && n != -EINTR)
			die("%s: %s", op->name, error_text(n));
		for (i = 0; i < n; i++)
			done(&changes[begin + i]);
		if (prints_removed())
			print_removed(changes + begin);
		hold_end();
		if (n > 0)
			begin += n;
	}
	nr_changes = 0;
}

/* --- parsing ------------------------------------------------------------ */

/* Options of the command line apply to all lines that do not override them. */
static struct timerwheel_add defaults(void)
{
	struct timerwheel_add add = {
		.value = opt.number[OPT_VALUE],
		.period = opt.number[opt.given[OPT_LINGER] ? OPT_LINGER : OPT_PERIOD],
		.slack = opt.number[OPT_SLACK],
		.match = opt.number[OPT_MATCH],
	};

	if (opt.number[OPT_LINGER])
		add.flags |= TIMERWHEEL_LINGER;
	if (opt.given[OPT_SLACK])
		add.flags |= TIMERWHEEL_SLACK;
	if (opt.given[OPT_EXCL])
		add.flags |= TIMERWHEEL_EXCL;
	if (opt.given[OPT_MATCH])
		add.flags |= TIMERWHEEL_MATCH;
	return add;
}

/* Parse value=V and similar words. Returns what is wrong with it, or NULL. */
static const char *parse_word(char *word, struct timerwheel_add *add)
{
	char *value = strchr(word, '=');
	char name[16];

	if (value)
		*value++ = '\0';
	snprintf(name, sizeof(name), " %s ", word);
	if (!strstr(op->words, name) || !value != !strcmp(word, "excl"))
		return "unknown word";
	if (!value) {
		add->flags |= TIMERWHEEL_EXCL;
	} else if (!strcmp(word, "value")) {
		if (!parse_number(value, &add->value))
			return "value= needs a number";
	} else if (!strcmp(word, "match")) {
		add->flags |= TIMERWHEEL_MATCH;
		if (!parse_number(value, &add->match))
			return "match= needs a number";
	} else if (!strcmp(word, "period")) {
		add->flags &= ~TIMERWHEEL_LINGER;
		if (!parse_duration(value, &add->period))
			return errno == ERANGE ? "period= is at most 292 years" :
			       "period= needs a time such as 250ms, 10s or 1h30m";
	} else if (!strcmp(word, "linger")) {
		if (!parse_duration(value, &add->period))
			return errno == ERANGE ? "linger= is at most 292 years" :
			       "linger= needs a time such as 250ms, 10s or 1h30m";
		/* Without a linger the flag must not be set. */
		add->flags &= ~TIMERWHEEL_LINGER;
		if (add->period)
			add->flags |= TIMERWHEEL_LINGER;
	} else {
		add->flags |= TIMERWHEEL_SLACK;
		if (!parse_duration(value, &add->slack))
			return errno == ERANGE ? "slack= is at most 292 years" :
			       "slack= needs a time such as 250ms, 10s or 1h30m";
	}
	return NULL;
}

/* Parse the words of a line or of the command line. Returns what is wrong with them, or NULL. */
static const char *parse_change(char **words, int count, struct timerwheel_add *add)
{
	const char *wrong = NULL;
	int i, first = op->when ? 2 : 1;

	*add = defaults();
	if (!parse_number(words[0], &add->key))
		return "not a key: 0 to 2^64 - 1, decimal or 0x and hexadecimal";
	if (count < first)
		return "a time must follow the key";
	if (op->when)
		wrong = when_parse(words[1], &info, &add->deadline, &add->flags);
	for (i = first; !wrong && i < count; i++)
		wrong = parse_word(words[i], add);
	if (!wrong && add->flags & TIMERWHEEL_EXCL && add->flags & TIMERWHEEL_MATCH)
		wrong = "excl and match= exclude each other";
	return wrong;
}

static void take_line(char *text, unsigned int number)
{
	struct change *change = &changes[nr_changes];
	char *words[12], copy[128], *state;
	const char *wrong;
	int count = 0;

	text[strcspn(text, "#")] = '\0';
	snprintf(copy, sizeof(copy), "%s", text);
	words[0] = strtok_r(text, " \t\r", &state);
	while (words[count] && ++count < (int)ARRAY_SIZE(words))
		words[count] = strtok_r(NULL, " \t\r", &state);
	if (!count)
		return;
	wrong = parse_change(words, count, &change->add);
	if (wrong) {
		fail(number, NULL, 0, "'%s': %s", printable(copy), wrong);
		return;
	}
	change->line = number;
	if (++nr_changes == BATCH)
		submit();
}

static void take_file(void)
{
	static const struct line_source source = { .line = take_line, .pause = submit };
	struct line_source file = source;

	file.name = opt.text[OPT_FROM];
	lines_read(&file);
}

static void take_arguments(int argc, char **argv)
{
	int each = op->when ? 2 : 1, i;
	const char *wrong;

	for (i = 0; i < argc; i += each) {
		wrong = parse_change(argv + i, each, &changes[nr_changes].add);
		if (wrong)
			usage("'%s%s%s': %s", argv[i], op->when ? " " : "",
			      op->when ? argv[i + 1] : "", wrong);
		if (++nr_changes == BATCH)
			submit();
	}
	submit();
}

static int change_timers(const struct op *what, int argc, char **argv)
{
	__u64 all = 0;
	size_t i;

	op = what;
	if (opt.given[OPT_FROM] && argc)
		usage("unexpected argument '%s': with --from all timers are in the file", argv[0]);
	if (!opt.given[OPT_FROM] && !argc)
		usage("no timer given: use %s, or --from FILE", op->when ? "KEY WHEN" : "KEY");
	if (!opt.given[OPT_FROM] && op->when && argc != 2)
		usage("KEY WHEN expected, not %d words; use --from - for many timers", argc);
	if (opt.given[OPT_EXCL] && opt.given[OPT_MATCH])
		usage("--excl and --match exclude each other");
	if (opt.given[OPT_PERIOD] && opt.given[OPT_LINGER])
		usage("--period and --linger exclude each other");
	wheel = target_open();
	target_info(wheel, &info);
	json_open(NULL, '{');
	if (prints_removed()) {
		json_open("timers", '[');
		table_begin(removed_columns, ARRAY_SIZE(removed_columns));
	}
	if (opt.given[OPT_FROM])
		take_file();
	else
		take_arguments(argc, argv);
	if (prints_removed()) {
		table_flush();
		json_close();
	}
	for (i = 0; i < ARRAY_SIZE(results); i++)
		all += results[i];
	out_number(NULL, "done", SHOW_NUMBER, all);
	if (op->submit == submit_add)
		out_number(NULL, "were_none", SHOW_NUMBER, results[TIMERWHEEL_WAS_NONE]);
	out_number(NULL, "were_pending", SHOW_NUMBER, results[TIMERWHEEL_WAS_PENDING]);
	out_number(NULL, "were_due", SHOW_NUMBER, results[TIMERWHEEL_WAS_DUE]);
	out_number(NULL, "were_parked", SHOW_NUMBER, results[TIMERWHEEL_WAS_PARKED]);
	out_number(NULL, "failed", SHOW_NUMBER, nr_failed);
	if (opt.given[OPT_JSON])
		json_failures();
	json_close();
	timerwheel_close(wheel);
	return nr_failed ? STATUS_FAILED : STATUS_DONE;
}

int command_add(int argc, char **argv)
{
	static const struct op add = {
		"add", true, " value period linger slack match excl ", submit_add
	};

	return change_timers(&add, argc, argv);
}

int command_move(int argc, char **argv)
{
	static const struct op move = { "move", true, " match ", submit_move };

	return change_timers(&move, argc, argv);
}

int command_remove(int argc, char **argv)
{
	static const struct op remove = { "remove", false, " match ", submit_remove };

	return change_timers(&remove, argc, argv);
}
