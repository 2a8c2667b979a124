// SPDX-License-Identifier: GPL-2.0
/*
 * The file of a saved wheel. It is text, so that people can read and change it.
 *
 *	timerwheel-save 2
 *	time 1795312800000000000
 *	clock monotonic
 *	tick 1000000
 *	slots 256
 *	capacity 4194304
 *	slack 0
 *	flags clock_set,alarm
 *	boot 3b241101-e2bb-4255-8caf-4136c566a962 5032000000000 synchronized
 *	timer KEY VALUE LEFT PERIOD SLACK
 *	...
 *	end 2
 *
 * The line flags lists the TIMERWHEEL_SETUP_* flags. It is omitted if there are none, so that older
 * versions of this program, which do not know it, can read the file.
 *
 * All times are in ns. time is the time of day of the save. LEFT is the time that was left then,
 * negative if the timer was due. The line boot exists if the clock is monotonic or boottime. It has
 * the boot id of the machine, the time of that clock, and whether the time of day was synchronized.
 * Format 1 has no such line. Wheels with another clock are still saved in format 1, so that older
 * versions can read the file. The last line has the number of timers, so that a truncated file is
 * detected. Lines that begin with # are comments. Another version of this format would have another
 * number in the first line.
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
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

#define MAGIC	"timerwheel-save"
#define FORMAT	2

static const struct {
	const char *name;
	__u32 flag;
} flag_names[] = {
	{ "clock_set", TIMERWHEEL_SETUP_CLOCK_SET },
	{ "alarm", TIMERWHEEL_SETUP_ALARM },
};

/* --- files of others ---------------------------------------------------- */

/* The path of an open file. */
static bool find_path(int fd, char path[PATH_MAX])
{
	char proc[64];
	ssize_t length;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	length = readlink(proc, path, PATH_MAX - 1);
	if (length < 0)
		return false;
	path[length] = '\0';
	return true;
}

/*
 * Can another user have created this file, as in /tmp? The kernel has this rule for open() (see
 * fs.protected_regular in proc_sys_fs(5)). It applies the rule neither when a new file is renamed
 * over the old one, nor when a file is only read.
 */
static bool planted(const struct stat *file, const char *path)
{
	char copy[PATH_MAX];
	struct stat st;

	snprintf(copy, sizeof(copy), "%s", path);
	return file->st_uid != geteuid() && !stat(dirname(copy), &st) && st.st_mode & S_ISVTX &&
	       st.st_mode & 0022 && file->st_uid != st.st_uid;
}

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
	fprintf(file, "%s %d\n# saved %s by timerwheel %s\n", MAGIC, *saved->boot ? FORMAT : 1,
		date, version);
	fprintf(file, "time %llu\nclock %s\ntick %llu\nslots %u\ncapacity %llu\nslack %llu\n",
		saved->time, clock_text(saved->clock), saved->tick, saved->slots,
		saved->capacity, saved->slack);
	print_flags(file, saved->flags);
	if (*saved->boot)
		fprintf(file, "boot %s %llu%s\n", saved->boot, saved->now,
			saved->synchronized ? " synchronized" : "");
	fprintf(file, "# timer KEY VALUE LEFT PERIOD SLACK\n");
	for (i = 0; i < saved->count; i++) {
		const struct timerwheel_entry *e = &saved->timers[i];

		fprintf(file, "timer %llu %llu %lld %llu %llu\n", e->key, e->value, e->left,
			e->period, e->slack);
	}
	fprintf(file, "end %zu\n", saved->count);
}

/**
 * struct place - the place of a file that may not exist yet
 * @name: its name as the user gave it
 * @folder: a descriptor of the folder
 * @base: its name in the folder; not a link
 * @exists: it exists
 * @old: its status, if it exists
 * @file: a descriptor of it, for its access list, if it exists
 */
struct place {
	const char *name;
	int folder;
	char base[NAME_MAX + 1];
	bool exists;
	struct stat old;
	int file;
};

static noreturn void cannot(const struct place *place, const char *what, int error)
{
	die("cannot %s %s: %s; the old file is unchanged", what, place->name, strerror(error));
}

static void open_folder(struct place *place, const char *path)
{
	char copy[PATH_MAX];

	if (snprintf(copy, sizeof(copy), "%s", path) >= PATH_MAX)
		cannot(place, "write", ENAMETOOLONG);
	place->folder = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (place->folder < 0)
		die("cannot create a file next to %s: %s", place->name, strerror(errno));
	snprintf(copy, sizeof(copy), "%s", path);
	if (snprintf(place->base, sizeof(place->base), "%s", basename(copy)) > NAME_MAX)
		cannot(place, "write", ENAMETOOLONG);
}

/*
 * Only the kernel follows links, because it knows which links must not be followed (see
 * fs.protected_symlinks in proc_sys_fs(5)). Therefore open the file first. The path of the open
 * file leads to the folder, unless it was renamed in the meantime.
 */
static void find_place(struct place *place)
{
	char path[PATH_MAX];
	struct stat st;

	place->file = open(place->name, O_PATH | O_CLOEXEC);
	place->exists = place->file >= 0;
	if (!place->exists && errno != ENOENT)
		cannot(place, "open", errno);
	if (!place->exists) {
		open_folder(place, place->name);
		if (!fstatat(place->folder, place->base, &st, AT_SYMLINK_NOFOLLOW))
			die("%s is a link to a file that does not exist: remove it, or save to another name",
			    place->name);
		return;
	}
	if (fstat(place->file, &place->old))
		cannot(place, "open", errno);
	if (!S_ISREG(place->old.st_mode))
		die("%s is not a regular file: save to another name, or to - and redirect the output",
		    place->name);
	if (!find_path(place->file, path))
		cannot(place, "find", errno);
	if (planted(&place->old, place->name) || planted(&place->old, path))
		die("%s belongs to user %u, in a directory where other users can create files: remove it, or save to another directory; nothing was written",
		    place->name, place->old.st_uid);
	open_folder(place, path);
	if (fstatat(place->folder, place->base, &st, AT_SYMLINK_NOFOLLOW) ||
	    st.st_dev != place->old.st_dev || st.st_ino != place->old.st_ino)
		die("%s was moved or replaced during the save; nothing was written", place->name);
}

