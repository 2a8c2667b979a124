/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The library's internal interface. Names that programs can see begin with timerwheel_, all others
 * with ltw_, so that a statically linked program can use any other name.
 */
#ifndef LTW_BACKEND_H
#define LTW_BACKEND_H

/* Only functions that the public header declares are visible outside the shared library. */
#pragma GCC visibility push(default)
#include "timerwheel.h"
#pragma GCC visibility pop

#define LTW_DEVICE_PATH		"/dev/timerwheel"

/**
 * enum ltw_kind - calls on arrays in which the caller selects the timers
 * @LTW_ADD: elements are struct timerwheel_add
 * @LTW_MOVE: elements are struct timerwheel_move
 * @LTW_REMOVE: elements are struct timerwheel_remove
 * @LTW_GET: elements are struct timerwheel_entry
 * @LTW_MOVE_HANDLE: elements are struct timerwheel_move_handle
 * @LTW_REMOVE_HANDLE: elements are struct timerwheel_remove_handle
 * @LTW_ADD_SOCKET: elements are struct timerwheel_add_socket
 */
enum ltw_kind {
	LTW_ADD,
	LTW_MOVE,
	LTW_REMOVE,
	LTW_GET,
	LTW_MOVE_HANDLE,
	LTW_REMOVE_HANDLE,
	LTW_ADD_SOCKET
};

/**
 * struct ltw_ops - operations of a back end
 * @backend: which back end it is
 * @close: closes a wheel and frees it
 * @share: as timerwheel_share()
 * @info: as timerwheel_info()
 * @stats: as timerwheel_stats()
 * @now: as timerwheel_now()
 * @batch: as timerwheel_add(), timerwheel_move(), timerwheel_remove(), timerwheel_get(),
 *	timerwheel_move_handles(), which alone has flags, timerwheel_remove_handles() and
 *	timerwheel_add_socket(); at most TIMERWHEEL_BATCH_MAX elements
 * @list: as timerwheel_list(); at most TIMERWHEEL_BATCH_MAX elements
 * @drain: as timerwheel_drain(); at most TIMERWHEEL_BATCH_MAX elements
 * @advance: as timerwheel_advance()
 * @take: as timerwheel_take(); @count is at least 1 and at most TIMERWHEEL_BATCH_MAX
 * @monitor: as timerwheel_monitor()
 *
 * They may set errno; wheel.c restores it.
 */
struct ltw_ops {
	enum timerwheel_backend backend;
	void (*close)(struct timerwheel *wheel);
	int (*share)(const struct timerwheel *wheel);
	int (*info)(struct timerwheel *wheel, struct timerwheel_info *info);
	int (*stats)(struct timerwheel *wheel, struct timerwheel_stats *stats);
	uint64_t (*now)(struct timerwheel *wheel);
	long (*batch)(struct timerwheel *wheel, enum ltw_kind kind, uint32_t flags, void *elems,
		      size_t count);
	long (*list)(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count,
		     uint64_t *cursor);
	long (*drain)(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count,
		      uint32_t flags);
	long (*advance)(struct timerwheel *wheel, uint64_t time, uint32_t flags);
	long (*take)(struct timerwheel *wheel, struct timerwheel_event *events, size_t count);
	int (*monitor)(struct timerwheel *wheel, uint32_t events, uint32_t flags);
};

/**
 * struct timerwheel - the common part of a wheel; each back end's structure begins with it
 * @ops: the back end
 * @fd: the descriptor that becomes readable when there are events
 * @clock: enum timerwheel_clock
 * @table: the deadline table; its @entries are NULL if there is none
 */
struct timerwheel {
	const struct ltw_ops *ops;
	int fd;
	uint32_t clock;
	struct timerwheel_table table;
};

/**
 * ltw_clock_now - read a running clock
 * @clock: enum timerwheel_clock, not TIMERWHEEL_CLOCK_MANUAL
 *
 * Return: its time in ns.
 */
uint64_t ltw_clock_now(uint32_t clock);

/**
 * ltw_device_open - create a wheel of the kernel module
 * @wheel: out: the wheel
 * @config: its settings; @device is set
 *
 * Return: 0 or an error of timerwheel_open().
 */
int ltw_device_open(struct timerwheel **wheel, const struct timerwheel_config *config);

/**
 * ltw_device_adopt - use an existing wheel of the kernel module
 * @wheel: out: the wheel
 * @fd: its descriptor; stays open on error
 * @table: map its deadline table
 *
 * Return: 0 or an error of timerwheel_adopt().
 */
int ltw_device_adopt(struct timerwheel **wheel, int fd, bool table);

/**
 * ltw_process_open - create a wheel inside this process
 * @wheel: out: the wheel
 * @config: its settings
 *
 * Return: 0 or an error of timerwheel_open().
 */
int ltw_process_open(struct timerwheel **wheel, const struct timerwheel_config *config);

#endif /* LTW_BACKEND_H */
