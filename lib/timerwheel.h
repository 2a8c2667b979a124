/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * libtimerwheel: /dev/timerwheel for daemons in C and C++.
 *
 * Functions return 0 or a count on success and a negative errno on failure. timerwheel_strerror()
 * explains each error and what to do about it. The functions do not set errno, print, start threads
 * or install signal handlers. Only timerwheel_open(), timerwheel_adopt(), timerwheel_queue_new(),
 * the first timerwheel_queue_commands() of a queue and the process back end allocate memory.
 * <linux/timerwheel.h> defines the events and the elements of batches, and describes their fields
 * and the errors of elements.
 *
 * There are two back ends with the same interface:
 *
 *  TIMERWHEEL_BACKEND_DEVICE   the kernel module. Many threads and processes may use one wheel. It
 *              survives its daemon as long as another process keeps the descriptor.
 *  TIMERWHEEL_BACKEND_PROCESS  a wheel inside this process with one timerfd. It lets a program run
 *              without the module. It does not support (-ENOTSUP) sharing (timerwheel_share()),
 *              monitors (timerwheel_monitor()) or connections (timerwheel_add_socket()). After
 *              fork() the child must not use the wheel.
 *
 * Some functions have the same name as the structure that they take or fill in, like stat():
 * timerwheel_info() and struct timerwheel_info. In C++, write the keyword "struct" before such a
 * type.
 *
 * Thread safety: several threads may call functions on the same wheel at once, with two exceptions.
 * On a wheel with an event ring, only one thread at a time may call timerwheel_take() or
 * timerwheel_wait(). timerwheel_close() must be the last call. Only one thread at a time may use a
 * queue. Signal handlers may call only timerwheel_table_arm(), timerwheel_table_refresh(),
 * timerwheel_table_cancel(), timerwheel_arm(), timerwheel_refresh(), timerwheel_cancel(), and the
 * functions for the deadline table in timerwheel-mapped.h.
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
	 * @TIMERWHEEL_BACKEND_AUTO: the back end that the environment variable TIMERWHEEL_BACKEND
	 * names ("device", "process" or "auto"). If it is "auto" or not set, timerwheel_open() uses
	 * the device, or the process if there is no device (-ENOENT, -ENXIO or -ENODEV). Without
	 * permission for the device timerwheel_open() fails.
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
 * @device: path of the device; NULL: the path in the environment variable TIMERWHEEL_DEVICE, or
 *	"/dev/timerwheel" if that is not set
 * @clock: enum timerwheel_clock
 * @capacity: maximum number of timers; 0: 4,194,304
 * @tick: length of a tick in ns; 0: 1 ms. The process back end uses it only to round down slack.
 * @slots: slots per level; 0: 256. The process back end has none.
 * @wake_events: wake a reader when this many events wait; 0: 1. The process back end wakes the
 *	reader for every event.
 * @wake_ns: or wake a reader this many ns after the first of these events
 * @slack: default slack, in ns
 * @ring: length of the event ring; 0: none. The process back end has none and behaves the same.
 * @table: create the deadline table (TIMERWHEEL_SETUP_TABLE) and map it, for timerwheel_table():
 *	timers are armed, refreshed and cancelled in memory, and have no periods
 * @clock_set: TIMERWHEEL_SETUP_CLOCK_SET; not supported by the process back end
 * @alarm: TIMERWHEEL_SETUP_ALARM; not supported by the process back end
 * @resident: TIMERWHEEL_SETUP_RESIDENT: timers stay after they have fired; implies @table
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
 * atomic operations do not allow a deadline table;
 * -EDQUOT: the wheel, its ring and its table would exceed the user's limit on memory; -ENOMEM;
 * -EMFILE, -ENFILE; -ENOENT, -ENXIO, -ENODEV: no device (modprobe timerwheel); -ENOTTY: @device is
 * not a timerwheel device;
 * -EACCES, -EPERM: no permission to open it, or to wake the machine.
 */
int timerwheel_open(struct timerwheel **wheel, const struct timerwheel_config *config);

