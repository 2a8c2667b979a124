// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Table is the deadline table of a wheel: mapped memory in which timers are armed, refreshed and
// cancelled by a compare-and-swap, without a system call. Any number of goroutines may use it at
// once.
//
// Deadlines are absolute, in ns of the wheel's clock ([Wheel.Now]). They are rounded up to a multiple
// of 2^[Info.GenerationBits] ns, which is less than 1 ms with a tick of 1 ms.
//
// After [Wheel.Close] all timers are Gone.
type Table struct {
	entries unsafe.Pointer // of mapped memory
	size    uintptr
	bits    uint32
	// Indices up to this one are known to exist. Entries behind the last one that exists
	// cannot be accessed at all.
	known uint32
}

// Answer is the answer of the functions that arm, refresh and cancel timers in memory. Only after
// Done anything has changed.
type Answer int

const (
	// Done: the function has armed, refreshed or cancelled the timer. After a cancel, no event is
	// delivered for that arming.
	Done Answer = iota
	// TooLate: the last arming has fired. Its event will be delivered, was taken, or was withdrawn.
	TooLate
	// NeedsCall: the timer has fired, is parked, or has a later deadline. Move arms it, or Add if
	// it is not resident and its event was delivered.
	NeedsCall
	// NotArmed: the last arming was cancelled, or the timer lingers after its event.
	NotArmed
	// Gone: the timer has ended.
	Gone
)

// String returns the name of the constant.
func (a Answer) String() string {
	names := [...]string{"Done", "TooLate", "NeedsCall", "NotArmed", "Gone"}
	if a < 0 || int(a) >= len(names) {
		return "Answer(?)"
	}
	return names[a]
}

// newTable maps the entries for a capacity: of a wheel's descriptor, or memory that has none.
func newTable(fd uintptr, anonymous bool, capacity, bits uint32) (*Table, syscall.Errno) {
	flags, offset := syscall.MAP_SHARED, uintptr(mmapDeadlines)
	if anonymous {
		flags, fd, offset = syscall.MAP_PRIVATE|syscall.MAP_ANON|mapNoreserve, ^uintptr(0), 0
	}
	t := &Table{size: pages((uintptr(capacity) + 1) * 8), bits: bits}
	var errno syscall.Errno
	t.entries, errno = mapping(nil, t.size, syscall.PROT_READ|syscall.PROT_WRITE, flags, fd, offset)
	if errno != 0 {
		return nil, errno
	}
	runtime.SetFinalizer(t, func(t *Table) { unmap(t.entries, t.size) })
	return t, 0
}

// close releases the wheel. Goroutines may be about to access an entry, so close replaces the mapping
// by memory that is all zero; 0 is not a valid generation. The memory is unmapped when the program
// drops the table.
func (t *Table) close() {
	mapping(t.entries, t.size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_FIXED|syscall.MAP_PRIVATE|syscall.MAP_ANON|mapNoreserve, ^uintptr(0), 0)
}

// learn records that an index exists. Indices outside of the table are ignored.
func (t *Table) learn(index uint32) {
	if uintptr(index) >= t.size/8 {
		return
	}
	for {
		known := atomic.LoadUint32(&t.known)
		if index <= known || atomic.CompareAndSwapUint32(&t.known, known, index) {
			return
		}
	}
}

func (t *Table) entry(index uint32) *uint64 {
	return (*uint64)(unsafe.Add(t.entries, uintptr(index)*8))
}

func (t *Table) low() uint64 { return 1<<t.bits - 1 }

// make returns an entry without a state; the deadline is rounded up, and does not wrap.
func (t *Table) make(h Handle, deadline int64) uint64 {
	if deadline < 0 {
		deadline = 0
	}
	return (uint64(deadline)+t.low())&^t.low() | uint64(h.generation)
}

// exists reports whether the entry of a handle can be accessed.
func (t *Table) exists(h Handle) bool {
	return h.generation != 0 && h.index <= atomic.LoadUint32(&t.known)
}

// Arm arms a timer, whether or not it is armed. It returns Done; NeedsCall, also if
// deadline is before the deadline of the last arming, even a cancelled one; or Gone.
func (t *Table) Arm(h Handle, deadline int64) Answer {
	return t.set(h, deadline, stateArmed)
}

// Refresh postpones a timer if it is armed. After Done no event is delivered for the previous
// deadline. NeedsCall: deadline is before the timer's deadline.
func (t *Table) Refresh(h Handle, deadline int64) Answer {
	return t.set(h, deadline, 0)
}

// set arms a timer. Bits of the state that are set in may can differ from the armed state.
func (t *Table) set(h Handle, deadline int64, may uint64) Answer {
	if !t.exists(h) {
		return Gone
	}
	defer runtime.KeepAlive(t)
	entry, want := t.entry(h.index), t.make(h, deadline)|stateArmed
	for {
		old := atomic.LoadUint64(entry)
		if differs := (old ^ want) & t.low(); differs&^may != 0 {
			if may != 0 && differs <= stateFired {
				return NeedsCall
			}
			return refused(differs)
		}
		// The state is in the lowest bits: cancelled is less than armed.
		if want < old {
			return NeedsCall
		}
		if atomic.CompareAndSwapUint64(entry, old, want) {
			return Done
		}
	}
}

// Cancel cancels a timer. It answers Done: no event comes; TooLate; NotArmed; or Gone. The timer
// stays until it is removed, and can be armed again. Until its deadline has passed that needs no call.
func (t *Table) Cancel(h Handle) Answer {
	if !t.exists(h) {
		return Gone
	}
	defer runtime.KeepAlive(t)
	entry, want := t.entry(h.index), uint64(h.generation)|stateArmed
	for {
		old := atomic.LoadUint64(entry)
		if differs := (old ^ want) & t.low(); differs != 0 {
			return refused(differs)
		}
		// The deadline stays: the timer is still queued for it.
		if atomic.CompareAndSwapUint64(entry, old, old-stateArmed) {
			return Done
		}
	}
}

// refused says why a timer is not armed, by the bits that differ from an entry that is.
func refused(differs uint64) Answer {
	switch {
	case differs > stateFired:
		return Gone
	case differs&stateArmed != 0:
		return NotArmed
	default:
		return TooLate
	}
}
