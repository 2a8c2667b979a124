// SPDX-License-Identifier: MIT OR GPL-2.0
/* See sessions.h. */
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
static uint64_t deadlines[SESSIONS];		/* 0: the session ended */
static unsigned int left = SESSIONS, rounds, refreshed, early, failures;

static void die(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, timerwheel_strerror(err));
	exit(1);
}

static void failed(void *arg, unsigned long op, const void *elem)
{
	(void)arg;
	(void)op;
	(void)elem;
	failures++;
}

static void check(int err)
{
	if (err)
		die("queue", err);
}

/* Start the timeout of a session, or start it again if the timer exists. */
static void session_arm(uint64_t session)
{
	struct timerwheel_add add = { .key = session, .flags = TIMERWHEEL_ABS };

	add.deadline = timerwheel_now(wheel) + IDLE;
	deadlines[session] = add.deadline;
	check(timerwheel_queue_add(queue, &add));
}

void sessions_start(int argc, char **argv)
{
	struct timerwheel_config config = { .capacity = SESSIONS + 1 };
	struct timerwheel_add traffic = {
		.key = TRAFFIC,
		.deadline = TRAFFIC_EVERY,
		.period = TRAFFIC_EVERY,
	};
	uint64_t session;
	int err;

	if (argc > 1 && !strcmp(argv[1], "ring"))
		config.ring = 64;
	err = timerwheel_open(&wheel, &config);
	if (err)
		die("no wheel", err);
	err = timerwheel_queue_new(&queue, wheel, 0, failed, NULL);
	if (err)
		die("no queue", err);
	check(timerwheel_queue_add(queue, &traffic));
	for (session = 0; session < SESSIONS; session++)
		session_arm(session);
}

int sessions_fd(void)
{
	return timerwheel_fd(wheel);
}

/* Simulate traffic on each busy session. */
static void make_traffic(void)
{
	struct timerwheel_remove traffic = { .key = TRAFFIC };
	uint64_t session;

	for (session = 0; session < BUSY; session++) {
		/* This session has ended. */
		if (!deadlines[session])
			continue;
		refreshed++;
		session_arm(session);
	}
	if (++rounds == TRAFFIC_ROUNDS)
		check(timerwheel_queue_remove(queue, &traffic));
}

static void handle(const struct timerwheel_event *event)
{
	if (event->key == TRAFFIC) {
		if (rounds < TRAFFIC_ROUNDS)
			make_traffic();
		return;
	}
	/* A server reads from the connection here, which may arm the timer again. */
	if (!deadlines[event->key] || event->deadline < deadlines[event->key])
		return;
	if (event->fired < deadlines[event->key])
		early++;
	deadlines[event->key] = 0;
	left--;
}

void sessions_expire(void)
{
	struct timerwheel_event events[64];
	long n, i;

	do {
		/* The flush withdraws the events of timers that were armed again. */
		check(timerwheel_queue_flush(queue));
		n = timerwheel_take(wheel, events, 64);
		for (i = 0; i < n; i++)
			handle(&events[i]);
	} while (n > 0);
	if (n < 0)
		die("no events", n);
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
