// SPDX-License-Identifier: GPL-2.0
/* See address.h. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "address.h"

void address_unmap(union address *address)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = address->v6.sin6_port };

	if (address->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr))
		return;
	memcpy(&v4.sin_addr, &address->v6.sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
	memset(address, 0, sizeof(*address));
	address->v4 = v4;
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
