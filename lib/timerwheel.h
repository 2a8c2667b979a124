/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * libtimerwheel: /dev/timerwheel for daemons in C and C++.
 *
 * Functions return 0 or a count if all went well, else a negative errno (tw_strerror() says what
 * to do about it); none of them sets errno, prints, starts a thread or installs a signal handler.
 * Memory is allocated in tw_open(), tw_adopt(), tw_queue_new() and in the process back end, by
 * nobody else. Elements of batches, events and the meaning of their fields are those of
 * <linux/timerwheel.h>, which says what errors an element may have.
 *
 * Two back ends do the same:
 *
 *  TW_DEVICE   the kernel module. One wheel may be used by many threads and processes, and it
 *              survives its daemon as long as somebody keeps the descriptor.
 *  TW_PROCESS  a wheel inside this process behind one timerfd, so that a program starts where the
 *              module is not loaded. What it cannot do is -ENOTSUP: sharing (tw_share(),
 *              tw_adopt()), monitors (tw_monitor()). It must not be used after fork() in the child.
 *
 * Thread safety: all functions on a wheel may be called by several threads at once, but tw_take()
 * and tw_wait() on a wheel with an event ring, which are for one thread at a time, and tw_close(),
 * which is the last call. A queue belongs to one thread. Signal handlers may call tw_touch() and
 * nothing else.
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

/** struct tw_wheel - a wheel: what one tw_open() makes */
struct tw_wheel;

/** enum tw_backend - who does the work */
enum tw_backend {
	/**
	 * @TW_AUTO: what the environment variable TIMERWHEEL_BACKEND says ("device", "process"
	 * or "auto"); "auto" or not set: the device, or the process if the device is not there
	 * (-ENOENT, -ENXIO or -ENODEV; a device one may not open is an error, not a reason)
	 */
	TW_AUTO,
	/** @TW_DEVICE: /dev/timerwheel */
	TW_DEVICE,
	/** @TW_PROCESS: this process */
	TW_PROCESS
};

/**
 * struct tw_config - how a wheel is to be; all zero is a good wheel
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
 * @table: map the deadline table, for tw_table()
 * @clock_set: TIMERWHEEL_SETUP_CLOCK_SET. The process back end cannot.
 * @alarm: TIMERWHEEL_SETUP_ALARM. The process back end cannot.
 */
