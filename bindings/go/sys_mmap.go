// SPDX-License-Identifier: MIT OR GPL-2.0-only

//go:build linux && !s390x

package timerwheel

import "syscall"

func mmap(addr, size, prot, flags, fd, off uintptr) (uintptr, syscall.Errno) {
	at, _, errno := syscall.Syscall6(syscall.SYS_MMAP, addr, size, prot, flags, fd, off)
	return at, errno
}
