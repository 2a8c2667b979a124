// SPDX-License-Identifier: GPL-2.0
/* See report.h. The lines of a batch are one write, which does not block. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "report.h"

/* The limit of log_write(), and more than the length of a line. */
#define TEXT_MAX	4096
#define LINE_MAX	512

/* No escapes are needed: a line contains only numbers, addresses and words of this program. */
#define TEXT	"%s client=%s server=%s daemon=%s[%d] timeout=%s seconds=%.3f action=%s\n"
#define JSON	"{\"time\":\"%s\",\"client\":\"%s\",\"server\":\"%s\",\"daemon\":\"%s\"," \
		"\"pid\":%d,\"timeout\":\"%s\",\"seconds\":%.3f,\"action\":\"%s\"}\n"

const char *const action_names[ACTIONS] = {
	[ACTION_WARNED] = "warned",
	[ACTION_ENDED] = "ended",
	[ACTION_WOULD_END] = "would-end",
};

static int report_fd = STDOUT_FILENO;
static char text[TEXT_MAX];
static size_t length;

void report_open(void)
{
	if (!strcmp(options.log, "-")) {
		log_unblock(STDOUT_FILENO);
		return;
	}
	report_fd = open(options.log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
	/* Set it only after the open, which waits for the reader of a named pipe. */
	if (report_fd < 0 || fcntl(report_fd, F_SETFL, O_APPEND | O_NONBLOCK))
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

void report(const struct conn *conn, enum kind kind, enum action action, uint64_t ns)
{
	char when[32], client[ADDRESS_TEXT], server[ADDRESS_TEXT];

	if (length + LINE_MAX > TEXT_MAX)
		report_flush();
	time_text(when);
	length += snprintf(text + length, LINE_MAX, options.json ? JSON : TEXT, when,
			   address_text(&conn->client, client),
			   address_text(&conn->server, server), *conn->daemon ? conn->daemon : "-",
			   conn->pid, kind_names[kind], ns / 1e9, action_names[action]);
}

void report_flush(void)
{
	size_t at = length ? log_write(report_fd, text, length) : 0;

	for (; at < length; at++)
		counters.log_lost += text[at] == '\n';
	length = 0;
}
