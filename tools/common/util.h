/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the programs below tools/ share: their version, words to the user, numbers and times on
 * the command line, clocks, random numbers, limits of the process.
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

/* "No limit": as far away as a deadline can be. */
#define TIME_NONE	INT64_MAX

/* The name that starts each line said to the user; main() sets it. */
extern const char *progname;

/* That of all of timerwheel; and what --version prints. */
extern const char version[];
void say_version(void);

void say(const char *fmt, ...) __printf(1, 2);
noreturn void die(const char *fmt, ...) __printf(1, 2);

/* End the program with an error if what was printed so far cannot be written. */
void out_check(void);

/*
 * Undo what a parent can do to the signals of a program that it starts: unblock all of them, and
 * give SIGCHLD its default action, because the kernel reaps the children of a process that ignores
 * it. Other signals stay ignored, as after nohup.
 */
void signals_reset(void);

/* "250k", "1M", "4096": false if it is not a number. */
bool parse_count(const char *text, __u64 *count);
/*
 * "30s", "1.5ms", "1h30m", a bare number is seconds: false if it is not a time (errno is EINVAL) or
 * not below 2^63 ns (ERANGE).
 */
bool parse_duration(const char *text, __u64 *ns);

/* These print into a few static buffers: fit for one printf. */
#define TEXT_LENGTH	32
char *text_buffer(void);
const char *commas(__u64 n);
/* For sentences, "250.0 ms", and for tables, as parse_duration() takes it, "250ms". */
const char *duration(__u64 ns);
const char *span(__s64 ns);

/* CLOCK_MONOTONIC, in ns. */
__u64 now_ns(void);
/* CPU time of this process so far, user and system, in ns. */
__u64 cpu_ns(void);
/* Sleep until now_ns() is at least this. */
void sleep_until(__u64 ns);

/* splitmix64: the next of a sequence of random numbers, and its mixing step, a bijection. */
__u64 random_next(__u64 *state);
__u64 random_below(__u64 *state, __u64 bound);
__u64 mix64(__u64 x);

/* A step that visits each of 0..n-1 once: i = (i + stride) % n. */
__u64 stride_of(__u64 n);

/* What may still be taken without swapping, in bytes: a guess of the kernel's. */
__u64 mem_available(void);
/*
 * Free memory and the page cache, in bytes, as exact as can be; and how much less it is than
 * it was. MemAvailable would not do: it counts half of some caches that are in use.
 */
__u64 mem_free(void);
__u64 mem_taken(__u64 before);
/* Raise RLIMIT_NOFILE (as root fs.nr_open too) so far as needed; the limit then. */
__u64 raise_nofile(__u64 want);
/* As root raise fs.epoll.max_user_watches so far as needed. */
void raise_watches(__u64 want);

/*
 * How to get the kernel module: a sentence without its full stop. It names the package with the
 * kernel's headers if they are not installed, because DKMS then builds no module.
 */
const char *module_advice(void);

void *xcalloc(size_t n, size_t size);

#endif /* TOOLS_UTIL_H */
