// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"syscall"
	"unsafe"
)

// The arguments of mmap are in memory here.
func mmap(addr, size, prot, flags, fd, off uintptr) (uintptr, syscall.Errno) {
	args := &[6]uintptr{addr, size, prot, flags, fd, off}
	at, _, errno := syscall.Syscall(syscall.SYS_MMAP, uintptr(unsafe.Pointer(args)), 0, 0)
	return at, errno
}
