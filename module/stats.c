// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reports about a wheel: INFO, STATS, fdinfo. They do not take tw_file.mutex, because SETUP and
 * growth wait for memory under it, and fdinfo is also read by other users.
 */
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>

#include "clock.h"
#include "clockset.h"
#include "internal.h"
#include "log.h"
#include "resident.h"
#include "stats.h"
#include "tcp.h"
#include "user.h"

/* Add the counters of a base. */
static void tw_stats_add(struct timerwheel_stats *stats, struct tw_cpu *cpu)
{
	const struct tw_counts *c = &cpu->counts;
	const struct tw_wheel *w = &cpu->wheel;
	unsigned int i;

	tw_lock_bh(&cpu->lock);
	stats->pending += w->pending;
	stats->parked += w->parked;
	stats->armed += c->armed;
	stats->rearmed += c->rearmed;
	stats->moved += c->moved;
	stats->removed += c->removed;
	stats->replaced += c->replaced;
	stats->drained += c->drained;
	stats->delivered += c->delivered;
	stats->overruns += c->overruns;
	stats->withdrawn += c->withdrawn;
	stats->cascades += w->cascades;
	stats->requeues += w->requeues;
	stats->firings += c->firings;
	stats->passes += c->batches;
	stats->pass_max_timers = max(stats->pass_max_timers, c->batch_max_timers);
	stats->pass_max_ns = max(stats->pass_max_ns, c->batch_max_ns);
	stats->late_max = max(stats->late_max, w->late_max);
	for (i = 0; i < ARRAY_SIZE(w->lateness); i++)
		stats->lateness[min(i, TIMERWHEEL_LATENESS_BUCKETS - 1U)] += w->lateness[i];
	tw_unlock_bh(&cpu->lock);
}

/**
 * tw_stats_get - TIMERWHEEL_IOC_STATS
 * @file: the file
 * @stats: zeroed; all but the size is filled in
 *
 * The numbers are exact if the wheel is not in use during the call. Otherwise the counters of each
 * base are the values at some moment during the call.
 *
 * Context: process.
 */
void tw_stats_get(struct tw_file *file, struct timerwheel_stats *stats)
{
	const struct tw_socks *socks = tw_file_socks(file);
	struct tw_cpu *cpu;
	unsigned int nr;

	for (nr = 0; nr < nr_cpu_ids; nr++) {
		/* SETUP may free the base, after a grace period; litmus grace. */
		rcu_read_lock();
		/* Pairs with the release in tw_cpu_create(); litmus publish. */
		cpu = smp_load_acquire(&file->cpu[nr]);
		if (cpu)
			tw_stats_add(stats, cpu);
		rcu_read_unlock();
	}
	stats->memory = READ_ONCE(file->charged) + tw_log_memory(file);
	tw_lock_bh(&file->events.lock);
	/* Timers of warnings count as pending. A warning that is about to be due may be counted. */
	stats->due = file->events.due.count - min(file->events.warnings, file->events.due.count);
	tw_unlock_bh(&file->events.lock);
	if (socks) {
		stats->memory += atomic_long_read(&socks->memory);
		stats->sockets = atomic_read(&socks->count);
		stats->aborted = atomic64_read(&socks->aborted);
	}
	stats->wakeups = atomic64_read(&file->events.wakeups);
}

/**
 * tw_stats_info - TIMERWHEEL_IOC_INFO
 * @file: the file
 * @info: zeroed; all but the size is filled in
 *
 * Context: process.
 */
