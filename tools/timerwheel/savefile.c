// SPDX-License-Identifier: GPL-2.0
/*
 * The file of a saved wheel: text, so that people can read and change it.
 *
 *	timerwheel-save 1
 *	time 1795312800000000000
 *	clock monotonic
 *	tick 1000000
 *	slots 256
 *	capacity 4194304
 *	slack 0
 *	flags clock_set,alarm
 *	timer KEY VALUE LEFT PERIOD SLACK
 *	...
 *	end 2
 *
 * The line flags says which TIMERWHEEL_SETUP_* there were. It is left out when there was none:
 * older versions of this program, which do not know it, read such a file.
 *
 * All times are ns; time is the time of day at which it was saved, LEFT what was left then,
 * negative when the timer was due. The last line tells how many timers there are, so that a file
 * that was cut off is noticed. Lines that begin with # are comments. Another version of this
 * format would have another number in the first line.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

#define MAGIC	"timerwheel-save"
#define FORMAT	1

static const struct {
	const char *name;
	__u32 flag;
} flag_names[] = {
	{ "clock_set", TIMERWHEEL_SETUP_CLOCK_SET },
	{ "alarm", TIMERWHEEL_SETUP_ALARM },
};

/* --- writing ------------------------------------------------------------ */

static void print_flags(FILE *file, __u32 flags)
{
	const char *before = "flags ";
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flag_names); i++) {
		if (!(flags & flag_names[i].flag))
			continue;
		fprintf(file, "%s%s", before, flag_names[i].name);
		before = ",";
	}
	if (flags)
		fprintf(file, "\n");
}

static void print(FILE *file, const struct saved *saved)
{
	time_t seconds = saved->time / NSEC_PER_SEC;
	char date[32];
	size_t i;

	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&seconds));
	fprintf(file, "%s %d\n# saved %s by timerwheel %s\n", MAGIC, FORMAT, date, version);
	fprintf(file, "time %llu\nclock %s\ntick %llu\nslots %u\ncapacity %llu\nslack %llu\n",
		saved->time, clock_text(saved->clock), saved->tick, saved->slots,
		saved->capacity, saved->slack);
	print_flags(file, saved->flags);
	fprintf(file, "# timer KEY VALUE LEFT PERIOD SLACK\n");
	for (i = 0; i < saved->count; i++) {
		const struct timerwheel_entry *e = &saved->timers[i];

		fprintf(file, "timer %llu %llu %lld %llu %llu\n", e->key, e->value, e->left,
			e->period, e->slack);
	}
	fprintf(file, "end %zu\n", saved->count);
}

/* The name in the folder is on disk only when the folder is. */
static void sync_folder(const char *name)
{
	char copy[PATH_MAX];
	int fd;

	snprintf(copy, sizeof(copy), "%s", name);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd))
		die("cannot write the directory of %s to disk: %s", name, strerror(errno));
	close(fd);
}

/* As open() would have made it, and not as mkstemp() does. */
static void set_mode(int fd)
{
	mode_t mask = umask(0);

	umask(mask);
	fchmod(fd, 0666 & ~mask);
}

/*
 * Beside the old file, and in its place only when all of it is on disk. What stands behind a
 * link is the old file; a device or a pipe is none.
 */
static void replace(const char *name, const struct saved *saved)
{
	char temporary[PATH_MAX], place[PATH_MAX];
	struct stat st;
	FILE *file;
	int fd;

	if (!stat(name, &st) && !S_ISREG(st.st_mode))
		die("%s is not a regular file: save to another name, or to - and redirect the output",
		    name);
	if (realpath(name, place))
		name = place;
	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", name) >= PATH_MAX)
		die("%s: the name is too long", name);
	fd = mkstemp(temporary);
	if (fd < 0)
		die("cannot create a file beside %s: %s", name, strerror(errno));
	set_mode(fd);
	file = fdopen(fd, "w");
	if (!file)
		die("%s: %s", name, strerror(errno));
	print(file, saved);
	if (fflush(file) || ferror(file) || fsync(fd) || rename(temporary, name)) {
		int err = errno;

		unlink(temporary);
		die("cannot write %s: %s; the old file is unchanged", name, strerror(err));
	}
	fclose(file);
	sync_folder(name);
}

void savefile_write(const char *name, const struct saved *saved)
{
	if (!strcmp(name, "-")) {
		print(stdout, saved);
		out_check();
	} else {
		replace(name, saved);
	}
}

/* --- reading ------------------------------------------------------------ */

static struct saved *reading;
static const char *reading_name;
static size_t room;
static bool has_magic, has_end;
static unsigned int fields;	/* a bit for each line of the head that was there */

/* Of these the flags may be missing. */
static const char *const head_names[] = {
	"time", "clock", "tick", "slots", "capacity", "slack", "flags"
};

#define FIELDS_NEEDED	0x3f

static noreturn void wrong(unsigned int number, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	die("%s:%u: %s; nothing was restored", reading_name, number, printable(text));
}

