/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * timerwheel: one file descriptor for millions of timeouts.
 *
 * Each open of /dev/timerwheel creates a new, private wheel. A wheel holds timers; each timer is
 * identified by a 64-bit key that the caller chooses. A timer is PENDING until its deadline. It is
 * then DUE until its event has been delivered to a reader.
 *
 * Errors
 * ------
 * A call returns -1 and sets errno only if it did nothing. Each error has one meaning:
 *
 *  EINVAL     a field, flag or size that the kernel does not know; a reserved field that is not
 *             zero; a value outside the limits reported by INFO; a read buffer smaller than one
 *             event; ADVANCE on a wheel whose clock is not MANUAL, or to a time in the past; open
 *             without O_RDWR
 *  E2BIG      a structure, or the first element of an array, that is larger than the kernel's and
 *             has a nonzero byte in the part that the kernel does not know, or that is larger than
 *             a page; more than TIMERWHEEL_BATCH_MAX elements
 *  EFAULT     memory that cannot be read or written. If the memory becomes inaccessible while the
 *             call runs, the elements that were processed stay processed and the call succeeds,
 *             but their results are lost
 *  EBUSY      SETUP: a timer was armed, or SETUP was done before
 *  EAGAIN     read: nothing is due and the descriptor is non-blocking
 *  EINTR      a signal arrived while a read waited; or a fatal signal arrived while LIST or DRAIN
 *             searched for the first timer or ADVANCE ran. ADD, MOVE, REMOVE and GET process at
 *             least one element, whatever signals arrive
 *  ENOMEM     the kernel, or the caller's memory cgroup, is out of memory
 *  EDQUOT     the user has reached the limit on memory for all wheels: open, SETUP, MONITOR, and
 *             the first call on timers of a new wheel
 *  ENOSPC     MONITOR: the wheel has TIMERWHEEL_MONITORS_MAX monitors
 *  EMFILE, ENFILE  MONITOR: no descriptor is left for the process, or for the system
 *  EPERM      SETUP with TIMERWHEEL_SETUP_ALARM: the caller lacks CAP_WAKE_ALARM
 *  EOPNOTSUPP SETUP with TIMERWHEEL_SETUP_ALARM: no clock of this machine can wake it; with
 *             TIMERWHEEL_SETUP_TABLE: the machine's atomic operations do not allow a deadline
 *             table; io_uring: no such command
 *  ENOTTY     unknown ioctl number
 *
 * A call on an array returns the number of elements processed, counted from the first. It stops
 * early if an element cannot be read or written or has a nonzero byte in a part that the kernel
 * does not know, if a signal arrives, or if the thread has other work to do (io_uring, for
 * example). Call again with the remaining elements; if the reason persists, that call fails with
 * the error. GET, LIST, DRAIN and read may have written to memory after the last element that
 * they report. Each processed element has its own result. An element that failed changed nothing
 * and does not affect the other elements:
 *
 *  >= 0       success: TIMERWHEEL_WAS_NONE, _WAS_PENDING, _WAS_DUE or, in a wheel with a
 *             deadline table, _WAS_PARKED is the state of the key before the operation
 *  -EINVAL    an unknown flag, flags that exclude each other, a reserved field that is not zero,
 *             a period greater than TIMERWHEEL_TIME_MAX, a period in a wheel with a deadline
 *             table without TIMERWHEEL_LINGER
 *  -ENOENT    no timer has this key or handle
 *  -EEXIST    TIMERWHEEL_EXCL was given, and a timer has this key; MOVE: the timer is armed or
 *             due
 *  -ESTALE    TIMERWHEEL_MATCH was given, and the timer has a different value
 *  -ENOSPC    the wheel is full
 *  -EDQUOT    the user who opened the wheel has reached the limit on memory for all wheels
 *  -EMLINK    the hash chain of this key already holds 32 timers. So many keys collide only if
 *             they were chosen to collide
 *  -ENOMEM    no memory for another timer. After the first such result a call does not try to
 *             allocate again
 *  -ESHUTDOWN the wheel accepts no new timers (TIMERWHEEL_DRAIN_CLOSE)
 *  -EBADF, -ENOTSOCK, -EOPNOTSUPP, -ENOTCONN  ADD_SOCKET: @fd is not an open descriptor, not a
 *             socket, not a TCP connection, or a TCP socket that is not connected
 *
 * Times
 * -----
 * All times are in nanoseconds. Absolute times are values of the wheel's clock in the time
 * namespace of the calling process. Relative times are signed: the caller may store "then - now",
 * which is negative if that time has passed. An absolute time, or the sum of now and a relative
 * one, that is greater than TIMERWHEEL_TIME_MAX (292 years) is treated as TIMERWHEEL_TIME_MAX.
 *
 * io_uring
 * --------
 * ADD, MOVE, REMOVE, GET, MOVE_HANDLE and REMOVE_HANDLE are also commands for io_uring: see struct
 * timerwheel_uring. The result of a command (cqe.res) is what the call returns, or -errno. Only a
 * fatal signal stops a command early.
 *
 * Extending this interface
 * ------------------------
 * Each structure begins with its own size. A newer kernel accepts the older, smaller structure. An
 * older kernel accepts a newer, larger structure if the part that it does not know is zero. The
 * elements of arrays do not grow: elem_size must be the size in this file. All layouts are the same
 * for 32-bit and 64-bit programs. Reserved fields must be zero.
 */
#ifndef _UAPI_LINUX_TIMERWHEEL_H
#define _UAPI_LINUX_TIMERWHEEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/** TIMERWHEEL_ABI_VERSION - incremented with each addition to this file */
#define TIMERWHEEL_ABI_VERSION	1

/** TIMERWHEEL_BATCH_MAX - maximum number of elements in one call */
#define TIMERWHEEL_BATCH_MAX	65536

/** TIMERWHEEL_TIME_MAX - the largest time, in ns; "never" for practical purposes */
#define TIMERWHEEL_TIME_MAX	0x7fffffffffffffffULL

/**
 * enum timerwheel_clock - the clock of a wheel
 * @TIMERWHEEL_CLOCK_MONOTONIC: CLOCK_MONOTONIC (the default). Stops during suspend.
 * @TIMERWHEEL_CLOCK_BOOTTIME: CLOCK_BOOTTIME. Continues during suspend; timers that expired during
 *	suspend are delivered at resume. Wakes the machine only with TIMERWHEEL_SETUP_ALARM.
 * @TIMERWHEEL_CLOCK_REALTIME: CLOCK_REALTIME. Deadlines are absolute, so setting the clock makes
 *	timers fire sooner or later. A relative time becomes absolute when the timer is armed.
 * @TIMERWHEEL_CLOCK_MANUAL: starts at 0 and advances only by TIMERWHEEL_IOC_ADVANCE
 */
enum timerwheel_clock {
	TIMERWHEEL_CLOCK_MONOTONIC	= 0,
	TIMERWHEEL_CLOCK_BOOTTIME	= 1,
	TIMERWHEEL_CLOCK_REALTIME	= 2,
	TIMERWHEEL_CLOCK_MANUAL		= 3
};

