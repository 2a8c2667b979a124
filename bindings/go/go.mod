// SPDX-License-Identifier: MIT OR GPL-2.0-only

module timerwheel

go 1.19
