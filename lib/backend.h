/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the parts of the library know of each other. */
#ifndef TW_BACKEND_H
#define TW_BACKEND_H

/* Only what the public header declares can be seen outside of the shared library. */
#pragma GCC visibility push(default)
#include "timerwheel.h"
#pragma GCC visibility pop

#define TW_DEVICE_PATH		"/dev/timerwheel"

/**
 * enum tw_kind - the calls on arrays of timers by key
 * @TW_ADD: of struct timerwheel_add
 * @TW_MOVE: of struct timerwheel_move
 * @TW_REMOVE: of struct timerwheel_remove
 * @TW_GET: of struct timerwheel_entry
 */
enum tw_kind {
	TW_ADD,
	TW_MOVE,
	TW_REMOVE,
	TW_GET
};

/**
 * struct tw_ops - what a back end does
 * @backend: which one it is
 * @close: ends a wheel and frees it
 * @share: as tw_share()
 * @info: as tw_info()
 * @stats: as tw_stats()
 * @now: as tw_now()
 * @batch: as tw_add(), tw_move(), tw_remove(), tw_get(); at most TIMERWHEEL_BATCH_MAX elements
 * @list: as tw_list(); at most TIMERWHEEL_BATCH_MAX elements
 * @drain: as tw_drain(); at most TIMERWHEEL_BATCH_MAX elements
 * @advance: as tw_advance()
 * @take: as tw_take(); at least one, at most TIMERWHEEL_BATCH_MAX
 * @monitor: as tw_monitor()
 *
 * They may set errno: wheel.c puts it back.
 */
struct tw_ops {
	enum tw_backend backend;
	void (*close)(struct tw_wheel *wheel);
	int (*share)(const struct tw_wheel *wheel);
	int (*info)(struct tw_wheel *wheel, struct timerwheel_info *info);
	int (*stats)(struct tw_wheel *wheel, struct timerwheel_stats *stats);
	uint64_t (*now)(struct tw_wheel *wheel);
	long (*batch)(struct tw_wheel *wheel, enum tw_kind kind, void *elems, size_t count);
	long (*list)(struct tw_wheel *wheel, struct timerwheel_entry *elems, size_t count,
		     uint64_t *cursor);
	long (*drain)(struct tw_wheel *wheel, struct timerwheel_entry *elems, size_t count,
		      uint32_t flags);
	long (*advance)(struct tw_wheel *wheel, uint64_t time, uint32_t flags);
	long (*take)(struct tw_wheel *wheel, struct timerwheel_event *events, size_t count);
	int (*monitor)(struct tw_wheel *wheel, uint32_t events, uint32_t flags);
};

/**
 * struct tw_wheel - what all wheels have; a back end's own begins with it
 * @ops: the back end
 * @fd: what becomes readable
 * @clock: enum timerwheel_clock
 * @table: the deadline table; its @words are NULL if there is none
 */
struct tw_wheel {
	const struct tw_ops *ops;
	int fd;
	uint32_t clock;
	struct tw_table table;
};

/**
 * tw_clock_now - what time it is on a running clock
 * @clock: enum timerwheel_clock, not TIMERWHEEL_CLOCK_MANUAL
 *
 * Return: ns.
 */
uint64_t tw_clock_now(uint32_t clock);

/**
 * tw_device_open - make a wheel of the kernel module
 * @wheel: is set to it
 * @config: how it is to be; @device is set
 *
 * Return: 0 or an error of tw_open().
 */
int tw_device_open(struct tw_wheel **wheel, const struct tw_config *config);

/**
 * tw_device_adopt - use a wheel of the kernel module that exists
 * @wheel: is set to it
 * @fd: its descriptor; on error it stays open
 * @table: map its deadline table
 *
 * Return: 0 or an error of tw_adopt().
 */
int tw_device_adopt(struct tw_wheel **wheel, int fd, bool table);

/**
 * tw_process_open - make a wheel inside this process
 * @wheel: is set to it
 * @config: how it is to be
 *
 * Return: 0 or an error of tw_open().
 */
int tw_process_open(struct tw_wheel **wheel, const struct tw_config *config);

#endif /* TW_BACKEND_H */
