// SPDX-License-Identifier: GPL-2.0
/* See metrics.h. */
#include <linux/timerwheel.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "metrics.h"
#include "timers.h"

#define PREFIX	"timerwheel_proxy_"
/* How long one who asks may keep others waiting, s. */
#define PATIENCE	2

static struct loop **loops;
static unsigned int nr_loops;
static int listener;

static const char *const kinds[KINDS] = {
	[KIND_CONNECT] = "connect",
	[KIND_IDLE] = "idle",
	[KIND_HALF_CLOSE] = "half-close",
	[KIND_LIFETIME] = "lifetime",
};

static const char *const reasons[REASONS] = {
	[REASON_DONE] = "done",
	[REASON_TIMEOUT] = "timeout",
	[REASON_RESET] = "reset",
	[REASON_REFUSED] = "refused",
	[REASON_FAILED] = "failed",
	[REASON_STOPPED] = "stopped",
};

/* A counter at this place of struct counters, of all threads. */
static uint64_t sum(size_t offset)
{
	uint64_t total = 0;
	unsigned int i;

	for (i = 0; i < nr_loops; i++)
		total += atomic_load_explicit((counter *)((char *)&loops[i]->counters + offset),
					      memory_order_relaxed);
	return total;
}

#define SUM(member)	((unsigned long long)sum(offsetof(struct counters, member)))

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

static void one(FILE *out, const char *name, const char *type, const char *help,
		unsigned long long value)
{
	head(out, name, type, help);
	fprintf(out, PREFIX "%s %llu\n", name, value);
}

static void tell_connections(FILE *out)
{
	unsigned int i;

	one(out, "connections", "gauge", "Connections now", SUM(open));
	one(out, "accepted_total", "counter", "Clients that came, or were restored",
	    SUM(accepted));
	one(out, "restored_total", "counter", "Connections that survived a restart",
	    SUM(restored));
	head(out, "closed_total", "counter", "Connections that ended, by reason");
	for (i = 0; i < REASONS; i++)
		fprintf(out, PREFIX "closed_total{reason=\"%s\"} %llu\n", reasons[i],
			SUM(closed[i]));
	head(out, "bytes_total", "counter", "Bytes passed on");
	fprintf(out, PREFIX "bytes_total{from=\"client\"} %llu\n", SUM(bytes[0]));
	fprintf(out, PREFIX "bytes_total{from=\"server\"} %llu\n", SUM(bytes[1]));
	one(out, "pipes", "gauge", "Pipes", SUM(pipes));
	one(out, "pipes_used", "gauge", "Pipes with bytes in them", SUM(pipes_used));
}

static void tell_timeouts(FILE *out)
{
	static const unsigned int bounds[] = LATENESS_BOUNDS;
	unsigned long long total = 0;
	unsigned int i;

	head(out, "timeouts_total", "counter", "Connections closed by a timeout, by kind");
	for (i = 0; i < KINDS; i++)
		fprintf(out, PREFIX "timeouts_total{kind=\"%s\"} %llu\n", kinds[i],
			SUM(timeouts[i]));
	one(out, "put_off_total", "counter", "Timeouts avoided by a byte at the last moment",
	    SUM(put_off));
	head(out, "timeout_lateness_seconds", "histogram",
	     "From the deadline to the end of the connection");
	for (i = 0; i < LATENESS_BUCKETS; i++) {
		total += SUM(lateness[i]);
		if (i < ARRAY_SIZE(bounds))
			fprintf(out, PREFIX "timeout_lateness_seconds_bucket{le=\"%g\"} %llu\n",
				bounds[i] / 1e6, total);
		else
			fprintf(out, PREFIX "timeout_lateness_seconds_bucket{le=\"+Inf\"} %llu\n",
				total);
	}
	fprintf(out, PREFIX "timeout_lateness_seconds_sum %.9f\n", SUM(lateness_ns) / 1e9);
	fprintf(out, PREFIX "timeout_lateness_seconds_count %llu\n", total);
}

