// SPDX-License-Identifier: GPL-2.0
/* See metrics.h. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "metrics.h"
#include "options.h"
#include "record.h"
#include "store.h"
#include "timers.h"
#include "timerwheel.h"

#define PREFIX	"timerwheel_proxy_"
/* Sum of the counter at this offset of struct counters over all threads. */
static uint64_t sum(size_t offset)
{
	uint64_t total = 0;
	unsigned int i;

	for (i = 0; i < options.threads; i++)
		total += atomic_load_explicit((counter *)((char *)&loops[i]->counters + offset),
					      memory_order_relaxed);
	return total;
}

#define SUM(member)	((unsigned long long)sum(offsetof(struct counters, member)))

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

static void tell_connections(FILE *out)
{
	unsigned int i, load, total = 0;

	head(out, "thread_connections", "gauge", "Connections now, by thread");
	for (i = 0; i < options.threads; i++) {
		load = atomic_load(&loops[i]->load);
		total += load;
		fprintf(out, PREFIX "thread_connections{thread=\"%u\"} %u\n", i, load);
	}
	one(out, "connections", "gauge", "Connections now", total);
	one(out, "accepted_total", "counter", "Clients that came, or were restored",
	    SUM(accepted));
	one(out, "restored_total", "counter", "Connections that survived a restart",
	    SUM(restored));
	head(out, "closed_total", "counter", "Connections that ended, by how they did");
	for (i = 0; i < ENDS; i++)
		fprintf(out, PREFIX "closed_total{end=\"%s\"} %llu\n", end_names[i],
			SUM(closed[i]));
	one(out, "connect_failures_total", "counter", "Attempts to connect to a server that failed",
	    SUM(connect_failures));
	head(out, "bytes_total", "counter", "Bytes passed on");
	fprintf(out, PREFIX "bytes_total{from=\"client\"} %llu\n", SUM(bytes[0]));
	fprintf(out, PREFIX "bytes_total{from=\"server\"} %llu\n", SUM(bytes[1]));
	one(out, "blocked", "gauge", "Directions in which the receiver has no room",
	    SUM(blocked));
	one(out, "store_descriptors", "gauge", "Descriptors in the service manager's store",
	    store_used());
	one(out, "store_waiting", "gauge", "Connections that are not in that store (yet)",
	    SUM(store_waiting));
	one(out, "log_lost_total", "counter", "Lines of the connection log that were lost",
	    SUM(log_lost) + records_lost());
}

static void tell_timeouts(FILE *out)
{
	static const unsigned int bounds[] = LATENESS_BOUNDS;
	unsigned long long total = 0;
	unsigned int i;

	one(out, "postponed_total", "counter", "Timeouts avoided by a byte at the last moment",
	    SUM(postponed));
	head(out, "timeout_lateness_seconds", "histogram",
	     "From the deadline to the end of the connection");
	for (i = 0; i < LATENESS_BUCKETS; i++) {
		total += SUM(lateness[i]);
		if (i < ARRAY_SIZE(bounds))
			fprintf(out, PREFIX "timeout_lateness_seconds_bucket{le=\"%g\"} %llu\n",
				bounds[i] / 1e6, total);
		else
			fprintf(out, PREFIX "timeout_lateness_seconds_bucket{le=\"+Inf\"} %llu\n",
				total);
	}
	fprintf(out, PREFIX "timeout_lateness_seconds_sum %.9f\n", SUM(lateness_ns) / 1e9);
	fprintf(out, PREFIX "timeout_lateness_seconds_count %llu\n", total);
}

static void tell_wheels(FILE *out)
{
	static const struct {
		const char *name, *type, *help;
		size_t at;
	} rows[] = {
#define ROW(name, type, help, member)	\
		{ "wheel_" name, type, help, offsetof(struct timerwheel_stats, member) }
		ROW("pending", "gauge", "Timers pending", pending),
		ROW("due", "gauge", "Timers due and not taken yet", due),
		ROW("armed_total", "counter", "Timers armed", armed),
		ROW("replaced_total", "counter", "Of those, in place of an earlier one", replaced),
		ROW("removed_total", "counter", "Timers removed", removed),
		ROW("delivered_total", "counter", "Events taken", delivered),
		ROW("requeues_total", "counter", "Timers that were postponed in memory", requeues),
		ROW("wakeups_total", "counter", "Times that the wheels woke their reader", wakeups),
		ROW("memory_bytes", "gauge", "Memory of the wheels", memory),
#undef ROW
	};
	unsigned long long totals[ARRAY_SIZE(rows)] = { };
	struct timerwheel_stats stats;
	unsigned int i, j;

	for (i = 0; i < options.threads; i++) {
		if (timerwheel_stats(loops[i]->wheel, &stats))
			return;
		for (j = 0; j < ARRAY_SIZE(rows); j++)
			totals[j] += *(__u64 *)((char *)&stats + rows[j].at);
	}
	for (j = 0; j < ARRAY_SIZE(rows); j++)
		one(out, rows[j].name, rows[j].type, rows[j].help, totals[j]);
}

static void tell(FILE *out)
{
	head(out, "info", "gauge", "What keeps the deadlines");
	fprintf(out, PREFIX "info{backend=\"%s\",threads=\"%u\"} 1\n",
		timers_backend(loops[0]), options.threads);
	tell_connections(out);
	tell_timeouts(out);
	tell_wheels(out);
}

void metrics_start(void)
{
	http_start(&options.metrics, tell);
}
