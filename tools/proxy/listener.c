// SPDX-License-Identifier: GPL-2.0
/* See listener.h. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"
#include "listener.h"
#include "log.h"

static int listener = -1;

int listener_bind(const char *option, const struct address *address, int backlog, int flags)
{
	int on = 1, fd = socket(address->any.ss_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	if (fd < 0)
		log_die("%s %s: socket: %s", option, address->name, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&address->any, address->len) || listen(fd, backlog))
		log_die("%s %s: %s%s", option, address->name, strerror(errno),
			errno == EADDRINUSE ? "; stop the other program or choose another port" :
			errno == EACCES ? "; ports below 1024 need CAP_NET_BIND_SERVICE" : "");
	return fd;
}

void listener_use(int fd)
{
	listener = fd;
}

static void accepted(struct loop *loop, int fd)
{
	if (fd >= 0) {
		conn_open(loop, fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		log_seldom(LOG_WARNING, "cannot accept: %s; lower --max-connections",
			   strerror(errno));
		loop->listener.again = loop->now + LISTENER_WHILE;
	}
}

static void listener_ready(struct source *source, uint32_t events)
{
	struct loop *loop = ((struct listener *)source)->loop;
	int i, fd;

	(void)events;
	for (i = 0; i < LISTENER_ACCEPTS && loop->counters.open < loop->max_open; i++) {
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		accepted(loop, fd);
		if (fd < 0)
			break;
	}
}

static void listener_watch(struct loop *loop)
{
	struct epoll_event event = {
		/* One thread is woken for a client, not all. */
		.events = EPOLLIN | EPOLLEXCLUSIVE,
		.data.ptr = &loop->listener.source,
	};

	loop->listener.source.ready = listener_ready;
	loop->listener.loop = loop;
	loop->listener.watched = !epoll_ctl(loop->epoll, EPOLL_CTL_ADD, listener, &event);
	if (!loop->listener.watched) {
		log_seldom(LOG_WARNING, "epoll_ctl: %s; raise fs.epoll.max_user_watches",
			   strerror(errno));
		loop->listener.again = loop->now + LISTENER_WHILE;
	}
}

void listener_turn(struct loop *loop)
{
	bool room = loop->counters.open < loop->max_open;

	if (loop->listener.again && loop->now >= loop->listener.again)
		loop->listener.again = 0;
	room = room && !loop->listener.again;
	if (room && !loop->listener.watched)
		listener_watch(loop);
	else if (!room && loop->listener.watched)
		listener_stop(loop);
	if (loop->counters.open >= loop->max_open)
		log_seldom(LOG_WARNING, "all %u connections of a thread are in use, others wait; "
			   "see --max-connections", loop->max_open);
}

void listener_stop(struct loop *loop)
{
	if (loop->listener.watched)
		epoll_ctl(loop->epoll, EPOLL_CTL_DEL, listener, NULL);
	loop->listener.watched = false;
}