/**
 * struct timerwheel_info - TIMERWHEEL_IOC_INFO: limits of the kernel, settings of this wheel
 * @size: in: the caller's sizeof(struct timerwheel_info); out: the kernel's. The kernel fills in
 *	the part that both know and zeroes the rest.
 * @flags: in: 0; out: TIMERWHEEL_INFO_* bits
 * @abi_version: TIMERWHEEL_ABI_VERSION of the kernel
 * @batch_max: maximum number of elements in one call
 * @features: TIMERWHEEL_FEATURE_* bits
 * @errata: bits for faults that were fixed without a new version (none yet)
 * @tick_min: shortest tick that SETUP accepts, in ns; with the MANUAL clock it accepts 1 ns
 * @tick_max: longest tick, in ns
 * @slots_min: minimum number of slots per level
 * @slots_max: maximum number of slots per level
 * @capacity_max: maximum capacity of a wheel, in timers
 * @clock: clock of this wheel (enum timerwheel_clock)
 * @tick: tick (granularity) of this wheel, in ns
 * @slots: slots per level of this wheel
 * @capacity: maximum number of timers in this wheel
 * @slack: default slack of this wheel, in ns
 * @wake_ns: a reader is woken at most this many ns after the first event...
 * @wake_events: ...or when this many events wait
 * @generation_bits: number of low bits of a deadline table entry that hold generation and state
 * @user_memory: bytes of kernel memory charged to the user who opened this wheel, for all wheels
 *	and monitors. Memory is charged when it is first needed and uncharged after close.
 * @user_memory_max: the limit on @user_memory
 * @now: current time of the wheel's clock in the caller's time namespace, in ns
 * @ring: length of this wheel's event ring, in events; 0: the wheel has no ring
 * @ring_max: maximum length of an event ring
 * @event_size: size in bytes of this wheel's events, from read, in the ring and from monitors
 * @event_size_max: size in bytes of the largest event that this kernel knows
 */
struct timerwheel_info {
	__u32 size;
	__u32 flags;
	__u32 abi_version;
	__u32 batch_max;
	__aligned_u64 features;
	__aligned_u64 errata;
	__aligned_u64 tick_min;
	__aligned_u64 tick_max;
	__u32 slots_min;
	__u32 slots_max;
	__u32 capacity_max;
	__u32 clock;
	__aligned_u64 tick;
	__u32 slots;
	__u32 capacity;
	__aligned_u64 slack;
	__aligned_u64 wake_ns;
	__u32 wake_events;
	__u32 generation_bits;
	__aligned_u64 user_memory;
	__aligned_u64 user_memory_max;
	__aligned_u64 now;
	__u32 ring;
	__u32 ring_max;
	__u32 event_size;
	__u32 event_size_max;
};

/** TIMERWHEEL_INFO_SETTLED - SETUP would fail with EBUSY: it was done, or a timer was armed */
#define TIMERWHEEL_INFO_SETTLED	(1U << 0)
/** TIMERWHEEL_INFO_CLOSED - the wheel accepts no new timers (TIMERWHEEL_DRAIN_CLOSE) */
#define TIMERWHEEL_INFO_CLOSED	(1U << 1)
/** TIMERWHEEL_INFO_CLOCK_SET - the wheel was set up with TIMERWHEEL_SETUP_CLOCK_SET */
#define TIMERWHEEL_INFO_CLOCK_SET	(1U << 2)
/** TIMERWHEEL_INFO_ALARM - the wheel was set up with TIMERWHEEL_SETUP_ALARM */
#define TIMERWHEEL_INFO_ALARM		(1U << 3)
/** TIMERWHEEL_INFO_RESIDENT - the wheel was set up with TIMERWHEEL_SETUP_RESIDENT */
#define TIMERWHEEL_INFO_RESIDENT	(1U << 4)
/**
 * TIMERWHEEL_INFO_TABLE - the wheel has a deadline table (TIMERWHEEL_SETUP_TABLE or
 * TIMERWHEEL_SETUP_RESIDENT)
 */
#define TIMERWHEEL_INFO_TABLE		(1U << 5)

/** TIMERWHEEL_FEATURE_TABLE - this machine can have deadline tables (TIMERWHEEL_SETUP_TABLE) */
#define TIMERWHEEL_FEATURE_TABLE	(1ULL << 0)
/** TIMERWHEEL_FEATURE_HANDLE - this kernel has MOVE_HANDLE and REMOVE_HANDLE */
#define TIMERWHEEL_FEATURE_HANDLE	(1ULL << 1)
/**
 * TIMERWHEEL_FEATURE_SOCKET - this kernel has ADD_SOCKET (it was built with INET_DIAG_DESTROY and,
 * since 6.5, BPF_SYSCALL)
 */
#define TIMERWHEEL_FEATURE_SOCKET	(1ULL << 2)
/**
 * TIMERWHEEL_FEATURE_URING - this kernel has the commands for io_uring (struct timerwheel_uring).
 * Before Linux 6.1 there are none (a submission fails with EINVAL or EOPNOTSUPP). The system may
 * still forbid a process to use io_uring.
 */
#define TIMERWHEEL_FEATURE_URING	(1ULL << 3)

/**
 * TIMERWHEEL_SETUP_CLOCK_SET - SETUP: deliver an event (TIMERWHEEL_EVENT_CLOCK_SET) when the
 * wheel's clock is set. The clock must be REALTIME (else EINVAL).
 */
#define TIMERWHEEL_SETUP_CLOCK_SET	(1U << 0)
/**
 * TIMERWHEEL_SETUP_ALARM - SETUP: the wheel's timers wake the machine from suspend, as
 * CLOCK_BOOTTIME_ALARM and CLOCK_REALTIME_ALARM do
 *
 * The clock must be BOOTTIME or REALTIME (else EINVAL). The caller needs CAP_WAKE_ALARM (else
 * EPERM), and the machine needs a clock that can wake it (else EOPNOTSUPP). Suspend fails with
 * EBUSY if a timer falls due within 2 seconds. If a timer was postponed, or cancelled in the
 * deadline table, the machine can wake up too early, and suspend can fail. The machine can also
 * wake up too early if there are thousands of timers far in the future.
 */
#define TIMERWHEEL_SETUP_ALARM		(1U << 1)
/**
 * TIMERWHEEL_SETUP_RESIDENT - SETUP: the wheel's timers are resident
 *
 * A resident timer keeps its key, index and generation after it has fired, until REMOVE, DRAIN or
 * close. Otherwise it is like any timer in a wheel with a deadline table, which this flag includes
 * (TIMERWHEEL_SETUP_TABLE). It can have a linger (TIMERWHEEL_LINGER).
 */
