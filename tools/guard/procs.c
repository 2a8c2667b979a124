// SPDX-License-Identifier: GPL-2.0
/* See procs.h. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "options.h"
#include "procs.h"
#include "worker.h"

#define CGROUPS	"/sys/fs/cgroup"

/* --- control groups ----------------------------------------------------- */

/* Names such as php8.2-fpm have a dot, but no type. */
static bool has_type(const char *name)
{
	static const char *const types[] = {
		".service", ".slice", ".scope", ".socket", ".target", ".path", ".timer", ".mount",
		".automount", ".swap", ".device",
	};
	const char *dot = strrchr(name, '.');
	unsigned int i;

	for (i = 0; dot && i < ARRAY_SIZE(types); i++) {
		if (!strcmp(dot, types[i]))
			return true;
	}
	return false;
}

/* Is there a file for this unit? Sets @file to the name of the unit that it describes. */
static bool unit_file(const char *name, char file[NAME_MAX + 1])
{
	/* In the order of systemd.unit(5). */
	static const char *const folders[] = {
		"/etc/systemd/system.control", "/run/systemd/system.control",
		"/run/systemd/transient", "/run/systemd/generator.early", "/etc/systemd/system",
		"/etc/systemd/system.attached", "/run/systemd/system",
		"/run/systemd/system.attached", "/run/systemd/generator",
		"/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
		"/run/systemd/generator.late",
	};
	char path[PATH_MAX], real[PATH_MAX], *base;
	unsigned int i, k;

	snprintf(file, NAME_MAX + 1, "%s", name);
	for (i = 0; i < ARRAY_SIZE(folders); i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], name);
		if (!realpath(path, real))
			continue;
		base = strrchr(real, '/');
		*base++ = '\0';
		/* An alias is a link to a file in these folders. Other links keep their name. */
		for (k = 0; k < ARRAY_SIZE(folders); k++) {
			if (!strcmp(real, folders[k]))
				snprintf(file, NAME_MAX + 1, "%.*s", NAME_MAX, base);
		}
		return true;
	}
	return false;
}

/*
 * Complete a unit's name, and resolve an alias. NAME@INSTANCE.service may have the file
 * NAME@.service. Returns whether there is a file.
 */
static bool unit_name(const char *given, char name[NAME_MAX + 1])
{
	char file[NAME_MAX + 1], template[NAME_MAX + 1], full[NAME_MAX + 1];
	const char *instance, *end, *at;
	bool found;

	snprintf(full, sizeof(full), "%s%s", given, has_type(given) ? "" : ".service");
	snprintf(name, NAME_MAX + 1, "%s", full);
	instance = strchr(full, '@');
	end = strrchr(full, '.');
	if (instance && end < ++instance)
		instance = NULL;
	found = unit_file(full, file);
	if (!found && instance) {
		snprintf(template, sizeof(template), "%.*s%s", (int)(instance - full), full, end);
		found = unit_file(template, file);
	}
	if (!found)
		return false;
	at = strstr(file, "@.");
	if (at && instance)
		snprintf(name, NAME_MAX + 1, "%.*s%.*s%s", (int)(at + 1 - file), file,
			 (int)(end - instance), instance, at + 1);
	else
		snprintf(name, NAME_MAX + 1, "%s", file);
	return true;
}

/*
 * Is this the control group of a unit? systemd puts '_' before names that mean something else to
 * the kernel, such as memory.service, and before names that begin with '_' or '.'.
 */
static bool is_unit(const char *folder, const char *name)
{
	return !strcmp(folder + (*folder == '_'), name);
}

/* Find the control group of a unit, which is inside the control group of its slice. */
static bool find_unit(char *path, const char *name)
{
	size_t length = strlen(path);
	DIR *folder = opendir(path);
	const struct dirent *entry;
	bool found = false;
	const char *dot;

	while (folder && !found && (entry = readdir(folder))) {
		worker_step();
		dot = strrchr(entry->d_name, '.');
		if (entry->d_type != DT_DIR || !dot ||
		    length + 2 + strlen(entry->d_name) > PATH_MAX)
			continue;
		sprintf(path + length, "/%s", entry->d_name);
		found = is_unit(entry->d_name, name) ||
			(!strcmp(dot, ".slice") && find_unit(path, name));
		if (!found)
			path[length] = '\0';
	}
	if (folder)
		closedir(folder);
	return found;
}

