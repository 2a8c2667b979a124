// SPDX-License-Identifier: MIT OR GPL-2.0-only

//go:build linux && (arm64 || riscv64 || loong64)

package timerwheel

// SYS_PREADV2, which package syscall is too old for
const sysPreadv2 = 286
