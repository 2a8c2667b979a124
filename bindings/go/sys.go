// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"syscall"
	"time"
	"unsafe"
)

const (
	clockMonotonic = 1
	clockRealtime  = 0
	clockBoottime  = 7

	tfdAbstime = 1

	rwfNowait = 8

	mapNoreserve = 0x4000
)

// ioctl makes a call that takes the address of arg, which must be on the heap.
func ioctl(fd uintptr, call uintptr, arg unsafe.Pointer) (int, syscall.Errno) {
	n, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, call, uintptr(arg))
	return int(n), errno
}

// readNowait reads without blocking. It returns the number of bytes that the kernel has written to buf.
func readNowait(fd uintptr, buf unsafe.Pointer, size uintptr) (int, syscall.Errno) {
	// RWF_NOWAIT is needed because another user of the file description may have cleared O_NONBLOCK,
	// as os/exec does.
	vec := &iovec{buf, size}
	n, _, errno := syscall.Syscall6(sysPreadv2, fd, uintptr(unsafe.Pointer(vec)), 1,
		^uintptr(0), ^uintptr(0), rwfNowait)
	return int(n), errno
}

type iovec struct {
	base unsafe.Pointer
	len  uintptr
}

func gettime(clock uintptr) int64 {
	var ts syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// mapping maps memory. The collector ignores the result, because it is not memory of Go.
func mapping(addr unsafe.Pointer, size uintptr, prot, flags int, fd, off uintptr) (unsafe.Pointer, syscall.Errno) {
	at, errno := mmap(uintptr(addr), size, uintptr(prot), uintptr(flags), fd, off)
	if errno != 0 {
		return nil, errno
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&at)), 0
}

func unmap(addr unsafe.Pointer, size uintptr) {
	syscall.Syscall(syscall.SYS_MUNMAP, uintptr(addr), size, 0)
}

func pages(size uintptr) uintptr {
	page := uintptr(syscall.Getpagesize())
	return (size + page - 1) / page * page
}

// clock reads the clock of a wheel. Reading CLOCK_MONOTONIC takes a system call in Go, unless it is
// derived from the runtime's reading of the same clock. The derived time is exact except for the time
// between two readings. now is ahead of the clock by this time, so that a deadline computed from it is
// never early; passed is behind the clock by this time.
type clock struct {
	id     uintptr
	derive bool
	start  time.Time
	ahead  int64
	behind int64
}

func newClock(c Clock) clock {
	k := clock{id: [...]uintptr{clockMonotonic, clockBoottime, clockRealtime, clockMonotonic}[c]}
	if c != Monotonic {
		return k
	}
	k.derive = true
	k.start = time.Now()
	for i := 0; i < 16; i++ {
		before := int64(time.Since(k.start))
		read := gettime(k.id)
		after := int64(time.Since(k.start))
		if i == 0 || read-before < k.ahead {
			k.ahead = read - before
		}
		if i == 0 || read-after > k.behind {
			k.behind = read - after
		}
	}
	return k
}

// now returns the time. A deadline computed from it is not early.
func (k *clock) now() int64 {
	if k.derive {
		return int64(time.Since(k.start)) + k.ahead
	}
	return k.passed()
}

// passed returns a time that has passed.
func (k *clock) passed() int64 {
	if k.derive {
		return int64(time.Since(k.start)) + k.behind
	}
	if k.id == clockRealtime {
		return time.Now().UnixNano()
	}
	return gettime(k.id)
}