/* Does this unit have a control group? */
static bool unit_runs(const char *name)
{
	char path[PATH_MAX] = CGROUPS;

	return find_unit(path, name);
}

/* Accept a path as in /proc/PID/cgroup, or an existing path. */
static void cgroup_path(const char *given, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, CGROUPS "/%s", given);
	if (access(path, F_OK))
		snprintf(path, PATH_MAX, "%s", given);
}

/* --- processes ---------------------------------------------------------- */

static struct proc *procs;
static unsigned int nr_procs, room;

static int by_pid(const void *a, const void *b)
{
	const struct proc *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static struct proc *proc_of(pid_t pid)
{
	const struct proc key = { .pid = pid };

	return nr_procs ? bsearch(&key, procs, nr_procs, sizeof(key), by_pid) : NULL;
}

static void choose(struct proc *proc, bool family)
{
	proc->chosen = true;
	proc->family |= family;
	proc->listens = true;
}

/* Choose the processes of a control group and of the groups below it. */
static void choose_cgroup(char *path)
{
	size_t length = strlen(path);
	const struct dirent *entry;
	struct proc *proc;
	DIR *folder;
	FILE *file;
	int pid;

	if (length + sizeof("/cgroup.procs") > PATH_MAX)
		return;
	strcpy(path + length, "/cgroup.procs");
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &pid) == 1) {
		proc = proc_of(pid);
		if (proc)
			choose(proc, false);
	}
	if (file)
		fclose(file);
	path[length] = '\0';
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		worker_step();
		if (entry->d_type != DT_DIR || *entry->d_name == '.' ||
		    length + 2 + strlen(entry->d_name) > PATH_MAX)
			continue;
		sprintf(path + length, "/%s", entry->d_name);
		choose_cgroup(path);
		path[length] = '\0';
	}
	if (folder)
		closedir(folder);
}

/* Parse PID (NAME) STATE PARENT ...; field 22 is the start. NAME may contain any characters. */
static bool read_stat(const char *pid, struct proc *proc)
{
	unsigned long long start;
	char path[64], text[1024], *name, *end;
	size_t n, i;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
	file = fopen(path, "re");
	n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	if (file)
		fclose(file);
	text[n] = '\0';
	name = strchr(text, '(');
	end = strrchr(text, ')');
	if (!name || !end ||
	    sscanf(end + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &proc->parent, &start) != 2)
		return false;
	*end = '\0';
	proc->pid = atoi(pid);
	proc->start = start;
	proc->chosen = false;
	proc->family = false;
	proc->listens = false;
	proc->seen = false;
	snprintf(proc->name, sizeof(proc->name), "%.15s", name + 1);
	/* Replace characters that would need escapes in a report. */
	for (i = 0; proc->name[i]; i++) {
		if (proc->name[i] <= ' ' || proc->name[i] > '~' || strchr("\"\\[]", proc->name[i]))
			proc->name[i] = '?';
	}
	return true;
}

static void read_all(void)
{
	const struct dirent *entry;
	DIR *folder = opendir("/proc");

	worker_visit(0, "");
	nr_procs = 0;
	while (folder && (entry = readdir(folder))) {
		if (*entry->d_name < '0' || *entry->d_name > '9' ||
		    !worker_visit(atoi(entry->d_name), ""))
			continue;
		if (nr_procs == room) {
			room = room ? 2 * room : 256;
			procs = realloc(procs, room * sizeof(*procs));
			if (!procs)
				log_die("no memory for a list of %u processes", room);
		}
		nr_procs += read_stat(entry->d_name, &procs[nr_procs]);
	}
	if (folder)
		closedir(folder);
	worker_visit(0, "");
	qsort(procs, nr_procs, sizeof(*procs), by_pid);
}

