// SPDX-License-Identifier: GPL-2.0
/*
 * See http.h. libmicrohttpd limits the time for which a client may be silent, but not the time of a
 * request, and it accepts no client while all places are taken. Therefore this thread runs
 * libmicrohttpd and disconnects clients itself: clients whose request takes too long, and one
 * client whenever the last place is taken. Waiting clients get places in turn, however many other
 * clients do not complete their requests.
 */
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "log.h"

/* Time for a request and its answer, ns. */
#define REQUEST_MAX	(5 * NSEC_PER_SEC)
/* Minimum time for a request, even if other clients wait for a place, ns. */
#define REQUEST_MIN	(100 * NSEC_PER_MSEC)
/* Maximum number of clients that may wait for a place. */
#define BACKLOG		4096

/* A connected client. */
struct client {
	bool used;
	bool ended;		/* disconnected; libmicrohttpd has not noticed yet */
	int fd;
	union address from;
	uint64_t since;		/* time of the connect; libmicrohttpd closes after an answer */
};

/* An address at which to serve. */
struct server {
	struct MHD_Daemon *daemon;
	bool again;		/* libmicrohttpd has to run again before it accepts clients */
	struct client client[HTTP_CLIENTS];
};

static struct server *servers;
static unsigned int nr_servers;

static enum MHD_Result respond(struct MHD_Connection *conn, unsigned int status, const char *text,
			       size_t len, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(len, (void *)text, mode);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Content-Type", "text/plain; version=0.0.4");
	result = MHD_queue_response(conn, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *conn, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *data_size, void **state)
{
	static const char not_found[] = "Ask for /metrics.\n";
	void (*tell)(FILE *out) = arg;
	char *text;
	size_t len;
	FILE *out;
	int failed;

	(void)version;
	(void)data;
	(void)data_size;
	(void)state;
	if (strcmp(url, "/metrics") || (strcmp(method, "GET") && strcmp(method, "HEAD")))
		return respond(conn, MHD_HTTP_NOT_FOUND, not_found, sizeof(not_found) - 1,
			       MHD_RESPMEM_PERSISTENT);
	out = open_memstream(&text, &len);
	if (!out)
		return MHD_NO;
	tell(out);
	failed = ferror(out);
	if (fclose(out) || failed) {
		free(text);
		return MHD_NO;
	}
	return respond(conn, MHD_HTTP_OK, text, len, MHD_RESPMEM_MUST_FREE);
}

static void disconnect(struct client *client)
{
	shutdown(client->fd, SHUT_RDWR);
	client->ended = true;
}

static bool same_host(const union address *a, const union address *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	/* An IPv6 host has all addresses of its /64 network. */
	return !memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, 8);
}

static unsigned int clients_of(const struct server *server, const union address *host)
{
	unsigned int i, n = 0;

	for (i = 0; i < HTTP_CLIENTS; i++)
		n += server->client[i].used && same_host(&server->client[i].from, host);
	return n;
}

/* The oldest client of the host with the most clients. NULL: a place is free, or soon will be. */
static struct client *choose_victim(struct server *server)
{
	struct client *victim = NULL, *client;
	unsigned int i, n, most = 0;

	for (i = 0; i < HTTP_CLIENTS; i++) {
		client = &server->client[i];
		if (!client->used || client->ended)
			return NULL;
		n = clients_of(server, &client->from);
		if (n > most || (n == most && client->since < victim->since)) {
			victim = client;
			most = n;
		}
	}
	return victim;
}

static void client_changed(void *arg, struct MHD_Connection *conn, void **context,
			   enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info;
	struct server *server = arg;
	struct client *client = *context;
	const struct sockaddr *from;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		client->used = false;
		server->again = true;
		return;
	}
	/* libmicrohttpd takes no more clients than there are places. */
	for (client = server->client; client->used; client++)
		;
	info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	*client = (struct client) { .used = true, .fd = info->connect_fd, .since = now_ns() };
	from = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
	memcpy(&client->from, from, from->sa_family == AF_INET ? sizeof(client->from.v4) :
							       sizeof(client->from.v6));
	*context = client;
}

/*
 * Disconnect clients whose time has expired, and one more if there is no free place. Returns the
 * time until the next call, in ms; -1: there is no client.
 */
static int expire(struct server *server)
{
	struct client *victim = choose_victim(server), *client;
	uint64_t now = now_ns(), until = TIME_NONE, end;
	unsigned int i;

	for (i = 0; i < HTTP_CLIENTS; i++) {
		client = &server->client[i];
		if (!client->used || client->ended)
			continue;
		end = client->since + (client == victim ? REQUEST_MIN : REQUEST_MAX);
		if (end <= now)
			disconnect(client);
		else if (end < until)
			until = end;
	}
	return until == TIME_NONE ? -1 : (int)((until - now) / NSEC_PER_MSEC) + 1;
}

static void *serve(void *unused)
{
	struct pollfd fds[TARGETS_MAX];
	MHD_UNSIGNED_LONG_LONG at_once;
	int ms, until;
	unsigned int i;

	for (i = 0; i < nr_servers; i++)
		fds[i] = (struct pollfd) {
			.fd = MHD_get_daemon_info(servers[i].daemon,
						  MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
			.events = POLLIN,
		};
	for (;;) {
		until = -1;
		for (i = 0; i < nr_servers; i++) {
			ms = expire(&servers[i]);
			/* It has no timeout itself; this only reports that it has more work. */
			if (servers[i].again ||
			    MHD_get_timeout(servers[i].daemon, &at_once) == MHD_YES)
				ms = 0;
			servers[i].again = false;
			if (ms >= 0 && (until < 0 || ms < until))
				until = ms;
		}
		poll(fds, nr_servers, until);
		for (i = 0; i < nr_servers; i++)
			MHD_run(servers[i].daemon);
	}
	return unused;
}

void http_start(const struct targets *targets, void (*tell)(FILE *out))
{
	struct server *server;
	pthread_t thread;
	int fd, err;

	servers = xcalloc(targets->n, sizeof(*servers));
	for (; nr_servers < targets->n; nr_servers++) {
		server = &servers[nr_servers];
		fd = target_listen("--metrics", &targets->target[nr_servers], BACKLOG);
		server->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, tell,
						  MHD_OPTION_LISTEN_SOCKET, fd,
						  MHD_OPTION_CONNECTION_LIMIT, HTTP_CLIENTS,
						  MHD_OPTION_NOTIFY_CONNECTION, client_changed,
						  server,
						  MHD_OPTION_END);
		if (!server->daemon)
			log_die("--metrics %s: cannot serve",
				targets->target[nr_servers].name);
	}
	if (!nr_servers)
		return;
	err = pthread_create(&thread, NULL, serve, NULL);
	if (err)
		log_die("cannot start a thread: %s; raise ulimit -u, in a unit TasksMax=",
			strerror(err));
	pthread_setname_np(thread, "metrics");
}
