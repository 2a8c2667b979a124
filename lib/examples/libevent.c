// SPDX-License-Identifier: MIT OR GPL-2.0
/* A wheel in libevent's loop. Build with `pkg-config --cflags --libs libevent_core timerwheel`. */
#include <event2/event.h>
#include <stdio.h>

#include "sessions.h"

/* This only wakes the loop, because events are taken after the callbacks of all connections. */
static void readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct event *event;

	sessions_start(argc, argv);
	event = base ? event_new(base, sessions_fd(), EV_READ | EV_PERSIST, readable, NULL) : NULL;
	if (!event || event_add(event, NULL)) {
		fprintf(stderr, "libevent: no memory\n");
		return 1;
	}
	for (;;) {
		sessions_expire();
		if (!sessions_left())
			break;
		/* Wait, and handle the messages of all ready connections. */
		if (event_base_loop(base, EVLOOP_ONCE) < 0) {
			fprintf(stderr, "libevent: the loop failed\n");
			return 1;
		}
	}
	event_free(event);
	event_base_free(base);
	return sessions_end();
}
