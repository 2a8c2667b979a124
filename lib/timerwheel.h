/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * libtimerwheel: /dev/timerwheel for daemons in C and C++.
 *
 * Functions return 0 or a count if all went well, else a negative errno (timerwheel_strerror() says
 * what to do about it); none of them sets errno, prints, starts a thread or installs a signal
 * handler. Memory is allocated in timerwheel_open(), timerwheel_adopt(), timerwheel_queue_new() and
 * in the process back end, by nobody else. Elements of batches, events and the meaning of their
 * fields are those of <linux/timerwheel.h>, which says what errors an element may have.
 *
 * Two back ends do the same:
 *
 *  TIMERWHEEL_BACKEND_DEVICE   the kernel module. One wheel may be used by many threads and
 *              processes, and it survives its daemon as long as somebody keeps the descriptor.
 *  TIMERWHEEL_BACKEND_PROCESS  a wheel inside this process behind one timerfd, so that a program
 *              starts where the module is not loaded. What it cannot do is -ENOTSUP: sharing
 *              (timerwheel_share()), monitors (timerwheel_monitor()). It must not be used after
 *              fork() in the child.
 *
 * A function may have the name of the structure that it takes or fills in, as stat() has:
 * timerwheel_info() and struct timerwheel_info. In C++ such a type cannot be written without its
 * "struct".
 *
 * Thread safety: all functions on a wheel may be called by several threads at once, but
 * timerwheel_take() and timerwheel_wait() on a wheel with an event ring, which are for one thread
 * at a time, and timerwheel_close(), which is the last call. A queue belongs to one thread. Signal
 * handlers may call timerwheel_table_touch() and nothing else.
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

/** struct timerwheel - a wheel: what one timerwheel_open() makes */
struct timerwheel;

/** enum timerwheel_backend - who does the work */
enum timerwheel_backend {
	/**
	 * @TIMERWHEEL_BACKEND_AUTO: what the environment variable TIMERWHEEL_BACKEND says
	 * ("device", "process" or "auto"); "auto" or not set: the device, or the process if the
	 * device is not there (-ENOENT, -ENXIO or -ENODEV; a device one may not open is an error,
	 * not a reason)
	 */
	TIMERWHEEL_BACKEND_AUTO,
	/** @TIMERWHEEL_BACKEND_DEVICE: /dev/timerwheel */
	TIMERWHEEL_BACKEND_DEVICE,
	/** @TIMERWHEEL_BACKEND_PROCESS: this process */
	TIMERWHEEL_BACKEND_PROCESS
};

/**
 * struct timerwheel_config - how a wheel is to be; all zero is a good wheel
 * @backend: who does the work
 * @device: path of the device; NULL: what TIMERWHEEL_DEVICE says, else "/dev/timerwheel"
 * @clock: enum timerwheel_clock
 * @capacity: most timers; 0: 4,194,304
 * @tick: ns; 0: 1 ms. The process back end takes it as 1 ns but for slack, which is
 *	rounded down to ticks.
 * @slots: slots per level; 0: 256. The process back end has none.
 * @wake_events: wake readers when so many events wait; 0: 1. The process back end wakes at once.
 * @wake_ns: or so many ns after the first
 * @slack: ns, for timers that bring none
 * @ring: length of an event ring, 0: none. The process back end has none: nothing differs.
 * @table: map the deadline table, for timerwheel_table()
 * @clock_set: TIMERWHEEL_SETUP_CLOCK_SET. The process back end cannot.
 * @alarm: TIMERWHEEL_SETUP_ALARM. The process back end cannot.
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
};

/**
 * timerwheel_open - make a wheel
 * @wheel: is set to it
 * @config: how it is to be; NULL: all zero
 *
 * Return: 0; -EINVAL: a value of @config or of TIMERWHEEL_BACKEND that is outside the limits;
 * -ENOTSUP: the process back end cannot do what is asked for, or nothing can wake this machine;
 * -EDQUOT: no room for it or its ring below the user's cap; -ENOMEM; -EMFILE, -ENFILE; -ENOENT,
 * -ENXIO, -ENODEV: no device (modprobe timerwheel); -ENOTTY: it is another device; -EACCES,
 * -EPERM: one may not open it, or not wake the machine.
 */
int timerwheel_open(struct timerwheel **wheel, const struct timerwheel_config *config);

