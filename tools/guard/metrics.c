// SPDX-License-Identifier: GPL-2.0
/* See metrics.h. */
#include <stddef.h>
#include <stdio.h>

#include "conns.h"
#include "counters.h"
#include "http.h"
#include "metrics.h"
#include "options.h"
#include "report.h"
#include "timers.h"
#include "timerwheel.h"
#include "util.h"

#define PREFIX	"timerwheel_guard_"

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

static void one(FILE *out, const char *name, const char *type, const char *help,
		unsigned long long value)
{
	head(out, name, type, help);
	fprintf(out, PREFIX "%s %llu\n", name, value);
}

static void tell_wheel(FILE *out)
{
	static const struct {
		const char *name, *type, *help;
		size_t at;
	} rows[] = {
#define ROW(name, type, help, member)	\
		{ "wheel_" name, type, help, offsetof(struct timerwheel_stats, member) }
		ROW("pending", "gauge", "Timers pending", pending),
		ROW("sockets", "gauge", "Timers that watch a connection", sockets),
		ROW("aborted_total", "counter", "Connections that the kernel has ended", aborted),
		ROW("requeues_total", "counter", "Visits to connections in use", requeues),
		ROW("wakeups_total", "counter", "Times that the wheel woke its reader", wakeups),
		ROW("memory_bytes", "gauge", "Memory of the wheel and its sockets", memory),
#undef ROW
	};
	struct timerwheel_stats stats;
	unsigned int i;

	if (timerwheel_stats(timers_wheel(), &stats))
		return;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		one(out, rows[i].name, rows[i].type, rows[i].help,
		    *(__u64 *)((char *)&stats + rows[i].at));
}

static void tell(FILE *out)
{
	unsigned int kind, action, reason;

	one(out, "connections", "gauge", "Connections known now", conns_count());
	one(out, "taken_total", "counter", "Connections that got timers", counters.taken);
	one(out, "restored_total", "counter", "Connections in a wheel that was kept",
	    counters.restored);
	head(out, "unreachable_total", "counter", "Connections that are not guarded, by reason");
	for (reason = 0; reason < REASONS; reason++)
		fprintf(out, PREFIX "unreachable_total{reason=\"%s\"} %llu\n",
			reason_names[reason], (unsigned long long)counters.unreachable[reason]);
	one(out, "left_total", "counter", "Connections that ended by themselves", counters.left);
	head(out, "timeouts_total", "counter", "Timeouts, by what was done");
	for (kind = 0; kind < KINDS; kind++) {
		for (action = 0; action < ACTIONS; action++)
			fprintf(out, PREFIX "timeouts_total{timeout=\"%s\",action=\"%s\"} %llu\n",
				kind_names[kind], action_names[action],
				(unsigned long long)counters.acted[kind][action]);
	}
	one(out, "scans_total", "counter", "Lists of connections taken", counters.scans);
	one(out, "scans_skipped_total", "counter", "Lists not taken: no connection had been opened",
	    counters.skipped);
	head(out, "scan_seconds_total", "counter", "Time that the lists took, with what was new");
	fprintf(out, PREFIX "scan_seconds_total %.6f\n", counters.scan_ns / 1e9);
	one(out, "workers_killed_total", "counter", "Scans given up because a process held them up",
	    counters.workers_killed);
	one(out, "workers_stuck", "gauge", "Of these, scans that SIGKILL has not ended yet",
	    counters.workers_stuck);
	one(out, "log_lost_total", "counter", "Lines of the report that were lost",
	    counters.log_lost);
	tell_wheel(out);
}

void metrics_start(void)
{
	http_start(&options.metrics, tell);
}
