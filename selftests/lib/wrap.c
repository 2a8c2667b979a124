// SPDX-License-Identifier: GPL-2.0
/*
 * The linker (--wrap) gives us these calls of the library and of its tests: to count them, and to
 * let them fail or do less.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* struct stat64 */
#endif
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <linux/timerwheel.h>

#include "wrap.h"

int ioctls, allocations, fail_allocation = -1, fail_ioctl = -1;
int ioctl_error = EINTR, open_error, allocation_error = ENOMEM;
unsigned int most_elements, event_size, info_clock;
unsigned long long features_added, features_removed;
void (*after_unlock)(void);
bool keep_failing;
int (*fake_ioctl)(unsigned long request, void *arg);
const char *fake_class;
long long realtime_ahead;

#define SEC	1000000000LL

static int realtime_fd = -1;

/* Is this a call on an array that is filled in, of which most_elements are to be done? */
static bool cut_short(unsigned long request)
{
	return most_elements &&
	       (request == TIMERWHEEL_IOC_ADD || request == TIMERWHEEL_IOC_MOVE ||
		request == TIMERWHEEL_IOC_REMOVE || request == TIMERWHEEL_IOC_GET ||
		request == TIMERWHEEL_IOC_MOVE_HANDLE ||
		request == TIMERWHEEL_IOC_REMOVE_HANDLE);
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	struct timerwheel_batch batch;

	ioctls++;
	if (fail_ioctl >= 0 && !fail_ioctl--) {
		fail_ioctl = keep_failing ? 0 : -1;
		errno = ioctl_error;
		return -1;
	}
	if (fake_ioctl)
		return fake_ioctl(request, arg);
	if (request == TIMERWHEEL_IOC_INFO) {
		int ret = __real_ioctl(fd, request, arg);
		struct timerwheel_info *info = arg;

		if (event_size)
			info->event_size = event_size;
		if (info_clock)
			info->clock = info_clock;
		info->features |= features_added;
		info->features &= ~features_removed;
		return ret;
	}
	if (!cut_short(request))
		return __real_ioctl(fd, request, arg);
	batch = *(const struct timerwheel_batch *)arg;
	if (batch.count > most_elements)
		batch.count = most_elements;
	return __real_ioctl(fd, request, &batch);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	int ret = __real_pthread_mutex_unlock(lock);

	if (after_unlock)
		after_unlock();
	return ret;
}

static bool not_opened(void)
{
	if (open_error)
		errno = open_error;
	return open_error;
}

int __wrap_open(const char *path, int flags, mode_t mode)
{
	return not_opened() ? -1 : __real_open(path, flags, mode);
}

int __wrap_open64(const char *path, int flags, mode_t mode)
{
	return not_opened() ? -1 : __real_open64(path, flags, mode);
}

int __wrap_timerfd_create(int clock, int flags)
{
	int fd = not_opened() ? -1 : __real_timerfd_create(clock, flags);

	if (clock == CLOCK_REALTIME)
		realtime_fd = fd;
	return fd;
}

/* @ns later, or when time began */
static struct timespec shifted(struct timespec time, long long ns)
{
	ns += time.tv_sec * SEC + time.tv_nsec;
	if (ns < 1)
		ns = 1;
	return (struct timespec){ .tv_sec = ns / SEC, .tv_nsec = ns % SEC };
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *to,
			   struct itimerspec *before)
{
	struct itimerspec at = *to;

	if (realtime_ahead && fd == realtime_fd && (at.it_value.tv_sec || at.it_value.tv_nsec))
		at.it_value = shifted(at.it_value, -realtime_ahead);
	return __real_timerfd_settime(fd, flags, &at, before);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int ret = __real_clock_gettime(clock, now);

	if (realtime_ahead && clock == CLOCK_REALTIME && !ret)
		*now = shifted(*now, realtime_ahead);
	return ret;
}

int __wrap_fstat(int fd, struct stat *st)
{
	int ret = __real_fstat(fd, st);

	if (fake_class && !ret)
		st->st_mode = S_IFCHR | 0600;
	return ret;
}

int __wrap_fstat64(int fd, struct stat64 *st)
{
	int ret = __real_fstat64(fd, st);

	if (fake_class && !ret)
		st->st_mode = S_IFCHR | 0600;
	return ret;
}

ssize_t __wrap_readlink(const char *path, char *to, size_t size)
{
	if (!fake_class)
		return __real_readlink(path, to, size);
	if (*fake_class)
		return snprintf(to, size, "../../../../class/%s", fake_class);
	errno = ENOENT;
	return -1;
}

static bool refused(void)
{
	allocations++;
	if (fail_allocation < 0 || fail_allocation--)
		return false;
	errno = allocation_error;
	return true;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refused() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return refused() ? NULL : __real_realloc(p, size);
}

void *__wrap_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset)
{
	return refused() ? MAP_FAILED : __real_mmap(p, size, prot, flags, fd, offset);
}

void *__wrap_mmap64(void *p, size_t size, int prot, int flags, int fd, long long offset)
{
	return refused() ? MAP_FAILED : __real_mmap64(p, size, prot, flags, fd, offset);
}