struct tw_config {
	enum tw_backend backend;
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
 * tw_open - make a wheel
 * @wheel: is set to it
 * @config: how it is to be; NULL: all zero
 *
 * Return: 0; -EINVAL: a value of @config or of TIMERWHEEL_BACKEND that is outside the limits;
 * -ENOTSUP: the process back end cannot do what is asked for, or nothing can wake this machine;
 * -EDQUOT: no room for it or its ring below the user's cap; -ENOMEM; -EMFILE, -ENFILE; -ENOENT,
 * -ENXIO, -ENODEV: no device (modprobe timerwheel); -ENOTTY: it is another device; -EACCES,
 * -EPERM: one may not open it, or not wake the machine.
 */
int tw_open(struct tw_wheel **wheel, const struct tw_config *config);

/**
 * tw_adopt - go on with a wheel that another process made
 * @wheel: is set to it
 * @fd: a descriptor of it, as from a service manager's store; tw_close() will close it. On error
 *	it stays open. Its flags (FD_CLOEXEC, O_NONBLOCK) stay as they are and do not matter here.
 * @table: map its deadline table
 *
 * If the wheel has an event ring, that is mapped too, and continues where its last
 * reader stopped.
 *
 * Return: 0; -ENOTTY, -EBADF: not a wheel; -EACCES: not open for reading, or, where something is to
 * be mapped, not for writing; -ENOMEM. Where nothing is mapped a descriptor that is open for
 * reading only will do to look and to take events; what changes the wheel is -EBADF then.
 * -EPROTO: it has no ring, and a newer program has asked for larger events than this library knows.
 */
int tw_adopt(struct tw_wheel **wheel, int fd, bool table);

/**
 * tw_close - end the use of a wheel
 * @wheel: it; NULL does nothing
 *
 * If no other process keeps a descriptor of it, its timers are gone.
 */
void tw_close(struct tw_wheel *wheel);

/**
 * tw_backend - who does the work
 * @wheel: the wheel
 *
 * Return: TW_DEVICE or TW_PROCESS.
 */
enum tw_backend tw_backend(const struct tw_wheel *wheel);

/**
 * tw_fd - the descriptor to wait for
 * @wheel: the wheel
 *
 * Readable (POLLIN) while events wait, once tw_take() has returned 0. Use it with poll, epoll,
 * io_uring; do not read from it and do not close it. In the process back end it may be readable
 * when a timer was put off or removed, at the time for which that was armed: tw_take()
 * returns 0 then.
 *
 * Return: the descriptor.
 */
int tw_fd(const struct tw_wheel *wheel);

/**
 * tw_share - a descriptor to hand to others: by fork, SCM_RIGHTS, or to a service manager
 * @wheel: the wheel
 *
 * Return: the descriptor, which is still the wheel's own; -ENOTSUP: process back end.
 */
int tw_share(const struct tw_wheel *wheel);

/**
 * tw_info - TIMERWHEEL_IOC_INFO: limits and settings
 * @wheel: the wheel
 * @info: is filled in
 *
 * Return: 0.
 */
int tw_info(struct tw_wheel *wheel, struct timerwheel_info *info);

/**
 * tw_stats - TIMERWHEEL_IOC_STATS: counters
 * @wheel: the wheel
 * @stats: is filled in. The process back end leaves at 0 what it has not: cascades,
 *	requeues, wakeups, firings, passes and what is told of them.
 *
 * Return: 0.
 */
int tw_stats(struct tw_wheel *wheel, struct timerwheel_stats *stats);

/**
 * tw_now - the wheel's time
 * @wheel: the wheel
 *
 * Return: ns on its clock.
 */
uint64_t tw_now(struct tw_wheel *wheel);

/**
 * tw_add - arm timers
 * @wheel: the wheel
 * @elems: array of what is asked for; result, index and generation are set
 * @count: how many; any number (the library makes as many calls as needed)
 *
 * An element that fails (result below 0) changes nothing and does not stop the others. The process
 * back end has no -EFAULT, here and below: an array that is not there ends the program.
 *
 * Return: how many elements were done, each with its own result: @count; less, if there was an
 * error then; that error, if none was done: -EFAULT, -EINTR, -ENOMEM. A signal that arrives after
 * some were done keeps none of the others from being done.
 */
long tw_add(struct tw_wheel *wheel, struct timerwheel_add *elems, size_t count);

/**
 * tw_move - give timers new deadlines
 * @wheel: the wheel
 * @elems: array of what is asked for; result is set
 * @count: how many; any number
 *
 * Return: as tw_add().
 */
long tw_move(struct tw_wheel *wheel, struct timerwheel_move *elems, size_t count);

/**
 * tw_remove - take timers out
 * @wheel: the wheel
 * @elems: array of what is asked for; result, value and left are set
 * @count: how many; any number
 *
 * Return: as tw_add().
 */
long tw_remove(struct tw_wheel *wheel, struct timerwheel_remove *elems, size_t count);

/**
 * tw_get - look at timers by key
 * @wheel: the wheel
 * @elems: array with their keys and with flags 0; all else is set
 * @count: how many; any number
 *
 * Return: as tw_add().
 */
long tw_get(struct tw_wheel *wheel, struct timerwheel_entry *elems, size_t count);

/**
 * tw_list - look at all timers, a page at a time
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
long tw_list(struct tw_wheel *wheel, struct timerwheel_entry *elems, size_t count,
	     uint64_t *cursor);

/**
 * tw_drain - take timers out, pending and due alike
 * @wheel: the wheel
 * @elems: array that is filled in
 * @count: how many at most
 * @flags: TIMERWHEEL_DRAIN_CLOSE: accept no new timers from now on
 *
 * Return: how many, less than @count also before the end; 0: there was none left; -EINVAL: other
 * flags; -EFAULT, -ENOMEM, and -EINTR for a signal that kills.
 */
long tw_drain(struct tw_wheel *wheel, struct timerwheel_entry *elems, size_t count,
	      uint32_t flags);

/**
 * tw_advance - move the time of a wheel with TIMERWHEEL_CLOCK_MANUAL
 * @wheel: the wheel
 * @time: by how many ns, or to when with TIMERWHEEL_ABS
 * @flags: 0 or TIMERWHEEL_ABS
 *
 * Return: how many timers fell due; -EINVAL: another clock, the past, or other flags; -EINTR: a
 * signal that kills.
 */
long tw_advance(struct tw_wheel *wheel, uint64_t time, uint32_t flags);

/**
 * tw_take - take events, from the ring or by read(): the same loop for both
 * @wheel: the wheel
 * @events: where to
 * @count: how many at most
 *
 * Never blocks. 0 means that tw_fd() is going to be readable when there is more: so take until
 * it returns 0 and only then wait.
 *
 * Return: how many; 0: none for now; -EFAULT, -ENOMEM.
 */
long tw_take(struct tw_wheel *wheel, struct timerwheel_event *events, size_t count);

/**
 * tw_wait - take events; sleep until there are some
 * @wheel: the wheel
 * @events: where to
 * @count: how many at most
 * @timeout: ms, 0: do not sleep, negative: for ever
 *
 * Return: how many; 0: the time is over; -EINTR: a signal; else as tw_take().
 */
long tw_wait(struct tw_wheel *wheel, struct timerwheel_event *events, size_t count, int timeout);

/**
 * tw_monitor - a descriptor that sees a copy of each event, for read() and poll()
 * @wheel: the wheel
 * @events: how many may wait, 0: 1024
 * @flags: TIMERWHEEL_MONITOR_*
 *
 * Return: the descriptor, the caller's to close; -ENOTSUP: process back end; -EINVAL, -ENOMEM,
 * -EDQUOT, -ENOSPC, -EMFILE, -ENFILE as in <linux/timerwheel.h>.
 */
int tw_monitor(struct tw_wheel *wheel, uint32_t events, uint32_t flags);

/**
 * struct tw_table - the deadline table, for tw_touch()
 * @words: a word for each timer, by index
 * @bits: how many bits of a word are a generation
 */
struct tw_table {
	__u64 *words;
	unsigned int bits;
};

/**
 * tw_table - the deadline table of a wheel
 * @wheel: the wheel, opened with one
 * @table: is set; valid until tw_close()
 *
 * Return: 0; -ENOENT: it was opened without.
 */
int tw_table(const struct tw_wheel *wheel, struct tw_table *table);

/**
 * tw_touch - put a timer off in memory: no system call, no lock, from any thread
 * @table: the deadline table
 * @index: of the timer, as ADD, GET or LIST told it
 * @generation: as they told it
 * @deadline: when, absolute, in ns; rounded up to 2^@table->bits ns. Beyond TIMERWHEEL_TIME_MAX
 *	is taken as that.
 *
 * Only ever later: an earlier deadline has no effect (use tw_move()). One that comes when the
 * timer is due already has none either: the event is delivered.
 *
 * Return: true; false: the timer is gone, and its index belongs to another one by now: nothing was
 * done to that.
 */
static inline bool tw_touch(const struct tw_table *table, uint32_t index, uint32_t generation,
			    uint64_t deadline)
{
	/* What is rounded up must not come round to 0. */
	if (deadline > TIMERWHEEL_TIME_MAX)
		deadline = TIMERWHEEL_TIME_MAX;
	return timerwheel_touch(table->words, index,
				timerwheel_word(deadline, generation, table->bits), table->bits);
}

/** struct tw_queue - operations gathered during a turn of an event loop */
struct tw_queue;

/**
 * typedef tw_failed - is told of each queued operation that failed
 * @arg: as given to tw_queue_new()
 * @op: TIMERWHEEL_IOC_ADD, _MOVE or _REMOVE
 * @elem: the element, its result set
 *
 * Must not use the queue.
 */
typedef void (*tw_failed)(void *arg, unsigned long op, const void *elem);

/**
 * tw_queue_new - make a queue
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
int tw_queue_new(struct tw_queue **queue, struct tw_wheel *wheel, unsigned int room,
		 tw_failed failed, void *arg);

/**
 * tw_queue_free - flush a queue and free it
 * @queue: it; NULL does nothing
 *
 * A flush that a signal interrupts is repeated. What fails with another error is dropped without
 * a word: who wants to know calls tw_queue_flush() before.
 */
void tw_queue_free(struct tw_queue *queue);

/**
 * tw_queue_add - arm a timer with the next flush
 * @queue: the queue
 * @elem: what is asked for; is copied
 *
 * A deadline that is not absolute counts from the flush.
 *
 * Return: 0, or an error of the flush that was needed to make room; then it is not queued.
 */
int tw_queue_add(struct tw_queue *queue, const struct timerwheel_add *elem);

/**
 * tw_queue_move - give a timer a new deadline with the next flush
 * @queue: the queue
 * @elem: what is asked for; is copied
 *
 * Return: as tw_queue_add().
 */
int tw_queue_move(struct tw_queue *queue, const struct timerwheel_move *elem);

/**
 * tw_queue_remove - take a timer out with the next flush
 * @queue: the queue
 * @elem: what is asked for; is copied
 *
 * Return: as tw_queue_add().
 */
int tw_queue_remove(struct tw_queue *queue, const struct timerwheel_remove *elem);

/**
 * tw_queue_flush - do what is queued
 * @queue: the queue
 *
 * Call it once in each turn, before waiting. With nothing queued it makes no system call.
 *
 * Return: 0: all were done, failures of single ones were told; an error of the call: the rest
 * stays queued, in order.
 */
int tw_queue_flush(struct tw_queue *queue);

/**
 * tw_strerror - what an error of this library means, and what to do about it
 * @error: an errno, negative or positive
 *
 * Return: a sentence without a full stop; never NULL; not to be freed.
 */
const char *tw_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif /* TIMERWHEEL_H */
