// SPDX-License-Identifier: GPL-2.0
/*
 * See record.h. Lines have the same contents as text and as JSON. The lines of a turn are one
 * write, which does not block: lines that a journal or a pipe does not accept immediately are lost
 * and counted. O_NONBLOCK does not apply to a regular file, which can make its writer wait for the
 * disk. Therefore another thread writes to the file, and receives the lines through a pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "options.h"
#include "record.h"

/* More than the length of a line. */
#define RECORD_MAX	512

/* Size of the pipe to a file: lines that can wait for the disk. */
#define FILE_PIPE	1048576

/* Where the threads write their lines. */
static int record_fd = -1;
static bool to_stderr;

/* The thread that writes to a regular file. file_fd is -1 if there is none. */
static int file_fd = -1, pipe_fd;
static pthread_t writer;
static counter lost;

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

static unsigned int lines_in(const char *text, size_t len)
{
	unsigned int lines = 0;

	while (len--)
		lines += *text++ == '\n';
	return lines;
}

static void *write_file(void *unused)
{
	static char lines[FILE_PIPE];
	ssize_t n, done;

	/* The pipe contains only whole lines, and one read takes them all. */
	while ((n = read(pipe_fd, lines, sizeof(lines))) > 0) {
		done = write(file_fd, lines, n);
		if (done < 0)
			done = 0;
		counter_add(&lost, lines_in(lines + done, n - done));
	}
	return unused;
}

static void start_writer(void)
{
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		log_die("pipe: %s; raise ulimit -n", strerror(errno));
	file_fd = record_fd;
	pipe_fd = ends[0];
	record_fd = ends[1];
	fcntl(record_fd, F_SETFL, O_NONBLOCK);
	/* A smaller pipe only loses lines earlier. */
	fcntl(record_fd, F_SETPIPE_SZ, FILE_PIPE);
	err = pthread_create(&writer, NULL, write_file, NULL);
	if (err)
		log_die("cannot start a thread: %s; raise ulimit -u, in a unit TasksMax=",
			strerror(err));
	pthread_setname_np(writer, "log");
}

void records_open(void)
{
	struct stat stat;

	if (!options.log)
		return;
	record_fd = STDERR_FILENO;
	to_stderr = !strcmp(options.log, "-");
	if (!to_stderr) {
		record_fd = open(options.log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
		/* Set it only after the open, which waits for the reader of a named pipe. */
		if (record_fd < 0 || fcntl(record_fd, F_SETFL, O_APPEND | O_NONBLOCK))
			log_die("--log %s: %s", options.log, strerror(errno));
	}
	if (!fstat(record_fd, &stat) && S_ISREG(stat.st_mode))
		start_writer();
}

void records_close(void)
{
	if (file_fd < 0)
		return;
	close(record_fd);
	pthread_join(writer, NULL);
}

uint64_t records_lost(void)
{
	return lost;
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
	if (to_stderr && log_priorities)
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
	unsigned int lost;
	size_t done;

	if (!loop->nr_records)
		return;
	done = log_write(record_fd, loop->records, loop->nr_records);
	lost = lines_in(loop->records + done, loop->nr_records - done);
	counter_add(&loop->counters.log_lost, lost);
	loop->nr_records = 0;
}
