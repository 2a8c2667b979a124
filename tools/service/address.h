/* SPDX-License-Identifier: GPL-2.0 */
/* IPv4 and IPv6 addresses with ports, in only 28 bytes, because each connection has two. */
#ifndef SERVICE_ADDRESS_H
#define SERVICE_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>

/**
 * union address - an address and a port; family AF_UNSPEC: unknown
 *
 * Bytes that a family does not use are 0, so that memcmp() can compare two addresses. bind() and
 * connect() accept the size of the union.
 */
union address {
	/** @any: access to the family */
	struct sockaddr any;
	/** @v4: IPv4 */
	struct sockaddr_in v4;
	/** @v6: IPv6 */
	struct sockaddr_in6 v6;
};

/** ADDRESS_TEXT - room for any address as text */
#define ADDRESS_TEXT	64

/**
 * address_unmap - convert an IPv4 address that is mapped into IPv6 to IPv4
 * @address: the address
 */
void address_unmap(union address *address);

/**
 * address_text - print an address
 * @address: the address
 * @text: the output
 *
 * Return: @text: "127.0.0.1:80", "[::1]:80" or "-".
 */
const char *address_text(const union address *address, char text[ADDRESS_TEXT]);

#endif /* SERVICE_ADDRESS_H */