/**
 * timerwheel_adopt - use a wheel that another process created
 * @wheel: out: the wheel
 * @fd: its descriptor, for example from a service manager's store. timerwheel_close() closes it. On
 *	error it stays open. Its flags (FD_CLOEXEC, O_NONBLOCK) do not matter, and the library does
 *	not change them.
 * @table: map the deadline table, which the wheel must have
 *
 * If the wheel has an event ring, the library always maps it. Events continue where the last reader
 * stopped.
 *
 * The descriptor may come from an untrusted process. The library accepts only a descriptor of the
 * module's device, and no event in the ring makes it access memory outside of the ring.
 *
 * Return: 0; -ENOTTY, -EBADF: not a wheel; -ENOMEM; -EPROTO: the wheel has no ring, and a newer
 * program has set it up for larger events than this library knows, or this library does not know
 * the kind of its clock, ring or table. With @table also -ENOENT: the wheel was set up without a
 * deadline table; -EXDEV: it was set up in a time namespace in which the wheel's clock shows
 * another time.
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
 * it with poll, epoll or io_uring. Do not read from it and do not close it. In the process back end
 * it can also become readable at the previous deadline of a timer that was postponed or removed.
 * timerwheel_take() then returns 0.
 *
 * Return: the descriptor.
 */
int timerwheel_fd(const struct timerwheel *wheel);

/**
 * timerwheel_share - get a descriptor to pass on by fork, SCM_RIGHTS, or to a service manager
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
 * does not keep elements from being processed. With the process back end, this and the following
 * functions crash the program instead of returning -EFAULT if an array cannot be accessed.
 *
 * Return: the number of elements processed, each with its own result. It is less than @count if an
 * error occurred. If an error occurred before the first element, the error: -EFAULT, -ENOMEM;
 * -EDQUOT, in the first call on a new wheel.
 */
long timerwheel_add(struct timerwheel *wheel, struct timerwheel_add *elems, size_t count);

/**
 * timerwheel_add_socket - arm timers that watch TCP connections
 * @wheel: the wheel
 * @elems: the elements; out: result, index and generation
 * @count: number of elements, without limit
 *
 * The kernel delivers an event when a connection has been idle for too long, and aborts the
 * connection if asked to, even if the program does not run: see struct timerwheel_add_socket. The
 * process back end does not support this.
 *
 * Return: as timerwheel_add(); also -EOPNOTSUPP: the process back end; -ENOTTY: the kernel module
 * does not know the call.
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
 * @elems: the elements: index and generation from ADD; out: result, which overwrites the generation
 * @count: number of elements, without limit
 * @flags: for all elements: 0 or TIMERWHEEL_ABS; with a deadline table also TIMERWHEEL_EXCL
 *
 * Like timerwheel_move(), but faster because the kernel does not look up a key. Use a handle only
 * for a timer that exists or has ended recently: see struct timerwheel_move_handle.
 *
 * Return: as timerwheel_add(); -EINVAL: other flags; -ENOTTY: the kernel module is too old
 * (TIMERWHEEL_FEATURE_HANDLE).
 */
long timerwheel_move_handles(struct timerwheel *wheel, struct timerwheel_move_handle *elems,
			     size_t count, uint32_t flags);

/**
 * timerwheel_remove_handles - remove timers by their handles
 * @wheel: the wheel
 * @elems: the elements: index and generation from ADD; out: value, and result, which overwrites the
 *	generation
 * @count: number of elements, without limit
 *
 * Return: as timerwheel_move_handles().
 */
long timerwheel_remove_handles(struct timerwheel *wheel, struct timerwheel_remove_handle *elems,
			       size_t count);

/**
 * timerwheel_list - read all timers, up to @count in each call
 * @wheel: the wheel
 * @elems: out: the timers
 * @count: maximum number of timers
 * @cursor: 0 in the first call, then the value that the previous call stored
 *
 * A timer that exists from the first call to the last is returned exactly once.
 *
 * Return: the number of timers, which may be less than @count before the end; 0: no more;
 * -EFAULT, -ENOMEM; -EINTR: a fatal signal.
 */
long timerwheel_list(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count,
		     uint64_t *cursor);

/**
 * timerwheel_drain - remove timers, pending and due, in any order
 * @wheel: the wheel
 * @elems: out: the timers
 * @count: maximum number of timers
 * @flags: 0, or TIMERWHEEL_DRAIN_CLOSE: accept no new timers from now on
 *
 * Return: the number of timers, which may be less than @count before the end; 0: none is left;
 * -EINVAL: other flags; -EFAULT, -ENOMEM; -EINTR: a fatal signal.
 */
long timerwheel_drain(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count,
		      uint32_t flags);

/**
 * timerwheel_advance - advance the time of a wheel with TIMERWHEEL_CLOCK_MANUAL
 * @wheel: the wheel
 * @time: number of ns to advance; with TIMERWHEEL_ABS the new time
 * @flags: 0 or TIMERWHEEL_ABS
 *
 * Return: the number of timers that fell due; -EINVAL: another clock, a time in the past, or other
 * flags; -EINTR: a fatal signal; -EDQUOT, -ENOMEM as timerwheel_add().
 */