#define TIMERWHEEL_SETUP_RESIDENT	(1U << 2)
/**
 * TIMERWHEEL_SETUP_TABLE - SETUP: create the deadline table
 *
 * Programs arm, refresh and cancel timers in the table without a system call: see
 * TIMERWHEEL_MMAP_DEADLINES. Each timer needs 8 more bytes. The times in the table are in the
 * caller's time namespace. A wheel with a table has neither periods nor connections: ADD of a
 * period and ADD_SOCKET fail with EINVAL. SETUP fails with EOPNOTSUPP if the machine's atomic
 * operations do not allow a table (TIMERWHEEL_FEATURE_TABLE).
 */
#define TIMERWHEEL_SETUP_TABLE		(1U << 3)

/**
 * struct timerwheel_setup - TIMERWHEEL_IOC_SETUP: settings, once and before the first timer
 * @size: sizeof(struct timerwheel_setup)
 * @flags: TIMERWHEEL_SETUP_*
 * @clock: enum timerwheel_clock
 * @slots: slots per level, rounded up to a power of two; 0: 256
 * @tick: length of a tick in ns; 0: 1,000,000 (1 ms)
 * @capacity: maximum number of timers in the wheel; 0: 4,194,304. Memory is allocated as timers
 *	are added.
 * @wake_events: wake a reader when this many events wait...; 0: 1
 * @wake_ns: ...or this many ns after the first of them, whichever comes first. Must not be 0 if
 *	@wake_events is greater than 1. The wheel's clock measures this time: if REALTIME is set
 *	back, readers may sleep longer by that amount, or until there is activity in the wheel.
 * @slack: slack of timers armed without TIMERWHEEL_SLACK, in ns
 * @ring: length of the event ring, rounded up to a power of two, at most TIMERWHEEL_RING_MAX. 0:
 *	no ring; events are delivered by read(). See struct timerwheel_ring.
 * @event_size: sizeof(struct timerwheel_event) of the caller: a multiple of 8, 48 to 4096; 0: 48,
 *	the size in version 1. The kernel grants at most its own size.
 *
 * The kernel writes the granted values back. Errors: EINVAL, E2BIG, EFAULT, EBUSY; with a ring also
 * ENOMEM and EDQUOT; with TIMERWHEEL_SETUP_ALARM also EPERM and EOPNOTSUPP; with
 * TIMERWHEEL_SETUP_TABLE or TIMERWHEEL_SETUP_RESIDENT also EOPNOTSUPP, ENOMEM and EDQUOT.
 */
struct timerwheel_setup {
	__u32 size;
	__u32 flags;
	__u32 clock;
	__u32 slots;
	__aligned_u64 tick;
	__u32 capacity;
	__u32 wake_events;
	__aligned_u64 wake_ns;
	__aligned_u64 slack;
	__u32 ring;
	__u32 event_size;
};

/**
 * struct timerwheel_batch - argument of the calls on arrays of timers
 * @size: sizeof(struct timerwheel_batch)
 * @flags: DRAIN: TIMERWHEEL_DRAIN_CLOSE or 0; MOVE_HANDLE: TIMERWHEEL_ABS and TIMERWHEEL_EXCL, for
 *	all elements; other calls: 0
 * @elems: address of the array
 * @count: number of elements, 0 to TIMERWHEEL_BATCH_MAX
 * @elem_size: size of one element: sizeof the structure that the call names
 * @cursor: LIST: where to continue: 0 in the first call, then the value that the previous call
 *	stored here. Other calls: 0.
 *
 * The ioctl returns the number of elements processed (see the top of this file).
 */
struct timerwheel_batch {
	__u32 size;
	__u32 flags;
	__aligned_u64 elems;
	__u32 count;
	__u32 elem_size;
	__aligned_u64 cursor;
};

/**
 * struct timerwheel_uring - a call on an array of timers, as an io_uring command
 * @elems: as in struct timerwheel_batch
 * @count: as in struct timerwheel_batch
 * @elem_size: as in struct timerwheel_batch
 *
 * In the submission (struct io_uring_sqe), set @opcode to IORING_OP_URING_CMD, @fd to a wheel, and
 * @uring_cmd_flags to 0. Set @cmd_op to one of TIMERWHEEL_IOC_ADD, _MOVE, _REMOVE, _GET,
 * _MOVE_HANDLE and _REMOVE_HANDLE, plus TIMERWHEEL_URING_FLAGS() of the flags of the call, if any.
 * Store this structure in its @cmd. The completion's @res is the number of elements processed, or
 * -errno. The errors are the same as for the ioctl, except that unknown numbers and all other calls
 * fail with EOPNOTSUPP instead of ENOTTY. In a ring with IORING_SETUP_IOPOLL older kernels fail
 * with EOPNOTSUPP.
 *
 * A command never waits for a timer. It is complete when the submission returns, with two
 * exceptions: a worker of the ring performs a command with IOSQE_ASYNC, and an ADD that needs
 * memory for its first element. Later commands can then overtake the command, as any io_uring
 * requests can unless they are linked. If signals keep the ring from creating a worker, the command
 * fails with ECANCELED and has done nothing. The elements must stay valid until the completion. A
 * failed element does not fail the command. So it does not break a chain of links, and the command
 * has no completion if it has IOSQE_CQE_SKIP_SUCCESS. An error does break a chain.
 *
 * Times are in the time namespace of the task that submits the command. With IORING_SETUP_SQPOLL
 * they are in the time namespace of the task that created the ring.
 */
struct timerwheel_uring {
	__aligned_u64 elems;
	__u32 count;
	__u32 elem_size;
};

/**
 * TIMERWHEEL_URING_FLAGS() - flags of a call, as a part of an io_uring command's number (cmd_op)
 * @flags: MOVE_HANDLE: TIMERWHEEL_ABS and TIMERWHEEL_EXCL; other commands: 0
 */
#define TIMERWHEEL_URING_FLAGS(flags)	((__u32)(flags) << 16)

/** TIMERWHEEL_WAS_NONE - result of ADD: no timer had this key */
#define TIMERWHEEL_WAS_NONE	0
/** TIMERWHEEL_WAS_PENDING - result: the timer was pending */
#define TIMERWHEEL_WAS_PENDING	1
/** TIMERWHEEL_WAS_DUE - result: the timer was due; ADD, MOVE, REMOVE, DRAIN withdrew its event */
#define TIMERWHEEL_WAS_DUE	2
/**
 * TIMERWHEEL_WAS_PARKED - result: the timer was not armed: its last arming was cancelled in the
 * deadline table, or it is resident and its event was delivered
 */
#define TIMERWHEEL_WAS_PARKED	3

/** TIMERWHEEL_ABS - ADD, MOVE, ADVANCE: the time is absolute, not relative to now */
#define TIMERWHEEL_ABS		(1U << 0)
/**
 * TIMERWHEEL_EXCL - ADD: if the key exists, fail with EEXIST instead of replacing the timer. MOVE
 * in a wheel with a deadline table: if the timer is armed or due, fail with EEXIST
 */
