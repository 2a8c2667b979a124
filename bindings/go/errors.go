// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"fmt"
	"os"
	"syscall"
)

// ErrClosed is the error of each call on a wheel during or after its Close.
var ErrClosed = os.ErrClosed

// Error is an error of a call or of an element. errors.Is finds its Errno, and the error of package fs
// that stands for the Errno: fs.ErrNotExist for ENOENT, fs.ErrExist for EEXIST.
type Error struct {
	Op    string // "add", "move", ...
	Errno syscall.Errno
}

// Error describes what failed and what to do about it.
func (e *Error) Error() string {
	text, ok := advice[e.Errno]
	if !ok {
		text = e.Errno.Error()
	}
	return fmt.Sprintf("timerwheel: %s: %s", e.Op, text)
}

// Unwrap returns the Errno.
func (e *Error) Unwrap() error { return e.Errno }

var advice = map[syscall.Errno]string{
	syscall.EINVAL:     "a value or flag is unknown or outside the limits",
	syscall.E2BIG:      "the timerwheel module is too old for this request",
	syscall.ENOENT:     "no timer has this key or handle, or there is no deadline table or no device",
	syscall.ENXIO:      "there is no device: modprobe timerwheel",
	syscall.ENODEV:     "there is no device: modprobe timerwheel",
	syscall.EEXIST:     "a timer with this key exists already, or the timer is armed",
	syscall.ESTALE:     "the timer has another value than the one to match",
	syscall.ENOSPC:     "the wheel has the maximum number of timers or monitors",
	syscall.EDQUOT:     "the user has reached the limit on kernel memory for all wheels",
	syscall.EMLINK:     "too many keys collide with this one",
	syscall.ENOMEM:     "out of memory",
	syscall.EACCES:     "not allowed to use the device: become a member of its group",
	syscall.EPERM:      "not allowed to use the device, or to wake the machine",
	syscall.ESHUTDOWN:  "the wheel accepts no new timers",
	syscall.ENOTTY:     "not a wheel, or the timerwheel module is too old for this request",
	syscall.EBADF:      "the descriptor is not open",
	syscall.EPROTO:     "the settings of the wheel are not valid for this package: a newer program has set it up for larger events or another clock",
	syscall.EOPNOTSUPP: "a wheel inside the process, or this machine, cannot do this",
	syscall.EXDEV:      "the wheel was set up in another time namespace",
}

// fail returns the error for an errno, or nil for 0.
func fail(op string, errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return &Error{op, errno}
}

// Result is the result of an element: the state of its timer before the call, or an error.
type Result int32

// States of the timer before the call.
const (
	WasNone    Result = 0 // Add: no timer had this key
	WasPending Result = 1 // it was armed
	WasDue     Result = 2 // it was due, and its event was withdrawn
	WasParked  Result = 3 // resident: its last arming was cancelled or delivered
)

// Err returns the error of an element, an [*Error], or nil. The errors are EINVAL, ENOENT (no such
// timer), EEXIST ([Excl]), ESTALE ([Match]), ENOSPC (the wheel is full), EDQUOT, EMLINK, ENOMEM
// and ESHUTDOWN (the wheel was closed for new timers).
func (r Result) Err() error {
	if r >= 0 {
		return nil
	}
	return &Error{"timer", syscall.Errno(-r)}
}

func failed(errno syscall.Errno) Result { return -Result(errno) }
