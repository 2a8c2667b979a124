// SPDX-License-Identifier: GPL-2.0-only
/* SETUP: the settings of a wheel, set at most once and before the first timer. */
#include <linux/log2.h>
#include <linux/minmax.h>

#include "alarm.h"
#include "clock.h"
#include "clockset.h"
#include "cpu.h"
#include "deadlines.h"
#include "internal.h"
#include "memory.h"
#include "resident.h"
#include "ring.h"

/**
 * tw_setup_default - the settings of a file without SETUP
 * @setup: filled in
 */
void tw_setup_default(struct tw_setup *setup)
{
	*setup = (struct tw_setup) {
		.clock = TIMERWHEEL_CLOCK_MONOTONIC,
		.slots = TW_SLOTS_DEFAULT,
		.tick = TW_TICK_DEFAULT,
		.capacity = TW_CAPACITY_DEFAULT,
		.wake_events = 1,
		.event_size = TW_EVENT_SIZE_FIRST,
	};
}

/**
 * tw_setup_generation_bits - number of bits of the generation in an entry of the deadline table
 * @setup: the settings
 *
 * They take the place of the lowest bits of the deadline, and include the state.
 *
 * Return: the number of bits that represent less than a tick, within TW_GENERATION_BITS_MIN and
 * _MAX.
 */
u32 tw_setup_generation_bits(const struct tw_setup *setup)
{
	return clamp_t(u32, ilog2(setup->tick), TW_GENERATION_BITS_MIN, TW_GENERATION_BITS_MAX);
}

/*
 * Check the requested settings, replace them by the granted settings, and fill in @setup with
 * these. Returns 0 or -EINVAL.
 */
static int tw_setup_grant(struct timerwheel_setup *arg, struct tw_setup *setup)
{
	u64 tick_min = arg->clock == TIMERWHEEL_CLOCK_MANUAL ? 1 : TW_TICK_MIN;

	if (arg->flags & ~(TIMERWHEEL_SETUP_CLOCK_SET | TIMERWHEEL_SETUP_ALARM |
			   TIMERWHEEL_SETUP_RESIDENT | TIMERWHEEL_SETUP_TABLE) ||
	    arg->clock > TIMERWHEEL_CLOCK_MANUAL)
		return -EINVAL;
	if (arg->flags & TIMERWHEEL_SETUP_CLOCK_SET && arg->clock != TIMERWHEEL_CLOCK_REALTIME)
		return -EINVAL;
	if (arg->flags & TIMERWHEEL_SETUP_ALARM && arg->clock != TIMERWHEEL_CLOCK_REALTIME &&
	    arg->clock != TIMERWHEEL_CLOCK_BOOTTIME)
		return -EINVAL;
	if (arg->slots && (arg->slots < TW_SLOTS_MIN || arg->slots > TW_SLOTS_MAX))
		return -EINVAL;
	if (arg->tick && (arg->tick < tick_min || arg->tick > TW_TICK_MAX))
		return -EINVAL;
	if (arg->capacity > TW_CAPACITY_MAX || arg->slack > TIMERWHEEL_TIME_MAX ||
	    arg->wake_ns > TIMERWHEEL_TIME_MAX || arg->ring > TIMERWHEEL_RING_MAX)
		return -EINVAL;
	if (arg->wake_events > 1 && !arg->wake_ns)
		return -EINVAL;
	if (arg->event_size && (arg->event_size < TW_EVENT_SIZE_FIRST || arg->event_size % 8 ||
				arg->event_size > TW_EVENT_SIZE_ASKED))
		return -EINVAL;

	arg->slots = roundup_pow_of_two(arg->slots ?: TW_SLOTS_DEFAULT);
	arg->tick = arg->tick ?: TW_TICK_DEFAULT;
	arg->capacity = arg->capacity ?: TW_CAPACITY_DEFAULT;
	arg->wake_events = arg->wake_events ?: 1;
	arg->ring = arg->ring ? roundup_pow_of_two(arg->ring) : 0;
	arg->event_size = min_t(u32, arg->event_size ?: TW_EVENT_SIZE_FIRST,
				sizeof(struct timerwheel_event));
	*setup = (struct tw_setup) {
		.clock = arg->clock,
		.slots = arg->slots,
		.tick = arg->tick,
		.capacity = arg->capacity,
		.wake_events = arg->wake_events,
		.wake_ns = arg->wake_ns,
		.slack = arg->slack,
		.ring = arg->ring,
		.event_size = arg->event_size,
		.table = arg->flags & (TIMERWHEEL_SETUP_TABLE | TIMERWHEEL_SETUP_RESIDENT),
		.resident = arg->flags & TIMERWHEEL_SETUP_RESIDENT,
	};
	return 0;
}