#define TIMERWHEEL_EXCL		(1U << 1)
/** TIMERWHEEL_MATCH - ADD, MOVE, REMOVE: only if the timer exists and its value is @match */
#define TIMERWHEEL_MATCH	(1U << 2)
/** TIMERWHEEL_SLACK - ADD: use @slack of the element instead of the wheel's default */
#define TIMERWHEEL_SLACK	(1U << 3)
/**
 * TIMERWHEEL_LINGER - ADD of a resident timer: @period is a linger. When the timer's event is
 * delivered, the timer is queued again in the cancelled state, with a deadline that long after the
 * delivery. Until then, arming it for that deadline or a later one needs no system call.
 */
#define TIMERWHEEL_LINGER	(1U << 4)

/**
 * struct timerwheel_add - element of TIMERWHEEL_IOC_ADD: arm a timer
 * @key: identifies the timer in this wheel; any number. If the key exists, the timer is replaced:
 *	it gets the new value, deadline, period and slack, and an undelivered event of the previous
 *	arming is withdrawn.
 * @value: returned in the event
 * @deadline: in ns from now (signed), or absolute with TIMERWHEEL_ABS. A time in the past makes the
 *	timer due at once.
 * @period: ns from each deadline to the next; 0: the timer fires once. In a wheel with a deadline
 *	table: 0, or the linger with TIMERWHEEL_LINGER.
 * @slack: with TIMERWHEEL_SLACK: how much later, in ns, the timer may fire in order to share a
 *	wake-up with others. Rounded down to ticks; limited to 2^32 - 1 ticks and to 2^61 ns.
 *	Without TIMERWHEEL_SLACK: 0.
 * @match: with TIMERWHEEL_MATCH: value that the timer must have now. Otherwise: 0.
 * @flags: TIMERWHEEL_ABS, TIMERWHEEL_SLACK, TIMERWHEEL_LINGER, and TIMERWHEEL_EXCL or
 *	TIMERWHEEL_MATCH (not both)
 * @result: out: TIMERWHEEL_WAS_* or a negative error
 * @index: out: index of the timer in the wheel's table. The timer keeps it until it is removed or
 *	drained or, if it fires once and is not resident, until it is delivered.
 * @generation: out: distinguishes this timer from earlier and later ones with the same index; see
 *	TIMERWHEEL_MMAP_DEADLINES
 */
struct timerwheel_add {
	__aligned_u64 key;
	__aligned_u64 value;
	__aligned_u64 deadline;
	__aligned_u64 period;
	__aligned_u64 slack;
	__aligned_u64 match;
	__u32 flags;
	__s32 result;
	__u32 index;
	__u32 generation;
};

/**
 * enum timerwheel_socket - when a TCP connection has reached its deadline
 * @TIMERWHEEL_SOCKET_IDLE: when no data was received or sent for the timeout
 * @TIMERWHEEL_SOCKET_IDLE_RECEIVE: when no data was received for the timeout
 * @TIMERWHEEL_SOCKET_IDLE_SEND: when no data was sent for the timeout
 * @TIMERWHEEL_SOCKET_LIFETIME: at the deadline, whatever the connection does
 * @TIMERWHEEL_SOCKET_HALF_CLOSED: when one side has closed the connection and the other has not,
 *	and no data was received, sent or acknowledged for the timeout, or for up to twice the
 *	timeout
 */
enum timerwheel_socket {
	TIMERWHEEL_SOCKET_IDLE		= 0,
	TIMERWHEEL_SOCKET_IDLE_RECEIVE	= 1,
	TIMERWHEEL_SOCKET_IDLE_SEND	= 2,
	TIMERWHEEL_SOCKET_LIFETIME	= 3,
	TIMERWHEEL_SOCKET_HALF_CLOSED	= 4
};

/**
 * TIMERWHEEL_SOCKET_ABORT - ADD_SOCKET: abort the connection @grace after the event
 *
 * Without this flag the kernel only delivers the event.
 */
#define TIMERWHEEL_SOCKET_ABORT	(1U << 5)

/** TIMERWHEEL_SOCKET_TIME_MAX - longest timeout of kinds other than LIFETIME: 14 days, in ns */
#define TIMERWHEEL_SOCKET_TIME_MAX	1209600000000000ULL

/**
 * struct timerwheel_add_socket - element of TIMERWHEEL_IOC_ADD_SOCKET: arm a timer that watches a
 *	TCP connection
 * @key: as in struct timerwheel_add
 * @value: as in struct timerwheel_add
 * @deadline: LIFETIME: as in struct timerwheel_add. Other kinds: the timeout, 1 ns to
 *	TIMERWHEEL_SOCKET_TIME_MAX, without TIMERWHEEL_ABS; it begins now at the earliest.
 * @grace: with TIMERWHEEL_SOCKET_ABORT: ns from the event to the end of the connection, at most
 *	TIMERWHEEL_SOCKET_TIME_MAX; 0: the connection is aborted at once. Without the flag: 0.
 * @slack: as in struct timerwheel_add
 * @match: as in struct timerwheel_add
 * @fd: descriptor of the socket: a TCP connection over IPv4 or IPv6, established or being opened
 * @kind: enum timerwheel_socket
 * @flags: TIMERWHEEL_SOCKET_ABORT, and the flags in struct timerwheel_add except TIMERWHEEL_LINGER
 * @result: out: TIMERWHEEL_WAS_* or a negative error
 * @index: out: as in struct timerwheel_add
 * @generation: out: as in struct timerwheel_add
 *
 * The kernel checks the connection only when the deadline comes up. A connection in use costs one
 * visit per timeout and nothing per packet. If data was received or sent in the meantime, the
 * kernel queues the timer again, for the time of the last data plus the timeout. These times are
 * the connection's own, in units of the scheduler's tick (1/HZ, 1 to 10 ms): a timeout is never
 * early, and up to two such ticks late. (On a virtual machine whose ticks stand still, it can be
 * early by as much.) Acknowledgements and keepalive probes without data do not count as data. Data
 * that is sent again because the peer does not answer counts as sent.
 *
 * When the deadline has been reached, the kernel delivers an event. Without TIMERWHEEL_SOCKET_ABORT
 * the timer then ends. With the flag, what follows depends on @grace:
 *
 * * 0: the connection is aborted. The event has TIMERWHEEL_EVENT_ABORTED.
 * * Otherwise: the event has TIMERWHEEL_EVENT_WARNING, and the timer is pending again, @grace
 *   later. If by then no call has moved, replaced or removed the timer and the connection is still
 *   idle, the kernel aborts the connection and delivers a second event,
 *   with TIMERWHEEL_EVENT_ABORTED. Otherwise the timer continues as before.
 *
 * No program has to read the events: the connection ends even if the program is stopped. The clock
 * of the wheel measures the grace. So the grace is over if the clock is REALTIME and is set
 * forwards by that much, or if the clock is BOOTTIME and the machine was suspended for that long.
 *
 * The kernel aborts a connection by sending a reset. The local end gets ETIMEDOUT, the peer
 * ECONNRESET. The owner of the descriptor could do the same. Any process that gets the wheel also
 * gets this right, until the timer is removed. While a task is in a call on the socket, the abort
 * waits for it. Before Linux 6.5, a task that enters such a call during the abort delays all aborts
 * of the user who opened the wheel, and if the task disconnects the socket and makes it listen at
 * that moment, the listening socket is aborted.
 *
 * The timer keeps neither the connection nor the descriptor open. If the socket was closed, the
 * timer ends at its deadline with an event that has TIMERWHEEL_EVENT_GONE. Remove the timer when
 * you close the socket. Otherwise the kernel lets go of the socket about a minute later. Until then
 * it keeps the memory of the socket, about 2.5 kB, which is charged to the user who opened the
 * wheel, and what the socket holds, which is not charged: a filter that is attached to it (a long
 * one takes 60 kB), its network namespace, its cgroups. A socket that is connected again keeps its
 * deadline.
 *
 * MOVE sets the time of the next visit and does not change the timeout. MOVE, ADD, REMOVE and DRAIN
 * withdraw a warning that was not delivered. If the connection is just being aborted, these calls
 * find the timer DUE and do not stop the abort.
 *
 * With TIMERWHEEL_SOCKET_ABORT and a @grace, the timer counts as two timers in the wheel. Results:
 * the results of ADD; EINVAL also if the clock is MANUAL or the wheel has a deadline table; EBADF,
 * ENOTSOCK; EOPNOTSUPP (not TCP over IPv4 or IPv6; MPTCP; a listening socket; see
 * TIMERWHEEL_FEATURE_SOCKET); ENOTCONN. Kernel TLS and sockets in BPF maps behave like other
 * sockets.
 */
