// SPDX-License-Identifier: GPL-2.0
/* See http.h. */
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "log.h"

/* How long one may be silent who asks, s. */
#define PATIENCE	5

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

void http_start(const struct targets *targets, void (*tell)(FILE *out))
{
	struct MHD_Daemon *daemon;
	unsigned int i;
	int fd;

	for (i = 0; i < targets->n; i++) {
		fd = target_listen("--metrics", &targets->target[i], HTTP_CLIENTS);
		daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer,
					  tell, MHD_OPTION_LISTEN_SOCKET, fd,
					  MHD_OPTION_CONNECTION_TIMEOUT, PATIENCE,
					  MHD_OPTION_CONNECTION_LIMIT, HTTP_CLIENTS,
					  MHD_OPTION_END);
		if (!daemon)
			log_die("--metrics %s: cannot serve", targets->target[i].name);
	}
}
