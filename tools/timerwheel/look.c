// SPDX-License-Identifier: GPL-2.0
/* info and stat: settings and statistics of a wheel. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static void show_info(struct timerwheel *wheel)
{
	struct timerwheel_info info;

	target_info(wheel, &info);
	json_open(NULL, '{');
	out_text("back end", "backend",
		 timerwheel_backend(wheel) == TIMERWHEEL_BACKEND_DEVICE ? "device" : "process");
	out_number("interface version", "abi_version", SHOW_NUMBER, info.abi_version);
	out_number(NULL, "features", SHOW_NUMBER, info.features);
	out_number(NULL, "errata", SHOW_NUMBER, info.errata);
	out_text("clock", "clock", clock_text(info.clock));
	out_number("current time", "now_ns", SHOW_SPAN, info.now);
	out_number("tick", "tick_ns", SHOW_SPAN, info.tick);
	out_number("slots per level", "slots", SHOW_COUNT, info.slots);
	out_number("capacity", "capacity", SHOW_COUNT, info.capacity);
	out_number("default slack", "slack_ns", SHOW_PERIOD, info.slack);
	out_number("wakes readers after", "wake_ns", SHOW_PERIOD, info.wake_ns);
	out_number("or when events wait", "wake_events", SHOW_COUNT, info.wake_events);
	out_number("event ring", "ring", SHOW_COUNT, info.ring);
	out_number("event size", "event_size", SHOW_COUNT, info.event_size);
	out_number("reports a set clock", "clock_set", SHOW_BOOL,
		   info.flags & TIMERWHEEL_INFO_CLOCK_SET);
	out_number("wakes the machine", "alarm", SHOW_BOOL, info.flags & TIMERWHEEL_INFO_ALARM);
	out_number("has a deadline table", "table", SHOW_BOOL,
		   info.flags & TIMERWHEEL_INFO_TABLE);
	out_number("timers are resident", "resident", SHOW_BOOL,
		   info.flags & TIMERWHEEL_INFO_RESIDENT);
	out_number("settled", "settled", SHOW_BOOL, info.flags & TIMERWHEEL_INFO_SETTLED);
	out_number("closed to new timers", "closed", SHOW_BOOL,
		   info.flags & TIMERWHEEL_INFO_CLOSED);
	out_number("memory of the user", "user_memory", SHOW_BYTES, info.user_memory);
	out_number("limit per user", "user_memory_max", SHOW_BYTES, info.user_memory_max);
	out_number("max elements per call", "batch_max", SHOW_COUNT, info.batch_max);
	out_number("max timers per wheel", "capacity_max", SHOW_COUNT, info.capacity_max);
	out_number("longest event ring", "ring_max", SHOW_COUNT, info.ring_max);
	out_number("largest event size", "event_size_max", SHOW_COUNT, info.event_size_max);
	out_number("shortest tick", "tick_min_ns", SHOW_SPAN, info.tick_min);
	out_number("longest tick", "tick_max_ns", SHOW_SPAN, info.tick_max);
	out_number("fewest slots", "slots_min", SHOW_COUNT, info.slots_min);
	out_number("most slots", "slots_max", SHOW_COUNT, info.slots_max);
	out_number("generation bits", "generation_bits", SHOW_NUMBER, info.generation_bits);
	json_close();
}

static void print_line(const char *line)
{
	printf("  %s\n", line);
}

static void json_lateness(const struct timerwheel_stats *stats)
{
	int i;

	json_open("lateness", '[');
	for (i = 0; i < TIMERWHEEL_LATENESS_BUCKETS; i++) {
		if (!stats->lateness[i])
			continue;
		json_open(NULL, '{');
		out_number(NULL, "from_ns", SHOW_NUMBER, i ? 1ULL << (i - 1) : 0);
		if (i < TIMERWHEEL_LATENESS_BUCKETS - 1)
			out_number(NULL, "below_ns", SHOW_NUMBER, 1ULL << i);
		out_number(NULL, "timers", SHOW_NUMBER, stats->lateness[i]);
		json_close();
	}
	json_close();
}

static void show_stat(struct timerwheel *wheel)
{
	struct timerwheel_stats stats;
	int err = timerwheel_stats(wheel, &stats);

	if (err)
		die("STATS: %s", error_text(err));
	json_open(NULL, '{');
	out_number("pending", "pending", SHOW_COUNT, stats.pending);
	out_number("due", "due", SHOW_COUNT, stats.due);
	out_number("parked", "parked", SHOW_COUNT, stats.parked);
	out_number("connections watched", "sockets", SHOW_COUNT, stats.sockets);
	out_number("connections aborted", "aborted", SHOW_COUNT, stats.aborted);
	out_number("armed", "armed", SHOW_COUNT, stats.armed);
	out_number("periodic, again", "rearmed", SHOW_COUNT, stats.rearmed);
	out_number("moved", "moved", SHOW_COUNT, stats.moved);
	out_number("removed", "removed", SHOW_COUNT, stats.removed);
	out_number("replaced", "replaced", SHOW_COUNT, stats.replaced);
	out_number("drained", "drained", SHOW_COUNT, stats.drained);
	out_number("delivered", "delivered", SHOW_COUNT, stats.delivered);
	out_number("overruns", "overruns", SHOW_COUNT, stats.overruns);
	out_number("events withdrawn", "withdrawn", SHOW_COUNT, stats.withdrawn);
	out_number("cascades", "cascades", SHOW_COUNT, stats.cascades);
	out_number("requeues", "requeues", SHOW_COUNT, stats.requeues);
	out_number("readers woken", "wakeups", SHOW_COUNT, stats.wakeups);
	out_number("hrtimer interrupts", "firings", SHOW_COUNT, stats.firings);
	out_number("expiry batches", "passes", SHOW_COUNT, stats.passes);
	out_number("most timers in a batch", "pass_max_timers", SHOW_COUNT, stats.pass_max_timers);
	out_number("longest batch", "pass_max_ns", SHOW_SPAN, stats.pass_max_ns);
	out_number("memory", "memory", SHOW_BYTES, stats.memory);
	out_number("largest lateness", "late_max_ns", SHOW_SPAN, stats.late_max);
	if (opt.given[OPT_JSON]) {
		json_lateness(&stats);
	} else {
		out_heading("lateness of timers");
		histogram(stats.lateness, 80, print_line);
	}
	json_close();
}

void watch(struct timerwheel *wheel, void (*show)(struct timerwheel *wheel))
{
	const char *clear = opt.given[OPT_WATCH] && !opt.given[OPT_JSON] ?
			    terminal_text("clear") : NULL;
	__u64 next = now_ns();

	for (;;) {
		if (clear)
			fputs(clear, stdout);
		show(wheel);
		out_check();
		if (!opt.given[OPT_WATCH])
			return;
		if (!clear)
			out_line("%s", "");
		next += opt.number[OPT_WATCH];
		/* Do not catch up after a delay. */
		if (next < now_ns())
			next = now_ns();
		sleep_until(next);
	}
}

int command_info(int argc, char **argv)
{
	struct timerwheel_config config = {};
	struct timerwheel *wheel;

	no_arguments(argc, argv);
	wheel = target_given() ? target_open() : target_open_own(&config);
	watch(wheel, show_info);
	timerwheel_close(wheel);
	return STATUS_DONE;
}

int command_stat(int argc, char **argv)
{
	struct timerwheel *wheel;

	no_arguments(argc, argv);
	wheel = target_open();
	watch(wheel, show_stat);
	timerwheel_close(wheel);
	return STATUS_DONE;
}
