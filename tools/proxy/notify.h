/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the proxy tells the service manager: the protocol of sd_notify(3), which systemd
 * promises to keep. libsystemd opens and closes a socket for each message; here
 * there may be thousands of them a second.
 */
#ifndef PROXY_NOTIFY_H
#define PROXY_NOTIFY_H

#include <stdbool.h>

/** NOTIFY_FDS_MAX - most descriptors in one message: what the kernel takes */
#define NOTIFY_FDS_MAX	253

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
 * notify - tell it something
 * @text: "READY=1" and the like; without a service manager nobody is told
 */
void notify(const char *text);

/**
 * notify_store - have it keep descriptors
 * @name: by which it hands them back
 * @fds: which
 * @n: how many, at most NOTIFY_FDS_MAX
 * @watch: it shall drop one when that hangs up or has an error
 *
 * Does not wait.
 *
 * Return: 0; -EAGAIN: it is busy, try again later; another error.
 */
int notify_store(const char *name, const int *fds, int n, bool watch);

#endif /* PROXY_NOTIFY_H */
