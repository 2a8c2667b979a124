// SPDX-License-Identifier: GPL-2.0
/*
 * The linker (--wrap) gives us these calls of the library and of its tests: to count them, and to
 * let one fail.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "wrap.h"

int ioctls, allocations, fail_allocation = -1, fail_ioctl = -1;

int __real_ioctl(int fd, unsigned long request, void *arg);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset);
void *__real_mmap64(void *p, size_t size, int prot, int flags, int fd, off_t offset);

void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *p, size_t size, int prot, int flags, int fd, off_t offset);

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	ioctls++;
	if (fail_ioctl >= 0 && !fail_ioctl--) {
		errno = EINTR;
		return -1;
	}
	return __real_ioctl(fd, request, arg);
}

static bool refused(void)
{
	allocations++;
	if (fail_allocation < 0 || fail_allocation--)
		return false;
	errno = ENOMEM;
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

void *__wrap_mmap64(void *p, size_t size, int prot, int flags, int fd, off_t offset)
{
	return refused() ? MAP_FAILED : __real_mmap64(p, size, prot, flags, fd, offset);
}
