// SPDX-License-Identifier: GPL-2.0
/*
 * See owners.h. All functions here may wait for a process and run in the worker, except the
 * functions that take over its results.
 *
 * Reading a link in /proc/PID/fd takes a microsecond or two. But a new socket gets the lowest free
 * descriptor, so the search goes upwards, skips descriptors that are known to be existing
 * connections, and ends when all sockets are found. Its time depends on the number of new sockets,
 * not on the total number.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "counters.h"
#include "log.h"
#include "owners.h"
#include "threads.h"
#include "worker.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP		262
#endif

/* A chosen process. */
struct owner {
	struct proc proc;
	bool found;		/* sockets were found in it */
	bool tables;		/* sockets were found in tables that @tid does not use */
	bool rings;		/* an io_uring of it has sockets */
	bool foreign;		/* it is in another network namespace */
	bool denied;		/* the last search was not allowed to look into it */
	bool gone;		/* it was not listed again */
	bool transparent;	/* it is a transparent proxy */
	unsigned int say;	/* bits of enum reason: to be logged once */
	unsigned int said;	/* bits of enum reason: already logged */
	pid_t tid;		/* the main thread, or a living thread */
	uint64_t *cookies;	/* the connection behind each descriptor, if known */
	unsigned int nr_cookies;
	unsigned int nr_found;	/* number of sockets found */
};

/* After this many free descriptors in a row there are seldom further ones. */
#define FREE_MAX	256
/*
 * The guard remembers descriptors up to COOKIES_MIN, and COOKIES_EACH more for each connection that
 * it has found. The limit is needed because a process with few connections can choose very high
 * descriptors for them.
 */
#define COOKIES_MIN	1024
#define COOKIES_EACH	16
/* A process whose threads share no descriptors is searched in this many threads. */
#define TABLES_MAX	64

static struct owner **owners;
static unsigned int nr_owners;

/* --- the processes ------------------------------------------------------ */

static struct owner *take_over(unsigned int *at, const struct proc *proc)
{
	struct owner *owner;

	while (*at < nr_owners && owners[*at]->proc.pid < proc->pid)
		++*at;
	if (*at < nr_owners && owners[*at]->proc.pid == proc->pid &&
	    owners[*at]->proc.start == proc->start) {
		owner = owners[*at];
		/* The process may have executed another program. */
		owner->proc = *proc;
		owner->gone = false;
		return owner;
	}
	owner = xcalloc(1, sizeof(*owner));
	owner->proc = *proc;
	owner->tid = proc->pid;
	return owner;
}

/* Repeated because a new process of a unit enters its network namespace a little later. */
static void check_namespace(struct owner *owner)
{
	struct stat own, other;
	char path[64];

	if (owner->foreign || !owner->proc.listens ||
	    !worker_visit(owner->proc.pid, owner->proc.name))
		return;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/ns/net", owner->proc.pid, owner->tid);
	if (stat(path, &other)) {
		owner->tid = thread_living(owner->proc.pid);
		return;
	}
	if (stat("/proc/self/ns/net", &own) ||
	    (own.st_ino == other.st_ino && own.st_dev == other.st_dev))
		return;
	owner->foreign = true;
	counters.unreachable[REASON_NAMESPACE]++;
	owners_say(owner->proc.pid, REASON_NAMESPACE);
}

/* Replace the list of processes, and free processes that are gone. */
static void replace(struct owner **list, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < nr_owners; i++) {
		if (owners[i]->gone) {
			free(owners[i]->cookies);
			free(owners[i]);
		}
	}
	free(owners);
	owners = list;
	nr_owners = count;
}

/* Both lists are sorted by pid. */
void owners_refresh(void)
{
	unsigned int count, at = 0, i;
	struct proc *procs = procs_list(&count);
	struct owner **list = xcalloc(count + 1, sizeof(struct owner *));

	for (i = 0; i < nr_owners; i++)
		owners[i]->gone = true;
	for (i = 0; i < count; i++)
		list[i] = take_over(&at, &procs[i]);
	free(procs);
	replace(list, count);
	for (i = 0; i < nr_owners && !procs_all(); i++)
		check_namespace(owners[i]);
}

static int by_pid(const void *key, const void *element)
{
	pid_t pid = *(const pid_t *)key, other = (*(struct owner *const *)element)->proc.pid;

	return (pid > other) - (pid < other);
}

bool owners_any(void)
{
	return nr_owners;
}

static struct owner *owner_of(pid_t pid)
{
	struct owner **found = !nr_owners ? NULL :
			       bsearch(&pid, owners, nr_owners, sizeof(*owners), by_pid);

	return found ? *found : NULL;
}

void owners_say(pid_t pid, enum reason reason)
{
	struct owner *owner = owner_of(pid);

	if (owner)
		owner->say |= 1U << reason;
}

bool owners_transparent(pid_t pid)
{
	struct owner *owner = owner_of(pid);
	bool first = owner && !owner->transparent;

	if (owner)
		owner->transparent = true;
	return first;
}

