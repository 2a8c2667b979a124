// SPDX-License-Identifier: GPL-2.0
/* See store.h. This file: what goes into the store. What comes out of it: restore.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "notify.h"
#include "options.h"
#include "store.h"

/*
 * The names of all go into one environment variable of the next process, and the kernel takes no
 * string longer than 128 KiB: so names of sockets and pipes are one letter, and this is
 * how many fit.
 */
#define FDS_MAX		60000

static bool active;
static _Atomic int nr_fds;

void store_begin(struct timers *timers)
{
	active = notify_there() && options.store_after != TIME_NONE && timers_share(timers) >= 0;
}

bool store_active(void)
{
	return active;
}

/* For what cannot do without: the service manager may keep us waiting for a while. */
static void store_one(const char *name, int fd, bool watch)
{
	int tries, err = -EAGAIN;

	for (tries = 0; tries < 500 && err == -EAGAIN; tries++) {
		err = notify_store(name, &fd, 1, watch);
		if (err == -EAGAIN)
			sleep_until(now_ns() + STORE_BUSY);
	}
	if (err)
		log_say(LOG_WARNING, "%s cannot be kept: %s; a restart will end connections",
			name, strerror(-err));
}

void store_basics(struct loop **loops, unsigned int n, const struct stored *stored, int listener)
{
	unsigned int i;
	char name[32];

	if (!active)
		return;
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "wheel%u", i);
		if (stored->wheel[i] < 0)
			store_one(name, timers_share(loops[i]->timers), false);
		snprintf(name, sizeof(name), "ledger%u", i);
		if (stored->ledger[i] < 0)
			store_one(name, loops[i]->pipes.ledger_fd, false);
	}
	if (stored->listener < 0)
		store_one("listener", listener, true);
}

static bool fits(int n)
{
	if (atomic_fetch_add(&nr_fds, n) + n <= FDS_MAX)
		return true;
	atomic_fetch_sub(&nr_fds, n);
	log_seldom(LOG_WARNING, "%u descriptors are kept: no more connections survive a restart",
		   FDS_MAX);
	return false;
}

int store_pipe(const struct pipe *pipe)
{
	int fds[2] = { pipe->in, pipe->out }, err;

	if (!fits(2))
		return -ENOSPC;
	err = notify_store("p", fds, 2, false);
	if (err)
		atomic_fetch_sub(&nr_fds, 2);
	return err;
}

void store_conn(struct conn *conn)
{
	if (!active)
		return;
	conn->waits = true;
	TAILQ_INSERT_TAIL(&conn->loop->unstored, conn, store);
}

void store_kept(int n)
{
	atomic_fetch_add(&nr_fds, n);
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
		if (conn->opened > opened_until || n + 2 > NOTIFY_FDS_MAX || !fits(2))
			break;
		fds[n++] = conn->side[CLIENT].fd;
		fds[n++] = conn->side[SERVER].fd;
	}
	if (!n)
		return 0;
	err = notify_store("s", fds, n, true);
	if (err) {
		atomic_fetch_sub(&nr_fds, n);
		return err;
	}
	conn = TAILQ_FIRST(&loop->unstored);
	for (n /= 2, err = n; n; n--, conn = next) {
		next = TAILQ_NEXT(conn, store);
		TAILQ_REMOVE(&loop->unstored, conn, store);
		conn->waits = false;
		conn->stored = true;
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

static uint64_t store_conns(struct loop *loop)
{
	struct conn *conn = TAILQ_FIRST(&loop->unstored);
	uint64_t after = options.store_after;

	if (!conn)
		return TIME_NONE;
	if (conn->opened + after <= loop->now && store_until(loop, loop->now - after))
		return loop->now + STORE_BUSY;
	conn = TAILQ_FIRST(&loop->unstored);
	if (!conn)
		return TIME_NONE;
	/* There was no room for it. */
	if (conn->opened + after <= loop->now)
		return loop->now + NSEC_PER_SEC;
	return conn->opened + after;
}

/* Those for which the service manager had no time before. */
static int store_pipes(struct loop *loop)
{
	struct pipe *pipe;
	int err = 0;

	while (!err && (pipe = LIST_FIRST(&loop->pipes.unstored))) {
		err = store_pipe(pipe);
		if (!err)
			LIST_REMOVE(pipe, store);
	}
	return err;
}

uint64_t store_turn(struct loop *loop)
{
	int err = store_pipes(loop);
	uint64_t until = store_conns(loop), again = TIME_NONE;

	if (err)
		again = loop->now + (err == -EAGAIN ? STORE_BUSY : NSEC_PER_SEC);
	return again < until ? again : until;
}

bool store_all(struct loop *loop)
{
	return store_until(loop, UINT64_MAX) != -EAGAIN && store_pipes(loop) != -EAGAIN;
}
