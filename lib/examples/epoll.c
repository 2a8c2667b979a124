// SPDX-License-Identifier: MIT OR GPL-2.0
/* A wheel in a loop around epoll_wait(). */
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "sessions.h"

int main(int argc, char **argv)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	sessions_start(argc, argv);
	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, sessions_fd(), &event)) {
		perror("epoll");
		return 1;
	}
	for (;;) {
		/* A server handles the messages of its ready connections here. */
		sessions_expire();
		if (!sessions_left())
			break;
		epoll_wait(epoll, &event, 1, -1);
	}
	close(epoll);
	return sessions_end();
}
