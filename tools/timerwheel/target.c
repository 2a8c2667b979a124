// SPDX-License-Identifier: GPL-2.0
/* Selection of the wheel. Errors are reported with what to do about them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "threads.h"

const char *clock_text(__u32 clock)
{
	static const char *const names[] = { "monotonic", "boottime", "realtime", "manual" };

	return clock < ARRAY_SIZE(names) ? names[clock] : "unknown";
}

__u64 clock_ns(__u32 clock)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };
	struct timespec ts;

	clock_gettime(clocks[clock], &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

__u64 wall_ns(void)
{
	return clock_ns(TIMERWHEEL_CLOCK_REALTIME);
}

bool wall_synchronized(void)
{
	struct timex state = {};
	int result = adjtimex(&state);

	return result >= 0 && result != TIME_ERROR;
}

void boot_id(char *text, size_t size)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	char id[40] = "", space[32] = "";

	if (file && !fgets(id, sizeof(id), file))
		*id = '\0';
	if (file)
		fclose(file);
	id[strcspn(id, "\n")] = '\0';
	/* Kernels without time namespaces have no such link. */
	if (readlink("/proc/self/ns/time", space, sizeof(space) - 1) < 0)
		*space = '\0';
	snprintf(text, size, "%s%s%s", id, *id && *space ? "," : "", *id ? space : "");
}

bool target_given(void)
{
	return opt.given[OPT_FD] || opt.given[OPT_PID];
}

/* Report a descriptor that is not a wheel, and end the program. */
static noreturn void no_wheel(const char *what, int fd)
{
	struct stat st;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		die("%s is a regular file, not a wheel. If it is /dev/timerwheel, a shell created it because there was no device: remove it, and %s",
		    what, module_advice());
	die("%s is not a wheel: open /dev/timerwheel, in a shell with exec 3<>/dev/timerwheel",
	    what);
}

/* Check that a descriptor is a wheel. A monitor does not support this call either. */
static void must_be_wheel(const char *what, int fd)
{
	struct timerwheel_info info = { .size = sizeof(info) };

	if (!ioctl(fd, TIMERWHEEL_IOC_INFO, &info))
		return;
	no_wheel(what, fd);
}

static int own_descriptor(void)
{
	int number = opt.number[OPT_FD];
	/* Use a copy, so that commands of --exec find the original open. */
	int fd = fcntl(number, F_DUPFD_CLOEXEC, 3);

	if (fd < 0 && errno == EBADF)
		die("descriptor %d is not open: open it first, in a shell with exec %d<>/dev/timerwheel",
		    number, number);
	if (fd < 0)
		die("descriptor %d: %s", number, strerror(errno));
	return fd;
}

/* Find the descriptor of a process that is a wheel. */
static int find_descriptor(int pid)
{
	struct scan scan = {};
	char list[256] = "";
	size_t i, used = 0;
	int fd, err;

	err = scan_process(&scan, pid);
	if (err == -ENOENT)
		die("process %d does not exist", pid);
	if (err)
		die("not allowed to inspect process %d: run as root, or as the user of the process",
		    pid);
	if (!scan.count && !scan_loaded())
		die("process %d has no wheel: the module is not loaded; %s", pid, module_advice());
	if (!scan.count)
		die("process %d has no wheel; timerwheel top shows which processes have one", pid);
	if (scan.count > 1) {
		for (i = 0; i < scan.count && used < sizeof(list); i++)
			used += snprintf(list + used, sizeof(list) - used, "%s%d",
					 i ? ", " : "", scan.wheels[i].fd);
		die("process %d has %zu wheels, descriptors %s: choose one with --wheel-fd", pid,
		    scan.count, list);
	}
	fd = scan.wheels[0].fd;
	free(scan.wheels);
	return fd;
}

static int foreign_descriptor(void)
{
	int pid = opt.number[OPT_PID];
	int number = opt.given[OPT_WHEEL_FD] ? (int)opt.number[OPT_WHEEL_FD] :
					       find_descriptor(pid);
	int fd = thread_getfd(pid, thread_living(pid), number);

	if (fd < 0 && errno == ESRCH)
		die("process %d does not exist", pid);
	if (fd < 0 && errno == EOPNOTSUPP)
		die("the main thread of process %d has ended: copying a descriptor from another thread needs Linux 6.9",
		    pid);
	if (fd < 0 && errno == EPERM)
		die("not allowed to copy a descriptor of process %d: run as root, or as its user with permission to trace it (see kernel.yama.ptrace_scope)",
		    pid);
	if (fd < 0 && errno == EBADF)
		die("process %d has no descriptor %d; timerwheel top shows its wheels", pid,
		    number);
	if (fd < 0)
		die("descriptor %d of process %d: %s", number, pid, strerror(errno));
	return fd;
}

int target_fd(void)
{
	char what[64];
	int fd;

	if (opt.given[OPT_FD] && opt.given[OPT_PID])
		usage("--fd and --pid exclude each other");
	if (opt.given[OPT_WHEEL_FD] && !opt.given[OPT_PID])
		usage("--wheel-fd needs --pid");
	if (!target_given())
		usage("no wheel given: use --fd N for a descriptor of this shell, or --pid PID (timerwheel top shows them)");
	if (opt.given[OPT_FD]) {
		snprintf(what, sizeof(what), "descriptor %d", (int)opt.number[OPT_FD]);
		fd = own_descriptor();
	} else {
		snprintf(what, sizeof(what), "that descriptor of process %d",
			 (int)opt.number[OPT_PID]);
		fd = foreign_descriptor();
	}
	must_be_wheel(what, fd);
	return fd;
}

struct timerwheel *target_open(void)
{
	struct timerwheel *wheel;
	int fd = target_fd();
	int err = timerwheel_adopt(&wheel, fd, false);

	if (err)
		die("cannot use this wheel: %s", error_text(err));
	return wheel;
}

struct timerwheel *target_open_own(struct timerwheel_config *config)
{
	const char *device = getenv("TIMERWHEEL_DEVICE");
	struct timerwheel *wheel;
	int err;

	if (!device)
		device = "/dev/timerwheel";

	/* By default use the device, not a wheel inside the process. */
	config->backend = getenv("TIMERWHEEL_BACKEND") ? TIMERWHEEL_BACKEND_AUTO :
							 TIMERWHEEL_BACKEND_DEVICE;
	err = timerwheel_open(&wheel, config);
	switch (err) {
	case 0:
		return wheel;
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		die("%s does not exist: %s", device, module_advice());
	case -EACCES:
	case -EPERM:
		die("not allowed to open %s: run as root, or join the group that owns it: adduser USER timerwheel (and log in again)",
		    device);
	default:
		die("cannot open %s: %s", device, error_text(err));
	}
}

void target_info(struct timerwheel *wheel, struct timerwheel_info *info)
{
	int err = timerwheel_info(wheel, info);

	if (err)
		die("INFO: %s", error_text(err));
}
