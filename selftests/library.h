/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for the tests of lib, built twice: for wheels of the device and, with PROCESS defined,
 * for wheels inside the process, which need no module.
 */
#ifndef LIBRARY_H
#define LIBRARY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "../lib/timerwheel.h"
#include "lib/wrap.h"

/* As in tw_test.h. */
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "kselftest_harness.h"
#pragma GCC diagnostic pop
#include "only.h"

/* As in tw_test.h. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 180

#ifdef PROCESS
#define BACKEND		TIMERWHEEL_BACKEND_PROCESS
#define ON_DEVICE	false
#else
#define BACKEND		TIMERWHEEL_BACKEND_DEVICE
#define ON_DEVICE	true
#endif

#define POISON	0xA5	/* every byte of an output before a call */
#define USEC	1000ULL
#define MSEC	1000000ULL
#define SEC	1000000000ULL
#define HOUR	(3600 * SEC)

/*
 * Timeout for events that must come, longer than anything takes on a slow machine: in ns for
 * timerwheel_wait(), in ms for poll()
 */
#define PATIENCE	(60 * SEC)
#define PATIENCE_MS	60000

static inline void poison(void *p, size_t size)
{
	memset(p, POISON, size);
}

static inline bool poisoned(const void *p, size_t size)
{
	const unsigned char *c = p;

	while (size && *c == POISON) {
		c++;
		size--;
	}
	return !size;
}

/* xorshift64*: *state must not be 0 */
static inline uint64_t rand64(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

/* The seed of a random test: TW_SEED, or a new one each time. Print it. */
static inline uint64_t seed(void)
{
	const char *s = getenv("TW_SEED");
	uint64_t n = s ? strtoull(s, NULL, 0) : clock_ns(CLOCK_REALTIME);

	return n ? n : 1;
}

static inline void nap(uint64_t ns)
{
	struct timespec ts = { .tv_sec = ns / SEC, .tv_nsec = ns % SEC };

	while (nanosleep(&ts, &ts))
		;
}

/* Was memory lost? Only AddressSanitizer can tell, so leaks are checked here. */
static inline bool leaks(void)
{
#ifdef __SANITIZE_ADDRESS__
	return __lsan_do_recoverable_leak_check();
#else
	return false;
#endif
}

/* A wheel with a clock; NULL on failure */
static inline struct timerwheel *wheel_of(uint32_t clock)
{
	struct timerwheel_config config = { .backend = BACKEND, .clock = clock };
	struct timerwheel *wheel;

	return timerwheel_open(&wheel, &config) ? NULL : wheel;
}

/* A MANUAL wheel whose times are exact, with a deadline table and room for @capacity timers */
static inline struct timerwheel *wheel_manual_of(uint32_t capacity, uint32_t ring, bool table)
{
	struct timerwheel_config config = {
		.backend = BACKEND, .clock = TIMERWHEEL_CLOCK_MANUAL, .tick = 1,
		.capacity = capacity, .ring = ring, .table = table,
	};
	struct timerwheel *wheel;

	return timerwheel_open(&wheel, &config) ? NULL : wheel;
}

static inline struct timerwheel *wheel_manual(uint32_t capacity, uint32_t ring)
{
	return wheel_manual_of(capacity, ring, false);
}

/* One element in a call: its result. A call that fails returns -10000 minus its errno. */
static inline int result_of(long ret, int result)
{
	return ret == 1 ? result : -10000 + (int)ret;
}

static inline int add_elem(struct timerwheel *wheel, struct timerwheel_add *add)
{
	long ret;

	poison(&add->result, 3 * sizeof(add->result));
	ret = timerwheel_add(wheel, add, 1);
	return result_of(ret, add->result);
}

static inline int add(struct timerwheel *wheel, uint64_t key, uint64_t value, uint64_t deadline,
		      uint32_t flags)
{
	struct timerwheel_add elem = {
		.key = key, .value = value, .deadline = deadline, .flags = flags,
	};

	return add_elem(wheel, &elem);
}

static inline int move(struct timerwheel *wheel, uint64_t key, uint64_t deadline, uint32_t flags)
{
	struct timerwheel_move elem = { .key = key, .deadline = deadline, .flags = flags };
	long ret = timerwheel_move(wheel, &elem, 1);

	return result_of(ret, elem.result);
}

static inline int remove_elem(struct timerwheel *wheel, struct timerwheel_remove *elem)
{
	long ret;

	poison(&elem->value, sizeof(elem->value));
	poison(&elem->left, sizeof(elem->left));
	poison(&elem->result, sizeof(elem->result));
	ret = timerwheel_remove(wheel, elem, 1);
	return result_of(ret, elem->result);
}

static inline int rm(struct timerwheel *wheel, uint64_t key)
{
	struct timerwheel_remove elem = { .key = key };

	return remove_elem(wheel, &elem);
}

static inline int move_handle(struct timerwheel *wheel, uint32_t index, uint32_t generation,
			      uint64_t deadline, uint32_t flags)
{
	struct timerwheel_move_handle elem = {
		.deadline = deadline, .index = index, .generation = generation,
	};
	long ret = timerwheel_move_handles(wheel, &elem, 1, flags);

	return result_of(ret, elem.result);
}

/* @value: out, poisoned first */
static inline int rm_handle(struct timerwheel *wheel, uint32_t index, uint32_t generation,
			    uint64_t *value)
{
	struct timerwheel_remove_handle elem = { .index = index, .generation = generation };
	long ret;

	poison(&elem.value, sizeof(elem.value));
	ret = timerwheel_remove_handles(wheel, &elem, 1);
	*value = elem.value;
	return result_of(ret, elem.result);
}

static inline int get(struct timerwheel *wheel, uint64_t key, struct timerwheel_entry *entry)
{
	long ret;

	poison(entry, sizeof(*entry));
	entry->key = key;
	entry->flags = 0;
	ret = timerwheel_get(wheel, entry, 1);
	return result_of(ret, entry->result);
}

/* As timerwheel_take(), with unused elements poisoned */
static inline long take(struct timerwheel *wheel, struct timerwheel_event *events, size_t count)
{
	long n;

	poison(events, count * sizeof(*events));
	n = timerwheel_take(wheel, events, count);
	if (n < 0 || n > (long)count || !poisoned(events + n, (count - n) * sizeof(*events)))
		return n < 0 ? n : -EPROTO;
	return n;
}

static inline bool readable(struct timerwheel *wheel)
{
	struct pollfd p = { .fd = timerwheel_fd(wheel), .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents == POLLIN;
}

/* Each arming has ended in exactly one way, or has not ended. */
static inline bool balanced(struct timerwheel *wheel)
{
	struct timerwheel_stats s;

	poison(&s, sizeof(s));
	return !timerwheel_stats(wheel, &s) &&
	       s.armed + s.rearmed == s.delivered + s.removed + s.replaced + s.drained +
				      s.pending + s.due + s.parked;
}

/* The end of a child: its exit status, or 1000 + the signal that killed it */
static inline int reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

#endif /* LIBRARY_H */
