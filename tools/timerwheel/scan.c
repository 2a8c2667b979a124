// SPDX-License-Identifier: GPL-2.0
/*
 * The wheels of other processes. /proc/PID/fdinfo/FD tells about a wheel what anybody may know
 * who may look at the process; to look into the wheel takes its descriptor (target.c).
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <linux/kcmp.h>

#include "cli.h"
#include "threads.h"

/* The number of the device, which tells a wheel from all other files; 0: there is none. */
static dev_t device(void)
{
	FILE *file = fopen("/proc/devices", "r");
	char line[128], name[64];
	unsigned int major;
	dev_t found = 0;

	if (!file)
		return 0;
	/* first the character devices, then those with blocks */
	while (!found && fgets(line, sizeof(line), file) && strncmp(line, "Block", 5)) {
		if (sscanf(line, "%u %63s", &major, name) == 2 && !strcmp(name, "timerwheel"))
			found = makedev(major, 0);
	}
	fclose(file);
	return found;
}

bool scan_loaded(void)
{
	return device() != 0;
}

/* One line of fdinfo. */
static void read_line(struct seen *seen, const char *name, const char *value)
{
	const struct {
		const char *name;
		__u64 *number;
	} numbers[] = {
		{ "tick-ns", &seen->tick },
		{ "capacity", &seen->capacity },
		{ "pending", &seen->pending },
		{ "due", &seen->due },
		{ "armed", &seen->armed },
		{ "delivered", &seen->delivered },
		{ "memory", &seen->memory },
	};
	size_t i;

	if (!strcmp(name, "clock"))
		snprintf(seen->clock, sizeof(seen->clock), "%.11s", value);
	if (!strcmp(name, "closed"))
		seen->closed = *value == '1';
	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (!strcmp(name, numbers[i].name))
			*numbers[i].number = strtoull(value, NULL, 10);
	}
}

/* false: it is gone by now, or may not be looked at. */
static bool read_fdinfo(struct seen *seen)
{
	char path[64], line[128], name[32], value[32];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fdinfo/%d", seen->pid, seen->tid,
		 seen->fd);
	file = fopen(path, "r");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "timerwheel-%31[^:]: %31s", name, value) == 2)
			read_line(seen, name, value);
	}
	fclose(file);
	return *seen->clock;
}

static void read_command(struct seen *seen)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", seen->pid);
	file = fopen(path, "r");
	if (!file)
		return;
	if (fgets(seen->command, sizeof(seen->command), file))
		seen->command[strcspn(seen->command, "\n")] = '\0';
	fclose(file);
}

/* Is it one that was found already, through another descriptor? */
static struct seen *known(struct scan *scan, const struct seen *seen)
{
	size_t i;

	for (i = 0; i < scan->count; i++) {
		struct seen *other = &scan->wheels[i];

		if (!syscall(SYS_kcmp, other->tid, seen->tid, KCMP_FILE, other->fd, seen->fd))
			return other;
	}
	return NULL;
}

static void add(struct scan *scan, struct seen *seen)
{
	struct seen *other = known(scan, seen);

	if (other) {
		/* A second descriptor of the same process is not a second owner. */
		if (other->last != seen->pid)
			other->owners++;
		other->last = seen->pid;
		/* init keeps it for a service that it starts: who has it is that service. */
		if (other->pid == 1 && seen->pid != 1) {
			other->pid = seen->pid;
			other->tid = seen->tid;
			other->fd = seen->fd;
			read_command(other);
		}
		return;
	}
	if (!read_fdinfo(seen))
		return;
	read_command(seen);
	if (scan->count == scan->room) {
		scan->room = scan->room ? 2 * scan->room : 64;
		scan->wheels = realloc(scan->wheels, scan->room * sizeof(*scan->wheels));
		if (!scan->wheels)
			die("no memory for %zu wheels", scan->room);
	}
	scan->wheels[scan->count++] = *seen;
}

/* Returns the number of descriptors, or -errno. */
static int scan_thread(struct scan *scan, int pid, int tid)
{
	dev_t wanted = device();
	struct dirent *entry;
	int count = 0;
	char path[64];
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd", pid, tid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		struct seen seen = { .pid = pid, .tid = tid, .last = pid, .owners = 1 };

		if (!isdigit(*entry->d_name))
			continue;
		count++;
		if (fstatat(dirfd(dir), entry->d_name, &st, 0) || !S_ISCHR(st.st_mode) || !wanted ||
		    st.st_rdev != wanted)
			continue;
		seen.fd = atoi(entry->d_name);
		add(scan, &seen);
	}
	closedir(dir);
	return count;
}

int scan_process(struct scan *scan, int pid)
{
	int count = scan_thread(scan, pid, pid), tid;

	/* A main thread that has ended has no descriptors; if it is not ours, we may not ask. */
	if (count <= 0 && count != -ENOENT) {
		tid = thread_living(pid);
		if (tid != pid)
			count = scan_thread(scan, pid, tid);
	}
	return count < 0 ? count : 0;
}

void scan_all(struct scan *scan)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	if (!proc)
		die("/proc: %s: is it mounted?", strerror(errno));
	scan->count = 0;
	scan->hidden = 0;
	while ((entry = readdir(proc))) {
		int pid = atoi(entry->d_name);

		/* We have inherited the wheels of our shell, but do not use them. */
		if (isdigit(*entry->d_name) && pid != getpid() &&
		    scan_process(scan, pid) == -EACCES)
			scan->hidden++;
	}
	closedir(proc);
}