struct timerwheel_add_socket {
	__aligned_u64 key;
	__aligned_u64 value;
	__aligned_u64 deadline;
	__aligned_u64 grace;
	__aligned_u64 slack;
	__aligned_u64 match;
	__s32 fd;
	__u32 kind;
	__u32 flags;
	__s32 result;
	__u32 index;
	__u32 generation;
};

/**
 * struct timerwheel_move - element of TIMERWHEEL_IOC_MOVE: change a timer's deadline
 * @key: key of the timer
 * @deadline: the new deadline, in ns from now (signed), or absolute with TIMERWHEEL_ABS. A time in
 *	the past makes the timer due at once. Value, period and slack do not change. An undelivered
 *	event of the previous deadline is withdrawn.
 * @match: with TIMERWHEEL_MATCH: value that the timer must have now. Otherwise: 0.
 * @flags: TIMERWHEEL_ABS, TIMERWHEEL_MATCH; in a wheel with a deadline table also TIMERWHEEL_EXCL
 * @result: out: TIMERWHEEL_WAS_* or a negative error
 */
struct timerwheel_move {
	__aligned_u64 key;
	__aligned_u64 deadline;
	__aligned_u64 match;
	__u32 flags;
	__s32 result;
};

/**
 * struct timerwheel_remove - element of TIMERWHEEL_IOC_REMOVE: remove a timer
 * @key: key of the timer
 * @match: with TIMERWHEEL_MATCH: value that the timer must have now. Otherwise: 0.
 * @value: out: the timer's value
 * @left: out: ns that were left until its deadline; negative: ns since its deadline
 * @flags: TIMERWHEEL_MATCH
 * @result: out: TIMERWHEEL_WAS_PENDING, _DUE or _PARKED, or a negative error. On error @value and
 *	@left do not change.
 */
struct timerwheel_remove {
	__aligned_u64 key;
	__aligned_u64 match;
	__aligned_u64 value;
	__s64 left;
	__u32 flags;
	__s32 result;
};

/**
 * struct timerwheel_move_handle - element of TIMERWHEEL_IOC_MOVE_HANDLE: MOVE, without the key
 * @deadline: as in struct timerwheel_move
 * @index: index of the timer, from ADD
 * @generation: in: its generation, from ADD
 * @result: out, overwrites @generation: TIMERWHEEL_WAS_* or a negative error; -ENOENT: the timer is
 *	gone
 *
 * The call's flags, TIMERWHEEL_ABS and, in a wheel with a deadline table, TIMERWHEEL_EXCL, apply to
 * all elements.
 *
 * Use a handle (index and generation) only for a timer that you know to exist or to have ended
 * recently: generations of an index repeat after 2^(generation_bits - 2) - 1 owners.
 */
__extension__
struct timerwheel_move_handle {
	__aligned_u64 deadline;
	__u32 index;
	union {
		__u32 generation;
		__s32 result;
	};
};

/**
 * struct timerwheel_remove_handle - element of TIMERWHEEL_IOC_REMOVE_HANDLE: REMOVE, with no key
 * @value: out: the timer's value; unchanged on error
 * @index: index of the timer, from ADD
 * @generation: in: its generation, from ADD
 * @result: out, overwrites @generation: as in struct timerwheel_move_handle
 */
__extension__
struct timerwheel_remove_handle {
	__aligned_u64 value;
	__u32 index;
	union {
		__u32 generation;
		__s32 result;
	};
};

/**
 * struct timerwheel_entry - element of GET, LIST and DRAIN: description of a timer
 * @key: its key (GET: input)
 * @value: its value
 * @deadline: its deadline, absolute, in ns
 * @left: ns until its deadline; negative: ns since its deadline
 * @period: its period in ns; 0: it fires once; with TIMERWHEEL_LINGER: its linger; with
 *	TIMERWHEEL_ENTRY_SOCKET: the timeout of the connection, where 0 means LIFETIME
 * @slack: its slack in ns, rounded down to ticks
 * @flags: in: 0; out: TIMERWHEEL_LINGER, TIMERWHEEL_ENTRY_*
 * @result: TIMERWHEEL_WAS_PENDING, _DUE or _PARKED; GET also: a negative error, after which the
 *	other fields are unchanged
 * @index: its index in the wheel's table
 * @generation: distinguishes it from earlier and later timers with the same index
 *
 * LIST and DRAIN ignore the previous contents of an element.
 */
struct timerwheel_entry {
	__aligned_u64 key;
	__aligned_u64 value;
	__aligned_u64 deadline;
	__s64 left;
	__aligned_u64 period;
	__aligned_u64 slack;
	__u32 flags;
	__s32 result;
	__u32 index;
	__u32 generation;
};

/** TIMERWHEEL_ENTRY_SOCKET - GET, LIST, DRAIN: the timer watches a connection */
#define TIMERWHEEL_ENTRY_SOCKET		(1U << 8)
/** TIMERWHEEL_ENTRY_GRACE - GET, LIST, DRAIN: the connection will be aborted at its deadline */
#define TIMERWHEEL_ENTRY_GRACE		(1U << 9)

