/* SPDX-License-Identifier: GPL-2.0 */
/* Log messages of a daemon: lines on stderr, in the format of journald. */
#ifndef SERVICE_LOG_H
#define SERVICE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <syslog.h>

#include "util.h"

/** log_priorities - stderr is not a terminal: lines begin with their priority, "<6>" */
extern bool log_priorities;

/**
 * log_common - the place where log_again() keeps the time in this process; NULL: at @said
 *
 * Short-lived child processes share this memory, because their static variables do not last.
 */
extern _Atomic uint64_t *log_common;

/** log_open - prepare stderr, and make it non-blocking */
void log_open(void);

/**
 * log_unblock - make a standard descriptor non-blocking, for this process only
 * @std: STDOUT_FILENO or STDERR_FILENO
 */
void log_unblock(int std);

/**
 * log_write - write complete lines without blocking
 * @fd: a descriptor that log_unblock() or this process has made non-blocking
 * @text: the lines
 * @len: their length, at most 4096
 *
 * Return: the number of bytes that were written. Lines after these bytes are lost, and so is a line
 * that they cut.
 */
size_t log_write(int fd, const char *text, size_t len);

/**
 * log_say - log a line
 * @priority: LOG_ERR, LOG_WARNING, LOG_NOTICE or LOG_INFO
 * @fmt: as printf()
 */
void log_say(int priority, const char *fmt, ...) __printf(2, 3);

/**
 * log_options_file - say which file has the options ($OPTIONS_FILE, which the unit sets)
 */
void log_options_file(void);

/* Exit status after an error that a restart cannot correct. The unit does not restart after it. */
#define EXIT_USAGE	2

/* Log a last line, and end the process. */
#define log_die(...)	(log_say(LOG_ERR, __VA_ARGS__), exit(EXIT_FAILURE))
#define log_usage(...)	(log_say(LOG_ERR, __VA_ARGS__), log_options_file(), exit(EXIT_USAGE))

/**
 * log_again - may this line be logged again?
 * @said: the time at which it was last logged, CLOCK_MONOTONIC, in ns; 0: never
 *
 * Return: true if that was more than a second ago.
 */
bool log_again(_Atomic uint64_t *said);

/* Log at most once per second, however often it happens; the metrics have the exact number. */
#define log_seldom(...) do {					\
	static _Atomic uint64_t said;				\
								\
	if (log_again(&said))					\
		log_say(__VA_ARGS__);				\
} while (0)

#endif /* SERVICE_LOG_H */