/**
 * timerwheel_adopt - go on with a wheel that another process made
 * @wheel: is set to it
 * @fd: a descriptor of it, as from a service manager's store; timerwheel_close() will close it. On
 *	error it stays open. Its flags (FD_CLOEXEC, O_NONBLOCK) stay as they are and do not matter
 *	here.
 * @table: map its deadline table
 *
 * If the wheel has an event ring, that is mapped too, and continues where its last
 * reader stopped.
 *
 * Return: 0; -ENOTTY, -EBADF: not a wheel; -EACCES: not open for reading, or, where something is to
 * be mapped, not for writing; -ENOMEM. Where nothing is mapped a descriptor that is open for
 * reading only will do to look and to take events; what changes the wheel is -EBADF then.
 * -EPROTO: it has no ring, and a newer program has asked for larger events than this library knows.
 * With @table also -EDQUOT, and -EXDEV: the table was mapped before in another time namespace.
 */
int timerwheel_adopt(struct timerwheel **wheel, int fd, bool table);

/**
 * timerwheel_close - end the use of a wheel
 * @wheel: it; NULL does nothing
 *
 * If no other process keeps a descriptor of it, its timers are gone.
 */
void timerwheel_close(struct timerwheel *wheel);

/**
 * timerwheel_backend - who does the work
 * @wheel: the wheel
 *
 * Return: TIMERWHEEL_BACKEND_DEVICE or TIMERWHEEL_BACKEND_PROCESS.
 */
enum timerwheel_backend timerwheel_backend(const struct timerwheel *wheel);

/**
 * timerwheel_fd - the descriptor to wait for
 * @wheel: the wheel
 *
 * Readable (POLLIN) while events wait, once timerwheel_take() has returned 0. Use it with poll,
 * epoll, io_uring; do not read from it and do not close it. In the process back end it may be
 * readable when a timer was put off or removed, at the time for which that was armed:
 * timerwheel_take() returns 0 then.
 *
 * Return: the descriptor.
 */
int timerwheel_fd(const struct timerwheel *wheel);

/**
 * timerwheel_share - a descriptor to hand to others: by fork, SCM_RIGHTS, or to a service manager
 * @wheel: the wheel
 *
 * Return: the descriptor, which is still the wheel's own; -ENOTSUP: process back end.
 */
int timerwheel_share(const struct timerwheel *wheel);

/**
 * timerwheel_info - TIMERWHEEL_IOC_INFO: limits and settings
 * @wheel: the wheel
 * @info: is filled in
 *
 * Return: 0.
 */
int timerwheel_info(struct timerwheel *wheel, struct timerwheel_info *info);

/**
 * timerwheel_stats - TIMERWHEEL_IOC_STATS: counters
 * @wheel: the wheel
 * @stats: is filled in. The process back end leaves at 0 what it has not: cascades,
 *	requeues, wakeups, firings, passes and what is told of them.
 *
 * Return: 0.
 */
int timerwheel_stats(struct timerwheel *wheel, struct timerwheel_stats *stats);

/**
 * timerwheel_now - the wheel's time
 * @wheel: the wheel
 *
 * Return: ns on its clock.
 */
uint64_t timerwheel_now(struct timerwheel *wheel);

/**
 * timerwheel_add - arm timers
 * @wheel: the wheel
 * @elems: array of what is asked for; result, index and generation are set
 * @count: how many; any number (the library makes as many calls as needed)
 *
 * An element that fails (result below 0) changes nothing and does not stop the others. The process
 * back end has no -EFAULT, here and below: an array that is not there ends the program.
 *
 * Return: how many elements were done, each with its own result: @count; less, if there was an
 * error then; that error, if none was done: -EFAULT, -EINTR, -ENOMEM; -EDQUOT, on the first call of
 * a new wheel; -EBADF, of a wheel that was adopted for reading only. A signal that arrives after
 * some were done keeps none of the others from being done.
 */
long timerwheel_add(struct timerwheel *wheel, struct timerwheel_add *elems, size_t count);

/**
 * timerwheel_move - give timers new deadlines
 * @wheel: the wheel
 * @elems: array of what is asked for; result is set
 * @count: how many; any number
 *
 * Return: as timerwheel_add().
 */
long timerwheel_move(struct timerwheel *wheel, struct timerwheel_move *elems, size_t count);