long timerwheel_advance(struct timerwheel *wheel, uint64_t time, uint32_t flags);

/**
 * timerwheel_take - take events, from the event ring or by read()
 * @wheel: the wheel
 * @events: out: the events
 * @count: maximum number of events
 *
 * Never blocks. timerwheel_fd() becomes readable for the next event only after this function has
 * returned 0, so take events until it returns 0, then wait.
 *
 * Return: the number of events; 0: none for now; -EFAULT, -ENOMEM; with an event ring -EDQUOT.
 */
long timerwheel_take(struct timerwheel *wheel, struct timerwheel_event *events, size_t count);

/**
 * timerwheel_wait - sleep until there are events, and take them
 * @wheel: the wheel
 * @events: out: the events
 * @count: maximum number of events
 * @timeout: in ns, measured by CLOCK_MONOTONIC; 0: do not sleep; negative: no timeout
 *
 * Does not return 0 before the timeout has expired.
 *
 * Return: the number of events; 0: timeout; -EINTR: a signal arrived; otherwise as
 * timerwheel_take().
 */
long timerwheel_wait(struct timerwheel *wheel, struct timerwheel_event *events, size_t count,
		     int64_t timeout);

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
 * struct timerwheel_table - the deadline table, for timerwheel_table_arm(),
 * timerwheel_table_refresh() and timerwheel_table_cancel()
 * @entries: an entry for each timer, by index
 * @bits: number of low bits of an entry that hold generation and state
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
 * Return: 0; -ENOENT: the wheel was opened or adopted without a table.
 */
int timerwheel_table(const struct timerwheel *wheel, struct timerwheel_table *table);

/**
 * timerwheel_table_arm - arm a timer in memory
 * @table: the deadline table
 * @index: index of the timer, from ADD, GET or LIST
 * @generation: its generation, from the same call
 * @deadline: absolute, in ns; rounded up to a multiple of 2^@table->bits. More than
 *	TIMERWHEEL_TIME_MAX is treated as TIMERWHEEL_TIME_MAX.
 *
 * Makes no system call and takes no lock. Any thread may call it. If the timer is already armed, it
 * gets the new deadline, and no event is delivered for the previous deadline.
 *
 * Return: TIMERWHEEL_DONE; TIMERWHEEL_NEEDS_CALL: @deadline is earlier than the deadline of the
 * last arming, even if that arming was cancelled, or the timer has fired or is parked: use
 * timerwheel_move(), or timerwheel_queue_arm(), which queues a MOVE. If the timer is not resident,
 * use timerwheel_add() instead, because it may have ended; TIMERWHEEL_GONE.
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
 * timerwheel_table_refresh - postpone a timer in memory, if it is armed
 * @table: the deadline table
 * @index: index of the timer, from ADD, GET or LIST
 * @generation: its generation, from the same call
 * @deadline: as for timerwheel_table_arm()
 *
 * Makes no system call and takes no lock. Any thread may call it.
 *
 * A program that does not run for a while refreshes too late: the timer fires, and the program
 * reads the message that postpones the timer only afterwards. A server that acts on the event would
 * close a live connection. So when you get TIMERWHEEL_TOO_LATE, arm the timer again
 * (timerwheel_move() or, if it is not resident, timerwheel_add()), and remember its deadline. When
 * an event arrives, read the connection once more, and ignore the event if its deadline is earlier
 * than the deadline that you remember. libtimerwheel(3) has the loop.
 *
 * Return: TIMERWHEEL_DONE: no event is delivered for the previous deadline; TIMERWHEEL_TOO_LATE:
 * the timer has fired; TIMERWHEEL_NEEDS_CALL: @deadline is earlier than the timer's deadline;
 * TIMERWHEEL_NOT_ARMED; TIMERWHEEL_GONE.
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
 * timerwheel_table_cancel - cancel a timer in memory
 * @table: the deadline table
 * @index: index of the timer, from ADD, GET or LIST
 * @generation: its generation, from the same call
 *
 * Makes no system call and takes no lock. Any thread may call it. The timer continues to exist
 * until it is removed or drained, and can be armed again. Until its deadline has passed, arming it
 * for that deadline or a later one needs no system call.
 *
 * Return: TIMERWHEEL_DONE: no event is delivered; TIMERWHEEL_TOO_LATE: the timer has fired;
 * TIMERWHEEL_NOT_ARMED; TIMERWHEEL_GONE.
 */
static inline enum timerwheel_answer timerwheel_table_cancel(const struct timerwheel_table *table,
							     uint32_t index, uint32_t generation)
{
	return timerwheel_mapped_cancel(table->entries, index, generation, table->bits);
}

