// SPDX-License-Identifier: MIT OR GPL-2.0
/* The device back end: each operation is a system call on /dev/timerwheel. */
#define _FILE_OFFSET_BITS 64	/* the ring is mapped at an offset beyond 32 bits */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "backend.h"

#ifndef RWF_NOWAIT	/* musl does not have it */
#define RWF_NOWAIT	8
#endif

/* Maximum number of checks of the ring in a call. More than three: another process writes to it. */
#define LTW_RING_LOOKS	8U

/**
 * struct ltw_device - a wheel of the kernel module
 * @wheel: the common part
 * @ring: its event ring; its @ring is NULL if there is none
 * @ring_size: size of the mapping of the ring, in bytes
 * @table_size: size of the mapping of the deadline table, in bytes
 */
struct ltw_device {
	struct timerwheel wheel;
	struct timerwheel_mapped_ring ring;
	size_t ring_size;
	size_t table_size;
};

static struct ltw_device *ltw_device(struct timerwheel *wheel)
{
	return (struct ltw_device *)wheel;
}

/* Make an ioctl. Returns its result or a negative errno. */
static int ltw_call(const struct timerwheel *wheel, unsigned long call, void *arg)
{
	int ret = ioctl(wheel->fd, call, arg);

	return ret < 0 ? -errno : ret;
}

/* Round a size up to whole pages. Returns 0 if the address space is too small for it. */
static size_t ltw_pages(uint64_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return size > SIZE_MAX - page ? 0 : (size + page - 1) / page * page;
}

static void ltw_device_close(struct timerwheel *wheel)
{
	struct ltw_device *device = ltw_device(wheel);

	if (device->ring.ring)
		munmap(device->ring.ring, device->ring_size);
	if (wheel->table.entries)
		munmap(wheel->table.entries, device->table_size);
	if (wheel->fd >= 0)
		close(wheel->fd);
	free(device);
}

static int ltw_device_share(const struct timerwheel *wheel)
{
	return wheel->fd;
}

static int ltw_device_info(struct timerwheel *wheel, struct timerwheel_info *info)
{
	*info = (struct timerwheel_info){ .size = sizeof(*info) };
	return ltw_call(wheel, TIMERWHEEL_IOC_INFO, info);
}

static int ltw_device_stats(struct timerwheel *wheel, struct timerwheel_stats *stats)
{
	*stats = (struct timerwheel_stats){ .size = sizeof(*stats) };
	return ltw_call(wheel, TIMERWHEEL_IOC_STATS, stats);
}

static uint64_t ltw_device_now(struct timerwheel *wheel)
{
	struct timerwheel_info info;

	if (wheel->clock != TIMERWHEEL_CLOCK_MANUAL)
		return ltw_clock_now(wheel->clock);
	return ltw_device_info(wheel, &info) ? 0 : info.now;
}

static long ltw_device_batch(struct timerwheel *wheel, enum ltw_kind kind, uint32_t flags,
			     void *elems, size_t count)
{
	static const struct {
		unsigned long call;
		size_t size;
	} kinds[] = {
		[LTW_ADD] = { TIMERWHEEL_IOC_ADD, sizeof(struct timerwheel_add) },
		[LTW_MOVE] = { TIMERWHEEL_IOC_MOVE, sizeof(struct timerwheel_move) },
		[LTW_REMOVE] = { TIMERWHEEL_IOC_REMOVE, sizeof(struct timerwheel_remove) },
		[LTW_GET] = { TIMERWHEEL_IOC_GET, sizeof(struct timerwheel_entry) },
		[LTW_MOVE_HANDLE] = { TIMERWHEEL_IOC_MOVE_HANDLE,
				      sizeof(struct timerwheel_move_handle) },
		[LTW_REMOVE_HANDLE] = { TIMERWHEEL_IOC_REMOVE_HANDLE,
					sizeof(struct timerwheel_remove_handle) },
		[LTW_ADD_SOCKET] = { TIMERWHEEL_IOC_ADD_SOCKET,
				     sizeof(struct timerwheel_add_socket) },
	};
	struct timerwheel_batch batch = {
		.size = sizeof(batch),
		.flags = flags,
		.elems = (uintptr_t)elems,
		.count = count,
		.elem_size = kinds[kind].size,
	};

	return ltw_call(wheel, kinds[kind].call, &batch);
}