/**
 * timerwheel_remove - take timers out
 * @wheel: the wheel
 * @elems: array of what is asked for; result, value and left are set
 * @count: how many; any number
 *
 * Return: as timerwheel_add().
 */
long timerwheel_remove(struct timerwheel *wheel, struct timerwheel_remove *elems, size_t count);

/**
 * timerwheel_get - look at timers by key
 * @wheel: the wheel
 * @elems: array with their keys and with flags 0; all else is set
 * @count: how many; any number
 *
 * Return: as timerwheel_add().
 */
long timerwheel_get(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count);

/**
 * timerwheel_list - look at all timers, a page at a time
 * @wheel: the wheel
 * @elems: array that is filled in
 * @count: how many at most
 * @cursor: 0 at first, then as the last call left it
 *
 * A timer that exists from the first call to the last is seen exactly once.
 *
 * Return: how many, less than @count also before the end; 0: that was all; -EFAULT, -ENOMEM, and
 * -EINTR for a signal that kills.
 */
long timerwheel_list(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count,
		     uint64_t *cursor);

/**
 * timerwheel_drain - take timers out, pending and due alike
 * @wheel: the wheel
 * @elems: array that is filled in
 * @count: how many at most
 * @flags: TIMERWHEEL_DRAIN_CLOSE: accept no new timers from now on
 *
 * Return: how many, less than @count also before the end; 0: there was none left; -EINVAL: other
 * flags; -EBADF, -EFAULT, -ENOMEM, and -EINTR for a signal that kills.
 */
long timerwheel_drain(struct timerwheel *wheel, struct timerwheel_entry *elems, size_t count,
		      uint32_t flags);

/**
 * timerwheel_advance - move the time of a wheel with TIMERWHEEL_CLOCK_MANUAL
 * @wheel: the wheel
 * @time: by how many ns, or to when with TIMERWHEEL_ABS
 * @flags: 0 or TIMERWHEEL_ABS
 *
 * Return: how many timers fell due; -EINVAL: another clock, the past, or other flags; -EINTR: a
 * signal that kills; -EBADF, -EDQUOT, -ENOMEM as timerwheel_add().
 */
long timerwheel_advance(struct timerwheel *wheel, uint64_t time, uint32_t flags);

/**
 * timerwheel_take - take events, from the ring or by read(): the same loop for both
 * @wheel: the wheel
 * @events: where to
 * @count: how many at most
 *
 * Never blocks. 0 means that timerwheel_fd() is going to be readable when there is more: so take
 * until it returns 0 and only then wait.
 *
 * Return: how many; 0: none for now; -EFAULT, -ENOMEM.
 */
long timerwheel_take(struct timerwheel *wheel, struct timerwheel_event *events, size_t count);

/**
 * timerwheel_wait - take events; sleep until there are some
 * @wheel: the wheel
 * @events: where to
 * @count: how many at most
 * @timeout: ms, 0: do not sleep, negative: for ever
 *
 * Return: how many; 0: the time is over; -EINTR: a signal; else as timerwheel_take().
 */
long timerwheel_wait(struct timerwheel *wheel, struct timerwheel_event *events, size_t count,
		     int timeout);

/**
 * timerwheel_monitor - a descriptor that sees a copy of each event, for read() and poll()
 * @wheel: the wheel
 * @events: how many may wait, 0: 1024
 * @flags: TIMERWHEEL_MONITOR_*
 *
 * Return: the descriptor, the caller's to close; -ENOTSUP: process back end; -EINVAL, -ENOMEM,
 * -EDQUOT, -ENOSPC, -EMFILE, -ENFILE as in <linux/timerwheel.h>.
 */
int timerwheel_monitor(struct timerwheel *wheel, uint32_t events, uint32_t flags);

/**
 * struct timerwheel_table - the deadline table, for timerwheel_table_touch()
 * @entries: one for each timer, by index
 * @bits: how many bits of an entry are a generation
 */
struct timerwheel_table {
	__u64 *entries;
	unsigned int bits;
};

/**
 * timerwheel_table - the deadline table of a wheel
 * @wheel: the wheel, opened with one
 * @table: is set; valid until timerwheel_close()
 *
 * Return: 0; -ENOENT: it was opened without.
 */
int timerwheel_table(const struct timerwheel *wheel, struct timerwheel_table *table);

