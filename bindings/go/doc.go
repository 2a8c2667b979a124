// SPDX-License-Identifier: MIT OR GPL-2.0-only

// Package timerwheel is /dev/timerwheel for Go: one descriptor for millions of timeouts. It needs
// neither cgo nor other modules, Linux on a 64-bit machine, and Go 1.19.
//
// A [Wheel] holds timers. Each has a key that the program chooses; [Wheel.Add], [Wheel.Move] and
// [Wheel.Remove] work on slices of them, and [Wheel.Read] returns the events of those whose
// deadlines have passed. Where the module is not loaded, [Open] makes a wheel inside the process;
// [Wheel.Backend] tells. Both promise the same:
//
//   - a timer never fires early, and at most a tick (1 ms by default) late, plus the slack asked
//     for, plus what the scheduler adds;
//   - each arming ends in exactly one way: its event is read, or it is removed, replaced, drained
//     or cancelled, or the wheel is closed;
//   - nothing is lost, and while nothing is due nothing runs.
//
// # Times
//
// Relative times are a [time.Duration] or int64 in ns, and may be negative: then the timer is due at
// once. Absolute times are int64 in ns of the wheel's clock, which [Wheel.Now] reads.
//
// # Memory instead of calls
//
// With [Options.Table] a timer is postponed by a store: [Table.Touch]. With [Options.Resident]
// timers stay when they have fired, and are armed, refreshed and cancelled in memory: [Timer].
// With [Options.Ring] events are delivered into memory, too.
//
// # Errors
//
// A call returns [ErrClosed] or an [*Error], in which errors.Is finds the syscall.Errno. Each
// element of a slice has a [Result] of its own.
//
// # Packages on top
//
// timingwheel has the interface of go-zero's TimingWheel, conndeadline wraps connections so that their
// deadlines are stores, and ttlcache is a cache whose entries expire.
//
// # What is not here
//
// Deadlines on TCP connections (ADD_SOCKET), which the kernel ends itself, commands for io_uring, and
// arm, refresh and cancel of resident timers in a [Queue]. libtimerwheel has them.
package timerwheel