/* Create a file in that folder that other users cannot read. */
static int create(const struct place *place, char *temporary, size_t size)
{
	__u64 seed = now_ns() ^ (__u64)getpid() << 40;
	int fd;

	do {
		snprintf(temporary, size, ".timerwheel-%016llx", random_next(&seed));
		fd = openat(place->folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			    0600);
	} while (fd < 0 && errno == EEXIST);
	if (fd < 0)
		die("cannot create a file next to %s: %s", place->name, strerror(errno));
	return fd;
}

/* Copy the access list, because the mode has another meaning without it. */
static int copy_access_list(const struct place *place, int fd)
{
	static const char name[] = "system.posix_acl_access";
	char proc[64], list[65536];
	ssize_t length;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", place->file);
	length = getxattr(proc, name, list, sizeof(list));
	if (length < 0)
		return errno == ENODATA || errno == ENOTSUP ? 0 : -1;
	return fsetxattr(fd, name, list, length, 0);
}

/* Set owner, mode and access list as of the old file, or as open() would have set them. */
static int set_access(const struct place *place, int fd)
{
	mode_t mask;

	if (place->exists)
		return fchown(fd, place->old.st_uid, place->old.st_gid) ||
		       fchmod(fd, place->old.st_mode & 07777) || copy_access_list(place, fd);
	mask = umask(0);
	umask(mask);
	return fchmod(fd, 0666 & ~mask);
}

static int write_file(int fd, const struct saved *saved)
{
	FILE *file;

	file = fdopen(fd, "w");
	if (!file)
		return -1;
	print(file, saved);
	if (fflush(file) || ferror(file) || fsync(fd))
		return -1;
	return fclose(file);
}

/*
 * Write a new file beside the old one, and replace the old one only when the new one is on disk.
 * Signals are held back until the temporary name no longer exists.
 */
static void replace(const char *name, const struct saved *saved)
{
	struct place place = { .name = name };
	const char *failed = NULL;
	char temporary[40];
	int fd;

	find_place(&place);
	hold_write();
	hold_begin();
	fd = create(&place, temporary, sizeof(temporary));
	if (set_access(&place, fd))
		failed = "keep the owner and mode of";
	else if (write_file(fd, saved) ||
		 renameat(place.folder, temporary, place.folder, place.base))
		failed = "write";
	if (failed) {
		int err = errno;

		unlinkat(place.folder, temporary, 0);
		cannot(&place, failed, err);
	}
	/* The name is on disk only when the folder is on disk. */
	if (fsync(place.folder))
		die("cannot write the directory of %s to disk: %s", name, strerror(errno));
	hold_end();
	close(place.folder);
	if (place.exists)
		close(place.file);
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
static unsigned int fields;	/* a bit for each header line that was found */

/* Header lines, of which only the flags are optional. */
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
	/* SETUP accepts these only in 32 bits. */
	narrow = numbers[i] == &slots || numbers[i] == &reading->capacity;
	if (!parse_number(words[1], numbers[i]) ||
	    *numbers[i] > (narrow ? UINT32_MAX : TIMERWHEEL_TIME_MAX))
		return false;
	if (numbers[i] == &slots)
		reading->slots = slots;
	return true;
}

static bool parse_boot(char *const *words, int count)
{
	reading->synchronized = count == 4 && !strcmp(words[3], "synchronized");
	if (count != 3 + reading->synchronized || *reading->boot ||
	    strlen(words[1]) >= sizeof(reading->boot))
		return false;
	strcpy(reading->boot, words[1]);
	return parse_number(words[2], &reading->now) && reading->now <= TIMERWHEEL_TIME_MAX;
}

static void read_magic(char *const *words, int count)
{
	if (count != 2 || strcmp(words[0], MAGIC))
		wrong(1, "not a saved wheel: it must begin with '%s %d'", MAGIC, FORMAT);
	if (strcmp(words[1], "1") && strcmp(words[1], "2"))
		wrong(1, "format %s is unknown, only 1 and %d are supported: use a newer timerwheel",
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
	else if (!strcmp(words[0], "boot") ? !parse_boot(words, count) :
		 !strcmp(words[0], "timer") ? !parse_timer(words, count) :
					      !parse_head(words, count))
		wrong(number, "the line that begins with '%s' is invalid", words[0]);
}

static void nothing(void)
{
}

/* Also check the path as given, because the owner can rename the file in the meantime. */
static void refuse_planted(int fd)
{
	char path[PATH_MAX];
	struct stat st;

	if (!find_path(fd, path) || fstat(fd, &st))
		die("cannot find %s: %s; nothing was restored", reading_name, strerror(errno));
	if (planted(&st, reading_name) || planted(&st, path))
		die("%s belongs to user %u, in a directory where other users can create files: check its contents, and restore your own copy; nothing was restored",
		    reading_name, st.st_uid);
}

void savefile_read(const char *name, struct saved *saved)
{
	const struct line_source source = {
		.name = name,
		.opened = refuse_planted,
		.line = read_line,
		.pause = nothing,
	};

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
