/* SPDX-License-Identifier: GPL-2.0 */
/* An epoll set, for facilities with descriptors */
#ifndef POLLER_H
#define POLLER_H

#include <sys/epoll.h>
#include <linux/types.h>

int poller_open(void);
void poller_add(int poller, int fd, __u32 number);
/* Sleep until a descriptor is ready or until @until. Returns 0 if that time came first. */
int poller_wait(int poller, struct epoll_event *events, int most, __u64 until);

#endif /* POLLER_H */
