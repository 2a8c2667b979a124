/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages to the service manager: the protocol of sd_notify(3), which systemd promises to keep.
 * libsystemd would wait while the service manager does not read, and open a socket for each
 * message: threads that serve connections cannot wait, and send thousands in a second. What
 * comes from the service manager is read by libsystemd.
 */
#ifndef SERVICE_NOTIFY_H
#define SERVICE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/** NOTIFY_FDS_MAX - most descriptors in one message: what the kernel takes */
#define NOTIFY_FDS_MAX	253

/** NOTIFY_BUSY - when to try again while the service manager is busy, ns */
#define NOTIFY_BUSY	(10 * NSEC_PER_MSEC)

/**
 * notify_open - look for the service manager ($NOTIFY_SOCKET)
 */
void notify_open(void);

/**
 * notify_there - is there one?
 *
 * Return: true if there is.
 */
bool notify_there(void);

/**
 * notify - send it a message from the main thread
 * @text: "READY=1" and the like
 *
 * Does not wait. While the service manager is busy, the message stays until notify_again(), and
 * takes the place of one that does: it says all that is still of interest.
 */
void notify(const char *text);

/**
 * notify_again - send what notify() could not
 *
 * Return: when to call it again, CLOCK_MONOTONIC, in ns; TIME_NONE: all is sent.
 */
uint64_t notify_again(void);

/**
 * notify_alive - tell the watchdog that all is well
 *
 * It waits for no answer: the next one comes soon.
 */
void notify_alive(void);

/**
 * notify_store - have it keep descriptors
 * @name: by which it hands them back
 * @fds: which
 * @n: how many, at most NOTIFY_FDS_MAX
 * @watch: it shall drop one when that hangs up or has an error
 *
 * Does not wait. Any thread may call this.
 *
 * Return: 0; -EAGAIN: it is busy, try again later; another error.
 */
int notify_store(const char *name, const int *fds, int n, bool watch);

#endif /* SERVICE_NOTIFY_H */
