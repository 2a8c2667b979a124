// SPDX-License-Identifier: GPL-2.0
/* See upstream.h. The header: haproxy.org/download/2.6/doc/proxy-protocol.txt. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "options.h"
#include "socket.h"
#include "store.h"
#include "upstream.h"

/* Begin to connect to a server. Returns the socket, or -1. */
static int connect_to(const union address *to)
{
	int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return fd;
	/* The server's first bytes can come before connect() returns. */
	socket_prepare(fd);
	if (!connect(fd, &to->any, sizeof(*to)) || errno == EINPROGRESS)
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/*
 * Each connection to a server has its own local port. Two names for the same address and port count
 * as one server.
 */
unsigned int upstream_ports(void)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	unsigned int first, last, servers = 0, i, j;
	bool known;

	if (!file)
		return 0;
	known = fscanf(file, "%u %u", &first, &last) == 2;
	fclose(file);
	for (i = 0; i < options.to.n; i++) {
		for (j = 0; j < i; j++) {
			if (!memcmp(&options.to.target[i].at, &options.to.target[j].at,
				    sizeof(union address)))
				break;
		}
		servers += j == i;
	}
	return known ? (last - first + 1) * servers : 0;
}

const char *upstream_advice(int err)
{
	switch (err) {
	case EADDRNOTAVAIL:
		return "all local ports are in use, maybe in TIME_WAIT (see ss -tan); "
		       "widen net.ipv4.ip_local_port_range or add server addresses with --to";
	case ECONNREFUSED:
		return "is it running?";
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case EHOSTDOWN:
	case ENETUNREACH:
	case ENETDOWN:
		return "check the address, the route and firewalls";
	case EACCES:
	case EPERM:
		return "a firewall rule or a security policy of this machine forbids it";
	case EMFILE:
		return "raise ulimit -n, in a unit LimitNOFILE=, or lower --max-connections";
	case ENFILE:
		return "raise fs.file-max or lower --max-connections";
	case ENOBUFS:
	case ENOMEM:
		return "lower --max-connections or add memory";
	case EAFNOSUPPORT:
		return "this machine or the unit's RestrictAddressFamilies= has no such addresses";
	default:
		return "check the server";
	}
}

bool upstream_next(struct conn *conn)
{
	struct side *side = &conn->side[SERVER];
	const struct target *target;
	int err = 0;

	for (side->fd = -1; side->fd < 0 && conn->tries; conn->tries--) {
		conn->server = (conn->server + 1) % options.to.n;
		target = &options.to.target[conn->server];
		side->address = target->at;
		side->fd = connect_to(&target->at);
		if (side->fd >= 0)
			continue;
		err = errno;
		counter_add(&conn->loop->counters.connect_failures, 1);
		log_seldom(LOG_WARNING, "server %s: %s; %s", target->name, strerror(err),
			   upstream_advice(err));
	}
	errno = err;
	if (side->fd < 0)
		return false;
	conn->server_id = store_active() ? cookie_of(side->fd) : 0;
	return true;
}

/* The bytes of an address without its port, and their number. */
static const void *host_of(const union address *address, size_t *len)
{
	bool v4 = address->any.sa_family == AF_INET;

	*len = v4 ? sizeof(address->v4.sin_addr) : sizeof(address->v6.sin6_addr);
	return v4 ? (const void *)&address->v4.sin_addr : &address->v6.sin6_addr;
}

static unsigned int header_v1(const union address ends[2], char *header)
{
	char text[2][INET6_ADDRSTRLEN];
	size_t len;
	int i;

	for (i = 0; i < 2; i++)
		inet_ntop(ends[i].any.sa_family, host_of(&ends[i], &len), text[i],
			  sizeof(text[i]));
	return sprintf(header, "PROXY TCP%c %s %s %u %u\r\n", len == 4 ? '4' : '6', text[0],
		       text[1], ntohs(ends[0].v4.sin_port), ntohs(ends[1].v4.sin_port));
}

static unsigned int header_v2(const union address ends[2], char *header)
{
	char *at = header + 16;
	const void *host;
	size_t len;
	int i;

	for (i = 0; i < 2; i++) {
		host = host_of(&ends[i], &len);
		at = mempcpy(at, host, len);
	}
	/* The port is at the same place in both families. */
	for (i = 0; i < 2; i++)
		at = mempcpy(at, &ends[i].v4.sin_port, 2);
	/* Version 2, PROXY; TCP over IPv4 or IPv6; length of what follows. */
	memcpy(header, "\r\n\r\n\0\r\nQUIT\n\x21", 13);
	header[13] = len == 4 ? 0x11 : 0x21;
	header[14] = 0;
	header[15] = at - header - 16;
	return at - header;
}

unsigned int upstream_header(const struct conn *conn, char *header)
{
	/* Use the sockets instead of @conn, so that the result is the same after a restart. */
	union address ends[2] = {
		address_of(conn->side[CLIENT].fd, true), address_of(conn->side[CLIENT].fd, false),
	};
	static const char unknown_v1[] = "PROXY UNKNOWN\r\n";
	static const char unknown_v2[16] = "\r\n\r\n\0\r\nQUIT\n\x20";

	if (ends[0].any.sa_family == ends[1].any.sa_family &&
	    (ends[0].any.sa_family == AF_INET || ends[0].any.sa_family == AF_INET6))
		return conn->header == 1 ? header_v1(ends, header) : header_v2(ends, header);
	/* The client has already gone, or uses another protocol. */
	if (conn->header == 1)
		return mempcpy(header, unknown_v1, sizeof(unknown_v1) - 1) - (void *)header;
	memcpy(header, unknown_v2, sizeof(unknown_v2));
	return sizeof(unknown_v2);
}

bool upstream_greet(struct conn *conn)
{
	int fd = conn->side[SERVER].fd;
	char *header = conn->loop->buffer;
	struct passed passed;
	unsigned int len;

	if (!conn->header)
		return true;
	/* A previous proxy may have sent it, and been killed before it could record that. */
	if (conn->restored && passed_of(fd, true, &passed) && passed.written)
		return true;
	len = upstream_header(conn, header);
	/* The error if the header is sent only in part. */
	errno = ENOBUFS;
	return send(fd, header, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}
