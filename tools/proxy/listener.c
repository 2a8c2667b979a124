// SPDX-License-Identifier: GPL-2.0
/* See listener.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"
#include "listener.h"
#include "log.h"
#include "store.h"

/* Maximum number of waiting clients. */
#define BACKLOG	4096

/* A socket from which all threads accept. */
struct listener {
	struct source source;
	int fd;
	bool own;	/* it does not belong to a socket unit */
};

static struct listener listeners[TARGETS_MAX];
static unsigned int nr_listeners;
/* This proxy ends its listening sockets itself. */
static atomic_bool closing;

/* Does this socket listen at exactly this address? */
static bool matches(int fd, const struct target *target)
{
	union address at = address_of(fd, false);
	socklen_t len = sizeof(int);
	int only = 1;

	if (at.any.sa_family == AF_INET6)
		getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &len);
	return !memcmp(&at, &target->at, sizeof(at)) && !only == target->both;
}

static const char *name_of(int fd, char text[ADDRESS_TEXT])
{
	union address at = address_of(fd, false);

	return address_text(&at, text);
}

static void listener_ready(struct source *source, uint32_t events);

static bool is_loopback(const union address *at)
{
	return at->any.sa_family == AF_INET ? ntohl(at->v4.sin_addr.s_addr) >> 24 == 127 :
					      IN6_IS_ADDR_LOOPBACK(&at->v6.sin6_addr);
}

static bool is_any(const union address *at)
{
	return at->any.sa_family == AF_INET ? !at->v4.sin_addr.s_addr :
					      IN6_IS_ADDR_UNSPECIFIED(&at->v6.sin6_addr);
}

/* A datagram socket connected to @to, from @from or from any address; -1: it failed. */
static int connected(const union address *to, const union address *from)
{
	int fd = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if ((!from || !bind(fd, &from->any, sizeof(*from))) &&
	    !connect(fd, &to->any, sizeof(*to)))
		return fd;
	close(fd);
	return -1;
}

/*
 * Does a connection to this address reach this machine? @there is set to @to, with the loopback
 * address instead of a wildcard address.
 */
static bool is_local(const union address *to, union address *there)
{
	int fd = connected(to, NULL);
	union address from;

	if (fd < 0)
		return false;
	from = address_of(fd, false);
	*there = address_of(fd, true);
	close(fd);
	/* The port is at the same place in both families. */
	from.v4.sin_port = there->v4.sin_port;
	if (is_loopback(there) || !memcmp(&from, there, sizeof(from)))
		return true;
	if (there->any.sa_family != AF_INET)
		return false;
	/*
	 * To a secondary address in an IPv4 network, the kernel connects from the primary address.
	 * With ip_nonlocal_bind, bind() accepts all addresses, but connect() only local ones.
	 */
	from = *there;
	from.v4.sin_port = 0;
	fd = connected(there, &from);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Is this socket in the network namespace of this process? Unknown before Linux 5.14. */
static bool is_in_namespace(int fd)
{
	int other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t here = 0, there = 0;
	socklen_t len = sizeof(here);

	getsockopt(other, SOL_SOCKET, SO_NETNS_COOKIE, &here, &len);
	getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &there, &len);
	if (other >= 0)
		close(other);
	return here == there;
}

/* A proxy that connects to itself would accept its own connections until no descriptor is left. */
static void refuse_loops(int fd)
{
	union address here = address_of(fd, false), there;
	socklen_t len = sizeof(int);
	const struct target *to;
	unsigned int i;
	int only = 1;

	/* systemd creates the sockets of a socket unit outside of the service's own namespace. */
	if (!is_in_namespace(fd))
		return;
	getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &len);
	for (i = 0; i < options.to.n; i++) {
		to = &options.to.target[i];
		if (to->at.v4.sin_port != here.v4.sin_port || !is_local(&to->at, &there) ||
		    (only && there.any.sa_family != here.any.sa_family))
			continue;
		if (is_any(&here) || !memcmp(&there, &here, sizeof(here)))
			log_usage("--to %s is an address that the proxy itself listens on",
				  to->name);
	}
}

static void use(int fd, bool own)
{
	char text[ADDRESS_TEXT];

	refuse_loops(fd);
	/*
	 * Connections inherit these options: an urgent byte, or a kill, may come right after
	 * accept(). SO_LINGER would harm another service that gets a socket unit's socket later.
	 */
	if (own)
		socket_prepare(fd);
	else
		socket_keep_urgent(fd);
	if (nr_listeners == TARGETS_MAX)
		log_die("at most %u listening sockets can be used", TARGETS_MAX);
	listeners[nr_listeners++] = (struct listener) {
		.source.ready = listener_ready, .fd = fd, .own = own,
	};
	log_say(LOG_INFO, "listening on %s", name_of(fd, text));
}

/* Does a --listen match the socket of a previous proxy? */
static bool take(int fd, bool *taken)
{
	unsigned int i;

	for (i = 0; i < options.listen.n; i++) {
		if (!taken[i] && matches(fd, &options.listen.target[i])) {
			taken[i] = true;
			return true;
		}
	}
	return false;
}

