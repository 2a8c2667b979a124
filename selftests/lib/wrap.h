/* SPDX-License-Identifier: GPL-2.0 */
/* Calls that are counted, and that can be made to fail. */
#ifndef WRAP_H
#define WRAP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <time.h>

struct stat64;

/* How many there were, of malloc() and the like and of mmap() together */
extern int ioctls, allocations;

/* The one after so many others fails; -1: none. It is -1 afterwards. */
extern int fail_allocation, fail_ioctl;

/* And so does every ioctl() after that one; fail_ioctl stays 0 */
extern bool keep_failing;

/* A call on an array by key does so many at most, as if a signal had come; 0: any number */
extern unsigned int most_elements;

/* Values for INFO, as if a newer program had set the wheel up; 0: the real values. */
extern unsigned int event_size, info_clock;

/* Feature bits that INFO reports, or does not report, whatever the kernel has. */
extern unsigned long long features_added, features_removed;

/* What the allocation that fails, fails with */
extern int allocation_error;

/* Called after each pthread_mutex_unlock(), as if another thread came then; NULL: nothing is */
extern void (*after_unlock)(void);

/* Replacement of ioctl(), with the same return value as the system call; NULL: none. */
extern int (*fake_ioctl)(unsigned long request, void *arg);

/* The class of every descriptor's device, as sysfs reports it; "": no sysfs; NULL: the true one */
extern const char *fake_class;

/* Error of ioctl(), and error of every open() and timerfd_create(); 0: none. */
extern int ioctl_error, open_error;

/*
 * Number of ns added to CLOCK_REALTIME, as if the clock had been set for this program only. Timers
 * of timerfds are shifted when they are set. 32-bit programs have another clock_gettime().
 */
extern long long realtime_ahead;

/* What the linker calls the system's own, and ours */
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __real_open(const char *path, int flags, mode_t mode);
int __real_open64(const char *path, int flags, mode_t mode);
int __real_timerfd_create(int clock, int flags);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __wrap_timerfd_create(int clock, int flags);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *to,
			   struct itimerspec *before);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *to,
			   struct itimerspec *before);
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __real_fstat64(int fd, struct stat64 *st);
int __wrap_fstat64(int fd, struct stat64 *st);
ssize_t __real_readlink(const char *path, char *to, size_t size);
ssize_t __wrap_readlink(const char *path, char *to, size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset);
void *__real_mmap64(void *p, size_t size, int prot, int flags, int fd, long long offset);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *p, size_t size, int prot, int flags, int fd, long long offset);

#endif /* WRAP_H */
