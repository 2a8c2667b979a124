// SPDX-License-Identifier: GPL-2.0
/* See conns.h. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "conns.h"
#include "util.h"

#define CHAINS_FIRST	1024

static struct conn **chains;
static unsigned int nr_chains;
static _Atomic unsigned int nr_conns;

static struct conn **chain_of(uint64_t cookie)
{
	return &chains[mix64(cookie) & (nr_chains - 1)];
}

struct conn *conn_find(uint64_t cookie)
{
	struct conn *conn = chains ? *chain_of(cookie) : NULL;

	while (conn && conn->cookie != cookie)
		conn = conn->next;
	return conn;
}

static void link_conn(struct conn *conn)
{
	struct conn **chain = chain_of(conn->cookie);

	conn->next = *chain;
	*chain = conn;
}

static void grow(void)
{
	struct conn **old = chains, *conn, *next;
	unsigned int nr_old = nr_chains, i;

	nr_chains = nr_old ? 2 * nr_old : CHAINS_FIRST;
	chains = xcalloc(nr_chains, sizeof(struct conn *));
	for (i = 0; i < nr_old; i++) {
		for (conn = old[i]; conn; conn = next) {
			next = conn->next;
			link_conn(conn);
		}
	}
	free(old);
}

struct conn *conn_new(uint64_t cookie)
{
	struct conn *conn = xcalloc(1, sizeof(*conn));

	if (nr_conns >= nr_chains)
		grow();
	conn->cookie = cookie;
	link_conn(conn);
	nr_conns++;
	return conn;
}

void conn_free(struct conn *conn)
{
	struct conn **at = chain_of(conn->cookie);

	while (*at != conn)
		at = &(*at)->next;
	*at = conn->next;
	nr_conns--;
	free(conn);
}

uint64_t conn_value(const struct conn *conn)
{
	uint64_t host = 0;

	if (conn->client.any.sa_family == AF_INET)
		host = ntohl(conn->client.v4.sin_addr.s_addr);
	return host << 32 | (uint64_t)ntohs(conn->client.v4.sin_port) << 16 |
	       ntohs(conn->server.v4.sin_port);
}

void conn_from_value(struct conn *conn, uint64_t value)
{
	if (!(value >> 32)) {
		conn->server.v6 = (struct sockaddr_in6) {
			.sin6_family = AF_INET6,
			.sin6_port = htons(value),
		};
		return;
	}
	conn->client.v4 = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(value >> 32),
		.sin_port = htons(value >> 16),
	};
	conn->server.v4 = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_port = htons(value),
	};
}

void conns_each(void (*each)(struct conn *conn))
{
	struct conn *conn, *next;
	unsigned int i;

	for (i = 0; i < nr_chains; i++) {
		for (conn = chains[i]; conn; conn = next) {
			next = conn->next;
			each(conn);
		}
	}
}

unsigned int conns_count(void)
{
	return nr_conns;
}
