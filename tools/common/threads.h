/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Descriptors of other processes, by thread. /proc/PID/fd and pidfd_getfd(2) use the main thread.
 * After pthread_exit() that thread has no descriptors, while the other threads keep theirs.
 */
#ifndef TOOLS_THREADS_H
#define TOOLS_THREADS_H

#include <sys/types.h>

/**
 * thread_fds - the size of a thread's descriptor table
 * @pid: the process
 * @tid: the thread
 *
 * Return: the size; 0: the thread has ended or does not exist.
 */
unsigned int thread_fds(pid_t pid, pid_t tid);

/**
 * thread_living - a thread that has descriptors: the main thread unless it has ended
 * @pid: the process
 *
 * Return: its number; @pid: no thread has descriptors.
 */
pid_t thread_living(pid_t pid);

/**
 * thread_getfd - copy a descriptor of a thread
 * @pid: the process
 * @tid: the thread
 * @fd: its descriptor
 *
 * Return: the copy; -1: see errno. ESRCH: there is no such thread; EOPNOTSUPP: before Linux 6.9
 * only descriptors of a main thread can be copied.
 */
int thread_getfd(pid_t pid, pid_t tid, int fd);

#endif /* TOOLS_THREADS_H */
