// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// Backend is the implementation of a wheel.
type Backend int

const (
	// Auto is the back end that the environment variable TIMERWHEEL_BACKEND names ("device",
	// "process" or "auto"). If it is "auto" or not set, Open uses Device, or Process if there is
	// no device. Without permission for the device Open fails.
	Auto Backend = iota
	// Device is the kernel module. Processes can share a wheel, and it survives its daemon as
	// long as another process has it open.
	Device
	// Process is a wheel inside this process. It does not support sharing and monitors.
	Process
)

// String returns "auto", "device" or "process".
func (b Backend) String() string {
	names := [...]string{"auto", "device", "process"}
	if b < 0 || int(b) >= len(names) {
		return fmt.Sprintf("Backend(%d)", int(b))
	}
	return names[b]
}

// Options are the settings of a wheel. The zero value of each means its default.
type Options struct {
	Backend    Backend
	Path       string        // path of the device; "": $TIMERWHEEL_DEVICE, or /dev/timerwheel
	Clock      Clock         // default: Monotonic
	Capacity   int           // maximum number of timers, up to 134,217,728; 0: 4,194,304
	Tick       time.Duration // 1 µs to 1 h, with Manual 1 ns to 1 h; 0: 1 ms
	Slots      int           // slots per level, 8 to 4096; 0: 256
	WakeEvents int           // wake a reader when this many events wait; 0: 1
	WakeAfter  time.Duration // or this long after the first of them; required if WakeEvents > 1
	Slack      time.Duration // default slack of the timers
	Ring       int           // length of the event ring, up to 65,536; 0: none
	Table      bool          // create the deadline table; then timers have no periods
	Resident   bool          // timers stay after they have fired; implies Table
	ClockSet   bool          // deliver events with EventClockSet; with Realtime and Device only
	Alarm      bool          // wake the machine from suspend; with Boottime or Realtime and Device only
}

// Wheel is a wheel of timers. Any number of goroutines may call its methods at the same time.
type Wheel struct {
	r     *reader
	back  back
	clock clock
	kind  Clock
	table *Table
	// timers are resident
	resident bool
}

// back is a back end. Arrays have 1 to batchMax elements. They are on the heap, because a goroutine's
// stack moves, and the kernel gets addresses as numbers.
type back interface {
	backend() Backend
	// batch makes a call on count elements, and returns the number of processed elements.
	batch(call call, flags uint32, elems unsafe.Pointer, count int) (int, syscall.Errno)
	list(to []Entry, cursor *uint64) (int, syscall.Errno)
	drain(to []Entry, last bool) (int, syscall.Errno)
	advance(time int64, flags uint32) (int, syscall.Errno)
	info(info *Info) syscall.Errno
	stats(stats *Stats) syscall.Errno
	// take is a taker. One goroutine calls it at a time.
	take(fd uintptr, to []Event) (int, error)
	// share returns a new descriptor of the wheel, monitor the descriptor of a new monitor.
	share() (int, syscall.Errno)
	monitor(events uint32) (int, syscall.Errno)
	// shut is called before the descriptor is closed, release after the last read has ended.
	shut()
	release()
}

// call is a call on an array in which the caller selects the timers.
type call int

const (
	callAdd call = iota
	callMove
	callRemove
	callGet
	callMoveHandle
	callRemoveHandle
)

// Open creates a wheel. If options is nil, each option has its default. Errors: EINVAL (an option is
// outside the limits, or TIMERWHEEL_BACKEND is unknown), EOPNOTSUPP (this back end or machine does
// not support an option), ENOENT, ENXIO or ENODEV (there is no device), EACCES or EPERM (no permission
// to use the device, or to wake the machine), ENOTTY (Path is another device), EDQUOT (the wheel would
// exceed the user's limit on memory), ENOMEM, EMFILE, ENFILE.
func Open(options *Options) (*Wheel, error) {
	o := Options{}
	if options != nil {
		o = *options
	}
	if o.Path == "" {
		o.Path = os.Getenv("TIMERWHEEL_DEVICE")
	}
	if o.Path == "" {
		o.Path = "/dev/timerwheel"
	}
	if o.Backend == Auto {
		switch os.Getenv("TIMERWHEEL_BACKEND") {
		case "", "auto":
		case "device":
			o.Backend = Device
		case "process":
			o.Backend = Process
		default:
			return nil, fail("open", syscall.EINVAL)
		}
	}
	if o.invalid() {
		return nil, fail("open", syscall.EINVAL)
	}
	switch o.Backend {
	case Process:
		return openProcess(&o)
	case Device:
		return openDevice(&o)
	case Auto:
		w, err := openDevice(&o)
		if e, ok := err.(*Error); ok && (e.Errno == syscall.ENOENT || e.Errno == syscall.ENXIO ||
			e.Errno == syscall.ENODEV) {
			return openProcess(&o)
		}
		return w, err
	}
	return nil, fail("open", syscall.EINVAL)
}