static long ltw_device_list(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count,
			    uint64_t *cursor)
{
	struct timerwheel_batch batch = {
		.size = sizeof(batch),
		.elems = (uintptr_t)elems,
		.count = count,
		.elem_size = sizeof(*elems),
		.cursor = *cursor,
	};
	int n;

	n = ltw_call(wheel, TIMERWHEEL_IOC_LIST, &batch);
	*cursor = batch.cursor;
	return n;
}

static long ltw_device_drain(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count,
			     uint32_t flags)
{
	struct timerwheel_batch batch = {
		.size = sizeof(batch),
		.flags = flags,
		.elems = (uintptr_t)elems,
		.count = count,
		.elem_size = sizeof(*elems),
	};

	return ltw_call(wheel, TIMERWHEEL_IOC_DRAIN, &batch);
}

static long ltw_device_advance(struct timerwheel *wheel, uint64_t time, uint32_t flags)
{
	struct timerwheel_advance advance = {
		.size = sizeof(advance),
		.flags = flags,
		.time = time,
	};
	int err;

	err = ltw_call(wheel, TIMERWHEEL_IOC_ADVANCE, &advance);
	return err < 0 ? err : (long)advance.expired;
}

static long ltw_device_read(struct timerwheel *wheel, struct timerwheel_event *events, size_t count)
{
	struct iovec to = { .iov_base = events, .iov_len = count * sizeof(*events) };
	ssize_t n;

	/*
	 * RWF_NOWAIT is needed because other users of the file description may have cleared
	 * O_NONBLOCK. The position, -1, is passed in two halves. Older versions of musl have no
	 * preadv2().
	 */
	n = syscall(SYS_preadv2, (long)wheel->fd, &to, 1L, -1L, -1L, (long)RWF_NOWAIT);
	if (n >= 0)
		return n / sizeof(*events);
	return errno == EAGAIN ? 0 : -errno;
}

static long ltw_device_take_ring(struct timerwheel *wheel, struct timerwheel_event *events,
				 size_t count)
{
	struct timerwheel_mapped_ring *ring = &ltw_device(wheel)->ring;
	unsigned int n, looks;
	int err;

	for (looks = 0; looks < LTW_RING_LOOKS; looks++) {
		n = timerwheel_ring_take(ring, events, count);
		if (n)
			return n;
		switch (timerwheel_ring_sleep(ring)) {
		case TIMERWHEEL_RING_TAKE:
			break;
		case TIMERWHEEL_RING_FLOW:
			err = ltw_call(wheel, TIMERWHEEL_IOC_FLOW, NULL);
			if (err < 0)
				return err;
			break;
		case TIMERWHEEL_RING_POLL:
			return 0;
		}
	}
	return 0;
}

static long ltw_device_take(struct timerwheel *wheel, struct timerwheel_event *events, size_t count)
{
	if (ltw_device(wheel)->ring.ring)
		return ltw_device_take_ring(wheel, events, count);
	return ltw_device_read(wheel, events, count);
}

static int ltw_device_monitor(struct timerwheel *wheel, uint32_t events, uint32_t flags)
{
	struct timerwheel_monitor monitor = {
		.size = sizeof(monitor),
		.flags = flags,
		.events = events,
	};

	return ltw_call(wheel, TIMERWHEEL_IOC_MONITOR, &monitor);
}

static const struct ltw_ops ltw_device_ops = {
	.backend = TIMERWHEEL_BACKEND_DEVICE,
	.close = ltw_device_close,
	.share = ltw_device_share,
	.info = ltw_device_info,
	.stats = ltw_device_stats,
	.now = ltw_device_now,
	.batch = ltw_device_batch,
	.list = ltw_device_list,
	.drain = ltw_device_drain,
	.advance = ltw_device_advance,
	.take = ltw_device_take,
	.monitor = ltw_device_monitor,
};

/*
 * Check that @fd is the module's device. Another file can answer INFO with any numbers (a file in a
 * FUSE mount does what its server wants), and accesses to its mappings can raise SIGBUS. Without
 * sysfs every character device passes, because only root can create one. Returns 0, -ENOTTY or
 * another error.
 */
static int ltw_device_check(int fd)
{
	char path[64], class[256] = "";
	const char *name;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISCHR(st.st_mode))
		return -ENOTTY;
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/subsystem", major(st.st_rdev),
		 minor(st.st_rdev));
	if (readlink(path, class, sizeof(class) - 1) < 0)
		return 0;
	name = strrchr(class, '/');
	return name && !strcmp(name, "/timerwheel") ? 0 : -ENOTTY;
}

