/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * timerwheel: one file descriptor for millions of timeouts.
 *
 * Each open of /dev/timerwheel is a new, private wheel. A wheel holds timers,
 * each named by a 64-bit key of the caller's choice. A timer is PENDING until
 * its deadline and DUE from then until a reader has its event.
 *
 * Errors, one meaning each
 * ------------------------
 * A call fails as a whole (returns -1 and sets errno) only when it did nothing:
 *
 *  EINVAL     a field, flag or size the kernel does not understand, a reserved
 *             field that is not zero, a value outside the limits of INFO, a read
 *             buffer too small for one event, ADVANCE on a wheel whose clock is
 *             not MANUAL or to a time that has passed
 *  E2BIG      a structure, or the first element of an array, larger than the kernel
 *             knows with something set in the part it does not know (or larger than a
 *             page), more than TIMERWHEEL_BATCH_MAX elements
 *  EFAULT     memory that cannot be read or written. Should it go away while a call
 *             works, what was done stays done and is no error; its results are not told
 *  EBADF      a call that changes the wheel (SETUP, ADD, MOVE, REMOVE, DRAIN, ADVANCE, FLOW) on a
 *             descriptor that is not open for writing, another one, or read, on one that is not
 *             open for reading
 *  EBUSY      SETUP after the first timer or after mmap(), or a second time
 *  EAGAIN     read: nothing is due and the descriptor does not block
 *  EINTR      a signal arrived before anything was done. LIST and DRAIN, which may have
 *             far to go to the first timer, give up only for one that kills
 *  ENOMEM     the kernel (or the caller's memory cgroup) has no memory
 *  EDQUOT     the user has reached the cap on memory for all wheels: open, SETUP, MONITOR, mmap
 *             of the deadline table, and the first call on timers of a new wheel
 *  ENOSPC     MONITOR: the wheel has as many as it may have
 *  EMFILE, ENFILE  MONITOR: no descriptor is left
 *  EPERM      SETUP with TIMERWHEEL_SETUP_ALARM: the caller has not CAP_WAKE_ALARM
 *  EOPNOTSUPP SETUP with TIMERWHEEL_SETUP_ALARM: nothing can wake this machine
 *  ENOTTY     no such call
 *
 * A call on an array returns the number of elements done, counted from the first.
 * That is less than asked for when an element could not be read or written, or has something set
 * in a part that the kernel does not know, or a signal arrived (or other work for the thread, such
 * as that of io_uring): call again with the rest, and what stopped it is then the error of that
 * call. Elements behind those done may have been written to in part by GET, LIST, DRAIN and read.
 * Each element done carries its own result; one that failed changed nothing and never
 * undoes or hides another:
 *
 *  >= 0       done: TIMERWHEEL_WAS_NONE, _WAS_PENDING or _WAS_DUE says what there
 *             was under that key before
 *  -EINVAL    a flag not understood, flags that exclude each other, a reserved
 *             field that is not zero, a period beyond the largest time
 *  -ENOENT    no timer has that key
 *  -EEXIST    TIMERWHEEL_EXCL, and a timer has that key
 *  -ESTALE    TIMERWHEEL_MATCH, and the timer's value is another
 *  -ENOSPC    the wheel is full
 *  -EDQUOT    the user who opened the wheel has reached the cap on memory for all wheels
 *  -EMLINK    32 timers share the key's hash chain: somebody chose their keys for that
 *  -ENOMEM    no memory for one more timer; after one such result a call asks the
 *             system for no more
 *  -ESHUTDOWN the wheel was closed to new timers (TIMERWHEEL_DRAIN_CLOSE)
 *
 * Times
 * -----
 * All times are nanoseconds. Absolute times are those of the wheel's clock as the
 * calling process sees it (its time namespace); those beyond TIMERWHEEL_TIME_MAX
 * (292 years) are taken as TIMERWHEEL_TIME_MAX. Relative times are signed: "then - now" may be
 * stored as it is, and is negative if then has passed. A sum beyond TIMERWHEEL_TIME_MAX is taken
 * as that.
 *
 * Growth of this interface
 * ------------------------
 * Each structure begins with its own size. A newer kernel takes the older, smaller
 * one; an older kernel takes a newer, larger one whose unknown part is zero. The same holds for
 * the elements of arrays (elem_size); those of GET, LIST and DRAIN are only written, and of
 * larger ones the unknown part is set to zero. All
 * layouts are the same for 32- and 64-bit programs. Reserved fields must be zero.
 */
#ifndef _UAPI_LINUX_TIMERWHEEL_H
#define _UAPI_LINUX_TIMERWHEEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/** TIMERWHEEL_ABI_VERSION - grows by one with each addition to this file */
#define TIMERWHEEL_ABI_VERSION	1

/** TIMERWHEEL_BATCH_MAX - most elements in one call */
#define TIMERWHEEL_BATCH_MAX	65536

/** TIMERWHEEL_TIME_MAX - the largest time, in ns; "never" for practical purposes */
#define TIMERWHEEL_TIME_MAX	0x7fffffffffffffffULL

/**
 * enum timerwheel_clock - what a wheel's time is
 * @TIMERWHEEL_CLOCK_MONOTONIC: CLOCK_MONOTONIC: stands still in suspend (the default)
 * @TIMERWHEEL_CLOCK_BOOTTIME: CLOCK_BOOTTIME: goes on in suspend; what fell due
 *	meanwhile is delivered at resume. Wakes the machine with TIMERWHEEL_SETUP_ALARM only.
 * @TIMERWHEEL_CLOCK_REALTIME: CLOCK_REALTIME: a set clock moves the deadlines with it
 *	(relative ones are turned into absolute ones when they are armed)
 * @TIMERWHEEL_CLOCK_MANUAL: starts at 0 and moves only by TIMERWHEEL_IOC_ADVANCE
 */
enum timerwheel_clock {
	TIMERWHEEL_CLOCK_MONOTONIC	= 0,
	TIMERWHEEL_CLOCK_BOOTTIME	= 1,
	TIMERWHEEL_CLOCK_REALTIME	= 2,
	TIMERWHEEL_CLOCK_MANUAL		= 3
};

/**
 * struct timerwheel_info - TIMERWHEEL_IOC_INFO: what this kernel can and how this wheel is set
 * @size: in: sizeof(struct timerwheel_info) of the caller; out: the kernel's. The
 *	kernel fills as much as both know and zeroes the rest.
 * @flags: in: 0; out: TIMERWHEEL_INFO_* bits
 * @abi_version: TIMERWHEEL_ABI_VERSION of the kernel
 * @batch_max: most elements in one call
 * @features: bits of additions to version 1 (none yet)
 * @errata: bits of known faults that were mended without a new version (none yet)
 * @tick_min: shortest tick SETUP grants on a running clock, in ns (a MANUAL wheel: 1)
 * @tick_max: longest tick, in ns
 * @slots_min: fewest slots per level
 * @slots_max: most slots per level
 * @capacity_max: most timers in a wheel
 * @clock: this wheel's clock (enum timerwheel_clock)
 * @tick: this wheel's tick (granularity), in ns
 * @slots: this wheel's slots per level
 * @capacity: most timers in this wheel
 * @slack: this wheel's default slack, in ns
 * @wake_ns: a reader is woken at most so many ns after the first event...
 * @wake_events: ...or when so many events wait
 * @generation_bits: in a word of the deadline table the lower bits that hold a generation
 * @user_memory: bytes of kernel memory charged to the user who opened this wheel, for all wheels
 *	and monitors. Memory is charged as it is first used and given back when the wheel is closed.
 * @user_memory_max: and the most that may be
 * @now: the wheel's clock, as the caller sees it, in ns
 * @ring: length of this wheel's event ring, 0: it has none
 * @ring_max: the longest there may be
 * @event_size: bytes of an event of this wheel, from read, in its ring and of its monitors
 * @event_size_max: bytes of the largest that this kernel knows
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

/**
 * TIMERWHEEL_INFO_SETTLED - SETUP was done, a timer was armed or the deadline table was mapped:
 * too late for SETUP
 */
#define TIMERWHEEL_INFO_SETTLED	(1U << 0)
/** TIMERWHEEL_INFO_CLOSED - the wheel takes no new timers (TIMERWHEEL_DRAIN_CLOSE) */
#define TIMERWHEEL_INFO_CLOSED	(1U << 1)
/** TIMERWHEEL_INFO_CLOCK_SET - the wheel was set up with TIMERWHEEL_SETUP_CLOCK_SET */
#define TIMERWHEEL_INFO_CLOCK_SET	(1U << 2)
/** TIMERWHEEL_INFO_ALARM - the wheel was set up with TIMERWHEEL_SETUP_ALARM */
#define TIMERWHEEL_INFO_ALARM		(1U << 3)

/**
 * TIMERWHEEL_SETUP_CLOCK_SET - SETUP: an event tells when the wheel's clock, which must be REALTIME
 * (else EINVAL), is set: TIMERWHEEL_EVENT_CLOCK_SET
 */
#define TIMERWHEEL_SETUP_CLOCK_SET	(1U << 0)
/**
 * TIMERWHEEL_SETUP_ALARM - SETUP: the wheel's timers wake the machine from suspend, as
 * CLOCK_BOOTTIME_ALARM and CLOCK_REALTIME_ALARM do
 *
 * The clock must be BOOTTIME or REALTIME (else EINVAL). Needs CAP_WAKE_ALARM (EPERM) and a
 * hardware clock that can wake the machine (EOPNOTSUPP). Suspend fails with EBUSY while a timer is
 * to fall due within 2 seconds. The machine may wake too early for timers that were put off, and
 * when thousands of them are far away.
 */
#define TIMERWHEEL_SETUP_ALARM		(1U << 1)

/**
 * struct timerwheel_setup - TIMERWHEEL_IOC_SETUP: once, before the first timer
 * @size: sizeof(struct timerwheel_setup)
 * @flags: TIMERWHEEL_SETUP_*
 * @clock: enum timerwheel_clock
 * @slots: slots per level, rounded up to a power of two; 0: 256
 * @tick: length of a tick in ns; 0: 1,000,000 (1 ms)
 * @capacity: most timers in the wheel; 0: 4,194,304. Memory is used as timers come.
 * @wake_events: wake a reader when so many events wait...; 0: 1
 * @wake_ns: ...or so many ns after the first of them, whichever is first, on the
 *	wheel's clock: when REALTIME is set back, readers may sleep as much longer, until
 *	more happens in the wheel. Must not be 0 when @wake_events is above 1.
 * @slack: slack of timers that do not bring their own, in ns
 * @ring: length of the event ring, rounded up to a power of two, at most
 *	TIMERWHEEL_RING_MAX; 0: there is none, events are read. See struct timerwheel_ring.
 * @event_size: bytes of an event as the caller knows it, sizeof(struct timerwheel_event), a
 *	multiple of 8 up to 4096; 0: 48, that of version 1. Granted is at most what the kernel
 *	knows.
 *
 * The kernel writes back what it granted. Errors: EINVAL, E2BIG, EFAULT, EBUSY; with a ring
 * also ENOMEM and EDQUOT; with TIMERWHEEL_SETUP_ALARM also EPERM and EOPNOTSUPP.
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
 * struct timerwheel_batch - one call on an array of timers
 * @size: sizeof(struct timerwheel_batch)
 * @flags: TIMERWHEEL_DRAIN_CLOSE for DRAIN, else 0
 * @elems: address of the array
 * @count: elements in it, 0 to TIMERWHEEL_BATCH_MAX
 * @elem_size: size of one element, sizeof the structure named with each call; what is larger than
 *	the kernel knows costs more
 * @cursor: LIST: where to go on: 0 at first, then what the last call wrote here.
 *	Other calls: 0.
 *
 * The ioctl returns the number of elements done (see the top of this file).
 */
struct timerwheel_batch {
	__u32 size;
	__u32 flags;
	__aligned_u64 elems;
	__u32 count;
	__u32 elem_size;
	__aligned_u64 cursor;
};

/** TIMERWHEEL_WAS_NONE - result of ADD: there was no timer with this key */
#define TIMERWHEEL_WAS_NONE	0
/** TIMERWHEEL_WAS_PENDING - result: the timer was pending; that arming has ended */
#define TIMERWHEEL_WAS_PENDING	1
/** TIMERWHEEL_WAS_DUE - result: the timer was due; its event will never be read */
#define TIMERWHEEL_WAS_DUE	2

/** TIMERWHEEL_ABS - ADD, MOVE, ADVANCE: the time is absolute, not relative to now */
#define TIMERWHEEL_ABS		(1U << 0)
/** TIMERWHEEL_EXCL - ADD: fail with EEXIST if the key exists, do not replace it */
#define TIMERWHEEL_EXCL		(1U << 1)
/** TIMERWHEEL_MATCH - ADD, MOVE, REMOVE: only if the timer exists and its value is @match */
#define TIMERWHEEL_MATCH	(1U << 2)
/** TIMERWHEEL_SLACK - ADD: use @slack of the element, not the wheel's default */
#define TIMERWHEEL_SLACK	(1U << 3)

/**
 * struct timerwheel_add - element of TIMERWHEEL_IOC_ADD: arm a timer
 * @key: its name, any number, unique in the wheel. A timer that exists is replaced:
 *	new value, deadline, period, slack; an event of the old arming is withdrawn.
 * @value: handed back in the event
 * @deadline: when, in ns from now (signed), or absolute with TIMERWHEEL_ABS. A time that
 *	has passed makes the timer due at once.
 * @period: 0: one shot; else ns from each deadline to the next
 * @slack: how many ns later than necessary it may fire so that it can share
 *	a wake-up with others (with TIMERWHEEL_SLACK, else 0). Rounded down to ticks,
 *	2^32 - 1 of them, and 2^61 ns.
 * @match: value the timer must have now (with TIMERWHEEL_MATCH, else 0)
 * @flags: TIMERWHEEL_ABS, _EXCL or _MATCH (not both), _SLACK
 * @result: out: TIMERWHEEL_WAS_* or a negative error
 * @index: out: the timer's place in the wheel's table; its own until it is removed,
 *	drained or (one shot) delivered
 * @generation: out: which of the owners of that place it is; see TIMERWHEEL_MMAP_DEADLINES
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
 * struct timerwheel_move - element of TIMERWHEEL_IOC_MOVE: a new deadline
 * @key: which timer
 * @deadline: when, in ns from now (signed), or absolute with TIMERWHEEL_ABS. A time that has
 *	passed makes the timer due at once. Value, period and slack stay. An event of the old
 *	deadline is withdrawn.
 * @match: value the timer must have now (with TIMERWHEEL_MATCH, else 0)
 * @flags: TIMERWHEEL_ABS, TIMERWHEEL_MATCH
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
 * struct timerwheel_remove - element of TIMERWHEEL_IOC_REMOVE: take a timer out
 * @key: which timer
 * @match: value the timer must have now (with TIMERWHEEL_MATCH, else 0)
 * @value: out: its value
 * @left: out: ns that were left until its deadline; negative: ns since then
 * @flags: TIMERWHEEL_MATCH
 * @result: out: TIMERWHEEL_WAS_PENDING, TIMERWHEEL_WAS_DUE or a negative error. On an
 *	error @value and @left are not written.
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
 * struct timerwheel_entry - element of GET, LIST and DRAIN: a timer as it is (was)
 * @key: its key (GET: in)
 * @value: its value
 * @deadline: when it falls (fell) due, absolute, in ns
 * @left: ns until then; negative: ns since then
 * @period: its period in ns, 0: one shot
 * @slack: its slack in ns, as granted
 * @flags: in: 0; out: 0
 * @result: TIMERWHEEL_WAS_PENDING or TIMERWHEEL_WAS_DUE, or a negative error (GET
 *	only; nothing else is written then)
 * @index: its place in the wheel's table
 * @generation: which of the owners of that place it is
 *
 * LIST and DRAIN only write elements; what was in them does not matter.
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

/**
 * TIMERWHEEL_DRAIN_CLOSE - DRAIN: from now on ADD fails with ESHUTDOWN. When the
 * call returns, no ADD that began before it is still under way; that is so even if
 * it fails with EFAULT, EINTR or ENOMEM. Periodic timers that are pending or due go
 * on until they are drained.
 */
#define TIMERWHEEL_DRAIN_CLOSE	(1U << 0)

/**
 * struct timerwheel_advance - TIMERWHEEL_IOC_ADVANCE: move a MANUAL wheel's time forward
 * @size: sizeof(struct timerwheel_advance)
 * @flags: TIMERWHEEL_ABS
 * @time: by how many ns (negative: EINVAL), or to which time with TIMERWHEEL_ABS
 * @now: out: the time that it is now
 * @expired: out: timers that fell due in this call
 *
 * The time passes through each tick in order: timers fire in the order of their
 * ticks, and each one's fired time is that of its tick. Errors: EINVAL (not a
 * MANUAL wheel; the past), E2BIG, EFAULT, EINTR (a fatal signal).
 */
struct timerwheel_advance {
	__u32 size;
	__u32 flags;
	__aligned_u64 time;
	__aligned_u64 now;
	__aligned_u64 expired;
};

/**
 * struct timerwheel_event - what read() returns, an array of them
 * @key: the timer's key
 * @value: the timer's value
 * @deadline: when it fell due, absolute, in ns
 * @fired: when the kernel saw that; never before @deadline
 * @overruns: periodic: deadlines since then that this event stands for as well
 * @flags: TIMERWHEEL_EVENT_*
 * @index: the timer's place in the wheel's table
 *
 * Events come in the order in which timers fired on a CPU: by tick, and within
 * a tick in any order. read() returns as many as fit, at least one; a buffer that is
 * not a multiple of their size is used up to the last whole one.
 *
 * The structure may grow at its end, and events are as long as SETUP has granted (@event_size of
 * INFO): 48 bytes unless somebody asked for more. Who goes on with a wheel that a newer program has
 * set up steps from one to the next by that, and leaves alone what it does not know.
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

/** TIMERWHEEL_EVENT_PERIODIC - the timer is armed again */
#define TIMERWHEEL_EVENT_PERIODIC	(1U << 0)
/**
 * TIMERWHEEL_EVENT_MISSED - of a monitor: no event, but that @overruns events are missing here;
 * all else is 0
 */
#define TIMERWHEEL_EVENT_MISSED		(1U << 1)
/**
 * TIMERWHEEL_EVENT_CLOCK_SET - no timer: CLOCK_REALTIME was set, or had a leap second, since SETUP
 * or the last such event (TIMERWHEEL_SETUP_CLOCK_SET)
 *
 * @deadline and @fired are the time by the new clock when the kernel noticed, @overruns how many
 * more sets this event stands for, all else is 0. It comes ahead of all that waits, and so before
 * timers that are due because of it, and wakes readers at once. Sets that have no effect when
 * the kernel looks, since another one undid them, are not told of. Suspend and slewing
 * (adjtime) set no clock. It counts as no timer in STATS. With a ring that is full it waits
 * as due timers do.
 */
#define TIMERWHEEL_EVENT_CLOCK_SET	(1U << 2)

/**
 * struct timerwheel_monitor - TIMERWHEEL_IOC_MONITOR: a descriptor that sees a copy of each event
 * @size: sizeof(struct timerwheel_monitor)
 * @flags: TIMERWHEEL_MONITOR_*
 * @events: how many may wait for its readers, rounded up to a power of two, at most
 *	TIMERWHEEL_RING_MAX; 0: 1024
 * @reserved: 0
 *
 * The call returns the new descriptor. read() on it gives, as on a wheel without a ring, what is
 * delivered from now on, in the order of delivery; several readers of one monitor
 * share its events. The wheel waits for nobody: of a monitor that has more than @events to read the
 * oldest are missing, and counted in their place, before those that follow
 * (TIMERWHEEL_EVENT_MISSED). Events that are withdrawn before they are delivered are not seen.
 *
 * All monitors of a wheel share one log, which is as long as the longest that there was since there
 * was none. It counts as so many timers of the user who opened the wheel, until the last
 * monitor is closed.
 *
 * A monitor does not keep the wheel open: once that is closed it has an end (read() returns 0,
 * EPOLLHUP). Times are those of the wheel's reader. Errors: EINVAL, E2BIG, EFAULT, ENOMEM, EDQUOT
 * (its memory is charged to the user who opened the wheel), ENOSPC (TIMERWHEEL_MONITORS_MAX),
 * EMFILE, ENFILE.
 */
struct timerwheel_monitor {
	__u32 size;
	__u32 flags;
	__u32 events;
	__u32 reserved;
};

/** TIMERWHEEL_MONITOR_CLOEXEC - close it on exec */
#define TIMERWHEEL_MONITOR_CLOEXEC	(1U << 0)
/** TIMERWHEEL_MONITOR_NONBLOCK - read() does not block */
#define TIMERWHEEL_MONITOR_NONBLOCK	(1U << 1)

/** TIMERWHEEL_MONITORS_MAX - most monitors of a wheel */
#define TIMERWHEEL_MONITORS_MAX		16

/** TIMERWHEEL_RING_MAX - most events in an event ring */
#define TIMERWHEEL_RING_MAX	65536U

/**
 * struct timerwheel_ring - the event ring, mapped at TIMERWHEEL_MMAP_RING
 * @tail: events the kernel has written, modulo 2^32
 * @mask: length of the ring, less one
 * @event_size: bytes of an event in it
 * @reserved1: nothing
 * @reserved2: nothing
 * @flags: TIMERWHEEL_RING_OVERFLOW, set and cleared by the kernel
 * @head: events that the reader has taken, modulo 2^32; written by the reader
 * @waiting: written by the reader: 1: it sleeps, or is about to; 0: it is awake
 *
 * Of a wheel that was set up with a ring, events are not read (EINVAL) but delivered into it:
 * event number i is in element i & @mask of the array of events, each of @event_size bytes, that
 * begins TIMERWHEEL_RING_EVENTS bytes after the start of this structure. There is one reader. To
 * take events:
 *
 *	load @tail (acquire); copy the events from @head on up to it; store @head (release)
 *
 * An event in the ring is delivered: REMOVE, MOVE and DRAIN do not see its arming any more, and
 * who maps the ring after a reader has died goes on where that one stored @head.
 *
 * When there is no room due timers wait in the kernel, where they can still be withdrawn, and
 * TIMERWHEEL_RING_OVERFLOW is set: once there is room, TIMERWHEEL_IOC_FLOW lets them in, or the
 * next timers that fall due do, some at a time, in the order in which they fired.
 *
 * To sleep: store 1 to @waiting, a full barrier, and look at @tail and @flags once more; if there
 * is nothing, poll; store 0 once awake. While it is 0 no wake-up is sent (neither to poll nor by
 * SIGIO), however many events come.
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

/** TIMERWHEEL_RING_OVERFLOW - timers are due that the ring had no room for */
#define TIMERWHEEL_RING_OVERFLOW	(1U << 0)

/** TIMERWHEEL_RING_EVENTS - where the events are, in bytes from the start of the ring */
#define TIMERWHEEL_RING_EVENTS		128

/**
 * TIMERWHEEL_MMAP_RING - offset for mmap() of the event ring, with MAP_SHARED; its length is
 * TIMERWHEEL_RING_EVENTS + ring * event_size, rounded up to pages. Errors:
 * EINVAL (not MAP_SHARED, PROT_EXEC, more than that, no ring).
 */
#define TIMERWHEEL_MMAP_RING		(1ULL << 40)

/**
 * TIMERWHEEL_MMAP_DEADLINES - offset for mmap() of the deadline table: a store in memory puts
 * a timer off, without a system call
 *
 * The table is an array of __u64, one for each @index that ADD, GET and LIST tell, mapped with
 * MAP_SHARED. A store of
 *
 *	(deadline rounded up to a multiple of 2^generation_bits) | generation
 *
 * asks for that absolute deadline, in ns, where generation is what ADD, GET and LIST tell with the
 * index, and generation_bits what INFO tells (10 to 20: less than a tick as a rule). It is made by
 * any thread or process that has the mapping, by a 64-bit compare-and-swap:
 *
 *	load the word; if its generation is another one the timer is gone; swap, or look again
 *
 * for the kernel stores the generation, and no deadline, whenever an index gets an owner and with
 * each ADD and MOVE. A plain 64-bit store will do for a program that never stores for a timer that
 * is gone: else it may undo what the present owner of the index has stored, and that timer fires
 * at the deadline that it had before.
 *
 * The kernel reads the word when the old deadline comes, or earlier: a later one puts the timer
 * off, one that is not later changes nothing. So the last store counts, however many there were,
 * and the kernel has nothing to do before the old deadline. A store that comes too late
 * changes nothing: the timer is due, and its event is delivered. GET, LIST, REMOVE and DRAIN tell
 * the deadline that was stored; ADD and MOVE forget it and set theirs. A periodic timer's later
 * deadlines follow from the one it was put off to; what is stored while it is due counts for
 * its next one.
 *
 * An index may be used for another timer after its own has ended, with another
 * generation: a swap for the former one is not made, but for the odds of
 * 1 to 2^generation_bits - 1 that many others had it in between. Deadlines are
 * those of the time namespace in which the table was first mapped; in one where the wheel's clock
 * says another time mmap() fails with EXDEV.
 *
 * Words exist for as many timers as the wheel had at once, in whole pages; beyond them a load or
 * store gets SIGBUS. Errors of mmap(): EINVAL (not MAP_SHARED, PROT_EXEC, beyond the wheel's
 * capacity), EXDEV, ENOMEM, EACCES (PROT_WRITE, and the descriptor is not open for writing). From
 * the first mapping on ADD needs 8 more bytes for each timer, and SETUP is EBUSY.
 */
#define TIMERWHEEL_MMAP_DEADLINES	0ULL

/** TIMERWHEEL_LATENESS_BUCKETS - length of the histogram in struct timerwheel_stats */
#define TIMERWHEEL_LATENESS_BUCKETS	40

/**
 * struct timerwheel_stats - TIMERWHEEL_IOC_STATS: counters of a wheel since it was opened
 * @size: in: sizeof(struct timerwheel_stats) of the caller; out: the kernel's
 * @flags: 0
 * @pending: timers pending now
 * @due: timers due now and not yet delivered
 * @armed: successful ADDs. Each arming ends as one of @delivered, @removed, @replaced,
 *	@drained; a periodic timer's delivery ends one and begins the next (@rearmed).
 * @rearmed: periodic timers armed again by their delivery.
 *	armed + rearmed = delivered + removed + replaced + drained + pending + due
 * @moved: successful MOVEs
 * @removed: successful REMOVEs
 * @replaced: ADDs that replaced a timer
 * @drained: timers returned by DRAIN
 * @delivered: events handed to readers
 * @overruns: deadlines of periodic timers that had no event of their own
 * @withdrawn: events taken back by a REMOVE, MOVE, ADD or DRAIN on a due timer
 * @cascades: timers moved from one level of the wheel to a lower one
 * @requeues: timers visited before their deadline and queued again: it was put off
 *	meanwhile, or they waited in the remainder of a cascade that was late
 * @wakeups: times that readers were woken
 * @firings: times that the wheel was run because it had work again. Wheels with work in the same
 *	tick share an interrupt.
 * @passes: batches: times that the wheel was worked on under one hold of its lock
 * @pass_max_timers: most timers handled in one batch
 * @pass_max_ns: longest batch, in ns
 * @memory: bytes of kernel memory the wheel occupies
 * @late_max: largest lateness (fired - deadline), in ns
 * @lateness: lateness[i] counts timers that fired less than 2^i ns after their deadline,
 *	and not less than 2^(i-1); the last one also all that were later
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
 * TIMERWHEEL_IOC_DRAIN - struct timerwheel_batch of struct timerwheel_entry: take out up
 * to count timers, pending and due alike. Call until it returns 0: then there was
 * nothing left that was armed before the call. The order is not specified.
 */
#define TIMERWHEEL_IOC_DRAIN	_IO(TIMERWHEEL_IOC_TYPE, 0x05)
/** TIMERWHEEL_IOC_GET - struct timerwheel_batch of struct timerwheel_entry: look, by key */
#define TIMERWHEEL_IOC_GET	_IO(TIMERWHEEL_IOC_TYPE, 0x06)
/**
 * TIMERWHEEL_IOC_LIST - struct timerwheel_batch of struct timerwheel_entry: look at all,
 * a page of count at a time; returns 0 at the end. A timer that exists from the
 * first call to the last is seen exactly once, whatever happens to others.
 */
#define TIMERWHEEL_IOC_LIST	_IO(TIMERWHEEL_IOC_TYPE, 0x07)
/** TIMERWHEEL_IOC_STATS - struct timerwheel_stats */
#define TIMERWHEEL_IOC_STATS	_IO(TIMERWHEEL_IOC_TYPE, 0x08)
/** TIMERWHEEL_IOC_ADVANCE - struct timerwheel_advance */
#define TIMERWHEEL_IOC_ADVANCE	_IO(TIMERWHEEL_IOC_TYPE, 0x09)
/**
 * TIMERWHEEL_IOC_FLOW - no argument: let events into the event ring as far as there is room.
 * Returns how many. Errors: EINVAL (no ring).
 */
#define TIMERWHEEL_IOC_FLOW	_IO(TIMERWHEEL_IOC_TYPE, 0x0a)
/** TIMERWHEEL_IOC_MONITOR - struct timerwheel_monitor */
#define TIMERWHEEL_IOC_MONITOR	_IO(TIMERWHEEL_IOC_TYPE, 0x0b)

#endif /* _UAPI_LINUX_TIMERWHEEL_H */
