// SPDX-License-Identifier: GPL-2.0
/* See target.h. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "target.h"

static bool have_ipv6(void)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool have = fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at));

	if (fd >= 0)
		close(fd);
	return have;
}

void target_add(struct targets *targets, const char *option, const char *text, enum any any)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct target target = { .name = text };
	const char *port = strrchr(text, ':');
	struct addrinfo *found, *at;
	char host[256], *name = host;
	int err;

	/* getaddrinfo() accepts any number and truncates it. */
	if (!port || !port[1] || port - text >= (ptrdiff_t)sizeof(host) ||
	    strtoul(port + 1, NULL, 10) > 65535)
		log_usage("--%s needs ADDRESS:PORT, not '%s'", option, text);
	memcpy(host, text, port - text);
	host[port - text] = '\0';
	if (*name == '[' && name[strlen(name) - 1] == ']') {
		name[strlen(name) - 1] = '\0';
		name++;
	}
	if (*name)
		any = ANY_FIRST;
	if (any == ANY_ALL)
		hints.ai_flags = AI_PASSIVE;
	if (any != ANY_FIRST && !have_ipv6())
		hints.ai_family = AF_INET;
	else if (any == ANY_ALL)
		hints.ai_family = AF_INET6;
	target.both = hints.ai_family == AF_INET6;
	err = getaddrinfo(*name ? name : NULL, port + 1, &hints, &found);
	if (err)
		log_die("--%s %s: %s; check the address and the port", option, text,
			gai_strerror(err));
	for (at = found; at && (at == found || any == ANY_LOOPBACK); at = at->ai_next) {
		if (targets->n == TARGETS_MAX)
			log_usage("--%s may be given %u times at most", option, TARGETS_MAX);
		memset(&target.at, 0, sizeof(target.at));
		memcpy(&target.at, at->ai_addr, at->ai_addrlen);
		targets->target[targets->n++] = target;
	}
	freeaddrinfo(found);
}

int target_listen(const char *option, const struct target *target, int backlog)
{
	int on = 1, only = !target->both;
	int fd = socket(target->at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (target->at.any.sa_family == AF_INET6)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
	}
	if (fd < 0 || bind(fd, &target->at.any, sizeof(target->at)) || listen(fd, backlog))
		log_die("%s %s: %s%s", option, target->name, strerror(errno),
			errno == EADDRINUSE ? "; stop the other program or choose another port" :
			errno == EACCES ? "; ports below 1024 need CAP_NET_BIND_SERVICE" :
			errno == EADDRNOTAVAIL ? "; no interface of this machine has this address" :
			errno == EAFNOSUPPORT ? "; this machine has no such addresses" : "");
	return fd;
}