/**
 * TIMERWHEEL_DRAIN_CLOSE - DRAIN: from now on ADD fails with ESHUTDOWN
 *
 * When the call returns, every ADD that began before it has ended. Both promises hold even if the
 * call fails with EFAULT, EINTR or ENOMEM. Periodic timers that are pending or due keep firing
 * until they are drained.
 */
#define TIMERWHEEL_DRAIN_CLOSE	(1U << 0)

/**
 * struct timerwheel_advance - TIMERWHEEL_IOC_ADVANCE: advance the time of a MANUAL wheel
 * @size: sizeof(struct timerwheel_advance)
 * @flags: TIMERWHEEL_ABS
 * @time: number of ns (negative: EINVAL), or the new time with TIMERWHEEL_ABS
 * @now: out: the time after the call
 * @expired: out: number of timers that fell due during the call
 *
 * Time passes through all ticks in order: timers fire in the order of their ticks, and each timer's
 * fired time is the time of its tick. Errors: EINVAL (the clock is not MANUAL, or @time is in the
 * past), E2BIG, EFAULT, EINTR (a fatal signal), ENOMEM, EDQUOT.
 */
struct timerwheel_advance {
	__u32 size;
	__u32 flags;
	__aligned_u64 time;
	__aligned_u64 now;
	__aligned_u64 expired;
};

/**
 * struct timerwheel_event - an event; read() returns an array of them
 * @key: the timer's key
 * @value: the timer's value
 * @deadline: the deadline that was reached, absolute, in ns
 * @fired: when the kernel found the timer due, in ns; never before @deadline
 * @overruns: periodic timer: number of later deadlines that had also passed and have no events of
 *	their own
 * @flags: TIMERWHEEL_EVENT_*
 * @index: the timer's index in the wheel's table
 *
 * Events of timers that fired on the same CPU are delivered in the order of their ticks; the order
 * within a tick is not specified. read() returns as many events as fit, at least one. It never
 * returns a part of an event.
 *
 * Later versions may add fields at the end of this structure. An event has the size that SETUP
 * granted (@event_size of INFO), which is 48 bytes unless a larger size was requested. If a newer
 * program has set up the wheel, use that size as the distance between events, and ignore the part
 * that you do not know.
 */
struct timerwheel_event {
	__aligned_u64 key;
	__aligned_u64 value;
	__aligned_u64 deadline;
	__aligned_u64 fired;
	__aligned_u64 overruns;
	__u32 flags;
	__u32 index;
};

/** TIMERWHEEL_EVENT_PERIODIC - the timer is periodic and was armed again */
#define TIMERWHEEL_EVENT_PERIODIC	(1U << 0)
/**
 * TIMERWHEEL_EVENT_MISSED - from a monitor: @overruns events are missing here; all other fields
 * are 0
 */
#define TIMERWHEEL_EVENT_MISSED		(1U << 1)
/**
 * TIMERWHEEL_EVENT_CLOCK_SET - not a timer: CLOCK_REALTIME was set, or had a leap second, since
 * SETUP or since the last such event (see TIMERWHEEL_SETUP_CLOCK_SET)
 *
 * @deadline and @fired are the new time at which the kernel noticed the change, @overruns is the
 * number of further changes that this event represents, and all other fields are 0. The event is
 * delivered before all waiting events, and so before the events of timers that fall due because of
 * the change. It wakes readers at once. A change that is undone before the kernel notices it is not
 * reported. Suspend and slewing (adjtime) do not set the clock. STATS does not count these events.
 * If the event ring is full, the event waits in the kernel, as due timers do.
 */
#define TIMERWHEEL_EVENT_CLOCK_SET	(1U << 2)
/** TIMERWHEEL_EVENT_WARNING - the connection will be aborted: see struct timerwheel_add_socket */
#define TIMERWHEEL_EVENT_WARNING	(1U << 3)
/** TIMERWHEEL_EVENT_ABORTED - the connection was aborted, and the timer has ended */
#define TIMERWHEEL_EVENT_ABORTED	(1U << 4)
/** TIMERWHEEL_EVENT_GONE - the connection had ended before, and the timer has ended */
#define TIMERWHEEL_EVENT_GONE		(1U << 5)

/**
 * struct timerwheel_monitor - TIMERWHEEL_IOC_MONITOR: create a descriptor for copies of all events
 * @size: sizeof(struct timerwheel_monitor)
 * @flags: TIMERWHEEL_MONITOR_*
 * @events: maximum number of events that wait for the monitor's readers, rounded up to a power of
 *	two, at most TIMERWHEEL_RING_MAX; 0: 1024
 * @reserved: 0
 *
 * The call returns the new descriptor. read() on it returns the events that the wheel delivers from
 * now on, in the order of delivery. Events that are withdrawn are not included. Readers of the same
 * monitor share its events: each event goes to one of them.
 *
 * The wheel does not wait for its monitors. If a monitor falls behind by more than @events, it
 * loses the oldest events. A TIMERWHEEL_EVENT_MISSED event in their place reports their number.
 *
 * All monitors of a wheel share one log. The log is as long as the longest monitor that was opened
 * since the wheel last had no monitors. Its memory is charged to the user who opened the wheel
 * until the last monitor is closed.
 *
 * A monitor does not keep the wheel open. After the wheel is closed, the monitor returns its
 * remaining events, and then end of file (read() returns 0, poll reports EPOLLHUP). Times are in
 * the time namespace of the process to which the wheel delivers. Errors: EINVAL, E2BIG, EFAULT,
 * ENOMEM, EDQUOT (for the user who opened the wheel), ENOSPC (the wheel has
 * TIMERWHEEL_MONITORS_MAX monitors), EMFILE, ENFILE.
 */
struct timerwheel_monitor {
	__u32 size;
	__u32 flags;
	__u32 events;
	__u32 reserved;
};

/** TIMERWHEEL_MONITOR_CLOEXEC - close the descriptor on exec */
#define TIMERWHEEL_MONITOR_CLOEXEC	(1U << 0)
/** TIMERWHEEL_MONITOR_NONBLOCK - read() does not block */
#define TIMERWHEEL_MONITOR_NONBLOCK	(1U << 1)

/** TIMERWHEEL_MONITORS_MAX - maximum number of monitors of a wheel */
#define TIMERWHEEL_MONITORS_MAX		16

/** TIMERWHEEL_RING_MAX - maximum number of events in an event ring */
#define TIMERWHEEL_RING_MAX	65536U

