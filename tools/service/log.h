/* SPDX-License-Identifier: GPL-2.0 */
/* Words to whoever runs a daemon: lines on stderr, as journald likes them. */
#ifndef SERVICE_LOG_H
#define SERVICE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <syslog.h>

#include "util.h"

/** log_priorities - stderr is no terminal: lines begin with their priority, "<6>" */
extern bool log_priorities;

/**
 * log_common - where log_again() keeps the time in this process; NULL: at @said
 *
 * Child processes that come and go share this memory, because their static variables do not last.
 */
extern _Atomic uint64_t *log_common;

/** log_open - see what stderr is, and do not wait for it */
void log_open(void);

/**
 * log_write - write whole lines without waiting for whoever reads them
 * @fd: stderr, or what this process has opened with O_NONBLOCK
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
 * log_options_file - say which file has the options ($OPTIONS_FILE, which the unit sets)
 */
void log_options_file(void);

/* The exit status after what will not be better the next time: the unit knows it. */
#define EXIT_USAGE	2

/* A last line, and the end of the process. */
#define log_die(...)	(log_say(LOG_ERR, __VA_ARGS__), exit(EXIT_FAILURE))
#define log_usage(...)	(log_say(LOG_ERR, __VA_ARGS__), log_options_file(), exit(EXIT_USAGE))

/**
 * log_again - may this line be said again?
 * @said: when it was said last, CLOCK_MONOTONIC, in ns; 0: never
 *
 * Return: true if that was more than a second ago.
 */
bool log_again(_Atomic uint64_t *said);

/* Once a second at most, however often it happens: the metrics have the number. */
#define log_seldom(...) do {					\
	static _Atomic uint64_t said;				\
								\
	if (log_again(&said))					\
		log_say(__VA_ARGS__);				\
} while (0)

#endif /* SERVICE_LOG_H */
