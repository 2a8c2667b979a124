/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * libtimerwheel: /dev/timerwheel for daemons in C and C++.
 *
 * Functions return 0 or a count on success and a negative errno on failure (timerwheel_strerror()
 * says what to do about it). None of them sets errno, prints, starts a thread or installs a signal
 * handler. Only timerwheel_open(), timerwheel_adopt(), timerwheel_queue_new(), the first
 * timerwheel_queue_commands() of a queue and the process back end allocate memory. Elements of
 * batches and events are those of <linux/timerwheel.h>, which describes their fields and the errors
 * of elements.
 *
 * There are two back ends with the same interface:
 *
 *  TIMERWHEEL_BACKEND_DEVICE   the kernel module. Many threads and processes may use one wheel. It
 *              survives its daemon as long as another process keeps the descriptor.
 *  TIMERWHEEL_BACKEND_PROCESS  a wheel inside this process with one timerfd, so that a program runs
 *              where the module is not loaded. Not supported (-ENOTSUP) are sharing
 *              (timerwheel_share()), monitors (timerwheel_monitor()) and connections
 *              (timerwheel_add_socket()). After fork() the child must not use the wheel.
 *
 * Some functions have the name of the structure that they take or fill in, like stat():
 * timerwheel_info() and struct timerwheel_info. In C++ such a type needs the keyword "struct".
 *
 * Thread safety: several threads may call functions on the same wheel at once. Exceptions:
 * timerwheel_take() and timerwheel_wait() on a wheel with an event ring are for one thread at a
 * time, and timerwheel_close() must be the last call. A queue may be used by one thread at a time.
 * Signal handlers may only call timerwheel_table_touch(), timerwheel_table_arm(),
 * timerwheel_table_refresh() and timerwheel_table_cancel(), and timerwheel_resident_arm(),
 * timerwheel_resident_refresh() and timerwheel_resident_cancel().
 */
#ifndef TIMERWHEEL_H
#define TIMERWHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/timerwheel.h>

#include "timerwheel-mapped.h"

