/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses of IPv4 and IPv6 with their ports, in 28 bytes, since each connection has two. */
#ifndef SERVICE_ADDRESS_H
#define SERVICE_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>

/**
 * union address - an address and a port; family AF_UNSPEC: unknown
 *
 * What a family does not use is 0, so that memcmp() compares two. bind() and connect() may be
 * given the size of all.
 */
union address {
	/** @any: for the family */
	struct sockaddr any;
	/** @v4: IPv4 */
	struct sockaddr_in v4;
	/** @v6: IPv6 */
	struct sockaddr_in6 v6;
};

/** ADDRESS_TEXT - room for any address as text */
#define ADDRESS_TEXT	64

/**
 * address_unmap - turn an IPv4 address that is mapped into IPv6 into what it is
 * @address: the address
 */
void address_unmap(union address *address);

/**
 * address_text - an address for people
 * @address: the address
 * @text: where to print it
 *
 * Return: @text: "127.0.0.1:80", "[::1]:80" or "-".
 */
const char *address_text(const union address *address, char text[ADDRESS_TEXT]);

#endif /* SERVICE_ADDRESS_H */
