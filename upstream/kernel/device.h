/* SPDX-License-Identifier: GPL-2.0 */
/* Without the device, or the permission to open it, a program is skipped. */
#ifndef DEVICE_H
#define DEVICE_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "kselftest.h"

static void __attribute__((constructor)) need_device(void)
{
	int fd = open("/dev/timerwheel", O_RDWR | O_CLOEXEC);

	if (fd < 0 && (errno == ENOENT || errno == ENODEV || errno == EACCES)) {
		ksft_print_header();
		ksft_exit_skip("/dev/timerwheel: %s (CONFIG_TIMERWHEEL, or modprobe timerwheel?)\n",
			       strerror(errno));
	}
	if (fd >= 0)
		close(fd);
}

#endif /* DEVICE_H */
