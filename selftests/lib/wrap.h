/* SPDX-License-Identifier: GPL-2.0 */
/* Calls that are counted, and that can be made to fail. */
#ifndef WRAP_H
#define WRAP_H

/* How many there were, of malloc() and the like and of mmap() together */
extern int ioctls, allocations;

/* The one after so many others fails (ENOMEM, EINTR); -1: none. It is -1 afterwards. */
extern int fail_allocation, fail_ioctl;

#endif /* WRAP_H */
