// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * usage: jobs [-w WORKERS] [-l SECONDS] [-r SECONDS] CONNINFO
 *
 * Run the jobs of a PostgreSQL table (jobs.sql) when they are due, on any number of machines. The
 * database keeps the jobs, because it outlives any machine. The wheel has the jobs that are due
 * soon, so that no program polls the database. It needs the device.
 *
 *	-w	number of workers (4)
 *	-l	how far to look ahead, in seconds (600); at least as far as the trigger announces
 *	-r	try again after this time, in seconds (5), if a job was not done
 *
 * One child listens for new jobs, and looks up those that are due soon: at the start, and twice in
 * the time it looks ahead. Each is a timer of the wheel that it shares with the workers, on
 * CLOCK_REALTIME: key is the job's id, value the time when it is due. The other children are the
 * workers. A child that was killed, or has lost its connection, is started again by the parent, and
 * the parent by a service manager.
 *
 * The wheel gives an event to one worker of the machine. A lock on the job's row decides between
 * machines. The timer is periodic, and is removed when the job is done: if a worker dies or loses
 * its connection before that, another worker gets the next event. The effects of a job's
 * transaction happen exactly once; other effects happen at least once, and more than once only
 * after a failure.
 */
#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <timerwheel.h>

#define MOST_WORKERS	64
#define ROWS		4096		/* of jobs, looked up at once */
#define S		1000000000ULL	/* ns */

static struct timerwheel *wheel;
static const char *conninfo;
static int window = 600, retry = 5;	/* s */
static char me[64];

static void die(const char *what, long error)
{
	fprintf(stderr, "%s: %s: %s\n", me, what, timerwheel_strerror(error));
	exit(1);
}

/* A query with parameters, as text; the caller clears the result. NULL: it failed. */
static PGresult *query(PGconn *db, const char *sql, int n, ...)
{
	const char *values[4];
	PGresult *result;
	va_list list;
	int i;

	va_start(list, n);
	for (i = 0; i < n; i++)
		values[i] = va_arg(list, const char *);
	va_end(list);
	result = PQexecParams(db, sql, n, NULL, values, NULL, NULL, 0);
	switch (PQresultStatus(result)) {
	case PGRES_COMMAND_OK:
	case PGRES_TUPLES_OK:
		return result;
	default:
		fprintf(stderr, "%s: %s", me, PQerrorMessage(db));
		PQclear(result);
		return NULL;
	}
}

/* The number of rows that a query returns, or has changed; negative: it failed. */
static int rows(PGconn *db, const char *sql, const char *parameter)
{
	PGresult *result = query(db, sql, !!parameter, parameter);
	int n = result ? PQntuples(result) + atoi(PQcmdTuples(result)) : -1;

	PQclear(result);
	return n;
}

/* ---- timers ---- */

static struct timerwheel_add timers[ROWS];
static size_t timers_used;

static void flush_timers(void)
{
	long n = timers_used ? timerwheel_add(wheel, timers, timers_used) : 0;
	size_t i;

	for (i = 0; i < timers_used; i++) {
		if (n <= (long)i)
			timers[i].result = n < 0 ? n : -EAGAIN;
		/* The job gets its timer when jobs are looked up again. */
		if (timers[i].result < 0)
			fprintf(stderr, "%s: no timer for job %" PRIu64 ": %s\n", me,
				(uint64_t)timers[i].key, timerwheel_strerror(timers[i].result));
	}
	timers_used = 0;
}

/* Arm the timer of a job, even if it is armed, because the time may have changed. */
static void set_timer(uint64_t id, int64_t due)
{
	timers[timers_used++] = (struct timerwheel_add){
		.key = id,
		.value = due,
		.deadline = due > 0 ? due * 1000 : 0,
		.period = retry * S,
		.flags = TIMERWHEEL_ABS,
	};
	if (timers_used == ROWS)
		flush_timers();
}

