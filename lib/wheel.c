// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The public functions: the choice of a back end, calls on arrays of any length, waiting.
 *
 * Functions return errors and never set errno. Back ends may change errno; this file restores it.
 */
#define _FILE_OFFSET_BITS 64	/* required by: */
#define _TIME_BITS 64		/* seconds of CLOCK_REALTIME will need more than 32 bits */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend.h"

uint64_t ltw_clock_now(uint32_t clock)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };
	struct timespec now;

	clock_gettime(clocks[clock], &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/*
 * Read the settings that the program has not selected from the environment. Returns 0, or -EINVAL
 * for an unknown back end.
 */
static int ltw_choose(struct timerwheel_config *config)
{
	const char *name;

	if (!config->device)
		config->device = secure_getenv("TIMERWHEEL_DEVICE");
	if (!config->device)
		config->device = LTW_DEVICE_PATH;
	if (config->backend == TIMERWHEEL_BACKEND_DEVICE ||
	    config->backend == TIMERWHEEL_BACKEND_PROCESS)
		return 0;
	if (config->backend != TIMERWHEEL_BACKEND_AUTO)
		return -EINVAL;
	name = secure_getenv("TIMERWHEEL_BACKEND");
	if (!name || !strcmp(name, "auto"))
		return 0;
	if (!strcmp(name, "device"))
		config->backend = TIMERWHEEL_BACKEND_DEVICE;
	else if (!strcmp(name, "process"))
		config->backend = TIMERWHEEL_BACKEND_PROCESS;
	else
		return -EINVAL;
	return 0;
}

static int ltw_open_chosen(struct timerwheel **wheel, const struct timerwheel_config *config)
{
	int err;

	if (config->backend == TIMERWHEEL_BACKEND_PROCESS)
		return ltw_process_open(wheel, config);
	err = ltw_device_open(wheel, config);
	if (config->backend == TIMERWHEEL_BACKEND_AUTO &&
	    (err == -ENOENT || err == -ENXIO || err == -ENODEV))
		err = ltw_process_open(wheel, config);
	return err;
}

int timerwheel_open(struct timerwheel **wheel, const struct timerwheel_config *config)
{
	struct timerwheel_config chosen = { 0 };
	int saved = errno, err;

	if (config)
		chosen = *config;
	err = ltw_choose(&chosen);
	if (!err)
		err = ltw_open_chosen(wheel, &chosen);
	errno = saved;
	return err;
}

int timerwheel_adopt(struct timerwheel **wheel, int fd, bool table)
{
	int saved = errno, err;

	err = ltw_device_adopt(wheel, fd, table);
	errno = saved;
	return err;
}

void timerwheel_close(struct timerwheel *wheel)
{
	int saved = errno;

	if (wheel)
		wheel->ops->close(wheel);
	errno = saved;
}

enum timerwheel_backend timerwheel_backend(const struct timerwheel *wheel)
{
	return wheel->ops->backend;
}

int timerwheel_fd(const struct timerwheel *wheel)
{
	return wheel->fd;
}

int timerwheel_share(const struct timerwheel *wheel)
{
	return wheel->ops->share(wheel);
}

int timerwheel_info(struct timerwheel *wheel, struct timerwheel_info *info)
{
	int saved = errno, err;

	err = wheel->ops->info(wheel, info);
	errno = saved;
	return err;
}

int timerwheel_stats(struct timerwheel *wheel, struct timerwheel_stats *stats)
{
	int saved = errno, err;

	err = wheel->ops->stats(wheel, stats);
	errno = saved;
	return err;
}

uint64_t timerwheel_now(struct timerwheel *wheel)
{
	int saved = errno;
	uint64_t now;

	now = wheel->ops->now(wheel);
	errno = saved;
	return now;
}

static size_t ltw_most(size_t count)
{
	return count < TIMERWHEEL_BATCH_MAX ? count : TIMERWHEEL_BATCH_MAX;
}

/* Repeat a call until all elements are processed or it fails. Signals may end a call early. */
static long ltw_batches(struct timerwheel *wheel, enum ltw_kind kind, uint32_t flags, void *elems,
			size_t size, size_t count)
{
	int saved = errno;
	size_t done = 0;
	long n = 0;

	for (; done < count; done += n) {
		n = wheel->ops->batch(wheel, kind, flags, (char *)elems + done * size,
				      ltw_most(count - done));
		if (n <= 0)
			break;
	}
	errno = saved;
	return done ? (long)done : n;
}

long timerwheel_add(struct timerwheel *wheel, struct timerwheel_add *elems, size_t count)
{
	return ltw_batches(wheel, LTW_ADD, 0, elems, sizeof(*elems), count);
}

long timerwheel_add_socket(struct timerwheel *wheel, struct timerwheel_add_socket *elems,
			   size_t count)
{
	return ltw_batches(wheel, LTW_ADD_SOCKET, 0, elems, sizeof(*elems), count);
}

long timerwheel_move(struct timerwheel *wheel, struct timerwheel_move *elems, size_t count)
{
	return ltw_batches(wheel, LTW_MOVE, 0, elems, sizeof(*elems), count);
}

long timerwheel_remove(struct timerwheel *wheel, struct timerwheel_remove *elems, size_t count)
{
	return ltw_batches(wheel, LTW_REMOVE, 0, elems, sizeof(*elems), count);
}

long timerwheel_get(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count)
{
	return ltw_batches(wheel, LTW_GET, 0, elems, sizeof(*elems), count);
}

long timerwheel_move_handles(struct timerwheel *wheel, struct timerwheel_move_handle *elems,
			     size_t count, uint32_t flags)
{
	return ltw_batches(wheel, LTW_MOVE_HANDLE, flags, elems, sizeof(*elems), count);
}

long timerwheel_remove_handles(struct timerwheel *wheel, struct timerwheel_remove_handle *elems,
			       size_t count)
{
	return ltw_batches(wheel, LTW_REMOVE_HANDLE, 0, elems, sizeof(*elems), count);
}

long timerwheel_list(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count,
		     uint64_t *cursor)
{
	int saved = errno;
	size_t done = 0, want;
	long n = 0;

	while (done < count) {
		want = ltw_most(count - done);
		n = wheel->ops->list(wheel, elems + done, want, cursor);
		if (n > 0)
			done += n;
		if (n != (long)want)
			break;
	}
	errno = saved;
	return done ? (long)done : n;
}

long timerwheel_drain(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count,
		      uint32_t flags)
{
	int saved = errno;
	size_t done = 0, want;
	long n = 0;

	/* Make at least one call: TIMERWHEEL_DRAIN_CLOSE takes effect even if @count is 0. */
	do {
		want = ltw_most(count - done);
		n = wheel->ops->drain(wheel, elems + done, want, flags);
		if (n > 0)
			done += n;
	} while (n == (long)want && done < count);
	errno = saved;
	return done ? (long)done : n;
}

long timerwheel_advance(struct timerwheel *wheel, uint64_t time, uint32_t flags)
{
	int saved = errno;
	long n;

	n = wheel->ops->advance(wheel, time, flags);
	errno = saved;
	return n;
}

long timerwheel_take(struct timerwheel *wheel, struct timerwheel_event *events, size_t count)
{
	int saved = errno;
	long n = 0;

	if (count)
		n = wheel->ops->take(wheel, events, ltw_most(count));
	errno = saved;
	return n;
}

/* Sleep until there may be events (returns 1), until @end (0) or a signal (-EINTR). */
static int ltw_sleep(const struct timerwheel *wheel, bool ends, uint64_t end)
{
	struct pollfd poll_for = { .fd = wheel->fd, .events = POLLIN };
	struct timespec left = { 0, 0 };
	uint64_t now;
	int saved = errno, n;

	if (ends) {
		now = ltw_clock_now(TIMERWHEEL_CLOCK_MONOTONIC);
		if (now >= end)
			return 0;
		left.tv_sec = (end - now) / 1000000000;
		left.tv_nsec = (end - now) % 1000000000;
	}
	n = ppoll(&poll_for, 1, ends ? &left : NULL, NULL);
	if (n < 0)
		n = -errno;
	errno = saved;
	/* After a timeout the caller takes events again; the next call returns 0. */
	return n < 0 ? n : 1;
}

long timerwheel_wait(struct timerwheel *wheel, struct timerwheel_event *events, size_t count,
		     int64_t timeout)
{
	uint64_t end = 0;
	long n;

	if (timeout > 0)
		end = ltw_clock_now(TIMERWHEEL_CLOCK_MONOTONIC) + timeout;
	if (!count)
		return 0;
	for (;;) {
		n = timerwheel_take(wheel, events, count);
		if (n || !timeout)
			return n;
		n = ltw_sleep(wheel, timeout > 0, end);
		if (n <= 0)
			return n;
	}
}

int timerwheel_monitor(struct timerwheel *wheel, uint32_t events, uint32_t flags)
{
	int saved = errno, fd;

	fd = wheel->ops->monitor(wheel, events, flags);
	errno = saved;
	return fd;
}

int timerwheel_table(const struct timerwheel *wheel, struct timerwheel_table *table)
{
	if (!wheel->table.entries)
		return -ENOENT;
	*table = wheel->table;
	return 0;
}

int timerwheel_arm(const struct timerwheel *wheel, uint32_t index, uint32_t generation,
		   uint64_t deadline)
{
	if (!wheel->table.entries)
		return -EINVAL;
	return timerwheel_table_arm(&wheel->table, index, generation, deadline);
}

int timerwheel_refresh(const struct timerwheel *wheel, uint32_t index, uint32_t generation,
		       uint64_t deadline)
{
	if (!wheel->table.entries)
		return -EINVAL;
	return timerwheel_table_refresh(&wheel->table, index, generation, deadline);
}

int timerwheel_cancel(const struct timerwheel *wheel, uint32_t index, uint32_t generation)
{
	if (!wheel->table.entries)
		return -EINVAL;
	return timerwheel_table_cancel(&wheel->table, index, generation);
}
