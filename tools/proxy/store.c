// SPDX-License-Identifier: GPL-2.0
/* See store.h. This file puts connections into the store; restore.c takes them out. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "notify.h"
#include "options.h"
#include "store.h"
#include "timerwheel.h"

/* Descriptors kept free in the store, for wheels and listening sockets that a restart adds. */
#define HEADROOM	64
/*
 * The time, in ns, in which the service manager drops the sockets of an ended connection. It
 * notices their hangup, but handles new descriptors first.
 */
#define LEAVING		NSEC_PER_SEC
/* The time for which the start waits for a busy service manager, ns. */
#define PATIENCE	(5 * NSEC_PER_SEC)

static bool active;

/*
 * Clients choose the number of connections and their duration. The service manager compares each
 * new descriptor with all that it has, so both the number and the rate must have a limit: places of
 * ended connections are reused at a limited rate.
 */
static struct {
	pthread_mutex_t lock;
	unsigned int used;	/* descriptors in the store, including those that are leaving */
	unsigned int leaving;	/* connections that ended at @turned or later */
	unsigned int left;	/* connections that ended before; their places are not free yet */
	uint64_t turned;
} places = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* @hurry: the proxy ends, so the rate is not limited. */
static void places_turn(bool hurry)
{
	uint64_t now = now_ns(), since = now - places.turned;
	unsigned int n;

	if (since < LEAVING)
		return;
	/* No call for a while */
	if (since >= 2 * LEAVING) {
		places.left += places.leaving;
		places.leaving = 0;
	}
	n = places.left;
	if (n > STORE_RATE && !hurry)
		n = STORE_RATE;
	places.used -= 2 * n;
	places.left += places.leaving - n;
	places.leaving = 0;
	places.turned = now;
}

static bool place_take(struct conn *conn, bool hurry)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	pthread_mutex_lock(&places.lock);
	places_turn(hurry);
	conn->placed = places.used + 2 + HEADROOM <= options.store_max;
	if (conn->placed)
		places.used += 2;
	pthread_mutex_unlock(&places.lock);
	if (!conn->placed && !atomic_flag_test_and_set(&said))
		log_say(LOG_WARNING,
			"the service manager's store is full: a restart resets connections that wait for a place; see --store-max");
	return conn->placed;
}

static void place_leave(struct conn *conn)
{
	if (!conn->placed)
		return;
	pthread_mutex_lock(&places.lock);
	places_turn(false);
	places.leaving++;
	pthread_mutex_unlock(&places.lock);
	conn->placed = false;
}

unsigned int store_used(void)
{
	unsigned int used;

	pthread_mutex_lock(&places.lock);
	places_turn(false);
	used = places.used;
	pthread_mutex_unlock(&places.lock);
	return used;
}

/* Count descriptors that are in the store at the start, before any thread runs. */
static void count(unsigned int fds)
{
	places.used += fds;
}

bool store_active(void)
{
	return active;
}

/* The store may be smaller than --store-max. systemd 254 and later report its size. */
static void take_size(void)
{
	const char *text = getenv("FDSTORE");
	__u64 size;

	if (!text || !parse_count(text, &size) || size >= options.store_max)
		return;
	log_say(LOG_NOTICE, "FileDescriptorStoreMax= is only %llu, which is used as --store-max",
		(unsigned long long)size);
	options.store_max = size;
}

void store_fd(const char *name, int fd, bool watch, bool kept)
{
	static uint64_t until;
	int err;

	if (!active)
		return;
	count(1);
	if (kept)
		return;
	if (!until)
		until = now_ns() + PATIENCE;
	while ((err = notify_store(name, &fd, 1, watch)) == -EAGAIN && now_ns() < until)
		sleep_until(now_ns() + NOTIFY_BUSY);
	if (err)
		log_say(LOG_WARNING, "%s cannot be kept: %s; a restart will end connections",
			name, strerror(-err));
}

void store_begin(struct loop *loop, bool kept)
{
	int wheel = timerwheel_share(loop->wheel);
	char name[32];

	active = notify_there() && options.store_after != TIME_NONE && wheel >= 0;
	if (active && !loop->number)
		take_size();
	snprintf(name, sizeof(name), "wheel%u", loop->number);
	store_fd(name, wheel, false, kept);
}

void store_conn(struct conn *conn)
{
	if (!active || conn->waits)
		return;
	conn->waits = true;
	counter_add(&conn->loop->counters.store_waiting, 1);
	/* The store also has another socket of it, until it notices that this one has hung up. */
	place_leave(conn);
	if (conn->stored)
		TAILQ_INSERT_HEAD(&conn->loop->unstored, conn, store);
	else
		TAILQ_INSERT_TAIL(&conn->loop->unstored, conn, store);
}

void store_kept(struct conn *conn)
{
	count(2);
	conn->placed = true;
}

static void wait_no_more(struct conn *conn)
{
	if (!conn->waits)
		return;
	TAILQ_REMOVE(&conn->loop->unstored, conn, store);
	counter_add(&conn->loop->counters.store_waiting, -1);
	conn->waits = false;
}

void store_forget(struct conn *conn)
{
	wait_no_more(conn);
	place_leave(conn);
}

/* Send one message. Returns the number of connections sent, or an error. */
static int store_some(struct loop *loop, uint64_t opened_until, bool hurry)
{
	struct conn *conn;
	int fds[NOTIFY_FDS_MAX], n = 0, err;

	TAILQ_FOREACH(conn, &loop->unstored, store) {
		if (conn->opened > opened_until || n + 2 > NOTIFY_FDS_MAX ||
		    (!conn->placed && !place_take(conn, hurry)))
			break;
		conn->stored = true;
		fds[n++] = conn->side[CLIENT].fd;
		fds[n++] = conn->side[SERVER].fd;
	}
	if (!n)
		return 0;
	err = notify_store("s", fds, n, true);
	if (err)
		return err;
	for (n /= 2, err = n; n; n--)
		wait_no_more(TAILQ_FIRST(&loop->unstored));
	return err;
}

static int store_until(struct loop *loop, uint64_t opened_until, bool hurry)
{
	int sent;

	do {
		sent = store_some(loop, opened_until, hurry);
	} while (sent > 0);
	if (sent && sent != -EAGAIN)
		log_seldom(LOG_WARNING, "the service manager does not keep connections: %s",
			   strerror(-sent));
	return sent;
}

uint64_t store_turn(struct loop *loop)
{
	struct conn *conn = TAILQ_FIRST(&loop->unstored);
	uint64_t after = options.store_after;

	if (!conn)
		return TIME_NONE;
	if (conn->opened + after <= loop->now && store_until(loop, loop->now - after, false))
		return loop->now + NOTIFY_BUSY;
	conn = TAILQ_FIRST(&loop->unstored);
	if (!conn)
		return TIME_NONE;
	/* The store had no room for it. */
	if (conn->opened + after <= loop->now)
		return loop->now + NSEC_PER_SEC;
	return conn->opened + after;
}

bool store_all(struct loop *loop)
{
	struct conn *conn;
	unsigned int n = 0;

	if (store_until(loop, UINT64_MAX, true) == -EAGAIN)
		return false;
	while ((conn = TAILQ_FIRST(&loop->unstored))) {
		conn_close(conn, END_NOT_KEPT);
		n++;
	}
	if (n)
		log_say(LOG_WARNING,
			"connections reset because the service manager's store is full: %u; see --store-max",
			n);
	return true;
}
