// SPDX-License-Identifier: GPL-2.0
#include "times.h"

/* A number of ticks that is out of reach */
#define FAR	U64_MAX

/* @n, limited to the largest time */
static u64 clamp_time(__uint128_t n)
{
	return n > TIMERWHEEL_TIME_MAX ? TIMERWHEEL_TIME_MAX : n;
}

static u64 add(u64 ns, u64 ticks, u64 tick)
{
	return clamp_time(ns + (__uint128_t)ticks * tick);
}

/* The clock time at which @tick begins, but not before @ns */
static u64 begin_of(const struct driver *d, u64 tick, u64 ns)
{
	__uint128_t begin = (__uint128_t)tick * d->model.tick;

	if (begin < (__uint128_t)ns + d->model.bias)
		return ns;
	return clamp_time(begin - d->model.bias);
}

/* A random power of @slots: the length of a slot of one of the levels above 0, in ticks */
static u64 power(struct driver *d)
{
	unsigned int levels = d->rig.w.levels;
	unsigned int n = 1;

	if (levels > 1)
		n += source_pick(&d->source, levels - 1);
	return 1ULL << n * d->rig.w.shift;
}

/* The tick that a wheel starts in, mostly near a wrap, and its bias, which may be 0 */
void times_start(struct driver *d, u64 *tick, u64 *bias)
{
	struct source *s = &d->source;
	__uint128_t total;
	u64 limit = TIMERWHEEL_TIME_MAX;
	u64 at = 0;

	switch (source_pick(s, 10)) {
	case 0:
		break;
	case 1:
		at = 1ULL << 31;
		break;
	case 2:
		at = 1ULL << 32;
		break;
	case 3:
		at = (1ULL << 62) / d->model.tick;
		break;
	case 4:
		at = TIMERWHEEL_TIME_MAX / d->model.tick;
		break;
	case 5:
		at = 1ULL << source_pick(s, 64);
		break;
	case 6:
		at = 2 * power(d);
		break;
	case 7:
		at = power(d) * (1 + source_pick(s, d->rig.slots));
		break;
	default:
		at = power(d);
		break;
	}
	at -= min(at, source_pick(s, source_once_in(s, 2) ? 4 * d->rig.slots : 4));
	if (!d->config->manual)
		limit += TW_BIAS_MAX;
	total = (__uint128_t)at * d->model.tick + source_pick(s, min(d->model.tick, 1ULL << 32));
	if (total > limit)
		total = limit;
	*bias = 0;
	if (limit > TIMERWHEEL_TIME_MAX && source_once_in(s, 2))
		*bias = min((u64)total, min(TW_BIAS_MAX, 1ULL << source_pick(s, 63)));
	if (total - *bias > TIMERWHEEL_TIME_MAX)
		*bias = total - TIMERWHEEL_TIME_MAX;
	d->now_ns = total - *bias;
	*tick = total / d->model.tick;
}

/* The distance of a deadline in ticks */
static u64 distance(struct driver *d)
{
	struct source *s = &d->source;
	u64 slots = d->rig.slots;

	switch (source_pick(s, 32)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2 ... 7:
		return source_pick(s, 4);
	case 8 ... 12:
		return source_pick(s, slots);
	case 13 ... 17:
		return source_pick(s, 3 * slots);
	case 18 ... 20:
		return slots * (1 + source_pick(s, 4)) + source_pick(s, 3) - 1;
	case 21 ... 23:
		return power(d) * (1 + source_pick(s, 4)) + source_pick(s, 3) - 1;
	case 24 ... 26:
		return source_pick(s, slots) * slots;
	case 27:
		return (1ULL << 32) + source_pick(s, 3) - 1;
	case 28:
		return 1ULL << 52;
	case 29:
		return FAR;
	case 30:
		return 1ULL << source_pick(s, 64);
	default:
		return source_word(s) >> source_pick(s, 64);
	}
}

