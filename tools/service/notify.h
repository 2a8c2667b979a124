/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages to the service manager: the protocol of sd_notify(3), which systemd guarantees to keep.
 * libsystemd would block while the service manager does not read, and open a socket for each
 * message. Threads that serve connections must not block, and may send thousands of messages per
 * second. libsystemd reads the data from the service manager.
 */
#ifndef SERVICE_NOTIFY_H
#define SERVICE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/** NOTIFY_FDS_MAX - maximum number of descriptors in a message, a limit of the kernel */
#define NOTIFY_FDS_MAX	253

/** NOTIFY_BUSY - time until the next attempt while the service manager is busy, ns */
#define NOTIFY_BUSY	(10 * NSEC_PER_MSEC)

/**
 * notify_open - find the service manager ($NOTIFY_SOCKET)
 */
void notify_open(void);

/**
 * notify_there - is there a service manager?
 *
 * Return: true if there is.
 */
bool notify_there(void);

/**
 * notify - send a message to the service manager from the main thread
 * @text: "READY=1" and similar
 *
 * Does not block. While the service manager is busy, the message waits until notify_again(). It
 * replaces an earlier waiting message, which is then obsolete.
 */
void notify(const char *text);

/**
 * notify_again - send the waiting message of notify()
 *
 * Return: the time of the next call, CLOCK_MONOTONIC, in ns; TIME_NONE: all messages were sent.
 */
uint64_t notify_again(void);

/**
 * notify_alive - send a message to the watchdog
 *
 * Ignores errors, because the next message follows soon.
 */
void notify_alive(void);

/**
 * notify_store - put descriptors in the service manager's store
 * @name: the name under which it passes them back
 * @fds: the descriptors
 * @n: their number, at most NOTIFY_FDS_MAX
 * @watch: the service manager drops a descriptor when it hangs up or has an error
 *
 * Does not block. Any thread may call this.
 *
 * Return: 0; -EAGAIN: the service manager is busy, try again later; another error.
 */
int notify_store(const char *name, const int *fds, int n, bool watch);

#endif /* SERVICE_NOTIFY_H */