void listeners_open(const struct stored *stored)
{
	bool taken[TARGETS_MAX] = { };
	char text[ADDRESS_TEXT];
	unsigned int i;
	int fd;

	for (i = 0; i < stored->listeners; i++) {
		if (!stored->listener[i].own)
			use(stored->listener[i].fd, false);
	}
	if (nr_listeners)
		options.listen.n = 0;
	else if (!options.listen.n)
		log_usage("--listen and --to are required; try --help");
	for (i = 0; i < stored->listeners; i++) {
		fd = stored->listener[i].fd;
		if (!stored->listener[i].own)
			continue;
		if (take(fd, taken)) {
			use(fd, true);
			store_fd("listener", fd, true, true);
			continue;
		}
		/* It may conflict with a new one. */
		log_say(LOG_NOTICE, "no longer listening on %s", name_of(fd, text));
		shutdown(fd, SHUT_RDWR);
		close(fd);
	}
	for (i = 0; i < options.listen.n; i++) {
		if (taken[i])
			continue;
		fd = target_listen("--listen", &options.listen.target[i], BACKLOG);
		use(fd, true);
		store_fd("listener", fd, true, false);
	}
}

static bool has_room(struct loop *loop)
{
	return atomic_load_explicit(&loop->load, memory_order_relaxed) < loop->max_open;
}

struct loop *least_loaded(struct loop *loop)
{
	unsigned int i, load, least = UINT32_MAX;
	struct loop *best = loop;

	if (has_room(loop))
		least = atomic_load_explicit(&loop->load, memory_order_relaxed);
	for (i = 0; i < options.threads; i++) {
		load = atomic_load_explicit(&loops[i]->load, memory_order_relaxed);
		if (load < least && load < loops[i]->max_open) {
			best = loops[i];
			least = load;
		}
	}
	return best;
}

/* A client of this socket goes to the thread that should have it. Returns 0 or what went wrong. */
static int accept_one(struct loop *loop, const struct listener *listener)
{
	union address from = { };
	socklen_t len = sizeof(from);
	int fd = accept4(listener->fd, &from.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return errno;
	/* The thread that gets the connection may be busy. */
	if (!listener->own)
		socket_prepare(fd);
	address_unmap(&from);
	conn_accept(least_loaded(loop), fd, &from);
	return 0;
}

/*
 * Another program has ended the listening socket, for example with ss --kill. It keeps its address.
 * False: it cannot listen again.
 */
static bool listen_again(int fd)
{
	static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	socklen_t len = sizeof(int);
	char text[ADDRESS_TEXT];
	int listens = 0;

	pthread_mutex_lock(&lock);
	getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len);
	/* Without this, the connections of the socket would count as shut down. */
	if (!listens && !connect(fd, &nowhere, sizeof(nowhere)) && !listen(fd, BACKLOG)) {
		listens = 1;
		log_say(LOG_WARNING, "another program has closed the socket on %s; listening again",
			name_of(fd, text));
	}
	pthread_mutex_unlock(&lock);
	return listens;
}

static void accept_failed(struct loop *loop, int fd, int err)
{
	bool limit = err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS;

	/* Stopping the proxy also ends its listening sockets; this thread sees it soon. */
	if (err == EAGAIN || err == ECONNABORTED || atomic_load(&closing) ||
	    (err == EINVAL && listen_again(fd)))
		return;
	log_seldom(LOG_WARNING, "cannot accept: %s%s", strerror(err),
		   limit ? "; lower --max-connections" : "");
	loop->accept_again = loop->now + LISTENER_PAUSE;
}

static void listener_ready(struct source *source, uint32_t events)
{
	struct listener *listener = (struct listener *)source;
	struct loop *loop = loop_self;
	int i, err = 0;

	(void)events;
	for (i = 0; i < LISTENER_ACCEPTS && !err && has_room(loop); i++)
		err = accept_one(loop, listener);
	if (err)
		accept_failed(loop, listener->fd, err);
}

static void watch(struct loop *loop, int op)
{
	struct epoll_event event;
	unsigned int i;

	for (i = 0; i < nr_listeners; i++) {
		event = (struct epoll_event) {
			/* Wake only one thread for a client. */
			.events = EPOLLIN | EPOLLEXCLUSIVE,
			.data.ptr = &listeners[i].source,
		};
		if (epoll_ctl(loop->epoll, op, listeners[i].fd, &event) && op == EPOLL_CTL_ADD) {
			log_seldom(LOG_WARNING, "epoll_ctl: %s; raise fs.epoll.max_user_watches",
				   strerror(errno));
			loop->accept_again = loop->now + LISTENER_PAUSE;
		}
	}
	loop->accepts = op == EPOLL_CTL_ADD;
}

void listener_turn(struct loop *loop)
{
	bool room = has_room(loop);

	if (loop->accept_again && loop->now >= loop->accept_again)
		loop->accept_again = 0;
	if (!room)
		log_seldom(LOG_WARNING, "all %u connections of a thread are in use, others wait; "
			   "see --max-connections", loop->max_open);
	if (room && !loop->accept_again && !loop->accepts)
		watch(loop, EPOLL_CTL_ADD);
	else if (loop->accepts && (!room || loop->accept_again))
		watch(loop, EPOLL_CTL_DEL);
}

void listener_stop(struct loop *loop)
{
	loop->accept_again = 0;
	if (loop->accepts)
		watch(loop, EPOLL_CTL_DEL);
}

void listeners_close(void)
{
	unsigned int i, n;

	atomic_store(&closing, true);
	for (i = 0; i < nr_listeners; i++) {
		if (!listeners[i].own)
			continue;
		/* New clients may arrive as fast as these are accepted. */
		for (n = 0; n < BACKLOG && has_room(least_loaded(loops[0])); n++) {
			if (accept_one(loops[0], &listeners[i]))
				break;
		}
		/* This acts on all copies: the service manager drops it when it hangs up. */
		shutdown(listeners[i].fd, SHUT_RDWR);
	}
}