void tw_stats_info(struct tw_file *file, struct timerwheel_info *info)
{
	struct tw_setup setup;

	/* Pairs with tw_setup(); litmus publish. Before that, the settings are the defaults. */
	if (smp_load_acquire(&file->setup_done)) {
		setup = file->setup;
		info->flags = TIMERWHEEL_INFO_SETTLED |
			      (tw_clockset_enabled(file) ? TIMERWHEEL_INFO_CLOCK_SET : 0) |
			      (list_empty(&file->alarm) ? 0 : TIMERWHEEL_INFO_ALARM) |
			      (setup.table ? TIMERWHEEL_INFO_TABLE : 0) |
			      (setup.resident ? TIMERWHEEL_INFO_RESIDENT : 0);
	} else {
		tw_setup_default(&setup);
		info->flags = READ_ONCE(file->table.made) ? TIMERWHEEL_INFO_SETTLED : 0;
	}
	info->flags |= READ_ONCE(file->closed) ? TIMERWHEEL_INFO_CLOSED : 0;
	info->now = tw_clock_of(file, setup.clock) + tw_clock_offset(setup.clock);

	info->abi_version = TIMERWHEEL_ABI_VERSION;
	info->batch_max = TIMERWHEEL_BATCH_MAX;
	info->features = TIMERWHEEL_FEATURE_HANDLE;
	if (tw_resident_supported())
		info->features |= TIMERWHEEL_FEATURE_TABLE;
	if (tw_tcp_supported())
		info->features |= TIMERWHEEL_FEATURE_SOCKET;
	if (IS_ENABLED(CONFIG_TIMERWHEEL_URING))
		info->features |= TIMERWHEEL_FEATURE_URING;
	info->tick_min = TW_TICK_MIN;
	info->tick_max = TW_TICK_MAX;
	info->slots_min = TW_SLOTS_MIN;
	info->slots_max = TW_SLOTS_MAX;
	info->capacity_max = TW_CAPACITY_MAX;
	info->clock = setup.clock;
	info->tick = setup.tick;
	info->slots = setup.slots;
	info->capacity = setup.capacity;
	info->slack = setup.slack;
	info->wake_ns = setup.wake_ns;
	info->wake_events = setup.wake_events;
	info->ring = setup.ring;
	info->ring_max = TIMERWHEEL_RING_MAX;
	info->event_size = setup.event_size;
	info->event_size_max = sizeof(struct timerwheel_event);
	info->generation_bits = tw_setup_generation_bits(&setup);
	info->user_memory = tw_user_memory(file->user);
	info->user_memory_max = tw_user_memory_max();
}

/* The flags of SETUP. */
static u32 tw_stats_setup_flags(const struct timerwheel_info *info)
{
	return (info->flags & TIMERWHEEL_INFO_CLOCK_SET ? TIMERWHEEL_SETUP_CLOCK_SET : 0) |
	       (info->flags & TIMERWHEEL_INFO_ALARM ? TIMERWHEEL_SETUP_ALARM : 0) |
	       (info->flags & TIMERWHEEL_INFO_RESIDENT ? TIMERWHEEL_SETUP_RESIDENT : 0) |
	       (info->flags & TIMERWHEEL_INFO_TABLE ? TIMERWHEEL_SETUP_TABLE : 0);
}

/**
 * tw_stats_show - /proc/PID/fdinfo/FD
 * @m: the output
 * @filp: the open file
 */
void tw_stats_show(struct seq_file *m, struct file *filp)
{
	static const char * const clock[] = { "monotonic", "boottime", "realtime", "manual" };
	struct tw_file *file = filp->private_data;
	struct timerwheel_stats stats = {};
	struct timerwheel_info info = {};

	tw_stats_get(file, &stats);
	tw_stats_info(file, &info);
	seq_printf(m, "timerwheel-clock:\t%s\n", clock[info.clock]);
	seq_printf(m, "timerwheel-tick-ns:\t%llu\n", info.tick);
	seq_printf(m, "timerwheel-slots:\t%u\n", info.slots);
	seq_printf(m, "timerwheel-capacity:\t%u\n", info.capacity);
	seq_printf(m, "timerwheel-slack-ns:\t%llu\n", info.slack);
	seq_printf(m, "timerwheel-wake-events:\t%u\n", info.wake_events);
	seq_printf(m, "timerwheel-wake-ns:\t%llu\n", info.wake_ns);
	seq_printf(m, "timerwheel-ring:\t%u\n", info.ring);
	seq_printf(m, "timerwheel-event-size:\t%u\n", info.event_size);
	seq_printf(m, "timerwheel-setup-flags:\t0x%x\n", tw_stats_setup_flags(&info));
	seq_printf(m, "timerwheel-closed:\t%d\n", !!(info.flags & TIMERWHEEL_INFO_CLOSED));
	seq_printf(m, "timerwheel-pending:\t%llu\n", stats.pending);
	seq_printf(m, "timerwheel-due:\t%llu\n", stats.due);
	seq_printf(m, "timerwheel-parked:\t%llu\n", stats.parked);
	seq_printf(m, "timerwheel-armed:\t%llu\n", stats.armed + stats.rearmed);
	seq_printf(m, "timerwheel-delivered:\t%llu\n", stats.delivered);
	seq_printf(m, "timerwheel-memory:\t%llu\n", stats.memory);
}