/**
 * struct timerwheel_ring - head of the event ring, mapped at TIMERWHEEL_MMAP_RING
 * @tail: number of events that the kernel has written, modulo 2^32
 * @mask: length of the ring, minus one
 * @event_size: size of an event in the ring, in bytes
 * @reserved1: unused
 * @reserved2: unused
 * @flags: TIMERWHEEL_RING_OVERFLOW; set and cleared by the kernel
 * @head: number of events that the reader has taken, modulo 2^32; written by the reader
 * @waiting: written by the reader: 1: it sleeps or is about to sleep; 0: it is awake
 *
 * A wheel that was set up with a ring delivers its events into the ring; read() fails with EINVAL.
 * The array of events begins TIMERWHEEL_RING_EVENTS bytes after the start of this structure. Event
 * number i is in entry i & @mask, and each entry has @event_size bytes. There is one reader. To
 * take events, it
 *
 *	loads @tail (acquire), copies the events from @head up to @tail, and stores @head (release)
 *
 * An event in the ring counts as delivered: REMOVE, MOVE and DRAIN no longer find the arming that
 * it belongs to. If a reader exits, the next reader maps the ring and continues at the @head that
 * was last stored.
 *
 * If the ring is full, due timers wait in the kernel, where their events can still be withdrawn,
 * and TIMERWHEEL_RING_OVERFLOW is set. Once there is room, TIMERWHEEL_IOC_FLOW moves the events
 * into the ring. Each later expiry also moves a few events. Events keep the order in which their
 * timers fired.
 *
 * To sleep, the reader stores 1 to @waiting, executes a full memory barrier and loads @tail and
 * @flags again. If there is nothing to do, it calls poll. When it is awake, it stores 0. While
 * @waiting is 0 the kernel does not wake the reader, neither in poll nor by SIGIO.
 */
struct timerwheel_ring {
	__u32 tail;
	__u32 mask;
	__u32 flags;
	__u32 event_size;
	__u32 reserved1[12];
	__u32 head;
	__u32 waiting;
	__u32 reserved2[14];
};

/** TIMERWHEEL_RING_OVERFLOW - events wait in the kernel because the ring was full */
#define TIMERWHEEL_RING_OVERFLOW	(1U << 0)

/** TIMERWHEEL_RING_EVENTS - offset of the array of events from the start of the ring, in bytes */
#define TIMERWHEEL_RING_EVENTS		128

/**
 * TIMERWHEEL_MMAP_RING - mmap() offset of the event ring
 *
 * Use MAP_SHARED. The length is TIMERWHEEL_RING_EVENTS + ring * event_size, rounded up to pages.
 * Errors: EINVAL (not MAP_SHARED, PROT_EXEC, a greater length, no ring).
 */
#define TIMERWHEEL_MMAP_RING		(1ULL << 40)

/**
 * TIMERWHEEL_MMAP_DEADLINES - mmap() offset of the deadline table, in which timers are armed,
 * refreshed and cancelled in memory, without a system call
 *
 * SETUP creates the table (TIMERWHEEL_SETUP_TABLE). Use MAP_SHARED. The table is an array of __u64
 * with one entry per timer, indexed by the @index that ADD, GET and LIST report. An entry is
 *
 *	(deadline rounded up to a multiple of 2^generation_bits) | generation | state
 *
 * The deadline is absolute, in ns. ADD, GET and LIST report the generation, a multiple of 4, and
 * INFO reports generation_bits (12 to 20: 2^generation_bits ns are usually less than a tick). The
 * state is in bits 0 and 1: TIMERWHEEL_TABLE_ARMED, _CANCELLED, _PARKED or _FIRED. Deadlines that
 * ADD and MOVE set are rounded up in the same way, but to no more than the largest multiple up to
 * TIMERWHEEL_TIME_MAX.
 *
 * Any thread or process that has the mapping may change an entry by a 64-bit compare-and-swap, but
 * only if the entry holds the timer's generation, and only in one of these ways:
 *
 *	arm	CANCELLED or ARMED -> ARMED, with a deadline that is not earlier (release)
 *	refresh	ARMED -> ARMED, with a deadline that is not earlier (release)
 *	cancel	ARMED -> CANCELLED, with the same deadline (acquire)
 *
 * After a successful cancel no event is delivered for that arming. After a successful refresh no
 * event is delivered for the previous deadline. Only the kernel sets PARKED and FIRED. In these
 * states, use MOVE to arm the timer again, or ADD if it has ended; also use MOVE to arm it for an
 * earlier deadline. A cancelled timer is parked when its deadline passes, or up to a tick later. It
 * exists until REMOVE, DRAIN or close.
 *
 * When the event of a timer that is not resident has been delivered, the timer has ended. Its entry
 * stays FIRED until the index has a new owner, with another generation. The entry of a timer that
 * was removed or drained is 0. So an operation on a timer that has ended changes nothing, unless
 * the number of timers that have used the index since then is a multiple of
 * 2^(generation_bits - 2) - 1.
 *
 * Changes of entries cause no work in the kernel before the previous deadline. GET, LIST, REMOVE
 * and DRAIN use the deadline in the entry; ADD and MOVE replace it.
 *
 * A thread that gets the event of an arming sees everything that was written before the arming (arm
 * is a release). A plain store, or another invalid value, harms only the timer whose entry it is,
 * and in a wheel that is shared that can be another program's. The kernel ignores a deadline that
 * is earlier than the deadline that it has set, or has since then read with the timer's generation.
 * The timer is a tick late for each tick in which its entry changes all the time.
 *
 * Value, slack and linger stay as ADD has set them. Deadlines in the table are in the time
 * namespace of SETUP, whichever process stores them; in a namespace in which the wheel's clock
 * differs, mmap() fails with EXDEV. They are absolute: setting CLOCK_REALTIME does not change the
 * entries. After the clock was set back, use MOVE to arm a timer for the new time.
 *
 * The table has entries for the largest number of timers that the wheel has held at once, in whole
 * pages. An access beyond them raises SIGBUS. Errors of mmap(): EINVAL (SETUP has created no table;
 * not MAP_SHARED, PROT_EXEC, beyond the wheel's capacity), EXDEV.
 */
#define TIMERWHEEL_MMAP_DEADLINES	0ULL

/** TIMERWHEEL_TABLE_ARMED - state of an entry of the deadline table: the timer is armed */
#define TIMERWHEEL_TABLE_ARMED	1U
/**
 * TIMERWHEEL_TABLE_CANCELLED - state: the timer is cancelled, but still queued at its deadline
 * or earlier
 */
#define TIMERWHEEL_TABLE_CANCELLED	0U
/**
 * TIMERWHEEL_TABLE_PARKED - state: the timer is not queued, and its last arming was cancelled, or
 * its event was delivered and the linger has passed
 */
#define TIMERWHEEL_TABLE_PARKED	2U
/**
 * TIMERWHEEL_TABLE_FIRED - state: the last arming fired. Its event will be delivered, was
 * delivered, or was withdrawn by a call.
 */
#define TIMERWHEEL_TABLE_FIRED	3U

/** TIMERWHEEL_LATENESS_BUCKETS - length of the histogram in struct timerwheel_stats */
#define TIMERWHEEL_LATENESS_BUCKETS	40