/**
 * timerwheel_table_prefetch - load the entry of a timer into the processor's cache
 * @table: the deadline table
 * @index: index of the timer, from ADD, GET or LIST
 *
 * With very many timers, most entries are in no cache. A program that knows which timers it will
 * arm, refresh or cancel next, for example after epoll_wait(), calls this for each of them first.
 * The program then does not wait for the memory once per timer. This changes nothing else.
 */
static inline void timerwheel_table_prefetch(const struct timerwheel_table *table, uint32_t index)
{
	__builtin_prefetch(&table->entries[index], 1);
}

/**
 * timerwheel_arm - timerwheel_table_arm() for languages that cannot use inline functions
 * @wheel: the wheel, with its deadline table
 * @index: index of the timer
 * @generation: its generation
 * @deadline: absolute, in ns
 *
 * Return: an enum timerwheel_answer, as timerwheel_table_arm(); -EINVAL: the wheel was opened or
 * adopted without a deadline table.
 */
int timerwheel_arm(const struct timerwheel *wheel, uint32_t index, uint32_t generation,
		   uint64_t deadline);

/**
 * timerwheel_refresh - timerwheel_table_refresh() for other languages
 * @wheel: the wheel, with its deadline table
 * @index: index of the timer
 * @generation: its generation
 * @deadline: absolute, in ns
 *
 * Return: an enum timerwheel_answer, as timerwheel_table_refresh(); -EINVAL as
 * timerwheel_arm().
 */
int timerwheel_refresh(const struct timerwheel *wheel, uint32_t index, uint32_t generation,
		       uint64_t deadline);

/**
 * timerwheel_cancel - timerwheel_table_cancel() for other languages
 * @wheel: the wheel, with its deadline table
 * @index: index of the timer
 * @generation: its generation
 *
 * Return: an enum timerwheel_answer, as timerwheel_table_cancel(); -EINVAL as
 * timerwheel_arm().
 */
int timerwheel_cancel(const struct timerwheel *wheel, uint32_t index, uint32_t generation);

/** struct timerwheel_queue - operations gathered during one iteration of an event loop */
struct timerwheel_queue;

/**
 * typedef timerwheel_queue_failed_fn - called for each queued operation that failed
 * @arg: @arg of timerwheel_queue_new()
 * @op: TIMERWHEEL_IOC_ADD, _MOVE or _REMOVE
 * @elem: the element, with its result
 *
 * The function must not use the queue.
 */
typedef void (*timerwheel_queue_failed_fn)(void *arg, unsigned long op, const void *elem);

/**
 * timerwheel_queue_new - create a queue
 * @queue: out: the queue
 * @wheel: the wheel; free the queue before you close the wheel
 * @room: maximum number of queued operations of each kind, at most TIMERWHEEL_BATCH_MAX; 0: 256. An
 *	operation for which there is no room flushes the queue first.
 * @failed: called for each operation that failed; may be NULL
 * @arg: argument of @failed
 *
 * Operations on the same key are performed in the order in which they were queued. Operations on
 * different keys are performed in any order, so a flush needs one system call for each kind.
 *
 * Return: 0; -EINVAL, -ENOMEM.
 */
int timerwheel_queue_new(struct timerwheel_queue **queue, struct timerwheel *wheel,
			 unsigned int room, timerwheel_queue_failed_fn failed, void *arg);

/**
 * timerwheel_queue_free - flush a queue and free it
 * @queue: the queue; NULL does nothing
 *
 * The flush continues after signals. If the flush fails with another error, the remaining
 * operations are discarded without a report. To see errors, call timerwheel_queue_flush() first.
 */
void timerwheel_queue_free(struct timerwheel_queue *queue);

/**
 * timerwheel_queue_add - arm a timer with the next flush
 * @queue: the queue
 * @elem: the element; it is copied
 *
 * A relative deadline counts from the flush.
 *
 * Return: 0; or an error of a flush that was needed first: then the operation was not queued.
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
 * timerwheel_queue_arm - arm a timer in memory, or else with the next flush
 * @queue: the queue, of a wheel with its deadline table
 * @key: key of the timer
 * @index: its index, from ADD, GET or LIST
 * @generation: its generation, from the same call
 * @deadline: absolute, in ns
 *
 * If timerwheel_table_arm() needs a call, or operations on the key are queued, a MOVE to @deadline
 * is queued. The MOVE withdraws an event that has not been delivered. An event that was delivered
 * before belongs to the previous arming: its deadline is earlier than @deadline. If the timer is
 * not resident and its event was delivered, the MOVE fails with ENOENT. A MOVE that fails is
 * reported like a failed timerwheel_queue_move().
 *
 * Return: TIMERWHEEL_DONE; TIMERWHEEL_NEEDS_CALL: queued; TIMERWHEEL_GONE; -EINVAL as
 * timerwheel_arm(); or an error of a flush that was needed first: then nothing was done.
 */
