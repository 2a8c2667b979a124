// SPDX-License-Identifier: GPL-2.0
/* See store.h. This file: what goes into the store. What comes out of it: restore.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "notify.h"
#include "options.h"
#include "store.h"
#include "timerwheel.h"

/*
 * The names of all go into one environment variable of the next process, and the kernel takes no
 * string longer than 128 KiB: so the name of sockets is one letter, and this is how many fit.
 */
#define FDS_MAX		60000
/* How long the start waits for a service manager that is busy, ns. */
#define PATIENCE	(5 * NSEC_PER_SEC)

static bool active;
static _Atomic int nr_fds;

bool store_active(void)
{
	return active;
}

void store_fd(const char *name, int fd, bool watch)
{
	static uint64_t until;
	int err;

	if (!active)
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
	snprintf(name, sizeof(name), "wheel%u", loop->number);
	if (!kept)
		store_fd(name, wheel, false);
}

static bool fits(void)
{
	if (atomic_fetch_add(&nr_fds, 2) + 2 <= FDS_MAX)
		return true;
	atomic_fetch_sub(&nr_fds, 2);
	log_seldom(LOG_WARNING, "%u descriptors are kept: no more connections survive a restart",
		   FDS_MAX);
	return false;
}

void store_conn(struct conn *conn)
{
	if (!active || conn->waits)
		return;
	conn->waits = true;
	if (conn->stored)
		TAILQ_INSERT_HEAD(&conn->loop->unstored, conn, store);
	else
		TAILQ_INSERT_TAIL(&conn->loop->unstored, conn, store);
}

void store_kept(void)
{
	atomic_fetch_add(&nr_fds, 2);
}

void store_forget(struct conn *conn)
{
	if (conn->waits)
		TAILQ_REMOVE(&conn->loop->unstored, conn, store);
	if (conn->stored)
		atomic_fetch_sub(&nr_fds, 2);
	conn->waits = false;
}

/* What one message can carry: how many connections were sent, or an error. */
static int store_some(struct loop *loop, uint64_t opened_until)
{
	struct conn *conn, *next;
	int fds[NOTIFY_FDS_MAX], n = 0, err;

	TAILQ_FOREACH(conn, &loop->unstored, store) {
		if (conn->opened > opened_until || n + 2 > NOTIFY_FDS_MAX ||
		    (!conn->stored && !fits()))
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
	conn = TAILQ_FIRST(&loop->unstored);
	for (n /= 2, err = n; n; n--, conn = next) {
		next = TAILQ_NEXT(conn, store);
		TAILQ_REMOVE(&loop->unstored, conn, store);
		conn->waits = false;
	}
	return err;
}

static int store_until(struct loop *loop, uint64_t opened_until)
{
	int sent;

	do {
		sent = store_some(loop, opened_until);
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
	if (conn->opened + after <= loop->now && store_until(loop, loop->now - after))
		return loop->now + NOTIFY_BUSY;
	conn = TAILQ_FIRST(&loop->unstored);
	if (!conn)
		return TIME_NONE;
	/* There was no room for it. */
	if (conn->opened + after <= loop->now)
		return loop->now + NSEC_PER_SEC;
	return conn->opened + after;
}

bool store_all(struct loop *loop)
{
	return store_until(loop, UINT64_MAX) != -EAGAIN;
}