static bool parse_signed(const char *text, __s64 *number)
{
	bool negative = *text == '-';
	__u64 size;

	if (!parse_number(text + negative, &size) || size > TIMERWHEEL_TIME_MAX)
		return false;
	*number = negative ? -(__s64)size : (__s64)size;
	return true;
}

static bool parse_timer(char *const *words, int count)
{
	struct timerwheel_entry *entry;

	if (count != 6)
		return false;
	if (reading->count == room) {
		room = room ? 2 * room : 4096;
		reading->timers = realloc(reading->timers, room * sizeof(*reading->timers));
		if (!reading->timers)
			die("no memory for %zu timers", room);
	}
	entry = &reading->timers[reading->count++];
	*entry = (struct timerwheel_entry) {};
	return parse_number(words[1], &entry->key) && parse_number(words[2], &entry->value) &&
	       parse_signed(words[3], &entry->left) && parse_number(words[4], &entry->period) &&
	       parse_number(words[5], &entry->slack) && entry->period <= TIMERWHEEL_TIME_MAX;
}

static bool parse_clock(const char *text)
{
	__u32 clock;

	for (clock = 0; clock <= TIMERWHEEL_CLOCK_MANUAL; clock++) {
		if (!strcmp(text, clock_text(clock))) {
			reading->clock = clock;
			return true;
		}
	}
	return false;
}

static bool parse_flags(char *text)
{
	char *state, *name;
	size_t i;

	for (name = strtok_r(text, ",", &state); name; name = strtok_r(NULL, ",", &state)) {
		for (i = 0; i < ARRAY_SIZE(flag_names) && strcmp(name, flag_names[i].name); i++)
			;
		if (i == ARRAY_SIZE(flag_names))
			return false;
		reading->flags |= flag_names[i].flag;
	}
	return reading->flags;
}

static bool parse_head(char *const *words, int count)
{
	__u64 slots, *const numbers[] = {
		&reading->time, NULL, &reading->tick, &slots, &reading->capacity,
		&reading->slack, NULL
	};
	bool narrow;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(head_names) && strcmp(words[0], head_names[i]); i++)
		;
	if (count != 2 || i == ARRAY_SIZE(head_names) || fields & 1U << i)
		return false;
	fields |= 1U << i;
	if (!strcmp(words[0], "clock"))
		return parse_clock(words[1]);
	if (!strcmp(words[0], "flags"))
		return parse_flags(words[1]);
	/* SETUP takes these in 32 bits. */
	narrow = numbers[i] == &slots || numbers[i] == &reading->capacity;
	if (!parse_number(words[1], numbers[i]) ||
	    *numbers[i] > (narrow ? UINT32_MAX : TIMERWHEEL_TIME_MAX))
		return false;
	if (numbers[i] == &slots)
		reading->slots = slots;
	return true;
}

static void read_magic(char *const *words, int count)
{
	if (count != 2 || strcmp(words[0], MAGIC))
		wrong(1, "not a saved wheel: it must begin with '%s %d'", MAGIC, FORMAT);
	if (strcmp(words[1], "1"))
		wrong(1, "format %s is unknown, only %d is supported: use a newer timerwheel",
		      words[1], FORMAT);
	has_magic = true;
}

static void read_end(char *const *words, int count, unsigned int number)
{
	__u64 timers;

	if (count != 2 || !parse_number(words[1], &timers))
		wrong(number, "'end' needs the number of timers");
	if (timers != reading->count)
		wrong(number, "there are %zu timers, but there should be %llu",
		      reading->count, timers);
	has_end = true;
}

static void read_line(char *text, unsigned int number)
{
	char *words[7], *state;
	int count = 0;

	if (*text == '#')
		return;
	words[0] = strtok_r(text, " \t\r", &state);
	while (words[count] && ++count < (int)ARRAY_SIZE(words))
		words[count] = strtok_r(NULL, " \t\r", &state);
	if (!count)
		return;
	if (has_end)
		wrong(number, "unexpected line after the end");
	if (!has_magic)
		read_magic(words, count);
	else if (!strcmp(words[0], "end"))
		read_end(words, count, number);
	else if (strcmp(words[0], "timer") ? !parse_head(words, count) :
					     !parse_timer(words, count))
		wrong(number, "the line that begins with '%s' is invalid", words[0]);
}

static void nothing(void)
{
}

void savefile_read(const char *name, struct saved *saved)
{
	const struct line_source source = { .name = name, .line = read_line, .pause = nothing };

	*saved = (struct saved) {};
	reading = saved;
	reading_name = strcmp(name, "-") ? name : "stdin";
	lines_read(&source);
	if (!has_magic)
		die("%s is empty; nothing was restored", reading_name);
	if (!has_end)
		die("%s is truncated: its last line should be 'end' and the number of timers; nothing was restored",
		    reading_name);
	if ((fields & FIELDS_NEEDED) != FIELDS_NEEDED)
		die("%s: time, clock, tick, slots, capacity and slack are required, each once; nothing was restored",
		    reading_name);
}
