// SPDX-License-Identifier: GPL-2.0
/*
 * See timers.h: a wheel of libtimerwheel for each thread.
 *
 * A byte that passes postpones its connection's timeout by a compare-and-swap in the deadline
 * table. All other requests of a turn are gathered into at most two system calls.
 *
 * Keys and values contain everything that the next proxy must know about a connection, because it
 * otherwise only has the sockets:
 *
 *	key    SO_COOKIE of the client's socket << 1 | 1 if this is the lifetime timer
 *	value  version of the PROXY protocol's header << 62 |
 *	       SO_COOKIE of the server's socket << 3 | 4 if there is a lifetime timer | kind
 *
 * Cookies count up from 1, and in interrupts down from -1. The upper bits that are lost here all
 * equal the sign bit, so an arithmetic shift recovers them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "conn.h"
#include "listener.h"
#include "log.h"
#include "store.h"
#include "timers.h"
#include "timerwheel.h"

/* Events taken at once. */
#define BATCH	256
/* Maximum number in a turn: two timers for each event and for each new client. */
#define ADDS	(2 * LOOP_EVENTS + 2 * LISTENER_ACCEPTS)

struct timers {
	struct source source;
	struct loop *loop;
	struct timerwheel_table table;
	struct timerwheel_queue *removals;
	bool due;			/* the wheel has events */
	unsigned int nr_adds;
	struct timer *adding[ADDS];	/* their timers; NULL: the connection was closed since */
	struct timerwheel_add adds[ADDS];
};

static void wheel_ready(struct source *source, uint32_t events)
{
	(void)events;
	((struct timers *)source)->due = true;
}

/* Adopt a wheel, which has the capacity that the previous process has set. */
static struct timerwheel *wheel_adopt(struct loop *loop, int fd)
{
	struct timerwheel_info info;
	struct timerwheel *wheel;
	int err = timerwheel_adopt(&wheel, fd, true);

	if (err == -ENOENT)
		log_die("the wheel that was kept has no deadline table: stop and start");
	if (!err)
		err = timerwheel_info(wheel, &info);
	if (err)
		log_die("the wheel that the service manager kept cannot be used: %s",
			timerwheel_strerror(err));
	if (info.capacity < BATCH + 2)
		log_die("the wheel that was kept has room for only %u timers: stop and start",
			info.capacity);
	if ((info.capacity - BATCH) / 2 < loop->max_open) {
		loop->max_open = (info.capacity - BATCH) / 2;
		log_say(LOG_WARNING,
			"thread %u: the wheel that was kept has room for only %u connections: stop and start for more",
			loop->number, loop->max_open);
	}
	return wheel;
}

static struct timerwheel *wheel_new(const struct loop *loop)
{
	/* Two timers per connection: phase and lifetime. */
	struct timerwheel_config config = { .capacity = 2 * loop->max_open + BATCH, .table = true };
	struct timerwheel *wheel;
	int err = timerwheel_open(&wheel, &config);

	if (err)
		log_die("cannot open a wheel: %s", timerwheel_strerror(err));
	return wheel;
}

struct timers *timers_open(struct loop *loop, int kept)
{
	struct timers *timers = xcalloc(1, sizeof(*timers));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &timers->source };
	int err;

	timers->source.ready = wheel_ready;
	timers->loop = loop;
	loop->wheel = kept >= 0 ? wheel_adopt(loop, kept) : wheel_new(loop);
	err = timerwheel_table(loop->wheel, &timers->table);
	if (!err)
		err = timerwheel_queue_new(&timers->removals, loop->wheel, BATCH, NULL, NULL);
	if (err)
		log_die("cannot use the wheel: %s", timerwheel_strerror(err));
	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, timerwheel_fd(loop->wheel), &event))
		log_die("epoll_ctl: %s", strerror(errno));
	return timers;
}

const char *timers_backend(const struct loop *loop)
{
	return timerwheel_backend(loop->wheel) == TIMERWHEEL_BACKEND_DEVICE ? "device" : "process";
}

static uint64_t key_of(const struct timer *timer)
{
	return timer->conn->id << 1 | (timer == &timer->conn->life);
}

static uint64_t id_of(uint64_t key)
{
	return (int64_t)key >> 1;
}

static uint64_t value_of(const struct timer *timer)
{
	const struct conn *conn = timer->conn;

	/* The cookie is between the header and the three bits. */
	return (uint64_t)conn->header << 62 | conn->server_id << 5 >> 2 |
	       (uint64_t)conn->lives << 2 | timer->kind;
}

static uint64_t server_id_of(uint64_t value)
{
	return (int64_t)(value << 2) >> 5;
}

void timers_arm(struct timers *timers, struct timer *timer)
{
	unsigned int i = timer->added ? timer->added - 1 : timers->nr_adds++;

	timers->adding[i] = timer;
	timers->adds[i] = (struct timerwheel_add) {
		.key = key_of(timer),
		.value = value_of(timer),
		.deadline = timer->deadline,
		.flags = TIMERWHEEL_ABS,
	};
	timer->added = i + 1;
	timer->armed = true;
}