/**
 * struct timerwheel_stats - TIMERWHEEL_IOC_STATS: counters of a wheel since it was opened
 * @size: in: the caller's sizeof(struct timerwheel_stats); out: the kernel's
 * @flags: 0
 * @pending: timers that are pending now
 * @due: timers that are due now and not yet delivered
 * @armed: successful ADDs. Each arming ends in one of @delivered, @removed, @replaced and @drained.
 *	The delivery of a periodic timer ends one arming and begins the next (@rearmed).
 * @rearmed: timers that stayed after their delivery: periodic timers, resident timers, and timers
 *	of connections after a warning. While no operation is in progress on the wheel,
 *	armed + rearmed = delivered + removed + replaced + drained + pending + due + parked
 * @moved: successful MOVEs
 * @removed: successful REMOVEs
 * @replaced: ADDs that replaced a timer
 * @drained: timers returned by DRAIN
 * @delivered: events of timers delivered
 * @overruns: deadlines of periodic timers that had no event of their own
 * @withdrawn: events withdrawn by ADD, MOVE, REMOVE or DRAIN of a due timer
 * @cascades: timers moved from one level of the wheel to a lower one
 * @requeues: timers visited before their deadline and queued again because they had been postponed,
 *	or were left over from a late cascade
 * @wakeups: number of times that readers were woken
 * @firings: number of times that the wheel was run because it had work again. Wheels with work in
 *	the same tick share an interrupt.
 * @passes: number of expiry batches; each batch takes a lock once and holds it until its end
 * @pass_max_timers: largest number of timers handled in one expiry batch
 * @pass_max_ns: duration of the longest expiry batch, in ns
 * @memory: bytes of kernel memory that the wheel occupies
 * @late_max: largest lateness (fired - deadline), in ns
 * @lateness: histogram of the lateness: lateness[i] counts timers that fired at least 2^(i-1) and
 *	less than 2^i ns after their deadline; the last element also counts all later ones
 * @parked: timers that are neither pending nor due now, because their last arming was
 *	cancelled or delivered; also timers of connections that are being aborted
 * @sockets: timers that watch a connection now
 * @aborted: number of aborted connections
 */
struct timerwheel_stats {
	__u32 size;
	__u32 flags;
	__aligned_u64 pending;
	__aligned_u64 due;
	__aligned_u64 armed;
	__aligned_u64 rearmed;
	__aligned_u64 moved;
	__aligned_u64 removed;
	__aligned_u64 replaced;
	__aligned_u64 drained;
	__aligned_u64 delivered;
	__aligned_u64 overruns;
	__aligned_u64 withdrawn;
	__aligned_u64 cascades;
	__aligned_u64 requeues;
	__aligned_u64 wakeups;
	__aligned_u64 firings;
	__aligned_u64 passes;
	__aligned_u64 pass_max_timers;
	__aligned_u64 pass_max_ns;
	__aligned_u64 memory;
	__aligned_u64 late_max;
	__aligned_u64 lateness[TIMERWHEEL_LATENESS_BUCKETS];
	__aligned_u64 parked;
	__aligned_u64 sockets;
	__aligned_u64 aborted;
};

/** TIMERWHEEL_IOC_TYPE - first byte of the ioctl numbers; the size is in the structure */
#define TIMERWHEEL_IOC_TYPE	0xF5

/** TIMERWHEEL_IOC_INFO - struct timerwheel_info */
#define TIMERWHEEL_IOC_INFO	_IO(TIMERWHEEL_IOC_TYPE, 0x00)
/** TIMERWHEEL_IOC_SETUP - struct timerwheel_setup */
#define TIMERWHEEL_IOC_SETUP	_IO(TIMERWHEEL_IOC_TYPE, 0x01)
/** TIMERWHEEL_IOC_ADD - struct timerwheel_batch of struct timerwheel_add */
#define TIMERWHEEL_IOC_ADD	_IO(TIMERWHEEL_IOC_TYPE, 0x02)
/** TIMERWHEEL_IOC_MOVE - struct timerwheel_batch of struct timerwheel_move */
#define TIMERWHEEL_IOC_MOVE	_IO(TIMERWHEEL_IOC_TYPE, 0x03)
/** TIMERWHEEL_IOC_REMOVE - struct timerwheel_batch of struct timerwheel_remove */
#define TIMERWHEEL_IOC_REMOVE	_IO(TIMERWHEEL_IOC_TYPE, 0x04)
/**
 * TIMERWHEEL_IOC_DRAIN - struct timerwheel_batch of struct timerwheel_entry: remove and return up
 * to count timers, pending, due or parked, in any order. Call it until it returns 0: then no timer
 * remains that was armed before that call.
 */
#define TIMERWHEEL_IOC_DRAIN	_IO(TIMERWHEEL_IOC_TYPE, 0x05)
/** TIMERWHEEL_IOC_GET - struct timerwheel_batch of struct timerwheel_entry: describe by key */
#define TIMERWHEEL_IOC_GET	_IO(TIMERWHEEL_IOC_TYPE, 0x06)
/**
 * TIMERWHEEL_IOC_LIST - struct timerwheel_batch of struct timerwheel_entry: describe all timers, up
 * to count with each call; returns 0 at the end. A timer that exists from the first call to the
 * last is returned exactly once, whatever happens to other timers.
 */
#define TIMERWHEEL_IOC_LIST	_IO(TIMERWHEEL_IOC_TYPE, 0x07)
/** TIMERWHEEL_IOC_STATS - struct timerwheel_stats */
#define TIMERWHEEL_IOC_STATS	_IO(TIMERWHEEL_IOC_TYPE, 0x08)
/** TIMERWHEEL_IOC_ADVANCE - struct timerwheel_advance */
#define TIMERWHEEL_IOC_ADVANCE	_IO(TIMERWHEEL_IOC_TYPE, 0x09)
/**
 * TIMERWHEEL_IOC_FLOW - no argument: move waiting events into the event ring as far as there is
 * room. Returns their number. Errors: EINVAL (the wheel has no ring), ENOMEM, EDQUOT.
 */
#define TIMERWHEEL_IOC_FLOW	_IO(TIMERWHEEL_IOC_TYPE, 0x0a)
/** TIMERWHEEL_IOC_MONITOR - struct timerwheel_monitor */
#define TIMERWHEEL_IOC_MONITOR	_IO(TIMERWHEEL_IOC_TYPE, 0x0b)
/** TIMERWHEEL_IOC_MOVE_HANDLE - struct timerwheel_batch of struct timerwheel_move_handle */
#define TIMERWHEEL_IOC_MOVE_HANDLE	_IO(TIMERWHEEL_IOC_TYPE, 0x0c)
/** TIMERWHEEL_IOC_REMOVE_HANDLE - struct timerwheel_batch of struct timerwheel_remove_handle */
#define TIMERWHEEL_IOC_REMOVE_HANDLE	_IO(TIMERWHEEL_IOC_TYPE, 0x0d)
/** TIMERWHEEL_IOC_ADD_SOCKET - struct timerwheel_batch of struct timerwheel_add_socket */
#define TIMERWHEEL_IOC_ADD_SOCKET	_IO(TIMERWHEEL_IOC_TYPE, 0x0e)

#endif /* _UAPI_LINUX_TIMERWHEEL_H */
