// SPDX-License-Identifier: MIT OR GPL-2.0-only

// Package timerwheel provides one descriptor for millions of timeouts. It uses /dev/timerwheel, or a
// wheel inside the process if the kernel module is not loaded. It needs Linux on a 64-bit machine
// and Go 1.19, but neither cgo nor other modules.
//
// A [Wheel] holds timers. Each timer has a key that the program chooses. [Wheel.Add], [Wheel.Move]
// and [Wheel.Remove] work on slices of timers, and [Wheel.Read] returns the events of timers whose
// deadlines have passed. [Wheel.Backend] reports whether [Open] has created a wheel of the device or
// a wheel inside the process. Both kinds of wheel make the same promises:
//
//   - A timer never fires early. It fires at most a tick (1 ms by default) late, plus the requested
//     slack, plus the delay of the scheduler.
//   - Each arming ends in exactly one way: its event is read, or it is removed, replaced, drained
//     or cancelled, or the wheel is closed.
//   - No timer is lost, and while no timer is due, no code runs.
//
// # Times
//
// Relative times are a [time.Duration] or an int64 in ns. A negative relative time makes the timer
// due at once. Absolute times are an int64 in ns of the wheel's clock, which [Wheel.Now] reads.
//
// # The loop
//
// A program that was stopped for longer than a timeout finds messages that arrived in time, and also
// events of the timers that these messages would have restarted. To close no live connection, use
// this loop, which the example Loop shows:
//
//  1. Handle the messages of all ready connections. For each message read the clock after the
//     message, remember the absolute deadline, and restart the timer with Add and [Abs].
//  2. Flush the queue and take events until there are none. Flush before each take, because a
//     restart withdraws an event that was not taken, and because handling an event can restart
//     timers. At each event, receive what has arrived without blocking. Then ignore the event if its
//     deadline is earlier than the connection's deadline: it belongs to an earlier arming.
//  3. Wait only after a take has returned no event.
//
// If the timer is resident, you can restart it with Move or [Timer.ArmAt] instead. Otherwise a Move
// fails with ENOENT after the event was taken.
//
// [Wheel.Read] waits only after a take that returned nothing. A goroutine that handles only events
// can therefore flush and call Read in turn. If other goroutines handle the messages, use a lock in
// each connection for the restart and for the comparison.
//
// # Memory instead of calls
//
// With [Options.Table], timers are armed, refreshed and cancelled in memory ([Table]). With
// [Options.Resident], they also continue to exist after they have fired ([Timer]). With
// [Options.Ring], events are also delivered in memory.
//
// # Errors
//
// A call returns [ErrClosed] or an [*Error], in which errors.Is finds the syscall.Errno. Each
// element of a slice has its own [Result].
//
// # Packages on top
//
// Package timingwheel has the interface of go-zero's TimingWheel. Package conndeadline wraps
// connections so that their deadlines are set in memory. Package ttlcache is a cache whose entries
// expire.
//
// # Missing features
//
// These packages do not have deadlines on TCP connections (ADD_SOCKET), which the kernel ends
// itself, commands for io_uring, or arm, refresh and cancel in a [Queue]. Use
// libtimerwheel for these.
package timerwheel