/* Create the event ring, if @setup has one. Returns 0, -EDQUOT or -ENOMEM. */
static int tw_setup_ring(struct tw_file *file, const struct tw_setup *setup)
{
	size_t bytes = tw_ring_memory(setup->ring);
	int err;

	if (!setup->ring)
		return 0;
	err = tw_charge(file, bytes);
	if (err)
		return err;
	err = tw_ring_alloc(&file->ring, setup->ring, tw_clock_offset(setup->clock));
	if (err)
		tw_uncharge(file, bytes);
	return err;
}

/* Allocate a wheel's initial memory. Returns 0, or -EDQUOT or -ENOMEM without effect. */
static int tw_setup_memory(struct tw_file *file, const struct tw_setup *setup)
{
	int err = tw_setup_ring(file, setup);

	if (err || !setup->table)
		return err;
	err = tw_table_add_deadlines(file);
	if (err && setup->ring) {
		tw_ring_free(&file->ring, setup->ring);
		tw_uncharge(file, tw_ring_memory(setup->ring));
	}
	return err;
}

/* Batches read the settings. There is no base now, and therefore no batch. */
static void tw_setup_apply(struct tw_file *file, const struct tw_setup *setup)
{
	/* The clock is also read before a batch begins. */
	WRITE_ONCE(file->setup.clock, setup->clock);
	/* This writes the same clock again. */
	data_race(file->setup = *setup);
	/* Pairs with the acquire in tw_has_ring(): the ring is there; litmus publish. */
	smp_store_release(&file->ring.events, setup->ring);
	file->table.pool.deadlines_offset = tw_clock_offset(setup->clock);
	tw_pool_set_entries(&file->table.pool, tw_setup_generation_bits(setup), setup->resident);
}

/**
 * tw_setup - TIMERWHEEL_IOC_SETUP
 * @file: the file
 * @arg: the requested settings; after success the granted settings
 *
 * Context: process, may sleep.
 * Return: 0, -EINVAL, -EPERM, -EOPNOTSUPP, -EBUSY, -EDQUOT, -ENOMEM.
 */
int tw_setup(struct tw_file *file, struct timerwheel_setup *arg)
{
	struct tw_setup setup;
	int err;

	err = tw_setup_grant(arg, &setup);
	if (!err && arg->flags & TIMERWHEEL_SETUP_ALARM)
		err = tw_alarm_permitted();
	if (!err && setup.table && !tw_resident_supported())
		err = -EOPNOTSUPP;
	if (err)
		return err;
	mutex_lock(&file->mutex);	/* no timer can be created now */
	if (file->setup_done || file->table.made)
		err = -EBUSY;
	else
		err = tw_setup_memory(file, &setup);
	if (!err) {
		tw_cpu_reset(file);
		tw_setup_apply(file, &setup);
		if (arg->flags & TIMERWHEEL_SETUP_CLOCK_SET)
			tw_clockset_join(file);
		if (arg->flags & TIMERWHEEL_SETUP_ALARM)
			tw_alarm_join(file);
		/* Pairs with the acquire in tw_stats_info(): all is set; litmus publish. */
		smp_store_release(&file->setup_done, true);
	}
	mutex_unlock(&file->mutex);
	if (err)
		return err;
	/* A wheel with a ring does not support read, so waiting readers get an error. */
	if (setup.ring)
		wake_up_interruptible_all(&file->events.readers);
	return 0;
}