/*
 * Choose children that have left the control group, because they may have connections that the
 * daemon has accepted. Their own listening ports do not count: a user's programs are children of
 * sshd.
 */
static void choose_children(void)
{
	struct proc *proc, *end;
	unsigned int i;

	for (i = 0; i < nr_procs; i++) {
		for (end = &procs[i]; end && !end->chosen && !end->seen; end = proc_of(end->parent))
			end->seen = true;
		/* An ancestor that was seen before has no chosen ancestor. */
		if (!end || !end->chosen)
			continue;
		for (proc = &procs[i]; proc != end; proc = proc_of(proc->parent)) {
			proc->chosen = true;
			proc->family = end->family;
			proc->listens = end->family;
		}
	}
}

/*
 * The processes of --pid. A descriptor becomes readable when its process ends. Later processes with
 * the same number are not chosen.
 */
static struct pollfd pidfds[CHOICES_MAX];

bool procs_all(void)
{
	return !options.nr_units && !options.nr_cgroups && !options.nr_pids;
}

struct proc *procs_list(unsigned int *count)
{
	char name[NAME_MAX + 1], path[PATH_MAX];
	struct proc *list, *proc;
	unsigned int i, n = 0;

	read_all();
	for (i = 0; i < options.nr_pids; i++) {
		proc = proc_of(options.pids[i]);
		if (proc && !pidfds[i].revents)
			choose(proc, true);
	}
	for (i = 0; i < options.nr_cgroups; i++) {
		cgroup_path(options.cgroups[i], path);
		choose_cgroup(path);
	}
	for (i = 0; i < options.nr_units; i++) {
		unit_name(options.units[i], name);
		strcpy(path, CGROUPS);
		if (find_unit(path, name))
			choose_cgroup(path);
	}
	choose_children();
	list = xcalloc(nr_procs + 1, sizeof(*list));
	for (i = 0; i < nr_procs; i++) {
		if (procs[i].chosen || procs_all())
			list[n++] = procs[i];
	}
	*count = n;
	return list;
}

void procs_check(void)
{
	char path[PATH_MAX], procs_file[PATH_MAX + 16], name[NAME_MAX + 1];
	unsigned int i;

	for (i = 0; i < options.nr_pids; i++) {
		pidfds[i].fd = pidfd_of(options.pids[i]);
		pidfds[i].events = POLLIN;
		if (pidfds[i].fd < 0)
			log_die("--pid %d: there is no such process", options.pids[i]);
	}
	for (i = 0; i < options.nr_cgroups; i++) {
		cgroup_path(options.cgroups[i], path);
		snprintf(procs_file, sizeof(procs_file), "%s/cgroup.procs", path);
		if (access(path, R_OK | X_OK) || access(procs_file, R_OK))
			log_die("--cgroup %s: %s; it is a path below " CGROUPS, options.cgroups[i],
				strerror(errno));
	}
	for (i = 0; i < options.nr_units; i++) {
		if (!unit_name(options.units[i], name) && !unit_runs(name))
			log_die("--unit %s: there is no such unit: it has no unit file, and is not running (systemctl list-unit-files shows all)",
				options.units[i]);
	}
	if (options.nr_units && access(CGROUPS "/cgroup.controllers", F_OK))
		log_die("--unit needs the unified hierarchy of control groups at " CGROUPS
			"; use --pid or --port");
	for (i = 0; i < options.nr_units; i++) {
		unit_name(options.units[i], name);
		if (!unit_runs(name))
			log_say(LOG_NOTICE, "waiting for the unit %s, which is not running", name);
	}
}

bool procs_left(void)
{
	unsigned int i;

	poll(pidfds, options.nr_pids, 0);
	if (options.nr_units || options.nr_cgroups || !options.nr_pids)
		return true;
	for (i = 0; i < options.nr_pids; i++) {
		if (!pidfds[i].revents)
			return true;
	}
	return false;
}