/**
 * timerwheel_table_touch - put a timer off in memory: no system call, no lock, from any thread
 * @table: the deadline table
 * @index: of the timer, as ADD, GET or LIST told it
 * @generation: as they told it
 * @deadline: when, absolute, in ns; rounded up to 2^@table->bits ns. Beyond TIMERWHEEL_TIME_MAX
 *	is taken as that.
 *
 * Only ever later: an earlier deadline has no effect (use timerwheel_move()). One that comes when
 * the timer is due already has none either: the event is delivered. So keep the deadline, for
 * timerwheel_table_rearm() at the event.
 *
 * Return: true; false: the timer is gone, and its index belongs to another one by now: nothing was
 * done to that.
 */
static inline bool timerwheel_table_touch(const struct timerwheel_table *table, uint32_t index,
					  uint32_t generation, uint64_t deadline)
{
	/* What is rounded up must not come round to 0. */
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
 * @deadline: the last one that was given to timerwheel_table_touch(), or that of timerwheel_add():
 *	absolute, in ns
 * @index: of the timer; is set if it is armed again
 * @generation: of the timer; is set if it is armed again
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

/** struct timerwheel_queue - operations gathered during a turn of an event loop */
struct timerwheel_queue;

/**
 * typedef timerwheel_queue_failed_fn - is told of each queued operation that failed
 * @arg: as given to timerwheel_queue_new()
 * @op: TIMERWHEEL_IOC_ADD, _MOVE or _REMOVE
 * @elem: the element, its result set
 *
 * Must not use the queue.
 */
typedef void (*timerwheel_queue_failed_fn)(void *arg, unsigned long op, const void *elem);

/**
 * timerwheel_queue_new - make a queue
 * @queue: is set to it
 * @wheel: whose operations; to be closed after the queue is freed
 * @room: operations of each kind that it holds; more, and it flushes itself. 1 to
 *	TIMERWHEEL_BATCH_MAX; 0: 256.
 * @failed: is told of failures, NULL: nobody is
 * @arg: for @failed
 *
 * Operations on one key are done in the order in which they were queued; those on different keys
 * in any order, gathered by kind: a flush is at most three system calls.
 *
 * Return: 0; -EINVAL, -ENOMEM.
 */
int timerwheel_queue_new(struct timerwheel_queue **queue, struct timerwheel *wheel,
			 unsigned int room, timerwheel_queue_failed_fn failed, void *arg);

/**
 * timerwheel_queue_free - flush a queue and free it
 * @queue: it; NULL does nothing
 *
 * A flush that a signal interrupts is repeated. What fails with another error is dropped without
 * a word: who wants to know calls timerwheel_queue_flush() before.
 */
void timerwheel_queue_free(struct timerwheel_queue *queue);

/**
 * timerwheel_queue_add - arm a timer with the next flush
 * @queue: the queue
 * @elem: what is asked for; is copied
 *
 * A deadline that is not absolute counts from the flush.
 *
 * Return: 0, or an error of the flush that was needed to make room; then it is not queued.
 */
int timerwheel_queue_add(struct timerwheel_queue *queue, const struct timerwheel_add *elem);

/**
 * timerwheel_queue_move - give a timer a new deadline with the next flush
 * @queue: the queue
 * @elem: what is asked for; is copied
 *
 * Return: as timerwheel_queue_add().
 */
int timerwheel_queue_move(struct timerwheel_queue *queue, const struct timerwheel_move *elem);

/**
 * timerwheel_queue_remove - take a timer out with the next flush
 * @queue: the queue
 * @elem: what is asked for; is copied
 *
 * Return: as timerwheel_queue_add().
 */
int timerwheel_queue_remove(struct timerwheel_queue *queue, const struct timerwheel_remove *elem);

/**
 * timerwheel_queue_flush - do what is queued
 * @queue: the queue
 *
 * Call it once in each turn, before waiting. With nothing queued it makes no system call.
 *
 * Return: 0: all were done, failures of single ones were told; an error of the call: the rest
 * stays queued, in order.
 */
int timerwheel_queue_flush(struct timerwheel_queue *queue);

/**
 * timerwheel_strerror - what an error of this library means, and what to do about it
 * @error: an errno, negative or positive
 *
 * Return: a sentence without a full stop; never NULL; not to be freed.
 */
const char *timerwheel_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif /* TIMERWHEEL_H */