/* @ns, or a little more or less, to find errors that are off by one */
static u64 nudge(struct driver *d, u64 ns)
{
	u64 tick = d->model.tick;

	switch (source_pick(&d->source, 8)) {
	case 0:
		return clamp_time((__uint128_t)ns + 1);
	case 1:
		return ns ? ns - 1 : 0;
	case 2:
		return clamp_time((__uint128_t)ns + tick - 1);
	case 3:
		return clamp_time((__uint128_t)ns + source_word(&d->source) % tick);
	default:
		return ns;
	}
}

/* A deadline, mostly in the future. */
u64 times_deadline(struct driver *d)
{
	u64 ticks = distance(d);
	u64 now = driver_now(d);

	switch (source_pick(&d->source, 16)) {
	case 0:
		/* it has passed */
		return d->now_ns - min(d->now_ns, (u64)(add(0, ticks, d->model.tick)));
	case 1 ... 7:
		return nudge(d, begin_of(d, now + ticks < now ? FAR : now + ticks, d->now_ns));
	default:
		return nudge(d, add(d->now_ns, ticks, d->model.tick));
	}
}

/* A deadline that is not before @deadline */
u64 times_later(struct driver *d, u64 deadline)
{
	u64 ns;

	switch (source_pick(&d->source, 4)) {
	case 0:
		/* often the same tick */
		ns = clamp_time((__uint128_t)deadline + source_pick(&d->source, 2));
		break;
	case 1:
		ns = add(deadline, distance(d), d->model.tick);
		break;
	default:
		ns = times_deadline(d);
		break;
	}
	return max(ns, deadline);
}

/* A slack in ticks, mostly 0 */
u32 times_slack(struct driver *d)
{
	struct source *s = &d->source;
	u64 slack = 0;

	switch (source_pick(s, 16)) {
	case 0:
		slack = source_pick(s, 4);
		break;
	case 1:
		slack = source_pick(s, 4 * d->rig.slots);
		break;
	case 2:
		slack = (1ULL << source_pick(s, 33)) - 1;
		break;
	}
	return min(slack, TW_SLACK_MAX / d->model.tick);
}

/* The next time of the clock, not before the current one */
u64 times_jump(struct driver *d)
{
	const struct tw_wheel *w = &d->rig.w;
	struct source *s = &d->source;
	u64 now = driver_now(d);
	u64 bound = model_bound(&d->model);
	u64 align;

	switch (source_pick(s, 64)) {
	case 0 ... 3:
		return d->now_ns;
	case 4 ... 5:
		return add(d->now_ns, 1, 1);
	case 6 ... 9:
		return add(d->now_ns, source_word(s) % d->model.tick, 1);
	case 10 ... 19:
		return add(d->now_ns, 1, d->model.tick);
	case 20 ... 25:
		return begin_of(d, now + source_pick(s, 4), d->now_ns);
	case 26 ... 30:
		return begin_of(d, now + source_pick(s, 3 * d->rig.slots), d->now_ns);
	case 31 ... 41:
		return w->work == TW_NEVER ? d->now_ns : begin_of(d, w->work, d->now_ns);
	case 42 ... 46:
		/* the last moment before there is work */
		if (w->work == TW_NEVER || w->work <= now)
			return d->now_ns;
		return max(d->now_ns, begin_of(d, w->work, d->now_ns) - 1);
	case 47 ... 49:
		return bound == U64_MAX ? d->now_ns : begin_of(d, bound, d->now_ns);
	case 50 ... 51:
		if (bound == U64_MAX || bound <= now)
			return d->now_ns;
		return max(d->now_ns, begin_of(d, bound, d->now_ns) - 1);
	case 52 ... 57:
		align = power(d);
		return begin_of(d, (now | (align - 1)) + source_pick(s, 3), d->now_ns);
	case 58 ... 61:
		return begin_of(d, now + source_pick(s, d->rig.slots * d->rig.slots), d->now_ns);
	case 62:
		return add(d->now_ns, 1ULL << source_pick(s, 33), d->model.tick);
	default:
		if (!source_once_in(s, 4))
			return d->now_ns;
		return add(d->now_ns, 1ULL << source_pick(s, 49), d->model.tick);
	}
}
