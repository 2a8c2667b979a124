/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: /sys/kernel/tracing/events/timerwheel/. The field wheel is the address of the struct
 * tw_file, hashed by %p.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM timerwheel

#if !defined(TW_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TW_TRACE_H

#include <linux/tracepoint.h>

#include "internal.h"

DECLARE_EVENT_CLASS(timerwheel_timer,
	TP_PROTO(const struct tw_file *file, const struct tw_timer *t, int was),
	TP_ARGS(file, t, was),
	TP_STRUCT__entry(
		__field(const void *, wheel)
		__field(u64, key)
		__field(u64, deadline)
		__field(u64, period)
		__field(int, was)
	),
	TP_fast_assign(
		__entry->wheel = file;
		__entry->key = t->key;
		__entry->deadline = t->deadline;
		__entry->period = tw_timer_period(t);
		__entry->was = was;
	),
	TP_printk("wheel=%p key=%llu deadline=%llu period=%llu was=%d", __entry->wheel,
		  __entry->key, __entry->deadline, __entry->period, __entry->was)
);

#define TW_TRACE_TIMER(name)							\
DEFINE_EVENT(timerwheel_timer, timerwheel_##name,				\
	TP_PROTO(const struct tw_file *file, const struct tw_timer *t, int was), \
	TP_ARGS(file, t, was))

/* ADD armed a timer, or replaced one; MOVE changed a deadline; REMOVE or DRAIN removed a timer. */
TW_TRACE_TIMER(arm);
TW_TRACE_TIMER(move);
TW_TRACE_TIMER(remove);

/* Timers of a batch fell due on a CPU; late is the lateness of the first timer. */
TRACE_EVENT(timerwheel_expire,
	TP_PROTO(const struct tw_cpu *cpu, const struct tw_due_list *due, u64 now),
	TP_ARGS(cpu, due, now),
	TP_STRUCT__entry(
		__field(const void *, wheel)
		__field(u32, cpu)
		__field(u32, count)
		__field(u64, now)
		__field(u64, late)
	),
	TP_fast_assign(
		const struct tw_timer *t = tw_timer_at(cpu->wheel.pool, due->first);

		__entry->wheel = cpu->file;
		__entry->cpu = cpu->nr;
		__entry->count = due->count;
		__entry->now = now;
		__entry->late = t->fired - t->deadline;
	),
	TP_printk("wheel=%p base=%u count=%u now=%llu late=%llu", __entry->wheel,
		  __entry->cpu, __entry->count, __entry->now, __entry->late)
);

/* An event was delivered. */
TRACE_EVENT(timerwheel_deliver,
	TP_PROTO(const struct tw_file *file, const struct timerwheel_event *event),
	TP_ARGS(file, event),
	TP_STRUCT__entry(
		__field(const void *, wheel)
		__field(u64, key)
		__field(u64, late)
		__field(u64, overruns)
	),
	TP_fast_assign(
		__entry->wheel = file;
		__entry->key = event->key;
		__entry->late = event->fired - event->deadline;
		__entry->overruns = event->overruns;
	),
	TP_printk("wheel=%p key=%llu late=%llu overruns=%llu", __entry->wheel, __entry->key,
		  __entry->late, __entry->overruns)
);

/* An expiry batch moved timers to lower levels. */
TRACE_EVENT(timerwheel_cascade,
	TP_PROTO(const struct tw_cpu *cpu, u64 count),
	TP_ARGS(cpu, count),
	TP_STRUCT__entry(
		__field(const void *, wheel)
		__field(u32, cpu)
		__field(u64, count)
	),
	TP_fast_assign(
		__entry->wheel = cpu->file;
		__entry->cpu = cpu->nr;
		__entry->count = count;
	),
	TP_printk("wheel=%p base=%u count=%llu", __entry->wheel, __entry->cpu, __entry->count)
);

#endif /* TW_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