static void tell_wheels(FILE *out)
{
	struct timerwheel_stats stats = {};
	bool there = true;
	unsigned int i;

	for (i = 0; i < nr_loops; i++)
		there = there && timers_stats(loops[i]->timers, &stats);
	if (!there)
		return;
	one(out, "wheel_pending", "gauge", "Timers pending", stats.pending);
	one(out, "wheel_due", "gauge", "Timers due and not taken yet", stats.due);
	one(out, "wheel_armed_total", "counter", "Timers armed", stats.armed);
	one(out, "wheel_replaced_total", "counter", "Of those, in place of an earlier one",
	    stats.replaced);
	one(out, "wheel_removed_total", "counter", "Timers removed", stats.removed);
	one(out, "wheel_delivered_total", "counter", "Events taken", stats.delivered);
	one(out, "wheel_requeues_total", "counter", "Timers that had been put off by a store",
	    stats.requeues);
	one(out, "wheel_wakeups_total", "counter", "Times that the wheels woke their reader",
	    stats.wakeups);
	one(out, "wheel_memory_bytes", "gauge", "Memory of the wheels", stats.memory);
}

static void tell(FILE *out)
{
	head(out, "info", "gauge", "What keeps the deadlines");
	fprintf(out, PREFIX "info{timers=\"%s\",threads=\"%u\"} 1\n", timers_name, nr_loops);
	tell_connections(out);
	tell_timeouts(out);
	tell_wheels(out);
}

static void send_all(int fd, const char *data, size_t len)
{
	ssize_t sent;

	while (len) {
		sent = send(fd, data, len, MSG_NOSIGNAL);
		if (sent <= 0)
			return;
		data += sent;
		len -= sent;
	}
}

static void respond(int fd, const char *status, const char *body, size_t len)
{
	char header[256];
	int n = snprintf(header, sizeof(header),
			 "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4\r\n"
			 "Content-Length: %zu\r\nConnection: close\r\n\r\n", status, len);

	send_all(fd, header, n);
	send_all(fd, body, len);
}

/* The head of a request fits into one buffer, or it is none that we understand. */
static bool receive(int fd, char *request, size_t size)
{
	uint64_t until = now_ns() + PATIENCE * NSEC_PER_SEC;
	size_t len = 0;
	ssize_t got;

	while (len < size - 1 && now_ns() < until) {
		got = recv(fd, request + len, size - 1 - len, 0);
		if (got <= 0)
			return false;
		len += got;
		request[len] = '\0';
		if (strstr(request, "\r\n\r\n"))
			return true;
	}
	return false;
}

static void answer(int fd)
{
	static const char not_found[] = "Ask for /metrics.\n";
	char request[4096], *text;
	size_t len;
	FILE *out;

	if (!receive(fd, request, sizeof(request)))
		return;
	if (strncmp(request, "GET /metrics", 12) || (request[12] != ' ' && request[12] != '?')) {
		respond(fd, "404 Not Found", not_found, sizeof(not_found) - 1);
		return;
	}
	out = open_memstream(&text, &len);
	if (!out)
		return;
	tell(out);
	fclose(out);
	respond(fd, "200 OK", text, len);
	free(text);
}

static void *serve(void *arg)
{
	struct timeval patience = { .tv_sec = PATIENCE };
	int fd;

	(void)arg;
	for (;;) {
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0) {
			/* No descriptor: what is there to do but to try again. */
			if (errno != ECONNABORTED && errno != EINTR)
				sleep_until(now_ns() + NSEC_PER_SEC);
			continue;
		}
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		answer(fd);
		close(fd);
	}
	return NULL;
}

void metrics_start(int fd, struct loop **all, unsigned int n)
{
	pthread_t thread;
	int err;

	listener = fd;
	loops = all;
	nr_loops = n;
	err = pthread_create(&thread, NULL, serve, NULL);
	if (err)
		log_die("cannot start a thread: %s", strerror(err));
	pthread_detach(thread);
}
