// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The way from a program to a back end: which one it is, calls on arrays of any length, waiting.
 *
 * A back end may use what sets errno; here it is put back, for errors are results and nothing else.
 */
#define _FILE_OFFSET_BITS 64	/* without it there is no: */
#define _TIME_BITS 64		/* CLOCK_REALTIME will not fit into 32 bits of seconds */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend.h"

uint64_t tw_clock_now(uint32_t clock)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };
	struct timespec now;

	clock_gettime(clocks[clock], &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* What a program leaves to the user of it. Returns 0, or -EINVAL: that is no back end. */
static int tw_choose(struct tw_config *config)
{
	const char *name;

	if (!config->device)
		config->device = secure_getenv("TIMERWHEEL_DEVICE");
	if (!config->device)
		config->device = TW_DEVICE_PATH;
	if (config->backend != TW_AUTO)
		return config->backend == TW_DEVICE || config->backend == TW_PROCESS ? 0 : -EINVAL;
	name = secure_getenv("TIMERWHEEL_BACKEND");
	if (!name || !strcmp(name, "auto"))
		return 0;
	if (!strcmp(name, "device"))
		config->backend = TW_DEVICE;
	else if (!strcmp(name, "process"))
		config->backend = TW_PROCESS;
	else
		return -EINVAL;
	return 0;
}

static int tw_open_chosen(struct tw_wheel **wheel, const struct tw_config *config)
{
	int err;

	if (config->backend == TW_PROCESS)
		return tw_process_open(wheel, config);
	err = tw_device_open(wheel, config);
	if (config->backend == TW_AUTO && (err == -ENOENT || err == -ENXIO || err == -ENODEV))
		err = tw_process_open(wheel, config);
	return err;
}

int tw_open(struct tw_wheel **wheel, const struct tw_config *config)
{
	struct tw_config chosen = { 0 };
	int saved = errno, err;

	if (config)
		chosen = *config;
	err = tw_choose(&chosen);
	if (!err)
		err = tw_open_chosen(wheel, &chosen);
	errno = saved;
	return err;
}

int tw_adopt(struct tw_wheel **wheel, int fd, bool table)
{
	int saved = errno, err;

	err = tw_device_adopt(wheel, fd, table);
	errno = saved;
	return err;
}

void tw_close(struct tw_wheel *wheel)
{
	int saved = errno;

	if (wheel)
		wheel->ops->close(wheel);
	errno = saved;
}

enum tw_backend tw_backend(const struct tw_wheel *wheel)
{
	return wheel->ops->backend;
}

int tw_fd(const struct tw_wheel *wheel)
{
	return wheel->fd;
}

int tw_share(const struct tw_wheel *wheel)
{
	return wheel->ops->share(wheel);
}

int tw_info(struct tw_wheel *wheel, struct timerwheel_info *info)
{
	int saved = errno, err;

	err = wheel->ops->info(wheel, info);
	errno = saved;
	return err;
}

int tw_stats(struct tw_wheel *wheel, struct timerwheel_stats *stats)
{
	int saved = errno, err;

	err = wheel->ops->stats(wheel, stats);
	errno = saved;
	return err;
}

uint64_t tw_now(struct tw_wheel *wheel)
{
	int saved = errno;
	uint64_t now;

	now = wheel->ops->now(wheel);
	errno = saved;
	return now;
}

static size_t tw_most(size_t count)
{
	return count < TIMERWHEEL_BATCH_MAX ? count : TIMERWHEEL_BATCH_MAX;
}

/* As many calls as needed, also if a signal cuts one short. One that fails is the last. */
static long tw_batches(struct tw_wheel *wheel, enum tw_kind kind, void *elems, size_t size,
		       size_t count)
{
	int saved = errno;
	size_t done = 0;
	long n = 0;

	for (; done < count; done += n) {
		n = wheel->ops->batch(wheel, kind, (char *)elems + done * size,
				      tw_most(count - done));
		if (n <= 0)
			break;
	}
	errno = saved;
	return done ? (long)done : n;
}

long tw_add(struct tw_wheel *wheel, struct timerwheel_add *elems, size_t count)
{
	return tw_batches(wheel, TW_ADD, elems, sizeof(*elems), count);
}

long tw_move(struct tw_wheel *wheel, struct timerwheel_move *elems, size_t count)
{
	return tw_batches(wheel, TW_MOVE, elems, sizeof(*elems), count);
}

long tw_remove(struct tw_wheel *wheel, struct timerwheel_remove *elems, size_t count)
{
	return tw_batches(wheel, TW_REMOVE, elems, sizeof(*elems), count);
}

long tw_get(struct tw_wheel *wheel, struct timerwheel_entry *elems, size_t count)
{
	return tw_batches(wheel, TW_GET, elems, sizeof(*elems), count);
}

long tw_list(struct tw_wheel *wheel, struct timerwheel_entry *elems, size_t count,
	     uint64_t *cursor)
{
	int saved = errno;
	size_t done = 0, want;
	long n = 0;

	while (done < count) {
		want = tw_most(count - done);
		n = wheel->ops->list(wheel, elems + done, want, cursor);
		if (n > 0)
			done += n;
		if (n != (long)want)
			break;
	}
	errno = saved;
	return done ? (long)done : n;
}

long tw_drain(struct tw_wheel *wheel, struct timerwheel_entry *elems, size_t count,
	      uint32_t flags)
{
	int saved = errno;
	size_t done = 0, want;
	long n = 0;

	/* Once at least: with TIMERWHEEL_DRAIN_CLOSE there is something to do for none, too. */
	do {
		want = tw_most(count - done);
		n = wheel->ops->drain(wheel, elems + done, want, flags);
		if (n > 0)
			done += n;
	} while (n == (long)want && done < count);
	errno = saved;
	return done ? (long)done : n;
}

long tw_advance(struct tw_wheel *wheel, uint64_t time, uint32_t flags)
{
	int saved = errno;
	long n;

	n = wheel->ops->advance(wheel, time, flags);
	errno = saved;
	return n;
}

long tw_take(struct tw_wheel *wheel, struct timerwheel_event *events, size_t count)
{
	int saved = errno;
	long n = 0;

	if (count)
		n = wheel->ops->take(wheel, events, tw_most(count));
	errno = saved;
	return n;
}

/* Sleep until there may be events, or until @end. Returns 0: the time is over; 1; -EINTR. */
static int tw_sleep(const struct tw_wheel *wheel, bool ends, uint64_t end)
{
	struct pollfd poll_for = { .fd = wheel->fd, .events = POLLIN };
	struct timespec left = { 0, 0 };
	uint64_t now;
	int saved = errno, n;

	if (ends) {
		now = tw_clock_now(TIMERWHEEL_CLOCK_MONOTONIC);
		if (now >= end)
			return 0;
		left.tv_sec = (end - now) / 1000000000;
		left.tv_nsec = (end - now) % 1000000000;
	}
	n = ppoll(&poll_for, 1, ends ? &left : NULL, NULL);
	if (n < 0)
		n = -errno;
	errno = saved;
	/* Time that is over is seen above, after one more look for events. */
	return n < 0 ? n : 1;
}

long tw_wait(struct tw_wheel *wheel, struct timerwheel_event *events, size_t count, int timeout)
{
	uint64_t end = 0;
	long n;

	if (timeout > 0)
		end = tw_clock_now(TIMERWHEEL_CLOCK_MONOTONIC) + timeout * 1000000ULL;
	if (!count)
		return 0;
	for (;;) {
		n = tw_take(wheel, events, count);
		if (n || !timeout)
			return n;
		n = tw_sleep(wheel, timeout > 0, end);
		if (n <= 0)
			return n;
	}
}

int tw_monitor(struct tw_wheel *wheel, uint32_t events, uint32_t flags)
{
	int saved = errno, fd;

	fd = wheel->ops->monitor(wheel, events, flags);
	errno = saved;
	return fd;
}

int tw_table(const struct tw_wheel *wheel, struct tw_table *table)
{
	if (!wheel->table.words)
		return -ENOENT;
	*table = wheel->table;
	return 0;
}
