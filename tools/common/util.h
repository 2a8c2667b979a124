/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Code that the programs below tools/ share: their version, messages to the user, numbers and times
 * on the command line, clocks, random numbers, limits of the process.
 */
#ifndef TOOLS_UTIL_H
#define TOOLS_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <linux/types.h>

#ifndef __printf
#define __printf(a, b)	__attribute((format(printf, a, b)))
#endif

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

/* "No limit": the largest deadline. */
#define TIME_NONE	INT64_MAX

/* The name at the beginning of each message to the user; main() sets it. */
extern const char *progname;

/* The version of timerwheel; and print it for --version. */
extern const char version[];
void say_version(void);

void say(const char *fmt, ...) __printf(1, 2);
noreturn void die(const char *fmt, ...) __printf(1, 2);

/* End the program with an error if the output so far cannot be written. */
void out_check(void);

/*
 * Undo changes of signals that a parent can pass on: unblock all signals, and give SIGCHLD its
 * default action, because the kernel reaps the children of a process that ignores it. Other signals
 * stay ignored, as after nohup.
 */
void signals_reset(void);

/* Parse "250k", "1M" or "4096". Returns false if it is not a number. */
bool parse_count(const char *text, __u64 *count);
/*
 * Parse "30s", "1.5ms" or "1h30m"; a number without a unit means seconds. Returns false if it is
 * not a time (errno is EINVAL) or not below 2^63 ns (ERANGE).
 */
bool parse_duration(const char *text, __u64 *ns);

/* These print into a few static buffers, enough for one printf. */
#define TEXT_LENGTH	32
char *text_buffer(void);
const char *commas(__u64 n);
/* duration() is for sentences: "250.0 ms". span() is for tables and parse_duration(): "250ms". */
const char *duration(__u64 ns);
const char *span(__s64 ns);

/* CLOCK_MONOTONIC, in ns. */
__u64 now_ns(void);
/* CPU time of this process so far, user and system, in ns. */
__u64 cpu_ns(void);
/* Sleep until now_ns() is at least this. */
void sleep_until(__u64 ns);

/* splitmix64: the next number of a random sequence, and its mixing step, a bijection. */
__u64 random_next(__u64 *state);
__u64 random_below(__u64 *state, __u64 bound);
__u64 mix64(__u64 x);

/* A step that visits each of 0..n-1 once: i = (i + stride) % n. */
__u64 stride_of(__u64 n);

/* Memory that is available without swapping, in bytes, as the kernel estimates it. */
__u64 mem_available(void);
/*
 * Free memory and the page cache, in bytes, as exact as possible; and the decrease since @before.
 * MemAvailable is not suitable: it counts half of some caches that are in use.
 */
__u64 mem_free(void);
__u64 mem_taken(__u64 before);
/*
 * mem_free(), once it has not grown for a moment: the kernel frees the files of a process that has
 * ended, and other memory, some time later. It waits for at most 5 s.
 */
__u64 mem_settled(void);
/* Raise RLIMIT_NOFILE (as root also fs.nr_open) as far as needed. Returns the new limit. */
__u64 raise_nofile(__u64 want);
/* As root, raise fs.epoll.max_user_watches as far as needed. */
void raise_watches(__u64 want);

/*
 * How to get the kernel module: a sentence without its full stop. It names the package with the
 * kernel's headers if they are not installed, because DKMS then builds no module.
 */
const char *module_advice(void);

void *xcalloc(size_t n, size_t size);

#endif /* TOOLS_UTIL_H */
