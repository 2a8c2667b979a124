// SPDX-License-Identifier: GPL-2.0
/* See address.h. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "address.h"

socklen_t address_len(const union address *address)
{
	return address->any.sa_family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4);
}

bool address_equal(const union address *a, const union address *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_port == b->v4.sin_port &&
		       a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return a->any.sa_family == AF_INET6 && a->v6.sin6_port == b->v6.sin6_port &&
	       a->v6.sin6_scope_id == b->v6.sin6_scope_id &&
	       IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr);
}

void address_unmap(union address *address)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = address->v6.sin6_port };

	if (address->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr))
		return;
	memcpy(&v4.sin_addr, &address->v6.sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
	address->v4 = v4;
}

union address address_of(int fd, bool peer)
{
	union address address = { };
	socklen_t len = sizeof(address);

	if (peer ? getpeername(fd, &address.any, &len) : getsockname(fd, &address.any, &len))
		address.any.sa_family = AF_UNSPEC;
	address_unmap(&address);
	return address;
}

const char *address_text(const union address *address, char text[ADDRESS_TEXT])
{
	char host[INET6_ADDRSTRLEN];

	if (address->any.sa_family == AF_INET)
		snprintf(text, ADDRESS_TEXT, "%s:%u",
			 inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof(host)),
			 ntohs(address->v4.sin_port));
	else if (address->any.sa_family == AF_INET6)
		snprintf(text, ADDRESS_TEXT, "[%s]:%u",
			 inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof(host)),
			 ntohs(address->v6.sin6_port));
	else
		strcpy(text, "-");
	return text;
}