#ifdef __cplusplus
extern "C" {
#endif

/** struct timerwheel - a wheel, created by timerwheel_open() or timerwheel_adopt() */
struct timerwheel;

/** enum timerwheel_backend - where a wheel is implemented */
enum timerwheel_backend {
	/**
	 * @TIMERWHEEL_BACKEND_AUTO: the value of the environment variable TIMERWHEEL_BACKEND
	 * ("device", "process" or "auto"). If it is "auto" or not set: the device, or the process
	 * if there is no device (-ENOENT, -ENXIO or -ENODEV). Without permission for the device
	 * timerwheel_open() fails.
	 */
	TIMERWHEEL_BACKEND_AUTO,
	/** @TIMERWHEEL_BACKEND_DEVICE: /dev/timerwheel */
	TIMERWHEEL_BACKEND_DEVICE,
	/** @TIMERWHEEL_BACKEND_PROCESS: this process */
	TIMERWHEEL_BACKEND_PROCESS
};

/**
 * struct timerwheel_config - settings of a wheel; all members may be 0
 * @backend: the back end
 * @device: path of the device; NULL: that in the environment variable TIMERWHEEL_DEVICE, or
 *	"/dev/timerwheel"
 * @clock: enum timerwheel_clock
 * @capacity: maximum number of timers; 0: 4,194,304
 * @tick: length of a tick in ns; 0: 1 ms. The process back end uses it only to round down slack.
 * @slots: slots per level; 0: 256. The process back end has none.
 * @wake_events: wake a reader when this many events wait; 0: 1. The process back end wakes at once.
 * @wake_ns: or this many ns after the first of them
 * @slack: default slack, in ns
 * @ring: length of the event ring; 0: none. The process back end has none and behaves the same.
 * @table: map the deadline table, for timerwheel_table()
 * @clock_set: TIMERWHEEL_SETUP_CLOCK_SET; not supported by the process back end
 * @alarm: TIMERWHEEL_SETUP_ALARM; not supported by the process back end
 * @resident: TIMERWHEEL_SETUP_RESIDENT: timers are armed and cancelled in the deadline table;
 *	implies @table
 */
struct timerwheel_config {
	enum timerwheel_backend backend;
	const char *device;
	uint32_t clock;
	uint32_t capacity;
	uint64_t tick;
	uint32_t slots;
	uint32_t wake_events;
	uint64_t wake_ns;
	uint64_t slack;
	uint32_t ring;
	bool table;
	bool clock_set;
	bool alarm;
	bool resident;
};

/**
 * timerwheel_open - create a wheel
 * @wheel: out: the wheel
 * @config: its settings; NULL: all zero
 *
 * Return: 0; -EINVAL: a value in @config is outside the limits, or TIMERWHEEL_BACKEND is unknown;
 * -ENOTSUP: the process back end does not support a setting, no clock can wake this machine, or its
 * atomic operations do not allow resident timers;
 * -EDQUOT: wheel and ring would exceed the user's limit on memory; -ENOMEM; -EMFILE, -ENFILE;
 * -ENOENT, -ENXIO, -ENODEV: no device (modprobe timerwheel); -ENOTTY: @device is another device;
 * -EACCES, -EPERM: no permission to open it, or to wake the machine.
 */
int timerwheel_open(struct timerwheel **wheel, const struct timerwheel_config *config);

/**
 * timerwheel_adopt - use a wheel that another process created
 * @wheel: out: the wheel
 * @fd: its descriptor, for example from a service manager's store. timerwheel_close() closes it. On
 *	error it stays open. Its flags (FD_CLOEXEC, O_NONBLOCK) do not matter and are not changed.
 * @table: map the deadline table
 *
 * If the wheel has an event ring it is mapped, too. Events continue where the last reader stopped.
 *
 * If nothing is mapped the descriptor may be open for reading only: functions that change the wheel
 * then fail with -EBADF.
 *
 * The descriptor may come from a process that is not trusted. Only a descriptor of the module's
 * device is used, and no event in the ring makes the library access other memory.
 *
 * Return: 0; -ENOTTY, -EBADF: not a wheel; -EACCES: not open for reading, or not for writing
 * although there is something to map; -ENOMEM; -EPROTO: it has no ring, and a newer program has set
 * it up for larger events than this library knows, or its clock, ring or table is of a kind that
 * is unknown here. With @table also -EDQUOT, and -EXDEV: the table was first mapped in another time
 * namespace.
 */
int timerwheel_adopt(struct timerwheel **wheel, int fd, bool table);

/**
 * timerwheel_close - close a wheel
 * @wheel: the wheel; NULL does nothing
 *
 * Its timers end unless another descriptor of it is open.
 */
void timerwheel_close(struct timerwheel *wheel);

/**
 * timerwheel_backend - the back end of a wheel
 * @wheel: the wheel
 *
 * Return: TIMERWHEEL_BACKEND_DEVICE or TIMERWHEEL_BACKEND_PROCESS.
 */
enum timerwheel_backend timerwheel_backend(const struct timerwheel *wheel);

/**
 * timerwheel_fd - the descriptor to wait for
 * @wheel: the wheel
 *
 * It becomes readable (POLLIN) when there are events, after timerwheel_take() has returned 0. Use
 * it with poll, epoll or io_uring; do not read from it and do not close it. In the process back end
 * it may also become readable at the former deadline of a timer that was postponed or removed:
 * timerwheel_take() then returns 0.
 *
 * Return: the descriptor.
 */
int timerwheel_fd(const struct timerwheel *wheel);

/**
 * timerwheel_share - a descriptor to pass to others: by fork, SCM_RIGHTS, or to a service manager
 * @wheel: the wheel
 *
 * Return: the descriptor, which still belongs to @wheel; -ENOTSUP: process back end.
 */
int timerwheel_share(const struct timerwheel *wheel);

/**
 * timerwheel_info - TIMERWHEEL_IOC_INFO: limits and settings
 * @wheel: the wheel
 * @info: out: filled in
 *
 * Return: 0.
 */
int timerwheel_info(struct timerwheel *wheel, struct timerwheel_info *info);

/**
 * timerwheel_stats - TIMERWHEEL_IOC_STATS: counters
 * @wheel: the wheel
 * @stats: out: filled in. In the process back end these are 0: cascades, requeues, wakeups,
 *	firings, passes, pass_max_timers and pass_max_ns.
 *
 * Return: 0.
 */
int timerwheel_stats(struct timerwheel *wheel, struct timerwheel_stats *stats);

/**
 * timerwheel_now - the time of a wheel's clock
 * @wheel: the wheel
 *
 * Return: the time in ns.
 */
uint64_t timerwheel_now(struct timerwheel *wheel);

/**
 * timerwheel_add - arm timers
 * @wheel: the wheel
 * @elems: the elements; out: result, index and generation
 * @count: number of elements, without limit: the library makes as many calls as needed
 *
 * An element that fails (result below 0) changes nothing and does not affect the others. A signal
 * stops none of them. With the process back end an array that cannot be accessed ends the program,
 * here and below, instead of -EFAULT.
 *
 * Return: the number of elements processed, each with its own result. It is less than @count if an
 * error occurred. The error, if it occurred before the first element: -EFAULT, -ENOMEM; -EDQUOT, in
 * the first call on a new wheel; -EBADF: the wheel was adopted for reading only.
 */
long timerwheel_add(struct timerwheel *wheel, struct timerwheel_add *elems, size_t count);

/**
 * timerwheel_add_socket - arm timers that watch TCP connections
 * @wheel: the wheel
 * @elems: the elements; out: result, index and generation
 * @count: number of elements, without limit
 *
 * The kernel delivers an event when a connection has been idle for too long, and aborts it if asked
 * to, whether or not a program runs: see struct timerwheel_add_socket. The process back end cannot
 * do that.
 *
 * Return: as timerwheel_add(); also -EOPNOTSUPP: the process back end; -ENOTTY: a kernel that does
 * not know the call.
 */
long timerwheel_add_socket(struct timerwheel *wheel, struct timerwheel_add_socket *elems,
			   size_t count);

/**
 * timerwheel_move - change the deadlines of timers
 * @wheel: the wheel
 * @elems: the elements; out: result
 * @count: number of elements, without limit
 *
 * Return: as timerwheel_add().
 */
long timerwheel_move(struct timerwheel *wheel, struct timerwheel_move *elems, size_t count);

/**
 * timerwheel_remove - remove timers
 * @wheel: the wheel
 * @elems: the elements; out: result, value and left
 * @count: number of elements, without limit
 *
 * Return: as timerwheel_add().
 */
long timerwheel_remove(struct timerwheel *wheel, struct timerwheel_remove *elems, size_t count);

/**
 * timerwheel_get - read timers by key
 * @wheel: the wheel
 * @elems: the elements: keys, and flags 0; out: all other fields
 * @count: number of elements, without limit
 *
 * Return: as timerwheel_add().
 */
long timerwheel_get(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count);

/**
 * timerwheel_move_handles - change the deadlines of timers by their handles
 * @wheel: the wheel
 * @elems: the elements: index and generation from ADD; out: result, in the generation's place
 * @count: number of elements, without limit
 * @flags: of all elements: 0 or TIMERWHEEL_ABS; of resident timers also TIMERWHEEL_EXCL
 *
 * Does what timerwheel_move() does, faster, as no key is looked up. A handle is for timers that
 * exist or have ended lately: see struct timerwheel_move_handle.
 *
 * Return: as timerwheel_add(); -EINVAL: other flags; -ENOTTY: the kernel module is older
 * (TIMERWHEEL_FEATURE_HANDLE).
 */
long timerwheel_move_handles(struct timerwheel *wheel, struct timerwheel_move_handle *elems,
			     size_t count, uint32_t flags);

/**
 * timerwheel_remove_handles - remove timers by their handles
 * @wheel: the wheel
 * @elems: the elements: index and generation from ADD; out: value, and result in the generation's
 *	place
 * @count: number of elements, without limit
 *
 * Return: as timerwheel_move_handles().
 */
long timerwheel_remove_handles(struct timerwheel *wheel, struct timerwheel_remove_handle *elems,
			       size_t count);

/**
 * timerwheel_list - read all timers, some in each call
 * @wheel: the wheel
 * @elems: out: the timers
 * @count: maximum number of timers
 * @cursor: 0 in the first call, then the value that the last call has stored
 *
 * A timer that exists from the first call to the last is returned exactly once.
 *
 * Return: the number of timers, which may be less than @count before the end; 0: no more;
 * -EFAULT, -ENOMEM; -EINTR: a fatal signal.
 */
long timerwheel_list(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count,
		     uint64_t *cursor);

/**
 * timerwheel_drain - remove any timers, pending and due
 * @wheel: the wheel
 * @elems: out: the timers
 * @count: maximum number of timers
 * @flags: 0, or TIMERWHEEL_DRAIN_CLOSE: accept no new timers from now on
 *
 * Return: the number of timers, which may be less than @count before the end; 0: none is left;
 * -EINVAL: other flags; -EBADF, -EFAULT, -ENOMEM; -EINTR: a fatal signal.
 */
long timerwheel_drain(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count,
		      uint32_t flags);

/**
 * timerwheel_advance - advance the time of a wheel with TIMERWHEEL_CLOCK_MANUAL
 * @wheel: the wheel
 * @time: number of ns; with TIMERWHEEL_ABS the new time
 * @flags: 0 or TIMERWHEEL_ABS
 *
 * Return: the number of timers that fell due; -EINVAL: another clock, a time in the past, or other
 * flags; -EINTR: a fatal signal; -EBADF, -EDQUOT, -ENOMEM as timerwheel_add().
 */
long timerwheel_advance(struct timerwheel *wheel, uint64_t time, uint32_t flags);

/**
 * timerwheel_take - take events, from the event ring or by read()
 * @wheel: the wheel
 * @events: out: the events
 * @count: maximum number of events
 *
 * Never blocks. Only after it has returned 0 timerwheel_fd() becomes readable for the next event:
 * take events until it returns 0, and then wait.
 *
 * Return: the number of events; 0: none for now; -EFAULT, -ENOMEM; with an event ring -EDQUOT.
 */
long timerwheel_take(struct timerwheel *wheel, struct timerwheel_event *events, size_t count);

/**
 * timerwheel_wait - take events; sleep until there are some
 * @wheel: the wheel
 * @events: out: the events
 * @count: maximum number of events
 * @timeout: in ms; 0: do not sleep; negative: no timeout
 *
 * Return: the number of events; 0: timeout; -EINTR: a signal; else as timerwheel_take().
 */
long timerwheel_wait(struct timerwheel *wheel, struct timerwheel_event *events, size_t count,
		     int timeout);

/**
 * timerwheel_monitor - open a descriptor from which a copy of each event can be read
 * @wheel: the wheel
 * @events: maximum number of events that wait; 0: 1024
 * @flags: TIMERWHEEL_MONITOR_*
 *
 * Return: the descriptor, which the caller must close; -ENOTSUP: process back end; -EINVAL,
 * -ENOMEM, -EDQUOT, -ENOSPC, -EMFILE, -ENFILE as in <linux/timerwheel.h>.
 */
int timerwheel_monitor(struct timerwheel *wheel, uint32_t events, uint32_t flags);

/**
 * struct timerwheel_table - the deadline table, for timerwheel_table_touch(), or, in a resident
 * wheel, for timerwheel_table_arm() and so on
 * @entries: an entry for each timer, by index
 * @bits: number of low bits of an entry that hold the generation
 */
struct timerwheel_table {
	__u64 *entries;
	unsigned int bits;
};

/**
 * timerwheel_table - get the deadline table of a wheel
 * @wheel: the wheel
 * @table: out: the table; valid until timerwheel_close()
 *
 * Return: 0; -ENOENT: the wheel was opened or adopted without one.
 */
int timerwheel_table(const struct timerwheel *wheel, struct timerwheel_table *table);

/**
 * timerwheel_table_touch - postpone a timer by a store to memory
 * @table: the deadline table
 * @index: index of the timer, from ADD, GET or LIST
 * @generation: its generation, from the same call
 * @deadline: the new deadline, absolute, in ns; rounded up to a multiple of 2^@table->bits. More
 *	than TIMERWHEEL_TIME_MAX is treated as TIMERWHEEL_TIME_MAX.
 *
 * Makes no system call, takes no lock, and may be called by any thread. An earlier deadline has no
 * effect (use timerwheel_move()). If the timer is due already its event is delivered all the same:
 * keep the deadline for timerwheel_table_rearm(). Neither is for resident timers.
 *
 * Return: true, also if the timer has ended and its index has no new owner yet; false: it has one;
 * nothing was stored.
 */
static inline bool timerwheel_table_touch(const struct timerwheel_table *table, uint32_t index,
					  uint32_t generation, uint64_t deadline)
{
	/* rounding up must not wrap to 0 */
	if (deadline > TIMERWHEEL_TIME_MAX)
		deadline = TIMERWHEEL_TIME_MAX;
	return timerwheel_mapped_touch(table->entries, index,
				       timerwheel_mapped_entry(deadline, generation, table->bits),
				       table->bits);
}

/**
 * timerwheel_table_rearm - at the event of a timer: arm it again if it was postponed too late
 * @wheel: the wheel
 * @event: the event of a timer that fires once
 * @deadline: the last one passed to timerwheel_table_touch(), or that of timerwheel_add():
 *	absolute, in ns
 * @index: out: index of the timer, if it was armed again
 * @generation: out: its generation, if it was armed again
 *
 * Any program that does not run for a while stores too late: the timer falls due, and only then the
 * program reads the message that postpones it. A server that believes the event closes a connection
 * that is alive. So read what has arrived, then make this call.
 *
 * The timer keeps key and value, and gets the default slack of the wheel.
 *
 * Return: 0: @deadline has passed; 1: it has not, and the timer is armed for it; -ENOSPC, -EDQUOT,
 * -ENOMEM, -EMLINK, -ESHUTDOWN, -EBADF: it has not, and the timer could not be armed.
 */
int timerwheel_table_rearm(struct timerwheel *wheel, const struct timerwheel_event *event,
			   uint64_t deadline, uint32_t *index, uint32_t *generation);

/**
 * timerwheel_table_arm - arm a resident timer in memory
 * @table: the deadline table of a resident wheel
 * @index: index of the timer, from ADD, GET or LIST
 * @generation: its generation, from the same call
 * @deadline: absolute, in ns; rounded up to a multiple of 2^@table->bits. More than
 *	TIMERWHEEL_TIME_MAX is treated as TIMERWHEEL_TIME_MAX.
 *
 * Makes no system call, takes no lock, and may be called by any thread. If the timer is armed, it
 * gets the new deadline, and no event comes for the former one.
 *
 * Return: TIMERWHEEL_DONE; TIMERWHEEL_NEEDS_CALL: @deadline is before that of the last arming, even
 * if that was cancelled, or the timer has fired or is parked: use timerwheel_move(), or
 * timerwheel_queue_arm(), which does; TIMERWHEEL_GONE.
 */
static inline enum timerwheel_answer timerwheel_table_arm(const struct timerwheel_table *table,
							  uint32_t index, uint32_t generation,
							  uint64_t deadline)
{
	/* more than TIMERWHEEL_TIME_MAX: rounding up must not wrap to 0 */
	if (__builtin_expect((int64_t)deadline < 0, 0))
		deadline = TIMERWHEEL_TIME_MAX;
	return timerwheel_mapped_arm(table->entries, index,
				     timerwheel_mapped_entry(deadline, generation, table->bits),
				     table->bits);
}

/**
 * timerwheel_table_refresh - postpone a resident timer in memory, if it is armed
 * @table: the deadline table of a resident wheel
 * @index: index of the timer, from ADD, GET or LIST
 * @generation: its generation, from the same call
 * @deadline: as for timerwheel_table_arm()
 *
 * Makes no system call, takes no lock, and may be called by any thread.
 *
 * Return: TIMERWHEEL_DONE: no event comes for the former deadline; TIMERWHEEL_TOO_LATE: it has
 * fired; TIMERWHEEL_NEEDS_CALL: @deadline is before that of the timer; TIMERWHEEL_NOT_ARMED;
 * TIMERWHEEL_GONE.
 */
static inline enum timerwheel_answer timerwheel_table_refresh(const struct timerwheel_table *table,
							      uint32_t index, uint32_t generation,
							      uint64_t deadline)
{
	/* more than TIMERWHEEL_TIME_MAX: rounding up must not wrap to 0 */
	if (__builtin_expect((int64_t)deadline < 0, 0))
		deadline = TIMERWHEEL_TIME_MAX;
	return timerwheel_mapped_refresh(table->entries, index,
					 timerwheel_mapped_entry(deadline, generation, table->bits),
					 table->bits);
}

/**
 * timerwheel_table_cancel - cancel a resident timer in memory
 * @table: the deadline table of a resident wheel
 * @index: index of the timer, from ADD, GET or LIST
 * @generation: its generation, from the same call
 *
 * Makes no system call, takes no lock, and may be called by any thread. The timer stays, to be
 * armed again. Until its deadline has passed that needs no call.
 *
 * Return: TIMERWHEEL_DONE: no event comes; TIMERWHEEL_TOO_LATE: it has fired; TIMERWHEEL_NOT_ARMED;
 * TIMERWHEEL_GONE.
 */
static inline enum timerwheel_answer timerwheel_table_cancel(const struct timerwheel_table *table,
							     uint32_t index, uint32_t generation)
{
	return timerwheel_mapped_cancel(table->entries, index, generation, table->bits);
}

/**
 * timerwheel_resident_arm - as timerwheel_table_arm(), for languages without inline functions of C
 * @wheel: the wheel, resident and with its deadline table
 * @index: index of the timer
 * @generation: its generation
 * @deadline: absolute, in ns
 *
 * Return: an answer of timerwheel_table_arm(), as a number; -EINVAL: the wheel is not resident, or
 * was adopted without its table.
 */
int timerwheel_resident_arm(const struct timerwheel *wheel, uint32_t index, uint32_t generation,
			    uint64_t deadline);

/**
 * timerwheel_resident_refresh - as timerwheel_table_refresh(), for other languages
 * @wheel: the wheel, resident and with its deadline table
 * @index: index of the timer
 * @generation: its generation
 * @deadline: absolute, in ns
 *
 * Return: an answer of timerwheel_table_refresh(), as a number; -EINVAL as
 * timerwheel_resident_arm().
 */
int timerwheel_resident_refresh(const struct timerwheel *wheel, uint32_t index,
				uint32_t generation, uint64_t deadline);

/**
 * timerwheel_resident_cancel - as timerwheel_table_cancel(), for other languages
 * @wheel: the wheel, resident and with its deadline table
 * @index: index of the timer
 * @generation: its generation
 *
 * Return: an answer of timerwheel_table_cancel(), as a number; -EINVAL as
 * timerwheel_resident_arm().
 */
int timerwheel_resident_cancel(const struct timerwheel *wheel, uint32_t index,
			       uint32_t generation);

/** struct timerwheel_queue - operations gathered during one iteration of an event loop */
struct timerwheel_queue;

/**
 * typedef timerwheel_queue_failed_fn - called for each queued operation that failed
 * @arg: @arg of timerwheel_queue_new()
 * @op: TIMERWHEEL_IOC_ADD, _MOVE or _REMOVE
 * @elem: the element, with its result
 *
 * It must not use the queue.
 */
typedef void (*timerwheel_queue_failed_fn)(void *arg, unsigned long op, const void *elem);

/**
 * timerwheel_queue_new - create a queue
 * @queue: out: the queue
 * @wheel: the wheel; close it after the queue was freed
 * @room: maximum number of queued operations of each kind, at most TIMERWHEEL_BATCH_MAX; 0: 256. If
 *	there are more the queue is flushed.
 * @failed: called for each operation that failed; may be NULL
 * @arg: argument of @failed
 *
 * Operations on the same key are done in the order in which they were queued. Those on different
 * keys are done in any order, so a flush needs one system call for each kind.
 *
 * Return: 0; -EINVAL, -ENOMEM.
 */
int timerwheel_queue_new(struct timerwheel_queue **queue, struct timerwheel *wheel,
			 unsigned int room, timerwheel_queue_failed_fn failed, void *arg);

/**
 * timerwheel_queue_free - flush a queue and free it
 * @queue: the queue; NULL does nothing
 *
 * The flush continues after signals. If it fails with another error the rest is discarded without a
 * report: call timerwheel_queue_flush() first to see errors.
 */
void timerwheel_queue_free(struct timerwheel_queue *queue);

/**
 * timerwheel_queue_add - arm a timer with the next flush
 * @queue: the queue
 * @elem: the element; it is copied
 *
 * A relative deadline counts from the flush.
 *
 * Return: 0; or an error of a flush that was needed first: the operation was not queued.
 */
int timerwheel_queue_add(struct timerwheel_queue *queue, const struct timerwheel_add *elem);

/**
 * timerwheel_queue_move - change a timer's deadline with the next flush
 * @queue: the queue
 * @elem: the element; it is copied
 *
 * Return: as timerwheel_queue_add().
 */
int timerwheel_queue_move(struct timerwheel_queue *queue, const struct timerwheel_move *elem);

/**
 * timerwheel_queue_remove - remove a timer with the next flush
 * @queue: the queue
 * @elem: the element; it is copied
 *
 * Return: as timerwheel_queue_add().
 */
int timerwheel_queue_remove(struct timerwheel_queue *queue, const struct timerwheel_remove *elem);

/**
 * timerwheel_queue_arm - arm a resident timer in memory, or else with the next flush
 * @queue: the queue, of a resident wheel with its deadline table
 * @key: key of the timer
 * @index: its index, from ADD, GET or LIST
 * @generation: its generation, from the same call
 * @deadline: absolute, in ns
 *
 * If timerwheel_table_arm() needs a call, or operations on the key are queued, a MOVE to @deadline
 * is queued. It withdraws an event that has not been delivered; one that has been is an event of
 * the former arming: its deadline is before @deadline. If the MOVE fails that is reported as of
 * timerwheel_queue_move().
 *
 * Return: TIMERWHEEL_DONE; TIMERWHEEL_NEEDS_CALL: queued; TIMERWHEEL_GONE; -EINVAL as
 * timerwheel_resident_arm(); or an error of a flush that was needed first: nothing was done.
 */
int timerwheel_queue_arm(struct timerwheel_queue *queue, uint64_t key, uint32_t index,
			 uint32_t generation, uint64_t deadline);

/**
 * timerwheel_queue_refresh - postpone a resident timer in memory, if it is armed
 * @queue: the queue, of a resident wheel with its deadline table
 * @key: key of the timer
 * @index: its index
 * @generation: its generation
 * @deadline: absolute, in ns
 *
 * If operations on the key are queued, the queue is flushed first. If @deadline is before that of
 * the timer, a MOVE is queued. Should the timer fire before the flush, or another thread cancel it,
 * the MOVE arms it again.
 *
 * Return: an answer of timerwheel_table_refresh(), TIMERWHEEL_NEEDS_CALL: queued; or an error as
 * timerwheel_queue_arm().
 */
int timerwheel_queue_refresh(struct timerwheel_queue *queue, uint64_t key, uint32_t index,
			     uint32_t generation, uint64_t deadline);

/**
 * timerwheel_queue_cancel - cancel a resident timer in memory
 * @queue: the queue, of a resident wheel with its deadline table
 * @key: key of the timer
 * @index: its index
 * @generation: its generation
 *
 * If operations on the key are queued, the queue is flushed first: none of them may arm the timer
 * later.
 *
 * Return: an answer of timerwheel_table_cancel(); or an error as timerwheel_queue_arm().
 */
int timerwheel_queue_cancel(struct timerwheel_queue *queue, uint64_t key, uint32_t index,
			    uint32_t generation);

/**
 * timerwheel_queue_flush - do all queued operations
 * @queue: the queue
 *
 * Call it once in each iteration of the event loop, before waiting. With an empty queue it makes no
 * system call.
 *
 * Return: 0: all operations were processed, and those that failed were reported; or an error of a
 * call: the remaining operations stay queued, in order. -EBUSY: timerwheel_queue_commands().
 */
int timerwheel_queue_flush(struct timerwheel_queue *queue);

/** TIMERWHEEL_COMMANDS - most commands of timerwheel_queue_commands() */
#define TIMERWHEEL_COMMANDS	3

/**
 * struct timerwheel_command - a submission for a ring of the program's own (io_uring)
 * @fd: for the submission's fd
 * @op: for its cmd_op
 * @bytes: for its cmd
 *
 * The submission's opcode is IORING_OP_URING_CMD. All that is not mentioned is 0, but user_data is
 * the program's.
 */
struct timerwheel_command {
	int fd;
	uint32_t op;
	uint8_t bytes[16];
};

/**
 * timerwheel_queue_commands - flush a queue by submissions that the program makes anyway
 * @queue: the queue
 * @commands: out: up to TIMERWHEEL_COMMANDS commands
 *
 * Submit them in this order, each but the last with IOSQE_IO_LINK, and pass each result to
 * timerwheel_queue_completed(). Until the last one is there, operations can be queued, but a flush
 * fails with -EBUSY; so does an operation that needs one first. Do not free the queue then.
 *
 * Return: number of commands, 0: nothing is queued; -EOPNOTSUPP: this wheel has no commands, call
 * timerwheel_queue_flush(); -EBUSY: results of the last ones are missing; -ENOMEM; an error of
 * timerwheel_info().
 */
int timerwheel_queue_commands(struct timerwheel_queue *queue, struct timerwheel_command *commands);

/**
 * timerwheel_queue_completed - take the result of a command
 * @queue: the queue
 * @command: index of the command, 0 for the first; in this order
 * @res: the completion's res
 *
 * Reports the operations that failed, as a flush does. What the command has not done, because of an
 * error, is done by calls. So a command that could not be submitted is passed with any error.
 *
 * Return: 0; -EINVAL: there is no such command; or an error of a call: call it again with 0.
 */
int timerwheel_queue_completed(struct timerwheel_queue *queue, unsigned int command, int res);

/**
 * timerwheel_strerror - describe an error of this library, and what to do about it
 * @error: an errno, negative or positive
 *
 * Return: a constant string without a full stop; never NULL.
 */
const char *timerwheel_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif /* TIMERWHEEL_H */
