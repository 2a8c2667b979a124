// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"syscall"
	"time"
)

// Timer is a resident timer: it stays when it has fired, and is armed, refreshed and cancelled in
// memory. It is for what is armed for each request and nearly always cancelled. Its methods may be
// called by any number of goroutines at once.
type Timer struct {
	w      *Wheel
	key    uint64
	handle Handle
}

// NewTimer adds a resident timer that is not armed. After its event it can be armed again without a
// system call for as long as linger, if that is not 0. Errors: EINVAL (the wheel is not resident,
// or linger is negative), and those of [Wheel.Add] and its elements; EEXIST: a timer has the key.
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

// Arm arms the timer for a time from now, whether or not it is armed. No event comes for a former
// deadline unless it was taken already: that one has an earlier Deadline. Errors: ENOENT (the timer
// was removed), [ErrClosed].
func (t *Timer) Arm(after time.Duration) error {
	return t.ArmAt(later(t.w.Now(), int64(after)))
}

// ArmAt is Arm for an absolute deadline, in ns of the wheel's clock. It takes a system call only if
// that is before the last one, or the timer has fired or is parked.
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

// Refresh postpones the timer if it is armed, and reports if it did. False without an error: it
// has fired, or was cancelled. Errors as of Arm.
//
// A deadline before that of the timer takes a system call, which arms the timer in any case. Should
// it fire before that call, or another goroutine cancel it, it is armed again.
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

// Cancel cancels the timer, and reports if it did: then no event comes for its last arming, but one
// may for the next, which can be that of a Refresh at the same time. False: it had fired, and its
// event comes or was taken; or it was not armed, or is gone.
func (t *Timer) Cancel() bool { return t.w.table.Cancel(t.handle) == Done }

// Remove removes the timer.
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
