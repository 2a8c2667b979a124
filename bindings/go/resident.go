// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"syscall"
	"time"
)

// Timer is a resident timer: it continues to exist after it has fired, and is armed, refreshed and
// cancelled in memory. Use it for a timeout that is armed for each request and nearly always
// cancelled. Any number of goroutines may call its methods at the same time.
type Timer struct {
	w      *Wheel
	key    uint64
	handle Handle
}

// NewTimer adds a resident timer that is not armed. If linger is not 0, the timer can be armed again
// without a system call for this time after its event. Errors: EINVAL (the wheel is not resident, or
// linger is negative), EEXIST (a timer has the key), and the errors of [Wheel.Add] and its elements.
func (w *Wheel) NewTimer(key, value uint64, linger time.Duration) (*Timer, error) {
	if w.table == nil || !w.resident {
		return nil, fail("add", syscall.EINVAL)
	}
	add := []Add{{Key: key, Value: value, Deadline: TimeMax, Period: linger, Flags: Excl}}
	if linger != 0 {
		add[0].Flags |= Linger
	}
	if _, err := w.Add(add); err != nil {
		return nil, err
	}
	if err := add[0].Result.Err(); err != nil {
		return nil, err
	}
	w.table.Cancel(add[0].Handle)
	return &Timer{w, key, add[0].Handle}, nil
}

// Key returns the timer's key.
func (t *Timer) Key() uint64 { return t.key }

// Handle returns the timer's handle, for the deadline table.
func (t *Timer) Handle() Handle { return t.handle }

// Arm arms the timer for a time from now, whether or not it is armed. No event is delivered for the
// previous deadline, except an event that was already taken: its Deadline is earlier. Errors: ENOENT
// (the timer was removed), [ErrClosed].
func (t *Timer) Arm(after time.Duration) error {
	return t.ArmAt(later(t.w.Now(), int64(after)))
}

// ArmAt is Arm for an absolute deadline, in ns of the wheel's clock. It needs a system call only if
// the deadline is earlier than the previous one, or if the timer has fired or is parked.
func (t *Timer) ArmAt(deadline int64) error {
	switch t.w.table.Arm(t.handle, deadline) {
	case Done:
		return nil
	case NeedsCall:
		return t.move(deadline)
	default:
		return t.gone()
	}
}

// Refresh postpones the timer to a time from now if it is armed, and reports whether it did. It
// returns false without an error if the timer has fired or was cancelled. It returns the same errors
// as Arm.
//
// If the new deadline is earlier than the timer's deadline, Refresh makes a system call that always
// arms the timer, even if the timer fires or another goroutine cancels it before the call.
func (t *Timer) Refresh(after time.Duration) (bool, error) {
	deadline := later(t.w.Now(), int64(after))
	switch t.w.table.Refresh(t.handle, deadline) {
	case Done:
		return true, nil
	case NeedsCall:
		err := t.move(deadline)
		return err == nil, err
	case Gone:
		return false, t.gone()
	default:
		return false, nil
	}
}

// Cancel cancels the timer, and reports whether it did. If it returns true, no event is delivered for
// the last arming. An event can still be delivered for a later arming, for example by a concurrent
// Refresh. It returns false if the timer had fired, was not armed, or is gone. The event of a timer
// that had fired is delivered, or was already taken.
func (t *Timer) Cancel() bool { return t.w.table.Cancel(t.handle) == Done }

// Remove removes the timer. Errors: ENOENT (it was removed before), and the errors of [Wheel.Add].
func (t *Timer) Remove() error {
	remove := []RemoveHandle{{Handle: t.handle}}
	if _, err := t.w.RemoveHandles(remove); err != nil {
		return err
	}
	return remove[0].Result().Err()
}

func (t *Timer) move(deadline int64) error {
	move := []MoveHandle{{Deadline: deadline, Handle: t.handle}}
	if _, err := t.w.MoveHandles(move, Abs); err != nil {
		return err
	}
	return move[0].Result().Err()
}

func (t *Timer) gone() error {
	if t.w.r.closed() {
		return ErrClosed
	}
	return failed(syscall.ENOENT).Err()
}
