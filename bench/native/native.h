/* SPDX-License-Identifier: GPL-2.0 */
/* See native.c. */
#ifndef NATIVE_H
#define NATIVE_H

#include <stdbool.h>
#include <sys/types.h>
#include <linux/types.h>

/* The largest number of timers */
extern __u32 native_timers;
/* The row "expire" is measured. */
extern bool expiring;
/* The simulated time, in ns */
extern __u64 lines_now;

/* device.c */
void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int __wrap_ioctl(int fd, unsigned long op, ...);

#endif /* NATIVE_H */
