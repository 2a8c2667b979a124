// SPDX-License-Identifier: GPL-2.0
/*
 * See record.h. Lines have the same contents as text and as JSON. The lines of a turn are one
 * write, which does not block: lines that a journal or a pipe does not accept immediately are lost
 * and counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "options.h"
#include "record.h"

/* More than the length of a line. */
#define RECORD_MAX	512

static int record_fd = -1;

const char *const end_names[ENDS] = {
	[END_CLIENT] = "client",
	[END_SERVER] = "server",
	[END_CLIENT_RESET] = "client-reset",
	[END_SERVER_RESET] = "server-reset",
	[END_TIMEOUT + KIND_CONNECT] = "connect-timeout",
	[END_TIMEOUT + KIND_IDLE] = "idle-timeout",
	[END_TIMEOUT + KIND_HALF_CLOSE] = "half-closed-timeout",
	[END_TIMEOUT + KIND_LIFETIME] = "lifetime-timeout",
	[END_REFUSED] = "refused",
	[END_FAILED] = "failed",
	[END_NOT_KEPT] = "not-kept",
	[END_STOPPED] = "stopped",
};

void records_open(void)
{
	if (!options.log)
		return;
	record_fd = STDERR_FILENO;
	if (!strcmp(options.log, "-"))
		return;
	record_fd = open(options.log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
	/* Set it only after the open, which waits for the reader of a named pipe. */
	if (record_fd < 0 || fcntl(record_fd, F_SETFL, O_APPEND | O_NONBLOCK))
		log_die("--log %s: %s", options.log, strerror(errno));
}

/* The time of day with ms, in the format of RFC 3339. */
static void time_text(char text[32])
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(text, 32, "%FT%T", &tm);
	snprintf(text + n, 32 - n, ".%03ldZ", now.tv_nsec / 1000000);
}

/* No escapes are needed: a line contains only numbers, addresses and words of this file. */
#define TEXT	"%s%s client=%s server=%s from_client=%llu from_server=%llu seconds=%.6f " \
		"end=%s%s\n"
#define JSON	"%s{\"time\":\"%s\",\"client\":\"%s\",\"server\":\"%s\",\"from_client\":%llu," \
		"\"from_server\":%llu,\"seconds\":%.6f,\"end\":\"%s\"%s}\n"

void record(const struct conn *conn, enum end end)
{
	const struct side *client = &conn->side[CLIENT], *server = &conn->side[SERVER];
	unsigned long long up = client->bytes, down = server->bytes;
	char client_text[ADDRESS_TEXT], server_text[ADDRESS_TEXT], time[32];
	const char *priority = "", *restored = "";
	double seconds = (now_ns() - conn->opened) / 1e9;
	struct loop *loop = conn->loop;

	if (record_fd < 0)
		return;
	if (loop->nr_records + RECORD_MAX > LOOP_RECORDS)
		records_flush(loop);
	time_text(time);
	address_text(&client->address, client_text);
	address_text(&server->address, server_text);
	if (record_fd == STDERR_FILENO && log_priorities)
		priority = "<6>";
	/* This process does not know the age of restored connections. */
	if (conn->restored)
		restored = options.json ? ",\"restored\":true" : " restored";
	loop->nr_records += sprintf(loop->records + loop->nr_records, options.json ? JSON : TEXT,
				    priority, time, client_text, server_text, up, down, seconds,
				    end_names[end], restored);
}

void records_flush(struct loop *loop)
{
	unsigned int i, lines = 0;

	if (!loop->nr_records)
		return;
	for (i = 0; i < loop->nr_records; i++)
		lines += loop->records[i] == '\n';
	if (!log_write(record_fd, loop->records, loop->nr_records))
		counter_add(&loop->counters.log_lost, lines);
	loop->nr_records = 0;
}
