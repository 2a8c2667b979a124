/* SPDX-License-Identifier: GPL-2.0 */
/* Calls that are counted, and that can be made to fail. */
#ifndef WRAP_H
#define WRAP_H

#include <stddef.h>
#include <sys/types.h>

/* How many there were, of malloc() and the like and of mmap() together */
extern int ioctls, allocations;

/* The one after so many others fails (ENOMEM, EINTR); -1: none. It is -1 afterwards. */
extern int fail_allocation, fail_ioctl;

/* What the linker calls the system's own, and ours */
int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset);
void *__real_mmap64(void *p, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *p, size_t size, int prot, int flags, int fd, off_t offset);

#endif /* WRAP_H */
