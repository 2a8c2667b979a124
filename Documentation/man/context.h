/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What those examples in the manuals need that are not whole programs: scripts/lint/manuals
 * compiles each of them inside a function, after this header.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <linux/timerwheel.h>
#include <timerwheel.h>

struct connection {
	__u64 id;
	__u64 deadline;
	__u32 index;
	__u32 generation;
	int tries;
};

extern struct connection *conn;
extern struct timerwheel_queue *queue;
extern struct timerwheel_event event;
extern struct timerwheel_info info;
extern struct timerwheel_ring *mapping;
extern struct timerwheel_table table;
extern struct timerwheel *wheel;
extern __u64 key, value, now;
extern int epoll, fd;

struct connection *connection(__u64 key);
bool receive(struct connection *conn);
void arm(struct connection *conn);
void retransmit(struct connection *conn);
void close_connection(struct connection *conn);
void expired(const struct timerwheel_event *event);
void move_later(__u64 key);
void left_over(__u64 key, __u64 value, __s64 left);
bool packet(void);