/* Skip it if it was set again for another time. */
static void remove_timer(const struct timerwheel_event *event)
{
	struct timerwheel_remove timer = {
		.key = event->key,
		.match = event->value,
		.flags = TIMERWHEEL_MATCH,
	};
	long n = timerwheel_remove(wheel, &timer, 1);

	if (n < 0)
		die("cannot remove a timer", n);
}

/* ---- a worker ---- */

/* Perform a job in its transaction. In this example it takes a while, and adds a row. */
static bool run_job(PGconn *db, const char *id, const char *payload)
{
	PGresult *result;

	poll(NULL, 0, atoi(payload));
	result = query(db, "INSERT INTO runs (job, worker) VALUES ($1, $2)", 2, id, me);
	PQclear(result);
	return result;
}

/* Returns whether the timer is of no use any more. */
static bool in_transaction(PGconn *db, const struct timerwheel_event *event)
{
	char id[24], at[24];
	PGresult *job;
	bool over = false;
	int64_t due;

	snprintf(id, sizeof(id), "%" PRIu64, (uint64_t)event->key);
	job = query(db, "SELECT payload, microseconds(due), due <= clock_timestamp() FROM jobs "
			"WHERE id = $1 AND done IS NULL FOR UPDATE SKIP LOCKED", 1, id);
	if (!job)
		return false;
	if (!PQntuples(job)) {
		/* It is done, or gone; or another machine is at it, and may fail. */
		over = rows(db, "SELECT 1 FROM jobs WHERE id = $1 AND done IS NULL", id) == 0;
	} else if (*PQgetvalue(job, 0, 2) == 't') {
		if (run_job(db, id, PQgetvalue(job, 0, 0))) {
			PGresult *done = query(db, "UPDATE jobs SET done = clock_timestamp(), "
						   "worker = $2 WHERE id = $1", 2, id, me);

			PQclear(done);
			over = done;
		}
	} else {
		/*
		 * The job was put off; or the clock of the database is behind, and the timer's
		 * next event does.
		 */
		due = strtoll(PQgetvalue(job, 0, 1), NULL, 10);
		snprintf(at, sizeof(at), "%" PRIu64, (uint64_t)event->value);
		if (due != (int64_t)event->value)
			set_timer(event->key, due);
	}
	PQclear(job);
	return over;
}

static void work(void)
{
	struct timerwheel_event event;
	bool over;
	PGconn *db = PQconnectdb(conninfo);
	struct pollfd ready[] = {
		{ .fd = timerwheel_fd(wheel), .events = POLLIN },
		{ .fd = PQsocket(db), .events = POLLIN },
	};
	long n;

	while (PQstatus(db) == CONNECTION_OK) {
		/* One at a time: what a worker has taken waits until it is done. */
		n = timerwheel_take(wheel, &event, 1);
		if (n < 0)
			die("no events", n);
		if (n == 0) {
			poll(ready, 2, -1);
			/* Only the end of the connection comes unasked. */
			PQconsumeInput(db);
			continue;
		}
		over = rows(db, "BEGIN", NULL) >= 0 && in_transaction(db, &event) &&
		       rows(db, "COMMIT", NULL) >= 0;
		if (over)
			remove_timer(&event);
		else if (PQtransactionStatus(db) != PQTRANS_IDLE)
			rows(db, "ROLLBACK", NULL);
		flush_timers();
	}
	fprintf(stderr, "%s: no connection: %s", me, PQerrorMessage(db));
}

/* ---- who listens ---- */

/* All jobs that will be due within the window. False: not all were seen. */
static bool look_up(PGconn *db)
{
	char seconds[24];
	PGresult *jobs;
	bool all;
	int i, n = 0;

	snprintf(seconds, sizeof(seconds), "%d", window);
	if (rows(db, "BEGIN", NULL) < 0)
		return false;
	jobs = query(db, "DECLARE soon CURSOR FOR SELECT id, microseconds(due) FROM jobs WHERE "
			 "done IS NULL AND due < now() + $1 * interval '1 s'", 1, seconds);
	while (jobs) {
		PQclear(jobs);
		jobs = query(db, "FETCH 4096 FROM soon", 0);
		n = jobs ? PQntuples(jobs) : 0;
		if (!n)
			break;
		for (i = 0; i < n; i++)
			set_timer(strtoull(PQgetvalue(jobs, i, 0), NULL, 10),
				  strtoll(PQgetvalue(jobs, i, 1), NULL, 10));
	}
	all = jobs;
	PQclear(jobs);
	flush_timers();
	/* After a failure COMMIT is a ROLLBACK that succeeds. */
	return all && rows(db, "COMMIT", NULL) >= 0;
}

