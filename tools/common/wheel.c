// SPDX-License-Identifier: GPL-2.0
/* See wheel.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util.h"
#include "wheel.h"

#define DEVICE	"/dev/timerwheel"

int wheel_open(void)
{
	int wheel = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (wheel >= 0)
		return wheel;
	switch (errno) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		die("there is no %s: load the module first (make load) or use a guest (make demo)",
		    DEVICE);
	case EACCES:
	case EPERM:
		die("not allowed to open %s: be root, or ask its owner for access (ls -l %s)",
		    DEVICE, DEVICE);
	case EMFILE:
		die("this process has no descriptor left for %s: raise ulimit -n", DEVICE);
	default:
		die("cannot open %s: %s", DEVICE, strerror(errno));
	}
}

void wheel_setup(int wheel, struct timerwheel_setup *setup)
{
	setup->size = sizeof(*setup);
	if (ioctl(wheel, TIMERWHEEL_IOC_SETUP, setup))
		die("the kernel refuses SETUP with tick %llu ns, %u slots, capacity %u: %s",
		    setup->tick, setup->slots, setup->capacity, strerror(errno));
}

void wheel_info(int wheel, struct timerwheel_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	if (ioctl(wheel, TIMERWHEEL_IOC_INFO, info))
		die("INFO: %s: is %s of another version? (make unload load)",
		    strerror(errno), DEVICE);
}

void wheel_stats(int wheel, struct timerwheel_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	if (ioctl(wheel, TIMERWHEEL_IOC_STATS, stats))
		die("STATS: %s", strerror(errno));
}

void wheel_wait_freed(void)
{
	struct timerwheel_stats stats;
	struct timerwheel_info info;
	int probe = wheel_open(), i;

	for (i = 0; i < 10000; i++) {
		wheel_info(probe, &info);
		wheel_stats(probe, &stats);
		if (info.user_memory == stats.memory)
			break;
		usleep(1000);
	}
	if (i == 10000)
		die("%llu bytes of wheels that were closed are not freed after 10 s",
		    info.user_memory - stats.memory);
	close(probe);
}

static unsigned int batch(int wheel, unsigned long op, __u32 flags, const char *name,
			  void *elems, __u32 count, __u32 elem_size)
{
	unsigned int calls = 0;
	__u32 done = 0;

	while (done < count) {
		struct timerwheel_batch arg = {
			.size = sizeof(arg),
			.flags = flags,
			.elems = (unsigned long)elems + (unsigned long)done * elem_size,
			.count = count - done,
			.elem_size = elem_size,
		};
		int ret = ioctl(wheel, op, &arg);

		calls++;
		if (ret < 0 && errno != EINTR)
			die("%s of %u timers: %s", name, arg.count, strerror(errno));
		if (!ret)
			die("%s of %u timers did none of them", name, arg.count);
		if (ret > 0)
			done += ret;
	}
	return calls;
}

unsigned int wheel_add(int wheel, struct timerwheel_add *elems, __u32 count)
{
	return batch(wheel, TIMERWHEEL_IOC_ADD, 0, "ADD", elems, count, sizeof(*elems));
}

unsigned int wheel_move(int wheel, struct timerwheel_move *elems, __u32 count)
{
	return batch(wheel, TIMERWHEEL_IOC_MOVE, 0, "MOVE", elems, count, sizeof(*elems));
}

unsigned int wheel_remove(int wheel, struct timerwheel_remove *elems, __u32 count)
{
	return batch(wheel, TIMERWHEEL_IOC_REMOVE, 0, "REMOVE", elems, count, sizeof(*elems));
}

unsigned int wheel_move_handle(int wheel, __u32 flags, struct timerwheel_move_handle *elems,
			       __u32 count)
{
	return batch(wheel, TIMERWHEEL_IOC_MOVE_HANDLE, flags, "MOVE_HANDLE", elems, count,
		     sizeof(*elems));
}

unsigned int wheel_remove_handle(int wheel, struct timerwheel_remove_handle *elems, __u32 count)
{
	return batch(wheel, TIMERWHEEL_IOC_REMOVE_HANDLE, 0, "REMOVE_HANDLE", elems, count,
		     sizeof(*elems));
}

__u32 wheel_drain(int wheel, __u32 flags, struct timerwheel_entry *elems, __u32 count)
{
	struct timerwheel_batch arg = {
		.size = sizeof(arg),
		.flags = flags,
		.elems = (unsigned long)elems,
		.count = count,
		.elem_size = sizeof(*elems),
	};
	int ret;

	do {
		ret = ioctl(wheel, TIMERWHEEL_IOC_DRAIN, &arg);
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		die("DRAIN: %s", strerror(errno));
	return ret;
}

__u32 wheel_read(int wheel, struct timerwheel_event *events, __u32 count)
{
	ssize_t bytes = read(wheel, events, count * sizeof(*events));

	if (bytes < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return 0;
		die("read of events: %s", strerror(errno));
	}
	if (bytes % sizeof(*events))
		die("a read returned %zd bytes: that is not a whole number of events", bytes);
	return bytes / sizeof(*events);
}