void timers_refresh(struct timers *timers, struct timer *timer)
{
	enum timerwheel_answer answer;

	if (timer->added) {
		timers->adds[timer->added - 1].deadline = timer->deadline;
		return;
	}
	answer = timerwheel_table_refresh(&timers->table, timer->index, timer->generation,
					  timer->deadline);
	if (answer == TIMERWHEEL_DONE)
		return;
	/* It has fired, and this ends its event; or it has a later deadline. */
	if (answer != TIMERWHEEL_NEEDS_CALL)
		counter_add(&timers->loop->counters.postponed, 1);
	timers_arm(timers, timer);
}

/* Drop a queued add, if any, and remove the timer that it would replace. */
static void cancel(struct timers *timers, struct timer *timer)
{
	struct timerwheel_remove removal = { .key = key_of(timer) };
	int err;

	if (!timer->armed)
		return;
	if (timer->added)
		timers->adding[timer->added - 1] = NULL;
	timer->armed = false;
	err = timerwheel_queue_remove(timers->removals, &removal);
	if (err)
		log_seldom(LOG_WARNING, "cannot remove a timer: %s", timerwheel_strerror(err));
}

void timers_cancel(struct timers *timers, struct conn *conn)
{
	cancel(timers, &conn->timer);
	cancel(timers, &conn->life);
}

/* Drop adds of connections that were closed in this turn. Returns the number of the others. */
static unsigned int still_wanted(struct timers *timers)
{
	unsigned int i, n = 0;

	for (i = 0; i < timers->nr_adds; i++) {
		if (!timers->adding[i])
			continue;
		timers->adding[n] = timers->adding[i];
		timers->adding[n]->added = 0;
		timers->adds[n++] = timers->adds[i];
	}
	return n;
}

static void added(struct timer *timer, const struct timerwheel_add *add)
{
	if (add->result >= 0) {
		timer->index = add->index;
		timer->generation = add->generation;
		return;
	}
	timer->armed = false;
	log_seldom(LOG_WARNING, "no timer for a connection, closing it: %s",
		   timerwheel_strerror(add->result));
	if (!timer->conn->closed)
		conn_close(timer->conn, END_FAILED);
}

static void flush_adds(struct timers *timers)
{
	unsigned int i, n = still_wanted(timers);
	long ret, done = 0;

	timers->nr_adds = 0;
	while (done < n) {
		ret = timerwheel_add(timers->loop->wheel, timers->adds + done, n - done);
		if (ret < 0 && ret != -EINTR)
			log_die("cannot add timers: %s", timerwheel_strerror(ret));
		done += ret > 0 ? ret : 0;
	}
	for (i = 0; i < n; i++)
		added(timers->adding[i], &timers->adds[i]);
}

void timers_flush(struct timers *timers)
{
	int err = timerwheel_queue_flush(timers->removals);

	if (err)
		log_seldom(LOG_WARNING, "cannot remove timers: %s", timerwheel_strerror(err));
	if (timers->nr_adds)
		flush_adds(timers);
}

static void expire(struct timers *timers, const struct timerwheel_event *event)
{
	struct conn *conn = conn_find(timers->loop, id_of(event->key));
	struct timer *timer;

	/* An earlier event of this batch has closed it. */
	if (!conn)
		return;
	timer = event->key & 1 ? &conn->life : &conn->timer;
	/* An earlier event of this batch has armed it again. */
	if (timer->added)
		return;
	timer->armed = false;
	conn_expired(conn, timer);
}

void timers_expire(struct timers *timers)
{
	struct timerwheel_event events[BATCH];
	long i, n;

	if (!timers->due)
		return;
	do {
		n = timerwheel_take(timers->loop->wheel, events, BATCH);
		if (n < 0 && n != -EINTR)
			log_die("cannot take events: %s", timerwheel_strerror(n));
		for (i = 0; i < n; i++)
			expire(timers, &events[i]);
		/* Flush before taking more, to withdraw events of closed connections. */
		timers_flush(timers);
	} while (n);
	timers->due = false;
}

static void look_at(struct timers *timers, const struct timerwheel_entry *entry)
{
	struct conn *conn = restore_conn(timers->loop, id_of(entry->key),
					 server_id_of(entry->value));
	struct timerwheel_remove removal = { .key = entry->key };
	struct timer *timer;

	if (!conn) {
		timerwheel_queue_remove(timers->removals, &removal);
		return;
	}
	conn->header = entry->value >> 62;
	conn->lives = entry->value >> 2 & 1;
	timer = entry->key & 1 ? &conn->life : &conn->timer;
	timer->kind = entry->value & 3;
	if (timer == &conn->timer)
		conn->phase = timer->kind;
	timer->armed = true;
	timer->deadline = entry->deadline;
	timer->index = entry->index;
	timer->generation = entry->generation;
}

void timers_each(struct timers *timers)
{
	static struct timerwheel_entry entries[4096];
	struct timerwheel *wheel = timers->loop->wheel;
	uint64_t cursor = 0;
	long i, n;

	while ((n = timerwheel_list(wheel, entries, ARRAY_SIZE(entries), &cursor)) > 0) {
		for (i = 0; i < n; i++)
			look_at(timers, &entries[i]);
	}
	if (n)
		log_die("cannot list the timers that were kept: %s", timerwheel_strerror(n));
	timers_flush(timers);
}
