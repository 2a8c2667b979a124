/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the examples in the manuals take for granted that are not whole programs: scripts/lint/manuals
 * compiles each of them inside of a function, behind this.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>

#include <linux/timerwheel.h>
#include <timerwheel.h>

struct connection {
	__u64 id;
	__u32 index;
	__u32 generation;
};

extern struct connection *conn;
extern struct tw_queue *queue;
extern struct tw_table table;
extern struct tw_wheel *wheel;
extern __u64 key, value, now;
extern int epoll, fd;

void expired(__u64 key);
void left_over(__u64 key, __u64 value, __s64 left);
bool packet(void);
