// SPDX-License-Identifier: GPL-2.0
/*
 * See owners.h.
 *
 * To read all links in /proc/PID/fd takes a microsecond or two for each. But a new socket gets the
 * lowest descriptor that is free: so the search goes upwards, passes over those that are known to
 * be connections that exist, and ends when all sockets are found. What it costs depends on how many
 * are new, not on how many there are.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log.h"
#include "owners.h"

/* Of Linux 5.3 and 5.6. The numbers are the same for all architectures. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open		434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd		438
#endif

/* A process that is meant. */
struct owner {
	struct proc proc;
	bool found;		/* sockets were found in it */
	bool denied;		/* it was said that one may not look into it */
	bool gone;		/* it was not listed again */
	uint64_t *cookies;	/* the connection behind each descriptor, as far as is known */
	unsigned int nr_cookies;
};

/* Behind so many free descriptors in a row there are hardly any others. */
#define FREE_MAX	256

static struct owner **owners;
static unsigned int nr_owners;

static void denied(pid_t pid, const char *name)
{
	log_seldom(LOG_WARNING,
		   "may not take the sockets of %s[%d]: run as root, or with the capabilities CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH (in a unit: AmbientCapabilities=)",
		   name, pid);
}

/* --- the processes ------------------------------------------------------ */

static struct owner *take_over(unsigned int *at, const struct proc *proc)
{
	struct owner *owner;

	while (*at < nr_owners && owners[*at]->proc.pid < proc->pid)
		++*at;
	if (*at < nr_owners && owners[*at]->proc.pid == proc->pid &&
	    owners[*at]->proc.start == proc->start) {
		owner = owners[*at];
		owner->proc.listens = proc->listens;
		owner->gone = false;
		return owner;
	}
	owner = xcalloc(1, sizeof(*owner));
	owner->proc = *proc;
	return owner;
}

/* Both lists are sorted by pid. */
static void refresh(void)
{
	unsigned int count, at = 0, i;
	struct proc *procs = procs_list(&count);
	struct owner **list = xcalloc(count + 1, sizeof(struct owner *));

	for (i = 0; i < nr_owners; i++)
		owners[i]->gone = true;
	for (i = 0; i < count; i++)
		list[i] = take_over(&at, &procs[i]);
	for (i = 0; i < nr_owners; i++) {
		if (owners[i]->gone) {
			free(owners[i]->cookies);
			free(owners[i]);
		}
	}
	free(owners);
	free(procs);
	owners = list;
	nr_owners = count;
}

/* --- the search --------------------------------------------------------- */

/* What is looked for, and how many of it are not found yet. */
static struct {
	struct wanted *wanted;
	unsigned int count;
	unsigned int left;
	bool all;	/* pass over nothing */
	struct owner *denied;	/* one may not look into this one; NULL: there is none */
	bool (*living)(uint64_t cookie);
} search;

static int by_inode(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return (x->inode > y->inode) - (x->inode < y->inode);
}

static void remember(struct owner *owner, unsigned int fd, uint64_t cookie)
{
	unsigned int more = owner->nr_cookies;

	if (fd >= owner->nr_cookies) {
		more = more ? more : 64;
		while (more <= fd)
			more *= 2;
		owner->cookies = realloc(owner->cookies, more * sizeof(*owner->cookies));
		if (!owner->cookies)
			log_die("no memory for %u descriptors of %s[%d]", more, owner->proc.name,
				owner->proc.pid);
		memset(owner->cookies + owner->nr_cookies, 0,
		       (more - owner->nr_cookies) * sizeof(*owner->cookies));
		owner->nr_cookies = more;
	}
	owner->cookies[fd] = cookie;
	owner->found = true;
}

static bool pass_over(const struct owner *owner, unsigned int fd)
{
	return search.living && !search.all && fd < owner->nr_cookies && owner->cookies[fd] &&
	       search.living(owner->cookies[fd]);
}

/* Where the table of descriptors ends. */
static unsigned int limit_of(const struct owner *owner)
{
	unsigned int limit = 0;
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", owner->proc.pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file) && sscanf(line, "FDSize: %u", &limit) != 1)
		;
	if (file)
		fclose(file);
	return limit;
}

static void found(struct owner *owner, unsigned int fd, const char *link)
{
	struct wanted key, *wanted;
	unsigned int inode;

	if (sscanf(link, "socket:[%u]", &inode) != 1)
		return;
	key.inode = inode;
	wanted = bsearch(&key, search.wanted, search.count, sizeof(key), by_inode);
	if (!wanted || wanted->pid)
		return;
	wanted->pid = owner->proc.pid;
	memcpy(wanted->name, owner->proc.name, sizeof(wanted->name));
	wanted->fd = fd;
	search.left--;
	remember(owner, fd, wanted->cookie);
}

static void look_into(struct owner *owner)
{
	unsigned int limit, fd, nr_free = 0;
	char path[64], link[64];
	int folder;
	ssize_t n;

	if (!search.living && !owner->proc.listens)
		return;
	snprintf(path, sizeof(path), "/proc/%d/fd", owner->proc.pid);
	folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return;
	limit = limit_of(owner);
	for (fd = 0; fd < limit && search.left; fd++) {
		if (nr_free == FREE_MAX && !search.all)
			break;
		if (pass_over(owner, fd)) {
			nr_free = 0;
			continue;
		}
		snprintf(path, sizeof(path), "%u", fd);
		n = readlinkat(folder, path, link, sizeof(link) - 1);
		if (n < 0 && (errno == EACCES || errno == EPERM)) {
			search.denied = owner;
			break;
		}
		nr_free = n < 0 ? nr_free + 1 : 0;
		if (n > 0) {
			link[n] = '\0';
			found(owner, fd, link);
		}
	}
	close(folder);
}

void owners_find(struct wanted *wanted, unsigned int count, bool (*living)(uint64_t cookie))
{
	unsigned int i;

	search.wanted = wanted;
	search.count = count;
	search.left = count;
	search.living = living;
	search.all = false;
	search.denied = NULL;
	for (i = 0; i < count; i++) {
		wanted[i].pid = 0;
		search.all |= wanted[i].again;
	}
	qsort(wanted, count, sizeof(*wanted), by_inode);
	/* Where there were some there are more. */
	for (i = 0; i < nr_owners && search.left; i++) {
		if (owners[i]->found)
			look_into(owners[i]);
	}
	if (!search.left)
		return;
	search.denied = NULL;
	refresh();
	for (i = 0; i < nr_owners && search.left; i++)
		look_into(owners[i]);
	if (!search.left || !search.denied || search.denied->denied)
		return;
	search.denied->denied = true;
	denied(search.denied->proc.pid, search.denied->proc.name);
}

int owners_take(const struct wanted *wanted)
{
	int pidfd = syscall(SYS_pidfd_open, wanted->pid, 0);
	int fd = pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, wanted->fd, 0);
	socklen_t len = sizeof(uint64_t);
	uint64_t cookie = 0;

	if (fd < 0 && (errno == EPERM || errno == EACCES))
		denied(wanted->pid, wanted->name);
	if (pidfd >= 0)
		close(pidfd);
	if (fd < 0)
		return -1;
	/* The process may have closed it meanwhile and opened another one. */
	if (!getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) && cookie == wanted->cookie)
		return fd;
	close(fd);
	return -1;
}
