// SPDX-License-Identifier: MIT OR GPL-2.0
/* See sessions.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <timerwheel.h>

#include "sessions.h"

#define MSEC		1000000ULL

#define SESSIONS	1000U
#define BUSY		(SESSIONS / 2)		/* number of sessions with traffic */
#define IDLE		(100 * MSEC)
#define TRAFFIC		SESSIONS		/* key of the timer that makes traffic */
#define TRAFFIC_EVERY	(5 * MSEC)
#define TRAFFIC_ROUNDS	20U

static struct timerwheel *wheel;
static struct timerwheel_queue *queue;
static uint64_t spoke[SESSIONS];		/* time of the last traffic; 0: the session ended */
static unsigned int left = SESSIONS, rounds, refreshed, early, failures;

static void die(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, timerwheel_strerror(err));
	exit(1);
}

/* A MOVE finds no timer if the session was refreshed too late and its event was already taken. */
static void failed(void *arg, unsigned long op, const void *elem)
{
	const struct timerwheel_move *move = elem;

	(void)arg;
	if (op == TIMERWHEEL_IOC_MOVE && move->result == -ENOENT)
		spoke[move->key] = 0;
	else
		failures++;
}

static void check(int err)
{
	if (err)
		die("queue", err);
}

void sessions_start(int argc, char **argv)
{
	struct timerwheel_config config = { .capacity = SESSIONS + 1 };
	struct timerwheel_add traffic = {
		.key = TRAFFIC,
		.deadline = TRAFFIC_EVERY,
		.period = TRAFFIC_EVERY,
	};
	struct timerwheel_add session = { .deadline = IDLE };
	uint64_t now;
	int err;

	if (argc > 1 && !strcmp(argv[1], "ring"))
		config.ring = 64;
	err = timerwheel_open(&wheel, &config);
	if (err)
		die("no wheel", err);
	err = timerwheel_queue_new(&queue, wheel, 0, failed, NULL);
	if (err)
		die("no queue", err);
	now = timerwheel_now(wheel);
	check(timerwheel_queue_add(queue, &traffic));
	for (session.key = 0; session.key < SESSIONS; session.key++) {
		spoke[session.key] = now;
		check(timerwheel_queue_add(queue, &session));
	}
}

int sessions_fd(void)
{
	return timerwheel_fd(wheel);
}

/* Simulate traffic on each busy session. */
static void make_traffic(void)
{
	struct timerwheel_remove traffic = { .key = TRAFFIC };
	struct timerwheel_move session = { .flags = TIMERWHEEL_ABS };
	uint64_t now = timerwheel_now(wheel);

	session.deadline = now + IDLE;
	for (session.key = 0; session.key < BUSY; session.key++) {
		/* This session has ended. */
		if (!spoke[session.key])
			continue;
		spoke[session.key] = now;
		refreshed++;
		check(timerwheel_queue_move(queue, &session));
	}
	if (++rounds == TRAFFIC_ROUNDS)
		check(timerwheel_queue_remove(queue, &traffic));
}

static void end_session(const struct timerwheel_event *event)
{
	if (event->fired < spoke[event->key] + IDLE)
		early++;
	spoke[event->key] = 0;
	left--;
}

void sessions_expire(void)
{
	struct timerwheel_event events[64];
	bool traffic = false;
	long n, i;

	/* A session that was active in this iteration is alive: its MOVE withdraws the event. */
	sessions_flush();
	/* Take events until there are none. Only then the descriptor becomes readable again. */
	while ((n = timerwheel_take(wheel, events, 64)) > 0) {
		for (i = 0; i < n; i++) {
			if (events[i].key == TRAFFIC)
				traffic = true;
			else
				end_session(&events[i]);
		}
	}
	if (n < 0)
		die("no events", n);
	if (traffic && rounds < TRAFFIC_ROUNDS)
		make_traffic();
}

void sessions_flush(void)
{
	check(timerwheel_queue_flush(queue));
}

bool sessions_left(void)
{
	return left || rounds < TRAFFIC_ROUNDS;
}

int sessions_end(void)
{
	bool right = !left && !early && !failures && rounds == TRAFFIC_ROUNDS;

	printf("%s: %u sessions ended, %u early; %u refreshed, %u failures; wheel of the %s\n",
	       right ? "right" : "WRONG", SESSIONS - left, early, refreshed, failures,
	       timerwheel_backend(wheel) == TIMERWHEEL_BACKEND_DEVICE ? "device" : "process");
	timerwheel_queue_free(queue);
	timerwheel_close(wheel);
	return !right;
}
