// SPDX-License-Identifier: GPL-2.0
/* See notify.h. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "log.h"
#include "notify.h"

static struct sockaddr_un manager;
static socklen_t manager_len;
static int notify_fd = -1;
/* The message that the service manager could not take yet. */
static char unsent[256];

void notify_open(void)
{
	const char *path = getenv("NOTIFY_SOCKET");

	if (!path)
		return;
	if ((*path != '/' && *path != '@') || strlen(path) >= sizeof(manager.sun_path))
		log_die("NOTIFY_SOCKET is '%s', but must be a path, or '@' and a name", path);
	manager.sun_family = AF_UNIX;
	strcpy(manager.sun_path, path);
	manager_len = offsetof(struct sockaddr_un, sun_path) + strlen(path);
	/* An abstract name begins with a zero byte. */
	if (*path == '@')
		manager.sun_path[0] = '\0';
	notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (notify_fd < 0)
		log_die("socket: %s", strerror(errno));
}

bool notify_there(void)
{
	return notify_fd >= 0;
}

static int tell(const char *text, const int *fds, int n)
{
	union {
		char space[CMSG_SPACE(NOTIFY_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = (char *)text, .iov_len = strlen(text) };
	struct msghdr msg = {
		.msg_name = &manager,
		.msg_namelen = manager_len,
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	struct cmsghdr *cmsg;

	if (n) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, n * sizeof(int));
	}
	return sendmsg(notify_fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

uint64_t notify_again(void)
{
	int err = *unsent && notify_there() ? tell(unsent, NULL, 0) : 0;

	if (err == -EAGAIN)
		return now_ns() + NOTIFY_BUSY;
	if (err)
		log_seldom(LOG_WARNING, "cannot send '%.*s' to the service manager: %s",
			   (int)strcspn(unsent, "\n"), unsent, strerror(-err));
	*unsent = '\0';
	return TIME_NONE;
}

void notify(const char *text)
{
	static const char ready[] = "READY=1\n";
	bool first = !strncmp(unsent, ready, strcspn(ready, "\n"));

	/* Unlike the others, this message is of interest after the next one. */
	snprintf(unsent, sizeof(unsent), "%s%s", first ? ready : "", text);
	notify_again();
}

void notify_alive(void)
{
	if (notify_there())
		tell("WATCHDOG=1", NULL, 0);
}

int notify_store(const char *name, const int *fds, int n, bool watch)
{
	char text[64];

	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s%s", name, watch ? "" : "\nFDPOLL=0");
	return tell(text, fds, n);
}
