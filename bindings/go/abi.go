// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import "time"

// The layouts and numbers of <linux/timerwheel.h>; abi_test.go compares them with the header.
// Elements of arrays have the layout of the kernel, so that a call copies nothing.

const (
	abiVersion = 1
	batchMax   = 65536
	ringMax    = 65536
	ringEvents = 128

	mmapDeadlines = 0
	mmapRing      = 1 << 40

	ringOverflow = 1 << 0

	setupClockSet = 1 << 0
	setupAlarm    = 1 << 1
	setupResident = 1 << 2
	setupTable    = 1 << 3

	infoSettled  = 1 << 0
	infoClosed   = 1 << 1
	infoResident = 1 << 4
	infoTable    = 1 << 5

	featureTable  = 1 << 0
	featureHandle = 1 << 1

	drainClose = 1 << 0

	monitorCloexec  = 1 << 0
	monitorNonblock = 1 << 1

	stateCancelled = 0
	stateArmed     = 1
	stateParked    = 2
	stateFired     = 3
)

const (
	iocInfo         = 0xf500
	iocSetup        = 0xf501
	iocAdd          = 0xf502
	iocMove         = 0xf503
	iocRemove       = 0xf504
	iocDrain        = 0xf505
	iocGet          = 0xf506
	iocList         = 0xf507
	iocStats        = 0xf508
	iocAdvance      = 0xf509
	iocFlow         = 0xf50a
	iocMonitor      = 0xf50b
	iocMoveHandle   = 0xf50c
	iocRemoveHandle = 0xf50d
)

// TimeMax is the largest time, in ns: 292 years, "never" for practical purposes. Later times are
// treated as TimeMax.
const TimeMax = 1<<63 - 1

// Flags of elements.
const (
	// Abs: the time is absolute, a value of the wheel's clock ([Wheel.Now]), not relative to now.
	Abs uint32 = 1 << 0
	// Excl: Add fails with EEXIST if a timer has the key, instead of replacing it. Move of a
	// timer in a wheel with a deadline table fails with EEXIST if it is armed or due.
	Excl uint32 = 1 << 1
	// Match: the element succeeds only if the timer exists and its value is the Match of the
	// element. Otherwise it fails with ENOENT or ESTALE.
	Match uint32 = 1 << 2
	// Slack: Add uses the Slack of the element instead of the wheel's default.
	Slack uint32 = 1 << 3
	// Linger: the Period of an Add is a linger. When the event of the resident timer is
	// delivered, the timer is queued again, cancelled, for that long, and until then arming it
	// needs no system call.
	Linger uint32 = 1 << 4
)

// Flags of events.
const (
	// EventPeriodic: the timer is periodic and was armed again.
	EventPeriodic uint32 = 1 << 0
	// EventMissed: a monitor has lost events at this point; Overruns is their number.
	EventMissed uint32 = 1 << 1
	// EventClockSet: CLOCK_REALTIME was set ([Options.ClockSet]). The event belongs to no timer.
	EventClockSet uint32 = 1 << 2
)

// Clock is the clock of a wheel.
type Clock uint32

const (
	// Monotonic is CLOCK_MONOTONIC, as package time uses it. It stops during suspend.
	Monotonic Clock = 0
	// Boottime is CLOCK_BOOTTIME. It continues during suspend.
	Boottime Clock = 1
	// Realtime is CLOCK_REALTIME. Deadlines are absolute: setting the clock brings them nearer
	// or moves them away.
	Realtime Clock = 2
	// Manual starts at 0 and advances only by [Wheel.Advance]. It is for tests.
	Manual Clock = 3
)

// Handle identifies a timer by its place in the wheel's table, in the deadline table and in calls that
// look up no key. Add, Get, List and Drain return it. It becomes invalid when the timer ends. Do not
// keep handles of timers that have ended: after a place has had about a thousand owners or more,
// generations repeat, and an old handle can refer to another timer.
type Handle struct {
	index      uint32
	generation uint32
}

// Add is an element of [Wheel.Add].
type Add struct {
	Key      uint64        // any number; if a timer has it, that timer is replaced
	Value    uint64        // returned in the event
	Deadline int64         // ns from now, or absolute with [Abs]; negative or past: due at once
	Period   time.Duration // from each deadline to the next; 0: fires once
	Slack    time.Duration // with [Slack]: the extra time by which it may be late; negative: 0
	Match    uint64        // with [Match]: the value that the timer must have now; else 0
	Flags    uint32        // [Abs], [Slack], [Linger], and [Excl] or [Match]
	Result   Result        // out
	Handle   Handle        // out
}

// Move is an element of [Wheel.Move].
type Move struct {
	Key      uint64
	Deadline int64  // ns from now, or absolute with [Abs]; negative or past: due at once
	Match    uint64 // with [Match]: the value that the timer must have now; else 0
	Flags    uint32 // [Abs], [Match]; with a deadline table also [Excl]
	Result   Result // out
}