void owners_report(void)
{
	enum reason reason;
	unsigned int i;

	for (i = 0; i < nr_owners; i++) {
		for (reason = 0; owners[i]->say & ~owners[i]->said && reason < REASONS; reason++) {
			if (owners[i]->say & ~owners[i]->said & 1U << reason &&
			    unreachable_say(reason, owners[i]->proc.name, owners[i]->proc.pid))
				owners[i]->said |= 1U << reason;
		}
	}
}

size_t owners_size(void)
{
	return nr_owners * sizeof(struct owner);
}

void owners_save(void *to)
{
	struct owner *list = to;
	unsigned int i;

	for (i = 0; i < nr_owners; i++)
		list[i] = *owners[i];
}

void owners_load(const void *from, size_t size)
{
	const struct owner *saved = from;
	const unsigned int count = size / sizeof(*saved);
	struct owner **list = xcalloc(count + 1, sizeof(struct owner *));
	unsigned int nr_cookies, at = 0, i;
	uint64_t *cookies;

	for (i = 0; i < nr_owners; i++)
		owners[i]->gone = true;
	for (i = 0; i < count; i++) {
		list[i] = take_over(&at, &saved[i].proc);
		cookies = list[i]->cookies;
		nr_cookies = list[i]->nr_cookies;
		*list[i] = saved[i];
		/* Pointers of the worker point into its own memory. */
		list[i]->cookies = cookies;
		list[i]->nr_cookies = nr_cookies;
	}
	replace(list, count);
}

/* --- the search --------------------------------------------------------- */

/* The sockets to find, and the number that is not found yet. */
static struct {
	struct wanted *wanted;
	unsigned int count;
	unsigned int left;
	bool all;	/* skip no descriptor */
	bool last;	/* find out why sockets are missing */
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

	owner->found = true;
	if (fd >= COOKIES_MIN + (uint64_t)COOKIES_EACH * ++owner->nr_found)
		return;
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
}

void owners_remember(const struct wanted *wanted)
{
	struct owner *owner = owner_of(wanted->pid);

	if (owner && wanted->tid == owner->tid)
		remember(owner, wanted->fd, wanted->cookie);
}

static bool pass_over(const struct owner *owner, unsigned int fd)
{
	return search.living && !search.all && fd < owner->nr_cookies && owner->cookies[fd] &&
	       search.living(owner->cookies[fd]);
}

/* The kernel gives all paths of an MPTCP connection the same inode. */
static void found(struct owner *owner, pid_t tid, unsigned int fd, const char *link)
{
	struct wanted key, *wanted, *end = search.wanted + search.count;
	unsigned int inode;

	if (sscanf(link, "socket:[%u]", &inode) != 1)
		return;
	key.inode = inode;
	wanted = bsearch(&key, search.wanted, search.count, sizeof(key), by_inode);
	if (!wanted || wanted->pid)
		return;
	while (wanted > search.wanted && wanted[-1].inode == inode)
		wanted--;
	if (tid == owner->tid)
		remember(owner, fd, wanted->cookie);
	else
		owner->tables = true;
	for (; wanted < end && wanted->inode == inode; wanted++) {
		wanted->pid = owner->proc.pid;
		memcpy(wanted->name, owner->proc.name, sizeof(wanted->name));
		wanted->uid = worker_uid();
		wanted->tid = tid;
		wanted->fd = fd;
		search.left--;
	}
}

/*
 * Direct descriptors of io_uring are listed in fdinfo: as "socket:[INODE]", or by the name of the
 * protocol on older kernels (6.12). They are not listed while the ring is busy.
 */
static void look_into_ring(struct owner *owner, pid_t tid, unsigned int fd)
{
	char path[64], line[256], name[16];
	bool files = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fdinfo/%u", owner->proc.pid, tid, fd);
	file = fopen(path, "re");
	while (file && !owner->rings && fgets(line, sizeof(line), file)) {
		if (files && sscanf(line, "%*u: %15s", name) != 1)
			break;
		owner->rings = files && (!strncmp(name, "socket:", 7) || !strncmp(name, "TCP", 3));
		files |= !strncmp(line, "UserFiles:", 10);
	}
	if (file)
		fclose(file);
}

static void look_into_table(struct owner *owner, pid_t tid, unsigned int limit)
{
	unsigned int fd, nr_free = 0;
	char path[64], link[64];
	int folder;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd", owner->proc.pid, tid);
	folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return;
	for (fd = 0; fd < limit && search.left; fd++) {
		if ((nr_free == FREE_MAX && !search.all) || !worker_step())
			break;
		if (tid == owner->tid && pass_over(owner, fd)) {
			nr_free = 0;
			continue;
		}
		snprintf(path, sizeof(path), "%u", fd);
		n = readlinkat(folder, path, link, sizeof(link) - 1);
		if (n < 0 && (errno == EACCES || errno == EPERM)) {
			owner->denied = true;
			break;
		}
		nr_free = n < 0 ? nr_free + 1 : 0;
		if (n > 0) {
			link[n] = '\0';
			found(owner, tid, fd, link);
			if (search.last && !owner->rings && !strcmp(link, "anon_inode:[io_uring]"))
				look_into_ring(owner, tid, fd);
		}
	}
	close(folder);
}

