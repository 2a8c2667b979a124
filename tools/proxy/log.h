/* SPDX-License-Identifier: GPL-2.0 */
/* Words to whoever runs the proxy: lines on stderr, as journald likes them. */
#ifndef PROXY_LOG_H
#define PROXY_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <syslog.h>

#include "util.h"

/**
 * log_open - begin to log
 *
 * To a terminal lines are bare; elsewhere each begins with its priority, "<6>".
 */
void log_open(void);

/**
 * log_prefix - what a line on stderr begins with
 * @priority: its
 *
 * Return: "<6>" and the like, or nothing.
 */
const char *log_prefix(int priority);

/**
 * log_write - write whole lines without waiting for whoever reads them
 * @fd: where
 * @text: they
 * @len: their length, at most 4096
 *
 * Return: false: they are lost.
 */
bool log_write(int fd, const char *text, size_t len);

/**
 * log_say - a line
 * @priority: LOG_ERR, LOG_WARNING, LOG_NOTICE or LOG_INFO
 * @fmt: as printf()
 */
void log_say(int priority, const char *fmt, ...) __printf(2, 3);

/**
 * log_exit - a line of LOG_ERR, then the end of the process
 * @status: its exit status
 * @fmt: as printf()
 */
noreturn void log_exit(int status, const char *fmt, ...) __printf(2, 3);

/* The exit status after what will not be better the next time: the unit knows it. */
#define EXIT_USAGE	2

#define log_die(...)	log_exit(EXIT_FAILURE, __VA_ARGS__)
#define log_usage(...)	log_exit(EXIT_USAGE, __VA_ARGS__)

/**
 * struct log_limit - when a line was last said: see log_seldom()
 * @said: ns, CLOCK_MONOTONIC
 */
struct log_limit {
	_Atomic uint64_t said;
};

/**
 * log_limit - may this line be said again?
 * @limit: when it was said last
 *
 * Return: true if that was more than a second ago.
 */
bool log_limit(struct log_limit *limit);

/* Once a second at most, however often it happens: the metrics have the number. */
#define log_seldom(...) do {					\
	static struct log_limit limit;				\
								\
	if (log_limit(&limit))					\
		log_say(__VA_ARGS__);				\
} while (0)

#endif /* PROXY_LOG_H */
