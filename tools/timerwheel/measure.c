// SPDX-License-Identifier: GPL-2.0
/*
 * bench: the cost of a timer on this machine, in real time. Each round arms, moves and removes a
 * few thousand timers, and then arms them to be due immediately and takes their events, with a
 * given number of timers per call. The best of several rounds counts, because it was disturbed
 * least.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"

#define ROUND	8192
#define ROUNDS	64
/* Minimum time for all rounds; ROUNDS is their maximum number. */
#define BUDGET	(400 * NSEC_PER_MSEC)

enum { ADD, MOVE, REMOVE, TAKE, NR_OPS };

static const char *const op_names[] = { "add", "move", "remove", "take" };
static const size_t per_call[] = { 1, 16, 256, 4096 };

static struct timerwheel *wheel;
static __u64 best[ARRAY_SIZE(per_call)][NR_OPS];	/* ns per round */

static struct timerwheel_add adds[ROUND];
static struct timerwheel_move moves[ROUND];
static struct timerwheel_remove removes[ROUND];
static struct timerwheel_event events[ROUND];

static void check(const char *what, long n)
{
	if (n <= 0)
		die("%s: %s", what, error_text(n ? n : -EINTR));
}

/* The first key of the measured timers. */
#define FIRST	0x100000000ULL

static void arm(size_t batch, __u64 deadline)
{
	size_t i;
	long n;

	for (i = 0; i < ROUND; i++)
		adds[i] = (struct timerwheel_add) {
			.key = FIRST + i,
			.deadline = deadline ? deadline + i * NSEC_PER_MSEC : 0,
		};
	for (i = 0; i < ROUND; i += n) {
		n = timerwheel_add(wheel, adds + i, batch);
		check("ADD", n);
		if (adds[i].result < 0)
			die("ADD: %s", error_text(adds[i].result));
	}
}

static void move(size_t batch)
{
	size_t i;
	long n;

	for (i = 0; i < ROUND; i++)
		moves[i] = (struct timerwheel_move) {
			.key = FIRST + i,
			.deadline = 120 * NSEC_PER_SEC + i * NSEC_PER_MSEC,
		};
	for (i = 0; i < ROUND; i += n) {
		n = timerwheel_move(wheel, moves + i, batch);
		check("MOVE", n);
	}
}

static void remove_all(size_t batch)
{
	size_t i;
	long n;

	for (i = 0; i < ROUND; i++)
		removes[i] = (struct timerwheel_remove) { .key = FIRST + i };
	for (i = 0; i < ROUND; i += n) {
		n = timerwheel_remove(wheel, removes + i, batch);
		check("REMOVE", n);
	}
}

static void take(size_t batch)
{
	size_t taken = 0, room;
	long n;

	while (taken < ROUND) {
		room = ROUND - taken < batch ? ROUND - taken : batch;
		n = timerwheel_wait(wheel, events, room, 5000000000);
		check("read", n);
		taken += n;
	}
}

static void note(size_t i, int op, __u64 *time)
{
	__u64 now = now_ns();

	if (!best[i][op] || now - *time < best[i][op])
		best[i][op] = now - *time;
	*time = now;
}

static void round_of(size_t i)
{
	size_t batch = per_call[i];
	__u64 time = now_ns();

	arm(batch, 60 * NSEC_PER_SEC);
	note(i, ADD, &time);
	move(batch);
	note(i, MOVE, &time);
	remove_all(batch);
	note(i, REMOVE, &time);
	arm(ROUND, 0);
	time = now_ns();
	take(batch);
	note(i, TAKE, &time);
}

/* Fill the wheel with other timers, due in the next hours. */
static void fill(__u64 timers)
{
	__u64 done = 0, seed = 1, i, n;

	while (done < timers) {
		n = timers - done < ROUND ? timers - done : ROUND;
		for (i = 0; i < n; i++)
			adds[i] = (struct timerwheel_add) {
				.key = done + i,
				.deadline = (3600 + random_below(&seed, 36000)) * NSEC_PER_SEC,
			};
		check("ADD", timerwheel_add(wheel, adds, n));
		if (adds[n - 1].result < 0)
			die("ADD: %s", error_text(adds[n - 1].result));
		done += n;
	}
}

static void print(__u64 timers)
{
	static const struct column columns[] = {
		{ "OPERATION", "operation", SHOW_TEXT, 0 },
		{ "1 A CALL", "ns_alone", SHOW_COUNT, 10 },
		{ "16", "ns_16", SHOW_COUNT, 7 },
		{ "256", "ns_256", SHOW_COUNT, 7 },
		{ "4,096", "ns_4096", SHOW_COUNT, 7 },
		{ "A SECOND", "most_per_second", SHOW_COUNT, 12 },
	};
	int op;

	out_line("ns per timer, by the number of timers per call, with %s other timers pending (%s)",
		 commas(timers), timerwheel_backend(wheel) == TIMERWHEEL_BACKEND_DEVICE ?
		 "/dev/timerwheel" : "inside this process");
	json_open(NULL, '{');
	out_text(NULL, "backend", timerwheel_backend(wheel) == TIMERWHEEL_BACKEND_DEVICE ?
		 "device" : "process");
	out_number(NULL, "pending", SHOW_NUMBER, timers);
	json_open("operations", '[');
	table_begin(columns, ARRAY_SIZE(columns));
	for (op = 0; op < NR_OPS; op++) {
		union value values[ARRAY_SIZE(columns)] = { { .text = op_names[op] } };
		__u64 least = ~0ULL;
		size_t i;

		for (i = 0; i < ARRAY_SIZE(per_call); i++) {
			values[1 + i].number = (best[i][op] + ROUND / 2) / ROUND;
			if (best[i][op] < least)
				least = best[i][op];
		}
		values[1 + i].number = least ? ROUND * NSEC_PER_SEC / least : 0;
		table_row(values);
	}
	table_flush();
	json_close();
	json_close();
}

int command_bench(int argc, char **argv)
{
	__u64 timers = opt.given[OPT_TIMERS] ? opt.number[OPT_TIMERS] : 100000;
	struct timerwheel_config config = {};
	size_t i;
	int n;

	no_arguments(argc, argv);
	wheel = target_open_own(&config);
	fill(timers);
	for (i = 0; i < ARRAY_SIZE(per_call); i++) {
		__u64 end = now_ns() + BUDGET;

		/* The first round uses fresh memory, so do at least two. */
		for (n = 0; n < 2 || (n < ROUNDS && now_ns() < end); n++)
			round_of(i);
	}
	print(timers);
	timerwheel_close(wheel);
	return STATUS_DONE;
}