// Remove is an element of [Wheel.Remove].
type Remove struct {
	Key    uint64
	Match  uint64        // with [Match]: the value that the timer must have now; else 0
	Value  uint64        // out: the timer's value
	Left   time.Duration // out: until its deadline; negative: since its deadline
	Flags  uint32        // [Match]
	Result Result        // out
}

// MoveHandle is an element of [Wheel.MoveHandles].
type MoveHandle struct {
	Deadline int64 // ns from now, or absolute with [Abs]; negative or past: due at once
	Handle   Handle
}

// Result returns the result of the call. The kernel writes it to the Handle, so set the Handle again
// before the next call.
func (m *MoveHandle) Result() Result { return Result(int32(m.Handle.generation)) }

// RemoveHandle is an element of [Wheel.RemoveHandles].
type RemoveHandle struct {
	Value  uint64 // out: the timer's value
	Handle Handle
}

// Result returns the result of the call, as [MoveHandle.Result] does.
func (r *RemoveHandle) Result() Result { return Result(int32(r.Handle.generation)) }

// Entry describes a timer. It is an element of [Wheel.Get], [Wheel.List] and [Wheel.Drain].
type Entry struct {
	Key      uint64 // in for Get
	Value    uint64
	Deadline int64         // absolute, in ns
	Left     time.Duration // until its deadline; negative: since its deadline
	Period   time.Duration // or, with [Linger] in Flags, its linger; 0: it fires once
	Slack    time.Duration // rounded down to ticks
	Flags    uint32        // in: 0; out: [Linger], or 0
	Result   Result        // WasPending, WasDue or WasParked; after Get also an error
	Handle   Handle
}

// Event reports that the deadline of a timer has passed.
type Event struct {
	Key      uint64
	Value    uint64
	Deadline int64  // the deadline that has passed: absolute, in ns
	Fired    int64  // when the timer fired: absolute, in ns; never before Deadline
	Overruns uint64 // periodic timers: number of later deadlines that have also passed
	Flags    uint32 // EventPeriodic, ...
	index    uint32
}

// Info has the limits and settings of a wheel. Times are in ns.
type Info struct {
	size           uint32
	Flags          uint32 // TIMERWHEEL_INFO_* of <linux/timerwheel.h>
	ABIVersion     uint32
	BatchMax       uint32
	Features       uint64 // TIMERWHEEL_FEATURE_*
	Errata         uint64
	TickMin        uint64
	TickMax        uint64
	SlotsMin       uint32
	SlotsMax       uint32
	CapacityMax    uint32 // timers
	Clock          Clock
	Tick           uint64
	Slots          uint32
	Capacity       uint32 // timers
	Slack          uint64
	WakeAfter      uint64
	WakeEvents     uint32
	GenerationBits uint32
	UserMemory     uint64 // bytes charged to the user, for all wheels
	UserMemoryMax  uint64
	Now            uint64 // the time of the wheel's clock
	Ring           uint32 // events; 0: no ring
	RingMax        uint32
	EventSize      uint32
	EventSizeMax   uint32
}

// Stats has the counters of a wheel since it was opened. The process back end leaves Cascades to
// PassMaxTime 0. While no operation is in progress on the wheel,
//
//	Armed + Rearmed = Delivered + Removed + Replaced + Drained + Pending + Due + Parked
type Stats struct {
	size          uint32
	flags         uint32
	Pending       uint64 // now
	Due           uint64 // now, and not yet delivered
	Armed         uint64 // successful adds
	Rearmed       uint64 // timers that continued to exist after a delivery: periodic and resident
	Moved         uint64
	Removed       uint64
	Replaced      uint64 // by Add
	Drained       uint64
	Delivered     uint64
	Overruns      uint64
	Withdrawn     uint64 // events withdrawn by Add, Move, Remove or Drain of a due timer
	Cascades      uint64
	Requeues      uint64
	Wakeups       uint64
	Firings       uint64
	Passes        uint64
	PassMaxTimers uint64
	PassMaxTime   uint64 // ns
	Memory        uint64 // bytes
	LateMax       uint64 // ns
	Lateness      [40]uint64
	Parked        uint64 // timers that are neither pending nor due now
	Sockets       uint64
	Aborted       uint64
}

type abiSetup struct {
	size       uint32
	flags      uint32
	clock      uint32
	slots      uint32
	tick       uint64
	capacity   uint32
	wakeEvents uint32
	wakeNs     uint64
	slack      uint64
	ring       uint32
	eventSize  uint32
}

type abiBatch struct {
	size     uint32
	flags    uint32
	elems    uint64
	count    uint32
	elemSize uint32
	cursor   uint64
}

type abiAdvance struct {
	size    uint32
	flags   uint32
	time    uint64
	now     uint64
	expired uint64
}

type abiMonitor struct {
	size     uint32
	flags    uint32
	events   uint32
	reserved uint32
}

type abiRing struct {
	tail      uint32
	mask      uint32
	flags     uint32
	eventSize uint32
	reserved1 [12]uint32
	head      uint32
	waiting   uint32
	reserved2 [14]uint32
}