// invalid reports negative numbers, and numbers that do not fit in the kernel's fields. The back ends
// check the limits.
func (o *Options) invalid() bool {
	return o.Clock > Manual || o.Capacity < 0 || o.Capacity > 1<<32-1 || o.Tick < 0 ||
		o.Slots < 0 || o.Slots > 1<<32-1 || o.WakeEvents < 0 || o.WakeEvents > 1<<32-1 ||
		o.WakeAfter < 0 || o.Slack < 0 || o.Ring < 0 || o.Ring > ringMax
}

// newWheel makes a wheel with a back end. It owns the descriptor unless it fails.
func newWheel(fd int, name string, kind Clock, back back, table *Table) (*Wheel, error) {
	r, err := newReader(fd, name)
	if err != nil {
		return nil, err
	}
	return &Wheel{r: r, back: back, clock: newClock(kind), kind: kind, table: table}, nil
}

// Close closes a wheel. Its timers end unless another process has the wheel open. A waiting Read, and
// each later call, returns [ErrClosed]. In the table all timers are Gone.
func (w *Wheel) Close() error {
	if !w.r.close(w.back.shut) {
		return ErrClosed
	}
	w.back.release()
	if w.table != nil {
		w.table.close()
	}
	return nil
}

// Backend returns the back end of the wheel: Device or Process.
func (w *Wheel) Backend() Backend { return w.back.backend() }

// Info returns the limits and settings of the wheel. Error: [ErrClosed].
func (w *Wheel) Info() (Info, error) {
	info := new(Info)
	err := w.result("info", w.back.info(info))
	return *info, err
}

// Stats returns the counters of the wheel. Error: [ErrClosed].
func (w *Wheel) Stats() (Stats, error) {
	stats := new(Stats)
	err := w.result("stats", w.back.stats(stats))
	return *stats, err
}

// Now returns the time of the wheel's clock, in ns. Use it to compute absolute deadlines. With
// Monotonic it is ahead of the clock by the time that reading the clock takes, usually less than a
// microsecond, so that these deadlines are not early.
func (w *Wheel) Now() int64 {
	if w.kind == Manual {
		info, _ := w.Info()
		return int64(info.Now)
	}
	return w.clock.now()
}

// File returns a new descriptor of the wheel to pass to another process, by exec.Cmd.ExtraFiles,
// through a socket, or to a service manager. The caller must close it. Errors: [ErrClosed],
// EOPNOTSUPP (back end Process), EMFILE.
func (w *Wheel) File() (*os.File, error) {
	fd, errno := w.back.share()
	if errno != 0 {
		return nil, w.result("share", errno)
	}
	return os.NewFile(uintptr(fd), "timerwheel"), nil
}

// Monitor opens a monitor that holds up to this number of unread events, 1 to 65,536; 0: 1024. The
// caller must close it. Errors: [ErrClosed], EOPNOTSUPP (back end Process), EINVAL (events is outside
// the limits), ENOMEM, EDQUOT, ENOSPC (the wheel has the maximum number of monitors), EMFILE, ENFILE.
func (w *Wheel) Monitor(events int) (*Monitor, error) {
	if events < 0 || events > ringMax {
		return nil, fail("monitor", syscall.EINVAL)
	}
	fd, errno := w.back.monitor(uint32(events))
	if errno != 0 {
		return nil, w.result("monitor", errno)
	}
	r, err := newReader(fd, "timerwheel-monitor")
	if err != nil {
		return nil, err
	}
	return &Monitor{r}, nil
}

// Table returns the deadline table, or nil if the wheel was opened without it.
func (w *Wheel) Table() *Table { return w.table }

// result returns the error for the errno of a call.
func (w *Wheel) result(op string, errno syscall.Errno) error {
	if errno != 0 && w.r.closed() {
		return ErrClosed
	}
	return fail(op, errno)
}

// batch repeats a call until all elements are processed. The runtime's signals end calls early.
func batch[T any](w *Wheel, op string, call call, flags uint32, elems []T) (int, error) {
	done := 0
	for done < len(elems) {
		count := len(elems) - done
		if count > batchMax {
			count = batchMax
		}
		n, errno := w.back.batch(call, flags, unsafe.Pointer(&elems[done]), count)
		if errno != 0 && errno != syscall.EINTR {
			return done, w.result(op, errno)
		}
		done += n
	}
	return done, nil
}

// known records in the table that the timers of handles exist.
func (w *Wheel) known(count int, handle func(i int) (Handle, Result)) {
	if w.table == nil {
		return
	}
	last := uint32(0)
	for i := 0; i < count; i++ {
		if h, result := handle(i); result >= 0 && h.index > last {
			last = h.index
		}
	}
	w.table.learn(last)
}

// past replaces a negative absolute time with 0, because the kernel's absolute times have no sign: it
// would treat a negative time as a time in the far future.
func past(deadline *int64, flags uint32) {
	if *deadline < 0 && flags&Abs != 0 {
		*deadline = 0
	}
}