/* Threads may have descriptors of their own: see CLONE_FILES in clone(2) and unshare(2). */
static void look_into_other_tables(struct owner *owner)
{
	pid_t tids[TABLES_MAX] = { owner->tid }, tid;
	const struct dirent *entry;
	unsigned int nr = 1, i;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", owner->proc.pid);
	folder = opendir(path);
	while (folder && nr < TABLES_MAX && search.left && worker_step() &&
	       (entry = readdir(folder))) {
		tid = atoi(entry->d_name);
		/* 0: the same table, -1: unknown */
		for (i = 0; tid > 0 && i < nr &&
		     syscall(SYS_kcmp, tids[i], tid, KCMP_FILES, 0, 0) > 0; i++)
			;
		if (i < nr)
			continue;
		tids[nr++] = tid;
		look_into_table(owner, tid, thread_fds(owner->proc.pid, tid));
	}
	if (folder)
		closedir(folder);
}

static void look_into(struct owner *owner)
{
	unsigned int limit;

	owner->denied = false;
	if ((!search.living && !owner->proc.listens) ||
	    !worker_visit(owner->proc.pid, owner->proc.name))
		return;
	limit = thread_fds(owner->proc.pid, owner->tid);
	if (!limit) {
		owner->tid = thread_living(owner->proc.pid);
		limit = thread_fds(owner->proc.pid, owner->tid);
	}
	look_into_table(owner, owner->tid, limit);
	if (search.left && limit && (search.all || !search.living || owner->tables))
		look_into_other_tables(owner);
}

/* Explain missing sockets. If all processes are chosen, only the first denied process is named. */
static void explain(void)
{
	enum reason reason = REASON_NOT_FOUND;
	pid_t suspect = 0;
	unsigned int i;

	for (i = 0; i < nr_owners; i++) {
		if (owners[i]->denied && (!suspect || !procs_all())) {
			reason = REASON_DENIED;
			suspect = owners[i]->proc.pid;
			owners_say(suspect, reason);
		}
	}
	for (i = 0; i < nr_owners && reason != REASON_IO_URING; i++) {
		if (owners[i]->rings) {
			reason = REASON_IO_URING;
			suspect = owners[i]->proc.pid;
		}
	}
	for (i = 0; i < search.count; i++) {
		if (search.wanted[i].pid)
			continue;
		search.wanted[i].reason = reason;
		search.wanted[i].suspect = suspect;
	}
}

void owners_find(struct wanted *wanted, unsigned int count, bool (*living)(uint64_t cookie))
{
	unsigned int i;

	search.wanted = wanted;
	search.count = count;
	search.left = count;
	search.living = living;
	search.all = false;
	search.last = false;
	for (i = 0; i < count; i++) {
		wanted[i].pid = 0;
		search.all |= wanted[i].again;
		search.last |= wanted[i].last;
	}
	if (count)
		qsort(wanted, count, sizeof(*wanted), by_inode);
	/* First search processes in which sockets were found before. */
	for (i = 0; i < nr_owners && search.left; i++) {
		if (owners[i]->found)
			look_into(owners[i]);
	}
	/* Always for listening sockets, because this also finds new processes. */
	if (!search.left && living)
		return;
	owners_refresh();
	for (i = 0; i < nr_owners && search.left; i++)
		look_into(owners[i]);
	if (search.left)
		explain();
}

/* The connection has the inode, and one of its paths has the cookie. */
static bool is_mptcp(const struct wanted *wanted, int fd)
{
	socklen_t len = sizeof(int);
	struct stat stat;
	int protocol = 0;

	return !getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) &&
	       protocol == IPPROTO_MPTCP && !fstat(fd, &stat) && stat.st_ino == wanted->inode;
}

int owners_take(struct wanted *wanted)
{
	bool visit = worker_visit(wanted->pid, wanted->name);
	int fd = visit ? thread_getfd(wanted->pid, wanted->tid, wanted->fd) : -1;
	socklen_t len = sizeof(uint64_t);
	uint64_t cookie = 0;

	wanted->suspect = wanted->pid;
	wanted->reason = REASON_NOT_FOUND;
	if (!visit)
		return -1;
	if (fd < 0) {
		if (errno == EPERM || errno == EACCES)
			wanted->reason = REASON_DENIED;
		if (errno == EOPNOTSUPP)
			wanted->reason = REASON_THREAD;
		return -1;
	}
	/* The process may have closed it meanwhile and opened another file. */
	if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len))
		worker_close_last(fd);
	else if (cookie == wanted->cookie)
		return fd;
	else if (is_mptcp(wanted, fd))
		wanted->reason = REASON_MPTCP;
	errno = 0;
	return -1;
}
