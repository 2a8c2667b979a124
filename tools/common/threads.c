// SPDX-License-Identifier: GPL-2.0
/* See threads.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "threads.h"

/* Added in Linux 5.3, 5.6 and 6.9. The numbers are the same on all architectures. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open		434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd		438
#endif
#ifndef PIDFD_THREAD
#define PIDFD_THREAD		O_EXCL
#endif

unsigned int thread_fds(pid_t pid, pid_t tid)
{
	unsigned int size = 0;
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file) && sscanf(line, "FDSize: %u", &size) != 1)
		;
	if (file)
		fclose(file);
	return size;
}

pid_t thread_living(pid_t pid)
{
	const struct dirent *entry;
	pid_t found = pid, tid;
	char path[64];
	DIR *folder;

	if (thread_fds(pid, pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	folder = opendir(path);
	while (folder && found == pid && (entry = readdir(folder))) {
		tid = atoi(entry->d_name);
		if (tid > 0 && thread_fds(pid, tid))
			found = tid;
	}
	if (folder)
		closedir(folder);
	return found;
}

/* The errors of pidfd_open() differ between versions of the kernel. */
static int open_thread(pid_t pid, pid_t tid)
{
	int own, pidfd = syscall(SYS_pidfd_open, tid, tid == pid ? 0 : PIDFD_THREAD);

	if (pidfd >= 0 || (errno != EINVAL && errno != ENOENT))
		return pidfd;
	own = tid == pid ? -1 : (int)syscall(SYS_pidfd_open, getpid(), PIDFD_THREAD);
	errno = tid == pid || own >= 0 ? ESRCH : EOPNOTSUPP;
	if (own >= 0)
		close(own);
	return -1;
}

int thread_getfd(pid_t pid, pid_t tid, int fd)
{
	int pidfd = open_thread(pid, tid), copy, err;

	if (pidfd < 0)
		return -1;
	copy = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	err = errno;
	close(pidfd);
	errno = err;
	return copy;
}