// Add arms timers. An element that fails changes nothing and does not affect the others: see its
// Result. Add returns the number of processed elements. If it is less than len(elems), the error is
// [ErrClosed], ENOMEM, or in the first call only EDQUOT.
func (w *Wheel) Add(elems []Add) (int, error) {
	for i := range elems {
		past(&elems[i].Deadline, elems[i].Flags)
		if elems[i].Slack < 0 {
			elems[i].Slack = 0
		}
	}
	n, err := batch(w, "add", callAdd, 0, elems)
	w.known(n, func(i int) (Handle, Result) { return elems[i].Handle, elems[i].Result })
	return n, err
}

// Move changes the deadlines of timers. It returns the same values as Add.
func (w *Wheel) Move(elems []Move) (int, error) {
	for i := range elems {
		past(&elems[i].Deadline, elems[i].Flags)
	}
	return batch(w, "move", callMove, 0, elems)
}

// Remove removes timers. It returns the same values as Add.
func (w *Wheel) Remove(elems []Remove) (int, error) {
	return batch(w, "remove", callRemove, 0, elems)
}

// MoveHandles is Move without looking up keys. The flags apply to all elements: [Abs], and
// [Excl] with a deadline table. It returns the same values as Add; EINVAL: other flags.
func (w *Wheel) MoveHandles(elems []MoveHandle, flags uint32) (int, error) {
	for i := range elems {
		past(&elems[i].Deadline, flags)
	}
	return batch(w, "move", callMoveHandle, flags, elems)
}

// RemoveHandles is Remove without looking up keys. It returns the same values as Add.
func (w *Wheel) RemoveHandles(elems []RemoveHandle) (int, error) {
	return batch(w, "remove", callRemoveHandle, 0, elems)
}

// Get fills in elements with the timers that have their keys. The Flags of each element must be 0. It
// returns the same values as Add.
func (w *Wheel) Get(elems []Entry) (int, error) {
	n, err := batch(w, "get", callGet, 0, elems)
	w.known(n, func(i int) (Handle, Result) { return elems[i].Handle, elems[i].Result })
	return n, err
}

// Cursor is the position at which the next List continues. The zero value is the beginning.
type Cursor struct{ at uint64 }

// List reads all timers of the wheel, as many in each call as fit, and returns their number; 0: there
// are no more. A timer that exists from the first call to the last is returned exactly once. Errors:
// [ErrClosed], ENOMEM.
func (w *Wheel) List(to []Entry, cursor *Cursor) (int, error) {
	n, err := some(w, "list", to, func(to []Entry) (int, syscall.Errno) {
		return w.back.list(to, &cursor.at)
	})
	w.known(n, func(i int) (Handle, Result) { return to[i].Handle, to[i].Result })
	return n, err
}

// Drain removes timers, pending and due, in any order, as many as fit, and returns their number; 0:
// none is left. With last the wheel accepts no new timers from now on: the elements of Add fail with
// ESHUTDOWN. Errors: [ErrClosed], ENOMEM.
func (w *Wheel) Drain(to []Entry, last bool) (int, error) {
	return some(w, "drain", to, func(to []Entry) (int, syscall.Errno) {
		return w.back.drain(to, last)
	})
}

// some repeats a call that returns timers, until there is no room or a call returns fewer than fit.
func some(w *Wheel, op string, to []Entry, one func(to []Entry) (int, syscall.Errno)) (int, error) {
	done := 0
	for {
		count := len(to) - done
		if count > batchMax {
			count = batchMax
		}
		n, errno := one(to[done : done+count])
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 {
			return done, w.result(op, errno)
		}
		done += n
		// If a signal ended the call early, the caller continues. No call returns 0 before the end.
		if n < count || done == len(to) {
			return done, nil
		}
	}
}

// Advance advances the time of a wheel with the clock Manual, and returns the number of timers that
// fell due. Errors: EINVAL (another clock, or d is negative), and the errors of Add.
func (w *Wheel) Advance(d time.Duration) (int, error) {
	n, errno := w.back.advance(int64(d), 0)
	return n, w.result("advance", errno)
}

// AdvanceTo is Advance to an absolute time, in ns. Errors: EINVAL (another clock, or now is in the
// past), and the errors of Add.
func (w *Wheel) AdvanceTo(now int64) (int, error) {
	if now < 0 {
		return 0, fail("advance", syscall.EINVAL)
	}
	n, errno := w.back.advance(now, Abs)
	return n, w.result("advance", errno)
}

// Read takes events: at least one, and as many as there are and fit. It waits for the first event
// until the context is done, and then returns the context's error. Each event goes to one Read. If
// Read has taken events, it returns them without an error. A waiting goroutine does not occupy a
// thread. Errors: [ErrClosed], ENOMEM; with an event ring EDQUOT.
func (w *Wheel) Read(ctx context.Context, to []Event) (int, error) {
	if len(to) == 0 {
		return 0, nil
	}
	return w.r.read(ctx, func(fd uintptr) (int, error) { return w.back.take(fd, to) })
}

// Take is Read without waiting. It returns 0 if there is no event, or if another goroutine is in
// Read, which then gets the events.
func (w *Wheel) Take(to []Event) (int, error) {
	if len(to) == 0 {
		return 0, nil
	}
	return w.r.try(func(fd uintptr) (int, error) { return w.back.take(fd, to) })
}