int timerwheel_queue_arm(struct timerwheel_queue *queue, uint64_t key, uint32_t index,
			 uint32_t generation, uint64_t deadline);

/**
 * timerwheel_queue_refresh - postpone a timer in memory, if it is armed
 * @queue: the queue, of a wheel with its deadline table
 * @key: key of the timer
 * @index: its index
 * @generation: its generation
 * @deadline: absolute, in ns
 *
 * If operations on the key are queued, the queue is flushed first. If @deadline is earlier than the
 * timer's deadline, a MOVE is queued. If the timer fires before the flush, or another thread
 * cancels it, the MOVE arms it again. If the timer is not resident and its event was delivered, the
 * MOVE fails with ENOENT.
 *
 * Return: an answer of timerwheel_table_refresh(), where TIMERWHEEL_NEEDS_CALL means that the MOVE
 * is queued; or an error as timerwheel_queue_arm().
 */
int timerwheel_queue_refresh(struct timerwheel_queue *queue, uint64_t key, uint32_t index,
			     uint32_t generation, uint64_t deadline);

/**
 * timerwheel_queue_cancel - cancel a timer in memory
 * @queue: the queue, of a wheel with its deadline table
 * @key: key of the timer
 * @index: its index
 * @generation: its generation
 *
 * If operations on the key are queued, the queue is flushed first, so that none of them arms the
 * timer later.
 *
 * Return: an answer of timerwheel_table_cancel(); or an error as timerwheel_queue_arm().
 */
int timerwheel_queue_cancel(struct timerwheel_queue *queue, uint64_t key, uint32_t index,
			    uint32_t generation);

/**
 * timerwheel_queue_flush - perform all queued operations
 * @queue: the queue
 *
 * In an event loop, call it before each timerwheel_take(). With an empty queue it makes no system
 * call.
 *
 * Return: 0: all operations were processed, and failed operations were reported; or an error of a
 * call: the remaining operations stay queued, in order. -EBUSY: results of
 * timerwheel_queue_commands() are missing.
 */
int timerwheel_queue_flush(struct timerwheel_queue *queue);

/** TIMERWHEEL_COMMANDS - maximum number of commands from timerwheel_queue_commands() */
#define TIMERWHEEL_COMMANDS	3

/**
 * struct timerwheel_command - a submission for the program's own io_uring
 * @fd: the submission's fd
 * @op: its cmd_op
 * @bytes: its cmd
 *
 * Set the submission's opcode to IORING_OP_URING_CMD, its user_data to any value, and all fields
 * that are not mentioned to 0.
 */
struct timerwheel_command {
	int fd;
	uint32_t op;
	uint8_t bytes[16];
};

/**
 * timerwheel_queue_commands - flush a queue as part of the program's own io_uring submissions
 * @queue: the queue
 * @commands: out: up to TIMERWHEEL_COMMANDS commands
 *
 * Submit the commands in this order, each except the last with IOSQE_IO_LINK, and pass each result
 * to timerwheel_queue_completed(). Until the last result has arrived, you can queue operations, but
 * a flush fails with -EBUSY, and so does an operation that needs a flush first. Do not free the
 * queue during that time.
 *
 * Return: number of commands, 0: nothing is queued; -EOPNOTSUPP: this wheel has no commands, call
 * timerwheel_queue_flush(); -EBUSY: results of the previous commands are missing; -ENOMEM; an error
 * of timerwheel_info().
 */
int timerwheel_queue_commands(struct timerwheel_queue *queue, struct timerwheel_command *commands);

/**
 * timerwheel_queue_completed - process the result of a command
 * @queue: the queue
 * @command: index of the command, 0 for the first; pass the commands in this order
 * @res: the completion's res
 *
 * Reports the operations that failed, as a flush does. If the command failed, this function makes
 * system calls for the operations that the command did not perform. For a command that could not be
 * submitted, pass any error.
 *
 * Return: 0; -EINVAL: there is no such command; or an error of a call: call this function again
 * with a @res of 0.
 */
int timerwheel_queue_completed(struct timerwheel_queue *queue, unsigned int command, int res);

/**
 * timerwheel_strerror - describe an error of this library, and what to do about it
 * @error: an errno, negative or positive
 *
 * Return: a constant string that does not end with a full stop; never NULL.
 */
const char *timerwheel_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif /* TIMERWHEEL_H */