/* Handle announcements. Returns false if the connection was lost. */
static bool hear(PGconn *db)
{
	PGnotify *heard;
	int64_t due;
	char *rest;

	if (!PQconsumeInput(db))
		return false;
	while ((heard = PQnotifies(db))) {
		uint64_t id = strtoull(heard->extra, &rest, 10);

		due = strtoll(rest, NULL, 10);
		set_timer(id, due);
		PQfreemem(heard);
	}
	flush_timers();
	return true;
}

static time_t seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec;
}

/* Listen first, then look: a job that comes in between is seen twice, and not missed. */
static void listen_and_look(void)
{
	struct pollfd ready = { .events = POLLIN };
	time_t next, t;
	PGconn *db = PQconnectdb(conninfo);

	while (PQstatus(db) == CONNECTION_OK && rows(db, "LISTEN jobs", NULL) >= 0 && look_up(db)) {
		next = seconds() + window / 2 + 1;
		while (hear(db) && (t = seconds()) < next) {
			ready.fd = PQsocket(db);
			poll(&ready, 1, (next - t) * 1000);
		}
	}
	fprintf(stderr, "%s: cannot listen and look: %s", me, PQerrorMessage(db));
	PQfinish(db);
}

/* ---- the parent ---- */

/* A worker, or with number 0 who listens. It ends when it has lost its connection. */
static pid_t start(int number)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		exit(1);
	snprintf(me + strlen(me), sizeof(me) - strlen(me), ".%d", number);
	if (number)
		work();
	else
		listen_and_look();
	exit(1);
}

/*
 * Our parent may ignore or block signals, and children inherit that. With SIGCHLD ignored, wait()
 * returns only when the last child has ended. SIGTERM ends the workers when we have ended.
 */
static void reset_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
}

static void supervise(int children)
{
	pid_t pids[MOST_WORKERS + 1], pid;
	int i;

	reset_signals();
	for (i = 0; i < children; i++)
		pids[i] = start(i);
	while ((pid = wait(NULL)) > 0) {
		/* At most one in a second: the database may be away for long. */
		poll(NULL, 0, 1000);
		for (i = 0; i < children; i++)
			if (pids[i] == pid)
				pids[i] = start(i);
	}
}

static int number(const char *word, int most)
{
	char *end;
	long n = strtol(word, &end, 10);

	if (n < 1 || n > most || *end) {
		fprintf(stderr, "jobs: %s is not a number from 1 to %d\n", word, most);
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	struct timerwheel_config config = {
		.backend = TIMERWHEEL_BACKEND_DEVICE,
		.clock = TIMERWHEEL_CLOCK_REALTIME,
	};
	int option, workers = 4, error;

	while ((option = getopt(argc, argv, "w:l:r:")) >= 0) {
		if (option == 'w') {
			workers = number(optarg, MOST_WORKERS);
		} else if (option == 'l') {
			window = number(optarg, 86400);
		} else if (option == 'r') {
			retry = number(optarg, 86400);
		} else {
			optind = argc;
			break;
		}
	}
	if (optind != argc - 1) {
		fprintf(stderr, "usage: jobs [-w WORKERS] [-l SECONDS] [-r SECONDS] CONNINFO\n");
		return 2;
	}
	conninfo = argv[optind];
	gethostname(me, sizeof(me) - 16);
	error = timerwheel_open(&wheel, &config);
	if (error)
		die("no wheel", error);
	snprintf(me + strlen(me), sizeof(me) - strlen(me), ".%d", getpid());
	supervise(workers + 1);
	return 0;
}
