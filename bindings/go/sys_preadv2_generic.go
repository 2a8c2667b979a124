// SPDX-License-Identifier: MIT OR GPL-2.0-only

//go:build linux && (arm64 || riscv64 || loong64)

package timerwheel

// sysPreadv2 is SYS_PREADV2, which package syscall does not have.
const sysPreadv2 = 286
