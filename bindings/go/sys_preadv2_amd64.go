// SPDX-License-Identifier: MIT OR GPL-2.0-only

//go:build linux && amd64

package timerwheel

// sysPreadv2 is SYS_PREADV2, which package syscall does not have.
const sysPreadv2 = 327
