// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * usage: restart LEASES
 *
 * A daemon whose timers survive it: the service manager keeps the wheel's descriptor. Needs the
 * device. Its unit file has
 *
 *	[Service]
 *	Type=notify
 *	Restart=always
 *	FileDescriptorStoreMax=1
 *	ExecStart=/path/to/restart 1000000
 *
 * If the daemon ends, even by SIGKILL, the service manager starts it again and passes the
 * descriptor back. The daemon continues with all leases. It first reports the leases that ended in
 * the meantime. `systemctl status' shows its messages.
 *
 * Build with `pkg-config --cflags --libs libsystemd timerwheel`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include <timerwheel.h>

#define STORED	"wheel"			/* name of the descriptor in the manager's store */
#define LEASE	3600000000000ULL	/* an hour */

static void die(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, timerwheel_strerror(err));
	exit(1);
}

/* The wheel that an earlier run of this program has stored with the manager; -1: none. */
static int stored(void)
{
	char **names = NULL;
	int i, n, fd = -1;

	n = sd_listen_fds_with_names(true, &names);
	for (i = 0; i < n; i++) {
		if (!strcmp(names[i], STORED))
			fd = SD_LISTEN_FDS_START + i;
		free(names[i]);
	}
	free(names);
	return fd;
}

static void store(int fd)
{
	int err;

	err = sd_pid_notify_with_fds(0, false, "FDSTORE=1\nFDNAME=" STORED, &fd, 1);
	if (err < 0)
		die("the service manager did not take the descriptor", err);
	if (!err) {
		fprintf(stderr, "no service manager: the wheel would end with this process\n");
		exit(1);
	}
}

/* Start leases 1 to @count. */
static void arm(struct timerwheel *wheel, uint64_t count)
{
	static struct timerwheel_add add[4096];
	uint64_t key = 1;
	long n, i, done;

	while (key <= count) {
		for (n = 0; n < 4096 && key <= count; n++, key++)
			add[n] = (struct timerwheel_add){ .key = key, .deadline = LEASE };
		for (done = 0; done < n; done += i) {
			i = timerwheel_add(wheel, add + done, n - done);
			if (i < 0)
				die("no leases", i);
		}
		for (i = 0; i < n; i++)
			if (add[i].result < 0)
				die("a lease was not armed", add[i].result);
	}
}

/* A daemon that was restarted reads its leases from the wheel; this one only counts them. */
static uint64_t look(struct timerwheel *wheel)
{
	static struct timerwheel_entry page[4096];
	uint64_t cursor = 0, count = 0;
	long n;

	while ((n = timerwheel_list(wheel, page, 4096, &cursor)) > 0)
		count += n;
	if (n < 0)
		die("cannot look at the leases", n);
	return count;
}

static void serve(struct timerwheel *wheel)
{
	struct timerwheel_event events[64];
	long n, i;

	for (;;) {
		n = timerwheel_wait(wheel, events, 64, -1);
		if (n < 0)
			die("no events", n);
		for (i = 0; i < n; i++)
			sd_notifyf(false, "STATUS=lease %llu ended",
				   (unsigned long long)events[i].key);
	}
}

int main(int argc, char **argv)
{
	struct timerwheel_config config = {
		.backend = TIMERWHEEL_BACKEND_DEVICE, .ring = 64, .table = true,
	};
	uint64_t leases = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000;
	int err, fd = stored();
	struct timerwheel *wheel;

	if (fd >= 0) {
		err = timerwheel_adopt(&wheel, fd, true);
		if (err)
			die("cannot use the stored wheel", err);
	} else {
		err = timerwheel_open(&wheel, &config);
		if (err)
			die("no wheel", err);
		arm(wheel, leases);
		/* From now on the wheel survives this process. */
		store(timerwheel_share(wheel));
	}
	sd_notifyf(false, "READY=1\nSTATUS=%s: %llu leases", fd >= 0 ? "found" : "made",
		   (unsigned long long)look(wheel));
	serve(wheel);
}