/*
 * Check the fields of INFO from which sizes, shifts and indices are computed. A newer module may
 * have larger events, but only in a ring: timerwheel_ring_next() skips the unknown part, but read
 * cannot.
 */
static bool ltw_info_valid(const struct timerwheel_info *info, bool table)
{
	const __u32 known = sizeof(struct timerwheel_event);

	if (info->clock > TIMERWHEEL_CLOCK_MANUAL)
		return false;
	if (info->ring ? info->event_size < known || info->event_size % 8 :
			 info->event_size != known)
		return false;
	if (info->ring & (info->ring - 1))
		return false;
	/* two of the bits are the state */
	return !table || (info->generation_bits > 2 && info->generation_bits <= 32);
}

/* Map @size bytes of a wheel. Returns MAP_FAILED and sets errno on failure. */
static void *ltw_map(const struct timerwheel *wheel, size_t size, uint64_t offset)
{
	if (!size) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, wheel->fd, offset);
}

/* The error of ltw_map(). EAGAIN: the process locks all memory, and may not lock more. */
static int ltw_map_error(void)
{
	return errno == EAGAIN ? -ENOMEM : -errno;
}

/* Map the event ring, if the wheel has one, and the deadline table if @table. */
static int ltw_device_map(struct ltw_device *device, const struct timerwheel_info *info, bool table)
{
	void *map;

	if (info->ring) {
		device->ring_size = ltw_pages(TIMERWHEEL_RING_EVENTS +
					      (uint64_t)info->ring * info->event_size);
		map = ltw_map(&device->wheel, device->ring_size, TIMERWHEEL_MMAP_RING);
		if (map == MAP_FAILED)
			return ltw_map_error();
		device->ring.ring = map;
		device->ring.events = info->ring;
		device->ring.event_size = info->event_size;
	}
	if (table) {
		/* Index 0 also has an entry. */
		device->table_size = ltw_pages((info->capacity + (uint64_t)1) * sizeof(__u64));
		map = ltw_map(&device->wheel, device->table_size, TIMERWHEEL_MMAP_DEADLINES);
		if (map == MAP_FAILED)
			return ltw_map_error();
		device->wheel.table.entries = map;
		device->wheel.table.bits = info->generation_bits;
	}
	return 0;
}

int ltw_device_adopt(struct timerwheel **wheel, int fd, bool table)
{
	struct timerwheel_info info;
	struct ltw_device *device;
	int err;

	device = calloc(1, sizeof(*device));
	if (!device)
		return -ENOMEM;
	device->wheel.ops = &ltw_device_ops;
	device->wheel.fd = fd;
	err = ltw_device_check(fd);
	if (!err)
		err = ltw_device_info(&device->wheel, &info);
	if (!err && table && !(info.flags & TIMERWHEEL_INFO_TABLE))
		err = -ENOENT;
	if (!err && !ltw_info_valid(&info, table))
		err = -EPROTO;
	if (!err)
		err = ltw_device_map(device, &info, table);
	if (err) {
		device->wheel.fd = -1;
		ltw_device_close(&device->wheel);
		return err;
	}
	device->wheel.clock = info.clock;
	*wheel = &device->wheel;
	return 0;
}

int ltw_device_open(struct timerwheel **wheel, const struct timerwheel_config *config)
{
	struct timerwheel_setup setup = {
		.size = sizeof(setup),
		.flags = (config->clock_set ? TIMERWHEEL_SETUP_CLOCK_SET : 0) |
			 (config->alarm ? TIMERWHEEL_SETUP_ALARM : 0) |
			 (config->table ? TIMERWHEEL_SETUP_TABLE : 0) |
			 (config->resident ? TIMERWHEEL_SETUP_RESIDENT : 0),
		.clock = config->clock,
		.slots = config->slots,
		.tick = config->tick,
		.capacity = config->capacity,
		.wake_events = config->wake_events,
		.wake_ns = config->wake_ns,
		.slack = config->slack,
		.ring = config->ring,
		.event_size = sizeof(struct timerwheel_event),
	};
	int fd, err;

	fd = open(config->device, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	err = ioctl(fd, TIMERWHEEL_IOC_SETUP, &setup) < 0 ? -errno : 0;
	if (!err)
		err = ltw_device_adopt(wheel, fd, config->table || config->resident);
	if (err)
		close(fd);
	return err;
}
